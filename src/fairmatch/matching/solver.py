"""Exact optimal transport between two groups of points, with a proof of optimality."""

from __future__ import annotations

import math
import sys
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fairmatch.exceptions import InputError, SolverError
from fairmatch.matching.network import (
    SCORE_UNIT,
    Floats,
    Group,
    Problem,
    ScoreTerm,
    TransportPlan,
    column_generation,
    level_units,
    line_of,
    solve,
    unit_count,
    whole_units,
)
from fairmatch.people.checks import check_number
from fairmatch.people.encoding import Points


def check_columns(points: Points, caller: str) -> None:
    """Raise if the points have no columns, because then there are no distances."""
    if points.width == 0:
        raise InputError(
            f"{caller} got X without columns, but it needs at least one to compute distances. "
            "Pass the columns that describe the people, or match by scores alone with "
            "fair_matching."
        )
    largest = float(np.abs(points.numbers).max(initial=0.0))
    if not largest < math.sqrt(sys.float_info.max / (8.0 * points.width)):
        raise InputError(
            f"{caller} got values as large as {largest:g}, whose squared distances overflow. "
            "Divide the columns of X by a constant."
        )


#: The largest relative duality gap at which a plan counts as exact.
EXACT = 1e-9

_EPSILON = float(np.finfo(np.float64).eps)

OnUnproven = Literal["raise", "return"]


class Transport:
    r"""Two groups that are ready to be matched, once or at several prices of their score gap.

    Masses are not negative and sum to one; by default they are uniform. ``units`` are masses as
    whole numbers with the same sum, used instead of masses and scores. ``scores`` in [0, 1] of both
    groups are needed to solve at a price. If several plans are optimal, ``random_state`` decides
    which of them is found.

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

    def __init__(
        self,
        source_points: ArrayLike | Points,
        target_points: ArrayLike | Points,
        source_mass: ArrayLike | None = None,
        target_mass: ArrayLike | None = None,
        *,
        units: tuple[Floats, Floats] | None = None,
        scores: tuple[Floats, Floats] | None = None,
        random_state: int = 0,
    ) -> None:
        points = source_points, target_points
        x, z = (p if isinstance(p, Points) else Points(np.asarray(p, np.float64)) for p in points)
        if x.numbers.shape[1] != z.numbers.shape[1] or x.codes.shape[1] != z.codes.shape[1]:
            raise ValueError("Both groups need the same columns. Encode them together.")
        self._points, self._random_state = (x, z), random_state
        self._scores = None
        if units is not None:
            mass = units[0] / units[0].sum(), units[1] / units[1].sum()
            self._total, self._units = int(units[0].sum()), units
        else:
            mass = _shares(source_mass, len(x)), _shares(target_mass, len(z))
            self._total = unit_count(*mass)
            self._units = whole_units(mass[0], self._total), whole_units(mass[1], self._total)
            if scores is not None:
                one, other = (np.rint(score / SCORE_UNIT) * SCORE_UNIT for score in scores)
                self._scores = one, other
                self._units = level_units(mass, self._scores, self._total)
        self._prepare(_centre(x.numbers, z.numbers, mass[1]))

    def _prepare(self, centre: Floats) -> None:
        """Merge rows into atoms, centred and in units of a power of two.

        Costs change only in their unit. Products are rounded less, and costs are of the size for
        which POT's absolute constants are made.
        """
        self._centre = centre
        numbers = [points.numbers - centre for points in self._points]
        largest = max(np.abs(p).max(initial=0.0) for p in numbers)
        if self._points[0].codes.shape[1]:
            largest = max(largest, 0.5)  # an entry of a one-hot column, less its mean
        unit = math.ldexp(1.0, math.frexp(largest)[1])
        self._square = unit * unit
        rng = np.random.default_rng(self._random_state)
        scores = self._scores or (None, None)
        self._source, self._target = groups = tuple(
            Group.of(own / unit, points.codes, score, units, rng)
            for own, points, score, units in zip(
                numbers, self._points, scores, self._units, strict=True
            )
        )
        masses, term = (self._source.mass, self._target.mass), None
        if self._scores is not None:
            score0, score1 = (s[g.first] for s, g in zip(self._scores, groups, strict=True))
            term = ScoreTerm.between(score0, masses[0], score1, masses[1], 0.0)
        # Without categories the square may be 0. Then only the unit of the costs depends on it.
        atoms = self._source.atoms, self._target.atoms
        square = 1.0 / self._square if atoms[0].codes.shape[1] else 1.0
        self._problem = Problem(*atoms, masses, square, term)

    @property
    def rounding(self) -> float:
        """The largest cost that counts as zero, given the rounding of coordinates."""
        return 4.0 * _EPSILON**2 * self._problem.spread * self._square

    def row_potentials(self, plan: TransportPlan) -> Floats:
        """Return the dual solution of a plan at every source row. All rows must carry mass."""
        return plan.potential[self._source.label] * self._square

    def solve(
        self,
        *,
        price: float = 0.0,
        near: TransportPlan | None = None,
        tolerance: float = EXACT,
        on_unproven: OnUnproven = "raise",
    ) -> TransportPlan:
        """Return an optimal plan of at most ``2 * (n0 + n1)`` pairs.

        ``price`` is the cost of one unit of mean score gap beyond the least possible one. An
        infinite price allows only plans with the least possible gap. ``near`` is a plan at a near
        price, from which the search starts. If the relative gap ``(cost - bound) / cost`` is not
        proven to be within the tolerance, either `SolverError` is raised, or the plan is returned
        with its true bound.
        """
        check_number("tolerance", tolerance, "(0, 1)")
        found, problem = self._at_price(price, tolerance, None if near is None else near.potential)
        if self._centre.any() and problem.rounding(found) > tolerance * found.cost:
            # The points are so near to each other that subtracting the centre lost digits which
            # the proof needs. Now only columns far from zero are centred, which is exact.
            numbers = (points.numbers for points in self._points)
            far = [np.abs(p).max(axis=0) > 4 * np.ptp(p, axis=0) for p in numbers]
            self._prepare(np.where(far[0] & far[1], self._centre, 0.0))
            found, problem = self._at_price(price, tolerance)
        if on_unproven == "raise" and not problem.closed(found, tolerance):
            raise SolverError(_stopped(found, tolerance))
        # The flow of an arc is divided among the rows of its source atom, then of its target atom.
        arc, source_row, flow = self._source.split(found.source, found.mass)
        part, target_row, flow = self._target.split(found.target[arc], flow)
        source_row = source_row[part]
        order = np.lexsort((target_row, source_row))
        return TransportPlan(
            source_row[order],
            target_row[order],
            flow[order] / self._total,
            found.cost * self._square,
            found.bound * self._square,
            found.solver,
            found.potential,
            problem.excess(found),
        )

    def _at_price(
        self, price: float, tolerance: float, potential: Floats | None = None
    ) -> tuple[TransportPlan, Problem]:
        """Return a plan of atoms, and the problem that it solves."""
        problem = self._problem
        if price > 0.0:
            problem = problem.at_price(price / self._square if self._square else np.inf)
        fits = potential is not None and len(potential) == problem.n0
        if fits and line_of(problem) is None:
            return column_generation(problem, tolerance, potential), problem
        return solve(problem, tolerance), problem


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


def _stopped(found: TransportPlan, tolerance: float) -> str:
    return (
        f"The solver ({found.solver}) stopped at a relative gap of "
        f"{1.0 - found.bound / found.cost:.2e}, and {tolerance:.2e} was requested. Pass a larger "
        "tolerance, or another random_state where one can be passed."
    )
