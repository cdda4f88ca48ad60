"""Distances between two sorted groups of scores, all computed in one merge."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmatch.tables.arrays import FloatArray

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
