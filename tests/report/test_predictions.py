"""The page of an audit of predictions: what stands on it, and what does not."""

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest

from fairmatch import audit, compare_models
from fairmatch.exceptions import InputError
from fairmatch.report import GapDisplay, sentences, write_report
from fairmatch.report.page import sections

QUICK = {"n_resamples": 100, "n_subsets": 20, "n_sample": 100}


def made(n_rows=180, groups=("f", "m")):
    random = np.random.default_rng(0)
    group = np.tile(groups, n_rows // len(groups))
    X = pd.DataFrame({"age": random.normal(size=n_rows), "job": random.choice(["a", "b"], n_rows)})
    predicted = 30.0 + 8.0 * (group == "m") + random.normal(0.0, 0.5, n_rows)
    return predicted, group, X


@pytest.fixture(scope="module")
def comparison():
    predicted, group, X = made()
    two = pd.DataFrame({"sex": group, "town": np.repeat(["x", "y"], 90)})
    models = {"plain": predicted, "half": predicted / 2.0 + 17.0}
    return compare_models(models, sensitive_features=two, X=X, kind="number", **QUICK)


@pytest.fixture(scope="module")
def words(comparison, tmp_path_factory):
    page = write_report(comparison, tmp_path_factory.mktemp("report") / "report.html")
    text = re.sub(r"<(script|style)\b.*?</\1>", "", page.read_text("utf-8"), flags=re.S)
    return unescape(re.sub(r"<[^>]+>", " ", text))


def test_the_page_says_what_scores_are(words):
    assert "Scores are predictions in units of the target." in words
    assert "Mean prediction of each group" in words
    assert "Predictions of every group" in words
    assert "The order of people against plain" in words
    assert "In standard deviations of the predictions" in words


@pytest.mark.parametrize(
    "absent",
    ["threshold", "Decision", "Flip", "flips", "at or above", "impact", "four-fifths", "calibrat",
     "the one selected", "newly selected", "Share selected", "Accuracy"],
)  # fmt: skip
def test_nothing_on_decisions_is_on_the_page(words, absent):
    assert absent not in words.replace("share at or below", "")


def test_gaps_of_one_unit_share_a_chart(comparison):
    figure = sections(comparison.audits, comparison)["gaps"][0]
    drawn = {
        panel.title: {row["label"] for row in figure.rows if row["panel"] == panel.title}
        for panel in figure.panels
    }
    assert drawn == {
        "In units of the target": {
            "Mean predictions",
            "Distributions of predictions",
            "Matched people",
        },
        "In standard deviations of the predictions": {
            "Mean predictions, relative",
            "Distributions of predictions, relative",
            "Matched people, relative",
        },
        "As a share of the people": {"Distributions of predictions, largest distance"},
    }


def test_the_summary_names_the_means_and_the_difference():
    predicted, group, _ = made()
    found = audit(predicted, sensitive_features=group, y_true=predicted, kind="number", **QUICK)
    means = [predicted[group == name].mean() for name in ("f", "m")]
    gap = means[1] - means[0]
    assert sentences(found)[0].startswith(
        f"For 180 people, the model predicts {means[0]:.3f} for group f and {means[1]:.3f} for "
        f"group m on average, a difference of {gap:.3f}, or {gap / predicted.std():.2f} standard "
        "deviations of the target (95% interval of the difference "
    )


def test_the_summary_of_many_groups_names_the_extremes():
    predicted, group, _ = made(groups=("f", "m", "x"))
    found = audit(predicted, sensitive_features=group, kind="number", **QUICK)
    means = {name: predicted[group == name].mean() for name in "fmx"}
    low = min(means, key=means.get)
    said = sentences(found)[0]
    assert f"predicts means from {means[low]:.3f} for group {low} to {means['m']:.3f}" in said
    assert "interval of the largest difference between two groups:" in said


def test_too_few_people_for_a_statement():
    predicted, group, _ = made()
    found = audit(predicted, sensitive_features=group, kind="number", min_group_size=500, **QUICK)
    assert "no gap is stated" in sentences(found)[0]


def test_predictions_and_probabilities_share_no_page(tmp_path):
    predicted, group, _ = made()
    real = audit(predicted, sensitive_features=group, kind="number", **QUICK)
    plain = audit(predicted / 100.0, sensitive_features=group, **QUICK)
    with pytest.raises(InputError, match="different kinds of scores"):
        write_report([real, plain], tmp_path / "report.html")


def test_a_display_draws_what_has_one_unit():
    predicted, group, _ = made()
    shown = GapDisplay.from_predictions(
        None, predicted, sensitive_features=group, kind="number", **QUICK
    )
    assert [row["label"] for row in shown._rows()] == [
        "Mean predictions",
        "Distributions of predictions",
    ]
