"""Charts of accuracy against a gap."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from fairmatch.measures import MEASURES
from fairmatch.report.charts.frame import (
    INK,
    SERIES_COLOURS,
    chart_rows,
    colour,
    load_altair,
    names,
)
from fairmatch.report.wording import shown_name


def tradeoff_chart(
    curve: pd.DataFrame,
    *,
    gap: str = "demographic_parity_gap",
    chosen: float | None = None,
    colours: Sequence[str] = ("#2b6cb0", "#c05621"),
) -> Any:
    """Draw accuracy against a gap, one point per fairness weight.

    Parameters
    ----------
    curve : DataFrame
        A table from `FairnessPath.curve`.
    gap : str, default="demographic_parity_gap"
        The gap on the horizontal axis.
    chosen : float, optional
        The fairness weight to mark.
    colours : sequence of two str
        The colour of the curve, and that of the marked point.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> curve = pd.DataFrame({"fairness_weight": [0.0, 1.0], "accuracy": [0.8, 0.7],
    ...                       "demographic_parity_gap": [0.2, 0.0]})
    >>> type(tradeoff_chart(curve, chosen=1.0)).__name__
    'LayerChart'
    """
    alt = load_altair()
    data = curve.assign(chosen=curve["fairness_weight"] == chosen)
    title = f"{MEASURES[gap].title} ({MEASURES[gap].symbol})"
    base = alt.Chart(data).encode(
        x=alt.X(gap, type="quantitative", title=title, scale=alt.Scale(zero=True)),
        y=alt.Y("accuracy", type="quantitative", scale=alt.Scale(zero=False)),
    )
    line = base.mark_line(color=colours[0], strokeWidth=1.5).encode(order="fairness_weight:Q")
    points = base.mark_point(filled=True, opacity=1.0).encode(
        color=alt.condition("datum.chosen", alt.value(colours[1]), alt.value(colours[0])),
        size=alt.condition("datum.chosen", alt.value(160), alt.value(45)),
        tooltip=["fairness_weight:Q", "accuracy:Q", f"{gap}:Q"],
    )
    return (line + points).properties(width=460, height=300, title="Accuracy against unfairness")


def model_chart(points: pd.DataFrame, *, gap: str = "demographic_parity_gap") -> Any:
    """Draw accuracy against a gap, one named point per model.

    Parameters
    ----------
    points : DataFrame
        A table with the columns ``model``, ``accuracy`` and the gap.
    gap : str, default="demographic_parity_gap"
        The gap on the horizontal axis.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> points = pd.DataFrame({"model": ["a"], "accuracy": [0.8], "demographic_parity_gap": [0.2]})
    >>> type(model_chart(points)).__name__
    'LayerChart'
    """
    alt = load_altair()
    rows = [
        {"series": shown_name(str(model), 60), "accuracy": float(accuracy), "gap": float(value)}
        for model, accuracy, value in zip(
            points["model"], points["accuracy"], points[gap], strict=True
        )
    ]
    title = f"{MEASURES[gap].title} ({MEASURES[gap].symbol})"
    base = alt.Chart(chart_rows(rows)).encode(
        x=alt.X("gap:Q", title=title, scale=alt.Scale(zero=True)),
        y=alt.Y("accuracy:Q", scale=alt.Scale(zero=False)),
        tooltip=[
            alt.Tooltip("series:N", title="model"),
            alt.Tooltip("accuracy:Q", format=".3f"),
            alt.Tooltip("gap:Q", format=".3f"),
        ],
    )
    dots = base.mark_point(filled=True, opacity=1.0, size=80, color=SERIES_COLOURS[0])
    words = base.mark_text(align="left", dx=8, dy=-6, color=INK).encode(text="series:N")
    return alt.layer(dots, words).properties(height=300)


def paths_chart(points: pd.DataFrame, *, gap: str = "demographic_parity_gap") -> Any:
    """Draw accuracy against a gap for several paths, each in its own colour.

    Parameters
    ----------
    points : DataFrame
        A table with the columns ``model``, ``fairness_weight``, ``accuracy`` and the gap. The
        weight of a model without a path is missing.
    gap : str, default="demographic_parity_gap"
        The gap on the horizontal axis.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> points = pd.DataFrame({"model": ["a", "a"], "fairness_weight": [0.0, 1.0],
    ...                        "accuracy": [0.8, 0.7], "demographic_parity_gap": [0.2, 0.1]})
    >>> type(paths_chart(points)).__name__
    'LayerChart'
    """
    alt = load_altair()
    columns = ["model", "fairness_weight", "accuracy", gap]
    rows = [
        {
            "series": shown_name(str(model), 60),
            "weight": None if pd.isna(weight) else float(weight),
            "accuracy": float(accuracy),
            "gap": float(value),
        }
        for model, weight, accuracy, value in points[columns].itertuples(index=False)
    ]
    title = f"{MEASURES[gap].title} ({MEASURES[gap].symbol})"
    base = alt.Chart(chart_rows(rows)).encode(
        x=alt.X("gap:Q", title=title, scale=alt.Scale(zero=True)),
        y=alt.Y("accuracy:Q", scale=alt.Scale(zero=False)),
        color=colour(names(rows, "series"), SERIES_COLOURS),
    )
    line = base.mark_line(strokeWidth=1.5).encode(order="weight:Q")
    dots = base.mark_point(filled=True, opacity=1.0, size=60).encode(
        tooltip=[
            alt.Tooltip("series:N", title="model"),
            alt.Tooltip("weight:Q", title="weight"),
            alt.Tooltip("accuracy:Q", format=".3f"),
            alt.Tooltip("gap:Q", format=".3f"),
        ],
    )
    return alt.layer(line, dots).properties(height=300)
