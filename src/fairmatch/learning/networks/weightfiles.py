"""Networks as arrays, and back: sizes are checked before anything is made of them."""

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
    """Return the network of some sizes with these weights, or raise where they do not fit.

    Parameters
    ----------
    arrays : dict of str to array
        Weights, as `network_arrays` gave them.
    sizes : list of int
        Number of inputs, widths of the hidden layers, number of outputs.
    """
    if not isinstance(sizes, list) or not all(type(size) is int and size > 0 for size in sizes):
        raise ModelFileError("The file is damaged: sizes of a network must be whole numbers.")
    if len(arrays) != 2 * (len(sizes) - 1):
        raise ModelFileError("The file is damaged: there are more or fewer weights than layers.")
    for index, (width, following) in enumerate(pairwise(sizes)):
        shapes = {"weights": (1, following, width), "biases": (1, following)}
        for name, shape in shapes.items():
            found = arrays.get(f"{name}.{index}")
            if found is None or found.shape != shape:
                raise ModelFileError("The file is damaged: weights are not of the network's sizes.")
    tensors = {name: torch.from_numpy(values.copy()) for name, values in arrays.items()}
    n_inputs, *hidden_sizes, n_outputs = sizes
    network: StackedMLP = StackedMLP.from_tensors(n_inputs, hidden_sizes, tensors, n_outputs).eval()
    return network
