"""Answers to the tables' questions, read from the records."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairmatch.datasets import PAPER_DATASETS
from fairmatch.experiments.lines import SERIES, Series
from fairmatch.experiments.reading.levels import Reading, interpolated, nearest
from fairmatch.experiments.reading.questions import Question, questions
from fairmatch.experiments.runs.records import Record, RecordStore
from fairmatch.experiments.study import Study


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
