"""A chart of models as points, such as accuracy against a gap."""

from collections.abc import Sequence
from typing import Any

from fairmatch.report.charts.frame import (
    SERIES_COLOURS,
    Row,
    chart_rows,
    colour,
    load_altair,
    names,
)


def scatter_chart(rows: Sequence[Row], *, x: str, y: str) -> Any:
    """Draw a point for every row.

    Parameters
    ----------
    rows : sequence of mappings
        Rows with ``x``, ``y``, ``series`` and ``label``.
    x, y : str
        Titles of the axes.

    Returns
    -------
    altair.Chart

    Examples
    --------
    >>> row = {"x": 0.1, "y": 0.8, "series": "baseline", "label": "plain"}
    >>> type(scatter_chart([row], x="gap", y="accuracy")).__name__
    'Chart'
    """
    alt = load_altair()
    return (
        alt.Chart(chart_rows(rows))
        .mark_point(filled=True, size=70, opacity=0.9)
        .encode(
            x=alt.X("x:Q", title=x, scale=alt.Scale(zero=True)),
            y=alt.Y("y:Q", title=y, scale=alt.Scale(zero=False)),
            color=colour(names(rows, "series"), SERIES_COLOURS),
            tooltip=[
                alt.Tooltip("label:N", title="model"),
                alt.Tooltip("y:Q", title=y, format=".3f"),
                alt.Tooltip("x:Q", title=x, format=".3f"),
            ],
        )
        .properties(height=300)
    )
