"""Which rows are compared: everybody, rows with Y = 1, or each class by itself."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmatch.exceptions import InputError, LabelError
from fairmatch.tables.arrays import BoolArray


@dataclass(frozen=True)
class Criterion:
    """A criterion of fairness: the classes within which groups are compared.

    Parameters
    ----------
    name : str
        The name that callers pass.
    labels : tuple of bool or None
        The classes that are compared: True is Y = 1, False is Y = 0, and None is everybody.
    gap_measure : str
        Name of the measure in `fairmatch.measures` that is zero if and only if the decisions
        satisfy the criterion.
    words : str
        What the criterion asks for, in words.

    Examples
    --------
    >>> from fairmatch.tables.criterion import read_criterion
    >>> read_criterion("equal_opportunity").labels
    (True,)
    """

    name: str
    labels: tuple[bool | None, ...]
    gap_measure: str
    words: str

    @property
    def needs_labels(self) -> bool:
        """Whether the criterion needs the true labels to choose the rows."""
        return self.labels != (None,)

    def strata(
        self, positive: BoolArray | None, n_rows: int
    ) -> list[tuple[bool | None, BoolArray]]:
        """Return the compared classes, each with a mask of its rows.

        Parameters
        ----------
        positive : array of bool, shape (n_rows,), or None
            Which rows have Y = 1. It is not needed where everybody is compared.
        n_rows : int
            Number of rows.
        """
        if not self.needs_labels:
            return [(None, np.ones(n_rows, dtype=bool))]
        if positive is None:
            raise LabelError(
                f"criterion={self.name!r} compares people of the same class, so it needs the true "
                "labels. Pass the labels, or use criterion='demographic_parity'."
            )
        return [(label, positive if label else ~positive) for label in self.labels]


CRITERIA: dict[str, Criterion] = {
    criterion.name: criterion
    for criterion in (
        Criterion(
            "demographic_parity",
            (None,),
            "demographic_parity_gap",
            "every group is accepted equally often",
        ),
        Criterion(
            "equal_opportunity",
            (True,),
            "true_positive_gap",
            "people with a positive label are accepted equally often in every group",
        ),
        Criterion(
            "equalized_odds",
            (True, False),
            "equalized_odds_gap",
            "people with the same label are accepted equally often in every group",
        ),
    )
}


def read_criterion(value: Any) -> Criterion:
    """Return the criterion with this name. A criterion is returned unchanged."""
    if isinstance(value, Criterion):
        return value
    if isinstance(value, str) and value in CRITERIA:
        return CRITERIA[value]
    raise InputError(f"criterion must be one of {', '.join(map(repr, CRITERIA))}; got {value!r}.")
