"""The rows to learn from: columns, groups and encoding, read as in training."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from fairmatch.exceptions import (
    ColumnError,
    GroupError,
    InputError,
    LeakWarning,
    ModelFileError,
    SmallGroupWarning,
)
from fairmatch.learning.saving import plain_label
from fairmatch.learning.settings import Settings, notify
from fairmatch.matching.coupling import IndexArray
from fairmatch.people.checks import (
    BoolArray,
    FloatArray,
    check_count,
    check_flag,
    is_missing,
    read_column,
    read_features,
)
from fairmatch.people.columns import split_column
from fairmatch.people.encoding import Points, TableEncoder, read_points
from fairmatch.people.groups import OTHER, Groups, listed, read_groups, refuse_twice
from fairmatch.people.leaks import find_leaks

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


# With fewer rows than this, a group's rate is known to about ±0.2 at best.
TINY = 30
_WAYS = ("error", "pool", "ignore")


@dataclass(frozen=True)
class GroupSizes(Settings):
    """How small a group may be.

    Parameters
    ----------
    min_group_size : int, default=2
        Smallest number of training rows with which a group is compared with others.
    small_groups : {"error", "pool", "ignore"}, default="error"
        What happens to smaller groups. With "error" an error lists them. With "pool" they become
        one group, "other". With "ignore" the model learns from their rows and compares them with
        nobody.
    """

    min_group_size: int = 2
    small_groups: str = "error"

    def check(self) -> None:
        """Raise unless the size is a whole number and ``small_groups`` is a known way."""
        check_count("min_group_size", self.min_group_size)
        if self.small_groups not in _WAYS:
            ways = ", ".join(map(repr, _WAYS))
            raise InputError(f"small_groups must be one of {ways}; got {self.small_groups!r}.")

    def apply(self, groups: Groups) -> tuple[Groups, tuple[int, ...]]:
        """Return the groups to learn with, and the codes of groups that are not compared.

        A warning names groups that are compared though they are tiny.
        """
        groups, ignored = self.decide(groups)
        tiny = [code for code in groups.small(TINY) if code not in ignored]
        if tiny:
            notify(
                f"These groups are so small that a gap says little about them: "
                f"{groups.sized(tiny)} rows. Pool them with others (min_group_size={TINY}, "
                "small_groups='pool'), or collect more rows.",
                SmallGroupWarning,
            )
        return groups, ignored

    def decide(self, groups: Groups) -> tuple[Groups, tuple[int, ...]]:
        """Return the groups to learn with, and the codes of groups that are not compared."""
        small, ignored = groups.small(self.min_group_size), tuple[int, ...]()
        if small and self.small_groups == "error":
            raise GroupError(
                f"These groups have fewer than min_group_size={self.min_group_size} rows: "
                f"{groups.sized(small)}. Use small_groups='pool' to make one group of them, or "
                "small_groups='ignore' to learn from them without comparing them. Or merge them "
                "with other groups, or leave them out."
            )
        if small and self.small_groups == "pool":
            groups = groups.pooled(self.min_group_size)
            if groups.n_groups < 2:
                raise GroupError(
                    f"With min_group_size={self.min_group_size} all groups were pooled into one, "
                    "and two are needed. Lower min_group_size."
                )
        elif small:
            ignored = tuple(small)
            if groups.n_groups - len(ignored) < 2:
                raise GroupError(
                    f"Fewer than two groups have min_group_size={self.min_group_size} rows: "
                    f"{groups.sized()}. Lower min_group_size, or use small_groups='pool'."
                )
        return groups, ignored


@dataclass(frozen=True)
class DecidedSizes:
    """The small groups of a whole table, applied to a part of its rows.

    Parameters
    ----------
    pooled : frozenset
        Labels of the groups that are pooled.
    ignored : frozenset
        Labels of the groups that are not compared.
    """

    pooled: frozenset[Any] = frozenset()
    ignored: frozenset[Any] = frozenset()

    def apply(self, groups: Groups) -> tuple[Groups, tuple[int, ...]]:
        """Return the groups to learn with, and the codes of groups that are not compared."""
        if self.pooled:
            names = [OTHER if label in self.pooled else label for label in groups.labels]
            labels = sorted(set(names), key=str)
            codes = np.array([labels.index(name) for name in names])[groups.codes]
            groups = replace(groups, codes=codes, labels=tuple(labels))
        ignored = (code for code, label in enumerate(groups.labels) if label in self.ignored)
        return groups, tuple(ignored)


def compared_groups(
    groups: Groups, ignored: Sequence[int]
) -> tuple[NDArray[np.intp], Groups, NDArray[np.intp]]:
    """Return the rows that are compared, their groups, and the place of every group among these.

    The place of a group that is not compared is -1.

    Examples
    --------
    >>> from fairmatch.people.groups import read_groups
    >>> rows, kept, places = compared_groups(read_groups(["a", "b", "c", "b"]), ignored=[0])
    >>> rows.tolist(), kept.labels, places.tolist()
    ([1, 2, 3], ('b', 'c'), [-1, 0, 1])
    """
    kept = [code for code in range(groups.n_groups) if code not in ignored]
    places = np.full(groups.n_groups, -1, dtype=np.intp)
    places[kept] = np.arange(len(kept))
    rows = np.flatnonzero(places[groups.codes] >= 0)
    labels = tuple(groups.labels[code] for code in kept)
    return rows, replace(groups, codes=places[groups.codes[rows]], labels=labels), places


# In a larger table, a sample of this many rows is searched.
_MOST_ROWS = 100_000


def refuse_leaks(features: Any, sensitive: Any, keep: str | Collection[str]) -> None:
    """Raise if a column is the group or determines it; warn if it nearly does.

    Parameters
    ----------
    features : table or array of shape (n_rows, n_columns)
        What the model sees.
    sensitive : column, or table of several attributes
        Group of every row.
    keep : "all" or a collection of str
        Columns to keep although they give the group away.

    Raises
    ------
    ColumnError
        If a column gives the group away in every row and is not in ``keep``.
    """
    if isinstance(keep, str):
        if keep != "all":
            raise InputError(f"keep must be a list of columns or 'all', got {keep!r}.")
        return
    if (n_rows := _num_samples(features)) > _MOST_ROWS:
        rows = np.sort(np.random.default_rng(0).permutation(n_rows)[:_MOST_ROWS])
        features, sensitive = _safe_indexing(features, rows), _safe_indexing(sensitive, rows)
    found = [leak for leak in find_leaks(features, sensitive) if leak.column not in keep]
    if exact := [leak for leak in found if leak.is_exact]:
        names = list(dict.fromkeys(leak.column for leak in exact))
        raise ColumnError(
            f"With sensitive_at_prediction=False the model must not see the group, but X gives it "
            f"away: {'; '.join(leak.words for leak in exact)}. Leave it out of X, or keep it on "
            f"purpose: keep={names}."
        )
    if found:
        notify(
            f"With sensitive_at_prediction=False the model must not see the group, but X nearly "
            f"gives it away: {'; '.join(leak.words for leak in found)}. Leave it out of X, or keep "
            f"it on purpose: keep={list(dict.fromkeys(leak.column for leak in found))}.",
            LeakWarning,
        )


# Numbers with more different values than this are not classes.
_MOST_CLASSES = 10


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows to learn from.

    Attributes
    ----------
    labels : array of shape (n_rows,)
        0 or 1, or the target of a regressor in standard deviations from its mean.
    groups : Groups
        Group of every row.
    weights : array of shape (n_rows,), or None
        Weight of every row; None if no weights were given.
    points : Points
        The features as numbers and category codes, on which people are matched. An array counts
        as numbers.
    inputs : array of shape (n_rows, n_inputs), or SeenRows
        What the learner sees, with the group if the model may use it.
    ignored : tuple of int
        Codes of groups that the model learns from and does not compare.
    """

    labels: FloatArray
    groups: Groups
    weights: FloatArray | None
    points: Points
    inputs: Any
    ignored: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", read_points(self.points))

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def mass(self) -> FloatArray:
        """Weight of every row; all ones if no weights were given."""
        return np.ones(len(self)) if self.weights is None else self.weights

    @property
    def positive(self) -> BoolArray:
        """Which rows have the positive label."""
        return np.asarray(self.labels > 0.0)

    @cached_property
    def encoded(self) -> FloatArray:
        """The features as numbers, with one column for every level of a category."""
        return self.points.dense()

    def take(self, index: IndexArray) -> "TrainingRows":
        """Return some of the rows."""
        return replace(
            self,
            labels=self.labels[index],
            groups=self.groups.take(index),
            weights=None if self.weights is None else self.weights[index],
            points=self.points.take(index),
            inputs=self.inputs[index],
        )


def take_rows(values: Any, rows: IndexArray) -> Any:
    """Return some rows of a table, an array or a list."""
    return _safe_indexing(np.asarray(values) if isinstance(values, list | tuple) else values, rows)


def group_columns(codes: NDArray[Any], n_groups: int) -> FloatArray:
    """Return groups as 0/1 columns, one for every group but the first.

    Examples
    --------
    >>> import numpy as np
    >>> group_columns(np.array([0, 2, 1]), 3).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    """
    return np.asarray(codes[:, None] == np.arange(1, n_groups), dtype=np.float64)


def stratified_split(
    y: Any, sensitive: ArrayLike | Groups, held_out: float, random_state: Any
) -> tuple[IndexArray, IndexArray]:
    """Split rows at random, with the same share held out of each label and group.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Labels. Numbers with more than ten different values are grouped by quartile.
    sensitive : array-like of shape (n_rows,), or Groups
        Group of every row.
    held_out : float
        Share of the rows to hold out.
    random_state : int, generator or None
        Seed of the split.

    Returns
    -------
    train, held_out : arrays of int
        Positions of the rows of each part.
    """
    groups = sensitive if isinstance(sensitive, Groups) else read_groups(sensitive, n_rows=len(y))
    values, label = np.unique(y, return_inverse=True)
    if len(values) > _MOST_CLASSES and values.dtype.kind in "iuf":
        label = np.searchsorted(np.quantile(y, [0.25, 0.5, 0.75]), y, side="right")
    generator = np.random.default_rng(seed_sequence(random_state))
    chosen = np.zeros(len(y), dtype=bool)
    strata = groups.n_groups * label + groups.codes
    for stratum in np.unique(strata):
        rows = generator.permutation(np.flatnonzero(strata == stratum))
        chosen[rows[: round(held_out * len(rows))]] = True
    for code, name in enumerate(groups.labels):
        if len(set(chosen[groups.rows(code)])) < 2:
            raise GroupError(
                f"validation_size={held_out:g} leaves no rows of group {name!r}, which has "
                f"{len(groups.rows(code))}, on one side of the split. Both sides need some. Pool "
                "the group with another (small_groups='pool'), or hold out another share."
            )
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def check_same_rows(n_labels: int, n_groups: int) -> None:
    """Raise unless there are as many labels as groups of rows."""
    if n_labels != n_groups:
        raise InputError(
            f"y has {n_labels} samples, sensitive_features has {n_groups}. Pass one label and one "
            "group for every row."
        )


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """Return one seed for a ``random_state``: None, a number or a generator of NumPy.

    NumPy's global generator is neither read nor changed.
    """
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(int(random_state.randint(2**31 - 1)))
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(int(random_state.integers(2**63 - 1)))
    check_count("random_state", random_state, 0, optional=True)
    return np.random.SeedSequence(int(random_state))


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
        What turns X into numbers. "table" is `fairmatch.people.encoding.TableEncoder`, None leaves
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


# A file that claims more columns than this is refused, before it can exhaust the memory.
_MOST_COLUMNS = 10_000_000


def reader_facts(reader: TableReader) -> dict[str, Any]:
    """Return what a reader knows about the training table, as plain values."""
    if not (reader.encoder_ is None or isinstance(reader.encoder_, TableEncoder)):
        raise InputError(
            "A model with an encoder of your own cannot be saved without pickling it. Encode the "
            "table before the model and fit with encoder=None."
        )
    return {
        "groups": [plain_label(label) for label in reader.groups_],
        "attributes": list(reader.attributes_),
        "pooled": [plain_label(label) for label in reader.pooled_],
        "n_features_in": reader.n_features_in_,
        "feature_names_in": reader.feature_names_in_,
        "encoder": None if reader.encoder_ is None else reader.encoder_.to_dict(),
    }


def restore_reader(reader: TableReader, facts: dict[str, Any]) -> None:
    """Restore what a reader knew about its table; raise if the values are impossible."""
    reader.groups_ = labels_from(facts["groups"], "groups")
    reader.attributes_ = tuple(map(str, facts.get("attributes", ())))  # older files lack it
    reader.pooled_ = tuple(map(plain_label, facts.get("pooled", ())))
    reader.n_features_in_ = _count(facts["n_features_in"], "n_features_in")
    names = facts["feature_names_in"]
    if names is not None:
        if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
            raise ModelFileError("feature_names_in is damaged: it must be a list of names.")
        if len(names) != reader.n_features_in_:
            raise ModelFileError(
                f"feature_names_in is damaged: it must name {reader.n_features_in_} columns, and "
                f"names {len(names)}."
            )
    reader.feature_names_in_ = names
    encoder = facts["encoder"]
    reader.encoder_ = None if encoder is None else _encoder_from(encoder)


def labels_from(values: Any, what: str) -> tuple[Any, ...]:
    """Return two or more different labels; raise if the values are anything else."""
    if not isinstance(values, list) or not 2 <= len(values) <= _MOST_COLUMNS:
        raise ModelFileError(f"The file is damaged: {what} must be a list of labels.")
    found = tuple(map(plain_label, values))
    if len(set(found)) < len(found) or any(value is None for value in found):
        raise ModelFileError(f"The file is damaged: {what} must be labels that all differ.")
    return found


def classes_from(values: Any) -> NDArray[Any]:
    """Return two classes in their order; raise if there are more or fewer."""
    found = labels_from(values, "classes")
    if len(found) != 2:
        raise ModelFileError(f"The file is damaged: there must be two classes, not {len(found)}.")
    return np.array(found)


def weight_from(value: Any) -> float:
    """Return a fairness weight; raise unless it is a finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelFileError(f"The file is damaged: {value!r} is not a fairness weight.")
    if not 0.0 <= float(value) < float("inf"):
        raise ModelFileError(f"The file is damaged: {value!r} is not a fairness weight.")
    return float(value)


def epochs_from(facts: dict[str, Any]) -> int | None:
    """Return the number of epochs of training, or None for older files, which lack it."""
    value = facts.get("n_epochs")
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise ModelFileError(f"The file is damaged: n_epochs is {value!r}.")
    return value


def _count(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_COLUMNS:
        raise ModelFileError(f"The file is damaged: {what} is {value!r}.")
    return value


def _encoder_from(content: Any) -> TableEncoder:
    """Return the encoder of a file; raise if a part of its description is damaged."""
    columns = content.get("columns") if isinstance(content, dict) else None
    if not isinstance(columns, list):
        raise ModelFileError("This does not describe a TableEncoder: it has no columns.")
    for column in columns:
        if not isinstance(column, dict) or not isinstance(column.get("had_missing"), bool):
            raise ModelFileError("This does not describe a TableEncoder: a column is damaged.")
        for name in ("minimum", "maximum", "mean"):
            if name in column and not np.isfinite(float(column[name])):
                raise ModelFileError(f"This does not describe a TableEncoder: {name} is infinite.")
    return TableEncoder.from_dict(content)
