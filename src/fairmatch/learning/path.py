"""A fairness path: one model per fairness weight, trained together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import fairmatch
from fairmatch.exceptions import InputError
from fairmatch.learning.classifier import FairClassifier
from fairmatch.learning.curve import FairnessPath
from fairmatch.learning.regressor import FairRegressor
from fairmatch.matching.coupling import Coupling

__all__ = ["FairnessPath", "fairness_path"]


def fairness_path(
    X: Any,
    y: ArrayLike,
    *,
    sensitive_features: ArrayLike | None = None,
    fairness_weights: Sequence[float] | None = None,
    estimator: Any = None,
    sample_weight: ArrayLike | None = None,
    coupling: Coupling | None = None,
) -> FairnessPath:
    r"""Train one model per fairness weight.

    The models share what does not depend on the weight: the table is read and encoded once, and a
    matching is made once. Networks also start from the same weights, see the same batches and
    train together as one tensor program. Each model equals the result of a fit with its weight
    alone, except for a network with weight 0: fitted alone, it needs no pairs and sees plain
    batches.

    Parameters
    ----------
    X : table or array of shape (n_rows, n_columns)
        Features.
    y : array-like of shape (n_rows,)
        Labels of two classes, or the numbers that a regressor predicts.
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
        Group of every row, unless the estimator's ``sensitive_column`` names a column of X.
    fairness_weights : sequence of float, optional
        The weights to train with, the paper's lambda. By default they are the estimator's
        ``default_weights``; the classifiers of the paper have the paper's weights.
    estimator : estimator, optional
        What to train: one of fairmatch's classifiers or regressors that has a fairness weight,
        with all other settings. By default ``FTMClassifier()``.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    coupling : Coupling, optional
        A ready matching of these rows, for estimators that match.

    Returns
    -------
    FairnessPath
        The models, in the order of the weights.

    Examples
    --------
    >>> from fairmatch import FTMClassifier, fairness_path
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> path = fairness_path(
    ...     german.X, german.y, sensitive_features=german.sensitive_features,
    ...     fairness_weights=[0.1, 10.0], estimator=FTMClassifier(epochs=5, random_state=0))
    >>> curve = path.curve(german.X, german.y, sensitive_features=german.sensitive_features)
    >>> bool(curve.mean_parity_gap[1] < curve.mean_parity_gap[0])
    True
    """
    if estimator is None:
        estimator = fairmatch.FTMClassifier()  # needs torch, which other estimators do not
    if isinstance(estimator, FairClassifier) and estimator._weight_name == "eps":
        raise InputError(
            f"{type(estimator).__name__} has no fairness weight, so it has no path. Fit one model "
            "for each eps, or let max_gap choose one."
        )
    if not isinstance(estimator, FairClassifier | FairRegressor):
        wrapper = (
            "RepresentationClassifier"
            if hasattr(estimator, "transform")
            else "MatchSmoothingClassifier"
        )
        wrapped = f" Wrap it: {wrapper}({type(estimator).__name__}(...))."
        raise InputError(
            f"estimator must be one of fairmatch's classifiers or regressors, got {estimator!r}."
            f"{wrapped if hasattr(estimator, 'fit') else ''}"
        )
    if fairness_weights is None:
        fairness_weights = estimator.default_weights
    models = estimator._fit_path(
        X,
        y,
        fairness_weights,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        coupling=coupling,
    )
    return FairnessPath(np.asarray(fairness_weights, dtype=np.float64), models)
