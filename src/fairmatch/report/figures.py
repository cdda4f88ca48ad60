"""The figures of a report: one table of facts each, its charts, and how to read both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
import pandas as pd

from fairmatch.auditing.facts import (
    FOUR_FIFTHS,
    Alternative,
    Alternatives,
    AttributeFacts,
    Audit,
    CategoryImpact,
    Comparison,
    Estimate,
    Gap,
    GroupFacts,
    ImpactTable,
    MatchedScores,
    Matching,
    PairFlips,
)
from fairmatch.exceptions import InputError
from fairmatch.measures import MEASURES
from fairmatch.measures.registry import applicable
from fairmatch.people.outcome import PROBABILITY
from fairmatch.report.charts import (
    CONTRIBUTION_COLOURS,
    GROUP_COLOURS,
    SERIES_COLOURS,
    Row,
    calibration_chart,
    cell_chart,
    contribution_chart,
    cumulative_chart,
    curve_chart,
    finished,
    interval_chart,
    scatter_chart,
    step_chart,
    tradeoff_chart,
)
from fairmatch.report.wording import (
    MATCHINGS,
    RELATIVE,
    by_size,
    certain,
    column_words,
    compared_groups,
    gap_title,
    gap_words,
    group_words,
    is_drawn,
    label_words,
    listed,
    n_people,
    other_words,
    outcome_words,
    reach_sentences,
    selected_from,
    shown_name,
    shown_number,
    subset_name,
    surest_first,
    told_apart,
)


@dataclass(frozen=True)
class Panel:
    """One chart of a figure.

    Attributes
    ----------
    chart : dict
        A Vega-Lite specification.
    title : str
        Title of the chart among others of the figure; empty if it is the only one.
    """

    chart: dict[str, Any]
    title: str = ""


@dataclass(frozen=True)
class Figure:
    """One table of facts, its charts, and how to read both.

    Attributes
    ----------
    title : str
        What the figure shows.
    reading : tuple of str
        How to read the figure, with the caveats.
    columns : dict
        Field of the rows to the heading of its column.
    rows : list of mappings
        The facts.
    panels : tuple of Panel
        The charts; empty where there is nothing to draw.
    legend : dict
        Words to colours, if the charts share a legend; otherwise each has its own.
    wide : bool
        Whether the figure takes the whole width of the page.
    """

    title: str
    reading: tuple[str, ...]
    columns: dict[str, str]
    rows: list[Row]
    panels: tuple[Panel, ...] = ()
    legend: dict[str, str] = field(default_factory=dict)
    wide: bool = True


# Up to this many charts have their own legends; more charts share one.
FEW_PANELS = 2

# Names in charts are cut at this length.
_LONGEST = 60


LIMITS = {"value": "estimate", "low": "from", "high": "to"}


NOTE = {"note": "note"}


def label(name: str) -> str:
    """Return a name from the data as it stands in a chart."""
    return shown_name(name, _LONGEST)


def group_labels(audit: Audit) -> dict[str, str]:
    """Return how each group is written in charts and tables."""
    return told_apart(group.label for group in audit.groups)


def model_labels(audits: Sequence[Audit]) -> dict[str, str]:
    """Return how each model is written in charts and tables."""
    return told_apart(audit.model_name for audit in audits)


def model_column(audits: Sequence[Audit], key: str = "series") -> dict[str, str]:
    """Return the column of models, which one model alone does not need."""
    return {key: "model"} if len(audits) > 1 else {}


def limits(fact: Estimate | Gap) -> dict[str, Any]:
    """Return an estimate as the fields of a row."""
    return {"value": fact.value, "low": fact.low, "high": fact.high, "note": fact.refused or ""}


def level(audits: Sequence[Audit]) -> str:
    """Return the level of the intervals."""
    return f"{audits[0].confidence:.0%}"


def least_people(audit: Audit) -> int:
    """Return the fewest people that a row may show: 1, unless the page is without individuals."""
    if audit.individuals is not None:
        return 1
    return int(audit.provenance.settings.get("min_group_size") or 1)


def too_few(number: int, least: int) -> str:
    """Return why a row of so few people is not shown."""
    return f"{n_people(number)}, fewer than the {least} a statement needs"


def noted(rows: Iterable[Mapping[str, Any]], columns: dict[str, str]) -> dict[str, str]:
    """Return the columns, without the column of notes if there are none."""
    noted = any(row.get("note") for row in rows)
    return {key: words for key, words in columns.items() if noted or key != "note"}


def panel(rows: Sequence[Row], name: str = "", **options: Any) -> tuple[Panel, ...]:
    """Return a chart of dots with intervals, or none if no statement is made."""
    stated = [row for row in rows if row["value"] is not None]
    return (Panel(finished(interval_chart(stated, **options)), name),) if stated else ()


# How the points of each verdict are called in the picture.
_SERIES = {"yes": "less discriminatory", "not shown": "not shown", "no": "other"}


def alternatives_figure(found: Alternatives) -> Figure:
    """Return the figure of accuracy against the gap for everything that was tried."""
    title = MEASURES[found.gap_measure].title.lower()
    points: list[Row] = [
        _point(found.baseline, found.accuracy, found.gap, "baseline"),
        *(_point(one.name, one.accuracy, one.gap, _SERIES[one.verdict]) for one in found.tried),
    ]
    return Figure(
        "Everything that was tried",
        (
            f"A model counts as accurate as the baseline if it is shown to be less accurate by at "
            f"most {found.margin:g}, and its gap counts as smaller if the whole interval of the "
            f"change lies below 0. The {found.confidence:.0%} intervals hold for all "
            f"{len(found.tried)} models at once.",
            "“No” means that one of the two is shown to be false, and “not shown” that the people "
            "are too few to tell.",
            f"The gap is that of {title}, the largest over pairs of groups. Newly selected are "
            f"people whom {shown_name(found.baseline)} does not select and the model does.",
        ),
        {
            "name": "model",
            "accuracy": "accuracy",
            "accuracy_change": "change of accuracy",
            "gap": "gap",
            "gap_change": "change of the gap",
            "gained": "newly selected",
            "lost": "no longer selected",
            "verdict": "less discriminatory",
        },
        [_baseline_row(found), *map(_row, found.tried)],
        (Panel(finished(scatter_chart(points, x=f"gap of {title}", y="accuracy"))),),
    )


def _point(name: str, accuracy: float, gap: float, kind: str) -> Row:
    return {"label": label(name), "x": gap, "y": accuracy, "series": kind}


def _baseline_row(found: Alternatives) -> Row:
    row: dict[str, Any] = {"name": f"{found.baseline} (baseline)", "accuracy": found.accuracy}
    blank = dict.fromkeys(("accuracy_change", "gap_change", "gained", "lost", "verdict"), "")
    return {**row, "gap": found.gap, **blank}


def _row(one: Alternative) -> Row:
    return {
        "name": one.name,
        "accuracy": one.accuracy,
        "accuracy_change": _signed(one.accuracy_change),
        "gap": one.gap,
        "gap_change": _signed(one.gap_change),
        "gained": _people(one.gained),
        "lost": _people(one.lost),
        "verdict": one.verdict_words(),
    }


def _signed(change: Estimate) -> str:
    return f"{change.value:+.3f} ({change.low:+.3f} to {change.high:+.3f})"


def _people(counts: dict[str, int]) -> str:
    return ", ".join(f"{shown_name(group)} {n:,}" for group, n in counts.items())


def column_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of how every column was read: a table without a chart."""
    columns = audits[0].columns
    if not columns:
        return None
    rows: list[Row] = [
        {
            "name": column.name,
            "role": column.role,
            "type": column.type,
            "distinct": column.n_distinct,
            "missing": column.n_missing,
            "why": column.why,
            "doubt": column.doubt,
        }
        for column in columns
    ]
    headings = {
        "name": "column",
        "role": "read as",
        "type": "holds",
        "distinct": "different values",
        "missing": "missing",
        "why": "why",
        "doubt": "look at",
    }
    if not any(row["doubt"] for row in rows):
        del headings["doubt"]
    return Figure("The columns", (), headings, rows)


# For every pair and attribute these gaps are drawn; the others stand in the table.
_DRAWN = "demographic_parity_gap", "mean_parity_gap", "true_positive_gap", "false_positive_gap"


def _facts(gap: Gap, names: dict[str, str]) -> dict[str, Any]:
    """Return a gap as the fields of a row."""
    first, second = (names.get(name, label(name)) for name in gap.groups or ("", ""))
    better = "" if not gap.signed else (second if gap.signed > 0 else first)
    if gap.favoured is not None:  # audits of earlier versions do not say it
        better = names.get(gap.favoured, label(gap.favoured))
    between = f"{first} – {second}" if gap.groups else ""
    return {"symbol": gap.symbol, **limits(gap), "between": between, "better": better}


def _in_order(gaps: Iterable[Gap]) -> list[str]:
    """Return the names of some gaps, in the order of the table of measures."""
    found = {gap.name for gap in gaps}
    return [*(name for name in MEASURES if name in found), *sorted(found - MEASURES.keys())]


def gap_figure(audits: Sequence[Audit]) -> Figure:
    """Return the figure of every gap with its interval; with many groups, of the largest."""
    models = model_labels(audits)
    names = group_labels(audits[0])
    rows: list[Row] = [
        {
            "name": gap.name,
            "label": gap_title(gap.name, audit),
            "series": models[audit.model_name],
            **_facts(gap, names),
            "meaning": gap_words(gap.name, audit),
            "method": gap.method,
        }
        for name in _in_order(gap for audit in audits for gap in audit.gaps)
        for audit in audits
        for gap in audit.gaps
        if gap.name == name
    ]
    many = any(audit.pair_gaps for audit in audits)
    columns = {
        "label": "gap",
        "symbol": "symbol",
        **model_column(audits),
        **LIMITS,
        **({"between": "between"} if many else {}),
        "better": "better off",
        "meaning": "what it is",
        "method": "interval",
        **NOTE,
    }
    return Figure(
        "The largest gap over pairs of groups" if many else "Gaps with their intervals",
        (
            "0 is alike. A bar that reaches 0 means that these people do not show a difference, "
            "not that there is none.",
        ),
        noted(rows, columns),
        rows,
        _in_units(audits, rows) if audits[0].scale == "real" else _panel(rows),
    )


def _panel(rows: Sequence[Row], name: str = "") -> tuple[Panel, ...]:
    return panel(rows, name, title="gap (0 = alike)")


def _in_units(audits: Sequence[Audit], rows: Sequence[Row]) -> tuple[Panel, ...]:
    """Return one chart of gaps in units, one of relative gaps and one of shares."""
    spread = audits[0].spread
    kinds: dict[str, Callable[[str], bool]] = {
        "In units of the target": lambda name: MEASURES[name].unit == "score",
        f"In standard deviations of the {spread.of if spread else 'target'}": lambda name: (
            name.startswith(RELATIVE)
        ),
        "As a share of the people": lambda name: name == "ks_parity_gap",
    }
    return tuple(
        one
        for title, belongs in kinds.items()
        for one in _panel([row for row in rows if belongs(row["name"])], title)
    )


def pair_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of gaps between each group and the reference.

    The two groups that lie farthest apart are in it too.
    """
    if not any(audit.pair_gaps for audit in audits):
        return None
    models, names = model_labels(audits), group_labels(audits[0])
    sizes = {group.label: group.n_rows for group in audits[0].groups}
    reference = audits[0].reference
    rows: list[Row] = []
    panels: tuple[Panel, ...] = ()
    for name in _in_order(gap for audit in audits for gap in audit.pair_gaps):
        own: list[Row] = []
        for audit in audits:
            # Pairs with the reference come first, and larger groups before smaller ones.
            order = sorted(
                (gap for gap in audit.pair_gaps if gap.name == name),
                key=lambda gap: (
                    reference not in (gap.groups or ()),
                    -min((sizes.get(one, 0) for one in gap.groups or ()), default=0),
                ),
            )
            for gap in order:
                others = [one for one in gap.groups or () if one != reference]
                pair = " – ".join(names[one] for one in others)
                own.append(
                    {
                        "measure": gap_title(name, audit),
                        "label": pair,
                        "series": models[audit.model_name],
                        **_facts(gap, names),
                    }
                )
        rows += own
        if name in _DRAWN:
            panels += panel(own, gap_title(name, audits[0]), title="gap (0 = alike)")
    columns = {"measure": "gap", "between": "between", "symbol": "symbol"}
    each = compared_groups(audits[0]).capitalize()
    compared = "" if reference is None else f" with {group_words(reference)}, the largest group"
    return Figure(
        "Pair by pair",
        (
            f"{each} is compared{compared}; where two other groups lie farthest apart, both "
            "are named.",
            f"The intervals of one measure hold for all pairs of groups at once, with "
            f"{level(audits)} confidence.",
        ),
        noted(
            rows,
            {**columns, **model_column(audits), **LIMITS, "better": "better off", **NOTE},
        ),
        rows,
        panels,
    )


def attribute_gap_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the largest gaps of each attribute, beside those of combinations."""
    if not audits[0].attributes:
        return None
    models = model_labels(audits)
    attributes = told_apart(attribute.name for attribute in audits[0].attributes)
    rows: list[Row] = []
    panels: tuple[Panel, ...] = ()
    for audit in audits:
        parts: list[tuple[str, Audit | AttributeFacts]] = [
            (f"by {attributes[part.name]}", part) for part in audit.attributes
        ]
        parts.append(("by their combinations", audit))
        own: list[Row] = []
        for name in _in_order(audit.gaps):
            for words, part in parts:
                found = [gap for gap in part.gaps if gap.name == name]
                names = told_apart(group.label for group in part.groups)
                own += [
                    {
                        "label": gap_title(name, audit),
                        "series": words,
                        "model": models[audit.model_name],
                        "drawn": name in _DRAWN,
                        **_facts(gap, names),
                    }
                    for gap in found
                ]
        rows += own
        title = models[audit.model_name] if len(audits) > 1 else ""
        panels += panel([row for row in own if row["drawn"]], title, title="gap (0 = alike)")
    columns = {"label": "gap", "series": "groups", **model_column(audits, "model"), **LIMITS}
    return Figure(
        "By attribute and by combination",
        (
            "The largest gap over the pairs of groups that one attribute makes, and over those of "
            "the combinations. Combinations are more and smaller groups, so their largest gap "
            "tends to be larger by chance too.",
        ),
        noted(rows, {**columns, "between": "between", "better": "better off", **NOTE}),
        rows,
        panels,
    )


def impact_lead(audits: Sequence[Audit]) -> tuple[str, ...]:
    """Return sentences that hold for all tables: on the rule, on selection and on 0.8."""
    found = next((audit for audit in audits if audit.impact), None)
    if found is None:
        return ()
    table = found.impact[0]
    rules = listed([*dict.fromkeys(map(_meaning, audits))])
    scoring = ""
    if table.median_score is not None:
        side = "above" if found.favourable == "high" else "below"
        scoring = (
            f" The scoring rate is the share of people whose score is {side} the median of the "
            "whole sample."
        )
    return (
        f"The tables follow the vocabulary of {table.rule}. Selected means {rules}. An impact "
        "ratio is a rate over that of the category with the highest, among categories of at least "
        f"2% of the people.{scoring}",
        f"That law sets no threshold. The four-fifths rule of the EEOC (29 CFR 1607.4(D)) takes a "
        f"ratio below {FOUR_FIFTHS:g} as evidence of adverse impact unless the difference is not "
        "significant; a ratio above it is no clearance. Intervals hold for each rate and ratio by "
        "itself, and so do the p-values of Fisher's exact test of equal selection rates.",
    )


def _meaning(audit: Audit) -> str:
    """Return what "selected" means in the tables: the audit's own word, and the rule."""
    words = outcome_words(audit)
    return f"{'' if words == 'selected' else f'{words}, '}a {selected_from(audit)}"


def impact_figures(audits: Sequence[Audit]) -> list[Figure]:
    """Return, for each model, one figure per attribute and one of all attributes crossed."""
    models = model_labels(audits)
    return [
        _figure(audit, table, models[audit.model_name] if len(audits) > 1 else "")
        for audit in audits
        for table in audit.impact
    ]


def _figure(audit: Audit, table: ImpactTable, model: str) -> Figure:
    attributes = listed([column_words(name) for name in table.attributes])
    names = told_apart(category.category for category in table.categories)
    order = sorted(table.categories, key=lambda category: -category.n_people)
    scored = table.median_score is not None
    least = least_people(audit)
    rows: list[Row] = [
        {**_impact_row(category, names), **_withheld(category, table, least)} for category in order
    ]
    withheld = any(row["note"] for row in rows)
    unknown = "nobody of unknown category."
    if table.n_unknown:
        unknown = f"{n_people(table.n_unknown)} of unknown category, scored and left out."
    reading = [f"{n_people(table.n_people)} of known category; {unknown}"]
    large = [category for category in order if not category.is_small]
    among = "" if len(large) == len(order) else " among categories of at least 2% of the people"
    for what in ("selection", "scoring"):
        highest = table.highest(f"{what}_rate")
        shown = [c for c in order if c.category in highest and c.n_people >= least]
        if highest and len(shown) == len(highest):
            who = listed([group_words(category.category) for category in shown])
            reading.append(f"Highest {what} rate{among}: {who}.")
    if withheld:
        reading.append(
            "The page is without individuals, so no rates are shown of categories with fewer than "
            f"{n_people(least)}, nor ratios to one of them."
        )
    elif few := [group_words(category.category) for category in order if category.is_few]:
        reading.append(
            f"Nothing else is stated about so few people: {listed(few)}. Their rates are shown "
            "because every category is filed."
        )
    if not withheld and any(category.n_people == 1 for category in order):
        reading.append("The row of a category of 1 person is the decision on that person.")
    if any(category.is_small for category in order):
        reading.append(
            "Categories of less than 2% of the people are marked; the rule allows them to be left "
            "out, and no other category is compared with them."
        )
    columns = {
        "label": "category",
        "people": "people",
        "selected": "selected",
        "rate": "selection rate",
        "value": "impact ratio",
        "from": "from",
        "to": "to",
        "p": "p-value",
        "below": "below 0.8",
        **(
            {"scoring": "scoring rate", "scoring_ratio": "impact ratio (scoring)"} if scored else {}
        ),
        "share": "share of people",
        "small": "less than 2%",
        **NOTE,
    }
    title = f"By {attributes}" if len(table.attributes) == 1 else f"By {attributes} together"
    return Figure(
        f"{title}: {model}" if model else title,
        tuple(reading),
        noted(rows, columns),
        rows,
        panel(
            rows,
            title="impact ratio of selection rates",
            references={"four fifths": FOUR_FIFTHS},
            domain=(0.0, max([1.05, *(row["high"] or 0.0 for row in rows)])),
        ),
    )


def _withheld(category: CategoryImpact, table: ImpactTable, least: int) -> Row:
    """Return the fields that few people would give away, emptied, with the reason."""
    few = {one.category for one in table.categories if one.n_people < least}
    ratios = ("value", "low", "high", "from", "to", "p", "below")
    if category.category in few:
        fields = {"selected", "rate", "scoring", "scoring_ratio", *ratios}
        return {**dict.fromkeys(fields), "note": too_few(category.n_people, least)}
    fields = set(ratios) if table.most_selected in few else set()
    fields |= {"scoring_ratio"} if table.highest_scoring in few else set()
    reason = f"the highest rate is that of fewer than {n_people(least)}"
    return {**dict.fromkeys(fields), "note": reason if fields else ""}


def _impact_row(category: CategoryImpact, names: dict[str, str]) -> Row:
    ratio = category.impact_ratio
    return {
        "label": names[category.category],
        "series": "impact ratio",
        "people": category.n_people,
        "selected": category.n_selected,
        "rate": category.selection_rate.value,
        "value": ratio.value,
        "low": ratio.low,
        "high": ratio.high,
        # The category that others are compared with has a ratio of 1 and no interval.
        "from": "" if ratio.low is None else ratio.low,
        "to": "" if ratio.high is None else ratio.high,
        "p": "" if category.p_value is None else f"{category.p_value:.2g}",
        "below": "" if category.below_four_fifths is None else category.below_four_fifths,
        "scoring": _value(category.scoring_rate),
        "scoring_ratio": _value(category.scoring_ratio),
        "share": f"{category.share:.1%}",
        "small": "yes" if category.is_small else "",
    }


def _value(fact: Estimate | None) -> Any:
    return None if fact is None else fact.value


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
            for name in dict.fromkeys([*applicable(PROBABILITY), *gaps])
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


_COLUMNS = {"label": "group", "people": "people"}


def mean_figure(audits: Sequence[Audit]) -> Figure:
    """Return the figure of the mean prediction of each group."""
    models = model_labels(audits)
    rows = [
        row
        for audit in audits
        for row in _predictions_rows(audit.groups, audit.unknown, models[audit.model_name])
    ]
    return Figure(
        "Mean prediction of each group",
        (
            f"A dot is the mean of the predictions; the bar is its {level(audits)} confidence "
            "interval.",
        ),
        noted(rows, {**_COLUMNS, **model_column(audits), **LIMITS, **NOTE}),
        rows,
        _predictions_panel(rows),
    )


def attribute_mean_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the mean prediction of each group, for every attribute by itself."""
    if not audits[0].attributes:
        return None
    models = model_labels(audits)
    names = told_apart(attribute.name for attribute in audits[0].attributes)
    rows: list[Row] = []
    panels: tuple[Panel, ...] = ()
    for k, shown in enumerate(names.values()):
        own = [
            {"attribute": shown, **row}
            for audit in audits
            for row in _predictions_rows(
                audit.attributes[k].groups, audit.attributes[k].unknown, models[audit.model_name]
            )
        ]
        rows += own
        panels += _predictions_panel(own, f"By {shown}")
    columns = {"attribute": "attribute", **_COLUMNS, **model_column(audits), **LIMITS, **NOTE}
    return Figure(
        "Each attribute by itself",
        (
            "The groups of one attribute at a time; the first figure shows their combinations. "
            "Each attribute can look even while the combinations do not.",
        ),
        noted(rows, columns),
        rows,
        panels,
    )


def _predictions_rows(
    groups: Sequence[GroupFacts], unknown: Sequence[str], model: str
) -> list[Row]:
    """Return one row per group, the largest first."""
    names = told_apart(group.label for group in groups)
    rows: list[Row] = []
    for group in by_size(tuple(groups)):
        facts = limits(group.mean_score)
        if group.label in unknown:
            facts["note"] = facts["note"] or "shown, and compared with nobody"
        own = {"label": names[group.label], "series": model, "people": group.n_rows}
        rows.append({**own, **facts})
    return rows


def _predictions_panel(rows: Sequence[Row], name: str = "") -> tuple[Panel, ...]:
    """Return a chart over the range of the means, which need not begin at 0."""
    ends = [row[end] for row in rows for end in LIMITS if row[end] is not None]
    if not ends:
        return ()
    margin = 0.04 * (max(ends) - min(ends)) or 0.04 * abs(ends[0]) or 1.0
    domain = min(ends) - margin, max(ends) + margin
    return panel(rows, name, title="mean prediction", domain=domain)


_RATIO = {"ratio": "ratio to the most selected"}


def selection_figure(audits: Sequence[Audit]) -> Figure:
    """Return the figure of the share of each group that is selected."""
    rows = [
        row
        for audit in audits
        for row in _selection_rows(
            audit.groups, audit.unknown, model_labels(audits)[audit.model_name]
        )
    ]
    ratios = [f"{_start(audit, audits)}{said}" for audit in audits if (said := _ratio(audit))]
    said = outcome_words(audits[0])
    return Figure(
        f"Share {said} of each group",
        (
            f"A dot is the share of people {said}; the bar is its {level(audits)} confidence "
            "interval.",
            *ratios,
        ),
        noted(
            rows,
            {**_COLUMNS, **_weighed(rows), **model_column(audits), **LIMITS, **_RATIO, **NOTE},
        ),
        rows,
        panel(rows, title=f"share {said}", domain=(0.0, 1.0)),
    )


def _selection_rows(groups: Sequence[GroupFacts], unknown: Sequence[str], model: str) -> list[Row]:
    """Return one row per group, the largest first."""
    names = told_apart(group.label for group in groups)
    known = [g.selection_rate.value for g in groups if g.label not in unknown]
    most = max((rate for rate in known if rate is not None), default=0.0)
    rows: list[Row] = []
    for group in by_size(tuple(groups)):
        rate, compared = group.selection_rate.value, group.label not in unknown
        facts = limits(group.selection_rate)
        if not compared:
            facts["note"] = facts["note"] or "shown, and compared with nobody"
        rows.append(
            {
                "label": names[group.label],
                "series": model,
                "people": group.n_rows,
                "weight": group.weight,
                "effective": group.effective_size,
                **facts,
                "ratio": rate / most if rate is not None and most > 0.0 and compared else None,
            }
        )
    return rows


def _weighed(rows: Sequence[Row]) -> dict[str, str]:
    """Return the columns for weights, if weights are not numbers of people."""
    columns = {"weight": "sum of weights", "effective": "worth people of equal weight"}
    return {
        key: words
        for key, words in columns.items()
        if any(row[key] not in (None, row["people"]) for row in rows)
    }


def _start(audit: Audit, audits: Sequence[Audit]) -> str:
    return f"{shown_name(audit.model_name)}: the" if len(audits) > 1 else "The"


def _ratio(facts: Audit | AttributeFacts) -> str:
    """Return the end of the sentence on the ratio of selection rates, if it is stated."""
    ratio: Estimate = facts.selection_ratio
    if ratio.value is None or ratio.low is None or ratio.high is None:
        return ""
    known = [group for group in facts.groups if group.label not in facts.unknown]
    stated = [group for group in known if group.selection_rate.value is not None]
    of = f" of {len(stated)} of the {len(known)} groups" if len(stated) < len(known) else ""
    return (
        f" smallest rate{of} is {ratio.value:.2f} of the largest ({ratio.low:.2f} to "
        f"{ratio.high:.2f})."
    )


def attribute_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the share of each group that is selected, for every attribute."""
    if not audits[0].attributes:
        return None
    models = model_labels(audits)
    names = told_apart(attribute.name for attribute in audits[0].attributes)
    rows: list[Row] = []
    panels: tuple[Panel, ...] = ()
    for k, (name, shown) in enumerate(names.items()):
        own = [
            {"attribute": shown, **row}
            for audit in audits
            for row in _selection_rows(
                audit.attributes[k].groups, audit.attributes[k].unknown, models[audit.model_name]
            )
        ]
        rows += own
        panels += panel(own, f"By {shown}", title=f"share {outcome_words(audits[0])}",
                        domain=(0.0, 1.0))  # fmt: skip
        assert audits[0].attributes[k].name == name
    ratios = [
        f"By {names[attribute.name]}{_of(audit, audits)}, the{said}"
        for audit in audits
        for attribute in audit.attributes
        if (said := _ratio(attribute))
    ]
    columns = {"attribute": "attribute", **_COLUMNS, **model_column(audits), **LIMITS}
    return Figure(
        "Each attribute by itself",
        (
            "The groups of one attribute at a time; the first figure shows their combinations. "
            "Each attribute can look even while the combinations do not.",
            *ratios,
        ),
        noted(rows, {**columns, **_RATIO, **NOTE}),
        rows,
        panels,
    )


def _of(audit: Audit, audits: Sequence[Audit]) -> str:
    return f" under {shown_name(audit.model_name)}" if len(audits) > 1 else ""


# How many bars a chart shows; the table below it shows all.
_subsets_MOST_BARS = 12


def subset_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the subsets whose gaps are surest."""
    rows: list[Row] = []
    panels: tuple[Panel, ...] = ()
    reading: list[str] = []
    drawn = False
    for audit in audits:
        if audit.subsets is None:
            continue
        own = _subsets_rows(audit, model_labels(audits)[audit.model_name])
        rows += own
        overall = audit.gap("mean_parity_gap").value
        name = model_labels(audits)[audit.model_name] if len(audits) > 1 else ""
        panels += panel(
            [row for row in own if row["value"] is not None][:_subsets_MOST_BARS],
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


def _subsets_rows(audit: Audit, model: str) -> list[Row]:
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
    drawn = min(len(stated), _subsets_MOST_BARS)
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
