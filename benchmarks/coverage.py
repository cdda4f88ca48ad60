"""How often the audit's 95 % intervals hold the true gap: the tables in docs/evidence/coverage.md.

python -m benchmarks.coverage 200          all laws of the scores
python -m benchmarks.coverage 200 five     only those whose name has this in it
"""

import sys

import numpy as np
from scipy import stats

from fairmatch.measures.intervals import (
    ScoreGrid,
    fold,
    mean_of_rate_gaps,
    pair_mean,
    rate_difference,
    rate_over_rate,
)

GRID_MEASURES = "mean_gap", "wasserstein", "kolmogorov_smirnov", "total_variation"
SYMBOLS = "Δ‾DP", "ΔWDP", "ΔKSDP", "ΔTVDP", "ΔDP", "ratio", "ΔEO", "ΔMDP"
BINS = 20
THRESHOLD = 0.5
SIZES = (30, 30), (30, 1000), (1000, 30), (200, 200)


class Atoms:
    """A law of a few scores."""

    def __init__(self, **shares):
        self.values = np.array([float(name.removeprefix("p")) / 100 for name in shares])
        self.shares = np.array(list(shares.values()))

    def rvs(self, size, random_state):
        return random_state.choice(self.values, size, p=self.shares)

    def cdf(self, at):
        return np.where(at[:, None] >= self.values - 1e-12, self.shares, 0.0).sum(axis=1)

    def mean(self):
        return float(self.values @ self.shares)


def two(share):
    """Scores .1 and .9, of which .9 has the share."""
    return Atoms(p10=1 - share, p90=share)


def levels(*shares):
    """Scores .1, .3, .5, .7 and .9."""
    return Atoms(**dict(zip(("p10", "p30", "p50", "p70", "p90"), shares, strict=True)))


# Two laws of scores each: of which the groups are, whichever is the smaller.
LAWS = {
    "alike, continuous": (stats.beta(2, 3), stats.beta(2, 3)),
    "moved by .02": (stats.beta(2, 3, scale=0.85), stats.beta(2, 3, scale=0.85, loc=0.02)),
    "moved by .1": (stats.beta(2, 3, scale=0.85), stats.beta(2, 3, scale=0.85, loc=0.1)),
    "reshaped, means .1 apart": (stats.beta(2, 2), stats.beta(2, 3)),
    "skewed": (stats.beta(0.3, 6), stats.beta(0.4, 6)),
    "skewed, alike": (stats.beta(0.2, 8), stats.beta(0.2, 8)),
    "near constant": (stats.beta(800, 800), stats.beta(800, 800)),
    "{.1, .9}: .01 and .01": (two(0.01), two(0.01)),
    "{.1, .9}: .05 and .01": (two(0.05), two(0.01)),
    "{.1, .9}: .01 and .05": (two(0.01), two(0.05)),
    "{.1, .9}: .1 and .05": (two(0.1), two(0.05)),
    "{.1, .9}: .5 and .5": (two(0.5), two(0.5)),
    "{.1, .9}: 1 and .97": (two(1.0), two(0.97)),
    "five levels, alike": (levels(0.6, 0.3, 0.08, 0.01, 0.01),) * 2,
    "five levels": (levels(0.6, 0.3, 0.08, 0.01, 0.01), levels(0.5, 0.3, 0.1, 0.07, 0.03)),
}


def true_gaps(first, second):
    grid = (np.arange(200_001) / 200_000).round(9)
    difference = first.cdf(grid) - second.cdf(grid)
    # numpy.histogram counts a score at a border to the interval above it.
    borders = np.linspace(0.0, 1.0, BINS + 1)[1:-1]
    below = [law.cdf(borders - 1e-9) for law in (first, second)]
    bins = np.diff(below[0] - below[1], prepend=0.0, append=0.0)
    rates = [1.0 - float(law.cdf(np.array([THRESHOLD - 1e-9]))[0]) for law in (first, second)]
    gap = abs(rates[0] - rates[1])
    low, high = sorted(rates)
    return {
        "Δ‾DP": abs(first.mean() - second.mean()),
        "ΔWDP": np.abs(difference).mean(),
        "ΔKSDP": np.abs(difference).max(),
        "ΔTVDP": np.abs(bins).sum() / 2,
        "ΔDP": gap,
        "ratio": low / high if high > 1e-6 else np.nan,
        "ΔEO": gap,
        # Of scores that are paired at random; the matching is taken as given.
        "ΔMDP": mean_distance(first, second),
    }


def mean_distance(first, second):
    """E|a - b| of independent a and b, which is the integral of F (1 - G) + G (1 - F)."""
    grid = np.linspace(0, 1, 200_001)
    one, other = first.cdf(grid), second.cdf(grid)
    return float((one * (1 - other) + other * (1 - one)).mean())


def folded_ratio(counts, sizes):
    """Return the interval of the smaller rate over the larger."""
    low, high = rate_over_rate(counts, sizes, 0.95)
    if low <= 1.0 <= high:
        return min(low, 1.0 / high), 1.0
    return (low, high) if high < 1.0 else (1.0 / high, 1.0 / low)


def intervals(scores, generator):
    """Return the interval of every gap, on one table."""
    sizes = tuple(map(len, scores))
    grid = ScoreGrid(scores, n_resamples=300, generator=generator)
    found = []
    for name in GRID_MEASURES:
        spread = getattr(grid, name)(0.95)
        found.append((spread.low, spread.high))
    counts = tuple(int((s >= THRESHOLD).sum()) for s in scores)
    found.append(fold(rate_difference(counts, sizes, 0.95)))
    found.append(folded_ratio(counts, sizes) if any(counts) else (0.0, 1.0))
    # Both gaps of equalized odds are those of the same rates, on two halves of the people.
    halves = tuple((s[: len(s) // 2], s[len(s) // 2 :]) for s in scores)
    hits = tuple(tuple(int((s[k] >= THRESHOLD).sum()) for s in halves) for k in (0, 1))
    sides = tuple(tuple(len(s[k]) for s in halves) for k in (0, 1))
    settings = {"n_resamples": 300, "generator": generator}
    found.append(mean_of_rate_gaps(hits, sides, 0.95, **settings))
    n_pairs = min(sizes)
    distances = np.abs(scores[0][:n_pairs] - scores[1][:n_pairs])
    mass = np.full(n_pairs, 1.0 / n_pairs)
    found.append(pair_mean(distances, mass, np.arange(n_pairs), 0.95, **settings))
    return dict(zip(SYMBOLS, found, strict=True))


def coverage(first, second, sizes, n_tables, generator):
    truth = true_gaps(first, second)
    hits = dict.fromkeys(SYMBOLS, 0)
    for _ in range(n_tables):
        scores = tuple(
            law.rvs(size, random_state=generator)
            for law, size in zip((first, second), sizes, strict=True)
        )
        for name, (low, high) in intervals(scores, generator).items():
            # The true gap of a law to itself is 0, not the rounding of an integral.
            hits[name] += low <= truth[name] + 1e-5 and truth[name] <= high + 1e-5
    return [np.nan if np.isnan(truth[name]) else hits[name] / n_tables for name in SYMBOLS]


def main():
    n_tables = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    part = sys.argv[2] if len(sys.argv) > 2 else ""
    print(f"| laws of the scores | people | {' | '.join(SYMBOLS)} |")
    print("|---" * (len(SYMBOLS) + 2) + "|")
    for place, (name, laws) in enumerate(LAWS.items()):
        for sizes in SIZES if part in name else ():
            generator = np.random.default_rng((2026, place, *sizes))
            shares = coverage(*laws, sizes, n_tables, generator)
            cells = " | ".join("–" if np.isnan(share) else f"{share:.3f}" for share in shares)
            print(f"| {name} | {sizes[0]:,} and {sizes[1]:,} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
