"""The page of the study of groups, written from its records."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairmatch.experiments.groups.cases import CASES, Case
from fairmatch.experiments.groups.methods import METHODS
from fairmatch.experiments.groups.picking import picked_index
from fairmatch.experiments.page.markdown import table
from fairmatch.experiments.runs.records import Record, RecordStore

FOLDER, PAGE = "groups", "groups.md"
SEEDS = (0, 1, 2, 3, 4)
# The yardstick that a user has already, and how far below it an accuracy counts as level.
YARDSTICK, MARGIN = "thresholds", 0.003
# What a user would train instead; it takes longer.
SLOW = "exponentiated-gradient"

_COLUMNS = ("test_accuracy", "test_gap", "half_space_gap", "consistency")


@dataclass(frozen=True)
class Picked:
    """What a method reaches at a level: the candidate picked on the tuning rows of each split.

    Attributes
    ----------
    values : dict
        Name of a quantity to its values on the test rows, one per split that has a candidate.
    n_splits : int
        Number of splits that were run.
    """

    values: dict[str, list[float]]
    n_splits: int

    @property
    def n(self) -> int:
        """Number of splits on which a candidate keeps the level."""
        return len(self.values[_COLUMNS[0]])

    def mean(self, name: str) -> float:
        """Return the mean over the splits."""
        return float(np.mean(self.values[name]))

    def cell(self, name: str, digits: int = 4) -> str:
        """Return the mean and its standard error, as the page shows them."""
        values = self.values[name]
        if not values:
            return "not reached"
        error = f" ± {np.std(values, ddof=1) / np.sqrt(self.n):.{digits}f}" if self.n > 1 else ""
        few = f" ({self.n} of {self.n_splits})" if self.n < self.n_splits else ""
        return f"{self.mean(name):.{digits}f}{error}{few}"


def pick(records: Sequence[Record], level: float) -> Picked:
    """Return what `picked_index` picks on the tuning rows of each split."""
    values: dict[str, list[float]] = {name: [] for name in _COLUMNS}
    for record in records:
        best = picked_index(record.curve, level)
        if best is not None:
            for name in _COLUMNS:
                values[name].append(float(record.curve[name][best]))
    return Picked(values, len(records))


def read_records(folder: Path) -> dict[tuple[str, str], list[Record]]:
    """Return the records of the reported seeds, by case and method."""
    found: dict[tuple[str, str], list[Record]] = {}
    for record in RecordStore(folder):
        if record.spec.seed in SEEDS:
            found.setdefault((record.spec.dataset, record.spec.method), []).append(record)
    return found


def _case_lines(case: Case, records: dict[tuple[str, str], list[Record]]) -> Iterable[str]:
    methods = [name for name in METHODS if (case.name, name) in records]
    yield f"\n## {case.title}\n"
    for level in case.levels:
        picked = {name: pick(records[case.name, name], level) for name in methods}
        rows = []
        for name in methods:
            cells = [
                METHODS[name].title,
                picked[name].cell("test_accuracy"),
                picked[name].cell("test_gap"),
                picked[name].cell("half_space_gap", 3),
                picked[name].cell("consistency", 3),
                str(picked[name].n_splits),
                f"{_seconds(records[case.name, name]):.0f}",
            ]
            rows.append(cells)
        names = ["method", "accuracy", "gap", "half-space gap", "consistency", "splits"]
        names.append("CPU seconds")
        yield f"Largest gap at most {level:g} on the tuning rows:\n"
        yield table(names, rows) + "\n"
        yield from _verdict({name: records[case.name, name] for name in methods}, level)


def _verdict(records: dict[str, list[Record]], level: float) -> Iterable[str]:
    """Yield a line for each of our learners that compares it with the usual alternatives."""
    for name, own in records.items():
        if not METHODS[name].ours:
            continue
        told = []
        if found := _beside(own, records.get(YARDSTICK, []), level):
            ours, theirs, splits = found
            difference = ours.mean("test_accuracy") - theirs.mean("test_accuracy")
            within = "within" if difference >= -MARGIN else "not within"
            gap = ours.mean("test_gap") - theirs.mean("test_gap")
            smaller = ours.mean("half_space_gap") < theirs.mean("half_space_gap")
            told.append(
                f"its accuracy differs from that of thresholds by {difference:+.4f} on {splits}, "
                f"which is {within} the margin of {MARGIN:g}. Its gap differs by {gap:+.3f}. Its "
                f"half-space gap is {'smaller' if smaller else 'not smaller'}."
            )
        if found := _beside(own, records.get(SLOW, []), level):
            ours, theirs, splits = found
            difference = ours.mean("test_accuracy") - theirs.mean("test_accuracy")
            start = "Its accuracy" if told else "its accuracy"
            told.append(
                f"{start} differs from that of exponentiated gradient by {difference:+.4f} on "
                f"{splits}, in {_seconds(own) / _seconds(records[SLOW]):.2f} of its CPU time."
            )
        if told:
            yield f"- {METHODS[name].title}: {' '.join(told)}"
    yield ""


def _beside(
    own: Sequence[Record], others: Sequence[Record], level: float
) -> tuple[Picked, Picked, str] | None:
    """Return what two methods reach on their common splits, or None where one misses the level."""
    seeds = {r.spec.seed for r in own} & {r.spec.seed for r in others}
    ours, theirs = (
        pick([r for r in both if r.spec.seed in seeds], level) for both in (own, others)
    )
    if not seeds or ours.n < len(seeds) or theirs.n < len(seeds):
        return None
    return ours, theirs, "one split" if len(seeds) == 1 else f"{len(seeds)} splits"


def _seconds(records: Sequence[Record]) -> float:
    return float(np.mean([record.seconds for record in records]))


# The short answer shows the yardstick, the learners nearest to it, and the slow rival.
_SHORT = (YARDSTICK, "ftm-predicted", "ftm-thresholds", "smoothing", SLOW)


def _short_answer(records: dict[tuple[str, str], list[Record]]) -> str:
    """Return a table of the main methods' accuracy and half-space gap, by case and level."""
    rows = []
    for case in CASES.values():
        for level in case.levels:
            cells = []
            for name in _SHORT:
                picked = pick(records.get((case.name, name), []), level)
                cells.append(_short_cell(picked))
            if any(cells):
                rows.append([case.title, f"{level:g}", *cells])
    told = (
        "Accuracy on the test rows, then the half-space gap, as means over the splits on which the "
        "method keeps the level on the tuning rows. A number of splits stands behind where it is "
        "not all five. Methods with other splits are not comparable to the third digit."
    )
    return f"{told}\n\n{table(['case', 'gap', *(METHODS[name].title for name in _SHORT)], rows)}"


def _short_cell(picked: Picked) -> str:
    if not picked.n_splits:
        return ""
    if not picked.n:
        return "not reached"
    few = f" ({picked.n})" if picked.n < len(SEEDS) else ""
    return f"{picked.mean('test_accuracy'):.4f}, {picked.mean('half_space_gap'):.3f}{few}"


def page_text(folder: Path) -> str:
    """Return the whole page."""
    records = read_records(folder)
    lines = [
        "# Several groups, and other criteria",
        "",
        "Written by `fairmatch groups page` from the records in `results/groups/`, which "
        "`fairmatch groups run` makes.",
        "",
        "Each split has rows to fit on (64%), rows to tune on (16%) and test rows (20%). Every "
        "method is tuned on the same rows: of its candidates, the one most accurate on the tuning "
        "rows whose largest gap over pairs of groups is within the level there. The numbers are of "
        "the test rows, as mean ± standard error over the splits. The gap on the test rows can "
        "exceed the level, for every method. Groups with fewer than about 400 test rows are pooled "
        'as "other". All trees are LightGBM\'s, 200 rounds.',
        "",
        "The half-space gap is the 95% quantile, over 500 random half-spaces, of the largest gap "
        "of acceptance between groups within the half-space. Consistency is the share of people "
        "whose decision stays when only their group is changed. Exponentiated gradient decides at "
        "random, so its numbers are expectations. Thresholds that are read off the test rows show "
        "what thresholds could reach at most; nobody can use them. CPU seconds are of all "
        "candidates of one split.",
    ]
    lines += ["", "## The short answer", "", _short_answer(records)]
    for case in CASES.values():
        if any(name == case.name for name, _ in records):
            lines.extend(_case_lines(case, records))
    return "\n".join(lines).rstrip() + "\n"
