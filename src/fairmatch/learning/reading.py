"""The reader of one model: arguments of `fit` and `predict` become People, once.

A fitted estimator keeps its `Reader`, so that `predict` reads new rows as `fit` did.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Annotated, Any

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _num_samples, column_or_1d

from fairmatch.exceptions import (
    ColumnError,
    FairmatchWarning,
    GroupError,
    InputError,
    LabelError,
    LeakWarning,
    ModelFileError,
    SmallGroupWarning,
    UnknownGroupWarning,
    notify,
)
from fairmatch.learning.saving import plain_label
from fairmatch.people.bands import Bands, bands
from fairmatch.people.checks import (
    FloatArray,
    check_count,
    check_length,
    column_names,
    is_missing,
    plain_value,
    read_column,
    read_features,
    read_numbers,
    read_weights,
    refuse_other_order,
    refuse_twice,
)
from fairmatch.people.columns import split_column
from fairmatch.people.encoding import Points, Table, TableEncoder, code_notes, read_points
from fairmatch.people.groups import (
    OTHER,
    SMALL,
    UNKNOWN,
    Groups,
    attribute_columns,
    is_word,
    listed,
    odd_groups,
    read_groups,
    read_known,
    value_name,
)
from fairmatch.people.leaks import find_leaks
from fairmatch.people.memberships import GroupProbabilities
from fairmatch.people.outcome import (
    PROBABILITY,
    Outcome,
    class_codes,
    class_outcome,
)
from fairmatch.people.people import IndexArray, Labels, People
from fairmatch.people.similarity import (
    Similarity,
    is_embedding,
    read_embedding,
    read_similarity,
)
from fairmatch.people.strata import POOLED, Codes, Given, given_columns, pool_strata
from fairmatch.people.weights import Weights

Columns = str | int | Sequence[str | int] | Mapping[str | int, Sequence[float] | None] | None
SmallGroups = str | tuple[str, int]

_WAYS = ("warn", "error", "pool", "ignore")
# Numbers with more different values than this are not classes.
_MOST_CLASSES = 10
# More classes than this are numbers, or names.
_MOST_SEVERAL = 100
# The squares of larger numbers do not fit into float32, which networks compute in.
_FARTHEST = 1e18
# Above this share of rows without a group, a warning says so.
_MANY_UNKNOWN = 0.05
# A file that claims more columns than this is refused, before it can exhaust the memory.
_MOST_COLUMNS = 10_000_000


def split_columns(X: Any, columns: Columns) -> tuple[Any, Any]:
    """Split a table into the columns that hold the groups and the rest.

    A mapping says where a column of numbers is cut into bands; None leaves a column as it is.
    """
    if isinstance(columns, Mapping):
        X, taken = split_columns(X, list(columns))
        if len(columns) == 1:
            (edges,) = columns.values()
            return X, taken if edges is None else bands(taken, edges)
        for column, edges in columns.items():
            if edges is not None:  # several attributes are crossed, and have no order
                taken[str(column)] = np.asarray(bands(taken[str(column)], edges))
        return X, taken
    if isinstance(columns, str) or not isinstance(columns, Sequence | np.ndarray):
        return split_column(X, columns)  # type: ignore[arg-type]
    wanted = as_list(columns)
    if not wanted:
        raise InputError("sensitive_column is an empty list. Name a column, or leave it out.")
    width = table_width(X)
    names = column_names(X) or list(range(width))
    wanted = [names[c % width] if is_position(c, width) else c for c in wanted]
    refuse_twice(wanted, "sensitive_column")
    taken = {}
    # Positions change as columns are taken out, so the last column is taken first.
    for column in sorted(wanted, key=lambda c: names.index(c) if c in names else -1, reverse=True):
        X, taken[column] = split_column(X, column)
    if len(wanted) == 1:
        return X, taken[wanted[0]]
    return X, pd.DataFrame({str(column): taken[column] for column in wanted})


def refuse_records(X: Any) -> None:
    """Raise if a table is given as a dict, as a list of dicts, or as a single row of a table."""
    if isinstance(X, Mapping) and not hasattr(X, "shape"):  # some sparse arrays are dicts
        what, advice = (
            "a dict",
            "pandas.DataFrame([X]) for one person, pandas.DataFrame(X) for columns",
        )
    elif isinstance(X, list | tuple) and len(X) and isinstance(X[0], Mapping):
        what, advice = "a list of dicts", "pandas.DataFrame(X)"
    elif isinstance(X, pd.Series):
        what, advice = "a Series", "table.iloc[[0]] for one row, X.to_frame() for one column"
    else:
        return
    raise InputError(f"X is {what}, and a table is needed: pass {advice}.", parameter="X")


def is_position(column: Any, width: int) -> bool:
    """Return whether a value is a position in a table with ``width`` columns."""
    whole = isinstance(column, Integral) and not isinstance(column, bool)
    return whole and -width <= int(column) < width


def as_list(columns: Columns) -> list[Any]:
    """Return one column, or several, as a list."""
    if columns is None:
        return []
    several = isinstance(columns, Sequence | Mapping | np.ndarray) and not isinstance(columns, str)
    return list(columns) if several else [columns]  # type: ignore[arg-type]


def joined_attributes(
    sensitive: Any, attributes: tuple[str, ...], groups: Sequence[Any] = ()
) -> NDArray[Any]:
    """Return the combination of several attributes as text, in the form of `read_groups`.

    Attributes with names are found by name, in any order. Where one is missing, the combination is
    None, unless the model knows a group such as "female, unknown".
    """
    named = {str(name): own for name, own in attribute_columns(sensitive, "sensitive_features")}
    names, unnamed = column_names(sensitive), tuple(map(str, range(len(attributes))))
    if names is not None and attributes != unnamed:
        if set(map(str, names)) != set(attributes):
            raise GroupError(
                f"sensitive_features has the attributes {listed(list(map(str, names)))}, and those "
                f"of fit were {listed(attributes)}. Pass the same attributes."
            )
        named = {name: named[name] for name in attributes}
    columns = [np.asarray(own, dtype=object) for own in named.values()]
    missing = np.any([is_missing(column) for column in columns], axis=0)
    columns = [_named_unknown(column) for column in columns]
    rows = zip(*columns, strict=True)
    joined = np.array([", ".join(map(value_name, values)) for values in rows], dtype=object)
    known = {group for group in groups if isinstance(group, str)}
    joined[missing & ~np.array([name in known for name in joined], dtype=bool)] = None
    return joined


def _named_unknown(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column of groups in which missing values are called unknown."""
    named = column.astype(object)
    named[is_missing(column)] = UNKNOWN
    named[[is_word(value, UNKNOWN) for value in named.tolist()]] = UNKNOWN
    return named


def tell_unknown(groups: Groups) -> None:
    """Warn if many rows have no group."""
    if (n := groups.n_unknown) > _MANY_UNKNOWN * len(groups):
        notify(
            f"{n:,} of {len(groups):,} rows ({n / len(groups):.1%}) have no group. The model "
            "learns from them but compares them with nobody, so its gap describes only the other "
            "rows. Pass unknown='group' to make them a group of their own, or unknown='error' to "
            "refuse them.",
            UnknownGroupWarning,
        )


def table_width(X: Any) -> int:
    """Return the number of columns of a table or an array."""
    names = column_names(X)
    shape = np.asarray(X).shape if names is None else (0, len(names))
    return int(shape[1]) if len(shape) == 2 else 1


def settle_small_groups(groups: Groups, small_groups: SmallGroups) -> Groups:
    """Return the groups to learn with: small ones are pooled, kept apart, or refused.

    Examples
    --------
    >>> groups = read_groups(["a"] * 40 + ["b"] * 30 + ["c"])
    >>> settle_small_groups(groups, "ignore").apart
    (2,)
    >>> settle_small_groups(groups, ("pool", 31)).labels
    ('a', 'other')
    """
    way, least = read_small_groups(small_groups)
    small = groups.small(least)
    if way == "pool":
        groups = groups.pooled(least)
        if groups.n_groups < 2:
            raise GroupError(
                f"All groups have fewer than {least} rows and were pooled into one, but two are "
                f"needed. Choose a smaller number, such as small_groups=('pool', {least // 2}).",
                parameter="small_groups",
            )
        # A pool of a single row cannot be compared with anybody.
        groups = replace(groups, apart=tuple(sorted({*groups.apart, *groups.small(2)})))
    elif way == "ignore":
        groups = replace(groups, apart=tuple(sorted({*groups.apart, *small})))
        if len(groups.compared) < 2:
            raise GroupError(
                f"Fewer than two groups have {least} rows: {groups.sized()}. Choose a smaller "
                f"number, such as small_groups=('ignore', {least // 2}), or pool small groups.",
                parameter="small_groups",
            )
    elif refused := small if way == "error" else groups.small(2):
        raise GroupError(
            f"These groups have fewer than {least if way == 'error' else 2} rows: "
            f"{groups.sized(refused)}. Use small_groups='pool' to make one group of small groups, "
            "or small_groups='ignore' to learn from them without comparing them. Or merge them "
            "with other groups, or leave them out.",
            parameter="small_groups",
        )
    tiny = [code for code in groups.small(SMALL) if code not in groups.apart]
    if tiny:
        advice = "Pool them with others (small_groups='pool')"
        if way == "pool":
            others = np.delete(groups.sizes(), [*tiny, *groups.apart])
            more = 1 + int(others.min() if len(others) else least)
            advice = f"Pool more groups (small_groups=('pool', {more}))"
        notify(
            f"These groups are too small for a reliable gap: {groups.sized(tiny)} rows. {advice}, "
            "or collect more rows.",
            SmallGroupWarning,
        )
    return groups


def read_small_groups(value: Any) -> tuple[str, int]:
    """Return what happens to small groups, and the number of rows below which a group is small."""
    way, least = value if isinstance(value, tuple | list) and len(value) == 2 else (value, SMALL)
    if not isinstance(way, str) or way not in _WAYS:
        ways = ", ".join(map(repr, _WAYS))
        raise InputError(
            f"small_groups must be one of {ways}, or one of them with a number of rows, such as "
            f"('pool', 50); got {value!r}.",
            parameter="small_groups",
        )
    check_count("small_groups", least)
    return way, int(least)


class EncodedTable(Table):
    """Rows as a learner sees them, and as people are matched on them."""

    def __init__(self, inputs: Any, points: Points | Callable[[], Points], n_rows: int) -> None:
        super().__init__(None)
        self.inputs, self._points, self._n_rows = inputs, points, n_rows

    def __len__(self) -> int:
        return self._n_rows

    def take(self, rows: IndexArray) -> "EncodedTable":
        """Return some of the rows."""
        return EncodedTable(self.inputs[rows], lambda: self.points.take(rows), len(rows))

    @cached_property
    def points(self) -> Points:
        """The features on which people are matched."""
        return self._points() if callable(self._points) else self._points


def encoded(people: People) -> EncodedTable:
    """Return the table of people that a reader has encoded."""
    assert isinstance(people.table, EncodedTable)
    return people.table


def labels_of(people: People) -> Labels:
    """Return the labels of people who have some."""
    assert people.labels is not None
    return people.labels


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
    labels: NDArray[Any], groups: Groups, held_out: float, random_state: Any
) -> tuple[IndexArray, IndexArray]:
    """Split rows at random, with the same share held out of each label and group.

    Labels that are numbers with more than ten different values are grouped by quartile.
    """
    values, label = np.unique(labels, return_inverse=True)
    if len(values) > _MOST_CLASSES and values.dtype.kind in "iuf":
        label = np.searchsorted(np.quantile(labels, [0.25, 0.5, 0.75]), labels, side="right")
    generator = np.random.default_rng(seed_sequence(random_state))
    chosen = np.zeros(len(labels), dtype=bool)
    strata = groups.n_groups * label + groups.codes
    for stratum in np.unique(strata):
        rows = generator.permutation(np.flatnonzero(strata == stratum))
        chosen[rows[: round(held_out * len(rows))]] = True
    for code in groups.compared if groups.memberships is None else ():
        if len(set(chosen[groups.rows(code)])) < 2:
            raise GroupError(
                f"validation_size={held_out:g} leaves no rows of group {groups.labels[code]!r}, "
                f"which has {len(groups.rows(code))}, on one side of the split. Both sides need "
                "some. Pool the group with another (small_groups='pool'), or hold out another "
                "share.",
                parameter="validation_size",
            )
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def dealt(n_folds: int, *keys: NDArray[Any], order: IndexArray | None = None) -> IndexArray:
    """Return the fold of every row: rows are sorted by the last key first, then dealt in turn.

    Rows with equal keys are in the given order.
    """
    order = np.arange(len(keys[0])) if order is None else order
    fold = np.empty(len(order), dtype=np.intp)
    fold[order[np.lexsort([key[order] for key in keys])]] = np.arange(len(order)) % n_folds
    return fold


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


def read_classes(y: ArrayLike, *, several: bool = False) -> tuple[NDArray[Any], FloatArray]:
    """Return the classes in sorted order, and the position of every row's class.

    More than two classes raise an error unless ``several`` are allowed.
    """
    if y is None:
        # The first sentence has the words that scikit-learn asks for.
        raise LabelError(
            "A classifier requires y to be passed, but the target y is None. Pass a label for "
            "every row of X."
        )
    try:
        labels: NDArray[Any] = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
    except (TypeError, ValueError) as error:
        what = str(error).rstrip(". ")
        raise LabelError(
            f"y cannot be used as labels: {what}. y must hold one of two classes for every row. "
            "Leave out rows without a label, and use a regressor for numbers."
        ) from error
    classes = np.unique(labels)
    if 2 <= len(classes) <= (_MOST_SEVERAL if several else 2):
        return classes, np.searchsorted(classes, labels).astype(np.float64)
    shown = ", ".join(map(str, classes[:5]))
    if len(classes) < 2:
        raise LabelError(
            f"y must hold two classes, but it holds only one class: {shown}. Pass rows of both "
            "classes."
        )
    if several:
        raise LabelError(
            f"y holds {len(classes)} classes, but at most {_MOST_SEVERAL} are supported. Merge "
            "classes, or use a regressor for numbers."
        )
    advice = "Merge classes until two are left, or train one model per class against the rest."
    if labels.dtype.kind in "iuf" and len(classes) > _MOST_CLASSES:
        advice = "Numbers are predicted by a regressor, such as FTMBoostingRegressor."
    # The first sentences are the words that scikit-learn asks for.
    raise LabelError(
        "Only binary classification is supported. The type of the target is "
        f"{type_of_target(labels)}. y must hold two classes, got {len(classes)}: {shown}. {advice}"
    )


def read_targets(y: ArrayLike) -> FloatArray:
    """Return the numbers to predict; raise unless all of them are finite."""
    if y is None:
        raise LabelError(
            "A regressor requires y to be passed, but the target y is None. Pass a number for "
            "every row of X."
        )
    try:
        column = column_or_1d(y, warn=True)
        if column.dtype.kind == "c":
            # The first words are those that scikit-learn asks for.
            raise InputError(
                f"Complex data not supported: y has dtype {column.dtype}. Pass real numbers."
            )
        if column.dtype.kind == "O":
            column = column.astype(np.float64)
        numbers = read_numbers(column, "y")
    except (TypeError, ValueError) as error:
        raise LabelError(
            f"y cannot be used as numbers ({error}). Pass one real number for every row."
        ) from error
    if not (bad := ~np.isfinite(numbers)).any():
        return numbers
    raise LabelError(
        f"y has {int(bad.sum())} entries that are NaN or infinite (the first in row "
        f"{int(np.argmax(bad))}, counted from 0). Every row needs a finite number. Leave those "
        "rows out."
    )


@dataclass(eq=False)
class Reader:
    """The reader of one model's arguments, in `fit` and for new rows.

    `read` parses the arguments of `fit` into People. `fit` learns their encoding and returns them
    as the learner sees them. `read_new` and `inputs` read new rows as in training.
    """

    who: str  #: Name of the model's class, for errors.
    #: What is predicted: a probability, or a number, which is learned in standard deviations.
    outcome: Outcome = PROBABILITY
    columns: Columns = None  #: Columns of X that hold the groups.
    at_prediction: bool = True  #: Whether new rows need their group.
    encoder: Any = "table"  #: What turns X into numbers.
    #: One of "numbers", "codes". What the learner sees. With "numbers" it is the encoded features
    #: and a column of 0 and 1 for every group but the first. With "codes" it is one column per
    #: column of the table and one for the group, for trees.
    sees: str = "numbers"
    #: What happens to groups with few rows; None compares groups of any size.
    small_groups: SmallGroups | None = "warn"
    #: Whether the method can be fitted so that new rows need no group.
    optional: bool = True
    #: The words that the model takes as its ``encoder``, for errors.
    words: tuple[str, ...] = ("table",)
    needs_labels: bool = True  #: Whether the model learns from labels.
    #: One of "ignore", "error", "group". What happens to rows without a group.
    unknown: str = "ignore"
    several: bool = False  #: Whether there may be more than two classes.
    estimated: bool = False  #: Whether groups may be probabilities.
    given: Any = None  #: Columns of X within whose levels people are compared.
    similarity: Any = None  #: What makes two people alike.
    encoder_: Any = None
    groups_: tuple[Any, ...] = ()
    attributes_: tuple[str, ...] = ()
    pooled_: tuple[Any, ...] = ()
    unknown_: tuple[Any, ...] = ()
    n_unknown_: int = 0
    n_features_in_: int = 0
    feature_names_in_: list[str] | None = None
    classes_: NDArray[Any] = field(default_factory=lambda: np.array([]))
    mean_: float = 0.0
    scale_: float = 1.0
    given_: Given | None = None
    pooling_: NDArray[np.intp] | None = None
    alike_: Similarity = field(default_factory=Similarity)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the estimator shows."""
        shown: dict[str, Any] = {
            "reader_": self,
            "encoder_": self.encoder_,
            "groups_": self.groups_,
            "n_unknown_": self.n_unknown_,
            "n_features_in_": self.n_features_in_,
        }
        if self.feature_names_in_ is not None:
            shown["feature_names_in_"] = np.asarray(self.feature_names_in_, dtype=object)
        if self.needs_labels and self.outcome.decides:
            shown["classes_"] = self.classes_
        elif self.needs_labels:
            shown |= {"target_mean_": self.mean_, "target_scale_": self.scale_}
        if self.alike_.weights is not None:
            shown["similarity_"] = self.alike_.weights
        return shown

    def as_table(self, features: Any) -> Table:
        """Return features as a table whose columns are read once."""
        return Table(features if hasattr(features, "shape") else np.asarray(features))

    # Training

    def read(
        self, X: Any, y: ArrayLike | None, sensitive_features: Any, sample_weight: Any
    ) -> People:
        """Parse the arguments of `fit`."""
        # The first error to raise is that no groups were given.
        features, sensitive = self.split(X, sensitive_features)
        refuse_other_order(X=X, y=y, sample_weight=sample_weight)
        labels = None if y is None and not self.needs_labels else self._read_labels(y)
        names = column_names(X)
        text = names is not None and all(isinstance(name, str) for name in names)
        self.feature_names_in_ = list(names) if text and names is not None else None
        self.n_features_in_ = table_width(X)
        if isinstance(sensitive, GroupProbabilities) and not (
            self.estimated or sensitive.is_certain
        ):
            raise InputError(
                f"{self.who} and group_probabilities do not combine, because it needs the group "
                "itself. Use a method that matches people, or GroupBlindClassifier.",
                parameter="sensitive_features",
            )
        given = read_known(sensitive, self.unknown, estimated=self.estimated)
        self.unknown_ = tuple(given.labels[code] for code in given.apart)
        self.n_unknown_ = given.n_unknown
        tell_unknown(given)
        for note in odd_groups(given):
            notify(note, FairmatchWarning)
        small = self.small_groups
        groups = given if small is None else settle_small_groups(given, small)
        self.groups_, self.attributes_ = groups.labels, groups.attributes
        self.pooled_ = tuple(label for label in given.labels if label not in groups.labels)
        if labels is not None and len(labels) != len(groups):
            raise InputError(
                f"y has {len(labels)} samples, sensitive_features has {len(groups)}. Pass one "
                "label and one group for every row."
            )
        if (n_rows := _num_samples(features)) != len(groups):
            raise InputError(
                f"X has {n_rows} rows, sensitive_features has {len(groups)}. Pass one group for "
                "every row of X."
            )
        weight = Weights(len(groups), read_weights(sample_weight, n_rows=len(groups)))
        if groups.memberships is not None and self.at_prediction:
            self.at_prediction = False
            notify(
                "The groups are probabilities, so the group of a new row is not known, and the "
                "model does not use it for predictions. Pass sensitive_at_prediction=False to "
                "say so.",
                FairmatchWarning,
            )
        People(groups, weight=weight).rows_with_mass()
        table = self.as_table(features)
        if isinstance(self.encoder, str | TableEncoder):
            for note in code_notes(self.described(table), "pass X.astype({{{!r}: 'category'}})"):
                notify(note, FairmatchWarning)
        if not (self.at_prediction or self._has_own_encoder) and given.memberships is None:
            refuse_leaks(table, given)
        if self.given is not None:
            self.given_ = Given.fit(given_columns(self.given, table, n_rows))
        alike = None
        if is_embedding(self.similarity):
            alike = read_embedding(self.similarity, n_rows)
        return People(groups, table, labels, weight, self.strata(table), embedding=alike)

    def strata(self, table: Table) -> Codes | None:
        """Return the strata of rows; None if people are compared whatever their factors are."""
        if self.given_ is None:
            return None
        return self.given_.codes(given_columns(self.given, table, len(table)))

    def _read_labels(self, y: Any) -> Labels:
        if self.outcome.decides:
            self.classes_, values = read_classes(y, several=self.several)
            return Labels(values, self._name_classes())
        numbers = read_targets(y)
        if len(numbers) == 1:
            raise LabelError("y has one sample, but learning needs at least two. Pass more rows.")
        return Labels(numbers)

    def _name_classes(self) -> tuple[Any, ...]:
        """Return the classes, and note what a score is: two classes have one probability."""
        names = tuple(plain_value(label) for label in self.classes_)
        self.outcome = PROBABILITY if len(names) == 2 else class_outcome(names)
        return names

    def fit(self, people: People, *, coupled: bool = False) -> People:
        """Learn the encoding of people's tables, and return them as the learner sees them.

        Rows without weight are dropped, except with a ready coupling (``coupled``): it points at
        rows by position.
        """
        if people.labels is not None and not self.outcome.decides:
            labels = replace(people.labels, values=self._fit_scale(people))
            people = replace(people, labels=labels)
        if people.weights is not None and not people.weights.all() and not coupled:
            # Rows without weight must not influence ranges, bins or folds.
            people = people.take(np.flatnonzero(people.weights))
        if people.strata is not None:
            self.pooling_ = pool_strata(people.strata, people.groups)
            people = replace(people, strata=self.pooled_strata(people.strata))
        assert people.table is not None
        points = self.fit_encoder(people.table)
        self.alike_ = self._read_similarity(people)
        if self._has_own_encoder and not self.at_prediction:
            refuse_leaks(Table(points.dense()), people.groups)
        codes = people.groups.codes if self.at_prediction else None
        inputs = self.inputs(people.table, codes, points)

        def alike() -> Points:
            if people.embedding is not None:
                return Points(people.embedding)
            if self.alike_.weights is None:
                return points
            return self.alike_.scaled(points.dense(), self.encoder_.feature_groups_)

        return replace(people, table=EncodedTable(inputs, alike, len(people)))

    def pooled_strata(self, strata: Codes) -> Codes:
        """Return strata as a model learns them: those that were small in fit are one."""
        assert self.pooling_ is not None
        codes = np.append(self.pooling_, -1)[strata.values]
        return Codes(codes, (*strata.labels, POOLED))

    def _read_similarity(self, people: People) -> Similarity:
        """Return what makes people alike. Relevance is measured on these people."""
        if self.similarity is None or people.embedding is not None:
            return Similarity()
        assert people.table is not None
        if not isinstance(self.encoder_, TableEncoder):
            raise InputError(
                "similarity weighs columns of the table, which an encoder of your own may mix. "
                "Leave one of the two out.",
                parameter="similarity",
            )
        table = self.described(people.table)
        return read_similarity(self.similarity, table, people.labels, people.weights)

    def described(self, table: Table) -> Table:
        """Return the columns that describe people, without those of their groups."""
        return table

    def _fit_scale(self, people: People) -> FloatArray:
        """Learn the unit of a number, its mean and standard deviation, and return numbers in it.

        The sizes of the loss and of the penalty then do not depend on the unit of the target. A
        fairness weight means the same for hours as for euros.
        """
        numbers = labels_of(people).values
        mean = np.average(numbers, weights=people.weights)
        scale = np.sqrt(np.average((numbers - mean) ** 2, weights=people.weights))
        if not scale > 1e-12 * np.abs(numbers).max():
            raise LabelError(
                f"y is constant ({mean:g}), so there is nothing to learn. Choose a "
                "target that differs between people."
            )
        self.mean_, self.scale_ = float(mean), float(scale)
        return (numbers - self.mean_) / self.scale_

    @property
    def _has_own_encoder(self) -> bool:
        return not (self.encoder is None or isinstance(self.encoder, str | TableEncoder))

    def fit_encoder(self, table: Table) -> Points:
        """Learn how to turn a table into numbers, and return it as points."""
        encoder = self.encoder
        if isinstance(encoder, str) and encoder == "table":
            encoder = TableEncoder()
        is_transformer = hasattr(encoder, "fit_transform") and not isinstance(encoder, type)
        if not (encoder is None or is_transformer):
            raise InputError(
                f"encoder must be {', '.join(map(repr, self.words))}, None or a transformer, got "
                f"{encoder!r}. Pass one of these.",
                parameter="encoder",
            )
        self.encoder_ = None if encoder is None else clone(encoder)
        if isinstance(self.encoder_, TableEncoder):
            # One-hot columns are made only where a learner needs them.
            return read_points(self.encoder_.fit(table).to_points(table), n_rows=len(table))
        features = table.native
        if self.encoder_ is not None:
            features = self.encoder_.fit_transform(features)
        return read_points(read_features(features, n_rows=len(table), largest=_FARTHEST))

    # Any rows, as in training

    def numbers(self, table: Table) -> FloatArray:
        """Return a table as numbers, with one column for every level of a category."""
        given: Any = table if isinstance(self.encoder_, TableEncoder) else table.native
        seen = given if self.encoder_ is None else self.encoder_.transform(given)
        array = read_features(seen, largest=_FARTHEST)
        if self.encoder_ is None and array.shape[1] != self.n_encoded:
            raise InputError(
                f"X has {array.shape[1]} features, but {self.who} is expecting "
                f"{self.n_encoded} features as input. Pass the columns of fit."
            )
        return array

    def inputs(self, table: Table, codes: NDArray[Any] | None, points: Points | None = None) -> Any:
        """Return what the learner sees of rows: their features, and their groups if it uses them.

        ``points`` are the encoded features where they are ready.
        """
        if self.sees == "codes":
            numbers = self.encoder_.to_codes(table)
            columns = None if codes is None else codes.astype(np.float64)
        else:
            numbers = self.numbers(table) if points is None else points.dense()
            columns = None if codes is None else group_columns(codes, len(self.groups_))
        check_lengths(numbers, codes)
        return numbers if columns is None else np.column_stack([numbers, columns])

    @property
    def categorical(self) -> list[int]:
        """Positions of the categorical inputs of trees; two groups count as a number."""
        positions: list[int] = self.encoder_.categorical_positions
        several = self.at_prediction and len(self.groups_) > 2
        return [*positions, len(self.encoder_.feature_groups_)] if several else positions

    @property
    def group_places(self) -> list[int]:
        """Positions of the columns of X that hold the groups."""
        width, names = self.n_features_in_, self.feature_names_in_ or []
        return [
            int(column) % width if is_position(column, width) else names.index(column)
            for column in as_list(self.columns)
        ]

    @property
    def n_encoded(self) -> int:
        """Number of encoded features of a row."""
        if self.encoder_ is not None:
            return len(self.encoder_.get_feature_names_out())
        return self.n_features_in_ - len(as_list(self.columns))

    @property
    def n_inputs(self) -> int:
        """Number of inputs of the learner."""
        if self.sees == "codes":
            return len(self.encoder_.feature_groups_) + bool(self.at_prediction)
        return self.n_encoded + (len(self.groups_) - 1) * bool(self.at_prediction)

    # New rows

    def read_new(
        self, X: Any, sensitive_features: Any, where: str = "predict"
    ) -> tuple[Table, NDArray[np.intp] | None]:
        """Return the table of new rows, and the codes of their groups if the model uses them."""
        if not self.at_prediction:
            return self.as_table(self._without_groups(X)), None
        features, sensitive = self.split(X, sensitive_features, where)
        return self.as_table(features), self.codes(self.labels(sensitive))

    def read_scored(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> People:
        """Return the groups, labels and weights of new rows whose scores are to be measured."""
        features, given = self.split(X, sensitive_features, "curve")
        sensitive = given
        if not (self.estimated and isinstance(sensitive, GroupProbabilities)):
            sensitive = self.labels(sensitive)
        groups = read_groups(sensitive, estimated=self.estimated)
        if isinstance(given, Bands):
            groups = replace(groups, numbers=given.values)
        unknown = (code for code, label in enumerate(groups.labels) if label in self.unknown_)
        groups = replace(groups, apart=tuple(unknown))
        if self.outcome.decides:
            known = tuple(self.classes_.tolist())
            labels = Labels(class_codes(y, known, n_rows=len(groups), name="y"), known)
        else:
            labels = Labels(read_targets(y))
            check_length(labels.values, len(groups), "y")
        weight = Weights(len(groups), read_weights(sample_weight, n_rows=len(groups)))
        strata = None if self.given_ is None else self.strata(self.as_table(features))
        return People(groups, None, labels, weight, strata)

    def labels(self, sensitive: Any) -> NDArray[Any]:
        """Return the group of every row under the model's name for it.

        Where small groups are pooled, a group that was not in the training table is one of them.
        """
        known = (*self.groups_, *self.pooled_)
        column = (
            joined_attributes(sensitive, self.attributes_, known)
            if self.attributes_
            else read_column(sensitive, "sensitive_features")
        )
        if UNKNOWN in known and not self.attributes_ and self.unknown != "error":
            column = _named_unknown(column)
        if not self.pooled_:
            return column
        small = np.zeros(len(column), dtype=bool)
        for label in self.pooled_:
            small |= np.asarray(column == label, dtype=bool)
        new = ~(small | is_missing(column))
        for label in self.groups_:
            new &= np.asarray(column != label, dtype=bool)
        spellings = {_folded(label) for label in known}
        new[new] = [_folded(label) not in spellings for label in column[new].tolist()]
        if new.any():
            strange = listed(list(dict.fromkeys(column[new].tolist())))
            notify(
                f"{self._source} holds {strange}, not in the training table. Small groups are "
                f"pooled there, so the model scores these {int(new.sum()):,} rows as {OTHER!r}.",
                UnknownGroupWarning,
            )
        named = column.astype(object)
        named[small | new] = OTHER
        return named

    @property
    def _source(self) -> str:
        """What errors call the groups of new rows."""
        columns = as_list(self.columns)
        if not columns:
            return "sensitive_features"
        return f"X[{(columns if len(columns) > 1 else columns[0])!r}]"

    def codes(self, labels: NDArray[Any]) -> NDArray[np.intp]:
        """Return the codes of groups; raise an error that names the first unknown group."""
        codes = np.full(len(labels), -1)
        for code, label in enumerate(self.groups_):
            codes[np.asarray(labels == label, dtype=bool)] = code
        if (codes < 0).any():
            missing = codes < 0
            missing[missing] = is_missing(labels[missing])
            if n := int(missing.sum()):
                blind = ", or if it was fitted with sensitive_at_prediction=False"
                raise GroupError(
                    f"{self._source} has no group in {n} row{'s' * (n > 1)} (the first is row "
                    f"{int(np.argmax(missing))}, counted from 0); the model knows the groups "
                    f"{_and(self.groups_)}. It cannot score a person without the group. Fill in "
                    "the group, or leave those rows out. A model can score such people if some of "
                    f"its training rows had no group{blind * self.optional}."
                )
            strange = labels[codes < 0].tolist()[0]
            spelled = [one for one in self.groups_ if _folded(one) == _folded(strange)]
            hint = f" Did you mean {spelled[0]!r}?" if spelled else ""
            pooled = "" if hint else "; with small_groups='pool', it would count as a small group"
            raise GroupError(
                f"{self._source} holds {strange!r}; the model knows the groups "
                f"{_and(self.groups_)}. A group that was not in the training table cannot be "
                f"scored. Leave those rows out, or train with rows of the group{pooled}.{hint}"
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
            refuse_other_order(X=X, sensitive_features=sensitive_features)
            return X, sensitive_features
        if sensitive_features is not None:
            raise InputError(
                f"sensitive_features was given, but sensitive_column={self.columns!r} means that "
                "the groups are in X. Pass only one of the two."
            )
        return split_columns(X, self.columns)

    def _without_groups(self, X: Any) -> Any:
        """Drop the groups' columns if X has them; new rows may come without them."""
        if self.columns is None or table_width(X) < self.n_features_in_:
            return X
        return split_columns(X, self.columns)[0]

    # Saving

    def facts(self) -> dict[str, Any]:
        """Return what the reader knows about the training table, as plain values."""
        if self._has_own_encoder:
            raise InputError(
                "A model with an encoder of your own cannot be saved without pickling it. Encode "
                "the table before the model and fit with encoder=None."
            )
        target: dict[str, Any] = {"target": {"mean": self.mean_, "scale": self.scale_}}
        if self.outcome.decides:
            target = {"classes": [plain_label(label) for label in self.classes_]}
        return {
            **target,
            "groups": [plain_label(label) for label in self.groups_],
            "attributes": list(self.attributes_),
            "pooled": [plain_label(label) for label in self.pooled_],
            "unknown": list(self.unknown_),
            "n_unknown": self.n_unknown_,
            "at_prediction": self.at_prediction,
            "n_features_in": self.n_features_in_,
            "feature_names_in": self.feature_names_in_,
            "encoder": None if self.encoder_ is None else self.encoder_.to_dict(),
        }

    def restore(self, facts: dict[str, Any]) -> None:
        """Restore what a reader knew about its table; raise if the values are impossible."""
        damaged = "The file is damaged:"
        try:
            known = msgspec.convert(facts, _Facts)
        except msgspec.ValidationError as error:
            raise ModelFileError(f"{damaged} {error}.") from error
        target, names = known.classes or known.target, known.feature_names_in
        if isinstance(target, _Target) == self.outcome.decides or target is None:
            raise ModelFileError(f"{damaged} it must hold the classes, or the unit of a number.")
        if isinstance(target, _Target):
            self.mean_, self.scale_ = target.mean, target.scale
        else:
            if len(target) != 2 and not self.several:
                raise ModelFileError(f"{damaged} there must be two classes, not {len(target)}.")
            self.classes_ = np.array(target)
            self._name_classes()
        if not (_all_differ(known.groups) and _all_differ(known.classes or ())):
            raise ModelFileError(f"{damaged} groups and classes must be labels that all differ.")
        if names is not None and len(names) != known.n_features_in:
            raise ModelFileError(
                f"{damaged} feature_names_in must name {known.n_features_in} columns, and names "
                f"{len(names)}."
            )
        for name in ("groups", "attributes", "pooled", "unknown", "n_unknown", "n_features_in"):
            setattr(self, f"{name}_", getattr(known, name))
        self.feature_names_in_ = names
        # False where the groups were probabilities.
        self.at_prediction = known.at_prediction and self.at_prediction
        encoder = facts["encoder"]
        self.encoder_ = None if encoder is None else TableEncoder.from_dict(encoder)


_Label = str | int | float | bool | None
_Labels = Annotated[tuple[_Label, ...], msgspec.Meta(min_length=2, max_length=_MOST_COLUMNS)]


class _Target(msgspec.Struct):
    """The unit in which a number is learned."""

    mean: float
    scale: Annotated[float, msgspec.Meta(gt=0.0)]


class _Facts(msgspec.Struct):
    """What a saved model holds about its training table."""

    groups: _Labels
    attributes: tuple[str, ...]
    pooled: tuple[_Label, ...]
    unknown: tuple[_Label, ...]
    n_unknown: Annotated[int, msgspec.Meta(ge=0)]
    n_features_in: Annotated[int, msgspec.Meta(ge=1, le=_MOST_COLUMNS)]
    feature_names_in: list[str] | None
    at_prediction: bool
    classes: _Labels | None = None
    target: _Target | None = None


def _all_differ(labels: Sequence[Any]) -> bool:
    return None not in labels and len(set(labels)) == len(labels)


def refuse_leaks(table: Table, groups: Groups) -> None:
    """Raise if a column of a table is a copy of the group; warn if it gives the group away.

    Raises
    ------
    ColumnError
        If a column holds the group, or one of several attributes.
    """
    found = find_leaks(table, groups)
    copies = [leak for leak in found if leak.kind == "copy"]
    what = "With sensitive_at_prediction=False the model must not see the group, but X"
    if copies:
        raise ColumnError(
            f"{what} contains it: {'; '.join(leak.words for leak in copies)}. Drop "
            f"{listed(list(dict.fromkeys(leak.column for leak in copies)))} from X."
        )
    if found:
        notify(
            f"{what} reveals it: {'; '.join(leak.words for leak in found)}. Drop "
            f"{listed(list(dict.fromkeys(leak.column for leak in found)))} from X, unless the "
            "model may use it.",
            LeakWarning,
        )


def check_lengths(inputs: Any, codes: NDArray[Any] | None) -> None:
    """Raise unless there is one group for every row; None means that no groups are used."""
    if codes is not None and len(codes) != _num_samples(inputs):
        raise InputError(
            f"sensitive_features has {len(codes)} rows, X has {_num_samples(inputs)}. Pass one "
            "group for every row of X."
        )


def _folded(label: Any) -> str:
    return str(label).strip().casefold()


def _and(labels: Sequence[Any]) -> str:
    shown = [repr(label) for label in labels[:20]]
    return f"{', '.join(shown[:-1])} and {shown[-1]}"
