"""The true error of the exact limit of two rates, by binomial sums over 280 settings.

    python -m benchmarks limits

takes minutes. A limit fails if it is below the true difference, which is where the test rejects the
true difference. The probability of all tables where it does is summed exactly. Given the count of
the first group, more selected people in the second one are further evidence against the
difference, so the least count that rejects is found by bisection, and a few counts on both sides of
it are looked at one by one.
"""

import numpy as np
from scipy import stats

from benchmarks.timing import Row, appended, recorded

SIZES = ((30, 30), (30, 100), (30, 300), (100, 30), (100, 300), (300, 30), (300, 300))
RATES = ((0.05, 0.05), (0.05, 0.02), (0.2, 0.05), (0.35, 0.05), (0.35, 0.2), (0.35, 0.35),
         (0.5, 0.3), (0.5, 0.5), (0.8, 0.6), (0.95, 0.9))  # fmt: skip
LEVELS = (0.9, 0.95, 0.99, 0.997)
_NEAR = 2


def errors(sizes, rates, levels=LEVELS):
    """Return the probability that the limit is below the true difference, for every level."""
    from fairmatch.measures.exact import difference_p_value

    first, second = (
        stats.binom.pmf(np.arange(n + 1), n, r) for n, r in zip(sizes, rates, strict=True)
    )
    beyond = np.append(second[::-1].cumsum()[::-1], 0.0)
    total = dict.fromkeys(levels, 0.0)
    for a in np.flatnonzero(first > 1e-9).tolist():
        known = {}

        def rejects(b, level, a=a, known=known):
            if b not in known:
                known[b] = difference_p_value((a, b), sizes, rates[0] - rates[1])
            return known[b] <= 1.0 - level

        for level in levels:
            low, high = 0, sizes[1] + 1
            while low < high:
                middle = (low + high) // 2
                if middle > sizes[1] or rejects(middle, level):
                    high = middle
                else:
                    low = middle + 1
            mass = beyond[low]
            for b in range(max(0, low - _NEAR), low):
                mass += second[b] * rejects(b, level)
            total[level] += first[a] * mass
    return total


def measured():
    for sizes in SIZES:
        for rates in RATES:
            key = {"sizes": list(sizes), "rates": list(rates)}
            if not any(key.items() <= one.items() for one in recorded("limits")):
                found = errors(sizes, rates)
                appended("limits", {**key, "error": {str(k): float(v) for k, v in found.items()}})
    return recorded("limits")


def rows():
    found = measured()
    for level in LEVELS:
        ratios = {
            (tuple(one["sizes"]), tuple(one["rates"])): one["error"][str(level)] / (1.0 - level)
            for one in found
        }
        for sizes in SIZES:
            own = {rates: ratio for (n, rates), ratio in ratios.items() if n == sizes}
            worst = max(own, key=own.get)
            yield Row(
                f"groups of {sizes[0]} and {sizes[1]}, level {level:g}: largest error / nominal "
                f"over {len(own)} pairs of rates (at {worst[0]:g} and {worst[1]:g})",
                own[worst],
                1.0,
            )
