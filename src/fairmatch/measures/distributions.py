"""Comparisons of the groups' score distributions. Every group is sorted once for all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairmatch.exceptions import GroupError, LabelError
from fairmatch.people.checks import (
    BoolArray,
    FloatArray,
    check_count,
    check_threshold,
    read_labels,
    read_scores,
    read_weights,
)
from fairmatch.people.groups import Groups, read_groups

# Two sorted groups are merged in blocks of about this many scores, which stay in the cache.
_BLOCK_ROWS = 2**20


@dataclass(frozen=True)
class Distances:
    """How far two score distributions are from each other.

    Attributes
    ----------
    wasserstein : float
        Area between the two distribution functions.
    kolmogorov_smirnov : float
        Largest difference between the two distribution functions, over every threshold.
    total_variation : float
        Half the sum of the differences between the two mass functions, score by score.
    """

    wasserstein: float
    kolmogorov_smirnov: float
    total_variation: float


@dataclass(frozen=True, eq=False)
class SortedScores:
    """The sorted scores of one group.

    Attributes
    ----------
    values : array of shape (n_members,)
        The scores, sorted.
    shares : array of shape (n_members,), or None
        Share of the group's weight that each score carries. None counts every row once.
    """

    values: FloatArray
    shares: FloatArray | None

    @classmethod
    def of(cls, scores: FloatArray, weights: FloatArray | None) -> "SortedScores":
        """Sort the scores of a group."""
        if weights is None:
            return cls(np.sort(scores), None)
        order = np.argsort(scores, kind="stable")
        return cls(scores[order], weights[order] / weights.sum())

    def distances(self, other: "SortedScores") -> Distances:
        """Compute every distance to another group in one merge of the sorted scores."""
        merge = _Merge(self, other)
        area = largest = moved = last = 0.0
        for values, difference, following in merge:
            widths = np.diff(values if following is None else np.append(values, following))
            area += float(np.abs(difference[: len(widths)]) @ widths)
            # Among tied scores only the last difference is right. The others have no width.
            steps = difference[np.append(values[1:] != values[:-1], True)]
            largest = max(largest, float(np.abs(steps).max()))
            moved += float(np.abs(np.diff(steps, prepend=last)).sum())
            last = float(steps[-1])
        return Distances(area, largest, moved / 2.0)


class _Merge:
    """The merged scores of two groups, and the difference of their distribution functions.

    Iteration yields blocks. A block holds scores, the difference after each score, and the score
    that follows the block (None after the last block). Tied scores stay in one block.
    """

    def __init__(self, first: SortedScores, second: SortedScores) -> None:
        self.first, self.second = first, second
        self.sizes = len(first.values), len(second.values)

    def __iter__(self) -> Iterator[tuple[FloatArray, FloatArray, float | None]]:
        carried: Any = 0 if self.first.shares is None else 0.0
        for start, end in self._blocks():
            runs = (self.first.values[start[0] : end[0]], self.second.values[start[1] : end[1]])
            values = np.concatenate(runs)
            # A stable sort of two sorted runs is one merge, in linear time.
            order = np.argsort(values, kind="stable")
            if self.first.shares is None or self.second.shares is None:
                counts = np.cumsum(order < len(runs[0]), dtype=np.int64)
                counts += carried
                carried = counts[-1]
                # Whole numbers make equal distributions differ by exactly zero.
                done = np.arange(start[0] + start[1] + 1, end[0] + end[1] + 1)
                whole = counts * np.int64(sum(self.sizes)) - done * np.int64(self.sizes[0])
                difference = whole / (float(self.sizes[0]) * float(self.sizes[1]))
            else:
                steps = np.concatenate(
                    [
                        self.first.shares[start[0] : end[0]],
                        -self.second.shares[start[1] : end[1]],
                    ]
                )[order]
                steps[0] += carried
                difference = np.cumsum(steps)
                carried = difference[-1]
            following = [
                float(side.values[at])
                for side, at in zip((self.first, self.second), end, strict=True)
                if at < len(side.values)
            ]
            yield values[order], difference, min(following, default=None)

    def _blocks(self) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Yield where each block starts and ends in both groups."""
        longer = max((self.first.values, self.second.values), key=len)
        n_blocks = -(-sum(self.sizes) // _BLOCK_ROWS)
        cuts = longer[np.arange(1, n_blocks) * len(longer) // n_blocks]
        ends = np.stack(
            [np.searchsorted(side.values, cuts, "right") for side in (self.first, self.second)]
        )
        places = np.column_stack([[0, 0], ends, self.sizes])
        for start, end in zip(places.T[:-1].tolist(), places.T[1:].tolist(), strict=True):
            if end != start:
                yield (start[0], start[1]), (end[0], end[1])


class ScoreDistributions:
    """Scores of two or more groups, ready to be compared.

    All measures are computed from the same distributions, and sorting takes most of the time. So
    every group is sorted once, when a measure first needs it. Two sorted groups are then merged in
    linear time.

    Parameters
    ----------
    scores : array of shape (n_rows,)
        Checked scores.
    groups : Groups
        Group of every row.
    weights : array of shape (n_rows,), optional
        Weight of every row. None counts every row once.
    subset : boolean array of shape (n_rows,), optional
        Which rows to use. None uses all rows.
    where : str
        How an error names the rows that are used.

    Examples
    --------
    >>> from fairmatch.measures.distributions import ScoreDistributions
    >>> groups = ScoreDistributions.read([0.1, 0.3, 0.2, 0.6, 0.9], ["a", "a", "b", "c", "c"])
    >>> groups.rates(0.5).tolist()
    [0.0, 0.0, 1.0]
    >>> round(groups.wasserstein, 3)
    0.55
    """

    def __init__(
        self,
        scores: FloatArray,
        groups: Groups,
        weights: FloatArray | None = None,
        *,
        subset: BoolArray | None = None,
        where: str = "the table",
    ) -> None:
        self.labels = groups.labels
        self.scores: list[FloatArray] = []
        self.weights: list[FloatArray | None] = []
        for code, label in enumerate(groups.labels):
            mask = groups.is_group(code) if subset is None else groups.is_group(code) & subset
            self.scores.append(scores[mask])
            self.weights.append(None if weights is None else weights[mask])
            if len(self.scores[code]) == 0:
                raise GroupError(
                    f"Group {label!r} has no rows in {where}, and a gap compares groups that have "
                    "some. Leave this group out, or pool it with another."
                )
            weighed = self.weights[code]
            if weighed is not None and weighed.sum() <= 0.0:
                raise GroupError(
                    f"The weights of group {label!r} in {where} sum to zero, and every group needs "
                    "a positive weight. Leave this group out, or correct sample_weight."
                )
        self._rates: dict[float | None, FloatArray] = {}
        self._distances: dict[tuple[int, int], Distances] = {}

    @classmethod
    def read(
        cls,
        y_score: ArrayLike,
        sensitive_features: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> "ScoreDistributions":
        """Read scores, groups and weights as a caller passes them."""
        scores = read_scores(y_score)
        groups = read_groups(sensitive_features, n_rows=len(scores))
        return cls(scores, groups, read_weights(sample_weight, n_rows=len(scores)))

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The codes of every pair of groups."""
        return list(combinations(range(len(self.labels)), 2))

    def rates(self, threshold: float | None) -> FloatArray:
        """Compute the share of accepted people in each group.

        Parameters
        ----------
        threshold : float or None
            A score at or above the threshold is accepted. None returns mean scores.
        """
        if threshold is not None:
            check_threshold(threshold)
        if threshold not in self._rates:
            asked = [s if threshold is None else s >= threshold for s in self.scores]
            self._rates[threshold] = np.array(
                [np.average(v, weights=w) for v, w in zip(asked, self.weights, strict=True)]
            )
        return self._rates[threshold]

    def rate_gap(self, threshold: float | None) -> float:
        """Compute the largest difference between the rates of two groups."""
        rates = self.rates(threshold)
        return float(rates.max() - rates.min())

    @cached_property
    def _sorted(self) -> list[SortedScores]:
        return [SortedScores.of(s, w) for s, w in zip(self.scores, self.weights, strict=True)]

    def distances(self, first: int, second: int) -> Distances:
        """Compute how far the distributions of two groups are from each other."""
        pair = min(first, second), max(first, second)
        if pair not in self._distances:
            self._distances[pair] = self._sorted[pair[0]].distances(self._sorted[pair[1]])
        return self._distances[pair]

    @property
    def wasserstein(self) -> float:
        """The largest area between the distribution functions of two groups."""
        return max(self.distances(*pair).wasserstein for pair in self.pairs)

    @property
    def kolmogorov_smirnov(self) -> float:
        """The largest difference between two distribution functions, over thresholds and pairs."""
        return max(self.distances(*pair).kolmogorov_smirnov for pair in self.pairs)

    def total_variation(self, bins: int | None) -> float:
        """Compute the largest total variation between two groups, exact or in equal bins."""
        return max(self.pair_variation(*pair, bins) for pair in self.pairs)

    def pair_variation(self, first: int, second: int, bins: int | None) -> float:
        """Compute the total variation between two groups, exact or in equal bins."""
        check_count("bins", bins, optional=True)
        if bins is None:
            return self.distances(first, second).total_variation
        differences = self._binned(first, bins) - self._binned(second, bins)
        return float(np.abs(differences).sum() / 2.0)

    def _binned(self, code: int, bins: int) -> FloatArray:
        """Compute the share of a group in each of ``bins`` equal intervals of [0, 1]."""
        weights = self.weights[code]
        if weights is None:
            # The counts of numpy.histogram, whose last interval is closed, without another pass.
            borders = np.linspace(0.0, 1.0, bins + 1)[1:-1]
            places = np.searchsorted(self._sorted[code].values, borders)
            counts = np.diff(places, prepend=0, append=len(self.scores[code])).astype(np.float64)
        else:
            counts = np.histogram(self.scores[code], bins, (0.0, 1.0), weights=weights)[0]
        shares: FloatArray = counts / counts.sum()
        return shares


def read_by_label(
    labels: Sequence[bool | None],
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = 1,
) -> dict[bool | None, ScoreDistributions]:
    """Read the score distributions of the groups, for everybody or for the people of one class.

    Parameters
    ----------
    labels : sequence of bool or None
        The requested classes: True is Y = 1, False is Y = 0, and None is everybody.
    y_true : array-like of shape (n_rows,), or None
        Labels of two classes. They are needed where a class is requested.
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1].
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    pos_label : default=1
        The label that counts as positive.

    Raises
    ------
    LabelError
        If a group has no rows, or no weight, in a requested class.

    Examples
    --------
    >>> found = read_by_label([True], [1, 0, 1, 1], [0.2, 0.9, 0.6, 0.8], ["a", "a", "b", "b"])
    >>> found[True].rates(None).tolist()
    [0.2, 0.7]
    """
    scores = read_scores(y_score)
    groups = read_groups(sensitive_features, n_rows=len(scores))
    weights = read_weights(sample_weight, n_rows=len(scores))
    found: dict[bool | None, ScoreDistributions] = {}
    if None in labels:
        found[None] = ScoreDistributions(scores, groups, weights)
    classes = [label for label in labels if label is not None]
    if classes:
        positive = read_labels(y_true, n_rows=len(scores), pos_label=pos_label)
    for label in classes:
        where = f"the rows whose label is {'' if label else 'not '}{pos_label!r}"
        subset = positive if label else ~positive
        try:
            found[label] = ScoreDistributions(scores, groups, weights, subset=subset, where=where)
        except GroupError as error:
            raise LabelError(str(error)) from None
    return found
