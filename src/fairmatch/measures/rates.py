"""Selection rates of groups, and their ratios."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fairmatch.measures.distributions import ScoreDistributions


@dataclass(frozen=True)
class SelectionRate:
    """How often a group is accepted.

    Attributes
    ----------
    rate : float
        Share of its people who are accepted.
    ratio : float
        The rate divided by that of the most selected group. It is NaN if nobody is accepted.

    Examples
    --------
    >>> from fairmatch.measures import selection_rates
    >>> selection_rates(None, [1, 0, 1, 1], sensitive_features=list("aabb"))["a"].ratio
    0.5
    """

    rate: float
    ratio: float


def selection_rates(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.5,
) -> dict[Hashable, SelectionRate]:
    r"""Compute how often each group is accepted, and its ratio to the most selected group.

    Parameters
    ----------
    y_true : ignored
        May be None.
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or 0/1 decisions.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row. The combinations of several attributes are the groups.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    threshold : float, default=0.5
        A score at or above the threshold is accepted.

    Returns
    -------
    dict
        Group label to its `SelectionRate`.

    Notes
    -----
    The rate of group s is :math:`r_s = P(f \ge \tau \mid S = s)`, and its ratio is
    :math:`r_s / \max_{s'} r_{s'}`.

    Examples
    --------
    >>> found = selection_rates(None, [1, 0, 1, 1, 0, 0], sensitive_features=list("aabbcc"))
    >>> found["a"]
    SelectionRate(rate=0.5, ratio=0.5)
    """
    groups = ScoreDistributions.read(y_score, sensitive_features, sample_weight)
    rates = groups.rates(threshold)
    most = float(rates.max())
    ratios = rates / most if most > 0.0 else np.full(len(rates), np.nan)
    return {
        label: SelectionRate(rate, ratio)
        for label, rate, ratio in zip(groups.labels, rates.tolist(), ratios.tolist(), strict=True)
    }


def selection_ratio(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.5,
) -> float:
    r"""Compute the ratio of the smallest selection rate of any group to the largest.

    Parameters
    ----------
    y_true : ignored
        May be None.
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or 0/1 decisions.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row. The combinations of several attributes are the groups.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    threshold : float, default=0.5
        A score at or above the threshold is accepted.

    Returns
    -------
    float
        1 if all groups are accepted equally often, and NaN if nobody is accepted.

    Notes
    -----
    .. math:: \min_s P(f \ge \tau \mid S = s) \,/\, \max_s P(f \ge \tau \mid S = s)

    This is fairlearn's ``demographic_parity_ratio``. It is also known as the impact ratio. The
    four-fifths rule asks for a ratio of at least 0.8.

    Examples
    --------
    >>> selection_ratio(None, [1, 0, 1, 1], sensitive_features=list("aabb"))
    0.5
    """
    found = selection_rates(
        y_true,
        y_score,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        threshold=threshold,
    )
    return min(group.ratio for group in found.values())
