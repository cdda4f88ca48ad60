"""The gaps between groups, pair by pair, with their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairmatch.auditing.facts import Gap
from fairmatch.auditing.grid import WeightedGrid
from fairmatch.auditing.groups import SCORE_BINS
from fairmatch.auditing.scored import Scored
from fairmatch.auditing.weighting import RowWeights
from fairmatch.matching.coupling import IndexArray
from fairmatch.measures import MEASURES
from fairmatch.measures.closed_forms import Limits, fold, rate_difference
from fairmatch.measures.distributions import ScoreDistributions
from fairmatch.measures.intervals import ScoreGrid, Spread, mean_of_rate_gaps
from fairmatch.tables.groups import Groups

# How intervals are made: for people, and with survey weights.
_METHODS = {
    "rates": "Newcombe's interval of the signed difference, folded at 0",
    "means": "Newcombe's interval carried over to means, of the signed difference, folded at 0",
    "distances": "bootstrap, corrected for upward bias; lower limit 0 unless a permutation test "
    "rejects",
    "many": "bootstrap, corrected for upward bias; many pairs, so lower limit in closed form",
    "odds": "binomial bootstrap of both differences, corrected for upward bias",
}
_EFFECTIVE = "with the effective number of people"
_SURVEY_METHODS = {
    "rates": f"Newcombe's interval of the signed difference, {_EFFECTIVE}, folded at 0",
    "means": "Welch's interval of the signed difference of weighted means, folded at 0",
    "distances": f"bootstrap {_EFFECTIVE}, corrected for upward bias; lower limit 0 unless a "
    "bootstrap test of equality rejects",
    "many": f"bootstrap {_EFFECTIVE}, corrected for upward bias; many pairs, so lower limit in "
    "closed form",
    "odds": f"binomial bootstrap of both differences {_EFFECTIVE}, corrected for upward bias",
}

# Differences of selection rates: over everybody, or over those with one label.
_RATES: dict[str, bool | None] = {
    "demographic_parity_gap": None,
    "true_positive_gap": True,
    "false_positive_gap": False,
}
_SCORES = (
    "mean_parity_gap",
    "wasserstein_parity_gap",
    "total_variation_parity_gap",
    "ks_parity_gap",
)
_ODDS = "equalized_odds_gap"
# The total variation is left out, because it depends on where the range of predictions is cut.
_PREDICTIONS = "mean_parity_gap", "wasserstein_parity_gap", "ks_parity_gap"


def take_gaps(data: Scored) -> tuple[tuple[Gap, ...], tuple[Gap, ...]]:
    """Return every gap that scores, groups and labels allow, with intervals.

    Parameters
    ----------
    data : Scored
        The rows to audit.

    Returns
    -------
    gaps : tuple of Gap
        One per measure: the largest over the pairs of groups.
    by_pair : tuple of Gap
        The same measures for each pair with the reference group, and for the pair with the largest
        gap. It is empty for two groups, which make only one pair.
    """
    names = ["demographic_parity_gap", *_SCORES]
    if data.settings.is_real:
        names = [*_PREDICTIONS]
    elif data.positive is not None:
        names += ["true_positive_gap", "false_positive_gap", _ODDS]
    if data.refused:
        return tuple(_refused_gap(name, data.refused) for name in names), ()
    pairs = [GroupPair(data, codes) for codes in data.pairs]
    largest, by_pair = [], []
    for name in names:
        reasons = [pair.refuse(name) for pair in pairs]
        stated = [pair for pair, reason in zip(pairs, reasons, strict=True) if not reason]
        if not stated:
            largest.append(_refused_gap(name, next(filter(None, reasons))))
            continue
        # The first of tied pairs is taken. Rounding must not decide between them.
        worst = max(stated, key=lambda pair: round(pair.value(name), 12))
        largest.append(worst.gap(name))
        if len(pairs) > 1:
            by_pair += [
                pair.gap(name) for pair in stated if pair is worst or data.reference in pair.codes
            ]
    return tuple(largest), tuple(by_pair)


@dataclass(frozen=True, eq=False)
class GroupPair:
    """Two groups of the rows to audit, ready to be compared.

    Attributes
    ----------
    data : Scored
        The rows to audit.
    codes : tuple of two int
        Codes of the first group and of the second.
    """

    data: Scored
    codes: tuple[int, int]

    @cached_property
    def _distances(self) -> ScoreDistributions:
        first, second = self._rows
        rows = np.concatenate([first, second])
        codes = np.repeat(np.array([0, 1], dtype=np.int8), [len(first), len(second)])
        weights = self.data.weights.take(rows).values
        return ScoreDistributions(self.data.scores[rows], Groups(codes, self._labels), weights)

    @property
    def _rows(self) -> list[IndexArray]:
        return [self.data.groups.rows(code) for code in self.codes]

    @cached_property
    def _weights(self) -> list[RowWeights]:
        return [self.data.weights.take(rows) for rows in self._rows]

    @cached_property
    def _grid(self) -> ScoreGrid:
        """The scores of both groups, resampled."""
        scores = self._distances.scores[0], self._distances.scores[1]
        n_resamples = self.data.settings.n_resamples
        generator = self.data.pair_generator(0, self.codes)
        if self.data.weights.is_survey:
            return WeightedGrid(
                scores, self._weights, bins=SCORE_BINS, n_resamples=n_resamples, generator=generator
            )
        return ScoreGrid(
            scores,
            bins=SCORE_BINS,
            n_resamples=n_resamples,
            generator=generator,
            people=[own.values for own in self._weights],
        )

    @property
    def _labels(self) -> tuple[str, str]:
        return self.data.labels[self.codes[0]], self.data.labels[self.codes[1]]

    def _counts(self, label: bool | None) -> tuple[tuple[float, float], tuple[int, int]]:
        """Count the selected people and all people of each group, among those with a label."""
        hits, sizes = self.data.counts(label)
        first, second = self.codes
        return (hits[first], hits[second]), (sizes[first], sizes[second])

    def refuse(self, name: str) -> str | None:
        """Return why a gap is not stated, or None if it is."""
        for label in (True, False) if name == _ODDS else (_RATES.get(name),):
            if label is None:
                continue
            _, sizes = self._counts(label)
            for code, size in zip(self.codes, sizes, strict=True):
                if reason := self.data.refuse(code, size, self.data.among(label)):
                    return reason
        return None

    def signed(self, name: str) -> float | None:
        """Return the second group's rate or mean minus the first's, or None for other gaps."""
        if name in _RATES:
            counts, sizes = self._counts(_RATES[name])
            return counts[1] / sizes[1] - counts[0] / sizes[0]
        if name == "mean_parity_gap":
            means = self._distances.rates(None)
            return float(means[1] - means[0])
        return None

    def value(self, name: str) -> float:
        """Return the value of a gap."""
        if name == _ODDS:
            return (self.value("true_positive_gap") + self.value("false_positive_gap")) / 2.0
        if name == "wasserstein_parity_gap":
            return self._distances.wasserstein
        if name == "total_variation_parity_gap":
            return self._distances.total_variation(SCORE_BINS)
        if name == "ks_parity_gap":
            return self._distances.kolmogorov_smirnov
        signed = self.signed(name)
        assert signed is not None
        return abs(signed)

    def gap(self, name: str) -> Gap:
        """Return a gap with its interval."""
        value, (spread, kind) = self.value(name), self._spread(name)
        methods = _SURVEY_METHODS if self.data.weights.is_survey else _METHODS
        # The estimate comes from all scores and the limits from cells of them: keep their order.
        low, high = min(spread.low, value), min(max(spread.high, value), 1.0)
        symbol = MEASURES[name].symbol
        facts = (value, low, high, self.signed(name), spread.p_value, methods[kind])
        return Gap(name, symbol, *facts, groups=self._labels, favoured=self._favoured(name))

    def _favoured(self, name: str) -> str | None:
        """Return the group that is better off, or None where a gap has no direction."""
        signed = self.signed(name)
        if not signed:
            return None
        # Rates are already those of the favourable outcome. Scores are as they were given.
        turned = name == "mean_parity_gap" and self.data.settings.favourable == "low"
        return self._labels[int((signed > 0.0) != turned)]

    def _spread(self, name: str) -> tuple[Spread, str]:
        """Return the interval of a gap, and how it is made."""
        confidence = self.data.pair_confidence
        if name in _RATES:
            limits = fold(rate_difference(*self._counts(_RATES[name]), confidence))
            return Spread(*limits), "rates"
        if name == _ODDS:
            return Spread(*self._odds_limits(confidence)), "odds"
        if self.data.is_decision:
            # For decisions, every other gap is the difference of the two groups' shares of ones.
            ones = zip(self._weights, self._distances.scores, strict=True)
            rates = [weights.rate(scores > 0.0) for weights, scores in ones]
            sizes = max(round(rates[0][1]), 1), max(round(rates[1][1]), 1)
            hits = rates[0][0] * sizes[0], rates[1][0] * sizes[1]
            limits = rate_difference(hits, sizes, confidence)
            return Spread(*fold(limits)), "rates"
        if name == "mean_parity_gap":
            return self._grid.mean_gap(confidence), "means"
        spread = {
            "wasserstein_parity_gap": self._grid.wasserstein,
            "total_variation_parity_gap": self._grid.total_variation,
            "ks_parity_gap": self._grid.kolmogorov_smirnov,
        }[name]
        return spread(confidence), "distances" if self._grid.reaches(confidence) else "many"

    def _odds_limits(self, confidence: float) -> Limits:
        counts, sizes = zip(*(self._counts(label) for label in (True, False)), strict=True)
        return mean_of_rate_gaps(
            counts,
            sizes,
            confidence,
            n_resamples=self.data.settings.n_resamples,
            generator=self.data.pair_generator(1, self.codes),
        )


def _refused_gap(name: str, reason: str | None) -> Gap:
    symbol = MEASURES[name].symbol
    return Gap(name, symbol, None, None, None, None, None, "no statement", reason)
