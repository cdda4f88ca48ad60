r"""Exact confidence limits for the difference of two rates, by inverting a test.

A limit is exact if it fails with at most the nominal probability for every pair of true rates.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, gammaln, ndtri, xlog1py, xlogy

from fairmatch.people.checks import FloatArray

Pair = tuple[int, int]

# Rates that the counts rule out with this error probability are left out (Berger and Boos, 1994).
# What that may cost is added to the p-value.
_SPENT = 1e-5
# Cells of the unknown rate. More cells tighten the bound on the p-value.
_CELLS = 160
# Counts further from their mean than this many standard deviations are taken as extreme.
_SPREAD = 7.0
_PRECISION = 1e-4


def rate_interval(hits: int, size: int, confidence: float) -> tuple[float, float]:
    """Return the exact interval of one rate, by Clopper and Pearson."""
    error = (1.0 - confidence) / 2.0
    low = 0.0 if hits == 0 else float(betaincinv(hits, size - hits + 1, error))
    high = 1.0 if hits == size else float(betaincinv(hits + 1, size - hits, 1.0 - error))
    return low, high


def difference_p_value(hits: Pair, sizes: Pair, difference: float) -> float:
    r"""Return an exact p-value of "the first rate exceeds the second by at least this much".

    If the true rates differ by at least ``difference``, a p-value of at most :math:`\alpha` has a
    probability of at most :math:`\alpha`.

    Notes
    -----
    Tables are ordered by the studentised difference of the two rates. The probability of a table at
    least as extreme as the observed one decreases with the first rate :math:`p` and rises with the
    second rate :math:`q`. So over the cell :math:`q \in [a, b], p = q + d` it is at most its value
    at :math:`p = a + d, q = b`. The p-value is the largest of these values over cells that cover
    all rates that the counts do not rule out.
    """
    low, high = max(0.0, -difference), min(1.0, 1.0 - difference)
    if low > high:
        return 0.0
    if hits[0] / sizes[0] - hits[1] / sizes[1] >= difference:
        return 1.0  # counts that exceed the difference are no evidence against it
    first, second = (rate_interval(h, n, 1.0 - _SPENT) for h, n in zip(hits, sizes, strict=True))
    low = max(low, second[0], first[0] - difference)
    high = min(high, second[1], first[1] - difference)
    if low > high:
        return 2.0 * _SPENT
    edges = np.linspace(low, high, _CELLS + 1)
    p, q = np.clip(edges[:-1] + difference, 0.0, 1.0), edges[1:]
    counts, mass = _masses(sizes[0], p)
    others, other = _masses(sizes[1], q)
    # Counts outside of the ranges are taken as extreme.
    tails = np.vstack([other[::-1].cumsum(axis=0)[::-1], np.zeros(_CELLS)])
    tails += np.maximum(1.0 - tails[0], 0.0)
    places = np.clip(_borders(hits, sizes, difference, counts) - others[0], 0, len(others))
    inside = np.einsum("ij,ij->j", mass, tails[places])
    values = inside + np.maximum(1.0 - mass.sum(axis=0), 0.0)
    return float(min(1.0, values.max() + 2.0 * _SPENT))


def _masses(size: int, rates: FloatArray) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the likely counts of a group, and their probabilities for every rate."""
    spread = _SPREAD * np.sqrt(size * (rates * (1.0 - rates)).max()) + 30.0
    start = max(0, int(size * rates.min() - spread))
    end = min(size, int(size * rates.max() + spread)) + 1
    counts = np.arange(start, end)
    ways = gammaln(size + 1.0) - gammaln(counts + 1.0) - gammaln(size - counts + 1.0)
    likely = ways[:, None] + xlogy(counts[:, None], rates)
    return counts, np.exp(likely + xlog1py((size - counts)[:, None], -rates))


def _distance(
    first: FloatArray | float, second: FloatArray | float, sizes: Pair, difference: float
) -> FloatArray:
    """Return how far counts are from a difference of rates, in standard errors.

    One success and one failure are added to each group, so that no error is 0.
    """
    p, q = (first + 1.0) / (sizes[0] + 2.0), (second + 1.0) / (sizes[1] + 2.0)
    error = p * (1.0 - p) / (sizes[0] + 2.0) + q * (1.0 - q) / (sizes[1] + 2.0)
    return np.asarray((p - q - difference) / np.sqrt(error))


def _borders(
    hits: Pair, sizes: Pair, difference: float, counts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return for counts of the first group the least count of the second that is as extreme."""
    seen = float(_distance(hits[0], hits[1], sizes, difference)) + 1e-12
    low, high = np.zeros_like(counts), np.full_like(counts, sizes[1] + 1)
    for _ in range((sizes[1] + 1).bit_length() + 1):  # bisection: the distance falls
        middle = (low + high) // 2
        extreme = _distance(counts.astype(float), middle.astype(float), sizes, difference) <= seen
        extreme |= middle > sizes[1]
        high = np.where(extreme, middle, high)
        low = np.where(extreme, low, np.minimum(middle + 1, high))
    high[counts == hits[0]] = np.minimum(high[counts == hits[0]], hits[1])
    # This only adds tables, and makes the set of extreme tables monotone.
    return np.minimum.accumulate(high[::-1])[::-1]


def difference_limit(hits: Pair, sizes: Pair, confidence: float) -> float:
    """Return an exact upper limit of the first rate minus the second.

    It holds with a probability of at least ``confidence``, and is rounded up to 0.0001.
    """
    error = 1.0 - confidence
    rates = [h / n for h, n in zip(hits, sizes, strict=True)]
    spread = np.sqrt(sum((r * (1.0 - r) + 1.0 / n) / n for r, n in zip(rates, sizes, strict=True)))
    low, high = rates[0] - rates[1], 1.0
    middle = float(np.clip(low - ndtri(error) * spread, low, 1.0))
    step = max(0.1 * spread, _PRECISION)
    while high - low > _PRECISION:
        if difference_p_value(hits, sizes, middle) <= error:
            high = middle
            middle = max(high - step, (low + high) / 2.0)
        else:
            low = middle
            middle = min(low + step, (low + high) / 2.0)
        step = step / 2.0 if high < 1.0 and low > rates[0] - rates[1] else 2.0 * step
        step = max(step, _PRECISION / 2.0)
    return float(high)


def largest_gap_limit(counts: Sequence[Pair], confidence: float) -> float:
    """Return the largest of the exact limits of the gaps between all pairs of groups.

    ``counts`` holds the selected people and the size of every group. A difference that the test
    rejects at the largest limit so far needs no limit of its own. So the pairs that look widest
    come first, and in a pair the group with the higher rate.
    """

    def apart(pair: tuple[Pair, Pair]) -> float:
        rates = [hits / size for hits, size in pair]
        return float(abs(rates[0] - rates[1]) + np.sqrt(sum(1.0 / size for _, size in pair)))

    limit = 0.0
    for pair in sorted(combinations(counts, 2), key=apart, reverse=True):
        (a, n), (b, m) = sorted(pair, key=lambda own: own[0] / own[1], reverse=True)
        for way in (((a, b), (n, m)), ((b, a), (m, n))):
            if difference_p_value(*way, limit) > 1.0 - confidence:
                limit = max(limit, difference_limit(*way, confidence))
    return limit
