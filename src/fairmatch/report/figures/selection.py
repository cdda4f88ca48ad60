"""Figures about who is selected, by group and by attribute."""

from __future__ import annotations

from collections.abc import Sequence

from fairmatch.auditing.facts import AttributeFacts, Audit, Estimate, GroupFacts
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
from fairmatch.report.wording import by_size, outcome_words, shown_name, told_apart

_COLUMNS = {"label": "group", "people": "people"}
_RATIO = {"ratio": "ratio to the most selected"}


def selection_figure(audits: Sequence[Audit]) -> Figure:
    """Return the figure of the share of each group that is selected."""
    rows = [
        row
        for audit in audits
        for row in _rows(audit.groups, audit.unknown, model_labels(audits)[audit.model_name])
    ]
    ratios = [f"{_start(audit, audits)}{said}" for audit in audits if (said := _ratio(audit))]
    said = outcome_words(audits[0])
    return Figure(
        f"Share {said} of each group",
        (
            f"A dot is the share of people {said}; the bar is its {level(audits)} confidence "
            "interval.",
            *ratios,
        ),
        noted(
            rows,
            {**_COLUMNS, **_weighed(rows), **model_column(audits), **LIMITS, **_RATIO, **NOTE},
        ),
        rows,
        panel(rows, title=f"share {said}", domain=(0.0, 1.0)),
    )


def _rows(groups: Sequence[GroupFacts], unknown: Sequence[str], model: str) -> list[Row]:
    """Return one row per group, the largest first."""
    names = told_apart(group.label for group in groups)
    known = [g.selection_rate.value for g in groups if g.label not in unknown]
    most = max((rate for rate in known if rate is not None), default=0.0)
    rows: list[Row] = []
    for group in by_size(tuple(groups)):
        rate, compared = group.selection_rate.value, group.label not in unknown
        facts = limits(group.selection_rate)
        if not compared:
            facts["note"] = facts["note"] or "shown, and compared with nobody"
        rows.append(
            {
                "label": names[group.label],
                "series": model,
                "people": group.n_rows,
                "weight": group.weight,
                "effective": group.effective_size,
                **facts,
                "ratio": rate / most if rate is not None and most > 0.0 and compared else None,
            }
        )
    return rows


def _weighed(rows: Sequence[Row]) -> dict[str, str]:
    """Return the columns for weights, if weights are not numbers of people."""
    columns = {"weight": "sum of weights", "effective": "worth people of equal weight"}
    return {
        key: words
        for key, words in columns.items()
        if any(row[key] not in (None, row["people"]) for row in rows)
    }


def _start(audit: Audit, audits: Sequence[Audit]) -> str:
    return f"{shown_name(audit.model_name)}: the" if len(audits) > 1 else "The"


def _ratio(facts: Audit | AttributeFacts) -> str:
    """Return the end of the sentence on the ratio of selection rates, if it is stated."""
    ratio: Estimate = facts.selection_ratio
    if ratio.value is None or ratio.low is None or ratio.high is None:
        return ""
    known = [group for group in facts.groups if group.label not in facts.unknown]
    stated = [group for group in known if group.selection_rate.value is not None]
    of = f" of {len(stated)} of the {len(known)} groups" if len(stated) < len(known) else ""
    return (
        f" smallest rate{of} is {ratio.value:.2f} of the largest ({ratio.low:.2f} to "
        f"{ratio.high:.2f})."
    )


def attribute_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the share of each group that is selected, for every attribute."""
    if not audits[0].attributes:
        return None
    models = model_labels(audits)
    names = told_apart(attribute.name for attribute in audits[0].attributes)
    rows: list[Row] = []
    panels: tuple[Panel, ...] = ()
    for k, (name, shown) in enumerate(names.items()):
        own = [
            {"attribute": shown, **row}
            for audit in audits
            for row in _rows(
                audit.attributes[k].groups, audit.attributes[k].unknown, models[audit.model_name]
            )
        ]
        rows += own
        panels += panel(own, f"By {shown}", title=f"share {outcome_words(audits[0])}",
                        domain=(0.0, 1.0))  # fmt: skip
        assert audits[0].attributes[k].name == name
    ratios = [
        f"By {names[attribute.name]}{_of(audit, audits)}, the{said}"
        for audit in audits
        for attribute in audit.attributes
        if (said := _ratio(attribute))
    ]
    columns = {"attribute": "attribute", **_COLUMNS, **model_column(audits), **LIMITS}
    return Figure(
        "Each attribute by itself",
        (
            "The groups of one attribute at a time; the first figure shows their combinations. "
            "Each attribute can look even while the combinations do not.",
            *ratios,
        ),
        noted(rows, {**columns, **_RATIO, **NOTE}),
        rows,
        panels,
    )


def _of(audit: Audit, audits: Sequence[Audit]) -> str:
    return f" under {shown_name(audit.model_name)}" if len(audits) > 1 else ""
