"""Figures about the mean predictions of groups."""

from __future__ import annotations

from collections.abc import Sequence

from fairmatch.auditing.facts import Audit, GroupFacts
from fairmatch.report.charts import Row
from fairmatch.report.figures.figure import (
    LIMITS,
    NOTE,
    Figure,
    Panel,
    level,
    limits,
    model_column,
    model_labels,
    noted,
    panel,
)
from fairmatch.report.wording import by_size, told_apart

_COLUMNS = {"label": "group", "people": "people"}


def mean_figure(audits: Sequence[Audit]) -> Figure:
    """Return the figure of the mean prediction of each group."""
    models = model_labels(audits)
    rows = [
        row
        for audit in audits
        for row in _rows(audit.groups, audit.unknown, models[audit.model_name])
    ]
    return Figure(
        "Mean prediction of each group",
        (
            f"A dot is the mean of the predictions; the bar is its {level(audits)} confidence "
            "interval.",
        ),
        noted(rows, {**_COLUMNS, **model_column(audits), **LIMITS, **NOTE}),
        rows,
        _panel(rows),
    )


def attribute_mean_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the mean prediction of each group, for every attribute by itself."""
    if not audits[0].attributes:
        return None
    models = model_labels(audits)
    names = told_apart(attribute.name for attribute in audits[0].attributes)
    rows: list[Row] = []
    panels: tuple[Panel, ...] = ()
    for k, shown in enumerate(names.values()):
        own = [
            {"attribute": shown, **row}
            for audit in audits
            for row in _rows(
                audit.attributes[k].groups, audit.attributes[k].unknown, models[audit.model_name]
            )
        ]
        rows += own
        panels += _panel(own, f"By {shown}")
    columns = {"attribute": "attribute", **_COLUMNS, **model_column(audits), **LIMITS, **NOTE}
    return Figure(
        "Each attribute by itself",
        (
            "The groups of one attribute at a time; the first figure shows their combinations. "
            "Each attribute can look even while the combinations do not.",
        ),
        noted(rows, columns),
        rows,
        panels,
    )


def _rows(groups: Sequence[GroupFacts], unknown: Sequence[str], model: str) -> list[Row]:
    """Return one row per group, the largest first."""
    names = told_apart(group.label for group in groups)
    rows: list[Row] = []
    for group in by_size(tuple(groups)):
        facts = limits(group.mean_score)
        if group.label in unknown:
            facts["note"] = facts["note"] or "shown, and compared with nobody"
        own = {"label": names[group.label], "series": model, "people": group.n_rows}
        rows.append({**own, **facts})
    return rows


def _panel(rows: Sequence[Row], name: str = "") -> tuple[Panel, ...]:
    """Return a chart over the range of the means, which need not begin at 0."""
    ends = [row[end] for row in rows for end in LIMITS if row[end] is not None]
    if not ends:
        return ()
    margin = 0.04 * (max(ends) - min(ends)) or 0.04 * abs(ends[0]) or 1.0
    domain = min(ends) - margin, max(ends) + margin
    return panel(rows, name, title="mean prediction", domain=domain)
