"""Charts of distributions: histograms, cumulative shares and calibration."""

from collections.abc import Mapping, Sequence
from typing import Any

from fairmatch.report.charts.frame import (
    GROUP_COLOURS,
    INK,
    SERIES_COLOURS,
    Row,
    chart_rows,
    colour,
    load_altair,
    names,
    reference_lines,
)


def step_chart(
    rows: Sequence[Row],
    *,
    title: str,
    of: str = "people",
    colours: Sequence[str] = SERIES_COLOURS,
    references: Mapping[str, float] | None = None,
) -> Any:
    """Draw histograms over each other, as steps.

    Parameters
    ----------
    rows : sequence of mappings
        Rows with ``low``, ``high``, ``series`` and ``share``.
    title : str
        Title of the axis.
    of : str, default="people"
        What the shares are shares of.
    colours : sequence of str
        One colour per series.
    references : mapping, optional
        Words to numbers, which are drawn as dashed lines.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> rows = [{"low": 0.0, "high": 1.0, "series": "m", "share": 1.0}]
    >>> type(step_chart(rows, title="score")).__name__
    'LayerChart'
    """
    alt = load_altair()
    series = names(rows, "series")
    last = {row["series"]: row for row in rows}.values()
    closed = [*rows, *({**row, "low": row["high"]} for row in last)]
    top = max(row["share"] for row in rows)
    base = alt.Chart(chart_rows(closed)).encode(
        x=alt.X(
            "low:Q",
            title=title,
            scale=alt.Scale(nice=False, zero=False),
        ),
        y=alt.Y(
            "share:Q",
            stack=None,
            title=f"share of {of}",
            axis=alt.Axis(format=".0%", tickCount=4),
            scale=alt.Scale(domain=[0.0, max(top, 0.01) * 1.05]),
        ),
        color=colour(series, colours, "square"),
    )
    fill = base.mark_area(interpolate="step-after", opacity=0.12, line=False)
    line = base.mark_line(interpolate="step-after", strokeWidth=2)
    hover = (
        alt.Chart(chart_rows(rows))
        .mark_rect(opacity=0)
        .encode(
            x="low:Q",
            x2="high:Q",
            y=alt.Y("share:Q", stack=None),
            y2=alt.datum(0),
            tooltip=[
                alt.Tooltip("series:N", title="of"),
                alt.Tooltip("low:Q", title="from", format=".3g"),
                alt.Tooltip("high:Q", title="to", format=".3g"),
                alt.Tooltip("share:Q", format=".1%"),
            ],
        )
    )
    return alt.layer(*reference_lines(references or {}), fill, line, hover).properties(height=190)


def cell_chart(
    rows: Sequence[Row],
    *,
    title: str,
    of: str = "people",
    colours: Sequence[str] = GROUP_COLOURS,
) -> Any:
    """Draw a histogram of few values as bars side by side, without the empty intervals.

    Parameters
    ----------
    rows : sequence of mappings
        Rows with ``low``, ``high``, ``series`` and ``share``, and with ``only`` where an interval
        holds one number.
    title : str
        Title of the axis.
    of : str, default="people"
        What the shares are shares of.
    colours : sequence of str
        One colour per series.

    Returns
    -------
    altair.Chart

    Examples
    --------
    >>> rows = [{"low": 0.1, "high": 0.15, "series": "m", "share": 1.0}]
    >>> type(cell_chart(rows, title="score")).__name__
    'Chart'
    """
    alt = load_altair()
    series = names(rows, "series")
    last = max(row["high"] for row in rows)
    words = {
        row["low"]: _cell(row, last) for row in sorted(rows, key=lambda row: float(row["low"]))
    }
    ranges = any(row.get("only") is None for row in rows)
    named = [{**row, "cell": words[row["low"]]} for row in rows]
    cells = list(words.values())
    return (
        alt.Chart(chart_rows(named))
        .mark_bar(opacity=0.8)
        .encode(
            x=alt.X(
                "cell:O",
                sort=cells,
                title=f"{title}, from" if ranges else title,
                axis=alt.Axis(labelAngle=0, labelOverlap=True),
            ),
            xOffset=alt.XOffset("series:N", sort=None, scale=alt.Scale(domain=series)),
            y=alt.Y("share:Q", title=f"share of {of}", axis=alt.Axis(format=".0%", tickCount=4)),
            color=colour(series, colours, "square"),
            tooltip=[
                alt.Tooltip("series:N", title="of"),
                *(
                    [
                        alt.Tooltip("low:Q", title="from", format=".3g"),
                        alt.Tooltip("high:Q", title="to", format=".3g"),
                    ]
                    if ranges
                    else [alt.Tooltip("cell:O", title=title)]
                ),
                alt.Tooltip("share:Q", format=".1%"),
            ],
        )
        .properties(height=190)
    )


def _cell(row: Row, last: float) -> str:
    """Return how an interval is named: by its only number, or else by where it begins.

    An interval is without its upper end, but the last has both of its ends.
    """
    if (only := row.get("only")) is not None:
        return f"{only:.3g}"
    return f"{row['low']:.3g}" + (f"–{last:.3g}" if row["high"] == last else "")


def cumulative_chart(
    rows: Sequence[Row], *, title: str, colours: Sequence[str] = GROUP_COLOURS
) -> Any:
    """Draw the share of each series that lies at or below every number.

    Parameters
    ----------
    rows : sequence of mappings
        Rows with ``high``, ``series`` and ``cumulative``. The curves begin at the least ``low``,
        or at 0 if rows have none.
    title : str
        Title of the axis.
    colours : sequence of str
        One colour per series.

    Returns
    -------
    altair.Chart

    Examples
    --------
    >>> rows = [{"high": 1.0, "series": "m", "cumulative": 1.0}]
    >>> type(cumulative_chart(rows, title="score")).__name__
    'Chart'
    """
    alt = load_altair()
    series = names(rows, "series")
    least = min(row.get("low", 0.0) for row in rows)
    start = [{"high": least, "series": name, "cumulative": 0.0} for name in series]
    base = alt.Chart(chart_rows([*start, *rows])).encode(
        x=alt.X("high:Q", title=title, scale=alt.Scale(zero=False)),
        y=alt.Y("cumulative:Q", title="share at or below", axis=alt.Axis(format=".0%")),
        color=colour(series, colours, "square"),
        tooltip=[
            alt.Tooltip("series:N", title="of"),
            alt.Tooltip("high:Q", title=f"{title} up to", format=".3g"),
            alt.Tooltip("cumulative:Q", title="share", format=".1%"),
        ],
    )
    return base.mark_line(strokeWidth=2, point={"size": 28, "filled": True}).properties(height=190)


def calibration_chart(rows: Sequence[Row]) -> Any:
    """Draw the share of positive labels against the mean score, in intervals of the score.

    Parameters
    ----------
    rows : sequence of mappings
        Rows with ``series``, ``mean_score``, ``value``, ``low``, ``high`` and ``n_rows``.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> rows = [{"series": "a", "mean_score": 0.5, "value": 0.6, "low": 0.5, "high": 0.7,
    ...          "n_rows": 40}]
    >>> type(calibration_chart(rows)).__name__
    'LayerChart'
    """
    alt = load_altair()
    rows = [row for row in rows if row["value"] is not None]
    unit = alt.Scale(domain=[0.0, 1.0])
    diagonal = alt.Chart(chart_rows([{"score": 0.0, "rate": 0.0}, {"score": 1.0, "rate": 1.0}]))
    diagonal = diagonal.mark_line(strokeDash=[4, 3], color=INK, opacity=0.55, strokeWidth=1)
    base = alt.Chart(chart_rows(rows)).encode(
        x=alt.X("mean_score:Q", title="mean score", scale=unit),
        color=colour(names(rows, "series"), GROUP_COLOURS),
        tooltip=[
            alt.Tooltip("series:N", title="group"),
            alt.Tooltip("n_rows:Q", title="people", format=","),
            alt.Tooltip("mean_score:Q", title="mean score", format=".3f"),
            alt.Tooltip("value:Q", title="share positive", format=".3f"),
            alt.Tooltip("low:Q", title="from", format=".3f"),
            alt.Tooltip("high:Q", title="to", format=".3f"),
        ],
    )
    share = alt.Y("value:Q", title="share positive", scale=unit)
    bars = base.mark_rule(strokeWidth=3, opacity=0.3).encode(
        y=alt.Y("low:Q", title="share positive"), y2="high:Q"
    )
    line = base.mark_line(strokeWidth=1.5, opacity=0.6).encode(y=share)
    dots = base.mark_point(filled=True, size=60, opacity=1.0).encode(y=share)
    layers = [diagonal.encode(x="score:Q", y="rate:Q"), bars, line, dots]
    return alt.layer(*layers).properties(height=260)
