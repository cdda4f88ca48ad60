"""What other people's models put out: probabilities of two classes, or real numbers."""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fairmatch.exceptions import InputError
from fairmatch.learning.anymodel.learners import Folds, Learner, positive_scores, read_folds
from fairmatch.learning.rows import TrainingRows
from fairmatch.tables.arrays import FloatArray


class Output(Protocol):
    """How an estimator's numbers and those of a model that it wraps correspond."""

    @property
    def scale(self) -> str:
        """What the model's numbers are to an alignment: "probability" or "real"."""

    def check(self, learner: Learner, *, weighted: bool = False) -> None:
        """Raise unless a learner puts out such numbers."""

    def own(self, numbers: FloatArray) -> NDArray[Any]:
        """Return what a model is fitted on, of the numbers that rows are labelled by."""

    def soft(self, targets: FloatArray) -> FloatArray:
        """Return what a model is fitted on, of smoothed numbers."""

    def raw(self, model: Any, table: Any) -> FloatArray:
        """Return a model's numbers, in their own unit."""

    def standard(self, raw: FloatArray) -> FloatArray:
        """Return a model's numbers as those that rows are labelled by."""

    def folds(self, cv: Any, rows: TrainingRows) -> Folds:
        """Return the folds of rows."""


@dataclass(frozen=True, eq=False)
class ClassOutput:
    """Probabilities of two classes.

    Parameters
    ----------
    classes : array of shape (2,)
        The labels; the second is the positive one.
    """

    classes: NDArray[Any]

    scale: ClassVar[str] = "probability"

    def check(self, learner: Learner, *, weighted: bool = False) -> None:
        """Raise unless a learner scores people."""
        learner.check(weighted=weighted)

    def own(self, numbers: FloatArray) -> NDArray[Any]:
        """Return the label of every row."""
        labels: NDArray[Any] = self.classes[(numbers > 0.0).astype(np.intp)]
        return labels

    def soft(self, targets: FloatArray) -> FloatArray:
        """Return probabilities as they are."""
        return targets

    def raw(self, model: Any, table: Any) -> FloatArray:
        """Return the probability of the positive class."""
        return positive_scores(model, table, self.classes)

    def standard(self, raw: FloatArray) -> FloatArray:
        """Return probabilities as they are."""
        return raw

    def folds(self, cv: Any, rows: TrainingRows) -> Folds:
        """Return folds by label and group."""
        strata = rows.groups.n_groups * rows.positive + rows.groups.codes
        return read_folds(cv, rows.inputs.table, self.own(rows.labels), strata)


@dataclass(frozen=True)
class RealOutput:
    """Real numbers; rows are labelled by their distance from the mean, in standard deviations.

    Parameters
    ----------
    mean, deviation : float
        Of the target.
    """

    mean: float
    deviation: float

    scale: ClassVar[str] = "real"

    def check(self, learner: Learner, *, weighted: bool = False) -> None:
        """Raise unless a learner predicts numbers."""
        learner.check(weighted=weighted, real=True)

    def own(self, numbers: FloatArray) -> NDArray[Any]:
        """Return the target of every row."""
        return np.asarray(self.mean + self.deviation * numbers)

    def soft(self, targets: FloatArray) -> FloatArray:
        """Return targets in the unit of the model."""
        return np.asarray(self.mean + self.deviation * targets)

    def raw(self, model: Any, table: Any) -> FloatArray:
        """Return the prediction of every row."""
        found = np.asarray(model.predict(table), dtype=np.float64)
        if found.ndim != 1 or not np.isfinite(found).all():
            raise InputError(
                f"{type(model).__name__} predicts numbers of shape {found.shape}, or some that "
                "are not finite. A regressor of one target is needed."
            )
        return found

    def standard(self, raw: FloatArray) -> FloatArray:
        """Return predictions as distances from the mean, in standard deviations."""
        return np.asarray((raw - self.mean) / self.deviation)

    def folds(self, cv: Any, rows: TrainingRows) -> Folds:
        """Return folds by group."""
        alike = np.zeros(len(rows))
        return read_folds(cv, rows.inputs.table, alike, rows.groups.codes)
