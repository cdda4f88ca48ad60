r"""Intervals in closed form: for rates, for mean scores, and for their differences and ratios.

The interval of a mean is Wilson's interval, carried over from decisions to scores. Student's
interval has no width where everybody in the sample has the same score. Yet a few people outside the
sample may have another score.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TypeAlias

import numpy as np
from scipy.special import gammaincinv, ndtri, stdtrit

from fairmatch.tables.arrays import FloatArray

Limits: TypeAlias = tuple[float, float]
Counts: TypeAlias = tuple[float, float]
Sizes: TypeAlias = tuple[int, int]

# Up to this many people on one side, the limits are those of a Poisson count.
_FEW = 2


def wilson(count: float, n_rows: int, confidence: float) -> Limits:
    r"""Compute Wilson's interval of a rate, which is sound at 0 and 1 too.

    Parameters
    ----------
    count : float
        People who are hits.
    n_rows : int
        All people.
    confidence : float
        Level of the interval.

    Notes
    -----
    The interval holds the rates p with :math:`|\hat p - p| \le z \sqrt{p (1 - p) / n}`.

    Examples
    --------
    >>> low, high = wilson(0, 10, 0.95)
    >>> low, round(high, 3)
    (0.0, 0.278)
    """
    low, high = _wilson(np.array([count], dtype=np.float64), n_rows, confidence)
    return float(low[0]), float(high[0])


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


def _spared(counts: FloatArray, n_rows: int, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's limits, made wider where only one or two people are on one side.

    Wilson's limits are too narrow there. Take a rate of one in three hundred. About a tenth of all
    samples of thirty people hold one hit, and Wilson's lower limit then lies above the true rate.
    Brown, Cai and DasGupta (2001) use the limits of a Poisson count instead.
    """
    low, high = _wilson(counts, n_rows, confidence)
    few = gammaincinv(np.clip(counts, 1e-9, None), 1.0 - confidence) / n_rows
    rest = n_rows - counts
    many = 1.0 - gammaincinv(np.clip(rest, 1e-9, None), 1.0 - confidence) / n_rows
    return (
        np.where((counts > 0) & (counts <= _FEW), np.minimum(low, few), low),
        np.where((rest > 0) & (rest <= _FEW), np.maximum(high, many), high),
    )


def rate_difference(counts: Counts, n_rows: Sizes, confidence: float) -> Limits:
    """Compute Newcombe's interval of the second rate minus the first, from two Wilson intervals.

    Wilson's limits are too narrow where only one or two people of a group are on one side. The
    limits of a Poisson count then take their place.

    Parameters
    ----------
    counts : two float
        The hits of the first group, and of the second.
    n_rows : two int
        The sizes of the groups.
    confidence : float
        Level of the interval.

    Examples
    --------
    >>> [round(limit, 4) for limit in rate_difference((48, 56), (80, 70), 0.95)]
    [0.0524, 0.3339]
    """
    both = np.array(counts, dtype=np.float64)[:, None]
    low, high = rate_differences(both, n_rows, confidence)
    return float(low[0]), float(high[0])


def rate_differences(
    counts: FloatArray, n_rows: Sizes, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Compute the intervals of many differences of rates at once, each as in `rate_difference`.

    Parameters
    ----------
    counts : array of shape (2, n_rates)
        The hits of the first group, and of the second.
    n_rows : two int
        The sizes of the groups.
    confidence : float
        Level of each interval.

    Examples
    --------
    >>> low, high = rate_differences(np.array([[48.0, 0.0], [56.0, 0.0]]), (80, 70), 0.95)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0524, -0.0458], [0.3339, 0.052])
    """
    (low0, high0), (low1, high1) = (
        _spared(k, n, confidence) for k, n in zip(counts, n_rows, strict=True)
    )
    rates0, rates1 = counts[0] / n_rows[0], counts[1] / n_rows[1]
    below = np.hypot(rates1 - low1, high0 - rates0)
    above = np.hypot(high1 - rates1, rates0 - low0)
    return rates1 - rates0 - below, rates1 - rates0 + above


def rate_ratio(counts: Counts, n_rows: Sizes, confidence: float) -> Limits:
    """Compute the interval of the smaller rate over the larger, folded at 1.

    Parameters
    ----------
    counts : two float
        The hits of the first group, and of the second.
    n_rows : two int
        The sizes of the groups.
    confidence : float
        Level of the interval.

    Examples
    --------
    >>> [round(limit, 3) for limit in rate_ratio((48, 56), (80, 70), 0.95)]
    [0.601, 0.927]
    """
    low, high = rate_over_rate(counts, n_rows, confidence)
    if low <= 1.0 <= high:
        return min(low, 1.0 / high), 1.0
    return (low, high) if high < 1.0 else (1.0 / high, 1.0 / low)


def rate_over_rate(counts: Counts, n_rows: Sizes, confidence: float) -> Limits:
    """Compute the interval of the first rate over the second, which may exceed 1.

    The two Wilson intervals are combined as Donner and Zou combine limits for a ratio. The result
    is usable even where the first rate is 0.

    Parameters
    ----------
    counts : two float
        The hits of the first group, and of the second.
    n_rows : two int
        The sizes of the groups.
    confidence : float
        Level of the interval.

    Examples
    --------
    >>> [round(limit, 3) for limit in rate_over_rate((4, 260), (6, 398), 0.95)]
    [0.458, 1.397]
    """
    (low0, high0), (low1, high1) = (
        wilson(k, n, confidence) for k, n in zip(counts, n_rows, strict=True)
    )
    rate0, rate1 = counts[0] / n_rows[0], counts[1] / n_rows[1]
    low = _ratio_limit(rate0, rate1, low0, high1, -1.0)
    return low, _ratio_limit(rate0, rate1, high0, low1, 1.0)


def _ratio_limit(rate0: float, rate1: float, limit0: float, limit1: float, side: float) -> float:
    scale = limit1 * (2 * rate1 - limit1)
    product = rate0 * rate1
    root = np.sqrt(max(product**2 - limit0 * (2 * rate0 - limit0) * scale, 0.0))
    if scale == 0.0:
        return 0.0 if side < 0 else float("inf")
    return float(max((product + side * root) / scale, 0.0))


def fold(limits: Limits) -> Limits:
    """Return the interval of an absolute difference, given that of the signed difference.

    Parameters
    ----------
    limits : two float
        Limits of the signed difference.

    Examples
    --------
    >>> fold((-0.1, 0.3)), fold((-0.3, -0.1))
    ((0.0, 0.3), (0.1, 0.3))
    """
    low, high = limits
    return (0.0 if low <= 0.0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def mean_interval(
    values: FloatArray,
    confidence: float,
    *,
    within: Limits = (0.0, 1.0),
    counts: FloatArray | None = None,
) -> Limits:
    r"""Compute the interval of a mean of numbers that lie within known bounds.

    Parameters
    ----------
    values : array of shape (n,)
        The numbers.
    confidence : float
        Level of the interval.
    within : two numbers, default=(0, 1)
        Bounds of what a number can be. Without bounds (``(-inf, inf)``) it is Student's interval.
    counts : array of shape (n,), optional
        How many people have each number; one by default.

    Notes
    -----
    A share :math:`\varepsilon` of the people may have the score at a bound, although the sample
    shows none of them. The bound is at distance :math:`d` from the sample's mean. The mean then
    moves by :math:`\varepsilon d`, and the variance becomes
    :math:`(1 - \varepsilon) (s^2 + \varepsilon d^2)`. The interval holds every mean for which

    .. math:: \varepsilon d \le t \sqrt{(1 - \varepsilon)(s^2 + \varepsilon d^2) / n}

    with Student's quantile :math:`t` and the variance :math:`s^2` over :math:`n - 1`. For 0/1
    decisions, the normal quantile and the variance over :math:`n` would give Wilson's interval.

    Examples
    --------
    >>> [round(limit, 3) for limit in mean_interval(np.array([0.2, 0.4, 0.6]), 0.95)]
    [0.045, 0.925]
    >>> [round(limit, 3) for limit in mean_interval(np.full(30, 0.1), 0.95)]
    [0.088, 0.21]
    """
    mean, below, above = _mean_margins(values, confidence, within, counts)
    return mean - below, mean + above


def _mean_margins(
    values: FloatArray, confidence: float, within: Limits, counts: FloatArray | None
) -> tuple[float, float, float]:
    """Return the mean of the sample, and how far the true one may lie below and above it."""
    n_rows = len(values) if counts is None else round(float(counts.sum()))
    mean = float(np.average(values, weights=counts))
    if n_rows < 2:  # one number does not show how much numbers differ
        return mean, mean - within[0], within[1] - mean
    variance = float(np.average((values - mean) ** 2, weights=counts)) * n_rows / (n_rows - 1)
    t = -float(stdtrit(n_rows - 1, (1.0 - confidence) / 2.0))
    below, above = (_margin(abs(mean - bound), variance, n_rows / t**2) for bound in within)
    return mean, below, above


def _margin(distance: float, variance: float, n_rows: float) -> float:
    """Solve the equation of `mean_interval` for how far the mean moves towards a bound."""
    if distance == 0.0:
        return 0.0
    if np.isinf(distance):
        return float(np.sqrt(variance / n_rows))
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
    r"""Compute the interval of the second mean minus the first, for numbers within known bounds.

    Parameters
    ----------
    first, second : array
        The numbers of each group.
    confidence : float
        Level of the interval.
    within : two numbers, default=(0, 1)
        Bounds of what a number can be.
    counts : two arrays, optional
        How many people of each group have each number; one by default.

    Notes
    -----
    Each mean has the margins of `mean_interval`. They are combined as Newcombe combines those of
    two rates: :math:`\sqrt{a^2 + b^2}`, where :math:`a, b` are the margins on the sides that
    matter.

    Examples
    --------
    >>> scores = np.linspace(0.1, 0.5, 41)
    >>> low, high = mean_difference(scores, scores + 0.3, 0.95)
    >>> round(low, 3), round(high, 3)
    (0.195, 0.375)
    """
    (mean0, below0, above0), (mean1, below1, above1) = (
        _mean_margins(values, confidence, within, own)
        for values, own in zip((first, second), counts, strict=True)
    )
    difference = mean1 - mean0
    return difference - float(np.hypot(below1, above0)), difference + float(
        np.hypot(above1, below0)
    )


def rate_gaps_limit(
    counts: tuple[Counts, ...], n_rows: tuple[Sizes, ...], confidence: float
) -> float:
    r"""Compute an upper limit of the mean of several absolute differences of rates.

    Parameters
    ----------
    counts, n_rows
        For each difference, the hits and the sizes of the two groups.
    confidence : float
        Level of the two-sided interval that the limit belongs to.

    Notes
    -----
    :math:`\sum_k |\delta_k|` is the largest of the sums :math:`\sum_k \pm \delta_k`. For the true
    signs, the limit of the sum holds with the requested confidence. The largest limit over all
    signs is no smaller.

    Examples
    --------
    >>> round(rate_gaps_limit(((48, 56), (48, 56)), ((80, 70), (80, 70)), 0.95), 3)
    0.295
    """
    limits = []
    for signs in product((1.0, -1.0), repeat=len(counts)):
        total, squares = 0.0, 0.0
        for sign, hits, sizes in zip(signs, counts, n_rows, strict=True):
            low, high = rate_difference(hits, sizes, confidence)
            difference = hits[1] / sizes[1] - hits[0] / sizes[0]
            total += sign * difference
            squares += (high - difference if sign > 0 else difference - low) ** 2
        limits.append(total + float(np.sqrt(squares)))
    return max(limits) / len(counts)
