"""Networks that descend a loss plus a weighted penalty."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import clone

from fairmatch.exceptions import CouplingError
from fairmatch.learning.base import GroupClassifier, seed_sequence
from fairmatch.learning.grouped import TrainingRows
from fairmatch.learning.networks.batches import Batches, PairBatches, RowBatches
from fairmatch.learning.networks.descent import GradientLearner, check_widths, torch_generator
from fairmatch.learning.networks.loop import Objective
from fairmatch.learning.networks.penalties import Penalty
from fairmatch.learning.networks.stack import ModuleStack, NetworkStack, StackedMLP
from fairmatch.matching.coupling import Coupling
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.parameters import check_weights

# Hidden layers are as wide as the encoded table, but no narrower than this: with a handful of
# columns a network of that width barely leaves its initial weights before the rate has decayed.
MIN_WIDTH = 32

Network = Sequence[int] | torch.nn.Module | None


@dataclass(frozen=True)
class EncodedRows:
    """Training rows, and their features as numbers.

    Attributes
    ----------
    rows : TrainingRows
        Labels, groups and weights.
    features : array of shape (n_rows, n_features)
        Encoded features, which people are matched on.
    inputs : array of shape (n_rows, n_inputs) or (n_networks, n_rows, n_inputs)
        What a network sees: the features, and the group where it may be used; or what each of
        several networks sees.
    """

    rows: TrainingRows
    features: FloatArray
    inputs: FloatArray


class PenalizedClassifier(GradientLearner, GroupClassifier):
    """A network that descends a loss plus a weighted penalty.

    Subclasses say which penalty (`_penalty`), and which rows it compares (`_batches`).
    """

    def __init__(
        self,
        fairness_weight: float = 1.0,
        *,
        network: Network = None,
        epochs: int = 200,
        batch_size: int = 1024,
        learning_rate: float = 1e-3,
        decay: float = 0.95,
        sensitive_column: str | int | None = None,
        sensitive_at_prediction: bool = True,
        encoder: Any = "table",
        device: str = "cpu",
        random_state: int | None = None,
        verbose: int = 0,
        keep_on_interrupt: bool = False,
    ) -> None:
        self.fairness_weight = fairness_weight
        self.network = network
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.decay = decay
        self.sensitive_column = sensitive_column
        self.sensitive_at_prediction = sensitive_at_prediction
        self.encoder = encoder
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.keep_on_interrupt = keep_on_interrupt

    def _penalty(
        self, fairness_weights: torch.Tensor, shares: torch.Tensor, generator: torch.Generator
    ) -> Penalty:
        """Say what is added to the loss."""
        raise NotImplementedError

    def _batches(
        self, encoded: EncodedRows, coupling: Coupling | None, generator: np.random.Generator
    ) -> Batches:
        """Say which rows the penalty compares; by default unrelated rows of the two groups."""
        return PairBatches(encoded.rows.groups, encoded.rows.mass, self.batch_size, generator)

    def _fit_path(
        self,
        X: Any,
        y: ArrayLike,
        fairness_weights: Sequence[float],
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> list[Self]:
        """Fit one estimator per weight, all at once."""
        template: Self = clone(self)
        template._check_parameters(fairness_weights)
        template._check_coupling(coupling)
        rows = template._read_training(X, y, sensitive_features, sample_weight)
        networks = template._train(template._encode(rows), fairness_weights, coupling)
        return [
            self._fitted(weight, template, network_=network, fairness_weight_=float(weight))
            for weight, network in zip(fairness_weights, networks, strict=True)
        ]

    def _encode(self, rows: TrainingRows) -> EncodedRows:
        features = inputs = self._fit_encoder(rows)
        if self.sensitive_at_prediction:
            inputs = np.column_stack([features, rows.groups.codes])
        return EncodedRows(rows, features, inputs)

    def _train(
        self, encoded: EncodedRows, fairness_weights: Sequence[float], coupling: Coupling | None
    ) -> list[NetworkStack]:
        rows, weights = encoded.rows, np.asarray(fairness_weights, dtype=np.float64)
        network_seed, batch_seed, penalty_seed = seed_sequence(self.random_state).spawn(3)
        stack = self._stack(encoded, len(weights), torch_generator(network_seed))
        generator = np.random.default_rng(batch_seed)
        penalty: Penalty | None = None
        batches: Batches
        if weights.any():
            batches = self._batches(encoded, coupling, generator)
            penalty = self._penalty(
                torch.as_tensor(weights, dtype=torch.float32),
                torch.as_tensor(rows.shares, dtype=torch.float32),
                torch_generator(penalty_seed),
            )
        else:
            # Nothing to compare: plain training, and no matching to wait for.
            batches = RowBatches(rows.mass, self.batch_size, generator)
        objective = Objective(stack, encoded.inputs, rows.labels, penalty, self.device)
        self._descend(objective, batches, len(rows.labels), weights, network_seed)
        return [stack.select(index) for index in range(len(weights))]

    def _stack(
        self, encoded: EncodedRows, n_networks: int, generator: torch.Generator
    ) -> NetworkStack:
        if isinstance(self.network, torch.nn.Module):
            return ModuleStack.copies(self.network, n_networks)
        width = max(encoded.features.shape[1], MIN_WIDTH)
        hidden_sizes = (width, width) if self.network is None else self.network
        return StackedMLP(n_networks, encoded.inputs.shape[-1], hidden_sizes, generator)

    def _positive_scores(self, features: Any, codes: FloatArray | None) -> FloatArray:
        return self._scores_of(self._inputs(features, codes))

    def _scores_of(self, inputs: FloatArray) -> FloatArray:
        with torch.no_grad():
            logits = self.network_(torch.as_tensor(inputs, dtype=torch.float32))[0]
        scores: FloatArray = torch.sigmoid(logits.to(torch.float64)).numpy()
        return scores

    def _check_coupling(self, coupling: Coupling | None) -> None:
        if coupling is not None:
            raise CouplingError(f"{type(self).__name__} does not match people: leave coupling out.")

    def _check_parameters(self, fairness_weights: Sequence[float]) -> None:
        check_weights("fairness_weight", fairness_weights, "[0, inf)")
        self._check_schedule()
        self._check_network()

    def _check_network(self) -> None:
        if not isinstance(self.network, torch.nn.Module):
            check_widths(self.network, "a list of widths, such as (64, 64), or a torch.nn.Module")
