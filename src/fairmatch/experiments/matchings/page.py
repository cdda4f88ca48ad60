"""What the page of results says of who is treated like whom."""

from collections.abc import Iterator

import numpy as np

from fairmatch.experiments.matchings.cases import (
    FOLDER,
    MATCHED_ROWS,
    SLACK,
    level_of,
    matched_cases,
)
from fairmatch.experiments.page.markdown import table
from fairmatch.experiments.reading.answers import Answers
from fairmatch.experiments.reading.comparing import graded
from fairmatch.experiments.runs.records import Record, RecordStore

TITLE = "Who is treated like whom"
CLAIM = "At equal gap, FTM treats alike people who are nearer to each other than rivals do (ours)"

# FTM beside the rivals that learn with the same learner.
_FAMILIES = {
    "networks": ("ftm", ("reduction", "reg", "adv")),
    "trees": ("trees-ftm", ("trees-reg", "trees-predicted", "trees-alignment")),
}
_COLUMNS = {
    "accuracy": 4,
    "demographic_parity_gap": 3,
    "position": 3,
    "position, no slack": 3,
    "nearest people's gap": 3,
}

Found = dict[str, dict[str, dict[int, Record]]]


def read_matchings(answers: Answers) -> Found:
    """Return the records by table, line and split."""
    store = RecordStore(answers.store.folder.parent / FOLDER)
    found: Found = {}
    for case in matched_cases(answers.study, answers.store):
        record = store.find(case.spec)
        if record is not None:
            by_line = found.setdefault(case.spec.dataset, {})
            by_line.setdefault(case.key, {})[case.spec.seed] = record
    return found


def matchings_section(answers: Answers) -> str:
    """Return the section, or nothing where nothing is recorded."""
    found = read_matchings(answers)
    if not found:
        return ""
    told = (
        f"## {TITLE}\n\nOf every line and split, the recorded model whose ΔDP on the test rows is "
        "nearest to the paper's level is trained again, and "
        f"{MATCHED_ROWS:,} test rows of each group are matched (all of a smaller group). The "
        "position is that of the nearest fair matching: 0 is as near as any matching, 1 is as far "
        f"as a random one. Its mean score gap is at most ΔWDP + {SLACK:g}; without slack it is "
        "ΔWDP. The last column is the mean score gap between the nearest people. The numbers are "
        "means over the splits ± standard error. A model that is hardly fair has a position near "
        "0, so positions are compared at equal gaps only. `fairmatch paper matchings` makes the "
        "records."
    )
    return "\n\n".join([told, *_tables(answers, found)])


def _tables(answers: Answers, found: Found) -> Iterator[str]:
    for dataset, by_line in found.items():
        rows = [
            [
                answers.study.series[key].label,
                *(_cell(records, name, digits) for name, digits in _COLUMNS.items()),
                str(len(records)),
            ]
            for key, records in by_line.items()
        ]
        names = ["method", "accuracy", "ΔDP", "position", "without slack", "nearest people's gap"]
        head = f"**{dataset}, ΔDP nearest to {level_of(dataset):g}**"
        yield f"{head}\n\n{table([*names, 'splits'], rows)}"


def _cell(records: dict[int, Record], name: str, digits: int) -> str:
    values = [record.curve[name][0] for record in records.values()]
    shown = f"{np.mean(values):.{digits}f}"
    if len(values) < 2:
        return shown
    return f"{shown} ± {np.std(values, ddof=1) / len(values) ** 0.5:.{digits}f}"


def matching_verdict(answers: Answers) -> tuple[str, str]:
    """Judge our claim: in how many comparisons FTM's position is the smaller one."""
    held, n_all, told = 0, 0, []
    for dataset, by_line in read_matchings(answers).items():
        for family, (own, rivals) in _FAMILIES.items():
            for rival in rivals:
                common = by_line.get(own, {}).keys() & by_line.get(rival, {}).keys()
                if not common:
                    continue
                ours, theirs = (
                    float(np.mean([by_line[key][s].curve["position"][0] for s in sorted(common)]))
                    for key in (own, rival)
                )
                n_all += 1
                held += ours < theirs
                label = answers.study.series[rival].label
                told.append(f"{dataset}, {family}: {ours:.3f} beside {label} {theirs:.3f}")
    return graded(held, n_all), f"Nearer in {held} of {n_all}. {'; '.join(told)}."
