"""The columns of the table, and how each was read."""

from __future__ import annotations

from collections.abc import Sequence

from fairmatch.auditing.facts import Audit
from fairmatch.report.charts import Row
from fairmatch.report.figures.figure import Figure


def column_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of how every column was read: a table without a chart."""
    columns = audits[0].columns
    if not columns:
        return None
    rows: list[Row] = [
        {
            "name": column.name,
            "role": column.role,
            "type": column.type,
            "distinct": column.n_distinct,
            "missing": column.n_missing,
            "why": column.why,
            "doubt": column.doubt,
        }
        for column in columns
    ]
    headings = {
        "name": "column",
        "role": "read as",
        "type": "holds",
        "distinct": "different values",
        "missing": "missing",
        "why": "why",
        "doubt": "look at",
    }
    if not any(row["doubt"] for row in rows):
        del headings["doubt"]
    return Figure("The columns", (), headings, rows)
