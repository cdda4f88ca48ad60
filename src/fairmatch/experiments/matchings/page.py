"""The section of the page of results on who is treated like whom."""

from collections.abc import Iterator

import numpy as np

from fairmatch.experiments.matchings.cases import (
    FOLDER,
    LINES,
    MATCHED_ROWS,
    SLACK,
    TOLERANCE,
    UNCONSTRAINED,
    Level,
    matched_cases,
)
from fairmatch.experiments.page.markdown import table
from fairmatch.experiments.reading.answers import Answers
from fairmatch.experiments.reading.comparing import graded
from fairmatch.experiments.reading.questions import GAPS
from fairmatch.experiments.runs.records import Record, RecordStore
from fairmatch.measures import MEASURES

TITLE = "Who is treated like whom"
CLAIM = "At equal gap, FTM treats alike people who are nearer to each other than rivals do (ours)"

# FTM with the marginal map, and the rivals that use the same learner.
_FAMILIES = {
    "networks": ("ftm", ("reduction", "reg", "adv")),
    "trees": ("trees-ftm", ("trees-reg", "trees-alignment", "trees-thresholds")),
}
_COLUMNS = {
    "accuracy": ("accuracy", 4),
    "demographic_parity_gap": ("ΔDP", 3),
    "wasserstein_parity_gap": ("ΔWDP", 3),
    "position": ("position", 3),
    "position, no slack": ("without slack", 3),
    "nearest people's gap": ("nearest people's gap", 3),
}

# Records by table and level, then by line, then by split.
Found = dict[tuple[str, Level], dict[str, dict[int, Record]]]


def read_matchings(answers: Answers) -> Found:
    """Return the records by table and level, line and split."""
    store = RecordStore(answers.store.folder.parent / FOLDER)
    found: Found = {}
    for case in matched_cases(answers.study, answers.store):
        record = store.find(case.spec)
        if record is not None:
            by_line = found.setdefault((case.spec.dataset, case.level), {})
            by_line.setdefault(case.key, {})[case.spec.seed] = record
    # A line that is missing on the first splits comes last here, so the lines are put in order.
    return {
        where: {key: by_line[key] for key in LINES if key in by_line}
        for where, by_line in found.items()
    }


def matchings_section(answers: Answers) -> str:
    """Return the section, or an empty text where nothing is recorded."""
    found = read_matchings(answers)
    if not found:
        return ""
    told = (
        f"## {TITLE}\n\nOf every line and split, the recorded model whose gap on the test rows is "
        "nearest to the level is trained again. It counts if its gap is within "
        f"{TOLERANCE:.0%} of the level. Then {MATCHED_ROWS:,} test rows of each group are matched "
        "(all of a smaller group). The position is that of the nearest fair matching: 0 is as near "
        "as any matching, 1 is as far as a random one. Its mean score gap is at most "
        f"ΔWDP + {SLACK:g}; without slack it is ΔWDP. ΔWDP is that of the matched rows, so it "
        "differs a little from that of all test rows. The nearest people's gap is the mean score "
        "gap of the matching of least cost. All numbers are means over the splits ± standard "
        "error. A model that is hardly fair has a position near 0, so positions are compared at "
        "equal gaps only. The position refers to scores, so ΔWDP is the gap to hold equal; at an "
        "equal ΔDP, scores may differ in ΔWDP. The levels of ΔWDP, the tolerance and the list of "
        "rivals of the claim were set after the first records of Adult's trees, on splits 0 and 1, "
        "had been seen. Adv is trained anew at the weight of its recorded run, which was of an "
        "earlier adversary. `fairmatch paper matchings` makes the records."
    )
    return "\n\n".join([told, *_tables(answers, found)])


def _tables(answers: Answers, found: Found) -> Iterator[str]:
    for (dataset, level), by_line in found.items():
        rows = [
            [
                answers.study.series[key].label,
                *(_cell(records, name, digits) for name, (_, digits) in _COLUMNS.items()),
                str(len(records)),
            ]
            for key, records in by_line.items()
        ]
        names = ["method", *(words for words, _ in _COLUMNS.values()), "splits"]
        symbol = MEASURES[GAPS[level.gap]].symbol
        head = f"**{dataset}, {symbol} nearest to {level.value:g}**"
        yield f"{head}\n\n{table(names, rows)}"
        yield from _places(answers, by_line)


def _places(answers: Answers, by_line: dict[str, dict[int, Record]]) -> Iterator[str]:
    """Yield, for each learner, how many methods have a larger position than FTM."""
    for family, (own, _) in _FAMILIES.items():
        trees = family == "trees"
        others = [
            key
            for key in by_line
            if key.startswith("trees") == trees and key not in (own, *UNCONSTRAINED)
        ]
        compared = {key: pair for key in others if (pair := _positions(by_line, own, key))}
        if not compared:
            continue
        nearer = [key for key, (ours, theirs) in compared.items() if theirs < ours]
        told = (
            f"Among {family}, {answers.study.series[own].label.removeprefix('trees: ')} has a "
            f"smaller position than {len(compared) - len(nearer)} of {len(compared)} others, on "
            "the splits that both have."
        )
        if nearer:
            names = (answers.study.series[key].label.removeprefix("trees: ") for key in nearer)
            told += f" Smaller still: {'; '.join(names)}."
        yield told


def _positions(
    by_line: dict[str, dict[int, Record]], own: str, other: str
) -> tuple[float, float] | None:
    """Return the mean positions of two lines over the splits that both have."""
    common = sorted(by_line.get(own, {}).keys() & by_line.get(other, {}).keys())
    if not common:
        return None
    ours, theirs = (
        float(np.mean([by_line[key][seed].curve["position"][0] for seed in common]))
        for key in (own, other)
    )
    return ours, theirs


def _cell(records: dict[int, Record], name: str, digits: int) -> str:
    values = [record.curve[name][0] for record in records.values()]
    shown = f"{np.mean(values):.{digits}f}"
    if len(values) < 2:
        return shown
    return f"{shown} ± {np.std(values, ddof=1) / len(values) ** 0.5:.{digits}f}"


def matching_verdict(answers: Answers) -> tuple[str, str]:
    """Return the verdict on our claim, and in how many comparisons FTM's position is smaller."""
    held: dict[str, list[bool]] = {}
    told = []
    for (dataset, level), by_line in read_matchings(answers).items():
        where = f"{dataset} at {MEASURES[GAPS[level.gap]].symbol} {level.value:g}"
        for family, (own, rivals) in _FAMILIES.items():
            for rival in rivals:
                pair = _positions(by_line, own, rival)
                if pair is None:
                    continue
                symbol = MEASURES[GAPS[level.gap]].symbol
                held.setdefault(symbol, []).append(pair[0] < pair[1])
                label = answers.study.series[rival].label.removeprefix("trees: ")
                told.append(f"{where}, {family}: {pair[0]:.3f} beside {label} {pair[1]:.3f}")
    every = [nearer for by_gap in held.values() for nearer in by_gap]
    by_gap = ", ".join(f"at equal {gap} {sum(own)} of {len(own)}" for gap, own in held.items())
    counted = f"Nearer in {sum(every)} of {len(every)} ({by_gap})"
    return graded(sum(every), len(every)), f"{counted}. {'; '.join(told)}."
