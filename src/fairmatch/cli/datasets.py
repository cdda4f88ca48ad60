"""The command ``fairmatch datasets``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairmatch.cli.command import Command, print_table

if TYPE_CHECKING:
    from fairmatch.datasets import DatasetSummary


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="name", help="only these tables (default: all)")
    parser.add_argument("--fetch", action="store_true", help="download the tables that are missing")


def _run(arguments: argparse.Namespace) -> int:
    from fairmatch.datasets import DATASET_NAMES, load_dataset, summarise
    from fairmatch.datasets.registry import SOURCES

    names = arguments.names or DATASET_NAMES
    if arguments.fetch:
        for name in arguments.names or [n for n in names if SOURCES[n].downloaded]:
            load_dataset(name)
    summaries = [summarise(name) for name in names]
    print_table(
        ["name", "rows", "features", "groups (size, share of Y=1)", "licence", "where"],
        [_row(summary) for summary in summaries],
    )
    if absent := [summary.name for summary in summaries if summary.location is None]:
        print()
        if fetched := [name for name in absent if SOURCES[name].downloaded]:
            print(f"To get {' and '.join(fetched)}: fairmatch datasets --fetch {' '.join(fetched)}")
        print("Or set FAIRMATCH_DATA to the folder that holds the publisher's files.")
    return 0


def _row(summary: DatasetSummary) -> list[str]:
    if summary.location is None:
        return [summary.name, "-", "-", "-", summary.licence, "not here"]
    return [
        summary.name,
        f"{summary.n_rows:,}",
        f"{summary.n_features}",
        "; ".join(
            f"{group.name} ({group.size:,}, {group.base_rate:.3f})" for group in summary.groups
        ),
        summary.licence,
        str(summary.location),
    ]


COMMAND = Command(
    name="datasets",
    help="List the benchmark tables, their groups, and where they are.",
    example="fairmatch datasets german adult",
    add_arguments=_add_arguments,
    run=_run,
)
