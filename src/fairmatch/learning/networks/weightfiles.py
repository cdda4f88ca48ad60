"""Networks as arrays and back; the sizes are checked before a network is made."""

from itertools import pairwise
from typing import Any

import torch

from fairmatch.exceptions import InputError, ModelFileError
from fairmatch.learning.arrayfiles import Arrays
from fairmatch.learning.networks.stack import StackedMLP


def network_arrays(network: Any) -> Arrays:
    """Return the weights of a built-in network."""
    if not isinstance(network, StackedMLP):
        raise InputError(
            "A model with a network of your own cannot be saved without pickling it. Save the "
            "network's state_dict yourself, or use the built-in one."
        )
    return {name: values.numpy() for name, values in network.state_dict().items()}


def network_from(arrays: Arrays, sizes: Any) -> StackedMLP:
    """Return a network with given sizes and weights; raise an error if they do not fit.

    Parameters
    ----------
    arrays : dict of str to array
        Weights in the form that `network_arrays` returns.
    sizes : list of int
        Number of inputs, widths of the hidden layers, number of outputs.
    """
    if not isinstance(sizes, list) or not all(type(size) is int and size > 0 for size in sizes):
        raise ModelFileError("The file is damaged: sizes of a network must be whole numbers.")
    if len(arrays) != 2 * (len(sizes) - 1):
        raise ModelFileError(
            f"The file is damaged: {len(sizes) - 1} layers have {2 * (len(sizes) - 1)} arrays of "
            f"weights, and there are {len(arrays)}."
        )
    for index, (width, following) in enumerate(pairwise(sizes)):
        shapes = {"weights": (1, following, width), "biases": (1, following)}
        for name, shape in shapes.items():
            found = arrays.get(f"{name}.{index}")
            if found is None or found.shape != shape:
                raise ModelFileError(
                    f"The file is damaged: {name}.{index} must have the shape {shape}."
                )
    tensors = {name: torch.from_numpy(values.copy()) for name, values in arrays.items()}
    n_inputs, *hidden_sizes, n_outputs = sizes
    network: StackedMLP = StackedMLP.from_tensors(n_inputs, hidden_sizes, tensors, n_outputs).eval()
    return network
