"""The facts about each group on its own, and the ratio of the groups' selection rates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from fairmatch.auditing.facts import CalibrationBin, Estimate, GroupFacts
from fairmatch.auditing.scored import Scored
from fairmatch.auditing.weighting import RowWeights, mean_limits
from fairmatch.measures.closed_forms import Limits, mean_interval, rate_ratio, wilson
from fairmatch.tables.arrays import BoolArray, FloatArray

SCORE_BINS = 20
CALIBRATION_BINS = 10
ROUNDED = 9
"""Digits of a score, or of a difference of two, that are more than rounding errors."""
# Dividing whole numbers, unlike numpy.linspace, lets scores such as 0.3 begin their own interval.
SCORE_EDGES = np.arange(SCORE_BINS + 1) / SCORE_BINS
_CALIBRATION_EDGES = np.arange(CALIBRATION_BINS + 1) / CALIBRATION_BINS


def few_values(data: Scored) -> tuple[float, ...]:
    """Return the different scores, or none if there are more of them than intervals."""
    values = np.unique(data.scores.round(ROUNDED))
    return tuple(values.tolist()) if len(values) <= SCORE_BINS else ()


def describe_groups(data: Scored) -> tuple[GroupFacts, ...]:
    """Return the facts about each group."""
    return tuple(_describe(data, code) for code in range(len(data.labels)))


def _describe(data: Scored, code: int) -> GroupFacts:
    rows = data.groups.rows(code)
    scores, weights = data.scores[rows], data.weights.take(rows)
    selected = None if data.settings.is_real else data.selected[rows]
    if reason := data.refuse(code, weights.size):
        mean = Estimate(None, refused=reason)
    else:
        mean = Estimate(weights.moments(scores).mean, *_mean_limits(data, scores, weights))
    known = GroupFacts(
        label=data.labels[code],
        n_rows=weights.people,
        selection_rate=Estimate(None) if selected is None else data.rate(selected, weights, code),
        mean_score=mean,
        score_counts=_histogram(scores, weights),
        weight=None if weights.values is None else weights.total,
        effective_size=weights.size if weights.is_survey else None,
    )
    if selected is None or data.positive is None or data.deserving is None:
        return known
    deserving, positive = data.deserving[rows], data.positive[rows]
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


def _histogram(scores: FloatArray, weights: RowWeights) -> tuple[int, ...]:
    """Count people in intervals of scores. With survey weights, round shares to whole numbers."""
    shares = np.histogram(scores.round(ROUNDED), bins=SCORE_EDGES, weights=weights.values)[0]
    if not weights.is_survey:
        return tuple(np.rint(shares).astype(int).tolist())
    exact = shares * (weights.n_rows / weights.total)
    counts = np.floor(exact).astype(int)
    missing = weights.n_rows - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:missing]] += 1
    return tuple(counts.tolist())


def _mean_limits(data: Scored, scores: FloatArray, weights: RowWeights) -> Limits:
    confidence = data.settings.confidence
    if data.is_decision:
        share, size = weights.rate(scores > 0.0)
        people = max(round(size), 1)
        return wilson(share * people, people, confidence)
    if weights.is_survey:
        low, high = mean_limits(weights.moments(scores), confidence)
    else:
        low, high = mean_interval(scores, confidence, counts=weights.values)
    return max(low, 0.0), min(high, 1.0)


def _auc(
    data: Scored, code: int, scores: FloatArray, positive: BoolArray, weights: RowWeights
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


def _share_below(scores: FloatArray, others: FloatArray, weights: RowWeights) -> FloatArray:
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
    data: Scored, scores: FloatArray, positive: BoolArray, weights: RowWeights
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


def _calibration_error(scores: FloatArray, positive: BoolArray, weights: RowWeights) -> float:
    ones = np.ones(len(scores)) if weights.values is None else weights.values
    off = np.bincount(_bin_of(scores), ones * (scores - positive), minlength=CALIBRATION_BINS)
    return float(np.abs(off).sum() / ones.sum())


def selection_ratio(data: Scored) -> Estimate:
    """Return the smallest selection rate divided by the largest, with its interval."""
    if data.settings.is_real:
        return Estimate(None)
    if data.refused:
        return Estimate(None, refused=data.refused)
    counts, sizes = data.counts(None)
    rates = {code: counts[code] / sizes[code] for code in data.compared}
    order = sorted(data.compared, key=rates.__getitem__)
    smallest, largest = rates[order[0]], rates[order[-1]]
    if largest == 0.0:
        who = data.settings.named_outcome
        return Estimate(None, refused=f"Nobody is {who}, so the selection rates have no ratio.")
    first, second = sorted((order[0], order[-1]))
    hits, people = (counts[first], counts[second]), (sizes[first], sizes[second])
    return Estimate(smallest / largest, *rate_ratio(hits, people, data.pair_confidence))
