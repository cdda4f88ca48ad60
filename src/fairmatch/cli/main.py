"""The command line: its commands, its errors and its exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from fairmatch import __version__
from fairmatch.cli import adjust, alternatives, audit, datasets, groups, paper, predict, train
from fairmatch.cli.options import as_typed
from fairmatch.cli.output import plain_output, print_line
from fairmatch.cli.parsing import Parser
from fairmatch.exceptions import FairmatchError

COMMANDS = (
    datasets.COMMAND,
    audit.COMMAND,
    train.COMMAND,
    predict.COMMAND,
    adjust.COMMAND,
    alternatives.COMMAND,
    paper.COMMAND,
    groups.COMMAND,
)


_EPILOG = """\
example:
  fairmatch audit people.csv --score score --sensitive sex --out report.html

exit codes:
  0    all went well
  1    a bound is broken (audit --fail-above, --fail-below), or a page is stale (--check)
  2    the input is at fault, a file cannot be written, or a run failed
  130  interrupted
  141  the reader of the output has closed it

"fairmatch COMMAND --help" shows the options of a command, and an example."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        The exit code. The end of ``fairmatch --help`` lists what each code means.

    Examples
    --------
    >>> from fairmatch.cli.main import main
    >>> main(["datasets", "german"])
    name    rows   features  groups (size, share of Y=1)                  licence    where
    german  1,000  57        female (310, 0.648); male (690, 0.723)  CC BY 4.0  bundled
    0
    """
    if argv is None:
        _spare_backends()
    parser = _parser()
    _complete(parser)
    arguments = parser.parse_args(argv)
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        with plain_output(vars(arguments)):
            return run(arguments)
    except FairmatchError as error:
        if arguments.debug:
            raise
        print_line(f"fairmatch: {as_typed(str(error), vars(arguments))}")
        return 2
    except BrokenPipeError:  # the reader of the output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # as shells have it
    except OSError as error:  # a file that cannot be written; 1 would mean a gap above its bound
        if arguments.debug:
            raise
        where = "" if error.filename is None else f"{error.filename}: "
        print_line(f"fairmatch: {where}{error.strerror or error}")
        return 2
    except MemoryError as error:
        if arguments.debug:
            raise
        print_line(f"fairmatch: The memory is not enough ({error}). Use fewer rows or columns.")
        return 2
    except KeyboardInterrupt:
        if arguments.debug:
            raise
        print_line("fairmatch: interrupted")
        return 130  # as shells have it


def _complete(parser: argparse.ArgumentParser) -> None:
    """Complete what is typed in a shell, where argcomplete is installed."""
    if "_ARGCOMPLETE" not in os.environ:
        return
    try:
        import argcomplete
    except ImportError:
        return
    argcomplete.autocomplete(parser)


def _spare_backends() -> None:
    """Keep POT from loading torch and other array libraries, which takes seconds.

    POT loads every array library that it finds, and fairmatch uses none of them through POT. In
    another program's process, this is not for fairmatch to decide.
    """
    for backend in ("PYTORCH", "JAX", "CUPY", "TENSORFLOW"):
        os.environ.setdefault(f"POT_BACKEND_DISABLE_{backend}", "1")


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = Parser(
        prog="fairmatch",
        description="Group-fair classifiers that can say how they are fair.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"fairmatch {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)
    for command in COMMANDS:
        command.add_to(commands)
    return parser
