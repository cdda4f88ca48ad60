"""Gaps between error rates: how differently a model treats groups within the same class."""

from typing import Any

from numpy.typing import ArrayLike

from fairmatch.exceptions import InputError
from fairmatch.measures.distributions import read_by_label

# How the gaps of the two classes are combined. The names are fairlearn's.
AGGREGATES = ("mean", "worst_case")


def true_positive_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    threshold: float | None = 0.5,
    pos_label: Any = 1,
) -> float:
    r"""Compute the gap between the groups' shares of accepted people among the truly positive.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Labels of two classes. Every group needs rows of the positive class.
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or 0/1 decisions.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row. The combinations of several attributes are the groups.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    threshold : float or None, default=0.5
        A score at or above the threshold is accepted. None compares mean scores, which is the
        paper's smooth version.
    pos_label : default=1
        The label that counts as positive.

    Returns
    -------
    float
        The largest gap between two groups.

    Notes
    -----
    .. math:: \Delta\mathrm{TPR}(f) = \max_{s, s'}
              |P(f(X, s) \ge \tau \mid S = s, Y = 1) - P(f(X, s') \ge \tau \mid S = s', Y = 1)|

    Section 5.3.1 of the paper; also known as equal opportunity.

    Examples
    --------
    >>> true_positive_gap([1, 1, 1, 0], [0.9, 0.2, 0.6, 0.7], sensitive_features=[0, 0, 1, 1])
    0.5
    """
    given = y_true, y_score, sensitive_features, sample_weight, pos_label
    return read_by_label((True,), *given)[True].rate_gap(threshold)


def false_positive_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    threshold: float | None = 0.5,
    pos_label: Any = 1,
) -> float:
    r"""Compute the gap between the groups' shares of accepted people among the truly negative.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Labels of two classes. Every group needs rows of the negative class.
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or 0/1 decisions.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row. The combinations of several attributes are the groups.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    threshold : float or None, default=0.5
        A score at or above the threshold is accepted. None compares mean scores, which is the
        paper's smooth version.
    pos_label : default=1
        The label that counts as positive.

    Returns
    -------
    float
        The largest gap between two groups.

    Notes
    -----
    .. math:: \Delta\mathrm{FPR}(f) = \max_{s, s'}
              |P(f(X, s) \ge \tau \mid S = s, Y = 0) - P(f(X, s') \ge \tau \mid S = s', Y = 0)|

    Examples
    --------
    >>> false_positive_gap([0, 0, 0, 1], [0.9, 0.2, 0.6, 0.7], sensitive_features=[0, 0, 1, 1])
    0.5
    """
    given = y_true, y_score, sensitive_features, sample_weight, pos_label
    return read_by_label((False,), *given)[False].rate_gap(threshold)


def equalized_odds_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    threshold: float | None = 0.5,
    pos_label: Any = 1,
    agg: str = "mean",
) -> float:
    r"""Compute the mean of the true-positive and the false-positive gap, or the larger of them.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Labels of two classes. Every group needs rows of both.
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or 0/1 decisions.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row. The combinations of several attributes are the groups.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    threshold : float or None, default=0.5
        A score at or above the threshold is accepted. None compares mean scores, which is the
        paper's smooth version.
    pos_label : default=1
        The label that counts as positive.
    agg : {"mean", "worst_case"}, default="mean"
        ``"mean"`` returns the mean of the two gaps, as the paper does. ``"worst_case"`` returns
        the larger gap, as fairlearn's ``equalized_odds_difference`` does by default.

    Returns
    -------
    float
        The mean of the two gaps, or the larger one. Each of the two gaps is the largest over all
        pairs of groups, so they may belong to different pairs.

    Notes
    -----
    .. math:: \Delta\mathrm{EO}(f) = (\Delta\mathrm{TPR}(f) + \Delta\mathrm{FPR}(f)) / 2

    Examples
    --------
    >>> y, scores, groups = [1, 0, 1, 0], [0.9, 0.2, 0.6, 0.7], [0, 0, 1, 1]
    >>> equalized_odds_gap(y, scores, sensitive_features=groups)
    0.5
    >>> equalized_odds_gap(y, scores, sensitive_features=groups, agg="worst_case")
    1.0
    """
    check_aggregate(agg)
    given = y_true, y_score, sensitive_features, sample_weight, pos_label
    found = read_by_label((True, False), *given)
    tpr, fpr = found[True].rate_gap(threshold), found[False].rate_gap(threshold)
    return (tpr + fpr) / 2.0 if agg == "mean" else max(tpr, fpr)


def check_aggregate(agg: Any) -> None:
    """Raise unless ``agg`` is one of `AGGREGATES`."""
    if agg not in AGGREGATES:
        raise InputError(f"agg must be 'mean' or 'worst_case', got {agg!r}. Pass one of the two.")
