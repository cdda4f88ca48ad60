"""Proven lower bounds on the cost of every coupling, for tables too large to be solved exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from fairmatch.matching.network import (
    Atoms,
    Floats,
    Index,
    Problem,
    column_minima,
    row_minima,
)
from fairmatch.matching.solver import Transport
from fairmatch.people.encoding import Points

#: Rows of each group whose coupling provides potentials: a fifth of a group, within these limits.
SAMPLE = 8_192, 32_768
#: The most pairs of people that are examined. With more, the bound is that of sets of columns.
PROOF_PAIRS = 200_000_000_000
#: A set of columns is matched exactly up to this many different points in a group.
MOST_ATOMS = 4_096
_TOLERANCE = 1e-3
_ROUNDOFF = float(np.finfo(np.float64).eps)
_CELL = 512  # people in a cell, at most
_PROBED = 512  # people on whom potentials are compared before everybody is looked at
_SAMPLES = 4  # at most
_GAIN = 2e-3  # a sample that gains less than this share is the last one
_EXTENDED = 10**10  # pairs of everybody with the sample, at most
_CELLS_AT_ONCE = 8
_TASKS = 64

_Sides = tuple[Points, Points]
_Units = tuple[Floats, Floats]


def lower_bound(
    points: _Sides,
    units: _Units,
    *,
    random_state: int = 0,
    n_jobs: int | None = None,
    sample: int | None = None,
    proof_pairs: int = PROOF_PAIRS,
    most_atoms: int = MOST_ATOMS,
) -> float:
    r"""Compute a proven lower bound on the cost of every plan between two groups.

    Notes
    -----
    Squared distances add up over columns. So for disjoint sets of columns :math:`S`, the least
    costs of matching by :math:`S` alone add up to a bound on the cost of matching by all columns,

    .. math:: \min_g \sum_{ij} g_{ij} \|x_i - z_j\|^2
              \ge \sum_S \min_g \sum_{ij} g_{ij} \|x_{iS} - z_{jS}\|^2 ,

    and their potentials :math:`u_S(x_S)` add up to a feasible potential of all columns. Another
    potential is the mean of those of up to four exact couplings of ``sample`` people of each group,
    a fifth of them by default, but at least 8,192 and at most 32,768. The mixture of both
    that is best for a few people is made feasible for all people and raised, by
    :math:`v_j = \min_i c_{ij} - u_i` and then :math:`u_i = \min_j c_{ij} - v_j`. Cells of people
    that are too far away to matter are left out. If more than ``proof_pairs`` pairs would have to
    be looked at, the bound is that of the sets of columns. The better one of the two bounds is
    returned. Neither is an estimate.
    """
    rows = [np.flatnonzero(side > 0) for side in units]
    first, second = (p.take(at) for p, at in zip(points, rows, strict=True))
    masses = units[0][rows[0]], units[1][rows[1]]
    bound, by_columns = column_bound((first, second), masses, most_atoms)
    if proof_pairs < max(len(first), len(second)) * _PROBED:
        return bound
    shift = second.numbers.mean(axis=0)
    first, second = (Points(p.numbers - shift, p.codes) for p in (first, second))
    shares = [side / side.sum() for side in masses]
    generator = np.random.default_rng([random_state, 2])
    if sample is None:
        n_rows = max(len(first), len(second))
        sample = max(SAMPLE[0], min(SAMPLE[1], n_rows // 5, _EXTENDED // n_rows))
    u = _mixed(first, second, shares, by_columns, generator, sample)
    source, target = Cells.of(first), Cells.of(second)
    # How many pairs there are to look at is known from a few cells.
    few = generator.permutation(len(target.low))[: 2 + len(target.low) // 200]
    _, n_pairs = _minima(source, target, few, u[source.rows])
    if n_pairs * len(target.low) / len(few) > proof_pairs:
        return bound
    v = _all_minima(source, target, u, n_jobs)
    u = _all_minima(target, source, v, n_jobs)
    sums = [float(share @ side) for share, side in zip(shares, (u, v), strict=True)]
    error = [float(share @ np.abs(side)) for share, side in zip(shares, (u, v), strict=True)]
    return max(bound, sum(sums) - 1e-13 * sum(error))


def _mixed(
    first: Points,
    second: Points,
    shares: Sequence[Floats],
    by_columns: Floats,
    generator: np.random.Generator,
    sample: int,
) -> Floats:
    """Return the mixture of the columns' potential and the samples' that is best for a few people.

    The potentials of several samples are averaged, as long as each gains something.
    """
    orders = [generator.permutation(len(side)) for side in shares]
    probed = generator.permutation(len(second))[:_PROBED]
    problem, share = _problem(first, second.take(probed)), shares[1][probed]

    def value(u: Floats) -> float:
        return float(shares[0] @ u + share @ column_minima(problem, u) / share.sum())

    best, mixed, mean = value(by_columns), by_columns, np.zeros(len(first))
    for number in range(_SAMPLES):
        drawn = [order[number * sample :][:sample] for order in orders]
        if number and min(map(len, drawn)) < sample:
            break
        few = first.take(drawn[0]), second.take(drawn[1])
        mass = [side[at] / side[at].sum() for side, at in zip(shares, drawn, strict=True)]
        transport = Transport(*few, *mass)
        plan = transport.solve(tolerance=_TOLERANCE, on_unproven="return")
        v = column_minima(_problem(*few), transport.row_potentials(plan))
        mean += (row_minima(_problem(first, few[1]), v) - mean) / (number + 1)
        mixtures = [by_columns + part * (mean - by_columns) for part in np.linspace(0.2, 1.0, 5)]
        values = [value(u) for u in mixtures]
        if max(values) <= best + _GAIN * abs(best):
            break
        best, mixed = max(values), mixtures[int(np.argmax(values))]
    return mixed


@dataclass(frozen=True, eq=False)
class Cells:
    """People in cells of those who are alike, with what bounds each cell from outside."""

    points: Points  # in the order of the cells
    rows: Index  # their rows
    start: Index
    low: Floats
    high: Floats
    levels: list[NDArray[np.float32]]  # whether a level occurs in a cell; the first is unknown

    @classmethod
    def of(cls, points: Points) -> Cells:
        """Cut the column that is spread most, until all cells are small."""
        cells, todo = [], [np.arange(len(points))]
        while todo:
            cell = todo.pop()
            parts = _halves(points.take(cell)) if len(cell) > _CELL else None
            if parts is None:
                cells.append(cell)
            else:
                todo += [cell[parts], cell[~parts]]
        rows = np.concatenate(cells)
        ordered = points.take(rows)
        start = np.cumsum([0, *map(len, cells)])
        cell_of = np.repeat(np.arange(len(cells)), np.diff(start))
        levels = []
        for codes in ordered.codes.T:
            held = np.zeros((len(cells), int(codes.max(initial=-1)) + 2), dtype=np.float32)
            held[cell_of, codes + 1] = 1.0
            levels.append(held)
        low, high = (of.reduceat(ordered.numbers, start[:-1]) for of in (np.minimum, np.maximum))
        return cls(ordered, rows, start, low, high, levels)

    def members(self, cells: Index) -> Index:
        """Return where the people of some cells are."""
        return np.concatenate([np.arange(self.start[c], self.start[c + 1]) for c in cells])

    def distances(self, other: Cells, cell: int) -> Floats:
        """Return at most the cost between any person of each cell and of a cell of the others."""
        apart = np.maximum(self.low - other.high[cell], other.low[cell] - self.high)
        far: Floats = (np.maximum(apart, 0.0) ** 2).sum(axis=1)
        for ours, theirs in zip(self.levels, other.levels, strict=True):
            width = min(ours.shape[1], theirs.shape[1])
            shared = ours[:, :width] @ theirs[cell, :width] > 0
            cost = np.where((ours[:, 0] > 0) | (theirs[cell, 0] > 0), 1.0, 2.0)
            far += np.where(shared, 0.0, cost)
        return far * (1.0 - 1e-12)


def _halves(points: Points) -> NDArray[np.bool_] | None:
    """Return who is in the first half of some people, or None if all of them are the same."""
    counts = [np.bincount(codes + 1) for codes in points.codes.T]
    spread = [*points.numbers.var(axis=0)]
    spread += [1.0 - float(((count / len(points)) ** 2).sum()) for count in counts]
    column = int(np.argmax(spread))
    if spread[column] <= 0.0:
        return None
    if column < points.numbers.shape[1]:
        values = points.numbers[:, column]
        first = values <= np.median(values)
        return first if not first.all() else values < values.max()
    count = counts[column - points.numbers.shape[1]]
    levels = np.argsort(-count, kind="stable")
    n_first = max(1, int(np.searchsorted(np.cumsum(count[levels]), len(points) / 2)))
    is_first = np.isin(np.arange(len(count)), levels[:n_first])
    return np.asarray(is_first[points.codes[:, column - points.numbers.shape[1]] + 1])


def _all_minima(source: Cells, target: Cells, u: Floats, n_jobs: int | None) -> Floats:
    """Compute ``min_i c_ij - u_i`` for every target, given ``u`` by row."""
    tasks = np.array_split(np.arange(len(target.low)), min(_TASKS, len(target.low)))
    ordered = u[source.rows]
    found = Parallel(n_jobs=n_jobs)(
        delayed(_minima)(source, target, task, ordered) for task in tasks
    )
    least = np.empty(len(target.rows))
    least[target.rows] = np.concatenate([values for values, _ in found])
    return least


def _minima(source: Cells, target: Cells, cells: Index, u: Floats) -> tuple[Floats, int]:
    """Compute the minima of some target cells, and how many pairs were looked at."""
    top = np.maximum.reduceat(u, source.start[:-1])
    found, n_pairs = [], 0
    for cell in cells:
        people = target.points.take(slice(target.start[cell], target.start[cell + 1]))
        least_possible = source.distances(target, cell) - top
        least_possible -= 1e-12 * (np.abs(least_possible) + np.abs(top))
        order = np.argsort(least_possible)
        least = np.full(len(people), np.inf)
        for place in range(0, len(order), _CELLS_AT_ONCE):
            open_ = np.flatnonzero(least > least_possible[order[place]])
            if not len(open_):
                break
            at = source.members(order[place : place + _CELLS_AT_ONCE])
            problem = _problem(source.points.take(at), people.take(open_))
            least[open_] = np.minimum(least[open_], column_minima(problem, u[at]))
            n_pairs += len(at) * len(open_)
        found.append(least)
    return np.concatenate(found), n_pairs


def column_bound(points: _Sides, units: _Units, most_atoms: int) -> tuple[float, Floats]:
    """Return the bound of disjoint sets of columns, and its potential at every source row."""
    n_numbers = points[0].numbers.shape[1]
    bounds, potential = [], np.zeros(len(points[0]))
    for columns in _column_sets(points, units, most_atoms):
        numbers = [column for column in columns if column < n_numbers]
        codes = [column - n_numbers for column in columns if column >= n_numbers]
        own = [Points(p.numbers[:, numbers], p.codes[:, codes]) for p in points]
        transport = Transport(own[0], own[1], units=units)
        plan = transport.solve(tolerance=_TOLERANCE, on_unproven="return")
        bounds.append(plan.bound)
        potential += transport.row_potentials(plan)
    return math.fsum(bounds) * (1.0 - _ROUNDOFF), potential


def _column_sets(points: _Sides, units: _Units, most_atoms: int) -> list[list[int]]:
    """Return disjoint sets of columns.

    The columns that differ most between the groups come first. Each joins the first set that then
    still has at most ``most_atoms`` different points in each group, because a larger set has a
    higher bound. A column with more values than that is alone.
    """
    n_first, n_numbers = len(points[0]), points[0].numbers.shape[1]

    def is_small(levels: Index) -> bool:
        return max(len(np.unique(part)) for part in np.split(levels, [n_first])) <= most_atoms

    ordered = []
    for column in range(points[0].width):
        at = column - n_numbers
        values = [p.numbers[:, column] if at < 0 else p.codes[:, at] for p in points]
        levels = np.unique(np.concatenate(values), return_inverse=True)[1]
        shares = [
            np.bincount(part, side / side.sum(), levels.max() + 1)
            for part, side in zip(np.split(levels, [n_first]), units, strict=True)
        ]
        ordered.append((-float(np.abs(shares[0] - shares[1]).sum()), column, levels))
    alone: list[list[int]] = []
    sets: list[tuple[list[int], Index]] = []
    for _, column, levels in sorted(ordered, key=lambda entry: entry[:2]):
        if not is_small(levels):
            alone.append([column])
            continue
        for place, (own, labels) in enumerate(sets):
            joint = np.unique(labels * (levels.max() + 1) + levels, return_inverse=True)[1]
            if is_small(joint):
                sets[place] = [*own, column], joint
                break
        else:
            sets.append(([column], levels))
    return [*alone, *(own for own, _ in sets)]


def _problem(first: Points, second: Points) -> Problem:
    source, target = (Atoms(p.numbers, p.codes, np.ones(len(p))) for p in (first, second))
    return Problem(source, target)
