"""Where a model treats the groups differently: subsets that are searched, then confirmed.

Who looks at many subsets finds a large gap in one of them by chance. So the rows are split at
random: subsets are chosen on one part, and their gaps are taken on the other, which played no part
in the choice. What is stated there needs a correction only for the few subsets that are listed.
"""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from fairmatch.auditing.facts import Condition, Estimate, HalfSpaces, SubsetGap, SubsetScan
from fairmatch.auditing.groups import Scored
from fairmatch.auditing.search import (
    CodedColumn,
    Find,
    Merit,
    Rule,
    Search,
    all_hold,
    code_column,
    sums_of,
)
from fairmatch.matching.coupling import IndexArray
from fairmatch.measures import random_subset_gaps
from fairmatch.measures.intervals import fold
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
    coded = [code_column(column) for column in columns]
    merit = Merit(data, sum(len(column.rules) for column in coded))
    refused = []
    finds: list[Find] = []
    n_examined = 0
    if data.rows_refused or sizes.min() < min_rows:
        small = data.labels[int(np.argmin(sizes))]
        refused.append(
            f"Subsets were not searched: group {small!r} has {sizes.min()} rows among those "
            f"searched, fewer than {min_rows}."
        )
    else:
        seeker = Search(data, coded, search, min_rows, merit)
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
    data: Scored, coded: list[CodedColumn], finds: list[Find], confirm: IndexArray, merit: Merit
) -> tuple[SubsetGap, ...]:
    """Take the gaps of the finds on rows that the search has not seen, the worst first."""
    tail = (1.0 - data.confidence) / (2 * max(len(finds), 1))
    scores, group = data.scores[confirm], data.groups.codes[confirm].astype(np.int64)
    stated = []
    for find in finds:
        everybody = all_hold(find.rules, coded, slice(None))
        total = sums_of(data.scores[everybody], data.groups.codes[everybody].astype(np.int64))
        signed = float(total[3] / total[1] - total[2] / total[0])
        inside = everybody[confirm]
        sums = sums_of(scores[inside], group[inside])
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


def _condition(rule: Rule, coded: list[CodedColumn]) -> Condition:
    column = coded[rule.column]
    if column.cuts is None:
        return Condition(column.name, rule.operator, column.levels[rule.code])
    value = None if rule.operator in ("=", "!=") else column.cuts[rule.code]
    return Condition(column.name, rule.operator, value)
