"""Growing trees with LightGBM; all objectives share one binning of the table."""

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
