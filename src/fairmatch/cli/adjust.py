"""The command ``fairmatch adjust``: make the scores of any model alike in all groups."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fairmatch.cli.command import (
    Command,
    add_reading,
    add_sensitive,
    print_roles,
    print_table,
    reading,
)
from fairmatch.exceptions import InputError, LabelError
from fairmatch.people.files import check_outputs

if TYPE_CHECKING:
    import pandas as pd

    from fairmatch.learning.adjust import ScoreAdjustment
    from fairmatch.people.checks import BoolArray, FloatArray

# Columns that are added to the table.
SCORE, DECISION = "adjusted_score", "adjusted_decision"
# A gap that full alignment leaves is printed from this size on.
_SMALL = 0.005


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("table", metavar="TABLE", help="a .csv or .parquet file with a row for every person")
    add("--score", required=True, metavar="COL", help="the scores of a model")
    add_sensitive(parser, "the group of each person", required=True)
    add("--label", metavar="COL", help="the outcome; needed for thresholds and criteria by label")
    add("--positive", default="1", metavar="VALUE", help="the label that is positive (default: 1)")
    add("--weight", metavar="COL", help="the weight of each person")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--max-gap",
        type=float,
        metavar="GAP",
        help="adjust only to this gap: the criterion's, of decisions at the threshold 0.5 (the "
        "larger of two with equalized_odds); with --scale rank or real, the Wasserstein gap of "
        "the adjusted scores",
    )
    how.add_argument("--strength", type=float, help="how far to adjust, from 0 to 1 (default: 1)")
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
        help="what scores are: probabilities in [0, 1], numbers whose order alone counts, or "
        "numbers in a unit of their own (default: probability)",
    )
    add(
        "--small-groups",
        choices=("error", "pool", "ignore"),
        help="groups below --min-group-size: refuse them, pool them as 'other', or leave their "
        "scores as they are (default: error)",
    )
    add(
        "--min-group-size",
        type=int,
        metavar="N",
        help="fewest rows of a group that is not small (default: 2)",
    )
    add("--out", required=True, metavar="FILE", help=f"write the table with a column {SCORE}")
    add("--save", metavar="FILE.json", help="save the adjustment, for --with")
    add_reading(parser)


def _run(arguments: argparse.Namespace) -> int:
    from fairmatch.datasets.catalogue import split_names
    from fairmatch.learning.adjust import ScoreAdjustment, fit_adjustment
    from fairmatch.people.checks import read_numbers
    from fairmatch.people.files import read_table, write_table
    from fairmatch.people.roles import Roles

    read = [arguments.table, *([arguments.ready] if arguments.ready else [])]
    check_outputs(read, {"--out": arguments.out, "--save": arguments.save})
    _refuse_contradictions(arguments)
    _check_numbers(arguments)
    ready = ScoreAdjustment.load(arguments.ready) if arguments.ready else None
    texts = {*arguments.sensitive, *split_names(arguments.sensitive, ())}
    frame = read_table(arguments.table, **reading(arguments, ids=sorted(texts)))
    attributes = split_names(arguments.sensitive, list(frame.columns))
    roles = Roles(
        scores=[arguments.score],
        sensitive=attributes,
        label=arguments.label,
        weight=arguments.weight,
        features=(),
    ).read(frame, name=arguments.table)
    for name in (SCORE, DECISION):
        if name in frame.columns:
            raise InputError(
                f"{arguments.table} has a column {name}, which would be overwritten. Rename it."
            )
    print_roles(roles)
    groups = _groups(frame, attributes)
    scores = _scores(frame, arguments, ready)
    positive = _positive(frame, arguments.label, arguments.positive)
    weights = None if arguments.weight is None else read_numbers(frame[arguments.weight], "weight")
    adjustment = ready
    if adjustment is None:
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
            **_sizes(arguments),
        )
    adjusted = adjustment.apply(scores, groups)
    added = {SCORE: adjusted}
    if adjustment.scale == "probability":
        added[DECISION] = (adjusted >= 0.5).astype(int)
    write_table(frame.assign(**added), arguments.out)
    if arguments.max_gap is not None:
        print(f"--max-gap {arguments.max_gap:g} bounds {_bounded(arguments)}.")
    _print_gaps(adjustment, scores, adjusted, groups, positive, weights)
    if not arguments.ready:
        _print_remaining(adjustment)
    print(f"{len(frame):,} rows with {' and '.join(added)} in {arguments.out}")
    if arguments.save:
        print(f"Adjustment: {adjustment.save(arguments.save)}")
    return 0


def _check_numbers(arguments: argparse.Namespace) -> None:
    """Raise if a number is out of range, or labels are needed and not named."""
    from fairmatch.people.checks import check_count, check_number
    from fairmatch.people.groups import read_criterion

    check_count("--min-group-size", arguments.min_group_size, optional=True)
    if arguments.max_gap is not None:
        check_number(
            "--max-gap", arguments.max_gap, "[0, inf)" if arguments.scale == "real" else "[0, 1]"
        )
    if arguments.strength is not None:
        check_number("--strength", arguments.strength, "[0, 1]")
    by_label = arguments.criterion and read_criterion(arguments.criterion).needs_labels
    if arguments.label is None and (by_label or arguments.decisions == "threshold"):
        what = (
            "--decisions threshold looks for the most accurate thresholds"
            if arguments.decisions == "threshold"
            else f"--criterion {arguments.criterion} compares people of the same label"
        )
        raise LabelError(
            f"{what}, and no labels are named. Name the column of the labels with --label."
        )


def _refuse_contradictions(arguments: argparse.Namespace) -> None:
    """Raise if an option contradicts a saved adjustment."""
    if not arguments.ready:
        return
    for name in ("criterion", "decisions", "scale", "min_group_size", "small_groups", "save"):
        if getattr(arguments, name) is not None:
            raise InputError(
                f"--{name.replace('_', '-')} was given, and --with {arguments.ready} applies an "
                "adjustment that is already fitted. Leave one of the two out."
            )


def _bounded(arguments: argparse.Namespace) -> str:
    """Return which gap ``--max-gap`` bounds, in words."""
    from fairmatch.people.groups import read_criterion

    criterion = read_criterion(arguments.criterion or "demographic_parity")
    if arguments.scale not in ("rank", "real"):
        named = f"the {criterion.gap_measure}"
        if len(criterion.labels) > 1:  # their mean is the measure, and both are bounded
            named = "the larger of true_positive_gap and false_positive_gap"
        return f"{named} at the threshold 0.5"
    what = "ranks" if arguments.scale == "rank" else "scores, in their unit"
    whose = ", among people with the positive label" if criterion.needs_labels else ""
    return f"the wasserstein_parity_gap of adjusted {what}{whose}"


def _sizes(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what was typed about small groups."""
    given = {name: getattr(arguments, name) for name in ("min_group_size", "small_groups")}
    return {name: value for name, value in given.items() if value is not None}


def _groups(frame: pd.DataFrame, columns: Sequence[str]) -> Any:
    """Return the groups as text; a saved adjustment finds them again in any file."""
    for name in columns:
        _refuse_missing(frame, name, "a group")
    texts = frame[list(columns)].astype(str)
    return texts[columns[0]].to_numpy() if len(columns) == 1 else texts


def _names(groups: Any, labels: Sequence[Any]) -> Any:
    """Return each row's group as an adjustment calls it; None where it compares the row with none.

    Unlike a table of attributes, one column of names can be compared where an attribute is
    constant.
    """
    import pandas as pd

    from fairmatch.people.groups import OTHER

    names = pd.Series(groups) if groups.ndim == 1 else groups.iloc[:, 0]
    if groups.ndim > 1:
        names = names.str.cat(groups.iloc[:, 1:], sep=", ")
    names = names.astype(object)
    return names.where(names.isin(labels), OTHER if OTHER in labels else None).to_numpy()


def _scores(
    frame: pd.DataFrame, arguments: argparse.Namespace, ready: ScoreAdjustment | None
) -> Any:
    """Return the scores, or raise if they are missing, words or out of range."""
    column = frame[arguments.score]
    _refuse_missing(frame, arguments.score, "a score")
    if column.dtype.kind not in "biuf":
        raise InputError(
            f"Column {arguments.score} holds words, such as {column.iloc[0]!r}, and scores are "
            "numbers. Name a column of numbers with --score; --decimal and --missing set how "
            "numbers are written."
        )
    scores = column.to_numpy()
    scale = (arguments.scale or "probability") if ready is None else ready.scale
    if scale == "probability" and not (scores.min() >= 0.0 and scores.max() <= 1.0):
        ways = (
            "Divide percentages by 100, or choose a scale: --scale rank uses the order alone, and "
            "--scale real adjusts numbers in their own unit."
            if ready is None
            else f"{arguments.ready} adjusts probabilities. Apply it to scores of the same model."
        )
        raise InputError(
            f"Column {arguments.score} holds numbers from {scores.min():g} to {scores.max():g}, "
            f"and probabilities lie in [0, 1]. {ways}"
        )
    return scores


def _refuse_missing(frame: pd.DataFrame, name: str, what: str) -> None:
    missing = frame[name].isna()
    if missing.any():
        raise InputError(
            f"Column {name} is missing in {int(missing.sum())} rows (the first in row "
            f"{int(missing.to_numpy().argmax())}, counted from 0). Every person needs {what}. Fill "
            "in the values, or leave these rows out."
        )


def _positive(frame: pd.DataFrame, label: str | None, written: str) -> BoolArray | None:
    from fairmatch.people.files import find_value

    if label is None:
        return None
    _refuse_missing(frame, label, "a label")
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
    """Print every gap before and after the adjustment, where there are groups to compare."""
    import numpy as np

    from fairmatch.measures.registry import real_gaps

    what = "thresholds by group" if adjustment.decisions == "threshold" else "alignment"
    print(f"{what}, strength {adjustment.strength:g}, of the groups {_shown(adjustment.labels)}")
    names = _names(groups, adjustment.labels)
    known = np.array([name is not None for name in names])
    present = sorted(set(names[known]))
    if len(present) < 2:
        print(f"The table holds one group only ({_shown(present)}), so there is no gap to measure.")
        return
    scores, adjusted = scores[known], adjusted[known]
    positive, weights = (None if own is None else own[known] for own in (positive, weights))
    given = {"sensitive_features": names[known], "sample_weight": weights}
    if adjustment.scale == "probability":
        both = [_gaps(positive, s, given) for s in (scores, adjusted)]
        if positive is not None:
            for found, s in zip(both, (scores, adjusted), strict=True):
                found["accuracy"] = float(np.average((s >= 0.5) == positive, weights=weights))
    else:  # there are no decisions, and gaps have the unit of the results
        start = adjustment.parts.start(np.asarray(scores, dtype=np.float64))  # type: ignore[union-attr]
        both = [real_gaps(s, **given) for s in (start, adjusted)]
    rows = [[name, *(f"{found[name]:.4f}" for found in both)] for name in both[0]]
    print_table(["", "before", "after"], rows)


def _gaps(positive: BoolArray | None, scores: Any, given: dict[str, Any]) -> dict[str, float]:
    """Return the gaps of probabilities that need no matching."""
    from fairmatch.measures import MEASURES

    found = {}
    for name, measure in MEASURES.items():
        # The total variation between scores that nobody shares is 1, whatever they are.
        if name in ("matched_parity_gap", "total_variation_parity_gap"):
            continue
        if measure.needs_labels and positive is None:
            continue
        try:
            found[name] = measure.function(positive, scores, **given)
        except LabelError:
            continue  # a group has no rows of a class
    return found


def _print_remaining(adjustment: ScoreAdjustment) -> None:
    """Print the gap that full alignment leaves on the rows of the fit, where it is not small."""
    from fairmatch.learning.adjust import Alignment

    parts = adjustment.parts
    if not isinstance(parts, Alignment) or parts.remaining_gap < _SMALL:
        return
    why = "Groups of different sizes or weights cannot be aligned exactly."
    if parts.tied is not None and parts.tied.any():
        why = "People of a group with equal scores keep equal scores."
    print(
        f"{why} Even full alignment leaves shares of two groups above some score that differ by "
        f"{parts.remaining_gap:.3f}."
    )


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
