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

# How long and how fast to learn, by name.
SCHEDULES: dict[str, dict[str, Any]] = {
    "short": {"epochs": 40, "learning_rate": 0.003, "decay": 0.9},
    "paper": {"epochs": 200, "learning_rate": 0.001, "decay": 0.95},
}

Network = Sequence[int] | torch.nn.Module | None


@dataclass(frozen=True)
class DescentSettings(Settings):
    """How networks descend.

    Parameters
    ----------
    schedule : {"short", "paper"}, default="short"
        How long and how fast to learn, unless the three parameters below say otherwise: 40 epochs
        at a rate of .003 with a decay of .9, which the records show to be as good; or the paper's
        own 200 epochs at .001 with .95.
    epochs : int, optional
        How often to go over the table. An epoch has as many steps as it takes to go over the
        table in batches, and at least 16. By default that of the schedule.
    batch_size : int, default=1024
        Rows of each group in a batch, at most half the table.
    learning_rate : float, optional
        Rate of Adam in the first epoch. By default that of the schedule.
    decay : float, optional
        What the rate is multiplied by after each epoch. By default that of the schedule.
    device : str, default="cpu"
        Where torch computes.
    n_jobs : int, optional, default=1
        Threads of torch in training. Networks for tables are small, and on a busy machine more
        threads wait for each other. None leaves torch's own setting.
    random_state : int, optional
        Same seed, same bits, on the same machine, versions and number of threads.
    verbose : int, optional
        1 shows a progress bar on a terminal, 0 none; by default there is one where training takes
        longer than two seconds.
    keep_on_interrupt : bool, default=False
        Whether Ctrl-C ends the training and keeps what has been learned.
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
        """Raise an error that names a setting of a wrong type or size."""
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
        # A module of the user's own may draw from torch's global generator, which is theirs.
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
                f"Training was interrupted after {n_epochs} of {schedule.epochs} epochs; the "
                "model is what had been learned by then.",
                TrainingInterruptedWarning,
            )
        if not all(values.isfinite().all() for values in objective.parameters()):
            raise InputError(
                f"Training diverged: with learning_rate={schedule.learning_rate:g} the network's "
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

    Attributes
    ----------
    network_ : NetworkStack
        The network.
    n_epochs_ : int
        How many epochs it was trained for.
    """

    network: Network = None

    def check(self) -> None:
        """Raise an error that names a setting of a wrong type or size."""
        super().check()
        if not isinstance(self.network, torch.nn.Module):
            check_widths(self.network, "a list of widths, such as (64, 64), or a torch.nn.Module")


@contextmanager
def threads(wanted: int | None) -> Iterator[None]:
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
