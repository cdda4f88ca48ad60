"""Impact ratios against fairlearn, SciPy and a table written out by hand."""

import csv

import numpy as np
import pandas as pd
import pytest
from fairlearn import metrics as fl
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fairmatch import audit, group_probabilities
from fairmatch.auditing.files import audit_files
from fairmatch.auditing.impact import weighted_median, write_tables
from fairmatch.exceptions import InputError
from fairmatch.people.roles import Roles
from fairmatch.people.weights import Weights

QUICK = {"n_resamples": 100}


@pytest.fixture(scope="module")
def people():
    generator = np.random.default_rng(3)
    n = 1500
    table = pd.DataFrame(
        {
            "sex": generator.choice(["female", "male"], n),
            "race": generator.choice(
                ["Asian", "Black", "White", "Other"], n, p=[0.2, 0.3, 0.49, 0.01]
            ),
        }
    )
    scores = generator.beta(2, 2, n) * np.where(table.race == "White", 1.0, 0.85)
    table.loc[:49, "race"] = None
    return table, scores.clip(0, 1)


@pytest.fixture(scope="module")
def found(people):
    table, scores = people
    return audit(scores, sensitive_features=table, **QUICK)


def test_rates_and_ratios_are_those_of_fairlearn(people, found):
    table, scores = people
    sex, race, both = found.impact
    assert [t.attributes for t in found.impact] == [("sex",), ("race",), ("sex", "race")]
    frame = fl.MetricFrame(
        metrics=fl.selection_rate, y_true=scores > 0.5, y_pred=scores >= 0.5,
        sensitive_features=table.sex,
    )  # fmt: skip
    for category in sex.categories:
        assert category.selection_rate.value == pytest.approx(frame.by_group[category.category])
    ratios = [category.impact_ratio.value for category in sex.categories]
    assert min(ratios) == pytest.approx(frame.ratio())
    assert max(ratios) == 1.0
    assert (race.n_unknown, both.n_unknown, sex.n_unknown) == (50, 50, 0)
    assert race.n_people == 1450
    assert both.categories[0].values == ("female", "Asian")


def test_the_scoring_rate_is_above_the_median_of_everybody(people, found):
    table, scores = people
    median = np.median(scores)
    race = found.impact[1]
    assert race.median_score == pytest.approx(median)
    rates = {r: (scores[table.race == r] > median).mean() for r in ("Asian", "Black", "White")}
    for category in race.categories:
        if category.category in rates:
            assert category.scoring_rate.value == pytest.approx(rates[category.category])
            assert category.scoring_ratio.value == pytest.approx(
                rates[category.category] / rates["White"]
            )
    assert race.highest_scoring == "White"


def test_small_categories_are_marked_and_shown_and_compare_nobody(people, found):
    race = found.impact[1]
    small = [category.category for category in race.categories if category.is_small]
    assert small == ["Other"]
    assert race.most_selected != "Other"
    other = next(c for c in race.categories if c.is_small)
    assert other.impact_ratio.low <= other.impact_ratio.value <= other.impact_ratio.high


def test_four_fifths_and_the_test_stand_beside_each_ratio():
    # 48 of 80 and 12 of 40: a ratio of one half, by hand.
    scores = np.repeat([0.9, 0.1, 0.9, 0.1], [48, 32, 12, 28])
    (table,) = audit(scores, sensitive_features=["a"] * 80 + ["b"] * 40, **QUICK).impact
    first, second = table.categories
    assert (first.n_people, first.n_selected) == (80, 48)
    assert (first.impact_ratio.value, first.below_four_fifths, first.p_value) == (1.0, False, None)
    assert second.impact_ratio.value == pytest.approx(0.5)
    assert second.below_four_fifths
    assert second.p_value == pytest.approx(stats.fisher_exact([[48, 32], [12, 28]])[1])
    assert second.impact_ratio.low < 0.5 < second.impact_ratio.high < 1.0


def test_the_tests_of_american_practice_stand_in_one_table(tmp_path):
    # By hand: 48 of 80, 12 of 40 and 27 of 60.
    scores = np.repeat([0.9, 0.1] * 3, [48, 32, 12, 28, 27, 33])
    groups = np.repeat(["a", "b", "c"], [80, 40, 60])
    found = audit(scores, sensitive_features=groups, **QUICK)
    most, second, third = found.impact[0].categories
    assert (most.standard_deviations, most.shortfall, most.flips) == (None, None, None)
    pooled = 60 / 120
    z = (12 / 40 - 48 / 80) / np.sqrt(pooled * (1 - pooled) * (1 / 40 + 1 / 80))
    assert second.standard_deviations == pytest.approx(z)
    p = stats.fisher_exact([[48, 32], [12, 28]])[1]
    assert second.exact_standard_deviations == pytest.approx(stats.norm.ppf(p / 2))
    assert 2 * stats.norm.sf(-second.exact_standard_deviations) == pytest.approx(second.p_value)
    assert second.shortfall == pytest.approx(12.0)  # 24 of 40 would be three fifths
    assert third.shortfall == pytest.approx(9.0)
    assert second.p_adjusted == pytest.approx(2 * second.p_value)
    assert third.p_adjusted == pytest.approx(max(third.p_value, 2 * second.p_value))
    assert not second.flips
    with write_tables([found], tmp_path)[0].open(newline="") as stream:
        rows = {row["group"]: row for row in csv.DictReader(stream)}
    assert rows["b"]["standard deviations from the rate compared with (z)"] == f"{z:.2f}"
    assert rows["b"]["shortfall: selections to the rate compared with"] == "12.0"
    assert rows["b"]["one selection changes the four-fifths verdict"] == "no"
    assert rows["a"]["shortfall: selections to the rate compared with"] == ""


def test_one_selection_may_change_the_verdict():
    # 19 of 40 against 48 of 80: a ratio of 0.792; with 20 of 40 it would be 0.833.
    scores = np.repeat([0.9, 0.1] * 2, [48, 32, 19, 21])
    (table,) = audit(scores, sensitive_features=["a"] * 80 + ["b"] * 40, **QUICK).impact
    assert table.categories[1].below_four_fifths
    assert table.categories[1].flips


def test_four_of_six_people_do_not_show_a_ratio_above_one():
    # 4 of 6 and 260 of 398: nearly the same rate, and six people say little.
    scores = np.repeat([0.9, 0.1, 0.9, 0.1], [4, 2, 260, 138])
    (table,) = audit(scores, sensitive_features=["few"] * 6 + ["many"] * 398, **QUICK).impact
    few = next(category for category in table.categories if category.is_small)
    assert few.impact_ratio.value > 1.0
    assert few.impact_ratio.low < 0.8
    assert few.impact_ratio.high > 1.2
    assert few.p_value == pytest.approx(stats.fisher_exact([[4, 2], [260, 138]])[1])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=12))
def test_the_median_of_counts_is_that_of_people(pairs):
    values, counts = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    expected = np.median(np.repeat(values, counts.astype(int)))
    assert weighted_median(values, Weights(len(values), counts, is_counts=True)) == expected


def test_decisions_have_no_scoring_rate():
    (table,) = audit([0.0, 1.0] * 50, sensitive_features=["a", "a", "b", "b"] * 25, **QUICK).impact
    assert table.median_score is None
    assert table.categories[0].scoring_rate is None


def test_low_scores_that_are_good_are_below_the_median():
    scores = np.r_[np.full(40, 0.2), np.full(40, 0.6), np.full(40, 0.9)]
    groups = ["a"] * 40 + ["b"] * 80
    (table,) = audit(scores, sensitive_features=groups, favourable="low", **QUICK).impact
    assert [c.scoring_rate.value for c in table.categories] == [1.0, 0.0]


def test_the_files_hold_every_category_and_what_they_are(people, found, tmp_path):
    files = write_tables([found], tmp_path / "filed")
    names = ["sex.csv", "race.csv", "sex_race.csv", "summary.csv"]
    assert [file.name for file in files] == names
    with files[1].open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["race"] for row in rows] == ["Asian", "Black", "Other", "White", "unknown"]
    assert rows[-1]["number of people"] == "50"
    assert [row["less than 2% of the people"] for row in rows[:-1]] == ["no", "no", "yes", "no"]
    assert sum(int(row["number of people"]) for row in rows) == 1500
    summary = dict(csv.reader(files[3].read_text().splitlines()))
    assert "6 April 2023" in summary["vocabulary"]
    assert "no threshold" in summary["four fifths"]
    two = write_tables([found, found], tmp_path / "both")
    assert {file.parent.name for file in two} == {"model", "model_2"}


def test_weighted_rates_stand_beside_the_weights_they_are_taken_of(tmp_path):
    generator = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "group": np.repeat(["f", "m"], [25, 60]),
            "score": generator.random(85).round(2),
            "pay": generator.uniform(0.5, 3.0, 85).round(2),
        }
    )
    table.to_csv(tmp_path / "people.csv", index=False)
    roles = Roles(scores=["score"], sensitive="group", weight="pay")
    found = audit_files([str(tmp_path / "people.csv")], roles, **QUICK)
    file, summary = write_tables([found], tmp_path / "filed")
    with file.open(newline="") as stream:
        rows = {row["group"]: row for row in csv.DictReader(stream)}
    assert set(rows["unknown"]) == set(rows["f"])
    for group in ("f", "m"):
        row = rows[group]
        own = table[table.group == group]
        assert float(row["weight of the people"]) == pytest.approx(own.pay.sum())
        rate = float(row["weight of the selected"]) / float(row["weight of the people"])
        assert float(row["selection rate"]) == pytest.approx(rate, abs=1e-4)
        kish = own.pay.sum() ** 2 / (own.pay**2).sum()
        assert float(row["effective number of people"]) == pytest.approx(kish, abs=1e-4)
    few = "too few people for a statement of the audit"
    assert (rows["f"][few], rows["m"][few]) == ("yes", "no")
    said = dict(csv.reader(summary.read_text().splitlines()))
    assert "weighted by the column 'pay'" in said["weights"]
    assert "fewer than 30 people" in said["too few people"]


def test_people_of_weight_one_have_no_weighted_columns(found, tmp_path):
    files = write_tables([found], tmp_path)
    assert "weight" not in files[0].read_text()
    assert "weights" not in files[-1].read_text()


def test_the_summary_names_all_that_are_selected_most(tmp_path):
    # 30 of 60 in two categories, fewer in the third, and all of one that is too small.
    scores = np.repeat([0.9, 0.1] * 3 + [0.9], [30, 30, 15, 15, 20, 40, 2])
    groups = np.repeat(["a", "b", "c", "d"], [60, 30, 60, 2])
    found = audit(scores, sensitive_features=groups, **QUICK)
    summary = write_tables([found], tmp_path)[-1].read_text()
    said = dict(csv.reader(summary.splitlines()))
    assert said["most selected by group among categories that are large enough"] == "a; b"
    known = np.isin(groups, ["a", "c"])
    found = audit(scores[known], sensitive_features=groups[known], **QUICK)
    said = dict(csv.reader(write_tables([found], tmp_path)[-1].read_text().splitlines()))
    assert said["most selected by group"] == "a"


@pytest.mark.parametrize("blank", [None, "unknown"])
def test_people_written_as_unknown_are_of_unknown_category(people, blank, tmp_path):
    table, scores = people
    given = table.assign(race=table.race.where(table.race.notna(), blank))
    given.loc[50:79, "race"] = "unknown"
    found = audit(scores, sensitive_features=given, **QUICK)
    sex, race, both = found.impact
    assert (sex.n_unknown, race.n_unknown, both.n_unknown) == (0, 80, 80)
    assert "unknown" not in [category.category for category in race.categories]
    rows = write_tables([found], tmp_path)[1].read_text().splitlines()
    assert [row[:10] for row in rows if row.startswith("unknown")] == ["unknown,80"]
    note, _ = found.notes
    assert note.startswith(f"For {80 if blank else 30} people 'race' is written 'unknown'.")
    alone = audit(scores, sensitive_features=given.race, **QUICK)
    assert alone.impact[0].n_unknown == 80
    assert alone.unknown == ("unknown",)


def test_a_category_that_looks_like_a_formula_is_text(tmp_path):
    found = audit([0.2, 0.8] * 60, sensitive_features=["=1+1", "b"] * 60, **QUICK)
    text = write_tables([found], tmp_path)[0].read_text()
    assert "'=1+1" in text


def test_a_withheld_weight_leaves_its_cell_empty(tmp_path):
    rng = np.random.default_rng(3)
    group, score = np.repeat(["a", "b"], [300, 60]), rng.random(360)
    score[300:] = np.where(np.arange(60) < 4, 0.9, 0.1)
    found = audit(score, sensitive_features=group, sample_weight=rng.uniform(1, 2, 360), **QUICK)
    write_tables([found.without_individuals(10)], tmp_path)
    rows = list(csv.reader((tmp_path / "group.csv").read_text(encoding="utf-8").splitlines()))
    few = dict(zip(rows[0], rows[2], strict=True))
    assert few["weight of the selected"] == ""
    assert float(few["effective number of people"]) < float(few["weight of the people"])


def test_estimated_groups_have_no_rates_to_file(tmp_path):
    rng = np.random.default_rng(3)
    groups = group_probabilities(pd.DataFrame(rng.dirichlet([1, 1], 200), columns=["a", "b"]))
    found = audit(rng.random(200), sensitive_features=groups, **QUICK)
    with pytest.raises(InputError, match="are probabilities"):
        write_tables([found], tmp_path)
