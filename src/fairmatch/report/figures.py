"""The figures of a report: the facts of one table each, and its charts.

A figure is data. Each of its rows holds the facts of one line of the table and, where there is an
estimate, of one mark of a chart: `_intervals` draws the rows, in as many charts as they name. Its
words are in ``figures.txt.j2``: the title, how to read it, and the headings of the columns. A
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
    ConditionalFacts,
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
    base_words,
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
    template,
    told_apart,
)


class Panel(NamedTuple):
    """A chart of a figure: a Vega-Lite specification, and its title among several charts."""

    chart: dict[str, Any]
    title: str = ""


@dataclass(frozen=True)
class Figure:
    """One table of facts, its charts, and how to read both.

    The columns map fields of the rows to headings. The legend maps words to colours, if the charts
    share one; otherwise each has its own.
    """

    title: str
    reading: tuple[str, ...]
    columns: dict[str, str]
    rows: Sequence[Row]
    panels: tuple[Panel, ...] = ()
    legend: dict[str, str] = field(default_factory=dict)


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


def _told(key: str, **facts: Any) -> list[str]:
    """Return the lines that the template has for a figure."""
    text = str(getattr(template("figures.txt.j2").module, key)(**facts))
    return [line for line in map(str.strip, text.splitlines()) if line]


def _figure(
    key: str,
    rows: Sequence[Row],
    panels: Sequence[Panel] = (),
    legend: dict[str, str] | None = None,
    headings: dict[str, str] | None = None,
    **facts: Any,
) -> Figure:
    """Return a figure with the words of the template; headings are those of further columns."""
    title, *reading, fields = _told(key, **facts)
    named = dict(
        part.strip().partition(" = ")[::2] for part in fields[len("columns:") :].split("|")
    )
    columns = {name: words or _HEADINGS.get(name, name) for name, words in named.items()}
    shown = {name for row in rows for name, value in row.items() if value != ""}
    kept = {name: words for name, words in {**columns, **(headings or {})}.items() if name in shown}
    return Figure(title, tuple(reading), kept, rows, tuple(panels), legend or {})


# Up to this many charts have their own legends; more charts share one.
FEW_PANELS = 2

# Most bars in a chart that is alone, and in one of several. The table below it shows all.
_MOST_BARS, _FEW_BARS = 12, 6

# Names in charts are cut at this length.
_LONGEST = 60

_LIMITS = ("value", "low", "high")
_ALIKE = "gap (0 = alike)"
_COSTS = ("cost", "smallest", "random")


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
    return [
        _Model(
            audit,
            names[audit.model_name],
            names[audit.model_name] if len(audits) > 1 else "",
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
    charts = {
        name: interval_chart(
            own, title=axis, domain=domain(own) if callable(domain) else domain, **options
        )
        for name, own in panels.items()
    }
    return tuple(Panel(finished(chart), name) for name, chart in charts.items())


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
    measure = MEASURES[found.gap_measure].title.lower()
    points = [
        (found.baseline, found.accuracy, found.gap, "baseline"),
        *((one.name, one.accuracy, one.gap, _VERDICTS[one.verdict]) for one in found.tried),
    ]
    drawn = [
        {"label": shown_name(name, _LONGEST), "accuracy": accuracy, "gap": gap, "series": series}
        | {"weight": None}
        for name, accuracy, gap, series in points
    ]
    baseline = {"name": f"{found.baseline} (baseline)", **_facts(found, "accuracy", "gap")}
    return _figure(
        "alternatives",
        [baseline, *map(_tried, found.tried)],
        [Panel(finished(tradeoff_chart(drawn, title=f"gap of {measure}")))],
        found=found,
        measure=measure,
        baseline=shown_name(found.baseline),
    )


def _tried(one: Alternative) -> Row:
    def signed(change: Estimate) -> str:
        return f"{change.value:+.3f} ({change.low:+.3f} to {change.high:+.3f})"

    def people(counts: dict[str, int]) -> str:
        return ", ".join(f"{shown_name(group)} {n:,}" for group, n in counts.items())

    return {
        **_facts(one, "name", "accuracy", "gap"),
        "accuracy_change": signed(one.accuracy_change),
        "gap_change": signed(one.gap_change),
        "gained": people(one.gained),
        "lost": people(one.lost),
        "verdict": one.verdict_words(),
    }


def column_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of how every column was read: a table without a chart."""
    columns = audits[0].columns
    names = ("name", "role", "type", "n_distinct", "n_missing", "why", "doubt")
    return _figure("columns", [_facts(own, *names) for own in columns]) if columns else None


# Groups: how many are selected, or what is predicted of them.


def group_figure(audits: Sequence[Audit]) -> Figure:
    """Return the figure of the share of each group that is selected, or of its mean prediction."""
    rows = [row for model in _models(audits) for row in _group_rows(model, model.audit)]
    ratios = [
        f"{f'{shown_name(model.audit.model_name)}: the' if model.title else 'The'}{said}"
        for model in _models(audits)
        if (said := _on_ratio(model.audit, model.audit))
    ]
    return _figure(
        "groups",
        rows,
        _group_panels(audits[0], rows),
        real=audits[0].kind == "number",
        outcome=outcome_words(audits[0]),
        level=level(audits),
        ratios=ratios,
        weighted=[
            name
            for name in ("weight", "effective_size")
            if any(row[name] not in (None, row["people"]) for row in rows)
        ],
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
        if (said := _on_ratio(attribute, model.audit))
    ]
    return _figure("attributes", rows, _group_panels(audits[0], rows), ratios=ratios)


def _group_rows(model: _Model, facts: Audit | AttributeFacts) -> list[Row]:
    """Return one row per group, the largest first."""
    names = told_apart(group.label for group in facts.groups)
    rows: list[Row] = []
    real = model.audit.kind == "number"
    for group in by_size(facts.groups):
        own = _estimate(group.mean_score if real else group.selection_rate)
        if group.label in facts.unknown:
            own["note"] = own["note"] or "shown, and compared with nobody"
        rows.append(
            {
                "label": names[group.label],
                **model.row,
                "people": group.n_rows,
                **_facts(group, "weight", "effective_size"),
                **own,
                "ratio": "" if real else group.ratio,
            }
        )
    return rows


def _group_panels(audit: Audit, rows: Sequence[Row]) -> tuple[Panel, ...]:
    """Return charts of shares from 0 to 1, or of means over the range of what is drawn."""
    if audit.kind == "number":
        return _intervals(rows, "mean prediction", domain=_around)
    return _intervals(rows, f"share {outcome_words(audit)}", domain=(0.0, 1.0))


def _around(rows: Sequence[Row]) -> Domain:
    """Return the range of some estimates with a margin, which need not begin at 0."""
    ends = [row[end] for row in rows for end in _LIMITS if row[end] is not None]
    margin = 0.04 * (max(ends) - min(ends)) or 0.04 * abs(ends[0]) or 1.0
    return min(ends) - margin, max(ends) + margin


def _on_ratio(facts: Audit | AttributeFacts, audit: Audit) -> str:
    """Return the end of the sentence on the ratio of selection rates, if it is stated."""
    ratio = facts.selection_ratio
    if ratio.value is None or ratio.low is None or ratio.high is None:
        return ""
    known = [group for group in facts.groups if group.label not in facts.unknown]
    n_stated = sum(group.selection_rate.value is not None for group in known)
    of = f" of {n_stated} of the {len(known)} groups" if n_stated < len(known) else ""
    limits = f"({ratio.low:.2f} to {ratio.high:.2f})"
    whose = group_words(facts.ratio_reference or "")
    how = f", {base_words(audit)}" if len(known) > 2 or audit.is_reference_named else ""
    return f" smallest rate{of} is {ratio.value:.2f} of that of {whose} {limits}{how}."


# Gaps.


def gap_figure(audits: Sequence[Audit]) -> Figure:
    """Return the figure of every gap with its interval; with many groups, of the largest."""
    models = _models(audits)
    many = any(audit.pair_gaps for audit in audits)
    rows = [
        {
            **_gap_row(gap, model.audit, models[0].groups),
            **({"expected": gap.expected} if many else {"between": ""}),
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
    return _figure("gaps", rows, _intervals(rows, _ALIKE), many=many)


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
    return _figure(
        "pairs",
        rows,
        _intervals(rows, _ALIKE),
        each=compared_groups(audits[0]).capitalize(),
        reference=reference and f"{group_words(reference)}, {audits[0].on_reference}",
        level=level(audits),
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
    return _figure("attribute_gaps", rows, _intervals(rows, _ALIKE))


# Comparisons within the levels of given factors, and what makes people alike.

_MOST_STRATA = 60


def given_figures(audits: Sequence[Audit]) -> list[Figure]:
    """Return the figure of adjusted differences, and one of the strata for each model and group."""
    if not audits[0].conditional:
        return []
    rows = [
        {
            **model.row,
            "label": group_words(one.group),
            "series": model.title or "adjusted",
            "reference": group_words(one.reference),
            "marginal": one.marginal,
            **_estimate(one.adjusted),
            "absolute": one.absolute,
            "chance": one.chance,
            **_numbered("odds", one.odds_ratio),
            "p": "" if one.p_value is None else f"{one.p_value:.2g}",
            "homogeneous": "" if one.p_homogeneous is None else f"{one.p_homogeneous:.2g}",
            **_numbered("percent", one.percent),
            "disparity": "" if one.disparity is None else one.disparity,
            "overlap": f"{one.overlap[0]:.1%}",
            "overlap_reference": f"{one.overlap[1]:.1%}",
        }
        for model in _models(audits)
        for one in model.audit.conditional
    ]
    panels = _intervals(rows, "adjusted difference")
    return [
        _figure("given", rows, panels, level=level(audits)),
        *(
            _strata_figure(model, one)
            for model in _models(audits)
            for one in model.audit.conditional
        ),
    ]


def _numbered(name: str, estimate: Estimate | None) -> Row:
    """Return an estimate as fields of a table, which are empty if there is none."""
    parts = {name: "value", f"{name}_low": "low", f"{name}_high": "high"}
    return {
        field: "" if estimate is None or getattr(estimate, own) is None else getattr(estimate, own)
        for field, own in parts.items()
    }


def _strata_figure(model: _Model, facts: ConditionalFacts) -> Figure:
    least = _least_people(model.audit)
    rows: list[Row] = []
    for one in facts.strata[:_MOST_STRATA]:
        few = min(one.group_size or least, one.reference_size or least) < least
        rows.append(
            {
                "label": one.label,
                "series": "difference",
                "people": round(one.group_size),
                "others": round(one.reference_size),
                "rate": "" if few or one.group_level is None else one.group_level,
                "other": "" if few or one.reference_level is None else one.reference_level,
                "value": None if few else one.difference,
                "low": None,
                "high": None,
                "weight": f"{one.weight:.1%}",
                "note": _too_few(round(min(one.group_size, one.reference_size)), least)
                if few
                else "",
            }
        )
    return _figure(
        "strata",
        rows,
        group=group_words(facts.group),
        reference=group_words(facts.reference),
        shown=len(rows),
        total=len(facts.strata),
    )


def given_notes(audits: Sequence[Audit]) -> list[str]:
    """Return a sentence for each group whose difference changes its sign within strata."""
    return list(
        dict.fromkeys(
            f"The difference between {group_words(one.group)} and {group_words(one.reference)} "
            f"changes its sign: {one.marginal:+.3g} without the given factors, and "
            f"{one.adjusted.value:+.3g} within strata (Simpson's paradox)."
            for audit in audits
            for one in audit.conditional
            if one.reverses
        )
    )


def similarity_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the weights of columns; None if every column counts by its range."""
    weights = audits[0].similarity
    if weights is None:
        return None
    total = sum(weights.values())
    order = sorted(weights.items(), key=lambda own: -own[1])
    rows: list[Row] = [
        {"label": column_words(name), "series": "weight", "value": weight / total, "low": None,
         "high": None, "weight": weight}
        for name, weight in order
    ]  # fmt: skip
    return _figure("similarity", rows, _intervals(rows, "share of weights"))


# Rates and impact ratios, to be filed.


def impact_lead(audits: Sequence[Audit]) -> tuple[str, ...]:
    """Return sentences that hold for all tables: on the rule, on selection and on 0.8."""
    found = next((audit for audit in audits if audit.impact), None)
    if found is None:
        return ()
    side = "above" if found.favourable == "high" else "below"
    return tuple(
        _told(
            "impact_lead",
            rule=found.impact[0].rule,
            rules=listed([*dict.fromkeys(map(_meaning, audits))]),
            side="" if found.impact[0].median_score is None else side,
            base=base_words(found),
        )
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
    highest = {}
    for what in ("selection", "scoring"):
        most = table.highest(f"{what}_rate")
        shown = [c.category for c in order if c.category in most and c.n_people >= least]
        if most and len(shown) == len(most):
            highest[what] = [*map(group_words, shown)]
    panels = _intervals(
        rows,
        "impact ratio of selection rates",
        references={"four fifths": FOUR_FIFTHS},
        domain=(0.0, max([1.05, *(row["high"] or 0.0 for row in rows)])),
    )
    return _figure(
        "impact",
        rows,
        panels,
        table=table,
        attributes=[column_words(name) for name in table.attributes],
        model=model.title,
        small=any(category.is_small for category in order),
        highest=highest,
        least=least,
        withheld=any(row["note"] for row in rows),
        few=[group_words(category.category) for category in order if category.is_few],
        alone=any(category.n_people == 1 for category in order),
    )


def _withheld(category: CategoryImpact, table: ImpactTable, least: int) -> Row:
    """Return the fields that few people would give away, emptied, with the reason."""
    few = {one.category for one in table.categories if one.n_people < least}
    tests = ("p", "adjusted", "z", "exact", "shortfall", "flips")
    ratios = ("value", "low", "high", "from", "to", "below", *tests)
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
        "adjusted": "" if category.p_adjusted is None else f"{category.p_adjusted:.2g}",
        "z": _digits(category.standard_deviations, 2),
        "exact": _digits(category.exact_standard_deviations, 2),
        "shortfall": _digits(category.shortfall, 1),
        "below": "" if category.below_four_fifths is None else category.below_four_fifths,
        "flips": "" if category.flips is None else category.flips,
        "scoring": "" if scoring is None else scoring.value,
        "scoring_ratio": "" if scoring_ratio is None else scoring_ratio.value,
        "share": f"{category.share:.1%}",
        "small": "yes" if category.is_small else "",
    }


def _digits(value: float | None, n_digits: int) -> str:
    return "" if value is None else f"{value:z.{n_digits}f}"


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
    rules = []
    if audits[0].threshold is not None:
        rules = [f"{outcome_words(audit)}: {selected_from(audit)}" for audit in audits]
    return _figure(
        "scores",
        rows,
        panels,
        _reference_legend(audits[0]),
        what=what,
        few=any(takes_few_values(audit) for audit in audits),
        rules="; ".join(dict.fromkeys(rules)),
        small=any(len(_stated(audit)) < len(audit.groups) for audit in audits),
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
    words = (
        "the group named above the chart",
        (f"{shown_name(_reference(audit))}, {audit.on_reference}"),
    )
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
    ranks = [row for row in rows if row["what"] == facts["auc"]]
    shares = [row for row in rows if row["what"] != facts["auc"]]
    unit = (0.0, 1.0)
    panels = _intervals(shares, "share", domain=unit) + _intervals(ranks, "AUC", domain=unit)
    return _figure("labels", rows, panels)


def calibration_figure(audits: Sequence[Audit]) -> Figure:
    """Return the figure of calibration: whether a score means the same in all groups."""
    rows: list[Row] = []
    panels: list[Panel] = []
    for model in _models(audits):
        own: list[Row] = [
            {
                "model": model.title,
                "series": model.groups[group.label],
                "range": f"{part.low:g}"
                if part.low == part.high
                else f"{part.low:g} to {part.high:g}",
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
        within = model.audit.score_range
        panels += [
            Panel(finished(calibration_chart(drawn, within), legend=n_groups <= 2), title)
            for title, drawn in charts
            if drawn
        ]
    errors = [model.said(_errors(model.audit)) for model in _models(audits)]
    return _figure(
        "calibration",
        rows,
        panels,
        _reference_legend(audits[0]),
        errors="; ".join(filter(None, errors)),
        marks=audits[0].score_range is not None,
        few=len(audits[0].score_values) > 2,
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


def _matched(audits: Sequence[Audit]) -> list[Matching]:
    """Return the matchings of the first model that were made."""
    return [matching for matching in audits[0].matchings if not matching.refused]


def _distances(rows: Sequence[Row]) -> tuple[Panel, ...]:
    """Return the chart of distances between the nearest (0) and a random matching (1)."""
    low = min([0.0, *(row["value"] or 0.0 for row in rows)])
    high = max([1.0, *(row["high"] or row["value"] or 0.0 for row in rows)]) * 1.04
    axis = "0 = as near as possible, 1 = as random"
    return _intervals(rows, axis, references={"as random": 1.0}, domain=(low, high))


def position_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the position of each nearest fair matching.

    The position is 0 at the nearest matching and 1 at a random one.
    """
    rows = [
        {
            **pair.row,
            **_estimate(Estimate(found.position)),
            "rank": pair.matching.transport.relative if pair.matching.transport else None,
            **_facts(found, "strict_position", "score_gap", "least_gap", *_COSTS),
        }
        for pair in _pairs(audits)
        if (found := pair.matching.nearest_fair) is not None
    ]
    if not rows:
        return None
    return _figure("position", rows, _distances(rows), matched=_matched(audits))


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
    return _figure("transport", rows, _distances(rows), tied=tied, matched=_matched(audits))


def curve_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of every model's curve: how near people can be at each score gap."""
    rows: list[Row] = []
    slack = 0.0
    for pair in _pairs(audits):
        if (found := pair.matching.nearest_fair) is None or found.position is None:
            continue
        slack = found.slack
        points: list[dict[str, Any]] = [
            {**_facts(point, "gap", "position", "cost"), "shown": ""}
            | {"slack": point.gap - found.least_gap}
            for point in found.curve
            if point.position is not None
        ]
        dot = {**_facts(found, "slack", "position", "cost"), "gap": found.score_gap, "shown": "dot"}
        rows += [{**pair.row, **p} for p in sorted([*points, dot], key=lambda point: point["gap"])]
    if not rows:
        return None
    top = max([0.05, *(row["position"] for row in rows)])
    charts = [
        (pair, curve_chart([row for row in rows if row["groups"] == pair], slack=slack, top=top))
        for pair in dict.fromkeys(row["groups"] for row in rows)
    ]
    names = [model.title for model in _models(audits) if model.title]
    legend = dict(zip(names, SERIES_COLOURS, strict=False))
    return _figure("curve", rows, *_sharing(charts, legend), slack=slack)


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
    return _figure(
        "reach",
        rows,
        _intervals(rows, "share of the group's people", domain=(0.0, 1.0)),
        reading=reading,
        drawn=any(map(is_drawn, audits)),
        alike=rows[0]["score_gap"],
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
    return _figure("features", rows, *_sharing(charts, CONTRIBUTION_COLOURS), more=more)


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
    words = [name for kind, name in MATCHINGS.items() if kind in kinds]
    return _figure(
        "matched",
        rows,
        *_sharing(charts, dict(zip(words, SERIES_COLOURS, strict=False))),
        decides=audits[0].threshold is not None,
        selected=outcome_words(audits[0]),
        other=other_words(audits[0]),
        by_columns=any(len(m.matched_gaps) > 1 for audit in audits for m in audit.matchings),
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
    models = {f"m{k}": model.name for k, model in enumerate(_models(audits))}
    return _figure("side_by_side", rows, headings=models, same=same)


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
    sizes = {group.label: group.n_rows for group in first.audit.groups}
    least = _least_people(first.audit)
    rows: list[Row] = []
    bars: list[Row] = []
    for pair in comparison.pairs:
        model = shown_name(pair.model, _LONGEST)
        for group in sorted(pair.rank_agreement, key=lambda name: -sizes.get(name, 0)):
            row: dict[str, Any] = {"label": model, "series": first.groups.get(group, group)}
            if sizes[group] < least:
                unsaid = dict.fromkeys(("lost", "gained", "agreement", "undesirable"))
                rows.append({**row, **unsaid, "note": _too_few(sizes[group], least)})
                continue
            row["agreement"] = pair.rank_agreement[group]
            if group in pair.decisions:
                _, row["lost"], row["gained"], _ = pair.decisions[group]
                who = f"{model}: {row['series']}" if len(comparison.pairs) > 1 else row["series"]
                total = max(sum(pair.decisions[group]), 1)
                bars += [
                    {"label": who, "series": _HEADINGS[name], "value": row[name] / total}
                    | {"low": None, "high": None}
                    for name in ("lost", "gained")
                ]
            if pair.undesirable_flips is not None:
                row["undesirable"] = pair.undesirable_flips.get(group)
            rows.append(row)
    favoured = comparison.privileged
    return _figure(
        "changed",
        rows,
        _intervals(bars, "share of the group", colours=SERIES_COLOURS[2:]),
        decides=first.audit.kind != "number",
        reference=shown_name(first.audit.model_name),
        favoured="" if favoured is None else shown_name(favoured),
    )


def tradeoff_figure(curve: pd.DataFrame) -> Figure:
    """Return the figure of accuracy against unfairness along a path."""
    gap = "demographic_parity_gap"
    if missing := [c for c in ("fairness_weight", "accuracy", gap) if c not in curve]:
        raise InputError(
            f"curve has no column {missing[0]!r}, which the figure needs. Pass a table of "
            "FairnessPath.curve."
        )
    names = {name: gap_title(name).lower() for name in MEASURES if name in curve}
    plain = curve[["fairness_weight", "accuracy", *names]].astype(float)
    rows: list[Row] = [{str(k): v for k, v in row.items()} for row in plain.to_dict("records")]
    chart = tradeoff_chart(tradeoff_rows(plain, gap), title=gap_axis(gap))
    return _figure("tradeoff", rows, [Panel(finished(chart))], headings=names)


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
        stated = [row for row in own if row["value"] is not None]
        overall = model.audit.gap("mean_parity_gap").value
        panels += _intervals(
            stated[:_MOST_BARS],
            "gap between mean scores",
            references={} if overall is None else {"gap over everybody": overall},
        )
        if own or not scan.refused:
            said = _told(
                "search",
                scan=scan,
                n_rows=len(own),
                n_stated=len(stated),
                n_certain=sum(row["certain"] for row in own),
                most=_MOST_BARS,
            )
            reading += map(model.said, said)
        reading += scan.refused
    if not reading:
        return None
    many = any(len(audit.matchings) > 1 for audit in audits)
    return _figure("subsets", rows, panels, reading=reading, drawn=bool(panels), many=many)


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
        bins: list[Row] = [
            {"series": name, "low": low, "high": high, "share": n / max(len(gaps), 1)}
            for name, gaps in drawn.items()
            for low, high, n in zip(
                edges.tolist(),
                edges[1:].tolist(),
                np.histogram(gaps, bins=edges)[0].tolist(),
                strict=False,
            )
        ]
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
    many = len(audits[0].matchings) > 1 and audits[0].reference is not None
    reference = group_words(audits[0].reference or "") if many else ""
    return _figure("half_spaces", rows, panels, reference=reference, n_empty=n_empty)
