"""How often the audit's 95 % intervals hold the true gap: the table in docs/audit.md.

python -m benchmarks.coverage 300
"""

import sys

import numpy as np
from scipy import stats

from fairmatch.measures.intervals import ScoreGrid

MEASURES = "mean_gap", "wasserstein", "kolmogorov_smirnov", "total_variation"
BINS = 20


def moved(gap):
    """Two laws of scores, the second moved up by the gap."""
    return stats.beta(2, 3, scale=0.85), stats.beta(2, 3, scale=0.85, loc=gap)


def reshaped(gap):
    """Two beta laws whose means differ by the gap."""
    return stats.beta(2, 2), stats.beta(2, 2 / (0.5 - gap) - 2)


def true_gaps(first, second):
    grid = np.linspace(0, 1, 200_001)
    difference = first.cdf(grid) - second.cdf(grid)
    bins = np.diff(difference[:: (len(grid) - 1) // BINS])
    area = np.abs(difference).mean()
    gaps = abs(first.mean() - second.mean()), area, np.abs(difference).max()
    return dict(zip(MEASURES, [*gaps, np.abs(bins).sum() / 2], strict=True))


def coverage(first, second, n_rows, n_tables, generator):
    truth = true_gaps(first, second)
    hits = dict.fromkeys(MEASURES, 0)
    for _ in range(n_tables):
        scores = tuple(law.rvs(n_rows // 2, random_state=generator) for law in (first, second))
        grid = ScoreGrid(scores, bins=BINS, n_resamples=300, generator=generator)
        for name in MEASURES:
            spread = getattr(grid, name)(0.95)
            # The true gap of a distribution to itself is 0, not the rounding of an integral.
            hits[name] += spread.low <= truth[name] + 1e-9 and truth[name] <= spread.high + 1e-9
    return [hits[name] / n_tables for name in MEASURES]


def main():
    n_tables = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    generator = np.random.default_rng(2026)
    for family in (moved, reshaped):
        for n_rows in (200, 2000):
            for gap in (0.0, 0.02, 0.1):
                shares = coverage(*family(gap), n_rows, n_tables, generator)
                cells = " | ".join(f"{share:.3f}" for share in shares)
                print(f"| {family.__name__} | {n_rows:,} | {gap:g} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
