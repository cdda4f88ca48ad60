"""The gap of matched people, as a range, and as an excess over what chance alone would make."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import ndtri

from fairmatch.auditing.people import Audited, Roster
from fairmatch.exceptions import SolverError
from fairmatch.matching.coupling import IndexArray
from fairmatch.matching.network import MAX_PIVOTS, OPTIMAL, no_plan, simplex
from fairmatch.people.checks import FloatArray

TOLERANCE = 0.01
"""A matching is as good as the nearest if it costs at most this share of a random one more."""

N_PERMUTATIONS = 200
# With this many people of each group, 200 permutations take about a second. With several pairs of
# groups fewer people are drawn, which keeps the time from growing with the number of pairs.
_MOST, _LEAST = 200, 60
# Groups whose sizes differ by less than this factor are drawn in equal numbers, because pairs of
# one person each are matched several times as fast.
_ABOUT_EQUAL = 1.5


@dataclass(frozen=True)
class MatchedExcess:
    """Both ends of the matched gap: as they are, by chance, and the excess with its limits."""

    raw: tuple[float, float]
    expected: tuple[float, float]
    ends: tuple[float, float]
    low: float
    high: float
    p_value: float
    error: float
    n_people: tuple[int, int]


def matched_excess(data: Audited, roster: Roster, codes: tuple[int, int]) -> MatchedExcess:
    """Return the matched gap of two groups. Scores are shares of their range."""
    generator = data.pair_generator(7, codes)
    n_pairs = len(data.matched_pairs)
    most = max(int(_MOST / n_pairs**0.4), _LEAST)
    n_small, n_large = sorted(min(_n_persons(data, code), most) for code in codes)
    most = n_small if n_large < _ABOUT_EQUAL * n_small else most
    sides = [draw_persons(data, roster.order, code, most, generator) for code in codes]
    rows = np.concatenate(sides)
    first = np.arange(len(rows)) < len(sides[0])
    weights = data.weights.take(rows).values if data.weights.is_survey else None
    scores = data.shares[rows]
    features = roster.alike(rows)
    tail = (1.0 - data.settings.confidence) / 2.0 / n_pairs
    return excess_of(features, scores, first, weights, tail, generator)


def _n_persons(data: Audited, code: int) -> int:
    own = data.weights.take(data.groups.rows(code))
    return own.people if own.persons is None else len(np.unique(own.persons))


def draw_persons(
    data: Audited, order: IndexArray, code: int, most: int, generator: np.random.Generator
) -> IndexArray:
    """Return the rows of people drawn from a group, one row for each person.

    A row that stands for many people is drawn as often as its people are. So aggregated and
    repeated rows give the same people.
    """
    rows = order[data.groups.codes[order] == code]
    own = data.weights.take(rows)
    if own.persons is not None:
        rows = rows[np.sort(np.unique(own.persons, return_index=True)[1])]
        own = data.weights.take(rows)
    ends = np.arange(1, len(rows) + 1)
    if own.is_counts and own.values is not None:
        ends = np.cumsum(own.values).astype(np.int64)
    total = int(ends[-1])
    if total <= most:
        at = np.arange(total)
    else:
        at = np.sort(generator.choice(total, size=most, replace=False, shuffle=False))
    drawn: IndexArray = rows[np.searchsorted(ends, at, side="right")]
    return drawn


def excess_of(
    features: FloatArray,
    scores: FloatArray,
    first: NDArray[np.bool_],
    weights: FloatArray | None,
    tail: float,
    generator: np.random.Generator,
) -> MatchedExcess:
    r"""Compare the matched gap with that of permuted groups.

    With distances :math:`c_{ij}` between people and :math:`d_{ij} = |f_i - f_j|`, the two ends are
    the mean of d under the matchings that minimise :math:`c \pm \lambda d`. Scores lie in [0, 1],
    so these cost at most :math:`\lambda` more than the nearest matching; :math:`\lambda` is
    `TOLERANCE` of the mean distance of all people. That is the same for all permutations, which
    keeps the test exact, and positive where people tie and the least cost is 0.
    """
    squares = (features**2).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares - 2.0 * features @ features.T, 0.0)
    gaps = np.abs(scores[:, None] - scores)
    price = TOLERANCE * float(distances.mean())
    prices = (price, -price) if gaps.any() else (0.0,)
    if weights is not None and np.ptp(weights) == 0.0:
        weights = None

    def ends(group: NDArray[np.bool_], with_error: bool = False) -> list[tuple[float, float]]:
        sides = np.flatnonzero(group), np.flatnonzero(~group)
        cost, apart = distances[np.ix_(*sides)], gaps[np.ix_(*sides)]
        masses = [_masses(weights, side) for side in sides]
        found = []
        for own in prices:
            plan = _plan(cost + own * apart, masses, weights is None)
            found.append(_mean_of(plan, apart, masses, with_error))
        return found if len(found) == 2 else [*found, *found]

    low, high = ends(first, with_error=True)
    permuted = np.array(
        [
            [end[0] for end in ends(generator.permutation(first))]
            for _ in range(N_PERMUTATIONS if gaps.any() else 0)
        ]
    ).reshape(-1, 2)
    expected = permuted.mean(axis=0) if len(permuted) else np.zeros(2)
    spread = permuted.std(axis=0, ddof=1) if len(permuted) else np.zeros(2)
    excess = np.array([low[0], high[0]]) - expected
    errors = np.maximum([low[1], high[1]], spread)
    reached = int((permuted[:, 0] >= low[0] * (1.0 - 1e-9)).sum())
    p_value = (1 + reached) / (1 + len(permuted))
    # With many pairs of groups there are too few permutations; a normal tail then takes over.
    beyond = reached == 0 and excess[0] > -ndtri(tail) * spread[0]
    rejects = p_value <= tail or (1.0 / (1 + len(permuted)) > tail and beyond)
    quantile = -float(ndtri(tail))
    bottom = max(float(excess[0] - quantile * errors[0]), 0.0) if rejects else 0.0
    least, most = np.maximum(np.sort(excess), 0.0).tolist()
    top = float((excess + quantile * errors).max())
    return MatchedExcess(
        raw=(float(low[0]), float(high[0])),
        expected=(float(expected[0]), float(expected[1])),
        ends=(least, most),
        low=min(bottom, least),
        high=min(max(top, most), 1.0),
        p_value=p_value,
        error=float(errors[0]),
        n_people=(int(first.sum()), int((~first).sum())),
    )


def _masses(weights: FloatArray | None, side: IndexArray) -> FloatArray:
    own = np.ones(len(side)) if weights is None else weights[side]
    masses: FloatArray = own / own.sum()
    return masses


def _plan(
    cost: FloatArray, masses: list[FloatArray], is_even: bool
) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Return the pairs of a matching of least cost, with their mass."""
    if is_even and cost.shape[0] == cost.shape[1]:
        rows, columns = linear_sum_assignment(cost)
        return rows, columns, np.full(len(rows), 1.0 / len(rows))
    plan, _, _, _, code = simplex().emd_c(*masses, cost - cost.min(), MAX_PIVOTS, 1, None, None)
    if code != OPTIMAL:
        raise SolverError(no_plan("dense", code))
    rows, columns = np.nonzero(plan)
    return rows, columns, plan[rows, columns]


def _mean_of(
    plan: tuple[IndexArray, IndexArray, FloatArray],
    apart: FloatArray,
    masses: list[FloatArray],
    with_error: bool,
) -> tuple[float, float]:
    """Return the mean gap over pairs, and its standard error by people of the smaller group."""
    rows, columns, mass = plan
    gaps = apart[rows, columns]
    mean = float(gaps @ mass / mass.sum())
    if not with_error:
        return mean, 0.0
    side, own = (rows, masses[0]) if apart.shape[0] <= apart.shape[1] else (columns, masses[1])
    totals = np.bincount(side, (gaps - mean) * mass, minlength=len(own))
    size = 1.0 / float((own**2).sum())
    return mean, float(np.sqrt((totals**2).sum() * size / max(size - 1.0, 1.0)))
