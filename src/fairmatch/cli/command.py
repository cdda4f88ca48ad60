"""What commands share: options, output and messages."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import warnings
from ast import literal_eval
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from fairmatch.exceptions import ColumnError, FairmatchWarning, InputError

if TYPE_CHECKING:
    from fairmatch.people.files import LabelledTable
    from fairmatch.people.roles import RoleTable


@dataclass(frozen=True)
class Command:
    """A command, or an action of a command.

    `run` imports the heavy modules, so ``--help`` stays quick.

    Attributes
    ----------
    name : str
        The word that is typed.
    help : str
        What the command does, in a sentence.
    example : str
        A line that can be typed, for the end of the help.
    add_arguments : callable
        Declares the arguments on a parser.
    run : callable or None
        Does the work and returns the exit code. None is for a command with actions.
    """

    name: str
    help: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int] | None = None

    def add_to(self, commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
        """Declare the command among others."""
        parser = commands.add_parser(
            self.name,
            help=self.help,
            description=self.help,
            epilog=f"example:\n  {self.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if self.run is not None:
            parser.set_defaults(run=self.run)
        self.add_arguments(parser)


_ABOUT = ("title", "author", "date", "purpose")


def add_about(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare the options.

    Parameters
    ----------
    parser : ArgumentParser
        Of the command.
    what : str
        What the page reports.
    """
    for name in _ABOUT:
        parser.add_argument(
            f"--{name}", metavar="TEXT", help=f"{name} of the {what}, for the report"
        )


def read_about(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what was given, by the names that `fairmatch.audit` has for it."""
    return {name: getattr(arguments, name) for name in _ABOUT}


# Arguments whose option has another name, or whose value is part of the name.
_RENAMED = {
    "n_resamples": "--resamples",
    "n_rounds": "--rounds",
    "n_sample": "--sample",
    "pos_label": "--positive",
    "random_state": "--seed",
    "sample_weight": "--weight",
    "sensitive_features": "--sensitive",
    "sensitive_at_prediction=False": "--without-sensitive",
    "y_score": "--score",
    "y_true": "--label",
}
# Advice for Python, and what has the same effect on the command line, in commands that train.
_ADVICE = {
    "FTMBoostingClassifier('predicted')": "--learner boosting --transport predicted",
    "QuantileAlignmentClassifier": "fairmatch adjust",
    "hold out more rows (validation_size=)": "take more rows",
    "Try larger fairness_weights where the method allows them": "Take more rows",
}
# Arguments whose option has the same name.
_SAME = (
    *("confidence", "criterion", "decisions", "fairness_weight", "favourable", "gap_measure"),
    *("keep", "max_gap", "min_group_size", "outcome", "privileged", "reference"),
    *("scale", "small_groups", "strength", "threshold", "transport", "weight_kind"),
)
_OPTIONS = _RENAMED | {name: f"--{name.replace('_', '-')}" for name in _SAME}
_VALUE = r"""'[^']*'|"[^"]*"|\[[^\]]*\]|-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|"""
# Not inside a path, a quotation or the call of a class.
_BEFORE, _AFTER = r"(?<![\w./\\'\"-])(?<!\w\()", r"(?!['\"]|\.?[\w/\\=])"


def as_typed(text: str, destinations: Collection[str]) -> str:
    """Return a message in which arguments of Python are written as options.

    Parameters
    ----------
    text : str
        A message of the library.
    destinations : collection of str
        Names of the options that the command has, as argparse stores them.

    Examples
    --------
    >>> from fairmatch.cli.command import as_typed
    >>> as_typed("Lower max_gap=0.05, or pass keep=['a b'] (--keep 'a b').", ["max_gap", "keep"])
    "Lower --max-gap 0.05, or pass --keep 'a b'."
    >>> as_typed("Lower max_gap=0.05.", ["keep"])
    'Lower max_gap=0.05.'
    """
    if "transport" in destinations:
        for advice, typed in _ADVICE.items():
            text = text.replace(advice, typed)
    for name, option in _OPTIONS.items():
        if option.removeprefix("--").replace("-", "_") not in destinations:
            continue
        if "=" not in name:
            given = re.compile(f"{_BEFORE}{name}=({_VALUE}){_AFTER}")
            text = given.sub(partial(_typed, option), text)
        if "_" in name:  # a word of everyday English has none
            # One of several attributes: sensitive_features['sex'].
            chosen = re.compile(f"{_BEFORE}{name}\\[('[^']*')\\]")
            text = chosen.sub(partial(_typed, option), text)
            text = re.sub(f"{_BEFORE}{name}{_AFTER}", option, text)
    # A message may name both already.
    return re.sub(r"(--[a-z-]+(?: [^()]+)?) \(\1\)", r"\1", text)


def _typed(option: str, found: re.Match[str]) -> str:
    """Return an option with its value, or what was found where the value cannot be read."""
    if not found[1]:
        return option
    try:
        given = literal_eval(found[1])
    except (ValueError, SyntaxError):
        return found[0]
    values = given if isinstance(given, list) else [given]
    return " ".join([option, *(shlex.quote(str(item)) for item in values)])


# Signs that move the cursor, colour the screen or turn the direction of writing. A name in a table
# may hold them, and could rewrite what a terminal shows.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""Return a text in which control characters are written out.

    Examples
    --------
    >>> from fairmatch.cli.command import printable
    >>> printable("Bob" + chr(27) + "[2J")
    'Bob\\x1b[2J'
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class _Printable:
    """A stream whose text cannot steer a terminal."""

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        return self.raw.write(printable(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


@contextmanager
def plain_output(destinations: Collection[str] = ()) -> Iterator[None]:
    """Print nothing that steers the terminal, and each warning of ours as one line.

    Parameters
    ----------
    destinations : collection of str
        Names of the options that the command has. Warnings name these instead of arguments.
    """
    before, shown = sys.stdout, warnings.showwarning

    def show(message: Any, category: type[Warning], *where: Any, **further: Any) -> None:
        if issubclass(category, FairmatchWarning):
            print_line(f"fairmatch: warning: {as_typed(str(message), destinations)}")
        else:
            shown(message, category, *where, **further)

    with warnings.catch_warnings():
        warnings.simplefilter("always", FairmatchWarning)
        warnings.showwarning = show
        if before is not None:
            sys.stdout = _Printable(before)
        try:
            yield
        finally:
            sys.stdout = before


def print_line(text: str) -> None:
    """Print a message to the error stream; further lines are indented."""
    lines = (" ".join(line.split()) for line in printable(text).splitlines())
    print("\n  ".join(filter(None, lines)), file=sys.stderr)


def print_table(header: list[str], rows: list[list[str]]) -> None:
    """Print a table, drawn with lines in a terminal, and plain and unwrapped in a pipe."""
    header, *rows = [
        [printable(cell).replace("\n", "\\n").replace("\t", "\\t") for cell in row]
        for row in [header, *rows]
    ]
    if sys.stdout is None or not sys.stdout.isatty():
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        for row in [header, *rows]:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            print("  ".join(cells).rstrip())
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for name in header:
        table.add_column(Text(name))
    for row in rows:
        table.add_row(*(Text(cell.replace("; ", "\n")) for cell in row))
    # The signs that draw the table are meant to steer the terminal.
    Console(file=getattr(sys.stdout, "raw", sys.stdout)).print(table)


@contextmanager
def follow_steps(n_steps: int) -> Iterator[Callable[[str], None] | None]:
    """Yield a function that a caller calls at each step to draw a bar; None off a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=n_steps)
        yield lambda step: bar.update(task, advance=1, description=step, refresh=True)


@contextmanager
def follow_runs(n_runs: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that a caller calls after each run.

    On a terminal it draws a bar with the time left. Elsewhere it prints a line for each run.
    """
    if not sys.stderr.isatty():
        finished = 0

        def print_line(name: str) -> None:
            nonlocal finished
            finished += 1
            print(f"{finished}/{n_runs} {name}", file=sys.stderr, flush=True)

        yield print_line
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    # Runs take minutes, so the speed is taken over all of them, not over the last half minute.
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=1e6) as bar:
        task = bar.add_task("", total=n_runs)
        yield lambda name: bar.update(task, advance=1, description=name)


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
    from fairmatch.datasets.catalogue import read_labelled

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
    from fairmatch.people.leaks import find_leaks

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
    from fairmatch.people.groups import read_criterion

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
    from fairmatch.people.roles import Roles, ask

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
