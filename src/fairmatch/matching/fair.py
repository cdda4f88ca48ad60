"""Who is treated alike: the matchings that a model implies by its scores."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairmatch.matching.coupling import Coupling, IndexArray, couple, join_parts
from fairmatch.matching.solver import EXACT, Transport
from fairmatch.people.checks import FloatArray, read_scores, refuse_other_order
from fairmatch.people.encoding import Points, read_points
from fairmatch.people.groups import Criterion, read_criterion
from fairmatch.people.people import Comparison, People, read_people

# Weights that are not whole numbers are counted in this many units. Unlike sums of floats, sums of
# units are exact in any order.
_UNITS = 2**61


def northwest_corner(
    mass0: FloatArray, mass1: FloatArray
) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Couple two ordered lists of masses monotonically: positions in both lists, and mass.

    Both lists cut the interval [0, 1] into pieces. The coupling is their common refinement, which
    one merge finds. Masses are counted in whole units, so cuts that coincide do so exactly or to
    within the rounding of the masses. A piece no larger than that rounding is not a match.
    """
    totals = [float(mass.sum()) for mass in (mass0, mass1)]
    whole = all(np.array_equal(mass, np.rint(mass)) for mass in (mass0, mass1))
    if whole and totals[0] * totals[1] < 2.0**62:
        ends0 = np.cumsum(mass0.astype(np.int64)) * np.int64(totals[1])
        ends1 = np.cumsum(mass1.astype(np.int64)) * np.int64(totals[0])
        total, rounding = totals[0] * totals[1], 0
    else:
        ends0, ends1 = _unit_ends(mass0 / totals[0]), _unit_ends(mass1 / totals[1])
        # Half a unit for every mass, plus a few float roundings (2**-52, or 2**9 units) of the
        # totals.
        total, rounding = float(_UNITS), len(mass0) + len(mass1) + 2**12
    ends = _merge(ends0, ends1, rounding)
    mass = np.diff(ends, prepend=0) / total
    return np.searchsorted(ends0, ends), np.searchsorted(ends1, ends), mass


def equal_northwest_corner(n0: int, n1: int) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Couple n0 equal masses with n1 equal masses by division, in a fifth of the time."""
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


def _unit_ends(shares: FloatArray) -> NDArray[np.int64]:
    ends = np.cumsum(np.rint(shares * _UNITS).astype(np.int64))
    ends[-1] = _UNITS
    return np.minimum(ends, _UNITS)


@dataclass(frozen=True)
class Side:
    """One group along the staircase: the matching as pieces along the quantile axis."""

    rows: IndexArray  # in the order of their scores; tied rows are in row order
    level: IndexArray | None  # of each row among the group's different scores; None without ties
    piece: IndexArray  # the member to which each piece of the matching belongs

    @property
    def levels(self) -> IndexArray:
        """The score level of every piece."""
        return self.piece if self.level is None else self.level[self.piece]


class Staircase:
    """The matching of two groups by score quantiles, as pieces along the quantile axis.

    Where scores are tied, only the mass between two score levels is determined. Levels linked by
    a tie form a run of pieces. In a run with several people on both sides, the partners are open.
    """

    def __init__(
        self,
        scores: FloatArray,
        rows: tuple[IndexArray, IndexArray],
        weights: FloatArray | None = None,
    ) -> None:
        (rows0, level0), (rows1, level1) = (_rank(scores, own) for own in rows)
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
                at, tied = side.levels, np.bincount(side.level) > 1
                joined |= (at[1:] == at[:-1]) & tied[at[1:]]
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
    # The stable sort is slower, so it runs only if there are ties.
    return rows[np.argsort(values, kind="stable")], np.append(0, np.cumsum(new))


def settled(
    staircase: Staircase, features: FloatArray, tolerance: float, *, farthest: bool = False
) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Return pairs and mass. Open runs are matched at the least or greatest transport cost."""
    source, target = staircase.pairs
    determined = np.ones(len(staircase.mass), dtype=bool)
    parts = []
    for run in staircase.open_runs:
        determined[run] = False
        parts.append(_settle(staircase, run, features, tolerance, farthest))
    parts.append((source[determined], target[determined], staircase.mass[determined]))
    source, target, mass = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return source, target, mass


def _settle(
    staircase: Staircase, run: slice, features: FloatArray, tolerance: float, farthest: bool
) -> tuple[IndexArray, IndexArray, FloatArray]:
    mass = staircase.mass[run]
    places = _places(*(side.levels[run] for side in staircase.sides))
    (rows0, mass0, place0), (rows1, mass1, place1) = (
        _members(side, run, mass, place)
        for side, place in zip(staircase.sides, places, strict=True)
    )
    points0, points1, diameter = _centred(features[rows0], features[rows1])
    if farthest:
        # |x + x'|² and -|x - x'|² differ by a constant that the marginals fix.
        points1 = -points1
    if place0[0] != place0[-1] and place1[0] != place1[-1]:
        # With several levels on both sides, the quantiles fix the mass between levels. An extra
        # column that outweighs every distance keeps that mass: crossing two levels costs at least
        # 2 * weight per mass, and saves at most two distances.
        weight = 2.0 * diameter if diameter > 0.0 else 1.0
        points0 = np.column_stack([points0, np.sqrt(weight) * place0])
        points1 = np.column_stack([points1, np.sqrt(weight) * place1])
    total = float(mass.sum())
    plan = Transport(points0, points1, mass0 / total, mass1 / total).solve(tolerance=tolerance)
    return rows0[plan.source], rows1[plan.target], plan.mass * total


def _places(level0: IndexArray, level1: IndexArray) -> tuple[FloatArray, FloatArray]:
    """Return places on a line for the levels of a run, near the places of their partners.

    A step is a maximal stretch of pieces between the same two levels. The mean step of a level
    grows by at least one from level to level. Neighbours that are matched with only one level,
    the same one, share a place. So no place is matched with more than three others, and none is
    far from the places of its partners.
    """
    level0, level1 = _merged(level0, level1), _merged(level1, level0)
    step = np.cumsum(np.append(0, (np.diff(level0) > 0) | (np.diff(level1) > 0)))
    place0, place1 = (
        (np.bincount(level, step) / np.bincount(level))[level] for level in (level0, level1)
    )
    return place0, place1


def _merged(level: IndexArray, other: IndexArray) -> IndexArray:
    """Return renumbered levels of a run. Neighbours with the same single partner level are one."""
    starts = np.append(0, np.flatnonzero(np.diff(level)) + 1)
    ends = np.append(starts[1:], len(level))
    bound = other[starts] == other[ends - 1]
    same = bound[1:] & bound[:-1] & (other[starts[1:]] == other[starts[:-1]])
    return np.repeat(np.append(0, np.cumsum(~same)), ends - starts)


def _members(
    side: Side, run: slice, mass: FloatArray, place: FloatArray
) -> tuple[IndexArray, FloatArray, FloatArray]:
    """Return the people on one side of a run: rows, their mass in the run, and their places."""
    piece = side.piece[run]
    new = np.append(True, np.diff(piece) > 0)
    member_mass = np.bincount(np.cumsum(new) - 1, mass).astype(np.float64)
    return side.rows[piece[new]], member_mass, place[new]


def _centred(points0: FloatArray, points1: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return the points, centred on the middle of their box, and its squared diagonal."""
    low = np.minimum(points0.min(axis=0), points1.min(axis=0))
    high = np.maximum(points0.max(axis=0), points1.max(axis=0))
    centre = (low + high) / 2.0
    return points0 - centre, points1 - centre, float(((high - low) ** 2).sum())


def read_scored(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    y_true: ArrayLike | None,
    criterion: str | Criterion,
    sample_weight: ArrayLike | None,
    pos_label: Any,
    X: Any = None,
    given: Any = None,
    *,
    needs_labels: bool = False,
) -> tuple[FloatArray, People, Criterion]:
    """Read the arguments of `fair_matching` with the same names, as the caller passed them."""
    refuse_other_order(
        y_score=y_score, sensitive_features=sensitive_features, y_true=y_true, X=X,
        sample_weight=sample_weight,
    )  # fmt: skip
    scores = read_scores(y_score)
    criterion = read_criterion(criterion)
    people = read_people(
        sensitive_features,
        n_rows=len(scores),
        y=y_true if criterion.needs_labels or needs_labels else None,
        pos_label=pos_label,
        sample_weight=sample_weight,
        X=None if X is None or isinstance(X, Points) else X,
        given=given,
    )
    return scores, people, criterion


def fair_matching(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    *,
    X: ArrayLike | None = None,
    y_true: ArrayLike | None = None,
    criterion: str | Criterion = "demographic_parity",
    reference: Any = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = 1,
    tolerance: float = EXACT,
    given: Any = None,
) -> Coupling:
    r"""Match people at the same quantile of their group's scores.

    A model's scores imply this matching. It shows which people of different groups the model treats
    alike. Every group is matched with the reference group.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or 0/1 decisions.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    X : array-like of shape (n_rows, n_features), table or Points, optional
        The features. Tied scores do not determine the partners. With X, each block of ties is
        matched at the least transport cost. Without X, it is matched by row order.
    y_true : array-like of shape (n_rows,), optional
        Labels of two classes. They are needed if the criterion compares people of the same class.
    criterion : str or Criterion, default="demographic_parity"
        Whom to match: everybody ("demographic_parity"), people with a positive label
        ("equal_opportunity"), or each class by itself ("equalized_odds").
    reference : a group label, optional
        The group with which every other group is matched. By default it is the largest.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    pos_label : default=1
        The label that counts as positive.
    tolerance : float, default=1e-9
        Relative duality gap to which tied blocks are solved.
    given : names of columns of X, array-like of shape (n_rows,), or table, optional
        Factors within whose levels people are matched.

    Returns
    -------
    Coupling
        A coupling from every other group to the reference group. Its ``undetermined`` is the share
        of the mass that was matched by row order. `transport_cost_range` shows how much that can
        change a transport cost.

    Notes
    -----
    Definition 3.4 and Proposition 3.5 of the paper: :math:`T^f = f_{s'}^{-1} \circ F_{s'}^{-1}
    \circ F_s \circ f_s`. For groups of different sizes the two sorted quantile functions are
    merged, and mass is split. This solves the one-dimensional Kantorovich problem in O(n log n),
    without a linear program. The matched gap of every part is the Wasserstein parity gap of its
    two groups.

    Examples
    --------
    >>> pairs = fair_matching([0.1, 0.9, 0.3, 0.2, 0.4], ["a", "a", "b", "b", "b"])
    >>> for i, j, mass in zip(pairs.source_index, pairs.target_index, pairs.mass):
    ...     print(i, j, round(float(mass), 3))
    0 3 0.333
    0 2 0.167
    1 2 0.167
    1 4 0.333
    """
    about = y_true, criterion, sample_weight, pos_label
    scores, people, criterion = read_scored(y_score, sensitive_features, *about, X, given)
    features = None if X is None else read_points(X, n_rows=len(scores)).dense()
    parts = people.comparisons(criterion, reference)
    return join_parts(
        [match_quantiles(people, part, scores, features, tolerance) for part in parts]
    )


def match_quantiles(
    people: People,
    part: Comparison,
    scores: FloatArray,
    features: FloatArray | None = None,
    tolerance: float = EXACT,
    *,
    farthest: bool = False,
) -> Coupling:
    """Return the coupling of equal score quantiles. Features decide where scores are tied."""
    staircase = Staircase(scores, part.in_order, people.weights)
    if features is None or not staircase.open_runs:
        pairs = *staircase.pairs, staircase.mass
        return couple(people, part, *pairs, undetermined=staircase.open_mass)
    pairs = settled(staircase, features, tolerance, farthest=farthest)
    return couple(people, part, *pairs)


@dataclass(frozen=True)
class CostRange:
    """The range of transport costs that a model's fair matching can have."""

    #: Least and greatest cost over all ways to match people with tied scores.
    low: float
    high: float
    #: Share of the mass that ties leave open. If it is 0, the two costs are equal.
    undetermined: float


def transport_cost_range(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    X: ArrayLike,
    *,
    y_true: ArrayLike | None = None,
    criterion: str | Criterion = "demographic_parity",
    reference: Any = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = 1,
    tolerance: float = EXACT,
) -> CostRange:
    """Compute the least and the greatest transport cost of a model's fair matching.

    Parameters
    ----------
    y_score, sensitive_features, X, y_true, criterion, reference, sample_weight, pos_label
        As in `nearest_fair_matching`.
    tolerance : float, default=1e-9
        Relative duality gap to which tied blocks are solved.

    Returns
    -------
    CostRange
        The least and the greatest cost, and the share of the mass that ties leave open.

    Examples
    --------
    Decisions alone do not determine which accepted people are matched with each other:

    >>> transport_cost_range([1, 1, 1, 1], [0, 0, 1, 1], [[0.0], [1.0], [0.0], [1.0]])
    CostRange(low=0.0, high=1.0, undetermined=1.0)
    """
    about = y_true, criterion, sample_weight, pos_label
    scores, people, criterion = read_scored(y_score, sensitive_features, *about)
    features = read_points(X, n_rows=len(scores)).dense()
    costs, undetermined = np.zeros(2), 0.0
    for part in people.comparisons(criterion, reference):
        undetermined += part.weight * match_quantiles(people, part, scores).undetermined
        for index, farthest in enumerate((False, True)):
            how = scores, features, tolerance
            coupling = match_quantiles(people, part, *how, farthest=farthest)
            costs[index] += part.weight * coupling.transport_cost(features)
    return CostRange(float(costs[0]), float(costs[1]), undetermined)
