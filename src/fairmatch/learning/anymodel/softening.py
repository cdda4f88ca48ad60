"""Match smoothing as a learner: out-of-fold scores, smoothed over a matching, learned again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fairmatch.learning.anymodel.learners import Learner
from fairmatch.learning.anymodel.outputs import Output
from fairmatch.learning.anymodel.seen import SeenRows
from fairmatch.learning.anymodel.spreading import Matched, smooth_matched
from fairmatch.learning.loss import Loss
from fairmatch.learning.rows import TrainingRows
from fairmatch.learning.settings import Settings
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.parameters import check_number

SAVE_INSTEAD = "Save model.estimator_, which is the whole model, with its own library."


@dataclass(frozen=True)
class SmoothingSettings(Settings):
    """The learner and its folds; the estimator itself declares and describes the parameters."""

    estimator: Any = None
    score_weight: float = 5.0
    cv: Any = 5

    def check(self) -> None:
        """Raise an error that names the first setting that cannot be used."""
        check_number("score_weight", self.score_weight, "[0, inf)")
        self.check_learner(Learner(self.estimator))

    def check_learner(self, learner: Learner) -> None:
        """Raise unless the learner has scores and takes weights of rows."""
        learner.check(weighted=True)


@dataclass(frozen=True)
class RealSmoothingSettings(SmoothingSettings):
    """The learner of real numbers, and its folds."""

    def check_learner(self, learner: Learner) -> None:
        """Raise unless the learner is a regressor; it need not take weights."""
        learner.check(real=True)


@dataclass(frozen=True, eq=False)
class ModelScorer:
    """A model of another library that scores rows.

    Attributes
    ----------
    model : fitted estimator
        The model that scores rows.
    output : Output
        The kind of the model's output.
    targets : array of shape (n_rows,)
        What it has learned: the smoothed score of every training row, in the model's unit.
    """

    model: Any
    output: Output
    targets: FloatArray

    FILE: ClassVar[str] = ""

    def scores(self, inputs: SeenRows) -> FloatArray:
        """Return the score of every row."""
        return self.output.standard(self.output.raw(self.model, inputs.table))

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the estimator shows."""
        return {"scorer_": self, "estimator_": self.model, "targets_": self.targets}


@dataclass(frozen=True, eq=False)
class SmoothingLearner:
    """A learner that fits one model per fairness weight.

    All models share the out-of-fold scores and the matching.

    Parameters
    ----------
    settings : SmoothingSettings
        The learner, its folds and the weight of scores in the matching.
    output : Output
        The kind of the model's output.
    """

    settings: SmoothingSettings
    output: Any

    def fit_path(
        self,
        rows: TrainingRows,
        loss: Loss,
        compare: Callable[[TrainingRows], Matched],
        weights: Sequence[float],
    ) -> list[ModelScorer]:
        """Return one scorer per weight.

        Parameters
        ----------
        rows : TrainingRows
            Rows to learn from.
        loss : Loss
            Not used, because the learner has its own.
        compare : callable
            Returns the matching of given rows. It is called only if a weight is positive. The rows
            have one more number: the out-of-fold score times the root of ``score_weight``.
        weights : sequence of float
            Fairness weights; 0 fits the learner on the labels.
        """
        learner, table = Learner(self.settings.estimator), rows.inputs.table
        self.output.check(learner, weighted=rows.weights is not None)
        labels = self.output.own(rows.labels)
        targets = np.tile(rows.labels, (len(weights), 1))
        smoothed = [place for place, weight in enumerate(weights) if weight > 0.0]
        soft = None
        if smoothed:
            folds = self.output.folds(self.settings.cv, rows)
            raw = learner.unseen_scores(table, labels, rows.weights, folds, self.output.raw)
            scores = self.output.standard(raw)
            column = np.sqrt(self.settings.score_weight) * scores
            matched = compare(replace(rows, points=rows.points.with_number(column)))
            positive = [weights[place] for place in smoothed]
            targets[smoothed] = smooth_matched(
                scores, matched, positive, rows, learner, self.output
            )
            soft = learner.soften(table, labels, rows.weights)
        return [
            ModelScorer(
                learner.fit(table, labels, rows.weights)
                if weight == 0.0 or soft is None
                else soft.fit(self.output.soft(target)),
                self.output,
                self.output.soft(target),
            )
            for weight, target in zip(weights, targets, strict=True)
        ]
