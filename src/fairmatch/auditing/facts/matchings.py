"""Who is treated like whom: matched people, their score gaps and their distances."""

from __future__ import annotations

from dataclasses import dataclass

from fairmatch.auditing.facts.costs import FeatureCost
from fairmatch.auditing.facts.estimates import Estimate
from fairmatch.auditing.facts.nearest import NearestFair, Reach


@dataclass(frozen=True)
class Transport:
    """How far apart people are whom the model treats alike.

    Attributes
    ----------
    cost : float
        Mean squared distance between matched people, tied scores matched at least cost.
    cost_high : float
        The same with tied scores matched at greatest cost; equal to `cost` without ties.
    undetermined : float
        Share of the mass whose partners tied scores leave open.
    smallest : float
        Cost of the nearest matching of the same people (the marginal optimal transport map).
    random : float
        Expected cost of a random matching of the same people.
    relative, relative_high : float or None
        ``(cost - smallest) / (random - smallest)``, and the same of `cost_high`: 0 is as near as
        possible, 1 is as random, more is worse than random. None where the two are equal.
    features : tuple of FeatureCost
        The cost by column of the table, the largest part first.
    all_rows : float or None
        Cost of the fair matching of all rows, as far as it can be had; the others are of the
        sample. None where too many scores are tied or the table is too wide.
    solver_gap : float
        Relative duality gap to which `smallest` is proven.
    """

    cost: float
    cost_high: float
    undetermined: float
    smallest: float
    random: float
    relative: float | None
    relative_high: float | None
    features: tuple[FeatureCost, ...]
    solver_gap: float
    all_rows: float | None = None

    @property
    def shown(self) -> str:
        """The place on the scale for people to read, with its range where ties leave it open."""
        low, high = self.relative, self.relative_high
        if low is None:
            return "not stated"
        if high is None or f"{high:.2f}" == f"{low:.2f}":
            return f"{low:.2f}"
        return f"{low:.2f} to {high:.2f} (tied scores leave it open)"


@dataclass(frozen=True)
class PairFlips:
    """Decisions on the two people of a pair, as shares of all pairs; they sum to 1.

    Attributes
    ----------
    both, neither : float
        Both are accepted; none is.
    first_only, second_only : float
        Only the person of the first group (or of the second) is accepted: a flip.
    """

    both: float
    neither: float
    first_only: float
    second_only: float


@dataclass(frozen=True)
class MatchedScores:
    """Score gaps between matched people, under one matching of the sample.

    Attributes
    ----------
    matching : {"fair", "nearest_fair", "marginal", "joint"}
        Equal quantiles of the scores; the nearest of the matchings with the least mean score gap;
        the nearest matching; the nearest matching of people with the same label.
    gap : Estimate
        Mean score gap (the paper's MDP), the pairs taken as given.
    quantiles : dict
        Quantile of the gap over people ("0", "0.05", "0.25", "0.5", "0.75", "0.95", "1").
    histogram : tuple of float
        Share of the pairs in equal intervals of the gap, from 0 to the range of the scores.
    flips : PairFlips or None
        Decisions on the two people of a pair; None of predictions, which decide on nobody.
    transport_cost : float or None
        Mean squared distance between matched people; None without features.
    """

    matching: str
    gap: Estimate
    quantiles: dict[str, float]
    histogram: tuple[float, ...]
    flips: PairFlips | None
    transport_cost: float | None = None


@dataclass(frozen=True)
class Matching:
    """Who the model treats like whom, on a random sample of two groups.

    Attributes
    ----------
    n_sampled : tuple of two int
        People of each group in the sample.
    is_sample : bool
        False if the sample is everybody.
    matched_gaps : tuple of MatchedScores
        Under the fair matching; with features the marginal map; with labels too the joint map.
    transport : Transport or None
        None without features.
    refused : str or None
        Why there is no matching.
    groups : tuple of two str, or None
        The two groups; None where there is no matching.
    unproven : tuple of str
        What was left out because its solver could not prove it.
    nearest_fair : NearestFair or None
        The nearest matching that treats matched people as alike as can be; None without features.
    reach : tuple of Reach
        For each of the two groups, for how many people somebody near is scored alike; empty
        without features.
    """

    n_sampled: tuple[int, int]
    is_sample: bool
    matched_gaps: tuple[MatchedScores, ...] = ()
    transport: Transport | None = None
    refused: str | None = None
    groups: tuple[str, str] | None = None
    unproven: tuple[str, ...] = ()
    nearest_fair: NearestFair | None = None
    reach: tuple[Reach, ...] = ()
