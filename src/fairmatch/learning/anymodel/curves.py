"""Increasing curves, distributions of scores, and the codes of groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fairmatch.exceptions import GroupError, InputError, ModelFileError
from fairmatch.learning.columns import joined_attributes, table_width
from fairmatch.tables.arrays import FloatArray, read_column
from fairmatch.tables.groups import listed

# Resolution of a quantile curve: a rank is known to one part in this many, and exactly in groups
# with fewer different scores. With few knots, the search among them stays in fast memory.
RESOLUTION = 10_000


@dataclass(frozen=True, eq=False, repr=False)
class Curve:
    """A continuous, increasing function, linear between knots.

    Below the first knot and above the last one its slope is 1. So people with scores outside the
    range of the fit keep their order.

    Parameters
    ----------
    knots : array of shape (n_knots,)
        Points at which the function is known, strictly increasing.
    values : array of shape (n_knots,)
        Values of the function at the knots, never decreasing.

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
        """Return the values of the function at the points x."""
        found = np.interp(x, self.knots, self.values)
        # Adding nothing keeps every bit between the knots: equal values stay equal.
        found += x - np.clip(x, self.knots[0], self.knots[-1])
        return found

    def get_state(self) -> dict[str, list[float]]:
        """Return the curve as plain values for JSON."""
        return {"knots": self.knots.tolist(), "values": self.values.tolist()}

    @classmethod
    def from_state(cls, state: Any) -> Self:
        """Return the curve that plain values describe; raise an error if they are damaged."""
        try:
            knots, values = (np.asarray(state[k], dtype=np.float64) for k in ("knots", "values"))
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"The file is damaged: this is not a curve ({error}).") from None
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
        Distinct scores, increasing. If there are more than `RESOLUTION`, about that many are kept.
    middle : array of shape (n_knots,)
        Share of the group below each score, plus half of the share at it.
    upto : array of shape (n_knots,)
        Share of the group at or below each score.
    tied : float
        Share of the group that has the same score as somebody else.
    """

    scores: FloatArray
    middle: FloatArray
    upto: FloatArray
    tied: float

    @classmethod
    def of(cls, scores: FloatArray, weights: FloatArray | None = None) -> Self:
        """Return the distribution of scores, with weighted rows."""
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
    """Return the positions of the scores to keep, which are at equally spaced ranks.

    A score that many people share covers several of these ranks. Its two neighbours are kept as
    well, so the jump of the rank at this score stays sharp.
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
    """Return the position of every row's group among known labels.

    Parameters
    ----------
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row. Unlike in a fit, all rows may be of one group.
    labels : sequence
        Labels of the groups in the table of the fit.
    attributes : tuple of str
        Names of the attributes in the table of the fit, if there were several. The columns of a
        table are found by these names, in any order.
    n_rows : int
        Expected number of rows.
    """
    if attributes or table_width(sensitive_features) > 1:
        named = joined_attributes(sensitive_features, attributes)
    else:
        named = read_column(sensitive_features, "sensitive_features")
    if len(named) != n_rows:
        raise InputError(
            f"sensitive_features has {len(named)} rows where {n_rows} were expected. Pass one "
            "group for every score."
        )
    codes = np.full(len(named), -1, dtype=np.int32)
    for code, label in enumerate(labels):
        codes[np.asarray(named == label, dtype=bool)] = code
    if codes.min() < 0:
        strange = named[codes < 0].tolist()[0]
        raise GroupError(
            f"sensitive_features holds {strange!r}, a group that was not seen when the "
            f"adjustment was fitted. It knows {listed(labels)}. Fit it on a table with that "
            "group, or leave those rows out."
        )
    return codes
