"""Where a model treats the groups differently: a search among subsets that words can describe.

Who looks at many subsets finds a large gap in one of them by chance. So the rows are split at
random: subsets are chosen on one part, and their gaps are taken on the other, which played no part
in the choice. What is stated there needs a correction only for the few subsets that are listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from fairmatch.columns import Column
from fairmatch.coupling import IndexArray
from fairmatch.facts import Condition, Estimate, HalfSpaces, SubsetGap, SubsetScan
from fairmatch.groupfacts import Scored
from fairmatch.inputs import BoolArray, FloatArray
from fairmatch.intervals import fold
from fairmatch.measures import random_subset_gaps

# A numeric column is cut at its different values, or at as many quantiles.
_CUTS = 63
_WIDTH = 12
_DEPTH = 3
_LISTED = 20
# The search looks at no more rows than these; the gaps of what it finds are taken on all others.
_SEARCH_ROWS = 50_000
HALF_SPACE_ROWS = 50_000
# A subset is the same find as another if they share this part of their people.
_SAME = 0.7
# Few of the same columns are kept, else one column's cuts would fill every place.
_ALIKE = 3
_PAIR_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class _Coded:
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
class _Rule:
    """A condition on codes: their column, the operator, and the code it compares with."""

    column: int
    operator: str
    code: int


@dataclass(frozen=True, order=True)
class _Find:
    """A subset that the search looked at; the larger the merit, the worse the gap is for sure."""

    merit: float
    rules: frozenset[_Rule] = field(compare=False)
    found_by: str = field(compare=False)


def scan_subsets(
    data: Scored,
    columns: list[Column],
    half_space_rows: IndexArray,
    half_space_features: FloatArray,
    *,
    n_subsets: int,
) -> SubsetScan:
    """Look for subsets in which the groups' mean scores differ most.

    Parameters
    ----------
    data : Scored
        Scores and groups.
    columns : list of Column
        What describes the people.
    half_space_rows : array of int
        Rows on which random half-spaces are looked at.
    half_space_features : array of shape (len(half_space_rows), n_features)
        Their encoded features.
    n_subsets : int
        Number of random half-spaces.
    """
    half_spaces = _half_spaces(data, half_space_rows, half_space_features, n_subsets)
    n_rows = len(data.scores)
    order = data.generator(3).permutation(n_rows)
    n_search = min(n_rows // 2, _SEARCH_ROWS)
    search, confirm = np.sort(order[:n_search]), np.sort(order[n_search:])
    sizes = np.bincount(data.groups.codes[search], minlength=2)
    min_rows = max(data.min_group_size, int(np.ceil(0.01 * sizes.min())))
    coded = [_code(column) for column in columns]
    merit = _Merit(data, sum(len(column.rules) for column in coded))
    refused = []
    finds: list[_Find] = []
    n_examined = 0
    if data.rows_refused or sizes.min() < min_rows:
        small = data.labels[int(np.argmin(sizes))]
        refused.append(
            f"Subsets were not searched: group {small!r} has {sizes.min()} rows among those "
            f"searched, fewer than {min_rows}."
        )
    else:
        seeker = _Search(data, coded, search, min_rows, merit)
        finds = seeker.run()
        n_examined = seeker.n_examined
    return SubsetScan(
        subsets=_state(data, coded, finds, confirm, merit),
        n_examined=n_examined,
        min_rows=min_rows,
        n_search=len(search),
        n_confirm=len(confirm),
        half_spaces=half_spaces,
        refused=tuple(refused),
    )


def _half_spaces(
    data: Scored, rows: IndexArray, features: FloatArray, n_subsets: int
) -> HalfSpaces:
    codes = data.groups.codes[rows]
    if len(np.unique(codes)) < 2:
        return HalfSpaces((), n_subsets, (), len(rows))
    shuffled = data.generator(4).permutation(codes)
    gaps, noise = (
        random_subset_gaps(
            None,
            data.scores[rows],
            sensitive_features=groups,
            X=features,
            n_subsets=n_subsets,
            random_state=data.generator(5),
        )
        for groups in (codes, shuffled)
    )
    kept, chance = gaps[~np.isnan(gaps)], noise[~np.isnan(noise)]
    return HalfSpaces(
        gaps=tuple(kept.tolist()),
        n_empty=len(gaps) - len(kept),
        noise=tuple(chance.tolist()),
        n_rows=len(rows),
    )


def _code(column: Column) -> _Coded:
    if column.levels is not None:
        levels: list[str | None] = [str(level) for level in column.levels]
        codes = np.where(column.missing, len(levels), column.values).astype(np.int16)
        return _Coded(column.name, codes, None, [*levels, None], 0)
    seen = np.sort(np.asarray(column.values, dtype=np.float64)[~column.missing])
    median = seen[(len(seen) - 1) // 2]
    different = seen[np.append(True, seen[1:] != seen[:-1])]
    if len(different) > _CUTS:
        at = np.linspace(0, len(seen) - 1, _CUTS + 2).astype(np.intp)[1:-1]
        different = np.union1d(seen[at], [median])
    cuts = different[:-1] if different[-1] == seen[-1] else different
    codes = np.searchsorted(cuts, column.values, side="left").astype(np.int16)
    codes[column.missing] = len(cuts) + 1
    return _Coded(column.name, codes, cuts.tolist(), [], int(np.searchsorted(cuts, median)))


def _holds(rule: _Rule, coded: list[_Coded], rows: IndexArray | slice) -> BoolArray:
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


def _all_hold(rules: Iterable[_Rule], coded: list[_Coded], rows: IndexArray | slice) -> BoolArray:
    inside = np.ones(len(coded[0].codes[rows]), dtype=bool)
    for rule in rules:
        inside &= _holds(rule, coded, rows)
    return inside


class _Merit:
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


class _Search:
    """A beam search for the conjunction of conditions with the worst gap that is certain."""

    def __init__(
        self, data: Scored, coded: list[_Coded], rows: IndexArray, min_rows: int, merit: _Merit
    ) -> None:
        self.coded = coded
        self.rows = rows
        self.min_rows = min_rows
        self.merit = merit
        self.n_examined = 0
        self.scores = data.scores[rows]
        self.group = data.groups.codes[rows].astype(np.int64)
        self.codes = [column.codes[rows].astype(np.int64) for column in coded]
        total = _sums_of(self.scores, self.group)
        self.overall = float(total[3] / total[1] - total[2] / total[0])
        self.extended: dict[frozenset[_Rule], list[_Find]] = {}

    def run(self) -> list[_Find]:
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

    def _extend(self, rules: frozenset[_Rule]) -> list[_Find]:
        """Look at every subset that one more condition makes."""
        if rules in self.extended:
            return self.extended[rules]
        inside = np.flatnonzero(_all_hold(rules, self.coded, self.rows))
        group, scores = self.group[inside], self.scores[inside]
        finds = []
        for at, column in enumerate(self.coded):
            sums = _sums_by_rule(column, self.codes[at][inside], group, scores)
            merit = self._judge(sums, len(rules) + 1)
            # Of a longer rule the best few are enough: the rest of a column are its neighbours.
            for k in np.argsort(-merit)[: _WIDTH if rules else None].tolist():
                rule = _Rule(at, *column.rules[k])
                joined = _join(rules, rule)
                if merit[k] > -np.inf and len(joined) <= _DEPTH and joined != rules:
                    kind = "search" if rules else self._kind(rule)
                    finds.append(_Find(float(merit[k]), joined, kind))
        self.extended[rules] = finds
        return finds

    def _kind(self, rule: _Rule) -> str:
        column = self.coded[rule.column]
        if rule.operator in ("=", "!="):
            return "level"
        return "split" if rule.code == column.median else "search"

    def _pairs(self, rules: list[_Rule]) -> list[_Find]:
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
            _Find(float(merit[k]), frozenset((rules[first[k]], rules[second[k]])), "pair")
            for k in order
            if merit[k] > -np.inf
        ]

    def _polish(self, find: _Find) -> _Find:
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

    def _localise(self, find: _Find) -> _Find:
        """Move each limit to where the gap begins.

        Near the best limit the merit is flat, and chance decides. The limit that sets the subset
        apart most clearly, by the gap beyond that of everybody in standard errors, is found
        sharply; it is taken if it costs no more than one standard error of merit.
        """
        for rule in sorted(find.rules):
            column, rest = self.coded[rule.column], find.rules - {rule}
            inside = np.flatnonzero(_all_hold(rest, self.coded, self.rows))
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
                rules = rest | {_Rule(rule.column, *column.rules[at[best]])}
                find = _Find(float(merit[at[best]]), rules, find.found_by)
        return find

    def _alone(self, rules: frozenset[_Rule]) -> list[_Find]:
        if not rules:
            return []
        inside = _all_hold(rules, self.coded, self.rows)
        sums = _sums_of(self.scores[inside], self.group[inside])
        merit = float(self._judge(sums[None, :], len(rules))[0])
        return [_Find(merit, rules, "search")] if merit > -np.inf else []

    def _distinct(self, pool: list[_Find]) -> list[_Find]:
        kept: list[_Find] = []
        masks: list[BoolArray] = []
        for find in pool:
            mask = _all_hold(find.rules, self.coded, self.rows)
            if any((mask & m).sum() > _SAME * (mask | m).sum() for m in masks):
                continue
            kept.append(find)
            masks.append(mask)
            if len(kept) == _LISTED:
                break
        return kept


def _best(pool: list[_Find], n_finds: int) -> list[_Find]:
    """Keep the worst subsets, but few with the same columns, which are much the same subset."""
    found: dict[frozenset[_Rule], _Find] = {}
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
    column: _Coded, codes: NDArray[np.int64], group: NDArray[np.int64], scores: FloatArray
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


def _join(rules: frozenset[_Rule], new: _Rule) -> frozenset[_Rule]:
    """Add a condition; of two limits on the same side of one column the new one is tighter."""
    same = [r for r in rules if r.column == new.column and r.operator == new.operator]
    return (rules - set(same) if new.operator in ("<=", ">") else rules) | {new}


def _sums_of(scores: FloatArray, group: NDArray[np.integer]) -> FloatArray:
    return np.concatenate(
        [np.bincount(group, w, minlength=2) for w in (None, scores, scores * scores)]
    ).astype(np.float64)


def _differences(sums: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Difference of mean scores, its standard error, and Welch's degrees of freedom."""
    counts, means = sums[:, :2], sums[:, 2:4] / sums[:, :2]
    variances = np.maximum(sums[:, 4:] / counts - means**2, 0.0) * counts / (counts - 1.0)
    # Equal scores of a few people do not prove that all such people score the same; one success
    # and one failure more would leave a variance of about one over the count.
    parts = np.maximum(variances, np.minimum(1.0 / counts, 0.25)) / counts
    freedom = parts.sum(axis=1) ** 2 / (parts**2 / (counts - 1.0)).sum(axis=1)
    return means[:, 1] - means[:, 0], np.sqrt(parts.sum(axis=1)), freedom


def _state(
    data: Scored, coded: list[_Coded], finds: list[_Find], confirm: IndexArray, merit: _Merit
) -> tuple[SubsetGap, ...]:
    """Take the gaps of the finds on rows that the search has not seen, the worst first."""
    tail = (1.0 - data.confidence) / (2 * max(len(finds), 1))
    scores, group = data.scores[confirm], data.groups.codes[confirm].astype(np.int64)
    stated = []
    for find in finds:
        everybody = _all_hold(find.rules, coded, slice(None))
        total = _sums_of(data.scores[everybody], data.groups.codes[everybody].astype(np.int64))
        signed = float(total[3] / total[1] - total[2] / total[0])
        inside = everybody[confirm]
        sums = _sums_of(scores[inside], group[inside])
        conditions = tuple(_condition(rule, coded) for rule in sorted(find.rules))
        subset = SubsetGap(
            description=" and ".join(map(str, conditions)),
            conditions=conditions,
            n_rows=(int(total[0]), int(total[1])),
            gap=abs(signed),
            signed=signed,
            confirmed=_confirmed(sums, tail, data),
            found_by=find.found_by,
        )
        known = subset.confirmed.value is not None
        stated.append((float(merit(sums, len(find.rules))) if known else -np.inf, subset))
    return tuple(subset for _, subset in sorted(stated, key=lambda pair: -pair[0]))


def _confirmed(sums: FloatArray, tail: float, data: Scored) -> Estimate:
    for code in (0, 1):
        if sums[code] < data.min_group_size:
            return Estimate(
                None,
                refused=f"Group {data.labels[code]!r} has {int(sums[code])} rows of this subset "
                "among those kept for confirming it: too few for a statement.",
            )
    difference, error, freedom = (float(part[0]) for part in _differences(sums[None, :]))
    half = -float(stdtrit(freedom, tail)) * error
    low, high = fold((difference - half, difference + half))
    return Estimate(abs(difference), low, min(high, 1.0))


def _condition(rule: _Rule, coded: list[_Coded]) -> Condition:
    column = coded[rule.column]
    if column.cuts is None:
        return Condition(column.name, rule.operator, column.levels[rule.code])
    value = None if rule.operator in ("=", "!=") else column.cuts[rule.code]
    return Condition(column.name, rule.operator, value)
