"""One entry in the registry is a measure everywhere."""

import numpy as np
import pandas as pd
import pytest

from fairmatch import FTMBoostingClassifier, audit, fairness_path
from fairmatch.cli.main import main
from fairmatch.measures import MEASURES, Measure, gap_table, gaps_by_pair
from fairmatch.measures.intervals import Interval
from fairmatch.report import GapDisplay, write_report

NAME = "median_parity_gap"


def median(group, settings):
    return float(np.median(group.values))


def bootstrap(pair, labels, confidence):
    """Return a plain percentile interval."""
    generator, tail = pair.stream(7), (1.0 - confidence) / 2.0
    first, second = (
        np.median(generator.choice(own.values, (pair.n_resamples, len(own.values))), axis=1)
        for own in pair.parts(labels[0])
    )
    low, high = np.quantile(np.abs(first - second), [tail, 1.0 - tail])
    return Interval(float(low), float(high), method="percentiles of resampled medians")


@pytest.fixture
def added(monkeypatch):
    words = "difference of the median scores"
    formula = r"|\mathrm{med}(f \mid s) - \mathrm{med}(f \mid s')|"
    entry = Measure(NAME, "ΔMed", "Median scores", words, formula, bootstrap, median, unit="score")
    monkeypatch.setitem(MEASURES, NAME, entry)


@pytest.fixture(scope="module")
def people():
    generator = np.random.default_rng(0)
    group = np.repeat(["f", "m"], 120)
    X = pd.DataFrame(generator.normal(size=(240, 2)), columns=["age", "pay"])
    X["pay"] += 0.8 * (group == "m")
    y = (X["pay"] + generator.normal(size=240) > 0.3).astype(int)
    scores = 1.0 / (1.0 + np.exp(-X["pay"].to_numpy()))
    return X, y, group, scores


def test_an_entry_is_in_tables_audits_reports_and_gates(added, people, tmp_path, capsys):
    X, _, group, scores = people
    wanted = abs(np.median(scores[group == "f"]) - np.median(scores[group == "m"]))
    assert gap_table(None, scores, sensitive_features=group)[NAME] == wanted
    (pair,) = gaps_by_pair(None, scores, sensitive_features=group, measure=NAME)
    assert (pair.value, pair.better_off) == (wanted, "m")
    found = audit(scores, sensitive_features=group, n_resamples=100, n_sample=50)
    gap = found.gap(NAME)
    assert (gap.value, gap.symbol, gap.favoured) == (wanted, "ΔMed", "m")
    assert gap.low < wanted < gap.high
    assert gap.signed == wanted
    page = write_report(found, tmp_path / "report.html").read_text("utf-8")
    assert "Median scores" in page
    assert "difference of the median scores" in page
    assert "Median scores" in str(GapDisplay([found]).plot().chart_.to_dict())
    X.assign(score=scores, sex=group).to_csv(tmp_path / "people.csv", index=False)
    asked = ["audit", str(tmp_path / "people.csv"), "--score", "score", "--sensitive", "sex"]
    assert main([*asked, "--fail-above", f"{NAME}=0.9"]) == 0
    assert main([*asked, "--fail-above", f"{NAME}=0.01", "--gate", "estimate"]) == 1
    assert f"Above the bound: {NAME} of score, {wanted:.4f} > 0.01" in capsys.readouterr().out


def test_an_entry_is_in_curves_and_can_be_bounded(added, people):
    X, y, group, _ = people
    given = {"sensitive_features": group}
    path = fairness_path(X, y, fairness_weights=[0.0, 1.0], **given)
    curve = path.curve(X, y, **given)
    for scores, row in zip(path.scores(X, **given), curve[NAME], strict=True):
        halves = np.median(scores[group == "f"]), np.median(scores[group == "m"])
        assert row == abs(halves[0] - halves[1])
    model = FTMBoostingClassifier(max_gap=0.9, gap_measure=NAME, random_state=0).fit(X, y, **given)
    assert NAME in model.validation_curve_
    assert (model.validation_curve_[NAME] <= 0.9).any()


def test_every_entry_says_what_it_is_and_what_it_needs():
    for name, measure in MEASURES.items():
        assert name == measure.name
        assert measure.symbol
        assert measure.title
        assert measure.words
        assert measure.formula
        assert measure.unit in ("share", "score", "deviation")
        assert (measure.interval is None) == measure.needs_coupling
        assert measure.is_relative == measure.needs_unit == name.startswith("relative_")
