"""A model that is meant not to see the group does not read it off a column."""

import numpy as np
import pandas as pd
import pytest
from paper.rivals import (
    ExponentiatedGradientClassifier,
    GapRegularizedClassifier,
    LAFTRTransformer,
    RepresentationClassifier,
)
from sklearn.preprocessing import StandardScaler
from synthetic import QUICK, made, people

from fairmatch import FTMBoostingClassifier, FTMBoostingRegressor, FTMClassifier
from fairmatch.exceptions import ColumnError, LeakWarning

BLIND = {"sensitive_at_prediction": False}
TREES = {"n_estimators": 3, "random_state": 0}
EVERY = [
    made(FTMBoostingClassifier, **BLIND, **TREES),
    made(FTMBoostingRegressor, **BLIND, **TREES),
    made(FTMClassifier, **BLIND, **QUICK),
    made(GapRegularizedClassifier, **BLIND, **QUICK),
    ExponentiatedGradientClassifier(**BLIND, max_iter=2),
    made(LAFTRTransformer, **BLIND, **QUICK),
    made(RepresentationClassifier, made(LAFTRTransformer, **BLIND, **QUICK), **QUICK),
]


def table(seed=0):
    X, y, group = people(200, seed)
    frame = pd.DataFrame(X, columns=["wage", "debt", "age", "visits"])
    return frame, y, np.where(group == 1, "m", "f")


def name(model):
    return type(model).__name__


@pytest.mark.parametrize("model", EVERY, ids=name)
def test_a_copy_of_the_group_is_an_error_that_says_what_to_drop(model):
    X, y, sex = table()
    with pytest.raises(ColumnError, match=r"column 'gender' is the group\. Drop 'gender' from X"):
        model.fit(X.assign(gender=sex), y, sensitive_features=sex)


@pytest.mark.parametrize("model", EVERY, ids=name)
@pytest.mark.parametrize("kind", ["other words", "one number", "one-hot"])
def test_a_column_that_gives_the_group_away_is_named(model, kind):
    X, y, sex = table()
    leaks = {
        "other words": {"title": np.where(sex == "m", "Mr", "Ms")},
        "one number": {"code": np.where(sex == "m", 7, 3)},
        "one-hot": {"is_m": sex == "m", "is_f": sex == "f"},
    }[kind]
    with pytest.warns(LeakWarning, match=f"'{next(iter(leaks))}' determines the group"):
        model.fit(X.assign(**leaks), y, sensitive_features=sex)


def test_a_model_that_sees_the_group_may_see_it_twice():
    X, y, sex = table()
    given = {"sensitive_features": sex}
    made(FTMBoostingClassifier, **TREES).fit(X.assign(gender=sex), y, **given)


def test_a_near_copy_is_a_warning():
    X, y, sex = table()
    nearly = np.where(np.arange(200) < 4, "f", sex)
    with pytest.warns(LeakWarning, match="'nearly' nearly determines.*Drop 'nearly'"):
        made(FTMBoostingClassifier, **BLIND, **TREES).fit(
            X.assign(nearly=nearly), y, sensitive_features=sex
        )


def test_one_of_several_attributes_is_enough():
    X, y, sex = table()
    both = pd.DataFrame({"sex": sex, "city": np.array(["x", "y"])[np.arange(200) % 2]})
    with pytest.warns(LeakWarning, match=r"'town'.*'city'"):
        made(FTMBoostingClassifier, **BLIND, **TREES).fit(
            X.assign(town=both.city.str.upper()), y, sensitive_features=both
        )


def test_what_a_users_own_encoder_makes_is_looked_at():
    X, y, sex = table()
    model = made(FTMClassifier, **BLIND, **QUICK, encoder=StandardScaler())
    with pytest.warns(LeakWarning, match="'x4'"):
        model.fit(X.assign(code=np.where(sex == "m", 7.0, 3.0)), y, sensitive_features=sex)
