"""Wrappers are saved with the model inside them, by skops, and only trusted types are loaded."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import fairmatch
from fairmatch import (
    FTMBoostingClassifier,
    MatchSmoothingClassifier,
    MatchSmoothingRegressor,
    QuantileAlignmentClassifier,
    QuantileAlignmentRegressor,
    load,
)
from fairmatch.exceptions import InputError, ModelFileError

pytest.importorskip("skops")
TREES = LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1)


def people(n=300):
    generator = np.random.default_rng(0)
    X = pd.DataFrame({"a": generator.normal(size=n), "b": generator.choice(["u", "v"], n)})
    group = generator.choice(["f", "m"], n)
    target = X["a"].to_numpy() + (group == "f") + generator.normal(size=n)
    return X, (target > 0).astype(int), group, target


def piped(last):
    encoder = make_column_transformer((OneHotEncoder(), ["b"]), remainder="passthrough")
    return make_pipeline(encoder, last)


@pytest.mark.parametrize(
    "kind",
    [
        QuantileAlignmentClassifier,
        MatchSmoothingClassifier,
        QuantileAlignmentRegressor,
        MatchSmoothingRegressor,
    ],
)
def test_a_loaded_wrapper_predicts_the_same(kind, tmp_path):
    X, y, group, target = people()
    number = kind.__name__.endswith("Regressor")
    model = kind(piped(Ridge() if number else LogisticRegression()), random_state=0)
    model.fit(X, target if number else y, sensitive_features=group)
    again = load(model.save(tmp_path / "model"))
    predict = "predict" if number else "predict_proba"
    found, expected = (getattr(one, predict)(X, sensitive_features=group) for one in (again, model))
    assert (found == expected).all()
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == ["model.json", "model.skops"]
    again.fit(X, target if number else y, sensitive_features=group)


def test_models_that_were_not_chosen_are_left_out(tmp_path):
    X, y, group, _ = people()
    model = QuantileAlignmentClassifier(piped(LogisticRegression()), max_gap=0.5, random_state=0)
    model.fit(X, y, sensitive_features=group)
    again = load(model.save(tmp_path / "model"))
    assert hasattr(model, "path_")
    assert not hasattr(again, "path_")
    assert not hasattr(again, "validation_curve_")


def test_types_that_nobody_trusts_are_listed_and_not_loaded(tmp_path):
    X, y, group, _ = people()
    model = QuantileAlignmentClassifier(TREES, random_state=0)
    path = model.fit(X[["a"]], y, sensitive_features=group).save(tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"lightgbm\.sklearn\.LGBMClassifier") as told:
        load(path)
    trusted = re.findall(r"'([\w.]+)'", str(told.value))
    again = load(path, trusted=trusted)
    found, expected = (one.predict(X[["a"]], sensitive_features=group) for one in (again, model))
    assert (found == expected).all()


@pytest.mark.parametrize("prefit", [True, False])
@pytest.mark.parametrize("kind", ["trees", "network"])
def test_a_wrapper_of_an_own_model_needs_no_trust(kind, prefit, tmp_path):
    X, y, group, _ = people()
    X["sex"] = group
    if kind == "trees":
        inner = FTMBoostingClassifier(TREES, sensitive_column="sex", random_state=0)
    else:
        network = fairmatch.NeuralNetwork((4,), epochs=1)
        inner = fairmatch.FTMClassifier(network, sensitive_column="sex", random_state=0)
    if prefit:
        inner.fit(X, y)
    model = QuantileAlignmentClassifier(inner, prefit=prefit, cv=2, sensitive_column="sex")
    again = load(model.fit(X, y).save(tmp_path / "model"))
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    assert type(again.estimator_) is type(inner)
    assert again.scorer_.model is again.estimator_
    assert (again.fit(X, y).predict_proba(X) == model.predict_proba(X)).all()
    content = (tmp_path / "model" / "model.skops").read_bytes()
    (tmp_path / "model" / "model.skops").write_bytes(content[:-100])
    with pytest.raises(ModelFileError):
        load(tmp_path / "model")


class _Own(LogisticRegression):
    def __init__(self):
        super().__init__()
        self.stream = (one for one in range(3))  # a generator, which skops cannot write

    def get_params(self, deep=True):
        return {}


def test_what_skops_cannot_write_is_an_error_with_advice(tmp_path):
    X, y, group, _ = people()
    model = QuantileAlignmentClassifier(_Own(), random_state=0)
    model.fit(X[["a"]], y, sensitive_features=group)
    with pytest.raises(InputError, match=r"skops cannot write.*adjustment_\.save"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("damage", ["content", "class", "description"])
def test_damaged_files_are_refused(damage, tmp_path):
    X, y, group, _ = people()
    model = QuantileAlignmentClassifier(piped(LogisticRegression()), random_state=0)
    path = model.fit(X, y, sensitive_features=group).save(tmp_path / "model")
    description = json.loads((path / "model.json").read_text())
    if damage == "content":
        (path / "model.skops").write_bytes(b"PK" + (path / "model.skops").read_bytes()[2:-50])
    elif damage == "class":
        description["class"] = "MatchSmoothingClassifier"
    else:
        description["fairmatch"] = "0.0.1"
    (path / "model.json").write_text(json.dumps(description))
    with pytest.raises(ModelFileError):
        load(path)
