"""The page of the study of groups, written from its records."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairmatch.experiments.groups.cases import CASES, Case
from fairmatch.experiments.groups.methods import METHODS
from fairmatch.experiments.page.markdown import table
from fairmatch.experiments.runs.records import Record, RecordStore

FOLDER, PAGE = "groups", "groups.md"
SEEDS = (0, 1, 2, 3, 4)
# The yardstick that a user has already, and how far below it counts as level.
YARDSTICK, MARGIN = "thresholds", 0.003
SLOW = "exponentiated-gradient"

_COLUMNS = ("test_accuracy", "test_gap", "half_space_gap", "consistency")


@dataclass(frozen=True)
class Picked:
    """What a method gives at a level: the candidate picked on the tuning rows of each split.

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
        """Return mean and standard error, as the page shows them."""
        values = self.values[name]
        if not values:
            return "not reached"
        error = f" ± {np.std(values, ddof=1) / np.sqrt(self.n):.{digits}f}" if self.n > 1 else ""
        few = f" ({self.n} of {self.n_splits})" if self.n < self.n_splits else ""
        return f"{self.mean(name):.{digits}f}{error}{few}"


def pick(records: Sequence[Record], level: float) -> Picked:
    """Pick, on each split, the candidate most accurate on the tuning rows within a level there.

    Candidates that accept fewer than 1% or more than 99% of the tuning rows decide nothing and are
    passed over.
    """
    values: dict[str, list[float]] = {name: [] for name in _COLUMNS}
    for record in records:
        curve = {
            name: np.asarray(column, dtype=np.float64) for name, column in record.curve.items()
        }
        accepted = curve["tune_accepted"]
        allowed = (curve["tune_gap"] <= level) & (accepted >= 0.01) & (accepted <= 0.99)
        if not allowed.any():
            continue
        best = int(np.argmax(np.where(allowed, curve["tune_accuracy"], -np.inf)))
        for name in _COLUMNS:
            values[name].append(float(curve[name][best]))
    return Picked(values, len(records))


def read_records(folder: Path) -> dict[tuple[str, str], list[Record]]:
    """Return the records of the seeds that are reported, by case and method."""
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
            seconds = float(np.mean([record.seconds for record in records[case.name, name]]))
            cells = [
                METHODS[name].title,
                picked[name].cell("test_accuracy"),
                picked[name].cell("test_gap"),
                picked[name].cell("half_space_gap", 3),
                picked[name].cell("consistency", 3),
                str(picked[name].n_splits),
                f"{seconds:.0f}",
            ]
            rows.append(cells)
        names = ["method", "accuracy", "gap", "half-space gap", "consistency", "splits"]
        names.append("CPU seconds")
        yield f"Largest gap at most {level:g} on the tuning rows:\n"
        yield table(names, rows) + "\n"
        yield from _verdict({name: records[case.name, name] for name in methods}, level)


def _verdict(records: dict[str, list[Record]], level: float) -> Iterable[str]:
    """Return how each of our learners stands beside the yardstick, on the splits of both."""
    for name, own in records.items():
        if not METHODS[name].ours or YARDSTICK not in records:
            continue
        seeds = {r.spec.seed for r in own} & {r.spec.seed for r in records[YARDSTICK]}
        ours, yardstick = (
            pick([r for r in both if r.spec.seed in seeds], level)
            for both in (own, records[YARDSTICK])
        )
        if not seeds or ours.n < len(seeds) or yardstick.n < len(seeds):
            continue
        difference = ours.mean("test_accuracy") - yardstick.mean("test_accuracy")
        within = "within" if difference >= -MARGIN else "not within"
        smaller = ours.mean("half_space_gap") < yardstick.mean("half_space_gap")
        splits = "one split" if len(seeds) == 1 else f"{len(seeds)} splits"
        yield (
            f"- {METHODS[name].title}: its accuracy differs from that of thresholds by "
            f"{difference:+.4f} on {splits}, which is {within} the margin of {MARGIN:g}. Its "
            f"half-space gap is {'smaller' if smaller else 'not smaller'}."
        )
    yield ""


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
        "whose decision stays when only their group is changed. Exponentiated gradient decides "
        "at random, so its numbers are expectations. CPU seconds are of all candidates of "
        "one split.",
    ]
    for case in CASES.values():
        if any(name == case.name for name, _ in records):
            lines.extend(_case_lines(case, records))
    return "\n".join(lines).rstrip() + "\n"
