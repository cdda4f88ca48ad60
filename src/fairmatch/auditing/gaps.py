"""The gaps between two groups, with intervals, and the facts about each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from fairmatch.auditing.facts import CalibrationBin, Estimate, Gap, GroupFacts, Matching
from fairmatch.auditing.people import Audited
from fairmatch.measures.intervals import (
    SCORE_BINS,
    GroupPair,
    Limits,
    mean_interval,
    rate_ratio,
    weighted_mean_interval,
    wilson,
)
from fairmatch.measures.registry import Measure, applicable
from fairmatch.people.checks import BoolArray, FloatArray
from fairmatch.people.weights import Weights

CALIBRATION_BINS = 10
ROUNDED = 9
"""Digits of a score, or of a difference of two, that are more than rounding errors."""
# Dividing whole numbers, unlike numpy.linspace, lets scores such as 0.3 begin their own interval.
SCORE_EDGES = np.arange(SCORE_BINS + 1) / SCORE_BINS
_CALIBRATION_EDGES = np.arange(CALIBRATION_BINS + 1) / CALIBRATION_BINS


def score_edges(data: Audited) -> tuple[float, ...]:
    """Return the ends of the intervals in which scores are counted."""
    return tuple((data.scored.settings.within[0] + data.width * SCORE_EDGES).tolist())


def few_values(data: Audited) -> tuple[float, ...]:
    """Return the different scores, or none if there are more of them than intervals."""
    shares = np.unique(data.shares.round(ROUNDED))
    values = data.scored.settings.within[0] + data.width * shares
    return tuple(values.tolist()) if len(values) <= SCORE_BINS else ()


def describe_groups(data: Audited) -> tuple[GroupFacts, ...]:
    """Return the facts about each group."""
    return tuple(_describe(data, code) for code in range(len(data.labels)))


def _describe(data: Audited, code: int) -> GroupFacts:
    rows = data.groups.rows(code)
    scores, weights = data.scores[rows], data.weights.take(rows)
    selected = data.selected[rows] if data.decides else None
    if reason := data.refuse(code, weights.size):
        mean = Estimate(None, refused=reason)
    else:
        mean = Estimate(weights.moments(scores).mean, *_mean_limits(data, scores, weights))
    known = GroupFacts(
        label=data.labels[code],
        n_rows=weights.people,
        selection_rate=Estimate(None) if selected is None else data.rate(selected, weights, code),
        mean_score=mean,
        score_counts=_histogram(data.shares[rows], weights),
        weight=None if weights.values is None else weights.total,
        effective_size=weights.size if weights.is_survey else None,
    )
    if data.people.positive is None or data.deserving is None or selected is None:
        return known
    deserving, positive = data.deserving[rows], data.people.positive[rows]
    rates = [
        data.rate(selected[own], weights.take(own), code, data.among(label))
        for label, own in ((True, deserving), (False, ~deserving))
    ]
    return replace(
        known,
        base_rate=data.rate(deserving, weights, code),
        accuracy=data.rate(selected == deserving, weights, code),
        true_positive_rate=rates[0],
        false_positive_rate=rates[1],
        auc=_auc(data, code, scores, positive, weights),
        calibration=() if reason else _calibration(data, scores, positive, weights),
        calibration_error=None if reason else _calibration_error(scores, positive, weights),
    )


def _histogram(scores: FloatArray, weights: Weights) -> tuple[int, ...]:
    """Count people in intervals of scores. With survey weights, round shares to whole numbers.

    Scores are shares of their range.
    """
    shares = np.histogram(scores.round(ROUNDED), bins=SCORE_EDGES, weights=weights.values)[0]
    if not weights.is_survey:
        return tuple(np.rint(shares).astype(int).tolist())
    exact = shares * (weights.n_rows / weights.total)
    counts = np.floor(exact).astype(int)
    missing = weights.n_rows - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:missing]] += 1
    return tuple(counts.tolist())


def _mean_limits(data: Audited, scores: FloatArray, weights: Weights) -> Limits:
    confidence, within = data.settings.confidence, data.scored.settings.within
    if data.scored.is_decision:
        share, size = weights.rate(scores > within[0])
        people = max(round(size), 1)
        low, high = wilson(share * people, people, confidence)
        return within[0] + data.width * low, within[0] + data.width * high
    if weights.is_survey:
        low, high = weighted_mean_interval(weights.moments(scores), confidence, data.width)
    else:
        low, high = mean_interval(scores, confidence, within=within, counts=weights.values)
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
    if error == 0.0:  # perfectly ranked or constant scores: the data do not show how sure that is
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


def _bin_of(scores: FloatArray) -> NDArray[np.intp]:
    return np.searchsorted(_CALIBRATION_EDGES[1:-1], scores, side="right")


def _calibration(
    data: Audited, scores: FloatArray, positive: BoolArray, weights: Weights
) -> tuple[CalibrationBin, ...]:
    at, bins = _bin_of(scores), []
    for k in range(CALIBRATION_BINS):
        inside = at == k
        own = weights.take(inside)
        mean, rate = None, Estimate(None, refused="No score falls into this interval.")
        if own.n_rows:
            mean = own.moments(scores[inside]).mean
            share, size = own.rate(positive[inside])
            people = max(round(size), 1)
            rate = Estimate(share, *wilson(share * people, people, data.settings.confidence))
        ends = float(_CALIBRATION_EDGES[k]), float(_CALIBRATION_EDGES[k + 1])
        bins.append(CalibrationBin(*ends, own.people, mean, rate))
    return tuple(bins)


def _calibration_error(scores: FloatArray, positive: BoolArray, weights: Weights) -> float:
    ones = np.ones(len(scores)) if weights.values is None else weights.values
    off = np.bincount(_bin_of(scores), ones * (scores - positive), minlength=CALIBRATION_BINS)
    return float(np.abs(off).sum() / ones.sum())


def selection_ratio(data: Audited) -> Estimate:
    """Return the smallest selection rate divided by the largest, with its interval."""
    if not data.decides:
        return Estimate(None)
    if data.refused:
        return Estimate(None, refused=data.refused)
    counts = {code: data.scored.counts(code) for code in data.compared}
    rates = {code: hits / size for code, (hits, size) in counts.items()}
    order = sorted(data.compared, key=rates.__getitem__)
    smallest, largest = rates[order[0]], rates[order[-1]]
    if largest == 0.0:
        who = data.settings.named_outcome
        return Estimate(None, refused=f"Nobody is {who}, so the selection rates have no ratio.")
    first, second = sorted((order[0], order[-1]))
    hits = counts[first][0], counts[second][0]
    people = counts[first][1], counts[second][1]
    return Estimate(smallest / largest, *rate_ratio(hits, people, data.pair_confidence))


def take_gaps(
    data: Audited, matchings: Sequence[Matching] = ()
) -> tuple[tuple[Gap, ...], tuple[Gap, ...]]:
    """Return every gap that scores, groups, labels and matchings allow, with intervals.

    Parameters
    ----------
    data : Audited
        The people and their scores.
    matchings : sequence of Matching
        The matchings, for the gaps of matched people.

    Returns
    -------
    gaps : tuple of Gap
        One per measure: the largest over the pairs of groups.
    by_pair : tuple of Gap
        The same measures for each pair with the reference group, and for the pair with the largest
        gap. It is empty for two groups, which make only one pair.
    """
    pairs = [
        GroupPair(
            data.scored, codes, data.settings.n_resamples, partial(data.pair_generator, codes=codes)
        )
        for codes in data.pairs
    ]
    largest: list[Gap] = []
    by_pair: list[Gap] = []
    for measure in _measures(data):
        if measure.needs_coupling:
            found = _matched_gaps(data, measure, matchings)
            largest += sorted(found, key=lambda gap: -(gap.value or 0.0))[:1]
            by_pair += found if len(found) > 1 else []
            continue
        if data.refused:
            largest.append(_refused_gap(measure, data.refused))
            continue
        reasons = [_refuse(data, measure, pair.codes) for pair in pairs]
        stated = [pair for pair, reason in zip(pairs, reasons, strict=True) if not reason]
        if not stated:
            largest.append(_refused_gap(measure, next(filter(None, reasons))))
            continue
        values = {pair: measure.between(data.scored, pair.codes) for pair in stated}
        # The first of tied pairs is taken. Rounding must not decide between them.
        worst = max(stated, key=lambda pair: round(values[pair], 12))
        largest.append(_gap(data, measure, worst))
        if len(pairs) > 1:
            by_pair += [
                _gap(data, measure, pair)
                for pair in stated
                if pair is worst or data.reference in pair.codes
            ]
    return tuple(largest), tuple(by_pair)


def _measures(data: Audited) -> list[Measure]:
    """Return the measures that apply: of matched people after others, and relative ones last."""
    settings, has_labels = data.scored.settings, data.people.positive is not None
    found = [
        measure
        for measure in applicable(settings.outcome).values()
        if (has_labels or not measure.needs_labels) and (settings.spread or not measure.is_relative)
    ]
    return sorted(found, key=lambda measure: (measure.is_relative, measure.needs_coupling))


def _matched_gaps(data: Audited, measure: Measure, matchings: Sequence[Matching]) -> list[Gap]:
    """Return the mean score gap of the nearest matching, for each pair of groups."""
    unit = measure.unit_of(data.scored.settings)
    known = "; the standard deviation is taken as known" if measure.is_relative else ""
    method = "people of the smaller group resampled with their nearest people of the other"
    found = []
    for matching in matchings:
        for one in matching.matched_gaps:
            if one.matching == "marginal":
                ends = one.gap.value, one.gap.low, one.gap.high
                value, low, high = (None if end is None else end / unit for end in ends)
                told = (None, None, f"{method}{known}")  # neither a direction nor a test
                gap = Gap(measure.name, measure.symbol, value, low, high, *told)
                found.append(replace(gap, groups=matching.groups))
    return found


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


def _gap(data: Audited, measure: Measure, pair: GroupPair) -> Gap:
    """Return the gap between two groups with its interval."""
    value, signed = (
        measure.between(data.scored, pair.codes),
        measure.signed(data.scored, pair.codes),
    )
    interval = measure.interval_of(pair, data.pair_confidence)
    first, second = (data.labels[code] for code in pair.codes)
    favoured = None
    if signed:
        # Rates are already those of the favourable outcome. Scores are as they were given.
        turned = measure.unit != "share" and data.settings.favourable == "low"
        favoured = second if (signed > 0.0) != turned else first
    return Gap(
        measure.name,
        measure.symbol,
        value,
        interval.low,
        interval.high,
        signed,
        interval.p_value,
        interval.method,
        groups=(first, second),
        favoured=favoured,
    )


def _refused_gap(measure: Measure, reason: str | None) -> Gap:
    nothing = (None,) * 5
    return Gap(measure.name, measure.symbol, *nothing, "no statement", reason)
