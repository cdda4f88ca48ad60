"""The commands of ``python -m paper``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairmatch.exceptions import FairmatchError, InputError

if TYPE_CHECKING:
    from paper.records import Record, RecordStore
    from paper.runs import Failure
    from paper.specs import RunSpec
    from paper.study import Study


class Names(click.ParamType):
    """Names separated by commas; an option that takes them can also be repeated."""

    name = "names"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, ...]:
        """Return the names in a text."""
        return tuple(filter(None, value.split(","))) if isinstance(value, str) else value


def _joined(ctx: click.Context, param: click.Parameter, value: Any) -> tuple[str, ...] | None:
    """Return the names of a repeated option as one tuple, or None if it was not given."""
    return tuple(name for names in value for name in names) or None


def _names(option: str, help: str) -> Callable[[Any], Any]:
    """Return the declaration of an option that takes several names."""
    shape = {"type": Names(), "metavar": "NAME[,NAME]", "multiple": True, "callback": _joined}
    return click.option(option, help=help, **shape)


def _options(*declared: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a decorator that applies several declarations, in their order."""

    def decorate(command: Any) -> Any:
        for declaration in reversed(declared):
            command = declaration(command)
        return command

    return decorate


_STUDY = (
    click.option(
        "--out",
        metavar="DIR",
        help="Folder of records, page and figures.  [default: results; with --quick, "
        "quick-results; with --spec, own-results]",
    ),
    click.option("--quick", is_flag=True, help="German and Adult, 2 splits, short training."),
    _names("--datasets", "Only these tables."),
    click.option(
        "--seeds",
        type=click.IntRange(min=1),
        metavar="N",
        help="Number of splits.  [default: 5; with --quick, 2]",
    ),
    click.option("--spec", metavar="FILE.toml", help="Tables and methods of your own."),
)
_PART = (
    _names("--only", "Only these experiments."),
    _names("--methods", "Only these methods, and what they are compared with."),
)
_CHECK = click.option(
    "--check", is_flag=True, help="Write nothing; compare the files with the records."
)
_JOBS = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    default=os.cpu_count,
    help="Runs at a time.  [default: one per core]",
)


@dataclass(frozen=True)
class Where:
    """The study that the options name, its records, and the folder of everything."""

    study: Study
    store: RecordStore
    out: Path
    options: str

    @classmethod
    def of(
        cls,
        out: str | None,
        quick: bool,
        datasets: Sequence[str] | None,
        seeds: int | None,
        spec: str | None,
    ) -> Where:
        """Return the study of some options."""
        from paper.custom import extend_study
        from paper.pages import RECORDS
        from paper.records import RecordStore
        from paper.specs import PROFILES
        from paper.study import Study

        # The paper's whole study has a folder of its own: its page and records are committed.
        usual = "quick-results" if quick else "results"
        folder = Path(out or ("own-results" if spec is not None else usual))
        for path in (folder / RECORDS, folder, *folder.parents):
            if path.exists() and not path.is_dir():
                raise InputError(f"--out must be a folder, and {path} is a file. Name a folder.")
        study = Study.of(PROFILES["quick" if quick else "full"], n_seeds=seeds)
        if spec is not None:
            study = extend_study(study, spec)
        if datasets is not None:
            study = study.only(datasets)
        typed = [" --quick"] if quick else []
        typed += [f" --spec {Path(spec).name}"] if spec is not None else []
        typed += [f" --datasets {','.join(datasets)}"] if datasets is not None else []
        typed += [f" --seeds {seeds}"] if seeds is not None else []
        return cls(study, RecordStore(folder / RECORDS), folder, "".join(typed))

    def runs(self, only: Sequence[str] | None, methods: Sequence[str] | None) -> list[RunSpec]:
        """Return the runs that are asked for, or raise if there are none."""
        specs = self.study.runs(only, methods)
        if not specs:
            whose = f" of {', '.join(methods)}" if methods else ""
            quick = " with --quick" if self.study.profile.name == "quick" else ""
            raise InputError(
                f"There is nothing to run: {', '.join(only or ['the study'])} has no runs{whose} "
                f"on {', '.join(self.study.datasets)}{quick}. Name other experiments, methods or "
                "tables."
            )
        return specs


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """Run the paper's experiments; write its tables and figures beside ours.

    Exit codes: 0 if all went well, 1 if a page or figure is stale (--check), 2 if the input is at
    fault or a run failed, 130 if interrupted.
    """
    ctx.obj = debug


@cli.command()
@_options(*_STUDY, *_PART, _JOBS)
@click.pass_obj
def run(
    debug: bool,
    only: Sequence[str] | None,
    methods: Sequence[str] | None,
    jobs: int,
    **where: Any,
) -> int:
    """Do the runs that have no record yet; stop and start as you like."""
    from paper import runs
    from paper.runs import Failure

    found = Where.of(**where)
    study, store = found.study, found.store
    specs = found.runs(only, methods)
    missing = len(store.missing(specs))
    print(f"{len(specs) - missing} of {len(specs)} runs are recorded in {store.folder}.")
    n_added = 0
    with follow_runs(missing) as advance:

        def done(result: Record | Failure) -> None:
            nonlocal n_added
            advance(result.spec.name)
            if not isinstance(result, Failure):
                n_added += 1
            else:
                print(f"Failed: {result.spec.name}: {result.error}", file=sys.stderr)
                if debug:
                    print(result.traceback, file=sys.stderr)

        failures = runs.run_all(
            specs, store, loaders=study.loaders, methods=study.methods, jobs=jobs, on_done=done
        )
    print(f"{n_added} runs were added, {len(failures)} failed.")
    if any(failure.traceback for failure in failures) and not debug:
        print("python -m paper --debug run shows where each run failed.", file=sys.stderr)
    if elsewhere := missing - n_added - len(failures):
        print(f"Another process added {elsewhere} meanwhile.")
    return 2 if failures else 0


@cli.command()
@_options(*_STUDY)
def matchings(**where: Any) -> int:
    """Match people by the recorded models nearest to the levels of ΔDP and ΔWDP."""
    from paper.matchings import FOLDER, matched_cases, run_case
    from paper.records import RecordStore

    given = Where.of(**where)
    found = RecordStore(given.out / FOLDER)
    cases = list(matched_cases(given.study, given.store))
    missing = [case for case in cases if case.spec not in found]
    print(f"{len(cases) - len(missing)} of {len(cases)} models are matched in {found.folder}.")
    with follow_runs(len(missing)) as advance:
        for case in missing:
            spec = case.spec
            load, method = given.study.loaders[spec.dataset], given.study.methods[spec.method]
            found.write(run_case(spec, load, method))
            advance(spec.name)
    return 0


@cli.command()
@click.option("--out", metavar="DIR", default="results", show_default=True, help="Folder.")
@_names("--cases", "Only these cases.")
@_names("--methods", "Only these methods.")
@click.option("--seeds", type=click.IntRange(min=1), metavar="N", default=5, show_default=True)
def groups(out: str, cases: Sequence[str] | None, methods: Sequence[str] | None, seeds: int) -> int:
    """Study several groups and other criteria; do the runs that have no record yet."""
    from paper.groups import CASES, FOLDER, METHODS, case_spec, find_case, run_trial
    from paper.records import RecordStore

    methods = methods or list(METHODS)
    for name in methods:
        if name not in METHODS:
            raise InputError(f"There is no method {name!r}. There are: {', '.join(METHODS)}.")
    chosen = [find_case(name) for name in cases or CASES]
    store = RecordStore(Path(out) / FOLDER)
    for seed in range(seeds):
        for case in chosen:
            for method in methods:
                if not METHODS[method].suits(case.criterion):
                    continue
                if case_spec(case.name, method, seed) in store:
                    continue
                record = run_trial(case, method, seed)
                store.write(record)
                print(f"{record.spec.name}: {record.seconds:.0f} s", file=sys.stderr)
    return 0


@cli.command()
@_options(*_STUDY, *_PART)
def status(only: Sequence[str] | None, methods: Sequence[str] | None, **where: Any) -> int:
    """Show what is recorded and what is missing."""
    from paper.records import estimate_seconds
    from paper.study import EXPERIMENTS

    found = Where.of(**where)
    study, store = found.study, found.store
    wanted = found.runs(only, methods)
    missing = store.missing(wanted)
    for name in only or EXPERIMENTS:
        specs = study.runs([name], methods)
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
            left += f", and {unknown} runs of unknown length"
        print(f"Missing: {len(missing)} runs ({left}); next: {missing[0].name}")
    return 0


def _duration(seconds: float) -> str:
    return f"{seconds / 3600.0:.1f} hours" if seconds >= 3600.0 else f"{seconds / 60.0:.0f} minutes"


@cli.command()
@_options(*_STUDY, _CHECK)
def tables(check: bool, **where: Any) -> int:
    """Write the pages: README.md, with the paper's numbers and ours, and groups.md."""
    from paper.pages import check_page, pages, write_pages

    found = Where.of(**where)
    written = pages(found.study, found.store, found.out, found.options)
    if not check:
        for file in write_pages(written):
            print(f"Written: {file}")
        return 0
    wrong = [line for file, text in written.items() for line in check_page(file, text)]
    for line in wrong[:40]:
        print(line)
    print(
        "The pages differ from the records and figures. Write them anew, without --check."
        if wrong
        else "The pages agree with the records."
    )
    return int(bool(wrong))


@cli.command()
@_options(*_STUDY, _CHECK)
def figures(check: bool, **where: Any) -> int:
    """Draw every figure, as SVG."""
    from paper.pages import FIGURES, draw_figures, stale_figures
    from paper.questions import Answers

    found = Where.of(**where)
    answers, folder = Answers(found.study, found.store), found.out / FIGURES
    if not check:
        for file in draw_figures(answers, folder):
            print(file)
        return 0
    stale = stale_figures(answers, folder)
    for file in stale:
        print(f"{file} differs from the records. Draw it anew, without --check.")
    if not stale:
        print("The figures agree with the records.")
    return int(bool(stale))


@contextmanager
def follow_runs(n_runs: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that a caller calls after each run.

    On a terminal it draws a bar with the time left. Elsewhere it prints a line for each run.
    """
    if not sys.stderr.isatty():
        finished = 0

        def print_line(name: str) -> None:
            nonlocal finished
            finished += 1
            print(f"{finished}/{n_runs} {name}", file=sys.stderr, flush=True)

        yield print_line
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    # Runs take minutes, so the speed is taken over all of them, not over the last half minute.
    with Progress(
        *columns,
        TextColumn("{task.description}"),
        console=Console(stderr=True),
        speed_estimate_period=1e6,
    ) as bar:
        task = bar.add_task("", total=n_runs)
        yield lambda name: bar.update(task, advance=1, description=name)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    debug = "--debug" in argv
    try:
        return int(cli(argv, prog_name="python -m paper", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except FairmatchError as error:
        if debug:
            raise
        print(f"paper: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if debug:
            raise
        where = "" if error.filename is None else f"{error.filename}: "
        print(f"paper: {where}{error.strerror or error}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, click.Abort):  # click turns an interrupt into an abort
        print(
            "Interrupted. The records stay, and the same command goes on from there.",
            file=sys.stderr,
        )
        return 130  # as shells have it


if __name__ == "__main__":
    sys.exit(main())
