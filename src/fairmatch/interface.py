"""What every classifier here is to scikit-learn: groups in, labels in, decisions out.

No learning happens in this file, and no torch is needed: the network learners and the tree
learners stand on it alike.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from fairmatch.columns import split_column
from fairmatch.coupling import Coupling, IndexArray
from fairmatch.encoding import TableEncoder
from fairmatch.exceptions import GroupError, InputError, LabelError
from fairmatch.inputs import (
    FloatArray,
    Groups,
    read_column,
    read_features,
    read_groups,
    read_labels,
    read_weights,
)
from fairmatch.staircase import rows_with_mass


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


class GroupClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of two classes that knows the two groups of its rows.

    Subclasses have the parameters ``fairness_weight``, ``sensitive_column``,
    ``sensitive_at_prediction`` and ``encoder``, and say how to fit (`_fit_path`) and how to score
    (`_positive_scores`).
    """

    # Requested by default, so that meta-estimators pass the groups on where routing is enabled.
    __metadata_request__fit: ClassVar = {"sensitive_features": True}
    __metadata_request__predict: ClassVar = {"sensitive_features": True}
    __metadata_request__predict_proba: ClassVar = {"sensitive_features": True}
    __metadata_request__score: ClassVar = {"sensitive_features": True}

    fairness_weight: float
    sensitive_column: str | int | None
    sensitive_at_prediction: bool
    encoder: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = getattr(self.encoder, "missing", None) == "encode"
        return tags

    @abstractmethod
    def _fit_path(
        self,
        X: Any,
        y: ArrayLike,
        fairness_weights: Sequence[float],
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> list[Self]:
        """Fit one estimator per weight, sharing what they can."""

    @abstractmethod
    def _positive_scores(self, features: Any, codes: FloatArray | None) -> FloatArray:
        """Score rows, given their groups' codes where the model uses them."""

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> Self:
        """Learn from a table.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Features, of pandas, polars, pyarrow or NumPy.
        y : array-like of shape (n_rows,)
            Labels of two classes; the greater one is the positive.
        sensitive_features : array-like of shape (n_rows,), optional
            Group of every row, unless ``sensitive_column`` says where it is in X.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        coupling : Coupling, optional
            A ready matching of these rows, for methods that match.

        Returns
        -------
        self
        """
        (model,) = self._fit_path(
            X,
            y,
            [self.fairness_weight],
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            coupling=coupling,
        )
        self._adopt(model)
        return self

    def _adopt(self, model: "GroupClassifier", **more: Any) -> None:
        """Take over what another estimator has learned, and forget what was learned before."""
        for name in _learned(self):
            delattr(self, name)
        self.__dict__.update(_learned(model), **more)

    def predict_proba(
        self, X: Any, *, sensitive_features: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Give the probability of each class.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        sensitive_features : array-like of shape (n_rows,), optional
            Group of every row, unless it travels in X or is not needed.

        Returns
        -------
        array of shape (n_rows, 2)
            Columns in the order of ``classes_``.
        """
        check_is_fitted(self)
        self._check_columns(X)
        if self.sensitive_at_prediction:
            features, sensitive = self._features_and_groups(X, sensitive_features, "predict")
            positive = self._positive_scores(features, self._group_codes(sensitive))
        else:
            positive = self._positive_scores(self._without_groups(X), None)
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> NDArray[Any]:
        """Give the positive class where its probability is at least one half.

        Parameters are those of `predict_proba`.
        """
        positive = self.predict_proba(X, sensitive_features=sensitive_features)[:, 1]
        decided: NDArray[Any] = self.classes_[(positive >= 0.5).astype(np.intp)]
        return decided

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
    ) -> float:
        """Give the accuracy on a table.

        Parameters are those of `predict`, with labels and weights.
        """
        decided = self.predict(X, sensitive_features=sensitive_features)
        return accuracy(decided, y, sample_weight)

    def save(self, path: str | Path) -> Path:
        """Write the model to a folder, without pickling; `fairmatch.load` reads it back."""
        from fairmatch.persistence import save_model

        return save_model(self, path)

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
        groups = read_groups(sensitive)
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
            # The first sentences are the words that scikit-learn asks for.
            raise LabelError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(labels)}. y must hold two classes, got {len(self.classes_)} "
                f"class(es): {shown}."
            )
        return labels

    def _fit_encoder(self, rows: TrainingRows) -> FloatArray:
        """Learn how to turn the features into numbers, and do it."""
        if isinstance(self.encoder, str) and self.encoder != "table":
            raise InputError(
                f"encoder must be 'table', None or a transformer, got {self.encoder!r}."
            )
        encoder = TableEncoder() if isinstance(self.encoder, str) else self.encoder
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
        expected = self.n_features_in_ - (self.sensitive_column is not None)
        if array.shape[1] != expected:
            raise InputError(
                f"X has {array.shape[1]} features, but {type(self).__name__} is expecting "
                f"{expected} features as input."
            )
        return array

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
                    f"{without if where == 'predict' else ''}."
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


def _learned(model: GroupClassifier) -> dict[str, Any]:
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


def with_groups(inputs: FloatArray, codes: FloatArray | None) -> FloatArray:
    """Put the groups beside the numbers, where the model uses them."""
    if codes is None:
        return inputs
    if len(codes) != len(inputs):
        raise InputError(f"sensitive_features has {len(codes)} rows, X has {len(inputs)}.")
    return np.column_stack([inputs, codes])


def check_fairness_weights(fairness_weights: Sequence[float]) -> None:
    """Raise unless the weights are a list of numbers that a penalty can have."""
    weights = np.asarray(fairness_weights, dtype=np.float64)
    if weights.ndim != 1 or len(weights) == 0:
        raise InputError(f"fairness_weights must be a list of numbers, got {weights.tolist()}.")
    if not (np.isfinite(weights).all() and (weights >= 0.0).all()):
        raise InputError(
            f"Fairness weights must be finite and not negative, got {weights.tolist()}."
        )


def accuracy(decided: NDArray[Any], y: ArrayLike, sample_weight: ArrayLike | None) -> float:
    """Share of decisions that equal the labels."""
    labels = read_column(y, "y")
    if len(labels) != len(decided):
        raise InputError(f"y has {len(labels)} rows, X has {len(decided)}.")
    weights = read_weights(sample_weight, n_rows=len(labels))
    return float(np.average(decided == labels, weights=weights))


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """Turn what scikit-learn's users give into one seed, leaving global generators alone."""
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(int(random_state.randint(2**31 - 1)))
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(int(random_state.integers(2**63 - 1)))
    if not isinstance(random_state, int | np.integer) or random_state < 0:
        raise InputError(f"random_state must be a whole number from 0, got {random_state!r}.")
    return np.random.SeedSequence(int(random_state))
