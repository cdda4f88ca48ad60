"""Boosted trees that minimise a loss plus a weighted penalty, grown by LightGBM."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, ClassVar

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from fairmatch.exceptions import CouplingError, ModelFileError
from fairmatch.learning.choice import GapChoice, RealGapChoice
from fairmatch.learning.estimator import FairClassifier, FairRegressor, Family
from fairmatch.learning.penalties import (
    Comparison,
    GroupComparison,
    Sampling,
    SquaredMeanGap,
    Transport,
    TreePenalty,
)
from fairmatch.learning.progress import TrainingProgress
from fairmatch.learning.reading import (
    GroupSettings,
    GroupSizes,
    TableReader,
    TrainingRows,
    seed_sequence,
    stratified_split,
)
from fairmatch.learning.saving import State
from fairmatch.learning.settings import BOOSTING_CHOICES, REG_WEIGHTS, Settings, estimator
from fairmatch.matching.coupling import Coupling, rows_with_mass
from fairmatch.matching.matchers import Matcher
from fairmatch.people.checks import FloatArray, check_count, check_number, check_verbose
from fairmatch.people.encoding import TableEncoder
from fairmatch.people.outcome import LOGISTIC, Derivatives, Loss


class BoostingObjective:
    r"""A loss summed over rows, plus the weighted penalty on the same scale.

    Parameters
    ----------
    rows : TrainingRows
        The rows, with their labels and weights.
    fairness_weight : float
        Weight of the penalty, the paper's lambda.
    penalty : TreePenalty or None
        The penalty on these rows; it may be None if the weight is 0.
    learning_rate : float, default=1.0
        Factor that LightGBM applies to its steps.
    scale_pos_weight : float, default=1.0
        Factor on the loss of positive rows; it does not change the penalty.
    loss : Loss
        The loss, which compares margins with labels.

    Notes
    -----
    With the link :math:`p(z)`, the penalty's gradient by the margin :math:`z` is :math:`p'(z)`
    times its gradient by :math:`p`, and its curvature is :math:`p'(z)^2` times. The slope
    :math:`p'` is the second derivative of the loss. LightGBM sums over rows, so the penalty, a
    mean, is multiplied by the sum of the weights.

    The penalty's curvature is multiplied by the learning rate. Where the penalty dominates, the
    shortened step then minimises the quadratic that lies above the penalty, and the penalty falls
    as fast as that bound allows. Without this factor the trees stall long before they have learned
    the loss.
    """

    def __init__(
        self,
        rows: TrainingRows,
        fairness_weight: float,
        penalty: TreePenalty | None,
        learning_rate: float = 1.0,
        scale_pos_weight: float = 1.0,
        loss: Loss = LOGISTIC,
    ) -> None:
        self.labels, self.loss = rows.labels, loss
        self.mass = rows.mass * np.where(rows.labels > 0.0, scale_pos_weight, 1.0)
        self.total = rows.mass.sum()
        self.fairness_weight, self.learning_rate = fairness_weight, learning_rate
        self.penalty = penalty if fairness_weight > 0.0 else None

    def values(self, margins: FloatArray) -> FloatArray:
        """Return the mean loss and the weighted penalty; the trees minimise their sum."""
        loss = self.mass @ self.loss.values(self.labels, margins) / self.total
        gap = 0.0 if self.penalty is None else self.penalty.value(self.loss.link(margins))
        return np.array([loss, self.fairness_weight * gap])

    def derivatives(self, margins: FloatArray, *, penalized: bool = True) -> Derivatives:
        """Return the gradient and curvature by the margins, with or without the penalty."""
        response, slope = self.loss.derivatives(self.labels, margins)
        gradient, curvature = self.mass * response, self.mass * slope
        if self.penalty is not None and penalized:
            first, second = self.penalty.derivatives(self.loss.link(margins))
            scale = self.fairness_weight * self.total
            gradient += scale * first * slope
            curvature += self.learning_rate * scale * second * slope**2
        return gradient, curvature


FILE = "trees.txt"
_HEADER = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx={last}
objective=custom
feature_names={names}
feature_infos={infos}
"""
_CATEGORICAL, _DECISIONS = 1, 16  # a bit of a decision's type, and how many types there are


def checked_trees(content: bytes, n_inputs: int) -> lgb.Booster:
    """Return the trees of a file; raise an error if they are damaged."""
    try:
        return lgb.Booster(model_str=_checked(content.decode("ascii"), n_inputs))
    except (ValueError, LookupError, lgb.basic.LightGBMError) as error:
        raise ModelFileError(f"{FILE} does not hold trees: {error}") from error


def _checked(text: str, n_inputs: int) -> str:
    """Return a new text of the trees that holds only values that were checked."""
    _, *blocks = text.split("\nend of trees", 1)[0].split("\nTree=")
    _hold(len(blocks) > 0, "there is no tree")
    header = _HEADER.format(
        last=n_inputs - 1,
        names=" ".join(f"Column_{index}" for index in range(n_inputs)),
        infos=" ".join(["none"] * n_inputs),
    )
    trees = [
        f"Tree={index}\n{_Tree.read(block).checked(n_inputs)}\n"
        for index, block in enumerate(blocks)
    ]
    return "\n".join([header, *trees, "end of trees\n"])


@dataclass(frozen=True, eq=False)
class _Tree:
    """The fields of a tree that a prediction needs."""

    split_feature: NDArray[np.int64]
    threshold: FloatArray
    decision_type: NDArray[np.int64]
    left_child: NDArray[np.int64]
    right_child: NDArray[np.int64]
    leaf_value: FloatArray
    cat_boundaries: NDArray[np.int64]
    cat_threshold: NDArray[np.int64]

    @classmethod
    def read(cls, block: str) -> "_Tree":
        fields = dict(line.split("=", 1) for line in block.splitlines()[1:] if "=" in line)
        _hold(fields.get("is_linear", "0") == "0", "leaves are linear models")
        return cls(
            **{
                name: np.array(
                    fields.get(name, "").split(),
                    dtype=float if name in ("threshold", "leaf_value") else np.int64,
                )
                for name in cls.__dataclass_fields__
            }
        )

    def checked(self, n_inputs: int) -> str:
        """Return the tree as text; raise unless every decision leads to one of its leaves."""
        n_leaves = len(self.leaf_value)
        nodes, n_sets = np.arange(n_leaves - 1), max(len(self.cat_boundaries) - 1, 0)
        children = np.concatenate([self.left_child, self.right_child])
        parents = np.concatenate([nodes, nodes])
        decisions = self.split_feature, self.threshold, self.decision_type, self.left_child
        _hold(n_leaves > 0 and np.isfinite(self.leaf_value).all(), "a leaf has no value")
        _hold(all(len(part) == len(nodes) for part in decisions), "a decision is incomplete")
        # Every leaf and every node but the root is reached exactly once, and never backwards.
        reached = np.concatenate([nodes[1:], ~np.arange(n_leaves)]) if n_leaves > 1 else nodes
        _hold(np.array_equal(np.sort(children), np.sort(reached)), "it is not a tree")
        _hold(bool(((children < 0) | (children > parents)).all()), "it is not a tree")
        _hold(_within(self.split_feature, n_inputs), "a decision is on a column that is not there")
        _hold(_within(self.decision_type, _DECISIONS), "a decision is of an unknown type")
        _hold(not np.isnan(self.threshold).any(), "a threshold is not a number")
        chosen = self.threshold[self.decision_type & _CATEGORICAL > 0]
        _hold(_within(chosen, n_sets), "a set of categories is not there")
        bounds = self.cat_boundaries if n_sets else np.array([0])
        complete = bounds[0] == 0 and bounds[-1] == len(self.cat_threshold)
        _hold(complete and (np.diff(bounds) > 0).all(), "a set of categories is incomplete")
        _hold(_within(self.cat_threshold, 2**32), "a set of categories is not one")
        fields = {
            name: " ".join(map(repr, getattr(self, name).tolist()))
            for name in self.__dataclass_fields__
            if n_sets or not name.startswith("cat_")
        }
        fields = {"num_leaves": str(n_leaves), "num_cat": str(n_sets), **fields}
        return "\n".join(f"{name}={value}" for name, value in fields.items())


def _within(values: NDArray[Any], end: int) -> bool:
    return bool(((values >= 0) & (values < end)).all())


def _hold(condition: Any, otherwise: str) -> None:
    if not condition:
        raise ValueError(f"{otherwise}.")


_FOLDS = 5


class TreeTrainer:
    """A trainer of trees on one table, with early stopping if rows are held out.

    Parameters
    ----------
    parameters : dict
        Parameters of LightGBM.
    rows : TrainingRows
        Rows to grow trees on.
    held_out : TrainingRows, optional
        Rows that decide when training stops.
    categorical : list of int
        Positions of the categorical columns.
    n_rounds : int
        Greatest number of trees.
    warmup : int
        Number of trees that see the loss without the penalty; they come first.
    patience : int, optional
        How many more trees are grown after the best one on the held-out rows.
    verbose : int, optional
        1 shows a progress bar on a terminal, and 0 shows none. None shows one if training takes
        longer than two seconds.
    loss : Loss
        The loss, which compares margins with labels.

    Attributes
    ----------
    base_margin : float
        Margin of the best constant prediction, where boosting starts.
    """

    def __init__(
        self,
        parameters: dict[str, Any],
        rows: TrainingRows,
        held_out: TrainingRows | None = None,
        *,
        categorical: list[int],
        n_rounds: int,
        warmup: int = 0,
        patience: int | None = None,
        verbose: int | None = 0,
        loss: Loss = LOGISTIC,
    ) -> None:
        self.parameters, self.n_rounds, self.warmup = parameters, n_rounds, warmup
        self.patience, self.verbose = patience, verbose
        self.base_margin = loss.start(rows.labels, rows.mass)
        self.data = lgb.Dataset(
            rows.inputs,
            rows.labels,
            init_score=np.full(len(rows.labels), self.base_margin),
            categorical_feature=categorical,
            params=parameters,
        )
        self.held_out = None
        if held_out is not None:
            start = np.full(len(held_out.labels), self.base_margin)
            self.held_out = self.data.create_valid(
                held_out.inputs, held_out.labels, init_score=start
            )

    def train(
        self, objective: BoostingObjective, held_out: BoostingObjective | None = None
    ) -> tuple[lgb.Booster, FloatArray]:
        """Return the trees, and the objective on the held-out rows after every round."""
        warmup = 0 if objective.penalty is None else self.warmup
        rounds, watched = count(), list[float]()

        def derivatives(margins: FloatArray, _: lgb.Dataset) -> Derivatives:
            n_grown = next(rounds)
            progress.update(n_grown, lambda: objective.values(margins)[:, None])
            return objective.derivatives(margins, penalized=n_grown >= warmup)

        def watch(margins: FloatArray, _: lgb.Dataset) -> tuple[str, float, bool]:
            assert held_out is not None
            # Rounds of the warm-up ignore the penalty, so they must not count as the best.
            value = float(held_out.values(margins).sum()) if len(watched) >= warmup else np.inf
            watched.append(value)
            return "objective", value, False

        def stop(_: Any) -> None:
            assert self.patience is not None
            best = max(int(np.argmin(watched)) + 1, warmup)
            if len(watched) - best >= self.patience:
                raise lgb.callback.EarlyStopException(best, [])

        watching: dict[str, Any] = {}
        if self.held_out is not None:
            watching = {"valid_sets": [self.held_out], "feval": watch, "callbacks": [stop]}
        parameters = {**self.parameters, "objective": derivatives}
        weight = np.array([objective.fairness_weight])
        with TrainingProgress(
            self.n_rounds, weight, verbose=self.verbose, unit="round"
        ) as progress:
            trees = lgb.train(parameters, self.data, self.n_rounds, **watching)
        best = int(np.argmin(watched)) + 1 if watched else -1
        # Keep the trees in the form that is saved; this frees the training rows.
        text = trees.model_to_string(num_iteration=best)
        return lgb.Booster(model_str=text), np.array(watched)


def unseen_scores(
    parameters: dict[str, Any],
    rows: TrainingRows,
    *,
    categorical: list[int],
    n_rounds: int,
    loss: Loss = LOGISTIC,
) -> FloatArray:
    """Return the score of every row by plain trees that were grown on the other folds."""
    strata = rows.groups.n_groups * rows.positive + rows.groups.codes
    order = np.random.default_rng(parameters["seed"]).permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    fold = np.empty(len(strata), dtype=np.intp)
    fold[order] = np.arange(len(strata)) % _FOLDS
    scores = np.empty(len(strata))
    for number in np.unique(fold):
        index, unseen = np.flatnonzero(fold != number), fold == number
        part = rows.take(index)
        trainer = TreeTrainer(
            parameters, part, categorical=categorical, n_rounds=n_rounds, loss=loss
        )
        trees, _ = trainer.train(BoostingObjective(part, 0.0, None, loss=loss))
        margins = np.asarray(trees.predict(rows.inputs[unseen], raw_score=True))
        scores[unseen] = loss.link(trainer.base_margin + margins)
    return scores


@dataclass(frozen=True)
class GrowingSettings(Settings):
    """How trees are grown.

    Parameters
    ----------
    n_rounds : int, default=200
        Number of trees.
    n_estimators : int, optional
        Number of trees under scikit-learn's name. If it is given, it replaces ``n_rounds``.
    warmup : float, default=0.0
        Share of the trees that see the loss without the penalty; they come first. With a large
        weight, the penalty then pulls together scores that the trees have already learned. Without
        a warm-up it may keep the trees from learning them.
    learning_rate : float, default=0.1
        Factor on the step of every tree, above 0 and at most 1.
    num_leaves : int, default=31
        Greatest number of leaves of a tree.
    min_child_samples : int, default=20
        Smallest number of rows in a leaf.
    reg_lambda : float, default=0.0
        L2 penalty on the leaf values.
    subsample : float, default=1.0
        Share of the rows that each tree is grown on.
    colsample_bytree : float, default=1.0
        Share of the columns that each tree is grown on.
    early_stopping_rounds : int, optional
        Stop after this many rounds without a better objective on held-out rows, and keep the trees
        up to the best round. For this, ``validation_size`` of the training rows is held out, and
        these rows are compared only with each other. A ready ``coupling`` is then an error.
    validation_size : float, default=0.2
        Share of the rows held out for ``early_stopping_rounds``, and for the choice by
        ``max_gap``, stratified by label and group.
    n_jobs : int or None, default=1
        Threads of LightGBM; 0, -1 and None leave the number to LightGBM, which takes all cores.
    random_state : int, optional
        Seed. The same seed gives the same model on the same machine and versions.
    verbose : int, optional
        1 shows a progress bar on a terminal, and 0 shows none. By default there is one if training
        takes longer than two seconds.

    Attributes
    ----------
    n_rounds_ : int
        Number of trees.
    feature_importances_ : array
        Share of each column in the gain of all splits. If the trees see the group, its share comes
        last.
    held_out_objective_ : array
        The objective on the held-out rows after every round. It is infinite in the warm-up, and
        the array is empty without early stopping.
    """

    n_rounds: int = 200
    n_estimators: int | None = None
    warmup: float = 0.0
    learning_rate: float = 0.1
    num_leaves: int = 31
    min_child_samples: int = 20
    reg_lambda: float = 0.0
    subsample: float = 1.0
    colsample_bytree: float = 1.0
    early_stopping_rounds: int | None = None
    validation_size: float = 0.2
    n_jobs: int | None = 1
    random_state: Any = None
    verbose: int | None = None

    def check(self) -> None:
        """Raise an error that names the first setting of a wrong type or size."""
        for name, least in {"n_rounds": 1, "num_leaves": 2, "min_child_samples": 0}.items():
            check_count(name, getattr(self, name), least)
        for name in ("early_stopping_rounds", "n_estimators"):
            check_count(name, getattr(self, name), optional=True)
        if self.early_stopping_rounds is not None:
            check_number("validation_size", self.validation_size, "(0, 1)")
        check_number("warmup", self.warmup, "[0, 1)")
        check_number("reg_lambda", self.reg_lambda, "[0, inf]")
        for name in ("learning_rate", "subsample", "colsample_bytree"):
            check_number(name, getattr(self, name), "(0, 1]")
        check_count("n_jobs", self.n_jobs, -1, optional=True)
        check_verbose(0 if self.verbose is None else self.verbose)

    @property
    def rounds(self) -> int:
        """Number of trees, from ``n_estimators`` or ``n_rounds``."""
        return self.n_rounds if self.n_estimators is None else self.n_estimators

    def lightgbm(self) -> dict[str, Any]:
        """Return the settings as LightGBM names them."""
        return {
            "learning_rate": self.learning_rate,
            "num_leaves": self.num_leaves,
            "min_child_samples": self.min_child_samples,
            "reg_lambda": self.reg_lambda,
            "subsample": self.subsample,
            "subsample_freq": 1,
            "colsample_bytree": self.colsample_bytree,
            "seed": int(seed_sequence(self.random_state).generate_state(1)[0] >> 1),
            "num_threads": self.n_jobs,
            "deterministic": True,
            "force_row_wise": True,
            "feature_pre_filter": False,  # with it, LightGBM fails if no column is left
            "verbosity": -1,
        }


@dataclass(frozen=True)
class TreeSettings(GrowingSettings):
    """How trees of classifiers are grown.

    Parameters
    ----------
    scale_pos_weight : float, default=1.0
        Factor on the loss of positive rows, as in LightGBM. It does not change the matching or the
        penalty. ``sample_weight`` changes the loss, the matching and the penalty.

    Attributes
    ----------
    trees_ : lightgbm.Booster
        The trees. Their sum plus ``base_margin_`` is the log-odds of the positive class.
    base_margin_ : float
        Log-odds of the positive class in the rows that trees are grown on, where boosting starts.
    """

    scale_pos_weight: float = 1.0

    def check(self) -> None:
        """Raise an error that names the first setting of a wrong type or size."""
        super().check()
        check_number("scale_pos_weight", self.scale_pos_weight, "(0, inf)")


@dataclass(frozen=True, eq=False)
class TreeScorer:
    """Trees that score rows.

    Attributes
    ----------
    trees : lightgbm.Booster
        The trees.
    base_margin : float
        Margin where boosting starts.
    watched : array
        The objective on the held-out rows after every round.
    n_jobs : int or None
        Number of threads.
    loss : Loss
        The loss; its link turns margins into scores.
    """

    trees: lgb.Booster
    base_margin: float
    watched: FloatArray
    n_jobs: int | None = 1
    loss: Loss = LOGISTIC

    FILE: ClassVar[str] = FILE

    def scores(self, inputs: FloatArray) -> FloatArray:
        """Return the score of every row."""
        margins = self.trees.predict(inputs, raw_score=True, num_threads=self.n_jobs)
        return np.asarray(self.loss.link(self.base_margin + np.asarray(margins)))

    @property
    def importances(self) -> FloatArray:
        """Share of each input in the gain of all splits."""
        gains = np.asarray(self.trees.feature_importance("gain"), dtype=np.float64)
        return gains / gains.sum() if gains.sum() > 0.0 else gains

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the estimator shows."""
        return {
            "scorer_": self,
            "trees_": self.trees,
            "base_margin_": self.base_margin,
            "n_rounds_": self.trees.num_trees(),
            "feature_importances_": self.importances,
            "held_out_objective_": self.watched,
        }

    def state(self) -> State:
        """Return the state to save: the trees, their base margin and the watched objective."""
        # JSON has no infinity, so null stands for rounds of the warm-up.
        watched = [v if np.isfinite(v) else None for v in self.watched.tolist()]
        facts = {"base_margin": self.base_margin, "held_out_objective": watched}
        return State(FILE, self.trees.model_to_string().encode(), facts)

    @classmethod
    def from_state(
        cls, content: bytes, facts: dict[str, Any], reader: TableReader, model: Any
    ) -> "TreeScorer":
        """Return the scorer of a saved state; raise an error if it is damaged."""
        base_margin = float(facts["base_margin"])
        if not np.isfinite(base_margin):
            raise ModelFileError("The file is damaged: base_margin must be finite.")
        watched = facts.get("held_out_objective", [])  # older files lack it
        if reader.encoder_ is None:
            raise ModelFileError("The file is damaged: trees need the encoder of their table.")
        return cls(
            checked_trees(content, reader.n_inputs),
            base_margin,
            np.array([np.inf if v is None else float(v) for v in watched]),
            model.n_jobs,
            model._target.loss,
        )


class TreeLearner:
    """A learner that grows a path of trees with one binning of the table.

    Parameters
    ----------
    settings : GrowingSettings
        How to grow the trees.
    categorical : list of int
        Positions of the categorical inputs.
    """

    def __init__(self, settings: GrowingSettings, categorical: list[int]) -> None:
        self.settings, self.categorical = settings, categorical

    def fit_path(
        self,
        rows: TrainingRows,
        loss: Loss,
        compare: Callable[[TrainingRows], Any],
        weights: Sequence[float],
    ) -> list[TreeScorer]:
        """Return one scorer per weight.

        Parameters
        ----------
        rows : TrainingRows
            Rows to learn from.
        loss : Loss
            The loss, which compares margins with labels.
        compare : callable
            Returns the penalty on given rows. It is called only if a weight is positive.
        weights : sequence of float
            Weights of the penalty.
        """
        settings = self.settings
        heavier = settings.scale_pos_weight if isinstance(settings, TreeSettings) else 1.0
        parts = [rows]
        if settings.early_stopping_rounds is not None:
            split = stratified_split(
                rows.labels, rows.groups, settings.validation_size, settings.random_state
            )
            parts = [rows.take(index) for index in split]
        for part in parts:
            rows_with_mass(part.groups, part.weights)
        penalties = [compare(part) if any(weights) else None for part in parts]
        trainer = TreeTrainer(
            settings.lightgbm(),
            *parts,
            categorical=self.categorical,
            n_rounds=settings.rounds,
            warmup=int(settings.warmup * settings.rounds),
            patience=settings.early_stopping_rounds,
            verbose=settings.verbose,
            loss=loss,
        )
        scorers = []
        for weight in map(float, weights):
            objectives = [
                BoostingObjective(part, weight, penalty, settings.learning_rate, heavier, loss)
                for part, penalty in zip(parts, penalties, strict=True)
            ]
            trees, watched = trainer.train(*objectives)
            scorers.append(TreeScorer(trees, trainer.base_margin, watched, settings.n_jobs, loss))
        return scorers

    def unseen_scores(self, rows: TrainingRows, loss: Loss = LOGISTIC) -> FloatArray:
        """Return the score of every row by plain trees that were not grown on it."""
        return unseen_scores(
            self.settings.lightgbm(),
            rows,
            categorical=self.categorical,
            n_rounds=self.settings.rounds,
            loss=loss,
        )


def refuse_coupling_and_stopping(settings: Any, coupling: Any) -> None:
    """Raise if early stopping would hold out rows of a ready coupling."""
    if coupling is not None and settings.early_stopping_rounds is not None:
        raise CouplingError(
            "With early_stopping_rounds, part of the rows is held out, so a ready coupling of all "
            "the rows does not fit. Leave one of the two out."
        )


def _tree_learner(settings: GrowingSettings, reader: TableReader) -> TreeLearner:
    return TreeLearner(settings, reader.categorical)


# The encoder's numbers are for the matching; the trees see one column per column of the table.
TREES = Family(
    "codes", TreeSettings, _tree_learner, TreeScorer, lambda: TableEncoder(missing="encode")
)
REGRESSION_TREES = replace(TREES, settings=GrowingSettings)


@estimator(Comparison, GapChoice, TreeSettings, GroupSettings, GroupSizes)
class GapRegularizedBoostingClassifier(FairClassifier):
    r"""Boosted trees whose penalty is the squared gap of mean scores: the rival of FTM.

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the penalty; 0 is plain LightGBM.

    Notes
    -----
    The trees minimise :math:`E\, l(Y, f) + \lambda\, \Delta\overline{\mathrm{DP}}(f)^2`, the
    objective of `GapRegularizedClassifier`. With more than two groups, or a criterion that compares
    people of the same label, the squared gap is the weighted mean over the parts.

    Examples
    --------
    >>> from fairmatch import GapRegularizedBoostingClassifier
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = GapRegularizedBoostingClassifier(10.0, n_rounds=5).fit(
    ...     german.X, german.y, sensitive_features=german.sensitive_features)
    """

    fairness_weight: float = 1.0

    _family: ClassVar[Family] = TREES
    _state_file: ClassVar[str] = TreeScorer.FILE
    _curve_weights: ClassVar[tuple[float, ...]] = REG_WEIGHTS

    def _compare(self, rows: TrainingRows, coupling: Coupling | None) -> TreePenalty:
        return SquaredMeanGap(Comparison.of(self).parts(rows), rows)


@estimator(Comparison, Sampling, GapChoice, TreeSettings, GroupSettings, GroupSizes)
class FTMBoostingClassifier(FairClassifier):
    r"""Fairness Through Matching for gradient-boosted trees.

    First, people of different groups are matched by optimal transport on an encoded copy of the
    table. Then LightGBM's trees learn to predict well and to give matched people similar scores.
    The trees see categorical columns and missing values as they are.

    Parameters
    ----------
    transport : {"predicted", "marginal", "joint"} or a matcher, default="predicted"
        What people are matched on. "predicted" uses their features and a score of every row, by
        plain trees that were grown on other rows. It keeps the most accuracy at a given gap.
        "marginal" uses the features alone, as in the paper. It keeps people nearest to those they
        are matched with, and a small gap then costs more accuracy. "joint" uses features and
        labels. Scores and labels have a weight of 100. A matcher is any object with a ``match``
        method like that of `OptimalTransportMatcher`.
    fairness_weight : float, default=1.0
        Weight of the penalty, the paper's lambda; 0 is plain LightGBM.
    warmup : float, default=0.5
        Share of the trees that see the loss without the penalty; they come first. The penalty then
        pulls together scores that the trees have already learned. Without a warm-up, a large
        weight may keep the trees from learning them.

    Notes
    -----
    The trees minimise :math:`E\, l(Y, f(X, S)) + \lambda\, \Delta\mathrm{MDP}(f, T)` (Section 4.3
    of the paper) for the coupling T. The size :math:`|d|` of a difference is smoothed as
    :math:`\sqrt{d^2 + 0.05^2} - 0.05`. With more than two groups, or a criterion that compares
    people of the same label, T has several parts, and the penalty is their weighted mean.

    Examples
    --------
    >>> from fairmatch import FTMBoostingClassifier
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = FTMBoostingClassifier(fairness_weight=2.0, n_rounds=5)
    >>> model = model.fit(german.X, german.y, sensitive_features=german.sensitive_features)
    >>> model.predict_proba(german.X[:3], sensitive_features=german.sensitive_features[:3]).shape
    (3, 2)
    """

    transport: str | Matcher = "predicted"
    fairness_weight: float = 1.0
    warmup: float = field(default=0.5, kw_only=True)

    _family: ClassVar[Family] = TREES
    _state_file: ClassVar[str] = TreeScorer.FILE
    _choice_weights: ClassVar[tuple[float, ...] | None] = BOOSTING_CHOICES
    _matches: ClassVar[bool] = True

    def _transport(self) -> Transport:
        names = ("predicted", "marginal", "joint")
        return Transport(
            self.transport,
            Comparison.of(self),
            names,
            self._unseen_scores,
            sampling=Sampling.of(self),
        )

    def _unseen_scores(self, rows: TrainingRows) -> FloatArray:
        scores: FloatArray = self._learner().unseen_scores(rows, self._target.loss)
        return scores

    def _check_parameters(
        self, fairness_weights: Sequence[float], coupling: Coupling | None
    ) -> None:
        super()._check_parameters(fairness_weights, coupling)
        refuse_coupling_and_stopping(self, coupling)


@estimator(GroupComparison, Sampling, RealGapChoice, GrowingSettings, GroupSettings, GroupSizes)
class FTMBoostingRegressor(FairRegressor):
    r"""Fairness Through Matching for a real target, by gradient-boosted trees.

    First, people of different groups are matched by optimal transport on an encoded copy of the
    table. Then LightGBM's trees learn to predict well and to give matched people similar
    predictions. The trees see categorical columns and missing values as they are.

    Parameters
    ----------
    transport : {"predicted", "marginal", "joint"} or a matcher, default="predicted"
        What people are matched on. "predicted" uses their features and a prediction for every row,
        by plain trees that were grown on other rows. "marginal" uses the features alone, as in the
        paper. "joint" uses features and the target. A difference of one standard deviation of the
        prediction or the target costs 25. A matcher is any object with a ``match`` method like
        that of `OptimalTransportMatcher`.
    fairness_weight : float, default=1.0
        Weight of the penalty, the paper's lambda; 0 is plain LightGBM. The trees learn the target
        in standard deviations, so a weight means the same in every unit.
    warmup : float, default=0.5
        Share of the trees that see the loss without the penalty; they come first. The penalty then
        pulls together predictions that the trees have already learned. Without a warm-up, a large
        weight may keep the trees from learning them.

    Attributes
    ----------
    trees_ : lightgbm.Booster
        The trees. Their sum plus ``base_margin_`` is the prediction in standard deviations from
        the mean.
    base_margin_ : float
        Where boosting starts: the mean of the rows that trees are grown on, which is about 0.

    Notes
    -----
    The trees minimise :math:`E\, (Y - f(X, S))^2 / 2 + \lambda\, \Delta\mathrm{MDP}(f, T)` for the
    coupling T, where Y and f are in standard deviations of Y. The size :math:`|d|` of a difference
    is smoothed as :math:`\sqrt{d^2 + 0.05^2} - 0.05`. With more than two groups T has several
    parts, and the penalty is their weighted mean.

    Examples
    --------
    >>> from fairmatch import FTMBoostingRegressor
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> X, amount = german.X.drop(columns="credit_amount"), german.X["credit_amount"]
    >>> model = FTMBoostingRegressor(fairness_weight=2.0, n_rounds=5)
    >>> model = model.fit(X, amount, sensitive_features=german.sensitive_features)
    >>> model.predict(X[:3], sensitive_features=german.sensitive_features[:3]).shape
    (3,)
    """

    transport: str | Matcher = "predicted"
    fairness_weight: float = 1.0
    warmup: float = field(default=0.5, kw_only=True)

    _family: ClassVar[Family] = REGRESSION_TREES
    _state_file: ClassVar[str] = TreeScorer.FILE
    _matches: ClassVar[bool] = True

    def _transport(self) -> Transport:
        names = ("predicted", "marginal", "joint")
        return Transport(
            self.transport,
            Comparison.of(self),
            names,
            self._unseen_scores,
            real=True,
            sampling=Sampling.of(self),
        )

    def _unseen_scores(self, rows: TrainingRows) -> FloatArray:
        scores: FloatArray = self._learner().unseen_scores(rows, self._target.loss)
        return scores

    def _check_parameters(
        self, fairness_weights: Sequence[float], coupling: Coupling | None
    ) -> None:
        super()._check_parameters(fairness_weights, coupling)
        refuse_coupling_and_stopping(self, coupling)
