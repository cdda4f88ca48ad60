"""Selection rates, scoring rates and impact ratios by category."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr

from fairmatch.auditing.facts import Estimate
from fairmatch.auditing.facts.impact import FOUR_FIFTHS, SMALL_SHARE, CategoryImpact, ImpactTable
from fairmatch.auditing.people import UNKNOWN
from fairmatch.auditing.scored import Scored
from fairmatch.auditing.weighting import RowWeights
from fairmatch.measures.closed_forms import rate_over_rate, wilson
from fairmatch.tables.arrays import BoolArray, FloatArray
from fairmatch.tables.groups import Groups

# For larger tables the normal approximation agrees with Fisher's test to all digits shown.
_MOST_CELLS = 1_000_000


@dataclass(frozen=True)
class Rate:
    """A share of a category's people, and how many people it rests on."""

    share: float
    n_people: int

    @property
    def hits(self) -> float:
        """How many people of the category the share amounts to."""
        return self.share * self.n_people

    def estimate(self, confidence: float) -> Estimate:
        """Return the share with Wilson's interval."""
        return Estimate(self.share, *wilson(self.hits, self.n_people, confidence))

    def ratio(self, most: Rate, confidence: float) -> Estimate:
        """Return the share divided by another share, with the interval of the ratio."""
        if most.share == 0.0:
            return Estimate(None, refused="The rate that others are compared with is 0.")
        if self is most:
            return Estimate(1.0)
        hits, people = (self.hits, most.hits), (self.n_people, most.n_people)
        limits = rate_over_rate(hits, people, confidence)
        return Estimate(self.share / most.share, *limits)


def impact_tables(
    data: Scored, attributes: Mapping[str, Groups], *, name: str = "group"
) -> tuple[ImpactTable, ...]:
    """Return the rates and ratios of each attribute, and of all of them crossed.

    Parameters
    ----------
    data : Scored
        The rows to audit. Their groups are those of the one attribute, or the combinations.
    attributes : mapping
        Name of each attribute to its groups, if there are several. Otherwise it is empty.
    name : str
        What a single attribute is called.
    """
    scoring = _above_median(data)
    if not attributes:
        return (_table(data, {name: data.groups}, scoring),)
    single = [
        _table(replace(data, groups=own, unknown=_unknown(own)), {attribute: own}, scoring)
        for attribute, own in attributes.items()
    ]
    return (*single, _table(data, attributes, scoring))


def _unknown(groups: Groups) -> tuple[int, ...]:
    """Return the code of an attribute's unknown people, or nothing if there are none."""
    return tuple(code for code, label in enumerate(groups.labels) if label == UNKNOWN)


def _above_median(data: Scored) -> tuple[float, BoolArray] | None:
    """Return the median score of everybody, and a mask of the people who score better."""
    if data.is_decision:
        return None
    median = weighted_median(data.scores, data.weights)
    is_high = data.settings.favourable == "high"
    return median, np.asarray(data.scores > median if is_high else data.scores < median)


def weighted_median(values: FloatArray, weights: RowWeights) -> float:
    """Return the median of weighted values. If it lies between two values, return their mean.

    Examples
    --------
    >>> import numpy as np
    >>> weighted_median(np.array([3.0, 1.0]), RowWeights(2, np.array([1.0, 3.0]), is_counts=True))
    1.0
    """
    if weights.values is None:
        return float(np.median(values))
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(weights.values[order])
    half = mass[-1] / 2.0
    at = int(np.searchsorted(mass, half * (1.0 - 1e-12)))
    low = values[order[at]]
    if mass[at] > half * (1.0 + 1e-12) or at + 1 == len(order):
        return float(low)
    return float((low + values[order[at + 1]]) / 2.0)


def _table(
    data: Scored, attributes: Mapping[str, Groups], scoring: tuple[float, BoolArray] | None
) -> ImpactTable:
    confidence = data.settings.confidence
    codes = [c for c, n in enumerate(data.sizes) if n and c not in data.unknown]
    total = sum(data.totals[code] for code in codes)
    shares = {code: data.totals[code] / total for code in codes}
    large = [code for code in codes if shares[code] >= SMALL_SHARE]
    chosen = _rates(data, codes, data.selected)
    scored = {} if scoring is None else _rates(data, codes, scoring[1])
    most = max(large, key=lambda code: chosen[code].share) if large else None
    highest = max(large, key=lambda code: scored[code].share) if large and scored else None
    categories = []
    for code in codes:
        rows = data.groups.is_group(code)
        first = int(np.argmax(rows))
        ratio = _ratio(chosen, code, most, confidence)
        own, selected = (data.weights.take(mask) for mask in (rows, rows & data.selected))
        survey = own.is_survey
        categories.append(
            CategoryImpact(
                category=data.labels[code],
                values=tuple(str(own.labels[own.codes[first]]) for own in attributes.values()),
                n_people=data.sizes[code],
                n_selected=selected.people,
                share=shares[code],
                selection_rate=chosen[code].estimate(confidence),
                impact_ratio=ratio,
                p_value=None if most in (None, code) else _test(chosen[code], chosen[most]),
                scoring_rate=scored[code].estimate(confidence) if scored else None,
                scoring_ratio=_ratio(scored, code, highest, confidence) if scored else None,
                is_small=shares[code] < SMALL_SHARE,
                below_four_fifths=None if ratio.value is None else ratio.value < FOUR_FIFTHS,
                is_few=data.refuse(code, own.size) is not None,
                weight=own.total if survey else None,
                weight_selected=selected.total if survey else None,
                effective_size=own.size if survey else None,
            )
        )
    n_people = sum(data.sizes[code] for code in codes)
    return ImpactTable(
        attributes=tuple(attributes),
        categories=tuple(categories),
        n_people=n_people,
        n_unknown=sum(data.sizes) - n_people,
        most_selected=None if most is None else data.labels[most],
        highest_scoring=None if highest is None else data.labels[highest],
        median_score=None if scoring is None else scoring[0],
    )


def _rates(data: Scored, codes: list[int], hits: BoolArray) -> dict[int, Rate]:
    rates = {}
    for code in codes:
        rows = data.groups.is_group(code)
        share, size = data.weights.take(rows).rate(hits[rows])
        rates[code] = Rate(share, max(round(size), 1))
    return rates


def _ratio(rates: Mapping[int, Rate], code: int, most: int | None, confidence: float) -> Estimate:
    if most is None:
        return Estimate(None, refused="Every category has less than 2% of the people.")
    return rates[code].ratio(rates[most], confidence)


def _test(first: Rate, second: Rate) -> float:
    return fisher((round(first.hits), round(second.hits)), (first.n_people, second.n_people))


def fisher(hits: tuple[int, int], people: tuple[int, int]) -> float:
    """Return the two-sided p-value of Fisher's exact test that two rates are equal.

    Parameters
    ----------
    hits, people : two int
        Hits and people of each category.

    Examples
    --------
    >>> round(fisher((8, 1), (10, 6)), 4)
    0.035
    """
    total, successes = sum(people), sum(hits)
    least, most = max(0, successes - people[1]), min(people[0], successes)
    if most - least > _MOST_CELLS:
        rate = successes / total
        error = np.sqrt(rate * (1 - rate) * (1 / people[0] + 1 / people[1]))
        return float(2 * ndtr(-abs(hits[0] / people[0] - hits[1] / people[1]) / error))
    k = np.arange(least, most + 1)
    logs = _log_choose(people[0], k) + _log_choose(people[1], successes - k)
    chances = np.exp(logs - logs.max())
    # Tables that are no more likely than the observed one, up to rounding.
    reached = chances <= chances[hits[0] - least] * (1 + 1e-7)
    return float(chances[reached].sum() / chances.sum())


def _log_choose(n: int, k: NDArray[np.int64]) -> FloatArray:
    logs: FloatArray = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return logs
