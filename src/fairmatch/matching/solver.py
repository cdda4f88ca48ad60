"""Exact optimal transport between two groups of points, with a proof of optimality."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fairmatch.exceptions import InputError, SolverError
from fairmatch.matching.coupling import Certificate
from fairmatch.matching.network import (
    SCORE_UNIT,
    Floats,
    Group,
    Index,
    Problem,
    Progress,
    ScoreTerm,
    Solution,
    cheapest_plan,
    column_generation,
    level_units,
    monotone_plan,
    price_arcs,
    unit_count,
    whole_units,
)
from fairmatch.people.checks import check_number
from fairmatch.people.encoding import Points


def check_columns(points: Points, caller: str) -> None:
    """Raise if the points have no columns, because then there are no distances."""
    if points.width == 0:
        raise InputError(
            f"{caller} got X without columns, and it needs at least one to compute distances. Pass "
            "the columns that describe the people, or match by scores alone with fair_matching."
        )
    largest = float(np.abs(points.numbers).max(initial=0.0))
    if not largest < math.sqrt(sys.float_info.max / (8.0 * points.width)):
        raise InputError(
            f"{caller} got values as large as {largest:g}, whose squared distances overflow. "
            "Divide the columns of X by a constant."
        )


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
    """Match both groups in the order of their places on a line, x and z.

    For a convex cost the monotone plan is optimal, so the proof needs no dual: the bound is the
    cost minus the rounding error of the sum.
    """
    i, j, flow, potential = monotone_plan(x, z, problem.a, problem.b)
    cost = math.fsum((problem.distances(i, j) * flow).tolist()) / float(problem.total)
    bound = cost * (1.0 - 8.0 * _ROUNDOFF)
    return Solution(i, j, flow, potential, cost, bound, "sorting")


#: The largest relative duality gap at which a plan counts as exact.
EXACT = 1e-9

_EPSILON = float(np.finfo(np.float64).eps)

OnUnproven = Literal["raise", "return"]

#: Peak memory of the dense solver per entry of the cost matrix (costs, plan, simplex arcs). The
#: measured 38 to 41 bytes are rounded up. No cost matrix is built if it would need more than
#: ``memory_limit`` bytes.
DENSE_BYTES_PER_ARC = 48
#: Column generation is faster than the dense solver above this many entries (measured on Adult).
DENSE_ARCS = 200_000


@dataclass(frozen=True)
class TransportPlan:
    """A transport plan in sparse form, with its cost and a proven lower bound."""

    #: Row positions of the paired source and target points.
    source: Index
    target: Index
    mass: Floats  #: Mass moved by each pair; positive, sums to one.
    #: Cost of the plan, ``sum(mass * ||x[source] - z[target]||**2)``. A finite price on the scores
    #: adds price times excess.
    cost: float
    bound: float  #: Value of a feasible dual solution. No plan costs less.
    solver: str  #: ``"dense"``, ``"column generation"``, or ``"sorting"`` for points on a line.
    excess: float = 0.0  #: Mean score gap beyond the least possible one. It is 0 without scores.
    #: Dual solution at the source atoms. A search at a near price can start from it.
    potential: Floats | None = field(default=None, repr=False)

    @property
    def certificate(self) -> Certificate:
        """The cost of the plan, and its proven bound."""
        return Certificate(float(self.cost), float(self.bound), self.solver)


def solve_transport(
    source_points: ArrayLike | Points,
    target_points: ArrayLike | Points,
    source_mass: ArrayLike | None = None,
    target_mass: ArrayLike | None = None,
    *,
    tolerance: float = EXACT,
    memory_limit: int = 2 * 2**30,
    random_state: int = 0,
    on_unproven: OnUnproven = "raise",
    progress: Progress | None = None,
) -> TransportPlan:
    r"""Return a plan of least squared Euclidean cost, to within a proven relative gap.

    Parameters
    ----------
    source_points, target_points : array_like of shape (n0, d) and (n1, d), or Points
        Finite coordinates of the points of each group, or numbers and category codes.
    source_mass, target_mass : array_like of shape (n0,) and (n1,), optional
        Non-negative masses that sum to one. By default they are uniform.
    tolerance : float
        Largest relative gap ``(cost - bound) / cost`` of the returned plan.
    memory_limit : int
        The most bytes that the dense solver may take. Column generation solves problems that need
        more, and all those with more than 200,000 pairs of different points. It needs a few
        hundred bytes per candidate arc and no cost matrix.
    random_state : int
        Seed of the samples from which column generation takes its first potentials. If several
        plans are optimal, the seed decides which of them is found.
    on_unproven : {"raise", "return"}
        What to do with a plan whose gap is not proven to be within the tolerance: raise an error,
        or return the plan with its true bound.
    progress : callable, optional
        Called as ``progress(round, cost, bound)`` after each round of column generation.

    Returns
    -------
    TransportPlan
        At most ``2 * (n0 + n1)`` pairs. Their masses add up to the masses of the points.

    Raises
    ------
    SolverError
        If the tolerance is not proven and ``on_unproven="raise"``, or if no plan is found.

    Notes
    -----
    The problem and its dual are

    .. math::
        \min_{g \ge 0} \sum_{ij} g_{ij} \|x_i - z_j\|^2
        \quad\text{s.t.}\quad \sum_j g_{ij} = a_i,\ \sum_i g_{ij} = b_j,
        \qquad
        \max_{u, v} \sum_i a_i u_i + \sum_j b_j v_j
        \quad\text{s.t.}\quad u_i + v_j \le \|x_i - z_j\|^2 .

    Any feasible :math:`(u, v)` bounds the cost of every plan from below.

    Identical points are first merged into atoms. Masses are counted in whole units, so the simplex
    does not round flows. Units change a mass by at most :math:`2^{-52}`. They change no uniform
    mass, unless the least common multiple of the group sizes exceeds :math:`2^{52}`.

    POT's potentials have an error that grows with the largest cost and the number of atoms. The
    error is too large if groups are nearly the same or have far outliers. Then the simplex sees
    costs far above the plan's only up to a limit, and potentials near zero are fitted to the flow.
    Bounds are rounded downwards. Points that differ by no more than rounding count as the same.
    """
    transport = Transport(
        source_points,
        target_points,
        source_mass,
        target_mass,
        memory_limit=memory_limit,
        random_state=random_state,
    )
    return transport.solve(tolerance=tolerance, on_unproven=on_unproven, progress=progress)


class Transport:
    """Two groups that are ready to be matched, once or at several prices of their score gap.

    ``units`` are masses as whole numbers with the same sum, used instead of masses and scores.
    ``scores`` in [0, 1] of both groups are needed to solve at a price.
    """

    def __init__(
        self,
        source_points: ArrayLike | Points,
        target_points: ArrayLike | Points,
        source_mass: ArrayLike | None = None,
        target_mass: ArrayLike | None = None,
        *,
        units: tuple[Floats, Floats] | None = None,
        scores: tuple[Floats, Floats] | None = None,
        memory_limit: int = 2 * 2**30,
        random_state: int = 0,
    ) -> None:
        x, z = (_as_points(points) for points in (source_points, target_points))
        if x.numbers.shape[1] != z.numbers.shape[1] or x.codes.shape[1] != z.codes.shape[1]:
            raise ValueError("Both groups need the same columns. Encode them together.")
        self._points = x, z
        if units is not None:
            source_mass, target_mass = (side / side.sum() for side in units)
        self._mass = _shares(source_mass, len(x)), _shares(target_mass, len(z))
        self._total = unit_count(*self._mass) if units is None else int(units[0].sum())
        self._units: tuple[Floats, ...]
        if units is not None:
            self._scores, self._units = None, units
        elif scores is None:
            self._scores = None
            self._units = tuple(whole_units(mass, self._total) for mass in self._mass)
        else:
            one, other = (np.rint(score / SCORE_UNIT) * SCORE_UNIT for score in scores)
            self._scores = one, other
            self._units = level_units(self._mass, self._scores, self._total)
        self._memory_limit, self._random_state = memory_limit, random_state
        self._prepare(_centre(x.numbers, z.numbers, self._mass[1]))

    def _prepare(self, centre: Floats) -> None:
        """Merge rows into atoms, centred and in units of a power of two.

        Costs change only in their unit. Products are rounded less, and costs are of the size for
        which POT's absolute constants are made.
        """
        self._centre = centre
        x, z = (points.numbers - centre for points in self._points)
        largest = max(np.abs(p).max(initial=0.0) for p in (x, z))
        if self._points[0].codes.shape[1]:
            largest = max(largest, 0.5)  # an entry of a one-hot column, less its mean
        unit = math.ldexp(1.0, math.frexp(largest)[1])
        self._square = unit * unit
        rng = np.random.default_rng(self._random_state)
        scores = self._scores or (None, None)
        self._source, self._target = groups = tuple(
            Group.of(numbers / unit, points.codes, score, units, rng)
            for numbers, points, score, units in zip(
                (x, z), self._points, scores, self._units, strict=True
            )
        )
        atoms = self._source.atoms, self._target.atoms
        term = None
        if self._scores is not None:
            score0, score1 = (s[g.first] for s, g in zip(self._scores, groups, strict=True))
            term = ScoreTerm.between(score0, atoms[0].weight, score1, atoms[1].weight, 0.0)
        # Without categories the square may be 0. Then only the unit of the costs depends on it.
        square = 1.0 / self._square if atoms[0].codes.shape[1] else 1.0
        self._problem = Problem(*atoms, square, term)

    @property
    def rounding(self) -> float:
        """The largest cost that counts as zero, given the rounding of coordinates."""
        return 4.0 * _EPSILON**2 * self._problem.spread * self._square

    def row_potentials(self, plan: TransportPlan) -> Floats:
        """Return the dual solution of a plan at every source row. All rows must carry mass."""
        assert plan.potential is not None
        return plan.potential[self._source.label] * self._square

    def solve(
        self,
        *,
        price: float = 0.0,
        near: TransportPlan | None = None,
        tolerance: float = EXACT,
        on_unproven: OnUnproven = "raise",
        progress: Progress | None = None,
    ) -> TransportPlan:
        """Return an optimal plan, as `solve_transport` does.

        ``price`` is the cost of one unit of mean score gap beyond the least possible one. An
        infinite price allows only plans with the least possible gap. ``near`` is a plan at a near
        price, from which the search starts.
        """
        check_number("tolerance", tolerance, "(0, 1)")
        square = self._square
        report = progress and (lambda n, cost, bound: progress(n, cost * square, bound * square))
        start = None if near is None else near.potential
        found, problem = self._at_price(price, tolerance, report, start)
        if self._centre.any() and problem.rounding(found) > tolerance * found.cost:
            # The points are so near to each other that subtracting the centre lost digits which
            # the proof needs. Now only columns far from zero are centred, which is exact.
            numbers = (points.numbers for points in self._points)
            far = [np.abs(p).max(axis=0) > 4 * np.ptp(p, axis=0) for p in numbers]
            self._prepare(np.where(far[0] & far[1], self._centre, 0.0))
            square = self._square
            found, problem = self._at_price(price, tolerance, report)
        if on_unproven == "raise" and not problem.closed(found, tolerance):
            raise SolverError(_stopped(found, tolerance))
        # The flow of an arc is divided among the rows of its source atom, then of its target atom.
        arc, source_row, flow = self._source.split(found.source, found.flow)
        part, target_row, flow = self._target.split(found.target[arc], flow)
        source_row = source_row[part]
        order = np.lexsort((target_row, source_row))
        mass = flow[order] / self._total
        cost, bound = found.cost * square, found.bound * square
        return TransportPlan(
            source_row[order],
            target_row[order],
            mass,
            cost,
            bound,
            found.solver,
            problem.excess(found),
            found.potential,
        )

    def _at_price(
        self,
        price: float,
        tolerance: float,
        progress: Progress | None,
        potential: Floats | None = None,
    ) -> tuple[Solution, Problem]:
        problem = self._problem
        if price > 0.0:
            problem = problem.at_price(price / self._square if self._square else np.inf)
        on_line = line_of(problem) is not None
        if potential is not None and len(potential) == problem.n0 and not on_line:
            return column_generation(problem, tolerance, self._solve, progress, potential), problem
        return self._solve(problem, tolerance, progress), problem

    def _solve(
        self, problem: Problem, tolerance: float, progress: Progress | None = None
    ) -> Solution:
        places = line_of(problem)
        if places is not None:
            return solve_line(problem, *places)
        most = min(DENSE_ARCS, self._memory_limit // DENSE_BYTES_PER_ARC)
        if problem.n0 * problem.n1 <= most and problem.complete:
            found = _dense(problem)
            if problem.closed(found, tolerance):
                return found
            # The matrix product loses costs that are tiny beside the coordinates. Column
            # generation computes costs from differences, which keep them.
        return column_generation(problem, tolerance, self._solve, progress)


def _as_points(points: ArrayLike | Points) -> Points:
    if isinstance(points, Points):
        return points
    numbers = np.asarray(points, dtype=np.float64)
    return Points(numbers)


def _shares(mass: ArrayLike | None, count: int) -> Floats:
    return np.full(count, 1.0 / count) if mass is None else np.asarray(mass, dtype=np.float64)


def _centre(x: Floats, z: Floats, mass: Floats) -> Floats:
    """Return the mean of the targets, or their median if a few points pull the mean far away.

    The mean is rounded to a few digits, so the order of the rows does not change a bit of it. Ties
    between optimal plans are then settled in the same way for rows in any order, and for weights
    as for repeated rows.
    """
    mean, middle = mass @ z, np.median(z, axis=0)
    usual = np.quantile(np.linalg.norm(np.vstack([x, z]) - middle, axis=1), 0.9)
    if np.linalg.norm(mean - middle) > 1e3 * usual:
        return middle
    spread = np.ptp(z, axis=0)
    step = np.maximum(np.ldexp(1.0, np.frexp(spread)[1] - 16), sys.float_info.min)
    return np.where(spread > 0.0, np.rint(mean / step) * step, middle)


def _dense(problem: Problem) -> Solution:
    plan, _, u, v = cheapest_plan(problem.a, problem.b, problem.cost_matrix())
    problem.precision = np.float64
    _, bound, _ = price_arcs(problem, u, v, np.inf)
    i, j = np.nonzero(plan)
    cost = problem.plan_cost(i, j, plan[i, j])
    return Solution(i, j, plan[i, j], u, cost, min(max(bound, 0.0), cost), "dense")


def _stopped(found: Solution, tolerance: float) -> str:
    return (
        f"The solver ({found.solver}) stopped at a relative gap of "
        f"{1.0 - found.bound / found.cost:.2e}, and {tolerance:.2e} was asked for. Allow a larger "
        "tolerance, or try another random_state where there is one."
    )
