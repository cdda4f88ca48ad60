"""The command ``fairmatch adjust``: make the scores of any model alike in all groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fairmatch.cli.options import command, read_cut
from fairmatch.cli.printing import print_roles, print_table
from fairmatch.exceptions import InputError, LabelError

if TYPE_CHECKING:
    import pandas as pd

    from fairmatch.learning.adjust import ScoreAdjustment
    from fairmatch.people.checks import BoolArray, FloatArray

# A column that is added to the table.
DECISION = "adjusted_decision"
# Options that say how scores are adjusted.
_SETTINGS = ("max_gap", "strength", "criterion", "decisions", "scale", "small_groups", "unknown")
# A gap that full alignment leaves is printed from this size on.
_SMALL = 0.005


@command(
    "fairmatch adjust scores.csv --score score --sensitive sex --max-gap 0.02 --out adjusted.csv"
)
def adjust(asked: Any) -> None:
    """Make the score distributions of groups more similar, for any model.

    TABLE is a .csv or .parquet file with a row for every person.
    """
    import numpy as np
    import pandas as pd

    from fairmatch.learning.adjust import ScoreAdjustment, fit_adjustment
    from fairmatch.people.bands import bands
    from fairmatch.people.checks import check_names, read_numbers
    from fairmatch.people.files import check_outputs, read_table, write_table
    from fairmatch.people.outcome import class_places, largest_class
    from fairmatch.people.roles import Roles, split_names

    # What was typed about the adjustment; everything else is the library's default.
    how = {name: own for name in _SETTINGS if (own := getattr(asked, name)) is not None}
    ready, save = asked.ready, asked.save
    check_outputs([asked.table, *([ready] if ready else [])], out=asked.out, save=save)
    _refuse_contradictions(how, ready, save)
    adjustment = ScoreAdjustment.load(ready) if ready else None
    # Groups are read as text, so that a saved adjustment finds them again in any file.
    cuts = dict(map(read_cut, asked.bands))
    named = asked.sensitive_features
    texts = sorted({*named, *split_names(named, ())} - set(cuts))
    frame = read_table(asked.table, text=texts, **asked.reading)
    known = list(frame.columns)
    attributes = split_names(named, known)
    columns = split_names(asked.y_score, known, "y_score")
    classes = _classes(columns, split_names(asked.classes, ()), asked.favourable)
    if asked.classes and (places := class_places(columns, classes)) is not None:
        columns = [columns[place] for place in places]
    several = len(columns) > 1
    if asked.y_true is None and not several:  # rates of several classes are expected ones
        _need_labels(how)
    if asked.favourable:
        how["favourable"] = split_names(asked.favourable, classes)
    roles = Roles(
        scores=columns,
        sensitive=attributes,
        label=asked.y_true,
        weight=asked.sample_weight,
        features=(),
    ).read(frame, name=asked.table)
    written = [f"adjusted_{name}" for name in columns] if several else ["adjusted_score"]
    for name in (*written, DECISION):
        if name in known:
            raise InputError(
                f"{asked.table} has a column {name}, which would be overwritten. Rename it."
            )
    print_roles(roles)
    check_names(list(cuts), attributes, table="--sensitive")
    cut = {name: np.asarray(bands(frame[name], **own)) for name, own in cuts.items()}
    groups = _groups(frame.assign(**cut), attributes)
    names = split_names(asked.given, known, "given")
    check_names(names, known, table=asked.table)
    factors = frame[names] if names else None
    scale = how.get("scale", "probability") if adjustment is None else adjustment.scale
    numbers = [_scores(frame, name, scale, ready) for name in columns]
    scores = pd.DataFrame(dict(zip(classes, numbers, strict=True))) if several else numbers[0]
    truth = _truth(frame, asked.y_true, asked.pos_label, several=several)
    weights = asked.sample_weight and read_numbers(frame[asked.sample_weight], "sample_weight")
    if adjustment is None:
        adjustment = fit_adjustment(
            scores, groups, y_true=truth, sample_weight=weights, given=factors, **how
        )
    adjusted = adjustment.apply(scores, groups, factors)
    added: dict[str, Any] = dict(zip(written, adjusted.T if several else [adjusted], strict=True))
    if several:
        added[DECISION] = np.array(classes, dtype=object)[largest_class(adjusted)]
    elif adjustment.scale == "probability":
        added[DECISION] = (adjusted >= 0.5).astype(int)
    write_table(frame.assign(**added), asked.out)
    if "max_gap" in how:
        where = " in every stratum" if names else ""
        print(f"--max-gap {how['max_gap']:g} bounds {_bounded(how, several=several)}{where}.")
    if names:
        print(f"Gaps are those within the levels of {', '.join(names)}.")
    ordered = bool(asked.classes) and not asked.unordered
    _print_gaps(adjustment, scores, adjusted, groups, truth, weights, factors, ordered=ordered)
    if not (ready or names):
        _print_remaining(adjustment)
    print(f"{len(frame):,} rows with {' and '.join(added)} in {asked.out}")
    if save:
        print(f"Adjustment: {adjustment.save(save)}")


def _classes(
    columns: Sequence[str], classes: Sequence[str], favourable: Sequence[str]
) -> Sequence[str]:
    """Return the class of every column, or raise if there are not as many."""
    if len(columns) == 2:
        raise InputError(
            "--score names two columns. Name one score for two classes, and a column for each of "
            "more."
        )
    if (classes or favourable) and len(columns) == 1:
        raise InputError(
            f"--{'classes' if classes else 'favourable'} is for more than two classes, but "
            "--score names one column. Name a column for each class, or leave it out."
        )
    if classes and len(classes) != len(columns):
        raise InputError(
            f"--classes names {len(classes)} classes, and --score {len(columns)} columns. Name one "
            "column for each class, in the same order."
        )
    return classes or columns


def _refuse_contradictions(how: dict[str, Any], ready: str | None, save: str | None) -> None:
    """Raise if options contradict each other."""
    if "max_gap" in how and "strength" in how:
        raise InputError("--max-gap and --strength both set how far to adjust. Leave one out.")
    for name in [*how, *(["save"] if save else [])] if ready else []:
        raise InputError(
            f"--{name.replace('_', '-')} was given, but --with {ready} applies an adjustment that "
            "is already fitted. Leave one of the two out."
        )


def _need_labels(how: dict[str, Any]) -> None:
    """Raise if an adjustment of two classes needs labels."""
    from fairmatch.people.groups import read_criterion

    by_threshold = how.get("decisions") == "threshold"
    criterion = read_criterion(how.get("criterion", "demographic_parity"))
    if by_threshold or criterion.needs_labels:
        what = (
            "--decisions threshold looks for the most accurate thresholds"
            if by_threshold
            else f"--criterion {how['criterion']} compares people of the same label"
        )
        raise LabelError(
            f"{what}, and no labels are named. Name the column of the labels with --label."
        )


def _bounded(how: dict[str, Any], *, several: bool) -> str:
    """Return which gap ``--max-gap`` bounds, in words."""
    from fairmatch.people.groups import read_criterion

    criterion = read_criterion(how.get("criterion", "demographic_parity"))
    if several:
        return f"the {criterion.gap_measure} over all classes"
    if how.get("scale") not in ("rank", "real"):
        named = f"the {criterion.gap_measure}"
        if len(criterion.labels) > 1:  # their mean is the measure, and both are bounded
            named = "the larger of true_positive_gap and false_positive_gap"
        return f"{named} at the threshold 0.5"
    what = "ranks" if how["scale"] == "rank" else "scores, in their unit"
    whose = ", among people with the positive label" if criterion.needs_labels else ""
    return f"the wasserstein_parity_gap of adjusted {what}{whose}"


def _groups(frame: pd.DataFrame, columns: Sequence[str]) -> Any:
    """Return the groups as text; None where there is none."""
    texts = frame[list(columns)].astype("string").astype(object)
    texts = texts.where(texts.notna(), None)
    return texts[columns[0]].to_numpy() if len(columns) == 1 else texts


def _scores(frame: pd.DataFrame, name: str, scale: str, ready: str | None) -> Any:
    """Return the scores, or raise if they are missing, words or out of range."""
    column = frame[name]
    _refuse_missing(frame, name, "a score")
    if column.dtype.kind not in "biuf":
        raise InputError(
            f"Column {name} holds words, such as {column.iloc[0]!r}, but scores are numbers. Name "
            "a column of numbers with --score; --decimal and --missing set how numbers are "
            "written."
        )
    scores = column.to_numpy()
    if scale == "probability" and not (scores.min() >= 0.0 and scores.max() <= 1.0):
        ways = (
            "Divide percentages by 100, or choose a scale: --scale rank uses only the order, and "
            "--scale real adjusts numbers in their own unit."
            if ready is None
            else f"{ready} adjusts probabilities. Apply it to scores of the same model."
        )
        raise InputError(
            f"Column {name} holds numbers from {scores.min():g} to {scores.max():g}, and "
            f"probabilities lie in [0, 1]. {ways}"
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


def _truth(frame: pd.DataFrame, label: str | None, positive: str | None, *, several: bool) -> Any:
    """Return the class of each person as text, or of two classes whether it is the positive one."""
    from fairmatch.people.files import find_positive

    if label is None:
        return None
    _refuse_missing(frame, label, "a label")
    if several:
        return frame[label].astype(str).to_numpy()
    value = find_positive(frame[label], positive, "pos_label", f"the values of column {label!r}")
    return (frame[label] == value).to_numpy(dtype=bool)


def _print_gaps(
    adjustment: ScoreAdjustment,
    scores: Any,
    adjusted: FloatArray,
    groups: Any,
    truth: Any,
    weights: FloatArray | None,
    factors: pd.DataFrame | None,
    *,
    ordered: bool,
) -> None:
    """Print every gap before and after the adjustment, where there are groups to compare."""
    import numpy as np
    import pandas as pd

    from fairmatch.measures import gap_table
    from fairmatch.people.outcome import largest_class

    several = adjustment.n_classes > 2
    what = "offsets by group" if several else "thresholds by group"
    what = what if adjustment.decisions == "threshold" else "alignment"
    shown = "; ".join(map(str, adjustment.labels))
    used = [one.strength for one in adjustment.within.values()] or [adjustment.strength]
    strengths = " to ".join(f"{end:g}" for end in sorted({min(used), max(used)}))
    print(f"{what}, strength {strengths}, of the groups {shown}")
    names = _names(groups, adjustment)
    known = np.array([name is not None for name in names])
    present = sorted(set(names[known]))
    if len(present) < 2:
        only = "; ".join(present)
        print(f"The table holds one group only ({only}), so there is no gap to measure.")
        return
    scores, adjusted = scores[known], adjusted[known]
    truth, weights = (None if own is None else own[known] for own in (truth, weights))
    given = {
        "sensitive_features": names[known],
        "sample_weight": weights,
        "given": None if factors is None else factors[known],
    }

    def measured(own: Any) -> dict[str, float]:
        if not several and adjustment.scale != "probability":
            # There are no decisions, and gaps have the unit of the results.
            return gap_table(None, own, kind="number", **given)
        if several:
            own = pd.DataFrame(np.asarray(own), columns=scores.columns)
            found = gap_table(truth, own, classes=list(own) if ordered else None, **given)
            decided = scores.columns.to_numpy()[largest_class(own.to_numpy())]
        else:
            found, decided = _gaps(truth, own, given), own >= 0.5
        if truth is not None:
            found["accuracy"] = float(np.average(decided == truth, weights=weights))
        return found

    if not several and adjustment.scale != "probability":
        scores = adjustment.parts.start(np.asarray(scores, dtype=np.float64))  # type: ignore[union-attr]
    both = [measured(scores), measured(adjusted)]
    rows = [[name, *(f"{found[name]:.4f}" for found in both)] for name in both[0]]
    print_table(["", "before", "after"], rows)


def _names(groups: Any, adjustment: ScoreAdjustment) -> Any:
    """Return each row's group as an adjustment calls it; None where it compares the row with none.

    Unlike a table of attributes, one column of names can be compared where an attribute is
    constant.
    """
    import pandas as pd

    from fairmatch.people.groups import OTHER, UNKNOWN

    labels, ignored = adjustment.labels, adjustment.ignored
    names = pd.DataFrame(groups).fillna(UNKNOWN).agg(", ".join, axis=1).astype(object)
    pooled = OTHER if OTHER in labels else None
    names = names.where(names.isin([*labels, *ignored]), pooled)
    return names.mask(names.isin(ignored), None).to_numpy()


def _gaps(positive: BoolArray | None, scores: Any, given: dict[str, Any]) -> dict[str, float]:
    """Return the gaps of probabilities that need no matching."""
    from math import isnan

    from fairmatch.measures.gaps import read_scored
    from fairmatch.measures.registry import gap_values

    try:
        scored = read_scored(scores, **given, y_true=positive)
    except LabelError:  # the rows lack a class
        scored = read_scored(scores, **given)
    found = gap_values(scored.people, scored.scores, undefined=positive is not None)
    # The total variation between scores that nobody shares is 1, whatever they are.
    del found["total_variation_parity_gap"]
    return {name: value for name, value in found.items() if not isnan(value)}


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
        f"{why} Even after full alignment, the shares of two groups above some score differ by "
        f"{parts.remaining_gap:.3f}."
    )
