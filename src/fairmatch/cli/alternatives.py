"""The command ``fairmatch alternatives``: search for models with smaller gaps."""

from __future__ import annotations

import argparse
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from fairmatch.cli.command import (
    Command,
    add_about,
    add_labelled,
    follow_steps,
    print_table,
    read_about,
    read_labelled,
)
from fairmatch.exceptions import InputError
from fairmatch.people.files import check_place, write_whole

if TYPE_CHECKING:
    from fairmatch.auditing.facts import Alternatives, Search
    from fairmatch.people.files import LabelledTable

# Of the foremost models, so many are described on the page beside the baseline.
_DESCRIBED = 2


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_labelled(parser)
    add(
        "--criterion",
        choices=("demographic_parity", "equal_opportunity", "equalized_odds"),
        default="demographic_parity",
        help="the criterion whose gap is to be smaller (default: demographic_parity)",
    )
    add(
        "--margin",
        type=float,
        default=0.01,
        help="how much accuracy a model may lose and still count as accurate (default: 0.01)",
    )
    add(
        "--confidence",
        type=float,
        default=0.95,
        metavar="LEVEL",
        help="level of the intervals (default: 0.95)",
    )
    add("--rounds", type=int, default=200, help="number of trees (default: 200)")
    add(
        "--test-size",
        type=float,
        default=0.3,
        help="share of the rows that are kept for testing (default: 0.3)",
    )
    add(
        "--without-sensitive",
        action="store_true",
        help="try only models that do not need the group to predict",
    )
    add("--seed", type=int, default=0, help="same seed, same result (default: 0)")
    add("--json", metavar="FILE", help="also write everything that was tried as JSON")
    add_about(parser, "search")
    add("--no-individuals", action="store_true", help="write no person's row")
    add("--out", metavar="FILE.html", required=True, help="write the page to this file")


def _run(arguments: argparse.Namespace) -> int:
    from fairmatch.auditing.alternatives import find_alternatives
    from fairmatch.auditing.audit import compare_models
    from fairmatch.learning.path import METHODS, categorised, train_candidates
    from fairmatch.learning.reading import stratified_split
    from fairmatch.people.checks import check_count, check_number
    from fairmatch.people.groups import read_criterion, read_groups
    from fairmatch.report.page import require_report, write_report

    check_number("--margin", arguments.margin, "[0, 1)")
    check_number("--confidence", arguments.confidence, "(0.5, 1)")
    check_number("--test-size", arguments.test_size, "(0, 1)")
    check_count("--rounds", arguments.rounds)
    check_count("--seed", arguments.seed, 0)
    if Path(arguments.out).suffix.lower() not in (".html", ".htm"):
        raise InputError(
            f"--out writes a page, and {arguments.out} does not end in .html. Name a file that "
            "does."
        )
    for file in (arguments.out, arguments.json):
        if file is not None:
            check_place(file)
    require_report()
    table, left_out = read_labelled(arguments)
    attributes = table.attributes
    features = categorised(table.frame.drop(columns=[table.target, *attributes, *left_out]))
    labels = table.frame[table.target]
    groups = table.frame[attributes] if len(attributes) > 1 else table.frame[attributes[0]]
    train, test = stratified_split(
        labels.to_numpy(), read_groups(groups), arguments.test_size, arguments.seed
    )
    with follow_steps(len(METHODS) + 2) as step:
        tried = train_candidates(
            features.iloc[train],
            labels.iloc[train],
            sensitive_features=groups.iloc[train],
            criterion=arguments.criterion,
            sensitive_at_prediction=not arguments.without_sensitive,
            n_rounds=arguments.rounds,
            random_state=arguments.seed,
            progress=step,
        )
        positive = tried[0].model.classes_[1]
        rows, own, truth = features.iloc[test], groups.iloc[test], labels.iloc[test]
        seen = None if arguments.without_sensitive else own
        scores = {
            one.name: one.model.predict_proba(rows, sensitive_features=seen)[:, 1] for one in tried
        }
        found = find_alternatives(
            scores,
            y_true=truth,
            sensitive_features=own,
            pos_label=positive,
            gap_measure=read_criterion(arguments.criterion).gap_measure,
            margin=arguments.margin,
            confidence=arguments.confidence,
            methods={one.name: (one.method, one.setting) for one in tried},
            random_state=arguments.seed,
        )
        found = replace(
            found, search=_documented(arguments, table, left_out, len(train), len(test))
        )
        _print(found)
        if step is not None:
            step("the page")
        shown = [found.baseline, *(one.name for one in found.foremost[:_DESCRIBED])]
        comparison = compare_models(
            {name: scores[name] for name in shown},
            sensitive_features=own,
            X=rows,
            y_true=truth,
            pos_label=positive,
            # Which columns are used was settled before the training.
            keep=list(rows.columns),
            confidence=arguments.confidence,
            random_state=arguments.seed,
            **read_about(arguments),
        )
    page = write_report(
        comparison,
        arguments.out,
        alternatives=found,
        individuals=not arguments.no_individuals,
        title=arguments.title or "Search for less discriminatory alternatives",
    )
    print(f"Written: {page}")
    if arguments.json is not None:
        print(f"Written: {write_whole(Path(arguments.json), found.to_json(indent=1) + chr(10))}")
    return 0


def _documented(
    arguments: argparse.Namespace,
    table: LabelledTable,
    left_out: list[str],
    n_training: int,
    n_test: int,
) -> Search:
    """Return how the models were made."""
    from fairmatch import __version__
    from fairmatch.auditing.facts import Search
    from fairmatch.learning.path import METHODS

    file = Path(arguments.table)
    uses_group = not arguments.without_sensitive
    return Search(
        version=__version__,
        seed=arguments.seed,
        source=file.name,
        source_sha256=sha256(file.read_bytes()).hexdigest() if file.is_file() else None,
        n_training=n_training,
        n_choosing=0,
        n_test=n_test,
        uses_group=uses_group,
        needing_group=tuple(
            name for name, method in METHODS.items() if uses_group and method.needs_group
        ),
        settings={
            "target": table.target,
            "sensitive": ", ".join(table.attributes),
            "positive": arguments.positive,
            "left_out": ", ".join(left_out) or None,
            "criterion": arguments.criterion,
            "rounds": arguments.rounds,
            "test_size": arguments.test_size,
            "margin": arguments.margin,
            "confidence": arguments.confidence,
        },
    )


def _print(found: Alternatives) -> None:
    print_table(
        ["model", "accuracy", "gap", "change of the gap", "less discriminatory"],
        [
            [found.baseline, f"{found.accuracy:.4f}", f"{found.gap:.4f}", "", "baseline"],
            *(
                [
                    one.name,
                    f"{one.accuracy:.4f}",
                    f"{one.gap:.4f}",
                    f"{one.gap_change.low:+.3f} to {one.gap_change.high:+.3f}",
                    one.verdict,
                ]
                for one in found.tried
            ),
        ],
    )
    print(found.sentence())


COMMAND = Command(
    name="alternatives",
    help="Search for models as accurate as plain trees, with smaller gaps; document the search.",
    example="fairmatch alternatives people.csv --target repaid --sensitive sex --out page.html",
    add_arguments=_add_arguments,
    run=_run,
)
