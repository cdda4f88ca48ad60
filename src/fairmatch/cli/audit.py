"""The command ``fairmatch audit``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from fairmatch.cli.about import add_about, read_about
from fairmatch.cli.command import Command
from fairmatch.cli.findings import print_audits
from fairmatch.cli.gates import hold_to, read_gates
from fairmatch.cli.output import follow_steps
from fairmatch.cli.reading import add_reading, add_sensitive, print_roles, reading
from fairmatch.exceptions import InputError, MissingExtraError
from fairmatch.storage.atomic import check_outputs, write_whole

if TYPE_CHECKING:
    from fairmatch.auditing.facts import Audit, Comparison

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
    from fairmatch.auditing.filing import write_tables
    from fairmatch.auditing.parquet import is_dataset
    from fairmatch.auditing.streaming import audit_dataset
    from fairmatch.tables.roles import Roles

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
