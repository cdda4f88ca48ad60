"""Figures about several models: side by side, changed decisions, the trade-off."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from fairmatch.auditing.facts import Audit, Comparison
from fairmatch.exceptions import InputError
from fairmatch.measures import MEASURES
from fairmatch.report.charts import SERIES_COLOURS, Row, finished, tradeoff_chart
from fairmatch.report.figures.figure import (
    NOTE,
    Figure,
    Panel,
    group_labels,
    label,
    least_people,
    noted,
    panel,
    too_few,
)
from fairmatch.report.summary import certain
from fairmatch.report.wording import gap_title, shown_name


def side_by_side(audits: Sequence[Audit]) -> list[Figure]:
    """Return the figure of several models' estimates side by side; none for one model."""
    if len(audits) < 2:
        return []
    found = [_estimates(audit) for audit in audits]
    known = [words for words in found[0] if any(own.get(words) is not None for own in found)]
    # One column per model is easier to compare than one row per model.
    rows: list[Row] = [
        {"what": words, **{f"m{k}": own.get(words) for k, own in enumerate(found)}}
        for words in known
    ]
    names = [label(audit.model_name) for audit in audits]
    same = len({(a.provenance.groups_sha256, a.provenance.features_sha256) for a in audits}) == 1
    return [
        Figure(
            "All numbers side by side",
            (
                "Estimates without their intervals, which stand in the figures above: a small "
                "difference between two models may be chance.",
                ""
                if same
                else "The models were audited on different people, so a difference may come from "
                "the people and not from the model.",
            ),
            {"what": "measure", **{f"m{k}": name for k, name in enumerate(names)}},
            rows,
        )
    ]


def _estimates(audit: Audit) -> dict[str, float | int | None]:
    """Return the estimates of one model by their words; with many pairs, the largest."""
    gaps = {gap.name: gap.value for gap in audit.gaps}
    placed = [
        m.nearest_fair.position
        for m in audit.matchings
        if m.nearest_fair is not None and m.nearest_fair.position is not None
    ]
    return {
        "ratio of selection rates": audit.selection_ratio.value,
        **{
            f"gap: {gap_title(name, audit).lower()}": gaps.get(name)
            for name in dict.fromkeys([*MEASURES, *gaps])
        },
        "distance of people matched by their scores (0 = nearest, 1 = random)": max(
            placed, default=None
        ),
        "listed subsets with a sure gap": sum(map(certain, audit.subsets.subsets))
        if audit.subsets and not audit.subsets.refused
        else None,
        "accuracy": _overall_accuracy(audit),
    }


def _overall_accuracy(audit: Audit) -> float | None:
    parts = [
        (g.accuracy.value if g.accuracy else None, g.n_rows if g.weight is None else g.weight)
        for g in audit.groups
    ]
    stated = [(value, weight) for value, weight in parts if value is not None]
    if len(stated) < len(parts):
        return None
    return sum(value * weight for value, weight in stated) / sum(weight for _, weight in stated)


def changed_decisions(comparison: Comparison) -> list[Figure]:
    """Return the figure of decisions that differ from those of the reference model."""
    if comparison.audits[0].scale == "real":
        return [_agreement_figure(comparison)]
    rows: list[Row] = []
    bars: list[Row] = []
    names = group_labels(comparison.audits[0])
    sizes = {group.label: group.n_rows for group in comparison.audits[0].groups}
    least = least_people(comparison.audits[0])
    columns = {
        "label": "model",
        "series": "group",
        "lost": "no longer selected",
        "gained": "newly selected",
        "agreement": "rank agreement",
        **({} if comparison.privileged is None else {"undesirable": "undesirable flips"}),
        **NOTE,
    }
    for pair in comparison.pairs:
        for group in sorted(pair.decisions, key=lambda name: -sizes.get(name, 0)):
            _, lost, gained, _ = pair.decisions[group]
            total = max(sum(pair.decisions[group]), 1)
            own = names.get(group, group)
            if total < least:
                row = {"label": label(pair.model), "series": own, "note": too_few(total, least)}
                rows.append({**dict.fromkeys(columns), **row})
                continue
            who = f"{label(pair.model)}: {own}" if len(comparison.pairs) > 1 else own
            rows.append(
                {
                    "label": label(pair.model),
                    "series": own,
                    "lost": lost,
                    "gained": gained,
                    "agreement": pair.rank_agreement.get(group),
                    "undesirable": (pair.undesirable_flips or {}).get(group),
                    "note": "",
                }
            )
            bars += [
                {"label": who, "series": words, "value": n / total, "low": None, "high": None}
                for words, n in (("no longer selected", lost), ("newly selected", gained))
            ]
    reference = shown_name(comparison.audits[0].model_name)
    reading = [
        f"Decisions that differ from those of {reference}, as shares of each group, and how far "
        "the order of people within a group is the same (1 = the same order).",
    ]
    if comparison.privileged is not None:
        reading.append(
            f"With {shown_name(comparison.privileged)} named as favoured, a flip is called "
            "undesirable if it takes from people of another group or gives to favoured ones."
        )
    return [
        Figure(
            f"Decisions that change against {reference}",
            tuple(reading),
            noted(rows, columns),
            rows,
            panel(bars, title="share of the group", colours=SERIES_COLOURS[2:]),
        )
    ]


def _agreement_figure(comparison: Comparison) -> Figure:
    """Return the figure of how far the order of people agrees with the reference model."""
    names = group_labels(comparison.audits[0])
    reference = shown_name(comparison.audits[0].model_name)
    rows: list[Row] = [
        {"label": label(pair.model), "series": names.get(group, group), "agreement": agreement}
        for pair in comparison.pairs
        for group, agreement in pair.rank_agreement.items()
    ]
    return Figure(
        f"The order of people against {reference}",
        (
            "How far the order of people within a group is the same as that of the predictions of "
            f"{reference} (1 = the same order).",
        ),
        {"label": "model", "series": "group", "agreement": "rank agreement"},
        rows,
    )


def tradeoff_figure(curve: pd.DataFrame) -> Figure:
    """Return the figure of accuracy against unfairness along a path."""
    gap = "demographic_parity_gap"
    if missing := [c for c in ("fairness_weight", "accuracy", gap) if c not in curve]:
        raise InputError(
            f"curve has no column {missing[0]!r}, which the figure needs. Pass a table of "
            "FairnessPath.curve."
        )
    names = [name for name in MEASURES if name in curve]
    columns = {"fairness_weight": "fairness weight", "accuracy": "accuracy"}
    plain = curve[[*columns, *names]].astype(float)
    return Figure(
        "Accuracy against unfairness",
        (
            "The farther left, the smaller the gap; the higher, the more decisions agree with the "
            "labels.",
            "The points are estimates without intervals, on the rows the curve was made of. To "
            "choose a point by looking at the rows that it is then judged on flatters it.",
        ),
        {**columns, **{name: gap_title(name).lower() for name in names}},
        [{str(k): v for k, v in row.items()} for row in plain.to_dict("records")],
        (Panel(finished(tradeoff_chart(plain, gap=gap, colours=SERIES_COLOURS[:2]))),),
    )
