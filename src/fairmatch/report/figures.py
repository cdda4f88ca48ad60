"""The figures of a report: the facts of one table each, and its charts.

A figure is data. Each of its rows holds the facts of one line of the table and, where there is an
estimate, of one mark of a chart: `_intervals` draws the rows, in as many charts as they name. Its
words are in ``figures.txt.j2``: the title, how to read it, and the columns with their headings. A
column can say which attribute of a row's ``fact`` it shows, and how that is written. Empty columns
and empty sentences are left out, so a figure can name everything that it may have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairmatch.auditing.facts import (
    FOUR_FIFTHS,
    Alternatives,
    Audit,
    CategoryImpact,
    Comparison,
    ConditionalFacts,
    Estimate,
    Gap,
    GroupFacts,
    ImpactTable,
    Matching,
    PairFlips,
)
from fairmatch.exceptions import InputError
from fairmatch.measures import MEASURES
from fairmatch.report.drawing import (
    Domain,
    Row,
    different,
    dots,
    histogram,
    points,
    slopes,
    stacked,
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
    is_withheld,
    label_words,
    listed,
    main_impact,
    matched_groups,
    matching_sentence,
    n_people,
    other_words,
    outcome_words,
    partners,
    reach_sentences,
    rule_words,
    selected_from,
    shown_name,
    shown_number,
    subset_name,
    template,
    told_apart,
)


class Panel(NamedTuple):
    """A chart of a figure as SVG, and its title among several charts."""

    chart: str
    title: str = ""


# The charts of a figure, and the names of their series if there are several.
Drawn = tuple[tuple[Panel, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Figure:
    """One table of facts, its charts, and how to read both.

    The columns map fields of the rows to headings. The legend names the series of all charts.
    """

    title: str
    reading: tuple[str, ...]
    columns: dict[str, str]
    rows: Sequence[Row]
    panels: tuple[Panel, ...] = ()
    legend: tuple[str, ...] = ()
    n_shades: int = 0  # of the series of bars that are stacked


_Rows = Callable[["_Model"], Iterable[Row]]
_Made = Callable[[Sequence[Audit]], Figure | None]

# Headings of the columns, if they are not the names of the fields.
_HEADINGS = {
    "value": "estimate",
    "low": "from",
    "high": "to",
    "better": "better off",
    "agreement": "rank agreement",
    "undesirable": "undesirable flips",
    "gained": "newly selected",
    "lost": "no longer selected",
}


def told(key: str, audits: Sequence[Audit] = (), **facts: Any) -> list[str]:
    """Return the lines that the template has for a figure of some audits."""
    if audits:
        first = audits[0]
        reference = "" if first.reference is None else group_words(first.reference)
        facts = {
            "audit": first,
            "audits": audits,
            "real": first.kind == "number",
            "decides": first.threshold is not None,
            "level": f"{first.confidence:.0%}",
            "outcome": outcome_words(first),
            "reference": reference,
            **facts,
        }
    module = template("figures.txt.j2").make_module(facts)
    lines = map(str.strip, str(getattr(module, key)()).splitlines())
    return [line for line in lines if line]


def _figure(
    key: str,
    audits: Sequence[Audit],
    rows: Iterable[Row],
    charts: Drawn = ((), ()),
    *,
    headings: dict[str, str] | None = None,
    n_shades: int = 0,
    **facts: Any,
) -> Figure:
    """Return a figure with the words of the template; headings are those of further columns."""
    title, *reading, declared = told(key, audits, **facts)
    columns: dict[str, str] = {}
    written: list[dict[str, Any]] = [dict(row) for row in rows]
    for part in declared.removeprefix("columns:").split("|"):
        entry, _, heading = part.strip().partition(" = ")
        name, _, getter = entry.partition(" < ")
        columns[name] = heading or _HEADINGS.get(name, name)
        path, _, how = getter.partition(":")
        for row in written if path else []:
            if "fact" in row:
                row.setdefault(name, _written(attrgetter(path)(row["fact"]), how))
    for row in written:
        row.pop("fact", None)
    named = {name for row in written for name, value in row.items() if value not in ("", None)}
    kept = {name: words for name, words in {**columns, **(headings or {})}.items() if name in named}
    return Figure(title, tuple(reading), kept, written, *charts, n_shades)


def _written(value: Any, how: str) -> Any:
    """Return a fact as an entry of a table: in a format of ours, or of Python."""
    if not how:
        return value
    if value is None:
        return ""
    return _FORMATS[how](value) if how in _FORMATS else format(value, f"z{how}")


# Most rows in a chart that is alone, and in one of several. The table below it shows all.
_MOST_BARS, _FEW_BARS = 12, 6
# Names in charts are cut at this length.
_LONGEST = 60
_LIMITS = ("value", "low", "high")
_ALIKE = "gap (0 = alike)"
_NEAREST = ("position", "strict_position", "score_gap", "least_gap")
_COSTS = {"cost": "matched by scores", "smallest": "nearest possible", "random": "random partners"}


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


def _panels(rows: Iterable[Row], draw: Callable[[str, list[Row]], str]) -> tuple[Panel, ...]:
    """Return a chart of the rows of every ``panel`` that rows name."""
    panels: dict[str, list[Row]] = {}
    for row in rows:
        panels.setdefault(row.get("panel", ""), []).append(row)
    return tuple(Panel(draw(title, own), title) for title, own in panels.items())


def _legend(series: Sequence[str]) -> tuple[str, ...]:
    return tuple(series) if len(series) > 1 else ()


def _intervals(
    rows: Iterable[Row], axis: str, *, domain: Domain | None = None, apart: bool = False,
    references: Callable[[str], dict[str, float]] = lambda panel: {}, percent: bool = False,
) -> Drawn:  # fmt: skip
    """Return charts of estimates with intervals, one for each ``panel`` that rows name.

    A row without a value is not drawn, and neither is one whose panel is None. Charts share their
    axis and their legend, unless their units are ``apart``.
    """
    drawn = [row for row in rows if row["value"] is not None and row.get("panel", "") is not None]
    series = different(drawn, "series")

    def draw(title: str, own: list[Row]) -> str:
        lines = references(title)
        span = domain or _span(own if apart else drawn, lines.values())
        return dots(own, axis=axis, domain=span, series=series, references=lines, percent=percent)

    return _panels(drawn, draw), _legend(series)


def _ends(rows: Iterable[Row]) -> list[float]:
    """Return the estimates of some rows with their limits."""
    return [row[end] for row in rows for end in _LIMITS if row.get(end) is not None]


def _span(rows: Sequence[Row], others: Iterable[float] = ()) -> Domain:
    """Return an axis for some estimates, with 0 on it."""
    ends = _ends(rows)
    low, high = min([0.0, *ends]), max([0.01, *ends, *others])
    return 1.04 * low, high + 0.04 * (high - low)


def _around(rows: Sequence[Row]) -> Domain:
    """Return the range of some estimates with a margin, which need not begin at 0."""
    ends = _ends(rows) or [0.0]
    margin = 0.04 * (max(ends) - min(ends)) or 0.04 * abs(ends[0]) or 1.0
    return min(ends) - margin, max(ends) + margin


def _per_model(key: str, axis: str = "", **how: Any) -> Callable[[_Rows], _Made]:
    """Make a figure of the rows of each model, with charts of their intervals if there is an axis.

    Without rows there is no figure.
    """

    def declare(rows_of: _Rows) -> _Made:
        def figure(audits: Sequence[Audit]) -> Figure | None:
            rows = [{**m.row, **row} for m in _models(audits) for row in rows_of(m)]
            charts: Drawn = _intervals(rows, axis, **how) if axis else ((), ())
            return _figure(key, audits, rows, charts) if rows else None

        figure.__doc__ = rows_of.__doc__
        return figure

    return declare


def _p(value: float | None) -> str:
    return "" if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


def _span_words(fact: Estimate, percent: bool = True) -> str:
    """Return an estimate with its interval as one entry of a table."""
    if fact.value is None:
        return "no statement"
    value, *ends = (
        None if end is None else f"{100 * end:z.1f}" if percent else shown_number(end)
        for end in (fact.value, fact.low, fact.high)
    )
    unit = "%" if percent else ""
    return f"{value}{unit}" if None in ends else f"{value}{unit} ({ends[0]} to {ends[1]})"


def _range_words(low: float, high: float) -> str:
    return f"{low:z.3f} to {high:z.3f}"


def _signed(change: Estimate) -> str:
    return f"{change.value:+.3f} ({change.low:+.3f} to {change.high:+.3f})"


# How columns write their facts, beside the formats of Python.
_FORMATS: dict[str, Callable[[Any], Any]] = {
    "any": lambda value: value,
    "value": lambda estimate: estimate.value,
    "yes": lambda value: "yes" if value else "",
    "below": lambda value: "below" if value else "",
    "lacking": lambda value: f"{value:z.1f}" if value >= 0.0 else "",
    "group": group_words,
    "p": _p,
    "span": _span_words,
    "number": lambda estimate: _span_words(estimate, percent=False),
    "signed": _signed,
    "range": lambda ends: _range_words(*ends),
    "counts": lambda counts: ", ".join(f"{shown_name(name)} {n:,}" for name, n in counts.items()),
}


# The opening: groups, how many are selected, or what is predicted of them.


def opening_figure(audits: Sequence[Audit]) -> Figure:
    """Return the table of groups with rates and impact ratios, or means, and its chart."""
    real = audits[0].kind == "number"
    rows = [row for model in _models(audits) for row in _group_rows(model)]
    highest = {model.title: _compared_rate(model) for model in _models(audits) if not real}
    bases = {group_words(one[0]) for one in highest.values() if one}

    def four_fifths(panel: str) -> dict[str, float]:
        most = highest.get(panel)
        return {f"four fifths of {most[0]}": FOUR_FIFTHS * most[1]} if most else {}

    drawn = [
        {**row, "label": f"{row['label']}  (n = {row['people']:,})", "series": "",
         "panel": row["model"]}
        for row in rows
    ]  # fmt: skip
    charts = _intervals(
        drawn,
        "mean prediction" if real else f"share {outcome_words(audits[0])}",
        domain=_around([row for row in drawn if row["value"] is not None]) if real else (0.0, 1.0),
        references=four_fifths,
        percent=not real,
    )
    base = bases.pop() if len(bases) == 1 else "the group whose ratio is 1" if bases else ""
    return _figure("opening", audits, rows, charts, base=base)


def _compared_rate(model: _Model) -> tuple[str, float] | None:
    """Return the group that others are compared with and its rate, if it may be shown."""
    table = main_impact(model.audit)
    for one in table.categories if table else ():
        if table and one.category == table.most_selected and one.selection_rate.value:
            return model.groups[one.category], one.selection_rate.value
    return None


def _group_rows(model: _Model) -> list[Row]:
    """Return the rate of each group with its impact ratio, or its mean with the difference."""
    audit, table, real = model.audit, main_impact(model.audit), model.audit.kind == "number"
    impact = {one.category: one for one in table.categories} if table else {}
    least = int(audit.provenance.settings.get("min_group_size") or 1)
    reference = audit.reference or by_size(audit.groups)[0].label
    base = next(own.mean_score.value for own in audit.groups if own.label == reference)
    rows: list[Row] = []
    for group in by_size(audit.groups):
        fact = group.mean_score if real else group.selection_rate
        row: dict[str, Any] = {
            "label": model.groups[group.label],
            "model": model.title,
            "people": group.n_rows,
            **_estimate(fact),
            "rate": _span_words(fact, percent=not real),
        }
        rows.append(row)
        if group.mean_score.value is None and group.n_rows < least:
            row |= {"rate": "too few people", "note": ""}
        if group.label in audit.unknown:
            row["note"] = row["note"] or "group unknown: counted, but compared with nobody"
        elif fact.value is None or (real and (base is None or group.label == reference)):
            continue
        elif real and base is not None:
            row["difference"] = shown_number(fact.value - base)
        elif table is not None and (own := impact.get(group.label)) is not None:
            row["fact"] = own
            small = "less than 2% of the people: no ratio refers to this group"
            row["note"] = row["note"] or small * own.is_small
    return rows


def people_flow(audit: Audit) -> list[tuple[str, int, str]]:
    """Return the steps from everybody to those matched: words, people, and who was left out."""
    unknown = sum(group.n_rows for group in audit.groups if group.label in audit.unknown)
    small = [
        group
        for group in by_size(audit.groups)
        if group.label not in audit.unknown and group.mean_score.value is None
    ]
    reason = "too few people for a statement"
    if any(map(is_withheld, small)):
        reason = "too few people, or few on one side of the decision"
    steps = [("scored", audit.n_rows, "")]
    left = audit.n_rows - unknown
    if unknown:
        steps.append(("group known", left, f"{n_people(unknown)} of unknown group"))
    left -= sum(group.n_rows for group in small)
    named = listed([f"{group_words(g.label)} ({g.n_rows:,})" for g in small]) if small else ""
    steps.append(("compared", left, f"{reason}: {named}" if small else ""))
    sizes: dict[str, int] = {}
    for matching in audit.matchings:
        if not matching.refused:
            sizes |= dict(zip(matching.groups or (), matching.n_sampled, strict=False))
    matched = min(sum(sizes.values()), left)
    if matched and audit.weights != "counts":
        drawn = f"a random sample, at most {max(sizes.values()):,} of each group"
        if not is_drawn(audit):
            drawn = "people with several rows are matched once"
        steps.append(("matched", matched, drawn if matched < left else ""))
    return steps


# The search for alternatives, and the columns of the table.

_VERDICTS = {"yes": "less discriminatory", "not shown": "not shown", "no": "other"}


def alternatives_figure(found: Alternatives) -> Figure:
    """Return the figure of accuracy against the gap for everything that was tried."""
    measure = MEASURES[found.gap_measure].title.lower()
    tried = [
        (found.baseline, found.accuracy, found.gap, "baseline"),
        *((one.name, one.accuracy, one.gap, _VERDICTS[one.verdict]) for one in found.tried),
    ]
    drawn = [
        {"label": shown_name(name, _LONGEST), "value": accuracy, "x": gap, "series": series}
        for name, accuracy, gap, series in tried
    ]
    baseline = {
        "name": f"{found.baseline} (baseline)",
        "accuracy": found.accuracy,
        "gap": found.gap,
    }
    return _figure(
        "alternatives",
        (),
        [baseline, *({"fact": one, "verdict": one.verdict_words()} for one in found.tried)],
        _scatter(drawn, axis=f"gap of {measure}"),
        found=found,
        measure=measure,
        baseline=shown_name(found.baseline),
    )


def _scatter(rows: Sequence[Row], axis: str, joined: bool = False) -> Drawn:
    """Return the chart of accuracies against gaps."""
    domain = 0.0, max(0.01, *(row["x"] for row in rows)) * 1.05
    chart = points(rows, axis=axis, upright="accuracy", domain=domain, joined=joined)
    return (Panel(chart),), _legend(different(rows, "series"))


def column_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of how every column was read: a table without a chart."""
    rows = [{"fact": own} for own in audits[0].columns]
    return _figure("columns", audits, rows) if rows else None


# Gaps.


def gap_figure(audits: Sequence[Audit]) -> Figure:
    """Return the figure of every gap; with many groups, of the largest, also by attribute."""
    models = _models(audits)
    attributes = told_apart(attribute.name for attribute in audits[0].attributes)
    many = any(audit.pair_gaps for audit in audits)
    rows: list[Row] = []
    for name in _in_order(gap for audit in audits for gap in audit.gaps):
        for model in models:
            named = told_apart(g.label for a in model.audit.attributes for g in a.groups)
            found = [("", gap, model.groups) for gap in model.audit.gaps]
            found += [
                (f"by {attributes[one.name]}", gap, named)
                for one in model.audit.attributes
                for gap in one.gaps
            ]
            rows += [
                {
                    **_gap_row(gap, model.audit, groups),
                    **model.row,
                    "groups": by or ("combinations" if attributes else ""),
                    "panel": None if by else _unit(name, model.audit),
                    "meaning": gap_words(name, model.audit),
                }
                for by, gap, groups in found
                if gap.name == name
            ]
    drawn = _intervals(rows, _ALIKE, apart=_is_apart(audits))
    return _figure("gaps", audits, rows, drawn, many=many)


def _gap_row(gap: Gap, audit: Audit, names: dict[str, str]) -> dict[str, Any]:
    """Return a gap as the fields of a row."""
    first, second = (names.get(one, one) for one in gap.groups or ("", ""))
    return {
        "fact": gap,
        "label": gap_title(gap.name, audit),
        **_estimate(gap),
        "between": f"{first} – {second}" if gap.groups and len(names) > 2 else "",
        "better": "" if gap.favoured is None else names.get(gap.favoured, gap.favoured),
    }


@_per_model("estimated", _ALIKE)
def estimated_figure(model: _Model) -> Iterable[Row]:
    """Return the figure of gaps between groups that are known only as probabilities."""
    for gap in model.audit.estimated.gaps if model.audit.estimated else ():
        yield {
            "label": gap_title(gap.name, model.audit),
            "fact": gap,
            **_estimate(gap.assumed),
            "bounds": _range_words(gap.low, gap.high),
            "limits": _range_words(gap.low_limit, gap.high_limit),
        }


def _in_order(gaps: Iterable[Gap]) -> list[str]:
    """Return the names of some gaps in the order of the registry of measures."""
    found = {gap.name for gap in gaps}
    return [*(name for name in MEASURES if name in found), *sorted(found - MEASURES.keys())]


def _unit(name: str, audit: Audit) -> str:
    """Return the unit of a gap of predictions, as the title of the chart of all that share it."""
    unit = MEASURES[name].unit if name in MEASURES else "share"
    if audit.kind != "number":
        if not _has_range(audit):
            return ""
        return "As a share of the people" if unit == "share" else "In points of the score"
    spread = audit.spread.of if audit.spread else "target"
    titles = {
        "score": "In units of the target",
        "deviation": f"In standard deviations of the {spread}",
        "share": "As a share of the people",
    }
    return titles[unit]


def _has_range(audit: Audit) -> bool:
    """Return whether gaps of scores are in another unit than shares of people."""
    return audit.score_range is not None and audit.score_range != (0.0, 1.0)


def _is_apart(audits: Sequence[Audit]) -> bool:
    """Return whether charts of gaps differ in their units."""
    return audits[0].kind == "number" or _has_range(audits[0])


def _is_drawn_by_pair(name: str) -> bool:
    """Return whether a gap is drawn for every pair: a difference of one rate.

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
    drawn = _intervals(rows, _ALIKE, apart=_is_apart(audits))
    return _figure("pairs", audits, rows, drawn, each=compared_groups(audits[0]).capitalize())


# Groups that are bands of a number.


def number_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the mean score along a number whose bands are the groups."""
    axis = "mean prediction" if audits[0].kind == "number" else "mean score"
    return _per_model("number", axis)(_number_rows)(audits)


def _number_rows(model: _Model) -> Iterable[Row]:
    for point in model.audit.number.points if model.audit.number else ():
        yield {
            "label": " to ".join(dict.fromkeys((f"{point.low:g}", f"{point.high:g}"))),
            "series": model.title or "mean score",
            "fact": point,
            "value": point.mean,
            "low": point.mean_low,
            "high": point.mean_high,
        }


@_per_model("periods", _ALIKE)
def period_figure(model: _Model) -> Iterable[Row]:
    """Return the figure of the first gap in every period, with the changes between them."""
    for one in model.audit.periods:
        changes = [
            f"{group_words(own.group)} {own.change.value:+.3f} (p {_p(own.p_adjusted)})"
            for own in model.audit.changes
            if own.after == one.name and own.measure == one.gaps[0].name
        ]
        ratio = one.selection_ratio
        yield {
            "label": one.name,
            "people": sum(group.n_rows for group in one.groups),
            **_estimate(one.gaps[0]),
            "ratio": "" if model.audit.threshold is None else _span_words(ratio, percent=False),
            "changes": "; ".join(changes),
        }


_FOUR_FIFTHS: dict[str, Any] = {"references": lambda panel: {"four fifths": FOUR_FIFTHS}}


@_per_model("stages", "impact ratio", **_FOUR_FIFTHS)
def stage_figure(model: _Model) -> Iterable[Row]:
    """Return the figure of the rate and the impact ratio of every group, stage by stage."""
    for stage in model.audit.stages:
        names = told_apart(own.category for own in stage.impact[-1].categories)
        words = f"{stage.stage} of {stage.among}"
        for category in stage.impact[-1].categories:
            yield {**_impact_row(category, names), "panel": words, "stage": words}


# Comparisons within the levels of given factors, and what makes people alike.

_MOST_STRATA = 60


def given_figures(audits: Sequence[Audit]) -> list[Figure]:
    """Return the figure of adjusted differences, and one of the strata for each model and group."""
    if not audits[0].conditional:
        return []
    own = [(model, one) for model in _models(audits) for one in model.audit.conditional]
    rows = [
        {
            **model.row,
            "label": group_words(one.group),
            "series": model.title or "adjusted",
            "fact": one,
            **_estimate(one.adjusted),
            "homogeneous": _p(one.p_homogeneous) if one.n_homogeneous != 0 else "strata too small",
            "overlap": f"{one.overlap[0]:.1%}",
            "overlap_reference": f"{one.overlap[1]:.1%}",
        }
        for model, one in own
    ]
    factors = column_words(str(audits[0].provenance.settings.get("given") or ""))
    drawn = _intervals(rows, "adjusted difference")
    return [
        _figure("given", audits, rows, drawn, factors=factors),
        *(_strata_figure(model, one) for model, one in own),
    ]


def _strata_figure(model: _Model, facts: ConditionalFacts) -> Figure:
    rows: list[Row] = [
        {
            "label": one.label,
            "people": round(one.sizes[0]),
            "others": round(one.sizes[1]),
            "rate": one.levels[0],
            "other": one.levels[1],
            "value": one.difference,
            "weight": f"{one.weight:.1%}",
        }
        for one in facts.strata[:_MOST_STRATA]
    ]
    return _figure(
        "strata",
        [model.audit],
        rows,
        group=group_words(facts.group),
        reference=group_words(facts.reference),
        shown=len(rows),
        total=len(facts.strata),
    )


def similarity_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the weights of columns; None if every column counts by its range."""
    weights = audits[0].similarity
    if weights is None:
        return None
    total = sum(weights.values())
    order = sorted(weights.items(), key=lambda own: -own[1])
    rows: list[Row] = [
        {"label": column_words(name), "value": weight / total, "weight": weight}
        for name, weight in order
    ]
    bars = [{**row, "series": "share"} for row in rows[:_MOST_BARS]]
    chart = stacked(bars, axis="share of all weights", series=["share"])
    return _figure("similarity", audits, rows, ((Panel(chart),), ()), drawn=len(bars))


# Rates and impact ratios, to be filed.


def impact_lead(audits: Sequence[Audit]) -> tuple[str, ...]:
    """Return sentences that hold for all tables: on the rule, on selection and on 0.8."""
    found = next((audit for audit in audits if audit.impact), None)
    if found is None:
        return ()
    side = "above" if found.favourable == "high" else "below"
    return tuple(
        told(
            "impact_lead",
            audits,
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
    """Return, for each model, one figure per attribute and one of all attributes crossed.

    With more than two classes, those of every class against the rest follow.
    """
    found = [(model, "", table) for model in _models(audits) for table in model.audit.impact]
    for model in _models(audits):
        for name, tables in model.audit.classes.impact.items() if model.audit.classes else ():
            found += [(model, shown_name(name), table) for table in tables]
    return [_impact_figure(*one) for one in found]


def _impact_figure(model: _Model, decided: str, table: ImpactTable) -> Figure:
    names = told_apart(category.category for category in table.categories)
    order = sorted(table.categories, key=lambda category: -category.n_people)
    rows = [_impact_row(category, names) for category in order]
    highest = {}
    for what in ("selection", "scoring"):
        if most := table.highest(f"{what}_rate"):
            highest[what] = [group_words(c.category) for c in order if c.category in most]
    drawn = _intervals(
        rows,
        "impact ratio of selection rates",
        **_FOUR_FIFTHS,
        domain=(0.0, max([1.05, *(row["high"] or 0.0 for row in rows)])),
    )
    return _figure(
        "impact",
        [model.audit],
        rows,
        drawn,
        table=table,
        attributes=[column_words(name) for name in table.attributes],
        model=model.title,
        decided=decided,
        small=[group_words(category.category) for category in order if category.is_small],
        highest=highest,
        few=[group_words(category.category) for category in order if category.is_few],
        alone=any(category.n_people == 1 for category in order),
    )


def _impact_row(category: CategoryImpact, names: dict[str, str]) -> Row:
    ratio = category.impact_ratio
    return {
        "fact": category,
        "label": names[category.category],
        "series": "impact ratio",
        **_estimate(ratio),
        # The category that others are compared with has a ratio of 1 and no interval.
        "span": "" if ratio.low is None else f"{ratio.low:.2f} to {ratio.high:.2f}",
    }


# Distributions of scores, and what became of the people.


def score_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the scores of all groups; None if every group is too small."""
    if not any(map(_stated, audits)):
        return None
    what = "prediction" if audits[0].kind == "number" else "score"
    rows: list[Row] = []
    panels: list[Panel] = []
    legend: tuple[str, ...] = ()
    for model in _models(audits):
        own = _score_rows(model)
        # The table leaves out intervals that hold nobody.
        filled = {row["low"] for row in own if row["people"]}
        rows += [{"model": model.title, **row} for row in own if row["low"] in filled]
        marks = {} if model.audit.threshold is None else {"threshold": model.audit.threshold}
        top = max([0.01, *(row["share"] for row in own)])
        draw = partial(histogram, axis=what, references=marks, top=top)
        charts, legend = _beside_reference(model, own, draw)
        panels += charts
    rules = [] if audits[0].threshold is None else [rule_words(audit) for audit in audits]
    return _figure(
        "scores",
        audits,
        rows,
        (tuple(panels), legend),
        what=what,
        rules="; ".join(dict.fromkeys(rules)),
        small=any(len(_stated(audit)) < len(audit.groups) for audit in audits),
    )


def _stated(audit: Audit) -> list[GroupFacts]:
    """Return the groups that are large enough for a statement, the largest first."""
    return [group for group in by_size(audit.groups) if group.mean_score.value is not None]


def _beside_reference(model: _Model, rows: list[Row], draw: Callable[..., str]) -> Drawn:
    """Return one chart of two groups, or a chart of each of many with the reference beside it."""
    groups = different(rows, "series")
    if len(groups) <= 2:
        return ((Panel(draw(rows, series=groups), model.title),) if rows else (), tuple(groups))
    largest = model.audit.reference or by_size(model.audit.groups)[0].label
    reference = model.groups[largest]
    panels = []
    for own in groups:
        if own != reference:
            drawn = [row for row in rows if row["series"] in (own, reference)]
            panels.append(Panel(draw(drawn, series=[own, reference]), model.said(own)))
    return tuple(panels), ("the group named above the chart", f"{reference}, for comparison")


def _score_rows(model: _Model) -> list[Row]:
    ends = list(zip(model.audit.score_edges, model.audit.score_edges[1:], strict=False))
    return [
        {
            "series": model.groups[group.label],
            "low": low,
            "high": high,
            "people": count,
            "share": count / max(group.n_rows, 1),
        }
        for group in _stated(model.audit)
        for (low, high), count in zip(ends, group.score_counts, strict=False)
    ]


def accuracy_figure(audits: Sequence[Audit]) -> Figure:
    """Return the figure of how well the models agree with the labels in each group."""
    good, bad = (label_words(audits[0], favourable) for favourable in (True, False))
    said = outcome_words(audits[0])
    facts = {
        "base_rate": f"Share with {good}",
        "accuracy": f"Accuracy of “{said}”" if audits[0].classes else "Accuracy",
        "true_positive_rate": f"Share {said} of people with {good}",
        "false_positive_rate": f"Share {said} of people with {bad}",
        "auc": "Ranking quality (AUC)",
    }
    if audits[0].classes:  # a decision ranks nobody
        del facts["auc"]
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
    axis = "share" if audits[0].classes else "share, or AUC"
    return _figure("labels", audits, rows, _intervals(rows, axis, domain=(0.0, 1.0)))


def calibration_figure(audits: Sequence[Audit]) -> Figure:
    """Return the figure of calibration: whether a score means the same in all groups."""
    rows: list[Row] = []
    panels: list[Panel] = []
    legend: tuple[str, ...] = ()
    axes: dict[str, Any] = {"axis": "mean score", "upright": "share positive"}
    draw = partial(points, **axes, domain=(0.0, 1.0), joined=True, diagonal=True)
    for model in _models(audits):
        own: list[Row] = [
            {
                "model": model.title,
                "series": model.groups[group.label],
                "label": model.groups[group.label],
                "range": " to ".join(dict.fromkeys((f"{part.low:g}", f"{part.high:g}"))),
                "x": part.mean_score,
                "fact": part,
                **_estimate(part.positive_rate),
            }
            for group in by_size(model.audit.groups)
            for part in group.calibration
            if part.n_rows
        ]
        rows += own
        known = [row for row in own if row["value"] is not None]
        charts, legend = _beside_reference(model, known, draw)
        panels += charts
    return _figure(
        "calibration",
        audits,
        rows,
        (tuple(panels), legend),
        errors="; ".join(filter(None, (m.said(_errors(m.audit)) for m in _models(audits)))),
        positive=label_words(audits[0], audits[0].favourable == "high"),
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


def matched_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return who is matched with whom in words, a picture of pairs, and the distances."""
    reading: list[str] = []
    rows: list[Row] = []
    panels: list[Panel] = []
    for pair in _pairs(audits):
        matching = pair.matching
        if matching.refused:
            continue
        found, same_rank = matching.nearest_fair, matching.transport
        many = len(pair.model.audit.matchings) > 2
        reading.append(pair.model.said(matching_sentence(pair.model.audit, matching, many)))
        if (drawn := _pair_picture(pair)) is not None:
            panels.append(drawn)
        own = found or same_rank
        if own is None:
            continue
        row = {**pair.row, **{name: getattr(own, name) for name in _COSTS}}
        if found is not None:
            row |= {name: getattr(found, name) for name in _NEAREST}
        elif same_rank is not None:
            row["position"] = same_rank.relative
            row["note"] = "people at the same rank of their groups: no nearer matching is proven"
        rows.append(row)
    if not reading:
        return None
    made = [matching for matching in audits[0].matchings if not matching.refused]
    return _figure(
        "matched",
        audits,
        rows,
        (tuple(panels), ()),
        reading=reading,
        made=made,
        what="prediction" if audits[0].kind == "number" else "score",
        slack=max((m.nearest_fair.slack for m in made if m.nearest_fair), default=None),
    )


# So many pairs are drawn.
_N_PAIRS = 40


def _pair_picture(pair: _Pair) -> Panel | None:
    """Return a picture of some pairs, evenly chosen by score; None without people's rows."""
    audit = pair.model.audit
    people, found = audit.individuals, partners(audit, pair.matching)
    if people is None or found is None:
        return None
    first, second, mass = found
    order = np.argsort(np.asarray(people.scores)[first], kind="stable")
    steps = np.cumsum(mass[order]) / mass.sum()
    chosen = order[np.searchsorted(steps, (np.arange(_N_PAIRS) + 0.5) / _N_PAIRS)]
    drawn = [
        (
            people.scores[first[k]],
            people.scores[second[k]],
            bool(people.selected) and people.selected[first[k]] != people.selected[second[k]],
        )
        for k in dict.fromkeys(chosen.tolist())
    ]
    names = [pair.model.groups.get(name, name) for name in matched_groups(audit, pair.matching)]
    axis = "prediction" if audit.kind == "number" else "score"
    domain = audit.score_edges[0], audit.score_edges[-1]
    return Panel(slopes(drawn, names=names, axis=axis, domain=domain), pair.title)


def reach_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the share of people with a near person with a similar score."""
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
                    "fact": reach,
                }
            )
        if sum(len(one.reach) for one in model.audit.matchings) <= 2:
            reading += map(model.said, reach_sentences(matching))
    if not rows:
        return None
    return _figure(
        "reach",
        audits,
        rows,
        _intervals(rows, "share of the group's people", domain=(0.0, 1.0), percent=True),
        reading=reading,
        drawn=any(map(is_drawn, audits)),
        alike=rows[0]["fact"].score_gap,
    )


def feature_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the columns in which matched people differ."""
    matched = [
        (pair, found.features)
        for pair in _pairs(audits)
        if (found := pair.matching.nearest_fair or pair.matching.transport) and found.features
    ]
    if not matched:
        return None
    most = _MOST_BARS if len(matched) == 1 else _FEW_BARS
    rows: list[Row] = []
    drawn: list[Row] = []
    for pair, features in matched:
        names = told_apart((part.name for part in features), column_words)
        rows += [{**pair.row, "label": names[part.name], "fact": part} for part in features]
        drawn += [
            {"label": names[part.name], "series": words, "value": getattr(part, kind),
             "panel": pair.title}
            for part in features[:most]
            for kind, words in _COSTS.items()
        ]  # fmt: skip
    more = any(len(features) > most for _, features in matched)
    return _figure("features", audits, rows, _intervals(drawn, "mean squared distance"), more=more)


def gap_of_pairs_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the table of the score gaps of matched people, under every matching."""
    order = list(MATCHINGS)
    rows: list[Row] = []
    for pair in _pairs(audits):
        names = [pair.model.groups.get(name, name) for name in pair.matching.groups or ()]
        rows += [
            {
                **pair.row,
                "series": MATCHINGS[match.matching],
                **_estimate(match.gap),
                "median": match.quantiles.get("0.5"),
                "high95": match.quantiles.get("0.95"),
                **_flips(match.flips, names),
                "fact": match,
            }
            for match in sorted(pair.matching.matched_gaps, key=lambda m: order.index(m.matching))
        ]
    if not rows:
        return None
    return _figure(
        "score_gaps",
        audits,
        rows,
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
    return _figure("side_by_side", audits, rows, headings=models, same=same)


def _estimates(audit: Audit) -> dict[str, float | int | None]:
    """Return the estimates of one model by their words; with many pairs, the largest."""
    gaps = {gap.name: gap.value for gap in audit.gaps}
    found = [matching.nearest_fair for matching in audit.matchings]
    placed = [one.position for one in found if one is not None and one.position is not None]
    words = "accuracy"
    of_classes: dict[str, float | int | None] = {}
    if audit.classes is not None:
        words = f"accuracy of “{outcome_words(audit)}”"
        of_classes["accuracy of the classes"] = _overall(
            (group.accuracy, group.n_rows) for group in audit.classes.groups
        )
        of_classes |= {
            f"over all classes: {_class_title(gap).lower()}": gap.value
            for gap in audit.classes.gaps
        }
    return {
        "ratio of selection rates": audit.selection_ratio.value,
        **{f"gap: {gap_title(name, audit).lower()}": gaps[name] for name in _in_order(audit.gaps)},
        "distance of people matched by their scores (0 = nearest, 1 = random)": max(
            placed, default=None
        ),
        "listed subsets with a certain gap": sum(map(certain, audit.subsets.subsets))
        if audit.subsets and not audit.subsets.refused
        else None,
        words: _overall((group.accuracy, group.weight or group.n_rows) for group in audit.groups),
        **of_classes,
    }


def _overall(rates: Iterable[tuple[Estimate | None, float]]) -> float | None:
    """Return a rate of everybody from those of all groups with their weights, if all are known."""
    known = [(rate and rate.value, weight) for rate, weight in rates]
    if any(value is None for value, _ in known):
        return None
    return sum((value or 0.0) * n for value, n in known) / sum(n for _, n in known)


def changed_figure(comparison: Comparison) -> Figure:
    """Return the figure of changes from the reference model: decisions, and the order of people."""
    first = _models(comparison.audits)[0]
    sizes = {group.label: group.n_rows for group in first.audit.groups}
    rows: list[Row] = []
    bars: list[Row] = []
    for pair in comparison.pairs:
        model = shown_name(pair.model, _LONGEST)
        for group in sorted(pair.rank_agreement, key=lambda name: -sizes.get(name, 0)):
            row: dict[str, Any] = {"label": model, "series": first.groups.get(group, group)}
            rows.append(row)
            row["agreement"] = pair.rank_agreement[group]
            if group in pair.decisions:
                _, row["lost"], row["gained"], _ = pair.decisions[group]
                who = f"{model}: {row['series']}" if len(comparison.pairs) > 1 else row["series"]
                total = max(sum(pair.decisions[group]), 1)
                bars += [
                    {"label": who, "series": _HEADINGS[name], "value": row[name] / total}
                    for name in ("lost", "gained")
                ]
            if pair.undesirable_flips is not None:
                row["undesirable"] = pair.undesirable_flips.get(group)
    favoured = comparison.privileged
    return _figure(
        "changed",
        comparison.audits,
        rows,
        _intervals(bars, "share of the group", percent=True),
        reference=shown_name(first.audit.model_name),
        favoured="" if favoured is None else shown_name(favoured),
    )


# More than two classes.


def _class_title(gap: Gap) -> str:
    measure = MEASURES[gap.name]
    return measure.several or measure.title


def class_figures(audits: Sequence[Audit]) -> list[Figure]:
    """Return what every group gets, class by class; nothing for two classes."""
    if (first := audits[0].classes) is None:
        return []
    names = told_apart(first.names)
    headings = {f"c{at}": words for at, words in enumerate(names.values())}
    shares, confusion, gaps, cells = (list[Row]() for _ in range(4))
    drawn: dict[str, list[Row]] = {"shares": [], "confusion": []}
    for model in _models(audits):
        facts = model.audit.classes
        for group in sorted(facts.groups if facts else (), key=lambda own: -own.n_rows):
            words = model.groups.get(group.label, group.label)
            tables: list[tuple[list[Row], str, int | None, dict[str, Estimate]]]
            tables = [(shares, "", group.n_rows, group.shares)]
            tables += [
                (confusion, names[true], group.n_true.get(true), own)
                for true, own in group.confusion.items()
            ]
            for rows, true, people, own in tables:
                entries = {f"c{at}": _span_words(rate) for at, rate in enumerate(own.values())}
                refused = next((rate.refused for rate in own.values() if rate.refused), None)
                row = {"model": model.title, "label": words, "true": true, "people": people}
                if not true and group.accuracy is not None:
                    row["right"] = _span_words(group.accuracy)
                if refused:
                    rows.append({**row, "note": refused})
                    continue
                rows.append({**row, **entries})
                bars = drawn["confusion" if true else "shares"]
                for name, rate in own.items():
                    mark = {**model.row, **_estimate(rate)}
                    if first.ordered:
                        title = model.said(words) if true else model.title
                        above = f"{true or words}  (n = {people:,})"
                        bars.append(mark | {"panel": title, "label": above, "series": names[name]})
                    elif true in ("", names[name]):
                        bars.append(mark | {"panel": names[name], "label": words})
        gaps += [
            {**_gap_row(gap, model.audit, model.groups), **model.row,
             "label": _class_title(gap), "method": gap.method}
            for gap in (facts.gaps if facts else ())
        ]  # fmt: skip
        cells += [
            {
                **model.row,
                "what": names[cell.decided],
                "given": "everybody" if cell.given is None else f"label {names[cell.given]}",
                "label": " – ".join(model.groups.get(g, g) for g in reversed(cell.groups)),
                "first": cell.rates[1],
                "second": cell.rates[0],
                "value": cell.rates[1] - cell.rates[0],
                "low": cell.low,
                "high": cell.high,
                "panel": names[cell.decided] if cell.given is None else None,
            }
            for cell in (facts.cells if facts else ())
        ]

    def charts(bars: list[Row]) -> Drawn:
        """Return the shares of ordered classes as stacked bars, and others as intervals."""
        axis, series = "share of the people", list(names.values())
        if first.ordered and bars:
            return _panels(bars, lambda _, own: stacked(own, axis=axis, series=series)), (*series,)
        return _intervals(bars, axis, domain=(0.0, 1.0), percent=True)

    said: dict[str, Any] = {"ordered": first.ordered, "n": len(names)}
    shown: dict[str, Any] = {"headings": headings, "n_shades": len(names) * first.ordered, **said}
    bars = drawn["confusion"]
    good = [names[own] for own in first.favourable]
    found = [
        _figure("class_shares", audits, shares, charts(drawn["shares"]), good=good, **shown),
        _figure("class_gaps", audits, gaps, _intervals(gaps, _ALIKE), **said),
    ]
    if cells:
        found.append(_figure("class_cells", audits, cells, _intervals(cells, "difference"), **said))
    if confusion:
        found.append(
            _figure("class_confusion", audits, confusion, charts(bars), drawn=bool(bars), **shown)
        )
    return found


def moves_figure(comparison: Comparison) -> Figure | None:
    """Return who gets another class than under the reference model; None for two classes."""
    first = _models(comparison.audits)[0]
    if (facts := first.audit.classes) is None:
        return None
    names, place = told_apart(facts.names), {name: at for at, name in enumerate(facts.names)}
    rows: list[Row] = []
    reading: list[str] = []
    for pair in comparison.pairs:
        model = shown_name(pair.model, _LONGEST)
        sizes = {group.label: -group.n_rows for group in first.audit.groups}
        for group, table in sorted(pair.moves.items(), key=lambda own: sizes.get(own[0], 0)):
            counts = {
                (before, after): n
                for before, own in table.items()
                for after, n in own.items()
                if before != after
            }
            total = sum(sum(own.values()) for own in table.values())
            if not total:
                continue
            words = first.groups.get(group, group)
            rows += [
                {"model": model if len(comparison.pairs) > 1 else "", "series": words,
                 "label": f"{names[before]} → {names[after]}", "people": n, "value": n / total}
                for (before, after), n in counts.items()
                if n
            ]  # fmt: skip
            parts = [("another", sum(counts.values()))]
            if facts.ordered:
                up = sum(n for (old, new), n in counts.items() if place[new] > place[old])
                parts = [("a higher", up), ("a lower", sum(counts.values()) - up)]
            shown = listed([f"{n / total:.1%} get {what} class" for what, n in parts])
            reading.append(f"{model}: of {group_words(group)}, {shown}.")
    kept = sorted(rows, key=lambda row: -row["value"])
    labels = list(dict.fromkeys(row["label"] for row in kept))[:_MOST_BARS]
    bars = [{**row, "panel": row["model"]} for row in kept if row["label"] in labels]
    return _figure(
        "moves",
        comparison.audits,
        rows,
        _intervals(bars, "share of the group", percent=True),
        reading=reading,
        reference=shown_name(first.audit.model_name),
        more=len({row["label"] for row in rows}) > len(labels),
        moved=bool(rows),
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
    drawn = [
        {"label": f"weight {r['fairness_weight']:g}", "x": r[gap], "value": r["accuracy"],
         "series": ""}
        for r in sorted(rows, key=lambda r: float(r["fairness_weight"]))
    ]  # fmt: skip
    chart = _scatter(drawn, f"{MEASURES[gap].title} ({MEASURES[gap].symbol})", joined=True)
    return _figure("tradeoff", (), rows, chart, headings=names)


# Subsets.


def subset_figure(audits: Sequence[Audit]) -> Figure | None:
    """Return the figure of the subsets, in the order of the audit: by the excess of their gap."""
    rows: list[Row] = []
    drawn: list[Row] = []
    reading: list[str] = []
    overall: dict[str, float] = {}
    for model in _models(audits):
        if (scan := model.audit.subsets) is None:
            continue
        own = _subset_rows(model)
        rows += own
        stated = [row for row in own if row["value"] is not None]
        drawn += stated[:_MOST_BARS]
        if (gap := model.audit.gap("mean_parity_gap").value) is not None:
            overall[model.title] = gap
        if own or not scan.refused:
            said = told(
                "search",
                audits,
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
    charts = _intervals(
        drawn,
        "gap between mean scores",
        references=lambda p: {"over everybody": overall[p]} if p in overall else {},
    )
    return _figure(
        "subsets", audits, rows, charts, reading=reading, drawn=bool(charts[0]), many=many
    )


def _subset_rows(model: _Model) -> list[Row]:
    assert model.audit.subsets is not None
    many = len(model.audit.matchings) > 1
    rows: list[Row] = []
    for subset in model.audit.subsets.subsets:
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
                "excess": None if subset.excess is None else subset.excess.value,
                "excess_low": None if subset.excess is None else subset.excess.low,
                "gap": subset.gap,
                "higher": "neither" if alike else higher[0],
                "lower": "neither" if alike else lower[0],
                "people": f"{higher[1]:,} {higher[0]}, {lower[1]:,} {lower[0]}",
            }
        )
    return rows


@_per_model("half_spaces")
def half_space_figure(model: _Model) -> Iterable[Row]:
    """Return the table of gaps in random subsets, next to those of shuffled groups."""
    scan = model.audit.subsets
    if scan is None or not scan.half_spaces.gaps:
        return
    found = {"this model": scan.half_spaces.gaps, "groups shuffled": scan.half_spaces.noise}
    for name, gaps in found.items():
        if gaps:
            quantiles = {f"q{q}": float(np.quantile(gaps, q / 100)) for q in (50, 95, 100)}
            yield {"series": name, "n": len(gaps), **quantiles}
