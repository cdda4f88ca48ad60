"""The scores of people by group and class. Every group is sorted once for all measures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from fairmatch.exceptions import GroupError, LabelError
from fairmatch.matching.network import cheapest_plan
from fairmatch.people.checks import BoolArray, FloatArray
from fairmatch.people.outcome import PROBABILITY, Outcome, class_levels, largest_class
from fairmatch.people.people import People
from fairmatch.people.weights import Weights

# Two sorted groups are merged in blocks of about this many scores, which stay in the cache.
_BLOCK_ROWS = 2**20
# A transport problem in the simplex has at most this many points on each side.
_MOST_POINTS = 1000


@dataclass(frozen=True)
class Distances:
    """How far two score distributions are from each other."""

    wasserstein: float
    kolmogorov_smirnov: float
    total_variation: float


Sorted: TypeAlias = tuple[FloatArray, FloatArray | None]


def _distances(first: Sorted, second: Sorted) -> Distances:
    """Compute every distance between two groups in one merge of their sorted scores."""
    (values, mass), (others, other_mass) = first, second
    area = largest = moved = last = 0.0
    carried: Any = 0
    # Weights are whole numbers without weights, so equal distributions differ by exactly zero.
    total, other_total = (len(own) if by is None else by.sum() for own, by in (first, second))
    for mine, theirs, following in _blocks(values, others):
        merged = np.concatenate([values[mine], others[theirs]])
        # A stable sort of two sorted runs is one merge, in linear time.
        order = np.argsort(merged, kind="stable")
        merged = merged[order]
        if mass is None or other_mass is None:
            steps = np.where(order < mine.stop - mine.start, other_total, -total)
        else:
            steps = np.append(mass[mine] * other_total, other_mass[theirs] * -total)[order]
        steps[0] += carried
        sums = np.cumsum(steps)
        carried, difference = sums[-1], sums / (float(total) * float(other_total))
        widths = np.diff(merged if following is None else np.append(merged, following))
        area += float(np.abs(difference[: len(widths)]) @ widths)
        # Among tied scores only the last difference is right. The others have no width.
        difference = difference[np.append(merged[1:] != merged[:-1], True)]
        largest = max(largest, float(np.abs(difference).max()))
        moved += float(np.abs(np.diff(difference, prepend=last)).sum())
        last = float(difference[-1])
    return Distances(area, largest, moved / 2.0)


def _blocks(first: FloatArray, second: FloatArray) -> Iterator[tuple[slice, slice, float | None]]:
    """Yield the places of each block in both groups, and the score that follows the block.

    Tied scores stay in one block.
    """
    sizes, longer = [len(first), len(second)], max(first, second, key=len)
    n_blocks = -(-sum(sizes) // _BLOCK_ROWS)
    cuts = longer[np.arange(1, n_blocks) * len(longer) // n_blocks]
    ends = [np.searchsorted(values, cuts, "right") for values in (first, second)]
    places = np.vstack([[0, 0], np.column_stack(ends), sizes]).tolist()
    for start, end in pairwise(places):
        if end != start:
            ahead = (*first[end[0] :][:1], *second[end[1] :][:1])
            yield slice(start[0], end[0]), slice(start[1], end[1]), min(ahead, default=None)


Points: TypeAlias = tuple[FloatArray, FloatArray | None]


def simplex_distance(first: Points, second: Points) -> float:
    """Return the Wasserstein distance between two groups' vectors, with half the L1 distance.

    With up to 1,000 different vectors in a group, the transport problem is solved exactly. With
    more, close vectors are joined into about 1,000 cells, each at the mean of its vectors. The
    value is then off by at most the mean distance between a vector and its cell.
    """
    (points, mass), (others, other_mass) = (
        joined_points(*own, _MOST_POINTS) for own in (first, second)
    )
    return cheapest_plan(mass, other_mass, half_l1(points, others))[1]


def half_l1(points: FloatArray, others: FloatArray) -> FloatArray:
    """Return the distance of every vector to every other one."""
    return np.asarray(cdist(points, others, "cityblock") / 2.0)


def joined_points(
    vectors: FloatArray, weights: FloatArray | None, most: int
) -> tuple[FloatArray, FloatArray]:
    """Return the different vectors of a group with their shares, joined if there are too many."""
    values, rows = np.unique(vectors, axis=0, return_inverse=True)
    counts = np.bincount(rows.ravel(), weights, minlength=len(values))
    mass: FloatArray = counts / counts.sum()
    values, mass = values[mass > 0.0], mass[mass > 0.0]
    if len(values) <= most:
        return values, mass
    cell = _split(values, most)
    joined: FloatArray = np.bincount(cell, mass).astype(np.float64)
    means = [np.bincount(cell, mass * column) / joined for column in values.T]
    return np.column_stack(means), joined


def _split(values: FloatArray, most: int) -> NDArray[np.intp]:
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


@dataclass(frozen=True)
class Settings:
    """What measures need to know besides people and scores."""

    threshold: float | None = 0.5
    bins: int | None = 20
    favourable: str = "high"
    outcome: Outcome = PROBABILITY
    within: tuple[float, float] = (0.0, 1.0)
    spread: float | None = None

    @property
    def width(self) -> float:
        """Length of the range of the scores."""
        return self.within[1] - self.within[0]

    def shares(self, scores: FloatArray) -> FloatArray:
        """Return scores as shares of their range. Probabilities are returned unchanged."""
        if not self.outcome.has_unit:
            return scores
        return np.asarray(np.clip((scores - self.within[0]) / self.width, 0.0, 1.0))


class GroupScores:
    """The scores of one group of people. They are sorted once, for all comparisons."""

    def __init__(self, values: FloatArray, weights: Weights) -> None:
        self.values, self.weights = values, weights
        self._distances: dict[GroupScores, Distances] = {}
        self._cells: dict[int, GroupScores] = {}

    @cached_property
    def mean(self) -> Any:
        """The mean score, or the mean vector of class probabilities."""
        mean = np.average(self.values, axis=0, weights=self.weights.values)
        return mean if self.values.ndim > 1 else float(mean)

    def selected(self, settings: Settings) -> BoolArray:
        """Return who has the favourable outcome."""
        assert settings.threshold is not None
        above = np.asarray(self.values >= settings.threshold)
        return above if settings.favourable == "high" else ~above

    def rate(self, settings: Settings) -> float:
        """Return the share of people with the favourable outcome, or the mean score."""
        if settings.threshold is None:
            return float(self.mean)
        return float(np.average(self.selected(settings), weights=self.weights.values))

    def counts(self, settings: Settings) -> tuple[float, int]:
        """Return how many people have the favourable outcome, and how many people there are.

        With survey weights, both are of the effective number of people.
        """
        if self.weights.total <= 0.0:
            return 0.0, 0
        rate = self.weights.rate(self.selected(settings))
        return rate.hits, rate.people

    def against_rest(self, cell: int, settings: Settings) -> GroupScores:
        """Return one of several classes against the rest: 1 for people who are decided to be in it.

        Without a threshold it is the probability of the class.
        """
        if cell not in self._cells:
            values = self.values[:, cell]
            if settings.threshold is not None:
                values = (largest_class(self.values) == cell).astype(np.float64)
            self._cells[cell] = GroupScores(values, self.weights)
        return self._cells[cell]

    @cached_property
    def _sorted(self) -> Sorted:
        """The scores in order, with their weights."""
        if self.weights.values is None:
            return np.sort(self.values), None
        order = np.argsort(self.values, kind="stable")
        return self.values[order], self.weights.values[order]

    def distances(self, other: GroupScores) -> Distances:
        """Return how far the distributions of two groups are from each other."""
        if other not in self._distances:
            self._distances[other] = _distances(self._sorted, other._sorted)
        return self._distances[other]

    def wasserstein(self, other: GroupScores) -> float:
        """Return the mean distance of the distributions; of vectors, with half the L1 distance."""
        if self.values.ndim == 1:
            return self.distances(other).wasserstein
        first, second = ((own.values, own.weights.values) for own in (self, other))
        return simplex_distance(first, second)

    def total_variation(self, other: GroupScores, settings: Settings) -> float:
        """Return the total variation between two groups, exact or in equal bins of the range."""
        if settings.bins is None:
            return self.distances(other).total_variation
        cut = settings.bins, settings.within
        return float(np.abs(self._binned(*cut) - other._binned(*cut)).sum() / 2.0)

    def _binned(self, bins: int, within: tuple[float, float]) -> FloatArray:
        """Return the share of the group in each bin, and on each border between two bins."""
        borders = within[0] + (within[1] - within[0]) * bin_borders(bins)
        if self.weights.values is None:  # without another pass over all scores
            places = np.searchsorted(self._sorted[0], borders)
            counts = np.diff(places, prepend=0, append=len(self.values)).astype(np.float64)
        else:
            place = np.searchsorted(borders, self.values, side="right")
            counts = np.bincount(place, self.weights.values, len(borders) + 1).astype(np.float64)
        return np.asarray(counts / counts.sum())


CALIBRATION_BINS = 10
# Dividing whole numbers, unlike numpy.linspace, lets scores such as 0.3 begin their own interval.
CALIBRATION_EDGES = np.arange(CALIBRATION_BINS + 1) / CALIBRATION_BINS


def calibration_error(
    scores: FloatArray, positive: BoolArray, weights: FloatArray | None = None
) -> float:
    """Return the distance between mean score and share of positive labels, over ten bins."""
    if not len(scores):
        return float("nan")
    ones = np.ones(len(scores)) if weights is None else weights
    place = np.searchsorted(CALIBRATION_EDGES[1:-1], scores, side="right")
    off = np.bincount(place, ones * (scores - positive), minlength=CALIBRATION_BINS)
    return float(np.abs(off).sum() / ones.sum())


def bin_borders(bins: int) -> FloatArray:
    """Return where equal bins of [0, 1] end and begin.

    Scores on a border are counted by themselves. So nothing changes if 1 - score is the score.
    """
    inner = np.arange(1, bins) / bins
    return np.column_stack([inner - 1e-9, inner + 1e-9]).ravel()


class ScoredPeople:
    """People with the scores of one model, divided by group and class when a measure asks."""

    def __init__(
        self,
        people: People,
        scores: FloatArray,
        settings: Settings | None = None,
        where: str = "the table",
    ) -> None:
        self.where = where
        self.people, self.scores = people, scores
        self.weights = people.weight
        self.settings = Settings() if settings is None else settings
        self._parts: dict[tuple[int, int | None], GroupScores] = {}

    @property
    def codes(self) -> tuple[int, ...]:
        """Codes of the groups that are compared."""
        return self.people.groups.compared

    @cached_property
    def within(self) -> dict[int, ScoredPeople]:
        """The people of every stratum with their scores, by the code of the stratum."""
        people, strata = self.people, self.people.strata
        assert strata is not None
        bare = People(people.groups, labels=people.labels, weight=people.weight)
        return {
            code: ScoredPeople(
                bare.take(rows),
                self.scores[rows],
                self.settings,
                f"the stratum {strata.labels[code]!r}",
            )
            for code, rows in strata.rows_of(np.arange(len(people))).items()
        }

    def strata(self, codes: tuple[int, int], label: int | None) -> list[tuple[float, ScoredPeople]]:
        """Return the strata with people of two groups and their weights, or everybody.

        A stratum's weight is its number of people in the two groups. Raise if none has people of
        both.
        """
        if self.people.strata is None:
            return [(1.0, self)]
        found = []
        for own in self.within.values():
            sizes = [own.group(code, label).weights.total for code in codes]
            if min(sizes) > 0.0:
                found.append((sum(sizes), own))
        if not found:
            names = [repr(self.people.groups.labels[code]) for code in codes]
            raise GroupError(
                f"No stratum holds people of both {' and '.join(names)}, so they cannot be "
                "compared. Condition on fewer factors, or on wider bands.",
            )
        total = sum(weight for weight, _ in found)
        return [(weight / total, own) for weight, own in found]

    @cached_property
    def levels(self) -> ScoredPeople:
        """The same people with the expected place of ordered classes, in [0, 1], as the score."""
        people = replace(self.people, labels=None)
        return ScoredPeople(people, class_levels(self.scores), Settings(), self.where)

    @cached_property
    def is_decision(self) -> bool:
        """Whether every score is at one end of the range."""
        return bool(np.isin(self.scores, self.settings.within).all())

    @cached_property
    def deserving(self) -> BoolArray | None:
        """Which people have the favourable label; None without labels of two classes."""
        positive = self.people.positive
        return positive if positive is None or self.settings.favourable == "high" else ~positive

    def part(self, code: int, label: int | None = None, cell: int | None = None) -> GroupScores:
        """Return the scores of a group: of everybody, or of people with one label.

        With a ``cell``, the scores are 1 for people who are decided to be in this one of several
        classes.
        """
        own, name = self.group(code, label, cell), self.people.groups.labels[code]
        where, error = self.where, GroupError if label is None else LabelError
        if label is not None:
            assert self.people.labels is not None
            assert self.people.labels.classes is not None
            several = self.settings.outcome.several
            is_own = several or label == (self.settings.favourable == "high")
            shown = self.people.labels.classes[label if several else 1]
            where = f"the rows whose label is {'' if is_own else 'not '}{shown!r}"
        if len(own.values) == 0:
            raise error(
                f"Group {name!r} has no rows in {where}, but a gap compares groups that have "
                "some. Leave this group out, or pool it with another."
            )
        if own.weights.total <= 0.0:
            raise error(
                f"The weights of group {name!r} in {where} sum to zero, and every group needs "
                "a positive weight. Leave this group out, or correct sample_weight."
            )
        return own

    def counts(
        self, code: int, label: int | None = None, cell: int | None = None
    ) -> tuple[float, int]:
        """Return how many people of a group have the favourable outcome, and how many it has.

        With survey weights, both are of the effective number of people.
        """
        return self.group(code, label, cell).counts(self.settings)

    def group(self, code: int, label: int | None = None, cell: int | None = None) -> GroupScores:
        """Return what `part` returns, even if it is empty."""
        if (code, label) not in self._parts:
            inside = self.people.groups.is_group(code)
            if label is not None:
                assert self.people.labels is not None
                is_high = self.settings.favourable == "high"
                inside &= self.people.labels.values == (label if is_high else not label)
            self._parts[code, label] = GroupScores(self.scores[inside], self.weights.take(inside))
        own = self._parts[code, label]
        return own if cell is None else own.against_rest(cell, self.settings)
