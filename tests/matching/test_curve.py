"""The curve of a model: convex, falling, and the linear programs' at every slack."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_tables import Table, many_groups, tables

from fairmatch import OptimalTransportMatcher, matching_curve, nearest_fair_matching
from fairmatch.exceptions import InputError
from fairmatch.measures import wasserstein_parity_gap
from fairmatch.people.encoding import Points

close = pytest.approx


def curve_of(table: Table, **more):
    return matching_curve(table.scores, table.groups, table.X, sample_weight=table.weights, **more)


def random_cost(table: Table) -> float:
    """Compute the cost of the independent coupling, pair by pair."""
    one, other = (table.X[table.groups == group] for group in (0, 1))
    costs = ((one[:, None] - other) ** 2).sum(axis=2)
    return table.shares(0) @ costs @ table.shares(1)


@settings(max_examples=50)
@given(tables(), st.floats(0.0, 0.3))
def test_the_curve_is_convex_and_falls_and_is_the_least_cost(table, slack):
    curve = curve_of(table, accuracy=1e-9)
    slopes = np.diff(curve.cost) / np.diff(curve.slack)
    assert (slopes < 0.0).all()
    assert (np.diff(slopes) > 0.0).all()
    found = nearest_fair_matching(
        table.scores, table.groups, table.X, slack=slack, sample_weight=table.weights
    )
    assert curve.cost_at(slack) == close(found.certificate.cost, rel=1e-7, abs=1e-9)
    near = OptimalTransportMatcher().match(table.X, table.groups, sample_weight=table.weights)
    assert curve.nearest_cost == close(near.transport_cost(table.X), rel=1e-9, abs=1e-15)
    assert curve.gap[-1] <= near.gap(table.scores) + 1e-9
    assert curve.slack[0] == 0.0
    assert curve.least_gap == close(
        wasserstein_parity_gap(None, table.scores, **table.given), abs=1e-9
    )
    assert curve.random_cost == close(random_cost(table))


@settings(max_examples=20)
@given(many_groups(max_groups=4), st.floats(0.0, 0.3))
def test_the_curve_of_several_parts_is_their_weighted_sum(table, slack):
    curve = curve_of(table, accuracy=1e-9)
    slopes = np.diff(curve.cost) / np.diff(curve.slack)
    assert (slopes <= 1e-9).all()
    assert (np.diff(slopes) >= -1e-6 * np.abs(slopes[:-1])).all()
    found = nearest_fair_matching(
        table.scores, table.groups, table.X, slack=slack, sample_weight=table.weights
    )
    assert curve.cost_at(slack) == close(found.transport_cost(table.X), rel=1e-7, abs=1e-9)
    assert curve.cost_at(slack) == close(sum(p.weight * p.cost_at(slack) for p in curve.parts))
    assert [part.groups for part in curve.parts] == [part.groups for part in found.parts]


def test_a_rough_curve_is_as_near_as_it_says():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(160, 6)), np.repeat([0, 1], [90, 70])
    scores = 1.0 / (1.0 + np.exp(-X @ rng.normal(size=6) - 0.4 * groups * X[:, 1]))
    exact, rough = (matching_curve(scores, groups, X, accuracy=a) for a in (1e-5, 1e-2))
    assert len(rough.cost) < len(exact.cost) / 4
    slack = np.linspace(0.0, exact.slack[-1], 200)
    higher = np.array([rough.position(s) - exact.position(s) for s in slack])
    assert higher.min() >= -1e-5
    assert 1e-4 < higher.max() <= 1e-2
    assert rough.position(0.0) == close(exact.position(0.0))
    assert rough.position(np.inf) == 0.0


def test_categories_cost_as_much_as_their_one_hot_columns():
    rng = np.random.default_rng(3)
    people = Points(rng.normal(size=(50, 2)), rng.integers(-1, 4, size=(50, 2)))
    scores, groups = rng.uniform(size=50), np.arange(50) % 2
    weights = rng.integers(1, 4, 50)
    by_code, by_column = (
        matching_curve(scores, groups, X, sample_weight=weights) for X in (people, people.dense())
    )
    assert by_code.random_cost == close(by_column.random_cost)
    assert by_code.position() == close(by_column.position())
    assert by_code.cost[[0, -1]] == close(by_column.cost[[0, -1]])


def test_where_all_matchings_cost_the_same_there_is_no_position():
    curve = matching_curve([0.1, 0.7, 0.4], ["a", "a", "b"], [[0.0], [1.0], [1.0]])
    assert len(curve.cost) == 1
    assert curve.position() is None
    assert "1 points" in repr(curve)


def test_bad_input_is_a_sentence():
    with pytest.raises(InputError, match="accuracy must be a number in"):
        matching_curve([0.1, 0.7], [0, 1], [[0.0], [1.0]], accuracy=0.0)
    with pytest.raises(InputError, match="matching_curve got X=None"):
        matching_curve([0.1, 0.7], [0, 1], None)
    curve = matching_curve([0.1, 0.7], [0, 1], [[0.0], [1.0]])
    with pytest.raises(InputError, match="slack must be a number in"):
        curve.cost_at(-1.0)
