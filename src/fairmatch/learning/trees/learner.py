"""Boosted trees as a learner: the settings, the training of a path, and the scores."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import lightgbm as lgb
import numpy as np

from fairmatch.exceptions import CouplingError, ModelFileError
from fairmatch.learning.family import Family
from fairmatch.learning.loss import LOGISTIC, Loss
from fairmatch.learning.reader import TableReader
from fairmatch.learning.rows import TrainingRows, seed_sequence, stratified_split
from fairmatch.learning.saving import State
from fairmatch.learning.settings import Settings
from fairmatch.learning.trees.growing import TreeTrainer, unseen_scores
from fairmatch.learning.trees.objective import BoostingObjective
from fairmatch.learning.trees.text import FILE, checked_trees
from fairmatch.matching.parts import rows_with_mass
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.encoder import TableEncoder
from fairmatch.tables.parameters import check_count, check_number, check_verbose


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
