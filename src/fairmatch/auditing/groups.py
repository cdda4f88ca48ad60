"""What can be said of each group on its own, and the ratio of their selection rates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import expit, logit, ndtri
from scipy.stats import rankdata

from fairmatch.auditing.facts import CalibrationBin, Estimate, GroupFacts
from fairmatch.auditing.scored import Scored
from fairmatch.measures.closed_forms import Limits, mean_interval, rate_ratio, wilson
from fairmatch.tables.arrays import BoolArray, FloatArray

SCORE_BINS = 20
CALIBRATION_BINS = 10
# Whole numbers divided, not numpy.linspace: scores such as 0.3 then begin their own interval.
SCORE_EDGES = np.arange(SCORE_BINS + 1) / SCORE_BINS
_CALIBRATION_EDGES = np.arange(CALIBRATION_BINS + 1) / CALIBRATION_BINS

# Where a group is too small: among whom.
AMONG = {True: " with a positive label", False: " with a negative label"}


def describe_groups(data: Scored) -> tuple[GroupFacts, ...]:
    """Return what holds in each group."""
    return tuple(_describe(data, code) for code in range(len(data.labels)))


def _describe(data: Scored, code: int) -> GroupFacts:
    rows = data.groups.rows(code)
    scores, selected = data.scores[rows], data.selected[rows]
    counts = np.histogram(scores, bins=SCORE_EDGES)[0]
    if reason := data.refuse(code, len(rows)):
        mean = Estimate(None, refused=reason)
    else:
        mean = Estimate(float(scores.mean()), *_mean_limits(data, code))
    known = GroupFacts(
        label=data.labels[code],
        n_rows=len(rows),
        selection_rate=data.rate(selected, code),
        mean_score=mean,
        score_counts=tuple(counts.tolist()),
    )
    if data.positive is None:
        return known
    positive = data.positive[rows]
    bins = _calibration(data, scores, positive)
    return replace(
        known,
        base_rate=data.rate(positive, code),
        accuracy=data.rate(selected == positive, code),
        true_positive_rate=data.rate(selected[positive], code, AMONG[True]),
        false_positive_rate=data.rate(selected[~positive], code, AMONG[False]),
        auc=_auc(data, code, scores, positive),
        calibration=bins,
        calibration_error=_calibration_error(bins),
    )


def _mean_limits(data: Scored, code: int) -> Limits:
    rows = data.groups.rows(code)
    if data.is_decision:
        return wilson(float(data.scores[rows].sum()), len(rows), data.settings.confidence)
    low, high = mean_interval(data.scores[rows], data.settings.confidence)
    return max(low, 0.0), min(high, 1.0)


def _auc(data: Scored, code: int, scores: FloatArray, positive: BoolArray) -> Estimate:
    r"""Area under the ROC curve with DeLong's interval on the logit scale.

    With :math:`R` the ranks among all and :math:`R_+` those among the positive,
    :math:`V_i = (R_i - R_{+,i}) / n_-` is the share of the negative below each positive one.
    """
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    for size, among in zip((n_positive, n_negative), AMONG.values(), strict=True):
        if reason := data.refuse(code, size, among):
            return Estimate(None, refused=reason)
    ranks = rankdata(scores)
    above = (ranks[positive] - rankdata(scores[positive])) / n_negative
    below = 1.0 - (ranks[~positive] - rankdata(scores[~positive])) / n_positive
    value = float(above.mean())
    error = np.sqrt(above.var(ddof=1) / n_positive + below.var(ddof=1) / n_negative)
    if error == 0.0:  # perfectly ranked, or constant: the data do not say how sure that is
        return Estimate(value)
    half = float(ndtri((1 + data.settings.confidence) / 2)) * error / (value * (1.0 - value))
    return Estimate(value, float(expit(logit(value) - half)), float(expit(logit(value) + half)))


def _calibration(
    data: Scored, scores: FloatArray, positive: BoolArray
) -> tuple[CalibrationBin, ...]:
    edges = _CALIBRATION_EDGES
    at = np.searchsorted(edges[1:-1], scores, side="right")
    n_rows = np.bincount(at, minlength=CALIBRATION_BINS).tolist()
    hits = np.bincount(at[positive], minlength=CALIBRATION_BINS).tolist()
    sums = np.bincount(at, scores, minlength=CALIBRATION_BINS).tolist()
    return tuple(
        CalibrationBin(
            low=float(edges[k]),
            high=float(edges[k + 1]),
            n_rows=n,
            mean_score=sums[k] / n if n else None,
            positive_rate=Estimate(hits[k] / n, *wilson(hits[k], n, data.settings.confidence))
            if n
            else Estimate(None, refused="No score falls into this interval."),
        )
        for k, n in enumerate(n_rows)
    )


def _calibration_error(bins: tuple[CalibrationBin, ...]) -> float:
    error = 0.0
    for part in bins:
        if part.mean_score is not None and part.positive_rate.value is not None:
            error += part.n_rows * abs(part.mean_score - part.positive_rate.value)
    return error / sum(part.n_rows for part in bins)


def selection_ratio(data: Scored) -> Estimate:
    """Return the smallest selection rate over the largest, with its interval."""
    if data.refused:
        return Estimate(None, refused=data.refused)
    counts, _ = data.counts(None)
    rates = {code: counts[code] / data.sizes[code] for code in data.compared}
    order = sorted(data.compared, key=rates.__getitem__)
    smallest, largest = rates[order[0]], rates[order[-1]]
    if largest == 0.0:
        return Estimate(None, refused="Nobody is accepted, so the selection rates have no ratio.")
    first, second = sorted((order[0], order[-1]))
    hits, sizes = (counts[first], counts[second]), (data.sizes[first], data.sizes[second])
    return Estimate(smallest / largest, *rate_ratio(hits, sizes, data.pair_confidence))
