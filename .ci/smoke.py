"""Use an installed fairmatch a little, as much as an extra allows: ``python smoke.py [EXTRA]``."""

import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import fairmatch
from fairmatch import audit, fair_matching
from fairmatch.datasets import load_german
from fairmatch.exceptions import MissingExtraError
from fairmatch.measures import gap_table

EXTRA = sys.argv[1] if len(sys.argv) > 1 else ""
ASKED = EXTRA.split(",")
ACTIONS = ("boost", "train", "report", "stream", "onnx", "skops", "mlflow")
BROAD = {"all": ACTIONS, "paper": ACTIONS[:3], "mlflow": ("skops", "mlflow")}
HAS = {action for asked in ASKED for action in BROAD.get(asked, [asked])}
german = load_german()
given = {"sensitive_features": german.sensitive_features}


def core() -> None:
    """Measure, match and audit."""
    scores = german.X["duration_months"] / german.X["duration_months"].max()
    assert gap_table(german.y, scores, **given)["mean_parity_gap"] > 0
    assert fair_matching(scores, german.sensitive_features).gap(scores) > 0
    assert audit(scores, X=german.X, y_true=german.y, n_resamples=100, **given).n_rows == 1000
    # What a shell asks for after "fairmatch au".
    asked = {
        "_FAIRMATCH_COMPLETE": "bash_complete",
        "COMP_WORDS": "fairmatch au",
        "COMP_CWORD": "1",
    }
    command = Path(sys.executable).with_name("fairmatch")
    told = subprocess.run([command], env={**os.environ, **asked}, capture_output=True, text=True)
    assert "audit" in told.stdout
    if EXTRA == "":
        assert not {"torch", "lightgbm", "altair"} & set(sys.modules)


def boost() -> None:
    """Train trees, save and load them."""
    from lightgbm import LGBMClassifier

    trees = LGBMClassifier(n_estimators=5)
    model = fairmatch.FTMBoostingClassifier(trees).fit(german.X, german.y, **given)
    with tempfile.TemporaryDirectory() as folder:
        again = fairmatch.load(model.save(Path(folder) / "model"))
    assert (again.predict(german.X, **given) == model.predict(german.X, **given)).all()


def train() -> None:
    """Train a network."""
    network = fairmatch.NeuralNetwork(epochs=2)
    fairmatch.FTMClassifier(network, random_state=0).fit(german.X, german.y, **given)


def report() -> None:
    """Write a report."""
    from fairmatch.report import write_report

    with tempfile.TemporaryDirectory() as folder:
        found = audit(german.y, X=german.X, n_resamples=100, **given)
        assert write_report(found, Path(folder) / "report.html").stat().st_size > 100_000


def stream() -> None:
    """Audit a folder of Parquet files, which is read piece by piece."""
    with tempfile.TemporaryDirectory() as folder:
        scores = german.X[["duration_months"]] / german.X["duration_months"].max()
        people = scores.assign(sex=german.sensitive_features.astype(str))
        people.to_parquet(Path(folder) / "people.parquet")
        command = [sys.executable, "-m", "fairmatch", "audit", folder, "--score", "duration_months"]
        subprocess.run([*command, "--sensitive", "sex"], check=True, stdout=subprocess.DEVNULL)


def onnx() -> None:
    """Turn trees into an ONNX graph and let onnxruntime run it."""
    import onnxruntime

    X = german.X.select_dtypes("number")
    model = fairmatch.FTMBoostingClassifier(random_state=0).fit(X, german.y, **given)
    graph = fairmatch.to_onnx(model).SerializeToString()
    session = onnxruntime.InferenceSession(graph)
    columns = {name: X[name].to_numpy(float)[:, None] for name in X}
    columns["sensitive_features"] = german.sensitive_features.to_numpy(object)[:, None]
    (chances,) = session.run(
        ["probabilities"], {one.name: columns[one.name] for one in session.get_inputs()}
    )
    assert abs(chances - model.predict_proba(X, **given)).max() < 1e-6


def wrapped() -> fairmatch.QuantileAlignmentClassifier:
    """Return a wrapper of a scikit-learn model, fitted."""
    from sklearn.linear_model import LogisticRegression

    model = fairmatch.QuantileAlignmentClassifier(LogisticRegression())
    return model.fit(german.X[["duration_months"]], german.y, **given)


def skops() -> None:
    """Save a wrapper of a scikit-learn model, and load it."""
    model = wrapped()
    with tempfile.TemporaryDirectory() as folder:
        again = fairmatch.load(model.save(Path(folder) / "model"))
    X = german.X[["duration_months"]]
    assert (again.predict(X, **given) == model.predict(X, **given)).all()


def mlflow() -> None:
    """Write a wrapper as a pyfunc with the group in the table, load it and predict."""
    import mlflow.pyfunc as pyfunc

    table = german.X[["duration_months"]].assign(sex=german.sensitive_features)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        pyfunc.save_model(
            home / "served",
            loader_module="fairmatch.learning.deploy",
            data_path=str(wrapped().save(home / "model")),
            model_config={"sensitive_column": "sex"},
            pip_requirements=["fairmatch"],
        )
        found = pyfunc.load_model(str(home / "served")).predict(table)
    expected = wrapped().predict_proba(table[["duration_months"]], **given)[:, 1]
    assert abs(found["score"] - expected).max() < 1e-12


core()
for action in ACTIONS:
    if action in HAS:
        globals()[action]()
needs = {"boost": ("FTMBoostingClassifier", "lightgbm"), "train": ("FTMClassifier", "torch")}
for name, (public, library) in needs.items():
    if find_spec(library) is None:
        try:
            getattr(fairmatch, public)
        except MissingExtraError as error:
            told = f"fairmatch[{name}]" in str(error)
        else:
            told = False
        assert told, f"{public} without {library} does not say how to install it"
print(f"fairmatch {fairmatch.__version__} with {EXTRA or 'the core'}: works")
