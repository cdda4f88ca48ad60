"""An order of people that does not depend on the order of their table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmatch.matching.coupling import IndexArray
from fairmatch.tables.columns import Column


def content_order(
    columns: Iterable[Column],
    known: Iterable[NDArray[Any]],
    scores: Iterable[NDArray[Any]],
    weights: NDArray[Any] | None = None,
) -> IndexArray:
    """Return the rows in an order that depends on their content, not on their positions.

    Rows with the same content keep the order of the table, which makes no difference.

    Parameters
    ----------
    columns : iterable of Column
        The columns that describe the people.
    known : iterable of arrays
        Their groups and labels, as numbers.
    scores : iterable of arrays
        Their scores, one array per model. They order people who are alike in all of the above.
    weights : array, optional
        Their weights. They order people who also have the same scores.

    Notes
    -----
    People are drawn by their positions, and tied distances allow several matchings of least cost.
    So an audit of the rows in their given order would depend on that order. This function orders
    rows by a hash of their content, which is as good as random. Unlike in a sorted table,
    neighbours have nothing in common.

    Examples
    --------
    >>> ages, scores = np.array([20.0, 50.0, 30.0]), np.array([0.5, 0.1, 0.9])
    >>> turned = np.array([2, 0, 1])
    >>> one = ages[content_order([], [ages], [scores])]
    >>> other = ages[turned][content_order([], [ages[turned]], [scores[turned]])]
    >>> bool((one == other).all())
    True
    """
    described = [np.where(column.missing, np.nan, column.values) for column in columns]
    keys = [_hashed(scores), _hashed([*described, *known])]
    return np.lexsort(keys if weights is None else [weights, *keys])


def _hashed(columns: Iterable[NDArray[Any]]) -> NDArray[np.uint64]:
    """Return a number for every row that depends on the numbers in it (SplitMix64)."""
    state: Any = np.uint64(0)
    for column in columns:
        # Adding 0 turns -0.0 into 0.0, which is the same number.
        state = state ^ (column.astype(np.float64) + 0.0).view(np.uint64)
        state = state + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state = state ^ (state >> np.uint64(31))
    return np.asarray(state, dtype=np.uint64)
