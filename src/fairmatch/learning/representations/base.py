"""What every fair representation here is to scikit-learn: groups in, rows out.

No learning happens in this file, and no torch is needed.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fairmatch.learning.grouped import GroupEstimator, check_lengths
from fairmatch.matching.coupling import Coupling
from fairmatch.tables.arrays import FloatArray


class GroupTransformer(TransformerMixin, GroupEstimator):  # type: ignore[misc]
    """A transformer that knows the two groups of its rows.

    Subclasses have the parameters ``sensitive_column`` and ``encoder``, say which parameter is
    their weight (`_weight_name`), how to fit (`_fit_path`) and how to represent rows
    (`_represent`).
    """

    __metadata_request__transform: ClassVar = {"sensitive_features": True}
    # Weights of a whole curve.
    default_weights: ClassVar[tuple[float, ...]]

    @abstractmethod
    def _fit_path(
        self,
        X: Any,
        y: ArrayLike | None,
        fairness_weights: Sequence[float],
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> list[Self]:
        """Fit one transformer per weight, sharing what they can."""

    @abstractmethod
    def _represent(self, features: FloatArray, codes: FloatArray | None) -> FloatArray:
        """Represent encoded rows, given their groups' codes where they are used."""

    @staticmethod
    def _represent_path(
        path: Sequence[Any], features: FloatArray, codes: FloatArray | None
    ) -> FloatArray:
        """Represent the same rows by every transformer of a path: (n_weights, n_rows, n_out)."""
        return np.stack([one._represent(features, codes) for one in path])

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> Self:
        """Learn a representation of a table.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Features, of pandas, polars, pyarrow or NumPy.
        y : array-like of shape (n_rows,), optional
            Labels of two classes, for representations that are learned with them.
        sensitive_features : array-like of shape (n_rows,), optional
            Group of every row, unless ``sensitive_column`` says where it is in X.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        coupling : Coupling, optional
            A ready matching of these rows, for representations that match.

        Returns
        -------
        self
        """
        (fitted,) = self._fit_path(
            X,
            y,
            [getattr(self, self._weight_name)],
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            coupling=coupling,
        )
        self._adopt(fitted)
        return self

    def transform(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> FloatArray:
        """Represent rows.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        sensitive_features : array-like of shape (n_rows,), optional
            Group of every row, unless it travels in X or is not needed.

        Returns
        -------
        array of shape (n_rows, n_out)
            Numbers; the groups' column is not among them.
        """
        check_is_fitted(self)
        self._check_columns(X)
        return self._represent(*self._encoded(X, sensitive_features))

    def fit_transform(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> FloatArray:
        """Learn a representation of a table, and represent its rows.

        Parameters are those of `fit`, the result is that of `transform`.
        """
        self.fit(
            X,
            y,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            coupling=coupling,
        )
        return self.transform(X, sensitive_features=sensitive_features)

    def _encoded(
        self, X: Any, sensitive_features: ArrayLike | None
    ) -> tuple[FloatArray, FloatArray | None]:
        """Turn new rows into numbers and codes of their groups, where those are used."""
        if not self.sensitive_at_prediction:
            return self._features(self._without_groups(X)), None
        given, sensitive = self._features_and_groups(X, sensitive_features, "transform")
        features, codes = self._features(given), self._group_codes(sensitive)
        check_lengths(features, codes)
        return features, codes
