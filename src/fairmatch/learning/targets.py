"""Targets, read and checked: two classes or a real number, with the loss of each."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from fairmatch.exceptions import InputError, LabelError, ModelFileError
from fairmatch.learning.loss import LOGISTIC, SQUARED, Loss
from fairmatch.learning.saving import plain_label
from fairmatch.learning.state import classes_from
from fairmatch.tables.arrays import (
    FloatArray,
    read_column,
    read_labels,
    read_numbers,
    read_weights,
)

Read = tuple[FloatArray, dict[str, Any]]

# Whole numbers of more different values than this are no classes.
_MOST_CLASSES = 10


class Target(Protocol):
    """What an estimator predicts."""

    @property
    def loss(self) -> Loss:
        """The loss, which compares predictions with the target."""

    def read(self, y: ArrayLike, sample_weight: ArrayLike | None) -> Read:
        """Return the numbers to learn, and the attributes that describe the target."""

    def labels(self, model: Any, y: ArrayLike) -> FloatArray:
        """Return the target of new rows on the scale that a fitted model has learned."""

    def facts(self, model: Any) -> dict[str, Any]:
        """Return the facts about the target to save, as plain values."""

    def known(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Return the attributes that describe the target of a saved model; raise if damaged."""


@dataclass(frozen=True)
class TwoClasses:
    """Labels of two classes; the greater one is positive."""

    loss: Loss = LOGISTIC

    def read(self, y: ArrayLike, sample_weight: ArrayLike | None) -> Read:
        """Return 1 for the positive class and 0 for the other, and the classes."""
        classes, labels = read_classes(y)
        return labels, {"classes_": classes}

    def labels(self, model: Any, y: ArrayLike) -> FloatArray:
        """Return 1 for labels of the model's positive class, and 0 for others."""
        return np.asarray(read_column(y, "y") == model.classes_[1], dtype=np.float64)

    def facts(self, model: Any) -> dict[str, Any]:
        """Return the classes."""
        return {"classes": [plain_label(label) for label in model.classes_]}

    def known(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Return the classes; raise unless there are two."""
        return {"classes_": classes_from(facts["classes"])}


@dataclass(frozen=True)
class RealNumbers:
    """Real numbers, learned in standard deviations from their mean.

    The sizes of the loss and of the penalty then do not depend on the unit of the target. A
    fairness weight means the same for hours as for euros.
    """

    loss: Loss = SQUARED

    def read(self, y: ArrayLike, sample_weight: ArrayLike | None) -> Read:
        """Return the target in standard deviations, and its mean and standard deviation."""
        numbers = read_targets(y)
        weights = read_weights(sample_weight, n_rows=len(numbers))
        if weights is not None and weights.sum() <= 0.0:
            raise InputError(
                "sample_weight sums to zero, so there is nothing to learn from. Pass positive "
                "weights, or leave sample_weight out."
            )
        mean = np.average(numbers, weights=weights)
        scale = np.sqrt(np.average((numbers - mean) ** 2, weights=weights))
        if len(numbers) == 1:
            raise LabelError("y has one sample, and learning needs at least two. Pass more rows.")
        if not scale > 1e-12 * np.abs(numbers).max():
            raise LabelError(
                f"y is constant ({mean:g}), so there is nothing to learn. Choose a "
                "target that differs between people."
            )
        known = {"target_mean_": float(mean), "target_scale_": float(scale)}
        return (numbers - mean) / scale, known

    def labels(self, model: Any, y: ArrayLike) -> FloatArray:
        """Return targets in standard deviations from the mean, as a fitted model knows them."""
        return np.asarray((read_targets(y) - model.target_mean_) / model.target_scale_)

    def facts(self, model: Any) -> dict[str, Any]:
        """Return the mean and the standard deviation."""
        return {"target": {"mean": model.target_mean_, "scale": model.target_scale_}}

    def known(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Return the mean and the standard deviation; raise unless they are usable numbers."""
        mean, scale = (facts["target"][name] for name in ("mean", "scale"))
        numbers = [v for v in (mean, scale) if type(v) in (int, float) and np.isfinite(v)]
        if len(numbers) < 2 or scale <= 0.0:
            raise ModelFileError("The file is damaged: target must have a mean and a scale.")
        return {"target_mean_": float(mean), "target_scale_": float(scale)}


def read_targets(y: ArrayLike) -> FloatArray:
    """Return the numbers to predict; raise unless all of them are finite."""
    if y is None:
        raise LabelError(
            "A regressor requires y to be passed, but the target y is None. Pass a number for "
            "every row of X."
        )
    try:
        column = column_or_1d(y, warn=True)
        if column.dtype.kind == "c":
            # The first words are those that scikit-learn asks for.
            raise InputError(
                f"Complex data not supported: y has dtype {column.dtype}. Pass real numbers."
            )
        if column.dtype.kind == "O":
            column = column.astype(np.float64)
        numbers = read_numbers(column, "y")
    except (TypeError, ValueError) as error:
        raise LabelError(
            f"y cannot be used as numbers ({error}). Pass one real number for every row."
        ) from error
    if not (bad := ~np.isfinite(numbers)).any():
        return numbers
    raise LabelError(
        f"y has {int(bad.sum())} entries that are NaN or infinite (the first in row "
        f"{int(np.argmax(bad))}, counted from 0). Every row needs a finite number. Leave those "
        "rows out."
    )


def read_classes(y: ArrayLike) -> tuple[NDArray[Any], FloatArray]:
    """Return the two classes, and for every row 1 if it has the greater one, else 0."""
    if y is None:
        # The first sentence has the words that scikit-learn asks for.
        raise LabelError(
            "A classifier requires y to be passed, but the target y is None. Pass a label for "
            "every row of X."
        )
    try:
        labels: NDArray[Any] = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
    except (TypeError, ValueError) as error:
        what = str(error).rstrip(". ")
        raise LabelError(
            f"y cannot be used as labels: {what}. y must hold one of two classes for every row. "
            "Leave out rows without a label, and use a regressor for numbers."
        ) from error
    classes = np.unique(labels)
    if len(classes) != 2:
        shown = ", ".join(map(str, classes[:5]))
        if len(classes) < 2:
            raise LabelError(
                f"y must hold two classes, but it holds only one class: {shown}. Pass rows of both "
                "classes."
            )
        advice = "Join classes until two are left, or train one model per class against the rest."
        if labels.dtype.kind in "iuf" and len(classes) > _MOST_CLASSES:
            advice = "Numbers are predicted by a regressor, such as FTMBoostingRegressor."
        # The first sentences are the words that scikit-learn asks for.
        raise LabelError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(labels)}. y must hold two classes, got {len(classes)}: {shown}. "
            f"{advice}"
        )
    positive = read_labels(labels, n_rows=len(labels), pos_label=classes[1], name="y")
    return classes, positive.astype(np.float64)
