"""What a score is: a probability or a number, with its loss, its decision and its unit."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from fairmatch.exceptions import InputError
from fairmatch.people.checks import BoolArray, FloatArray, check_length, read_numbers, read_scores

Derivatives = tuple[FloatArray, FloatArray]


class Loss(Protocol):
    """A loss of margins, with the link that turns margins into predictions.

    A margin is the number that a learner adds up, such as log-odds. Links are canonical: the slope
    of the link is the second derivative of the loss.
    """

    @property
    def name(self) -> str:
        """Name of the loss."""

    def link(self, margins: FloatArray) -> FloatArray:
        """Return the predictions that belong to margins."""

    def start(self, labels: FloatArray, mass: FloatArray) -> float:
        """Return the margin of the best constant prediction."""

    def values(self, labels: FloatArray, margins: FloatArray) -> FloatArray:
        """Return the loss of every row."""

    def derivatives(self, labels: FloatArray, margins: FloatArray) -> Derivatives:
        """Return the first and second derivatives of every row's loss by its margin."""


@dataclass(frozen=True)
class LogisticLoss:
    r"""The cross-entropy of labels 0 and 1; the margin is the log-odds.

    Notes
    -----
    With :math:`\sigma(z) = 1 / (1 + e^{-z})` the link is :math:`p = \sigma(z)`. The loss is
    :math:`-y \log p - (1 - y) \log(1 - p)`. Its derivatives are :math:`p - y` and
    :math:`p (1 - p)`.

    Examples
    --------
    >>> import numpy as np
    >>> LogisticLoss().values(np.array([0.0, 1.0]), np.array([0.0, 0.0])).round(4).tolist()
    [0.6931, 0.6931]
    """

    name: str = "logistic"

    def link(self, margins: FloatArray) -> FloatArray:
        """Return the probabilities of the positive class."""
        return np.asarray(expit(margins))

    def start(self, labels: FloatArray, mass: FloatArray) -> float:
        """Return the log-odds of the share of positive rows."""
        share = np.clip(np.average(labels, weights=mass), 1e-15, 1.0 - 1e-15)
        return float(np.log(share / (1.0 - share)))

    def values(self, labels: FloatArray, margins: FloatArray) -> FloatArray:
        """Return the cross-entropy of every row."""
        return np.asarray(np.logaddexp(0.0, (1.0 - 2.0 * labels) * margins))

    def derivatives(self, labels: FloatArray, margins: FloatArray) -> Derivatives:
        """Return the probability minus the label, and the variance of the label."""
        # This is LightGBM's own formula. With it, weight 0 is LightGBM's model to the last bit.
        signs = 2.0 * labels - 1.0
        response = -signs / (1.0 + np.exp(signs * margins))
        return response, np.abs(response) * (1.0 - np.abs(response))


@dataclass(frozen=True)
class SquaredLoss:
    r"""Half the squared error; the margin is the prediction.

    Notes
    -----
    The loss is :math:`(z - y)^2 / 2`. Its derivatives are :math:`z - y` and 1.

    Examples
    --------
    >>> import numpy as np
    >>> SquaredLoss().values(np.array([1.0]), np.array([3.0])).tolist()
    [2.0]
    """

    name: str = "squared"

    def link(self, margins: FloatArray) -> FloatArray:
        """Return the margins as they are."""
        return margins

    def start(self, labels: FloatArray, mass: FloatArray) -> float:
        """Return the mean label."""
        return float(np.average(labels, weights=mass))

    def values(self, labels: FloatArray, margins: FloatArray) -> FloatArray:
        """Return half the squared error of every row."""
        return np.asarray((margins - labels) ** 2 / 2.0)

    def derivatives(self, labels: FloatArray, margins: FloatArray) -> Derivatives:
        """Return the error of every row, and ones."""
        return margins - labels, np.ones_like(margins)


LOGISTIC, SQUARED = LogisticLoss(), SquaredLoss()


@dataclass(frozen=True)
class Outcome:
    """What a score is, and what follows from it.

    Attributes
    ----------
    name : str
        "probability" or "number".
    loss : Loss
        The loss that compares a score with a label, with its link.
    decides : bool
        Whether a score decides: a probability at or above a threshold is a selection, and a
        number selects nobody.
    has_unit : bool
        Whether scores are in units of the target, so that gaps have a unit too.

    Examples
    --------
    >>> PROBABILITY.decide(PROBABILITY.read([0.2, 0.7]), 0.5).tolist()
    [False, True]
    >>> NUMBER.decides, NUMBER.loss.name
    (False, 'squared')
    """

    name: str
    loss: Loss
    decides: bool
    has_unit: bool

    def read(
        self, y_score: ArrayLike, *, name: str = "y_score", n_rows: int | None = None
    ) -> FloatArray:
        """Return scores as float64. Raise unless they are scores of this kind."""
        if self.decides and not self.has_unit:
            return read_scores(y_score, name=name, n_rows=n_rows)
        numbers = read_numbers(y_score, name)
        check_length(numbers, n_rows, name)
        bad = ~np.isfinite(numbers)
        if bad.any():
            raise InputError(
                f"{name} has {int(bad.sum())} entries that are NaN or infinite (the first in row "
                f"{int(np.argmax(bad))}, counted from 0). Every row needs a finite number: correct "
                "these rows, or leave them out."
            )
        return numbers

    def decide(self, scores: FloatArray, threshold: float) -> BoolArray:
        """Return who is selected: everybody with a score at or above the threshold."""
        return np.asarray(scores >= threshold)


PROBABILITY = Outcome("probability", LOGISTIC, decides=True, has_unit=False)
NUMBER = Outcome("number", SQUARED, decides=False, has_unit=True)
MARK = Outcome("mark", LOGISTIC, decides=True, has_unit=True)
"""Marks or points, which decide and have a range of their own. Only audits read them."""
OUTCOMES: dict[str, Outcome] = {outcome.name: outcome for outcome in (PROBABILITY, NUMBER)}


def read_outcome(value: Any, name: str = "outcome") -> Outcome:
    """Return the outcome with this name. Raise an error that lists the names if there is none."""
    if isinstance(value, Outcome):
        return value
    if isinstance(value, str) and value in OUTCOMES:
        return OUTCOMES[value]
    raise InputError(
        f"{name} must be one of {', '.join(map(repr, OUTCOMES))}, got {value!r}.", parameter=name
    )
