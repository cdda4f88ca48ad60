"""What an audit found: plain dataclasses of facts, no plotting and no arrays."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from html import escape
from math import isclose
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast
from weakref import finalize

import msgspec
import numpy as np
import pandas as pd

from fairmatch.auditing.card import model_card
from fairmatch.auditing.counterparts import Explanation, Neighbourhood
from fairmatch.exceptions import ColumnError, InputError
from fairmatch.measures.conditional import ConditionalGap, StratumGap
from fairmatch.measures.intervals import wilson
from fairmatch.measures.numbers import NumberDependence
from fairmatch.measures.registry import MEASURES
from fairmatch.people.checks import FloatArray
from fairmatch.people.encoding import Table
from fairmatch.people.files import write_whole
from fairmatch.people.groups import read_groups
from fairmatch.people.leaks import Leak
from fairmatch.people.people import People
from fairmatch.people.roles import ColumnRole
from fairmatch.people.weights import Rate


@dataclass(frozen=True)
class Estimate:
    """A number and its confidence interval.

    Examples
    --------
    >>> Estimate(0.25, 0.2, 0.3)
    Estimate(value=0.25, low=0.2, high=0.3, refused=None)
    """

    #: The estimate and the limits of its interval. All are None where no statement is made, and the
    #: limits alone are None where there is no interval.
    value: float | None
    low: float | None = None
    high: float | None = None
    refused: str | None = None  #: Why no statement is made, or None.

    @classmethod
    def of_rate(cls, rate: Rate, confidence: float) -> Estimate:
        """Return a share with Wilson's interval."""
        return cls(rate.share, *wilson(rate.hits, rate.people, confidence))


@dataclass(frozen=True)
class FeatureCost:
    """The part of a transport cost that comes from one column of the table."""

    name: str  #: The column, before encoding.
    #: Its part of the cost of the matching in question, of the nearest matching, and of a random
    #: one.
    cost: float
    smallest: float
    random: float
    share: float  #: Its share of the cost of the matching in question.


@dataclass(frozen=True)
class About:
    """Title, author, date and purpose of an audit."""

    #: The texts as they were given, or None where none was given.
    title: str | None = None
    author: str | None = None
    date: str | None = None
    purpose: str | None = None


@dataclass(frozen=True)
class CalibrationBin:
    """People whose scores fall into one interval, and what became of them."""

    #: The ends of the interval. The lower end belongs to it; in the last interval both ends do.
    #: Scores that take few values have an interval each, whose ends are equal.
    low: float
    high: float
    n_rows: int  #: Number of people in the interval.
    mean_score: float | None  #: Their mean score, or None if nobody is in the interval.
    positive_rate: Estimate  #: The share of them with a positive label.


@dataclass(frozen=True)
class GroupFacts:
    """One group: its size, its scores and, with labels, how well the model does there."""

    label: str  #: Name of the group.
    n_rows: int  #: Number of people in the group.
    #: Share of people who are selected. It has no value for predictions, which select nobody.
    selection_rate: Estimate
    mean_score: Estimate  #: Mean score.
    #: Number of people per interval of `Audit.score_edges`. With survey weights these are shares of
    #: the weight, as whole numbers that sum to `n_rows`.
    score_counts: tuple[int, ...]
    #: Share of people with the favourable label. It is None without labels.
    base_rate: Estimate | None = None
    #: Share of decisions that agree with the label. It is None without labels.
    accuracy: Estimate | None = None
    #: Share selected among people with the favourable label, and among the others. They are None
    #: without labels.
    true_positive_rate: Estimate | None = None
    false_positive_rate: Estimate | None = None
    #: Area under the receiver operating characteristic: the quality of the ranking. It is None
    #: without labels.
    auc: Estimate | None = None
    #: Scores and labels by interval of scores. It is empty without labels.
    calibration: tuple[CalibrationBin, ...] = ()
    #: Distance between mean score and share of positive labels, averaged over the bins with the
    #: number of people as weight. It is None without labels, and for scores that are no
    #: probabilities: decisions, and scores with a range of their own.
    calibration_error: float | None = None
    weight: float | None = None  #: Sum of the weights. It is None where every row is one person.
    #: How many people of equal weight the rows are worth. It is None without survey weights.
    effective_size: float | None = None
    #: Selection rate over that of `Audit.ratio_reference`. It is None where one of the two is not
    #: stated, and for people of unknown group.
    ratio: float | None = None

    @property
    def estimates(self) -> list[Estimate]:
        """Everything that is stated with an interval, or not stated for a reason."""
        found = [self.selection_rate, self.mean_score, self.base_rate, self.accuracy]
        found += [self.true_positive_rate, self.false_positive_rate, self.auc]
        return [fact for fact in found if fact is not None]


@dataclass(frozen=True)
class Gap:
    """A gap between two groups, with its confidence interval."""

    #: Name of the measure in `fairmatch.measures`, and the paper's symbol.
    name: str
    symbol: str
    #: The gap and the limits of its interval. They are None where no statement is made.
    value: float | None
    low: float | None
    high: float | None
    #: Second group minus first, for gaps that are a difference of two rates or means.
    signed: float | None
    #: P-value of a permutation test of equal score distributions, if the interval rests on one.
    p_value: float | None
    method: str  #: How the interval was computed.
    refused: str | None = None  #: Why no statement is made, or why there are no limits, or None.
    groups: tuple[str, str] | None = None  #: The two groups. It is None where no statement is made.
    #: The group that is better off, for gaps that have a direction and are not 0.
    favoured: str | None = None
    #: The average of the value if the groups did not differ. The largest gap over pairs of groups
    #: is never 0 by chance, and is large with many small groups.
    expected: float | None = None
    #: The smallest true gap between these two groups that this many people would reveal with a
    #: probability of 80 %. It is None for distances between distributions.
    detectable: float | None = None
    #: For the gap of matched people: the excess over the gap of permuted groups, at the least and
    #: at the greatest mean gap of all matchings that are as good as the nearest. The value is the
    #: first of them, and the limits go around both.
    ends: tuple[float, float] | None = None
    #: The least and the greatest mean gap themselves. They are never 0, even if the group plays no
    #: part, so they are meaningful only next to ``raw_expected``.
    raw: tuple[float, float] | None = None
    #: The averages of the two if the group played no part.
    raw_expected: tuple[float, float] | None = None
    #: Where there are people without a group: the smallest and the largest gap over all ways in
    #: which they could belong to the compared groups. It is None for gaps that have no such range,
    #: and where every group is known.
    unknown_range: tuple[float, float] | None = None

    @classmethod
    def unstated(cls, name: str, symbol: str, reason: str | None) -> Gap:
        """Return a gap of which nothing is stated, with the reason."""
        return cls(name, symbol, *(None,) * 5, "no statement", reason)


@dataclass(frozen=True)
class PartFacts:
    """The groups of one of several attributes, or the people of one period, by themselves."""

    name: str  #: The attribute, or the period.
    groups: tuple[GroupFacts, ...]  #: Its groups.
    selection_ratio: Estimate  #: Smallest selection rate divided by that of `ratio_reference`.
    gaps: tuple[Gap, ...]  #: Every gap that the data allow, each the largest over pairs of groups.
    #: The gaps of each group with the reference group, and of the two groups that are farthest
    #: apart. It is empty for two groups.
    pair_gaps: tuple[Gap, ...]
    reference: str  #: The largest group, or the value of the reference group that was named.
    unknown: tuple[str, ...] = ()  #: The group of people for whom the attribute is missing.
    #: The group whose selection rate others are divided by, as in `Audit`.
    ratio_reference: str | None = None


@dataclass(frozen=True)
class Change:
    """How the difference between two groups changes from one period to the next."""

    #: The two periods, and the two groups.
    before: str
    after: str
    group: str
    reference: str
    measure: str  #: Name of the measure that the rates or means belong to.
    #: The group's rate or mean minus that of the reference group, in the two periods.
    differences: tuple[float, float]
    #: The second difference minus the first. The interval and the test take the people of the two
    #: periods as different people, and the interval holds for this change by itself.
    change: Estimate
    p_value: float  #: P-value of the test that the difference does not change.
    p_adjusted: float = 1.0  #: The p-value adjusted for the number of changes (Holm).


RULE = (
    "6 RCNY 5-300 to 5-304 (Local Law 144 of 2021), as adopted by the New York City Department of "
    "Consumer and Worker Protection on 6 April 2023 and enforced since 5 July 2023"
)
"""The text whose vocabulary the tables follow."""

SMALL_SHARE = 0.02
"""The rule allows categories with a smaller share of the people to be left out of impact ratios."""

FOUR_FIFTHS = 0.8
"""29 CFR 1607.4(D) sees evidence of adverse impact below this ratio. Local Law 144 sets none."""


@dataclass(frozen=True)
class CategoryImpact:
    """One category: how often its people are selected, and how often they score high."""

    category: str  #: The category, such as "female" or "female, Black".
    values: tuple[str, ...]  #: The value of each attribute.
    #: Number of people in the category, and number of those selected, which is None where it is
    #: withheld.
    n_people: int
    n_selected: int | None
    share: float  #: Its share of all people whose category is known.
    selection_rate: Estimate  #: Share of the people who are selected.
    impact_ratio: Estimate  #: Selection rate divided by that of `ImpactTable.most_selected`.
    #: P-value of Fisher's exact test that the selection rate equals that of the category it is
    #: compared with. It is None for that category itself, or if there is no such category.
    p_value: float | None
    #: Share of the people whose score is better than the median of everybody. It is None where the
    #: scores are decisions.
    scoring_rate: Estimate | None
    #: Scoring rate divided by that of the category with the highest scoring rate.
    scoring_ratio: Estimate | None
    #: Whether its share is below 2%. Such a category is shown, but others are not compared with it.
    is_small: bool
    #: Whether the impact ratio is below 0.8. It is None without a ratio.
    below_four_fifths: bool | None
    #: Whether the people are so few that the audit states nothing else about them.
    is_few: bool = False
    p_adjusted: float | None = None  #: The p-value adjusted for the number of categories (Holm).
    #: By how many standard deviations the selection rate differs from that of the category it is
    #: compared with (two-sample z); negative if it is lower.
    standard_deviations: float | None = None
    #: The number of standard deviations that has the p-value of Fisher's exact test.
    exact_standard_deviations: float | None = None
    #: How many more selections would bring the category to the rate it is compared with.
    shortfall: float | None = None
    #: Whether one selection more or less changes the verdict of the four-fifths rule.
    flips: bool | None = None
    #: With survey weights: the weight of the people, the weight of those selected, and the
    #: effective number of people. The selection rate is the second divided by the first. They are
    #: None without survey weights.
    weight: float | None = None
    weight_selected: float | None = None
    effective_size: float | None = None


@dataclass(frozen=True)
class ImpactTable:
    """The categories of one attribute, or of several crossed."""

    attributes: tuple[str, ...]  #: The attribute, or those whose combinations are the categories.
    #: One per category that occurs, in the order of the labels.
    categories: tuple[CategoryImpact, ...]
    n_people: int  #: Number of people whose category is known.
    #: Number of people who were scored but whose category is unknown. They are left out. It is None
    #: where the number is withheld.
    n_unknown: int | None
    #: The categories that others are compared with: those with the highest rate among categories
    #: with 2% of the people and ``min_group_size`` people (the first of several), or the reference
    #: group that was named.
    most_selected: str | None
    highest_scoring: str | None
    #: Median score of everybody. It is None where the scores are decisions.
    median_score: float | None
    rule: str = RULE  #: The text whose vocabulary the table follows.

    def highest(self, rate: str) -> tuple[str, ...]:
        """Return the categories that share the highest rate, of those that are large enough.

        The result is empty if all their rates are 0.

        Parameters
        ----------
        rate : {"selection_rate", "scoring_rate"}
            Which rate.
        """
        rates: dict[str, float] = {
            category.category: getattr(category, rate).value
            for category in self.categories
            if not category.is_small
            and getattr(category, rate) is not None
            and getattr(category, rate).value is not None
        }
        few = {category.category for category in self.categories if category.is_few}
        rates = {name: own for name, own in rates.items() if name not in few} or rates
        most = max(rates.values(), default=0.0)
        if most == 0.0:
            return ()
        return tuple(name for name, own in rates.items() if isclose(own, most, rel_tol=1e-9))


@dataclass(frozen=True)
class StageFacts:
    """Who gets from one stage of a procedure to another."""

    stage: str  #: The stage.
    #: The stage whose people are counted: the one before, or the first one for the whole procedure.
    among: str
    impact: tuple[ImpactTable, ...]  #: Rates and impact ratios, as in `Audit.impact`.


@dataclass(frozen=True)
class CurvePoint:
    """A point of a model's curve: how near matched people can be at a mean score gap."""

    gap: float  #: The mean score gap that is allowed.
    cost: float  #: The least mean squared distance between matched people at this gap.
    #: Where the cost lies between that of the nearest matching (0) and that of a random one (1). It
    #: is None where these two are equal.
    position: float | None


@dataclass(frozen=True)
class NearestFair:
    """The nearest of all matchings whose mean score gap is (nearly) the least possible one.

    Many matchings have the least mean score gap. Matching equal quantiles is one of them, and it
    ignores who the people are. This is the one in which matched people are most alike.
    """

    slack: float  #: How far the mean score gap may exceed the least possible one.
    #: Mean score gap of this matching, and the least possible one in the sample, which is the
    #: Wasserstein distance of the scores.
    score_gap: float
    least_gap: float
    #: Mean squared distance between matched people: in this matching, in the nearest matching of
    #: the same people, and in a random one on average.
    cost: float
    smallest: float
    random: float
    #: ``(cost - smallest) / (random - smallest)``. It is 0 for a matching as near as possible and 1
    #: for one that is no better than random. It is None where the two are equal.
    position: float | None
    strict_position: float | None  #: The same without any slack.
    #: The cost by column of the table, with the largest part first.
    features: tuple[FeatureCost, ...]
    #: The curve from the least mean score gap to that of the nearest matching.
    curve: tuple[CurvePoint, ...]
    solver_gap: float  #: Relative duality gap to which the cost is proven.


@dataclass(frozen=True)
class Reach:
    """The share of a group's people with a near person in another group who has a similar score."""

    #: The group whose people are counted, and the group that is searched for near people.
    group: str
    other: str
    #: Squared distance up to which a person counts as near. Nine in ten of the people drawn from
    #: the two groups, counted by their weights, have a person of the other group within this
    #: distance.
    distance: float
    score_gap: float  #: Difference up to which two scores count as similar.
    share: Estimate  #: Share of the group's people who have a near person with a similar score.
    has_near: Estimate  #: Share of the group's people who have a near person.


@dataclass(frozen=True)
class Transport:
    """The distances between people whom the model treats alike."""

    #: Mean squared distance between matched people if tied scores are matched at least cost.
    cost: float
    #: The same if tied scores are matched at greatest cost. It equals `cost` without ties.
    cost_high: float
    undetermined: float  #: Share of the mass for which ties do not determine the partners.
    #: Cost of the nearest matching of the same people (the marginal optimal transport map).
    smallest: float
    random: float  #: Expected cost of a random matching of the same people.
    #: ``(cost - smallest) / (random - smallest)``, and the same for `cost_high`. It is 0 for a
    #: matching as near as possible and 1 for one that is no better than random. It is None where
    #: `smallest` and `random` are equal.
    relative: float | None
    relative_high: float | None
    #: The cost by column of the table, with the largest part first.
    features: tuple[FeatureCost, ...]
    solver_gap: float  #: Relative duality gap to which `smallest` is proven.
    #: Cost of the fair matching of all rows; the other costs are those of the sample. It is None
    #: where too many scores are tied or the table is too large.
    all_rows: float | None = None

    @property
    def shown(self) -> str:
        """The relative cost as text, with its range where tied scores do not determine it."""
        low, high = self.relative, self.relative_high
        if low is None:
            return "not stated"
        if high is None or f"{high:.2f}" == f"{low:.2f}":
            return f"{low:.2f}"
        return f"{low:.2f} to {high:.2f} (range because of tied scores)"


@dataclass(frozen=True)
class PairFlips:
    """Decisions on the two people of a pair, as shares of all pairs; they sum to 1."""

    #: Share of pairs in which both people are selected, and in which neither is.
    both: float
    neither: float
    #: Share of pairs in which only the person of the first group is selected, and in which only the
    #: person of the second group is. These are flips.
    first_only: float
    second_only: float


@dataclass(frozen=True)
class MatchedScores:
    """Score gaps between matched people, under one matching of the sample."""

    #: One of "fair", "nearest_fair", "marginal", "joint". ``"fair"`` matches equal quantiles of the
    #: scores. ``"nearest_fair"`` is the nearest of the matchings whose mean score gap is nearly the
    #: least. ``"marginal"`` is the nearest matching. ``"joint"`` is the nearest matching of people
    #: with the same label.
    matching: str
    #: Mean score gap (the paper's matched gap, MDP). The interval takes the pairs as given.
    gap: Estimate
    #: Probability ("0", "0.05", "0.25", "0.5", "0.75", "0.95", "1") to the quantile of the gap.
    quantiles: dict[str, float]
    #: Share of the pairs in equal intervals of the gap, from 0 to the range of the scores.
    histogram: tuple[float, ...]
    #: Decisions on the two people of a pair. None for predictions of a number, which decide
    #: nothing.
    flips: PairFlips | None
    #: Mean squared distance between matched people. It is None without features.
    transport_cost: float | None = None


@dataclass(frozen=True)
class Matching:
    """Whom the model treats alike, in a random sample of two groups."""

    n_sampled: tuple[int, int]  #: Number of people of each group in the sample.
    is_sample: bool  #: False if the sample holds everybody.
    #: Score gaps under each matching. There is always the fair matching. With features there are
    #: also the nearest one and the nearest fair one, and with labels the joint one.
    matched_gaps: tuple[MatchedScores, ...] = ()
    #: Distances between people whom the model treats alike. It is None without features, or if the
    #: nearest matching could not be proven.
    transport: Transport | None = None
    refused: str | None = None  #: Why there is no matching, or None.
    groups: tuple[str, str] | None = None  #: The two groups. It is None if there is no matching.
    unproven: tuple[str, ...] = ()  #: What was left out because the solver could not prove it.
    #: The nearest matching that treats matched people as alike as possible. It is None without
    #: features, or if it could not be proven.
    nearest_fair: NearestFair | None = None
    #: For each of the two groups, the share of people with a near person who has a similar score.
    #: It is empty without features.
    reach: tuple[Reach, ...] = ()


@dataclass(frozen=True)
class Pairs:
    """Matched or near people, as positions in the lists of `Individuals`; one entry per pair.

    The nearest people of a person stand together, with the nearest first. Unlike a matching, this
    relation is not symmetric: the second person may have a nearer person.
    """

    #: The person of the first group, and the person of the second.
    first: tuple[int, ...]
    second: tuple[int, ...]
    mass: tuple[float, ...]  #: Weight of each pair. The weights sum to 1.
    score_gap: tuple[float, ...]  #: Absolute difference of the two scores.
    #: Squared distance between the two people. It is empty without features.
    distance: tuple[float, ...]


@dataclass(frozen=True)
class Difference:
    """A column in which two matched people differ."""

    column: str  #: The column.
    #: Value of the person of the first group, and of the person of the second. None means that the
    #: value is missing.
    first: str | float | None
    second: str | float | None


@dataclass(frozen=True)
class Individuals:
    """The people of the sample, and who is matched with whom. These are people's rows."""

    ids: tuple[str, ...]  #: Identifiers of the people: the ``ids`` given, or else row numbers.
    rows: tuple[int, ...]  #: Their row positions in the audited table.
    group: tuple[int, ...]  #: Positions of their groups in `Audit.groups`.
    scores: tuple[float, ...]  #: Their scores.
    #: 1 where the label is positive, else 0; None where it is missing. It is empty without labels.
    labels: tuple[int | None, ...]
    #: Column name to the values of the people: numbers, text, or None where missing.
    columns: dict[str, tuple[str | float | None, ...]]
    hidden: tuple[str, ...]  #: Columns that were left out on purpose.
    pairs: dict[str, Pairs]  #: Matching ("fair", "nearest_fair", "marginal", "joint") to its pairs.
    #: 1 where the person is selected, else 0. It is empty for predictions.
    selected: tuple[int, ...] = ()
    #: Weight of each person's row. It is empty where every row is one person.
    weights: tuple[float, ...] = ()
    #: Each person with the nearest people of the other group in the sample, for each pair of groups
    #: matched. It is None without features.
    near: Pairs | None = None
    #: Matching, or "near" for the nearest person, to pairs of some people of every two groups other
    #: than the reference group. It is empty for two groups.
    across: dict[str, Pairs] = field(default_factory=dict)
    #: Class to the probabilities of the people, where there are more than two classes.
    chances: dict[str, tuple[float, ...]] = field(default_factory=dict)

    def _pairs(self, matching: str | None) -> Pairs:
        if matching is None:
            matching = "nearest_fair" if "nearest_fair" in self.pairs else "fair"
        return self.pairs[matching]

    def is_flip(self, pair: int, *, matching: str | None = None) -> bool:
        """Return whether one person of a pair is selected and the other is not.

        Parameters
        ----------
        pair : int
            Position of the pair.
        matching : str, optional
            The matching, a key of ``pairs``. By default it is "nearest_fair" if there is one, and
            otherwise "fair", which pairs equal ranks of the scores whoever holds them.
        """
        pairs = self._pairs(matching)
        return self.selected[pairs.first[pair]] != self.selected[pairs.second[pair]]

    def differences(self, pair: int, *, matching: str | None = None) -> list[Difference]:
        """Return the columns in which the two people of a pair differ.

        Parameters
        ----------
        pair : int
            Position of the pair.
        matching : str, optional
            The matching, a key of ``pairs``. By default it is "nearest_fair" if there is one, and
            otherwise "fair", which pairs equal ranks of the scores whoever holds them.
        """
        pairs = self._pairs(matching)
        first, second = pairs.first[pair], pairs.second[pair]
        return [
            Difference(name, values[first], values[second])
            for name, values in self.columns.items()
            if values[first] != values[second]
        ]

    def counterparts(self, person: int, *, matching: str | None = None) -> list[int]:
        """Return the positions of the pairs that a person is part of, with the heaviest first.

        Parameters
        ----------
        person : int
            Position of the person in the lists.
        matching : str, optional
            The matching, a key of ``pairs``. By default it is "nearest_fair" if there is one, and
            otherwise "fair", which pairs equal ranks of the scores whoever holds them.
        """
        pairs = self._pairs(matching)
        both = enumerate(zip(pairs.first, pairs.second, strict=True))
        found = [k for k, members in both if person in members]
        return sorted(found, key=lambda k: -pairs.mass[k])

    def most_unlike(self, n_pairs: int = 10, *, matching: str | None = None) -> list[int]:
        """Return the positions of the pairs whose people are least similar.

        Parameters
        ----------
        n_pairs : int, default=10
            How many pairs to return at most.
        matching : str, optional
            The matching, a key of ``pairs``. By default it is "nearest_fair" if there is one, and
            otherwise "fair", which pairs equal ranks of the scores whoever holds them.

        Returns
        -------
        list of int
            Positions of the pairs. It is empty without features.
        """
        distance = self._pairs(matching).distance
        return sorted(range(len(distance)), key=lambda k: -distance[k])[:n_pairs]


@dataclass(frozen=True)
class Condition:
    """One condition on one column, such as ``age > 60``."""

    column: str  #: The column.
    #: One of "=", "!=", "<=", ">". ``=`` and ``!=`` are for categories and missing values, ``<=``
    #: and ``>`` for numbers.
    operator: str
    value: str | float | None  #: The value to compare with. None means a missing value.

    def __str__(self) -> str:
        words = {"=": "is", "!=": "is not"}
        if self.value is None:
            return f"{self.column} {words[self.operator]} missing"
        value = f"{self.value:g}" if isinstance(self.value, float) else self.value
        return f"{self.column} {self.operator} {value}"


@dataclass(frozen=True)
class SubsetGap:
    """The gap between the groups' mean scores within one subset of people."""

    description: str  #: The subset in words.
    conditions: tuple[Condition, ...]  #: The conditions, all of which hold in the subset.
    n_rows: tuple[int, int]  #: Number of people of each group in the subset.
    gap: float  #: Gap between the groups' mean scores in the subset, over all rows.
    signed: float  #: Second group minus first, over all rows.
    #: The gap over rows that played no part in choosing the subset. Its interval holds for all
    #: listed subsets at once.
    confirmed: Estimate
    #: One of "level", "split", "pair", "search". The simplest way to find the subset: as a single
    #: level, as a median split, as a pair of these, or by the search for the worst subset.
    found_by: str
    groups: tuple[str, str] | None = None  #: The two groups.
    #: By how much the gap in the subset exceeds the gap over everybody, on rows that played no part
    #: in choosing the subset. Its interval holds for all listed subsets at once. It is negative if
    #: the subset's gap is smaller, or has another direction on fresh rows.
    excess: Estimate | None = None


@dataclass(frozen=True)
class HalfSpaces:
    """Gaps in random half-spaces of the feature space, as in the paper's Section 5.2.2."""

    #: One gap per half-space that holds people of the reference group and of another group. With
    #: several other groups it is the largest.
    gaps: tuple[float, ...]
    n_empty: int  #: Number of half-spaces that have no gap.
    #: The same gaps with shuffled group labels, which show what chance alone does.
    noise: tuple[float, ...]
    n_rows: int  #: Number of people examined.


@dataclass(frozen=True)
class SubsetScan:
    """Subsets in which the model treats the groups differently, even if it does not overall."""

    #: The subsets, sorted by the lower limit of the excess over the gap of everybody, the largest
    #: first.
    subsets: tuple[SubsetGap, ...]
    n_examined: int  #: Number of subsets examined.
    min_rows: int  #: How many people of each group a subset needs among the rows that are searched.
    #: Number of people on whom subsets were chosen, and of others on whom their gaps were computed.
    n_search: int
    n_confirm: int
    half_spaces: HalfSpaces  #: Gaps in random half-spaces.
    refused: tuple[str, ...] = ()  #: Which subsets were not examined, and why.


Kind = TypeVar("Kind", bound="JsonFacts")


@dataclass(frozen=True)
class _Head:
    """The name and the version of the schema that a file follows."""

    schema: str
    schema_version: int


def _number(value: Any) -> float:
    """Return a number of NumPy as one of Python."""
    if isinstance(value, np.floating):
        return float(value)
    raise NotImplementedError(f"{type(value).__name__} is not a fact")


class JsonFacts:
    """Facts that can be written to JSON and read back unchanged.

    A subclass is a frozen dataclass that names its schema.
    """

    SCHEMA: ClassVar[str]
    SCHEMA_VERSION: ClassVar[int]

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as plain values, with the name and version of their schema."""
        facts: dict[str, Any] = msgspec.to_builtins(self, enc_hook=_number)
        return {"schema": self.SCHEMA, "schema_version": self.SCHEMA_VERSION, **facts}

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the facts as JSON; see `docs/reference/audit-json.md` for the schema.

        Parameters
        ----------
        indent : int, optional
            Number of spaces per level. None writes everything on one line.
        """
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls: type[Kind], text: str) -> Kind:
        """Read facts that `to_json` wrote in this version of the schema.

        Parameters
        ----------
        text : str
            The JSON text.
        """
        try:
            head = msgspec.json.decode(text, type=_Head)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise InputError(
                f"This is not JSON that fairmatch wrote: {error}. Pass the text that to_json "
                "returned."
            ) from error
        if (head.schema, head.schema_version) != (cls.SCHEMA, cls.SCHEMA_VERSION):
            raise InputError(
                f"This is {head.schema} version {head.schema_version}; expected {cls.SCHEMA} "
                f"version {cls.SCHEMA_VERSION}. Read it with the class and the version of "
                "fairmatch that wrote it, or write it again."
            )
        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise InputError(
                f"This {cls.SCHEMA} is damaged: {error}. Write it again with to_json."
            ) from error

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of what `to_json` writes."""
        _, parts = msgspec.json.schema_components([cls], ref_template="#/$defs/{name}")
        for part in parts.values():
            part["description"] = part["description"].partition("\n")[0]
            part["required"] = list(part["properties"])  # to_json leaves nothing out
        top = parts.pop(cls.__name__)
        head = {"schema": {"const": cls.SCHEMA}, "schema_version": {"const": cls.SCHEMA_VERSION}}
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **top,
            "title": cls.SCHEMA,
            "properties": {**head, **top["properties"]},
            "required": [*head, *top["required"]],
            "$defs": parts,
        }


@dataclass(frozen=True)
class ClassGroup:
    """What one group gets where there are more than two classes."""

    label: str  #: The group.
    n_rows: int  #: Its people.
    #: Class to the share of the group that gets it, with a Wilson interval.
    shares: dict[str, Estimate]
    accuracy: Estimate | None  #: Share of right decisions; None without labels.
    #: True class to the shares of its people who get each class; empty without labels.
    confusion: dict[str, dict[str, Estimate]]
    #: True class to the number of its people; empty without labels.
    n_true: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ClassCell:
    """How often two groups get one class, with an interval of the difference."""

    groups: tuple[str, str]  #: The groups.
    decided: str  #: The class.
    given: str | None  #: The true class of the people who are compared; None is everybody.
    rates: tuple[float, float]  #: Shares of the two groups.
    #: Interval of the second share minus the first. All intervals with the same kind of ``given``
    #: hold at once.
    low: float
    high: float


@dataclass(frozen=True)
class ClassFacts:
    """Facts about more than two classes."""

    names: tuple[str, ...]  #: The classes, in the order of the columns of the scores.
    ordered: bool  #: Whether they are in order, from the lowest to the highest.
    favourable: tuple[str, ...]  #: The classes that are good for a person.
    groups: tuple[ClassGroup, ...]  #: What every group gets.
    #: The gaps of all classes, largest over pairs of groups, with intervals that hold for all pairs
    #: and classes at once.
    gaps: tuple[Gap, ...]
    #: The table per class and pair of groups, of everybody and, with labels, of recalls.
    cells: tuple[ClassCell, ...]
    #: Class to the tables of rates and impact ratios of this class against the rest.
    impact: dict[str, tuple[ImpactTable, ...]]

    def gap(self, name: str) -> Gap:
        """Return the gap with this name."""
        return next(gap for gap in self.gaps if gap.name == name)


@dataclass(frozen=True)
class ConditionalFacts(ConditionalGap):
    """A group compared with the reference group among people with the same given factors.

    Strata are sorted by their size, the largest first.
    """

    #: The two groups.
    group: str
    reference: str
    adjusted: Estimate  #: ``value`` with an approximate interval.
    #: Mantel and Haenszel's common odds ratio; None for predictions, or where it is not finite.
    odds_ratio: Estimate | None
    #: P-values of the Cochran-Mantel-Haenszel test that groups make no difference within strata,
    #: and of the Breslow-Day test that the odds ratio is the same in all strata. The latter uses
    #: strata in which each of the four expected counts is at least 5, and is None if there are
    #: fewer than two.
    p_value: float | None
    p_homogeneous: float | None
    #: The adjusted difference on a log scale, as a share of the reference group's level. None for
    #: decisions, and where a prediction is not positive.
    percent: Estimate | None
    #: Number of strata in the Breslow-Day test. None for predictions.
    n_homogeneous: int | None = None


@dataclass(frozen=True)
class EstimatedGap:
    """What is known about one gap between groups that are known only as probabilities."""

    #: Name of the measure in `fairmatch.measures`, and the paper's symbol.
    name: str
    symbol: str
    #: The gap of the weighted rates. It is right if scores and groups are independent given the
    #: probabilities.
    assumed: Estimate
    #: Bounds without that assumption: every gap between them agrees with the scores and with
    #: probabilities that are calibrated within cells of people.
    low: float
    high: float
    #: Confidence limits of the bounds.
    low_limit: float
    high_limit: float
    #: The gap among people whose group is known, made more precise by the probabilities. It is None
    #: where too few groups are known.
    calibrated: Estimate | None = None
    #: What the gap would be if everybody belonged to the most probable group. It is no estimate of
    #: the gap: it may be too large or too small.
    thresholded: float | None = None


@dataclass(frozen=True)
class EstimatedFacts:
    """What is known about gaps between groups that are known only as probabilities."""

    n_people: int  #: Number of people, each of whom has a probability of every group.
    #: Number of cells of people with similar probabilities within which the bounds hold, and the
    #: number of people in the smallest.
    n_cells: int
    smallest_cell: int
    gaps: tuple[EstimatedGap, ...]  #: The gaps of rates and of means.
    n_known: int = 0  #: Number of people whose group is known.
    #: Largest distance between a group's mean probability and its share among the known people,
    #: over the groups and fifths of its probability. It is None with fewer than 50 known people.
    calibration_error: float | None = None
    #: P-value of a test that the probabilities are calibrated for the known people.
    calibration_p_value: float | None = None


@dataclass(frozen=True)
class Spread:
    """The standard deviation that is the unit of relative gaps of predictions."""

    #: One of "target", "predictions". Whose standard deviation it is: the target's, or the
    #: predictions' if there is no target.
    of: str
    #: The standard deviation, in units of the target. If it is 0, there are no relative gaps.
    value: float


@dataclass(frozen=True)
class Provenance:
    """What was audited, with what, and how."""

    version: str  #: Version of fairmatch.
    seed: int  #: Seed of the resamples, the sample and the subset scan.
    #: Hash of the scores as 64-bit floats, and of the group codes as bytes.
    scores_sha256: str
    groups_sha256: str
    #: Hash of the labels (1 for positive) or of the predicted numbers, and of the columns. They are
    #: None where none were given.
    labels_sha256: str | None
    features_sha256: str | None
    #: Name and hash of the file, if the audit read one.
    source: str | None
    source_sha256: str | None
    #: The other settings of the audit, and the names of the columns that describe people.
    settings: dict[str, str | int | float | None]
    #: Hash of the weights as 64-bit floats, or None if every row is one person.
    weights_sha256: str | None = None


# The people and scores behind the audits of this process, for `Audit.explain`. They are no part of
# the facts, so they are neither written to files nor copied with an audit.
_BEHIND: dict[int, Callable[[], Neighbourhood]] = {}


def remember_people(
    audit: Audit, people: People, scores: FloatArray, plain: Callable[[], FloatArray] | None
) -> None:
    """Keep the people behind an audit as long as the audit itself, if there is a table.

    ``plain`` returns their scores by the model without a fairness constraint.
    """
    if people.table is not None:
        deciding = audit._deciding()

        def behind() -> Neighbourhood:
            known = None if plain is None else plain()
            return Neighbourhood(people, scores, plain=known, **deciding)

        _BEHIND[id(audit)] = cache(behind)
        finalize(audit, _BEHIND.pop, id(audit), None)


@dataclass(frozen=True)
class Audit(JsonFacts):
    """How a model treats groups of people: facts, not a verdict.

    Made by `fairmatch.audit`.

    Examples
    --------
    >>> from fairmatch import audit
    >>> found = audit([0.9, 0.2, 0.6, 0.7] * 20, sensitive_features=[0, 0, 1, 1] * 20)
    >>> found.gap("demographic_parity_gap").value
    0.5
    >>> [group.label for group in found.groups]
    ['0', '1']
    >>> found
    <Audit of 'model': 80 people, groups '0' (40) and '1' (40), largest ΔDP 0.500>
    """

    SCHEMA: ClassVar[str] = "fairmatch.Audit"
    SCHEMA_VERSION: ClassVar[int] = 3

    model_name: str  #: What the model is called.
    n_rows: int  #: Number of people audited.
    #: The score at which decisions change. None for numeric predictions, which have no decisions.
    threshold: float | None
    confidence: float  #: Level of the intervals.
    #: Ends of the intervals in which `GroupFacts.score_counts` counts people.
    score_edges: tuple[float, ...]
    groups: tuple[GroupFacts, ...]  #: The groups, in the order of their labels.
    #: Smallest selection rate divided by that of `ratio_reference`. The four-fifths rule asks for
    #: 0.8.
    selection_ratio: Estimate
    #: Every gap that the data allow. With more than two groups, each is the largest over pairs.
    gaps: tuple[Gap, ...]
    #: Whom the model treats alike, and how similar they are, for each pair of matched groups.
    matchings: tuple[Matching, ...]
    subsets: SubsetScan | None  #: The subsets with the largest gaps. It is None without features.
    #: The rows of the people sampled. It is None where they were left out or nobody was matched.
    individuals: Individuals | None
    provenance: Provenance  #: What was audited, with what, and how.
    #: With more than two groups, the gaps between each group and the reference group, and those
    #: between the two groups that are farthest apart. The intervals hold for all pairs of groups at
    #: once (Bonferroni). It is empty for two groups.
    pair_gaps: tuple[Gap, ...] = ()
    #: The largest group, or the one that was named. Every other group is compared and matched with
    #: it.
    reference: str | None = None
    #: Groups of people for whom an attribute is missing. They are shown but not compared.
    unknown: tuple[str, ...] = ()
    #: Each attribute by itself, where several were given. The groups are their combinations.
    attributes: tuple[PartFacts, ...] = ()
    n_selected: int | None = None  #: Number of people selected. It is None for predictions.
    #: One of "high", "low". Which scores are good for a person. With "high", people with a score at
    #: or above the threshold are selected; with "low", people below it. Rates and ratios are of the
    #: selected.
    favourable: str = "high"
    #: Words for the favourable outcome, such as "selected", "not flagged" or "granted bail".
    outcome: str = "selected"
    about: About = field(default_factory=About)  #: Title, author, date and purpose.
    #: One of "survey", "counts". What the weights are. It is None where every row is one person.
    weights: str | None = None
    #: How every column of the table is read. It is empty where the audit read no file.
    columns: tuple[ColumnRole, ...] = ()
    leaks: tuple[Leak, ...] = ()  #: Columns that describe people and reveal their group.
    notes: tuple[str, ...] = ()  #: Notes on how the table was read.
    #: Selection and scoring rates with their impact ratios, by category of each attribute and of
    #: all attributes crossed, as bias audits are filed. It is empty for predictions.
    impact: tuple[ImpactTable, ...] = ()
    #: One of "probability", "number". What the scores are. With "probability" they are
    #: probabilities or decisions. With "number" they are predictions, and scores and their gaps are
    #: in units of the target.
    kind: str = "probability"
    #: The unit of relative gaps: a standard deviation. It is None for probabilities.
    spread: Spread | None = None
    #: The different scores. It is empty if there are more of them than intervals in `score_edges`.
    score_values: tuple[float, ...] = ()
    #: Every group compared with the reference group among people with the same given factors. Empty
    #: if no factors were given.
    conditional: tuple[ConditionalFacts, ...] = ()
    #: Weight of each column in the distance of two people. None if every column counts by its
    #: range, or if an embedding decides.
    similarity: dict[str, float] | None = None
    #: Where there are more than two classes: how often every group gets each of them. The other
    #: facts are then about the decisions to give a favourable class, as 0 and 1.
    classes: ClassFacts | None = None
    #: The group whose selection rate others are divided by: the reference group that was named, or
    #: the group with the highest rate among those with at least 2% of the people and
    #: ``min_group_size`` people. None for predictions, and where no group is large enough.
    ratio_reference: str | None = None
    #: The least and the greatest possible score, where scores are no probabilities.
    score_range: tuple[float, float] | None = None
    #: Estimates and bounds of the gaps, where groups are known only as probabilities. ``gaps`` are
    #: then those of the weighted rates, and nobody is matched.
    estimated: EstimatedFacts | None = None
    #: Where the groups are bands of a number: the mean score along the number, and how much it
    #: depends on it (generalised demographic parity).
    number: NumberDependence | None = None
    periods: tuple[PartFacts, ...] = ()  #: With ``by``, the people of each period by themselves.
    #: The changes between consecutive periods, for every group that has enough people in both.
    changes: tuple[Change, ...] = ()
    #: With ``stages``, each stage among people of the stage before, and then the whole procedure.
    stages: tuple[StageFacts, ...] = ()

    def explain(self, id: Any, *, n_nearest: int = 3, prototype: int | None = None) -> Explanation:
        """Explain the decision of one person, as `fairmatch.explain` does.

        Parameters
        ----------
        id : str or int
            The person's identifier: one of ``ids``, or else the row number.
        n_nearest : int, default=3
            How many of the nearest people of each other group to show.
        prototype : int, optional
            Show medians of this many nearest people, at least 10, instead of single people.

        Notes
        -----
        An audit in memory knows everybody in its table. An audit that was read from a file knows
        only the people in ``individuals``, who may be a sample, and no plain model.
        """
        near = self._neighbourhood()
        return near.explain(near.row_of(id), n_nearest=n_nearest, prototype=prototype)

    def _neighbourhood(self) -> Neighbourhood:
        """Return the people behind the audit: everybody, or the sample in a file."""
        if self.classes is not None:
            raise InputError(
                f"explain and {len(self.classes.names)} classes do not combine: it explains the "
                "decision by one score. Call fairmatch.explain with the table and the "
                "probabilities of the class in question."
            )
        if id(self) in _BEHIND:
            return _BEHIND[id(self)]()
        sample = self.individuals
        if sample is None or not sample.columns:
            raise InputError(
                "This audit contains no individuals: it was made without X, or read from a file "
                "without people. Call fairmatch.explain with the table."
            )
        labels = np.array([group.label for group in self.groups], dtype=object)
        groups = read_groups(labels[list(sample.group)], unknown="unknown")
        people = People(groups, Table(pd.DataFrame(sample.columns)), ids=sample.ids)
        return Neighbourhood(people, np.array(sample.scores), **self._deciding())

    def _deciding(self) -> dict[str, Any]:
        return {
            "threshold": self.threshold,
            "high": self.favourable == "high",
            "outcome": self.outcome,
        }

    @property
    def undecided(self) -> str | None:
        """Why all decisions are equal, if nobody or everybody is selected; else None."""
        if self.n_selected not in (0, self.n_rows):
            return None
        who = "Nobody" if self.n_selected == 0 else "Everybody"
        side = "at or above" if self.favourable == "high" else "below"
        return (
            f"{who} is {self.outcome}: {'no' if self.n_selected == 0 else 'every'} score is "
            f"{side} the threshold {self.threshold:g}, so all decisions are equal."
        )

    @property
    def is_reference_named(self) -> bool:
        """Whether the reference group was named, rather than being the largest."""
        return self.provenance.settings.get("reference") is not None

    @property
    def on_reference(self) -> str:
        """How the reference group was chosen, in words."""
        return "the reference group" if self.is_reference_named else "the largest group"

    @property
    def matching(self) -> Matching:
        """The first matching. With two groups it is the only one."""
        return self.matchings[0]

    def gap(self, name: str) -> Gap:
        """Return the gap with this name.

        Parameters
        ----------
        name : str
            Name of the measure in `fairmatch.measures`.
        """
        for gap in self.gaps:
            if gap.name == name:
                return gap
        known = ", ".join(gap.name for gap in self.gaps)
        raise InputError(f"This audit has no gap named {name!r}. Name one that it has: {known}.")

    @property
    def refusals(self) -> tuple[str, ...]:
        """The reasons why some statements are not made, each reason once."""
        facts: list[Estimate | Gap | Matching] = [self.selection_ratio, *self.gaps]
        facts += self.matchings
        for group in self.groups:
            # A group that is too small as a whole is also too small with each label.
            facts += [group.mean_score] if group.mean_score.refused else group.estimates
        reasons = [fact.refused for fact in facts if fact.refused]
        reasons += [reason for matching in self.matchings for reason in matching.unproven]
        reasons += self.subsets.refused if self.subsets else ()
        return tuple(dict.fromkeys(reasons))

    def without_individuals(self, min_cell: int = 10) -> Audit:
        """Return the same audit without the rows of people, and without small numbers of people.

        Parameters
        ----------
        min_cell : int, default=10
            Numbers of people from 1 to ``min_cell`` - 1 are withheld, and so are rates, ratios and
            gaps that would reveal them. Groups of fewer people are left out of lists and totals.
            Counts in charts are rounded to multiples of ``min_cell``. 1 withholds nothing.
        """
        bare, settings = replace(self, individuals=None), self.provenance.settings
        if min_cell <= 1 or "min_cell" in settings:  # nothing is withheld, or it was already
            return bare
        for group in self.groups:
            if group.n_rows < min_cell and group.mean_score.value is not None:
                raise InputError(
                    f"min_cell={min_cell} withholds the group {group.label!r}, but gaps depend on "
                    f"it. Audit with min_group_size={min_cell}.",
                    parameter="min_cell",
                )
        provenance = replace(self.provenance, settings={**settings, "min_cell": min_cell})
        found: Audit = _Suppressor(self, min_cell)(bare)
        return replace(found, provenance=provenance)

    def hiding(self, *columns: str) -> Audit:
        """Return the same audit, with some columns left out of the rows of people.

        The columns still count in distances, and their names still appear in sums over many people.

        Parameters
        ----------
        *columns : str
            Names of the columns.
        """
        people = self.individuals
        if people is None:
            return self
        if unknown := [name for name in columns if name not in people.columns]:
            raise ColumnError(
                f"There is no column {unknown[0]!r} to hide. The columns are "
                f"{', '.join(people.columns)}. Name one of them."
            )
        kept = {name: v for name, v in people.columns.items() if name not in columns}
        hidden = (*people.hidden, *columns)
        return replace(self, individuals=replace(people, columns=kept, hidden=hidden))

    def to_card(self, path: str | Path | None = None, *, limits: Sequence[str] = ()) -> str:
        """Return a model card as Markdown: the groups, the gaps and the limits of use.

        Parameters
        ----------
        path : str or Path, optional
            Where to write it. Hugging Face and skops call the file README.md.
        limits : sequence of str, optional
            Further limits of use. They come before those that follow from the audit.

        Examples
        --------
        >>> import numpy as np
        >>> from fairmatch import audit
        >>> group = np.repeat(["a", "b"], 100)
        >>> found = audit(np.linspace(0, 1, 200), sensitive_features=group, n_resamples=100)
        >>> print(found.to_card(limits=["For loans below 5,000 euros only."])[:38])
        ---
        tags:
        - fairness
        - fairmatch
        ---
        """
        card = model_card(self, limits)
        if path is not None:
            write_whole(path, card)
        return card

    def __repr__(self) -> str:
        sizes = [f"{group.label!r} ({group.n_rows:,})" for group in self.groups]
        groups = f"groups {' and '.join(sizes)}" if len(sizes) == 2 else f"{len(sizes)} groups"
        first = self.gaps[0]  # of decisions, or of mean predictions
        words = f"largest {first.symbol} {first.value or 0.0:.3f}"
        shown = "no gap stated" if first.value is None else words
        return f"<Audit of {self.model_name!r}: {self.n_rows:,} people, {groups}, {shown}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(g.name.replace('_', ' '))}</td><td>{_shown(g)}</td></tr>"
            for g in self.gaps
        )
        groups = ", ".join(f"{escape(g.label)} ({g.n_rows:,})" for g in self.groups)
        level = f"{self.confidence:.0%}"
        notes = "".join(f"<li>{escape(reason)}</li>" for reason in self.refusals)
        found = [matching.nearest_fair for matching in self.matchings]
        placed = [one.position for one in found if one is not None and one.position is not None]
        if placed:
            notes += (
                "<li>Position of the nearest fair matching, from the nearest partners (0) to "
                f"random ones (1): {max(placed):.2f}.</li>"
            )
        found_in = self.subsets.subsets if self.subsets else ()
        for one in found_in[:1]:  # the one that most surely exceeds
            if one.excess is not None and (one.excess.low or 0.0) > 0.0:
                notes += (
                    f"<li>The gap is {one.confirmed.value:.3f} on fresh rows where "
                    f"{escape(one.description)}. That is {one.excess.value:.3f} more than over "
                    f"everybody [{one.excess.low:.3f}, {one.excess.high:.3f}].</li>"
                )
        return (
            f"<div><strong>{escape(self.model_name)}</strong>: {groups}"
            f"<table><thead><tr><th>gap</th><th>value [{level} interval]</th></tr></thead>"
            f"<tbody>{rows}</tbody></table><ul>{notes}</ul></div>"
        )


def _shown(fact: Estimate | Gap) -> str:
    if fact.value is None:
        return "no statement"
    if fact.low is None or fact.high is None:
        return f"{fact.value:.3f}"
    return f"{fact.value:.3f} [{fact.low:.3f}, {fact.high:.3f}]"


@dataclass(frozen=True)
class ModelPair:
    """A model against the reference model, on the same people."""

    #: Names of the two.
    model: str
    reference: str
    #: Group to the Spearman correlation of the two models' scores, or to None if one model's scores
    #: are constant there.
    rank_agreement: dict[str, float | None]
    #: Group to four counts: people selected by neither, by the reference only, by the model only,
    #: and by both. It is empty for predictions, which select nobody.
    decisions: dict[str, tuple[int, int, int, int]]
    #: Group to the number of undesirable flips. In a privileged group these are people whom only
    #: the model selects; in other groups, people whom only the reference selects. It is None where
    #: no group was named as privileged.
    undesirable_flips: dict[str, int] | None
    #: Where there are more than two classes: group to the numbers of people by the class of the
    #: reference, and within it by the class of the model.
    moves: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison(JsonFacts):
    """Two or more models on the same people.

    Made by `fairmatch.compare_models`.
    """

    SCHEMA: ClassVar[str] = "fairmatch.Comparison"
    SCHEMA_VERSION: ClassVar[int] = 3

    #: One audit per model, the reference first. All of them sample the same people.
    audits: tuple[Audit, ...]
    pairs: tuple[ModelPair, ...]  #: Every other model against the reference.
    #: The favoured group, where one was named; several are separated by semicolons.
    privileged: str | None

    def without_individuals(self, min_cell: int = 10) -> Comparison:
        """Return the same comparison without the rows of people and small numbers of people.

        Parameters
        ----------
        min_cell : int, default=10
            The smallest number of people that is shown, as in `Audit.without_individuals`.
        """
        audits = tuple(audit.without_individuals(min_cell) for audit in self.audits)
        return replace(self, audits=audits, pairs=_Suppressor(self.audits[0], min_cell)(self.pairs))

    def hiding(self, *columns: str) -> Comparison:
        """Return the same comparison, with some columns left out of the rows of people.

        Parameters
        ----------
        *columns : str
            Names of the columns.
        """
        return replace(self, audits=tuple(a.hiding(*columns) for a in self.audits))

    def __repr__(self) -> str:
        names = ", ".join(repr(audit.model_name) for audit in self.audits)
        return f"<Comparison of {names} on {self.audits[0].n_rows:,} people>"

    def _repr_html_(self) -> str:
        return "".join(audit._repr_html_() for audit in self.audits)


@dataclass(frozen=True)
class Alternative:
    """A model that was tried, compared with the baseline on the same people."""

    name: str  #: What the model is called.
    #: How the model was trained, and with which setting. They are empty where that is unknown.
    method: str
    setting: str
    #: Share of correct decisions, and the gap.
    accuracy: float
    gap: float
    #: Accuracy and gap of the model minus those of the baseline. The intervals hold for all models
    #: at once.
    accuracy_change: Estimate
    gap_change: Estimate
    selection_rates: dict[str, float]  #: Group to the share of its people who are selected.
    #: Group to the number of people whom only the model selects, and to the number whom only the
    #: baseline selects.
    gained: dict[str, int]
    lost: dict[str, int]
    #: Whether the lower limit of ``accuracy_change`` is at least minus the margin.
    as_accurate: bool
    smaller_gap: bool  #: Whether the interval of ``gap_change`` lies below 0.
    #: One of "yes", "not shown", "no". Whether the model is a less discriminatory alternative:
    #: "yes" where it is shown to be as accurate and to have a smaller gap, "no" where one of the
    #: two is shown to be false.
    verdict: str
    #: What is missing where it is not shown, or what is false; empty where it is shown.
    reasons: tuple[str, ...]

    @property
    def less_discriminatory(self) -> bool:
        """Whether the model is shown to be as accurate as the baseline, with a smaller gap."""
        return self.as_accurate and self.smaller_gap

    @property
    def decides(self) -> bool:
        """Whether the model selects some people and not others."""
        rates = self.selection_rates.values()
        return max(rates) > 0.0 and min(rates) < 1.0

    def verdict_words(self) -> str:
        """Return the verdict with its reasons."""
        return f"{self.verdict}: {' and '.join(self.reasons)}" if self.reasons else self.verdict


@dataclass(frozen=True)
class Search:
    """How the models of a search were made, so that the search can be documented and repeated."""

    version: str  #: Version of fairmatch.
    seed: int  #: Seed of the split, the training and the intervals.
    #: Name and hash of the table; a dataset has no hash.
    source: str | None
    source_sha256: str | None
    #: Number of rows to learn from, to choose models by, and to compare them on. Without rows to
    #: choose by, all models are listed.
    n_training: int
    n_choosing: int
    n_test: int
    #: Whether all models, including the baseline, use a person's group to predict.
    uses_group: bool
    needing_group: tuple[str, ...]  #: The methods whose models cannot predict without the group.
    settings: dict[str, str | int | float | None]  #: The other arguments of the search.

    def on_group(self) -> str:
        """Return whether the models need a person's group, in words."""
        # Nothing is known of a model whose scores were given.
        given = self.settings.get("score") is not None
        if not self.uses_group:
            return f"No model{' trained here' * given} needs a person's group to predict."
        needing = " and ".join(f"“{method}”" for method in self.needing_group)
        return (
            f"Every model{' trained here' if given else ', the baseline too,'} uses a person's "
            "group to predict."
            + f" {needing} cannot predict without it. The others can be trained to do so."
            * bool(needing)
        )


@dataclass(frozen=True)
class Alternatives(JsonFacts):
    """A baseline, and all models that were tried to find a smaller gap.

    Made by `fairmatch.find_alternatives`.
    """

    SCHEMA: ClassVar[str] = "fairmatch.Alternatives"
    SCHEMA_VERSION: ClassVar[int] = 2

    baseline: str  #: Name of the model that the others are compared with.
    n_rows: int  #: Number of people on whom the models are compared.
    gap_measure: str  #: Name of the gap.
    margin: float  #: The loss of accuracy up to which a model still counts as accurate.
    confidence: float  #: Level of the intervals, which hold for all models at once.
    threshold: float  #: A person with a score at or above the threshold is selected.
    #: Accuracy and gap of the baseline.
    accuracy: float
    gap: float
    #: Group to the share of its people whom the baseline selects.
    selection_rates: dict[str, float]
    tried: tuple[Alternative, ...]  #: Every other model, in the order in which it was given.
    search: Search | None = None  #: How the models were made, if the search trained them.
    #: One of "high", "low". Which scores are good for a person. With "low", people below the
    #: threshold are selected.
    favourable: str = "high"
    #: Whether the baseline's scores come from elsewhere, so that it may have seen these people.
    is_given: bool = False

    @property
    def found(self) -> Sequence[Alternative]:
        """The models shown to be as accurate, with a smaller gap; the smallest gap first."""
        return _by_gap(one for one in self.tried if one.less_discriminatory)

    @property
    def possible(self) -> Sequence[Alternative]:
        """The models shown to have a smaller gap, and within the margin only by estimate."""
        return _by_gap(
            one
            for one in self.tried
            if one.smaller_gap
            and not one.as_accurate
            and (one.accuracy_change.value or 0.0) >= -self.margin
        )

    @property
    def foremost(self) -> Sequence[Alternative]:
        """The models to look at first, the smallest gap first.

        These are the models found. If there are none, these are the possible ones. If there are
        none of these either, they are the models that select some people and not others, or all
        models if none does.
        """
        return self.found or self.possible or self._deciding

    @property
    def _deciding(self) -> Sequence[Alternative]:
        return _by_gap(one for one in self.tried if one.decides) or _by_gap(self.tried)

    def why_shown(self, names: Collection[str]) -> str:
        """Return which of the models tried are described, and why.

        Parameters
        ----------
        names : collection of str
            The models that are described. If they are not the foremost models, the text is empty.
        """
        shown = [one for one in self.foremost if one.name in names]
        n_tried = sum(one.name in names for one in self.tried)
        if not shown or shown != list(self.foremost[:n_tried]):
            return ""
        models = " and ".join(
            f"{one.name!r} (accuracy {one.accuracy:.3f}, gap {one.gap:.3f})" for one in shown
        )
        if self.found:
            reason = "of the alternatives found"
        elif self.possible:
            reason = "of the models shown to have a smaller gap and as accurate by estimate"
        else:
            reason = "of the models tried, whatever their accuracy"
            if any(not one.decides for one in self.tried) and shown[0].decides:
                reason += ", except those that select nobody or everybody"
        smallest = "the smallest gap" if len(shown) == 1 else "the smallest gaps"
        return (
            f"Described below, besides {self.baseline!r} (accuracy {self.accuracy:.3f}, gap "
            f"{self.gap:.3f}): {models}, with {smallest} {reason}."
        )

    def sentence(self) -> str:
        """Return what the search found, in words."""
        scope = (
            f"of {_models(len(self.tried))} tried besides {self.baseline!r} on {self.n_rows:,} "
            f"people whom none of {'these models' if self.is_given else 'them'} has seen"
        )
        within = f"within {self.margin:g} of its accuracy"
        if self.found:
            best, count = self.found[0], len(self.found)
            return (
                f"{'A' if count == 1 else str(count)} less discriminatory "
                f"{'alternative was' if count == 1 else 'alternatives were'} found: {scope}, "
                f"{best.name!r} has the smallest gap of those shown to be {within}. Its gap is "
                f"{best.gap:.3f}, and the baseline's is {self.gap:.3f}.{self._on_possible()}"
            )
        said = f"{scope}, none is shown to be {within} and to have a smaller gap."
        if not self.possible:
            return f"No less discriminatory alternative was found: {said}"
        best = self.possible[0]
        return (
            f"No less discriminatory alternative was shown: {said}{self._on_possible()} The "
            f"smallest of these gaps is {best.gap:.3f}, that of {best.name!r}; the baseline's is "
            f"{self.gap:.3f}. With more people the intervals would be narrower."
        )

    def _on_possible(self) -> str:
        count = len(self.possible)
        if count == 0:
            return ""
        return (
            f" {_models(count)} {'has' if count == 1 else 'have'} a gap that is shown to be "
            f"smaller, and an estimated accuracy within {self.margin:g} that is not shown."
        )

    def __repr__(self) -> str:
        return (
            f"<Alternatives to {self.baseline!r}: {len(self.tried)} tried, "
            f"{len(self.found)} less discriminatory>"
        )


def _by_gap(models: Iterable[Alternative]) -> Sequence[Alternative]:
    return sorted(models, key=lambda one: (one.gap, -one.accuracy))


def _models(count: int) -> str:
    return "1 model" if count == 1 else f"{count} models"


# A number of people in a sentence.
_NUMBER = re.compile(
    r"(?<![\d.])([\d,]*\d(?:\.\d+)?) (p|r)(?:eople|erson|ows?)\b|(?<=: )([\d,]*\d)(?=[,)])"
)

# The rates of everybody and of one class.
_RATES = {None: "selection_rate", True: "true_positive_rate", False: "false_positive_rate"}
# What a category is tested for, and how its rate relates to another.
_TESTS = ("below_four_fifths", "p_value", "p_adjusted", "standard_deviations",
          "exact_standard_deviations", "shortfall", "flips")  # fmt: skip


class _Suppressor:
    """Facts without numbers of people from 1 to ``least`` - 1, and without what would reveal them.

    Groups of fewer people are left out of the lists and of the totals. A rate is withheld if fewer
    people are on one of its sides, and so is whatever would reveal it: ratios, gaps, tests and the
    total of the selected. Counts in charts are rounded to multiples of ``least``.

    There is one rule for each type of fact. It gets a fact as it was, and the same fact after its
    parts were treated.
    """

    def __init__(self, audit: Audit, least: int) -> None:
        self.least = least
        reason = f"Withheld: it would reveal a number of people below {least}."
        self.reason, self.nothing = reason, Estimate(None, refused=reason)
        self.sizes = {group.label: group.n_rows for group in audit.groups}
        self.decided = bool(audit.score_values) and set(audit.score_values) <= {0.0, 1.0}
        self.rules: dict[type, Callable[[Any, Any], Any]] = {
            Audit: self.audit,
            PartFacts: self.part,
            GroupFacts: self.group,
            CalibrationBin: self.bin,
            ImpactTable: self.table,
            ClassFacts: self.classes,
            ClassGroup: self.class_group,
            Matching: self.matching,
            SubsetScan: self.subsets,
            ConditionalFacts: self.conditional,
            ColumnRole: self.column,
            ModelPair: self.pair,
        }

    def __call__(self, fact: Any) -> Any:
        """Return a fact as it may be published."""
        if isinstance(fact, tuple):
            return tuple(map(self, fact))
        if isinstance(fact, dict):
            return {name: self(own) for name, own in fact.items()}
        if not is_dataclass(fact):
            return fact
        parts = {own.name: self(getattr(fact, own.name)) for own in fields(fact)}
        for name in parts.keys() & {"refused", "notes"}:  # sentences
            parts[name] = self.told(parts[name])
        treated, rule = replace(cast(Any, fact), **parts), self.rules.get(type(fact))
        return treated if rule is None else rule(fact, treated)

    def told(self, text: Any) -> Any:
        """Return sentences without small numbers of people."""
        if not isinstance(text, str):
            return text and tuple(map(self.told, text))

        def replaced(found: re.Match[str]) -> str:
            number, unit = float((found[1] or found[3]).replace(",", "")), found[2]
            units = {None: "", "p": " people", "r": " rows"}
            return f"fewer than {self.least}{units[unit]}" if self.few(number) else found[0]

        return _NUMBER.sub(replaced, text)

    def few(self, *counts: float) -> bool:
        """Return whether a count is small and not 0."""
        return any(0 < round(count) < self.least for count in counts)

    def rounded(self, counts: Any) -> Any:
        """Return counts, however nested, as multiples of the smallest that is shown."""
        if isinstance(counts, dict):
            return {name: self.rounded(own) for name, own in counts.items()}
        if isinstance(counts, tuple):
            return tuple(map(self.rounded, counts))
        return None if counts is None else self.least * round(counts / self.least)

    def rate(self, fact: Any, size: float) -> Any:
        """Return a rate of this many people, or why it is withheld."""
        if fact is None or fact.value is None:
            return fact
        hits = fact.value * size
        return self.nothing if self.few(size, hits, size - hits) else fact

    def withheld(self, before: PartFacts | Audit, after: PartFacts | Audit) -> dict[str, set[str]]:
        """Return which rates of each group that is shown are withheld."""

        def stated(group: GroupFacts) -> set[str]:
            rates = {name: getattr(group, name) for name in _RATES.values()}
            return {name for name, own in rates.items() if own and own.value is not None}

        both = zip(before.groups, after.groups, strict=True)
        return {
            own.label: stated(own) - stated(new) for own, new in both if own.n_rows >= self.least
        }

    def part(self, before: Any, after: Any) -> Any:
        """Withhold groups, and the ratios and gaps that depend on withheld rates."""
        changed = self.withheld(before, after)
        hidden = {label for label, rates in changed.items() if "selection_rate" in rates}
        gone = set().union(*changed.values())

        def kept(gap: Gap) -> Gap:
            needs = set(_RATES.values())
            if measure := MEASURES.get(gap.name):
                made_of_rates = self.decided or measure.needs_decisions
                needs = {_RATES[label] for label in measure.labels if made_of_rates}
            # The limits of a largest gap come from all groups.
            if gap.value is None or not needs & gone:
                return gap
            return Gap.unstated(gap.name, gap.symbol, self.reason)

        return replace(
            after,
            groups=tuple(
                replace(own, ratio=None) if {own.label, before.ratio_reference} & hidden else own
                for own in after.groups
                if own.label in changed
            ),
            selection_ratio=self.nothing if hidden else after.selection_ratio,
            gaps=tuple(map(kept, after.gaps)),
            pair_gaps=tuple(map(kept, after.pair_gaps)),
            unknown=tuple(name for name in after.unknown if name in changed),
        )

    def audit(self, before: Audit, after: Audit) -> Audit:
        """Withhold what groups, categories, periods and stages would reveal by subtraction."""
        small = [group for group in before.groups if group.n_rows < self.least]
        notes = [
            f"Numbers of people from 1 to {self.least - 1} are withheld, and so are rates that "
            f"would reveal them. Counts in charts are rounded to multiples of {self.least}."
        ]
        if small:
            names = ", ".join(repr(group.label) for group in small)
            notes.append(f"Groups of fewer than {self.least} people are left out: {names}.")

        after = self.part(before, after)
        after = replace(
            after,
            conditional=self.stated_within(before, after),
            notes=self.notes(before, after),
        )
        pairs = zip(before.attributes, after.attributes, strict=True)
        # Attributes by themselves would tell, by subtraction, who is in a small combination. With
        # one stage left out, the totals would give it away.
        gone, periods = self.periods(before, after)
        if gone and periods:
            notes.append(
                f"Groups are left out of the periods if one of them has fewer than {self.least} of "
                f"their people, or a rate of so few: {', '.join(map(repr, gone))}."
            )
        fine = {
            "periods": bool(periods) or not before.periods,
            "stages": all(
                len(one.categories) == len(own.categories) and not _hides(own)
                for old, new in zip(before.stages, after.stages, strict=True)
                for one, own in zip(old.impact, new.impact, strict=True)
            ),
        }
        notes += [
            f"{name.capitalize()} are left out: some of them have groups or rates of fewer than "
            f"{self.least} people, and the others would reveal these."
            for name, is_fine in fine.items()
            if not is_fine
        ]
        withheld = after.selection_ratio == self.nothing or small or any(map(_hides, after.impact))
        return replace(
            after,
            n_rows=before.n_rows - sum(group.n_rows for group in small),
            n_selected=None if withheld else before.n_selected,
            attributes=tuple(
                own for one, own in pairs if not small and len(own.groups) == len(one.groups)
            ),
            impact=after.impact[-1:] if small else after.impact,
            periods=periods,
            changes=tuple(
                own
                for own in after.changes
                if periods and not {own.group, own.reference} & set(gone)
            ),
            stages=before.stages if fine["stages"] else (),
            notes=(*after.notes, *notes),
        )

    def stated_within(self, before: Audit, after: Audit) -> tuple[ConditionalFacts, ...]:
        """Return differences within strata of groups whose own rate or mean is not withheld."""
        name = "mean_score" if before.threshold is None else "selection_rate"
        stated = {own.label for own in after.groups if getattr(own, name).value is not None}
        return tuple(own for own in after.conditional if {own.group, own.reference} <= stated)

    def notes(self, before: Audit, after: Audit) -> tuple[str, ...]:
        """Return notes without gaps that are withheld, and without a total that tells of others."""
        ranges = [
            "between {:.4f} and {:.4f}".format(*old.unknown_range)
            for old, new in zip(before.gaps, after.gaps, strict=True)
            if old.unknown_range is not None and new.value is None
        ]
        total = f"{before.n_rows:,} rows"
        is_total = sum(own.n_rows for own in after.groups) == before.n_rows
        return tuple(
            note if is_total else note.replace(total, "The rows")
            for note in after.notes
            if not any(words in note for words in ranges)
        )

    def periods(self, before: Audit, after: Audit) -> tuple[list[str], tuple[PartFacts, ...]]:
        """Return the groups that are few in some period, and the periods without these groups.

        In the other periods they are left out too, because the totals would give the few away.
        There are no periods if fewer than two groups are left.
        """
        shown = [
            {group.label for group in one.groups if group.selection_rate != self.nothing}
            for one in after.periods
        ]
        every = dict.fromkeys(group.label for one in before.periods for group in one.groups)
        gone = [label for label in every if not all(label in own for own in shown)]
        if len(every) - len(gone) < 2:
            return gone, ()

        def kept(gap: Gap) -> bool:
            return not set(gap.groups or ()) & set(gone)

        periods = []
        for one in after.periods:
            stated = {own.label for own in one.groups if own.selection_rate.value is not None}
            ratio = self.nothing if stated & set(gone) else one.selection_ratio
            periods.append(
                replace(
                    one,
                    groups=tuple(
                        replace(own, ratio=None) if one.ratio_reference in gone else own
                        for own in one.groups
                        if own.label not in gone
                    ),
                    selection_ratio=ratio,
                    gaps=tuple(
                        own if kept(own) else Gap.unstated(own.name, own.symbol, self.reason)
                        for own in one.gaps
                    ),
                    pair_gaps=tuple(filter(kept, one.pair_gaps)),
                    unknown=tuple(name for name in one.unknown if name not in gone),
                )
            )
        return gone, tuple(periods)

    def group(self, before: GroupFacts, after: GroupFacts) -> GroupFacts:
        """Withhold rates of few people, and of all but a few."""
        size = before.effective_size or before.n_rows
        positive = size * ((before.base_rate and before.base_rate.value) or 0.0)
        sizes = {"selection_rate": size, "base_rate": size, "accuracy": size}
        sizes |= {"true_positive_rate": positive, "false_positive_rate": size - positive}
        rates = {name: self.rate(getattr(after, name), n) for name, n in sizes.items()}
        if rates["base_rate"] and rates["base_rate"].value is None:  # the classes are small
            for name in (_RATES[True], _RATES[False]):
                own = rates[name]
                rates[name] = own and Estimate(None, refused=own.refused or self.reason)
        hides_scores = self.decided and rates["selection_rate"].value is None
        hides_ranks = after.auc and self.few(positive, size - positive)
        return replace(
            after,
            mean_score=rates["selection_rate"]
            if hides_scores and after.mean_score.value is not None
            else after.mean_score,
            score_counts=self.rounded(after.score_counts),
            auc=self.nothing if hides_ranks else after.auc,
            **rates,
        )

    def bin(self, before: CalibrationBin, after: CalibrationBin) -> CalibrationBin:
        """Round the number of people; withhold their mean if they are few."""
        return replace(
            after,
            n_rows=self.rounded(before.n_rows),
            mean_score=None if self.few(before.n_rows) else before.mean_score,
            positive_rate=self.rate(after.positive_rate, before.n_rows),
        )

    def column(self, before: ColumnRole, after: ColumnRole) -> ColumnRole:
        """Round the number of missing values."""
        return replace(after, n_missing=self.rounded(before.n_missing))

    def table(self, before: ImpactTable, after: ImpactTable) -> ImpactTable:
        """Withhold small categories, small numbers selected, and what depends on them."""
        kept = [own for own in after.categories if own.n_people >= self.least]
        few = [self.few(own.n_selected or 0, own.n_people - (own.n_selected or 0)) for own in kept]
        hidden = {own.category for own, is_few in zip(kept, few, strict=True) if is_few}
        every = {own.category for own in kept} if before.most_selected in hidden else hidden
        categories = []
        for own in kept:
            rate = self.rate(own.scoring_rate, own.effective_size or own.n_people)
            own = replace(own, scoring_rate=rate)
            if rate and rate.value is None:
                own = replace(own, scoring_ratio=self.nothing)
            if own.category in hidden:
                nothing = self.nothing
                own = replace(own, n_selected=None, selection_rate=nothing, weight_selected=None)
            if own.category in every:
                tests: dict[str, Any] = dict.fromkeys(_TESTS)
                own = replace(own, impact_ratio=self.nothing, **tests)
            categories.append(own)
        return replace(
            after,
            categories=tuple(categories),
            n_people=sum(own.n_people for own in kept),
            n_unknown=None if self.few(before.n_unknown or 0) else before.n_unknown,
        )

    def class_group(self, before: ClassGroup, after: ClassGroup) -> ClassGroup:
        """Withhold all shares of a group if one is withheld: the others would reveal it."""

        def shares(rates: dict[str, Estimate], size: float) -> dict[str, Estimate]:
            kept = {name: self.rate(own, size) for name, own in rates.items()}
            hidden = any(own.value is None for own in kept.values())
            return dict.fromkeys(kept, self.nothing) if hidden else kept

        n_true = before.n_true
        return replace(
            after,
            shares=shares(after.shares, before.n_rows),
            accuracy=self.rate(after.accuracy, before.n_rows),
            confusion={name: shares(own, n_true[name]) for name, own in after.confusion.items()},
            n_true={name: n for name, n in n_true.items() if not self.few(n)},
        )

    def classes(self, before: ClassFacts, after: ClassFacts) -> ClassFacts:
        """Withhold groups of few people, and cells and gaps that depend on withheld shares."""
        groups = tuple(own for own in after.groups if own.n_rows >= self.least)
        stated = {
            (own.label, label)
            for own in groups
            for label, rates in ((None, own.shares), *own.confusion.items())
            if all(rate.value is not None for rate in rates.values())
        }
        cells = tuple(
            own for own in after.cells if all((name, own.given) in stated for name in own.groups)
        )
        gaps = after.gaps
        if len(cells) < len(before.cells):
            gaps = tuple(Gap.unstated(own.name, own.symbol, self.reason) for own in gaps)
        return replace(after, groups=groups, cells=cells, gaps=gaps)

    def matching(self, before: Matching, after: Matching) -> Matching:
        """Withhold shares of few pairs, and of few people with a near person."""
        least = min(before.n_sampled)
        sizes = dict(zip(before.groups or (), before.n_sampled, strict=False))
        gaps = []
        for own in after.matched_gaps:
            shares = tuple(0.0 if self.few(share * least) else share for share in own.histogram)
            ends = {name: at for name, at in own.quantiles.items() if name not in ("0", "1")}
            flips = own.flips
            if flips is not None and self.few(*(share * least for share in vars(flips).values())):
                flips = None
            gaps.append(replace(own, flips=flips, histogram=shares, quantiles=ends))
        reach = []
        for one in after.reach:
            size = sizes.get(one.group, least)
            share, has_near = self.rate(one.share, size), self.rate(one.has_near, size)
            reach.append(replace(one, share=share, has_near=has_near))
        return replace(after, matched_gaps=tuple(gaps), reach=tuple(reach))

    def subsets(self, before: SubsetScan, after: SubsetScan) -> SubsetScan:
        """Leave out subsets of few people of a group, or of all but a few."""
        kept = []
        for own in after.subsets:
            whole = [self.sizes[name] for name in own.groups or () if name in self.sizes]
            rest = [all_ - n_rows for all_, n_rows in zip(whole, own.n_rows, strict=False)]
            if not self.few(*own.n_rows, *rest):
                kept.append(own)
        return replace(after, subsets=tuple(kept))

    def conditional(self, before: ConditionalFacts, after: ConditionalFacts) -> ConditionalFacts:
        """Leave out strata with few people on a side, and one more if it is only one."""

        def is_large(own: StratumGap) -> bool:
            hits = [(level or 0.0) * n for level, n in zip(own.levels, own.sizes, strict=True)]
            rest = [n - hit for n, hit in zip(own.sizes, hits, strict=True)]
            return not self.few(*own.sizes, *hits, *rest)

        kept = [own for own in after.strata if is_large(own)]
        if len(kept) == len(before.strata) - 1 and kept:
            kept.pop()  # the last and smallest, or the totals would give the other one away
        return replace(after, strata=tuple(kept))

    def pair(self, before: ModelPair, after: ModelPair) -> ModelPair:
        """Round counts of people to multiples, and leave out small groups."""
        shown: dict[str, Any] = {}
        for name in ("rank_agreement", "decisions", "undesirable_flips", "moves"):
            own = getattr(before, name)
            kept = own and {label: own[label] for label in own if self.sizes[label] >= self.least}
            shown[name] = kept if name == "rank_agreement" else self.rounded(kept)
        return replace(after, **shown)


def _hides(table: ImpactTable) -> bool:
    return any(own.n_selected is None for own in table.categories)
