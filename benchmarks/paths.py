"""A whole path of trees on ACSIncome, 332,900 people: by sex, and by race in eight parts.

    python -m benchmarks paths

takes minutes, so that it is no part of `make bench`. BENCHMARKS_GROUPS=sex takes one of them alone.
"""

import os
import time

import numpy as np

from benchmarks.timing import Row, Spent, in_subprocess

ROUNDS = 200
WEIGHTS = 18
GROUPS = os.environ.get("BENCHMARKS_GROUPS", "sex,race").split(",")


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
    estimator = FTMBoostingClassifier(LGBMClassifier(n_estimators=rounds, n_jobs=1), random_state=0)
    weights = np.geomspace(0.1, 10.0, n_weights)
    fairness_path(
        data.X, y, sensitive_features=group, estimator=estimator, fairness_weights=weights
    )
    found = spent.so_far()
    return {**seconds, "path": found["cpu"], "peak": found["peak"]}


def rows():
    for sensitive in GROUPS:
        found = in_subprocess(path, sensitive, ROUNDS, WEIGHTS)
        shown = f"ACSIncome by {sensitive}"
        yield Row(
            f"{shown}: {WEIGHTS}-weight curve of trees, matching included / plain LightGBM, "
            "CPU time",
            found["path"] / found["plain"],
            40.0,
        )
        yield Row(f"{shown}: peak memory of the curve, GB", found["peak"], 6.0)
