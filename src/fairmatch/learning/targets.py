"""What is predicted: labels of two classes, read and checked, with the loss that learns them."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from fairmatch.exceptions import LabelError
from fairmatch.learning.loss import LOGISTIC, Loss
from fairmatch.learning.saving import plain_label
from fairmatch.learning.state import classes_from
from fairmatch.tables.arrays import FloatArray, read_column, read_labels

Read = tuple[FloatArray, dict[str, Any]]


class Target(Protocol):
    """What an estimator predicts. What it learns of the target is shown by the estimator."""

    @property
    def loss(self) -> Loss:
        """What compares predictions with the target."""

    def read(self, y: ArrayLike, sample_weight: ArrayLike | None) -> Read:
        """Return the numbers to learn, and what the estimator then knows of the target."""

    def labels(self, model: Any, y: ArrayLike) -> FloatArray:
        """Return the target of new rows as the numbers that a fitted model has learned."""

    def facts(self, model: Any) -> dict[str, Any]:
        """Return what a model knows of the target, as it is saved."""

    def known(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Return what a saved model knows of the target, or raise where it is damaged."""


@dataclass(frozen=True)
class TwoClasses:
    """Labels of two classes, of which the greater one is the positive."""

    loss: Loss = LOGISTIC

    def read(self, y: ArrayLike, sample_weight: ArrayLike | None) -> Read:
        """Return 1 for the positive class and 0 for the other, and the classes."""
        classes, labels = read_classes(y)
        return labels, {"classes_": classes}

    def labels(self, model: Any, y: ArrayLike) -> FloatArray:
        """Return 1 where a label is the positive class of a model, 0 elsewhere."""
        return np.asarray(read_column(y, "y") == model.classes_[1], dtype=np.float64)

    def facts(self, model: Any) -> dict[str, Any]:
        """Return the classes."""
        return {"classes": [plain_label(label) for label in model.classes_]}

    def known(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Return the classes, or raise where they are not two."""
        return {"classes_": classes_from(facts["classes"])}


def read_classes(y: ArrayLike) -> tuple[NDArray[Any], FloatArray]:
    """Return the two classes of labels, and 1 for the greater, 0 for the other."""
    try:
        labels: NDArray[Any] = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
    except (TypeError, ValueError) as error:
        raise LabelError(f"y cannot be used as labels: {error}") from error
    classes = np.unique(labels)
    if len(classes) != 2:
        shown = ", ".join(map(str, classes[:5]))
        if len(classes) < 2:
            raise LabelError(f"y must hold two classes, and all of it is one class: {shown}.")
        # The first sentences are the words that scikit-learn asks for.
        raise LabelError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(labels)}. y must hold two classes, got {len(classes)}: {shown}."
        )
    positive = read_labels(labels, n_rows=len(labels), pos_label=classes[1], name="y")
    return classes, positive.astype(np.float64)
