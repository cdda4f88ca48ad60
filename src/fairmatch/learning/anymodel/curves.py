"""Increasing curves through a few points, and the groups that each of them belongs to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fairmatch.exceptions import GroupError, InputError, ModelFileError
from fairmatch.learning.columns import joined_attributes, table_width
from fairmatch.tables.arrays import FloatArray, read_column
from fairmatch.tables.groups import listed

# How finely a quantile curve is kept: a rank is known to one part in so many, and exactly in
# groups with fewer different scores. Few knots also keep the search for them in fast memory.
RESOLUTION = 10_000


@dataclass(frozen=True, eq=False, repr=False)
class Curve:
    """A continuous, increasing function, linear between knots.

    Below the first knot and above the last one it goes on with slope 1, so that people outside
    the range that was seen keep their order.

    Parameters
    ----------
    knots : array of shape (n_knots,)
        Where the function is known, strictly increasing.
    values : array of shape (n_knots,)
        Its values there, increasing.

    Examples
    --------
    >>> import numpy as np
    >>> curve = Curve(np.array([0.2, 0.4]), np.array([0.0, 1.0]))
    >>> curve(np.array([0.1, 0.25, 0.5])).round(2).tolist()
    [-0.1, 0.25, 1.1]
    """

    knots: FloatArray
    values: FloatArray

    def __repr__(self) -> str:
        return f"Curve({len(self.knots)} knots)"

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the values of the function at points."""
        found = np.interp(x, self.knots, self.values)
        found += x
        found -= np.clip(x, self.knots[0], self.knots[-1])
        return found

    def get_state(self) -> dict[str, list[float]]:
        """Return the curve as plain values that JSON holds."""
        return {"knots": self.knots.tolist(), "values": self.values.tolist()}

    @classmethod
    def from_state(cls, state: Any) -> Self:
        """Return the curve of plain values, or raise where they are damaged."""
        try:
            knots, values = (np.asarray(state[k], dtype=np.float64) for k in ("knots", "values"))
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"The file is damaged: this is no curve ({error}).") from None
        whole = knots.ndim == 1 and len(knots) > 0 and knots.shape == values.shape
        if not (whole and np.isfinite(knots).all() and np.isfinite(values).all()):
            raise ModelFileError("The file is damaged: a curve needs finite knots and values.")
        if (np.diff(knots) <= 0.0).any() or (np.diff(values) < 0.0).any():
            raise ModelFileError("The file is damaged: a curve must increase.")
        return cls(knots, values)


@dataclass(frozen=True, eq=False)
class Distribution:
    """The scores of one group, sorted, with their ranks.

    Attributes
    ----------
    scores : array of shape (n_knots,)
        Different scores, increasing; of many scores about `RESOLUTION` of them.
    middle : array of shape (n_knots,)
        Share of the group below each score, with half of those who have it.
    upto : array of shape (n_knots,)
        Share of the group at or below each score.
    tied : float
        Share of the group that has a score in common with somebody else.
    """

    scores: FloatArray
    middle: FloatArray
    upto: FloatArray
    tied: float

    @classmethod
    def of(cls, scores: FloatArray, weights: FloatArray | None = None) -> Self:
        """Return the distribution of scores, each person counted by their weight."""
        if weights is None:
            ordered = np.sort(scores)
            order = None
        else:
            order = np.argsort(scores, kind="stable")
            ordered = scores[order]
        first = np.flatnonzero(np.append(True, ordered[1:] > ordered[:-1]))
        counts = np.diff(np.append(first, len(ordered)))
        tied = counts > 1
        if weights is None or order is None:
            shares = counts / len(ordered)
            upto = np.cumsum(counts) / len(ordered)
        else:
            shares = np.add.reduceat(weights[order], first) / weights.sum()
            upto = np.cumsum(shares)
        kept = _kept(upto)
        middle = upto[kept] - shares[kept] / 2.0
        return cls(ordered[first[kept]], middle, upto[kept], float(shares[tied].sum()))

    def quantile(self, rank: FloatArray) -> FloatArray:
        """Return the scores at ranks, interpolated between people."""
        return np.interp(rank, self.middle, self.scores)

    def share_upto(self, score: FloatArray) -> FloatArray:
        """Return the share of the group at or below scores."""
        position = np.searchsorted(self.scores, score, side="right")
        return np.append(0.0, self.upto)[position]


def _kept(upto: FloatArray) -> NDArray[np.intp]:
    """Return which of many scores to keep: those at equally spaced ranks.

    A score that many people share is at several of these ranks. Its neighbours are kept with it,
    and so the jump of ranks at it.
    """
    if len(upto) <= RESOLUTION:
        return np.arange(len(upto))
    grid = np.searchsorted(upto, np.linspace(0.0, 1.0, RESOLUTION + 1))
    shared = grid[1:][grid[1:] == grid[:-1]]
    kept = np.concatenate([[0, len(upto) - 1], grid, shared - 1, shared + 1])
    return np.unique(np.clip(kept, 0, len(upto) - 1))


def group_codes(
    sensitive_features: Any,
    labels: Sequence[Any],
    attributes: tuple[str, ...] = (),
    *,
    n_rows: int,
) -> NDArray[np.integer[Any]]:
    """Return the position of every row's group among labels that are known.

    Parameters
    ----------
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row; unlike in fitting, one group alone will do.
    labels : sequence
        The groups that were seen when fitted.
    attributes : tuple of str
        Names of the attributes when fitted, where there were several. A table is read by them,
        whatever the order of its columns.
    n_rows : int
        Number of rows that is expected.
    """
    if attributes or table_width(sensitive_features) > 1:
        named = joined_attributes(sensitive_features, attributes)
    else:
        named = read_column(sensitive_features, "sensitive_features")
    if len(named) != n_rows:
        raise InputError(
            f"sensitive_features has {len(named)} rows where {n_rows} were expected: there must "
            "be a group for every score."
        )
    codes = np.full(len(named), -1, dtype=np.int16)
    for code, label in enumerate(labels):
        codes[np.asarray(named == label, dtype=bool)] = code
    if codes.min() < 0:
        strange = named[codes < 0].tolist()[0]
        raise GroupError(
            f"sensitive_features holds {strange!r}, a group that was not seen when the "
            f"adjustment was fitted. It knows {listed(labels)}. Fit it on a table with that group."
        )
    return codes
