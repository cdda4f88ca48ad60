"""Growing trees with LightGBM: the table is binned once, for every objective."""

from itertools import count
from typing import Any

import lightgbm as lgb
import numpy as np

from fairmatch.inputs import FloatArray
from fairmatch.objectives import BoostingObjective, Derivatives
from fairmatch.progress import TrainingProgress


class TreeTrainer:
    """Trees for one table, with or without rows held out to say when to stop.

    Parameters
    ----------
    parameters : dict
        LightGBM's.
    inputs, held_out : array of shape (n_rows, n_columns)
        What the trees see; with rows in ``held_out`` training may stop early.
    categorical : list of int
        Positions of the categorical columns.
    base_margin : float
        Where boosting starts.
    n_rounds, patience : int
        Greatest number of trees, and how many may follow the best one on the held-out rows.
    verbose : bool
        Whether to show a progress bar.
    """

    def __init__(
        self,
        parameters: dict[str, Any],
        inputs: FloatArray,
        held_out: FloatArray | None = None,
        *,
        categorical: list[int],
        base_margin: float,
        n_rounds: int,
        patience: int | None,
        verbose: bool,
    ) -> None:
        self.parameters, self.n_rounds, self.patience = parameters, n_rounds, patience
        self.verbose = verbose
        self.data = lgb.Dataset(
            inputs,
            np.zeros(len(inputs)),  # the objective knows the labels
            init_score=np.full(len(inputs), base_margin),
            categorical_feature=categorical,
            params=parameters,
        )
        self.held_out = None
        if held_out is not None:
            margins = np.full(len(held_out), base_margin)
            self.held_out = self.data.create_valid(
                held_out, np.zeros(len(held_out)), init_score=margins
            )

    def train(
        self, objective: BoostingObjective, held_out: BoostingObjective | None = None
    ) -> tuple[lgb.Booster, FloatArray]:
        """Give the trees, and the objective on the held-out rows after each round."""
        rounds, weight, values = count(), np.array([objective.fairness_weight]), list[float]()

        def derivatives(margins: FloatArray, _: lgb.Dataset) -> Derivatives:
            if self.verbose:
                progress.update(next(rounds), objective.values(margins)[:, None])
            return objective.derivatives(margins)

        def measure(margins: FloatArray, _: lgb.Dataset) -> tuple[str, float, bool]:
            assert held_out is not None
            values.append(float(held_out.values(margins).sum()))
            return "objective", values[-1], False

        stopping: dict[str, Any] = {}
        if self.held_out is not None:
            assert self.patience is not None
            stop = lgb.early_stopping(self.patience, verbose=False)
            stopping = {"valid_sets": [self.held_out], "feval": measure, "callbacks": [stop]}
        parameters = {**self.parameters, "objective": derivatives}
        with TrainingProgress(self.n_rounds, weight, shown=self.verbose) as progress:
            trees = lgb.train(parameters, self.data, self.n_rounds, **stopping)
        best = int(np.argmin(values)) + 1 if values else -1
        # What predicts is what would be saved; the training rows are let go.
        text = trees.model_to_string(num_iteration=best)
        return lgb.Booster(model_str=text), np.array(values)
