"""The columns of any table, read into arrays: the one place that knows the table libraries."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, TypeAlias

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils.validation import check_array

from fairmatch.exceptions import ColumnError, InputError
from fairmatch.tables.names import nearest_name

Values: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Column:
    """A column as arrays.

    Parameters
    ----------
    name : str
        Its name; ``x0``, ``x1``, … in an array.
    kind : {"numeric", "categorical"}
        Text and booleans are categorical.
    values : ndarray of shape (n_rows,)
        Numbers; or, if categorical, positions in `levels`, -1 where missing.
    missing : ndarray of bool of shape (n_rows,)
        Which values are missing: null, None or NaN.
    levels : pandas.Index or None
        The categories: those of the dtype where it fixes them, else the values seen, sorted.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairmatch.tables.columns import read_columns
    >>> (member,) = read_columns(pd.DataFrame({"member": [True, True]}))
    >>> member.levels.to_list(), member.values.tolist()
    ([False, True], [1, 1])
    """

    name: str
    kind: Literal["numeric", "categorical"]
    values: Values
    missing: npt.NDArray[np.bool_]
    levels: pd.Index[Any] | None = None


def read_columns(X: Any) -> list[Column]:
    """Read a table or an array, column by column.

    Parameters
    ----------
    X : table or array of shape (n_rows, n_columns)
        A table of pandas, polars or pyarrow; anything else is read as an array of numbers.

    Returns
    -------
    list of Column
        The columns, in the table's order.

    Raises
    ------
    InputError
        If there are no rows or columns, a name comes twice, or a column holds infinities or
        values of different types.
    ColumnError
        If a column is of a kind that is neither numeric nor categorical, such as dates.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairmatch.tables.columns import read_columns
    >>> age, job = read_columns(pd.DataFrame({"age": [20, 30], "job": ["nurse", "cook"]}))
    >>> age.kind, age.values
    ('numeric', array([20, 30]))
    >>> job.kind, job.values, job.levels
    ('categorical', array([1, 0]), Index(['cook', 'nurse'], dtype='object'))
    """
    if nw.dependencies.is_polars_lazyframe(X):
        raise InputError("X is a lazy frame: call X.collect() first.")
    if not nw.dependencies.is_into_dataframe(X):
        return _read_array(X)
    try:
        table = nw.from_native(X, eager_only=True)
        names = list(table.columns)
    except nw.exceptions.DuplicateError as error:
        raise InputError(f"Each column needs a name of its own. {error}") from error
    if len(set(names)) < len(names):  # pyarrow allows it, and narwhals lets it pass
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"Each column needs a name of its own; these come twice: {twice}")
    if not names:
        raise InputError(
            f"Found 0 feature(s) (shape={table.shape}) while a minimum of 1 is required."
        )
    if not len(table):
        raise InputError(
            f"Found 0 sample(s) (shape={table.shape}) while a minimum of 1 is required."
        )
    columns = zip(names, table.iter_columns(), strict=True)
    return [_read_series(str(name), series) for name, series in columns]


def _read_array(X: Any) -> list[Column]:
    try:
        array = check_array(X, dtype="numeric", ensure_all_finite=False)
    except ValueError as error:
        raise InputError(f"{error}\nArrays hold numbers; text belongs in a data frame.") from error
    return [_numeric(f"x{i}", values) for i, values in enumerate(array.T)]


def _read_series(name: str, series: nw.Series[Any]) -> Column:
    dtype = series.dtype
    if dtype.is_numeric():
        # Whole columns of plain floats and integers are viewed, not copied.
        plain = not isinstance(dtype, nw.Decimal) and series.null_count() == 0
        return _numeric(name, (series if plain else series.cast(nw.Float64)).to_numpy())
    native = series.to_native()
    if isinstance(native, pd.Series) and isinstance(native.dtype, pd.CategoricalDtype):
        levels, codes = native.cat.categories, native.cat.codes.to_numpy()
        if levels.inferred_type not in ("string", "integer", "floating", "boolean"):
            raise ColumnError(
                f"Column {name!r} has categories of type {levels.inferred_type}: they must be all "
                "text, all numbers or all booleans."
            )
        return Column(name, "categorical", codes, codes < 0, levels.astype(object))
    if isinstance(dtype, nw.Boolean):
        return _categorical(name, series.to_numpy(), [False, True])
    if isinstance(dtype, nw.Enum):
        return _categorical(name, series.cast(nw.String).to_numpy(), list(dtype.categories))
    if isinstance(dtype, nw.String | nw.Categorical):
        return _categorical(name, series.cast(nw.String).to_numpy())
    if series.null_count() == len(series):  # a column of nulls has no type
        return _categorical(name, np.full(len(series), None, dtype=object))
    if isinstance(dtype, nw.Object):
        types = sorted({type(value).__name__ for value in series.drop_nulls().to_list()})
        raise InputError(
            f"Column {name!r} holds Python objects of type {', '.join(types)}: make it all "
            "numbers or all text."
        )
    raise ColumnError(
        f"Column {name!r} is of type {dtype}, which cannot be encoded: turn it into numbers, text "
        "or booleans, or leave it out."
    )


def _numeric(name: str, values: Values) -> Column:
    if values.dtype.kind != "f":
        return Column(name, "numeric", values, np.zeros(len(values), dtype=bool))
    if np.isinf(values).any():
        raise InputError(f"Column {name!r} holds infinite values (inf): replace or leave them out.")
    return Column(name, "numeric", values, np.isnan(values))


def _categorical(name: str, values: Values, levels: list[Any] | None = None) -> Column:
    missing = np.asarray(pd.isna(values))
    if levels is None:
        codes, found = pd.factorize(values, sort=True)
        return Column(name, "categorical", codes, missing, pd.Index(found, dtype=object))
    index = pd.Index(levels, dtype=object)
    return Column(name, "categorical", index.get_indexer(values), missing, index)


def split_column(X: Any, column: str | int) -> tuple[Any, Values]:
    """Take one column out of a table.

    Parameters
    ----------
    X : table or array of shape (n_rows, n_columns)
        A table of pandas, polars or pyarrow, or an array.
    column : str or int
        Its name, or its position.

    Returns
    -------
    rest, values
        The table without the column, of the same kind, and the column.

    Raises
    ------
    ColumnError
        If there is no such column; the nearest name is suggested.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairmatch.tables.columns import split_column
    >>> rest, sex = split_column(pd.DataFrame({"age": [20, 30], "sex": ["f", "m"]}), "sex")
    >>> list(rest.columns), sex.tolist()
    (['age'], ['f', 'm'])
    """
    if isinstance(column, bool) or not isinstance(column, str | Integral):
        raise ColumnError(f"There is no column {column!r}: it is neither a name nor a position.")
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        name = _column_name(frame.columns, column)
        return nw.to_native(frame.drop(name)), frame[name].to_numpy()
    array = np.asarray(X)
    if isinstance(column, str) or array.ndim != 2:
        raise ColumnError(
            f"There is no column {column!r}: the data are an array of shape {array.shape}, whose "
            "columns have positions, not names. Give a position, or a table."
        )
    position = _position(array.shape[1], column)
    return np.delete(array, position, axis=1), array[:, position]


def _column_name(names: list[str], column: str | int) -> str:
    if not isinstance(column, str):
        return names[_position(len(names), column)]
    if column in names:
        return column
    near = nearest_name(column, names)
    hint = f" Did you mean {near!r}?" if near else f" There are: {', '.join(names[:10])}."
    raise ColumnError(f"There is no column {column!r}.{hint}")


def _position(n_columns: int, column: int) -> int:
    if not -n_columns <= column < n_columns:
        raise ColumnError(f"There is no column {column}: the data have {n_columns} columns.")
    return int(column) % n_columns
