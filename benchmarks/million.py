"""Tables of hundreds of thousands and of millions: couplings in blocks, and training on them.

    python -m benchmarks million

takes hours on two cores, so that it is no part of `make bench`.
"""

import time

import numpy as np

from benchmarks.blocks import SECONDS_PER_ROW, coupled
from benchmarks.timing import Row, Spent, in_subprocess

ROUNDS = 200
WEIGHTS = 18


def path(sensitive, rounds, n_weights):
    """CPU seconds of plain LightGBM and of a path of FTM's trees on ACSIncome; peak GB."""
    from lightgbm import LGBMClassifier

    from fairmatch import FTMBoostingClassifier, fairness_path
    from fairmatch.datasets import load_acsincome

    data = load_acsincome(sensitive=sensitive)
    group, y = np.asarray(data.sensitive_features), np.asarray(data.y)
    inputs = data.X.assign(group=np.unique(group, return_inverse=True)[1])
    start = time.process_time()
    plain = LGBMClassifier(n_estimators=rounds, n_jobs=1, verbose=-1, force_row_wise=True)
    plain.set_params(deterministic=True).fit(inputs, y)
    seconds = {"plain": time.process_time() - start}
    spent = Spent()
    estimator = FTMBoostingClassifier(n_rounds=rounds, random_state=0)
    weights = np.geomspace(0.1, 10.0, n_weights)
    fairness_path(
        data.X, y, sensitive_features=group, estimator=estimator, fairness_weights=weights
    )
    found = spent.so_far()
    return {**seconds, "path": found["cpu"], "peak": found["peak"]}


def rows():
    for sensitive in ("sex", "race"):
        found = in_subprocess(path, sensitive, ROUNDS, WEIGHTS)
        shown = f"ACSIncome by {sensitive}"
        yield Row(
            f"{shown}: {WEIGHTS}-weight curve of trees, matching included / plain LightGBM",
            found["path"] / found["plain"],
            40.0,
        )
        yield Row(f"{shown}: peak memory of the curve, GB", found["peak"], 6.0)
    adult = in_subprocess(coupled, "adult", None, None, 1)
    exact = in_subprocess(coupled, "acsincome", 50_000, None, 1)
    found = in_subprocess(coupled, "acsincome", 50_000, 2_048, 2)
    shown = "50,000 × 50,000 of ACSIncome"
    yield Row(f"{shown}: cost in blocks / exact cost", found["cost"] / exact["cost"], 1.03, 4)
    yield Row(f"{shown}: lower bound of blocks / exact cost", found["bound"] / exact["cost"])
    yield Row(f"{shown}: CPU time in blocks / of the exact coupling", found["cpu"] / exact["cpu"])
    for name, most, shown in (
        ("acsincome", None, "ACSIncome by sex, all rows"),
        ("mixture", 1_000_000, "a million × a million generated people"),
    ):
        found = in_subprocess(coupled, name, most, 2_048, 2)
        per_row = found["cpu"] / found["rows"] * adult["rows"] / adult["cpu"]
        yield Row(
            f"{shown}: CPU seconds per row / exact coupling of Adult", per_row, SECONDS_PER_ROW
        )
        yield Row(f"{shown}: peak memory, workers included, GB", found["peak"], 4.0)
        known = "proven" if found["confidence"] is None else f"{found['confidence']:.0%} sure"
        yield Row(f"{shown}: cost / lower bound ({known})", found["cost"] / found["bound"])
