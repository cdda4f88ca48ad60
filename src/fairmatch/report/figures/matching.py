"""Figures about matched people: how far apart they are, and how their scores differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairmatch.auditing.facts import Audit, MatchedScores, Matching, PairFlips
from fairmatch.report.charts import (
    CONTRIBUTION_COLOURS,
    SERIES_COLOURS,
    Row,
    cell_chart,
    contribution_chart,
    finished,
    step_chart,
)
from fairmatch.report.figures.figure import (
    FEW_PANELS,
    Figure,
    Panel,
    group_labels,
    limits,
    model_column,
    model_labels,
    panel,
)
from fairmatch.report.figures.scores import filled_cells, is_comb
from fairmatch.report.wording import (
    MATCHINGS,
    column_words,
    n_people,
    other_words,
    outcome_words,
    told_apart,
)

# Most bars in a chart that is alone, and in one of several. The table below it shows all.
_MOST_BARS, _FEW_BARS = 12, 6


def pair_label(audit: Audit, matching: Matching) -> str:
    """Return the groups of a matching for a chart; with many groups, without the reference."""
    names = group_labels(audit)
    many = len(audit.matchings) > 1
    shown = [one for one in matching.groups or () if not many or one != audit.reference]
    return " – ".join(names.get(one, one) for one in shown)


def in_order(audit: Audit) -> list[Matching]:
    """Return the matchings of an audit, with those of larger groups first."""
    sizes = {group.label: group.n_rows for group in audit.groups}
    return sorted(
        audit.matchings, key=lambda m: -min((sizes.get(g, 0) for g in m.groups or ()), default=0)
    )


def sampled(audits: Sequence[Audit]) -> str:
    """Return a sentence on how many people were matched."""
    matched = [m for m in audits[0].matchings if not m.refused]
    least, most = (f(min(m.n_sampled) for m in matched) for f in (min, max))
    if not any(m.is_sample for m in matched):
        return "Everybody in these groups was matched."
    if len(matched) == 1:
        first, second = matched[0].n_sampled
        return f"A random sample of {first:,} and {n_people(second)} of the two groups was matched."
    return (
        f"At most {max(max(m.n_sampled) for m in matched):,} people of a group were matched, drawn "
        f"at random; the smaller group of a pair has {least:,} to {most:,}."
    )


def transport_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of how far apart people at the same rank are.

    Only matchings without a nearest fair matching are in it.
    """
    models = model_labels(audits)
    rows: list[Row] = []
    for audit in audits:
        for matching in in_order(audit):
            if (found := matching.transport) is None or matching.nearest_fair is not None:
                continue
            tied = found.cost_high > found.cost * (1.0 + 1e-6)
            rows.append(
                {
                    "label": pair_label(audit, matching),
                    "series": models[audit.model_name],
                    "value": found.relative,
                    "low": found.relative if tied else None,
                    "high": found.relative_high if tied else None,
                    "cost": found.cost,
                    "smallest": found.smallest,
                    "random": found.random,
                    "undetermined": found.undetermined,
                }
            )
    if not rows:
        return None
    ends = [row["high"] or row["value"] or 0.0 for row in rows]
    tied = any(row["low"] is not None for row in rows)
    return Figure(
        "How far apart are people at the same rank?",
        (
            "0 means as near to each other as any matching of the two groups can make them, 1 no "
            "nearer than people paired at random, and more than 1 farther apart than that.",
            "A bar is the range that tied scores leave open, not a confidence interval."
            if tied
            else "",
            sampled(audits),
        ),
        {
            "label": "groups",
            **model_column(audits),
            "value": "relative distance",
            **({"low": "from (ties)", "high": "to (ties)"} if tied else {}),
            "cost": "mean squared distance",
            "smallest": "nearest possible",
            "random": "random",
            "undetermined": "share tied",
        },
        rows,
        panel(
            rows,
            title="0 = as near as possible, 1 = as random",
            references={"as random": 1.0},
            domain=(min([0.0, *(row["value"] or 0.0 for row in rows)]), max([1.2, *ends]) * 1.04),
        ),
    )


def feature_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the columns that set matched people apart."""
    rows: list[Row] = []
    panels: list[Panel] = []
    matched = [
        (a, m, found.features)
        for a in audits
        for m in in_order(a)
        if (found := m.nearest_fair or m.transport) is not None and found.features
    ]
    most = _MOST_BARS if len(matched) == 1 else _FEW_BARS
    more = 0
    for audit, matching, features in matched:
        names = told_apart((part.name for part in features), column_words)
        own: list[Row] = [
            {
                "label": names[part.name],
                "groups": pair_label(audit, matching),
                "model": model_labels(audits)[audit.model_name],
                "cost": part.cost,
                "smallest": part.smallest,
                "random": part.random,
                "share": part.share,
            }
            for part in features
        ]
        more = max(more, len(own) - most)
        rows += own
        title = [audit.model_name] * (len(audits) > 1)
        title += [pair_label(audit, matching)] * (len(audit.matchings) > 1)
        chart = contribution_chart(own[:most], title="mean squared distance")
        legend = len(matched) <= FEW_PANELS
        panels.append(Panel(finished(chart, legend=legend), ": ".join(title)))
    if not rows:
        return None
    return Figure(
        "What sets them apart",
        (
            "How much each column adds to the squared distance of people matched by their scores. "
            "The marks show the same for the nearest possible and for a random matching: compare a "
            "bar with its marks, not with other bars, since a column with many categories adds "
            "much under any matching."
            + (" Columns that add less are only in the table." if more > 0 else ""),
        ),
        {
            "label": "column",
            **({"groups": "groups"} if len(audits[0].matchings) > 1 else {}),
            **model_column(audits, "model"),
            "cost": "matched by scores",
            "smallest": "nearest possible",
            "random": "random",
            "share": "share of the total",
        },
        rows,
        tuple(panels),
        CONTRIBUTION_COLOURS if len(panels) > FEW_PANELS else {},
    )


def matched_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the score gaps of matched people."""
    rows: list[Row] = []
    panels: list[Panel] = []
    matched = [(a, m) for a in audits for m in in_order(a) if m.matched_gaps]
    kinds = {found.matching for _, m in matched for found in m.matched_gaps}
    words = [name for kind, name in MATCHINGS.items() if kind in kinds]
    for audit, matching in matched:
        names = group_labels(audit)
        first, second = (names.get(one, one) for one in matching.groups or ("first", "second"))
        rows += [
            {
                "series": MATCHINGS.get(match.matching, match.matching),
                "groups": pair_label(audit, matching),
                "model": model_labels(audits)[audit.model_name],
                **limits(match.gap),
                "median": match.quantiles.get("0.5"),
                "high95": match.quantiles.get("0.95"),
                "flips": None
                if match.flips is None
                else match.flips.first_only + match.flips.second_only,
                "favoured": _favoured(match.flips, first, second),
                "cost": match.transport_cost,
            }
            for match in _ordered(matching)
        ]  # fmt: skip
        title = [audit.model_name] * (len(audits) > 1)
        title += [pair_label(audit, matching)] * (len(audit.matchings) > 1)
        bins = _bins(matching, audit.score_edges[-1] - audit.score_edges[0])
        named: dict[str, Any] = {"title": "score gap of a pair", "of": "pairs"}
        if _takes_few_gaps(matching):
            gaps = [abs(one - other) for one in audit.score_values for other in audit.score_values]
            chart = cell_chart(filled_cells(bins, gaps), colours=SERIES_COLOURS, **named)
        else:
            chart = step_chart(_trimmed(bins), **named)
        legend = len(matched) <= FEW_PANELS
        panels.append(Panel(finished(chart, legend=legend), ": ".join(title)))
    if not rows:
        return None
    decides = audits[0].threshold is not None
    selected, other = outcome_words(audits[0]), other_words(audits[0])
    several = any(len(m.matched_gaps) > 1 for a in audits for m in a.matchings)
    reading = [
        "The score gap between two matched people, over all pairs. "
        + (f"A flip is a pair in which one is {selected} and the other is {other}. " * decides)
        + "Intervals take the pairs as given."
    ]
    if several:
        reading.append(
            "A large score gap between people who are matched by their columns is a question to "
            "ask of the model, not proof of unequal treatment: what the table lacks may differ."
        )
    transport = any(m.transport for a in audits for m in a.matchings)
    return Figure(
        "Score gaps of matched people",
        tuple(reading),
        {
            "series": "people",
            **({"groups": "groups"} if len(audits[0].matchings) > 1 else {}),
            **model_column(audits, "model"),
            "value": "mean gap",
            "low": "from",
            "high": "to",
            "median": "median gap",
            "high95": "95% are below",
            **({"flips": "flips", "favoured": f"more often the one {selected}"} if decides else {}),
            **({"cost": "mean squared distance"} if transport else {}),
        },
        rows,
        tuple(panels),
        dict(zip(words, SERIES_COLOURS, strict=False)) if len(panels) > FEW_PANELS else {},
    )


def _favoured(flips: PairFlips | None, first: str, second: str) -> str:
    if flips is None or abs(flips.first_only - flips.second_only) < 1e-9:
        return "neither"
    return f"{first if flips.first_only > flips.second_only else second}"


def _ordered(matching: Matching) -> list[MatchedScores]:
    """Return the matchings of two groups in the order of their words."""
    order = list(MATCHINGS)
    return sorted(matching.matched_gaps, key=lambda match: order.index(match.matching))


def _bins(matching: Matching, span: float) -> list[Row]:
    """Return the histograms of score gaps, which run from 0 to the range of the scores."""
    return [
        {
            "series": MATCHINGS.get(match.matching, match.matching),
            "low": span * (k / len(match.histogram)),
            "high": span * ((k + 1) / len(match.histogram)),
            "share": share,
        }
        for match in _ordered(matching)
        for k, share in enumerate(match.histogram)
    ]


def _takes_few_gaps(matching: Matching) -> bool:
    """Return whether the gaps leave so many intervals empty that they look like a comb."""
    histograms = (matched.histogram for matched in matching.matched_gaps)
    totals = [sum(shares) for shares in zip(*histograms, strict=True)]
    return is_comb(totals, sum(matching.n_sampled))


def _trimmed(bins: list[Row]) -> list[Row]:
    """Return a histogram without its empty end."""
    end = max((row["high"] for row in bins if row["share"] > 0.0), default=1.0)
    return [row for row in bins if row["high"] <= end * (1.0 + 1e-9)]
