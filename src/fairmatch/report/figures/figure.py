"""The figures of the report: one table of facts each, its charts, and how to read both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairmatch.auditing.facts import Audit, Estimate, Gap
from fairmatch.report.charts import Row, finished, interval_chart
from fairmatch.report.wording import n_people, shown_name, told_apart


@dataclass(frozen=True)
class Panel:
    """One chart of a figure.

    Attributes
    ----------
    chart : dict
        A Vega-Lite specification.
    title : str
        Title of the chart among others of the figure; empty if it is the only one.
    """

    chart: dict[str, Any]
    title: str = ""


@dataclass(frozen=True)
class Figure:
    """One table of facts, its charts, and how to read both.

    Attributes
    ----------
    title : str
        What the figure shows.
    reading : tuple of str
        How to read the figure, with the caveats.
    columns : dict
        Field of the rows to the heading of its column.
    rows : list of mappings
        The facts.
    panels : tuple of Panel
        The charts; empty where there is nothing to draw.
    legend : dict
        Words to colours, if the charts share a legend; otherwise each has its own.
    wide : bool
        Whether the figure takes the whole width of the page.
    """

    title: str
    reading: tuple[str, ...]
    columns: dict[str, str]
    rows: list[Row]
    panels: tuple[Panel, ...] = ()
    legend: dict[str, str] = field(default_factory=dict)
    wide: bool = True


# Up to this many charts have their own legends; more charts share one.
FEW_PANELS = 2

# Names in charts are cut at this length.
_LONGEST = 60


LIMITS = {"value": "estimate", "low": "from", "high": "to"}


NOTE = {"note": "note"}


def label(name: str) -> str:
    """Return a name from the data as it stands in a chart."""
    return shown_name(name, _LONGEST)


def group_labels(audit: Audit) -> dict[str, str]:
    """Return how each group is written in charts and tables."""
    return told_apart(group.label for group in audit.groups)


def model_labels(audits: Sequence[Audit]) -> dict[str, str]:
    """Return how each model is written in charts and tables."""
    return told_apart(audit.model_name for audit in audits)


def model_column(audits: Sequence[Audit], key: str = "series") -> dict[str, str]:
    """Return the column of models, which one model alone does not need."""
    return {key: "model"} if len(audits) > 1 else {}


def limits(fact: Estimate | Gap) -> dict[str, Any]:
    """Return an estimate as the fields of a row."""
    return {"value": fact.value, "low": fact.low, "high": fact.high, "note": fact.refused or ""}


def level(audits: Sequence[Audit]) -> str:
    """Return the level of the intervals."""
    return f"{audits[0].confidence:.0%}"


def least_people(audit: Audit) -> int:
    """Return the fewest people that a row may show: 1, unless the page is without individuals."""
    if audit.individuals is not None:
        return 1
    return int(audit.provenance.settings.get("min_group_size") or 1)


def too_few(number: int, least: int) -> str:
    """Return why a row of so few people is not shown."""
    return f"{n_people(number)}, fewer than the {least} a statement needs"


def noted(rows: Iterable[Mapping[str, Any]], columns: dict[str, str]) -> dict[str, str]:
    """Return the columns, without the column of notes if there are none."""
    noted = any(row.get("note") for row in rows)
    return {key: words for key, words in columns.items() if noted or key != "note"}


def panel(rows: Sequence[Row], name: str = "", **options: Any) -> tuple[Panel, ...]:
    """Return a chart of dots with intervals, or none if no statement is made."""
    stated = [row for row in rows if row["value"] is not None]
    return (Panel(finished(interval_chart(stated, **options)), name),) if stated else ()
