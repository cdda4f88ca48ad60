"""The study of matchings: how near the people are whom a method treats alike."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from fairmatch.matching.coupling import IndexArray
from fairmatch.matching.matchers import OptimalTransportMatcher
from fairmatch.matching.nearest import nearest_fair_matching
from fairmatch.measures import MEASURES, demographic_parity_gap, wasserstein_parity_gap
from fairmatch.people.checks import FloatArray
from paper.claims import Judgement, graded, shares_held
from paper.methods import Curve, Problem
from paper.questions import GAPS, Answers, reported
from paper.readings import Reading, mean_cell, nearest_index, table
from paper.records import Record, RecordStore
from paper.runs import Facts, Task, draw_table, rounded
from paper.specs import PAPER_RIVALS, RunSpec, Study

FOLDER = "matchings"
# How many people of each group are matched, and how far a mean score gap may exceed its least.
MATCHED_ROWS, SLACK = 1500, 0.005
# A model is at the level if its gap differs from the level by at most this share of it.
TOLERANCE = 0.25
UNCONSTRAINED = ("unfair", "trees-unfair")
LINES = (
    *("unfair", *PAPER_RIVALS, "ftm", "ftm-joint"),
    *("trees-unfair", "trees-reg", "trees-ftm", "trees-ftm-joint", "trees-predicted"),
    *("trees-smoothing", "trees-smoothing-marginal", "trees-alignment", "trees-thresholds"),
)
# Levels of ΔWDP, the gap that a position refers to. The levels of ΔDP are the paper's.
_SCORE_LEVELS = {"adult": 0.042, "german": 0.05, "bank": 0.045, "dutch": 0.1}


@dataclass(frozen=True)
class Level:
    """A value of a gap, "DP" or "WDP", that models are compared at and have approximately."""

    gap: str
    value: float

    def allows(self, gap: float) -> bool:
        """Return whether a model with this gap is at the level."""
        return abs(gap - self.value) <= TOLERANCE * self.value


@dataclass(frozen=True)
class MatchedCase:
    """A model to match people by: its line, its level, and the run that trains it alone."""

    key: str
    level: Level
    spec: RunSpec


def levels_of(dataset: str) -> tuple[Level, ...]:
    """Return the levels on a table: that of ΔDP in the paper's consistency table, and one of ΔWDP.

    A table that is not in the paper has no levels.
    """
    part = reported()["consistency"].get(dataset)
    if part is None:
        return ()
    return Level("DP", float(part["at_DP"])), Level("WDP", _SCORE_LEVELS[dataset])


def matched_cases(study: Study, store: RecordStore) -> Iterator[MatchedCase]:
    """Yield the models at a level whose whole curves are recorded, split by split.

    Unconstrained models need not be at a level. Each is listed once, to stand beside the others.
    """
    for seed in range(study.n_seeds):
        for dataset in study.datasets:
            for number, level in enumerate(levels_of(dataset)):
                for key in LINES:
                    if key not in study.series or (key in UNCONSTRAINED and number > 0):
                        continue
                    record = store.find(study.spec(key, dataset, seed))
                    if record is None:
                        continue
                    found = _nearest(record, level, key in UNCONSTRAINED)
                    if found is not None:
                        yield MatchedCase(key, level, found)


def _nearest(record: Record, level: Level, however_far: bool) -> RunSpec | None:
    spec, gap = record.spec, GAPS[level.gap]
    index = nearest_index(record, gap, level.value)
    if index is None or not (however_far or level.allows(record.curve[gap][index])):
        return None
    settings = {
        **spec.settings,
        "weights": [spec.settings["weights"][index]],
        "level": level.value,
        **({} if level.gap == "DP" else {"level_of": level.gap}),
        "matched_rows": MATCHED_ROWS,
        "slack": SLACK,
    }
    return RunSpec(spec.dataset, spec.method, spec.seed, settings)


def matching_tasks(study: Study, store: RecordStore) -> list[Task]:
    """Return the runs that train the recorded models at a level again, and match people by them."""
    return [
        Task(
            case.spec,
            study.methods[case.spec.method],
            partial(draw_table, study.loaders[case.spec.dataset]),
            measure_matching,
        )
        for case in matched_cases(study, store)
    ]


def measure_matching(
    problem: Problem, curve: Curve, spec: RunSpec, reference: FloatArray | None
) -> Iterator[Facts]:
    """Yield what the record of a model's matchings holds.

    Accuracy and ΔDP are of all test rows. ΔWDP, the position of the nearest fair matching and the
    score gap of the nearest people are of a sample. The position is 0 at the nearest matching and 1
    at a random one; it is measured without slack and with the slack of the spec.
    """
    test = problem.test
    for model in curve.models:
        scores = np.clip(model(test, test.group), 0.0, 1.0)
        drawn = sample_rows(test.group, spec.settings["matched_rows"], spec.seed)
        sample = test.take(drawn)
        gap = demographic_parity_gap(None, scores, sensitive_features=test.group)
        found = {
            "accuracy": float(np.mean((scores >= 0.5) == test.y)),
            "acceptance_rate": float(np.mean(scores >= 0.5)),
            "demographic_parity_gap": gap,
            **matching_facts(scores[drawn], sample.group, sample.encoded, spec.settings["slack"]),
        }
        yield rounded(found)


def sample_rows(groups: IndexArray, most: int, seed: int) -> IndexArray:
    """Return the indices of at most `most` rows of each group, drawn at random."""
    generator = np.random.default_rng([seed, 1500])
    drawn = [
        generator.permutation(np.flatnonzero(groups == code))[:most] for code in np.unique(groups)
    ]
    return np.sort(np.concatenate(drawn))


def matching_facts(
    scores: FloatArray, groups: IndexArray, features: FloatArray, slack: float
) -> dict[str, float]:
    """Compute ΔWDP, the position of the nearest fair matching, and the nearest people's gap."""
    nearest = OptimalTransportMatcher().match(features, groups)
    least, most = nearest.transport_cost(features), random_cost(features, groups)
    found = {
        "wasserstein_parity_gap": wasserstein_parity_gap(None, scores, sensitive_features=groups),
        "nearest people's gap": nearest.gap(scores),
    }
    for name, allowed in (("position, no slack", 0.0), ("position", slack)):
        fair = nearest_fair_matching(scores, groups, features, slack=allowed)
        found[name] = (fair.transport_cost(features) - least) / (most - least)
    return found


def random_cost(features: FloatArray, groups: IndexArray) -> float:
    """Compute the mean squared distance between random people of the two groups."""
    first, second = (features[groups == code] for code in np.unique(groups))
    spread = float(first.var(axis=0).sum() + second.var(axis=0).sum())
    return spread + float(((first.mean(axis=0) - second.mean(axis=0)) ** 2).sum())


CLAIM = (
    "At an equal gap, the people whom FTM treats alike are more similar than those of its rivals "
    "(ours)"
)

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


def matching_tables(answers: Answers) -> str:
    """Return the tables, or an empty text where nothing is recorded."""
    return "\n\n".join(_tables(answers, read_matchings(answers)))


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
            f"smaller position than {len(compared) - len(nearer)} of {len(compared)} other methods "
            "(on the splits that both have)."
        )
        if nearer:
            names = (answers.study.series[key].label.removeprefix("trees: ") for key in nearer)
            told += f" Methods with a smaller position: {'; '.join(names)}."
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
    found = Reading.of({seed: record.curve[name][0] for seed, record in records.items()})
    return mean_cell(found, digits, "never")


def matching_verdict(answers: Answers) -> Judgement:
    """Judge our claim by the comparisons in which FTM's position is smaller."""
    held: dict[str, list[bool]] = {}
    places, told = [], []
    for (dataset, level), by_line in read_matchings(answers).items():
        where = f"{dataset} at {MEASURES[GAPS[level.gap]].symbol} {level.value:g}"
        for family, (own, rivals) in _FAMILIES.items():
            for rival in rivals:
                pair = _positions(by_line, own, rival)
                if pair is None:
                    continue
                symbol = MEASURES[GAPS[level.gap]].symbol
                held.setdefault(symbol, []).append(pair[0] < pair[1])
                places.append((dataset, pair[0] < pair[1]))
                label = answers.study.series[rival].label.removeprefix("trees: ")
                told.append(f"{where}, {family}: {pair[0]:.3f}, {label} {pair[1]:.3f}")
    every = [nearer for by_gap in held.values() for nearer in by_gap]
    by_gap = ", ".join(f"at equal {gap} {sum(own)} of {len(own)}" for gap, own in held.items())
    counted = f"More similar in {sum(every)} of {len(every)} comparisons ({by_gap})"
    state = graded(sum(every), len(every))
    return Judgement(state, shares_held(places), counted, f"{'; '.join(told)}.")
