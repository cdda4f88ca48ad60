r"""What FTM or a rival adds to the loss.

A penalty is a module that looks at the logits of L networks on one batch of pairs and returns
what to add to each network's loss. One of its rows is one network, with a fairness weight of its
own.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Penalty(nn.Module):
    """Base class: L fairness weights, and what they multiply.

    Parameters
    ----------
    fairness_weights : tensor of shape (L,)
        The paper's lambda, one per network.
    shares : tensor of shape (2,)
        Share of each group in the table.
    """

    fairness_weights: Tensor
    shares: Tensor

    def __init__(self, fairness_weights: Tensor, shares: Tensor) -> None:
        super().__init__()
        self.register_buffer("fairness_weights", fairness_weights)
        self.register_buffer("shares", shares)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Penalise logits of shape (L, n_pairs) of the two groups' rows; returns shape (L,)."""
        return self.fairness_weights * self.value(torch.sigmoid(source), torch.sigmoid(target))

    def value(self, source: Tensor, target: Tensor) -> Tensor:
        """Take the penalty of scores, before it is weighted."""
        raise NotImplementedError


class MatchedGapPenalty(Penalty):
    r"""Mean score gap between matched people, :math:`\Delta\mathrm{MDP}` (equation 2)."""

    def value(self, source: Tensor, target: Tensor) -> Tensor:
        """Take the mean gap of the pairs."""
        return (source - target).abs().mean(dim=1)


class SquaredMeanGapPenalty(Penalty):
    r"""Squared gap between the groups' mean scores, :math:`\Delta\overline{\mathrm{DP}}^2`."""

    def value(self, source: Tensor, target: Tensor) -> Tensor:
        """Take the squared gap of the means."""
        return (source.mean(dim=1) - target.mean(dim=1)) ** 2


class ConstraintViolationPenalty(Penalty):
    r"""Squared violations of the constraints of Agarwal et al. (2018), as FairTorch has them.

    For each group s, with :math:`\mu_s = E(f \mid S = s)` and :math:`\mu = E f`,

    .. math:: \sum_s [\mu_s - \mu]_+^2 + [\mu - \mu_s]_+^2.

    With two groups of shares :math:`\pi_s` this equals
    :math:`(\pi_0^2 + \pi_1^2)\, \Delta\overline{\mathrm{DP}}^2`: the squared mean gap with
    another weight.
    """

    def value(self, source: Tensor, target: Tensor) -> Tensor:
        """Take the squared positive parts of the violations."""
        means = torch.stack([source.mean(dim=1), target.mean(dim=1)])
        violation = means - self.shares @ means
        return (functional.relu(violation) ** 2 + functional.relu(-violation) ** 2).sum(dim=0)


class AdversaryPenalty(Penalty):
    r"""An adversary that predicts the group from the model's logit (Zhang et al., 2018).

    The adversary descends its own cross-entropy; the model ascends it, times the fairness weight.
    One backward pass does both: the gradient is reversed on its way from the adversary into the
    model.

    Left at that, the two run in circles: from weights of about 5 on the model ends with nearly
    constant scores whose tiny rest gives the group away. So the adversary also pays for the slope
    of its guess, half its mean square, which makes such games converge (Mescheder, Geiger and
    Nowozin, 2018: "Which training methods for GANs do actually converge?").

    Parameters
    ----------
    fairness_weights, shares : tensors
        As in `Penalty`.
    hidden_size : int
        Width of the adversary's two hidden layers.
    generator : torch.Generator, optional
        Draws its initial weights; every network's adversary starts from the same ones.
    """

    def __init__(
        self,
        fairness_weights: Tensor,
        shares: Tensor,
        hidden_size: int = 32,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(fairness_weights, shares)
        n_networks = len(fairness_weights)
        self.layers = nn.ParameterList()
        for width, following in ((1, hidden_size), (hidden_size, hidden_size), (hidden_size, 1)):
            start = torch.rand((1, width + 1, following), generator=generator)
            start = (2.0 * start - 1.0) * width**-0.5
            self.layers.append(nn.Parameter(start.repeat(n_networks, 1, 1)))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Let the adversary learn from the logits, and the model unlearn."""
        both = torch.cat([source, target], dim=1)
        logits = reverse_gradient(both, self.fairness_weights[:, None])
        guess, slope = self.guess(logits)
        truth = torch.zeros_like(guess)
        truth[:, source.shape[1] :] = 1.0
        loss = functional.binary_cross_entropy_with_logits(guess, truth, reduction="none")
        game = loss.mean(dim=1) + slope.square().mean(dim=1) / 2.0
        # The value that is reported is the weighted success; the gradient is that of the game.
        return self.fairness_weights * loss.mean(dim=1).detach() + game - game.detach()

    def guess(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Give the adversaries' logits of belonging to the target group, and their slopes."""
        values = logits[:, :, None]
        slopes = torch.ones_like(values)
        for index, layer in enumerate(self.layers):
            weight, bias = layer[:, :-1], layer[:, -1:]
            if index:
                slopes = slopes * (values > 0.0)
                values = functional.relu(values)
            values, slopes = torch.baddbmm(bias, values, weight), slopes @ weight
        return values.squeeze(-1), slopes.squeeze(-1)


def reverse_gradient(values: Tensor, weight: Tensor) -> Tensor:
    """Give the values as they are; their gradient comes back times minus the weight."""
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
