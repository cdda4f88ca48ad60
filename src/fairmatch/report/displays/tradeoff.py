"""A display of accuracy against a gap, for paths of models or for any models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fairmatch.exceptions import InputError
from fairmatch.learning.curve import FairnessPath
from fairmatch.measures import MEASURES, gap_table
from fairmatch.measures.table import read_measure
from fairmatch.report.charts.tradeoff import model_chart, paths_chart, tradeoff_chart
from fairmatch.report.displays.display import Display, named, scores_of
from fairmatch.tables.arrays import read_labels, read_scores, read_weights


class TradeoffDisplay(Display):
    """Accuracy against a gap: one point per model.

    Parameters
    ----------
    points : DataFrame
        One row per model, with ``accuracy`` and the gap. A column ``fairness_weight`` makes it a
        path, whose points are joined. A column ``model`` names the models. With both columns,
        there are several paths.
    gap : str, default="demographic_parity_gap"
        The gap on the horizontal axis.

    Examples
    --------
    >>> from fairmatch.report import TradeoffDisplay
    >>> shown = TradeoffDisplay.from_predictions(
    ...     [1, 0, 1, 1], {"first": [0.9, 0.2, 0.6, 0.7], "second": [0.9, 0.6, 0.6, 0.7]},
    ...     sensitive_features=["a", "a", "b", "b"])
    >>> shown.points[["model", "accuracy", "demographic_parity_gap"]].values.tolist()
    [['first', 1.0, 0.5], ['second', 0.75, 0.0]]
    """

    def __init__(self, points: pd.DataFrame, gap: str = "demographic_parity_gap") -> None:
        self.points = points
        self.gap = read_measure(gap, "gap").name
        needed = {"accuracy", self.gap}
        if missing := sorted(needed - {*points.columns}):
            raise InputError(
                f"points has no column {missing[0]!r}. Pass a table of FairnessPath.curve, or use "
                "from_predictions."
            )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: ArrayLike,
        gap: str = "demographic_parity_gap",
        sample_weight: ArrayLike | None = None,
        pos_label: Any = 1,
        name: str | None = None,
        backend: str = "altair",
        ax: Any = None,
    ) -> TradeoffDisplay:
        """Measure a path, or fitted classifiers, on a table and draw accuracy against a gap.

        Parameters
        ----------
        estimator : FairnessPath, fitted classifier, or mapping of names to them
            The model or models that score the rows.
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        y : array-like of shape (n_rows,)
            Labels.
        sensitive_features : array-like of shape (n_rows,), or a table of several attributes
            Group of every row.
        gap : str, default="demographic_parity_gap"
            Name of a measure in `fairmatch.measures.MEASURES`.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        pos_label : default=1
            The label that counts as positive.
        name : str, optional
            Name of a single model; by default the name of its class.
        backend : {"altair", "matplotlib"}, default="altair"
            The library that draws the picture.
        ax : matplotlib Axes, optional
            Axes to draw on. They imply matplotlib.

        Returns
        -------
        TradeoffDisplay
        """
        if isinstance(estimator, FairnessPath):
            curve = estimator.curve(
                X, y, sensitive_features=sensitive_features, sample_weight=sample_weight
            )
            return cls(curve, gap).plot(backend=backend, ax=ax)
        models = named(estimator, name)
        if any(isinstance(model, FairnessPath) for model in models.values()):
            parts = [
                cls.from_estimator(
                    model,
                    X,
                    y,
                    sensitive_features=sensitive_features,
                    gap=gap,
                    sample_weight=sample_weight,
                    pos_label=pos_label,
                    name=own,
                ).points.assign(model=own)
                for own, model in models.items()
            ]
            return cls(pd.concat(parts, ignore_index=True), gap).plot(backend=backend, ax=ax)
        return cls.from_predictions(
            y,
            scores_of(models, X, sensitive_features, pos_label),
            sensitive_features=sensitive_features,
            gap=gap,
            sample_weight=sample_weight,
            pos_label=pos_label,
            backend=backend,
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: Any,
        *,
        sensitive_features: ArrayLike,
        gap: str = "demographic_parity_gap",
        sample_weight: ArrayLike | None = None,
        pos_label: Any = 1,
        threshold: float = 0.5,
        name: str | None = None,
        backend: str = "altair",
        ax: Any = None,
    ) -> TradeoffDisplay:
        """Draw accuracy against a gap from scores.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,)
            Labels.
        y_score : array-like of shape (n_rows,), or mapping of names to them
            Scores in [0, 1], or 0/1 decisions.
        sensitive_features : array-like of shape (n_rows,), or a table of several attributes
            Group of every row.
        gap : str, default="demographic_parity_gap"
            Name of a measure in `fairmatch.measures.MEASURES`.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        pos_label : default=1
            The label that counts as positive.
        threshold : float, default=0.5
            Scores at or above it are selected.
        name : str, optional
            Name of a single model; by default "model".
        backend : {"altair", "matplotlib"}, default="altair"
            The library that draws the picture.
        ax : matplotlib Axes, optional
            Axes to draw on. They imply matplotlib.

        Returns
        -------
        TradeoffDisplay
        """
        measure = read_measure(gap, "gap")
        if measure.needs_coupling:
            raise InputError(
                f"gap={gap!r} compares matched people, and scores alone have no matching. Choose "
                "another gap, or pass a table of FairnessPath.curve to TradeoffDisplay."
            )
        rows = []
        for own, given in named(y_score, name).items():
            scores = read_scores(given)
            right = (scores >= threshold) == read_labels(
                y_true, n_rows=len(scores), pos_label=pos_label
            )
            gaps = gap_table(
                y_true if measure.needs_labels else None,
                scores,
                sensitive_features=sensitive_features,
                sample_weight=sample_weight,
                threshold=threshold,
                pos_label=pos_label,
            )
            weights = read_weights(sample_weight, n_rows=len(scores))
            rows.append(
                {"model": own, "accuracy": float(np.average(right, weights=weights)), **gaps}
            )
        return cls(pd.DataFrame(rows), gap).plot(backend=backend, ax=ax)

    def _drawn(self) -> list[str]:
        if "model" in self.points:
            return list(dict.fromkeys(self.points["model"]))
        return [f"weight {weight:g}" for weight in self.points["fairness_weight"]]

    def _draw_altair(self) -> Any:
        if "fairness_weight" in self.points and "model" in self.points:
            return paths_chart(self.points, gap=self.gap)
        if "fairness_weight" in self.points:
            return tradeoff_chart(self.points, gap=self.gap)
        return model_chart(self.points, gap=self.gap)

    def _draw_matplotlib(self, ax: Any) -> None:
        points = self.points
        if "fairness_weight" in points and "model" in points:
            for own, part in points.groupby("model", sort=False):
                ordered = part.sort_values("fairness_weight")
                ax.plot(ordered[self.gap], ordered["accuracy"], "o-", label=own)
            ax.legend()
        elif "fairness_weight" in points:
            ordered = points.sort_values("fairness_weight")
            ax.plot(ordered[self.gap], ordered["accuracy"], "o-")
        else:
            ax.plot(points[self.gap], points["accuracy"], "o")
            for row in points.to_dict("records"):
                at = row[self.gap], row["accuracy"]
                ax.annotate(row["model"], at, xytext=(6, 4), textcoords="offset points")
        ax.set_xlim(left=0.0)
        ax.set_xlabel(f"{MEASURES[self.gap].title} ({MEASURES[self.gap].symbol})")
        ax.set_ylabel("accuracy")
