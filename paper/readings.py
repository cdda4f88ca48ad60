"""Readings: quantities of recorded curves at a level of a gap, over the splits."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from re import sub
from typing import Any, Literal

import numpy as np

from paper.records import Record

# A model that accepts a smaller or larger share of people decides nothing and is fair by default.
# A mean of it and a model that does decide describes neither.
FEWEST_ACCEPTED, MOST_ACCEPTED = 0.01, 0.99


@dataclass(frozen=True)
class Reading:
    """A quantity at a level, over the seeds.

    Examples
    --------
    >>> reading = Reading({0: 0.8, 3: 0.9}, (0.05, 0.07), 5)
    >>> round(reading.mean, 3), round(reading.error, 3), reading.n, reading.stated
    (0.85, 0.05, 2, False)
    """

    by_seed: Mapping[int, float]  #: Seed to the value, for each seed whose curve has one.
    reached: tuple[float, ...]  #: The gap at which each value is read.
    #: Number of recorded seeds. It exceeds the number of values where a curve never comes to the
    #: level.
    n_seeds: int

    @classmethod
    def of(cls, found: Mapping[int, Any], reached: Mapping[int, Any] | None = None) -> "Reading":
        """Return the reading of a value per recorded seed, None where a curve has none."""
        values = {seed: float(value) for seed, value in found.items() if value is not None}
        gaps = () if reached is None else tuple(float(reached[seed]) for seed in values)
        return cls(values, gaps, len(found))

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
        """Return this reading minus another, on the seeds where both have a value."""
        common = [seed for seed in self.by_seed if seed in other.by_seed]
        values = {seed: self.by_seed[seed] - other.by_seed[seed] for seed in common}
        return Reading(values, (self.level,) * len(common), min(self.n_seeds, other.n_seeds))


def nearest(records: Mapping[int, Record], gap: str, level: float, quantity: str) -> Reading:
    """Read a quantity at each seed's model whose test gap is nearest to the level, as in the paper.

    A seed has a value however far its model is from the level; `reached` holds the gaps. It has
    none if no model decides anything, or the quantity is not defined.
    """
    places = {seed: nearest_index(record, gap, level) for seed, record in records.items()}
    return _at(records, places, gap, quantity)


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
    gaps = {seed: gaps_of(record, gap) for seed, record in records.items()}
    least = {
        seed: min((value for value in found if value is not None), default=None)
        for seed, found in gaps.items()
    }
    return Reading.of(least, least)


def pick(
    level: float, gaps: Sequence[Any], accepted: Sequence[float], accuracies: Sequence[float]
) -> int | None:
    """Return the index of the most accurate model whose gap is within a level; of equals the first.

    Models that accept hardly anybody or nearly everybody are left out. None if no model is left.

    Examples
    --------
    >>> curve = [0.0, 0.04, 0.2], [0.0, 0.3, 0.3], [0.9, 0.7, 0.8]
    >>> pick(0.05, *curve), pick(0.01, *curve)
    (1, None)
    """
    kept = [
        index
        for index, (gap, share) in enumerate(zip(gaps, accepted, strict=True))
        if gap is not None and gap <= level and FEWEST_ACCEPTED <= share <= MOST_ACCEPTED
    ]
    return max(kept, key=lambda index: accuracies[index], default=None)


def picked(records: Mapping[int, Record], gap: str, level: float, quantity: str) -> Reading:
    """Read a quantity on the test rows, at the model that a user picks on the training rows.

    A seed has no value if none of its models keeps the gap on the training rows. `reached` holds
    the gaps on the test rows.
    """

    def place(record: Record) -> int | None:
        training, accuracies = (quantity_of(record, f"training: {q}") for q in (gap, "accuracy"))
        accepted = record.curve.get("acceptance_rate", [0.5] * len(training))
        return pick(level, training, accepted, accuracies)

    places = {seed: place(record) for seed, record in records.items()}
    return _at(records, places, gap, quantity)


def _at(
    records: Mapping[int, Record], places: Mapping[int, int | None], gap: str, quantity: str
) -> Reading:
    """Read a quantity at one model of each curve; None stands for no model."""

    def value(seed: int, name: str) -> Any:
        place = places[seed]
        return None if place is None else quantity_of(records[seed], name)[place]

    found = {seed: value(seed, quantity) for seed in records}
    return Reading.of(found, {seed: value(seed, gap) for seed in records})


def interpolated(
    records: Mapping[int, Record],
    gap: str,
    level: float,
    quantity: str,
    *,
    start: Mapping[int, Record] | None = None,
) -> Reading:
    """Read a quantity where each seed's curve comes to the level, by linear interpolation.

    A curve begins with the unconstrained model of its seed in `start`, if there is one. A seed has
    no value if its curve never comes to the level.

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
    values: dict[int, float | None] = {}
    for seed, record in records.items():
        gaps, found = gaps_of(record, gap), [*quantity_of(record, quantity)]
        first = (start or {}).get(seed)
        if first is not None:
            begin = _OF_ITSELF.get(quantity, quantity_of(first, quantity)[0])
            gaps, found = [first.curve[gap][0], *gaps], [begin, *found]
        values[seed] = crossing(gaps, found, level)
    return Reading.of(values, dict.fromkeys(values, level))


# The values of the unconstrained model when it is compared with itself.
_OF_ITSELF = {
    "rank agreement: S=0": 1.0,
    "rank agreement: S=1": 1.0,
    "flips to 1 per 1,000: S=1": 0.0,
    "flips to 0 per 1,000: S=0": 0.0,
}


def crossing(gaps: Sequence[Any], found: Sequence[Any], level: float) -> float | None:
    """Return a quantity where a curve comes to a level, as `interpolated` says."""
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
    """Return a quantity of every model of a curve: a column of the record or derived from one.

    A value that is not recorded is None.
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


def mean_curve(records: Mapping[int, Record], gap: str, quantity: str) -> list[tuple[float, ...]]:
    """Return the mean gap and quantity over the seeds, as (weight, gap, quantity) by weight."""
    listed = list(records.values())
    weights = listed[0].curve["weight"]
    gaps = np.array([record.curve[gap] for record in listed], dtype=np.float64).mean(axis=0)
    values = np.array([record.curve[quantity] for record in listed], dtype=np.float64)
    means = values.mean(axis=0)
    return [(float(w), float(g), float(v)) for w, g, v in zip(weights, gaps, means, strict=True)]


# Readings as cells of a page.


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as Markdown.

    Examples
    --------
    >>> print(table(["α", "cost"], [["0", "3.61"]]))
    | α | cost |
    |---|---|
    | 0 | 3.61 |
    """
    lines = [f"| {' | '.join(cells)} |" for cells in (names, *rows)]
    return "\n".join([lines[0], "|---" * len(names) + "|", *lines[1:]])


def page_of(name: str, **facts: Any) -> str:
    """Return a page: the words of a template in `paper/words`, with facts filled in."""
    # Imported here, because most readings are made without a page.
    from jinja2 import Environment, StrictUndefined

    words = (Path(__file__).parent / "words" / f"{name}.md.j2").read_text("utf-8")
    template = Environment(undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    return template.from_string(words).render(**facts)


def plain_text(text: str) -> str:
    r"""Return a text with the signs of Markdown and HTML escaped.

    Examples
    --------
    >>> print(plain_text("*best* <of> a|b"))
    \*best\* &lt;of&gt; a\|b
    """
    return sub(r"([\\`*_\[\]|~])", r"\\\1", escape(text, quote=False))


def mean_cell(
    reading: Reading, digits: int = 4, splits: Literal["always", "missing", "never"] = "always"
) -> str:
    """Return a mean with its standard error and the number of its splits.

    With "missing" the number is shown only if some splits have no value.

    Examples
    --------
    >>> mean_cell(Reading({0: 0.8, 1: 0.9}, (0.1, 0.1), 5), 2)
    '0.85 ± 0.05 (2 of 5)'
    """
    if not reading.n:
        return f"not reached (0 of {reading.n_seeds})" if splits == "always" else "not reached"
    error = f" ± {reading.error:.{digits}f}" if np.isfinite(reading.error) else ""
    few = reading.n < reading.n_seeds
    of = f" ({reading.n} of {reading.n_seeds})" if few else f" ({reading.n})"
    told = splits == "always" or (splits == "missing" and few)
    return f"{reading.mean:.{digits}f}{error}{of if told else ''}"


def paper_cell(value: float | None, digits: int = 4) -> str:
    """Return a figure of the paper with three digits, or with four where it has them.

    Examples
    --------
    >>> paper_cell(0.81), paper_cell(0.8125)
    ('0.810', '0.8125')
    """
    if value is None:
        return ""
    shown = f"{value:.{digits}f}"
    return shown[:-1] if digits == 4 and shown.endswith("0") else shown
