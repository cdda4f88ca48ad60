"""What a representation has learned, and a classifier on it, as safetensors."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from fairmatch.exceptions import InputError, ModelFileError
from fairmatch.learning.representations.repair import TransportRepairTransformer

FILE = "weights.safetensors"
Arrays = dict[str, NDArray[Any]]


def dump(model: Any) -> tuple[bytes, dict[str, Any]]:
    """Give the arrays, and what else is needed to make the model again."""
    arrays, facts = _dump(model)
    return save({name: np.ascontiguousarray(values) for name, values in arrays.items()}), facts


def restore(model: Any, content: bytes, description: dict[str, Any]) -> None:
    """Give a model back what it has learned."""
    try:
        arrays = load(content)
    except (SafetensorError, KeyError, TypeError) as error:
        raise ModelFileError(f"{FILE} does not hold weights: {error}") from error
    if not all(v.dtype.kind == "f" and np.isfinite(v).all() for v in arrays.values()):
        raise ModelFileError("The weights are not all finite numbers.")
    _restore(model, arrays, description)


def _dump(model: Any) -> tuple[Arrays, dict[str, Any]]:
    if isinstance(model, TransportRepairTransformer):
        parts = {"points": model.points_, "shifts": model.shifts_}
        return {f"{n}.{code}": v[code] for n, v in parts.items() for code in (0, 1)}, {}
    arrays, facts = _dump_network("network", model.network_)
    if hasattr(model, "decoder_"):
        more, others = _dump_network("decoder", model.decoder_)
        return arrays | more, facts | others
    more, others = _dump(model.representation_)
    inner = {f"representation.{name}": values for name, values in more.items()}
    return arrays | inner, facts | {"learned_representation": others}


def _dump_network(name: str, network: Any) -> tuple[Arrays, dict[str, Any]]:
    if not hasattr(network, "hidden_sizes"):
        raise InputError(
            "A model with a network of your own cannot be saved without pickling it. Save the "
            "network's state_dict yourself, or use the built-in one."
        )
    arrays = {f"{name}.{key}": values.numpy() for key, values in network.state_dict().items()}
    sizes = [network.n_inputs, *network.hidden_sizes, network.n_outputs]
    return arrays, {f"{name}_sizes": sizes}


def _restore(model: Any, arrays: Arrays, facts: dict[str, Any]) -> None:
    if isinstance(model, TransportRepairTransformer):
        _restore_repair(model, arrays)
        return
    network = _restore_network("network", arrays, facts)
    if hasattr(model, "representation"):
        inner = model._seeded()
        inner._adopt(model)
        if isinstance(inner, TransportRepairTransformer):  # which has seen no labels
            del inner.classes_, inner.fairness_weight_
        _restore(inner, _under("representation", arrays), facts["learned_representation"])
        model.representation_ = inner
        width = _n_out(inner)
    else:
        model.decoder_ = _restore_network("decoder", arrays, facts)
        width = model._n_encoded + bool(model.sensitive_at_prediction)
        if model.decoder_.n_inputs != network.n_outputs + 1:
            raise ModelFileError("The decoder does not take what the network gives.")
    if network.n_inputs != width:
        raise ModelFileError("The network does not take as many inputs as it is given.")
    model.network_ = network


def _restore_repair(model: Any, arrays: Arrays) -> None:
    model.points_ = arrays["points.0"], arrays["points.1"]
    model.shifts_ = arrays["shifts.0"], arrays["shifts.1"]
    for points, shifts in zip(model.points_, model.shifts_, strict=True):
        if points.ndim != 2 or not len(points) or points.shape[1] != model._n_encoded:
            raise ModelFileError("The points are not rows of the encoded table.")
        if points.shape != shifts.shape:
            raise ModelFileError("There is not one shift for every point.")


def _restore_network(name: str, arrays: Arrays, facts: dict[str, Any]) -> Any:
    import torch

    from fairmatch.learning.networks.stack import StackedMLP

    n_inputs, *hidden_sizes, n_outputs = facts[f"{name}_sizes"]
    tensors = {key: torch.from_numpy(v.copy()) for key, v in _under(name, arrays).items()}
    return StackedMLP.from_tensors(n_inputs, hidden_sizes, tensors, n_outputs).eval()


def _under(name: str, arrays: Arrays) -> Arrays:
    start = f"{name}."
    return {key.removeprefix(start): v for key, v in arrays.items() if key.startswith(start)}


def _n_out(representation: Any) -> int:
    if isinstance(representation, TransportRepairTransformer):
        return int(representation.points_[0].shape[1])
    return int(representation.network_.n_outputs)
