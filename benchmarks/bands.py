"""Age as a number, and the share of a minority in a region: what matching adjacent bands does.

python -m benchmarks.bands 0 1 2 3 4
python -m benchmarks.bands coverage 400

Trees learn with a fairness weight on bands of the number; half of the rows report. One line of
records/bands.jsonl is written for each table, split and weight. With "coverage", the interval of
the generalised gap and the band around the mean score are drawn so many times, where the truth is
known; records/numbers.jsonl has a line for each setting.
"""

import json
import sys
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier

from fairmatch import FTMBoostingClassifier, bands, fairness_path
from fairmatch.datasets import load_bank, load_german
from fairmatch.measures import generalized_parity_gap, mean_parity_gap
from fairmatch.measures.numbers import dependence

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


def coverage(n_draws, seed=2026):
    """Record how often intervals hold the truth: means on a line, of decisions and of scores."""
    file = (RECORDS.parent / "numbers.jsonl").open("w")
    for n_people, slope, decides in product((400, 1000, 4000), (0.0, 0.1, 0.3, 1.0), (True, False)):
        generator = np.random.default_rng([seed, n_people, round(10 * slope), decides])
        held = np.zeros(2)
        for _ in range(n_draws):
            number = generator.uniform(size=n_people)
            level = 0.5 + 0.5 * slope * (number - 0.5)
            noise = generator.random(n_people) if decides else generator.normal(0, 0.2, n_people)
            scores = (noise < level).astype(float) if decides else level + noise
            found = dependence(scores, number, np.ones(n_people), np.arange(n_people))
            held[0] += found.low <= slope / 8.0 <= found.high
            held[1] += all(
                point.mean_low <= 0.5 + 0.5 * slope * (point.number - 0.5) <= point.mean_high
                for point in found.points
            )
        told = {"n_people": n_people, "slope": slope, "decides": decides, "n_draws": n_draws}
        told |= dict(zip(("interval", "band"), (held / n_draws).round(4).tolist(), strict=True))
        file.write(json.dumps(told) + "\n")
        print(told, flush=True)


def main():
    """Run what is not recorded yet."""
    if sys.argv[1:2] == ["coverage"]:
        return coverage(int(sys.argv[2]))
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
