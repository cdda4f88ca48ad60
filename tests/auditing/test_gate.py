"""The gate for pytest, beside the measure itself."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

from fairmatch import FTMBoostingClassifier, assert_gap, audit
from fairmatch.auditing import audit as module
from fairmatch.auditing.facts import Gap
from fairmatch.exceptions import InputError
from fairmatch.measures import demographic_parity_gap

FAST = {"n_resamples": 100}


@pytest.fixture(scope="module")
def case():
    generator = np.random.default_rng(0)
    group = generator.choice(["f", "m"], 400)
    X = np.column_stack([generator.normal(size=400) + (group == "m"), generator.normal(size=400)])
    y = np.where(X[:, 0] + generator.normal(size=400) > 0.5, "yes", "no")
    return LogisticRegression().fit(X, y), X, y, group


def test_the_bound_is_the_measure(case):
    model, X, y, group = case
    scores = model.predict_proba(X)[:, 1]
    gap = demographic_parity_gap(y == "yes", scores, sensitive_features=group)
    given = {"sensitive_features": group, "gate": "estimate"}
    assert_gap(model, X, y, max_gap=gap + 1e-9, **given)
    with pytest.raises(AssertionError, match=rf"demographic_parity_gap .* is {gap:.3f} \["):
        assert_gap(model, X, y, max_gap=gap - 1e-3, **given)


@pytest.mark.parametrize("mode", [None, "shown", "estimate", "upper"])
def test_each_mode_holds_its_limit_to_the_bound(case, mode):
    model, X, y, group = case
    gap = audit(model, X=X, y_true=y, sensitive_features=group, pos_label="yes", **FAST).gap(
        "demographic_parity_gap"
    )
    held = {"estimate": gap.value, "upper": gap.high}.get(mode, gap.low)
    given = {"sensitive_features": group, **FAST, **({} if mode is None else {"gate": mode})}
    assert_gap(model, X, y, max_gap=held + 1e-9, **given)
    with pytest.raises(AssertionError, match=f"Gate '{mode or 'shown'}'"):
        assert_gap(model, X, y, max_gap=held - 1e-9, **given)


def test_a_limit_that_cannot_be_stated_does_not_pass(case, monkeypatch):
    model, X, y, group = case
    shown = Gap("demographic_parity_gap", "ΔDP", 0.01, None, None, None, None, "the interval")
    found = audit(model, X=X, sensitive_features=group, pos_label="yes", **FAST)
    monkeypatch.setattr(module, "audit", lambda *_, **__: replace(found, gaps=(shown,)))
    for mode in ("shown", "upper"):
        with pytest.raises(AssertionError, match="The data do not give the"):
            assert_gap(model, X, y, sensitive_features=group, max_gap=0.5, gate=mode)
    assert_gap(model, X, y, sensitive_features=group, max_gap=0.5, gate="estimate")


def test_a_model_that_selects_nobody_does_not_pass(case):
    model, X, y, group = case
    with pytest.raises(AssertionError, match="Nobody is selected"):
        assert_gap(model, X, y, sensitive_features=group, threshold=1.0)
    with pytest.raises(InputError, match="got 'upper limit'"):
        assert_gap(model, X, y, sensitive_features=group, gate="upper limit")


def test_what_cannot_be_stated_does_not_pass(case):
    model, X, y, group = case
    few = np.flatnonzero(group == "f")[:5].tolist() + np.flatnonzero(group == "m").tolist()
    with pytest.raises(AssertionError, match="is not stated"):
        assert_gap(model, X[few], y[few], sensitive_features=group[few], max_gap=0.9)
    with pytest.raises(InputError, match="not among the gaps"):
        assert_gap(model, X, y, sensitive_features=group, measure="nonsense")


def test_the_group_may_travel_in_the_table(case):
    _, X, y, group = case
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(sex=group)
    model = FTMBoostingClassifier(LGBMClassifier(n_estimators=5), sensitive_column="sex")
    model.fit(frame, y)
    scores = model.predict_proba(frame)[:, 1]
    gap = demographic_parity_gap(y == "yes", scores, sensitive_features=group)
    assert_gap(model, frame, y, max_gap=gap + 1e-9, gate="estimate")
    with pytest.raises(AssertionError, match=f"is {gap:.3f}"):
        assert_gap(model, frame, y, max_gap=gap - 1e-3, gate="estimate")
    with pytest.raises(InputError, match="needs the group of every row"):
        assert_gap(case[0], X, y)


def test_several_classes_are_held_to_their_own_gaps(case):
    _, X, _, group = case
    y = np.array(["Low", "Mid", "High"])[np.digitize(X[:, 0], [0.0, 1.0])]
    model = LogisticRegression().fit(X, y)
    gap = demographic_parity_gap(None, model.predict_proba(X), sensitive_features=group)
    given = {"sensitive_features": group, "favourable": ["High"], "n_resamples": 100}
    given["gate"] = "estimate"
    assert_gap(model, X, y, max_gap=gap + 1e-9, **given)
    with pytest.raises(AssertionError, match=rf"demographic_parity_gap .* is {gap:.3f} \["):
        assert_gap(model, X, y, max_gap=gap - 1e-3, **given)
    with pytest.raises(InputError, match="Name them, such as favourable="):
        assert_gap(model, X, y, sensitive_features=group)
    with pytest.raises(InputError, match="LinearRegression has no predict_proba"):
        assert_gap(LinearRegression().fit(X, X[:, 0]), X, sensitive_features=group)
