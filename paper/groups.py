"""The study of several groups and other criteria; models are chosen on rows of their own."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairmatch.datasets import Dataset, load_acsincome, load_adult
from fairmatch.learning.path import categorised
from fairmatch.measures import (
    demographic_parity_gap,
    equalized_odds_gap,
    random_subset_gaps,
    true_positive_gap,
)
from fairmatch.people.checks import FloatArray
from fairmatch.people.encoding import TableEncoder
from fairmatch.people.groups import Groups, read_groups
from paper.methods import METHODS, Curve, Model, Problem, Rows
from paper.readings import Reading, mean_cell, page_of, table
from paper.readings import pick as pick_index
from paper.records import Record, RecordStore
from paper.runs import Facts, Task
from paper.specs import RunSpec, check_names

FOLDER, PAGE = "groups", "groups.md"
N_SEEDS = 5
N_ROUNDS, N_SUBSETS = 200, 500

# A group is compared by itself if about this many of its rows are test rows.
_LEAST_TEST_ROWS = 400
_TEST_SHARE = 0.2

# Names on the page.
TITLES = {
    "plain": "plain trees",
    "thresholds": "plain trees, thresholds by group",
    "alignment": "plain trees, quantile alignment",
    "ftm-predicted": "FTM, predicted map",
    "ftm-marginal": "FTM, marginal map",
    "ftm-thresholds": "FTM, predicted map, thresholds by group",
    "smoothing": "match smoothing, score weight 5",
    "exponentiated-gradient": "exponentiated gradient",
    "ceiling": "thresholds read off the test rows (a ceiling)",
}
# Learners of this library, and not what a user has already.
OURS = ("ftm-predicted", "ftm-marginal", "ftm-thresholds", "smoothing")
# The yardstick that a user has already, and how far below it an accuracy counts as level.
YARDSTICK, MARGIN = "thresholds", 0.003
# What a user would train instead. It takes longer, and decides at random.
SLOW = "exponentiated-gradient"
# Tuned on the test rows, which nobody can do.
CEILING = "ceiling"


@dataclass(frozen=True)
class Case:
    """A question that the study answers."""

    #: The name in files, and the name on the page.
    name: str
    title: str
    load: Callable[[], Dataset]  #: Returns the dataset.
    #: Fairness criterion of the learners and of the gap, such as "demographic_parity".
    criterion: str
    levels: tuple[float, ...]  #: The gaps at which accuracies are compared.
    #: How many of the largest groups are kept apart; None keeps all that have enough test rows. The
    #: others are pooled as "other".
    largest: int | None = None
    match_rows: int | None = None  #: How many rows are matched; None matches all.

    def groups(self, dataset: Dataset) -> Groups:
        """Return the groups of the table, with small ones pooled."""
        groups = read_groups(dataset.sensitive_features)
        least = int(_LEAST_TEST_ROWS / _TEST_SHARE)
        if self.largest is not None and groups.n_groups > self.largest:
            least = int(np.sort(groups.sizes())[-self.largest])
        return groups.pooled(least)

    def draw(self, seed: int) -> Problem:
        """Split the table at random: 64% to fit on, 16% to tune on, 20% to report on."""
        dataset = self.load()
        frame = categorised(dataset.X)  # learners of other libraries need categories
        names = self.groups(dataset).names()
        labels = dataset.y.to_numpy().astype(np.int64)
        order = np.random.default_rng(seed).permutation(len(labels))
        n_test = round(_TEST_SHARE * len(order))
        n_tune = round(_TEST_SHARE * (len(order) - n_test))
        test, tune, fit = (
            Rows(frame.iloc[rows].reset_index(drop=True), labels[rows], names[rows])
            for rows in map(np.sort, np.split(order, [n_test, n_test + n_tune]))
        )
        encoder = TableEncoder(missing="encode").fit(fit.X)  # for half-spaces of the test rows
        test = replace(test, encoded=encoder.transform(test.X))
        return Problem(dataset, fit, test, tune, self.criterion, self.match_rows)


CASES: dict[str, Case] = {
    case.name: case
    for case in (
        Case(
            "adult-race",
            "Adult by race, demographic parity",
            lambda: load_adult(sensitive="race"),
            "demographic_parity",
            (0.03, 0.05, 0.08),
        ),
        Case(
            "adult-sex-race",
            "Adult by sex and race, demographic parity",
            lambda: load_adult(sensitive=["sex", "race"]),
            "demographic_parity",
            (0.03, 0.05, 0.08),
        ),
        Case(
            "adult-sex-odds",
            "Adult by sex, equalized odds (the larger of ΔTPR and ΔFPR)",
            load_adult,
            "equalized_odds",
            (0.03, 0.042),
        ),
        Case(
            "acsincome-sex",
            "ACSIncome by sex, demographic parity",
            load_acsincome,
            "demographic_parity",
            (0.02, 0.06),
            match_rows=50_000,
        ),
        Case(
            "acsincome-race",
            "ACSIncome by race (the five largest groups), demographic parity",
            lambda: load_acsincome(sensitive="race"),
            "demographic_parity",
            (0.02, 0.05),
            largest=5,
            match_rows=50_000,
        ),
    )
}


def case_spec(case: str, method: str, seed: int) -> RunSpec:
    """Return the spec of a run. Its record is named by the spec."""
    return RunSpec(case, method, seed, {"rounds": N_ROUNDS, "subsets": N_SUBSETS})


def group_tasks(
    cases: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    n_seeds: int = N_SEEDS,
) -> list[Task]:
    """Return the runs of some cases and methods; by default of all."""
    check_names("case", cases or (), CASES)
    check_names("method", methods or (), TITLES)
    specs = [
        case_spec(case, method, seed)
        for seed in range(n_seeds)
        for case in cases or CASES
        for method in methods or TITLES
        # Alignment cannot compare people of each label apart.
        if method != "alignment" or CASES[case].criterion != "equalized_odds"
    ]
    return [
        Task(spec, METHODS[spec.method], draw_case, measure_tuned, times_training=True)
        for spec in specs
    ]


def draw_case(spec: RunSpec) -> Problem:
    """Return the split of a case that a spec asks for."""
    problem = CASES[spec.dataset].draw(spec.seed)
    return replace(problem, tune=problem.test) if spec.method == CEILING else problem


def measure_tuned(
    problem: Problem, curve: Curve, spec: RunSpec, reference: FloatArray | None
) -> Iterator[Facts]:
    """Yield accuracy, gap and acceptance rate of each model, on tuning and on test rows.

    Half-spaces and consistency take longest. They are measured only for models that are picked at
    one of the case's levels.
    """
    models = curve.models if spec.method == SLOW else [_decisions(m) for m in curve.models]
    found = [judge(problem, model) for model in models]
    columns = [[facts[name] for facts in found] for name in _JUDGED]
    picked = {pick_index(level, *columns) for level in CASES[spec.dataset].levels}
    for index, (model, facts) in enumerate(zip(models, found, strict=True)):
        seen = look(problem, model) if index in picked else dict.fromkeys(_LOOKED)
        yield {**facts, **seen}


_JUDGED = ("tune_gap", "tune_accepted", "tune_accuracy")
_LOOKED = ("half_space_gap", "consistency")


def _decisions(model: Model) -> Model:
    return lambda rows, group: (model(rows, group) >= 0.5).astype(np.float64)


def judge(problem: Problem, decide: Model) -> Facts:
    """Return accuracy, gap and acceptance rate on tuning and on test rows.

    `decide` returns 0/1 decisions, or the probability of acceptance where decisions are random.
    """
    found: Facts = {}
    assert problem.tune is not None
    for name, rows in (("tune", problem.tune), ("test", problem.test)):
        accepted = decide(rows, rows.group)
        found[f"{name}_accuracy"] = float(1.0 - np.mean(np.abs(accepted - rows.y)))
        found[f"{name}_gap"] = _gap(problem.criterion, rows, accepted)
        found[f"{name}_accepted"] = float(accepted.mean())
    return found


def _gap(criterion: str, rows: Rows, decided: FloatArray) -> float:
    # Random decisions are given as probabilities. Their rates are means, without a threshold.
    given: Any = {"sensitive_features": rows.group, "threshold": None}
    if criterion == "equalized_odds":
        return equalized_odds_gap(rows.y, decided, agg="worst_case", **given)
    if criterion == "equal_opportunity":
        return true_positive_gap(rows.y, decided, **given)
    return demographic_parity_gap(rows.y, decided, **given)


def look(problem: Problem, decide: Model) -> Facts:
    """Return the half-space gap on the test rows, and the consistency over all changes of groups.

    Consistency is the share of decisions that stay when people's groups change.
    """
    test = problem.test
    accepted = decide(test, test.group)
    gaps = random_subset_gaps(
        None,
        accepted,
        sensitive_features=test.group,
        X=test.encoded,
        n_subsets=N_SUBSETS,
        random_state=0,
    )
    same, count = 0.0, 0
    for label in sorted(set(test.group)):
        moved = decide(test, np.full(len(test), label, dtype=object))
        others = test.group != label
        same += float((1.0 - np.abs(moved - accepted))[others].sum())
        count += int(others.sum())
    return {"half_space_gap": float(np.nanquantile(gaps, 0.95)), "consistency": same / count}


# The page.

_COLUMNS = ("test_accuracy", "test_gap", "half_space_gap", "consistency")
_DIGITS = (4, 4, 3, 3)

# Records by case and method, then by seed.
Found = dict[tuple[str, str], dict[int, Record]]


def read_records(store: RecordStore) -> Found:
    """Return the records of the reported seeds."""
    found: Found = {}
    for record in store:
        if record.spec.seed < N_SEEDS:
            by_seed = found.setdefault((record.spec.dataset, record.spec.method), {})
            by_seed[record.spec.seed] = record
    return found


def picked(records: Mapping[int, Record], level: float) -> dict[str, Reading]:
    """Read every column at the model picked on the tuning rows of each split."""
    curves = {seed: record.curve for seed, record in records.items()}
    best = {s: pick_index(level, *(curve[name] for name in _JUDGED)) for s, curve in curves.items()}

    def value(seed: int, name: str) -> Any:
        place = best[seed]
        return None if place is None else curves[seed][name][place]

    return {name: Reading.of({seed: value(seed, name) for seed in curves}) for name in _COLUMNS}


def _case_lines(case: Case, records: Found) -> Iterable[str]:
    own = {name: records[case.name, name] for name in TITLES if (case.name, name) in records}
    yield f"\n## {case.title}\n"
    for level in case.levels:
        rows = [
            [
                TITLES[name],
                *(
                    mean_cell(reading, digits, "missing")
                    for reading, digits in zip(
                        picked(by_seed, level).values(), _DIGITS, strict=True
                    )
                ),
                str(len(by_seed)),
                f"{_seconds(by_seed):.0f}",
            ]
            for name, by_seed in own.items()
        ]
        names = ["method", "accuracy", "gap", "half-space gap", "consistency", "splits"]
        yield f"Largest gap at most {level:g} on the tuning rows:\n"
        yield table([*names, "CPU seconds"], rows) + "\n"
        yield from _verdict(own, level)


def _verdict(records: Mapping[str, Mapping[int, Record]], level: float) -> Iterable[str]:
    """Yield a line for each of our learners that compares it with the usual alternatives."""
    for name in filter(records.__contains__, OURS):
        own, told = records[name], []
        if found := _beside(own, records.get(YARDSTICK, {}), level):
            change, splits = found
            within = "within" if change["test_accuracy"] >= -MARGIN else "not within"
            smaller = "a smaller" if change["half_space_gap"] < 0.0 else "no smaller"
            told.append(
                f"compared with thresholds by group, accuracy {change['test_accuracy']:+.4f} "
                f"({within} the margin of {MARGIN:g}), gap {change['test_gap']:+.3f}, and "
                f"{smaller} half-space gap ({splits})."
            )
        if found := _beside(own, records.get(SLOW, {}), level):
            change, splits = found
            told.append(
                f"{'Compared' if told else 'compared'} with exponentiated gradient, accuracy "
                f"{change['test_accuracy']:+.4f} in {_seconds(own) / _seconds(records[SLOW]):.2f} "
                f"of its CPU time ({splits})."
            )
        if told:
            yield f"- {TITLES[name]}: {' '.join(told)}"
    yield ""


def _beside(
    own: Mapping[int, Record], others: Mapping[int, Record], level: float
) -> tuple[dict[str, float], str] | None:
    """Return by how much a method exceeds another on their common splits.

    None where one of them misses the level.
    """
    seeds = own.keys() & others.keys()
    ours, theirs = (
        picked({seed: r for seed, r in both.items() if seed in seeds}, level)
        for both in (own, others)
    )
    if not seeds or min(ours[_COLUMNS[0]].n, theirs[_COLUMNS[0]].n) < len(seeds):
        return None
    change = {name: ours[name].mean - theirs[name].mean for name in _COLUMNS}
    return change, "one split" if len(seeds) == 1 else f"{len(seeds)} splits"


def _seconds(records: Mapping[int, Record]) -> float:
    return float(np.mean([record.seconds for record in records.values()]))


# The short answer shows the yardstick, the learners nearest to it, and the slow rival.
_SHORT = (YARDSTICK, "ftm-predicted", "ftm-thresholds", "smoothing", SLOW)


def _short_answer(records: Found) -> str:
    """Return a table of the main methods' accuracy and half-space gap, by case and level."""
    rows = []
    for case in CASES.values():
        for level in case.levels:
            cells = [_short_cell(records.get((case.name, name), {}), level) for name in _SHORT]
            if any(cells):
                rows.append([case.title, f"{level:g}", *cells])
    return table(["case", "gap", *(TITLES[name] for name in _SHORT)], rows)


def _short_cell(records: Mapping[int, Record], level: float) -> str:
    if not records:
        return ""
    found = picked(records, level)
    accuracy, gap = found["test_accuracy"], found["half_space_gap"]
    if not accuracy.n:
        return "not reached"
    few = f" ({accuracy.n})" if accuracy.n < N_SEEDS else ""
    return f"{accuracy.mean:.4f}, {gap.mean:.3f}{few}"


def page_text(store: RecordStore) -> str:
    """Return the whole page."""
    records = read_records(store)
    cases = [case for case in CASES.values() if any(name == case.name for name, _ in records)]
    lines = [line for case in cases for line in _case_lines(case, records)]
    return page_of("groups", short=_short_answer(records), cases=lines).rstrip() + "\n"
