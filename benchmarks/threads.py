"""Two cores for a path of trees on Adult: two threads of LightGBM, or two processes of weights."""

import hashlib
import time

import numpy as np

from benchmarks.timing import Row, Spent, in_subprocess

ROUNDS = 200
WEIGHTS = np.geomspace(0.1, 10.0, 18).tolist()


def _given():
    from benchmarks.boosting import _training_rows
    from fairmatch import OptimalTransportMatcher

    X, y, group = _training_rows()
    few = np.random.default_rng(0).permutation(len(y))[:20_000]
    X, y, group = X.iloc[few], y[few], group[few]
    return X, y, group, OptimalTransportMatcher(tolerance=1e-3).match(X, group)


def _fit(X, y, group, coupling, weights, n_jobs):
    from lightgbm import LGBMClassifier

    from fairmatch import FTMBoostingClassifier, fairness_path

    path = fairness_path(
        X,
        y,
        sensitive_features=group,
        coupling=coupling,
        fairness_weights=weights,
        estimator=FTMBoostingClassifier(
            LGBMClassifier(n_estimators=ROUNDS, n_jobs=n_jobs), random_state=0
        ),
    )
    return [model.trees_.model_to_string() for model in path.models]


def by_threads(n_jobs, attempt):
    """Seconds of a path with a ready coupling by so many threads, and a hash of its trees."""
    given = _given()
    spent, clock = Spent(), time.perf_counter()
    trees = _fit(*given, WEIGHTS, n_jobs)
    clock = time.perf_counter() - clock
    text = "".join(trees).replace(f"[num_threads: {n_jobs}]", "")
    return {**spent.so_far(), "clock": clock, "trees": hashlib.sha256(text.encode()).hexdigest()}


def by_processes():
    """The same by two processes, each with half of the weights."""
    from joblib import Parallel, delayed

    given = _given()
    spent, clock = Spent(), time.perf_counter()
    halves = Parallel(n_jobs=2)(delayed(_fit)(*given, WEIGHTS[k::2], 1) for k in range(2))
    clock = time.perf_counter() - clock
    trees = [halves[k % 2][k // 2] for k in range(len(WEIGHTS))]
    text = "".join(trees).replace("[num_threads: 1]", "")
    return {**spent.so_far(2), "clock": clock, "trees": hashlib.sha256(text.encode()).hexdigest()}


def rows():
    one, again = (in_subprocess(by_threads, 1, attempt) for attempt in range(2))
    two, twice = (in_subprocess(by_threads, 2, attempt, threads=2) for attempt in range(2))
    apart = in_subprocess(by_processes)
    assert one["trees"] == again["trees"] == apart["trees"]
    assert two["trees"] == twice["trees"]
    what = f"path of {len(WEIGHTS)} weights, 20,000 rows of Adult, ready coupling"
    for name, found in (("two threads", [two, twice]), ("two processes", [apart])):
        for unit, shown in (("clock", "seconds on the clock"), ("cpu", "CPU seconds")):
            least = min(f[unit] for f in found) / min(one[unit], again[unit])
            yield Row(f"{what}: {name} / one thread, {shown}", least)
