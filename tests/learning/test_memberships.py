"""Models that match people whose groups are probabilities."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

from fairmatch import (
    FTMBoostingClassifier,
    FTMClassifier,
    GroupBlindClassifier,
    MatchSmoothingClassifier,
    NeuralNetwork,
    QuantileAlignmentClassifier,
    group_probabilities,
    load,
)
from fairmatch.exceptions import FairmatchWarning, InputError
from fairmatch.learning.penalties import Transport
from fairmatch.learning.reading import EncodedTable
from fairmatch.measures import demographic_parity_gap
from fairmatch.people.encoding import read_points
from fairmatch.people.groups import read_groups
from fairmatch.people.outcome import PROBABILITY
from fairmatch.people.people import Labels, People
from fairmatch.people.weights import Weights

TREES = LGBMClassifier(n_estimators=20, random_state=0, verbose=-1, n_jobs=1)


def people_of(probabilities, features, weights=None):
    n_rows = len(features)
    groups = read_groups(group_probabilities(probabilities), estimated=True)
    table = EncodedTable(features, read_points(features), n_rows)
    weight = None if weights is None else Weights(n_rows, weights)
    return People(groups, table, Labels(np.arange(n_rows) % 2 * 1.0, (0, 1)), weight)


@pytest.mark.parametrize("weighted", [False, True])
def test_masses_are_memberships(weighted):
    """A linear program over all pairs, in which a person may be matched with herself."""
    generator = np.random.default_rng(0)
    share, features = generator.uniform(size=14), generator.normal(size=(14, 2))
    weights = generator.integers(1, 4, 14).astype(float) if weighted else None
    both = np.column_stack([share, 1.0 - share])
    coupling = Transport("marginal", PROBABILITY).match(people_of(both, features, weights))
    mass = both if weights is None else both * weights[:, None]
    sides = (mass / mass.sum(axis=0)).T
    assert coupling.n_rows == 14
    found = np.zeros((14, 14))
    first = coupling.groups[0]
    np.add.at(found, (coupling.source_index, coupling.target_index), coupling.mass)
    found = found if first == 0 else found.T
    assert_allclose(found.sum(axis=1), sides[0], atol=1e-9)
    assert_allclose(found.sum(axis=0), sides[1], atol=1e-9)
    cost = ((features[:, None] - features[None]) ** 2).sum(axis=2)
    rows = [np.kron(np.eye(14)[k], np.ones(14)) for k in range(14)]
    columns = [np.kron(np.ones(14), np.eye(14)[k]) for k in range(14)]
    solved = linprog(cost.ravel(), A_eq=np.array([*rows, *columns]), b_eq=sides.ravel())
    assert (found * cost).sum() == pytest.approx(solved.fun, rel=1e-3)


def test_probabilities_that_say_nothing_match_everybody_with_herself():
    features = np.random.default_rng(1).normal(size=(30, 2))
    coupling = Transport("marginal", PROBABILITY).match(people_of(np.full((30, 2), 0.5), features))
    assert_array_equal(coupling.source_index, coupling.target_index)
    assert coupling.gap(np.random.default_rng(2).uniform(size=30)) == 0.0


def table(n_rows=2000, seed=0):
    generator = np.random.default_rng(seed)
    is_a = generator.random(n_rows) < 0.5
    X = pd.DataFrame(generator.normal(size=(n_rows, 2)), columns=["u", "v"])
    X["u"] -= 1.2 * is_a
    y = (generator.random(n_rows) < 1.0 / (1.0 + np.exp(-1.5 * X["u"]))).astype(int)
    return X, y, np.where(is_a, "a", "b")


@pytest.mark.filterwarnings("ignore:The model that is kept accepts")
@pytest.mark.parametrize(
    "model",
    [
        FTMBoostingClassifier(
            TREES, fairness_weight=4.0, sensitive_at_prediction=False, random_state=0
        ),
        MatchSmoothingClassifier(
            LogisticRegression(), fairness_weight=20.0, sensitive_at_prediction=False, cv=2
        ),
        FTMClassifier(
            NeuralNetwork(hidden_sizes=(16,), epochs=10),
            fairness_weight=4.0,
            sensitive_at_prediction=False,
            random_state=0,
        ),
        GroupBlindClassifier(LogisticRegression(), max_gap=0.15, random_state=0),
    ],
    ids=["trees", "smoothing", "network", "blind rule"],
)
def test_models_learn_from_them(model):
    X, y, groups = table()
    given = LogisticRegression().fit(X, groups)
    guessed = group_probabilities(given.predict_proba(X), labels=["a", "b"])
    fitted = model.fit(X, y, sensitive_features=guessed)
    new, _, their = table(seed=1)
    plain = LogisticRegression().fit(X, y)
    gaps = [
        demographic_parity_gap(None, own.predict(new), sensitive_features=their)
        for own in (plain, fitted)
    ]
    assert gaps[1] < 0.7 * gaps[0]
    # Probabilities of 0 and 1 are groups, to the bit.
    certain = group_probabilities(pd.get_dummies(pd.Series(groups)).astype(float))
    one = model.fit(X, y, sensitive_features=certain).predict_proba(new)
    assert_array_equal(one, model.fit(X, y, sensitive_features=groups).predict_proba(new))


@pytest.mark.parametrize("decisions", ["align", "threshold"])
def test_adjustments_take_probabilities_of_0_and_1(decisions):
    X, y, groups = table(800)
    certain = group_probabilities(pd.get_dummies(pd.Series(groups)).astype(float))
    model = QuantileAlignmentClassifier(
        LogisticRegression(), decisions=decisions, max_gap=0.05, random_state=0
    )
    expected = model.fit(X, y, sensitive_features=groups).predict_proba(
        X, sensitive_features=groups
    )
    fitted = model.fit(X, y, sensitive_features=certain)
    assert_array_equal(fitted.predict_proba(X, sensitive_features=certain), expected)
    with pytest.raises(InputError, match="group_probabilities do not combine"):
        model.fit(X, y, sensitive_features=group_probabilities(np.full((800, 2), 0.5)))


def test_they_need_no_group_at_prediction(tmp_path):
    """Nobody knows the group of a new row, so the model does without it, also when it is loaded."""
    X, y, groups = table(400)
    guessed = LogisticRegression().fit(X, groups).predict_proba(X)
    soft = group_probabilities(guessed, labels=["a", "b"])
    with pytest.warns(FairmatchWarning, match="Pass sensitive_at_prediction=False to say so"):
        model = FTMBoostingClassifier(TREES, random_state=0).fit(X, y, sensitive_features=soft)
    blind = FTMBoostingClassifier(TREES, sensitive_at_prediction=False, random_state=0)
    blind.fit(X, y, sensitive_features=soft)
    assert_array_equal(model.predict_proba(X), blind.predict_proba(X))
    assert_array_equal(
        load(model.save(tmp_path / "model")).predict_proba(X), model.predict_proba(X)
    )
