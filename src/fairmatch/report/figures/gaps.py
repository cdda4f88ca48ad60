"""Figures about gaps: by measure, by pair of groups and by attribute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fairmatch.auditing.facts import AttributeFacts, Audit, Gap
from fairmatch.measures import MEASURES
from fairmatch.measures.real import IN_UNITS
from fairmatch.report.charts import Row
from fairmatch.report.figures.figure import (
    LIMITS,
    NOTE,
    Figure,
    Panel,
    group_labels,
    label,
    level,
    limits,
    model_column,
    model_labels,
    noted,
    panel,
)
from fairmatch.report.wording import (
    RELATIVE,
    compared_groups,
    gap_title,
    gap_words,
    group_words,
    told_apart,
)

# For every pair and attribute these gaps are drawn; the others stand in the table.
_DRAWN = "demographic_parity_gap", "mean_parity_gap", "true_positive_gap", "false_positive_gap"


def _facts(gap: Gap, names: dict[str, str]) -> dict[str, Any]:
    """Return a gap as the fields of a row."""
    first, second = (names.get(name, label(name)) for name in gap.groups or ("", ""))
    better = "" if not gap.signed else (second if gap.signed > 0 else first)
    if gap.favoured is not None:  # audits of earlier versions do not say it
        better = names.get(gap.favoured, label(gap.favoured))
    between = f"{first} – {second}" if gap.groups else ""
    return {"symbol": gap.symbol, **limits(gap), "between": between, "better": better}


def _in_order(gaps: Iterable[Gap]) -> list[str]:
    """Return the names of some gaps, in the order of the table of measures."""
    found = {gap.name for gap in gaps}
    return [*(name for name in MEASURES if name in found), *sorted(found - MEASURES.keys())]


def gap_figure(audits: Sequence[Audit]) -> Figure:
    """Return the figure of every gap with its interval; with many groups, of the largest."""
    models = model_labels(audits)
    names = group_labels(audits[0])
    rows: list[Row] = [
        {
            "name": gap.name,
            "label": gap_title(gap.name, audit),
            "series": models[audit.model_name],
            **_facts(gap, names),
            "meaning": gap_words(gap.name, audit),
            "method": gap.method,
        }
        for name in _in_order(gap for audit in audits for gap in audit.gaps)
        for audit in audits
        for gap in audit.gaps
        if gap.name == name
    ]
    many = any(audit.pair_gaps for audit in audits)
    columns = {
        "label": "gap",
        "symbol": "symbol",
        **model_column(audits),
        **LIMITS,
        **({"between": "between"} if many else {}),
        "better": "better off",
        "meaning": "what it is",
        "method": "interval",
        **NOTE,
    }
    return Figure(
        "The largest gap over pairs of groups" if many else "Gaps with their intervals",
        (
            "0 is alike. A bar that reaches 0 means that these people do not show a difference, "
            "not that there is none.",
        ),
        noted(rows, columns),
        rows,
        _in_units(audits, rows) if audits[0].scale == "real" else _panel(rows),
    )


def _panel(rows: Sequence[Row], name: str = "") -> tuple[Panel, ...]:
    return panel(rows, name, title="gap (0 = alike)")


def _in_units(audits: Sequence[Audit], rows: Sequence[Row]) -> tuple[Panel, ...]:
    """Return one chart of gaps in units, one of relative gaps and one of shares."""
    spread = audits[0].spread
    kinds: dict[str, Callable[[str], bool]] = {
        "In units of the target": lambda name: name in IN_UNITS,
        f"In standard deviations of the {spread.of if spread else 'target'}": lambda name: (
            name.startswith(RELATIVE)
        ),
        "As a share of the people": lambda name: name == "ks_parity_gap",
    }
    return tuple(
        one
        for title, belongs in kinds.items()
        for one in _panel([row for row in rows if belongs(row["name"])], title)
    )


def pair_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of gaps between each group and the reference.

    The two groups that lie farthest apart are in it too.
    """
    if not any(audit.pair_gaps for audit in audits):
        return None
    models, names = model_labels(audits), group_labels(audits[0])
    sizes = {group.label: group.n_rows for group in audits[0].groups}
    reference = audits[0].reference
    rows: list[Row] = []
    panels: tuple[Panel, ...] = ()
    for name in _in_order(gap for audit in audits for gap in audit.pair_gaps):
        own: list[Row] = []
        for audit in audits:
            # Pairs with the reference come first, and larger groups before smaller ones.
            order = sorted(
                (gap for gap in audit.pair_gaps if gap.name == name),
                key=lambda gap: (
                    reference not in (gap.groups or ()),
                    -min((sizes.get(one, 0) for one in gap.groups or ()), default=0),
                ),
            )
            for gap in order:
                others = [one for one in gap.groups or () if one != reference]
                pair = " – ".join(names[one] for one in others)
                own.append(
                    {
                        "measure": gap_title(name, audit),
                        "label": pair,
                        "series": models[audit.model_name],
                        **_facts(gap, names),
                    }
                )
        rows += own
        if name in _DRAWN:
            panels += panel(own, gap_title(name, audits[0]), title="gap (0 = alike)")
    columns = {"measure": "gap", "between": "between", "symbol": "symbol"}
    each = compared_groups(audits[0]).capitalize()
    compared = "" if reference is None else f" with {group_words(reference)}, the largest group"
    return Figure(
        "Pair by pair",
        (
            f"{each} is compared{compared}; where two other groups lie farthest apart, both "
            "are named.",
            f"The intervals of one measure hold for all pairs of groups at once, with "
            f"{level(audits)} confidence.",
        ),
        noted(
            rows,
            {**columns, **model_column(audits), **LIMITS, "better": "better off", **NOTE},
        ),
        rows,
        panels,
    )


def attribute_gap_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the largest gaps of each attribute, beside those of combinations."""
    if not audits[0].attributes:
        return None
    models = model_labels(audits)
    attributes = told_apart(attribute.name for attribute in audits[0].attributes)
    rows: list[Row] = []
    panels: tuple[Panel, ...] = ()
    for audit in audits:
        parts: list[tuple[str, Audit | AttributeFacts]] = [
            (f"by {attributes[part.name]}", part) for part in audit.attributes
        ]
        parts.append(("by their combinations", audit))
        own: list[Row] = []
        for name in _in_order(audit.gaps):
            for words, part in parts:
                found = [gap for gap in part.gaps if gap.name == name]
                names = told_apart(group.label for group in part.groups)
                own += [
                    {
                        "label": gap_title(name, audit),
                        "series": words,
                        "model": models[audit.model_name],
                        "drawn": name in _DRAWN,
                        **_facts(gap, names),
                    }
                    for gap in found
                ]
        rows += own
        title = models[audit.model_name] if len(audits) > 1 else ""
        panels += panel([row for row in own if row["drawn"]], title, title="gap (0 = alike)")
    columns = {"label": "gap", "series": "groups", **model_column(audits, "model"), **LIMITS}
    return Figure(
        "By attribute and by combination",
        (
            "The largest gap over the pairs of groups that one attribute makes, and over those of "
            "the combinations. Combinations are more and smaller groups, so their largest gap "
            "tends to be larger by chance too.",
        ),
        noted(rows, {**columns, "between": "between", "better": "better off", **NOTE}),
        rows,
        panels,
    )
