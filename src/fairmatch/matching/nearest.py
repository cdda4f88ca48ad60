"""The nearest of the fairest matchings, and the least cost at every score gap."""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairmatch.exceptions import InputError, SolverError
from fairmatch.matching.coupling import Certificate, Coupling, couple, join_parts
from fairmatch.matching.fair import read_scored
from fairmatch.matching.network import TransportPlan
from fairmatch.matching.solver import EXACT, Transport, check_columns
from fairmatch.people.checks import FloatArray, check_number
from fairmatch.people.encoding import Points, as_table, read_points
from fairmatch.people.groups import Criterion
from fairmatch.people.people import Comparison, People
from fairmatch.people.similarity import read_similarity

_STRICTER = 0.25  # the share of the tolerance that a single plan may use


@dataclass(frozen=True)
class Point:
    """An optimal plan at one price: where it lies on the curve, and what it proves.

    For every plan, the transport cost plus the price of its excess is at least ``bound``. The
    excess is the mean score gap beyond the least possible one.
    """

    excess: float
    cost: float
    price: float
    bound: float
    plan: TransportPlan

    def proves(self, slack: float) -> float:
        """Return a lower bound on the cost of every plan whose excess is at most ``slack``."""
        return self.bound - self.price * slack if self.price < np.inf else 0.0


class Frontier:
    """Optimal plans of two groups, each found when it is requested."""

    def __init__(
        self,
        people: People,
        part: Comparison,
        scores: FloatArray,
        features: Points,
        tolerance: float,
    ) -> None:
        self.people, self.part, self.scores = people, part, scores
        first, second = part.in_order
        self.sides = features[first], features[second]
        of_sides = scores[first], scores[second]
        self._transport = Transport(*self.sides, *part.masses(people), scores=of_sides)
        self._tolerance = tolerance
        self.points: list[Point] = []

    @property
    def fairest(self) -> Point:
        """The plan of least cost among those with the least mean score gap."""
        return self.at_price(np.inf)

    @property
    def nearest(self) -> Point:
        """The plan of least cost among all plans."""
        return self.at_price(0.0)

    def at_price(self, price: float) -> Point:
        """Return an optimal plan at a price. It is found once, and kept."""
        for point in self.points:
            if point.price == price:
                return point
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

    def at_slack(self, slack: float) -> Coupling:
        """Return the coupling of least cost whose mean score gap is at most ``slack`` too large."""
        if slack == 0.0 or self.nearest.excess <= slack:
            end = self.fairest if slack == 0.0 else self.nearest
            return self._mix(end, end, 0.0, end.bound)
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
        return self._mix(fair, near, share, bound)

    def _mix(self, fair: Point, near: Point, share: float, bound: float) -> Coupling:
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
        first, second = self.part.in_order
        proof = Certificate(cost, min(float(bound), cost), plan.solver)
        pairs = first[source], second[target], mass
        return couple(self.people, self.part, *pairs, certificate=proof)

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


def _stopped(cost: float, bound: float, tolerance: float) -> str:
    return (
        "The search for a price of the score gap stopped at a relative gap of "
        f"{1.0 - bound / cost:.2e}, and {tolerance:.2e} was requested. Pass a larger tolerance."
    )


def nearest_fair_matching(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    X: Any,
    *,
    slack: float = 0.0,
    y_true: ArrayLike | None = None,
    criterion: str | Criterion = "demographic_parity",
    reference: Any = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = 1,
    tolerance: float = EXACT,
    given: Any = None,
    similarity: Any = None,
    categorical: Collection[str] = (),
) -> Coupling:
    r"""Return the nearest matching among those with the least possible mean score gap.

    Many matchings have the least possible mean score gap, which is the Wasserstein parity gap. This
    function returns one with the least transport cost, which pairs the most similar people.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or 0/1 decisions.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    X : array-like of shape (n_rows, n_features), table or Points
        The features, which decide who is near to whom. Numbers are used as they are. A table with
        categories is encoded by `TableEncoder`: numbers are scaled to [0, 1], and two different
        levels are at squared distance 2.
    slack : float, default=0.0
        How far the mean score gap of every part may exceed the least possible one. With infinity,
        the matching has the least transport cost of all, like that of `OptimalTransportMatcher`.
    y_true : array-like of shape (n_rows,), optional
        Labels of two classes. They are needed if the criterion compares people of the same class.
    criterion : str or Criterion, default="demographic_parity"
        Whom to match: everybody ("demographic_parity"), people with a positive label
        ("equal_opportunity"), or each class by itself ("equalized_odds").
    reference : a group label, optional
        The group with which every other group is matched. By default it is the largest.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    pos_label : default=1
        The label that counts as positive.
    tolerance : float, default=1e-9
        Relative duality gap that must be proven. A gap of 1e-9 counts as exact.
    given : names of columns of X, array-like of shape (n_rows,), or table, optional
        Factors within whose levels people are matched.
    similarity : None, list of columns, mapping, "relevance" or array, optional
        What makes two people alike, as in `OptimalTransportMatcher.match`. "relevance" needs
        ``y_true``.
    categorical : collection of str, default=()
        Columns of X whose numbers are codes of categories, such as occupations.

    Returns
    -------
    Coupling
        A coupling from every other group to the reference group. The certificate of a part holds
        its transport cost. It also holds a lower bound on the cost of every matching whose mean
        score gap stays within the same limit.

    Raises
    ------
    SolverError
        If the tolerance cannot be proven.

    Notes
    -----
    For each part, with :math:`W_1` the Wasserstein distance of its two groups' scores,

    .. math:: \min_Q \mathbb{E}_Q \|x_i - x_j\|^2 \quad\text{such that}\quad
              \mathbb{E}_Q |f_i - f_j| \le W_1 + \text{slack} .

    Without slack this is optimal transport on the allowed pairs. From the first group to the
    second, a pair may cross a score level t upwards only where :math:`F_0(t) > F_1(t)`, and
    downwards only where :math:`F_0(t) < F_1(t)`. It may not cross t where they are equal. With
    slack, the score gap has a price. The two optimal matchings at the critical price are mixed to
    meet the bound. docs/explain/theory.md has the proof.

    Examples
    --------
    Equal quantiles match 0 with 1/2 and 1/2 with 1. Matching 1/2 with 1/2 has the same mean gap,
    and here it pairs more similar people:

    >>> from fairmatch import fair_matching, nearest_fair_matching
    >>> scores, groups, X = [0.0, 0.5, 0.5, 1.0], [0, 0, 1, 1], [[0.0], [5.0], [5.0], [0.0]]
    >>> equal, near = fair_matching(scores, groups), nearest_fair_matching(scores, groups, X)
    >>> equal.gap(scores), near.gap(scores)
    (0.5, 0.5)
    >>> equal.transport_cost(X), near.transport_cost(X)
    (25.0, 0.0)
    """
    check_number("slack", slack, "[0, inf]")
    about = y_score, sensitive_features, y_true, criterion, sample_weight, pos_label
    alike: dict[str, Any] = {"given": given, "similarity": similarity, "categorical": categorical}
    frontiers = _frontiers("nearest_fair_matching", about, X, reference, tolerance, **alike)
    return join_parts([frontier.at_slack(float(slack)) for frontier in frontiers])


def _frontiers(
    caller: str,
    about: tuple[Any, Any, Any, Any, Any, Any],
    X: Any,
    reference: Any,
    tolerance: float,
    *,
    given: Any = None,
    similarity: Any = None,
    categorical: Collection[str] = (),
) -> Iterator[Frontier]:
    """Yield the frontier of every comparison; ``about`` is what `read_scored` takes first."""
    check_number("tolerance", tolerance, "(0, 1)")
    if X is None:
        raise InputError(
            f"{caller} got X=None, but it needs the features to compute distances. Pass X, or use "
            "fair_matching, which needs only the scores."
        )
    X = X if isinstance(X, Points) else as_table(X, categorical)
    relevant = isinstance(similarity, str)
    scores, people, criterion = read_scored(*about, X, given, needs_labels=relevant)
    if similarity is None:
        features = read_points(X, n_rows=len(scores))
    else:
        features = read_similarity(similarity, X, people.labels, people.weights).points(X)
    check_columns(features, caller)
    for part in people.comparisons(criterion, reference):
        yield Frontier(people, part, scores, features, tolerance)


#: The slack at which a model's position is read. docs/evidence/nearest.md shows why.
POSITION_SLACK = 0.005


@dataclass(frozen=True, eq=False)
class MatchingCurve:
    r"""The least transport cost of a matching at every allowed mean score gap.

    The curve is convex. It falls from the nearest fair matching to the nearest matching of all.
    `matching_curve` computes it.

    Examples
    --------
    >>> from fairmatch import matching_curve
    >>> scores, groups, X = [0.0, 0.5, 0.4, 1.0], [0, 0, 1, 1], [[0.0], [1.0], [1.0], [0.0]]
    >>> curve = matching_curve(scores, groups, X)
    >>> curve.gap.round(3).tolist(), curve.cost.tolist()
    ([0.45, 0.55], [1.0, 0.0])
    >>> curve.position(0.0), round(curve.position(0.05), 3)
    (2.0, 1.0)
    """

    #: How far the mean score gap may exceed the least possible one. The first slack is 0.
    slack: FloatArray
    cost: FloatArray  #: The least transport cost at that slack.
    #: The least possible mean score gap. For two groups it is their Wasserstein parity gap. With
    #: several parts it is the weighted mean of theirs.
    least_gap: float
    random_cost: float  #: Mean squared distance between people who are matched at random.
    #: Labels of the source group and of the target group. With several parts, these are the labels
    #: of all groups.
    groups: tuple[Any, ...]
    #: The class whose people are matched: True is Y = 1, False is Y = 0, None is everybody.
    label: int | None = None
    weight: float = 1.0  #: Weight of this curve in the curve that it is a part of.
    #: The parts, if there are several. Otherwise it is empty.
    members: tuple[MatchingCurve, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<MatchingCurve of {len(self.cost)} points: cost {self.cost[0]:.4g} at a mean score "
            f"gap of {self.least_gap:.3f}, down to {self.nearest_cost:.4g} at {self.gap[-1]:.3f}>"
        )

    @property
    def parts(self) -> tuple[MatchingCurve, ...]:
        """The curves whose weighted sum this is. A curve of two groups is its own only part."""
        return self.members or (self,)

    @property
    def gap(self) -> FloatArray:
        """The allowed mean score gap at every point."""
        return self.least_gap + self.slack

    @property
    def nearest_cost(self) -> float:
        """The cost of the nearest matching, which does not depend on the scores."""
        return float(self.cost[-1])

    def cost_at(self, slack: float) -> float:
        """Return the least cost at a slack. Between two points it is interpolated.

        Parameters
        ----------
        slack : float
            How far the mean score gap may exceed the least possible one.
        """
        check_number("slack", slack, "[0, inf]")
        return float(np.interp(slack, self.slack, self.cost))

    def position(self, slack: float = POSITION_SLACK) -> float | None:
        r"""Return where the matching lies between the nearest (0) and a random one (1).

        Parameters
        ----------
        slack : float, default=0.005
            How far the mean score gap may exceed the least possible one.

        Returns
        -------
        float or None
            :math:`(C(\text{slack}) - C_\min) / (C_\text{random} - C_\min)`. It is None if all
            matchings cost the same.
        """
        span = self.random_cost - self.nearest_cost
        if span <= 1e-12 * max(self.random_cost, 1.0):
            return None
        return (self.cost_at(slack) - self.nearest_cost) / span


def matching_curve(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    X: Any,
    *,
    y_true: ArrayLike | None = None,
    criterion: str | Criterion = "demographic_parity",
    reference: Any = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = 1,
    accuracy: float = 1e-3,
    tolerance: float = EXACT,
) -> MatchingCurve:
    r"""Compute the least transport cost at every mean score gap, for the scores of a model.

    Parameters
    ----------
    y_score, sensitive_features, X, y_true, criterion, reference, sample_weight, pos_label
        As in `nearest_fair_matching`.
    accuracy : float, default=1e-3
        Largest error of a position on the curve. A position is never too small.
    tolerance : float, default=1e-9
        Relative duality gap to which the two ends of the curve are proven.

    Returns
    -------
    MatchingCurve
        The curve. With several parts, its cost at a slack allows every part the same slack.

    Notes
    -----
    Every point is a matching that is optimal at one price of the score gap, so it lies on the
    curve. Between two neighbours the curve lies below their chord. It lies above the line whose
    slope is the price that was tried between them. Points are added until both are close enough.

    Examples
    --------
    >>> from fairmatch import matching_curve
    >>> from fairmatch.datasets import load_german, paper_split
    >>> german = paper_split(load_german(), seed=0)
    >>> score = 0.3 + 0.4 * (german.X_test[:, 0] > 0)
    >>> curve = matching_curve(score, german.group_test, german.X_test)
    >>> bool(curve.position(0.0) > curve.position() > curve.position(0.1) >= 0.0)
    True
    """
    check_number("accuracy", accuracy, "(0, 1)")
    about = y_score, sensitive_features, y_true, criterion, sample_weight, pos_label
    frontiers = _frontiers("matching_curve", about, X, reference, tolerance)
    curves = [_part_curve(frontier, accuracy) for frontier in frontiers]
    return curves[0] if len(curves) == 1 else _joined(curves)


def _part_curve(frontier: Frontier, accuracy: float) -> MatchingCurve:
    random = _random_cost(frontier)
    frontier.refine(accuracy * max(random - frontier.nearest.cost, 0.0))
    slack, cost = _hull([(point.excess, point.cost) for point in frontier.points])
    fair = frontier.at_slack(0.0)
    least_gap = fair.gap(frontier.scores)
    return MatchingCurve(slack, cost, least_gap, random, fair.groups, fair.label, fair.weight)


def _joined(curves: list[MatchingCurve]) -> MatchingCurve:
    """Return the weighted sum of the curves of several parts."""
    slack = np.unique(np.concatenate([curve.slack for curve in curves]))
    costs = [curve.weight * np.interp(slack, curve.slack, curve.cost) for curve in curves]
    return MatchingCurve(
        slack,
        np.sum(costs, axis=0),
        sum(curve.weight * curve.least_gap for curve in curves),
        sum(curve.weight * curve.random_cost for curve in curves),
        tuple(dict.fromkeys(label for curve in curves for label in curve.groups)),
        members=tuple(curves),
    )


def _random_cost(frontier: Frontier) -> float:
    """Compute the mean squared distance between people of both groups, drawn independently."""
    sides = frontier.sides
    shares = [frontier.people.mass[rows] for rows in frontier.part.in_order]
    shares = [share / share.sum() for share in shares]
    means = [share @ side.numbers for share, side in zip(shares, sides, strict=True)]
    cost = ((means[0] - means[1]) ** 2).sum()
    for share, side, mean in zip(shares, sides, means, strict=True):
        cost += (share @ (side.numbers - mean) ** 2).sum()
    for codes in zip(*(side.codes.T for side in sides), strict=True):
        # One more place, the last, is for unknown levels. Their one-hot columns are all zero.
        n_levels = int(max(code.max() for code in codes)) + 2
        one, other = (
            np.bincount(code % n_levels, share, n_levels)[:-1]
            for code, share in zip(codes, shares, strict=True)
        )
        cost += one.sum() + other.sum() - 2.0 * one @ other
    return float(cost)


def _hull(points: list[tuple[float, float]]) -> tuple[FloatArray, FloatArray]:
    """Return the points of a falling convex curve, without those that rounding puts above it."""
    kept: list[tuple[float, float]] = []
    for x, y in sorted(points):
        if kept and y >= kept[-1][1]:
            continue
        while len(kept) > 1:
            (x0, y0), (x1, y1) = kept[-2:]
            if (y1 - y0) * (x - x0) < (y - y0) * (x1 - x0):
                break
            kept.pop()
        kept.append((x, y))
    excess, cost = np.array(kept).T
    return excess, cost
