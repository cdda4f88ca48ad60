"""The commands of ``python -m paper``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairmatch.cli.options import COUNT, Command
from fairmatch.exceptions import InputError

if TYPE_CHECKING:
    from paper.records import Record, RecordStore
    from paper.runs import Failure, Task
    from paper.specs import RunSpec, Study


def _names(option: str, help: str) -> Callable[[Any], Any]:
    """Declare an option that takes names; it may be repeated, or take commas between them."""

    def listed(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> Any:
        return [name for names in given for name in names.split(",") if name] or None

    return click.option(option, multiple=True, help=help, metavar="NAME[,NAME]", callback=listed)


_OUT = click.option(
    "--out",
    metavar="DIR",
    help="Folder of records, page and figures.  [default: results; with --quick, quick-results; "
    "with --spec, own-results]",
)
_STUDY = (
    _OUT,
    click.option("--quick", is_flag=True, help="German and Adult, 2 splits, short training."),
    _names("--datasets", "Only these tables."),
    click.option("--seeds", type=COUNT, help="Number of splits.  [default: 5; with --quick, 2]"),
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
    "--jobs", type=COUNT, default=os.cpu_count, help="Runs at a time.  [default: one per core]"
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def paper(debug: bool) -> None:
    """Run the paper's experiments; write its tables and figures beside ours.

    Exit codes: 0 if all went well, 1 if a page or figure is stale (--check), 2 if the input is at
    fault or a run failed, 130 if interrupted.
    """


def _command(example: str, *options: Callable[[Any], Any]) -> Callable[[Any], click.Command]:
    """Declare a command with its options, in this order."""

    def declare(function: Any) -> click.Command:
        for option in reversed(options):
            function = option(function)
        example_line = f"python -m paper {example}"
        found: click.Command = paper.command(cls=Command, example=example_line)(function)
        return found

    return declare


@dataclass(frozen=True)
class Where:
    """The study that the options name, its records, the folder of everything, and the options."""

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
        from paper.specs import PROFILES, Study

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
        typed = {
            " --quick": quick,
            f" --spec {Path(spec or '').name}": spec is not None,
            f" --datasets {','.join(datasets or ())}": datasets is not None,
            f" --seeds {seeds}": seeds is not None,
        }
        options = "".join(option for option, given in typed.items() if given)
        return cls(study, RecordStore(folder / RECORDS), folder, options)

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


@_command("run --quick --jobs 2", *_STUDY, *_PART, _JOBS)
def run(only: Sequence[str] | None, methods: Sequence[str] | None, jobs: int, **where: Any) -> int:
    """Do the runs of the paper's tables that have no record yet; stop and start as you like."""
    from paper.runs import study_tasks

    found = Where.of(**where)
    return _add(study_tasks(found.study, found.runs(only, methods)), found.store, jobs)


@_command("matchings --datasets adult --seeds 1", *_STUDY, _JOBS)
def matchings(jobs: int, **where: Any) -> int:
    """Match people by the recorded models nearest to the levels of ΔDP and ΔWDP."""
    from paper.matchings import FOLDER, matching_tasks
    from paper.records import RecordStore

    found = Where.of(**where)
    return _add(matching_tasks(found.study, found.store), RecordStore(found.out / FOLDER), jobs)


@_command(
    "groups --cases adult-race --methods plain,thresholds",
    _OUT,
    _names("--cases", "Only these cases."),
    _names("--methods", "Only these methods."),
    click.option("--seeds", type=COUNT, default=5, show_default=True, help="Number of splits."),
    _JOBS,
)
def groups(
    out: str | None,
    cases: Sequence[str] | None,
    methods: Sequence[str] | None,
    seeds: int,
    jobs: int,
) -> int:
    """Study several groups and other criteria, beside the usual alternatives."""
    from paper.groups import FOLDER, group_tasks
    from paper.records import RecordStore

    return _add(
        group_tasks(cases, methods, seeds), RecordStore(Path(out or "results", FOLDER)), jobs
    )


def _add(tasks: Sequence[Task], store: RecordStore, jobs: int) -> int:
    """Do the runs that have no record yet, and say how many were done."""
    from paper import runs
    from paper.runs import Failure

    debug = click.get_current_context().find_root().params["debug"]
    missing = len(store.missing(task.spec for task in tasks))
    print(f"{len(tasks) - missing} of {len(tasks)} runs are recorded in {store.folder}.")
    n_added = n_done = 0

    def done(result: Record | Failure) -> None:
        nonlocal n_added, n_done
        n_done += 1
        print(f"{n_done}/{missing} {result.spec.name}", file=sys.stderr, flush=True)
        if isinstance(result, Failure):
            print(f"Failed: {result.spec.name}: {result.error}", file=sys.stderr)
            if debug:
                print(result.traceback, file=sys.stderr)
        else:
            n_added += 1

    try:
        failures = runs.run_all(tasks, store, jobs=jobs, on_done=done)
    except KeyboardInterrupt:
        told = "Interrupted. The records stay, and the same command goes on from there."
        print(told, file=sys.stderr)
        return 130  # as shells have it
    print(f"{n_added} runs were added, {len(failures)} failed.")
    if any(failure.traceback for failure in failures) and not debug:
        print("python -m paper --debug run shows where each run failed.", file=sys.stderr)
    if elsewhere := missing - n_added - len(failures):
        print(f"Another process added {elsewhere} meanwhile.")
    return 2 if failures else 0


@_command("status --only tradeoff", *_STUDY, *_PART)
def status(only: Sequence[str] | None, methods: Sequence[str] | None, **where: Any) -> int:
    """Show what is recorded and what is missing."""
    from paper.records import estimate_seconds
    from paper.specs import EXPERIMENTS

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


@_command("tables --check", *_STUDY, _CHECK)
def tables(check: bool, **where: Any) -> int:
    """Write the pages: README.md with the verdicts, tables.md with all numbers, and groups.md."""
    from fairmatch.people.files import write_whole
    from paper.pages import check_page, pages

    found = Where.of(**where)
    texts = pages(found.study, found.store, found.out, found.options)
    if not check:
        for file, text in texts.items():
            print(f"Written: {write_whole(file, text)}")
        return 0
    wrong = [line for file, text in texts.items() for line in check_page(file, text)]
    for line in wrong[:40]:
        print(line)
    print(
        "The pages differ from the records and figures. Write them anew, without --check."
        if wrong
        else "The pages agree with the records."
    )
    return int(bool(wrong))


@_command("figures --check", *_STUDY, _CHECK)
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


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; the arguments are by default the process's."""
    try:
        return int(paper.main(argv, prog_name="python -m paper", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
