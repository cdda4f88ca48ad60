"""Transport between many atoms, by a simplex on a few arcs and a proof that no others matter."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fairmatch.exceptions import SolverError
from fairmatch.matching.pricing import column_minima, first_arcs, price, row_minima
from fairmatch.matching.problem import Floats, Index, Problem, Solution
from fairmatch.matching.simplex import sparse_simplex

Progress = Callable[[int, float, float], object]

_LEVEL_RATIO = 4  # a problem takes its first potentials from a sample this many times smaller
_LEVEL_MIN = 256  # a problem with no more atoms than this needs no sample
_LEVEL_TOLERANCE = 1e-3
_MAX_ROUNDS = 100
_MAX_STEPS = 500
_ROUNDOFF = float(np.finfo(np.float64).eps)
MAX_PIVOTS = 2**62
OPTIMAL = 1  # result code of POT's simplex
_FINE = 2.0**-20  # a value is cut off once a typical value is this share of it


def no_plan(kind: str, code: int) -> str:
    """Return the error message for a simplex that ends without a plan."""
    return (
        f"The {kind} simplex stopped with code {code}, where {OPTIMAL} is success, so there is no "
        f"plan within {MAX_PIVOTS} pivots. Check the data for extreme values or masses."
    )


def column_generation(
    problem: Problem,
    tolerance: float,
    solve: Callable[[Problem, float], Solution],
    progress: Progress | None,
    potential: Floats | None = None,
) -> Solution:
    """Return a solution on few candidate arcs, to which violated arcs are added until none matters.

    Parameters
    ----------
    problem : Problem
        The problem to solve.
    tolerance : float
        Relative gap at which to stop.
    solve : callable
        Solves a sample of the problem to a tolerance, for the first potentials.
    progress : callable, optional
        Called as ``progress(round, cost, bound)`` after each round.
    potential : array, optional
        Near-optimal potentials of the source atoms, used instead of those of a sample.

    Returns
    -------
    Solution
        The best plan, with its true bound. Its gap exceeds the tolerance if no more was proven.
    """
    n1 = problem.n1
    if potential is None:
        u, v = _first_potentials(problem, solve)
    else:
        v = column_minima(problem, potential)
        u = row_minima(problem, v)
    arcs = first_arcs(problem, u, v)  # the arc from i to j is the number i * n1 + j
    costs = problem.arc_costs(*np.divmod(arcs, n1))
    basis = np.empty(0, dtype=np.intp)
    cost, bound, stalls = np.inf, 0.0, 0  # no cost is negative, so 0 is a bound
    best: Solution | None = None
    fine = False  # whether the error of the simplex's potentials is too large for the gap
    for number in range(_MAX_ROUNDS):
        i, j = np.divmod(arcs, n1)
        reduced = costs - u[i] - v[j]
        if fine:
            # Costs far above the plan's own are as good as infinite, and blur the potentials.
            reduced = np.minimum(reduced, cost / _FINE)
        before = u, v
        basis, flow, du, dv = _simplex(problem, arcs, reduced, basis, tolerance * cost)
        u, v = u + du, v + dv
        if fine:
            u, v = _settled(problem, arcs, costs, basis) or (u, v)
        cost = problem.plan_cost(*np.divmod(basis, n1), flow)
        violated, value, sure = price(problem, u, v)
        if not sure and not _missing(arcs, violated).any():
            problem.precision = np.float64
            violated, value, _ = price(problem, u, v, np.inf)
        improved, bound = value > bound, min(max(bound, value), cost)
        if progress is not None:
            progress(number, cost, bound)
        found = Solution(*np.divmod(basis, n1), flow, u, cost, bound, "column generation")
        best = found if best is None or cost <= best.cost else replace(best, bound=bound)
        if problem.closed(best, tolerance):
            break
        new = violated[_missing(arcs, violated)]
        stalls += not (improved or new.size)
        if stalls > 3:
            break
        blur = _ROUNDOFF * (problem.n0 + n1) * float(np.abs(reduced).max())
        if not fine and blur > 1e-3 * (cost - bound) and cost - bound > 1e-6 * cost:
            fine, (u, v), basis = True, before, basis[:0]
            continue
        if cost - bound <= 1e-6 * cost:
            # Near the optimum, unused arcs of large reduced cost only blur the potentials.
            reduced = costs - u[i] - v[j]
            useful = reduced <= max(cost, float(np.median(reduced)))
            useful[np.searchsorted(arcs, basis)] = True
            arcs, costs = arcs[useful], costs[useful]
        place = np.searchsorted(arcs, new)
        arcs = np.insert(arcs, place, new)
        costs = np.insert(costs, place, problem.arc_costs(*np.divmod(new, n1)))
    assert best is not None
    return best


def _settled(
    problem: Problem, arcs: Index, costs: Floats, basis: Index
) -> tuple[Floats, Floats] | None:
    """Return the largest potentials with ``u <= 0`` that fit the flow, or None if none is found.

    A simplex makes ``u + v = c`` on a whole tree. Only arcs with flow need that. Potentials near
    zero keep enough digits for plan costs that are small beside other costs.
    """
    i, j = np.divmod(arcs, problem.n1)
    start = np.flatnonzero(np.diff(i, prepend=-1))
    carrying = np.searchsorted(arcs, basis)
    source, target, cost = i[carrying], j[carrying], costs[carrying]
    u = np.zeros(problem.n0)
    for _ in range(_MAX_STEPS):
        v = np.full(problem.n1, -np.inf)
        np.maximum.at(v, target, cost - u[source])
        lower = np.minimum(u, np.minimum.reduceat(costs - v[j], start))
        if np.array_equal(lower, u):
            return u, v
        u = lower
    return None


def _missing(arcs: Index, wanted: Index) -> NDArray[np.bool_]:
    """Return a mask of the wanted arcs that are not among the sorted ``arcs``."""
    return np.not_equal(arcs[np.minimum(np.searchsorted(arcs, wanted), len(arcs) - 1)], wanted)


def _first_potentials(
    problem: Problem, solve: Callable[[Problem, float], Solution]
) -> tuple[Floats, Floats]:
    """Return feasible potentials of all atoms, extended from those of a sample.

    First ``v_j = min_i c_ij - u_i`` over the sample, and then ``u_i = min_j c_ij - v_j``.
    """
    v = np.zeros(problem.n1)
    largest = max(problem.n0, problem.n1)
    if largest > _LEVEL_MIN:
        sample = problem.sample(largest // _LEVEL_RATIO)
        v = column_minima(problem.across(sample), solve(sample, _LEVEL_TOLERANCE).potential)
        # An outlier may have any potential up to its distance. A small one keeps more digits.
        v = np.minimum(v, np.median(np.abs(v)) / _FINE)
    return row_minima(problem, v), v


def _simplex(
    problem: Problem, arcs: Index, reduced: Floats, basis: Index, slack: float
) -> tuple[Index, Floats, Floats, Floats]:
    """Return the arcs with flow, among sorted ``arcs``, the flow, and the changes of u and v.

    POT starts from the spanning tree of least absolute reduced costs. That is the tree of the
    previous round if the arcs with flow have reduced cost zero and all others are raised a little.
    """
    emd_c_sparse = sparse_simplex()
    if basis.size:
        kept = np.searchsorted(arcs, basis)
        exact = reduced[kept]  # zero up to rounding, which the tree removes
        reduced = reduced + max(1e-2 * slack, 4.0 * np.abs(exact).max())
        reduced[kept] = exact
    # POT's artificial cost is (1 + largest cost) * atoms. If no cost is negative, no path reaches
    # it; hence the shift. The unit is so small that the 1 does not blur the potentials.
    shift = float(reduced.min())
    unit = math.ldexp(1.0, math.frexp(reduced.max() - shift)[1] - 20)
    i, j = np.divmod(arcs.astype(np.uint64), np.uint64(problem.n1))
    call = problem.a, problem.b, i, j, (reduced - shift) / unit, MAX_PIVOTS
    start = np.full(problem.n0, -shift / unit), np.zeros(problem.n1)
    out = emd_c_sparse(*call, *start) if basis.size else emd_c_sparse(*call)
    if basis.size and out[6] != OPTIMAL:
        out = emd_c_sparse(*call)
    source, target, flow, _, du, dv, code = out
    if code != OPTIMAL:
        raise SolverError(no_plan("sparse", code))
    du, dv = problem.centred(du, dv)
    basis = (source * np.uint64(problem.n1) + target).astype(np.intp)
    return basis, flow, du * unit + shift, dv * unit
