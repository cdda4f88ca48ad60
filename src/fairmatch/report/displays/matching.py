"""A display of the distance between people whom models treat alike, one curve per model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairmatch.auditing.sample import draw_rows
from fairmatch.auditing.weighting import RowWeights
from fairmatch.exceptions import InputError
from fairmatch.matching.curve import POSITION_SLACK, MatchingCurve, matching_curve
from fairmatch.report.charts.curves import curve_chart
from fairmatch.report.displays.display import Display, named, scores_of
from fairmatch.report.wording import told_apart
from fairmatch.tables.arrays import read_scores, read_weights
from fairmatch.tables.encoder import TableEncoder
from fairmatch.tables.groups import read_groups


class MatchingDisplay(Display):
    """The curve of each model: how near matched people are, against their mean score gap.

    Parameters
    ----------
    curves : mapping of str to MatchingCurve
        Name of each model to its curve.

    Examples
    --------
    >>> from fairmatch.report import MatchingDisplay
    >>> shown = MatchingDisplay.from_predictions(
    ...     None, [0.1, 0.5, 0.4, 1.0], sensitive_features=[0, 0, 1, 1],
    ...     X=[[0.0], [1.0], [1.0], [0.0]])
    >>> round(shown.curves["model"].position(0.0), 2)
    2.0
    """

    def __init__(self, curves: Mapping[str, MatchingCurve]) -> None:
        self.curves = dict(curves)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike,
        sample_weight: ArrayLike | None = None,
        n_sample: int = 1000,
        random_state: int = 0,
        pos_label: Any = 1,
        name: str | None = None,
        backend: str = "altair",
        ax: Any = None,
    ) -> MatchingDisplay:
        """Compute the curves of fitted classifiers on a table and draw them.

        Parameters
        ----------
        estimator : fitted classifier, or mapping of names to them
            The model or models that score the rows.
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit. Distances are taken over the same columns.
        y : ignored
            May be None.
        sensitive_features : array-like of shape (n_rows,), or a table of several attributes
            Group of every row.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        n_sample : int, default=1000
            Number of people drawn from each group; a smaller group is taken whole.
        random_state : int, default=0
            Seed of the sample.
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
        MatchingDisplay
        """
        models = named(estimator, name)
        return cls.from_predictions(
            y,
            scores_of(models, X, sensitive_features, pos_label),
            sensitive_features=sensitive_features,
            X=X,
            sample_weight=sample_weight,
            n_sample=n_sample,
            random_state=random_state,
            backend=backend,
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike | None,
        y_score: Any,
        *,
        sensitive_features: ArrayLike,
        X: Any,
        sample_weight: ArrayLike | None = None,
        n_sample: int = 1000,
        random_state: int = 0,
        name: str | None = None,
        backend: str = "altair",
        ax: Any = None,
    ) -> MatchingDisplay:
        """Compute the curves of scores and draw them.

        Parameters
        ----------
        y_true : ignored
            May be None.
        y_score : array-like of shape (n_rows,), or mapping of names to them
            Scores in [0, 1], or 0/1 decisions.
        sensitive_features : array-like of shape (n_rows,), or a table of several attributes
            Group of every row.
        X : table or array of shape (n_rows, n_columns)
            Features in which distances are measured. They are encoded as in the audit, with
            numbers scaled to [0, 1].
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        n_sample : int, default=1000
            Number of people drawn from each group; a smaller group is taken whole.
        random_state : int, default=0
            Seed of the sample.
        name : str, optional
            Name of a single model; by default "model".
        backend : {"altair", "matplotlib"}, default="altair"
            The library that draws the picture.
        ax : matplotlib Axes, optional
            Axes to draw on. They imply matplotlib.

        Returns
        -------
        MatchingDisplay
        """
        if X is None:
            raise InputError("X is None, and distances need the features of people. Pass X.")
        groups = read_groups(sensitive_features)
        generator = np.random.default_rng(random_state)
        weights = RowWeights(len(groups), read_weights(sample_weight, n_rows=len(groups)))
        rows, drawn = draw_rows(groups, weights, n_sample, generator)
        features = TableEncoder(missing="encode").fit_transform(X)[rows]
        labels = [groups.labels[code] for code in groups.codes[rows]]
        curves = {
            own: matching_curve(
                read_scores(scores, n_rows=len(groups))[rows],
                labels,
                features,
                sample_weight=drawn.values,
            )
            for own, scores in named(y_score, name).items()
        }
        return cls(curves).plot(backend=backend, ax=ax)

    def _drawn(self) -> list[str]:
        return list(self.curves)

    def _rows(self) -> list[dict[str, Any]]:
        names = told_apart(self.curves)
        return [
            {
                "series": names[own],
                "gap": float(curve.least_gap + slack),
                "slack": float(slack),
                "position": position,
            }
            for own, curve in self.curves.items()
            for slack in [*curve.slack.tolist(), POSITION_SLACK]
            if (position := curve.position(slack)) is not None
        ]

    def _draw_altair(self) -> Any:
        return curve_chart(self._rows())

    def _draw_matplotlib(self, ax: Any) -> None:
        rows = self._rows()
        for name in dict.fromkeys(row["series"] for row in rows):
            own = sorted((row for row in rows if row["series"] == name), key=lambda r: r["gap"])
            (line,) = ax.plot([r["gap"] for r in own], [r["position"] for r in own], label=name)
            mark = next(row for row in own if row["slack"] == POSITION_SLACK)
            ax.plot(mark["gap"], mark["position"], "o", color=line.get_color())
        ax.set_xlim(left=0.0)
        ax.set_ylim(bottom=0.0)
        ax.set_xlabel("mean score gap of matched people")
        ax.set_ylabel("distance: 0 = nearest, 1 = random")
        if len(self.curves) > 1:
            ax.legend()
