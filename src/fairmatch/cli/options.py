"""Commands and options that several commands share, declared with click.

An option is named like the parameter of Python that it sets, so an error that carries the name of
a parameter can be shown with the option.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from fairmatch.cli.printing import plain_output, print_line
from fairmatch.exceptions import FairmatchError, InputError

Function = TypeVar("Function", bound=Callable[..., Any])

CRITERIA = click.Choice(("demographic_parity", "equal_opportunity", "equalized_odds"))
COUNT = click.IntRange(min=1)
LEVEL = click.FloatRange(0, 1, min_open=True, max_open=True)
UPPER_LEVEL = click.FloatRange(0.5, 1, min_open=True, max_open=True)
FILE = click.Path()


class Command(click.Command):
    """A command whose help ends with an example, and whose errors become exit codes.

    Parameters
    ----------
    name : str or None
        The word that is typed.
    example : str
        A line that can be typed, for the end of the help.
    **settings
        Further arguments of `click.Command`.
    """

    def __init__(self, name: str | None, *, example: str, **settings: Any) -> None:
        super().__init__(name, epilog=f"\b\nExample:\n{example}", **settings)
        self.example = example

    def invoke(self, ctx: click.Context) -> int:
        """Run the command and return its exit code; messages go to the error stream."""
        if ctx.find_root().params.get("debug"):
            with plain_output():
                return super().invoke(ctx) or 0
        try:
            with plain_output():
                return super().invoke(ctx) or 0
        except FairmatchError as error:
            return _failed(self.told(error))
        except BrokenPipeError:  # the reader of the output has closed it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 141  # as shells have it
        except OSError as error:  # a file that cannot be written; 1 would mean a broken bound
            where = f"{error.filename or 'the output'}: "
            return _failed(f"{where}{error.strerror or error}")
        except MemoryError as error:
            return _failed(f"The memory is not enough ({error}). Use fewer rows or columns.")
        except KeyboardInterrupt:
            return _failed("interrupted", 130)  # as shells have it

    def told(self, error: FairmatchError) -> str:
        """Return the message of an error, with the option for the parameter at fault."""
        text, parameter = str(error), (error.parameter or "").partition("[")[0]
        options = {own.name: own.opts[0] for own in self.params if own.param_type_name == "option"}
        if parameter not in options:
            return text
        option = options[parameter]
        # keep=['id', 'note'] is Python; the option is --keep id,note.
        listed = re.search(rf"\b{parameter}=\[(.*?)\]", text)
        if listed:
            names = listed[1].strip("'").replace("', '", ",")
            text = text.replace(listed[0], f"{option} {names}")
        if text.startswith(parameter):  # max_gap must be…
            return option + text.removeprefix(parameter)
        return text if option in text else f"{option}: {text}"


def _failed(text: str, code: int = 2) -> int:
    print_line(f"fairmatch: {text}")
    return code


def several(*names: str, help: str, **settings: Any) -> Callable[[Function], Function]:
    """Declare an option that may be repeated."""
    return click.option(*names, multiple=True, help=help, **settings)


def columns(*names: str, help: str, **settings: Any) -> Callable[[Function], Function]:
    """Declare an option that names columns; it may be repeated, or take commas between them."""
    return several(*names, metavar="COL[,COL]", help=help, **settings)


def sensitive(help: str, *, required: bool = False) -> Callable[[Function], Function]:
    """Declare the option that names the columns with the groups."""
    told = f"{help}; several columns, such as sex,race, are combined."
    return columns("--sensitive", "sensitive_features", required=required, help=told)


def _all(*options: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """Return a decorator that declares several options, in this order."""

    def declare(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return declare


def _small_groups(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """Return what was typed as the parameter ``small_groups`` takes it."""
    way, comma, number = (value or "warn").partition(",")
    if way not in ("warn", "error", "pool", "ignore") or (comma and not number.isdecimal()):
        raise click.BadParameter(
            f"{value!r} is not warn, error, pool or ignore, or one of them with a number of rows, "
            "such as pool,50."
        )
    return value and ((way, int(number)) if comma else way)


def small_groups(ignored: str) -> Callable[[Function], Function]:
    """Declare the option that says what happens to small groups."""
    return click.option(
        "--small-groups",
        callback=_small_groups,
        metavar="WAY[,N]",
        help="Groups with fewer than N rows (by default 30): warn (the default), error stops, pool "
        f"combines them as 'other', and ignore {ignored}.",
    )


def unknown(ignored: str, default: str | None = "ignore") -> Callable[[Function], Function]:
    """Declare the option that says what happens to rows without a group."""
    return click.option(
        "--unknown",
        type=click.Choice(("ignore", "error", "group")),
        default=default,
        help=f"Rows without a group: ignore (the default) {ignored}, error stops, and group "
        "treats them as a group.",
    )


def bands(function: Function) -> Function:
    """Declare the option that cuts a number among the groups into bands."""
    return several(
        "--bands",
        metavar="COL=CUTS",
        help="Split a numeric group into bands, such as age=40, age=30,50 or, for a width, "
        "age=10y.",
    )(function)


def classes(function: Function) -> Function:
    """Declare the options that name the classes of several columns of scores."""
    declare: Callable[[Any], Function] = _all(
        several(
            "--classes",
            metavar="CLASS,CLASS",
            help="More than two classes, from the lowest to the highest: --score names the column "
            "with the probability of each. Columns that are not named like the classes, such as "
            "score_High, are taken in this order.",
        ),
        click.option(
            "--unordered", is_flag=True, help="With --classes: the classes have no order."
        ),
    )
    return declare(function)


def positive(function: Function) -> Function:
    """Declare the option that names the positive label."""
    return click.option(
        "--positive",
        "pos_label",
        metavar="VALUE",
        help="The label that is positive. By default 1; labels in words need it.",
    )(function)


def read_cut(typed: str) -> tuple[str, dict[str, Any]]:
    """Return a column, and how `fairmatch.bands` cuts it, from text such as age=40 or age=10y."""
    column, _, cuts = typed.rpartition("=")
    try:
        if column and cuts.endswith("y"):
            return column, {"width": float(cuts[:-1])}
        if column:
            return column, {"edges": [float(cut) for cut in cuts.split(",")]}
    except ValueError:
        pass
    raise click.BadParameter(
        f"{typed!r} names no column with cuts. Write age=40, age=30,50, or age=10y for a width.",
        param_hint="'--bands'",
    )


def seed(what: str) -> Callable[[Function], Function]:
    """Declare the option that sets the seed."""
    told = f"Same seed, same {what}."
    return click.option("--seed", "random_state", type=click.IntRange(min=0), default=0, help=told)


def reading(function: Function) -> Function:
    """Declare the options for reading a CSV file, which the command gets as one dictionary."""

    @wraps(function)
    def run(*, encoding: str | None, decimal: str, missing: tuple[str, ...], **others: Any) -> Any:
        how = {"encoding": encoding, "decimal": decimal, "missing": missing}
        return function(reading=how, **others)

    declare: Callable[[Any], Function] = _all(
        click.option("--encoding", metavar="NAME", help="Encoding of a CSV file, such as latin-1."),
        click.option("--decimal", default=".", metavar="SIGN", help="Decimal sign of a CSV file."),
        several(
            "--missing",
            metavar="WORD",
            help="An additional word in a CSV file that means a missing value, like NA.",
        ),
    )
    return declare(run)


def about(what: str) -> Callable[[Function], Function]:
    """Declare the options that say who made a page, and why."""
    names = ("title", "author", "date", "purpose")
    told = "{} of the {}, for the report."
    return _all(
        *(
            click.option(f"--{name}", metavar="TEXT", help=told.format(name.capitalize(), what))
            for name in names
        )
    )


labelled = _all(
    click.argument("table", type=FILE),
    click.option("--target", metavar="COL", help="Column with the labels (of a file)."),
    sensitive("Column with the groups (of a file)"),
    click.option(
        "--positive",
        metavar="LABEL",
        help="The positive label; all others are negative. By default the larger of two numbers; "
        "labels in words need it.",
    ),
    columns("--drop", help="Columns to leave out."),
    click.option(
        "--id", "ids", metavar="COL", help="Column with an identifier; not used as a feature."
    ),
    columns(
        "--keep",
        help="Use these columns even if they look like an identifier, a score or the group.",
    ),
    reading,
)
"""The arguments that name a table to learn from, its columns and how a file is read."""


def check_page(out: str | None) -> None:
    """Raise if a page would be written under a name that no browser opens."""
    if out is None or (Path(out).exists() and not Path(out).is_file()):  # such as /dev/stdout
        return
    if Path(out).suffix.lower() not in (".html", ".htm"):
        raise InputError(
            f"--out writes a page, and {out} does not end in .html. Name a file that does. A "
            "browser can print the page to PDF."
        )
