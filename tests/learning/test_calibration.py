"""Calibration by group: decisions stay, errors shrink, and what is unavoidable stays."""

import numpy as np
import pandas as pd
import pytest
from damage import edit
from lightgbm import LGBMClassifier
from sklearn.linear_model import LogisticRegression

import fairmatch
from fairmatch import FTMBoostingClassifier, QuantileAlignmentClassifier, fit_calibration
from fairmatch.exceptions import GroupError, InputError, ModelFileError
from fairmatch.measures import demographic_parity_gap, equalized_odds_gap
from fairmatch.measures.distributions import calibration_error


def people(n=6000, seed=0):
    """Scores that are too high for one group and too low for the other."""
    generator = np.random.default_rng(seed)
    group = generator.choice(["a", "b"], n)
    truth = generator.beta(np.where(group == "a", 2.0, 1.2), 2.0)
    y = (generator.random(n) < truth).astype(int)
    scores = np.where(group == "a", truth**1.8, truth**0.6)
    return scores, y, group


def errors(scores, y, group):
    return {g: calibration_error(scores[group == g], y[group == g] == 1) for g in "ab"}


def test_decisions_stay_and_errors_shrink():
    calibration = fit_calibration(*people()[:2], sensitive_features=people()[2])
    scores, y, group = people(seed=1)
    found = calibration.apply(scores, group)
    assert ((found >= 0.5) == (scores >= 0.5)).all()
    for gap in (demographic_parity_gap, equalized_odds_gap):
        assert gap(y, found, sensitive_features=group) == gap(y, scores, sensitive_features=group)
    before, after = errors(scores, y, group), errors(found, y, group)
    assert all(after[g] < 0.6 * before[g] for g in "ab"), (before, after)
    for g in "ab":  # the order within a group is kept
        order = np.argsort(scores[group == g])
        assert (np.diff(found[group == g][order]) >= 0.0).all()


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.77])
def test_no_score_crosses_the_threshold_and_small_groups_stay(threshold):
    generator = np.random.default_rng(2)
    scores = np.round(generator.random(300), 2)
    scores[:4] = [0.0, 1.0, threshold, np.nextafter(threshold, 0.0)]
    group = np.where(np.arange(300) < 280, "a", "b")
    y = generator.integers(0, 2, 300)
    calibration = fit_calibration(scores, y, sensitive_features=group, threshold=threshold)
    found = calibration.apply(scores, group)
    assert ((found >= threshold) == (scores >= threshold)).all()
    assert ((found >= 0.0) & (found <= 1.0)).all()
    assert found[280:] == pytest.approx(scores[280:])
    with pytest.raises(GroupError, match="'c'"):
        calibration.apply([0.5], ["c"])
    assert calibration.apply(scores[:1], group[:1]) == found[:1]


def test_groups_of_two_attributes():
    scores, y, group = people()
    both = pd.DataFrame({"sex": group, "race": np.resize(["x", "y"], len(group))})
    calibration = fit_calibration(scores, y, sensitive_features=both)
    assert set(calibration.maps) == {"a, x", "a, y", "b, x", "b, y"}
    found = calibration.apply(scores, both)
    assert (found[:1] == calibration.apply(scores[:1], both[:1])).all()


def test_the_errors_are_at_least_what_base_rates_and_mean_scores_leave():
    """ECE of two groups add up to at least the gap of base rates less that of mean scores."""
    generator = np.random.default_rng(3)
    for _ in range(200):
        n = int(generator.integers(20, 200))
        group = np.resize(["a", "b"], n)
        scores, y = generator.random(n), generator.integers(0, 2, n)
        found = errors(scores, y, group)
        mean = [scores[group == g].mean() - y[group == g].mean() for g in "ab"]
        assert sum(found.values()) >= abs(mean[0] - mean[1]) - 1e-12


# calibrate=True


def table(n=2000, seed=0):
    generator = np.random.default_rng(seed)
    group = generator.choice(["a", "b"], n)
    x = generator.normal(size=n) + (group == "b")
    X = pd.DataFrame({"x": x, "z": generator.normal(size=n), "town": np.resize(list("pqr"), n)})
    y = (generator.random(n) < 1.0 / (1.0 + np.exp(-1.5 * x))).astype(int)
    return X, y, group


# Wrappers that save their inner model with its own library.
WRAPPED = {"smooth": fairmatch.MatchSmoothingClassifier, "blind": fairmatch.GroupBlindClassifier}


def model_of(family="trees", **settings):
    if family in WRAPPED:
        return WRAPPED[family](LogisticRegression(), random_state=0, **settings)
    if family == "threshold":
        return QuantileAlignmentClassifier(
            LogisticRegression(), decisions="threshold", random_state=0, **settings
        )
    if family == "network":
        network = fairmatch.NeuralNetwork((8,), epochs=4)
        return fairmatch.FTMClassifier(network, encoder="table", random_state=0, **settings)
    trees = LGBMClassifier(n_estimators=20, num_leaves=7, n_jobs=1, verbose=-1)
    return FTMBoostingClassifier(trees, random_state=0, **settings)


def chances(model, X, group):
    given = group if getattr(model, "sensitive_at_prediction", True) else None
    return model.predict_proba(X, sensitive_features=given)[:, 1]


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("trees", {"fairness_weight": 10.0}),
        ("trees", {"max_gap": 0.3, "fairness_weight": [0.0, 2.0]}),
        ("trees", {"max_gap": 0.5, "fairness_weight": [0.0], "sensitive_at_prediction": False}),
        ("network", {"fairness_weight": 10.0}),
        ("threshold", {"max_gap": 0.3}),
        ("threshold", {"strength": 0.5}),
        ("smooth", {"max_gap": 0.3, "fairness_weight": [0.0, 2.0]}),
        ("smooth", {"fairness_weight": 10.0, "sensitive_at_prediction": False}),
        ("blind", {"max_gap": 0.3}),
        ("blind", {"strength": 0.5}),
    ],
)
def test_a_calibrated_classifier_decides_the_same_and_is_saved(family, settings, tmp_path):
    X, y, group = table()
    if family not in ("trees", "network"):
        X = X[["x", "z"]]
    model = model_of(family, calibrate=True, **settings).fit(X, y, sensitive_features=group)
    plain = model_of(family, **settings).fit(X, y, sensitive_features=group)
    new, truth, other = table(seed=1)
    new = new[X.columns]
    after, before = chances(model, new, other), chances(plain, new, other)
    assert ((after >= 0.5) == (before >= 0.5)).all()
    assert (after != before).any()
    for gap in (demographic_parity_gap, equalized_odds_gap):
        assert gap(truth, after, sensitive_features=other) == gap(
            truth, before, sensitive_features=other
        )
    if family == "trees" and settings["fairness_weight"] == 10.0:  # a model that needs it
        squared = [((scores - truth) ** 2).mean() for scores in (after, before)]
        assert squared[0] < squared[1] - 0.002
        kept = model.validation_curve_.iloc[0]
        assert kept["calibrated_error"] < 0.8 * kept["calibration_error"]
    assert len(model.calibration_.maps) == (2 if model.sensitive_at_prediction else 1)
    if family in WRAPPED:
        return
    again = fairmatch.load(model.save(tmp_path / "model"))
    assert (chances(again, new, other) == after).all()
    assert again.calibration_.facts() == model.calibration_.facts()
    if family != "threshold":
        ort = pytest.importorskip("onnxruntime")
        session = ort.InferenceSession(fairmatch.to_onnx(model).SerializeToString())
        given = {
            one.name: (pd.Series(other) if one.name == "sensitive_features" else new[one.name])
            .to_numpy(object if "string" in one.type else float)[:, None]
            for one in session.get_inputs()
        }  # fmt: skip
        found = session.run(None, given)[0][:, 1]
        assert np.abs(found - after).max() < (1e-5 if family == "network" else 1e-9)
        if model.sensitive_at_prediction:
            given["sensitive_features"][0] = "c"
            assert np.isnan(session.run(None, given)[0][0]).all()


def test_damaged_maps_are_refused(tmp_path):
    X, y, group = table(1000)
    folder = model_of(calibrate=True).fit(X, y, sensitive_features=group).save(tmp_path / "model")
    maps = [[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 2.0]], [[0.0], [0.0, 1.0]], ["x", "y"]
    for damaged in (None, [], *([own, own] for own in maps)):
        edit(folder, calibration=damaged)
        with pytest.raises(ModelFileError, match="calibration"):
            fairmatch.load(folder)


def test_where_a_calibration_would_undo_a_promise():
    X, y, group = table(1000)
    for model, words in (
        (model_of(calibrate=True, max_gap=0.1, gap_measure="mean_parity_gap"), "compares scores"),
        (QuantileAlignmentClassifier(LogisticRegression(), calibrate=True), "decisions='align'"),
        (model_of(calibrate=1), "calibrate"),
    ):
        with pytest.raises(InputError, match=words):
            model.fit(X, y, sensitive_features=group)
    with pytest.raises(InputError, match="two classes"):
        model_of(calibrate=True).fit(X, np.resize([0, 1, 2], len(y)), sensitive_features=group)
    with pytest.raises(InputError, match="path trains on all"):
        fairmatch.fairness_path(X, y, sensitive_features=group, estimator=model_of(calibrate=True))
