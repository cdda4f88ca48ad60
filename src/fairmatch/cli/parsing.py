"""The parser of the command line, whose errors say what may have been meant."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

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
    >>> from fairmatch.cli.parsing import Parser
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
