"""How often the kept model's true gap exceeds the bound: a simulation with known truth.

    python -m benchmarks.promise --label after [--repetitions 200]

Two, five and nine groups, the smallest of 40 people; and of 200, so that more groups can show that
they keep a bound. Every cell is one line of benchmarks/records/promise.jsonl, with the label of the
code that was measured.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.timing import Row, appended, recorded

SIZES = {
    2: (2_000, 40),
    5: (2_000, 800, 300, 120, 40),
    9: (2_000, 1_000, 600, 400, 250, 150, 100, 60, 40),
}
#: Groups, bound and how many times as many people. The 8 people of the smallest group who are set
#: aside can show .4 at best; 40 people can show .3.
CELLS = (
    *((n_groups, max_gap, 1) for n_groups in SIZES for max_gap in (0.1, 0.4)),
    (2, 0.25, 1),
    *((n_groups, 0.3, 5) for n_groups in SIZES),
)
CONFIDENCES = (None, 0.95)
N_POPULATION = 20_000


def population(sizes, generator):
    """Draw people whose features and labels differ by group."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    shift = np.linspace(0.7, -0.7, len(sizes))[group]
    X = generator.normal(size=(len(group), 3)) + shift[:, None] * np.array([1.0, 0.5, 0.0])
    chance = 1.0 / (1.0 + np.exp(-(1.5 * X[:, 0] + X[:, 2] - 0.3)))
    return X, (generator.random(len(group)) < chance).astype(np.int64), group


def repetition(seed, sizes, max_gap, confidence, everybody):
    """Return whether a model within the bound was found, its true gap and its accuracy."""
    from fairmatch import QuantileAlignmentClassifier
    from fairmatch.exceptions import GapNotReachedWarning

    X, y, group = population(sizes, np.random.default_rng(seed))
    model = QuantileAlignmentClassifier(
        LogisticRegression(), max_gap=max_gap, confidence=confidence, random_state=seed
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sensitive_features=group)
    found = not any(issubclass(w.category, GapNotReachedWarning) for w in caught)
    features, labels, groups = everybody
    accepted = model.predict(features, sensitive_features=groups) == 1
    rates = [accepted[groups == code].mean() for code in range(len(sizes))]
    return found, max(rates) - min(rates), np.mean(accepted == labels)


def cell(n_groups, max_gap, times, confidence, n_repetitions):
    sizes = [times * size for size in SIZES[n_groups]]
    everybody = population([N_POPULATION] * n_groups, np.random.default_rng(2026))
    start = time.process_time()
    outcomes = [
        repetition(seed, sizes, max_gap, confidence, everybody)
        for seed in range(10, 10 + n_repetitions)
    ]
    found, gaps, accuracies = (np.array(part, dtype=float) for part in zip(*outcomes, strict=True))
    return {
        "repetitions": n_repetitions,
        "found": round(found.mean(), 4),
        "found_above": round(float(((found == 1.0) & (gaps > max_gap)).mean()), 4),
        "kept_above": round(float((gaps > max_gap).mean()), 4),
        "gap": round(float(gaps.mean()), 4),
        "accuracy": round(float(accuracies.mean()), 4),
        "cpu": round(time.process_time() - start, 1),
    }


def rows():
    found = recorded("promise")
    last = found[-1]["label"] if found else None
    for r in found:
        sure = "none" if r["confidence"] is None else f"{r['confidence']:g}"
        goal = 0.05 if r["confidence"] and r["label"] == last else None
        times = f", {r['times']} times as many people" if r.get("times", 1) > 1 else ""
        what = (
            f"{r['groups']} groups{times}, max_gap {r['max_gap']:g}, confidence {sure} "
            f"({r['label']}, {r['repetitions']} tables; found in {r['found']:.0%}; mean true gap "
            f"{r['gap']:.3f})"
        )
        yield Row(f"{what}: found, and its true gap is above", r["found_above"], goal, 3)
        yield Row(f"{what}: any kept model's true gap is above", r["kept_above"], digits=3)


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.promise", description=__doc__)
    parser.add_argument("--label", required=True)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--confidences", nargs="+", type=float, default=CONFIDENCES)
    asked = parser.parse_args()
    for n_groups, max_gap, times in CELLS:
        for confidence in asked.confidences:
            key = {"label": asked.label, "groups": n_groups, "max_gap": max_gap,
                   "confidence": confidence or None, "times": times}  # fmt: skip
            if any(key.items() <= one.items() for one in recorded("promise")):
                continue
            one = cell(n_groups, max_gap, times, confidence or None, asked.repetitions)
            print(appended("promise", {**key, **one}), flush=True)


if __name__ == "__main__":
    main()
