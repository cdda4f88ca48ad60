"""Tests of the transport solver against independent oracles."""

from __future__ import annotations

import subprocess
import sys
from typing import Any
from unittest.mock import patch

import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, linprog
from scipy.spatial.distance import cdist

from fairmatch.exceptions import SolverError
from fairmatch.matching import network
from fairmatch.matching.network import TransportPlan
from fairmatch.matching.solver import Transport

Floats = NDArray[np.float64]


def uniform(count: int) -> Floats:
    return np.full(count, 1.0 / count)


def solved(*arguments: Any, dense_arcs: int, **more: Any) -> TransportPlan:
    """Solve, with column generation for matrices of more than so many costs."""
    with patch.object(network, "DENSE_ARCS", dense_arcs):
        return Transport(*arguments).solve(**more)


def dense_cost(x: Floats, z: Floats, a: Floats | None = None, b: Floats | None = None) -> float:
    a = uniform(len(x)) if a is None else a
    b = uniform(len(z)) if b is None else b
    return float(ot.emd2(a, b, cdist(x, z, "sqeuclidean"), numItermax=10**9))


def check(
    plan: TransportPlan,
    x: Floats,
    z: Floats,
    a: Floats | None = None,
    b: Floats | None = None,
    tolerance: float = 1e-9,
) -> None:
    """Check everything a plan promises, but its optimality."""
    a, b = (uniform(len(x)) if a is None else a), (uniform(len(z)) if b is None else b)
    for row, mass in ((plan.source, a), (plan.target, b)):
        found = np.bincount(row, plan.mass, len(mass))
        np.testing.assert_allclose(found, mass, rtol=1e-14, atol=1e-15)
    assert (plan.mass > 0).all()
    assert len(set(zip(plan.source.tolist(), plan.target.tolist(), strict=True))) == len(plan.mass)
    assert len(plan.mass) <= 2 * (len(x) + len(z))
    cost = ((x[plan.source] - z[plan.target]) ** 2).sum(axis=1) @ plan.mass
    assert plan.cost == pytest.approx(cost, rel=1e-10, abs=1e-300)
    assert 0 <= plan.bound <= plan.cost
    assert plan.certificate.relative_gap <= tolerance


@pytest.mark.parametrize("sizes", [(1, 1), (1, 7), (7, 1), (5, 5), (8, 13)])
@pytest.mark.parametrize("dense_arcs", [0, 200_000])
def test_linear_programme(sizes: tuple[int, int], dense_arcs: int) -> None:
    rng = np.random.default_rng(sizes[0])
    x, z = rng.normal(size=(sizes[0], 3)), rng.normal(size=(sizes[1], 3))
    a, b = rng.dirichlet(np.ones(sizes[0])), rng.dirichlet(np.ones(sizes[1]))
    marginals = np.vstack(
        [np.kron(np.eye(sizes[0]), np.ones(sizes[1])), np.kron(np.ones(sizes[0]), np.eye(sizes[1]))]
    )
    best = linprog(cdist(x, z, "sqeuclidean").ravel(), A_eq=marginals, b_eq=np.r_[a, b]).fun
    plan = solved(x, z, a, b, dense_arcs=dense_arcs)
    check(plan, x, z, a, b)
    assert plan.cost == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("size", [2, 50, 300])
def test_assignment(size: int) -> None:
    rng = np.random.default_rng(size)
    x, z = rng.normal(size=(size, 4)), rng.normal(1.0, size=(size, 4))
    plan = Transport(x, z).solve()
    check(plan, x, z)
    cost = cdist(x, z, "sqeuclidean")
    assert plan.cost == pytest.approx(cost[linear_sum_assignment(cost)].mean(), rel=1e-12)
    assert len(plan.mass) == size


@pytest.mark.parametrize("dimension", [2, 3, 40])
@pytest.mark.parametrize("sizes", [(60, 60), (300, 170), (40, 700), (900, 1100)])
def test_column_generation_equals_dense(dimension: int, sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(dimension)
    x, z = rng.normal(size=(sizes[0], dimension)), rng.normal(0.3, 1.2, (sizes[1], dimension))
    plan = solved(x, z, dense_arcs=0)
    assert plan.solver == "column generation"
    check(plan, x, z)
    assert plan.cost == pytest.approx(dense_cost(x, z), rel=2e-9)


@pytest.mark.parametrize("size", [200, 1500])
def test_categorical_ties(size: int) -> None:
    rng = np.random.default_rng(size)
    x, z = (
        np.hstack([np.eye(k)[rng.integers(k - s, size=size + 11 * s)] for k in (3, 6, 9, 4)])
        for s in (0, 1)
    )
    plan = solved(x, z, dense_arcs=0)
    check(plan, x, z)
    assert plan.cost == pytest.approx(dense_cost(x, z), rel=2e-9)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Floats, Floats, Floats, Floats]:
    dimension = draw(st.integers(1, 4))
    sides = []
    for _ in range(2):
        count = draw(st.integers(1, 14))
        steps, size = draw(st.sampled_from([2, 640])), count * dimension
        points = draw(st.lists(st.integers(-steps, steps), min_size=size, max_size=size))
        mass = np.array(draw(st.lists(st.integers(0, 5), min_size=count, max_size=count)), float)
        if not mass.any():
            mass[:] = 1.0
        sides.append((np.reshape(points, (count, dimension)) / 64.0, mass / mass.sum()))
    return sides[0][0], sides[1][0], sides[0][1], sides[1][1]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(problem=problems(), dense_arcs=st.sampled_from([0, 200_000]))
def test_random_problems(problem: tuple[Floats, Floats, Floats, Floats], dense_arcs: int) -> None:
    x, z, a, b = problem
    plan = solved(x, z, a, b, dense_arcs=dense_arcs)
    best = dense_cost(x, z, a, b)
    assert plan.cost == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert plan.bound <= best + 1e-12
    assert plan.certificate.relative_gap <= 1e-9
    np.testing.assert_allclose(np.bincount(plan.source, plan.mass, len(x)), a, atol=1e-15)
    np.testing.assert_allclose(np.bincount(plan.target, plan.mass, len(z)), b, atol=1e-15)
    assert not (a[plan.source] == 0).any()
    assert not (b[plan.target] == 0).any()


@pytest.mark.parametrize("dense_arcs", [0, 200_000])
def test_identical_groups_cost_nothing(dense_arcs: int) -> None:
    x = np.random.default_rng(0).integers(3, size=(400, 5)).astype(float)
    plan = solved(x, x[::-1], dense_arcs=dense_arcs)
    assert (plan.cost, plan.bound, plan.certificate.relative_gap) == (0.0, 0.0, 0.0)
    check(plan, x, x[::-1])


def test_duplicates_do_not_multiply_pairs() -> None:
    rng = np.random.default_rng(3)
    x, z = (rng.integers(2, size=(count, 4)).astype(np.float64) for count in (3000, 2000))
    z[:5] = -0.0  # the same point as 0.0
    plan = Transport(x, z).solve()
    check(plan, x, z)
    assert len(plan.mass) <= len(x) + len(z) + 32
    assert plan.solver == "dense"  # on 16 x 16 atoms


def test_hash_collisions_are_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    x, z = rng.normal(size=(30, 2)), rng.normal(size=(20, 2))
    expected = Transport(x, z).solve().cost

    class Constant:
        def integers(self, high: int, size: int, dtype: type[np.uint64]) -> NDArray[np.uint64]:
            return np.full(size, 2**63, dtype)

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Constant())
    plan = Transport(np.vstack([x, x]), z).solve()
    check(plan, np.vstack([x, x]), z)
    assert plan.cost == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("size", [100, 700])
def test_scale_and_offset(scale: float, size: int) -> None:
    rng = np.random.default_rng(5)
    x, z = rng.random((size, 2)), rng.random((size + 31, 2)) + 0.1
    plan = Transport(x * scale, z * scale).solve()
    check(plan, x * scale, z * scale)
    assert plan.cost == pytest.approx(Transport(x, z).solve().cost * scale**2, rel=1e-8)
    moved = Transport(x + 1000.0, z + 1000.0).solve()
    assert moved.cost == pytest.approx(Transport(x, z).solve().cost, rel=1e-8)


@pytest.mark.parametrize("size", [60, 500])
@pytest.mark.parametrize("shift", [1e-1, 1e-2, 1e-5, 1e-9, 1e-13])
def test_nearly_identical_groups(size: int, shift: float) -> None:
    rng = np.random.default_rng(11)
    x = rng.normal(size=(size, 3))
    z = (x + shift * rng.normal(size=x.shape))[::-1].copy()
    check(Transport(x, z).solve(), x, z)


def test_points_all_equally_far_apart() -> None:
    points = np.eye(300)
    plan = solved(points[:170], points[170:], dense_arcs=0)
    check(plan, points[:170], points[170:])
    assert plan.cost == pytest.approx(2.0, rel=1e-12)


def test_tolerance_is_honoured() -> None:
    rng = np.random.default_rng(6)
    x, z = rng.normal(size=(1500, 20)), rng.normal(0.2, size=(1600, 20))
    rounds: dict[float, int] = {}
    best = Transport(x, z).solve().cost
    for tolerance in (1e-2, 1e-9):
        with patch.object(network, "price_arcs", wraps=network.price_arcs) as priced:
            plan = Transport(x, z).solve(tolerance=tolerance)
        check(plan, x, z, tolerance=tolerance)
        assert plan.bound <= best * (1 + 1e-12) <= plan.cost * (1 + 1e-9)
        rounds[tolerance] = priced.call_count
    assert rounds[1e-2] < rounds[1e-9]


def test_rounds_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    x, z = rng.normal(size=(1000, 20)), rng.normal(0.2, size=(1100, 20))
    monkeypatch.setattr(network, "_LEVEL_TOLERANCE", 0.9)
    monkeypatch.setattr(network, "_MAX_ROUNDS", 1)
    with pytest.raises(SolverError, match=r"relative gap of .* 1\.00e-09 was requested\. Pass"):
        Transport(x, z).solve()
    plan = Transport(x, z).solve(on_unproven="return")
    assert plan.certificate.relative_gap > 1e-9
    assert plan.bound < dense_cost(x, z) < plan.cost


@pytest.mark.parametrize("dense_arcs", [0, 200_000])
def test_pivots_run_out(monkeypatch: pytest.MonkeyPatch, dense_arcs: int) -> None:
    rng = np.random.default_rng(8)
    monkeypatch.setattr(network, "_MAX_PIVOTS", 3)
    with pytest.raises(SolverError, match="simplex stopped"):
        solved(rng.normal(size=(60, 2)), rng.normal(size=(60, 2)), dense_arcs=dense_arcs)


def test_a_large_matrix_is_not_built() -> None:
    rng = np.random.default_rng(9)
    x, z = rng.normal(size=(100, 2)), rng.normal(size=(90, 2))
    assert solved(x, z, dense_arcs=9_000).solver == "dense"
    assert solved(x, z, dense_arcs=8_999).solver == "column generation"


def test_deterministic() -> None:
    rng = np.random.default_rng(10)
    x, z = rng.normal(size=(800, 20)), rng.normal(size=(900, 20))
    state = str(np.random.get_state())  # noqa: NPY002
    first, second = Transport(x, z, random_state=1).solve(), Transport(x, z, random_state=1).solve()
    for name in ("source", "target", "mass"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert (first.cost, first.bound) == (second.cost, second.bound)
    assert str(np.random.get_state()) == state  # noqa: NPY002
    assert Transport(x, z, random_state=2).solve().cost == pytest.approx(first.cost, rel=1e-9)


def test_inputs_are_left_alone() -> None:
    x, z = np.arange(12.0).reshape(6, 2), np.arange(8.0).reshape(4, 2)
    kept = x.copy(), z.copy()
    Transport(x, z).solve()
    np.testing.assert_array_equal(x, kept[0])
    np.testing.assert_array_equal(z, kept[1])


def test_import_does_not_load_pot() -> None:
    code = "import sys, fairmatch.matching.solver; sys.exit('ot' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
