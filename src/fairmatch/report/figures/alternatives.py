"""The search for less discriminatory alternatives: everything that was tried."""

from __future__ import annotations

from typing import Any

from fairmatch.auditing.facts.alternatives import Alternative, Alternatives
from fairmatch.auditing.facts.estimates import Estimate
from fairmatch.measures import MEASURES
from fairmatch.report.charts import Row, finished, scatter_chart
from fairmatch.report.figures.figure import Figure, Panel, label
from fairmatch.report.wording import shown_name

# How the points of each verdict are called in the picture.
_SERIES = {"yes": "less discriminatory", "not shown": "not shown", "no": "other"}


def alternatives_figure(found: Alternatives) -> Figure:
    """Return the figure of accuracy against the gap for everything that was tried."""
    title = MEASURES[found.gap_measure].title.lower()
    points: list[Row] = [
        _point(found.baseline, found.accuracy, found.gap, "baseline"),
        *(_point(one.name, one.accuracy, one.gap, _SERIES[one.verdict]) for one in found.tried),
    ]
    return Figure(
        "Everything that was tried",
        (
            f"A model counts as accurate as the baseline if it is shown to be less accurate by at "
            f"most {found.margin:g}, and its gap counts as smaller if the whole interval of the "
            f"change lies below 0. The {found.confidence:.0%} intervals hold for all "
            f"{len(found.tried)} models at once.",
            "“No” means that one of the two is shown to be false, and “not shown” that the people "
            "are too few to tell.",
            f"The gap is that of {title}, the largest over pairs of groups. Newly selected are "
            f"people whom {shown_name(found.baseline)} does not select and the model does.",
        ),
        {
            "name": "model",
            "accuracy": "accuracy",
            "accuracy_change": "change of accuracy",
            "gap": "gap",
            "gap_change": "change of the gap",
            "gained": "newly selected",
            "lost": "no longer selected",
            "verdict": "less discriminatory",
        },
        [_baseline_row(found), *map(_row, found.tried)],
        (Panel(finished(scatter_chart(points, x=f"gap of {title}", y="accuracy"))),),
    )


def _point(name: str, accuracy: float, gap: float, kind: str) -> Row:
    return {"label": label(name), "x": gap, "y": accuracy, "series": kind}


def _baseline_row(found: Alternatives) -> Row:
    row: dict[str, Any] = {"name": f"{found.baseline} (baseline)", "accuracy": found.accuracy}
    blank = dict.fromkeys(("accuracy_change", "gap_change", "gained", "lost", "verdict"), "")
    return {**row, "gap": found.gap, **blank}


def _row(one: Alternative) -> Row:
    return {
        "name": one.name,
        "accuracy": one.accuracy,
        "accuracy_change": _signed(one.accuracy_change),
        "gap": one.gap,
        "gap_change": _signed(one.gap_change),
        "gained": _people(one.gained),
        "lost": _people(one.lost),
        "verdict": one.verdict_words(),
    }


def _signed(change: Estimate) -> str:
    return f"{change.value:+.3f} ({change.low:+.3f} to {change.high:+.3f})"


def _people(counts: dict[str, int]) -> str:
    return ", ".join(f"{shown_name(group)} {n:,}" for group, n in counts.items())
