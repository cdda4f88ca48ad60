r"""The least transport cost at every allowed mean score gap between two groups.

A price on the excess of a pair's score gap turns the bound on the mean gap into a cost. The plans
at two prices are two points of a convex curve. If the bound lies between them, the slope of their
chord is tried as the next price. The search ends when no price gives a better plan.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass

import numpy as np

from fairmatch.exceptions import SolverError
from fairmatch.matching.coupling import Certificate, IndexArray
from fairmatch.matching.solver import Transport, TransportPlan
from fairmatch.tables.arrays import FloatArray

_STRICTER = 0.25  # the share of the tolerance that a single plan may use


@dataclass(frozen=True)
class Point:
    """An optimal plan at one price: where it lies on the curve, and what it proves.

    Attributes
    ----------
    excess, cost : float
        Mean score gap beyond the least possible one, and transport cost.
    price, bound : float
        The price of a unit of excess, and a lower bound at this price. For every plan, the
        transport cost plus the price of its excess is at least ``bound``.
    plan : TransportPlan
        The plan.
    """

    excess: float
    cost: float
    price: float
    bound: float
    plan: TransportPlan

    def proves(self, slack: float) -> float:
        """Return a lower bound on the cost of every plan whose excess is at most ``slack``."""
        return self.bound - self.price * slack if self.price < np.inf else 0.0


@dataclass(frozen=True)
class Mixture:
    """A mixture of two optimal plans that meets a bound on the mean score gap."""

    source: IndexArray
    target: IndexArray
    mass: FloatArray
    certificate: Certificate


class Frontier:
    """Optimal plans of two groups, each found when it is requested.

    Parameters
    ----------
    transport : Transport
        The two groups, with their scores.
    tolerance : float
        Relative gap to which costs are proven.

    Attributes
    ----------
    points : list of Point
        The plans found so far, from the least excess to the greatest.
    """

    def __init__(self, transport: Transport, tolerance: float) -> None:
        self._transport, self._tolerance = transport, tolerance
        self.points: list[Point] = []

    @property
    def fairest(self) -> Point:
        """The plan of least cost among those with the least mean score gap."""
        known = [point for point in self.points if point.price == np.inf]
        return known[0] if known else self.at_price(np.inf)

    @property
    def nearest(self) -> Point:
        """The plan of least cost among all plans."""
        known = [point for point in self.points if point.price == 0.0]
        return known[0] if known else self.at_price(0.0)

    def at_price(self, price: float) -> Point:
        """Return an optimal plan at a price, and keep it."""
        near = min(self.points, key=lambda point: abs(point.price - price), default=None)
        end = price in (0.0, np.inf)
        plan = self._transport.solve(
            price=price,
            near=None if near is None else near.plan,
            tolerance=self._tolerance * (1.0 if end else _STRICTER),
            on_unproven="raise" if end else "return",
        )
        cost = plan.cost if price == np.inf else plan.cost - price * plan.excess
        point = Point(plan.excess, cost, price, plan.bound, plan)
        insort(self.points, point, key=lambda point: (point.excess, -point.price))
        return point

    def at_slack(self, slack: float) -> Mixture:
        """Return the plan of least cost with a mean score gap at most ``slack`` above the least.

        Raises
        ------
        SolverError
            If the cost of the plan is not proven to within the tolerance.
        """
        if slack == 0.0:
            return _mixture(self.fairest, self.fairest, 0.0, self.fairest.bound)
        if self.nearest.excess <= slack:
            return _mixture(self.nearest, self.nearest, 0.0, self.nearest.bound)
        fair, near = self.fairest, self.nearest
        share, bound = 0.0, near.bound
        while fair.cost > self._transport.rounding:
            share = (slack - fair.excess) / (near.excess - fair.excess)
            cost = share * near.cost + (1.0 - share) * fair.cost
            if cost - bound <= self._tolerance * cost:
                break
            price = (fair.cost - near.cost) / (near.excess - fair.excess)
            if not near.price < price < fair.price:
                raise SolverError(_stopped(cost, bound, self._tolerance))
            point = self.at_price(price)
            bound = max(bound, point.proves(slack))
            fair, near = (fair, point) if point.excess > slack else (point, near)
        return _mixture(fair, near, share, bound)

    def refine(self, height: float) -> None:
        """Find plans until their chords lie nowhere more than ``height`` above the curve."""
        ends = [(self.fairest, self.nearest)]
        while ends:
            fair, near = ends.pop()
            if _too_high(fair, near) <= height:
                continue
            price = (fair.cost - near.cost) / (near.excess - fair.excess)
            point = self.at_price(price)
            if near.cost + price * near.excess - point.bound > height:
                ends += [(fair, point), (point, near)]


def _too_high(fair: Point, near: Point) -> float:
    """Return how far the chord of two points can lie above the curve.

    Through each point goes a line with minus the point's price as its slope. The curve lies above
    both lines.
    """
    width, fall = near.excess - fair.excess, fair.cost - near.cost
    if width <= 0.0 or not near.price < fall / width < fair.price:
        return 0.0
    above = fall / width - near.price
    if fair.price == np.inf:
        return above * width
    return above * width * (fair.price - fall / width) / (fair.price - near.price)


def _mixture(fair: Point, near: Point, share: float, bound: float) -> Mixture:
    """Return a share of the nearer plan and the rest of the fairer one."""
    plan, cost = fair.plan, fair.cost
    source, target, mass = plan.source, plan.target, plan.mass
    if share > 0.0:
        width = int(max(target.max(), near.plan.target.max())) + 1
        pair, at = np.unique(
            np.concatenate([source, near.plan.source]) * width
            + np.concatenate([target, near.plan.target]),
            return_inverse=True,
        )
        both = np.concatenate([(1.0 - share) * mass, share * near.plan.mass])
        mass = np.bincount(at, both).astype(np.float64)
        source, target = np.divmod(pair, width)
        cost += share * (near.cost - fair.cost)
    return Mixture(source, target, mass, Certificate(cost, min(float(bound), cost), plan.solver))


def _stopped(cost: float, bound: float, tolerance: float) -> str:
    return (
        "The search for a price of the score gap stopped at a relative gap of "
        f"{1.0 - bound / cost:.2e}, and {tolerance:.2e} was asked for. Allow a larger tolerance."
    )
