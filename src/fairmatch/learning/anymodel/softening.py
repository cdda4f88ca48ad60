"""Match smoothing as a learner: unseen scores, smoothed over a matching, learned again."""

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

SAVE_INSTEAD = "Save model.estimator_, which is all of the model, by the means of its own library."


@dataclass(frozen=True)
class SmoothingSettings(Settings):
    """What learns, and what people are matched on; the estimator declares these itself."""

    estimator: Any = None
    score_weight: float = 5.0
    cv: Any = 5

    def check(self) -> None:
        """Raise an error that names a setting that cannot be used."""
        check_number("score_weight", self.score_weight, "[0, inf)")
        self.check_learner(Learner(self.estimator))

    def check_learner(self, learner: Learner) -> None:
        """Raise unless the learner can learn soft targets, with weights."""
        learner.check(weighted=True)


@dataclass(frozen=True)
class RealSmoothingSettings(SmoothingSettings):
    """What learns real numbers, and what people are matched on."""

    def check_learner(self, learner: Learner) -> None:
        """Raise unless the learner is a regressor; one without weights will do."""
        learner.check(real=True)


@dataclass(frozen=True, eq=False)
class ModelScorer:
    """A model of somebody else's that scores what a reader has read.

    Attributes
    ----------
    model : fitted estimator
        What scores.
    output : Output
        What it puts out.
    targets : array of shape (n_rows,)
        What it has learned: the smoothed score of every training row, in its own unit.
    """

    model: Any
    output: Output
    targets: FloatArray

    FILE: ClassVar[str] = ""

    def scores(self, inputs: SeenRows) -> FloatArray:
        """Return the score of every row."""
        return self.output.standard(self.output.raw(self.model, inputs.table))

    def attributes(self) -> dict[str, Any]:
        """Return what an estimator shows of it."""
        return {"scorer_": self, "estimator_": self.model, "targets_": self.targets}


@dataclass(frozen=True, eq=False)
class SmoothingLearner:
    """Fits one model per fairness weight; all of them share the unseen scores and the matching.

    Parameters
    ----------
    settings : SmoothingSettings
        What learns.
    output : Output
        What it puts out.
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
            Not used: the learner has its own.
        compare : callable
            Makes the coupling of rows. It is called only where a weight is positive, with rows
            whose last number is the unseen score, weighed by ``score_weight``.
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
