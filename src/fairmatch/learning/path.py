"""A fairness path: one model per fairness weight, trained all at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fairmatch.exceptions import InputError, LabelError
from fairmatch.learning.base import GroupClassifier, accuracy
from fairmatch.learning.weights import PAPER_WEIGHTS
from fairmatch.matching.coupling import Coupling
from fairmatch.measures import MEASURES, Measure, gap_table
from fairmatch.tables.arrays import FloatArray, read_weights


@dataclass(frozen=True, eq=False)
class FairnessPath:
    """Models along the trade-off between accuracy and fairness.

    Attributes
    ----------
    weights : array of shape (n_models,)
        The fairness weights.
    models : list
        Fitted estimators, one per weight.
    """

    weights: FloatArray
    models: list[Any]

    def __len__(self) -> int:
        return len(self.models)

    def curve(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> pd.DataFrame:
        """Measure every model on a table.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            As in the estimators' ``score``.
        coupling : Coupling, optional
            A matching of these rows, for the matched gap.

        Returns
        -------
        DataFrame
            One row per weight: the weight, the accuracy, the share of people who are accepted and
            every gap of `fairmatch.measures`; NaN for gaps of error rates where a group has no
            rows of a class.
        """
        rows = []
        for weight, model in zip(self.weights, self.models, strict=True):
            positive = model.predict_proba(X, sensitive_features=sensitive_features)[:, 1]
            _, sensitive = model._features_and_groups(X, sensitive_features)
            given = {"sensitive_features": sensitive, "sample_weight": sample_weight}
            gaps = gap_table(None, positive, coupling=coupling, **given)
            for name, measure in MEASURES.items():
                if measure.needs_labels:
                    gaps[name] = _measured(measure, y, positive, model.classes_[1], given)
            weights = read_weights(sample_weight, n_rows=len(positive))
            accepted = positive >= 0.5
            decided = model.classes_[accepted.astype(np.intp)]
            told = {
                "fairness_weight": float(weight),
                "accuracy": accuracy(decided, y, sample_weight),
                "acceptance_rate": float(np.average(accepted, weights=weights)),
            }
            rows.append(told | gaps)
        return pd.DataFrame(rows)


def _measured(
    measure: Measure, y: ArrayLike, scores: FloatArray, positive: Any, given: dict[str, Any]
) -> float:
    """Take a gap of error rates, or NaN where a group has no rows of the class."""
    try:
        return measure.function(y, scores, pos_label=positive, **given)
    except LabelError:
        return float("nan")


def fairness_path(
    X: Any,
    y: ArrayLike,
    *,
    sensitive_features: ArrayLike | None = None,
    fairness_weights: Sequence[float] | None = None,
    estimator: Any = None,
    sample_weight: ArrayLike | None = None,
    coupling: Coupling | None = None,
) -> FairnessPath:
    r"""Train one model per fairness weight, all in one pass.

    The matching does not depend on the model, so it is made once; the models start from the same
    weights and see the same batches, as one tensor program. So each model is what a fit with its
    weight alone gives, but for weight 0: alone it needs no pairs and sees plain batches.

    Parameters
    ----------
    X : table or array of shape (n_rows, n_columns)
        Features.
    y : array-like of shape (n_rows,)
        Labels of two classes.
    sensitive_features : array-like of shape (n_rows,), optional
        Group of every row, unless the estimator's ``sensitive_column`` says where it is.
    fairness_weights : sequence of float, optional
        The paper's lambda; by default the paper's 18, or the representation's own of a
        `RepresentationClassifier`.
    estimator : estimator, optional
        What to train, with all its settings but the fairness weight: any of fairmatch's
        classifiers. By default ``FTMClassifier()``.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    coupling : Coupling, optional
        A ready matching of these rows.

    Returns
    -------
    FairnessPath

    Examples
    --------
    >>> from fairmatch import FTMClassifier, fairness_path
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> path = fairness_path(
    ...     german.X, german.y, sensitive_features=german.sensitive_features,
    ...     fairness_weights=[0.1, 10.0], estimator=FTMClassifier(epochs=5, random_state=0))
    >>> curve = path.curve(german.X, german.y, sensitive_features=german.sensitive_features)
    >>> bool(curve.mean_parity_gap[1] < curve.mean_parity_gap[0])
    True
    """
    if estimator is None:
        from fairmatch.learning.networks.classifiers import FTMClassifier

        estimator = FTMClassifier()
    if not isinstance(estimator, GroupClassifier):
        wrapped = f" Wrap it: RepresentationClassifier({type(estimator).__name__}(...))."
        raise InputError(
            f"estimator must be one of fairmatch's classifiers, got {estimator!r}."
            f"{wrapped if hasattr(estimator, 'transform') else ''}"
        )
    if fairness_weights is None:
        fairness_weights = getattr(estimator, "default_weights", PAPER_WEIGHTS)
    models = estimator._fit_path(
        X,
        y,
        fairness_weights,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        coupling=coupling,
    )
    return FairnessPath(np.asarray(fairness_weights, dtype=np.float64), models)
