"""The base class of classifiers: probabilities, decisions and accuracy."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin

from fairmatch.exceptions import InputError
from fairmatch.learning.base import FairEstimator
from fairmatch.learning.curve import measured
from fairmatch.learning.targets import Target, TwoClasses
from fairmatch.matching.coupling import Coupling
from fairmatch.tables.arrays import FloatArray, read_column, read_weights


class FairClassifier(ClassifierMixin, FairEstimator):  # type: ignore[misc]
    """A classifier of two classes.

    A subclass names what learns (`_family`) and what is added to the loss (`_compare`).

    Attributes
    ----------
    classes_ : array of shape (2,)
        The two labels; the second is the positive one.
    groups_ : tuple
        Labels of the groups.
    fairness_weight_ : float
        The fairness weight that the model was trained with.
    """

    __metadata_request__predict: ClassVar = {"sensitive_features": True}
    __metadata_request__predict_proba: ClassVar = {"sensitive_features": True}
    __metadata_request__score: ClassVar = {"sensitive_features": True}

    _target: ClassVar[Target] = TwoClasses()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def predict_proba(
        self, X: Any, *, sensitive_features: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Return the probability of each class.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row, unless it is a column of X or the model does not need it.

        Returns
        -------
        array of shape (n_rows, 2)
            The probabilities, with columns in the order of ``classes_``.
        """
        positive = self._scores(self._inputs(X, sensitive_features))
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> NDArray[Any]:
        """Return the positive class where its probability is at least one half.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row, unless it is a column of X or the model does not need it.

        Returns
        -------
        array of shape (n_rows,)
            One of ``classes_`` for every row.
        """
        positive = self.predict_proba(X, sensitive_features=sensitive_features)[:, 1]
        decided: NDArray[Any] = self.classes_[(positive >= 0.5).astype(np.intp)]
        return decided

    def _measured(
        self,
        scores: FloatArray,
        y: ArrayLike,
        *,
        groups: Any,
        sample_weight: ArrayLike | None,
        coupling: Coupling | None,
    ) -> dict[str, float]:
        """Return accuracy, acceptance rate and gaps of the scores of some rows."""
        return measured(
            self.classes_,
            scores,
            y,
            groups=groups,
            sample_weight=sample_weight,
            coupling=coupling,
        )

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
    ) -> float:
        """Return the accuracy on a table.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        y : array-like of shape (n_rows,)
            Their labels.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row, unless it is a column of X or the model does not need it.

        Returns
        -------
        float
            The weighted share of right decisions.
        """
        decided = self.predict(X, sensitive_features=sensitive_features)
        labels = read_column(y, "y")
        if len(labels) != len(decided):
            raise InputError(
                f"y has {len(labels)} rows, X has {len(decided)}. Pass one label for every row."
            )
        weights = read_weights(sample_weight, n_rows=len(labels))
        return float(np.average(decided == labels, weights=weights))
