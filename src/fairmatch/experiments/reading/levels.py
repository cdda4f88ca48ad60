"""Read curves at a level of unfairness ("at ΔDP = 0.06"), for each seed and over the seeds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmatch.experiments.runs.records import Record

# A model that accepts fewer or more people than this decides nothing: it is fair by default, and
# averaging it with a model that does decide describes neither.
FEWEST_ACCEPTED, MOST_ACCEPTED = 0.01, 0.99


@dataclass(frozen=True)
class Reading:
    """A quantity at a level, over the seeds.

    Attributes
    ----------
    by_seed : mapping
        Its value for each seed whose curve gives one.
    reached : tuple of float
        The gap that each of them really has.
    n_seeds : int
        Seeds that are recorded; more than values where a curve never comes to the level.

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
        """Whether at least half of the seeds give a value, so that a mean says something."""
        return self.n > 0 and 2 * self.n >= self.n_seeds

    @property
    def mean(self) -> float:
        """Their mean; NaN if there are none."""
        return float(np.mean(self.values)) if self.n else float("nan")

    @property
    def level(self) -> float:
        """The mean gap that was reached."""
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
        """Take another reading off this one, seed by seed, where both have a value.

        Examples
        --------
        >>> Reading({0: 0.75, 1: 0.5}, (0.1, 0.1), 2).less(Reading({1: 0.25}, (0.1,), 2)).values
        (0.25,)
        """
        common = [seed for seed in self.by_seed if seed in other.by_seed]
        values = {seed: self.by_seed[seed] - other.by_seed[seed] for seed in common}
        return Reading(values, (self.level,) * len(common), min(self.n_seeds, other.n_seeds))


def nearest(records: Mapping[int, Record], gap: str, level: float, quantity: str) -> Reading:
    """Take each seed's model whose gap on the test rows is nearest to the level, as the paper does.

    Parameters
    ----------
    records : mapping
        Seed to record.
    gap, quantity : str
        Names in the records' curves.
    level : float
        The gap that is asked for.

    Returns
    -------
    Reading
        Every seed gives a value, however far from the level it is: see what was reached.
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
    """Return which deciding model of a curve is nearest to a level; of equals the first.

    None if no model does.
    """
    gaps = gaps_of(record, gap)
    distances = [np.inf if value is None else abs(value - level) for value in gaps]
    index = int(np.argmin(distances))
    return index if np.isfinite(distances[index]) else None


def gaps_of(record: Record, gap: str) -> list[float | None]:
    """Return the gap of every model of a curve; None for one that accepts nobody or everybody."""
    gaps = record.curve[gap]
    accepted = record.curve.get("acceptance_rate", [0.5] * len(gaps))
    return [
        value if FEWEST_ACCEPTED <= share <= MOST_ACCEPTED else None
        for value, share in zip(gaps, accepted, strict=True)
    ]


def least_gap(records: Mapping[int, Record], gap: str) -> Reading:
    """Find the smallest gap of each seed's models that decide anything."""
    found = {
        seed: [value for value in gaps_of(record, gap) if value is not None]
        for seed, record in records.items()
    }
    least = {seed: min(gaps) for seed, gaps in found.items() if gaps}
    return Reading(least, tuple(least.values()), len(records))


def picked(records: Mapping[int, Record], gap: str, level: float, quantity: str) -> Reading:
    """Take the model that a user would, who knows the training rows alone.

    It is the most accurate of those that keep the gap there; of equals the first.

    Parameters
    ----------
    records, gap, quantity
        As in `nearest`; the quantity is that of the test rows.
    level : float
        The gap that is allowed.

    Returns
    -------
    Reading
        Seeds of which no model keeps the gap on the training rows give no value. What is reached
        is the gap on the test rows.
    """
    values, reached = {}, []
    for seed, record in records.items():
        gaps, accuracies = (quantity_of(record, f"training: {q}") for q in (gap, "accuracy"))
        kept = [k for k, value in enumerate(gaps) if value is not None and value <= level]
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
    """Interpolate each seed's curve linearly where it comes to the level.

    Parameters
    ----------
    records, gap, level, quantity
        As in `nearest`.
    start : mapping, optional
        Records of the unconstrained model, with which every curve begins.

    Returns
    -------
    Reading
        Seeds whose curve never comes to the level give no value.

    Notes
    -----
    The curve is followed from its fairest model towards smaller weights, and if it does not come to
    the level there, towards larger ones. Between the first two models whose gaps enclose the level,
    the quantity at the level lies on the line between theirs. A noisy curve may come to a level
    several times: from its unconstrained end one would often read it before the smallest weight,
    where fairness is an accident, and from its other end where a larger weight has made the gap
    larger again, which nobody would choose. Models that accept fewer than 1 % or more than 99 % of
    the people are left out.
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


# What the unconstrained model has when it is compared with itself.
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
    """Return a quantity of every model of a curve, also those that records hold in another form.

    Beside the records' own columns there are ``"half-spaces: outliers, number"`` and, of these,
    ``"half-spaces: high outliers"`` above the box; and, after the paper's definition, ``"flips to 1
    per 1,000: S=1"`` and ``"flips to 0 per 1,000: S=0"``.
    """
    columns, read = _DERIVED.get(quantity, ((quantity,), lambda value: value))
    # A run without an unconstrained model to compare with has no flips.
    unknown = [None] * len(record.curve["weight"])
    rows = zip(*(record.curve.get(column, unknown) for column in columns), strict=True)
    return [None if None in row else read(*row) for row in rows]


def _per_thousand(cell: int) -> Callable[[Any], float]:
    return lambda table: 1000.0 * table[cell] / sum(table)


def _high_outliers(outliers: Sequence[float], box: Sequence[float]) -> int:
    """Count half-spaces that are less fair than a box plot expects; those below are fairer."""
    median = box[2]
    return sum(gap > median for gap in outliers)


# Cells of a table: fair 0 unfair 0, fair 0 unfair 1, fair 1 unfair 0, fair 1 unfair 1.
_DERIVED: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    "half-spaces: outliers, number": (("half-spaces: outliers",), len),
    "half-spaces: high outliers": (("half-spaces: outliers", "half-spaces: box"), _high_outliers),
    "flips to 1 per 1,000: S=1": (("flips: S=1",), _per_thousand(2)),
    "flips to 0 per 1,000: S=0": (("flips: S=0",), _per_thousand(1)),
}
