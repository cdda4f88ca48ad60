"""The command ``fairmatch alternatives``: search for models with smaller gaps."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairmatch.cli.labelled import open_labelled
from fairmatch.cli.options import check_page, command
from fairmatch.cli.printing import follow_steps, print_table
from fairmatch.exceptions import InputError

if TYPE_CHECKING:
    from fairmatch.auditing.facts import Alternatives

# Of the foremost models, so many are described on the page beside the baseline.
_DESCRIBED = 2
# What the provenance of the search states.
_STATED = ("target", "sensitive", "positive", "left_out", "criterion", "rounds", "test_size",
           "score", "threshold", "favourable", "margin", "confidence")  # fmt: skip


@command(
    "fairmatch alternatives people.csv --target repaid --positive yes --sensitive sex "
    "--out page.html"
)
def alternatives(asked: Any) -> None:
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

    y_score, criterion, seed = asked.y_score, asked.criterion, asked.random_state
    sees_groups = not asked.without_sensitive
    if asked.favourable == "low" and criterion == "equal_opportunity":
        raise InputError(
            "--criterion equal_opportunity compares people with the positive label, and with "
            "--favourable low the positive label is the bad one. Choose equalized_odds, or name "
            "the good label with --positive and leave --favourable out."
        )
    check_page(asked.out)
    check_outputs([asked.table], out=asked.out, json=asked.json)
    require_report()
    if y_score is not None:
        asked.drop = (*asked.drop, y_score)
    table = open_labelled(asked, sees_groups=sees_groups)
    features = categorised(table.features)
    labels, groups = table.frame[table.target], table.groups
    train, test = stratified_split(labels.to_numpy(), read_groups(groups), asked.test_size, seed)
    with follow_steps(len(METHODS) + 2) as step:
        tried = train_candidates(
            features.iloc[train],
            labels.iloc[train],
            sensitive_features=groups.iloc[train],
            criterion=criterion,
            sensitive_at_prediction=sees_groups,
            n_rounds=asked.rounds,
            random_state=seed,
            progress=step,
        )
        rows, own, truth = features.iloc[test], groups.iloc[test], labels.iloc[test]
        # What the search and the description of its models have in common.
        shared = {
            "favourable": asked.favourable,
            "y_true": truth,
            "sensitive_features": own,
            "pos_label": tried[0].model.classes_[1],
            "confidence": asked.confidence,
            "random_state": seed,
        }
        seen = own if sees_groups else None
        scores = {
            one.name: one.model.predict_proba(rows, sensitive_features=seen)[:, 1] for one in tried
        }
        given = None
        if y_score is not None:
            column = read_numbers(table.frame[y_score].iloc[test], "y_score")
            if not np.isfinite(column).all():
                raise InputError(f"--score: column {y_score!r} must hold a number in every row.")
            given = (column >= asked.threshold).astype(float)
        found = find_alternatives(
            scores,
            baseline=given,
            gap_measure=read_criterion(criterion).gap_measure,
            margin=asked.margin,
            methods={one.name: (one.method, one.setting) for one in tried},
            **shared,
        )
        file = Path(asked.table)
        search = Search(
            version=__version__,
            seed=seed,
            source=file.name,
            source_sha256=sha256(file.read_bytes()).hexdigest() if file.is_file() else None,
            n_training=len(train),
            n_choosing=0,
            n_test=len(test),
            uses_group=sees_groups,
            needing_group=tuple(
                name for name, method in METHODS.items() if sees_groups and method.needs_group
            ),
            settings={name: getattr(asked, name, None) for name in _STATED}
            | {
                "target": table.target,
                "sensitive": ", ".join(table.attributes),
                "left_out": ", ".join(table.left_out) or None,
                "score": y_score,
                "threshold": None if y_score is None else asked.threshold,
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
            X=rows,
            keep=list(rows.columns),  # which columns are used was settled before the training
            title=asked.title,
            author=asked.author,
            date=asked.date,
            purpose=asked.purpose,
            **shared,
        )
    page = write_report(
        comparison,
        asked.out,
        alternatives=found,
        individuals=not asked.no_individuals,
        title=asked.title or "Search for less discriminatory alternatives",
    )
    print(f"Written: {page}")
    if asked.json is not None:
        print(f"Written: {write_whole(asked.json, found.to_json(indent=1) + chr(10))}")


def _print(found: Alternatives) -> None:
    baseline = [found.baseline, f"{found.accuracy:.4f}", f"{found.gap:.4f}", "", "baseline"]
    rows = [
        [
            one.name,
            f"{one.accuracy:.4f}",
            f"{one.gap:.4f}",
            f"{one.gap_change.low:+.3f} to {one.gap_change.high:+.3f}",
            one.verdict,
        ]
        for one in found.tried
    ]
    names = ["model", "accuracy", "gap", "change of the gap", "less discriminatory"]
    print_table(names, [baseline, *rows])
    print(found.sentence())
