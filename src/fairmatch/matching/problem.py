"""A transport problem between atoms, and the costs of its pairs.

No array holds all pairs of a large problem. Costs are computed in blocks of rows, as rigorous lower
bounds in the precision of the block. For single pairs they are computed from differences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from fairmatch.matching.excess import ScoreTerm

Floats = NDArray[np.float64]
Index = NDArray[np.intp]
Block = NDArray[np.floating]

MASS_UNITS = 2**52  # integers up to here, and their sums, are exact in float64
BLOCK = 4_000_000  # reduced costs held at once
SOFT = 10.0  # highest price of scores in a sample, in spreads of points per spread of scores


@dataclass(frozen=True)
class Solution:
    """Flow on arcs between atoms, potentials of the source atoms, the cost, and its bound."""

    source: Index
    target: Index
    flow: Floats
    potential: Floats
    cost: float
    bound: float
    solver: str


@dataclass(frozen=True)
class Atoms:
    """The different points of one group, and the mass of each in integer units."""

    numbers: Floats
    codes: NDArray[np.int32]  # one column per category; the one-hot columns of -1 are all zero
    weight: Floats

    def __len__(self) -> int:
        return len(self.weight)

    def first(self, count: int) -> Atoms:
        """Return the first atoms, with masses scaled to the full number of units."""
        running = np.cumsum(self.weight[:count])
        weight = np.diff(np.rint(running / running[-1] * MASS_UNITS), prepend=0.0)
        return Atoms(self.numbers[:count], self.codes[:count], weight)


class Problem:
    """Transport between atoms whose masses are balanced.

    Parameters
    ----------
    source, target : Atoms
        The atoms that are moved, and those to which they are moved.
    code_square : float
        The square of a one-hot entry. Two different known levels of a category cost twice this.
    term : ScoreTerm, optional
        What scores add to the cost of a pair, or which pairs they forbid.
    """

    def __init__(
        self,
        source: Atoms,
        target: Atoms,
        code_square: float = 1.0,
        term: ScoreTerm | None = None,
    ) -> None:
        self.source, self.target, self.code_square, self.term = source, target, code_square, term
        self.x, self.z, self.a, self.b = (
            source.numbers,
            target.numbers,
            source.weight,
            target.weight,
        )
        self.n0, self.n1 = len(source), len(target)
        self.total = self.a.sum()
        self.xx, self.zz = (self._square(atoms) for atoms in (source, target))
        self.width = self.x.shape[1] + source.codes.shape[1]
        # Single precision is fast and rules out most arcs. In few dimensions it leaves too many
        # arcs undecided, and the product is cheap anyway.
        self.precision: type[np.floating] = np.float32 if self.width >= 16 else np.float64
        self._product: Block | None = None  # kept if a single block holds it

    def _square(self, atoms: Atoms) -> Floats:
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
        other = Problem(self.source, self.target, self.code_square, replace(self.term, price=price))
        other.precision, other._product = self.precision, self._product
        return other

    def sample(self, count: int) -> Problem:
        """Return the problem of the first atoms of each group, which are in random order."""
        term = self.term and self._softened().first(count, count)
        return Problem(self.source.first(count), self.target.first(count), self.code_square, term)

    def across(self, sample: Problem) -> Problem:
        """Return the problem of a sample's source atoms and all target atoms."""
        term = self.term and self._softened().first(sample.n0, self.n1)
        return Problem(sample.source, self.target, self.code_square, term)

    @property
    def spread(self) -> float:
        """Sum of the mean squared lengths of the points of both groups."""
        return float(self.a @ self.xx + self.b @ self.zz) / float(self.total)

    def _softened(self) -> ScoreTerm:
        """Return the score term with a finite price, because a sample needs forbidden pairs."""
        assert self.term is not None
        spread = sum(float(np.ptp(score)) for score in self.term.score)
        price = SOFT * self.spread / spread if spread > 0.0 else 0.0
        return replace(self.term, price=min(self.term.price, price))

    def centred(self, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Return potentials centred in every component. Reduced costs of allowed pairs stay."""
        if self.term is None or self.complete:
            middle = u.mean()
            return u - middle, v + middle
        one, other = self.term.component
        means = np.bincount(one, u) / np.bincount(one)
        return u - means[one], v + means[other]

    def staircase(self) -> tuple[Index, Index]:
        """Return the arcs of an allowed plan, which matches both groups in order."""
        order = (None, None) if self.term is None else self.term.order()
        ends = [
            np.cumsum(weight if by is None else weight[by])
            for weight, by in zip((self.a, self.b), order, strict=True)
        ]
        end = np.union1d(*ends)
        i, j = (
            at if by is None else by[at]
            for at, by in zip((np.searchsorted(e, end) for e in ends), order, strict=True)
        )
        return i, j

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
            difference = self.x[i[part]] - self.z[j[part]]
            cost[part] = np.einsum("ij,ij->i", difference, difference)
            for one, other in zip(self.source.codes.T, self.target.codes.T, strict=True):
                one, other = one[i[part]], other[j[part]]
                different = np.where(one == other, 0, 1 * (one >= 0) + (other >= 0))
                cost[part] += self.code_square * different
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

        def side(square: Floats, potential: Floats, number: int) -> Block:
            value = square - potential
            error = (self.width + 8) * square + 4.0 * np.abs(value)
            if term is not None and priced:
                lift = term.price * term.lift[number] * (1.0, -1.0)[number]
                value = value + lift
                error += 4.0 * (np.abs(lift) + np.abs(value))
                error += 8.0 * term.price * np.abs(term.score[number])
            return np.asarray(value - roundoff * error, dtype=self.precision)

        row, column = side(self.xx, u, 0)[:, None], side(self.zz, v, 1)
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

    def closed(self, found: Solution, tolerance: float) -> bool:
        """Return whether the gap is within the tolerance, or the cost is zero up to rounding."""
        if found.cost - found.bound <= tolerance * found.cost:
            return True
        # Points whose coordinates differ by no more than rounding count as the same. Mass within
        # the rounding of all masses counts as not moved.
        eps = np.finfo(np.float64).eps
        rounding = 4.0 * eps**2
        moved = found.flow > eps * self.total * (len(self.a) + len(self.b))
        i, j = found.source[moved], found.target[moved]
        return bool((self.arc_costs(i, j) <= rounding * (self.xx[i] + self.zz[j])).all())

    def rounding(self, found: Solution) -> float:
        """Return how much the rounding of coordinates can change the cost of a plan."""
        i, j = found.source, found.target
        moved = np.sqrt(self.distances(i, j)) * (np.sqrt(self.xx[i]) + np.sqrt(self.zz[j]))
        return float(2.0 * np.finfo(np.float64).eps * (moved @ found.flow) / self.total)

    def excess(self, found: Solution) -> float:
        """Return the mean score gap of a plan beyond the least possible one."""
        if self.term is None:
            return 0.0
        return float(self.term.excess(found.source, found.target) @ found.flow / self.total)

    def value(self, u: Floats, v: Floats) -> float:
        """Return the dual value of potentials. It is rounded only once, as they may cancel."""
        terms = chain(*_exact_products(self.a, u), *_exact_products(self.b, v))
        return math.fsum(terms) / float(self.total)

    def plan_cost(self, i: Index, j: Index, flow: Floats) -> float:
        """Return the cost of a plan."""
        return float(self.arc_costs(i, j) @ flow / self.total)


def _exact_products(one: Floats, other: Floats) -> tuple[list[float], list[float]]:
    """Return rounded products and their rounding errors, by Dekker's algorithm."""
    product = one * other
    high, low = zip(*(_halves(factor) for factor in (one, other)), strict=True)
    rest = high[0] * high[1] - product + high[0] * low[1] + low[0] * high[1] + low[0] * low[1]
    return product.tolist(), rest.tolist()


def _halves(values: Floats) -> tuple[Floats, Floats]:
    """Split floats into two parts with half the digits each, whose products are exact."""
    scaled = values * (2.0**27 + 1.0)
    high = scaled - (scaled - values)
    return high, values - high
