"""Gaps of estimated groups, against linear programs of HiGHS and simulations with known truth."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog

from fairmatch import group_probabilities
from fairmatch.measures import MEASURES, gap_table, gaps_by_pair, selection_rates
from fairmatch.measures.estimated import (
    EstimatedPeople,
    assumed_difference,
    bounded_difference,
    calibrated_difference,
    least_largest_gap,
    proxy_cells,
)


def drawn(seed, n_groups, n_cells=3, per_cell=60, *, scores=False):
    """Return people in a few cells of equal probabilities, with weights."""
    generator = np.random.default_rng(seed)
    cells = np.repeat(np.arange(n_cells), per_cell)
    probabilities = generator.dirichlet(np.ones(n_groups), size=n_cells)[cells]
    values = generator.uniform(size=len(cells)).round(1)
    if not scores:
        values = (values < generator.uniform(size=n_cells)[cells]).astype(float)
    weights = generator.integers(1, 3, size=len(cells)).astype(float)
    positive = generator.random(len(cells)) < 0.4
    people = EstimatedPeople(values, probabilities, weights, np.arange(len(cells)))
    return people, positive


def program(people, kinds, objective, equal=()):
    """Solve a linear program over joint distributions of kinds of people and groups, by cell.

    ``objective[kind, group]`` is the profit of one person. ``equal`` are further equations, as
    pairs of coefficients by kind and group, and a value.
    """
    n_kinds, n_groups = kinds.max() + 1, people.probabilities.shape[1]
    blocks = [(cell, kind, group) for cell in np.unique(people.cells)
              for kind in range(n_kinds) for group in range(n_groups)]  # fmt: skip
    at = {block: k for k, block in enumerate(blocks)}
    rows, sides = [], []
    for cell in np.unique(people.cells):
        inside = people.cells == cell
        for kind in range(n_kinds):
            row = np.zeros(len(at))
            row[[at[cell, kind, group] for group in range(n_groups)]] = 1.0
            rows.append(row)
            sides.append(people.weights[inside & (kinds == kind)].sum())
        for group in range(n_groups):
            row = np.zeros(len(at))
            row[[at[cell, kind, group] for kind in range(n_kinds)]] = 1.0
            rows.append(row)
            sides.append((people.weights * people.probabilities[:, group])[inside].sum())
    for coefficients, value in equal:
        rows.append(np.array([coefficients[kind, group] for _, kind, group in blocks]))
        sides.append(value)
    cost = -np.array([objective[kind, group] for _, kind, group in blocks])
    found = linprog(cost, A_eq=np.array(rows), b_eq=sides)
    return -found.fun if found.success else None


@pytest.mark.parametrize("scores", [False, True])
@pytest.mark.parametrize(("seed", "n_groups"), [(0, 2), (1, 2), (2, 3), (3, 4)])
def test_bounds_of_means_are_those_of_a_linear_program(seed, n_groups, scores):
    people, _ = drawn(seed, n_groups, scores=scores)
    levels, kinds = np.unique(people.values, return_inverse=True)
    sizes = people.weights @ people.probabilities
    for pair in combinations(range(n_groups), 2):
        profit = np.zeros((len(levels), n_groups))
        profit[:, pair[0]], profit[:, pair[1]] = levels / sizes[pair[0]], -levels / sizes[pair[1]]
        low, high = bounded_difference(people, pair)
        assert high.value == pytest.approx(program(people, kinds, profit), abs=1e-7)
        assert low.value == pytest.approx(-program(people, kinds, -profit), abs=1e-7)


def largest_rate(people, kinds, group):
    """Return the largest rate within a class: a linear-fractional program, by bisection.

    Kind 0 is selected and in the class, kind 1 is not selected and in the class.
    """
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2.0
        profit = np.zeros((3, people.probabilities.shape[1]))
        profit[0, group], profit[1, group] = 1.0 - middle, -middle
        low, high = (middle, high) if program(people, kinds, profit) > 0.0 else (low, middle)
    return low


@pytest.mark.parametrize(("seed", "n_groups"), [(0, 2), (1, 2), (2, 3), (3, 3)])
def test_bounds_within_a_class_are_linear_fractional_programs(seed, n_groups):
    people, positive = drawn(seed, n_groups)
    kinds = np.where(positive, np.where(people.values == 1.0, 0, 1), 2)
    people = replace(people, inside=positive)
    pair = (0, 1)
    _, high = bounded_difference(people, pair)
    turned = np.where(kinds == 2, 2, 1 - kinds)
    first = largest_rate(people, kinds, 0)
    second = 1.0 - largest_rate(people, turned, 1)
    assert high.value == pytest.approx(first - second, abs=1e-6)
    # One joint distribution reaches both ends.
    profit = np.zeros((3, n_groups))
    profit[0, 0], profit[1, 0] = 1.0 - first, -first
    other = np.zeros((3, n_groups))
    other[0, 1], other[1, 1] = second - 1.0, second
    both = program(people, kinds, profit + other)
    assert both == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize(("seed", "n_groups"), [(0, 2), (1, 3), (2, 4), (5, 3)])
def test_the_least_largest_gap_is_that_of_a_linear_program(seed, n_groups):
    people, _ = drawn(seed, n_groups)
    least = least_largest_gap(people, tuple(range(n_groups)))
    ends = [bounded_difference(people, pair) for pair in combinations(range(n_groups), 2)]
    by_pair = max(max(low.value, -high.value, 0.0) for low, high in ends)
    assert least >= by_pair - 1e-9
    if n_groups == 2:
        assert least == pytest.approx(by_pair, abs=1e-9)
    # No joint distribution has a smaller one: the rates of all groups would have to be equal.
    sizes, kinds = people.weights @ people.probabilities, (people.values == 0.0).astype(int)
    equal = []
    for group in range(1, n_groups):
        row = np.zeros((2, n_groups))
        row[0, 0], row[0, group] = 1.0 / sizes[0], -1.0 / sizes[group]
        equal.append((row, 0.0))
    can_be_equal = program(people, kinds, np.zeros((2, n_groups)), equal) is not None
    assert can_be_equal == (least < 1e-7)


def test_bounds_hold_every_assignment_of_groups():
    generator = np.random.default_rng(0)
    people, _ = drawn(4, 2)
    people = replace(people, weights=np.ones(len(people.values)))
    low, high = bounded_difference(people, (0, 1))
    sizes = np.round([people.probabilities[people.cells == cell, 0].sum() for cell in range(3)])
    for _ in range(200):
        first = np.zeros(len(people.values), dtype=bool)
        for cell, size in enumerate(sizes.astype(int)):
            rows = np.flatnonzero(people.cells == cell)
            order = rows[np.argsort(people.values[rows] + generator.normal(0.0, 0.5, len(rows)))]
            first[order[:size] if generator.random() < 0.5 else order[::-1][:size]] = True
        gap = people.values[first].mean() - people.values[~first].mean()
        assert low.value - 0.02 <= gap <= high.value + 0.02  # groups of whole people


def test_every_person_a_cell_would_collapse_onto_the_estimate():
    people, _ = drawn(0, 2)
    alone = replace(people)
    alone.__dict__["cells"] = np.arange(len(people.values))
    value = assumed_difference(people, (0, 1)).value
    wrong = [own.value for own in bounded_difference(alone, (0, 1))]
    right = [own.value for own in bounded_difference(people, (0, 1))]
    assert wrong == pytest.approx([value, value])
    assert right[0] < value - 0.05 < value + 0.05 < right[1]


@pytest.mark.parametrize("n_groups", [2, 3, 5])
def test_cells_hold_enough_people_and_keep_equal_ones_together(n_groups):
    generator = np.random.default_rng(n_groups)
    probabilities = generator.dirichlet(np.ones(n_groups), 700)
    probabilities[:300] = probabilities[generator.integers(300, 310, 300)]
    cells = proxy_cells(probabilities)
    assert np.bincount(cells).min() >= 50
    assert len(np.unique(cells)) >= 5
    rows = np.unique(np.column_stack([probabilities, cells]), axis=0)
    assert len(rows) == len(np.unique(probabilities, axis=0))
    assert proxy_cells(probabilities[:80]).max() == 0


def simulated(generator, n_rows, areas, *, dependent):
    """Return calibrated probabilities, and decisions that depend on the group or only on them."""
    probabilities = areas[generator.integers(len(areas), size=n_rows)]
    groups = (generator.random(n_rows)[:, None] > probabilities.cumsum(axis=1)).sum(axis=1)
    level = 0.3 + 0.3 * probabilities[:, 0] - 0.25 * dependent * (groups == 0)
    values = (generator.random(n_rows) < level).astype(float)
    people = EstimatedPeople(values, probabilities, np.ones(n_rows), np.arange(n_rows))
    truth = 0.3 + 0.3 * areas[:, 0]
    return people, groups, truth


@pytest.mark.parametrize("n_groups", [2, 4])
def test_coverage(n_groups):
    """The study with more draws is benchmarks/estimated.py."""
    generator = np.random.default_rng(n_groups)
    areas = generator.dirichlet(np.ones(n_groups), size=20)
    held = np.zeros(3)
    n_draws = 60
    sizes = areas.mean(axis=0)
    for _ in range(n_draws):
        people, _, level = simulated(generator, 1500, areas, dependent=False)
        rates = (level @ areas) / 20 / sizes
        low, high = assumed_difference(people, (0, 1)).limits(0.95)
        held[0] += low <= rates[0] - rates[1] <= high
        people, groups, level = simulated(generator, 1500, areas, dependent=True)
        gap = rates[0] - 0.25 - rates[1]
        folds = generator.integers(2, size=1500)
        lows, highs = bounded_difference(people, (0, 1), folds)
        held[1] += lows.limits(0.95)[0] <= gap <= highs.limits(0.95)[1]
        known = np.where(generator.random(1500) < 0.2, groups, -1)
        low, high = calibrated_difference(people, (0, 1), known).limits(0.95, 299)
        held[2] += low <= gap <= high
    assert held.min() >= 0.85 * n_draws  # 51 or fewer of 60 happen by chance in 1 of 300


def test_known_groups_of_everybody_give_their_rates():
    people, _ = drawn(0, 2)
    known = np.random.default_rng(0).integers(2, size=len(people.values))
    found = calibrated_difference(people, (0, 1), known)
    rates = [np.average(people.values[known == g], weights=people.weights[known == g])
             for g in (0, 1)]  # fmt: skip
    assert found.value == pytest.approx(rates[0] - rates[1])


def test_a_person_counts_once():
    people, _ = drawn(0, 2)
    twice = EstimatedPeople(
        *(np.concatenate([own, own]) for own in (people.values, people.probabilities)),
        np.concatenate([people.weights, people.weights]),
        np.concatenate([people.persons, people.persons]),
    )
    one, two = (assumed_difference(own, (0, 1)) for own in (people, twice))
    assert two.value == pytest.approx(one.value)
    assert two.error == pytest.approx(one.error)


def test_measures_take_probabilities():
    generator = np.random.default_rng(0)
    share, scores = generator.uniform(size=50), generator.uniform(size=50).round(2)
    labels, weights = generator.integers(2, size=50), generator.integers(1, 4, 50)
    groups = group_probabilities(np.column_stack([share, 1 - share]), labels=["a", "b"])
    found = gap_table(labels, scores, sensitive_features=groups, sample_weight=weights)
    rates = [np.average(scores >= 0.5, weights=weights * own) for own in groups.values.T]
    assert found["demographic_parity_gap"] == pytest.approx(abs(rates[0] - rates[1]))
    shown = selection_rates(None, scores, sensitive_features=groups, sample_weight=weights)
    assert [shown[name].rate for name in "ab"] == pytest.approx(rates)
    # As many copies of each person as her weights say, in both groups.
    both = np.concatenate([scores, scores])
    names = np.repeat(["a", "b"], 50)
    copies = np.concatenate([weights * share, weights * (1 - share)])
    same = gap_table(np.tile(labels, 2), both, sensitive_features=names, sample_weight=copies)
    assert found == pytest.approx(same)
    (pair,) = gaps_by_pair(None, scores, sensitive_features=groups, sample_weight=weights)
    assert pair.value == pytest.approx(abs(rates[0] - rates[1]))


def test_probabilities_of_zero_and_one_are_groups_to_the_bit():
    generator = np.random.default_rng(1)
    codes, scores = generator.integers(3, size=90), generator.uniform(size=90)
    labels = generator.integers(2, size=90)
    certain = group_probabilities(np.eye(3)[codes], labels=["c", "a", "b"])
    names = np.array(["c", "a", "b"])[codes]
    assert gap_table(labels, scores, sensitive_features=certain) == gap_table(
        labels, scores, sensitive_features=names
    )
    assert set(MEASURES) > set(gap_table(labels, scores, sensitive_features=certain))
