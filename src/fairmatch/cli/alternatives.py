"""The command ``fairmatch alternatives``: search for models with smaller gaps."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairmatch.cli import options
from fairmatch.cli.labelled import open_labelled
from fairmatch.cli.options import COUNT, FILE, Command
from fairmatch.cli.printing import follow_steps, print_table
from fairmatch.exceptions import InputError

if TYPE_CHECKING:
    from fairmatch.auditing.facts import Alternatives

# Of the foremost models, so many are described on the page beside the baseline.
_DESCRIBED = 2


@click.command(
    cls=Command,
    example="fairmatch alternatives people.csv --target repaid --positive yes --sensitive sex "
    "--out page.html",
)
@options.labelled
@click.option(
    "--score",
    "y_score",
    metavar="COL",
    help="Column with scores or decisions of an existing model, the baseline; not used as a "
    "feature. By default the baseline is plain trees.",
)
@click.option(
    "--threshold",
    type=float,
    default=0.5,
    help="Scores of --score at or above it are selected, in their own range.",
)
@click.option(
    "--favourable",
    type=click.Choice(("high", "low")),
    default="high",
    help="Which scores are favourable; with low, the positive label is the unfavourable one.",
)
@click.option(
    "--criterion",
    type=options.CRITERIA,
    default="demographic_parity",
    help="The criterion whose gap is to be smaller.",
)
@click.option(
    "--margin",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.01,
    help="How much accuracy a model may lose and still count as accurate.",
)
@click.option(
    "--confidence", type=options.UPPER_LEVEL, default=0.95, help="Level of the intervals."
)
@click.option("--rounds", type=COUNT, default=200, help="Number of trees.")
@click.option(
    "--test-size",
    type=options.LEVEL,
    default=0.3,
    help="Share of the rows that are held out.",
)
@click.option(
    "--without-sensitive",
    is_flag=True,
    help="Try only models that do not use the group for predictions.",
)
@options.seed("result")
@click.option("--json", type=FILE, metavar="FILE", help="Also write all tried models as JSON.")
@options.about("search")
@click.option("--no-individuals", is_flag=True, help="Leave out individual rows.")
@click.option(
    "--out", required=True, type=FILE, metavar="FILE.html", help="Write the page to this file."
)
def alternatives(
    y_score: str | None,
    threshold: float,
    favourable: str,
    criterion: str,
    margin: float,
    confidence: float,
    rounds: int,
    test_size: float,
    without_sensitive: bool,
    random_state: int,
    json: str | None,
    title: str | None,
    author: str | None,
    date: str | None,
    purpose: str | None,
    no_individuals: bool,
    out: str,
    **labelled: Any,
) -> None:
    """Search for models as accurate as a baseline, with smaller gaps; document the search.

    TABLE is a .csv or .parquet file, or the name of a dataset.
    """
    import numpy as np

    from fairmatch import __version__
    from fairmatch.auditing.alternatives import find_alternatives
    from fairmatch.auditing.audit import compare_models
    from fairmatch.auditing.facts import Search
    from fairmatch.learning.path import METHODS, categorised, train_candidates
    from fairmatch.learning.reading import stratified_split
    from fairmatch.people.checks import read_numbers
    from fairmatch.people.files import check_outputs, write_whole
    from fairmatch.people.groups import read_criterion, read_groups
    from fairmatch.report.page import require_report, write_report

    if favourable == "low" and criterion == "equal_opportunity":
        raise InputError(
            "--criterion equal_opportunity compares people with the positive label, and with "
            "--favourable low the positive label is the bad one. Choose equalized_odds, or name "
            "the good label with --positive and leave --favourable out."
        )
    options.check_page(out)
    check_outputs([labelled["table"]], out=out, json=json)
    require_report()
    if y_score is not None:
        labelled["drop"] = (*labelled["drop"], y_score)
    table = open_labelled(labelled, sees_groups=not without_sensitive)
    features = categorised(table.features)
    labels, groups = table.frame[table.target], table.groups
    train, test = stratified_split(labels.to_numpy(), read_groups(groups), test_size, random_state)
    with follow_steps(len(METHODS) + 2) as step:
        tried = train_candidates(
            features.iloc[train],
            labels.iloc[train],
            sensitive_features=groups.iloc[train],
            criterion=criterion,
            sensitive_at_prediction=not without_sensitive,
            n_rounds=rounds,
            random_state=random_state,
            progress=step,
        )
        positive = tried[0].model.classes_[1]
        rows, own, truth = features.iloc[test], groups.iloc[test], labels.iloc[test]
        seen = None if without_sensitive else own
        scores = {
            one.name: one.model.predict_proba(rows, sensitive_features=seen)[:, 1] for one in tried
        }
        given = None
        if y_score is not None:
            column = read_numbers(table.frame[y_score].iloc[test], "y_score")
            if not np.isfinite(column).all():
                raise InputError(f"--score: column {y_score!r} must hold a number in every row.")
            given = (column >= threshold).astype(float)
        found = find_alternatives(
            scores,
            baseline=given,
            favourable=favourable,
            y_true=truth,
            sensitive_features=own,
            pos_label=positive,
            gap_measure=read_criterion(criterion).gap_measure,
            margin=margin,
            confidence=confidence,
            methods={one.name: (one.method, one.setting) for one in tried},
            random_state=random_state,
        )
        file = Path(labelled["table"])
        search = Search(
            version=__version__,
            seed=random_state,
            source=file.name,
            source_sha256=sha256(file.read_bytes()).hexdigest() if file.is_file() else None,
            n_training=len(train),
            n_choosing=0,
            n_test=len(test),
            uses_group=not without_sensitive,
            needing_group=tuple(
                name
                for name, method in METHODS.items()
                if not without_sensitive and method.needs_group
            ),
            settings={
                "target": table.target,
                "sensitive": ", ".join(table.attributes),
                "positive": labelled["positive"],
                "left_out": ", ".join(table.left_out) or None,
                "criterion": criterion,
                "rounds": rounds,
                "test_size": test_size,
                "score": y_score,
                "threshold": None if y_score is None else threshold,
                "favourable": favourable,
                "margin": margin,
                "confidence": confidence,
            },
        )
        if given is not None:
            found = replace(found, baseline=y_score or "")
            scores = {found.baseline: given, **scores}
        found = replace(found, search=search)
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
            favourable=favourable,
            confidence=confidence,
            random_state=random_state,
            title=title,
            author=author,
            date=date,
            purpose=purpose,
        )
    page = write_report(
        comparison,
        out,
        alternatives=found,
        individuals=not no_individuals,
        title=title or "Search for less discriminatory alternatives",
    )
    print(f"Written: {page}")
    if json is not None:
        print(f"Written: {write_whole(json, found.to_json(indent=1) + chr(10))}")


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
