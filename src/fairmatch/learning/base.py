"""What every classifier here is to scikit-learn: groups in, labels in, decisions out.

No learning happens in this file, and no torch is needed: the network learners and the tree
learners stand on it alike.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from fairmatch.exceptions import InputError
from fairmatch.learning.grouped import GroupEstimator
from fairmatch.matching.coupling import Coupling
from fairmatch.tables.arrays import FloatArray, read_column, read_weights
from fairmatch.tables.parameters import check_count


class GroupClassifier(ClassifierMixin, GroupEstimator):  # type: ignore[misc]
    """A classifier of two classes that knows the two groups of its rows.

    Subclasses have the parameters ``fairness_weight``, ``sensitive_column``,
    ``sensitive_at_prediction`` and ``encoder``, and say how to fit (`_fit_path`) and how to score
    (`_positive_scores`).
    """

    __metadata_request__predict: ClassVar = {"sensitive_features": True}
    __metadata_request__predict_proba: ClassVar = {"sensitive_features": True}
    __metadata_request__score: ClassVar = {"sensitive_features": True}

    fairness_weight: float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
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
    check_count("random_state", random_state, 0, optional=True)
    return np.random.SeedSequence(int(random_state))
