"""Write arrays as safetensors and read them back; nothing is unpickled."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from fairmatch.exceptions import ModelFileError

FILE = "weights.safetensors"
Arrays = dict[str, NDArray[Any]]


def write_arrays(arrays: Arrays) -> bytes:
    """Return arrays as safetensors."""
    return save({name: np.ascontiguousarray(values) for name, values in arrays.items()})


def read_arrays(content: bytes) -> Arrays:
    """Return the arrays of a file; raise unless all of them hold finite floats."""
    try:
        arrays: Arrays = load(content)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{FILE} does not hold weights: {error}") from error
    if not all(v.dtype.kind == "f" and np.isfinite(v).all() for v in arrays.values()):
        raise ModelFileError(f"{FILE} is damaged: the weights must all be finite numbers.")
    return arrays


def under(name: str, arrays: Arrays) -> Arrays:
    """Return the arrays whose names start with ``name.``, and take that prefix off."""
    start = f"{name}."
    return {key.removeprefix(start): v for key, v in arrays.items() if key.startswith(start)}
