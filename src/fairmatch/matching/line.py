"""Transport between points on a line, which sorting both groups solves exactly."""

from __future__ import annotations

import math

import numpy as np

from fairmatch.matching.problem import Floats, Problem, Solution

_ROUNDOFF = float(np.finfo(np.float64).eps) / 2


def line_of(problem: Problem) -> tuple[Floats, Floats] | None:
    """Return the places of the atoms of both groups on a line, or None if they lie on no line.

    They lie on a line if they differ in at most one number and in no category, and if scores add
    nothing to the cost.
    """
    if problem.term is not None and problem.term.price > 0.0:
        return None
    for one, other in zip(problem.source.codes.T, problem.target.codes.T, strict=True):
        if one[0] < 0 or (one != one[0]).any() or (other != one[0]).any():
            return None
    columns = zip(problem.x.T, problem.z.T, strict=True)
    varying = [
        (one, other) for one, other in columns if (one != one[0]).any() or (other != one[0]).any()
    ]
    if len(varying) > 1:
        return None
    return varying[0] if varying else (np.zeros(problem.n0), np.zeros(problem.n1))


def solve_line(problem: Problem, x: Floats, z: Floats) -> Solution:
    r"""Match both groups in the order of their places on a line.

    Parameters
    ----------
    problem : Problem
        The problem to solve.
    x, z : arrays of float
        Places of the source atoms and of the target atoms.

    Returns
    -------
    Solution
        The optimal plan. Its bound is the cost minus the rounding error of the sum.

    Notes
    -----
    For a convex cost the monotone plan is optimal, so the proof needs no dual. The potentials,
    from which other solvers start, follow from the plan's arcs. Two neighbouring sources meet at a
    target :math:`z`, and their potentials differ by

    .. math:: u_{i + 1} - u_i = (x_{i + 1} - x_i) (x_{i + 1} + x_i - 2 z) .
    """
    orders = np.argsort(x, kind="stable"), np.argsort(z, kind="stable")
    ends = [np.cumsum(w[by]) for w, by in zip((problem.a, problem.b), orders, strict=True)]
    end = np.union1d(*ends)
    end = end[end > 0.0]
    i, j = (by[np.searchsorted(e, end)] for by, e in zip(orders, ends, strict=True))
    flow = np.diff(end, prepend=0.0)
    x, z = x[orders[0]], z[orders[1]]
    at = np.searchsorted(ends[1], ends[0][:-1], side="right")
    meeting = z[np.minimum(at, len(z) - 1)]
    steps = np.diff(x) * ((x[1:] - meeting) + (x[:-1] - meeting))
    potential = np.empty(problem.n0)
    potential[orders[0]] = np.append(0.0, np.cumsum(steps))
    cost = math.fsum((problem.distances(i, j) * flow).tolist()) / float(problem.total)
    bound = cost * (1.0 - 8.0 * _ROUNDOFF)
    return Solution(i, j, flow, potential, cost, bound, "sorting")
