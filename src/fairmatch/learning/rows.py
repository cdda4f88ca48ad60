"""The rows to learn from, checked and encoded, and random splits of rows."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from fairmatch.exceptions import GroupError, InputError
from fairmatch.matching.coupling import IndexArray
from fairmatch.tables.arrays import BoolArray, FloatArray
from fairmatch.tables.groups import Groups, read_groups
from fairmatch.tables.located import read_points
from fairmatch.tables.parameters import check_count
from fairmatch.tables.points import Points

# Numbers with more different values than this are not classes.
_MOST_CLASSES = 10


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows to learn from.

    Attributes
    ----------
    labels : array of shape (n_rows,)
        0 or 1, or the target of a regressor in standard deviations from its mean.
    groups : Groups
        Group of every row.
    weights : array of shape (n_rows,), or None
        Weight of every row; None if no weights were given.
    points : Points
        The features as numbers and category codes, on which people are matched. An array counts
        as numbers.
    inputs : array of shape (n_rows, n_inputs), or SeenRows
        What the learner sees, with the group if the model may use it.
    ignored : tuple of int
        Codes of groups that the model learns from and does not compare.
    """

    labels: FloatArray
    groups: Groups
    weights: FloatArray | None
    points: Points
    inputs: Any
    ignored: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", read_points(self.points))

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def mass(self) -> FloatArray:
        """Weight of every row; all ones if no weights were given."""
        return np.ones(len(self)) if self.weights is None else self.weights

    @property
    def positive(self) -> BoolArray:
        """Which rows have the positive label."""
        return np.asarray(self.labels > 0.0)

    @cached_property
    def encoded(self) -> FloatArray:
        """The features as numbers, with one column for every level of a category."""
        return self.points.dense()

    def take(self, index: IndexArray) -> "TrainingRows":
        """Return some of the rows."""
        return replace(
            self,
            labels=self.labels[index],
            groups=self.groups.take(index),
            weights=None if self.weights is None else self.weights[index],
            points=self.points.take(index),
            inputs=self.inputs[index],
        )


def take_rows(values: Any, rows: IndexArray) -> Any:
    """Return some rows of a table, an array or a list."""
    return _safe_indexing(np.asarray(values) if isinstance(values, list | tuple) else values, rows)


def group_columns(codes: NDArray[Any], n_groups: int) -> FloatArray:
    """Return groups as 0/1 columns, one for every group but the first.

    Examples
    --------
    >>> import numpy as np
    >>> group_columns(np.array([0, 2, 1]), 3).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    """
    return np.asarray(codes[:, None] == np.arange(1, n_groups), dtype=np.float64)


def stratified_split(
    y: Any, sensitive: ArrayLike | Groups, held_out: float, random_state: Any
) -> tuple[IndexArray, IndexArray]:
    """Split rows at random, with the same share held out of each label and group.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Labels. Numbers with more than ten different values are grouped by quartile.
    sensitive : array-like of shape (n_rows,), or Groups
        Group of every row.
    held_out : float
        Share of the rows to hold out.
    random_state : int, generator or None
        Seed of the split.

    Returns
    -------
    train, held_out : arrays of int
        Positions of the rows of each part.
    """
    groups = sensitive if isinstance(sensitive, Groups) else read_groups(sensitive, n_rows=len(y))
    values, label = np.unique(y, return_inverse=True)
    if len(values) > _MOST_CLASSES and values.dtype.kind in "iuf":
        label = np.searchsorted(np.quantile(y, [0.25, 0.5, 0.75]), y, side="right")
    generator = np.random.default_rng(seed_sequence(random_state))
    chosen = np.zeros(len(y), dtype=bool)
    strata = groups.n_groups * label + groups.codes
    for stratum in np.unique(strata):
        rows = generator.permutation(np.flatnonzero(strata == stratum))
        chosen[rows[: round(held_out * len(rows))]] = True
    for code, name in enumerate(groups.labels):
        if len(set(chosen[groups.rows(code)])) < 2:
            raise GroupError(
                f"validation_size={held_out:g} leaves no rows of group {name!r}, which has "
                f"{len(groups.rows(code))}, on one side of the split. Both sides need some. Pool "
                "the group with another (small_groups='pool'), or hold out another share."
            )
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def check_same_rows(n_labels: int, n_groups: int) -> None:
    """Raise unless there are as many labels as groups of rows."""
    if n_labels != n_groups:
        raise InputError(
            f"y has {n_labels} samples, sensitive_features has {n_groups}. Pass one label and one "
            "group for every row."
        )


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """Return one seed for a ``random_state``: None, a number or a generator of NumPy.

    NumPy's global generator is neither read nor changed.
    """
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(int(random_state.randint(2**31 - 1)))
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(int(random_state.integers(2**63 - 1)))
    check_count("random_state", random_state, 0, optional=True)
    return np.random.SeedSequence(int(random_state))
