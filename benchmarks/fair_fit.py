"""What a fair fit costs: CPU time / plain LightGBM with the same trees, one thread, in one run.

    python -m benchmarks.fair_fit --label after [--cases adult-sex ...]

Every case is measured in a process of its own and is one line of benchmarks/records/fair_fit.jsonl,
with the label of the code that was measured. `python -m benchmarks fair_fit` shows them.
"""

import argparse
import time
import warnings

import numpy as np

from benchmarks.timing import Row, appended, in_subprocess, recorded

ROUNDS = 200
GOALS = {
    "adult-sex": ("FTMBoostingClassifier(max_gap=.05), Adult by sex", 8.0),
    "acsincome-sex": ("FTMBoostingClassifier(max_gap=.05), ACSIncome by sex", 8.0),
    "acsincome-race": ("FTMBoostingClassifier(max_gap=.05), ACSIncome by race", 12.0),
    "alignment": ("QuantileAlignmentClassifier(max_gap=.05), Adult by sex", 5.0),
    "path": ("path of 19 weights, Adult by sex", 20.0),
    "small-groups": ("FTMBoostingClassifier(max_gap=.05), Adult by sex and race", 25.0),
    "text": ("FTMBoostingClassifier, 5 trees, 21,000 rows of text columns", None),
    "demo-aligned": ("the aligned trees of `make demo`, 100 trees", None),
    "demo-ftm": ("the FTM of `make demo`, 100 trees", None),
}


def plain_trees(rounds):
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_estimators=rounds, n_jobs=1, verbose=-1, force_row_wise=True, deterministic=True
    )


def _table(case):
    """Return features, labels and groups of a case."""
    from fairmatch.datasets import load_dataset, paper_split

    if case == "text":
        generator = np.random.default_rng(0)
        n_rows = 21_000
        import pandas as pd

        words = {
            f"word {k}": generator.integers(0, levels, n_rows)
            for k, levels in enumerate((5, 8, 12, 20, 40, 80, 150, 300))
        }
        group = generator.integers(0, 2, n_rows)
        chance = 0.2 + 0.5 * (words["word 0"] > 2) * (words["word 3"] > 8) + 0.1 * group
        X = pd.DataFrame({name: [f"level {v}" for v in codes] for name, codes in words.items()})
        return X, (generator.random(n_rows) < chance).astype(int), group
    name, sensitive = {
        "acsincome-sex": ("acsincome", "sex"),
        "acsincome-race": ("acsincome", "race"),
        "small-groups": ("adult", ["sex", "race"]),
    }.get(case, ("adult", "sex"))
    data = load_dataset(name, sensitive=sensitive)
    rows = paper_split(data, seed=0).train_index
    groups = data.sensitive_features.iloc[rows]
    if not isinstance(sensitive, str):
        groups = groups.astype(str).agg(" ".join, axis=1)
    return data.X.iloc[rows], np.asarray(data.y)[rows], np.asarray(groups)


def measure(case):
    """Return CPU seconds of the fair fit and of plain LightGBM on the same rows."""
    from fairmatch import FTMBoostingClassifier, QuantileAlignmentClassifier, fairness_path
    from fairmatch.learning.path import categorised

    warnings.simplefilter("ignore")
    X, y, group = _table(case)
    rounds = {"text": 5, "demo-aligned": 100, "demo-ftm": 100}.get(case, ROUNDS)
    inputs = categorised(X).assign(group=np.unique(group, return_inverse=True)[1])
    seconds = {"fair": [], "plain": []}
    for _ in range(1 if case.startswith("acs") else 3):
        start = time.process_time()
        plain_trees(rounds).fit(inputs, y)
        seconds["plain"].append(time.process_time() - start)
    trees = plain_trees(rounds)
    for name in ("force_row_wise", "deterministic"):
        trees.set_params(**{name: True})
    if case == "path":
        weights = np.geomspace(0.1, 10.0, 19)
        start = time.process_time()
        estimator = FTMBoostingClassifier(trees, random_state=0)
        fairness_path(X, y, sensitive_features=group, estimator=estimator, fairness_weights=weights)
    else:
        if case == "alignment":
            X = categorised(X)
            model = QuantileAlignmentClassifier(trees, max_gap=0.05, random_state=0)
        elif case == "demo-aligned":
            X = categorised(X)
            model = QuantileAlignmentClassifier(trees, max_gap=0.06, random_state=0)
        elif case == "demo-ftm":
            model = FTMBoostingClassifier(
                trees, max_gap=0.06, fairness_weight=(0.3, 0.5, 0.7, 1.0, 2.0), random_state=0
            )
        elif case == "text":
            model = FTMBoostingClassifier(trees, random_state=0)
        else:
            model = FTMBoostingClassifier(trees, max_gap=0.05, random_state=0)
        start = time.process_time()
        model.fit(X, y, sensitive_features=group)
    seconds["fair"].append(time.process_time() - start)
    return {name: round(min(values), 3) for name, values in seconds.items()}


def rows():
    """Show the newest record of every case beside that of the code before."""
    found = recorded("fair_fit")
    for case, (what, goal) in GOALS.items():
        known = {one["label"]: one["fair"] / one["plain"] for one in found if one["case"] == case}
        for label, ratio in known.items():
            last = label == list(known)[-1]
            yield Row(f"{what} / plain LightGBM ({label})", ratio, goal if last else None, 1)


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fair_fit", description=__doc__)
    parser.add_argument("--label", required=True)
    parser.add_argument("--cases", nargs="+", default=list(GOALS), choices=list(GOALS))
    asked = parser.parse_args()
    from benchmarks import fair_fit  # by this name a new process finds it

    for case in asked.cases:
        found = in_subprocess(fair_fit.measure, case)
        run = appended("fair_fit", {"label": asked.label, "case": case, **found})
        print(run, round(run["fair"] / run["plain"], 1), flush=True)


if __name__ == "__main__":
    main()
