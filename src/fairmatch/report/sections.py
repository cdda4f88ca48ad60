"""The parts of the report, and what they are about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from fairmatch.auditing.facts import Audit, Comparison
from fairmatch.report.figures.figure import Figure
from fairmatch.report.figures.groups import (
    accuracy_figure,
    calibration_figure,
    cumulative_figure,
    gap_figure,
    score_figure,
    selection_figure,
)
from fairmatch.report.figures.models import changed_decisions, side_by_side, tradeoff_figure
from fairmatch.report.figures.people import (
    feature_figure,
    half_space_figure,
    matched_figure,
    subset_figure,
    transport_figure,
)


@dataclass(frozen=True)
class Section:
    """A part of the page: what it is about, and its figures.

    Attributes
    ----------
    key, title : str
        Unique in the page; shown.
    lead : str
        What the section is about.
    figures : list of Figure
        In order.
    """

    key: str
    title: str
    lead: str
    figures: list[Figure] = field(default_factory=list)


def sections(
    audits: Sequence[Audit], comparison: Comparison | None, curve: pd.DataFrame | None
) -> list[Section]:
    """Make every part of the report for which there are facts.

    Parameters
    ----------
    audits : sequence of Audit
        Of the same two groups, with different model names.
    comparison : Comparison or None
        Of these audits.
    curve : DataFrame or None
        As made by `FairnessPath.curve`.

    Returns
    -------
    list of Section

    Examples
    --------
    >>> from fairmatch import audit
    >>> found = audit([0.9, 0.2, 0.6, 0.7] * 20, sensitive_features=["a", "a", "b", "b"] * 20)
    >>> [section.key for section in sections([found], None, None)]
    ['selection', 'gaps', 'scores', 'matching']
    """
    parts = [
        Section(
            "selection",
            "Who is accepted",
            "The share of each group that the model accepts at its threshold.",
            [selection_figure(audits)],
        ),
        Section(
            "gaps",
            "Gaps between the groups",
            "Different definitions of equal treatment, side by side. They can disagree, and in "
            "general not all of them can be small at once; which one matters is a question of law "
            "and purpose, not of statistics.",
            [gap_figure(audits)],
        ),
        Section(
            "scores",
            "Scores",
            "How the scores of the two groups are spread, whatever the threshold.",
            [make(audit) for audit in audits for make in (score_figure, cumulative_figure)],
        ),
        Section(
            "matching",
            "Who is treated like whom",
            "Behind every model stands a matching: people at the same rank of their groups are "
            "treated alike. If they are very different people, equal averages were reached by "
            "treating unlike people alike.",
            _matching(audits),
        ),
        Section(
            "subsets",
            "Gaps in parts of the people",
            "A model can treat the groups alike on the whole and differently in a part. Subsets "
            "were chosen on some of the rows and measured on others, so that a gap found by luck "
            "does not count as a finding.",
            _each(audits, lambda audit: audit.subsets, subset_figure, half_space_figure),
        ),
        Section(
            "labels",
            "How well it does in each group",
            "Compared with the recorded labels. Labels are records of past decisions and outcomes "
            "and can be unfair themselves; agreeing with them is not the same as being right.",
            _each(
                audits,
                lambda audit: audit.groups[0].calibration,
                accuracy_figure,
                calibration_figure,
            ),
        ),
        Section(
            "comparison",
            "The models compared",
            "The same people under each model. Less of one gap says nothing by itself on how it "
            "was reached; the distances and the changed decisions do.",
            [*side_by_side(audits), *(changed_decisions(comparison) if comparison else [])],
        ),
        Section(
            "curve",
            "The trade-off",
            "One point per strength of the fairness constraint.",
            [] if curve is None else [tradeoff_figure(curve)],
        ),
    ]
    return [part for part in parts if part.figures]


def _each(
    audits: Sequence[Audit], has: Callable[[Audit], Any], *makers: Callable[[Audit], Figure | None]
) -> list[Figure]:
    made = (make(audit) for audit in audits if has(audit) for make in makers)
    return [figure for figure in made if figure is not None]


def _matching(audits: Sequence[Audit]) -> list[Figure]:
    figures = []
    if any(audit.matching.transport for audit in audits):
        figures.append(transport_figure(audits))
    figures += _each(audits, lambda audit: audit.matching.transport, feature_figure)
    return figures + _each(audits, lambda audit: audit.matching.matched_gaps, matched_figure)
