"""What every estimator here shares: tables in, groups in, labels in, each from where it was put.

No learning happens in this file, and no torch is needed: classifiers and representations, networks
and trees stand on it alike.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d, validate_data

from fairmatch.exceptions import GroupError, InputError, LabelError
from fairmatch.matching.coupling import IndexArray
from fairmatch.matching.parts import rows_with_mass
from fairmatch.tables.arrays import (
    FloatArray,
    read_column,
    read_features,
    read_labels,
    read_weights,
)
from fairmatch.tables.columns import split_column
from fairmatch.tables.encoder import TableEncoder
from fairmatch.tables.groups import Groups, read_groups


@dataclass(frozen=True)
class TrainingRows:
    """Rows to learn from, checked.

    Attributes
    ----------
    features : table or array
        As the caller gave them, without the groups' column.
    labels : array of shape (n_rows,)
        0 or 1.
    groups : Groups
        The two groups.
    weights : array of shape (n_rows,), or None
        Weight of every row, where given.
    """

    features: Any
    labels: FloatArray
    groups: Groups
    weights: FloatArray | None

    @property
    def mass(self) -> FloatArray:
        """Weight of every row; 1 where none was given."""
        return np.ones(len(self.labels)) if self.weights is None else self.weights

    @property
    def shares(self) -> FloatArray:
        """Share of each group in the mass."""
        sums = np.array([self.mass[self.groups.is_group(code)].sum() for code in (0, 1)])
        shares: FloatArray = sums / sums.sum()
        return shares

    def take(self, index: IndexArray, features: Any) -> "TrainingRows":
        """Give some of the rows, with these features."""
        groups = replace(self.groups, codes=self.groups.codes[index])
        weights = None if self.weights is None else self.weights[index]
        return TrainingRows(features, self.labels[index], groups, weights)


class GroupEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that knows the two groups of its rows.

    Subclasses have the parameters ``sensitive_column``, ``sensitive_at_prediction`` and
    ``encoder``.
    """

    # Requested by default, so that meta-estimators pass the groups on where routing is enabled.
    __metadata_request__fit: ClassVar = {"sensitive_features": True}

    sensitive_column: str | int | None
    sensitive_at_prediction: bool
    encoder: Any
    # Whether it can be fitted such that new rows need no groups.
    _may_lack_groups: bool = True
    # Name of the parameter that trades fairness for accuracy or faithfulness.
    _weight_name: ClassVar[str] = "fairness_weight"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = getattr(self.encoder, "missing", None) == "encode"
        return tags

    def save(self, path: str | Path) -> Path:
        """Write the model to a folder, without pickling; `fairmatch.load` reads it back."""
        from fairmatch.learning.saving import save_model

        return save_model(self, path)

    def _fitted(self, weight: float, learned: "GroupEstimator", **more: Any) -> Self:
        """Give a copy with this weight that has learned what another estimator has, and more."""
        model: Self = clone(self)
        # An equal weight stays as it was given, which may be an int.
        if weight != getattr(model, model._weight_name):
            model._set_weight(float(weight))
        model._adopt(learned, **more)
        return model

    def _set_weight(self, weight: float) -> None:
        self.set_params(**{self._weight_name: weight})

    def _adopt(self, model: "GroupEstimator", **more: Any) -> None:
        """Take over what another estimator has learned, and forget what was learned before."""
        for name in _learned(self):
            delattr(self, name)
        self.__dict__.update(_learned(model), **more)

    def _read_training(
        self,
        X: Any,
        y: ArrayLike,
        sensitive_features: ArrayLike | None,
        sample_weight: ArrayLike | None,
    ) -> TrainingRows:
        features, sensitive = self._features_and_groups(X, sensitive_features, "fit")
        self._remember_columns(X)
        labels = self._read_classes(y)
        groups = read_groups(sensitive).only_two(type(self).__name__)
        if len(labels) != len(groups):
            raise InputError(f"y has {len(labels)} samples, sensitive_features has {len(groups)}.")
        self.groups_ = groups.labels
        positive = read_labels(labels, n_rows=len(labels), pos_label=self.classes_[1], name="y")
        weights = read_weights(sample_weight, n_rows=len(labels))
        rows_with_mass(groups, weights)
        return TrainingRows(features, positive.astype(np.float64), groups, weights)

    def _read_classes(self, y: ArrayLike) -> NDArray[Any]:
        try:
            labels: NDArray[Any] = column_or_1d(y, warn=True)
            assert_all_finite(labels, input_name="y")
            check_classification_targets(labels)
        except (TypeError, ValueError) as error:
            raise LabelError(f"y cannot be used as labels: {error}") from error
        self.classes_ = np.unique(labels)
        if len(self.classes_) != 2:
            shown = ", ".join(map(str, self.classes_[:5]))
            if len(self.classes_) < 2:
                raise LabelError(f"y must hold two classes, and all of it is one class: {shown}.")
            # The first sentences are the words that scikit-learn asks for.
            raise LabelError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(labels)}. y must hold two classes, got {len(self.classes_)}: "
                f"{shown}."
            )
        return labels

    def _fit_encoder(self, rows: TrainingRows) -> FloatArray:
        """Learn how to turn the features into numbers, and do it."""
        encoder = self.encoder
        if isinstance(encoder, str) and encoder == "table":
            encoder = TableEncoder()
        is_transformer = hasattr(encoder, "fit_transform") and not isinstance(encoder, type)
        if not (encoder is None or is_transformer):
            raise InputError(f"encoder must be 'table', None or a transformer, got {encoder!r}.")
        self.encoder_ = None if encoder is None else clone(encoder)
        features = rows.features
        if self.encoder_ is not None:
            features = self.encoder_.fit_transform(features)
        return read_features(features, n_rows=len(rows.labels))

    def _features(self, features: Any) -> FloatArray:
        """Turn the features of new rows into numbers."""
        if self.encoder_ is not None:
            return read_features(self.encoder_.transform(features))
        array = read_features(features)
        if array.shape[1] != self._n_encoded:
            raise InputError(
                f"X has {array.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self._n_encoded} features as input."
            )
        return array

    @property
    def _n_encoded(self) -> int:
        """How many numbers the features of a row become."""
        if self.encoder_ is not None:
            return len(self.encoder_.get_feature_names_out())
        return self.n_features_in_ - (self.sensitive_column is not None)

    def _inputs(self, features: Any, codes: FloatArray | None) -> FloatArray:
        """Put numbers and groups of new rows side by side, as the model has them."""
        return with_groups(self._features(features), codes)

    def _check_columns(self, X: Any) -> None:
        """Compare names with those in fit, as scikit-learn does; encoders do it themselves."""
        if self.encoder_ is None and _width(X) == self.n_features_in_:
            validate_data(self, X, skip_check_array=True, reset=False)

    def _features_and_groups(
        self, X: Any, sensitive_features: ArrayLike | None, where: str = "fit"
    ) -> tuple[Any, ArrayLike]:
        """Take the groups from where the caller put them."""
        if self.sensitive_column is None:
            if sensitive_features is None:
                without = "; to predict without it, fit with sensitive_at_prediction=False"
                raise InputError(
                    f"{type(self).__name__}.{where} needs the group of every row. Pass "
                    "sensitive_features=, or name the column of X that holds it in the "
                    "constructor's sensitive_column="
                    f"{without if where != 'fit' and self._may_lack_groups else ''}."
                )
            return X, sensitive_features
        if sensitive_features is not None:
            raise InputError(
                "sensitive_features was given although sensitive_column="
                f"{self.sensitive_column!r} says that the groups are in X. Give one of the two."
            )
        return split_column(X, self.sensitive_column)

    def _without_groups(self, X: Any) -> Any:
        """Drop the groups' column where it is there; a model that needs no groups may lack it."""
        if self.sensitive_column is None or _width(X) < self.n_features_in_:
            return X
        return split_column(X, self.sensitive_column)[0]

    def _group_codes(self, sensitive: ArrayLike) -> FloatArray:
        column = read_column(sensitive, "sensitive_features")
        is_target = np.asarray(column == self.groups_[1], dtype=bool)
        strange = ~(is_target | np.asarray(column == self.groups_[0], dtype=bool))
        if strange.any():
            raise GroupError(
                f"sensitive_features holds {column[strange].tolist()[0]!r}; the model knows the "
                f"groups {self.groups_[0]!r} and {self.groups_[1]!r}."
            )
        return is_target.astype(np.float64)

    def _remember_columns(self, X: Any) -> None:
        names = _column_names(X)
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.n_features_in_ = _width(X)


def _column_names(X: Any) -> list[Any] | None:
    names = getattr(X, "column_names", getattr(X, "columns", None))
    return None if names is None else list(names)


def _width(X: Any) -> int:
    names = _column_names(X)
    shape = np.asarray(X).shape if names is None else (0, len(names))
    return int(shape[1]) if len(shape) == 2 else 1


def _learned(model: GroupEstimator) -> dict[str, Any]:
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


def with_groups(inputs: FloatArray, codes: FloatArray | None) -> FloatArray:
    """Put the groups beside the numbers, where the model uses them."""
    check_lengths(inputs, codes)
    return inputs if codes is None else np.column_stack([inputs, codes])


def check_lengths(inputs: FloatArray, codes: FloatArray | None) -> None:
    """Raise unless there is a group for every row, where the model uses them."""
    if codes is not None and len(codes) != len(inputs):
        raise InputError(f"sensitive_features has {len(codes)} rows, X has {len(inputs)}.")
