"""How many rows to match: accuracy at equal gap, for samples of the training rows and all of them.

    python -m benchmarks match_rows

takes ten minutes, so that it is no part of `make bench`. The default was chosen on the splits in
CHOSEN; the splits in SHOWN had no say in it.
"""

import time

import numpy as np

from benchmarks.timing import Row, in_subprocess

ROUNDS = 100
WEIGHTS = np.geomspace(0.05, 3.2, 7).tolist()
CHOSEN, SHOWN = "choosing", "showing"
#: Table to sizes, gaps and splits.
STUDIES = {
    "adult": ((5_000, 10_000, 20_000, None), (0.10, 0.06), {CHOSEN: (10,), SHOWN: (0,)}),
    "acsincome": ((5_000, 20_000, 50_000), (0.10, 0.08), {CHOSEN: (10,)}),
}


def curve(name, seed, match_rows):
    """Gap of decisions and accuracy on the test rows along the weights, and CPU seconds."""
    from sklearn.model_selection import train_test_split

    from fairmatch import FTMBoostingClassifier, fairness_path
    from fairmatch.datasets import load_dataset

    data = load_dataset(name)
    y, group = np.asarray(data.y), np.asarray(data.sensitive_features)
    train, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed)
    estimator = FTMBoostingClassifier(n_rounds=ROUNDS, random_state=0, match_rows=match_rows)
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
    return {"cpu": cpu, "rows": len(train), "curve": found[columns].to_numpy().tolist()}


def accuracy_at(gap, points):
    """Accuracy at a gap, interpolated along the curve; NaN where it does not come so far."""
    gaps, accuracies = np.array(sorted(points)).T
    if not gaps[0] <= gap <= gaps[-1]:
        return float("nan")
    return float(np.interp(gap, gaps, accuracies))


def rows():
    for name, (sizes, gaps, splits) in STUDIES.items():
        for role, seeds in splits.items():
            found = {
                size: [in_subprocess(curve, name, seed, size) for seed in seeds] for size in sizes
            }
            most = found[sizes[-1]]
            for size in sizes:
                shown = "all" if size is None else f"{size:,}"
                what = f"{name}, {shown} rows matched ({role}, split {', '.join(map(str, seeds))})"
                for gap in gaps:
                    accuracies = [accuracy_at(gap, one["curve"]) for one in found[size]]
                    yield Row(
                        f"{what}: accuracy at ΔDP {gap:g}", float(np.mean(accuracies)), digits=4
                    )
                seconds = [a["cpu"] / b["cpu"] for a, b in zip(found[size], most, strict=True)]
                yield Row(f"{what}: CPU time / most rows matched", float(np.mean(seconds)))
