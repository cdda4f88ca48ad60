"""Reading of features (an array, points or a table) as points to be matched."""

from typing import Any

import numpy as np

from fairmatch.exceptions import InputError
from fairmatch.tables.arrays import check_length, read_features
from fairmatch.tables.points import Points


def read_points(X: Any, *, n_rows: int | None = None, name: str = "X") -> Points:
    """Read features as points. Their squared distance measures how different two people are.

    Parameters
    ----------
    X : array, Points or table
        The features. Points, arrays of numbers and tables of only numbers are used as they are. A
        table with categories is encoded by `TableEncoder`: a number is scaled to [0, 1], and a
        category adds 2 to the squared distance where the levels differ.
    n_rows : int, optional
        The expected number of rows.
    name : str, default="X"
        How errors name the argument.

    Returns
    -------
    Points
        Numbers and category codes, without one-hot columns.

    Raises
    ------
    InputError
        If a value is missing or not finite, or if the number of rows differs.

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
                f"{name} has a NaN or infinite number (row {row}, counted from 0), and numbers "
                "must be finite. Impute it, or leave the row out."
            )
    elif _has_categories(X):
        # Imported only for tables: measures and matchings of numbers do without pandas.
        from fairmatch.tables.encoder import TableEncoder

        points = TableEncoder(max_levels=None).fit(X).to_points(X)
    else:
        numbers = read_features(X, name=name)
        points = Points(numbers, np.empty((len(numbers), 0), dtype=np.int32))
    check_length(points.numbers, n_rows, name)
    return points


def _has_categories(X: Any) -> bool:
    """Return whether X is a table with a column that is neither numeric nor boolean."""
    if isinstance(X, np.ndarray | list | tuple) or not hasattr(X, "columns"):
        return False
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return False
    return not all(kind.is_numeric() or kind == nw.Boolean for kind in frame.schema.values())
