"""Readings of curves at a level of a gap, such as ΔDP = 0.06, for each seed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmatch.experiments.runs.records import Record

# A model that accepts a smaller or larger share of people decides nothing and is fair by default.
# A mean of it and a model that does decide describes neither.
FEWEST_ACCEPTED, MOST_ACCEPTED = 0.01, 0.99


@dataclass(frozen=True)
class Reading:
    """A quantity at a level, over the seeds.

    Attributes
    ----------
    by_seed : mapping
        Seed to the value, for each seed whose curve has one.
    reached : tuple of float
        The gap at which each value is read.
    n_seeds : int
        Number of recorded seeds. It exceeds the number of values where a curve never comes to the
        level.

    Examples
    --------
    >>> reading = Reading({0: 0.8, 3: 0.9}, (0.05, 0.07), 5)
    >>> round(reading.mean, 3), round(reading.error, 3), reading.n, reading.stated
    (0.85, 0.05, 2, False)
    """

    by_seed: Mapping[int, float]
    reached: tuple[float, ...]
    n_seeds: int

    @property
    def values(self) -> tuple[float, ...]:
        """The values alone."""
        return tuple(self.by_seed.values())

    @property
    def n(self) -> int:
        """Number of values."""
        return len(self.by_seed)

    @property
    def stated(self) -> bool:
        """Whether at least half of the seeds have a value; otherwise a mean says little."""
        return self.n > 0 and 2 * self.n >= self.n_seeds

    @property
    def mean(self) -> float:
        """Mean of the values; NaN if there are none."""
        return float(np.mean(self.values)) if self.n else float("nan")

    @property
    def level(self) -> float:
        """Mean of the gaps reached; NaN if there are none."""
        return float(np.mean(self.reached)) if self.reached else float("nan")

    @property
    def spread(self) -> float:
        """Standard deviation over the seeds; NaN for fewer than two."""
        return float(np.std(self.values, ddof=1)) if self.n > 1 else float("nan")

    @property
    def error(self) -> float:
        """Standard error of the mean; NaN for fewer than two seeds."""
        return self.spread / self.n**0.5 if self.n > 1 else float("nan")

    def less(self, other: "Reading") -> "Reading":
        """Return this reading minus another, on the seeds where both have a value.

        Examples
        --------
        >>> Reading({0: 0.75, 1: 0.5}, (0.1, 0.1), 2).less(Reading({1: 0.25}, (0.1,), 2)).values
        (0.25,)
        """
        common = [seed for seed in self.by_seed if seed in other.by_seed]
        values = {seed: self.by_seed[seed] - other.by_seed[seed] for seed in common}
        return Reading(values, (self.level,) * len(common), min(self.n_seeds, other.n_seeds))


def nearest(records: Mapping[int, Record], gap: str, level: float, quantity: str) -> Reading:
    """Read a quantity at each seed's model whose test gap is nearest to the level, as in the paper.

    Parameters
    ----------
    records : mapping
        Seed to record.
    gap : str
        Name of the gap in the records' curves.
    level : float
        The gap that is asked for.
    quantity : str
        Name of the quantity to read, as in `quantity_of`.

    Returns
    -------
    Reading
        A seed has a value however far its model is from the level; `reached` holds the gaps. It
        has none if no model decides anything, or the quantity is not defined.
    """
    values, reached = {}, []
    for seed, record in records.items():
        index = nearest_index(record, gap, level)
        value = None if index is None else quantity_of(record, quantity)[index]
        if index is not None and value is not None:
            values[seed] = float(value)
            reached.append(float(record.curve[gap][index]))
    return Reading(values, tuple(reached), len(records))


def nearest_index(record: Record, gap: str, level: float) -> int | None:
    """Return the index of a curve's model nearest to a level; of equals the first.

    Models that accept hardly anybody or nearly everybody are left out. None if no model is left.
    """
    gaps = gaps_of(record, gap)
    distances = [np.inf if value is None else abs(value - level) for value in gaps]
    index = int(np.argmin(distances))
    return index if np.isfinite(distances[index]) else None


def gaps_of(record: Record, gap: str) -> list[float | None]:
    """Return the gap of every model of a curve.

    It is None for a model that accepts hardly anybody or nearly everybody.
    """
    gaps = record.curve[gap]
    accepted = record.curve.get("acceptance_rate", [0.5] * len(gaps))
    return [
        value if FEWEST_ACCEPTED <= share <= MOST_ACCEPTED else None
        for value, share in zip(gaps, accepted, strict=True)
    ]


def least_gap(records: Mapping[int, Record], gap: str) -> Reading:
    """Read the smallest gap of each seed, among the models that decide anything."""
    found = {
        seed: [value for value in gaps_of(record, gap) if value is not None]
        for seed, record in records.items()
    }
    least = {seed: min(gaps) for seed, gaps in found.items() if gaps}
    return Reading(least, tuple(least.values()), len(records))


def picked(records: Mapping[int, Record], gap: str, level: float, quantity: str) -> Reading:
    """Read a quantity at the model that a user would pick on the training rows.

    It is the most accurate model of those that keep the gap there; of equals the first. Models that
    accept hardly anybody or nearly everybody are left out.

    Parameters
    ----------
    records : mapping
        Seed to record.
    gap : str
        Name of the gap in the records' curves.
    level : float
        The largest gap allowed on the training rows.
    quantity : str
        Name of the quantity to read on the test rows, as in `quantity_of`.

    Returns
    -------
    Reading
        A seed has no value if none of its models keeps the gap on the training rows. `reached`
        holds the gaps on the test rows.
    """
    values, reached = {}, []
    for seed, record in records.items():
        gaps, accuracies = (quantity_of(record, f"training: {q}") for q in (gap, "accuracy"))
        kept = [
            place
            for place, (value, deciding) in enumerate(zip(gaps, gaps_of(record, gap), strict=True))
            if value is not None and value <= level and deciding is not None
        ]
        if kept:
            best = max(kept, key=lambda k: accuracies[k])
            values[seed] = float(quantity_of(record, quantity)[best])
            reached.append(float(record.curve[gap][best]))
    return Reading(values, tuple(reached), len(records))


def interpolated(
    records: Mapping[int, Record],
    gap: str,
    level: float,
    quantity: str,
    *,
    start: Mapping[int, Record] | None = None,
) -> Reading:
    """Read a quantity where each seed's curve comes to the level, by linear interpolation.

    Parameters
    ----------
    records : mapping
        Seed to record.
    gap : str
        Name of the gap in the records' curves.
    level : float
        The gap that is asked for.
    quantity : str
        Name of the quantity to read, as in `quantity_of`.
    start : mapping, optional
        Seed to the record of the unconstrained model, with which the curve begins.

    Returns
    -------
    Reading
        A seed has no value if its curve never comes to the level.

    Notes
    -----
    The curve is followed from its fairest model towards smaller weights. If it does not come to
    the level there, it is followed towards larger weights. The value lies on the line between the
    first two models whose gaps enclose the level. Models that accept fewer than 1 % or more than
    99 % of the people are left out.

    A noisy curve may come to a level several times, so the direction matters. From the
    unconstrained end, the first crossing often lies before the smallest weight, where fairness is
    an accident. From the other end, it often lies where a larger weight has made the gap larger
    again, and nobody would choose that weight.
    """
    values = {}
    for seed, record in records.items():
        gaps, found = gaps_of(record, gap), [*quantity_of(record, quantity)]
        first = (start or {}).get(seed)
        if first is not None:
            begin = _OF_ITSELF.get(quantity, quantity_of(first, quantity)[0])
            gaps, found = [first.curve[gap][0], *gaps], [begin, *found]
        value = _crossing(gaps, found, level)
        if value is not None:
            values[seed] = value
    return Reading(values, (level,) * len(values), len(records))


# The values of the unconstrained model when it is compared with itself.
_OF_ITSELF = {
    "rank agreement: S=0": 1.0,
    "rank agreement: S=1": 1.0,
    "flips to 1 per 1,000: S=1": 0.0,
    "flips to 0 per 1,000: S=0": 0.0,
}


def _crossing(gaps: Sequence[Any], found: Sequence[Any], level: float) -> float | None:
    known = [index for index, gap in enumerate(gaps) if gap is not None]
    if not known:
        return None
    fairest = min(reversed(known), key=lambda index: gaps[index])  # of equals the last
    for k in (*reversed(range(fairest)), *range(fairest, len(gaps) - 1)):
        a, b = gaps[k], gaps[k + 1]
        if a is None or b is None or found[k] is None or found[k + 1] is None:
            continue
        if min(a, b) <= level <= max(a, b):
            share = 0.0 if a == b else (level - a) / (b - a)
            return float(found[k] + share * (found[k + 1] - found[k]))
    return None


def quantity_of(record: Record, quantity: str) -> list[Any]:
    """Return a quantity of every model of a curve, from a column of the record or derived from one.

    The derived quantities are ``"half-spaces: outliers, number"``, ``"half-spaces: high outliers"``
    above the box, and, as the paper defines them, ``"flips to 1 per 1,000: S=1"`` and ``"flips to 0
    per 1,000: S=0"``. A value that is not recorded is None.
    """
    columns, read = _DERIVED.get(quantity, ((quantity,), lambda value: value))
    # A run that is compared with no unconstrained model has no flips.
    unknown = [None] * len(record.curve["weight"])
    rows = zip(*(record.curve.get(column, unknown) for column in columns), strict=True)
    return [None if None in row else read(*row) for row in rows]


def _per_thousand(cell: int) -> Callable[[Any], float]:
    return lambda table: 1000.0 * table[cell] / sum(table)


def _high_outliers(outliers: Sequence[float], box: Sequence[float]) -> int:
    """Return how many outliers lie above the box; those below it are fairer."""
    median = box[2]
    return sum(gap > median for gap in outliers)


# Cells of a table of flips, in order, as decisions of the fair and of the unconstrained model:
# 0 and 0, 0 and 1, 1 and 0, 1 and 1.
_DERIVED: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    "half-spaces: outliers, number": (("half-spaces: outliers",), len),
    "half-spaces: high outliers": (("half-spaces: outliers", "half-spaces: box"), _high_outliers),
    "flips to 1 per 1,000: S=1": (("flips: S=1",), _per_thousand(2)),
    "flips to 0 per 1,000: S=0": (("flips: S=0",), _per_thousand(1)),
}
