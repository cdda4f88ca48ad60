"""Thresholds against every possible choice, and against fairlearn where it does not randomise."""

import itertools
import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairmatch import fit_adjustment
from fairmatch.exceptions import ConstantModelWarning, GroupError, LabelError
from fairmatch.learning.adjust import GroupThresholds, ScoreAdjustment, range_maximum

RATES = {
    "demographic_parity": [lambda y: np.ones(len(y), bool)],
    "equal_opportunity": [lambda y: y == 1],
    "equalized_odds": [lambda y: y == 1, lambda y: y == 0],
}


def fit_thresholds(labels, scores, groups, max_gap=0.0, **more):
    """The best thresholds within a bound, with their facts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantModelWarning)
        return fit_adjustment(
            scores, groups, y_true=labels, max_gap=max_gap, decisions="threshold", **more
        )


def decide(found, scores, groups):
    return found.apply(scores, groups) >= 0.5


@st.composite
def labelled(draw, n_groups=None):
    """Scores, labels and groups of a few people, both labels in every group."""
    n_groups = draw(st.integers(2, 3)) if n_groups is None else n_groups
    sizes = [draw(st.integers(2, 5)) for _ in range(n_groups)]
    groups = np.repeat(np.arange(n_groups), sizes)
    labels = np.array([draw(st.integers(0, 1)) for _ in groups])
    starts = np.cumsum([0, *sizes[:-1]])
    labels[starts], labels[starts + 1] = 0, 1
    tied = draw(st.booleans())
    value = st.sampled_from([0.1, 0.4, 0.6, 0.8]) if tied else st.integers(0, 1000)
    scores = np.array([draw(value) for _ in groups], dtype=float)
    scores = scores if tied else scores / 1000.0
    return scores, labels, groups


def measured(decided, labels, groups, criterion):
    right = float(np.mean(decided == labels))
    gaps = []
    for rows in RATES[criterion]:
        inside = rows(labels)
        rates = [decided[inside & (groups == code)].mean() for code in np.unique(groups)]
        gaps.append(np.ptp(rates))
    return right, max(gaps)


def by_force(scores, labels, groups, criterion, bound):
    """Accuracy of the best thresholds of all, and of the best that decide."""
    cuts = [[np.inf, *np.unique(scores[groups == code])] for code in np.unique(groups)]
    best = deciding = -1.0
    for chosen in itertools.product(*cuts):
        decided = scores >= np.array(chosen)[groups]
        right, gap = measured(decided, labels, groups, criterion)
        if gap <= bound + 1e-9:
            best = max(best, right)
            if 0 < decided.mean() < 1:
                deciding = max(deciding, right)
    return best, deciding


@settings(max_examples=60)
@given(labelled(), st.sampled_from([0.0, 0.2, 0.34, 1.0]), st.sampled_from(list(RATES)))
def test_no_thresholds_within_the_bound_are_more_accurate(table, bound, criterion):
    scores, labels, groups = table
    adjustment = fit_thresholds(labels, scores, groups, bound, criterion=criterion)
    found, decided = adjustment.parts, decide(adjustment, scores, groups)
    assert np.array_equal(decided, scores >= found.thresholds[groups])
    right, gap = measured(decided, labels, groups, criterion)
    assert right == pytest.approx(found.accuracy)
    assert gap == pytest.approx(found.gap)
    assert gap <= bound + 1e-9
    assert found.decides == (0 < decided.mean() < 1)
    best, deciding = by_force(scores, labels, groups, criterion, bound)
    if criterion != "equalized_odds" or groups.max() == 1:
        # With a bound of 1 nothing is compared, and the ends of different groups may be mixed.
        assert right == pytest.approx(deciding if found.decides else best)
        assert found.decides or deciding < 0.0 or bound == 1.0
    else:
        nearly, nearly_deciding = by_force(scores, labels, groups, criterion, bound * 7 / 8)
        assert right >= (nearly_deciding if found.decides else nearly) - 1e-12


@given(labelled())
def test_weights_are_copies(table):
    scores, labels, groups = table
    counts = 1 + np.arange(len(scores)) % 3
    given_weights = fit_thresholds(labels, scores, groups, 0.2, sample_weight=counts)
    copies = fit_thresholds(*(np.repeat(own, counts) for own in (labels, scores, groups)), 0.2)
    assert given_weights.parts.accuracy == pytest.approx(copies.parts.accuracy)


@pytest.mark.parametrize("criterion", ["demographic_parity", "equal_opportunity"])
def test_fairlearn_finds_nothing_better_where_it_does_not_randomise(criterion):
    from fairlearn.postprocessing import ThresholdOptimizer
    from sklearn.base import BaseEstimator

    class Given(BaseEstimator):
        def fit(self, X, y):
            self.fitted_ = True
            return self

        def predict(self, X):
            return np.asarray(X)[:, 0]

    # Twenty levels of equally many people in both groups, each with as many positives as its
    # level says and the groups differ: every threshold is a corner of the ROC curve.
    level = np.tile(np.repeat(np.arange(20), 100), 2)
    groups = np.repeat([0, 1], 2000)
    place = np.tile(np.arange(100), 40)
    labels = (place < np.where(groups == 0, 4 * level + 2, 5 * level + 1)).astype(int)
    scores = (level + 0.5) / 20
    constraint = {
        "demographic_parity": "demographic_parity",
        "equal_opportunity": "true_positive_rate_parity",
    }[criterion]
    theirs = ThresholdOptimizer(
        estimator=Given(), constraints=constraint, predict_method="predict", grid_size=20
    ).fit(scores[:, None], labels, sensitive_features=groups)
    chance = theirs._pmf_predict(scores[:, None], sensitive_features=groups)[:, 1]
    expected = float(np.mean(chance * labels + (1 - chance) * (1 - labels)))
    randomised = ((chance > 1e-9) & (chance < 1 - 1e-9)).mean()
    bound = 0.0 if criterion == "demographic_parity" else 0.05
    ours = fit_thresholds(labels, scores, groups, bound, criterion=criterion)
    if criterion == "demographic_parity":
        assert randomised == 0.0
        assert ours.parts.accuracy == pytest.approx(expected)
        assert np.array_equal(decide(ours, scores, groups), chance > 0.5)
    else:  # a level of one group is randomised, so that both rates are the same
        assert 0.0 < randomised <= 0.1
        assert ours.parts.accuracy >= expected - 0.5 * bound


def test_large_tables_are_fast_and_keep_the_bound_of_all_pairs():
    generator = np.random.default_rng(1)
    groups = generator.integers(0, 5, 20_000)
    scores = generator.beta(2 + groups, 4)
    labels = generator.random(20_000) < scores
    for criterion in RATES:
        found = fit_thresholds(labels, scores, groups, 0.05, criterion=criterion, pos_label=True)
        assert found.parts.decides
        right, gap = measured(decide(found, scores, groups), labels, groups, criterion)
        assert gap <= 0.05 + 1e-9
        assert right > 0.62


def test_a_choice_that_decides_is_preferred():
    # Accepting nobody is most accurate and has no gap, and one threshold each has none either.
    scores = np.array([0.1, 0.2, 0.3, 0.1, 0.2, 0.3])
    found = fit_thresholds([0, 0, 0, 1, 0, 0], scores, [0, 0, 0, 1, 1, 1])
    assert found.parts.decides
    constant = fit_thresholds([0, 0, 0, 1], [0.5] * 4, [0, 0, 1, 1])
    assert not constant.parts.decides
    assert constant.parts.thresholds.tolist() == [np.inf, np.inf]


def test_moved_scores_say_what_the_thresholds_decide(tmp_path):
    generator = np.random.default_rng(2)
    groups = generator.integers(0, 2, 500)
    scores = generator.random(500)
    for values in ([0.3, 0.8], [np.inf, -np.inf], [0.0, 1.0]):
        thresholds = np.array(values)
        found = ScoreAdjustment(
            GroupThresholds((0, 1), thresholds, "demographic_parity", 1, 0, True)
        )
        moved = found.apply(scores, groups)
        assert np.array_equal(moved >= 0.5, scores >= thresholds[groups])
        for code in (0, 1):
            order = np.argsort(scores[groups == code])
            assert (np.diff(moved[groups == code][order]) >= 0.0).all()
        file = found.save(tmp_path / "thresholds.json")
        json.loads(file.read_text(), parse_constant=pytest.fail)  # JSON has no infinity
        assert np.array_equal(ScoreAdjustment.load(file).apply(scores, groups), moved)


def test_bad_input_is_named():
    with pytest.raises(LabelError, match="Group 'a' has no rows with a positive label"):
        fit_thresholds(
            [0, 0, 1, 0], [0.1, 0.2, 0.3, 0.4], list("aabb"), criterion="equal_opportunity"
        )
    with pytest.raises(GroupError, match="weights of group 'a' sum to zero"):
        fit_thresholds([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], list("aabb"), sample_weight=[0, 0, 1, 1])


@given(st.lists(st.floats(-9, 9), min_size=1, max_size=20), st.data())
def test_range_maximum(values, data):
    array = np.array(values)
    start = np.array(data.draw(st.lists(st.integers(0, len(values)), min_size=1, max_size=9)))
    end = np.array([data.draw(st.integers(0, len(values))) for _ in start])
    wanted = [max(array[a:b], default=-np.inf) for a, b in zip(start, end, strict=True)]
    assert range_maximum(array, start, end).tolist() == wanted
