"""The nearest fair matching against linear programs, and against what must hold of any."""

import numpy as np
import ot
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_tables import Table, many_groups, tables
from scipy.optimize import linprog

from fairmatch import OptimalTransportMatcher, fair_matching, nearest_fair_matching
from fairmatch.exceptions import InputError
from fairmatch.measures import wasserstein_parity_gap

close = pytest.approx


def least_cost(table: Table, slack: float | None) -> tuple[float, float]:
    """Find W1, and the least cost with a mean gap of at most W1 + slack, by linear programs.

    Group 0 is the source. Without a slack the gap is free.
    """
    rows = [np.flatnonzero(table.groups == group) for group in (0, 1)]
    mass = [table.shares(group) for group in (0, 1)]
    shape = len(rows[0]), len(rows[1])
    pairs = np.arange(np.prod(shape)).reshape(shape)
    A = np.array([np.isin(pairs.ravel(), members) for members in [*pairs, *pairs.T]], dtype=float)
    b = np.concatenate(mass)
    gaps = np.abs(table.scores[rows[0]][:, None] - table.scores[rows[1]]).ravel()
    costs = ((table.X[rows[0]][:, None] - table.X[rows[1]]) ** 2).sum(axis=2).ravel()
    # The solver's tolerance is absolute, and scores may differ by less than it.
    scale = gaps.max() or 1.0
    least = linprog(gaps / scale, A_eq=A, b_eq=b).fun
    room = 0.0 if slack is None else slack / scale or 1e-10
    bound = {} if slack is None else {"A_ub": [gaps / scale], "b_ub": [least + room]}
    solved = linprog(costs, A_eq=A, b_eq=b, **bound)
    assert solved.success, solved.message
    return least * scale, solved.fun


def match(table: Table, slack: float = 0.0, **more):
    return nearest_fair_matching(
        table.scores, table.groups, table.X, slack=slack, sample_weight=table.weights, **more
    )


@settings(max_examples=60)
@given(tables())
def test_without_slack_it_is_the_linear_program(table):
    found = match(table)
    gap, cost = least_cost(table, 0.0)
    assert found.gap(table.scores) == close(gap, abs=1e-9)
    assert found.transport_cost(table.X) == close(cost, rel=1e-6, abs=1e-8)
    assert found.certificate.cost == close(found.transport_cost(table.X), rel=1e-9, abs=1e-12)
    assert found.certificate.relative_gap <= 1e-9 or found.certificate.cost < 1e-25


@settings(max_examples=60)
@given(tables(), st.sampled_from([1e-3, 0.01, 0.05, 0.2]))
def test_with_slack_it_is_the_linear_program(table, slack):
    found = match(table, slack)
    gap, cost = least_cost(table, slack)
    assert found.gap(table.scores) <= gap + slack + 1e-9
    assert found.transport_cost(table.X) == close(cost, rel=1e-7, abs=1e-9)
    assert found.certificate.bound <= cost * (1.0 + 1e-9) + 1e-12
    sides = found if found.groups == (0, 1) else found.inverse
    for marginal, group in zip(sides.marginals(), (0, 1), strict=True):
        assert marginal[table.groups == group] == close(table.shares(group), abs=1e-12)


@settings(max_examples=40)
@given(many_groups(max_groups=4), st.sampled_from(["demographic_parity", "equalized_odds"]))
def test_every_part_has_its_own_wasserstein_gap(table, criterion):
    given_ = {"y_true": table.labels, "criterion": criterion, "sample_weight": table.weights}
    found = nearest_fair_matching(table.scores, table.groups, table.X, **given_)
    equal = fair_matching(table.scores, table.groups, X=table.X, **given_)
    for part, other in zip(found.parts, equal.parts, strict=True):
        rows = np.isin(table.groups, part.groups)
        rows &= True if part.label is None else table.labels == part.label
        some = table.take(np.flatnonzero(rows))
        least = wasserstein_parity_gap(None, some.scores, **some.given)
        assert part.gap(table.scores) == close(least, abs=1e-9)
        assert (part.groups, part.label) == (other.groups, other.label)
        cost = part.transport_cost(table.X)
        assert cost <= other.transport_cost(table.X) + 1e-9
        assert part.certificate.cost == close(cost, rel=1e-9)
    matcher = OptimalTransportMatcher(criterion=criterion)
    near = matcher.match(
        table.X, table.groups, table.labels, sample_weight=table.weights
    ).transport_cost(table.X)
    assert found.transport_cost(table.X) >= near - 1e-9
    free = nearest_fair_matching(table.scores, table.groups, table.X, slack=np.inf, **given_)
    assert free.transport_cost(table.X) == close(near, rel=1e-9)


def test_weights_are_as_good_as_copies():
    rng = np.random.default_rng(0)
    scores, groups = rng.integers(0, 9, 60) / 8, np.arange(60) % 2
    X, weights = rng.normal(size=(60, 3)), rng.integers(1, 4, 60)
    copies = np.repeat(np.arange(60), weights)
    for slack in (0.0, 0.01):
        weighted = nearest_fair_matching(scores, groups, X, slack=slack, sample_weight=weights)
        copied = nearest_fair_matching(scores[copies], groups[copies], X[copies], slack=slack)
        assert weighted.certificate.cost == close(copied.certificate.cost, rel=1e-9)


def test_equal_shares_up_to_rounding_are_not_crossed():
    # Both groups have a third of their mass below 1/2, in weights that no float holds.
    scores = np.array([0.2, 0.2, 0.8, 0.8, 0.3, 0.7, 0.7, 0.7])
    groups = np.repeat([0, 1], 4)
    weights = np.array([0.1, 0.2, 0.3, 0.3, 1.0, 0.7, 0.6, 0.7]) / 7.0
    X = np.array([[0.0], [9.0], [0.0], [9.0], [9.0], [0.0], [9.0], [0.0]])
    found = nearest_fair_matching(scores, groups, X, sample_weight=weights)
    below = scores < 0.5
    assert (below[found.source_index] == below[found.target_index]).all()


def crowd(n0: int, n1: int, width: int = 20) -> Table:
    """People with continuous scores that favour neither group everywhere."""
    rng = np.random.default_rng(1)
    groups, X = np.repeat([0, 1], [n0, n1]), rng.normal(size=(n0 + n1, width))
    scores = 1.0 / (1.0 + np.exp(-X[:, 0] - 0.3 * groups * X[:, 1]))
    return Table(scores, groups, groups, X, None)


def test_with_slack_many_people_are_mixed_from_two_plans():
    table = crowd(60, 45)
    found = match(table, 0.01)
    gap, cost = least_cost(table, 0.01)
    assert found.certificate.cost == close(cost, rel=1e-6)
    assert found.gap(table.scores) == close(gap + 0.01, abs=1e-12)
    assert found.certificate.relative_gap <= 1e-9


@pytest.mark.parametrize("width", [3, 20])
def test_column_generation_finds_what_pot_finds_on_the_allowed_pairs(width):
    table = crowd(600, 500, width)
    found = match(table)
    one, other = table.scores[table.groups == 0], table.scores[table.groups == 1]
    levels = np.unique(table.scores)
    ahead = [np.searchsorted(np.sort(s), levels, side="right") for s in (one, other)]
    ahead = ahead[0] * len(other) - ahead[1] * len(one)  # F0 - F1 in whole numbers
    closed = [np.append(0, np.cumsum(shut)) for shut in (ahead <= 0, ahead >= 0)]
    at = np.searchsorted(levels, one)[:, None], np.searchsorted(levels, other)
    upwards, downwards = closed[0][at[1]] - closed[0][at[0]], closed[1][at[0]] - closed[1][at[1]]
    forbidden = np.where(at[0] < at[1], upwards > 0, (at[0] > at[1]) & (downwards > 0))
    X = table.X
    costs = ((X[table.groups == 0][:, None] - X[table.groups == 1]) ** 2).sum(axis=2)
    masses = np.full(len(one), float(len(other))), np.full(len(other), float(len(one)))
    plan = ot.emd(*masses, np.where(forbidden, 1e4, costs), numItermax=10**8) / masses[0].sum()
    assert not plan[forbidden].any()
    least = wasserstein_parity_gap(None, table.scores, sensitive_features=table.groups)
    assert found.gap(table.scores) == close(least, abs=1e-12)
    assert found.certificate.cost == close((plan * costs).sum(), rel=1e-9)
    assert found.certificate.solver == "column generation"
    assert found.certificate.relative_gap <= 1e-9


def test_a_model_that_is_fair_by_swapping_has_no_near_matching():
    """Appendix B: two perfectly fair models, of which one treats x like 1 - x."""
    x = (np.arange(20) + 0.5) / 20
    groups, X = np.repeat([0, 1], 20), np.concatenate([x, x])[:, None]
    kept, swapped = np.concatenate([x, x]), np.concatenate([x, 1 - x])
    assert nearest_fair_matching(kept, groups, X).transport_cost(X) == close(0.0, abs=1e-15)
    cost = nearest_fair_matching(swapped, groups, X).transport_cost(X)
    assert cost == close(np.mean((2 * x - 1) ** 2))


def test_constant_scores_leave_the_nearest_people():
    rng = np.random.default_rng(2)
    X, groups = rng.normal(size=(30, 2)), np.arange(30) % 2
    found = nearest_fair_matching(np.full(30, 0.5), groups, X)
    near = OptimalTransportMatcher().match(X, groups)
    assert found.transport_cost(X) == close(near.transport_cost(X))


def test_one_person_in_a_group():
    found = nearest_fair_matching([0.1, 0.5, 0.9], ["a", "b", "b"], [[0.0], [1.0], [2.0]])
    assert found.transport_cost([[0.0], [1.0], [2.0]]) == close(2.5)


def test_people_who_are_all_alike_cost_nothing():
    scores, groups, X = [0.1, 0.5, 0.9, 0.3], [0, 0, 1, 1], np.full((4, 2), 0.1)
    for slack in (0.0, 0.01, np.inf):
        assert nearest_fair_matching(scores, groups, X, slack=slack).certificate.cost == 0.0


@pytest.mark.parametrize("slack", [-0.1, float("nan"), "much"])
def test_a_slack_that_is_none(slack):
    with pytest.raises(InputError, match="slack must be a number in"):
        nearest_fair_matching([0.1, 0.5], [0, 1], [[0.0], [1.0]], slack=slack)


def test_without_features_there_is_a_sentence():
    with pytest.raises(InputError, match="X=None, but it needs the features"):
        nearest_fair_matching([0.1, 0.5], [0, 1], None)


@pytest.mark.parametrize(
    "match",
    [
        lambda X: nearest_fair_matching([0.1, 0.9, 0.4, 0.6], [0, 0, 1, 1], X),
        lambda X: OptimalTransportMatcher().match(X, [0, 0, 1, 1]),
    ],
)
@pytest.mark.parametrize("X", [np.empty((4, 0)), pd.DataFrame(index=range(4))])
def test_a_table_without_columns_is_refused_in_three_parts(match, X):
    with pytest.raises(InputError, match=r"without columns, .* at least one.*Pass the columns"):
        match(X)
