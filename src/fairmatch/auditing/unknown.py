"""How far each gap could change if the groups of people without a group were known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fairmatch.auditing.facts import Gap
from fairmatch.auditing.people import Audited
from fairmatch.measures.registry import MEASURES, Measure
from fairmatch.people.checks import BoolArray, FloatArray

Limits = tuple[float, float]
# Values, and the weight of each.
Part = tuple[FloatArray, FloatArray]


def unknown_ranges(
    data: Audited, gaps: Sequence[Gap], by_pair: Sequence[Gap]
) -> tuple[tuple[Gap, ...], tuple[Gap, ...], tuple[str, ...]]:
    """Return gaps with their range over all possible groups of unknown people, and a note.

    The rate or the mean of one group minus that of another is largest if the unknown people with
    the highest values belong to the first and the others to the second. Every value between the
    smallest and the largest difference is possible, up to single people. With more than two groups,
    and for distances between distributions, whose ranges at all thresholds are joined, the range
    may be wider than necessary.
    """
    unknown = np.isin(data.groups.codes, data.groups.apart)
    if not unknown.any() or data.refused:
        return tuple(gaps), tuple(by_pair), ()
    ranges: dict[str, dict[tuple[str, str] | None, Limits]] = {}
    for gap in gaps:
        measure = MEASURES[gap.name]
        # Matched people and intervals of scores have no such range.
        if gap.value is None or measure.needs_coupling or measure.needs_bounds:
            continue
        for codes in data.pairs:
            if own := _pair_range(data, measure, codes, unknown):
                names = data.labels[codes[0]], data.labels[codes[1]]
                ranges.setdefault(gap.name, {})[names] = own
    largest = {
        name: (max(low for low, _ in own.values()), max(high for _, high in own.values()))
        for name, own in ranges.items()
    }
    name, notes = "demographic_parity_gap" if data.decides else "mean_parity_gap", list[str]()
    if name in largest:
        others, (low, high) = data.weights.take(unknown), largest[name]
        notes.append(
            f"The group of {others.people:,} people ({others.total / data.weights.total:.1%}) is "
            f"not known. Depending on their groups, the gap of {MEASURES[name].title.lower()} lies "
            f"between {low:.4f} and {high:.4f}."
        )
    return (
        tuple(replace(gap, unknown_range=largest.get(gap.name)) for gap in gaps),
        tuple(
            replace(gap, unknown_range=ranges.get(gap.name, {}).get(gap.groups)) for gap in by_pair
        ),
        tuple(notes),
    )


def _pair_range(
    data: Audited, measure: Measure, codes: tuple[int, int], unknown: BoolArray
) -> Limits | None:
    """Return the range of the gap of two groups; None if one has no people of a class."""
    values = data.selected.astype(np.float64) if measure.needs_decisions else data.scores
    ranges = []
    for label in measure.labels:
        inside = np.ones(len(unknown), dtype=bool) if label is None else data.has(label)
        chosen = [inside & rows for rows in (*map(data.groups.is_group, codes), unknown)]
        first, second, others = ((values[own], data.people.mass[own]) for own in chosen)
        if not (first[1].any() and second[1].any()):
            return None
        if measure.distance is None:
            all_placed = len(data.compared) == 2 and data.weights.values is None
            high = _farthest(first, second, others, all_placed=all_placed)
            low = -_farthest(second, first, others, all_placed=all_placed)
            ranges.append((max(low, -high, 0.0), max(high, -low)))
        else:
            ranges.append(_distances(first, second, others, area=measure.unit != "share"))
    unit = measure.unit_of(data.measured)
    low, high = (sum(ends) / len(ends) / unit for ends in zip(*ranges, strict=True))
    return float(low), float(high)


def _farthest(first: Part, second: Part, others: Part, *, all_placed: bool) -> float:
    """Return the largest mean of the first group minus the mean of the second.

    If all others must be placed in one of the two groups, those with the highest values are in the
    first, for some number of them. Otherwise each mean includes the people who make it more
    extreme.
    """
    order = np.argsort(-others[0], kind="stable")
    mass = np.append(0.0, np.cumsum(others[1][order]))
    total = np.append(0.0, np.cumsum((others[0] * others[1])[order]))
    above = (first[0] @ first[1] + total) / (first[1].sum() + mass)
    below = (second[0] @ second[1] + total[-1] - total) / (second[1].sum() + mass[-1] - mass)
    return float((above - below).max() if all_placed else above.max() - below.min())


def _distances(first: Part, second: Part, others: Part, *, area: bool) -> Limits:
    """Return limits of the largest distance of two distribution functions, or of their area."""
    parts = (first, second, others)
    edges = np.unique(np.concatenate([values for values, _ in parts]))
    below = []
    for values, mass in parts:
        steps = np.bincount(np.searchsorted(edges, values), mass, minlength=len(edges))
        below.append(np.cumsum(steps))
    (one, two, free), (n, m, u) = below, (mass.sum() for _, mass in parts)
    high = (one + free) / (n + free) - two / (m + u - free)
    low = one / (n + u - free) - (two + free) / (m + free)
    least, most = np.maximum(np.maximum(low, -high), 0.0), np.maximum(high, -low)
    if area:
        widths = np.diff(edges)
        return float(least[:-1] @ widths), float(most[:-1] @ widths)
    return float(least.max()), float(most.max())
