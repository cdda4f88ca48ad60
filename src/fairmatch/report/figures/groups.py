"""Figures about the two groups: selection, gaps, scores, and agreement with the labels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from fairmatch.auditing.facts import Audit
from fairmatch.report.charts import (
    GROUP_COLOURS,
    Row,
    calibration_chart,
    cumulative_chart,
    finished,
    step_chart,
)
from fairmatch.report.figures.figure import (
    LIMITS,
    NOTE,
    Figure,
    intervals,
    label,
    level,
    limits,
    noted,
)
from fairmatch.report.wording import GAPS, gap_name, shown_name


def selection_figure(audits: Sequence[Audit]) -> Figure:
    """Show which share of each group is accepted."""
    rows: list[Row] = [
        {
            "label": label(audit.model_name),
            "series": label(group.label),
            "people": group.n_rows,
            **limits(group.selection_rate),
        }
        for audit in audits
        for group in audit.groups
    ]
    ratios = []
    for audit in audits:
        ratio = audit.selection_ratio
        if ratio.value is not None and ratio.low is not None and ratio.high is not None:
            ratios.append(
                f"{shown_name(audit.model_name)}: the smaller rate is {ratio.value:.2f} of the "
                f"larger ({ratio.low:.2f} to {ratio.high:.2f})."
            )
    return Figure(
        "Selection rates",
        (
            "A dot is the share of accepted people among those in the table. The bar is its "
            f"{level(audits)} confidence interval: of intervals made like this, as many contain "
            "the share among all the people from whom these were drawn.",
            *ratios,
            "The four-fifths rule of thumb of United States employment law takes a ratio below "
            "0.80 as a reason to look closer. It is not a test of discrimination, and a ratio "
            "above it is not a clearance.",
        ),
        noted(rows, {"label": "model", "series": "group", "people": "people", **LIMITS, **NOTE}),
        rows,
        intervals(rows, title="share accepted", colours=GROUP_COLOURS, domain=(0.0, 1.0)),
        wide=True,
    )


def gap_figure(audits: Sequence[Audit]) -> Figure:
    """Show every gap with its interval."""
    names = list(dict.fromkeys(gap.name for audit in audits for gap in audit.gaps))
    found = [
        (audit, gap) for name in names for audit in audits for gap in audit.gaps if gap.name == name
    ]
    rows: list[Row] = [
        {
            "label": gap_name(gap.name),
            "symbol": gap.symbol,
            "series": label(audit.model_name),
            "value": gap.value,
            "low": gap.low,
            "high": gap.high,
            "higher": ""
            if not gap.signed
            else label(audit.groups[1 if gap.signed > 0 else 0].label),
            "meaning": GAPS[gap.name][1] if gap.name in GAPS else "",
            "method": gap.method,
            "note": gap.refused or "",
        }
        for audit, gap in found
    ]
    columns = {
        "label": "gap",
        "symbol": "symbol",
        "series": "model",
        **LIMITS,
        "higher": "higher in group",
        "meaning": "what it is",
        "method": "interval",
        **NOTE,
    }
    return Figure(
        "Gaps with their intervals",
        (
            "Each gap is 0 where the groups are treated alike in that sense. A bar that reaches 0 "
            "means that these people do not show a difference, not that there is none.",
            f"Each interval holds by itself with {level(audits)} confidence. Among {len(names)} "
            "gaps one or another may miss by chance.",
            "A gap is a fact about these people and this threshold. It does not say why it is "
            "there, nor whether it is justified.",
        ),
        noted(rows, columns),
        rows,
        intervals(rows, title="gap (0 = alike)"),
        wide=True,
    )


def _score_rows(audit: Audit) -> list[Row]:
    rows: list[Row] = []
    for group in audit.groups:
        shares = [count / max(group.n_rows, 1) for count in group.score_counts]
        rows += [
            {
                "series": label(group.label),
                "low": low,
                "high": high,
                "people": count,
                "share": share,
                "cumulative": min(total, 1.0),
            }
            for low, high, count, share, total in zip(
                audit.score_edges,
                audit.score_edges[1:],
                group.score_counts,
                shares,
                accumulate(shares),
                strict=False,
            )
        ]
    return rows


_SCORE_COLUMNS = {"series": "group", "low": "score from", "high": "to"}


def score_figure(audit: Audit) -> Figure:
    """Show how the scores of both groups are spread."""
    rows = _score_rows(audit)
    return Figure(
        f"Scores of both groups: {shown_name(audit.model_name)}",
        (
            "The share of each group's people in every interval of scores.",
            f"The dashed line is the threshold, {audit.threshold:g}: people at or above it are "
            "accepted. Where many people stand close to it, a small change of the model or of the "
            "threshold changes many decisions.",
        ),
        {**_SCORE_COLUMNS, "people": "people", "share": "share"},
        rows,
        finished(
            step_chart(
                rows,
                title="score",
                colours=GROUP_COLOURS,
                references={"threshold": audit.threshold},
            )
        ),
    )


def cumulative_figure(audit: Audit) -> Figure:
    """Show which share of each group lies at or below every score."""
    rows = _score_rows(audit)
    return Figure(
        f"Share at or below each score: {shown_name(audit.model_name)}",
        (
            "The group whose curve lies lower has the higher scores.",
            "The largest vertical distance of the two curves and the area between them are two of "
            "the gaps above, up to the width of the intervals.",
        ),
        {**_SCORE_COLUMNS, "cumulative": "share at or below"},
        rows,
        finished(cumulative_chart(rows, title="score")),
    )


_QUALITIES = {
    "base_rate": "Positive labels",
    "accuracy": "Accuracy",
    "true_positive_rate": "True positive rate",
    "false_positive_rate": "False positive rate",
    "auc": "Ranking quality (AUC)",
}


def accuracy_figure(audit: Audit) -> Figure:
    """Show how well the model agrees with the labels in each group."""
    rows: list[Row] = [
        {"label": words, "series": label(group.label), **limits(fact)}
        for name, words in _QUALITIES.items()
        for group in audit.groups
        if (fact := getattr(group, name)) is not None
    ]
    return Figure(
        f"Agreement with the labels: {shown_name(audit.model_name)}",
        (
            "Accuracy is the share of decisions that agree with the label; the true (false) "
            "positive rate is the share accepted among people with a positive (negative) label.",
            "An AUC of 0.5 is a random order of people, 1 a perfect one.",
            "If the model was trained on these rows, all of this flatters it.",
        ),
        noted(rows, {"label": "what", "series": "group", **LIMITS, **NOTE}),
        rows,
        intervals(rows, title="share, or AUC", colours=GROUP_COLOURS, domain=(0.0, 1.0)),
    )


def calibration_figure(audit: Audit) -> Figure:
    """Show whether a score means the same in both groups."""
    rows: list[Row] = [
        {
            "series": label(group.label),
            "range": f"{part.low:.1f} to {part.high:.1f}",
            "n_rows": part.n_rows,
            "mean_score": part.mean_score,
            **limits(part.positive_rate),
        }
        for group in audit.groups
        for part in group.calibration
        if part.n_rows
    ]
    errors = [
        f"{shown_name(group.label)} {group.calibration_error:.3f}"
        for group in audit.groups
        if group.calibration_error is not None
    ]
    return Figure(
        f"Do scores mean the same? {shown_name(audit.model_name)}",
        (
            "Where a dot lies on the diagonal, people with that score had positive labels that "
            "often. If the groups lie apart, the same score means different things for them.",
            f"Mean distance from the diagonal: {', '.join(errors)}." if errors else "",
            "Each bar holds for its own dot; dots of few people are unsure.",
        ),
        noted(
            rows,
            {
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
        finished(calibration_chart(rows)) if any(r["value"] is not None for r in rows) else None,
    )
