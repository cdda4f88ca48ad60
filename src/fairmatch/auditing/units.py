"""Predictions in units of the target: scaled to [0, 1] for the audit, and its facts scaled back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairmatch.auditing.facts import (
    AttributeFacts,
    Audit,
    Estimate,
    Gap,
    GroupFacts,
    Individuals,
    MatchedScores,
    Matching,
    NearestFair,
    Spread,
    SubsetScan,
)
from fairmatch.exceptions import InputError
from fairmatch.measures.real import IN_UNITS
from fairmatch.tables.arrays import FloatArray

_KNOWN = "the standard deviation is taken as known"


@dataclass(frozen=True)
class Units:
    r"""A linear map between predictions and [0, 1], under which gaps scale exactly.

    Attributes
    ----------
    low : float
        The smallest prediction.
    width : float
        The largest prediction minus the smallest, or 1 if all predictions are equal.

    Notes
    -----
    With :math:`u = (f - a) / b`, gaps of means, Wasserstein gaps and matched gaps of :math:`f`
    are :math:`b` times those of :math:`u`. Kolmogorov-Smirnov gaps stay the same.

    Examples
    --------
    >>> units = Units.of([np.array([30.0, 40.0, 50.0])])
    >>> units.shares(np.array([30.0, 35.0])).tolist(), units.length(0.25)
    ([0.0, 0.25], 5.0)
    """

    low: float
    width: float

    @classmethod
    def of(cls, predictions: Sequence[FloatArray]) -> Units:
        """Return the units in which the predictions of one or several models fill [0, 1]."""
        low = min(float(own.min()) for own in predictions)
        high = max(float(own.max()) for own in predictions)
        with np.errstate(over="ignore"):
            width = float(np.subtract(high, low))
        if not np.isfinite(width):
            raise InputError(
                f"Predictions run from {low:g} to {high:g}, a range too wide for a number. Pass "
                "them in a larger unit."
            )
        return cls(low, width or 1.0)

    def shares(self, predictions: FloatArray) -> FloatArray:
        """Return predictions as shares of the range."""
        shares: FloatArray = np.clip((predictions - self.low) / self.width, 0.0, 1.0)
        return shares

    def place(self, share: float) -> float:
        """Return the prediction at a share of the range."""
        return self.low + self.width * share

    def length(self, share: float) -> float:
        """Return the difference of predictions that corresponds to a share of the range."""
        return self.width * share

    def lengths(self, shares: Sequence[float]) -> tuple[float, ...]:
        """Return the differences of predictions that correspond to several shares."""
        return tuple(self.length(share) for share in shares)

    def between(self, fact: Estimate) -> Estimate:
        """Return an estimated difference, with its interval, in units of the target."""
        value, low, high = (None if end is None else self.length(end) for end in _ends(fact))
        return Estimate(value, low, high, fact.refused)

    def at(self, fact: Estimate) -> Estimate:
        """Return an estimated mean, with its interval, in units of the target."""
        value, low, high = (None if end is None else self.place(end) for end in _ends(fact))
        return Estimate(value, low, high, fact.refused)


def _ends(fact: Estimate | Gap) -> tuple[float | None, float | None, float | None]:
    return fact.value, fact.low, fact.high


def in_units(audit: Audit, units: Units, predictions: FloatArray) -> Audit:
    """Return an audit of scaled predictions with its facts in units of the target.

    Parameters
    ----------
    audit : Audit
        An audit of predictions scaled to [0, 1], with the standard deviation of relative gaps.
    units : Units
        How the predictions were scaled.
    predictions : array of float
        The predictions of the people of the sample, as they were given.
    """
    spread = audit.spread
    assert spread is not None
    people = audit.individuals
    return replace(
        audit,
        score_edges=tuple(map(units.place, audit.score_edges)),
        score_values=tuple(map(units.place, audit.score_values)),
        groups=_groups(audit.groups, units),
        gaps=_gaps(audit.gaps, units, spread),
        pair_gaps=_gaps(audit.pair_gaps, units, spread),
        attributes=tuple(_attribute(own, units, spread) for own in audit.attributes),
        matchings=tuple(_matching(own, units) for own in audit.matchings),
        subsets=None if audit.subsets is None else _subsets(audit.subsets, units),
        individuals=None if people is None else _people(people, units, predictions),
    )


def _groups(groups: Sequence[GroupFacts], units: Units) -> tuple[GroupFacts, ...]:
    return tuple(replace(own, mean_score=units.at(own.mean_score)) for own in groups)


def _gaps(gaps: Sequence[Gap], units: Units, spread: Spread) -> tuple[Gap, ...]:
    """Return gaps in units, followed by the relative version of each gap that has a unit."""
    found = [_scaled(gap, units.width) if gap.name in IN_UNITS else gap for gap in gaps]
    if spread.value > 0.0:
        found += [
            replace(
                _scaled(gap, 1.0 / spread.value),
                name=f"relative_{gap.name}",
                symbol=f"{gap.symbol}/σ",
                method=gap.method if gap.value is None else f"{gap.method}; {_KNOWN}",
            )
            for gap in found
            if gap.name in IN_UNITS
        ]
    return tuple(found)


def _scaled(gap: Gap, factor: float) -> Gap:
    value, low, high, signed = (
        None if end is None else end * factor for end in (*_ends(gap), gap.signed)
    )
    return replace(gap, value=value, low=low, high=high, signed=signed)


def _attribute(facts: AttributeFacts, units: Units, spread: Spread) -> AttributeFacts:
    return replace(
        facts,
        groups=_groups(facts.groups, units),
        gaps=_gaps(facts.gaps, units, spread),
        pair_gaps=_gaps(facts.pair_gaps, units, spread),
    )


def _matching(matching: Matching, units: Units) -> Matching:
    nearest = matching.nearest_fair
    return replace(
        matching,
        matched_gaps=tuple(_matched(own, units) for own in matching.matched_gaps),
        nearest_fair=None if nearest is None else _nearest(nearest, units),
        reach=tuple(replace(own, score_gap=units.length(own.score_gap)) for own in matching.reach),
    )


def _matched(matched: MatchedScores, units: Units) -> MatchedScores:
    quantiles = {name: units.length(value) for name, value in matched.quantiles.items()}
    return replace(matched, gap=units.between(matched.gap), quantiles=quantiles)


def _nearest(found: NearestFair, units: Units) -> NearestFair:
    return replace(
        found,
        slack=units.length(found.slack),
        score_gap=units.length(found.score_gap),
        least_gap=units.length(found.least_gap),
        curve=tuple(replace(point, gap=units.length(point.gap)) for point in found.curve),
    )


def _subsets(scan: SubsetScan, units: Units) -> SubsetScan:
    spaces = scan.half_spaces
    return replace(
        scan,
        subsets=tuple(
            replace(
                own,
                gap=units.length(own.gap),
                signed=units.length(own.signed),
                confirmed=units.between(own.confirmed),
            )
            for own in scan.subsets
        ),
        half_spaces=replace(
            spaces, gaps=units.lengths(spaces.gaps), noise=units.lengths(spaces.noise)
        ),
    )


def _people(people: Individuals, units: Units, predictions: FloatArray) -> Individuals:
    pairs, across = (
        {name: replace(own, score_gap=units.lengths(own.score_gap)) for name, own in found.items()}
        for found in (people.pairs, people.across)
    )
    return replace(
        people,
        scores=tuple(predictions.tolist()),
        pairs=pairs,
        across=across,
        near=tuple(replace(own, score_gap=units.lengths(own.score_gap)) for own in people.near),
    )
