"""Figures about agreement with the labels, in every group."""

from __future__ import annotations

from collections.abc import Sequence

from fairmatch.auditing.facts import Audit, GroupFacts
from fairmatch.report.charts import Row, calibration_chart, finished
from fairmatch.report.figures.figure import (
    LIMITS,
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
from fairmatch.report.figures.scores import beside_reference
from fairmatch.report.wording import (
    by_size,
    group_words,
    label_words,
    outcome_words,
    shown_name,
)


def _qualities(audit: Audit) -> dict[str, str]:
    """Return the words for each fact about a group."""
    good, bad = (label_words(audit, favourable) for favourable in (True, False))
    return {
        "base_rate": f"{good.capitalize()} labels",
        "accuracy": "Accuracy",
        "true_positive_rate": f"Share {outcome_words(audit)} with a {good} label",
        "false_positive_rate": f"Share {outcome_words(audit)} with a {bad} label",
        "auc": "Ranking quality (AUC)",
    }


def accuracy_figure(audits: Sequence[Audit]) -> Figure:
    """Return the figure of how well the models agree with the labels in each group."""
    rows: list[Row] = []
    panels: tuple[Panel, ...] = ()
    for name, words in _qualities(audits[0]).items():
        own: list[Row] = [
            {
                "what": words,
                "label": group_labels(audit)[group.label],
                "series": model_labels(audits)[audit.model_name],
                **limits(fact),
            }
            for audit in audits
            for group in by_size(audit.groups)
            if not group.mean_score.refused and (fact := getattr(group, name)) is not None
        ]
        rows += own
        panels += panel(own, words, title="AUC" if name == "auc" else "share", domain=(0.0, 1.0))
    return Figure(
        "Agreement with the labels",
        (
            "Accuracy is the share of decisions that agree with the label. An AUC of 0.5 is a "
            "random order of people, 1 a perfect one.",
        ),
        noted(
            rows,
            {"what": "what", "label": "group", **model_column(audits), **LIMITS, **NOTE},
        ),
        rows,
        panels,
    )


def calibration_figure(audits: Sequence[Audit]) -> Figure:
    """Return the figure of calibration: whether a score means the same in all groups."""
    models = model_labels(audits)
    rows: list[Row] = []
    panels: list[Panel] = []
    errors = []
    for audit in audits:
        names = group_labels(audit)
        own: list[Row] = [
            {
                "model": models[audit.model_name],
                "series": names[group.label],
                "range": f"{part.low:.1f} to {part.high:.1f}",
                "n_rows": part.n_rows,
                "mean_score": part.mean_score,
                **limits(part.positive_rate),
            }
            for group in by_size(audit.groups)
            for part in group.calibration
            if part.n_rows
        ]
        rows += own
        model = models[audit.model_name] if len(audits) > 1 else ""
        panels += _calibration_panels(audit, own, model)
        if said := _errors(audit):
            errors.append(f"{shown_name(audit.model_name)}: {said}" if len(audits) > 1 else said)
    said = "; ".join(errors)
    return Figure(
        "Does a score mean the same in every group?",
        (
            "Where a dot lies on the diagonal, people with that score had positive labels that "
            "often. If the groups lie apart, the same score means different things for them. Dots "
            "of few people are unsure.",
            f"Mean distance from the diagonal: {said}." if said else "",
        ),
        noted(
            rows,
            {
                **model_column(audits, "model"),
                "series": "group",
                "range": "scores",
                "n_rows": "people",
                "mean_score": "mean score",
                "value": "share positive",
                "low": "from",
                "high": "to",
                **NOTE,
            },
        ),
        rows,
        tuple(panels),
        beside_reference(audits[0]),
    )


def _errors(audit: Audit) -> str:
    """Return in words how far scores are from outcomes, in two groups or the extremes of many."""
    found = [
        (group.calibration_error, group_words(group.label))
        for group in by_size(audit.groups)
        if group.calibration_error is not None and group.label not in audit.unknown
    ]
    if len(found) <= 2:
        return " and ".join(f"{error:.3f} ({name})" for error, name in found)
    return " to ".join(f"{error:.3f} ({name})" for error, name in (min(found), max(found)))


def _calibration_panels(audit: Audit, rows: list[Row], model: str) -> list[Panel]:
    names = group_labels(audit)
    groups: list[GroupFacts] = [g for g in by_size(audit.groups) if g.calibration]
    if len(groups) <= 2:
        return [Panel(finished(calibration_chart(rows)), model)] if rows else []
    reference = names[audit.reference or groups[0].label]
    panels = []
    for group in groups:
        own = names[group.label]
        if own == reference:
            continue
        both = [row for row in rows if row["series"] in (own, reference)]
        both.sort(key=lambda row: row["series"] != own)
        title = f"{model}: {own}" if model else own
        panels.append(Panel(finished(calibration_chart(both), legend=False), title))
    return panels
