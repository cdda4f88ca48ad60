"""Points on a line: sorting is optimal, also where no potentials in floats can prove it."""

import numpy as np
import pytest
from distances import distances
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance_nd

from fairmatch.matching.network import Problem, column_minima, line_of
from fairmatch.matching.solver import Transport
from fairmatch.people.encoding import Points


def near_twins(seed):
    """Two groups of almost the same numbers, which potentials of their size cannot tell apart."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(810, 1))
    z = [
        x + 1e-9 * generator.normal(size=x.shape),
        x.astype(np.float32).astype(np.float64),
        np.round(x, int(generator.integers(3, 10))),
    ][seed % 3]
    return x, generator.permutation(z)


@pytest.mark.parametrize("seed", range(12))
def test_near_twins(seed):
    x, z = near_twins(seed)
    plan = Transport(x, z).solve()
    assert plan.certificate.relative_gap <= 1e-9
    least = np.mean((np.sort(x[:, 0]) - np.sort(z[:, 0])) ** 2)
    assert plan.cost == pytest.approx(least, rel=1e-9)
    assert plan.bound <= least * (1 + 1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 30))
def test_the_same_cost_and_as_good_potentials_as_the_simplex(seed, n0, n1):
    generator = np.random.default_rng(seed)
    x, z = generator.integers(0, 12, (n0, 1)) / 4.0, generator.integers(0, 12, (n1, 1)) / 4.0
    a, b = (generator.integers(1, 5, n).astype(float) for n in (n0, n1))
    plan = Transport(x, z, a / a.sum(), b / b.sum()).solve()
    assert plan.solver == "sorting"
    # A second column that hardly differs takes the problem off the line, and to the simplex.
    lifted = [np.c_[p, np.append(1e-9, np.zeros(len(p) - 1))] for p in (x, z + 0.0)]
    simplex = Transport(*lifted, a / a.sum(), b / b.sum()).solve(on_unproven="return")
    assert plan.cost == pytest.approx(simplex.cost, abs=1e-8)
    for rows, wanted in ((plan.source, a), (plan.target, b)):
        found = np.bincount(rows, plan.mass, len(wanted))
        np.testing.assert_allclose(found, wanted / wanted.sum(), atol=1e-14)
    transport = Transport(x, z, a / a.sum(), b / b.sum())
    u = transport.row_potentials(plan)
    v = column_minima(Problem(Points(x), Points(z)), u)
    dual = u @ a / a.sum() + v @ b / b.sum()
    assert dual == pytest.approx(plan.cost, abs=1e-9)


def test_the_oracle_of_scipy():
    generator = np.random.default_rng(0)
    x, z = generator.random((60, 1)), generator.random((90, 1))
    assert Transport(x, z).solve().solver == "sorting"
    # |x - z| is convex too, so that the same plan is best for it.
    plan = Transport(x, z).solve()
    mean = plan.mass @ np.abs(x[plan.source, 0] - z[plan.target, 0])
    assert mean == pytest.approx(wasserstein_distance_nd(x, z), rel=1e-6)


def points(numbers, codes):
    return Points(np.asarray(numbers, dtype=float), np.asarray(codes, dtype=np.int32))


@pytest.mark.parametrize(
    ("numbers", "codes", "on_line"),
    [
        ([[0, 7], [1, 7]], [[3], [3]], True),  # columns in which nobody differs
        ([[7], [7]], [[3], [3]], True),  # all the same
        ([[0, 7], [1, 8]], [[3], [3]], False),
        ([[0, 7], [1, 7]], [[3], [4]], False),
        ([[0, 7], [1, 7]], [[-1], [-1]], False),  # unknown levels differ from each other
    ],
)
def test_what_is_a_line(numbers, codes, on_line):
    group = points(numbers, codes)
    assert (line_of(Problem(group, group)) is not None) == on_line
    plan = Transport(group, group).solve()
    assert (plan.solver == "sorting") == on_line
    assert plan.cost == pytest.approx(np.diag(distances(group, group)).mean())
