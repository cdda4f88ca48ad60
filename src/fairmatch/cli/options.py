"""Commands of click: their options, which ``options.toml`` declares, and how their errors are told.

An option is named like the parameter of Python that it sets, so an error that carries the name of
a parameter can be shown with the option.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from fairmatch.cli.printing import plain_output, print_line
from fairmatch.exceptions import FairmatchError, InputError

COUNT = click.IntRange(min=1)
_OPTIONS = tomllib.loads((files("fairmatch.cli") / "options.toml").read_text("utf-8"))
# How the file to read is written; the commands get these options as one dictionary.
_READING = tuple(_OPTIONS["reading"])


def _small_groups(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """Return what was typed as the parameter ``small_groups`` takes it."""
    way, comma, number = (value or "warn").partition(",")
    if way not in ("warn", "error", "pool", "ignore") or (comma and not number.isdecimal()):
        raise click.BadParameter(
            f"{value!r} must be warn, error, pool or ignore, or one of them with a number of "
            "rows, such as pool,50."
        )
    return value and ((way, int(number)) if comma else way)


# What the types of ``options.toml`` mean to click.
_TYPES: dict[str, dict[str, Any]] = {
    "flag": {"is_flag": True},
    "column": {"metavar": "COL"},
    "columns": {"metavar": "COL[,COL]", "multiple": True},
    "file": {"type": click.Path()},
    "integer": {"type": click.INT},
    "integer >= 2": {"type": click.IntRange(min=2)},
    "count": {"type": COUNT},
    "seed": {"type": click.IntRange(min=0)},
    "number": {"type": click.FLOAT},
    "number >= 0": {"type": click.FloatRange(min=0)},
    "number > 0": {"type": click.FloatRange(0, min_open=True)},
    "share": {"type": click.FloatRange(0, 1)},
    "share below 1": {"type": click.FloatRange(0, 1, max_open=True)},
    "level": {"type": click.FloatRange(0, 1, min_open=True, max_open=True)},
    "upper level": {"type": click.FloatRange(0.5, 1, min_open=True, max_open=True)},
    "criterion": {
        "type": click.Choice(("demographic_parity", "equal_opportunity", "equalized_odds"))
    },
    "small groups": {"callback": _small_groups, "metavar": "WAY[,N]"},
}


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
        with plain_output():
            if ctx.find_root().params.get("debug"):
                return super().invoke(ctx) or 0
            try:
                return super().invoke(ctx) or 0
            except FairmatchError as error:
                told, code = self.told(error), 2
            except BrokenPipeError:  # the reader of the output has closed it
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return 141  # as shells have it
            except OSError as error:  # a file that cannot be written; 1 would mean a broken bound
                told, code = f"{error.filename or 'the output'}: {error.strerror or error}", 2
                if error.filename:
                    told += ". Check that the folder exists and that you may write to it."
            except MemoryError as error:
                told, code = f"There is not enough memory ({error}). Use fewer rows or columns.", 2
            except KeyboardInterrupt:
                told, code = "interrupted", 130  # as shells have it
        print_line(f"fairmatch: {told}")
        return code

    def told(self, error: FairmatchError) -> str:
        """Return the message of an error, with the option for the parameter at fault."""
        text, parameter = str(error), (error.parameter or "").partition("[")[0]
        options = {own.name: own.opts[0] for own in self.params if own.param_type_name == "option"}
        option, typed = options.get(parameter, ""), self.typed(text)
        if not option or typed.startswith(option):
            return typed
        if text.startswith(parameter):  # strict must be…
            return option + typed.removeprefix(parameter)
        # A list was given, and names the option; other values may be advice.
        told = option in text or f"{parameter}=[" in text
        return typed if told else f"{option}: {typed}"

    def typed(self, text: str) -> str:
        """Return a message in which parameters of Python are written as the options they are."""
        options = {own.name: own.opts[0] for own in self.params if own.param_type_name == "option"}
        pairs = {own.name for own in self.params if own.nargs == 2}
        names = "|".join(map(re.escape, filter(None, options)))

        def replaced(found: re.Match[str]) -> str:
            option, value = options[found[1]], found[2]
            if value is None:  # a parameter without a value may be a word, such as unknown
                return option if "_" in found[1] or found[0].endswith("=") else found[0]
            if value in ("True", "False", "None"):
                return option if value == "True" else found[0]
            parts = [part.strip().strip("'\"") for part in value.strip("()[]").split(",")]
            several = value[0] in "([" and "".join(parts)
            # An option that takes two values, such as --score-range, has a space between them.
            between = " " if found[1] in pairs else ","
            if between == " ":
                parts = [part.removesuffix(".0") for part in parts]
            joined = between.join(filter(None, parts))
            return f"{option} {joined if several else value.strip('()[]')}"

        values = r"\[[^]]*\]|\([^)]*\)|'[^']*'|\w[\w.]*\w|\w"
        found = re.sub(
            rf"(?<![\w.-])({names})\b(?:=({values})|=(?=[\s,.;:)])|(?![\w=\[(]))", replaced, text
        )
        return re.sub(r"(--[\w-]+) '([\w.-]+)'", r"\1 \2", found)


def _parameters(table: str) -> Iterator[click.Parameter]:
    """Yield the options of a table of ``options.toml``."""
    for name, declared in _OPTIONS[table].items():
        if isinstance(declared, str):
            yield from _parameters(declared)
            continue
        settings = dict(declared)
        kind = settings.pop("type", None)
        if isinstance(kind, list):
            settings["type"] = click.Choice(kind)
        elif kind is not None:
            settings |= _TYPES[kind]
        if settings.pop("argument", False):
            yield click.Argument([name], **settings)
        else:
            flag = settings.pop("flag", f"--{name.replace('_', '-')}")
            yield click.Option([flag, name], **settings)


def command(example: str) -> Callable[[Callable[[Any], int | None]], Command]:
    """Make a command of a function, with its docstring as help and the options of its name.

    The function gets what was typed as attributes of one argument.
    """

    def declare(function: Callable[[Any], int | None]) -> Command:
        def run(**typed: Any) -> int | None:
            how = {name: typed.pop(name) for name in _READING if name in typed}
            return function(SimpleNamespace(reading=how, **typed))

        name = function.__name__
        return Command(
            name,
            example=example,
            callback=run,
            params=[*_parameters(name)],
            help=function.__doc__,
        )

    return declare


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


def check_page(out: str | None) -> None:
    """Raise if a page would be written under a name that no browser opens."""
    if out is None or (Path(out).exists() and not Path(out).is_file()):  # such as /dev/stdout
        return
    if Path(out).suffix.lower() not in (".html", ".htm"):
        raise InputError(
            f"--out writes a page, and {out} does not end in .html. Name a file that does. A "
            "browser can print the page to PDF."
        )
