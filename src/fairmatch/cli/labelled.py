"""A table to learn from: its options, its labels, and the roles of its columns."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fairmatch.cli.output import print_line
from fairmatch.cli.reading import add_reading, add_sensitive, print_roles, reading
from fairmatch.exceptions import ColumnError, InputError

if TYPE_CHECKING:
    from fairmatch.tables.files import LabelledTable
    from fairmatch.tables.roles import RoleTable


# From this accuracy on, a model may have seen the answer.
_HARDLY_WRONG = 0.999


def add_labelled(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that name the table, its columns and how a file is read."""
    add = parser.add_argument
    add("table", help="a .csv or .parquet file, or the name of a dataset")
    add("--target", metavar="COL", help="column with the labels (of a file)")
    add_sensitive(parser, "column with the groups (of a file)")
    add(
        "--positive",
        metavar="LABEL",
        help="the label that is positive; all others are negative (default: the last of two in "
        "order)",
    )
    add("--drop", metavar="COL", nargs="+", default=[], help="columns to leave out")
    add("--id", metavar="COL", help="the identifier of each person; not a feature")
    add(
        "--keep",
        metavar="COL",
        nargs="+",
        default=[],
        help="learn from these although they look like an identifier, a score or the group",
    )
    add_reading(parser)


def read_labelled(arguments: argparse.Namespace) -> tuple[LabelledTable, list[str]]:
    """Print how every column is read; return the table and the columns that are left out."""
    from fairmatch.datasets.labelled import read_labelled

    table = read_labelled(
        arguments.table,
        arguments.target,
        arguments.sensitive,
        positive=arguments.positive,
        **reading(arguments, ids=[arguments.id]),
    )
    _check_positive(table, arguments)
    return table, _read_roles(table, arguments)


def tell_answers(
    table: LabelledTable, left_out: Sequence[str], accuracy: float, chance: float
) -> None:
    """Warn of plain training that is hardly ever wrong: a column may hold the answer.

    Parameters
    ----------
    table : LabelledTable
        The table.
    left_out : sequence of str
        Columns that the model does not see.
    accuracy : float
        Accuracy of plain training on test rows.
    chance : float
        Share of the more frequent label among these rows.
    """
    from fairmatch.tables.leaks import find_leaks

    if not accuracy > max(_HARDLY_WRONG, chance):
        return
    seen = table.frame.drop(columns=[table.target, *table.attributes, *left_out])
    labels = table.frame[table.target].to_numpy()
    names = [leak.column for leak in find_leaks(seen, labels) if leak.is_exact]
    told = ". Look for a column that is known only after the label, and leave it out with --drop."
    if names:
        verb = "determines" if len(names) == 1 else "each determine"
        told = f": {', '.join(map(repr, names))} {verb} the label {table.target!r}. Leave out with "
        told += f"--drop {shlex.join(names)} what is known only after the label."
    print_line(
        f"fairmatch: warning: With a fairness weight of 0, {100 * accuracy:.4g}% of the test rows "
        f"are predicted correctly. Such a model has usually seen the answer in a column{told}"
    )


def _check_positive(table: LabelledTable, arguments: argparse.Namespace) -> None:
    """Raise if a criterion needs the positive label, and it is not named."""
    from fairmatch.tables.criterion import read_criterion

    labels = sorted(map(str, table.frame[table.target].unique()))
    numbers = table.frame[table.target].dtype.kind in "biuf"
    open_question = arguments.positive is None and len(labels) == 2 and not numbers
    if open_question and read_criterion(arguments.criterion).needs_labels:
        raise InputError(
            f"--criterion {arguments.criterion} compares people with the positive label, and "
            f"{table.target!r} holds {labels[0]!r} and {labels[1]!r}. Name the positive one with "
            "--positive."
        )


def _read_roles(table: LabelledTable, arguments: argparse.Namespace) -> list[str]:
    """Print how every column is read, and return the columns that are left out.

    Raise if the user must decide about a column.
    """
    from fairmatch.tables.questions import ask
    from fairmatch.tables.roles import Roles

    roles = Roles(
        sensitive=table.attributes,
        label=table.target,
        id=arguments.id,
        ignored=arguments.drop,
        kept=arguments.keep,
    ).read(table.frame, name=arguments.table)
    print_roles(_telling_positive(roles, table, arguments))
    asked = ask(
        table.frame,
        roles,
        sees_groups=not arguments.without_sensitive,
        kept=arguments.keep,
    )
    if asked.notes:
        print(f"Look at these columns before you use the model:\n{_sentences(asked.notes)}\n")
    if asked.open:
        raise ColumnError(
            f"{_sentences(asked.open)}\nDecide about each column: leave it out with --drop, or "
            "learn from it with --keep. --missing WORD reads a word among numbers as missing."
        )
    return [column.name for column in roles.columns if column.role in ("ignored", "id")]


def _telling_positive(
    roles: RoleTable, table: LabelledTable, arguments: argparse.Namespace
) -> RoleTable:
    """Return the roles with the positive label beside the column of the labels."""
    if table.classes is not None:
        told = f"positive: {table.classes[1]!r}"
    else:
        labels = table.frame[table.target].unique().tolist()
        if len(labels) != 2 or len(set(map(type, labels))) > 1:
            return roles  # the training refuses them, in words of its own
        told = f"positive: {max(labels)!r}"
        if Path(arguments.table).exists():  # a dataset has its own
            told += ", the last in order (--positive names another)"
    return replace(
        roles,
        columns=tuple(
            replace(column, why=f"{column.why}; {told}") if column.role == "label" else column
            for column in roles.columns
        ),
    )


def _sentences(lines: Sequence[str]) -> str:
    """Return lines as sentences, one on each line."""
    return "\n".join(f"{line[0].upper()}{line[1:]}{'.' * (line[-1] != '?')}" for line in lines)
