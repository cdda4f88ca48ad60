"""What all charts share: Altair, colours, rows, and the specification for a page."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from fairmatch.exceptions import InputError, MissingExtraError
from fairmatch.storage.atomic import whole_file

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
