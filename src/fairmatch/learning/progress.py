"""A progress bar for long training, shown on a terminal only."""

import time
from collections.abc import Callable
from typing import Self

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from fairmatch.people.checks import FloatArray

# Seconds before a bar appears, unless one was asked for.
_PATIENCE = 2.0
# Seconds between two updates, and the greatest share of the time that updates may take.
_PAUSE, _SHARE = 0.2, 0.02


class TrainingProgress:
    """A bar that shows epochs, losses and penalties; it is silent without a terminal.

    With trees, the values to show take as long to compute as a round. So they are computed only
    now and then, in at most one fiftieth of the time. Of several weights that are trained together,
    the bar shows the first and the last. ``verbose=1`` shows a bar at once, 0 shows none, and None
    shows one if training takes longer than two seconds.
    """

    def __init__(
        self,
        n_epochs: int,
        fairness_weights: FloatArray,
        *,
        verbose: int | None = None,
        unit: str = "epoch",
    ) -> None:
        self.n_epochs, self.weights = n_epochs, fairness_weights
        console = Console(stderr=True)
        self._is_seen = console.is_terminal and verbose != 0
        self._patience = _PATIENCE if verbose is None else 0.0
        self._bar = Progress(
            TextColumn("training"),
            BarColumn(),
            TextColumn(f"{unit} {{task.completed}}/{{task.total}}  {{task.fields[state]}}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,  # a path has one bar per weight, and few of them are drawn to the end
        )
        self._task = self._bar.add_task("training", total=n_epochs, state="")

    def __enter__(self) -> Self:
        self._next = time.perf_counter() + self._patience
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar.live.is_started:
            self._bar.stop()

    def update(self, epoch: int, values: Callable[[], FloatArray]) -> None:
        """Show an epoch or a round, if an update is due."""
        now = time.perf_counter()
        if not self._is_seen or now < self._next:
            return
        self._bar.start()
        self._bar.update(self._task, completed=epoch + 1, state=self._words(values()))
        spent = time.perf_counter() - now
        self._next = now + max(_PAUSE, spent / _SHARE)

    def _words(self, values: FloatArray) -> str:
        parts = []
        for index in sorted({0, len(self.weights) - 1}):
            loss, penalty = values[:, index]
            weight = self.weights[index]
            gap = f" penalty {penalty / weight:.4f}" if weight > 0 and np.isfinite(weight) else ""
            parts.append(f"λ={weight:g}: loss {loss:.4f}{gap}")
        return "  ".join(parts)
