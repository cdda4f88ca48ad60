"""Tables on the screen, for the commands."""

import sys


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
