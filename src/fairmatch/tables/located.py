"""Features (an array, points or a table) read as points to be matched."""

from typing import Any

import numpy as np

from fairmatch.exceptions import InputError
from fairmatch.tables.arrays import check_length, read_features
from fairmatch.tables.points import Points


def read_points(X: Any, *, n_rows: int | None = None, name: str = "X") -> Points:
    """Read features as points, whose squared distance says how different two people are.

    Parameters
    ----------
    X : array, Points or table
        Numbers are taken as they are, in an array or in a table of numbers alone. Points are
        too. A table with categories is encoded by `TableEncoder`: a number is scaled to [0, 1],
        and a category adds 2 where the levels differ.
    n_rows : int, optional
        The number of rows that is expected.
    name : str, default="X"
        What errors call it.

    Returns
    -------
    Points
        Numbers and category codes; there are no one-hot columns.

    Raises
    ------
    InputError
        If a value is missing or not finite, or the length differs.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [20, 30, 60], "job": ["cook", "nurse", "cook"]})
    >>> found = read_points(people)
    >>> found.numbers.ravel().tolist(), found.codes.ravel().tolist()
    ([0.0, 0.25, 1.0], [0, 1, 0])
    >>> read_points(people[["age"]]).numbers.ravel().tolist()
    [20.0, 30.0, 60.0]
    """
    if isinstance(X, Points):
        points = X
        if not np.isfinite(points.numbers).all():
            row = int(np.nonzero(~np.isfinite(points.numbers))[0][0])
            raise InputError(
                f"{name} has a NaN or infinite number (row {row}). Impute it, or leave the row out."
            )
    elif _has_categories(X):
        # Imported where a table needs it: measures and matchings of numbers do without pandas.
        from fairmatch.tables.encoder import TableEncoder

        points = TableEncoder(max_levels=None).fit(X).to_points(X)
    else:
        numbers = read_features(X, name=name)
        points = Points(numbers, np.empty((len(numbers), 0), dtype=np.int32))
    check_length(points.numbers, n_rows, name)
    return points


def _has_categories(X: Any) -> bool:
    """Return whether X is a table with a column that is not numeric."""
    if isinstance(X, np.ndarray | list | tuple) or not hasattr(X, "columns"):
        return False
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return False
    return not all(kind.is_numeric() or kind == nw.Boolean for kind in frame.schema.values())
