"""Wrappers around other people's regressors."""

import lightgbm
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from synthetic import people

from fairmatch import (
    MatchSmoothingRegressor,
    OptimalTransportMatcher,
    QuantileAlignmentRegressor,
    align_scores,
    fairness_path,
    load,
)
from fairmatch.exceptions import InputError
from fairmatch.people.encoding import TableEncoder

FOLDS = list(KFold(3, shuffle=True, random_state=0).split(np.zeros(300)))


@pytest.fixture(scope="module")
def rows():
    X, _, group = people(300)
    wage = 2000 + 300 * X[:, 0] + 100 * X[:, 2] + np.random.default_rng(0).normal(0, 100, 300)
    return X, wage, group


def unseen(seen, y):
    found = np.empty(len(y))
    for train, test in FOLDS:
        found[test] = LinearRegression().fit(seen[train], y[train]).predict(seen[test])
    return found


def test_predictions_are_aligned_in_their_own_unit(rows):
    X, y, group = rows
    model = QuantileAlignmentRegressor(LinearRegression(), cv=FOLDS, strength=0.8)
    model.fit(X, y, sensitive_features=group)
    seen = np.column_stack([X, group])
    scores = unseen(seen, y)
    alone = align_scores(scores, group, strength=0.8, scale="real")
    assert_allclose(model.adjustment_.apply(scores, group), alone, rtol=1e-9)
    plain = LinearRegression().fit(seen, y).predict(seen)
    expected = model.adjustment_.apply(plain, group)
    assert_allclose(model.predict(X, sensitive_features=group), expected, rtol=1e-9)


def test_a_fitted_regressor_is_taken_as_it_is(rows):
    X, y, group = rows
    fitted = LinearRegression().fit(X, y)
    model = QuantileAlignmentRegressor(fitted, prefit=True).fit(X, y, sensitive_features=group)
    assert clone(model).estimator is fitted
    aligned = align_scores(fitted.predict(X), group, scale="real")
    assert_allclose(model.predict(X, sensitive_features=group), aligned, rtol=1e-9)


@pytest.mark.parametrize("score_weight", [0.0, 1.25])
def test_targets_solve_the_system_and_the_regressor_learns_them(rows, score_weight):
    X, y, group = rows
    model = MatchSmoothingRegressor(
        LinearRegression(), cv=FOLDS, fairness_weight=2.0, score_weight=score_weight
    ).fit(X, y, sensitive_features=group)
    seen = np.column_stack([X, group])
    eta = unseen(seen, y)
    column = np.sqrt(score_weight) * (eta - y.mean()) / y.std()
    points = np.column_stack([TableEncoder(missing="encode").fit_transform(X), column])
    gamma = OptimalTransportMatcher(tolerance=1e-3).match(points, group).to_sparse().toarray()
    gamma = gamma + gamma.T
    system = np.eye(300) / 300 + 2.0 * (np.diag(gamma.sum(axis=1)) - gamma)
    targets = np.linalg.solve(system, eta / 300)
    assert_allclose(model.targets_, targets, rtol=1e-6)
    alone = LinearRegression().fit(seen, targets).predict(seen)
    assert_allclose(model.predict(X, sensitive_features=group), alone, rtol=1e-6)


@pytest.mark.parametrize(
    "learner",
    [
        RandomForestRegressor(20, random_state=0),
        KNeighborsRegressor(),  # takes no weights, and needs none
        lightgbm.LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1),
        make_pipeline(StandardScaler(), LinearRegression()),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_any_regressor_becomes_fairer(rows, learner):
    X, y, group = rows
    for wrapper, weight in (
        (MatchSmoothingRegressor(learner, cv=2), 30.0),
        (QuantileAlignmentRegressor(learner, cv=2), 1.0),
    ):
        path = fairness_path(
            X, y, sensitive_features=group, fairness_weights=[0.0, weight], estimator=wrapper
        )
        curve = path.curve(X, y, sensitive_features=group)
        assert curve.mean_parity_gap[1] < 0.5 * curve.mean_parity_gap[0]
        assert curve.r2[1] > 0.3


@pytest.mark.parametrize("kind", [MatchSmoothingRegressor, QuantileAlignmentRegressor])
def test_a_bound_in_units_of_the_target(rows, kind):
    X, y, group = rows
    model = kind(LinearRegression(), cv=3, max_gap=150.0, random_state=0)
    model.fit(X, y, sensitive_features=group)
    curve = model.validation_curve_
    kept = curve[curve.fairness_weight == model.fairness_weight_].iloc[0]
    assert curve.mean_parity_gap.max() > 150.0 >= kept.mean_parity_gap


def test_what_cannot_be_is_said(rows, tmp_path):
    X, y, group = rows
    for kind in (MatchSmoothingRegressor, QuantileAlignmentRegressor):
        with pytest.raises(InputError, match="LogisticRegression is not a regressor"):
            kind(LogisticRegression()).fit(X, y, sensitive_features=group)
        with pytest.raises(InputError, match="takes no sample_weight"):
            kind(KNeighborsRegressor()).fit(
                X, y, sensitive_features=group, sample_weight=np.ones(len(y))
            )
        model = kind(LinearRegression(), cv=3).fit(X, y, sensitive_features=group)
        again = load(model.save(tmp_path / "model"))
        assert (
            again.predict(X, sensitive_features=group) == model.predict(X, sensitive_features=group)
        ).all()
    with pytest.raises(InputError, match="sensitive_at_prediction=False"):
        QuantileAlignmentRegressor(LinearRegression(), sensitive_at_prediction=False).fit(
            X, y, sensitive_features=group
        )
