"""Whether the numbers of an audit mean what they say: coverage and false alarms by simulation.

    python benchmarks/truth.py                     # prints the table; about a quarter of an hour
    python benchmarks/truth.py --replications 40
    python benchmarks/truth.py --replications 0    # prints the table of the records

Each cell simulates tables whose truth is known. A cell fails only if a binomial test at 99.9 % says
that coverage is below 93 %, or that false alarms exceed 6 %. The records are kept as they come, so
a run that was stopped goes on where it ended.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from fairmatch import audit
from fairmatch.auditing.facts import Audit
from fairmatch.measures.intervals import SCORE_BINS

FAST: dict[str, Any] = {"n_resamples": 200, "n_subsets": 1, "n_sample": 100}
SIZES = {2: (400, 150), 4: (600, 200, 90, 40), 9: (600, 300, 200, 150, 100, 80, 60, 45, 40)}
# How much the rate of the k-th group exceeds that of the first, as a share of the largest gap.
TRUTHS = {"none": 0.0, "small": 0.1, "large": 0.3}
SHIFTS = {2: (0, 1), 4: (0, 0.5, 1, 0.2), 9: (0, 1, 0.5, 0.2, 0.8, 0, 1, 0.3, 0.6)}
# Digits to which scores are rounded.
DIGITS = {"counts": 2, "ties": 1}
_GAPS = ("demographic_parity", "mean_parity", "wasserstein_parity", "total_variation_parity",
         "ks_parity", "matched_parity", "true_positive", "false_positive",
         "equalized_odds")  # fmt: skip
_FACTS = ("selection_rate", "mean_score", "base_rate", "accuracy", "true_positive_rate",
          "false_positive_rate", "auc", "impact_ratio")  # fmt: skip
# What is recorded, in this order: 1 if the interval holds or something is said to differ, 0 if
# not, and - where a table has no such fact.
WHAT = (
    *(f"{name}_gap" for name in _GAPS),
    "selection_ratio",
    *(f"{name} of the smallest group" for name in _FACTS),
    *("Fisher's test", "subsets", "subsets, excess", "changes"),
)
LEAST, BOUNDS = 0.001, {"coverage": 0.93, "false alarms": 0.06}


@dataclass(frozen=True)
class Law:
    """The distribution of scores and labels in a group with this mean score.

    A score has a beta distribution, and is the probability of a positive label. So the scores of
    people with a positive label, and of the others, have beta distributions too.
    """

    mean: float
    digits: int | None

    @cached_property
    def values(self) -> np.ndarray:
        """The scores: rounded ones, or the middles of 10,000 cells."""
        if self.digits is None:
            return (np.arange(10_000) + 0.5) / 10_000
        return np.arange(10**self.digits + 1) / 10**self.digits

    def mass(self, label: int) -> np.ndarray:
        """Return how likely each score is among people with this label."""
        law = stats.beta(4 * self.mean + label, 4 * (1 - self.mean) + 1 - label)
        inner = (self.values[1:] + self.values[:-1]) / 2
        return np.diff(law.cdf(np.concatenate([[0.0], inner, [1.0]])))

    @cached_property
    def positive(self) -> np.ndarray:
        """How likely each score is among people with a positive label."""
        return self.mass(1)

    @cached_property
    def negative(self) -> np.ndarray:
        """How likely each score is among people with a negative label."""
        return self.mass(0)

    @cached_property
    def every(self) -> np.ndarray:
        """How likely each score is."""
        return self.mean * self.positive + (1 - self.mean) * self.negative

    @cached_property
    def facts(self) -> dict[str, float]:
        """What an audit states about the group, by the name of the fact."""
        selected = self.values >= 0.5
        true, false = self.positive[selected].sum(), self.negative[selected].sum()
        below = np.cumsum(self.negative) - self.negative / 2
        return {
            "selection_rate": self.every[selected].sum(),
            "mean_score": self.every @ self.values,
            "base_rate": self.mean,
            "accuracy": self.mean * true + (1 - self.mean) * (1 - false),
            "true_positive_rate": true,
            "false_positive_rate": false,
            "auc": self.positive @ below,
        }

    def gaps(self, other: Law) -> dict[str, float]:
        """Return the gaps between two groups, by the name of the measure."""
        own, others = self.facts, other.facts
        apart = {name: abs(own[name] - others[name]) for name in own}
        both = apart["true_positive_rate"], apart["false_positive_rate"]
        below = np.abs(np.cumsum(self.every - other.every))
        cells = np.minimum((self.values * SCORE_BINS + 1e-9).astype(int), SCORE_BINS - 1)
        return {
            "demographic_parity_gap": apart["selection_rate"],
            "mean_parity_gap": apart["mean_score"],
            "wasserstein_parity_gap": float(below[:-1] @ np.diff(self.values)),
            "total_variation_parity_gap": float(
                np.abs(np.bincount(cells, self.every - other.every)).sum() / 2
            ),
            "ks_parity_gap": float(below.max()),
            "true_positive_gap": both[0],
            "false_positive_gap": both[1],
            "equalized_odds_gap": sum(both) / 2,
        }


def laws(n_groups: int, truth: str, how: str) -> list[Law]:
    """Return the distributions of the groups."""
    shifts = TRUTHS[truth] * np.array(SHIFTS[n_groups])
    found: dict[float, Law] = {}
    return [found.setdefault(s, Law(0.35 + s, DIGITS.get(how))) for s in shifts.tolist()]


def table(
    n_groups: int, truth: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return groups, scores and labels. A score has a mean that depends on the group."""
    group = np.repeat(np.arange(n_groups), SIZES[n_groups])
    mean = 0.35 + TRUTHS[truth] * np.array(SHIFTS[n_groups])[group]
    score = rng.beta(4 * mean, 4 * (1 - mean))
    return group, score, (rng.random(len(group)) < score).astype(int)


def holds(fact: Any, truth: float) -> bool:
    """Return whether the interval of a fact contains the truth."""
    assert fact.low is not None
    return bool(fact.low - 1e-9 <= truth <= fact.high + 1e-9)


def stated(found: Audit, known: list[Law], gap: str) -> list[int]:
    """Return the groups that a gap is about: those with enough people of the labels it needs."""
    needs = {
        "true_positive_gap": ("true_positive_rate",),
        "false_positive_gap": ("false_positive_rate",),
        "equalized_odds_gap": ("true_positive_rate", "false_positive_rate"),
    }.get(gap, ())
    facts = [[getattr(own, name).value for name in needs] for own in found.groups]
    return [k for k in range(len(known)) if None not in facts[k]]


def covered(found: Audit, known: list[Law]) -> Iterator[tuple[str, bool]]:
    """Yield whether each interval of an audit contains the truth."""
    for gap in found.gaps:
        compared = [known[k] for k in stated(found, known, gap.name)]
        if gap.low is not None:
            pairs = [a.gaps(b)[gap.name] for a, b in combinations(compared, 2)]
            yield gap.name, holds(gap, max(pairs))
    rates = [law.facts["selection_rate"] for law in known]
    yield "selection_ratio", holds(found.selection_ratio, min(rates) / max(rates))
    own, (impact,) = found.groups[-1], found.impact
    for name, truth in known[-1].facts.items():
        if (fact := getattr(own, name)).low is not None:
            yield f"{name} of the smallest group", holds(fact, truth)
    last = impact.categories[-1]
    assert impact.most_selected is not None
    if last.category != impact.most_selected:
        truth = rates[-1] / rates[int(impact.most_selected)]
        yield "impact_ratio of the smallest group", holds(last.impact_ratio, truth)


def coverage(n_groups: int, truth: str, how: str) -> Callable[[int], dict[str, bool]]:
    """Return a simulation: whether each interval holds what is true."""
    known = laws(n_groups, truth, how)

    def once(seed: int) -> dict[str, bool]:
        rng = np.random.default_rng([seed, n_groups, len(truth)])
        group, score, label = table(n_groups, truth, rng)
        more: dict[str, Any] = {}
        if how in DIGITS:
            score = score.round(DIGITS[how])
        if how == "weights":
            more = {"sample_weight": rng.uniform(0.5, 1.5, len(group))}
        if how == "counts":
            rows = pd.DataFrame({"g": group, "s": score, "y": label})
            rows = rows.value_counts().reset_index()
            group, score, label = (rows[name].to_numpy() for name in "gsy")
            more = {"sample_weight": rows["count"], "weight_kind": "counts"}
        if how == "repeated":
            more = {"ids": np.repeat(np.arange(len(group)), 3)}
            group, score, label = (np.repeat(own, 3) for own in (group, score, label))
        people = {"sensitive_features": group, "y_true": label, "random_state": seed}
        return dict(covered(audit(score, **people, **more, **FAST), known))

    return once


def alarms(how: str) -> Callable[[int], dict[str, bool]]:
    """Return a simulation without any difference: whether something is said to differ."""

    def once(seed: int) -> dict[str, bool]:
        rng = np.random.default_rng([seed, 77])
        n = 400
        X = pd.DataFrame({"a": rng.integers(0, 4, n).astype(str), "b": rng.integers(0, 9, n)})
        group, score = rng.integers(0, 2, n), rng.random(n)
        label = (rng.random(n) < score).astype(int)
        if how == "ties":
            score = rng.integers(0, 2, n).astype(float)
        more: dict[str, Any] = {}
        if how == "repeated":
            at = np.repeat(np.arange(n), 4)
            X, group, score, label = X.iloc[at], group[at], score[at], label[at]
            more = {"ids": at}
        people = {"sensitive_features": group, "y_true": label, "random_state": seed}
        found = audit(score, X=X, **people, **more, **FAST)
        assert found.subsets is not None
        listed = found.subsets.subsets
        tests = [own.p_adjusted for own in found.impact[0].categories]
        return {
            **{gap.name: (gap.low or 0.0) > 0.0 for gap in found.gaps},
            "selection_ratio": (found.selection_ratio.high or 1.0) < 1.0,
            "Fisher's test": any(own is not None and own < 0.05 for own in tests),
            "subsets": any((one.confirmed.low or 0.0) > 0.0 for one in listed),
            "subsets, excess": any(one.excess and (one.excess.low or 0) > 0 for one in listed),
        }

    return once


def changes(seed: int) -> dict[str, bool]:
    """Return whether an audit of four periods without a change says that something changed."""
    rng = np.random.default_rng([seed, 78])
    drawn = [table(4, "small", rng) for _ in range(3)]  # at least 30 people of a group and period
    group, score, label = map(np.concatenate, zip(*drawn, strict=True))
    year = rng.permutation(np.resize(np.arange(4), len(group)))
    people = {"sensitive_features": group, "y_true": label, "by": year}
    found = audit(score, **people, random_state=seed, **FAST)
    return {"changes": any(own.p_adjusted < 0.05 for own in found.changes)}


CELLS: dict[str, tuple[str, Callable[[int], dict[str, bool]]]] = {
    **{
        f"{n_groups} groups, gap {truth}, {how}": ("coverage", coverage(n_groups, truth, how))
        for how in ("people", "ties", "weights", "counts", "repeated")
        for n_groups in (SIZES if how == "people" else (2, 4))
        for truth in TRUTHS
    },
    **{f"no gap, {how}": ("false alarms", alarms(how)) for how in ("people", "ties", "repeated")},
    "no change, 4 periods": ("false alarms", changes),
}


def findable(n: int, bound: float, side: str) -> float:
    """Return the least extreme share that the test finds with a probability of 80 %."""
    hits = np.arange(n + 1)
    tail = stats.binom.cdf(hits, n, bound) if side == "less" else stats.binom.sf(hits - 1, n, bound)
    fails = hits[tail < LEAST]
    shares = np.arange(bound, 0.0, -0.001) if side == "less" else np.arange(bound, 1.0, 0.001)
    power = [stats.binom.pmf(fails, n, share).sum() for share in shares]
    enough = np.array(power) >= 0.8
    return float(shares[int(np.argmax(enough))]) if enough.any() else float("nan")


def packed(found: dict[str, bool]) -> str:
    """Return what was found in one table as a sign for each of `WHAT`."""
    assert set(found) <= set(WHAT)
    return "".join(str(int(found[name])) if name in found else "-" for name in WHAT)


def unpacked(signs: str) -> dict[str, bool]:
    """Return what was found in one table."""
    return {name: sign == "1" for name, sign in zip(WHAT, signs, strict=True) if sign != "-"}


def main() -> None:
    """Simulate every cell, keep the counts as they come, and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=250)
    parser.add_argument("--records", default=Path(__file__).parent / "records" / "truth.jsonl")
    asked = parser.parse_args()
    path = Path(asked.records)
    done = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        record = json.loads(line)
        done[record["cell"], record["seed"]] = unpacked(record["found"])
    for seed in range(10, 10 + asked.replications):
        for cell, (_, once) in CELLS.items():
            if (cell, seed) not in done:
                done[cell, seed] = found = once(seed)
                record = {"cell": cell, "seed": seed, "found": packed(found)}
                with path.open("a") as file:
                    file.write(json.dumps(record) + "\n")
    print("| cell | kind | what | tables | share | |\n|---|---|---|---|---|---|")
    failed, numbers = 0, set()
    for cell, (kind, _) in CELLS.items():
        own = [found for (name, _), found in done.items() if name == cell]
        side = "less" if kind == "coverage" else "greater"
        for what in dict.fromkeys(name for found in own for name in found):
            given = [found[what] for found in own if what in found]
            hits, n = sum(given), len(given)
            numbers.add(n)
            fails = stats.binomtest(hits, n, BOUNDS[kind], alternative=side).pvalue < LEAST
            failed += fails
            verdict = "FAILS" if fails else ""
            print(f"| {cell} | {kind} | {what} | {n} | {hits / n:.3f} | {verdict} |")
    n = max(numbers)
    print(
        f"\nWith {n} tables the test finds, with a probability of 80 %, coverage of "
        f"{findable(n, BOUNDS['coverage'], 'less'):.3f} and false alarms of "
        f"{findable(n, BOUNDS['false alarms'], 'greater'):.3f}."
    )
    raise SystemExit(int(failed > 0))


if __name__ == "__main__":
    main()
