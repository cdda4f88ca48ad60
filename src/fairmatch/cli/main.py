"""The command line: which commands there are, and what ends them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from fairmatch import __version__
from fairmatch.cli import adjust, audit, datasets, groups, paper, predict, train
from fairmatch.exceptions import FairmatchError

COMMANDS = (
    datasets.COMMAND,
    audit.COMMAND,
    train.COMMAND,
    predict.COMMAND,
    adjust.COMMAND,
    paper.COMMAND,
    groups.COMMAND,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        0 if all went well, 1 if a gap is above a bound, 2 if the input was at fault.

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
    arguments = _parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        return run(arguments)
    except FairmatchError as error:
        if arguments.debug:
            raise
        print(f"fairmatch: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever reads the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # as shells have it
    except OSError as error:  # a file that cannot be written; 1 would mean a gap above its bound
        if arguments.debug:
            raise
        where = "" if error.filename is None else f"{error.filename}: "
        print(f"fairmatch: {where}{error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        if arguments.debug:
            raise
        print("fairmatch: interrupted", file=sys.stderr)
        return 130  # as shells have it


def _spare_backends() -> None:
    """Keep POT from loading torch and the like: where they are installed, that takes seconds.

    POT loads every array library that it knows, and nothing here uses them through POT. In a
    process of somebody else's that is not ours to decide.
    """
    for backend in ("PYTORCH", "JAX", "CUPY", "TENSORFLOW"):
        os.environ.setdefault(f"POT_BACKEND_DISABLE_{backend}", "1")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fairmatch",
        description="Group-fair classifiers that can say how they are fair.",
    )
    parser.add_argument("--version", action="version", version=f"fairmatch {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)
    for command in COMMANDS:
        command.add_to(commands)
    return parser
