"""The commands of ``python -m paper``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fairmatch.cli.command import Command, follow_runs

if TYPE_CHECKING:
    from paper.records import Record, RecordStore
    from paper.runs import Failure
    from paper.specs import RunSpec
    from paper.study import Study


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="what to do", metavar="action", required=True)
    for action in ACTIONS:
        action.add_to(commands)


def _add_study_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options that name the study, which every action has."""
    add = parser.add_argument
    add(
        "--out",
        metavar="DIR",
        help="folder of records, page and figures (default: results; with --quick, "
        "quick-results; with --spec, own-results)",
    )
    add("--quick", action="store_true", help="German and Adult, 2 splits, short training")
    add("--datasets", nargs="+", metavar="NAME", help="only these tables")
    add("--seeds", type=int, metavar="N", help="number of splits (default: 5; with --quick, 2)")
    add("--spec", metavar="FILE.toml", help="tables and methods of your own")


def _add_status_arguments(parser: argparse.ArgumentParser) -> None:
    _add_study_arguments(parser)
    add = parser.add_argument
    add("--only", nargs="+", metavar="NAME", help="only these experiments")
    add(
        "--methods",
        nargs="+",
        metavar="NAME",
        help="only these methods, and what they are compared with",
    )


def _add_run_arguments(parser: argparse.ArgumentParser) -> None:
    _add_status_arguments(parser)
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        default=os.cpu_count(),
        help="runs at a time (default: one per core)",
    )


def _add_page_arguments(parser: argparse.ArgumentParser) -> None:
    _add_study_arguments(parser)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; compare the files with the records"
    )


def _opened(arguments: argparse.Namespace) -> tuple[Study, RecordStore, Path]:
    """Return the study, its records, and the folder that everything is written to."""
    from fairmatch.exceptions import InputError
    from paper.custom import extend_study
    from paper.pages import RECORDS
    from paper.records import RecordStore
    from paper.specs import PROFILES
    from paper.study import Study

    if arguments.seeds is not None and arguments.seeds < 1:
        raise InputError(f"--seeds must be at least 1, got {arguments.seeds}.")
    # The paper's whole study has a folder of its own: its page and records are committed.
    usual = "quick-results" if arguments.quick else "results"
    out = Path(arguments.out or ("own-results" if arguments.spec is not None else usual))
    for path in (out / RECORDS, out, *out.parents):
        if path.exists() and not path.is_dir():
            raise InputError(f"--out must be a folder, and {path} is a file. Name a folder.")
    profile = PROFILES["quick" if arguments.quick else "full"]
    study = Study.of(profile, n_seeds=arguments.seeds)
    if arguments.spec is not None:
        study = extend_study(study, arguments.spec)
    if arguments.datasets is not None:
        study = study.only(arguments.datasets)
    return study, RecordStore(out / RECORDS), out


def _runs(study: Study, arguments: argparse.Namespace) -> list[RunSpec]:
    from fairmatch.exceptions import InputError

    specs = study.runs(arguments.only, arguments.methods)
    if not specs:
        methods = f" of {', '.join(arguments.methods)}" if arguments.methods else ""
        raise InputError(
            f"There is nothing to run: {', '.join(arguments.only or ['the study'])} has no runs"
            f"{methods} on {', '.join(study.datasets)}"
            f"{' with --quick' if arguments.quick else ''}. Name other experiments, methods or "
            "tables."
        )
    return specs


def _run(arguments: argparse.Namespace) -> int:
    try:
        return _add_runs(arguments)
    except KeyboardInterrupt:
        print(
            "Interrupted. The records stay, and the same command goes on from there.",
            file=sys.stderr,
        )
        return 130  # as shells have it


def _add_runs(arguments: argparse.Namespace) -> int:
    from fairmatch.exceptions import InputError
    from paper.runs import Failure, run_all

    if arguments.jobs < 1:
        raise InputError(f"--jobs must be at least 1, got {arguments.jobs}.")
    study, store, _ = _opened(arguments)
    specs = _runs(study, arguments)
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
        print("fairmatch --debug paper run shows where each run failed.", file=sys.stderr)
    if elsewhere := missing - n_added - len(failures):
        print(f"Another process added {elsewhere} meanwhile.")
    return 2 if failures else 0


def _matchings(arguments: argparse.Namespace) -> int:
    """Match the test rows by the recorded models nearest to a level of ΔDP or ΔWDP."""
    from paper.matchings import FOLDER, matched_cases
    from paper.records import RecordStore

    study, store, out = _opened(arguments)
    found = RecordStore(out / FOLDER)
    cases = list(matched_cases(study, store))
    missing = [case for case in cases if case.spec not in found]
    print(f"{len(cases) - len(missing)} of {len(cases)} models are matched in {found.folder}.")
    if not missing:
        return 0
    from paper.matchings import run_case

    with follow_runs(len(missing)) as advance:
        for case in missing:
            spec = case.spec
            found.write(run_case(spec, study.loaders[spec.dataset], study.methods[spec.method]))
            advance(spec.name)
    return 0


def _status(arguments: argparse.Namespace) -> int:
    from paper.records import estimate_seconds
    from paper.study import EXPERIMENTS

    study, store, _ = _opened(arguments)
    wanted = _runs(study, arguments)
    missing = store.missing(wanted)
    for name in arguments.only or EXPERIMENTS:
        specs = study.runs([name], arguments.methods)
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


def _options(arguments: argparse.Namespace) -> str:
    """Return the options that name the study, as they are typed."""
    given = [" --quick"] if arguments.quick else []
    if arguments.spec is not None:
        given.append(f" --spec {Path(arguments.spec).name}")
    if arguments.datasets is not None:
        given.append(f" --datasets {' '.join(arguments.datasets)}")
    if arguments.seeds is not None:
        given.append(f" --seeds {arguments.seeds}")
    return "".join(given)


def _tables(arguments: argparse.Namespace) -> int:
    from paper.pages import check_page, write_page
    from paper.questions import Answers

    study, store, out = _opened(arguments)
    answers = Answers(study, store)
    if arguments.check:
        wrong = check_page(answers, out, _options(arguments))
        for line in wrong[:40]:
            print(line)
        print(
            "The page differs from the records and figures. Write it anew, without --check."
            if wrong
            else "The page agrees with the records."
        )
        return int(bool(wrong))
    print(f"Written: {write_page(answers, out, _options(arguments))}")
    return 0


def _figures(arguments: argparse.Namespace) -> int:
    from paper.pages import FIGURES, draw_figures, stale_figures
    from paper.questions import Answers

    study, store, out = _opened(arguments)
    if arguments.check:
        stale = stale_figures(Answers(study, store), out / FIGURES)
        for file in stale:
            print(f"{file} differs from the records. Draw it anew, without --check.")
        if not stale:
            print("The figures agree with the records.")
        return int(bool(stale))
    for file in draw_figures(Answers(study, store), out / FIGURES):
        print(file)
    return 0


ACTIONS = (
    Command(
        name="run",
        help="Do the runs that have no record yet; stop and start as you like.",
        example="fairmatch paper run --quick --jobs 2",
        add_arguments=_add_run_arguments,
        run=_run,
    ),
    Command(
        name="status",
        help="Show what is recorded and what is missing.",
        example="fairmatch paper status --only tradeoff",
        add_arguments=_add_status_arguments,
        run=_status,
    ),
    Command(
        name="matchings",
        help="Match people by the recorded models nearest to the levels of ΔDP and ΔWDP.",
        example="fairmatch paper matchings --datasets adult --seeds 1",
        add_arguments=_add_study_arguments,
        run=_matchings,
    ),
    Command(
        name="tables",
        help="Write README.md, with every table and claim: the paper's numbers and ours.",
        example="fairmatch paper tables --check",
        add_arguments=_add_page_arguments,
        run=_tables,
    ),
    Command(
        name="figures",
        help="Draw every figure, as SVG.",
        example="fairmatch paper figures --check",
        add_arguments=_add_page_arguments,
        run=_figures,
    ),
)

COMMAND = Command(
    name="paper",
    help="Run the paper's experiments; write its tables and figures beside ours.",
    example="fairmatch paper run --quick",
    add_arguments=_add_arguments,
)


def _groups_add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="what to do", metavar="action", required=True)
    for action in groups_ACTIONS:
        action.add_to(commands)


def _groups_add_run_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", metavar="DIR", default="results", help="where records go (default: results)")
    add("--cases", nargs="+", metavar="NAME", help="only these cases (default: all)")
    add("--methods", nargs="+", metavar="NAME", help="only these methods (default: all)")
    add("--seeds", nargs="+", type=int, metavar="N", help="seeds of splits (default: 0 1 2 3 4)")


def _groups_add_page_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", metavar="DIR", default="results", help="where records are (default: results)")
    add("--check", action="store_true", help="write nothing; compare the page with the records")


def _groups_run(arguments: argparse.Namespace) -> int:
    """Do the runs that have no record yet; records are kept."""
    from fairmatch.exceptions import InputError
    from paper.groups import CASES, FOLDER, METHODS, SEEDS, case_spec, find_case, run_trial
    from paper.records import RecordStore

    methods = arguments.methods or list(METHODS)
    for name in methods:
        if name not in METHODS:
            raise InputError(f"There is no method {name!r}. There are: {', '.join(METHODS)}.")
    cases = [find_case(name) for name in arguments.cases or CASES]
    store = RecordStore(Path(arguments.out) / FOLDER)
    for seed in arguments.seeds or SEEDS:
        for case in cases:
            for method in methods:
                if not METHODS[method].suits(case.criterion):
                    continue
                if case_spec(case.name, method, seed) in store:
                    continue
                record = run_trial(case, method, seed)
                store.write(record)
                print(f"{record.spec.name}: {record.seconds:.0f} s", file=sys.stderr)
    return 0


def _page(arguments: argparse.Namespace) -> int:
    """Write the page, or compare it with the records."""
    from fairmatch.people.files import write_whole
    from paper.groups import FOLDER, PAGE, page_text

    file = Path(arguments.out) / PAGE
    text = page_text(Path(arguments.out) / FOLDER)
    if not arguments.check:
        write_whole(file, text)
        print(file)
        return 0
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        print(f"{file} differs from the records. fairmatch groups page writes it anew.")
        return 1
    print("The page agrees with the records.")
    return 0


groups_ACTIONS = (
    Command(
        "run",
        "Do the runs that have no record yet.",
        "fairmatch groups run --cases adult-race --seeds 0 1",
        _groups_add_run_arguments,
        _groups_run,
    ),
    Command(
        "page",
        "Write the page of results from the records.",
        "fairmatch groups page --check",
        _groups_add_page_arguments,
        _page,
    ),
)
groups_COMMAND = Command(
    "groups",
    "Study several groups and other criteria, beside the usual alternatives.",
    "fairmatch groups run --cases adult-race",
    _groups_add_arguments,
)
