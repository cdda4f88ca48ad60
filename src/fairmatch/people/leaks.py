"""Columns that reveal the protected group: copies of it, and near copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from fairmatch.people.checks import check_length, plain_value
from fairmatch.people.columns import Column, find_levels
from fairmatch.people.encoding import as_table
from fairmatch.people.groups import Groups, attribute_columns, read_codes

NEAR_COPY = 0.9
"""Agreement beyond chance from which a column is called a near copy of the group."""

# Many different numbers are sorted into classes, to find copies with added noise too.
_FEW_VALUES = 32
_MOST_VALUES = 256
_CLASS_SIZE = 8
# How much there must be to know about the groups, in nats, before a column counts as a leak. About
# thirty rows of two equal groups suffice. In fewer rows a column may match the groups by accident.
_EVIDENCE = 20.0
_MOST_ROWS = 200_000

Attribute: TypeAlias = tuple[str | None, npt.NDArray[np.intp], tuple[Any, ...]]


@dataclass(frozen=True)
class Leak:
    """A column that reveals the group.

    Examples
    --------
    >>> from fairmatch.people.leaks import Leak
    >>> Leak("race_code", "determines", None, None, 1.0).words
    "column 'race_code' determines the group"
    """

    column: str  #: The column.
    #: One of "copy", "determines", "near". ``"copy"`` if it holds the names of the groups,
    #: ``"determines"`` if it determines the group in every row, and ``"near"`` if it does so in
    #: nearly every row.
    kind: Literal["copy", "determines", "near"]
    attribute: str | None  #: The attribute that it gives away, if there are several.
    #: The one group that it separates from all others. It is None if it separates all groups.
    group: Any
    agreement: float  #: Agreement with the group beyond chance, from 0 to 1.

    @property
    def is_exact(self) -> bool:
        """Whether the column shows the group in every row."""
        return self.kind != "near"

    @property
    def words(self) -> str:
        """A description of the leak."""
        what = "the group" if self.attribute is None else repr(self.attribute)
        if self.group is not None:
            what += f" {self.group!r}"
        verb = {"copy": "is", "determines": "determines", "near": "nearly determines"}[self.kind]
        share = f" ({self.agreement:.1%} beyond chance)" if self.kind == "near" else ""
        return f"column {self.column!r} {verb} {what}{share}"


def find_leaks(X: Any, sensitive_features: Any) -> list[Leak]:
    r"""Find the columns of a table that reveal the protected group.

    There is at most one `Leak` per column and attribute, in the order of the table. One-hot columns
    are examined one by one, each as a sign of one group. Rows without a group are ignored.

    Notes
    -----
    A row's group is predicted by the majority of the *other* rows with the same value. Let
    :math:`a` be the share of rows that are predicted correctly, and :math:`p` the share of the
    largest group. The agreement beyond chance is :math:`(a - p) / (1 - p)`. A value that occurs in
    one row predicts nothing. So an identifier is not a leak, although it "determines" everything.
    Numbers with many different values are first sorted into at most 256 classes, which hold eight
    rows or more on average. A categorical column is skipped if it has more than 32 levels and more
    levels than half the rows. In a table of more than 200,000 rows, a sample of 100,000 is searched
    first, and then all rows of the columns that it points at.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from fairmatch.people.leaks import find_leaks
    >>> sex = np.array(["f", "m"] * 50)
    >>> X = pd.DataFrame({"id": range(100), "title": np.where(sex == "f", "Ms", "Mr")})
    >>> X["age"] = 30 + X["id"] // 2
    >>> find_leaks(X, sex)
    [Leak(column='title', kind='determines', attribute=None, group=None, agreement=1.0)]
    """
    table = as_table(X)
    attributes = _attributes(sensitive_features)
    for _, codes, _ in attributes:
        check_length(codes, len(table), "sensitive_features")
    if len(table) <= _MOST_ROWS:
        return _search(table.columns, attributes)
    rows = np.sort(np.random.default_rng(0).permutation(len(table))[: _MOST_ROWS // 2])
    few = [(name, codes[rows], labels) for name, codes, labels in attributes]
    suspects = {leak.column for leak in _search(table.take(rows).columns, few)}
    return _search([c for c in table.columns if c.name in suspects], attributes)


def _search(columns: Sequence[Column], attributes: Sequence[Attribute]) -> list[Leak]:
    """Return the columns that reveal an attribute."""
    leaks: list[Leak | None] = []
    for column in columns:
        n_rows = len(column.values)
        if column.levels is not None and len(column.levels) > max(_FEW_VALUES, n_rows / 2):
            continue
        codes, n_values = _classes(column)
        leaks += [_leak(column, codes, n_values, attribute) for attribute in attributes]
    return [leak for leak in leaks if leak is not None]


def _attributes(sensitive_features: Any) -> list[Attribute]:
    """Return the name, the codes and the labels of every attribute. Unknown people have code -1."""
    if isinstance(sensitive_features, Groups):
        names = sensitive_features.attributes or (None,)
        every = sensitive_features.crossed or (sensitive_features,)
        return [
            (name, np.where(np.isin(own.codes, own.apart), -1, own.codes), own.labels)
            for name, own in zip(names, every, strict=True)
        ]
    columns = attribute_columns(sensitive_features, "sensitive_features")
    return [
        (None if name is None else str(name), *read_codes(values, "sensitive_features"))
        for name, values in columns
    ]


def _classes(column: Column) -> tuple[npt.NDArray[np.intp], int]:
    """Return the value or class of every row, and how many there are. Missing is one of them."""
    if column.levels is not None:
        codes, n_values = column.values.astype(np.intp), len(column.levels)
    else:
        codes, values = pd.factorize(np.where(column.missing, np.nan, column.values))
        n_values = len(values)
        n_classes = min(_MOST_VALUES, len(codes) // _CLASS_SIZE)
        if n_values > max(n_classes, _FEW_VALUES):
            edges = np.quantile(values, np.linspace(0, 1, n_classes + 1)[1:-1])
            codes, n_values = np.searchsorted(edges, column.values, side="right"), n_classes
    return np.where(column.missing, n_values, codes), n_values + 1


def _leak(
    column: Column, codes: npt.NDArray[np.intp], n_values: int, attribute: Attribute
) -> Leak | None:
    """Return how a column reveals an attribute, if it does."""
    name, groups, labels = attribute
    n_groups = len(labels)
    if n_groups < 2:
        return None
    known = groups >= 0
    counts = np.bincount(codes[known] * n_groups + groups[known], minlength=n_values * n_groups)
    table = counts.reshape(n_values, n_groups)
    if _is_copy(column, table, labels):
        return Leak(column.name, "copy", name, None, 1.0)
    # First all groups at once, then each group against the others, as in one-hot columns.
    for position in [None, *(range(n_groups) if n_groups > 2 else ())]:
        part = table
        if position is not None:
            part = np.column_stack([table[:, position], table.sum(axis=1) - table[:, position]])
        agreement, is_pure = _agreement(part)
        if agreement >= NEAR_COPY and _evidence(part) >= _EVIDENCE:
            group = None if position is None else plain_value(labels[position])
            told = groups if position is None else np.where(known, groups == position, -1)
            if is_pure or _is_pure_in_order(column, told):
                return Leak(column.name, "determines", name, group, 1.0)
            return Leak(column.name, "near", name, group, agreement)
    return None


def _is_copy(column: Column, table: npt.NDArray[np.intp], labels: tuple[Any, ...]) -> bool:
    """Return whether the values are the names of the groups, in every row."""
    values = column.levels
    if values is None:
        values = pd.Index(pd.unique(column.values[~column.missing]))
        if len(values) > _FEW_VALUES:
            return False
    places = find_levels(labels, values.tolist())
    rows = np.flatnonzero(table.sum(axis=1))
    if len(rows) < 2 or rows[-1] >= len(places) or (places[rows] < 0).any():
        return False
    return bool((table[rows, places[rows]] == table[rows].sum(axis=1)).all())


def _is_pure_in_order(column: Column, groups: npt.NDArray[np.intp]) -> bool:
    """Return whether a few thresholds on a number separate the groups without exception."""
    rows = np.flatnonzero((groups >= 0) & ~column.missing)
    if column.levels is not None or len(np.unique(groups[(groups >= 0) & column.missing])) > 1:
        return False
    rows = rows[np.argsort(column.values[rows], kind="stable")]
    changes = np.diff(groups[rows]) != 0
    ties = np.diff(column.values[rows]) == 0
    return bool(not (changes & ties).any() and changes.sum() * _CLASS_SIZE < len(rows))


def _agreement(table: npt.NDArray[np.intp]) -> tuple[float, bool]:
    """Return the agreement beyond chance, and whether each shared value belongs to one group."""
    total = table.sum()
    chance = table.sum(axis=0).max() / total
    if chance == 1.0:
        return 0.0, False
    ordered = np.sort(table, axis=1)
    best, second = ordered[:, -1], ordered[:, -2]
    # A row's group must lead even without the row itself.
    right = best[best - 1 > second].sum()
    shared = table[table.sum(axis=1) > 1]
    is_pure = bool((shared.max(axis=1) == shared.sum(axis=1)).all())
    return float((right / total - chance) / (1.0 - chance)), is_pure


def _evidence(table: npt.NDArray[np.intp]) -> float:
    """Return how much there is to know about the groups, in nats: rows times entropy."""
    sizes = table.sum(axis=0)
    sizes = sizes[sizes > 0]
    return float(-(sizes * np.log(sizes / sizes.sum())).sum())
