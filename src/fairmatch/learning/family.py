"""Families of learners: what each of them sees of a table, what learns, and what scores."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from fairmatch.learning.loss import Loss
from fairmatch.learning.reader import TableReader
from fairmatch.learning.rows import TrainingRows
from fairmatch.learning.saving import State
from fairmatch.learning.settings import Settings
from fairmatch.tables.arrays import FloatArray


class Scorer(Protocol):
    """A learned model that scores rows."""

    FILE: ClassVar[str]

    def scores(self, inputs: Any) -> FloatArray:
        """Return the score of every row that a reader has read."""

    def attributes(self) -> dict[str, Any]:
        """Return the learned attributes that the estimator shows."""

    def state(self) -> State:
        """Return the state to save."""

    @classmethod
    def from_state(
        cls, content: bytes, facts: dict[str, Any], reader: TableReader, model: Any
    ) -> Self:
        """Return the scorer of a saved state; raise an error if it is damaged."""


class Learner(Protocol):
    """A learner, which fits a path of scorers."""

    def fit_path(
        self,
        rows: TrainingRows,
        loss: Loss,
        compare: Callable[[TrainingRows], Any],
        weights: Sequence[float],
    ) -> Sequence[Scorer]:
        """Return one scorer per weight; ``compare`` returns the penalty on given rows."""


@dataclass(frozen=True)
class Family:
    """A family of learners.

    Attributes
    ----------
    sees : {"numbers", "codes", "table"}
        What the learner sees of a table: numbers, with categories as one-hot columns; one column
        of numbers or category codes per column of the table; or the table as it is.
    settings : type of Settings
        The parameters of the learner.
    learner : callable
        Returns the learner for settings and for a reader that has seen the training table.
    scorer : type of Scorer
        The class that restores a saved model.
    encoder : callable, optional
        Returns the encoder, for estimators without an ``encoder`` parameter.
    """

    sees: str
    settings: type[Settings]
    learner: Callable[[Any, TableReader], Any]
    scorer: type[Any]
    encoder: Callable[[], Any] | None = None
