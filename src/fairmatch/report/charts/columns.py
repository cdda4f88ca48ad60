"""A chart of what each column adds to a distance."""

from collections.abc import Sequence
from typing import Any

from fairmatch.report.charts.frame import (
    SERIES_COLOURS,
    Row,
    chart_rows,
    colour,
    labels_above,
    load_altair,
    names,
)

# The three matchings under which a column adds to a distance, and their colours.
CONTRIBUTION_COLOURS = {
    "matched by scores": SERIES_COLOURS[0],
    "nearest possible": "var(--group-2)",
    "random": "var(--soft)",
}


def contribution_chart(rows: Sequence[Row], *, title: str) -> Any:
    """Draw what each column adds as a bar, with marks for the nearest and a random matching.

    Parameters
    ----------
    rows : sequence of mappings
        Rows with ``label``, ``cost``, ``smallest`` and ``random``.
    title : str
        Title of the axis.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> rows = [{"label": "age", "cost": 0.3, "smallest": 0.1, "random": 0.4}]
    >>> type(contribution_chart(rows, title="cost")).__name__
    'LayerChart'
    """
    alt = load_altair()
    kinds = dict(zip(("cost", "smallest", "random"), CONTRIBUTION_COLOURS, strict=True))
    long = [
        {"label": row["label"], "series": words, "value": row[kind]}
        for row in rows
        for kind, words in kinds.items()
    ]
    axis = alt.Axis(labels=False, ticks=False, domain=False, title=None)
    base = alt.Chart(chart_rows(long)).encode(
        y=alt.Y("label:N", sort=None, axis=axis, scale=alt.Scale(paddingInner=0.1)),
        yOffset=alt.YOffset("part:N", scale=alt.Scale(domain=["", "bar"])),
        x=alt.X("value:Q", title=title),
        color=colour(list(CONTRIBUTION_COLOURS), list(CONTRIBUTION_COLOURS.values()), "square"),
        tooltip=[
            alt.Tooltip("label:N", title="column"),
            alt.Tooltip("series:N", title="matching"),
            alt.Tooltip("value:Q", title="mean squared distance", format=".3f"),
        ],
    )
    base = base.transform_calculate(part="'bar'")
    bars = base.transform_filter(alt.datum.series == kinds["cost"]).mark_bar(opacity=0.6, height=9)
    ticks = base.transform_filter(alt.datum.series != kinds["cost"])
    ticks = ticks.mark_tick(thickness=3, size=15, opacity=1.0)
    layers = [labels_above(names(rows, "label")), bars, ticks]
    return alt.layer(*layers).properties(height=36 * len(rows) + 10)
