"""The command ``fairmatch datasets``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairmatch.cli.options import Command
from fairmatch.cli.printing import print_table

if TYPE_CHECKING:
    from fairmatch.datasets import DatasetSummary


@click.command(cls=Command, example="fairmatch datasets german adult")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--fetch", is_flag=True, help="Download the tables that are missing.")
def datasets(names: tuple[str, ...], fetch: bool) -> None:
    """List the benchmark tables, their groups, and where they are."""
    from fairmatch.datasets import DATASET_NAMES, load_dataset, summarise
    from fairmatch.datasets.registry import SOURCES

    shown = names or DATASET_NAMES
    if fetch:
        for name in names or [name for name in shown if SOURCES[name].downloaded]:
            load_dataset(name)
    summaries = [summarise(name) for name in shown]
    print_table(
        ["name", "rows", "features", "groups (size, share of Y=1)", "licence", "where"],
        [_row(summary) for summary in summaries],
    )
    if absent := [summary.name for summary in summaries if summary.location is None]:
        print()
        if fetched := [name for name in absent if SOURCES[name].downloaded]:
            print(f"To get {' and '.join(fetched)}: fairmatch datasets --fetch {' '.join(fetched)}")
        print("Or set FAIRMATCH_DATA to the folder that holds the publisher's files.")


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
