"""Whom a model treats alike: matchings of a sample of people, and how similar the pairs are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from fairmatch.auditing.facts import (
    CurvePoint,
    Estimate,
    FeatureCost,
    MatchedScores,
    Matching,
    NearestFair,
    PairFlips,
    Pairs,
    Reach,
    Transport,
)
from fairmatch.auditing.gaps import ROUNDED
from fairmatch.auditing.people import MANY_GROUPS, Audited, Sample, SamplePair, draw_rows
from fairmatch.exceptions import SolverError
from fairmatch.matching.coupling import Coupling, IndexArray
from fairmatch.matching.fair import match_quantiles
from fairmatch.matching.nearest import POSITION_SLACK, Frontier
from fairmatch.measures.intervals import Limits, pair_mean
from fairmatch.people.checks import FloatArray
from fairmatch.people.people import People

ALIKE = 0.02
"""Difference up to which two scores count as similar, as a share of the range of scores."""

# Costs are proven to within `_TOLERANCE` of their size, and positions are read off the curve to
# within `_HEIGHT`. For two groups both are far smaller than the change that another sample makes.
# Many pairs of groups are solved more roughly, or ten groups would take ten times as long.
_TOLERANCE = {True: 1e-4, False: 1e-3}
_HEIGHT = {True: 0.02, False: 1.0}
# The distance that counts as near is the one within which this share of people have a near person.
_NEAR_SHARE = 0.9
_BLOCK_ROWS = 1024


def squared_distances(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the squared distance of every two points. Rounding errors of equal points become 0."""
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)
    distances: FloatArray = np.maximum(squares - 2.0 * (first @ second.T), 0.0)
    distances[distances < 1e-12 * np.maximum(squares, 1.0)] = 0.0
    return distances


# Dividing whole numbers, as for scores, lets a gap such as 0.3 begin its own interval.
_GAP_EDGES = np.arange(21) / 20
_QUANTILES = 0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0
# The random stream of each matching's resamples.
_STREAMS = {"fair": 10, "marginal": 11, "joint": 12, "nearest_fair": 13}
# Number of near people to list for each person. With more than two groups it is one.
_NEAREST = 3
_NEAR = {"nearest_fair", "marginal"}
_UNPROVEN = {
    "nearest_fair": "The nearest fair matching of the groups {0!r} and {1!r} could not be proven, "
    "so it is left out. {2}",
    "marginal": "The nearest matching of the groups {0!r} and {1!r} could not be proven, so it is "
    "left out, and distances are not compared with it. {2}",
    "joint": "The nearest matching of people of the groups {0!r} and {1!r} with the same label "
    "could not be proven, so it is left out. {2}",
}


@dataclass(frozen=True, eq=False)
class PairMatcher:
    """Two groups of the sample, matched under one model's scores."""

    data: Audited
    sample: Sample
    codes: tuple[int, int]

    @property
    def pair(self) -> SamplePair:
        """The people of the two groups."""
        return self.sample.pair(self.codes)

    @property
    def features(self) -> FloatArray:
        """Their features, if there is a table."""
        assert self.pair.features is not None
        return self.pair.features

    @cached_property
    def scores(self) -> FloatArray:
        """Their scores, as shares of the range of scores."""
        scores: FloatArray = self.data.shares[self.sample.rows[self.pair.at]]
        return scores

    @cached_property
    def by_rank(self) -> Coupling:
        """People at the same rank in their groups. Tied scores are matched in row order."""
        return self._coupled(None)

    @cached_property
    def fair(self) -> Coupling:
        """People at the same rank in their groups. Tied scores are matched at least cost."""
        if self.pair.features is None or self.by_rank.undetermined == 0.0:
            return self.by_rank
        return self._coupled(self.pair.features)

    def _coupled(self, features: FloatArray | None, *, farthest: bool = False) -> Coupling:
        pair, given = self.pair, (self.scores, features)
        return pair.oriented(match_quantiles(pair.people, pair.part, *given, farthest=farthest))

    def _highest_cost(self, cost: float) -> float:
        """Return the cost of the matching by rank if tied scores are matched at greatest cost."""
        if self.by_rank.undetermined == 0.0:
            return cost
        farthest = self._coupled(self.features, farthest=True)
        return max(farthest.transport_cost(self.features), cost)

    @cached_property
    def frontier(self) -> tuple[Frontier, Coupling]:
        """The matchings from the fairest to the nearest, and the nearest that is nearly fair."""
        pair, tolerance = self.pair, _TOLERANCE[self._is_only]
        frontier = Frontier(pair.people, pair.part, self.scores, pair.points, tolerance)
        return frontier, pair.oriented(frontier.at_slack(POSITION_SLACK))

    @property
    def _is_only(self) -> bool:
        return len(self.data.matched_pairs) == 1

    @cached_property
    def nearest(self) -> list[tuple[IndexArray, FloatArray]]:
        """For each side, the nearest people of the other side, and their squared distances."""
        found: list[tuple[IndexArray, FloatArray]] = []
        for own, others in (self.pair.sides, self.pair.sides[::-1]):
            kept = min(_NEAREST if len(self.data.compared) == 2 else 1, len(others))
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

    def _distances(self, rows: IndexArray, others: IndexArray) -> FloatArray:
        return squared_distances(self.features[rows], self.features[others])

    def near(self) -> Pairs:
        """Return each person's nearest people among those drawn, as positions in the sample."""
        sides = list(zip(self.pair.sides, self.nearest, strict=True))
        person = np.concatenate([np.repeat(own, at.shape[1]) for own, (at, _) in sides])
        neighbour, distance = (np.concatenate([own[k].ravel() for _, own in sides]) for k in (0, 1))
        gaps = self.data.width * np.abs(self.scores[person] - self.scores[neighbour])
        at = self.pair.at
        return _listed(at[person], at[neighbour], gaps, distance)

    def _reach(self) -> tuple[Reach, ...]:
        """Return, for each group, the share of people with a near person with a similar score."""
        nearest = np.concatenate([near[:, 0] for _, near in self.nearest])
        weights = self.pair.weights.take(np.concatenate(self.pair.sides)).values
        # This quantile is a distance that occurs, so at least nine in ten are within it.
        most = float(np.quantile(nearest, _NEAR_SHARE, weights=weights, method="inverted_cdf"))
        limit, scores, labels = most * (1.0 + 1e-9), self.scores, self.data.labels
        found = []
        for side, (own, others) in enumerate((self.pair.sides, self.pair.sides[::-1])):
            alike = [
                (
                    (self._distances(rows, others) <= limit)
                    & (np.abs(scores[rows][:, None] - scores[others]) <= ALIKE + 1e-12)
                ).any(axis=1)
                for rows in np.array_split(own, -(-len(own) // _BLOCK_ROWS))
            ]
            code, weight = self.codes[side], self.pair.weights.take(own)
            near = self.nearest[side][1][:, 0] <= limit
            found.append(
                Reach(
                    group=labels[code],
                    other=labels[self.codes[1 - side]],
                    distance=most,
                    score_gap=self.data.width * ALIKE,
                    share=self.data.rate(np.concatenate(alike), weight, code),
                    has_near=self.data.rate(near, weight, code),
                )
            )
        return tuple(found)

    @cached_property
    def found(self) -> tuple[dict[str, Coupling], tuple[str, ...]]:
        """The matchings by name, and the reasons why others are missing."""
        wanted: dict[str, Callable[[], Coupling]] = {"fair": lambda: self.fair}
        if self.pair.features is not None:
            wanted["marginal"] = lambda: self.pair.marginal
            if self.pair.has_both_labels:
                wanted["joint"] = lambda: self.pair.joint
            wanted["nearest_fair"] = lambda: self.frontier[1]
        couplings, unproven = {}, []
        for name, match in wanted.items():
            try:
                couplings[name] = match()
            except SolverError as error:
                labels = (self.data.labels[code] for code in self.codes)
                unproven.append(_UNPROVEN[name].format(*labels, error))
        return couplings, tuple(unproven)

    def facts(self) -> Matching:
        """Return the facts about these matchings, such as how far apart matched people are."""
        couplings, unproven = self.found
        first, second = (self.data.labels[code] for code in self.codes)
        sampled = self.pair.sizes
        return Matching(
            n_sampled=sampled,
            is_sample=sum(sampled) < sum(self.data.n_different[code] for code in self.codes),
            matched_gaps=tuple(self._matched(name, c) for name, c in couplings.items()),
            transport=self._transport() if "marginal" in couplings else None,
            groups=(first, second),
            unproven=unproven,
            nearest_fair=self._nearest_fair() if len(couplings.keys() & _NEAR) == 2 else None,
            reach=() if self.pair.features is None else self._reach(),
        )

    @cached_property
    def _span(self) -> tuple[float, float]:
        """The transport cost of the nearest matching, and of a random one."""
        smallest = self.found[0]["marginal"].transport_cost(self.features)
        return smallest, float(self.pair.random_costs.sum())

    def _position(self, cost: float) -> float | None:
        """Return where a cost lies between the nearest matching (0) and a random one (1)."""
        smallest, random = self._span
        if random - smallest <= 1e-12 * max(random, 1.0):
            return None
        return (cost - smallest) / (random - smallest)

    def _nearest_fair(self) -> NearestFair:
        coupling = self.found[0]["nearest_fair"]
        least = self.found[0]["fair"].gap(self.scores)
        assert coupling.certificate is not None
        cost = coupling.transport_cost(self.features)
        return NearestFair(
            slack=self.data.width * POSITION_SLACK,
            score_gap=self.data.width * coupling.gap(self.scores),
            least_gap=self.data.width * least,
            cost=cost,
            smallest=self._span[0],
            random=self._span[1],
            position=self._position(cost),
            strict_position=self._position(self.frontier[0].fairest.cost),
            features=self._features(coupling),
            curve=self._curve(least),
            solver_gap=coupling.certificate.relative_gap,
        )

    def _curve(self, least_gap: float) -> tuple[CurvePoint, ...]:
        """Return points of the curve: mean score gap, least cost and position."""
        frontier, points = self.frontier[0], list[CurvePoint]()
        smallest, random = self._span
        frontier.refine(_HEIGHT[self._is_only] * max(random - smallest, 0.0))
        for point in frontier.points:
            gap = self.data.width * (least_gap + point.excess)
            # Rounding may leave two points at one gap. Only points at which the curve falls stay.
            if not points or (gap > points[-1].gap and point.cost < points[-1].cost):
                points.append(CurvePoint(gap, point.cost, self._position(point.cost)))
        return tuple(points)

    def _features(self, coupling: Coupling) -> tuple[FeatureCost, ...]:
        """Return the cost of a matching by column, the largest part first."""
        couplings = coupling, self.found[0]["marginal"]
        costs, least = (own.costs_by_feature(self.features) for own in couplings)
        total, random = float(costs.sum()), self.pair.random_costs
        parts = [
            FeatureCost(
                name=name,
                cost=float(costs[at].sum()),
                smallest=float(least[at].sum()),
                random=float(random[at].sum()),
                share=float(costs[at].sum() / total) if total > 0.0 else 0.0,
            )
            for name, at in self.data.roster.feature_groups.items()
        ]
        return tuple(sorted(parts, key=lambda part: -part.cost))

    def _matched(self, name: str, coupling: Coupling) -> MatchedScores:
        gaps, mass, width = coupling.gaps(self.scores), coupling.mass, self.data.width
        n_first, n_second = self.pair.sizes
        members = coupling.source_index if n_first <= n_second else coupling.target_index
        generator = self.data.pair_generator(_STREAMS[name], self.codes)
        confidence, n_resamples = self.data.pair_confidence, self.data.settings.n_resamples
        if self.pair.weights.is_counts:
            n_people = min(n_first, n_second)
            limits = _counted_mean(gaps, mass, n_people, confidence, n_resamples, generator)
        else:
            limits = pair_mean(
                gaps, mass, members, confidence, n_resamples=n_resamples, generator=generator
            )
        quantiles = np.quantile(gaps, _QUANTILES, weights=mass, method="inverted_cdf")
        features = self.pair.features
        return MatchedScores(
            matching=name,
            gap=Estimate(width * float(gaps @ mass), width * limits[0], width * limits[1]),
            quantiles={
                f"{q:g}": width * float(v) for q, v in zip(_QUANTILES, quantiles, strict=True)
            },
            histogram=tuple(
                np.histogram(gaps.round(ROUNDED), bins=_GAP_EDGES, weights=mass)[0].tolist()
            ),
            flips=self._flips(coupling) if self.data.decides else None,
            transport_cost=None if features is None else coupling.transport_cost(features),
        )

    def _flips(self, coupling: Coupling) -> PairFlips:
        """Return the decisions on the two people of a pair, as shares of the pairs."""
        selected, mass = self.data.selected[self.sample.rows[self.pair.at]], coupling.mass
        first, second = selected[coupling.source_index], selected[coupling.target_index]
        return PairFlips(
            both=float(mass[first & second].sum()),
            neither=float(mass[~first & ~second].sum()),
            first_only=float(mass[first & ~second].sum()),
            second_only=float(mass[~first & second].sum()),
        )

    def _transport(self) -> Transport:
        certificate = self.found[0]["marginal"].certificate
        assert certificate is not None
        cost = self.fair.transport_cost(self.features)
        high = self._highest_cost(cost)
        return Transport(
            cost=cost,
            cost_high=high,
            undetermined=self.by_rank.undetermined,
            smallest=self._span[0],
            random=self._span[1],
            relative=self._position(cost),
            relative_high=self._position(high),
            features=self._features(self.fair),
            solver_gap=certificate.relative_gap,
        )

    def pairs(self, name: str) -> Pairs:
        """Return the pairs of a matching, as positions in the sample."""
        coupling, features, at = self.found[0][name], self.pair.features, self.pair.at
        return _listed(
            at[coupling.source_index],
            at[coupling.target_index],
            self.data.width * coupling.gaps(self.scores),
            np.empty(0) if features is None else coupling.costs(features),
            coupling.mass,
        )


def _listed(
    first: IndexArray,
    second: IndexArray,
    gaps: FloatArray,
    distance: FloatArray,
    mass: FloatArray | None = None,
) -> Pairs:
    """Return pairs as plain numbers. By default all have the same weight."""
    mass = np.full(len(first), 1.0 / max(len(first), 1)) if mass is None else mass
    return Pairs(*(tuple(own.tolist()) for own in (first, second, mass, gaps, distance)))


def _counted_mean(
    values: FloatArray,
    mass: FloatArray,
    n_people: int,
    confidence: float,
    n_resamples: int,
    generator: np.random.Generator,
) -> Limits:
    """Return the interval of a mean over pairs, each of which stands for many people."""
    means = generator.multinomial(n_people, mass / mass.sum(), size=n_resamples) @ values
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(means / n_people, [tail, 1.0 - tail])
    return float(low), float(high)


def join_pairs(matchers: list[PairMatcher]) -> dict[str, Pairs]:
    """Return the pairs of every matching, joined over all pairs of groups."""
    parts = {
        name: [matcher.pairs(name) for matcher in matchers if name in matcher.found[0]]
        for name in _STREAMS
    }
    return {name: joined(own) for name, own in parts.items() if own}


def joined(parts: list[Pairs]) -> Pairs:
    """Return the pairs of several parts, with weights that sum to 1."""
    every = [
        tuple(value for part in parts for value in getattr(part, own.name)) for own in fields(Pairs)
    ]
    found = Pairs(*every)
    return replace(found, mass=tuple(value / len(parts) for value in found.mass))


N_ACROSS = 128
"""How many people of each group are matched with those of every other group."""

NEAR = "near"
"""Name of the pairs of each person with the nearest person drawn. They are not symmetric."""


def match_across(data: Audited, sample: Sample) -> dict[str, Pairs]:
    """Match some people of every two groups, neither of which is the reference.

    Notes
    -----
    K groups make K (K - 1) / 2 pairs. The audit makes statements only about the pairs with the
    reference group, and matches most people there. It matches few people of the other pairs, to
    save time.
    """
    codes = [own for own in data.pairs if own not in data.matched_pairs]
    if not codes or len(data.compared) > MANY_GROUPS:
        return {}
    everybody = sample.people
    groups, generator = everybody.groups, data.settings.generator(6)
    drawn, weights = draw_rows(groups, everybody.weight, N_ACROSS, generator)
    few = Sample(
        rows=sample.rows[drawn],
        # Without labels: one matching by columns is enough to look at.
        people=People(groups.take(drawn), weight=weights),
        features=None if sample.features is None else sample.features[drawn],
    )
    found = join_pairs([PairMatcher(data, few, own) for own in codes])
    placed = {
        name: replace(pairs, first=_placed(pairs.first, drawn), second=_placed(pairs.second, drawn))
        for name, pairs in found.items()
    }
    return (
        placed if sample.features is None else {**placed, NEAR: _near(data, sample, drawn, codes)}
    )


def _placed(people: tuple[int, ...], drawn: IndexArray) -> tuple[int, ...]:
    return tuple(drawn[list(people)].tolist())


def _near(data: Audited, sample: Sample, drawn: IndexArray, codes: list[tuple[int, int]]) -> Pairs:
    """Return the nearest person of the other group, for each person drawn and each pair of groups.

    The nearest person is searched among all people of the sample.
    """
    features = sample.features
    assert features is not None
    of, scores = sample.people.groups.codes, data.shares[sample.rows]
    persons, neighbours, distances = [], [], []
    for first, second in [*codes, *(own[::-1] for own in codes)]:
        own, others = drawn[of[drawn] == first], np.flatnonzero(of == second)
        apart = squared_distances(features[own], features[others])
        at = np.argmin(apart, axis=1)
        persons.append(own)
        neighbours.append(others[at])
        distances.append(apart[np.arange(len(own)), at])
    person, neighbour = np.concatenate(persons), np.concatenate(neighbours)
    gaps = data.width * np.abs(scores[person] - scores[neighbour])
    return _listed(person, neighbour, gaps, np.concatenate(distances))
