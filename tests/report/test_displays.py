"""Displays: what they compute, in which library they draw, and what they refuse."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score

from fairmatch import FTMBoostingClassifier, fairness_path
from fairmatch.datasets import load_german
from fairmatch.exceptions import InputError
from fairmatch.matching.nearest import matching_curve
from fairmatch.measures import demographic_parity_gap, true_positive_gap
from fairmatch.report import GapDisplay, MatchingDisplay, TradeoffDisplay


@pytest.fixture(scope="module")
def people():
    generator = np.random.default_rng(0)
    group = np.repeat(["a", "b"], 60)
    X = generator.normal(size=(120, 2)) + (group == "b")[:, None]
    y = (X[:, 0] + generator.normal(size=120) > 0.5).astype(int)
    return X, y, group, LogisticRegression().fit(X, y)


def test_the_gaps_are_those_of_the_measures_from_estimator_and_from_predictions(people):
    X, y, group, model = people
    scores = model.predict_proba(X)[:, 1]
    given = {"sensitive_features": group, "n_resamples": 100}
    shown = GapDisplay.from_estimator(model, X, y, **given)
    again = GapDisplay.from_predictions(y, {"LogisticRegression": scores}, **given)
    assert shown.audits == again.audits
    expected = demographic_parity_gap(y, scores, sensitive_features=group)
    assert shown.audits[0].gap("demographic_parity_gap").value == pytest.approx(expected)
    marks = shown.chart_.to_dict(validate=False)
    assert "var(--" not in str(marks)


def test_matplotlib_draws_the_same_numbers_on_the_axes_that_are_given(people):
    X, y, group, model = people
    figure = pytest.importorskip("matplotlib.figure").Figure()
    ax = figure.add_subplot()
    shown = GapDisplay.from_estimator(
        {"one": model, "two": model}, X, y, sensitive_features=group, n_resamples=100, ax=ax
    )
    assert shown.ax_ is ax
    assert shown.figure_ is figure
    drawn = ax.containers[0].lines[0].get_xdata()
    stated = [gap.value for gap in shown.audits[0].gaps if gap.value is not None]
    np.testing.assert_allclose(np.asarray(drawn, dtype=float), stated)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]


@pytest.mark.parametrize("gap", ["demographic_parity_gap", "true_positive_gap"])
def test_the_tradeoff_is_accuracy_against_the_gap(people, gap):
    X, y, group, model = people
    scores = {"it": model.predict_proba(X)[:, 1], "nobody": np.zeros(len(y))}
    shown = TradeoffDisplay.from_predictions(
        y, scores, sensitive_features=group, gap=gap, backend="matplotlib"
    )
    measure = {m.__name__: m for m in (demographic_parity_gap, true_positive_gap)}[gap]
    for name, row in shown.points.set_index("model").iterrows():
        assert row["accuracy"] == accuracy_score(y, scores[name] >= 0.5)
        assert row[gap] == pytest.approx(measure(y, scores[name], sensitive_features=group))
    line = shown.ax_.lines[0]
    np.testing.assert_allclose(line.get_ydata(), shown.points["accuracy"])
    one = TradeoffDisplay.from_estimator(model, X, y, sensitive_features=group, gap=gap)
    assert one.points["model"].tolist() == ["LogisticRegression"]


def test_a_path_is_drawn_with_its_points_joined(people):
    curve = pd.DataFrame(
        {
            "fairness_weight": [2.0, 0.0],
            "accuracy": [0.7, 0.8],
            "demographic_parity_gap": [0.0, 0.2],
        }
    )
    shown = TradeoffDisplay(curve).plot(backend="matplotlib")
    np.testing.assert_allclose(shown.ax_.lines[0].get_xdata(), [0.2, 0.0])  # by weight
    assert shown.plot().chart_ is not None
    with pytest.raises(InputError, match="no column 'accuracy'"):
        TradeoffDisplay(curve.drop(columns="accuracy"))


def test_the_curve_of_a_model_is_that_of_the_matching(people):
    _, y, group, _ = people
    generator = np.random.default_rng(1)
    X, scores = generator.uniform(size=(120, 1)), generator.uniform(size=120)
    X[:2, 0] = 0.0, 1.0  # scaled to [0, 1] already
    shown = MatchingDisplay.from_predictions(
        y, {"m": scores}, sensitive_features=group, X=X, backend="matplotlib"
    )
    expected = matching_curve(scores, group, X)
    np.testing.assert_allclose(shown.curves["m"].cost, expected.cost)
    drawn = shown.ax_.lines[1]  # the mark at the slack at which positions are read
    assert drawn.get_ydata() == pytest.approx(expected.position())


def test_weights_of_the_curve_are_those_of_the_matching(people):
    _, y, group, _ = people
    generator = np.random.default_rng(1)
    X, scores = generator.uniform(size=(120, 1)), generator.uniform(size=120)
    X[:2, 0] = 0.0, 1.0
    weights = generator.integers(1, 4, 120).astype(float)
    shown = MatchingDisplay.from_predictions(
        y, scores, sensitive_features=group, X=X, sample_weight=weights
    )
    expected = matching_curve(scores, group, X, sample_weight=weights)
    np.testing.assert_allclose(shown.curves["model"].cost, expected.cost)
    assert shown.curves["model"].least_gap != matching_curve(scores, group, X).least_gap


def test_a_display_is_one_line_of_names(people):
    X, y, group, model = people
    given = {"sensitive_features": group}
    scores = {"one": model.predict_proba(X)[:, 1], "other": np.linspace(0, 1, 120)}
    gaps = GapDisplay.from_predictions(y, scores, **given, n_resamples=100)
    assert repr(gaps) == "<GapDisplay of 'one', 'other'>"
    assert repr(TradeoffDisplay.from_predictions(y, scores, **given)) == (
        "<TradeoffDisplay of 'one', 'other'>"
    )
    assert repr(MatchingDisplay.from_predictions(y, scores, **given, X=X)) == (
        "<MatchingDisplay of 'one', 'other'>"
    )
    path = pd.DataFrame(
        {"fairness_weight": [0.0, 2.0], "accuracy": [0.8, 0.7], "demographic_parity_gap": [0.2, 0]}
    )
    assert repr(TradeoffDisplay(path)) == "<TradeoffDisplay of 'weight 0', 'weight 2'>"
    assert repr(GapDisplay([])) == "<GapDisplay of no model>"


def test_a_notebook_shows_the_chart(people):
    group = people[2]
    shown = GapDisplay.from_predictions(
        None, [0.9, 0.1] * 60, sensitive_features=group, n_resamples=100
    )
    shown.chart_.to_dict()  # raises unless it is valid Vega-Lite
    bundle = shown._repr_mimebundle_()
    assert any("vega" in kind or "html" in kind for kind in bundle)
    assert list(GapDisplay([])._repr_mimebundle_()) == ["text/plain"]


def test_bad_input_is_named(people):
    X, y, group, _ = people
    with pytest.raises(InputError, match="backend='plotly'"):
        GapDisplay([]).plot(backend="plotly")
    with pytest.raises(InputError, match="no predict_proba"):
        GapDisplay.from_estimator(object(), X, y, sensitive_features=group)
    with pytest.raises(InputError, match="at least one"):
        GapDisplay.from_predictions(y, {}, sensitive_features=group)
    with pytest.raises(InputError, match="X is None"):
        MatchingDisplay.from_predictions(y, y, sensitive_features=group, X=None)
    with pytest.raises(InputError, match="have no matching"):
        TradeoffDisplay.from_predictions(y, y, sensitive_features=group, gap="matched_parity_gap")


def test_no_drawing_library_is_loaded_before_it_is_asked_for():
    code = (
        "import sys, fairmatch.report; "
        "sys.exit(any(name in sys.modules for name in ('matplotlib', 'altair', 'torch')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_several_paths_are_drawn_each_in_its_colour():
    german = load_german()
    given = {"sensitive_features": german.sensitive_features}
    paths = {
        "one": fairness_path(
            german.X,
            german.y,
            **given,
            fairness_weights=[0.0, 2.0],
            estimator=FTMBoostingClassifier(LGBMClassifier(n_estimators=3)),
        )
    }
    paths["two"] = paths["one"].models[1]
    shown = TradeoffDisplay.from_estimator(paths, german.X, german.y, **given)
    assert shown.points["model"].tolist() == ["one", "one", "two"]
    assert shown.points["accuracy"][1] == shown.points["accuracy"][2]
    assert {*shown.chart_.to_dict()["layer"][0]["encoding"]["color"]["scale"]["domain"]} == {*paths}


@pytest.mark.parametrize(("backend", "ending"), [("altair", "svg"), ("matplotlib", "png")])
def test_pictures_are_saved(backend, ending, tmp_path):
    shown = TradeoffDisplay.from_predictions(
        [1, 0, 1, 1], [0.9, 0.2, 0.6, 0.7], sensitive_features=["a", "a", "b", "b"], backend=backend
    )
    file = shown.save(tmp_path / f"picture.{ending}")
    assert file.stat().st_size > 1000
    with pytest.raises(InputError, match="must end in"):
        shown.save(tmp_path / "picture.doc")
