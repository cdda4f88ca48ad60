"""How near the people are whom a model treats alike, read most kindly; and who is near to whom."""

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
        Mean score gap that is allowed.
    cost : float
        The least mean squared distance of matched people then.
    position : float or None
        The cost between that of the nearest matching (0) and of a random one (1).
    """

    gap: float
    cost: float
    position: float | None


@dataclass(frozen=True)
class NearestFair:
    """The nearest of all matchings whose mean score gap is (nearly) the least possible one.

    Many matchings have the least mean score gap. Equal quantiles are one of them, and nearly
    random in who the people are; this is the one in which matched people are most alike.

    Attributes
    ----------
    slack : float
        By how much the mean score gap may exceed the least possible one.
    score_gap, least_gap : float
        Mean score gap of this matching, and the least possible one (the Wasserstein distance of
        the scores), of the sample.
    cost, smallest, random : float
        Mean squared distance of matched people: of this matching, of the nearest matching of the
        same people, and expected of a random one.
    position : float or None
        ``(cost - smallest) / (random - smallest)``: 0 is as near as possible, 1 is as random.
        None where the two are equal.
    strict_position : float or None
        The same without any slack.
    features : tuple of FeatureCost
        The cost by column of the table, the largest part first.
    curve : tuple of CurvePoint
        From the least mean score gap to that of the nearest matching.
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
    """For how many people of a group somebody near in another group is scored alike.

    Attributes
    ----------
    group, other : str
        The group whose people are counted, and the one in which somebody near is looked for.
    distance : float
        Squared distance up to which somebody is near. Of the people of the two groups who were
        drawn, weighted as they are, nine in ten have somebody of the other group as near as that.
    score_gap : float
        Difference up to which two scores are alike.
    share : Estimate
        Share of the group's people who have somebody near and scored alike.
    has_near : Estimate
        Share of the group's people who have somebody near at all.
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

    One entry per person and neighbour, as positions in the lists of `Individuals`; those of a
    person stand together, the nearest first. Unlike a matching this is not symmetric: somebody's
    nearest person may have a nearer one.

    Attributes
    ----------
    person, neighbour : tuple of int
        The person, and somebody near.
    distance : tuple of float
        Their squared distance.
    score_gap : tuple of float
        Absolute difference of their scores.
    """

    person: tuple[int, ...]
    neighbour: tuple[int, ...]
    distance: tuple[float, ...]
    score_gap: tuple[float, ...]
