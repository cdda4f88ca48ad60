"""The columns of any table, read into arrays. Only this module knows the table libraries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils.validation import check_array

from fairmatch.exceptions import ColumnError, InputError
from fairmatch.people.checks import check_names, column_names, is_missing, refuse_twice

_WHOLE = re.compile(r"[+-]?\d+")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_BOOLEANS = {"true": True, "false": False}


def level_type(levels: Sequence[Any]) -> str:
    """Return the type of levels: "boolean", "number", "text", or "nothing" if there are none."""
    if not len(levels):
        return "nothing"
    if all(isinstance(level, bool | np.bool_) for level in levels):
        return "boolean"
    return "text" if isinstance(levels[0], str) else "number"


def find_levels(known: Sequence[Any], asked: Sequence[Any]) -> npt.NDArray[np.intp]:
    """Find levels among known ones by their meaning, even if table libraries use other types.

    The result is the position of each asked level, or -1 if it is not known.

    Notes
    -----
    Levels of the same type are compared as they are: the texts "1" and "01" differ. Between types,
    a boolean equals its spellings in files (``True``, ``true``, ``TRUE``) and the number 0 or 1. A
    number equals every text that spells it, such as "1" and "1.0".

    Examples
    --------
    >>> find_levels([False, True], ["true", "false", "unknown"])
    array([ 1,  0, -1])
    >>> find_levels(["1", "2"], [2.0, 3.0])
    array([ 1, -1])
    """
    types = {level_type(known), level_type(asked)}
    if "text" not in types or types <= {"text", "nothing"}:
        # In Python, True, 1 and 1.0 are the same key.
        index = pd.Index(known, dtype=object)
        return np.asarray(index.get_indexer(pd.Index(asked, dtype=object)), dtype=np.intp)
    booleans = "boolean" in types
    last_first = list(enumerate(known))[::-1]  # among levels with one meaning the first counts
    spelt = {str(level): position for position, level in last_first}
    meant = {_key(level, booleans): position for position, level in last_first}
    # An equal spelling comes first: the number 1 is the text "1" rather than "01".
    found = [spelt.get(str(level), meant.get(_key(level, booleans), -1)) for level in asked]
    return np.array(found, dtype=np.intp)


def _key(level: Any, booleans: bool) -> Any:
    """Return a key that levels of the same meaning share."""
    if not isinstance(level, str):
        return level
    if booleans and level.casefold() in _BOOLEANS:
        return _BOOLEANS[level.casefold()]
    if _WHOLE.fullmatch(level):
        return int(level)
    return float(level) if NUMBER.fullmatch(level) else level


Values: TypeAlias = npt.NDArray[Any]

_WIDE = 1000  # a pandas table with more columns is read by type
_SHOWN = 20


@dataclass(frozen=True, eq=False)
class Column:
    """A column as arrays.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairmatch.people.columns import read_columns
    >>> (member,) = read_columns(pd.DataFrame({"member": [True, True]}))
    >>> member.levels.to_list(), member.values.tolist()
    ([False, True], [1, 1])
    """

    name: str  #: Name of the column. The columns of an array are called ``x0``, ``x1``, ….
    #: Numbers, or positions in `levels` if the column is categorical; -1 where missing.
    values: Values
    missing: npt.NDArray[np.bool_]  #: Which values are missing: null, None or NaN.
    #: The categories. They are those of the dtype if it fixes them, or else the sorted values.
    levels: pd.Index[Any] | None = None
    fixed: bool = False  #: Whether the dtype fixes the categories.


def read_columns(X: Any) -> list[Column]:
    """Read a pandas, polars or pyarrow table, or an array of numbers, column by column.

    Raises `InputError` for a table without rows or columns, repeated names, infinities or mixed
    types, and `ColumnError` for a column that is neither numeric nor categorical, such as dates.

    Examples
    --------
    >>> import pandas as pd
    >>> age, job = read_columns(pd.DataFrame({"age": [20, 30], "job": ["nurse", "cook"]}))
    >>> age.values, age.levels
    (array([20, 30]), None)
    >>> job.values, job.levels
    (array([1, 0]), Index(['cook', 'nurse'], dtype='object'))
    """
    if nw.dependencies.is_polars_lazyframe(X):
        raise InputError("X is a lazy frame: call X.collect() first.")
    if not nw.dependencies.is_into_dataframe(X):
        return _read_array(X)
    refuse_twice(column_names(X) or (), "X")
    table = nw.from_native(X, eager_only=True)
    names = list(table.columns)
    if not names:
        raise InputError(
            f"Found 0 feature(s) (shape={table.shape}) while a minimum of 1 is required."
        )
    if not len(table):
        raise InputError(
            f"Found 0 sample(s) (shape={table.shape}) while a minimum of 1 is required."
        )
    if isinstance(X, pd.DataFrame) and len(names) > _WIDE:
        return _read_wide(X, [str(name) for name in names])
    return _read_all(zip(map(str, names), table.iter_columns(), strict=True))


def _read_all(pairs: Iterable[tuple[str, nw.Series[Any]]]) -> list[Column]:
    """Read named columns. The error names all columns that cannot be read."""
    columns: list[Column] = []
    wrong: list[InputError] = []
    for name, series in pairs:
        try:
            columns.append(_read_series(name, series))
        except InputError as error:
            wrong.append(error)
    if len(wrong) == 1:
        raise wrong[0]
    if wrong:
        same = all(isinstance(error, ColumnError) for error in wrong)
        lines = "\n".join(map(str, wrong[:_SHOWN]))
        more = f"\nAnd {len(wrong) - _SHOWN} more." if len(wrong) > _SHOWN else ""
        text = f"{len(wrong)} columns cannot be used as they are.\n{lines}{more}"
        raise (ColumnError if same else InputError)(text)
    return columns


def _read_array(X: Any) -> list[Column]:
    if np.ma.isMaskedArray(X):  # masked entries are missing
        X = np.ma.filled(X.astype(np.float64), np.nan)
    try:
        objects = np.asarray(X)
        if objects.dtype.kind == "O" and objects.ndim == 2:  # None or NA may be among the numbers
            X = np.where(pd.isna(objects), np.nan, objects)
        array = check_array(X, dtype="numeric", ensure_all_finite=False)
    except ValueError as error:
        raise InputError(f"{error}\nArrays hold numbers; text belongs in a data frame.") from error
    return [_numeric(f"x{i}", values) for i, values in enumerate(array.T)]


def _read_wide(frame: pd.DataFrame, names: list[str]) -> list[Column]:
    """Read plain numbers many columns at a time.

    Read one by one, 100,000 columns would take half a minute.
    """
    columns: dict[int, Column] = {}
    dtypes = frame.dtypes.to_numpy()
    for dtype in set(dtypes):
        places = np.flatnonzero(dtypes == dtype)
        part = frame.iloc[:, places]
        if isinstance(dtype, np.dtype) and (dtype.kind in "iu" or dtype == np.float64):
            read = [_numeric(names[i], v) for i, v in zip(places, part.to_numpy().T, strict=True)]
        else:
            table = nw.from_native(part, eager_only=True)
            own = [names[i] for i in places]
            read = _read_all(zip(own, table.iter_columns(), strict=True))
        columns |= dict(zip(places.tolist(), read, strict=True))
    return [columns[place] for place in range(len(names))]


def _read_series(name: str, series: nw.Series[Any]) -> Column:
    dtype = series.dtype
    if dtype.is_numeric():
        # Columns of plain floats and integers without nulls are viewed, not copied.
        plain = not isinstance(dtype, nw.Decimal) and series.null_count() == 0
        return _numeric(name, (series if plain else series.cast(nw.Float64)).to_numpy())
    native = series.to_native()
    if isinstance(native, pd.Series) and isinstance(native.dtype, pd.CategoricalDtype):
        levels, codes = native.cat.categories, native.cat.codes.to_numpy()
        if levels.inferred_type not in ("string", "integer", "floating", "boolean"):
            raise ColumnError(
                f"Column {name!r} has categories of type {levels.inferred_type}: they must be all "
                "text, all numbers or all booleans. Convert them to one of these types."
            )
        return Column(name, codes, codes < 0, levels.astype(object), fixed=True)
    if isinstance(dtype, nw.Boolean):
        return _categorical(name, series.to_numpy(), [False, True])
    if isinstance(dtype, nw.Enum):
        return _categorical(name, series.cast(nw.String).to_numpy(), list(dtype.categories))
    if isinstance(dtype, nw.Categorical) and nw.dependencies.is_pyarrow_chunked_array(native):
        values = native.cast(native.type.value_type).to_numpy()
        if values.dtype.kind in "iuf":  # as numbers, 9 comes before 10
            missing = np.asarray(native.is_null().to_numpy())
            codes, found = pd.factorize(np.where(missing, np.nan, values), sort=True)
            return Column(name, codes, missing, _whole(found))
        return _categorical(name, values.astype(object))
    if isinstance(dtype, nw.String | nw.Categorical):
        return _categorical(name, series.cast(nw.String).to_numpy())
    if series.null_count() == len(series):  # a column of nulls has no type
        return _categorical(name, np.full(len(series), None, dtype=object))
    if isinstance(dtype, nw.Object):
        return _read_objects(name, series.to_numpy())
    if isinstance(dtype, nw.Date | nw.Datetime):
        raise ColumnError(
            f"Column {name!r} holds dates, which cannot be encoded as they are: give a number "
            "instead, such as the days since the first, or leave it out."
        )
    raise ColumnError(
        f"Column {name!r} is of type {dtype}, which cannot be encoded: turn it into numbers, text "
        "or booleans, or leave it out."
    )


def _read_objects(name: str, values: Values) -> Column:
    """Read Python objects: booleans or numbers with gaps among them, as in CSV files."""
    missing = is_missing(values)
    present = values[~missing].tolist()
    if all(isinstance(value, bool | np.bool_) for value in present):
        return _categorical(name, values, [False, True])
    booleans = any(isinstance(value, bool | np.bool_) for value in present)
    if not booleans and all(isinstance(value, Real | Decimal) for value in present):
        numbers = np.full(len(values), np.nan)
        try:
            numbers[~missing] = [float(value) for value in present]
        except OverflowError as error:
            raise InputError(
                f"Column {name!r} holds a number that is too large: {error}. Numbers must fit into "
                "a float: scale the column, or leave it out."
            ) from error
        return _numeric(name, numbers)
    types = sorted({type(value).__name__ for value in present})
    raise InputError(
        f"Column {name!r} holds Python objects of type {', '.join(types)}: make it all numbers, "
        "all booleans or all text."
    )


def _whole(numbers: Values) -> pd.Index[Any]:
    """Return numbers as levels, with whole numbers as int."""
    return pd.Index(
        [int(number) if number == int(number) else float(number) for number in numbers],
        dtype=object,
    )


def take_rows(column: Column, rows: npt.NDArray[np.intp]) -> Column:
    """Return some rows of a column. Levels that the dtype does not fix are those of the rows."""
    values, missing = column.values[rows], column.missing[rows]
    if column.levels is None or column.fixed:
        return replace(column, values=values, missing=missing)
    used, codes = np.unique(values, return_inverse=True)
    if missing.any():  # position -1 comes first and is not a level
        used, codes = used[1:], codes - 1
    return replace(column, values=codes, missing=missing, levels=column.levels[used])


def as_categories(column: Column) -> Column:
    """Return a numeric column as a categorical one, whose levels are its different numbers."""
    if column.levels is not None:
        return column
    codes, found = pd.factorize(np.where(column.missing, np.nan, column.values), sort=True)
    return Column(column.name, codes, column.missing, _whole(found))


_CODE_WORDS = {"code", "codes", "zip", "zipcode", "postcode", "plz", "fips", "naics", "sic",
               "isco", "soc", "icd", "occp"}  # fmt: skip


def name_words(name: str) -> set[str]:
    """Return the words of a column's name, in lower case."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return set(re.findall(r"[^\W\d_]+", apart.casefold()))


def looks_like_codes(name: str, values: Values) -> bool:
    """Return whether whole numbers look like codes, such as occupation 4510, and not like amounts.

    Either the name says so, or the values repeat, mostly have three digits or more, and are seldom
    multiples of 100 or consecutive. Amounts are round numbers or, in a large table, consecutive.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> looks_like_codes("job", random.choice(random.integers(100, 9999, 60), 2000))
    True
    >>> looks_like_codes("seconds", random.poisson(300, 2000))
    False
    """
    found, counts = np.unique(values, return_counts=True)
    if len(found) < 10 or values.dtype.kind not in "iuf" or (found != np.floor(found)).any():
        return False
    if name_words(name) & _CODE_WORDS:
        return True
    if len(found) < 20 or len(values) < 5 * len(found) or 2 * counts.max() > len(values):
        return False
    near = np.isin(found, found + 1) | np.isin(found, found - 1)
    hundreds = found % 100 == 0
    few = max(counts[near].sum(), counts[hundreds].sum()) < 0.3 * len(values)
    return bool(few and np.median(values) >= 100)


def as_numbers(column: Column) -> Column | None:
    """Return a column of numbers or booleans as numbers. Return None if its levels are text."""
    if column.levels is None:
        return column
    if level_type(column.levels.tolist()) == "text":
        return None
    numbers = np.append(column.levels.to_numpy().astype(np.float64), np.nan)
    return Column(column.name, numbers[column.values], column.missing)


def _numeric(name: str, values: Values) -> Column:
    if values.dtype.kind != "f":
        return Column(name, values, np.zeros(len(values), dtype=bool))
    if np.isinf(values).any():
        raise InputError(
            f"Column {name!r} holds infinite values (inf), and numbers must be finite. Replace "
            "them, or leave those rows out."
        )
    return Column(name, values, np.isnan(values))


def _categorical(name: str, values: Values, levels: list[Any] | None = None) -> Column:
    missing = np.asarray(pd.isna(values))
    if levels is None:
        codes, found = pd.factorize(values, sort=True)
        return Column(name, codes, missing, pd.Index(found, dtype=object))
    index = pd.Index(levels, dtype=object)
    return Column(name, index.get_indexer(values), missing, index, fixed=True)


def named_columns(table: Any, name: str) -> dict[Any, Values] | None:
    """Return the columns of a table by name, or None if it is not a table."""
    refuse_twice(column_names(table) or (), name)
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None
    return {column: frame[column].to_numpy() for column in frame.columns}


def split_column(X: Any, column: str | int) -> tuple[Any, Values]:
    """Take one column, by name or position, out of a table: return the rest and the column.

    Examples
    --------
    >>> import pandas as pd
    >>> rest, sex = split_column(pd.DataFrame({"age": [20, 30], "sex": ["f", "m"]}), "sex")
    >>> list(rest.columns), sex.tolist()
    (['age'], ['f', 'm'])
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    names = frame.columns if isinstance(frame, nw.DataFrame) else []
    place: Any = column
    if isinstance(column, str) and names:
        check_names([column], names, table="X")
        place = names.index(column)
    n_columns = len(names) if names or np.ndim(X) != 2 else np.shape(X)[1]
    is_position = isinstance(place, Integral) and not isinstance(place, bool)
    if not (is_position and -n_columns <= int(place) < n_columns):
        raise ColumnError(
            f"There is no column {column!r}: X has {n_columns} columns"
            f"{'' if names else ' without names'}. Pass a position from 0 to {n_columns - 1}, or "
            "the name of a column of a table."
        )
    place = int(place) % n_columns
    if names:
        return nw.to_native(frame.drop(names[place])), frame[names[place]].to_numpy()
    return np.delete(np.asarray(X), place, axis=1), np.asarray(X)[:, place]
