"""What scikit-learn asks of a model that holds another model."""

from copy import deepcopy
from typing import Any

from sklearn.base import clone
from sklearn.utils import get_tags


def fresh(estimator: Any) -> Any:
    """Return a copy of somebody's estimator that has not been fitted, or will be fitted anew.

    scikit-learn's ``clone`` refuses constructors that copy what they are given, as CatBoost's does
    with a list of columns, and learners without ``get_params``. These are copied whole.
    """
    try:
        return clone(estimator)
    except (RuntimeError, TypeError):
        return deepcopy(estimator)


def clone_wrapper(model: Any) -> Any:
    """Return an unfitted copy of a wrapper; a model that came fitted is kept, not copied.

    A copy of a fitted model would be unfitted, and so of no use to a wrapper that takes it as it
    is.
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
    """Return the tags of a wrapper: tables are what the wrapped model takes."""
    try:
        inner = get_tags(estimator)
    except (AttributeError, TypeError):
        return tags  # no estimator: fitting says so
    for name in ("allow_nan", "categorical", "string"):
        setattr(tags.input_tags, name, getattr(inner.input_tags, name))
    return tags
