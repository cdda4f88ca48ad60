"""A figure of the report: one table of facts, its chart, and how to read both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairmatch.auditing.facts import Audit, Estimate
from fairmatch.report.charts import (
    Row,
    finished,
    interval_chart,
)
from fairmatch.report.wording import shown_name


@dataclass(frozen=True)
class Figure:
    """One table of facts, its chart, and how to read both.

    Attributes
    ----------
    title : str
        What it shows.
    reading : tuple of str
        How to read it, with the caveats.
    columns : dict
        Field of the rows to the heading of its column.
    rows : list of mappings
        The facts.
    chart : dict or None
        A Vega-Lite specification; None where there is nothing to draw.
    wide : bool
        Whether it takes the whole width of the page.
    """

    title: str
    reading: tuple[str, ...]
    columns: dict[str, str]
    rows: list[Row]
    chart: dict[str, Any] | None
    wide: bool = False


# Names in charts are cut here, in tables not at all.
_LONGEST = 60


LIMITS = {"value": "estimate", "low": "from", "high": "to"}


NOTE = {"note": "note"}


def label(name: str) -> str:
    """Give a name from the data as it stands in a chart."""
    return shown_name(name, _LONGEST)


def limits(fact: Estimate) -> dict[str, Any]:
    """Give an estimate as the fields of a row."""
    return {"value": fact.value, "low": fact.low, "high": fact.high, "note": fact.refused or ""}


def level(audits: Sequence[Audit]) -> str:
    """Give the level of the intervals."""
    return f"{audits[0].confidence:.0%}"


def noted(rows: Iterable[Mapping[str, Any]], columns: dict[str, str]) -> dict[str, str]:
    """Leave the column of notes out where there are none."""
    noted = any(row.get("note") for row in rows)
    return {key: words for key, words in columns.items() if noted or key != "note"}


def intervals(rows: list[Row], **options: Any) -> dict[str, Any] | None:
    """Draw dots with intervals; nothing where no statement is made."""
    if all(row["value"] is None for row in rows):
        return None
    return finished(interval_chart(rows, **options))
