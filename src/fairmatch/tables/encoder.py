"""Encoding of tables as numbers: numeric columns are scaled, categorical ones become one-hot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from fairmatch.exceptions import ColumnError, InputError, ModelFileError
from fairmatch.tables.arrays import read_weights
from fairmatch.tables.columns import Column, read_columns
from fairmatch.tables.encoding import Encoding, refuse_missing
from fairmatch.tables.names import near_names
from fairmatch.tables.parameters import check_count
from fairmatch.tables.points import Points

_KIND = "fairmatch.TableEncoder"
_VERSION = 2
_READABLE = (1, 2)  # version 1 had neither pooled nor dropped columns


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
        the mean of the fitted rows, and adds a 0/1 indicator column. Level and indicator exist
        only if fit saw missing values. Otherwise a missing category becomes all zeros, and a
        missing number becomes the mean.
    dtype : dtype, default=numpy.float64
        Floating dtype of the output.
    max_levels : int or None, default=100
        The number of levels up to which a categorical column is encoded whole. None sets no limit.
    rare : {"warn", "pool", "drop", "error"}, default="warn"
        What to do with a column of more levels. ``"pool"`` gives each of the `max_levels` most
        frequent levels a column. The other levels, and levels never seen, share one column.
        ``"warn"`` does the same and warns. ``"drop"`` leaves the column out. ``"error"`` raises an
        error.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns seen in fit.
    feature_names_in_ : ndarray of str
        Names of these columns. They exist only if all names were strings.
    feature_groups_ : dict of str to slice
        Name of each column of the table to its columns in the output.

    Notes
    -----
    New numbers may fall outside [0, 1]; they are not clipped. A numeric column that is constant
    in fit becomes 0 for every value, because its scale is unknown. A level never seen in fit
    becomes all zeros, so it is at squared distance 1, not 2, from each level that was seen.

    The levels come from the dtype if it fixes them (pandas ``category``, ``Enum``, booleans).
    Otherwise they are the sorted values of the fitted rows. This includes the ``Categorical`` of
    polars and the dictionaries of pyarrow, whose order depends on how the data were made.

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
        X : table or array of shape (n_rows, n_columns)
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
        columns = read_columns(X)
        validate_data(self, X, skip_check_array=True)
        if self.missing == "error":
            refuse_missing(columns)
        weights = read_weights(sample_weight, n_rows=len(columns[0].values))
        self._encoding = Encoding.fit(
            columns, max_levels=self.max_levels, rare=self.rare, weights=weights
        )
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
        return self._encoding.one_hot(self._read_fitted(X), self.dtype)

    def to_codes(self, X: Any) -> npt.NDArray[np.float64]:
        """Turn rows into one number per column, the form that trees need.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
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
        >>> from fairmatch.tables.encoder import TableEncoder
        >>> people = pd.DataFrame({"age": [20, 30, 60], "job": ["cook", "nurse", "cook"]})
        >>> TableEncoder().fit(people).to_codes(people)
        array([[20.,  0.],
               [30.,  1.],
               [60.,  0.]])
        """
        return self._encoding.codes(self._read_fitted(X))

    def to_points(self, X: Any) -> Points:
        """Turn rows into numbers and category codes, with the same distances as `transform`.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit, in the same order.

        Returns
        -------
        Points
            Scaled numbers, indicators of missing numbers, and one code per categorical column.
            Memory grows with the number of columns, not with the number of levels.

        Examples
        --------
        >>> import pandas as pd
        >>> from fairmatch.tables.encoder import TableEncoder
        >>> people = pd.DataFrame({"age": [20, 30, 60], "job": ["cook", "nurse", "cook"]})
        >>> points = TableEncoder().fit(people).to_points(people)
        >>> points.numbers.ravel().tolist(), points.codes.ravel().tolist()
        ([0.0, 0.25, 1.0], [0, 1, 0])
        """
        return self._encoding.points(self._read_fitted(X))

    @property
    def feature_groups_(self) -> dict[str, slice]:
        """Name of each column of the table to its columns in the output of `transform`."""
        check_is_fitted(self)
        return self._encoding.slices

    @property
    def categorical_positions(self) -> list[int]:
        """Positions of the categorical columns in the table."""
        check_is_fitted(self)
        return self._encoding.categorical

    def _read_fitted(self, X: Any) -> list[Column]:
        """Read rows whose columns are those seen in fit."""
        check_is_fitted(self)
        columns = read_columns(X)
        try:
            validate_data(self, X, skip_check_array=True, reset=False)
        except ValueError as error:
            hints = near_names((column.name for column in columns), self._encoding.names)
            raise ColumnError(str(error).rstrip() + hints) from error
        if self.missing == "error":
            refuse_missing(columns)
        return self._encoding.align(columns)

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
        known = self._encoding.names
        names = known if input_features is None else [str(name) for name in input_features]
        if hasattr(self, "feature_names_in_") and names != known:
            raise InputError("input_features is not equal to feature_names_in_")
        if len(names) != len(known):
            raise InputError(
                "input_features should have length equal to number of features "
                f"({len(known)}), got {len(names)}"
            )
        pairs = zip(names, self._encoding.columns, strict=True)
        return np.array([name + end for name, c in pairs for end in c.name_endings], dtype=object)

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted encoder as plain values that JSON can hold exactly.

        Returns
        -------
        dict
            The content that `from_dict` reads.

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
            "kind": _KIND,
            "version": _VERSION,
            **self.parameters_to_dict(),
            "named": hasattr(self, "feature_names_in_"),
            "columns": self._encoding.to_list(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> TableEncoder:
        """Return the encoder that `to_dict` described.

        Parameters
        ----------
        content : mapping
            What `to_dict` returned.

        Returns
        -------
        TableEncoder
            A fitted encoder.

        Raises
        ------
        ModelFileError
            If the content does not describe an encoder that this version can read.
        """
        try:
            if content["kind"] != _KIND or content["version"] not in _READABLE:
                raise ValueError(f"expected {_KIND} of version {' or '.join(map(str, _READABLE))}")
            encoder = cls.from_parameters(content)
            encoder._encoding = Encoding.from_list(content["columns"])
            names = encoder._encoding.names
            encoder.n_features_in_ = len(names)
            if content["named"]:
                encoder.feature_names_in_ = np.array(names, dtype=object)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ModelFileError(
                f"This does not describe a TableEncoder: {error!r}. Pass what to_dict returned."
            ) from error
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
        """Return an unfitted encoder with the parameters that a file holds.

        Parameters
        ----------
        content : mapping
            What `parameters_to_dict` returned. Other keys are ignored. Files of version 1 have no
            `max_levels`, which means no limit.

        Raises
        ------
        InputError
            If a parameter is out of its range.
        """
        encoder = cls(
            missing=content["missing"],
            dtype=np.dtype(content["dtype"]).type,
            max_levels=content.get("max_levels"),
            rare=content.get("rare", "warn"),
        )
        encoder._check_parameters()
        return encoder

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_encoding")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "encode"
        tags.input_tags.categorical = True
        return tags

    def _check_parameters(self) -> None:
        if self.missing not in ("error", "encode"):
            raise InputError(f"missing must be 'error' or 'encode', got {self.missing!r}.")
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
        if self.rare not in ("warn", "pool", "drop", "error"):
            raise InputError(f"rare must be 'warn', 'pool', 'drop' or 'error', got {self.rare!r}.")
