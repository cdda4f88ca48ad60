"""Whether the numbers of an audit mean what they say: coverage and false alarms by simulation.

    python benchmarks/truth.py                 # prints the table; about an hour
    python benchmarks/truth.py --replications 40

Each cell simulates tables whose truth is known. A cell fails only if a binomial test at 99.9 % says
that coverage is below 93 %, or that false alarms exceed 6 %.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from fairmatch import audit

FAST: dict[str, Any] = {"n_resamples": 200, "n_subsets": 1, "n_sample": 100}
SIZES = {2: (400, 150), 4: (600, 200, 90, 40), 9: (600, 300, 200, 150, 100, 80, 60, 45, 40)}
# How much the rate of the k-th group exceeds that of the first, as a share of the largest gap.
TRUTHS = {"none": 0.0, "small": 0.1, "large": 0.3}
SHIFTS = {2: (0, 1), 4: (0, 0.5, 1, 0.2), 9: (0, 1, 0.5, 0.2, 0.8, 0, 1, 0.3, 0.6)}


def table(n_groups: int, truth: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return groups and scores. A score is in [0, 1], with a mean that depends on the group."""
    group = np.repeat(np.arange(n_groups), SIZES[n_groups])
    mean = 0.35 + TRUTHS[truth] * np.array(SHIFTS[n_groups])[group]
    return group, rng.beta(4 * mean, 4 * (1 - mean))


def true_gaps(n_groups: int, truth: str) -> dict[str, float]:
    """Return the true gaps of decisions, means and distributions, in closed form."""
    means = 0.35 + TRUTHS[truth] * np.array(SHIFTS[n_groups])
    least, most = (stats.beta(4 * m, 4 * (1 - m)) for m in (means.min(), means.max()))
    at = np.linspace(0.0, 1.0, 20001)
    return {
        "demographic_parity_gap": float(most.sf(0.5) - least.sf(0.5)),
        "mean_parity_gap": float(means.max() - means.min()),
        "wasserstein_parity_gap": float(means.max() - means.min()),
        "ks_parity_gap": float(np.abs(most.cdf(at) - least.cdf(at)).max()),
    }


def coverage(n_groups: int, truth: str, how: str) -> Callable[[int], dict[str, bool]]:
    """Return a simulation: whether each interval holds the true gap."""
    known = true_gaps(n_groups, truth)

    def once(seed: int) -> dict[str, bool]:
        rng = np.random.default_rng([seed, n_groups, len(truth)])
        group, score = table(n_groups, truth, rng)
        more: dict[str, Any] = {}
        if how == "weights":
            more = {"sample_weight": rng.uniform(0.5, 1.5, len(group))}
        if how == "counts":
            rows = pd.DataFrame({"g": group, "s": score.round(2)}).value_counts().reset_index()
            group, score = rows["g"].to_numpy(), rows["s"].to_numpy()
            more = {"sample_weight": rows["count"], "weight_kind": "counts"}
        if how == "repeated":
            more = {"ids": np.repeat(np.arange(len(group)), 3)}
            group, score = np.repeat(group, 3), np.repeat(score, 3)
        found = audit(score, sensitive_features=group, random_state=seed, **more, **FAST)
        # Rounded scores move a true gap by less than the rounding.
        slack = 0.005 if how == "counts" else 1e-9
        gaps = {name: found.gap(name) for name in known}
        return {
            name: (gap.low or 0.0) - slack <= known[name] <= (gap.high or 0.0) + slack
            for name, gap in gaps.items()
        }

    return once


def alarms(how: str) -> Callable[[int], dict[str, bool]]:
    """Return a simulation without any difference: whether something is said to differ."""

    def once(seed: int) -> dict[str, bool]:
        rng = np.random.default_rng([seed, 77])
        n = 400
        X = pd.DataFrame({"a": rng.integers(0, 4, n).astype(str), "b": rng.integers(0, 9, n)})
        group, score = rng.integers(0, 2, n), rng.random(n)
        if how == "ties":
            score = rng.integers(0, 2, n).astype(float)
        more: dict[str, Any] = {}
        if how == "repeated":
            at = np.repeat(np.arange(n), 4)
            X, group, score, more = X.iloc[at], group[at], score[at], {"ids": at}
        found = audit(score, sensitive_features=group, X=X, random_state=seed, **more, **FAST)
        listed = found.subsets.subsets if found.subsets else ()
        return {
            **{gap.name: (gap.low or 0.0) > 0.0 for gap in found.gaps},
            "subsets": any((one.confirmed.low or 0.0) > 0.0 for one in listed),
            "subsets, excess": any(one.excess and (one.excess.low or 0) > 0 for one in listed),
        }

    return once


CELLS: dict[str, tuple[str, Callable[[int], dict[str, bool]]]] = {
    **{
        f"{n_groups} groups, gap {truth}, {how}": ("coverage", coverage(n_groups, truth, how))
        for how in ("people", "weights", "counts", "repeated")
        for n_groups in (SIZES if how == "people" else (2,))
        for truth in TRUTHS
    },
    **{f"no gap, {how}": ("false alarms", alarms(how)) for how in ("people", "ties", "repeated")},
}


def main() -> None:
    """Simulate every cell, keep the counts as they come, and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--records", default=Path(__file__).parent / "records" / "truth.jsonl")
    asked = parser.parse_args()
    path = Path(asked.records)
    done = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        record = json.loads(line)
        done[record["cell"], record["seed"]] = record["found"]
    for seed in range(10, 10 + asked.replications):
        for cell, (_, once) in CELLS.items():
            if (cell, seed) not in done:
                found = {name: bool(value) for name, value in once(seed).items()}
                done[cell, seed] = found
                with path.open("a") as file:
                    file.write(json.dumps({"cell": cell, "seed": seed, "found": found}) + "\n")
    print("| cell | kind | measure | tables | share | |\n|---|---|---|---|---|---|")
    failed = 0
    for cell, (kind, _) in CELLS.items():
        own = [found for (name, _), found in done.items() if name == cell]
        for measure in own[0] if own else ():
            hits, n = sum(found[measure] for found in own), len(own)
            side, bound = ("less", 0.93) if kind == "coverage" else ("greater", 0.06)
            fails = stats.binomtest(hits, n, bound, alternative=side).pvalue < 0.001
            failed += fails
            verdict = "FAILS" if fails else ""
            print(f"| {cell} | {kind} | {measure} | {n} | {hits / n:.3f} | {verdict} |")
    raise SystemExit(int(failed > 0))


if __name__ == "__main__":
    main()
