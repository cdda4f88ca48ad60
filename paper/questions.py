"""The questions of the experiment section, and what the records answer."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from fairmatch.datasets import PAPER_DATASETS
from paper.records import Record, RecordStore
from paper.specs import MINORITY_SHARE, PAPER_RIVALS, SERIES, Series
from paper.study import Study

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


GAPS = {
    "DP": "demographic_parity_gap",
    "meanDP": "mean_parity_gap",
    "WDP": "wasserstein_parity_gap",
}
_ERROR_GAPS = {
    "TPR": "true_positive_gap",
    "FPR": "false_positive_gap",
    "EO": "equalized_odds_gap",
}

# Lines that a part of the page is about. Without them the part is left out.
SUBJECTS: dict[str, tuple[str, ...]] = {
    "joint": ("ftm-batch-joint", "ftm-joint"),
    "representation": ("laftr", "sipm", "repair"),
    "trees": (
        *("trees-reg", "trees-eg", "trees-ftm", "trees-ftm-joint", "trees-predicted"),
        *("trees-smoothing", "trees-smoothing-marginal", "trees-alignment", "trees-thresholds"),
    ),
}

# Lines of the tables in which the paper compares FTM with its rivals, and trees beside them.
_COMPARED = (
    *PAPER_RIVALS,
    "ftm-batch",
    "ftm",
    "ftm-batch-joint",
    "ftm-joint",
    *SUBJECTS["trees"],
)

# Levels of ΔWDP at which curves are compared in numbers. The paper shows the curves as pictures.
TRADEOFF_LEVELS: dict[str, tuple[float, ...]] = {
    "adult": (0.02, 0.042, 0.075, 0.1),
    "german": (0.04, 0.05, 0.06),
    "bank": (0.03, 0.045, 0.06),
    "dutch": (0.05, 0.1, 0.15),
}


@dataclass(frozen=True)
class Question:
    """One column of a table: a quantity on one table at one level.

    Attributes
    ----------
    experiment, dataset : str
        Names of the experiment and of the table.
    gap : str
        The gap that is held fixed.
    level : float
        The value of that gap.
    quantity, label : str
        The quantity that is asked for: its name in the records, and its name for people.
    better : int
        1 if more is better, -1 if less is, 0 if neither.
    lines : tuple of str
        Keys of the lines that are compared.
    paper : mapping
        Name of a line in the paper to the number that the paper reports.
    settings : mapping
        Settings of the runs beyond those of the lines.
    """

    experiment: str
    dataset: str
    gap: str
    level: float
    quantity: str
    label: str
    better: int
    lines: tuple[str, ...] = _COMPARED
    paper: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digits(self) -> int:
        """Number of decimals: one for means of counts, four for shares."""
        return 1 if self.label.startswith(("flips", "outliers")) else 4


@cache
def reported() -> dict[str, Any]:
    """Return the figures that the paper prints."""
    text = files(__package__).joinpath("reported.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def questions() -> list[Question]:
    """Return all questions of the tables."""
    return [
        *_tradeoff(),
        *_subsets(),
        *_variables(),
        *_joint(),
        *_imbalance(),
        *_consistency(),
        *_ranks(),
        *_flips(),
        *_representation(),
        *_boosting(),
    ]


def _tradeoff() -> Iterator[Question]:
    for dataset, levels in TRADEOFF_LEVELS.items():
        for level in levels:
            yield Question("tradeoff", dataset, GAPS["WDP"], level, "accuracy", "accuracy", 1)


def _subsets() -> Iterator[Question]:
    part = reported()["random_subsets"]
    std = {name: values for name, values in part["reported_std"].items()}
    for dataset, level in part["at_meanDP"].items():
        for quantity, label in (
            ("half-spaces: outliers, number", "outliers"),
            ("half-spaces: high outliers", "outliers above the box"),
            ("half-spaces: std", "standard deviation"),
            ("half-spaces: largest", "largest"),
        ):
            paper = std.get(dataset, {}) if quantity == "half-spaces: std" else {}
            yield Question(
                "subsets", dataset, GAPS["meanDP"], level, quantity, label, -1, paper=paper
            )


def _variables() -> Iterator[Question]:
    for dataset, part in reported()["subsets_by_variable"].items():
        for half, name in _HALVES[dataset].items():
            for short, gap in GAPS.items():
                yield Question(
                    "variables",
                    dataset,
                    GAPS["meanDP"],
                    part["at_meanDP"],
                    f"{name}: {gap}",
                    f"{_SYMBOLS[short]}, {name}",
                    -1,
                    paper={m: v["value"] for m, v in part[half][short].items()},
                )


_HALVES = {
    "german": {"high": "high age", "low": "low age"},
    "dutch": {"married": "married", "not_married": "not married"},
}
_SYMBOLS = {"DP": "ΔDP", "meanDP": "Δ‾DP", "WDP": "ΔWDP"}


def _joint() -> Iterator[Question]:
    part = reported()["marginal_vs_joint_adult"]
    for level in (0.033, 0.054):
        values = part[f"at_DP_{level}"]
        for short, quantity in {"Acc": "accuracy", **_ERROR_GAPS}.items():
            yield Question(
                "joint",
                "adult",
                GAPS["DP"],
                level,
                quantity,
                "accuracy" if short == "Acc" else f"Δ{short}",
                1 if short == "Acc" else -1,
                lines=("ftm-batch", "ftm-batch-joint", "ftm", "ftm-joint", *_TREES),
                paper={"FTM": values["marginal"][short], "FTM joint": values["joint"][short]},
            )


_TREES = ("trees-ftm", "trees-ftm-joint", "trees-predicted")


def _imbalance() -> Iterator[Question]:
    part = reported()["imbalance_adult"]
    yield Question(
        "imbalance",
        "adult",
        GAPS["meanDP"],
        part["at_meanDP"],
        "accuracy",
        "accuracy",
        1,
        lines=(*PAPER_RIVALS, "ftm-batch", "ftm"),
        paper=part["Acc"]["Avg"],
        settings={"minority_share": MINORITY_SHARE},
    )


def _consistency() -> Iterator[Question]:
    for dataset, part in reported()["consistency"].items():
        for short, quantity in {"Con": "consistency", "Acc": "accuracy"}.items():
            yield Question(
                "consistency",
                dataset,
                GAPS["DP"],
                part["at_DP"],
                quantity,
                quantity,
                1,
                paper=part[short],
            )


def _ranks() -> Iterator[Question]:
    for dataset, part in reported()["spearman_with_unfair"].items():
        for group in ("S=0", "S=1"):
            yield Question(
                "ranks",
                dataset,
                GAPS["meanDP"],
                part["at_meanDP"],
                f"rank agreement: {group}",
                f"Spearman, {group}",
                1,
                paper={m: v["value"] for m, v in part[group].items()},
            )


def _flips() -> Iterator[Question]:
    part = reported()["undesirable_flips"]
    for dataset in ("adult", "german", "dutch", "bank"):
        for group, cell, way in (("S=1", (1, 0), "1"), ("S=0", (0, 1), "0")):
            tables = part["full_2x2"][group][dataset]
            yield Question(
                "flips",
                dataset,
                GAPS["meanDP"],
                part[dataset]["at_meanDP"],
                f"flips to {way} per 1,000: {group}",
                f"flips to {way} per 1,000, {group}",
                -1,
                # The paper's test sets have other sizes, so counts are read as shares. Its labels
                # of German seem to be swapped.
                paper={
                    method: 1000.0 * table[cell[0]][cell[1]] / sum(map(sum, table))
                    for method, table in tables.items()
                    if dataset != "german"
                },
            )


def _representation() -> Iterator[Question]:
    for dataset, values in reported()["fair_representation"]["Acc"].items():
        yield Question(
            "representation",
            dataset,
            GAPS["meanDP"],
            values["level"],
            "accuracy",
            "accuracy",
            1,
            lines=(*SUBJECTS["representation"], "ftm-batch", "ftm", *_TREES),
            paper={method: value for method, value in values.items() if method != "level"},
        )


def _boosting() -> Iterator[Question]:
    """Yield questions on what matching adds for trees, at the levels of the consistency table."""
    for dataset, part in reported()["consistency"].items():
        for quantity, label, better in (
            ("accuracy", "accuracy", 1),
            ("transport_cost", "transport cost", -1),
            ("half-spaces: std", "standard deviation over half-spaces", -1),
            ("half-spaces: largest", "largest in half-spaces", -1),
            ("consistency", "consistency", 1),
        ):
            yield Question(
                "trees",
                dataset,
                GAPS["DP"],
                part["at_DP"],
                quantity,
                label,
                better,
                lines=("ftm", "ftm-joint", *SUBJECTS["trees"]),
            )


@dataclass(frozen=True)
class Answer:
    """One line's answer to a question.

    Attributes
    ----------
    series : Series
        The line.
    nearest : Reading
        The quantity at the weight nearest to the level.
    interpolated : Reading
        The quantity at the level itself, interpolated.
    paper : float or None
        The number that the paper reports.
    """

    series: Series
    nearest: Reading
    interpolated: Reading
    paper: float | None

    @property
    def difference(self) -> float | None:
        """Our interpolated mean minus the paper's number.

        None where the paper has no number or too few curves come to the level.
        """
        if self.paper is None or not self.interpolated.stated:
            return None
        return self.interpolated.mean - self.paper


class Answers:
    """Answers to all questions. Each record is read once.

    Parameters
    ----------
    study : Study
        The study that the records are of.
    store : RecordStore
        The folder of the records.
    """

    def __init__(self, study: Study, store: RecordStore) -> None:
        self.study, self.store = study, store
        self._found: dict[tuple[str, str, str], dict[int, Record]] = {}

    def records(self, key: str, dataset: str, **settings: object) -> dict[int, Record]:
        """Return the records of a line, by seed."""
        name = key, dataset, repr(sorted(settings.items()))
        if name not in self._found:
            self._found[name] = self.study.records(self.store, key, dataset, **settings)
        return self._found[name]

    def start_of(self, key: str, dataset: str, **settings: object) -> Mapping[int, Record]:
        """Return the records of the unconstrained models with which a line's curves begin.

        The result is empty for a line whose own first model begins the curve: an unconstrained
        line, a line with weight 0, and a researcher's own line.
        """
        method = self.study.methods[self.study.series[key].method]
        if method.reference is None or method.schedule == "own" or method.weights[0] == 0.0:
            return {}
        return self.records(method.reference, dataset, **settings)

    def of_label_weight(self, maps: str, value: float) -> dict[int, Record]:
        """Return the records on Adult with a label weight, reduced to common fairness weights."""
        key, settings = self.study.of_label_weight(maps, value)
        found, grid = self.records(key, "adult", **settings), self.study.profile.label_weight_grid
        return {seed: _at_weights(record, grid) for seed, record in found.items()}

    def by_label_weight(self, maps: str) -> dict[float, dict[int, Record]]:
        """Return the records of all recorded label weights, on the splits that they share.

        Splits differ more than label weights do, so means over different splits say nothing.
        """
        weights = self.study.profile.label_weights
        found = {value: self.of_label_weight(maps, value) for value in weights}
        found = {value: records for value, records in found.items() if records}
        common = set.intersection(*map(set, found.values())) if found else set()
        return {value: {seed: r[seed] for seed in sorted(common)} for value, r in found.items()}

    def questions(self) -> list[Question]:
        """Return the questions of the paper's tables, and those of a researcher's own tables."""
        own = [name for name in self.study.datasets if name not in PAPER_DATASETS]
        return [*questions(), *(question for name in own for question in self._own(name))]

    def _own(self, dataset: str) -> Iterator[Question]:
        """Yield questions at three quarters, half and a quarter of the unconstrained gap."""
        gap = "wasserstein_parity_gap"
        records = self.records("unfair", dataset).values()
        if not records:
            return
        start = float(np.mean([record.curve[gap][0] for record in records]))
        for share in (0.75, 0.5, 0.25):
            for quantity, label, better in (
                ("accuracy", "accuracy", 1),
                ("consistency", "consistency", 1),
                ("half-spaces: std", "standard deviation over half-spaces", -1),
            ):
                level = round(share * start, 3)
                lines = tuple(SERIES)
                yield Question("own", dataset, gap, level, quantity, label, better, lines)

    def answer(self, question: Question) -> list[Answer]:
        """Return the answer of every recorded line to a question; a researcher's own come last."""
        found = []
        for key in (*question.lines, *(key for key in self.study.series if key not in SERIES)):
            if key not in self.study.series:
                continue
            series = self.study.series[key]
            records = self.records(key, question.dataset, **question.settings)
            if not records:
                continue
            asked = question.gap, question.level, question.quantity
            start = self.start_of(key, question.dataset, **question.settings)
            found.append(
                Answer(
                    series,
                    nearest(records, *asked),
                    interpolated(records, *asked, start=start),
                    question.paper.get(series.paper or ""),
                )
            )
        return found


def _at_weights(record: Record, weights: Sequence[float]) -> Record:
    """Return a record with the models of some fairness weights alone."""
    kept = [index for index, weight in enumerate(record.curve["weight"]) if weight in weights]
    curve = {name: [values[index] for index in kept] for name, values in record.curve.items()}
    return replace(record, curve=curve)


def mean_curve(records: Mapping[int, Record], gap: str, quantity: str) -> list[tuple[float, ...]]:
    """Return the mean gap and quantity over the seeds, as (weight, gap, quantity) by weight."""
    listed = list(records.values())
    weights = listed[0].curve["weight"]
    gaps = np.array([record.curve[gap] for record in listed], dtype=np.float64).mean(axis=0)
    values = np.array([record.curve[quantity] for record in listed], dtype=np.float64)
    means = values.mean(axis=0)
    return [(float(w), float(g), float(v)) for w, g, v in zip(weights, gaps, means, strict=True)]


HOLDS, IN_PART, DOES_NOT, UNKNOWN = "holds", "holds in part", "does not hold", "not recorded"

Judgement = tuple[str, str]


def graded(n_held: int, n_all: int) -> str:
    """Return the grade of a claim that holds in all cases, in some, or in none."""
    if n_all == 0:
        return UNKNOWN
    if n_held == n_all:
        return HOLDS
    return IN_PART if n_held else DOES_NOT


def graded_by_majority(n_held: int, n_all: int) -> str:
    """Return the grade of a claim about most cases: it holds in more than half, or does not."""
    if n_all == 0:
        return UNKNOWN
    return HOLDS if 2 * n_held > n_all else DOES_NOT


def asked_of(answers: Answers, experiment: str, **fields: object) -> Iterator[Question]:
    """Yield an experiment's questions about the tables of a study; `fields` must be equal."""
    for question in questions():
        if (
            question.experiment == experiment
            and question.dataset in answers.study.datasets
            and all(getattr(question, name) == value for name, value in fields.items())
        ):
            yield question


@dataclass(frozen=True)
class Cell:
    """FTM and the paper's rivals in one column of a table."""

    question: Question
    ftm: Answer
    rivals: tuple[Answer, ...]

    def leads(self) -> dict[str, Reading]:
        """Return how much better each rival is, on the splits where both come to the level.

        Rivals that share fewer than half of the splits with FTM are left out.
        """
        mine, sign = self.ftm.interpolated, self.question.better
        both = {rival.series.label: rival.interpolated.less(mine) for rival in self.rivals}
        return {
            label: Reading({k: sign * v for k, v in lead.by_seed.items()}, lead.reached, lead.n)
            for label, lead in both.items()
            if 2 * lead.n >= mine.n_seeds
        }


def fill_cells(answers: Answers, asked: Iterable[Question]) -> list[Cell]:
    """Return the cells for which FTM and all of the paper's rivals are recorded."""
    cells = []
    for question in asked:
        found = {answer.series.key: answer for answer in answers.answer(question)}
        if {*PAPER_RIVALS, "ftm-batch"} <= found.keys():
            rivals = tuple(found[key] for key in PAPER_RIVALS)
            cells.append(Cell(question, found["ftm-batch"], rivals))
    return cells


def count_wins(
    answers: Answers,
    asked: Iterable[Question],
    *,
    grade: Callable[[int, int], str] = graded,
    places: int = 1,
) -> Judgement:
    """Return a grade and a sentence on the cells where fewer than `places` rivals beat FTM.

    A cell is compared only if FTM comes to the level, and a rival does on the same splits.

    Parameters
    ----------
    answers : Answers
        The answers that the records hold.
    asked : iterable of Question
        The questions, one for each cell.
    grade : callable
        Takes the number of cells won and of cells compared; returns the grade.
    places : int, default=1
        FTM wins a cell if fewer rivals than this are better.
    """
    cells = fill_cells(answers, asked)
    held, close, compared = 0, 0, []
    told: dict[str, list[str]] = {}
    for cell in cells:
        leads, mine = cell.leads(), cell.ftm.interpolated
        better = {label: lead for label, lead in leads.items() if lead.mean > 0.0}
        if leads and mine.stated:
            compared.append(mine)
            won = len(better) < places
            held += won
            clearly = [lead for lead in better.values() if not lead.mean <= 2.0 * lead.error]
            close += not won and len(clearly) < places
            beside = _listed({label: lead.mean for label, lead in better.items()}, cell.question)
        else:
            beside = " (no rival there)" if mine.stated else ""
        told.setdefault(f"{cell.question.dataset} at {cell.question.level:g}", []).append(
            f"{cell.question.label} {_shown(cell.question, mine)}{beside}"
        )
    rank = "best" if places == 1 else "best or second"
    counts = f"FTM is {rank} in {held} of {len(compared)}"
    if len(compared) < len(cells):
        counts += f" that can be compared, of {len(cells)}"
    if close:
        counts += f", within two standard errors of it in {close} more"
    listed = ". ".join(f"{place}: {'; '.join(values)}" for place, values in told.items())
    return grade(held, len(compared)), f"{counts} ({count_splits(compared)}). {listed}."


def _listed(better: dict[str, float], question: Question) -> str:
    """Return the rivals that are better, and by how much, in brackets."""
    named = [f"{label} by {value:.{question.digits}f}" for label, value in better.items()]
    return f" ({', '.join(named)})" if named else ""


def _shown(question: Question, reading: Reading) -> str:
    if not reading.stated:
        return "not reached"
    return f"{reading.mean:.{question.digits}f}"


def count_splits(found: Iterable[Reading]) -> str:
    """Return in words how many splits the readings rest on."""
    counts = sorted({reading.n for reading in found if reading.n})
    if not counts:
        return "no split"
    if len(counts) > 1:
        return f"{counts[0]} to {counts[-1]} splits"
    return "one split" if counts[0] == 1 else f"{counts[0]} splits"


def show_change(reading: Reading) -> str:
    """Return a mean difference in words, with its standard error and its splits."""
    if not reading.stated:
        return f"not compared ({count_splits([reading])} in common)"
    error = f" ± {reading.error:.4f}" if reading.n > 1 else ""
    return f"{reading.mean:+.4f}{error} ({count_splits([reading])})"
