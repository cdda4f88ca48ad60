"""How often ``max_gap`` is kept in the population, with and without ``confidence``.

python -m benchmarks.bound 300

The table is in docs/evidence/bound.md.
"""

import sys
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression

from fairmatch import QuantileAlignmentClassifier
from fairmatch.exceptions import FairmatchWarning, GapNotReachedWarning

# Rows to learn from (a fifth of them is held out), and the bound.
CASES = ((2_000, 0.2), (10_000, 0.1))
CONFIDENCES = (None, 0.95)
N_POPULATION = 100_000


def population(n_rows, generator):
    """People of two groups whose features and labels differ."""
    group = (generator.random(n_rows) < 0.4).astype(np.int64)
    X = generator.normal(size=(n_rows, 3)) + 0.7 * group[:, None] * np.array([1.0, 0.5, 0.0])
    chance = 1.0 / (1.0 + np.exp(-(1.5 * X[:, 0] + X[:, 2] - 0.8)))
    return X, (generator.random(n_rows) < chance).astype(np.int64), group


def repetition(seed, n_rows, max_gap, confidence, everybody):
    """Whether a model within the bound was found, its true gap, and its true accuracy."""
    X, y, group = population(n_rows, np.random.default_rng(seed))
    model = QuantileAlignmentClassifier(
        LogisticRegression(), max_gap=max_gap, confidence=confidence, random_state=seed
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FairmatchWarning)
        model.fit(X, y, sensitive_features=group)
    found = not any(issubclass(w.category, GapNotReachedWarning) for w in caught)
    features, labels, groups = everybody
    accepted = model.predict(features, sensitive_features=groups) == 1
    rates = [accepted[groups == code].mean() for code in (0, 1)]
    return found, abs(rates[1] - rates[0]), np.mean(accepted == labels)


def main():
    n_repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    everybody = population(N_POPULATION, np.random.default_rng(2026))
    print("| rows | max_gap | confidence | a model was found | its true gap is above | accuracy |")
    print("|---|---|---|---|---|---|")
    for n_rows, max_gap in CASES:
        for confidence in CONFIDENCES:
            outcomes = [
                repetition(seed, n_rows, max_gap, confidence, everybody)
                for seed in range(10, 10 + n_repetitions)
            ]
            kept = [(gap, accuracy) for found, gap, accuracy in outcomes if found]
            above = np.mean([gap > max_gap for gap, _ in kept]) if kept else float("nan")
            accuracy = np.mean([a for _, a in kept]) if kept else float("nan")
            print(
                f"| {n_rows:,} | {max_gap:g} | {confidence or '–'} | "
                f"{len(kept) / n_repetitions:.1%} | {above:.1%} | {accuracy:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
