"""Counts and sums of scores by group: what a gap between mean scores is made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmatch.tables.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums over the people of each group, for any number of subsets at once.

    Attributes
    ----------
    counts : array of shape (..., n_groups)
        Number of people, or their weight.
    scores : array of shape (..., n_groups)
        Sum of their scores.
    squares : array of shape (..., n_groups) or None
        Sum of the squares of their scores, or None where it is not needed.
    """

    counts: FloatArray
    scores: FloatArray
    squares: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, which: Any) -> GroupSums:
        squares = None if self.squares is None else self.squares[which]
        return GroupSums(self.counts[which], self.scores[which], squares)

    @classmethod
    def joined(cls, parts: Iterable[GroupSums]) -> GroupSums:
        """Return the subsets of several sums, one after the other, without squares."""
        parts = list(parts)
        return cls(
            np.concatenate([part.counts for part in parts]),
            np.concatenate([part.scores for part in parts]),
        )

    def __sub__(self, other: GroupSums) -> GroupSums:
        return GroupSums(self.counts - other.counts, self.scores - other.scores)

    @property
    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """First and second group of every pair, in the order of the last axis of the methods."""
        first, second = np.triu_indices(self.counts.shape[-1], k=1)
        return first, second

    def pair(self, at: int) -> GroupSums:
        """Return the sums of the two groups of one pair."""
        first, second = self.pairs
        return self[..., [first[at], second[at]]]

    def smaller(self) -> FloatArray:
        """Return the number of people in the smaller group of every pair."""
        first, second = self.pairs
        return np.minimum(self.counts[..., first], self.counts[..., second])

    def differences(self) -> FloatArray:
        """Return the second mean score minus the first for every pair. It is NaN without people."""
        first, second = self.pairs
        with np.errstate(invalid="ignore", divide="ignore"):
            means = self.scores / self.counts
        difference: FloatArray = means[..., second] - means[..., first]
        return difference

    def root_counts(self) -> FloatArray:
        r"""Return :math:`\sqrt{1/n_0 + 1/n_1}` for every pair."""
        first, second = self.pairs
        with np.errstate(divide="ignore"):
            inverse = 1.0 / self.counts
        return np.sqrt(inverse[..., first] + inverse[..., second])


def sums_of(
    scores: FloatArray,
    group: NDArray[np.integer],
    n_groups: int,
    weights: FloatArray | None = None,
) -> GroupSums:
    """Return the counts, the sums of scores and the sums of squares of some people.

    Parameters
    ----------
    scores : array of shape (n_rows,)
        Their scores.
    group : array of int of shape (n_rows,)
        Their groups, counted from 0.
    n_groups : int
        Number of groups.
    weights : array of shape (n_rows,), optional
        How many people each row counts for.
    """
    ones = np.ones(len(scores)) if weights is None else weights
    counts, sums, squares = (
        np.bincount(group, w, minlength=n_groups).astype(np.float64)
        for w in (ones, ones * scores, ones * scores * scores)
    )
    return GroupSums(counts, sums, squares)
