"""What holds in one group of people, and what differs between two of them."""

from __future__ import annotations

from dataclasses import dataclass

from fairmatch.auditing.facts.estimates import Estimate


@dataclass(frozen=True)
class CalibrationBin:
    """People whose scores fall into one interval, and what became of them.

    Attributes
    ----------
    low, high : float
        The interval of scores, closed on the left (the last one on both sides).
    n_rows : int
        People in it.
    mean_score : float or None
        Their mean score; None where there are none.
    positive_rate : Estimate
        Their share of positive labels.
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
        People in it.
    selection_rate : Estimate
        Share of selected people; without a value of predictions, which select nobody.
    mean_score : Estimate
        Mean score.
    score_counts : tuple of int
        People per interval of `Audit.score_edges`. With weights of a survey these are the shares
        of the weight, as whole numbers that sum to `n_rows`.
    base_rate, accuracy, true_positive_rate, false_positive_rate, auc : Estimate or None
        Share of people with the favourable label; share of decisions that agree with the label;
        share selected of the people with the favourable label, and of the others; quality of the
        ranking. None without labels.
    calibration : tuple of CalibrationBin
        Empty without labels.
    calibration_error : float or None
        Mean distance between score and outcome over the bins, weighted by people.
    weight : float or None
        Sum of the rows' weights; None where every row is one person.
    effective_size : float or None
        How many people of equal weight are worth as much; None without weights of a survey.
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
        The gap and the limits of its interval; None where no statement is made.
    signed : float or None
        Second group minus first, for gaps that are a difference of two rates or means.
    p_value : float or None
        Of a permutation test of equal score distributions, where the interval rests on one.
    method : str
        How the interval was made.
    refused : str or None
        Why no statement is made.
    groups : tuple of two str, or None
        The two groups; None where no statement is made.
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
        Smallest selection rate over the largest.
    gaps, pair_gaps : tuple of Gap
        As in `Audit`: the largest over pairs, and pair by pair.
    reference : str
        The largest group.
    unknown : tuple of str
        The group of people of whom the attribute is missing.
    """

    name: str
    groups: tuple[GroupFacts, ...]
    selection_ratio: Estimate
    gaps: tuple[Gap, ...]
    pair_gaps: tuple[Gap, ...]
    reference: str
    unknown: tuple[str, ...] = ()
