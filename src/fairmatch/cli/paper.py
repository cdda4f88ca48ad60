"""The command ``fairmatch paper``: argument parsing and printing, like `fairmatch.cli.main`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairmatch.experiments.runs.records import Record, RecordStore
    from fairmatch.experiments.runs.runner import Failure
    from fairmatch.experiments.runs.spec import RunSpec
    from fairmatch.experiments.study import Study


def add_paper_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    commands = parser.add_subparsers(title="what to do", metavar="action", required=True)
    actions = (
        ("run", "Do the runs that have no record yet; stop and start it as you like.", _run),
        ("status", "Say what is recorded and what is missing.", _status),
        (
            "tables",
            "Write README.md: every table and claim, the paper's numbers and ours.",
            _tables,
        ),
        ("figures", "Draw every figure, as SVG.", _figures),
    )
    for name, text, run in actions:
        sub = commands.add_parser(name, help=text, description=text)
        add = sub.add_argument
        add(
            "--out",
            metavar="DIR",
            help="where it all is (default: results, with --quick quick-results, with --spec, also "
            "if both are given, own-results)",
        )
        add("--quick", action="store_true", help="German and Adult, 2 splits, short training")
        add("--datasets", nargs="+", metavar="NAME", help="only these tables")
        add("--seeds", type=int, metavar="N", help="random splits (default: 5, --quick: 2)")
        add("--spec", metavar="FILE.toml", help="tables and methods of your own")
        if name in ("run", "status"):
            add("--only", nargs="+", metavar="NAME", help="only these experiments")
        if name == "run":
            add(
                "--jobs",
                type=int,
                metavar="N",
                default=os.cpu_count(),
                help="runs at a time (default: one per core)",
            )
        if name == "tables":
            add("--check", action="store_true", help="only compare README.md with the records")
        if name == "figures":
            add("--check", action="store_true", help="only compare the figures with the records")
        sub.set_defaults(run=run)


def _opened(arguments: argparse.Namespace) -> tuple[Study, RecordStore, Path]:
    """Give the study, its records, and the folder of all that is written."""
    from fairmatch.exceptions import InputError
    from fairmatch.experiments.custom.study import extend_study
    from fairmatch.experiments.page.page import RECORDS
    from fairmatch.experiments.runs.records import RecordStore
    from fairmatch.experiments.study import PROFILES, Study

    if arguments.seeds is not None and arguments.seeds < 1:
        raise InputError(f"--seeds must be at least 1, got {arguments.seeds}.")
    # The paper's whole study has a folder of its own: its page and records are committed.
    usual = "quick-results" if arguments.quick else "results"
    out = Path(arguments.out or ("own-results" if arguments.spec is not None else usual))
    for path in (out / RECORDS, out, *out.parents):
        if path.exists() and not path.is_dir():
            raise InputError(f"--out must be a folder, and {path} is a file.")
    profile = PROFILES["quick" if arguments.quick else "full"]
    study = Study.of(profile, n_seeds=arguments.seeds)
    if arguments.spec is not None:
        study = extend_study(study, arguments.spec)
    if arguments.datasets is not None:
        study = study.only(arguments.datasets)
    return study, RecordStore(out / RECORDS), out


def _runs(study: Study, arguments: argparse.Namespace) -> list[RunSpec]:
    from fairmatch.exceptions import InputError

    specs = study.runs(arguments.only)
    if not specs:
        raise InputError(
            f"There is nothing to run: {', '.join(arguments.only)} has no runs on "
            f"{', '.join(study.datasets)}{' with --quick' if arguments.quick else ''}."
        )
    return specs


def _run(arguments: argparse.Namespace) -> int:
    try:
        return _add_runs(arguments)
    except KeyboardInterrupt:
        print(
            "Interrupted. What is recorded stays; the same command goes on from there.",
            file=sys.stderr,
        )
        return 130  # as shells have it


def _add_runs(arguments: argparse.Namespace) -> int:
    from fairmatch.exceptions import InputError
    from fairmatch.experiments.runs.runner import Failure, run_all

    if arguments.jobs < 1:
        raise InputError(f"--jobs must be at least 1, got {arguments.jobs}.")
    study, store, _ = _opened(arguments)
    specs = _runs(study, arguments)
    missing = len(store.missing(specs))
    print(f"{len(specs) - missing} of {len(specs)} runs are recorded in {store.folder}.")
    n_added = 0
    with _progress(missing) as advance:

        def done(result: Record | Failure) -> None:
            nonlocal n_added
            advance(result.spec.name)
            if not isinstance(result, Failure):
                n_added += 1
            else:
                print(f"Failed: {result.spec.name}: {result.error}", file=sys.stderr)
                if arguments.debug:
                    print(result.traceback, file=sys.stderr)

        failures = run_all(
            specs,
            store,
            loaders=study.loaders,
            methods=study.methods,
            jobs=arguments.jobs,
            on_done=done,
        )
    print(f"{n_added} runs were added, {len(failures)} failed.")
    if any(failure.traceback for failure in failures) and not arguments.debug:
        print("fairmatch --debug paper run shows where each of them failed.", file=sys.stderr)
    if elsewhere := missing - n_added - len(failures):
        print(f"{elsewhere} were added by another process meanwhile.")
    return 2 if failures else 0


@contextmanager
def _progress(n_runs: int) -> Iterator[Callable[[str], None]]:
    """Draw a bar over the runs with the time left; off a terminal, a line for each."""
    if not sys.stderr.isatty():
        finished = 0

        def say(name: str) -> None:
            nonlocal finished
            finished += 1
            print(f"{finished}/{n_runs} {name}", file=sys.stderr, flush=True)

        yield say
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


def _status(arguments: argparse.Namespace) -> int:
    from fairmatch.experiments.runs.runner import estimate_seconds
    from fairmatch.experiments.study import EXPERIMENTS

    study, store, _ = _opened(arguments)
    wanted = _runs(study, arguments)
    missing = store.missing(wanted)
    for name in arguments.only or EXPERIMENTS:
        specs = study.runs([name])
        if specs:
            done = sum(spec in store for spec in specs)
            print(f"{name:15}{done:4} of {len(specs):<4} {EXPERIMENTS[name].title}")
    records = [record for spec in wanted if (record := store.find(spec)) is not None]
    spent = _duration(sum(record.seconds for record in records))
    print(f"{'all':15}{len(records):4} of {len(wanted):<4} {spent} of CPU time so far")
    if missing:
        seconds, unknown = estimate_seconds(missing, records)
        left = f"about {_duration(seconds)} of CPU time"
        if unknown:
            left += f", and {unknown} runs like none that is recorded"
        print(f"Missing: {len(missing)} runs ({left}); next: {missing[0].name}")
    return 0


def _duration(seconds: float) -> str:
    return f"{seconds / 3600.0:.1f} hours" if seconds >= 3600.0 else f"{seconds / 60.0:.0f} minutes"


def _options(arguments: argparse.Namespace) -> str:
    """Give the options that say which study this is, as one would type them."""
    given = [" --quick"] if arguments.quick else []
    if arguments.spec is not None:
        given.append(f" --spec {Path(arguments.spec).name}")
    if arguments.datasets is not None:
        given.append(f" --datasets {' '.join(arguments.datasets)}")
    if arguments.seeds is not None:
        given.append(f" --seeds {arguments.seeds}")
    return "".join(given)


def _tables(arguments: argparse.Namespace) -> int:
    from fairmatch.experiments.page.page import check_page, write_page
    from fairmatch.experiments.reading.answers import Answers

    study, store, out = _opened(arguments)
    answers = Answers(study, store)
    if arguments.check:
        wrong = check_page(answers, out, _options(arguments))
        for line in wrong[:40]:
            print(line)
        print(
            "The page is not what the records and figures say: write it anew, without --check."
            if wrong
            else "The page says what the records say."
        )
        return int(bool(wrong))
    print(f"Written: {write_page(answers, out, _options(arguments))}")
    return 0


def _figures(arguments: argparse.Namespace) -> int:
    from fairmatch.experiments.page.files import draw_figures, stale_figures
    from fairmatch.experiments.page.page import FIGURES
    from fairmatch.experiments.reading.answers import Answers

    study, store, out = _opened(arguments)
    if arguments.check:
        stale = stale_figures(Answers(study, store), out / FIGURES)
        for file in stale:
            print(f"{file} does not show what the records say: draw it anew, without --check.")
        if not stale:
            print("The figures show what the records say.")
        return int(bool(stale))
    for file in draw_figures(Answers(study, store), out / FIGURES):
        print(file)
    return 0
