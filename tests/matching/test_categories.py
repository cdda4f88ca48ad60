"""People matched on numbers and category codes, against one-hot columns and POT."""

import tracemalloc
from unittest.mock import patch

import numpy as np
import ot
import pandas as pd
import polars as pl
import pytest
from distances import distances
from hypothesis import given, settings
from hypothesis import strategies as st

from fairmatch import OptimalTransportMatcher, nearest_fair_matching
from fairmatch.datasets import load_german
from fairmatch.exceptions import InputError
from fairmatch.matching import network, solver
from fairmatch.matching.solver import Transport
from fairmatch.people.encoding import Points, TableEncoder, read_points


def mixed(n, seed, *, unknown=True, n_levels=5):
    generator = np.random.default_rng(seed)
    codes = generator.integers(-1 if unknown else 0, n_levels, size=(n, 3))
    return Points(generator.normal(scale=0.4, size=(n, 2)), codes)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 10**6), st.booleans())
def test_the_plan_is_pots(n0, n1, seed, sparse):
    x, z = mixed(n0, seed), mixed(n1, seed + 1)
    with patch.object(network, "DENSE_ARCS", 0 if sparse else network.DENSE_ARCS):
        plan = Transport(x, z).solve()
    best = ot.emd2([], [], distances(x, z))
    assert plan.cost == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert plan.bound == pytest.approx(best, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_blocks_are_lower_bounds(precision):
    x, z = mixed(60, 0), mixed(50, 1)
    problem = solver.Transport(x, z)._problem
    problem.precision = precision
    u, v = np.random.default_rng(2).normal(size=(2, 60))
    (_, block), *rest = problem.reduced_costs(u[: problem.n0], v[: problem.n1])
    assert not rest
    i, j = np.indices((problem.n0, problem.n1)).reshape(2, -1)
    exact = problem.distances(i, j).reshape(block.shape) - np.add.outer(
        u[: problem.n0], v[: problem.n1]
    )
    assert (block <= exact).all()
    assert np.abs(block - exact).max() < 100 * np.finfo(precision).eps


def test_more_categories_than_a_byte_can_count():
    generator = np.random.default_rng(0)
    x, z = (Points(np.zeros((30, 0)), generator.integers(0, 2, size=(30, 300))) for _ in range(2))
    best = ot.emd2([], [], distances(x, z))
    with patch.object(network, "DENSE_ARCS", 0):
        assert Transport(x, z).solve().cost == pytest.approx(best)


def test_a_table_is_matched_as_its_one_hot_columns():
    german = load_german()
    dense = TableEncoder().fit_transform(german.X)
    for matcher in (OptimalTransportMatcher(), OptimalTransportMatcher(label_weight=3.0)):
        by_table = matcher.match(german.X, german.sensitive_features, german.y)
        by_columns = matcher.match(dense, german.sensitive_features, german.y)
        assert by_table.certificate.cost == pytest.approx(by_columns.certificate.cost)
        assert by_table.certificate.relative_gap <= 1e-9
        for X in (german.X, dense, pl.from_pandas(german.X)):
            found = by_table.transport_cost(X)
            assert found == pytest.approx(by_columns.transport_cost(X))


def test_the_nearest_fair_matching_takes_a_table_too():
    german = load_german()
    dense = TableEncoder().fit_transform(german.X)
    scores = np.random.default_rng(0).integers(0, 4, len(dense)) / 4
    by_table, by_columns = (
        nearest_fair_matching(scores, german.sensitive_features, X, tolerance=1e-6)
        for X in (german.X, dense)
    )
    cost = by_columns.transport_cost(dense)
    assert by_table.transport_cost(german.X) == pytest.approx(cost, rel=1e-5)
    assert by_table.gap(scores) == pytest.approx(by_columns.gap(scores))


def test_numbers_are_taken_as_they_are():
    frame = pd.DataFrame({"age": [20.0, 30.0], "member": [True, False]})
    assert read_points(frame).numbers.tolist() == [[20, 1], [30, 0]]
    with pytest.raises(InputError, match="2 rows where 3"):
        read_points(frame, n_rows=3)
    with pytest.raises(InputError, match="NaN or infinite"):
        read_points(Points([[np.nan]], np.zeros((1, 0))))
    with pytest.raises(InputError, match=r"'job' \(1\)"):
        read_points(pd.DataFrame({"job": ["cook", None]}))


def test_memory_grows_with_the_columns_of_the_table():
    n = 2_000
    generator = np.random.default_rng(0)
    pets = generator.integers(3, size=n)
    frame = pd.DataFrame({"age": generator.random(n), "name": np.arange(n).astype(str)})
    frame["pet"] = pd.Categorical(pets, categories=range(50_000))
    group = np.arange(n) % 2
    tracemalloc.start()
    coupling = OptimalTransportMatcher(tolerance=1e-2).match(frame, group)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert coupling.certificate.relative_gap <= 1e-2
    # The one-hot columns alone would take 8 bytes for each of 52,001: 832 MB.
    assert peak < 100e6


def test_groups_and_rows_that_differ_in_their_columns():
    with pytest.raises(ValueError, match="Both groups need the same columns"):
        Transport(mixed(3, 0), Points(np.zeros((3, 2)), np.zeros((3, 2)))).solve()
