"""Fairness paths, and the models that a search for alternatives tries."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

import fairmatch
from fairmatch.exceptions import InputError
from fairmatch.learning.choice import FairnessPath, check_choice, fit_models
from fairmatch.learning.estimator import FairClassifier, FairRegressor
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
    matching is made once. Networks also start from the same weights, see the same batches and train
    together as one tensor program. Each model equals the result of a fit with its weight alone. A
    network with weight 0 is the exception: fitted alone, it needs no pairs and sees plain batches.

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
    >>> from fairmatch import FTMClassifier, NeuralNetwork, fairness_path
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> path = fairness_path(
    ...     german.X, german.y, sensitive_features=german.sensitive_features,
    ...     fairness_weights=[0.1, 10.0],
    ...     estimator=FTMClassifier(NeuralNetwork(epochs=5), random_state=0))
    >>> curve = path.curve(german.X, german.y, sensitive_features=german.sensitive_features)
    >>> bool(curve.mean_parity_gap[1] < curve.mean_parity_gap[0])
    True
    """
    if estimator is None:
        estimator = fairmatch.FTMClassifier()  # needs torch, which other estimators do not
    if not isinstance(estimator, FairClassifier | FairRegressor):
        wrapped = f" Wrap it: MatchSmoothingClassifier({type(estimator).__name__}(...))."
        raise InputError(
            f"estimator must be one of fairmatch's classifiers or regressors, got {estimator!r}."
            f"{wrapped if hasattr(estimator, 'fit') else ''}"
        )
    if fairness_weights is None:
        fairness_weights = estimator.default_weights
    if estimator.calibrate:
        raise InputError(
            "calibrate=True holds rows out, but a path trains on all of them. Fit the model you "
            "choose with calibrate=True.",
            parameter="calibrate",
        )
    check_choice(estimator)
    estimator._check(fairness_weights, coupling)
    reader = estimator._reader()
    people = reader.read(X, y, sensitive_features, sample_weight)
    models = fit_models(estimator, reader, people, fairness_weights, coupling)
    return FairnessPath(np.asarray(fairness_weights, dtype=np.float64), models)


BASELINE = "plain trees"


@dataclass(frozen=True)
class Candidate:
    """A model that the search tries."""

    #: The method that trained it, and its weight in words; empty for the baseline.
    method: str
    setting: str
    model: Any  #: The fitted model.

    @property
    def name(self) -> str:
        """Name of the model: its method and its setting."""
        return f"{self.method}, {self.setting}" if self.setting else self.method


@dataclass(frozen=True)
class SearchMethod:
    """A way to train models along a curve."""

    make: Callable[..., Any]  #: Returns an estimator for a number of trees and further parameters.
    word: str  #: Name of the weight, for the models' names.
    weights: tuple[float, ...]  #: The weights to try.
    needs_group: bool = False  #: Whether the models need the group to predict.


def _ftm(transport: str, warmup: float) -> Callable[..., Any]:
    def make(n_rounds: int, **given: Any) -> Any:
        from lightgbm import LGBMClassifier

        trees = LGBMClassifier(n_estimators=n_rounds, n_jobs=1)
        return fairmatch.FTMBoostingClassifier(trees, transport=transport, warmup=warmup, **given)

    return make


def _around(class_name: str, **fixed: Any) -> Callable[..., Any]:
    def make(n_rounds: int, **given: Any) -> Any:
        trees = plain_trees(n_rounds, given["random_state"])
        return getattr(fairmatch, class_name)(trees, **fixed, **given)

    return make


METHODS: Mapping[str, SearchMethod] = {
    "FTM": SearchMethod(_ftm("marginal", 0.0), "fairness weight", (0.1, 0.2, 0.5, 0.8, 1.2)),
    "FTM with the predicted map": SearchMethod(
        _ftm("predicted", 0.5), "fairness weight", (0.1, 0.2, 0.3, 0.5, 1.0, 2.0)
    ),
    "match smoothing": SearchMethod(
        _around("MatchSmoothingClassifier"), "fairness weight", (0.5, 1.0, 2.0, 5.0, 15.0, 50.0)
    ),
    "thresholds by group": SearchMethod(
        _around("QuantileAlignmentClassifier", decisions="threshold"),
        "strength",
        (0.25, 0.5, 0.75, 0.9),
        needs_group=True,
    ),
}


def plain_trees(n_rounds: int, seed: Any) -> Any:
    """Return an unfitted LightGBM classifier with LightGBM's own defaults."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_estimators=n_rounds,
        n_jobs=1,
        random_state=seed,
        verbose=-1,
        deterministic=True,
        force_row_wise=True,
    )


def categorised(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its text columns as categories, as LightGBM needs them.

    Examples
    --------
    >>> frame = pd.DataFrame({"job": ["cook", "clerk"], "age": [30, 40]})
    >>> [str(kind) for kind in categorised(frame).dtypes]
    ['category', 'int64']
    """
    words = table.select_dtypes(exclude=["number", "bool"]).columns
    return table.astype(dict.fromkeys(words, "category"))


def train_candidates(
    X: pd.DataFrame,
    y: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    criterion: str = "demographic_parity",
    sensitive_at_prediction: bool = True,
    n_rounds: int = 200,
    random_state: Any = None,
    progress: Callable[[str], None] | None = None,
) -> list[Candidate]:
    """Train plain trees, and the models of several methods along their curves.

    The baseline, plain trees, comes first. `categorised` turns text columns into the categories
    that LightGBM needs. Methods that need the group are left out if it may not be used at
    prediction. ``progress`` is called with the name of each method before it trains.
    """
    step = progress or (lambda name: None)
    given = {
        "criterion": criterion,
        "sensitive_at_prediction": sensitive_at_prediction,
        "random_state": random_state,
    }
    step(BASELINE)
    plain = _ftm("marginal", 0.0)(n_rounds, fairness_weight=0.0, **given)
    found = [Candidate(BASELINE, "", plain.fit(X, y, sensitive_features=sensitive_features))]
    for name, method in METHODS.items():
        if method.needs_group and not sensitive_at_prediction:
            continue
        step(name)
        path = fairness_path(
            X,
            y,
            sensitive_features=sensitive_features,
            fairness_weights=method.weights,
            estimator=method.make(n_rounds, **given),
        )
        found += [
            Candidate(name, f"{method.word} {weight:g}", model)
            for weight, model in zip(method.weights, path.models, strict=True)
        ]
    return found
