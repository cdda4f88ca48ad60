"""LinearPost's linear program, against all deterministic rules of tiny tables."""

from itertools import product

import numpy as np
import pytest
from benchmarks.peers.linear_post import conditions, linear_post, solve
from scipy.optimize import linprog


def tiny(seed, n_groups, n_cells):
    generator = np.random.default_rng(seed)
    mass = generator.dirichlet(np.ones(n_groups * n_cells)).reshape(n_groups, n_cells)
    return mass, np.sort(generator.random((n_groups, n_cells)), axis=1)


def every_rule(mass, chances, criterion):
    """Accuracy and rates (conditions by groups) of every deterministic rule."""
    rules = np.array(list(product([0.0, 1.0], repeat=mass.size))).reshape(-1, *mass.shape)
    right = rules * chances + (1.0 - rules) * (1.0 - chances)
    accuracies = (mass * right).sum(axis=(1, 2))
    rates = [(part * rules).sum(axis=2) for part in conditions(mass, chances, criterion)]
    return accuracies, np.stack(rates, axis=1)


def spread(rates):
    return float((rates.max(axis=-1) - rates.min(axis=-1)).max())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("n_groups", "n_cells"), [(2, 5), (3, 3)])
@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
def test_the_optimum_is_that_of_the_best_mixture_of_all_rules(seed, n_groups, n_cells, criterion):
    mass, chances = tiny(seed, n_groups, n_cells)
    bound = (0.0, 0.05, 0.2)[seed % 3]
    shares, accuracy = solve(mass, chances, bound, criterion)
    accuracies, rates = every_rule(mass, chances, criterion)
    # A mixture of rules keeps the bound if the rates of every two groups are within it.
    n_conditions = rates.shape[1]
    apart = [
        rates[:, c, a] - rates[:, c, b]
        for c in range(n_conditions) for a in range(n_groups) for b in range(n_groups) if a != b
    ]  # fmt: skip
    mixture = linprog(
        -accuracies,
        np.array(apart),
        np.full(len(apart), bound),
        np.ones((1, len(accuracies))),
        [1.0],
        method="highs",
    )
    assert accuracy == pytest.approx(-mixture.fun, abs=1e-9)
    # No deterministic rule within the bound is better, and the solution is within it itself.
    within = (np.ptp(rates, axis=2) <= bound + 1e-12).all(axis=1)
    assert accuracies[within].max() <= accuracy + 1e-9
    own = [(part * shares).sum(axis=1) for part in conditions(mass, chances, criterion)]
    assert spread(np.array(own)) <= bound + 1e-9
    right = (mass * (shares * chances + (1.0 - shares) * (1.0 - chances))).sum()
    assert right == pytest.approx(accuracy, abs=1e-9)


@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
def test_the_rule_keeps_the_bound_and_is_better_than_one_threshold_by_group(criterion):
    generator = np.random.default_rng(0)
    codes = np.repeat([0, 1], [3_000, 6_000])
    scores = generator.beta(np.where(codes == 1, 2.0, 1.0), 3.0)
    rule = linear_post(scores, codes, 0.03, criterion)
    accepted = rule(scores, codes)
    assert set(np.unique(accepted)) <= {0.0, 1.0}
    parts = [scores, 1.0 - scores]
    if criterion == "demographic_parity":
        parts = [np.ones_like(scores)]
    gaps = [
        abs(np.subtract(*(np.average(accepted[codes == g], weights=p[codes == g]) for g in (0, 1))))
        for p in parts
    ]
    assert max(gaps) <= 0.03 + 0.005  # a fractional cell is rounded
    accuracy = np.mean(np.where(accepted == 1.0, scores, 1.0 - scores))
    # Brute force over two thresholds.
    best = 0.0
    grid = np.linspace(0.0, 1.0, 61)
    rates = {}
    for g, cut in product((0, 1), grid):
        own, above = scores[codes == g], scores[codes == g] >= cut
        right = np.where(above, own, 1.0 - own).sum()
        weighted = [np.average(above, weights=p[codes == g]) for p in parts]
        rates[g, cut] = right, weighted
    for a, b in product(grid, grid):
        (first, x), (second, y) = rates[0, a], rates[1, b]
        if max(abs(u - v) for u, v in zip(x, y, strict=True)) <= 0.03:
            best = max(best, (first + second) / len(scores))
    assert accuracy >= best - 1e-3
