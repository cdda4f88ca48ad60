"""What learners of other libraries see: the table as it is, and the group."""

from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import _num_samples

from fairmatch.exceptions import InputError
from fairmatch.learning.columns import as_list, table_width
from fairmatch.learning.reader import GroupSettings, TableReader
from fairmatch.learning.rows import group_columns
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.groups import listed
from fairmatch.tables.located import read_points
from fairmatch.tables.points import Points


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Rows in the form that a learner sees, and their groups.

    Attributes
    ----------
    table : table or array of shape (n_rows, n_columns)
        What the learner sees.
    codes : array of shape (n_rows,), or None
        Codes of the groups; None if the model does not use them.
    """

    table: Any
    codes: NDArray[Any] | None
    _scored: dict[int, tuple[Any, FloatArray]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return int(_num_samples(self.table))

    def scored(self, model: Any, score: Any) -> FloatArray:
        """Return the scores of a model, which are computed only once per model."""
        if id(model) not in self._scored:
            self._scored[id(model)] = model, score(model, self.table)
        return self._scored[id(model)][1]


@dataclass(eq=False)
class WholeTableReader(TableReader):
    """A reader for a learner that takes tables as they are.

    If the groups are a column of the table, the learner sees the whole table. If they are given
    beside it, one column of 0 and 1 for every group but the first is added. If new rows do not
    need groups, the learner sees no groups.

    Parameters
    ----------
    matches : bool
        Whether people are matched; the table is then also encoded.
    adds_groups : bool
        Whether groups that are given beside the table are added to it. They are not for a model
        that came fitted, because its columns are fixed.
    """

    matches: bool = False
    adds_groups: bool = True

    def split(self, X: Any, sensitive_features: Any, where: str = "fit") -> tuple[Any, Any]:
        """Return the table for the learner, and the groups."""
        table = read_table(X)
        rest, sensitive = super().split(table, sensitive_features, where)
        return (table if self.at_prediction else rest), sensitive

    def read_new(
        self, X: Any, sensitive_features: Any, where: str = "predict"
    ) -> tuple[Any, NDArray[np.intp] | None]:
        """Return the table of new rows, and the codes of their groups if the model uses them."""
        features, codes = super().read_new(read_table(X), sensitive_features, where)
        self._check_names(features)
        apart = 0 if self.at_prediction else len(as_list(self.columns))
        if table_width(features) != self.n_features_in_ - apart:
            raise InputError(
                f"X has {table_width(features)} features, but {self.who} is expecting "
                f"{self.n_features_in_ - apart} features as input. Pass the columns of fit."
            )
        return features, codes

    def fit_encoder(self, features: Any, n_rows: int) -> Points:
        """Return the encoded features as points, or points without columns if nobody is matched."""
        if _num_samples(features) != n_rows:
            raise InputError(
                f"X has {_num_samples(features)} rows, y has {n_rows}. Pass one label for every "
                "row of X."
            )
        if not self.matches:
            return read_points(np.empty((n_rows, 0)))
        return super().fit_encoder(self._without_groups(features), n_rows)

    def points(self, features: Any) -> Points:
        """Return the features of new rows as points, without columns if nobody is matched."""
        if not self.matches:
            return read_points(np.empty((_num_samples(features), 0)))
        return super().points(self._without_groups(features))

    def inputs(
        self, features: Any, codes: NDArray[Any] | None, points: Points | None = None
    ) -> SeenRows:
        """Return rows in the form that the learner sees."""
        if codes is not None and len(codes) != _num_samples(features):
            raise InputError(
                f"sensitive_features has {len(codes)} rows, X has {_num_samples(features)}. Pass "
                "one group for every row of X."
            )
        if codes is None or self.columns is not None or not self.adds_groups:
            return SeenRows(features, codes)
        return SeenRows(add_columns(features, group_columns(codes, len(self.groups_))), codes)

    def _check_names(self, features: Any) -> None:
        """Raise unless named columns are those of the fit, in their order."""
        given = getattr(features, "column_names", getattr(features, "columns", None))
        if given is None or self.feature_names_in_ is None:
            return
        known, given = list(self.feature_names_in_), list(given)
        if not self.at_prediction:  # the groups' columns have been dropped, or were missing
            known = [name for name in known if name in given]
        if given != known:
            strange = [name for name in given if name not in known]
            lacking = [name for name in known if name not in given]
            what = (
                f"lacks {listed(lacking)}"
                if lacking
                else (f"also has {listed(strange)}" if strange else "has another order")
            )
            raise InputError(
                f"The feature names should match those that were passed during fit: X {what}. "
                "Pass a table with the same columns in the same order."
            )


def whole_table_reader(model: Any, *, matches: bool, adds_groups: bool) -> WholeTableReader:
    """Return a reader with an estimator's parameters that has seen no table yet."""
    groups = GroupSettings.of(model)
    return WholeTableReader(
        type(model).__name__,
        groups.sensitive_column,
        groups.sensitive_at_prediction,
        model._encoder(),
        optional=matches,
        keep=groups.keep,
        matches=matches,
        adds_groups=adds_groups,
    )


def read_table(X: Any) -> Any:
    """Return a table unchanged, and anything else as an array of two dimensions."""
    if sparse.issparse(X):
        raise InputError(
            "X is a sparse matrix, but groups and columns are read from tables. Pass a dense "
            "array (X.toarray()), or a table of pandas or polars."
        )
    if isinstance(nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame):
        return X
    try:
        return check_array(X, dtype=None, ensure_all_finite=False)
    except ValueError as error:
        raise InputError(
            f"X cannot be read as a table ({error}). Pass a table, or an array of two dimensions."
        ) from error


def add_columns(table: Any, columns: FloatArray) -> Any:
    """Return a table with columns of numbers added after its own.

    Examples
    --------
    >>> import pandas as pd
    >>> add_columns(pd.DataFrame({"age": [30, 40]}), np.array([[1.0], [0.0]])).columns.tolist()
    ['age', 'group_1']
    """
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        array = np.asarray(table)
        return np.column_stack([array, columns.astype(array.dtype)])
    taken = set(frame.columns)
    named: dict[Any, FloatArray] = {}
    for place, column in enumerate(columns.T, start=1):
        # If names are numbers, the new ones are too: scikit-learn refuses a mixture.
        name: Any = f"group_{place}" if all(isinstance(c, str) for c in taken) else len(taken)
        while name in taken:
            name = f"_{name}" if isinstance(name, str) else name + 1
        named[name] = column
        taken.add(name)
    if frame.implementation.is_pandas():
        return (
            table.assign(**named)
            if all(isinstance(n, str) for n in named)
            else _joined(table, named)
        )
    series = [
        nw.new_series(name, column, backend=frame.implementation) for name, column in named.items()
    ]
    return frame.with_columns(*series).to_native()


def _joined(table: Any, named: dict[Any, FloatArray]) -> Any:
    wider = table.copy()
    for name, column in named.items():
        wider[name] = column
    return wider
