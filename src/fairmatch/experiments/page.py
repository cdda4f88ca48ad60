"""The page of results: every table and claim, from the records alone."""

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from itertools import groupby
from pathlib import Path

import numpy as np

from fairmatch.exceptions import InputError
from fairmatch.experiments.answers import Answer, Answers
from fairmatch.experiments.claims import verdicts
from fairmatch.experiments.levels import (
    FEWEST_ACCEPTED,
    MOST_ACCEPTED,
    Reading,
    interpolated,
    least_gap,
    nearest,
)
from fairmatch.experiments.questions import GAPS, Question, questions, reported
from fairmatch.experiments.study import (
    EXPERIMENTS,
    FULL,
    SCHEDULE_SEEDS,
    SCHEDULE_WEIGHTS,
    SCHEDULES,
)
from fairmatch.measures import MEASURES

PAGE = "README.md"
RECORDS = "records"
FIGURES = "figures"

# Which figures stand in which section; `figures.py` draws those that the records allow.
SECTION_FIGURES: dict[str, tuple[tuple[str, str], ...]] = {
    "tradeoff": (
        ("tradeoff-wdp", "ΔWDP against accuracy"),
        ("tradeoff-dp", "ΔDP against accuracy"),
        ("tradeoff-meandp", "Δ‾DP against accuracy"),
        ("joint", "With the joint map: ΔDP against accuracy"),
    ),
    "trees": (("trees", "Boosted trees beside networks: ΔWDP against accuracy"),),
    "subsets": (("subsets", "Gaps in 1,000 random half-spaces"),),
    "label-weight": (("label-weight", "Transport cost against accuracy, by label weight"),),
    "representation": (("representation", "Fair representations: Δ‾DP against accuracy"),),
}


def write_page(answers: Answers, folder: str | Path, options: str = "") -> Path:
    """Write the page of results into a folder."""
    file = Path(folder) / PAGE
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(render_page(answers, folder, options), encoding="utf-8")
    return file


def check_page(answers: Answers, folder: str | Path, options: str = "") -> list[str]:
    """Compare the page with what the records say, line by line; empty if they agree."""
    file = Path(folder) / PAGE
    try:
        written = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}): write it first.") from error
    wanted = render_page(answers, folder, options).splitlines()
    return list(unified_diff(written, wanted, "as written", "as recorded", lineterm="", n=0))


def render_page(answers: Answers, folder: str | Path, options: str = "") -> str:
    """Write the whole page as Markdown.

    Parameters
    ----------
    answers : Answers
        What the records say.
    folder : str or path
        Where the page and its figures are.
    options : str
        Options of the command that makes the page, beginning with a space: it tells how.
    """
    drawn = {file.stem for file in (Path(folder) / FIGURES).glob("*.svg")}
    parts = [
        _head(answers, options),
        _short_answer(answers),
        _claims(answers),
        _unconstrained(answers),
    ]
    for name, asked in groupby(answers.questions(), key=lambda question: question.experiment):
        parts.append(_section(name, list(asked), answers, drawn))
        if name == "joint":
            parts.append(_label_weights(answers, drawn))
    parts += [_schedules(answers), _illustrations(drawn)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(answers: Answers, options: str) -> str:
    study, store = answers.study, answers.store
    wanted = study.runs()
    found = [record for spec in wanted if (record := store.find(spec)) is not None]
    if not found:
        raise InputError(f"There are no records of this study in {store.folder}: run it first.")
    hours = sum(record.seconds for record in found) / 3600.0
    versions = sorted({f"{name} {v}" for r in found for name, v in r.versions.items()})
    lengths = study.profile.lengths["network"]
    return f"""# The paper's experiments: its figures and ours

Made of the records in `{RECORDS}/` by `fairmatch paper tables{options}`; no number here is typed by
hand, and `--check` makes the same command fail if one is. `fairmatch paper run{options}` makes the
records, `fairmatch paper figures{options}` the figures.

{len(found)} of {len(wanted)} runs are recorded, {hours:.1f} hours of CPU time (the processes that
compute mini-batch maps not counted): {_counted(answers)}.
Networks train for {lengths["epochs"]:g} epochs at learning rate {lengths["learning_rate"]:g},
multiplied by {lengths["decay"]:g} after each.
Versions: {", ".join(versions)}.

How to read the tables. A method is a curve of models, one per fairness weight. "At a level" means:
*nearest*, as in the paper, each split's model whose gap on the test rows is nearest to the level,
with the mean gap really reached in brackets; *interpolated*, along each split's curve, to the level
itself. Both are means over the random splits ± standard error, with the number of splits in
brackets; where it is smaller than the number of splits recorded, the other curves never come to the
level, or the quantity is not defined there. A curve is followed from its fairest end; models that
accept fewer than {FEWEST_ACCEPTED:.0%} or more than {MOST_ACCEPTED:.0%} of the people are left out,
because they decide nothing. The difference is interpolated less paper, where at least half of the
curves come to the level.
Every level is read off the test rows, as in the paper, so nothing here says what a user who picks a
weight on other rows would get; `docs/reproduction.md` lists what was chosen where the paper is
silent or contradicts itself."""


def _counted(answers: Answers) -> str:
    """Say on how many splits each kind of method is recorded."""
    told = []
    for dataset in answers.study.datasets:
        kinds: dict[str, list[int]] = {}
        for key in answers.study.series:
            kind = "trees" if key.startswith("trees") else _KINDS.get(key, "networks")
            kinds.setdefault(kind, []).append(len(answers.records(key, dataset)))
        told.append(f"{dataset} ({', '.join(f'{k} {_span(n)}' for k, n in kinds.items())})")
    return f"splits per method are {', '.join(told)}"


_KINDS = dict.fromkeys(("laftr", "sipm", "repair"), "representations")


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"


# Columns of the short answer, for the marginal map and for the joint one.
_SHORT = {
    "FTM": ("ftm-batch", "ftm", "trees-ftm", "trees-predicted"),
    "FTM joint": ("ftm-batch-joint", "ftm-joint", "trees-ftm-joint"),
}


def _short_answer(answers: Answers) -> str:
    """Put FTM as the paper has it beside ours, at the levels of two of its tables."""
    lines = []
    for question in questions():
        dataset, quantity = question.dataset, question.quantity
        if question.experiment not in ("consistency", "joint") or question.better < 0:
            continue
        if dataset not in answers.study.datasets:
            continue
        found = {answer.series.key: answer.interpolated for answer in answers.answer(question)}
        free = nearest(answers.records("unfair", dataset), question.gap, 0.0, quantity)
        for name, keys in _SHORT.items():
            paper = question.paper.get(name)
            if paper is None or not found.keys() & set(keys):
                continue
            level = f"{MEASURES[question.gap].symbol} = {question.level:g}"
            label = question.label + (", joint map" if name == "FTM joint" else "")
            cells = [_beside(paper, found.get(key)) for key in keys]
            cells += [""] * (len(_SHORT["FTM"]) - len(cells))
            start = [dataset, level, label, _as_printed(paper, 4)]
            lines.append("| " + " | ".join([*start, *cells, _mean(free)]) + " |")
    if not lines:
        return ""
    labels = [answers.study.series[key].label for key in _SHORT["FTM"]]
    names = ["table", "level", "", "FTM in the paper", *labels, "our network without a penalty"]
    told = (
        "FTM at equal gap, interpolated; in bold what is at least the paper's figure. The last "
        "column is not at that gap: it says how far the tables differ before anything is fair."
    )
    head = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    return "\n".join(["## The short answer", "", told, "", *head, *lines])


def _beside(paper: float, reading: Reading | None) -> str:
    if reading is None:
        return ""
    shown = _reading(reading, 4)
    return f"**{shown}**" if reading.stated and round(reading.mean, 4) >= paper else shown


def _mean(reading: Reading) -> str:
    return f"{reading.mean:.4f}" if reading.n else ""


def _claims(answers: Answers) -> str:
    rule = (
        "*Holds*: in every case that the claim speaks of (in more than half where it says *most*); "
        "*holds in part*: in some; *does not hold*: in none (in at most half). FTM means the "
        "paper's, with maps of mini-batches, unless all rows are named. Methods are compared split "
        "by split, interpolated to the level; a rival that comes to it on fewer than half of the "
        "splits is left out there. In brackets: who is better, and by how much."
    )
    lines = [
        f"{number}. {verdict.claim}: **{verdict.state}**. {verdict.numbers}".rstrip()
        for number, verdict in enumerate(verdicts(answers), start=1)
    ]
    return "\n".join(["## The paper's claims", "", rule, "", *lines])


def _unconstrained(answers: Answers) -> str:
    """Show where every curve begins."""
    columns = ("accuracy", *GAPS.values(), "consistency")
    names = [MEASURES[name].symbol if name in MEASURES else name for name in columns]
    lines = [f"| table | model | {' | '.join(names)} |", "|---" * (len(columns) + 2) + "|"]
    for dataset in answers.study.datasets:
        for key in ("unfair", "trees-unfair"):
            records = answers.records(key, dataset)
            if records:
                label = answers.study.series[key].label
                cells = [_reading(nearest(records, columns[1], 0.0, c), 4) for c in columns]
                lines.append(f"| {dataset} | {label} | {' | '.join(cells)} |")
    return "\n".join(["## Unconstrained models", "", *lines]) if len(lines) > 2 else ""


def _title(name: str) -> str:
    others = {
        "trees": "Boosted trees",
        "own": "Other tables",
        "representation": "Fair representations",
    }
    return others[name] if name in others else EXPERIMENTS[name].title


def _section(name: str, asked: Sequence[Question], answers: Answers, drawn: set[str]) -> str:
    tables, any_paper = [], False
    for (dataset, gap, level), cells in groupby(
        asked, key=lambda question: (question.dataset, question.gap, question.level)
    ):
        if dataset not in answers.study.datasets:
            continue
        listed = list(cells)
        compared = any(question.paper for question in listed)
        any_paper |= compared
        rows = [row for question in listed for row in _rows(question, answers, compared)]
        if rows:
            head = f"**{dataset}, {MEASURES[gap].symbol} = {level:g}**"
            tables.append("\n".join([head, "", *_table_head(compared), *rows]))
    if not tables:
        return ""
    pictures = _pictures(name, drawn)
    if pictures and not any_paper:  # the pictures say it; the numbers are there to look up
        tables = ["<details><summary>In numbers</summary>", *tables, "</details>"]
    extra = _spreads(answers) if name == "imbalance" else ""
    told = _NOTES.get(name, "")
    parts = (f"## {_title(name)}", told, pictures, *tables, extra)
    return "\n\n".join(part for part in parts if part)


_NOTES = {
    "flips": (
        "Decisions that fairness turns against its purpose: S = 1 from 0 to 1, S = 0 from 1 to 0. "
        "German stands without the paper's figures, because its Y = 1 seems to be bad credit there "
        "and is good credit here; on Bank the favoured group is S = 0, so the rule is the paper's "
        "and not the purpose."
    ),
}


def _table_head(compared: bool) -> tuple[str, str]:
    """Name the columns; where the paper prints nothing there is nothing to compare with."""
    ours = ["ours, nearest [level]", "ours, interpolated"]
    names = ["", "method", *(["paper", *ours, "difference"] if compared else ours)]
    return "| " + " | ".join(names) + " |", "|---" * len(names) + "|"


def _rows(question: Question, answers: Answers, compared: bool) -> Iterator[str]:
    for index, answer in enumerate(answers.answer(question)):
        label = question.label if index == 0 else ""
        cells = _cells(question, answer)
        shown = cells if compared else cells[1:3]
        yield "| " + " | ".join([label, answer.series.label, *shown]) + " |"


def _cells(question: Question, answer: Answer) -> list[str]:
    digits = 1 if question.label.startswith(("flips", "outliers")) else 4
    paper = "" if answer.paper is None else _as_printed(answer.paper, digits)
    near = _reading(answer.nearest, digits)
    if answer.nearest.n:
        near += f" [{answer.nearest.level:.3f}]"
    difference = "" if answer.difference is None else f"{answer.difference:+.{digits}f}"
    return [paper, near, _reading(answer.interpolated, digits), difference]


def _as_printed(value: float, digits: int) -> str:
    """Write a figure of the paper with its three digits, or four where it has them."""
    shown = f"{value:.{digits}f}"
    return shown[:-1] if digits == 4 and shown.endswith("0") else shown


def _reading(reading: Reading, digits: int) -> str:
    """Write a mean with its standard error and the number of splits it is of."""
    if not reading.n:
        return f"not reached (0 of {reading.n_seeds})"
    of = f"{reading.n}" if reading.n == reading.n_seeds else f"{reading.n} of {reading.n_seeds}"
    error = f" ± {reading.error:.{digits}f}" if np.isfinite(reading.error) else ""
    return f"{reading.mean:.{digits}f}{error} ({of})"


def _pictures(name: str, drawn: set[str]) -> str:
    wanted = SECTION_FIGURES.get(name, ())
    return "\n\n".join(f"![{text}]({FIGURES}/{stem}.svg)" for stem, text in wanted if stem in drawn)


def _spreads(answers: Answers) -> str:
    """Give the stability of the accuracy as the paper does: Avg, Std and CV."""
    question = next(q for q in questions() if q.experiment == "imbalance")
    paper = reported()["imbalance_adult"]["Acc"]
    lines = [
        "Stability of the accuracy, interpolated or else nearest (paper | ours):",
        "",
        "| method | Avg | Std | CV |",
        "|---|---|---|---|",
    ]
    for answer in answers.answer(question):
        best = answer.interpolated if answer.interpolated.stated else answer.nearest
        name = answer.series.paper
        ours = (best.mean, best.spread, best.spread / best.mean)
        cells = [
            (f"{paper[kind][name]:.3f} | " if name in paper[kind] else "").replace("|", "\\|")
            + (f"{value:.4f}" if np.isfinite(value) else "one split")
            for kind, value in zip(("Avg", "Std", "CV"), ours, strict=True)
        ]
        lines.append(f"| {answer.series.label} ({best.n}) | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _label_weights(answers: Answers, drawn: set[str]) -> str:
    """Show what the label weight does to accuracy and transport cost, on Adult."""
    if "adult" not in answers.study.datasets:
        return ""
    blocks = []
    for level in reported()["transport_cost_vs_accuracy_adult"]["at_DP"]:
        lines = [
            f"**adult, ΔDP = {level:g}**",
            "",
            "| α | maps | accuracy | transport cost |",
            "|---|---|---|---|",
        ]
        for maps, kind in (("ftm", "all rows"), ("ftm-batch", "mini-batch")):
            for value in answers.study.profile.label_weights:
                records = answers.of_label_weight(maps, value)
                if not records:
                    continue
                start = answers.records("unfair", "adult")
                cells = [
                    _reading(interpolated(records, GAPS["DP"], level, q, start=start), digits)
                    for q, digits in (("accuracy", 4), ("transport_cost", 3))
                ]
                lines.append(f"| {value:g} | {kind} | " + " | ".join(cells) + " |")
        if len(lines) > 4:
            blocks.append("\n".join(lines))
    if not blocks:
        return ""
    told = (
        "Transport cost of the fair matching on the test rows, by 100 mini-batches of 1,024 people "
        "of each group; interpolated to the level."
    )
    title = f"## {EXPERIMENTS['label-weight'].title}"
    return "\n\n".join(p for p in (title, told, _pictures("label-weight", drawn), *blocks) if p)


def _schedules(answers: Answers) -> str:
    """Compare lengths of training: the paper's, and what was used instead."""
    if answers.study.profile is not FULL:
        return ""
    names = ("table", "level", "training", "accuracy, interpolated", "least ΔWDP", "CPU seconds")
    lines = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    for question in questions():
        dataset = question.dataset
        if question.experiment != "consistency" or question.quantity != "accuracy":
            continue
        for name, schedule in SCHEDULES.items():
            records = answers.records(
                "ftm", dataset, weights=list(SCHEDULE_WEIGHTS), **dict(schedule)
            )
            if not records:
                continue
            asked = question.gap, question.level, "accuracy"
            reading = interpolated(records, *asked, start=answers.records("unfair", dataset))
            seconds = np.mean([record.seconds for record in records.values()])
            level = f"{MEASURES[question.gap].symbol} = {question.level:g}"
            least = least_gap(records, GAPS["WDP"])
            cells = [dataset, level, name, _reading(reading, 4), _reading(least, 4)]
            lines.append("| " + " | ".join([*cells, f"{seconds:.0f}"]) + " |")
    if len(lines) == 2:
        return ""
    told = (
        f"FTM with all rows on {SCHEDULE_SEEDS} splits and {len(SCHEDULE_WEIGHTS)} fairness "
        "weights. The rate falls by 5 % after each epoch in the first two, by 10 % in the third. The "
        "least ΔWDP is that of models which do not accept (almost) everybody or nobody."
    )
    return "\n".join([f"## {EXPERIMENTS['schedule'].title}", "", told, "", *lines])


def _illustrations(drawn: set[str]) -> str:
    wanted = (
        ("appendix-b", "Two fair models, one of them cruel (Appendix B)"),
        ("counterfactual", "Counterfactuals and the optimal transport map (Proposition 4.3)"),
    )
    pictures = [f"![{text}]({FIGURES}/{stem}.svg)" for stem, text in wanted if stem in drawn]
    return "\n\n".join(["## Illustrations", *pictures]) if pictures else ""
