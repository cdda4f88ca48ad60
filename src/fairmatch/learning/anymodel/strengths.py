"""The least strength of an alignment with a gap within a bound."""

from bisect import bisect_left
from itertools import combinations

import numpy as np
from scipy.stats import wasserstein_distance

from fairmatch.exceptions import GapNotReachedWarning
from fairmatch.learning.anymodel.alignment import Alignment
from fairmatch.learning.notice import notify
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.groups import Groups

# Number of steps between the strengths 0 and 1 that are tried.
_STEPS = 200


def least_strength(
    alignment: Alignment,
    scores: FloatArray,
    groups: Groups,
    weights: FloatArray | None,
    max_gap: float,
) -> float:
    """Return the least strength whose gap on these rows is at most a bound.

    Parameters
    ----------
    alignment : Alignment
        The alignment of the scores of these groups.
    scores : array of shape (n_rows,)
        Scores that have been checked.
    groups : Groups
        Group of every row.
    weights : array of shape (n_rows,), optional
        Weight of every row.
    max_gap : float
        The bound. For probabilities it bounds the gap of decisions at one half, and otherwise the
        Wasserstein gap of the moved scores.

    Returns
    -------
    float
        A multiple of 1/200. If no strength is within the bound, it is the one with the smallest
        gap, with a warning.
    """
    strengths = np.linspace(0.0, 1.0, _STEPS + 1)
    if alignment.scale == "probability":
        gaps = _gaps_of_decisions(alignment, scores, groups, weights, strengths)
        within = np.flatnonzero(gaps <= max_gap)
        if len(within):
            return float(strengths[within[0]])
        smallest = int(np.argmin(gaps))
        _warn(max_gap, float(gaps[smallest]), float(strengths[smallest]))
        return float(strengths[smallest])

    # The distance falls as the strength grows, so bisection finds the least strength.
    def distance(place: int) -> float:
        moved = alignment.move(scores, groups.codes, float(strengths[place]))
        return _largest_distance(moved, groups, weights)

    place = bisect_left(range(_STEPS), True, key=lambda place: distance(place) <= max_gap)
    if place == _STEPS and distance(place) > max_gap:
        _warn(max_gap, distance(place), 1.0)
    return float(strengths[place])


def _gaps_of_decisions(
    alignment: Alignment,
    scores: FloatArray,
    groups: Groups,
    weights: FloatArray | None,
    strengths: FloatArray,
) -> FloatArray:
    """Return the largest difference of acceptance rates at every strength."""
    rates = []
    for code in range(groups.n_groups):
        rows = groups.rows(code)
        order = rows[np.argsort(scores[rows], kind="stable")]
        mass = np.ones(len(rows)) if weights is None else weights[order]
        below = np.append(0.0, np.cumsum(mass)) / mass.sum()
        rates.append([1.0 - below[_first(alignment, scores[order], code, t)] for t in strengths])
    return np.asarray(np.ptp(np.array(rates), axis=0))


def _first(alignment: Alignment, ordered: FloatArray, code: int, strength: float) -> int:
    """Return the position of the first accepted score among a group's sorted and moved scores."""
    member = np.array([code])

    def accepted(place: int) -> bool:
        moved = alignment.move(ordered[place : place + 1], member, float(strength))
        return bool(moved[0] >= 0.5)

    # Within a group the order of people stays, so those who are accepted come last.
    return bisect_left(range(len(ordered)), True, key=accepted)


def _largest_distance(scores: FloatArray, groups: Groups, weights: FloatArray | None) -> float:
    sides = [
        (scores[rows], None if weights is None else weights[rows])
        for code in range(groups.n_groups)
        for rows in [groups.rows(code)]
    ]
    return max(
        float(wasserstein_distance(a[0], b[0], a[1], b[1])) for a, b in combinations(sides, 2)
    )


def _warn(max_gap: float, gap: float, strength: float) -> None:
    notify(
        f"No strength reaches a gap of {max_gap:g} on these rows; the smallest gap is {gap:.4g}, "
        f"at strength {strength:g}, which is kept. A gap remains where many people share a score. "
        "Use finer scores, or allow a larger max_gap.",
        GapNotReachedWarning,
    )
