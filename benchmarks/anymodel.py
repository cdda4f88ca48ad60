"""Wrappers around any model: alignment against a sort, one smoothing weight against a plain fit."""

import time

import numpy as np

from benchmarks.boosting import ROUNDS, _training_rows
from benchmarks.timing import Row, in_subprocess

N_SCORES = 10_000_000


def alignment(n_scores):
    """Seconds to fit and apply an alignment, and of `np.argsort`, of the same scores."""
    from fairmatch.learning.adjust import align_scores

    generator = np.random.default_rng(0)
    scores = generator.random(n_scores)
    group = (generator.random(n_scores) < 0.4).astype(np.int64)
    seconds = {"align": [], "sort": []}
    for _ in range(2):
        start = time.process_time()
        np.argsort(scores)
        seconds["sort"].append(time.process_time() - start)
        start = time.process_time()
        align_scores(scores, group)
        seconds["align"].append(time.process_time() - start)
    return {name: min(values) for name, values in seconds.items()}


def smoothing(rounds):
    """Seconds of one weight with unseen scores and coupling ready, and of plain LightGBM."""
    from lightgbm import LGBMClassifier

    from fairmatch import OptimalTransportMatcher
    from fairmatch.learning.learners import Learner, add_columns
    from fairmatch.learning.smoothing import smooth_scores
    from fairmatch.people.encoding import TableEncoder
    from fairmatch.people.groups import read_groups
    from fairmatch.people.outcome import PROBABILITY
    from fairmatch.people.people import Labels, People

    X, y, group = _training_rows()
    groups, numbers = read_groups(group), np.asarray(y, dtype=np.float64)
    table = add_columns(X, groups.codes[:, None].astype(np.float64))
    trees = LGBMClassifier(n_estimators=rounds, n_jobs=1, verbose=-1, random_state=0)
    learner = Learner(trees, PROBABILITY, np.unique(y))
    scores = learner.unseen(table, People(groups, labels=Labels(numbers, (0, 1))), 5)
    points = np.column_stack([TableEncoder().fit_transform(X), np.sqrt(5.0) * scores])
    coupling = OptimalTransportMatcher(tolerance=1e-3).match(points, group)
    fit_softly = learner.softly(table, numbers, None)
    seconds = {"smooth": [], "plain": []}
    for _ in range(3):
        start = time.process_time()
        fit_softly(smooth_scores(scores, coupling, [3.0])[0])
        seconds["smooth"].append(time.process_time() - start)
        start = time.process_time()
        learner.fit(table, numbers, None)
        seconds["plain"].append(time.process_time() - start)
    return {name: min(values) for name, values in seconds.items()}


def rows():
    aligned = in_subprocess(alignment, N_SCORES)
    ratio = aligned["align"] / aligned["sort"]
    yield Row(f"quantile alignment of {N_SCORES:,} scores / np.argsort", ratio, 4.0)
    smoothed = in_subprocess(smoothing, ROUNDS)
    ratio = smoothed["smooth"] / smoothed["plain"]
    yield Row("one weight of match smoothing / plain LightGBM, Adult", ratio, 1.5)
