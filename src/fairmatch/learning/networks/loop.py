"""The only gradient loop, which trains a whole fairness curve in one pass."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from fairmatch.learning.networks.batches import Batch, Batches
from fairmatch.learning.networks.losses import TORCH_LOSSES
from fairmatch.learning.networks.penalties import Penalty
from fairmatch.learning.networks.stack import NetworkStack
from fairmatch.tables.arrays import FloatArray

# An epoch has at least this many steps. Otherwise, on a table of a few hundred rows, the learning
# rate would decay before the networks have learned anything.
MIN_STEPS_PER_EPOCH = 16


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to learn.

    Attributes
    ----------
    epochs : int
        Number of epochs.
    steps_per_epoch : int
        Number of steps in every epoch.
    learning_rate : float
        Adam's learning rate in the first epoch.
    decay : float
        Factor on the learning rate after every epoch.
    """

    epochs: int
    steps_per_epoch: int
    learning_rate: float = 1e-3
    decay: float = 0.95

    @classmethod
    def for_table(
        cls, n_rows: int, batch_size: int, *, epochs: int, learning_rate: float, decay: float
    ) -> "Schedule":
        """Return a schedule with one step per ``batch_size`` rows, and at least 16 per epoch."""
        steps = max(-(-n_rows // batch_size), MIN_STEPS_PER_EPOCH)
        return cls(epochs, steps, learning_rate, decay)


class Objective(nn.Module):
    """The loss and the penalty of L networks on one batch.

    Parameters
    ----------
    network : NetworkStack
        The networks to train.
    inputs : array of shape (n_rows, n_inputs) or (L, n_rows, n_inputs)
        What all networks see, or what each of them sees.
    labels : array of shape (n_rows,)
        0 or 1, or real numbers.
    penalty : Penalty, optional
        The penalty, which is added to the loss.
    device : str
        Device that torch computes on.
    loss : callable
        Maps margins of shape (L, n_rows) and labels of the same shape to losses.
    """

    def __init__(
        self,
        network: NetworkStack,
        inputs: FloatArray,
        labels: FloatArray,
        penalty: Penalty | None = None,
        device: str = "cpu",
        loss: Callable[[Tensor, Tensor], Tensor] = TORCH_LOSSES["logistic"].values,
    ) -> None:
        super().__init__()
        self.network, self.penalty, self.loss = network, penalty, loss
        self.inputs = torch.as_tensor(inputs, dtype=torch.float32, device=device)
        self.labels = torch.as_tensor(labels, dtype=torch.float32, device=device)
        self.to(device)

    def forward(self, batch: Batch) -> Tensor:
        """Return each network's loss and weighted penalty, of shape (2, L)."""
        rows = torch.from_numpy(batch.rows).to(self.inputs.device)
        weight = torch.from_numpy(batch.weight).to(self.inputs.device)
        logits = self.network(self.inputs[..., rows, :])
        loss = self.loss(logits, self.labels[rows].expand_as(logits)) @ weight
        if self.penalty is None:
            return torch.stack([loss, torch.zeros_like(loss)])
        n = batch.n_pairs
        return torch.stack([loss, self.penalty(logits[:, :n], logits[:, n : 2 * n])])


def train(
    objective: nn.Module,
    batches: Batches,
    schedule: Schedule,
    *,
    on_epoch: Callable[[int, FloatArray], None] | None = None,
    keep_on_interrupt: bool = False,
) -> int:
    """Minimise an objective in place with Adam, and return the number of epochs.

    The networks of a stack share no weights. So training on the sum of their objectives trains
    each of them as if it were alone.

    Parameters
    ----------
    objective : module
        Maps a batch to terms, one column per network. Their sum is minimised over all parameters
        of the module.
    batches : Batches
        Source of the batches.
    schedule : Schedule
        How long and how fast to learn.
    on_epoch : callable, optional
        Called after every epoch with its number and each network's mean terms.
    keep_on_interrupt : bool, default=False
        Whether Ctrl-C ends the training and keeps the networks; by default it raises
        ``KeyboardInterrupt``.

    Returns
    -------
    int
        Number of complete epochs.
    """
    parameters = list(objective.parameters())
    optimizer = torch.optim.Adam(parameters, lr=schedule.learning_rate, fused=True)
    decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=schedule.decay)
    done = 0
    try:
        for epoch in range(schedule.epochs):
            terms = []
            for batch in batches.epoch(schedule.steps_per_epoch):
                term = objective(batch)
                optimizer.zero_grad()
                term.sum().backward()
                optimizer.step()
                terms.append(term.detach())
            decay.step()
            done = epoch + 1
            if on_epoch is not None:
                on_epoch(epoch, torch.stack(terms).mean(dim=0).cpu().numpy().astype(np.float64))
    except KeyboardInterrupt:
        if not keep_on_interrupt:
            raise
    return done
