"""The questions of the experiment section, and what the records answer."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from fairmatch.datasets import PAPER_DATASETS
from paper.readings import Reading, interpolated, nearest
from paper.records import Record, RecordStore
from paper.specs import MINORITY_SHARE, PAPER_RIVALS, SERIES, Series, Study

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
