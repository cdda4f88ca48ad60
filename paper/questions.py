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
    """One column of a table: a quantity on one table at one level."""

    #: Names of the experiment and of the table.
    experiment: str
    dataset: str
    gap: str  #: The gap that is held fixed.
    level: float  #: The value of that gap.
    #: The quantity that is asked for: its name in the records, and its name for people.
    quantity: str
    label: str
    better: int  #: 1 if more is better, -1 if less is, 0 if neither.
    lines: tuple[str, ...] = _COMPARED  #: Keys of the lines that are compared.
    #: Name of a line in the paper to the number that the paper reports.
    paper: Mapping[str, float] = field(default_factory=dict)
    #: Settings of the runs beyond those of the lines.
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
    parts = (_tradeoff, _in_subsets, _joint, _imbalance, _consistency, _against_unfair, _others)
    return [question for part in parts for question in part(reported())]


def _ask(
    experiment: str,
    dataset: str,
    gap: str,
    level: float,
    quantity: str,
    label: str | None = None,
    better: int = 1,
    **further: Any,
) -> Question:
    """Return a question; the gap has its short name, and the label is by default the quantity."""
    label = quantity if label is None else label
    return Question(experiment, dataset, GAPS[gap], level, quantity, label, better, **further)


def _tradeoff(paper: Mapping[str, Any]) -> Iterator[Question]:
    for dataset, levels in TRADEOFF_LEVELS.items():
        for level in levels:
            yield _ask("tradeoff", dataset, "WDP", level, "accuracy")


def _in_subsets(paper: Mapping[str, Any]) -> Iterator[Question]:
    part = paper["random_subsets"]
    for dataset, level in part["at_meanDP"].items():
        at = ("subsets", dataset, "meanDP", level)
        yield _ask(*at, "half-spaces: outliers, number", "outliers", -1)
        yield _ask(*at, "half-spaces: high outliers", "outliers above the box", -1)
        std = part["reported_std"].get(dataset, {})
        yield _ask(*at, "half-spaces: std", "standard deviation", -1, paper=std)
        yield _ask(*at, "half-spaces: largest", "largest", -1)
    for dataset, part in paper["subsets_by_variable"].items():
        at = ("variables", dataset, "meanDP", part["at_meanDP"])
        for half, name in _HALVES[dataset].items():
            for short, gap in GAPS.items():
                values = {method: found["value"] for method, found in part[half][short].items()}
                label = f"{_SYMBOLS[short]}, {name}"
                yield _ask(*at, f"{name}: {gap}", label, -1, paper=values)


_HALVES = {
    "german": {"high": "high age", "low": "low age"},
    "dutch": {"married": "married", "not_married": "not married"},
}
_SYMBOLS = {"DP": "ΔDP", "meanDP": "Δ‾DP", "WDP": "ΔWDP"}
_TREES = ("trees-ftm", "trees-ftm-joint", "trees-predicted")


def _joint(paper: Mapping[str, Any]) -> Iterator[Question]:
    lines = ("ftm-batch", "ftm-batch-joint", "ftm", "ftm-joint", *_TREES)
    for level in (0.033, 0.054):
        values = paper["marginal_vs_joint_adult"][f"at_DP_{level}"]
        for short, quantity in {"Acc": "accuracy", **_ERROR_GAPS}.items():
            told = {"FTM": values["marginal"][short], "FTM joint": values["joint"][short]}
            label, better = ("accuracy", 1) if short == "Acc" else (f"Δ{short}", -1)
            at = ("joint", "adult", "DP", level)
            yield _ask(*at, quantity, label, better, lines=lines, paper=told)


def _imbalance(paper: Mapping[str, Any]) -> Iterator[Question]:
    part = paper["imbalance_adult"]
    further = {
        "lines": (*PAPER_RIVALS, "ftm-batch", "ftm"),
        "paper": part["Acc"]["Avg"],
        "settings": {"minority_share": MINORITY_SHARE},
    }
    yield _ask("imbalance", "adult", "meanDP", part["at_meanDP"], "accuracy", **further)


def _consistency(paper: Mapping[str, Any]) -> Iterator[Question]:
    for dataset, part in paper["consistency"].items():
        for short, quantity in {"Con": "consistency", "Acc": "accuracy"}.items():
            at = ("consistency", dataset, "DP", part["at_DP"])
            yield _ask(*at, quantity, paper=part[short])


def _against_unfair(paper: Mapping[str, Any]) -> Iterator[Question]:
    for dataset, part in paper["spearman_with_unfair"].items():
        for group in ("S=0", "S=1"):
            values = {method: found["value"] for method, found in part[group].items()}
            at = ("ranks", dataset, "meanDP", part["at_meanDP"])
            yield _ask(*at, f"rank agreement: {group}", f"Spearman, {group}", paper=values)
    part = paper["undesirable_flips"]
    for dataset in ("adult", "german", "dutch", "bank"):
        for group, (row, column), way in (("S=1", (1, 0), "1"), ("S=0", (0, 1), "0")):
            # The paper's test sets have other sizes, so counts are read as shares. Its labels of
            # German seem to be swapped.
            shares = {
                method: 1000.0 * table[row][column] / sum(map(sum, table))
                for method, table in part["full_2x2"][group][dataset].items()
                if dataset != "german"
            }
            words = f"flips to {way} per 1,000"
            at = ("flips", dataset, "meanDP", part[dataset]["at_meanDP"])
            yield _ask(*at, f"{words}: {group}", f"{words}, {group}", -1, paper=shares)


def _others(paper: Mapping[str, Any]) -> Iterator[Question]:
    """Yield questions on representations, and on what matching adds for trees."""
    lines = (*SUBJECTS["representation"], "ftm-batch", "ftm", *_TREES)
    for dataset, values in paper["fair_representation"]["Acc"].items():
        told = {method: value for method, value in values.items() if method != "level"}
        at = ("representation", dataset, "meanDP", values["level"])
        yield _ask(*at, "accuracy", lines=lines, paper=told)
    lines = ("ftm", "ftm-joint", *SUBJECTS["trees"])
    for dataset, part in paper["consistency"].items():
        for quantity, label, better in (
            ("accuracy", None, 1),
            ("transport_cost", "transport cost", -1),
            ("half-spaces: std", "standard deviation over half-spaces", -1),
            ("half-spaces: largest", "largest in half-spaces", -1),
            ("consistency", None, 1),
        ):
            at = ("trees", dataset, "DP", part["at_DP"])
            yield _ask(*at, quantity, label, better, lines=lines)


@dataclass(frozen=True)
class Answer:
    """One line's answer: at the weight nearest to the level, at the level, and in the paper."""

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
    """Answers of a study's records to all questions. Each record is read once."""

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

    def asked(self, experiment: str, **fields: object) -> Iterator[Question]:
        """Yield an experiment's questions about the paper's tables; `fields` must be equal."""
        for question in questions():
            if (
                question.experiment == experiment
                and question.dataset in self.study.datasets
                and all(getattr(question, name) == value for name, value in fields.items())
            ):
                yield question

    def _own(self, dataset: str) -> Iterator[Question]:
        """Yield questions at three quarters, half and a quarter of the unconstrained gap."""
        records = self.records("unfair", dataset).values()
        if not records:
            return
        start = float(np.mean([record.curve[GAPS["WDP"]][0] for record in records]))
        for share in (0.75, 0.5, 0.25):
            at, lines = ("own", dataset, "WDP", round(share * start, 3)), tuple(SERIES)
            yield _ask(*at, "accuracy", lines=lines)
            yield _ask(*at, "consistency", lines=lines)
            words = "standard deviation over half-spaces"
            yield _ask(*at, "half-spaces: std", words, -1, lines=lines)

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
