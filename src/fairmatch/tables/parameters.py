"""Checks of single parameters. Every error names the parameter and what is allowed."""

from numbers import Integral, Real
from typing import Any

import numpy as np

from fairmatch.exceptions import InputError


def is_count(value: Any, least: int = 1) -> bool:
    """Return whether a value is a whole number of at least ``least``, and not a boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def check_count(name: str, value: Any, least: int = 1, *, optional: bool = False) -> None:
    """Raise unless a parameter is a whole number of at least ``least``, or None if optional."""
    if not (is_count(value, least) or (optional and value is None)):
        allowed = f"a whole number of at least {least}{' or None' if optional else ''}"
        raise InputError(f"{name} must be {allowed}, got {value!r}.")


def check_number(name: str, value: Any, within: str) -> None:
    """Raise unless a parameter is a number within an interval such as ``"[0, 1)"``."""
    low, high = map(float, within[1:-1].split(","))
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        above = number >= low if within[0] == "[" else number > low
        below = number <= high if within[-1] == "]" else number < high
        if above and below:
            return
    raise InputError(f"{name} must be a number in {within}, got {value!r}.")


def check_threshold(value: Any) -> None:
    """Raise unless a threshold is a finite number."""
    check_number("threshold", value, "(-inf, inf)")


def check_weights(name: str, weights: Any, within: str) -> None:
    """Raise unless there is at least one weight, and each is a number within an interval."""
    values = np.asarray(weights, dtype=object)
    if values.ndim == 0 or len(values) == 0:
        raise InputError(f"{name}s must be a list of numbers in {within}, got {weights!r}.")
    for weight in weights:
        check_number(name, weight, within)


def check_flag(name: str, value: Any) -> None:
    """Raise unless a parameter is True or False, because words and numbers would count as True."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, got {value!r}. Pass one of the two.")


def check_verbose(value: Any) -> None:
    """Raise unless ``verbose`` is a whole number. True and False count as 1 and 0 here."""
    if not isinstance(value, Integral):
        raise InputError(f"verbose must be a whole number, got {value!r}. Pass 1 to show progress.")


def read_generator(random_state: Any) -> np.random.Generator:
    """Return a random generator made from a seed. A generator is returned unchanged."""
    if not isinstance(random_state, np.random.Generator):
        check_count("random_state", random_state, 0, optional=True)
    return np.random.default_rng(random_state)
