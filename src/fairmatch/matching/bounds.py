"""Proven lower bounds on the cost of every coupling, for tables too large to be solved exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from joblib import Parallel, delayed

from fairmatch.matching.network import (
    Atoms,
    Floats,
    Index,
    Problem,
    column_minima,
    monotone_plan,
    row_minima,
)
from fairmatch.matching.solver import Transport
from fairmatch.people.encoding import Points

#: Rows of each group whose coupling provides potentials.
SAMPLE = 8_192
#: The most pairs of people that are examined. With more, the bound is that of sets of columns.
PROOF_PAIRS = 40_000_000_000
#: A set of columns is matched exactly up to this many different points in a group.
MOST_ATOMS = 2_048
_TOLERANCE = 1e-3
_ROUNDOFF = float(np.finfo(np.float64).eps)
_CHUNK = 65_536

Minima = Callable[[Problem, Floats], Floats]
_Sides = tuple[Points, Points]
_Units = tuple[Floats, Floats]


def lower_bound(
    points: _Sides,
    units: _Units,
    *,
    random_state: int = 0,
    n_jobs: int | None = None,
    sample: int = SAMPLE,
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

    and their potentials :math:`u_S(x_S)` add up to a feasible potential of all columns. If there
    are at most ``proof_pairs`` pairs of people, this potential is averaged with that of an exact
    coupling of ``sample`` people of each group. The average :math:`u` is made feasible for all
    people and raised, by :math:`v_j = \min_i c_{ij} - u_i` and then
    :math:`u_i = \min_j c_{ij} - v_j`. The better one of the two bounds is returned. Neither is an
    estimate.
    """
    rows = [np.flatnonzero(side > 0) for side in units]
    first, second = (p.take(at) for p, at in zip(points, rows, strict=True))
    masses = units[0][rows[0]], units[1][rows[1]]
    bound, by_columns = column_bound((first, second), masses, most_atoms)
    if len(first) * len(second) > proof_pairs:
        return bound
    shift = second.numbers.mean(axis=0)
    first, second = (Points(p.numbers - shift, p.codes) for p in (first, second))
    shares = [side / side.sum() for side in masses]
    generator = np.random.default_rng([random_state, 2])
    drawn = [generator.permutation(len(side))[:sample] for side in shares]
    few = first.take(drawn[0]), second.take(drawn[1])
    mass = [share[at] / share[at].sum() for share, at in zip(shares, drawn, strict=True)]
    transport = Transport(*few, *mass)
    plan = transport.solve(tolerance=_TOLERANCE, on_unproven="return")
    v = column_minima(_problem(*few), transport.row_potentials(plan))
    by_sample = np.concatenate(_over_sources(first, few[1], row_minima, v, n_jobs))
    # A sample of everybody is exact. The smaller it is, the more it misses of who is near to whom.
    known = min(len(at) / len(side) for at, side in zip(drawn, shares, strict=True))
    u = by_sample + 0.5 * (1.0 - known) * (by_columns - by_sample)
    v = np.minimum.reduce(_over_sources(first, second, column_minima, u, n_jobs))
    u = np.concatenate(_over_sources(first, second, row_minima, v, n_jobs))
    return max(bound, float(shares[0] @ u + shares[1] @ v))


def column_bound(points: _Sides, units: _Units, most_atoms: int) -> tuple[float, Floats]:
    """Return the bound of disjoint sets of columns, and its potential at every source row."""
    bounds, potential = [], np.zeros(len(points[0]))
    for columns, labels in _column_sets(points, units, most_atoms):
        numbers, codes = _split(points, columns)
        if labels is None:
            (x, z), (a, b) = (p.numbers[:, numbers[0]] for p in points), units
            i, j, flow, u = monotone_plan(x, z, a, b)
            cost = math.fsum((x[i] - z[j]) ** 2 * flow) / float(a.sum())
            bounds.append(cost * (1.0 - 4.0 * _ROUNDOFF))
            potential += u
            continue
        atoms = [np.unique(label, return_index=True, return_inverse=True) for label in labels]
        sides = [
            Points(p.numbers[first][:, numbers], p.codes[first][:, codes])
            for p, (_, first, _) in zip(points, atoms, strict=True)
        ]
        mass: list[Floats] = [
            np.bincount(at, side).astype(np.float64)
            for (*_, at), side in zip(atoms, units, strict=True)
        ]
        transport = Transport(sides[0], sides[1], units=(mass[0], mass[1]))
        plan = transport.solve(tolerance=_TOLERANCE, on_unproven="return")
        bounds.append(plan.bound)
        potential += transport.row_potentials(plan)[atoms[0][2]]
    return math.fsum(bounds) * (1.0 - _ROUNDOFF), potential


def _column_sets(
    points: _Sides, units: _Units, most_atoms: int
) -> list[tuple[list[int], tuple[Index, Index] | None]]:
    """Return disjoint sets of columns, with the joint level of every row of both groups.

    The columns that differ most between the groups come first. Each joins the first set that then
    still has at most ``most_atoms`` different points in each group, because a larger set has a
    higher bound. A number with more values than that is alone, and has no levels.
    """
    n_numbers = points[0].numbers.shape[1]
    columns = []
    for column in range(points[0].width):
        values = [
            p.numbers[:, column] if column < n_numbers else p.codes[:, column - n_numbers]
            for p in points
        ]
        level = np.unique(np.concatenate(values), return_inverse=True)[1]
        levels = level[: len(points[0])], level[len(points[0]) :]
        shares = [
            np.bincount(part, side / side.sum(), level.max() + 1)
            for part, side in zip(levels, units, strict=True)
        ]
        columns.append((float(np.abs(shares[0] - shares[1]).sum()), column, levels))
    sets: list[tuple[list[int], tuple[Index, Index] | None]] = []
    for _, column, levels in sorted(columns, key=lambda entry: (-entry[0], entry[1])):
        if _most(levels) > most_atoms and column < n_numbers:
            sets.append(([column], None))
            continue
        for place, (own, labels) in enumerate(sets):
            joint = None if labels is None else _joint(labels, levels)
            if joint is not None and _most(joint) <= most_atoms:
                sets[place] = [*own, column], joint
                break
        else:
            sets.append(([column], levels))
    return sets


def _joint(one: tuple[Index, Index], other: tuple[Index, Index]) -> tuple[Index, Index]:
    base = max(int(side.max()) for side in other) + 1
    keys = [first * base + second for first, second in zip(one, other, strict=True)]
    joint = np.unique(np.concatenate(keys), return_inverse=True)[1]
    return joint[: len(keys[0])], joint[len(keys[0]) :]


def _most(levels: tuple[Index, Index]) -> int:
    return max(int(np.count_nonzero(np.bincount(side))) for side in levels)


def _split(points: _Sides, columns: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return which of the columns are numbers, and which are categories."""
    n_numbers = points[0].numbers.shape[1]
    numbers = [column for column in columns if column < n_numbers]
    return numbers, [column - n_numbers for column in columns if column >= n_numbers]


def _problem(first: Points, second: Points) -> Problem:
    source, target = (Atoms(p.numbers, p.codes, np.ones(len(p))) for p in (first, second))
    return Problem(source, target)


def _over_sources(
    first: Points, second: Points, minima: Minima, potential: Floats, n_jobs: int | None
) -> list[Floats]:
    """Return minima of the reduced costs for each chunk of the sources."""
    of_sources = minima is column_minima  # whose potentials belong to the sources
    found: list[Floats] = Parallel(n_jobs=n_jobs)(
        delayed(_minima)(
            first.take(slice(start, start + _CHUNK)),
            second,
            minima,
            potential[start : start + _CHUNK] if of_sources else potential,
        )
        for start in range(0, len(first), _CHUNK)
    )
    return found


def _minima(first: Points, second: Points, minima: Minima, potential: Floats) -> Floats:
    return minima(_problem(first, second), potential)
