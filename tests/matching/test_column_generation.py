"""Tests of column generation where floats run out: near twins, outliers, large tables."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from fairmatch.matching import network as pricing
from fairmatch.matching import network as problem
from fairmatch.matching.network import SCORE_UNIT, Problem, ScoreTerm
from fairmatch.matching.solver import Transport
from fairmatch.people.encoding import Points

Floats = NDArray[np.float64]


def best_cost(x: Floats, z: Floats) -> float:
    """Find the least cost by differences and SciPy, which needs no potentials."""
    cost = ((x[:, None] - z) ** 2).sum(axis=2)
    return float(cost[linear_sum_assignment(cost)].mean())


def rounded(x: Floats) -> Floats:
    return np.round(x, 4)


def single(x: Floats) -> Floats:
    return x.astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("seed", range(5))
def test_weighted_twins_in_another_order(seed) -> None:
    """Everybody has a twin of the same weight; only the rounding of the masses is left over."""
    rng = np.random.default_rng(seed)
    x, weights = rng.uniform(size=(80, 2)), 1.0 + np.arange(80) % 2 / 2
    one, other = rng.permutation(80), rng.permutation(80)
    mass = weights[one] / weights[one].sum(), weights[other] / weights[other].sum()
    plan = Transport(x[one], x[other], *mass).solve()
    assert plan.cost == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("twin", [rounded, single])
@pytest.mark.parametrize("shape", [(300, 2), (460, 16)])
def test_near_twins(twin, shape) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape)
    z = twin(x)[rng.permutation(len(x))]
    plan = Transport(x, z).solve()
    assert plan.certificate.relative_gap <= 1e-9
    assert plan.cost == pytest.approx(best_cost(x, z), rel=1e-9)


@pytest.mark.parametrize("far", [1e6, 1e15])
@pytest.mark.parametrize("shape", [(100, 3), (460, 16)])
def test_one_outlier_in_each_group(shape, far: float) -> None:
    rng = np.random.default_rng(1)
    x, z = rng.normal(size=shape), rng.normal(size=shape)
    x[7, 0] = z[3, 0] = far
    plan = Transport(x, z).solve()
    assert plan.certificate.relative_gap <= 1e-9
    assert plan.cost == pytest.approx(best_cost(x, z), rel=1e-9)
    assert plan.target[plan.source == 7].tolist() == [3]


@pytest.mark.parametrize("far", [1e6, 1e15])
def test_an_outlier_without_a_partner(far: float) -> None:
    rng = np.random.default_rng(2)
    x, z = rng.normal(size=(700, 20)), rng.normal(size=(700, 20))
    x[0, 0] = far
    plan = Transport(x, z).solve()
    assert plan.certificate.relative_gap <= 1e-9
    assert plan.cost == pytest.approx(best_cost(x, z), rel=1e-9)


def test_a_column_far_from_zero() -> None:
    rng = np.random.default_rng(3)
    x, z = rng.normal(size=(500, 4)), rng.normal(size=(500, 4))
    plan = Transport(np.c_[x, np.full(500, 1e15)], np.c_[z, np.full(500, 1e15)]).solve()
    assert plan.cost == pytest.approx(best_cost(x, z), rel=1e-9)
    assert plan.certificate.relative_gap <= 1e-9


def test_points_that_differ_by_rounding_are_the_same() -> None:
    x = np.random.default_rng(4).normal(size=(600, 5))
    plan = Transport(x, np.nextafter(x, 9.0)[::-1]).solve()
    assert plan.bound <= plan.cost < 1e-29


def test_a_bound_is_never_above_the_optimum() -> None:
    """Potentials that cancel by millions must not round the bound upwards."""
    rng = np.random.default_rng(5)
    x, z = rng.normal(size=(40, 2)), rng.normal(size=(40, 2))
    here = Problem(Points(x), Points(z))
    u = rng.normal(size=40)
    v = (here.cost_matrix() - u[:, None]).min(axis=0)
    for shift in (2.0**27, 2.0**50):
        low = u + shift, v - shift
        exact = ((low[0] - shift).sum() + (low[1] + shift).sum()) / 40
        assert here.value(*low) == pytest.approx(exact, rel=1e-15)
        assert pricing.price_arcs(here, *low, np.inf)[1] <= best_cost(x, z)


def test_memory_of_the_first_arcs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem, "BLOCK", 40_000)
    peaks = []
    for count in (1_000, 4_000):
        rng = np.random.default_rng(6)
        here = Problem(*(Points(rng.normal(size=(count, 2))) for _ in "01"))
        zero = np.zeros(count)
        tracemalloc.start()
        pricing.first_arcs(here, zero, zero)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 5.0 * peaks[0]  # four times the rows, sixteen times the pairs


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("price", [0.0, 1e-3, 1.0, 1e6, np.inf])
def test_blocks_of_priced_scores_are_lower_bounds(precision, price: float) -> None:
    """Blocks never exceed what exact fractions give, and forbidden pairs are those with excess."""
    rng = np.random.default_rng(6)
    atoms = [Points(rng.normal(size=(40, 16)) / 4) for _ in range(2)]
    masses = np.full(40, 3.0), np.full(40, 3.0)
    scores = [np.rint(rng.beta(1 + k, 2, 40) / SCORE_UNIT) * SCORE_UNIT for k in range(2)]
    term = ScoreTerm.between(scores[0], masses[0], scores[1], masses[1], price)
    here = Problem(*atoms, masses, term=term)
    here.precision = precision
    u, v = rng.normal(size=40), rng.normal(size=40)
    if 0.0 < price < np.inf:
        u, v = u + price * term.source.lift, v - price * term.target.lift  # as potentials do
    i, j = np.divmod(np.arange(1600), 40)
    excess = term.excess(i, j)
    assert excess.min() >= 0.0
    blocks = np.concatenate([block for _, block in here.reduced_costs(u, v)]).ravel()
    if price == np.inf:
        assert np.array_equal(np.isinf(blocks), excess > 0.0)
    else:
        exact = [
            sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(x, z, strict=True))
            + Fraction(price) * Fraction(e) - Fraction(one) - Fraction(other)
            for x, z, e, one, other in zip(here.x[i], here.z[j], excess, u[i], v[j], strict=True)
        ]  # fmt: skip
        assert all(Fraction(float(b)) <= e for b, e in zip(blocks, exact, strict=True))
        loose = max(float(e) - float(b) for b, e in zip(blocks, exact, strict=True))
        assert loose <= 400 * np.finfo(precision).eps * max(1.0, price)
