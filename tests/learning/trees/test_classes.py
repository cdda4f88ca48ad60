"""Trees of several classes: LightGBM itself, finite differences, and two classes as oracles."""

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from scipy.special import softmax

from fairmatch import FTMBoostingClassifier, OptimalTransportMatcher, fairness_path, load
from fairmatch.exceptions import InputError, LabelError
from fairmatch.learning.penalties import MatchedGap
from fairmatch.learning.trees import BoostingObjective
from fairmatch.measures import demographic_parity_gap
from fairmatch.people.groups import read_groups
from fairmatch.people.outcome import LOGISTIC, softmax_loss
from fairmatch.people.people import Labels, People

SMALL = LGBMClassifier(n_estimators=20, num_leaves=7)


@pytest.fixture(scope="module")
def people():
    generator = np.random.default_rng(0)
    group = np.resize(["f", "m"], 600)
    X = pd.DataFrame(generator.normal(size=(600, 3)), columns=["age", "pay", "years"])
    X["pay"] += 0.9 * (group == "m")
    margins = np.column_stack([np.zeros(600), X["pay"], 1.5 * X["pay"] + X["age"]])
    chances = softmax(margins, axis=1)
    y = np.array(["low", "middle", "top"])[[generator.choice(3, p=own) for own in chances]]
    return X, y, group


def objective(n_classes, seed=0, weight=2.0):
    generator = np.random.default_rng(seed)
    groups = read_groups(np.resize([0, 1], 30))
    coupling = OptimalTransportMatcher().match(generator.normal(size=(30, 2)), groups.codes)
    values = generator.integers(n_classes, size=30).astype(float)
    labels = Labels(values, tuple(range(n_classes)))
    return (
        groups,
        labels,
        coupling,
        BoostingObjective(
            People(groups, labels=labels),
            weight,
            MatchedGap(coupling),
            loss=softmax_loss(n_classes),
        ),
    )


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_gradients_by_finite_differences(n_classes):
    _, _, _, own = objective(n_classes)
    margins = np.random.default_rng(1).normal(size=(30, n_classes))
    gradient, curvature = own.derivatives(margins)
    step = 1e-6
    for row, column in ((0, 0), (7, 1), (29, n_classes - 1)):
        ahead, behind = margins.copy(), margins.copy()
        ahead[row, column] += step
        behind[row, column] -= step
        slope = (own.values(ahead).sum() - own.values(behind).sum()) / (2.0 * step)
        # The objective is a mean, and the trees see sums.
        assert gradient[row, column] == pytest.approx(30.0 * slope, abs=1e-5)
    assert (curvature > 0.0).all()


def test_the_curvature_lies_above_the_penalty():
    """Along any direction the quadratic model is at least the penalty."""
    groups, labels, _, own = objective(3, weight=1.0)
    plain = BoostingObjective(People(groups, labels=labels), 0.0, None, loss=softmax_loss(3))
    generator = np.random.default_rng(2)
    margins = generator.normal(size=(30, 3))
    first, second = (
        a - b for a, b in zip(own.derivatives(margins), plain.derivatives(margins), strict=True)
    )
    for _ in range(20):
        step = 0.05 * generator.normal(size=(30, 3))
        model = own.values(margins)[1] + (first * step + second * step**2 / 2.0).sum() / 30.0
        assert own.values(margins + step)[1] <= model + 1e-4


def test_two_softmax_margins_have_the_binary_values_and_gradient():
    groups, labels, coupling, own = objective(2)
    binary = BoostingObjective(
        People(groups, labels=labels), 2.0, MatchedGap(coupling), loss=LOGISTIC
    )
    margins = np.random.default_rng(3).normal(size=(30, 2))
    difference = margins[:, 1] - margins[:, 0]
    assert own.values(margins) == pytest.approx(binary.values(difference))
    gradient, _ = own.derivatives(margins)
    assert gradient[:, 1] == pytest.approx(binary.derivatives(difference)[0])
    assert gradient[:, 0] == pytest.approx(-gradient[:, 1])


def test_weight_0_is_lightgbm(people):
    X, y, group = people
    model = FTMBoostingClassifier(SMALL, fairness_weight=0.0).fit(X, y, sensitive_features=group)
    seen = np.column_stack([X, group == "m"])
    data = lgb.Dataset(seen, np.searchsorted(model.classes_, y))
    settings = {"objective": "multiclass", "num_class": 3, "num_leaves": 7, "verbosity": -1}
    settings |= {"deterministic": True, "force_row_wise": True, "num_threads": 1}
    trees = lgb.train(settings, data, 20)
    found = model.predict_proba(X, sensitive_features=group)
    assert found == pytest.approx(trees.predict(seen), abs=1e-5)
    assert model.classes_.tolist() == ["low", "middle", "top"]
    assert model.n_rounds_ == 20
    assert (model.predict(X, sensitive_features=group) == model.classes_[found.argmax(1)]).all()


@pytest.mark.parametrize("transport", ["predicted", "marginal", "joint"])
def test_the_penalty_brings_matched_vectors_together(people, transport, tmp_path):
    X, y, group = people
    given = {"sensitive_features": group}
    path = fairness_path(
        X,
        y,
        estimator=FTMBoostingClassifier(SMALL, transport=transport),
        fairness_weights=[0.0, 10.0],
        **given,
    )
    curve = path.curve(X, y, **given)
    assert curve["mean_parity_gap"][1] < 0.6 * curve["mean_parity_gap"][0]
    assert curve["accuracy"][1] < curve["accuracy"][0]
    decided = path.models[1].predict(X, **given)
    assert curve["accuracy"][1] == pytest.approx(np.mean(decided == y))


@pytest.mark.parametrize("criterion", ["demographic_parity", "equal_opportunity", "equalized_odds"])
def test_max_gap_with_every_criterion(people, criterion, tmp_path):
    X, y, group = people
    model = FTMBoostingClassifier(
        SMALL, max_gap=0.3, criterion=criterion, fairness_weight=[0.0, 2.0, 20.0], random_state=0
    ).fit(X, y, sensitive_features=group)
    measure = {
        "demographic_parity": "demographic_parity_gap",
        "equal_opportunity": "true_positive_gap",
        "equalized_odds": "equalized_odds_gap",
    }[criterion]
    curve = model.validation_curve_
    kept = curve[curve["fairness_weight"] == model.fairness_weight_].iloc[0]
    assert kept[measure] <= 0.3
    again = load(model.save(tmp_path / "model"))
    new = {"sensitive_features": group[:50]}
    assert (again.predict_proba(X[:50], **new) == model.predict_proba(X[:50], **new)).all()


def test_three_groups_and_early_stopping(people):
    X, y, _ = people
    group = np.resize(["a", "b", "c"], len(X))
    model = FTMBoostingClassifier(SMALL, early_stopping_rounds=3, random_state=0)
    model.fit(X, y, sensitive_features=group, sample_weight=np.linspace(1.0, 2.0, len(X)))
    chances = model.predict_proba(X, sensitive_features=group)
    assert chances.sum(axis=1) == pytest.approx(1.0)
    assert 0.0 <= demographic_parity_gap(None, chances, sensitive_features=group) <= 0.2


def test_what_does_not_combine_is_named(people):
    X, y, group = people
    given = {"sensitive_features": group}
    heavy = LGBMClassifier(n_estimators=5, scale_pos_weight=2.0)
    with pytest.raises(InputError, match="scale_pos_weight=2 and 3 classes"):
        FTMBoostingClassifier(heavy).fit(X, y, **given)
    with pytest.raises(InputError, match="gap_measure='ks_parity_gap' and 3 classes"):
        FTMBoostingClassifier(SMALL, max_gap=0.1, gap_measure="ks_parity_gap").fit(X, y, **given)
    with pytest.raises(LabelError, match="at most 100"):
        FTMBoostingClassifier(SMALL).fit(X, [f"name {k % 200}" for k in range(len(X))], **given)
