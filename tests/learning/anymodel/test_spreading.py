"""Match smoothing where a sample of the rows is matched."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LinearRegression, LogisticRegression
from synthetic import people

from fairmatch import MatchSmoothingClassifier, MatchSmoothingRegressor
from fairmatch.measures import demographic_parity_gap


@pytest.mark.parametrize("criterion", ["demographic_parity", "equal_opportunity"])
def test_a_sample_does_what_everybody_does(criterion):
    X, y, group = people(1500, 4)
    given = {"cv": 3, "fairness_weight": 10.0, "criterion": criterion, "random_state": 0}
    fit = {"X": X, "y": y, "sensitive_features": group}
    plain = MatchSmoothingClassifier(LogisticRegression(), **{**given, "fairness_weight": 0.0}).fit(
        **fit
    )
    whole = MatchSmoothingClassifier(LogisticRegression(), match_rows=None, **given).fit(**fit)
    sample = MatchSmoothingClassifier(LogisticRegression(), match_rows=500, **given).fit(**fit)
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


def test_the_sample_carries_the_weight_of_all():
    X, _, group = people(900, 5)
    y = X[:, 0] + 0.1 * X[:, 1]
    model = MatchSmoothingRegressor(
        LinearRegression(), match_rows=300, cv=3, fairness_weight=5.0, random_state=0
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
    model = MatchSmoothingClassifier(LogisticRegression(), cv=3, match_rows=200)
    same = MatchSmoothingClassifier(LogisticRegression(), cv=3, match_rows=None)
    first, second = (m.fit(X, y, sensitive_features=group).targets_ for m in (model, same))
    assert_array_equal(first, second)
