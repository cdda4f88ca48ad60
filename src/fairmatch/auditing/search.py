"""A beam search for describable subsets in which the groups' mean scores differ most."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from fairmatch.auditing.conditions import CodedColumn, Rule, all_hold, holds
from fairmatch.auditing.scored import Scored
from fairmatch.auditing.sums import GroupSums, sums_of
from fairmatch.matching.coupling import IndexArray
from fairmatch.tables.arrays import BoolArray, FloatArray

_WIDTH = 12
_DEPTH = 3
_LISTED = 20
# Two subsets count as the same find if they share more than this part of their people.
_SAME = 0.7
# A subset with more than this part of the people adds nothing to the gap over everybody.
_EVERYBODY = 0.95
# At most this many subsets on the same columns are kept. Otherwise the cuts of one column would
# fill every place.
_ALIKE = 3
_PAIR_BLOCK = 4096

IntArray = NDArray[np.int64]


@dataclass(frozen=True, order=True)
class Find:
    """A subset that the search examined. A larger merit means a larger gap that is certain."""

    merit: float
    rules: frozenset[Rule] = field(compare=False)
    found_by: str = field(compare=False)
    pair: int = field(compare=False)  # in the order of `GroupSums.pairs`


class Merit:
    """The part of a subset's gap that is certain: the gap less a margin for few people.

    The margin uses the spread of scores in the whole table, so it depends only on the number of
    people. Otherwise the search would add conditions that make scores alike but explain no gap.
    """

    def __init__(self, data: Scored, n_rules: int) -> None:
        parts = []
        for code in data.compared:
            rows = data.groups.rows(code)
            parts.append((data.scores[rows], data.weights.take(rows)))
        n_people = sum(weights.size for _, weights in parts)
        variance = 0.0
        for scores, weights in parts:
            mean = np.average(scores, weights=weights.values)
            spread = np.average((scores - mean) ** 2, weights=weights.values)
            variance += float(spread) * weights.size / n_people
        self.spread = float(np.sqrt(max(variance, 1.0 / n_people)))
        # A subset of k conditions is one of about n_rules ** k / k! that could have been found, for
        # each pair of groups. Bonferroni's correction for so many subsets sets the quantile.
        tail = (1.0 - data.pair_confidence) / 2.0
        self.quantiles = -ndtri(tail * np.cumprod(np.arange(1, _DEPTH + 1) / n_rules))

    def __call__(self, sums: GroupSums, depth: int) -> FloatArray:
        """Return the merit of subsets. The last axis holds the pairs of groups."""
        margin = self.spread * sums.root_counts()
        merit: FloatArray = np.abs(sums.differences()) - self.quantiles[depth - 1] * margin
        return merit


class Search:
    """A beam search for the combination of conditions whose certain gap is largest."""

    def __init__(
        self,
        data: Scored,
        coded: list[CodedColumn],
        rows: IndexArray,
        weights: FloatArray | None,
        min_rows: int,
        merit: Merit,
    ) -> None:
        self.coded = coded
        self.rows = rows
        self.min_rows = min_rows
        self.merit = merit
        self.n_examined = 0
        self.scores = data.scores[rows]
        self.weights = np.ones(len(rows)) if weights is None else weights
        self.weighted = self.scores * self.weights
        self.group, self.n_groups = data.place[rows], len(data.compared)
        self.codes = [column.codes[rows].astype(np.int64) for column in coded]
        self.overall = self._sums_of(slice(None)).differences()
        self.extended: dict[frozenset[Rule], list[Find]] = {}

    def _sums_of(self, inside: BoolArray | slice) -> GroupSums:
        return sums_of(self.scores[inside], self.group[inside], self.n_groups, self.weights[inside])

    def run(self) -> list[Find]:
        """Search, and return distinct finds. The polished ones come first, then the others."""
        pool = self._extend(frozenset())
        pool += self._pairs([rule for find in pool for rule in find.rules])
        beam = _best(pool, _WIDTH)
        for _ in range(_DEPTH - 1):
            longer = [new for find in beam for new in self._extend(find.rules)]
            pool += longer
            beam = _best([*beam, *longer], _WIDTH)
        beam = [self._localise(self._polish(find)) for find in beam]
        return self._distinct([*sorted(beam, reverse=True), *_best(pool, 20 * _LISTED)])

    def _judge(self, sums: GroupSums, depth: int) -> tuple[FloatArray, IndexArray]:
        """Return the merit of each subset, and the pair of groups with the largest merit."""
        enough = sums.smaller() >= self.min_rows
        stated = np.flatnonzero(enough.any(axis=1))
        self.n_examined += len(stated)
        merit, pair = np.full(len(sums), -np.inf), np.zeros(len(sums), dtype=np.intp)
        judged = np.where(enough[stated], self.merit(sums[stated], min(depth, _DEPTH)), -np.inf)
        pair[stated] = np.argmax(judged, axis=1)
        merit[stated] = judged.max(axis=1)
        return merit, pair

    def _extend(self, rules: frozenset[Rule]) -> list[Find]:
        """Examine every subset that one more condition makes."""
        if rules in self.extended:
            return self.extended[rules]
        inside = np.flatnonzero(all_hold(rules, self.coded, self.rows))
        finds = []
        people = self._people(inside)
        n_inside = people[1].sum()
        for at, column in enumerate(self.coded):
            sums = self._sums_by_rule(column, self.codes[at][inside], people)
            merit, pair = self._judge(sums, len(rules) + 1)
            merit[_leaves_nobody_out(sums, n_inside)] = -np.inf
            # For a longer rule the best few are enough. The others in a column are neighbours.
            for k in np.argsort(-merit)[: _WIDTH if rules else None].tolist():
                rule = Rule(at, *column.rules[k])
                joined = _join(rules, rule)
                if merit[k] > -np.inf and len(joined) <= _DEPTH and joined != rules:
                    kind = "search" if rules else self._kind(rule)
                    finds.append(Find(float(merit[k]), joined, kind, int(pair[k])))
        self.extended[rules] = finds
        return finds

    def _kind(self, rule: Rule) -> str:
        column = self.coded[rule.column]
        if rule.operator in ("=", "!="):
            return "level"
        return "split" if rule.code == column.median else "search"

    def _pairs(self, rules: list[Rule]) -> list[Find]:
        """Examine every pair of levels and median splits, by matrix products for each group."""
        rules = [rule for rule in rules if self._kind(rule) != "search"]
        if len(rules) < 2:
            return []
        counts, totals = np.zeros((2, len(rules), len(rules), self.n_groups))
        for start in range(0, len(self.rows), _PAIR_BLOCK):
            block = slice(start, start + _PAIR_BLOCK)
            held = [holds(rule, self.coded, self.rows[block]) for rule in rules]
            everybody = np.stack(held).astype(np.float32)
            weights, scores = (
                values[block].astype(np.float32) for values in (self.weights, self.weighted)
            )
            for code in range(self.n_groups):
                ours = np.flatnonzero(self.group[block] == code)
                inside = everybody[:, ours]
                counts[..., code] += (inside * weights[ours]) @ inside.T
                totals[..., code] += (inside * scores[ours]) @ inside.T
        first, second = np.triu_indices(len(rules), k=1)
        columns = np.array([rule.column for rule in rules])
        apart = columns[first] != columns[second]
        first, second = first[apart], second[apart]
        sums = GroupSums(counts[first, second], totals[first, second])
        merit, pair = self._judge(sums, 2)
        each = counts.sum(axis=2).diagonal()
        merit[_leaves_nobody_out(sums, np.minimum(each[first], each[second]))] = -np.inf
        order = np.argsort(-merit)[: 20 * _LISTED].tolist()
        return [
            Find(float(merit[k]), frozenset((rules[first[k]], rules[second[k]])), "pair", at)
            for k, at in zip(order, pair[order].tolist(), strict=True)
            if merit[k] > -np.inf
        ]

    def _polish(self, find: Find) -> Find:
        """Exchange or drop one condition at a time, as long as the merit grows."""
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

        Near the best limit the merit is flat, and chance decides between limits. Another criterion
        has a sharp peak: the gap beyond that of everybody, in standard errors. The limit at this
        peak is taken if it costs no more than one standard error of merit.
        """
        for rule in sorted(find.rules):
            column, rest = self.coded[rule.column], find.rules - {rule}
            inside = np.flatnonzero(all_hold(rest, self.coded, self.rows))
            codes = self.codes[rule.column][inside]
            sums = self._sums_by_rule(column, codes, self._people(inside)).pair(find.pair)
            merit, _ = self._judge(sums, len(find.rules))
            same = np.array([operator == rule.operator for operator, _ in column.rules])
            at = np.flatnonzero(same & (merit > -np.inf))
            if rule.operator not in ("<=", ">") or len(at) == 0:
                continue
            error = self.merit.spread * sums[at].root_counts()[:, 0]
            beyond = sums[at].differences()[:, 0] - self.overall[find.pair]
            best = int(np.argmax(np.abs(beyond) / error))
            if merit[at[best]] >= find.merit - error[best]:
                rules = rest | {Rule(rule.column, *column.rules[at[best]])}
                find = replace(find, merit=float(merit[at[best]]), rules=rules)
        return find

    def _alone(self, rules: frozenset[Rule]) -> list[Find]:
        if not rules:
            return []
        inside = all_hold(rules, self.coded, self.rows)
        merit, pair = self._judge(self._sums_of(inside)[None, :], len(rules))
        return [Find(float(merit[0]), rules, "search", int(pair[0]))] if merit[0] > -np.inf else []

    def _people(self, inside: IndexArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the groups, the weights and the weighted scores of some people."""
        return self.group[inside], self.weights[inside], self.weighted[inside]

    def _sums_by_rule(
        self,
        column: CodedColumn,
        codes: IntArray,
        people: tuple[IntArray, FloatArray, FloatArray],
    ) -> GroupSums:
        """Count people and sum scores, per group, for every condition on a column."""
        group, weights, weighted = people
        cells, n = self.n_groups * codes + group, self.n_groups
        counts, sums = (
            np.bincount(cells, w, minlength=n * column.n_codes).astype(np.float64).reshape(-1, n)
            for w in (weights, weighted)
        )
        each = GroupSums(counts, sums)
        if column.cuts is None:
            total = GroupSums(each.counts.sum(axis=0), each.scores.sum(axis=0))
            return GroupSums.joined([each, total - each])
        known = each[:-1]
        upto = GroupSums(np.cumsum(known.counts, axis=0), np.cumsum(known.scores, axis=0))
        return GroupSums.joined([upto[:-1], upto[-1] - upto[:-1], each[-1:]])

    def _distinct(self, pool: list[Find]) -> list[Find]:
        kept: list[Find] = []
        masks: list[BoolArray] = []
        for find in pool:
            mask = all_hold(find.rules, self.coded, self.rows)
            if mask.sum() > _EVERYBODY * len(mask):
                continue
            if any((mask & m).sum() > _SAME * (mask | m).sum() for m in masks):
                continue
            kept.append(find)
            masks.append(mask)
            if len(kept) == _LISTED:
                break
        return kept


def _leaves_nobody_out(sums: GroupSums, n_before: FloatArray | float) -> BoolArray:
    """Return which conditions hold for everybody in the subset, and so add nothing."""
    return np.asarray(sums.counts.sum(axis=-1) >= n_before * (1.0 - 1e-6))


def _best(pool: list[Find], n_finds: int) -> list[Find]:
    """Return the worst subsets, but only a few on the same columns, which are much alike."""
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


def _join(rules: frozenset[Rule], new: Rule) -> frozenset[Rule]:
    """Add a condition. It replaces a limit on the same side of its column, which is looser."""
    same = [r for r in rules if r.column == new.column and r.operator == new.operator]
    return (rules - set(same) if new.operator in ("<=", ">") else rules) | {new}
