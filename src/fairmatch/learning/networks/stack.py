"""Many networks of one shape in one tensor program."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional


class NetworkStack(nn.Module):
    """L networks that see the same inputs or different ones.

    ``forward`` maps (n_rows, n_inputs) or (L, n_rows, n_inputs) to logits of shape (L, n_rows).
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits of every network."""
        raise NotImplementedError

    def select(self, index: int) -> "NetworkStack":
        """Return one of the networks as a stack of its own."""
        raise NotImplementedError


class StackedMLP(NetworkStack):
    """L multilayer perceptrons with stacked weights, trained by one optimiser.

    All networks start from the same weights, so later differences come from the objective.

    Parameters
    ----------
    n_networks : int
        Number of networks.
    n_inputs : int
        Number of inputs of each network.
    hidden_sizes : sequence of int
        Widths of the hidden layers, with ReLU after each of them.
    generator : torch.Generator, optional
        Draws the initial weights, from the same range as ``torch.nn.Linear``.
    n_outputs : int, default=1
        Number of outputs of each network for a row; a classifier has one logit.
    """

    def __init__(
        self,
        n_networks: int,
        n_inputs: int,
        hidden_sizes: Sequence[int],
        generator: torch.Generator | None = None,
        n_outputs: int = 1,
    ) -> None:
        super().__init__()
        self.hidden_sizes = tuple(int(size) for size in hidden_sizes)
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for width, following in pairwise([n_inputs, *hidden_sizes, n_outputs]):
            bound = width**-0.5
            for parameters, shape in (
                (self.weights, (following, width)),
                (self.biases, (following,)),
            ):
                start = (2.0 * torch.rand(shape, generator=generator) - 1.0) * bound
                parameters.append(nn.Parameter(start.repeat(n_networks, *[1] * len(shape))))

    @property
    def n_inputs(self) -> int:
        """Number of inputs of each network."""
        return int(self.weights[0].shape[-1])

    @property
    def n_outputs(self) -> int:
        """Number of outputs of each network."""
        return int(self.weights[-1].shape[-2])

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits of every network."""
        return self.outputs(inputs).squeeze(-1)

    def outputs(self, inputs: Tensor) -> Tensor:
        """Return all outputs of every network, of shape (L, n_rows, n_outputs)."""
        # One network after the other is quicker than a batched product, because the intermediate
        # values of one network stay in the processor's cache.
        own = inputs.unbind() if inputs.ndim == 3 else [inputs] * len(self.weights[0])
        pairs = zip(self.networks(), own, strict=True)
        return torch.stack([_apply(layers, values) for layers, values in pairs])

    def networks(self) -> Iterator[list[tuple[Tensor, Tensor]]]:
        """Yield the layers of one network after the other."""
        unbound = [(w.unbind(), b.unbind()) for w, b in zip(self.weights, self.biases, strict=True)]
        for index in range(len(self.weights[0])):
            yield [(w[index], b[index]) for w, b in unbound]

    def select(self, index: int) -> "StackedMLP":
        """Return a copy of one of the networks as a stack of its own."""
        tensors = {name: t[index : index + 1].clone() for name, t in self.state_dict().items()}
        return StackedMLP.from_tensors(self.n_inputs, self.hidden_sizes, tensors, self.n_outputs)

    @classmethod
    def from_tensors(
        cls,
        n_inputs: int,
        hidden_sizes: Sequence[int],
        tensors: Mapping[str, Tensor],
        n_outputs: int = 1,
    ) -> "StackedMLP":
        """Return one network with ready weights; raise if their shapes do not fit."""
        # The initial weights are replaced at once, so they are neither drawn nor stored.
        with torch.device("meta"):
            network = cls(1, n_inputs, hidden_sizes, n_outputs=n_outputs)
        network.load_state_dict(tensors, assign=True)
        return network.to(torch.float32)


def _apply(layers: list[tuple[Tensor, Tensor]], values: Tensor) -> Tensor:
    *hidden, (weight, bias) = layers
    for hidden_weight, hidden_bias in hidden:
        values = functional.relu(functional.linear(values, hidden_weight, hidden_bias))
    return functional.linear(values, weight, bias)


class ModuleStack(NetworkStack):
    """Copies of a user's own module.

    Parameters
    ----------
    modules : sequence of torch.nn.Module
        Each maps (n_rows, n_inputs) to one logit per row.
    """

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(modules)

    @classmethod
    def copies(cls, module: nn.Module, n_networks: int) -> "ModuleStack":
        """Return a stack of copies of a module, all with the same weights."""
        return cls([deepcopy(module) for _ in range(n_networks)])

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits of every network."""
        own = inputs.unbind() if inputs.ndim == 3 else [inputs] * len(self.members)
        pairs = zip(self.members, own, strict=True)
        return torch.stack([member(values).reshape(len(values)) for member, values in pairs])

    def select(self, index: int) -> "ModuleStack":
        """Return one of the networks as a stack of its own."""
        return ModuleStack([self.members[index]])
