"""How often each mode of ``fairmatch audit --gate`` stops a model whose gap is known.

``python benchmarks/gates.py`` prints the table of docs/howto/gate.md. Every table is drawn anew;
the gap is that of selection rates, the bound is 0.05, and the intervals are those of an audit.
"""

import sys

import numpy as np

from fairmatch import audit

BOUND = 0.05
GROUPS = {"two groups of 1,000": (1000, 1000), "1,500, 400, 150 and 60": (1500, 400, 150, 60)}
GAPS = (0.0, 0.05, 0.15)


def fails(sizes, gap, n_tables):
    """Return the share of tables that each mode stops; the second group is behind by the gap."""
    rates = np.full(len(sizes), 0.5)
    rates[1] -= gap
    groups = np.repeat([f"g{k}" for k in range(len(sizes))], sizes)
    stopped = np.zeros(3)
    for seed in range(n_tables):
        chance = np.repeat(rates, sizes)
        decisions = (np.random.default_rng([10, seed]).random(len(groups)) < chance).astype(float)
        found = audit(decisions, sensitive_features=groups, n_resamples=100, n_sample=2)
        stated = found.gap("demographic_parity_gap")
        stopped += [limit > BOUND for limit in (stated.low, stated.value, stated.high)]
    return stopped / n_tables


def main(n_tables=1000):
    """Print the table."""
    print("| people | true gap | `shown` | `estimate` | `upper` |\n|---|---|---|---|---|")
    for name, sizes in GROUPS.items():
        for gap in GAPS:
            shares = " | ".join(f"{share:.1%}" for share in fails(sizes, gap, n_tables))
            print(f"| {name} | {gap:.2f} | {shares} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
