"""The settings of networks, their checks, and the training with them."""

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

# Hidden layers are as wide as the encoded table, and at least this wide. A network as narrow as a
# table with a few columns barely leaves its initial weights before the rate has decayed.
MIN_WIDTH = 32

# How long and how fast to learn, by name.
SCHEDULES: dict[str, dict[str, Any]] = {
    "short": {"epochs": 40, "learning_rate": 0.003, "decay": 0.9},
    "paper": {"epochs": 200, "learning_rate": 0.001, "decay": 0.95},
}

Network = Sequence[int] | torch.nn.Module | None


@dataclass(frozen=True)
class DescentSettings(Settings):
    """How networks are trained.

    Parameters
    ----------
    schedule : {"short", "paper"}, default="short"
        How long and how fast to learn. It sets the defaults of ``epochs``, ``learning_rate`` and
        ``decay``: 40, 0.003 and 0.9 with "short", and 200, 0.001 and 0.95 with "paper". In the
        recorded runs the short schedule is as good as the paper's.
    epochs : int, optional
        Number of epochs. An epoch has one step for every ``batch_size`` rows of the table, and at
        least 16 steps. By default the schedule's number.
    batch_size : int, default=1024
        Rows of each group in a batch, at most half the table. Training without a penalty has this
        many rows of the whole table in a batch.
    learning_rate : float, optional
        Adam's learning rate in the first epoch. By default the schedule's.
    decay : float, optional
        Factor on the learning rate after every epoch. By default the schedule's.
    device : str, default="cpu"
        Device that torch computes on.
    n_jobs : int or None, default=1
        Threads of torch in training. Networks for tables are small, and on a busy machine several
        threads wait for each other. None keeps torch's own setting.
    random_state : int, optional
        Seed. The same seed gives the same bits on the same machine, versions and number of
        threads.
    verbose : int, optional
        1 shows a progress bar on a terminal, and 0 shows none. By default there is one if training
        takes longer than two seconds.
    keep_on_interrupt : bool, default=False
        Whether Ctrl-C ends the training and keeps what has been learned. By default Ctrl-C raises
        ``KeyboardInterrupt``.
    """

    schedule: str = "short"
    epochs: int | None = None
    batch_size: int = 1024
    learning_rate: float | None = None
    decay: float | None = None
    device: str = "cpu"
    n_jobs: int | None = 1
    random_state: Any = None
    verbose: int | None = None
    keep_on_interrupt: bool = False

    def check(self) -> None:
        """Raise an error that names the first setting of a wrong type or size."""
        if not isinstance(self.schedule, str) or self.schedule not in SCHEDULES:
            names = " or ".join(map(repr, SCHEDULES))
            raise InputError(f"schedule must be {names}, got {self.schedule!r}.")
        check_count("epochs", self.epochs, optional=True)
        check_count("batch_size", self.batch_size)
        if self.decay is not None:
            check_number("decay", self.decay, "(0, 1]")
        if self.learning_rate is not None:
            check_number("learning_rate", self.learning_rate, "(0, inf)")
        check_verbose(0 if self.verbose is None else self.verbose)
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
        named = SCHEDULES[self.schedule]
        given = {name: getattr(self, name) for name in named}
        chosen = named | {name: value for name, value in given.items() if value is not None}
        schedule = Schedule.for_table(n_rows, self.batch_size, **chosen)
        objective.train()
        # A user's own module may draw from torch's global generator, whose state is restored.
        with (
            torch.random.fork_rng(),
            threads(self.n_jobs),
            TrainingProgress(schedule.epochs, weights, verbose=self.verbose) as progress,
        ):
            torch.manual_seed(int(seed.generate_state(1)[0]))
            n_epochs = train(
                objective,
                batches,
                schedule,
                on_epoch=lambda epoch, values: progress.update(epoch, lambda: values),
                keep_on_interrupt=self.keep_on_interrupt,
            )
        if n_epochs < schedule.epochs:
            notify(
                f"Training was interrupted after {n_epochs} of {schedule.epochs} epochs, and the "
                "model is kept as it was then. Fit again to train it to the end.",
                TrainingInterruptedWarning,
            )
        if not all(values.isfinite().all() for values in objective.parameters()):
            raise InputError(
                f"Training diverged: with learning_rate={schedule.learning_rate:g} the network's "
                "weights are no longer finite. Choose a smaller learning_rate."
            )
        objective.eval().to("cpu")
        return n_epochs


@dataclass(frozen=True)
class NetworkSettings(DescentSettings):
    """A network, and how it is trained.

    Parameters
    ----------
    network : sequence of int, or torch.nn.Module, optional
        Widths of the hidden layers, or a module of your own that maps every row to one number. By
        default there are two layers as wide as the encoded features, and at least 32 wide.

    Attributes
    ----------
    network_ : NetworkStack
        The trained network.
    n_epochs_ : int
        Number of complete epochs of its training.
    """

    network: Network = None

    def check(self) -> None:
        """Raise an error that names the first setting of a wrong type or size."""
        super().check()
        if not isinstance(self.network, torch.nn.Module):
            check_widths(self.network, "a list of widths, such as (64, 64), or a torch.nn.Module")


@contextmanager
def threads(wanted: int | None) -> Iterator[None]:
    """Set the number of torch's threads, and reset it afterwards; None changes nothing."""
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
    """Raise unless torch can compute on a device."""
    try:
        torch.empty(0, device=device)
    # The type of torch's error depends on the kind of device and on how torch was built.
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        raise InputError(
            "device must be one that torch can compute on, such as 'cpu' or 'cuda', got "
            f"{device!r} ({error}). Pass device='cpu'."
        ) from error


def check_widths(network: Any, expected: str = "a list of widths, such as (64, 64)") -> None:
    """Raise unless ``network`` is a list of widths or None."""
    sizes = np.asarray(() if network is None else network, dtype=object)
    if sizes.ndim != 1 or not all(map(is_count, sizes)):
        raise InputError(f"network must be {expected}; got {network!r}.")


def torch_generator(seed: np.random.SeedSequence) -> torch.Generator:
    """Return a new generator of torch for a seed."""
    return torch.Generator().manual_seed(int(seed.generate_state(1, np.uint64)[0] >> np.uint64(1)))
