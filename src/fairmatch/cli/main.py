"""The command line: its commands, wrong usage and completion."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click
from click.shell_completion import shell_complete

from fairmatch import __version__
from fairmatch.cli.adjust import adjust
from fairmatch.cli.alternatives import alternatives
from fairmatch.cli.audit import audit
from fairmatch.cli.datasets import datasets
from fairmatch.cli.explain import explain
from fairmatch.cli.monitor import monitor
from fairmatch.cli.plan import plan
from fairmatch.cli.predict import predict
from fairmatch.cli.printing import print_line
from fairmatch.cli.train import train

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

_EPILOG = """\
\b
Example:
  fairmatch audit people.csv --score score --sensitive sex --out report.html

\b
Exit codes:
  0    success
  1    a bound is exceeded (audit --fail-above, --fail-below), or an alarm (monitor)
  2    the input is invalid, or a file cannot be written
  130  interrupted
  141  the output pipe was closed

"fairmatch COMMAND --help" shows the options of a command, and an example."""


@click.group(
    commands=[audit, plan, train, predict, adjust, alternatives, explain, monitor, datasets],
    epilog=_EPILOG,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "show_default": True,
        "max_content_width": 100,
    },
)
@click.version_option(__version__, prog_name="fairmatch", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def fairmatch(debug: bool) -> None:
    """Group-fair classifiers that can say how they are fair."""


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
    if asked := os.environ.get("_FAIRMATCH_COMPLETE"):  # by a shell
        return shell_complete(fairmatch, {}, "fairmatch", "_FAIRMATCH_COMPLETE", asked)
    if argv is None:
        _spare_backends()
        argv = sys.argv[1:]
    # click's own main() would expand patterns on Windows, and exit with 1 at a closed pipe.
    try:
        with fairmatch.make_context("fairmatch", list(argv)) as context:
            code: int = fairmatch.invoke(context)
            return code
    except click.exceptions.Exit as stop:  # --help and --version have printed
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.UsageError as error:
        usage = "" if error.ctx is None else error.ctx.get_usage()
        print_line(f"fairmatch: {_told(error)}\n{usage}")
        return 2


def _told(error: click.UsageError) -> str:
    """Return what is wrong, and the option that a command has for a word that people try."""
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        known = {name for option in error.ctx.command.params for name in option.opts}
        for name in _OTHER_WORDS.get(error.option_name, ()):
            if name in known:
                return f"{error.message} (Did you mean {name!r}?)"
    return error.format_message()


def _spare_backends() -> None:
    """Keep POT from loading torch and other array libraries, which takes seconds.

    POT loads every array library that it finds, and fairmatch uses none of them through POT. In
    another program's process, this is not for fairmatch to decide.
    """
    for backend in ("PYTORCH", "JAX", "CUPY", "TENSORFLOW"):
        os.environ.setdefault(f"POT_BACKEND_DISABLE_{backend}", "1")
