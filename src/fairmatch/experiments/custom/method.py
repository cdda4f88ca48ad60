"""Any scikit-learn-like classifier as a method."""

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone

from fairmatch.exceptions import InputError
from fairmatch.experiments.runs.methods import Curve, Method, Scorer
from fairmatch.experiments.runs.problem import Problem
from fairmatch.tables.arrays import FloatArray


def own_method(
    name: str,
    estimator: str,
    *,
    weight_parameter: str | None = None,
    weights: Sequence[float] = (),
    settings: Mapping[str, Any] | None = None,
) -> Method:
    """Return a method that trains a scikit-learn-like classifier.

    Parameters
    ----------
    name : str
        Name of the method.
    estimator : str
        Import path of the class, as ``"package.module:Class"``.
    weight_parameter : str, optional
        The parameter that trades accuracy for fairness. Without it the method has one model.
    weights : sequence of float
        Values of that parameter, from the most accurate to the fairest.
    settings : mapping, optional
        The other parameters of the class.

    Returns
    -------
    Method

    Raises
    ------
    InputError
        If the class cannot be imported or made, or the weights do not go with the parameter.

    Notes
    -----
    If ``fit`` takes ``sensitive_features``, the groups are passed to it, and to the prediction if
    that takes them too. Otherwise the group is the last column of X.

    Examples
    --------
    >>> from fairmatch.experiments.custom.method import own_method
    >>> own_method("forest", "sklearn.ensemble:RandomForestClassifier").weights
    (0.0,)
    """
    if (weight_parameter is None) != (not weights):
        raise InputError(
            f"Method {name!r} has {'weights' if weights else 'weight_parameter'} alone. Name "
            "weight_parameter and weights together, or neither."
        )
    if weight_parameter == "random_state":
        raise InputError(
            f"Method {name!r}: weight_parameter is 'random_state', which is set to the seed of the "
            "split. Name the parameter that trades accuracy for fairness."
        )
    kind = _find_class(name, estimator)
    try:
        plain = clone(kind(**(settings or {})))
        if weight_parameter is not None:
            clone(plain).set_params(**{weight_parameter: weights[0]})
    except Exception as error:  # a researcher's class may fail in any way
        raise InputError(
            f"Method {name!r}: {estimator} cannot be made with these parameters "
            f"({type(error).__name__}: {error}). Correct its settings."
        ) from error
    for needed in ("fit", "predict"):
        if not hasattr(plain, needed):
            raise InputError(
                f"Method {name!r}: {estimator} has no method {needed!r}. Name a classifier with "
                "fit and predict."
            )

    def fit(problem: Problem, given: Mapping[str, Any], seed: int) -> Curve:
        scorers, training = [], []
        for weight in given["weights"]:
            model = clone(plain)
            chosen = {} if weight_parameter is None else {weight_parameter: weight}
            if "random_state" in model.get_params():
                chosen["random_state"] = seed
            try:
                scorer, scores = _fit_any(model.set_params(**chosen), problem)
            except Exception as error:
                error.add_note(f"{type(model).__name__} with {chosen}")
                raise
            scorers.append(scorer)
            training.append(scores)
        return Curve(scorers, training)

    return Method(
        name,
        tuple(weights) or (0.0,),  # not converted: the parameter may need whole numbers
        fit,
        schedule="own",
        settings={
            "estimator": estimator,
            "weight_parameter": weight_parameter,
            # As text, because 1 and 1.0 may differ, as they do in scikit-learn's forests.
            "parameters": json.dumps([settings or {}, weights], sort_keys=True),
        },
    )


def _find_class(name: str, path: str) -> Any:
    module, _, attribute = path.partition(":")
    if module.endswith(".py"):
        raise InputError(f"Method {name!r}: write {path!r} without '.py'.")
    try:
        return getattr(import_module(module), attribute)
    except (ModuleNotFoundError, AttributeError, ValueError) as error:
        raise InputError(
            f"Method {name!r}: there is no {path!r} ({error}). Write it as "
            "'package.module:Class', and make sure that the package is installed or in the "
            "working folder."
        ) from error
    except (Exception, SystemExit) as error:  # a researcher's module may fail in any way
        raise InputError(
            f"Method {name!r}: the module of {path!r} cannot be imported "
            f"({type(error).__name__}: {error}). Correct the module."
        ) from error


def _fit_any(model: Any, problem: Problem) -> tuple[Scorer, FloatArray]:
    split = problem.split

    def takes_groups(method: str) -> bool:
        return "sensitive_features" in signature(getattr(model, method)).parameters

    apart = takes_groups("fit")

    def rows(features: FloatArray, groups: Any) -> FloatArray:
        return features if apart else np.column_stack([features, groups])

    def scores(features: FloatArray, groups: Any) -> FloatArray:
        how = "predict_proba" if hasattr(model, "predict_proba") else "predict"
        given = {"sensitive_features": groups} if apart and takes_groups(how) else {}
        found = getattr(model, how)(rows(features, groups), **given)
        return _as_scores(found, f"{type(model).__name__}.{how}", len(features))

    given = {"sensitive_features": split.group_train} if apart else {}
    model.fit(rows(split.X_train, split.group_train), split.y_train, **given)
    return lambda groups: scores(split.X_test, groups), scores(split.X_train, split.group_train)


def _as_scores(given: Any, giver: str, n_rows: int) -> FloatArray:
    """Return the scores of Y = 1 from the output of a classifier."""
    found = np.asarray(given)
    try:
        numbers = found.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"{giver} gave values that are not all numbers; the first is {found.ravel()[0]!r}. "
            "Labels are 0 or 1, as fit receives them. Return these."
        ) from None
    if found.shape not in ((n_rows,), (n_rows, 2)):
        raise InputError(
            f"{giver} gave an array of shape {found.shape} for {n_rows} rows. Return two columns, "
            "for the labels 0 and 1, or one number for each row."
        )
    scores = numbers if numbers.ndim == 1 else numbers[:, 1]
    if (outside := ~((scores >= 0.0) & (scores <= 1.0))).any():  # also finds NaN
        raise InputError(
            f"{giver} gave {scores[outside][0]:g} for a row. Scores lie in [0, 1], and decisions "
            "are 0 or 1. Return these."
        )
    return scores
