"""The study of several groups and other criteria."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairmatch.datasets import Dataset, load_acsincome, load_adult
from fairmatch.exceptions import InputError
from fairmatch.learning.settings import PAPER_WEIGHTS
from fairmatch.measures import (
    demographic_parity_gap,
    equalized_odds_gap,
    random_subset_gaps,
    true_positive_gap,
)
from fairmatch.people.checks import FloatArray
from fairmatch.people.encoding import TableEncoder
from fairmatch.people.groups import Groups, read_groups
from paper.records import Record, RecordStore
from paper.runs import versions
from paper.specs import RunSpec
from paper.tables import table

# A group is compared by itself if about this many of its rows are test rows.
_LEAST_TEST_ROWS = 400
_TEST_SHARE = 0.2


@dataclass(frozen=True)
class Case:
    """A question that the study answers.

    Attributes
    ----------
    name, title : str
        The name in files, and the name on the page.
    load : callable
        Returns the dataset.
    criterion : str
        Fairness criterion of the learners and of the gap, such as "demographic_parity".
    levels : tuple of float
        The gaps at which accuracies are compared.
    largest : int or None
        How many of the largest groups are kept apart; None keeps all that have enough test rows.
        The others are pooled as "other".
    match_rows : int or None
        How many rows are matched; None matches all.
    """

    name: str
    title: str
    load: Callable[[], Dataset]
    criterion: str
    levels: tuple[float, ...]
    largest: int | None = None
    match_rows: int | None = None

    def groups(self, dataset: Dataset) -> Groups:
        """Return the groups of the table, with small ones pooled."""
        groups = read_groups(dataset.sensitive_features)
        least = int(_LEAST_TEST_ROWS / _TEST_SHARE)
        if self.largest is not None and groups.n_groups > self.largest:
            least = int(np.sort(groups.sizes())[-self.largest])
        return groups.pooled(least)


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
            "Adult by sex, equalised odds (the larger of ΔTPR and ΔFPR)",
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


def find_case(name: str) -> Case:
    """Return the case with a name, or raise an error that lists the cases."""
    if name not in CASES:
        raise InputError(f"There is no case {name!r}. There are: {', '.join(CASES)}.")
    return CASES[name]


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a case: features, labels and groups."""

    X: pd.DataFrame
    y: NDArray[np.int64]
    group: NDArray[Any]

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, eq=False)
class CaseSplit:
    """A random split of a case. Every method is tuned on the same rows.

    Attributes
    ----------
    fit : Rows
        Rows to fit on, 64% of the table.
    tune : Rows
        Rows to choose a candidate on, 16% of the table.
    test : Rows
        Rows to report on, 20% of the table.
    """

    fit: Rows
    tune: Rows
    test: Rows

    @classmethod
    def draw(cls, case: Case, seed: int) -> "CaseSplit":
        """Return the split that a seed draws."""
        from fairmatch.learning.path import categorised

        dataset = case.load()
        table = categorised(dataset.X)  # learners of other libraries need categories
        names = case.groups(dataset).names()
        labels = dataset.y.to_numpy().astype(np.int64)
        order = np.random.default_rng(seed).permutation(len(labels))
        n_test = round(_TEST_SHARE * len(order))
        n_tune = round(_TEST_SHARE * (len(order) - n_test))
        parts = np.split(order, [n_test, n_test + n_tune])
        test, tune, fit = (
            Rows(table.iloc[rows].reset_index(drop=True), labels[rows], names[rows])
            for rows in map(np.sort, parts)
        )
        return cls(fit, tune, test)


@dataclass(frozen=True)
class TrialMethod:
    """A method of the study.

    Attributes
    ----------
    title : str
        Name of the method on the page.
    ours : bool
        Whether the method is a learner of this library, and not one that a user has already.
    by_label : bool
        Whether the method can compare people of each label apart, as equalised odds requires.
    knows_test_rows : bool
        Whether the method is tuned on the test rows. Nobody can do that: it shows a ceiling.
    """

    title: str
    ours: bool = False
    by_label: bool = True
    knows_test_rows: bool = False

    def suits(self, criterion: str) -> bool:
        """Return whether the method can aim at a criterion."""
        return self.by_label or criterion != "equalized_odds"


METHODS: dict[str, TrialMethod] = {
    "plain": TrialMethod("plain trees"),
    "thresholds": TrialMethod("plain trees, thresholds by group"),
    "alignment": TrialMethod("plain trees, quantile alignment", by_label=False),
    "ftm-predicted": TrialMethod("FTM, predicted map", ours=True),
    "ftm-marginal": TrialMethod("FTM, marginal map", ours=True),
    "ftm-thresholds": TrialMethod("FTM, predicted map, thresholds by group", ours=True),
    "smoothing": TrialMethod("match smoothing, score weight 5", ours=True),
    "exponentiated-gradient": TrialMethod("exponentiated gradient"),
    "ceiling": TrialMethod("thresholds read off the test rows (a ceiling)", knows_test_rows=True),
}


# A candidate that accepts a smaller or larger share of the tuning rows decides nothing.
FEWEST_ACCEPTED, MOST_ACCEPTED = 0.01, 0.99


def picked_index(curve: Mapping[str, Sequence[Any]], level: float) -> int | None:
    """Return the index of the most accurate candidate within a level, on the tuning rows.

    Parameters
    ----------
    curve : mapping
        Columns ``tune_gap``, ``tune_accepted`` and ``tune_accuracy``, with a value per candidate.
    level : float
        The largest gap allowed on the tuning rows.

    Returns
    -------
    int or None
        None if no candidate is within the level and accepts between 1% and 99% of the rows.

    Examples
    --------
    >>> curve = {"tune_gap": [0.0, 0.04, 0.2], "tune_accepted": [0.0, 0.3, 0.3],
    ...          "tune_accuracy": [0.9, 0.7, 0.8]}
    >>> picked_index(curve, 0.05), picked_index(curve, 0.01)
    (1, None)
    """
    gap, accepted, accuracy = (
        np.asarray(curve[f"tune_{name}"], dtype=np.float64)
        for name in ("gap", "accepted", "accuracy")
    )
    allowed = (gap <= level) & (accepted >= FEWEST_ACCEPTED) & (accepted <= MOST_ACCEPTED)
    return int(np.argmax(np.where(allowed, accuracy, -np.inf))) if allowed.any() else None


N_ROUNDS = 200
_N_SUBSETS = 500
# Thresholds are tried at these bounds, and alignment at these strengths.
BOUNDS = (0.0, 0.01, 0.02, 0.03, 0.042, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2)
STRENGTHS = tuple(np.round(np.linspace(0.0, 1.0, 21), 2).tolist())
WEIGHTS = (0.0, *PAPER_WEIGHTS)
# The fairness weights of FTM whose scores thresholds cut.
CUT_WEIGHTS = (0.3, 0.6, 1.0)
EPSILONS = (0.002, 0.005, 0.01, 0.02, 0.04)

# A function from rows to the decisions about them, as numbers in [0, 1].
Decide = Callable[[Rows], FloatArray]


@dataclass(frozen=True, eq=False)
class Trial:
    """A case, one split of it, and what the methods share.

    Attributes
    ----------
    case : Case
        The question.
    split : CaseSplit
        The rows.
    seed : int
        Seed of the split, and of everything random in the training.
    """

    case: Case
    split: CaseSplit
    seed: int

    def trees(self, transport: str, warmup: float = 0.0) -> Any:
        """Return FTM's trees, unfitted."""
        from fairmatch import FTMBoostingClassifier

        return FTMBoostingClassifier(
            transport,
            criterion=self.case.criterion,
            match_rows=self.case.match_rows,
            n_rounds=N_ROUNDS,
            warmup=warmup,
            random_state=self.seed,
        )

    def path(self, estimator: Any, weights: tuple[float, ...]) -> Iterator[tuple[float, Any]]:
        """Fit an estimator at every weight, and yield each weight with its scorer."""
        from fairmatch import fairness_path

        fit = self.split.fit
        path = fairness_path(
            fit.X,
            fit.y,
            sensitive_features=fit.group,
            fairness_weights=weights,
            estimator=estimator,
        )
        for weight, model in zip(weights, path.models, strict=True):
            yield weight, _scores(model)

    @cached_property
    def plain(self) -> Decide:
        """The scorer of plain trees."""
        scorer: Decide
        ((_, scorer),) = self.path(self.trees("marginal"), (0.0,))
        return scorer

    @cached_property
    def test_features(self) -> FloatArray:
        """The test rows as numbers, for half-spaces."""
        encoder = TableEncoder(missing="encode").fit(self.split.fit.X)
        features: FloatArray = encoder.transform(self.split.test.X)
        return features

    def gap(self, rows: Rows, decided: FloatArray) -> float:
        """Return the gap of the case's criterion."""
        given = {"sensitive_features": rows.group}
        # Random decisions are given as probabilities. Their rates are means, without a threshold.
        if self.case.criterion == "equalized_odds":
            return equalized_odds_gap(rows.y, decided, agg="worst_case", threshold=None, **given)
        if self.case.criterion == "equal_opportunity":
            return true_positive_gap(rows.y, decided, threshold=None, **given)
        return demographic_parity_gap(rows.y, decided, threshold=None, **given)

    def measure(self, decide: Decide) -> dict[str, float]:
        """Return all measurements of a candidate, on tuning and on test rows."""
        return {**self.judge(decide), **self.look(decide)}

    def judge(self, decide: Decide) -> dict[str, float]:
        """Return accuracy, gap and acceptance rate on tuning and on test rows.

        Parameters
        ----------
        decide : callable
            Returns 0/1 decisions, or the probability of acceptance where decisions are random.
        """
        found = {}
        for name, rows in (("tune", self.split.tune), ("test", self.split.test)):
            accepted = decide(rows)
            found[f"{name}_accuracy"] = float(1.0 - np.mean(np.abs(accepted - rows.y)))
            found[f"{name}_gap"] = self.gap(rows, accepted)
            found[f"{name}_accepted"] = float(accepted.mean())
        return found

    def look(self, decide: Decide) -> dict[str, float]:
        """Return the half-space gap and the consistency on the test rows; both take longer."""
        test = self.split.test
        accepted = decide(test)
        gaps = random_subset_gaps(
            None,
            accepted,
            sensitive_features=test.group,
            X=self.test_features,
            n_subsets=_N_SUBSETS,
            random_state=0,
        )
        return {
            "half_space_gap": float(np.nanquantile(gaps, 0.95)),
            "consistency": self._consistency(decide, accepted),
        }

    def _consistency(self, decide: Decide, accepted: FloatArray) -> float:
        """Return the share of decisions that stay when people's groups change, over all changes."""
        test = self.split.test
        same, count = 0.0, 0
        for label in sorted(set(test.group)):
            moved = Rows(test.X, test.y, np.full(len(test), label, dtype=object))
            others = test.group != label
            same += float((1.0 - np.abs(decide(moved) - accepted))[others].sum())
            count += int(others.sum())
        return same / count


def _scores(model: Any) -> Decide:
    def score(rows: Rows) -> FloatArray:
        scores: FloatArray = model.predict_proba(rows.X, sensitive_features=rows.group)[:, 1]
        return scores

    return score


def _decisions(score: Decide) -> Decide:
    return lambda rows: (score(rows) >= 0.5).astype(np.float64)


def _plain(trial: Trial) -> Iterator[tuple[float, Decide]]:
    yield 0.0, _decisions(trial.plain)


def _thresholds(trial: Trial) -> Iterator[tuple[float, Decide]]:
    return _cut(trial, trial.plain)


def _cut(trial: Trial, score: Decide) -> Iterator[tuple[float, Decide]]:
    """Yield every bound with decisions by group thresholds that keep it on the tuning rows."""
    from fairmatch.learning.alignment import fit_thresholds

    tune = trial.split.tune
    # Every bound cuts the same scores of these rows.
    known = {id(rows): score(rows) for rows in (tune, trial.split.test)}
    for bound in BOUNDS:
        cuts = fit_thresholds(
            tune.y,
            known[id(tune)],
            sensitive_features=tune.group,
            max_gap=bound,
            criterion=trial.case.criterion,
        )

        def decide(rows: Rows, cuts: Any = cuts) -> FloatArray:
            scores = known[id(rows)] if id(rows) in known else score(rows)
            decided: FloatArray = cuts.decide(scores, rows.group).astype(np.float64)
            return decided

        yield bound, decide


def _alignment(trial: Trial) -> Iterator[tuple[float, Decide]]:
    from fairmatch.learning.alignment import fit_alignment

    tune = trial.split.tune
    alignment = fit_alignment(
        trial.plain(tune), tune.group, y_true=tune.y, criterion=trial.case.criterion
    )
    for strength in STRENGTHS:
        yield (
            strength,
            _decisions(
                lambda rows, strength=strength: alignment.apply(  # type: ignore[misc]
                    trial.plain(rows), rows.group, strength=strength
                )
            ),
        )


def _ftm(transport: str, warmup: float) -> Callable[[Trial], Iterator[tuple[float, Decide]]]:
    def candidates(trial: Trial) -> Iterator[tuple[float, Decide]]:
        for weight, score in trial.path(trial.trees(transport, warmup), WEIGHTS):
            yield weight, _decisions(score)

    return candidates


def _ftm_thresholds(trial: Trial) -> Iterator[tuple[float, Decide]]:
    """Yield FTM's candidates of some weights, with thresholds by group for the rest of the way."""
    for _, score in trial.path(trial.trees("predicted", 0.5), CUT_WEIGHTS):
        yield from _cut(trial, score)


def _learner(trial: Trial) -> Any:
    """Return plain trees, unfitted, for another method to wrap."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=N_ROUNDS, verbose=-1, n_jobs=1, random_state=trial.seed)


def _smoothing(score_weight: float) -> Callable[[Trial], Iterator[tuple[float, Decide]]]:
    def candidates(trial: Trial) -> Iterator[tuple[float, Decide]]:
        from fairmatch import MatchSmoothingClassifier

        estimator = MatchSmoothingClassifier(
            _learner(trial),
            criterion=trial.case.criterion,
            score_weight=score_weight,
            match_rows=trial.case.match_rows,
        )
        for weight, score in trial.path(estimator, WEIGHTS):
            yield weight, _decisions(score)

    return candidates


def _exponentiated_gradient(trial: Trial) -> Iterator[tuple[float, Decide]]:
    from paper.rivals import ExponentiatedGradientClassifier

    fit = trial.split.fit
    for epsilon in EPSILONS:
        model = ExponentiatedGradientClassifier(
            _learner(trial),  # the same trees as in the other methods
            eps=epsilon,
            encoder="columns",
            criterion=trial.case.criterion,
            random_state=trial.seed,
        )
        # Its decisions are random, so the probabilities of acceptance are compared.
        yield epsilon, _scores(model.fit(fit.X, fit.y, sensitive_features=fit.group))


CANDIDATES: dict[str, Callable[[Trial], Iterator[tuple[float, Decide]]]] = {
    "plain": _plain,
    "thresholds": _thresholds,
    "alignment": _alignment,
    "ftm-predicted": _ftm("predicted", 0.5),
    "ftm-marginal": _ftm("marginal", 0.0),
    "ftm-thresholds": _ftm_thresholds,
    "smoothing": _smoothing(5.0),
    "exponentiated-gradient": _exponentiated_gradient,
    "ceiling": _thresholds,
}


def case_spec(case: str, method: str, seed: int) -> RunSpec:
    """Return the spec of a run. Its record is named by the spec."""
    return RunSpec(case, method, seed, {"rounds": N_ROUNDS, "subsets": _N_SUBSETS})


def run_trial(case: Case, method: str, seed: int) -> Record:
    """Train a method on one split of a case, and return the record of its candidates.

    Half-spaces and consistency take longest. They are measured only for candidates that are picked
    at one of the case's levels.
    """
    split = CaseSplit.draw(case, seed)
    if METHODS[method].knows_test_rows:
        split = replace(split, tune=split.test)
    trial = Trial(case, split, seed)
    start, decisions, rows, training = time.process_time(), [], [], 0.0
    for weight, decide in CANDIDATES[method](trial):
        training += time.process_time() - start
        decisions.append(decide)
        rows.append({"weight": float(weight), **trial.judge(decide)})
        start = time.process_time()
    curve: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in rows[0]}
    picked = {picked_index(curve, level) for level in case.levels} - {None}
    looked = [trial.look(decide) if i in picked else {} for i, decide in enumerate(decisions)]
    for name in ("half_space_gap", "consistency"):
        curve[name] = [found.get(name) for found in looked]
    return Record(case_spec(case.name, method, seed), curve, round(training, 1), versions())


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
        "Written by `python -m paper tables` from the records in `results/groups/`, which "
        "`python -m paper groups` makes.",
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
