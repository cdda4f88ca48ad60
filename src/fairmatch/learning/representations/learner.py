"""Representations against a critic: the settings, the training of a path, and its members."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fairmatch.exceptions import ModelFileError
from fairmatch.learning.arrayfiles import FILE, Arrays, read_arrays, under, write_arrays
from fairmatch.learning.loss import Loss
from fairmatch.learning.networks.batches import PairBatches
from fairmatch.learning.networks.settings import (
    MIN_WIDTH,
    DescentSettings,
    check_widths,
    torch_generator,
)
from fairmatch.learning.networks.stack import StackedMLP
from fairmatch.learning.networks.weightfiles import network_arrays, network_from
from fairmatch.learning.reader import check_lengths
from fairmatch.learning.representations.critics import Critic, RepresentationObjective, moments
from fairmatch.learning.rows import TrainingRows, group_columns, seed_sequence
from fairmatch.learning.saving import State
from fairmatch.learning.state import epochs_from
from fairmatch.matching.coupling import Coupling
from fairmatch.matching.parts import plan_parts
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.parameters import check_number

MakeCritic = Callable[..., Critic]


@dataclass(frozen=True)
class CriticSettings(DescentSettings):
    """A representation, and how it is learned.

    Parameters
    ----------
    task_weight : float, default=1.0
        Weight of the cross-entropy of a linear head that predicts the label.
    reconstruction_weight : float, default=0.1
        Weight of the share of the table's variance that a decoder cannot rebuild. In a small table
        the encoder may learn the labels by heart, and a larger weight helps, such as 3 for German.
    network : sequence of int, optional
        Widths of the encoder's hidden layers; the decoder has the same in reverse. By default
        there is one layer as wide as the encoded features, and at least 32 wide.

    Attributes
    ----------
    n_epochs_ : int
        Number of complete epochs of the training.
    """

    task_weight: float = 1.0
    reconstruction_weight: float = 0.1
    network: Sequence[int] | None = None

    def check(self) -> None:
        """Raise an error that names the first setting of a wrong type or size."""
        super().check()
        check_widths(self.network)
        for name in ("task_weight", "reconstruction_weight"):
            check_number(name, getattr(self, name), "[0, inf)")


@dataclass(frozen=True, eq=False)
class CriticRepresenter:
    """An encoder and its decoder.

    Attributes
    ----------
    network, decoder : StackedMLP
        The encoder, which represents rows, and the decoder, which rebuilds them.
    n_epochs : int or None
        Number of epochs of their training; None for older files, which lack it.
    """

    network: StackedMLP
    decoder: StackedMLP
    n_epochs: int | None = None

    @property
    def n_outputs(self) -> int:
        """How many numbers represent a row."""
        return self.network.n_outputs

    def represent(self, encoded: FloatArray, codes: NDArray[Any] | None) -> FloatArray:
        """Return the representation of encoded rows."""
        return _apply(self.network, _beside(encoded, codes))

    @staticmethod
    def represent_path(
        members: Sequence["CriticRepresenter"], encoded: FloatArray, codes: NDArray[Any] | None
    ) -> FloatArray:
        """Return the representation of the same rows by every member; the first axis is members."""
        return np.stack([one.represent(encoded, codes) for one in members])

    def rebuild(self, latents: FloatArray, codes: NDArray[Any]) -> FloatArray:
        """Return encoded rows, rebuilt from their representation and their groups."""
        check_lengths(latents, codes)
        return _apply(self.decoder, _beside(latents, codes))

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the transformer shows."""
        trained = {} if self.n_epochs is None else {"n_epochs_": self.n_epochs}
        return {
            "representer_": self,
            "network_": self.network,
            "decoder_": self.decoder,
            **trained,
        }

    def state(self) -> State:
        """Return the state to save: the weights and the sizes of both networks."""
        arrays: Arrays = {}
        sizes: dict[str, Any] = {}
        for name, network in (("network", self.network), ("decoder", self.decoder)):
            arrays |= {f"{name}.{key}": v for key, v in network_arrays(network).items()}
            sizes[f"{name}_sizes"] = [network.n_inputs, *network.hidden_sizes, network.n_outputs]
        return State(FILE, write_arrays(arrays), {**sizes, "n_epochs": self.n_epochs})

    @classmethod
    def from_state(
        cls, content: bytes, facts: dict[str, Any], n_encoded: int, seen: bool
    ) -> "CriticRepresenter":
        """Return the representer of a saved state; raise an error if it is damaged.

        ``seen`` is whether the encoder sees the group.
        """
        arrays = read_arrays(content)
        network, decoder = (
            network_from(under(name, arrays), facts[f"{name}_sizes"])
            for name in ("network", "decoder")
        )
        if decoder.n_inputs != network.n_outputs + 1:
            raise ModelFileError(
                f"The file is damaged: the decoder must take {network.n_outputs + 1} inputs, and "
                f"takes {decoder.n_inputs}."
            )
        if network.n_inputs != n_encoded + seen:
            raise ModelFileError(
                f"The file is damaged: the network must take {n_encoded + seen} inputs, and takes "
                f"{network.n_inputs}."
            )
        return cls(network, decoder, epochs_from(facts))


class CriticLearner:
    """A learner that trains a path of representations together.

    Parameters
    ----------
    settings : CriticSettings
        The networks, the weights of the terms, and the settings of the training.
    n_components : int
        How many numbers represent a row.
    critic : callable
        Maps ``(fairness_weights, n_latents, generator=)`` to the critics.
    """

    def __init__(self, settings: CriticSettings, n_components: int, critic: MakeCritic) -> None:
        self.settings, self.n_components, self.critic = settings, n_components, critic

    def fit_path(
        self,
        rows: TrainingRows,
        loss: Loss,
        compare: Callable[[TrainingRows], Coupling | None],
        weights: Sequence[float],
    ) -> list[CriticRepresenter]:
        """Return one representer per weight; ``loss`` and ``compare`` are not used."""
        settings, factors = self.settings, np.asarray(weights, dtype=np.float64)
        network_seed, batch_seed, critic_seed = seed_sequence(settings.random_state).spawn(3)
        generator, n_features = torch_generator(network_seed), rows.encoded.shape[1]
        chosen = settings.network
        sizes = (max(n_features, MIN_WIDTH),) if chosen is None else tuple(chosen)
        size, n_latents = len(factors), self.n_components
        encoder = StackedMLP(size, rows.inputs.shape[1], sizes, generator, n_latents)
        decoder = StackedMLP(size, n_latents + 1, sizes[::-1], generator, n_features)
        critic = self.critic(
            torch.as_tensor(factors, dtype=torch.float32),
            n_latents,
            generator=torch_generator(critic_seed),
        )
        objective = RepresentationObjective(
            encoder,
            decoder,
            StackedMLP(size, n_latents, (), generator),
            critic,
            inputs=rows.inputs,
            features=rows.encoded,
            labels=rows.labels,
            mass=rows.mass,
            task_weight=settings.task_weight,
            reconstruction_weight=settings.reconstruction_weight,
            device=settings.device,
        )
        parts = plan_parts(rows.groups, weights=rows.weights)
        batches = PairBatches(
            parts, rows.mass, settings.batch_size, np.random.default_rng(batch_seed)
        )
        n_epochs = settings.descend(objective, batches, len(rows), factors, network_seed)
        _standardize(encoder, rows.inputs, rows.mass)
        return [
            CriticRepresenter(encoder.select(k), decoder.select(k), n_epochs) for k in range(size)
        ]


def _beside(values: FloatArray, codes: NDArray[Any] | None) -> FloatArray:
    """Return values with a column for the group, unless groups are not used."""
    return values if codes is None else np.column_stack([values, group_columns(codes, 2)])


def _apply(network: StackedMLP, inputs: FloatArray) -> FloatArray:
    """Return the outputs of the only network in a stack."""
    with torch.no_grad():
        outputs = network.outputs(torch.as_tensor(inputs, dtype=torch.float32))[0]
    values: FloatArray = outputs.to(torch.float64).numpy()
    return values


def _standardize(encoder: StackedMLP, inputs: FloatArray, mass: FloatArray) -> None:
    """Build the scaling over all rows into the last layer; training scaled every batch."""
    with torch.no_grad():
        latents = encoder.outputs(torch.as_tensor(inputs, dtype=torch.float32))
        mean, spread = moments(latents, torch.as_tensor(mass, dtype=torch.float32))
        encoder.weights[-1] /= spread.transpose(1, 2)
        encoder.biases[-1].sub_(mean[:, 0]).div_(spread[:, 0])
