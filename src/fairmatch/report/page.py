"""The report of an audit, as one HTML file that needs nothing but a browser."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from fairmatch.auditing.facts import Alternatives, Audit, Comparison
from fairmatch.exceptions import InputError, MissingExtraError
from fairmatch.people.files import whole_file
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
    selected_from,
    sentences,
    shown_name,
    shown_number,
)


@dataclass(frozen=True)
class Section:
    """A part of the page that opens.

    Attributes
    ----------
    key : str
        Identifier of the section, unique in the page.
    title : str
        Heading of the section.
    about : str
        What the section answers, in one line that a reader sees before opening it.
    lead : tuple of str
        Sentences that hold for all figures of the section.
    figures : list of Figure
        The figures, in order.
    """

    key: str
    title: str
    about: str
    lead: tuple[str, ...]
    figures: list[Figure]


def sections(
    audits: Sequence[Audit],
    comparison: Comparison | None,
    curve: pd.DataFrame | None,
    alternatives: Alternatives | None = None,
) -> list[Section]:
    """Return every section of the report for which there are facts.

    Parameters
    ----------
    audits : sequence of Audit
        Audits of the same groups, with different model names.
    comparison : Comparison or None
        The comparison of these audits.
    curve : DataFrame or None
        A table from `FairnessPath.curve`.
    alternatives : Alternatives, optional
        The result of `fairmatch.find_alternatives`.

    Returns
    -------
    list of Section

    Examples
    --------
    >>> from fairmatch import audit
    >>> found = audit([0.9, 0.2, 0.6, 0.7] * 20, sensitive_features=["a", "a", "b", "b"] * 20)
    >>> [section.key for section in sections([found], None, None)]
    ['gaps', 'filing', 'matching', 'scores']
    """
    real = audits[0].scale == "real"
    described = any(matching.transport for matching in audits[0].matchings)
    parts = [
        Section(
            "alternatives",
            "Less discriminatory alternatives",
            "Every model that was tried, compared with the baseline on people whom none has seen.",
            (
                "A search that finds nothing does not prove that there is nothing to find: other "
                "methods, columns or data may do better.",
                ""
                if alternatives is None or not alternatives.search
                else alternatives.search.on_group(),
            ),
            [] if alternatives is None else [alternatives_figure(alternatives)],
        ),
        Section(
            "gaps",
            "Gaps between the groups",
            "Definitions of equal treatment, side by side, with their intervals.",
            (
                "They can disagree, and in general not all of them can be small at once; which one "
                "matters is a question of law and purpose, not of statistics. A gap is a fact "
                f"about these people{'' if real else ' and this threshold'}; it does not say why "
                "it is there.",
                f"Each measure's interval holds with {level(audits)} confidence by itself: among "
                "several measures one or another may miss by chance.",
            ),
            _figures(audits, gap_figure, pair_figure, attribute_figure, attribute_gap_figure),
        ),
        Section(
            "filing",
            "Rates and impact ratios by category",
            "In the shape of New York's Local Law 144, to be filed or published.",
            impact_lead(audits),
            impact_figures(audits),
        ),
        Section(
            "matching",
            "Who is matched with whom",
            "People of two groups matched by their scores, and how much they are alike.",
            (
                "Every model stands for a matching of people across groups: one under which the "
                "scores of matched people differ as little as they can on average. Many matchings "
                "share that least gap, people at the same rank among them; the nearest of these is "
                "the most favourable reading of the model, and it is shown. Matched people need "
                "not have equal scores. If even the nearest are very different, a small gap was "
                "reached by giving unlike people like scores."
                if described
                else "People at the same rank of their groups' scores are matched: no other "
                "matching has a smaller mean score gap. Without features nothing is said of how "
                "much they are alike.",
                "Distance is taken over all columns given, numbers scaled to [0, 1] and two "
                "different categories at squared distance 2. Other columns or scales give other "
                "distances."
                if described
                else "",
                _on_reference(audits[0]),
            ),
            _figures(
                audits,
                position_figure,
                curve_figure,
                reach_figure,
                transport_figure,
                feature_figure,
                matched_figure,
            ),
        ),
        Section(
            "subsets",
            "Gaps in parts of the people",
            "Where a fair average may hide an unfair part.",
            (
                "Subsets were chosen on some of the rows and measured on others, so a gap found by "
                "luck does not count as a finding. The intervals hold for all listed subsets of a "
                "model at once, which makes them wider. A subset that is not listed need not be "
                "fair.",
            )
            if any(a.subsets and a.subsets.subsets for a in audits)
            else (),
            _figures([a for a in audits if a.subsets], subset_figure, half_space_figure),
        ),
        Section(
            "scores",
            "Predictions" if real else "Scores",
            "How the predictions of every group are spread."
            if real
            else "How the scores of every group are spread, regardless of the threshold.",
            (),
            _figures(audits, score_figure),
        ),
        Section(
            "labels",
            "How well it does in each group",
            "Accuracy, error rates and calibration against the recorded labels.",
            (
                "Labels are records of past decisions and outcomes and can be unfair themselves; "
                "agreeing with them is not the same as being right. If the model was trained on "
                "these rows, all of this flatters it.",
            ),
            _figures(
                [a for a in audits if any(group.calibration for group in a.groups)],
                accuracy_figure,
                calibration_figure,
            ),
        ),
        Section(
            "comparison",
            "The models compared",
            "The same people under each model."
            if real
            else "The same people under each model, and whose decisions change.",
            (
                "A smaller gap does not show by itself how it was reached; the distances "
                + ("do." if real else "and the changed decisions do."),
            ),
            _figures(audits, side_by_side) + ([changed_figure(comparison)] if comparison else []),
        ),
        Section(
            "columns",
            "How the table was read",
            "The role of every column, and what a person should look at.",
            tuple(dict.fromkeys(note for audit in audits for note in audit.notes)),
            _figures(audits, column_figure),
        ),
        Section(
            "curve",
            "The trade-off",
            "Accuracy against the gap, one point per strength of the fairness constraint.",
            (),
            [] if curve is None else [tradeoff_figure(curve)],
        ),
    ]
    return [part for part in parts if part.figures]


def _on_reference(audit: Audit) -> str:
    """Return a sentence on the group that all others are matched with, if there are many."""
    if len(audit.matchings) < 2 or audit.reference is None:
        return ""
    each = compared_groups(audit).capitalize()
    largest = group_words(audit.reference)
    return f"{each} is matched with {largest}, the largest; a figure names the other one."


def _figures(
    audits: Sequence[Audit], *makers: Callable[[Sequence[Audit]], Figure | None]
) -> list[Figure]:
    if not audits:
        return []
    return [figure for make in makers if (figure := make(audits)) is not None]


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
        need the same groups, the same level of confidence and the same scale.
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
    figures = [first, *(figure for part in parts for figure in part.figures)]
    charts = [panel.chart for figure in figures for panel in figure.panels]
    scripts = [_vega(), _resource("charts.js")]
    if people is not None:
        scripts.append(_resource("explorer.js"))
    html = _template().render(
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
        charts=_embedded(json.dumps(charts, separators=(",", ":"), allow_nan=False)),
        people=None if people is None else _embedded(people),
        explorer_lead=explorer_lead(shown),
        contents=_contents(shown, people),
        refusals=list(dict.fromkeys(reason for audit in shown for reason in audit.refusals)),
        style=_resource("style.css"),
        scripts=scripts,
        policy=_policy(scripts),
    )
    file = Path(path)
    # A text with half a surrogate pair cannot be written, so a question mark replaces it.
    with whole_file(file) as partial:
        partial.write_bytes(html.encode("utf-8", "replace"))
    return file


def _listed(audits: Audit | Comparison | Sequence[Audit]) -> list[Audit]:
    if isinstance(audits, Audit):
        return [audits]
    given = list(audits.audits if isinstance(audits, Comparison) else audits)
    if not given:
        raise InputError("There is no audit to report. Pass at least one.")
    for what, kinds in (
        ("groups", {tuple(group.label for group in audit.groups) for audit in given}),
        ("levels of confidence", {audit.confidence for audit in given}),
        ("scales", {audit.scale for audit in given}),
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
    if audits[0].scale == "real":
        said.append(
            "Scores are predictions in units of the target. Nobody is selected by them, so there "
            "are no rates, ratios or errors of decisions."
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


def _resource(name: str) -> str:
    return files("fairmatch.report").joinpath("assets", name).read_text("utf-8")


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


@cache
def _template() -> Any:
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(_resource),
    )
    environment.filters["shown"] = shown_number
    environment.filters["name"] = shown_name
    return environment.get_template("template.html.j2")
