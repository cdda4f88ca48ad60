"""Figures about several models: side by side, changed decisions, the trade-off."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from fairmatch.auditing.facts import Audit, Comparison
from fairmatch.exceptions import InputError
from fairmatch.report.charts import (
    SERIES_COLOURS,
    Row,
    finished,
    tradeoff_chart,
)
from fairmatch.report.figures.figure import Figure, intervals, label
from fairmatch.report.wording import GAPS, certain, gap_name, shown_name


def side_by_side(audits: Sequence[Audit]) -> list[Figure]:
    """Put the estimates of several models beside each other."""
    if len(audits) < 2:
        return []
    rows: list[Row] = []
    for audit in audits:
        found = audit.matching.transport
        gaps = {gap.name: gap.value for gap in audit.gaps}
        rows.append(
            {
                "label": label(audit.model_name),
                "ratio": audit.selection_ratio.value,
                **{name: gaps.get(name) for name in GAPS},
                "relative": found.relative if found else None,
                "certain": sum(map(certain, audit.subsets.subsets)) if audit.subsets else None,
                "accuracy": _overall_accuracy(audit),
            }
        )
    columns = {
        "label": "model",
        "ratio": "ratio of selection rates",
        **{name: gap_name(name).lower() for name in GAPS},
        "relative": "relative distance of people treated alike",
        "certain": "listed subsets with a sure gap",
        "accuracy": "accuracy",
    }
    known = {k: v for k, v in columns.items() if any(row[k] is not None for row in rows)}
    # One column per model is easier to compare than one row per model.
    turned: list[Row] = [
        {"what": words, **{f"m{k}": row[key] for k, row in enumerate(rows)}}
        for key, words in known.items()
        if key != "label"
    ]
    headings = {"what": "measure", **{f"m{k}": row["label"] for k, row in enumerate(rows)}}
    same = len({(a.provenance.groups_sha256, a.provenance.features_sha256) for a in audits}) == 1
    return [
        Figure(
            "All numbers side by side",
            (
                "Estimates without their intervals, which stand in the figures above: a small "
                "difference between two models may be chance.",
                ""
                if same
                else "The models were audited on different people, so that a difference may come "
                "from the people and not from the model.",
            ),
            headings,
            turned,
            None,
            wide=True,
        )
    ]


def _overall_accuracy(audit: Audit) -> float | None:
    parts = [(g.accuracy.value if g.accuracy else None, g.n_rows) for g in audit.groups]
    if any(value is None for value, _ in parts):
        return None
    return sum(value * n for value, n in parts if value is not None) / audit.n_rows


def changed_decisions(comparison: Comparison) -> list[Figure]:
    """Show whose decisions differ from those of the reference model."""
    rows: list[Row] = []
    bars: list[Row] = []
    for pair in comparison.pairs:
        for group, (_, lost, gained, _) in pair.decisions.items():
            total = max(sum(pair.decisions[group]), 1)
            who = f"{label(pair.model)}: {label(group)}"
            rows.append(
                {
                    "label": label(pair.model),
                    "series": label(group),
                    "lost": lost,
                    "gained": gained,
                    "agreement": pair.rank_agreement.get(group),
                    "undesirable": (pair.undesirable_flips or {}).get(group),
                }
            )
            bars += [
                {"label": who, "series": words, "value": n / total, "low": None, "high": None}
                for words, n in (("no longer accepted", lost), ("newly accepted", gained))
            ]
    reference = shown_name(comparison.audits[0].model_name)
    columns = {
        "label": "model",
        "series": "group",
        "lost": "no longer accepted",
        "gained": "newly accepted",
        "agreement": "rank agreement",
    }
    reading = [
        f"Decisions that differ from those of {reference}, as shares of each group, and how far "
        "the order of people within a group is the same (1 = the same order).",
    ]
    if comparison.privileged is not None:
        columns["undesirable"] = "undesirable flips"
        reading.append(
            f"With {shown_name(comparison.privileged)} named as the favoured group, a flip is "
            "called undesirable if it takes from the other group or gives to the favoured one."
        )
    return [
        Figure(
            f"Decisions that change against {reference}",
            tuple(reading),
            columns,
            rows,
            intervals(bars, title="share of the group", colours=SERIES_COLOURS[2:]),
            wide=True,
        )
    ]


def tradeoff_figure(curve: pd.DataFrame) -> Figure:
    """Show accuracy against unfairness along a path."""
    gap = "demographic_parity_gap"
    if missing := [c for c in ("fairness_weight", "accuracy", gap) if c not in curve]:
        raise InputError(
            f"curve has no column {missing[0]!r}; expected a table of FairnessPath.curve."
        )
    names = [name for name in GAPS if name in curve]
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
        {**columns, **{name: gap_name(name).lower() for name in names}},
        [{str(k): v for k, v in row.items()} for row in plain.to_dict("records")],
        finished(tradeoff_chart(plain, gap=gap, colours=SERIES_COLOURS[:2])),
        wide=True,
    )
