"""Rates and impact ratios by category, in the shape of New York's Local Law 144."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairmatch.auditing.facts import Audit, Estimate
from fairmatch.auditing.facts.impact import FOUR_FIFTHS, CategoryImpact, ImpactTable
from fairmatch.report.charts import Row
from fairmatch.report.figures.figure import (
    NOTE,
    Figure,
    least_people,
    model_labels,
    noted,
    panel,
    too_few,
)
from fairmatch.report.wording import (
    column_words,
    group_words,
    listed,
    n_people,
    outcome_words,
    selected_from,
    told_apart,
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
        {**_row(category, names), **_withheld(category, table, least)} for category in order
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


def _row(category: CategoryImpact, names: dict[str, str]) -> Row:
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
