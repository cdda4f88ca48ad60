"""Periods and stages: how gaps change from one period to the next, and where people drop out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np
from scipy.special import ndtr, ndtri

from fairmatch.auditing.facts import Change, Estimate, PartFacts, StageFacts
from fairmatch.auditing.gaps import base_label, describe_groups, selection_ratio, take_gaps
from fairmatch.auditing.impact import impact_tables
from fairmatch.auditing.people import Audited
from fairmatch.exceptions import InputError
from fairmatch.measures.contingency import holm
from fairmatch.measures.registry import Measure, of_averages
from fairmatch.people.checks import (
    BoolArray,
    check_length,
    is_missing,
    read_column,
    sorted_values,
)
from fairmatch.people.strata import Codes

_MOST_PERIODS = 100


def part_facts(data: Audited, name: str) -> PartFacts:
    """Return the facts about some people by themselves: rates, ratio and gaps."""
    gaps, by_pair = take_gaps(data)
    return PartFacts(
        name=name,
        groups=describe_groups(data),
        selection_ratio=selection_ratio(data),
        gaps=gaps,
        pair_gaps=by_pair,
        reference=data.labels[data.reference],
        unknown=tuple(data.labels[code] for code in data.groups.apart),
        ratio_reference=base_label(data),
    )


def read_periods(by: Any, X: Any, n_rows: int) -> Codes:
    """Return the period of every row, in order; -1 for rows without one."""
    column = read_column(_named(by, X), "by")
    check_length(column, n_rows, "by")
    known = np.flatnonzero(~is_missing(column))
    values = column[known].tolist()
    levels = sorted_values(set(values))
    if not 1 < len(levels) <= _MOST_PERIODS:
        raise InputError(
            f"by has {len(levels)} different values, but an audit by period needs 2 to "
            f"{_MOST_PERIODS}. Name a column such as the year, or round dates to months.",
            parameter="by",
        )
    codes = np.full(n_rows, -1, dtype=np.intp)
    codes[known] = [levels.index(value) for value in values]
    return Codes(codes, tuple(map(str, levels)))


def _named(by: Any, X: Any) -> Any:
    """Return the column of X that is named, or what was given."""
    if not isinstance(by, str):
        return by
    if not nw.dependencies.is_into_dataframe(X) or by not in nw.from_native(X).columns:
        raise InputError(
            f"by={by!r} is not a column of X. Name one of its columns, or pass the period of every "
            "row.",
            parameter="by",
        )
    return nw.from_native(X, eager_only=True)[by].to_native()


def period_facts(data: Audited, periods: Codes) -> tuple[tuple[PartFacts, ...], tuple[Change, ...]]:
    """Return the facts of every period, and the changes between consecutive ones."""
    parts = [data.among_rows(periods.values == k) for k in range(len(periods.labels))]
    facts = tuple(
        part_facts(part, label) for part, label in zip(parts, periods.labels, strict=True)
    )
    every = [
        change
        for (before, after), labels in zip(pairwise(parts), pairwise(periods.labels), strict=True)
        for measure in _differences(data)
        for change in _changes(before, after, labels, measure)
    ]
    adjusted = holm([change.p_value for change in every]).tolist()
    return facts, tuple(
        replace(change, p_adjusted=own) for change, own in zip(every, adjusted, strict=True)
    )


def undated_note(data: Audited, periods: Codes) -> tuple[str, ...]:
    """Return a note on the people without a period, if there are any."""
    n_people = data.weights.take(periods.values < 0).people
    return (
        (f"{n_people:,} people have no period, and are in none of the periods.",)
        if n_people
        else ()
    )


def _differences(data: Audited) -> list[Measure]:
    """Return the measures that are a difference of two rates, or of two means."""
    has_labels = data.people.positive is not None
    return [
        measure
        for measure in of_averages(decides=data.decides).values()
        if measure.is_difference and (has_labels or not measure.needs_labels)
    ]


def _changes(
    before: Audited, after: Audited, labels: tuple[str, str], measure: Measure
) -> list[Change]:
    """Return the change of each group's difference from the reference group."""
    found, (label,) = [], measure.labels
    reference = after.reference  # that of all people
    for code in after.compared:
        if code == reference or not {code, reference} <= set(before.compared):
            continue
        levels = [
            _level(own, measure, one, label) for own in (before, after) for one in (code, reference)
        ]
        if min(size for _, _, size in levels) < after.settings.min_group_size:
            continue
        first, second = (levels[k][0] - levels[k + 1][0] for k in (0, 2))
        error = float(np.sqrt(sum(variance for _, variance, _ in levels)))
        half = -float(ndtri((1.0 - after.settings.confidence) / 2.0)) * error
        change = second - first
        found.append(
            Change(
                before=labels[0],
                after=labels[1],
                group=after.labels[code],
                reference=after.labels[reference],
                measure=measure.name,
                differences=(first, second),
                change=Estimate(change, change - half, change + half),
                p_value=2.0 * float(ndtr(-abs(change) / error)),
            )
        )
    return found


def _level(
    data: Audited, measure: Measure, code: int, label: bool | None
) -> tuple[float, float, float]:
    """Return the rate or the mean of a group, the variance of it, and the number of people."""
    if measure.needs_decisions:
        hits, size = data.scored.counts(code, label)
        # With one more hit and one more miss no variance is 0. They are no further people: dividing
        # by size + 2 would make the variance of 30 people too small.
        rate, size_at_least = (hits + 1.0) / (size + 2.0), max(size, 1)
        return hits / size_at_least, rate * (1.0 - rate) / size_at_least, size
    part = data.scored.part(code, label)
    moments = part.weights.moments(part.values)
    return moments.mean, moments.error(data.width), moments.size


def read_stages(stages: Any) -> tuple[list[str], list[BoolArray]]:
    """Return the names of the stages, and who reached each."""
    if not nw.dependencies.is_into_dataframe(stages):
        stages = {str(name): own for name, own in dict(stages).items()}
        names, columns = list(stages), list(stages.values())
    else:
        table = nw.from_native(stages, eager_only=True)
        names, columns = list(table.columns), [table[name].to_native() for name in table.columns]
    if len(names) < 2:
        raise InputError(
            "stages needs at least two columns of decisions, in the order of the stages, such as "
            "applied, interviewed and hired.",
            parameter="stages",
        )
    reached = [_decisions(own, name) for name, own in zip(names, columns, strict=True)]
    for (first, before), (second, after) in pairwise(zip(names, reached, strict=True)):
        check_length(after, len(before), "stages")
        if n_skipped := int((after & ~before).sum()):
            raise InputError(
                f"{n_skipped:,} people are 1 in {second!r} but not in {first!r}. A person reaches "
                "a stage only through the stages before it: correct the columns or their order.",
                parameter="stages",
            )
    return names, reached


def _decisions(column: Any, name: str) -> BoolArray:
    values = read_column(column, "stages")
    missing = is_missing(values)
    known = values[~missing].tolist()
    if not set(known) <= {0, 1, "0", "1"}:
        odd = next(value for value in known if value not in (0, 1, "0", "1"))
        raise InputError(
            f"Column {name!r} of stages holds {odd!r}. Write 1 for people who reached the stage "
            "and 0 for the others.",
            parameter="stages",
        )
    reached = np.zeros(len(values), dtype=bool)
    reached[~missing] = [str(int(value)) == "1" for value in known]
    return reached


def stage_facts(
    data: Audited, names: Sequence[str], reached: Sequence[BoolArray]
) -> tuple[StageFacts, ...]:
    """Return the tables of each stage among people of the stage before, and of all stages."""
    found = []
    steps = [(k - 1, k) for k in range(1, len(names))] + [(0, len(names) - 1)] * (len(names) > 2)
    for before, after in steps:
        own = data.among_rows(reached[before], reached[after].astype(np.float64))
        found.append(StageFacts(names[after], names[before], impact_tables(own)))
    return tuple(found)
