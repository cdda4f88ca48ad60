"""The sections of the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from fairmatch.auditing.facts import Audit, Comparison
from fairmatch.auditing.facts.alternatives import Alternatives
from fairmatch.report.figures.alternatives import alternatives_figure
from fairmatch.report.figures.columns import column_figure
from fairmatch.report.figures.figure import Figure, level
from fairmatch.report.figures.gaps import attribute_gap_figure, gap_figure, pair_figure
from fairmatch.report.figures.impact import impact_figures, impact_lead
from fairmatch.report.figures.labels import accuracy_figure, calibration_figure
from fairmatch.report.figures.matching import feature_figure, matched_figure, transport_figure
from fairmatch.report.figures.models import changed_decisions, side_by_side, tradeoff_figure
from fairmatch.report.figures.nearness import curve_figure, position_figure, reach_figure
from fairmatch.report.figures.predictions import attribute_mean_figure
from fairmatch.report.figures.scores import score_figure
from fairmatch.report.figures.selection import attribute_figure
from fairmatch.report.figures.subsets import half_space_figure, subset_figure
from fairmatch.report.wording import compared_groups, group_words


@dataclass(frozen=True)
class Section:
    """A part of the page that opens.

    Attributes
    ----------
    key : str
        Identifier of the section, unique in the page.
    title : str
        Heading of the section.
    about : str
        What the section answers, in one line that a reader sees before opening it.
    lead : tuple of str
        Sentences that hold for all figures of the section.
    figures : list of Figure
        The figures, in order.
    """

    key: str
    title: str
    about: str
    lead: tuple[str, ...]
    figures: list[Figure]


def sections(
    audits: Sequence[Audit],
    comparison: Comparison | None,
    curve: pd.DataFrame | None,
    alternatives: Alternatives | None = None,
) -> list[Section]:
    """Return every section of the report for which there are facts.

    Parameters
    ----------
    audits : sequence of Audit
        Audits of the same groups, with different model names.
    comparison : Comparison or None
        The comparison of these audits.
    curve : DataFrame or None
        A table from `FairnessPath.curve`.
    alternatives : Alternatives, optional
        The result of `fairmatch.find_alternatives`.

    Returns
    -------
    list of Section

    Examples
    --------
    >>> from fairmatch import audit
    >>> found = audit([0.9, 0.2, 0.6, 0.7] * 20, sensitive_features=["a", "a", "b", "b"] * 20)
    >>> [section.key for section in sections([found], None, None)]
    ['gaps', 'filing', 'matching', 'scores']
    """
    real = audits[0].scale == "real"
    described = any(matching.transport for matching in audits[0].matchings)
    parts = [
        Section(
            "alternatives",
            "Less discriminatory alternatives",
            "Every model that was tried, compared with the baseline on people whom none has seen.",
            (
                "A search that finds nothing does not prove that there is nothing to find: other "
                "methods, columns or data may do better.",
                ""
                if alternatives is None or not alternatives.search
                else alternatives.search.on_group(),
            ),
            [] if alternatives is None else [alternatives_figure(alternatives)],
        ),
        Section(
            "gaps",
            "Gaps between the groups",
            "Definitions of equal treatment, side by side, with their intervals.",
            (
                "They can disagree, and in general not all of them can be small at once; which one "
                "matters is a question of law and purpose, not of statistics. A gap is a fact "
                f"about these people{'' if real else ' and this threshold'}; it does not say why "
                "it is there.",
                f"Each measure's interval holds with {level(audits)} confidence by itself: among "
                "several measures one or another may miss by chance.",
            ),
            _figures(
                audits,
                gap_figure,
                pair_figure,
                attribute_mean_figure if real else attribute_figure,
                attribute_gap_figure,
            ),
        ),
        Section(
            "filing",
            "Rates and impact ratios by category",
            "In the shape of New York's Local Law 144, to be filed or published.",
            impact_lead(audits),
            impact_figures(audits),
        ),
        Section(
            "matching",
            "Who is matched with whom",
            "People of two groups matched by their scores, and how much they are alike.",
            (
                "Every model stands for a matching of people across groups: one under which the "
                "scores of matched people differ as little as they can on average. Many matchings "
                "share that least gap, people at the same rank among them; the nearest of these is "
                "the most favourable reading of the model, and it is shown. Matched people need "
                "not have equal scores. If even the nearest are very different, a small gap was "
                "reached by giving unlike people like scores."
                if described
                else "People at the same rank of their groups' scores are matched: no other "
                "matching has a smaller mean score gap. Without features nothing is said of how "
                "much they are alike.",
                "Distance is taken over all columns given, numbers scaled to [0, 1] and two "
                "different categories at squared distance 2. Other columns or scales give other "
                "distances."
                if described
                else "",
                _on_reference(audits[0]),
            ),
            _figures(
                audits,
                position_figure,
                curve_figure,
                reach_figure,
                transport_figure,
                feature_figure,
                matched_figure,
            ),
        ),
        Section(
            "subsets",
            "Gaps in parts of the people",
            "Where a fair average may hide an unfair part.",
            (
                "Subsets were chosen on some of the rows and measured on others, so a gap found by "
                "luck does not count as a finding. The intervals hold for all listed subsets of a "
                "model at once, which makes them wider. A subset that is not listed need not be "
                "fair.",
            )
            if any(a.subsets and a.subsets.subsets for a in audits)
            else (),
            _figures([a for a in audits if a.subsets], subset_figure, half_space_figure),
        ),
        Section(
            "scores",
            "Predictions" if real else "Scores",
            "How the predictions of every group are spread."
            if real
            else "How the scores of every group are spread, regardless of the threshold.",
            (),
            _figures(audits, score_figure),
        ),
        Section(
            "labels",
            "How well it does in each group",
            "Accuracy, error rates and calibration against the recorded labels.",
            (
                "Labels are records of past decisions and outcomes and can be unfair themselves; "
                "agreeing with them is not the same as being right. If the model was trained on "
                "these rows, all of this flatters it.",
            ),
            _figures(
                [a for a in audits if any(group.calibration for group in a.groups)],
                accuracy_figure,
                calibration_figure,
            ),
        ),
        Section(
            "comparison",
            "The models compared",
            "The same people under each model."
            if real
            else "The same people under each model, and whose decisions change.",
            (
                "A smaller gap does not show by itself how it was reached; the distances "
                + ("do." if real else "and the changed decisions do."),
            ),
            [*side_by_side(audits), *(changed_decisions(comparison) if comparison else [])],
        ),
        Section(
            "columns",
            "How the table was read",
            "The role of every column, and what a person should look at.",
            tuple(dict.fromkeys(note for audit in audits for note in audit.notes)),
            _figures(audits, column_figure),
        ),
        Section(
            "curve",
            "The trade-off",
            "Accuracy against the gap, one point per strength of the fairness constraint.",
            (),
            [] if curve is None else [tradeoff_figure(curve)],
        ),
    ]
    return [part for part in parts if part.figures]


def _on_reference(audit: Audit) -> str:
    """Return a sentence on the group that all others are matched with, if there are many."""
    if len(audit.matchings) < 2 or audit.reference is None:
        return ""
    each = compared_groups(audit).capitalize()
    largest = group_words(audit.reference)
    return f"{each} is matched with {largest}, the largest; a figure names the other one."


def _figures(
    audits: Sequence[Audit], *makers: Callable[[Sequence[Audit]], Figure | None]
) -> list[Figure]:
    if not audits:
        return []
    return [figure for make in makers if (figure := make(audits)) is not None]
