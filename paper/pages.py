"""The pages that show the records."""

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from fairmatch.datasets import PAPER_DATASETS
from fairmatch.exceptions import InputError
from fairmatch.measures import MEASURES
from fairmatch.people.files import whole_file
from fairmatch.report.charts import load_altair
from paper import groups, matchings
from paper.claims import DOES_NOT, HOLDS, IN_PART, UNKNOWN, Verdict, verdicts
from paper.questions import SUBJECTS, Answer, Answers, Question, reported
from paper.readings import (
    FEWEST_ACCEPTED,
    MOST_ACCEPTED,
    mean_cell,
    page_of,
    paper_cell,
    plain_text,
    table,
)
from paper.records import RecordStore
from paper.specs import EXPERIMENTS, SCHEDULE_SEEDS, SCHEDULE_WEIGHTS, SERIES, Study
from paper.tables import (
    frontier_parts,
    label_weights,
    picked_on_training,
    schedules,
    short_answer,
    stability,
    unconstrained,
)

PAGE = "README.md"
TABLES = "tables.md"
RECORDS = "records"
FIGURES = "figures"

# The figures of each section, with their captions; `figures.py` draws those that records allow.
SECTION_FIGURES: dict[str, tuple[tuple[str, str], ...]] = {
    "tradeoff": (
        ("tradeoff-wdp", "ΔWDP against accuracy"),
        ("tradeoff-dp", "ΔDP against accuracy"),
        ("tradeoff-meandp", "Δ‾DP against accuracy"),
        ("joint", "With the joint map: ΔDP against accuracy"),
    ),
    "frontier": (("frontier", "Accuracy against consistency at equal gap, boosted trees"),),
    "trees": (("trees", "Boosted trees beside networks: ΔWDP against accuracy"),),
    "subsets": (("subsets", "Gaps in 1,000 random half-spaces"),),
    "label-weight": (("label-weight", "Transport cost against accuracy, by label weight"),),
    "representation": (("representation", "Fair representations: Δ‾DP against accuracy"),),
    "illustrations": (
        (
            "appendix-b",
            "Two models without a gap; one of them swaps a subset (Appendix B)",
        ),
        ("counterfactual", "Counterfactuals and the optimal transport map (Proposition 4.3)"),
    ),
}


def pages(
    study: Study, store: RecordStore, folder: str | Path, options: str = ""
) -> dict[Path, str]:
    """Return the text of every page that the records of a folder allow, by its file.

    A page quotes the command that makes it, with its options.
    """
    folder = Path(folder)
    answers = Answers(study, store)
    found = {folder / PAGE: render_page(answers, folder, options)}
    if _has_paper_tables(answers):  # the claims come first, and the tables behind them
        found = {
            folder / PAGE: render_claims(answers, folder, options),
            folder / TABLES: found[folder / PAGE],
        }
    if (folder / groups.FOLDER).exists():
        found[folder / groups.PAGE] = groups.page_text(RecordStore(folder / groups.FOLDER))
    return found


def check_page(file: Path, text: str) -> list[str]:
    """Return the lines in which a page and the records differ, as a diff; empty if none do."""
    try:
        written = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(
            f"{file} cannot be read ({error.strerror}). Write it first, without --check."
        ) from error
    names = f"{file.name} as written", f"{file.name} as recorded"
    return list(unified_diff(written, text.splitlines(), *names, lineterm="", n=0))


def render_page(answers: Answers, folder: str | Path, options: str = "") -> str:
    """Return the whole page of the paper's tables as Markdown, with the figures of a folder."""
    study, store = answers.study, answers.store
    wanted = study.runs()
    found = [record for spec in wanted if (record := store.find(spec)) is not None]
    if not found:
        raise InputError(
            f"There are no records of this study in {store.folder}. Run it first, with "
            f"python -m paper run{options}."
        )
    drawn = {file.stem for file in (Path(folder) / FIGURES).glob("*.svg")}
    sections = [
        (name, _title(name), _section(name, list(asked), answers, drawn))
        for name, asked in groupby(answers.questions(), key=lambda question: question.experiment)
    ]
    best, at_levels = frontier_parts(answers)
    return page_of(
        "tables",
        options=options,
        n_found=len(found),
        n_wanted=len(wanted),
        hours=sum(record.seconds for record in found) / 3600.0,
        splits=_counted(answers),
        lengths=study.profile.lengths["network"],
        versions=sorted({f"{name} {v}" for r in found for name, v in r.versions.items()}),
        fewest=f"{FEWEST_ACCEPTED:.0%}",
        most=f"{MOST_ACCEPTED:.0%}",
        short=short_answer(answers),
        best=_joined(_pictures("frontier", drawn), best),
        at_levels=at_levels,
        numbers=_numbers(answers) if _has_paper_tables(answers) else "",
        matched=matchings,
        matchings=matchings.matching_tables(answers),
        unconstrained=unconstrained(answers),
        sections=sections,
        titles=EXPERIMENTS,
        label_weights=_label_weights(answers, drawn),
        picked=picked_on_training(answers),
        schedules=schedules(answers),
        n_schedule_seeds=SCHEDULE_SEEDS,
        n_schedule_weights=len(SCHEDULE_WEIGHTS),
        illustrations=_pictures("illustrations", drawn),
    )


# Other studies, each with a page in the folder of the results.
_STUDIES = {
    "groups.md": "Several groups, and other criteria",
    "classes.md": "Several classes",
    "blind.md": "Decisions without the group",
    "likeness.md": "Similarity by range or by relevance, and models within strata",
    "peers.md": "Other libraries",
}


def render_claims(answers: Answers, folder: str | Path, options: str = "") -> str:
    """Return the page of the paper's claims as Markdown: one table, and links to the details."""
    judged = _judged(answers)
    counts = Counter(one.found.state for one in judged)
    rows = [
        [f"{number}", one.claim, f"**{one.found.state}**", one.found.where, one.found.figure]
        for number, one in enumerate(judged, start=1)
    ]
    return page_of(
        "claims",
        options=options,
        n_claims=len(judged),
        counts=[f"{n} {words[n > 1]}" for state, words in _STATES.items() if (n := counts[state])],
        claims=table(["", "claim", "verdict", "where it holds", "the deciding figure"], rows),
        studies={name: own for name, own in _STUDIES.items() if (Path(folder) / name).exists()},
    )


_STATES = {
    HOLDS: ("holds", "hold"),
    IN_PART: ("holds in part", "hold in part"),
    DOES_NOT: ("does not hold", "do not hold"),
    UNKNOWN: ("is not recorded", "are not recorded"),
}


def _judged(answers: Answers) -> list[Verdict]:
    """Return the verdicts on the paper's claims, and on ours if it is recorded."""
    judged = verdicts(answers)
    if (ours := matchings.matching_verdict(answers)).state != UNKNOWN:
        judged.append(Verdict(matchings.CLAIM, ours))
    return judged


def _has_paper_tables(answers: Answers) -> bool:
    return bool(set(PAPER_DATASETS) & set(answers.study.datasets))


def _recorded(answers: Answers, keys: Sequence[str]) -> bool:
    """Return whether one of these lines is recorded on a table; True if no line is named."""
    study = answers.study
    found = (answers.records(key, name) for key in keys for name in study.datasets)
    return not keys or any(found)


def _counted(answers: Answers) -> str:
    """Return how many splits of each table are recorded, by kind of method, in words."""
    told = []
    for dataset in answers.study.datasets:
        kinds: dict[str, list[int]] = {}
        for key in answers.study.series:
            kinds.setdefault(_kind(key), []).append(len(answers.records(key, dataset)))
        told.append(f"{dataset} ({', '.join(f'{k} {_span(n)}' for k, n in kinds.items())})")
    return ", ".join(told)


def _kind(key: str) -> str:
    if key not in SERIES:
        return "yours"
    if key in SUBJECTS["representation"]:
        return "representations"
    return "trees" if key.startswith("trees") else "networks"


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"


def _numbers(answers: Answers) -> str:
    """Return the numbers behind the verdicts on the claims."""
    return "\n".join(
        f"{number}. **{verdict.claim}**: {verdict.found.state}. {verdict.numbers}"
        for number, verdict in enumerate(_judged(answers), start=1)
        if verdict.numbers
    )


def _title(name: str) -> str:
    others = {
        "trees": "Boosted trees",
        "own": "Other tables",
        "representation": "Fair representations",
    }
    return others[name] if name in others else EXPERIMENTS[name].title


def _section(name: str, asked: Sequence[Question], answers: Answers, drawn: set[str]) -> str:
    if not _recorded(answers, SUBJECTS.get(name, ())):
        return ""
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
            ours = ["ours, nearest [level]", "ours, interpolated"]
            names = ["", "method", *(["paper", *ours, "difference"] if compared else ours)]
            head = f"**{dataset}, {MEASURES[gap].symbol} = {level:g}**"
            tables.append(f"{head}\n\n{table(names, rows)}")
    if not tables:
        return ""
    pictures = _pictures(name, drawn)
    if name == "own" and not _has_paper_tables(answers):
        # With the paper's tables, these pictures stand further up.
        pictures = _joined(*(_pictures(k, drawn) for k in ("tradeoff", "trees", "representation")))
    if pictures and not any_paper:  # the pictures tell it; the numbers are there to look up
        tables = ["<details><summary>In numbers</summary>", *tables, "</details>"]
    if name == "imbalance":
        tables += ["Stability, interpolated or else nearest:", stability(answers)]
    return _joined(pictures, *tables)


def _joined(*parts: str) -> str:
    return "\n\n".join(filter(None, parts))


def _rows(question: Question, answers: Answers, compared: bool) -> Iterator[list[str]]:
    for index, answer in enumerate(answers.answer(question)):
        label = question.label if index == 0 else ""
        cells = _cells(question, answer)
        yield [label, plain_text(answer.series.label), *(cells if compared else cells[1:3])]


def _cells(question: Question, answer: Answer) -> list[str]:
    digits = question.digits
    near = mean_cell(answer.nearest, digits)
    if answer.nearest.n:
        near += f" [{answer.nearest.level:.3f}]"
    difference = "" if answer.difference is None else f"{answer.difference:+.{digits}f}"
    ours = [near, mean_cell(answer.interpolated, digits)]
    return [paper_cell(answer.paper, digits), *ours, difference]


def _pictures(name: str, drawn: set[str]) -> str:
    wanted = SECTION_FIGURES.get(name, ())
    return "\n\n".join(f"![{text}]({FIGURES}/{stem}.svg)" for stem, text in wanted if stem in drawn)


def _label_weights(answers: Answers, drawn: set[str]) -> str:
    if "adult" not in answers.study.datasets:
        return ""
    blocks = [
        f"**adult, ΔDP = {level:g}**\n\n{rows}"
        for level in reported()["transport_cost_vs_accuracy_adult"]["at_DP"]
        if (rows := label_weights(answers, level))
    ]
    return _joined(_pictures("label-weight", drawn), *blocks)


ILLUSTRATIONS = ("appendix-b", "counterfactual")
"""Names of the figures that do not depend on the records."""


def draw_figures(answers: Answers, folder: str | Path) -> list[Path]:
    """Draw the illustrations and every figure that the records allow as SVG; return the files."""
    from paper.illustrations import appendix_b, counterfactuals

    charts, figures = _charts(answers)
    drawn = figures.appendix_b_chart(appendix_b()), figures.counterfactual_chart(counterfactuals())
    charts |= zip(ILLUSTRATIONS, drawn, strict=True)
    return [_save(chart, Path(folder) / f"{name}.svg") for name, chart in charts.items()]


def stale_figures(answers: Answers, folder: str | Path) -> list[Path]:
    """Return the files of figures that are missing, edited, or differ from the records."""
    charts, _ = _charts(answers)
    stale = []
    for name in (*charts, *ILLUSTRATIONS):
        file = Path(folder) / f"{name}.svg"
        text = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
        drawing, _, marks = text.rpartition("\n<!-- ")
        data = _of_data(charts[name]) if name in charts else ""
        if not marks or _of_drawing(drawing) not in marks or data not in marks:
            stale.append(file)
    return stale


def _charts(answers: Answers) -> tuple[dict[str, Any], Any]:
    """Return the charts that the records allow, and the module that draws."""
    load_altair()
    from paper import figures

    charts = figures.recorded_charts(answers)
    if not charts:
        raise InputError(
            f"There are no records in {answers.store.folder}. Run the study first, with "
            "python -m paper run."
        )
    return charts, figures


def _save(chart: Any, file: Path) -> Path:
    """Write a chart as SVG, with hashes of its data and its drawing, and return the file."""
    with whole_file(file) as partial:
        chart.save(str(partial), format="svg")
        drawing = partial.read_text(encoding="utf-8")
        marks = f"{_of_data(chart)} {_of_drawing(drawing)}"
        partial.write_text(f"{drawing}\n<!-- {marks} -->\n", encoding="utf-8")
    return file


def _of_data(chart: Any) -> str:
    """Return a hash of the numbers that a chart shows, regardless of its style."""
    shown = chart.to_dict()["datasets"].values()
    # The last digits of a mean may differ from machine to machine.
    rounded = [pd.DataFrame(rows).round(6).to_json(double_precision=6) for rows in shown]
    return f"data:{sha256(''.join(sorted(rounded)).encode()).hexdigest()}"


def _of_drawing(text: str) -> str:
    """Return a hash of the drawing itself, which must not be edited."""
    return f"drawing:{sha256(text.encode()).hexdigest()}"
