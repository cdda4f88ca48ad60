"""How many rows to match: accuracy at equal gap, for samples of the training rows and all of them.

    python -m benchmarks match_rows

takes most of an hour, so that it is no part of `make bench`. The default was chosen on
split CHOSEN; split SHOWN had no say in it. By race the gap is that of the five largest groups.
"""

import time

import numpy as np

from benchmarks.timing import Row, in_subprocess

ROUNDS = 100
WEIGHTS = np.geomspace(0.1, 10.0, 8).tolist()
CHOSEN, SHOWN = 10, 0
LARGE = (5_000, 20_000, 50_000, 100_000)
#: Table, attribute, split, sizes (None is all rows) and gaps.
STUDIES = (
    ("adult", "sex", CHOSEN, (5_000, 10_000, 20_000, None), (0.10, 0.05, 0.02)),
    ("adult", "sex", SHOWN, (5_000, 10_000, 20_000, None), (0.10, 0.05, 0.02)),
    ("acsincome", "sex", CHOSEN, (*LARGE, None), (0.10, 0.05, 0.02)),
    ("acsincome", "sex", SHOWN, LARGE, (0.10, 0.05, 0.02)),
    ("acsincome", "race", CHOSEN, LARGE[:3], (0.15, 0.10)),
    ("acsincome", "race", SHOWN, LARGE[:3], (0.15, 0.10)),
)


def curve(name, sensitive, seed, match_rows):
    """Gap of decisions and accuracy on the test rows along the weights, and CPU seconds."""
    from lightgbm import LGBMClassifier
    from sklearn.model_selection import train_test_split

    from fairmatch import FTMBoostingClassifier, fairness_path
    from fairmatch.datasets import load_dataset

    data = load_dataset(name, sensitive=sensitive)
    y, group = np.asarray(data.y), np.asarray(data.sensitive_features)
    train, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed)
    estimator = FTMBoostingClassifier(
        LGBMClassifier(n_estimators=ROUNDS, n_jobs=1), random_state=0, match_rows=match_rows
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
    names, sizes = np.unique(group, return_counts=True)
    test = test[np.isin(group[test], names[np.argsort(sizes)[-5:]])]
    found = path.curve(data.X.iloc[test], y[test], sensitive_features=group[test])
    columns = ["demographic_parity_gap", "accuracy"]
    return {"cpu": cpu, "rows": len(train), "curve": found[columns].to_numpy().tolist()}


def accuracy_at(gap, points):
    """Accuracy at a gap, interpolated along the curve; NaN where it does not come so far."""
    gaps, accuracies = np.array(sorted(points)).T
    if not gaps[0] <= gap <= gaps[-1]:
        return float("nan")
    return float(np.interp(gap, gaps, accuracies))


def rows():
    for name, sensitive, seed, sizes, gaps in STUDIES:
        found = {size: in_subprocess(curve, name, sensitive, seed, size) for size in sizes}
        role = "choosing" if seed == CHOSEN else "showing"
        for size, one in found.items():
            shown = "all" if size is None else f"{size:,}"
            what = f"{name} by {sensitive}, {shown} rows matched ({role}, split {seed})"
            for gap in gaps:
                accuracy = accuracy_at(gap, one["curve"])
                yield Row(f"{what}: accuracy at ΔDP {gap:g}", accuracy, digits=4)
            most = found[sizes[-1]]
            yield Row(f"{what}: CPU time / most rows matched", one["cpu"] / most["cpu"])
