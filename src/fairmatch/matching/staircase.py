"""The monotone matching of two sorted lists of masses, and what tied scores leave open."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairmatch.matching.coupling import IndexArray
from fairmatch.tables.arrays import FloatArray

# Weights that are not whole numbers are counted in this many units. Unlike sums of floats, sums of
# units are exact in any order.
_UNITS = 2**61


def northwest_corner(
    mass0: FloatArray, mass1: FloatArray
) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Couple two ordered lists of masses monotonically.

    Both lists cut the interval [0, 1] into pieces. The coupling is their common refinement, which
    one merge finds. Masses are counted in whole units, so cuts that coincide do so exactly or to
    within the rounding of the masses. A piece no larger than that rounding is not a match.

    Returns
    -------
    index0, index1, mass
        Position of every piece in each list, and its share of the total.
    """
    ends0, ends1, total, rounding = _ends(mass0, mass1)
    ends = _merge(ends0, ends1, rounding)
    mass = np.diff(ends, prepend=0) / total
    return np.searchsorted(ends0, ends), np.searchsorted(ends1, ends), mass


def equal_northwest_corner(n0: int, n1: int) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Couple n0 equal masses with n1 equal masses, like `northwest_corner` but by division."""
    ends = _merge(np.arange(1, n0 + 1) * n1, np.arange(1, n1 + 1) * n0)
    mass = np.diff(ends, prepend=0) / (float(n0) * float(n1))
    ends -= 1
    return ends // n1, ends // n0, mass


def _merge(
    ends0: NDArray[np.int64], ends1: NDArray[np.int64], rounding: int = 0
) -> NDArray[np.int64]:
    ends = np.concatenate([ends0, ends1])
    ends.sort(kind="stable")  # two sorted runs: one linear merge
    return ends[np.diff(ends, prepend=0) > rounding]


def _ends(
    mass0: FloatArray, mass1: FloatArray
) -> tuple[NDArray[np.int64], NDArray[np.int64], float, int]:
    """Return the right ends of the pieces of both lists, the total, and the rounding, in units."""
    total0, total1 = float(mass0.sum()), float(mass1.sum())
    whole = all(np.array_equal(m, np.rint(m)) for m in (mass0, mass1))
    if whole and total0 * total1 < 2.0**62:
        ends0 = np.cumsum(mass0.astype(np.int64)) * np.int64(total1)
        ends1 = np.cumsum(mass1.astype(np.int64)) * np.int64(total0)
        return ends0, ends1, total0 * total1, 0
    # Half a unit for every mass, plus a few float roundings (2**-52, or 2**9 units) of the totals.
    rounding = len(mass0) + len(mass1) + 2**12
    return _unit_ends(mass0 / total0), _unit_ends(mass1 / total1), float(_UNITS), rounding


def _unit_ends(shares: FloatArray) -> NDArray[np.int64]:
    ends = np.cumsum(np.rint(shares * _UNITS).astype(np.int64))
    ends[-1] = _UNITS
    return np.minimum(ends, _UNITS)


@dataclass(frozen=True)
class Side:
    """One group along the staircase.

    Attributes
    ----------
    rows : array of int, shape (n_members,)
        Row positions in the order of their scores. Tied rows are in row order.
    level : array of int, shape (n_members,), or None
        Position of the score among the group's different scores. It is None without ties.
    piece : array of int, shape (n_pieces,)
        The member to which each piece of the matching belongs.
    """

    rows: IndexArray
    level: IndexArray | None
    piece: IndexArray

    def levels(self, run: slice) -> IndexArray:
        """Return the score level of every piece of a run."""
        return self.piece[run] if self.level is None else self.level[self.piece[run]]


class Staircase:
    """The matching of two groups by score quantiles, as pieces along the quantile axis.

    Where scores are tied, only the mass between two score levels is determined. Levels linked by
    a tie form a run of pieces. In a run with several people on both sides, the partners are open.

    Parameters
    ----------
    scores : array of shape (n_rows,)
        Score of every row of the table.
    rows : pair of arrays of int
        Rows of the two groups that carry mass.
    weights : array of shape (n_rows,), optional
        Weight of every row.
    """

    def __init__(
        self,
        scores: FloatArray,
        rows: tuple[IndexArray, IndexArray],
        weights: FloatArray | None = None,
    ) -> None:
        (rows0, level0), (rows1, level1) = (_rank(scores, r) for r in rows)
        if weights is None:
            piece0, piece1, self.mass = equal_northwest_corner(len(rows0), len(rows1))
        else:
            piece0, piece1, self.mass = northwest_corner(weights[rows0], weights[rows1])
        self.sides = Side(rows0, level0, piece0), Side(rows1, level1, piece1)
        self.open_runs = self._open_runs()
        self.open_mass = float(sum(self.mass[run].sum() for run in self.open_runs))

    @property
    def pairs(self) -> tuple[IndexArray, IndexArray]:
        """Row positions of the two ends of every piece."""
        return self.sides[0].rows[self.sides[0].piece], self.sides[1].rows[self.sides[1].piece]

    def _open_runs(self) -> list[slice]:
        if all(side.level is None for side in self.sides):
            return []
        joined = np.zeros(len(self.mass) - 1, dtype=bool)
        for side in self.sides:
            if side.level is not None:
                at = side.level[side.piece]
                tied = np.bincount(side.level)[at] > 1
                joined |= (at[1:] == at[:-1]) & tied[1:]
        starts = np.append(0, np.flatnonzero(~joined) + 1)
        ends = np.append(starts[1:], len(self.mass))
        several = np.ones(len(starts), dtype=bool)
        for side in self.sides:
            several &= side.piece[ends - 1] > side.piece[starts]
        return [slice(a, b) for a, b in zip(starts[several], ends[several], strict=True)]


def _rank(scores: FloatArray, rows: IndexArray) -> tuple[IndexArray, IndexArray | None]:
    """Sort rows by score. If scores are tied, sort ties in row order and return score levels."""
    values = scores[rows]
    order = np.argsort(values)
    ranked = values[order]
    new = ranked[1:] != ranked[:-1]
    if new.all():
        return rows[order], None
    # The stable sort is three times slower, so it runs only if there are ties.
    return rows[np.argsort(values, kind="stable")], np.append(0, np.cumsum(new))
