"""Age as a number, and the share of a minority in a region: what matching adjacent bands does.

python -m benchmarks.bands 0 1 2 3 4

Trees learn with a fairness weight on bands of the number; half of the rows report. One line of
records/bands.jsonl is written for each table, split and weight.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier

from fairmatch import FTMBoostingClassifier, bands, fairness_path
from fairmatch.datasets import load_bank, load_german
from fairmatch.measures import generalized_parity_gap, mean_parity_gap

RECORDS = Path(__file__).parent / "records" / "bands.jsonl"
WEIGHTS = (0.0, 1.0, 4.0)


def regions(n_people=6000, seed=0):
    """Return people of 300 regions: income falls with the share of a minority in the region."""
    generator = np.random.default_rng([seed, 5])
    share = generator.beta(1.0, 3.0, 300)
    region = generator.integers(300, size=n_people)
    number = share[region]
    income = generator.normal(size=n_people) - 2.0 * number
    density = 3.0 * number + generator.normal(size=n_people)
    X = pd.DataFrame({"income": income, "density": density, "age": generator.normal(size=n_people)})
    chance = 1.0 / (1.0 + np.exp(-1.5 * income - 0.5))
    return X, (generator.random(n_people) < chance).astype(int), number, np.array([0.1, 0.2, 0.4])


def tables():
    """Yield a name, features, labels, the number and its cuts."""
    for name, load in (("german", load_german), ("bank", load_bank)):
        table = load()
        X, age = table.X, table.X["age"].to_numpy(dtype=float)
        yield name, X.drop(columns="age"), np.asarray(table.y), age, [30, 40, 50]
    yield ("regions", *regions())


def main():
    """Run what is not recorded yet."""
    warnings.simplefilter("ignore")
    done = set()
    if RECORDS.exists():
        lines = map(json.loads, RECORDS.read_text().splitlines())
        done = {(own["table"], own["seed"]) for own in lines}
    trees = LGBMClassifier(n_estimators=60, verbose=-1, n_jobs=1, random_state=0)
    for name, X, y, number, cuts in tables():
        for seed in map(int, sys.argv[1:] or range(5)):
            if (name, seed) in done:
                continue
            order = np.random.default_rng(seed).permutation(len(y))
            train, test = order[: len(order) // 2], order[len(order) // 2 :]
            path = fairness_path(
                X.iloc[train],
                y[train],
                sensitive_features=bands(number[train], cuts),
                fairness_weights=WEIGHTS,
                estimator=FTMBoostingClassifier(
                    trees, sensitive_at_prediction=False, random_state=0
                ),
            )
            for weight, model in zip(WEIGHTS, path.models, strict=True):
                scores = model.predict_proba(X.iloc[test])[:, 1]
                found = {
                    "table": name,
                    "seed": seed,
                    "weight": weight,
                    "accuracy": float(np.mean((scores >= 0.5) == y[test])),
                    "generalized": generalized_parity_gap(
                        None, scores, sensitive_features=number[test]
                    ),
                    "largest": mean_parity_gap(
                        None, scores, sensitive_features=bands(number[test], cuts)
                    ),
                }
                with RECORDS.open("a") as file:
                    file.write(json.dumps(found) + "\n")
                print(found, flush=True)


if __name__ == "__main__":
    main()
