"""Pictures of a model for a notebook, in the manner of scikit-learn's displays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fairmatch.auditing.audit import audit, score_people
from fairmatch.auditing.facts import Audit
from fairmatch.auditing.people import draw_rows
from fairmatch.exceptions import InputError, MissingExtraError
from fairmatch.learning.choice import FairnessPath
from fairmatch.matching.nearest import POSITION_SLACK, MatchingCurve, matching_curve
from fairmatch.measures import MEASURES, gap_table
from fairmatch.measures.registry import read_measure
from fairmatch.people.checks import read_labels, read_scores, read_weights
from fairmatch.people.encoding import TableEncoder
from fairmatch.people.files import whole_file
from fairmatch.people.groups import read_groups
from fairmatch.people.weights import Weights
from fairmatch.report.charts import (
    curve_chart,
    gap_axis,
    interval_chart,
    save_chart,
    standalone,
    tradeoff_chart,
    tradeoff_rows,
)
from fairmatch.report.wording import gap_title, shown_name, told_apart


class Display(ABC):
    """A picture that is made by `from_estimator` or `from_predictions`, and drawn by `plot`.

    Attributes
    ----------
    chart_ : altair chart
        The picture, if it was drawn with Altair.
    ax_, figure_ : matplotlib Axes and Figure
        The picture, if it was drawn with matplotlib.
    """

    chart_: Any
    ax_: Any
    figure_: Any

    # The arguments of `from_estimator` that `from_predictions` needs too.
    _passed_on: ClassVar[tuple[str, ...]] = ("pos_label",)
    # Whether a path can be drawn, or models alone.
    _draws_paths: ClassVar[bool] = False

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: ArrayLike,
        pos_label: Any = 1,
        name: str | None = None,
        **settings: Any,
    ) -> Self:
        """Score a table with fitted classifiers and draw the picture.

        Parameters
        ----------
        estimator : fitted classifier, or mapping of names to them
            The model or models that score the rows; `TradeoffDisplay` takes a `FairnessPath` too.
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        y : array-like of shape (n_rows,), optional
            Labels.
        sensitive_features : array-like of shape (n_rows,), or a table of several attributes
            Group of every row.
        pos_label : default=1
            The label that counts as positive.
        name : str, optional
            Name of a single model; by default the name of its class.
        **settings
            Further arguments of `from_predictions`.

        Returns
        -------
        Display
        """
        found: dict[str, Any] = {}
        for own, model in named(estimator, name).items():
            if cls._draws_paths and isinstance(model, FairnessPath):
                weights = settings.get("sample_weight")
                found[own if model is not estimator else ""] = model.curve(
                    X, y, sensitive_features=sensitive_features, sample_weight=weights
                )
                continue
            if not hasattr(model, "predict_proba"):
                raise InputError(
                    f"{own} is {type(model).__name__}, which has no predict_proba. Pass a fitted "
                    "classifier, or pass its scores to from_predictions."
                )
            found[own] = score_people(model, X, sensitive_features, pos_label)
        given = {"X": X, "pos_label": pos_label}
        settings |= {key: given[key] for key in cls._passed_on}
        return cls.from_predictions(y, found, sensitive_features=sensitive_features, **settings)

    @classmethod
    @abstractmethod
    def from_predictions(cls, *args: Any, **settings: Any) -> Self:
        """Draw the picture from scores."""

    def plot(self, *, backend: str = "altair", ax: Any = None) -> Self:
        """Draw the picture.

        Parameters
        ----------
        backend : {"altair", "matplotlib"}, default="altair"
            The library that draws the picture. It is imported only when it is needed.
        ax : matplotlib Axes, optional
            Axes to draw on. They imply matplotlib.

        Returns
        -------
        Display
            The display itself, with ``chart_``, or with ``ax_`` and ``figure_``.
        """
        if ax is not None or backend == "matplotlib":
            self.ax_ = _new_axes() if ax is None else ax
            self.figure_ = self.ax_.figure
            self._draw_matplotlib(self.ax_)
        elif backend == "altair":
            self.chart_ = standalone(self._draw_altair())
        else:
            raise InputError(f"backend={backend!r} is unknown. Choose 'altair' or 'matplotlib'.")
        return self

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file and return the file.

        Parameters
        ----------
        path : str or Path
            A file that ends in .svg or .png. An Altair chart can also be written as .html.
        """
        if getattr(self, "chart_", None) is not None:
            return save_chart(self.chart_, path)
        file = Path(path)
        if file.suffix not in (".svg", ".png"):
            raise InputError(f"{file} must end in .svg or .png. Name such a file.")
        with whole_file(file) as partial:
            self.figure_.savefig(partial, format=file.suffix.removeprefix("."))
        return file

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {', '.join(map(repr, self._drawn())) or 'no model'}>"

    @abstractmethod
    def _drawn(self) -> list[str]:
        """Return the names of what is drawn."""

    @abstractmethod
    def _draw_altair(self) -> Any:
        """Return the chart, in the colours of the report."""

    @abstractmethod
    def _draw_matplotlib(self, ax: Any) -> None:
        """Draw on the axes."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        """Return the picture for a notebook."""
        if getattr(self, "chart_", None) is None:
            return {"text/plain": repr(self)}
        return self.chart_._repr_mimebundle_(include, exclude)


def _draw_lines(
    ax: Any, rows: Sequence[Mapping[str, Any]], x: str, y: str, order: str, style: str
) -> dict[str, Any]:
    """Draw a line through the points of every series, and return the lines by name."""
    lines = {}
    for name in dict.fromkeys(row["series"] for row in rows):
        own = sorted((r for r in rows if r["series"] == name), key=lambda r: r[order] or 0.0)
        (lines[name],) = ax.plot([r[x] for r in own], [r[y] for r in own], style, label=name)
    ax.set_xlim(left=0.0)
    if len(lines) > 1:
        ax.legend()
    return lines


def _new_axes() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(
            "backend='matplotlib' needs matplotlib: pip install matplotlib. Or draw with "
            "backend='altair'."
        ) from error
    # Made without pyplot, so no window opens and no global list keeps the figure alive.
    return Figure(layout="constrained").add_subplot()


def named(given: Any, name: str | None) -> dict[str, Any]:
    """Return models or scores by name; a single one gets ``name``, or the name of its class."""
    if isinstance(given, Mapping):
        if not given:
            raise InputError("There is no model to draw: the mapping is empty. Pass at least one.")
        return {str(key): value for key, value in given.items()}
    if name is None:
        name = type(given).__name__ if hasattr(given, "predict_proba") else "model"
    return {name: given}


class GapDisplay(Display):
    """The gaps between groups under one or several models, with their intervals.

    Parameters
    ----------
    audits : sequence of Audit
        One audit per model, with different names.

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
    ) -> Self:
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
        backend, ax : optional
            What `plot` takes.
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
            if gap.value is not None
            and (audit.kind != "number" or MEASURES[gap.name].unit == "score")
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

    _passed_on: ClassVar[tuple[str, ...]] = ("X",)

    def __init__(self, curves: Mapping[str, MatchingCurve]) -> None:
        self.curves = dict(curves)

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
    ) -> Self:
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
        backend, ax : optional
            What `plot` takes.

        Returns
        -------
        MatchingDisplay
        """
        if X is None:
            raise InputError("X is None, but distances need the features of people. Pass X.")
        groups = read_groups(sensitive_features)
        generator = np.random.default_rng(random_state)
        weights = Weights(len(groups), read_weights(sample_weight, n_rows=len(groups)))
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
        lines = _draw_lines(ax, rows, "gap", "position", "gap", "-")
        for row in rows:
            if row["slack"] == POSITION_SLACK:
                ax.plot(row["gap"], row["position"], "o", color=lines[row["series"]].get_color())
        ax.set_ylim(bottom=0.0)
        ax.set_xlabel("mean score gap of matched people")
        ax.set_ylabel("distance: 0 = nearest, 1 = random")


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

    _draws_paths: ClassVar[bool] = True

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
    ) -> Self:
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
        backend, ax : optional
            What `plot` takes.

        Returns
        -------
        TradeoffDisplay
        """
        measure = read_measure(gap, "gap")
        if measure.needs_coupling:
            raise InputError(
                f"gap={gap!r} compares matched people, but scores alone have no matching. Choose "
                "another gap, or pass a table of FairnessPath.curve to TradeoffDisplay."
            )
        parts = []
        for own, given in named(y_score, name).items():
            if isinstance(given, pd.DataFrame):  # the curve of a path
                parts.append(given.assign(model=own) if own else given)
                continue
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
            accuracy = float(np.average(right, weights=weights))
            parts.append(pd.DataFrame([{"model": own, "accuracy": accuracy, **gaps}]))
        return cls(pd.concat(parts, ignore_index=True), gap).plot(backend=backend, ax=ax)

    def _drawn(self) -> list[str]:
        if "model" in self.points:
            return list(dict.fromkeys(self.points["model"]))
        return [f"weight {weight:g}" for weight in self.points["fairness_weight"]]

    def _draw_altair(self) -> Any:
        return tradeoff_chart(
            tradeoff_rows(self.points, self.gap),
            title=gap_axis(self.gap),
            beside="fairness_weight" not in self.points,
        )

    def _draw_matplotlib(self, ax: Any) -> None:
        rows = tradeoff_rows(self.points, self.gap)
        joined = "fairness_weight" in self.points
        _draw_lines(ax, rows, "gap", "accuracy", "weight", "o-" if joined else "o")
        for row in [] if joined else rows:
            at = row["gap"], row["accuracy"]
            ax.annotate(row["label"], at, xytext=(6, 4), textcoords="offset points")
        ax.set_xlabel(gap_axis(self.gap))
        ax.set_ylabel("accuracy")
