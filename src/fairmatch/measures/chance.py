"""What a gap averages where groups do not differ: every group is drawn from all people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairmatch.measures.distributions import ScoredPeople
from fairmatch.measures.intervals import SCORE_EDGES
from fairmatch.people.checks import FloatArray

_DRAWS, _FEW_DRAWS = 1000, 200


class Alike:
    """Groups of the sizes that they have, drawn many times from the people of all of them.

    Each method returns the largest gap over the pairs of groups, for every draw. Scores count as
    shares of their range.
    """

    def __init__(
        self,
        scored: ScoredPeople,
        pairs: Sequence[tuple[int, int]],
        generator: np.random.Generator,
    ) -> None:
        self.scored, self.generator = scored, generator
        self.codes = sorted({code for pair in pairs for code in pair})
        places = {code: place for place, code in enumerate(self.codes)}
        self._pairs = [(places[first], places[second]) for first, second in pairs]

    def rates(self, label: bool | None) -> FloatArray:
        """Return gaps of selection rates."""
        counts = np.array([self.scored.counts(code, label) for code in self.codes])
        rate = counts[:, 0].sum() / counts[:, 1].sum()
        sizes = counts[:, 1].astype(np.int64)
        drawn = self.generator.binomial(sizes, min(rate, 1.0), size=(_DRAWS, len(sizes))) / sizes
        return self._apart(drawn[..., None])

    def means(self, label: bool | None) -> FloatArray:
        """Return gaps of mean scores."""
        scores, sizes, weights = self._pooled(label)
        spread = float(np.sqrt(np.cov(scores, aweights=weights)))
        means = self.generator.normal(size=(_DRAWS, len(sizes))) * spread / np.sqrt(sizes)
        return self._apart(means[..., None])

    def areas(self, label: bool | None) -> FloatArray:
        """Return areas between the distribution functions."""
        below, edges, scores = self._below(label)
        # A cell counts as its mean score, so that tied scores, such as decisions, count exactly.
        cells = np.searchsorted(edges, scores, side="right")
        sizes = np.bincount(cells, minlength=len(edges) + 1)
        sums = np.bincount(cells, scores, minlength=len(sizes))
        starts = np.append(edges[0], edges)
        means = np.divide(sums, sizes, out=starts, where=sizes > 0)
        return self._apart(below * np.diff(means))

    def heights(self, label: bool | None) -> FloatArray:
        """Return largest differences between the distribution functions."""
        return self._apart(self._below(label)[0], largest=True)

    def overlaps(self, label: bool | None) -> FloatArray:
        """Return total variations in equal intervals of scores."""
        return self._apart(self._shares(SCORE_EDGES[1:-1], *self._pooled(label))) / 2.0

    def _below(self, label: bool | None) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the distribution functions at the edges of cells, the edges and all scores."""
        scores, sizes, weights = self._pooled(label)
        # Cells of about equal mass.
        edges = np.unique(np.quantile(scores, np.linspace(0.0, 1.0, 65)[1:-1]))
        drawn = self._shares(edges, scores, sizes, weights)
        return np.cumsum(drawn, axis=-1)[..., :-1], edges, scores

    def _pooled(
        self, label: bool | None
    ) -> tuple[FloatArray, NDArray[np.int64], FloatArray | None]:
        """Return the scores of all groups, the size of each, and the weights."""
        parts = [self.scored.part(code, label) for code in self.codes]
        sizes = np.array([part.weights.worth for part in parts])
        own = [part.weights.values for part in parts if part.weights.values is not None]
        scores = np.concatenate([part.values for part in parts])
        return self.scored.settings.shares(scores), sizes, np.concatenate(own) if own else None

    def _shares(
        self, edges: FloatArray, scores: FloatArray, sizes: Any, weights: FloatArray | None
    ) -> FloatArray:
        """Return the shares of drawn groups in cells, of shape (draws, groups, cells)."""
        cells = np.searchsorted(edges, scores, side="right")
        mass = np.bincount(cells, weights, minlength=len(edges) + 1).astype(np.float64)
        drawn = [
            self.generator.multinomial(size, mass / mass.sum(), size=_FEW_DRAWS) / size
            for size in sizes.tolist()
        ]
        return np.stack(drawn, axis=1)

    def _apart(self, values: FloatArray, *, largest: bool = False) -> FloatArray:
        """Return the largest distance over pairs, of values of shape (draws, groups, cells)."""
        found = np.zeros(len(values))
        for first, second in self._pairs:
            apart = np.abs(values[:, first] - values[:, second])
            found = np.maximum(found, apart.max(axis=-1) if largest else apart.sum(axis=-1))
        return found


Chance: TypeAlias = Callable[[Alike, bool | None], FloatArray]
