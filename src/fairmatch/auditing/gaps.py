"""The gaps between two groups, with intervals, and the facts about each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from fairmatch.auditing.facts import CalibrationBin, Estimate, Gap, GroupFacts
from fairmatch.auditing.people import Scored, difference_limits, mean_limits
from fairmatch.matching.coupling import IndexArray
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
from fairmatch.people.checks import BoolArray, FloatArray
from fairmatch.people.groups import Groups
from fairmatch.people.weights import Weights

# As in `ScoreGrid`, more cells change no limit by more than its Monte Carlo error.
_CELLS = 512


class WeightedGrid(ScoreGrid):
    r"""The weighted scores of two groups, counted in cells and resampled many times at once.

    Parameters
    ----------
    scores : two arrays
        Scores of each group.
    weights : two Weights
        Their weights.
    bins : int
        Number of equal intervals for the total variation; no cell crosses their borders.
    n_resamples : int
        How many resamples to draw.
    generator : numpy Generator
        Source of the random draws.

    Notes
    -----
    A resample draws as many people as the weights of a group are worth (`Weights.size`), from
    the weighted distribution of the scores. To test equality, both groups are drawn from the
    weighted distribution of all people. These draws take the place of permutations.
    """

    def __init__(
        self,
        scores: Sequence[FloatArray],
        weights: Sequence[Weights],
        *,
        bins: int,
        n_resamples: int,
        generator: np.random.Generator,
    ) -> None:
        self._bin_borders = np.linspace(0.0, 1.0, bins + 1)[1:-1]
        self.sizes = max(round(weights[0].size), 1), max(round(weights[1].size), 1)
        shares = [_shares(own) * size for own, size in zip(weights, self.sizes, strict=True)]
        borders = np.union1d(
            _borders(np.concatenate(scores), np.concatenate(shares)), self._bin_borders
        )
        cells = [np.searchsorted(borders, own, side="right") for own in scores]
        counts = np.stack(
            [
                np.bincount(at, own, minlength=len(borders) + 1)
                for at, own in zip(cells, shares, strict=True)
            ]
        )
        sums = np.zeros(len(borders) + 1)
        for at, own, values in zip(cells, shares, scores, strict=True):
            sums += np.bincount(at, own * values, minlength=len(borders) + 1)
        kept = counts.sum(axis=0) > 0
        self.counts = counts[:, kept]
        self.values: FloatArray = sums[kept] / self.counts.sum(axis=0)
        self._starts = self._bin_starts(np.append(-np.inf, borders)[kept])
        self._scores = scores[0], scores[1]
        self._weights = weights[0], weights[1]
        own_shares = [k / k.sum() for k in self.counts]
        estimate = own_shares[0] - own_shares[1]
        self._estimate = np.cumsum(estimate)
        first, second = self._draw(own_shares, n_resamples, generator)
        self._noise = np.cumsum(first - second - estimate, axis=1)
        pooled = self.counts.sum(axis=0) / self.counts.sum()
        first, second = self._draw([pooled, pooled], n_resamples, generator)
        self._permuted = np.cumsum(first - second, axis=1)

    def _draw(
        self, shares: Sequence[FloatArray], n_resamples: int, generator: np.random.Generator
    ) -> list[FloatArray]:
        return [
            generator.multinomial(size, own, size=n_resamples) / size
            for size, own in zip(self.sizes, shares, strict=True)
        ]

    def mean_gap(self, confidence: float) -> Spread:
        """Compute the interval of the gap between mean scores: that of the difference, folded."""
        return Spread(*self._difference(*self._scores, confidence))

    def _slope_limit(self, widths: FloatArray, confidence: float) -> float:
        """Return the upper limit of the gap between the means of a function of the score.

        Of all functions with slopes 1 and -1, it is the one whose gap is largest in the sample.
        """
        heights = np.append(0.0, np.cumsum(-np.sign(self._estimate[:-1]) * widths))
        first, second = (np.interp(own, self.values, heights) for own in self._scores)
        return self._difference(first, second, confidence)[1]

    def _difference(
        self, first: FloatArray, second: FloatArray, confidence: float
    ) -> tuple[float, float]:
        before, after = self._weights
        return fold(difference_limits(before.moments(first), after.moments(second), confidence))


def _shares(weights: Weights) -> FloatArray:
    assert weights.values is not None
    shares: FloatArray = weights.values / weights.total
    return shares


def _borders(scores: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the different scores, or quantiles of them if there are more scores than cells."""
    order = np.argsort(scores, kind="stable")
    ordered, mass = scores[order], np.cumsum(weights[order])
    different: FloatArray = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    if len(different) <= _CELLS:
        return different
    at = np.searchsorted(mass, np.linspace(0.0, mass[-1], _CELLS + 1)[1:-1])
    borders: FloatArray = np.unique(ordered[np.minimum(at, len(ordered) - 1)])
    return borders


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


def _histogram(scores: FloatArray, weights: Weights) -> tuple[int, ...]:
    """Count people in intervals of scores. With survey weights, round shares to whole numbers."""
    shares = np.histogram(scores.round(ROUNDED), bins=SCORE_EDGES, weights=weights.values)[0]
    if not weights.is_survey:
        return tuple(np.rint(shares).astype(int).tolist())
    exact = shares * (weights.n_rows / weights.total)
    counts = np.floor(exact).astype(int)
    missing = weights.n_rows - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:missing]] += 1
    return tuple(counts.tolist())


def _mean_limits(data: Scored, scores: FloatArray, weights: Weights) -> Limits:
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
    data: Scored, code: int, scores: FloatArray, positive: BoolArray, weights: Weights
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
    data: Scored, scores: FloatArray, positive: BoolArray, weights: Weights
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


# How intervals are made: for people, and with survey weights.
_METHODS = {
    "rates": "Newcombe's interval of the signed difference, folded at 0",
    "means": "Newcombe's interval carried over to means, of the signed difference, folded at 0",
    "distances": "bootstrap, corrected for upward bias; lower limit 0 unless a permutation test "
    "rejects",
    "many": "bootstrap, corrected for upward bias; many pairs, so lower limit in closed form",
    "odds": "binomial bootstrap of both differences, corrected for upward bias",
}
_EFFECTIVE = "with the effective number of people"
_SURVEY_METHODS = {
    "rates": f"Newcombe's interval of the signed difference, {_EFFECTIVE}, folded at 0",
    "means": "Welch's interval of the signed difference of weighted means, folded at 0",
    "distances": f"bootstrap {_EFFECTIVE}, corrected for upward bias; lower limit 0 unless a "
    "bootstrap test of equality rejects",
    "many": f"bootstrap {_EFFECTIVE}, corrected for upward bias; many pairs, so lower limit in "
    "closed form",
    "odds": f"binomial bootstrap of both differences {_EFFECTIVE}, corrected for upward bias",
}

# Differences of selection rates: over everybody, or over those with one label.
_RATES: dict[str, bool | None] = {
    "demographic_parity_gap": None,
    "true_positive_gap": True,
    "false_positive_gap": False,
}
_SCORES = (
    "mean_parity_gap",
    "wasserstein_parity_gap",
    "total_variation_parity_gap",
    "ks_parity_gap",
)
_ODDS = "equalized_odds_gap"
# The total variation is left out, because it depends on where the range of predictions is cut.
_PREDICTIONS = "mean_parity_gap", "wasserstein_parity_gap", "ks_parity_gap"


def take_gaps(data: Scored) -> tuple[tuple[Gap, ...], tuple[Gap, ...]]:
    """Return every gap that scores, groups and labels allow, with intervals.

    Parameters
    ----------
    data : Scored
        The rows to audit.

    Returns
    -------
    gaps : tuple of Gap
        One per measure: the largest over the pairs of groups.
    by_pair : tuple of Gap
        The same measures for each pair with the reference group, and for the pair with the largest
        gap. It is empty for two groups, which make only one pair.
    """
    names = ["demographic_parity_gap", *_SCORES]
    if data.settings.is_real:
        names = [*_PREDICTIONS]
    elif data.positive is not None:
        names += ["true_positive_gap", "false_positive_gap", _ODDS]
    if data.refused:
        return tuple(_refused_gap(name, data.refused) for name in names), ()
    pairs = [GroupPair(data, codes) for codes in data.pairs]
    largest, by_pair = [], []
    for name in names:
        reasons = [pair.refuse(name) for pair in pairs]
        stated = [pair for pair, reason in zip(pairs, reasons, strict=True) if not reason]
        if not stated:
            largest.append(_refused_gap(name, next(filter(None, reasons))))
            continue
        # The first of tied pairs is taken. Rounding must not decide between them.
        worst = max(stated, key=lambda pair: round(pair.value(name), 12))
        largest.append(worst.gap(name))
        if len(pairs) > 1:
            by_pair += [
                pair.gap(name) for pair in stated if pair is worst or data.reference in pair.codes
            ]
    return tuple(largest), tuple(by_pair)


@dataclass(frozen=True, eq=False)
class GroupPair:
    """Two groups of the rows to audit, ready to be compared.

    Attributes
    ----------
    data : Scored
        The rows to audit.
    codes : tuple of two int
        Codes of the first group and of the second.
    """

    data: Scored
    codes: tuple[int, int]

    @cached_property
    def _distances(self) -> ScoreDistributions:
        first, second = self._rows
        rows = np.concatenate([first, second])
        codes = np.repeat(np.array([0, 1], dtype=np.int8), [len(first), len(second)])
        weights = self.data.weights.take(rows).values
        return ScoreDistributions(self.data.scores[rows], Groups(codes, self._labels), weights)

    @property
    def _rows(self) -> list[IndexArray]:
        return [self.data.groups.rows(code) for code in self.codes]

    @cached_property
    def _weights(self) -> list[Weights]:
        return [self.data.weights.take(rows) for rows in self._rows]

    @cached_property
    def _grid(self) -> ScoreGrid:
        """The scores of both groups, resampled."""
        scores = self._distances.scores[0], self._distances.scores[1]
        n_resamples = self.data.settings.n_resamples
        generator = self.data.pair_generator(0, self.codes)
        if self.data.weights.is_survey:
            return WeightedGrid(
                scores, self._weights, bins=SCORE_BINS, n_resamples=n_resamples, generator=generator
            )
        return ScoreGrid(
            scores,
            bins=SCORE_BINS,
            n_resamples=n_resamples,
            generator=generator,
            people=[own.values for own in self._weights],
        )

    @property
    def _labels(self) -> tuple[str, str]:
        return self.data.labels[self.codes[0]], self.data.labels[self.codes[1]]

    def _counts(self, label: bool | None) -> tuple[tuple[float, float], tuple[int, int]]:
        """Count the selected people and all people of each group, among those with a label."""
        hits, sizes = self.data.counts(label)
        first, second = self.codes
        return (hits[first], hits[second]), (sizes[first], sizes[second])

    def refuse(self, name: str) -> str | None:
        """Return why a gap is not stated, or None if it is."""
        for label in (True, False) if name == _ODDS else (_RATES.get(name),):
            if label is None:
                continue
            _, sizes = self._counts(label)
            for code, size in zip(self.codes, sizes, strict=True):
                if reason := self.data.refuse(code, size, self.data.among(label)):
                    return reason
        return None

    def signed(self, name: str) -> float | None:
        """Return the second group's rate or mean minus the first's, or None for other gaps."""
        if name in _RATES:
            counts, sizes = self._counts(_RATES[name])
            return counts[1] / sizes[1] - counts[0] / sizes[0]
        if name == "mean_parity_gap":
            means = self._distances.rates(None)
            return float(means[1] - means[0])
        return None

    def value(self, name: str) -> float:
        """Return the value of a gap."""
        if name == _ODDS:
            return (self.value("true_positive_gap") + self.value("false_positive_gap")) / 2.0
        if name == "wasserstein_parity_gap":
            return self._distances.wasserstein
        if name == "total_variation_parity_gap":
            return self._distances.total_variation(SCORE_BINS)
        if name == "ks_parity_gap":
            return self._distances.kolmogorov_smirnov
        signed = self.signed(name)
        assert signed is not None
        return abs(signed)

    def gap(self, name: str) -> Gap:
        """Return a gap with its interval."""
        value, (spread, kind) = self.value(name), self._spread(name)
        methods = _SURVEY_METHODS if self.data.weights.is_survey else _METHODS
        # The estimate comes from all scores and the limits from cells of them: keep their order.
        low, high = min(spread.low, value), min(max(spread.high, value), 1.0)
        symbol = MEASURES[name].symbol
        facts = (value, low, high, self.signed(name), spread.p_value, methods[kind])
        return Gap(name, symbol, *facts, groups=self._labels, favoured=self._favoured(name))

    def _favoured(self, name: str) -> str | None:
        """Return the group that is better off, or None where a gap has no direction."""
        signed = self.signed(name)
        if not signed:
            return None
        # Rates are already those of the favourable outcome. Scores are as they were given.
        turned = name == "mean_parity_gap" and self.data.settings.favourable == "low"
        return self._labels[int((signed > 0.0) != turned)]

    def _spread(self, name: str) -> tuple[Spread, str]:
        """Return the interval of a gap, and how it is made."""
        confidence = self.data.pair_confidence
        if name in _RATES:
            limits = fold(rate_difference(*self._counts(_RATES[name]), confidence))
            return Spread(*limits), "rates"
        if name == _ODDS:
            return Spread(*self._odds_limits(confidence)), "odds"
        if self.data.is_decision:
            # For decisions, every other gap is the difference of the two groups' shares of ones.
            ones = zip(self._weights, self._distances.scores, strict=True)
            rates = [weights.rate(scores > 0.0) for weights, scores in ones]
            sizes = max(round(rates[0][1]), 1), max(round(rates[1][1]), 1)
            hits = rates[0][0] * sizes[0], rates[1][0] * sizes[1]
            limits = rate_difference(hits, sizes, confidence)
            return Spread(*fold(limits)), "rates"
        if name == "mean_parity_gap":
            return self._grid.mean_gap(confidence), "means"
        spread = {
            "wasserstein_parity_gap": self._grid.wasserstein,
            "total_variation_parity_gap": self._grid.total_variation,
            "ks_parity_gap": self._grid.kolmogorov_smirnov,
        }[name]
        return spread(confidence), "distances" if self._grid.reaches(confidence) else "many"

    def _odds_limits(self, confidence: float) -> Limits:
        counts, sizes = zip(*(self._counts(label) for label in (True, False)), strict=True)
        return mean_of_rate_gaps(
            counts,
            sizes,
            confidence,
            n_resamples=self.data.settings.n_resamples,
            generator=self.data.pair_generator(1, self.codes),
        )


def _refused_gap(name: str, reason: str | None) -> Gap:
    symbol = MEASURES[name].symbol
    return Gap(name, symbol, None, None, None, None, None, "no statement", reason)
