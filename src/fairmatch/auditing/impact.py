"""Selection rates, scoring rates and impact ratios by category."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import fisher_exact

from fairmatch.auditing.facts import (
    FOUR_FIFTHS,
    SMALL_SHARE,
    Audit,
    CategoryImpact,
    Estimate,
    ImpactTable,
)
from fairmatch.auditing.gaps import NO_BASE
from fairmatch.auditing.people import Audited
from fairmatch.exceptions import InputError
from fairmatch.measures.contingency import flips, holm, shortfall, standard_deviations
from fairmatch.measures.intervals import rate_over_rate
from fairmatch.people.checks import BoolArray, FloatArray
from fairmatch.people.files import csv_text, write_whole
from fairmatch.people.groups import Groups
from fairmatch.people.weights import Rate, Weights


def impact_tables(data: Audited) -> tuple[ImpactTable, ...]:
    """Return the rates and ratios of each attribute, and of all of them crossed."""
    groups, scoring = data.groups, _above_median(data)
    if not groups.crossed:
        return (_table(data, {"group": groups}, scoring),)
    attributes = dict(zip(groups.attributes, groups.crossed, strict=True))
    single = [_table(data.of(own), {name: own}, scoring) for name, own in attributes.items()]
    return (*single, _table(data, attributes, scoring))


def _above_median(data: Audited) -> tuple[float, BoolArray] | None:
    """Return the median score of everybody, and a mask of the people who score better."""
    if data.scored.is_decision:
        return None
    median = weighted_median(data.scores, data.weights)
    is_high = data.settings.favourable == "high"
    return median, np.asarray(data.scores > median if is_high else data.scores < median)


def weighted_median(values: FloatArray, weights: Weights) -> float:
    """Return the median of weighted values. If it lies between two values, return their mean.

    Examples
    --------
    >>> import numpy as np
    >>> weighted_median(np.array([3.0, 1.0]), Weights(2, np.array([1.0, 3.0]), is_counts=True))
    1.0
    """
    if weights.values is None:
        return float(np.median(values))
    low, high = (
        np.quantile(side * values, 0.5, weights=weights.values, method="inverted_cdf")
        for side in (1.0, -1.0)
    )
    return float((low - high) / 2.0)


def _table(
    data: Audited, attributes: Mapping[str, Groups], scoring: tuple[float, BoolArray] | None
) -> ImpactTable:
    confidence, groups = data.settings.confidence, data.groups
    codes = [code for code in groups.compared if data.sizes[code]]
    weights = {code: data.weights.take(groups.is_group(code)) for code in codes}
    total = sum(own.total for own in weights.values())

    def rates(hits: BoolArray) -> dict[int, Rate]:
        return {code: own.rate(hits[groups.is_group(code)]) for code, own in weights.items()}

    chosen, scored = rates(data.selected), {} if scoring is None else rates(scoring[1])
    most, large = data.base, [code for code in data.bases if code in codes]
    highest = max(large, key=lambda code: scored[code].share) if large and scored else None
    tests = {} if most is None else _tests(codes, chosen, most)
    categories = []
    for code, own in weights.items():
        rows = groups.is_group(code)
        first, selected = int(np.argmax(rows)), data.weights.take(rows & data.selected)
        ratio, share = _ratio(chosen, code, most, confidence), own.total / total
        found = CategoryImpact(
            category=data.labels[code],
            values=tuple(str(one.labels[one.codes[first]]) for one in attributes.values()),
            n_people=own.people,
            n_selected=selected.people,
            share=share,
            selection_rate=Estimate.of_rate(chosen[code], confidence),
            impact_ratio=ratio,
            p_value=None,
            scoring_rate=Estimate.of_rate(scored[code], confidence) if scored else None,
            scoring_ratio=_ratio(scored, code, highest, confidence) if scored else None,
            is_small=share < SMALL_SHARE,
            below_four_fifths=None if ratio.value is None else ratio.value < FOUR_FIFTHS,
            is_few=data.refuse(code, own.size) is not None,
        )
        if own.is_survey:
            sums: dict[str, Any] = {"weight": own.total, "weight_selected": selected.total}
            found = replace(found, effective_size=own.size, **sums)
        categories.append(replace(found, **tests.get(code, {})))
    n_people = sum(own.people for own in weights.values())
    return ImpactTable(
        attributes=tuple(attributes),
        categories=tuple(categories),
        n_people=n_people,
        n_unknown=sum(data.sizes) - n_people,
        most_selected=None if most is None else data.labels[most],
        highest_scoring=None if highest is None else data.labels[highest],
        median_score=None if scoring is None else scoring[0],
    )


def _ratio(rates: Mapping[int, Rate], code: int, most: int | None, confidence: float) -> Estimate:
    """Return a share divided by the one that it is compared with, with its interval."""
    if most is None:
        return Estimate(None, refused=NO_BASE)
    own, other = rates[code], rates[most]
    if other.share == 0.0:
        return Estimate(None, refused="The rate that others are compared with is 0.")
    if code == most:
        return Estimate(1.0)
    limits = rate_over_rate((own.hits, other.hits), (own.people, other.people), confidence)
    return Estimate(own.share / other.share, *limits)


def _tests(codes: list[int], rates: Mapping[int, Rate], most: int) -> dict[int, dict[str, Any]]:
    """Return the tests of each category against the one that it is compared with."""
    tests: dict[int, dict[str, Any]] = {}
    base = rates[most]
    for code in (own for own in codes if own != most):
        hits, sizes = (rates[code].hits, base.hits), (rates[code].people, base.people)
        whole = round(hits[0]), round(hits[1])
        table = np.array([[k, n - k] for k, n in zip(whole, sizes, strict=True)])
        p_value, z = float(fisher_exact(table).pvalue), standard_deviations(whole, sizes)
        exact = float(ndtri(p_value / 2.0))
        tests[code] = {
            "p_value": p_value,
            "standard_deviations": z,
            # Where p is too small for a number, the normal approximation stands in.
            "exact_standard_deviations": float(np.copysign(exact, z)) if np.isfinite(exact) else z,
            "shortfall": shortfall(hits, sizes),
            "flips": flips(whole, sizes, FOUR_FIFTHS),
        }
    adjusted = holm([own["p_value"] for own in tests.values()])
    for own, p_value in zip(tests.values(), adjusted, strict=True):
        own["p_adjusted"] = float(p_value)
    return tests


# The columns of a file: their heading, the fact that they hold, and how a number is written. The
# limits of an estimate follow it.
_COLUMNS = (
    ("number of people", "n_people", ""),
    ("number selected", "n_selected", ""),
    ("selection rate", "selection_rate", ".4f"),
    ("impact ratio (selection)", "impact_ratio", ".4f"),
    ("scoring rate", "scoring_rate", ".4f"),
    ("impact ratio (scoring)", "scoring_ratio", ".4f"),
    ("share of the people", "share", ".4f"),
    ("less than 2% of the people", "is_small", ""),
    ("below four fifths (29 CFR 1607.4)", "below_four_fifths", ""),
    ("p-value of equal selection rates (Fisher)", "p_value", ".3g"),
    ("p-value adjusted for the number of categories (Holm)", "p_adjusted", ".3g"),
    ("standard deviations from the rate compared with (z)", "standard_deviations", "z.2f"),
    (
        "standard deviations from the rate compared with (exact)",
        "exact_standard_deviations",
        "z.2f",
    ),
    ("shortfall: selections to the rate compared with", "shortfall", "z.1f"),
    ("one selection changes the four-fifths verdict", "flips", ""),
    ("too few people for a statement of the audit", "is_few", ""),
)
_ESTIMATES = {"selection_rate", "impact_ratio", "scoring_rate", "scoring_ratio"}
# Further columns with survey weights. The rates are quotients of their sums.
_WEIGHTED = (
    ("weight of the people", "weight", ".4f"),
    ("weight of the selected", "weight_selected", ".4f"),
    ("effective number of people", "effective_size", ".4f"),
)


def write_tables(audits: Sequence[Audit], folder: str | Path) -> list[Path]:
    """Write one CSV file per attribute, one for all crossed, those of each stage, and a summary."""
    home, written = Path(folder), []
    if any(audit.kind == "number" for audit in audits):
        raise InputError(
            "This is an audit of numeric predictions. They select no one, so there are no "
            "rates to file. Write its facts with to_json."
        )
    if any(audit.estimated is not None for audit in audits):
        raise InputError(
            "The groups of this audit are probabilities, so nobody belongs to a category and "
            "there are no rates to file. Write its facts with to_json."
        )
    if home.exists() and not home.is_dir():
        raise InputError(
            f"folder={str(folder)!r} is a file. Name another folder.", parameter="folder"
        )
    folders: set[str] = set()
    for audit in audits:
        place = home if len(audits) == 1 else home / _file_name(audit.model_name, folders)
        taken = {"summary"}
        tables = [(table.attributes, table) for table in audit.impact]
        for stage in audit.stages:
            step = stage.stage, "of", stage.among
            tables += [((*step, *table.attributes), table) for table in stage.impact]
        for words, table in tables:
            file = place / f"{_file_name('_'.join(words), taken)}.csv"
            written.append(write_whole(file, _csv(_rows(table))))
        written.append(write_whole(place / "summary.csv", _csv(_summary(audit))))
    return written


_LONGEST = 150  # bytes; a file system takes 255, and a partial file adds some


def _file_name(text: str, taken: set[str]) -> str:
    """Return a file name made from a text, different from all names taken, and remember it."""
    plain = re.sub(r"[^\w-]+", "_", text).strip("_")
    name = plain = plain.encode()[:_LONGEST].decode(errors="ignore") or "table"
    number = 1
    while name.casefold() in taken:  # some file systems do not tell A from a
        number += 1
        name = f"{plain}_{number}"
    taken.add(name.casefold())
    return name


def _csv(rows: list[list[object]]) -> str:
    return csv_text(pd.DataFrame(rows, dtype=object), header=False)


def _rows(table: ImpactTable) -> list[list[object]]:
    """Return the rows of a file: the headings, the categories, and the people of unknown one."""
    weighted = any(category.weight is not None for category in table.categories)
    columns = _COLUMNS + _WEIGHTED * weighted
    head: list[object] = [*table.attributes]
    for title, name, _ in columns:
        limits = [f"{title}, lower limit", f"{title}, upper limit"]
        head += [title, *(limits if name in _ESTIMATES else ())]
    rows = [head]
    for own in table.categories:
        rows.append([*own.values])
        for _, name, digits in columns:
            fact = getattr(own, name)
            ends = (fact.value, fact.low, fact.high) if isinstance(fact, Estimate) else (fact,)
            ends = (None,) * 3 if fact is None and name in _ESTIMATES else ends
            rows[-1] += [_cell(end, digits) for end in ends]
    unknown: list[object] = ["unknown"] * len(table.attributes) + [_unknown(table)]
    return [*rows, unknown + [""] * (len(head) - len(unknown))]


def _cell(fact: Any, digits: str) -> object:
    """Return a fact as text: empty where there is none, and numbers of people as they are."""
    if fact is None or isinstance(fact, bool):
        return {True: "yes", False: "no", None: ""}[fact]
    return format(fact, digits) if digits else fact


def _unknown(table: ImpactTable) -> object:
    return "withheld" if table.n_unknown is None else table.n_unknown


def _summary(audit: Audit) -> list[list[object]]:
    """Return the rows of the summary: what a reader of the tables must know."""
    first = audit.impact[0]
    side = "at or above" if audit.favourable == "high" else "below"
    better = "above" if audit.favourable == "high" else "below"
    rule = f"score {side} {audit.threshold:g}"
    if (yes := audit.provenance.settings.get("accepted")) is not None and audit.threshold:
        rule = f"decision {'of' if audit.favourable == 'high' else 'other than'} {yes!r}"
    rows: list[list[object]] = [["item", "value"]]
    about = {name: getattr(audit.about, name) for name in ("title", "author", "date", "purpose")}
    rows += [[name, text] for name, text in about.items() if text]
    rows += [
        ["model", audit.model_name],
        ["source", audit.provenance.source or "not a file"],
        ["SHA-256 of the source", audit.provenance.source_sha256 or ""],
        ["vocabulary", first.rule],
        ["people scored", audit.n_rows],
        ["selected means", f"{audit.outcome}: a {rule}"],
    ]
    if audit.weights == "survey":
        rows.append(
            [
                "weights",
                f"rates, ratios, shares and the median are weighted by {_weight_column(audit)}; "
                "numbers of people are not. A selection rate is the weight of the selected over "
                "the weight of the people, and limits and p-values take the effective number of "
                "people",
            ]
        )
    if audit.weights == "counts":
        rows.append(
            ["weights", f"each row stands for the number of people in {_weight_column(audit)}"]
        )
    if first.median_score is not None:
        scoring = f"a score {better} {first.median_score:.6g}, the median of all people scored"
        rows.append(["scoring rate", f"share of people with {scoring}"])
    for table in audit.impact:
        name = " and ".join(table.attributes)
        rows.append([f"people of unknown {name}", _unknown(table)])
        among = ""
        if any(category.is_small or category.is_few for category in table.categories):
            among = " among categories that are large enough"
        if table.most_selected is not None:
            rows.append([f"impact ratios by {name} are to", table.most_selected])
        for words, rate in (
            ("most selected", "selection_rate"),
            ("highest scoring", "scoring_rate"),
        ):
            if rate == "selection_rate" or table.median_score is not None:
                names = "; ".join(table.highest(rate)) or "none"
                rows.append([f"{words} by {name}{among}", names])
    return [
        *rows,
        ["impact ratio", f"rate over that of the category compared with: {_base(audit)}"],
        ["limits", f"{audit.confidence:.0%} for each rate and each ratio by itself"],
        [
            "too few people",
            "the audit states nothing else about categories of fewer than "
            f"{audit.provenance.settings['min_group_size']} people; their rates are listed, "
            "unless withheld, because every category is filed",
        ],
        [
            "four fifths",
            f"29 CFR 1607.4(D) takes a ratio below {FOUR_FIFTHS:g} as evidence of adverse impact "
            "unless it is not significant; Local Law 144 sets no threshold",
        ],
        ["made by", f"fairmatch {audit.provenance.version}"],
    ]


def _base(audit: Audit) -> str:
    """Return which category others are compared with."""
    if audit.is_reference_named:
        return "the reference group that was named"
    least = audit.provenance.settings["min_group_size"]
    return f"that with the highest rate among categories with 2% of the people and {least} people"


def _weight_column(audit: Audit) -> str:
    """Return what the weights are called."""
    names = [column.name for column in audit.columns if column.role == "weight"]
    return f"the column {names[0]!r}" if names else "the weights given"
