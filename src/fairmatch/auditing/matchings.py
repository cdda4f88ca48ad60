"""Who is treated like whom: matchings of a sample of people, and how far apart the pairs are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairmatch.auditing.facts import (
    Estimate,
    FeatureCost,
    Gap,
    MatchedScores,
    Matching,
    NearestFair,
    NearPeople,
    PairFlips,
    Pairs,
    Transport,
)
from fairmatch.auditing.groups import ROUNDED
from fairmatch.auditing.nearness import FairFrontier, Neighbours
from fairmatch.auditing.sample import Sample, SamplePair
from fairmatch.auditing.scored import Scored
from fairmatch.exceptions import SolverError
from fairmatch.matching.coupling import Coupling
from fairmatch.matching.curve import POSITION_SLACK
from fairmatch.matching.quantiles import fair_matching
from fairmatch.measures import MEASURES
from fairmatch.measures.closed_forms import Limits
from fairmatch.measures.intervals import pair_mean
from fairmatch.tables.arrays import FloatArray

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
    """Two groups of the sample, matched under one model's scores.

    Attributes
    ----------
    data : Scored
        The rows to audit.
    sample : Sample
        The people drawn.
    codes : tuple of two int
        Codes of the first group and of the second.
    """

    data: Scored
    sample: Sample
    codes: tuple[int, int]

    @property
    def people(self) -> SamplePair:
        """The people of the two groups."""
        return self.sample.pair(self.codes)

    @cached_property
    def scores(self) -> FloatArray:
        """Their scores."""
        scores: FloatArray = self.data.scores[self.sample.rows[self.people.at]]
        return scores

    @cached_property
    def by_rank(self) -> Coupling:
        """People at the same rank in their groups. Tied scores are matched in row order."""
        return self._coupled(None)

    @cached_property
    def fair(self) -> Coupling:
        """People at the same rank in their groups. Tied scores are matched at least cost."""
        if self.people.features is None or self.by_rank.undetermined == 0.0:
            return self.by_rank
        return self._coupled(self.people.features)

    def _coupled(self, features: FloatArray | None) -> Coupling:
        weights = self.people.weights.values
        return self.people.oriented(
            fair_matching(self.scores, self.people.codes, X=features, sample_weight=weights)
        )

    def _highest_cost(self, cost: float) -> float:
        """Return the cost of the matching by rank if tied scores are matched at greatest cost."""
        features = self.people.features
        assert features is not None
        if self.by_rank.undetermined == 0.0:
            return cost
        # |x + x'|² and -|x - x'|² differ by a constant that the marginals fix. So the nearest
        # matching to the mirror image is the farthest matching.
        mirrored = np.where((self.people.codes == 1)[:, None], -features, features)
        return max(self._coupled(mirrored).transport_cost(features), cost)

    @cached_property
    def frontier(self) -> FairFrontier:
        """The matchings from the fairest to the nearest."""
        return FairFrontier(self.people, self.scores, len(self.data.matched_pairs) == 1)

    @cached_property
    def neighbours(self) -> Neighbours:
        """The nearest people of the other group."""
        return Neighbours(self.people, _NEAREST if len(self.data.compared) == 2 else 1)

    def near(self) -> NearPeople | None:
        """Return each person's nearest people among those drawn, or None without features."""
        return None if self.people.features is None else self.neighbours.listed(self.scores)

    @cached_property
    def found(self) -> tuple[dict[str, Coupling], tuple[str, ...]]:
        """The matchings by name, and the reasons why others are missing."""
        wanted: dict[str, Callable[[], Coupling]] = {"fair": lambda: self.fair}
        if self.people.features is not None:
            wanted["marginal"] = lambda: self.people.marginal
            if self.people.has_both_labels:
                wanted["joint"] = lambda: self.people.joint
            wanted["nearest_fair"] = lambda: self.frontier.coupling
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
        sampled = self.people.sizes
        return Matching(
            n_sampled=sampled,
            is_sample=sum(sampled) < sum(self.data.sizes[code] for code in self.codes),
            matched_gaps=tuple(self._matched(name, c) for name, c in couplings.items()),
            transport=self._transport(couplings["marginal"]) if "marginal" in couplings else None,
            groups=(first, second),
            unproven=unproven,
            nearest_fair=self._nearest_fair() if len(couplings.keys() & _NEAR) == 2 else None,
            reach=()
            if self.people.features is None
            else self.neighbours.reach(self.data, self.codes, self.scores),
        )

    def _nearest_fair(self) -> NearestFair:
        features, random = self.people.features, float(self.people.random_costs.sum())
        assert features is not None
        couplings = self.found[0]
        coupling, nearest = couplings["nearest_fair"], couplings["marginal"]
        columns = self._features(coupling, nearest)
        span = nearest.transport_cost(features), random
        gap, least = coupling.gap(self.scores), couplings["fair"].gap(self.scores)
        assert coupling.certificate is not None
        cost = coupling.transport_cost(features)
        return NearestFair(
            slack=POSITION_SLACK,
            score_gap=gap,
            least_gap=least,
            cost=cost,
            smallest=span[0],
            random=random,
            position=_relative(cost, *span),
            strict_position=_relative(self.frontier.strict_cost, *span),
            features=columns,
            curve=self.frontier.curve(least, *span),
            solver_gap=coupling.certificate.relative_gap,
        )

    def _features(self, coupling: Coupling, nearest: Coupling) -> tuple[FeatureCost, ...]:
        """Return the cost of a matching by column, the largest part first."""
        features, random = self.people.features, self.people.random_costs
        assert features is not None
        costs, least = (own.costs_by_feature(features) for own in (coupling, nearest))
        total = float(costs.sum())
        parts = [
            FeatureCost(
                name=name,
                cost=float(costs[at].sum()),
                smallest=float(least[at].sum()),
                random=float(random[at].sum()),
                share=float(costs[at].sum() / total) if total > 0.0 else 0.0,
            )
            for name, at in self.sample.feature_groups.items()
        ]
        return tuple(sorted(parts, key=lambda part: -part.cost))

    def _matched(self, name: str, coupling: Coupling) -> MatchedScores:
        gaps, mass = coupling.gaps(self.scores), coupling.mass
        n_first, n_second = self.people.sizes
        members = coupling.source_index if n_first <= n_second else coupling.target_index
        generator = self.data.pair_generator(_STREAMS[name], self.codes)
        confidence, n_resamples = self.data.pair_confidence, self.data.settings.n_resamples
        if self.people.weights.is_counts:
            n_people = min(n_first, n_second)
            limits = _counted_mean(gaps, mass, n_people, confidence, n_resamples, generator)
        else:
            limits = pair_mean(
                gaps, mass, members, confidence, n_resamples=n_resamples, generator=generator
            )
        quantiles = np.quantile(gaps, _QUANTILES, weights=mass, method="inverted_cdf")
        features = self.people.features
        return MatchedScores(
            matching=name,
            gap=Estimate(float(gaps @ mass), *limits),
            quantiles={f"{q:g}": float(v) for q, v in zip(_QUANTILES, quantiles, strict=True)},
            histogram=tuple(
                np.histogram(gaps.round(ROUNDED), bins=_GAP_EDGES, weights=mass)[0].tolist()
            ),
            flips=None if self.data.settings.is_real else self._flips(coupling),
            transport_cost=None if features is None else coupling.transport_cost(features),
        )

    def _flips(self, coupling: Coupling) -> PairFlips:
        """Return the decisions on the two people of a pair, as shares of the pairs."""
        selected, mass = self.data.selected[self.sample.rows[self.people.at]], coupling.mass
        first, second = selected[coupling.source_index], selected[coupling.target_index]
        return PairFlips(
            both=float(mass[first & second].sum()),
            neither=float(mass[~first & ~second].sum()),
            first_only=float(mass[first & ~second].sum()),
            second_only=float(mass[~first & second].sum()),
        )

    def _transport(self, nearest: Coupling) -> Transport:
        features, random = self.people.features, self.people.random_costs
        assert features is not None
        cost, smallest = (own.transport_cost(features) for own in (self.fair, nearest))
        high = self._highest_cost(cost)
        certificate = nearest.certificate
        assert certificate is not None
        span = smallest, float(random.sum())
        return Transport(
            cost=cost,
            cost_high=high,
            undetermined=self.by_rank.undetermined,
            smallest=smallest,
            random=span[1],
            relative=_relative(cost, *span),
            relative_high=_relative(high, *span),
            features=self._features(self.fair, nearest),
            solver_gap=certificate.relative_gap,
        )

    def pairs(self, name: str) -> Pairs:
        """Return the pairs of a matching, as positions in the sample."""
        coupling, features = self.found[0][name], self.people.features
        distance = [] if features is None else coupling.costs(features).tolist()
        return Pairs(
            first=tuple(self.people.at[coupling.source_index].tolist()),
            second=tuple(self.people.at[coupling.target_index].tolist()),
            mass=tuple(coupling.mass.tolist()),
            score_gap=tuple(coupling.gaps(self.scores).tolist()),
            distance=tuple(distance),
        )


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


def _relative(cost: float, smallest: float, random: float) -> float | None:
    if random - smallest <= 1e-12 * max(random, 1.0):
        return None
    return (cost - smallest) / (random - smallest)


def matched_parity_gaps(matchings: tuple[Matching, ...]) -> list[Gap]:
    """Return the mean score gap of the nearest matching, for each pair of groups."""
    method = "people of the smaller group resampled with their nearest people of the other"
    symbol = MEASURES["matched_parity_gap"].symbol
    return [
        Gap(
            "matched_parity_gap",
            symbol,
            found.gap.value,
            found.gap.low,
            found.gap.high,
            None,
            None,
            method,
            groups=matching.groups,
        )
        for matching in matchings
        for found in matching.matched_gaps
        if found.matching == "marginal"
    ]


def join_pairs(matchers: list[PairMatcher]) -> dict[str, Pairs]:
    """Return the pairs of every matching, joined over all pairs of groups."""
    joined: dict[str, Pairs] = {}
    for name in _STREAMS:
        parts = [matcher.pairs(name) for matcher in matchers if name in matcher.found[0]]
        if parts:
            joined[name] = Pairs(
                first=tuple(value for part in parts for value in part.first),
                second=tuple(value for part in parts for value in part.second),
                mass=tuple(value / len(parts) for part in parts for value in part.mass),
                score_gap=tuple(value for part in parts for value in part.score_gap),
                distance=tuple(value for part in parts for value in part.distance),
            )
    return joined
