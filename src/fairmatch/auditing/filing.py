"""Rates and impact ratios as CSV files, in the layout of New York's Local Law 144."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

from fairmatch.auditing.facts import Audit, Estimate
from fairmatch.auditing.facts.impact import FOUR_FIFTHS, CategoryImpact, ImpactTable
from fairmatch.exceptions import InputError
from fairmatch.storage.atomic import write_whole

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
    "too few people for a statement of the audit",
)
# Further columns with survey weights. The rates are quotients of their sums.
_WEIGHTED_HEAD = ("weight of the people", "weight of the selected", "effective number of people")


def write_tables(audits: Sequence[Audit], folder: str | Path) -> list[Path]:
    """Write one CSV file per attribute, one for all attributes crossed, and a summary.

    Parameters
    ----------
    audits : sequence of Audit
        The audits to write. If there are several, each gets a folder of its own.
    folder : str or Path
        Where the files go. The folder is created if it does not exist.

    Returns
    -------
    list of Path
        The files that were written.
    """
    home, written = Path(folder), []
    if any(audit.scale == "real" for audit in audits):
        raise InputError(
            "An audit of predictions was given, and predictions select nobody, so there are no "
            "rates to file. Write its facts with to_json."
        )
    if home.exists() and not home.is_dir():
        raise InputError(f"--tables must be a folder, and {folder} is a file. Name another folder.")
    folders: set[str] = set()
    for audit in audits:
        place = home if len(audits) == 1 else home / _file_name(audit.model_name, folders)
        taken = {"summary"}
        for table in audit.impact:
            file = place / f"{_file_name('_'.join(table.attributes), taken)}.csv"
            written.append(write_whole(file, _csv(_rows(table))))
        written.append(write_whole(place / "summary.csv", _csv(_summary(audit))))
    return written


def _file_name(text: str, taken: set[str]) -> str:
    """Return a file name made from a text, different from all names taken, and remember it."""
    name = plain = re.sub(r"[^\w-]+", "_", text).strip("_") or "table"
    number = 1
    while name.casefold() in taken:  # some file systems do not tell A from a
        number += 1
        name = f"{plain}_{number}"
    taken.add(name.casefold())
    return name


def _csv(rows: list[list[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [[_safe(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    )
    return text.getvalue()


def _safe(text: str) -> str:
    """Return the text in a form that a spreadsheet does not take for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _rows(table: ImpactTable) -> list[list[object]]:
    weighted = any(category.weight is not None for category in table.categories)
    rows: list[list[object]] = [[*table.attributes, *_HEAD, *(_WEIGHTED_HEAD if weighted else ())]]
    rows += [[*category.values, *_cells(category)] for category in table.categories]
    blank: list[object] = [""] * (len(rows[0]) - len(table.attributes) - 1)
    rows.append(["unknown"] * len(table.attributes) + [table.n_unknown] + blank)
    return rows


def _cells(category: CategoryImpact) -> list[object]:
    p_value = "" if category.p_value is None else f"{category.p_value:.3g}"
    return [
        category.n_people,
        category.n_selected,
        *_limits(category.selection_rate),
        *_limits(category.impact_ratio),
        *_limits(category.scoring_rate),
        *_limits(category.scoring_ratio),
        f"{category.share:.4f}",
        "yes" if category.is_small else "no",
        {True: "yes", False: "no", None: ""}[category.below_four_fifths],
        p_value,
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
    rows: list[list[object]] = [["item", "value"]]
    about = {name: getattr(audit.about, name) for name in ("title", "author", "date", "purpose")}
    rows += [[name, text] for name, text in about.items() if text]
    rows += [
        ["model", audit.model_name],
        ["source", audit.provenance.source or "not a file"],
        ["SHA-256 of the source", audit.provenance.source_sha256 or ""],
        ["vocabulary", first.rule],
        ["people scored", audit.n_rows],
        ["selected means", f"{audit.outcome}: a score {side} {audit.threshold:g}"],
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
        rows.append([f"people of unknown {name}", table.n_unknown])
        among = ""
        if any(category.is_small for category in table.categories):
            among = " among categories of 2% or more"
        for words, rate in (
            ("most selected", "selection_rate"),
            ("highest scoring", "scoring_rate"),
        ):
            if rate == "selection_rate" or table.median_score is not None:
                names = "; ".join(table.highest(rate)) or "none"
                rows.append([f"{words} by {name}{among}", names])
    return [
        *rows,
        ["impact ratio", "rate over the largest of categories with 2% of the people or more"],
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


def _weight_column(audit: Audit) -> str:
    """Return what the weights are called."""
    names = [column.name for column in audit.columns if column.role == "weight"]
    return f"the column {names[0]!r}" if names else "the weights given"
