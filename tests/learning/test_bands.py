"""Models of bands of a number: matched along the chain, bounded along the number itself."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from fairmatch import (
    FTMBoostingClassifier,
    MatchSmoothingClassifier,
    QuantileAlignmentClassifier,
    bands,
    load,
)
from fairmatch.exceptions import InputError, ModelFileError
from fairmatch.measures import gap_table, generalized_parity_gap

TREES = LGBMClassifier(n_estimators=20, random_state=0, verbose=-1)
NAME = "generalized_parity_gap"


def table(n_rows=1500, seed=0):
    generator = np.random.default_rng(seed)
    age = generator.uniform(20, 70, n_rows)
    X = pd.DataFrame(generator.normal(size=(n_rows, 2)), columns=["u", "v"])
    X["u"] += (age - 45) / 15
    y = (X["u"] + generator.normal(size=n_rows) > 0).astype(int)
    return X, y, age


@pytest.mark.parametrize(
    "model",
    [
        FTMBoostingClassifier(TREES, sensitive_at_prediction=False, max_gap=0.1, gap_measure=NAME),
        QuantileAlignmentClassifier(LogisticRegression(), max_gap=0.1, gap_measure=NAME),
    ],
    ids=["trees", "alignment"],
)
def test_a_bound_on_the_number(model):
    X, y, age = table()
    groups = bands(age, [30, 40, 50])
    model.fit(X, y, sensitive_features=groups)
    chosen = model.validation_curve_.set_index("fairness_weight").loc[model.fairness_weight_]
    assert chosen[NAME] <= 0.1 < model.validation_curve_[NAME].iloc[0]
    new, labels, their = table(seed=1)
    given = {"sensitive_features": bands(their, groups.edges)}
    scores = model.path_.scores(new, **given)
    curve = model.path_.curve(new, labels, **given)[NAME]
    own = [generalized_parity_gap(None, one, sensitive_features=their) for one in scores]
    assert curve.to_list() == pytest.approx(own)
    assert gap_table(None, scores[0], **given)[NAME] == pytest.approx(own[0])


def test_a_bound_on_the_number_needs_one():
    X, y, age = table(300)
    model = FTMBoostingClassifier(TREES, max_gap=0.1, gap_measure=NAME)
    with pytest.raises(InputError, match="not bands of a number") as caught:
        model.fit(X, y, sensitive_features=age > 45)
    assert caught.value.parameter == "gap_measure"
    with pytest.raises(InputError, match="people, but 100 are needed"):
        model.fit(X[:90], y[:90], sensitive_features=bands(age[:90], [45]))


def test_columns_are_cut_into_bands(tmp_path):
    """A mapping from columns to edges gives the model of the same bands beside X."""
    X, y, age = table(600)
    inside = X.assign(age=age)
    model = FTMBoostingClassifier(TREES, sensitive_column={"age": [30, 50]}, random_state=0)
    model.fit(inside, y)
    beside = FTMBoostingClassifier(TREES, random_state=0)
    beside.fit(X, y, sensitive_features=bands(age, [30, 50]))
    scores = model.predict_proba(inside)
    assert_array_equal(scores, beside.predict_proba(X, sensitive_features=bands(age, [30, 50])))
    again = load(model.save(tmp_path / "model"))
    assert_array_equal(again.predict_proba(inside), scores)
    sex = np.tile(["f", "m"], 300)
    both = FTMBoostingClassifier(TREES, sensitive_column={"age": [45], "sex": None})
    both.fit(inside.assign(sex=sex), y)
    assert both.groups_ == ("45 and over, f", "45 and over, m", "under 45, f", "under 45, m")
    file = tmp_path / "model" / "model.json"
    file.write_text(file.read_text().replace('"edges"', '"cuts"'))
    with pytest.raises(ModelFileError):
        load(tmp_path / "model")


def test_wrapped_people_are_not_matched_on_the_number_behind_their_bands():
    X, y, age = table(300)
    learner = make_pipeline(ColumnTransformer([("u", "passthrough", ["u"])]), LogisticRegression())
    model = MatchSmoothingClassifier(learner, sensitive_column={"age": [45]})
    same_bands = np.where(age < 45, 20.0, 60.0)
    found = [clone(model).fit(X.assign(age=number), y).targets_ for number in (age, same_bands)]
    assert_array_equal(*found)
