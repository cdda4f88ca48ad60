"""Charts, as Vega-Lite specifications made with Altair."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from fairmatch.exceptions import InputError, MissingExtraError
from fairmatch.measures import MEASURES
from fairmatch.people.files import whole_file
from fairmatch.report.wording import resource, shown_name

Row = Mapping[str, Any]

GROUP_COLOURS = "var(--group-1)", "var(--group-2)"
SERIES_COLOURS = tuple(f"var(--series-{k})" for k in range(1, 6))

INK, FAINT = "var(--ink)", "var(--rule)"
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


# The three matchings under which a column adds to a distance, and their colours.
CONTRIBUTION_COLOURS = {
    "matched by scores": SERIES_COLOURS[0],
    "nearest possible": "var(--group-2)",
    "random": "var(--soft)",
}
_RANGE = [("low:Q", "from", ".3g"), ("high:Q", "to", ".3g")]
_SHARE = ("share:Q", "share", ".1%")


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
    spec: dict[str, Any] = chart.properties(width="container").to_dict(validate=False)
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
        "legend": {**quiet, "labelFontSize": 12, "labelLimit": 260, "symbolOpacity": 1},
        "text": {"color": INK, "font": _FONT, "fontSize": 12},
    }
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    if not legend:
        for part in (spec, *spec.get("layer", [])):
            if "scale" in part.get("encoding", {}).get("color", {}):
                part["encoding"]["color"]["legend"] = None
    return spec


def standalone(chart: Any, width: int = 520) -> Any:
    """Return a chart for use outside a page, with the page's light colours.

    Examples
    --------
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
    style = resource("style.css").split("@media")[0]
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]+);", style))


def save_chart(chart: Any, path: str | Path) -> Path:
    """Write a chart as .svg, .png or .html, and return the file."""
    file = Path(path)
    if file.suffix not in (".svg", ".png", ".html"):
        raise InputError(f"{file} must end in .svg, .png or .html. Name such a file.")
    with whole_file(file) as partial:
        chart.save(str(partial), format=file.suffix.removeprefix("."))
    return file


def _base(rows: Sequence[Row], *fields: str) -> Any:
    """Return an empty chart of some rows; of their fields if any are named."""
    kept = [{key: row[key] for key in fields or row} for row in rows]
    return load_altair().Chart(load_altair().Data(values=kept))


def _different(rows: Sequence[Row], field: str) -> list[str]:
    """Return the different values of a field, in their order."""
    return list(dict.fromkeys(row[field] for row in rows))


def _colour(series: Sequence[str], colours: Sequence[str], symbol: str = "circle") -> Any:
    """Return the colours of some series, with a legend where there is more than one."""
    alt = load_altair()
    legend = None
    if len(series) > 1:
        legend = alt.Legend(title=None, orient="top", columns=1, symbolType=symbol, offset=6)
    # If there are more series than colours, colours repeat; labels and table tell series apart.
    colours = [colours[k % len(colours)] for k in range(len(series))]
    scale = alt.Scale(domain=list(series), range=colours)
    return alt.Color("series:N", sort=None, scale=scale, legend=legend)


def _tips(*fields: tuple[str, str] | tuple[str, str, str]) -> list[Any]:
    """Return what is shown under the pointer: fields with their titles and formats."""
    alt = load_altair()
    options = ("title", "format")
    return [alt.Tooltip(own, **dict(zip(options, rest, strict=False))) for own, *rest in fields]


def _labels_above(labels: Sequence[str]) -> Any:
    """Return a layer of labels, each above the marks of its row."""
    alt = load_altair()
    marks = _base([{"label": name} for name in labels])
    return marks.mark_text(align="left", baseline="middle", limit=alt.expr("width")).encode(
        y=alt.Y("label:N", sort=None),
        yOffset=alt.YOffsetDatum(""),
        x=alt.value(0),
        text="label:N",
        tooltip=alt.Tooltip("label:N", title="name"),
    )


def _reference_lines(marks: Mapping[str, float] | None) -> list[Any]:
    """Return a layer of dashed lines at some numbers, in a list; empty without numbers."""
    if not marks:
        return []
    lines = _base([{"name": name, "at": at} for name, at in marks.items()])
    lines = lines.mark_rule(strokeDash=[4, 3], color=INK, opacity=0.55)
    return [lines.encode(x="at:Q", tooltip=[*map(load_altair().Tooltip, ("name:N", "at:Q"))])]


def interval_chart(
    rows: Sequence[Row],
    *,
    title: str,
    colours: Sequence[str] = SERIES_COLOURS,
    references: Mapping[str, float] | None = None,
    domain: tuple[float, float] | None = None,
) -> Any:
    """Draw numbers as dots with their intervals as bars, with a label above each.

    Rows have ``label``, ``series``, ``value``, ``low`` and ``high``. A row without a value is left
    out, and a row without limits has no bar. The axis runs over the domain, or from 0 to the
    largest number. References are words with numbers, drawn as dashed lines.
    """
    alt = load_altair()
    rows = [row for row in rows if row["value"] is not None]
    if domain is None:
        ends = [row[end] for row in rows for end in ("value", "high") if row[end] is not None]
        domain = 0.0, max([*ends, *(references or {}).values(), 0.01]) * 1.04
    series, labels = _different(rows, "series"), _different(rows, "label")
    base = _base(rows, "label", "series", "value", "low", "high").encode(
        y=alt.Y(
            "label:N",
            sort=None,
            axis=alt.Axis(labels=False, ticks=False, domain=False, title=None),
            scale=alt.Scale(paddingInner=0.15, paddingOuter=0.05),
        ),
        yOffset=alt.YOffset("series:N", sort=None, scale=alt.Scale(domain=["", *series])),
        color=_colour(series, colours),
        tooltip=_tips(
            ("label:N", "what"),
            ("series:N", "of"),
            ("value:Q", "value", ".3f"),
            ("low:Q", "from", ".3f"),
            ("high:Q", "to", ".3f"),
        ),
    )
    scale = alt.Scale(domain=list(domain), nice=False, zero=False)
    bars = (
        base.transform_filter("isValid(datum.low) && isValid(datum.high)")
        .mark_rule(strokeWidth=4, opacity=0.38, strokeCap="round", clip=True)
        .encode(x=alt.X("low:Q", title=title, scale=scale), x2="high:Q")
    )
    dots = base.mark_point(filled=True, size=90, opacity=1.0)
    dots = dots.encode(x=alt.X("value:Q", title=title, scale=scale))
    layers = [*_reference_lines(references), _labels_above(labels), bars, dots]
    return alt.layer(*layers).properties(height=(24 + 16 * len(series)) * len(labels) + 10)


def contribution_chart(rows: Sequence[Row], *, title: str) -> Any:
    """Draw what each column adds as a bar, with marks for the nearest and a random matching.

    Rows have ``label``, ``cost``, ``smallest`` and ``random``.
    """
    alt = load_altair()
    kinds = dict(zip(("cost", "smallest", "random"), CONTRIBUTION_COLOURS, strict=True))
    long = [
        {"label": row["label"], "series": words, "value": row[kind]}
        for row in rows
        for kind, words in kinds.items()
    ]
    axis = alt.Axis(labels=False, ticks=False, domain=False, title=None)
    base = _base(long).encode(
        y=alt.Y("label:N", sort=None, axis=axis, scale=alt.Scale(paddingInner=0.1)),
        yOffset=alt.YOffset("part:N", scale=alt.Scale(domain=["", "bar"])),
        x=alt.X("value:Q", title=title),
        color=_colour(list(CONTRIBUTION_COLOURS), list(CONTRIBUTION_COLOURS.values()), "square"),
        tooltip=_tips(
            ("label:N", "column"),
            ("series:N", "matching"),
            ("value:Q", "mean squared distance", ".3f"),
        ),
    )
    base = base.transform_calculate(part="'bar'")
    bars = base.transform_filter(alt.datum.series == kinds["cost"]).mark_bar(opacity=0.6, height=9)
    ticks = base.transform_filter(alt.datum.series != kinds["cost"])
    ticks = ticks.mark_tick(thickness=3, size=15, opacity=1.0)
    layers = [_labels_above(_different(rows, "label")), bars, ticks]
    return alt.layer(*layers).properties(height=36 * len(rows) + 10)


def curve_chart(rows: Sequence[Row], *, slack: float = 0.005, top: float | None = None) -> Any:
    """Draw the position of the nearest matching against the mean score gap that is allowed.

    Rows have ``series``, ``gap``, ``slack`` and ``position``, one for each point of a curve. Points
    with the given slack are marked, and so are points whose ``shown`` is "dot". The vertical axis
    ends at ``top``, or at the highest point.
    """
    alt = load_altair()
    places = [row["position"] for row in rows]
    end = max([0.05, *places] if top is None else [top]) * 1.06
    base = _base(rows).encode(
        x=alt.X("gap:Q", title="mean score gap of matched people", scale=alt.Scale(zero=True)),
        y=alt.Y(
            "position:Q",
            title="distance: 0 = nearest, 1 = random",
            scale=alt.Scale(domain=[min([0.0, *places]), end], nice=False),
        ),
        color=_colour(_different(rows, "series"), SERIES_COLOURS),
        tooltip=_tips(
            ("series:N", "model"),
            ("gap:Q", "mean score gap", ".3f"),
            ("slack:Q", "above the least", ".3f"),
            ("position:Q", "distance", ".3f"),
        ),
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

    Rows have ``low``, ``high``, ``series`` and ``share``, which is a share of what ``of`` names.
    References are words with numbers, drawn as dashed lines.
    """
    alt = load_altair()
    last = {row["series"]: row for row in rows}.values()
    top = max(row["share"] for row in rows)
    base = _base([*rows, *({**row, "low": row["high"]} for row in last)]).encode(
        x=alt.X("low:Q", title=title, scale=alt.Scale(nice=False, zero=False)),
        y=alt.Y(
            "share:Q",
            stack=None,
            title=f"share of {of}",
            axis=alt.Axis(format=".0%", tickCount=4),
            scale=alt.Scale(domain=[0.0, max(top, 0.01) * 1.05]),
        ),
        color=_colour(_different(rows, "series"), colours, "square"),
    )
    fill = base.mark_area(interpolate="step-after", opacity=0.12, line=False)
    line = base.mark_line(interpolate="step-after", strokeWidth=2)
    hover = _base(rows).mark_rect(opacity=0)
    hover = hover.encode(
        x="low:Q",
        x2="high:Q",
        y=alt.Y("share:Q", stack=None),
        y2=alt.datum(0),
        tooltip=_tips(("series:N", "of"), *_RANGE, _SHARE),
    )
    return alt.layer(*_reference_lines(references), fill, line, hover).properties(height=190)


def cell_chart(
    rows: Sequence[Row],
    *,
    title: str,
    of: str = "people",
    colours: Sequence[str] = GROUP_COLOURS,
) -> Any:
    """Draw a histogram of few values as bars side by side, without the empty intervals.

    Rows have ``low``, ``high``, ``series`` and ``share``, and ``only`` where an interval holds one
    number.
    """
    alt = load_altair()
    series = _different(rows, "series")
    last = max(row["high"] for row in rows)
    ordered = sorted(rows, key=lambda row: float(row["low"]))
    words = {row["low"]: _cell_words(row, last) for row in ordered}
    ranges = any(row.get("only") is None for row in rows)
    where = _RANGE if ranges else [("cell:O", title)]
    base = _base([{**row, "cell": words[row["low"]]} for row in rows]).mark_bar(opacity=0.8)
    return base.encode(
        x=alt.X(
            "cell:O",
            sort=list(words.values()),
            title=f"{title}, from" if ranges else title,
            axis=alt.Axis(labelAngle=0, labelOverlap=True),
        ),
        xOffset=alt.XOffset("series:N", sort=None, scale=alt.Scale(domain=series)),
        y=alt.Y("share:Q", title=f"share of {of}", axis=alt.Axis(format=".0%", tickCount=4)),
        color=_colour(series, colours, "square"),
        tooltip=_tips(("series:N", "of"), *where, _SHARE),
    ).properties(height=190)


def _cell_words(row: Row, last: float) -> str:
    """Return how an interval is named: by its only number, or else by where it begins.

    An interval is without its upper end, but the last has both of its ends.
    """
    if (only := row.get("only")) is not None:
        return f"{only:.3g}"
    return f"{row['low']:.3g}" + (f"–{last:.3g}" if row["high"] == last else "")


def cumulative_chart(rows: Sequence[Row], *, title: str) -> Any:
    """Draw the share of each group that lies at or below every number.

    Rows have ``low``, ``high``, ``series`` and ``cumulative``. The curves begin at the least
    ``low``.
    """
    alt = load_altair()
    series = _different(rows, "series")
    least = min(row["low"] for row in rows)
    start = [{"high": least, "series": name, "cumulative": 0.0} for name in series]
    base = _base([*start, *rows]).encode(
        x=alt.X("high:Q", title=title, scale=alt.Scale(zero=False)),
        y=alt.Y("cumulative:Q", title="share at or below", axis=alt.Axis(format=".0%")),
        color=_colour(series, GROUP_COLOURS, "square"),
        tooltip=_tips(
            ("series:N", "of"),
            ("high:Q", f"{title} up to", ".3g"),
            ("cumulative:Q", "share", ".1%"),
        ),
    )
    return base.mark_line(strokeWidth=2, point={"size": 28, "filled": True}).properties(height=190)


def calibration_chart(rows: Sequence[Row], within: tuple[float, float] | None = None) -> Any:
    """Draw the share of positive labels against the mean score, in intervals of the score.

    Rows have ``series``, ``mean_score``, ``value``, ``low``, ``high`` and ``n_rows``. Scores that
    are no probabilities have a range of their own, and no diagonal.
    """
    alt = load_altair()
    rows = [row for row in rows if row["value"] is not None]
    unit = alt.Scale(domain=[0.0, 1.0])
    diagonal = _base([{"score": 0.0, "rate": 0.0}, {"score": 1.0, "rate": 1.0}])
    diagonal = diagonal.mark_line(strokeDash=[4, 3], color=INK, opacity=0.55, strokeWidth=1)
    base = _base(rows).encode(
        x=alt.X("mean_score:Q", title="mean score", scale=alt.Scale(domain=within or [0.0, 1.0])),
        color=_colour(_different(rows, "series"), GROUP_COLOURS),
        tooltip=_tips(
            ("series:N", "group"),
            ("n_rows:Q", "people", ","),
            ("mean_score:Q", "mean score", ".3f"),
            ("value:Q", "share positive", ".3f"),
            ("low:Q", "from", ".3f"),
            ("high:Q", "to", ".3f"),
        ),
    )
    share = alt.Y("value:Q", title="share positive", scale=unit)
    bars = base.mark_rule(strokeWidth=3, opacity=0.3).encode(
        y=alt.Y("low:Q", title="share positive"), y2="high:Q"
    )
    line = base.mark_line(strokeWidth=1.5, opacity=0.6).encode(y=share)
    dots = base.mark_point(filled=True, size=60, opacity=1.0).encode(y=share)
    layers = [bars, line, dots]
    if within is None:
        layers.insert(0, diagonal.encode(x="score:Q", y="rate:Q"))
    return alt.layer(*layers).properties(height=260)


def tradeoff_chart(
    rows: Sequence[Row], *, title: str, chosen: float | None = None, beside: bool = False
) -> Any:
    """Draw accuracy against a gap, with a title of its axis.

    Rows have ``gap``, ``accuracy``, ``label``, ``series`` and ``weight``. Rows of a series that
    have a weight are joined in its order, and those with the chosen weight are marked. Labels are
    written beside the points if ``beside`` is true.
    """
    alt = load_altair()
    colour = _colour(_different(rows, "series"), SERIES_COLOURS)
    base = _base(rows, "gap", "accuracy", "label", "series", "weight").encode(
        x=alt.X("gap:Q", title=title, scale=alt.Scale(zero=True)),
        y=alt.Y("accuracy:Q", scale=alt.Scale(zero=False)),
        color=colour,
        tooltip=_tips(
            ("label:N", "model"),
            ("accuracy:Q", "accuracy", ".3f"),
            ("gap:Q", "gap", ".3f"),
        ),
    )
    layers = [base.mark_point(filled=True, opacity=1.0, size=60)]
    if any(row["weight"] is not None for row in rows):
        joined = base.transform_filter("isValid(datum.weight)")
        layers = [joined.mark_line(strokeWidth=1.5).encode(order="weight:Q"), *layers]
    if chosen is not None:
        marked = base.transform_filter(f"datum.weight === {chosen!r}")
        marked = marked.mark_point(filled=True, opacity=1.0, size=160)
        layers.append(marked.encode(color=alt.value(SERIES_COLOURS[1])))
    if beside:
        words = base.mark_text(align="left", dx=8, dy=-6)
        layers.append(words.encode(text="label:N", color=alt.value(INK)))
    return alt.layer(*layers).properties(height=300)


def tradeoff_rows(points: pd.DataFrame, gap: str) -> list[Row]:
    """Return the rows of a trade-off from a table with ``accuracy`` and the gap.

    A column ``model`` names models, and a column ``fairness_weight`` makes each of them a path.
    Models without a path share a colour.
    """
    named, weighted = "model" in points, "fairness_weight" in points
    rows: list[Row] = []
    for point in points.to_dict("records"):
        weight = point["fairness_weight"] if weighted else None
        weight = None if weight is None or pd.isna(weight) else float(weight)
        model = shown_name(str(point["model"]), 60) if named else ""
        rows.append(
            {
                "gap": float(point[gap]),
                "accuracy": float(point["accuracy"]),
                "label": ", ".join(
                    filter(None, [model, "" if weight is None else f"weight {weight:g}"])
                ),
                "series": model if weighted else "",
                "weight": weight,
            }
        )
    return rows


def gap_axis(gap: str) -> str:
    """Return the title of an axis of gaps."""
    return f"{MEASURES[gap].title} ({MEASURES[gap].symbol})"
