"""Networks as a learner: the training of a whole path in one pass, and the scores."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from fairmatch.exceptions import InputError, ModelFileError
from fairmatch.learning.arrayfiles import FILE, read_arrays, write_arrays
from fairmatch.learning.family import Family
from fairmatch.learning.loss import LOGISTIC, Loss
from fairmatch.learning.networks.batches import Batches, RowBatches
from fairmatch.learning.networks.loop import Objective
from fairmatch.learning.networks.losses import TORCH_LOSSES
from fairmatch.learning.networks.penalties import Penalty, comparing
from fairmatch.learning.networks.settings import (
    MIN_WIDTH,
    NetworkSettings,
    threads,
    torch_generator,
)
from fairmatch.learning.networks.stack import ModuleStack, NetworkStack, StackedMLP
from fairmatch.learning.networks.weightfiles import network_arrays, network_from
from fairmatch.learning.reader import TableReader
from fairmatch.learning.rows import TrainingRows, seed_sequence
from fairmatch.learning.saving import State
from fairmatch.learning.state import epochs_from
from fairmatch.tables.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class NetworkScorer:
    """A network that scores rows.

    Attributes
    ----------
    network : NetworkStack
        A stack that holds one network.
    n_epochs : int or None
        Number of epochs of its training; None for older files, which lack it.
    loss : Loss
        The loss; its link turns margins into scores.
    """

    network: NetworkStack
    n_epochs: int | None = None
    loss: Loss = LOGISTIC

    FILE: ClassVar[str] = FILE

    def scores(self, inputs: FloatArray) -> FloatArray:
        """Return the score of every row."""
        margins = _outputs(self.network, inputs)
        scores: FloatArray = TORCH_LOSSES[self.loss.name].link(margins).numpy()
        return scores

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the estimator shows."""
        trained = {} if self.n_epochs is None else {"n_epochs_": self.n_epochs}
        return {"scorer_": self, "network_": self.network, **trained}

    def state(self) -> State:
        """Return the state to save: the weights and the sizes of the network."""
        content = write_arrays(network_arrays(self.network))
        assert isinstance(self.network, StackedMLP)
        facts = {
            "n_inputs": self.network.n_inputs,
            "hidden_sizes": list(self.network.hidden_sizes),
            "n_epochs": self.n_epochs,
        }
        return State(FILE, content, facts)

    @classmethod
    def from_state(
        cls, content: bytes, facts: dict[str, Any], reader: TableReader, model: Any
    ) -> "NetworkScorer":
        """Return the scorer of a saved state; raise an error if it is damaged."""
        hidden = facts["hidden_sizes"]
        if not isinstance(hidden, list):
            raise ModelFileError("The file is damaged: hidden_sizes must be a list.")
        network = network_from(read_arrays(content), [facts["n_inputs"], *hidden, 1])
        if network.n_inputs != reader.n_inputs:
            raise ModelFileError(
                f"The file is damaged: the table has {reader.n_inputs} inputs, and the network "
                f"takes {network.n_inputs}."
            )
        return cls(network, epochs_from(facts), model._target.loss)


def _outputs(network: NetworkStack, inputs: FloatArray) -> torch.Tensor:
    """Return the margins of one network; raise if an input is too large for it."""
    given = torch.as_tensor(inputs, dtype=torch.float32)
    # Scoring takes little work, and several threads would only wait for each other.
    with torch.no_grad(), threads(1):
        margins: torch.Tensor = network(given)[0].to(torch.float64)
    if not margins.isfinite().all():
        row = int((~margins.isfinite()).nonzero()[0])
        largest = float(np.abs(inputs[row]).max())
        raise InputError(
            f"Row {row} of X has a value that is too large to be scored: its encoded size is "
            f"{largest:g}. Correct the value, or leave the row out."
        )
    return margins


class NetworkLearner:
    """A learner that trains a path of networks together.

    All networks start from the same weights and see the same batches.

    Parameters
    ----------
    settings : NetworkSettings
        The sizes of the networks, and the settings of their training.
    """

    def __init__(self, settings: NetworkSettings) -> None:
        self.settings = settings

    def fit_path(
        self,
        rows: TrainingRows,
        loss: Loss,
        compare: Callable[[TrainingRows], Any],
        weights: Sequence[float],
    ) -> list[NetworkScorer]:
        """Return one scorer per weight.

        Parameters
        ----------
        rows : TrainingRows
            Rows to learn from. Inputs of shape (L, n_rows, n_inputs) differ between the networks.
        loss : Loss
            The loss, which compares margins with labels.
        compare : callable
            Returns the penalty on given rows. It is called only if a weight is positive.
        weights : sequence of float
            Weights of the penalty.
        """
        settings, factors = self.settings, np.asarray(weights, dtype=np.float64)
        network_seed, batch_seed, penalty_seed = seed_sequence(settings.random_state).spawn(3)
        stack = self._stack(rows, len(factors), torch_generator(network_seed))
        generator = np.random.default_rng(batch_seed)
        torch_loss = TORCH_LOSSES[loss.name]
        penalty: Penalty | None = None
        batches: Batches
        if factors.any():
            made = comparing(
                compare(rows),
                rows,
                torch.as_tensor(factors, dtype=torch.float32),
                batch_size=settings.batch_size,
                link=torch_loss.link,
                generator=generator,
                adversary=torch_generator(penalty_seed),
            )
            batches, penalty = made.batches, made.penalty
        else:
            # Nothing is compared, so training is plain and needs no matching.
            batches = RowBatches(rows.mass, settings.batch_size, generator)
        objective = Objective(
            stack, rows.inputs, rows.labels, penalty, settings.device, torch_loss.values
        )
        n_epochs = settings.descend(objective, batches, len(rows), factors, network_seed)
        return [NetworkScorer(stack.select(k), n_epochs, loss) for k in range(len(factors))]

    def _stack(
        self, rows: TrainingRows, n_networks: int, generator: torch.Generator
    ) -> NetworkStack:
        chosen = self.settings.network
        if isinstance(chosen, torch.nn.Module):
            return ModuleStack.copies(chosen, n_networks)
        width = max(rows.points.n_columns, MIN_WIDTH)
        hidden_sizes = (width, width) if chosen is None else chosen
        return StackedMLP(n_networks, rows.inputs.shape[-1], hidden_sizes, generator)


def _network_learner(settings: NetworkSettings, reader: TableReader) -> NetworkLearner:
    return NetworkLearner(settings)


NETWORKS = Family("numbers", NetworkSettings, _network_learner, NetworkScorer)
