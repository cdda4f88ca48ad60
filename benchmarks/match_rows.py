"""How many rows of a group to match: accuracy at equal gap, against matched rows per group.

    python -m benchmarks match_rows

takes a quarter of an hour, so that it is no part of `make bench`. A default is chosen on the
splits CHOSEN alone. Every run is one line of benchmarks/records/match_rows.jsonl and is not
repeated.
"""

import time

import numpy as np

from benchmarks.timing import Row, appended, recorded

ROUNDS = 100
WEIGHTS = np.geomspace(0.1, 10.0, 8).tolist()
CHOSEN = (10, 11)
#: Table and attribute; None is the only one of the table.
TABLES = (("adult", "sex"), ("bank", None), ("dutch", None), ("acsincome", "sex"))
PER_GROUP = (1_000, 2_500, 5_000, 10_000)
GAPS = {"adult": (0.1, 0.05, 0.02), "bank": (0.05, 0.02), "dutch": (0.1, 0.05, 0.02),
        "acsincome": (0.1, 0.05, 0.02)}  # fmt: skip
MOST = 80_000  # rows of a table, drawn at random


def curve(name, sensitive, seed, per_group):
    """Gap of decisions and accuracy on the test rows along the weights, and CPU seconds."""
    from lightgbm import LGBMClassifier
    from sklearn.model_selection import train_test_split

    from fairmatch import FTMBoostingClassifier, fairness_path
    from fairmatch.datasets import load_dataset

    data = load_dataset(name, sensitive=sensitive)
    y, group = np.asarray(data.y), np.asarray(data.sensitive_features)
    used = np.random.default_rng(seed).permutation(len(y))[:MOST]
    train, test = train_test_split(used, test_size=0.2, random_state=seed)
    estimator = FTMBoostingClassifier(
        LGBMClassifier(n_estimators=ROUNDS, n_jobs=1), random_state=0, match_rows=per_group
    )
    start = time.process_time()
    path = fairness_path(
        data.X.iloc[train],
        y[train],
        sensitive_features=group[train],
        estimator=estimator,
        fairness_weights=WEIGHTS,
    )
    cpu = time.process_time() - start
    found = path.curve(data.X.iloc[test], y[test], sensitive_features=group[test])
    columns = ["demographic_parity_gap", "accuracy"]
    return {"cpu": round(cpu, 2), "rows": len(train),
            "curve": found[columns].round(5).to_numpy().tolist()}  # fmt: skip


def accuracy_at(gap, points):
    """Accuracy at a gap, interpolated along the curve; NaN where it does not come so far."""
    gaps, accuracies = np.array(sorted(points)).T
    if not gaps[0] <= gap <= gaps[-1]:
        return float("nan")
    return float(np.interp(gap, gaps, accuracies))


def measured():
    """Return all runs of the study; those that are recorded are not repeated."""
    for seed in CHOSEN:
        for name, sensitive in TABLES:
            for per_group in PER_GROUP:
                key = {"table": name, "seed": seed, "per_group": per_group}
                if not any(key.items() <= one.items() for one in recorded("match_rows")):
                    appended("match_rows", {**key, **curve(name, sensitive, seed, per_group)})
    return recorded("match_rows")


def rows():
    found = measured()
    for name, _ in TABLES:
        most = [r for r in found if r["table"] == name and r["per_group"] == PER_GROUP[-1]]
        for per_group in PER_GROUP:
            own = [r for r in found if r["table"] == name and r["per_group"] == per_group]
            splits = " and ".join(str(one["seed"]) for one in own)
            what = f"{name}, {per_group:,} rows per group (split {splits})"
            for gap in GAPS[name]:
                accuracy = np.mean([accuracy_at(gap, one["curve"]) for one in own])
                yield Row(f"{what}: accuracy at ΔDP {gap:g}", accuracy, digits=4)
            ratio = np.mean([r["cpu"] for r in own]) / np.mean([r["cpu"] for r in most])
            yield Row(f"{what}: CPU time / {PER_GROUP[-1]:,} rows per group", ratio)
