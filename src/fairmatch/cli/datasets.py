"""The command ``fairmatch datasets``."""

from __future__ import annotations

from typing import Any

from fairmatch.cli.options import command
from fairmatch.cli.printing import print_facts


@command("fairmatch datasets german adult")
def datasets(asked: Any) -> None:
    """List the benchmark tables, their groups, and where they are."""
    from fairmatch.datasets import DATASET_NAMES, load_dataset, summarise
    from fairmatch.datasets.registry import SOURCES

    shown = asked.names or DATASET_NAMES
    if asked.fetch:
        for name in asked.names or [name for name in shown if SOURCES[name].downloaded]:
            load_dataset(name)
    summaries = [summarise(name) for name in shown]
    print_facts(
        summaries,
        {
            "name": "name",
            "rows": lambda one: "-" if one.location is None else one.n_rows,
            "features": lambda one: "-" if one.location is None else str(one.n_features),
            "groups (size, share of Y=1)": lambda one: (
                "-"
                if one.location is None
                else "; ".join(
                    f"{group.name} ({group.size:,}, {group.base_rate:.3f})" for group in one.groups
                )
            ),
            "licence": "licence",
            "where": lambda one: str(one.location or "not here"),
        },
    )
    if absent := [summary.name for summary in summaries if summary.location is None]:
        print()
        if fetched := [name for name in absent if SOURCES[name].downloaded]:
            print(f"To get {' and '.join(fetched)}: fairmatch datasets --fetch {' '.join(fetched)}")
        print("Or set FAIRMATCH_DATA to the folder that holds the publisher's files.")
