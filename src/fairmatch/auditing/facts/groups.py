"""The facts about one group of people, and the gaps between two groups."""

from __future__ import annotations

from dataclasses import dataclass

from fairmatch.auditing.facts.estimates import Estimate


@dataclass(frozen=True)
class CalibrationBin:
    """People whose scores fall into one interval, and what became of them.

    Attributes
    ----------
    low, high : float
        The ends of the interval. The lower end belongs to it; in the last interval both ends do.
    n_rows : int
        Number of people in the interval.
    mean_score : float or None
        Their mean score, or None if nobody is in the interval.
    positive_rate : Estimate
        The share of them with a positive label.
    """

    low: float
    high: float
    n_rows: int
    mean_score: float | None
    positive_rate: Estimate


@dataclass(frozen=True)
class GroupFacts:
    """One group: its size, its scores and, with labels, how well the model does there.

    Attributes
    ----------
    label : str
        Name of the group.
    n_rows : int
        Number of people in the group.
    selection_rate : Estimate
        Share of people who are selected. It has no value for predictions, which select nobody.
    mean_score : Estimate
        Mean score.
    score_counts : tuple of int
        Number of people per interval of `Audit.score_edges`. With survey weights these are shares
        of the weight, as whole numbers that sum to `n_rows`.
    base_rate : Estimate or None
        Share of people with the favourable label. It is None without labels.
    accuracy : Estimate or None
        Share of decisions that agree with the label. It is None without labels.
    true_positive_rate, false_positive_rate : Estimate or None
        Share selected among people with the favourable label, and among the others. They are None
        without labels.
    auc : Estimate or None
        Area under the receiver operating characteristic: the quality of the ranking. It is None
        without labels.
    calibration : tuple of CalibrationBin
        Scores and labels by interval of scores. It is empty without labels.
    calibration_error : float or None
        Distance between mean score and share of positive labels, averaged over the bins with the
        number of people as weight. It is None without labels.
    weight : float or None
        Sum of the weights. It is None where every row is one person.
    effective_size : float or None
        How many people of equal weight the rows are worth. It is None without survey weights.
    """

    label: str
    n_rows: int
    selection_rate: Estimate
    mean_score: Estimate
    score_counts: tuple[int, ...]
    base_rate: Estimate | None = None
    accuracy: Estimate | None = None
    true_positive_rate: Estimate | None = None
    false_positive_rate: Estimate | None = None
    auc: Estimate | None = None
    calibration: tuple[CalibrationBin, ...] = ()
    calibration_error: float | None = None
    weight: float | None = None
    effective_size: float | None = None

    @property
    def estimates(self) -> list[Estimate]:
        """Everything that is stated with an interval, or refused."""
        found = [self.selection_rate, self.mean_score, self.base_rate, self.accuracy]
        found += [self.true_positive_rate, self.false_positive_rate, self.auc]
        return [fact for fact in found if fact is not None]


@dataclass(frozen=True)
class Gap:
    """A gap between two groups, with its confidence interval.

    Attributes
    ----------
    name, symbol : str
        Name of the measure in `fairmatch.measures`, and the paper's symbol.
    value, low, high : float or None
        The gap and the limits of its interval. They are None where no statement is made.
    signed : float or None
        Second group minus first, for gaps that are a difference of two rates or means.
    p_value : float or None
        P-value of a permutation test of equal score distributions, if the interval rests on one.
    method : str
        How the interval was computed.
    refused : str or None
        Why no statement is made, or None.
    groups : tuple of two str, or None
        The two groups. It is None where no statement is made.
    favoured : str or None
        The group that is better off, for gaps that have a direction and are not 0.
    """

    name: str
    symbol: str
    value: float | None
    low: float | None
    high: float | None
    signed: float | None
    p_value: float | None
    method: str
    refused: str | None = None
    groups: tuple[str, str] | None = None
    favoured: str | None = None


@dataclass(frozen=True)
class AttributeFacts:
    """One of several attributes, by itself.

    Attributes
    ----------
    name : str
        The attribute.
    groups : tuple of GroupFacts
        Its groups.
    selection_ratio : Estimate
        Smallest selection rate divided by the largest.
    gaps : tuple of Gap
        Every gap that the data allow, each the largest over pairs of groups.
    pair_gaps : tuple of Gap
        The gaps of each group with the largest one, and of the two groups that are farthest apart.
        It is empty for two groups.
    reference : str
        The largest group.
    unknown : tuple of str
        The group of people for whom the attribute is missing.
    """

    name: str
    groups: tuple[GroupFacts, ...]
    selection_ratio: Estimate
    gaps: tuple[Gap, ...]
    pair_gaps: tuple[Gap, ...]
    reference: str
    unknown: tuple[str, ...] = ()
