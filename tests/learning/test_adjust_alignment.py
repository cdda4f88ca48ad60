"""Alignment against closed forms, SciPy and what must hold for every table."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp, norm, wasserstein_distance

from fairmatch import align_scores
from fairmatch.exceptions import InputError, LabelError
from fairmatch.learning.adjust import RESOLUTION, adjust_people
from fairmatch.people.groups import read_groups
from fairmatch.people.people import People
from fairmatch.people.weights import read_row_weights


def fit_alignment(scores, groups, *, sample_weight=None):
    """The full alignment of scores; groups may have one person."""
    weight = read_row_weights(sample_weight, "survey", len(scores))
    (found,) = adjust_people(People(read_groups(groups), weight=weight), np.asarray(scores))
    return found


@st.composite
def scored(draw, most_groups=4):
    """Scores, groups and weights of a few people."""
    n_groups = draw(st.integers(2, most_groups))
    sizes = [draw(st.integers(1, 12)) for _ in range(n_groups)]
    groups = np.repeat(np.arange(n_groups), sizes)
    value = st.sampled_from([0.0, 0.25, 0.5, 1.0]) if draw(st.booleans()) else st.floats(0, 1)
    scores = np.array([draw(value) for _ in groups])
    weights = None
    if draw(st.booleans()):
        weights = np.array([draw(st.sampled_from([1.0, 0.5, 3.0])) for _ in groups])
    return scores, groups, weights


def test_groups_of_one_size_get_the_mean_of_their_quantiles():
    generator = np.random.default_rng(0)
    scores, groups = generator.random(300), np.repeat([0, 1, 2], 100)
    ranked = np.sort(scores.reshape(3, 100), axis=1).mean(axis=0)
    aligned = align_scores(scores, groups)
    for code in range(3):
        assert np.allclose(np.sort(aligned[groups == code]), ranked, atol=1e-15)


def test_normal_scores_get_the_closed_form_of_the_barycentre():
    # The barycentre of normal distributions is normal, with the mean of means and deviations.
    ranks = (np.arange(1000) + 0.5) / 1000
    scores = np.concatenate([norm.ppf(ranks, 1.0, 2.0), norm.ppf(ranks, 5.0, 1.0)])
    groups = np.repeat(["a", "b"], 1000)
    weights = np.repeat([1.0, 3.0], 1000)
    aligned = align_scores(scores, groups, sample_weight=weights, scale="real")
    wanted = norm.ppf(ranks, 0.25 * 1.0 + 0.75 * 5.0, 0.25 * 2.0 + 0.75 * 1.0)
    assert np.allclose(aligned, np.tile(wanted, 2))


@given(scored())
def test_order_range_and_ends_hold_for_every_table(table):
    scores, groups, weights = table
    alignment = fit_alignment(scores, groups, sample_weight=weights)
    assert np.array_equal(replace(alignment, strength=0.0).apply(scores, groups), scores)
    for strength in (0.3, 1.0):
        moved = replace(alignment, strength=strength).apply(scores, groups)
        assert moved.min() >= 0.0
        assert moved.max() <= 1.0
        for code in np.unique(groups):
            order = np.argsort(scores[groups == code], kind="stable")
            assert (np.diff(moved[groups == code][order]) >= 0.0).all()


@given(scored(), st.floats(0, 1))
def test_strength_moves_along_the_line_between_score_and_barycentre(table, strength):
    scores, groups, weights = table
    alignment = fit_alignment(scores, groups, sample_weight=weights)
    fully = alignment.apply(scores, groups)
    moved = replace(alignment, strength=strength).apply(scores, groups)
    assert np.allclose(moved, (1.0 - strength) * scores + strength * fully, atol=1e-15)


@given(scored())
def test_the_remaining_gap_is_the_largest_kolmogorov_smirnov_distance(table):
    scores, groups, _ = table
    alignment = fit_alignment(scores, groups)
    aligned = alignment.apply(scores, groups)  # to the last digit: a threshold sees all of them
    sides = [aligned[groups == code] for code in np.unique(groups)]
    largest = max(np.ptp([np.mean(side >= t) for side in sides]) for t in aligned)
    assert alignment.parts.remaining_gap == pytest.approx(largest, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_people_at_the_same_quantile_get_the_same_score_to_the_last_digit(seed):
    generator = np.random.default_rng(seed)
    n_values = int(generator.integers(2, 40))
    sizes = generator.integers(1, 20, 3)
    scores = np.concatenate([np.repeat(generator.random(n_values), size) for size in sizes])
    groups = np.repeat(["a", "b", "c"], n_values * sizes)
    alignment = fit_alignment(scores, groups)
    assert alignment.parts.remaining_gap == pytest.approx(0.0, abs=1e-12)
    assert len(np.unique(alignment.apply(scores, groups))) == n_values


@given(scored())
def test_a_weight_is_a_number_of_copies(table):
    scores, groups, _ = table
    counts = 1 + np.arange(len(scores)) % 3
    weighted = fit_alignment(scores, groups, sample_weight=counts)
    copied = fit_alignment(np.repeat(scores, counts), np.repeat(groups, counts))
    assert np.allclose(weighted.apply(scores, groups), copied.apply(scores, groups), atol=1e-12)


def test_new_rows_are_aligned_as_well_as_fitted_ones():
    generator = np.random.default_rng(1)
    groups = generator.integers(0, 2, 20_000)
    scores = generator.beta(2 + groups, 3)
    fitted, new = np.split(np.arange(20_000), 2)
    alignment = fit_alignment(scores[fitted], groups[fitted])
    moved = alignment.apply(scores[new], groups[new])
    sides = moved[groups[new] == 0], moved[groups[new] == 1]
    before = scores[new][groups[new] == 0], scores[new][groups[new] == 1]
    assert wasserstein_distance(*sides) < 0.2 * wasserstein_distance(*before)
    # People outside the range that was fitted keep their order.
    ends = alignment.apply([0.0, 1e-9, 1 - 1e-9, 1.0], [0, 0, 0, 0])
    assert (np.diff(ends) >= 0.0).all()


def test_many_scores_are_kept_at_few_knots_and_a_shared_score_keeps_its_place():
    generator = np.random.default_rng(2)
    n = 4 * RESOLUTION
    scores = generator.random(2 * n)
    scores[: n // 2] = 0.5
    groups = np.repeat([0, 1], n)
    alignment = fit_alignment(scores, groups)
    assert all(len(curve.knots) < RESOLUTION + 10 for curve in alignment.parts.curves)
    # The half of the first group that shares a score stands in the middle of its ranks.
    assert alignment.apply([0.5], [0])[0] == pytest.approx(0.5, abs=0.02)
    just_below = np.nextafter(scores[(groups == 0) & (scores < 0.5)].max(), 1.0)
    assert alignment.apply([just_below], [0])[0] == pytest.approx((0.25 + 0.5) / 2, abs=0.02)
    assert alignment.parts.remaining_gap == pytest.approx(0.25, abs=0.01)
    assert alignment.parts.tied.tolist() == [0.5, 0.0]


def test_equal_opportunity_aligns_the_scores_of_the_positive_class():
    generator = np.random.default_rng(3)
    labels, groups = generator.integers(0, 2, 4000), generator.integers(0, 3, 4000)
    scores = generator.beta(1 + groups + labels, 3)
    moved = align_scores(scores, groups, y_true=labels, criterion="equal_opportunity")
    sides = [moved[(groups == code) & (labels == 1)] for code in range(3)]
    assert max(ks_2samp(a, b).statistic for a in sides for b in sides) < 0.005
    with pytest.raises(LabelError, match="needs the true labels"):
        align_scores(scores, groups, criterion="equal_opportunity")
    with pytest.raises(LabelError, match="Group 1 has no rows with a positive label"):
        align_scores(scores, groups, y_true=labels * (groups != 1), criterion="equal_opportunity")


def test_equalised_odds_cannot_be_aligned():
    with pytest.raises(InputError, match=r"one class only.*decisions='threshold'"):
        align_scores([0.1, 0.2], [0, 1], y_true=[0, 1], criterion="equalized_odds")


def test_scores_outside_the_unit_interval_are_an_error_or_a_rank_or_a_number():
    scores, groups = [-3.0, 2.0, 0.5, 7.0], ["a", "a", "b", "b"]
    with pytest.raises(InputError, match="scale='rank'"):
        align_scores(scores, groups)
    assert align_scores(scores, groups, scale="rank").tolist() == [0.25, 0.75, 0.25, 0.75]
    assert align_scores(scores, groups, scale="rank", strength=0.0).tolist() == [
        0.125,
        0.625,
        0.375,
        0.875,
    ]
    assert align_scores(scores, groups, scale="real").tolist() == [-1.25, 4.5, -1.25, 4.5]
    with pytest.raises(InputError, match="scale must be one of"):
        align_scores(scores, groups, scale="logit")
    with pytest.raises(InputError, match="1 entries that are NaN"):
        align_scores([0.1, np.nan], [0, 1], scale="real")
    with pytest.raises(InputError, match="strength"):
        align_scores(scores, groups, scale="real", strength=1.5)
