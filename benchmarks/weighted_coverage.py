"""How often the audit's 95 % intervals of weighted rows hold the true gap.

python -m benchmarks.weighted_coverage 200
"""

import sys

import numpy as np
from scipy import stats

from benchmarks.coverage import true_gaps
from fairmatch import audit

NAMES = {
    "demographic_parity_gap": "ΔDP",
    "mean_parity_gap": "Δ‾DP",
    "wasserstein_parity_gap": "ΔWDP",
    "ks_parity_gap": "ΔKSDP",
}


def draw(law, n_rows, kind, generator):
    """Draw scores and their weights: a survey that takes some people more often, or counts."""
    if kind == "counts":
        scores = np.round(law.rvs(n_rows, random_state=generator), 2)
        values, counts = np.unique(scores, return_counts=True)
        return values, counts.astype(float)
    # People are taken in proportion to a size; of "related" also in proportion to their score.
    pool = law.rvs(40 * n_rows, random_state=generator)
    size = generator.lognormal(0.0, 0.6, len(pool))
    if kind == "related":
        size *= 0.3 + pool
    taken = generator.choice(len(pool), n_rows, replace=False, p=size / size.sum())
    return pool[taken], 1.0 / size[taken]


def coverage(gap, n_rows, kind, n_tables, generator):
    """Return the share of tables whose interval holds the truth, for each gap."""
    first, second = stats.beta(2, 3, scale=0.85), stats.beta(2, 3, scale=0.85, loc=gap)
    exact = true_gaps(first, second)
    truth = {name: exact[symbol] for name, symbol in NAMES.items()}
    if kind == "counts":  # of rounded scores the truth is that of rounded scores
        edges = np.append(-1.0, np.arange(101) / 100 + 0.005)
        masses = [np.diff(law.cdf(edges)) for law in (first, second)]
        difference = np.cumsum(masses[0] - masses[1])
        values = np.arange(101) / 100
        truth = {
            "demographic_parity_gap": abs(difference[49]),
            "mean_parity_gap": abs((masses[0] - masses[1]) @ values),
            "wasserstein_parity_gap": np.abs(difference[:-1]).sum() / 100,
            "ks_parity_gap": np.abs(difference).max(),
        }
    hits = dict.fromkeys(NAMES, 0)
    for _ in range(n_tables):
        parts = [draw(law, n_rows // 2, kind, generator) for law in (first, second)]
        found = audit(
            np.clip(np.concatenate([scores for scores, _ in parts]), 0.0, 1.0),
            sensitive_features=np.repeat([0, 1], [len(scores) for scores, _ in parts]),
            sample_weight=np.concatenate([weights for _, weights in parts]),
            weight_kind="counts" if kind == "counts" else "survey",
            n_resamples=200,
        )
        for name in NAMES:
            fact = found.gap(name)
            hits[name] += fact.low <= truth[name] + 1e-9 and truth[name] <= fact.high + 1e-9
    return [hits[name] / n_tables for name in NAMES]


def main():
    """Print one line of a table per kind of weights, size and true gap."""
    n_tables = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    generator = np.random.default_rng(2026)
    print(f"| weights | rows | true gap in means | {' | '.join(NAMES.values())} |")
    print("|---" * (3 + len(NAMES)) + "|")
    for kind in ("unrelated", "related", "counts"):
        for n_rows in (200, 2000):
            for gap in (0.0, 0.1):
                cells = coverage(gap, n_rows, kind, n_tables, generator)
                shown = " | ".join(f"{share:.3f}" for share in cells)
                print(f"| {kind} | {n_rows:,} | {gap:g} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
