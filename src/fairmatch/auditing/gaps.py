"""The gaps between two groups, with intervals, and the facts about each group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import expit, logit, ndtri

from fairmatch.auditing.facts import CalibrationBin, Estimate, Gap, GroupFacts
from fairmatch.auditing.people import MANY_GROUPS, Audited, first_rows
from fairmatch.matching.coupling import IndexArray
from fairmatch.matching.network import cheapest_plan
from fairmatch.measures.distributions import CALIBRATION_EDGES
from fairmatch.measures.intervals import (
    SCORE_BINS,
    SCORE_EDGES,
    GroupPair,
    Limits,
    detectable,
    mean_interval,
    rate_over_rate,
    wilson,
)
from fairmatch.measures.registry import Measure, audited
from fairmatch.people.checks import BoolArray, FloatArray
from fairmatch.people.weights import Weights

ROUNDED = 9
"""Number of digits of a score, or of a difference of two, that are not rounding errors."""


def score_edges(data: Audited) -> tuple[float, ...]:
    """Return the ends of the intervals in which scores are counted."""
    return tuple((data.measured.within[0] + data.width * SCORE_EDGES).tolist())


def few_values(data: Audited) -> tuple[float, ...]:
    """Return the different scores, or none if there are more of them than intervals."""
    values, at = np.unique(data.shares.round(ROUNDED), return_index=True)
    if data.settings.scores.has_unit:
        values = data.scores[at]
    return tuple(values.tolist()) if len(values) <= SCORE_BINS else ()


def describe_groups(data: Audited) -> tuple[GroupFacts, ...]:
    """Return the facts about each group."""
    values = np.array(few_values(data))
    facts = [_describe(data, code, values) for code in range(len(data.labels))]
    most = None if data.base is None else facts[data.base].selection_rate.value
    for code, own in enumerate(facts):
        rate = own.selection_rate.value
        if most and rate is not None and code not in data.groups.apart:
            facts[code] = replace(own, ratio=rate / most)
    return tuple(facts)


def base_label(data: Audited) -> str | None:
    """Return the label of the group by whose selection rate others are divided."""
    return None if data.base is None else data.labels[data.base]


def _describe(data: Audited, code: int, values: FloatArray) -> GroupFacts:
    rows = data.groups.rows(code)
    scores, weights = data.scores[rows], data.weights.take(rows)
    selected = data.selected[rows] if data.decides else None
    if reason := data.refuse(code, weights.size):
        mean = Estimate(None, refused=reason)
    else:
        limits = () if data.is_constant else _mean_limits(data, scores, weights)
        mean = Estimate(weights.moments(scores).mean, *limits)
    known = GroupFacts(
        label=data.labels[code],
        n_rows=weights.people,
        selection_rate=Estimate(None) if selected is None else data.rate(selected, weights, code),
        mean_score=mean,
        score_counts=_histogram(data.shares[rows], weights),
        weight=None if weights.values is None else weights.total,
        effective_size=weights.size if weights.is_survey else None,
    )
    labels = data.people.labels
    if data.people.positive is None or labels is None or selected is None:
        return known
    among, labelled = "", labels.known[rows]
    if not labelled.all():
        rows, among = rows[labelled], " with a label"
        scores, weights, selected = scores[labelled], weights.take(labelled), selected[labelled]
        reason = data.refuse(code, weights.size, among)
    deserving, positive = data.has(True)[rows], data.people.positive[rows]
    rates = [
        data.rate(selected[own], weights.take(own), code, data.among(label))
        for label, own in ((True, deserving), (False, ~deserving))
    ]
    bins, error = ((), None) if reason else _calibration(data, scores, positive, weights, values)
    is_probability = data.settings.score_range is None and not data.scored.is_decision
    return replace(
        known,
        base_rate=data.rate(deserving, weights, code, among),
        accuracy=data.rate(selected == deserving, weights, code, among),
        true_positive_rate=rates[0],
        false_positive_rate=rates[1],
        auc=_auc(data, code, scores, positive, weights),
        calibration=bins,
        calibration_error=error if is_probability else None,
    )


def _histogram(scores: FloatArray, weights: Weights) -> tuple[int, ...]:
    """Count people in intervals of scores. With survey weights, round shares to whole numbers.

    Scores are shares of their range.
    """
    shares = np.histogram(scores.round(ROUNDED), bins=SCORE_EDGES, weights=weights.values)[0]
    return whole_numbers(shares, weights.n_rows if weights.is_survey else round(weights.total))


def whole_numbers(shares: FloatArray, total: int) -> tuple[int, ...]:
    """Return whole numbers that sum to a total and are as nearly proportional as they can be."""
    exact = shares * (total / max(float(shares.sum()), 1e-300))
    counts = np.floor(exact).astype(int)
    missing = total - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:missing]] += 1
    return tuple(counts.tolist())


def _mean_limits(data: Audited, scores: FloatArray, weights: Weights) -> Limits:
    confidence, within = data.settings.confidence, data.measured.within
    if data.scored.is_decision:
        rate = weights.rate(scores > within[0])
        low, high = wilson(rate.hits, rate.people, confidence)
        return within[0] + data.width * low, within[0] + data.width * high
    low, high = mean_interval(scores, weights, confidence, within)
    return max(low, within[0]), min(high, within[1])


def _auc(
    data: Audited, code: int, scores: FloatArray, positive: BoolArray, weights: Weights
) -> Estimate:
    r"""Compute the area under the ROC curve, with DeLong's interval on the logit scale.

    ROC is short for receiver operating characteristic. The interval needs two shares: the share of
    negative people below each positive person, and the share of positive people above each
    negative person. Ties count half.
    """
    parts = [(scores[own], weights.take(own)) for own in (positive, ~positive)]
    is_high = data.settings.favourable == "high"
    for is_positive, (_, own) in zip((True, False), parts, strict=True):
        if reason := data.refuse(code, own.size, data.among(is_positive == is_high)):
            return Estimate(None, refused=reason)
    (above, below), (negative, others) = parts
    shares = _share_below(above, negative, others), 1.0 - _share_below(negative, above, below)
    first, second = below.moments(shares[0]), others.moments(shares[1])
    error = float(np.sqrt(first.variance / first.size + second.variance / second.size))
    if error == 0.0:  # perfectly ranked or constant scores: the data do not show the error
        return Estimate(first.mean)
    value = first.mean
    half = float(ndtri((1 + data.settings.confidence) / 2)) * error / (value * (1.0 - value))
    return Estimate(value, float(expit(logit(value) - half)), float(expit(logit(value) + half)))


def _share_below(scores: FloatArray, others: FloatArray, weights: Weights) -> FloatArray:
    """Return the weighted share of others below each score; ties count half."""
    order = np.argsort(others, kind="stable")
    ones = np.ones(len(others)) if weights.values is None else weights.values[order]
    mass = np.append(0.0, np.cumsum(ones))
    places = [np.searchsorted(others[order], scores, side) for side in ("left", "right")]
    shares: FloatArray = (mass[places[0]] + mass[places[1]]) / (2.0 * mass[-1])
    return shares


def _calibration(
    data: Audited, scores: FloatArray, positive: BoolArray, weights: Weights, values: FloatArray
) -> tuple[tuple[CalibrationBin, ...], float]:
    """Return what became of people by score, and the mean distance of scores from outcomes.

    Scores are counted in ten intervals, or at each of few values.
    """
    least, bins, off = data.measured.within[0], [], 0.0
    if len(values):
        at = np.searchsorted((values[1:] + values[:-1]) / 2.0, scores, side="right")
        ends = [(value, value) for value in values.tolist()]
    else:
        edges = least + data.width * CALIBRATION_EDGES
        at = np.searchsorted(edges[1:-1], scores, side="right")
        ends = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    for k, (low, high) in enumerate(ends):
        inside = at == k
        own = weights.take(inside)
        mean, rate = None, Estimate(None, refused="No score falls into this interval.")
        if own.n_rows:
            mean = own.moments(scores[inside]).mean
            found = own.rate(positive[inside])
            rate = Estimate.of_rate(found, data.settings.confidence)
            off += own.total * abs(mean - found.share)
        bins.append(CalibrationBin(low, high, own.people, mean, rate))
    return tuple(bins), off / weights.total


def selection_ratio(data: Audited) -> Estimate:
    """Return the smallest ratio of a selection rate to that of the group that ratios refer to.

    It is the smallest over all pairs of a group and a possible reference. So its limits are the
    smallest of the limits of these pairs, which hold at once.
    """
    if not data.decides:
        return Estimate(None)
    if data.refused:
        return Estimate(None, refused=data.refused)
    if not data.bases:
        return Estimate(None, refused=NO_BASE)
    counts = {code: data.scored.counts(code) for code in data.compared}
    rates = {code: hits / size for code, (hits, size) in counts.items()}
    highest = max(rates[code] for code in data.bases)
    if highest == 0.0:
        who = data.settings.named_outcome
        return Estimate(None, refused=f"Nobody is {who}, so selection rates have no ratio.")
    value = min(min(rates.values()) / highest, 1.0)
    if len(data.compared) > MANY_GROUPS:  # one Wilson interval for each group, which hold at once
        level = 1.0 - (1.0 - data.settings.confidence) / len(counts)
        limits = {code: wilson(hits, size, level) for code, (hits, size) in counts.items()}
        low = min(own[0] for own in limits.values()) / max(limits[code][1] for code in data.bases)
        least = max(max(limits[code][0] for code in data.bases), 1e-300)
        high = min(own[1] for own in limits.values()) / least
    else:
        pairs = []
        for first, second in data.pairs:
            if rates[first] + rates[second] == 0.0:
                continue
            (hits, size), (others, other) = counts[first], counts[second]
            below, above = rate_over_rate(
                (hits, others),
                (size, other),
                data.pair_confidence,
                _correlation(data, (first, second), rates),
            )
            pairs += [(below, above)] if second in data.bases else []
            inverse = 1.0 / max(above, 1e-300), 1.0 / max(below, 1e-300)
            pairs += [inverse] if first in data.bases else []
        low, high = (min(limits) for limits in zip(*pairs, strict=True))
    return Estimate(value, float(min(low, value)), float(min(max(high, value), 1.0)))


def _correlation(data: Audited, pair: tuple[int, int], rates: Mapping[int, float]) -> float:
    """Return the correlation of two selection rates, which have the same people in part.

    A person counts in both groups if they may belong to either, or have rows of both.
    """
    persons, mass = data.weights.persons, data.weights.values
    if persons is None or mass is None:
        return 0.0
    first, second = (
        np.bincount(persons, mass * (data.selected - rates[code]) * (data.groups.codes == code))
        for code in pair
    )
    spread = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / spread if spread > 0.0 else 0.0


NO_BASE = (
    "Every group has less than 2% of the people, so none can serve as the reference. Name one as "
    "the reference group."
)
"""Why there is no ratio where no group may be referred to."""


def group_pairs(data: Audited) -> list[GroupPair]:
    """Return the pairs of groups that are compared."""
    n_resamples = data.settings.n_resamples
    streams = {codes: partial(data.pair_generator, codes=codes) for codes in data.pairs}
    return [GroupPair(data.scored, codes, n_resamples, own) for codes, own in streams.items()]


def take_gaps(
    data: Audited, excesses: Mapping[tuple[int, int], MatchedExcess] | None = None
) -> tuple[tuple[Gap, ...], tuple[Gap, ...]]:
    """Return the largest gap of every measure over pairs of groups, and the gaps by pair.

    The gaps by pair are those of each pair with the reference group and of the pair with the
    largest gap. There are none for two groups, which make only one pair.
    """
    pairs, excesses = group_pairs(data), excesses or {}
    largest, by_pair = list[Gap](), list[Gap]()
    for measure in measures_of(data):
        stated: list[GroupPair] = []
        if measure.needs_coupling and not excesses:
            continue
        if data.is_constant and not data.refused:
            gaps = {pair.codes: _constant_gap(data, measure, pair.codes) for pair in pairs}
        elif measure.needs_coupling:
            gaps = {key: _matched_gap(data, measure, key, own) for key, own in excesses.items()}
        else:
            reasons = [data.refused, *(_refuse(data, measure, pair.codes) for pair in pairs)]
            stated = [pair for pair, why in zip(pairs, reasons[1:], strict=True) if not why]
            gaps = _gaps(data, measure, stated)
            if not gaps:
                why = next(filter(None, reasons))
                largest.append(Gap.unstated(measure.name, measure.symbol, why))
        if not gaps:
            continue
        worst = largest_gap(list(gaps.values()))
        by_pair += [
            gaps[codes]
            for codes in data.pairs
            if len(pairs) > 1
            and codes in gaps
            and (data.reference in codes or gaps[codes].groups == worst.groups)
        ]
        if stated:
            # Each measure has a random stream of its own, whichever other measures there are.
            generator = data.settings.generator(8, *measure.base_name.encode())
            expected = measure.expected(data.scored, [pair.codes for pair in stated], generator)
            worst = replace(worst, expected=expected)
        largest.append(worst)
    return tuple(largest), tuple(by_pair)


def _gaps(
    data: Audited, measure: Measure, pairs: Sequence[GroupPair]
) -> dict[tuple[int, int], Gap]:
    """Return the gaps of pairs, except those that affect neither the result nor its limits."""
    values = {pair: measure.between(data.scored, pair.codes) for pair in pairs}
    gaps: dict[tuple[int, int], Gap] = {}
    low = high = 0.0
    # The first of tied pairs is taken. Rounding must not decide between them.
    for pair in sorted(pairs, key=lambda pair: -round(values[pair], 12)):
        most = values[pair] + _wrong(data, measure, pair)
        if not gaps or data.reference in pair.codes or values[pair] > low or most > high:
            own = gaps[pair.codes] = gap_of(data, measure, pair)
            low, high = max(low, own.low or 0.0), max(high, own.high or 0.0)
    return gaps


def largest_gap(gaps: Sequence[Gap]) -> Gap:
    """Return the largest of several gaps, with the largest of their limits."""
    worst = max(gaps, key=lambda gap: round(gap.value or 0.0, 12))
    if worst.low is None:
        return worst
    low, high = (max(getattr(gap, end) or 0.0 for gap in gaps) for end in ("low", "high"))
    return replace(worst, low=low, high=high)


def _wrong(data: Audited, measure: Measure, pair: GroupPair) -> float:
    """Return by how much the gap of a pair may be too small; infinite if only an interval tells.

    The distribution functions of a group are wrong by at most the bound of Dvoretzky, Kiefer,
    Wolfowitz and Massart. That bounds the distances which they define.
    """
    if not measure.follows:
        return float("inf")
    chance = np.log(4.0 / (1.0 - data.pair_confidence)) / 2.0
    sizes = [part.weights.size for part in pair.parts()]
    unit = 1.0 if measure.unit == "share" else data.width / measure.unit_of(data.measured)
    return unit * float(sum(np.sqrt(chance / size) for size in sizes))


def measures_of(data: Audited) -> list[Measure]:
    """Return the measures that apply: of matched people after others, and relative ones last."""
    settings, has_labels = data.measured, data.people.positive is not None
    found = [
        measure
        for measure in audited(settings.outcome).values()
        if (has_labels or not measure.needs_labels) and (settings.spread or not measure.is_relative)
    ]
    return sorted(found, key=lambda measure: (measure.is_relative, measure.needs_coupling))


def _matched_gap(
    data: Audited, measure: Measure, codes: tuple[int, int], own: MatchedExcess
) -> Gap:
    """Return the excess of the mean score gap of matched people, for one pair of groups."""
    unit = data.width / measure.unit_of(data.measured)
    known = "; the standard deviation is taken as known" if measure.is_relative else ""
    ends, raw, expected = (
        (unit * pair[0], unit * pair[1]) for pair in (own.ends, own.raw, own.expected)
    )
    return Gap(
        measure.name,
        measure.symbol,
        value=ends[0],
        low=unit * own.low,
        high=unit * own.high,
        signed=None,
        p_value=own.p_value,
        method=f"excess over permuted groups of {own.n_people[0]} and {own.n_people[1]} "
        f"people, matched anew; lower limit 0 unless the permutation test rejects{known}",
        groups=(data.labels[codes[0]], data.labels[codes[1]]),
        detectable=unit * detectable(own.error, data.pair_confidence),
        ends=ends,
        raw=raw,
        raw_expected=expected,
    )


def _refuse(data: Audited, measure: Measure, codes: tuple[int, int]) -> str | None:
    """Return why the gap between two groups is not stated, or None if it is."""
    for label in measure.labels:
        if label is None:
            continue
        for code in codes:
            size = data.scored.counts(code, label)[1]
            if reason := data.refuse(code, size, data.among(label)):
                return reason
    return None


def gap_of(data: Audited, measure: Measure, pair: GroupPair) -> Gap:
    """Return the gap between two groups with its interval."""
    own = measure.interval_of(pair, data.pair_confidence)
    limits: tuple[float | None, float | None] = own.low, own.high
    method = own.method
    if not np.isfinite([own.low, own.high]).all():
        limits, method = (None, None), "the interval cannot be stated"
    found = gap_between(data, measure, pair.codes, limits, method)
    return replace(found, p_value=own.p_value, detectable=_detectable(data, measure, pair))


def gap_between(
    data: Audited,
    measure: Measure,
    codes: tuple[int, int],
    limits: tuple[float | None, float | None],
    method: str,
) -> Gap:
    """Return the gap between two groups with limits, and who is better off."""
    names = data.labels[codes[0]], data.labels[codes[1]]
    signed = measure.signed(data.scored, codes)
    # Rates are already those of the favourable outcome. Scores are as they were given.
    turned = measure.unit != "share" and data.settings.favourable == "low"
    return Gap(
        measure.name,
        measure.symbol,
        measure.between(data.scored, codes),
        *limits,
        signed,
        None,
        method,
        groups=names,
        favoured=names[(signed > 0.0) != turned] if signed else None,
    )


def _detectable(data: Audited, measure: Measure, pair: GroupPair) -> float | None:
    """Return the smallest gap of rates or means that this many people would reveal, or None."""
    if not measure.is_difference or data.measured.outcome.several:
        return None
    (label,) = measure.labels
    if measure.needs_decisions:
        hits, sizes = pair.counts(label)
        rate = (sum(hits) + 1.0) / (sum(sizes) + 2.0)
        variances = [rate * (1.0 - rate) / size for size in sizes]
    else:
        moments = [part.weights.moments(part.values) for part in pair.parts(label)]
        variances = [own.variance / own.size for own in moments]
    error = float(np.sqrt(sum(variances))) / measure.unit_of(data.measured)
    return detectable(error, data.pair_confidence)


def _constant_gap(data: Audited, measure: Measure, codes: tuple[int, int]) -> Gap:
    """Return the gap of two groups where all predictions are equal."""
    return Gap(
        measure.name,
        measure.symbol,
        *(0.0, None, None, None, None),
        method="no interval: equal predictions do not show a scale",
        refused="All predictions are equal, so their scale is unknown, and gaps and means have no "
        "intervals.",
        groups=(data.labels[codes[0]], data.labels[codes[1]]),
    )


TOLERANCE, LAST_DIGIT = 0.01, 1e-6
"""A matching counts as nearest if its cost exceeds the least cost by at most this share.

A share of the mean distance is added, so that noise in the last digit does not empty the range.
"""

N_PERMUTATIONS = 200
# A test that so many permutations decide stops early (Besag and Clifford 1991): so many of them
# reach the observed gap.
_FEW_PERMUTATIONS, _ENOUGH = 50, 10
# With this many people of each group, 200 permutations take about a second. With several
# pairs of groups fewer people are drawn, which keeps the time from growing with them.
_MOST, _LEAST = 200, 60
# Groups whose sizes differ by less than this factor are drawn in equal numbers, because pairs of
# one person each are matched several times as fast.
_ABOUT_EQUAL = 1.5


@dataclass(frozen=True)
class MatchedExcess:
    """Both ends of the matched gap: observed, by chance, and the excess with its limits."""

    raw: tuple[float, float]
    expected: tuple[float, float]
    ends: tuple[float, float]
    low: float
    high: float
    p_value: float
    error: float
    n_people: tuple[int, int]


def matched_excess(data: Audited, codes: tuple[int, int]) -> MatchedExcess:
    """Return the matched gap of two groups. Scores are shares of their range."""
    roster, generator = data.roster, data.pair_generator(7, codes)
    n_pairs = len(data.matched_pairs)
    most = max(int(_MOST / n_pairs**0.4), _LEAST)
    n_small, n_large = sorted(min(_n_persons(data, code), most) for code in codes)
    most = n_small if n_large < _ABOUT_EQUAL * n_small else most
    sides = [draw_persons(data, roster.order, code, most, generator) for code in codes]
    rows = np.concatenate(sides)
    first = np.arange(len(rows)) < len(sides[0])
    weights = data.weights.take(rows).values if data.weights.is_survey else None
    scores = data.shares[rows]
    features = roster.alike(rows)
    tail = (1.0 - data.settings.confidence) / 2.0 / n_pairs
    return excess_of(features, scores, first, weights, tail, generator)


def _n_persons(data: Audited, code: int) -> int:
    own = data.weights.take(data.groups.rows(code))
    return own.people if own.persons is None else len(np.unique(own.persons))


def draw_persons(
    data: Audited, order: IndexArray, code: int, most: int, generator: np.random.Generator
) -> IndexArray:
    """Return the rows of people drawn from a group, one row for each person.

    A row that stands for many people is drawn as often as its people are. So aggregated and
    repeated rows give the same people.
    """
    rows = first_rows(order[data.groups.codes[order] == code], data.weights)
    own = data.weights.take(rows)
    ends = np.arange(1, len(rows) + 1)
    if own.is_counts and own.values is not None:
        ends = np.cumsum(own.values).astype(np.int64)
    total = int(ends[-1])
    if total <= most:
        at = np.arange(total)
    else:
        at = np.sort(generator.choice(total, size=most, replace=False, shuffle=False))
    drawn: IndexArray = rows[np.searchsorted(ends, at, side="right")]
    return drawn


def excess_of(
    features: FloatArray,
    scores: FloatArray,
    first: NDArray[np.bool_],
    weights: FloatArray | None,
    tail: float,
    generator: np.random.Generator,
) -> MatchedExcess:
    r"""Compare the matched gap with that of permuted groups.

    With distances :math:`c_{ij}` between people and :math:`d_{ij} = |f_i - f_j|`, the two ends are
    limits of the mean of d over all matchings whose mean of c is at most
    :math:`B = 1.01 \min_P c + 10^{-6} \bar c`. By duality, every price :math:`\lambda > 0` gives

    .. math:: \frac{\min_P (c + \lambda d) - B}{\lambda} \le d(P)
              \le \frac{B - \min_P (c - \lambda d)}{\lambda}.

    The bounds meet the mean gap of a matching at the best price, which is searched from a price
    that suits permuted groups. Every permutation gets the same treatment, which keeps the test
    exact.
    """
    squares = (features**2).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares - 2.0 * features @ features.T, 0.0)
    gaps = np.abs(scores[:, None] - scores)
    scale = float(distances.mean()) or 1.0
    if weights is not None and np.ptp(weights) == 0.0:
        weights = None

    def ends(group: NDArray[np.bool_], prices: Sequence[float]) -> list[_End]:
        sides = np.flatnonzero(group), np.flatnonzero(~group)
        cost, apart = distances[np.ix_(*sides)], gaps[np.ix_(*sides)]
        ones = np.ones(len(scores)) if weights is None else weights
        masses = [ones[side] / ones[side].sum() for side in sides]
        is_even = weights is None and len(sides[0]) == len(sides[1])
        own = int(np.argmin(cost.shape))  # the smaller group
        size = 1.0 / float((masses[own] ** 2).sum())

        def matched(price: float) -> _Matched:
            paid = cost + price * apart
            if is_even:
                pairs: tuple[Any, ...] = linear_sum_assignment(paid)
                mass = np.full(len(pairs[0]), 1.0 / len(pairs[0]))
            else:
                plan = cheapest_plan(masses[0], masses[1], paid - paid.min())[0]
                pairs = np.nonzero(plan)
                mass = plan[pairs]
            mean = float(apart[pairs] @ mass / mass.sum())
            totals = np.bincount(pairs[own], (apart[pairs] - mean) * mass, cost.shape[own])
            error = float(np.sqrt((totals**2).sum() * size / max(size - 1.0, 1.0)))
            return _Matched(float(cost[pairs] @ mass), mean, error)

        nearest = matched(0.0)
        allowed = (1.0 + TOLERANCE) * nearest.cost + LAST_DIGIT * scale
        return [_end(matched, nearest, allowed, price) for price in prices]

    nothing = _End(0.0, 0.0, 0.0)
    low, high, lower, upper, reached = nothing, nothing, [0.0, 0.0], [0.0, 0.0], 2
    if gaps.any():
        start = TOLERANCE * scale
        prices = [own.price for own in ends(generator.permutation(first), (start, -start))]
        low, high = ends(first, prices)
        lower, upper, reached = [], [], 0
        while len(lower) < (_FEW_PERMUTATIONS if reached >= _ENOUGH else N_PERMUTATIONS):
            # The test is about the lower end. The upper one needs a mean, which few give.
            wanted = prices if len(upper) < _FEW_PERMUTATIONS else prices[:1]
            own, *other = ends(generator.permutation(first), wanted)
            lower.append(own.gap)
            upper += [one.gap for one in other]
            reached += own.gap >= low.gap * (1.0 - 1e-9)
    expected = np.array([np.mean(lower), np.mean(upper)])
    spread = [np.std(lower, ddof=1), np.std(upper, ddof=1)]
    excess = np.array([low.gap, high.gap]) - expected
    errors = np.maximum([low.error, high.error], spread)
    p_value = (1 + reached) / (1 + len(lower))
    # With many pairs of groups there are too few permutations; a normal tail then takes over.
    beyond = reached == 0 and excess[0] > -ndtri(tail) * spread[0]
    rejects = p_value <= tail or (1.0 / (1 + len(lower)) > tail and beyond)
    quantile = -float(ndtri(tail))
    bottom = max(float(excess[0] - quantile * errors[0]), 0.0) if rejects else 0.0
    least, most = np.maximum(np.sort(excess), 0.0).tolist()
    top = float((excess + quantile * errors).max())
    return MatchedExcess(
        raw=(low.gap, high.gap),
        expected=(float(expected[0]), float(expected[1])),
        ends=(least, most),
        low=min(bottom, least),
        high=min(max(top, most), 1.0),
        p_value=p_value,
        error=float(errors[0]),
        n_people=(int(first.sum()), int((~first).sum())),
    )


class _Matched(NamedTuple):
    """The mean distance of matched people, their mean score gap, and its standard error."""

    cost: float
    gap: float
    error: float


class _End(NamedTuple):
    """A limit of the mean score gap, its standard error, and the price that gives it."""

    gap: float
    error: float
    price: float


# A limit is searched until a matching that costs as much as is allowed is as close to it.
_CLOSE, _STEPS = 0.005, 8


def _end(
    matched: Callable[[float], _Matched], nearest: _Matched, allowed: float, price: float
) -> _End:
    """Return the least mean gap that the allowed cost leaves, or the greatest if prices are < 0."""
    sign, best = np.sign(price), -np.inf
    inside, outside = nearest, None
    for _ in range(_STEPS):
        own = matched(price)
        bound = sign * (own.gap - (allowed - own.cost) / price)
        if bound > best:
            best, error, at = bound, own.error, price
        if own.cost <= allowed:
            inside = own
        else:
            outside = own
        if outside is None:
            reached, slope = inside.gap, 0.25 / price
        else:  # a mixture of both matchings
            slope = (inside.gap - outside.gap) / (outside.cost - inside.cost)
            reached = inside.gap - slope * (allowed - inside.cost)
        if sign * reached - best <= _CLOSE or slope * sign <= 0.0:
            break
        price = 1.0 / slope
    return _End(float(min(max(sign * best, 0.0), 1.0)), error, at)
