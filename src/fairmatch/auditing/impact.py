"""Selection rates, scoring rates and impact ratios by category."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr, ndtri

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

# For larger tables the normal approximation agrees with Fisher's test to all digits shown.
_MOST_CELLS = 1_000_000


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
    confidence = data.settings.confidence
    codes = [code for code in data.groups.compared if data.sizes[code]]
    total = sum(data.totals[code] for code in codes)
    shares = {code: data.totals[code] / total for code in codes}
    large = [code for code in data.bases if code in codes]
    chosen = _rates(data, codes, data.selected)
    scored = {} if scoring is None else _rates(data, codes, scoring[1])
    most = data.base
    highest = max(large, key=lambda code: scored[code].share) if large and scored else None
    categories = []
    for code in codes:
        rows = data.groups.is_group(code)
        first = int(np.argmax(rows))
        ratio = _ratio(chosen, code, most, confidence)
        own, selected = (data.weights.take(mask) for mask in (rows, rows & data.selected))
        survey = own.is_survey
        categories.append(
            CategoryImpact(
                category=data.labels[code],
                values=tuple(str(own.labels[own.codes[first]]) for own in attributes.values()),
                n_people=data.sizes[code],
                n_selected=selected.people,
                share=shares[code],
                selection_rate=Estimate.of_rate(chosen[code], confidence),
                impact_ratio=ratio,
                p_value=None,
                scoring_rate=Estimate.of_rate(scored[code], confidence) if scored else None,
                scoring_ratio=_ratio(scored, code, highest, confidence) if scored else None,
                is_small=shares[code] < SMALL_SHARE,
                below_four_fifths=None if ratio.value is None else ratio.value < FOUR_FIFTHS,
                is_few=data.refuse(code, own.size) is not None,
                weight=own.total if survey else None,
                weight_selected=selected.total if survey else None,
                effective_size=own.size if survey else None,
            )
        )
    n_people = sum(data.sizes[code] for code in codes)
    if most is not None:
        categories = _tested(categories, codes, chosen, most)
    return ImpactTable(
        attributes=tuple(attributes),
        categories=tuple(categories),
        n_people=n_people,
        n_unknown=sum(data.sizes) - n_people,
        most_selected=None if most is None else data.labels[most],
        highest_scoring=None if highest is None else data.labels[highest],
        median_score=None if scoring is None else scoring[0],
    )


def _rates(data: Audited, codes: list[int], hits: BoolArray) -> dict[int, Rate]:
    members = {code: data.groups.is_group(code) for code in codes}
    return {code: data.weights.take(rows).rate(hits[rows]) for code, rows in members.items()}


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


def _tested(
    categories: list[CategoryImpact], codes: list[int], rates: Mapping[int, Rate], most: int
) -> list[CategoryImpact]:
    """Return the categories with the tests of each against the one that it is compared with."""
    others = [code for code in codes if code != most]
    hits = {code: (round(rates[code].hits), round(rates[most].hits)) for code in others}
    sizes = {code: (rates[code].people, rates[most].people) for code in others}
    values = {code: fisher(hits[code], sizes[code]) for code in others}
    adjusted = dict(zip(others, holm(list(values.values())), strict=True))
    tested = []
    for category, code in zip(categories, codes, strict=True):
        if code == most:
            tested.append(category)
            continue
        z = standard_deviations(hits[code], sizes[code])
        exact = float(ndtri(values[code] / 2.0)) if values[code] > 0.0 else -np.inf
        tested.append(
            replace(
                category,
                p_value=values[code],
                p_adjusted=float(adjusted[code]),
                standard_deviations=z,
                # Where p is too small for a number, the normal approximation stands in.
                exact_standard_deviations=float(np.copysign(exact, z)) if np.isfinite(exact) else z,
                shortfall=shortfall(
                    (rates[code].hits, rates[most].hits), (sizes[code][0], sizes[code][1])
                ),
                flips=flips(hits[code], sizes[code], FOUR_FIFTHS),
            )
        )
    return tested


def fisher(hits: tuple[int, int], people: tuple[int, int]) -> float:
    """Return the two-sided p-value of Fisher's exact test that two rates are equal.

    Examples
    --------
    >>> round(fisher((8, 1), (10, 6)), 4)
    0.035
    """
    total, successes = sum(people), sum(hits)
    least, most = max(0, successes - people[1]), min(people[0], successes)
    if most - least > _MOST_CELLS:
        rate = successes / total
        error = np.sqrt(rate * (1 - rate) * (1 / people[0] + 1 / people[1]))
        return float(2 * ndtr(-abs(hits[0] / people[0] - hits[1] / people[1]) / error))
    k = np.arange(least, most + 1)
    logs = _log_choose(people[0], k) + _log_choose(people[1], successes - k)
    chances = np.exp(logs - logs.max())
    # Tables that are no more likely than the observed one, up to rounding.
    reached = chances <= chances[hits[0] - least] * (1 + 1e-7)
    return float(chances[reached].sum() / chances.sum())


def _log_choose(n: int, k: NDArray[np.int64]) -> FloatArray:
    logs: FloatArray = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return logs


_HEAD = (
    "number of people",
    "number selected",
    "selection rate",
    "selection rate, lower limit",
    "selection rate, upper limit",
    "impact ratio (selection)",
    "impact ratio (selection), lower limit",
    "impact ratio (selection), upper limit",
    "scoring rate",
    "scoring rate, lower limit",
    "scoring rate, upper limit",
    "impact ratio (scoring)",
    "impact ratio (scoring), lower limit",
    "impact ratio (scoring), upper limit",
    "share of the people",
    "less than 2% of the people",
    "below four fifths (29 CFR 1607.4)",
    "p-value of equal selection rates (Fisher)",
    "p-value adjusted for the number of categories (Holm)",
    "standard deviations from the rate compared with (z)",
    "standard deviations from the rate compared with (exact)",
    "shortfall: selections to the rate compared with",
    "one selection changes the four-fifths verdict",
    "too few people for a statement of the audit",
)
# Further columns with survey weights. The rates are quotients of their sums.
_WEIGHTED_HEAD = ("weight of the people", "weight of the selected", "effective number of people")


_YES = {True: "yes", False: "no", None: ""}


def write_tables(audits: Sequence[Audit], folder: str | Path) -> list[Path]:
    """Write one CSV file per attribute, one for all crossed, those of each stage, and a summary."""
    home, written = Path(folder), []
    if any(audit.kind == "number" for audit in audits):
        raise InputError(
            "This is an audit of numeric predictions. They select no one, so there are no "
            "rates to file. Write its facts with to_json."
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
    weighted = any(category.weight is not None for category in table.categories)
    rows: list[list[object]] = [[*table.attributes, *_HEAD, *(_WEIGHTED_HEAD if weighted else ())]]
    rows += [[*category.values, *_cells(category)] for category in table.categories]
    blank: list[object] = [""] * (len(rows[0]) - len(table.attributes) - 1)
    rows.append(["unknown"] * len(table.attributes) + [_unknown(table)] + blank)
    return rows


def _unknown(table: ImpactTable) -> object:
    return "withheld" if table.n_unknown is None else table.n_unknown


def _cells(category: CategoryImpact) -> list[object]:
    tests = (
        (category.p_value, ".3g"),
        (category.p_adjusted, ".3g"),
        (category.standard_deviations, "z.2f"),
        (category.exact_standard_deviations, "z.2f"),
        (category.shortfall, "z.1f"),
    )
    return [
        category.n_people,
        "" if category.n_selected is None else category.n_selected,
        *_limits(category.selection_rate),
        *_limits(category.impact_ratio),
        *_limits(category.scoring_rate),
        *_limits(category.scoring_ratio),
        f"{category.share:.4f}",
        "yes" if category.is_small else "no",
        _YES[category.below_four_fifths],
        *("" if number is None else format(number, digits) for number, digits in tests),
        _YES[category.flips],
        "yes" if category.is_few else "no",
        *(
            f"{number:.4f}"
            for number in (category.weight, category.weight_selected, category.effective_size)
            if number is not None
        ),
    ]


def _limits(fact: Estimate | None) -> list[str]:
    if fact is None:
        return [""] * 3
    return ["" if v is None else f"{v:.4f}" for v in (fact.value, fact.low, fact.high)]


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
            f"{audit.provenance.settings['min_group_size']} people; their rates are listed because "
            "every category is filed",
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
