"""Adversaries that guess the group, for classifiers and for representations."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairmatch.learning.networks.stack import StackedMLP


class AdversaryNetwork(nn.Module):
    """L adversaries, which guess groups from the outputs of L models.

    An adversary and its model play against each other, and without further terms they run in
    circles. So an adversary pays for the slope of its guess, which makes such games converge
    (Mescheder, Geiger and Nowozin, 2018: "Which training methods for GANs do actually converge?").
    A model can fool an adversary that learns too slowly, so an adversary may learn faster. Adam's
    steps have the same size for every gradient, so the weights in use are ``speed`` times the
    parameters that Adam moves.

    Parameters
    ----------
    n_networks : int
        Number of adversaries.
    n_inputs : int
        Number of inputs of each adversary.
    hidden_sizes : sequence of int
        Widths of the hidden layers.
    n_outputs : int, default=1
        Number of logits of each guess: 1 for two groups, else one per group.
    speed : float, default=1
        How many times faster than its model an adversary learns.
    generator : torch.Generator, optional
        Draws the initial weights, which are the same for every adversary.
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
        """Return the guesses and their slopes.

        Parameters
        ----------
        given : tensor of shape (L, n_rows, n_inputs)
            What the adversaries see of each row.

        Returns
        -------
        guesses : tensor of shape (L, n_rows, n_outputs)
            Logits of the groups.
        slopes : tensor of shape (L, n_rows, n_outputs, n_inputs)
            Derivatives of the guesses by the inputs.
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
