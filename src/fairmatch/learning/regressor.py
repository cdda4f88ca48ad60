"""The base class of regressors: predictions in units of the target, and their errors."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from fairmatch.exceptions import InputError
from fairmatch.learning.base import FairEstimator
from fairmatch.learning.choice import GapChoice
from fairmatch.learning.realchoice import RealGapChoice
from fairmatch.learning.targets import RealNumbers, Target, read_targets
from fairmatch.learning.weights import REGRESSION_WEIGHTS
from fairmatch.matching.coupling import Coupling
from fairmatch.measures.real import real_gaps
from fairmatch.tables.arrays import FloatArray, read_weights


class FairRegressor(RegressorMixin, FairEstimator):  # type: ignore[misc]
    """A regressor of one real target.

    A subclass names what learns (`_family`) and what is added to the loss (`_compare`).

    Attributes
    ----------
    groups_ : tuple
        Labels of the groups.
    target_mean_, target_scale_ : float
        Mean and standard deviation of the target in the training rows.
    fairness_weight_ : float
        The fairness weight that the model was trained with.
    """

    __metadata_request__predict: ClassVar = {"sensitive_features": True}
    __metadata_request__score: ClassVar = {"sensitive_features": True}

    _target: ClassVar[Target] = RealNumbers()
    _choice: ClassVar[type[GapChoice]] = RealGapChoice
    _curve_weights: ClassVar[tuple[float, ...]] = REGRESSION_WEIGHTS
    # A real target has no classes, so everybody is compared.
    criterion: ClassVar[str] = "demographic_parity"

    @property
    def _gap_measure(self) -> str:
        """The gap that ``max_gap`` bounds by default."""
        return "mean_parity_gap"

    def predict(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> FloatArray:
        """Return the prediction of every row, in units of the target.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row, unless it is a column of X or the model does not need it.

        Returns
        -------
        array of shape (n_rows,)
            The predictions.
        """
        return self._scores(self._inputs(X, sensitive_features))

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
    ) -> float:
        r"""Return the coefficient of determination, :math:`R^2`, on a table.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        y : array-like of shape (n_rows,)
            Their targets.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row, unless it is a column of X or the model does not need it.

        Returns
        -------
        float
            1 for perfect predictions; NaN if the targets are constant.
        """
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return _errors(predicted, y, sample_weight)["r2"]

    def _scores(self, inputs: Any) -> FloatArray:
        """Return the predictions of rows that `_inputs` has read, in units of the target."""
        return np.asarray(self.target_mean_ + self.target_scale_ * super()._scores(inputs))

    def _measured(
        self,
        scores: FloatArray,
        y: ArrayLike,
        *,
        groups: Any,
        sample_weight: ArrayLike | None,
        coupling: Coupling | None,
    ) -> dict[str, float]:
        """Return errors and gaps of the predictions of some rows."""
        gaps = real_gaps(
            scores,
            sensitive_features=groups,
            sample_weight=sample_weight,
            coupling=coupling,
            scale=self.target_scale_,
        )
        return {**_errors(scores, y, sample_weight), **gaps}


def _errors(
    predicted: FloatArray, y: ArrayLike, sample_weight: ArrayLike | None
) -> dict[str, float]:
    r"""Return root mean squared error, mean absolute error, :math:`R^2` and the spread."""
    wanted = read_targets(y)
    if len(wanted) != len(predicted):
        raise InputError(
            f"y has {len(wanted)} rows, X has {len(predicted)}. Pass one number for every row."
        )
    weights = read_weights(sample_weight, n_rows=len(wanted))
    errors = predicted - wanted
    squared = float(np.average(errors**2, weights=weights))
    mean = np.average(wanted, weights=weights)
    variance = float(np.average((wanted - mean) ** 2, weights=weights))
    centre = np.average(predicted, weights=weights)
    return {
        "rmse": squared**0.5,
        "mae": float(np.average(np.abs(errors), weights=weights)),
        "r2": 1.0 - squared / variance if variance > 0.0 else float("nan"),
        "spread": float(np.average((predicted - centre) ** 2, weights=weights)) ** 0.5,
    }
