"""The outputs of other libraries' models: probabilities of two classes, or real numbers."""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fairmatch.exceptions import InputError
from fairmatch.learning.anymodel.learners import Folds, Learner, positive_scores, read_folds
from fairmatch.learning.rows import TrainingRows
from fairmatch.tables.arrays import FloatArray


class Output(Protocol):
    """The conversion between a wrapped model's numbers and those of fairmatch.

    fairmatch labels rows with 0 and 1, or with standard deviations from the mean. The wrapped model
    sees classes, or numbers in their own unit.
    """

    @property
    def scale(self) -> str:
        """The scale of the model's output in an alignment: "probability" or "real"."""

    def check(self, learner: Learner, *, weighted: bool = False) -> None:
        """Raise unless a learner has such an output."""

    def own(self, numbers: FloatArray) -> NDArray[Any]:
        """Return the labels for the model's fit, from fairmatch's numbers."""

    def soft(self, targets: FloatArray) -> FloatArray:
        """Return the soft targets for the model's fit, from fairmatch's numbers."""

    def raw(self, model: Any, table: Any) -> FloatArray:
        """Return a model's output for a table, in its own unit."""

    def standard(self, raw: FloatArray) -> FloatArray:
        """Return a model's output as fairmatch's numbers."""

    def folds(self, cv: Any, rows: TrainingRows) -> Folds:
        """Return the folds of rows."""


@dataclass(frozen=True, eq=False)
class ClassOutput:
    """Probabilities of two classes.

    Parameters
    ----------
    classes : array of shape (2,)
        The two labels; the second is the positive one.
    """

    classes: NDArray[Any]

    scale: ClassVar[str] = "probability"

    def check(self, learner: Learner, *, weighted: bool = False) -> None:
        """Raise unless a learner can score people, with weights if asked."""
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
        """Return folds that are stratified by label and group."""
        strata = rows.groups.n_groups * rows.positive + rows.groups.codes
        return read_folds(cv, rows.inputs.table, self.own(rows.labels), strata)


@dataclass(frozen=True)
class RealOutput:
    """Real numbers; fairmatch labels rows with standard deviations from the mean.

    Parameters
    ----------
    mean, deviation : float
        Mean and standard deviation of the target.
    """

    mean: float
    deviation: float

    scale: ClassVar[str] = "real"

    def check(self, learner: Learner, *, weighted: bool = False) -> None:
        """Raise unless a learner is a regressor, with weights if asked."""
        learner.check(weighted=weighted, real=True)

    def own(self, numbers: FloatArray) -> NDArray[Any]:
        """Return the target of every row in its own unit."""
        return np.asarray(self.mean + self.deviation * numbers)

    def soft(self, targets: FloatArray) -> FloatArray:
        """Return soft targets in the unit of the target."""
        return np.asarray(self.mean + self.deviation * targets)

    def raw(self, model: Any, table: Any) -> FloatArray:
        """Return the prediction of every row."""
        found = np.asarray(model.predict(table), dtype=np.float64)
        if found.ndim != 1 or not np.isfinite(found).all():
            raise InputError(
                f"{type(model).__name__} predicts numbers of shape {found.shape}, or some that are "
                "not finite. One finite number per row is needed. Use a regressor of one target."
            )
        return found

    def standard(self, raw: FloatArray) -> FloatArray:
        """Return predictions in standard deviations from the mean."""
        return np.asarray((raw - self.mean) / self.deviation)

    def folds(self, cv: Any, rows: TrainingRows) -> Folds:
        """Return folds that are stratified by group."""
        alike = np.zeros(len(rows))
        return read_folds(cv, rows.inputs.table, alike, rows.groups.codes)
