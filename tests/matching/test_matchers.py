"""Who is matched with whom, against linear programs, assignments and POT."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paper.illustrations import GaussianMap
from random_tables import Table, tables
from scipy.optimize import linear_sum_assignment, linprog

from fairmatch import Coupling, OptimalTransportMatcher, fair_matching
from fairmatch.matching.fair import (
    Staircase,
    northwest_corner,
    transport_cost_range,
)
from fairmatch.measures import matched_parity_gap, wasserstein_parity_gap
from fairmatch.people.encoding import Points

close = pytest.approx


def match(table: Table, **more) -> Coupling:
    given = {"reference": 1, "sample_weight": table.weights, **more}
    return fair_matching(table.scores, table.groups, **given)


def squared_distances(table: Table) -> np.ndarray:
    first, second = (table.X[table.groups == group] for group in (0, 1))
    return ((first[:, None] - second) ** 2).sum(axis=2)


class FairMatchings:
    """All fair matchings of a small table, as a linear program over pairs of rows.

    Row sums are the people's masses, and the mass between two score levels is the overlap of
    their quantile intervals, in fractions. Nothing is taken from the code under test.
    """

    def __init__(self, table: Table) -> None:
        self.masses, self.levels, ends = [], [], []
        for group in (0, 1):
            scores, weights = table.of(group)
            whole = np.ones(len(scores), int) if weights is None else np.rint(21 * weights)
            masses = [Fraction(int(w), int(whole.sum())) for w in whole]
            levels = np.unique(scores, return_inverse=True)[1]
            sums = [sum(m for m, at in zip(masses, levels, strict=True) if at <= level)
                    for level in range(levels.max() + 1)]  # fmt: skip
            self.masses.append(masses)
            self.levels.append(levels)
            ends.append([Fraction(0), *sums])
        self.overlap = {
            (a, b): max(Fraction(0), min(high0, high1) - max(low0, low1))
            for a, (low0, high0) in enumerate(pairwise(ends[0]))
            for b, (low1, high1) in enumerate(pairwise(ends[1]))
        }
        self.shape = len(self.masses[0]), len(self.masses[1])
        pairs = np.arange(np.prod(self.shape)).reshape(self.shape)
        self.cells = {
            (a, b): pairs[np.ix_(self.levels[0] == a, self.levels[1] == b)].ravel()
            for a, b in self.overlap
        }
        sets = [*pairs, *pairs.T, *self.cells.values()]
        self.A = np.array([np.isin(pairs.ravel(), members) for members in sets], dtype=float)
        self.b = np.array([*self.masses[0], *self.masses[1], *self.overlap.values()], dtype=float)

    def least(self, cost: np.ndarray) -> float:
        solved = linprog(cost.ravel(), A_eq=self.A, b_eq=self.b)
        assert solved.success, solved.message
        return solved.fun

    def undetermined(self) -> float:
        """Mass of the cells in which some pair can carry more or less."""
        is_open = {}
        for cell, members in self.cells.items():
            if self.overlap[cell]:
                units = np.eye(len(self.A[0]))[members]
                is_open[cell] = any(-self.least(-u) - self.least(u) > 1e-9 for u in units)
        return float(sum(self.overlap[cell] for cell, open_ in is_open.items() if open_))


# The fair matching.


@given(tables())
def test_matching_by_quantiles_is_the_one_dimensional_transport(table):
    coupling = match(table)
    (first, _), (second, _) = table.of(0), table.of(1)
    masses = table.shares(0), table.shares(1)
    expected = ot.emd2_1d(first, second, *masses, metric="euclidean")
    assert coupling.gap(table.scores) == close(expected, abs=1e-12)
    if len(set(first)) == len(first) and len(set(second)) == len(second):
        plan = ot.emd_1d(first, second, *masses, metric="sqeuclidean")
        np.testing.assert_allclose(coupling.to_dense(table.groups), plan, atol=1e-12)
        assert coupling.undetermined == 0.0


@given(tables())
def test_fair_matching_keeps_the_mass_between_levels(table):
    truth = FairMatchings(table)
    for coupling in (match(table), match(table, X=table.X)):
        plan = coupling.to_dense(table.groups).ravel()
        np.testing.assert_allclose(truth.A @ plan, truth.b, atol=1e-9)
    assert coupling.undetermined == 0.0, "X settles every tie"


@given(tables(equal=True, weighted=False))
def test_equal_groups_are_matched_one_to_one(table):
    coupling = match(table)
    assert len(coupling) == len(table) // 2
    np.testing.assert_array_equal(coupling.mass, 1 / len(coupling))
    first, second = (np.sort(table.of(group)[0]) for group in (0, 1))
    np.testing.assert_array_equal(table.scores[coupling.source_index], first)
    np.testing.assert_array_equal(table.scores[coupling.target_index], second)


@given(tables(tied=True))
def test_ties_are_settled_by_row_order_without_features(table):
    coupling = match(table)
    for index in (coupling.source_index, coupling.target_index):
        order = np.lexsort((index, table.scores[index]))
        assert (np.diff(table.scores[index]) >= 0).all()
        np.testing.assert_array_equal(index[order], index)


@given(tables(max_size=6))
def test_ties_are_settled_at_least_cost(table):
    truth, cost = FairMatchings(table), squared_distances(table)
    low, high = truth.least(cost), -truth.least(-cost)
    found = transport_cost_range(table.scores, table.groups, table.X, sample_weight=table.weights)
    assert (found.low, found.high) == close((low, high), abs=1e-9)
    assert match(table, X=table.X).transport_cost(table.X) == close(low, abs=1e-9)
    by_rows = match(table)
    assert low - 1e-9 <= by_rows.transport_cost(table.X) <= high + 1e-9
    # Features in general position: the costs agree only where the matching is forced.
    assert (found.undetermined == 0.0) == (high - low < 1e-9)
    assert by_rows.undetermined == found.undetermined


@settings(max_examples=25)
@given(tables(max_size=4, tied=True))
def test_undetermined_is_the_mass_that_could_go_elsewhere(table):
    assert match(table).undetermined == close(FairMatchings(table).undetermined(), abs=1e-9)


CHAIN = Table(  # every level is tied and overlaps two of the other group: one run of everything
    np.array([0.1, 0.1, 0.2, 0.2, 0.3, 0.3, 0.1, 0.2, 0.2, 0.2, 0.3, 0.3]),
    np.repeat([0, 1], 6),
    np.zeros(12, int),
    np.random.default_rng(0).normal(size=(12, 2)),
    None,
)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_ties_are_settled_whatever_the_units_of_the_features(scale, offset):
    table = CHAIN
    truth, cost = FairMatchings(table), squared_distances(table)
    X = scale * (table.X + offset)
    found = transport_cost_range(table.scores, table.groups, X)
    expected = truth.least(cost), -truth.least(-cost)
    assert (found.low / scale**2, found.high / scale**2) == close(expected, rel=1e-6)


def test_near_people_of_other_levels_are_not_matched_across_them():
    # Levels aa, cc against b, dd, e. Crossing them would save all of both distances.
    table = Table(
        np.array([0.1, 0.1, 0.2, 0.2, 0.1, 0.2, 0.2, 0.3]),
        np.repeat([0, 1], 4),
        np.zeros(8, int),
        np.array([1.0, 1, 0, 0, 0, 1, 1, 0])[:, None],
        None,
    )
    truth, plan = FairMatchings(table), match(table, X=table.X).to_dense(table.groups)
    np.testing.assert_allclose(truth.A @ plan.ravel(), truth.b, atol=1e-12)


def test_a_long_chain_with_one_great_block():
    # One level against a thousand, in a chain of ties: the levels must not drown the distances.
    scores = np.concatenate([np.full(1000, 0.1), np.full(1000, 0.9)])
    other = np.concatenate([np.linspace(0.0, 0.5, 999), [0.6, 0.6], np.linspace(0.7, 1.0, 999)])
    X = np.random.default_rng(0).normal(size=(4000, 1))
    groups = np.repeat([0, 1], 2000)
    rows = np.arange(2000), np.arange(2000, 4000)
    staircase = Staircase(np.concatenate([scores, other]), rows)
    assert len(staircase.open_runs) == 1
    coupling = fair_matching(np.concatenate([scores, other]), groups, X=X)
    # On a line the best matching of a block is monotone, and only the two tied people choose.
    first, second = X[:2000, 0].reshape(2, 1000), X[2000:, 0]
    costs = []
    for left, right in ((999, 1000), (1000, 999)):
        halves = (np.append(second[:999], second[left]), np.append(second[1001:], second[right]))
        costs.append(sum(((np.sort(a) - np.sort(b)) ** 2).sum() / 2000
                         for a, b in zip(first, halves, strict=True)))  # fmt: skip
    assert coupling.transport_cost(X) == close(min(costs), rel=1e-9)


@given(tables(), st.integers(0, 2**32))
def test_swapping_the_groups_turns_the_matching_round(table, seed):
    given = {"reference": 1, "sample_weight": table.weights}
    swapped = fair_matching(table.scores, 1 - table.groups, X=table.X, **given)
    back, there = swapped.inverse, match(table, X=table.X)
    assert back.transport_cost(table.X) == close(there.transport_cost(table.X), abs=1e-9)
    if match(table).undetermined == 0.0:
        difference = back.to_dense(1 - table.groups) - there.to_dense(table.groups)
        assert np.abs(difference).max() < 1e-12


@given(tables(), st.integers(0, 2**32))
def test_the_order_of_rows_does_not_matter(table, seed):
    order = np.random.default_rng(seed).permutation(len(table))
    other = table.take(order)
    before, after = match(table, X=table.X), match(other, X=other.X)
    assert after.transport_cost(other.X) == close(before.transport_cost(table.X), abs=1e-9)
    assert match(other).undetermined == close(match(table).undetermined, abs=1e-12)
    if match(table).undetermined == 0.0:
        moved = before.to_sparse().toarray()[np.ix_(order, order)]
        np.testing.assert_allclose(after.to_sparse().toarray(), moved, atol=1e-12)


@given(tables(tied=False), st.integers(0, 2**32))
def test_copies_share_the_mass_of_one(table, seed):
    part = np.random.default_rng(seed).uniform(0.1, 0.9, len(table))
    weights = np.ones(len(table)) if table.weights is None else table.weights
    twice = table.take(np.tile(np.arange(len(table)), 2))
    twice.weights = np.concatenate([part * weights, (1 - part) * weights])
    n_rows = len(table)
    plan = match(twice).to_sparse().toarray().reshape(2, n_rows, 2, n_rows).sum(axis=(0, 2))
    np.testing.assert_allclose(plan, match(table).to_sparse().toarray(), atol=1e-12)


@pytest.mark.parametrize("times", [1, 3, 7])
def test_weights_in_proportion_leave_the_runs_apart(times):
    # The cuts of both groups coincide at the ends of every level; rounding must not part them.
    generator = np.random.default_rng(0)
    levels, weights = np.repeat(np.arange(200), 10), generator.uniform(0.5, 2.0, 2000)
    scores = np.concatenate([levels, np.repeat(levels, times)]) / 200
    rows = np.arange(2000), np.arange(2000, len(scores))
    split = np.concatenate([weights, np.repeat(weights / times, times)])
    plain, weighted = Staircase(scores, rows), Staircase(scores, rows, split)
    assert len(plain.open_runs) == len(weighted.open_runs) == 200
    assert len(weighted.mass) == 2000 * times
    assert weighted.mass.sum() == close(1.0, abs=1e-15)


@given(
    st.lists(st.floats(1e-25, 1e3), min_size=1, max_size=12),
    st.lists(st.floats(1e-25, 1e3), min_size=1, max_size=12),
)
def test_northwest_corner_keeps_any_masses(first, second):
    masses = np.array(first), np.array(second)
    *indices, mass = northwest_corner(*masses)
    assert (mass > 0.0).all()
    assert mass.sum() == close(1.0, abs=1e-15)
    for index, given_mass in zip(indices, masses, strict=True):
        assert (np.diff(index) >= 0).all()
        found = np.bincount(index, mass, minlength=len(given_mass))
        np.testing.assert_allclose(found, given_mass / given_mass.sum(), atol=1e-14)


# Matching by optimal transport.


@given(tables(equal=True, weighted=False))
def test_the_marginal_map_is_the_best_assignment(table):
    coupling = OptimalTransportMatcher().match(table.X, table.groups)
    cost = squared_distances(table)
    best = cost[linear_sum_assignment(cost)].mean()
    assert coupling.transport_cost(table.X) == close(best)
    assert coupling.certificate.cost == close(best)
    assert coupling.certificate.relative_gap < 1e-9


@given(tables(), st.sampled_from([0.0, 0.5, 3.0, 1e3]))
def test_the_joint_map_is_pots(table, label_weight):
    matcher = OptimalTransportMatcher(label_weight=label_weight, reference=1)
    coupling = matcher.match(table.X, table.groups, table.labels, sample_weight=table.weights)
    first, second = (table.labels[table.groups == group] for group in (0, 1))
    cost = squared_distances(table) + label_weight * np.abs(first[:, None] - second)
    best = ot.emd2(table.shares(0), table.shares(1), cost)
    assert (coupling.to_dense(table.groups) * cost).sum() == close(best, abs=1e-9)
    assert coupling.certificate.cost == close(best, abs=1e-9)
    assert coupling.marginal_error == 0.0
    for group, mass in enumerate(coupling.marginals()):
        np.testing.assert_allclose(mass[table.groups == group], table.shares(group), atol=1e-9)


def test_labels_may_be_words():
    labels = np.random.default_rng(0).integers(0, 2, len(CHAIN))
    matcher = OptimalTransportMatcher(label_weight=2.0)
    numbers = matcher.match(CHAIN.X, CHAIN.groups, labels)
    words = matcher.match(CHAIN.X, CHAIN.groups, np.array(["no", "yes"])[labels].tolist())
    assert words.certificate.cost == close(numbers.certificate.cost)


@given(tables(weighted=False))
def test_batches_say_how_far_off_their_marginals_are(table):
    matcher = OptimalTransportMatcher(batch_size=2, reference=1)
    coupling = matcher.match(table.X, table.groups)
    errors = []
    for group, mass in enumerate(coupling.marginals()):
        share = mass[table.groups == group]
        errors.append(np.abs(share - table.shares(group)).sum() / 2)
        assert (share > 0.0).all(), "every row is used"
    assert coupling.marginal_error == close(max(errors), abs=1e-12)
    assert coupling.certificate is None, "batches prove nothing about all rows"
    again = matcher.match(table.X, table.groups)
    np.testing.assert_array_equal(again.target_index, coupling.target_index)


@given(tables(equal=True, weighted=False))
def test_one_batch_of_everyone_is_the_whole(table):
    whole = OptimalTransportMatcher().match(table.X, table.groups)
    batch = OptimalTransportMatcher(batch_size=len(table)).match(table.X, table.groups)
    assert batch.transport_cost(table.X) == close(whole.transport_cost(table.X))
    assert batch.marginal_error == close(0.0, abs=1e-12)


def test_weighted_batches_draw_by_weight():
    groups = np.repeat([0, 1], 300)
    weights = np.tile(np.repeat([0.0, 1.0, 3.0], 100), 2)
    X = np.random.default_rng(0).normal(size=(600, 1))
    coupling = OptimalTransportMatcher(batch_size=50, reference=1).match(
        X, groups, sample_weight=weights
    )
    mass = coupling.marginals()[0][:300].reshape(3, 100).sum(axis=1)
    assert mass[0] == 0.0
    assert mass[2] == close(0.75, abs=0.1)
    assert coupling.marginal_error > 0.0


def test_fair_matching_is_the_least_gap_of_all():
    generator = np.random.default_rng(0)
    for _ in range(20):
        scores, groups = generator.uniform(size=9), generator.permutation([0] * 4 + [1] * 5)
        first, second = scores[groups == 0], scores[groups == 1]
        best = ot.emd2([], [], np.abs(first[:, None] - second))
        fair = fair_matching(scores, groups)
        gap = matched_parity_gap(None, scores, sensitive_features=groups, coupling=fair)
        assert gap == close(best)
        assert gap == close(wasserstein_parity_gap(None, scores, sensitive_features=groups))


# The Gaussian map.


@given(st.integers(1, 4), st.integers(0, 2**32))
def test_the_gaussian_map_is_pots_and_pushes_one_law_to_the_other(d, seed):
    generator = np.random.default_rng(seed)
    means = generator.normal(size=(2, d))
    roots = generator.normal(size=(2, d, d)) + 2.0 * np.eye(d)
    covariances = roots @ roots.transpose(0, 2, 1)
    gaussian = GaussianMap.between(means[0], covariances[0], means[1], covariances[1])
    np.testing.assert_allclose(gaussian(means[:1]), means[1:], atol=1e-8)
    np.testing.assert_allclose(
        gaussian.matrix @ covariances[0] @ gaussian.matrix.T, covariances[1], atol=1e-6
    )
    A, b = ot.gaussian.bures_wasserstein_mapping(means[0], means[1], covariances[0], covariances[1])
    np.testing.assert_allclose(gaussian.matrix, A, atol=1e-6)
    np.testing.assert_allclose(gaussian.offset, b.ravel(), atol=1e-6)


def test_the_gaussian_map_to_a_flat_law():
    flat = [[1.0, 1.0], [1.0, 1.0]]
    gaussian = GaussianMap.between([0, 0], np.eye(2), [1, 1], flat)
    np.testing.assert_allclose(gaussian.matrix @ gaussian.matrix.T, flat, atol=1e-12)
    with pytest.raises(ValueError, match="covariance0 must be positive definite"):
        GaussianMap.between([0, 0], flat, [0, 0], np.eye(2))


@pytest.mark.parametrize("seed", range(12))
def test_ties_are_settled_alike_for_rows_in_any_order_and_for_weights(seed):
    """Many plans are optimal on a grid; the one that is found depends on the people alone."""
    generator = np.random.default_rng(seed)
    n = int(generator.integers(20, 100))
    points = Points(generator.random((n, 2)).round(1), generator.integers(0, 3, (n, 1)))
    groups, weight = np.arange(n) % 2, generator.integers(1, 4, n)
    names = np.unique(np.hstack([points.numbers, points.codes]), axis=0, return_inverse=True)[1]

    def found(rows, weights=None):
        matched = OptimalTransportMatcher().match(
            points.take(rows), groups[rows], sample_weight=weights
        )
        plan = np.zeros((n, n))
        own = names[rows]
        np.add.at(plan, (own[matched.source_index], own[matched.target_index]), matched.mass)
        return plan

    order, repeated = generator.permutation(n), np.repeat(np.arange(n), weight)
    known = found(np.arange(n), weight)
    np.testing.assert_allclose(found(order, weight[order]), known, atol=1e-12)
    np.testing.assert_allclose(found(repeated), known, atol=1e-12)
    np.testing.assert_allclose(found(generator.permutation(repeated)), known, atol=1e-12)
