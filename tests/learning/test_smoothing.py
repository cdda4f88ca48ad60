"""Smoothing against dense systems, closed forms and what must hold for every coupling."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LinearRegression, LogisticRegression
from synthetic import people

from fairmatch import (
    Coupling,
    MatchSmoothingClassifier,
    MatchSmoothingRegressor,
    OptimalTransportMatcher,
)
from fairmatch.exceptions import InputError
from fairmatch.learning.smoothing import smooth_scores
from fairmatch.measures import demographic_parity_gap


def dense(scores, coupling, weight, sample_weight=None):
    """The same targets by a dense solve."""
    n = len(scores)
    w = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    w = w / w.sum()
    mass = np.zeros((n, n))
    np.add.at(mass, (coupling.source_index, coupling.target_index), coupling.mass)
    mass = mass + mass.T
    return np.linalg.solve(np.diag(w) + weight * (np.diag(mass.sum(axis=1)) - mass), w * scores)


@settings(max_examples=25)
@given(st.integers(0, 50), st.sampled_from([0.01, 1.0, 30.0]), st.booleans(), st.integers(2, 4))
def test_a_dense_solve_gives_the_same_targets(seed, weight, weighted, n_groups):
    generator = np.random.default_rng(seed)
    groups = np.concatenate([np.arange(n_groups), generator.integers(0, n_groups, 20)])
    X, scores = generator.random((len(groups), 2)), generator.random(len(groups))
    weights = generator.uniform(0.5, 2.0, len(groups)) if weighted else None
    coupling = OptimalTransportMatcher().match(X, groups, sample_weight=weights)
    (found,) = smooth_scores(scores, coupling, [weight], weights)
    wanted = dense(scores, coupling, weight, weights)
    assert np.allclose(found, wanted, atol=1e-8)
    # Each target is a mean of scores: they stay in the range, and so does their weighted mean.
    assert found.min() >= scores.min()
    assert found.max() <= scores.max()
    assert np.average(found, weights=weights) == pytest.approx(np.average(scores, weights=weights))


def test_a_path_is_what_each_weight_gives_alone_and_gaps_fall_along_it():
    generator = np.random.default_rng(0)
    groups, X = generator.integers(0, 2, 200), generator.random((200, 3))
    scores = generator.random(200)
    coupling = OptimalTransportMatcher().match(X, groups)
    path = smooth_scores(scores, coupling, [0.0, 0.5, 5.0, 500.0])
    assert np.array_equal(path[0], scores)
    assert np.array_equal(path[2], smooth_scores(scores, coupling, [5.0])[0])
    gaps = [coupling.expect(coupling.gaps(targets) ** 2) for targets in path]
    assert (np.diff(gaps) < 0.0).all()
    assert gaps[-1] < 1e-3 * gaps[0]


def test_one_pair_has_a_closed_form_and_unmatched_rows_keep_their_score():
    coupling = Coupling([0], [1], [1.0], n_rows=3, groups=("a", "b"))
    (found,) = smooth_scores(np.array([0.0, 1.0, 0.7]), coupling, [2.0])
    # t0 + t1 = 1, and w (t0 - 0) = 2 (t1 - t0) with w = 1/3.
    first = 2.0 / (1.0 / 3.0 + 4.0)
    assert np.allclose(found, [first, 1.0 - first, 0.7])
    # Scores of any unit, far from zero.
    (moved,) = smooth_scores(np.array([1e6, 1e6 + 1.0, 1e6 + 0.7]), coupling, [2.0])
    assert np.allclose(moved - 1e6, found, atol=1e-8)


def test_rows_of_no_weight_keep_their_score_unless_they_are_matched():
    coupling = Coupling([0], [1], [1.0], n_rows=3, groups=("a", "b"))
    scores = np.array([0.0, 1.0, 0.7])
    (found,) = smooth_scores(scores, coupling, [1.0], np.array([1.0, 1.0, 0.0]))
    assert found[2] == 0.7
    with pytest.raises(InputError, match="1 matched rows have a sample_weight of zero"):
        smooth_scores(scores, coupling, [1.0], np.array([1.0, 0.0, 1.0]))


def test_equal_scores_stay():
    coupling = Coupling([0], [1], [1.0], n_rows=2, groups=("a", "b"))
    assert smooth_scores(np.array([0.4, 0.4]), coupling, [1.0]).tolist() == [[0.4, 0.4]]


# Where a sample of the rows is matched.


@pytest.mark.parametrize("criterion", ["demographic_parity", "equal_opportunity"])
def test_a_sample_does_what_everybody_does(criterion):
    X, y, group = people(1500, 4)
    given = {"cv": 3, "fairness_weight": 10.0, "criterion": criterion, "random_state": 0}
    fit = {"X": X, "y": y, "sensitive_features": group}
    plain = MatchSmoothingClassifier(LogisticRegression(), **{**given, "fairness_weight": 0.0}).fit(
        **fit
    )
    whole = MatchSmoothingClassifier(LogisticRegression(), match_rows=None, **given).fit(**fit)
    sample = MatchSmoothingClassifier(LogisticRegression(), match_rows=250, **given).fit(**fit)
    base, all_rows, some = (
        model.predict_proba(X, sensitive_features=group)[:, 1] for model in (plain, whole, sample)
    )
    # What the sample changes is what everybody changes, up to the noise of a third of the rows.
    assert np.corrcoef(all_rows - base, some - base)[0, 1] > 0.95
    gaps = [
        demographic_parity_gap(None, s, sensitive_features=group) for s in (base, all_rows, some)
    ]
    assert abs(gaps[2] - gaps[1]) < 0.2 * abs(gaps[0] - gaps[1])
    if criterion == "equal_opportunity":  # nobody else is compared: their scores stay
        refused = y == 0
        assert_array_equal(sample.targets_[refused], whole.targets_[refused])
    assert 0.0 <= sample.targets_.min() < sample.targets_.max() <= 1.0


class Counted(LogisticRegression):
    fits = 0

    def fit(self, X, y, sample_weight=None):
        Counted.fits += 1
        return super().fit(X, y, sample_weight)


def test_a_search_repeats_nothing_that_the_weights_share():
    X, y, group = people(1500, 4)
    Counted.fits = 0
    model = MatchSmoothingClassifier(Counted(), max_gap=0.15, match_rows=150, random_state=0)
    smoothed = len(model.fit(X, y, sensitive_features=group).validation_curve_) - 1
    assert smoothed > 1
    # Out-of-fold scores and the model of the sample's scores once, then two models per weight.
    assert Counted.fits == 1 + (3 + 1 + 2 * smoothed) + (3 + 1 + 2)


def test_the_sample_carries_the_weight_of_all():
    X, _, group = people(900, 5)
    y = X[:, 0] + 0.1 * X[:, 1]
    model = MatchSmoothingRegressor(
        LinearRegression(), match_rows=150, cv=3, fairness_weight=5.0, random_state=0
    ).fit(X, y, sensitive_features=group)
    whole = MatchSmoothingRegressor(
        LinearRegression(), match_rows=None, cv=3, fairness_weight=5.0, random_state=0
    ).fit(X, y, sensitive_features=group)
    # The linear learner is exact here: how far a group is moved does not depend on the sample.
    moved = [m.predict(X, sensitive_features=group) - y for m in (model, whole)]
    means = [[change[group == code].mean() for code in (0, 1)] for change in moved]
    assert_allclose(means[0], means[1], rtol=0.1)


def test_all_rows_matched_are_smoothed_as_they_are():
    X, y, group = people(200, 6)
    model = MatchSmoothingClassifier(LogisticRegression(), cv=3, match_rows=100)
    same = MatchSmoothingClassifier(LogisticRegression(), cv=3, match_rows=None)
    first, second = (m.fit(X, y, sensitive_features=group).targets_ for m in (model, same))
    assert_array_equal(first, second)


def test_vectors_of_two_classes_are_smoothed_as_scores_and_more_are_column_by_column():
    generator = np.random.default_rng(4)
    groups, X = generator.integers(0, 2, 60), generator.random((60, 2))
    coupling = OptimalTransportMatcher().match(X, groups)
    scores = generator.random(60)
    (own,) = smooth_scores(scores, coupling, [3.0])
    (both,) = smooth_scores(np.column_stack([1.0 - scores, scores]), coupling, [3.0])
    assert_allclose(both, np.column_stack([1.0 - own, own]), atol=1e-9)
    vectors = generator.dirichlet(np.ones(4), size=60)
    (found,) = smooth_scores(vectors, coupling, [3.0])
    columns = [dense(column, coupling, 3.0) for column in vectors.T]
    assert_allclose(found, np.transpose(columns), atol=1e-8)
    assert_allclose(found.sum(axis=1), 1.0)


@pytest.mark.parametrize("match_rows", [None, 100])
def test_several_classes_are_drawn_together(match_rows):
    generator = np.random.default_rng(0)
    groups, X = generator.integers(0, 2, 600), generator.normal(size=(600, 3))
    X[:, 0] += groups
    noisy = X[:, 0] + 0.5 * X[:, 1] + 0.3 * generator.normal(size=600)
    y = np.array(["low", "mid", "top"])[np.digitize(noisy, [0.0, 1.0])]
    gaps, given = [], {"sensitive_features": groups}
    for weight in (0.0, 1.0, 20.0):
        model = MatchSmoothingClassifier(
            LogisticRegression(), fairness_weight=weight, match_rows=match_rows
        ).fit(X, y, **given)
        chances = model.predict_proba(X, **given)
        assert_allclose(model.targets_.sum(axis=1), 1.0)
        gaps.append(demographic_parity_gap(None, chances, **given))
        # Every row is seen once for each class, so the mean target is the mean probability.
        assert_allclose(chances.mean(axis=0), model.targets_.mean(axis=0), atol=1e-3)
    assert gaps[0] > gaps[1] > gaps[2]
    assert_array_equal(model.predict(X, **given), model.classes_[chances.argmax(axis=1)])
