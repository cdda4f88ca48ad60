"""The settings that every network learner has, checked, and a run of the one loop with them."""

import warnings
from typing import Any

import numpy as np
import torch
from torch import nn

from fairmatch.exceptions import InputError, TrainingInterruptedWarning
from fairmatch.learning.networks.batches import Batches
from fairmatch.learning.networks.loop import Schedule, train
from fairmatch.learning.progress import TrainingProgress
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.parameters import check_count, check_number, check_verbose, is_count


class GradientLearner:
    """An estimator that learns by the one loop.

    Subclasses have these as parameters.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    decay: float
    device: str
    random_state: Any
    verbose: int
    keep_on_interrupt: bool

    def _descend(
        self,
        objective: nn.Module,
        batches: Batches,
        n_rows: int,
        weights: FloatArray,
        seed: np.random.SeedSequence,
    ) -> None:
        """Train all networks of an objective, one per weight."""
        schedule = Schedule.for_table(
            n_rows,
            self.batch_size,
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            decay=self.decay,
        )
        objective.train()
        # A module of the user's own may draw from torch's global generator, which is theirs.
        with (
            torch.random.fork_rng(),
            TrainingProgress(self.epochs, weights, shown=self.verbose > 0) as progress,
        ):
            torch.manual_seed(int(seed.generate_state(1)[0]))
            self.n_epochs_ = train(
                objective,
                batches,
                schedule,
                on_epoch=progress.update,
                keep_on_interrupt=self.keep_on_interrupt,
            )
        if self.n_epochs_ < self.epochs:
            warnings.warn(
                f"Training was interrupted after {self.n_epochs_} of {self.epochs} epochs; the "
                "model is what had been learned by then.",
                TrainingInterruptedWarning,
                stacklevel=5,
            )
        if not all(values.isfinite().all() for values in objective.parameters()):
            raise InputError(
                f"Training diverged: with learning_rate={self.learning_rate:g} the network's "
                "weights are no longer finite. Choose a smaller one."
            )
        objective.eval().to("cpu")

    def _check_schedule(self) -> None:
        for name in ("epochs", "batch_size"):
            check_count(name, getattr(self, name))
        check_number("decay", self.decay, "(0, 1]")
        check_number("learning_rate", self.learning_rate, "(0, inf)")
        check_verbose(self.verbose)
        _check_device(self.device)


def _check_device(device: Any) -> None:
    """Raise unless torch can compute there."""
    try:
        torch.empty(0, device=device)
    # What torch raises depends on the kind of device, and on how it was built.
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        raise InputError(
            "device must be where torch can compute, such as 'cpu' or 'cuda'; got "
            f"{device!r}: {error}"
        ) from error


def check_widths(network: Any, expected: str = "a list of widths, such as (64, 64)") -> None:
    """Raise unless a parameter is a list of widths, or left out."""
    sizes = np.asarray(() if network is None else network, dtype=object)
    if sizes.ndim != 1 or not all(map(is_count, sizes)):
        raise InputError(f"network must be {expected}; got {network!r}.")


def torch_generator(seed: np.random.SeedSequence) -> torch.Generator:
    """Give torch a generator of its own."""
    return torch.Generator().manual_seed(int(seed.generate_state(1, np.uint64)[0] >> np.uint64(1)))
