"""A command of the command line: its arguments, its help and its work."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """A command, or an action of a command.

    `run` imports the heavy modules, so ``--help`` stays quick.

    Attributes
    ----------
    name : str
        The word that is typed.
    help : str
        What the command does, in a sentence.
    example : str
        A line that can be typed, for the end of the help.
    add_arguments : callable
        Declares the arguments on a parser.
    run : callable or None
        Does the work and returns the exit code. None is for a command with actions.
    """

    name: str
    help: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int] | None = None

    def add_to(self, commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
        """Declare the command among others."""
        parser = commands.add_parser(
            self.name,
            help=self.help,
            description=self.help,
            epilog=f"example:\n  {self.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if self.run is not None:
            parser.set_defaults(run=self.run)
        self.add_arguments(parser)
