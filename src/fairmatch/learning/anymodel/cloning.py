"""Copies and tags of models that hold another model, as scikit-learn needs them."""

from copy import deepcopy
from typing import Any

from sklearn.base import clone
from sklearn.utils import get_tags


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
