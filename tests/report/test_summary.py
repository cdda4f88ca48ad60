"""The sentences of the summary: tables whose truth is known, and what is said of them."""

import re
from dataclasses import replace
from html import escape

import numpy as np
import pandas as pd
import pytest

from fairmatch import audit
from fairmatch.auditing.facts import Condition, Estimate, SubsetGap
from fairmatch.people.leaks import Leak
from fairmatch.report import sentences, write_filing, write_report
from fairmatch.report.drawing import dots, ticks
from fairmatch.report.figures import people_flow, subset_figure
from fairmatch.report.page import _is_apart
from fairmatch.report.wording import (
    _random_difference,
    column_words,
    group_words,
    leak_sentence,
    listed,
    shown_name,
    shown_number,
    subset_name,
    told_apart,
)

QUICK = {"n_resamples": 100, "n_subsets": 20}


def scores_of(rates, n=100):
    """Scores and groups: of each group of n people so many per cent are selected."""
    scores, groups = [], []
    for name, rate in rates.items():
        scores += [0.9] * round(rate * n) + [0.1] * (n - round(rate * n))
        groups += [name] * n
    return np.array(scores), np.array(groups)


def said(scores, groups, **options):
    return sentences(audit(scores, sensitive_features=groups, **QUICK, **options))


class TestSelection:
    def test_two_groups_with_their_rates_and_the_difference(self):
        first = said(*scores_of({"a": 0.8, "b": 0.3}))[0]
        assert first.startswith(
            "Of 200 people, 80.0% of the 100 in group a and 30.0% of the 100 in group b are "
            "selected by the model, a difference of 50.0 percentage points (95% interval "
        )
        assert "cannot be ruled out" not in first
        assert "pairs of groups" not in first

    def test_rates_that_hardly_differ_do_not_rule_out_that_there_is_no_difference(self):
        near, equal = (said(*scores_of({"a": 0.5, "b": other}))[0] for other in (0.52, 0.5))
        assert "no difference at all cannot be ruled out" in near
        assert "a difference of 0.0 percentage points (95% interval 0.0 to" in equal
        assert "ruled out" not in equal  # there is none to rule out

    def test_the_larger_group_comes_first(self):
        scores = np.array([0.9] * 40 + [0.1] * 60)
        first = said(scores, ["small"] * 40 + ["large"] * 60)[0]
        assert first.index("group large") < first.index("group small")

    def test_the_model_is_called_by_its_name(self):
        scores, groups = scores_of({"a": 0.8, "b": 0.3})
        assert "are selected by “credit 7”" in said(scores, groups, model_name="credit 7")[0]

    def test_many_groups_run_from_the_least_to_the_most_selected(self):
        first = said(*scores_of({"b": 0.5, "c, d": 0.2, "a": 0.7, "e": 0.6}))[0]
        assert first.startswith(
            "Of 400 people in 4 groups, the share selected by the model runs from 20.0% "
            "(“c, d”, 100 people) to 70.0% (a, 100 people), a difference of 50.0 percentage points"
        )
        assert "interval of the largest difference between two groups:" in first
        assert "too few" not in first
        assert "unknown" not in first

    def test_groups_too_small_are_counted_apart(self):
        scores, groups = scores_of({"a": 0.5, "b": 0.2, "c": 0.7})
        scores, groups = np.append(scores, [0.9] * 5), np.append(groups, ["few"] * 5)
        first = said(scores, groups)[0]
        assert (
            "in 4 groups, the share selected by the model in 3 of them runs from 20.0% "
            "(b, 100 people) to 70.0% (c, 100 people)"
        ) in first
        assert first.endswith("Too few people for a statement: few (5 people).")

    def test_people_of_unknown_group_are_counted_and_not_compared(self):
        scores, groups = scores_of({"a": 0.5, "b": 0.2})
        scores, groups = np.append(scores, [0.9] * 40), np.append(groups, [None] * 40)
        first = said(scores, groups)[0]
        assert "50.0% of the 100 in group a and 20.0% of the 100 in group b" in first
        assert first.endswith("40 people of unknown group are counted and not compared.")

    def test_a_group_too_small_leaves_the_gap_unstated(self):
        first = said([0.9, 0.1] * 30, ["few"] * 5 + ["many"] * 55)[0]
        assert "an unstated share of the 5 in group few" in first
        assert "no gap is stated, because: Group 'few' has 5" in first
        assert "percentage points" not in first

    def test_rates_below_four_fifths_are_told_beside_the_highest(self):
        first = said(*scores_of({"a": 0.5, "b": 0.2, "c": 0.7, "d": 0.6}))[0]
        assert (
            "The rates of b (0.29) and a (0.71) are below four fifths of the rate of c (impact "
            "ratios in brackets)."
        ) in first
        first = said(*scores_of({"a": 0.5, "b": 0.2}))[0]
        assert "The rate of b (0.40) is below four fifths of the rate of a (impact ratio" in first
        assert "four fifths" not in said(*scores_of({"a": 0.5, "b": 0.45}))[0]

    def test_people_with_the_same_factors_are_compared(self):
        scores, groups = scores_of({"a": 0.5, "b": 0.2, "c": 0.7})
        job = np.resize(["cook", "clerk"], len(scores))
        found = audit(scores, sensitive_features=groups, given={"job_title": job}, **QUICK)
        one = max(found.conditional, key=lambda own: abs(own.value))
        other = {name: scores[groups == name].mean() for name in "abc"}
        assert (one.group, one.reference) == ("b", "a")
        within = np.mean([
            np.mean(scores[(groups == "b") & (job == own)] > 0.5)
            - np.mean(scores[(groups == "a") & (job == own)] > 0.5)
            for own in ("cook", "clerk")
        ])  # fmt: skip
        assert other["b"] < other["a"] < other["c"]
        assert (
            "Among people with the same job title, b differs most from a: its rate is "
            f"{-100 * within:.1f} percentage points lower on average than that of a (95% interval "
            f"{100 * one.adjusted.low:.1f} to {100 * one.adjusted.high:.1f}); among all people it "
            "is 30.0 percentage points lower."
        ) in sentences(found)[0]
        two = np.isin(groups, ["a", "b"])
        found = audit(40 + 10 * scores[two], sensitive_features=groups[two], given=job[two],
                      kind="number", **QUICK)  # fmt: skip
        words = "the mean prediction of b is 2.400 lower on average than that of a (95% interval"
        assert words in sentences(found)[0]

    def test_both_ends_of_a_range_are_named_together(self):
        ends = [Condition("wage", "<=", 3005.0), Condition("job", "=", "cook")]
        ends.append(Condition("wage", ">", 2630.0))
        subset = SubsetGap("cooks", tuple(ends), (9, 9), 0.1, 0.1, Estimate(0.1), "search")
        assert subset_name(subset) == "wage is above 2630 and at most 3005 and job is cook"

    def test_labels_are_told_in_their_own_words(self):
        scores, groups = scores_of({"a": 0.8, "b": 0.3})
        labels = np.tile([1, 1, 0, 0, 0], 40)
        found = audit(scores, sensitive_features=groups, y_true=labels, **QUICK)
        missed = [1 - np.mean(scores[(groups == g) & (labels == 1)] > 0.5) for g in "ab"]
        first = sentences(found, label_words=("reoffended", "did not reoffend"))[0]
        assert (
            f"Of the people with the label “did not reoffend”, {missed[1]:.1%} in group b and "
            f"{missed[0]:.1%} in group a are not selected."
        ) in first

    @pytest.mark.parametrize(
        ("labels", "words"),
        [
            (("did not reoffend", "reoffended"), "the label “reoffended”"),
            (("<b>no</b>", "<i>yes</i>"), "the label “<i>yes</i>”"),
            (("0", "1"), "a positive label"),  # texts that say nothing
            ((0, 1), "a positive label"),
            ((False, True), "a positive label"),
        ],
    )
    def test_labels_that_are_words_are_called_by_them(self, labels, words, tmp_path):
        scores, groups = scores_of({"a": 0.8, "b": 0.3})
        y = [labels[k] for k in np.tile([1, 1, 0, 0, 0], 40)]
        given = {"sensitive_features": groups, "y_true": y, "pos_label": labels[1], **QUICK}
        found = audit(scores, **given)
        assert f"Of the people with {words}, " in sentences(found)[0]
        assert "with the label “left”, " in sentences(found, label_words=("stayed", "left"))[0]
        page = write_report(found, tmp_path / "r.html").read_text("utf-8")
        assert f"Share with {escape(words)}" in page
        assert ("positive label" in page) == (words == "a positive label")
        assert "<i>yes" not in page
        few = audit(scores, **{**given, "y_true": [*[labels[0]] * 190, *[labels[1]] * 10]})
        said_of = repr(labels[1]) if "“" in words else "positive"
        assert any(f"{said_of}" in reason for reason in few.refusals)
        low = audit(scores, favourable="low", **given)
        other = labels[0] if "“" in words else "negative"
        assert f"{other}{'”' if '“' in words else ' label'}, " in sentences(low)[0]


class TestMatching:
    def test_without_features_only_the_scores_are_spoken_of(self):
        scores = np.tile(np.linspace(0.1, 0.6, 50), 2)
        scores[50:] += 0.25
        second = said(scores, ["a"] * 50 + ["b"] * 50)[1]
        assert "scores that differ by 0.250 on average" in second
        assert "their similarity is unknown" in second

    def test_nobody_is_matched_where_a_group_is_too_small(self):
        second = said([0.9, 0.1] * 30, ["few"] * 5 + ["many"] * 55)[1]
        assert second.startswith("Nobody was matched, because: Group 'few' has 5")

    def test_people_who_are_all_the_same_leave_nothing_to_say(self):
        X = pd.DataFrame({"x": np.zeros(100)})
        second = said(np.linspace(0, 1, 100), ["a", "b"] * 50, X=X)[1]
        assert second.endswith(
            "Any other pairs would be just as similar, so this carries no information."
        )

    def test_people_scored_by_what_they_are_are_matched_with_their_twins(self):
        X = pd.DataFrame({"x": np.tile(np.linspace(0, 1, 60), 2)})
        assert said(X["x"] * 0.6, ["a"] * 60 + ["b"] * 60, X=X)[1] == (
            "People of group b are paired with people of group a so that the two scores of a pair "
            "are as close as possible (0.000 apart on average). The people of a pair are as "
            "similar as any pairing could make them."
        )

    def test_opposite_scores_pair_people_who_are_less_similar_than_chance(self):
        x = np.tile(np.linspace(0, 1, 100), 2)
        group = np.repeat(["a", "b"], 100)
        found = audit(
            np.where(group == "a", x, 1.0 - x),
            sensitive_features=group, X=pd.DataFrame({"pay_grade": x}), **QUICK,
        )  # fmt: skip
        # x is paired with 1 - x, which is |2x - 1| away: 1/2 on average, and 1/3 at random.
        second = sentences(found)[1]
        own, near, chance = map(float, re.findall(r"\d\.\d+|\b0\b", second)[-3:])
        assert "are even less similar than people paired at random. They differ more" in second
        assert "mainly in pay grade (" in second
        assert (own, near, chance) == pytest.approx((0.5, 0.0, 1 / 3), abs=0.02)

    def test_of_several_columns_the_one_that_the_model_uses_differently_is_named(self):
        generator = np.random.default_rng(0)
        people = pd.DataFrame(generator.integers(0, 2, (200, 3)), columns=["used", "p", "q"])
        people["used"] = np.arange(200) % 2
        X = pd.concat([people, people], ignore_index=True).astype(str)
        group = np.repeat(["a", "b"], 200)
        # Everybody has a twin, but one group is scored for "used" and the other against it.
        scores = np.where(group == "a", X["used"] == "1", X["used"] == "0").astype(float)
        second = said(scores, group, X=X)[1]
        assert re.search(
            r"They differ more than necessary mainly in used \((9\d|100)% of the pairs instead of "
            r"0%; 50% if paired at random\)",
            second,
        )

    def test_columns_are_told_with_what_the_pairs_show(self):
        x = np.tile(np.linspace(0, 1, 60), 2)
        group = np.repeat(["a", "b"], 60)
        town = np.where(group == "a", "x", "y")  # no partner can share it
        X = pd.DataFrame({"town": town, "x": x})
        found = audit(x, sensitive_features=group, X=X, keep=["town"], **QUICK)
        assert (
            "They mainly differ in town (100% of the pairs; 100% if paired at random)."
        ) in sentences(found)[1]
        assert sentences(found.without_individuals())[1].endswith("They mainly differ in town.")

    @pytest.mark.parametrize("real", [True, False])
    def test_random_partners_differ_as_all_pairs_of_them_do(self, real):
        generator = np.random.default_rng(0)
        values = generator.integers(0, 5, 40).astype(float)
        first, second = np.arange(20), np.arange(20, 40)
        mass = generator.uniform(size=20)
        mass /= mass.sum()
        gaps = values[first][:, None] - values[second]
        gaps = np.abs(gaps) if real else gaps != 0
        assert _random_difference(values, (first, second, mass), real) == pytest.approx(
            mass @ gaps @ mass
        )

    @pytest.mark.parametrize(("factor", "named"), [(1.0, "c"), (0.5, "b")])
    def test_of_many_groups_that_of_the_finding_is_named(self, factor, named):
        """It is that of the lowest rate, or of the least similar pairs where no rate differs."""
        x = np.tile((np.arange(60) + 0.5) / 60, 3)
        group = np.repeat(["a", "b", "c"], 60)
        scores = np.where(group == "c", 1.0 - x, np.where(group == "b", factor * x, x))
        found = audit(scores, sensitive_features=group, X=pd.DataFrame({"x": x}), reference="a",
                      **QUICK)  # fmt: skip
        assert found.gap("demographic_parity_gap").value == pytest.approx(1.0 - factor)
        assert f"of group {named} are paired with people of group a" in sentences(found)[1]
        assert _is_apart(found) == (named == "c")

    def test_decile_scores_have_a_position_too(self):
        generator = np.random.default_rng(0)
        X = pd.DataFrame({"x": generator.uniform(size=300)})
        deciles = np.ceil(10 * X["x"]).clip(1, 10) / 10
        second = said(deciles, generator.choice(["a", "b"], 300), X=X)[1]
        assert "tied" not in second
        assert "The people of a pair are as similar as any pairing could make them." in second


@pytest.mark.parametrize(
    ("leak", "words"),
    [
        (("race", "copy", None, None, 1.0), "The column race is the same as the group."),
        (("pay_grade", "determines", "sex", None, 1.0), "The column “pay grade” determines sex."),
        (
            ("zip", "near", "race", "Asian", 0.934),
            "The column zip nearly determines race Asian (agreement beyond chance 93.4%).",
        ),
    ],
)
def test_columns_that_give_the_group_away_are_told_in_a_sentence(leak, words):
    assert leak_sentence(Leak(*leak)).startswith(
        f"{words} If it counts in the distance between two "
    )


def test_notes_come_after_the_findings(tmp_path):
    scores, group = scores_of({"a": 0.8, "b": 0.3})
    X = pd.DataFrame({"race": group, "x": np.arange(200) % 7})
    found = audit(scores, sensitive_features=group, X=X, keep=["race"], **QUICK)
    for write in (write_report, write_filing):
        text = write(found, tmp_path / "r.html").read_text("utf-8")
        assert text.index("Of 200 people") < text.index("The column race is the same as the group.")
        assert "column &#39;race&#39; is the group" not in text


class TestSubsets:
    def test_without_features_none_were_searched(self):
        third = said(*scores_of({"a": 0.8, "b": 0.3}))[2]
        assert third.startswith("Without features no subsets were searched")

    def test_a_planted_gap_is_found_where_it_is(self):
        generator = np.random.default_rng(0)
        n_rows = 2000
        X = pd.DataFrame(
            {
                "home_town": generator.choice(["x", "y"], n_rows),
                "noise": generator.normal(size=n_rows),
            }
        )
        group = generator.choice(["a", "b"], n_rows)
        shift = 0.5 * ((X["home_town"] == "x") & (group == "a"))
        third = said(0.4 * generator.uniform(size=n_rows) + shift, group, X=X)[2]
        assert "most surely larger than over everybody where home town is" in third
        assert ", which allows for all that are listed)." in third
        assert "there on fresh rows (higher scores in group a), " in third
        assert " more than among all fresh rows (95% interval " in third
        assert "than in group b" not in third  # of two groups there is one pair

    def test_where_nothing_is_planted_nothing_is_certain(self):
        generator = np.random.default_rng(1)
        X = pd.DataFrame({"x": generator.normal(size=600), "y": generator.normal(size=600)})
        group = generator.choice(["a", "b"], 600)
        third = said(generator.uniform(size=600), group, X=X)[2]
        assert "none of these has a gap between mean scores that is certain" in third
        assert "larger than over everybody" not in third

    def test_the_sentence_is_about_the_first_subset_and_its_excess(self):
        """A gap may be larger and surer elsewhere: what counts is the excess over everybody."""
        generator = np.random.default_rng(3)
        n_rows = 4000
        X = pd.DataFrame({"town": generator.choice(list("xyz"), n_rows), "age": 0.0})
        X["age"] = generator.integers(20, 60, n_rows).astype(float)
        group = generator.choice(["a", "b"], n_rows)
        shift = 0.2 * (group == "a") + 0.2 * ((X["town"] == "x") & (group == "a"))
        found = audit(
            0.4 * generator.uniform(size=n_rows) + shift, sensitive_features=group, X=X, **QUICK
        )
        first = found.subsets.subsets[0]
        lows = [one.excess.low for one in found.subsets.subsets if one.excess.low is not None]
        assert lows[0] == max(lows) > 0.0
        third = sentences(found)[2]
        assert f"everybody where {subset_name(first)}: it is {first.confirmed.value:.3f}" in third
        assert f"{first.excess.value:.3f} more than among all fresh rows (95%" in third
        assert f" interval {first.excess.low:.3f} to {first.excess.high:.3f}, which" in third
        assert [row["label"] for row in subset_figure([found]).rows] == [
            subset_name(one) for one in found.subsets.subsets
        ]

    def test_a_gap_that_is_the_same_everywhere_exceeds_nothing(self):
        generator = np.random.default_rng(4)
        X = pd.DataFrame({"town": generator.choice(list("xyz"), 3000)})
        group = generator.choice(["a", "b"], 3000)
        third = said(0.4 * generator.uniform(size=3000) + 0.3 * (group == "a"), group, X=X)[2]
        assert "no gap is certain to exceed that of everybody on fresh rows, and" in third
        assert "certain to differ from 0" in third

    def test_too_few_people_to_search(self, plain):
        generator = np.random.default_rng(0)
        X = pd.DataFrame({"x": generator.normal(size=70)})
        third = said(generator.uniform(size=70), ["a"] * 35 + ["b"] * 35, X=X)[2]
        assert third.startswith("Subsets were not searched")


def test_the_first_sentence_does_not_depend_on_the_order_of_rows():
    scores, groups = scores_of({"b": 0.5, "c": 0.2, "a": 0.7})
    order = np.random.default_rng(0).permutation(len(scores))
    assert said(scores, groups)[0] == said(scores[order], groups[order])[0]


@pytest.mark.parametrize("low", [0.0, 0.01])
def test_no_difference_is_ruled_out_exactly_where_the_interval_leaves_it_out(low):
    scores, groups = scores_of({"a": 0.8, "b": 0.3})
    found = audit(scores, sensitive_features=groups, **QUICK)
    changed = replace(found, gaps=tuple(replace(gap, low=low) for gap in found.gaps))
    assert ("cannot be ruled out" in sentences(changed)[0]) == (low == 0.0)


def test_names_and_numbers_as_they_are_written():
    assert (shown_name("age"), len(shown_name("x" * 500))) == ("age", 80)
    names = [column_words(name) for name in ("hours_per_week", "education-num", "1.5")]
    assert names == ["hours per week", "education num", "1.5"]
    told = told_apart(["pay_grade", "pay grade", "age"], column_words)
    assert told == {"pay_grade": "pay_grade", "pay grade": "pay grade", "age": "age"}
    numbers = [shown_number(value) for value in (0.12345, 12345, None, "a", -1e-17, True)]
    assert numbers == ["0.123", "12,345", "no statement", "a", "0.000", "yes"]
    assert [listed(["a", "b", "c"][:n]) for n in (1, 2, 3)] == ["a", "a and b", "a, b and c"]
    assert (group_words("female"), group_words("female, Black")) == ("female", "“female, Black”")
    old = Condition("age", ">", 60.0), Condition("marital_status", "!=", "married")
    subset = SubsetGap("", old, (40, 40), 0.1, 0.1, Estimate(0.1), "pair")
    assert subset_name(subset) == "age is above 60 and marital status is not married"
    assert ticks(0.0, 1.0) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]


def test_a_long_label_of_a_chart_is_broken_into_lines_that_hold_all_of_it():
    label = "occupation is Exec-managerial and relationship is not Not-in-family and age is above 9"
    row = {"label": label, "series": "", "value": 0.5, "low": None, "high": None}
    chart = dots([row], axis="gap", domain=(0.0, 1.0))
    lines = re.findall(r'<text class="label"[^>]*>([^<]*)</text>', chart)
    assert " ".join(lines) == label
    assert max(map(len, lines)) <= 44


def test_a_filing_names_the_periods_and_the_units(tmp_path):
    generator = np.random.default_rng(2)
    group, year = np.resize(["a", "b", "c"], 600), np.repeat([2021, 2022, 2023], 200)
    points = generator.uniform(0, 100, 600).round()
    options = {"sensitive_features": group, **QUICK}
    found = audit(points, score_range=(0, 100), threshold=50, by=year, **options)
    page = write_report(found, tmp_path / "r.html").read_text("utf-8")
    assert page.count("In points of the score") == 1  # beside the gaps of rates
    filing = write_filing(found, tmp_path / "f.html").read_text("utf-8")
    assert re.search(r"Period of the data</th><td><bdi>2021 to 2023</bdi>", filing)
    filing = write_filing(found, tmp_path / "f.html", fields={"period": "May"}).read_text("utf-8")
    assert "<bdi>May</bdi>" in filing
    page = write_report(audit(points / 100, **options), tmp_path / "r.html").read_text("utf-8")
    assert "In points of the score" not in page


def test_rates_that_would_reveal_few_people_are_not_called_small_groups(tmp_path):
    scores, groups = scores_of({"a": 0.5, "b": 0.2, "c": 0.04})
    found = audit(scores, sensitive_features=groups, **QUICK).without_individuals()
    first = sentences(found)[0]
    assert "The rate of c would reveal a few people and cannot be stated." in first
    assert "Too few people" not in first
    assert "the gap is not stated, because it would reveal a number of people below 10." in first
    decided = audit(1.0 * (scores > 0.5), sensitive_features=groups, **QUICK)
    filing = write_filing(decided, tmp_path / "f.html").read_text("utf-8")
    assert "too few people, or few on one side of the decision: c (100)" in filing
    assert "The largest gap over pairs" not in filing  # its table would have no number


def test_people_with_several_rows_are_not_called_a_sample():
    generator = np.random.default_rng(4)
    group, person = np.resize(["a", "b"], 300), np.arange(300)
    person[:20], X = person[20:40], pd.DataFrame({"x": generator.random(300)})
    options = {"sensitive_features": group, "ids": person, "X": X, **QUICK}
    found = audit(generator.random(300), **options)
    assert people_flow(found)[-1] == ("matched", 280, "people with several rows are matched once")
    assert "drawn" not in sentences(found)[1]
    found = audit(generator.random(300), n_sample=50, **options)
    assert people_flow(found)[-1] == ("matched", 100, "a random sample, at most 50 of each group")
    assert "drawn" in sentences(found)[1]
