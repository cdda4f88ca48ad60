"""What can be said of each group on its own, and of the gaps between the two."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit, logit, ndtri
from scipy.stats import rankdata

from fairmatch.auditing.facts import CalibrationBin, Estimate, Gap, GroupFacts
from fairmatch.measures import MEASURES
from fairmatch.measures.distributions import ScoreDistributions
from fairmatch.measures.intervals import (
    Limits,
    ScoreGrid,
    Spread,
    fold,
    mean_interval,
    mean_of_rate_gaps,
    rate_difference,
    rate_ratio,
    wilson,
)
from fairmatch.tables.arrays import BoolArray, FloatArray
from fairmatch.tables.groups import Groups

SCORE_BINS = 20
CALIBRATION_BINS = 10
# Whole numbers divided, not numpy.linspace: scores such as 0.3 then begin their own interval.
SCORE_EDGES = np.arange(SCORE_BINS + 1) / SCORE_BINS
_CALIBRATION_EDGES = np.arange(CALIBRATION_BINS + 1) / CALIBRATION_BINS

_FOLDED_RATES = "Newcombe's interval of the signed difference, folded at 0"
_FOLDED_MEANS = "Welch's interval of the signed difference, folded at 0"
_DISTANCE = "bootstrap, corrected for upward bias; lower limit 0 unless a permutation test rejects"
_MEAN_OF_GAPS = "binomial bootstrap of both differences, corrected for upward bias"


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores, groups and labels of the rows to audit, with what governs the statements.

    Attributes
    ----------
    scores, groups, positive
        Checked columns; ``positive`` is None without labels.
    threshold, confidence, n_resamples, min_group_size, seed
        As in `fairmatch.audit`.
    """

    scores: FloatArray
    groups: Groups
    positive: BoolArray | None
    threshold: float
    confidence: float
    n_resamples: int
    min_group_size: int
    seed: int

    @cached_property
    def accepted(self) -> BoolArray:
        """Who is accepted."""
        return np.asarray(self.scores >= self.threshold)

    @cached_property
    def labels(self) -> tuple[str, str]:
        """Names of the groups."""
        return str(self.groups.labels[0]), str(self.groups.labels[1])

    @cached_property
    def is_decision(self) -> bool:
        """Whether the scores are 0/1 decisions."""
        return bool(np.isin(self.scores, (0.0, 1.0)).all())

    def generator(self, part: int) -> np.random.Generator:
        """Give each part of the audit a stream of its own, so that none depends on another."""
        return np.random.default_rng([self.seed, part])

    def refuse(self, code: int, n_rows: int, among: str = "") -> str | None:
        """Say why nothing is stated of so few rows of a group."""
        if n_rows >= self.min_group_size:
            return None
        return (
            f"Group {self.labels[code]!r} has {n_rows} rows{among}, fewer than "
            f"min_group_size={self.min_group_size}: too few for a statement."
        )

    @cached_property
    def rows_refused(self) -> str | None:
        """Why nothing is stated that needs both groups."""
        reasons = (self.refuse(code, len(self.groups.rows(code))) for code in (0, 1))
        return next((reason for reason in reasons if reason), None)

    @cached_property
    def grid(self) -> ScoreGrid:
        """Both groups' scores, resampled."""
        scores = self.scores[self.groups.is_group(0)], self.scores[self.groups.is_group(1)]
        return ScoreGrid(
            scores, bins=SCORE_BINS, n_resamples=self.n_resamples, generator=self.generator(0)
        )

    def rate(self, hits: BoolArray, code: int, among: str = "") -> Estimate:
        """Share of hits with its interval, or why there is none."""
        if reason := self.refuse(code, len(hits), among):
            return Estimate(None, refused=reason)
        count = int(hits.sum())
        return Estimate(count / len(hits), *wilson(count, len(hits), self.confidence))


def describe_groups(data: Scored) -> tuple[GroupFacts, GroupFacts]:
    """State what holds in each group."""
    return _describe(data, 0), _describe(data, 1)


def _describe(data: Scored, code: int) -> GroupFacts:
    rows = data.groups.rows(code)
    scores, accepted = data.scores[rows], data.accepted[rows]
    counts = np.histogram(scores, bins=SCORE_EDGES)[0]
    if reason := data.refuse(code, len(rows)):
        mean = Estimate(None, refused=reason)
    else:
        mean = Estimate(float(scores.mean()), *_mean_limits(data, code))
    known = GroupFacts(
        label=data.labels[code],
        n_rows=len(rows),
        selection_rate=data.rate(accepted, code),
        mean_score=mean,
        score_counts=tuple(counts.tolist()),
    )
    if data.positive is None:
        return known
    positive = data.positive[rows]
    bins = _calibration(data, scores, positive)
    return GroupFacts(
        label=known.label,
        n_rows=known.n_rows,
        selection_rate=known.selection_rate,
        mean_score=known.mean_score,
        score_counts=known.score_counts,
        base_rate=data.rate(positive, code),
        accuracy=data.rate(accepted == positive, code),
        true_positive_rate=data.rate(accepted[positive], code, _AMONG[0]),
        false_positive_rate=data.rate(accepted[~positive], code, _AMONG[1]),
        auc=_auc(data, code, scores, positive),
        calibration=bins,
        calibration_error=_calibration_error(bins),
    )


_AMONG = " with a positive label", " with a negative label"


def _mean_limits(data: Scored, code: int) -> Limits:
    rows = data.groups.rows(code)
    if data.is_decision:
        return wilson(float(data.scores[rows].sum()), len(rows), data.confidence)
    low, high = mean_interval(data.scores[rows], data.confidence)
    return max(low, 0.0), min(high, 1.0)


def _auc(data: Scored, code: int, scores: FloatArray, positive: BoolArray) -> Estimate:
    r"""Area under the ROC curve with DeLong's interval on the logit scale.

    With :math:`R` the ranks among all and :math:`R_+` those among the positive,
    :math:`V_i = (R_i - R_{+,i}) / n_-` is the share of the negative below each positive one.
    """
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    for size, among in zip((n_positive, n_negative), _AMONG, strict=True):
        if reason := data.refuse(code, size, among):
            return Estimate(None, refused=reason)
    ranks = rankdata(scores)
    above = (ranks[positive] - rankdata(scores[positive])) / n_negative
    below = 1.0 - (ranks[~positive] - rankdata(scores[~positive])) / n_positive
    value = float(above.mean())
    error = np.sqrt(above.var(ddof=1) / n_positive + below.var(ddof=1) / n_negative)
    if error == 0.0:  # perfectly ranked, or constant: the data do not say how sure that is
        return Estimate(value)
    half = float(ndtri((1 + data.confidence) / 2)) * error / (value * (1.0 - value))
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
            positive_rate=Estimate(hits[k] / n, *wilson(hits[k], n, data.confidence))
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
    """Smaller selection rate over the larger, with its interval."""
    if data.rows_refused:
        return Estimate(None, refused=data.rows_refused)
    counts, sizes = _counts(data, np.ones(len(data.scores), dtype=bool))
    rates = sorted(k / n for k, n in zip(counts, sizes, strict=True))
    if rates[1] == 0.0:
        return Estimate(None, refused="Nobody is accepted, so the selection rates have no ratio.")
    return Estimate(rates[0] / rates[1], *rate_ratio(counts, sizes, data.confidence))


def _counts(data: Scored, among: BoolArray) -> tuple[tuple[int, int], tuple[int, int]]:
    """Count the accepted and all people of each group, among some rows."""
    codes = data.groups.codes[among]
    sizes = np.bincount(codes, minlength=2).tolist()
    hits = np.bincount(codes, data.accepted[among], minlength=2).astype(int).tolist()
    return (hits[0], hits[1]), (sizes[0], sizes[1])


def take_gaps(data: Scored) -> tuple[Gap, ...]:
    """Take every gap that scores, groups and labels allow, with intervals."""
    distances = ScoreDistributions(data.scores, data.groups)
    everybody = np.ones(len(data.scores), dtype=bool)
    gaps = [_rate_gap(data, "demographic_parity_gap", everybody)]
    means = distances.rates(None)
    values = {
        "mean_parity_gap": distances.rate_gap(None),
        "wasserstein_parity_gap": distances.wasserstein,
        "total_variation_parity_gap": distances.total_variation(SCORE_BINS),
        "ks_parity_gap": distances.kolmogorov_smirnov,
    }
    for name, value in values.items():
        signed = float(means[1] - means[0]) if name == "mean_parity_gap" else None
        if data.rows_refused:
            gaps.append(_refused_gap(name, data.rows_refused))
            continue
        spread, method = _score_spread(data, name)
        gaps.append(_gap(name, value, (spread.low, spread.high), signed, spread.p_value, method))
    if data.positive is not None:
        gaps += _label_gaps(data)
    return tuple(gaps)


def _gap(
    name: str,
    value: float,
    limits: Limits,
    signed: float | None,
    p_value: float | None,
    method: str,
) -> Gap:
    # The estimate comes from all scores and the limits from cells of them: keep them in order.
    low, high = min(limits[0], value), max(limits[1], value)
    return Gap(name, MEASURES[name].symbol, value, low, min(high, 1.0), signed, p_value, method)


def _refused_gap(name: str, reason: str) -> Gap:
    symbol = MEASURES[name].symbol
    return Gap(name, symbol, None, None, None, None, None, "no statement", reason)


def _score_spread(data: Scored, name: str) -> tuple[Spread, str]:
    if data.is_decision:
        # Of decisions, each of these gaps is the difference of the two rates.
        sums = [float(data.scores[data.groups.rows(code)].sum()) for code in (0, 1)]
        sizes = len(data.groups.rows(0)), len(data.groups.rows(1))
        limits = rate_difference((sums[0], sums[1]), sizes, data.confidence)
        return Spread(*fold(limits)), _FOLDED_RATES
    if name == "mean_parity_gap":
        return data.grid.mean_gap(data.confidence), _FOLDED_MEANS
    spread = {
        "wasserstein_parity_gap": data.grid.wasserstein,
        "total_variation_parity_gap": data.grid.total_variation,
        "ks_parity_gap": data.grid.kolmogorov_smirnov,
    }[name]
    return spread(data.confidence), _DISTANCE


def _rate_gap(data: Scored, name: str, among: BoolArray, where: str = "") -> Gap:
    counts, sizes = _counts(data, among)
    for code in (0, 1):
        if reason := data.refuse(code, sizes[code], where):
            return _refused_gap(name, reason)
    signed = counts[1] / sizes[1] - counts[0] / sizes[0]
    limits = fold(rate_difference(counts, sizes, data.confidence))
    return _gap(name, abs(signed), limits, signed, None, _FOLDED_RATES)


def _label_gaps(data: Scored) -> list[Gap]:
    assert data.positive is not None
    parts = data.positive, ~data.positive
    names = "true_positive_gap", "false_positive_gap"
    gaps = [
        _rate_gap(data, name, part, where)
        for name, part, where in zip(names, parts, _AMONG, strict=True)
    ]
    name = "equalized_odds_gap"
    if reason := next((gap.refused for gap in gaps if gap.refused), None):
        return [*gaps, _refused_gap(name, reason)]
    counts, sizes = zip(*(_counts(data, part) for part in parts), strict=True)
    limits = mean_of_rate_gaps(
        counts,
        sizes,
        data.confidence,
        n_resamples=data.n_resamples,
        generator=data.generator(1),
    )
    value = sum(gap.value for gap in gaps if gap.value is not None) / 2.0
    return [*gaps, _gap(name, value, limits, None, None, _MEAN_OF_GAPS)]
