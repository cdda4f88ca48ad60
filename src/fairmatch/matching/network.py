"""Transport between atoms: the problem, its prices, and the network simplex on a few arcs."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmatch.exceptions import SolverError
from fairmatch.matching.coupling import Certificate
from fairmatch.people.encoding import Points

Floats = NDArray[np.float64]
Index = NDArray[np.intp]

#: Scores in [0, 1] are counted in these units, which makes their sums and differences exact.
SCORE_UNIT = 2.0**-50


@dataclass(frozen=True)
class Scores:
    """The scores of the atoms of one group."""

    score: Floats
    lift: Floats  # the Kantorovich potential at the score
    level: Index  # the position of the score among all scores
    # The positions between which the target of a source atom must lie to have no excess.
    low: Index
    high: Index
    component: Index  # atoms of different components are never matched without excess

    def first(self, count: int) -> Scores:
        """Return the scores of the first atoms."""
        return Scores(*(values[:count] for values in vars(self).values()))


@dataclass(frozen=True)
class ScoreTerm:
    r"""What scores add to the cost of a pair: a price on its excess, or a ban.

    Notes
    -----
    Let D = F₀ − F₁ be the difference of the distribution functions of the scores, and
    :math:`G(t) = \int_{-\infty}^t \mathrm{sign}\, D`. For a pair of scores (s, t) its excess is

    .. math:: e(s, t) = |s - t| - (G(t) - G(s)) \ge 0 .

    The mean of :math:`G(t) - G(s)` is the same for every coupling, namely
    :math:`\int |D| = W_1`. So the mean excess of a coupling is its mean score gap minus W₁. It is
    zero if and only if no pair has excess: mass moves up only where D > 0, down only where D < 0,
    and not at all where D = 0.
    """

    #: Cost of one unit of excess. It is infinite if only pairs without excess are allowed.
    price: float
    source: Scores
    target: Scores

    @classmethod
    def between(
        cls, score0: Floats, weight0: Floats, score1: Floats, weight1: Floats, price: float
    ) -> ScoreTerm:
        """Return the term of two groups. Scores are multiples of `SCORE_UNIT`.

        Weights are whole numbers, with the same sum in both groups.
        """
        levels, number = np.unique(np.concatenate([score0, score1]), return_inverse=True)
        level = number[: len(score0)], number[len(score0) :]
        below = np.cumsum(
            np.bincount(level[0], weight0, len(levels))
            - np.bincount(level[1], weight1, len(levels))
        )[:-1]
        lift = np.append(0.0, np.cumsum(np.sign(below) * np.diff(levels)))
        at = np.arange(len(levels))
        tops = np.append(np.flatnonzero(below <= 0), len(levels) - 1)
        feet = np.append(0, np.flatnonzero(below >= 0) + 1)
        high = tops[np.searchsorted(tops, at)]
        low = feet[np.searchsorted(feet, at, side="right") - 1]
        component = np.append(0, np.cumsum(below == 0))

        def side(score: Floats, own: Index) -> Scores:
            return Scores(score, lift[own], own, low[own], high[own], component[own])

        source, target = side(score0, level[0]), side(score1, level[1])
        return cls(price, source, target)

    def excess(self, i: Index | slice, j: Index | slice) -> Floats:
        """Compute the excess of pairs, without rounding."""
        source, target = self.source, self.target
        gap = np.abs(source.score[i] - target.score[j])
        return np.asarray(gap - (target.lift[j] - source.lift[i]))

    def gaps(self, part: slice, precision: type[np.floating]) -> NDArray[np.floating]:
        """Return the priced score gaps of a block of source atoms with all targets."""
        one, other = (own.score.astype(precision) for own in (self.source, self.target))
        block = np.subtract.outer(one[part], other)
        np.abs(block, out=block)
        block *= precision(self.price)
        return block

    def forbidden(self, part: slice) -> NDArray[np.bool_]:
        """Return a mask of the targets with which a block of source atoms may not be matched."""
        level, low, high = self.target.level, self.source.low, self.source.high
        return (level < low[part, None]) | (level > high[part, None])


Block = NDArray[np.floating]

MASS_UNITS = 2**52  # integers up to here, and their sums, are exact in float64
BLOCK = 4_000_000  # reduced costs held at once
SOFT = 10.0  # highest price of scores in a sample, in spreads of points per spread of scores


@dataclass(frozen=True)
class TransportPlan:
    """A transport plan in sparse form, with its cost and a proven lower bound.

    Within the solver it pairs atoms, and masses are in units. A caller gets pairs of rows.
    """

    #: Positions of the paired source and target points.
    source: Index
    target: Index
    mass: Floats  #: Mass moved by each pair; positive, sums to one.
    #: Cost of the plan, ``sum(mass * ||x[source] - z[target]||**2)``. A finite price on the scores
    #: adds price times excess.
    cost: float
    bound: float  #: Value of a feasible dual solution. No plan costs less.
    solver: str  #: ``"dense"``, ``"column generation"``, or ``"sorting"`` for points on a line.
    #: Dual solution at the source atoms. A search at a near price can start from it.
    potential: Floats = field(repr=False)
    excess: float = 0.0  #: Mean score gap beyond the least possible one. It is 0 without scores.

    @property
    def certificate(self) -> Certificate:
        """The cost of the plan, and its proven bound."""
        return Certificate(float(self.cost), float(self.bound), self.solver)


class Problem:
    """Transport between atoms: the different points of two groups, with masses that are balanced.

    ``masses`` are in integer units, and 1 by default. ``code_square`` is the square of a one-hot
    entry: two different known levels of a category cost twice this. ``term`` says what scores add
    to the cost of a pair, or which pairs they forbid.
    """

    def __init__(
        self,
        source: Points,
        target: Points,
        masses: tuple[Floats, Floats] | None = None,
        code_square: float = 1.0,
        term: ScoreTerm | None = None,
    ) -> None:
        self.source, self.target, self.code_square, self.term = source, target, code_square, term
        self.x, self.z, self.width = source.numbers, target.numbers, source.width
        self.n0, self.n1 = len(source), len(target)
        self.a, self.b = masses or (np.ones(self.n0), np.ones(self.n1))
        self.total = self.a.sum()
        self.xx, self.zz = (self._square(atoms) for atoms in (source, target))
        # Single precision is fast and rules out most arcs. In few dimensions it leaves too many
        # arcs undecided, and the product is cheap anyway.
        self.precision: type[np.floating] = np.float32 if self.width >= 16 else np.float64
        self._product: Block | None = None  # kept if a single block holds it

    def _square(self, atoms: Points) -> Floats:
        known = np.count_nonzero(atoms.codes >= 0, axis=1)
        square: Floats = np.einsum("ij,ij->i", atoms.numbers, atoms.numbers)
        square += self.code_square * known
        return square

    @property
    def complete(self) -> bool:
        """Whether every pair is allowed."""
        return self.term is None or self.term.price < np.inf

    def at_price(self, price: float) -> Problem:
        """Return the same problem with another price of the scores."""
        assert self.term is not None
        term = replace(self.term, price=price)
        other = Problem(self.source, self.target, (self.a, self.b), self.code_square, term)
        other.precision, other._product = self.precision, self._product
        return other

    def first(self, count0: int, count1: int) -> Problem:
        """Return the problem of the first atoms of each group, which are in random order.

        It needs all pairs, so forbidden ones get a price.
        """
        term = self.term
        if term is not None:
            spread = float(np.ptp(term.source.score)) + float(np.ptp(term.target.score))
            price = min(term.price, SOFT * self.spread / spread if spread > 0.0 else 0.0)
            term = ScoreTerm(price, term.source.first(count0), term.target.first(count1))
        atoms = self.source[:count0], self.target[:count1]
        a, b = (whole_units(own, MASS_UNITS) for own in (self.a[:count0], self.b[:count1]))
        return Problem(*atoms, (a, b), self.code_square, term)

    @property
    def spread(self) -> float:
        """Sum of the mean squared lengths of the points of both groups."""
        return float(self.a @ self.xx + self.b @ self.zz) / float(self.total)

    def centred(self, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Return potentials centred in every component. Reduced costs of allowed pairs stay."""
        if self.term is None or self.complete:
            middle = u.mean()
            return u - middle, v + middle
        one, other = self.term.source.component, self.term.target.component
        means = np.bincount(one, u) / np.bincount(one)
        return u - means[one], v + means[other]

    def staircase(self) -> tuple[Index, Index]:
        """Return the arcs of an allowed plan, which matches both groups in order."""
        orders = [np.arange(self.n0), np.arange(self.n1)]
        if self.term is not None:
            sides = self.term.source, self.term.target
            orders = [np.argsort(own.level, kind="stable") for own in sides]
        return staircase(self.a, self.b, *orders)[:2]

    def cost_matrix(self) -> Floats:
        """Return all costs of a small problem in which every pair is allowed."""
        cost = self._products(slice(None), self.x, -2.0 * self.z.T)
        cost += self.zz
        cost += self.xx[:, None]
        np.maximum(cost, 0.0, out=cost)
        if self.term is not None:
            cost += self.term.price * self.term.excess(np.arange(self.n0)[:, None], slice(None))
        return np.asarray(cost, dtype=np.float64)

    def arc_costs(self, i: Index, j: Index) -> Floats:
        """Compute costs from differences, without the cancellation of the matrix product."""
        cost = self.distances(i, j)
        if self.term is not None and self.term.price < np.inf:
            cost += self.term.price * self.term.excess(i, j)
        return cost

    def distances(self, i: Index, j: Index) -> Floats:
        """Compute only the squared distances, without what scores add."""
        cost = np.empty(len(i))
        step = max(1, BLOCK // (4 * self.width + 1))
        for start in range(0, len(i), step):
            part = slice(start, start + step)
            cost[part] = self.source.pair_costs(i[part], j[part], self.target, self.code_square)
        return cost

    def reduced_costs(self, u: Floats, v: Floats) -> Iterator[tuple[slice, Block]]:
        """Yield blocks of rows with values that are at most ``c - u - v``.

        With unit roundoff ``e``, the product of d-vectors is off by at most ``(d + 2) e |x| |z|``,
        and each sum is off by at most ``e`` times its terms. The row and column terms are lowered
        by all of these errors. Pairs that are not allowed cost infinity.
        """
        roundoff = float(np.finfo(self.precision).eps) / 2
        term = self.term
        priced = term is not None and 0.0 < term.price < np.inf

        def side(square: Floats, potential: Floats, scores: Scores | None, sign: float) -> Block:
            value = square - potential
            error = (self.width + 8) * square + 4.0 * np.abs(value)
            if term and scores and priced:
                lift = term.price * scores.lift * sign
                value = value + lift
                error += 4.0 * (np.abs(lift) + np.abs(value))
                error += 8.0 * term.price * np.abs(scores.score)
            return np.asarray(value - roundoff * error, dtype=self.precision)

        source, target = (None, None) if term is None else (term.source, term.target)
        row, column = side(self.xx, u, source, 1.0)[:, None], side(self.zz, v, target, -1.0)
        step = max(1, BLOCK // self.n1)
        product = self._product
        if product is None or product.dtype != self.precision:
            x: Block = self.x.astype(self.precision)
            z: Block = (-2.0 * self.z.T).astype(self.precision)
            whole = step >= self.n0
            product = self._product = self._products(slice(None), x, z) if whole else None
        for start in range(0, self.n0, step):
            part = slice(start, min(start + step, self.n0))
            if product is not None:
                block: Block = product + column
            else:
                block = self._products(part, x, z)
                block += column
            block += row[part]
            if term is not None and priced:
                block += term.gaps(part, self.precision)
            elif term is not None and term.price == np.inf:
                np.copyto(block, np.inf, where=term.forbidden(part))
            yield part, block

    def _products(self, part: slice, x: Block, z: Block) -> Block:
        """Return ``-2 x·z`` of one-hot points, computed from numbers and codes."""
        product = x[part] @ z
        if self._codes:
            # Comparing bytes costs a tenth of multiplying one-hot columns.
            counted = np.uint8 if len(self._codes) < 256 else np.uint16
            same, equal = np.zeros(product.shape, counted), np.empty(product.shape, np.bool_)
            for one, other in self._codes:
                np.equal(one[part, None], other, out=equal)
                np.add(same, equal.view(np.uint8), out=same)
            product -= np.multiply(same, 2.0 * self.code_square, dtype=product.dtype)
        return product

    @cached_property
    def _codes(self) -> list[tuple[NDArray[np.integer], NDArray[np.integer]]]:
        """The codes of every category in as few bytes as possible. An unknown code equals none."""
        pairs = []
        for one, other in zip(self.source.codes.T, self.target.codes.T, strict=True):
            top = max(one.max(initial=0), other.max(initial=0))
            small = np.min_scalar_type(int(top) + 2)
            pairs.append(
                (
                    np.where(one < 0, top + 1, one).astype(small),
                    np.where(other < 0, top + 2, other).astype(small),
                )
            )
        return pairs

    def closed(self, found: TransportPlan, tolerance: float) -> bool:
        """Return whether the gap is within the tolerance, or the cost is zero up to rounding."""
        if found.cost - found.bound <= tolerance * found.cost:
            return True
        # Points whose coordinates differ by no more than rounding count as the same. Mass within
        # the rounding of all masses counts as not moved.
        eps = np.finfo(np.float64).eps
        rounding = 4.0 * eps**2
        moved = found.mass > eps * self.total * (len(self.a) + len(self.b))
        i, j = found.source[moved], found.target[moved]
        return bool((self.arc_costs(i, j) <= rounding * (self.xx[i] + self.zz[j])).all())

    def rounding(self, found: TransportPlan) -> float:
        """Return how much the rounding of coordinates can change the cost of a plan."""
        i, j = found.source, found.target
        moved = np.sqrt(self.distances(i, j)) * (np.sqrt(self.xx[i]) + np.sqrt(self.zz[j]))
        return float(2.0 * np.finfo(np.float64).eps * (moved @ found.mass) / self.total)

    def excess(self, found: TransportPlan) -> float:
        """Return the mean score gap of a plan beyond the least possible one."""
        if self.term is None:
            return 0.0
        return float(self.term.excess(found.source, found.target) @ found.mass / self.total)

    def value(self, u: Floats, v: Floats) -> float:
        """Return the dual value of potentials. It is rounded only once, as they may cancel."""
        terms = [*_exact_products(self.a, u), *_exact_products(self.b, v)]
        return math.fsum(np.concatenate(terms).tolist()) / float(self.total)

    def plan_cost(self, i: Index, j: Index, flow: Floats) -> float:
        """Return the cost of a plan."""
        return float(self.arc_costs(i, j) @ flow / self.total)


def _exact_products(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Return rounded products and their rounding errors, by Dekker's algorithm."""
    product = one * other
    high = [(2.0**27 + 1.0) * own - ((2.0**27 + 1.0) * own - own) for own in (one, other)]
    low = one - high[0], other - high[1]  # the digits are halved, so that products are exact
    rest = high[0] * high[1] - product + high[0] * low[1] + low[0] * high[1] + low[0] * low[1]
    return product, rest


def unit_count(a: Floats, b: Floats) -> int:
    """Return the number of units in a total mass of one.

    Uniform masses and those of small whole weights are whole numbers of units, unless that takes
    more than `MASS_UNITS` of them. So weights have the same units as repeated rows.
    """
    parts = [_parts(mass[mass > 0]) for mass in (a, b)]
    common = math.lcm(*parts)
    return common if 0 < common <= MASS_UNITS else MASS_UNITS


def _parts(mass: Floats) -> int:
    """Return of how many equal parts masses are made, or 0 if they are made of no such parts."""
    for times in range(1, 13):
        parts = mass / mass.min() * times
        whole = np.rint(parts)
        if (np.abs(parts - whole) <= 8.0 * np.finfo(np.float64).eps * parts).all():
            return int(whole.sum())
    return 0


def whole_units(mass: Floats, total: int) -> Floats:
    """Round masses to whole units. Each is off by at most one unit, and the sum is exact."""
    running = np.cumsum(mass)
    return np.diff(np.rint(running / running[-1] * total), prepend=0.0)


def level_units(
    mass: tuple[Floats, Floats], score: tuple[Floats, Floats], total: int
) -> tuple[Floats, Floats]:
    """Round the masses of two groups to whole units. Equal shares stay equal.

    If both groups have the same share of people up to some score, apart from rounding, they get
    the same number of units up to that score.
    """
    orders = [np.argsort(s, kind="stable") for s in score]
    ends = [np.cumsum(whole_units(m[order], total)) for m, order in zip(mass, orders, strict=True)]
    levels = np.unique(np.concatenate(score))
    last = [
        np.searchsorted(s[order], levels, side="right") - 1
        for s, order in zip(score, orders, strict=True)
    ]
    begun = (last[0] >= 0) & (last[1] >= 0)
    at0, at1 = last[0][begun], last[1][begun]
    rounding = total * 2.0**-52 * (len(mass[0]) + len(mass[1]))
    same = np.abs(ends[0][at0] - ends[1][at1]) <= rounding
    fixed = np.full(len(mass[1]), np.nan)
    fixed[at1[same]] = ends[0][at0[same]]
    below, above = np.fmax.accumulate(fixed), np.fmin.accumulate(fixed[::-1])[::-1]
    ends[1] = np.fmin(np.fmax(ends[1], below), above)  # fixed or not, ends stay in order
    units = np.empty(len(mass[0])), np.empty(len(mass[1]))
    for out, order, end in zip(units, orders, ends, strict=True):
        out[order] = np.diff(end, prepend=0.0)
    return units


@dataclass(frozen=True)
class Group:
    """The rows of one group that carry mass, merged into atoms of identical points."""

    rows: Index  # positions in the input
    units: Floats  # mass of each row, in whole units
    label: Index  # atom of each row
    first: Index  # position in the input of one row of each atom
    atoms: Points  # the different points, in random order
    mass: Floats  # mass of each atom, in whole units

    @classmethod
    def of(
        cls,
        numbers: Floats,
        codes: NDArray[np.int32],
        score: Floats | None,
        units: Floats,
        rng: np.random.Generator,
    ) -> Group:
        """Return a group in which rows are merged if they agree in all that a cost depends on."""
        rows = np.flatnonzero(units > 0)
        numbers, codes, units = numbers[rows] + 0.0, codes[rows], units[rows]  # no -0.0
        points = numbers
        if codes.shape[1] or score is not None:
            scores = [] if score is None else [score[rows, None]]
            points = np.hstack([numbers, codes, *scores])
        # A random linear hash of their bits tells rows apart. That is far cheaper than sorting
        # the rows. Atoms are in the order of the hash, which shuffles them.
        bits = points.view(np.uint64)
        odd = rng.integers(2**63, size=points.shape[1], dtype=np.uint64) | np.uint64(1)
        key = ((bits ^ (bits >> np.uint64(32))) * odd).sum(axis=1)
        _, first, label = np.unique(key, return_index=True, return_inverse=True)
        if not np.array_equal(points[first][label], points):  # two different rows share a hash
            _, first, label = np.unique(points, axis=0, return_index=True, return_inverse=True)
        mass = np.bincount(label, units).astype(np.float64)
        return cls(rows, units, label, rows[first], Points(numbers[first], codes[first]), mass)

    def split(self, owner: Index, flow: Floats) -> tuple[Index, Index, Floats]:
        """Divide the flow of arcs, each at the atom ``owner``, among the rows of the atom.

        Sorted by atom, arcs and rows cut the same interval of mass into pieces of whole units.
        Their common refinement has no more parts than arcs and rows together. The result is the
        arc, the row and the flow of each part.
        """
        orders = np.argsort(owner, kind="stable"), np.argsort(self.label, kind="stable")
        arc, row, parts = staircase(flow, self.units, *orders)
        return arc, self.rows[row], parts


def staircase(a: Floats, b: Floats, first: Index, second: Index) -> tuple[Index, Index, Floats]:
    """Match two groups in the given orders: return the pairs, and the flow of each.

    Masses are whole numbers with the same sum. In their order, both groups cut the same interval
    of mass into pieces, and the pairs are the common refinement.
    """
    ends = np.cumsum(a[first]), np.cumsum(b[second])
    end = np.union1d(*ends)
    end = end[end > 0.0]
    i, j = (by[np.searchsorted(own, end)] for by, own in zip((first, second), ends, strict=True))
    return i, j, np.diff(end, prepend=0.0)


CANDIDATES = 20  # first arcs for each atom of either group, by least reduced cost
ADDED = 4  # violated arcs added for each source atom if there are too many to recompute
RECHECK = 16  # up to this many arcs per atom are recomputed in float64
_ROUNDOFF = float(np.finfo(np.float64).eps) / 2
_KEPT_MINIMA = 4 * CANDIDATES  # rows of column minima held before the larger ones are dropped


def price_arcs(
    problem: Problem, u: Floats, v: Floats, recheck: float = RECHECK
) -> tuple[Index, float, bool]:
    """Return the violated arcs, and a bound from potentials that are made feasible.

    Adding to each ``u_i`` the least reduced cost of its row makes the dual feasible. So does adding
    to each ``v_j`` that of its column. The better of the two gives the bound. Arcs whose reduced
    cost may be negative are recomputed from differences. If a block has more than ``recheck`` of
    them per atom, its worst ones are used as they are, and the last result is False.
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


#: POT imports each of these libraries if it is installed, unless its variable is set.
_BACKENDS = {
    "torch": "POT_BACKEND_DISABLE_PYTORCH",
    "jax": "POT_BACKEND_DISABLE_JAX",
    "cupy": "POT_BACKEND_DISABLE_CUPY",
    "tensorflow": "POT_BACKEND_DISABLE_TENSORFLOW",
}


@cache
def _simplex() -> Any:
    """Return POT's compiled module, with ``emd_c`` for a matrix of costs and ``emd_c_sparse``.

    The simplex needs only NumPy arrays, and importing torch would cost every worker a second and
    200 MB. So POT is loaded without its backends and then removed from ``sys.modules``. A later
    import of POT by other code loads all of it.
    """
    loaded = "ot" in sys.modules
    unset = [
        variable
        for name, variable in _BACKENDS.items()
        if not loaded and name not in sys.modules and variable not in os.environ
    ]
    os.environ.update(dict.fromkeys(unset, "1"))
    try:
        from ot.lp import emd_wrap
    finally:
        for variable in unset:
            os.environ.pop(variable, None)
        if not loaded:
            for name in [name for name in sys.modules if name.partition(".")[0] == "ot"]:
                del sys.modules[name]
    return emd_wrap


_LEVEL_RATIO = 4  # a problem takes its first potentials from a sample this many times smaller
_LEVEL_MIN = 256  # a problem with no more atoms than this needs no sample
_LEVEL_TOLERANCE = 1e-3
_MAX_ROUNDS = 100
_MAX_STEPS = 500
_MAX_PIVOTS = 2**62
_OPTIMAL = 1  # result code of POT's simplex
_FINE = 2.0**-20  # a value is cut off once a typical value is this share of it


def _check_plan(code: int) -> None:
    """Raise if a simplex ended without a plan."""
    if code != _OPTIMAL:
        raise SolverError(
            f"The simplex stopped with code {code}, where {_OPTIMAL} is success, so there is no "
            f"plan within {_MAX_PIVOTS} pivots. Check the data for extreme values or masses."
        )


def cheapest_plan(a: Floats, b: Floats, cost: Floats) -> tuple[Floats, float, Floats, Floats]:
    """Return the cheapest plan for a matrix of costs, its cost, and the potentials.

    The masses of both sides have the same sum up to rounding.

    Examples
    --------
    >>> plan, cost, _, _ = cheapest_plan(np.ones(2), np.ones(2), np.array([[1.0, 0.0], [0.0, 3.0]]))
    >>> plan.tolist(), cost
    ([[0.0, 1.0], [1.0, 0.0]], 0.0)
    """
    b = b * (a.sum() / b.sum())  # the solver checks the sums to the last bit
    cost = np.ascontiguousarray(cost)
    plan, value, u, v, code = _simplex().emd_c(a, b, cost, _MAX_PIVOTS, 1, None, None)
    _check_plan(code)
    return plan, float(value), u, v


def column_generation(
    problem: Problem,
    tolerance: float,
    potential: Floats | None = None,
) -> TransportPlan:
    """Return a solution on few candidate arcs, to which violated arcs are added until none matters.

    The first potentials are near-optimal ones that are given, or those of a sample. The gap of the
    solution exceeds the tolerance if no more was proven.
    """
    n1 = problem.n1
    if potential is None:
        u, v = _first_potentials(problem)
    else:
        v = column_minima(problem, potential)
        u = row_minima(problem, v)
    arcs = first_arcs(problem, u, v)  # the arc from i to j is the number i * n1 + j
    costs = problem.arc_costs(*np.divmod(arcs, n1))
    basis = np.empty(0, dtype=np.intp)
    cost, bound, stalls = np.inf, 0.0, 0  # no cost is negative, so 0 is a bound
    best: TransportPlan | None = None
    fine = False  # whether the error of the simplex's potentials is too large for the gap
    for _ in range(_MAX_ROUNDS):
        i, j = np.divmod(arcs, n1)
        reduced = costs - u[i] - v[j]
        if fine:
            # Costs far above the plan's own are as good as infinite, and blur the potentials.
            reduced = np.minimum(reduced, cost / _FINE)
        before = u, v
        basis, flow, du, dv = _improved(problem, arcs, reduced, basis, tolerance * cost)
        u, v = u + du, v + dv
        if fine:
            u, v = _settled(problem, arcs, costs, basis) or (u, v)
        cost = problem.plan_cost(*np.divmod(basis, n1), flow)
        violated, value, sure = price_arcs(problem, u, v)
        if not sure and not _missing(arcs, violated).any():
            problem.precision = np.float64
            violated, value, _ = price_arcs(problem, u, v, np.inf)
        improved, bound = value > bound, min(max(bound, value), cost)
        found = TransportPlan(*np.divmod(basis, n1), flow, cost, bound, "column generation", u)
        best = found if best is None or cost <= best.cost else replace(best, bound=bound)
        if problem.closed(best, tolerance):
            break
        new = violated[_missing(arcs, violated)]
        stalls += not (improved or new.size)
        if stalls > 3:
            break
        blur = 2.0 * _ROUNDOFF * (problem.n0 + n1) * float(np.abs(reduced).max())
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


def _first_potentials(problem: Problem) -> tuple[Floats, Floats]:
    """Return feasible potentials of all atoms, extended from those of a sample.

    First ``v_j = min_i c_ij - u_i`` over the sample, and then ``u_i = min_j c_ij - v_j``.
    """
    v = np.zeros(problem.n1)
    largest = max(problem.n0, problem.n1)
    if largest > _LEVEL_MIN:
        count = largest // _LEVEL_RATIO
        u = solve(problem.first(count, count), _LEVEL_TOLERANCE).potential
        v = column_minima(problem.first(count, problem.n1), u)
        # An outlier may have any potential up to its distance. A small one keeps more digits.
        v = np.minimum(v, np.median(np.abs(v)) / _FINE)
    return row_minima(problem, v), v


def _improved(
    problem: Problem, arcs: Index, reduced: Floats, basis: Index, slack: float
) -> tuple[Index, Floats, Floats, Floats]:
    """Return the arcs with flow, among sorted ``arcs``, the flow, and the changes of u and v.

    POT starts from the spanning tree of least absolute reduced costs. That is the tree of the
    previous round if the arcs with flow have reduced cost zero and all others are raised a little.
    """
    emd_c_sparse = _simplex().emd_c_sparse
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
    call = problem.a, problem.b, i, j, (reduced - shift) / unit, _MAX_PIVOTS
    start = np.full(problem.n0, -shift / unit), np.zeros(problem.n1)
    out = emd_c_sparse(*call, *start) if basis.size else emd_c_sparse(*call)
    if basis.size and out[6] != _OPTIMAL:
        out = emd_c_sparse(*call)
    source, target, flow, _, du, dv, code = out
    _check_plan(code)
    du, dv = problem.centred(du, dv)
    basis = (source * np.uint64(problem.n1) + target).astype(np.intp)
    return basis, flow, du * unit + shift, dv * unit


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


def solve_line(problem: Problem, x: Floats, z: Floats) -> TransportPlan:
    r"""Match both groups in the order of their places on a line, x and z.

    For a convex cost this plan is optimal, so the proof needs no dual: the bound is the cost minus
    the rounding error of the sum. Two neighbouring sources meet at a target :math:`z`, and their
    potentials differ by

    .. math:: u_{i + 1} - u_i = (x_{i + 1} - x_i) (x_{i + 1} + x_i - 2 z) .
    """
    orders = np.argsort(x, kind="stable"), np.argsort(z, kind="stable")
    i, j, flow = staircase(problem.a, problem.b, *orders)
    x, z = x[orders[0]], z[orders[1]]
    ends = [np.cumsum(w[by]) for w, by in zip((problem.a, problem.b), orders, strict=True)]
    at = np.searchsorted(ends[1], ends[0][:-1], side="right")
    meeting = z[np.minimum(at, len(z) - 1)]
    steps = np.diff(x) * ((x[1:] - meeting) + (x[:-1] - meeting))
    potential = np.empty(len(x))
    potential[orders[0]] = np.append(0.0, np.cumsum(steps))
    cost = math.fsum((problem.distances(i, j) * flow).tolist()) / float(problem.total)
    bound = cost * (1.0 - 8.0 * _ROUNDOFF)
    return TransportPlan(i, j, flow, cost, bound, "sorting", potential)


def _dense(problem: Problem) -> TransportPlan:
    plan, _, u, v = cheapest_plan(problem.a, problem.b, problem.cost_matrix())
    problem.precision = np.float64
    _, bound, _ = price_arcs(problem, u, v, np.inf)
    i, j = np.nonzero(plan)
    cost = problem.plan_cost(i, j, plan[i, j])
    return TransportPlan(i, j, plan[i, j], cost, min(max(bound, 0.0), cost), "dense", u)


#: Column generation is faster than the dense solver above this many entries (measured on Adult).
DENSE_ARCS = 200_000


def solve(problem: Problem, tolerance: float) -> TransportPlan:
    """Return a plan whose gap is within the tolerance, unless no more was proven."""
    places = line_of(problem)
    if places is not None:
        return solve_line(problem, *places)
    if problem.n0 * problem.n1 <= DENSE_ARCS and problem.complete:
        found = _dense(problem)
        if problem.closed(found, tolerance):
            return found
        # The matrix product loses costs that are tiny beside the coordinates. Column generation
        # computes costs from differences, which keep them.
    return column_generation(problem, tolerance)
