"""What it costs to decide without the group, and to learn from estimated groups, on Adult.

python -m benchmarks.blind 0 1 2 3 4

Three quarters of the rows train, by split. A fifth of these choose the strength or the weight, by
accuracy within a bound on the gap, and the test rows report. One line of records/blind.jsonl is
written for each split and method; lines that it has are not computed again.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
from lightgbm import LGBMClassifier

from fairmatch import (
    FTMBoostingClassifier,
    GroupBlindClassifier,
    fairness_path,
    group_probabilities,
)
from fairmatch.datasets import load_adult

RECORDS = Path(__file__).parent / "records" / "blind.jsonl"
BOUNDS = {"demographic_parity_gap": (0.02, 0.035, 0.05, 0.08), "equalized_odds_gap": (0.035,)}
HIDDEN = (0.0, 0.5, 0.9, 1.0)
WEIGHTS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
STRENGTHS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)


def trees():
    return LGBMClassifier(n_estimators=100, verbose=-1, n_jobs=1, random_state=0)


def models(measure):
    """Return the methods: a name, an estimator and its weights."""
    criterion = "demographic_parity" if measure.startswith("demographic") else "equalized_odds"
    shared = {"criterion": criterion, "random_state": 0}
    return {
        "likelihood ratio, blind": (GroupBlindClassifier(trees(), **shared), STRENGTHS),
        "FTM, blind": (
            FTMBoostingClassifier(trees(), sensitive_at_prediction=False, **shared),
            WEIGHTS,
        ),
        "FTM, with the group": (FTMBoostingClassifier(trees(), **shared), WEIGHTS),
    }


def split(adult, seed):
    """Return the rows that train, choose and report."""
    order = np.random.default_rng(seed).permutation(len(adult.y))
    cut = len(order) * 3 // 4
    return order[: cut * 4 // 5], order[cut * 4 // 5 : cut], order[cut:]


def hide(adult, rows, share, seed):
    """Return groups of which a share is hidden and estimated.

    The model of the group learns from the rows that are not hidden. If all are, it learns from
    1,000 people outside of the training rows, as an estimate that is bought would.
    """
    generator = np.random.default_rng([seed, 77])
    groups = np.asarray(adult.sensitive_features)
    labels = np.unique(groups)
    hidden = generator.random(len(rows)) < share
    known = rows[~hidden]
    if share == 1.0:
        known = np.setdiff1d(np.arange(len(groups)), rows)[:1000]
    values = np.column_stack([groups[rows] == label for label in labels]).astype(float)
    if share > 0.0:
        model = trees().fit(adult.X.iloc[known], groups[known])
        values[hidden] = model.predict_proba(adult.X.iloc[rows[hidden]])
    return group_probabilities(values, labels=labels.tolist())


def best(chosen, reported, measure, bound):
    """Return the test accuracy and gap of the most accurate model within the bound."""
    within = chosen[measure] <= bound
    at = chosen["accuracy"].where(within).idxmax() if within.any() else chosen[measure].idxmin()
    return {
        "accuracy": round(float(reported["accuracy"][at]), 5),
        "gap": round(float(reported[measure][at]), 5),
    }


def record(found):
    with RECORDS.open("a") as file:
        file.write(json.dumps(found) + "\n")
    print(found, flush=True)


def main():
    """Run what is not recorded yet."""
    warnings.simplefilter("ignore")
    done = set()
    if RECORDS.exists():
        lines = map(json.loads, RECORDS.read_text().splitlines())
        done = {(own["seed"], own["what"], own["measure"]) for own in lines}
    adult = load_adult()
    groups = np.asarray(adult.sensitive_features)
    for seed in map(int, sys.argv[1:] or range(5)):
        train, choose, report = split(adult, seed)

        def curves(path, choose=choose, report=report):
            return [
                path.curve(adult.X.iloc[rows], adult.y.iloc[rows], sensitive_features=groups[rows])
                for rows in (choose, report)
            ]

        for share in HIDDEN:
            what, measure = f"hidden {share:.0%}", "demographic_parity_gap"
            if (seed, what, measure) in done:
                continue
            path = fairness_path(
                adult.X.iloc[train],
                adult.y.iloc[train],
                sensitive_features=hide(adult, train, share, seed),
                fairness_weights=STRENGTHS,
                estimator=GroupBlindClassifier(trees(), random_state=0),
            )
            chosen, reported = curves(path)
            found = {str(b): best(chosen, reported, measure, b) for b in BOUNDS[measure]}
            full = {
                "accuracy": round(float(reported["accuracy"].iloc[-1]), 5),
                "gap": round(float(reported[measure].iloc[-1]), 5),
            }
            record({"seed": seed, "what": what, "measure": measure, "full": full, **found})
        for measure, bounds in BOUNDS.items():
            for what, (estimator, weights) in models(measure).items():
                if (seed, what, measure) in done:
                    continue
                path = fairness_path(
                    adult.X.iloc[train],
                    adult.y.iloc[train],
                    sensitive_features=groups[train],
                    fairness_weights=weights,
                    estimator=estimator,
                )
                chosen, reported = curves(path)
                found = {str(b): best(chosen, reported, measure, b) for b in bounds}
                record({"seed": seed, "what": what, "measure": measure, **found})


if __name__ == "__main__":
    main()
