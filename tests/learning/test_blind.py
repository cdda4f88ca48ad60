"""Decisions that need no group of new rows: the linear program, and the classifier around it."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

from fairmatch import GroupBlindClassifier, fairness_path, group_probabilities
from fairmatch.exceptions import InputError
from fairmatch.learning.blind import fit_rules, gap_of
from fairmatch.measures import demographic_parity_gap, equalized_odds_gap, true_positive_gap


def drawn(seed, n_rows, n_classes, n_groups):
    generator = np.random.default_rng(seed)
    masses = generator.dirichlet(np.ones(n_groups), n_rows)[:, None, :]
    scores = np.clip(0.5 * masses[:, 0, 0] + generator.uniform(0.0, 0.7, n_rows), 0.0, 1.0)
    if n_classes == 2:
        masses = np.concatenate(
            [masses * (1.0 - scores)[:, None, None], masses * scores[:, None, None]], axis=1
        )
    return scores, masses, generator.integers(1, 3, n_rows).astype(float)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("strength", [0.3, 0.7, 1.0])
def test_no_decisions_are_more_accurate_with_so_small_a_gap(seed, strength):
    """Brute force: all decisions of twelve people."""
    scores, masses, weights = drawn(seed, 12, 1, 2)
    (rule,) = fit_rules(scores, masses, weights, [strength])
    ratios = masses[:, 0] / (weights @ masses[:, 0])

    def facts(decisions):
        rates = (weights * decisions) @ ratios
        return rates[0] - rates[1], weights @ ((2.0 * scores - 1.0) * decisions)

    plain = (scores >= 0.5).astype(float)
    moved = scores - masses[:, 0] @ (rule.multipliers / rule.shares)[0]
    decided = moved > 0.5 + 1e-9
    sign = np.sign(facts(plain)[0])
    gap, profit = facts(decided.astype(float))
    for decisions in product((0.0, 1.0), repeat=12):
        other, found = facts(np.array(decisions))
        if sign * other <= sign * gap + 1e-12:
            assert found <= profit + 1e-9


@pytest.mark.parametrize(("n_classes", "n_groups"), [(1, 2), (1, 4), (2, 2), (2, 3)])
def test_rules_keep_their_gap_up_to_a_few_people(n_classes, n_groups):
    scores, masses, weights = drawn(7, 1500, n_classes, n_groups)
    strengths = [0.0, 0.25, 0.5, 1.0]
    rules = fit_rules(scores, masses, weights, strengths)
    plain = gap_of((scores >= 0.5).astype(float), masses, weights)
    assert not rules[0].multipliers.any()
    right = []
    for rule, strength in zip(rules, strengths, strict=True):
        decided = (rule.move(scores, masses) >= 0.5).astype(float)
        assert gap_of(decided, masses, weights) <= (1.0 - strength) * plain + 0.01
        right.append(weights @ ((2.0 * scores - 1.0) * decided))
    assert right == sorted(right, reverse=True)


def test_the_solver_sees_costs_of_about_one(monkeypatch):
    """With costs of 1 / n_rows, HiGHS gave up on 20,000 rows of Adult."""
    seen = []

    def solve(cost, **more):
        seen.append(np.abs(cost).max())
        return linprog(cost, **more)

    monkeypatch.setattr("fairmatch.learning.blind.linprog", solve)
    generator = np.random.default_rng(0)
    for n_rows in (50, 5000):
        share = generator.random(n_rows)
        masses = np.stack([share, 1.0 - share], axis=1)[:, None]
        weights = 1e-6 * generator.uniform(0.5, 1.5, n_rows)
        fit_rules(0.8 * share + 0.1, masses, weights, [0.5])
    assert 0.5 < min(seen) <= max(seen) < 2.0


def test_rules_are_the_same_every_time():
    given = drawn(3, 400, 2, 3)
    one, other = (fit_rules(*given, [0.8])[0].multipliers for _ in range(2))
    assert_array_equal(one, other)


def table(n_rows=3000, seed=0, n_groups=2):
    generator = np.random.default_rng(seed)
    groups = generator.integers(n_groups, size=n_rows)
    X = pd.DataFrame(generator.normal(size=(n_rows, 3)), columns=["a", "b", "c"])
    X["a"] += 0.8 * groups
    X["b"] -= groups == 1
    chance = 1.0 / (1.0 + np.exp(-1.5 * X["a"] + 0.3))
    y = (generator.random(n_rows) < chance).astype(int)
    return X, y, np.array(["f", "m", "x"], dtype=object)[groups]


@pytest.mark.parametrize(
    ("criterion", "measure"),
    [
        ("demographic_parity", demographic_parity_gap),
        ("equal_opportunity", true_positive_gap),
        ("equalized_odds", equalized_odds_gap),
    ],
)
@pytest.mark.parametrize("n_groups", [2, 3])
def test_the_gap_of_new_rows_becomes_small(criterion, measure, n_groups):
    X, y, groups = table(n_groups=n_groups)
    new, truth, their = table(seed=1, n_groups=n_groups)
    estimator = GroupBlindClassifier(LogisticRegression(), criterion=criterion, cv=3)
    path = fairness_path(
        X, y, sensitive_features=groups, fairness_weights=[0.0, 1.0], estimator=estimator
    )
    before, after = (
        measure(truth, model.predict(new), sensitive_features=their) for model in path.models
    )
    assert after < 0.35 * before
    plain = LogisticRegression().fit(X, y)
    assert_allclose(path.models[0].predict_proba(new), plain.predict_proba(new))


def test_probabilities_stand_for_groups():
    X, y, groups = table()
    certain = group_probabilities(pd.get_dummies(pd.Series(groups)).astype(float))
    model = GroupBlindClassifier(LogisticRegression(), cv=3)
    known = model.fit(X, y, sensitive_features=groups).predict_proba(X)
    assert_array_equal(model.fit(X, y, sensitive_features=certain).predict_proba(X), known)
    # Probabilities of the group from a part of the features.
    given = LogisticRegression().fit(X[["a", "b"]], groups)
    guessed = group_probabilities(given.predict_proba(X[["a", "b"]]), labels=given.classes_)
    soft = GroupBlindClassifier(LogisticRegression(), cv=3).fit(X, y, sensitive_features=guessed)
    gaps = [
        demographic_parity_gap(None, own, sensitive_features=groups)
        for own in (LogisticRegression().fit(X, y).predict(X), soft.predict(X))
    ]
    assert gaps[1] < 0.35 * gaps[0]
    assert soft.groups_ == ("f", "m")


def test_a_bound_on_the_gap_of_estimated_groups():
    X, y, groups = table(4000)
    given = LogisticRegression().fit(X[["a", "b"]], groups)
    guessed = group_probabilities(given.predict_proba(X[["a", "b"]]), labels=given.classes_)
    model = GroupBlindClassifier(LogisticRegression(), cv=3, max_gap=0.1, random_state=0)
    model.fit(X, y, sensitive_features=guessed)
    curve = model.validation_curve_
    kept = curve[curve["fairness_weight"] == model.fairness_weight_].iloc[0]
    assert kept["demographic_parity_gap"] <= 0.1
    again = model.path_.curve(X, y, sensitive_features=guessed)
    assert again["demographic_parity_gap"].iloc[0] == pytest.approx(
        demographic_parity_gap(None, model.path_.models[0].predict(X), sensitive_features=guessed)
    )
    with pytest.raises(InputError, match="confidence"):
        GroupBlindClassifier(LogisticRegression(), cv=3, max_gap=0.1, confidence=0.9).fit(
            X, y, sensitive_features=guessed
        )


def test_other_estimators_refuse_probabilities():
    from fairmatch import QuantileAlignmentClassifier

    X, y, _ = table(200)
    soft = group_probabilities(np.full((200, 2), 0.5))
    with pytest.raises(InputError, match="group_probabilities do not combine"):
        QuantileAlignmentClassifier(LogisticRegression()).fit(X, y, sensitive_features=soft)


def test_what_is_refused():
    from sklearn.linear_model import Ridge

    X, y, groups = table(200)
    with pytest.raises(InputError, match="estimator must have predict_proba"):
        GroupBlindClassifier(Ridge()).fit(X, y, sensitive_features=groups)
    half = [(np.arange(100), np.arange(100, 200))]
    with pytest.raises(InputError, match="cv leaves 100 rows out of every test part"):
        GroupBlindClassifier(LogisticRegression(), cv=half).fit(X, y, sensitive_features=groups)


def test_weights_and_people_without_a_group():
    X, y, groups = table(600)
    groups = np.where(np.arange(600) % 40 == 0, None, groups)
    model = GroupBlindClassifier(LogisticRegression(), cv=3)
    model.fit(X, y, sensitive_features=groups, sample_weight=1.0 + np.arange(600) % 2)
    assert model.n_unknown_ == 15
    assert model.rule_.multipliers.shape == (1, 2)
    assert model.predict(X).shape == (600,)
