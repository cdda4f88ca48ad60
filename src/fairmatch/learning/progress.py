"""A live line for training, where somebody is there to see it."""

from types import TracebackType
from typing import Self

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from fairmatch.tables.arrays import FloatArray


class TrainingProgress:
    """Shows epochs, losses and penalties; silent when not asked for or not on a terminal.

    Parameters
    ----------
    n_epochs : int
        Length of the training.
    fairness_weights : array of shape (L,)
        Weights that are trained together; the first and the last are shown.
    shown : bool
        Whether the caller wants to see anything.
    """

    def __init__(self, n_epochs: int, fairness_weights: FloatArray, *, shown: bool) -> None:
        self.n_epochs, self.weights = n_epochs, fairness_weights
        console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("training"),
            BarColumn(),
            TextColumn("epoch {task.completed}/{task.total}  {task.fields[state]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not (shown and console.is_terminal),
        )

    def __enter__(self) -> Self:
        self._bar.start()
        self._task = self._bar.add_task("training", total=self.n_epochs, state="")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def update(self, epoch: int, values: FloatArray) -> None:
        """Show the mean loss and penalty of an epoch, of shape (2, L)."""
        parts = []
        for index in sorted({0, len(self.weights) - 1}):
            loss, penalty = values[:, index]
            weight = self.weights[index]
            gap = f" penalty {penalty / weight:.4f}" if weight > 0 and np.isfinite(weight) else ""
            parts.append(f"λ={weight:g}: loss {loss:.4f}{gap}")
        self._bar.update(self._task, completed=epoch + 1, state="  ".join(parts))
