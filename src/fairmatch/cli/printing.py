"""What commands print: lines, tables and progress, without signs that steer a terminal."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TextIO

import click

from fairmatch.exceptions import FairmatchWarning

if TYPE_CHECKING:
    from fairmatch.people.roles import RoleTable

# Signs that move the cursor, colour the screen or turn the direction of writing. A name in a table
# may hold them, and could rewrite what a terminal shows.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# So many columns of a table are listed.
_SHOWN = 100


def printable(text: str) -> str:
    r"""Return a text in which control characters are written out.

    Examples
    --------
    >>> from fairmatch.cli.printing import printable
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
def plain_output() -> Iterator[None]:
    """Print nothing that steers the terminal, and each warning of ours as one line."""
    before, shown = sys.stdout, warnings.showwarning

    def show(message: Any, category: type[Warning], *where: Any, **further: Any) -> None:
        if issubclass(category, FairmatchWarning):
            context = click.get_current_context(silent=True)
            typed = getattr(context and context.command, "typed", str)
            print_line(f"fairmatch: warning: {typed(str(message))}")
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


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, drawn with lines in a terminal, and plain and unwrapped in a pipe."""
    from fairmatch.people.groups import with_spaces_shown

    header, *rows = [
        [
            with_spaces_shown(printable(cell).replace("\n", "\\n").replace("\t", "\\t"))
            for cell in row
        ]
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


def shown(value: Any) -> str:
    """Return how a fact is printed: an estimate with its interval, a number or a text."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:z.4f}"
    if value.value is None:
        return "not stated"
    if value.low is None or value.high is None:
        return shown(value.value)
    return f"{shown(value.value)} [{shown(value.low)}, {shown(value.high)}]"


def print_facts(facts: Iterable[Any], columns: Mapping[str, str | Callable[[Any], Any]]) -> None:
    """Print a table with a line for each fact; a column is an attribute or a function of it."""
    getters = [attrgetter(own) if isinstance(own, str) else own for own in columns.values()]
    print_table(list(columns), [[shown(get(fact)) for get in getters] for fact in facts])


def print_roles(roles: RoleTable) -> None:
    """Print how every column is read."""
    print(f"How the {len(roles.columns):,} columns are read ({roles.n_rows:,} rows):")
    head, rows = roles.cells()
    print_table(head, rows[:_SHOWN])
    if len(rows) > _SHOWN:
        print(f"… and {len(rows) - _SHOWN:,} more.")
    print()


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
