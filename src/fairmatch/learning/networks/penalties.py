r"""Penalties as torch modules, for L networks and one batch of pairs.

Each module maps the logits of the pairs' first and second members to one penalty per network. The
formulas are those of `fairmatch.learning.penalties`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fairmatch.learning import penalties as formulas
from fairmatch.learning.networks.adversary import AdversaryNetwork, reverse_gradient
from fairmatch.learning.networks.batches import (
    Batches,
    CoupledBatches,
    MatchedBatches,
    PairBatches,
)
from fairmatch.learning.rows import TrainingRows

Link = Callable[[Tensor], Tensor]


class Penalty(nn.Module):
    """Base class of penalties, with one fairness weight per network.

    Parameters
    ----------
    fairness_weights : tensor of shape (L,)
        The paper's lambda, one per network.
    link : callable
        Turns margins into scores.
    """

    fairness_weights: Tensor

    def __init__(self, fairness_weights: Tensor, link: Link = torch.sigmoid) -> None:
        super().__init__()
        self.register_buffer("fairness_weights", fairness_weights)
        self.link = link

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the weighted penalty of the pairs' margins, two tensors of shape (L, n_pairs)."""
        return self.fairness_weights * self.value(self.link(first), self.link(second))

    def value(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the penalty of the pairs' scores, without the fairness weights."""
        raise NotImplementedError


class MatchedGapPenalty(Penalty):
    r"""The mean score gap between matched people, :math:`\Delta\mathrm{MDP}` (equation 2).

    Parameters
    ----------
    fairness_weights : tensor of shape (L,)
        The paper's lambda, one per network.
    part_weights : tensor of shape (n_parts,), optional
        Weight of each part. A batch has the same number of pairs of each, one part after the
        other. By default there is one part.
    link : callable
        Turns margins into scores.
    """

    def __init__(
        self,
        fairness_weights: Tensor,
        part_weights: Tensor | None = None,
        link: Link = torch.sigmoid,
    ) -> None:
        super().__init__(fairness_weights, link)
        weights = fairness_weights.new_ones(1) if part_weights is None else part_weights
        self.register_buffer("part_weights", weights)

    part_weights: Tensor

    def value(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the mean gap of the pairs."""
        sizes: Tensor = formulas.MatchedGap.sizes(first - second)
        return sizes.reshape(len(sizes), len(self.part_weights), -1).mean(dim=2) @ self.part_weights


class MeanPenalty(Penalty):
    """The weighted sum of squared contrasts of the groups' mean scores in a batch.

    Parameters
    ----------
    fairness_weights : tensor of shape (L,)
        The paper's lambda, one per network.
    formula : fairmatch.learning.penalties.MeanPenalty
        The contrasts and their weights.
    link : callable
        Turns margins into scores.
    """

    def __init__(
        self,
        fairness_weights: Tensor,
        formula: formulas.MeanPenalty,
        link: Link = torch.sigmoid,
    ) -> None:
        super().__init__(fairness_weights, link)
        self.formula = formula
        weights = torch.as_tensor(formula.contrast_weights).to(fairness_weights.dtype)
        self.register_buffer("contrast_weights", weights)

    contrast_weights: Tensor

    def value(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the weighted sum of squared contrasts."""
        means = torch.stack([m.mean(dim=1) for m in strata(self.formula, first, second)])
        contrasts: Tensor = self.formula.contrasts(means)
        return self.contrast_weights @ contrasts**2


def strata(formula: formulas.GroupPenalty, first: Tensor, second: Tensor) -> list[Tensor]:
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

    Parameters
    ----------
    fairness_weights : tensor of shape (L,)
        The paper's lambda, one per network.
    formula : fairmatch.learning.penalties.Adversary
        The groups, and the classes within which they are compared.
    hidden_size : int
        Width of the adversary's two hidden layers.
    generator : torch.Generator, optional
        Draws the initial weights, which are the same for every network's adversary.
    """

    def __init__(
        self,
        fairness_weights: Tensor,
        formula: formulas.Adversary,
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


@dataclass(frozen=True)
class Comparing:
    """The batches and the penalty of a training with pairs.

    Attributes
    ----------
    batches : Batches
        Source of the rows for the loss, and of the pairs.
    penalty : Penalty
        What the pairs add to the loss.
    """

    batches: Batches
    penalty: Penalty


def comparing(
    formula: object,
    rows: TrainingRows,
    fairness_weights: Tensor,
    *,
    batch_size: int,
    link: Link,
    generator: np.random.Generator,
    adversary: torch.Generator,
) -> Comparing:
    """Return the batches and the torch module that belong to a penalty.

    Parameters
    ----------
    formula : a penalty of `fairmatch.learning.penalties`
        The penalty, which knows whom it compares.
    rows : TrainingRows
        The rows to learn from.
    fairness_weights : tensor of shape (L,)
        Weights of the penalty, one per network.
    batch_size : int
        Rows of each group in a batch; a matcher with a ``batch_size`` uses its own.
    link : callable
        Turns margins into scores.
    generator : numpy.random.Generator
        Draws the batches.
    adversary : torch.Generator
        Draws the initial weights of an adversary.
    """
    weights, mass = fairness_weights, rows.mass
    if isinstance(formula, formulas.MatchedGap):
        coupled = CoupledBatches(formula.coupling, rows.groups, mass, batch_size, generator)
        return Comparing(coupled, MatchedGapPenalty(weights, link=link))
    if isinstance(formula, formulas.FreshlyMatchedGap):
        size = formula.matcher.batch_size or batch_size
        matched = MatchedBatches(
            formula.matcher, formula.points, formula.parts, mass, size, generator
        )
        shares = weights.new_tensor([part.weight for part in formula.parts])
        return Comparing(matched, MatchedGapPenalty(weights, shares, link))
    assert isinstance(formula, formulas.GroupPenalty)
    batches = PairBatches(formula.parts, mass, batch_size, generator)
    if isinstance(formula, formulas.Adversary):
        return Comparing(batches, AdversaryPenalty(weights, formula, generator=adversary))
    assert isinstance(formula, formulas.MeanPenalty)
    return Comparing(batches, MeanPenalty(weights, formula, link))
