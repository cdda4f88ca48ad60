"""Scores with a range of their own, cuts by rank, and missing scores and labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from fairmatch import audit, compare_models
from fairmatch.exceptions import InputError
from fairmatch.report import write_report

FAST = {"n_resamples": 100, "n_subsets": 1}


@pytest.fixture(scope="module")
def deciles():
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b"], 800)
    score = rng.integers(1, 11, 800).astype(float)
    label = (rng.random(800) < score / 12).astype(int)
    return group, score, label


def test_marks_are_audited_in_their_own_range(deciles):
    group, score, label = deciles
    given = {"sensitive_features": group, "y_true": label, **FAST}
    marks = audit(score, score_range=(1, 10), threshold=7, **given)
    shares = audit((score - 1) / 9, threshold=6 / 9 - 1e-9, **given)
    for ours, theirs in zip(marks.gaps, shares.gaps, strict=True):
        unit = 9.0 if ours.name in ("mean_parity_gap", "wasserstein_parity_gap") else 1.0
        stated = ours.value, ours.low, ours.high, ours.expected
        scaled = theirs.value, theirs.low, theirs.high, theirs.expected
        assert stated == pytest.approx([unit * own for own in scaled], abs=1e-9), ours.name
    first, other = marks.groups[0], shares.groups[0]
    assert first.mean_score.value == pytest.approx(score[group == "a"].mean())
    assert first.mean_score.low == pytest.approx(1 + 9 * other.mean_score.low)
    assert first.score_counts == other.score_counts
    assert marks.score_values == tuple(np.arange(1.0, 11.0))
    assert marks.score_range == (1.0, 10.0)


def test_every_decile_is_stated_by_itself_and_has_no_calibration(deciles, tmp_path):
    group, score, label = deciles
    found = audit(
        score, sensitive_features=group, y_true=label, score_range=(1, 10), threshold=7, **FAST
    )
    bins = found.groups[0].calibration
    assert [own.low for own in bins] == [own.high for own in bins] == list(range(1, 11))
    last = (group == "a") & (score == 10)
    assert bins[-1].n_rows == last.sum()
    assert bins[-1].positive_rate.value == pytest.approx(label[last].mean())
    assert found.groups[0].calibration_error is None
    tenths = audit(score / 10, sensitive_features=group, y_true=label, **FAST)
    assert len(tenths.groups[0].calibration) == 10
    assert tenths.groups[0].calibration_error is not None
    pages = [
        write_report(own, tmp_path / "page.html").read_text("utf-8") for own in (tenths, found)
    ]
    assert ["The scores take few values" in page for page in pages] == [True, False]
    assert ["Does a score mean the same" in page for page in pages] == [True, False]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"score_range": (1, 10)}, "without a threshold"),
        ({"score_range": (1, 10), "threshold": 0.5}, "not between 1 and 10"),
        ({"score_range": (2, 10), "threshold": 5}, "outside"),
        ({"score_range": (10, 1), "threshold": 5}, "such as"),
        ({"score_range": (1, 10), "threshold": 5, "top": 3}, "both given"),
        ({}, "score_range"),
    ],
)
def test_ranges_that_make_no_sense(deciles, given, message):
    group, score, _ = deciles
    with pytest.raises(InputError, match=message):
        audit(score, sensitive_features=group, **given, **FAST)


def test_decisions_of_minus_one_and_one_get_the_call_that_reads_them():
    with pytest.raises(InputError, match="--accepted 1"):
        audit(np.tile([-1, 1], 40), sensitive_features=[0, 1, 1, 0] * 20, **FAST)


@pytest.mark.parametrize("favourable", ["high", "low"])
@pytest.mark.parametrize("top", [100, 0.1, "10%", 37])
def test_the_best_are_those_of_a_sorted_list(favourable, top):
    rng = np.random.default_rng(1)
    score, group = rng.integers(0, 60, 1000) / 60, rng.integers(0, 2, 1000)
    found = audit(score, sensitive_features=group, top=top, favourable=favourable, **FAST)
    wanted = top if isinstance(top, int) else 100
    ranked = np.sort(score)[::-1] if favourable == "high" else np.sort(score)
    last = ranked[wanted - 1]
    chosen = score >= last if favourable == "high" else score <= last
    assert found.n_selected == chosen.sum() >= wanted
    rates = [own.selection_rate.value for own in found.groups]
    assert rates == pytest.approx([chosen[group == k].mean() for k in (0, 1)])
    assert any(f"where {(score == last).sum()} people tie" in note for note in found.notes)


def test_every_model_has_its_own_cut():
    rng = np.random.default_rng(2)
    models = {"one": rng.random(300), "other": rng.random(300) / 3}
    found = compare_models(models, sensitive_features=rng.integers(0, 2, 300), top=30, **FAST)
    assert [own.n_selected for own in found.audits] == [30, 30]
    with pytest.raises(InputError, match="more than the 300"):
        audit(models["one"], sensitive_features=[0, 1] * 150, top=301, **FAST)
    with pytest.raises(InputError, match="neither a number"):
        audit(models["one"], sensitive_features=[0, 1] * 150, top="many", **FAST)


def test_missing_scores_are_counted_and_left_out():
    rng = np.random.default_rng(3)
    score, group = rng.random(400), rng.choice(["a", "b"], 400)
    X, label = pd.DataFrame({"x": rng.random(400)}), rng.integers(0, 2, 400)
    holes = score.copy()
    holes[:30] = np.nan
    found = audit(holes, sensitive_features=group, X=X, y_true=label, **FAST)
    without = audit(score[30:], sensitive_features=group[30:], X=X[30:], y_true=label[30:], **FAST)
    assert found.n_rows == 370
    assert found.gaps == without.gaps
    n_a = (group[:30] == "a").sum()
    note = f"30 rows have no score and were left out of everything (a: {n_a}, b: {30 - n_a})."
    assert note in found.notes
    with pytest.raises(InputError, match="more than 20%"):
        audit(np.where(np.arange(400) < 81, np.nan, score), sensitive_features=group, **FAST)


def test_missing_scores_of_aggregated_rows_are_counted_in_people():
    given = {"sensitive_features": ["a", "a", "a", "b", "b", "b"], "weight_kind": "counts"}
    found = audit([0.2, 0.7, None] * 2, sample_weight=[100, 80, 10, 90, 60, 20], **given)
    assert found.n_rows == 330
    note = "30 people have no score and were left out of everything (a: 10, b: 20)."
    assert note in found.notes
    with pytest.raises(InputError, match="80 missing scores in 340 people"):
        audit([0.2, 0.7, None] * 2, sample_weight=[100, 80, 40, 50, 30, 40], **given)


def test_missing_labels_are_left_out_of_what_needs_them():
    rng = np.random.default_rng(4)
    score, group = rng.random(600), rng.choice(["a", "b"], 600)
    label = np.where(rng.random(600) < 0.1, None, np.where(score > rng.random(600), "yes", "no"))
    given = {"sensitive_features": group, "pos_label": "yes", **FAST}
    found = audit(score, y_true=label, **given)
    known = label != None  # noqa: E711
    own = audit(score[known], y_true=label[known], **{**given, "sensitive_features": group[known]})
    for name in ("true_positive_gap", "false_positive_gap", "equalized_odds_gap"):
        assert found.gap(name).value == pytest.approx(own.gap(name).value)
        assert found.gap(name).low == pytest.approx(own.gap(name).low, abs=0.01)
    everybody = audit(score, sensitive_features=group, **FAST)
    assert found.gap("demographic_parity_gap") == everybody.gap("demographic_parity_gap")
    first = (group == "a") & known
    auc = roc_auc_score(label[first] == "yes", score[first])
    assert found.groups[0].auc.value == pytest.approx(auc)
    assert found.groups[0].base_rate == own.groups[0].base_rate
    assert found.groups[0].calibration == own.groups[0].calibration
    assert any(f"{(~known).sum()} rows have no label" in note for note in found.notes)
    low = audit(score, y_true=label, favourable="low", **given)
    assert low.groups[0].base_rate.value == pytest.approx(np.mean(label[first] == "no"))


def test_people_without_a_label_are_listed_without_one():
    rng = np.random.default_rng(5)
    label = rng.integers(0, 2, 100).astype(float)
    label[7] = np.nan
    X = pd.DataFrame({"x": rng.random(100)})
    found = audit(rng.random(100), sensitive_features=[0, 1] * 50, X=X, y_true=label, **FAST)
    listed = dict(zip(found.individuals.rows, found.individuals.labels, strict=True))
    assert listed[7] is None
    assert listed[8] == label[8]
    assert "joint" not in found.individuals.pairs


@pytest.mark.parametrize(
    ("labels", "note"),
    [
        (["?", "White"], "'?' reads like a missing value"),
        (["N/A", "White"], "'N/A' reads like a missing value"),
        (["Caucasian", "caucasian "], "differ only in capitals or spaces"),
    ],
)
def test_groups_nobody_meant_get_a_note(labels, note):
    found = audit([0.2, 0.8] * 40, sensitive_features=np.repeat(labels, 40), **FAST)
    assert any(note in own for own in found.notes)


def test_a_score_that_looks_like_a_risk_gets_a_hint():
    rng = np.random.default_rng(6)
    group, score = rng.integers(0, 2, 400), rng.random(400)
    label = (rng.random(400) > score).astype(int)
    hints = {
        "by name": audit(score, sensitive_features=group, model_name="risk_score", **FAST),
        "by label": audit(score, sensitive_features=group, y_true=label, **FAST),
        "neither": audit(score, sensitive_features=group, y_true=1 - label, **FAST),
        "known": audit(
            score, sensitive_features=group, y_true=label, favourable="low", model_name="risk"
        ),
    }
    told = {name: any("--favourable low" in n for n in one.notes) for name, one in hints.items()}
    assert told == {"by name": True, "by label": True, "neither": False, "known": False}


def test_means_of_many_people_have_students_interval():
    rng = np.random.default_rng(7)
    sizes = 900, 400
    group, score = np.repeat(["a", "b"], sizes), 0.5 + 0.05 * rng.standard_normal(1300)
    gap = audit(score, sensitive_features=group, **FAST).gap("mean_parity_gap")
    welch = stats.ttest_ind(score[:900], score[900:], equal_var=False).confidence_interval(0.95)
    signed = sorted((-welch.high, -welch.low))
    width = gap.high - gap.low if gap.low else 2 * gap.high
    assert width <= 1.1 * (signed[1] - signed[0])


def test_decisions_in_words_are_an_error_that_says_how_to_pass_them():
    with pytest.raises(InputError, match=r"'no' and 'offer'. Pass .*y_score == 'offer'"):
        audit(["offer", "no"] * 30, sensitive_features=["a", "b"] * 30)
    with pytest.raises(InputError, match="must be numeric"):
        audit(["offer", "no", "later"] * 30, sensitive_features=["a", "b", "b"] * 30)
