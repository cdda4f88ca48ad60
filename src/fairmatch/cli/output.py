"""What the commands show: tables, and how far they are."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def print_table(header: list[str], rows: list[list[str]]) -> None:
    """Print a table: drawn in a terminal, plain and unwrapped in a pipe."""
    if sys.stdout is None or not sys.stdout.isatty():
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


@contextmanager
def follow_steps(n_steps: int) -> Iterator[Callable[[str], None] | None]:
    """Yield what is called at each step, and draws a bar on a terminal; elsewhere None."""
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
    """Yield what is called after each run, and draws a bar with the time left.

    Off a terminal it prints a line for each.
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
    # Runs take minutes: the speed is that of all of them, not of the last half minute.
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=1e6) as bar:
        task = bar.add_task("", total=n_runs)
        yield lambda name: bar.update(task, advance=1, description=name)
