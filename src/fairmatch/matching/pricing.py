"""The pairs of a transport problem that can lower its cost, given potentials of its dual."""

from __future__ import annotations

import numpy as np

from fairmatch.matching.problem import Block, Floats, Index, Problem

CANDIDATES = 20  # first arcs for each atom of either group, by least reduced cost
ADDED = 4  # violated arcs added for each source atom if there are too many to recompute
RECHECK = 16  # up to this many arcs per atom are recomputed in float64
_ROUNDOFF = float(np.finfo(np.float64).eps) / 2
_KEPT_MINIMA = 4 * CANDIDATES  # rows of column minima held before the larger ones are dropped


def price(
    problem: Problem, u: Floats, v: Floats, recheck: float = RECHECK
) -> tuple[Index, float, bool]:
    """Return the violated arcs, and a bound from potentials that are made feasible.

    Adding to each ``u_i`` the least reduced cost of its row makes the dual feasible. So does adding
    to each ``v_j`` that of its column. The better of the two gives the bound. Arcs whose reduced
    cost may be negative are recomputed from differences. If a block has more than ``recheck`` of
    them per atom, its worst ones are used as they are.

    Returns
    -------
    arcs, bound, sure
        The violated arcs, the bound, and whether all arcs were recomputed.
    """
    n0, n1 = problem.n0, problem.n1
    row_low, column_low, found, sure = np.empty(n0), np.full(n1, np.inf), [], True
    for part, block in problem.reduced_costs(u, v):
        row, column = block.min(axis=1).astype(np.float64), block.min(axis=0).astype(np.float64)
        arcs = np.flatnonzero(block < 0)
        if arcs.size > recheck * (n0 + n1) * len(block) / n0:
            sure = False
            worst = _limit(_group_minima(block, 1, n1), 1, ADDED)[:, None]
            arcs = np.flatnonzero(block <= np.minimum(np.maximum(worst, block.min(axis=0)), 0))
        else:
            i, j = np.divmod(arcs, n1)
            cost, ui, vj = problem.arc_costs(i + part.start, j), u[i + part.start], v[j]
            row, column = np.maximum(row, 0.0), np.maximum(column, 0.0)
            low = _difference(cost, ui, vj) - (problem.width + 8) * _ROUNDOFF * cost
            np.minimum.at(row, i, low)
            np.minimum.at(column, j, low)
            arcs = arcs[cost - ui - vj < 0]
        row_low[part] = row
        np.minimum(column_low, column, out=column_low)
        found.append(arcs + part.start * n1)
    lowered = max(problem.a @ row_low, problem.b @ column_low) / float(problem.total)
    return np.concatenate(found), problem.value(u, v) + lowered, sure


def _difference(cost: Floats, u: Floats, v: Floats) -> Floats:
    """Compute ``cost - (u + v)`` without the rounding error of the sum, where u and v cancel."""
    both = u + v
    part = both - u
    return (cost - both) - ((u - (both - part)) + (v - part))


def column_minima(problem: Problem, u: Floats) -> Floats:
    """Compute ``min_i c_ij - u_i``, the largest feasible potentials of the targets given ``u``."""
    least = np.full(problem.n1, np.inf)
    for _, block in problem.reduced_costs(u, np.zeros(problem.n1)):
        np.minimum(least, block.min(axis=0), out=least)
    return least


def row_minima(problem: Problem, v: Floats) -> Floats:
    """Compute ``min_j c_ij - v_j``, the largest feasible potentials of the sources given ``v``."""
    blocks = problem.reduced_costs(np.zeros(problem.n0), v)
    return np.concatenate([block.min(axis=1) for _, block in blocks]).astype(np.float64)


def first_arcs(problem: Problem, u: Floats, v: Floats) -> Index:
    """Return the arcs of least reduced cost of each atom, and the arcs of a feasible plan.

    The arc from i to j is the number ``i * n1 + j``. Arcs are sorted.
    """
    row_limit: list[Block] = []
    minima: list[Block] = []
    for _, block in problem.reduced_costs(u, v):
        row_limit.append(_limit(_group_minima(block, 1, problem.n1), 1))
        minima.append(_group_minima(block, 0, problem.n0))
        if sum(map(len, minima)) > _KEPT_MINIMA:
            # Only the least values of each column are ever needed, so memory stays bounded.
            minima = [np.partition(np.concatenate(minima), CANDIDATES, axis=0)[:CANDIDATES]]
    row, column = np.concatenate(row_limit)[:, None], _limit(np.concatenate(minima), 0)
    arcs, most = [], 8 * CANDIDATES * (problem.n0 + problem.n1) / problem.n0
    for part, block in problem.reduced_costs(u, v):
        limit = np.maximum(row[part], column)
        np.minimum(limit, np.finfo(limit.dtype).max, out=limit)  # a forbidden pair is no arc
        chosen = block <= limit
        if np.count_nonzero(chosen) > most * len(block):
            chosen = block < limit  # there are many ties, as among points that are equally far
        arcs.append(np.flatnonzero(chosen) + part.start * problem.n1)
    i, j = problem.staircase()  # keeps the restricted problem feasible
    arcs.append(i * problem.n1 + j)
    ordered = np.sort(np.concatenate(arcs))
    return ordered[np.diff(ordered, prepend=-1) > 0]


def _group_minima(block: Block, axis: int, count: int) -> Block:
    size = max(1, min(32, count // (8 * CANDIDATES)))
    return np.minimum.reduceat(block, np.arange(0, block.shape[axis], size), axis=axis)


def _limit(minima: Block, axis: int, rank: int = CANDIDATES) -> Block:
    """Return a limit below which the ``rank`` smallest values lie, from the minima of groups.

    Minima are cheaper to sort than all values. The limit is never too low. It is seldom much too
    high, because neighbours are in random order.
    """
    rank = min(rank, minima.shape[axis]) - 1
    return np.asarray(np.partition(minima, rank, axis=axis).take(rank, axis=axis))
