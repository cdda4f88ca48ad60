"""The scores of a model: passed by the caller, or computed by a fitted estimator."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmatch.auditing.people import PeopleTable
from fairmatch.exceptions import InputError
from fairmatch.measures.real import read_predictions
from fairmatch.tables.arrays import FloatArray, check_length, read_scores


def read_model(y_score: Any, table: PeopleTable, scale: str = "probability") -> FloatArray:
    """Return the scores of a model, or let the model score the people.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,), or fitted estimator
        The scores, or a model that scores ``table.X``.
    table : PeopleTable
        The people.
    scale : {"probability", "real"}, default="probability"
        Whether the scores are probabilities, or predictions in units of the target.
    """
    method = "predict" if scale == "real" else "predict_proba"
    if hasattr(y_score, method) and table.X is None:
        raise InputError(
            "y_score is an estimator and X is None, but an estimator needs X to score the rows. "
            "Pass X."
        )
    if scale == "real":
        if hasattr(y_score, method):
            return predict_people(y_score, table.X, table.sensitive_features)
        predicted = read_predictions(y_score, "y_score")
        check_length(predicted, table.n_given, "y_score")
        return predicted if table.positions is None else predicted[table.positions]
    if hasattr(y_score, method):
        scored = score_people(y_score, table.X, table.sensitive_features, table.pos_label)
        return _read_probabilities(scored, len(table.groups))
    if hasattr(y_score, "predict") or callable(y_score):
        raise InputError(
            f"{type(y_score).__name__} has no predict_proba. Pass its scores in [0, 1], or its "
            "0/1 decisions, as y_score."
        )
    scores = _read_probabilities(y_score, table.n_given)
    return scores if table.positions is None else scores[table.positions]


def check_scores(y_score: Any, scale: str) -> None:
    """Raise unless scores are on their scale.

    This runs before labels are read. If predictions and a target are on another scale, an error
    about the scale explains more than one about labels.
    """
    is_model = hasattr(y_score, "predict_proba") or hasattr(y_score, "predict") or callable(y_score)
    if scale == "probability" and not is_model:
        _read_probabilities(y_score)


def _read_probabilities(y_score: Any, n_rows: int | None = None) -> FloatArray:
    try:
        return read_scores(y_score, n_rows=n_rows)
    except InputError as error:
        if "[0, 1]" not in str(error):
            raise
        raise InputError(
            f"{error} Or pass scale='real' (--scale real) for predictions in units of the target."
        ) from None


def score_people(model: Any, X: Any, sensitive_features: Any, pos_label: Any = 1) -> FloatArray:
    """Return a classifier's probability of the positive label for every row.

    Parameters
    ----------
    model : fitted estimator
        A classifier with ``predict_proba``. It gets the sensitive features if it takes them and
        does not find them in X.
    X : table or array
        The rows, as the model expects them.
    sensitive_features : array-like
        Group of every row.
    pos_label : default=1
        The label that counts as positive.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> score_people(DummyClassifier().fit([[0], [0]], [0, 1]), [[0]], None).tolist()
    [0.5]
    """
    probabilities = _called(model, "predict_proba", X, sensitive_features)
    classes = np.asarray(getattr(model, "classes_", (0, 1))).tolist()
    if pos_label not in classes or probabilities.ndim != 2 or probabilities.shape[1] != 2:
        raise InputError(
            f"The estimator knows the classes {classes}. It must have two classes, and "
            f"pos_label={pos_label!r} must be one of them. Pass the pos_label of this model."
        )
    return read_scores(probabilities[:, classes.index(pos_label)])


def predict_people(model: Any, X: Any, sensitive_features: Any) -> FloatArray:
    """Return a regressor's prediction for every row.

    Parameters
    ----------
    model : fitted estimator
        A regressor with ``predict``. It gets the sensitive features if it takes them and does not
        find them in X.
    X : table or array
        The rows, as the model expects them.
    sensitive_features : array-like
        Group of every row.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> predict_people(DummyRegressor().fit([[0], [0]], [30.0, 40.0]), [[0]], None).tolist()
    [35.0]
    """
    if hasattr(model, "predict_proba"):
        raise InputError(
            f"{type(model).__name__} is a classifier, and scale='real' audits predictions in "
            "units of the target. Pass a regressor, or leave out scale."
        )
    return read_predictions(_called(model, "predict", X, sensitive_features), "predict")


def _called(model: Any, method: str, X: Any, sensitive_features: Any) -> NDArray[Any]:
    """Return what a method of a model returns for the rows. It gets the groups if it takes them."""
    call, given = getattr(model, method), {}
    takes = "sensitive_features" in inspect.signature(call).parameters
    if takes and getattr(model, "sensitive_column", None) is None:  # else the groups are in X
        given["sensitive_features"] = sensitive_features
    return np.asarray(call(X, **given))
