"""The command ``fairmatch adjust``."""

import numpy as np
import pandas as pd
import pytest

from fairmatch import align_scores, fit_adjustment
from fairmatch.cli.main import main
from fairmatch.measures import demographic_parity_gap

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


def test_thresholds_need_labels_which_are_named(scores, capsys):
    how = ["--decisions", "threshold", "--max-gap", "0.03", "--out", "a.csv"]
    assert main([*GIVEN, *how]) == 2
    assert "needs the true labels" in capsys.readouterr().err
    assert main([*GIVEN, *how, "--label", "label"]) == 2
    assert "Name the positive label with --positive" in capsys.readouterr().err
    assert main([*GIVEN, *how, "--label", "label", "--positive", "yes"]) == 0
    assert "accuracy" in capsys.readouterr().out
    a = pd.read_csv("a.csv")
    assert demographic_parity_gap(None, a.adjusted_score, sensitive_features=a.sex) <= 0.03


def test_other_scores_and_several_columns(scores):
    scores.assign(score=100 * scores.score).to_csv("scores.csv", index=False)
    given = [*GIVEN, "old", "--scale", "real", "--strength", "0.5", "--out", "a.csv"]
    assert main(given) == 0
    groups = scores.sex + ", " + scores.old.astype(str)
    alone = align_scores(100 * scores.score, groups, strength=0.5, scale="real")
    a = pd.read_csv("a.csv")
    assert a.adjusted_score.to_numpy() == pytest.approx(alone)
    assert "adjusted_decision" not in a


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--out", "scores.csv"], "would be written over"),
        (["--out", "a.csv", "--with", "no.json"], "no file of an adjustment"),
        (["--out", "a.csv", "--with", "no.json", "--scale", "rank"], "Leave one of the two out"),
        (["--out", "a.csv", "--label", "lable"], "label"),
        (["--out", "a.csv", "--criterion", "equal_opportunity"], "needs the true labels"),
        (["--out", "a.csv", "--max-gap", "3"], "max_gap must be a number"),
    ],
)
def test_what_cannot_be_is_said(scores, capsys, more, message):
    assert main([*GIVEN, *more]) == 2
    assert message in capsys.readouterr().err


def test_missing_groups_and_scores_are_named(scores, capsys):
    scores.assign(sex=scores.sex.where(scores.index != 3)).to_csv("scores.csv", index=False)
    assert main([*GIVEN, "--out", "a.csv"]) == 2
    assert "missing in 1 rows (the first in row 3)" in capsys.readouterr().err
    scores.assign(score=5 * scores.score).to_csv("scores.csv", index=False)
    assert main([*GIVEN, "--out", "a.csv"]) == 2
    assert "scale='rank'" in capsys.readouterr().err
