"""Growing trees with LightGBM: the table is binned once, for every objective."""

from itertools import count
from typing import Any

import lightgbm as lgb
import numpy as np

from fairmatch.learning.loss import LOGISTIC, Derivatives, Loss
from fairmatch.learning.progress import TrainingProgress
from fairmatch.learning.rows import TrainingRows
from fairmatch.learning.trees.objective import BoostingObjective
from fairmatch.tables.arrays import FloatArray

_FOLDS = 5


class TreeTrainer:
    """Trees for one table, with or without rows held out to say when to stop.

    Parameters
    ----------
    parameters : dict
        LightGBM's.
    rows, held_out : TrainingRows
        Rows to grow trees on; with rows in ``held_out`` training may stop early.
    categorical : list of int
        Positions of the categorical columns.
    n_rounds, warmup : int
        Greatest number of trees, and how many of them see the loss alone.
    patience : int, optional
        How many trees may follow the best one on the held-out rows.
    verbose : int, optional
        Whether to show a progress bar; see `TrainingProgress`.
    loss : Loss
        What compares margins with labels.

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
        """Return the trees, and the objective on the held-out rows after each round."""
        warmup = 0 if objective.penalty is None else self.warmup
        rounds, watched = count(), list[float]()

        def derivatives(margins: FloatArray, _: lgb.Dataset) -> Derivatives:
            n_grown = next(rounds)
            progress.update(n_grown, lambda: objective.values(margins)[:, None])
            return objective.derivatives(margins, penalized=n_grown >= warmup)

        def watch(margins: FloatArray, _: lgb.Dataset) -> tuple[str, float, bool]:
            assert held_out is not None
            # What was grown on the loss alone is not what is asked for, however good it looks.
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
        with TrainingProgress(self.n_rounds, weight, verbose=self.verbose) as progress:
            trees = lgb.train(parameters, self.data, self.n_rounds, **watching)
        best = int(np.argmin(watched)) + 1 if watched else -1
        # What predicts is what would be saved; the training rows are let go.
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
    """Return a score of every row, by plain trees that were grown on the other folds."""
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
