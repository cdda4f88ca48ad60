"""One sweep over sorted scores that computes exact distances and a table of cells."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fairmatch.tables.arrays import FloatArray

CELLS = 4096
"""Number of cells of equal mass that stand for the scores, which are too many to keep."""

_BLOCK_ROWS = 1_000_000


class Sweep:
    """A sweep over scores in ascending order, which arrive range by range.

    Parameters
    ----------
    sizes : array of shape (n_groups,)
        Number of people in each group.
    borders : sequence of float
        Scores at which a cell must begin, such as the threshold.

    Attributes
    ----------
    areas : dict
        Codes of two groups to the area between their distribution functions.
    largest : dict
        Codes of two groups to the largest difference between their distribution functions.
    """

    def __init__(self, sizes: Sequence[int], borders: Sequence[float]) -> None:
        self.sizes = np.asarray(sizes, dtype=np.float64)
        self.borders = np.unique(np.asarray(borders, dtype=np.float64))
        self.pairs = [
            pair for pair in combinations(range(len(sizes)), 2) if self.sizes[list(pair)].all()
        ]
        self.areas = dict.fromkeys(self.pairs, 0.0)
        self.largest = dict.fromkeys(self.pairs, 0.0)
        self._below = np.zeros(len(sizes))
        self._last: float | None = None
        self._mass = 0.0
        self._cells: dict[tuple[int, int, int, int], tuple[float, float]] = {}

    def take(self, scores: FloatArray, codes: NDArray[np.int64], labels: NDArray[np.int64]) -> None:
        """Add the rows of a range of scores. The range must lie above all earlier ones.

        Parameters
        ----------
        scores : array of shape (n_rows,)
            Their scores, in any order.
        codes : array of int
            Their groups.
        labels : array of int
            Their labels, 0 or 1.
        """
        order = np.argsort(scores)
        start = 0
        while start < len(order):
            end = min(start + _BLOCK_ROWS, len(order))
            # Tied scores stay in one block: a distribution function is right only after all ties.
            while end < len(order) and scores[order[end]] == scores[order[end - 1]]:
                tied = scores[order[end - 1]]
                end = start + int(np.searchsorted(scores[order[start:]], tied, side="right"))
            at = order[start:end]
            self._distances(scores[at], codes[at])
            self._count(scores[at], codes[at], labels[at])
            start = end

    def _distances(self, scores: FloatArray, codes: NDArray[np.int64]) -> None:
        ends = np.flatnonzero(np.append(scores[1:] != scores[:-1], True))
        values = scores[ends]
        shares = np.empty((len(self.sizes), len(ends)))
        for code, size in enumerate(self.sizes):
            counts = np.cumsum(codes == code)[ends] + self._below[code]
            shares[code] = counts / max(size, 1.0)
        widths = np.diff(values)
        for pair in self.pairs:
            first, second = pair
            if self._last is not None:
                before = self._below[[first, second]] / self.sizes[[first, second]]
                self.areas[pair] += abs(before[0] - before[1]) * (values[0] - self._last)
            difference = np.abs(shares[first] - shares[second])
            self.areas[pair] += float(difference[:-1] @ widths)
            self.largest[pair] = max(self.largest[pair], float(difference.max()))
        self._below += np.bincount(codes, minlength=len(self.sizes))
        self._last = float(values[-1])

    def _count(
        self, scores: FloatArray, codes: NDArray[np.int64], labels: NDArray[np.int64]
    ) -> None:
        mass = self._mass + np.arange(len(scores))
        cells = (mass * (CELLS / self.sizes.sum())).astype(np.int64)
        places = np.searchsorted(self.borders, scores, side="right")
        n_places, n_groups = len(self.borders) + 1, len(self.sizes)
        keys = (((cells - cells[0]) * n_places + places) * n_groups + codes) * 2 + labels
        counts = np.bincount(keys)
        sums = np.bincount(keys, scores)
        for key in np.flatnonzero(counts).tolist():
            rest, label = divmod(key, 2)
            rest, code = divmod(rest, n_groups)
            cell, place = divmod(rest, n_places)
            full = cell + int(cells[0]), place, code, label
            count, total = self._cells.get(full, (0.0, 0.0))
            self._cells[full] = count + float(counts[key]), total + float(sums[key])
        self._mass += len(scores)

    def table(self) -> tuple[FloatArray, NDArray[np.int64], NDArray[np.int64], FloatArray]:
        """Return the mean score, the group, the label and the count of every cell."""
        keys = np.array(list(self._cells), dtype=np.int64)
        counts, sums = np.array(list(self._cells.values())).T
        return np.clip(sums / counts, 0.0, 1.0), keys[:, 2], keys[:, 3], counts
