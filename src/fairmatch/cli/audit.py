"""The command ``fairmatch audit``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from fairmatch.cli.command import (
    Command,
    add_about,
    add_reading,
    add_sensitive,
    follow_steps,
    print_roles,
    print_table,
    read_about,
    reading,
)
from fairmatch.exceptions import GroupError, InputError, MissingExtraError
from fairmatch.people.files import check_outputs, write_whole

if TYPE_CHECKING:
    from fairmatch.auditing.facts import Audit, Comparison, Estimate, Gap


def print_audits(audits: Sequence[Audit]) -> None:
    """Print audits of the same people: rates, gaps, and the sentences about them.

    Parameters
    ----------
    audits : sequence of Audit
        One per model.
    """
    for audit in audits:
        (_print_rates if audit.scale == "probability" else _print_means)(audit)
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

# Facts without a meaning where nobody or everybody is selected.
_OF_DECISIONS = frozenset(
    ("demographic_parity_gap", "true_positive_gap", "false_positive_gap", "equalized_odds_gap")
) | {RATIO}


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
        if self.name in _OF_DECISIONS and audit.undecided:
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
    above: Sequence[str], below: Sequence[str], *, has_labels: bool, scale: str = "probability"
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
    scale : {"probability", "real"}, default="probability"
        What is audited. Gaps of predictions have units, and may exceed 1.
    """
    from fairmatch.measures.registry import applicable
    from fairmatch.people.outcome import NUMBER, PROBABILITY

    if scale == "real":
        if below:
            raise InputError(
                f"--fail-below {below[0]} was given with --scale real, and predictions select "
                "nobody, so there is no ratio. Hold a gap to a bound with --fail-above."
            )
        gaps = list(applicable(NUMBER))
        return [_read(given, "--fail-above", gaps, "gap", inf) for given in above]
    known = applicable(PROBABILITY)
    gates = [_read(given, "--fail-above", list(known), "gap") for given in above]
    for gate in gates:
        if known[gate.name].needs_labels and not has_labels:
            raise InputError(
                f"--fail-above {gate.name} needs the labels, and none were named. Name their "
                "column with --label."
            )
    return gates + [_read(given, "--fail-below", [RATIO], "ratio") for given in below]


def _read(given: str, option: str, known: list[str], what: str, most: float = 1.0) -> Gate:
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
    most = 1.0 if name == "ks_parity_gap" else most
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


INDIVIDUALS = "individuals"
"""The value of ``--hide`` that leaves out people's rows altogether."""

# Options that say nothing about many Parquet files: the value where they are not typed, and why.
_OF_ONE_FILE: dict[str, tuple[object, str]] = {
    "--privileged": (None, "Their scores are those of one model, whose decisions do not flip."),
    "--weight-kind": ("survey", "They have a row for every person, and no weights."),
    "--encoding": (None, "It is for CSV files."),
    "--decimal": (".", "It is for CSV files."),
    "--missing": ([], "It is for CSV files."),
}

# How many steps the audit of one model reports, for the length of the bar.
_STEPS = 4


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add = parser.add_argument
    add(
        "tables",
        nargs="+",
        metavar="TABLE",
        help="a .csv or .parquet file; several files hold the same people. A quoted pattern such "
        "as 'scores/*.parquet', or a folder, is one table that need not fit into memory",
    )
    add("--score", action="append", default=[], metavar="COL", help="scores in [0, 1] or decisions")
    add_sensitive(parser, "the group of each person", required=True)
    add(
        "--label",
        metavar="COL",
        help="the outcome, for error rates and calibration; with --scale real, what is predicted",
    )
    add("--positive", default="1", metavar="VALUE", help="the label that is positive (default: 1)")
    add(
        "--accepted",
        metavar="VALUE",
        help="the word that accepts a person, where --score holds words such as Yes and No",
    )
    add("--id", metavar="COL", help="the identifier of each person; not a feature")
    add("--weight", metavar="COL", help="how much each row counts")
    add(
        "--weight-kind",
        choices=("survey", "counts"),
        default="survey",
        help="what weights are: survey weights, or numbers of people (default: survey)",
    )
    add("--features", nargs="+", metavar="COL", help="what describes people (default: the rest)")
    add("--drop", nargs="+", default=[], metavar="COL", help="columns to leave out")
    add(
        "--keep",
        nargs="+",
        default=[],
        metavar="COL",
        help="use these as features although they identify people or give the group away",
    )
    add_reading(parser)
    add("--model", action="append", default=[], metavar="DIR", help="a saved model to score TABLE")
    add(
        "--privileged",
        nargs="+",
        action="extend",
        metavar="GROUP",
        help="the favoured groups, for undesirable flips, such as 'male, White'",
    )
    add(
        "--scale",
        choices=("probability", "real"),
        default="probability",
        help="what scores are: numbers in [0, 1], or with real, predictions in units of the "
        "label, which select nobody (default: probability)",
    )
    add(
        "--threshold",
        type=float,
        default=0.5,
        help="scores at or above it are selected (default: 0.5)",
    )
    add(
        "--favourable",
        choices=("high", "low"),
        default="high",
        help="which scores are good for a person; with low, scores below the threshold are "
        "selected (default: high)",
    )
    add(
        "--outcome",
        metavar="WORDS",
        help="what the selected are called, such as 'granted bail' (default: selected, or not "
        "flagged)",
    )
    add("--confidence", type=float, default=0.95, help="level of the intervals (default: 0.95)")
    add("--resamples", type=int, default=1000, help="bootstrap resamples (default: 1000)")
    add(
        "--sample",
        type=int,
        default=4096,
        help="people of each group to match, and to look for the nearest among (default: 4096)",
    )
    add(
        "--min-group-size",
        type=int,
        default=30,
        help="state nothing about fewer people (default: 30)",
    )
    add("--seed", type=int, default=0, help="same seed, same audit (default: 0)")
    add("--out", metavar="FILE.html", help="write a report that opens in any browser")
    add("--json", metavar="FILE.json", help="write the facts for a program to read")
    add(
        "--tables",
        dest="tables_folder",
        metavar="DIR",
        help="write rates and impact ratios by category as CSV, in the shape of New York's Local "
        "Law 144",
    )
    add(
        "--fail-above",
        action="append",
        default=[],
        metavar="GAP=BOUND",
        help="exit with 1 if this gap of a model is above the bound; among several models, the "
        "first is not held to it",
    )
    add(
        "--fail-below",
        action="append",
        default=[],
        metavar="RATIO=BOUND",
        help="exit with 1 if this ratio is below the bound, such as selection_ratio=0.8",
    )
    add(
        "--gate",
        choices=("estimate", "upper"),
        default="estimate",
        help="what is held to the bound: the estimate, or the worse limit of its interval "
        "(default: estimate)",
    )
    add_about(parser, "audit")
    add("--no-individuals", action="store_true", help="write no person's row")
    add(
        "--hide",
        action="append",
        default=[],
        metavar="COL",
        help="leave a column out of people's rows; 'individuals' leaves out all rows",
    )


def _run(arguments: argparse.Namespace) -> int:
    """Audit, print and write what was asked for; return 1 if a bound is broken."""
    from fairmatch.auditing.facts import Comparison
    from fairmatch.auditing.files import audit_files
    from fairmatch.auditing.impact import write_tables
    from fairmatch.auditing.streaming import audit_dataset, is_dataset
    from fairmatch.people.roles import Roles

    gates = read_gates(
        arguments.fail_above,
        arguments.fail_below,
        has_labels=arguments.label is not None,
        scale=arguments.scale,
    )
    _check_outputs(arguments)
    write_report = _report_writer() if arguments.out else None
    hidden = list(dict.fromkeys(arguments.hide))
    roles = Roles(
        scores=arguments.score,
        sensitive=arguments.sensitive,
        label=arguments.label,
        id=arguments.id,
        weight=arguments.weight,
        features=arguments.features,
        ignored=arguments.drop,
        kept=[name for name in arguments.keep if name not in (arguments.features or ())],
    )
    settings = {
        "keep": arguments.keep,
        "scale": arguments.scale,
        "threshold": arguments.threshold,
        "favourable": arguments.favourable,
        "outcome": arguments.outcome,
        "confidence": arguments.confidence,
        "n_resamples": arguments.resamples,
        "n_sample": arguments.sample,
        "min_group_size": arguments.min_group_size,
        "random_state": arguments.seed,
        **read_about(arguments),
    }
    n_models = len(arguments.tables) * len(arguments.score) + len(arguments.model)
    found: Audit | Comparison
    with follow_steps(_STEPS * n_models + 1) as progress:
        if any(map(is_dataset, arguments.tables)):
            found = audit_dataset(
                _only_dataset(arguments),
                roles,
                pos_label=arguments.positive,
                show=print_roles,
                progress=progress,
                **settings,
            )
        else:
            found = audit_files(
                arguments.tables,
                roles,
                models=arguments.model,
                pos_label=arguments.positive,
                accepted=arguments.accepted,
                privileged=arguments.privileged,
                reading=reading(arguments, [arguments.id]),
                show=print_roles,
                weight_kind=arguments.weight_kind,
                progress=progress,
                **settings,
            )
    # A column that is not there is an error, whether or not the rows are left out with it.
    if columns := [name for name in hidden if name != INDIVIDUALS]:
        found = found.hiding(*columns)
    if arguments.no_individuals or INDIVIDUALS in hidden:
        found = found.without_individuals()
    audits = found.audits if isinstance(found, Comparison) else (found,)
    print_audits(audits)
    if arguments.json:
        write_whole(arguments.json, found.to_json(indent=2))
        print(f"Facts: {arguments.json}")
    if write_report is not None:
        write_report(found, arguments.out)
        print(f"Report: {arguments.out}")
    if arguments.tables_folder:
        for file in write_tables(audits, arguments.tables_folder):
            print(f"Table: {file}")
    return hold_to(gates, audits if len(audits) == 1 else audits[1:], arguments.gate)


def _only_dataset(arguments: argparse.Namespace) -> str:
    """Return the pattern of the one table, or raise if another table or model is named."""
    if len(arguments.tables) > 1 or arguments.model:
        raise InputError(
            "A pattern or a folder was given with another table or --model. It stands for one "
            "table of scores, which is audited alone. Leave out the other tables and --model."
        )
    if arguments.accepted is not None:
        raise InputError(
            f"--accepted {arguments.accepted} was given with a pattern or a folder, whose scores "
            "are read as numbers. Write decisions as 0 and 1 there."
        )
    for option, (unused, why) in _OF_ONE_FILE.items():
        given = getattr(arguments, option.removeprefix("--").replace("-", "_"))
        if given != unused:
            raise InputError(
                f"{option} was given with a pattern or a folder of Parquet files. {why} Leave "
                f"{option} out."
            )
    pattern: str = arguments.tables[0]
    return pattern


def _check_outputs(arguments: argparse.Namespace) -> None:
    """Raise before the work where a result could not be written under its name."""
    check_outputs(arguments.tables, {"--json": arguments.json, "--out": arguments.out})
    folder = arguments.tables_folder
    if folder is not None and arguments.scale == "real":
        raise InputError(
            "--tables was given with --scale real. Predictions select nobody, so there are no "
            "rates to file. Leave it out, or write the facts with --json."
        )
    if folder is not None and Path(folder).exists() and not Path(folder).is_dir():
        raise InputError(f"--tables must be a folder, and {folder} is a file. Name a folder.")
    out = arguments.out
    is_file = out is not None and (not Path(out).exists() or Path(out).is_file())
    if is_file and Path(out).suffix.lower() not in (".html", ".htm"):
        raise InputError(
            f"--out writes a page, and {out} does not end in .html. Name a file that does. A "
            "browser can print the page to PDF."
        )


def _report_writer() -> Callable[[Audit | Comparison, str], object]:
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


COMMAND = Command(
    name="audit",
    help="State how the scores in a table treat groups of people, and who is treated like whom.",
    example="fairmatch audit people.csv --score score --sensitive sex --out report.html",
    add_arguments=_add_arguments,
    run=_run,
)
