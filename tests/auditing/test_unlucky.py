"""Tables that are not made for an audit: a sentence each, never a crash, nothing dropped unsaid."""

import numpy as np
import pandas as pd
import pytest
from audited import labelled_model

from fairmatch import audit, compare_models
from fairmatch.auditing.facts import Audit
from fairmatch.auditing.subsets import code_column
from fairmatch.exceptions import ColumnError, GroupError
from fairmatch.people.columns import read_columns

QUICK = {"n_resamples": 100, "n_subsets": 10, "n_sample": 60}


@pytest.fixture(scope="module")
def table():
    return labelled_model(200)


def test_without_columns_there_are_gaps_and_the_rest_is_refused(table):
    scores, y, group, _ = table
    found = audit(scores, sensitive_features=group, y_true=y, **QUICK)
    assert found.gap("wasserstein_parity_gap").value is not None
    assert found.matching.transport is None
    assert found.subsets is None


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_constant_scores_are_audited(table, value):
    _, y, group, X = table
    found = audit(np.full(200, value), sensitive_features=group, X=X, y_true=y, **QUICK)
    assert found.gap("mean_parity_gap").value == 0.0
    assert found.gap("wasserstein_parity_gap").value == 0.0
    assert found.undecided
    assert found.matching.nearest_fair.position == pytest.approx(0.0, abs=1e-3)
    assert Audit.from_json(found.to_json()) == found


@pytest.mark.parametrize("n_few", [1, 2])
def test_one_person_in_a_group_is_shown_without_a_statement(table, n_few):
    scores, y, _, X = table
    group = np.repeat(["few", "many"], [n_few, 200 - n_few])
    found = audit(scores, sensitive_features=group, X=X, y_true=y, **QUICK)
    assert found.groups[0].n_rows == n_few
    assert found.gap("mean_parity_gap").value is None
    rows = "1 row" if n_few == 1 else "2 rows"
    assert f"Group 'few' has {rows}, fewer than the 30 a statement needs" in found.refusals[0]
    # Too few are too few with each label; nothing is told of them twice, nor of how they score.
    assert not any("label" in reason for reason in found.refusals)
    assert found.groups[0].calibration == ()
    assert found.groups[0].calibration_error is None
    assert found.impact[0].categories[0].n_people == n_few
    assert Audit.from_json(found.to_json()) == found


def test_one_person_in_a_third_group_leaves_the_others_compared(table):
    scores, _, group, X = table
    three = np.where(np.arange(200) == 0, "one", np.where(group == 1, "b", "a"))
    found = audit(scores, sensitive_features=three, X=X, **QUICK)
    assert found.gap("mean_parity_gap").groups == ("a", "b")
    assert any("'one'" in reason for reason in found.refusals)


def test_unknown_categories_are_counted_and_compared_with_nobody(table):
    scores, _, group, X = table
    given = np.where(np.arange(200) < 50, None, np.where(group == 1, "b", "a"))
    found = audit(scores, sensitive_features=given, X=X, **QUICK)
    assert found.unknown == ("unknown",)
    assert sum(group.n_rows for group in found.groups) == 200
    assert all("unknown" not in (gap.groups or ()) for gap in found.gaps)
    assert found.impact[0].n_unknown == 50
    with pytest.raises(GroupError, match="'unknown'"):
        audit(scores, sensitive_features=np.full(200, None), X=X, **QUICK)


def test_a_column_that_says_nothing_changes_nothing(table):
    scores, _, group, X = table
    found = audit(scores, sensitive_features=group, X=X.assign(same="a"), **QUICK)
    assert all("same" not in subset.description for subset in found.subsets.subsets)
    constant = audit(scores, sensitive_features=group, X=pd.DataFrame({"same": [1] * 200}), **QUICK)
    assert constant.matching.transport.relative is None
    assert constant.matching.nearest_fair.position is None
    assert constant.subsets.subsets == ()


def test_no_subset_says_that_nothing_is_missing():
    scores, _, group, X = labelled_model(800)
    whole = X.assign(kind=np.where(X.x > 0, "a", "b"))
    for subset in audit(scores, sensitive_features=group, X=whole, **QUICK).subsets.subsets:
        assert "missing" not in subset.description
    some = whole.assign(kind=whole.kind.mask(np.arange(800) % 2 == 0))
    levels = [code_column(*read_columns(table[["kind"]])).levels for table in (whole, some)]
    assert levels == [["a", "b"], ["a", "b", None]]


def test_a_column_that_is_the_group_is_refused_unless_it_is_wanted(table):
    scores, _, group, X = table
    for leaking in (X.assign(sex=group), X.assign(sex=np.where(group == 1, "m", "f"))):
        with pytest.raises(ColumnError, match="column 'sex'"):
            audit(scores, sensitive_features=group, X=leaking, **QUICK)
        found = audit(scores, sensitive_features=group, X=leaking, keep=["sex"], **QUICK)
        assert [leak.column for leak in found.leaks] == ["sex"]
        models = {"a": scores, "b": scores}
        with pytest.raises(ColumnError, match="keep="):
            compare_models(models, sensitive_features=group, X=leaking, **QUICK)


def test_a_column_that_gives_the_group_away_can_be_typed(table):
    scores, _, group, X = table
    told = r"or keep it, for example because a model reads it from X: keep=\['sex of person'\]"
    with pytest.raises(ColumnError, match=told) as raised:
        audit(scores, sensitive_features=group, X=X.assign(**{"sex of person": group}), **QUICK)
    assert raised.value.parameter == "keep"


def test_everybody_the_same_is_audited():
    X = pd.DataFrame({"a": [1.0] * 120})
    found = audit(np.full(120, 0.5), sensitive_features=["f", "m"] * 60, X=X, **QUICK)
    assert found.matching.matched_gaps[0].gap.value == 0.0


@pytest.mark.parametrize(("selected", "words"), [(0.95, "At least 9"), (0.02, "At most ")])
def test_a_small_gap_of_a_model_that_treats_nearly_all_alike_is_noted(selected, words):
    rng = np.random.default_rng(0)
    groups, label = rng.choice(list("abc"), 3000), np.arange(3000) % 5 < 2
    score = (rng.random(3000) < selected).astype(float)
    found = audit(score, sensitive_features=groups, y_true=label, n_resamples=100)
    (note,) = [note for note in found.notes if "same decision" in note]
    assert note.startswith(words)
    assert "40% of the people have the favourable label" in note
    same = audit(score, sensitive_features=groups, y_true=score, n_resamples=100)
    assert not any("same decision" in note for note in same.notes)
