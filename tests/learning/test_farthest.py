"""Numbers beyond what can be computed with are refused, and never become NaN."""

import numpy as np
import pytest
from paper.rivals import (
    LAFTRTransformer,
    RepresentationClassifier,
    TransportRepairTransformer,
    UnconstrainedClassifier,
)
from synthetic import QUICK, made, people

from fairmatch import FTMBoostingClassifier, FTMClassifier, FTMRegressor
from fairmatch.exceptions import InputError

X, Y, GROUP = people(200)
ONCE = {**QUICK, "epochs": 1}


def with_one(value):
    table = X.copy()
    table[3, 1] = value
    return table


def scores(model, table):
    predict = getattr(model, "predict_proba", model.predict)
    return predict(table, sensitive_features=GROUP)


@pytest.mark.parametrize("value", [1e19, 1e40, 1e300, -1e300])
@pytest.mark.parametrize(
    "model",
    [
        made(FTMClassifier, **ONCE, encoder=None),
        made(UnconstrainedClassifier, **ONCE, encoder=None),
        made(FTMRegressor, **ONCE, encoder=None),
        made(RepresentationClassifier, made(LAFTRTransformer, **ONCE, encoder=None), **ONCE),
        made(RepresentationClassifier, TransportRepairTransformer(encoder=None), **ONCE),
    ],
    ids=lambda model: type(model).__name__,
)
def test_without_an_encoder_they_are_named(model, value):
    told = r"X holds -?1e\+\d+ \(row 3, column 1, counted from 0\), beyond 1e\+18"
    with pytest.raises(InputError, match=told):
        model.fit(with_one(value), Y, sensitive_features=GROUP)
    model.fit(X, Y, sensitive_features=GROUP)
    with pytest.raises(InputError, match=told):
        scores(model, with_one(value))


@pytest.mark.parametrize("value", [1e19, 1e40, 1e300])
def test_the_encoder_names_what_is_too_far_from_the_training_rows(value):
    model = made(FTMClassifier, **ONCE).fit(X, Y, sensitive_features=GROUP)
    with pytest.raises(InputError, match="too far from the values in fit"):
        scores(model, with_one(value))
    model.fit(with_one(value), Y, sensitive_features=GROUP)
    assert np.isfinite(scores(model, with_one(value))).all()


@pytest.mark.parametrize("value", [1e19, 1e40, 1e300])
def test_trees_take_numbers_as_they_are(value):
    model = made(FTMBoostingClassifier, n_estimators=3).fit(
        with_one(value), Y, sensitive_features=GROUP
    )
    assert np.isfinite(scores(model, with_one(value))).all()
