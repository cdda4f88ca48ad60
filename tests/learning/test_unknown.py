"""Rows without a group: learned from and compared with nobody, refused, or a group of their own."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression

from fairmatch import (
    FTMBoostingClassifier,
    FTMClassifier,
    MatchSmoothingClassifier,
    NeuralNetwork,
    QuantileAlignmentClassifier,
    bands,
    fit_adjustment,
    load,
)
from fairmatch.exceptions import (
    FairmatchWarning,
    GroupError,
    InputError,
    UnknownGroupWarning,
)
from fairmatch.people.groups import read_groups, read_known

TREES = LGBMClassifier(n_estimators=10, random_state=0, verbose=-1)
MODELS = [
    pytest.param(FTMBoostingClassifier(TREES), id="trees"),
    pytest.param(FTMClassifier(NeuralNetwork(epochs=3), random_state=0), id="network"),
    pytest.param(QuantileAlignmentClassifier(LogisticRegression()), id="alignment"),
    pytest.param(MatchSmoothingClassifier(LogisticRegression()), id="smoothing"),
]


def table(n_unknown, n_rows=240, seed=0):
    generator = np.random.default_rng(seed)
    groups = generator.choice(["f", "m"], n_rows).astype(object)
    X = pd.DataFrame(generator.normal(size=(n_rows, 2)), columns=["a", "b"])
    X["a"] += groups == "m"
    y = (X["a"] + generator.normal(size=n_rows) > 0.5).astype(int)
    groups[generator.permutation(n_rows)[:n_unknown]] = None
    return X, y, groups


@pytest.mark.parametrize("model", MODELS)
def test_rows_without_a_group_are_learned_from(model):
    X, y, groups = table(10)
    fitted = model.fit(X, y, sensitive_features=groups)
    assert fitted.n_unknown_ == 10
    assert fitted.groups_ == ("f", "m", "unknown")
    # A new row without a group gets a score too.
    assert fitted.predict_proba(X[:20], sensitive_features=groups[:20]).shape == (20, 2)
    words = np.where(groups == None, "Unknown", groups)  # noqa: E711
    assert_array_equal(
        fitted.predict_proba(X, sensitive_features=words),
        fitted.predict_proba(X, sensitive_features=groups),
    )


def test_they_are_matched_with_nobody():
    X, y, groups = table(60)
    model = MatchSmoothingClassifier(LogisticRegression(), fairness_weight=1e6, cv=3)
    with pytest.warns(UnknownGroupWarning, match=r"60 of 240 rows \(25.0%\) have no group"):
        model.fit(X, y, sensitive_features=groups)
    unknown = pd.isna(groups)
    plain = MatchSmoothingClassifier(LogisticRegression(), fairness_weight=1e-9, cv=3)
    with pytest.warns(UnknownGroupWarning):
        plain.fit(X, y, sensitive_features=groups)
    moved = np.abs(model.targets_ - plain.targets_)
    assert moved[unknown].max() < 1e-6 < 0.1 < moved[~unknown].max()


def test_without_the_group_at_prediction_nothing_is_asked():
    X, y, groups = table(10)
    model = FTMBoostingClassifier(TREES, sensitive_at_prediction=False)
    assert model.fit(X, y, sensitive_features=groups).predict(X).shape == (240,)


def test_a_bound_is_about_known_people():
    X, y, groups = table(10)
    model = QuantileAlignmentClassifier(LogisticRegression(), max_gap=0.2)
    model.fit(X, y, sensitive_features=groups)
    assert "demographic_parity_gap" in model.validation_curve_
    curve = model.path_.curve(X, y, sensitive_features=groups)
    known = ~pd.isna(groups)
    same = model.path_.curve(X[known], y[known], sensitive_features=groups[known])
    gap = "demographic_parity_gap"
    assert_array_equal(curve[gap], same[gap])


def test_they_may_be_refused_or_a_group():
    X, y, groups = table(40)
    with pytest.raises(GroupError, match="40 missing values"):
        FTMBoostingClassifier(TREES, unknown="error").fit(X, y, sensitive_features=groups)
    model = QuantileAlignmentClassifier(LogisticRegression(), unknown="group")
    model.fit(X, y, sensitive_features=groups)
    assert model.adjustment_.labels == ("f", "m", "unknown")
    assert model.n_unknown_ == 0
    with pytest.raises(InputError, match="unknown must be one of") as caught:
        FTMBoostingClassifier(TREES, unknown="drop").fit(X, y, sensitive_features=groups)
    assert caught.value.parameter == "unknown"


def test_a_saved_model_reads_them_again(tmp_path):
    X, y, groups = table(5)
    model = FTMBoostingClassifier(TREES).fit(X, y, sensitive_features=groups)
    again = load(model.save(tmp_path / "model"))
    assert again.n_unknown_ == 5
    assert_array_equal(
        again.predict_proba(X, sensitive_features=groups),
        model.predict_proba(X, sensitive_features=groups),
    )


def test_several_attributes():
    X, y, groups = table(5)
    both = pd.DataFrame({"sex": groups, "old": np.tile(["yes", "no"], 120)})
    model = FTMBoostingClassifier(TREES, small_groups=("ignore", 20))
    model.fit(X, y, sensitive_features=both)
    assert model.n_unknown_ == 5
    assert model.predict(X, sensitive_features=both).shape == (240,)
    unseen = pd.DataFrame({"sex": ["f"], "old": [None]})
    with pytest.raises(GroupError, match="no group in 1 row"):
        model.predict(X[:1], sensitive_features=unseen)


@pytest.mark.parametrize("attributes", [1, 2])
def test_those_that_were_pooled_are_scored_as_the_pool(attributes, tmp_path):
    X, y, groups = table(12)
    groups[:20][groups[:20] == "m"] = "x"
    sensitive = pd.DataFrame({"sex": groups, "old": np.tile(["yes", "no"], 120)})
    sensitive = sensitive[["sex", "old"][:attributes]]
    model = FTMBoostingClassifier(TREES, small_groups=("pool", 30), unknown="group")
    model.fit(X, y, sensitive_features=sensitive)
    assert "other" in model.groups_
    assert not any("unknown" in label for label in model.groups_)
    expected = model.predict_proba(X, sensitive_features=sensitive)
    pooled = pd.isna(groups) | (groups == "x")
    named = sensitive.assign(sex=np.where(pooled, "x", groups))
    assert_array_equal(model.predict_proba(X, sensitive_features=named)[pooled], expected[pooled])
    again = load(model.save(tmp_path / "model"))
    assert_array_equal(again.predict_proba(X, sensitive_features=sensitive), expected)


def test_a_new_group_belongs_to_the_pool():
    """A group without training rows has fewer than the limit, too."""
    X, y, groups = table(0)
    groups[:20][groups[:20] == "m"] = "x"
    model = FTMBoostingClassifier(TREES, small_groups=("pool", 30))
    with pytest.warns(FairmatchWarning):  # the pool is small
        model.fit(X, y, sensitive_features=groups)
    pooled = model.predict_proba(X[:3], sensitive_features=["x", "x", "f"])
    with pytest.warns(UnknownGroupWarning, match="'q'.*not in the training table.*'other'"):
        found = model.predict_proba(X[:3], sensitive_features=["q", "x", "f"])
    assert_array_equal(found, pooled)
    with pytest.raises(GroupError, match="Did you mean 'f'"):
        model.predict(X[:1], sensitive_features=["F"])
    with pytest.raises(GroupError, match=r"no group in 1 row.*training rows had no group"):
        model.predict(X[:1], sensitive_features=[None])


@pytest.mark.parametrize("columns", ["sex", ["sex", "old"]])
def test_errors_name_the_column_of_x(columns):
    X, y, groups = table(0)
    X = X.assign(sex=groups, old=np.tile(["yes", "no"], 120))
    model = FTMBoostingClassifier(TREES, sensitive_column=columns).fit(X, y)
    for value, words in ((None, "has no group in 1 row"), ("q", "holds 'q")):
        with pytest.raises(GroupError) as raised:
            model.predict(X[:1].assign(sex=value))
        assert str(raised.value).startswith(f"X[{columns!r}] {words}")


def test_whole_numbers_are_named_alike_whatever_their_type():
    """A column of codes turns into floats as soon as a value is missing."""
    X, y, groups = table(0)
    codes = pd.DataFrame({"sex": np.where(groups == "m", 1, 2), "old": np.tile([0, 1], 120)})
    missing = codes.assign(sex=codes["sex"].astype(float).mask(np.arange(240) < 5))
    model = FTMBoostingClassifier(TREES, small_groups=("ignore", 10))
    model.fit(X, y, sensitive_features=missing)
    assert model.groups_[:4] == ("1, 0", "1, 1", "2, 0", "2, 1")
    assert_array_equal(
        model.predict_proba(X[5:], sensitive_features=codes[5:]),
        model.predict_proba(X[5:], sensitive_features=missing[5:]),
    )
    assert read_groups(codes.astype(float)).labels == read_groups(codes).labels


def test_an_adjustment_leaves_their_scores():
    X, _, groups = table(60)
    scores = 1.0 / (1.0 + np.exp(-X["a"].to_numpy()))
    with pytest.warns(UnknownGroupWarning):
        adjustment = fit_adjustment(scores, groups)
    moved, unknown = adjustment.apply(scores, groups), pd.isna(groups)
    assert_array_equal(moved[unknown], scores[unknown])
    known = fit_adjustment(scores[~unknown], groups[~unknown])
    assert_array_equal(moved[~unknown], known.apply(scores[~unknown], groups[~unknown]))


def test_small_groups_are_pooled_without_them():
    groups = read_known(["a"] * 40 + ["z"] * 40 + ["b"] * 3 + ["c"] * 3 + [None] * 2, "ignore")
    pooled = groups.pooled(10)
    assert pooled.labels == ("a", "other", "unknown", "z")
    assert pooled.apart == (2,)
    assert pooled.sizes().tolist() == [40.0, 6.0, 2.0, 40.0]


def test_bands_of_unknown_numbers():
    ages = bands([20.0, 50.0, np.nan, 60.0], [40])
    assert read_known(ages, "ignore").ordered
    assert not read_known(ages, "group").ordered
    with pytest.raises(GroupError, match="1 missing"):
        read_groups(ages)
    with pytest.raises(GroupError, match="At least two known groups"):
        read_known(["a", "a", None], "ignore")


@pytest.mark.parametrize(
    ("strange", "words"),
    [("F ", "'F ' and 'f' differ only in capitals or spaces"), ("?", "reads like a missing value")],
)
def test_a_group_that_nobody_meant_is_noticed(strange, words):
    X, y, groups = table(0)
    groups[groups == "m"] = np.resize(["m", strange], (groups == "m").sum())
    with pytest.warns(FairmatchWarning, match=words):
        FTMBoostingClassifier(TREES).fit(X, y, sensitive_features=groups)
