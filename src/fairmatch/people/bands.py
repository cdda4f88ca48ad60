"""Ordered groups from a number, such as ages under 40 and ages of 40 and over."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairmatch.exceptions import InputError
from fairmatch.people.checks import FloatArray, check_count, check_number, read_numbers

# More bands than this hold too few people each to be compared.
_MOST_BANDS = 100


class Bands:
    """The band of every row, in the order of the number that was cut.

    `bands` makes them. Pass them as ``sensitive_features``.

    Attributes
    ----------
    values : array of shape (n_rows,)
        The number of every row; NaN where it is not known.
    edges : tuple of float
        Where the number is cut. An edge belongs to the band above it.
    labels : tuple of str
        The name of each band, from the lowest to the highest.
    """

    def __init__(self, values: FloatArray, edges: tuple[float, ...]) -> None:
        self.values, self.edges = values, edges
        self.labels = _band_names(edges)

    @property
    def codes(self) -> NDArray[np.intp]:
        """Position of each row's band in ``labels``; -1 where the number is not known."""
        codes = np.searchsorted(np.asarray(self.edges), self.values, side="right")
        return np.where(np.isnan(self.values), -1, codes)

    @property
    def shape(self) -> tuple[int]:
        """Number of rows, as arrays tell it."""
        return (len(self.values),)

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        names = np.array([*self.labels, None], dtype=object)
        return names[self.codes]

    @overload
    def __getitem__(self, rows: SupportsIndex) -> str | None: ...
    @overload
    def __getitem__(self, rows: Any) -> Bands: ...
    def __getitem__(self, rows: Any) -> Bands | str | None:
        # scikit-learn asks for (rows, ...) where an array has one axis or more.
        rows = rows[0] if isinstance(rows, tuple) else rows
        taken = self.values[rows]
        if np.ndim(taken) == 0:
            return Bands(np.atleast_1d(taken), self.edges).__array__()[0]  # type: ignore[no-any-return]
        return Bands(taken, self.edges)

    def __repr__(self) -> str:
        return f"<Bands of {len(self)} rows: {', '.join(self.labels)}>"


def bands(
    values: ArrayLike,
    edges: Sequence[float] | None = None,
    *,
    n: int | None = None,
    width: float | None = None,
) -> Bands:
    """Cut a number into ordered groups.

    Pass exactly one of ``edges``, ``n`` and ``width``.

    Parameters
    ----------
    values : array-like of shape (n_rows,)
        A number for every row, such as an age. A missing value belongs to no band.
    edges : sequence of float, optional
        Where to cut, in increasing order. An edge belongs to the band above it.
    n : int, optional
        Cut into this many bands with about the same number of people. There are fewer where many
        people share a value.
    width : float, optional
        Cut at the multiples of this width, such as every 10 years.

    Returns
    -------
    Bands
        The bands, to be passed as ``sensitive_features``. To cut other rows, such as new data, at
        the same places, pass the edges that were found: ``bands(other, found.edges)``.

    Notes
    -----
    Models match each band with the next one. The gap of any two bands is then at most the sum of
    the gaps between them.

    Examples
    --------
    >>> from fairmatch import bands
    >>> found = bands([25, 40, 61, 39], [40])
    >>> found.labels, list(found)
    (('under 40', '40 and over'), ['under 40', '40 and over', '40 and over', 'under 40'])
    >>> bands([25, 40, 61, 39], width=20).edges
    (40.0, 60.0)
    """
    numbers = read_numbers(values, "values")
    if np.isinf(numbers).any():
        raise InputError("values holds an infinite number. Correct it, or leave that row out.")
    known = numbers[~np.isnan(numbers)]
    if not len(known):
        raise InputError("values holds no number, so there is nothing to cut into bands.")
    if sum(way is not None for way in (edges, n, width)) != 1:
        raise InputError(
            "bands needs exactly one of edges=, n= and width=. Pass bands(age, [40]), "
            "bands(age, n=5) or bands(age, width=10)."
        )
    if edges is not None:
        return Bands(numbers, _read_edges(edges))
    if n is not None:
        check_count("n", n, 2)
        quantiles = np.quantile(known, np.arange(1, n) / n, method="higher")
        # Where most people share the least value, the others are a band of their own.
        above = known[known > known.min()]
        found = np.unique(quantiles[quantiles > known.min()])
        found = above[:0] if not len(above) else found if len(found) else above.min(keepdims=True)
    else:
        check_number("width", width, "(0, inf)")
        assert width is not None
        first, last = np.floor(known.min() / width) + 1.0, np.floor(known.max() / width)
        if last - first >= _MOST_BANDS:
            raise InputError(
                f"width={width:g} cuts values from {known.min():g} to {known.max():g} into more "
                f"than {_MOST_BANDS} bands. Choose a larger width.",
                parameter="width",
            )
        found = np.arange(first, last + 1.0) * width
    if not len(found):
        raise InputError("The values fall into a single band. Choose other edges.")
    return Bands(numbers, tuple(found.tolist()))


def _read_edges(edges: Sequence[float]) -> tuple[float, ...]:
    """Return the edges as numbers. Raise unless they increase."""
    cuts = (
        read_numbers(np.atleast_1d(np.asarray(edges)), "edges") if np.size(edges) else np.zeros(0)
    )
    if not len(cuts) or not np.isfinite(cuts).all() or (np.diff(cuts) <= 0.0).any():
        raise InputError(
            f"edges must be finite numbers in increasing order, got {list(edges)!r}.",
            parameter="edges",
        )
    return tuple(cuts.tolist())


def _band_names(edges: tuple[float, ...]) -> tuple[str, ...]:
    """Return readable names, which depend on the edges alone, so that they are the same later."""
    shown = [f"{edge:.10g}" for edge in edges]
    between = [f"{low} to under {high}" for low, high in pairwise(shown)]
    return (f"under {shown[0]}", *between, f"{shown[-1]} and over")
