"""The score distributions of two groups, compared: one sort serves every gap."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from fairmatch.exceptions import GroupError
from fairmatch.tables.arrays import BoolArray, FloatArray, read_scores, read_weights
from fairmatch.tables.groups import Groups, read_groups
from fairmatch.tables.parameters import check_count, check_threshold


class ScoreDistributions:
    """Scores of two groups, ready to be compared.

    The measures ask different questions of the same two distributions, and the sort is what
    takes time; so it is done once, when the first question needs it.

    Parameters
    ----------
    scores : array of shape (n_rows,)
        Checked scores.
    groups : Groups
        Group of every row.
    weights : array of shape (n_rows,), optional
        Weight of every row; None counts every row once.
    subset : boolean array of shape (n_rows,), optional
        Rows to look at.
    where : str
        How an error names the rows looked at.
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
        groups.only_two("This measure")
        masks = groups.is_group(0), groups.is_group(1)
        if subset is not None:
            masks = masks[0] & subset, masks[1] & subset
        self.scores = scores[masks[0]], scores[masks[1]]
        self.weights = None if weights is None else (weights[masks[0]], weights[masks[1]])
        for code, label in enumerate(groups.labels):
            if len(self.scores[code]) == 0:
                raise GroupError(f"Group {label!r} has no rows in {where}: there is no gap.")
            if self.weights is not None and self.weights[code].sum() <= 0.0:
                raise GroupError(f"The weights of group {label!r} in {where} sum to zero.")

    @classmethod
    def read(
        cls,
        y_score: ArrayLike,
        sensitive_features: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> "ScoreDistributions":
        """Read what a caller gave."""
        scores = read_scores(y_score)
        groups = read_groups(sensitive_features, n_rows=len(scores))
        return cls(scores, groups, read_weights(sample_weight, n_rows=len(scores)))

    def _mean(self, values: tuple[FloatArray | BoolArray, FloatArray | BoolArray]) -> FloatArray:
        weights = self.weights or (None, None)
        return np.array([np.average(v, weights=w) for v, w in zip(values, weights, strict=True)])

    def rates(self, threshold: float | None) -> FloatArray:
        """Share of accepted people in each group; mean scores where the threshold is None."""
        if threshold is None:
            return self._mean(self.scores)
        check_threshold(threshold)
        return self._mean((self.scores[0] >= threshold, self.scores[1] >= threshold))

    def rate_gap(self, threshold: float | None) -> float:
        """Absolute difference of the two rates."""
        rates = self.rates(threshold)
        return float(abs(rates[0] - rates[1]))

    @cached_property
    def _merged(self) -> tuple[FloatArray, FloatArray]:
        """All scores in order, and the difference of the two distribution functions at each.

        Among tied scores only the last one's difference is right; the others span no width.
        """
        if self.weights is not None:
            return self._merged_weights(*self.weights)
        first, second = np.sort(self.scores[0]), np.sort(self.scores[1])
        values = np.concatenate([first, second])
        # A stable sort of two sorted runs is one merge: linear, unlike sorting afresh.
        difference = np.cumsum(np.argsort(values, kind="stable") < len(first), dtype=np.int64)
        values.sort(kind="stable")
        # Whole numbers, so that equal distributions differ by exactly zero.
        difference *= len(values)
        difference -= np.arange(1, len(values) + 1) * np.int64(len(first))
        return values, difference / (float(len(first)) * float(len(second)))

    def _merged_weights(
        self, weights0: FloatArray, weights1: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        values = np.concatenate(self.scores)
        order = np.argsort(values, kind="stable")
        steps = np.concatenate([weights0 / weights0.sum(), -weights1 / weights1.sum()])
        return values[order], np.cumsum(steps[order])

    @cached_property
    def _differences(self) -> FloatArray:
        """Difference of the distribution functions after each different score."""
        values, difference = self._merged
        last = np.append(values[1:] != values[:-1], True)
        at_last: FloatArray = difference[last]
        return at_last

    @property
    def wasserstein(self) -> float:
        """Area between the two distribution functions."""
        values, difference = self._merged
        return float(np.abs(difference[:-1]) @ np.diff(values))

    @property
    def kolmogorov_smirnov(self) -> float:
        """Largest difference of the two distribution functions, over every threshold."""
        return float(np.abs(self._differences).max())

    def total_variation(self, bins: int | None) -> float:
        """Half the summed difference of the two mass functions, exact or in equal bins."""
        check_count("bins", bins, optional=True)
        if bins is None:
            differences = np.diff(self._differences, prepend=0.0)
        else:
            weights = self.weights or (None, None)
            counts = [
                np.histogram(s, bins=bins, range=(0.0, 1.0), weights=w)[0].astype(np.float64)
                for s, w in zip(self.scores, weights, strict=True)
            ]
            differences = counts[0] / counts[0].sum() - counts[1] / counts[1].sum()
        return float(np.abs(differences).sum() / 2.0)
