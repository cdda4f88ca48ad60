"""The transport solver against POT's dense network simplex and SciPy's assignment, on Adult.

Everything runs on one thread and is compared in CPU seconds, which is what wall-clock seconds are
on an idle machine.
"""

import resource
import time

import numpy as np

from benchmarks.timing import Row, in_subprocess


def _groups(name):
    from fairmatch.datasets import load_dataset, paper_split

    split = paper_split(load_dataset(name), seed=0)
    return tuple(split.X_train[split.group_train == code] for code in (0, 1))


def _cpu(call):
    start = time.process_time()
    call()
    return time.process_time() - start


def batch(m):
    """CPU seconds of the cost matrix, `ot.emd`, the assignment and ours, medians of five."""
    import ot
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    from fairmatch.matching.solver import Transport

    generator = np.random.default_rng(m)
    x, z = (g[generator.choice(len(g), m, replace=False)] for g in _groups("adult"))
    mass = np.full(m, 1.0 / m)
    cost = cdist(x, z, "sqeuclidean")
    rounds = [
        (
            _cpu(lambda: ot.dist(x, z)),
            _cpu(lambda: ot.emd(mass, mass, cost, numItermax=10**9)),
            _cpu(lambda: linear_sum_assignment(cost)),
            _cpu(lambda: Transport(x, z).solve()),
        )
        for _ in range(5)
    ]
    return np.median(rounds, axis=0).tolist()


def everything(name, method):
    """CPU seconds and peak GB of matching all training rows, densely or to a tolerance."""
    x, z = _groups(name)
    if method == "dense":
        import ot

        def call():
            a, b = np.full(len(x), 1.0 / len(x)), np.full(len(z), 1.0 / len(z))
            ot.emd(a, b, ot.dist(x, z), numItermax=10**12)
    else:
        from fairmatch.matching.solver import Transport

        def call():
            plan = Transport(x, z).solve(tolerance=float(method))
            assert plan.certificate.relative_gap <= float(method)

    seconds = _cpu(call)
    return {"cpu": seconds, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def rows():
    matrix, emd, assignment, ours = in_subprocess(batch, 1024)
    yield Row(
        "1,024 of each group of Adult / cost matrix + the faster of ot.emd and assignment",
        ours / (matrix + min(emd, assignment)),
        1.0,
    )
    dense = in_subprocess(everything, "adult", "dense")
    for tolerance in ("1e-9", "1e-4", "1e-3"):
        found = in_subprocess(everything, "adult", tolerance)
        what = f"all training rows of Adult to a proven {tolerance} / dense ot.emd"
        yield Row(what, found["cpu"] / dense["cpu"], 1.0)
        if tolerance == "1e-9":
            yield Row("the same, peak memory", found["peak"] / dense["peak"], 0.5)
