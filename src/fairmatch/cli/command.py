"""What a command is: its arguments, its help with an example, and the work."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """A command or an action of one. Its `run` imports what is heavy: ``--help`` stays quick.

    Attributes
    ----------
    name, help : str
        What is typed, and what it does, in a sentence.
    example : str
        A line that could be typed, for the end of the help.
    add_arguments : callable
        Declares the arguments on a parser.
    run : callable or None
        Does the work and returns the exit code. None is for a command with actions of its own.
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
