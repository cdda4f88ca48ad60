"""Exact limits of differences of rates, against SciPy and sums over all tables."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fairmatch.measures.exact import (
    _borders,
    difference_limit,
    difference_p_value,
    largest_gap_limit,
    rate_interval,
)


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_intervals_of_one_rate_are_scipys(drawn):
    hits, size = drawn
    expected = stats.binomtest(hits, size).proportion_ci(0.9, method="exact")
    assert rate_interval(hits, size, 0.9) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(
    ("hits", "sizes", "difference"),
    [((3, 5), (30, 30), 0.05), ((10, 120), (30, 300), 0.1), ((0, 0), (10, 10), 0.1),
     ((9, 1), (9, 12), 0.4), ((4, 7), (25, 60), -0.1)],
)  # fmt: skip
def test_the_p_value_bounds_the_probability_of_extreme_tables(hits, sizes, difference):
    borders = _borders(hits, sizes, difference, np.arange(sizes[0] + 1))
    counts, largest = np.arange(sizes[0] + 1), 0.0
    cut = [rate_interval(h, n, 1.0 - 1e-5) for h, n in zip(hits, sizes, strict=True)]
    for q in np.linspace(max(0.0, -difference), min(1.0, 1.0 - difference), 1001):
        if not (cut[1][0] <= q <= cut[1][1] and cut[0][0] <= q + difference <= cut[0][1]):
            continue
        mass = stats.binom.pmf(counts, sizes[0], q + difference)
        largest = max(largest, float(mass @ stats.binom.sf(borders - 1, sizes[1], q)))
    found = difference_p_value(hits, sizes, difference)
    assert largest <= found <= 1.06 * largest + 1e-3


@pytest.mark.parametrize(
    ("sizes", "rates", "confidence"),
    [((30, 60), (0.35, 0.05), 0.997), ((30, 60), (0.05, 0.35), 0.95), ((20, 20), (0.5, 0.5), 0.9),
     ((12, 40), (0.9, 0.8), 0.95), ((30, 90), (0.02, 0.01), 0.95)],
)  # fmt: skip
def test_the_error_is_at_most_nominal(sizes, rates, confidence):
    """The sum of the probabilities of all tables whose limit lies below the true difference."""
    first, second = (
        stats.binom.pmf(np.arange(n + 1), n, r) for n, r in zip(sizes, rates, strict=True)
    )
    error = 0.0
    for a, mass in enumerate(first):
        for b, other in enumerate(second):
            if mass * other > 1e-7:
                p_value = difference_p_value((a, b), sizes, rates[0] - rates[1])
                error += mass * other * (p_value <= 1.0 - confidence)
    assert error <= 1.0 - confidence


@pytest.mark.parametrize("seed", range(8))
def test_the_limit_is_where_the_test_begins_to_reject(seed):
    generator = np.random.default_rng(seed)
    sizes = tuple(int(n) for n in generator.integers(5, 400, 2))
    hits = tuple(int(generator.integers(0, n + 1)) for n in sizes)
    limit = difference_limit(hits, sizes, 0.95)
    assert hits[0] / sizes[0] - hits[1] / sizes[1] <= limit <= 1.0
    if limit < 1.0:
        assert difference_p_value(hits, sizes, limit) <= 0.05
        assert difference_p_value(hits, sizes, limit - 2e-4) > 0.05


def test_large_groups_come_near_the_normal_limit():
    error = np.sqrt(0.35 * 0.65 / 10_000 + 0.3 * 0.7 / 5_000)
    found = difference_limit((3500, 1500), (10_000, 5_000), 0.95)
    assert found == pytest.approx(0.05 + 1.645 * error, abs=5e-4)


@pytest.mark.parametrize("seed", range(4))
def test_the_limit_of_several_groups_is_that_of_their_worst_pair(seed):
    generator = np.random.default_rng(seed)
    sizes = [int(n) for n in np.exp(generator.uniform(2.0, 7.0, 5))]
    counts = [(int(generator.binomial(n, generator.uniform(0.1, 0.4))), n) for n in sizes]
    pairs = combinations(counts, 2)
    expected = max(difference_limit(hits, sizes, 0.99) for (a, n), (b, m) in pairs
                   for hits, sizes in (((a, b), (n, m)), ((b, a), (m, n))))  # fmt: skip
    assert largest_gap_limit(counts, 0.99) == pytest.approx(expected, abs=2e-4)


def test_counts_beyond_the_difference_are_no_evidence_against_it():
    # Intervals of the rates that exclude a smaller difference must not reject a larger one.
    assert difference_p_value((90, 10), (100, 100), 0.05) == 1.0
    assert largest_gap_limit([(90, 100), (10, 100)], 0.95) >= 0.8
    assert largest_gap_limit([(5, 10), (3, 10), (900, 1000), (100, 1000)], 0.95) >= 0.8
