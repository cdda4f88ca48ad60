"""What a network has learned, as safetensors."""

from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from fairmatch.exceptions import InputError, ModelFileError
from fairmatch.learning.networks.stack import StackedMLP

FILE = "weights.safetensors"


def dump(model: Any) -> tuple[bytes, dict[str, Any]]:
    """Give the weights, and what else is needed to make the network again."""
    if isinstance(model.network, torch.nn.Module):
        raise InputError(
            "A model with a network of your own cannot be saved without pickling it. Save the "
            "network's state_dict yourself, or use the built-in one."
        )
    network = model.network_
    facts = {"n_inputs": network.n_inputs, "hidden_sizes": list(network.hidden_sizes)}
    return save(network.state_dict()), facts


def restore(model: Any, content: bytes, description: dict[str, Any]) -> None:
    """Give a model its network back."""
    try:
        tensors = load(content)
    except SafetensorError as error:
        raise ModelFileError(f"{FILE} does not hold weights: {error}") from error
    n_inputs = description["n_inputs"]
    network = StackedMLP.from_tensors(n_inputs, description["hidden_sizes"], tensors)
    if not all(values.isfinite().all() for values in network.parameters()):
        raise ModelFileError("The weights are not all finite.")
    if n_inputs != model._n_encoded + bool(model.sensitive_at_prediction):
        raise ModelFileError("The table does not give as many inputs as the network takes.")
    model.network_ = network.eval()
