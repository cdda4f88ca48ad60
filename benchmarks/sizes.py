"""Audits of small, wide and many-grouped tables: CPU time and memory.

``python -m benchmarks sizes``; with FAIRMATCH_OLD=DIR also against the code in DIR/src, such as a
worktree of an earlier commit.
"""

import os
import resource
import subprocess
from functools import partial
from unittest.mock import patch

import numpy as np

from benchmarks.audit import _seconds, _table
from benchmarks.timing import Row, in_subprocess


def audited(n_rows, n_columns, n_runs):
    """CPU seconds of an audit with and without features, the median of some runs."""
    from fairmatch import audit

    scores, y, group, X = _table(n_rows, n_columns)
    known = {"sensitive_features": group, "y_true": y}
    audit(scores, **known, X=X)  # imports are not timed

    def median(**given):
        runs = [partial(audit, scores, random_state=seed, **given) for seed in range(n_runs)]
        return float(np.median([_seconds(run) for run in runs]))

    return {"with": median(**known, X=X), "without": median(**known)}


def resampled(n_rows=600, n_columns=10):
    """CPU seconds of fairlearn's 100 resamples of two metrics, on the same rows."""
    from fairlearn.metrics import MetricFrame, selection_rate
    from sklearn.metrics import accuracy_score

    scores, y, group, _ = _table(n_rows, n_columns)
    metrics = {"accuracy": accuracy_score, "selection_rate": selection_rate}
    given = {"y_true": y, "y_pred": scores >= 0.5, "sensitive_features": group}
    settings = {"n_boot": 100, "ci_quantiles": [0.025, 0.975], "random_state": 0}
    return _seconds(lambda: MetricFrame(metrics=metrics, **given, **settings))


def wide(n_rows=300, n_columns=20_000):
    """CPU seconds and peak GB of an audit of few rows with very many columns of numbers."""
    from fairmatch import audit

    generator = np.random.default_rng(0)
    X, group = generator.normal(size=(n_rows, n_columns)), generator.integers(0, 2, n_rows)
    scores = 1 / (1 + np.exp(-X[:, 0]))
    seconds = _seconds(lambda: audit(scores, sensitive_features=group, X=X))
    return {"cpu": seconds, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def many_groups(n_groups=1000, size=30):
    """CPU seconds of an audit of very many groups."""
    from fairmatch import audit

    generator = np.random.default_rng(0)
    X = generator.integers(0, 9, (n_groups * size, 1)).astype(float)
    group = np.repeat([f"g{k}" for k in range(n_groups)], size)
    scores = generator.random(n_groups * size)
    return _seconds(lambda: audit(scores, sensitive_features=group, X=X))


SMALL, MEDIUM = (600, 10, 7), (6000, 20, 1)


def rows():
    many, theirs, large = (in_subprocess(own) for own in (many_groups, resampled, wide))
    own, medium = in_subprocess(audited, *SMALL), in_subprocess(audited, *MEDIUM)
    found = [
        Row("audit of 600 rows x 10 columns, CPU seconds", own["with"]),
        Row("the same / fairlearn MetricFrame, 2 metrics, n_boot=100", own["with"] / theirs),
        Row("audit of 600 rows without columns, CPU seconds", own["without"]),
        Row("audit of 300 rows x 20,000 columns, CPU seconds", large["cpu"]),
        Row("the same, peak memory in GB", large["peak"], 4.0),
        Row("audit of 1,000 groups of 30 people, CPU seconds", many, 60.0),
    ]
    if "FAIRMATCH_OLD" in os.environ:
        old = os.environ["FAIRMATCH_OLD"]
        show = ["git", "-C", old, "rev-parse", "--short", "HEAD"]
        name = subprocess.run(show, check=True, capture_output=True, text=True).stdout.strip()
        with patch.dict(os.environ, {"PYTHONPATH": os.path.join(old, "src")}):
            os.environ.pop("BENCHMARKS_KEEP", None)  # it holds what this code took
            before, then = in_subprocess(audited, *SMALL), in_subprocess(audited, *MEDIUM)
        for what, now, past, columns in (
            ("600 rows", own, before, "10 columns"),
            ("6,000 rows", medium, then, "20 columns"),
        ):
            found += [
                Row(f"audit of {what} x {columns} / by {name}", now["with"] / past["with"], 2.0),
                Row(
                    f"audit of {what} without columns / by {name}",
                    now["without"] / past["without"],
                    1.2,
                ),
            ]
    return found
