"""The report of an audit, as one HTML file that needs nothing but a browser, and as a filing."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from fairmatch.auditing.facts import Alternatives, Audit, Comparison
from fairmatch.exceptions import InputError, MissingExtraError
from fairmatch.people.files import whole_file, write_whole
from fairmatch.report import figures
from fairmatch.report.drawing import mark
from fairmatch.report.explorer import explorer_json, explorer_lead
from fairmatch.report.figures import Figure
from fairmatch.report.wording import (
    ALIKE,
    compared_groups,
    is_drawn,
    leak_sentence,
    listed,
    other_words,
    outcome_words,
    resource,
    rule_words,
    sentences,
    template,
    told_matching,
    with_label_words,
)


def sections(
    audits: Sequence[Audit],
    comparison: Comparison | None = None,
    curve: pd.DataFrame | None = None,
    alternatives: Alternatives | None = None,
) -> dict[str, list[Figure]]:
    """Return the figures of every section of the report for which there are facts."""
    searched = [audit for audit in audits if audit.subsets]
    labelled = [a for a in audits if any(group.calibration for group in a.groups)]
    are_chances = audits[0].score_range is None and audits[0].classes is None
    every: dict[str, list[Figure | None]] = {
        "alternatives": [] if alternatives is None else [figures.alternatives_figure(alternatives)],
        "gaps": [
            figures.estimated_figure(audits),
            figures.gap_figure(audits),
            figures.pair_figure(audits),
            figures.number_figure(audits),
            figures.period_figure(audits),
            figures.stage_figure(audits),
        ],
        "classes": [*figures.class_figures(audits)],
        "given": [*figures.given_figures(audits)],
        "filing": [*figures.impact_figures(audits)],
        "matching": [
            figures.matched_figure(audits),
            figures.feature_figure(audits),
            figures.similarity_figure(audits),
            figures.reach_figure(audits),
            figures.gap_of_pairs_figure(audits),
        ],
        "subsets": [figures.subset_figure(searched), figures.half_space_figure(searched)]
        if searched
        else [],
        # With several classes the scores are decisions, whose shares are drawn already.
        "scores": [] if audits[0].classes else [figures.score_figure(audits)],
        "labels": [
            figures.accuracy_figure(labelled),
            # Marks are no probabilities: their calibration is not drawn.
            *([figures.calibration_figure(labelled)] if are_chances else []),
        ]
        if labelled
        else [],
        "comparison": [
            figures.side_by_side(audits),
            None if comparison is None else figures.changed_figure(comparison),
            None if comparison is None else figures.moves_figure(comparison),
        ],
        "columns": [figures.column_figure(audits)],
        "curve": [] if curve is None else [figures.tradeoff_figure(curve)],
    }
    found = {key: [one for one in own if one is not None] for key, own in every.items()}
    return {key: own for key, own in found.items() if own}


# Signs that could end a script element or a line of JavaScript. JSON can write them by number.
_UNSAFE = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def write_report(
    audits: Audit | Comparison | Sequence[Audit],
    path: str | Path,
    *,
    curve: pd.DataFrame | None = None,
    alternatives: Alternatives | None = None,
    individuals: bool = True,
    hide: Sequence[str] = (),
    title: str | None = None,
    label_words: Sequence[str] = (),
) -> Path:
    """Write one audit, or a comparison of several, as one HTML file.

    The file loads nothing from the network. It opens from a disk, prints, and can be sent.

    Parameters
    ----------
    audits : Audit, Comparison or sequence of Audit
        What to report. A `Comparison` also shows which decisions change. The audits of a sequence
        must have the same groups, the same level of confidence and the same kind of scores.
    path : str or Path
        The file to write. An existing file is replaced.
    curve : DataFrame, optional
        A table from `FairnessPath.curve`, for the trade-off figure.
    alternatives : Alternatives, optional
        The result of `fairmatch.find_alternatives`, for a table of everything that was tried.
    individuals : bool, default=True
        Whether to write people's rows into the file.
    hide : sequence of str
        Columns whose values are left out of people's rows. They still count in distances, and their
        names still appear in figures about many people.
    title : str, optional
        Heading of the page; by default the title of the audit, or "Fairness audit".
    label_words : pair of str, optional
        What the negative and the positive label mean, such as ("did not reoffend", "reoffended").

    Returns
    -------
    Path
        The file.

    Raises
    ------
    MissingExtraError
        If the report extra is not installed.
    ColumnError
        If a column to hide does not exist.
    InputError
        If there is no audit, or the audits cannot share a report.

    Notes
    -----
    The same audit gives the same bytes: nothing in the file depends on the time or the machine.
    Only the page's own scripts can run in it, because its content security policy names them by
    their hashes.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from fairmatch import audit
    >>> found = audit([0.9, 0.2, 0.6, 0.7] * 20, sensitive_features=["a", "a", "b", "b"] * 20)
    >>> with TemporaryDirectory() as folder:
    ...     file = write_report(found, Path(folder) / "report.html", individuals=False)
    ...     file.read_text("utf-8").startswith("<!doctype html>")
    True
    """
    require_report()
    comparison = audits if isinstance(audits, Comparison) else None
    shown = _listed(audits, label_words)
    if hide:
        shown = [audit.hiding(*hide) for audit in shown]
    if not individuals:
        shown = [audit.without_individuals() for audit in shown]
        comparison = comparison and comparison.without_individuals()
    if comparison is not None:
        comparison = replace(comparison, audits=tuple(shown))
    people = explorer_json(shown)
    search = []
    if alternatives is not None:  # what was found, and why these models are described
        names = [audit.model_name for audit in shown]
        search = [alternatives.sentence(), alternatives.why_shown(names)]
    scripts = [resource("page.js"), *([] if people is None else [resource("explorer.js")])]
    html = template("template.html.j2").render(
        **_opening(shown, title),
        search=list(filter(None, search)),
        made=None if alternatives is None else alternatives.search,
        other=other_words(shown[0]),
        sections=sections(shown, comparison, curve, alternatives),
        open_sections=["matching"] if any(map(_is_apart, shown)) else [],
        compared=compared_groups(shown[0]),
        people=None if people is None else people.translate(_UNSAFE),
        explorer_lead=explorer_lead(shown),
        contents=_contents(shown, people),
        scripts=scripts,
        policy=_policy(scripts),
    )
    return write_whole(path, html, private=any(one.individuals is not None for one in shown))


FILING_FIELDS = {
    "auditor": "Auditor",
    "audit_date": "Date of the audit",
    "period": "Period of the data",
    "data_source": "Source of the data",
    "data_explanation": "Explanation of the data: historical or test data, and why",
    "tool": "Tool that was audited",
    "distribution_date": "Date from which the tool is used",
}
"""The fields of a filing with their headings; those of Local Law 144 are among them."""

# Columns that a sheet of paper has no room for. A p-value is left out if it is adjusted beside it.
_UNFILED = {"meaning", "method", "symbol", "exact", "flips", "share", "small", "groups", "below"}
_UNFILED_GIVEN = {"absolute", "chance", "percent", "disparity"}


def write_filing(
    audits: Audit | Comparison | Sequence[Audit],
    path: str | Path,
    *,
    fields: Mapping[str, str] | None = None,
    title: str | None = None,
    label_words: Sequence[str] = (),
) -> Path:
    """Write an audit as a document for filing: A4, without scripts and without people's rows.

    It has the numbers of `write_report` in the same order, with its tables in an appendix.

    Parameters
    ----------
    audits : Audit, Comparison or sequence of Audit
        What to file, as for `write_report`.
    path : str or Path
        A file that ends in .html or .pdf. A PDF needs Chromium or Chrome on the machine.
    fields : mapping of str to str, optional
        What the document states about the audit: "auditor", "audit_date", "period", "data_source",
        "data_explanation", "tool", "distribution_date". A field that is not given is a blank to be
        filled in by hand. The author and the date of the audit are used if they are set.
    title : str, optional
        Heading of the document.
    label_words : pair of str, optional
        What the negative and the positive label mean.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        If a field is unknown, or the file ends in neither .html nor .pdf.
    MissingExtraError
        If the report extra is not installed, or a PDF is asked for and there is no Chromium.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from fairmatch import audit
    >>> found = audit([0.9, 0.2, 0.6, 0.7] * 20, sensitive_features=["a", "a", "b", "b"] * 20)
    >>> with TemporaryDirectory() as folder:
    ...     file = write_filing(found, Path(folder) / "filing.html", fields={"auditor": "A. Doe"})
    ...     "A. Doe" in file.read_text("utf-8")
    True
    """
    require_report()
    given = dict(fields or {})
    check_filing(path, given)
    shown = [audit.without_individuals() for audit in _listed(audits, label_words)]
    about, made = shown[0].about, shown[0].provenance
    known = {"auditor": about.author, "audit_date": about.date, "data_source": made.source}
    if periods := [one.name for one in shown[0].periods]:
        known["period"] = " to ".join(dict.fromkeys((periods[0], periods[-1])))
    blanks = {key: given.get(key) or known.get(key) or "" for key in FILING_FIELDS}
    gaps = figures.gap_figure(shown)
    rows = [row for row in gaps.rows if row["panel"] is not None]
    gaps = replace(gaps, rows=rows if any(row["value"] is not None for row in rows) else [])
    over_time = figures.period_figure(shown), figures.stage_figure(shown)
    html = template("filing.html.j2").render(
        **_opening(shown, title),
        fields={words: blanks[key] for key, words in FILING_FIELDS.items()},
        matched=figures.matched_figure(shown),
        appendix=[
            *(_on_paper(one) for one in figures.impact_figures(shown)),
            *(_on_paper(one, _UNFILED_GIVEN) for one in figures.given_figures(shown)[:1]),
            *(_on_paper(one) for one in (gaps, *over_time) if one is not None and one.rows),
        ],
    )
    if Path(path).suffix.lower() == ".html":
        return write_whole(path, html)
    with TemporaryDirectory() as folder:
        page = write_whole(Path(folder) / "filing.html", html)
        with whole_file(Path(path)) as partial:
            _print_pdf(page, partial)
    return Path(path)


def _on_paper(figure: Figure, more: Collection[str] = ()) -> Figure:
    """Return a table without the columns for which a sheet of paper has no room."""
    left_out = {*_UNFILED, *more, *({"p"} if "adjusted" in figure.columns else ())}
    kept = {key: words for key, words in figure.columns.items() if key not in left_out}
    return replace(figure, columns=kept)


def check_filing(path: str | Path, fields: Mapping[str, str]) -> None:
    """Raise if a filing cannot be written so. Call this before a long computation."""
    if unknown := sorted(fields.keys() - FILING_FIELDS.keys()):
        raise InputError(
            f"fields has {unknown[0]!r}, which is not one of {', '.join(FILING_FIELDS)}. Name one "
            "of them.",
            parameter="filing_fields",
        )
    if Path(path).suffix.lower() not in (".html", ".pdf"):
        raise InputError(f"{path} must end in .html or .pdf. Name such a file.", parameter="filing")
    if Path(path).suffix.lower() == ".pdf" and _chromium() is None:
        raise MissingExtraError(
            f"{path} needs Chromium or Chrome, which is not installed. Install it, or write .html "
            "and print it from a browser."
        )


def _chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
    return next(filter(None, map(shutil.which, names)), None)


def _print_pdf(page: Path, file: Path) -> None:
    """Print a page to PDF with the Chromium of the machine."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0  # its sandbox does not run as root
    command = [_chromium() or "chromium", "--headless", "--disable-gpu", "--no-first-run"]
    command += [*(["--no-sandbox"] if root else []), "--no-pdf-header-footer"]
    command += [f"--user-data-dir={page.parent / 'profile'}", f"--print-to-pdf={file}"]
    done = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=120)
    if done.returncode or not file.exists() or not file.stat().st_size:
        raise InputError(
            f"Chromium could not print the filing: {done.stderr.strip()[-300:]}. Write .html and "
            "print it from a browser."
        )


def _opening(audits: Sequence[Audit], title: str | None) -> dict[str, Any]:
    """Return what the page and the filing have in common."""
    decides = audits[0].threshold is not None  # predictions select nobody
    return {
        "title": title or audits[0].about.title or "Fairness audit",
        "notices": _notices(audits),
        "about": audits[0].about,
        "audits": audits,
        "rules": listed(dict.fromkeys(map(rule_words, audits))) if decides else "",
        "impact": figures.impact_lead(audits),
        "given_notes": list(dict.fromkeys(figures.told("given_notes", audits))),
        "summaries": [(audit, sentences(audit)) for audit in audits],
        "first": figures.opening_figure(audits),
        "notes": _notes(audits),
        "flow": figures.people_flow(audits[0]),
        "outcome": outcome_words(audits[0]),
        "mark": mark,
        "refusals": list(dict.fromkeys(reason for audit in audits for reason in audit.refusals)),
        "style": resource("style.css"),
    }


def _is_apart(audit: Audit) -> bool:
    """Return whether matched people of the groups of the finding are less alike than possible."""
    matching = told_matching(audit)
    found = None if matching is None else matching.nearest_fair
    return found is not None and (found.position or 0.0) >= ALIKE


def _listed(
    audits: Audit | Comparison | Sequence[Audit], label_words: Sequence[str]
) -> list[Audit]:
    if label_words and (isinstance(label_words, str) or len(label_words) != 2):
        raise InputError(
            f"label_words must be two texts, the meaning of the negative and of the positive "
            f"label; got {label_words!r}.",
            parameter="label_words",
        )
    if isinstance(audits, Audit):
        return [with_label_words(audits, label_words)]
    given = list(audits.audits if isinstance(audits, Comparison) else audits)
    if not given:
        raise InputError("There is no audit to report. Pass at least one.")
    for what, kinds in (
        ("groups", {tuple(group.label for group in audit.groups) for audit in given}),
        ("levels of confidence", {audit.confidence for audit in given}),
        ("kinds of scores", {audit.kind for audit in given}),
    ):
        if len(kinds) > 1:
            raise InputError(
                f"Audits of different {what} cannot share a report: {sorted(kinds)}. Write one "
                "report for each."
            )
    counts = Counter(audit.model_name for audit in given)
    return [
        replace(audit, model_name=f"{audit.model_name} ({k})")
        if counts[audit.model_name] > 1
        else audit
        for k, audit in enumerate((with_label_words(one, label_words) for one in given), start=1)
    ]


def _notices(audits: Sequence[Audit]) -> list[str]:
    """Return what a reader should know before the first number."""
    return list(dict.fromkeys(figures.told("notices", audits)))


def _notes(audits: Sequence[Audit]) -> list[str]:
    """Return what a reader should know about the columns, and about how the table was read."""
    said = [leak_sentence(leak) for audit in audits for leak in audit.leaks]
    return list(dict.fromkeys([*said, *(note for audit in audits for note in audit.notes)]))


def _contents(audits: Sequence[Audit], people: str | None) -> list[str]:
    """Return what is in the file, for a reader who is about to pass it on."""
    content = json.loads(people or "{}")
    tables = content.get("tables", [])
    held = [audit.individuals for audit in audits if audit.individuals is not None]
    # A row of a table of counts stands for many people, who cannot be told apart.
    counted = content.get("unit") == "rows"
    n_listed = max((table["n_listed"] for table in tables), default=0)
    n_all = max(len(own.ids) for own in held) if counted else audits[0].n_rows
    return figures.told(
        "contents",
        audits,
        tables=tables,
        counted=counted,
        named={column["name"] for table in tables for column in table["columns"]},
        hidden=[*dict.fromkeys(name for table in tables for name in table["hidden"])],
        numbered=any(own.ids == tuple(map(str, own.rows)) for own in held),
        n_listed=n_listed,
        some=any(map(is_drawn, audits)) or n_listed < n_all,
    )


def _policy(scripts: Sequence[str]) -> str:
    digests = [hashlib.sha256(script.encode()).digest() for script in scripts]
    own = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {own}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def require_report() -> None:
    """Raise unless a report can be written. Call this before a long computation.

    Raises
    ------
    MissingExtraError
        If the report extra is not installed.

    Examples
    --------
    >>> from fairmatch.report import require_report
    >>> require_report()
    """
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "The report needs the report extra: pip install 'fairmatch[report]'."
        ) from error
