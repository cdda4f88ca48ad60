"""Figures about the distribution of scores in every group."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from fairmatch.auditing.facts import Audit, GroupFacts
from fairmatch.report.charts import (
    GROUP_COLOURS,
    Row,
    cell_chart,
    cumulative_chart,
    finished,
    step_chart,
)
from fairmatch.report.figures.figure import (
    Figure,
    Panel,
    group_labels,
    model_column,
    model_labels,
)
from fairmatch.report.wording import by_size, outcome_words, selected_from, shown_name

# Scores that leave this share of the intervals between them empty take few values.
_FEW_VALUES = 0.33


def score_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the scores of all groups; None if every group is too small."""
    if not any(map(_stated, audits)):
        return None
    rows: list[Row] = []
    panels: list[Panel] = []
    for audit in audits:
        name = model_labels(audits)[audit.model_name] if len(audits) > 1 else ""
        own = _rows(audit)
        # The table leaves out intervals that hold nobody.
        filled = {row["low"] for row in own if row["people"]}
        rows += [{"model": name, **row} for row in own if row["low"] in filled]
        panels += _panels(audit, own, name)
    few = any(takes_few_values(audit) for audit in audits)
    what = _axis(audits[0])
    reading = [f"The share of each group's people in every interval of {what}s."]
    if few:
        reading.append(
            f"{what.capitalize()}s that take few values are drawn without the intervals between "
            "them."
        )
    elif audits[0].threshold is not None:
        rules = dict.fromkeys(f"{outcome_words(audit)}: {selected_from(audit)}" for audit in audits)
        reading.append(
            f"The dashed line is the threshold ({'; '.join(rules)}). Where many people stand close "
            "to it, a small change of the model changes many decisions."
        )
    if any(len(_stated(audit)) < len(audit.groups) for audit in audits):
        reading.append("Groups with too few people for a statement are left out.")
    return Figure(
        f"{what.capitalize()}s of every group",
        tuple(reading),
        {
            **model_column(audits, "model"),
            "series": "group",
            "low": f"{what} from",
            "high": "to",
            "people": "people",
            "share": "share",
            "cumulative": "share up to here",
        },
        rows,
        tuple(panels),
        beside_reference(audits[0]),
    )


def beside_reference(audit: Audit) -> dict[str, str]:
    """Return the legend of charts that show one of many groups beside the largest."""
    if len(_stated(audit)) <= 2:
        return {}
    words = "the group named above the chart", f"{shown_name(_reference(audit))}, the largest group"
    return dict(zip(words, GROUP_COLOURS, strict=True))


def _reference(audit: Audit) -> str:
    return audit.reference or by_size(audit.groups)[0].label


def _stated(audit: Audit) -> list[GroupFacts]:
    """Return the groups that are large enough for a statement, the largest first."""
    return [group for group in by_size(audit.groups) if group.mean_score.value is not None]


def takes_few_values(audit: Audit) -> bool:
    """Return whether the scores leave so many intervals empty that they look like a comb."""
    totals = [
        sum(group.score_counts[k] for group in audit.groups)
        for k in range(len(audit.score_edges) - 1)
    ]
    return is_comb(totals, sum(totals))


def is_comb(totals: Sequence[float], n_people: int) -> bool:
    """Return whether a histogram of so many people leaves many intervals empty."""
    filled = [k for k, total in enumerate(totals) if total]
    span = range(filled[0], filled[-1] + 1) if filled else range(0)
    empty = sum(totals[k] == 0 for k in span)
    # A handful of people leaves gaps between any scores.
    return len(span) > 2 and n_people >= 3 * len(span) and empty >= _FEW_VALUES * len(span)


def filled_cells(rows: Sequence[Row], values: Sequence[float]) -> list[Row]:
    """Return the intervals that hold people. An interval with a single number gets that number.

    Parameters
    ----------
    rows : sequence of mappings
        With ``low``, ``high`` and ``share``.
    values : sequence of float
        The numbers that occur, if they are known.
    """
    filled = {row["low"] for row in rows if row["share"]}
    end = max(row["high"] for row in rows)
    return [{**row, "only": _only(row, values, end)} for row in rows if row["low"] in filled]


def _only(row: Row, values: Sequence[float], end: float) -> float | None:
    """Return the number of an interval that holds a single one, or None if it may hold several."""
    low, high = row["low"], row["high"]
    noise = 1e-6 * (high - low)
    # The last interval holds its upper end too.
    own = [v for v in values if v >= low - noise and (v < high - noise or high == end)]
    return own[0] if own and max(own) - min(own) <= noise else None


def _rows(audit: Audit) -> list[Row]:
    rows: list[Row] = []
    names = group_labels(audit)
    ends = list(zip(audit.score_edges, audit.score_edges[1:], strict=False))
    for group in _stated(audit):
        shares = [count / max(group.n_rows, 1) for count in group.score_counts]
        cells = zip(ends, group.score_counts, shares, accumulate(shares), strict=False)
        rows += [
            {
                "series": names[group.label],
                "low": low,
                "high": high,
                "people": count,
                "share": share,
                "cumulative": min(total, 1.0),
            }
            for (low, high), count, share, total in cells
        ]
    return rows


def _panels(audit: Audit, rows: list[Row], model: str) -> list[Panel]:
    names = group_labels(audit)
    groups = _stated(audit)
    reference = names[_reference(audit)]
    if len(groups) <= 2:
        drawn = [_spread(audit, rows, model)]
        if not takes_few_values(audit):
            what = _axis(audit)
            title = f"{model}: share at or below each {what}" if model else "Share at or below"
            drawn.append(Panel(finished(cumulative_chart(rows, title=what)), title))
        return drawn
    panels = []
    for group in groups:
        own = names[group.label]
        if own == reference:
            continue
        both = [row for row in rows if row["series"] in (own, reference)]
        # The group itself comes first, which gives it the same colour in every chart.
        both.sort(key=lambda row: row["series"] != own)
        panels.append(_spread(audit, both, f"{model}: {own}" if model else own))
    return panels


def _axis(audit: Audit) -> str:
    return "prediction" if audit.scale == "real" else "score"


def _spread(audit: Audit, rows: list[Row], title: str) -> Panel:
    few = len(_stated(audit)) <= 2
    if takes_few_values(audit):
        cells = filled_cells(rows, audit.score_values)
        return Panel(finished(cell_chart(cells, title=_axis(audit)), legend=few), title)
    marks = {} if audit.threshold is None else {"threshold": audit.threshold}
    chart = step_chart(rows, title=_axis(audit), colours=GROUP_COLOURS, references=marks)
    return Panel(finished(chart, legend=few), title or "Share in each interval")
