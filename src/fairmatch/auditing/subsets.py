"""Subsets in which a model treats groups differently: found on some rows, confirmed on others.

A search over many subsets finds a large gap in one of them by chance. So the rows are split at
random. Subsets are chosen on one part, and their gaps are computed on the other, which plays no
part in the choice. Statements then need a correction only for the few subsets that are listed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairmatch.auditing.conditions import CodedColumn, Rule, all_hold, code_column
from fairmatch.auditing.facts import Condition, Estimate, HalfSpaces, SubsetGap, SubsetScan
from fairmatch.auditing.scored import Scored
from fairmatch.auditing.search import Find, Merit, Search
from fairmatch.auditing.sums import GroupSums
from fairmatch.auditing.weighting import RowWeights, difference_limits, draw_people
from fairmatch.matching.coupling import IndexArray
from fairmatch.measures import random_subset_gaps
from fairmatch.measures.closed_forms import fold
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.columns import Column

# The search uses at most this many rows. The gaps of its finds are computed on all other rows.
_SEARCH_ROWS = 50_000
HALF_SPACE_ROWS = 50_000


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the people: those that are searched, or those that confirm the finds.

    Attributes
    ----------
    rows : array of int
        Their rows.
    weights : RowWeights
        The weights of these rows. If a row stands for many people, its weight is how many of them
        are in this part.
    """

    rows: IndexArray
    weights: RowWeights


def split_people(data: Scored, n_most: int, order: IndexArray) -> tuple[Part, Part]:
    """Split the people at random: one part is searched, and the other confirms the finds.

    Parameters
    ----------
    data : Scored
        The rows. Groups that are not compared are left out of both parts.
    n_most : int
        The largest number of people to search.
    order : array of int
        The rows in the order in which they are drawn.
    """
    generator, weights = data.settings.generator(3), data.weights
    if weights.is_counts and weights.values is not None:
        people = weights.values
        searched = np.empty(len(people), dtype=np.int64)
        searched[order] = draw_people(people[order], min(weights.people // 2, n_most), generator)
        shares = searched.astype(np.float64), people - searched
        rows = [np.flatnonzero((own > 0.0) & (data.place >= 0)) for own in shares]
        parts = [
            Part(at, RowWeights(len(at), own[at], is_counts=True))
            for at, own in zip(rows, shares, strict=True)
        ]
        return parts[0], parts[1]
    n_rows = len(data.scores)
    drawn = order[generator.permutation(n_rows)]
    n_search = min(n_rows // 2, n_most)
    halves = np.sort(drawn[:n_search]), np.sort(drawn[n_search:])
    kept = [half[data.place[half] >= 0] for half in halves]
    return Part(kept[0], weights.take(kept[0])), Part(kept[1], weights.take(kept[1]))


def scan_subsets(
    data: Scored,
    columns: list[Column],
    half_spaces: Part,
    half_space_features: FloatArray,
    order: IndexArray,
) -> SubsetScan:
    """Search for subsets in which the groups' mean scores differ most.

    Parameters
    ----------
    data : Scored
        Scores and groups.
    columns : list of Column
        The columns that describe the people.
    half_spaces : Part
        The people for whom random half-spaces are examined.
    half_space_features : array of shape (len(half_spaces.rows), n_features)
        Their encoded features.
    order : array of int
        All rows in the order by which they are drawn.
    """
    search, confirm = split_people(data, _SEARCH_ROWS, order)
    n_groups = len(data.compared)
    evidence = search.weights.evidence
    ones = np.ones(len(search.rows)) if evidence is None else evidence
    sizes = np.bincount(data.place[search.rows], ones, minlength=n_groups).astype(np.float64)
    min_rows = data.settings.min_group_size
    if not data.refused:
        min_rows = max(min_rows, int(np.ceil(0.01 * sizes.min())))
    refused = _refuse(data, sizes, min_rows)
    stated: tuple[SubsetGap, ...] = ()
    n_examined = 0
    if refused is None:
        coded = [code_column(column) for column in columns]
        merit = Merit(data, sum(len(column.rules) for column in coded))
        seeker = Search(data, coded, search.rows, evidence, min_rows, merit)
        stated = _state(data, coded, seeker.run(), confirm, merit)
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


def _refuse(data: Scored, sizes: FloatArray, min_rows: int) -> str | None:
    """Return why subsets are not searched, or None if they are."""
    if data.refused:
        return f"Subsets were not searched. {data.refused}"
    if np.sum(sizes >= min_rows) >= 2:
        return None
    small = int(np.argmin(sizes))
    return (
        f"Subsets were not searched: group {data.labels[data.compared[small]]!r} has "
        f"{sizes[small]:.0f} rows among those searched, fewer than {min_rows}."
    )


def _half_spaces(data: Scored, part: Part, features: FloatArray) -> HalfSpaces:
    settings, at, values = data.settings, np.arange(len(part.rows)), part.weights.values
    if part.weights.is_counts and values is not None:
        # One row per person, because the shuffle moves people between groups one by one.
        at, values = np.repeat(at, values.astype(np.intp)), None
    kept = at[data.place[part.rows][at] >= 0]
    weights = None if values is None else values[kept]
    places, scores = data.place[part.rows][kept], data.scores[part.rows][kept]
    features = features[kept]
    if len(np.unique(places)) < 2:
        return HalfSpaces((), settings.n_subsets, (), len(at))
    shuffled = settings.generator(4).permutation(places)
    gaps, noise = (
        _largest_gaps(data, scores, own, features, weights) for own in (places, shuffled)
    )
    stated, chance = gaps[~np.isnan(gaps)], noise[~np.isnan(noise)]
    return HalfSpaces(
        gaps=tuple(stated.tolist()),
        n_empty=len(gaps) - len(stated),
        noise=tuple(chance.tolist()),
        n_rows=len(at),
    )


def _largest_gaps(
    data: Scored,
    scores: FloatArray,
    places: NDArray[np.int64],
    features: FloatArray,
    weights: FloatArray | None,
) -> FloatArray:
    """Return the largest gap between a group and the reference group in random half-spaces."""
    found = []
    for codes in data.matched_pairs:
        pair = [data.compared.index(code) for code in codes]
        own = np.isin(places, pair)
        found.append(
            random_subset_gaps(
                None,
                scores[own],
                sensitive_features=places[own],
                X=features[own],
                n_subsets=data.settings.n_subsets,
                sample_weight=None if weights is None else weights[own],
                random_state=data.settings.generator(5),  # the same half-spaces for every pair
            )
        )
    largest: FloatArray = np.fmax.reduce(found)
    return largest


def _state(
    data: Scored, coded: list[CodedColumn], finds: list[Find], confirm: Part, merit: Merit
) -> tuple[SubsetGap, ...]:
    """Compute the gaps of the finds on people whom the search has not seen, the worst first."""
    confidence = 1.0 - (1.0 - data.settings.confidence) / max(len(finds), 1)
    everybody = Part(np.arange(len(data.scores)), data.weights)
    stated = []
    for find in finds:
        pair = data.pairs[find.pair]
        whole, fresh = (
            [_inside(data, find, coded, part, code) for code in pair]
            for part in (everybody, confirm)
        )
        means = [weights.moments(scores).mean for scores, weights in whole]
        signed = means[1] - means[0]
        conditions = tuple(_condition(rule, coded) for rule in sorted(find.rules))
        labels = [data.labels[code] for code in pair]
        subset = SubsetGap(
            description=" and ".join(map(str, conditions)),
            conditions=conditions,
            n_rows=(whole[0][1].people, whole[1][1].people),
            gap=abs(signed),
            signed=signed,
            confirmed=_confirmed(data, pair, fresh, confidence),
            found_by=find.found_by,
            groups=(labels[0], labels[1]),
        )
        order = -np.inf
        if subset.confirmed.value is not None:
            counts = np.array([[weights.size for _, weights in fresh]])
            sums = np.array([[weights.moments(scores).mean for scores, weights in fresh]]) * counts
            order = float(merit(GroupSums(counts, sums), len(find.rules))[0, 0])
        stated.append((order, subset))
    return tuple(subset for _, subset in sorted(stated, key=lambda pair: -pair[0]))


def _inside(
    data: Scored, find: Find, coded: list[CodedColumn], part: Part, code: int
) -> tuple[FloatArray, RowWeights]:
    """Return the scores and the weights of one group's people in a subset."""
    ours = np.flatnonzero(data.groups.codes[part.rows] == code)
    inside = ours[all_hold(find.rules, coded, part.rows[ours])]
    return data.scores[part.rows[inside]], part.weights.take(inside)


def _confirmed(
    data: Scored,
    pair: tuple[int, int],
    fresh: list[tuple[FloatArray, RowWeights]],
    confidence: float,
) -> Estimate:
    for code, (_, weights) in zip(pair, fresh, strict=True):
        if weights.size < data.settings.min_group_size:
            return Estimate(
                None,
                refused=f"Group {data.labels[code]!r} has {weights.size:.0f} rows of this subset "
                "among those kept for confirming it: too few for a statement.",
            )
    first, second = (weights.moments(scores) for scores, weights in fresh)
    low, high = fold(difference_limits(first, second, confidence))
    return Estimate(abs(second.mean - first.mean), low, min(high, 1.0))


def _condition(rule: Rule, coded: list[CodedColumn]) -> Condition:
    column = coded[rule.column]
    if column.cuts is None:
        return Condition(column.name, rule.operator, column.levels[rule.code])
    value = None if rule.operator in ("=", "!=") else column.cuts[rule.code]
    return Condition(column.name, rule.operator, value)
