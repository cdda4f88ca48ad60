"""The coupling: what it accepts, what it answers, what it refuses."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_tables import Table, some_coupling, tables
from scipy import sparse

from fairmatch import Coupling, fair_matching
from fairmatch.exceptions import CouplingError, InputError
from fairmatch.matching.coupling import Certificate

GROUPS = ["b", "a", "a", "b", "b"]


def make(source=(1, 1, 2), target=(0, 3, 4), mass=(0.25, 0.25, 0.5), **facts) -> Coupling:
    return Coupling(source, target, mass, **{"n_rows": 5, "groups": ("a", "b")} | facts)


@st.composite
def couplings(draw: st.DrawFn) -> tuple[Table, Coupling]:
    table = draw(tables())
    return table, some_coupling(table, np.random.default_rng(draw(st.integers(0, 2**32))))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"source": (1, 2)}, "equally long; got 2, 3 and 3"),
        ({"source": (), "target": (), "mass": ()}, "at least one pair"),
        ({"source": [[1], [1], [2]]}, "one-dimensional"),
        ({"source": (1.0, 1.0, 2.0)}, "must be integers, got dtype float64"),
        ({"source": (True, True, False)}, "must be integers, got dtype bool"),
        ({"target": (0, 3, 5)}, "row positions from 0 to 4, got 0 to 5"),
        ({"source": (-1, 1, 2)}, "source_index must hold row positions"),
        ({"mass": (-0.25, 0.75, 0.5)}, "not be negative or NaN"),
        ({"mass": (np.nan, 0.5, 0.5)}, "not be negative or NaN"),
        ({"mass": (0.5, 0.5, 0.5)}, "must sum to 1, got 1.5"),
        ({"mass": (np.inf, 0.5, 0.5)}, "must sum to 1"),
        ({"groups": ("a", "a")}, "two different labels"),
        ({"groups": ("a", "b", "c")}, "two different labels"),
    ],
)
def test_refuses_what_is_not_a_coupling(given, message):
    with pytest.raises(CouplingError, match=message):
        make(**given)


def test_text_is_not_mass():
    with pytest.raises(InputError, match="mass must be numeric"):
        make(mass=("0.25", "0.25", "0.5"))


def test_is_frozen():
    mass = np.array([0.25, 0.25, 0.5])
    coupling = make(mass=mass)
    with pytest.raises(dataclasses.FrozenInstanceError):
        coupling.mass = mass
    for array in (coupling.source_index, coupling.target_index, coupling.mass):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    mass[0] = 9.0
    assert coupling.mass[0] == 0.25, "the caller's array is not the coupling's"
    assert mass.flags.writeable, "and stays the caller's to change"


def test_answers_by_hand():
    coupling = make()
    scores, X = [0.5, 0.25, 0.0, 1.0, 0.5], [[0.0, 0], [1, 0], [0, 0], [1, 2], [3, 4]]
    assert len(coupling) == 3
    assert repr(coupling) == "<Coupling of 'a' with 'b': 3 pairs, 5 rows>"
    assert coupling.gaps(scores).tolist() == [0.25, 0.75, 0.5]
    assert coupling.gap(scores) == 0.5
    assert coupling.costs(X).tolist() == [1.0, 4.0, 25.0]
    assert coupling.transport_cost(X) == 13.75
    assert coupling.costs_by_feature(X).tolist() == [4.75, 9.0]
    assert coupling.expect([4.0, 0.0, 2.0]) == 2.0
    assert coupling.expect(lambda source, target: source + target) == 4.25
    assert coupling.to_dense(GROUPS).tolist() == [[0.25, 0.25, 0.0], [0.0, 0.0, 0.5]]


@pytest.mark.parametrize(
    ("row", "partners", "probabilities"),
    [(1, [0, 3], [0.5, 0.5]), (2, [4], [1.0]), (0, [1], [1.0]), (4, [2], [1.0])],
)
def test_counterparts(row, partners, probabilities):
    found = make().counterparts(row)
    assert [part.tolist() for part in found] == [partners, probabilities]


def test_counterparts_most_likely_first_and_each_once():
    coupling = make((1, 1, 1, 2), (0, 3, 3, 4), (0.3, 0.2, 0.2, 0.3))
    partners, probabilities = coupling.counterparts(1)
    assert partners.tolist() == [3, 0]
    np.testing.assert_allclose(probabilities, [4 / 7, 3 / 7])


def test_counterparts_of_rows_that_carry_no_mass():
    coupling = make(mass=(0.5, 0.5, 0.0), n_rows=6)
    for row in (2, 5):
        assert [len(part) for part in coupling.counterparts(row)] == [0, 0]
    for row in (-1, 6):
        with pytest.raises(CouplingError, match="from 0 to 5, got"):
            coupling.counterparts(row)


@given(couplings())
def test_marginals_are_the_groups(case):
    table, coupling = case
    for group, mass in enumerate(coupling.marginals()):
        np.testing.assert_allclose(mass[table.groups == group], table.shares(group), atol=1e-12)
        assert (mass[table.groups != group] == 0.0).all()


@given(couplings())
def test_inverse_turns_the_matching_round(case):
    table, coupling = case
    back = coupling.inverse
    assert back.groups == coupling.groups[::-1]
    assert back.gap(table.scores) == coupling.gap(table.scores)
    assert back.transport_cost(table.X) == coupling.transport_cost(table.X)
    np.testing.assert_array_equal(back.to_dense(table.groups), coupling.to_dense(table.groups).T)
    np.testing.assert_array_equal(back.inverse.mass, coupling.mass)
    for row in range(len(table)):
        for mine, theirs in zip(coupling.counterparts(row), back.counterparts(row), strict=True):
            np.testing.assert_array_equal(mine, theirs)


@given(couplings())
def test_plans_of_every_kind_make_the_same_coupling(case):
    table, coupling = case
    plan = coupling.to_dense(table.groups)
    for given_plan in (plan, plan.tolist(), sparse.csr_array(plan), sparse.coo_matrix(plan)):
        again = Coupling.from_plan(given_plan, table.groups)
        np.testing.assert_array_equal(again.to_dense(table.groups), plan)
    rows = [np.flatnonzero(table.groups == group) for group in (0, 1)]
    np.testing.assert_array_equal(coupling.to_sparse().toarray()[np.ix_(*rows)], plan)


@given(couplings())
def test_answers_are_those_of_the_dense_plan(case):
    table, coupling = case
    plan, (first, second) = coupling.to_dense(table.groups), (table.groups == 0, table.groups == 1)
    gaps = np.abs(table.scores[first][:, None] - table.scores[second])
    squares = (table.X[first][:, None] - table.X[second]) ** 2
    assert coupling.gap(table.scores) == pytest.approx((plan * gaps).sum())
    assert coupling.transport_cost(table.X) == pytest.approx((plan[..., None] * squares).sum())
    by_feature = np.einsum("ij,ijk->k", plan, squares)
    np.testing.assert_allclose(coupling.costs_by_feature(table.X), by_feature)


def test_a_plan_of_the_wrong_shape():
    with pytest.raises(CouplingError, match=r"shape \(1, 2\); the groups 'a' and 'b' have 2 and 3"):
        Coupling.from_plan([[0.5, 0.5]], GROUPS)


def test_a_plan_carries_its_facts():
    certificate = Certificate(cost=2.0, bound=1.5, solver="by hand")
    coupling = Coupling.from_plan(np.full((2, 3), 1 / 6), GROUPS, certificate=certificate)
    assert coupling.inverse.certificate is certificate
    assert (certificate.gap, certificate.relative_gap) == (0.5, 0.25)
    assert Certificate(cost=0.0, bound=0.0, solver="").relative_gap == 0.0


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda c: c.gap([0.5] * 4), "table of 5 rows, but is used on one of 4"),
        (lambda c: c.transport_cost([[0.0]] * 6), "table of 5 rows, but is used on one of 6"),
        (lambda c: c.costs_by_feature([[0.0]] * 6), "Match that table on its own"),
        (lambda c: c.expect([1.0]), "1 entries, but the coupling has 3 pairs"),
        (lambda c: c.to_dense(["a", "b"]), "table of 5 rows, but is used on one of 2"),
        (lambda c: c.to_dense(["x", "y", "y", "x", "x"]), "'a' with 'b'; the groups given are 'x'"),
        (lambda c: c.read_groups(["a", "b", "b", "a", "a"]), "rows of the wrong group"),
        (lambda c: c.read_groups(["b", "a", "b", "b", "b"]), "rows are in another order"),
        (lambda c: c.read_groups(["a", "a", "a", "b", "b"]), "rows are in another order"),
        (lambda c: c.inverse.read_groups(["a", "b", "b", "a", "a"]), "rows of the wrong group"),
    ],
)
def test_refuses_other_tables(use, message):
    with pytest.raises(CouplingError, match=message):
        use(make())


def test_a_million_pairs():
    n_pairs = 1_000_000
    generator = np.random.default_rng(0)
    groups = np.repeat([0, 1], n_pairs)
    scores, X = generator.uniform(size=2 * n_pairs), generator.normal(size=(2 * n_pairs, 3))
    coupling = fair_matching(scores, groups, reference=1)
    assert len(coupling) == n_pairs
    assert coupling.gap(scores) < 0.01
    assert coupling.transport_cost(X) == pytest.approx(6.0, rel=0.01)  # independent of the scores
    assert coupling.costs_by_feature(X).sum() == pytest.approx(coupling.transport_cost(X))
    np.testing.assert_allclose(coupling.marginals()[0][:n_pairs], 1 / n_pairs)
    assert len(coupling.counterparts(7)[0]) == 1
