"""Match smoothing as a learner: unseen scores, smoothed over a matching, learned again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fairmatch.learning.anymodel.learners import Learner, positive_scores, read_folds
from fairmatch.learning.anymodel.seen import SeenRows
from fairmatch.learning.anymodel.smoothing import smooth_scores
from fairmatch.learning.loss import Loss
from fairmatch.learning.rows import TrainingRows
from fairmatch.learning.settings import Settings
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.parameters import check_number


@dataclass(frozen=True)
class SmoothingSettings(Settings):
    """What learns, and what people are matched on; the estimator declares these itself."""

    estimator: Any = None
    score_weight: float = 5.0
    cv: Any = 5

    def check(self) -> None:
        """Raise an error that names a setting that cannot be used."""
        check_number("score_weight", self.score_weight, "[0, inf)")
        Learner(self.estimator).check(weighted=True)


@dataclass(frozen=True, eq=False)
class ModelScorer:
    """A model of somebody else's that scores what a reader has read.

    Attributes
    ----------
    model : fitted estimator
        What scores.
    classes : array of shape (2,)
        The labels; the second is the positive one.
    targets : array of shape (n_rows,)
        What it has learned: the smoothed score of every training row.
    """

    model: Any
    classes: NDArray[Any]
    targets: FloatArray

    FILE: ClassVar[str] = ""

    def scores(self, inputs: SeenRows) -> FloatArray:
        """Return the score of every row."""
        return positive_scores(self.model, inputs.table, self.classes)

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
    classes : array of shape (2,)
        The labels; the second is the positive one.
    """

    settings: SmoothingSettings
    classes: Any

    def fit_path(
        self,
        rows: TrainingRows,
        loss: Loss,
        compare: Callable[[TrainingRows], Any],
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
            whose last column is the unseen score, weighed by ``score_weight``.
        weights : sequence of float
            Fairness weights; 0 fits the learner on the labels.
        """
        learner = Learner(self.settings.estimator)
        table, labels = rows.inputs.table, self.classes[rows.positive.astype(np.intp)]
        targets = np.tile(rows.labels, (len(weights), 1))
        smoothed = [place for place, weight in enumerate(weights) if weight > 0.0]
        if smoothed:
            strata = rows.groups.n_groups * rows.positive + rows.groups.codes
            folds = read_folds(self.settings.cv, table, labels, strata)
            scores = learner.unseen_scores(table, labels, rows.weights, folds)
            column = np.sqrt(self.settings.score_weight) * scores
            coupling = compare(replace(rows, points=rows.points.with_number(column)))
            targets[smoothed] = smooth_scores(
                scores, coupling, [weights[k] for k in smoothed], sample_weight=rows.weights
            )
        soft = learner.soften(table, labels, rows.weights) if smoothed else None
        return [
            ModelScorer(
                learner.fit(table, labels, rows.weights)
                if weight == 0.0 or soft is None
                else soft.fit(target),
                self.classes,
                target,
            )
            for weight, target in zip(weights, targets, strict=True)
        ]
