"""Charts, as Vega-Lite specifications made with Altair."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from fairmatch.exceptions import InputError, MissingExtraError
from fairmatch.measures import MEASURES
from fairmatch.people.files import whole_file
from fairmatch.report.wording import shown_name

Row = Mapping[str, Any]

GROUP_COLOURS = "var(--group-1)", "var(--group-2)"
SERIES_COLOURS = tuple(f"var(--series-{k})" for k in range(1, 6))

INK, FAINT = "var(--ink)", "var(--rule)"
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def load_altair() -> Any:
    """Return Altair, or raise an error that names the extra to install."""
    try:
        import altair as module
        import vl_convert  # noqa: F401  (renders the pictures)
    except ImportError as error:
        raise MissingExtraError(
            "Pictures need the report extra: pip install 'fairmatch[report]'."
        ) from error
    return module


def require_charts() -> None:
    """Raise unless pictures can be drawn. Call this before a long computation."""
    load_altair()


def finished(chart: Any, *, legend: bool = True) -> dict[str, Any]:
    """Return the specification of a chart as wide as its place, in the page's colours."""
    # The tests draw these specifications. Checking them against the schema here would take longer
    # than the rest of the report.
    spec: dict[str, Any] = chart.properties(width="container", title="").to_dict(validate=False)
    spec.pop("title", None)
    quiet = {"labelColor": "var(--soft)", "titleColor": "var(--soft)", "labelFont": _FONT}
    spec["config"] = {
        "aria": False,  # the page has a name and a table; a label for every mark is noise
        "background": "transparent",
        "font": _FONT,
        "view": {"stroke": None},
        "axis": {
            **quiet,
            "titleFont": _FONT,
            "titleFontWeight": "normal",
            "labelFontSize": 12,
            "titleFontSize": 12,
            "domainColor": FAINT,
            "tickColor": FAINT,
            "gridColor": FAINT,
            "gridOpacity": 0.6,
            "titlePadding": 8,
            "tickCount": 5,
        },
        "legend": {
            **quiet,
            "labelFontSize": 12,
            "labelLimit": 260,
            "symbolOpacity": 1,
        },
        "text": {"color": INK, "font": _FONT, "fontSize": 12},
    }
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    if not legend:
        for part in (spec, *spec.get("layer", [])):
            if "scale" in part.get("encoding", {}).get("color", {}):
                part["encoding"]["color"]["legend"] = None
    return spec


def chart_rows(rows: Sequence[Row]) -> Any:
    """Return rows as the data of a chart."""
    return load_altair().Data(values=[dict(row) for row in rows])


def colour(series: Sequence[str], colours: Sequence[str], symbol: str = "circle") -> Any:
    """Return the colours of some series, with a legend where there is more than one."""
    alt = load_altair()
    legend = None
    if len(series) > 1:
        legend = alt.Legend(title=None, orient="top", columns=1, symbolType=symbol, offset=6)
    # If there are more series than colours, colours repeat; labels and table tell series apart.
    colours = [colours[k % len(colours)] for k in range(len(series))]
    scale = alt.Scale(domain=list(series), range=colours)
    return alt.Color("series:N", sort=None, scale=scale, legend=legend)


def names(rows: Sequence[Row], field: str) -> list[str]:
    """Return the different values of a field, in their order."""
    return list(dict.fromkeys(row[field] for row in rows))


def labels_above(row_names: Sequence[str], limit: str = "width") -> Any:
    """Return a layer of labels, each above the marks of its row."""
    alt = load_altair()
    return (
        alt.Chart(chart_rows([{"label": name} for name in row_names]))
        .mark_text(align="left", baseline="middle", limit=alt.expr(limit))
        .encode(
            y=alt.Y("label:N", sort=None),
            yOffset=alt.YOffsetDatum(""),
            x=alt.value(0),
            text="label:N",
            tooltip=alt.Tooltip("label:N", title="name"),
        )
    )


def reference_lines(marks: Mapping[str, float]) -> list[Any]:
    """Return a layer of dashed lines at some numbers, in a list; empty without numbers."""
    if not marks:
        return []
    alt = load_altair()
    lines = alt.Chart(chart_rows([{"name": name, "at": at} for name, at in marks.items()]))
    lines = lines.mark_rule(strokeDash=[4, 3], color=INK, opacity=0.55)
    return [lines.encode(x="at:Q", tooltip=[alt.Tooltip("name:N"), alt.Tooltip("at:Q")])]


def standalone(chart: Any, width: int = 520) -> Any:
    """Return a chart for use outside a page, with the page's light colours.

    Parameters
    ----------
    chart : altair chart
        A chart in the colours of the page, which are variables.
    width : int, default=520
        Width in pixels.

    Examples
    --------
    >>> from fairmatch.report.charts import interval_chart
    >>> rows = [{"label": "a", "series": "m", "value": 0.5, "low": 0.4, "high": 0.6}]
    >>> "var(--" in standalone(interval_chart(rows, title="share")).to_json(validate=False)
    False
    """
    spec = finished(chart)
    spec["width"] = width
    text = json.dumps(spec)
    for name, value in _light_colours().items():
        text = text.replace(f"var(--{name})", value)
    spec = json.loads(text)
    spec["config"]["background"] = "white"
    return type(chart).from_dict(spec, validate=False)


@cache
def _light_colours() -> dict[str, str]:
    """Return the light colours of the page, from its style sheet."""
    style = files("fairmatch.report").joinpath("assets", "style.css").read_text("utf-8")
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]+);", style.split("@media")[0]))


def save_chart(chart: Any, path: str | Path) -> Path:
    """Write a chart as .svg, .png or .html, and return the file."""
    file = Path(path)
    if file.suffix not in (".svg", ".png", ".html"):
        raise InputError(f"{file} must end in .svg, .png or .html. Name such a file.")
    with whole_file(file) as partial:
        chart.save(str(partial), format=file.suffix.removeprefix("."))
    return file


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
