import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from paper.rivals.networks import Adversary, AdversaryPenalty, MeanGapPenalty
from paper.rivals.penalties import ConstraintViolation, SquaredMeanGap
from synthetic import rows_of

from fairmatch import Coupling
from fairmatch.learning.networks import Penalty
from fairmatch.measures import matched_parity_gap, mean_parity_gap
from fairmatch.people.groups import CRITERIA

WEIGHTS = torch.tensor([0.0, 0.5, 3.0], dtype=torch.float64)


def formula(kind, share=0.3, n_rows=10):
    """Make a penalty of two groups, of which the first has this share of the weight."""
    mass = np.where(np.arange(n_rows) % 2 == 0, share, 1.0 - share)
    rows = rows_of(np.zeros((n_rows, 1)), np.zeros(n_rows), np.arange(n_rows) % 2, mass)
    return kind(rows.comparisons(CRITERIA["demographic_parity"]), rows)


def mean_penalty(kind, weights=WEIGHTS, **settings):
    return MeanGapPenalty(weights, formula(kind, **settings))


def logits(seed=0, n_pairs=6):
    generator = torch.Generator().manual_seed(seed)
    shape = 2, len(WEIGHTS), n_pairs
    return 2.0 * torch.randn(shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(
    "penalty",
    [
        Penalty(WEIGHTS),
        Penalty(WEIGHTS, torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)),
        Penalty(WEIGHTS, link=lambda margins: margins),
        mean_penalty(SquaredMeanGap),
        mean_penalty(ConstraintViolation),
    ],
)
def test_gradient_against_finite_differences(penalty):
    source, target = logits().requires_grad_()
    assert torch.autograd.gradcheck(penalty, (source, target))


@pytest.mark.parametrize("penalty", [Penalty(WEIGHTS), mean_penalty(SquaredMeanGap)])
def test_gradient_of_weights_of_a_network_against_finite_differences(penalty):
    """As for the trees: each weight is moved by hand, a little up and a little down."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn((2, 6, 3), generator=generator, dtype=torch.float64)
    shape = len(WEIGHTS), 3
    weights = torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)

    def value(own):
        return penalty(*(torch.tanh(rows @ own.T).T for rows in inputs)).sum()

    (gradient,) = torch.autograd.grad(value(weights), weights)
    step = 1e-6
    for place in np.ndindex(shape):
        moved = torch.zeros(shape, dtype=torch.float64)
        moved[place] = step
        rise = value(weights.detach() + moved) - value(weights.detach() - moved)
        assert float(gradient[place]) == pytest.approx(float(rise) / (2 * step), abs=1e-7)


def test_matched_gap_is_the_measure():
    source, target = logits()
    n = source.shape[1]
    groups = np.repeat(["a", "b"], n)
    pairs = Coupling(np.arange(n), np.arange(n) + n, np.full(n, 1 / n), 2 * n, ("a", "b"))
    penalty = Penalty(WEIGHTS)(source, target)
    scores = torch.sigmoid(torch.cat([source, target], dim=1)).numpy()
    gaps = [
        matched_parity_gap(None, row, sensitive_features=groups, coupling=pairs) for row in scores
    ]
    np.testing.assert_allclose(penalty, WEIGHTS.numpy() * gaps, rtol=1e-12)


def test_squared_mean_gap_is_the_measure():
    source, target = logits()
    penalty = mean_penalty(SquaredMeanGap)(source, target)
    scores = torch.sigmoid(torch.cat([source, target], dim=1)).numpy()
    groups = np.repeat(["a", "b"], source.shape[1])
    gaps = np.array([mean_parity_gap(None, row, sensitive_features=groups) for row in scores])
    np.testing.assert_allclose(penalty, WEIGHTS.numpy() * gaps**2, rtol=1e-12)


@settings(deadline=None, max_examples=50)
@given(share=st.floats(0.01, 0.99), seed=st.integers(0, 1000))
def test_two_groups_make_reduction_the_squared_mean_gap(share, seed):
    """The paper's Reduction is its Reg with the weight times (pi_0^2 + pi_1^2)."""
    squares = share**2 + (1.0 - share) ** 2
    source, target = logits(seed)
    reduction = mean_penalty(ConstraintViolation, share=share)(source, target)
    reg = mean_penalty(SquaredMeanGap, WEIGHTS * squares, share=share)(source, target)
    torch.testing.assert_close(reduction, reg, rtol=1e-10, atol=1e-15)


class TestAdversary:
    @pytest.fixture
    def penalty(self):
        generator = torch.Generator().manual_seed(0)
        return AdversaryPenalty(WEIGHTS, formula(Adversary), 4, generator).double()

    def loss(self, penalty, source, target):
        """The adversaries' cross-entropy and slope price, written anew."""
        both = torch.cat([source, target], dim=1).detach().requires_grad_()
        guess = penalty.network.guess(both[:, :, None])[0].squeeze(2)
        (slope,) = torch.autograd.grad(guess.sum(), both, create_graph=True)
        n = source.shape[1]
        right = torch.cat([-guess[:, :n], guess[:, n:]], dim=1)
        entropy = -torch.nn.functional.logsigmoid(right).mean(dim=1)
        return both, entropy, slope

    def test_the_slope_is_the_derivative_of_the_guess(self, penalty):
        source, target = logits()
        both, _, slope = self.loss(penalty, source, target)
        found = penalty.network.guess(both[:, :, None])[1][..., 0, 0]
        torch.testing.assert_close(found, slope)

    def test_the_model_ascends_what_the_adversary_descends(self, penalty):
        source, target = logits()
        both, entropy, slope = self.loss(penalty, source, target)
        (descent,) = torch.autograd.grad(entropy.sum(), both, retain_graph=True)
        game = (entropy + slope.square().mean(dim=1) / 2.0).sum()
        own = torch.autograd.grad(game, list(penalty.parameters()))

        source.requires_grad_()
        value = penalty(source, target)
        torch.testing.assert_close(value, WEIGHTS * entropy)
        value.sum().backward()
        torch.testing.assert_close(source.grad, -WEIGHTS[:, None] * descent[:, : source.shape[1]])
        for parameter, gradient in zip(penalty.parameters(), own, strict=True):
            torch.testing.assert_close(parameter.grad, gradient)
