r"""The excess of a pair of scores: how much worse it is than in a fairest matching.

The mean score gap of a coupling of two groups is at least the Wasserstein distance of their scores.
It equals that distance if and only if mass crosses each score level only in the direction in which
the two distribution functions differ there. One inequality per pair states both facts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Index = NDArray[np.intp]
T = TypeVar("T", bound=np.generic)

#: Scores in [0, 1] are counted in these units, which makes their sums and differences exact.
SCORE_UNIT = 2.0**-50


@dataclass(frozen=True)
class ScoreTerm:
    r"""What scores add to the cost of a pair: a price on its excess, or a ban.

    Attributes
    ----------
    price : float
        Cost of one unit of excess. It is infinite if only pairs without excess are allowed.
    score, lift : pair of arrays of float
        Score of every source and target atom, and the Kantorovich potential at that score.
    level : pair of arrays of int
        Position of every atom's score among all scores.
    low, high : arrays of int
        The positions between which the target of a source atom must lie to have no excess.
    component : pair of arrays of int
        Component of every atom. Atoms of different components are never matched without excess.

    Notes
    -----
    Let D = F₀ − F₁ be the difference of the distribution functions of the scores, and
    :math:`G(t) = \int_{-\infty}^t \mathrm{sign}\, D`. For a pair of scores (s, t) its excess is

    .. math:: e(s, t) = |s - t| - (G(t) - G(s)) \ge 0 .

    The mean of :math:`G(t) - G(s)` is the same for every coupling, namely
    :math:`\int |D| = W_1`. So the mean excess of a coupling is its mean score gap minus W₁. It is
    zero if and only if no pair has excess: mass moves up only where D > 0, down only where D < 0,
    and not at all where D = 0.
    """

    price: float
    score: tuple[Floats, Floats]
    lift: tuple[Floats, Floats]
    level: tuple[Index, Index]
    low: Index
    high: Index
    component: tuple[Index, Index]

    @classmethod
    def between(
        cls, score0: Floats, weight0: Floats, score1: Floats, weight1: Floats, price: float
    ) -> ScoreTerm:
        """Return the term of two groups. Scores are multiples of `SCORE_UNIT`.

        Weights are whole numbers, with the same sum in both groups.
        """
        levels, number = np.unique(np.concatenate([score0, score1]), return_inverse=True)
        level = number[: len(score0)], number[len(score0) :]
        below = np.cumsum(
            np.bincount(level[0], weight0, len(levels))
            - np.bincount(level[1], weight1, len(levels))
        )[:-1]
        lift = np.append(0.0, np.cumsum(np.sign(below) * np.diff(levels)))
        at = np.arange(len(levels))
        tops = np.append(np.flatnonzero(below <= 0), len(levels) - 1)
        feet = np.append(0, np.flatnonzero(below >= 0) + 1)
        high = tops[np.searchsorted(tops, at)]
        low = feet[np.searchsorted(feet, at, side="right") - 1]
        component = np.append(0, np.cumsum(below == 0))
        return cls(
            price,
            (score0, score1),
            (lift[level[0]], lift[level[1]]),
            level,
            low[level[0]],
            high[level[0]],
            (component[level[0]], component[level[1]]),
        )

    def first(self, count0: int, count1: int) -> ScoreTerm:
        """Return the term of the first atoms of both groups."""

        def both(pair: tuple[NDArray[T], NDArray[T]]) -> tuple[NDArray[T], NDArray[T]]:
            return pair[0][:count0], pair[1][:count1]

        return replace(
            self,
            score=both(self.score),
            lift=both(self.lift),
            level=both(self.level),
            low=self.low[:count0],
            high=self.high[:count0],
            component=both(self.component),
        )

    def excess(self, i: Index | slice, j: Index | slice) -> Floats:
        """Compute the excess of pairs, without rounding."""
        gap = np.abs(self.score[0][i] - self.score[1][j])
        return np.asarray(gap - (self.lift[1][j] - self.lift[0][i]))

    def gaps(self, part: slice, precision: type[np.floating]) -> NDArray[np.floating]:
        """Return the priced score gaps of a block of source atoms with all targets."""
        one, other = (score.astype(precision) for score in self.score)
        block = np.subtract.outer(one[part], other)
        np.abs(block, out=block)
        block *= precision(self.price)
        return block

    def forbidden(self, part: slice) -> NDArray[np.bool_]:
        """Return a mask of the targets with which a block of source atoms may not be matched."""
        level = self.level[1]
        return (level < self.low[part, None]) | (level > self.high[part, None])

    def order(self) -> tuple[Index, Index]:
        """Return the atoms of both groups in the order of their scores."""
        return np.argsort(self.level[0], kind="stable"), np.argsort(self.level[1], kind="stable")
