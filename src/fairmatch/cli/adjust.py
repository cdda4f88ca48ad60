"""The command ``fairmatch adjust``: scores of any model made alike in all groups."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fairmatch.cli.command import Command
from fairmatch.cli.output import print_table
from fairmatch.exceptions import InputError, LabelError
from fairmatch.storage.atomic import check_outputs

if TYPE_CHECKING:
    import pandas as pd

    from fairmatch.learning.anymodel.adjustment import ScoreAdjustment
    from fairmatch.tables.arrays import BoolArray, FloatArray

# What is added to the table.
SCORE, DECISION = "adjusted_score", "adjusted_decision"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("table", metavar="TABLE", help="a .csv or .parquet file with a row for every person")
    add("--score", required=True, metavar="COL", help="the scores of a model")
    add("--sensitive", required=True, nargs="+", metavar="COL", help="the group of each person")
    add("--label", metavar="COL", help="the outcome; needed for thresholds and criteria by label")
    add("--positive", default="1", metavar="VALUE", help="the label that is positive (default: 1)")
    add("--weight", metavar="COL", help="the weight of each person")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--max-gap", type=float, metavar="GAP", help="go as far as this gap asks for")
    how.add_argument("--strength", type=float, help="how far to go, from 0 to 1 (default: 1)")
    how.add_argument("--with", dest="ready", metavar="FILE", help="apply a saved adjustment")
    add(
        "--criterion",
        choices=("demographic_parity", "equal_opportunity", "equalized_odds"),
        help="whose scores are made alike (default: demographic_parity)",
    )
    add(
        "--decisions",
        choices=("align", "threshold"),
        help="align scores, or set the most accurate thresholds by group (default: align)",
    )
    add(
        "--scale",
        choices=("probability", "rank", "real"),
        help="what scores are: in [0, 1], any numbers of which the rank counts, or numbers in a "
        "unit of their own (default: probability)",
    )
    add("--out", required=True, metavar="FILE", help=f"the table with a column {SCORE}")
    add("--save", metavar="FILE.json", help="keep the adjustment, for --with")


def _run(arguments: argparse.Namespace) -> int:
    from fairmatch.learning.anymodel.adjustment import ScoreAdjustment, fit_adjustment
    from fairmatch.tables.arrays import read_numbers
    from fairmatch.tables.files import check_column, read_table, write_table

    read = [arguments.table, *([arguments.ready] if arguments.ready else [])]
    check_outputs(read, {"--out": arguments.out, "--save": arguments.save})
    _refuse_contradictions(arguments)
    frame = read_table(arguments.table, text=arguments.sensitive)
    named = [arguments.score, *arguments.sensitive, arguments.label, arguments.weight]
    for name in filter(None, named):
        check_column(frame, name, table=arguments.table)
    for name in (SCORE, DECISION):
        if name in frame.columns:
            raise InputError(
                f"{arguments.table} has a column {name}, which would be written over. Rename it."
            )
    groups = _groups(frame, arguments.sensitive)
    scores = frame[arguments.score].to_numpy()
    positive = _positive(frame, arguments.label, arguments.positive)
    weights = None if arguments.weight is None else read_numbers(frame[arguments.weight], "weight")
    if arguments.ready:
        adjustment = ScoreAdjustment.load(arguments.ready)
    else:
        adjustment = fit_adjustment(
            scores,
            groups,
            y_true=positive,
            strength=1.0 if arguments.strength is None else arguments.strength,
            max_gap=arguments.max_gap,
            criterion=arguments.criterion or "demographic_parity",
            decisions=arguments.decisions or "align",
            sample_weight=weights,
            scale=arguments.scale or "probability",
        )
    adjusted = adjustment.apply(scores, groups)
    added = {SCORE: adjusted}
    if adjustment.scale == "probability":
        added[DECISION] = (adjusted >= 0.5).astype(int)
    write_table(frame.assign(**added), arguments.out)
    _print_gaps(adjustment, scores, adjusted, groups, positive, weights)
    print(f"{len(frame):,} rows with {' and '.join(added)} in {arguments.out}")
    if arguments.save:
        print(f"Adjustment: {adjustment.save(arguments.save)}")
    return 0


def _refuse_contradictions(arguments: argparse.Namespace) -> None:
    """Raise where something is given that a saved adjustment already says."""
    if not arguments.ready:
        return
    for name in ("criterion", "decisions", "scale", "save"):
        if getattr(arguments, name) is not None:
            raise InputError(
                f"--{name} was given, and --with {arguments.ready} applies an adjustment that has "
                "been fitted. Leave one of the two out."
            )


def _groups(frame: pd.DataFrame, columns: Sequence[str]) -> Any:
    """Return the groups as text, so that a saved adjustment finds them again in any file."""
    for name in columns:
        missing = frame[name].isna()
        if missing.any():
            raise InputError(
                f"Column {name} is missing in {int(missing.sum())} rows (the first in row "
                f"{int(missing.to_numpy().argmax())}). Every person needs a group: fill them in, "
                "or leave these rows out."
            )
    texts = frame[list(columns)].astype(str)
    return texts[columns[0]].to_numpy() if len(columns) == 1 else texts


def _positive(frame: pd.DataFrame, label: str | None, written: str) -> BoolArray | None:
    from fairmatch.tables.files import find_value

    if label is None:
        return None
    if frame[label].isna().any():
        raise LabelError(f"Column {label} has missing labels. Leave these rows out.")
    values = frame[label].unique().tolist()
    try:
        value = find_value(values, written)
    except LookupError:
        known = ", ".join(map(repr, values[:5]))
        raise LabelError(
            f"Column {label} holds {known}, and not {written!r}. Name the positive label with "
            "--positive."
        ) from None
    found: BoolArray = (frame[label] == value).to_numpy(dtype=bool)
    return found


def _print_gaps(
    adjustment: ScoreAdjustment,
    scores: Any,
    adjusted: FloatArray,
    groups: Any,
    positive: BoolArray | None,
    weights: FloatArray | None,
) -> None:
    """Print what the adjustment changes, gap by gap."""
    import numpy as np

    from fairmatch.exceptions import LabelError
    from fairmatch.measures import MEASURES

    what = "thresholds by group" if adjustment.decisions == "threshold" else "alignment"
    print(f"{what}, strength {adjustment.strength:g}, of the groups {_shown(adjustment.labels)}")
    if adjustment.scale != "probability":
        return  # gaps of scores that are no probabilities have no decisions in them
    given = {"sensitive_features": groups, "sample_weight": weights}
    rows = []
    for name, measure in MEASURES.items():
        if name == "matched_parity_gap" or (measure.needs_labels and positive is None):
            continue
        try:
            gaps = [measure.function(positive, s, **given) for s in (scores, adjusted)]
        except LabelError:
            continue  # a group has no rows of a class
        rows.append([name, *(f"{gap:.4f}" for gap in gaps)])
    if positive is not None:
        right = [np.average((s >= 0.5) == positive, weights=weights) for s in (scores, adjusted)]
        rows.append(["accuracy", *(f"{value:.4f}" for value in right)])
    print_table(["", "before", "after"], rows)


def _shown(labels: Sequence[Any]) -> str:
    return "; ".join(map(str, labels))


COMMAND = Command(
    name="adjust",
    help="Make the scores of any model alike in all groups.",
    example="fairmatch adjust scores.csv --score score --sensitive sex --max-gap 0.02 "
    "--out adjusted.csv",
    add_arguments=_add_arguments,
    run=_run,
)
