"""Charts for notebooks and files, made with Altair."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fairmatch.exceptions import InputError, MissingExtraError
from fairmatch.measures.registry import BOUNDED
from fairmatch.people.files import whole_file
from fairmatch.report.wording import shown_name

Row = Mapping[str, Any]

SERIES_COLOURS = ("#0b428d", "#c76417", "#388e5e", "#c776bd", "#241e21")
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def load_altair() -> Any:
    """Return Altair, or raise an error that names the extra. Call this before long work, too."""
    try:
        import altair as module
        import vl_convert  # noqa: F401  (renders the pictures)
    except ImportError as error:
        raise MissingExtraError(
            "Pictures need the report extra: pip install 'fairmatch[report]'."
        ) from error
    return module


def standalone(chart: Any, width: int = 520) -> Any:
    """Return a chart of this width, in the fonts of the report."""
    return (
        chart.properties(width=width, background="white")
        .configure(font=_FONT)
        .configure_axis(titleFontWeight="normal", tickCount=5)
        .configure_view(stroke=None)
    )


def save_chart(chart: Any, path: str | Path) -> Path:
    """Write a chart as .svg, .png or .html, and return the file."""
    file = Path(path)
    if file.suffix not in (".svg", ".png", ".html"):
        raise InputError(f"{file} must end in .svg, .png or .html. Name such a file.")
    with whole_file(file) as partial:
        chart.save(str(partial), format=file.suffix.removeprefix("."))
    return file


def _base(rows: Sequence[Row], *tips: str) -> Any:
    """Return a chart of some rows with a colour per series, and what the pointer shows."""
    alt = load_altair()
    series = list(dict.fromkeys(row["series"] for row in rows))
    colours = [SERIES_COLOURS[k % len(SERIES_COLOURS)] for k in range(len(series))]
    legend = alt.Legend(title=None, orient="top", columns=1) if len(series) > 1 else None
    scale = alt.Scale(domain=series, range=colours)
    return alt.Chart(alt.Data(values=[dict(row) for row in rows])).encode(
        color=alt.Color("series:N", sort=None, scale=scale, legend=legend),
        tooltip=[alt.Tooltip(tip, format=".3f" if tip.endswith(":Q") else "") for tip in tips],
    )


def interval_chart(rows: Sequence[Row], *, title: str) -> Any:
    """Draw numbers as dots with their intervals as bars.

    Rows have ``label``, ``series``, ``value``, ``low`` and ``high``; without limits there is no
    bar.
    """
    alt = load_altair()
    base = _base(rows, "label:N", "series:N", "value:Q", "low:Q", "high:Q").encode(
        y=alt.Y("label:N", sort=None, title=None, axis=alt.Axis(labelLimit=260)),
        yOffset=alt.YOffset("series:N", sort=None),
    )
    bars = base.transform_filter("isValid(datum.low) && isValid(datum.high)")
    bars = bars.mark_rule(strokeWidth=4, opacity=0.38).encode(x="low:Q", x2="high:Q")
    place = alt.X("value:Q", title=title, scale=alt.Scale(zero=True))
    return alt.layer(bars, base.mark_point(filled=True, size=90, opacity=1.0).encode(x=place))


def curve_chart(rows: Sequence[Row], *, slack: float = 0.005) -> Any:
    """Draw the position of the nearest matching against the mean score gap that is allowed.

    Rows have ``series``, ``gap``, ``slack`` and ``position``, one for each point of a curve. Points
    with the given slack are marked.
    """
    alt = load_altair()
    base = _base(rows, "series:N", "gap:Q", "slack:Q", "position:Q").encode(
        x=alt.X("gap:Q", title="mean score gap of matched people", scale=alt.Scale(zero=True)),
        y=alt.Y("position:Q", title="distance: 0 = nearest, 1 = random"),
    )
    marks = base.transform_filter(f"abs(datum.slack - {slack}) < 1e-9")
    marks = marks.mark_point(filled=True, size=110, opacity=1.0)
    return alt.layer(base.mark_line(strokeWidth=2).encode(order="slack:Q"), marks)


def tradeoff_chart(
    rows: Sequence[Row], *, title: str, chosen: float | None = None, beside: bool = False
) -> Any:
    """Draw accuracy against a gap, whose axis has a title.

    Rows have ``gap``, ``accuracy``, ``label``, ``series`` and ``weight``. Rows of a series that
    have a weight are joined in its order, and those with the chosen weight are marked. Labels are
    written beside the points if ``beside`` is true.
    """
    alt = load_altair()
    base = _base(rows, "label:N", "accuracy:Q", "gap:Q").encode(
        x=alt.X("gap:Q", title=title, scale=alt.Scale(zero=True)),
        y=alt.Y("accuracy:Q", scale=alt.Scale(zero=False)),
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
        layers.append(words.encode(text="label:N", color=alt.value("black")))
    return alt.layer(*layers)


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
    return f"{BOUNDED[gap].title} ({BOUNDED[gap].symbol})"
