"""Reading tables for a model: its columns, its groups and its encoding."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from fairmatch.exceptions import GroupError, InputError
from fairmatch.learning.columns import (
    Columns,
    as_list,
    column_names,
    joined_attributes,
    split_columns,
    table_width,
)
from fairmatch.learning.groupsizes import DecidedSizes, GroupSizes
from fairmatch.learning.leaking import refuse_leaks
from fairmatch.learning.rows import group_columns
from fairmatch.learning.settings import Settings
from fairmatch.tables.arrays import FloatArray, is_missing, read_column, read_features
from fairmatch.tables.encoder import TableEncoder
from fairmatch.tables.groups import OTHER, Groups, read_groups
from fairmatch.tables.located import read_points
from fairmatch.tables.parameters import check_flag
from fairmatch.tables.points import Points

# The squares of larger numbers do not fit into float32, which networks compute in.
_FARTHEST = 1e18


@dataclass(frozen=True)
class GroupSettings(Settings):
    """Where the groups are, and whether new rows need them.

    Parameters
    ----------
    sensitive_column : str, int or a list of them, optional
        Column of X that holds the groups, by name or position. With several columns, the
        combinations of their values are the groups. With groups in X, scikit-learn's
        meta-estimators and scorers work without further settings. Those that pass on arrays, such
        as ``BaggingClassifier``, need the position.
    sensitive_at_prediction : bool, default=True
        Whether the model sees the group. With False only training needs the group, and a column
        of X that gives it away is an error.
    keep : "all" or a list of str, default=()
        Columns that the model may see although they give the group away. It matters only with
        ``sensitive_at_prediction=False``.
    """

    sensitive_column: Columns = None
    sensitive_at_prediction: bool = True
    keep: str | Sequence[str] = ()

    def check(self) -> None:
        """Raise unless ``sensitive_at_prediction`` is True or False."""
        check_flag("sensitive_at_prediction", self.sensitive_at_prediction)


@dataclass(frozen=True)
class EncoderSettings(Settings):
    """How a table becomes numbers.

    Parameters
    ----------
    encoder : "table", None or a transformer, default="table"
        What turns X into numbers. "table" is `fairmatch.tables.encoder.TableEncoder`, None leaves
        X as it is, and any transformer of your own will do. Missing values are an error unless the
        encoder takes them, as ``TableEncoder(missing="encode")`` does.
    """

    encoder: Any = "table"


@dataclass(eq=False)
class TableReader:
    """A reader of the tables of one model, which remembers the training table.

    Parameters
    ----------
    who : str
        Name of the model's class, for errors.
    columns : str, int, list or None
        Columns of X that hold the groups.
    at_prediction : bool
        Whether new rows need their group.
    encoder : "table", None or a transformer
        What turns X into numbers.
    sees : {"numbers", "codes", "frame"}
        What the learner sees. With "numbers" it is the encoded features and a column of 0 and 1
        for every group but the first. With "codes" it is one column per column of the table and
        one for the group, for trees. With "frame" it is the same as a pandas frame, in which
        categorical columns are marked.
    optional : bool
        Whether the method can be fitted without the need for groups in new rows.
    keep : "all" or a list of str
        Columns that the model may see although they give the group away.
    words : tuple of str
        The words that the model takes as its ``encoder``, for errors.
    """

    who: str
    columns: Columns = None
    at_prediction: bool = True
    encoder: Any = "table"
    sees: str = "numbers"
    optional: bool = True
    keep: str | Sequence[str] = ()
    words: tuple[str, ...] = ("table",)
    encoder_: Any = None
    groups_: tuple[Any, ...] = ()
    attributes_: tuple[str, ...] = ()
    pooled_: tuple[Any, ...] = ()
    n_features_in_: int = 0
    feature_names_in_: list[str] | None = field(default=None)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the estimator shows."""
        shown: dict[str, Any] = {
            "reader_": self,
            "encoder_": self.encoder_,
            "groups_": self.groups_,
            "n_features_in_": self.n_features_in_,
        }
        if self.feature_names_in_ is not None:
            shown["feature_names_in_"] = np.asarray(self.feature_names_in_, dtype=object)
        return shown

    # Training

    def read_training(
        self, X: Any, sensitive_features: Any, sizes: GroupSizes | DecidedSizes
    ) -> tuple[Any, Groups, tuple[int, ...]]:
        """Return the features, the groups, and the codes of groups that are not compared."""
        features, sensitive = self.split(X, sensitive_features)
        names = column_names(X)
        text = names is not None and all(isinstance(name, str) for name in names)
        self.feature_names_in_ = list(names) if text and names is not None else None
        self.n_features_in_ = table_width(X)
        given = read_groups(sensitive)
        groups, ignored = sizes.apply(given)
        self.groups_, self.attributes_ = groups.labels, groups.attributes
        self.pooled_ = tuple(label for label in given.labels if label not in groups.labels)
        return features, groups, ignored

    def refuse_leaks(self, features: Any, sensitive: Any, points: Points) -> None:
        """Raise if a column gives the group away to a model that must not see it.

        Parameters
        ----------
        features : table or array of shape (n_rows, n_columns)
            The features before encoding.
        sensitive : column, or table of several attributes
            Group of every row.
        points : Points
            The encoded features; these are searched if the encoder is a user's own.
        """
        if self.at_prediction:
            return
        own = not (self.encoder_ is None or isinstance(self.encoder_, TableEncoder))
        refuse_leaks(points.dense() if own else features, sensitive, self.keep)

    def fit_encoder(self, features: Any, n_rows: int) -> Points:
        """Learn how to turn the features into numbers, and return them as points."""
        encoder = self.encoder
        if isinstance(encoder, str) and encoder == "table":
            encoder = TableEncoder()
        is_transformer = hasattr(encoder, "fit_transform") and not isinstance(encoder, type)
        if not (encoder is None or is_transformer):
            raise InputError(
                f"encoder must be {', '.join(map(repr, self.words))}, None or a transformer, got "
                f"{encoder!r}. Pass one of these."
            )
        self.encoder_ = None if encoder is None else clone(encoder)
        if isinstance(self.encoder_, TableEncoder):
            # One-hot columns are made only where a learner needs them.
            return read_points(self.encoder_.fit(features).to_points(features), n_rows=n_rows)
        if self.encoder_ is not None:
            features = self.encoder_.fit_transform(features)
        return read_points(read_features(features, n_rows=n_rows, largest=_FARTHEST))

    def points(self, features: Any) -> Points:
        """Return the features of new rows as points."""
        if isinstance(self.encoder_, TableEncoder):
            return self.encoder_.to_points(features)
        return read_points(self.encode(features))

    def inputs(
        self, features: Any, codes: NDArray[Any] | None, points: Points | None = None
    ) -> Any:
        """Return what the learner sees of rows: their features, and their groups if it uses them.

        ``points`` are the encoded features where they are ready.
        """
        if self.sees in ("codes", "frame"):
            numbers = self.encoder_.to_codes(features)
            columns = None if codes is None else codes.astype(np.float64)
        else:
            numbers = self.encode(features) if points is None else points.dense()
            columns = None if codes is None else group_columns(codes, len(self.groups_))
        check_lengths(numbers, codes)
        inputs = numbers if columns is None else np.column_stack([numbers, columns])
        return self._frame(inputs) if self.sees == "frame" else inputs

    def _frame(self, inputs: FloatArray) -> pd.DataFrame:
        """Return inputs as a frame with the categorical columns as pandas categories."""
        frame = pd.DataFrame(inputs)
        frame.columns = [f"column_{index}" for index in frame.columns]
        for name in frame.columns[self.categorical]:
            frame[name] = frame[name].astype("category")
        return frame

    @property
    def categorical(self) -> list[int]:
        """Positions of the categorical inputs of trees; two groups count as a number."""
        positions: list[int] = self.encoder_.categorical_positions
        several = self.at_prediction and len(self.groups_) > 2
        return [*positions, len(self.encoder_.feature_groups_)] if several else positions

    @property
    def n_encoded(self) -> int:
        """Number of encoded features of a row."""
        if self.encoder_ is not None:
            return len(self.encoder_.get_feature_names_out())
        return self.n_features_in_ - len(as_list(self.columns))

    @property
    def n_inputs(self) -> int:
        """Number of inputs of the learner."""
        if self.sees in ("codes", "frame"):
            return len(self.encoder_.feature_groups_) + bool(self.at_prediction)
        return self.n_encoded + (len(self.groups_) - 1) * bool(self.at_prediction)

    # New rows

    def read_new(
        self, X: Any, sensitive_features: Any, where: str = "predict"
    ) -> tuple[Any, NDArray[np.intp] | None]:
        """Return the features of new rows, and the codes of their groups if the model uses them."""
        if not self.at_prediction:
            return self._without_groups(X), None
        features, sensitive = self.split(X, sensitive_features, where)
        return features, self.codes(self.labels(sensitive))

    def encode(self, features: Any) -> FloatArray:
        """Return the features of new rows as numbers."""
        if self.encoder_ is not None:
            return read_features(self.encoder_.transform(features), largest=_FARTHEST)
        array = read_features(features, largest=_FARTHEST)
        if array.shape[1] != self.n_encoded:
            raise InputError(
                f"X has {array.shape[1]} features, but {self.who} is expecting "
                f"{self.n_encoded} features as input. Pass the columns of fit."
            )
        return array

    def labels(self, sensitive: Any) -> NDArray[Any]:
        """Return the group of every row under the model's name for it."""
        column = (
            joined_attributes(sensitive, self.attributes_)
            if self.attributes_
            else read_column(sensitive, "sensitive_features")
        )
        if not self.pooled_:
            return column
        small = np.zeros(len(column), dtype=bool)
        for label in self.pooled_:
            small |= np.asarray(column == label, dtype=bool)
        named = column.astype(object)
        named[small] = OTHER
        return named

    def codes(self, labels: NDArray[Any]) -> NDArray[np.intp]:
        """Return the codes of groups; raise an error that names the first unknown group."""
        codes = np.full(len(labels), -1)
        for code, label in enumerate(self.groups_):
            codes[np.asarray(labels == label, dtype=bool)] = code
        if (codes < 0).any():
            missing = codes < 0
            missing[missing] = is_missing(labels[missing])
            if n := int(missing.sum()):
                raise GroupError(
                    f"sensitive_features has no group in {n} row{'s' * (n > 1)} (the first is row "
                    f"{int(np.argmax(missing))}, counted from 0); the model knows the groups "
                    f"{_and(self.groups_)}. It cannot score a person without the group. Leave "
                    "those rows out, or fill in the group."
                )
            strange = labels[codes < 0].tolist()[0]
            raise GroupError(
                f"sensitive_features holds {strange!r}; the model knows the groups "
                f"{_and(self.groups_)}. A group that was not in the training table cannot be "
                "scored. Leave those rows out, or train with rows of the group."
            )
        return codes

    def split(self, X: Any, sensitive_features: Any, where: str = "fit") -> tuple[Any, Any]:
        """Return the features and the groups, which are given beside X or in it."""
        if self.columns is None:
            if sensitive_features is None:
                without = "; to predict without it, fit with sensitive_at_prediction=False"
                raise InputError(
                    f"{self.who}.{where} needs the group of every row. Pass "
                    "sensitive_features=, or name the column of X that holds it in the "
                    f"constructor's sensitive_column={without * (where != 'fit' and self.optional)}"
                    "."
                )
            return X, sensitive_features
        if sensitive_features is not None:
            raise InputError(
                "sensitive_features was given, but sensitive_column="
                f"{self.columns!r} means that the groups are in X. Give one of the two."
            )
        return split_columns(X, self.columns)

    def _without_groups(self, X: Any) -> Any:
        """Drop the groups' columns if X has them; new rows may come without them."""
        if self.columns is None or table_width(X) < self.n_features_in_:
            return X
        return split_columns(X, self.columns)[0]


def check_lengths(inputs: FloatArray, codes: NDArray[Any] | None) -> None:
    """Raise unless there is one group for every row; None means that no groups are used."""
    if codes is not None and len(codes) != len(inputs):
        raise InputError(
            f"sensitive_features has {len(codes)} rows, X has {len(inputs)}. Pass one group for "
            "every row of X."
        )


def _and(labels: tuple[Any, ...]) -> str:
    shown = [repr(label) for label in labels[:20]]
    return f"{', '.join(shown[:-1])} and {shown[-1]}"
