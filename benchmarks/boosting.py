"""Boosted trees on Adult: what the penalty costs, and the whole curve against the paper's loop."""

import time

import numpy as np

from benchmarks.learning import BATCH, EPOCHS, paper_literal
from benchmarks.timing import Row, in_subprocess

ROUNDS = 200


def _training_rows():
    """The table with its categories, labels and groups; the training rows of split 0."""
    from fairmatch.datasets import load_adult, paper_split

    adult = load_adult()
    rows = paper_split(adult, seed=0).train_index
    group = np.asarray(adult.sensitive_features)[rows]
    return adult.X.iloc[rows], np.asarray(adult.y)[rows], group


def single(rounds):
    """Seconds of one weight with a ready coupling, and of plain LightGBM."""
    from lightgbm import LGBMClassifier

    from fairmatch import FTMBoostingClassifier, OptimalTransportMatcher
    from fairmatch.people.encoding import TableEncoder

    X, y, group = _training_rows()
    matcher = OptimalTransportMatcher(tolerance=1e-3)
    coupling = matcher.match(TableEncoder().fit_transform(X), group)
    texts = X.select_dtypes(exclude="number").columns
    inputs = X.astype(dict.fromkeys(texts, "category")).assign(group=group)
    inputs["group"] = inputs["group"].astype("category").cat.codes
    seconds = {"ftm": [], "plain": []}
    for _ in range(3):
        start = time.process_time()
        FTMBoostingClassifier(LGBMClassifier(n_estimators=rounds, n_jobs=1), warmup=0.0).fit(
            X, y, sensitive_features=group, coupling=coupling
        )
        seconds["ftm"].append(time.process_time() - start)
        start = time.process_time()
        plain = LGBMClassifier(n_estimators=rounds, n_jobs=1, verbose=-1, force_row_wise=True)
        plain.set_params(deterministic=True).fit(inputs, y)
        seconds["plain"].append(time.process_time() - start)
    return {name: min(values) for name, values in seconds.items()}


def curve(transport):
    """Seconds of the 18-weight curve, matching included."""
    from lightgbm import LGBMClassifier

    from fairmatch import FTMBoostingClassifier, fairness_path

    X, y, group = _training_rows()
    start = time.perf_counter()
    estimator = FTMBoostingClassifier(
        LGBMClassifier(n_estimators=ROUNDS, n_jobs=1), transport=transport, random_state=0
    )
    fairness_path(X, y, sensitive_features=group, estimator=estimator)
    return time.perf_counter() - start


def rows():
    steps_per_epoch = -(-len(_training_rows()[1]) // BATCH)
    literal = in_subprocess(paper_literal, 40, threads=2) * steps_per_epoch * EPOCHS
    one = in_subprocess(single, ROUNDS)
    return [
        Row(
            "one FTM model of trees with a ready coupling / plain LightGBM, same rounds, CPU time",
            one["ftm"] / one["plain"],
            2.5,
        ),
        *(
            Row(
                f"18-weight curve of trees, {transport} map included / one paper-literal run",
                in_subprocess(curve, transport) / literal,
                0.25,
            )
            for transport in ("marginal", "predicted")
        ),
    ]
