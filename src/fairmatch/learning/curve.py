"""Models along the trade-off between accuracy and fairness, and their measures on a table."""

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fairmatch.exceptions import InputError, LabelError
from fairmatch.matching.coupling import Coupling
from fairmatch.measures import MEASURES, Measure, gap_table
from fairmatch.tables.arrays import FloatArray, read_column, read_weights


@dataclass(frozen=True, eq=False)
class FairnessPath:
    """Models along the trade-off between accuracy and fairness.

    Attributes
    ----------
    weights : array of shape (n_models,)
        The fairness weights.
    models : list
        The fitted estimators, one per weight.
    """

    weights: FloatArray
    models: list[Any]

    def __len__(self) -> int:
        return len(self.models)

    def named(self) -> dict[str, Any]:
        """Return the models by name, in the form that `fairmatch.compare_models` takes."""
        weights = (f"fairness weight {weight:g}" for weight in self.weights)
        return dict(zip(weights, self.models, strict=True))

    def __repr__(self) -> str:
        kind = type(self.models[0]).__name__ if self.models else "model"
        span = f", weights {min(self.weights):g} to {max(self.weights):g}" if len(self) else ""
        return f"<FairnessPath of {len(self)} models ({kind}){span}>"

    def _repr_html_(self) -> str:
        """Return the weights and the models as a table, for a notebook."""
        rows = "".join(
            f"<tr><td>{weight:g}</td><td>{escape(type(model).__name__)}</td></tr>"
            for weight, model in zip(self.weights.tolist(), self.models, strict=True)
        )
        return (
            f"<div>{escape(repr(self))}<table><thead><tr><th>fairness weight</th><th>model</th>"
            f"</tr></thead><tbody>{rows}</tbody></table></div>"
        )

    def scores(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> list[FloatArray]:
        """Return the scores of every model.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row, unless it is a column of X.

        Returns
        -------
        list of arrays of shape (n_rows,)
            For every model, the probability of the positive class, or a regressor's prediction.
        """
        # Models that were trained together share a reader, so it reads the table only once.
        read: dict[int, Any] = {}
        found = []
        for model in self.models:
            key = id(model.reader_)
            if key not in read:
                given = sensitive_features if model.reader_.at_prediction else None
                read[key] = model._inputs(X, given)
            found.append(model._scores(read[key]))
        return found

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
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        y : array-like of shape (n_rows,)
            Their labels.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row, unless it is a column of X.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        coupling : Coupling, optional
            A matching of these rows, which the matched gap needs.

        Returns
        -------
        DataFrame
            One row per weight. For classifiers the columns are the weight, the accuracy, the share
            of people who are accepted and every gap of `fairmatch.measures`. A gap of error rates
            is NaN where a group has no rows of a class. For regressors the columns are the weight,
            the errors, and the gaps of `fairmatch.measures.real`. These are in units of the
            target, and in units of its standard deviation.
        """
        scored = self.scores(X, sensitive_features=sensitive_features)
        reader = self.models[0].reader_
        groups = reader.labels(reader.split(X, sensitive_features, "curve")[1])
        rows = [
            model._measured(
                scores, y, groups=groups, sample_weight=sample_weight, coupling=coupling
            )
            for model, scores in zip(self.models, scored, strict=True)
        ]
        weights = [{"fairness_weight": float(weight)} for weight in self.weights]
        return pd.DataFrame([told | row for told, row in zip(weights, rows, strict=True)])


def measured(
    classes: NDArray[Any],
    scores: FloatArray,
    y: ArrayLike,
    *,
    groups: Any,
    sample_weight: ArrayLike | None,
    coupling: Coupling | None,
) -> dict[str, float]:
    """Return accuracy, acceptance rate and all gaps of one model's scores."""
    given = {"sensitive_features": groups, "sample_weight": sample_weight}
    gaps = gap_table(None, scores, coupling=coupling, **given)
    for name, measure in MEASURES.items():
        if measure.needs_labels:
            gaps[name] = _gap_or_nan(measure, y, scores, classes[1], given)
    accepted = scores >= 0.5
    labels = read_column(y, "y")
    if len(labels) != len(scores):
        raise InputError(
            f"y has {len(labels)} rows, X has {len(scores)}. Pass one label for every row."
        )
    weights = read_weights(sample_weight, n_rows=len(scores))
    right = classes[accepted.astype(np.intp)] == labels
    return {
        "accuracy": float(np.average(right, weights=weights)),
        "acceptance_rate": float(np.average(accepted, weights=weights)),
        **gaps,
    }


def _gap_or_nan(
    measure: Measure, y: ArrayLike, scores: FloatArray, positive: Any, given: dict[str, Any]
) -> float:
    """Return a gap of error rates, or NaN if a group has no rows of the class."""
    try:
        return measure.function(y, scores, pos_label=positive, **given)
    except LabelError:
        return float("nan")
