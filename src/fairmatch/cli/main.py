"""The command line: its commands, its errors and its exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from fairmatch import __version__
from fairmatch.cli import adjust, alternatives, audit, datasets, predict, train
from fairmatch.cli.command import as_typed, plain_output, print_line
from fairmatch.exceptions import FairmatchError

# Options that commands name differently, and words that people try.
_OTHER_WORDS = {
    "--label": ("--target",),
    "--target": ("--label",),
    "--y": ("--target", "--label"),
    "--group": ("--sensitive",),
    "--groups": ("--sensitive",),
    "--protected": ("--sensitive",),
    "--output": ("--out",),
    "--ignore": ("--drop",),
    "--exclude": ("--drop",),
}


class Parser(argparse.ArgumentParser):
    """A parser that suggests an option where one is not known.

    Commands are parsed by parsers of the same kind, each of which reports what it cannot use.

    Examples
    --------
    >>> from fairmatch.cli.main import Parser
    >>> parser = Parser(prog="fairmatch audit")
    >>> _ = parser.add_argument("--score")
    >>> parser.suggestions(["--scores", "pd"])
    ['Did you mean --score instead of --scores?']
    """

    _typed: Sequence[str] = ()
    _left: Sequence[str] = ()

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Return the options, and raise where something that was typed is left over."""
        self._typed, self._left = list(sys.argv[1:] if args is None else args), ()
        found, left = super().parse_known_args(args, namespace)
        if left and "_ARGCOMPLETE" not in os.environ:  # a shell completes half a line
            self._left = left
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return found, left

    def error(self, message: str) -> NoReturn:
        """Print the usage, the message and what may have been meant, and exit with 2."""
        super().error("\n".join([message, *self.suggestions(self._typed, self._left)]))

    def suggestions(self, typed: Sequence[str], left: Sequence[str] = ()) -> list[str]:
        """Return sentences that say what may have been meant.

        Parameters
        ----------
        typed : sequence of str
            Everything that was typed.
        left : sequence of str
            What could not be used.
        """
        if self._subparsers is not None:  # the options belong to a command
            return [f'"{self.prog} --help" shows what can be typed.']
        known = [option for option in self._option_string_actions if option.startswith("--")]
        told = list(self._misspelt(typed, known))
        if left and not left[0].startswith("-") and not told:
            told += [
                f"{option} takes {action.metavar} without a space."
                for option, action in self._option_string_actions.items()
                if option in typed and "=" in str(action.metavar)
            ]
            told = told or ["A value that contains a space needs quotes; most options take one."]
        return told

    @staticmethod
    def _misspelt(typed: Sequence[str], known: Sequence[str]) -> Iterator[str]:
        for word in (word.partition("=")[0] for word in typed if word.startswith("--")):
            if word == "--" or any(option.startswith(word) for option in known):
                continue
            other = [option for option in _OTHER_WORDS.get(word, ()) if option in known]
            near = other or get_close_matches(word.replace("_", "-"), known, n=1, cutoff=0.7)
            if near:
                yield f"Did you mean {near[0]} instead of {word}?"


COMMANDS = (
    datasets.COMMAND,
    audit.COMMAND,
    train.COMMAND,
    predict.COMMAND,
    adjust.COMMAND,
    alternatives.COMMAND,
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
