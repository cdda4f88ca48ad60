"""The table of methods, the rows that they are given, and how each is trained."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import fairmatch
from fairmatch.datasets import Dataset, paper_split
from fairmatch.exceptions import ConstantModelWarning, InputError
from fairmatch.learning.estimator import PAPER_WEIGHTS
from fairmatch.learning.path import METHODS as SEARCHED
from fairmatch.learning.path import fairness_path, plain_trees
from fairmatch.learning.wrappers import ALIGNMENT_STRENGTHS, SMOOTHING_WEIGHTS
from fairmatch.matching.coupling import Coupling
from fairmatch.matching.matchers import OptimalTransportMatcher
from fairmatch.people.checks import BoolArray, FloatArray
from paper import rivals

# How the paper halves two of the tables (Section 5.2.2): a column, the names of both halves, and
# the value of the first half. None halves at the median of the test rows; the median is high.
NAMED_SUBSETS: dict[str, tuple[str, str, str, str | None]] = {
    "german": ("age", "high age", "low age", None),
    "dutch": ("marital_status", "married", "not married", "married"),
}


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a table."""

    X: pd.DataFrame  #: The features as they are in the table.
    #: Labels, 0 or 1, and groups.
    y: NDArray[np.int64]
    group: NDArray[Any]
    #: The features as numbers in [0, 1], one column per category; None where no method needs it.
    encoded: Any = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: NDArray[Any]) -> "Rows":
        """Return some of the rows."""
        encoded = None if self.encoded is None else self.encoded[rows]
        return Rows(self.X.iloc[rows], self.y[rows], self.group[rows], encoded)


@dataclass(frozen=True, eq=False)
class Problem:
    """A table that is split into rows to train on and rows to measure on."""

    dataset: Dataset  #: The table.
    #: Rows to train on, and rows to report on.
    train: Rows
    test: Rows
    tune: Rows | None = None  #: Rows to choose a model on, where the study has such rows.
    criterion: str = "demographic_parity"  #: The fairness criterion of learners that know several.
    #: How many rows are matched by methods that learn on rows to tune on; None matches all.
    match_rows: int | None = None

    @classmethod
    def draw(cls, dataset: Dataset, seed: int, minority_share: float | None = None) -> "Problem":
        """Return the paper's split of a table that a seed draws.

        With `minority_share`, training rows of S = 0 are dropped at random until their share among
        the training rows is this.
        """
        split = paper_split(dataset, seed)
        train, test = (
            Rows(dataset.X.iloc[index], y, group, encoded)
            for index, y, group, encoded in (
                (split.train_index, split.y_train, split.group_train, split.X_train),
                (split.test_index, split.y_test, split.group_test, split.X_test),
            )
        )
        if minority_share is not None:
            train = _thinned(train, minority_share, seed)
        return cls(dataset, train, test)

    @property
    def favoured_code(self) -> int:
        """Code of the favoured group."""
        return self.dataset.groups.index(self.dataset.favoured_group)

    def named_subsets(self) -> dict[str, BoolArray]:
        """Return the halves of the test rows that the paper compares; none for other tables."""
        if self.dataset.name not in NAMED_SUBSETS:
            return {}
        column, first, second, value = NAMED_SUBSETS[self.dataset.name]
        values = self.test.X[column].to_numpy()
        inside = values >= np.median(values) if value is None else values == value
        if not 0 < inside.sum() < len(inside):
            raise InputError(f"All test rows are alike in {column!r}: they cannot be halved.")
        return {first: inside, second: ~inside}


def _thinned(train: Rows, minority_share: float, seed: int) -> Rows:
    if not 0.0 < minority_share < 1.0:
        raise InputError(f"minority_share must lie in (0, 1), got {minority_share}.")
    rows, others = np.flatnonzero(train.group == 0), np.flatnonzero(train.group == 1)
    wanted = round(len(others) * minority_share / (1.0 - minority_share))
    if not 1 <= wanted <= len(rows):
        raise InputError(
            f"A minority_share of {minority_share:g} needs {wanted} training rows of S = 0, and "
            f"there are {len(rows)}. Choose another share."
        )
    kept = np.random.default_rng([seed, 595]).choice(rows, size=wanted, replace=False)
    return train.take(np.sort(np.concatenate([kept, others])))


# A model: a function from rows and the groups that they are taken to be in to their scores.
Model: TypeAlias = Callable[[Rows, Any], FloatArray]


@dataclass(frozen=True, eq=False)
class Curve:
    """Models along a method's curve."""

    weights: Sequence[float]  #: The fairness weight of each model.
    models: list[Model]  #: One model per weight.
    coupling: Coupling | None = None  #: The matching of all training rows, if the method has one.


Fit: TypeAlias = Callable[[Problem, Mapping[str, Any], int], Curve]


@dataclass(frozen=True, eq=False)
class Method:
    """A way to train models along a curve."""

    name: str  #: Name of the method in specs.
    weights: tuple[float, ...]  #: Fairness weights of the method, unless a spec has others.
    fit: Fit  #: Takes a problem, the settings of the spec and the seed; returns the curve.
    #: Which of a profile's lengths of training applies: "network", "trees" or "own". Methods of the
    #: study of groups are "tuned".
    schedule: str = "network"
    #: The unconstrained method that rank agreement and flips compare it with. None for an
    #: unconstrained method.
    reference: str | None = "unfair"
    #: Settings of the specs beyond weights and schedule.
    settings: Mapping[str, Any] = field(default_factory=dict)


Make: TypeAlias = Callable[..., Any]


def _rival(name: str) -> Make:
    """Return what makes a rival; its module is imported when it is called."""
    return lambda *given, **named: getattr(rivals, name)(*given, **named)


def _models(fitted: Sequence[Any], encoded: bool = False) -> list[Model]:
    """Return fitted classifiers as functions of rows, which they read encoded or as they are."""

    def model(classifier: Any) -> Model:
        def scores(rows: Rows, group: Any) -> FloatArray:
            features = rows.encoded if encoded else rows.X
            return np.asarray(classifier.predict_proba(features, sensitive_features=group)[:, 1])

        return scores

    return [model(classifier) for classifier in fitted]


def _path(
    estimator: Any,
    train: Rows,
    weights: Sequence[float],
    coupling: Coupling | None = None,
    *,
    encoded: bool = False,
) -> Curve:
    """Train an estimator at every weight."""
    path = fairness_path(
        train.encoded if encoded else train.X,
        train.y,
        sensitive_features=train.group,
        fairness_weights=weights,
        estimator=estimator,
        coupling=coupling,
    )
    return Curve(weights, _models(path.models, encoded), coupling)


def _match_all(train: Rows, label_weight: float) -> Coupling:
    # A tolerance is a share of the whole cost. With a large label weight, labels make up most of
    # the cost, and the tolerance leaves much room in the features. So it shrinks beyond the
    # paper's weight of 100.
    tolerance = 1e-3 * min(1.0, 100.0 / max(label_weight, 1.0))
    matcher = OptimalTransportMatcher(label_weight, tolerance=tolerance)
    return matcher.match(train.encoded, train.group, train.y)


# Networks, which read encoded rows.


def _network_settings(problem: Problem, settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
    schedule = {name: settings[name] for name in ("epochs", "learning_rate", "decay")}
    network = fairmatch.NeuralNetwork(batch_size=problem.dataset.batch_size, **schedule)
    return {"estimator": network, "random_state": seed}


def _network(make: Make) -> Fit:
    def fit(problem: Problem, settings: Mapping[str, Any], seed: int) -> Curve:
        # The split is encoded already.
        estimator = make(encoder=None, **_network_settings(problem, settings, seed))
        return _path(estimator, problem.train, settings["weights"], encoded=True)

    return fit


def _ftm(problem: Problem, settings: Mapping[str, Any], seed: int) -> Curve:
    """Train FTM with one matching of all rows."""
    coupling = _match_all(problem.train, settings["label_weight"])
    given = _network_settings(problem, settings, seed)
    estimator = fairmatch.FTMClassifier(encoder=None, **given)
    return _path(estimator, problem.train, settings["weights"], coupling, encoded=True)


def _ftm_batches(problem: Problem, settings: Mapping[str, Any], seed: int) -> Curve:
    """Train FTM as in the paper, with a new matching of a mini-batch in every step."""
    # A group that is smaller than a batch is matched whole.
    smaller = int(np.bincount(problem.train.group).min())
    size = min(problem.dataset.batch_size, smaller)
    matcher = OptimalTransportMatcher(settings["label_weight"], batch_size=size)
    given = _network_settings(problem, settings, seed)
    estimator = fairmatch.FTMClassifier(transport=matcher, encoder=None, **given)
    return _path(estimator, problem.train, settings["weights"], encoded=True)


SMALL_TABLE, SMALL_TABLE_RECONSTRUCTION = 5000, 3.0
SMALL_GROUP = 1000


def _learned(make: Make) -> Fit:
    """Return the training of a network on a representation that is learned against a critic."""

    def fit(problem: Problem, settings: Mapping[str, Any], seed: int) -> Curve:
        given = _network_settings(problem, settings, seed)
        # On a small table, an encoder that need not rebuild its rows memorises the labels.
        small = len(problem.train) < SMALL_TABLE
        own = {"reconstruction_weight": SMALL_TABLE_RECONSTRUCTION} if small else {}
        estimator = rivals.RepresentationClassifier(make(encoder=None, **given, **own), **given)
        return _path(estimator, problem.train, settings["weights"], encoded=True)

    return fit


def _repaired(problem: Problem, settings: Mapping[str, Any], seed: int) -> Curve:
    """Train a network on rows that were moved to the groups' barycenter."""
    # In a small group the nearest person may be far away, so several neighbours are averaged. In
    # a large group, averaging would only blur the repair.
    few = int(np.bincount(problem.train.group).min()) < SMALL_GROUP
    n_neighbors = settings["small_group_neighbors"] if few else 1
    repair = rivals.TransportRepairTransformer(encoder=None, n_neighbors=n_neighbors)
    given = _network_settings(problem, settings, seed)
    estimator = rivals.RepresentationClassifier(repair, **given)
    coupling = _match_all(problem.train, 0.0)
    return _path(estimator, problem.train, settings["weights"], coupling, encoded=True)


# Trees, which read rows as they are; those that a search for alternatives tries are made as there.


def _trees(make: Make) -> Fit:
    def fit(problem: Problem, settings: Mapping[str, Any], seed: int) -> Curve:
        own = {name: settings[name] for name in ("score_weight",) if name in settings}
        coupling = None
        if "label_weight" in settings:
            coupling = _match_all(problem.train, settings["label_weight"])
        estimator = make(settings["rounds"], random_state=seed, **own)
        return _path(estimator, problem.train, settings["weights"], coupling)

    return fit


# Defaults of the library that changed after the runs were recorded, as they were then.
_ROWS_OF_A_GROUP, _FOLDS = 25_000, 5


def _searched(search: str) -> Make:
    """Return what makes a method of the search for alternatives, with the recorded defaults."""

    def make(n_rounds: int, **given: Any) -> Any:
        if search == "thresholds by group":
            own: dict[str, Any] = {"cv": _FOLDS}
        else:
            own = {"match_rows": _ROWS_OF_A_GROUP}
        if search == "match smoothing":
            own["cv"] = _FOLDS
        made = SEARCHED[search].make(n_rounds, **{**own, **given})
        if not search.startswith("FTM"):
            return made
        return rivals.RecordedTrees(**made.get_params(deep=False))

    return make


def _plain_boosting(n_rounds: int, **given: Any) -> Any:
    from lightgbm import LGBMClassifier

    trees = LGBMClassifier(n_estimators=n_rounds, n_jobs=1)
    return rivals.GapRegularizedBoostingClassifier(trees, **given)


def _aligned(n_rounds: int, *, random_state: int) -> Any:
    trees = plain_trees(n_rounds, random_state)
    return fairmatch.QuantileAlignmentClassifier(trees, cv=_FOLDS, random_state=random_state)


def _gradients(problem: Problem, settings: Mapping[str, Any], seed: int, **given: Any) -> Curve:
    """Train LightGBM inside fairlearn's exponentiated gradient, with bounds for weights."""
    trees, train = plain_trees(settings["rounds"], seed), problem.train
    models = [
        rivals.ExponentiatedGradientClassifier(trees, eps=eps, encoder="columns", **given).fit(
            train.X, train.y, sensitive_features=train.group
        )
        for eps in settings["weights"]
    ]
    return Curve(settings["weights"], _models(models))


# Methods of the study of groups: trees that aim at its criterion, and choose on rows to tune on.


def _tuned(search: str, **own: Any) -> Fit:
    def fit(problem: Problem, settings: Mapping[str, Any], seed: int) -> Curve:
        rows = None if problem.match_rows is None else problem.match_rows // 2
        given = {"criterion": problem.criterion, "match_rows": rows}
        make = _searched(search)
        estimator = make(settings["rounds"], random_state=seed, **given, **own)
        return _path(estimator, problem.train, settings["weights"])

    return fit


_marginal = _tuned("FTM")


def plain_model(problem: Problem, settings: Mapping[str, Any], seed: int) -> Model:
    """Train plain trees, and return the model with its scores of the tuning and test rows kept."""
    (model,) = _marginal(problem, {**settings, "weights": (0.0,)}, seed).models
    return _kept(model, problem)


def _kept(model: Model, problem: Problem) -> Model:
    """Return a model that computes the scores of the tuning and of the test rows once."""
    known = [(rows.group, model(rows, rows.group)) for rows in (problem.tune, problem.test) if rows]

    def scores(rows: Rows, group: Any) -> FloatArray:
        for own, kept in known:
            if own is group:
                return kept
        return model(rows, group)

    return scores


def _cut(problem: Problem, model: Model, bounds: Sequence[float]) -> list[Model]:
    """Return decisions by group thresholds that keep each bound on the tuning rows."""
    tune = problem.tune
    assert tune is not None
    given: dict[str, Any] = {"y_true": tune.y, "criterion": problem.criterion}

    def decided(bound: float) -> Model:
        with warnings.catch_warnings():
            # Thresholds that accept everybody or nobody are one candidate among others.
            warnings.simplefilter("ignore", ConstantModelWarning)
            cuts = fairmatch.fit_adjustment(
                model(tune, tune.group), tune.group, max_gap=bound, decisions="threshold", **given
            )
        return lambda rows, group: cuts.apply(model(rows, group), group)

    return [decided(bound) for bound in bounds]


def _plain_cut(problem: Problem, settings: Mapping[str, Any], seed: int) -> Curve:
    model = plain_model(problem, settings, seed)
    return Curve(settings["weights"], _cut(problem, model, settings["weights"]))


def _ftm_cut(problem: Problem, settings: Mapping[str, Any], seed: int) -> Curve:
    """Train FTM at some weights, and take thresholds by group for the rest of the way."""
    curve = _tuned("FTM with the predicted map")(
        problem, {**settings, "weights": CUT_WEIGHTS}, seed
    )
    bounds = settings["weights"]
    models = [cut for model in curve.models for cut in _cut(problem, _kept(model, problem), bounds)]
    return Curve([*bounds] * len(curve.models), models)


def _plain_aligned(problem: Problem, settings: Mapping[str, Any], seed: int) -> Curve:
    model, tune = plain_model(problem, settings, seed), problem.tune
    assert tune is not None
    full = fairmatch.fit_adjustment(
        model(tune, tune.group), tune.group, y_true=tune.y, criterion=problem.criterion
    )

    def aligned(strength: float) -> Model:
        weaker = replace(full, strength=strength)
        return lambda rows, group: weaker.apply(model(rows, group), group)

    return Curve(settings["weights"], [aligned(strength) for strength in settings["weights"]])


def _tuned_gradients(problem: Problem, settings: Mapping[str, Any], seed: int) -> Curve:
    return _gradients(problem, settings, seed, criterion=problem.criterion, random_state=seed)


# The bounds of exponentiated gradient that are recorded, from loose to tight.
REDUCTION_BOUNDS = (0.08, 0.03, 0.01)
# In the study of groups, thresholds are tried at these bounds, and alignment at these strengths.
BOUNDS = (0.0, 0.01, 0.02, 0.03, 0.042, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2)
STRENGTHS = tuple(np.round(np.linspace(0.0, 1.0, 21), 2).tolist())
WEIGHTS = (0.0, *PAPER_WEIGHTS)
# The fairness weights of FTM whose scores thresholds cut.
CUT_WEIGHTS = (0.3, 0.6, 1.0)
EPSILONS = (0.002, 0.005, 0.01, 0.02, 0.04)

_TREES: dict[str, Any] = {"schedule": "trees", "reference": "trees-unfair"}
_TUNED: dict[str, Any] = {"schedule": "tuned", "reference": None}
_NO_LABELS = {"label_weight": 0}

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("unfair", (0.0,), _network(_rival("UnconstrainedClassifier")), reference=None),
        Method("reduction", rivals.REDUCTION_WEIGHTS, _network(_rival("ReductionClassifier"))),
        Method("reg", rivals.REG_WEIGHTS, _network(_rival("GapRegularizedClassifier"))),
        Method("adv", rivals.ADV_WEIGHTS, _network(_rival("AdversarialClassifier"))),
        Method("ftm-batch", PAPER_WEIGHTS, _ftm_batches, settings=_NO_LABELS),
        Method("ftm", PAPER_WEIGHTS, _ftm, settings=_NO_LABELS),
        Method("laftr", rivals.LAFTR_WEIGHTS, _learned(_rival("LAFTRTransformer"))),
        Method("sipm", rivals.SIPM_WEIGHTS, _learned(_rival("SIPMTransformer"))),
        Method("repair", rivals.REPAIR_AMOUNTS, _repaired, settings={"small_group_neighbors": 10}),
        Method("trees-unfair", (0.0,), _trees(_plain_boosting), "trees", None),
        Method("trees-reg", rivals.REG_WEIGHTS, _trees(_plain_boosting), **_TREES),
        Method("trees-ftm", PAPER_WEIGHTS, _trees(_searched("FTM")), **_TREES, settings=_NO_LABELS),
        Method(
            "trees-predicted",
            PAPER_WEIGHTS,
            _trees(_searched("FTM with the predicted map")),
            **_TREES,
        ),
        Method("trees-eg", REDUCTION_BOUNDS, _gradients, **_TREES),
        Method("trees-alignment", ALIGNMENT_STRENGTHS, _trees(_aligned), **_TREES),
        Method(
            "trees-thresholds",
            ALIGNMENT_STRENGTHS,
            _trees(_searched("thresholds by group")),
            **_TREES,
        ),
        Method(
            "trees-smoothing",
            SMOOTHING_WEIGHTS,
            _trees(_searched("match smoothing")),
            **_TREES,
            settings={"score_weight": 5},
        ),
        Method("plain", (0.0,), _marginal, **_TUNED),
        Method("thresholds", BOUNDS, _plain_cut, **_TUNED),
        Method("alignment", STRENGTHS, _plain_aligned, **_TUNED),
        Method("ftm-predicted", WEIGHTS, _tuned("FTM with the predicted map"), **_TUNED),
        Method("ftm-marginal", WEIGHTS, _marginal, **_TUNED),
        Method("ftm-thresholds", BOUNDS, _ftm_cut, **_TUNED),
        Method("smoothing", WEIGHTS, _tuned("match smoothing", score_weight=5.0), **_TUNED),
        Method("exponentiated-gradient", EPSILONS, _tuned_gradients, **_TUNED),
        Method("ceiling", BOUNDS, _plain_cut, **_TUNED),
    )
}
"""The paper's methods and ours, by their names in specs."""
