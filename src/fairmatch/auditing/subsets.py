"""Subsets in which a model treats groups differently: found on some rows, confirmed on others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from fairmatch.auditing.facts import Condition, Estimate, HalfSpaces, SubsetGap, SubsetScan
from fairmatch.auditing.people import MANY_GROUPS, Audited
from fairmatch.matching.coupling import IndexArray
from fairmatch.measures.changes import half_space_gaps
from fairmatch.measures.intervals import fold, weighted_mean_difference
from fairmatch.people.checks import BoolArray, FloatArray
from fairmatch.people.columns import Column
from fairmatch.people.weights import Moments, Weights, draw_people

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


@dataclass(frozen=True, order=True, slots=True)
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


_HOLDS = {"=": np.equal, "!=": np.not_equal, "<=": np.less_equal, ">": np.greater}


def holds(rule: Rule, coded: list[CodedColumn], rows: IndexArray | slice) -> BoolArray:
    """Return a mask of the rows that meet a condition."""
    column = coded[rule.column]
    codes = column.codes[rows]
    met = _HOLDS[rule.operator](codes, rule.code)
    if rule.operator == ">" and column.cuts is not None:
        met &= codes <= len(column.cuts)  # the last code means missing
    return np.asarray(met)


def all_hold(
    rules: Iterable[Rule], coded: list[CodedColumn], rows: IndexArray | slice
) -> BoolArray:
    """Return a mask of the rows that meet all conditions."""
    inside = np.ones(len(coded[0].codes[rows]), dtype=bool)
    for rule in rules:
        inside &= holds(rule, coded, rows)
    return inside


# Sums over the people of each group, for any number of subsets at once, are arrays of shape
# (2, …, n_groups): how many people there are, and the sum of their scores.


@cache
def _pairs_of(n_groups: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    first, second = np.triu_indices(n_groups, k=1)
    return first, second


def _both(by_group: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the value of the first and of the second group of every pair, in the last axis."""
    first, second = _pairs_of(by_group.shape[-1])
    return by_group[..., first], by_group[..., second]


def _differences(sums: FloatArray) -> FloatArray:
    """Return the second mean score minus the first for every pair. It is NaN without people."""
    with np.errstate(invalid="ignore", divide="ignore"):
        first, second = _both(sums[1] / sums[0])
    return second - first


def _root_counts(sums: FloatArray) -> FloatArray:
    r"""Return :math:`\sqrt{1/n_0 + 1/n_1}` for every pair."""
    with np.errstate(divide="ignore"):
        first, second = _both(1.0 / sums[0])
    return np.sqrt(first + second)


_WIDTH = 12
# Of a wider table, so many columns are combined with others.
_MOST_COLUMNS = 500
# Pairs are formed of at most this many conditions, so memory does not grow with the square of the
# number of columns.
_MOST_PAIRED = 4000
_DEPTH = 3
_LISTED = 20
# Two subsets count as the same find if they share more than this part of their people.
_SAME = 0.8
# A subset with more than this part of the people adds nothing to the gap over everybody.
_EVERYBODY = 0.95
# At most this many subsets on the same columns are kept. Otherwise the cuts of one column would
# fill every place.
_ALIKE = 3
_PAIR_BLOCK = 4096

IntArray = NDArray[np.int64]
People = tuple[IntArray, FloatArray]  # groups; weights and weighted scores


@dataclass(frozen=True, slots=True)
class Find:
    """A subset that the search examined. A larger merit means a larger gap that is certain."""

    merit: float
    rules: frozenset[Rule]
    pair: int  # in the order of `_pairs_of`


_MERIT = attrgetter("merit")


def _kind(rule: Rule, coded: list[CodedColumn]) -> str:
    if rule.operator in ("=", "!="):
        return "level"
    return "split" if rule.code == coded[rule.column].median else "search"


def _found_by(rules: frozenset[Rule], coded: list[CodedColumn]) -> str:
    """Return the simplest way to find a subset, which does not depend on the order of the rows."""
    kinds = [_kind(rule, coded) for rule in rules]
    if "search" in kinds or len(kinds) > 2 or len({rule.column for rule in rules}) < len(kinds):
        return "search"
    return "pair" if len(kinds) == 2 else kinds[0]


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the people: those that are searched, or those that confirm the finds."""

    rows: IndexArray
    weights: Weights

    @property
    def evidence(self) -> FloatArray:
        """Weights that sum to the effective number of people."""
        evidence = self.weights.evidence
        return np.ones(len(self.rows)) if evidence is None else evidence


def _spread(data: Audited) -> float:
    """Return the standard deviation of scores within the groups."""
    parts = []
    for code in data.compared:
        rows = data.groups.rows(code)
        parts.append((data.shares[rows], data.weights.take(rows)))
    n_people = sum(weights.size for _, weights in parts)
    variance = 0.0
    for scores, weights in parts:
        mean = np.average(scores, weights=weights.values)
        spread = np.average((scores - mean) ** 2, weights=weights.values)
        variance += float(spread) * weights.size / n_people
    return float(np.sqrt(max(variance, 1.0 / n_people)))


class Search:
    """A beam search for the combination of conditions whose certain gap is largest.

    The merit of a subset is the part of its gap that is certain: the gap minus a margin that is
    larger for fewer people. The margin uses the spread of scores in the whole table, so it depends
    only on the number of people. Otherwise the search would add conditions that make scores alike
    but explain no gap. The search takes scores as shares of their range.
    """

    def __init__(self, data: Audited, coded: list[CodedColumn], part: Part, min_rows: int) -> None:
        self.coded, self.rows, self.min_rows, self.n_examined = coded, part.rows, min_rows, 0
        weights = part.evidence
        self.values = np.stack([weights, data.shares[part.rows] * weights])
        self.group, self.n_groups = data.place[part.rows], len(data.compared)
        self.codes = [column.codes[part.rows].astype(np.int64) for column in coded]
        self.overall = _differences(self._sums(self._people(slice(None))))[0]
        self.extended: dict[frozenset[Rule], list[Find]] = {}
        self.is_wide = len(coded) > _MOST_COLUMNS
        self.columns: Sequence[int] = range(len(coded))
        self.spread = _spread(data)
        # A subset of k conditions is one of about n_rules ** k / k! that could have been found, for
        # each pair of groups. Bonferroni's correction for so many subsets sets the quantile.
        tail, n_rules = (1.0 - data.pair_confidence) / 2.0, sum(len(own.rules) for own in coded)
        self.quantiles = -ndtri(tail * np.cumprod(np.arange(1, _DEPTH + 1) / n_rules))

    def _people(self, inside: BoolArray | IndexArray | slice) -> People:
        """Return the groups of some people, and their weights and weighted scores."""
        return self.group[inside], self.values[:, inside]

    def _sums(self, people: People, codes: IntArray | int = 0, n_codes: int = 1) -> FloatArray:
        """Return the sums of the people with each code."""
        group, values = people
        n_cells = n_codes * self.n_groups
        sums = [np.bincount(self.n_groups * codes + group, own, n_cells) for own in values]
        return np.array(sums, dtype=np.float64).reshape(2, n_codes, self.n_groups)

    def _sums_by_rule(self, column: CodedColumn, codes: IntArray, people: People) -> FloatArray:
        """Return the sums of every condition on a column."""
        each = self._sums(people, codes, column.n_codes)
        if column.cuts is None:
            return np.concatenate([each, each.sum(axis=1, keepdims=True) - each], axis=1)
        upto = each[:, :-1].cumsum(axis=1)
        limits = upto[:, :-1], upto[:, -1:] - upto[:, :-1]
        return np.concatenate([*limits, each[:, -1:]], axis=1)

    def run(self) -> list[Find]:
        """Search, and return distinct finds. The polished ones come first, then the others."""
        pool = list(self._extend(frozenset()))
        if self.is_wide:  # further conditions are on the columns that show most by themselves
            best = {find.rules: find for find in sorted(pool, key=_MERIT)[-10 * _MOST_COLUMNS :]}
            shown = dict.fromkeys(rule.column for rules in reversed(best) for rule in rules)
            self.columns = sorted(list(shown)[:_MOST_COLUMNS])
        pool += self._pairs(pool)
        beam = _best(pool, _WIDTH)
        for _ in range(_DEPTH - 1):
            longer = [new for find in beam for new in self._extend(find.rules)]
            pool += longer
            beam = _best([*beam, *longer], _WIDTH)
        beam = [self._localise(self._polish(find)) for find in beam]
        beam.sort(key=_MERIT, reverse=True)
        return self._distinct([*beam, *_best(pool, 20 * _LISTED)])

    def _merits(self, sums: FloatArray, depth: int, pair: int | slice = slice(None)) -> FloatArray:
        """Return the merit of each subset for each pair of groups, or for one pair.

        It is -inf where people are too few.
        """
        pairs = np.atleast_1d(np.arange(len(self.overall))[pair])
        enough = np.minimum(*_both(sums[0]))[:, pairs] >= self.min_rows
        self.n_examined += int(enough.any(axis=1).sum())
        margin = self.quantiles[min(depth, _DEPTH) - 1] * (self.spread * _root_counts(sums))
        merits = np.abs(_differences(sums)) - margin
        merits -= np.abs(self.overall)  # what everybody's gap does not show already
        return np.where(enough, merits[:, pairs], -np.inf)

    def _most(
        self, sums: FloatArray, depth: int, n_before: FloatArray | float
    ) -> tuple[FloatArray, IndexArray]:
        """Return the merit of each subset, and its pair of groups.

        A last condition that holds for everybody who was in the subset before adds nothing.
        """
        merits = self._merits(sums, depth)
        merit = merits.max(axis=1)
        merit[sums[0].sum(axis=-1) >= n_before * (1.0 - 1e-6)] = -np.inf
        return merit, merits.argmax(axis=1)

    def _extend(self, rules: frozenset[Rule]) -> list[Find]:
        """Examine every subset that one more condition makes."""
        if rules in self.extended:
            return self.extended[rules]
        inside = np.flatnonzero(all_hold(rules, self.coded, self.rows))
        finds = []
        people = self._people(inside)
        n_inside = people[1][0].sum()
        for at in self.columns:
            column = self.coded[at]
            sums = self._sums_by_rule(column, self.codes[at][inside], people)
            merit, pair = self._most(sums, len(rules) + 1, n_inside)
            # For a longer rule the best few are enough. The others in a column are neighbours.
            kept = _WIDTH if rules or self.is_wide else None
            for k in np.argsort(-merit)[:kept].tolist():
                rule = Rule(at, *column.rules[k])
                joined = _join(rules, rule)
                if merit[k] > -np.inf and len(joined) <= _DEPTH and joined != rules:
                    finds.append(Find(float(merit[k]), joined, int(pair[k])))
        self.extended[rules] = finds
        return finds

    def _pairs(self, finds: list[Find]) -> list[Find]:
        """Examine every pair of levels and median splits, by matrix products for each group."""
        if len(finds) > _MOST_PAIRED:  # of a very wide table, those with the largest merit
            kept = sorted(range(len(finds)), key=lambda k: -finds[k].merit)[:_MOST_PAIRED]
            finds = [finds[k] for k in sorted(kept)]
        rules = [rule for find in finds for rule in find.rules]
        rules = [rule for rule in rules if _kind(rule, self.coded) != "search"]
        if len(rules) < 2:
            return []
        sums = np.zeros((2, len(rules), len(rules), self.n_groups))
        for start in range(0, len(self.rows), _PAIR_BLOCK):
            block = slice(start, start + _PAIR_BLOCK)
            held = [holds(rule, self.coded, self.rows[block]) for rule in rules]
            everybody = np.stack(held).astype(np.float32)
            values = self.values[:, block].astype(np.float32)
            for code in range(self.n_groups):
                ours = np.flatnonzero(self.group[block] == code)
                inside = everybody[:, ours]
                for total, own in zip(sums, values, strict=True):
                    total[..., code] += (inside * own[ours]) @ inside.T
        first, second = np.triu_indices(len(rules), k=1)
        columns = np.array([rule.column for rule in rules])
        apart = columns[first] != columns[second]
        first, second = first[apart], second[apart]
        each = sums[0].sum(axis=2).diagonal()
        n_before = np.minimum(each[first], each[second])
        merit, pair = self._most(sums[:, first, second], 2, n_before)
        order = np.argsort(-merit)[: 20 * _LISTED].tolist()
        return [
            Find(float(merit[k]), frozenset((rules[first[k]], rules[second[k]])), at)
            for k, at in zip(order, pair[order].tolist(), strict=True)
            if merit[k] > -np.inf
        ]

    def _polish(self, find: Find) -> Find:
        """Exchange or drop one condition at a time, as long as the merit grows."""
        for _ in range(2 * _DEPTH):
            better = find
            for rule in find.rules:
                rest = find.rules - {rule}
                better = max([better, *self._extend(rest), *self._alone(rest)], key=_MERIT)
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
            sums = self._sums_by_rule(column, codes, self._people(inside))
            merit = self._merits(sums, len(find.rules), find.pair)[:, 0]
            same = np.array([operator == rule.operator for operator, _ in column.rules])
            at = np.flatnonzero(same & (merit > -np.inf))
            if rule.operator not in ("<=", ">") or len(at) == 0:
                continue
            error = self.spread * _root_counts(sums[:, at])[:, find.pair]
            beyond = _differences(sums[:, at])[:, find.pair] - self.overall[find.pair]
            best = int(np.argmax(np.abs(beyond) / error))
            if merit[at[best]] >= find.merit - error[best]:
                rules = rest | {Rule(rule.column, *column.rules[at[best]])}
                find = replace(find, merit=float(merit[at[best]]), rules=rules)
        return find

    def _alone(self, rules: frozenset[Rule]) -> list[Find]:
        if not rules:
            return []
        inside = all_hold(rules, self.coded, self.rows)
        merit = self._merits(self._sums(self._people(inside)), len(rules))[0]
        pair = int(np.argmax(merit))
        return [Find(float(merit[pair]), rules, pair)] if merit[pair] > -np.inf else []

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


def _best(pool: list[Find], n_finds: int) -> list[Find]:
    """Return the worst subsets, but only a few on the same columns, which are much alike."""
    found: dict[frozenset[Rule], Find] = {}
    uses: Counter[frozenset[int]] = Counter()
    for find in sorted(pool, key=_MERIT, reverse=True):
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


# The search uses at most this many rows. The gaps of its finds are computed on all other rows.
_SEARCH_ROWS = 50_000
HALF_SPACE_ROWS = 50_000


def split_people(data: Audited, n_most: int, order: IndexArray) -> tuple[Part, Part]:
    """Split the people at random: one part is searched, and the other confirms the finds."""
    generator, weights = data.settings.generator(3), data.weights
    if weights.is_counts and weights.values is not None:
        people = weights.values
        searched = np.empty(len(people), dtype=np.int64)
        searched[order] = draw_people(people[order], min(weights.people // 2, n_most), generator)
        shares = searched.astype(np.float64), people - searched
        rows = [np.flatnonzero((own > 0.0) & (data.place >= 0)) for own in shares]
        parts = [
            Part(at, Weights(len(at), own[at], is_counts=True))
            for at, own in zip(rows, shares, strict=True)
        ]
        return parts[0], parts[1]
    n_rows = len(data.scores)
    drawn = order[generator.permutation(n_rows)]
    persons = np.arange(n_rows) if weights.persons is None else weights.persons[drawn]
    _, at, of = np.unique(persons, return_index=True, return_inverse=True)
    # The two halves share no person. People are taken in the order of their first rows, until half
    # of the rows are taken.
    place = np.argsort(np.argsort(at))[of]
    upto = np.cumsum(np.bincount(place))
    is_searched = place < np.searchsorted(upto, min(n_rows // 2, n_most), side="right")
    halves = np.sort(drawn[is_searched]), np.sort(drawn[~is_searched])
    kept = [half[data.place[half] >= 0] for half in halves]
    return Part(kept[0], weights.take(kept[0])), Part(kept[1], weights.take(kept[1]))


def scan_subsets(
    data: Audited,
    columns: list[Column],
    half_spaces: Part,
    half_space_features: FloatArray,
    order: IndexArray,
) -> SubsetScan:
    """Search for subsets in which the groups' mean scores differ most."""
    search, confirm = split_people(data, _SEARCH_ROWS, order)
    n_groups = len(data.compared)
    sizes = np.bincount(data.place[search.rows], search.evidence, n_groups).astype(np.float64)
    min_rows = data.settings.min_group_size
    if not data.refused:
        min_rows = max(min_rows, int(np.ceil(0.01 * sizes.min())))
    refused = _refuse(data, sizes, min_rows)
    stated: tuple[SubsetGap, ...] = ()
    n_examined = 0
    if refused is None:
        coded = [code_column(column) for column in columns]
        seeker = Search(data, coded, search, min_rows)
        stated = _state(data, coded, seeker.run(), search, confirm)
        n_examined = seeker.n_examined
    return SubsetScan(
        subsets=stated,
        n_examined=n_examined,
        min_rows=min_rows,
        n_search=search.weights.people,
        n_confirm=confirm.weights.people,
        half_spaces=_half_spaces(data, half_spaces, half_space_features),
        refused=() if refused is None else (refused,),
    )


def _refuse(data: Audited, sizes: FloatArray, min_rows: int) -> str | None:
    """Return why subsets are not searched, or None if they are."""
    if data.refused:
        return f"Subsets were not searched. {data.refused}"
    if len(data.compared) > MANY_GROUPS:
        return f"Subsets were not searched: there are more than {MANY_GROUPS} groups."
    if np.sum(sizes >= min_rows) >= 2:
        return None
    small = int(np.argmin(sizes))
    return (
        f"Subsets were not searched: group {data.labels[data.compared[small]]!r} has "
        f"{sizes[small]:.0f} rows among those searched, fewer than {min_rows}."
    )


def _half_spaces(data: Audited, part: Part, features: FloatArray) -> HalfSpaces:
    settings, at, values = data.settings, np.arange(len(part.rows)), part.weights.values
    if part.weights.is_counts and values is not None:
        # One row per person, because the shuffle moves people between groups one by one.
        at, values = np.repeat(at, values.astype(np.intp)), None
    kept = at[data.place[part.rows][at] >= 0]
    weights = None if values is None else values[kept]
    places, scores = data.place[part.rows][kept], data.shares[part.rows][kept]
    features = features[kept]
    if len(np.unique(places)) < 2:
        return HalfSpaces((), settings.n_subsets, (), len(at))
    size = settings.n_subsets, features.shape[1]
    directions = settings.generator(5).uniform(-1.0, 1.0, size=size)  # the same for every pair

    def largest(places: NDArray[np.int64]) -> FloatArray:
        """Return the largest gap between a group and the reference group in each half-space."""
        found = []
        for codes in data.matched_pairs:
            pair = [data.compared.index(code) for code in codes]
            own = np.isin(places, pair)
            second = (places[own] == pair[1]).astype(np.int8)
            of = None if weights is None else weights[own]
            found.append(half_space_gaps(scores[own], second, 2, of, features[own], directions))
        gaps: FloatArray = data.width * np.fmax.reduce(found)
        return gaps[~np.isnan(gaps)]

    gaps = largest(places)
    return HalfSpaces(
        gaps=tuple(gaps.tolist()),
        n_empty=settings.n_subsets - len(gaps),
        noise=tuple(largest(settings.generator(4).permutation(places)).tolist()),
        n_rows=len(at),
    )


@dataclass(frozen=True, eq=False)
class Members:
    """The people of one group in a part of the table, and who of them is in a subset."""

    scores: FloatArray
    weights: Weights
    inside: BoolArray

    @cached_property
    def own(self) -> Weights:
        """Weights of those in the subset."""
        return self.weights.take(self.inside)

    @cached_property
    def moments(self) -> Moments:
        """The mean score in the subset."""
        return self.own.moments(self.scores[self.inside])

    def excess(self, sign: float, overall_sign: float) -> Moments:
        """Return the mean score in the subset less the group's, each with a sign.

        Both means rest partly on the same people, so the variance is that of the difference of
        their influence functions.
        """
        mean, own = self.weights.moments(self.scores).mean, self.moments.mean
        own_influence = sign * self.inside / self.weights.rate(self.inside).share
        influence = own_influence * (self.scores - own) - overall_sign * (self.scores - mean)
        spread = self.weights.moments(influence)
        return Moments(sign * own - overall_sign * mean, spread.variance, spread.size)


def _state(
    data: Audited, coded: list[CodedColumn], finds: list[Find], search: Part, confirm: Part
) -> tuple[SubsetGap, ...]:
    """Compute the gaps of the finds on people whom the search has not seen, surest first.

    The order is that of the lower limit of the excess over the gap of everybody.
    """
    confidence = 1.0 - (1.0 - data.settings.confidence) / max(len(finds), 1)
    parts = Part(np.arange(len(data.scores)), data.weights), search, confirm
    stated = []
    for find in finds:
        codes = data.pairs[find.pair]
        first, second = (data.labels[code] for code in codes)
        groups = [[_members(data, find, coded, part, code) for code in codes] for part in parts]
        whole, seen, fresh = groups
        signed = whole[1].moments.mean - whole[0].moments.mean
        conditions = tuple(_condition(rule, coded) for rule in sorted(find.rules))
        confirmed, excess = _confirmed(data, codes, seen, fresh, confidence)
        stated.append(
            SubsetGap(
                description=" and ".join(map(str, conditions)),
                conditions=conditions,
                n_rows=(whole[0].own.people, whole[1].own.people),
                gap=abs(signed),
                signed=signed,
                confirmed=confirmed,
                found_by=_found_by(find.rules, coded),
                groups=(first, second),
                excess=excess,
            )
        )
    return tuple(sorted(stated, key=_surest))


def _surest(subset: SubsetGap) -> tuple[float, float]:
    excess = subset.excess
    if excess is None or excess.low is None or excess.value is None:
        return np.inf, 0.0
    return -excess.low, -excess.value


def _members(data: Audited, find: Find, coded: list[CodedColumn], part: Part, code: int) -> Members:
    ours = np.flatnonzero(data.groups.codes[part.rows] == code)
    rows = part.rows[ours]
    inside = all_hold(find.rules, coded, rows)
    return Members(data.scores[rows], part.weights.take(ours), inside)


def _confirmed(
    data: Audited,
    codes: tuple[int, int],
    seen: list[Members],
    fresh: list[Members],
    confidence: float,
) -> tuple[Estimate, Estimate]:
    """Return the gap on fresh rows, and by how much it exceeds the gap of everybody.

    The direction of the gap comes from the rows searched.
    """
    for code, members in zip(codes, fresh, strict=True):
        if members.own.size < data.settings.min_group_size:
            refused = Estimate(
                None,
                refused=f"Group {data.labels[code]!r} has {members.own.size:.0f} rows of this "
                "subset among those kept to confirm it: too few for a statement.",
            )
            return refused, refused
    first, second = (members.moments for members in fresh)
    low, high = fold(weighted_mean_difference(first, second, confidence, data.width))
    gap = Estimate(abs(second.mean - first.mean), low, min(high, data.width))
    everybody = [members.weights.moments(members.scores).mean for members in fresh]
    signs = seen[1].moments.mean >= seen[0].moments.mean, everybody[1] - everybody[0] >= 0.0
    first, second = (members.excess(*(1.0 if up else -1.0 for up in signs)) for members in fresh)
    low, high = weighted_mean_difference(first, second, confidence, data.width)
    return gap, Estimate(second.mean - first.mean, low, high)


def _condition(rule: Rule, coded: list[CodedColumn]) -> Condition:
    column = coded[rule.column]
    if column.cuts is None:
        return Condition(column.name, rule.operator, column.levels[rule.code])
    value = None if rule.operator in ("=", "!=") else column.cuts[rule.code]
    return Condition(column.name, rule.operator, value)
