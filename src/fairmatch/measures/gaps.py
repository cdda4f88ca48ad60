r"""The gaps: how differently one model treats groups of people.

Every measure of a gap has fairlearn's signature,
``measure(y_true, y_score, *, sensitive_features, sample_weight=None)``. Scorers and
cross-validation can therefore use it. ``y_true`` may be None if the labels are not used. Decisions
are ``score >= threshold``. With more than two groups the gap is the largest over all pairs of
groups; `fairmatch.measures.gaps_by_pair` returns every pair.
"""

from numpy.typing import ArrayLike

from fairmatch.exceptions import CouplingError
from fairmatch.matching.coupling import Coupling, check_coupling
from fairmatch.measures.distributions import ScoreDistributions
from fairmatch.tables.arrays import read_scores


def demographic_parity_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    threshold: float | None = 0.5,
) -> float:
    r"""Compute the gap between the groups' shares of accepted people.

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
    threshold : float or None, default=0.5
        A score at or above the threshold is accepted. None compares mean scores.

    Returns
    -------
    float
        The largest gap between two groups.

    Notes
    -----
    .. math:: \Delta\mathrm{DP}(f) = \max_{s, s'}
              |P(f(X, s) \ge \tau \mid S = s) - P(f(X, s') \ge \tau \mid S = s')|

    Section 2.2 of the paper, which treats two groups.

    Examples
    --------
    >>> demographic_parity_gap(None, [0.9, 0.2, 0.6, 0.7], sensitive_features=[0, 0, 1, 1])
    0.5
    """
    groups = ScoreDistributions.read(y_score, sensitive_features, sample_weight)
    return groups.rate_gap(threshold)


def mean_parity_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Compute the gap between the groups' mean scores.

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

    Returns
    -------
    float
        The largest gap between two groups.

    Notes
    -----
    .. math:: \Delta\overline{\mathrm{DP}}(f) = \max_{s, s'}
              |E(f(X, s) \mid S = s) - E(f(X, s') \mid S = s')|

    Examples
    --------
    >>> mean_parity_gap(None, [0.5, 0.25, 0.75, 0.5], sensitive_features=[0, 0, 1, 1])
    0.25
    """
    return ScoreDistributions.read(y_score, sensitive_features, sample_weight).rate_gap(None)


def wasserstein_parity_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Compute the area between the groups' score distribution functions.

    For two groups it is also the smallest mean score gap over all matchings of the groups.
    `fairmatch.fair_matching` attains it.

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

    Returns
    -------
    float
        The largest area between two groups.

    Notes
    -----
    .. math:: \Delta\mathrm{WDP}(f) = \max_{s, s'} \int_0^1 |F_s(t) - F_{s'}(t)| \, dt

    Examples
    --------
    >>> wasserstein_parity_gap(None, [0.0, 1.0, 0.5, 0.5], sensitive_features=[0, 0, 1, 1])
    0.5
    """
    return ScoreDistributions.read(y_score, sensitive_features, sample_weight).wasserstein


def total_variation_parity_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    bins: int | None = None,
) -> float:
    r"""Compute the total variation between the groups' score distributions.

    The exact value suits discrete scores (decisions, deciles, trees). Continuous scores hardly
    ever coincide, so their exact value is about 1 for every model. Count such scores in ``bins``
    equal intervals of [0, 1] instead.

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
    bins : int, optional
        Number of equal intervals. None computes the exact value.

    Returns
    -------
    float
        The largest distance between two groups.

    Notes
    -----
    .. math:: \Delta\mathrm{TVDP}(f) =
              \max_{s, s'} \tfrac12 \sum_t |P_s(f = t) - P_{s'}(f = t)|

    Examples
    --------
    >>> total_variation_parity_gap(None, [0, 1, 1, 1], sensitive_features=[0, 0, 1, 1])
    0.5
    >>> scores = [0.11, 0.52, 0.13, 0.51]
    >>> total_variation_parity_gap(None, scores, sensitive_features=[0, 0, 1, 1])
    1.0
    >>> total_variation_parity_gap(None, scores, sensitive_features=[0, 0, 1, 1], bins=10)
    0.0
    """
    groups = ScoreDistributions.read(y_score, sensitive_features, sample_weight)
    return groups.total_variation(bins)


def ks_parity_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Compute the largest gap between the groups' shares of accepted people, over all thresholds.

    The result is exact: every score is a threshold, not only those of a grid.

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

    Returns
    -------
    float
        The largest gap between two groups.

    Notes
    -----
    .. math:: \Delta\mathrm{KSDP}(f) = \max_{s, s'} \sup_t |F_s(t) - F_{s'}(t)|

    Examples
    --------
    >>> ks_parity_gap(None, [0.1, 0.2, 0.15, 0.9], sensitive_features=[0, 0, 1, 1])
    0.5
    """
    return ScoreDistributions.read(y_score, sensitive_features, sample_weight).kolmogorov_smirnov


def matched_parity_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    coupling: Coupling,
    sample_weight: None = None,
) -> float:
    r"""Compute the mean score gap between matched people.

    Parameters
    ----------
    y_true : ignored
        May be None.
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1].
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    coupling : Coupling
        A matching of the rows of this same table.
    sample_weight : None
        The coupling already carries the weights. Passing them again is an error.

    Returns
    -------
    float
        The largest gap of any part of the coupling. A part matches a group with the reference
        group, and does so within one class if the criterion compares classes.

    Notes
    -----
    .. math:: \Delta\mathrm{MDP}(f, T) = E_s |f(X, s) - f(T(X), s')|

    Definition 3.2 (equation 2) of the paper. For every coupling with the right marginals,
    :math:`\Delta\overline{\mathrm{DP}} \le \Delta\mathrm{WDP} \le \Delta\mathrm{MDP}` holds in
    every part (Theorem 3.7).

    Examples
    --------
    >>> from fairmatch import fair_matching
    >>> scores, groups = [0.0, 1.0, 0.5, 0.75], ["a", "a", "b", "b"]
    >>> matched_parity_gap(None, scores, sensitive_features=groups,
    ...                    coupling=fair_matching(scores, groups))
    0.375
    """
    if sample_weight is not None:
        raise CouplingError(
            "sample_weight was given together with a coupling, which carries its own mass. Pass "
            "the weights to the matcher instead."
        )
    check_coupling(coupling, optional=False)
    scores = read_scores(y_score)
    coupling.check_rows(len(scores))
    coupling.read_groups(sensitive_features)
    return coupling.largest_gap(scores)
