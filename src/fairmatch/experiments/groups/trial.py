"""One method on one split of a case: its candidates, measured on tuning and on test rows."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fairmatch.experiments.groups.cases import Case, CaseSplit, Rows
from fairmatch.experiments.groups.methods import METHODS
from fairmatch.experiments.groups.picking import picked_index
from fairmatch.experiments.runs.records import Record
from fairmatch.experiments.runs.runner import versions
from fairmatch.experiments.runs.spec import RunSpec
from fairmatch.learning.weights import PAPER_WEIGHTS
from fairmatch.measures import (
    demographic_parity_gap,
    equalized_odds_gap,
    random_subset_gaps,
    true_positive_gap,
)
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.encoder import TableEncoder

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
    from fairmatch.learning.anymodel.thresholds import fit_thresholds

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
    from fairmatch.learning.anymodel.alignment import fit_alignment

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
    from fairmatch import ExponentiatedGradientClassifier

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
