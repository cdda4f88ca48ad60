"""Score distributions of weighted rows, resampled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairmatch.auditing.weighting import RowWeights, difference_limits
from fairmatch.measures.closed_forms import fold
from fairmatch.measures.intervals import ScoreGrid, Spread
from fairmatch.tables.arrays import FloatArray

# As in `ScoreGrid`, more cells change no limit by more than its Monte Carlo error.
_CELLS = 512


class WeightedGrid(ScoreGrid):
    r"""The weighted scores of two groups, counted in cells and resampled many times at once.

    Parameters
    ----------
    scores : two arrays
        Scores of each group.
    weights : two RowWeights
        Their weights.
    bins : int
        Number of equal intervals for the total variation; no cell crosses their borders.
    n_resamples : int
        How many resamples to draw.
    generator : numpy Generator
        Source of the random draws.

    Notes
    -----
    A resample draws as many people as the weights of a group are worth (`RowWeights.size`), from
    the weighted distribution of the scores. To test equality, both groups are drawn from the
    weighted distribution of all people. These draws take the place of permutations.
    """

    def __init__(
        self,
        scores: Sequence[FloatArray],
        weights: Sequence[RowWeights],
        *,
        bins: int,
        n_resamples: int,
        generator: np.random.Generator,
    ) -> None:
        self._bin_borders = np.linspace(0.0, 1.0, bins + 1)[1:-1]
        self.sizes = max(round(weights[0].size), 1), max(round(weights[1].size), 1)
        shares = [_shares(own) * size for own, size in zip(weights, self.sizes, strict=True)]
        borders = np.union1d(
            _borders(np.concatenate(scores), np.concatenate(shares)), self._bin_borders
        )
        cells = [np.searchsorted(borders, own, side="right") for own in scores]
        counts = np.stack(
            [
                np.bincount(at, own, minlength=len(borders) + 1)
                for at, own in zip(cells, shares, strict=True)
            ]
        )
        sums = np.zeros(len(borders) + 1)
        for at, own, values in zip(cells, shares, scores, strict=True):
            sums += np.bincount(at, own * values, minlength=len(borders) + 1)
        kept = counts.sum(axis=0) > 0
        self.counts = counts[:, kept]
        self.values: FloatArray = sums[kept] / self.counts.sum(axis=0)
        self._starts = self._bin_starts(np.append(-np.inf, borders)[kept])
        self._scores = scores[0], scores[1]
        self._weights = weights[0], weights[1]
        own_shares = [k / k.sum() for k in self.counts]
        estimate = own_shares[0] - own_shares[1]
        self._estimate = np.cumsum(estimate)
        first, second = self._draw(own_shares, n_resamples, generator)
        self._noise = np.cumsum(first - second - estimate, axis=1)
        pooled = self.counts.sum(axis=0) / self.counts.sum()
        first, second = self._draw([pooled, pooled], n_resamples, generator)
        self._permuted = np.cumsum(first - second, axis=1)

    def _draw(
        self, shares: Sequence[FloatArray], n_resamples: int, generator: np.random.Generator
    ) -> list[FloatArray]:
        return [
            generator.multinomial(size, own, size=n_resamples) / size
            for size, own in zip(self.sizes, shares, strict=True)
        ]

    def mean_gap(self, confidence: float) -> Spread:
        """Compute the interval of the gap between mean scores: that of the difference, folded."""
        return Spread(*self._difference(*self._scores, confidence))

    def _slope_limit(self, widths: FloatArray, confidence: float) -> float:
        """Return the upper limit of the gap between the means of a function of the score.

        Of all functions with slopes 1 and -1, it is the one whose gap is largest in the sample.
        """
        heights = np.append(0.0, np.cumsum(-np.sign(self._estimate[:-1]) * widths))
        first, second = (np.interp(own, self.values, heights) for own in self._scores)
        return self._difference(first, second, confidence)[1]

    def _difference(
        self, first: FloatArray, second: FloatArray, confidence: float
    ) -> tuple[float, float]:
        before, after = self._weights
        return fold(difference_limits(before.moments(first), after.moments(second), confidence))


def _shares(weights: RowWeights) -> FloatArray:
    assert weights.values is not None
    shares: FloatArray = weights.values / weights.total
    return shares


def _borders(scores: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the different scores, or quantiles of them if there are more scores than cells."""
    order = np.argsort(scores, kind="stable")
    ordered, mass = scores[order], np.cumsum(weights[order])
    different: FloatArray = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    if len(different) <= _CELLS:
        return different
    at = np.searchsorted(mass, np.linspace(0.0, mass[-1], _CELLS + 1)[1:-1])
    borders: FloatArray = np.unique(ordered[np.minimum(at, len(ordered) - 1)])
    return borders
