"""What makes two people alike: columns and weights, relevance to the outcome, or an embedding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from fairmatch.exceptions import InputError, LabelError
from fairmatch.people.checks import (
    FloatArray,
    check_finite,
    check_length,
    check_names,
    check_number,
)
from fairmatch.people.columns import Column
from fairmatch.people.encoding import Points, Table, TableEncoder, as_table
from fairmatch.people.people import Labels

RELEVANCE = "relevance"

AUTO = "auto"
"""The default of an audit: relevance if there are labels that show it, or else the range."""

# Relevance is measured on at most this many rows, in so many folds, with so many shuffles each.
_MOST_ROWS = 10_000
_FOLDS = 3
_SHUFFLES = 3
_TREES = 60
# Of the third fold, at most so many rows times columns are shuffled, and at least so many rows.
_MOST_SHUFFLED, _LEAST_SHUFFLED = 100_000, 500
# A column counts if shuffling it adds to the loss by more than this many standard errors.
_ERRORS = 2.0
# What HistGradientBoosting accepts as categories.
_MOST_LEVELS = 255
# "auto" measures the relevance of at most this many columns, which takes seconds.
_MOST_COLUMNS = 200


@dataclass(frozen=True, eq=False)
class Similarity:
    r"""What makes two people alike.

    Notes
    -----
    Numbers are scaled to [0, 1] by their range, and two different levels of a category are at
    squared distance 2. With weights :math:`w_c` the squared distance is
    :math:`\sum_c w_c d_c(x, x')^2`.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [20, 30, 60], "job": ["cook", "nurse", "cook"]})
    >>> read_similarity({"age": 4.0}, people).points(people).numbers.ravel().tolist()
    [0.0, 0.5, 2.0]
    """

    #: One of "range", "weights", "relevance", "embedding". Where the distance comes from: every
    #: column by its range, weights of columns, relevance to the outcome, or an embedding.
    how: str = "range"
    #: Column to its weight; columns that are not listed do not count. None if every column counts
    #: by its range, and for an embedding.
    weights: dict[str, float] | None = None
    embedding: npt.NDArray[Any] | None = None  #: Position of every person.

    def scales(self, groups: Mapping[str, slice], width: int) -> FloatArray:
        """Return the factor of every encoded column: the square root of its column's weight."""
        if self.weights is None:
            return np.ones(width)
        factors = np.zeros(width)
        for name, weight in self.weights.items():
            factors[groups[name]] = np.sqrt(weight)
        return factors

    def points(self, X: Any) -> Points:
        """Return people as points whose squared distance says how different they are."""
        if self.embedding is not None:
            check_length(self.embedding, len(as_table(X)), "similarity")
            return Points(self.embedding)
        table = as_table(X)
        if self.weights is None:
            return table.points
        encoder = TableEncoder(missing="encode", max_levels=None).fit(table)
        return self.scaled(encoder.transform(table), encoder.feature_groups_)

    def scaled(self, encoded: FloatArray, groups: Mapping[str, slice]) -> Points:
        """Return encoded columns as points, without the columns that do not count."""
        factors = self.scales(groups, encoded.shape[1])
        numbers = encoded[:, factors > 0.0] * factors[factors > 0.0]
        return Points(numbers)


def is_embedding(similarity: Any) -> bool:
    """Return whether a caller says who is alike by one row of numbers per person."""
    words = isinstance(similarity, Sequence) and all(isinstance(one, str) for one in similarity)
    return not (similarity is None or words or isinstance(similarity, str | Mapping | Similarity))


def written_similarity(columns: Sequence[str]) -> list[str] | dict[str, float]:
    """Return columns, or columns with weights, from words such as "age" or "age=2".

    Examples
    --------
    >>> written_similarity(["age", "job"]), written_similarity(["age=2", "job"])
    (['age', 'job'], {'age': 2.0, 'job': 1.0})
    """
    parts = [column.partition("=") for column in columns]
    if not any(sign for _, sign, _ in parts):
        return list(columns)
    weights = {}
    for name, sign, weight in parts:
        try:
            weights[name.strip()] = float(weight) if sign else 1.0
        except ValueError:
            raise InputError(
                f"similarity has {name}={weight}, and a weight is a number. Write it as {name}=2.",
                parameter="similarity",
            ) from None
    return weights


def read_similarity(
    similarity: Any,
    X: Any,
    labels: Labels | None = None,
    sample_weight: FloatArray | None = None,
    random_state: int = 0,
) -> Similarity:
    """Return what makes people alike, as a caller says it.

    None counts every column by its range, a list counts only these columns, and a mapping gives
    each column a weight. "relevance" weighs columns by how much they matter to ``labels``. An array
    has one row per person, such as an embedding of texts.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [20, 30, 60], "job": ["cook", "nurse", "cook"]})
    >>> read_similarity(["job"], people).weights
    {'job': 1.0}
    """
    if similarity is None:
        return Similarity()
    if isinstance(similarity, Similarity):
        return similarity
    if isinstance(similarity, str):
        if similarity != RELEVANCE:
            raise InputError(
                f"similarity={similarity!r} is not known. Pass 'relevance', a list of columns, a "
                "mapping of columns to weights, or an array with one row per person.",
                parameter="similarity",
            )
        if labels is None:
            raise LabelError(
                "similarity='relevance' weighs columns by how much they matter to the outcome, so "
                "it needs the labels: y_true of an audit or of nearest_fair_matching, y of a "
                "matcher. Pass them, or name the columns that count.",
                parameter="similarity",
            )
        return Similarity(RELEVANCE, relevance(X, labels, sample_weight, random_state))
    if is_embedding(similarity):
        return Similarity("embedding", embedding=read_embedding(similarity, len(as_table(X))))
    named = similarity if isinstance(similarity, Mapping) else dict.fromkeys(similarity, 1.0)
    check_names(list(map(str, named)), [own.name for own in as_table(X).columns], table="X")
    for name, weight in named.items():
        check_number(f"similarity[{name!r}]", weight, "[0, inf)")
    if not any(named.values()):
        raise InputError(
            "similarity gives no column a positive weight, so everybody would be alike. Name a "
            "column, or give one a positive weight.",
            parameter="similarity",
        )
    return Similarity("weights", {str(name): float(weight) for name, weight in named.items()})


def default_similarity(
    table: Table, labels: Labels, sample_weight: FloatArray | None, random_state: int
) -> tuple[Similarity, str | None]:
    """Return relevance to the labels, or every column by its range and a sentence that says why."""
    otherwise = "Every column counts by its range in the distance of two people, because"
    if len(table.columns) > _MOST_COLUMNS:
        return Similarity(), (
            f"{otherwise} there are more than {_MOST_COLUMNS} columns. Pass "
            "similarity='relevance' to weigh them by how much they matter to the labels."
        )
    try:
        found = read_similarity(RELEVANCE, table, labels, sample_weight, random_state)
    except InputError:
        return Similarity(), f"{otherwise} these labels do not show which columns matter."
    return found, None


def read_embedding(similarity: ArrayLike, n_rows: int) -> npt.NDArray[Any]:
    """Return an embedding as an array of floats. float32 and float64 are not copied."""
    array = np.asarray(similarity)
    if array.ndim != 2 or array.dtype.kind not in "biuf" or not array.shape[1]:
        raise InputError(
            "similarity must be a numeric array with one row per person, got shape "
            f"{array.shape} of {array.dtype}. Pass an embedding, a list of columns, a mapping of "
            "columns to weights, or 'relevance'.",
            parameter="similarity",
        )
    check_length(array, n_rows, "similarity")
    floats = array if array.dtype.kind == "f" else array.astype(np.float64)
    check_finite(floats, "similarity")
    return floats


def relevance(
    X: Any,
    labels: Labels,
    sample_weight: FloatArray | None = None,
    random_state: int = 0,
) -> dict[str, float]:
    r"""Return how much each column matters to the outcome, as weights of a squared distance.

    Columns that do not matter are left out.

    Notes
    -----
    Histogram trees of scikit-learn (60 with 15 leaves) are grown on two of three folds. Each column
    of the third is shuffled three times, and :math:`I_c` is the mean increase of the loss
    (cross-entropy or squared error) over folds and shuffles. A column counts if the increase is
    above two standard errors. With :math:`V_c`, the mean squared distance of two random people by
    column :math:`c`, its weight is :math:`I_c / V_c`, divided by :math:`\sum_c I_c`. So the share
    of a column in the distance between two random people is its share of the importance. If two
    columns carry the same information, how they divide their importance is arbitrary. At most
    10,000 rows are used, drawn at random, and fewer of the third fold if there are more than 30
    columns.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> X = random.random((600, 3))
    >>> found = relevance(X, Labels((X[:, 1] > 0.5).astype(float), (0, 1)))
    >>> list(found)
    ['x1']
    """
    table = as_table(X)
    check_length(labels.values, len(table), "y")
    mass = np.ones(len(table)) if sample_weight is None else sample_weight
    generator = np.random.default_rng(random_state)
    rows = np.arange(len(table))
    if len(rows) > _MOST_ROWS:
        rows = np.sort(generator.permutation(len(rows))[:_MOST_ROWS])
    decides = labels.classes is not None
    target = (labels.positive if decides else labels.values)[rows]
    values, sizes = np.unique(target, return_counts=True)
    if len(values) < 2 or (decides and sizes.min() < _FOLDS):
        raise LabelError(
            "similarity='relevance' needs labels that differ, and for two classes at least "
            f"{_FOLDS} rows each. Name the columns that count instead.",
            parameter="similarity",
        )
    columns = table.columns
    codes = np.column_stack([np.where(c.missing, np.nan, c.values)[rows] for c in columns])
    rises = _rises(codes, columns, target, mass[rows], generator, decides=decides)
    means, errors = rises.mean(axis=1), rises.std(axis=1, ddof=1) / np.sqrt(rises.shape[1])
    shares = {
        column.name: (float(mean), _spread(column, mass))
        for column, mean, error in zip(columns, means, errors, strict=True)
        if mean > _ERRORS * error
    }
    total = sum(share for share, _ in shares.values())
    if not total:
        raise InputError(
            "No column matters to the outcome, so similarity='relevance' has nothing to weigh. "
            "Name the columns that count instead.",
            parameter="similarity",
        )
    return {name: share / total / spread for name, (share, spread) in shares.items()}


def _rises(
    codes: FloatArray,
    columns: Sequence[Column],
    target: npt.NDArray[Any],
    mass: FloatArray,
    generator: np.random.Generator,
    *,
    decides: bool,
) -> FloatArray:
    """Return the increases of the loss on held-out rows, one row of the result per column."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.model_selection import KFold, StratifiedKFold

    made: Any = HistGradientBoostingClassifier if decides else HistGradientBoostingRegressor
    folds: Any = StratifiedKFold if decides else KFold
    levels = [0 if column.levels is None else len(column.levels) for column in columns]
    narrow = [at for at, count in enumerate(levels) if 0 < count <= _MOST_LEVELS]
    seed = int(generator.integers(2**31))
    rises = np.zeros((len(columns), _FOLDS, _SHUFFLES))
    split = folds(_FOLDS, shuffle=True, random_state=seed).split(codes, target)
    for fold, (train, test) in enumerate(split):
        model = made(
            max_iter=_TREES,
            max_leaf_nodes=15,
            categorical_features=narrow,
            random_state=seed,
            early_stopping=False,
        )
        # Equal weights are left out, because bins are found much faster without weights.
        own = None if np.ptp(mass) == 0.0 else mass[train]
        model.fit(codes[train], target[train], sample_weight=own)
        test = test[: max(_MOST_SHUFFLED // len(columns), _LEAST_SHUFFLED)]  # in random order
        own, truth, weight = codes[test], target[test].astype(np.float64), mass[test]
        for at in range(len(columns)):
            shuffled = np.tile(own, (_SHUFFLES + 1, 1, 1))  # the first is left in order
            shuffled[1:, :, at] = [generator.permutation(own[:, at]) for _ in range(_SHUFFLES)]
            rows = shuffled.reshape(-1, len(columns))
            if decides:
                share = np.clip(model.predict_proba(rows)[:, 1], 1e-12, 1.0 - 1e-12)
                share = share.reshape(-1, len(own))
                loss = -np.log(np.where(truth > 0.0, share, 1.0 - share))
            else:
                loss = (model.predict(rows).reshape(-1, len(own)) - truth) ** 2
            means = np.average(loss, axis=1, weights=weight)
            rises[at, fold] = means[1:] - means[0]
    return rises.reshape(len(columns), -1)


def _spread(column: Column, mass: FloatArray) -> float:
    """Return the mean squared distance between two random people in one encoded column."""
    missing = float(np.average(column.missing, weights=mass))
    if column.levels is not None:
        counts = np.bincount(column.values + 1, weights=mass, minlength=len(column.levels) + 1)
        return 2.0 * (1.0 - float(((counts / counts.sum()) ** 2).sum()))
    known = column.values[~column.missing].astype(np.float64)
    mean = np.average(known, weights=mass[~column.missing])
    square = np.average((known - mean) ** 2, weights=mass[~column.missing]) / np.ptp(known) ** 2
    return 2.0 * ((1.0 - missing) * float(square) + missing * (1.0 - missing))
