"""The nearest matching of people whom a model treats alike, and each person's nearest people."""

from __future__ import annotations

from dataclasses import dataclass

from fairmatch.auditing.facts.costs import FeatureCost
from fairmatch.auditing.facts.estimates import Estimate


@dataclass(frozen=True)
class CurvePoint:
    """A point of a model's curve: how near matched people can be at a mean score gap.

    Attributes
    ----------
    gap : float
        The mean score gap that is allowed.
    cost : float
        The least mean squared distance between matched people at this gap.
    position : float or None
        Where the cost lies between that of the nearest matching (0) and that of a random one (1).
        It is None where these two are equal.
    """

    gap: float
    cost: float
    position: float | None


@dataclass(frozen=True)
class NearestFair:
    """The nearest of all matchings whose mean score gap is (nearly) the least possible one.

    Many matchings have the least mean score gap. Matching equal quantiles is one of them, and it
    ignores who the people are. This is the one in which matched people are most alike.

    Attributes
    ----------
    slack : float
        How far the mean score gap may exceed the least possible one.
    score_gap, least_gap : float
        Mean score gap of this matching, and the least possible one in the sample, which is the
        Wasserstein distance of the scores.
    cost, smallest, random : float
        Mean squared distance between matched people: in this matching, in the nearest matching of
        the same people, and in a random one on average.
    position : float or None
        ``(cost - smallest) / (random - smallest)``. It is 0 for a matching as near as possible and
        1 for one that is no better than random. It is None where the two are equal.
    strict_position : float or None
        The same without any slack.
    features : tuple of FeatureCost
        The cost by column of the table, with the largest part first.
    curve : tuple of CurvePoint
        The curve from the least mean score gap to that of the nearest matching.
    solver_gap : float
        Relative duality gap to which the cost is proven.
    """

    slack: float
    score_gap: float
    least_gap: float
    cost: float
    smallest: float
    random: float
    position: float | None
    strict_position: float | None
    features: tuple[FeatureCost, ...]
    curve: tuple[CurvePoint, ...]
    solver_gap: float


@dataclass(frozen=True)
class Reach:
    """The share of a group's people who have a near person in another group, scored alike.

    Attributes
    ----------
    group, other : str
        The group whose people are counted, and the group that is searched for near people.
    distance : float
        Squared distance up to which a person counts as near. Nine in ten of the people drawn from
        the two groups, counted by their weights, have a person of the other group within this
        distance.
    score_gap : float
        Difference up to which two scores count as alike.
    share : Estimate
        Share of the group's people who have a near person who is scored alike.
    has_near : Estimate
        Share of the group's people who have a near person.
    """

    group: str
    other: str
    distance: float
    score_gap: float
    share: Estimate
    has_near: Estimate


@dataclass(frozen=True)
class NearPeople:
    """The nearest people of the other group, for each person of the sample, among its people.

    There is one entry per person and neighbour, as positions in the lists of `Individuals`. The
    neighbours of a person stand together, with the nearest first. Unlike a matching, this relation
    is not symmetric: the neighbour may have a nearer person.

    Attributes
    ----------
    person, neighbour : tuple of int
        The person, and a near person.
    distance : tuple of float
        Their squared distance.
    score_gap : tuple of float
        Absolute difference of their scores.
    """

    person: tuple[int, ...]
    neighbour: tuple[int, ...]
    distance: tuple[float, ...]
    score_gap: tuple[float, ...]
