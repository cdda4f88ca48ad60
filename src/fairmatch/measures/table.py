r"""The table of measures: each gap once, with its words, its formula and how it is computed.

The table of gaps, the curves, the audit, the command line and the paper's tables all read
`MEASURES`. To add a measure, write a function with fairlearn's signature and add an entry here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from fairmatch.exceptions import InputError
from fairmatch.matching.coupling import Coupling, check_coupling
from fairmatch.measures.distributions import ScoreDistributions, read_by_label
from fairmatch.measures.gaps import (
    demographic_parity_gap,
    ks_parity_gap,
    matched_parity_gap,
    mean_parity_gap,
    total_variation_parity_gap,
    wasserstein_parity_gap,
)
from fairmatch.measures.odds import equalized_odds_gap, false_positive_gap, true_positive_gap
from fairmatch.tables.arrays import FloatArray, read_scores

ByLabel = Mapping[bool | None, ScoreDistributions]


@dataclass(frozen=True)
class Settings:
    """The settings that measures use.

    Attributes
    ----------
    threshold : float
        A score at or above the threshold is accepted.
    bins : int or None
        Number of equal intervals for the total variation. None computes it exactly.
    """

    threshold: float = 0.5
    bins: int | None = 20


Statistic = Callable[[ScoreDistributions, Settings], FloatArray]
Distance = Callable[[ScoreDistributions, int, int, Settings], float]


def _selection(groups: ScoreDistributions, settings: Settings) -> FloatArray:
    return groups.rates(settings.threshold)


def _mean_score(groups: ScoreDistributions, settings: Settings) -> FloatArray:
    return groups.rates(None)


@dataclass(frozen=True)
class Measure:
    """An entry of the table of measures.

    Attributes
    ----------
    function : callable
        The measure, with fairlearn's signature.
    symbol : str
        The paper's symbol.
    title : str
        What the measure compares, as a heading.
    words : str
        What its value means, in plain English.
    formula : str
        The formula for two groups, as LaTeX.
    interval : str
        Name of the method in `fairmatch.measures.intervals` or `closed_forms` that computes the
        interval of the measure.
    statistic : callable
        Takes distributions and settings, and returns one number per group. The group with the
        larger number is better off.
    distance : callable, optional
        Takes distributions, two codes and settings, and returns the gap between the two groups. By
        default the gap is the absolute difference of their statistics.
    labels : tuple of bool or None
        The classes within which groups are compared: True is Y = 1, False is Y = 0, None is
        everybody. The gaps of several classes are averaged.
    needs_coupling : bool
        Whether the measure compares matched people.

    Examples
    --------
    >>> from fairmatch.measures import MEASURES
    >>> measure = MEASURES["equalized_odds_gap"]
    >>> measure.symbol, measure.labels, measure.needs_labels
    ('ΔEO', (True, False), True)
    """

    function: Callable[..., float]
    symbol: str
    title: str
    words: str
    formula: str
    interval: str
    statistic: Statistic = _mean_score
    distance: Distance | None = None
    labels: tuple[bool | None, ...] = (None,)
    needs_coupling: bool = False

    @property
    def name(self) -> str:
        """Name of the function, which is also the name of the measure."""
        return self.function.__name__

    @property
    def needs_labels(self) -> bool:
        """Whether the measure needs the true labels."""
        return self.labels != (None,)

    def of_pair(
        self, groups: ScoreDistributions, first: int, second: int, settings: Settings
    ) -> float:
        """Compute the gap between two groups within one class."""
        if self.distance is not None:
            return self.distance(groups, first, second, settings)
        levels = self.statistic(groups, settings)
        return float(abs(levels[first] - levels[second]))

    def largest(self, by_label: ByLabel, settings: Settings) -> float:
        """Compute the largest gap over pairs of groups, averaged over the classes."""
        found = [
            max(self.of_pair(by_label[label], *pair, settings) for pair in by_label[label].pairs)
            for label in self.labels
        ]
        return sum(found) / len(found)


MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure(
            demographic_parity_gap,
            "ΔDP",
            "Selection rates",
            "difference of the shares of selected people",
            r"|P(f \ge \tau \mid S = s) - P(f \ge \tau \mid S = s')|",
            "rate_difference",
            statistic=_selection,
        ),
        Measure(
            mean_parity_gap,
            "Δ‾DP",
            "Mean scores",
            "difference of the mean scores",
            r"|E(f \mid S = s) - E(f \mid S = s')|",
            "mean_difference",
        ),
        Measure(
            wasserstein_parity_gap,
            "ΔWDP",
            "Score distributions, mean distance",
            "mean score difference of people at the same rank of their groups",
            r"\int_0^1 |F_s(t) - F_{s'}(t)| \, dt",
            "ScoreGrid.wasserstein",
            distance=lambda groups, a, b, settings: groups.distances(a, b).wasserstein,
        ),
        Measure(
            total_variation_parity_gap,
            "ΔTVDP",
            "Score distributions, overlap",
            "share of people who would have to get another score, in intervals of scores",
            r"\tfrac12 \sum_t |P_s(f = t) - P_{s'}(f = t)|",
            "ScoreGrid.total_variation",
            distance=lambda groups, a, b, settings: groups.pair_variation(a, b, settings.bins),
        ),
        Measure(
            ks_parity_gap,
            "ΔKSDP",
            "Score distributions, largest distance",
            "difference of selection rates at the threshold where it is largest",
            r"\sup_t |F_s(t) - F_{s'}(t)|",
            "ScoreGrid.kolmogorov_smirnov",
            distance=lambda groups, a, b, settings: groups.distances(a, b).kolmogorov_smirnov,
        ),
        Measure(
            matched_parity_gap,
            "ΔMDP",
            "Matched people",
            "mean score difference of people who are matched with each other",
            r"E_s |f(X, s) - f(T(X), s')|",
            "pair_mean",
            needs_coupling=True,
        ),
        Measure(
            true_positive_gap,
            "ΔTPR",
            "True positive rates",
            "difference of the shares selected among people with a positive label",
            r"|P(f \ge \tau \mid S = s, Y = 1) - P(f \ge \tau \mid S = s', Y = 1)|",
            "rate_difference",
            statistic=_selection,
            labels=(True,),
        ),
        Measure(
            false_positive_gap,
            "ΔFPR",
            "False positive rates",
            "difference of the shares selected among people with a negative label",
            r"|P(f \ge \tau \mid S = s, Y = 0) - P(f \ge \tau \mid S = s', Y = 0)|",
            "rate_difference",
            statistic=_selection,
            labels=(False,),
        ),
        Measure(
            equalized_odds_gap,
            "ΔEO",
            "Both error rates",
            "mean of the two gaps of error rates",
            r"(\Delta\mathrm{TPR} + \Delta\mathrm{FPR}) / 2",
            "mean_of_rate_gaps",
            statistic=_selection,
            labels=(True, False),
        ),
    )
}


def read_measure(value: Any, name: str = "measure") -> Measure:
    """Return the measure with this name. Raise an error that lists the names if there is none.

    Parameters
    ----------
    value : str or Measure
        The name of a measure. A measure is returned unchanged.
    name : str, default="measure"
        How the error names the parameter.

    Examples
    --------
    >>> read_measure("true_positive_gap").symbol
    'ΔTPR'
    """
    if isinstance(value, Measure):
        return value
    if isinstance(value, str) and value in MEASURES:
        return MEASURES[value]
    raise InputError(f"{name}={value!r} is not a measure; choose one of {', '.join(MEASURES)}.")


def gap_table(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    coupling: Coupling | None = None,
    threshold: float = 0.5,
    bins: int | None = 20,
    pos_label: Any = 1,
) -> dict[str, float]:
    """Compute every gap that the data allow, in one pass.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,), or None
        Labels of two classes. With labels, the gaps of error rates are computed too.
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or 0/1 decisions.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row. The combinations of several attributes are the groups.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    coupling : Coupling, optional
        A matching of these rows. With it, the matched gap is computed too.
    threshold : float, default=0.5
        A score at or above the threshold is accepted.
    bins : int or None, default=20
        Number of equal intervals for the total variation. None computes it exactly, which gives
        about 1 for continuous scores.
    pos_label : default=1
        The label that counts as positive.

    Returns
    -------
    dict
        Name of the measure to its value, in the order of `MEASURES`. With more than two groups
        each value is the largest over all pairs of groups.

    Examples
    --------
    >>> gaps = gap_table(None, [0.9, 0.2, 0.6, 0.7], sensitive_features=[0, 0, 1, 1])
    >>> for name, value in gaps.items():
    ...     print(f"{name:27}{value:.2f}")
    demographic_parity_gap     0.50
    mean_parity_gap            0.10
    wasserstein_parity_gap     0.30
    total_variation_parity_gap 1.00
    ks_parity_gap              0.50
    """
    scores = read_scores(y_score)
    labels = (None,) if y_true is None else (None, True, False)
    given = y_true, scores, sensitive_features, sample_weight, pos_label
    by_label = read_by_label(labels, *given)
    check_coupling(coupling)
    if coupling is not None:
        coupling.read_groups(sensitive_features)
    settings = Settings(threshold, bins)
    found: dict[str, float] = {}
    for name, measure in MEASURES.items():
        if measure.needs_coupling and coupling is not None:
            found[name] = coupling.largest_gap(scores)
        elif not measure.needs_coupling and set(measure.labels) <= set(labels):
            found[name] = measure.largest(by_label, settings)
    return found
