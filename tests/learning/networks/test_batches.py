import os
import signal
from functools import partial

import numpy as np
import pytest
from joblib import Parallel, delayed
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from synthetic import people

from fairmatch import Coupling, OptimalTransportMatcher
from fairmatch.learning.networks import (
    Batches,
    _other_core,
    coupled_batches,
    matched_ahead,
    pair_batches,
)
from fairmatch.people.encoding import read_points
from fairmatch.people.groups import read_criterion, read_groups
from fairmatch.people.people import People
from fairmatch.people.weights import Weights


def table(n=60, share=0.4, weighted=False):
    X, _, group = people(n, share=share)
    mass = 1.0 + np.arange(n) % 3 if weighted else np.ones(n)
    return X, read_groups(group), mass


def persons(groups, mass):
    return People(groups, weight=Weights(len(mass), mass))


def parts(groups, mass):
    return persons(groups, mass).comparisons(read_criterion("demographic_parity"))


def matched_batches(matcher, X, groups, mass, batch_size):
    rematch = partial(matched_ahead, matcher=matcher, points=X)
    generator = np.random.default_rng(0)
    return pair_batches(parts(groups, mass), mass, batch_size, generator, rematch)


def source_of(kind, X, groups, mass, batch_size=16, seed=0):
    generator = np.random.default_rng(seed)
    if kind == "rows":
        return Batches(mass, batch_size, generator)
    if kind == "pairs":
        return pair_batches(parts(groups, mass), mass, batch_size, generator)
    matcher = OptimalTransportMatcher()
    if kind == "matched":
        return matched_batches(matcher, X, groups, mass, batch_size)
    coupling = matcher.match(X, groups.codes, sample_weight=mass)
    return coupled_batches(coupling, persons(groups, mass), batch_size, generator)


KINDS = ["rows", "pairs", "coupled", "matched"]


def drawn(batches, n_steps):
    return np.concatenate([batch.rows for batch in batches.epoch(n_steps)])


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_is_seen_in_every_epoch_that_has_draws_enough(kind):
    X, groups, mass = table()
    batches = source_of(kind, X, groups, mass)
    for _ in range(2):
        assert set(drawn(batches, n_steps=8)) == set(range(60))


@pytest.mark.parametrize("kind", KINDS)
def test_draws_are_proportional_to_mass_up_to_one(kind):
    X, groups, mass = table(weighted=True)
    n_steps = 50
    counts = np.bincount(drawn(source_of(kind, X, groups, mass), n_steps), minlength=60)
    if kind == "rows":
        expected = n_steps * 16 * mass / mass.sum()
    else:
        inside = np.bincount(groups.codes, mass)[groups.codes]
        expected = n_steps * 16 * mass / inside
    # A row is in several pairs of a coupling; each of them is drawn as often as it should, up to 1.
    assert np.abs(counts - expected).max() <= (8.0 if kind == "coupled" else 1.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_the_weighted_loss_is_unbiased(kind, share):
    X, groups, mass = table(share=share, weighted=True)
    losses = np.random.default_rng(1).random(60)
    batches = source_of(kind, X, groups, mass)
    estimates = [batch.weight @ losses[batch.rows] for batch in batches.epoch(400)]
    # Draws spread evenly over the mass: the mean over an epoch is off by rounding of counts only.
    assert np.mean(estimates) == pytest.approx(np.average(losses, weights=mass), rel=2e-3)


def test_the_loss_is_unbiased_for_a_coupling_whose_marginals_are_not_the_rows_own():
    _, groups, mass = table(weighted=True)
    source, target = groups.rows(0), groups.rows(1)
    at = np.arange(120)
    pairs = source[at % len(source)], target[at % len(target)]
    coupling = Coupling(*pairs, np.full(120, 1 / 120), n_rows=60, groups=groups.labels)
    batches = coupled_batches(coupling, persons(groups, mass), 16, np.random.default_rng(0))
    losses = np.random.default_rng(1).random(60)
    estimates = [batch.weight @ losses[batch.rows] for batch in batches.epoch(400)]
    assert np.mean(estimates) == pytest.approx(np.average(losses, weights=mass), rel=2e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_mass_are_never_drawn(kind):
    X, groups, mass = table()
    mass[50:] = 0.0
    assert drawn(source_of(kind, X, groups, mass), n_steps=20).max() < 50


@pytest.mark.parametrize("kind", ["pairs", "coupled", "matched"])
@pytest.mark.parametrize("batch_size", [1, 7, 16, 500])
def test_a_batch_has_as_many_rows_of_each_group_even_where_one_is_smaller(kind, batch_size):
    X, groups, mass = table(share=0.05)
    size = min(batch_size, 60 // 2)
    for batch in source_of(kind, X, groups, mass, batch_size).epoch(3):
        codes = groups.codes[batch.rows]
        assert batch.n_pairs == size
        assert codes.tolist() == [0] * size + [1] * size
        assert batch.weight.sum() == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("turned", [False, True])
def test_pairs_come_from_the_coupling_whichever_way_it_points(turned):
    X, groups, mass = table()
    coupling = OptimalTransportMatcher().match(X, groups.codes)
    ends = coupling.source_index.tolist(), coupling.target_index.tolist()
    known = {frozenset(pair) for pair in zip(*ends, strict=True)}
    given = coupling.inverse if turned else coupling
    generator = np.random.default_rng(0)
    for batch in coupled_batches(given, persons(groups, mass), 16, generator).epoch(5):
        source, target = batch.rows[: batch.n_pairs], batch.rows[batch.n_pairs :]
        pairs = zip(source.tolist(), target.tolist(), strict=True)
        assert {frozenset(pair) for pair in pairs} <= known


@pytest.mark.parametrize("label_weight", [0.0, 100.0])
def test_matched_batches_are_optimal(label_weight):
    X, y, group = people(60)
    matcher = OptimalTransportMatcher(label_weight)
    points = matcher.points(read_points(X), y == 1)
    mass, groups = np.ones(60), read_groups(group)
    batches = matched_batches(matcher, points, groups, mass, 20)
    for batch in batches.epoch(12):  # more than are computed ahead
        pairs = batch.rows[: batch.n_pairs], batch.rows[batch.n_pairs :]
        source, target = (points[rows].dense() for rows in pairs)
        cost = cdist(source, target, "sqeuclidean")
        best = cost[linear_sum_assignment(cost)].sum()
        assert ((source - target) ** 2).sum() == pytest.approx(best)


class Elsewhere(OptimalTransportMatcher):
    """Matches in row order, in any process but the one whose number is its seed."""

    def pair(self, source_points, target_points):
        if os.getpid() == self.random_state:
            raise AssertionError("matched by the process that trains")
        return np.arange(len(source_points))


class Failing(OptimalTransportMatcher):
    def pair(self, source_points, target_points):
        raise RuntimeError("not proven optimal")


class TestTheWorker:
    def epoch(self, matcher=None, n_steps=30):
        X, groups, mass = table()
        matcher = matcher or OptimalTransportMatcher()
        return matched_batches(matcher, X, groups, mass, 16).epoch(n_steps)

    def test_it_is_another_process(self):
        assert len(list(self.epoch(Elsewhere(random_state=os.getpid())))) == 30

    def test_an_epoch_may_be_left_early(self):
        steps = self.epoch()
        next(steps)
        steps.close()
        assert len(list(self.epoch())) == 30

    def test_its_error_is_raised(self):
        with pytest.raises(RuntimeError, match="not proven optimal"):
            list(self.epoch(Failing()))


def test_joblib_works_after_batches_were_matched_on_another_core():
    assert list(source_of("matched", *table()).epoch(2))
    assert Parallel(n_jobs=2)(delayed(abs)(number) for number in (-1, -2)) == [1, 2]


def test_matching_goes_on_after_its_process_was_killed():
    assert list(source_of("matched", *table()).epoch(1))
    # A list, because the pool takes a dead process out of its own.
    for process in list(_other_core()._processes.values()):
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    assert len(list(source_of("matched", *table()).epoch(3))) == 3
