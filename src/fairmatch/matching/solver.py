"""Exact optimal transport between two groups of points, with a proof of optimality.

The squared Euclidean transport problem is solved by POT's network simplex: on the full cost matrix
when that is small, else by column generation, where the simplex only ever sees a few candidate
pairs per point and every other pair is shown not to matter. Either way the plan comes with a
feasible solution of the dual problem, so that the distance to the optimum is known, not hoped for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairmatch.exceptions import SolverError

#: A relative duality gap up to which a plan counts as exact.
EXACT = 1e-9

Floats = NDArray[np.float64]
Index = NDArray[np.intp]
Block = NDArray[np.floating]
Progress = Callable[[int, float, float], object]

#: Peak memory of the dense solver per entry of the cost matrix (costs, plan, simplex arcs): 38 to
#: 41 bytes measured, rounded up. A problem above ``memory_limit`` bytes is never built densely.
DENSE_BYTES_PER_ARC = 48
#: Column generation is the faster way above this size of the cost matrix (measured on Adult).
DENSE_ARCS = 200_000

_BLOCK = 4_000_000  # reduced costs held at once
_LEVEL_RATIO = 4  # a problem takes its first potentials from a sample this many times smaller
_LEVEL_MIN = 256  # ... unless it has no more atoms than this
_LEVEL_TOLERANCE = 1e-3
_CANDIDATES = 20  # first arcs: so many least reduced costs of each atom of either group
_ADDED = 4  # later arcs: so many violated ones of each source atom, while violations abound
_RECHECK = 16  # so many arcs of each atom are recomputed in float64 as a matter of course
_MAX_ROUNDS = 100
_MAX_PIVOTS = 2**62
_MASS_UNITS = 2**52  # integers up to here, and their sums, are exact in float64
_ZERO = 1e-28  # squared rounding of coordinates of size one: a cost no larger is no cost
_OPTIMAL = 1  # result code of POT's simplex


@dataclass(frozen=True)
class TransportPlan:
    """A transport plan in sparse form, with its cost and a proven lower bound.

    Attributes
    ----------
    source, target : ndarray of intp
        Row positions of the paired source and target points.
    mass : ndarray of float64
        Mass moved by each pair; positive, sums to one.
    cost : float
        Cost of the plan, ``sum(mass * ||x[source] - z[target]||**2)``.
    bound : float
        Value of a feasible dual solution: no plan costs less.
    solver : str
        ``"dense"`` or ``"column generation"``.
    """

    source: Index
    target: Index
    mass: Floats
    cost: float
    bound: float
    solver: str

    @property
    def gap(self) -> float:
        """Distance between the cost and its lower bound."""
        return self.cost - self.bound

    @property
    def relative_gap(self) -> float:
        """Gap over cost; zero for a plan that costs nothing."""
        return self.gap / max(self.cost, float(np.finfo(np.float64).tiny))


def solve_transport(
    source_points: ArrayLike,
    target_points: ArrayLike,
    source_mass: ArrayLike | None = None,
    target_mass: ArrayLike | None = None,
    *,
    tolerance: float = EXACT,
    memory_limit: int = 2 * 2**30,
    random_state: int = 0,
    progress: Progress | None = None,
) -> TransportPlan:
    r"""Solve the squared Euclidean transport problem to a proven relative gap.

    Parameters
    ----------
    source_points, target_points : array_like of shape (n0, d) and (n1, d)
        Finite coordinates of the points of each group.
    source_mass, target_mass : array_like of shape (n0,) and (n1,), optional
        Non-negative masses that sum to one; uniform when omitted.
    tolerance : float
        Largest relative gap ``(cost - bound) / cost`` of the returned plan.
    memory_limit : int
        Bytes the dense solver may take; larger problems go to column generation, which needs a
        few hundred bytes per candidate arc and no cost matrix.
    random_state : int
        Seed of the samples that give column generation its first potentials. It decides the way
        taken and which of several optimal plans is found.
    progress : callable, optional
        Called as ``progress(round, cost, bound)`` after each round of column generation.

    Returns
    -------
    TransportPlan
        At most ``2 * (n0 + n1)`` pairs, whose masses meet the given ones.

    Raises
    ------
    SolverError
        If the solver stops before the tolerance is reached.

    Notes
    -----
    The problem and its dual are

    .. math::
        \min_{g \ge 0} \sum_{ij} g_{ij} \|x_i - z_j\|^2
        \quad\text{s.t.}\quad \sum_j g_{ij} = a_i,\ \sum_i g_{ij} = b_j,
        \qquad
        \max_{u, v} \sum_i a_i u_i + \sum_j b_j v_j
        \quad\text{s.t.}\quad u_i + v_j \le \|x_i - z_j\|^2 .

    Any feasible :math:`(u, v)` bounds the cost of every plan from below. Identical points are
    merged into atoms first, and masses are counted in integer units (exact for uniform masses,
    within :math:`2^{-52}` otherwise), so that the simplex works without rounding of flows.
    POT's potentials carry an error that grows with the largest cost and the number of atoms. A gap
    of 1e-9 was proven for costs down to about 5e-5 of the mean squared distance of the points, and
    not at 5e-7 (1,000 atoms): there the solver raises, unless the cost is zero.
    """
    x, z = _as_points(source_points, "source"), _as_points(target_points, "target")
    if x.shape[1] != z.shape[1]:
        raise ValueError(f"points differ in dimension: source {x.shape[1]}, target {z.shape[1]}")
    if not 0 < tolerance < 1:
        raise ValueError(f"tolerance must lie between 0 and 1, got {tolerance}")
    a, b = _as_mass(source_mass, len(x), "source"), _as_mass(target_mass, len(z), "target")
    total = _unit_count(a, b)
    rng = np.random.default_rng(random_state)
    # Centred points in units of a power of two: no cost changes but for its unit, while the
    # rounding of products gets smaller and POT's absolute constants meet costs of their size.
    centre = z.mean(axis=0)
    x, z = x - centre, z - centre
    unit = math.ldexp(1.0, math.frexp(max(np.abs(p).max(initial=0.0) for p in (x, z)))[1])
    square = unit * unit
    source = _Group.of(x / unit, a, total, rng)
    target = _Group.of(z / unit, b, total, rng)
    problem = _Problem(source.atoms, target.atoms, source.weight, target.weight)
    report = progress and (lambda n, cost, bound: progress(n, cost * square, bound * square))
    found = _solve(problem, tolerance, memory_limit, report)
    # An arc between atoms is shared out among the rows of its source, then of its target.
    arc, source_row, flow = source.split(found.source, found.flow)
    part, target_row, flow = target.split(found.target[arc], flow)
    source_row = source_row[part]
    order = np.lexsort((target_row, source_row))
    mass = flow[order] / total
    cost, bound = found.cost * square, found.bound * square
    return TransportPlan(source_row[order], target_row[order], mass, cost, bound, found.solver)


def _as_points(points: ArrayLike, name: str) -> Floats:
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"{name} points must be a non-empty 2-d array, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} points contain NaN or infinity")
    return array


def _as_mass(mass: ArrayLike | None, count: int, name: str) -> Floats:
    if mass is None:
        return np.full(count, 1.0 / count)
    array = np.asarray(mass, dtype=np.float64)
    if array.shape != (count,):
        raise ValueError(f"{name} mass must have shape ({count},), got {array.shape}")
    if not (array >= 0).all() or abs(array.sum() - 1.0) > 1e-6:
        raise ValueError(f"{name} mass must be non-negative and sum to 1, sums to {array.sum()}")
    return array


def _unit_count(a: Floats, b: Floats) -> int:
    """Count the integer units that one stands for, such that uniform masses are whole units."""
    uniform = all(np.ptp(m[m > 0]) == 0 for m in (a, b))
    common = math.lcm(np.count_nonzero(a), np.count_nonzero(b))
    return common if uniform and common <= _MASS_UNITS else _MASS_UNITS


@dataclass(frozen=True)
class _Group:
    """Rows of one group that carry mass, merged into atoms of identical points."""

    rows: Index  # positions in the input
    units: Floats  # mass of each row, in integer units
    label: Index  # atom of each row
    atoms: Floats
    weight: Floats  # mass of each atom, in integer units

    @classmethod
    def of(cls, points: Floats, mass: Floats, total: int, rng: np.random.Generator) -> _Group:
        # Rounding the running total keeps every row within one unit and the sum exact.
        running = np.cumsum(mass)
        units = np.diff(np.rint(running / running[-1] * total), prepend=0.0)
        rows = np.flatnonzero(units > 0)
        points, units = points[rows] + 0.0, units[rows]  # + 0.0 turns -0.0 into 0.0
        # Rows are told apart by a random linear hash of their bits, far cheaper than sorting
        # them; atoms come out in the order of the hash, that is, shuffled.
        bits = points.view(np.uint64)
        odd = rng.integers(2**63, size=points.shape[1], dtype=np.uint64) | np.uint64(1)
        key = ((bits ^ (bits >> np.uint64(32))) * odd).sum(axis=1)
        _, first, label = np.unique(key, return_index=True, return_inverse=True)
        atoms = points[first]
        if not np.array_equal(atoms[label], points):  # two different rows share a hash
            atoms, label = np.unique(points, axis=0, return_inverse=True)
        return cls(rows, units, label, atoms, np.bincount(label, units).astype(np.float64))

    def split(self, owner: Index, flow: Floats) -> tuple[Index, Index, Floats]:
        """Share arcs, each leaving atom ``owner``, among rows: (arc, row, flow) of each part.

        Arcs and rows, sorted by atom, are two partitions of the same mass interval into pieces of
        whole units; their common refinement has no more parts than both have pieces.
        """
        arcs, rows = np.argsort(owner, kind="stable"), np.argsort(self.label, kind="stable")
        arc_end, row_end = np.cumsum(flow[arcs]), np.cumsum(self.units[rows])
        end = np.union1d(arc_end, row_end)
        arc = arcs[np.searchsorted(arc_end, end)]
        row = self.rows[rows[np.searchsorted(row_end, end)]]
        return arc, row, np.diff(end, prepend=0.0)


@dataclass(frozen=True)
class _Solution:
    """Flow on arcs between atoms, potentials of the source atoms, cost and bound."""

    source: Index
    target: Index
    flow: Floats
    potential: Floats
    cost: float
    bound: float
    solver: str

    def closes(self, tolerance: float) -> bool:
        """Tell whether the gap is within the tolerance, or the cost is zero but for rounding."""
        return self.cost - self.bound <= max(tolerance * self.cost, _ZERO)


class _Problem:
    """Transport between atoms whose masses are integer-valued and balanced."""

    def __init__(self, x: Floats, z: Floats, a: Floats, b: Floats) -> None:
        self.x, self.z, self.a, self.b = x, z, a, b
        self.n0, self.n1 = len(x), len(z)
        self.total = a.sum()
        self.xx, self.zz = np.einsum("ij,ij->i", x, x), np.einsum("ij,ij->i", z, z)
        # Single precision is fast and enough to rule out most arcs; in few dimensions too many
        # arcs are too close to call, and the product is cheap anyway.
        self.precision: type[np.floating] = np.float32 if x.shape[1] >= 16 else np.float64
        self._product: Block | None = None  # kept if a single block holds it

    def sample(self, count: int) -> _Problem:
        """Restrict to the first atoms of each group, which are in random order."""
        parts = []
        for weight in (self.a[:count], self.b[:count]):
            running = np.cumsum(weight)
            parts.append(np.diff(np.rint(running / running[-1] * _MASS_UNITS), prepend=0.0))
        return _Problem(self.x[:count], self.z[:count], *parts)

    def cost_matrix(self) -> Floats:
        cost = self.x @ (-2.0 * self.z.T)
        cost += self.zz
        cost += self.xx[:, None]
        return np.maximum(cost, 0.0, out=cost)

    def arc_costs(self, i: Index, j: Index) -> Floats:
        """Costs by differences: no cancellation, unlike the matrix product."""
        cost = np.empty(len(i))
        step = max(1, _BLOCK // (4 * self.x.shape[1] + 1))
        for start in range(0, len(i), step):
            part = slice(start, start + step)
            difference = self.x[i[part]] - self.z[j[part]]
            cost[part] = np.einsum("ij,ij->i", difference, difference)
        return cost

    def reduced_costs(self, u: Floats, v: Floats) -> Iterator[tuple[slice, Block]]:
        """Yield blocks of rows of values that are at most ``c - u - v``.

        With unit roundoff ``e``, the product of d-vectors is off by at most ``(d + 2) e |x| |z|``
        and each sum by ``e`` times its terms; all of it is taken off the row and column terms.
        """
        roundoff = float(np.finfo(self.precision).eps) / 2

        def side(square: Floats, potential: Floats) -> Block:
            term = square - potential
            error = (self.x.shape[1] + 8) * square + 4.0 * np.abs(term)
            return np.asarray(term - roundoff * error, dtype=self.precision)

        row, column = side(self.xx, u)[:, None], side(self.zz, v)
        step = max(1, _BLOCK // self.n1)
        product = self._product
        if product is None or product.dtype != self.precision:
            x, z = self.x.astype(self.precision), (-2.0 * self.z.T).astype(self.precision)
            product = self._product = x @ z if step >= self.n0 else None
        for start in range(0, self.n0, step):
            part = slice(start, min(start + step, self.n0))
            if product is not None:
                block = product + column
            else:
                block = x[part] @ z
                block += column
            block += row[part]
            yield part, block

    def value(self, u: Floats, v: Floats) -> float:
        return float((self.a @ u + self.b @ v) / self.total)

    def plan_cost(self, i: Index, j: Index, flow: Floats) -> float:
        return float(self.arc_costs(i, j) @ flow / self.total)


def _solve(
    problem: _Problem, tolerance: float, memory_limit: int, progress: Progress | None = None
) -> _Solution:
    if problem.n0 * problem.n1 <= min(DENSE_ARCS, memory_limit // DENSE_BYTES_PER_ARC):
        found = _dense(problem)
        if found.closes(tolerance):
            return found
        # Costs tiny beside the coordinates are lost in the product; what follows uses differences.
    return _column_generation(problem, tolerance, memory_limit, progress)


def _dense(problem: _Problem) -> _Solution:
    from ot.lp.emd_wrap import emd_c

    plan, _, u, v, code = emd_c(
        problem.a, problem.b, problem.cost_matrix(), _MAX_PIVOTS, 1, None, None
    )
    if code != _OPTIMAL:
        raise SolverError(_no_plan("dense", code))
    problem.precision = np.float64
    _, bound, _ = _price(problem, u, v, np.inf)
    i, j = np.nonzero(plan)
    cost = problem.plan_cost(i, j, plan[i, j])
    return _Solution(i, j, plan[i, j], u, cost, min(max(bound, 0.0), cost), "dense")


def _no_plan(kind: str, code: int) -> str:
    return (
        f"the {kind} simplex stopped with code {code} within {_MAX_PIVOTS} pivots, before it had a "
        f"plan, so no gap is known; check the data for extreme values or masses"
    )


def _stopped(cost: float, bound: float, tolerance: float, where: str) -> str:
    return (
        f"{where} stopped at a relative gap of {(cost - bound) / cost:.2e}, while "
        f"{tolerance:.2e} was asked for: allow a larger tolerance, or try another random_state"
    )


def _column_generation(
    problem: _Problem, tolerance: float, memory_limit: int, progress: Progress | None
) -> _Solution:
    """Solve on few candidate arcs; add arcs of negative reduced cost until none matters."""
    n1 = problem.n1
    u, v = _first_potentials(problem, memory_limit)
    arcs = _first_arcs(problem, u, v)  # the arc from i to j is the number i * n1 + j
    costs = problem.arc_costs(*np.divmod(arcs, n1))
    basis = np.empty(0, dtype=np.intp)
    cost, bound, stalls = np.inf, 0.0, 0  # no plan costs less than nothing
    for number in range(_MAX_ROUNDS):
        i, j = np.divmod(arcs, n1)
        basis, flow, du, dv = _simplex(problem, arcs, costs - u[i] - v[j], basis, tolerance * cost)
        u, v = u + du, v + dv
        cost = problem.plan_cost(*np.divmod(basis, n1), flow)
        violated, value, sure = _price(problem, u, v)
        if not sure and not _missing(arcs, violated).any():
            problem.precision = np.float64
            violated, value, _ = _price(problem, u, v, np.inf)
        improved, bound = value > bound, min(max(bound, value), cost)
        if progress is not None:
            progress(number, cost, bound)
        found = _Solution(*np.divmod(basis, n1), flow, u, cost, bound, "column generation")
        if found.closes(tolerance):
            return found
        new = violated[_missing(arcs, violated)]
        stalls += not (improved or new.size)
        if stalls > 3:
            break
        if cost - bound <= 1e-6 * cost:
            # Unused arcs of large reduced cost now only make the potentials less accurate.
            reduced = costs - u[i] - v[j]
            useful = reduced <= max(cost, float(np.median(reduced)))
            useful[np.searchsorted(arcs, basis)] = True
            arcs, costs = arcs[useful], costs[useful]
        place = np.searchsorted(arcs, new)
        arcs = np.insert(arcs, place, new)
        costs = np.insert(costs, place, problem.arc_costs(*np.divmod(new, n1)))
    raise SolverError(_stopped(cost, bound, tolerance, f"column generation, round {number},"))


def _missing(arcs: Index, wanted: Index) -> NDArray[np.bool_]:
    """Tell which of the wanted arcs are not among the sorted ones."""
    return np.not_equal(arcs[np.minimum(np.searchsorted(arcs, wanted), len(arcs) - 1)], wanted)


def _first_potentials(problem: _Problem, memory_limit: int) -> tuple[Floats, Floats]:
    """Feasible potentials, extended to all atoms from those of a sample.

    The c-transforms ``v_j = min_i c_ij - u_i`` over the sample, then ``u_i = min_j c_ij - v_j``.
    """
    v = np.zeros(problem.n1)
    largest = max(problem.n0, problem.n1)
    if largest > _LEVEL_MIN:
        sample = problem.sample(largest // _LEVEL_RATIO)
        u = _solve(sample, _LEVEL_TOLERANCE, memory_limit).potential
        across = _Problem(sample.x, problem.z, sample.a, problem.b)
        blocks = across.reduced_costs(u, v)
        v = np.min([block.min(axis=0) for _, block in blocks], axis=0).astype(np.float64)
    blocks = problem.reduced_costs(np.zeros(problem.n0), v)
    return np.concatenate([block.min(axis=1) for _, block in blocks]).astype(np.float64), v


def _first_arcs(problem: _Problem, u: Floats, v: Floats) -> Index:
    """Arcs of least reduced cost of each atom of either group, and those of a feasible plan."""
    row_limit: list[Block] = []
    minima: list[Block] = []
    for _, block in problem.reduced_costs(u, v):
        row_limit.append(_limit(_group_minima(block, 1, problem.n1), 1))
        minima.append(_group_minima(block, 0, problem.n0))
    row, column = np.concatenate(row_limit)[:, None], _limit(np.concatenate(minima), 0)
    arcs, most = [], 8 * _CANDIDATES * (problem.n0 + problem.n1) / problem.n0
    for part, block in problem.reduced_costs(u, v):
        limit = np.maximum(row[part], column)
        chosen = block <= limit
        if np.count_nonzero(chosen) > most * len(block):
            chosen = block < limit  # ties without end, as between points all equally far apart
        arcs.append(np.flatnonzero(chosen) + part.start * problem.n1)
    # The staircase plan keeps the restricted problem feasible.
    a_end, b_end = np.cumsum(problem.a), np.cumsum(problem.b)
    end = np.union1d(a_end, b_end)
    arcs.append(np.searchsorted(a_end, end) * problem.n1 + np.searchsorted(b_end, end))
    ordered = np.sort(np.concatenate(arcs))
    return ordered[np.diff(ordered, prepend=-1) > 0]


def _group_minima(block: Block, axis: int, count: int) -> Block:
    size = max(1, min(32, count // (8 * _CANDIDATES)))
    return np.minimum.reduceat(block, np.arange(0, block.shape[axis], size), axis=axis)


def _limit(minima: Block, axis: int, rank: int = _CANDIDATES) -> Block:
    """Bound the ``rank`` smallest values by those of group minima, much cheaper to sort.

    The limit is never too low, and seldom much too high as neighbours are in random order.
    """
    rank = min(rank, minima.shape[axis]) - 1
    return np.asarray(np.partition(minima, rank, axis=axis).take(rank, axis=axis))


def _simplex(
    problem: _Problem, arcs: Index, reduced: Floats, basis: Index, slack: float
) -> tuple[Index, Floats, Floats, Floats]:
    """Solve on sorted ``arcs``: the arcs with flow, the flow, the changes of the potentials.

    POT starts from the spanning tree of least absolute reduced costs. That tree is the last one,
    if the arcs that carried flow have reduced cost zero and all others are raised a little.
    """
    from ot.lp.emd_wrap import emd_c_sparse

    if basis.size:
        kept = np.searchsorted(arcs, basis)
        exact = reduced[kept]  # zero but for rounding, which the tree then takes out
        reduced = reduced + max(1e-2 * slack, 4.0 * np.abs(exact).max())
        reduced[kept] = exact
    # POT's artificial cost is (1 + largest cost) * atoms. It is out of reach of any path if no cost
    # is negative, hence the shift, and in large units the 1 does not blur the potentials.
    shift = float(reduced.min())
    unit = math.ldexp(1.0, math.frexp(reduced.max() - shift)[1] - 20)
    i, j = np.divmod(arcs.astype(np.uint64), np.uint64(problem.n1))
    call = problem.a, problem.b, i, j, (reduced - shift) / unit, _MAX_PIVOTS
    start = np.full(problem.n0, -shift / unit), np.zeros(problem.n1)
    out = emd_c_sparse(*call, *start) if basis.size else emd_c_sparse(*call)
    if basis.size and out[6] != _OPTIMAL:
        out = emd_c_sparse(*call)
    source, target, flow, _, du, dv, code = out
    if code != _OPTIMAL:
        raise SolverError(_no_plan("sparse", code))
    middle = du.mean()
    basis = (source * np.uint64(problem.n1) + target).astype(np.intp)
    return basis, flow, (du - middle) * unit + shift, (dv + middle) * unit


def _price(
    problem: _Problem, u: Floats, v: Floats, recheck: float = _RECHECK
) -> tuple[Index, float, bool]:
    """Find violated arcs, a bound from the potentials made feasible, and whether all are sure.

    Lowering either each ``v_j`` or each ``u_i`` by its worst violation gives a feasible dual. Arcs
    whose lower bound is negative are recomputed exactly, unless a block has more than ``recheck``
    of them for each atom; then its worst ones are taken as they are.
    """
    n0, n1 = problem.n0, problem.n1
    row_low, column_low, found, sure = np.empty(n0), np.full(n1, np.inf), [], True
    for part, block in problem.reduced_costs(u, v):
        row, column = block.min(axis=1).astype(np.float64), block.min(axis=0).astype(np.float64)
        arcs = np.flatnonzero(block < 0)
        if arcs.size > recheck * (n0 + n1) * len(block) / n0:
            sure = False
            worst = _limit(_group_minima(block, 1, n1), 1, _ADDED)[:, None]
            arcs = np.flatnonzero(block <= np.minimum(np.maximum(worst, block.min(axis=0)), 0))
        else:
            i, j = np.divmod(arcs, n1)
            exact = problem.arc_costs(i + part.start, j) - u[i + part.start] - v[j]
            row, column = np.maximum(row, 0.0), np.maximum(column, 0.0)
            np.minimum.at(row, i, exact)
            np.minimum.at(column, j, exact)
            arcs = arcs[exact < 0]
        row_low[part] = row
        np.minimum(column_low, column, out=column_low)
        found.append(arcs + part.start * n1)
    value = max(problem.value(u + row_low, v), problem.value(u, v + column_low))
    return np.concatenate(found), value, sure
