"""Charts, as Vega-Lite specifications made with Altair.

The charts of the report take a list of rows, the same that stand in the table beside them. Labels
stand above their bar and not beside it, so that long ones are readable on a phone too. Colours are
CSS variables of the page (``var(--group-1)``), which the page sets for light, dark and print.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fairmatch.exceptions import InputError, MissingExtraError
from fairmatch.measures import MEASURES
from fairmatch.storage.atomic import whole_file

Row = Mapping[str, Any]

GROUP_COLOURS = "var(--group-1)", "var(--group-2)"
SERIES_COLOURS = tuple(f"var(--series-{k})" for k in range(1, 6))

_INK, _FAINT = "var(--ink)", "var(--rule)"
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def _altair() -> Any:
    try:
        import altair
        import vl_convert  # noqa: F401  (renders the pictures)
    except ImportError as error:
        raise MissingExtraError(
            "Pictures need the report extra: pip install 'fairmatch[report]'."
        ) from error
    return altair


def require_charts() -> None:
    """Raise unless pictures can be drawn; to be asked before a long computation, not after."""
    _altair()


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
        As made by `FairnessPath.curve`.
    gap : str, default="demographic_parity_gap"
        The gap on the horizontal axis.
    chosen : float, optional
        Fairness weight to mark.
    colours : sequence of two str
        Of the curve, and of the marked point.

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
    alt = _altair()
    data = curve.assign(chosen=curve["fairness_weight"] == chosen)
    title = f"{MEASURES[gap].symbol} ({gap.replace('_', ' ')})"
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


def finished(chart: Any) -> dict[str, Any]:
    """Give the specification of a chart as wide as its place, in the page's colours."""
    # The specifications are the code's own, and drawn in the tests; checking them against the
    # schema takes longer than all the rest of the report.
    spec: dict[str, Any] = chart.properties(width="container", title="").to_dict(validate=False)
    spec.pop("title", None)
    quiet = {"labelColor": "var(--soft)", "titleColor": "var(--soft)", "labelFont": _FONT}
    spec["config"] = {
        "aria": False,  # the page gives a name and a table; labels of every mark are noise
        "background": "transparent",
        "font": _FONT,
        "view": {"stroke": None},
        "axis": {
            **quiet,
            "titleFont": _FONT,
            "titleFontWeight": "normal",
            "labelFontSize": 12,
            "titleFontSize": 12,
            "domainColor": _FAINT,
            "tickColor": _FAINT,
            "gridColor": _FAINT,
            "gridOpacity": 0.6,
            "titlePadding": 8,
            "tickCount": 5,
        },
        "legend": {**quiet, "labelFontSize": 12, "labelLimit": 260, "symbolOpacity": 1},
        "text": {"color": _INK, "font": _FONT, "fontSize": 12},
    }
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    return spec


def _rows(rows: Sequence[Row]) -> Any:
    return _altair().Data(values=[dict(row) for row in rows])


def _colour(series: Sequence[str], colours: Sequence[str], symbol: str = "circle") -> Any:
    alt = _altair()
    legend = None
    if len(series) > 1:
        legend = alt.Legend(title=None, orient="top", columns=1, symbolType=symbol, offset=6)
    # More series than colours start over; the labels and the table still tell them apart.
    colours = [colours[k % len(colours)] for k in range(len(series))]
    scale = alt.Scale(domain=list(series), range=colours)
    return alt.Color("series:N", sort=None, scale=scale, legend=legend)


def _names(rows: Sequence[Row], field: str) -> list[str]:
    return list(dict.fromkeys(row[field] for row in rows))


def _above(row_names: Sequence[str], limit: str = "width") -> Any:
    """Write labels, each in the first place of its band."""
    alt = _altair()
    return (
        alt.Chart(_rows([{"label": name} for name in row_names]))
        .mark_text(align="left", baseline="middle", limit=alt.expr(limit))
        .encode(
            y=alt.Y("label:N", sort=None),
            yOffset=alt.YOffsetDatum(""),
            x=alt.value(0),
            text="label:N",
            tooltip=alt.Tooltip("label:N", title="name"),
        )
    )


def interval_chart(
    rows: Sequence[Row],
    *,
    title: str,
    colours: Sequence[str] = SERIES_COLOURS,
    references: Mapping[str, float] | None = None,
    domain: tuple[float, float] | None = None,
) -> Any:
    """Draw numbers as dots with their intervals as bars, a line of text above each.

    Parameters
    ----------
    rows : sequence of mappings
        With ``label``, ``series``, ``value``, ``low`` and ``high``; without a value, a row is left
        out, and without limits it has no bar.
    title : str
        Of the axis.
    colours : sequence of str
        One per series.
    references : mapping, optional
        Words to numbers, drawn as dashed lines.
    domain : tuple of two floats, optional
        Ends of the axis; from 0 to the largest number by default.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> rows = [{"label": "a", "series": "m", "value": 0.5, "low": 0.4, "high": 0.6}]
    >>> type(interval_chart(rows, title="share")).__name__
    'LayerChart'
    """
    alt = _altair()
    rows = [row for row in rows if row["value"] is not None]
    marks = dict(references or {})
    if domain is None:
        ends = [row[end] for row in rows for end in ("value", "high") if row[end] is not None]
        domain = 0.0, max([*ends, *marks.values(), 0.01]) * 1.04
    series, labels = _names(rows, "series"), _names(rows, "label")
    offset = alt.YOffset("series:N", sort=None, scale=alt.Scale(domain=["", *series]))
    axis = alt.Axis(labels=False, ticks=False, domain=False, title=None)
    step = 24 + 16 * len(series)
    base = alt.Chart(_rows(rows)).encode(
        y=alt.Y(
            "label:N", sort=None, axis=axis, scale=alt.Scale(paddingInner=0.15, paddingOuter=0.05)
        ),
        yOffset=offset,
        color=_colour(series, colours),
        tooltip=[
            alt.Tooltip("label:N", title="what"),
            alt.Tooltip("series:N", title="of"),
            alt.Tooltip("value:Q", format=".3f"),
            alt.Tooltip("low:Q", title="from", format=".3f"),
            alt.Tooltip("high:Q", title="to", format=".3f"),
        ],
    )
    x = alt.X("value:Q", title=title, scale=alt.Scale(domain=list(domain), nice=False))
    bars = (
        base.transform_filter("isValid(datum.low) && isValid(datum.high)")
        .mark_rule(strokeWidth=4, opacity=0.38, strokeCap="round", clip=True)
        .encode(x=alt.X("low:Q", title=title), x2="high:Q")
    )
    dots = base.mark_point(filled=True, size=90, opacity=1.0).encode(x=x)
    layers = [*_reference_lines(marks), _above(labels), bars, dots]
    return alt.layer(*layers).properties(height=step * len(labels) + 10)


def _reference_lines(marks: Mapping[str, float]) -> list[Any]:
    if not marks:
        return []
    alt = _altair()
    lines = alt.Chart(_rows([{"name": name, "at": at} for name, at in marks.items()]))
    lines = lines.mark_rule(strokeDash=[4, 3], color=_INK, opacity=0.55)
    return [lines.encode(x="at:Q", tooltip=[alt.Tooltip("name:N"), alt.Tooltip("at:Q")])]


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
        With ``low``, ``high``, ``series`` and ``share``.
    of : str, default="people"
        What the shares are shares of.
    title, colours, references
        As in `interval_chart`.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> rows = [{"low": 0.0, "high": 1.0, "series": "m", "share": 1.0}]
    >>> type(step_chart(rows, title="score")).__name__
    'LayerChart'
    """
    alt = _altair()
    series = _names(rows, "series")
    last = {row["series"]: row for row in rows}.values()
    closed = [*rows, *({**row, "low": row["high"]} for row in last)]
    top = max(row["share"] for row in rows)
    base = alt.Chart(_rows(closed)).encode(
        x=alt.X("low:Q", title=title, scale=alt.Scale(nice=False)),
        y=alt.Y(
            "share:Q",
            stack=None,
            title=f"share of {of}",
            axis=alt.Axis(format=".0%", tickCount=4),
            scale=alt.Scale(domain=[0.0, max(top, 0.01) * 1.05]),
        ),
        color=_colour(series, colours, "square"),
    )
    fill = base.mark_area(interpolate="step-after", opacity=0.12, line=False)
    line = base.mark_line(interpolate="step-after", strokeWidth=2)
    hover = (
        alt.Chart(_rows(rows))
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
    return alt.layer(*_reference_lines(references or {}), fill, line, hover).properties(height=190)


def cumulative_chart(
    rows: Sequence[Row], *, title: str, colours: Sequence[str] = GROUP_COLOURS
) -> Any:
    """Draw which share of each series lies at or below every number.

    Parameters
    ----------
    rows : sequence of mappings
        With ``high``, ``series`` and ``cumulative``.
    title, colours
        As in `interval_chart`.

    Returns
    -------
    altair.Chart

    Examples
    --------
    >>> rows = [{"high": 1.0, "series": "m", "cumulative": 1.0}]
    >>> type(cumulative_chart(rows, title="score")).__name__
    'Chart'
    """
    alt = _altair()
    series = _names(rows, "series")
    start = [{"high": 0.0, "series": name, "cumulative": 0.0} for name in series]
    base = alt.Chart(_rows([*start, *rows])).encode(
        x=alt.X("high:Q", title=title),
        y=alt.Y("cumulative:Q", title="share at or below", axis=alt.Axis(format=".0%")),
        color=_colour(series, colours, "square"),
        tooltip=[
            alt.Tooltip("series:N", title="of"),
            alt.Tooltip("high:Q", title="score up to", format=".3g"),
            alt.Tooltip("cumulative:Q", title="share", format=".1%"),
        ],
    )
    return base.mark_line(strokeWidth=2, point={"size": 28, "filled": True}).properties(height=190)


def contribution_chart(rows: Sequence[Row], *, title: str) -> Any:
    """Draw each column's part as a bar, with marks for what it is compared with.

    Parameters
    ----------
    rows : sequence of mappings
        With ``label``, ``cost``, ``smallest`` and ``random``.
    title : str
        Of the axis.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> rows = [{"label": "age", "cost": 0.3, "smallest": 0.1, "random": 0.4}]
    >>> type(contribution_chart(rows, title="cost")).__name__
    'LayerChart'
    """
    alt = _altair()
    kinds = {"cost": "treated alike", "smallest": "nearest possible", "random": "random"}
    long = [
        {"label": row["label"], "series": words, "value": row[kind]}
        for row in rows
        for kind, words in kinds.items()
    ]
    axis = alt.Axis(labels=False, ticks=False, domain=False, title=None)
    base = alt.Chart(_rows(long)).encode(
        y=alt.Y("label:N", sort=None, axis=axis, scale=alt.Scale(paddingInner=0.1)),
        yOffset=alt.YOffset("part:N", scale=alt.Scale(domain=["", "bar"])),
        x=alt.X("value:Q", title=title),
        color=_colour(
            list(kinds.values()), [SERIES_COLOURS[0], "var(--group-2)", "var(--soft)"], "square"
        ),
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
    layers = [_above(_names(rows, "label")), bars, ticks]
    return alt.layer(*layers).properties(height=36 * len(rows) + 10)


def calibration_chart(rows: Sequence[Row]) -> Any:
    """Draw the share of positive labels against the mean score, in intervals of the score.

    Parameters
    ----------
    rows : sequence of mappings
        With ``series``, ``mean_score``, ``value``, ``low``, ``high`` and ``n_rows``.

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
    alt = _altair()
    rows = [row for row in rows if row["value"] is not None]
    unit = alt.Scale(domain=[0.0, 1.0])
    diagonal = alt.Chart(_rows([{"score": 0.0, "rate": 0.0}, {"score": 1.0, "rate": 1.0}]))
    diagonal = diagonal.mark_line(strokeDash=[4, 3], color=_INK, opacity=0.55, strokeWidth=1)
    base = alt.Chart(_rows(rows)).encode(
        x=alt.X("mean_score:Q", title="mean score", scale=unit),
        color=_colour(_names(rows, "series"), GROUP_COLOURS),
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


def save_chart(chart: Any, path: str | Path) -> Path:
    """Write a chart as .svg, .png or .html."""
    file = Path(path)
    if file.suffix not in (".svg", ".png", ".html"):
        raise InputError(f"{file} must end in .svg, .png or .html.")
    with whole_file(file) as partial:
        chart.save(str(partial), format=file.suffix.removeprefix("."))
    return file
