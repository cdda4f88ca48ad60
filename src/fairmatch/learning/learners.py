"""Learners of other libraries: their scores, their weights, and fits on soft targets."""

import inspect
import sys
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags

from fairmatch.exceptions import InputError, LabelError
from fairmatch.learning.reading import encoded, labels_of
from fairmatch.matching.coupling import IndexArray
from fairmatch.people.checks import FloatArray
from fairmatch.people.groups import listed
from fairmatch.people.people import People


def fresh(estimator: Any) -> Any:
    """Return a copy of a user's estimator that is ready for a new fit.

    scikit-learn's ``clone`` refuses learners without ``get_params``, and constructors that copy
    their arguments, as CatBoost's does with a list of columns. Such learners are deep-copied.
    """
    try:
        return clone(estimator)
    except (RuntimeError, TypeError):
        return deepcopy(estimator)


def clone_wrapper(model: Any) -> Any:
    """Return an unfitted copy of a wrapper; with ``prefit=True`` the inner model is not copied.

    A clone of the inner model would be unfitted, and such a wrapper needs it fitted.
    """
    parameters = {
        name: clone(value, safe=False)
        for name, value in model.get_params(deep=False).items()
        if name != "estimator"
    }
    inner = model.estimator
    prefit = getattr(model, "prefit", False)
    copied = type(model)(inner if prefit is True else fresh(inner), **parameters)
    for name in ("_metadata_request", "_sklearn_output_config"):
        if name in vars(model):
            setattr(copied, name, clone(vars(model)[name], safe=False))
    return copied


def wrapped_tags(tags: Any, estimator: Any) -> Any:
    """Return the tags of a wrapper, which takes the same tables as the wrapped model."""
    try:
        inner = get_tags(estimator)
    except (AttributeError, TypeError):
        return tags  # not an estimator; fit raises the error
    for name in ("allow_nan", "categorical", "string"):
        setattr(tags.input_tags, name, getattr(inner.input_tags, name))
    return tags


Folds = Sequence[tuple[IndexArray, IndexArray]]

# Learners that can be fitted on probabilities. For each library and class: the class to fit
# instead, its objective, and the objectives of the classifier that it is equivalent to.
_CROSS_ENTROPY = {
    ("lightgbm", "LGBMClassifier"): ("LGBMRegressor", "cross_entropy", (None, "binary")),
    ("xgboost", "XGBClassifier"): ("XGBRegressor", "binary:logistic", (None, "binary:logistic")),
}
# Parameters that weigh classes, each with the value that has no effect.
_CLASS_WEIGHTS = {"class_weight": None, "scale_pos_weight": 1.0, "is_unbalance": False}


@dataclass(frozen=True, eq=False)
class Learner:
    """A learner of another library, with one interface for all of them.

    Parameters
    ----------
    estimator : estimator with scikit-learn's interface
        The unfitted learner, or a Pipeline, whose last step is the learner. It must have
        ``predict_proba`` or be a regressor. A regressor's predictions count as probabilities.
    """

    estimator: Any

    def check(self, *, weighted: bool = False, real: bool = False) -> None:
        """Raise unless the learner can be fitted and can score people.

        Parameters
        ----------
        weighted : bool
            Whether its ``fit`` must take ``sample_weight``.
        real : bool
            Whether it must predict real numbers.
        """
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise InputError(
                f"estimator must be a {'regressor' if real else 'classifier'} with fit and "
                f"{'predict' if real else 'predict_proba'}, got {self.estimator!r}. Pass an "
                f"instance, such as {'Ridge' if real else 'LogisticRegression'}()."
            )
        if real and not _predicts_numbers(self.estimator):
            raise InputError(
                f"{_name(self.estimator)} is not a regressor. Pass one, such as Ridge(), or use "
                "the classifier of the same method."
            )
        if not (hasattr(self.estimator, "predict_proba") or _predicts_numbers(self.estimator)):
            raise InputError(
                f"{_name(self.estimator)} has no predict_proba, so there are no scores to adjust. "
                "Wrap it in sklearn.calibration.CalibratedClassifierCV, or choose another learner."
            )
        if weighted and not takes_weights(self.last):
            raise InputError(
                f"{_name(self.last)}.fit takes no sample_weight, and this fit needs weights of "
                "rows. Choose a learner that takes weights."
            )

    @property
    def last(self) -> Any:
        """The last step of a Pipeline, or the learner itself."""
        if isinstance(self.estimator, Pipeline):
            return self.estimator.steps[-1][1]
        return self.estimator

    def fit(self, X: Any, y: NDArray[Any], weights: FloatArray | None) -> Any:
        """Return a copy of the learner, fitted on labels."""
        return fresh(self.estimator).fit(X, y, **self._weighing(weights))

    def _weighing(self, weights: FloatArray | None) -> dict[str, FloatArray]:
        if weights is None:
            return {}
        if isinstance(self.estimator, Pipeline):
            return {f"{self.estimator.steps[-1][0]}__sample_weight": weights}
        return {"sample_weight": weights}

    def unseen_scores(
        self,
        X: Any,
        y: NDArray[Any],
        weights: FloatArray | None,
        folds: Folds,
        score: Callable[[Any, Any], FloatArray] | None = None,
    ) -> FloatArray:
        """Return out-of-fold scores: each row is scored by a learner that was not trained on it.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Features.
        y : array of shape (n_rows,)
            Labels of two classes, of which the greater is positive; or real numbers.
        weights : array of shape (n_rows,), optional
            Weight of every row.
        folds : sequence of (train, test)
            Row positions. Every row must be in a test part.
        score : callable, optional
            Maps a model and a table to scores. By default these are the probabilities of the
            positive class.
        """
        scores = np.full(len(y), np.nan)
        for train, test in folds:
            kept = None if weights is None else weights[train]
            model, unseen = (
                self.fit(_safe_indexing(X, train), y[train], kept),
                _safe_indexing(X, test),
            )
            scores[test] = (
                positive_scores(model, unseen, y) if score is None else score(model, unseen)
            )
        if np.isnan(scores).any():
            raise InputError(
                f"cv leaves {int(np.isnan(scores).sum())} rows out of every test part, and every "
                "row needs a score. Use folds that hold each row out once, such as cv=5."
            )
        return scores

    def soften(
        self,
        X: Any,
        y: NDArray[Any],
        weights: FloatArray | None,
        classes: NDArray[Any] | None = None,
    ) -> "SoftLearner":
        """Return a learner of soft targets for these rows.

        The steps of a Pipeline before the last are fitted here.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Features.
        y : array of shape (n_rows,)
            Labels, for steps of a Pipeline that learn from them.
        weights : array of shape (n_rows,), optional
            Weight of every row.
        classes : array of shape (2,), optional
            The classes; by default those in y.
        """
        classes = np.unique(y) if classes is None else classes
        if not isinstance(self.estimator, Pipeline) or len(self.estimator.steps) == 1:
            return SoftLearner(self.last, None, X, weights, classes)
        head = fresh(self.estimator[:-1])
        return SoftLearner(self.last, head, head.fit_transform(X, y), weights, classes)


@dataclass(frozen=True, eq=False)
class SoftLearner:
    """A learner of soft targets on one table: probabilities or real numbers.

    Attributes
    ----------
    last : estimator
        The unfitted learner.
    head : Pipeline or None
        The fitted steps before it.
    inputs : table or array
        What the learner sees of the rows.
    weights : array of shape (n_rows,), or None
        Weight of every row.
    classes : array of shape (2,)
        The two labels; the second is the positive one.
    """

    last: Any
    head: Pipeline | None
    inputs: Any
    weights: FloatArray | None
    classes: NDArray[Any]

    def fit(self, targets: FloatArray) -> Any:
        """Return a model that is fitted on soft targets, in [0, 1] for classifiers.

        Learners that take probabilities as targets get them directly. Others see every row twice:
        as positive with the target as weight, and as negative with one minus the target.
        """
        direct = self.last if _predicts_numbers(self.last) else cross_entropy_learner(self.last)
        if direct is not None:
            given = {} if self.weights is None else {"sample_weight": self.weights}
            model = fresh(direct).fit(self.inputs, targets, **given)
        else:
            mass = 1.0 if self.weights is None else self.weights
            both = np.concatenate([targets * mass, (1.0 - targets) * mass])
            kept = np.flatnonzero(both > 0.0)
            rows = _safe_indexing(self.inputs, kept % len(targets))
            labels = self.classes[(kept < len(targets)).astype(np.intp)]
            model = fresh(self.last).fit(rows, labels, sample_weight=both[kept])
        if self.head is None:
            return model
        return Pipeline([*self.head.steps, ("model", model)])


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


def positive_scores(model: Any, X: Any, y: NDArray[Any]) -> FloatArray:
    """Return a fitted model's probabilities of the positive class.

    Parameters
    ----------
    model : fitted estimator
        A classifier of two classes, or a regressor, whose predictions are clipped to [0, 1].
    X : table or array
        Rows with the columns that the model was fitted on.
    y : array
        Labels, or the two classes; the greater one is positive.
    """
    if not hasattr(model, "predict_proba"):
        return np.clip(np.asarray(model.predict(X), dtype=np.float64), 0.0, 1.0)
    known, wanted = list(getattr(model, "classes_", [])), np.unique(y)
    if len(wanted) != 2 or len(known) != 2 or set(known) != set(wanted.tolist()):
        raise LabelError(
            f"The model of estimator knows the classes {known}, and y holds {wanted.tolist()}. "
            "Both must be the same two classes. Fit the model on rows of both classes."
        )
    scores: FloatArray = np.asarray(model.predict_proba(X), dtype=np.float64)
    return scores[:, known.index(wanted[1])]


def check_columns(model: Any, X: Any) -> None:
    """Raise if a table has other columns than those that a model remembers from its fit."""
    names = getattr(X, "column_names", getattr(X, "columns", None))
    known = _known_columns(model)
    if names is not None and known is not None and list(names) != known:
        raise InputError(
            f"The model of estimator was fitted on the columns {listed(known)}, and X has "
            f"{listed(list(names))}. Pass a table with the model's columns, in their order."
        )
    count, width = getattr(model, "n_features_in_", None), np.shape(X)[1:]
    if count is not None and width and width[0] != count:
        raise InputError(
            f"The model of estimator was fitted on {count} columns, and X has {width[0]}. Pass a "
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


def read_folds(
    cv: Any, X: Any, y: NDArray[Any], strata: NDArray[Any]
) -> list[tuple[IndexArray, IndexArray]]:
    """Return the folds of rows.

    Parameters
    ----------
    cv : int, splitter, or list of (train, test)
        How to split. A number of folds is stratified by label and group.
    X : table or array
        Features.
    y : array of shape (n_rows,)
        Labels.
    strata : array of shape (n_rows,)
        Code of the combination of label and group.
    """
    if isinstance(cv, bool) or not (isinstance(cv, int | np.integer)):
        try:
            return list(check_cv(cv, y, classifier=True).split(X, y))
        except ValueError as error:
            raise InputError(
                f"cv={cv!r} cannot split these rows ({error}). Use a number of folds, such as cv=5."
            ) from error
    if cv < 2:
        raise InputError(
            f"cv must be at least 2, got {cv}. Every row is scored by a model that was not trained "
            "on it. Pass a number of folds, such as cv=5."
        )
    _, label, sizes = np.unique(y, return_inverse=True, return_counts=True)
    if sizes.min() < cv:
        raise LabelError(
            f"A class has {sizes.min()} rows, fewer than cv={cv} folds. Use a smaller cv, or pass "
            "more rows."
        )
    # A group with fewer rows of a label than folds is stratified by the label alone. If all such
    # rows together are still too few, everybody is.
    _, code, counts = np.unique(strata, return_inverse=True, return_counts=True)
    merged = np.where(counts[code] < cv, -1 - label, code)
    if np.unique(merged, return_counts=True)[1].min() < cv:
        merged = label
    splitter = StratifiedKFold(cv, shuffle=True, random_state=0)
    return list(splitter.split(np.zeros(len(y)), merged))


def _predicts_numbers(learner: Any) -> bool:
    """Return whether scikit-learn recognises a learner as a regressor."""
    try:
        return bool(is_regressor(learner))
    except AttributeError:
        return False


def _name(learner: Any) -> str:
    return type(learner).__name__


class Output(Protocol):
    """The conversion between a wrapped model's numbers and those of fairmatch.

    fairmatch labels rows with 0 and 1, or with standard deviations from the mean. The wrapped model
    sees classes, or numbers in their own unit.
    """

    @property
    def scale(self) -> str:
        """The scale of the model's output in an alignment: "probability" or "real"."""

    def check(self, learner: Learner, *, weighted: bool = False) -> None:
        """Raise unless a learner has such an output."""

    def own(self, numbers: FloatArray) -> NDArray[Any]:
        """Return the labels for the model's fit, from fairmatch's numbers."""

    def soft(self, targets: FloatArray) -> FloatArray:
        """Return the soft targets for the model's fit, from fairmatch's numbers."""

    def raw(self, model: Any, table: Any) -> FloatArray:
        """Return a model's output for a table, in its own unit."""

    def standard(self, raw: FloatArray) -> FloatArray:
        """Return a model's output as fairmatch's numbers."""

    def folds(self, cv: Any, rows: People) -> Folds:
        """Return the folds of rows."""


@dataclass(frozen=True, eq=False)
class ClassOutput:
    """Probabilities of two classes.

    Parameters
    ----------
    classes : array of shape (2,)
        The two labels; the second is the positive one.
    """

    classes: NDArray[Any]

    scale: ClassVar[str] = "probability"

    def check(self, learner: Learner, *, weighted: bool = False) -> None:
        """Raise unless a learner can score people, with weights if asked."""
        learner.check(weighted=weighted)

    def own(self, numbers: FloatArray) -> NDArray[Any]:
        """Return the label of every row."""
        labels: NDArray[Any] = self.classes[(numbers > 0.0).astype(np.intp)]
        return labels

    def soft(self, targets: FloatArray) -> FloatArray:
        """Return probabilities as they are."""
        return targets

    def raw(self, model: Any, table: Any) -> FloatArray:
        """Return the probability of the positive class."""
        return positive_scores(model, table, self.classes)

    def standard(self, raw: FloatArray) -> FloatArray:
        """Return probabilities as they are."""
        return raw

    def folds(self, cv: Any, rows: People) -> Folds:
        """Return folds that are stratified by label and group."""
        strata = rows.groups.n_groups * labels_of(rows).positive + rows.groups.codes
        return read_folds(cv, encoded(rows).inputs.table, self.own(labels_of(rows).values), strata)


@dataclass(frozen=True)
class RealOutput:
    """Real numbers; fairmatch labels rows with standard deviations from the mean.

    Parameters
    ----------
    mean, deviation : float
        Mean and standard deviation of the target.
    """

    mean: float
    deviation: float

    scale: ClassVar[str] = "real"

    def check(self, learner: Learner, *, weighted: bool = False) -> None:
        """Raise unless a learner is a regressor, with weights if asked."""
        learner.check(weighted=weighted, real=True)

    def own(self, numbers: FloatArray) -> NDArray[Any]:
        """Return the target of every row in its own unit."""
        return np.asarray(self.mean + self.deviation * numbers)

    def soft(self, targets: FloatArray) -> FloatArray:
        """Return soft targets in the unit of the target."""
        return np.asarray(self.mean + self.deviation * targets)

    def raw(self, model: Any, table: Any) -> FloatArray:
        """Return the prediction of every row."""
        found = np.asarray(model.predict(table), dtype=np.float64)
        if found.ndim != 1 or not np.isfinite(found).all():
            raise InputError(
                f"{type(model).__name__} predicts numbers of shape {found.shape}, or some that are "
                "not finite. One finite number per row is needed. Use a regressor of one target."
            )
        return found

    def standard(self, raw: FloatArray) -> FloatArray:
        """Return predictions in standard deviations from the mean."""
        return np.asarray((raw - self.mean) / self.deviation)

    def folds(self, cv: Any, rows: People) -> Folds:
        """Return folds that are stratified by group."""
        alike = np.zeros(len(rows))
        return read_folds(cv, encoded(rows).inputs.table, alike, rows.groups.codes)
