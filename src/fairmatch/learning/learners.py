"""Learners of other libraries: the tables they see, their scores, and fits on soft targets."""

import inspect
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.validation import check_is_fitted

from fairmatch.exceptions import InputError, LabelError
from fairmatch.learning.reading import (
    Reader,
    as_list,
    check_lengths,
    group_columns,
    labels_of,
    table_width,
)
from fairmatch.people.checks import FloatArray, column_names
from fairmatch.people.encoding import Points, Table, read_points
from fairmatch.people.groups import listed
from fairmatch.people.outcome import Outcome, read_vectors
from fairmatch.people.people import IndexArray, People

# Learners that can be fitted on probabilities. For each library and class: the class to fit
# instead, its objective, and the objectives of the classifier that it is equivalent to.
_CROSS_ENTROPY = {
    ("lightgbm", "LGBMClassifier"): ("LGBMRegressor", "cross_entropy", (None, "binary")),
    ("xgboost", "XGBClassifier"): ("XGBRegressor", "binary:logistic", (None, "binary:logistic")),
}
# Parameters that weigh classes, each with the value that has no effect.
_CLASS_WEIGHTS = {"class_weight": None, "scale_pos_weight": 1.0, "is_unbalance": False}


def fresh(estimator: Any) -> Any:
    """Return a copy of a user's estimator that is ready for a new fit.

    scikit-learn's ``clone`` refuses learners without ``get_params``, and constructors that copy
    their arguments, as CatBoost's does with a list of columns. Such learners are deep-copied.
    """
    try:
        return clone(estimator)
    except (RuntimeError, TypeError):
        return deepcopy(estimator)


@dataclass(frozen=True, eq=False)
class Learner:
    """A learner of another library, which learns and scores in the numbers of fairmatch.

    fairmatch labels people with 0 and 1, or with standard deviations from the mean. The learner
    sees the classes, or numbers in their own unit.
    """

    #: The learner, or a Pipeline, whose last step is the learner. Where scores are probabilities it
    #: must have ``predict_proba`` or be a regressor, whose predictions are clipped to [0, 1].
    estimator: Any
    outcome: Outcome  #: What it predicts.
    #: The labels, if scores are probabilities; the second of two is the positive one.
    classes: NDArray[Any] | None = None
    #: Mean and standard deviation of the target, if scores are numbers.
    mean: float = 0.0
    scale: float = 1.0

    def check(self, *, weighted: bool = False, prefit: bool = False) -> None:
        """Raise unless the learner can be fitted and can score people."""
        real, name = not self.outcome.decides, type(self.estimator).__name__
        wrong = ""
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            what, method, example = ("classifier", "predict_proba", "LogisticRegression()")
            if real:
                what, method, example = ("regressor", "predict", "Ridge()")
            wrong = (
                f"estimator must be a {what} with fit and {method}, got {self.estimator!r}. Pass "
                f"an instance, such as {example}."
            )
        elif real and not _predicts_numbers(self.estimator):
            wrong = (
                f"{name} is not a regressor. Pass one, such as Ridge(), or use the classifier of "
                "the same method."
            )
        elif not (hasattr(self.estimator, "predict_proba") or _predicts_numbers(self.estimator)):
            wrong = (
                f"{name} has no predict_proba, so there are no scores to adjust. Wrap it in "
                "sklearn.calibration.CalibratedClassifierCV, or choose another learner."
            )
        elif weighted and not takes_weights(self.last):
            wrong = (
                f"{type(self.last).__name__}.fit takes no sample_weight, but this fit needs "
                "weights of rows. Choose a learner that takes weights."
            )
        elif prefit and not _is_fitted(self.estimator):
            wrong = (
                f"prefit=True was given, but the estimator, {name}, is not fitted. Fit it first, "
                "or use prefit=False, which fits it."
            )
        if wrong:
            raise InputError(wrong, parameter="estimator")

    @property
    def last(self) -> Any:
        """The last step of a Pipeline, or the learner itself."""
        if isinstance(self.estimator, Pipeline):
            return self.estimator.steps[-1][1]
        return self.estimator

    def own_labels(self, numbers: FloatArray) -> NDArray[Any]:
        """Return labels as the learner sees them, from fairmatch's numbers."""
        if self.classes is None or not self.outcome.decides:
            return self.own_unit(numbers)
        return np.asarray(self.classes[numbers.astype(np.intp)])

    def own_unit(self, numbers: FloatArray) -> FloatArray:
        """Return numbers in the unit of the learner; a probability stays as it is."""
        return np.asarray(self.mean + self.scale * numbers)

    def standard(self, raw: FloatArray) -> FloatArray:
        """Return the learner's output as fairmatch's numbers; a probability stays as it is."""
        return np.asarray((raw - self.mean) / self.scale)

    def fit(self, table: Any, numbers: FloatArray, weights: FloatArray | None) -> Any:
        """Return a copy of the learner that is fitted on labels, which are fairmatch's numbers."""
        name = "sample_weight"
        if isinstance(self.estimator, Pipeline):
            name = f"{self.estimator.steps[-1][0]}__sample_weight"
        given = {} if weights is None else {name: weights}
        learner = fresh(self.estimator)
        try:
            return learner.fit(table, self.own_labels(numbers), **given)
        except Exception as error:
            error.add_note(
                f"{type(learner).__name__} is the wrapped estimator, and its fit gets X as it is. "
                "If it cannot read columns of text or missing values, put an encoder before it in "
                "a Pipeline."
            )
            raise

    def raw(self, model: Any, table: Any) -> FloatArray:
        """Return a fitted model's scores in its own unit.

        These are the probabilities of the positive class or of several classes, or predictions.
        """
        if self.outcome.several or (self.outcome.decides and hasattr(model, "predict_proba")):
            assert self.classes is not None
            known, wanted = list(getattr(model, "classes_", [])), self.classes.tolist()
            if len(known) != len(wanted) or set(known) != set(wanted):
                raise LabelError(
                    f"The fitted estimator knows the classes {known}, but y holds {wanted}. Both "
                    "must be the same. Use a classifier, and fit it on rows of every class."
                )
            chances = np.asarray(model.predict_proba(table), dtype=np.float64)
            chances = chances[:, [known.index(own) for own in wanted]]
            several = self.outcome.several
            return read_vectors(chances, name="predict_proba") if several else chances[:, 1]
        found = np.asarray(model.predict(table), dtype=np.float64)
        if self.outcome.decides:
            return np.clip(found, 0.0, 1.0)
        if found.ndim != 1 or not np.isfinite(found).all():
            raise InputError(
                f"{type(model).__name__} predicts numbers of shape {found.shape}, or some that are "
                "not finite. One finite number per row is needed. Use a regressor of one target."
            )
        return found

    def unseen(self, table: Any, people: People, cv: Any) -> FloatArray:
        """Return out-of-fold scores: each row is scored by a model that was not trained on it."""
        numbers, groups, weights = labels_of(people).values, people.groups, people.weights
        if self.outcome.decides:
            strata = groups.n_groups * numbers.astype(np.intp) + groups.codes
            folds = read_folds(cv, table, self.own_labels(numbers), strata)
        else:
            folds = read_folds(cv, table, np.zeros(len(people)), groups.codes)
        width = (len(self.outcome.classes),) if self.outcome.several else ()
        scores = np.full((len(people), *width), np.nan)
        for train, test in folds:
            kept = None if weights is None else weights[train]
            model = self.fit(_safe_indexing(table, train), numbers[train], kept)
            scores[test] = self.raw(model, _safe_indexing(table, test))
        left = np.isnan(scores.reshape(len(people), -1)[:, 0])
        if left.any():
            raise InputError(
                f"cv leaves {int(left.sum())} rows out of every test part, but every row needs a "
                "score. Use folds that hold each row out once, such as cv=5.",
                parameter="cv",
            )
        return scores

    def softly(
        self, table: Any, numbers: FloatArray, weights: FloatArray | None
    ) -> Callable[[FloatArray], Any]:
        """Return a function from soft targets of these rows to a fitted model.

        Targets are fairmatch's numbers: probabilities for classifiers. Learners that take them as
        targets get them directly. Others see every row once for each class, with the probability of
        the class as weight. The steps of a Pipeline before the last are fitted once, on the labels
        of the rows.
        """
        last, head, inputs = self.last, None, table
        if isinstance(self.estimator, Pipeline) and len(self.estimator.steps) > 1:
            head = fresh(self.estimator[:-1])
            inputs = head.fit_transform(table, self.own_labels(numbers))
        direct = last if _predicts_numbers(last) else None
        if direct is None and not self.outcome.several:
            direct = cross_entropy_learner(last)
        mass = 1.0 if weights is None else weights

        def fit(targets: FloatArray) -> Any:
            targets = self.own_unit(targets)
            if direct is not None:
                given = {} if weights is None else {"sample_weight": weights}
                model = fresh(direct).fit(inputs, targets, **given)
            else:
                assert self.classes is not None
                each = targets.T[::-1] if targets.ndim == 2 else [targets, 1.0 - targets]
                parts = np.concatenate([own * mass for own in each])
                kept = np.flatnonzero(parts > 0.0)
                rows = _safe_indexing(inputs, kept % len(targets))
                labels = self.classes[::-1][kept // len(targets)]
                model = fresh(last).fit(rows, labels, sample_weight=parts[kept])
            return model if head is None else Pipeline([*head.steps, ("model", model)])

        return fit


def cross_entropy_learner(learner: Any) -> Any:
    """Return an equivalent learner of probabilities, or None if none is known."""
    known = (type(learner).__module__.partition(".")[0], type(learner).__name__)
    if known not in _CROSS_ENTROPY:
        return None
    name, objective, usual = _CROSS_ENTROPY[known]
    parameters = learner.get_params()
    plain = all(parameters.get(k) in (None, value) for k, value in _CLASS_WEIGHTS.items())
    if not plain or parameters.get("objective") not in usual:
        return None  # class weights, or another objective, have no equivalent
    for name_of_weight in _CLASS_WEIGHTS:
        parameters.pop(name_of_weight, None)
    package = sys.modules[known[0]]  # it is loaded, because the learner is from it
    return getattr(package, name)(**{**parameters, "objective": objective})


def takes_weights(learner: Any) -> bool:
    """Return whether the ``fit`` of a learner, or of what it wraps, takes ``sample_weight``."""
    parameters = inspect.signature(learner.fit).parameters
    if "sample_weight" in parameters:
        return True
    passed_on = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    inner = [getattr(learner, "estimator", None)]
    if getattr(learner, "estimators", None):  # a vote of several, as (name, learner)
        inner = [one for _, one in learner.estimators if one != "drop"]
    return passed_on and all(one is not None and takes_weights(one) for one in inner)


def _predicts_numbers(learner: Any) -> bool:
    """Return whether scikit-learn recognises a learner as a regressor."""
    try:
        return bool(is_regressor(learner))
    except AttributeError:
        return False


def _is_fitted(model: Any) -> bool:
    """Return whether a model is fitted; one of another library is if it has classes."""
    try:
        check_is_fitted(model)
    except (NotFittedError, TypeError):
        return getattr(model, "classes_", None) is not None
    return True


def check_columns(model: Any, X: Any) -> None:
    """Raise if a table has other columns than those that a model remembers from its fit."""
    names, known = column_names(X), _known_columns(model)
    if names is not None and known is not None and names != known:
        raise InputError(
            f"The fitted estimator was trained on the columns {listed(known)}, but X has "
            f"{listed(names)}. Pass a table with the model's columns, in their order."
        )
    count, width = getattr(model, "n_features_in_", None), np.shape(X)[1:]
    if count is not None and width and width[0] != count:
        raise InputError(
            f"The fitted estimator was trained on {count} columns, but X has {width[0]}. Pass a "
            "table with the model's columns."
        )


def _known_columns(model: Any) -> list[Any] | None:
    """Return the names of the columns that a model was fitted on, or None if it has none."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:  # CatBoost's attribute, which numbers the columns of an array
        names = getattr(model, "feature_names_", None)
        if names is None or list(names) == [str(place) for place in range(len(names))]:
            return None
    return list(np.asarray(names, dtype=object))


def read_folds(
    cv: Any, X: Any, y: NDArray[Any], strata: NDArray[Any]
) -> list[tuple[IndexArray, IndexArray]]:
    """Return the folds of rows."""
    if isinstance(cv, bool) or not (isinstance(cv, int | np.integer)):
        try:
            return list(check_cv(cv, y, classifier=True).split(X, y))
        except ValueError as error:
            raise InputError(
                f"cv={cv!r} cannot split these rows ({error}). Use a number of folds, such as "
                "cv=5.",
                parameter="cv",
            ) from error
    if cv < 2:
        raise InputError(
            f"cv must be at least 2, got {cv}. Every row is scored by a model that was not trained "
            "on it. Pass a number of folds, such as cv=5.",
            parameter="cv",
        )
    _, label, sizes = np.unique(y, return_inverse=True, return_counts=True)
    if sizes.min() < cv:
        raise LabelError(
            f"A class has {sizes.min()} rows, fewer than cv={cv} folds. Use a smaller cv, or pass "
            "more rows.",
            parameter="cv",
        )
    # A group with fewer rows of a label than folds is stratified by the label alone. If all such
    # rows together are still too few, everybody is.
    _, code, counts = np.unique(strata, return_inverse=True, return_counts=True)
    merged = np.where(counts[code] < cv, -1 - label, code)
    if np.unique(merged, return_counts=True)[1].min() < cv:
        merged = label
    splitter = StratifiedKFold(cv, shuffle=True, random_state=0)
    return list(splitter.split(np.zeros(len(y)), merged))


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Rows as a learner sees them, with the codes of their groups and strata if it uses them."""

    table: Any
    codes: NDArray[Any] | None
    strata: NDArray[Any] | None = None
    _scored: dict[int, tuple[Any, FloatArray]] = field(default_factory=dict, repr=False)

    def __getitem__(self, rows: IndexArray) -> "SeenRows":
        codes = None if self.codes is None else self.codes[rows]
        strata = None if self.strata is None else self.strata[rows]
        return SeenRows(_safe_indexing(self.table, rows), codes, strata)

    def once(self, model: Any, scored: Callable[[Any], FloatArray]) -> FloatArray:
        """Return what a model says about the table, which is computed only once per model."""
        if id(model) not in self._scored:
            self._scored[id(model)] = model, scored(self.table)
        return self._scored[id(model)][1]

    def scored(self, learner: Learner, model: Any) -> FloatArray:
        """Return the scores of a model."""
        return self.once(model, partial(learner.raw, model))


@dataclass(eq=False)
class WholeTableReader(Reader):
    """A reader for a learner that takes tables as they are.

    If the groups are a column of the table, the learner sees the whole table. If they are given
    beside it, one column of 0 and 1 for every group but the first is added. If new rows do not
    need groups, the learner sees no groups.
    """

    #: Whether groups that are given beside the table are added to it. They are not for a model that
    #: came fitted, because its columns are fixed.
    adds_groups: bool = True

    def split(self, X: Any, sensitive_features: Any, where: str = "fit") -> tuple[Any, Any]:
        """Return the table for the learner, and the groups."""
        table = read_table(X)
        rest, sensitive = super().split(table, sensitive_features, where)
        return (table if self.at_prediction else rest), sensitive

    def read_new(
        self, X: Any, sensitive_features: Any, where: str = "predict"
    ) -> tuple[Table, NDArray[np.intp] | None]:
        """Return the table of new rows, and the codes of their groups if the model uses them."""
        table, codes = super().read_new(read_table(X), sensitive_features, where)
        given, width = column_names(table.native), table_width(table.native)
        if given is not None and self.feature_names_in_ is not None:
            self._check_names(given, self.feature_names_in_)
        apart = 0 if self.at_prediction else len(as_list(self.columns))
        if width != self.n_features_in_ - apart:
            raise InputError(
                f"X has {width} features, but {self.who} is expecting "
                f"{self.n_features_in_ - apart} features as input. Pass the columns of fit."
            )
        return table, codes

    def fit_encoder(self, table: Table) -> Points:
        """Return what describes people as points, or points without columns to match nobody on."""
        if self.encoder is None:
            return read_points(np.empty((len(table), 0)))
        return super().fit_encoder(self.described(table))

    def described(self, table: Table) -> Table:
        """Return the columns that describe people, without those of their groups."""
        return self.as_table(self._without_groups(table.native))

    def inputs(
        self, table: Table, codes: NDArray[Any] | None, points: Points | None = None
    ) -> SeenRows:
        """Return rows in the form that the learner sees."""
        seen = table.native
        check_lengths(seen, codes)
        if codes is not None and self.columns is None and self.adds_groups:
            seen = add_columns(seen, group_columns(codes, len(self.groups_)))
        strata = self.strata(table)
        pooled = None if strata is None else self.pooled_strata(strata).values
        return SeenRows(seen, codes, pooled)

    def _check_names(self, given: list[Any], known: list[str]) -> None:
        """Raise unless named columns are those of the fit, in their order."""
        if not self.at_prediction:  # the groups' columns have been dropped, or were missing
            known = [name for name in known if name in given]
        if given == known:
            return
        strange = [name for name in given if name not in known]
        lacking = [name for name in known if name not in given]
        what = f"also has {listed(strange)}" if strange else "has another order"
        what = f"lacks {listed(lacking)}" if lacking else what
        raise InputError(
            f"The feature names should match those that were passed during fit: X {what}. Pass a "
            "table with the same columns in the same order."
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
        # All at once: pandas warns of frames that were put together column by column.
        return pd.concat([table, pd.DataFrame(named, index=table.index)], axis=1)
    series = [
        nw.new_series(name, column, backend=frame.implementation) for name, column in named.items()
    ]
    return frame.with_columns(*series).to_native()
