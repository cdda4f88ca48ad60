"""A beam search for subsets, described in words, in which two groups' mean scores differ most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from fairmatch.auditing.groups import Scored
from fairmatch.matching.coupling import IndexArray
from fairmatch.tables.arrays import BoolArray, FloatArray
from fairmatch.tables.columns import Column

# A numeric column is cut at its different values, or at as many quantiles.
_CUTS = 63
_WIDTH = 12
_DEPTH = 3
_LISTED = 20
# A subset is the same find as another if they share this part of their people.
_SAME = 0.7
# Few of the same columns are kept, else one column's cuts would fill every place.
_ALIKE = 3
_PAIR_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column as small numbers, ordered if numeric; the last code may stand for missing."""

    name: str
    codes: NDArray[np.int16]
    cuts: list[float] | None  # numeric: code k is at most cuts[k]
    levels: list[str | None]  # categorical: what each code means
    median: int  # numeric: which cut halves the people

    @property
    def n_codes(self) -> int:
        """How many codes there are, the one for missing values included."""
        return len(self.levels) if self.cuts is None else len(self.cuts) + 2

    @cached_property
    def rules(self) -> list[tuple[str, int]]:
        """Every condition on the column, in the order of `_sums_by_rule`."""
        if self.cuts is None:
            return [(operator, code) for operator in ("=", "!=") for code in range(self.n_codes)]
        limits = [(operator, cut) for operator in ("<=", ">") for cut in range(len(self.cuts))]
        return [*limits, ("=", len(self.cuts) + 1)]


@dataclass(frozen=True, order=True)
class Rule:
    """A condition on codes: their column, the operator, and the code it compares with."""

    column: int
    operator: str
    code: int


@dataclass(frozen=True, order=True)
class Find:
    """A subset that the search looked at; the larger the merit, the worse the gap is for sure."""

    merit: float
    rules: frozenset[Rule] = field(compare=False)
    found_by: str = field(compare=False)


def code_column(column: Column) -> CodedColumn:
    """Turn a column into codes, numbers by the cut they are at most."""
    if column.levels is not None:
        levels: list[str | None] = [str(level) for level in column.levels]
        codes = np.where(column.missing, len(levels), column.values).astype(np.int16)
        return CodedColumn(column.name, codes, None, [*levels, None], 0)
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


def _holds(rule: Rule, coded: list[CodedColumn], rows: IndexArray | slice) -> BoolArray:
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
    """Tell which rows are in the subset in which all rules hold."""
    inside = np.ones(len(coded[0].codes[rows]), dtype=bool)
    for rule in rules:
        inside &= _holds(rule, coded, rows)
    return inside


class Merit:
    """How bad a subset is for sure: its gap, less a margin that its few people leave open.

    The margin takes the spread of scores from the whole table, so that only the number of people
    counts; else the search would add conditions that make scores alike and explain no gap.
    """

    def __init__(self, data: Scored, n_rules: int) -> None:
        parts = [data.scores[data.groups.is_group(code)] for code in (0, 1)]
        variance = sum(part.var() * len(part) for part in parts) / len(data.scores)
        self.spread = float(np.sqrt(max(variance, 1.0 / len(data.scores))))
        # A subset of k conditions is one of about n_rules ** k / k! that could have been found:
        # its gap counts as certain beyond the quantile that Bonferroni asks for.
        tail = (1.0 - data.confidence) / 2.0
        self.quantiles = -ndtri(tail * np.cumprod(np.arange(1, _DEPTH + 1) / n_rules))

    def __call__(self, sums: FloatArray, depth: int) -> FloatArray:
        """Judge subsets by their counts and their sums of scores, per group."""
        counts, means = sums[..., :2], sums[..., 2:4] / sums[..., :2]
        margin = self.spread * np.sqrt((1.0 / counts).sum(axis=-1))
        merit: FloatArray = (
            np.abs(means[..., 1] - means[..., 0]) - self.quantiles[depth - 1] * margin
        )
        return merit


class Search:
    """A beam search for the conjunction of conditions with the worst gap that is certain."""

    def __init__(
        self, data: Scored, coded: list[CodedColumn], rows: IndexArray, min_rows: int, merit: Merit
    ) -> None:
        self.coded = coded
        self.rows = rows
        self.min_rows = min_rows
        self.merit = merit
        self.n_examined = 0
        self.scores = data.scores[rows]
        self.group = data.groups.codes[rows].astype(np.int64)
        self.codes = [column.codes[rows].astype(np.int64) for column in coded]
        total = sums_of(self.scores, self.group)
        self.overall = float(total[3] / total[1] - total[2] / total[0])
        self.extended: dict[frozenset[Rule], list[Find]] = {}

    def run(self) -> list[Find]:
        """Search, and list the finds, the worst first and each only once."""
        pool = self._extend(frozenset())
        pool += self._pairs([rule for find in pool for rule in find.rules])
        beam = _best(pool, _WIDTH)
        for _ in range(_DEPTH - 1):
            longer = [new for find in beam for new in self._extend(find.rules)]
            pool += longer
            beam = _best([*beam, *longer], _WIDTH)
        beam = [self._localise(self._polish(find)) for find in beam]
        return self._distinct([*sorted(beam, reverse=True), *_best(pool, 20 * _LISTED)])

    def _judge(self, sums: FloatArray, depth: int) -> FloatArray:
        enough = sums[:, :2].min(axis=1) >= self.min_rows
        self.n_examined += int(enough.sum())
        merit = np.full(len(sums), -np.inf)
        merit[enough] = self.merit(sums[enough], min(depth, _DEPTH))
        return merit

    def _extend(self, rules: frozenset[Rule]) -> list[Find]:
        """Look at every subset that one more condition makes."""
        if rules in self.extended:
            return self.extended[rules]
        inside = np.flatnonzero(all_hold(rules, self.coded, self.rows))
        group, scores = self.group[inside], self.scores[inside]
        finds = []
        for at, column in enumerate(self.coded):
            sums = _sums_by_rule(column, self.codes[at][inside], group, scores)
            merit = self._judge(sums, len(rules) + 1)
            # Of a longer rule the best few are enough: the rest of a column are its neighbours.
            for k in np.argsort(-merit)[: _WIDTH if rules else None].tolist():
                rule = Rule(at, *column.rules[k])
                joined = _join(rules, rule)
                if merit[k] > -np.inf and len(joined) <= _DEPTH and joined != rules:
                    kind = "search" if rules else self._kind(rule)
                    finds.append(Find(float(merit[k]), joined, kind))
        self.extended[rules] = finds
        return finds

    def _kind(self, rule: Rule) -> str:
        column = self.coded[rule.column]
        if rule.operator in ("=", "!="):
            return "level"
        return "split" if rule.code == column.median else "search"

    def _pairs(self, rules: list[Rule]) -> list[Find]:
        """Look at every pair of levels and median splits, by four matrix products."""
        rules = [rule for rule in rules if self._kind(rule) != "search"]
        if len(rules) < 2:
            return []
        sums = np.zeros((4, len(rules), len(rules)))
        for start in range(0, len(self.rows), _PAIR_BLOCK):
            block = slice(start, start + _PAIR_BLOCK)
            held = [_holds(rule, self.coded, self.rows[block]) for rule in rules]
            inside = np.stack(held).astype(np.float32)
            scores = self.scores[block].astype(np.float32)
            for code in (0, 1):
                ours = (self.group[block] == code).astype(np.float32)
                sums[code] += (inside * ours) @ inside.T
                sums[2 + code] += (inside * (ours * scores)) @ inside.T
        first, second = np.triu_indices(len(rules), k=1)
        columns = np.array([rule.column for rule in rules])
        apart = columns[first] != columns[second]
        first, second = first[apart], second[apart]
        merit = self._judge(sums[:, first, second].T, 2)
        order = np.argsort(-merit)[: 20 * _LISTED].tolist()
        return [
            Find(float(merit[k]), frozenset((rules[first[k]], rules[second[k]])), "pair")
            for k in order
            if merit[k] > -np.inf
        ]

    def _polish(self, find: Find) -> Find:
        """Exchange one condition at a time, as long as that helps; leave out what does not."""
        for _ in range(2 * _DEPTH):
            better = find
            for rule in find.rules:
                rest = find.rules - {rule}
                better = max([better, *self._extend(rest), *self._alone(rest)])
            if better.merit <= find.merit:
                break
            find = better
        return find

    def _localise(self, find: Find) -> Find:
        """Move each limit to where the gap begins.

        Near the best limit the merit is flat, and chance decides. The limit that sets the subset
        apart most clearly, by the gap beyond that of everybody in standard errors, is found
        sharply; it is taken if it costs no more than one standard error of merit.
        """
        for rule in sorted(find.rules):
            column, rest = self.coded[rule.column], find.rules - {rule}
            inside = np.flatnonzero(all_hold(rest, self.coded, self.rows))
            codes = self.codes[rule.column][inside]
            sums = _sums_by_rule(column, codes, self.group[inside], self.scores[inside])
            merit = self._judge(sums, len(find.rules))
            same = np.array([operator == rule.operator for operator, _ in column.rules])
            at = np.flatnonzero(same & (merit > -np.inf))
            if rule.operator not in ("<=", ">") or len(at) == 0:
                continue
            error = self.merit.spread * np.sqrt((1.0 / sums[at, :2]).sum(axis=1))
            gaps = sums[at, 3] / sums[at, 1] - sums[at, 2] / sums[at, 0]
            best = int(np.argmax(np.abs(gaps - self.overall) / error))
            if merit[at[best]] >= find.merit - error[best]:
                rules = rest | {Rule(rule.column, *column.rules[at[best]])}
                find = Find(float(merit[at[best]]), rules, find.found_by)
        return find

    def _alone(self, rules: frozenset[Rule]) -> list[Find]:
        if not rules:
            return []
        inside = all_hold(rules, self.coded, self.rows)
        sums = sums_of(self.scores[inside], self.group[inside])
        merit = float(self._judge(sums[None, :], len(rules))[0])
        return [Find(merit, rules, "search")] if merit > -np.inf else []

    def _distinct(self, pool: list[Find]) -> list[Find]:
        kept: list[Find] = []
        masks: list[BoolArray] = []
        for find in pool:
            mask = all_hold(find.rules, self.coded, self.rows)
            if any((mask & m).sum() > _SAME * (mask | m).sum() for m in masks):
                continue
            kept.append(find)
            masks.append(mask)
            if len(kept) == _LISTED:
                break
        return kept


def _best(pool: list[Find], n_finds: int) -> list[Find]:
    """Keep the worst subsets, but few with the same columns, which are much the same subset."""
    found: dict[frozenset[Rule], Find] = {}
    uses: Counter[frozenset[int]] = Counter()
    for find in sorted(pool, reverse=True):
        columns = frozenset(rule.column for rule in find.rules)
        if find.rules in found or uses[columns] == _ALIKE:
            continue
        uses[columns] += 1
        found[find.rules] = find
        if len(found) == n_finds:
            break
    return list(found.values())


def _sums_by_rule(
    column: CodedColumn, codes: NDArray[np.int64], group: NDArray[np.int64], scores: FloatArray
) -> FloatArray:
    """Count people and sum scores, per group, for every condition on a column."""
    cells, size = 2 * codes + group, 2 * column.n_codes
    each = np.concatenate(
        [np.bincount(cells, w, minlength=size).reshape(-1, 2) for w in (None, scores)], axis=1
    )
    if column.cuts is None:
        return np.concatenate([each, each.sum(axis=0) - each])
    upto = np.cumsum(each[:-1], axis=0)
    return np.concatenate([upto[:-1], upto[-1] - upto[:-1], each[-1:]])


def _join(rules: frozenset[Rule], new: Rule) -> frozenset[Rule]:
    """Add a condition; of two limits on the same side of one column the new one is tighter."""
    same = [r for r in rules if r.column == new.column and r.operator == new.operator]
    return (rules - set(same) if new.operator in ("<=", ">") else rules) | {new}


def sums_of(scores: FloatArray, group: NDArray[np.integer]) -> FloatArray:
    """Count people, and sum scores and their squares, per group."""
    return np.concatenate(
        [np.bincount(group, w, minlength=2) for w in (None, scores, scores * scores)]
    ).astype(np.float64)
