"""The command ``fairmatch adjust``."""

import re

import numpy as np
import pandas as pd
import pytest

from fairmatch import align_scores, bands, fit_adjustment, measures
from fairmatch.cli.main import main
from fairmatch.measures import MEASURES, demographic_parity_gap, mean_parity_gap

GIVEN = ["adjust", "scores.csv", "--score", "score", "--sensitive", "sex"]


@pytest.fixture
def scores(tmp_path, monkeypatch):
    """Scores of people whose groups are written as numbers with leading zeros."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    group = generator.choice(["01", "02"], 500)
    score = 1.0 / (1.0 + np.exp(-generator.normal(size=500) - (group == "02")))
    label = np.where(generator.random(500) < score, "yes", "no")
    frame = pd.DataFrame({"score": score, "sex": group, "label": label, "old": [0, 1] * 250})
    frame.to_csv("scores.csv", index=False)
    return frame


def test_a_bound_is_kept_and_the_adjustment_used_again(scores, capsys):
    how = ["--max-gap", "0.02", "--out", "adjusted.csv", "--save", "adjustment.json"]
    assert main([*GIVEN, *how]) == 0
    assert "demographic_parity_gap" in capsys.readouterr().out
    adjusted = pd.read_csv("adjusted.csv", dtype={"sex": str})
    assert adjusted.columns.tolist() == [*scores.columns, "adjusted_score", "adjusted_decision"]
    gap = demographic_parity_gap(None, adjusted.adjusted_score, sensitive_features=adjusted.sex)
    assert gap <= 0.02
    assert ((adjusted.adjusted_score >= 0.5) == adjusted.adjusted_decision).all()
    alone = fit_adjustment(scores.score, scores.sex, max_gap=0.02).apply(scores.score, scores.sex)
    assert adjusted.adjusted_score.to_numpy() == pytest.approx(alone, abs=1e-12)
    scores.to_parquet("scores.parquet")
    again = [*GIVEN[:1], "scores.parquet", *GIVEN[2:], "--with", "adjustment.json"]
    assert main([*again, "--out", "again.csv"]) == 0
    assert (pd.read_csv("again.csv").adjusted_score == adjusted.adjusted_score).all()


BY_LABEL = ["--label", "label", "--positive", "yes", "--criterion"]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ([], "the demographic_parity_gap at the threshold 0.5."),
        ([*BY_LABEL, "equal_opportunity"], "the true_positive_gap at the threshold 0.5."),
        (
            [*BY_LABEL, "equalized_odds", "--decisions", "threshold"],
            "the larger of true_positive_gap and false_positive_gap at the threshold 0.5.",
        ),
        (["--scale", "rank"], "the wasserstein_parity_gap of adjusted ranks."),
        (["--scale", "real"], "the wasserstein_parity_gap of adjusted scores, in their unit."),
        (
            ["--scale", "real", *BY_LABEL, "equal_opportunity"],
            "the wasserstein_parity_gap of adjusted scores, in their unit, among people with the "
            "positive label.",
        ),
    ],
)
def test_the_gap_that_is_bounded_is_named_and_kept(scores, capsys, more, told):
    assert main([*GIVEN, "--max-gap", "0.03", "--out", "a.csv", *more]) == 0
    assert f"--max-gap 0.03 bounds {told}\n" in capsys.readouterr().out
    a = pd.read_csv("a.csv")
    kept = a[a.label == "yes"] if told.endswith("positive label.") else a
    for name in set(MEASURES).intersection(re.findall(r"\w+_gap", told)):
        measure = getattr(measures, name)
        given = (kept.label == "yes").to_numpy(), kept.adjusted_score
        assert measure(*given, sensitive_features=kept.sex) <= 0.03 + 1e-12


def test_no_gap_is_bounded_without_a_bound(scores, capsys):
    assert main([*GIVEN, "--out", "a.csv"]) == 0
    assert "bounds" not in capsys.readouterr().out


def test_thresholds_need_labels_which_are_named(scores, capsys):
    how = ["--decisions", "threshold", "--max-gap", "0.03", "--out", "a.csv"]
    assert main([*GIVEN, *how]) == 2
    assert "Name the column of the labels with --label" in capsys.readouterr().err
    assert main([*GIVEN, *how, "--label", "label"]) == 2
    error = capsys.readouterr().err
    assert "--positive: the values of column 'label' are" in error
    assert "'1'" not in error
    assert main([*GIVEN, *how, "--label", "label", "--positive", "yes"]) == 0
    assert "accuracy" in capsys.readouterr().out
    a = pd.read_csv("a.csv")
    assert demographic_parity_gap(None, a.adjusted_score, sensitive_features=a.sex) <= 0.03


def test_other_scores_and_several_columns(scores):
    scores.assign(score=100 * scores.score).to_csv("scores.csv", index=False)
    given = [*GIVEN, "--sensitive", "old", "--scale", "real", "--strength", "0.5", "--out", "a.csv"]
    assert main(given) == 0
    groups = scores.sex + ", " + scores.old.astype(str)
    alone = align_scores(100 * scores.score, groups, strength=0.5, scale="real")
    a = pd.read_csv("a.csv")
    assert a.adjusted_score.to_numpy() == pytest.approx(alone)
    assert "adjusted_decision" not in a


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--out", "scores.csv"], "would overwrite a file"),
        (["--out", "a.csv", "--with", "no.json"], "There is no file no.json. Name a file"),
        (["--out", "a.csv", "--with", "."], "not a plain file"),
        (["--out", "a.csv", "--with", "no.json", "--scale", "rank"], "Leave one of the two out"),
        (["--out", "a.csv", "--label", "lable"], "label"),
        (["--out", "a.csv", "--criterion", "equal_opportunity"], "the labels with --label"),
        (["--out", "a.csv", "--max-gap", "3"], "--max-gap must be a number"),
        (["--out", "a.csv", "--strength", "3"], "Invalid value for '--strength'"),
        (["--out", "a.csv", "--score", "label"], "Column label holds words, such as"),
    ],
)
def test_what_cannot_be_is_said(scores, capsys, more, message):
    assert main([*GIVEN, *more]) == 2
    assert message in capsys.readouterr().err


def test_rows_without_a_group(scores, capsys):
    some = scores.index < 40
    scores.assign(sex=scores.sex.where(~some)).to_csv("scores.csv", index=False)
    typed = [*GIVEN, "--out", "a.csv", "--save", "a.json"]
    assert main(typed) == 0
    told = capsys.readouterr()
    assert "of the groups 01; 02\n" in told.out
    assert "40 of 500 rows (8.0%) have no group" in told.err
    found = pd.read_csv("a.csv").adjusted_score
    assert (found[some] == scores.score[some]).all()
    known = scores[~some]
    alone = fit_adjustment(known.score, known.sex).apply(known.score, known.sex)
    assert found[~some].to_numpy() == pytest.approx(alone, abs=1e-12)
    assert main([*GIVEN, "--with", "a.json", "--out", "b.csv"]) == 0
    assert (pd.read_csv("b.csv").adjusted_score == found).all()
    assert main([*typed, "--unknown", "group"]) == 0
    assert "of the groups 01; 02; unknown\n" in capsys.readouterr().out
    assert main([*typed, "--unknown", "error"]) == 2
    assert "40 missing values" in capsys.readouterr().err


def test_scores_that_cannot_be_used_are_named(scores, capsys):
    scores.assign(score=5 * scores.score).to_csv("scores.csv", index=False)
    assert main([*GIVEN, "--out", "a.csv"]) == 2
    told = capsys.readouterr().err
    assert "Divide percentages by 100, or choose a scale: --scale rank" in told
    assert "y_score" not in told
    assert main([*GIVEN, "--scale", "rank", "--out", "a.csv", "--save", "rank.json"]) == 0
    assert main([*GIVEN, "--with", "rank.json", "--out", "a.csv"]) == 0
    scores.to_csv("scores.csv", index=False)
    assert main([*GIVEN, "--out", "a.csv", "--save", "a.json"]) == 0
    scores.assign(score=5 * scores.score).to_csv("scores.csv", index=False)
    capsys.readouterr()
    assert main([*GIVEN, "--with", "a.json", "--out", "a.csv"]) == 2
    told = capsys.readouterr().err
    assert "a.json adjusts probabilities" in told
    assert "scale" not in told
    scores.assign(score=scores.score.where(scores.index != 3)).to_csv("scores.csv", index=False)
    assert main([*GIVEN, "--out", "a.csv"]) == 2
    assert (
        "Column score is missing in 1 rows (the first in row 3, counted from 0)"
        in capsys.readouterr().err
    )


def test_columns_with_commas_between_them_and_how_they_are_read(scores, capsys):
    several = ["--sensitive", "sex,old", "--out", "a.csv"]
    assert main([*GIVEN[:4], *several]) == 0
    told = capsys.readouterr().out
    assert "How the 4 columns are read" in told
    assert "01, 0; 01, 1; 02, 0; 02, 1" in told
    alone = align_scores(scores.score, scores.sex + ", " + scores.old.astype(str))
    assert pd.read_csv("a.csv").adjusted_score.to_numpy() == pytest.approx(alone, abs=1e-12)


def test_gaps_of_numbers_are_shown_in_their_unit_and_ties_are_told(scores, capsys):
    scores = scores.assign(score=(100 * scores.score).round(-1))
    scores.to_csv("scores.csv", index=False)
    assert main([*GIVEN, "--scale", "real", "--out", "a.csv"]) == 0
    told = capsys.readouterr().out
    gaps = measures.gap_table(None, scores.score, sensitive_features=scores.sex, kind="number")
    assert f"{gaps['wasserstein_parity_gap']:.4f}" in told
    parts = fit_adjustment(scores.score, scores.sex, scale="real").parts
    assert f"{parts.remaining_gap:.3f}" in told
    assert "equal scores" in told
    how = ["--scale", "real", "--out", "a.csv", "--save", "a.json"]
    assert main([*GIVEN, *how]) == 0
    capsys.readouterr()
    scores.iloc[:50].to_csv("scores.csv", index=False)  # the gap above is that of another table
    assert main([*GIVEN, "--with", "a.json", "--out", "b.csv"]) == 0
    assert "equal scores" not in capsys.readouterr().out


def test_a_gap_that_sizes_leave_is_not_put_down_to_equal_scores(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scores = np.random.default_rng(0).permutation(67) / 67
    pd.DataFrame({"score": scores, "sex": ["f"] * 30 + ["m"] * 37}).to_csv("scores.csv")
    assert main([*GIVEN, "--out", "a.csv"]) == 0
    told = capsys.readouterr().out
    assert "Groups of different sizes or weights cannot be aligned exactly." in told
    assert "equal scores" not in told


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (lambda f: f[f.sex == "01"], "demographic_parity_gap"),
        (lambda f: f[(f.sex == "01") & (f.old == 0)], "holds one group only (01, 0)"),
        (lambda f: f.iloc[:1], "holds one group only"),
    ],
)
def test_a_saved_adjustment_serves_a_file_with_few_groups(scores, capsys, rows, told):
    given = [*GIVEN[:4], "--sensitive", "sex,old"]
    assert main([*given, "--out", "a.csv", "--save", "a.json"]) == 0
    capsys.readouterr()
    whole = pd.read_csv("a.csv").adjusted_score
    part = rows(scores)
    part.to_csv("scores.csv", index=False)
    assert main([*given, "--with", "a.json", "--out", "b.csv"]) == 0
    assert told in capsys.readouterr().out
    assert pd.read_csv("b.csv").adjusted_score.to_numpy() == pytest.approx(whole[part.index])


def test_groups_of_one_person_are_refused(scores, capsys):
    scores.assign(income=range(500)).to_csv("scores.csv", index=False)
    assert main([*GIVEN[:4], "--sensitive", "income", "--out", "a.csv"]) == 2
    assert "forms no groups that can be compared" in capsys.readouterr().err
    scores.assign(town=[f"{row}" if row < 200 else "x" for row in range(500)]).to_csv(
        "scores.csv", index=False
    )
    assert main([*GIVEN[:4], "--sensitive", "town", "--out", "a.csv"]) == 2
    assert "fewer than 2 rows" in capsys.readouterr().err


@pytest.mark.parametrize(("way", "shown"), [("pool", "01; 02; other"), ("ignore", "01; 02")])
def test_small_groups_are_pooled_or_ignored(scores, capsys, way, shown):
    scores["sex"] = np.where(scores.index < 4, ["03", "04"] * 250, scores.sex)
    scores.to_csv("scores.csv", index=False)
    assert main([*GIVEN, "--small-groups", "error,5", "--out", "a.csv"]) == 2
    assert "'03': 2, '04': 2" in capsys.readouterr().err
    assert main([*GIVEN, "--small-groups", f"{way},5", "--out", "a.csv"]) == 0
    told = capsys.readouterr().out
    assert f"of the groups {shown}\n" in told
    adjusted = pd.read_csv("a.csv", dtype={"sex": str})
    groups = scores.sex.where(scores.index >= 4, "other")
    rows = groups != "other" if way == "ignore" else groups.notna()
    after = adjusted.adjusted_score[rows]
    gap = demographic_parity_gap(None, after, sensitive_features=groups[rows])
    line = next(line for line in told.splitlines() if line.startswith("demographic_parity_gap"))
    assert line.endswith(f"{gap:.4f}")


def test_sizes_of_groups_are_those_of_the_saved_adjustment(scores, capsys):
    assert main([*GIVEN, "--out", "a.csv", "--save", "a.json"]) == 0
    given = [*GIVEN, "--with", "a.json", "--small-groups", "pool,5", "--out", "b.csv"]
    assert main(given) == 2
    assert "--small-groups was given, but --with a.json" in capsys.readouterr().err
    assert main([*GIVEN, "--small-groups", "pool,many", "--out", "b.csv"]) == 2
    assert "Invalid value for '--small-groups'" in capsys.readouterr().err


def test_several_classes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    sex = np.resize(["f", "m"], 600)
    chances = generator.dirichlet([2.0, 1.0, 1.0], size=600)
    chances[sex == "m"] = chances[sex == "m"][:, [1, 0, 2]]
    label = np.array(["low", "mid", "top"])[generator.integers(3, size=600)]
    frame = pd.DataFrame(chances, columns=["p1", "p2", "p3"]).assign(sex=sex, label=label)
    frame.to_csv("scores.csv", index=False)
    asked = ["adjust", "scores.csv", "--score", "p1,p2,p3", "--sensitive", "sex"]
    more = ["--classes", "low,mid,top", "--label", "label", "--max-gap", "0.05"]
    assert (
        main([*asked, *more, "--decisions", "threshold", "--out", "a.csv", "--save", "a.json"]) == 0
    )
    told = capsys.readouterr().out
    assert "offsets by group" in told
    assert "bounds the demographic_parity_gap over all classes" in told
    found = pd.read_csv("a.csv")
    scores = found[["adjusted_p1", "adjusted_p2", "adjusted_p3"]].to_numpy()
    names = np.array(["low", "mid", "top"])
    assert (found.adjusted_decision == names[scores.argmax(axis=1)]).all()
    assert demographic_parity_gap(None, scores, sensitive_features=sex) <= 0.06
    before = demographic_parity_gap(None, chances, sensitive_features=sex)
    assert f"demographic_parity_gap  {before:.4f}" in told
    # --classes says the order, as in an audit, and --unordered that there is none.
    ranks = scores @ [0.0, 0.5, 1.0]
    for how, after in (
        ([], abs(ranks[sex == "f"].mean() - ranks[sex == "m"].mean())),
        (["--unordered"], mean_parity_gap(None, scores, sensitive_features=sex)),
    ):
        again = ["--decisions", "threshold", "--out", "c.csv", *how]
        assert main([*asked, *more, *again]) == 0
        (line,) = [own for own in capsys.readouterr().out.splitlines() if "mean_parity_gap" in own]
        assert float(line.split()[-1]) == pytest.approx(after, abs=1e-4)
    # Columns that are named like the classes are found by name.
    named = frame.rename(columns={"p1": "p low", "p2": "p mid", "p3": "p top"})
    named.to_csv("named.csv", index=False)
    mixed = ["adjust", "named.csv", "--score", "p top,p low,p mid", "--sensitive", "sex"]
    assert main([*mixed, *more, "--decisions", "threshold", "--out", "d.csv"]) == 0
    assert (pd.read_csv("d.csv").adjusted_decision == found.adjusted_decision).all()
    # Without labels and class names, and with an adjustment from a file.
    assert main([*asked, "--with", "a.json", "--out", "b.csv"]) == 0
    again = pd.read_csv("b.csv")
    assert again.adjusted_p1.to_numpy() == pytest.approx(found.adjusted_p1.to_numpy())
    assert set(again.adjusted_decision) <= {"p1", "p2", "p3"}
    for wrong, message in (
        (["--score", "p1,p2"], "--score names two columns"),
        (["--classes", "low,mid"], "--classes names 2 classes, and --score 3 columns"),
        (["--score", "p1", "--classes", "a,b,c"], "--score names one column"),
        (["--scale", "rank"], "--scale"),
    ):
        assert main([*asked, *wrong, "--out", "c.csv"]) == 2
        assert message in capsys.readouterr().err


def test_scores_are_adjusted_within_the_levels_of_columns(scores, capsys):
    how = ["--given", "old", "--max-gap", "0.03"]
    assert main([*GIVEN, *how, "--out", "first.csv", "--save", "adjustment.json"]) == 0
    assert "Gaps are those within the levels of old." in capsys.readouterr().out
    found = pd.read_csv("first.csv")
    for old in (0, 1):
        own = found[found.old == old]
        gap = demographic_parity_gap(None, own.adjusted_score, sensitive_features=own.sex)
        assert gap <= 0.03
    again = [*GIVEN, "--with", "adjustment.json", "--out", "again.csv"]
    assert main([*again, "--given", "old"]) == 0
    assert pd.read_csv("again.csv").equals(found)
    assert main(again) == 2
    assert "--given: The adjustment was fitted with old" in capsys.readouterr().err


def test_a_number_among_the_groups_is_cut_into_bands(scores):
    scores["age"] = np.random.default_rng(1).integers(18, 70, 500)
    scores.to_csv("scores.csv", index=False)
    typed = [*GIVEN[:-1], "age", "--bands", "age=30,50"]
    assert main([*typed, "--out", "first.csv", "--save", "adjustment.json"]) == 0
    found = pd.read_csv("first.csv")
    assert (found.age == scores.age).all()
    expected = align_scores(scores.score, bands(scores.age, [30, 50]))
    assert found.adjusted_score.to_numpy() == pytest.approx(expected, abs=1e-12)
    assert main([*typed, "--with", "adjustment.json", "--out", "again.csv"]) == 0
    assert pd.read_csv("again.csv").equals(found)
    assert main([*GIVEN, "--bands", "age=30", "--out", "wrong.csv"]) == 2
