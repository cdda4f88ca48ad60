"""The models that a search for alternatives tries: a table of methods with their settings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from numpy.typing import ArrayLike

import fairmatch
from fairmatch.learning.path import fairness_path

BASELINE = "plain trees"


@dataclass(frozen=True)
class Candidate:
    """A model that the search tries.

    Attributes
    ----------
    method, setting : str
        The method that trained it, and its weight in words; empty for the baseline.
    model : estimator
        The fitted model.
    """

    method: str
    setting: str
    model: Any

    @property
    def name(self) -> str:
        """Name of the model: its method and its setting."""
        return f"{self.method}, {self.setting}" if self.setting else self.method


@dataclass(frozen=True)
class SearchMethod:
    """A way to train models along a curve.

    Attributes
    ----------
    make : callable
        Returns an estimator for a number of trees and further parameters.
    word : str
        Name of the weight, for the models' names.
    weights : tuple of float
        The weights to try.
    needs_group : bool
        Whether the models need the group to predict.
    """

    make: Callable[..., Any]
    word: str
    weights: tuple[float, ...]
    needs_group: bool = False


def _ftm(transport: str, warmup: float) -> Callable[..., Any]:
    return lambda n_rounds, **given: fairmatch.FTMBoostingClassifier(
        transport, n_rounds=n_rounds, warmup=warmup, **given
    )


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

    Parameters
    ----------
    X : DataFrame
        Features; `categorised` turns text into the categories that LightGBM needs.
    y : array-like of shape (n_rows,)
        Labels of two classes.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    criterion : str, default="demographic_parity"
        Who is compared: "demographic_parity", "equal_opportunity" or "equalized_odds".
    sensitive_at_prediction : bool, default=True
        Whether models may use the group to predict. With False, methods that need it are left out.
    n_rounds : int, default=200
        Number of trees.
    random_state : int, optional
        Seed of every method.
    progress : callable, optional
        Called with the name of each method before it trains.

    Returns
    -------
    list of Candidate
        The baseline, plain trees, comes first.
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
