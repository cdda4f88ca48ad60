"""A learner that adjusts a model's scores: out-of-fold scores, then curves or thresholds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from fairmatch.exceptions import InputError
from fairmatch.learning.anymodel.adjustment import DECISIONS, ScoreAdjustment
from fairmatch.learning.anymodel.fitting import adjust_path
from fairmatch.learning.anymodel.learners import Learner, check_columns
from fairmatch.learning.anymodel.outputs import Output
from fairmatch.learning.anymodel.seen import SeenRows
from fairmatch.learning.groupsizes import compared_groups
from fairmatch.learning.loss import Loss
from fairmatch.learning.rows import TrainingRows
from fairmatch.learning.settings import Settings
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.criterion import read_criterion
from fairmatch.tables.parameters import check_flag

SAVE_INSTEAD = (
    "Save the adjustment with model.adjustment_.save('file.json'), save model.estimator_ with its "
    "own library, and apply the adjustment to its scores: "
    "ScoreAdjustment.load('file.json').apply(scores, groups)."
)


@dataclass(frozen=True)
class AlignmentSettings(Settings):
    """What is adjusted and how; the estimator itself declares and describes the parameters."""

    estimator: Any = None
    criterion: str = "demographic_parity"
    decisions: str = "align"
    prefit: bool = False
    cv: Any = 5

    def check(self) -> None:
        """Raise an error that names the first setting that cannot be used."""
        criterion = read_criterion(self.criterion)
        if self.decisions not in DECISIONS:
            raise InputError(
                f"decisions must be 'align' or 'threshold', got {self.decisions!r}. Pass one of "
                "the two."
            )
        if self.decisions == "align" and len(criterion.labels) > 1:
            raise InputError(
                f"criterion={self.criterion!r} asks for equal scores within both classes, and one "
                "increasing curve per group can equalise them in one class only. Use "
                "decisions='threshold', whose thresholds come near it, or "
                "criterion='equal_opportunity'."
            )
        Learner(self.estimator).check(real=self.real)
        check_flag("prefit", self.prefit)
        if self.prefit:
            check_prefit(self.estimator)

    @property
    def real(self) -> bool:
        """Whether the scores are real numbers instead of probabilities."""
        return False


@dataclass(frozen=True)
class RealAlignmentSettings(AlignmentSettings):
    """What is adjusted and how, for predictions that are real numbers."""

    @property
    def real(self) -> bool:
        """Whether the scores are real numbers instead of probabilities."""
        return True


def check_prefit(model: Any) -> None:
    """Raise unless a model has been fitted."""
    try:
        check_is_fitted(model)
    except (NotFittedError, TypeError):
        if getattr(model, "classes_", None) is not None:
            return  # a model of another library that has classes, so it is fitted
        raise InputError(
            f"prefit=True was given, but the estimator, {type(model).__name__}, is not fitted. Fit "
            "it first, or use prefit=False, which fits it."
        ) from None


@dataclass(frozen=True, eq=False)
class AlignmentScorer:
    """A model with an adjustment of its scores by group.

    Attributes
    ----------
    model : fitted estimator
        The model that scores rows.
    output : Output
        The kind of the model's output.
    adjustment : ScoreAdjustment
        The adjustment of its scores.
    places : array of shape (n_groups,)
        Position of every group in the adjustment; -1 for groups that are not compared.
    """

    model: Any
    output: Output
    adjustment: ScoreAdjustment
    places: NDArray[np.intp]

    FILE: ClassVar[str] = ""

    def scores(self, inputs: SeenRows) -> FloatArray:
        """Return the adjusted score of every row."""
        raw = inputs.scored(self.model, self.output.raw)
        assert inputs.codes is not None, "an adjustment needs the groups"
        return self.output.standard(self.adjustment.move(raw, self.places[inputs.codes]))

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the estimator shows."""
        return {"scorer_": self, "estimator_": self.model, "adjustment_": self.adjustment}


@dataclass(frozen=True, eq=False)
class AlignmentLearner:
    """A learner that fits a model once, and one adjustment of its scores per strength.

    Parameters
    ----------
    settings : AlignmentSettings
        What is adjusted, and how.
    output : Output
        The kind of the model's output.
    pooled : tuple
        Labels of the groups that are pooled as "other".
    """

    settings: AlignmentSettings
    output: Any
    pooled: tuple[Any, ...] = ()

    def fit_path(
        self,
        rows: TrainingRows,
        loss: Loss,
        compare: Callable[[TrainingRows], Any],
        weights: Sequence[float],
    ) -> list[AlignmentScorer]:
        """Return one scorer per strength; ``loss`` and ``compare`` are not used."""
        model, scores = self._scored(rows)
        compared, groups, places = compared_groups(rows.groups, rows.ignored)
        adjustments = adjust_path(
            scores[compared],
            groups,
            rows.positive[compared],
            None if rows.weights is None else rows.weights[compared],
            strengths=weights,
            criterion=self.settings.criterion,
            decisions=self.settings.decisions,
            scale=self.output.scale,
        )
        ignored = tuple(rows.groups.labels[code] for code in rows.ignored)
        return [
            AlignmentScorer(
                model, self.output, replace(one, pooled=self.pooled, ignored=ignored), places
            )
            for one in adjustments
        ]

    def _scored(self, rows: TrainingRows) -> tuple[Any, FloatArray]:
        """Return the model for new rows, and the scores that the adjustment is fitted on."""
        table, learner = rows.inputs.table, Learner(self.settings.estimator)
        if self.settings.prefit:
            check_columns(learner.estimator, table)
            return learner.estimator, self.output.raw(learner.estimator, table)
        self.output.check(learner, weighted=rows.weights is not None)
        labels, folds = self.output.own(rows.labels), self.output.folds(self.settings.cv, rows)
        scores = learner.unseen_scores(table, labels, rows.weights, folds, self.output.raw)
        return learner.fit(table, labels, rows.weights), scores
