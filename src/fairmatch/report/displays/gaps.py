"""A display of the gaps of models, with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from fairmatch.auditing.assembly import audit
from fairmatch.auditing.facts import Audit
from fairmatch.measures.real import IN_UNITS
from fairmatch.report.charts.intervals import interval_chart
from fairmatch.report.displays.display import Display, named, scores_of
from fairmatch.report.wording import gap_title, shown_name


class GapDisplay(Display):
    """The gaps between groups under one or several models, with their intervals.

    Parameters
    ----------
    audits : sequence of Audit
        One per model, with different names.

    Examples
    --------
    >>> from fairmatch.report import GapDisplay
    >>> shown = GapDisplay.from_predictions(
    ...     None, [0.9, 0.2, 0.6, 0.7] * 20, sensitive_features=["a", "a", "b", "b"] * 20)
    >>> shown.audits[0].gap("demographic_parity_gap").value
    0.5
    """

    def __init__(self, audits: Sequence[Audit]) -> None:
        self.audits = list(audits)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None,
        *,
        sensitive_features: ArrayLike,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = 1,
        name: str | None = None,
        backend: str = "altair",
        ax: Any = None,
        **settings: Any,
    ) -> GapDisplay:
        """Audit fitted classifiers on a table and draw their gaps.

        Parameters
        ----------
        estimator : fitted classifier, or mapping of names to them
            The model or models that score the rows.
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        y : array-like of shape (n_rows,), or None
            Labels, for the gaps of error rates.
        sensitive_features : array-like of shape (n_rows,), or a table of several attributes
            Group of every row.
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
        **settings
            Further arguments of `fairmatch.audit`: threshold, confidence, n_resamples, and others.

        Returns
        -------
        GapDisplay
        """
        models = named(estimator, name)
        return cls.from_predictions(
            y,
            scores_of(models, X, sensitive_features, pos_label),
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            pos_label=pos_label,
            backend=backend,
            ax=ax,
            **settings,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike | None,
        y_score: Any,
        *,
        sensitive_features: ArrayLike,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = 1,
        name: str | None = None,
        backend: str = "altair",
        ax: Any = None,
        **settings: Any,
    ) -> GapDisplay:
        """Audit scores and draw their gaps.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,), or None
            Labels, for the gaps of error rates.
        y_score : array-like of shape (n_rows,), or mapping of names to them
            Scores in [0, 1], or 0/1 decisions.
        sensitive_features : array-like of shape (n_rows,), or a table of several attributes
            Group of every row.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        pos_label : default=1
            The label that counts as positive.
        name : str, optional
            Name of a single model; by default "model".
        backend : {"altair", "matplotlib"}, default="altair"
            The library that draws the picture.
        ax : matplotlib Axes, optional
            Axes to draw on. They imply matplotlib.
        **settings
            Further arguments of `fairmatch.audit`: threshold, confidence, n_resamples, and others.

        Returns
        -------
        GapDisplay
        """
        found = [
            audit(
                scores,
                sensitive_features=sensitive_features,
                y_true=y_true,
                sample_weight=sample_weight,
                pos_label=pos_label,
                model_name=own,
                **settings,
            )
            for own, scores in named(y_score, name).items()
        ]
        return cls(found).plot(backend=backend, ax=ax)

    def _drawn(self) -> list[str]:
        return [audit.model_name for audit in self.audits]

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "label": gap_title(gap.name, audit),
                "series": shown_name(audit.model_name, 60),
                "value": gap.value,
                "low": gap.low,
                "high": gap.high,
            }
            for audit in self.audits
            for gap in audit.gaps
            # Gaps of predictions share an axis only if they have the unit of the predictions.
            if gap.value is not None and (audit.scale != "real" or gap.name in IN_UNITS)
        ]

    def _title(self) -> str:
        many = any(audit.pair_gaps for audit in self.audits)
        return "largest gap over pairs of groups (0 = alike)" if many else "gap (0 = alike)"

    def _draw_altair(self) -> Any:
        return interval_chart(self._rows(), title=self._title())

    def _draw_matplotlib(self, ax: Any) -> None:
        rows = self._rows()
        labels = list(dict.fromkeys(row["label"] for row in rows))
        series = list(dict.fromkeys(row["series"] for row in rows))
        for k, name in enumerate(series):
            own = [row for row in rows if row["series"] == name]
            ax.errorbar(
                [row["value"] for row in own],
                [labels.index(row["label"]) + 0.18 * (k - (len(series) - 1) / 2) for row in own],
                xerr=[
                    [row["value"] - (row["value"] if row["low"] is None else row["low"])
                     for row in own],
                    [(row["value"] if row["high"] is None else row["high"]) - row["value"]
                     for row in own],
                ],
                fmt="o",
                label=name,
            )  # fmt: skip
        ax.set_yticks(range(len(labels)), labels)
        ax.invert_yaxis()
        ax.set_xlim(left=0.0)
        ax.set_xlabel(self._title())
        if len(series) > 1:
            ax.legend()
