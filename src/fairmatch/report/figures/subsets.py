"""Figures about subsets of people, found by a search or drawn at random."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairmatch.auditing.facts import Audit
from fairmatch.report.charts import Row, finished, step_chart
from fairmatch.report.figures.figure import (
    NOTE,
    Figure,
    Panel,
    group_labels,
    limits,
    model_column,
    model_labels,
    noted,
    panel,
)
from fairmatch.report.summary import certain, surest_first
from fairmatch.report.wording import group_words, shown_number, subset_name

# How many bars a chart shows; the table below it shows all.
_MOST_BARS = 12


def subset_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the subsets whose gaps are surest."""
    rows: list[Row] = []
    panels: tuple[Panel, ...] = ()
    reading: list[str] = []
    drawn = False
    for audit in audits:
        if audit.subsets is None:
            continue
        own = _rows(audit, model_labels(audits)[audit.model_name])
        rows += own
        overall = audit.gap("mean_parity_gap").value
        name = model_labels(audits)[audit.model_name] if len(audits) > 1 else ""
        panels += panel(
            [row for row in own if row["value"] is not None][:_MOST_BARS],
            name,
            title="gap between mean scores",
            references={} if overall is None else {"gap over everybody": overall},
        )
        if own or not audit.subsets.refused:
            reading.append((f"{name}: " if name else "") + _searched(audit, own))
        drawn = drawn or (overall is not None and any(row["value"] is not None for row in own))
        reading += audit.subsets.refused
    if drawn:
        many = any(len(audit.matchings) > 1 for audit in audits)
        which = "largest gap of two groups" if many else "gap"
        reading.append(f"The dashed line is the {which} over everybody.")
    if not reading:
        return None
    columns = {
        "label": "subset",
        **model_column(audits, "model"),
        "value": "gap on fresh rows",
        "low": "from",
        "high": "to",
        "all": "gap on all rows",
        "higher": "higher in group",
        "lower": "lower in group",
        "people": "people",
        **NOTE,
    }
    return Figure(
        "Subsets with the surest gaps", tuple(reading), noted(rows, columns), rows, panels
    )


def _rows(audit: Audit, model: str) -> list[Row]:
    assert audit.subsets is not None
    names = group_labels(audit)
    many = len(audit.matchings) > 1
    rows: list[Row] = []
    for subset in surest_first(audit.subsets.subsets):
        labels = subset.groups or tuple(group.label for group in audit.groups[:2])
        first, second = ((names.get(g, g), n) for g, n in zip(labels, subset.n_rows, strict=False))
        higher, lower = (second, first) if subset.signed > 0 else (first, second)
        between = f" ({higher[0]} – {lower[0]})" if many else ""
        alike = shown_number(subset.gap) == shown_number(0.0)
        rows.append(
            {
                "label": f"{subset_name(subset)}{between}",
                "series": "on fresh rows",
                "model": model,
                **limits(subset.confirmed),
                "certain": certain(subset),
                "all": subset.gap,
                "higher": "neither" if alike else higher[0],
                "lower": "neither" if alike else lower[0],
                "people": f"{higher[1]:,} {higher[0]}, {lower[1]:,} {lower[0]}",
            }
        )
    return rows


def _searched(audit: Audit, rows: list[Row]) -> str:
    """Return sentences on the search, and on how many of the listed gaps are certain."""
    scan = audit.subsets
    assert scan is not None
    looked = (
        f"{scan.n_examined:,} subsets were looked at on {scan.n_search:,} rows; the gaps shown are "
        f"of {scan.n_confirm:,} other rows."
    )
    if not rows:
        return f"{looked} No subset is listed."
    stated = [row for row in rows if row["value"] is not None]
    sure = sum(bool(row["certain"]) for row in stated)
    said = f"{len(rows)} are listed" if len(rows) > 1 else "1 is listed"
    if len(stated) < len(rows):
        said += f", {len(stated)} of them with people enough for a statement on fresh rows"
    said += f"; the interval leaves 0 out in {sure or 'none'}"
    drawn = min(len(stated), _MOST_BARS)
    if drawn < len(stated):
        said += f". The chart shows the first {drawn}"
    return f"{looked} {said}."


def half_space_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of gaps in random subsets, next to those of shuffled groups."""
    rows: list[Row] = []
    panels: list[Panel] = []
    n_empty = 0
    for audit in audits:
        if audit.subsets is None or not audit.subsets.half_spaces.gaps:
            continue
        found = audit.subsets.half_spaces
        n_empty = max(n_empty, found.n_empty)
        drawn = {"this model": found.gaps, "groups shuffled": found.noise}
        edges = np.linspace(0.0, max(max(found.gaps), max(found.noise, default=0.0)) or 1.0, 21)
        bins: list[Row] = []
        for name, gaps in drawn.items():
            shares = np.histogram(gaps, bins=edges)[0] / max(len(gaps), 1)
            bins += [
                {"series": name, "low": low, "high": high, "share": share}
                for low, high, share in zip(
                    edges.tolist(), edges[1:].tolist(), shares.tolist(), strict=False
                )
            ]
        model = model_labels(audits)[audit.model_name]
        rows += [
            {
                "series": name,
                "model": model,
                "n": len(gaps),
                **{f"q{q}": float(np.quantile(gaps, q / 100)) for q in (50, 95, 100)},
            }
            for name, gaps in drawn.items()
            if gaps
        ]
        chart = step_chart(bins, title="gap between mean scores", of="subsets")
        panels.append(Panel(finished(chart), model if len(audits) > 1 else ""))
    if not rows:
        return None
    return Figure(
        "Gaps in random subsets",
        (
            f"Each of many random cuts through the table keeps some people; this is {_gap(audits)} "
            "among them.",
            "Small subsets have gaps by chance alone. The second outline shows how large, with the "
            "group labels shuffled among people: only what lies to its right speaks of the model."
            + (f" {_empty(audits[0], n_empty)}" if n_empty else ""),
        ),
        {
            "series": "groups",
            **model_column(audits, "model"),
            "n": "subsets",
            "q50": "median",
            "q95": "95% below",
            "q100": "largest",
        },
        rows,
        tuple(panels),
    )


def _empty(audit: Audit, n_empty: int) -> str:
    """Return how many random subsets had no two groups to compare."""
    cuts, are = ("1 cut", "is") if n_empty == 1 else (f"{n_empty:,} cuts", "are")
    if len(audit.matchings) < 2 or audit.reference is None:
        return f"{cuts} kept nobody of one group and {are} left out."
    largest = group_words(audit.reference)
    return f"{cuts} kept nobody of {largest}, or nobody of any other group, and {are} left out."


def _gap(audits: Sequence[Audit]) -> str:
    """Return the words for the gap that is measured in a random subset."""
    if len(audits[0].matchings) < 2 or audits[0].reference is None:
        return "the gap between the groups' mean scores"
    largest = group_words(audits[0].reference)
    return f"the largest gap between a group's mean score and that of {largest}"
