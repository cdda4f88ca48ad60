r"""Representations against critics: the objectives of LAFTR and sIPM-LFR.

An encoder maps rows to a few numbers, their latents. A head predicts the label from the latents,
and a decoder rebuilds the row from the latents and the group. A critic searches for a function of
the latents whose mean differs between the groups. The encoder pays the critic's success, times the
fairness weight.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fairmatch.learning.networks.adversary import AdversaryNetwork, reverse_gradient
from fairmatch.learning.networks.batches import Batch
from fairmatch.learning.networks.stack import StackedMLP
from fairmatch.tables.arrays import FloatArray

# A latent is divided by its spread, but by no less than this. Otherwise a nearly constant latent
# would be blown up.
_MIN_SPREAD = 1e-3


class Critic(nn.Module):
    """Base class of the critics of L encoders, with one fairness weight each.

    An encoder can fool a critic that learns too slowly: it hides the group where the critic does
    not look at that moment, and a new critic finds it. So critics learn faster than encoders.
    Adam's steps have the same size for every gradient, so the weights in use are ``speed`` times
    the parameters that Adam moves.

    Parameters
    ----------
    fairness_weights : tensor of shape (L,)
        Factors on the critics' success, one per encoder.
    slope_weight : float
        Price of half the mean square of the slope of a critic's guess. Without it the game runs in
        circles.
    speed : float
        How many times faster than its encoder a critic learns.
    """

    fairness_weights: Tensor

    def __init__(self, fairness_weights: Tensor, slope_weight: float, speed: float) -> None:
        super().__init__()
        self.register_buffer("fairness_weights", fairness_weights)
        self.slope_weight, self.speed = slope_weight, speed

    def forward(self, latents: Tensor, n_source: int) -> Tensor:
        """Return what each encoder pays, of shape (L,); the gradient also trains the critics.

        Parameters
        ----------
        latents : tensor of shape (L, n_rows, n_latents)
            The first ``n_source`` rows are of the first group, and the rest of the second.
        n_source : int
            Number of rows of the first group.
        """
        raise NotImplementedError


class AdversaryCritic(Critic):
    r"""LAFTR's adversary: a network that guesses the group (Madras et al., 2018).

    Its loss is the group-normalised L1 distance of its guess h(z) from the group. Its success is
    the gap between the groups' mean guesses,

    .. math:: 1 - \sum_s E[|h(z) - s| \mid S = s] = E[h(z) \mid S = 1] - E[h(z) \mid S = 0].

    This bounds the demographic parity gap of every classifier on z that is no stronger than the
    adversary. One backward pass trains both sides, because the gradient is reversed between the
    adversary and the encoder.

    Parameters
    ----------
    fairness_weights : tensor of shape (L,)
        Factors on the adversaries' success, one per encoder.
    n_latents : int
        Number of latents.
    hidden_sizes : sequence of int
        Widths of the adversary's hidden layers.
    slope_weight : float
        Price of half the mean square of the slope of the guess.
    speed : float
        How many times faster than its encoder a critic learns.
    generator : torch.Generator, optional
        Draws the initial weights, which are the same for every encoder's adversary.
    """

    def __init__(
        self,
        fairness_weights: Tensor,
        n_latents: int,
        hidden_sizes: Sequence[int] = (64, 64),
        slope_weight: float = 0.3,
        speed: float = 10.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(fairness_weights, slope_weight, speed)
        self.network = AdversaryNetwork(
            len(fairness_weights), n_latents, hidden_sizes, speed=speed, generator=generator
        )

    def forward(self, latents: Tensor, n_source: int) -> Tensor:
        """Return the adversaries' weighted success; its gradient trains both sides."""
        latents = reverse_gradient(latents, self.fairness_weights[:, None, None])
        logits, slopes = self.network.guess(latents)
        guess = torch.sigmoid(logits.squeeze(2))
        gap = guess[:, n_source:].mean(dim=1) - guess[:, :n_source].mean(dim=1)
        steep = slopes.square().sum(dim=(2, 3)).mean(dim=1)
        game = self.slope_weight * steep / 2.0 - gap
        # The value is the weighted success, and the gradient is that of the game.
        return self.fairness_weights * gap.detach() + game - game.detach()


class SigmoidCritic(Critic):
    r"""The sigmoid integral probability metric (Kim et al., 2022), maximised by gradient steps.

    .. math:: \sup_{\theta, \mu} \bigl| E[\sigma(\theta^\top z + \mu) \mid S = 0]
              - E[\sigma(\theta^\top z + \mu) \mid S = 1] \bigr|.

    The objective has many local maxima. So several discriminators climb at once from different
    starts, and the encoder pays for the best of them.

    Parameters
    ----------
    fairness_weights : tensor of shape (L,)
        Factors on the metric, one per encoder.
    n_latents : int
        Number of latents.
    n_discriminators : int
        Number of discriminators.
    slope_weight : float
        Price of half the squared norm of a discriminator's weights.
    speed : float
        How many times faster than its encoder a critic learns.
    generator : torch.Generator, optional
        Draws the starts, which are the same for every encoder.
    """

    def __init__(
        self,
        fairness_weights: Tensor,
        n_latents: int,
        n_discriminators: int = 16,
        slope_weight: float = 0.01,
        speed: float = 10.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(fairness_weights, slope_weight, speed)
        start = torch.rand((1, n_latents + 1, n_discriminators), generator=generator)
        start = (2.0 * start - 1.0) * (3.0 / n_latents) ** 0.5 / speed
        self.discriminators = nn.Parameter(start.repeat(len(fairness_weights), 1, 1))

    def forward(self, latents: Tensor, n_source: int) -> Tensor:
        """Return the weighted gap of the best discriminators; its gradient trains both sides."""
        quick = self.speed * self.discriminators
        gaps = self.gaps(latents.detach(), n_source, quick)
        slope = quick[:, :-1].square().sum(dim=(1, 2))
        game = self.slope_weight * slope / 2.0 - gaps.sum(dim=1)
        best = gaps.argmax(dim=1)[:, None, None].expand(-1, quick.shape[1], 1)
        strongest = quick.detach().gather(2, best)
        paid = self.gaps(latents, n_source, strongest)[:, 0]
        return self.fairness_weights * paid + game - game.detach()

    def gaps(self, latents: Tensor, n_source: int, discriminators: Tensor) -> Tensor:
        """Return each discriminator's gap between the groups' means."""
        weight, bias = discriminators[:, :-1], discriminators[:, -1:]
        values = torch.sigmoid(torch.baddbmm(bias, latents, weight))
        return (values[:, :n_source].mean(dim=1) - values[:, n_source:].mean(dim=1)).abs()


class RepresentationObjective(nn.Module):
    r"""The objective of L encoders on one batch of pairs.

    .. math:: a\, E\, l(Y, k(z)) + b\, \frac{E \|x - g(z, s)\|^2}{E \|x - \bar x\|^2}
              + \lambda\, \mathrm{success\ of\ the\ critic\ on}\ z

    The latents z are scaled to mean 0 and standard deviation 1 in the batch. With a free scale, an
    encoder could hide the group where the critic is too flat to find it.

    Parameters
    ----------
    encoder, decoder, head : StackedMLP
        L encoders f, decoders g and heads k.
    critic : Critic
        L critics with their fairness weights.
    inputs : array of shape (n_rows, n_inputs)
        What the encoders see.
    features : array of shape (n_rows, n_features)
        What the decoders rebuild.
    labels : array of shape (n_rows,)
        0 or 1.
    mass : array of shape (n_rows,)
        Weight of every row.
    task_weight, reconstruction_weight : float
        The a and b of the formula.
    device : str
        Device that torch computes on.
    """

    def __init__(
        self,
        encoder: StackedMLP,
        decoder: StackedMLP,
        head: StackedMLP,
        critic: Critic,
        *,
        inputs: FloatArray,
        features: FloatArray,
        labels: FloatArray,
        mass: FloatArray,
        task_weight: float,
        reconstruction_weight: float,
        device: str = "cpu",
    ) -> None:
        super().__init__()
        self.encoder, self.decoder, self.head, self.critic = encoder, decoder, head, critic
        self.inputs = torch.as_tensor(inputs, dtype=torch.float32, device=device)
        self.features = torch.as_tensor(features, dtype=torch.float32, device=device)
        self.labels = torch.as_tensor(labels, dtype=torch.float32, device=device)
        self.task_weight, self.reconstruction_weight = task_weight, reconstruction_weight
        # A table of identical rows has no variance to divide by.
        centred = features - np.average(features, axis=0, weights=mass)
        self.spread = max(float(np.average(centred**2, axis=0, weights=mass).sum()), 1e-12)
        self.to(device)

    def forward(self, batch: Batch) -> Tensor:
        """Return each encoder's loss and its price for the critic, of shape (2, L)."""
        rows = torch.from_numpy(batch.rows).to(self.inputs.device)
        weight = torch.from_numpy(batch.weight).to(self.inputs.device)
        latents = standardized(self.encoder.outputs(self.inputs[rows]), weight)
        loss = torch.zeros(len(latents), device=latents.device)
        if self.task_weight:
            loss = loss + self.task_weight * self.task_loss(latents, rows, weight)
        if self.reconstruction_weight:
            lost = self.reconstruction_loss(latents, rows, weight, batch.n_pairs)
            loss = loss + self.reconstruction_weight * lost
        return torch.stack([loss, self.critic(latents, batch.n_pairs)])

    def task_loss(self, latents: Tensor, rows: Tensor, weight: Tensor) -> Tensor:
        """Return the heads' cross-entropy."""
        logits = self.head(latents)
        truth = self.labels[rows].expand_as(logits)
        losses = functional.binary_cross_entropy_with_logits(logits, truth, reduction="none")
        return losses @ weight

    def reconstruction_loss(
        self, latents: Tensor, rows: Tensor, weight: Tensor, n_source: int
    ) -> Tensor:
        """Return the share of the table's variance that the decoders cannot rebuild."""
        group = torch.zeros((*latents.shape[:2], 1), device=latents.device)
        group[:, n_source:] = 1.0
        rebuilt = self.decoder.outputs(torch.cat([latents, group], dim=2))
        return (rebuilt - self.features[rows]).square().sum(dim=-1) @ weight / self.spread


def standardized(latents: Tensor, weight: Tensor) -> Tensor:
    """Return latents shifted and scaled to mean 0 and standard deviation 1, with weighted rows."""
    mean, spread = moments(latents, weight)
    return (latents - mean) / spread


def moments(latents: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean and the standard deviation of every latent, of shape (L, 1, n_latents)."""
    share = (weight / weight.sum())[:, None]
    mean = (latents * share).sum(dim=1, keepdim=True)
    variance = ((latents - mean).square() * share).sum(dim=1, keepdim=True)
    return mean, variance.clamp_min(_MIN_SPREAD**2).sqrt()
