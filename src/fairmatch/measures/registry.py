"""The registry of measures: each gap once, with its words, its formula and how it is computed."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairmatch.exceptions import CouplingError, InputError
from fairmatch.matching.coupling import Coupling, check_coupling
from fairmatch.measures.distributions import ScoreDistributions, read_by_label
from fairmatch.people.checks import (
    FloatArray,
    check_number,
    read_numbers,
    read_scores,
    read_weights,
)
from fairmatch.people.groups import read_groups


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


ByLabel = Mapping[bool | None, ScoreDistributions]


@dataclass(frozen=True)
class Settings:
    """The settings that measures use.

    Attributes
    ----------
    threshold : float
        A score at or above the threshold is accepted.
    bins : int or None
        Number of equal intervals for the total variation. None computes it exactly.
    """

    threshold: float = 0.5
    bins: int | None = 20


Statistic = Callable[[ScoreDistributions, Settings], FloatArray]
Distance = Callable[[ScoreDistributions, int, int, Settings], float]


def _selection(groups: ScoreDistributions, settings: Settings) -> FloatArray:
    return groups.rates(settings.threshold)


def _mean_score(groups: ScoreDistributions, settings: Settings) -> FloatArray:
    return groups.rates(None)


@dataclass(frozen=True)
class Measure:
    """An entry of the table of measures.

    Attributes
    ----------
    function : callable
        The measure, with fairlearn's signature.
    symbol : str
        The paper's symbol.
    title : str
        What the measure compares, as a heading.
    words : str
        What its value means, in plain English.
    formula : str
        The formula for two groups, as LaTeX.
    interval : str
        Name of the method in `fairmatch.measures.intervals` or `closed_forms` that computes the
        interval of the measure.
    statistic : callable
        Takes distributions and settings, and returns one number per group. The group with the
        larger number is better off.
    distance : callable, optional
        Takes distributions, two codes and settings, and returns the gap between the two groups. By
        default the gap is the absolute difference of their statistics.
    labels : tuple of bool or None
        The classes within which groups are compared: True is Y = 1, False is Y = 0, None is
        everybody. The gaps of several classes are averaged.
    needs_coupling : bool
        Whether the measure compares matched people.

    Examples
    --------
    >>> from fairmatch.measures import MEASURES
    >>> measure = MEASURES["equalized_odds_gap"]
    >>> measure.symbol, measure.labels, measure.needs_labels
    ('ΔEO', (True, False), True)
    """

    function: Callable[..., float]
    symbol: str
    title: str
    words: str
    formula: str
    interval: str
    statistic: Statistic = _mean_score
    distance: Distance | None = None
    labels: tuple[bool | None, ...] = (None,)
    needs_coupling: bool = False

    @property
    def name(self) -> str:
        """Name of the function, which is also the name of the measure."""
        return self.function.__name__

    @property
    def needs_labels(self) -> bool:
        """Whether the measure needs the true labels."""
        return self.labels != (None,)

    def of_pair(
        self, groups: ScoreDistributions, first: int, second: int, settings: Settings
    ) -> float:
        """Compute the gap between two groups within one class."""
        if self.distance is not None:
            return self.distance(groups, first, second, settings)
        levels = self.statistic(groups, settings)
        return float(abs(levels[first] - levels[second]))

    def largest(self, by_label: ByLabel, settings: Settings) -> float:
        """Compute the largest gap over pairs of groups, averaged over the classes."""
        found = [
            max(self.of_pair(by_label[label], *pair, settings) for pair in by_label[label].pairs)
            for label in self.labels
        ]
        return sum(found) / len(found)


MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure(
            demographic_parity_gap,
            "ΔDP",
            "Selection rates",
            "difference of the shares of selected people",
            r"|P(f \ge \tau \mid S = s) - P(f \ge \tau \mid S = s')|",
            "rate_difference",
            statistic=_selection,
        ),
        Measure(
            mean_parity_gap,
            "Δ‾DP",
            "Mean scores",
            "difference of the mean scores",
            r"|E(f \mid S = s) - E(f \mid S = s')|",
            "mean_difference",
        ),
        Measure(
            wasserstein_parity_gap,
            "ΔWDP",
            "Score distributions, mean distance",
            "mean score difference of people at the same rank of their groups",
            r"\int_0^1 |F_s(t) - F_{s'}(t)| \, dt",
            "ScoreGrid.wasserstein",
            distance=lambda groups, a, b, settings: groups.distances(a, b).wasserstein,
        ),
        Measure(
            total_variation_parity_gap,
            "ΔTVDP",
            "Score distributions, overlap",
            "share of people who would have to get another score, in intervals of scores",
            r"\tfrac12 \sum_t |P_s(f = t) - P_{s'}(f = t)|",
            "ScoreGrid.total_variation",
            distance=lambda groups, a, b, settings: groups.pair_variation(a, b, settings.bins),
        ),
        Measure(
            ks_parity_gap,
            "ΔKSDP",
            "Score distributions, largest distance",
            "difference of selection rates at the threshold where it is largest",
            r"\sup_t |F_s(t) - F_{s'}(t)|",
            "ScoreGrid.kolmogorov_smirnov",
            distance=lambda groups, a, b, settings: groups.distances(a, b).kolmogorov_smirnov,
        ),
        Measure(
            matched_parity_gap,
            "ΔMDP",
            "Matched people",
            "mean score difference of people who are matched with each other",
            r"E_s |f(X, s) - f(T(X), s')|",
            "pair_mean",
            needs_coupling=True,
        ),
        Measure(
            true_positive_gap,
            "ΔTPR",
            "True positive rates",
            "difference of the shares selected among people with a positive label",
            r"|P(f \ge \tau \mid S = s, Y = 1) - P(f \ge \tau \mid S = s', Y = 1)|",
            "rate_difference",
            statistic=_selection,
            labels=(True,),
        ),
        Measure(
            false_positive_gap,
            "ΔFPR",
            "False positive rates",
            "difference of the shares selected among people with a negative label",
            r"|P(f \ge \tau \mid S = s, Y = 0) - P(f \ge \tau \mid S = s', Y = 0)|",
            "rate_difference",
            statistic=_selection,
            labels=(False,),
        ),
        Measure(
            equalized_odds_gap,
            "ΔEO",
            "Both error rates",
            "mean of the two gaps of error rates",
            r"(\Delta\mathrm{TPR} + \Delta\mathrm{FPR}) / 2",
            "mean_of_rate_gaps",
            statistic=_selection,
            labels=(True, False),
        ),
    )
}


def read_measure(value: Any, name: str = "measure") -> Measure:
    """Return the measure with this name. Raise an error that lists the names if there is none.

    Parameters
    ----------
    value : str or Measure
        The name of a measure. A measure is returned unchanged.
    name : str, default="measure"
        How the error names the parameter.

    Examples
    --------
    >>> read_measure("true_positive_gap").symbol
    'ΔTPR'
    """
    if isinstance(value, Measure):
        return value
    if isinstance(value, str) and value in MEASURES:
        return MEASURES[value]
    raise InputError(f"{name}={value!r} is not a measure; choose one of {', '.join(MEASURES)}.")


def gap_table(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    coupling: Coupling | None = None,
    threshold: float = 0.5,
    bins: int | None = 20,
    pos_label: Any = 1,
) -> dict[str, float]:
    """Compute every gap that the data allow, in one pass.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,), or None
        Labels of two classes. With labels, the gaps of error rates are computed too.
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or 0/1 decisions.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row. The combinations of several attributes are the groups.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    coupling : Coupling, optional
        A matching of these rows. With it, the matched gap is computed too.
    threshold : float, default=0.5
        A score at or above the threshold is accepted.
    bins : int or None, default=20
        Number of equal intervals for the total variation. None computes it exactly, which gives
        about 1 for continuous scores.
    pos_label : default=1
        The label that counts as positive.

    Returns
    -------
    dict
        Name of the measure to its value, in the order of `MEASURES`. With more than two groups
        each value is the largest over all pairs of groups.

    Examples
    --------
    >>> gaps = gap_table(None, [0.9, 0.2, 0.6, 0.7], sensitive_features=[0, 0, 1, 1])
    >>> for name, value in gaps.items():
    ...     print(f"{name:27}{value:.2f}")
    demographic_parity_gap     0.50
    mean_parity_gap            0.10
    wasserstein_parity_gap     0.30
    total_variation_parity_gap 1.00
    ks_parity_gap              0.50
    """
    scores = read_scores(y_score)
    labels = (None,) if y_true is None else (None, True, False)
    given = y_true, scores, sensitive_features, sample_weight, pos_label
    by_label = read_by_label(labels, *given)
    check_coupling(coupling)
    if coupling is not None:
        coupling.read_groups(sensitive_features)
    settings = Settings(threshold, bins)
    found: dict[str, float] = {}
    for name, measure in MEASURES.items():
        if measure.needs_coupling and coupling is not None:
            found[name] = coupling.largest_gap(scores)
        elif not measure.needs_coupling and set(measure.labels) <= set(labels):
            found[name] = measure.largest(by_label, settings)
    return found


@dataclass(frozen=True)
class PairGap:
    """The gap between two groups.

    Attributes
    ----------
    first, second : group label
        The two groups.
    value : float
        Their gap.
    better_off : group label, or None
        The group that is accepted more often, or the one with the higher mean score if scores are
        compared. It is None if the two are equal. A high score counts as good for a person.
    label : bool, optional
        The class whose people are compared, for the matched gap within a class: True is Y = 1,
        False is Y = 0. Otherwise it is None.

    Examples
    --------
    >>> from fairmatch.measures import gaps_by_pair
    >>> gaps_by_pair(None, [1, 0, 1, 1], sensitive_features=list("aabb"))
    [PairGap(first='a', second='b', value=0.5, better_off='b', label=None)]
    """

    first: Any
    second: Any
    value: float
    better_off: Any
    label: bool | None = None


def gaps_by_pair(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    measure: str | Measure = "demographic_parity_gap",
    sample_weight: ArrayLike | None = None,
    coupling: Coupling | None = None,
    threshold: float = 0.5,
    bins: int | None = None,
    pos_label: Any = 1,
    agg: str = "mean",
) -> list[PairGap]:
    """Compute the gap between every two groups.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,), or None
        Labels of two classes. Gaps of error rates need them.
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or 0/1 decisions.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row. The combinations of several attributes are the groups.
    measure : str or Measure, default="demographic_parity_gap"
        A measure, or the name of one in `fairmatch.measures.MEASURES`.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row. It cannot be combined with a coupling, which carries its own weights.
    coupling : Coupling, optional
        A matching of these rows. The matched gap needs it; other measures do not take it.
    threshold : float, default=0.5
        A score at or above the threshold is accepted.
    bins : int, optional
        Number of equal intervals for the total variation. None computes it exactly.
    pos_label : default=1
        The label that counts as positive.
    agg : {"mean", "worst_case"}, default="mean"
        Whether ``equalized_odds_gap`` is the mean of a pair's two gaps, or the larger one.

    Returns
    -------
    list of PairGap
        One for every two groups, in the order of their labels. For the matched gap there is one
        for every part of the coupling. The measure itself is the largest of these gaps. Only the
        mean over two classes can be larger, because its two gaps may belong to different pairs.

    Examples
    --------
    >>> for pair in gaps_by_pair(None, [1, 0, 1, 1, 0, 0], sensitive_features=list("aabbcc")):
    ...     print(pair.first, pair.second, pair.value, pair.better_off)
    a b 0.5 b
    a c 0.5 a
    b c 1.0 b
    """
    asked = read_measure(measure)
    check_aggregate(agg)
    if asked.needs_coupling:
        check_coupling(coupling, optional=False)
        assert coupling is not None
        if sample_weight is not None:
            raise CouplingError(
                "sample_weight was given together with a coupling, which carries its own mass. "
                "Pass the weights to the matcher instead."
            )
        return _of_parts(read_scores(y_score), sensitive_features, coupling)
    if coupling is not None:
        raise CouplingError(
            f"coupling was given, but {asked.name} does not compare matched people. Leave it out, "
            "or ask for measure='matched_parity_gap'."
        )
    given = y_true, y_score, sensitive_features, sample_weight, pos_label
    by_label = read_by_label(asked.labels, *given)
    settings = Settings(threshold, bins)
    found = list(by_label.values())
    levels = np.sum([asked.statistic(groups, settings) for groups in found], axis=0)
    names = found[0].labels
    return [
        PairGap(
            names[a],
            names[b],
            _reduced([asked.of_pair(groups, a, b, settings) for groups in found], agg),
            _better(names[a], names[b], float(levels[a] - levels[b])),
        )
        for a, b in combinations(range(len(names)), 2)
    ]


def _reduced(values: list[float], agg: str) -> float:
    return max(values) if agg == "worst_case" else sum(values) / len(values)


def _better(first: Any, second: Any, difference: float) -> Any:
    return None if difference == 0.0 else (first if difference > 0.0 else second)


def _of_parts(
    scores: FloatArray, sensitive_features: ArrayLike, coupling: Coupling
) -> list[PairGap]:
    coupling.check_rows(len(scores))
    coupling.read_groups(sensitive_features)
    pairs = []
    for part in coupling.parts:
        difference = float((scores[part.source_index] - scores[part.target_index]) @ part.mass)
        first, second = part.groups
        better = _better(first, second, difference)
        pairs.append(PairGap(first, second, part.gap(scores), better, part.label))
    return pairs


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


IN_UNITS = ("mean_parity_gap", "wasserstein_parity_gap", "matched_parity_gap")
"""Gaps in units of the target, each of which has a relative version."""

REAL_GAPS = (
    *("mean_parity_gap", "wasserstein_parity_gap", "ks_parity_gap", "matched_parity_gap"),
    *(f"relative_{name}" for name in IN_UNITS),
)
"""Names of all gaps of real-valued predictions."""


def real_gaps(
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    coupling: Coupling | None = None,
    scale: float | None = None,
) -> dict[str, float]:
    r"""Compute every gap of real-valued predictions.

    Parameters
    ----------
    y_pred : array-like of shape (n_rows,)
        Predictions. Any finite numbers are allowed.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row. The combinations of several attributes are the groups.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    coupling : Coupling, optional
        A matching of these rows. With it, the matched gap is computed too.
    scale : float, optional
        Standard deviation of the target. With it, relative gaps are computed too.

    Returns
    -------
    dict
        Name of the gap to its value. The gaps are those of mean predictions, of distributions (by
        Wasserstein and by Kolmogorov-Smirnov) and of matched people. Gaps in units of the target
        have a relative version, whose name begins with ``relative_``. With more than two groups
        each value is the largest over all pairs of groups.

    Notes
    -----
    The gaps are those of `fairmatch.measures`, for predictions that may lie outside [0, 1]:
    :math:`|E_s f - E_{s'} f|`, :math:`\int |F_s - F_{s'}| \, dt`, :math:`\sup_t |F_s(t) -
    F_{s'}(t)|` and :math:`E_s |f(X, s) - f(T(X), s')|`. In every part
    :math:`\Delta\overline{\mathrm{DP}} \le \Delta\mathrm{WDP} \le \Delta\mathrm{MDP}`, because
    Theorem 3.7 does not need scores in [0, 1].

    Examples
    --------
    >>> gaps = real_gaps([30.0, 40.0, 42.0, 48.0], sensitive_features=["f", "f", "m", "m"],
    ...                  scale=10.0)
    >>> for name, value in gaps.items():
    ...     print(f"{name:31}{value:g}")
    mean_parity_gap                10
    wasserstein_parity_gap         10
    ks_parity_gap                  1
    relative_mean_parity_gap       1
    relative_wasserstein_parity_gap1
    """
    predicted = read_predictions(y_pred)
    weights = read_weights(sample_weight, n_rows=len(predicted))
    groups = read_groups(sensitive_features, n_rows=len(predicted))
    compared = ScoreDistributions(predicted, groups, weights)
    found = {
        "mean_parity_gap": compared.rate_gap(None),
        "wasserstein_parity_gap": compared.wasserstein,
        "ks_parity_gap": compared.kolmogorov_smirnov,
    }
    check_coupling(coupling)
    if coupling is not None:
        coupling.read_groups(sensitive_features)
        found["matched_parity_gap"] = coupling.largest_gap(predicted)
    if scale is not None:
        check_number("scale", scale, "(0, inf)")
        found |= {f"relative_{name}": found[name] / scale for name in IN_UNITS if name in found}
    return found


def read_predictions(y_pred: Any, name: str = "y_pred") -> FloatArray:
    """Return predictions as finite numbers. An error names the first entry that is not finite."""
    predicted = read_numbers(y_pred, name)
    bad = ~np.isfinite(predicted)
    if bad.any():
        raise InputError(
            f"{name} has {int(bad.sum())} entries that are NaN or infinite (the first in row "
            f"{int(np.argmax(bad))}, counted from 0). Every row needs a finite number: correct "
            "these rows, or leave them out."
        )
    return predicted
