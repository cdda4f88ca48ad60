"""A chart of how near matched people are, against how differently they are scored."""

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


def curve_chart(rows: Sequence[Row], *, slack: float = 0.005, top: float | None = None) -> Any:
    """Draw the position of the nearest matching against the mean score gap that is allowed.

    Parameters
    ----------
    rows : sequence of mappings
        Rows with ``series``, ``gap``, ``slack`` and ``position``, one for each point of a curve.
    slack : float, default=0.005
        Points with this slack are marked, and so are points whose ``shown`` is "dot".
    top : float, optional
        Largest position on the vertical axis; by default the highest point.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> rows = [{"series": "m", "gap": 0.1, "slack": 0.005, "position": 0.5}]
    >>> type(curve_chart(rows)).__name__
    'LayerChart'
    """
    alt = load_altair()
    places = [row["position"] for row in rows]
    end = max([0.05, *places] if top is None else [top]) * 1.06
    base = alt.Chart(chart_rows(rows)).encode(
        x=alt.X("gap:Q", title="mean score gap of matched people", scale=alt.Scale(zero=True)),
        y=alt.Y(
            "position:Q",
            title="distance: 0 = nearest, 1 = random",
            scale=alt.Scale(domain=[min([0.0, *places]), end], nice=False),
        ),
        color=colour(names(rows, "series"), SERIES_COLOURS),
        tooltip=[
            alt.Tooltip("series:N", title="model"),
            alt.Tooltip("gap:Q", title="mean score gap", format=".3f"),
            alt.Tooltip("slack:Q", title="above the least", format=".3f"),
            alt.Tooltip("position:Q", title="distance", format=".3f"),
        ],
    )
    line = base.mark_line(strokeWidth=2).encode(order="slack:Q")
    marks = base.transform_filter(f"datum.shown === 'dot' || abs(datum.slack - {slack}) < 1e-9")
    marks = marks.mark_point(filled=True, size=110, opacity=1.0)
    return alt.layer(line, marks).properties(height=240)
