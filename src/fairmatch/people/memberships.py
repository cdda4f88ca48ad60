"""Groups that are estimated: how probable each group is for every person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmatch.exceptions import GroupError, InputError
from fairmatch.people.checks import FloatArray, check_probabilities, read_numbers
from fairmatch.people.columns import named_columns


class GroupProbabilities:
    """How probable each group is for every row.

    `group_probabilities` makes them. Pass them as ``sensitive_features``.

    Attributes
    ----------
    values : array of shape (n_rows, n_groups)
        Probability of each group. Rows sum to 1.
    labels : tuple
        Name of each group.
    """

    def __init__(self, values: FloatArray, labels: tuple[Any, ...]) -> None:
        self.values, self.labels = values, labels

    @property
    def is_certain(self) -> bool:
        """Whether every probability is 0 or 1, so that the groups are known."""
        return bool(np.isin(self.values, (0.0, 1.0)).all())

    @property
    def most_likely(self) -> NDArray[Any]:
        """The label of the most probable group of every row; the first of several."""
        labels = np.empty(len(self.labels), dtype=object)
        labels[:] = self.labels
        named: NDArray[Any] = labels[self.values.argmax(axis=1)]
        return named

    @property
    def shape(self) -> tuple[int]:
        """Number of rows, as arrays tell it."""
        return (len(self.values),)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> GroupProbabilities:
        # scikit-learn asks for (rows, ...) where an array has one axis or more.
        rows = rows[0] if isinstance(rows, tuple) else rows
        return GroupProbabilities(np.atleast_2d(self.values[rows]), self.labels)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if self.is_certain:
            return self.most_likely
        raise GroupError(
            "The groups are probabilities, but this function needs known groups. "
            "fairmatch.audit, the gaps of fairmatch.measures and the estimators that need no "
            "group at prediction take probabilities.",
            parameter="sensitive_features",
        )

    def __repr__(self) -> str:
        shares = ", ".join(
            f"{label} {share:.1%}"
            for label, share in zip(self.labels, self.values.mean(axis=0), strict=True)
        )
        return f"<GroupProbabilities of {len(self)} rows: {shares}>"


def group_probabilities(table: Any, *, labels: Sequence[Any] | None = None) -> GroupProbabilities:
    r"""Return estimated groups, to be passed as ``sensitive_features``.

    Such probabilities come from surnames and addresses (BISG) or from any model of the group.

    Parameters
    ----------
    table : table or array of shape (n_rows, n_groups)
        Probability of each group, one column per group. Rows must sum to 1.
    labels : sequence, optional
        Names of the groups. By default they are those of the columns, or 0, 1, … for an array.

    Returns
    -------
    GroupProbabilities
        The probabilities, for `fairmatch.audit` and the gaps of `fairmatch.measures`. If all of
        them are 0 or 1, every result is the same as for known groups.

    Notes
    -----
    With probabilities :math:`p_{is}` the rate of a group is
    :math:`\sum_i p_{is} f_i / \sum_i p_{is}`. It is the rate of the people who belong to the group
    if scores and groups are independent given the probabilities. `fairmatch.audit` also states how
    far the truth may be from it.

    Examples
    --------
    >>> from fairmatch import group_probabilities
    >>> from fairmatch.measures import demographic_parity_gap
    >>> groups = group_probabilities([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]], labels=["a", "b"])
    >>> groups
    <GroupProbabilities of 3 rows: a 50.0%, b 50.0%>
    >>> round(demographic_parity_gap(None, [1, 1, 0], sensitive_features=groups), 3)
    0.533
    """
    columns = named_columns(table, "table")
    names = None if columns is None else tuple(map(str, columns))
    if columns is None:
        array = np.asarray(table)
        if array.ndim != 2:
            raise InputError(
                f"table must have one column per group, got {array.ndim} dimension"
                f"{'s' * (array.ndim != 1)}. Pass a table of probabilities.",
                parameter="table",
            )
        columns = dict(enumerate(array.T))
    names = tuple(labels if labels is not None else names or columns)
    if len(names) != len(columns) or len(names) < 2 or len(set(names)) < len(names):
        raise GroupError(
            f"table has {len(columns)} columns and the groups are {list(names)}. At least two "
            "columns are needed, one for each group, with different names.",
            parameter="table",
        )
    parts = [read_numbers(own, f"table[{name!r}]") for name, own in columns.items()]
    values = np.column_stack(parts)
    return GroupProbabilities(
        values / check_probabilities(values, "table", GroupError)[:, None], names
    )
