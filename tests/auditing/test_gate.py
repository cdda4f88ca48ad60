"""The gate for pytest, beside the measure itself."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.linear_model import LogisticRegression

from fairmatch import FTMBoostingClassifier, assert_gap
from fairmatch.exceptions import InputError
from fairmatch.measures import demographic_parity_gap


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
    assert_gap(model, X, y, sensitive_features=group, max_gap=gap + 1e-9)
    with pytest.raises(AssertionError, match=rf"demographic_parity_gap .* is {gap:.3f} \["):
        assert_gap(model, X, y, sensitive_features=group, max_gap=gap - 1e-3)
    with pytest.raises(AssertionError, match="upper confidence limit"):
        assert_gap(model, X, y, sensitive_features=group, max_gap=gap + 1e-3, upper=True)


def test_what_cannot_be_stated_does_not_pass(case):
    model, X, y, group = case
    few = np.flatnonzero(group == "f")[:5].tolist() + np.flatnonzero(group == "m").tolist()
    with pytest.raises(AssertionError, match="cannot be stated"):
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
    assert_gap(model, frame, y, max_gap=gap + 1e-9)
    with pytest.raises(AssertionError, match=f"is {gap:.3f}"):
        assert_gap(model, frame, y, max_gap=gap - 1e-3)
    with pytest.raises(InputError, match="needs the group of every row"):
        assert_gap(case[0], X, y)
