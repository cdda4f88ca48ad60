"""The paper's rivals that are networks with another penalty, or with none."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fairmatch.learning.estimator import FairClassifier
from fairmatch.learning.networks import (
    Comparing,
    Link,
    NetworkEstimator,
    NeuralNetwork,
    Penalty,
    StackedMLP,
    pair_batches,
    torch_generator,
)
from fairmatch.learning.reading import Columns, SmallGroups
from fairmatch.matching.coupling import Coupling
from fairmatch.people.groups import read_criterion
from fairmatch.people.people import People
from paper.rivals import ADV_WEIGHTS, REDUCTION_WEIGHTS, REG_WEIGHTS
from paper.rivals.penalties import (
    ConstraintViolation,
    GroupPenalty,
    MeanPenalty,
    SquaredMeanGap,
)


class Adversary(GroupPenalty):
    """The success of an adversary that guesses the group from the score (Zhang et al., 2018)."""

    def comparing(
        self,
        people: People,
        weights: Tensor,
        *,
        batch_size: int,
        generator: np.random.Generator,
        seed: np.random.SeedSequence,
        **_: Any,
    ) -> Comparing:
        """Return the batches, and adversaries as the penalty."""
        batches = pair_batches(self.parts, people.mass, batch_size, generator)
        return batches, AdversaryPenalty(weights, self, generator=torch_generator(seed))


def compare_means(
    formula: MeanPenalty,
    people: People,
    weights: Tensor,
    *,
    batch_size: int,
    link: Link,
    generator: np.random.Generator,
    **_: Any,
) -> Comparing:
    """Return the batches and the torch module of a penalty on mean scores."""
    batches = pair_batches(formula.parts, people.mass, batch_size, generator)
    return batches, MeanGapPenalty(weights, formula, link)


class AdversaryNetwork(nn.Module):
    """L adversaries, which guess groups from the outputs of L models.

    An adversary and its model play against each other, and without further terms they run in
    circles. So an adversary pays for the slope of its guess, which makes such games converge
    (Mescheder, Geiger and Nowozin, 2018: "Which training methods for GANs do actually converge?").
    A model can fool an adversary that learns too slowly, so an adversary may learn faster. Adam's
    steps have the same size for every gradient, so the weights in use are ``speed`` times the
    parameters that Adam moves.
    """

    def __init__(
        self,
        n_networks: int,
        n_inputs: int,
        hidden_sizes: Sequence[int],
        n_outputs: int = 1,
        speed: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.speed = speed
        self.stack = StackedMLP(n_networks, n_inputs, hidden_sizes, generator, n_outputs)
        with torch.no_grad():
            for values in self.stack.parameters():
                values.div_(speed)

    def guess(self, given: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of the guesses, of shape (L, n_rows, n_outputs), and their slopes.

        The slopes are the derivatives by the inputs, of shape (L, n_rows, n_outputs, n_inputs).
        """
        found = []
        for layers, values in zip(self.stack.networks(), given.unbind(), strict=True):
            quick = [(self.speed * weight, self.speed * bias) for weight, bias in layers]
            found.append(_guess(quick, values))
        guesses, slopes = zip(*found, strict=True)
        return torch.stack(guesses), torch.stack(slopes)


def _guess(layers: list[tuple[Tensor, Tensor]], values: Tensor) -> tuple[Tensor, Tensor]:
    *hidden, (weight, bias) = layers
    active = []
    for hidden_weight, hidden_bias in hidden:
        values = functional.relu(functional.linear(values, hidden_weight, hidden_bias))
        active.append(values > 0.0)
    slopes = weight.expand(len(values), *weight.shape)
    for (hidden_weight, _), on in zip(reversed(hidden), reversed(active), strict=True):
        slopes = (slopes * on[:, None, :]) @ hidden_weight
    return functional.linear(values, weight, bias), slopes


def reverse_gradient(values: Tensor, weight: Tensor) -> Tensor:
    """Return the values unchanged; in the backward pass, multiply their gradient by -weight."""
    reversed_: Tensor = _ReverseGradient.apply(values, weight)  # type: ignore[no-untyped-call]
    return reversed_


class _ReverseGradient(torch.autograd.Function):
    """The identity, with a gradient that is multiplied by minus a weight."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(weight)
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (weight,) = ctx.saved_tensors
        return -weight * gradients[0], None


class MeanGapPenalty(Penalty):
    """The weighted sum of squared contrasts of the groups' mean scores in a batch."""

    def __init__(
        self,
        fairness_weights: Tensor,
        formula: MeanPenalty,
        link: Link = torch.sigmoid,
    ) -> None:
        super().__init__(fairness_weights, link=link)
        self.formula = formula
        weights = torch.as_tensor(formula.contrast_weights).to(fairness_weights.dtype)
        self.register_buffer("contrast_weights", weights)

    contrast_weights: Tensor

    def value(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the weighted sum of squared contrasts."""
        means = torch.stack([m.mean(dim=1) for m in strata(self.formula, first, second)])
        contrasts: Tensor = self.formula.contrasts(means)
        return self.contrast_weights @ contrasts**2


def strata(formula: GroupPenalty, first: Tensor, second: Tensor) -> list[Tensor]:
    """Return the values of each stratum, of shape (L, n), from those of the parts' pairs."""
    n_parts = len(formula.parts)
    found: list[list[Tensor]] = [[] for _ in formula.strata]
    for ends, at in ((first, formula.first), (second, formula.second)):
        for values, stratum in zip(ends.chunk(n_parts, dim=1), at, strict=True):
            found[stratum].append(values)
    return [torch.cat(values, dim=1) if len(values) > 1 else values[0] for values in found]


class AdversaryPenalty(Penalty):
    r"""An adversary that predicts the group from the model's logit (Zhang et al., 2018).

    The adversary minimises its cross-entropy, and the model maximises it, times the fairness
    weight. One backward pass trains both, because the gradient is reversed between the adversary
    and the model. All groups count the same, even if their sizes differ. If the criterion compares
    people within both classes, the adversary also sees the label.

    Without a further term the two run in circles. With weights above about 5 the model ends with
    nearly constant scores, and their tiny differences give the group away. So the adversary also
    pays half the mean square of the slope of its guess.
    """

    def __init__(
        self,
        fairness_weights: Tensor,
        formula: GroupPenalty,
        hidden_size: int = 32,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(fairness_weights)
        self.formula = formula
        self.groups = sorted({group for _, group in formula.strata})
        labels = {label for label, _ in formula.strata}
        self.told = len(labels) > 1
        n_outputs = 1 if len(self.groups) == 2 else len(self.groups)
        sizes = hidden_size, hidden_size
        self.network = AdversaryNetwork(
            len(fairness_weights), 1 + self.told, sizes, n_outputs, generator=generator
        )

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the weighted loss of the adversary; its gradient trains both sides."""
        members = strata(self.formula, first, second)
        logits = reverse_gradient(torch.cat(members, dim=1), self.fairness_weights[:, None])
        sizes = [values.shape[1] for values in members]
        share = [1.0 / (len(sizes) * size) for size in sizes]
        weight = logits.new_tensor(np.repeat(share, sizes))
        given = [logits]
        if self.told:
            labels = np.repeat([bool(label) for label, _ in self.formula.strata], sizes)
            given.append(logits.new_tensor(labels).expand_as(logits))
        guess, slope = self.network.guess(torch.stack(given, dim=2))
        codes = np.repeat([self.groups.index(group) for _, group in self.formula.strata], sizes)
        truth = torch.as_tensor(codes, device=logits.device)
        loss = _entropy(guess, truth) @ weight
        price = slope[..., 0].square().sum(dim=2) @ weight / 2.0
        game = loss + price
        # The value is the adversary's weighted loss, and the gradient is that of the game.
        return self.fairness_weights * loss.detach() + game - game.detach()


def _entropy(guess: Tensor, truth: Tensor) -> Tensor:
    """Return the cross-entropy of every guess, of shape (L, n_rows)."""
    if guess.shape[2] == 1:
        wanted = truth.to(guess.dtype).expand(guess.shape[:2])
        return functional.binary_cross_entropy_with_logits(
            guess.squeeze(2), wanted, reduction="none"
        )
    wanted = truth.expand(guess.shape[:2])
    return functional.cross_entropy(guess.transpose(1, 2), wanted, reduction="none")


class UnconstrainedClassifier(NetworkEstimator, FairClassifier):
    """A network trained for accuracy alone: the paper's "Unfair" baseline.

    The parameters are those of `fairmatch.FTMClassifier` that do not concern a penalty.
    """

    _weight_name: ClassVar[str | None] = None

    def __init__(
        self,
        estimator: NeuralNetwork | None = None,
        *,
        encoder: Any = "table",
        sensitive_column: Columns = None,
        sensitive_at_prediction: bool = True,
        small_groups: SmallGroups = "warn",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.encoder = encoder
        self.sensitive_column = sensitive_column
        self.sensitive_at_prediction = sensitive_at_prediction
        self.small_groups = small_groups
        self.random_state = random_state


class PenalizedClassifier(NetworkEstimator, FairClassifier):
    """A network with a penalty that compares whole groups.

    The parameters are those of `fairmatch.FTMClassifier`, without those of the matching and of the
    choice by ``max_gap``. A subclass names the weights of its curve and the penalty.
    """

    _formula: ClassVar[type[GroupPenalty]]

    def __init__(
        self,
        estimator: NeuralNetwork | None = None,
        *,
        fairness_weight: float | Sequence[float] = 1.0,
        criterion: str = "demographic_parity",
        reference: Any = None,
        encoder: Any = "table",
        sensitive_column: Columns = None,
        sensitive_at_prediction: bool = True,
        small_groups: SmallGroups = "warn",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.fairness_weight = fairness_weight
        self.criterion = criterion
        self.reference = reference
        self.encoder = encoder
        self.sensitive_column = sensitive_column
        self.sensitive_at_prediction = sensitive_at_prediction
        self.small_groups = small_groups
        self.random_state = random_state

    def _penalty(self, people: People, coupling: Coupling | None) -> GroupPenalty:
        parts = people.comparisons(read_criterion(self.criterion), self.reference)
        return self._formula(parts, people)


class GapRegularizedClassifier(PenalizedClassifier):
    r"""Cross-entropy plus the squared gap of mean scores: the paper's "Reg".

    Notes
    -----
    The network minimises :math:`E\, l(Y, f) + \lambda\, \Delta\overline{\mathrm{DP}}(f)^2` (Donini
    et al., 2018; Chuang and Mroueh, 2021, call it GapReg). With more than two groups, or a
    criterion that compares people of the same label, the squared gap is the weighted mean over the
    parts.
    """

    _formula: ClassVar[type[GroupPenalty]] = SquaredMeanGap
    _curve_weights: ClassVar[tuple[float, ...]] = REG_WEIGHTS


class ReductionClassifier(PenalizedClassifier):
    r"""Cross-entropy plus squared constraint violations: the paper's "Reduction".

    The paper's Reduction is FairTorch's penalty, which builds on the constraints of Agarwal et al.
    (2018). It is not their algorithm; `ExponentiatedGradientClassifier` is.

    Notes
    -----
    With :math:`\mu_s` the mean score of group s and :math:`\mu` that of all rows, the penalty is
    :math:`\sum_s (\mu_s - \mu)^2`, within each class that is compared. For two groups with shares
    :math:`\pi_0` and :math:`\pi_1` it equals
    :math:`(\pi_0^2 + \pi_1^2)\, \Delta\overline{\mathrm{DP}}^2`. So with two groups this class is
    `GapRegularizedClassifier` with another weight.
    """

    _formula: ClassVar[type[GroupPenalty]] = ConstraintViolation
    _curve_weights: ClassVar[tuple[float, ...]] = REDUCTION_WEIGHTS


class AdversarialClassifier(PenalizedClassifier):
    r"""A network against an adversary that guesses the group from its output: the paper's "Adv".

    Notes
    -----
    The method follows Zhang, Lemoine and Mitchell (2018) in the paper's version: the network
    minimises :math:`E\, l(Y, f) - \lambda\, E\, l(S, h(f))`, its loss minus the weighted loss of
    the adversary h. With more than two groups the adversary guesses among all of them.
    """

    _formula: ClassVar[type[GroupPenalty]] = Adversary
    _curve_weights: ClassVar[tuple[float, ...]] = ADV_WEIGHTS
