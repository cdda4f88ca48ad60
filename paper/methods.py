"""The table of methods, and how each is trained."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

import fairmatch
from fairmatch.learning.path import categorised, fairness_path, plain_trees
from fairmatch.learning.settings import (
    ADV_WEIGHTS,
    ALIGNMENT_STRENGTHS,
    LAFTR_WEIGHTS,
    PAPER_WEIGHTS,
    REDUCTION_WEIGHTS,
    REG_WEIGHTS,
    REPAIR_AMOUNTS,
    SIPM_WEIGHTS,
    SMOOTHING_WEIGHTS,
)
from fairmatch.matching.coupling import Coupling
from fairmatch.matching.matchers import OptimalTransportMatcher
from fairmatch.people.checks import FloatArray
from paper import rivals
from paper.specs import Problem

# A model of a curve: a function from groups to the scores of the test rows in these groups.
Scorer: TypeAlias = Callable[[Any], FloatArray]

# The bounds of exponentiated gradient that are recorded, from loose to tight.
REDUCTION_BOUNDS = (0.08, 0.03, 0.01)


@dataclass(frozen=True, eq=False)
class Curve:
    """Models along a method's curve.

    Attributes
    ----------
    scorers : list
        One model per weight.
    training_scores : list of arrays
        Scores of the training rows, one array per model.
    coupling : Coupling or None
        The matching of all training rows, if the method has one.
    """

    scorers: list[Scorer]
    training_scores: list[FloatArray]
    coupling: Coupling | None = None


Fit: TypeAlias = Callable[[Problem, Mapping[str, Any], int], Curve]


@dataclass(frozen=True, eq=False)
class Method:
    """A way to train models along a curve.

    Attributes
    ----------
    name : str
        Name of the method in specs.
    weights : tuple of float
        Fairness weights of the method, unless a spec has others.
    fit : callable or None
        Takes a problem, the spec's settings and the seed; returns the curve. None stands for the
        entry of this name in `paper.methods.FITS`.
    schedule : str
        Which of a profile's lengths of training applies: "network", "trees" or "own".
    reference : str or None
        The unconstrained method that rank agreement and flips compare it with. None for an
        unconstrained method.
    settings : mapping
        Settings of the specs beyond weights and schedule.
    """

    name: str
    weights: tuple[float, ...]
    fit: Fit | None = None
    schedule: str = "network"
    reference: str | None = "unfair"
    settings: Mapping[str, Any] = field(default_factory=dict)


_TREES: dict[str, Any] = {"schedule": "trees", "reference": "trees-unfair"}

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("unfair", (0.0,), reference=None),
        Method("reduction", REDUCTION_WEIGHTS),
        Method("reg", REG_WEIGHTS),
        Method("adv", ADV_WEIGHTS),
        Method("ftm-batch", PAPER_WEIGHTS, settings={"label_weight": 0}),
        Method("ftm", PAPER_WEIGHTS, settings={"label_weight": 0}),
        Method("laftr", LAFTR_WEIGHTS),
        Method("sipm", SIPM_WEIGHTS),
        Method("repair", REPAIR_AMOUNTS, settings={"small_group_neighbors": 10}),
        Method("trees-unfair", (0.0,), schedule="trees", reference=None),
        Method("trees-reg", REG_WEIGHTS, **_TREES),
        Method("trees-ftm", PAPER_WEIGHTS, **_TREES, settings={"label_weight": 0}),
        Method("trees-predicted", PAPER_WEIGHTS, **_TREES),
        Method("trees-eg", REDUCTION_BOUNDS, **_TREES),
        Method("trees-alignment", ALIGNMENT_STRENGTHS, **_TREES),
        Method("trees-thresholds", ALIGNMENT_STRENGTHS, **_TREES),
        Method("trees-smoothing", SMOOTHING_WEIGHTS, **_TREES, settings={"score_weight": 5}),
    )
}
"""The paper's methods and ours, by their names in specs."""


SMALL_TABLE, SMALL_TABLE_RECONSTRUCTION = 5000, 3.0
SMALL_GROUP = 1000


def _class(name: str) -> Any:
    """Return a class of the library, or of the rivals."""
    return getattr(rivals if name in rivals.__all__ else fairmatch, name)


def _network(class_name: str) -> Fit:
    def fit(problem: Problem, settings: Mapping[str, Any], seed: int) -> Curve:
        estimator = _class(class_name)(**_network_settings(problem, settings, seed))
        return _encoded_curve(estimator, problem, settings["weights"])

    return fit


def _network_settings(problem: Problem, settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
    schedule = {name: settings[name] for name in ("epochs", "learning_rate", "decay")}
    return {
        **schedule,
        "batch_size": problem.dataset.batch_size,
        "encoder": None,  # the split is encoded already
        "random_state": seed,
    }


def _ftm(problem: Problem, settings: Mapping[str, Any], seed: int) -> Curve:
    """Train FTM with one matching of all rows."""
    coupling = _match_all(problem, settings["label_weight"])
    estimator = fairmatch.FTMClassifier(**_network_settings(problem, settings, seed))
    return _encoded_curve(estimator, problem, settings["weights"], coupling)


def _ftm_batches(problem: Problem, settings: Mapping[str, Any], seed: int) -> Curve:
    """Train FTM as in the paper, with a new matching of a mini-batch in every step."""
    # A group that is smaller than a batch is matched whole.
    smaller = int(np.bincount(problem.split.group_train).min())
    matcher = OptimalTransportMatcher(
        settings["label_weight"], batch_size=min(problem.dataset.batch_size, smaller)
    )
    estimator = fairmatch.FTMClassifier(matcher, **_network_settings(problem, settings, seed))
    return _encoded_curve(estimator, problem, settings["weights"])


def _match_all(problem: Problem, label_weight: float) -> Coupling:
    split = problem.split
    # A tolerance is a share of the whole cost. With a large label weight, labels make up most of
    # the cost, and the tolerance leaves much room in the features. So it shrinks beyond the
    # paper's weight of 100.
    tolerance = 1e-3 * min(1.0, 100.0 / max(label_weight, 1.0))
    matcher = OptimalTransportMatcher(label_weight, tolerance=tolerance)
    return matcher.match(split.X_train, split.group_train, split.y_train)


def _encoded_curve(
    estimator: Any, problem: Problem, weights: Sequence[float], coupling: Coupling | None = None
) -> Curve:
    """Train an estimator at every weight on the encoded rows of the split."""
    split = problem.split
    path = fairness_path(
        split.X_train,
        split.y_train,
        sensitive_features=split.group_train,
        fairness_weights=weights,
        estimator=estimator,
        coupling=coupling,
    )
    return _path_curve(path.models, split.X_train, split.X_test, problem, coupling)


def _path_curve(
    models: Sequence[Any],
    train: Any,
    test: Any,
    problem: Problem,
    coupling: Coupling | None = None,
) -> Curve:
    def scores(model: Any, rows: Any, groups: Any) -> FloatArray:
        return np.asarray(model.predict_proba(rows, sensitive_features=groups)[:, 1])

    def scorer(model: Any) -> Scorer:
        return lambda groups: scores(model, test, groups)

    return Curve(
        [scorer(model) for model in models],
        [scores(model, train, problem.split.group_train) for model in models],
        coupling,
    )


def _trees(class_name: str, **fixed: Any) -> Fit:
    def fit(problem: Problem, settings: Mapping[str, Any], seed: int) -> Curve:
        coupling = None
        if "label_weight" in settings:
            coupling = _match_all(problem, settings["label_weight"])
        estimator = _class(class_name)(n_rounds=settings["rounds"], random_state=seed, **fixed)
        path = fairness_path(
            problem.raw_train,
            problem.split.y_train,
            sensitive_features=problem.split.group_train,
            fairness_weights=settings["weights"],
            estimator=estimator,
            coupling=coupling,
        )
        return _path_curve(path.models, problem.raw_train, problem.raw_test, problem, coupling)

    return fit


def _around_trees(class_name: str, **fixed: Any) -> Fit:
    """Return the training of a wrapper around LightGBM, which finds categories by their type."""

    def fit(problem: Problem, settings: Mapping[str, Any], seed: int) -> Curve:
        own = {name: settings[name] for name in ("score_weight",) if name in settings}
        trees = plain_trees(settings["rounds"], seed)
        estimator = _class(class_name)(trees, random_state=seed, **fixed, **own)
        table = categorised(problem.dataset.X)
        train, test = (
            table.iloc[rows] for rows in (problem.split.train_index, problem.split.test_index)
        )
        path = fairness_path(
            train,
            problem.split.y_train,
            sensitive_features=problem.split.group_train,
            fairness_weights=settings["weights"],
            estimator=estimator,
        )
        return _path_curve(path.models, train, test, problem)

    return fit


def _trees_reductions(problem: Problem, settings: Mapping[str, Any], seed: int) -> Curve:
    """Train LightGBM inside fairlearn's exponentiated gradient, with bounds for weights."""
    trees = plain_trees(settings["rounds"], seed)
    rows, labels, groups = problem.raw_train, problem.split.y_train, problem.split.group_train
    models = [
        rivals.ExponentiatedGradientClassifier(trees, eps=eps, encoder="columns").fit(
            rows, labels, sensitive_features=groups
        )
        for eps in settings["weights"]
    ]
    return _path_curve(models, rows, problem.raw_test, problem)


def _learned(class_name: str) -> Fit:
    """Return the training of a network on a representation that is learned against a critic."""

    def fit(problem: Problem, settings: Mapping[str, Any], seed: int) -> Curve:
        shared = _network_settings(problem, settings, seed)
        plain = {name: value for name, value in shared.items() if name != "encoder"}
        kind = _class(class_name)
        # On a small table, an encoder that need not rebuild its rows memorises the labels.
        small = len(problem.split.y_train) < SMALL_TABLE
        own = {"reconstruction_weight": SMALL_TABLE_RECONSTRUCTION} if small else {}
        estimator = rivals.RepresentationClassifier(kind(**shared, **own), **plain)
        return _encoded_curve(estimator, problem, settings["weights"])

    return fit


def _repaired(problem: Problem, settings: Mapping[str, Any], seed: int) -> Curve:
    """Train a network on rows that were moved to the groups' barycenter."""
    # In a small group the nearest person may be far away, so several neighbours are averaged. In
    # a large group, averaging would only blur the repair.
    few = int(np.bincount(problem.split.group_train).min()) < SMALL_GROUP
    n_neighbors = settings["small_group_neighbors"] if few else 1
    repair = rivals.TransportRepairTransformer(encoder=None, n_neighbors=n_neighbors)
    shared = _network_settings(problem, settings, seed)
    plain = {name: value for name, value in shared.items() if name != "encoder"}
    estimator = rivals.RepresentationClassifier(repair, **plain)
    coupling = _match_all(problem, 0.0)
    return _encoded_curve(estimator, problem, settings["weights"], coupling)


FITS: dict[str, Fit] = {
    "unfair": _network("UnconstrainedClassifier"),
    "reduction": _network("ReductionClassifier"),
    "reg": _network("GapRegularizedClassifier"),
    "adv": _network("AdversarialClassifier"),
    "ftm-batch": _ftm_batches,
    "ftm": _ftm,
    "laftr": _learned("LAFTRTransformer"),
    "sipm": _learned("SIPMTransformer"),
    "repair": _repaired,
    "trees-unfair": _trees("GapRegularizedBoostingClassifier"),
    "trees-reg": _trees("GapRegularizedBoostingClassifier"),
    "trees-ftm": _trees("FTMBoostingClassifier", transport="marginal", warmup=0.0),
    "trees-predicted": _trees("FTMBoostingClassifier", transport="predicted", warmup=0.5),
    "trees-eg": _trees_reductions,
    "trees-alignment": _around_trees("QuantileAlignmentClassifier"),
    "trees-thresholds": _around_trees("QuantileAlignmentClassifier", decisions="threshold"),
    "trees-smoothing": _around_trees("MatchSmoothingClassifier"),
}
"""The training of each method in `METHODS`, by its name."""


def fit_curve(method: Method, problem: Problem, settings: Mapping[str, Any], seed: int) -> Curve:
    """Train a method's curve on one split and return it."""
    fit = FITS[method.name] if method.fit is None else method.fit
    return fit(problem, settings, seed)
