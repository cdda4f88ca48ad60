"""Several classes on Adult: education in five levels, fair at a bound, against plain LightGBM."""

import time

import numpy as np

from benchmarks.timing import Row, in_subprocess

ROUNDS, MAX_GAP = 100, 0.05


def measure():
    """CPU seconds of the search at ``max_gap``, and of plain multiclass trees."""
    from lightgbm import LGBMClassifier

    from fairmatch import FTMBoostingClassifier
    from fairmatch.datasets import load_adult

    adult = load_adult()
    years = adult.X["education_num"].to_numpy()
    y = np.searchsorted([9, 10, 13, 14], years, side="right")
    X = adult.X.drop(columns=["education_num", "education"])
    group = np.asarray(adult.sensitive_features)
    texts = X.select_dtypes(exclude="number").columns
    inputs = X.astype(dict.fromkeys(texts, "category")).assign(group=group == group[0])
    trees = LGBMClassifier(n_estimators=ROUNDS, n_jobs=1, verbose=-1)
    start = time.process_time()
    trees.fit(inputs, y)
    plain = time.process_time() - start
    start = time.process_time()
    FTMBoostingClassifier(trees, max_gap=MAX_GAP, random_state=0).fit(
        X, y, sensitive_features=group
    )
    return {"plain": plain, "fair": time.process_time() - start}


def rows():
    found = in_subprocess(measure)
    return [
        Row(
            f"trees of five classes at max_gap={MAX_GAP:g}, Adult / plain LightGBM, CPU time",
            found["fair"] / found["plain"],
            10.0,
        )
    ]
