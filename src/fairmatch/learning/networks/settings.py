"""The settings of networks, checked, and a run of the one loop with them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from fairmatch.exceptions import InputError, TrainingInterruptedWarning
from fairmatch.learning.networks.batches import Batches
from fairmatch.learning.networks.loop import Schedule, train
from fairmatch.learning.notice import notify
from fairmatch.learning.progress import TrainingProgress
from fairmatch.learning.settings import Settings
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.parameters import check_count, check_number, check_verbose, is_count

# Hidden layers are as wide as the encoded table, but no narrower than this: with a handful of
# columns a network of that width barely leaves its initial weights before the rate has decayed.
MIN_WIDTH = 32

Network = Sequence[int] | torch.nn.Module | None


@dataclass(frozen=True)
class DescentSettings(Settings):
    """How networks descend.

    Parameters
    ----------
    epochs : int, default=200
        How often to go over the table. An epoch has as many steps as it takes to go over the
        table in batches, and at least 16.
    batch_size : int, default=1024
        Rows of each group in a batch, at most half the table.
    learning_rate : float, default=0.001
        Rate of Adam in the first epoch.
    decay : float, default=0.95
        What the rate is multiplied by after each epoch.
    device : str, default="cpu"
        Where torch computes.
    n_jobs : int, optional, default=1
        Threads of torch in training. Networks for tables are small, and on a busy machine more
        threads wait for each other. None leaves torch's own setting.
    random_state : int, optional
        Same seed, same bits, on the same machine, versions and number of threads.
    verbose : int, default=0
        1 shows a progress bar on a terminal.
    keep_on_interrupt : bool, default=False
        Whether Ctrl-C ends the training and keeps what has been learned.
    """

    epochs: int = 200
    batch_size: int = 1024
    learning_rate: float = 1e-3
    decay: float = 0.95
    device: str = "cpu"
    n_jobs: int | None = 1
    random_state: Any = None
    verbose: int = 0
    keep_on_interrupt: bool = False

    def check(self) -> None:
        """Raise an error that names a setting of a wrong type or size."""
        for name in ("epochs", "batch_size"):
            check_count(name, getattr(self, name))
        check_number("decay", self.decay, "(0, 1]")
        check_number("learning_rate", self.learning_rate, "(0, inf)")
        check_verbose(self.verbose)
        check_count("n_jobs", self.n_jobs, optional=True)
        _check_device(self.device)

    def descend(
        self,
        objective: nn.Module,
        batches: Batches,
        n_rows: int,
        weights: FloatArray,
        seed: np.random.SeedSequence,
    ) -> int:
        """Train all networks of an objective, one per weight; return the number of epochs."""
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
            _threads(self.n_jobs),
            TrainingProgress(self.epochs, weights, shown=self.verbose > 0) as progress,
        ):
            torch.manual_seed(int(seed.generate_state(1)[0]))
            n_epochs = train(
                objective,
                batches,
                schedule,
                on_epoch=progress.update,
                keep_on_interrupt=self.keep_on_interrupt,
            )
        if n_epochs < self.epochs:
            notify(
                f"Training was interrupted after {n_epochs} of {self.epochs} epochs; the "
                "model is what had been learned by then.",
                TrainingInterruptedWarning,
            )
        if not all(values.isfinite().all() for values in objective.parameters()):
            raise InputError(
                f"Training diverged: with learning_rate={self.learning_rate:g} the network's "
                "weights are no longer finite. Choose a smaller one."
            )
        objective.eval().to("cpu")
        return n_epochs


@dataclass(frozen=True)
class NetworkSettings(DescentSettings):
    """A network, and how it descends.

    Parameters
    ----------
    network : sequence of int, or torch.nn.Module, optional
        Widths of the hidden layers, by default two layers as wide as the encoded features; or a
        module of your own that maps rows to one logit each.
    """

    network: Network = None

    def check(self) -> None:
        """Raise an error that names a setting of a wrong type or size."""
        super().check()
        if not isinstance(self.network, torch.nn.Module):
            check_widths(self.network, "a list of widths, such as (64, 64), or a torch.nn.Module")


@contextmanager
def _threads(wanted: int | None) -> Iterator[None]:
    """Let torch use so many threads for a while."""
    before = torch.get_num_threads()
    if wanted is None or wanted == before:
        yield
        return
    torch.set_num_threads(wanted)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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
    """Return a generator of its own for torch."""
    return torch.Generator().manual_seed(int(seed.generate_state(1, np.uint64)[0] >> np.uint64(1)))
