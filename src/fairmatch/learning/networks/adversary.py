"""An adversary that guesses the group, for classifiers and for representations."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairmatch.learning.networks.stack import StackedMLP


class AdversaryNetwork(nn.Module):
    """L networks that guess groups from what L models give, with the slopes of their guesses.

    Adversary and model play against each other, and left at that they run in circles. So an
    adversary pays for the slope of its guess, which makes such games converge (Mescheder, Geiger
    and Nowozin, 2018: "Which training methods for GANs do actually converge?"). An adversary that
    lags behind its model is fooled rather than convinced, so it may learn faster: Adam takes steps
    of one size whatever the gradient, so its weights are ``speed`` times what Adam moves.

    Parameters
    ----------
    n_networks, n_inputs : int
        How many adversaries, and what each of them sees of a row.
    hidden_sizes : sequence of int
        Widths of the hidden layers.
    n_outputs : int, default=1
        1 guesses between two groups by a logit, more guess among as many groups.
    speed : float, default=1
        How many times faster than its model an adversary learns.
    generator : torch.Generator, optional
        Draws the initial weights, the same for every adversary.
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
        """Return the guesses, and how steep they are.

        Parameters
        ----------
        given : tensor of shape (L, n_rows, n_inputs)
            What the models give for each row.

        Returns
        -------
        guesses : tensor of shape (L, n_rows, n_outputs)
            Logits of the groups.
        slopes : tensor of shape (L, n_rows, n_outputs, n_inputs)
            Derivatives of the guesses in what the models give.
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
    """Return the values as they are; their gradient comes back times minus the weight."""
    reversed_: Tensor = _ReverseGradient.apply(values, weight)  # type: ignore[no-untyped-call]
    return reversed_


class _ReverseGradient(torch.autograd.Function):
    """The identity, whose gradient is multiplied by minus a weight."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(weight)
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (weight,) = ctx.saved_tensors
        return -weight * gradients[0], None
