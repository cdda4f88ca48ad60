"""Rows to learn from, checked and encoded, and how they are split at random."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from fairmatch.exceptions import GroupError
from fairmatch.matching.coupling import IndexArray
from fairmatch.tables.arrays import BoolArray, FloatArray
from fairmatch.tables.groups import Groups, read_groups
from fairmatch.tables.located import read_points
from fairmatch.tables.parameters import check_count
from fairmatch.tables.points import Points

# Numbers of more values than this are no classes.
_MOST_CLASSES = 10


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows to learn from.

    Attributes
    ----------
    labels : array of shape (n_rows,)
        0 or 1, or the numbers that a regressor predicts.
    groups : Groups
        Group of every row.
    weights : array of shape (n_rows,), or None
        Weight of every row, where given.
    points : Points
        The features as numbers and category codes, which people are matched on; an array is
        taken as numbers.
    inputs : array of shape (n_rows, n_inputs)
        What the learner sees, with the group where it may be used.
    ignored : tuple of int
        Codes of groups that are learned from and not compared.
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
        """Weight of every row; 1 where none was given."""
        return np.ones(len(self)) if self.weights is None else self.weights

    @property
    def positive(self) -> BoolArray:
        """Which rows have the positive label."""
        return np.asarray(self.labels > 0.0)

    @cached_property
    def encoded(self) -> FloatArray:
        """The features as numbers alone, with a column for every level of a category."""
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
    """Return some rows of a table, an array or a list, of whatever library."""
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
    """Split rows at random, in equal shares within each label and group.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Labels. Numbers of many values, as regressors predict them, count by their quarters.
    sensitive : array-like of shape (n_rows,), or Groups
        Group of every row.
    held_out : float
        Share of the rows to hold out.
    random_state : int or None
        Seed.

    Returns
    -------
    train, held_out : arrays of int
        Row positions.
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
                f"{len(groups.rows(code))}, on one side of the split. Pool the group with another "
                "(small_groups='pool'), or hold out another share."
            )
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """Return one seed for what scikit-learn's users give; global generators are left alone."""
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(int(random_state.randint(2**31 - 1)))
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(int(random_state.integers(2**63 - 1)))
    check_count("random_state", random_state, 0, optional=True)
    return np.random.SeedSequence(int(random_state))
