"""The command ``fairmatch groups``: a study of several groups and other criteria."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fairmatch.cli.command import Command


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="what to do", metavar="action", required=True)
    for action in ACTIONS:
        action.add_to(commands)


def _add_run_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", metavar="DIR", default="results", help="where records go (default: results)")
    add("--cases", nargs="+", metavar="NAME", help="only these cases (default: all)")
    add("--methods", nargs="+", metavar="NAME", help="only these methods (default: all)")
    add("--seeds", nargs="+", type=int, metavar="N", help="seeds of splits (default: 0 1 2 3 4)")


def _add_page_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", metavar="DIR", default="results", help="where records are (default: results)")
    add("--check", action="store_true", help="write nothing; compare the page with the records")


def _run(arguments: argparse.Namespace) -> int:
    """Do the runs that have no record yet; records are kept."""
    from fairmatch.exceptions import InputError
    from fairmatch.experiments.groups.cases import CASES, find_case
    from fairmatch.experiments.groups.methods import METHODS
    from fairmatch.experiments.groups.page import FOLDER, SEEDS
    from fairmatch.experiments.groups.trial import case_spec, run_trial
    from fairmatch.experiments.runs.records import RecordStore

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
    from fairmatch.experiments.groups.page import FOLDER, PAGE, page_text
    from fairmatch.storage.atomic import write_whole

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


ACTIONS = (
    Command(
        "run",
        "Do the runs that have no record yet.",
        "fairmatch groups run --cases adult-race --seeds 0 1",
        _add_run_arguments,
        _run,
    ),
    Command(
        "page",
        "Write the page of results from the records.",
        "fairmatch groups page --check",
        _add_page_arguments,
        _page,
    ),
)
COMMAND = Command(
    "groups",
    "Study several groups and other criteria, beside the usual alternatives.",
    "fairmatch groups run --cases adult-race",
    _add_arguments,
)
