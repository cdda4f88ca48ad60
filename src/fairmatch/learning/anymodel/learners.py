"""Other people's learners: their scores, their weights, and fitting them on soft targets."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from fairmatch.exceptions import InputError, LabelError
from fairmatch.learning.anymodel.cloning import fresh
from fairmatch.matching.coupling import IndexArray
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.groups import listed

Folds = Sequence[tuple[IndexArray, IndexArray]]

# Learners that can be fitted on probabilities: by library and class, the class to fit instead, its
# objective, and the objectives that this is the same as.
_CROSS_ENTROPY = {
    ("lightgbm", "LGBMClassifier"): ("LGBMRegressor", "cross_entropy", (None, "binary")),
    ("xgboost", "XGBClassifier"): ("XGBRegressor", "binary:logistic", (None, "binary:logistic")),
}
# Parameters that weigh classes, with the values at which they change nothing.
_CLASS_WEIGHTS = {"class_weight": None, "scale_pos_weight": 1.0, "is_unbalance": False}


@dataclass(frozen=True, eq=False)
class Learner:
    """A learner of somebody else's, and how it is spoken to.

    Parameters
    ----------
    estimator : estimator of scikit-learn
        The learner, unfitted; a Pipeline is spoken to through its last step. It needs
        ``predict_proba``, or is a regressor, whose predictions are taken as probabilities.
    """

    estimator: Any

    def check(self, *, weighted: bool = False, real: bool = False) -> None:
        """Raise unless it can be fitted and scores people, with weights if asked.

        Parameters
        ----------
        weighted : bool
            Whether its fit must take weights.
        real : bool
            Whether it must predict real numbers instead.
        """
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise InputError(
                f"estimator must be a classifier with fit and predict_proba, got "
                f"{self.estimator!r}. Give an instance, such as LogisticRegression()."
            )
        if real and not _predicts_numbers(self.estimator):
            raise InputError(
                f"{_name(self.estimator)} is no regressor. Give one, such as Ridge(), or use the "
                "classifier of the same method."
            )
        if not (hasattr(self.estimator, "predict_proba") or _predicts_numbers(self.estimator)):
            raise InputError(
                f"{_name(self.estimator)} has no predict_proba, so it gives no scores to adjust. "
                "Wrap it in sklearn.calibration.CalibratedClassifierCV, or choose another learner."
            )
        if weighted and not takes_weights(self.last):
            raise InputError(
                f"{_name(self.last)}.fit takes no sample_weight, and this method weighs rows. "
                "Choose a learner that takes weights."
            )

    @property
    def last(self) -> Any:
        """The last step of a Pipeline, else the learner itself."""
        if isinstance(self.estimator, Pipeline):
            return self.estimator.steps[-1][1]
        return self.estimator

    def fit(self, X: Any, y: NDArray[Any], weights: FloatArray | None) -> Any:
        """Return the learner fitted on labels."""
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
        """Return the scores of rows by learners that have not seen them.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Features.
        y : array of shape (n_rows,)
            Labels of two classes, the greater one positive; or real numbers.
        weights : array of shape (n_rows,), optional
            Weight of every row.
        folds : sequence of (train, test)
            Row positions; every row is in one test part.
        score : callable, optional
            Returns the scores that a model gives to a table; by default the probability of the
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
                f"cv leaves {int(np.isnan(scores).sum())} rows out of every test part. Use folds "
                "that hold each row out once, such as cv=5."
            )
        return scores

    def soften(
        self,
        X: Any,
        y: NDArray[Any],
        weights: FloatArray | None,
        classes: NDArray[Any] | None = None,
    ) -> "SoftLearner":
        """Return a learner of soft targets of these rows; a Pipeline's first steps are fitted.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Features.
        y : array of shape (n_rows,)
            Labels, which the first steps of a Pipeline may learn from.
        weights : array of shape (n_rows,), optional
            Weight of every row.
        classes : array of shape (2,), optional
            The classes, where these rows may lack one.
        """
        classes = np.unique(y) if classes is None else classes
        if not isinstance(self.estimator, Pipeline) or len(self.estimator.steps) == 1:
            return SoftLearner(self.last, None, X, weights, classes)
        head = fresh(self.estimator[:-1])
        return SoftLearner(self.last, head, head.fit_transform(X, y), weights, classes)


@dataclass(frozen=True, eq=False)
class SoftLearner:
    """A learner of probabilities instead of labels, or of real numbers, on one table.

    Attributes
    ----------
    last : estimator
        What learns, unfitted.
    head : Pipeline or None
        Fitted steps before it.
    inputs : table or array
        What it sees of the rows.
    weights : array of shape (n_rows,), or None
        Weight of every row.
    classes : array of shape (2,)
        The labels; the second is the positive one.
    """

    last: Any
    head: Pipeline | None
    inputs: Any
    weights: FloatArray | None
    classes: NDArray[Any]

    def fit(self, targets: FloatArray) -> Any:
        """Return a model whose scores come near targets: in [0, 1], or a regressor's own.

        Learners that take probabilities as targets are given them. Others see every row twice:
        as positive with the target as weight, and as negative with the rest.
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
    """Return a learner of probabilities that is otherwise the same, or None where none is known."""
    known = (type(learner).__module__.partition(".")[0], type(learner).__name__)
    if known not in _CROSS_ENTROPY:
        return None
    name, objective, usual = _CROSS_ENTROPY[known]
    parameters = learner.get_params()
    plain = all(parameters.get(k) in (None, value) for k, value in _CLASS_WEIGHTS.items())
    if not plain or parameters.get("objective") not in usual:
        return None  # weights of classes have no meaning without classes
    for name_of_weight in _CLASS_WEIGHTS:
        parameters.pop(name_of_weight, None)
    return getattr(import_module(known[0]), name)(**{**parameters, "objective": objective})


def positive_scores(model: Any, X: Any, y: NDArray[Any]) -> FloatArray:
    """Return a fitted model's probability of the positive class.

    Parameters
    ----------
    model : fitted estimator
        A classifier of two classes, or a regressor.
    X : table or array
        Rows with the columns that the model was fitted on.
    y : array
        Labels, or the two classes; the greater one is the positive.
    """
    if not hasattr(model, "predict_proba"):
        return np.clip(np.asarray(model.predict(X), dtype=np.float64), 0.0, 1.0)
    known, wanted = list(getattr(model, "classes_", [])), np.unique(y)
    if len(wanted) != 2 or len(known) != 2 or set(known) != set(wanted.tolist()):
        raise LabelError(
            f"The model of estimator knows the classes {known}, and y holds {wanted.tolist()}. "
            "Both must be the same two classes; fit the model on all of them."
        )
    scores: FloatArray = np.asarray(model.predict_proba(X), dtype=np.float64)
    return scores[:, known.index(wanted[1])]


def check_columns(model: Any, X: Any) -> None:
    """Raise unless a table has the columns that a model was fitted on, as far as it says."""
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
    """Return the names that a model was fitted on, where it was given any."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:  # CatBoost's word for it, which counts the columns of an array
        names = getattr(model, "feature_names_", None)
        if names is None or list(names) == [str(place) for place in range(len(names))]:
            return None
    return list(np.asarray(names, dtype=object))


def takes_weights(learner: Any) -> bool:
    """Return whether a learner's fit takes ``sample_weight``, by itself or by what it wraps."""
    parameters = inspect.signature(learner.fit).parameters
    if "sample_weight" in parameters:
        return True
    passed_on = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    inner = getattr(learner, "estimator", None)
    return passed_on and inner is not None and takes_weights(inner)


def read_folds(
    cv: Any, X: Any, y: NDArray[Any], strata: NDArray[Any]
) -> list[tuple[IndexArray, IndexArray]]:
    """Return the folds of rows: stratified by label and group where ``cv`` is a number.

    Parameters
    ----------
    cv : int, splitter, or list of (train, test)
        How to split.
    X : table or array
        Features.
    y : array of shape (n_rows,)
        Labels.
    strata : array of shape (n_rows,)
        Label and group together, as one code.
    """
    if isinstance(cv, bool) or not (isinstance(cv, int | np.integer)):
        try:
            return list(check_cv(cv, y, classifier=True).split(X, y))
        except ValueError as error:
            raise InputError(f"cv={cv!r} cannot split these rows: {error}") from error
    if cv < 2:
        raise InputError(f"cv must be at least 2, so that scores are of unseen rows; got {cv}.")
    _, label, sizes = np.unique(y, return_inverse=True, return_counts=True)
    if sizes.min() < cv:
        raise LabelError(
            f"A class has {sizes.min()} rows, fewer than cv={cv} folds. Use a smaller cv, or more "
            "rows."
        )
    # A group with fewer rows of a label than folds goes with the label alone, and if all these
    # together are still too few, so does everybody.
    _, code, counts = np.unique(strata, return_inverse=True, return_counts=True)
    merged = np.where(counts[code] < cv, -1 - label, code)
    if np.unique(merged, return_counts=True)[1].min() < cv:
        merged = label
    splitter = StratifiedKFold(cv, shuffle=True, random_state=0)
    return list(splitter.split(np.zeros(len(y)), merged))


def _predicts_numbers(learner: Any) -> bool:
    """Return whether a learner is a regressor; one that scikit-learn does not know is none."""
    try:
        return bool(is_regressor(learner))
    except AttributeError:
        return False


def _name(learner: Any) -> str:
    return type(learner).__name__
