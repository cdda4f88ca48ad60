"""How scores depend on a number, such as an age: generalised demographic parity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc, ndtri, stdtrit

from fairmatch.exceptions import InputError
from fairmatch.measures.estimated import LEAST, error_of_sum, proxy_cells
from fairmatch.measures.intervals import wilson
from fairmatch.people.bands import Bands
from fairmatch.people.checks import FloatArray, check_length, read_numbers, read_weights
from fairmatch.people.outcome import NUMBER
from fairmatch.people.weights import Weights

# More cells than this make the curve of means rougher without showing more of it.
_MOST_CELLS = 20
# How much the cells beside a cell count when the sign of its deviation is estimated.
_NEIGHBOURS = np.array([0.5, 1.0, 0.5])


@dataclass(frozen=True)
class NumberPoint:
    """The people of one part of a number's range."""

    #: The least and the greatest number among them.
    low: float
    high: float
    number: float  #: Their mean number.
    n_people: int  #: How many they are.
    #: Their mean score, and the limits of a band that holds all means at once.
    mean: float
    mean_low: float
    mean_high: float


@dataclass(frozen=True)
class NumberDependence:
    """How scores depend on a number."""

    #: The mean over people of how far the mean score at their number is from the mean of all, and
    #: the limits of its interval.
    value: float
    low: float
    high: float
    points: tuple[NumberPoint, ...]  #: The mean score along the number.


def generalized_parity_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Compute the mean distance between the mean score at a number and the mean score of all.

    Parameters
    ----------
    y_true : ignored
        May be None.
    y_score : array-like of shape (n_rows,)
        Scores, decisions or predictions.
    sensitive_features : array-like of shape (n_rows,), or Bands
        The number, such as an age; missing numbers are left out. For `fairmatch.bands`, it is the
        number that was cut.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.

    Returns
    -------
    float
        The gap; 0 if the scores do not depend on the number.

    Notes
    -----
    .. math:: \Delta\mathrm{GDP}(f) = E_S\, | E(f \mid S) - E f |

    (Jiang et al., 2022). The mean at a number is that of up to 20 cells of neighbouring numbers,
    with at least 50 people each. The sign of :math:`E(f \mid S) - E f` in a cell is estimated on
    the other half of the people. So chance does not make the gap larger; it may make it slightly
    smaller. It is at most the largest gap of mean scores between any two parts of the number.

    Examples
    --------
    >>> import numpy as np
    >>> age = np.arange(20, 70).repeat(20)
    >>> score = 0.3 + 0.4 * (age >= 45)
    >>> round(generalized_parity_gap(None, score, sensitive_features=age), 2)
    0.2
    """
    scores, given = NUMBER.read(y_score), sensitive_features
    numbers = (
        given.values if isinstance(given, Bands) else read_numbers(given, "sensitive_features")
    )
    check_length(numbers, len(scores), "sensitive_features")
    return gap_along(scores, numbers, read_weights(sample_weight, n_rows=len(scores)))


def is_seen(numbers: FloatArray) -> bool:
    """Return whether the number is known for enough people to see a dependence on it."""
    return int((~np.isnan(numbers)).sum()) >= 2 * LEAST


def gap_along(
    scores: FloatArray, numbers: FloatArray | None, weights: FloatArray | None = None
) -> float:
    """Return the generalised gap of people whose number is known. Raise if they are too few."""
    if numbers is None:
        raise InputError(
            "generalized_parity_gap measures a dependence on a number, but the groups are not "
            "bands of a number. Pass sensitive_features=fairmatch.bands(values, n=5), or choose "
            "another gap.",
            parameter="gap_measure",
        )
    known = np.flatnonzero(~np.isnan(numbers))
    if not is_seen(numbers):
        raise InputError(
            f"The number is known for {len(known)} people, but {2 * LEAST} are needed to see a "
            "dependence on it. Pass more rows.",
            parameter="sensitive_features",
        )
    ones = np.ones(len(scores)) if weights is None else weights
    return dependence(scores[known], numbers[known], ones[known], np.arange(len(known))).value


def dependence(
    scores: FloatArray,
    numbers: FloatArray,
    weights: FloatArray,
    persons: NDArray[np.intp],
    *,
    confidence: float = 0.95,
    random_state: int = 0,
) -> NumberDependence:
    r"""Return how scores depend on a number, with intervals.

    With any sign :math:`\hat s` of each cell, :math:`E\,\hat s(S) (f - E f)` is at most the gap,
    and equals it for the right signs. With signs from the other half of the people, smoothed over
    neighbouring cells, its estimate is unbiased: it gives the value and the lower limit. The gap of
    the cells themselves is on average too large, and gives the upper limit. Without a dependence,
    the signs of both halves are random and vary together, which the error does not show. So the
    lower limit is 0 unless a test of equal means in all cells rejects (chi-square).
    """
    cells = _cells(numbers, len(np.unique(persons)))
    n_cells = int(cells.max()) + 1
    mass = np.bincount(cells, weights, minlength=n_cells)
    total, mean = weights.sum(), float(np.average(scores, weights=weights))
    means = np.bincount(cells, weights * scores, minlength=n_cells) / mass
    # A stream of its own, which no draw of the data from the same seed shares.
    generator = np.random.default_rng([random_state, 10])
    folds = generator.integers(2, size=int(persons.max()) + 1)[persons]
    signs = np.zeros(len(scores))
    for fold in (0, 1):
        own = np.where(folds == fold, 0.0, weights)
        centre = float(np.average(scores, weights=own)) if own.any() else mean
        sums = np.bincount(cells, own * (scores - centre), minlength=n_cells)
        sums = np.convolve(sums, _NEIGHBOURS, "same") if n_cells >= len(_NEIGHBOURS) else sums
        signs[folds == fold] = np.sign(sums)[cells[folds == fold]]
    error = float(ndtri((1.0 + confidence) / 2.0))
    ends = []
    for sign in (signs, np.sign(means - mean)[cells]):
        found = float(weights @ (sign * (scores - mean)) / total)
        centred = (sign - np.average(sign, weights=weights)) * (scores - mean) - found
        ends.append((found, error * error_of_sum(weights * centred / total, persons)))
    (value, half), (most, wide) = ends
    value = max(value, 0.0)
    level = 1.0 - (1.0 - confidence) / n_cells
    decides = bool(np.isin(scores, (0.0, 1.0)).all())
    points, errors = [], []
    for cell, mean_there in enumerate(means.tolist()):
        rows = cells == cell
        who, at, by = persons[rows], numbers[rows], weights[rows]
        n_people = len(np.unique(who))
        errors.append(error_of_sum(by * (scores[rows] - mean_there) / mass[cell], who))
        if decides:
            worth = Weights(len(by), by, persons=who).worth
            limits = wilson(mean_there * worth, worth, level)
        else:
            off = float(stdtrit(max(n_people - 1.0, 1.0), (1.0 + level) / 2.0)) * errors[-1]
            limits = mean_there - off, mean_there + off
        place = float(at.min()), float(at.max()), float(np.average(at, weights=by))
        points.append(NumberPoint(*place, n_people, mean_there, *limits))
    differs = _equal(means, np.square(errors)) <= (1.0 - confidence) / 2.0
    low = max(value - half, 0.0) if differs else 0.0
    return NumberDependence(value, low, max(value + half, most + wide), tuple(points))


def _equal(means: FloatArray, variances: FloatArray) -> float:
    """Return the p-value of a test that independent means are equal."""
    # In a cell where all scores are equal, the error is not 0 but unknown.
    variances = np.maximum(variances, variances.mean() / 100.0)
    if not variances.any():
        return float(np.ptp(means) == 0.0)
    mean = np.average(means, weights=1.0 / variances)
    return float(chdtrc(max(len(means) - 1.0, 1.0), ((means - mean) ** 2 / variances).sum()))


def _cells(numbers: FloatArray, n_people: int) -> NDArray[np.intp]:
    """Return cells of neighbouring numbers, in their order."""
    least = max(LEAST * len(numbers) / n_people, len(numbers) / _MOST_CELLS)
    cells = proxy_cells(numbers[:, None], int(np.ceil(least)))
    means = np.bincount(cells, numbers) / np.bincount(cells)
    return np.argsort(np.argsort(means))[cells]
