"""A model that is meant not to see the group does not read it off a column."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from paper.rivals import (
    ExponentiatedGradientClassifier,
    GapRegularizedClassifier,
    LAFTRTransformer,
    RepresentationClassifier,
)
from sklearn.preprocessing import StandardScaler
from synthetic import QUICK, people

from fairmatch import FTMBoostingClassifier, FTMBoostingRegressor, FTMClassifier
from fairmatch.exceptions import ColumnError, InputError, LeakWarning

BLIND = {"sensitive_at_prediction": False}
TREES = {"n_rounds": 3, "random_state": 0}
EVERY = [
    FTMBoostingClassifier(**BLIND, **TREES),
    FTMBoostingRegressor(**BLIND, **TREES),
    FTMClassifier(**BLIND, **QUICK),
    GapRegularizedClassifier(**BLIND, **QUICK),
    ExponentiatedGradientClassifier(**BLIND, max_iter=2),
    LAFTRTransformer(**BLIND, **QUICK),
    RepresentationClassifier(LAFTRTransformer(**BLIND, **QUICK), **QUICK),
]


def table(seed=0):
    X, y, group = people(200, seed)
    frame = pd.DataFrame(X, columns=["wage", "debt", "age", "visits"])
    return frame, y, np.where(group == 1, "m", "f")


def name(model):
    return type(model).__name__


@pytest.mark.parametrize("model", EVERY, ids=name)
@pytest.mark.parametrize("kind", ["copy", "other words", "one number", "one-hot"])
def test_a_column_that_gives_the_group_away_is_named(model, kind):
    X, y, sex = table()
    leaks = {
        "copy": {"gender": sex},
        "other words": {"title": np.where(sex == "m", "Mr", "Ms")},
        "one number": {"code": np.where(sex == "m", 7, 3)},
        "one-hot": {"is_m": sex == "m", "is_f": sex == "f"},
    }[kind]
    with pytest.raises(ColumnError, match=f"'{next(iter(leaks))}'.*keep="):
        model.fit(X.assign(**leaks), y, sensitive_features=sex)


def test_what_is_wanted_is_kept_and_named_columns_alone():
    X, y, sex = table()
    X = X.assign(gender=sex, title=np.where(sex == "m", "Mr", "Ms"))
    with pytest.raises(ColumnError, match="'title'") as caught:
        FTMBoostingClassifier(**BLIND, **TREES, keep=["gender"]).fit(X, y, sensitive_features=sex)
    assert "'gender'" not in str(caught.value)
    for keep in (["gender", "title"], "all"):
        model = FTMBoostingClassifier(**BLIND, **TREES, keep=keep)
        assert model.fit(X, y, sensitive_features=sex).predict(X).shape == (200,)
    with pytest.raises(InputError, match="list of columns or 'all'"):
        FTMBoostingClassifier(**BLIND, **TREES, keep="gender").fit(X, y, sensitive_features=sex)


def test_a_model_that_sees_the_group_may_see_it_twice():
    X, y, sex = table()
    given = {"sensitive_features": sex}
    FTMBoostingClassifier(**TREES).fit(X.assign(gender=sex), y, **given)


def test_a_near_copy_is_a_warning():
    X, y, sex = table()
    nearly = np.where(np.arange(200) < 4, "f", sex)
    with pytest.warns(LeakWarning, match="'nearly'.*keep="):
        FTMBoostingClassifier(**BLIND, **TREES).fit(
            X.assign(nearly=nearly), y, sensitive_features=sex
        )


def test_one_of_several_attributes_is_enough():
    X, y, sex = table()
    both = pd.DataFrame({"sex": sex, "city": np.array(["x", "y"])[np.arange(200) % 2]})
    with pytest.raises(ColumnError, match=r"'town'.*'city'"):
        FTMBoostingClassifier(**BLIND, **TREES).fit(
            X.assign(town=both.city.str.upper()), y, sensitive_features=both
        )


def test_what_a_users_own_encoder_makes_is_looked_at():
    X, y, sex = table()
    model = FTMClassifier(**BLIND, **QUICK, encoder=StandardScaler())
    with pytest.raises(ColumnError, match="'x4'"):
        model.fit(X.assign(code=np.where(sex == "m", 7.0, 3.0)), y, sensitive_features=sex)


def test_the_same_columns_give_the_same_model_as_before():
    X, y, sex = table()
    first, second = (
        FTMBoostingClassifier(**BLIND, **TREES, keep=keep).fit(X, y, sensitive_features=sex)
        for keep in ((), "all")
    )
    assert_array_equal(first.predict_proba(X), second.predict_proba(X))
