r"""Gaps within the levels of given factors, such as people with the same job and grade."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import hypergeom

from fairmatch.exceptions import GroupError, InputError
from fairmatch.measures.distributions import GroupScores, ScoredPeople, Settings
from fairmatch.measures.gaps import read_scored
from fairmatch.measures.registry import MEASURES, Measure, read_measure
from fairmatch.people.checks import check_choice
from fairmatch.people.memberships import GroupProbabilities
from fairmatch.people.outcome import read_outcome

WEIGHTS: dict[str, Callable[[float, float], float]] = {
    "population": lambda n, m: n + m,
    "reference": lambda n, m: m,
    "mantel_haenszel": lambda n, m: n * m / (n + m),
}
"""The weight of a stratum with n people of the group and m of the reference group, by name."""

# Up to this many people of a stratum, the mean difference by chance is that of all permutations.
_EXACT = 2000


@dataclass(frozen=True)
class StratumGap:
    """The difference of two groups within a stratum.

    Examples
    --------
    >>> StratumGap("title cook", (40.0, 60.0), (0.25, 0.5), 0.3).difference
    -0.25
    """

    label: str  #: The stratum.
    #: People of the group and of the reference group, or the sums of their weights.
    sizes: tuple[float, float]
    #: Rates or means of the two groups. None for a group without people in the stratum.
    levels: tuple[float | None, float | None]
    weight: float  #: Share of the stratum in the conditional gap. 0 if it cannot be compared.

    @property
    def difference(self) -> float | None:
        """The group's rate or mean minus the reference group's; None without people of both."""
        first, second = self.levels
        return None if first is None or second is None else first - second


@dataclass(frozen=True)
class ConditionalGap:
    r"""How far a group is from the reference group among people with the same given factors.

    Examples
    --------
    >>> found = conditional_gaps(None, [1, 0, 0, 1, 1, 0], sensitive_features=list("ffmmmm"),
    ...                          given=["x", "y", "y", "x", "x", "y"])
    >>> found[0].value, found[0].overlap
    (0.0, (1.0, 1.0))
    """

    #: The two groups.
    group: Any
    reference: Any
    measure: str  #: Name of the measure.
    marginal: float  #: The group's rate or mean minus the reference group's, without conditioning.
    value: float  #: The same within strata: the weighted mean of the differences.
    #: The weighted mean of the sizes of the differences. Differences of opposite sign cancel in
    #: ``value`` but not here.
    absolute: float
    #: What ``absolute`` would be on average if groups made no difference, in strata of these sizes.
    chance: float
    #: Share of the group, and of the reference group, in strata that have people of both.
    overlap: tuple[float, float]
    #: Conditional demographic disparity of the group. None for measures without decisions, and if
    #: everybody or nobody is accepted.
    disparity: float | None
    weights: str  #: How strata are weighted.
    strata: tuple[StratumGap, ...]  #: Every stratum, with those that cannot be compared.

    @property
    def excess(self) -> float:
        """How much the mean size of the differences exceeds its average by chance."""
        return self.absolute - self.chance

    @property
    def reverses(self) -> bool:
        """Whether the difference changes its sign within strata, as in Simpson's paradox."""
        return self.marginal * self.value < 0.0

    @property
    def compared(self) -> tuple[StratumGap, ...]:
        """The strata that have people of both groups."""
        return tuple(stratum for stratum in self.strata if stratum.weight > 0.0)


def conditional_gaps(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    given: Any,
    measure: str | Measure = "demographic_parity_gap",
    reference: Any = None,
    weights: str = "population",
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.5,
    pos_label: Any = 1,
    kind: str = "probability",
) -> list[ConditionalGap]:
    r"""Compare every group with the reference group among people with the same given factors.

    Parameters
    ----------
    y_true, sensitive_features, sample_weight, threshold, pos_label
        As in `true_positive_gap`, for two classes. Only gaps of error rates need labels.
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1] or 0/1 decisions. With ``kind="number"``, any finite numbers such as wages.
    given : array-like of shape (n_rows,), or table
        The factors. Their combinations are the strata. A number with more than ten different
        values is cut into five bands of about as many rows; the labels of strata state them.
    measure : str or Measure, default="demographic_parity_gap"
        A measure that is a difference of rates or means within one class.
    reference : a group label, optional
        The group with which every other group is compared. By default it is the largest.
    weights : {"population", "reference", "mantel_haenszel"}, default="population"
        Weight of a stratum with :math:`n_1` people of the group and :math:`n_0` of the reference
        group: :math:`n_1 + n_0`, :math:`n_0`, or :math:`n_1 n_0 / (n_1 + n_0)`.
    kind : {"probability", "number"}, default="probability"
        What the scores are. With "number", pass ``measure="mean_parity_gap"``.

    Returns
    -------
    list of ConditionalGap
        One for every group but the reference group.

    Notes
    -----
    With the difference :math:`d_k` in stratum :math:`k` and weights :math:`w_k` that sum to 1,
    ``value`` is :math:`\sum_k w_k d_k` and ``absolute`` is :math:`\sum_k w_k |d_k|`. Even if groups
    make no difference, the latter is positive. ``chance`` is its mean over all permutations of the
    group labels within each stratum: exact for decisions without survey weights in strata of up to
    2,000 people, and by the normal approximation otherwise.

    In a stratum of :math:`n_k` people of all groups, demographic disparity is the group's share of
    the rejected minus its share of the accepted people (0 where there are none). Conditional
    demographic disparity is :math:`\sum_k n_k \mathrm{DD}_k / \sum_k n_k` over all strata, as
    Amazon SageMaker Clarify reports it: the group is compared with everybody else, not with the
    reference group.

    Examples
    --------
    Within each job, women and men are hired equally often. But more women apply for the job that
    hires few people.

    >>> sex = ["f"] * 100 + ["m"] * 100
    >>> job = ["cook"] * 80 + ["guide"] * 20 + ["cook"] * 20 + ["guide"] * 80
    >>> hired = ([1] + [0] * 3) * 20 + [1, 1, 1, 0] * 5 + ([1] + [0] * 3) * 5 + [1, 1, 1, 0] * 20
    >>> (found,) = conditional_gaps(None, hired, sensitive_features=sex, given=job, reference="m")
    >>> print(f"{found.marginal:.2f}, given the job {found.value:.2f}")
    -0.30, given the job 0.00
    """
    if isinstance(sensitive_features, GroupProbabilities) and not sensitive_features.is_certain:
        raise GroupError(
            "The groups are probabilities, but conditional_gaps permutes known groups to find "
            "what chance gives. fairmatch.measures.demographic_parity_gap(…, given=…) and the "
            "other gaps take both given and probabilities.",
            parameter="sensitive_features",
        )
    asked = read_measure(measure, outcome=read_outcome(kind, "kind"))
    settings = Settings(threshold, outcome=read_outcome(kind, "kind"))
    labels = y_true if asked.needs_labels else None
    read = y_score, sensitive_features, sample_weight, labels, pos_label, settings
    scored = read_scored(*read, needs_labels=asked.needs_labels, given=given)
    if scored.people.strata is None:
        raise InputError(
            "given is None, but a comparison within strata needs factors. Pass a column or a "
            "table, or use gaps_by_pair.",
            parameter="given",
        )
    return gaps_within(scored, asked, reference, weights)


def gaps_within(
    scored: ScoredPeople, measure: Measure, reference: Any = None, weights: str = "population"
) -> list[ConditionalGap]:
    """Return the conditional gaps of scored people who have strata."""
    if not measure.is_difference:
        known = [name for name, own in MEASURES.items() if own.is_difference]
        raise InputError(
            f"{measure.name} is not a difference of rates or means within one class. Pass one of "
            f"{', '.join(known)}.",
            parameter="measure",
        )
    check_choice("weights", weights, WEIGHTS)
    target = scored.people.groups.reference(reference, scored.people.weights)
    sources = [code for code in scored.codes if code != target]
    return [_gap(scored, measure, code, target, weights) for code in sources]


def _gap(
    scored: ScoredPeople, measure: Measure, source: int, target: int, how: str
) -> ConditionalGap:
    (label,) = measure.labels
    settings, names = scored.settings, scored.people.groups.labels
    unit, codes = measure.unit_of(settings), (source, target)
    scored.strata(codes, label)  # raise if no stratum can be compared
    assert scored.people.strata is not None
    strata, chance = [], []
    for code, own in scored.within.items():
        parts = own.group(source, label), own.group(target, label)
        n, m = (part.weights.total for part in parts)
        first, second = (
            measure.level_of(part, settings) / unit if part.weights.total > 0.0 else None
            for part in parts
        )
        weight = WEIGHTS[how](n, m) if min(n, m) > 0.0 else 0.0
        name = scored.people.strata.labels[code]
        strata.append(StratumGap(name, (n, m), (first, second), weight))
        chance.append(_chance(measure, settings, *parts) / unit if weight else 0.0)
    total = sum(one.weight for one in strata)
    strata = [replace(one, weight=one.weight / total) for one in strata]
    first, second = (measure.level_of(scored.part(code, label), settings) for code in codes)
    reached = np.sum([one.sizes for one in strata if one.weight], axis=0)
    overlap = (reached / np.sum([one.sizes for one in strata], axis=0)).tolist()
    return ConditionalGap(
        group=names[source],
        reference=names[target],
        measure=measure.name,
        marginal=(first - second) / unit,
        value=sum(one.weight * (one.difference or 0.0) for one in strata),
        absolute=sum(one.weight * abs(one.difference or 0.0) for one in strata),
        chance=sum(one.weight * mean for one, mean in zip(strata, chance, strict=True)),
        overlap=(overlap[0], overlap[1]),
        disparity=_disparity(scored, measure, source),
        weights=how,
        strata=tuple(strata),
    )


def _disparity(scored: ScoredPeople, measure: Measure, source: int) -> float | None:
    """Return the conditional demographic disparity of a group; None if it is not defined."""
    if not measure.needs_decisions or scored.settings.threshold is None:
        return None
    (label,), at = measure.labels, scored.codes.index(source)
    groups = [[own.group(code, label) for code in scored.codes] for own in scored.within.values()]
    sizes = np.array([[one.weights.total for one in own] for own in groups])
    rates = [
        [one.rate(scored.settings) if one.weights.total else 0.0 for one in own] for own in groups
    ]
    hits = sizes * rates
    misses = sizes - hits
    if not (hits.any() and misses.any()):
        return None
    rejected, accepted = (
        own[:, at] / np.where(own.any(axis=1), own.sum(axis=1), 1.0) for own in (misses, hits)
    )
    return float(sizes.sum(axis=1) @ (rejected - accepted) / sizes.sum())


def _chance(measure: Measure, settings: Settings, first: GroupScores, second: GroupScores) -> float:
    """Return the mean size of the difference if group labels were permuted at random."""
    counted = measure.needs_decisions and settings.threshold is not None
    if counted and not first.weights.is_survey:
        (hits, n), (others, m) = first.counts(settings), second.counts(settings)
        total = round(hits + others)
        if n + m <= _EXACT:
            taken = np.arange(max(0, total - m), min(n, total) + 1)
            chances = hypergeom.pmf(taken, n + m, total, n)
            return float(chances @ np.abs(taken / n - (total - taken) / m))
    parts = first, second
    values = np.concatenate([own.selected(settings) if counted else own.values for own in parts])
    mass = np.concatenate(
        [np.ones(len(own.values)) if (by := own.weights.values) is None else by for own in parts]
    )
    sizes = first.weights.size, second.weights.size
    mean = np.average(values, weights=mass)
    effective = sum(sizes)
    variance = np.average((values - mean) ** 2, weights=mass) * effective / max(effective - 1, 1.0)
    return float(np.sqrt(2.0 / np.pi * variance * (1.0 / sizes[0] + 1.0 / sizes[1])))
