"""The registry of measures: every gap once, with its value, interval, words, formula and needs.

Tables, curves, bounds, audits, gates, reports and pictures go through `MEASURES`. To add a measure,
add an entry.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairmatch.exceptions import GroupError, InputError, LabelError
from fairmatch.matching.coupling import Coupling
from fairmatch.measures.distributions import GroupScores, ScoredPeople, Settings
from fairmatch.measures.intervals import (
    SCORE_EDGES,
    Cells,
    GroupPair,
    Interval,
    IntervalMethod,
    Labels,
    LimitMethod,
    compared_cells,
    interval_of_rates,
    interval_of_scores,
    joined,
    limit_of_means,
    limit_of_rates,
)
from fairmatch.measures.numbers import gap_along, is_seen
from fairmatch.people.checks import FloatArray
from fairmatch.people.outcome import PROBABILITY, Outcome
from fairmatch.people.people import People

_DRAWS, _FEW_DRAWS = 1000, 200


class Alike:
    """Groups of the sizes that they have, drawn many times from the people of all of them.

    Each method returns the largest gap over the pairs of groups, for every draw. Scores count as
    shares of their range.
    """

    def __init__(
        self,
        scored: ScoredPeople,
        pairs: Sequence[tuple[int, int]],
        generator: np.random.Generator,
    ) -> None:
        self.scored, self.generator = scored, generator
        self.codes = sorted({code for pair in pairs for code in pair})
        places = {code: place for place, code in enumerate(self.codes)}
        self._pairs = [(places[first], places[second]) for first, second in pairs]

    def rates(self, label: bool | None) -> FloatArray:
        """Return gaps of selection rates."""
        counts = np.array([self.scored.counts(code, label) for code in self.codes])
        rate = counts[:, 0].sum() / counts[:, 1].sum()
        sizes = counts[:, 1].astype(np.int64)
        drawn = self.generator.binomial(sizes, min(rate, 1.0), size=(_DRAWS, len(sizes))) / sizes
        return self._apart(drawn[..., None])

    def means(self, label: bool | None) -> FloatArray:
        """Return gaps of mean scores."""
        scores, sizes, weights = self._pooled(label)
        spread = float(np.sqrt(np.cov(scores, aweights=weights)))
        means = self.generator.normal(size=(_DRAWS, len(sizes))) * spread / np.sqrt(sizes)
        return self._apart(means[..., None])

    def areas(self, label: bool | None) -> FloatArray:
        """Return areas between the distribution functions."""
        below, edges, scores = self._below(label)
        # A cell counts as its mean score, so that tied scores, such as decisions, count exactly.
        cells = np.searchsorted(edges, scores, side="right")
        sizes = np.bincount(cells, minlength=len(edges) + 1)
        sums = np.bincount(cells, scores, minlength=len(sizes))
        starts = np.append(edges[0], edges)
        means = np.divide(sums, sizes, out=starts, where=sizes > 0)
        return self._apart(below * np.diff(means))

    def heights(self, label: bool | None) -> FloatArray:
        """Return largest differences between the distribution functions."""
        return self._apart(self._below(label)[0], largest=True)

    def overlaps(self, label: bool | None) -> FloatArray:
        """Return total variations in equal intervals of scores."""
        return self._apart(self._shares(SCORE_EDGES[1:-1], *self._pooled(label))) / 2.0

    def _below(self, label: bool | None) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the distribution functions at the edges of cells, the edges and all scores."""
        scores, sizes, weights = self._pooled(label)
        # Cells of about equal mass.
        edges = np.unique(np.quantile(scores, np.linspace(0.0, 1.0, 65)[1:-1]))
        drawn = self._shares(edges, scores, sizes, weights)
        return np.cumsum(drawn, axis=-1)[..., :-1], edges, scores

    def _pooled(
        self, label: bool | None
    ) -> tuple[FloatArray, NDArray[np.int64], FloatArray | None]:
        """Return the scores of all groups, the size of each, and the weights."""
        parts = [self.scored.part(code, label) for code in self.codes]
        sizes = np.array([part.weights.worth for part in parts])
        own = [part.weights.values for part in parts if part.weights.values is not None]
        scores = np.concatenate([part.values for part in parts])
        return self.scored.settings.shares(scores), sizes, np.concatenate(own) if own else None

    def _shares(
        self, edges: FloatArray, scores: FloatArray, sizes: Any, weights: FloatArray | None
    ) -> FloatArray:
        """Return the shares of drawn groups in cells, of shape (draws, groups, cells)."""
        cells = np.searchsorted(edges, scores, side="right")
        mass = np.bincount(cells, weights, minlength=len(edges) + 1).astype(np.float64)
        drawn = [
            self.generator.multinomial(size, mass / mass.sum(), size=_FEW_DRAWS) / size
            for size in sizes.tolist()
        ]
        return np.stack(drawn, axis=1)

    def _apart(self, values: FloatArray, *, largest: bool = False) -> FloatArray:
        """Return the largest distance over pairs, of values of shape (draws, groups, cells)."""
        found = np.zeros(len(values))
        for first, second in self._pairs:
            apart = np.abs(values[:, first] - values[:, second])
            found = np.maximum(found, apart.max(axis=-1) if largest else apart.sum(axis=-1))
        return found


Chance: TypeAlias = Callable[[Alike, bool | None], FloatArray]


@dataclass(frozen=True)
class Measure:
    """A gap between groups: how it is computed, what it is called and what it needs.

    Examples
    --------
    >>> from fairmatch.measures import MEASURES
    >>> measure = MEASURES["equalized_odds_gap"]
    >>> measure.symbol, measure.labels, measure.needs_labels
    ('ΔEO', (True, False), True)
    """

    name: str  #: Name of the measure.
    symbol: str  #: The paper's symbol.
    title: str  #: What the measure compares, as a heading.
    words: str  #: What its value means, in plain English.
    formula: str  #: The formula for two groups, as LaTeX.
    #: Takes a `GroupPair`, the compared classes and a level of confidence, and returns an
    #: `Interval`. It is None for measures of matched people, whose interval is that of the pairs.
    interval: IntervalMethod | None
    #: Takes the `GroupScores` of a group and the `Settings`, and returns one number. The group with
    #: the larger number is better off. By default it is the selection rate, or the mean score.
    level: Callable[[GroupScores, Settings], float] | None = None
    #: Takes the `GroupScores` of two groups and the `Settings`, and returns their gap. By default
    #: it is the absolute difference of their levels.
    distance: Callable[[GroupScores, GroupScores, Settings], float] | None = None
    #: Takes groups that are `Alike` and a class, and returns the largest distance over pairs of
    #: groups for many draws, of scores as shares of their range. An audit states no average by
    #: chance for a distance without it.
    chance: Chance | None = None
    #: Whether the distance is wrong by at most as much as the two distribution functions are, in
    #: widths of the range of scores. Gaps of pairs that cannot matter then need no interval.
    follows: bool = False
    #: The classes within which groups are compared: True is Y = 1, False is Y = 0, None is
    #: everybody.
    labels: Labels = (None,)
    #: One of "mean", "worst_case". Whether the gaps of several classes are averaged, or the largest
    #: counts.
    agg: str = "mean"
    #: One of "share", "score", "deviation". What the value counts: shares of people, scores in
    #: their own unit, or standard deviations.
    unit: str = "share"
    #: Takes the groups, an error probability and the `Settings`, and returns an upper confidence
    #: limit of the largest gap. A measure without it has no bound at a level of confidence.
    limit: LimitMethod | None = None
    needs_coupling: bool = False  #: Whether the measure compares matched people.
    needs_decisions: bool = False  #: Whether scores must imply decisions, as probabilities do.
    needs_bounds: bool = False  #: Whether scores must lie in [0, 1].
    needs_unit: bool = False  #: Whether scores must have a unit, as predictions of a number do.
    #: Whether groups must be bands of a number, along which scores are compared.
    needs_number: bool = False
    #: Whether audits show the measure. The worst case of the odds is one of two gaps that they show
    #: anyway.
    audited: bool = True
    #: What the measure compares where there are three or more classes, as a heading. Without it,
    #: the measure is for two classes only.
    several: str | None = None
    #: Title and words where the scores are predictions of a number, if they differ.
    predicted: tuple[str, str] | None = None

    @property
    def needs_labels(self) -> bool:
        """Whether the measure needs the true labels."""
        return self.labels != (None,)

    @property
    def is_relative(self) -> bool:
        """Whether the value is in standard deviations."""
        return self.unit == "deviation"

    @property
    def averages(self) -> bool:
        """Whether the levels are averages over people: selection rates or mean scores."""
        own = self.level or self.distance or self.needs_coupling or self.needs_number
        return not own

    @property
    def is_difference(self) -> bool:
        """Whether the gap is a difference of two rates or means within one class."""
        return self.averages and len(self.labels) == 1

    @property
    def base_name(self) -> str:
        """The name of the gap in the unit of the scores, whose random streams it shares."""
        return self.name.removeprefix("relative_") if self.is_relative else self.name

    def applies_to(self, outcome: Outcome) -> bool:
        """Return whether scores of this kind have the gap."""
        if outcome.several:
            return self.several is not None or (self.needs_coupling and not self.needs_unit)
        if outcome.decides:
            return not self.needs_unit
        return not (self.needs_decisions or self.needs_bounds or self.needs_labels)

    def between(self, scored: ScoredPeople, codes: tuple[int, int]) -> float:
        """Return the gap between two groups: the mean over the classes, or the largest."""
        return self._largest(scored, [codes])

    def _largest(self, scored: ScoredPeople, pairs: Sequence[tuple[int, int]]) -> float:
        scored = self._compared(scored)
        cells = self.cells(scored.settings.outcome)
        return self._joined([max(self._gap(scored, pair, *own) for pair in pairs) for own in cells])

    def _compared(self, scored: ScoredPeople) -> ScoredPeople:
        """Return people with the scores that are compared: places of classes that are in order."""
        line = scored.settings.outcome.ordered and not self.needs_decisions
        return scored.levels if line else scored

    def cells(self, outcome: Outcome) -> Cells:
        """Return the labels within which groups are compared, each with the decided classes."""
        return compared_cells(self.labels, outcome if self.needs_decisions else PROBABILITY)

    def _joined(self, gaps: Sequence[float]) -> float:
        return float(joined(gaps, self.agg if len(self.labels) > 1 else "worst_case"))

    def _gap(
        self,
        scored: ScoredPeople,
        codes: tuple[int, int],
        label: int | None,
        cells: Sequence[int | None],
    ) -> float:
        """Return the gap between two groups within one class: the largest over decided classes."""
        strata = scored.strata(codes, label)
        return max(
            sum(weight * self._apart(own, codes, label, cell) for weight, own in strata)
            for cell in cells
        )

    def _apart(
        self, scored: ScoredPeople, codes: tuple[int, int], label: int | None, cell: int | None
    ) -> float:
        first, second = (scored.part(code, label, cell) for code in codes)
        settings = scored.settings
        if self.distance is not None:
            found = self.distance(first, second, settings)
        else:
            apart = self.level_of(first, settings) - self.level_of(second, settings)
            found = float(np.abs(apart).sum()) / (2.0 if np.ndim(apart) else 1.0)
        return found / self.unit_of(settings)

    def level_of(self, group: GroupScores, settings: Settings) -> Any:
        """Return the level of a group: a number, or the mean vector of class probabilities."""
        if self.level is not None:
            return self.level(group, settings)
        return group.rate(settings) if self.needs_decisions else group.mean

    def difference(self, scored: ScoredPeople, codes: tuple[int, int]) -> float:
        """Return the second group's level minus the first's, summed over the classes.

        Levels of several classes are the shares of people who get a favourable one.
        """
        settings = scored.settings
        if settings.outcome.several:
            first, second = (
                sum(scored.part(code, None, cell).mean for cell in settings.outcome.favourable)
                for code in codes
            )
            return float(second - first)
        found = 0.0
        for label in self.labels:
            for weight, own in scored.strata(codes, label):
                first, second = (self.level_of(own.part(code, label), settings) for code in codes)
                found += weight * (second - first)
        return found

    def signed(self, scored: ScoredPeople, codes: tuple[int, int]) -> float | None:
        """Return the second group's level minus the first's; None for gaps without direction."""
        if scored.settings.outcome.several or self.distance is not None or len(self.labels) > 1:
            return None
        return self.difference(scored, codes) / self.unit_of(scored.settings)

    def value(self, scored: ScoredPeople, coupling: Coupling | None = None) -> float:
        """Return the largest gap over pairs of groups, averaged over the classes.

        If people have strata, the gap of two groups is the mean of their gaps within strata that
        have people of both, weighted by the people of the two groups.
        """
        if self.needs_coupling:
            assert coupling is not None
            return coupling.largest_gap(scored.scores) / self.unit_of(scored.settings)
        if self.needs_number:
            return gap_along(scored.scores, scored.people.groups.numbers, scored.people.weights)
        return self._largest(scored, list(combinations(scored.codes, 2)))

    def interval_of(self, pair: GroupPair, confidence: float) -> Interval:
        """Return the interval of the gap between two groups, which holds its value."""
        assert self.interval is not None
        scored = self._compared(pair.scored)
        if scored is not pair.scored:  # otherwise all measures share the grid of the pair
            pair = replace(pair, scored=scored)
        settings = scored.settings
        value, unit = self.between(scored, pair.codes), self.unit_of(settings)
        found = self.interval(pair, self.labels, confidence)
        most = 1.0 if self.unit == "share" else settings.width / unit
        # The estimate comes from all scores and the limits from cells of them: keep their order.
        low, high = min(found.low / unit, value), min(max(found.high / unit, value), most)
        known = "; the standard deviation is taken as known" if self.is_relative else ""
        return replace(found, low=low, high=high, method=f"{found.method}{known}")

    def upper_limit(self, scored: ScoredPeople, confidence: float) -> float:
        """Return an upper confidence limit of the largest gap over pairs of groups.

        It is NaN if a group has no rows of a class that is compared.

        Notes
        -----
        All pairs of groups and all classes share the error probability equally (Bonferroni). The
        limit of two rates is exact, by inverting a test, except with survey weights, where it is
        approximate; that of two means is approximate. The limit of equalised odds is the mean of
        the limits of its two gaps, and in the worst case the larger of them.
        """
        assert self.limit is not None
        if scored.people.groups.memberships is not None:
            raise InputError(
                "There is no confidence limit for the gap of estimated groups. Leave confidence "
                "out.",
                parameter="confidence",
            )
        if scored.people.strata is not None:
            raise InputError(
                "There is no confidence limit for a gap within strata. Leave confidence out, or "
                "leave given out.",
                parameter="confidence",
            )
        rows, scored = scored.people.groups.sizes(), self._compared(scored)
        present = [code for code in scored.codes if rows[code] > 0]
        try:
            parts = [
                [[scored.part(code, label, cell) for code in present] for cell in own]
                for label, own in self.cells(scored.settings.outcome)
            ]
        except (GroupError, LabelError):
            return float("nan")
        n_pairs = len(present) * (len(present) - 1) // 2
        error = (1.0 - confidence) / (n_pairs * sum(map(len, parts)))
        limits = [max(self.limit(own, error, scored.settings) for own in part) for part in parts]
        return self._joined(limits) / self.unit_of(scored.settings)

    def expected(
        self,
        scored: ScoredPeople,
        pairs: Sequence[tuple[int, int]],
        generator: np.random.Generator,
    ) -> float | None:
        """Return the mean of the largest gap over pairs if every group is drawn from all people.

        It is None for gaps for which it is not known.
        """
        chance = self.chance
        if self.averages:
            chance = Alike.rates if self.needs_decisions else Alike.means
        if chance is None:
            return None
        alike = Alike(scored, pairs, generator)
        gaps = joined([chance(alike, label) for label in self.labels], self.agg)
        width = 1.0 if self.unit == "share" else scored.settings.width
        return width / self.unit_of(scored.settings) * float(np.mean(gaps))

    def unit_of(self, settings: Settings) -> float:
        """Return the number by which the gap is divided: the standard deviation, or 1."""
        if not self.is_relative:
            return 1.0
        assert settings.spread is not None
        return settings.spread


def _relative(measure: Measure) -> Measure:
    """Return a measure of predictions in standard deviations instead of their own unit."""
    return replace(
        measure,
        name=f"relative_{measure.name}",
        symbol=f"{measure.symbol}/σ",
        title=f"{measure.title}, relative",
        predicted=measure.predicted and (f"{measure.predicted[0]}, relative", measure.predicted[1]),
        words=f"{measure.words}, in standard deviations",
        formula=rf"{measure.formula} \,/\, \sigma",
        unit="deviation",
        needs_unit=True,
        several=None,
    )


_RATES: dict[str, Any] = {
    "interval": interval_of_rates,
    "limit": limit_of_rates,
    "needs_decisions": True,
}
_MEASURES = (
    Measure(
        "demographic_parity_gap",
        "ΔDP",
        "Selection rates",
        "difference of the shares of selected people",
        r"|P(f \ge \tau \mid S = s) - P(f \ge \tau \mid S = s')|",
        several="Shares of the classes",
        **_RATES,
    ),
    Measure(
        "mean_parity_gap",
        "Δ‾DP",
        "Mean scores",
        "difference of the mean scores",
        r"|E(f \mid S = s) - E(f \mid S = s')|",
        partial(interval_of_scores, name="mean_gap"),
        unit="score",
        limit=limit_of_means,
        several="Mean scores",
        predicted=("Mean predictions", "difference of the mean predictions"),
    ),
    Measure(
        "wasserstein_parity_gap",
        "ΔWDP",
        "Score distributions, mean distance",
        "mean score difference of people at the same rank of their groups",
        r"\int_0^1 |F_s(t) - F_{s'}(t)| \, dt",
        partial(interval_of_scores, name="wasserstein"),
        distance=lambda first, second, settings: first.wasserstein(second),
        chance=Alike.areas,
        follows=True,
        unit="score",
        several="Score distributions, mean distance",
        predicted=(
            "Distributions of predictions",
            "mean difference of the predictions for people at the same rank of their groups",
        ),
    ),
    Measure(
        "total_variation_parity_gap",
        "ΔTVDP",
        "Score distributions, overlap",
        "share of people who would need another score, with scores in intervals",
        r"\tfrac12 \sum_t |P_s(f = t) - P_{s'}(f = t)|",
        partial(interval_of_scores, name="total_variation"),
        distance=lambda first, second, settings: first.total_variation(second, settings),
        chance=Alike.overlaps,
        needs_bounds=True,  # it depends on where the range of scores is cut
    ),
    Measure(
        "ks_parity_gap",
        "ΔKSDP",
        "Score distributions, largest distance",
        "difference of selection rates at the threshold where it is largest",
        r"\sup_t |F_s(t) - F_{s'}(t)|",
        partial(interval_of_scores, name="kolmogorov_smirnov"),
        distance=lambda first, second, settings: first.distances(second).kolmogorov_smirnov,
        chance=Alike.heights,
        follows=True,
        predicted=(
            "Distributions of predictions, largest distance",
            "largest difference of the shares of people predicted at most some number",
        ),
    ),
    Measure(
        "matched_parity_gap",
        "ΔMDP",
        "Matched people",
        "mean score difference of people who are matched with each other",
        r"E_s |f(X, s) - f(T(X), s')|",
        None,
        unit="score",
        needs_coupling=True,
        predicted=(
            "Matched people",
            "mean difference of the predictions for people who are matched with each other",
        ),
    ),
    Measure(
        "true_positive_gap",
        "ΔTPR",
        "True positive rates",
        "difference of the shares selected among people with a positive label",
        r"|P(f \ge \tau \mid S = s, Y = 1) - P(f \ge \tau \mid S = s', Y = 1)|",
        labels=(True,),
        several="Recalls of the favourable classes",
        **_RATES,
    ),
    Measure(
        "false_positive_gap",
        "ΔFPR",
        "False positive rates",
        "difference of the shares selected among people with a negative label",
        r"|P(f \ge \tau \mid S = s, Y = 0) - P(f \ge \tau \mid S = s', Y = 0)|",
        labels=(False,),
        **_RATES,
    ),
    Measure(
        "equalized_odds_gap",
        "ΔEO",
        "Both error rates",
        "mean of the gaps of true and of false positive rates; fairlearn takes the larger",
        r"(\Delta\mathrm{TPR} + \Delta\mathrm{FPR}) / 2",
        labels=(True, False),
        several="Shares of the classes given the label, mean over labels",
        **_RATES,
    ),
    Measure(
        "worst_case_odds_gap",
        "ΔEO, worst case",
        "Both error rates, worst case",
        "larger of the two gaps of error rates",
        r"\max(\Delta\mathrm{TPR}, \Delta\mathrm{FPR})",
        labels=(True, False),
        agg="worst_case",
        several="Shares of the classes given the label, largest over labels",
        audited=False,
        **_RATES | {"interval": partial(interval_of_rates, agg="worst_case")},
    ),
)

MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (*_MEASURES, *(_relative(own) for own in _MEASURES if own.unit == "score"))
}
"""Every measure by its name."""

_ALONG = Measure(
    "generalized_parity_gap",
    "ΔGDP",
    "Mean scores along the number",
    "mean distance between the mean score at a person's number and the mean score of all",
    r"E_S\, |E(f \mid S) - E f|",
    None,
    unit="score",
    needs_number=True,
)
BOUNDED: Mapping[str, Measure] = ChainMap({_ALONG.name: _ALONG}, MEASURES)
"""What ``max_gap`` can bound: every measure, and the gap of a number."""


def bounded(outcome: Outcome) -> dict[str, Measure]:
    """Return the gaps that can be bounded for scores of a kind, by name."""
    return {name: own for name, own in BOUNDED.items() if own.applies_to(outcome)}


def applicable(outcome: Outcome) -> dict[str, Measure]:
    """Return the measures that scores of a kind have, by name."""
    return {name: own for name, own in MEASURES.items() if own.applies_to(outcome)}


def audited(outcome: Outcome) -> dict[str, Measure]:
    """Return the measures that an audit of such scores shows, by name."""
    return {name: own for name, own in applicable(outcome).items() if own.audited}


def of_averages(*, decides: bool) -> dict[str, Measure]:
    """Return the measures of rates, or of means, whose levels are averages over people."""
    return {
        name: own
        for name, own in MEASURES.items()
        if own.averages and own.needs_decisions == decides and not own.needs_unit
    }


def read_measure(value: Any, name: str = "measure", outcome: Outcome = PROBABILITY) -> Measure:
    """Return the measure with this name. Raise an error that lists the names if there is none.

    A measure is returned unchanged. ``name`` is the parameter that the error is about.
    """
    if isinstance(value, Measure):
        return value
    known = applicable(outcome)
    if isinstance(value, str) and value in known:
        return known[value]
    raise InputError(
        f"{name}={value!r} is not a measure; choose one of {', '.join(known)}.", parameter=name
    )


def gap_values(
    people: People,
    scores: FloatArray,
    settings: Settings | None = None,
    *,
    coupling: Coupling | None = None,
    undefined: bool = False,
) -> dict[str, float]:
    """Return every gap that people and scores allow, by name.

    Gaps of matched people need their coupling. Without labels, gaps of error rates are left out, or
    NaN if ``undefined``. Where a group has no rows of a class, they raise an error, or are NaN.
    """
    scored = matched = ScoredPeople(people, scores, settings)
    if people.groups.memberships is not None:
        people, rows = people.expanded()
        scored = ScoredPeople(people, scores[rows], settings)
    found: dict[str, float] = {}
    for name, measure in applicable(scored.settings.outcome).items():
        matches, relative = measure.needs_coupling, measure.is_relative
        if (matches and coupling is None) or (relative and not scored.settings.spread):
            continue
        is_labelled = people.has_classes or not measure.needs_labels
        try:
            value = np.nan
            if is_labelled:
                value = measure.value(matched if matches else scored, coupling)
        except LabelError:
            if not undefined:
                raise
        if is_labelled or undefined:
            found[name] = value
    numbers = people.groups.numbers
    if numbers is not None and not scored.settings.outcome.several and is_seen(numbers):
        found[_ALONG.name] = _ALONG.value(scored)
    return found
