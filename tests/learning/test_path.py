import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from paper.rivals import UnconstrainedClassifier
from synthetic import PENALIZED, QUICK, made, people

from fairmatch import FTMClassifier, OptimalTransportMatcher, fairness_path
from fairmatch.exceptions import InputError
from fairmatch.learning.estimator import PAPER_WEIGHTS
from fairmatch.measures import gap_table
from fairmatch.measures.distributions import calibration_error


@pytest.mark.parametrize("family", PENALIZED)
def test_each_model_is_the_one_that_is_fitted_alone(family):
    X, y, group = people()
    weights = [0.5, 1.0, 10.0]
    path = fairness_path(
        X, y, sensitive_features=group, fairness_weights=weights, estimator=made(family, **QUICK)
    )
    assert path.weights.tolist() == weights
    assert len(path) == 3
    for weight, model in zip(weights, path.models, strict=True):
        assert (model.fairness_weight, model.fairness_weight_) == (weight, weight)
        alone = made(family, fairness_weight=weight, **QUICK).fit(X, y, sensitive_features=group)
        assert_allclose(
            model.predict_proba(X, sensitive_features=group),
            alone.predict_proba(X, sensitive_features=group),
            atol=1e-5,
        )


def test_the_curve_is_the_table_of_gaps_and_the_accuracy():
    X, y, group = people()
    labels = np.where(y == 1, "yes", "no")
    weight = 1.0 + np.arange(len(y)) % 3
    coupling = OptimalTransportMatcher().match(X, group)
    path = fairness_path(
        X,
        labels,
        sensitive_features=group,
        fairness_weights=[0.0, 5.0],
        estimator=made(FTMClassifier, **QUICK),
        coupling=coupling,
    )
    given = {"sensitive_features": group, "sample_weight": weight, "coupling": coupling}
    curve = path.curve(X, labels, **given)
    for position, model in enumerate(path.models):
        scores = model.predict_proba(X, sensitive_features=group)[:, 1]
        gaps = gap_table(labels, scores, pos_label="yes", **given)
        right = model.score(X, labels, weight, sensitive_features=group)
        off = {
            f"calibration_error[{g}]": calibration_error(scores[own], y[own] == 1, weight[own])
            for g in np.unique(group)
            for own in [group == g]
        }
        expected = {
            "calibration_error": max(off.values()),
            **off,
            "fairness_weight": path.weights[position],
            "accuracy": right,
            "acceptance_rate": np.average(scores >= 0.5, weights=weight),
            **gaps,
        }
        assert curve.iloc[position].to_dict() == pytest.approx(expected)


def test_the_groups_may_be_in_the_table():
    X, y, group = people()
    inside = np.column_stack([X, group])
    settings = {"fairness_weights": [1.0]}
    outside = fairness_path(
        X, y, sensitive_features=group, estimator=made(FTMClassifier, **QUICK), **settings
    )
    estimator = made(FTMClassifier, sensitive_column=-1, **QUICK)
    path = fairness_path(inside, y, estimator=estimator, **settings)
    assert_array_equal(path.curve(inside, y), outside.curve(X, y, sensitive_features=group))


def test_the_estimator_is_left_as_it_was():
    X, y, group = people()
    estimator = made(FTMClassifier, **QUICK)
    before = estimator.get_params()
    fairness_path(X, y, sensitive_features=group, fairness_weights=[2.0], estimator=estimator)
    assert estimator.get_params() == before
    assert not hasattr(estimator, "classes_")


def test_the_papers_weights():
    assert len(PAPER_WEIGHTS) == 18
    assert PAPER_WEIGHTS[0] == 0.1
    assert PAPER_WEIGHTS[-1] == 10


@pytest.mark.parametrize("weights", [[], [np.nan], [-1.0], [np.inf], [[1.0]]], ids=str)
def test_bad_weights(weights):
    X, y, group = people()
    with pytest.raises(InputError, match="fairness_weight"):
        fairness_path(
            X,
            y,
            sensitive_features=group,
            fairness_weights=weights,
            estimator=made(FTMClassifier, **QUICK),
        )


@pytest.mark.parametrize("estimator", [made(UnconstrainedClassifier, **QUICK)])
def test_a_method_without_a_weight_has_no_path(estimator):
    X, y, group = people()
    with pytest.raises(InputError, match="has no fairness weight, so it has no path"):
        fairness_path(X, y, sensitive_features=group, estimator=estimator)
