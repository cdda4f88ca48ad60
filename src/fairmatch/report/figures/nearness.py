"""Figures about the distance between people who are matched by their scores."""

from __future__ import annotations

from collections.abc import Sequence

from fairmatch.auditing.facts import Audit, Matching
from fairmatch.report.charts import SERIES_COLOURS, Row, curve_chart, finished
from fairmatch.report.figures.figure import (
    FEW_PANELS,
    LIMITS,
    Figure,
    Panel,
    group_labels,
    limits,
    model_column,
    model_labels,
    panel,
)
from fairmatch.report.figures.matching import in_order, pair_label, sampled
from fairmatch.report.summary import reach_sentences
from fairmatch.report.wording import is_drawn


def position_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the position of each nearest fair matching.

    The position is 0 at the nearest matching and 1 at a random one.
    """
    models = model_labels(audits)
    rows: list[Row] = [
        {
            "label": pair_label(audit, matching),
            "series": models[audit.model_name],
            "value": found.position,
            "low": None,
            "high": None,
            "strict": found.strict_position,
            "rank": matching.transport.relative if matching.transport else None,
            "gap": found.score_gap,
            "least": found.least_gap,
            "cost": found.cost,
            "smallest": found.smallest,
            "random": found.random,
        }
        for audit in audits
        for matching in in_order(audit)
        if (found := matching.nearest_fair) is not None
    ]
    if not rows:
        return None
    top = max([1.0, *(row["value"] or 0.0 for row in rows)]) * 1.04
    return Figure(
        "How far apart are people matched by their scores?",
        (
            "0 means as near to each other as any matching of the two groups can make them, 1 no "
            "nearer than people paired at random. A higher number means that the model reaches its "
            "score gap by giving like scores to people who are less alike.",
            sampled(audits),
        ),
        {
            "label": "groups",
            **model_column(audits),
            "value": "position",
            "strict": "without slack",
            "rank": "same rank instead",
            "gap": "mean score gap",
            "least": "least possible",
            "cost": "mean squared distance",
            "smallest": "nearest possible",
            "random": "random",
        },
        rows,
        panel(
            rows,
            title="0 = as near as possible, 1 = as random",
            references={"as random": 1.0},
            domain=(min([0.0, *(row["value"] or 0.0 for row in rows)]), top),
        ),
    )


def curve_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of every model's curve: how near people can be at each score gap."""
    rows: list[Row] = []
    panels: list[Panel] = []
    by_pair: dict[str, list[Row]] = {}
    slack = 0.0
    for audit in audits:
        for matching in in_order(audit):
            if matching.nearest_fair is None or matching.nearest_fair.position is None:
                continue
            slack = matching.nearest_fair.slack
            own = _points(audit, matching, model_labels(audits)[audit.model_name])
            rows += own
            by_pair.setdefault(pair_label(audit, matching), []).extend(own)
    if not rows:
        return None
    several = len(by_pair) > FEW_PANELS
    top = max([0.05, *(row["position"] for row in rows)])
    for pair, own in by_pair.items():
        chart = finished(curve_chart(own, slack=slack, top=top), legend=not several)
        panels.append(Panel(chart, pair if len(by_pair) > 1 else ""))
    names = list(model_labels(audits).values())
    return Figure(
        "How near can matched people be?",
        (
            "Each curve begins at the least mean score gap that a matching can have, and ends at "
            "the nearest matching of all. The farther a curve lies to the left and below, the "
            "nearer are the people who are matched by their scores.",
            f"The dot is the matching that is shown: its mean score gap is at most {slack:.3g} "
            "above the least.",
        ),
        {
            **model_column(audits),
            **({"groups": "groups"} if len(by_pair) > 1 else {}),
            "gap": "mean score gap",
            "position": "position",
            "cost": "mean squared distance",
            "shown": "shown",
        },
        rows,
        tuple(panels),
        dict(zip(names, SERIES_COLOURS, strict=False)) if several and len(names) > 1 else {},
    )


def _points(audit: Audit, matching: Matching, model: str) -> list[Row]:
    found = matching.nearest_fair
    assert found is not None
    pair = pair_label(audit, matching)
    points: list[tuple[float, float, float | None, float, str]] = [
        (point.gap, point.gap - found.least_gap, point.position, point.cost, "")
        for point in found.curve
        if point.position is not None
    ]
    points.append((found.score_gap, found.slack, found.position, found.cost, "dot"))
    return [
        {
            "series": model,
            "groups": pair,
            "gap": gap,
            "slack": slack,
            "position": position,
            "cost": cost,
            "shown": shown,
        }
        for gap, slack, position, cost, shown in sorted(points, key=lambda point: point[0])
    ]


def reach_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the share of people with a near person who is scored alike."""
    models = model_labels(audits)
    rows: list[Row] = []
    reading: list[str] = []
    for audit in audits:
        names = group_labels(audit)
        found = [reach for matching in in_order(audit) for reach in matching.reach]
        for reach in found:
            own, other = (names.get(name, name) for name in (reach.group, reach.other))
            rows.append(
                {
                    "label": f"{own}, with {other}",
                    "series": models[audit.model_name],
                    **limits(reach.share),
                    "near": reach.has_near.value,
                    "distance": reach.distance,
                    "alike": reach.score_gap,
                }
            )
        if len(found) <= 2:
            of = f"{models[audit.model_name]}: " if len(audits) > 1 else ""
            reading += [of + said for m in in_order(audit) for said in reach_sentences(m)]
    if not rows:
        return None
    among = ", both taken among those who were drawn" if any(map(is_drawn, audits)) else ""
    return Figure(
        "Is somebody near scored alike?",
        (
            *reading,
            "Near is the distance within which nine in ten people of the two groups have somebody "
            f"of the other group{among}. Alike is a score gap of at most {rows[0]['alike']:.3g}.",
        ),
        {
            "label": "people",
            **model_column(audits),
            **LIMITS,
            "near": "have somebody near",
            "distance": "near: squared distance up to",
            "alike": "alike: score gap up to",
        },
        rows,
        panel(rows, title="share of the group's people", domain=(0.0, 1.0)),
    )
