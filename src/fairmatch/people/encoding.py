"""Tables as numbers: points in which distances between people make sense."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal, Self, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from fairmatch.exceptions import (
    ColumnError,
    FairmatchWarning,
    InputError,
    ModelFileError,
    notify,
)
from fairmatch.people.checks import (
    FloatArray,
    check_choice,
    check_count,
    check_finite,
    check_length,
    check_names,
    near_names,
    read_features,
    read_weights,
)
from fairmatch.people.columns import (
    Column,
    Values,
    as_categories,
    as_numbers,
    find_levels,
    level_type,
    looks_like_codes,
    read_columns,
    take_rows,
)
from fairmatch.people.groups import listed


@dataclass(frozen=True, eq=False)
class Points:
    r"""Rows of a table as numbers and category codes.

    One-hot columns take memory for every level of every category. Codes take four bytes per row
    and category, for any number of levels, and the distances are the same.

    Notes
    -----
    The squared distance of two rows with numbers :math:`u, v` and codes :math:`a, b` is

    .. math:: |u - v|^2 + \sum_c \left([a_c \ge 0] + [b_c \ge 0] - 2 [a_c = b_c \ge 0]\right),

    which is the squared distance of their one-hot columns. A category adds 2 where the levels
    differ, and 0 where they agree. It adds 1 where one of the two levels is unknown.

    Examples
    --------
    >>> people = Points(np.array([[0.0], [0.5], [0.5]]), np.array([[0], [1], [-1]]))
    >>> people.pair_costs(np.array([0, 0, 1]), np.array([1, 2, 2]))
    array([2.25, 1.25, 1.  ])
    """

    #: One column per number, as float64. An array of float32 is not copied; rows that are taken
    #: from it are float64.
    numbers: FloatArray
    #: The level of every category, as int32. The code -1 is a level that was not seen in fit; its
    #: one-hot columns are all zero. By default there are no categories.
    codes: npt.NDArray[np.int32] = None  # type: ignore[assignment]  # set below
    #: The position of every number, and of every category's first level, among the one-hot columns,
    #: and the number of these columns. By default numbers come first, then the levels of each
    #: category.
    layout: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        numbers = np.asarray(self.numbers)
        if numbers.dtype != np.float32:
            numbers = numbers.astype(np.float64, copy=False)
        own: Any = np.empty((len(numbers), 0)) if self.codes is None else self.codes
        codes = np.asarray(own, dtype=np.int32)
        if numbers.ndim != 2 or codes.ndim != 2 or len(numbers) != len(codes):
            raise InputError(
                "Points need numbers of shape (n, d) and codes of shape (n, c); got shapes "
                f"{numbers.shape} and {codes.shape}. An absent part has no columns: shape (n, 0)."
            )
        if codes.size and codes.min() < -1:
            raise InputError(
                f"Codes must be -1 (unknown) or greater, got {int(codes.min())}. Count the levels "
                "from 0."
            )
        object.__setattr__(self, "numbers", numbers)
        object.__setattr__(self, "codes", codes)

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: npt.ArrayLike | slice) -> Points:
        """Return some of the rows, chosen by position, by a mask or by a slice."""
        index = rows if isinstance(rows, slice) else np.asarray(rows)
        if not isinstance(index, slice) and index.size == 0:
            index = index.astype(np.intp)  # NumPy reads an empty list as floats
        numbers = self.numbers[index].astype(np.float64, copy=False)
        return replace(self, numbers=numbers, codes=self.codes[index])

    __getitem__ = take

    @property
    def width(self) -> int:
        """How many numbers and categories describe a row."""
        return int(self.numbers.shape[1] + self.codes.shape[1])

    @property
    def n_columns(self) -> int:
        """How many columns `dense` returns."""
        return self._places[-1]

    @property
    def _places(self) -> tuple[int, ...]:
        n_numbers = self.numbers.shape[1]
        sizes = self.codes.max(axis=0, initial=-1) + 1
        return self.layout or (
            *range(n_numbers), *accumulate(sizes.tolist(), initial=n_numbers)
        )  # fmt: skip

    def with_number(self, column: FloatArray) -> Points:
        """Return the points with one more number, the last."""
        layout, n_numbers = self.layout, self.numbers.shape[1]
        if layout is not None:
            layout = (*layout[:n_numbers], layout[-1], *layout[n_numbers:-1], layout[-1] + 1)
        return Points(np.column_stack([self.numbers, column]), self.codes, layout)

    def dense(self) -> FloatArray:
        """Return the points as one-hot columns, which take memory for every level."""
        if not self.codes.shape[1]:
            return self.numbers
        *places, width = self._places
        n_numbers = self.numbers.shape[1]
        columns = np.zeros((len(self), width))
        columns[:, places[:n_numbers]] = self.numbers
        for first, code in zip(places[n_numbers:], self.codes.T, strict=True):
            known = np.flatnonzero(code >= 0)
            columns[known, first + code[known]] = 1.0
        return columns

    def pair_costs(
        self,
        rows: npt.NDArray[np.intp],
        others: npt.NDArray[np.intp],
        other: Points | None = None,
        code_square: float = 1.0,
    ) -> FloatArray:
        """Return the squared distances of pairs: a row here, and a row here or of other points.

        They are computed from differences, which avoids cancellation. A one-hot entry has the
        square ``code_square``.
        """
        other = self if other is None else other
        difference = self.numbers[rows].astype(np.float64, copy=False) - other.numbers[others]
        squared: FloatArray = np.einsum("ij,ij->i", difference, difference)
        for code, there in zip(self.codes.T, other.codes.T, strict=True):
            own, theirs = code[rows], there[others]
            squared += code_square * np.where(own == theirs, 0, 1 * (own >= 0) + (theirs >= 0))
        return squared


# Larger scaled numbers cannot be measurements: their squares do not fit into float32.
_FARTHEST = 1e18


class _Fitted(
    msgspec.Struct, frozen=True, dict=True, tag_field="kind", forbid_unknown_fields=True
):  # fmt: skip
    """What the encoder has learned about a column, as it is saved. This one is left out."""

    name: str

    @property
    def name_endings(self) -> list[str]:
        """The ending that is added to the name for each column of the output."""
        return []

    def align(self, column: Column) -> Column:
        """Return new values as they were read in fit."""
        return column

    def encode(self, column: Column) -> tuple[Values, Values]:
        """Return the aligned column as columns of numbers and columns of codes."""
        nothing = np.empty((len(column.values), 0))
        return nothing, nothing

    def codes(self, column: Column) -> Values:
        """Return the aligned column as one number per row, for trees."""
        return np.zeros(len(column.values))


class DroppedColumn(_Fitted, frozen=True, tag="dropped"):
    """A column with too many levels that is left out."""


class NumericColumn(_Fitted, frozen=True, tag="numeric"):
    """A numeric column: its range in fit, and the scaled mean that stands for missing values."""

    minimum: float
    maximum: float
    mean: float
    had_missing: bool  # in fit; if so, the output has an indicator column

    def __post_init__(self) -> None:
        span = self.maximum - self.minimum
        if not (np.isfinite(self.mean) and 0 <= span < np.inf):
            raise ValueError(f"column {self.name!r} is damaged")

    @property
    def name_endings(self) -> list[str]:
        """The ending that is added to the name for each column of the output."""
        return ["", "=<missing>"] if self.had_missing else [""]

    def align(self, column: Column) -> Column:
        """Return new values as numbers. Raise if they are text."""
        if column.levels is not None and column.missing.all():
            # If every value is missing, the table does not show which kind the column is.
            return replace(column, values=np.zeros(len(column.values)), levels=None)
        numbers = as_numbers(column)
        if numbers is None:
            assert column.levels is not None
            raise ColumnError(
                f"Column {self.name!r} was numeric in fit and is categorical now: it holds text "
                f"such as {listed(column.levels.tolist(), 3)}. Turn it into numbers, or leave "
                "those rows out."
            )
        return numbers

    def scale(self, values: Values) -> Values:
        """Scale numbers. The range in fit becomes [0, 1]."""
        if self.minimum == self.maximum:
            return np.zeros(len(values))
        scaled: Values = (values - self.minimum) / (self.maximum - self.minimum)
        return scaled

    def encode(self, column: Column) -> tuple[Values, Values]:
        """Return the scaled numbers, and where they are missing, and no codes."""
        with np.errstate(over="ignore"):
            scaled = self.scale(column.values)
        far = np.abs(scaled) > _FARTHEST
        if far.any():
            raise InputError(
                f"Column {self.name!r} holds {column.values[np.argmax(far)]:g}, which is too far "
                f"from the values in fit ({self.minimum:g} to {self.maximum:g}) to be scaled. "
                "Correct this value, or leave the row out."
            )
        numbers = np.column_stack([np.where(column.missing, self.mean, scaled), column.missing])
        return numbers[:, : len(self.name_endings)], numbers[:, :0]

    def codes(self, column: Column) -> Values:
        """Return the numbers unchanged, with NaN where they are missing."""
        return np.where(column.missing, np.nan, column.values)


class CategoricalColumn(_Fitted, frozen=True, tag="categorical"):
    """A categorical column: its levels in fit, and which of them have a column of their own."""

    levels: list[str | bool | int | float]  # of one type
    had_missing: bool  # in fit; if so, missing is a level of its own
    kept: list[int] | None = None  # the levels with a column of their own, if the others share one

    def __post_init__(self) -> None:
        levels, types = self.levels, {type(level) for level in self.levels}
        one_type = types <= {str} or types <= {bool} or types <= {int, float}
        known = set(self.kept or ()) <= set(range(len(levels)))
        if not (one_type and known) or len(set(levels)) < len(levels):
            raise ValueError(f"column {self.name!r} is damaged")

    @cached_property
    def name_endings(self) -> list[str]:
        """The ending that is added to the name for each column of the output."""
        kept = range(len(self.levels)) if self.kept is None else self.kept
        rare = [] if self.kept is None else ["=<rare>"]
        return [f"={self.levels[i]}" for i in kept] + rare + ["=<missing>"] * self.had_missing

    @cached_property
    def places(self) -> npt.NDArray[np.intp]:
        """Column of the output for every level. The last entry is for levels never seen."""
        n_levels = len(self.levels)
        if self.kept is None:
            return np.append(np.arange(n_levels), -1)
        places = np.full(n_levels + 1, len(self.kept))
        places[self.kept] = np.arange(len(self.kept))
        return places

    def align(self, column: Column) -> Column:
        """Return new values as positions among the levels in fit, or -1 for levels never seen.

        Raise if no value was seen in fit, so that the column is not the one that was fitted.
        """
        column = as_categories(column)
        assert column.levels is not None
        levels = column.levels.tolist()
        found = np.append(find_levels(self.levels, levels), -1)  # -1 is a missing value
        values = found[column.values]
        if (found[:-1] < 0).any() and (values < 0).all() and not column.missing.all():
            used = np.unique(column.values[~column.missing])
            given, known = level_type(levels), level_type(self.levels)
            # A single new level is plausible, and rare levels are often new.
            if given != known or (len(used) > 1 and self.kept is None):
                raise ColumnError(
                    f"No value of column {self.name!r} was seen in fit. It holds {given} now, such "
                    f"as {listed([levels[i] for i in used], 3)}; in fit it held {known}, such as "
                    f"{listed(self.levels, 3)}. Write its values as they were in fit."
                )
        return replace(column, values=values)

    def encode(self, column: Column) -> tuple[Values, Values]:
        """Return no numbers, and which output column is 1 in each row, or -1 if none is."""
        nothing = len(self.name_endings) - 1 if self.had_missing else -1
        codes = np.where(column.missing, nothing, self.places[column.values])
        return np.empty((len(codes), 0)), codes[:, None]

    def codes(self, column: Column) -> Values:
        """Return positions among the levels, with NaN for missing values and levels never seen."""
        return np.where(column.values < 0, np.nan, column.values)


FittedColumn: TypeAlias = NumericColumn | CategoricalColumn | DroppedColumn


def fit_column(
    column: Column, max_levels: int | None, rare: str, weights: Values | None = None
) -> FittedColumn:
    """Learn what the encoder needs to know about a column, from rows with positive weights."""
    name, had_missing, present = column.name, bool(column.missing.any()), ~column.missing
    if not present.any():
        raise InputError(f"Column {name!r} holds only missing values: leave it out.")
    seen = column.values[present] if had_missing else column.values
    mass = weights if weights is None or not had_missing else weights[present]
    if column.levels is not None:
        levels = column.levels.tolist()
        if max_levels is None or len(levels) <= max_levels:
            return CategoricalColumn(name, levels, had_missing)
        if rare == "error":
            raise InputError(
                f"Column {name!r} has {len(levels):,} levels, more than max_levels={max_levels}. "
                "Leave it out, or pool its rare levels with rare='pool'."
            )
        if rare == "drop":
            return DroppedColumn(name)
        counts = np.bincount(seen, mass, minlength=len(levels))
        # Among equally frequent levels the first ones are kept.
        kept = np.sort(np.argsort(-counts, kind="stable")[:max_levels]).tolist()
        return CategoricalColumn(name, levels, had_missing, kept)
    low, high = float(seen.min()), float(seen.max())
    if not np.isfinite(high - low):
        raise InputError(
            f"Column {name!r} spans too wide a range to be scaled: {low:g} to {high:g}. Correct "
            "the extreme values, or leave the column out."
        )
    fitted = NumericColumn(name, low, high, 0.0, had_missing)
    scaled = fitted.scale(seen)
    mean = scaled.mean() if mass is None else np.average(scaled, weights=mass)
    return msgspec.structs.replace(fitted, mean=float(mean))


class Table:
    """The columns that describe people, as they were given; read and encoded on demand, once.

    The numbers of ``categorical`` columns are codes of categories.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from fairmatch.people.encoding import Table
    >>> table = Table(pd.DataFrame({"age": [20, 30, 60], "job": ["cook", "nurse", "cook"]}))
    >>> table.take(np.array([2, 0])).columns[1].levels.tolist()
    ['cook']
    >>> table.points.numbers.ravel().tolist()
    [0.0, 0.25, 1.0]
    """

    def __init__(self, source: Any, categorical: Collection[str] = ()) -> None:
        self.source = source  # with all its rows
        self.categorical = categorical
        self._whole: Table | None = None
        self._rows: npt.NDArray[np.intp] | None = None

    def __len__(self) -> int:
        if self._rows is not None:
            return len(self._rows)
        shape = getattr(self.source, "shape", None)
        return len(self.source) if shape is None else int(shape[0])

    def take(self, rows: npt.NDArray[np.intp]) -> Table:
        """Return some of the rows. Nothing is copied until it is needed."""
        taken = Table(self.source, self.categorical)
        taken._whole = self if self._whole is None else self._whole
        taken._rows = rows if self._rows is None else self._rows[rows]
        return taken

    @cached_property
    def native(self) -> Any:
        """The rows in the library they were given in, for models that read tables themselves."""
        if self._rows is None:
            return self.source
        source = np.asarray(self.source) if isinstance(self.source, list) else self.source
        return _safe_indexing(source, self._rows)

    @cached_property
    def columns(self) -> list[Column]:
        """The columns as arrays."""
        if self._whole is None or self._rows is None:
            columns = read_columns(self.source)
            if not self.categorical:
                return columns
            check_names(list(self.categorical), [column.name for column in columns], table="X")
            return [as_categories(c) if c.name in self.categorical else c for c in columns]
        return [take_rows(column, self._rows) for column in self._whole.columns]

    @cached_property
    def points(self) -> Points:
        """The rows as points whose squared distance says how different two people are.

        Arrays and tables of only numbers and booleans are used as they are. A table with categories
        is encoded by `TableEncoder`.
        """
        plain = not hasattr(self.source, "columns") or not self.source.shape[1]
        if plain and not self.categorical:
            numbers = read_features(self.native)
            return Points(numbers)
        kinds = {level_type(c.levels.tolist()) for c in self.columns if c.levels is not None}
        if kinds - {"boolean"}:
            return TableEncoder(max_levels=None).fit(self).to_points(self)
        refuse_missing(self.columns)
        columns = [as_numbers(column) for column in self.columns]
        return Points(np.array([c.values for c in columns if c], dtype=np.float64).T)


def as_table(X: Any, categorical: Collection[str] = ()) -> Table:
    """Return a table whose columns are read once. A `Table` is returned unchanged."""
    return X if isinstance(X, Table) else Table(X, categorical)


def code_notes(table: Table | None, advice: str) -> list[str]:
    """Return a sentence with advice on every column of numbers that looks like codes."""
    return [
        f"Column {column.name!r} looks like codes of a category, and was read as a number. If it "
        f"is one, {advice.format(column.name)}."
        for column in ([] if table is None else table.columns)
        if column.levels is None and looks_like_codes(column.name, column.values[~column.missing])
    ]


def refuse_missing(columns: Sequence[Column]) -> None:
    """Raise if values are missing. The error names each column and how many values it lacks."""
    counts = {column.name: int(column.missing.sum()) for column in columns}
    if listed := ", ".join(f"{name!r} ({count})" for name, count in counts.items() if count):
        raise InputError(
            f"Columns with missing values (NaN or null), and how many: {listed}. Leave those "
            "rows out, fill the values in, or use TableEncoder(missing='encode')."
        )


_VERSION: Literal[2] = 2


class _Saved(msgspec.Struct, tag_field="kind", tag="fairmatch.TableEncoder"):
    """A fitted encoder, as it is saved."""

    version: Literal[2]
    missing: str
    dtype: str
    max_levels: int | None
    rare: str
    named: bool
    columns: list[FittedColumn]


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn a table into numbers in which distances between people make sense.

    Numeric columns are scaled to [0, 1] by the least and the greatest value of the fitted rows.
    Categorical, text and boolean columns become one 0/1 column per level. No level is dropped, so
    two different levels are at squared distance 2.

    Parameters
    ----------
    missing : {"error", "encode"}, default="error"
        What to do with missing values. ``"error"`` raises an error that names the columns.
        ``"encode"`` gives missing categories a level of their own. It replaces missing numbers by
        the mean of the fitted rows, and adds a 0/1 indicator column. The level and the indicator
        exist only if fit saw missing values. Otherwise a missing category becomes all zeros, and a
        missing number becomes the mean.
    dtype : dtype, default=numpy.float64
        Floating dtype of the output.
    max_levels : int or None, default=100
        Largest number of levels for which every level gets a column. None sets no limit.
    rare : {"warn", "pool", "drop", "error"}, default="warn"
        What to do with a column that has more levels. ``"pool"`` gives each of the `max_levels`
        most frequent levels a column. The other levels, and levels never seen, share one column.
        ``"warn"`` does the same and warns. ``"drop"`` leaves the column out. ``"error"`` raises an
        error.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns seen in fit.
    feature_names_in_ : ndarray of str
        Names of these columns. They exist only if all names were strings.
    feature_groups_ : dict of str to slice
        Maps each column of the table to its columns in the output.

    Notes
    -----
    New numbers may fall outside [0, 1]; they are not clipped. A numeric column that is constant
    in fit becomes 0 for every value, because its scale is unknown. A level never seen in fit
    becomes all zeros, so it is at squared distance 1, not 2, from each level that was seen.

    The levels come from the dtype if it fixes them (pandas ``category``, ``Enum``, booleans).
    Otherwise they are the sorted values of the fitted rows. This includes the ``Categorical`` of
    polars and the dictionaries of pyarrow, whose order depends on how the data were made.

    Tables may come from pandas, polars or pyarrow. Anything else is read as an array of numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairmatch.people.encoding import TableEncoder
    >>> people = pd.DataFrame({"age": [20, 30, 60], "job": ["cook", "nurse", "cook"]})
    >>> encoder = TableEncoder().fit(people)
    >>> encoder.transform(people)
    array([[0.  , 1.  , 0.  ],
           [0.25, 0.  , 1.  ],
           [1.  , 1.  , 0.  ]])
    >>> list(encoder.get_feature_names_out())
    ['age', 'job=cook', 'job=nurse']
    >>> encoder.feature_groups_
    {'age': slice(0, 1, None), 'job': slice(1, 3, None)}
    """

    def __init__(
        self,
        *,
        missing: Literal["error", "encode"] = "error",
        dtype: npt.DTypeLike = np.float64,
        max_levels: int | None = 100,
        rare: Literal["warn", "pool", "drop", "error"] = "warn",
    ) -> None:
        self.missing = missing
        self.dtype = dtype
        self.max_levels = max_levels
        self.rare = rare

    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Learn the scales of the numeric columns and the levels of the others.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns), or Table
            The rows to learn from.
        y : ignored
            Present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row. Rows of weight zero are ignored. All other rows set ranges and
            levels. Their weights matter for means, and for which levels are frequent.

        Returns
        -------
        TableEncoder
            The encoder itself.

        Raises
        ------
        InputError
            If a column has missing values (with ``missing="error"``), infinities or mixed types.
        ColumnError
            If a column cannot be encoded, such as a column of dates.
        """
        self._check_parameters()
        table = as_table(X)
        columns = table.columns
        validate_data(self, table.source, skip_check_array=True)
        if self.missing == "error":
            refuse_missing(columns)
        weights = read_weights(sample_weight, n_rows=len(columns[0].values))
        if weights is not None:
            rows = np.flatnonzero(weights)
            if not len(rows):
                raise InputError(
                    "sample_weight is zero in every row, so there is nothing to learn from. Pass a "
                    "positive weight for some rows."
                )
            columns = [take_rows(column, rows) for column in columns]
            weights = weights[rows] / weights.max()
        fitted = [fit_column(column, self.max_levels, self.rare, weights) for column in columns]
        pooled = ", ".join(
            f"{column.name!r} ({len(column.levels):,})"
            for column in fitted
            if isinstance(column, CategoricalColumn) and column.kept is not None
        )
        if pooled and self.rare == "warn":
            most = self.max_levels
            notify(
                f"Columns with more than {most} levels, and how many: {pooled}. The {most} most "
                "frequent levels are kept, and the others are pooled. Leave the columns out, or "
                "merge similar levels. Networks also take encoder=TableEncoder(max_levels=…, "
                "rare='pool'), and every learner takes columns that you have encoded yourself.",
                FairmatchWarning,
            )
        self._columns = tuple(fitted)
        return self

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Turn rows into numbers.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns), or Table
            Rows with the columns seen in fit, in the same order.

        Returns
        -------
        ndarray of shape (n_rows, n_features_out)
            The encoded rows.

        Raises
        ------
        InputError
            If a column has missing values (with ``missing="error"``) or infinities.
        ColumnError
            If the columns are not those seen in fit.
        """
        encoded: npt.NDArray[Any] = self.to_points(X).dense().astype(self.dtype, copy=False)
        return encoded

    def to_codes(self, X: Any) -> npt.NDArray[np.float64]:
        """Turn rows into one number per column, the form that trees need.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns), or Table
            Rows with the columns seen in fit, in the same order.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            Numbers as they are, and categories as positions among the levels seen in fit. Missing
            values and levels never seen are NaN. Rare levels are not pooled, because trees can
            handle many levels. A dropped column is 0.

        Examples
        --------
        >>> import pandas as pd
        >>> from fairmatch.people.encoding import TableEncoder
        >>> people = pd.DataFrame({"age": [20, 30, 60], "job": ["cook", "nurse", "cook"]})
        >>> TableEncoder().fit(people).to_codes(people)
        array([[20.,  0.],
               [30.,  1.],
               [60.,  0.]])
        """
        pairs = zip(self._columns, self._read_fitted(X), strict=True)
        return np.column_stack([fitted.codes(column) for fitted, column in pairs])

    def to_points(self, X: Any) -> Points:
        """Turn rows into numbers and category codes, with the same distances as `transform`.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns), or Table
            Rows with the columns seen in fit, in the same order.

        Returns
        -------
        Points
            Scaled numbers, indicators of missing numbers, and one code per categorical column.
            Memory grows with the number of columns, not with the number of levels.

        Examples
        --------
        >>> import pandas as pd
        >>> people = pd.DataFrame({"age": [20, 30, 60], "job": ["cook", "nurse", "cook"]})
        >>> points = TableEncoder().fit(people).to_points(people)
        >>> points.numbers.ravel().tolist(), points.codes.ravel().tolist()
        ([0.0, 0.25, 1.0], [0, 1, 0])
        """
        pairs = zip(self._columns, self._read_fitted(X), strict=True)
        parts = [fitted.encode(column) for fitted, column in pairs]
        numbers, codes = zip(*parts, strict=True)
        slices = list(self.feature_groups_.values())
        places = [
            own.start + place
            for kind in (numbers, codes)
            for own, part in zip(slices, kind, strict=True)
            for place in range(part.shape[1])
        ]
        layout = (*places, slices[-1].stop)
        return Points(np.hstack(numbers), np.hstack(codes), layout)

    @property
    def feature_groups_(self) -> dict[str, slice]:
        """Map from each column of the table to its columns in the output of `transform`."""
        check_is_fitted(self)
        ends = [0, *accumulate(len(fitted.name_endings) for fitted in self._columns)]
        places = zip(self._columns, ends[:-1], ends[1:], strict=True)
        return {fitted.name: slice(start, stop) for fitted, start, stop in places}

    @property
    def categorical_positions(self) -> list[int]:
        """Positions of the categorical columns in the table."""
        check_is_fitted(self)
        return [
            i for i, fitted in enumerate(self._columns) if isinstance(fitted, CategoricalColumn)
        ]

    def _read_fitted(self, X: Any) -> list[Column]:
        """Read rows whose columns are those seen in fit."""
        check_is_fitted(self)
        table = as_table(X)
        columns = table.columns
        try:
            validate_data(self, table.source, skip_check_array=True, reset=False)
        except ValueError as error:
            hints = near_names((column.name for column in columns), self._names)
            raise ColumnError(str(error).rstrip() + hints) from error
        if self.missing == "error":
            refuse_missing(columns)
        return [old.align(new) for old, new in zip(self._columns, columns, strict=True)]

    @property
    def _names(self) -> list[str]:
        return [fitted.name for fitted in self._columns]

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the names of the output columns.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the input columns, if they had none in fit. Otherwise they must be the names
            seen in fit.

        Returns
        -------
        ndarray of str
            A numeric column keeps its name, and a level is called ``column=level``. Missing values
            are called ``column=<missing>``, and pooled levels ``column=<rare>``.
        """
        check_is_fitted(self)
        names = self._names
        if input_features is not None:
            try:
                names = _check_feature_names_in(self, input_features)
            except ValueError as error:
                raise InputError(f"{error}. Pass the names seen in fit, or none.") from error
        pairs = zip(names, self._columns, strict=True)
        return np.array([f"{name}{end}" for name, c in pairs for end in c.name_endings], object)

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted encoder as plain values that JSON can hold exactly.

        Examples
        --------
        >>> import json
        >>> from fairmatch.people.encoding import TableEncoder
        >>> encoder = TableEncoder().fit([[0.0], [2.0]])
        >>> copy = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
        >>> copy.transform([[1.0]])
        array([[0.5]])
        """
        check_is_fitted(self)
        parameters, named = self.parameters_to_dict(), hasattr(self, "feature_names_in_")
        saved = _Saved(_VERSION, **parameters, named=named, columns=list(self._columns))
        plain: dict[str, Any] = msgspec.to_builtins(saved)
        return plain

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> TableEncoder:
        """Return the encoder that `to_dict` described.

        Raises
        ------
        ModelFileError
            If the content does not describe an encoder that this version can read.
        """
        try:
            saved = msgspec.convert(content, _Saved)
            encoder = cls.from_parameters(content)
            encoder._columns = tuple(saved.columns)
            names = encoder._names
            if len(set(names)) < max(1, len(names)):
                raise ValueError("there are no columns, or a name is repeated")
        except (TypeError, ValueError) as error:
            raise ModelFileError(
                f"This does not describe a TableEncoder of version {_VERSION}: {error}. Pass what "
                "to_dict returned."
            ) from error
        encoder.n_features_in_ = len(names)
        if saved.named:
            encoder.feature_names_in_ = np.array(names, dtype=object)
        return encoder

    def parameters_to_dict(self) -> dict[str, Any]:
        """Return the parameters as plain values, which `from_parameters` reads."""
        self._check_parameters()
        return {
            "missing": self.missing,
            "dtype": np.dtype(self.dtype).name,
            "max_levels": None if self.max_levels is None else int(self.max_levels),
            "rare": self.rare,
        }

    @classmethod
    def from_parameters(cls, content: Mapping[str, Any]) -> TableEncoder:
        """Return an unfitted encoder with the parameters that `parameters_to_dict` returned."""
        encoder = cls(**{own: content[own] for own in ("missing", "max_levels", "rare")})
        encoder.dtype = np.dtype(content["dtype"]).type
        encoder._check_parameters()
        return encoder

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_columns")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "encode"
        tags.input_tags.categorical = True
        return tags

    def _check_parameters(self) -> None:
        check_choice("missing", self.missing, ("error", "encode"))
        try:
            floating = np.issubdtype(np.dtype(self.dtype), np.floating)
        except TypeError:  # it is not a type at all
            floating = False
        if not floating:
            raise InputError(
                f"dtype must be a floating dtype, got {self.dtype!r}. Pass numpy.float64 or "
                "numpy.float32."
            )
        check_count("max_levels", self.max_levels, optional=True)
        check_choice("rare", self.rare, ("warn", "pool", "drop", "error"))


def read_points(X: Any, *, n_rows: int | None = None) -> Points:
    """Read features as points. Their squared distance measures how different two people are.

    Points, arrays of numbers and tables of only numbers are used as they are. A table with
    categories is encoded by `TableEncoder`: a number is scaled to [0, 1], and a category adds 2 to
    the squared distance where the levels differ.

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
    points = X if isinstance(X, Points) else as_table(X).points
    if points is X:
        check_finite(points.numbers, "X")
    check_length(points.numbers, n_rows, "X")
    return points
