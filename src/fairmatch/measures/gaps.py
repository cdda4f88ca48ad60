"""Gaps between groups, with fairlearn's signature."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairmatch.exceptions import CouplingError, InputError, LabelError
from fairmatch.matching.coupling import Coupling, check_coupling
from fairmatch.measures.distributions import ScoredPeople, Settings
from fairmatch.measures.intervals import GroupPair, rate_difference
from fairmatch.measures.registry import MEASURES, Measure, gap_values, read_measure
from fairmatch.people.checks import (
    FloatArray,
    check_choice,
    check_count,
    check_number,
    read_scores,
    read_weights,
    refuse_other_order,
)
from fairmatch.people.outcome import (
    NUMBER,
    is_vectors,
    read_class_scores,
    read_outcome,
    read_vectors,
)
from fairmatch.people.people import read_people


def read_scored(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    y_true: ArrayLike | None = None,
    pos_label: Any = 1,
    settings: Settings | None = None,
    *,
    needs_labels: bool = False,
    given: Any = None,
    estimated: bool = True,
    classes: Sequence[Any] | None = None,
    favourable: Any = None,
    measure: Measure | None = None,
    by_class: bool = False,
) -> ScoredPeople:
    """Read the arguments of a measure.

    With ``estimated``, groups may be probabilities, and people then have a row for every possible
    group. Without a ``measure`` of several classes, more than two classes raise an error. With
    ``by_class``, two classes are treated like several.
    """
    settings = Settings() if settings is None else settings
    refuse_other_order(
        y_score=y_score, sensitive_features=sensitive_features, y_true=y_true,
        sample_weight=sample_weight,
    )  # fmt: skip
    named = classes is not None or favourable is not None
    if (is_vectors(y_score) or named or by_class) and not settings.outcome.has_unit:
        y_score, outcome = read_class_scores(y_score, classes, y_true, favourable)
        names = outcome.classes
        if len(names) > 2 or by_class:
            settings = replace(settings, outcome=outcome)
            if measure is None or not measure.applies_to(outcome):
                raise InputError(
                    f"y_score has {len(names)} classes, and "
                    f"{'this measure' if measure is None else measure.name} is for two classes. "
                    "Compare one class with the rest, or use one of "
                    f"{', '.join(own for own, one in MEASURES.items() if one.several)}.",
                    parameter="y_score",
                )
        else:  # two classes go through the code of two classes
            y_score, pos_label = y_score[:, 1], names[1]
            settings = replace(settings, favourable="low" if outcome.favourable == (0,) else "high")
    elif named:
        raise InputError(
            "classes and favourable are for scores with one column per class, but y_score is one "
            "column of numbers. Leave them out.",
            parameter="classes" if classes is not None else "favourable",
        )
    if settings.threshold is not None:
        within = "(-inf, inf)" if settings.outcome.has_unit else "[0, 1]"  # where scores lie
        check_number("threshold", settings.threshold, within)
        if settings.outcome.several and settings.threshold != 0.5:
            raise InputError(
                f"threshold={settings.threshold:g} was given, but several classes decide by the "
                "largest probability. Leave it out.",
                parameter="threshold",
            )
    check_count("bins", settings.bins, optional=True)
    scores = settings.outcome.read(y_score)
    if needs_labels and y_true is None:
        raise LabelError(
            "y_true is None, but this measure compares predictions with labels. Pass the labels.",
            parameter="y_true",
        )
    people = read_people(
        sensitive_features,
        n_rows=len(scores),
        y=y_true,
        pos_label=pos_label,
        sample_weight=sample_weight,
        given=given,
        estimated=estimated,
        classes=settings.outcome.classes,
    )
    if people.groups.memberships is not None:
        people, rows = people.expanded()
        scores = scores[rows]
    return ScoredPeople(people, scores, settings)


def _gap(
    measure: str,
    *,
    y_true: ArrayLike | None,
    threshold: float | None = 0.5,
    bins: int | None = None,
    **others: Any,
) -> float:
    """Return the value of a measure. All arguments are those of the public function."""
    asked = MEASURES[measure]
    if asked.needs_labels:
        others |= {"y_true": y_true, "needs_labels": True}
    scored = read_scored(**others, settings=Settings(threshold, bins), measure=asked)
    return asked.value(scored)


def demographic_parity_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    threshold: float | None = 0.5,
    given: Any = None,
) -> float:
    r"""Compute the gap between the groups' shares of accepted people.

    Parameters
    ----------
    y_true : ignored
        May be None.
    y_score : array-like of shape (n_rows,), or (n_rows, n_classes)
        Scores in [0, 1] or 0/1 decisions; or a probability for each of several classes, which
        decide by the largest one. Ties go to the later class.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row. The combinations of several attributes are the groups.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    threshold : float or None, default=0.5
        A score at or above the threshold is accepted. None compares mean scores. With several
        classes the only threshold is the default.
    given : array-like of shape (n_rows,), or table, optional
        Factors within whose levels people are compared. The gap is then the mean of the gaps within
        strata that have people of both groups, weighted by their people.

    Returns
    -------
    float
        The largest gap between two groups, and over the classes if there are several.

    Notes
    -----
    .. math:: \Delta\mathrm{DP}(f) = \max_{s, s'}
              |P(f(X, s) \ge \tau \mid S = s) - P(f(X, s') \ge \tau \mid S = s')|

    Section 2.2 of the paper, which treats two groups. With classes c and decisions d it is
    :math:`\max_{c, s, s'} |P(d = c \mid S = s) - P(d = c \mid S = s')|`.

    Examples
    --------
    >>> demographic_parity_gap(None, [0.9, 0.2, 0.6, 0.7], sensitive_features=[0, 0, 1, 1])
    0.5
    """
    return _gap("demographic_parity_gap", **locals())


def mean_parity_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    given: Any = None,
    classes: Sequence[Any] | None = None,
) -> float:
    r"""Compute the gap between the groups' mean scores.

    Parameters
    ----------
    y_true, y_score, sensitive_features, sample_weight, given
        As in `demographic_parity_gap`.
    classes : sequence, optional
        The classes in the order of the columns of ``y_score``, from the lowest to the highest.
        Without it several classes have no order; their names are those of the columns, or the
        sorted labels.

    Returns
    -------
    float
        The largest gap between two groups.

    Notes
    -----
    .. math:: \Delta\overline{\mathrm{DP}}(f) = \max_{s, s'}
              |E(f(X, s) \mid S = s) - E(f(X, s') \mid S = s')|

    For vectors of class probabilities it is half the L1 distance between the groups' means. If
    the classes are ordered, f is the expected place of the class, from 0 for the first to 1 for the
    last.

    Examples
    --------
    >>> mean_parity_gap(None, [0.5, 0.25, 0.75, 0.5], sensitive_features=[0, 0, 1, 1])
    0.25
    """
    return _gap("mean_parity_gap", **locals())


def wasserstein_parity_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    given: Any = None,
    classes: Sequence[Any] | None = None,
) -> float:
    r"""Compute the area between the groups' score distribution functions.

    For two groups it is also the smallest mean score gap over all matchings of the groups.
    `fairmatch.fair_matching` attains it.

    Parameters
    ----------
    y_true, y_score, sensitive_features, sample_weight, given, classes
        As in `mean_parity_gap`.

    Returns
    -------
    float
        The largest area between two groups.

    Notes
    -----
    .. math:: \Delta\mathrm{WDP}(f) = \max_{s, s'} \int_0^1 |F_s(t) - F_{s'}(t)| \, dt

    For vectors of class probabilities it is the Wasserstein distance whose ground distance is half
    the L1 distance, from a transport problem of at most 1,000 points on each side: of more
    different vectors, neighbours are joined. If the classes are ordered, it is the distance on the
    line of the expected place of the class, from 0 for the first to 1 for the last.

    Examples
    --------
    >>> wasserstein_parity_gap(None, [0.0, 1.0, 0.5, 0.5], sensitive_features=[0, 0, 1, 1])
    0.5
    """
    return _gap("wasserstein_parity_gap", **locals())


def total_variation_parity_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    bins: int | None = None,
    given: Any = None,
) -> float:
    r"""Compute the total variation between the groups' score distributions.

    The exact value suits discrete scores (decisions, deciles, trees). Continuous scores hardly
    ever coincide, so their exact value is about 1 for every model. Count such scores in ``bins``
    equal intervals of [0, 1] instead.

    Parameters
    ----------
    y_true, y_score, sensitive_features, sample_weight, given
        As in `demographic_parity_gap`, for scores of two classes.
    bins : int, optional
        Number of equal intervals. Scores on a border between two of them are counted by themselves.
        None computes the exact value.

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
    return _gap("total_variation_parity_gap", **locals())


def ks_parity_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    given: Any = None,
) -> float:
    r"""Compute the largest gap between the groups' shares of accepted people, over all thresholds.

    The result is exact: every score is a threshold, not only those of a grid.

    Parameters
    ----------
    y_true, y_score, sensitive_features, sample_weight, given
        As in `demographic_parity_gap`, for scores of two classes.

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
    return _gap("ks_parity_gap", **locals())


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
    y_true, y_score, sensitive_features
        As in `demographic_parity_gap`.
    coupling : Coupling
        A matching of the rows of this same table.
    sample_weight : None
        The coupling already carries the weights. Passing them again raises an error.

    Returns
    -------
    float
        The largest gap of any part of the coupling. A part matches a group with the reference
        group, within one class if the criterion compares classes.

    Notes
    -----
    .. math:: \Delta\mathrm{MDP}(f, T) = E_s |f(X, s) - f(T(X), s')|

    Definition 3.2 (equation 2) of the paper. For every coupling with the right marginals,
    :math:`\Delta\overline{\mathrm{DP}} \le \Delta\mathrm{WDP} \le \Delta\mathrm{MDP}` holds in
    every part (Theorem 3.7). For vectors of class probabilities, the difference of two people is
    half the L1 distance of their vectors.

    Examples
    --------
    >>> from fairmatch import fair_matching
    >>> scores, groups = [0.0, 1.0, 0.5, 0.75], ["a", "a", "b", "b"]
    >>> matched_parity_gap(None, scores, sensitive_features=groups,
    ...                    coupling=fair_matching(scores, groups))
    0.375
    """
    scores = _read_matched(y_score, sensitive_features, coupling, sample_weight)
    return coupling.largest_gap(scores)


def _read_matched(
    y_score: ArrayLike, sensitive_features: ArrayLike, coupling: Any, sample_weight: Any
) -> FloatArray:
    """Return the scores of matched people. Raise unless the coupling is one of these rows."""
    if sample_weight is not None:
        raise CouplingError(
            "sample_weight was given together with a coupling, which carries its own mass. Pass "
            "the weights to the matcher instead."
        )
    check_coupling(coupling, optional=False)
    scores = read_vectors(y_score) if is_vectors(y_score) else read_scores(y_score)
    coupling.check_rows(len(scores))
    coupling.read_groups(sensitive_features)
    return scores


def true_positive_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    threshold: float | None = 0.5,
    pos_label: Any = 1,
    given: Any = None,
    classes: Sequence[Any] | None = None,
    favourable: Sequence[Any] | None = None,
) -> float:
    r"""Compute the gap between the groups' true positive rates.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Labels of two classes, or of several. Every group needs rows of the positive class.
    y_score, sensitive_features, sample_weight, given
        As in `demographic_parity_gap`.
    threshold : float or None, default=0.5
        A score at or above the threshold is accepted. None compares mean scores, which is the
        paper's smooth version.
    pos_label : default=1
        The label that counts as positive.
    classes : sequence, optional
        As in `mean_parity_gap`.
    favourable : sequence, optional
        The classes that are good for a person. With it, only the recall of these classes counts.

    Returns
    -------
    float
        The largest gap between two groups.

    Notes
    -----
    .. math:: \Delta\mathrm{TPR}(f) = \max_{s, s'}
              |P(f(X, s) \ge \tau \mid S = s, Y = 1) - P(f(X, s') \ge \tau \mid S = s', Y = 1)|

    Section 5.3.1 of the paper; also known as equal opportunity. With several classes it is the
    largest gap of recalls :math:`P(d = c \mid S = s, Y = c)` over the favourable classes c, or over
    all of them.

    Examples
    --------
    >>> true_positive_gap([1, 1, 1, 0], [0.9, 0.2, 0.6, 0.7], sensitive_features=[0, 0, 1, 1])
    0.5
    """
    return _gap("true_positive_gap", **locals())


def false_positive_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    threshold: float | None = 0.5,
    pos_label: Any = 1,
    given: Any = None,
) -> float:
    r"""Compute the gap between the groups' false positive rates.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Labels of two classes. Every group needs rows of the negative class.
    y_score, sensitive_features, sample_weight, threshold, pos_label, given
        As in `true_positive_gap`, for scores of two classes.

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
    return _gap("false_positive_gap", **locals())


def equalized_odds_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    threshold: float | None = 0.5,
    pos_label: Any = 1,
    agg: str = "mean",
    given: Any = None,
    classes: Sequence[Any] | None = None,
) -> float:
    r"""Compute the mean of the true-positive and the false-positive gap, or the larger of them.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Labels of two classes, or of several. Every group needs rows of both.
    y_score, sensitive_features, sample_weight, threshold, pos_label, given, classes
        As in `true_positive_gap`.
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

    With several classes it is the mean (or the largest) over the true classes y of the largest gap
    of :math:`P(d = c \mid S = s, Y = y)` over the decided classes c.

    Examples
    --------
    >>> y, scores, groups = [1, 0, 1, 0], [0.9, 0.2, 0.6, 0.7], [0, 0, 1, 1]
    >>> equalized_odds_gap(y, scores, sensitive_features=groups)
    0.5
    >>> equalized_odds_gap(y, scores, sensitive_features=groups, agg="worst_case")
    1.0
    """
    check_choice("agg", agg, ("mean", "worst_case"))  # fairlearn's names
    arguments = {name: value for name, value in locals().items() if name != "agg"}
    return _gap("equalized_odds_gap" if agg == "mean" else "worst_case_odds_gap", **arguments)


def worst_case_odds_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    threshold: float | None = 0.5,
    pos_label: Any = 1,
    given: Any = None,
    classes: Sequence[Any] | None = None,
) -> float:
    r"""Compute the larger one of the true-positive and the false-positive gap.

    Parameters
    ----------
    y_true, y_score, sensitive_features, sample_weight, threshold, pos_label, given, classes
        As in `equalized_odds_gap`, of which this is ``agg="worst_case"``.

    Returns
    -------
    float
        The larger one of the two gaps. Each is the largest over all pairs of groups.

    Notes
    -----
    .. math:: \max(\Delta\mathrm{TPR}(f), \Delta\mathrm{FPR}(f))

    Examples
    --------
    >>> y, scores, groups = [1, 0, 1, 0], [0.9, 0.2, 0.6, 0.7], [0, 0, 1, 1]
    >>> worst_case_odds_gap(y, scores, sensitive_features=groups)
    1.0
    """
    return _gap("worst_case_odds_gap", **locals())


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
    kind: str = "probability",
    given: Any = None,
    classes: Sequence[Any] | None = None,
    favourable: Sequence[Any] | None = None,
) -> dict[str, float]:
    r"""Compute every gap that the data allow, in one pass.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,), or None
        Labels of two classes, or of several. With labels, the gaps of error rates are computed
        too. With ``kind="number"`` these are the numbers to predict. Their standard deviation is
        then the unit of relative gaps.
    y_score : array-like of shape (n_rows,), or (n_rows, n_classes)
        Scores in [0, 1] or 0/1 decisions; or a probability for each of several classes. With
        ``kind="number"`` these are predictions, and any finite numbers are allowed.
    sensitive_features, sample_weight, given
        As in `demographic_parity_gap`.
    coupling : Coupling, optional
        A matching of these rows. With it, the matched gap is computed too.
    threshold : float, default=0.5
        A score at or above the threshold is accepted.
    bins : int or None, default=20
        Number of equal intervals for the total variation. None computes it exactly, which gives
        about 1 for continuous scores.
    pos_label, classes, favourable
        As in `true_positive_gap`.
    kind : {"probability", "number"}, default="probability"
        What the scores are. Predictions of a number are not decisions, so gaps of decisions are
        left out. Gaps of mean predictions, of their distributions by Wasserstein, and of matched
        people are in units of the target. With ``y_true`` they also have a relative version, whose
        name begins with ``relative_``.

    Returns
    -------
    dict
        Name of the measure to its value, in the order of `MEASURES`. With more than two groups
        each value is the largest over all pairs of groups.

    Notes
    -----
    In every part of a coupling,
    :math:`\Delta\overline{\mathrm{DP}} \le \Delta\mathrm{WDP} \le \Delta\mathrm{MDP}`. Theorem 3.7
    does not need scores in [0, 1].

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
    >>> hours = gap_table([35.0, 45.0] * 2, [30.0, 40.0, 42.0, 48.0],
    ...                   sensitive_features=["f", "f", "m", "m"], kind="number")
    >>> hours["mean_parity_gap"], hours["relative_mean_parity_gap"]
    (10.0, 2.0)
    """
    settings = Settings(threshold, bins, outcome=read_outcome(kind, "kind"))
    is_number = settings.outcome.has_unit
    scored = read_scored(
        y_score,
        sensitive_features,
        sample_weight,
        None if is_number else y_true,
        pos_label,
        settings,
        given=given,
        classes=classes,
        favourable=favourable,
        measure=MEASURES["demographic_parity_gap"],
    )
    settings = scored.settings
    check_coupling(coupling)
    if coupling is not None:
        coupling.read_groups(sensitive_features)
    if is_number and y_true is not None:
        target = NUMBER.read(y_true, name="y_true", n_rows=len(settings.outcome.read(y_score)))
        weights = read_weights(sample_weight, n_rows=len(target))
        settings = replace(settings, spread=standard_deviation(target, weights))
    return gap_values(scored.people, scored.scores, settings, coupling=coupling)


def standard_deviation(values: FloatArray, weights: FloatArray | None) -> float:
    """Return the weighted standard deviation of some values."""
    mean = np.average(values, weights=weights)
    return float(np.sqrt(np.average((values - mean) ** 2, weights=weights)))


@dataclass(frozen=True)
class PairGap:
    """The gap between two groups.

    Examples
    --------
    >>> from fairmatch.measures import gaps_by_pair
    >>> gaps_by_pair(None, [1, 0, 1, 1], sensitive_features=list("aabb"))
    [PairGap(first='a', second='b', value=0.5, better_off='b', label=None)]
    """

    #: The two groups.
    first: Any
    second: Any
    value: float  #: Their gap.
    #: The group that is accepted more often, or the one with the higher mean score if scores are
    #: compared. It is None if the two are equal. A high score counts as good for a person. With
    #: several classes it is the group that gets favourable classes more often, if they are named.
    better_off: Any
    #: The class whose people are compared, for the matched gap within a class: True is Y = 1, False
    #: is Y = 0. Otherwise it is None.
    label: int | None = None


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
    given: Any = None,
    classes: Sequence[Any] | None = None,
    favourable: Sequence[Any] | None = None,
) -> list[PairGap]:
    """Compute the gap between every two groups.

    Parameters
    ----------
    y_true, y_score, sensitive_features, given
        As in `gap_table`.
    measure : str or Measure, default="demographic_parity_gap"
        A measure, or the name of one in `fairmatch.measures.MEASURES`.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row. It cannot be combined with a coupling, which carries its own weights.
    coupling : Coupling, optional
        A matching of these rows. The matched gap needs it; other measures do not take it.
    threshold, bins, pos_label, classes, favourable
        As in `gap_table`. By default the total variation is exact.

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
    if asked.needs_coupling:
        scores = _read_matched(y_score, sensitive_features, coupling, sample_weight)
        assert coupling is not None
        return [_of_part(part, scores) for part in coupling.parts]
    if coupling is not None:
        raise CouplingError(
            f"coupling was given, but {asked.name} does not compare matched people. Leave it out, "
            "or ask for measure='matched_parity_gap'."
        )
    labels = y_true if asked.needs_labels or is_vectors(y_score) else None
    scored = read_scored(
        y_score,
        sensitive_features,
        sample_weight,
        labels,
        pos_label,
        Settings(threshold, bins),
        needs_labels=asked.needs_labels,
        given=given,
        classes=classes,
        favourable=favourable,
        measure=asked,
    )
    names = scored.people.groups.labels
    return [
        PairGap(
            names[a],
            names[b],
            asked.between(scored, (a, b)),
            _better(names[a], names[b], asked.difference(scored, (a, b))),
        )
        for a, b in combinations(scored.codes, 2)
    ]


def _better(first: Any, second: Any, difference: float) -> Any:
    return None if difference == 0.0 else (second if difference > 0.0 else first)


def _of_part(part: Coupling, scores: FloatArray) -> PairGap:
    difference = 0.0
    if scores.ndim == 1:
        difference = float((scores[part.target_index] - scores[part.source_index]) @ part.mass)
    first, second = part.groups
    better = _better(first, second, difference)
    return PairGap(first, second, part.gap(scores), better, part.label)


def gaps_by_class(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    measure: str = "demographic_parity_gap",
    sample_weight: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    favourable: Sequence[Any] | None = None,
    confidence: float = 0.95,
) -> list[ClassRateGap]:
    """Compute how often each class is given to every two groups, with intervals.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,), or None
        The class of every row. Gaps of recalls and of confusion rates need it.
    y_score : array-like of shape (n_rows, n_classes)
        A probability for every class. The decision is the largest; ties go to the later class.
    sensitive_features, sample_weight
        As in `demographic_parity_gap`.
    measure : str, default="demographic_parity_gap"
        Which rates to compare: shares of the classes ("demographic_parity_gap"), recalls
        ("true_positive_gap") or confusion rates given the true class ("equalized_odds_gap").
    classes, favourable
        As in `true_positive_gap`.
    confidence : float, default=0.95
        Probability that all intervals of the table hold at once, by Bonferroni.

    Returns
    -------
    list of ClassRateGap
        One for every two groups and every class, and for every true class if the measure compares
        within classes.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.eye(3)[[0, 1, 1, 2] * 50]
    >>> for row in gaps_by_class(None, scores, sensitive_features=list("aabb") * 50):
    ...     print(row.decided, row.rates, f"{row.low:.2f} to {row.high:.2f}")
    0 (0.5, 0.0) -0.62 to -0.37
    1 (0.5, 0.5) -0.16 to 0.16
    2 (0.0, 0.5) 0.37 to 0.62
    """
    asked = read_measure(measure)
    check_number("confidence", confidence, "(0, 1)")
    if not (asked.several and asked.needs_decisions):
        known = [name for name, own in MEASURES.items() if own.several and own.needs_decisions]
        raise InputError(
            f"measure={asked.name!r} has no rates of classes; choose one of {', '.join(known)}.",
            parameter="measure",
        )
    scored = read_scored(
        y_score,
        sensitive_features,
        sample_weight,
        y_true,
        needs_labels=asked.needs_labels,
        estimated=False,
        classes=classes,
        favourable=favourable,
        measure=asked,
        by_class=True,
    )
    return class_rate_gaps(asked, scored, confidence)


@dataclass(frozen=True)
class ClassRateGap:
    """How often two groups get one class.

    Examples
    --------
    >>> ClassRateGap("a", "b", "low", None, (0.25, 0.75), 0.3, 0.6).value
    0.5
    """

    #: The two groups.
    first: Any
    second: Any
    decided: Any  #: The class that people get.
    given: Any  #: The true class of the people who are compared; None is everybody.
    rates: tuple[float, float]  #: Shares of the two groups who get the class.
    #: Interval of the second share minus the first.
    low: float
    high: float

    @property
    def value(self) -> float:
        """The absolute difference of the two shares."""
        return abs(self.rates[1] - self.rates[0])


def class_rate_gaps(
    measure: Measure, scored: ScoredPeople, confidence: float
) -> list[ClassRateGap]:
    """Return the rates of all pairs of groups and cells, with intervals that hold at once."""
    names, classes = scored.people.groups.labels, scored.settings.outcome.classes
    pairs = list(combinations(scored.codes, 2))
    cells = [
        (label, cell)
        for label, own in measure.cells(scored.settings.outcome)
        for cell in own
        if cell is not None
    ]
    level = 1.0 - (1.0 - confidence) / (len(pairs) * len(cells))
    return [
        ClassRateGap(
            names[codes[0]],
            names[codes[1]],
            classes[cell],
            None if label is None else classes[label],
            (scored.part(codes[0], label, cell).mean, scored.part(codes[1], label, cell).mean),
            *rate_difference(
                *GroupPair(scored, codes, 0, np.random.default_rng).counts(label, cell), level
            ),
        )
        for codes in pairs
        for label, cell in cells
    ]


@dataclass(frozen=True)
class SelectionRate:
    """How often a group is accepted.

    Examples
    --------
    >>> from fairmatch.measures import selection_rates
    >>> selection_rates(None, [1, 0, 1, 1], sensitive_features=list("aabb"))["a"].ratio
    0.5
    """

    rate: float  #: Share of its people who are accepted.
    #: The rate divided by that of the most selected group. It is NaN if nobody is accepted.
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
    y_true, y_score, sensitive_features, sample_weight, threshold
        As in `demographic_parity_gap`, for scores of two classes.

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
    scored = read_scored(y_score, sensitive_features, sample_weight, settings=Settings(threshold))
    rates = {
        scored.people.groups.labels[code]: scored.part(code).rate(scored.settings)
        for code in scored.codes
    }
    most = max(rates.values())
    return {
        label: SelectionRate(rate, rate / most if most > 0.0 else float("nan"))
        for label, rate in rates.items()
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
    y_true, y_score, sensitive_features, sample_weight, threshold
        As in `selection_rates`.

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
    found = selection_rates(**locals())
    return min(group.ratio for group in found.values())
