"""An order of people that their table has no say in."""

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
    """Return the rows in an order that depends on what they hold, not on where they stand.

    Rows that hold the same stay in the order of the table, which then makes no difference.

    Parameters
    ----------
    columns : iterable of Column
        What describes the people.
    known : iterable of arrays
        What else is known of them, as numbers: their groups and labels.
    scores : iterable of arrays
        Their scores, one array per model, which order people who are alike otherwise.
    weights : array, optional
        Their weights, which order people who are alike in all of this.

    Notes
    -----
    People are drawn by where they stand, and where distances tie there are several matchings of
    least cost. An audit that took the rows as they come would depend on their order. This order is
    that of a hash of each row, which is as good as random: neighbours in it have nothing in
    common, as they would have in a sorted table.

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
        # Adding 0 makes one of the two zeros.
        state = state ^ (column.astype(np.float64) + 0.0).view(np.uint64)
        state = state + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state = state ^ (state >> np.uint64(31))
    return np.asarray(state, dtype=np.uint64)
