"""Columns that describe people and give their group away."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from typing import Any

import narwhals as nw
import numpy as np

from fairmatch.auditing.facts import LeakFacts
from fairmatch.exceptions import ColumnError
from fairmatch.matching.coupling import IndexArray
from fairmatch.tables.leaks import find_leaks

# With more rows, a sample is examined first, and then all rows of the columns that it points at.
_MOST_ROWS = 200_000


def take(X: Any, rows: IndexArray) -> Any:
    """Return some rows of a table or array."""
    if not nw.dependencies.is_into_dataframe(X):
        return np.asarray(X)[rows]
    return nw.from_native(X, eager_only=True)[rows].to_native()


def leaks_of(
    X: Any, sensitive_features: Any, n_rows: int, kept: Collection[str]
) -> list[LeakFacts]:
    """Return the columns that give the group away. Raise if one does so in every row.

    Parameters
    ----------
    X : table or array of shape (n_rows, n_columns)
        The columns that describe people.
    sensitive_features : column, or table of several attributes
        Group of every row.
    n_rows : int
        Number of rows.
    kept : collection of str
        Columns to keep although they give the group away.

    Raises
    ------
    ColumnError
        If a column is the group or determines it, and is not listed in ``kept``.
    """
    if n_rows > _MOST_ROWS:
        rows = np.sort(np.random.default_rng(0).permutation(n_rows)[: _MOST_ROWS // 2])
        found = find_leaks(take(X, rows), take(sensitive_features, rows))
        if found:
            X = _only(X, {leak.column for leak in found})
            found = find_leaks(X, sensitive_features)
    else:
        found = find_leaks(X, sensitive_features)
    exact = [leak for leak in found if leak.is_exact and leak.column not in kept]
    if exact:
        told = "; ".join(leak.words for leak in exact)
        names = shlex.join(dict.fromkeys(leak.column for leak in exact))
        raise ColumnError(
            f"X gives the group away: {told}. Then nobody has a near person in the other group. "
            f"Leave it out of X (--drop {names}), or keep it, as where a model reads it from X: "
            f"keep={list(dict.fromkeys(leak.column for leak in exact))} (--keep {names})."
        )
    return [
        LeakFacts(
            leak.column,
            leak.kind,
            leak.attribute,
            None if leak.group is None else str(leak.group),
            leak.agreement,
            leak.words,
        )
        for leak in found
    ]


def _only(X: Any, names: Collection[str]) -> Any:
    if not nw.dependencies.is_into_dataframe(X):
        return X
    frame = nw.from_native(X, eager_only=True)
    return frame.select([name for name in frame.columns if str(name) in names]).to_native()
