"""Matching of people with tied scores, at the least or at the greatest transport cost."""

import numpy as np

from fairmatch.matching.coupling import IndexArray
from fairmatch.matching.solver import solve_transport
from fairmatch.matching.staircase import Side, Staircase
from fairmatch.tables.arrays import FloatArray


def settled(
    staircase: Staircase, features: FloatArray, tolerance: float, *, farthest: bool = False
) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Return pairs and mass. Open runs are matched at the least or greatest transport cost."""
    source, target = staircase.pairs
    determined = np.ones(len(staircase.mass), dtype=bool)
    parts = []
    for run in staircase.open_runs:
        determined[run] = False
        parts.append(_settle(staircase, run, features, tolerance, farthest))
    parts.append((source[determined], target[determined], staircase.mass[determined]))
    source, target, mass = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return source, target, mass


def _settle(
    staircase: Staircase, run: slice, features: FloatArray, tolerance: float, farthest: bool
) -> tuple[IndexArray, IndexArray, FloatArray]:
    mass = staircase.mass[run]
    places = _places(*(side.levels(run) for side in staircase.sides))
    (rows0, mass0, place0), (rows1, mass1, place1) = (
        _members(side, run, mass, place)
        for side, place in zip(staircase.sides, places, strict=True)
    )
    points0, points1, diameter = _centred(features[rows0], features[rows1])
    if farthest:
        # |x + x'|² and -|x - x'|² differ by a constant that the marginals fix.
        points1 = -points1
    if place0[0] != place0[-1] and place1[0] != place1[-1]:
        # With several levels on both sides, the quantiles fix the mass between levels. An extra
        # column that outweighs every distance keeps that mass: crossing two levels costs at least
        # 2 * weight per mass, and saves at most two distances.
        weight = 2.0 * diameter if diameter > 0.0 else 1.0
        points0 = np.column_stack([points0, np.sqrt(weight) * place0])
        points1 = np.column_stack([points1, np.sqrt(weight) * place1])
    total = float(mass.sum())
    plan = solve_transport(points0, points1, mass0 / total, mass1 / total, tolerance=tolerance)
    return rows0[plan.source], rows1[plan.target], plan.mass * total


def _places(level0: IndexArray, level1: IndexArray) -> tuple[FloatArray, FloatArray]:
    """Return places on a line for the levels of a run, near the places of their partners.

    A step is a maximal stretch of pieces between the same two levels. The mean step of a level
    grows by at least one from level to level. Neighbours that are matched with only one level,
    the same one, share a place. So no place is matched with more than three others, and none is
    far from the places of its partners.
    """
    level0, level1 = _merged(level0, level1), _merged(level1, level0)
    step = np.cumsum(np.append(0, (np.diff(level0) > 0) | (np.diff(level1) > 0)))
    place0, place1 = (
        (np.bincount(level, step) / np.bincount(level))[level] for level in (level0, level1)
    )
    return place0, place1


def _merged(level: IndexArray, other: IndexArray) -> IndexArray:
    """Return renumbered levels of a run. Neighbours with the same single partner level are one."""
    starts = np.append(0, np.flatnonzero(np.diff(level)) + 1)
    ends = np.append(starts[1:], len(level))
    bound = other[starts] == other[ends - 1]
    same = bound[1:] & bound[:-1] & (other[starts[1:]] == other[starts[:-1]])
    return np.repeat(np.append(0, np.cumsum(~same)), ends - starts)


def _members(
    side: Side, run: slice, mass: FloatArray, place: FloatArray
) -> tuple[IndexArray, FloatArray, FloatArray]:
    """Return the people on one side of a run: rows, their mass in the run, and their places."""
    piece = side.piece[run]
    new = np.append(True, np.diff(piece) > 0)
    member_mass = np.bincount(np.cumsum(new) - 1, mass).astype(np.float64)
    return side.rows[piece[new]], member_mass, place[new]


def _centred(points0: FloatArray, points1: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return the points, centred on the middle of their box, and its squared diagonal."""
    low = np.minimum(points0.min(axis=0), points1.min(axis=0))
    high = np.maximum(points0.max(axis=0), points1.max(axis=0))
    centre = (low + high) / 2.0
    return points0 - centre, points1 - centre, float(((high - low) ** 2).sum())
