"""Families of learners: what a family sees of a table, what learns, and what scores."""

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
    """What a learner has learned."""

    FILE: ClassVar[str]

    def scores(self, inputs: Any) -> FloatArray:
        """Return the score of every row of what a reader has read."""

    def attributes(self) -> dict[str, Any]:
        """Return the learned facts that an estimator shows."""

    def state(self) -> State:
        """Return what was learned, as it is saved."""

    @classmethod
    def from_state(
        cls, content: bytes, facts: dict[str, Any], reader: TableReader, model: Any
    ) -> Self:
        """Return the scorer that was saved, or raise where it is damaged."""


class Learner(Protocol):
    """What learns a path of scorers."""

    def fit_path(
        self,
        rows: TrainingRows,
        loss: Loss,
        compare: Callable[[TrainingRows], Any],
        weights: Sequence[float],
    ) -> Sequence[Scorer]:
        """Return one scorer per weight of the penalty that ``compare`` makes of rows."""


@dataclass(frozen=True)
class Family:
    """A family of learners.

    Attributes
    ----------
    sees : {"numbers", "codes"}
        What the learner sees of a table; see `TableReader`.
    settings : type of Settings
        Its parameters.
    learner : callable
        Makes the learner of the settings and a reader that has seen the training table.
    scorer : type of Scorer
        What a saved model is made again with.
    encoder : callable, optional
        Makes the encoder, where it is no parameter of the estimators.
    """

    sees: str
    settings: type[Settings]
    learner: Callable[[Any, TableReader], Any]
    scorer: type[Any]
    encoder: Callable[[], Any] | None = None
