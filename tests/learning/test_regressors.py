"""Regressors: networks and trees that give matched people similar predictions."""

import json

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from damage import edit
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.linear_model import LinearRegression
from synthetic import made

from fairmatch import (
    FTMBoostingRegressor,
    FTMRegressor,
    OptimalTransportMatcher,
    QuantileAlignmentRegressor,
    fairness_path,
    load,
)
from fairmatch.datasets import load_german
from fairmatch.exceptions import (
    ConstantModelWarning,
    FairmatchWarning,
    GapNotReachedWarning,
    GroupError,
    InputError,
    LabelError,
    ModelFileError,
)
from fairmatch.measures import MEASURES
from fairmatch.measures.distributions import Settings
from fairmatch.measures.gaps import read_scored
from fairmatch.measures.registry import gap_values
from fairmatch.people.outcome import NUMBER

TREES = {"n_estimators": 20, "random_state": 0}
NETWORK = {"epochs": 10, "learning_rate": 0.02, "hidden_sizes": (8,), "random_state": 0}
BOTH = [
    pytest.param(FTMBoostingRegressor, TREES, id="trees"),
    pytest.param(FTMRegressor, NETWORK, id="network"),
]


def workers(n_rows=400, n_groups=3, seed=0):
    """Return features, weekly hours and a group that earns its hours by the first feature."""
    random = np.random.default_rng(seed)
    group = np.arange(n_rows) % n_groups
    X = random.normal(size=(n_rows, 3))
    X[:, 0] += 0.7 * group
    hours = 40.0 + 6.0 * X[:, 0] + 2.0 * X[:, 1] + random.normal(0, 2, n_rows)
    return X, hours, np.array(["a", "b", "c"])[group]


X, HOURS, GROUP = workers()


def fitted(family, settings, **more):
    weights = {key: more.pop(key) for key in ("sample_weight", "coupling") if key in more}
    model = made(family, **{**settings, **more})
    return model.fit(X, HOURS, sensitive_features=GROUP, **weights)


def predicted(model):
    return model.predict(X, sensitive_features=GROUP)


def test_weight_zero_is_plain_lightgbm_on_the_standardised_target():
    model = fitted(FTMBoostingRegressor, TREES, fairness_weight=0.0)
    table = np.column_stack([X, np.unique(GROUP, return_inverse=True)[1]])
    plain = lgb.LGBMRegressor(n_estimators=20, n_jobs=1, verbosity=-1)
    plain.fit(table, (HOURS - HOURS.mean()) / HOURS.std(), categorical_feature=[3])
    wanted = HOURS.mean() + HOURS.std() * plain.predict(table)
    assert_allclose(predicted(model), wanted, rtol=1e-6)


@pytest.mark.parametrize(("family", "settings"), BOTH)
def test_the_unit_of_the_target_makes_no_difference(family, settings):
    model = fitted(family, settings)
    minutes = made(family, **settings).fit(X, 60.0 * HOURS - 7.0, sensitive_features=GROUP)
    assert_allclose(predicted(minutes), 60.0 * predicted(model) - 7.0, rtol=1e-4)
    assert minutes.target_scale_ == pytest.approx(60.0 * model.target_scale_)


@pytest.mark.parametrize(("family", "settings"), BOTH)
@pytest.mark.parametrize("transport", ["marginal", "joint"])
def test_gaps_fall_along_a_path_of_three_groups(family, settings, transport):
    path = fairness_path(
        X,
        HOURS,
        sensitive_features=GROUP,
        estimator=made(family, transport, **settings),
        fairness_weights=[0.0, 0.3, 20.0],
    )
    curve = path.curve(X, HOURS, sensitive_features=GROUP)
    gaps = curve.mean_parity_gap.to_numpy()
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.2 * gaps[0]
    assert curve.rmse[0] < curve.rmse[2]
    alone = fitted(family, settings, transport=transport, fairness_weight=0.3)
    assert_allclose(predicted(path.models[1]), predicted(alone), rtol=1e-6)
    line, scores = curve.iloc[1], predicted(alone)
    errors = scores - HOURS
    assert line.rmse == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert line.r2 == pytest.approx(alone.score(X, HOURS, sensitive_features=GROUP))
    settings = Settings(outcome=NUMBER, spread=alone.target_scale_)
    scored = read_scored(scores, GROUP, settings=settings)
    wanted = gap_values(scored.people, scored.scores, settings)
    assert {name: line[name] for name in wanted} == pytest.approx(wanted)


@pytest.mark.parametrize(("family", "settings"), BOTH)
def test_people_can_be_matched_on_a_predicted_number(family, settings):
    model = fitted(family, settings, transport="predicted", fairness_weight=1.0)
    assert np.isfinite(predicted(model)).all()


@pytest.mark.parametrize(("family", "settings"), BOTH)
def test_a_bound_keeps_the_least_error_within_it(family, settings):
    weights = (0.0, 0.3, 20.0)
    model = fitted(family, settings, max_gap=4.0, fairness_weight=weights)
    curve = model.validation_curve_
    within = curve[curve.mean_parity_gap <= 4.0]
    assert 0 < len(within) < 3
    assert model.fairness_weight_ == within.fairness_weight[within.rmse.idxmin()]
    bound = 4.0 / model.target_scale_
    relative = fitted(
        family,
        settings,
        max_gap=bound,
        gap_measure="relative_mean_parity_gap",
        fairness_weight=weights,
    )
    assert relative.fairness_weight_ == model.fairness_weight_


def test_what_a_bound_cannot_promise_is_told():
    settings = {**TREES, "fairness_weight": (0.0, 0.3)}
    with pytest.warns(GapNotReachedWarning, match="model that is kept has .* groups are small"):
        fitted(FTMBoostingRegressor, settings, max_gap=0.01)
    with pytest.warns(ConstantModelWarning, match="nearly the same prediction"):
        fitted(FTMRegressor, {**NETWORK, "fairness_weight": (1000.0,)}, max_gap=2.0)


def test_large_numbers_are_written_out():
    random = np.random.default_rng(0)
    X, group = random.normal(size=(60, 2)), np.arange(60) % 2
    model = QuantileAlignmentRegressor(LinearRegression(), max_gap=1.0, strength=[1.0])
    with pytest.warns(FairmatchWarning, match=r"only to about ±\d,\d{3}, more than max_gap=1\."):
        model.fit(X, 10_000.0 * X[:, 0], sensitive_features=group)


def test_with_a_confidence_the_limit_counts():
    settings = {**TREES, "fairness_weight": (0.0, 0.3, 20.0), "max_gap": 4.0}
    model = fitted(FTMBoostingRegressor, settings, confidence=0.95)
    curve = model.validation_curve_
    tested = curve.dropna()
    assert (tested.mean_parity_gap_limit > tested.mean_parity_gap).all()
    assert curve.mean_parity_gap_limit[curve.fairness_weight == model.fairness_weight_].item() <= 4
    with pytest.raises(InputError, match="leave confidence out"):
        fitted(FTMBoostingRegressor, settings, confidence=0.9, gap_measure="ks_parity_gap")


def test_the_limit_of_two_groups_is_welchs():
    random = np.random.default_rng(1)
    a, b = random.normal(0, 1, 30), random.normal(2, 3, 50)
    scores, groups = np.concatenate([a, b]), np.repeat(["a", "b"], [30, 50])

    def limit(scores, groups, weights=None):
        scored = read_scored(scores, groups, weights, settings=Settings(outcome=NUMBER))
        return MEASURES["mean_parity_gap"].upper_limit(scored, 0.95)

    found = limit(scores, groups)
    interval = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.90)
    assert found == pytest.approx(interval.high)
    twice = limit(scores, groups, np.full(80, 2.0))
    assert twice == pytest.approx(found)
    assert limit(a[:2], ["a", "b"]) == np.inf


@pytest.mark.parametrize(("family", "settings"), BOTH)
def test_a_saved_model_predicts_the_same(family, settings, tmp_path):
    model = fitted(family, settings)
    again = load(model.save(tmp_path / "model"))
    assert type(again) is family
    assert_array_equal(predicted(again), predicted(model))
    assert str(again).replace("n_jobs", "") == str(again)
    assert again.get_params().keys() == model.get_params().keys()
    assert "target" in json.loads((tmp_path / "model" / "model.json").read_text())


@pytest.mark.parametrize(
    "target", [None, {}, {"mean": 1.0}, {"mean": 1.0, "scale": 0.0}, {"mean": "1", "scale": 1.0}]
)
def test_a_damaged_target_is_refused(target, tmp_path):
    saved = fitted(FTMBoostingRegressor, {**TREES, "n_estimators": 2}).save(tmp_path / "model")
    edit(saved, target=target)
    with pytest.raises(ModelFileError, match="damaged"):
        load(saved)


@pytest.mark.parametrize(("family", "settings"), BOTH)
def test_groups_may_be_in_the_table_or_left_out_at_prediction(family, settings):
    frame = pd.DataFrame(X, columns=[*"pqr"]).assign(team=GROUP)
    inside = made(family, sensitive_column="team", **settings).fit(frame, HOURS)
    assert_array_equal(inside.predict(frame), predicted(fitted(family, settings)))
    blind = fitted(family, settings, sensitive_at_prediction=False)
    assert blind.predict(X).shape == (400,)
    with pytest.raises(GroupError, match="'d'"):
        fitted(family, settings).predict(X, sensitive_features=np.full(400, "d"))


@pytest.mark.parametrize(("family", "settings"), BOTH)
def test_a_ready_coupling_and_rows_that_nobody_is_matched_with(family, settings):
    few = np.arange(0, 400, 20)
    part = OptimalTransportMatcher().match(X[few], GROUP[few])
    coupling = OptimalTransportMatcher().match(X, GROUP)
    model = fitted(family, settings, coupling=coupling, fairness_weight=20.0)
    assert coupling.gap(predicted(model)) < 1.0
    with pytest.raises(ValueError, match="20 rows"):
        fitted(family, settings, coupling=part)


def test_rows_of_weight_zero_do_not_move_the_target():
    heavy = np.append(np.ones(400), 0.0)
    model = made(FTMBoostingRegressor, **TREES).fit(
        np.vstack([X, X[:1]]),
        np.append(HOURS, 1e6),
        sensitive_features=np.append(GROUP, "a"),
        sample_weight=heavy,
    )
    assert model.target_mean_ == pytest.approx(HOURS.mean())


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.full(400, 3.0), "constant"),
        (np.where(np.arange(400) == 5, np.nan, HOURS), "first in row 5"),
        (np.array(["much"] * 400), "numeric"),
        (HOURS[:10], "10 samples"),
    ],
)
def test_targets_that_cannot_be_learned(y, message):
    with pytest.raises((LabelError, InputError), match=message):
        made(FTMBoostingRegressor, **TREES).fit(X, y, sensitive_features=GROUP)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"transport": OptimalTransportMatcher(label_weight=1.0)}, "there are none in a regressor"),
        ({"max_gap": 1.0, "gap_measure": "true_positive_gap"}, "one of mean_parity_gap"),
        ({"max_gap": -1.0}, "max_gap"),
        ({"small_groups": "half"}, "small_groups"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(InputError, match=message):
        fitted(FTMBoostingRegressor, {**TREES, **settings})


def test_a_regressor_has_no_criterion_and_no_positive_rows():
    names = FTMBoostingRegressor().get_params()
    assert {"criterion", "scale_pos_weight"}.isdisjoint(names)
    assert {"reference", "max_gap", "small_groups"} <= {*names}


def test_the_amount_of_german_credits():
    german = load_german()
    table, amount = german.X.drop(columns="credit_amount"), german.X["credit_amount"]
    given = {"sensitive_features": german.sensitive_features}
    path = fairness_path(
        table,
        amount,
        **given,
        estimator=made(FTMBoostingRegressor, **TREES),
        fairness_weights=[0.0, 5.0],
    )
    curve = path.curve(table, amount, **given)
    assert curve.r2[0] > 0.6
    assert curve.relative_mean_parity_gap[1] < 0.2 * curve.relative_mean_parity_gap[0]
    model = path.models[0]
    assert len(model.feature_importances_) == table.shape[1] + 1
    assert model.feature_names_in_.tolist() == list(table.columns)
