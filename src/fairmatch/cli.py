"""The command line: argument parsing and printing, nothing else."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairmatch import __version__
from fairmatch.exceptions import FairmatchError

if TYPE_CHECKING:
    from fairmatch.datasets import DatasetSummary


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        0 if all went well, 2 if the input was at fault.

    Examples
    --------
    >>> from fairmatch.cli import main
    >>> main(["datasets", "german"])
    name    rows   features  groups (size, share of Y=1)                  licence    where
    german  1,000  57        female (310, 0.648); male (690, 0.723)  CC BY 4.0  bundled
    0
    """
    arguments = _parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        return run(arguments)
    except FairmatchError as error:
        if arguments.debug:
            raise
        print(f"fairmatch: {' '.join(str(error).split())}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fairmatch",
        description="Group-fair classifiers that can say how they are fair.",
    )
    parser.add_argument("--version", action="version", version=f"fairmatch {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)
    for command in _COMMANDS:
        sub = commands.add_parser(command.name, help=command.help, description=command.help)
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    return parser


@dataclass(frozen=True)
class _Command:
    """A sub-command. Its `run` imports what is heavy, so that ``--help`` stays quick."""

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def _add_datasets_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="name", help="only these (default: all)")
    parser.add_argument("--fetch", action="store_true", help="download those that are not here")


def _run_datasets(arguments: argparse.Namespace) -> int:
    from fairmatch.datasets import DATASET_NAMES, load_dataset, summarise

    names = arguments.names or DATASET_NAMES
    if arguments.fetch:
        for name in names:
            load_dataset(name)
    summaries = [summarise(name) for name in names]
    _print_table(
        ["name", "rows", "features", "groups (size, share of Y=1)", "licence", "where"],
        [_dataset_row(summary) for summary in summaries],
    )
    if absent := [summary.name for summary in summaries if summary.location is None]:
        print(
            f"\nTo get {' and '.join(absent)}: fairmatch datasets --fetch {' '.join(absent)}\n"
            "or set FAIRMATCH_DATA to the folder that holds the publisher's files."
        )
    return 0


def _dataset_row(summary: DatasetSummary) -> list[str]:
    if summary.location is None:
        return [summary.name, "-", "-", "-", summary.licence, "not here"]
    return [
        summary.name,
        f"{summary.n_rows:,}",
        f"{summary.n_features}",
        "; ".join(
            f"{group.name} ({group.size:,}, {group.base_rate:.3f})" for group in summary.groups
        ),
        summary.licence,
        str(summary.location),
    ]


def _print_table(header: list[str], rows: list[list[str]]) -> None:
    """Print a table: drawn in a terminal, plain and unwrapped in a pipe."""
    if not sys.stdout.isatty():
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        for row in [header, *rows]:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            print("  ".join(cells).rstrip())
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*header)
    for row in rows:
        table.add_row(*(cell.replace("; ", "\n") for cell in row))
    Console().print(table, markup=False)


_COMMANDS = (
    _Command(
        name="datasets",
        help="List the benchmark tables, their groups, and where they are.",
        add_arguments=_add_datasets_arguments,
        run=_run_datasets,
    ),
)
