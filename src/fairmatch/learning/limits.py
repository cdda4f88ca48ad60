"""Upper confidence limits of gaps between groups, to choose a model within a bound."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import ndtri

from fairmatch.measures.closed_forms import fold, mean_difference, rate_difference
from fairmatch.tables.arrays import BoolArray, FloatArray, read_weights
from fairmatch.tables.groups import Groups

# Gaps that have a limit, and the classes that each of them compares; None stands for everybody.
LIMITED: dict[str, tuple[bool | None, ...]] = {
    "demographic_parity_gap": (None,),
    "mean_parity_gap": (None,),
    "true_positive_gap": (True,),
    "false_positive_gap": (False,),
    "equalized_odds_gap": (True, False),
}


def upper_limit(
    measure: str,
    scores: FloatArray,
    positive: BoolArray,
    groups: Groups,
    sample_weight: Any,
    confidence: float,
) -> float:
    """Return an upper confidence limit of the largest gap over pairs of groups.

    Parameters
    ----------
    measure : str
        The gap, a name in `LIMITED`.
    scores : array of shape (n_rows,)
        Scores of rows that the model was not trained on.
    positive : array of bool, shape (n_rows,)
        Which rows have the positive label.
    groups : Groups
        Group of every row.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row. With weights, a group counts by its effective number of rows.
    confidence : float
        Smallest probability that the limit holds.

    Returns
    -------
    float
        The limit; NaN if a group has no rows of a class that is compared.

    Notes
    -----
    All pairs of groups and all classes share the error probability equally (Bonferroni). Rates are
    compared by Newcombe's interval, and means by Welch's. The limit of equalised odds is the mean
    of the limits of its two gaps.

    Examples
    --------
    >>> import numpy as np
    >>> from fairmatch.tables.groups import read_groups
    >>> groups = read_groups(np.repeat([0, 1], 100))
    >>> scores = np.tile([0.2, 0.8], 100)
    >>> limit = upper_limit(
    ...     "demographic_parity_gap", scores, scores > 0.5, groups, None, confidence=0.95)
    >>> 0.1 < limit < 0.2
    True
    """
    labels = LIMITED[measure]
    present = np.flatnonzero(groups.sizes()).tolist()
    pairs = list(combinations(range(len(present)), 2))
    error = (1.0 - confidence) / (len(pairs) * len(labels))
    weights = read_weights(sample_weight, n_rows=len(scores))
    if measure == "mean_parity_gap" and weights is not None:
        return min(1.0, mean_gap_limit(scores, groups, weights, confidence))
    mass = np.ones(len(scores)) if weights is None else weights
    limits = []
    for label in labels:
        inside = np.ones(len(scores), bool) if label is None else positive == label
        members = [
            np.flatnonzero(groups.is_group(code) & inside & (mass > 0.0)) for code in present
        ]
        if not all(map(len, members)):
            return float("nan")
        sides = [(scores[rows], mass[rows]) for rows in members]
        # The upper end of a two-sided interval of level 1 - 2a is a one-sided limit of level 1 - a.
        one = [_limit(measure, sides[a], sides[b], 1.0 - 2.0 * error) for a, b in pairs]
        limits.append(max(one))
    return float(np.mean(limits))


def _limit(measure: str, first: Any, second: Any, level: float) -> float:
    sides = first, second
    if measure == "mean_parity_gap":
        if min(len(scores) for scores, _ in sides) < 2:
            return 1.0
        return fold(mean_difference(first[0], second[0], level))[1]
    sizes = [max(1, int(mass.sum() ** 2 / (mass**2).sum())) for _, mass in sides]
    rates = [float(np.average(scores >= 0.5, weights=mass)) for scores, mass in sides]
    counts = (rates[0] * sizes[0], rates[1] * sizes[1])
    return fold(rate_difference(counts, (sizes[0], sizes[1]), level))[1]


def mean_gap_limit(
    predicted: FloatArray, groups: Groups, weights: FloatArray | None, confidence: float
) -> float:
    r"""Return an upper confidence limit of the largest gap of mean predictions.

    Parameters
    ----------
    predicted : array of shape (n_rows,)
        Predictions for rows that the model was not trained on.
    groups : Groups
        Group of every row.
    weights : array of shape (n_rows,), optional
        Weight of every row. With weights, a group counts by its effective number of rows.
    confidence : float
        Smallest probability that the limit holds.

    Returns
    -------
    float
        The limit; infinite if a group has fewer than two effective rows.

    Notes
    -----
    The limit is the largest one of Welch's intervals of all pairs of groups. The pairs share the
    error probability, one minus the confidence, equally (Bonferroni).

    Examples
    --------
    >>> import numpy as np
    >>> from fairmatch.tables.groups import read_groups
    >>> predicted = np.tile([30.0, 50.0], 100)
    >>> limit = mean_gap_limit(predicted, read_groups(np.repeat([0, 1], 100)), None, 0.95)
    >>> 2.0 < limit < 4.0
    True
    """
    mass = np.ones(len(predicted)) if weights is None else weights
    means, squares, freedom = [], [], []
    for code in np.flatnonzero(groups.sizes(mass) > 0.0).tolist():
        own = predicted[groups.rows(code)]
        shares = mass[groups.rows(code)] / mass[groups.rows(code)].sum()
        size = 1.0 / (shares**2).sum()
        if size < 2.0:
            return float("inf")
        mean = float(shares @ own)
        means.append(mean)
        squares.append(float(shares @ (own - mean) ** 2) / (size - 1.0))
        freedom.append(size - 1.0)
    pairs = list(combinations(range(len(means)), 2))
    level = 1.0 - (1.0 - confidence) / len(pairs)
    limits = []
    for a, b in pairs:
        error = squares[a] + squares[b]
        pooled = squares[a] ** 2 / freedom[a] + squares[b] ** 2 / freedom[b]
        degrees = error**2 / pooled if pooled > 0.0 else freedom[a] + freedom[b]
        limits.append(abs(means[a] - means[b]) + stats.t.ppf(level, degrees) * np.sqrt(error))
    return float(max(limits))


def noise(groups: Groups, ignored: Sequence[int] = (), confidence: float = 0.95) -> float:
    """Return the half-width of a confidence interval of a gap of rates.

    The gap is the one between the two smallest groups. Their rates are taken to be one half, where
    the interval is widest. The half-width is 1 if one of the two groups has no rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fairmatch.tables.groups import read_groups
    >>> round(noise(read_groups(np.repeat(["a", "b"], 50))), 3)
    0.196
    """
    sizes = np.sort(np.delete(groups.sizes(), list(ignored)))[:2]
    if not sizes.all():
        return 1.0
    return float(ndtri((1.0 + confidence) / 2.0) * np.sqrt((0.25 / sizes).sum()))
