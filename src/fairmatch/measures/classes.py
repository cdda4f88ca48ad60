"""Distances between vectors of class probabilities.

The distance of two vectors is half the L1 distance. For two classes it is the absolute difference
of the scores.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from scipy.spatial.distance import cdist

from fairmatch.matching.network import cheapest_plan
from fairmatch.people.checks import FloatArray

# A transport problem in the simplex has at most this many points on each side.
_MOST_POINTS = 1000

Points: TypeAlias = tuple[FloatArray, FloatArray | None]


def simplex_distance(first: Points, second: Points) -> float:
    r"""Return the Wasserstein distance between two groups' vectors, which may have weights.

    Notes
    -----
    Up to 1,000 different vectors of a group the transport problem is solved exactly. Of more, those
    that are close are joined into about 1,000 cells, each at the mean of its vectors. The value is
    then off by at most the mean distance between a vector and its cell.
    """
    (points, mass), (others, other_mass) = (
        joined_points(*own, _MOST_POINTS) for own in (first, second)
    )
    return cheapest_plan(mass, other_mass, half_l1(points, others))[1]


def half_l1(points: FloatArray, others: FloatArray) -> FloatArray:
    """Return the distance of every vector to every other one."""
    return np.asarray(cdist(points, others, "cityblock") / 2.0)


def joined_points(
    vectors: FloatArray, weights: FloatArray | None, most: int
) -> tuple[FloatArray, FloatArray]:
    """Return the different vectors of a group with their shares, joined if there are too many."""
    values, rows = np.unique(vectors, axis=0, return_inverse=True)
    counts = np.bincount(rows.ravel(), weights, minlength=len(values))
    mass: FloatArray = counts / counts.sum()
    values, mass = values[mass > 0.0], mass[mass > 0.0]
    if len(values) <= most:
        return values, mass
    cell = _split(values, most)
    joined: FloatArray = np.bincount(cell, mass).astype(np.float64)
    means = [np.bincount(cell, mass * column) / joined for column in values.T]
    return np.column_stack(means), joined


def _split(values: FloatArray, most: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return the cell of every vector: cells are halved at the median of their widest column."""
    cells = [np.arange(len(values))]
    while 2 * len(cells) <= most and max(map(len, cells)) > 1:
        halves = []
        for rows in cells:
            if len(rows) == 1:
                halves.append(rows)
                continue
            widest = int(np.argmax(np.ptp(values[rows], axis=0)))
            order = rows[np.argsort(values[rows, widest], kind="stable")]
            halves += [order[: len(order) // 2], order[len(order) // 2 :]]
        cells = halves
    found = np.empty(len(values), dtype=np.intp)
    for cell, rows in enumerate(cells):
        found[rows] = cell
    return found


def distance_on(first: FloatArray, second: FloatArray, cost: FloatArray) -> float:
    """Return the distance between two distributions on the same points."""
    more, less = np.flatnonzero(first > second), np.flatnonzero(first < second)
    if not len(more) or not len(less):
        return 0.0
    moved = (first - second)[more], (second - first)[less]
    total = moved[0].sum()
    masses = moved[0] / total, moved[1] / moved[1].sum()
    return float(total) * cheapest_plan(*masses, cost[np.ix_(more, less)])[1]
