"""Who is near to whom: the nearest fair matching of two groups, and each person's neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairmatch.auditing.facts.nearest import CurvePoint, NearPeople, Reach
from fairmatch.auditing.sample import SamplePair
from fairmatch.auditing.scored import Scored
from fairmatch.auditing.weighting import RowWeights
from fairmatch.matching.coupling import Coupling, IndexArray
from fairmatch.matching.curve import POSITION_SLACK
from fairmatch.matching.frontier import Frontier
from fairmatch.matching.nearest import part_frontier, read_scored
from fairmatch.tables.arrays import FloatArray

ALIKE = 0.02
"""Difference up to which two scores count as alike."""

# Costs are proven to within `_TOLERANCE` of their size, and positions are read off the curve to
# within `_HEIGHT`. For two groups both are far smaller than the change that another sample makes.
# Many pairs of groups are solved more roughly, or ten groups would take ten times as long.
_TOLERANCE = {True: 1e-4, False: 1e-3}
_HEIGHT = {True: 0.02, False: 1.0}
# The distance that counts as near is the one within which this share of people have a near person.
_NEAR_SHARE = 0.9
_BLOCK_ROWS = 1024


@dataclass(frozen=True, eq=False)
class FairFrontier:
    """The matchings of two groups from the fairest to the nearest, under one model's scores.

    Attributes
    ----------
    people : SamplePair
        The people of the two groups.
    scores : array of float
        Their scores.
    is_only : bool
        Whether these are the only two groups that are matched.
    """

    people: SamplePair
    scores: FloatArray
    is_only: bool

    @cached_property
    def _found(self) -> tuple[Frontier, Coupling]:
        weights = self.people.weights.values
        given, points = read_scored(
            "audit",
            self.scores,
            self.people.codes,
            self.people.features,
            tolerance=_TOLERANCE[self.is_only],
            sample_weight=weights,
        )
        (part,) = given.parts
        frontier = part_frontier(given, part, points, _TOLERANCE[self.is_only])
        mixed = frontier.at_slack(POSITION_SLACK)
        first, second = part.in_order
        pairs = first[mixed.source], second[mixed.target], mixed.mass
        coupling = part.coupling(*pairs, given.groups, certificate=mixed.certificate)
        return frontier, self.people.oriented(coupling)

    @property
    def coupling(self) -> Coupling:
        """The nearest matching whose mean score gap exceeds the least one by at most the slack."""
        return self._found[1]

    @property
    def strict_cost(self) -> float:
        """Cost of the nearest matching with the least mean score gap."""
        return self._found[0].fairest.cost

    def curve(self, least_gap: float, smallest: float, random: float) -> tuple[CurvePoint, ...]:
        """Return points of the curve: mean score gap, least cost and position.

        Parameters
        ----------
        least_gap : float
            The least possible mean score gap.
        smallest, random : float
            Cost of the nearest matching, and expected cost of a random one.
        """
        frontier, span = self._found[0], random - smallest
        frontier.refine(_HEIGHT[self.is_only] * max(span, 0.0))
        points: list[CurvePoint] = []
        for point in frontier.points:
            # Rounding may leave two points at one gap. Only points at which the curve falls stay.
            if points and not (
                least_gap + point.excess > points[-1].gap and point.cost < points[-1].cost
            ):
                continue
            position = (point.cost - smallest) / span if span > 1e-12 * max(random, 1.0) else None
            points.append(CurvePoint(least_gap + point.excess, point.cost, position))
        return tuple(points)


def squared_distances(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the squared distance of every two points. Rounding errors of equal points become 0."""
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)
    distances: FloatArray = np.maximum(squares - 2.0 * (first @ second.T), 0.0)
    distances[distances < 1e-12 * np.maximum(squares, 1.0)] = 0.0
    return distances


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest people in the other group, for each person of two groups.

    Attributes
    ----------
    people : SamplePair
        The people of the two groups.
    n_nearest : int
        How many to keep for each person.
    """

    people: SamplePair
    n_nearest: int = 3

    @cached_property
    def sides(self) -> tuple[IndexArray, IndexArray]:
        """Positions of the people of the first group, and of those of the second."""
        return np.flatnonzero(self.people.codes == 0), np.flatnonzero(self.people.codes == 1)

    @cached_property
    def nearest(self) -> list[tuple[IndexArray, FloatArray]]:
        """For each side, the neighbours of its people and their squared distances."""
        found: list[tuple[IndexArray, FloatArray]] = []
        for own, others in (self.sides, self.sides[::-1]):
            kept = min(self.n_nearest, len(others))
            blocks = []
            for rows in np.array_split(own, -(-len(own) // _BLOCK_ROWS)):
                distances = self._distances(rows, others)
                at = np.argpartition(distances, kept - 1, axis=1)[:, :kept]
                near = np.take_along_axis(distances, at, axis=1)
                order = np.argsort(near, axis=1, kind="stable")
                at = np.take_along_axis(at, order, axis=1)
                blocks.append((others[at], np.take_along_axis(near, order, axis=1)))
            neighbours, nearest = zip(*blocks, strict=True)
            found.append((np.concatenate(neighbours), np.concatenate(nearest)))
        return found

    @cached_property
    def distance(self) -> float:
        """Squared distance within which nine in ten people have a person of the other group."""
        nearest = np.concatenate([near[:, 0] for _, near in self.nearest])
        weights = self.people.weights.take(np.concatenate(self.sides)).values
        # This quantile is a distance that occurs, so at least nine in ten are within it.
        return float(np.quantile(nearest, _NEAR_SHARE, weights=weights, method="inverted_cdf"))

    def _distances(self, rows: IndexArray, others: IndexArray) -> FloatArray:
        features = self.people.features
        assert features is not None
        return squared_distances(features[rows], features[others])

    def reach(
        self, data: Scored, codes: tuple[int, int], scores: FloatArray
    ) -> tuple[Reach, Reach]:
        """Return, for each group, the share of people with a near person who is scored alike.

        Parameters
        ----------
        data : Scored
            The rows to audit.
        codes : tuple of two int
            Codes of the two groups.
        scores : array of float
            Scores of the people of the two groups.
        """
        limit = self.distance * (1.0 + 1e-9)
        found = []
        for side, (own, others) in enumerate((self.sides, self.sides[::-1])):
            alike = [
                (
                    (self._distances(rows, others) <= limit)
                    & (np.abs(scores[rows][:, None] - scores[others]) <= ALIKE + 1e-12)
                ).any(axis=1)
                for rows in np.array_split(own, -(-len(own) // _BLOCK_ROWS))
            ]
            weights: RowWeights = self.people.weights.take(own)
            near = self.nearest[side][1][:, 0] <= limit
            found.append(
                Reach(
                    group=data.labels[codes[side]],
                    other=data.labels[codes[1 - side]],
                    distance=self.distance,
                    score_gap=ALIKE,
                    share=data.rate(np.concatenate(alike), weights, codes[side]),
                    has_near=data.rate(near, weights, codes[side]),
                )
            )
        return found[0], found[1]

    def listed(self, scores: FloatArray) -> NearPeople:
        """Return each person's nearest people, as positions in the sample."""
        persons, neighbours, distances = [], [], []
        for own, (at, near) in zip(self.sides, self.nearest, strict=True):
            persons.append(np.repeat(own, at.shape[1]))
            neighbours.append(at.ravel())
            distances.append(near.ravel())
        person, neighbour = np.concatenate(persons), np.concatenate(neighbours)
        gaps = np.abs(scores[person] - scores[neighbour])
        return NearPeople(
            tuple(self.people.at[person].tolist()),
            tuple(self.people.at[neighbour].tolist()),
            tuple(np.concatenate(distances).tolist()),
            tuple(gaps.tolist()),
        )
