"""Rows of weight zero are no part of a table."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from paper.rivals import GapRegularizedClassifier, TransportRepairTransformer
from synthetic import QUICK, made, people

from fairmatch import (
    FTMBoostingClassifier,
    FTMBoostingRegressor,
    FTMClassifier,
    OptimalTransportMatcher,
)
from fairmatch.exceptions import GroupError

TREES = {"n_estimators": 10, "random_state": 0}
EVERY = [
    made(FTMBoostingClassifier, "marginal", **TREES),
    made(FTMBoostingClassifier, "predicted", **TREES),
    made(FTMBoostingClassifier, "marginal", early_stopping_rounds=3, **TREES),
    made(FTMBoostingRegressor, "predicted", **TREES),
    made(FTMClassifier, **QUICK),
    made(GapRegularizedClassifier, **QUICK),
]


def with_strangers(n_strangers=10):
    """Return a table whose last rows are far away from all others, and have no weight."""
    X, y, group = people(150)
    strange = np.full((n_strangers, X.shape[1]), 1e4)
    table = pd.DataFrame(np.vstack([X, strange]), columns=[*"abcd"])
    table["job"] = ["cook", "nurse", "smith"] * 50 + ["astronaut"] * n_strangers
    labels = np.append(y, np.arange(n_strangers) % 2)
    groups = np.append(group, np.arange(n_strangers) // 2 % 2)
    return table, labels, groups, np.append(np.ones(len(y)), np.zeros(n_strangers))


def scores(model, X, groups):
    given = {"sensitive_features": groups}
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X, **given)
    return model.predict(X, **given)


@pytest.mark.parametrize("model", EVERY, ids=repr)
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
def test_they_change_nothing(model, kind):
    X, y, groups, weight = with_strangers()
    known = weight > 0
    n_known = int(known.sum())
    model.fit(
        kind(X[:n_known]), y[known], sensitive_features=groups[known], sample_weight=weight[known]
    )
    alone = scores(model, kind(X[:n_known]), groups[known])
    model.fit(kind(X), y, sensitive_features=groups, sample_weight=weight)
    assert_allclose(scores(model, kind(X[:n_known]), groups[known]), alone, rtol=1e-12)


def test_a_representation_does_not_see_them():
    X, _, groups, weight = with_strangers()
    X, known = X.drop(columns="job"), weight > 0
    model = TransportRepairTransformer()
    alone = model.fit_transform(X[known], sensitive_features=groups[known])
    model.fit(X, sensitive_features=groups, sample_weight=weight)
    assert_array_equal(model.transform(X[known], sensitive_features=groups[known]), alone)


def test_a_group_without_weight_is_named():
    X, y, groups, _ = with_strangers()
    with pytest.raises(GroupError, match="The weights of group 1 sum to zero"):
        made(FTMBoostingClassifier, **TREES).fit(
            X, y, sensitive_features=groups, sample_weight=(groups == 0).astype(float)
        )


def test_a_ready_coupling_keeps_its_rows():
    X, y, groups, weight = with_strangers()
    numbers = X.drop(columns="job")
    coupling = OptimalTransportMatcher().match(numbers, groups, sample_weight=weight)
    model = made(FTMBoostingClassifier, **TREES)
    model.fit(numbers, y, sensitive_features=groups, sample_weight=weight, coupling=coupling)
    assert np.isfinite(scores(model, numbers, groups)).all()
