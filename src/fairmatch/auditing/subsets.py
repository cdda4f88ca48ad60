"""Where a model treats the groups differently: subsets that are searched, then confirmed.

Who looks at many subsets finds a large gap in one of them by chance. So the rows are split at
random: subsets are chosen on one part, and their gaps are taken on the other, which played no part
in the choice. What is stated there needs a correction only for the few subsets that are listed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from fairmatch.auditing.conditions import CodedColumn, Rule, all_hold, code_column
from fairmatch.auditing.facts import Condition, Estimate, HalfSpaces, SubsetGap, SubsetScan
from fairmatch.auditing.scored import Scored
from fairmatch.auditing.search import Find, Merit, Search
from fairmatch.auditing.sums import GroupSums, sums_of
from fairmatch.matching.coupling import IndexArray
from fairmatch.measures import random_subset_gaps
from fairmatch.measures.closed_forms import fold
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.columns import Column

# The search looks at no more rows than these; the gaps of what it finds are taken on all others.
_SEARCH_ROWS = 50_000
HALF_SPACE_ROWS = 50_000


def scan_subsets(
    data: Scored,
    columns: list[Column],
    half_space_rows: IndexArray,
    half_space_features: FloatArray,
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
    """
    n_rows = len(data.scores)
    order = data.settings.generator(3).permutation(n_rows)
    n_search = min(n_rows // 2, _SEARCH_ROWS)
    # Groups that are too small to be compared are left out of both parts.
    search, confirm = (
        part[data.place[part] >= 0]
        for part in (np.sort(order[:n_search]), np.sort(order[n_search:]))
    )
    sizes = np.bincount(data.place[search], minlength=len(data.compared))
    min_rows = data.settings.min_group_size
    if not data.refused:
        min_rows = max(min_rows, int(np.ceil(0.01 * sizes.min())))
    refused = _refuse(data, sizes, min_rows)
    stated: tuple[SubsetGap, ...] = ()
    n_examined = 0
    if refused is None:
        coded = [code_column(column) for column in columns]
        merit = Merit(data, sum(len(column.rules) for column in coded))
        seeker = Search(data, coded, search, min_rows, merit)
        stated = _state(data, coded, seeker.run(), confirm, merit)
        n_examined = seeker.n_examined
    return SubsetScan(
        subsets=stated,
        n_examined=n_examined,
        min_rows=min_rows,
        n_search=len(search),
        n_confirm=len(confirm),
        half_spaces=_half_spaces(data, half_space_rows, half_space_features),
        refused=() if refused is None else (refused,),
    )


def _refuse(data: Scored, sizes: NDArray[np.intp], min_rows: int) -> str | None:
    """Return why subsets are not searched, or None."""
    if data.refused:
        return f"Subsets were not searched. {data.refused}"
    if np.sum(sizes >= min_rows) >= 2:
        return None
    small = int(np.argmin(sizes))
    return (
        f"Subsets were not searched: group {data.labels[data.compared[small]]!r} has "
        f"{sizes[small]} rows among those searched, fewer than {min_rows}."
    )


def _half_spaces(data: Scored, rows: IndexArray, features: FloatArray) -> HalfSpaces:
    settings = data.settings
    kept = data.place[rows] >= 0
    places, scores, features = data.place[rows][kept], data.scores[rows][kept], features[kept]
    if len(np.unique(places)) < 2:
        return HalfSpaces((), settings.n_subsets, (), len(rows))
    shuffled = settings.generator(4).permutation(places)
    gaps, noise = (_largest_gaps(data, scores, own, features) for own in (places, shuffled))
    stated, chance = gaps[~np.isnan(gaps)], noise[~np.isnan(noise)]
    return HalfSpaces(
        gaps=tuple(stated.tolist()),
        n_empty=len(gaps) - len(stated),
        noise=tuple(chance.tolist()),
        n_rows=len(rows),
    )


def _largest_gaps(
    data: Scored, scores: FloatArray, places: NDArray[np.int64], features: FloatArray
) -> FloatArray:
    """Return the largest gap between a group and the reference, in random half-spaces."""
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
                random_state=data.settings.generator(5),  # the same half-spaces for every pair
            )
        )
    largest: FloatArray = np.fmax.reduce(found)
    return largest


def _difference(sums: GroupSums) -> tuple[float, float, float]:
    """Return the difference of two mean scores, its standard error, and the degrees of freedom."""
    assert sums.squares is not None
    counts, means = sums.counts, sums.scores / sums.counts
    variances = np.maximum(sums.squares / counts - means**2, 0.0) * counts / (counts - 1.0)
    # Equal scores of a few people do not prove that all such people score the same; one success
    # and one failure more would leave a variance of about one over the count.
    parts = np.maximum(variances, np.minimum(1.0 / counts, 0.25)) / counts
    freedom = parts.sum() ** 2 / (parts**2 / (counts - 1.0)).sum()
    return float(means[1] - means[0]), float(np.sqrt(parts.sum())), float(freedom)


def _state(
    data: Scored, coded: list[CodedColumn], finds: list[Find], confirm: IndexArray, merit: Merit
) -> tuple[SubsetGap, ...]:
    """Take the gaps of the finds on rows that the search has not seen, the worst first."""
    tail = (1.0 - data.settings.confidence) / (2 * max(len(finds), 1))
    n_groups = len(data.compared)
    is_compared, fresh = data.place >= 0, np.zeros(len(data.scores), dtype=bool)
    fresh[confirm] = True
    stated = []
    for find in finds:
        inside = all_hold(find.rules, coded, slice(None)) & is_compared
        total, sums = (
            sums_of(data.scores[rows], data.place[rows], n_groups).pair(find.pair)
            for rows in (inside, inside & fresh)
        )
        signed = float(total.differences()[0])
        conditions = tuple(_condition(rule, coded) for rule in sorted(find.rules))
        labels = [data.labels[code] for code in data.pairs[find.pair]]
        subset = SubsetGap(
            description=" and ".join(map(str, conditions)),
            conditions=conditions,
            n_rows=(int(total.counts[0]), int(total.counts[1])),
            gap=abs(signed),
            signed=signed,
            confirmed=_confirmed(sums, tail, labels, data.settings.min_group_size),
            found_by=find.found_by,
            groups=(labels[0], labels[1]),
        )
        known = subset.confirmed.value is not None
        stated.append((float(merit(sums, len(find.rules))[0]) if known else -np.inf, subset))
    return tuple(subset for _, subset in sorted(stated, key=lambda pair: -pair[0]))


def _confirmed(sums: GroupSums, tail: float, labels: list[str], least: int) -> Estimate:
    for label, count in zip(labels, sums.counts.tolist(), strict=True):
        if count < least:
            return Estimate(
                None,
                refused=f"Group {label!r} has {int(count)} rows of this subset among those kept "
                "for confirming it: too few for a statement.",
            )
    difference, error, freedom = _difference(sums)
    half = -float(stdtrit(freedom, tail)) * error
    low, high = fold((difference - half, difference + half))
    return Estimate(abs(difference), low, min(high, 1.0))


def _condition(rule: Rule, coded: list[CodedColumn]) -> Condition:
    column = coded[rule.column]
    if column.cuts is None:
        return Condition(column.name, rule.operator, column.levels[rule.code])
    value = None if rule.operator in ("=", "!=") else column.cuts[rule.code]
    return Condition(column.name, rule.operator, value)
