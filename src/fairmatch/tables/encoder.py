"""Tables to numbers: min-max scaled numeric columns, one-hot categorical columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self, TypeAlias

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from fairmatch.exceptions import ColumnError, InputError, ModelFileError
from fairmatch.tables.columns import Column, Values, read_columns
from fairmatch.tables.names import nearest_name
from fairmatch.tables.points import Points

_FORMAT = {"kind": "fairmatch.TableEncoder", "version": 1}


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn a table into numbers in which distances between people make sense.

    Numeric columns are scaled to [0, 1] by the least and the greatest value of the fitted rows.
    Categorical, text and boolean columns become one 0/1 column per level, none dropped, so that
    two different levels are at squared distance 2.

    Parameters
    ----------
    missing : {"error", "encode"}, default="error"
        What to do with missing values. ``"error"`` names the columns that have some.
        ``"encode"`` gives a categorical column a level of its own for them, and a numeric column
        the mean of the fitted rows and a 0/1 indicator column. Level and indicator exist only
        where missing values were seen in fit; without them a missing category is all zeros and
        a missing number is the mean.
    dtype : dtype, default=numpy.float64
        Floating dtype of the output.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns seen in fit.
    feature_names_in_ : ndarray of str
        Their names; only if they were all strings.
    feature_groups_ : dict of str to slice
        For each input column, its columns in the output.

    Notes
    -----
    New numbers may fall outside [0, 1]; they are not clipped. A numeric column that is constant
    in fit becomes 0 for every value, because nothing is known of its scale. A level never seen
    in fit becomes all zeros: it is at squared distance 1, not 2, from each level that was seen.

    The levels come from the dtype where it fixes them (pandas ``category``, ``Enum``, booleans);
    otherwise they are the different values of the fitted rows, sorted. That includes the
    ``Categorical`` of polars and the dictionaries of pyarrow, whose order depends on how the
    data came to be.

    Tables may be of pandas, polars or pyarrow. Anything else is read as an array of numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairmatch.tables.encoder import TableEncoder
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
    ) -> None:
        self.missing = missing
        self.dtype = dtype

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the scales of the numeric columns and the levels of the others.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            The rows to learn from.
        y : ignored
            Here for scikit-learn's sake.

        Returns
        -------
        TableEncoder
            The encoder itself.

        Raises
        ------
        InputError
            If a column has missing values (with ``missing="error"``), infinities or mixed types.
        ColumnError
            If a column is of a kind that cannot be encoded, such as dates.
        """
        self._check_parameters()
        columns = read_columns(X)
        validate_data(self, X, skip_check_array=True)
        self._refuse_missing(columns)
        self._set_columns([_fit_column(column) for column in columns])
        return self

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Turn rows into numbers.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
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
        columns = self._read_fitted(X)
        out = np.zeros((len(columns[0].values), self._n_features_out), dtype=self.dtype)
        for fitted, column in zip(self._columns, columns, strict=True):
            fitted.encode(column, out[:, self.feature_groups_[fitted.name]])
        return out

    def to_codes(self, X: Any) -> npt.NDArray[np.float64]:
        """Turn rows into one number per column, as trees take them.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit, in the same order.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            Numbers as they are, categories as positions among the levels seen in fit; NaN for
            missing values, and for levels that were not seen.

        Examples
        --------
        >>> import pandas as pd
        >>> from fairmatch.tables.encoder import TableEncoder
        >>> people = pd.DataFrame({"age": [20, 30, 60], "job": ["cook", "nurse", "cook"]})
        >>> TableEncoder().fit(people).to_codes(people)
        array([[20.,  0.],
               [30.,  1.],
               [60.,  0.]])
        """
        pairs = zip(self._columns, self._read_fitted(X), strict=True)
        return np.column_stack([fitted.codes(column) for fitted, column in pairs])

    def to_points(self, X: Any) -> Points:
        """Turn rows into numbers and category codes, as far apart as the rows of `transform`.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit, in the same order.

        Returns
        -------
        Points
            Scaled numbers and indicators of missing ones, and one code per categorical column.
            Memory grows with the columns of the table, not with the levels of its categories.

        Examples
        --------
        >>> import pandas as pd
        >>> from fairmatch.tables.encoder import TableEncoder
        >>> people = pd.DataFrame({"age": [20, 30, 60], "job": ["cook", "nurse", "cook"]})
        >>> points = TableEncoder().fit(people).to_points(people)
        >>> points.numbers.ravel().tolist(), points.codes.ravel().tolist()
        ([0.0, 0.25, 1.0], [0, 1, 0])
        """
        columns = self._read_fitted(X)
        n_rows = len(columns[0].values)
        widths = [0 if c.kind == "categorical" else len(c.name_endings) for c in self._columns]
        numbers = np.zeros((n_rows, sum(widths)))
        codes = np.empty((n_rows, widths.count(0)), dtype=np.int32)
        end, position = 0, 0
        for fitted, column, width in zip(self._columns, columns, widths, strict=True):
            if isinstance(fitted, _CategoricalColumn):
                codes[:, position] = fitted.one_hot(column)
                position += 1
            else:
                fitted.encode(column, numbers[:, end : end + width])
            end += width
        return Points(numbers, codes)

    @property
    def categorical_positions(self) -> list[int]:
        """Positions of the categorical columns in the table."""
        check_is_fitted(self)
        return [i for i, column in enumerate(self._columns) if column.kind == "categorical"]

    def _read_fitted(self, X: Any) -> list[Column]:
        """Read rows whose columns are those seen in fit."""
        check_is_fitted(self)
        columns = read_columns(X)
        self._refuse_other_columns(X)
        self._refuse_missing(columns)
        for position, (fitted, column) in enumerate(zip(self._columns, columns, strict=True)):
            if fitted.kind != column.kind:
                if not column.missing.all():
                    raise ColumnError(
                        f"Column {column.name!r} was {fitted.kind} in fit and is {column.kind} now."
                    )
                # Where every value is missing, the table cannot tell which kind it is.
                nothing = np.full(len(column.values), -1)
                columns[position] = replace(column, values=nothing, levels=pd.Index([]))
        return columns

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Name the columns of the output.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names for the input columns, where they had none in fit; otherwise the names in fit.

        Returns
        -------
        ndarray of str
            A numeric column keeps its name, a level is ``column=level``, and what stands for
            missing values is ``column=<missing>``.
        """
        check_is_fitted(self)
        known = [column.name for column in self._columns]
        names = known if input_features is None else [str(name) for name in input_features]
        if hasattr(self, "feature_names_in_") and names != known:
            raise InputError("input_features is not equal to feature_names_in_")
        if len(names) != len(known):
            raise InputError(
                "input_features should have length equal to number of features "
                f"({len(known)}), got {len(names)}"
            )
        return np.array(
            [
                name + ending
                for name, column in zip(names, self._columns, strict=True)
                for ending in column.name_endings
            ],
            dtype=object,
        )

    def to_dict(self) -> dict[str, Any]:
        """Give the fitted encoder as plain values that JSON can hold exactly.

        Returns
        -------
        dict
            What `from_dict` takes.

        Examples
        --------
        >>> import json
        >>> from fairmatch.tables.encoder import TableEncoder
        >>> encoder = TableEncoder().fit([[0.0], [2.0]])
        >>> copy = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
        >>> copy.transform([[1.0]])
        array([[0.5]])
        """
        check_is_fitted(self)
        return {
            **_FORMAT,
            "missing": self.missing,
            "dtype": np.dtype(self.dtype).name,
            "named": hasattr(self, "feature_names_in_"),
            "columns": [{"kind": column.kind, **asdict(column)} for column in self._columns],
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> TableEncoder:
        """Make the encoder that `to_dict` described.

        Parameters
        ----------
        content : mapping
            What `to_dict` gave.

        Returns
        -------
        TableEncoder
            A fitted encoder.

        Raises
        ------
        ModelFileError
            If the content does not describe an encoder of this version.
        """
        try:
            if {key: content[key] for key in _FORMAT} != _FORMAT:
                raise ValueError(f"expected {_FORMAT}")
            encoder = cls(missing=content["missing"], dtype=np.dtype(content["dtype"]).type)
            encoder._check_parameters()
            columns = [_column_from_dict(**column) for column in content["columns"]]
            encoder.n_features_in_ = len(columns)
            if content["named"]:
                encoder.feature_names_in_ = np.array([c.name for c in columns], dtype=object)
            encoder._set_columns(columns)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ModelFileError(f"This does not describe a TableEncoder: {error!r}") from error
        return encoder

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_columns")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "encode"
        tags.input_tags.categorical = True
        return tags

    def _check_parameters(self) -> None:
        if self.missing not in ("error", "encode"):
            raise InputError(f"missing must be 'error' or 'encode', not {self.missing!r}")
        try:
            floating = np.issubdtype(np.dtype(self.dtype), np.floating)
        except TypeError:  # it names no type at all
            floating = False
        if not floating:
            raise InputError(f"dtype must be a floating dtype, not {self.dtype!r}")

    def _set_columns(self, columns: list[_FittedColumn]) -> None:
        ends = np.cumsum([0, *(len(column.name_endings) for column in columns)]).tolist()
        self._columns = columns
        self._n_features_out: int = ends[-1]
        self.feature_groups_ = {
            column.name: slice(start, stop)
            for column, start, stop in zip(columns, ends[:-1], ends[1:], strict=True)
        }

    def _refuse_missing(self, columns: list[Column]) -> None:
        if self.missing == "encode":
            return
        counts = {column.name: int(column.missing.sum()) for column in columns}
        if listed := ", ".join(f"{name!r} ({count})" for name, count in counts.items() if count):
            raise InputError(
                f"Columns with missing values (NaN or null), and how many: {listed}. Leave those "
                "rows out, fill the values in, or use TableEncoder(missing='encode')."
            )

    def _refuse_other_columns(self, X: Any) -> None:
        """Check the columns as scikit-learn does, and say which names are near."""
        try:
            validate_data(self, X, skip_check_array=True, reset=False)
        except ValueError as error:
            is_table = nw.dependencies.is_into_dataframe(X)
            given = [str(name) for name in nw.from_native(X).columns] if is_table else []
            known = [column.name for column in self._columns]
            hints = [
                f"\nDid you mean {near!r} by {name!r}?"
                for name in given
                if name not in known and (near := nearest_name(name, known))
            ]
            raise ColumnError(str(error).rstrip() + "".join(hints)) from error


@dataclass(frozen=True)
class _NumericColumn:
    """What fit learned of a numeric column."""

    name: str
    minimum: float
    maximum: float
    mean: float  # of the scaled values, for the missing ones
    had_missing: bool

    kind = "numeric"

    @property
    def name_endings(self) -> list[str]:
        return ["", "=<missing>"] if self.had_missing else [""]

    def scale(self, values: Values) -> Values:
        if self.minimum == self.maximum:
            return np.zeros(len(values))
        scaled: Values = (values - self.minimum) / (self.maximum - self.minimum)
        return scaled

    def encode(self, column: Column, out: Values) -> None:
        out[:, 0] = self.scale(column.values)
        out[column.missing, 0] = self.mean
        if self.had_missing:
            out[:, 1] = column.missing

    def codes(self, column: Column) -> Values:
        return np.where(column.missing, np.nan, column.values)


@dataclass(frozen=True)
class _CategoricalColumn:
    """What fit learned of a categorical column."""

    name: str
    levels: list[str] | list[bool] | list[int] | list[float]
    had_missing: bool

    kind = "categorical"

    @property
    def name_endings(self) -> list[str]:
        return [f"={level}" for level in self.levels] + ["=<missing>"] * self.had_missing

    def encode(self, column: Column, out: Values) -> None:
        code = self.one_hot(column)
        rows = np.flatnonzero(code >= 0)
        out[rows, code[rows]] = 1

    def one_hot(self, column: Column) -> Values:
        """Return which of the 0/1 columns of a row is 1; -1 where none is."""
        code = self._positions(column)
        return np.where(column.missing, len(self.levels), code) if self.had_missing else code

    def codes(self, column: Column) -> Values:
        code = self._positions(column)
        return np.where(code < 0, np.nan, code)

    def _positions(self, column: Column) -> Values:
        assert column.levels is not None
        # A level that was not in fit gets position -1; so does a missing value, the last of all.
        position = pd.Index(self.levels, dtype=object).get_indexer(column.levels)
        return np.append(position, -1)[column.values]


_FittedColumn: TypeAlias = _NumericColumn | _CategoricalColumn


def _column_from_dict(kind: str, name: str, had_missing: bool, **learned: Any) -> _FittedColumn:
    if kind == "numeric":
        numbers = {key: float(value) for key, value in learned.items()}
        return _NumericColumn(name=name, had_missing=had_missing, **numbers)
    if kind == "categorical" and isinstance(learned["levels"], list):
        return _CategoricalColumn(name=name, had_missing=had_missing, **learned)
    raise ValueError(f"column {name!r} is damaged")


def _fit_column(column: Column) -> _FittedColumn:
    had_missing = bool(column.missing.any())
    if column.missing.all():
        raise InputError(f"Column {column.name!r} holds only missing values: leave it out.")
    if column.levels is not None:
        levels = column.levels.tolist()
        return _CategoricalColumn(column.name, levels, had_missing)
    seen = column.values[~column.missing] if had_missing else column.values
    fitted = _NumericColumn(column.name, float(seen.min()), float(seen.max()), 0.0, had_missing)
    if not np.isfinite(fitted.maximum - fitted.minimum):
        raise InputError(
            f"Column {column.name!r} spans too wide a range to be scaled: "
            f"{fitted.minimum:g} to {fitted.maximum:g}."
        )
    mean = float(fitted.scale(seen).mean())
    return _NumericColumn(column.name, fitted.minimum, fitted.maximum, mean, had_missing)
