"""One entry in the registry is a measure everywhere."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import equalized_odds_difference

from fairmatch import (
    FTMBoostingClassifier,
    GapMonitor,
    audit,
    fairness_path,
    find_alternatives,
)
from fairmatch.cli.main import main
from fairmatch.exceptions import InputError
from fairmatch.measures import (
    MEASURES,
    Measure,
    equalized_odds_gap,
    gap_table,
    gaps_by_pair,
    worst_case_odds_gap,
)
from fairmatch.measures.distributions import ScoredPeople, Settings
from fairmatch.measures.intervals import GroupPair, Interval
from fairmatch.people.groups import read_groups
from fairmatch.people.outcome import class_outcome
from fairmatch.people.people import Labels, People
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
    assert gap.expected is gap.detectable is None  # nobody said how medians vary by chance
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


@pytest.fixture
def recall(monkeypatch):
    """The true positive gap under another name."""
    entry = replace(MEASURES["true_positive_gap"], name="recall_gap", symbol="R", title="Recall")
    monkeypatch.setitem(MEASURES, entry.name, entry)


def test_an_added_gap_of_rates_is_withheld_like_the_one_that_it_repeats(recall):
    generator = np.random.default_rng(0)
    y = np.tile(np.repeat([1, 0], [60, 140]), 2)
    few = np.where(y[:200] == 1, np.r_[np.zeros(57), np.ones(143)], generator.random(200) > 0.5)
    scores = np.r_[few, generator.random(200) > 0.5].astype(float)
    group = np.repeat(["a", "b"], 200)
    found = audit(scores, sensitive_features=group, y_true=y, n_resamples=100)
    hidden = found.without_individuals(10)
    assert found.gap("recall_gap").value == found.gap("true_positive_gap").value > 0.3
    assert hidden.gap("recall_gap").value is hidden.gap("true_positive_gap").value is None
    assert hidden.gap("demographic_parity_gap") == found.gap("demographic_parity_gap")


def test_a_gap_that_the_registry_does_not_know_is_withheld_with_any_rate(recall, monkeypatch):
    y = np.tile(np.repeat([1, 0], [60, 140]), 2)
    scores = np.r_[np.where(y[:200] == 1, np.arange(200) < 3, True), np.arange(200) % 2]
    group = np.repeat(["a", "b"], 200)
    found = audit(scores.astype(float), sensitive_features=group, y_true=y, n_resamples=100)
    monkeypatch.delitem(MEASURES, "recall_gap")
    assert found.without_individuals(10).gap("recall_gap").value is None


def test_an_added_gap_of_rates_is_watched_planned_searched_and_followed(recall, people, capsys):
    _, y, group, scores = people
    given = {"sensitive_features": group, "y_true": y}
    monitors = [GapMonitor(0.05, groups=["f", "m"], measure=name)
                for name in ("recall_gap", "true_positive_gap")]  # fmt: skip
    first, second = (own.update(scores, group, y) for own in monitors)
    assert first == second
    assert first.value is not None
    other = {"plain": scores, "fair": np.where(group == "m", scores - 0.1, scores).clip(0, 1)}
    first, second = (find_alternatives(other, gap_measure=name, **given).tried[0].gap
                     for name in ("recall_gap", "true_positive_gap"))  # fmt: skip
    assert first == second
    with pytest.raises(InputError, match="recall_gap"):
        find_alternatives(other, gap_measure="ks_parity_gap", **given)
    asked = ["plan", "--sizes", "500,400", "--positive-share", "0.3"]
    assert main(asked) == 0
    assert "recall_gap" in capsys.readouterr().out
    found = audit(scores, by=np.arange(240) % 2, n_resamples=100, min_group_size=10, **given)
    changes = {one.measure: one.change for one in found.changes}
    assert changes["recall_gap"] == changes["true_positive_gap"]
    assert found.gap("recall_gap").detectable == found.gap("true_positive_gap").detectable
    assert found.gap("recall_gap").expected == pytest.approx(
        found.gap("true_positive_gap").expected, rel=0.1
    )


def test_an_added_distance_has_no_average_by_chance_unless_it_says_one(monkeypatch, people):
    _, _, group, scores = people
    zero = replace(
        MEASURES["ks_parity_gap"],
        name="zero_gap",
        distance=lambda first, second, settings: 0.0,
        chance=None,
        interval=lambda pair, labels, confidence: Interval(0.0, 0.0),
    )
    monkeypatch.setitem(MEASURES, zero.name, zero)
    monkeypatch.setitem(
        MEASURES,
        "half_gap",
        replace(
            zero,
            name="half_gap",
            chance=lambda alike, label: np.array([0.25, 0.75]),
        ),
    )
    found = audit(scores, sensitive_features=group, n_resamples=100, n_sample=50)
    assert found.gap("zero_gap").expected is None
    assert found.gap("half_gap").expected == 0.5
    assert found.gap("ks_parity_gap").expected > 0.0


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


class TestWorstCaseOfTheOdds:
    """The larger one of the two gaps of error rates."""

    def test_it_is_that_of_fairlearn(self):
        rng = np.random.default_rng(0)
        group, y, scores = rng.integers(0, 3, 300), rng.integers(0, 2, 300), rng.random(300)
        expected = equalized_odds_difference(y, scores >= 0.5, sensitive_features=group)
        given = {"sensitive_features": group}
        assert worst_case_odds_gap(y, scores, **given) == pytest.approx(expected)
        assert equalized_odds_gap(y, scores, agg="worst_case", **given) == pytest.approx(expected)
        assert gap_table(y, scores, **given)["worst_case_odds_gap"] == pytest.approx(expected)
        found = gaps_by_pair(y, scores, measure="worst_case_odds_gap", **given)
        for pair in found:
            rows = np.isin(group, [pair.first, pair.second])
            own = equalized_odds_difference(
                y[rows], scores[rows] >= 0.5, sensitive_features=group[rows]
            )
            assert pair.value == pytest.approx(own)

    def test_its_interval_holds_the_true_gap(self):
        # Gaps of .3 and .1: the larger is .3. Both intervals hold at 1 - .05 together.
        rng, held, n = np.random.default_rng(1), 0, 120
        rates = np.array([[0.2, 0.5], [0.6, 0.7]])  # of two groups, within two classes
        for _ in range(200):
            group, y = np.tile([0, 1], n), np.repeat([0, 1], n)
            accepted = (rng.random(2 * n) < rates[y, group]).astype(float)
            people = People(read_groups(group), labels=Labels(y.astype(float), (0, 1)))
            pair = GroupPair(ScoredPeople(people, accepted), (0, 1), 100, lambda _: rng)
            measure = MEASURES["worst_case_odds_gap"]
            found = measure.interval_of(pair, 0.95)
            assert found.low <= measure.value(pair.scored) <= found.high
            held += found.low <= 0.3 <= found.high
        assert held / 200 >= 0.93

    def test_the_limit_of_several_classes_is_that_of_the_largest_gap(self):
        rng = np.random.default_rng(2)
        group, y = rng.integers(0, 2, 600), rng.integers(0, 3, 600)
        outcome = class_outcome(("a", "b", "c"))
        people = People(read_groups(group), labels=Labels(y.astype(float), ("a", "b", "c")))
        scores = rng.dirichlet(np.ones(3), 600) + 0.4 * np.eye(3)[(y == 0) * group]
        scored = ScoredPeople(
            people, scores / scores.sum(axis=1, keepdims=True), Settings(outcome=outcome)
        )
        mean, worst = (
            MEASURES[name].upper_limit(scored, 0.95)
            for name in ("equalized_odds_gap", "worst_case_odds_gap")
        )
        assert mean < MEASURES["worst_case_odds_gap"].value(scored) < worst
