"""Options that say what a page is, for whom and by whom."""

from __future__ import annotations

import argparse
from typing import Any

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
