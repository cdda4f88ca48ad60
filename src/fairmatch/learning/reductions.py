"""The reductions algorithm of Agarwal et al., as fairlearn has it, with fairmatch's interface."""

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from fairmatch.exceptions import CouplingError, InputError
from fairmatch.learning.base import GroupClassifier
from fairmatch.learning.grouped import TrainingRows, with_groups
from fairmatch.matching.coupling import Coupling
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.encoder import TableEncoder
from fairmatch.tables.parameters import check_count, check_number


class ExponentiatedGradientClassifier(GroupClassifier):
    r"""The reductions approach of Agarwal et al. (2018), made deterministic.

    A thin wrapper of fairlearn's ``ExponentiatedGradient`` with demographic parity, around any
    scikit-learn classifier. The algorithm returns several classifiers with weights, of which one
    is drawn at random for every prediction. Here their decisions are averaged instead:
    ``predict_proba`` gives the probability that the drawn classifier accepts, and ``predict``
    compares it with one half.

    Parameters
    ----------
    estimator : classifier, optional
        What is reduced to; its ``fit`` must take ``sample_weight``. By default scikit-learn's
        ``LogisticRegression``.
    eps : float, default=0.01
        Allowed violation: how far a group's acceptance rate may be from that of all rows.
    max_iter : int, default=50
        Greatest number of rounds.
    sensitive_column, sensitive_at_prediction
        As in `FTMClassifier`.
    encoder : "table", "columns", None or a transformer, default="table"
        As in `FTMClassifier`; with ``"columns"`` the estimator sees the columns as
        `FTMBoostingClassifier` does: categories as pandas categories, missing values as NaN. It
        must take both, as LightGBM's ``LGBMClassifier`` does.

    Attributes
    ----------
    classes_ : array of shape (2,)
        The labels; the second is the positive one.
    groups_ : tuple
        The two groups.
    predictors_ : list
        The classifiers with positive weight.
    predictor_weights_ : array of shape (n_predictors,)
        Their weights, which sum to 1.
    n_iter_ : int
        Number of rounds.

    Notes
    -----
    The averaging gives up the guarantee for decisions. The algorithm bounds the acceptance rates
    of the random classifier on the training rows, so it bounds the mean parity gap of these
    scores; what is left after the comparison with one half may violate it by any amount.

    There is no fairness weight, so `fairness_path` refuses this estimator: fit one per ``eps`` and
    put them into a ``FairnessPath`` (docs/boosting.md).

    Examples
    --------
    >>> from fairmatch import ExponentiatedGradientClassifier
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = ExponentiatedGradientClassifier(eps=0.02)
    >>> model = model.fit(german.X, german.y, sensitive_features=german.sensitive_features)
    >>> model.predict(german.X[:3], sensitive_features=german.sensitive_features[:3]).shape
    (3,)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        eps: float = 0.01,
        max_iter: int = 50,
        sensitive_column: str | int | None = None,
        sensitive_at_prediction: bool = True,
        encoder: Any = "table",
    ) -> None:
        self.estimator = estimator
        self.eps = eps
        self.max_iter = max_iter
        self.sensitive_column = sensitive_column
        self.sensitive_at_prediction = sensitive_at_prediction
        self.encoder = encoder

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
        sample_weight, coupling : None
            The algorithm weighs the rows itself and matches nobody: an error if given.

        Returns
        -------
        self
        """
        if sample_weight is not None:
            raise InputError(
                "ExponentiatedGradientClassifier cannot use sample_weight: the algorithm gives "
                "the rows weights of its own."
            )
        if coupling is not None:
            raise CouplingError(f"{type(self).__name__} does not match people: leave coupling out.")
        self._check_parameters()
        fitted: Self = clone(self)
        rows = fitted._read_training(X, y, sensitive_features, None)
        fitted._fit_encoder(rows)
        codes = rows.groups.codes.astype(np.float64) if self.sensitive_at_prediction else None
        inputs = fitted._inputs(rows.features, codes)
        algorithm = ExponentiatedGradient(
            LogisticRegression() if self.estimator is None else self.estimator,
            DemographicParity(difference_bound=self.eps),
            eps=self.eps,
            max_iter=self.max_iter,
        )
        with warnings.catch_warnings():
            # fairlearn still uses ways of pandas that are on their way out; not the caller's doing.
            warnings.simplefilter("ignore", DeprecationWarning)
            algorithm.fit(inputs, rows.labels.astype(np.intp), sensitive_features=rows.groups.codes)
        weights = algorithm.weights_.sort_index().to_numpy()
        used = np.flatnonzero(weights > 0.0)
        self._adopt(
            fitted,
            predictors_=[algorithm.predictors_[index] for index in used],
            predictor_weights_=weights[used] / weights[used].sum(),
            n_iter_=int(algorithm.last_iter_) + 1,
        )
        return self

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
        raise InputError(
            "ExponentiatedGradientClassifier has no fairness weight, so it has no path. Fit one "
            "for each eps."
        )

    def _check_parameters(self) -> None:
        check_number("eps", self.eps, "(0, inf]")
        check_count("max_iter", self.max_iter)
        chosen = self.estimator
        if chosen is not None and (isinstance(chosen, type) or not hasattr(chosen, "fit")):
            raise InputError(f"estimator must be a classifier or None, got {chosen!r}.")

    def _fit_encoder(self, rows: TrainingRows) -> FloatArray:
        if not self._takes_columns():
            return super()._fit_encoder(rows)
        self.encoder_ = TableEncoder(missing="encode")
        return np.asarray(self.encoder_.fit_transform(rows.features))

    def _inputs(self, features: Any, codes: FloatArray | None) -> Any:
        if not self._takes_columns() or self.encoder_ is None:
            return super()._inputs(features, codes)
        inputs = pd.DataFrame(with_groups(self.encoder_.to_codes(features), codes))
        inputs.columns = [f"column_{index}" for index in inputs.columns]
        for name in inputs.columns[self.encoder_.categorical_positions]:
            inputs[name] = inputs[name].astype("category")
        return inputs

    def _takes_columns(self) -> bool:
        return isinstance(self.encoder, str) and self.encoder == "columns"

    def _positive_scores(self, features: Any, codes: FloatArray | None) -> FloatArray:
        inputs = self._inputs(features, codes)
        decisions = np.stack([predictor.predict(inputs) for predictor in self.predictors_])
        # The mean of decisions that all accept must not exceed 1 by rounding.
        scores: FloatArray = np.clip(self.predictor_weights_ @ decisions, 0.0, 1.0)
        return scores
