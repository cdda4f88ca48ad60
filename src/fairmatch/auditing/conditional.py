"""Comparisons of people with the same given factors: adjusted differences, tests and strata."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from fairmatch.auditing.facts import ConditionalFacts, Estimate
from fairmatch.auditing.people import Audited
from fairmatch.measures.conditional import ConditionalGap, gaps_within
from fairmatch.measures.contingency import breslow_day, cochran_mantel_haenszel, mantel_haenszel
from fairmatch.measures.distributions import ScoredPeople
from fairmatch.measures.registry import MEASURES
from fairmatch.people.weights import Moments

FEWEST = 5.0
"""The test of equal odds ratios is about strata in which each expected count is at least this."""


def conditional_facts(data: Audited) -> tuple[ConditionalFacts, ...]:
    """Return every group that is large enough compared with the reference group within strata."""
    if data.roster.strata is None or data.refused:
        return ()
    people = replace(data.people, strata=data.roster.strata)
    scored = ScoredPeople(people, data.scores, data.measured)
    measure = MEASURES["demographic_parity_gap" if data.decides else "mean_parity_gap"]
    reference = data.groups.labels[data.reference]
    return tuple(
        _facts(data, scored, gap)
        for gap in gaps_within(scored, measure, reference, "population")
        if data.groups.code_of(gap.group) in data.compared
    )


def _facts(data: Audited, scored: ScoredPeople, gap: ConditionalGap) -> ConditionalFacts:
    groups = data.groups
    codes = groups.code_of(gap.group), groups.code_of(gap.reference)
    confidence, z = data.settings.confidence, -float(ndtri((1 - data.settings.confidence) / 2))
    error = _error(scored, codes, gap, logarithm=False)
    odds = common = same = n_large = percent = None
    if data.decides:
        tables = []
        for own in scored.within.values():
            counted = [own.counts(code) for code in codes]
            tables.append([[hits, people - hits] for hits, people in counted])
        pooled = mantel_haenszel(tables, confidence)
        if np.isfinite(pooled.value):
            high = pooled.high if np.isfinite(pooled.high) else None
            odds = Estimate(pooled.value, pooled.low, high)
        common, test = cochran_mantel_haenszel(tables).p_value, breslow_day(tables, FEWEST)
        n_large = test.degrees + 1 if test.degrees else 0
        same = test.p_value if n_large else None
    elif data.scores.min() > 0.0:
        logs = ScoredPeople(scored.people, np.log(data.scores), scored.settings)
        every = gaps_within(logs, MEASURES["mean_parity_gap"], gap.reference)
        ratio = next(one for one in every if one.group == gap.group)
        half = z * _error(logs, codes, ratio, logarithm=True)
        value, low, high = (float(np.expm1(ratio.value + side * half)) for side in (0, -1, 1))
        percent = Estimate(value, low, high)
    known = vars(gap) | {
        "group": str(gap.group),
        "reference": str(gap.reference),
        "strata": tuple(sorted(gap.strata, key=lambda one: -sum(one.sizes))),
    }
    return ConditionalFacts(
        **known,
        adjusted=Estimate(gap.value, gap.value - z * error, gap.value + z * error),
        odds_ratio=odds,
        p_value=common,
        p_homogeneous=same,
        n_homogeneous=n_large,
        percent=percent,
    )


def _error(
    scored: ScoredPeople, codes: tuple[int, int], gap: ConditionalGap, *, logarithm: bool
) -> float:
    """Return the standard error of an adjusted difference.

    Shares have the variance of each stratum. Numbers share one variance within strata, because a
    stratum may have one person of a group.
    """
    decides = scored.settings.outcome.decides and not logarithm
    moments: list[tuple[float, Moments, Moments]] = []
    for own, stratum in zip(scored.within.values(), gap.strata, strict=True):
        if stratum.weight:
            parts = [own.part(code) for code in codes]
            first, second = (
                part.weights.moments(
                    part.selected(scored.settings).astype(float) if decides else part.values
                )
                for part in parts
            )
            moments.append((stratum.weight, first, second))
    if decides:
        variances = [(w, first.error() + second.error()) for w, first, second in moments]
    else:
        every = [one for _, first, second in moments for one in (first, second)]
        degrees = sum(max(one.size - 1.0, 0.0) for one in every)
        pooled = sum(one.variance * max(one.size - 1.0, 0.0) for one in every) / max(degrees, 1.0)
        variances = [(w, pooled * (1.0 / a.size + 1.0 / b.size)) for w, a, b in moments]
    return float(np.sqrt(sum(weight**2 * variance for weight, variance in variances)))
