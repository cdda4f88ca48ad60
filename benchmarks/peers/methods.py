"""How each peer is used: candidates along its own curve, on the scores of the same plain trees.

A candidate is a setting and a function from rows to decisions, or to the probability of a yes
where a peer decides at random. Every peer is fitted on the tuning rows, as its documentation asks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from paper.groups import N_ROUNDS, SLOW
from paper.methods import METHODS, Model, Problem, Rows, plain_model
from sklearn.base import BaseEstimator, ClassifierMixin

from benchmarks.peers.linear_post import linear_post

BOUNDS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.1)
ODDS = "equalized_odds"

# A function from rows to the decisions about them, as numbers in [0, 1].
Decide = Callable[[Rows], Any]


@dataclass(frozen=True, eq=False)
class Trial:
    """A split of a case, and the plain trees that all peers start from."""

    problem: Problem
    seed: int

    @cached_property
    def model(self) -> Model:
        return plain_model(self.problem, {"rounds": N_ROUNDS}, self.seed)

    def plain(self, rows: Rows) -> Any:
        """Return the scores of plain trees."""
        return self.model(rows, rows.group)


Candidates = Callable[[Trial], Iterator[tuple[float, Decide]]]


@dataclass(frozen=True)
class Peer:
    """A method of a library.

    Attributes
    ----------
    title : str
        What the page calls it.
    package : str
        What installs it.
    candidates : callable
        Makes its candidates.
    random : bool
        Whether it decides at random.
    criteria : tuple of str
        What it can aim at.
    most_groups : int
        How many groups it can compare.
    method : str or None
        What the study of groups calls it, where it is one of its methods.
    """

    title: str
    package: str
    candidates: Candidates
    random: bool = False
    criteria: tuple[str, ...] = ("demographic_parity", ODDS)
    most_groups: int = 99
    method: str | None = None

    @property
    def missing(self) -> str | None:
        """Why the peer cannot be used here, or None."""
        try:
            version(self.package)
        except PackageNotFoundError:
            return f"{self.package} is not installed"
        return None

    def unsuited(self, trial: Trial) -> str | None:
        """Why the peer does not fit a case, or None."""
        if trial.problem.criterion not in self.criteria:
            return f"it does not aim at {trial.problem.criterion.replace('_', ' ')}"
        n_groups = len(set(trial.problem.tune.group))
        if n_groups > self.most_groups:
            return f"it compares {self.most_groups} groups, and there are {n_groups}"
        return None


class _Scores(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose features are its scores."""

    classes_ = np.array([0, 1])

    def fit(self, X: Any, y: Any) -> "_Scores":
        self.fitted_ = True
        return self

    def predict_proba(self, X: Any) -> Any:
        scores = np.asarray(X, dtype=np.float64).ravel()
        return np.column_stack([1.0 - scores, scores])

    def predict(self, X: Any) -> Any:
        return (self.predict_proba(X)[:, 1] >= 0.5).astype(int)


def _threshold_optimizer(trial: Trial) -> Iterator[tuple[float, Decide]]:
    from fairlearn.postprocessing import ThresholdOptimizer

    tune = trial.problem.tune
    odds = trial.problem.criterion == ODDS
    constraint = "equalized_odds" if odds else "demographic_parity"
    scores = trial.plain(tune)[:, None]
    for bound in (0.0, *(() if odds else BOUNDS)):  # of the odds it knows exact equality alone
        options: dict[str, Any] = {} if bound == 0.0 else {"tol": bound}
        try:
            model = ThresholdOptimizer(
                estimator=_Scores().fit(None, None),
                constraints=constraint,
                objective="accuracy_score",
                prefit=True,
                predict_method="predict_proba",
                **options,
            )
        except TypeError:  # older versions know exact parity alone
            return
        model.fit(scores, tune.y, sensitive_features=tune.group)
        yield (
            bound,
            lambda rows, model=model: model._pmf_predict(
                trial.plain(rows)[:, None], sensitive_features=rows.group
            )[:, 1],
        )


def _equipy(trial: Trial) -> Iterator[tuple[float, Decide]]:
    from equipy.fairness import FairWasserstein

    tune = trial.problem.tune
    model = FairWasserstein()
    model.fit(trial.plain(tune), tune.group)
    for kept in np.linspace(0.0, 1.0, 21):
        yield (
            1.0 - kept,
            lambda rows, kept=kept: (
                model.transform(trial.plain(rows), rows.group, epsilon=float(kept)) >= 0.5
            ).astype(np.float64),
        )


def _oxonfair(trial: Trial) -> Iterator[tuple[float, Decide]]:
    from oxonfair import FairPredictor
    from oxonfair.utils import group_metrics as gm

    tune = trial.problem.tune
    names = {name: code for code, name in enumerate(sorted(set(tune.group)))}

    def given(rows: Rows) -> dict[str, Any]:
        scores = trial.plain(rows)
        return {
            "data": np.column_stack([1.0 - scores, scores]),
            "target": rows.y,
            "groups": np.array([names[name] for name in rows.group]),
        }

    several = len(names) > 2
    if trial.problem.criterion == ODDS:
        gap = gm.equalized_odds_max
    else:
        gap = gm.pos_pred_rate.max_diff if several else gm.demographic_parity
    for bound in BOUNDS:
        model = FairPredictor(None, given(tune))
        model.fit(gm.accuracy, gap, bound)
        yield (
            bound,
            lambda rows, model=model: np.asarray(model.predict(given(rows)), dtype=np.float64),
        )


def _error_parity(trial: Trial) -> Iterator[tuple[float, Decide]]:
    from error_parity import RelaxedThresholdOptimizer

    tune = trial.problem.tune
    names = {name: code for code, name in enumerate(sorted(set(tune.group)))}

    def codes(rows: Rows) -> Any:
        return np.array([names[name] for name in rows.group])

    constraint = "equalized_odds" if trial.problem.criterion == ODDS else "demographic_parity"
    for bound in BOUNDS:
        model = RelaxedThresholdOptimizer(
            predictor=lambda X: np.asarray(X).ravel(), constraint=constraint, tolerance=bound
        )
        scores = trial.plain(tune)
        model.fit(scores[:, None], tune.y, group=codes(tune), y_scores=scores)
        yield (
            bound,
            lambda rows, model=model: np.asarray(
                model.predict(trial.plain(rows)[:, None], group=codes(rows)), dtype=np.float64
            ),
        )


def _reject_option(trial: Trial) -> Iterator[tuple[float, Decide]]:
    import pandas as pd
    from aif360.algorithms.postprocessing import RejectOptionClassification
    from aif360.datasets import BinaryLabelDataset

    tune = trial.problem.tune
    first, second = sorted(set(tune.group))
    rates = [trial.plain(tune)[tune.group == name].mean() for name in (first, second)]
    favoured = second if rates[1] >= rates[0] else first
    metric = (
        "Average odds difference" if trial.problem.criterion == ODDS
        else "Statistical parity difference"
    )  # fmt: skip

    def table(rows: Rows, labels: Any, scores: Any) -> Any:
        frame = pd.DataFrame({"s": (rows.group == favoured).astype(float), "y": labels})
        found = BinaryLabelDataset(
            df=frame, label_names=["y"], protected_attribute_names=["s"],
            favorable_label=1.0, unfavorable_label=0.0,
        )  # fmt: skip
        found.scores = np.asarray(scores)[:, None]
        return found

    for bound in (0.01, 0.03, 0.05, 0.08):
        model = RejectOptionClassification(
            unprivileged_groups=[{"s": 0.0}], privileged_groups=[{"s": 1.0}],
            metric_name=metric, metric_ub=bound, metric_lb=-bound,
            num_class_thresh=40, num_ROC_margin=20,
        )  # fmt: skip
        scores = trial.plain(tune)
        truth = table(tune, tune.y.astype(float), scores)
        model.fit(truth, table(tune, (scores >= 0.5).astype(float), scores))

        def decide(rows: Rows, model: Any = model) -> Any:
            scores = trial.plain(rows)
            decided = model.predict(table(rows, (scores >= 0.5).astype(float), scores))
            return decided.labels.ravel().astype(np.float64)

        yield bound, decide


def _fairret(trial: Trial) -> Iterator[tuple[float, Decide]]:
    """A network of its own, with the norm of the violation as penalty."""
    import torch
    from fairret.loss import NormLoss
    from fairret.statistic import FalsePositiveRate, PositiveRate, TruePositiveRate

    from fairmatch.people.encoding import TableEncoder

    torch.set_num_threads(1)
    encoder = TableEncoder(missing="encode").fit(trial.problem.train.X)
    names = sorted(set(trial.problem.train.group))

    def groups(rows: Rows) -> Any:
        columns = [rows.group == name for name in names]
        return torch.tensor(np.column_stack(columns), dtype=torch.float32)

    def inputs(rows: Rows) -> Any:
        features = torch.tensor(encoder.transform(rows.X), dtype=torch.float32)
        return torch.cat([features, groups(rows)], dim=1)

    X, S = inputs(trial.problem.train), groups(trial.problem.train)
    y = torch.tensor(trial.problem.train.y, dtype=torch.float32)[:, None]
    odds = trial.problem.criterion == ODDS
    for strength in (0.0, 0.5, 1.0, 2.0, 5.0):
        torch.manual_seed(trial.seed)
        network = torch.nn.Sequential(
            torch.nn.Linear(X.shape[1], 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)
        )
        losses = [NormLoss(s()) for s in ((TruePositiveRate, FalsePositiveRate) if odds
                                          else (PositiveRate,))]  # fmt: skip
        steps = torch.optim.Adam(network.parameters(), lr=3e-3)
        for _ in range(12):
            for batch in torch.randperm(len(X)).split(1024):
                steps.zero_grad()
                logits = network(X[batch])
                loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, y[batch])
                for penalty in losses:
                    more = (y[batch],) if odds else ()
                    loss = loss + strength * penalty(logits, S[batch], *more)
                loss.backward()
                steps.step()

        def decide(rows: Rows, network: Any = network) -> Any:
            with torch.no_grad():
                return (network(inputs(rows)).ravel() >= 0.0).numpy().astype(np.float64)

        yield strength, decide


def _linear_post(trial: Trial) -> Iterator[tuple[float, Decide]]:
    tune = trial.problem.tune
    names = {name: code for code, name in enumerate(sorted(set(tune.group)))}

    def codes(rows: Rows) -> Any:
        return np.array([names[name] for name in rows.group])

    for bound in BOUNDS:
        rule = linear_post(trial.plain(tune), codes(tune), bound, trial.problem.criterion)
        yield bound, lambda rows, rule=rule: rule(trial.plain(rows), codes(rows))


def _ours(title: str, method: str, package: str = "fairmatch", **more: Any) -> Peer:
    """Return a method of the study of groups."""

    def candidates(trial: Trial) -> Iterator[tuple[float, Decide]]:
        settings = {"rounds": N_ROUNDS, "weights": METHODS[method].weights}
        curve = METHODS[method].fit(trial.problem, settings, trial.seed)
        for weight, model in zip(curve.weights, curve.models, strict=True):
            if method == SLOW:  # it decides at random: its scores are chances
                yield weight, lambda rows, model=model: model(rows, rows.group)
            else:
                yield weight, lambda rows, model=model: 1.0 * (model(rows, rows.group) >= 0.5)

    return Peer(title, package, candidates, method=method, **more)


PEERS: dict[str, Peer] = {
    "plain": _ours("plain trees (LightGBM)", "plain"),
    "thresholds": _ours("fairmatch: thresholds by group", "thresholds"),
    "alignment": _ours(
        "fairmatch: quantile alignment", "alignment", criteria=("demographic_parity",)
    ),
    "ftm": _ours("fairmatch: FTM, predicted map", "ftm-predicted"),
    "smoothing": _ours("fairmatch: match smoothing", "smoothing"),
    "threshold-optimizer": Peer(
        "fairlearn: ThresholdOptimizer", "fairlearn", _threshold_optimizer, random=True
    ),
    "exponentiated-gradient": _ours(
        "fairlearn: ExponentiatedGradient", "exponentiated-gradient", "fairlearn", random=True
    ),
    "equipy": Peer("equipy: FairWasserstein", "equipy", _equipy, criteria=("demographic_parity",)),
    "oxonfair": Peer("oxonfair: FairPredictor", "oxonfair", _oxonfair),
    "error-parity": Peer(
        "error-parity: RelaxedThresholdOptimizer", "error-parity", _error_parity, random=True
    ),
    "linear-post": Peer("LinearPost's linear program (written anew)", "scipy", _linear_post),
    "fairret": Peer("fairret: NormLoss (a network)", "fairret", _fairret),
    "reject-option": Peer(
        "AIF360: RejectOptionClassification", "aif360", _reject_option, most_groups=2
    ),
}
