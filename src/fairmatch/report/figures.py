"""The figures of a report: one table of facts each, its charts, and how to read both.

A figure is data. Each of its rows holds the facts of one line of the table and, where there is an
estimate, of one mark of a chart: `_intervals` draws the rows, in as many charts as they name. A
column without an entry and an empty sentence are left out, so a figure names all that it may have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

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
    gap_axis,
    interval_chart,
    step_chart,
    tradeoff_chart,
    tradeoff_rows,
)
from fairmatch.report.wording import (
    MATCHINGS,
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


class Panel(NamedTuple):
    """A chart of a figure: a Vega-Lite specification, and its title among several charts."""

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
    """

    title: str
    reading: tuple[str, ...]
    columns: dict[str, str]
    rows: Sequence[Row]
    panels: tuple[Panel, ...] = ()
    legend: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shown = {key for row in self.rows for key, value in row.items() if value != ""}
        kept = {key: words for key, words in self.columns.items() if key in shown}
        object.__setattr__(self, "columns", kept)
        object.__setattr__(self, "reading", tuple(filter(None, self.reading)))


# Headings of the columns, if they are not the names of the fields.
_HEADINGS = {
    "value": "estimate",
    "low": "from",
    "high": "to",
    "better": "better off",
    "cost": "mean squared distance",
    "smallest": "nearest possible",
    "agreement": "rank agreement",
    "undesirable": "undesirable flips",
    "gained": "newly selected",
    "lost": "no longer selected",
}


def _columns(*fields: str, **headings: str) -> dict[str, str]:
    """Return columns by their fields, some with a heading of their own."""
    return {name: headings.get(name) or _HEADINGS.get(name, name) for name in fields}


# Up to this many charts have their own legends; more charts share one.
FEW_PANELS = 2

# Most bars in a chart that is alone, and in one of several. The table below it shows all.
_MOST_BARS, _FEW_BARS = 12, 6

# Names in charts are cut at this length.
_LONGEST = 60

_LIMITS = ("value", "low", "high")
_ALIKE = "gap (0 = alike)"
_COSTS = ("cost", "smallest", "random")
_NEAREST = "0 = as near as possible, 1 = as random"


class _Model(NamedTuple):
    """An audit, and how its model and its groups are written.

    The title is the name of the model; it is empty if there are no other models.
    """

    audit: Audit
    name: str
    title: str
    groups: dict[str, str]

    @property
    def row(self) -> dict[str, Any]:
        """The fields of a row that is one of a series per model."""
        return {"series": self.name, "model": self.title}

    def said(self, sentence: str) -> str:
        """Return a sentence on the model, which begins with its name if there are several."""
        return f"{self.title}: {sentence}" if self.title and sentence else sentence


def _models(audits: Sequence[Audit]) -> list[_Model]:
    names = told_apart(audit.model_name for audit in audits)
    several = len(audits) > 1
    return [
        _Model(
            audit,
            names[audit.model_name],
            names[audit.model_name] if several else "",
            told_apart(group.label for group in audit.groups),
        )
        for audit in audits
    ]


def _estimate(fact: Estimate | Gap) -> dict[str, Any]:
    """Return an estimate, or why there is none, as the fields of a row."""
    return {"value": fact.value, "low": fact.low, "high": fact.high, "note": fact.refused or ""}


def _facts(fact: Any, *names: str) -> dict[str, Any]:
    """Return some attributes of a fact as the fields of a row."""
    return {name: getattr(fact, name) for name in names}


def level(audits: Sequence[Audit]) -> str:
    """Return the level of the intervals."""
    return f"{audits[0].confidence:.0%}"


Domain = tuple[float, float]


def _intervals(
    rows: Iterable[Row],
    axis: str,
    *,
    domain: Domain | Callable[[Sequence[Row]], Domain] | None = None,
    **options: Any,
) -> tuple[Panel, ...]:
    """Return charts of dots with intervals, one for each ``panel`` that rows name.

    A row without a value is not drawn, and neither is one whose panel is None.
    """
    panels: dict[str, list[Row]] = {}
    for row in rows:
        if row["value"] is not None and (name := row.get("panel", "")) is not None:
            panels.setdefault(name, []).append(row)
    return tuple(
        Panel(
            finished(
                interval_chart(
                    own, title=axis, domain=domain(own) if callable(domain) else domain, **options
                )
            ),
            name,
        )
        for name, own in panels.items()
    )


def _sharing(
    charts: Sequence[tuple[str, Any]], legend: dict[str, str]
) -> tuple[tuple[Panel, ...], dict[str, str]]:
    """Return charts as panels with their own legends; many charts share the one that is given."""
    few = len(charts) <= FEW_PANELS
    panels = (Panel(finished(chart, legend=few), title) for title, chart in charts)
    return tuple(panels), {} if few else legend


def _least_people(audit: Audit) -> int:
    """Return the fewest people that a row may show: 1, unless the page is without individuals."""
    if audit.individuals is not None:
        return 1
    return int(audit.provenance.settings.get("min_group_size") or 1)


def _too_few(number: int, least: int) -> str:
    """Return why a row of so few people is not shown."""
    return f"{n_people(number)}, fewer than the {least} a statement needs"


# The search for alternatives, and the columns of the table.

_VERDICTS = {"yes": "less discriminatory", "not shown": "not shown", "no": "other"}


def alternatives_figure(found: Alternatives) -> Figure:
    """Return the figure of accuracy against the gap for everything that was tried."""
    title = MEASURES[found.gap_measure].title.lower()
    points = [
        (found.baseline, found.accuracy, found.gap, "baseline"),
        *((one.name, one.accuracy, one.gap, _VERDICTS[one.verdict]) for one in found.tried),
    ]
    keys = ("label", "accuracy", "gap", "series")
    drawn = [
        {**dict(zip(keys, (shown_name(name, _LONGEST), *rest), strict=True)), "weight": None}
        for name, *rest in points
    ]
    columns = _columns(
        *("name", "accuracy", "accuracy_change", "gap", "gap_change", "gained", "lost", "verdict"),
        name="model",
        accuracy_change="change of accuracy",
        gap_change="change of the gap",
        verdict="less discriminatory",
    )
    baseline = {"name": f"{found.baseline} (baseline)", "accuracy": found.accuracy}
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
        columns,
        [{**dict.fromkeys(columns, ""), **baseline, "gap": found.gap}, *map(_tried, found.tried)],
        (Panel(finished(tradeoff_chart(drawn, title=f"gap of {title}"))),),
    )


def _tried(one: Alternative) -> Row:
    def signed(change: Estimate) -> str:
        return f"{change.value:+.3f} ({change.low:+.3f} to {change.high:+.3f})"

    def people(counts: dict[str, int]) -> str:
        return ", ".join(f"{shown_name(group)} {n:,}" for group, n in counts.items())

    return {
        "name": one.name,
        "accuracy": one.accuracy,
        "accuracy_change": signed(one.accuracy_change),
        "gap": one.gap,
        "gap_change": signed(one.gap_change),
        "gained": people(one.gained),
        "lost": people(one.lost),
        "verdict": one.verdict_words(),
    }


def column_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of how every column was read: a table without a chart."""
    columns = audits[0].columns
    if not columns:
        return None
    headings = {
        "name": "column",
        "role": "read as",
        "type": "holds",
        "n_distinct": "different values",
        "n_missing": "missing",
        "why": "why",
        "doubt": "look at",
    }
    return Figure("The columns", (), headings, [_facts(column, *headings) for column in columns])


# Groups: how many are selected, or what is predicted of them.


def group_figure(audits: Sequence[Audit]) -> Figure:
    """Return the figure of the share of each group that is selected, or of its mean prediction."""
    rows = [row for model in _models(audits) for row in _group_rows(model, model.audit)]
    weights = [
        name
        for name in ("weight", "effective_size")
        if any(row[name] not in (None, row["people"]) for row in rows)
    ]
    said = outcome_words(audits[0])
    title, dot, axis = (
        ("Mean prediction of each group", "A dot is the mean of the predictions", "mean prediction")
        if audits[0].kind == "number"
        else (
            f"Share {said} of each group",
            f"A dot is the share of people {said}",
            f"share {said}",
        )
    )
    ratios = [
        f"{f'{shown_name(model.audit.model_name)}: the' if model.title else 'The'}{said}"
        for model in _models(audits)
        if (said := _on_ratio(model.audit))
    ]
    return Figure(
        title,
        (f"{dot}; the bar is its {level(audits)} confidence interval.", *ratios),
        _group_columns(*weights),
        rows,
        _intervals(rows, axis, domain=_group_domain(audits[0])),
    )


def attribute_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the same figure for the groups of every attribute by itself."""
    if not audits[0].attributes:
        return None
    names = told_apart(attribute.name for attribute in audits[0].attributes)
    models = _models(audits)
    rows = [
        {"attribute": shown, "panel": f"By {shown}", **row}
        for k, shown in enumerate(names.values())
        for model in models
        for row in _group_rows(model, model.audit.attributes[k])
    ]
    ratios = [
        f"By {names[attribute.name]}{under}, the{said}"
        for model in models
        for under in [f" under {shown_name(model.audit.model_name)}" if model.title else ""]
        for attribute in model.audit.attributes
        if (said := _on_ratio(attribute))
    ]
    real = audits[0].kind == "number"
    return Figure(
        "Each attribute by itself",
        (
            "The groups of one attribute at a time; the first figure shows their combinations. "
            "Each attribute can look even while the combinations do not.",
            *ratios,
        ),
        {"attribute": "attribute", **_group_columns()},
        rows,
        _intervals(
            rows,
            "mean prediction" if real else f"share {outcome_words(audits[0])}",
            domain=_group_domain(audits[0]),
        ),
    )


def _group_columns(*weights: str) -> dict[str, str]:
    return _columns(
        *("label", "people", *weights, "model", *_LIMITS, "ratio", "note"),
        label="group",
        weight="sum of weights",
        effective_size="worth people of equal weight",
        ratio="ratio to the most selected",
    )


def _group_rows(model: _Model, facts: Audit | AttributeFacts) -> list[Row]:
    """Return one row per group, the largest first."""
    names = told_apart(group.label for group in facts.groups)
    compared = [group for group in facts.groups if group.label not in facts.unknown]
    most = max((group.selection_rate.value or 0.0 for group in compared), default=0.0)
    rows: list[Row] = []
    real = model.audit.kind == "number"
    for group in by_size(facts.groups):
        rate = group.selection_rate.value
        own = _estimate(group.mean_score if real else group.selection_rate)
        if group.label in facts.unknown:
            own["note"] = own["note"] or "shown, and compared with nobody"
            rate = None
        ratio = rate / most if rate is not None and most > 0.0 else None
        rows.append(
            {
                "label": names[group.label],
                **model.row,
                "people": group.n_rows,
                **_facts(group, "weight", "effective_size"),
                **own,
                "ratio": "" if real else ratio,
            }
        )
    return rows


def _group_domain(audit: Audit) -> Domain | Callable[[Sequence[Row]], Domain]:
    """Return the ends of the axis: 0 and 1 for shares, and for means those of what is drawn."""
    return _around if audit.kind == "number" else (0.0, 1.0)


def _around(rows: Sequence[Row]) -> Domain:
    """Return the range of some estimates with a margin, which need not begin at 0."""
    ends = [row[end] for row in rows for end in _LIMITS if row[end] is not None]
    margin = 0.04 * (max(ends) - min(ends)) or 0.04 * abs(ends[0]) or 1.0
    return min(ends) - margin, max(ends) + margin


def _on_ratio(facts: Audit | AttributeFacts) -> str:
    """Return the end of the sentence on the ratio of selection rates, if it is stated."""
    ratio = facts.selection_ratio
    if ratio.value is None or ratio.low is None or ratio.high is None:
        return ""
    known = [group for group in facts.groups if group.label not in facts.unknown]
    n_stated = sum(group.selection_rate.value is not None for group in known)
    of = f" of {n_stated} of the {len(known)} groups" if n_stated < len(known) else ""
    return (
        f" smallest rate{of} is {ratio.value:.2f} of the largest ({ratio.low:.2f} to "
        f"{ratio.high:.2f})."
    )


# Gaps.


def gap_figure(audits: Sequence[Audit]) -> Figure:
    """Return the figure of every gap with its interval; with many groups, of the largest."""
    models = _models(audits)
    many = any(audit.pair_gaps for audit in audits)
    rows = [
        {
            **_gap_row(gap, model.audit, models[0].groups),
            **({} if many else {"between": ""}),
            **model.row,
            "panel": _unit(name, model.audit),
            "meaning": gap_words(name, model.audit),
            "method": gap.method,
        }
        for name in _in_order(gap for audit in audits for gap in audit.gaps)
        for model in models
        for gap in model.audit.gaps
        if gap.name == name
    ]
    return Figure(
        "The largest gap over pairs of groups" if many else "Gaps with their intervals",
        (
            "0 is alike. A bar that reaches 0 means that these people do not show a difference, "
            "not that there is none.",
        ),
        _columns(
            *("label", "symbol", "model", *_LIMITS, "between", "better", "meaning", "method"),
            *("note",),
            label="gap",
            meaning="what it is",
            method="interval",
        ),
        rows,
        _intervals(rows, _ALIKE),
    )


def _gap_row(gap: Gap, audit: Audit, names: dict[str, str]) -> dict[str, Any]:
    """Return a gap as the fields of a row."""
    first, second = (names.get(one, one) for one in gap.groups or ("", ""))
    return {
        "label": gap_title(gap.name, audit),
        "symbol": gap.symbol,
        **_estimate(gap),
        "between": f"{first} – {second}" if gap.groups else "",
        "better": "" if gap.favoured is None else names.get(gap.favoured, gap.favoured),
    }


def _in_order(gaps: Iterable[Gap]) -> list[str]:
    """Return the names of some gaps in the order of the registry of measures."""
    found = {gap.name for gap in gaps}
    return [*(name for name in MEASURES if name in found), *sorted(found - MEASURES.keys())]


def _unit(name: str, audit: Audit) -> str:
    """Return the unit of a gap of predictions, as the title of the chart of all that share it."""
    if audit.kind != "number":
        return ""
    spread = audit.spread.of if audit.spread else "target"
    titles = {
        "score": "In units of the target",
        "deviation": f"In standard deviations of the {spread}",
        "share": "As a share of the people",
    }
    return titles[MEASURES[name].unit]


def _is_drawn_by_pair(name: str) -> bool:
    """Return whether a gap is drawn for every pair and attribute: a difference of one rate.

    The other gaps, and relative gaps, which would repeat the picture, are in the table.
    """
    measure = MEASURES.get(name)
    if measure is None or measure.distance is not None or len(measure.labels) > 1:
        return False
    return not (measure.needs_coupling or measure.is_relative)


def pair_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of gaps between each group and the reference.

    The two groups that lie farthest apart are in it too.
    """
    if not any(audit.pair_gaps for audit in audits):
        return None
    models = _models(audits)
    names, reference = models[0].groups, audits[0].reference
    sizes = {group.label: group.n_rows for group in audits[0].groups}

    def order(gap: Gap) -> tuple[bool, int]:
        """Put pairs with the reference first, and larger groups before smaller ones."""
        smaller = min((sizes.get(one, 0) for one in gap.groups or ()), default=0)
        return reference not in (gap.groups or ()), -smaller

    rows: list[Row] = []
    for name in _in_order(gap for audit in audits for gap in audit.pair_gaps):
        title = gap_title(name, audits[0]) if _is_drawn_by_pair(name) else None
        for model in models:
            for gap in sorted((g for g in model.audit.pair_gaps if g.name == name), key=order):
                own = _gap_row(gap, model.audit, names)
                others = [names[one] for one in gap.groups or () if one != reference]
                pair = {"measure": own["label"], "label": " – ".join(others), "panel": title}
                rows.append({**own, **pair, **model.row})
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
        _columns(
            *("measure", "between", "symbol", "model", *_LIMITS, "better", "note"), measure="gap"
        ),
        rows,
        _intervals(rows, _ALIKE),
    )


def attribute_gap_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the largest gaps of each attribute, beside those of combinations."""
    if not audits[0].attributes:
        return None
    attributes = told_apart(attribute.name for attribute in audits[0].attributes)
    rows: list[Row] = []
    for model in _models(audits):
        parts: list[tuple[str, Audit | AttributeFacts]] = [
            (f"by {attributes[part.name]}", part) for part in model.audit.attributes
        ]
        parts.append(("by their combinations", model.audit))
        rows += [
            {
                **_gap_row(gap, model.audit, told_apart(group.label for group in part.groups)),
                **model.row,
                "series": words,
                "panel": model.title if _is_drawn_by_pair(name) else None,
            }
            for name in _in_order(model.audit.gaps)
            for words, part in parts
            for gap in part.gaps
            if gap.name == name
        ]
    return Figure(
        "By attribute and by combination",
        (
            "The largest gap over the pairs of groups that one attribute makes, and over those of "
            "the combinations. Combinations are more and smaller groups, so their largest gap "
            "tends to be larger by chance too.",
        ),
        _columns(
            *("label", "series", "model", *_LIMITS, "between", "better", "note"),
            label="gap",
            series="groups",
        ),
        rows,
        _intervals(rows, _ALIKE),
    )


# Rates and impact ratios, to be filed.


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
    return [
        _impact_figure(model, table) for model in _models(audits) for table in model.audit.impact
    ]


def _impact_figure(model: _Model, table: ImpactTable) -> Figure:
    names = told_apart(category.category for category in table.categories)
    order = sorted(table.categories, key=lambda category: -category.n_people)
    least = _least_people(model.audit)
    rows = [
        {**_impact_row(category, names), **_withheld(category, table, least)} for category in order
    ]
    columns = _columns(
        *("label", "people", "selected", "rate", "value", "from", "to", "p", "below", "scoring"),
        *("scoring_ratio", "share", "small", "note"),
        label="category",
        rate="selection rate",
        value="impact ratio",
        p="p-value",
        below="below 0.8",
        scoring="scoring rate",
        scoring_ratio="impact ratio (scoring)",
        share="share of people",
        small="less than 2%",
    )
    together = "" if len(table.attributes) == 1 else " together"
    title = f"By {listed([column_words(name) for name in table.attributes])}{together}"
    return Figure(
        f"{title}: {model.title}" if model.title else title,
        tuple(_on_impact(table, order, least, withheld=any(row["note"] for row in rows))),
        columns,
        rows,
        _intervals(
            rows,
            "impact ratio of selection rates",
            references={"four fifths": FOUR_FIFTHS},
            domain=(0.0, max([1.05, *(row["high"] or 0.0 for row in rows)])),
        ),
    )


def _on_impact(
    table: ImpactTable, order: Sequence[CategoryImpact], least: int, *, withheld: bool
) -> list[str]:
    """Return the sentences on a table of categories, the largest of which comes first."""
    unknown = "nobody of unknown category."
    if table.n_unknown:
        unknown = f"{n_people(table.n_unknown)} of unknown category, scored and left out."
    said = [f"{n_people(table.n_people)} of known category; {unknown}"]
    small = any(category.is_small for category in order)
    among = " among categories of at least 2% of the people" if small else ""
    for what in ("selection", "scoring"):
        highest = table.highest(f"{what}_rate")
        shown = [c for c in order if c.category in highest and c.n_people >= least]
        if highest and len(shown) == len(highest):
            who = listed([group_words(category.category) for category in shown])
            said.append(f"Highest {what} rate{among}: {who}.")
    if withheld:
        said.append(
            "The page is without individuals, so no rates are shown of categories with fewer than "
            f"{n_people(least)}, nor ratios to one of them."
        )
    elif few := [group_words(category.category) for category in order if category.is_few]:
        said.append(
            f"Nothing else is stated about so few people: {listed(few)}. Their rates are shown "
            "because every category is filed."
        )
    if not withheld and any(category.n_people == 1 for category in order):
        said.append("The row of a category of 1 person is the decision on that person.")
    if small:
        said.append(
            "Categories of less than 2% of the people are marked; the rule allows them to be left "
            "out, and no other category is compared with them."
        )
    return said


def _withheld(category: CategoryImpact, table: ImpactTable, least: int) -> Row:
    """Return the fields that few people would give away, emptied, with the reason."""
    few = {one.category for one in table.categories if one.n_people < least}
    ratios = ("value", "low", "high", "from", "to", "p", "below")
    if category.category in few:
        fields = {"selected", "rate", "scoring", "scoring_ratio", *ratios}
        return {**dict.fromkeys(fields), "note": _too_few(category.n_people, least)}
    fields = set(ratios) if table.most_selected in few else set()
    fields |= {"scoring_ratio"} if table.highest_scoring in few else set()
    reason = f"the highest rate is that of fewer than {n_people(least)}"
    return {**dict.fromkeys(fields), "note": reason if fields else ""}


def _impact_row(category: CategoryImpact, names: dict[str, str]) -> Row:
    ratio = category.impact_ratio
    scoring, scoring_ratio = category.scoring_rate, category.scoring_ratio
    return {
        "label": names[category.category],
        "series": "impact ratio",
        "people": category.n_people,
        "selected": category.n_selected,
        "rate": category.selection_rate.value,
        **_estimate(ratio),
        # The category that others are compared with has a ratio of 1 and no interval.
        "from": "" if ratio.low is None else ratio.low,
        "to": "" if ratio.high is None else ratio.high,
        "p": "" if category.p_value is None else f"{category.p_value:.2g}",
        "below": "" if category.below_four_fifths is None else category.below_four_fifths,
        "scoring": "" if scoring is None else scoring.value,
        "scoring_ratio": "" if scoring_ratio is None else scoring_ratio.value,
        "share": f"{category.share:.1%}",
        "small": "yes" if category.is_small else "",
    }


# Distributions of scores, and what became of the people.

# Scores that leave this share of the intervals between them empty take few values.
_FEW_VALUES = 0.33


def score_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the scores of all groups; None if every group is too small."""
    if not any(map(_stated, audits)):
        return None
    what = "prediction" if audits[0].kind == "number" else "score"
    rows: list[Row] = []
    panels: list[Panel] = []
    for model in _models(audits):
        own = _score_rows(model)
        # The table leaves out intervals that hold nobody.
        filled = {row["low"] for row in own if row["people"]}
        rows += [{"model": model.title, **row} for row in own if row["low"] in filled]
        panels += _score_panels(model, own, what)
    if any(takes_few_values(audit) for audit in audits):
        drawn = (
            f"{what.capitalize()}s that take few values are drawn without the intervals between "
            "them."
        )
    elif audits[0].threshold is not None:
        rules = dict.fromkeys(f"{outcome_words(audit)}: {selected_from(audit)}" for audit in audits)
        drawn = (
            f"The dashed line is the threshold ({'; '.join(rules)}). Where many people stand close "
            "to it, a small change of the model changes many decisions."
        )
    else:
        drawn = ""
    small = any(len(_stated(audit)) < len(audit.groups) for audit in audits)
    return Figure(
        f"{what.capitalize()}s of every group",
        (
            f"The share of each group's people in every interval of {what}s.",
            drawn,
            "Groups with too few people for a statement are left out." if small else "",
        ),
        _columns(
            *("model", "series", "low", "high", "people", "share", "cumulative"),
            series="group",
            low=f"{what} from",
            cumulative="share up to here",
        ),
        rows,
        tuple(panels),
        _reference_legend(audits[0]),
    )


def _stated(audit: Audit) -> list[GroupFacts]:
    """Return the groups that are large enough for a statement, the largest first."""
    return [group for group in by_size(audit.groups) if group.mean_score.value is not None]


def _reference(audit: Audit) -> str:
    return audit.reference or by_size(audit.groups)[0].label


def _reference_legend(audit: Audit) -> dict[str, str]:
    """Return the legend of charts that show one of many groups beside the largest."""
    if len(_stated(audit)) <= 2:
        return {}
    words = "the group named above the chart", f"{shown_name(_reference(audit))}, the largest group"
    return dict(zip(words, GROUP_COLOURS, strict=True))


def _beside_reference(model: _Model, rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Return the rows of each of many groups and of the reference, with a title for their chart."""
    reference = model.groups[_reference(model.audit)]
    found = []
    for own in dict.fromkeys(row["series"] for row in rows):
        if own != reference:
            both = [row for row in rows if row["series"] in (own, reference)]
            # The group itself comes first, which gives it the same colour in every chart.
            both.sort(key=lambda row: row["series"] != own)
            found.append((model.said(own), both))
    return found


def takes_few_values(audit: Audit) -> bool:
    """Return whether the scores leave so many intervals empty that they look like a comb."""
    totals = [
        sum(group.score_counts[k] for group in audit.groups)
        for k in range(len(audit.score_edges) - 1)
    ]
    return _is_comb(totals, sum(totals))


def _is_comb(totals: Sequence[float], n_people: int) -> bool:
    """Return whether a histogram of so many people leaves many intervals empty."""
    filled = [k for k, total in enumerate(totals) if total]
    span = range(filled[0], filled[-1] + 1) if filled else range(0)
    empty = sum(totals[k] == 0 for k in span)
    # A handful of people leaves gaps between any scores.
    return len(span) > 2 and n_people >= 3 * len(span) and empty >= _FEW_VALUES * len(span)


def _filled_cells(rows: Sequence[Row], values: Sequence[float]) -> list[Row]:
    """Return the intervals that hold people; an interval with one of the values gets that value."""
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


def _score_rows(model: _Model) -> list[Row]:
    rows: list[Row] = []
    ends = list(zip(model.audit.score_edges, model.audit.score_edges[1:], strict=False))
    for group in _stated(model.audit):
        shares = [count / max(group.n_rows, 1) for count in group.score_counts]
        cells = zip(ends, group.score_counts, shares, accumulate(shares), strict=False)
        rows += [
            {
                "series": model.groups[group.label],
                "low": low,
                "high": high,
                "people": count,
                "share": share,
                "cumulative": min(total, 1.0),
            }
            for (low, high), count, share, total in cells
        ]
    return rows


def _score_panels(model: _Model, rows: list[Row], what: str) -> list[Panel]:
    """Return the histograms of scores: of two groups in one chart, or of each beside the largest.

    The curves of two groups whose scores take many values come with them.
    """
    audit, few = model.audit, takes_few_values(model.audit)
    marks = {} if audit.threshold is None else {"threshold": audit.threshold}

    def histogram(own: list[Row]) -> Any:
        if few:
            return cell_chart(_filled_cells(own, audit.score_values), title=what)
        return step_chart(own, title=what, colours=GROUP_COLOURS, references=marks)

    if len(_stated(audit)) > 2:
        return [
            Panel(finished(histogram(both), legend=False), title)
            for title, both in _beside_reference(model, rows)
        ]
    first = Panel(
        finished(histogram(rows)), model.title or ("" if few else "Share in each interval")
    )
    if few:
        return [first]
    title = f"{model.title}: share at or below each {what}" if model.title else "Share at or below"
    return [first, Panel(finished(cumulative_chart(rows, title=what)), title)]


def accuracy_figure(audits: Sequence[Audit]) -> Figure:
    """Return the figure of how well the models agree with the labels in each group."""
    good, bad = (label_words(audits[0], favourable) for favourable in (True, False))
    said = outcome_words(audits[0])
    facts = {
        "base_rate": f"{good.capitalize()} labels",
        "accuracy": "Accuracy",
        "true_positive_rate": f"Share {said} with a {good} label",
        "false_positive_rate": f"Share {said} with a {bad} label",
        "auc": "Ranking quality (AUC)",
    }
    rows = [
        {
            "what": words,
            "panel": words,
            "label": model.groups[group.label],
            **model.row,
            **_estimate(fact),
        }
        for name, words in facts.items()
        for model in _models(audits)
        for group in by_size(model.audit.groups)
        if not group.mean_score.refused and (fact := getattr(group, name)) is not None
    ]
    return Figure(
        "Agreement with the labels",
        (
            "Accuracy is the share of decisions that agree with the label. An AUC of 0.5 is a "
            "random order of people, 1 a perfect one.",
        ),
        _columns("what", "label", "model", *_LIMITS, "note", label="group"),
        rows,
        tuple(
            panel
            for axis, names in (("share", [*facts.values()][:-1]), ("AUC", [facts["auc"]]))
            for panel in _intervals(
                [row for row in rows if row["what"] in names], axis, domain=(0.0, 1.0)
            )
        ),
    )


def calibration_figure(audits: Sequence[Audit]) -> Figure:
    """Return the figure of calibration: whether a score means the same in all groups."""
    rows: list[Row] = []
    panels: list[Panel] = []
    errors = []
    for model in _models(audits):
        own: list[Row] = [
            {
                "model": model.title,
                "series": model.groups[group.label],
                "range": f"{part.low:.1f} to {part.high:.1f}",
                **_facts(part, "n_rows", "mean_score"),
                **_estimate(part.positive_rate),
            }
            for group in by_size(model.audit.groups)
            for part in group.calibration
            if part.n_rows
        ]
        rows += own
        n_groups = sum(bool(group.calibration) for group in model.audit.groups)
        charts = [(model.title, own)] if n_groups <= 2 else _beside_reference(model, own)
        panels += [
            Panel(finished(calibration_chart(drawn), legend=n_groups <= 2), title)
            for title, drawn in charts
            if drawn
        ]
        errors.append(model.said(_errors(model.audit)))
    said = "; ".join(filter(None, errors))
    return Figure(
        "Does a score mean the same in every group?",
        (
            "Where a dot lies on the diagonal, people with that score had positive labels that "
            "often. If the groups lie apart, the same score means different things for them. Dots "
            "of few people are unsure.",
            f"Mean distance from the diagonal: {said}." if said else "",
        ),
        _columns(
            *("model", "series", "range", "n_rows", "mean_score", *_LIMITS, "note"),
            series="group",
            range="scores",
            n_rows="people",
            mean_score="mean score",
            value="share positive",
        ),
        rows,
        tuple(panels),
        _reference_legend(audits[0]),
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


# Matchings.


class _Pair(NamedTuple):
    """A matching of two groups, with its model, how the two are written, and a chart's title."""

    model: _Model
    matching: Matching
    label: str
    title: str

    @property
    def row(self) -> dict[str, Any]:
        """The fields of a row on the matching."""
        many = len(self.model.audit.matchings) > 1
        return {**self.model.row, "label": self.label, "groups": self.label if many else ""}


def _pairs(audits: Sequence[Audit]) -> list[_Pair]:
    """Return the matchings of every model, with those of larger groups first.

    With many groups, all of which are matched with the reference, its name is left out.
    """
    found = []
    for model in _models(audits):
        audit = model.audit
        sizes = {group.label: group.n_rows for group in audit.groups}
        many = len(audit.matchings) > 1
        for matching in sorted(
            audit.matchings,
            key=lambda m: -min((sizes.get(g, 0) for g in m.groups or ()), default=0),
        ):
            both = [g for g in matching.groups or () if not many or g != audit.reference]
            label = " – ".join(model.groups.get(group, group) for group in both)
            title = ": ".join(filter(None, [model.title, label if many else ""]))
            found.append(_Pair(model, matching, label, title))
    return found


def _on_sample(audits: Sequence[Audit]) -> str:
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


def _distances(rows: Sequence[Row]) -> tuple[Panel, ...]:
    """Return the chart of distances between the nearest (0) and a random matching (1)."""
    low = min([0.0, *(row["value"] or 0.0 for row in rows)])
    high = max([1.0, *(row["high"] or row["value"] or 0.0 for row in rows)]) * 1.04
    return _intervals(rows, _NEAREST, references={"as random": 1.0}, domain=(low, high))


def position_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the position of each nearest fair matching.

    The position is 0 at the nearest matching and 1 at a random one.
    """
    rows = [
        {
            **pair.row,
            "value": found.position,
            "low": None,
            "high": None,
            "rank": pair.matching.transport.relative if pair.matching.transport else None,
            **_facts(found, "strict_position", "score_gap", "least_gap", *_COSTS),
        }
        for pair in _pairs(audits)
        if (found := pair.matching.nearest_fair) is not None
    ]
    if not rows:
        return None
    return Figure(
        "How far apart are people matched by their scores?",
        (
            "0 means as near to each other as any matching of the two groups can make them, 1 no "
            "nearer than people paired at random. A higher number means that the model reaches its "
            "score gap by giving like scores to people who are less alike.",
            _on_sample(audits),
        ),
        _columns(
            *("label", "model", "value", "strict_position", "rank", "score_gap", "least_gap"),
            *_COSTS,
            label="groups",
            value="position",
            strict_position="without slack",
            rank="same rank instead",
            score_gap="mean score gap",
            least_gap="least possible",
        ),
        rows,
        _distances(rows),
    )


def transport_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of how far apart people at the same rank are.

    Only matchings whose nearest fair matching could not be proven are in it.
    """
    rows: list[Row] = []
    for pair in _pairs(audits):
        found = pair.matching.transport
        if found is None or pair.matching.nearest_fair is not None:
            continue
        tied = found.cost_high > found.cost * (1.0 + 1e-6)
        ends = (found.relative, found.relative_high) if tied else (None, None)
        drawn = dict(zip(_LIMITS, (found.relative, *ends), strict=True))
        rows.append({**pair.row, **drawn, **_facts(found, *_COSTS, "undetermined")})
    if not rows:
        return None
    tied = any(row["low"] is not None for row in rows)
    return Figure(
        "How far apart are people at the same rank?",
        (
            "0 means as near to each other as any matching of the two groups can make them, 1 no "
            "nearer than people paired at random, and more than 1 farther apart than that.",
            "A bar is the range that tied scores leave open, not a confidence interval."
            if tied
            else "",
            _on_sample(audits),
        ),
        _columns(
            *("label", "model", *(_LIMITS if tied else ["value"]), *_COSTS, "undetermined"),
            label="groups",
            value="relative distance",
            low="from (ties)",
            high="to (ties)",
            undetermined="share tied",
        ),
        rows,
        _distances(rows),
    )


def curve_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of every model's curve: how near people can be at each score gap."""
    rows: list[Row] = []
    slack = 0.0
    for pair in _pairs(audits):
        if (found := pair.matching.nearest_fair) is None or found.position is None:
            continue
        slack = found.slack
        points: list[tuple[float, float, float | None, float, str]] = [
            (point.gap, point.gap - found.least_gap, point.position, point.cost, "")
            for point in found.curve
            if point.position is not None
        ]
        points.append((found.score_gap, found.slack, found.position, found.cost, "dot"))
        keys = ("gap", "slack", "position", "cost", "shown")
        rows += [
            {**pair.row, **dict(zip(keys, own, strict=True))}
            for own in sorted(points, key=lambda point: point[0])
        ]
    if not rows:
        return None
    top = max([0.05, *(row["position"] for row in rows)])
    charts = [
        (pair, curve_chart([row for row in rows if row["groups"] == pair], slack=slack, top=top))
        for pair in dict.fromkeys(row["groups"] for row in rows)
    ]
    names = [model.title for model in _models(audits) if model.title]
    return Figure(
        "How near can matched people be?",
        (
            "Each curve begins at the least mean score gap that a matching can have, and ends at "
            "the nearest matching of all. The farther a curve lies to the left and below, the "
            "nearer are the people who are matched by their scores.",
            f"The dot is the matching that is shown: its mean score gap is at most {slack:.3g} "
            "above the least.",
        ),
        _columns("model", "groups", "gap", "position", "cost", "shown", gap="mean score gap"),
        rows,
        *_sharing(charts, dict(zip(names, SERIES_COLOURS, strict=False))),
    )


def reach_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the share of people with a near person who is scored alike."""
    rows: list[Row] = []
    reading: list[str] = []
    for model, matching, _, _ in _pairs(audits):
        for reach in matching.reach:
            own, other = (model.groups.get(name, name) for name in (reach.group, reach.other))
            rows.append(
                {
                    "label": f"{own}, with {other}",
                    **model.row,
                    **_estimate(reach.share),
                    "near": reach.has_near.value,
                    **_facts(reach, "distance", "score_gap"),
                }
            )
        if sum(len(one.reach) for one in model.audit.matchings) <= 2:
            reading += map(model.said, reach_sentences(matching))
    if not rows:
        return None
    among = ", both taken among those who were drawn" if any(map(is_drawn, audits)) else ""
    alike = f"{rows[0]['score_gap']:.3g}"
    return Figure(
        "Is somebody near scored alike?",
        (
            *reading,
            "Near is the distance within which nine in ten people of the two groups have somebody "
            f"of the other group{among}. Alike is a score gap of at most {alike}.",
        ),
        _columns(
            *("label", "model", *_LIMITS, "near", "distance", "score_gap"),
            label="people",
            near="have somebody near",
            distance="near: squared distance up to",
            score_gap="alike: score gap up to",
        ),
        rows,
        _intervals(rows, "share of the group's people", domain=(0.0, 1.0)),
    )


def feature_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the columns that set matched people apart."""
    matched = [
        (pair, found.features)
        for pair in _pairs(audits)
        if (found := pair.matching.nearest_fair or pair.matching.transport) and found.features
    ]
    if not matched:
        return None
    most = _MOST_BARS if len(matched) == 1 else _FEW_BARS
    rows: list[Row] = []
    charts = []
    for pair, features in matched:
        names = told_apart((part.name for part in features), column_words)
        own = [
            {**pair.row, "label": names[part.name], **_facts(part, *_COSTS, "share")}
            for part in features
        ]
        rows += own
        chart = contribution_chart(own[:most], title="mean squared distance")
        charts.append((pair.title, chart))
    more = any(len(features) > most for _, features in matched)
    return Figure(
        "What sets them apart",
        (
            "How much each column adds to the squared distance of people matched by their scores. "
            "The marks show the same for the nearest possible and for a random matching: compare a "
            "bar with its marks, not with other bars, since a column with many categories adds "
            "much under any matching."
            + (" Columns that add less are only in the table." if more else ""),
        ),
        _columns(
            *("label", "groups", "model", *_COSTS, "share"),
            label="column",
            cost="matched by scores",
            share="share of the total",
        ),
        rows,
        *_sharing(charts, CONTRIBUTION_COLOURS),
    )


def matched_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the score gaps of matched people."""
    rows: list[Row] = []
    charts = []
    kinds: set[str] = set()
    for pair in _pairs(audits):
        if not pair.matching.matched_gaps:
            continue
        names = [pair.model.groups.get(name, name) for name in pair.matching.groups or ()]
        for match in _ordered(pair.matching):
            kinds.add(match.matching)
            rows.append(
                {
                    **pair.row,
                    "series": MATCHINGS[match.matching],
                    **_estimate(match.gap),
                    "median": match.quantiles.get("0.5"),
                    "high95": match.quantiles.get("0.95"),
                    **_flips(match.flips, names),
                    "cost": "" if match.transport_cost is None else match.transport_cost,
                }
            )
        charts.append((pair.title, _gap_histogram(pair)))
    if not rows:
        return None
    matchings = [matching for audit in audits for matching in audit.matchings]
    decides = audits[0].threshold is not None
    selected, other = outcome_words(audits[0]), other_words(audits[0])
    words = [name for kind, name in MATCHINGS.items() if kind in kinds]
    return Figure(
        "Score gaps of matched people",
        (
            "The score gap between two matched people, over all pairs. "
            + (f"A flip is a pair in which one is {selected} and the other is {other}. " * decides)
            + "Intervals take the pairs as given.",
            "A large score gap between people who are matched by their columns is a question to "
            "ask of the model, not proof of unequal treatment: what the table lacks may differ."
            if any(len(matching.matched_gaps) > 1 for matching in matchings)
            else "",
        ),
        _columns(
            *("series", "groups", "model", *_LIMITS, "median", "high95", "flips", "favoured"),
            *("cost",),
            series="people",
            value="mean gap",
            median="median gap",
            high95="95% are below",
            favoured=f"more often the one {selected}",
        ),
        rows,
        *_sharing(charts, dict(zip(words, SERIES_COLOURS, strict=False))),
    )


def _flips(flips: PairFlips | None, groups: Sequence[str]) -> Row:
    """Return how many pairs are flips, and of which group the favoured ones are more often."""
    if flips is None:
        return {"flips": "", "favoured": ""}
    favoured = groups[0 if flips.first_only > flips.second_only else 1]
    even = abs(flips.first_only - flips.second_only) < 1e-9
    share = flips.first_only + flips.second_only
    return {"flips": share, "favoured": "neither" if even else favoured}


def _ordered(matching: Matching) -> list[MatchedScores]:
    """Return the matchings of two groups in the order of their words."""
    order = list(MATCHINGS)
    return sorted(matching.matched_gaps, key=lambda match: order.index(match.matching))


def _gap_histogram(pair: _Pair) -> Any:
    """Return the chart of the score gaps of pairs, which run from 0 to the range of the scores."""
    audit, matching = pair.model.audit, pair.matching
    span = audit.score_edges[-1] - audit.score_edges[0]
    bins: list[Row] = [
        {
            "series": MATCHINGS[match.matching],
            "low": span * (k / len(match.histogram)),
            "high": span * ((k + 1) / len(match.histogram)),
            "share": share,
        }
        for match in _ordered(matching)
        for k, share in enumerate(match.histogram)
    ]
    histograms = (matched.histogram for matched in matching.matched_gaps)
    totals = [sum(shares) for shares in zip(*histograms, strict=True)]
    named: dict[str, Any] = {"title": "score gap of a pair", "of": "pairs"}
    if _is_comb(totals, sum(matching.n_sampled)):
        gaps = [abs(one - other) for one in audit.score_values for other in audit.score_values]
        return cell_chart(_filled_cells(bins, gaps), colours=SERIES_COLOURS, **named)
    end = max((row["high"] for row in bins if row["share"] > 0.0), default=1.0)
    return step_chart([row for row in bins if row["high"] <= end * (1.0 + 1e-9)], **named)


# Several models.


def side_by_side(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of several models' estimates side by side; None for one model."""
    if len(audits) < 2:
        return None
    found = [_estimates(audit) for audit in audits]
    # One column per model is easier to compare than one row per model.
    rows = [
        {"what": words, **{f"m{k}": own.get(words) for k, own in enumerate(found)}}
        for words in found[0]
        if any(own.get(words) is not None for own in found)
    ]
    same = len({(a.provenance.groups_sha256, a.provenance.features_sha256) for a in audits}) == 1
    return Figure(
        "All numbers side by side",
        (
            "Estimates without their intervals, which stand in the figures above: a small "
            "difference between two models may be chance.",
            ""
            if same
            else "The models were audited on different people, so a difference may come from "
            "the people and not from the model.",
        ),
        {"what": "measure", **{f"m{k}": model.name for k, model in enumerate(_models(audits))}},
        rows,
    )


def _estimates(audit: Audit) -> dict[str, float | int | None]:
    """Return the estimates of one model by their words; with many pairs, the largest."""
    gaps = {gap.name: gap.value for gap in audit.gaps}
    found = [matching.nearest_fair for matching in audit.matchings]
    placed = [one.position for one in found if one is not None and one.position is not None]
    right = [(g.accuracy and g.accuracy.value, g.weight or g.n_rows) for g in audit.groups]
    accuracy = None
    if all(value is not None for value, _ in right):
        correct = sum((value or 0.0) * weight for value, weight in right)
        accuracy = correct / sum(weight for _, weight in right)
    return {
        "ratio of selection rates": audit.selection_ratio.value,
        **{f"gap: {gap_title(name, audit).lower()}": gaps[name] for name in _in_order(audit.gaps)},
        "distance of people matched by their scores (0 = nearest, 1 = random)": max(
            placed, default=None
        ),
        "listed subsets with a sure gap": sum(map(certain, audit.subsets.subsets))
        if audit.subsets and not audit.subsets.refused
        else None,
        "accuracy": accuracy,
    }


def changed_figure(comparison: Comparison) -> Figure:
    """Return the figure of what differs from the reference model: decisions, and people's order."""
    first = _models(comparison.audits)[0]
    decides = first.audit.kind != "number"
    sizes = {group.label: group.n_rows for group in first.audit.groups}
    least = _least_people(first.audit)
    columns = _columns(
        *("label", "series", "lost", "gained", "agreement", "undesirable", "note"),
        label="model",
        series="group",
    )
    rows: list[Row] = []
    bars: list[Row] = []
    for pair in comparison.pairs:
        model = shown_name(pair.model, _LONGEST)
        for group in sorted(pair.rank_agreement, key=lambda name: -sizes.get(name, 0)):
            row: dict[str, Any] = {"label": model, "series": first.groups.get(group, group)}
            if sizes[group] < least:
                few = _too_few(sizes[group], least)
                rows.append({**dict.fromkeys(columns), **row, "note": few})
                continue
            row["agreement"] = pair.rank_agreement[group]
            if group in pair.decisions:
                _, row["lost"], row["gained"], _ = pair.decisions[group]
                who = f"{model}: {row['series']}" if len(comparison.pairs) > 1 else row["series"]
                total = max(sum(pair.decisions[group]), 1)
                bars += [
                    {"label": who, "series": columns[name], "value": row[name] / total}
                    | {"low": None, "high": None}
                    for name in ("lost", "gained")
                ]
            if pair.undesirable_flips is not None:
                row["undesirable"] = pair.undesirable_flips.get(group)
            rows.append({**dict.fromkeys(columns, ""), **row})
    reference = shown_name(first.audit.model_name)
    favoured = ""
    if comparison.privileged is not None and decides:
        favoured = (
            f"With {shown_name(comparison.privileged)} named as favoured, a flip is called "
            "undesirable if it takes from people of another group or gives to favoured ones."
        )
    return Figure(
        f"{'Decisions that change' if decides else 'The order of people'} against {reference}",
        (
            f"Decisions that differ from those of {reference}, as shares of each group, and how "
            "far the order of people within a group is the same (1 = the same order)."
            if decides
            else "How far the order of people within a group is the same as that of the "
            f"predictions of {reference} (1 = the same order).",
            favoured,
        ),
        columns,
        rows,
        _intervals(bars, "share of the group", colours=SERIES_COLOURS[2:]),
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
            "The points are estimates without intervals, on the rows the curve was made of. A "
            "point that is chosen and judged on the same rows looks better than it is.",
        ),
        {**columns, **{name: gap_title(name).lower() for name in names}},
        [{str(k): v for k, v in row.items()} for row in plain.to_dict("records")],
        (Panel(finished(tradeoff_chart(tradeoff_rows(plain, gap), title=gap_axis(gap)))),),
    )


# Subsets.


def subset_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the subsets whose gaps are surest."""
    rows: list[Row] = []
    panels: tuple[Panel, ...] = ()
    reading: list[str] = []
    for model in _models(audits):
        if (scan := model.audit.subsets) is None:
            continue
        own = _subset_rows(model)
        rows += own
        overall = model.audit.gap("mean_parity_gap").value
        panels += _intervals(
            [row for row in own if row["value"] is not None][:_MOST_BARS],
            "gap between mean scores",
            references={} if overall is None else {"gap over everybody": overall},
        )
        if own or not scan.refused:
            reading.append(model.said(_on_search(model.audit, own)))
        reading += scan.refused
    if panels:
        many = any(len(audit.matchings) > 1 for audit in audits)
        which = "largest gap of two groups" if many else "gap"
        reading.append(f"The dashed line is the {which} over everybody.")
    if not reading:
        return None
    return Figure(
        "Subsets with the surest gaps",
        tuple(reading),
        _columns(
            *("label", "model", *_LIMITS, "gap", "higher", "lower", "people", "note"),
            label="subset",
            value="gap on fresh rows",
            gap="gap on all rows",
            higher="higher in group",
            lower="lower in group",
        ),
        rows,
        panels,
    )


def _subset_rows(model: _Model) -> list[Row]:
    assert model.audit.subsets is not None
    many = len(model.audit.matchings) > 1
    rows: list[Row] = []
    for subset in surest_first(model.audit.subsets.subsets):
        names = [model.groups.get(group, group) for group in subset.groups or ()]
        first, second = zip(names, subset.n_rows, strict=True)
        higher, lower = (second, first) if subset.signed > 0 else (first, second)
        between = f" ({higher[0]} – {lower[0]})" if many else ""
        alike = shown_number(subset.gap) == shown_number(0.0)
        rows.append(
            {
                "label": f"{subset_name(subset)}{between}",
                "series": "on fresh rows",
                "model": model.title,
                "panel": model.title,
                **_estimate(subset.confirmed),
                "certain": certain(subset),
                "gap": subset.gap,
                "higher": "neither" if alike else higher[0],
                "lower": "neither" if alike else lower[0],
                "people": f"{higher[1]:,} {higher[0]}, {lower[1]:,} {lower[0]}",
            }
        )
    return rows


def _on_search(audit: Audit, rows: list[Row]) -> str:
    """Return sentences on the search, and on how many of the listed gaps are certain."""
    scan = audit.subsets
    assert scan is not None
    looked = (
        f"{scan.n_examined:,} subsets were looked at on {scan.n_search:,} rows; the gaps shown are "
        f"of {scan.n_confirm:,} other rows."
    )
    if not rows:
        return f"{looked} No subset is listed."
    n_stated = sum(row["value"] is not None for row in rows)
    said = f"{len(rows)} are listed" if len(rows) > 1 else "1 is listed"
    if n_stated < len(rows):
        said += f", {n_stated} of them with people enough for a statement on fresh rows"
    said += f"; the interval leaves 0 out in {sum(row['certain'] for row in rows) or 'none'}"
    if n_stated > _MOST_BARS:
        said += f". The chart shows the first {_MOST_BARS}"
    return f"{looked} {said}."


def half_space_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of gaps in random subsets, next to those of shuffled groups."""
    rows: list[Row] = []
    panels: list[Panel] = []
    n_empty = 0
    for model in _models(audits):
        if (scan := model.audit.subsets) is None or not scan.half_spaces.gaps:
            continue
        found = scan.half_spaces
        n_empty = max(n_empty, found.n_empty)
        drawn = {"this model": found.gaps, "groups shuffled": found.noise}
        edges = np.linspace(0.0, max(*found.gaps, *found.noise, 0.0) or 1.0, 21)
        bins: list[Row] = []
        for name, gaps in drawn.items():
            shares = np.histogram(gaps, bins=edges)[0] / max(len(gaps), 1)
            cells = zip(edges.tolist(), edges[1:].tolist(), shares.tolist(), strict=False)
            keys = ("low", "high", "share")
            bins += [{"series": name, **dict(zip(keys, cell, strict=True))} for cell in cells]
        rows += [
            {
                "series": name,
                "model": model.title,
                "n": len(gaps),
                **{f"q{q}": float(np.quantile(gaps, q / 100)) for q in (50, 95, 100)},
            }
            for name, gaps in drawn.items()
            if gaps
        ]
        chart = step_chart(bins, title="gap between mean scores", of="subsets")
        panels.append(Panel(finished(chart), model.title))
    if not rows:
        return None
    first = audits[0]
    gap, empty = "the gap between the groups' mean scores", "nobody of one group"
    if len(first.matchings) > 1 and first.reference is not None:
        largest = group_words(first.reference)
        gap = f"the largest gap between a group's mean score and that of {largest}"
        empty = f"nobody of {largest}, or nobody of any other group,"
    cuts, are = ("1 cut", "is") if n_empty == 1 else (f"{n_empty:,} cuts", "are")
    return Figure(
        "Gaps in random subsets",
        (
            f"Each of many random cuts through the table keeps some people; this is {gap} among "
            "them.",
            "Small subsets have gaps by chance alone. The second outline shows how large, with the "
            "group labels shuffled among people: only gaps larger than these are evidence about "
            "the model." + (f" {cuts} kept {empty} and {are} left out." if n_empty else ""),
        ),
        _columns(
            *("series", "model", "n", "q50", "q95", "q100"),
            series="groups",
            n="subsets",
            q50="median",
            q95="95% below",
            q100="largest",
        ),
        rows,
        tuple(panels),
    )
