r"""Gaps of groups that are known only as probabilities.

There are three answers. The first needs an assumption, the second needs none, and the third needs
the true groups of some people:

- `assumed_difference`: the weighted rates, if scores and groups are independent given the
  probabilities;
- `bounded_difference`: all differences that agree with the probabilities within cells of at least
  50 people (Kallus, Mao and Zhou, 2022);
- `calibrated_difference`: the known groups, with the probabilities as a control variate.

A rate is a ratio of two sums over people, :math:`\sum_i a_i / \sum_i b_i`, in each of them. So one
influence function, summed by person, gives every standard error.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack, kron
from scipy.special import ndtri, stdtrit

from fairmatch.exceptions import SolverError
from fairmatch.people.checks import BoolArray, FloatArray

LEAST = 50
"""A cell of the probabilities holds at least this many people.

If every person had their own cell, the bounds would collapse onto the weighted estimate.
"""

Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class EstimatedPeople:
    """Values of people, such as decisions, and how probable each group is for them."""

    values: FloatArray  #: Decisions or scores.
    probabilities: FloatArray  #: Probability of each group; rows sum to 1.
    weights: FloatArray  #: Weight of every row.
    persons: NDArray[np.intp]  #: The person of every row.
    #: The people whose rates are compared, such as those with a positive label. None is everybody.
    inside: BoolArray | None = None

    @cached_property
    def cells(self) -> NDArray[np.intp]:
        """The cell of every row."""
        return proxy_cells(self.probabilities)

    @cached_property
    def counted(self) -> FloatArray:
        """Weight of every row that is compared; 0 for the others."""
        return self.weights if self.inside is None else self.weights * self.inside


@dataclass(frozen=True)
class Difference:
    """The level of one group minus that of another, and its standard error."""

    value: float
    error: float

    def limits(self, level: float, freedom: float = np.inf) -> tuple[float, float]:
        """Return the limits of the interval at a level."""
        tail = (1.0 + level) / 2.0
        half = float(ndtri(tail) if np.isinf(freedom) else stdtrit(freedom, tail)) * self.error
        return self.value - half, self.value + half


def error_of_sum(influence: FloatArray, persons: NDArray[np.intp]) -> float:
    """Return the standard error of a sum of influences, which belong to persons."""
    sums = np.bincount(np.unique(persons, return_inverse=True)[1], influence)
    return float(np.sqrt((sums**2).sum() * len(sums) / max(len(sums) - 1, 1)))


def proxy_cells(probabilities: FloatArray, least: int = LEAST) -> NDArray[np.intp]:
    """Return cells of people with similar probabilities, each with at least ``least`` people.

    Cells are halved as long as both halves are large enough, along the probability that differs
    most. People with the same probabilities are in the same cell.
    """
    cells = np.zeros(len(probabilities), dtype=np.intp)
    waiting, n_cells = [np.arange(len(probabilities))], 0
    while waiting:
        rows = waiting.pop()
        above = _cut(probabilities[rows], least)
        if above is None:
            cells[rows] = n_cells
            n_cells += 1
        else:
            waiting += [rows[above], rows[~above]]
    return cells


def _cut(probabilities: FloatArray, least: int) -> BoolArray | None:
    """Return which people are in the upper half, or None if there are not enough for two."""
    n_rows = len(probabilities)
    for column in np.argsort(-probabilities.var(axis=0), kind="stable"):
        values = probabilities[:, column]
        ordered = np.sort(values)
        places = np.arange(least, n_rows - least + 1)
        places = places[ordered[places - 1] < ordered[places]] if len(places) else places
        if len(places):
            at = places[np.argmin(np.abs(places - n_rows / 2))]
            return np.asarray(values >= ordered[at])
    return None


def assumed_difference(people: EstimatedPeople, pair: Pair) -> Difference:
    r"""Return the weighted estimate of a difference, with its standard error.

    .. math:: r_s = \sum_i p_{is} f_i / \sum_i p_{is}

    is the rate of group s if scores and groups are independent given the probabilities.
    """
    parts = []
    for group in pair:
        own = people.counted * people.probabilities[:, group]
        parts.append((own * people.values, own))
    return _difference(people, *parts)


def _difference(people: EstimatedPeople, *parts: tuple[FloatArray, FloatArray]) -> Difference:
    """Return the difference of two ratios of sums over people, with its standard error."""
    ratios = [float(above.sum() / below.sum()) for above, below in parts]
    influences = [
        (above - ratio * below) / below.sum()
        for (above, below), ratio in zip(parts, ratios, strict=True)
    ]
    error = error_of_sum(influences[0] - influences[1], people.persons)
    return Difference(ratios[0] - ratios[1], error)


def bounded_difference(
    people: EstimatedPeople, pair: Pair, folds: NDArray[np.intp] | None = None
) -> tuple[Difference, Difference]:
    r"""Return the smallest and the largest difference that agree with the probabilities.

    In each cell the joint distribution of values and groups has known margins: the values, and
    the mean probabilities. The sum of the values of group s is largest if its share of people are
    those with the highest values,

    .. math:: E(f; s) \le \min_\tau E\, (f - \tau)_+ + \tau\, p_s,

    which is :math:`\min(P(f = 1), p_s)` for decisions. The largest rate within a class also has
    the smallest number of people of the class who are not selected. Both groups of a pair reach
    their ends in one joint distribution, so the bounds are sharp for these cells.

    With ``folds``, the :math:`\tau` of a cell is that of people of the other fold. It is then fixed
    for this fold: the bound is valid for any value of it, and has no bias from the minimum.
    """
    first, second = pair
    low, high = (
        _difference(
            people, _extreme(people, first, folds, sign), _extreme(people, second, folds, -sign)
        )
        for sign in (-1.0, 1.0)
    )
    return low, high


def _extreme(
    people: EstimatedPeople, group: int, folds: NDArray[np.intp] | None, sign: float
) -> tuple[FloatArray, FloatArray]:
    """Return what is summed above and below the line of the largest rate, or of the smallest.

    The sign is 1 for the largest rate and -1 for the smallest.
    """
    own, values = people.probabilities[:, group], people.values
    if people.inside is None:
        above, below = sign * _most(people, sign * values, own, folds), own
    else:
        hits, others = values * people.inside, (1.0 - values) * people.inside
        above = sign * _most(people, sign * hits, own, folds)
        below = above - sign * _most(people, -sign * others, own, folds)
    return people.weights * above, people.weights * below


def _most(
    people: EstimatedPeople, values: FloatArray, own: FloatArray, folds: NDArray[np.intp] | None
) -> FloatArray:
    """Return the terms of the largest sum of the values of a group, whose shares are ``own``."""
    levels = np.zeros(len(values))
    everybody = slice(None)
    parts: list[tuple[Any, Any]] = [(everybody, everybody)]
    if folds is not None:
        parts = [(folds == fold, folds != fold) for fold in (0, 1)]
    for inside, others in parts:
        found = _levels(people, values, own, others)
        levels[inside] = found[people.cells[inside]]
    return np.asarray(np.maximum(values - levels, 0.0) + levels * own)


def _levels(people: EstimatedPeople, values: FloatArray, own: FloatArray, rows: Any) -> FloatArray:
    r"""Return for every cell the level :math:`\tau` above which a group's people are.

    It is the smallest value with at most the group's share of people above it, among some rows.
    """
    n_cells = int(people.cells.max()) + 1
    values, own, weights, cells = (
        column[rows] for column in (values, own, people.weights, people.cells)
    )
    order = np.lexsort((values, cells))
    values, own, weights, cells = (column[order] for column in (values, own, weights, cells))
    mass = np.bincount(cells, weights, minlength=n_cells)
    allowed = np.bincount(cells, weights * own, minlength=n_cells)
    # Mass at or below each row within its cell, where tied values count together.
    running = np.cumsum(weights) - np.append(0.0, np.cumsum(mass))[cells]
    last = np.append((values[1:] != values[:-1]) | (cells[1:] != cells[:-1]), True)
    fits = last & (mass[cells] - running <= allowed[cells] + 1e-12 * mass[cells])
    levels = np.zeros(n_cells)
    chosen = np.flatnonzero(fits)[::-1]
    levels[cells[chosen]] = values[chosen]  # the first row that fits, which is written last
    return levels


def least_largest_gap(people: EstimatedPeople, groups: tuple[int, ...]) -> float:
    r"""Return the smallest possible largest gap of rates over pairs of groups.

    It is a linear program in the joint distribution of decisions and groups within the cells:
    minimise :math:`z` with :math:`r_s - r_t \le z` for all pairs, where the rate :math:`r_s` is a
    sum over cells of people who are selected and belong to s.
    """
    n_cells, n_groups = int(people.cells.max()) + 1, people.probabilities.shape[1]
    hits, *shares = (
        np.bincount(people.cells, people.weights * own, minlength=n_cells)
        for own in (people.values, *people.probabilities.T)
    )
    # One variable for each cell and group, and then the largest and the smallest rate.
    totals = [float(own.sum()) for own in shares]
    rates = np.tile(np.diag(1.0 / np.array(totals))[list(groups)], n_cells)
    ones, zeros = np.ones((len(groups), 1)), np.zeros((len(groups), 1))
    upper = np.block([[rates, -ones, zeros], [-rates, zeros, ones]])
    joint = kron(eye_array(n_cells), np.ones((1, n_groups)))
    sums: Any = hstack([joint, csr_array((n_cells, 2))])
    found = linprog(
        np.append(np.zeros(n_cells * n_groups), [1.0, -1.0]),
        A_ub=upper,
        b_ub=np.zeros(len(upper)),
        A_eq=sums,
        b_eq=hits,
        bounds=[*((0.0, most) for most in np.column_stack(shares).ravel()), (0, 1), (0, 1)],
        method="highs",
    )
    if found.fun is None:
        raise SolverError(f"The solver did not find the bound of the largest gap: {found.message}")
    return max(float(found.fun), 0.0)


def calibrated_difference(
    people: EstimatedPeople, pair: Pair, known: NDArray[np.intp]
) -> Difference | None:
    r"""Return a difference from people with known groups, made more precise by the others.

    With :math:`h_i` the influence of a person by their probabilities and :math:`k_i` by their known
    group, the estimate is the mean of :math:`k_i` over the known people plus :math:`\lambda` times
    the difference of the means of :math:`h_i` over everybody and over the known people. It is
    unbiased if the known people are a random sample, even if the probabilities are wrong. The
    :math:`\lambda` has the least variance.

    ``known`` is the code of the known group, and -1 where it is not known.
    """
    is_known = known >= 0
    share = float(people.weights[is_known].sum() / people.weights.sum())
    guesses = people.probabilities[:, list(pair)].T
    members = np.array([known == group for group in pair])
    weight = 1.0
    for _ in range(3):
        # The influence of every person is fixed + weight * slope.
        fixed = slope = np.zeros(len(known))
        parts = []
        for guess, member, sign in zip(guesses, members, (1.0, -1.0), strict=True):
            own = weight * guess
            own[is_known] += (member - own)[is_known] / share
            own *= people.counted
            if own.sum() <= 0.0:
                return None
            parts.append((own * people.values, own))
            off = sign * people.counted * (people.values - parts[-1][0].sum() / own.sum())
            off /= own.sum()
            fixed = fixed + off * member / share
            slope = slope + off * guess * (1.0 - is_known / share)
        still, moves = (np.bincount(people.persons, own) for own in (fixed, slope))
        spread = float(moves @ moves)
        weight = float(np.clip(-(still @ moves) / spread, 0.0, 1.0)) if spread > 0.0 else 0.0
    return _difference(people, *parts)
