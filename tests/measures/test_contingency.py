"""Tests on counts, against statsmodels, SciPy and enumeration."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fairmatch.measures.contingency import (
    breslow_day,
    cochran_mantel_haenszel,
    flips,
    holm,
    mantel_haenszel,
    shortfall,
    standard_deviations,
)

stratified = pytest.importorskip("statsmodels.stats.contingency_tables")
multitest = pytest.importorskip("statsmodels.stats.multitest")


def random_tables(seed, n_strata=5, most=40):
    return np.random.default_rng(seed).integers(1, most, size=(n_strata, 2, 2))


@pytest.mark.parametrize("seed", range(20))
def test_strata_agree_with_statsmodels(seed):
    tables = random_tables(seed, n_strata=2 + seed % 6)
    oracle = stratified.StratifiedTable([table.astype(float) for table in tables])
    found = mantel_haenszel(tables)
    assert found.value == pytest.approx(oracle.oddsratio_pooled)
    assert (found.low, found.high) == pytest.approx(oracle.oddsratio_pooled_confint())
    test, expected = cochran_mantel_haenszel(tables), oracle.test_null_odds(correction=False)
    assert (test.statistic, test.p_value) == pytest.approx((expected.statistic, expected.pvalue))
    test, expected = breslow_day(tables), oracle.test_equal_odds(adjust=True)
    assert (test.statistic, test.p_value) == pytest.approx(
        (expected.statistic, expected.pvalue), rel=1e-6, abs=1e-9
    )


def test_one_stratum_is_the_plain_odds_ratio():
    assert mantel_haenszel([[20, 80], [50, 75]]).value == pytest.approx(20 * 75 / (80 * 50))
    assert breslow_day([[20, 80], [50, 75]]).degrees == 0


def test_strata_without_evidence_change_nothing():
    tables = random_tables(3)
    empty = np.concatenate([tables, np.zeros((1, 2, 2)), [[[0, 7], [0, 9]]]])
    for test in (mantel_haenszel, cochran_mantel_haenszel, breslow_day):
        assert test(empty) == test(tables)
    assert np.isnan(cochran_mantel_haenszel(np.zeros((2, 2, 2))).statistic)
    assert cochran_mantel_haenszel(np.zeros((2, 2, 2))).p_value == 1.0


def common_ratio(generator, sizes, log_ratio):
    """Draw strata of two groups with different rates and the same odds ratio."""
    base = generator.normal(-0.8, 0.5, len(sizes))[:, None]
    hits = generator.binomial(sizes, 1 / (1 + np.exp(-base - [log_ratio, 0.0])))
    return np.stack([hits, sizes - hits], axis=2)


def test_homogeneity_is_tested_on_large_strata_only():
    generator = np.random.default_rng(0)
    pairs = np.ones((500, 2), dtype=int)
    tables = common_ratio(generator, pairs, 0.0)
    assert breslow_day(tables).p_value < 1e-10  # which is what strata of two people give
    assert breslow_day(tables, 5.0).degrees == 0
    assert breslow_day(tables, 5.0).p_value == 1.0
    rejected = np.zeros(2, dtype=int)
    for _ in range(400):
        tables = common_ratio(generator, generator.geometric(0.05, (300, 2)), 0.7)
        rejected += [breslow_day(tables, least).p_value < 0.05 for least in (0.0, 5.0)]
    assert stats.binomtest(int(rejected[1]), 400, 0.05).pvalue > 0.01
    assert rejected[0] > 2 * rejected[1]


def test_null_rates_of_the_stratified_tests():
    generator = np.random.default_rng(0)
    rates, sizes = np.array([0.1, 0.3, 0.6]), np.array([[40, 90], [120, 60], [80, 80]])
    rejected = np.zeros(2)
    for _ in range(2000):
        hits = generator.binomial(sizes, rates[:, None])
        tables = np.stack([hits, sizes - hits], axis=2)
        rejected += [test(tables).p_value < 0.05 for test in (cochran_mantel_haenszel, breslow_day)]
    for count in rejected.astype(int).tolist():
        assert stats.binomtest(count, 2000, 0.05).pvalue > 0.001


counts = st.tuples(st.integers(1, 60), st.integers(1, 60)).flatmap(
    lambda sizes: st.tuples(
        st.tuples(st.integers(0, sizes[0]), st.integers(0, sizes[1])), st.just(sizes)
    )
)


@given(counts)
def test_standard_deviations_are_the_root_of_pearsons_statistic(drawn):
    hits, sizes = drawn
    z = standard_deviations(hits, sizes)
    table = [[h, n - h] for h, n in zip(hits, sizes, strict=True)]
    if 0 < sum(hits) < sum(sizes):
        expected = stats.chi2_contingency(table, correction=False)
        assert z**2 == pytest.approx(expected.statistic, abs=1e-9)
        assert np.sign(round(z, 9)) == -np.sign(round(shortfall(hits, sizes), 9))
    else:
        assert z == 0.0


@given(counts)
def test_flips_tries_both_neighbours(drawn):
    (own, other), (n, m) = drawn
    if other == 0:
        assert not flips((own, other), (n, m))
        return

    def below(hits):
        return Fraction(hits, n) / Fraction(other, m) < Fraction(4, 5)

    expected = any(below(k) != below(own) for k in (own - 1, own + 1) if 0 <= k <= n)
    tried = [Fraction(k * m, n * other) for k in (own - 1, own, own + 1)]
    if Fraction(4, 5) not in tried:  # no binary fraction, so rounding decides there
        assert flips((own, other), (n, m)) == expected


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_agrees_with_statsmodels(values):
    assert holm(values) == pytest.approx(multitest.multipletests(values, method="holm")[1])
