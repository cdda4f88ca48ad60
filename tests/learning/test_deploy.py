"""Models for other programs: ONNX beside predict_proba, and MLflow's pyfunc."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from fairmatch import (
    FTMBoostingClassifier,
    FTMBoostingRegressor,
    GroupBlindClassifier,
    MatchSmoothingClassifier,
    QuantileAlignmentClassifier,
    QuantileAlignmentRegressor,
    to_onnx,
)
from fairmatch.exceptions import InputError, OutputFileError
from fairmatch.learning.deploy import ServedModel
from fairmatch.people.encoding import TableEncoder

lightgbm = pytest.importorskip("lightgbm")


def people(n=1500, seed=0, missing=True):
    generator = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": generator.integers(18, 80, n).astype(float),
            "income": generator.normal(size=n) * 1e4,
            "town": generator.choice(list("abcdefghij"), n),
            "flag": generator.random(n) < 0.4,
            "code": pd.Categorical(generator.choice([3, 7, 11], n)),
        }
    )
    if missing:
        X.loc[generator.random(n) < 0.1, "age"] = np.nan
        X.loc[generator.random(n) < 0.1, "town"] = None
    group = generator.choice(["f", "m", "x"], n, p=[0.4, 0.4, 0.2])
    target = X["income"] / 1e4 + X["town"].isin(["a", "c"]) + X["flag"] + (group == "m")
    target = target.to_numpy() + generator.normal(size=n)
    return X, (target > 1.0).astype(int), group, target


def run(model, X, group):
    """The first output of the ONNX model of a model."""
    ort = pytest.importorskip("onnxruntime")
    content = to_onnx(model).SerializeToString()
    session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
    given = {}
    for one in session.get_inputs():
        values = pd.Series(group) if one.name == "sensitive_features" else X[one.name]
        text = one.type == "tensor(string)"
        column = values.fillna("").to_numpy(object) if text else values.to_numpy(float)
        given[one.name] = column[:, None]
    return session.run(None, given)[0]


def trees(**parameters):
    return lightgbm.LGBMClassifier(n_jobs=1, verbose=-1, **parameters)


@pytest.mark.parametrize("at_prediction", [True, False])
@pytest.mark.parametrize(
    "parameters",
    [
        {"n_estimators": 60},
        {"n_estimators": 20, "num_leaves": 63, "min_child_samples": 3, "min_data_per_group": 5},
        {"n_estimators": 3, "use_missing": False},
        {"n_estimators": 2, "min_child_samples": 2000},  # trees of one leaf
    ],
)
def test_trees_are_equal_in_onnx(parameters, at_prediction):
    X, y, group, _ = people()
    model = FTMBoostingClassifier(
        trees(**parameters), fairness_weight=1.0, sensitive_at_prediction=at_prediction,
        random_state=0,
    )  # fmt: skip
    model.fit(X, y, sensitive_features=group)
    new, _, other, _ = people(seed=1)
    new.loc[:5, "town"] = "never seen"
    expected = model.predict_proba(new, sensitive_features=other if at_prediction else None)
    assert np.abs(run(model, new, other) - expected).max() < 1e-9


@pytest.mark.parametrize("at_prediction", [True, False])
def test_several_classes_are_equal_in_onnx(at_prediction):
    X, _, group, target = people()
    levels = np.array(["low", "middle", "high"])[np.digitize(target, [0.0, 1.5])]
    model = FTMBoostingClassifier(
        trees(n_estimators=20), sensitive_at_prediction=at_prediction, random_state=0
    ).fit(X, levels, sensitive_features=group)
    X, _, group, _ = people(seed=1)
    expected = model.predict_proba(X, **{"sensitive_features": group} if at_prediction else {})
    assert np.abs(run(model, X, group) - expected).max() < 1e-6


def test_wrappers_are_refused_with_what_to_export_instead():
    X, y, group, target = people(300, missing=False)
    X = X[["flag"]].assign(income=X["income"] / 1e4)
    for model, labels in (
        (MatchSmoothingClassifier(LogisticRegression(), cv=2), y),
        (QuantileAlignmentClassifier(LogisticRegression(), cv=2), y),
        (GroupBlindClassifier(LogisticRegression(), cv=2), y),
        (QuantileAlignmentRegressor(Ridge(), cv=2), target),
    ):
        fitted = model.fit(X, labels, sensitive_features=group)
        with pytest.raises(InputError, match=f"{type(model).__name__}.*export its estimator_"):
            to_onnx(fitted)


def test_regressors_and_groups_that_are_numbers_or_pooled():
    X, _, group, target = people()
    model = FTMBoostingRegressor(
        lightgbm.LGBMRegressor(n_estimators=20, n_jobs=1, verbose=-1), random_state=0
    )
    number = np.unique(group, return_inverse=True)[1]
    model.fit(X, target, sensitive_features=number)
    expected = model.predict(X, sensitive_features=number)
    assert np.abs(run(model, X, number)[:, 0] - expected).max() < 1e-9
    rare = np.where(
        np.arange(len(group)) < 8, "tiny", np.where(np.arange(len(group)) < 50, "o", group)
    )
    pooled = FTMBoostingClassifier(trees(n_estimators=5), small_groups=("pool", 60), random_state=0)
    pooled.fit(X, target > 1.0, sensitive_features=rare)
    expected = pooled.predict_proba(X, sensitive_features=rare)
    assert "other" in pooled.groups_
    assert np.abs(run(pooled, X, rare) - expected).max() < 1e-9


@pytest.mark.parametrize("at_prediction", [True, False])
@pytest.mark.parametrize("max_levels", [100, 4])
def test_networks_are_equal_in_onnx(at_prediction, max_levels):
    pytest.importorskip("torch")
    from fairmatch import FTMClassifier, NeuralNetwork

    X, y, group, _ = people()
    encoder = TableEncoder(missing="encode", max_levels=max_levels, rare="pool")
    model = FTMClassifier(
        NeuralNetwork(epochs=3), encoder=encoder, sensitive_at_prediction=at_prediction,
        random_state=0,
    )  # fmt: skip
    model.fit(X, y, sensitive_features=group)
    new, _, other, _ = people(seed=1)
    new.loc[:5, "town"] = "never seen"
    expected = model.predict_proba(new, sensitive_features=other if at_prediction else None)
    assert np.abs(run(model, new, other) - expected).max() < 1e-6


def test_networks_without_an_encoder_and_of_numbers():
    pytest.importorskip("torch")
    ort = pytest.importorskip("onnxruntime")
    from fairmatch import FTMRegressor, NeuralNetwork

    X, _, group, target = people(missing=False)
    numbers = X[["age", "income"]].to_numpy() / [80.0, 1e4]
    model = FTMRegressor(NeuralNetwork(epochs=3), encoder=None, random_state=0)
    model.fit(numbers, target, sensitive_features=group)
    session = ort.InferenceSession(
        to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    given = {"X": numbers, "sensitive_features": group.astype(object)[:, None]}
    expected = model.predict(numbers, sensitive_features=group)
    assert np.abs(session.run(None, given)[0][:, 0] - expected).max() < 1e-5


def test_an_unknown_group_has_no_score_and_other_models_are_refused(tmp_path):
    X, y, group, _ = people(300)
    model = FTMBoostingClassifier(trees(n_estimators=3), random_state=0)
    model.fit(X, y, sensitive_features=group)
    assert np.isnan(run(model, X[:2], np.array(["f", "q"]))).tolist() == [[False] * 2, [True] * 2]
    path = tmp_path / "model.onnx"
    to_onnx(model, path)
    assert path.stat().st_size > 1000
    with pytest.raises(InputError, match="trees and networks"):
        to_onnx(trees().fit(X[["age"]], y))


@pytest.mark.filterwarnings("ignore")  # MLflow warns of itself
def test_mlflow_serves_the_saved_folder(tmp_path):
    pytest.importorskip("mlflow")
    import mlflow

    X, y, group, _ = people(400, missing=False)
    table = X.drop(columns="code").assign(sex=group)
    inside = FTMBoostingClassifier(trees(n_estimators=5), sensitive_column="sex", random_state=0)
    inside.fit(table, y)
    beside = FTMBoostingClassifier(trees(n_estimators=5), random_state=0)
    beside.fit(table.drop(columns="sex"), y, sensitive_features=group)
    expected = inside.predict_proba(table)[:, 1]
    for name, model, config in (("a", inside, None), ("b", beside, {"sensitive_column": "sex"})):
        mlflow.pyfunc.save_model(
            tmp_path / name,
            loader_module="fairmatch.learning.deploy",
            data_path=str(model.save(tmp_path / f"{name}_model")),
            model_config=config,
            pip_requirements=["fairmatch"],
        )
        found = mlflow.pyfunc.load_model(str(tmp_path / name)).predict(table)
        assert found["score"].to_numpy() == pytest.approx(expected, abs=1e-12)
        assert (found["prediction"] == inside.predict(table)).all()


@pytest.mark.filterwarnings("ignore")  # MLflow warns of itself
def test_the_default_format_of_mlflow_needs_the_listed_types(tmp_path):
    pytest.importorskip("mlflow")
    import mlflow.sklearn
    import skops.io

    X, y, group, _ = people(400, missing=False)
    table = X.drop(columns="code").assign(sex=group)
    model = FTMBoostingClassifier(trees(n_estimators=5), sensitive_column="sex", random_state=0)
    model.fit(table, y)
    types = skops.io.get_untrusted_types(data=skops.io.dumps(model))
    assert {one.split(".")[0] for one in types} <= {"fairmatch", "lightgbm"}
    mlflow.sklearn.save_model(
        model, tmp_path / "model", skops_trusted_types=types, pip_requirements=["fairmatch"]
    )
    found = mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(table)
    assert (found == model.predict(table)).all()


def test_a_served_model_needs_its_groups():
    X, _, group, target = people(300, missing=False)
    model = FTMBoostingRegressor(
        lightgbm.LGBMRegressor(n_estimators=3, n_jobs=1, verbose=-1), random_state=0
    )
    model.fit(X, target, sensitive_features=group)
    with pytest.raises(InputError, match="needs the group"):
        ServedModel(model).predict(X)
    found = ServedModel(model, "sex").predict(X.assign(sex=group))
    assert list(found.columns) == ["prediction"]


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    X, _, group, target = people(200)
    model = FTMBoostingClassifier(trees(n_estimators=2), random_state=0)
    model.fit(X, target > 1.0, sensitive_features=group)
    (tmp_path / "file").touch()
    for write in (model.save, lambda path: to_onnx(model, path)):
        with pytest.raises(OutputFileError, match=r"cannot be written.*Choose another place"):
            write(tmp_path / "file" / "model")
