"""Which slack tells models apart, whoever happens to be in the sample.

python -m benchmarks.slack 10 11 12

The tables are in docs/evidence/nearest.md. Splits 0 to 9 are those of the results.
"""

import sys
from itertools import combinations

import numpy as np
from lightgbm import LGBMClassifier

from fairmatch import FTMBoostingClassifier, QuantileAlignmentClassifier, matching_curve
from fairmatch.datasets import load_adult, paper_split

SLACKS = (0.0, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02)
SIZES = (500,)
N_DRAWS = 8
N_TRAINED = 9000


def scored(split):
    """Scores of the test rows under four models of the first training rows."""
    trees = LGBMClassifier(n_estimators=100, random_state=0, n_jobs=1, verbose=-1)
    models = {
        "plain": trees,
        "aligned": QuantileAlignmentClassifier(trees, random_state=0),
    }
    for weight in (3.0, 10.0):
        models[f"FTM, λ = {weight:g}"] = FTMBoostingClassifier(
            LGBMClassifier(n_estimators=100, n_jobs=1),
            transport="marginal",
            fairness_weight=weight,
            warmup=0.0,
            random_state=0,
        )
    X, y, group = (rows[:N_TRAINED] for rows in (split.X_train, split.y_train, split.group_train))
    scores = {}
    for name, model in models.items():
        known = name != "plain"
        model.fit(X, y, **({"sensitive_features": group} if known else {}))
        given = {"sensitive_features": split.group_test} if known else {}
        scores[name] = model.predict_proba(split.X_test, **given)[:, 1]
    return scores


def positions(split, scores, n_people):
    """Position of each model at each slack, for every draw: models x draws x slacks."""
    generator = np.random.default_rng(0)
    found = np.empty((len(scores), N_DRAWS, len(SLACKS)))
    for draw in range(N_DRAWS):
        rows = np.concatenate(
            [
                generator.choice(np.flatnonzero(split.group_test == code), n_people, replace=False)
                for code in (0, 1)
            ]
        )
        for k, own in enumerate(scores.values()):
            curve = matching_curve(
                own[rows], split.group_test[rows], split.X_test[rows], tolerance=1e-4
            )
            found[k, draw] = [curve.position(slack) for slack in SLACKS]
    return found


def ratios(found):
    """Difference of two models on the same people over its deviation; the least of all pairs."""
    pairs = [found[a] - found[b] for a, b in combinations(range(len(found)), 2)]
    means, deviations = (np.array([f(pair) for pair in pairs]) for f in (_mean, _deviation))
    return np.min(np.abs(means) / np.maximum(deviations, 1e-12), axis=0)


def _mean(values):
    return values.mean(axis=0)


def _deviation(values):
    return values.std(axis=0, ddof=1)


def main():
    seeds = [int(seed) for seed in sys.argv[1:]] or [10, 11, 12]
    print(f"| split, n | model | {' | '.join(f'{slack:g}' for slack in SLACKS)} |")
    adult = load_adult()
    for seed in seeds:
        split = paper_split(adult, seed)
        scores = scored(split)
        for n_people in SIZES:
            found = positions(split, scores, n_people)
            for name, own in zip(scores, found, strict=True):
                cells = zip(_mean(own), _deviation(own), strict=True)
                shown = " | ".join(f"{mean:.3f} ± {wide:.3f}" for mean, wide in cells)
                print(f"| {seed}, {n_people:,} | {name} | {shown} |")
            least = " | ".join(f"{ratio:.1f}" for ratio in ratios(found))
            print(f"| {seed}, {n_people:,} | least ratio | {least} |", flush=True)


if __name__ == "__main__":
    main()
