"""The nearest fair matching against optimal transport of the same people, 4,096 of each group."""

import time

import numpy as np

from benchmarks.timing import Row, in_subprocess

SIZE = 4096


def _cpu(call):
    start = time.process_time()
    call()
    return time.process_time() - start


def seconds(unfairness):
    """CPU seconds of the nearest matching, the nearest fair one, and with slack; medians of three.

    The scores are a random logistic model's of Adult's 101 encoded columns. Unfairness is added to
    the margin of one group.
    """
    from fairmatch import OptimalTransportMatcher, nearest_fair_matching
    from fairmatch.datasets import load_dataset, paper_split

    generator = np.random.default_rng(0)
    split = paper_split(load_dataset("adult"), seed=0)
    rows = np.concatenate(
        [
            generator.choice(np.flatnonzero(split.group_train == code), SIZE, replace=False)
            for code in (0, 1)
        ]
    )
    X, groups = split.X_train[rows], split.group_train[rows]
    margin = X @ generator.normal(size=X.shape[1]) / np.sqrt(X.shape[1]) + unfairness * groups
    scores = 1.0 / (1.0 + np.exp(-margin))
    some = np.concatenate([np.arange(9), SIZE + np.arange(9)])
    nearest_fair_matching(scores[some], groups[some], X[some])  # the solver is loaded
    rounds = [
        (
            _cpu(lambda: OptimalTransportMatcher().match(X, groups)),
            _cpu(lambda: nearest_fair_matching(scores, groups, X)),
            _cpu(lambda: nearest_fair_matching(scores, groups, X, slack=0.005)),
        )
        for _ in range(3)
    ]
    return np.median(rounds, axis=0).tolist()


def rows():
    for unfairness, model in ((0.0, "a nearly fair model"), (1.0, "an unfair model")):
        plain, exact, slack = in_subprocess(seconds, unfairness)
        what = f"4,096 of each group of Adult, {model} / OptimalTransportMatcher"
        yield Row(f"nearest fair matching of {what}", exact / plain, 3.0)
        yield Row(f"the same, slack 0.005, {model}", slack / plain)
