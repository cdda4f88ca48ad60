"""Division of a plan's pairs into cells of near pairs, by halving along random directions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairmatch.matching.problem import Floats, Index
from fairmatch.tables.points import Points

_SAMPLE = 256  # pairs whose spread a direction follows


def random_staircase(
    units: tuple[Floats, Floats], generator: np.random.Generator
) -> tuple[Index, Index, Floats]:
    """Return a random plan: both groups are shuffled and matched in that order.

    Parameters
    ----------
    units : pair of arrays
        Whole masses of both groups, with the same sum.
    generator : numpy.random.Generator
        Shuffles the groups.

    Returns
    -------
    source, target, flow
        Rows of both groups, and the mass of each pair. Consecutive pairs are a random sample of
        both groups.
    """
    orders = [generator.permutation(np.flatnonzero(side > 0)) for side in units]
    ends = [np.cumsum(side[order]) for side, order in zip(units, orders, strict=True)]
    end = np.union1d(*ends)
    source, target = (order[np.searchsorted(e, end)] for order, e in zip(orders, ends, strict=True))
    return source, target, np.diff(end, prepend=0.0)


def near_cells(
    points: tuple[Points, Points],
    source: Index,
    target: Index,
    size: int,
    generator: np.random.Generator,
) -> list[Index]:
    """Return cells of pairs that lie near each other.

    Parameters
    ----------
    points : pair of Points
        Both groups.
    source, target : arrays of int, shape (n_pairs,)
        The pairs, by rows of both groups.
    size : int
        Largest number of pairs in a cell.
    generator : numpy.random.Generator
        Draws the directions.

    Returns
    -------
    list of arrays of int
        Positions of the pairs in each cell. A cell that is too large is cut in two, near its
        median along a random direction in which it is spread.
    """
    cells, todo = [], [np.arange(len(source))]
    while todo:
        cell = todo.pop()
        count = -(-len(cell) // size)
        if count == 1:
            cells.append(np.sort(cell))
            continue
        value = _along(points, source[cell], target[cell], generator)
        cut = len(cell) * (count // 2) // count
        order = cell[np.argpartition(value, cut)]
        todo += [order[:cut], order[cut:]]
    return cells


def _along(
    points: tuple[Points, Points], source: Index, target: Index, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return where pairs lie along a random direction.

    The direction is a random combination of sampled pairs, minus their mean. For categories it
    needs one number per level, and no one-hot columns.
    """
    drawn = generator.integers(len(source), size=_SAMPLE)
    factors = generator.normal(size=_SAMPLE)
    factors -= factors.mean()
    sides = (points[0], source), (points[1], target)
    weights = sum(p.numbers[rows[drawn]].T @ factors for p, rows in sides)
    value: NDArray[np.float64] = np.zeros(len(source))
    for p, rows in sides:
        value += (p.numbers @ weights)[rows] if len(rows) > len(p) else p.numbers[rows] @ weights
    for column in range(points[0].codes.shape[1]):
        codes = [p.codes[rows, column] for p, rows in sides]
        known = max(int(code.max(initial=0)) for code in codes) + 1
        levels = np.zeros(known + 1)
        for code in codes:
            seen = code[drawn]
            levels += np.bincount(np.where(seen < 0, known, seen), factors, known + 1)
        levels[known] = 0.0  # an unknown level adds nothing; its code, -1, is the last place
        for code in codes:
            value += levels[code]
    return value


def next_cells(n_pairs: int, size: int) -> list[Index]:
    """Return cells of consecutive pairs, with at most ``size`` pairs each."""
    count = -(-n_pairs // size)
    return np.array_split(np.arange(n_pairs), count)
