"""The report of an audit, as one HTML file that needs nothing but a browser."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from fairmatch.auditing.facts import Alternatives, Audit, Comparison
from fairmatch.exceptions import InputError, MissingExtraError
from fairmatch.people.files import write_whole
from fairmatch.report.charts import require_charts
from fairmatch.report.explorer import explorer_json, explorer_lead
from fairmatch.report.figures import (
    Figure,
    accuracy_figure,
    alternatives_figure,
    attribute_figure,
    attribute_gap_figure,
    calibration_figure,
    changed_figure,
    column_figure,
    curve_figure,
    feature_figure,
    gap_figure,
    given_figures,
    given_notes,
    group_figure,
    half_space_figure,
    impact_figures,
    impact_lead,
    level,
    matched_figure,
    pair_figure,
    position_figure,
    reach_figure,
    score_figure,
    side_by_side,
    similarity_figure,
    subset_figure,
    tradeoff_figure,
    transport_figure,
)
from fairmatch.report.wording import (
    by_size,
    column_words,
    compared_groups,
    group_words,
    is_drawn,
    listed,
    n_people,
    other_words,
    outcome_words,
    resource,
    selected_from,
    sentences,
    template,
)


def sections(
    audits: Sequence[Audit],
    comparison: Comparison | None = None,
    curve: pd.DataFrame | None = None,
    alternatives: Alternatives | None = None,
) -> dict[str, list[Figure]]:
    """Return the figures of every section of the report for which there are facts.

    Examples
    --------
    >>> from fairmatch import audit
    >>> found = audit([0.9, 0.2, 0.6, 0.7] * 20, sensitive_features=["a", "a", "b", "b"] * 20)
    >>> list(sections([found]))
    ['gaps', 'filing', 'matching', 'scores']
    """
    searched = [audit for audit in audits if audit.subsets]
    labelled = [a for a in audits if any(group.calibration for group in a.groups)]
    every: dict[str, list[Figure | None]] = {
        "alternatives": [] if alternatives is None else [alternatives_figure(alternatives)],
        "gaps": [
            gap_figure(audits),
            pair_figure(audits),
            attribute_figure(audits),
            attribute_gap_figure(audits),
        ],
        "given": [*given_figures(audits)],
        "filing": [*impact_figures(audits)],
        "matching": [
            similarity_figure(audits),
            position_figure(audits),
            curve_figure(audits),
            reach_figure(audits),
            transport_figure(audits),
            feature_figure(audits),
            matched_figure(audits),
        ],
        "subsets": [subset_figure(searched), half_space_figure(searched)] if searched else [],
        "scores": [score_figure(audits)],
        "labels": [accuracy_figure(labelled), calibration_figure(labelled)] if labelled else [],
        "comparison": [
            side_by_side(audits),
            None if comparison is None else changed_figure(comparison),
        ],
        "columns": [column_figure(audits)],
        "curve": [] if curve is None else [tradeoff_figure(curve)],
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
) -> Path:
    """Write one audit, or a comparison of several, as one HTML file.

    The file loads nothing from the network. It opens from a disk, prints, and can be sent.

    Parameters
    ----------
    audits : Audit, Comparison or sequence of Audit
        What to report. A `Comparison` also shows which decisions change. The audits of a sequence
        need the same groups, the same level of confidence and the same kind of scores.
    path : str or Path
        The file to write. An existing file is replaced.
    curve : DataFrame, optional
        A table from `FairnessPath.curve`, for the trade-off figure.
    alternatives : Alternatives, optional
        The result of `fairmatch.find_alternatives`, for a table of everything that was tried.
    individuals : bool, default=True
        Whether people's rows are in the file. With False they are not written at all.
    hide : sequence of str
        Columns whose values are left out of people's rows. They still count in distances and
        keep their names in figures about many people.
    title : str, optional
        Heading of the page; by default the title of the audit, or "Fairness audit".

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
    shown = _listed(audits)
    if hide:
        shown = [audit.hiding(*hide) for audit in shown]
    if not individuals:
        shown = [audit.without_individuals() for audit in shown]
    if comparison is not None:
        comparison = replace(comparison, audits=tuple(shown))
    people = explorer_json(shown)
    parts = sections(shown, comparison, curve, alternatives)
    first = group_figure(shown)
    figures = [first, *(figure for own in parts.values() for figure in own)]
    charts = [panel.chart for figure in figures for panel in figure.panels]
    scripts = [_vega(), resource("charts.js")]
    if people is not None:
        scripts.append(resource("explorer.js"))
    html = template("template.html.j2").render(
        title=title or shown[0].about.title or "Fairness audit",
        search=_on_search(alternatives, shown),
        made=None if alternatives is None else alternatives.search,
        notices=_notices(shown),
        about=shown[0].about,
        audits=shown,
        groups=by_size(shown[0].groups),
        n_groups=_n_groups(shown[0]),
        rules=_rules(shown),
        summaries=[(audit, sentences(audit)) for audit in shown],
        first=first,
        outcome=outcome_words(shown[0]),
        other=other_words(shown[0]),
        sections=parts,
        **_about_sections(shown),
        charts=_embedded(json.dumps(charts, separators=(",", ":"), allow_nan=False)),
        people=None if people is None else _embedded(people),
        explorer_lead=explorer_lead(shown),
        contents=_contents(shown, people),
        refusals=list(dict.fromkeys(reason for audit in shown for reason in audit.refusals)),
        style=resource("style.css"),
        scripts=scripts,
        policy=_policy(scripts),
    )
    return write_whole(path, html, private=any(one.individuals is not None for one in shown))


def _listed(audits: Audit | Comparison | Sequence[Audit]) -> list[Audit]:
    if isinstance(audits, Audit):
        return [audits]
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
        for k, audit in enumerate(given, start=1)
    ]


def _about_sections(audits: Sequence[Audit]) -> dict[str, Any]:
    """Return what the words of the sections depend on."""
    first = audits[0]
    many = len(first.matchings) > 1 and first.reference is not None
    return {
        "real": first.kind == "number",
        "level": level(audits),
        "impact": impact_lead(audits),
        "given_notes": given_notes(audits),
        "alike": _alike(first),
        "described": any(matching.transport for matching in first.matchings),
        "reference": group_words(first.reference or "") if many else "",
        "compared": compared_groups(first),
        "listed": any(audit.subsets and audit.subsets.subsets for audit in audits),
        "notes": list(dict.fromkeys(note for audit in audits for note in audit.notes)),
    }


def _alike(audit: Audit) -> str:
    """Return what the distance of two people is taken over."""
    if audit.similarity is not None:
        return "the columns and weights listed below"
    embedded = audit.provenance.settings.get("similarity") == "embedding"
    return "the embedding given" if embedded else "all columns given"


def _rules(audits: Sequence[Audit]) -> str:
    """Return which scores are selected; nothing for predictions, which select nobody."""
    if audits[0].threshold is None:
        return ""
    return listed([*dict.fromkeys(f"{outcome_words(a)}: {selected_from(a)}" for a in audits)])


def _n_groups(audit: Audit) -> str:
    """Return the number of groups. People of unknown group are named separately."""
    known = len(audit.groups) - len(audit.unknown)
    return f"{known} and unknown" if audit.unknown else str(known)


def _on_search(alternatives: Alternatives | None, audits: Sequence[Audit]) -> list[str]:
    """Return what a search found, and why these models are described."""
    if alternatives is None:
        return []
    names = [audit.model_name for audit in audits]
    return list(filter(None, [alternatives.sentence(), alternatives.why_shown(names)]))


def _notices(audits: Sequence[Audit]) -> list[str]:
    """Return what a reader should know before the first number."""
    said = [audit.undecided for audit in audits]
    if audits[0].kind == "number":
        said.append(
            "Scores are predictions in units of the target. They are numbers, so there are no "
            "decisions to compare."
        )
    if audits[0].weights == "survey":
        said.append("Shares, means and gaps are weighted; numbers of people are not.")
    said += [leak.words for audit in audits for leak in audit.leaks]
    return list(dict.fromkeys(filter(None, said)))


def _contents(audits: Sequence[Audit], people: str | None) -> list[str]:
    """Return what is in the file, for a reader who is about to pass it on."""
    if people is None:
        return [
            "This file holds counts, averages and intervals over groups of people. It holds "
            "nobody's row.",
        ]
    content = json.loads(people)
    tables = content["tables"]
    n_shown = sum(len(table["ids"]) for table in tables)
    columns = list(dict.fromkeys(c["name"] for table in tables for c in table["columns"]))
    hidden = list(dict.fromkeys(name for table in tables for name in table["hidden"]))
    held = ["identifiers", "groups", "scores"]
    held += ["labels"] * any(table["labels"] for table in tables)
    held += [f"{len(columns)} column{'s' * (len(columns) > 1)}"] * bool(columns)
    # A row of a table of counts stands for many people, who cannot be told apart.
    counted = content["unit"] == "rows"
    rows = f"{n_shown:,} rows of counted people" if counted else f"the rows of {n_people(n_shown)}"
    said = [
        f"This file holds {rows}, in the explorer: their {listed(held)}. Whoever has the file can "
        "read them. The same report can be written without any individuals."
    ]
    shown = [audit.individuals for audit in audits if audit.individuals is not None]
    if any(own.ids == tuple(map(str, own.rows)) for own in shown):
        said.append("Identifiers are numbers of rows; the first row of the table is 0.")
    if hidden:
        names = ", ".join(column_words(name) for name in hidden)
        said.append(
            f"Left out of people's rows: {names}. Figures about many people still name them."
        )
    n_listed = max(table["n_listed"] for table in tables)
    n_people_or_rows = max(len(own.ids) for own in shown) if counted else audits[0].n_rows
    if any(map(is_drawn, audits)) or n_listed < n_people_or_rows:
        drawn = f"{n_listed:,} rows" if counted else f"{n_listed:,} of {n_people(audits[0].n_rows)}"
        said.append(f"The explorer lists a random sample: {drawn}, and their counterparts.")
    return said


def _embedded(text: str) -> str:
    """Return JSON that is safe inside a script element."""
    return text.translate(_UNSAFE)


@cache
def _vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # Inside a string or a regular expression the backslash changes nothing; in HTML it does.
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


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
    require_charts()
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "The report needs the report extra: pip install 'fairmatch[report]'."
        ) from error
