"""Rows of a group as atoms: identical points are merged, and masses are whole units."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairmatch.matching.problem import MASS_UNITS, Atoms, Floats, Index


def unit_count(a: Floats, b: Floats) -> int:
    """Return the number of units in a total mass of one.

    Uniform masses are whole numbers of units, unless that takes more than `MASS_UNITS` of them.
    """
    uniform = all(np.ptp(m[m > 0]) == 0 for m in (a, b))
    common = math.lcm(np.count_nonzero(a), np.count_nonzero(b))
    return common if uniform and common <= MASS_UNITS else MASS_UNITS


def whole_units(mass: Floats, total: int) -> Floats:
    """Round masses to whole units. Each is off by at most one unit, and the sum is exact."""
    running = np.cumsum(mass)
    return np.diff(np.rint(running / running[-1] * total), prepend=0.0)


def level_units(
    mass: tuple[Floats, Floats], score: tuple[Floats, Floats], total: int
) -> tuple[Floats, Floats]:
    """Round the masses of two groups to whole units. Equal shares stay equal.

    If both groups have the same share of people up to some score, apart from rounding, they get
    the same number of units up to that score.
    """
    orders = [np.argsort(s, kind="stable") for s in score]
    ends = [np.cumsum(whole_units(m[order], total)) for m, order in zip(mass, orders, strict=True)]
    levels = np.unique(np.concatenate(score))
    last = [
        np.searchsorted(s[order], levels, side="right") - 1
        for s, order in zip(score, orders, strict=True)
    ]
    begun = (last[0] >= 0) & (last[1] >= 0)
    at0, at1 = last[0][begun], last[1][begun]
    rounding = total * 2.0**-52 * (len(mass[0]) + len(mass[1]))
    same = np.abs(ends[0][at0] - ends[1][at1]) <= rounding
    fixed = np.full(len(mass[1]), np.nan)
    fixed[at1[same]] = ends[0][at0[same]]
    below, above = np.fmax.accumulate(fixed), np.fmin.accumulate(fixed[::-1])[::-1]
    ends[1] = np.fmin(np.fmax(ends[1], below), above)  # fixed or not, ends stay in order
    units = np.empty(len(mass[0])), np.empty(len(mass[1]))
    for out, order, end in zip(units, orders, ends, strict=True):
        out[order] = np.diff(end, prepend=0.0)
    return units


@dataclass(frozen=True)
class Group:
    """The rows of one group that carry mass, merged into atoms of identical points.

    Attributes
    ----------
    rows : array of int
        Positions in the input.
    units : array of float
        Mass of each row, in whole units.
    label : array of int
        Atom of each row.
    first : array of int
        Position in the input of one row of each atom.
    atoms : Atoms
        The different points, in random order.
    """

    rows: Index
    units: Floats
    label: Index
    first: Index
    atoms: Atoms

    @classmethod
    def of(
        cls,
        numbers: Floats,
        codes: NDArray[np.int32],
        score: Floats | None,
        units: Floats,
        rng: np.random.Generator,
    ) -> Group:
        """Return a group in which rows are merged if they agree in all that a cost depends on."""
        rows = np.flatnonzero(units > 0)
        numbers, codes, units = numbers[rows] + 0.0, codes[rows], units[rows]  # no -0.0
        points = numbers
        if codes.shape[1] or score is not None:
            scores = [] if score is None else [score[rows, None]]
            points = np.hstack([numbers, codes, *scores])
        # A random linear hash of their bits tells rows apart. That is far cheaper than sorting
        # the rows. Atoms are in the order of the hash, which shuffles them.
        bits = points.view(np.uint64)
        odd = rng.integers(2**63, size=points.shape[1], dtype=np.uint64) | np.uint64(1)
        key = ((bits ^ (bits >> np.uint64(32))) * odd).sum(axis=1)
        _, first, label = np.unique(key, return_index=True, return_inverse=True)
        if not np.array_equal(points[first][label], points):  # two different rows share a hash
            _, first, label = np.unique(points, axis=0, return_index=True, return_inverse=True)
        weight = np.bincount(label, units).astype(np.float64)
        return cls(rows, units, label, rows[first], Atoms(numbers[first], codes[first], weight))

    def split(self, owner: Index, flow: Floats) -> tuple[Index, Index, Floats]:
        """Divide the flow of arcs, each at the atom ``owner``, among the rows of the atom.

        Sorted by atom, arcs and rows cut the same interval of mass into pieces of whole units.
        Their common refinement has no more parts than arcs and rows together.

        Returns
        -------
        arc, row, flow
            The arc, the row and the flow of each part.
        """
        arcs, rows = np.argsort(owner, kind="stable"), np.argsort(self.label, kind="stable")
        arc_end, row_end = np.cumsum(flow[arcs]), np.cumsum(self.units[rows])
        end = np.union1d(arc_end, row_end)
        arc = arcs[np.searchsorted(arc_end, end)]
        row = self.rows[rows[np.searchsorted(row_end, end)]]
        return arc, row, np.diff(end, prepend=0.0)
