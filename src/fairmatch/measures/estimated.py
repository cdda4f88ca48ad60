r"""Gaps of groups that are known only as probabilities.

Three answers, of which the first needs an assumption, the second none, and the third true groups of
some people:

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
from scipy.sparse import coo_array
from scipy.special import ndtri, stdtrit

from fairmatch.exceptions import SolverError
from fairmatch.people.checks import BoolArray, FloatArray

LEAST = 50
"""A cell of the probabilities holds at least this many people.

If every person were a cell of her own, the bounds would collapse onto the weighted estimate.
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

    Examples
    --------
    >>> share = np.repeat([0.1, 0.4, 0.9], 60)
    >>> np.bincount(proxy_cells(np.column_stack([share, 1 - share]))).tolist()
    [60, 60, 60]
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
    for this fold: the bound is valid whatever it is, and it has no bias from the minimum.
    """
    low = _difference(
        people,
        _extreme(people, pair[0], folds, top=False),
        _extreme(people, pair[1], folds, top=True),
    )
    high = _difference(
        people,
        _extreme(people, pair[0], folds, top=True),
        _extreme(people, pair[1], folds, top=False),
    )
    return low, high


def _extreme(
    people: EstimatedPeople, group: int, folds: NDArray[np.intp] | None, *, top: bool
) -> tuple[FloatArray, FloatArray]:
    """Return what is summed above and below the line of the largest or smallest rate."""
    own, values = people.probabilities[:, group], people.values
    if people.inside is None:
        above = _most(people, values, own, folds) if top else _least(people, values, own, folds)
        return people.weights * above, people.weights * own
    hits, others = values * people.inside, (1.0 - values) * people.inside
    if top:
        above, rest = _most(people, hits, own, folds), _least(people, others, own, folds)
    else:
        above, rest = _least(people, hits, own, folds), _most(people, others, own, folds)
    return people.weights * above, people.weights * (above + rest)


def _most(
    people: EstimatedPeople, values: FloatArray, own: FloatArray, folds: NDArray[np.intp] | None
) -> FloatArray:
    levels = _levels(people, values, own, folds)
    most: FloatArray = np.maximum(values - levels, 0.0) + levels * own
    return most


def _least(
    people: EstimatedPeople, values: FloatArray, own: FloatArray, folds: NDArray[np.intp] | None
) -> FloatArray:
    return -_most(people, -values, own, folds)


def _levels(
    people: EstimatedPeople, values: FloatArray, own: FloatArray, folds: NDArray[np.intp] | None
) -> FloatArray:
    r"""Return for every row the level :math:`\tau` above which a group's people are, in its cell.

    It is the smallest value with at most the group's share of people above it.
    """
    cells, found = people.cells, np.zeros(len(values))
    sources = [np.arange(len(values))] * 2
    if folds is not None:
        sources = [np.flatnonzero(folds != fold) for fold in (0, 1)]
    for fold, rows in enumerate(sources if folds is not None else sources[:1]):
        levels = _cell_levels(
            values[rows], own[rows], people.weights[rows], cells[rows], int(cells.max()) + 1
        )
        inside = slice(None) if folds is None else folds == fold
        found[inside] = levels[cells[inside]]
    return found


def _cell_levels(
    values: FloatArray, own: FloatArray, weights: FloatArray, cells: NDArray[np.intp], n_cells: int
) -> FloatArray:
    order = np.lexsort((values, cells))
    values, own, weights, cells = values[order], own[order], weights[order], cells[order]
    mass = np.bincount(cells, weights, minlength=n_cells)
    allowed = np.bincount(cells, weights * own, minlength=n_cells)
    # Mass at or below each row within its cell, where tied values count together.
    running = np.cumsum(weights) - np.append(0.0, np.cumsum(mass))[cells]
    last = np.append((values[1:] != values[:-1]) | (cells[1:] != cells[:-1]), True)
    fits = last & (mass[cells] - running <= allowed[cells] + 1e-12 * mass[cells])
    levels = np.zeros(n_cells)
    rows = np.flatnonzero(fits)[::-1]
    levels[cells[rows]] = values[rows]  # the first row that fits, which is written last
    return levels


def least_largest_gap(people: EstimatedPeople, groups: tuple[int, ...]) -> float:
    r"""Return the smallest possible largest gap of rates over pairs of groups.

    It is a linear program in the joint distribution of decisions and groups within the cells:
    minimise :math:`z` with :math:`r_s - r_t \le z` for all pairs, where the rate :math:`r_s` is a
    sum over cells of people who are selected and belong to s.
    """
    n_cells, n_groups = int(people.cells.max()) + 1, people.probabilities.shape[1]
    hits = np.bincount(people.cells, people.weights * people.values, minlength=n_cells)
    shares = np.column_stack(
        [
            np.bincount(people.cells, people.weights * own, minlength=n_cells)
            for own in people.probabilities.T
        ]
    )
    # One variable for each cell and group, and then the largest and the smallest rate.
    n_joint = n_cells * n_groups
    cell, group = np.divmod(np.arange(n_joint), n_groups)
    sums: Any = coo_array((np.ones(n_joint), (cell, np.arange(n_joint))), (n_cells, n_joint + 2))
    rates = coo_array(
        (1.0 / shares.sum(axis=0)[group], (group, np.arange(n_joint))), (n_groups, n_joint)
    ).tocsr()[list(groups)]
    rows = np.zeros((2 * len(groups), 2))
    rows[: len(groups), 0], rows[len(groups) :, 1] = -1.0, 1.0
    upper = np.column_stack([np.vstack([rates.toarray(), -rates.toarray()]), rows])
    cost = np.zeros(n_joint + 2)
    cost[-2:] = 1.0, -1.0
    found = linprog(
        cost,
        A_ub=upper,
        b_ub=np.zeros(len(upper)),
        A_eq=sums,
        b_eq=hits,
        bounds=[*((0.0, most) for most in shares.ravel()), (0.0, 1.0), (0.0, 1.0)],
        method="highs",
    )
    if found.fun is None:
        raise SolverError(f"The bound of the largest gap was not found: {found.message}")
    return max(found.fun, 0.0)


def calibrated_difference(
    people: EstimatedPeople, pair: Pair, known: NDArray[np.intp]
) -> Difference | None:
    r"""Return a difference from people with known groups, made more precise by the others.

    With :math:`h_i` the influence of a person by her probabilities and :math:`k_i` by her known
    group, the estimate is the mean of :math:`k_i` over the known people plus :math:`\lambda` times
    the difference of the means of :math:`h_i` over everybody and over the known people. It is
    unbiased if the known people are a random sample, even if the probabilities are wrong. The
    :math:`\lambda` has the least variance.

    ``known`` is the code of the known group, and -1 where it is not known.
    """
    is_known = known >= 0
    share = float(people.weights[is_known].sum() / people.weights.sum())
    weight = 1.0
    for _ in range(3):
        parts = []
        for group in pair:
            own = weight * people.probabilities[:, group]
            own[is_known] += ((known == group) - own)[is_known] / share
            own *= people.counted
            parts.append((own * people.values, own))
        if min(below.sum() for _, below in parts) <= 0.0:
            return None
        ratios = [float(above.sum() / below.sum()) for above, below in parts]
        totals = [float(below.sum()) for _, below in parts]
        guessed, seen = (
            sum(
                sign * people.counted * member[:, k] * (people.values - ratios[k]) / totals[k]
                for k, sign in ((0, 1.0), (1, -1.0))
            )
            for member in (
                people.probabilities[:, list(pair)],
                np.column_stack([known == group for group in pair]).astype(np.float64),
            )
        )
        # The influence is fixed + weight * slope for every person.
        fixed = np.where(is_known, seen / share, 0.0)
        slope = guessed * (1.0 - is_known / share)
        still, moves = (np.bincount(people.persons, own) for own in (fixed, slope))
        spread = float(moves @ moves)
        weight = float(np.clip(-(still @ moves) / spread, 0.0, 1.0)) if spread > 0.0 else 0.0
    return _difference(people, *parts)
