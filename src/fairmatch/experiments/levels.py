"""Read curves at a level of unfairness ("at ΔDP = 0.06"), for each seed and over the seeds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmatch.experiments.records import Record


@dataclass(frozen=True)
class Reading:
    """A quantity at a level, over the seeds.

    Attributes
    ----------
    values : tuple of float
        One for each seed whose curve gives one.
    reached : tuple of float
        The gap that each of them really has.
    n_seeds : int
        Seeds that are recorded; more than values where a curve never comes to the level.

    Examples
    --------
    >>> reading = Reading((0.8, 0.9), (0.05, 0.07), 5)
    >>> round(reading.mean, 3), round(reading.error, 3), reading.n
    (0.85, 0.05, 2)
    """

    values: tuple[float, ...]
    reached: tuple[float, ...]
    n_seeds: int

    @property
    def n(self) -> int:
        """Number of values."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """Their mean; NaN if there are none."""
        return float(np.mean(self.values)) if self.values else float("nan")

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
    values, reached = [], []
    for record in records.values():
        index = nearest_index(record, gap, level)
        value = quantity_of(record, quantity)[index]
        if value is not None:
            values.append(float(value))
            reached.append(float(record.curve[gap][index]))
    return Reading(tuple(values), tuple(reached), len(records))


def nearest_index(record: Record, gap: str, level: float) -> int:
    """Say which model of a curve is nearest to a level; of equals the first."""
    return int(np.argmin(np.abs(np.asarray(record.curve[gap], dtype=np.float64) - level)))


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
    The curve is followed from its fairest end, the largest weight. Between the first two models
    whose gaps enclose the level, the quantity at the level lies on the line between theirs. A noisy
    curve may come to a level several times; from the other end one would often read it between the
    unconstrained model and the smallest weight, where fairness is an accident.
    """
    values = []
    for seed, record in records.items():
        gaps, found = [*record.curve[gap]], [*quantity_of(record, quantity)]
        first = (start or {}).get(seed)
        if first is not None:
            begin = _OF_ITSELF.get(quantity, quantity_of(first, quantity)[0])
            gaps, found = [first.curve[gap][0], *gaps], [begin, *found]
        value = _crossing(gaps, found, level)
        if value is not None:
            values.append(value)
    return Reading(tuple(values), (level,) * len(values), len(records))


# What the unconstrained model has when it is compared with itself.
_OF_ITSELF = {
    "rank agreement: S=0": 1.0,
    "rank agreement: S=1": 1.0,
    "flips to 1 per 1,000: S=1": 0.0,
    "flips to 0 per 1,000: S=0": 0.0,
}


def _crossing(gaps: Sequence[Any], found: Sequence[Any], level: float) -> float | None:
    for k in reversed(range(len(gaps) - 1)):
        a, b = gaps[k], gaps[k + 1]
        if a is None or b is None or found[k] is None or found[k + 1] is None:
            continue
        if min(a, b) <= level <= max(a, b):
            share = 0.0 if a == b else (level - a) / (b - a)
            return float(found[k] + share * (found[k + 1] - found[k]))
    return None


def quantity_of(record: Record, quantity: str) -> list[Any]:
    """Give a quantity of every model of a curve, also those that records hold in another form.

    Beside the records' own columns there are ``"half-spaces: high outliers"``, the number of
    outliers above the box, and, after the paper's definition, ``"flips to 1 per 1,000: S=1"`` and
    ``"flips to 0 per 1,000: S=0"``.
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
    "half-spaces: high outliers": (("half-spaces: outliers", "half-spaces: box"), _high_outliers),
    "flips to 1 per 1,000: S=1": (("flips: S=1",), _per_thousand(2)),
    "flips to 0 per 1,000: S=0": (("flips: S=0",), _per_thousand(1)),
}
