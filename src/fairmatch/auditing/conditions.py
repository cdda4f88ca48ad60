"""Conditions on columns, such as "age is above 60", and which rows meet them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmatch.matching.coupling import IndexArray
from fairmatch.tables.arrays import BoolArray
from fairmatch.tables.columns import Column

# A numeric column is cut at its different values, or at this many quantiles if it has more.
_CUTS = 63


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column as small codes, in order if it is numeric. The last code may mean missing."""

    name: str
    codes: NDArray[np.integer[Any]]
    cuts: list[float] | None  # numeric: code k is at most cuts[k]
    levels: list[str | None]  # categorical: what each code means
    median: int  # numeric: position of the cut at the median

    @property
    def n_codes(self) -> int:
        """How many codes there are, including the one for missing values."""
        return len(self.levels) if self.cuts is None else len(self.cuts) + 2

    @cached_property
    def rules(self) -> list[tuple[str, int]]:
        """Every condition on the column, in the order of `Search`."""
        if self.cuts is None:
            return [(operator, code) for operator in ("=", "!=") for code in range(self.n_codes)]
        limits = [(operator, cut) for operator in ("<=", ">") for cut in range(len(self.cuts))]
        return [*limits, ("=", len(self.cuts) + 1)]


@dataclass(frozen=True, order=True)
class Rule:
    """A condition on codes: the column, the operator, and the code to compare with."""

    column: int
    operator: str
    code: int


def code_column(column: Column) -> CodedColumn:
    """Turn a column into codes. A number's code is the position of the first cut not below it."""
    if column.levels is not None:
        levels: list[str | None] = [str(level) for level in column.levels]
        codes = np.where(column.missing, len(levels), column.values)
        codes = codes.astype(np.int16 if len(levels) <= np.iinfo(np.int16).max else np.int32)
        missing = [None] if column.missing.any() else []
        return CodedColumn(column.name, codes, None, [*levels, *missing], 0)
    seen = np.sort(np.asarray(column.values, dtype=np.float64)[~column.missing])
    median = seen[(len(seen) - 1) // 2]
    different = seen[np.append(True, seen[1:] != seen[:-1])]
    if len(different) > _CUTS:
        at = np.linspace(0, len(seen) - 1, _CUTS + 2).astype(np.intp)[1:-1]
        different = np.union1d(seen[at], [median])
    cuts = different[:-1] if different[-1] == seen[-1] else different
    codes = np.searchsorted(cuts, column.values, side="left").astype(np.int16)
    codes[column.missing] = len(cuts) + 1
    return CodedColumn(column.name, codes, cuts.tolist(), [], int(np.searchsorted(cuts, median)))


def holds(rule: Rule, coded: list[CodedColumn], rows: IndexArray | slice) -> BoolArray:
    """Return a mask of the rows that meet a condition."""
    column = coded[rule.column]
    codes = column.codes[rows]
    if rule.operator == "=":
        return np.asarray(codes == rule.code)
    if rule.operator == "!=":
        return np.asarray(codes != rule.code)
    if rule.operator == "<=":
        return np.asarray(codes <= rule.code)
    assert column.cuts is not None
    return np.asarray((codes > rule.code) & (codes <= len(column.cuts)))


def all_hold(
    rules: Iterable[Rule], coded: list[CodedColumn], rows: IndexArray | slice
) -> BoolArray:
    """Return a mask of the rows that meet all conditions."""
    inside = np.ones(len(coded[0].codes[rows]), dtype=bool)
    for rule in rules:
        inside &= holds(rule, coded, rows)
    return inside
