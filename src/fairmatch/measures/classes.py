r"""Gaps of three or more classes: how each measure of two classes is carried over.

Decisions are compared class by class: a class against the rest is a selection. Scores are vectors
of probabilities. Their distance is half the L1 distance, which for two classes is the absolute
difference of the scores. Ordered classes have an expected place on a line, from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from scipy.spatial.distance import cdist

from fairmatch.matching.network import cheapest_plan
from fairmatch.measures.distributions import GroupScores, ScoredPeople, Settings
from fairmatch.measures.intervals import (
    GroupPair,
    Interval,
    fold,
    interval_of_scores,
    limit_of_means,
    limit_of_rates,
    norm_interval,
    rate_difference,
)
from fairmatch.people.checks import FloatArray
from fairmatch.people.outcome import Outcome

# A transport problem in the simplex has at most this many points on each side.
_MOST_POINTS = 1000
# The bootstrap of a distance of vectors counts people in this many cells.
_CELLS, _DRAWS = 96, 300

Codes = tuple[int, int]


@dataclass(frozen=True)
class ClassRates:
    """Gaps of the shares that decisions give to each class."""

    #: One of "everybody", "recall", "label". Whose decisions are compared: everybody's; those of
    #: people who belong to a class, as to whether they get it; or those of people of every class,
    #: as to all classes.
    given: str = "everybody"
    title: str = ""  #: What the gap compares, as a heading.
    agg: str = "mean"  #: "mean" or "worst_case": which gap of the true classes counts, for "label".

    def labels(self, outcome: Outcome) -> Sequence[int | None]:
        """Return the classes within which groups are compared; None is everybody."""
        if self.given == "everybody":
            return (None,)
        every = range(len(outcome.classes))
        return every if self.given == "label" else (outcome.favourable or every)

    def cells(self, label: int | None, outcome: Outcome) -> Sequence[int]:
        """Return the decided classes that are compared within one class."""
        if self.given == "recall":
            assert label is not None
            return (label,)
        return range(len(outcome.classes))

    def gaps(self, scored: ScoredPeople, codes: Codes) -> list[float]:
        """Return the largest gap over the decided classes, for every class."""
        outcome = scored.settings.outcome
        return [
            max(rate_gap(scored, codes, label, cell) for cell in self.cells(label, outcome))
            for label in self.labels(outcome)
        ]

    def joined(self, gaps: Sequence[float]) -> float:
        """Return the gap from those of the classes: their largest, or the mean for odds."""
        return _mean(gaps) if self.given == "label" and self.agg == "mean" else max(gaps)

    def interval(self, pair: GroupPair, confidence: float) -> Interval:
        """Return an interval that rests on intervals of all cells, which hold at once."""
        outcome = pair.scored.settings.outcome
        labels = self.labels(outcome)
        cells = [(label, self.cells(label, outcome)) for label in labels]
        level = 1.0 - (1.0 - confidence) / sum(len(own) for _, own in cells)
        lows, highs = [], []
        for label, own in cells:
            limits = [fold(cell_interval(pair, label, cell, level)) for cell in own]
            lows.append(max(low for low, _ in limits))
            highs.append(max(high for _, high in limits))
        method = f"{pair.method('rates')}; all classes at once by Bonferroni"
        return Interval(self.joined(lows), self.joined(highs), method=method)

    def limit(self, groups: list[list[GroupScores]], error: float, settings: Settings) -> float:
        """Return an upper limit, which holds for all classes at once."""
        outcome = settings.outcome
        labels = self.labels(outcome)
        n_cells = sum(len(self.cells(label, outcome)) for label in labels)
        limits = []
        for label, own in zip(labels, groups, strict=True):
            against = [
                [group.against_rest(cell, settings) for group in own]
                for cell in self.cells(label, outcome)
            ]
            limits.append(max(limit_of_rates(own, error / n_cells, Settings()) for own in against))
        return self.joined(limits)


@dataclass(frozen=True)
class ClassScores:
    """Gaps of the vectors of probabilities: of their means, or of their distributions.

    Ordered classes are compared by their expected place on the line.
    """

    kind: str

    def labels(self, outcome: Outcome) -> Sequence[int | None]:
        """Return None alone, because scores of everybody are compared."""
        return (None,)

    def gaps(self, scored: ScoredPeople, codes: Codes) -> list[float]:
        """Return the gap between two groups, as a list of one."""
        ordered = scored.settings.outcome.ordered

        def gap(own: ScoredPeople) -> float:
            first, second = ((own.levels if ordered else own).part(code) for code in codes)
            if self.kind == "mean_gap":
                return abs(first.mean - second.mean) if ordered else _half(_means(first, second))
            if ordered:
                return first.distances(second).wasserstein
            return simplex_distance(first, second)

        return [scored.within_strata(codes, None, gap)]

    def joined(self, gaps: Sequence[float]) -> float:
        """Return the gap itself."""
        return gaps[0]

    def interval(self, pair: GroupPair, confidence: float) -> Interval:
        """Return the interval on the line for ordered classes, and in the simplex otherwise."""
        if pair.scored.settings.outcome.ordered:
            line = GroupPair(pair.scored.levels, pair.codes, pair.n_resamples, pair.stream)
            return interval_of_scores(self.kind)(line, (None,), confidence)
        means = _mean_interval(pair, confidence)
        return means if self.kind == "mean_gap" else _distance_interval(pair, means, confidence)

    def limit(self, groups: list[list[GroupScores]], error: float, settings: Settings) -> float:
        """Return an upper limit: half the sum of the limits of all classes."""
        if settings.outcome.ordered:
            places = np.linspace(0.0, 1.0, len(settings.outcome.classes))
            line = [GroupScores(own.values @ places, own.weights) for own in groups[0]]
            return limit_of_means(line, error, Settings())
        cells = range(len(settings.outcome.classes))
        shares = [
            [GroupScores(own.values[:, cell], own.weights) for own in groups[0]] for cell in cells
        ]
        limits = [limit_of_means(own, error / len(shares), Settings()) for own in shares]
        return min(sum(limits) / 2.0, 1.0)


ClassGap: TypeAlias = ClassRates | ClassScores


def rate_gap(scored: ScoredPeople, codes: Codes, label: int | None, cell: int) -> float:
    """Return the gap between two groups' shares of one decided class, within strata if any."""

    def gap(own: ScoredPeople) -> float:
        first, second = (cell_rate(own, code, label, cell) for code in codes)
        return abs(first - second)

    return scored.within_strata(codes, label, gap)


def cell_rate(scored: ScoredPeople, code: int, label: int | None, cell: int) -> float:
    """Return the share of a group that gets one class, or its mean probability."""
    return scored.part(code, label).against_rest(cell, scored.settings).mean


def cell_interval(
    pair: GroupPair, label: int | None, cell: int, confidence: float
) -> tuple[float, float]:
    """Return the interval of the second group's share of a class minus the first's."""
    own = [part.against_rest(cell, pair.scored.settings) for part in pair.parts(label)]
    (hits, size), (others, n_others) = (group.counts(Settings()) for group in own)
    return rate_difference((hits, others), (size, n_others), confidence)


def favoured_share(scored: ScoredPeople, code: int) -> float:
    """Return the share of a group that gets a favourable class; 0 if no class is named so."""
    cells = scored.settings.outcome.favourable
    return sum(cell_rate(scored, code, None, cell) for cell in cells)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _half(difference: FloatArray) -> float:
    return float(np.abs(difference).sum() / 2.0)


def _means(first: GroupScores, second: GroupScores) -> FloatArray:
    """Return the second group's mean vector minus the first's."""
    mean, other = (
        np.average(own.values, axis=0, weights=own.weights.values) for own in (first, second)
    )
    return np.asarray(other - mean)


def simplex_distance(first: GroupScores, second: GroupScores) -> float:
    r"""Return the Wasserstein distance between two groups' vectors, with half the L1 distance.

    Notes
    -----
    Up to 1,000 different vectors of a group the transport problem is solved exactly. Of more, those
    that are close are joined into about 1,000 cells, each at the mean of its vectors. The value is
    then off by at most the mean distance between a vector and its cell.

    Examples
    --------
    >>> from fairmatch.people.weights import Weights
    >>> one, two = np.eye(3)[[0, 1]], np.eye(3)[[0, 2]]
    >>> simplex_distance(GroupScores(one, Weights(2)), GroupScores(two, Weights(2)))
    0.5
    """
    (points, mass), (others, other_mass) = (
        joined_points(own, _MOST_POINTS) for own in (first, second)
    )
    return cheapest_plan(mass, other_mass, cdist(points, others, "cityblock") / 2.0)[1]


def joined_points(group: GroupScores, most: int) -> tuple[FloatArray, FloatArray]:
    """Return the different vectors of a group with their shares, joined if there are too many."""
    values, rows = np.unique(group.values, axis=0, return_inverse=True)
    counts = np.bincount(rows.ravel(), group.weights.values, minlength=len(values))
    mass: FloatArray = counts / counts.sum()
    values, mass = values[mass > 0.0], mass[mass > 0.0]
    if len(values) <= most:
        return values, mass
    cell = _split(values, most)
    joined: FloatArray = np.bincount(cell, mass).astype(np.float64)
    means = [np.bincount(cell, mass * column) / joined for column in values.T]
    return np.column_stack(means), joined


def _split(values: FloatArray, most: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return the cell of every vector: cells are halved at the median of their widest column."""
    cells = [np.arange(len(values))]
    while 2 * len(cells) <= most and max(map(len, cells)) > 1:
        halves = []
        for rows in cells:
            if len(rows) == 1:
                halves.append(rows)
                continue
            widest = int(np.argmax(np.ptp(values[rows], axis=0)))
            order = rows[np.argsort(values[rows, widest], kind="stable")]
            halves += [order[: len(order) // 2], order[len(order) // 2 :]]
        cells = halves
    found = np.empty(len(values), dtype=np.intp)
    for cell, rows in enumerate(cells):
        found[rows] = cell
    return found


def _mean_interval(pair: GroupPair, confidence: float) -> Interval:
    """Return the interval of half the L1 distance between mean vectors."""
    first, second = pair.parts()
    generator, noise = pair.stream(2), 0.0
    for own in (first, second):
        mass = own.weights.evidence
        size = max(own.weights.size, 1.0)
        # One more person with equal shares keeps a class that nobody has from being certain.
        values = np.vstack([own.values, np.full(own.values.shape[1], 1.0 / own.values.shape[1])])
        shares = np.append(np.ones(len(own.values)) if mass is None else mass, 1.0)
        spread = np.cov(values.T, aweights=shares) if len(values) > 2 else np.eye(len(values.T))
        drawn = generator.standard_normal((pair.n_resamples, len(spread)))
        levels, axes = np.linalg.eigh(spread / size)
        noise = noise + (drawn * np.sqrt(np.maximum(levels, 0.0))) @ axes.T
    low, high = norm_interval(
        _means(first, second),
        np.asarray(noise),
        lambda vectors: np.abs(vectors).sum(axis=-1) / 2.0,
        confidence,
    )
    return Interval(low, min(high, 1.0), method="normal noise of both mean vectors")


def _distance_interval(pair: GroupPair, means: Interval, confidence: float) -> Interval:
    """Return the interval of a distance between distributions of vectors.

    By the triangle inequality the distance is wrong by at most the distance that sampling makes
    between a group and itself. The bootstrap states how large that is.
    """
    first, second = pair.parts()
    generator, value = pair.stream(3), simplex_distance(first, second)
    wrong = np.zeros(_DRAWS)
    for own in (first, second):
        points, mass = joined_points(own, _CELLS)
        cost = cdist(points, points, "cityblock") / 2.0
        size = own.weights.worth
        drawn = generator.multinomial(size, mass / mass.sum(), size=_DRAWS) / size
        wrong += [_between(row, mass, cost) for row in drawn]
    most = float(np.quantile(wrong, confidence))
    return Interval(
        max(value - most, means.low, 0.0),
        min(value + most, 1.0),
        method="bootstrap of each group in cells, and the triangle inequality",
    )


def _between(first: FloatArray, second: FloatArray, cost: FloatArray) -> float:
    """Return the distance between two distributions on the same points."""
    more, less = np.flatnonzero(first > second), np.flatnonzero(first < second)
    if not len(more) or not len(less):
        return 0.0
    moved = (first - second)[more], (second - first)[less]
    total = moved[0].sum()
    masses = moved[0] / total, moved[1] / moved[1].sum()
    return float(total) * cheapest_plan(*masses, cost[np.ix_(more, less)])[1]


@dataclass(frozen=True)
class ClassRateGap:
    """How often two groups get one class.

    Examples
    --------
    >>> ClassRateGap("a", "b", "low", None, (0.25, 0.75), 0.3, 0.6).value
    0.5
    """

    #: The two groups.
    first: Any
    second: Any
    decided: Any  #: The class that people get.
    given: Any  #: The true class of the people who are compared; None is everybody.
    rates: tuple[float, float]  #: Shares of the two groups who get the class.
    #: Interval of the second share minus the first.
    low: float
    high: float

    @property
    def value(self) -> float:
        """The absolute difference of the two shares."""
        return abs(self.rates[1] - self.rates[0])


def class_rate_gaps(gap: ClassRates, scored: ScoredPeople, confidence: float) -> list[ClassRateGap]:
    """Return the rates of all pairs of groups and cells, with intervals that hold at once."""
    outcome, names = scored.settings.outcome, scored.people.groups.labels
    pairs = list(combinations(scored.codes, 2))
    cells = [(label, cell) for label in gap.labels(outcome) for cell in gap.cells(label, outcome)]
    level = 1.0 - (1.0 - confidence) / (len(pairs) * len(cells))
    found = []
    for codes in pairs:
        pair = GroupPair(scored, codes, 0, np.random.default_rng)
        for label, cell in cells:
            rates = [cell_rate(scored, code, label, cell) for code in codes]
            limits = cell_interval(pair, label, cell, level)
            found.append(
                ClassRateGap(
                    names[codes[0]],
                    names[codes[1]],
                    outcome.classes[cell],
                    None if label is None else outcome.classes[label],
                    (rates[0], rates[1]),
                    *limits,
                )
            )
    return found
