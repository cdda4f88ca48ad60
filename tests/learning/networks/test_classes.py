"""Networks of several classes: finite differences, two classes, and trees' formula as oracles."""

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from torch import nn

from fairmatch import (
    Coupling,
    FTMClassifier,
    FTMRegressor,
    NeuralNetwork,
    OptimalTransportMatcher,
    fairness_path,
    group_probabilities,
    load,
    to_onnx,
)
from fairmatch.exceptions import InputError
from fairmatch.learning.networks import TORCH_LOSSES, NetworkScorer, Penalty
from fairmatch.learning.penalties import MatchedGap
from fairmatch.measures import demographic_parity_gap, matched_parity_gap
from fairmatch.people.outcome import softmax_loss

SMALL = NeuralNetwork((16,), epochs=8, batch_size=128, learning_rate=0.01)
WEIGHTS = torch.tensor([0.5, 3.0], dtype=torch.float64)


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


def margins(n_classes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shape = 2, len(WEIGHTS), 6, n_classes
    return torch.randn(shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(("n_classes", "parts"), [(2, 1), (3, 3), (5, 1)])
def test_gradients_by_finite_differences(n_classes, parts):
    loss, link = TORCH_LOSSES["softmax"]
    shares = torch.full((parts,), 1.0 / parts, dtype=torch.float64)
    penalty = Penalty(WEIGHTS, shares, link)
    first, second = margins(n_classes).requires_grad_()
    assert torch.autograd.gradcheck(penalty, (first, second))
    labels = torch.arange(6, dtype=torch.float64) % n_classes
    assert torch.autograd.gradcheck(lambda own: loss(own, labels), (first,))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_loss_and_penalty_are_those_of_trees(n_classes):
    first, second = margins(n_classes)
    loss, link = TORCH_LOSSES["softmax"]
    labels = np.arange(6.0) % n_classes
    own = [softmax_loss(n_classes).values(labels, one) for one in first.numpy()]
    assert_allclose(loss(first, torch.as_tensor(labels)), own, rtol=1e-12)
    pairs = Coupling(np.arange(6), np.arange(6) + 6, np.full(6, 1 / 6), 12, ("a", "b"))
    found = Penalty(WEIGHTS, link=link)(first, second).numpy() / WEIGHTS.numpy()
    scores = link(torch.cat([first, second], dim=1)).numpy()
    assert_allclose(found, [MatchedGap(pairs, 0.0).value(one) for one in scores], rtol=1e-12)
    groups = np.repeat(["a", "b"], 6)
    if n_classes > 2:
        gaps = [
            matched_parity_gap(None, one, sensitive_features=groups, coupling=pairs)
            for one in scores
        ]
        assert_allclose(found, gaps, rtol=1e-12)


def test_two_classes_of_the_softmax_are_the_logistic_loss():
    first, second = margins(2)
    (vectors, softmax_link), (numbers, link) = (TORCH_LOSSES[k] for k in ("softmax", "logistic"))
    differences = [one[..., 1] - one[..., 0] for one in (first, second)]
    labels = torch.tensor([0.0, 1.0, 1.0, 0.0, 0.0, 1.0], dtype=torch.float64)
    torch.testing.assert_close(vectors(first, labels), numbers(differences[0], labels))
    torch.testing.assert_close(
        Penalty(WEIGHTS, link=softmax_link)(first, second),
        Penalty(WEIGHTS, link=link)(*differences),
    )


@pytest.mark.parametrize(
    ("transport", "criterion"),
    [
        ("marginal", "demographic_parity"),
        ("joint", "demographic_parity"),
        (OptimalTransportMatcher(batch_size=16), "demographic_parity"),
        ("predicted", "equal_opportunity"),
        ("marginal", "equalized_odds"),
    ],
    ids=str,
)
def test_the_penalty_brings_matched_people_together(people, transport, criterion):
    X, y, group = people
    group = np.where(np.arange(600) % 3 == 0, "x", group)
    path = fairness_path(
        X,
        y,
        sensitive_features=group,
        fairness_weights=[0.0, 0.4],
        estimator=FTMClassifier(SMALL, transport=transport, criterion=criterion, random_state=0),
    )
    curve = path.curve(X, y, sensitive_features=group)
    assert curve["mean_parity_gap"][1] < 0.8 * curve["mean_parity_gap"][0]
    model = path.models[0]
    chances = model.predict_proba(X, sensitive_features=group)
    assert chances.shape == (600, 3)
    assert_allclose(chances.sum(axis=1), 1.0)
    decided = model.classes_[chances.argmax(axis=1)]
    assert_array_equal(model.predict(X, sensitive_features=group), decided)
    assert model.score(X, y, sensitive_features=group) == np.mean(decided == y) > 0.5


def test_a_network_without_hidden_layers_is_multinomial_regression(people):
    X, y, group = people
    network = NeuralNetwork((), epochs=25, learning_rate=0.1, decay=0.85)
    model = FTMClassifier(
        network, fairness_weight=0.0, encoder=None, sensitive_at_prediction=False, random_state=0
    ).fit(X, y, sensitive_features=group)
    known = LogisticRegression(C=np.inf).fit(X, y).predict_proba(X)
    assert_allclose(model.predict_proba(X), known, atol=0.01)


def test_max_gap(people):
    X, y, group = people
    model = FTMClassifier(SMALL, max_gap=0.3, random_state=0)
    model.fit(X, y, sensitive_features=group)
    plain, kept = model.path_.models[0], model
    gaps = [
        demographic_parity_gap(
            y, one.predict_proba(X, sensitive_features=group), sensitive_features=group
        )
        for one in (plain, kept)
    ]
    assert gaps[1] < 0.33 < gaps[0]
    assert 2 < len(model.path_) < 8
    assert model.n_epochs_ == 8 + 2


def test_saved_and_deployed(people, tmp_path):
    X, y, group = people
    model = FTMClassifier(SMALL, random_state=0).fit(X, y, sensitive_features=group)
    chances = model.predict_proba(X, sensitive_features=group)
    again = load(model.save(tmp_path / "model"))
    assert_array_equal(again.predict_proba(X, sensitive_features=group), chances)
    assert (
        again.predict(X, sensitive_features=group).tolist()
        == model.predict(X, sensitive_features=group).tolist()
    )
    session = pytest.importorskip("onnxruntime").InferenceSession(
        to_onnx(model).SerializeToString()
    )
    given = {name: X[[name]].to_numpy() for name in X}
    (found,) = session.run(None, {**given, "sensitive_features": group[:, None].astype(object)})
    assert_allclose(found, chances, atol=1e-6)


def test_a_module_of_ones_own(people):
    X, y, group = people
    own = NeuralNetwork(nn.Linear(4, 3), epochs=2)
    model = FTMClassifier(own, random_state=0).fit(X, y, sensitive_features=group)
    assert model.predict_proba(X, sensitive_features=group).shape == (600, 3)
    with pytest.raises(InputError, match="must map a row to 3 numbers"):
        FTMClassifier(NeuralNetwork(nn.Linear(4, 1))).fit(X, y, sensitive_features=group)


def test_values_too_large_are_told_by_their_row():
    module = nn.Linear(2, 3)
    scorer = NetworkScorer(
        NeuralNetwork(module).stack(1, 2, 2, torch.Generator(), 3), 1, softmax_loss(3)
    )
    with pytest.raises(InputError, match="Row 1 of X"):
        scorer.scores(np.array([[0.0, 1.0], [1e39, 1.0]]))


class TestMemberships:
    def table(self, people, seed=1):
        X, y, group = people
        noisy = LogisticRegression().fit(X, group).predict_proba(X)
        return X, y, group, group_probabilities(noisy, labels=["f", "m"])

    @pytest.mark.parametrize("several", [False, True])
    def test_models_learn_from_them(self, people, several):
        X, y, group, soft = self.table(people)
        y = y if several else (y == "top").astype(int)

        def gap(weight):
            model = FTMClassifier(
                SMALL, fairness_weight=weight, sensitive_at_prediction=False, random_state=0
            ).fit(X, y, sensitive_features=soft)
            chances = model.predict_proba(X)[:, -1]
            return abs(chances[group == "m"].mean() - chances[group == "f"].mean())

        assert gap(1.0) < 0.7 * gap(0.0)

    def test_certain_ones_are_groups_to_the_bit(self, people):
        X, y, group, _ = self.table(people)
        certain = group_probabilities(pd.get_dummies(pd.Series(group)).astype(float))
        model = FTMClassifier(SMALL, sensitive_at_prediction=False, random_state=0)
        one, two = (
            model.fit(X, y, sensitive_features=given).predict_proba(X) for given in (group, certain)
        )
        assert_array_equal(one, two)

    def test_those_that_say_nothing_compare_everybody_with_herself(self, people):
        X, y, _ = people
        given = {"sensitive_at_prediction": False, "random_state": 0}
        blank = group_probabilities(np.full((600, 2), 0.5))
        path = fairness_path(
            X,
            y == "top",
            sensitive_features=blank,
            fairness_weights=[0.0, 100.0],
            estimator=FTMClassifier(SMALL, **given),
        )
        one, two = path.scores(X)
        assert_allclose(one, two, atol=1e-6)

    def test_the_loss_sees_everybody_once(self, people):
        X, _, _, soft = self.table(people)
        target = X["pay"] + X["age"]
        model = FTMRegressor(
            SMALL, fairness_weight=0.0, sensitive_at_prediction=False, random_state=0
        ).fit(X, target, sensitive_features=soft)
        assert model.score(X, target) > 0.9

    def test_with_a_bound(self, people):
        X, y, _, soft = self.table(people)
        model = FTMClassifier(
            SMALL, max_gap=0.25, sensitive_at_prediction=False, random_state=0
        ).fit(X, (y == "top").astype(int), sensitive_features=soft)
        assert model.validation_curve_["expected_gap"].min() <= 0.25

    def test_a_matcher_that_matches_in_every_step_is_told(self, people):
        X, y, _, soft = self.table(people)
        model = FTMClassifier(
            SMALL, transport=OptimalTransportMatcher(batch_size=64), sensitive_at_prediction=False
        )
        with pytest.raises(InputError, match="batch_size=64 and group_probabilities") as caught:
            model.fit(X, y, sensitive_features=soft)
        assert caught.value.parameter == "transport"
