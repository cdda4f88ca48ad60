"""Options for reading a table, and the printed list of its columns."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fairmatch.cli.output import print_table

if TYPE_CHECKING:
    from fairmatch.tables.roles import RoleTable


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Declare the options for reading a CSV file."""
    add = parser.add_argument
    add(
        "--encoding",
        metavar="NAME",
        help="encoding of a CSV file, such as latin-1 (default: detected)",
    )
    add("--decimal", metavar="SIGN", default=".", help="decimal sign of a CSV file (default: .)")
    add(
        "--missing",
        metavar="WORD",
        nargs="+",
        default=[],
        help="further words of a CSV file that mean a missing value, like NA",
    )


def add_sensitive(parser: argparse.ArgumentParser, help: str, *, required: bool = False) -> None:
    """Declare the option that names the columns with the groups.

    Parameters
    ----------
    parser : ArgumentParser
        The parser of the command.
    help : str
        What the columns are for.
    required : bool, default=False
        Whether the option must be given.
    """
    parser.add_argument(
        "--sensitive",
        nargs="+",
        required=required,
        metavar="COL[,COL]",
        help=f"{help}; several columns, typed sex,race or sex race, are combined",
    )


def reading(arguments: argparse.Namespace, ids: Iterable[str | None] = ()) -> dict[str, Any]:
    """Return the arguments of `read_table` that the options set.

    Parameters
    ----------
    arguments : Namespace
        The parsed options.
    ids : iterable of str or None
        Columns that are read as text. None is skipped.
    """
    return {
        "encoding": arguments.encoding,
        "decimal": arguments.decimal,
        "missing": arguments.missing,
        "text": [name for name in ids if name is not None],
    }


def print_roles(roles: RoleTable) -> None:
    """Print how every column is read."""
    print(f"How the {len(roles.columns):,} columns are read ({roles.n_rows:,} rows):")
    head, rows = roles.cells()
    print_table(head, rows[:_SHOWN])
    if len(rows) > _SHOWN:
        print(f"… and {len(rows) - _SHOWN:,} more.")
    print()


_SHOWN = 100
