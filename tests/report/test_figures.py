"""The sentences beside the figures: when each is said, and when it must not be."""

import re
from dataclasses import replace
from html import unescape
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import fisher_exact

from fairmatch import audit, compare_models
from fairmatch.auditing.facts import Condition, Estimate, SubsetGap
from fairmatch.auditing.matchings import ALIKE
from fairmatch.measures import MEASURES
from fairmatch.report import GapDisplay
from fairmatch.report.figures import (
    accuracy_figure,
    calibration_figure,
    changed_figure,
    feature_figure,
    gap_figure,
    gap_of_pairs_figure,
    half_space_figure,
    impact_figures,
    impact_lead,
    matched_figure,
    opening_figure,
    pair_figure,
    people_flow,
    reach_figure,
    score_figure,
    side_by_side,
    similarity_figure,
    subset_figure,
)
from fairmatch.report.page import _notices
from fairmatch.report.wording import gap_title, gap_words, with_label_words

QUICK = {"n_resamples": 100, "n_subsets": 20}


def decided(rates, n=100):
    """Scores and groups: of each group of n people so many per cent are selected."""
    scores = [[0.9] * round(rate * n) + [0.1] * (n - round(rate * n)) for rate in rates.values()]
    return np.concatenate(scores), np.repeat(list(rates), n)


def found(rates, **options):
    scores, groups = decided(rates)
    return audit(scores, sensitive_features=groups, **QUICK, **options)


def said(figure):
    return " ".join(figure.reading)


@pytest.fixture(scope="module")
def twins():
    """Two groups of the same people; the model scores them by what they are, or by their group."""
    generator = np.random.default_rng(0)
    X = pd.DataFrame({"x_1": np.tile(np.linspace(0, 1, 60), 2), "x_2": np.tile([0, 1], 60)})
    group = np.repeat(["a", "b"], 60)
    by_person = X["x_1"].to_numpy() * 0.6
    models = {
        "person": by_person,
        "group": by_person + 0.3 * (group == "b"),
        "chance": generator.uniform(size=120),
    }
    both = compare_models(models, sensitive_features=group, X=X, **QUICK)
    return {one.model_name: one for one in both.audits} | {"all": both}


class TestOpening:
    def test_the_table_has_the_rates_ratios_and_marks_of_the_data(self):
        rows = opening_figure([found({"a": 0.8, "b": 0.2, "c": 0.72})]).rows
        shown = {row["label"]: (row["selected"], row["ratio"], row["mark"]) for row in rows}
        assert shown == {"a": (80, "1.00", ""), "b": (20, "0.25", "below"), "c": (72, "0.90", "")}
        table = np.array([[80, 20], [20, 80], [72, 28]])
        p = {k: fisher_exact(table[[0, k]]).pvalue for k in (1, 2)}
        (row,) = (row for row in rows if row["label"] == "c")
        assert float(row["adjusted"]) == pytest.approx(max(p[2], 2 * min(p.values())), abs=1e-3)
        (row,) = (row for row in rows if row["label"] == "b")
        assert float(row["shortfall"]) == 60.0

    def test_groups_are_sorted_by_size_and_the_chart_says_how_many(self):
        scores = np.linspace(0, 1, 150)
        one = audit(scores, sensitive_features=["b"] * 30 + ["c"] * 40 + ["a"] * 80, **QUICK)
        figure = opening_figure([one])
        assert [row["label"] for row in figure.rows] == ["a", "c", "b"]
        assert "a  (n = 80)" in figure.panels[0].chart

    def test_the_line_of_four_fifths_stands_where_it_belongs(self):
        chart = opening_figure([found({"a": 0.5, "b": 0.2})]).panels[0].chart
        assert "four fifths of a, at 40%" in chart
        assert "four fifths" not in opening_figure([found({"a": 0.0, "b": 0.0})]).panels[0].chart

    def test_too_few_and_unknown_people_are_shown_and_not_compared(self):
        scores, groups = decided({"a": 0.8, "b": 0.2})
        groups = np.where(np.arange(200) % 4 == 0, None, groups)
        groups[1:6:2] = "few"
        one = audit(scores, sensitive_features=groups, **QUICK)
        rows = {row["label"]: row for row in opening_figure([one]).rows}
        assert "compared with nobody" in rows["unknown"]["note"]
        assert rows["few"]["rate"] == "too few people"
        for name in ("unknown", "few"):
            assert "ratio" not in rows[name]
        steps = people_flow(one)
        assert [number for _, number, _ in steps] == [200, 150, 147, 147]
        assert "50 people of unknown group" in steps[1][2]
        assert "few (3)" in steps[2][2]

    def test_the_users_word_for_the_outcome(self):
        figure = opening_figure([found({"a": 0.8, "b": 0.2}, outcome="granted bail")])
        assert figure.title == "Share granted bail of each group"
        assert figure.columns["selected"] == "granted bail"

    def test_attributes_by_themselves_only_where_there_are_several(self):
        assert "groups" not in gap_figure([found({"a": 0.8, "b": 0.2})]).columns
        scores, groups = decided({"a": 0.8, "b": 0.2})
        crossed = pd.DataFrame({"kind": groups, "half": ["x", "y"] * 100})
        rows = gap_figure([audit(scores, sensitive_features=crossed, **QUICK)]).rows
        assert {row["groups"] for row in rows} == {"by kind", "by half", "combinations"}
        value = {row["groups"]: row["value"] for row in rows if row["symbol"] == "ΔDP"}
        assert value["by kind"] == pytest.approx(0.6)
        assert value["by half"] == pytest.approx(0.0)


class TestGaps:
    @pytest.mark.parametrize(("favourable", "better"), [("high", "a"), ("low", "b")])
    def test_better_off_is_who_is_more_often_on_the_favourable_side(self, favourable, better):
        figure = gap_figure([found({"a": 0.8, "b": 0.2}, favourable=favourable)])
        rows = {row["symbol"]: row["better"] for row in figure.rows}
        assert rows["ΔDP"] == rows["Δ‾DP"] == better

    def test_two_groups_are_one_pair_and_many_are_compared_with_the_largest(self):
        assert pair_figure([found({"a": 0.8, "b": 0.2})]) is None
        scores, groups = decided({"a": 0.8, "b": 0.2, "c": 0.5})
        scores, groups = np.append(scores, [0.9]), np.append(groups, ["c"])
        figure = pair_figure([audit(scores, sensitive_features=groups, **QUICK)])
        assert "compared with c" in said(figure)
        pairs = {row["between"] for row in figure.rows if row["symbol"] == "ΔDP"}
        assert pairs == {"a – c", "b – c", "a – b"}  # the last is farthest apart

    def test_a_group_too_small_is_not_compared_and_a_name_of_several_words_is_quoted(self):
        scores, groups = decided({"a": 0.8, "b": 0.2, "c, d": 0.5})
        scores = np.append(scores, [0.9, 0.1, 0.1])
        every = pair_figure(
            [audit(scores, sensitive_features=np.append(groups, ["c, d"] * 3), **QUICK)]
        )
        assert said(every).startswith("Each group is compared with “c, d”;")
        groups = np.append(groups, ["c, d", "few", "few"])
        some = pair_figure([audit(scores, sensitive_features=groups, **QUICK)])
        assert said(some).startswith("Each group with enough people for a statement is compared")

    def test_where_low_scores_are_good_the_label_is_named(self):
        made = SimpleNamespace(settings={})
        high, low = (
            SimpleNamespace(favourable=side, kind="probability", classes=None, provenance=made)
            for side in ("high", "low")
        )
        assert gap_title("true_positive_gap", high) == "True positive rates"
        assert gap_title("true_positive_gap", low) == "Selection rates with a negative label"
        assert gap_words("false_positive_gap", low).endswith("people with a positive label")
        assert gap_title("mean_parity_gap", low) == gap_title("mean_parity_gap", high)


def test_a_new_measure_appears_wherever_gaps_are_listed(monkeypatch):
    measure = replace(MEASURES["mean_parity_gap"], title="Medians", words="difference of medians")
    monkeypatch.setitem(MEASURES, "median_parity_gap", measure)
    scores, groups = decided({"a": 0.8, "b": 0.2, "c": 0.5})
    crossed = pd.DataFrame({"kind": groups, "half": ["x", "y"] * 150})
    one = audit(scores, sensitive_features=crossed, model_name="one", **QUICK)

    def added(gaps):
        own = [gap for gap in gaps if gap.name == "mean_parity_gap"]
        kept = [gap for gap in gaps if gap.name != "median_parity_gap"]
        return (*kept, *(replace(gap, name="median_parity_gap") for gap in own))

    one = replace(
        one,
        gaps=added(one.gaps),
        pair_gaps=added(one.pair_gaps),
        attributes=tuple(replace(own, gaps=added(own.gaps)) for own in one.attributes),
    )
    every = gap_figure([one])
    assert {"label": "Medians", "meaning": "difference of medians"}.items() <= next(
        row.items() for row in every.rows if row["label"] == "Medians"
    )
    assert "Medians" in {panel.title for panel in pair_figure([one]).panels}
    assert "Medians" in every.panels[0].chart
    both = side_by_side([one, replace(one, model_name="other")])
    assert "gap: medians" in {row["what"] for row in both.rows}
    assert "Medians" in {row["label"] for row in GapDisplay([one])._rows()}


class TestScores:
    def test_bars_are_the_shares_of_the_table(self):
        scores = np.append(np.tile([0.1, 0.3, 0.7, 0.9], 30), [0.5, 0.5])
        groups = ["a"] * 60 + ["b"] * 60 + ["few"] * 2
        figure = score_figure([audit(scores, sensitive_features=groups, **QUICK)])
        assert {row["series"] for row in figure.rows} == {"a", "b"}
        assert len(figure.rows) == 2 * 4  # of intervals that hold somebody
        assert {row["share"] for row in figure.rows} == {0.25}
        (panel,) = figure.panels  # two groups share a chart
        assert panel.chart.count("<rect") == 2 * 4
        alone = audit([0.2, 0.8] * 5, sensitive_features=["a", "b"] * 5, **QUICK)
        assert score_figure([alone]) is None

    def test_the_threshold_is_drawn_and_named(self):
        one = audit(np.linspace(0, 1, 400), sensitive_features=["a", "b"] * 200, **QUICK)
        assert "The dashed line is the threshold (selected: score at or above 0.5)" in said(
            score_figure([one])
        )
        assert "threshold</text>" in score_figure([one]).panels[0].chart


class TestLabels:
    @pytest.mark.parametrize(("favourable", "first"), [("high", "positive"), ("low", "negative")])
    def test_the_favourable_label_is_named(self, favourable, first):
        scores, groups = decided({"a": 0.8, "b": 0.2})
        one = audit(
            scores,
            sensitive_features=groups,
            y_true=(scores > 0.5) ^ (np.arange(200) % 3 == 0),
            favourable=favourable,
            **QUICK,
        )
        whats = list(dict.fromkeys(row["what"] for row in accuracy_figure([one]).rows))
        assert whats[0] == f"Share with a {first} label"
        assert whats[2].endswith(f"of people with a {first} label")
        words = accuracy_figure([with_label_words(one, ("stayed", "left"))]).rows[0]["what"]
        assert words == f"Share with the label “{'left' if favourable == 'high' else 'stayed'}”"
        # The rate of the first is that of the favourable labels in the table.
        good = np.mean(((scores > 0.5) ^ (np.arange(200) % 3 == 0))[:100] == (favourable == "high"))
        rows = {(row["what"], row["label"]): row["value"] for row in accuracy_figure([one]).rows}
        assert rows[f"Share with a {first} label", "a"] == pytest.approx(good)

    def test_calibration_names_two_groups_or_the_extremes_of_many(self):
        scores = np.tile([0.25, 0.75], 150)
        groups = np.repeat(["a", "b", "c"], 100)
        labels = np.where(groups == "a", scores > 0.5, np.arange(300) % 4 < 2).astype(int)
        both = audit(scores[:200], sensitive_features=groups[:200], y_true=labels[:200], **QUICK)
        assert "(a) and " in said(calibration_figure([both]))
        many = audit(scores, sensitive_features=groups, y_true=labels, **QUICK)
        assert " to " in said(calibration_figure([many])).split("diagonal: ")[1]


class TestMatching:
    def test_people_scored_by_what_they_are_have_their_twins(self, twins):
        (row,) = matched_figure([twins["person"]]).rows
        assert row["position"] == pytest.approx(0.0, abs=1e-6)
        assert row["score_gap"] == pytest.approx(0.0, abs=1e-9)

    def test_everybody_has_somebody_near_scored_alike_or_nobody_has(self, twins):
        alike, apart = (reach_figure([twins[name]]) for name in ("person", "group"))
        assert said(alike).startswith("For 100%")
        assert "of group a, there is a similar person among group b with nearly" in said(alike)
        assert {row["value"] for row in apart.rows} == {0.0}

    def test_alike_is_defined_beside_near(self, twins):
        told = said(reach_figure([twins["person"]]))
        assert f"“Similar score” is a score gap of at most {ALIKE:g}." in told

    def test_a_sample_is_called_one(self, twins):
        assert "All people in these groups were matched." in said(matched_figure([twins["person"]]))
        generator = np.random.default_rng(0)
        X = pd.DataFrame({"x": generator.uniform(size=200)})
        one = audit(X["x"], sensitive_features=["a", "b"] * 100, X=X, n_sample=40, **QUICK)
        assert "A random sample of 40 and 40 people of the two groups was matched." in said(
            matched_figure([one])
        )

    def test_somebody_near_is_told_to_be_of_those_drawn_where_people_were_drawn(self, twins):
        generator = np.random.default_rng(0)
        X = pd.DataFrame({"x": generator.uniform(size=200)})
        one = audit(X["x"], sensitive_features=["a", "b"] * 100, X=X, n_sample=40, **QUICK)
        drawn, all_of_them = said(reach_figure([one])), said(reach_figure([twins["person"]]))
        assert "of those drawn from group a, there is a similar person among those drawn" in drawn
        assert "have a neighbour in the other group, among the sampled people." in drawn
        assert "drawn" not in all_of_them
        assert "nine in ten people have a neighbour in the other group." in all_of_them

    def test_the_picture_joins_the_people_of_the_matching(self, twins):
        one = twins["group"]
        chart = matched_figure([one]).panels[0].chart
        assert chart.count('class="pair') == 40
        people = one.individuals
        pairs = people.pairs["nearest_fair"]
        scores = {f"{people.scores[a]:.6f}" for a in (*pairs.first, *pairs.second)}
        assert scores >= {f"{score:.6f}" for score in people.scores}
        assert matched_figure([one.without_individuals()]).panels == ()

    def test_a_matching_that_is_not_proven_is_noted(self, twins):
        one = twins["chance"]
        old = replace(one, matchings=(replace(one.matching, nearest_fair=None),))
        (row,) = matched_figure([old]).rows
        assert "no nearer matching is proven" in row["note"]
        assert row["position"] == one.matching.transport.relative

    def test_columns_are_left_to_the_table_only_where_there_are_many(self, twins):
        assert "only in the table" not in said(feature_figure([twins["person"]]))
        X = pd.DataFrame(np.random.default_rng(0).uniform(size=(120, 14)))
        one = audit(X[0], sensitive_features=["a", "b"] * 60, X=X.add_prefix("c"), **QUICK)
        assert "Columns that add less are only in the table." in said(feature_figure([one]))

    def test_column_names_are_written_as_people_write_them(self, twins):
        assert {row["label"] for row in feature_figure([twins["person"]]).rows} == {"x 1", "x 2"}

    def test_a_flip_is_told_in_the_words_of_both_outcomes(self):
        high, low = (found({"a": 0.8, "b": 0.2}, favourable=side) for side in ("high", "low"))
        figure = gap_of_pairs_figure([high])
        assert "in which one is selected and the other is not selected." in said(figure)
        assert figure.columns["favoured"] == "more often the one selected"
        assert "one is not flagged and the other is flagged." in said(gap_of_pairs_figure([low]))

    def test_what_the_table_lacks_is_spoken_of_where_columns_match_people(self, twins):
        assert "something that is not in the table" in said(gap_of_pairs_figure([twins["person"]]))
        plain = audit([0.1, 0.9] * 60, sensitive_features=["a", "b"] * 60, **QUICK)
        assert "not in the table" not in said(gap_of_pairs_figure([plain]))


class TestSubsets:
    def with_subsets(self, one, limits):
        def subset(k, confirmed):
            where = (Condition("x_1", ">", float(k)),)
            return SubsetGap("", where, (40, 40), 0.2, 0.2, confirmed, "pair", groups=("a", "b"))

        listed = tuple(subset(k, confirmed) for k, confirmed in enumerate(limits))
        return replace(one, subsets=replace(one.subsets, subsets=listed))

    def test_the_counts_are_those_of_what_is_drawn(self, twins):
        sure, unsure = Estimate(0.2, 0.1, 0.3), Estimate(0.2, 0.0, 0.3)
        none = Estimate(None, refused="too few")
        one = self.with_subsets(twins["person"], [sure, sure, unsure, none])
        figure = subset_figure([one])
        assert (
            "4 are listed, 3 of them with enough people for a statement on fresh rows; the "
            "interval excludes 0 for 2 of them."
        ) in said(figure)
        chart = unescape(figure.panels[0].chart)
        for row in figure.rows:
            assert (row["label"] in chart) == (row["value"] is not None)

    def test_all_stated_and_none_certain(self, twins):
        one = self.with_subsets(twins["person"], [Estimate(0.2, 0.0, 0.3)] * 2)
        assert "2 are listed; the interval excludes 0 for none of them." in said(
            subset_figure([one])
        )
        assert "The chart shows" not in said(subset_figure([one]))

    def test_a_long_list_says_how_much_of_it_is_drawn(self, twins):
        one = self.with_subsets(twins["person"], [Estimate(0.2, 0.1, 0.3)] * 15)
        assert "The chart shows the first 12." in said(subset_figure([one]))

    def test_the_gap_over_everybody_is_called_the_largest_of_many(self, twins):
        one = self.with_subsets(twins["person"], [Estimate(0.2, 0.1, 0.3)])
        assert "is the gap over everybody" in said(subset_figure([one]))
        many = replace(one, matchings=one.matchings * 2)
        assert "is the largest gap of two groups over everybody" in said(subset_figure([many]))

    def test_no_subset_is_listed(self, twins):
        refused = self.with_subsets(twins["person"], [])
        assert said(subset_figure([refused])).startswith("Subsets were not searched")
        one = replace(refused, subsets=replace(refused.subsets, refused=()))
        assert "No subset is listed." in said(subset_figure([one]))
        assert "dashed line" not in said(subset_figure([one]))

    def test_empty_cuts_are_counted_where_there_are_some(self, twins):
        one = twins["person"]
        some, none = (
            replace(
                one,
                subsets=replace(
                    one.subsets, half_spaces=replace(one.subsets.half_spaces, n_empty=n)
                ),
            )
            for n in (3, 0)
        )
        assert "3 cuts kept nobody of one group and are left" in said(half_space_figure([some]))
        assert "kept nobody" not in said(half_space_figure([none]))
        spaces = replace(one.subsets.half_spaces, n_empty=1)
        single = replace(one, subsets=replace(one.subsets, half_spaces=spaces))
        assert "1 cut kept nobody of one group and is left" in said(half_space_figure([single]))

    def test_of_many_groups_a_cut_is_empty_without_the_largest_or_without_the_others(self):
        X = pd.DataFrame({"x": np.repeat([0.0, 1.0, 1.0], [80, 40, 40])})
        group = np.repeat(["a", "b", "c"], [80, 40, 40])
        scores = np.linspace(0, 1, 160)
        one = audit(scores, sensitive_features=group, X=X, keep=["x"], **QUICK)
        assert one.subsets.half_spaces.n_empty > 1
        assert (
            f"{one.subsets.half_spaces.n_empty} cuts kept nobody of a, or nobody of any other "
            "group, and are left out."
        ) in said(half_space_figure([one]))

    def test_where_the_gap_is_none_neither_group_is_higher(self, twins):
        one = self.with_subsets(twins["person"], [Estimate(0.2, 0.1, 0.3)])
        (subset,) = one.subsets.subsets
        (row,) = subset_figure([one]).rows
        assert (row["higher"], row["lower"]) == ("b", "a")
        assert row["people"] == "40 b, 40 a"
        flat = replace(subset, gap=1e-4, signed=1e-4)
        (row,) = subset_figure([replace(one, subsets=replace(one.subsets, subsets=(flat,)))]).rows
        assert (row["higher"], row["lower"]) == ("neither", "neither")

    def test_subsets_keep_the_order_of_the_audit(self, twins):
        limits = [
            Estimate(0.2, 0.1, 0.3),
            Estimate(0.2, 0.15, 0.25),
            Estimate(0.3, 0.0, 0.6),
            Estimate(None, refused="too few"),
        ]
        rows = subset_figure([self.with_subsets(twins["person"], limits)]).rows
        assert [row["low"] for row in rows] == [0.1, 0.15, 0.0, None]


class TestModels:
    def test_undesirable_flips_only_where_somebody_is_named_as_favoured(self, twins):
        figure = changed_figure(twins["all"])
        assert "undesirable" not in said(figure)
        figure = changed_figure(replace(twins["all"], privileged="b"))
        assert "With b named as favoured" in said(figure)

    def test_changed_decisions_of_few_people_are_hidden_with_the_individuals(self):
        generator = np.random.default_rng(0)
        models = {name: generator.uniform(size=121) for name in ("one", "other")}
        group = np.repeat(["a", "b", "single"], [60, 60, 1])
        both = compare_models(models, sensitive_features=group, **QUICK)
        figure = changed_figure(both)
        assert all(row["lost"] is not None for row in figure.rows)
        assert "note" not in figure.columns
        figure = changed_figure(both.without_individuals())
        assert "single" not in {row["series"] for row in figure.rows if "lost" in row}

    def test_different_people_are_called_so(self, twins):
        one = twins["person"]
        other = replace(one, provenance=replace(one.provenance, groups_sha256="other"))
        assert "different people" in said(side_by_side([one, other]))
        assert "different people" not in said(side_by_side([one, twins["group"]]))
        assert side_by_side([one]) is None

    def test_no_sure_gap_is_counted_where_no_subset_was_searched(self, twins):
        pair = [twins["person"], twins["group"]]
        words = "listed subsets with a certain gap"
        assert words not in {row["what"] for row in side_by_side(pair).rows}
        searched = [replace(a, subsets=replace(a.subsets, refused=())) for a in pair]
        assert words in {row["what"] for row in side_by_side(searched).rows}


class TestFiling:
    def test_scores_have_a_scoring_rate_and_decisions_none(self):
        scored = audit(np.linspace(0, 1, 200), sensitive_features=["a", "b"] * 100, **QUICK)
        lead = " ".join(impact_lead([scored]))
        assert "Selected means a score at or above 0.5." in lead
        assert "score is above the median" in lead
        made = audit([0, 1, 1, 1] * 50, sensitive_features=["a", "b"] * 100, **QUICK)
        assert "median" not in " ".join(impact_lead([made]))
        (figure,) = impact_figures([made])
        assert "scoring" not in figure.columns

    def test_where_low_scores_are_good_the_better_half_is_below(self):
        low = audit(
            np.linspace(0, 1, 200), sensitive_features=["a", "b"] * 100, favourable="low", **QUICK
        )
        lead = " ".join(impact_lead([low]))
        assert "Selected means not flagged, a score below 0.5." in lead
        assert "score is below the median" in lead

    def test_small_categories_are_named_and_unknown_people_counted(self):
        scores, groups = decided({"a": 0.8, "b": 0.2})
        (plain,) = impact_figures([audit(scores, sensitive_features=groups, **QUICK)])
        assert "less than 2%" not in said(plain)
        assert "; nobody of unknown category." in said(plain)
        groups = groups.astype(object)
        groups[:2], groups[2:12] = "tiny", None
        (figure,) = impact_figures([audit(scores, sensitive_features=groups, **QUICK)])
        assert "With less than 2% of the people: tiny. The rule allows" in said(figure)
        assert "; 10 people of unknown category, scored and left out." in said(figure)
        assert [row["label"] for row in figure.rows if row["small"]] == ["tiny"]

    def test_the_ratio_is_that_of_the_rates(self):
        (figure,) = impact_figures([found({"a": 0.8, "b": 0.2})])
        assert "Highest selection rate: a." in said(figure)
        assert {row["label"]: row["value"] for row in figure.rows} == {"a": 1.0, "b": 0.25}

    def test_all_that_tie_are_named_and_small_categories_are_not_among_them(self):
        scores, groups = decided({"a": 0.8, "b": 0.2, "c, d": 0.8})
        (tied,) = impact_figures([audit(scores, sensitive_features=groups, **QUICK)])
        assert "Highest selection rate: a and “c, d”." in said(tied)
        scores = np.append(scores, 0.9) - np.tile(np.linspace(0.0, 0.01, 100), 4)[:301]
        groups = np.append(groups, "one")
        (figure,) = impact_figures([audit(scores, sensitive_features=groups, **QUICK)])
        words = "Highest selection rate among categories of at least 2% of the people: a and “c, d”"
        assert words in said(figure)
        assert "Highest scoring rate among categories" in said(figure)

    def test_where_nobody_is_selected_nobody_is_most(self):
        (figure,) = impact_figures([found({"a": 0.0, "b": 0.0})])
        assert "Highest" not in said(figure)

    def test_one_person_is_shown_as_one_and_hidden_with_the_individuals(self):
        scores, groups = decided({"a": 0.8, "b": 0.2})
        scores = np.append(scores, 0.9) - np.linspace(0.0, 0.01, 201)
        one = audit(scores, sensitive_features=np.append(groups, "one"), **QUICK)
        (figure,) = impact_figures([one])
        assert "The row of a category of 1 person is the decision on that person." in said(figure)
        assert "note" not in figure.columns
        (figure,) = impact_figures([one.without_individuals()])
        assert [row["label"] for row in figure.rows] == ["a", "b"]
        assert "of 1 person" not in said(figure)

    def test_the_page_withholds_what_the_audit_without_individuals_withholds(self):
        scores, groups = decided({"a": 0.8, "b": 0.2})
        scores, groups = np.append(scores, [0.9] * 14), np.append(groups, np.repeat("fourteen", 14))
        one = audit(scores, sensitive_features=groups, **QUICK)
        for limit, labels in ((10, ["a", "b", "fourteen"]), (15, ["a", "b"])):
            (figure,) = impact_figures([one.without_individuals(min_cell=limit)])
            assert [row["label"] for row in figure.rows] == labels
        (figure,) = impact_figures([one.without_individuals()])
        assert figure.rows[2]["rate"].startswith("100.0%")
        assert "Nothing else is stated about so few people: fourteen." in said(figure)


class TestNotices:
    def test_nobody_or_everybody_is_selected(self):
        assert _notices([found({"a": 0.8, "b": 0.2})]) == []
        (nobody,) = _notices([found({"a": 0.0, "b": 0.0})])
        assert nobody.startswith("Nobody is selected")
        (everybody,) = _notices([found({"a": 1.0, "b": 1.0})])
        assert everybody.startswith("Everybody is selected")

    def test_weights_of_a_survey_are_told_and_counts_are_not(self):
        scores, groups = decided({"a": 0.8, "b": 0.2})
        given = {"sensitive_features": groups, "sample_weight": np.full(200, 2.0), **QUICK}
        assert "are weighted" in _notices([audit(scores, **given)])[0]
        assert _notices([audit(scores, weight_kind="counts", **given)]) == []


def test_the_weights_of_columns_are_bars():
    columns = {f"c{at}": np.random.default_rng(at).normal(size=200) for at in range(25)}
    weights = {name: float(at + 1) for at, name in enumerate(columns)}
    scores, groups = decided({"a": 0.5, "b": 0.4})
    data = pd.DataFrame(columns)
    weighed = audit(scores, sensitive_features=groups, X=data, similarity=weights, **QUICK)
    figure = similarity_figure([weighed])
    (panel,) = figure.panels
    widths = [
        float(width)
        for width in re.findall(r'part" x="[^"]*" y="[^"]*" width="([\d.]+)%', panel.chart)
    ]
    expected = np.sort(list(weights.values()))[::-1][:12]
    assert np.array(widths) / widths[0] == pytest.approx(expected / expected[0], abs=2e-2)
    assert [row["label"] for row in figure.rows] == list(weights)[::-1]
    assert "The chart has the 12 largest of 25." in said(figure)
    assert similarity_figure([found({"a": 0.5, "b": 0.4})]) is None
