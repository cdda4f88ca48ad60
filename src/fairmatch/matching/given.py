"""Checks of the solver's arguments: the points and the masses of one group."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fairmatch.exceptions import InputError
from fairmatch.matching.problem import Floats
from fairmatch.tables.points import Points


def read_transport_points(points: ArrayLike | Points, name: str) -> Points:
    """Return the points of one group. Raise an error unless they are finite and not empty."""
    if not isinstance(points, Points):
        array = np.asarray(points, dtype=np.float64)
        if array.ndim != 2:
            raise ValueError(_not_points(name, array.shape))
        points = Points(array, np.empty((len(array), 0), dtype=np.int32))
    if not len(points) or not points.width:
        raise ValueError(_not_points(name, (len(points), points.width)))
    if not np.isfinite(points.numbers).all():
        raise ValueError(
            f"{name} points contain NaN or infinity, and distances need finite numbers. Impute "
            "these values, or leave the rows out."
        )
    return points


def _not_points(name: str, shape: tuple[int, ...]) -> str:
    return (
        f"{name} points must be a non-empty 2-d array, got shape {shape}. Pass one row per person "
        "and one column per feature."
    )


def check_columns(points: Points, caller: str) -> None:
    """Raise if the points have no columns, because then there are no distances."""
    if points.width == 0:
        raise InputError(
            f"{caller} got X without columns, and it needs at least one to compute distances. Pass "
            "the columns that describe the people, or match by scores alone with fair_matching."
        )


def read_mass(mass: ArrayLike | None, count: int, name: str) -> Floats:
    """Return the masses of one group, which are uniform by default. Raise if they are wrong."""
    if mass is None:
        return np.full(count, 1.0 / count)
    array = np.asarray(mass, dtype=np.float64)
    if array.shape != (count,):
        raise ValueError(
            f"{name} mass must have shape ({count},), got {array.shape}. Pass one mass per row."
        )
    if not (array >= 0).all() or abs(array.sum() - 1.0) > 1e-6:
        raise ValueError(
            f"{name} mass must be non-negative and sum to 1. Its smallest entry is {array.min()}, "
            f"and it sums to {array.sum()}. Pass masses that are not negative, divided by their "
            "sum."
        )
    return array
