"""The command ``fairmatch audit``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairmatch.cli import options
from fairmatch.cli.options import COUNT, FILE, Command
from fairmatch.cli.printing import follow_steps, print_roles, print_table
from fairmatch.exceptions import GroupError, InputError, MissingExtraError

if TYPE_CHECKING:
    from fairmatch.auditing.facts import Audit, Comparison, Estimate, Gap

INDIVIDUALS = "individuals"
"""The value of ``--hide`` that leaves out people's rows altogether."""

# How many steps the audit of one model reports, for the length of the bar.
_STEPS = 4
# Options that say nothing about many Parquet files: the value where they are not typed, and why.
_OF_ONE_FILE: dict[str, tuple[object, str]] = {
    "models": ((), "The files are one table of scores."),
    "accepted": (None, "Their scores are read as numbers: write decisions as 0 and 1."),
    "privileged": ((), "Their scores are those of one model, whose decisions do not flip."),
    "weight_kind": ("survey", "They have a row for every person, and no weights."),
    "encoding": (None, "It is for CSV files."),
    "decimal": (".", "It is for CSV files."),
    "missing": ((), "It is for CSV files."),
}


@click.command(
    cls=Command,
    example="fairmatch audit people.csv --score score --sensitive sex --out report.html",
)
@click.argument("tables", nargs=-1, required=True, type=FILE, metavar="TABLE...")
@options.columns(
    "--score", "y_score", help="Scores in [0, 1] or decisions; each column is a model."
)
@options.sensitive("The group of each person", required=True)
@click.option(
    "--label",
    "y_true",
    metavar="COL",
    help="The outcome, for error rates and calibration; with --kind number, what is predicted.",
)
@click.option(
    "--positive", "pos_label", default="1", metavar="VALUE", help="The label that is positive."
)
@click.option(
    "--accepted",
    metavar="VALUE",
    help="The word that accepts a person, where --score holds words such as Yes and No.",
)
@click.option("--id", "ids", metavar="COL", help="The identifier of each person; not a feature.")
@click.option("--weight", "sample_weight", metavar="COL", help="How much each row counts.")
@click.option(
    "--weight-kind",
    type=click.Choice(("survey", "counts")),
    default="survey",
    help="What weights are: survey weights, or numbers of people.",
)
@options.columns("--features", help="What describes people. By default all other columns.")
@options.columns("--drop", help="Columns to leave out.")
@options.columns(
    "--keep", help="Use these as features although they identify people or give the group away."
)
@options.reading
@options.several(
    "--model", "models", type=FILE, metavar="DIR", help="A saved model to score TABLE."
)
@options.several(
    "--privileged",
    metavar="GROUP",
    help="A favoured group, for undesirable flips, such as 'male, White'.",
)
@click.option(
    "--kind",
    type=click.Choice(("probability", "number")),
    default="probability",
    help="What scores are: probabilities or decisions, or with number, predictions in units of the "
    "label, which select nobody.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    default=0.5,
    help="Scores at or above it are selected.",
)
@click.option(
    "--favourable",
    type=click.Choice(("high", "low")),
    default="high",
    help="Which scores are good for a person; with low, scores below the threshold are selected.",
)
@click.option(
    "--outcome",
    metavar="WORDS",
    help="What the selected are called, such as 'granted bail'. By default selected, or not "
    "flagged.",
)
@click.option("--confidence", type=options.LEVEL, default=0.95, help="Level of the intervals.")
@click.option("--resamples", "n_resamples", type=int, default=1000, help="Bootstrap resamples.")
@click.option(
    "--sample",
    "n_sample",
    type=COUNT,
    default=4096,
    help="People of each group to match, and to look for the nearest among.",
)
@click.option("--min-group-size", type=COUNT, default=30, help="State nothing about fewer people.")
@options.seed("audit")
@click.option(
    "--out", type=FILE, metavar="FILE.html", help="Write a report that opens in any browser."
)
@click.option("--json", type=FILE, metavar="FILE.json", help="Write the facts for a program.")
@click.option(
    "--tables",
    "folder",
    type=FILE,
    metavar="DIR",
    help="Write rates and impact ratios by category as CSV, in the shape of New York's Local Law "
    "144.",
)
@options.several(
    "--fail-above",
    metavar="GAP=BOUND",
    help="Exit with 1 if this gap of a model is above the bound. Among several models, the first "
    "is not held to it.",
)
@options.several(
    "--fail-below",
    metavar="RATIO=BOUND",
    help="Exit with 1 if this ratio is below the bound, such as selection_ratio=0.8.",
)
@click.option(
    "--gate",
    type=click.Choice(("estimate", "upper")),
    default="estimate",
    help="What is held to the bound: the estimate, or the worse limit of its interval.",
)
@options.about("audit")
@click.option("--no-individuals", is_flag=True, help="Write no person's row.")
@options.columns(
    "--hide", help="Leave a column out of people's rows; 'individuals' leaves out all rows."
)
def audit(
    tables: tuple[str, ...],
    y_score: tuple[str, ...],
    sensitive_features: tuple[str, ...],
    y_true: str | None,
    pos_label: str,
    accepted: str | None,
    ids: str | None,
    sample_weight: str | None,
    features: tuple[str, ...],
    drop: tuple[str, ...],
    keep: tuple[str, ...],
    reading: dict[str, Any],
    models: tuple[str, ...],
    privileged: tuple[str, ...],
    out: str | None,
    json: str | None,
    folder: str | None,
    fail_above: tuple[str, ...],
    fail_below: tuple[str, ...],
    gate: str,
    no_individuals: bool,
    hide: tuple[str, ...],
    **settings: Any,
) -> int:
    """State how the scores in a table treat groups of people, and who is treated like whom.

    TABLE is a .csv or .parquet file. Several files hold the same people. A quoted pattern such as
    'scores/*.parquet', or a folder, is one table that need not fit into memory.
    """
    from fairmatch.auditing.facts import Comparison
    from fairmatch.auditing.files import audit_files
    from fairmatch.auditing.impact import write_tables
    from fairmatch.auditing.streaming import audit_dataset, is_dataset
    from fairmatch.people.files import write_whole
    from fairmatch.people.roles import Roles, split_names

    kind = settings["kind"]
    gates = read_gates(fail_above, fail_below, has_labels=y_true is not None, kind=kind)
    _check_outputs(tables, out, json, folder, kind)
    write_report = _report_writer() if out else None
    roles = Roles(
        scores=y_score,
        sensitive=sensitive_features,
        label=y_true,
        id=ids,
        weight=sample_weight,
        features=features or None,
        ignored=drop,
        kept=keep,
    )
    found: Audit | Comparison
    with follow_steps(_STEPS * (len(tables) * len(y_score) + len(models)) + 1) as progress:
        shared = {"pos_label": pos_label, "show": print_roles, "progress": progress, **settings}
        if any(map(is_dataset, tables)):
            _refuse_options_of_one_file(tables)
            del shared["weight_kind"]
            found = audit_dataset(tables[0], roles, **shared)
        else:
            found = audit_files(
                tables,
                roles,
                models=models,
                accepted=accepted,
                privileged=privileged or None,
                reading=reading,
                **shared,
            )
    first = found.audits[0] if isinstance(found, Comparison) else found
    hidden = split_names(hide, [column.name for column in first.columns])
    # A column that is not there is an error, whether or not the rows are left out with it.
    if columns := [name for name in hidden if name != INDIVIDUALS]:
        found = found.hiding(*columns)
    if no_individuals or INDIVIDUALS in hidden:
        found = found.without_individuals()
    audits = found.audits if isinstance(found, Comparison) else (found,)
    print_audits(audits)
    if json:
        write_whole(json, found.to_json(indent=2))
        print(f"Facts: {json}")
    if write_report is not None:
        write_report(found, out)
        print(f"Report: {out}")
    if folder:
        for file in write_tables(audits, folder):
            print(f"Table: {file}")
    return hold_to(gates, audits if len(audits) == 1 else audits[1:], gate)


def _refuse_options_of_one_file(tables: Sequence[str]) -> None:
    """Raise if something was typed that says nothing about many Parquet files."""
    if len(tables) > 1:
        raise InputError(
            "A pattern or a folder was given with another table. It stands for one table of "
            "scores, which is audited alone. Leave out the other tables."
        )
    given = click.get_current_context()
    for parameter in given.command.params:
        unused, why = _OF_ONE_FILE.get(parameter.name or "", (None, ""))
        if why and given.params[parameter.name or ""] != unused:
            option = parameter.opts[0]
            raise InputError(
                f"{option} was given with a pattern or a folder of Parquet files. {why} Leave "
                f"{option} out."
            )


def _check_outputs(
    tables: Sequence[str], out: str | None, json: str | None, folder: str | None, kind: str
) -> None:
    """Raise before the work where a result could not be written under its name."""
    from fairmatch.people.files import check_outputs

    check_outputs(tables, json=json, out=out)
    if folder is not None and kind == "number":
        raise InputError(
            "--tables was given with --kind number. Predictions select nobody, so there are no "
            "rates to file. Leave it out, or write the facts with --json."
        )
    if folder is not None and Path(folder).exists() and not Path(folder).is_dir():
        raise InputError(f"--tables must be a folder, and {folder} is a file. Name a folder.")
    options.check_page(out)


def _report_writer() -> Callable[..., object]:
    """Return the function that writes the report, or raise before the audit is made."""
    try:
        from fairmatch.report import require_report, write_report

        require_report()
    except ImportError as error:
        raise MissingExtraError(
            f"The report cannot be made ({error}). Install what it needs with: pip install "
            "'fairmatch[report]', or write the facts with --json."
        ) from error
    return write_report


def print_audits(audits: Sequence[Audit]) -> None:
    """Print audits of the same people: rates, gaps, and the sentences about them.

    Parameters
    ----------
    audits : sequence of Audit
        One per model.
    """
    for audit in audits:
        (_print_rates if audit.kind == "probability" else _print_means)(audit)
    level = f"{audits[0].confidence:.0%}"
    names = [gap.name for gap in audits[0].gaps]
    print_table(
        [f"gap [{level} interval]", *(audit.model_name for audit in audits)],
        [[name, *(_shown_gap(audit.gap(name)) for audit in audits)] for name in names],
    )
    for audit in audits:
        _print_rest(audit)


def _print_means(audit: Audit) -> None:
    """Print the mean prediction of each group."""
    print(f"{audit.model_name}: {audit.n_rows:,} people; predictions in units of the target")
    rows = [
        [
            group.label,
            f"{group.n_rows:,}",
            _shown(group.mean_score),
            "not compared" if group.label in audit.unknown else "",
        ]
        for group in audit.groups
    ]
    print_table(["group", "people", f"mean prediction [{audit.confidence:.0%} interval]", ""], rows)
    if audit.spread is not None:
        print(f"Standard deviation of the {audit.spread.of}: {audit.spread.value:.4f}")
    print()


def _print_rates(audit: Audit) -> None:
    from fairmatch.report.wording import selected_from

    print(
        f"{audit.model_name}: {audit.n_rows:,} people; {audit.outcome} means a "
        f"{selected_from(audit)}"
    )
    rates = {g.label: g.selection_rate.value for g in audit.groups}
    compared = [
        rate for label, rate in rates.items() if rate is not None and label not in audit.unknown
    ]
    most = max(compared, default=0.0)
    rows = []
    for group in audit.groups:
        rate = rates[group.label]
        ratio = "" if rate is None or most == 0.0 else f"{rate / most:.3f}"
        if group.label in audit.unknown:
            ratio = "not compared"
        rows.append([group.label, f"{group.n_rows:,}", _shown(group.selection_rate), ratio])
    print_table(
        ["group", "people", f"{audit.outcome} [{audit.confidence:.0%} interval]", "ratio"], rows
    )
    if audit.selection_ratio.value is not None:
        print(f"Smallest rate over the largest: {_shown(audit.selection_ratio)}")
    if audit.undecided:
        print(audit.undecided)
    print()


def _print_rest(audit: Audit) -> None:
    from fairmatch.report.wording import reach_sentences, sentences

    print(f"\n{audit.model_name}")
    if described := audit.provenance.settings["described_by"]:
        print(f"  Described by: {described}.")
    _, *said = sentences(audit)
    if len(audit.matchings) == 1:  # with more pairs of groups, only the report shows each
        said[1:1] = reach_sentences(audit.matchings[0])
    said += [f"Look at it: {leak.words}." for leak in audit.leaks]
    for sentence in dict.fromkeys((*said, *audit.notes, *audit.refusals)):
        print(f"  {sentence}")


def _shown(fact: Estimate | Gap) -> str:
    if fact.value is None:
        return "not stated"
    if fact.low is None or fact.high is None:
        return f"{fact.value:z.4f}"
    return f"{fact.value:z.4f} [{fact.low:z.4f}, {fact.high:z.4f}]"


def _shown_gap(gap: Gap) -> str:
    shown = _shown(gap)
    if gap.favoured is None or gap.groups is None:
        return shown
    other = next(label for label in gap.groups if label != gap.favoured)
    return f"{shown} {gap.favoured} ahead of {other}"


RATIO = "selection_ratio"
"""Name of the ratio. A ratio may be too small, and a gap may be too large."""


@dataclass(frozen=True)
class Gate:
    """An upper bound on a gap, or a lower bound on the ratio of selection rates.

    Attributes
    ----------
    name : str
        Name of the gap, or of the ratio.
    bound : float
        The bound.
    """

    name: str
    bound: float

    @property
    def is_ratio(self) -> bool:
        """Whether the fact may be too small, rather than too large."""
        return self.name == RATIO

    def fact(self, audit: Audit) -> Gap | Estimate:
        """Return the fact of an audit that is held to the bound."""
        return audit.selection_ratio if self.is_ratio else audit.gap(self.name)

    def broken(self, audit: Audit, gate: str) -> str | None:
        """Return in words how an audit breaks the bound, or None where it does not.

        Raise if the fact is not stated, or nobody or everybody is selected.

        Parameters
        ----------
        audit : Audit
            The audit.
        gate : {"estimate", "upper"}
            Whether the estimate is held to the bound, or the worse limit of its interval.
        """
        from fairmatch.measures import MEASURES

        of_decisions = self.is_ratio or MEASURES[self.name].needs_decisions
        if of_decisions and audit.undecided:
            raise GroupError(
                f"{self.name} of {audit.model_name} cannot pass a gate. {audit.undecided} Choose "
                "another --threshold, or hold the scores to a bound (mean_parity_gap)."
            )
        fact = self.fact(audit)
        value, words = fact.value, self.name
        if gate == "upper":
            value = fact.low if self.is_ratio else fact.high
            words = f"the {'lower' if self.is_ratio else 'upper'} limit of {self.name}"
        if value is None:
            raise GroupError(f"{self.name} of {audit.model_name} is not stated. {fact.refused}")
        if value < self.bound if self.is_ratio else value > self.bound:
            side, sign = ("Below", "<") if self.is_ratio else ("Above", ">")
            shown = f"{value:.4f} {sign} {self.bound:g}"
            return f"{side} the bound: {words} of {audit.model_name}, {shown}"
        return None


def read_gates(
    above: Sequence[str], below: Sequence[str], *, has_labels: bool, kind: str = "probability"
) -> list[Gate]:
    """Return the bounds that are typed, or raise if one cannot be checked.

    Parameters
    ----------
    above : sequence of str
        Bounds on gaps, such as ``"mean_parity_gap=0.05"``.
    below : sequence of str
        Bounds on the ratio, such as ``"selection_ratio=0.8"``.
    has_labels : bool
        Whether the audit has labels.
    kind : {"probability", "number"}, default="probability"
        What is audited. Gaps of predictions have units, and may exceed 1.
    """
    from fairmatch.measures.registry import applicable
    from fairmatch.people.outcome import NUMBER, PROBABILITY

    if kind == "number":
        if below:
            raise InputError(
                f"--fail-below {below[0]} was given with --kind number, and predictions select "
                "nobody, so there is no ratio. Hold a gap to a bound with --fail-above."
            )
        gaps = {
            name: 1.0 if own.unit == "share" else inf for name, own in applicable(NUMBER).items()
        }
        return [_read(given, "--fail-above", gaps, "gap") for given in above]
    known = applicable(PROBABILITY)
    gates = [_read(given, "--fail-above", dict.fromkeys(known, 1.0), "gap") for given in above]
    for gate in gates:
        if known[gate.name].needs_labels and not has_labels:
            raise InputError(
                f"--fail-above {gate.name} needs the labels, and none were named. Name their "
                "column with --label."
            )
    return gates + [_read(given, "--fail-below", {RATIO: 1.0}, "ratio") for given in below]


def _read(given: str, option: str, known: Mapping[str, float], what: str) -> Gate:
    """Return a bound that is typed. Facts are known by name, each with its largest value."""
    name, _, bound = given.partition("=")
    if name not in known:
        if name == RATIO:
            raise InputError(
                f"{option} holds a gap to an upper bound, and {RATIO} has a lower one. Type "
                f"--fail-below {given}."
            )
        near = get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise InputError(
            f"{option}: there is no {what} {name!r}. {hint}There are: {', '.join(known)}."
        )
    try:
        limit = float(bound)
    except ValueError:
        limit = float("nan")
    # No gap is above 1, no ratio is below 0, and nothing is above NaN. Such a gate never fails.
    most = known[name]
    is_sensible = 0.0 < limit <= 1.0 if what == "ratio" else 0.0 <= limit < most
    if not is_sensible:
        example, range_ = ("0.8", "(0, 1]") if what == "ratio" else ("0.05", f"[0, {most:g})")
        raise InputError(
            f"{option} takes {what.upper()}=BOUND with a bound in {range_}, such as "
            f"{name}={example}; got {given!r}."
        )
    return Gate(name, limit)


def hold_to(gates: Sequence[Gate], audits: Sequence[Audit], gate: str) -> int:
    """Print which bounds are broken, and return the exit code.

    Parameters
    ----------
    gates : sequence of Gate
        The bounds.
    audits : sequence of Audit
        The audits that are held to them.
    gate : {"estimate", "upper"}
        Whether the estimate is held to the bounds, or the worse limit of its interval.
    """
    broken = [found for one in gates for audit in audits if (found := one.broken(audit, gate))]
    for line in broken:
        print(line)
    return int(bool(broken))
