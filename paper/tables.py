"""The tables of the paper's page, as Markdown."""

from collections.abc import Iterator, Mapping

import numpy as np

from fairmatch.measures import MEASURES
from paper.questions import GAPS, SUBJECTS, Answers, Question, reported
from paper.readings import (
    Reading,
    interpolated,
    least_gap,
    mean_cell,
    nearest,
    paper_cell,
    picked,
    table,
)
from paper.specs import PAPER_RIVALS, SCHEDULE_WEIGHTS, SCHEDULES

# Columns of the short answer, for the marginal map and for the joint one.
_SHORT = {
    "FTM": ("ftm-batch", "ftm", "trees-ftm", "trees-predicted"),
    "FTM joint": ("ftm-batch-joint", "ftm-joint", "trees-ftm-joint"),
}


def short_answer(answers: Answers) -> str:
    """Return a table of the paper's FTM beside ours, at the levels of two of its tables."""
    rows = []
    for question in (*answers.asked("joint", better=1), *answers.asked("consistency")):
        dataset, quantity = question.dataset, question.quantity
        found = {answer.series.key: answer.interpolated for answer in answers.answer(question)}
        free = nearest(answers.records("unfair", dataset), question.gap, 0.0, quantity)
        for name, keys in _SHORT.items():
            paper = question.paper.get(name)
            if paper is None or not found.keys() & set(keys):
                continue
            label = question.label + (", joint map" if name == "FTM joint" else "")
            cells = [_beside(paper, found.get(key)) for key in keys]
            cells += [""] * (len(_SHORT["FTM"]) - len(cells))
            last = mean_cell(free) if free.n else ""
            rows.append([dataset, _level(question), label, paper_cell(paper), *cells, last])
    labels = [answers.study.series[key].label for key in _SHORT["FTM"]]
    names = ["table", "level", "", "FTM in the paper", *labels, "our network without a penalty"]
    return table(names, rows) if rows else ""


def _beside(paper: float, reading: Reading | None) -> str:
    if reading is None:
        return ""
    shown = mean_cell(reading)
    return f"**{shown}**" if reading.stated and round(reading.mean, 4) >= paper else shown


def unconstrained(answers: Answers) -> str:
    """Return a table of the unconstrained models, with which the curves begin."""
    columns = ("accuracy", *GAPS.values(), "consistency")
    names = [MEASURES[name].symbol if name in MEASURES else name for name in columns]
    rows = []
    for dataset in answers.study.datasets:
        for key in ("unfair", "trees-unfair"):
            if records := answers.records(key, dataset):
                cells = [mean_cell(nearest(records, columns[1], 0.0, c)) for c in columns]
                rows.append([dataset, answers.study.series[key].label, *cells])
    return table(["table", "model", *names], rows) if rows else ""


def stability(answers: Answers) -> str:
    """Return a table of the stability of the accuracy under imbalance, as in the paper.

    Its columns are mean (Avg), standard deviation (Std) and coefficient of variation (CV).
    """
    (question,) = answers.asked("imbalance")
    paper = reported()["imbalance_adult"]["Acc"]
    rows = []
    for answer in answers.answer(question):
        read = answer.interpolated if answer.interpolated.stated else answer.nearest
        ours = (read.mean, read.spread, read.spread / read.mean)
        cells = []
        for kind, value in zip(("Avg", "Std", "CV"), ours, strict=True):
            cells.append(paper_cell(paper[kind].get(answer.series.paper)))
            cells.append(f"{value:.4f}" if np.isfinite(value) else "one split")
        rows.append([f"{answer.series.label} ({read.n})", *cells])
    names = [f"{kind}, {whose}" for kind in ("Avg", "Std", "CV") for whose in ("paper", "ours")]
    return table(["method (splits)", *names], rows) if rows else ""


def label_weights(answers: Answers, level: float) -> str:
    """Return a table of accuracy and transport cost by label weight, on Adult."""
    start = answers.records("unfair", "adult")
    rows = []
    for maps, kind in (("ftm", "all rows"), ("ftm-batch", "mini-batch")):
        for value, records in answers.by_label_weight(maps).items():
            cells = [
                mean_cell(interpolated(records, GAPS["DP"], level, q, start=start), digits)
                for q, digits in (("accuracy", 4), ("transport_cost", 3))
            ]
            rows.append([f"{value:g}", kind, *cells])
    return table(["α", "maps", "accuracy", "transport cost"], rows) if rows else ""


def picked_on_training(answers: Answers) -> str:
    """Return a table of accuracy and gap if the weight is picked on the training rows."""
    keys = (
        *(*PAPER_RIVALS, "ftm-batch", "ftm", "trees-reg", "trees-eg", "trees-ftm"),
        *("trees-predicted", "trees-smoothing", "trees-alignment", "trees-thresholds"),
    )
    rows = []
    for question in answers.asked("consistency", quantity="accuracy"):
        asked = question.gap, question.level
        for key in keys:
            records = answers.records(key, question.dataset)
            if not records:
                continue
            accuracy, gap = (
                picked(records, *asked, quantity) for quantity in ("accuracy", asked[0])
            )
            held = sum(value <= question.level for value in gap.values)
            kept = f"{held} of {gap.n}" if gap.n else ""
            shown = [mean_cell(accuracy), mean_cell(gap), kept]
            rows.append(
                [question.dataset, _level(question), answers.study.series[key].label, *shown]
            )
    names = ["table", "allowed", "method", "accuracy", "gap", "gap kept"]
    return table(names, rows) if rows else ""


def _level(question: Question) -> str:
    return f"{MEASURES[question.gap].symbol} = {question.level:g}"


def schedules(answers: Answers) -> str:
    """Return a table that compares the paper's length of training with shorter ones."""
    rows = []
    for question in answers.asked("consistency", quantity="accuracy"):
        dataset = question.dataset
        start = answers.records("unfair", dataset)
        for name, schedule in SCHEDULES.items():
            records = answers.records("ftm", dataset, weights=[*SCHEDULE_WEIGHTS], **schedule)
            if not records:
                continue
            accuracy = interpolated(records, question.gap, question.level, "accuracy", start=start)
            least = least_gap(records, GAPS["WDP"])
            seconds = np.mean([record.seconds for record in records.values()])
            shown = [mean_cell(accuracy), mean_cell(least), f"{seconds:.0f}"]
            rows.append([dataset, _level(question), name, *shown])
    names = ["table", "level", "training", "accuracy, interpolated", "least ΔWDP", "CPU seconds"]
    return table(names, rows) if rows else ""


LARGEST = "half-spaces: largest"

# What is compared at equal gap: the words for the best, and 1 if more is better or -1 if less is.
_ASKED = {
    "accuracy": ("most accurate", 1),
    "consistency": ("most consistent", 1),
    LARGEST: ("smallest gap in the worst half-space", -1),
}

Found = dict[tuple[str, float], dict[str, dict[str, Reading]]]


def frontier_parts(answers: Answers) -> tuple[str, str]:
    """Return the list of the best trees and their tables; empty texts where none are recorded."""
    found = read_frontier(answers)
    return _winners(answers, found), "\n\n".join(_tables(answers, found))


def read_frontier(answers: Answers) -> Found:
    """Return what trees reach at the paper's levels of ΔDP.

    The keys are table and level, then the line, then the quantity.
    """
    found: Found = {}
    for question in answers.asked("trees"):
        if question.quantity not in _ASKED:
            continue
        by_line = found.setdefault((question.dataset, question.level), {})
        for answer in answers.answer(question):
            if answer.series.key in SUBJECTS["trees"]:
                own = by_line.setdefault(answer.series.key, {})
                own[question.quantity] = answer.interpolated
    return {where: by_line for where, by_line in found.items() if by_line}


def _best(by_line: Mapping[str, Mapping[str, Reading]], quantity: str) -> str | None:
    """Return the line that is best in a quantity, among those that come to the level."""
    stated = {key: own[quantity] for key, own in by_line.items() if own[quantity].stated}
    sign = _ASKED[quantity][1]
    return max(stated, key=lambda key: sign * stated[key].mean, default=None)


def _tables(answers: Answers, found: Found) -> Iterator[str]:
    for (dataset, level), by_line in found.items():
        best = {quantity: _best(by_line, quantity) for quantity in _ASKED}
        rows = []
        for key, own in by_line.items():
            cells = [mean_cell(own[quantity]) for quantity in _ASKED]
            marked = [
                f"**{cell}**" if best[quantity] == key else cell
                for cell, quantity in zip(cells, _ASKED, strict=True)
            ]
            rows.append([answers.study.series[key].label, *marked])
        names = ["method", "accuracy", "consistency", "largest gap of half-spaces"]
        yield f"**{dataset}, ΔDP = {level:g}**\n\n{table(names, rows)}"


def _winners(answers: Answers, found: Found) -> str:
    """Return a list of the best method for each table, level and quantity."""
    lines = []
    for (dataset, level), by_line in found.items():
        parts = [
            f"{words} is {answers.study.series[key].label.removeprefix('trees: ')}"
            for quantity, (words, _) in _ASKED.items()
            if (key := _best(by_line, quantity)) is not None
        ]
        if parts:
            lines.append(f"- {dataset} at {level:g}: {'; '.join(parts)}.")
    return "\n".join(lines)
