"""Who is treated like whom: matched people, their score gaps and their distances."""

from __future__ import annotations

from dataclasses import dataclass

from fairmatch.auditing.facts.costs import FeatureCost
from fairmatch.auditing.facts.estimates import Estimate
from fairmatch.auditing.facts.nearest import NearestFair, Reach


@dataclass(frozen=True)
class Transport:
    """The distances between people whom the model treats alike.

    Attributes
    ----------
    cost : float
        Mean squared distance between matched people if tied scores are matched at least cost.
    cost_high : float
        The same if tied scores are matched at greatest cost. It equals `cost` without ties.
    undetermined : float
        Share of the mass for which tied scores leave the partners open.
    smallest : float
        Cost of the nearest matching of the same people (the marginal optimal transport map).
    random : float
        Expected cost of a random matching of the same people.
    relative, relative_high : float or None
        ``(cost - smallest) / (random - smallest)``, and the same for `cost_high`. It is 0 for a
        matching as near as possible and 1 for one that is no better than random. It is None where
        `smallest` and `random` are equal.
    features : tuple of FeatureCost
        The cost by column of the table, with the largest part first.
    solver_gap : float
        Relative duality gap to which `smallest` is proven.
    all_rows : float or None
        Cost of the fair matching of all rows; the other costs are those of the sample. It is None
        where too many scores are tied or the table is too large.
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
        """The relative cost as text, with its range where tied scores leave it open."""
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
        Share of pairs in which both people are selected, and in which neither is.
    first_only, second_only : float
        Share of pairs in which only the person of the first group is selected, and in which only
        the person of the second group is. These are flips.
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
        ``"fair"`` matches equal quantiles of the scores. ``"nearest_fair"`` is the nearest of the
        matchings whose mean score gap is nearly the least. ``"marginal"`` is the nearest matching.
        ``"joint"`` is the nearest matching of people with the same label.
    gap : Estimate
        Mean score gap (the paper's matched gap, MDP). The interval takes the pairs as given.
    quantiles : dict
        Probability ("0", "0.05", "0.25", "0.5", "0.75", "0.95", "1") to the quantile of the gap.
    histogram : tuple of float
        Share of the pairs in equal intervals of the gap, from 0 to the range of the scores.
    flips : PairFlips or None
        Decisions on the two people of a pair. It is None for predictions, which decide on nobody.
    transport_cost : float or None
        Mean squared distance between matched people. It is None without features.
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
        Number of people of each group in the sample.
    is_sample : bool
        False if the sample holds everybody.
    matched_gaps : tuple of MatchedScores
        Score gaps under each matching. There is always the fair matching. With features there are
        also the nearest one and the nearest fair one, and with labels the joint one.
    transport : Transport or None
        Distances between people whom the model treats alike. It is None without features, or if
        the nearest matching could not be proven.
    refused : str or None
        Why there is no matching, or None.
    groups : tuple of two str, or None
        The two groups. It is None if there is no matching.
    unproven : tuple of str
        What was left out because the solver could not prove it.
    nearest_fair : NearestFair or None
        The nearest matching that treats matched people as alike as possible. It is None without
        features, or if it could not be proven.
    reach : tuple of Reach
        For each of the two groups, the share of people with a near person who is scored alike. It
        is empty without features.
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
