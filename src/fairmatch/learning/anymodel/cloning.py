"""What scikit-learn asks of a model that holds another model."""

from typing import Any, TypeVar

from sklearn.base import clone
from sklearn.utils import get_tags

Model = TypeVar("Model")


def clone_prefit(model: Any) -> Any:
    """Return an unfitted copy of a wrapper; a model that came fitted is kept, not copied.

    A copy of a fitted model would be unfitted, and so of no use to a wrapper that takes it as it
    is.
    """
    kept = {"estimator"} if model.prefit else set()
    parameters = {
        name: value if name in kept else clone(value, safe=False)
        for name, value in model.get_params(deep=False).items()
    }
    copied = type(model)(**parameters)
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
