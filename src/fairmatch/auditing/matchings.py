"""Who is treated like whom: the matchings of a sample of people, and how far apart they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairmatch.auditing.facts import (
    Estimate,
    FeatureCost,
    Gap,
    Individuals,
    MatchedGap,
    Matching,
    PairFlips,
    Pairs,
    Transport,
)
from fairmatch.auditing.groups import Scored
from fairmatch.matching.coupling import Coupling, IndexArray
from fairmatch.matching.matchers import OptimalTransportMatcher
from fairmatch.matching.quantiles import fair_matching
from fairmatch.measures.gaps import MEASURES
from fairmatch.measures.intervals import pair_mean
from fairmatch.tables.arrays import BoolArray, FloatArray
from fairmatch.tables.columns import Column
from fairmatch.tables.groups import Groups

# The paper's alpha of the joint map (Section 5.3).
LABEL_WEIGHT = 100.0
GAP_BINS = 20
_QUANTILES = 0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0


@dataclass(frozen=True, eq=False)
class Sample:
    """People drawn of each group, with the matchings that no model has a say in.

    Attributes
    ----------
    rows : array of int
        Row positions in the table, in the table's order.
    groups : Groups
        Of these rows.
    features : array or None
        Encoded features of these rows.
    feature_groups : dict
        Column of the table to its encoded columns.
    positive : array of bool or None
        Labels of these rows.
    n_table : int
        Rows of the whole table.
    """

    rows: IndexArray
    groups: Groups
    features: FloatArray | None
    feature_groups: dict[str, slice]
    positive: BoolArray | None
    n_table: int

    @cached_property
    def marginal(self) -> Coupling:
        """The nearest matching."""
        assert self.features is not None
        return OptimalTransportMatcher().match(self.features, self.groups.codes)

    @cached_property
    def joint(self) -> Coupling:
        """The nearest matching of people with the same label."""
        assert self.features is not None
        matcher = OptimalTransportMatcher(label_weight=LABEL_WEIGHT)
        return matcher.match(self.features, self.groups.codes, self.positive)

    @cached_property
    def random_costs(self) -> FloatArray:
        r"""Expected cost of a random matching, by encoded column.

        :math:`E (X_0 - X_1)^2` of independent people is the sum of both variances and of the
        squared difference of the means.
        """
        assert self.features is not None
        parts = [self.features[self.groups.is_group(code)] for code in (0, 1)]
        shift = parts[0].mean(axis=0) - parts[1].mean(axis=0)
        costs: FloatArray = parts[0].var(axis=0) + parts[1].var(axis=0) + shift**2
        return costs


def draw_rows(groups: Groups, n_sample: int, seed: int) -> IndexArray:
    """Draw people of each group without replacement; everybody of a group that is smaller."""
    generator = np.random.default_rng([seed, 2])
    drawn = []
    for code in (0, 1):
        rows = groups.rows(code)
        if len(rows) > n_sample:
            rows = generator.choice(rows, size=n_sample, replace=False, shuffle=False)
        drawn.append(rows)
    return np.sort(np.concatenate(drawn))


def match_people(data: Scored, sample: Sample) -> tuple[Matching, dict[str, Pairs]]:
    """Match the people of the sample, and say how far apart matched people are."""
    if data.rows_refused:
        return Matching((0, 0), False, refused=data.rows_refused), {}
    scores = data.scores[sample.rows]
    fair = fair_matching(scores, sample.groups.codes, X=sample.features)
    couplings = {"fair": fair}
    if sample.features is not None:
        couplings["marginal"] = sample.marginal
        if sample.positive is not None and 0 < sample.positive.sum() < len(sample.positive):
            couplings["joint"] = sample.joint
    gaps = tuple(
        _matched_gap(name, coupling, data, sample, part)
        for part, (name, coupling) in enumerate(couplings.items())
    )
    sizes = np.bincount(sample.groups.codes, minlength=2).tolist()
    matching = Matching(
        n_sampled=(sizes[0], sizes[1]),
        is_sample=len(sample.rows) < sample.n_table,
        matched_gaps=gaps,
        transport=_transport(scores, fair, sample),
    )
    return matching, {name: _pairs(c, scores, sample) for name, c in couplings.items()}


def _matched_gap(
    name: str, coupling: Coupling, data: Scored, sample: Sample, part: int
) -> MatchedGap:
    scores, accepted = data.scores[sample.rows], data.accepted[sample.rows]
    gaps, mass = coupling.gaps(scores), coupling.mass
    first, second = accepted[coupling.source_index], accepted[coupling.target_index]
    sizes = np.bincount(sample.groups.codes, minlength=2)
    members = coupling.source_index if sizes[0] <= sizes[1] else coupling.target_index
    limits = pair_mean(
        gaps,
        mass,
        members,
        data.confidence,
        n_resamples=data.n_resamples,
        generator=data.generator(10 + part),
    )
    quantiles = np.quantile(gaps, _QUANTILES, weights=mass, method="inverted_cdf")
    return MatchedGap(
        matching=name,
        gap=Estimate(float(gaps @ mass), *limits),
        quantiles={f"{q:g}": float(v) for q, v in zip(_QUANTILES, quantiles, strict=True)},
        histogram=tuple(
            np.histogram(gaps, bins=GAP_BINS, range=(0.0, 1.0), weights=mass)[0].tolist()
        ),
        flips=PairFlips(
            both=float(mass[first & second].sum()),
            neither=float(mass[~first & ~second].sum()),
            first_only=float(mass[first & ~second].sum()),
            second_only=float(mass[~first & second].sum()),
        ),
        transport_cost=None
        if sample.features is None
        else coupling.transport_cost(sample.features),
    )


def matched_parity_gap(matching: Matching) -> list[Gap]:
    """Give the mean score gap of the nearest people as one more gap, where they were matched."""
    method = "people of the smaller group resampled with their nearest people of the other"
    symbol = MEASURES["matched_parity_gap"].symbol
    return [
        Gap("matched_parity_gap", symbol, e.value, e.low, e.high, None, None, method)
        for e in (found.gap for found in matching.matched_gaps if found.matching == "marginal")
    ]


def _transport(scores: FloatArray, fair: Coupling, sample: Sample) -> Transport | None:
    if sample.features is None:
        return None
    features = sample.features
    by_column = fair.costs_by_feature(features)
    smallest_by_column = sample.marginal.costs_by_feature(features)
    cost, smallest = float(by_column.sum()), float(smallest_by_column.sum())
    random = float(sample.random_costs.sum())
    undetermined = fair_matching(scores, sample.groups.codes).undetermined
    high = cost
    if undetermined > 0.0:
        # |x + x'|² and -|x - x'|² differ by what the marginals fix, so the nearest to the mirror
        # image is the farthest.
        mirrored = np.where(sample.groups.is_group(1)[:, None], -features, features)
        farthest = fair_matching(scores, sample.groups.codes, X=mirrored)
        high = max(farthest.transport_cost(features), cost)
    parts = [
        FeatureCost(
            name=name,
            cost=float(by_column[at].sum()),
            smallest=float(smallest_by_column[at].sum()),
            random=float(sample.random_costs[at].sum()),
            share=float(by_column[at].sum() / cost) if cost > 0.0 else 0.0,
        )
        for name, at in sample.feature_groups.items()
    ]
    certificate = sample.marginal.certificate
    assert certificate is not None
    return Transport(
        cost=cost,
        cost_high=high,
        undetermined=undetermined,
        smallest=smallest,
        random=random,
        relative=_relative(cost, smallest, random),
        relative_high=_relative(high, smallest, random),
        features=tuple(sorted(parts, key=lambda part: -part.cost)),
        solver_gap=certificate.relative_gap,
    )


def _relative(cost: float, smallest: float, random: float) -> float | None:
    if random - smallest <= 1e-12 * max(random, 1.0):
        return None
    return (cost - smallest) / (random - smallest)


def _pairs(coupling: Coupling, scores: FloatArray, sample: Sample) -> Pairs:
    distance = [] if sample.features is None else coupling.costs(sample.features).tolist()
    return Pairs(
        first=tuple(coupling.source_index.tolist()),
        second=tuple(coupling.target_index.tolist()),
        mass=tuple(coupling.mass.tolist()),
        score_gap=tuple(coupling.gaps(scores).tolist()),
        distance=tuple(distance),
    )


def list_people(
    data: Scored, sample: Sample, columns: list[Column], ids: list[str], pairs: dict[str, Pairs]
) -> Individuals:
    """Write down the people of the sample."""
    positive = () if sample.positive is None else sample.positive.astype(int).tolist()
    return Individuals(
        ids=tuple(ids[row] for row in sample.rows) if ids else tuple(map(str, sample.rows)),
        rows=tuple(sample.rows.tolist()),
        group=tuple(sample.groups.codes.tolist()),
        scores=tuple(data.scores[sample.rows].tolist()),
        labels=tuple(positive),
        columns={column.name: _values(column, sample.rows) for column in columns},
        hidden=(),
        pairs=pairs,
    )


def _values(column: Column, rows: IndexArray) -> tuple[str | float | None, ...]:
    values, missing = column.values[rows].tolist(), column.missing[rows].tolist()
    if column.levels is None:
        return tuple(None if m else float(v) for v, m in zip(values, missing, strict=True))
    levels = [str(level) for level in column.levels]
    return tuple(None if m else levels[v] for v, m in zip(values, missing, strict=True))
