"""Whole audits, against fairlearn's bootstrap of two metrics and against the table's own size."""

import resource
import time

import numpy as np

from benchmarks.timing import Row, in_subprocess


def _table(n_rows, n_columns):
    """Draw people described by numbers and, in every fourth column, by eight categories."""
    import pandas as pd

    generator = np.random.default_rng(0)
    group = (generator.random(n_rows) < 0.4).astype(int)
    X = pd.DataFrame(
        {
            f"c{k}": pd.Categorical(generator.choice(list("abcdefgh"), n_rows))
            if k % 4 == 3
            else generator.normal(size=n_rows)
            for k in range(n_columns)
        }
    )
    scores = 1 / (1 + np.exp(-X["c0"] - 0.3 * X["c1"] - 0.3 * group)).to_numpy()
    return scores, (generator.random(n_rows) < scores).astype(int), group, X


def _seconds(run):
    start = time.process_time()
    run()
    return time.process_time() - start


def against_fairlearn(n_rows=45_000, n_columns=100):
    """CPU seconds of a whole audit, and of fairlearn's 100 resamples of two metrics."""
    from fairlearn.metrics import MetricFrame, selection_rate
    from sklearn.metrics import accuracy_score

    from fairmatch import audit

    scores, y, group, X = _table(n_rows, n_columns)
    audit(scores[:500], sensitive_features=group[:500], X=X[:500])  # imports are not timed
    ours = _seconds(lambda: audit(scores, sensitive_features=group, X=X, y_true=y))
    theirs = _seconds(
        lambda: MetricFrame(
            metrics={"accuracy": accuracy_score, "selection_rate": selection_rate},
            y_true=y,
            y_pred=scores >= 0.5,
            sensitive_features=group,
            n_boot=100,
            ci_quantiles=[0.025, 0.975],
            random_state=0,
        )
    )
    return {"ours": ours, "theirs": theirs}


def given_factors(n_rows=45_000, n_columns=20):
    """CPU seconds of an audit, with strata, and with every column counted by its range."""
    from fairmatch import audit

    scores, y, group, X = _table(n_rows, n_columns)
    known = {"sensitive_features": group, "X": X, "y_true": y}
    audit(scores[:500], sensitive_features=group[:500], X=X[:500])
    plain = _seconds(lambda: audit(scores, **known))
    given = _seconds(lambda: audit(scores, **known, given=["c0", "c3"]))
    ranges = _seconds(lambda: audit(scores, **known, similarity=None))
    return {"plain": plain, "given": given, "range": ranges}


def of_many(n_rows=1_000_000, n_columns=20):
    """CPU seconds and extra memory of an audit of many rows; without labels."""
    from fairmatch import audit

    scores, _, group, X = _table(n_rows, n_columns)
    audit(scores[:500], sensitive_features=group[:500], X=X[:500])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = _seconds(lambda: audit(scores, sensitive_features=group, X=X))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "extra": (peak - before) * 1024 / 1e9, "peak": peak * 1024 / 1e9}


def rows():
    small = in_subprocess(against_fairlearn)
    large = in_subprocess(of_many)
    strata = in_subprocess(given_factors)
    return [
        Row(
            "audit of 45,000 rows x 100 columns, all of it / fairlearn MetricFrame, 2 metrics, "
            "n_boot=100, same rows",
            small["ours"] / small["theirs"],
            3.0,
        ),
        Row(
            "audit of 1,000,000 rows x 20 columns / audit of 45,000 rows x 100 columns",
            large["seconds"] / small["ours"],
        ),
        Row(
            "audit of 45,000 rows x 20 columns given two factors (40 strata) / without them",
            strata["given"] / strata["plain"],
            1.5,
        ),
        Row(
            "audit of 45,000 rows x 20 columns, people alike by relevance / every column by its "
            "range",
            strata["plain"] / strata["range"],
        ),
        Row("audit of 1,000,000 rows x 20 columns, peak memory in GB", large["peak"], 4.0),
    ]
