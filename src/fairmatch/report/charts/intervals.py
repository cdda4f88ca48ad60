"""A chart of numbers as dots, with their intervals as bars."""

from collections.abc import Mapping, Sequence
from typing import Any

from fairmatch.report.charts.frame import (
    SERIES_COLOURS,
    Row,
    chart_rows,
    colour,
    labels_above,
    load_altair,
    names,
    reference_lines,
)


def interval_chart(
    rows: Sequence[Row],
    *,
    title: str,
    colours: Sequence[str] = SERIES_COLOURS,
    references: Mapping[str, float] | None = None,
    domain: tuple[float, float] | None = None,
) -> Any:
    """Draw numbers as dots with their intervals as bars, with a label above each.

    Parameters
    ----------
    rows : sequence of mappings
        Rows with ``label``, ``series``, ``value``, ``low`` and ``high``. A row without a value is
        left out. A row without limits has no bar.
    title : str
        Title of the axis.
    colours : sequence of str
        One colour per series.
    references : mapping, optional
        Words to numbers, which are drawn as dashed lines.
    domain : tuple of two floats, optional
        Ends of the axis; by default from 0 to the largest number.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> rows = [{"label": "a", "series": "m", "value": 0.5, "low": 0.4, "high": 0.6}]
    >>> type(interval_chart(rows, title="share")).__name__
    'LayerChart'
    """
    alt = load_altair()
    rows = [row for row in rows if row["value"] is not None]
    marks = dict(references or {})
    if domain is None:
        ends = [row[end] for row in rows for end in ("value", "high") if row[end] is not None]
        domain = 0.0, max([*ends, *marks.values(), 0.01]) * 1.04
    series, labels = names(rows, "series"), names(rows, "label")
    offset = alt.YOffset("series:N", sort=None, scale=alt.Scale(domain=["", *series]))
    axis = alt.Axis(labels=False, ticks=False, domain=False, title=None)
    step = 24 + 16 * len(series)
    base = alt.Chart(chart_rows(rows)).encode(
        y=alt.Y(
            "label:N", sort=None, axis=axis, scale=alt.Scale(paddingInner=0.15, paddingOuter=0.05)
        ),
        yOffset=offset,
        color=colour(series, colours),
        tooltip=[
            alt.Tooltip("label:N", title="what"),
            alt.Tooltip("series:N", title="of"),
            alt.Tooltip("value:Q", format=".3f"),
            alt.Tooltip("low:Q", title="from", format=".3f"),
            alt.Tooltip("high:Q", title="to", format=".3f"),
        ],
    )
    scale = alt.Scale(domain=list(domain), nice=False, zero=False)
    x = alt.X("value:Q", title=title, scale=scale)
    bars = (
        base.transform_filter("isValid(datum.low) && isValid(datum.high)")
        .mark_rule(strokeWidth=4, opacity=0.38, strokeCap="round", clip=True)
        .encode(x=alt.X("low:Q", title=title, scale=scale), x2="high:Q")
    )
    dots = base.mark_point(filled=True, size=90, opacity=1.0).encode(x=x)
    layers = [*reference_lines(marks), labels_above(labels), bars, dots]
    return alt.layer(*layers).properties(height=step * len(labels) + 10)
