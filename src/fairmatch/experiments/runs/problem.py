"""One random split of a table, as every method of a run sees it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from fairmatch.datasets import Dataset, Split, paper_split
from fairmatch.exceptions import InputError
from fairmatch.tables.arrays import BoolArray

# How the paper halves two of the tables (Section 5.2.2): a column, the names of both halves, and
# the value of the first half. None halves at the median of the test rows; the median is high.
NAMED_SUBSETS: dict[str, tuple[str, str, str, str | None]] = {
    "german": ("age", "high age", "low age", None),
    "dutch": ("marital_status", "married", "not married", "married"),
}


@dataclass(frozen=True, eq=False)
class Problem:
    """One split of a table into training and test rows.

    Attributes
    ----------
    dataset : Dataset
        The table.
    split : Split
        The rows of the table as numbers.
    """

    dataset: Dataset
    split: Split

    @classmethod
    def draw(cls, dataset: Dataset, seed: int, minority_share: float | None = None) -> "Problem":
        """Return the split of a table that a seed draws.

        Parameters
        ----------
        dataset : Dataset
            The table.
        seed : int
            Seed of the split.
        minority_share : float, optional
            Share of S = 0 among the training rows. Rows of S = 0 are dropped at random to reach it.
        """
        split = paper_split(dataset, seed)
        if minority_share is not None:
            split = _thinned(split, minority_share, seed)
        return cls(dataset, split)

    @property
    def raw_train(self) -> pd.DataFrame:
        """The training rows as they are in the table."""
        return self.dataset.X.iloc[self.split.train_index]

    @property
    def raw_test(self) -> pd.DataFrame:
        """The test rows as they are in the table."""
        return self.dataset.X.iloc[self.split.test_index]

    @property
    def favoured_code(self) -> int:
        """Code of the favoured group."""
        return self.dataset.groups.index(self.dataset.favoured_group)

    def named_subsets(self) -> dict[str, BoolArray]:
        """Return the halves of the test rows that the paper compares; none for other tables."""
        if self.dataset.name not in NAMED_SUBSETS:
            return {}
        column, first, second, value = NAMED_SUBSETS[self.dataset.name]
        values = self.raw_test[column].to_numpy()
        inside = values >= np.median(values) if value is None else values == value
        if not 0 < inside.sum() < len(inside):
            raise InputError(f"All test rows are alike in {column!r}: they cannot be halved.")
        return {first: inside, second: ~inside}


def _thinned(split: Split, minority_share: float, seed: int) -> Split:
    if not 0.0 < minority_share < 1.0:
        raise InputError(f"minority_share must lie in (0, 1), got {minority_share}.")
    rows = np.flatnonzero(split.group_train == 0)
    others = int((split.group_train == 1).sum())
    wanted = round(others * minority_share / (1.0 - minority_share))
    if not 1 <= wanted <= len(rows):
        raise InputError(
            f"A minority_share of {minority_share:g} needs {wanted} training rows of S = 0, and "
            f"there are {len(rows)}. Choose another share."
        )
    kept = np.random.default_rng([seed, 595]).choice(rows, size=wanted, replace=False)
    keep = np.sort(np.concatenate([kept, np.flatnonzero(split.group_train == 1)]))
    training: dict[str, Any] = {
        name: getattr(split, name)[keep]
        for name in (
            "X_train",
            "y_train",
            "group_train",
            "sensitive_features_train",
            "train_index",
        )
    }
    return replace(split, **training)
