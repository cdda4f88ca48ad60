"""The columns of a table that hold the groups, given by name or position."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairmatch.exceptions import GroupError, InputError
from fairmatch.tables.arrays import is_missing
from fairmatch.tables.columns import split_column
from fairmatch.tables.groups import listed, refuse_twice

Columns = str | int | Sequence[str | int] | None


def split_columns(X: Any, columns: Columns) -> tuple[Any, Any]:
    """Split a table into the columns that hold the groups and the rest.

    Parameters
    ----------
    X : table or array of shape (n_rows, n_columns)
        The table.
    columns : str, int or a list of them
        Names or positions of the columns that hold the groups.

    Returns
    -------
    rest : table or array
        The table without these columns.
    values : column or DataFrame
        One column, or a pandas frame of several.
    """
    if isinstance(columns, str) or not isinstance(columns, Sequence | np.ndarray):
        return split_column(X, columns)  # type: ignore[arg-type]
    wanted = as_list(columns)
    if not wanted:
        raise InputError("sensitive_column is an empty list. Name a column, or leave it out.")
    names, width = column_names(X), table_width(X)
    # Positions change as columns are taken out. Names do not; without names, the columns are taken
    # out from the last to the first.
    places = [c % width if is_position(c, width) else c for c in wanted]
    if names is not None:
        wanted = [names[c] if is_position(c, width) else c for c in places]
    order = wanted
    if names is None and all(is_position(c, width) for c in places):
        wanted = places
        order = sorted(places, reverse=True)
    refuse_twice(wanted, "sensitive_column")
    taken = {}
    for column in order:
        X, taken[column] = split_column(X, column)
    if len(wanted) == 1:
        return X, taken[wanted[0]]
    return X, pd.DataFrame({str(column): taken[column] for column in wanted})


def is_position(column: Any, width: int) -> bool:
    """Return whether a value is a position in a table with ``width`` columns."""
    whole = isinstance(column, Integral) and not isinstance(column, bool)
    return whole and -width <= int(column) < width


def as_list(columns: Columns) -> list[Any]:
    """Return one column, or several, as a list."""
    if columns is None:
        return []
    several = isinstance(columns, Sequence | np.ndarray) and not isinstance(columns, str)
    return list(columns) if several else [columns]  # type: ignore[arg-type]


def joined_attributes(sensitive: Any, attributes: tuple[str, ...]) -> NDArray[Any]:
    """Return the combination of several attributes as text, in the form of `read_groups`.

    Attributes with names are found by name, in any order. Where one is missing, it is None.
    """
    frame = nw.from_native(sensitive, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        named = {str(name): name for name in frame.columns}
        unnamed = attributes == tuple(map(str, range(len(attributes))))
        if not unnamed and set(named) != set(attributes):
            raise GroupError(
                f"sensitive_features has the attributes {listed(list(named))}, and those of fit "
                f"were {listed(attributes)}. Pass the same attributes."
            )
        order = list(named.values()) if unnamed else [named[name] for name in attributes]
        columns = [frame[name].to_numpy() for name in order]
    else:
        array = np.asarray(sensitive, dtype=object)
        columns = list(array.T) if array.ndim == 2 else [array]
    rows = zip(*columns, strict=True)
    joined = np.array([", ".join(map(str, values)) for values in rows], dtype=object)
    for column in columns:
        joined[is_missing(column)] = None
    return joined


def column_names(X: Any) -> list[Any] | None:
    """Return the names of a table's columns, or None for an array."""
    names = getattr(X, "column_names", getattr(X, "columns", None))
    return None if names is None else list(names)


def table_width(X: Any) -> int:
    """Return the number of columns of a table or an array."""
    names = column_names(X)
    shape = np.asarray(X).shape if names is None else (0, len(names))
    return int(shape[1]) if len(shape) == 2 else 1
