"""Rows of unequal weight: their shares and means, and their effective number of people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairmatch.exceptions import InputError
from fairmatch.people.checks import BoolArray, FloatArray, check_choice, read_weights

KINDS = ("survey", "counts")
"""The kinds of weights: survey weights, or the number of people that a row stands for."""


@dataclass(frozen=True)
class Moments:
    """A mean, and how well it is known."""

    mean: float  #: The weighted mean.
    variance: float  #: Variance of one value. The variance of the mean is ``variance / size``.
    size: float  #: The number of people behind the mean.

    def error(self, width: float = 1.0) -> float:
        """Return the squared standard error of the mean of values in a range of this width.

        If a few people have equal values, others may still have another value. So the variance is
        at least about one over the size, as if there were one more success and one more failure.
        """
        floor = min(1.0 / self.size, 0.25) * width**2
        return max(self.variance, floor) / self.size


@dataclass(frozen=True)
class Rate:
    """A share of people, and the number of people behind it.

    Examples
    --------
    >>> rate = Rate(0.25, 8.4, is_whole=False)
    >>> rate.hits, rate.people
    (2.0, 8)
    """

    share: float  #: The weighted share.
    size: float  #: The number of people behind it: an effective number with survey weights.
    is_whole: bool = True  #: Whether people are counted, so that hits are a whole number.

    @property
    def people(self) -> int:
        """The size as a whole number, at least one."""
        return max(round(self.size), 1)

    @property
    def hits(self) -> float:
        """How many of these people the share amounts to."""
        found = self.share * self.people
        return float(round(found)) if self.is_whole else found


@dataclass(frozen=True, eq=False)
class Weights:
    r"""The weight of every row, and the kind of weight.

    Notes
    -----
    Counts :math:`c` stand for :math:`\sum c` people. Survey weights :math:`w` are worth at most as
    many people as there are rows: Kish's effective size is :math:`(\sum w)^2 / \sum w^2`. The
    variance of a weighted mean :math:`m` comes from linearisation,
    :math:`\sum w^2 (v - m)^2 / (\sum w)^2`. It is never smaller than Kish's size implies. If people
    have several rows, both sums of squares are of the sums over the rows of a person.

    Examples
    --------
    >>> import numpy as np
    >>> from fairmatch.people.weights import Weights
    >>> weights = Weights(3, np.array([1.0, 1.0, 2.0]))
    >>> weights.total, round(weights.size, 2)
    (4.0, 2.67)
    """

    n_rows: int  #: Number of rows.
    #: Weight of every row. None means that every row is one person.
    values: FloatArray | None = None
    is_counts: bool = False  #: Whether a weight is a number of people rather than a survey weight.
    #: The person of every row, where a person may have several rows. None means one row each.
    persons: NDArray[np.intp] | None = None

    def take(self, rows: NDArray[Any]) -> Weights:
        """Return the weights of some rows, chosen by position or by a mask."""
        if self.values is None:
            return Weights(int(rows.sum()) if rows.dtype == bool else len(rows))
        values = self.values[rows]
        persons = None if self.persons is None else self.persons[rows]
        return Weights(len(values), values, self.is_counts, persons)

    def _squared(self, values: FloatArray) -> float:
        """Return the sum of squares over people."""
        if self.persons is None or not len(values):
            return float(values @ values)
        sums = np.bincount(self.persons - self.persons.min(), values)
        return float(sums @ sums)

    @property
    def is_survey(self) -> bool:
        """Whether the weights are those of a survey."""
        return self.values is not None and not self.is_counts

    @property
    def is_even(self) -> bool:
        """Whether every row has the same weight."""
        return self.values is None or not len(self.values) or float(np.ptp(self.values)) == 0.0

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.n_rows) if self.values is None else float(self.values.sum())

    @property
    def people(self) -> int:
        """How many people the rows hold."""
        return round(self.total) if self.is_counts else self.n_rows

    @property
    def size(self) -> float:
        """The effective size: how many people of equal weight the rows are worth."""
        if not self.is_survey or self.n_rows == 0:
            return self.total
        assert self.values is not None
        return self.total**2 / self._squared(self.values)

    @property
    def worth(self) -> int:
        """The effective size as a whole number of people, at least one."""
        return max(round(self.size), 1)

    @property
    def evidence(self) -> FloatArray | None:
        """Weights that sum to the effective size; None where every row is one person."""
        if self.values is None or self.is_counts or self.n_rows == 0:
            return self.values
        return self.values * (self.size / self.total)

    def rate(self, hits: BoolArray) -> Rate:
        """Return the share of hits, and the number of people behind it."""
        if self.values is None:
            return Rate(float(hits.sum() / len(hits)), len(hits))
        share = float(self.values @ hits / self.total)
        if self.is_counts:
            return Rate(share, self.size)
        size = self.size
        spread = self._squared(self.values * (hits - share)) / self.total**2
        if spread > 0.0 and 0.0 < share < 1.0:
            size = min(size, share * (1.0 - share) / spread)
        return Rate(share, size, is_whole=False)

    def moments(self, values: FloatArray) -> Moments:
        """Return the mean of some values, and how well it is known."""
        if self.values is None:
            variance = float(values.var(ddof=1)) if len(values) > 1 else 0.0
            return Moments(float(values.mean()), variance, len(values))
        total, size = self.total, self.size
        mean = float(self.values @ values / total)
        spread = float(self.values @ (values - mean) ** 2) / total
        if not self.is_counts:
            linear = self._squared(self.values * (values - mean)) / total**2
            spread = max(spread, linear * size)
        return Moments(mean, spread * size / max(size - 1.0, 1.0), size)


def read_row_weights(sample_weight: ArrayLike | None, kind: str, n_rows: int) -> Weights:
    """Read and check the weights that a caller passes, of the kind "survey" or "counts"."""
    check_choice("weight_kind", kind, KINDS)
    values = read_weights(sample_weight, n_rows=n_rows)
    if values is None:
        return Weights(n_rows)
    if not values.any():
        raise InputError(
            "sample_weight is 0 in every row, so nobody is left. Pass a positive weight for "
            "some people."
        )
    if kind == "counts" and (broken := values != np.rint(values)).any():
        row = int(np.argmax(broken))
        raise InputError(
            f"weight_kind='counts' needs whole numbers of people, but row {row}, counted from 0, "
            f"has {values[row]:g}. Pass weight_kind='survey' for the weights of a survey."
        )
    if kind == "counts" and values.sum() > 2**53:
        raise InputError(
            f"weight_kind='counts' was given, and sample_weight adds up to {values.sum():.3g} "
            "people. At most 2**53 can be counted. Divide the counts, or pass "
            "weight_kind='survey'."
        )
    return Weights(n_rows, values, kind == "counts")


def draw_people(
    counts: FloatArray, n_people: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Draw people without replacement from rows that stand for many; return how many of each."""
    whole = counts.astype(np.int64)
    if (total := int(whole.sum())) < 1_000_000_000:  # what NumPy can draw from
        drawn: NDArray[np.int64] = generator.multivariate_hypergeometric(
            whole, min(n_people, total), method="marginals"
        )
        return drawn
    # Among so many people hardly anybody is drawn twice.
    return np.minimum(generator.multinomial(n_people, counts / counts.sum()), whole)
