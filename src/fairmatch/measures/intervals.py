"""Confidence intervals: in closed form, and by resampling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtri, stdtrit

from fairmatch.matching.network import cheapest_plan
from fairmatch.measures.distributions import (
    GroupScores,
    ScoredPeople,
    Settings,
    bin_borders,
    half_l1,
    joined_points,
)
from fairmatch.measures.exact import largest_gap_limit
from fairmatch.people.checks import FloatArray
from fairmatch.people.outcome import Outcome
from fairmatch.people.weights import Moments, Weights

Limits: TypeAlias = tuple[float, float]
Counts: TypeAlias = tuple[float, float]
Sizes: TypeAlias = tuple[Any, Any]

# Up to this many people on one side, the limits are those of a Poisson count.
_FEW = 2


# An estimate, and how far the truth may lie below it and above it: numbers, or arrays of them.
Margins: TypeAlias = tuple[Any, Any, Any]


def wilson(count: float, n_rows: int, confidence: float) -> Limits:
    """Return Wilson's interval of a rate, which is sound at 0 and 1 too."""
    low, high = _wilson(np.asarray(count, dtype=np.float64), n_rows, confidence)
    return float(low), float(high)


def _wilson(counts: FloatArray, n_rows: int, confidence: float) -> tuple[FloatArray, FloatArray]:
    z2 = float(ndtri((1.0 + confidence) / 2.0)) ** 2
    rates = counts / n_rows
    centres = rates + z2 / (2 * n_rows)
    spreads = np.sqrt(z2 * (rates * (1.0 - rates) / n_rows + z2 / (4 * n_rows**2)))
    low, high = (centres - spreads) / (1 + z2 / n_rows), (centres + spreads) / (1 + z2 / n_rows)
    return (
        np.where(counts == 0, 0.0, np.maximum(low, 0.0)),
        np.where(counts == n_rows, 1.0, np.minimum(high, 1.0)),
    )


def _rate_margins(counts: FloatArray, n_rows: int, confidence: float) -> Margins:
    """Return Wilson's margins, made wider where only one or two people are on one side.

    Wilson's limits are too narrow there. For example, let the rate be one in three hundred. About a
    tenth of all samples of thirty people have one hit, and Wilson's lower limit is then above the
    true rate. Brown, Cai and DasGupta (2001) use the limits of a Poisson count instead.
    """
    low, high = _wilson(counts, n_rows, confidence)
    rest = n_rows - counts
    few = gammaincinv(np.clip(counts, 1e-9, None), 1.0 - confidence) / n_rows
    many = 1.0 - gammaincinv(np.clip(rest, 1e-9, None), 1.0 - confidence) / n_rows
    low = np.where((counts > 0) & (counts <= _FEW), np.minimum(low, few), low)
    high = np.where((rest > 0) & (rest <= _FEW), np.maximum(high, many), high)
    rates = counts / n_rows
    return rates, rates - low, high - rates


def _difference(first: Margins, second: Margins) -> tuple[Any, Any]:
    """Return the interval of the second estimate minus the first, as Newcombe combines two."""
    (value0, below0, above0), (value1, below1, above1) = first, second
    difference = value1 - value0
    return difference - np.hypot(below1, above0), difference + np.hypot(above1, below0)


def rate_difference(counts: Counts, n_rows: Sizes, confidence: float) -> Limits:
    """Return Newcombe's interval of the second rate minus the first, from two Wilson intervals.

    Wilson's limits are too narrow where only one or two people of a group are on one side. The
    limits of a Poisson count then take their place.
    """
    low, high = rate_differences(np.array(counts, dtype=np.float64), n_rows, confidence)
    return float(low), float(high)


def rate_differences(
    counts: FloatArray, n_rows: Sizes, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Return the intervals of many differences of rates at once, from counts of shape (2, n)."""
    first, second = (
        _rate_margins(own, n, confidence) for own, n in zip(counts, n_rows, strict=True)
    )
    return _difference(first, second)


def rate_over_rate(
    counts: Counts, n_rows: Sizes, confidence: float, correlation: float = 0.0
) -> Limits:
    """Return the interval of the first rate over the second, which may exceed 1.

    The two Wilson intervals are combined as Donner and Zou combine limits for a ratio. The result
    is usable even where the first rate is 0. The two estimates are correlated if they have people
    in common.
    """
    (low0, high0), (low1, high1) = (
        wilson(k, n, confidence) for k, n in zip(counts, n_rows, strict=True)
    )
    rate0, rate1 = counts[0] / n_rows[0], counts[1] / n_rows[1]
    if rate0 == rate1 > 0.0 and correlation > 1.0 - 1e-9:
        return 1.0, 1.0  # the same people
    low = _ratio_limit(rate0, rate1, low0, high1, -1.0, correlation)
    return low, _ratio_limit(rate0, rate1, high0, low1, 1.0, correlation)


def _ratio_limit(
    rate0: float, rate1: float, limit0: float, limit1: float, side: float, correlation: float
) -> float:
    scale = limit1 * (2 * rate1 - limit1)
    if scale == 0.0:
        return 0.0 if side < 0 else float("inf")
    product = rate0 * rate1 - correlation * (rate0 - limit0) * (limit1 - rate1)
    root = np.sqrt(max(product**2 - limit0 * (2 * rate0 - limit0) * scale, 0.0))
    return float(max((product + side * root) / scale, 0.0))


def detectable(error: float, confidence: float, power: float = 0.8) -> float:
    """Return the smallest true difference that an estimate with this standard error would show.

    Its two-sided test of this confidence rejects with probability ``power``.
    """
    return error * float(ndtri((1.0 + confidence) / 2.0) + ndtri(power))


def fold(limits: Limits) -> Limits:
    """Return the interval of an absolute difference, given that of the signed difference."""
    low, high = limits
    return max(low, -high, 0.0), max(-low, high)


def mean_interval(
    values: FloatArray, weights: Weights, confidence: float, within: Limits = (0.0, 1.0)
) -> Limits:
    r"""Return the interval of a mean of numbers within known bounds.

    Notes
    -----
    A share :math:`\varepsilon` of the people may have a score at a bound, although none of them is
    in the sample. Let :math:`d` be the distance of the bound from the sample's mean. The mean then
    moves by :math:`\varepsilon d`, and the variance becomes :math:`(1 - \varepsilon) (s^2 +
    \varepsilon d^2)`. The interval holds every mean for which

    .. math:: \varepsilon d \le t \sqrt{(1 - \varepsilon)(s^2 + \varepsilon d^2) / n}

    with Student's quantile :math:`t` and the variance :math:`s^2` over :math:`n - 1`. From
    :math:`n \ge 50 t^2` on, which is 200 people at 95 %, it is Student's own interval
    :math:`t s / \sqrt n`, unless all numbers are equal: the sample is then large enough to show
    the spread of the scores. The rule depends on the number of people alone, because taking the
    narrower of two intervals would lose coverage. With survey weights it is always Student's
    interval.
    """
    if weights.is_survey:
        moments = weights.moments(values)
        half = _half_width((moments,), confidence, within[1] - within[0])
        return moments.mean - half, moments.mean + half
    mean, below, above = _mean_margins(values, confidence, within, weights.values)
    return mean - below, mean + above


# From this many people on, as a multiple of the squared quantile, means have Student's interval. In
# simulations with skewed scores it covers 93 % and more from 200 people on (95 % interval).
_MANY = 50.0


def _mean_margins(
    values: FloatArray, confidence: float, within: Limits, counts: FloatArray | None
) -> Margins:
    n_rows = len(values) if counts is None else round(float(counts.sum()))
    mean = float(np.average(values, weights=counts))
    if n_rows < 2:  # one number does not show how much numbers differ
        return mean, mean - within[0], within[1] - mean
    variance = float(np.average((values - mean) ** 2, weights=counts)) * n_rows / (n_rows - 1)
    t = -float(stdtrit(n_rows - 1, (1.0 - confidence) / 2.0))
    if n_rows >= _MANY * t**2 and variance > 0.0:
        half = float(t * np.sqrt(variance / n_rows))
        return mean, min(half, mean - within[0]), min(half, within[1] - mean)
    below, above = (_margin(abs(mean - bound), variance, n_rows / t**2) for bound in within)
    return mean, below, above


def _margin(distance: float, variance: float, n_rows: float) -> float:
    """Solve the equation of `mean_interval` for how far the mean moves towards a bound."""
    if distance == 0.0:
        return 0.0
    # With v = variance / distance^2, the equation is (n + 1) e^2 - (1 - v) e - v = 0.
    relative = variance / distance**2
    linear = 1.0 - relative
    root = np.sqrt(linear**2 + 4.0 * (n_rows + 1.0) * relative)
    return float(distance * (linear + root) / (2.0 * (n_rows + 1.0)))


def mean_difference(
    first: FloatArray,
    second: FloatArray,
    confidence: float,
    *,
    within: Limits = (0.0, 1.0),
    counts: Sequence[FloatArray | None] = (None, None),
) -> Limits:
    """Return the interval of the second mean minus the first, for numbers within known bounds.

    Each mean has the margins of `mean_interval`. They are combined as Newcombe combines those of
    two rates.
    """
    low, high = _difference(
        _mean_margins(first, confidence, within, counts[0]),
        _mean_margins(second, confidence, within, counts[1]),
    )
    return float(low), float(high)


def weighted_mean_difference(
    first: Moments, second: Moments, confidence: float, width: float = 1.0
) -> Limits:
    """Return Welch's interval of the second weighted mean minus the first."""
    half = _half_width((first, second), confidence, width)
    return second.mean - first.mean - half, second.mean - first.mean + half


def _half_width(moments: Sequence[Moments], confidence: float, width: float) -> float:
    parts = np.array([own.error(width) for own in moments])
    if not parts.any():  # numbers without known bounds, all equal in each group
        return 0.0
    freedoms = np.maximum([own.size - 1.0 for own in moments], 1.0)
    freedom = float(parts.sum() ** 2 / (parts**2 / freedoms).sum())
    return -float(stdtrit(freedom, (1.0 - confidence) / 2.0)) * float(np.sqrt(parts.sum()))


def rate_gaps_limit(counts: Sequence[Counts], n_rows: Sequence[Sizes], confidence: float) -> float:
    r"""Return an upper limit of the mean of several absolute differences of rates.

    :math:`\sum_k |\delta_k|` is the largest of the sums :math:`\sum_k \pm \delta_k`. For the true
    signs, the limit of the sum holds with the requested confidence. The largest limit over all
    signs is no smaller.
    """
    hits, sizes = np.asarray(counts, dtype=np.float64).T, np.asarray(n_rows, dtype=np.int64).T
    low, high = rate_differences(hits, (sizes[0], sizes[1]), confidence)
    difference = hits[1] / sizes[1] - hits[0] / sizes[0]
    signs = np.array(list(product((1.0, -1.0), repeat=len(difference))))
    margins = np.where(signs > 0, high - difference, difference - low)
    limits = signs @ difference + np.sqrt((margins**2).sum(axis=1))
    return float(limits.max()) / len(difference)


Norm: TypeAlias = Callable[[FloatArray], FloatArray]

# The bootstrap counts people in cells of the score axis. Cells of equal mass change no limit by
# more than its own Monte Carlo error, and the work does not grow with the number of rows.
CELLS = 512
# With many pairs of groups, whose limits are wide, fewer cells do.
_FEW_CELLS, _MANY_GROUPS = 128, 4
# Intervals of total variations count scores in this many intervals.
SCORE_BINS = 20
# Dividing whole numbers, unlike numpy.linspace, lets scores such as 0.3 begin their own interval.
SCORE_EDGES = np.arange(SCORE_BINS + 1) / SCORE_BINS
# What NumPy can deal out.
_MOST_DEALT = 1_000_000_000
# Limits are found to this share of the range where they can lie. Monte Carlo error is far larger.
_PRECISION = 2.0**-13
# The direction of the estimate is partly noise, so the inversion puts the lower limit too high. In
# simulations it misses about twice as often as it should. So its tail is divided by this number.
_SURER = 5.0


def norm_interval(estimate: FloatArray, noise: FloatArray, norm: Norm, confidence: float) -> Limits:
    r"""Return the interval of the norm of a vector that is known up to noise.

    Notes
    -----
    A test is inverted along the direction of the estimate. The number t is in the interval if
    :math:`\|\hat v\|` is between the outer quantiles of :math:`\|t \hat v / \|\hat v\| + Z\|`.
    The lower limit is 0 for a norm that chance alone explains.
    """
    size = float(norm(estimate))
    tail = (1.0 - confidence) / 2.0
    alone = norm(noise)
    if size == 0.0:
        return 0.0, float(np.quantile(alone, confidence))
    direction = estimate / size

    def share_above(length: float) -> float:
        return float(np.mean(norm(length * direction + noise) >= size))

    top = size + float(alone.max())
    low, small = 0.0, tail / _SURER
    if np.mean(alone >= size) < small:
        low = _bisect(lambda t: share_above(t) >= small, 0.0, size)
    high = _bisect(lambda t: share_above(t) > 1.0 - tail, 0.0, top)
    # Where the estimate is small, its direction is mostly noise, and the inversion is too narrow.
    # The percentile of the bootstrap, less its own bias, then reaches further. And an interval
    # that leaves out its own estimate would confuse more than it would correct.
    around = norm(estimate + noise)
    percentile = float(np.quantile(around, 1.0 - tail) - (around.mean() - size))
    return low, max(high, percentile, size)


def _bisect(is_beyond: Callable[[float], bool], low: float, high: float) -> float:
    close = (high - low) * _PRECISION
    while high - low > close:
        middle = (low + high) / 2.0
        low, high = (low, middle) if is_beyond(middle) else (middle, high)
    return (low + high) / 2.0


@dataclass(frozen=True)
class Interval:
    """The interval of a gap, and the test behind it."""

    low: float
    high: float
    p_value: float | None = None
    method: str = ""


class ScoreGrid:
    r"""The scores of two groups, counted in cells and resampled many times at once.

    Notes
    -----
    With survey weights, a resample draws as many people as the weights of a group are worth
    (`Weights.size`), from the weighted distribution of the scores. To test equality, both groups
    are drawn from the weighted distribution of all people; with counts, all people are divided at
    random into two groups of their sizes.
    """

    def __init__(
        self,
        scores: Sequence[FloatArray],
        weights: Sequence[Weights] | None = None,
        *,
        n_resamples: int,
        generator: np.random.Generator,
        cells: int = CELLS,
    ) -> None:
        weights = [Weights(len(own)) for own in scores] if weights is None else weights
        self._weights, self._is_survey = weights, weights[0].is_survey
        self._scores = scores[0], scores[1]
        self.sizes = weights[0].worth, weights[1].worth
        self._n_resamples, self._generator = n_resamples, generator
        people = [_people(own) for own in weights]
        pooled = np.concatenate(scores)
        order = np.argsort(pooled, kind="stable")
        pooled, last = pooled[order], np.cumsum(np.concatenate(people)[order])
        different = pooled[np.append(True, pooled[1:] != pooled[:-1])]
        if len(different) > cells:
            most = last[-1] if self._is_survey else last[-1] - 1.0
            cuts = np.linspace(0.0, most, cells + 1)[1:-1]
            at = np.searchsorted(last, cuts, side="left" if self._is_survey else "right")
            different = np.unique(pooled[np.minimum(at, len(pooled) - 1)])
        borders = np.union1d(different, bin_borders(SCORE_BINS))
        places = [np.searchsorted(borders, own, side="right") for own in scores]
        n_cells = len(borders) + 1
        counts = np.stack(
            [np.bincount(at, own, n_cells) for at, own in zip(places, people, strict=True)]
        )
        sums = np.bincount(
            np.concatenate(places), np.concatenate(scores) * np.concatenate(people), n_cells
        )
        kept = counts.sum(axis=0) > 0
        self.counts = counts[:, kept] if self._is_survey else counts[:, kept].astype(np.int64)
        ends = np.append(np.searchsorted(pooled, borders), len(pooled))
        starts = np.append(0, ends[:-1])
        # The mean score of a cell; where it holds one score, that score without rounding.
        self.values: FloatArray = np.clip(
            sums[kept] / self.counts.sum(axis=0), pooled[starts[kept]], pooled[ends[kept] - 1]
        )
        bins = np.searchsorted(
            bin_borders(SCORE_BINS), np.append(-np.inf, borders)[kept], side="right"
        )
        self._bin_ends = np.append(np.flatnonzero(np.diff(bins)), len(bins) - 1)
        self._shares = [own / own.sum() for own in self.counts]
        self._estimate = np.cumsum(self._shares[0] - self._shares[1])

    def _draw(self, shares: Sequence[FloatArray]) -> FloatArray:
        """Draw both groups many times; return the differences of their distribution functions."""
        first, second = (
            self._generator.multinomial(size, own, size=self._n_resamples) / size
            for size, own in zip(self.sizes, shares, strict=True)
        )
        return np.cumsum(first - second, axis=1)

    @cached_property
    def _noise(self) -> FloatArray:
        return np.asarray(self._draw(self._shares) - self._estimate)

    @cached_property
    def _permuted(self) -> FloatArray:
        """Divide all people into two groups of these sizes; return the differences."""
        pooled, (first, second) = self.counts.sum(axis=0), self.sizes
        if not self._is_survey and first + second < _MOST_DEALT:
            drawn = self._generator.multivariate_hypergeometric(
                pooled, first, size=self._n_resamples, method="marginals"
            )
            return np.cumsum(drawn / first - (pooled - drawn) / second, axis=1)
        # Of so many people hardly anybody is drawn twice.
        return self._draw([pooled / pooled.sum()] * 2)

    def mean_gap(self, confidence: float) -> Interval:
        """Compute the interval of the gap between mean scores: that of the difference, folded."""
        return Interval(*fold(self._difference(*self._scores, confidence, (0.0, 1.0))))

    def _difference(
        self, first: FloatArray, second: FloatArray, confidence: float, within: Limits
    ) -> Limits:
        """Return the interval of the difference of two means, of numbers within these bounds."""
        if self._is_survey:
            moments = self._weights[0].moments(first), self._weights[1].moments(second)
            return weighted_mean_difference(*moments, confidence)
        counts = [own.values for own in self._weights]
        return mean_difference(first, second, confidence, within=within, counts=counts)

    def wasserstein(self, confidence: float) -> Interval:
        """Compute the interval of the area between the distribution functions."""
        widths = np.diff(self.values)
        # The area is the largest gap between the means of a function with slopes 1 and -1. Two such
        # functions are used: the score itself, and the one whose gap is largest in the sample.
        means = self.mean_gap(confidence)
        most = max(means.high, self._slope_limit(widths, confidence))
        return self._distance(lambda d: d[..., :-1] * widths, _length, confidence, means.low, most)

    def _slope_limit(self, widths: FloatArray, confidence: float) -> float:
        """Return the upper limit of the gap between the means of a function of the score.

        Of all functions with slopes 1 and -1, it is the one whose gap is largest in the sample.
        """
        steps = -np.sign(self._estimate[:-1]) * widths
        heights = np.append(0.0, np.cumsum(steps))
        beyond = max(self.values[0], 1.0 - self.values[-1])
        within = float(heights.min() - beyond), float(heights.max() + beyond)
        first, second = (np.interp(scores, self.values, heights) for scores in self._scores)
        return fold(self._difference(first, second, confidence, within))[1]

    def kolmogorov_smirnov(self, confidence: float) -> Interval:
        """Compute the interval of the largest difference between the distribution functions."""
        most = self._rate_limit(np.cumsum(self.counts, axis=1), confidence)
        least = self._apart(self._estimate, confidence)
        interval = self._distance(lambda d: d, _largest, confidence, least, most)
        # The place of the largest difference is chosen by chance too, so the inversion puts the
        # lower limit too high. A distance is never wrong by more than the length of the noise.
        wrong = float(np.quantile(_largest(self._noise), confidence))
        low = max(float(_largest(self._estimate)) - wrong, 0.0)
        return replace(interval, low=min(interval.low, low))

    def total_variation(self, confidence: float) -> Interval:
        """Compute the interval of half the summed difference over the bins."""
        ends = self._bin_ends
        # The total variation is the largest difference of rates over all sets of bins. The sets
        # used are: all bins up to a border, each bin alone, and all bins in which the sample shows
        # a larger share of the first group.
        below = np.cumsum(self.counts, axis=1)[:, ends]
        each = np.diff(below, axis=1, prepend=0)
        more = each[0] / self.sizes[0] > each[1] / self.sizes[1]
        sets = np.column_stack([below, each, each[:, more].sum(axis=1)])
        return self._distance(
            lambda d: np.diff(d[..., ends], axis=-1, prepend=0.0) / 2.0,
            _length,
            confidence,
            self._apart(self._estimate[ends], confidence),
            self._rate_limit(sets, confidence),
        )

    def reaches(self, confidence: float) -> bool:
        """Return whether there are enough permutations to reject at this level."""
        return 1.0 / (1 + self._n_resamples) <= (1.0 - confidence) / 2.0

    def _apart(self, differences: FloatArray, confidence: float) -> float:
        """Return a lower limit of the largest difference between the distribution functions.

        It follows from the inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant,
        applied to each group.
        """
        chance = np.log(8.0 / (1.0 - confidence))
        wrong = sum(float(np.sqrt(chance / (2.0 * size))) for size in self.sizes)
        return max(float(_largest(differences)) - wrong, 0.0)

    def _rate_limit(self, counts: NDArray[np.integer[Any]], confidence: float) -> float:
        """Return the largest upper limit of many absolute differences of rates."""
        low, high = rate_differences(counts.astype(np.float64), self.sizes, confidence)
        return float(max(-low.min(), high.max()))

    def _distance(
        self,
        part: Callable[[FloatArray], FloatArray],
        norm: Norm,
        confidence: float,
        least: float,
        most: float,
    ) -> Interval:
        """Return the interval of a norm, which reaches up to ``most``.

        Its lower limit is ``least`` if there are too few permutations for a test.
        """
        estimate = part(self._estimate)
        low, high = norm_interval(estimate, part(self._noise), norm, confidence)
        if not self.reaches(confidence):
            return Interval(least, max(high, most))
        permuted = norm(part(self._permuted))
        # A permutation that equals the observed distance up to rounding counts as reaching it.
        reached = int((permuted >= norm(estimate) * (1.0 - 1e-9)).sum())
        p_value = (1 + reached) / (1 + len(permuted))
        # A lower limit may be wrong only half as often as an interval.
        low = 0.0 if p_value > (1.0 - confidence) / 2.0 else low
        return Interval(low, max(high, most), p_value)


def _people(weights: Weights) -> FloatArray:
    """Return how many people each row stands for: in a survey, their sum is the effective size."""
    if weights.values is None:
        return np.ones(weights.n_rows)
    return weights.values / weights.total * weights.worth if weights.is_survey else weights.values


def _length(vectors: FloatArray) -> FloatArray:
    return np.asarray(np.abs(vectors).sum(axis=-1))


def _largest(vectors: FloatArray) -> FloatArray:
    return np.asarray(np.abs(vectors).max(axis=-1))


def mean_of_rate_gaps(
    counts: Sequence[Counts],
    n_rows: Sequence[Sizes],
    confidence: float,
    *,
    n_resamples: int,
    generator: np.random.Generator,
) -> Limits:
    """Return the interval of a mean of absolute differences of rates, such as equalized odds.

    Rates are resampled as binomial counts. As Agresti and Coull do, two successes and two failures
    are added before a rate is resampled, which keeps it off 0 and 1.
    """
    hits, sizes = np.asarray(counts, dtype=float), np.asarray(n_rows, dtype=np.int64)
    rates = (hits + 2.0) / (sizes + 4.0)
    drawn = generator.binomial(sizes, rates, size=(n_resamples, *sizes.shape)) / sizes
    noise = np.diff(drawn - rates, axis=-1)[..., 0]
    difference = np.diff(hits / sizes, axis=-1)[:, 0]
    low, high = norm_interval(difference / len(sizes), noise / len(sizes), _length, confidence)
    return low, max(high, rate_gaps_limit(counts, n_rows, confidence))


def pair_mean(
    values: FloatArray,
    mass: FloatArray,
    members: NDArray[np.intp],
    confidence: float,
    *,
    n_resamples: int,
    generator: np.random.Generator,
) -> Limits:
    """Return the interval of a mean over pairs. The matching is taken as given.

    ``members`` is the person of the smaller group in each pair. People are resampled with all their
    partners, because pairs that share a person are not independent.
    """
    _, member = np.unique(members, return_inverse=True)
    totals = np.bincount(member, values * mass)
    weights = np.bincount(member, mass)
    n_members = len(weights)
    even = np.full(n_members, 1.0 / n_members)
    means = np.empty(n_resamples)
    step = max(1, 4_000_000 // n_members)
    for start in range(0, n_resamples, step):
        size = min(step, n_resamples - start)
        drawn = generator.multinomial(n_members, even, size=size)
        means[start : start + size] = (drawn @ totals) / (drawn @ weights)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail])
    # Where no sampled pair has a gap, pairs outside the sample may still have one.
    below, above = mean_interval(totals / weights, Weights(n_members), confidence)
    return min(float(low), below), max(float(high), above)


# How intervals are made: for people, and with survey weights.
_METHODS = {
    "rates": "Newcombe's interval of the signed difference, folded at 0",
    "means": "Student's limits of both means, widened for fewer than about 200 people, combined as "
    "Newcombe does, folded at 0",
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


@dataclass(frozen=True, eq=False)
class GroupPair:
    """Two groups of people with their scores, from which the intervals of gaps are made."""

    scored: ScoredPeople
    codes: tuple[int, int]
    n_resamples: int
    stream: Callable[[int], np.random.Generator]

    def parts(self, label: int | None = None) -> tuple[GroupScores, GroupScores]:
        """Return the scores of the first group and of the second, for one class or everybody."""
        return self.scored.part(self.codes[0], label), self.scored.part(self.codes[1], label)

    def counts(self, label: int | None, cell: int | None = None) -> tuple[Counts, Sizes]:
        """Return the selected people and all people of both groups, for one class or everybody."""
        first, second = (self.scored.counts(code, label, cell) for code in self.codes)
        return (first[0], second[0]), (first[1], second[1])

    def method(self, kind: str) -> str:
        """Return in words how an interval is made."""
        return (_SURVEY_METHODS if self.scored.weights.is_survey else _METHODS)[kind]

    @cached_property
    def grid(self) -> ScoreGrid:
        """The scores of both groups as shares of their range, counted in cells and resampled."""
        parts = self.parts()
        return ScoreGrid(
            [self.scored.settings.shares(own.values) for own in parts],
            [own.weights for own in parts],
            n_resamples=self.n_resamples,
            generator=self.stream(0),
            cells=CELLS if len(self.scored.codes) < _MANY_GROUPS else _FEW_CELLS,
        )


Labels: TypeAlias = tuple[bool | None, ...]
Cells: TypeAlias = list[tuple[int | None, tuple[int | None, ...]]]
IntervalMethod: TypeAlias = Callable[[GroupPair, Labels, float], Interval]


def joined(gaps: Sequence[float] | Sequence[FloatArray], agg: str) -> FloatArray:
    """Return the mean of the gaps of the classes, or the largest of them: numbers or arrays."""
    return np.asarray(np.max(gaps, axis=0) if agg == "worst_case" else sum(gaps) / len(gaps))


def compared_cells(labels: Labels, outcome: Outcome) -> Cells:
    """Return the labels within which decisions are compared, each with the decided classes.

    None is everybody, and the favourable one of two classes. With several classes, a gap within one
    label compares recalls, and a gap within both labels compares everything that people get.
    """
    every = tuple(range(len(outcome.classes)))
    if not every:
        return [(label, (None,)) for label in labels]
    if labels == (None,):
        return [(None, every)]
    if len(labels) > 1:
        return [(label, every) for label in every]
    return [(label, (label,)) for label in outcome.favourable or every]


def interval_of_rates(
    pair: GroupPair, labels: Labels, confidence: float, agg: str = "mean"
) -> Interval:
    """Return the interval of a gap of selection rates, or of the mean or the largest by class.

    For the largest, and for several classes, the intervals of all rates hold at once.
    """
    outcome = pair.scored.settings.outcome
    if agg == "mean" and len(labels) > 1 and not outcome.several:
        counts, sizes = zip(*(pair.counts(label) for label in labels), strict=True)
        limits = mean_of_rate_gaps(
            counts, sizes, confidence, n_resamples=pair.n_resamples, generator=pair.stream(1)
        )
        return Interval(*limits, method=pair.method("odds"))
    cells = compared_cells(labels, outcome)
    n_cells = sum(len(own) for _, own in cells)
    level = 1.0 - (1.0 - confidence) / n_cells
    ends = [
        np.max([fold(rate_difference(*pair.counts(label, cell), level)) for cell in own], axis=0)
        for label, own in cells
    ]
    low, high = joined(ends, agg if len(labels) > 1 else "worst_case").tolist()
    at_once = "; all classes at once by Bonferroni" if n_cells > 1 else ""
    return Interval(low, high, method=f"{pair.method('rates')}{at_once}")


def interval_of_scores(pair: GroupPair, labels: Labels, confidence: float, name: str) -> Interval:
    """Return the interval of a gap of scores. ``name`` is that of its method in `ScoreGrid`."""
    settings, kind = pair.scored.settings, "means"
    if settings.outcome.several:
        return _interval_of_vectors(pair, name, confidence)
    if pair.scored.is_decision:  # the share of people at the upper end
        rates = [own.weights.rate(own.values > settings.within[0]) for own in pair.parts()]
        (hits, size), (others, n_others) = ((own.hits, own.people) for own in rates)
        limits = fold(rate_difference((hits, others), (size, n_others), confidence))
        found, kind = Interval(*limits), "rates"
    else:
        found = getattr(pair.grid, name)(confidence)
        if name != "mean_gap":
            kind = "distances" if pair.grid.reaches(confidence) else "many"
    # The grid knows scores as shares of their range. Gaps of shares of people have no unit.
    unit = settings.width if name in ("mean_gap", "wasserstein") else 1.0
    low, high = unit * found.low, unit * found.high
    return replace(found, low=low, high=high, method=pair.method(kind))


# The bootstrap of a distance of vectors counts people in this many cells.
_VECTOR_CELLS, _VECTOR_DRAWS = 96, 300


def _interval_of_vectors(pair: GroupPair, name: str, confidence: float) -> Interval:
    """Return the interval of half the L1 distance between mean vectors, or that of a distance.

    By the triangle inequality the distance is wrong by at most the distance that sampling makes
    between a group and itself. The bootstrap states how large that is.
    """
    first, second = pair.parts()
    generator, noise = pair.stream(2), 0.0
    for own in (first, second):
        mass = own.weights.evidence
        # One more person with equal shares keeps a class that nobody has from being certain.
        values = np.vstack([own.values, np.full(own.values.shape[1], 1.0 / own.values.shape[1])])
        shares = np.append(np.ones(len(own.values)) if mass is None else mass, 1.0)
        spread = np.cov(values.T, aweights=shares) if len(values) > 2 else np.eye(len(values.T))
        drawn = generator.standard_normal((pair.n_resamples, len(spread)))
        levels, axes = np.linalg.eigh(spread / max(own.weights.size, 1.0))
        noise = noise + (drawn * np.sqrt(np.maximum(levels, 0.0))) @ axes.T
    difference = second.mean - first.mean
    low, high = norm_interval(difference / 2.0, np.asarray(noise) / 2.0, _length, confidence)
    if name == "mean_gap":
        return Interval(low, high, method="normal noise of both mean vectors")
    generator, value = pair.stream(3), first.wasserstein(second)
    wrong = np.zeros(_VECTOR_DRAWS)
    for own in (first, second):
        points, shares = joined_points(own.values, own.weights.values, _VECTOR_CELLS)
        cost, size = half_l1(points, points), own.weights.worth
        counts = generator.multinomial(size, shares / shares.sum(), size=_VECTOR_DRAWS)
        wrong += [cheapest_plan(count / size, shares, cost)[1] for count in counts]
    most = float(np.quantile(wrong, confidence))
    method = "bootstrap of each group in cells, and the triangle inequality"
    return Interval(max(value - most, low), value + most, method=method)


LimitMethod: TypeAlias = Callable[[Sequence[GroupScores], float, Settings], float]


def limit_of_rates(groups: Sequence[GroupScores], error: float, settings: Settings) -> float:
    """Return an upper limit of the largest gap of selection rates over pairs of groups.

    The limit of one pair may be wrong with probability ``error``. It is exact for people and for
    counts of people. With survey weights it is approximate: a group counts by its effective number
    of rows.
    """
    counts = [group.counts(settings) for group in groups]
    if not any(group.weights.is_survey for group in groups):
        return largest_gap_limit([(round(hits), size) for hits, size in counts], 1.0 - error)
    # The upper end of a two-sided interval of level 1 - 2a is a one-sided limit of level 1 - a.
    level = 1.0 - 2.0 * error
    return max(
        fold(rate_difference((a[0], b[0]), (a[1], b[1]), level))[1]
        for a, b in combinations(counts, 2)
    )


def limit_of_means(groups: Sequence[GroupScores], error: float, settings: Settings) -> float:
    """Return an upper limit of the largest gap of mean scores over pairs of groups.

    The scores of unweighted people in known bounds have the interval of `mean_difference`. Others
    have Welch's interval. That of mean vectors is half the sum of the limits of all classes.
    """
    if groups[0].values.ndim > 1:
        classes = range(groups[0].values.shape[1])
        columns = [
            [GroupScores(own.values[:, at], own.weights) for own in groups] for at in classes
        ]
        limits = [limit_of_means(own, error / len(columns), settings) for own in columns]
        return min(sum(limits) / 2.0, 1.0)
    bounded, level = not settings.outcome.has_unit, 1.0 - 2.0 * error
    if min(group.weights.size for group in groups) < 2.0:
        return 1.0 if bounded else float("inf")
    if bounded and groups[0].weights.values is None:
        return max(
            fold(mean_difference(a.values, b.values, level))[1] for a, b in combinations(groups, 2)
        )
    moments = [group.weights.moments(group.values) for group in groups]
    width = settings.width if bounded else 0.0
    limit = max(
        fold(weighted_mean_difference(a, b, level, width))[1] for a, b in combinations(moments, 2)
    )
    return min(1.0, limit) if bounded else limit
