"""Couplings of millions of people, solved in blocks of pairs, and a proven bound on their cost."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from joblib import Parallel, delayed
from joblib.externals.loky import BrokenProcessPool
from numpy.typing import NDArray

from fairmatch.exceptions import CouplingError, FairmatchWarning, SolverError
from fairmatch.matching.network import (
    Floats,
    Index,
    Problem,
    column_minima,
    row_minima,
    staircase,
)
from fairmatch.matching.solver import Transport
from fairmatch.people.encoding import Points
from fairmatch.people.files import whole_file, write_whole

Sides = tuple[Points, Points]
Units = tuple[Floats, Floats]

_DRAWN = 256  # pairs whose spread a direction follows


def random_staircase(units: Units, generator: np.random.Generator) -> tuple[Index, Index, Floats]:
    """Return the pairs of a random plan: both groups are shuffled and matched in that order.

    Masses are whole numbers with the same sum. Consecutive pairs are a random sample of both
    groups.
    """
    orders = [generator.permutation(np.flatnonzero(side > 0)) for side in units]
    return staircase(*units, *orders)


def near_cells(
    points: Sides,
    source: Index,
    target: Index,
    size: int,
    generator: np.random.Generator,
) -> list[Index]:
    """Return cells of at most ``size`` pairs that lie near each other, as positions of the pairs.

    A cell that is too large is cut in two, near its median along a random direction in which it is
    spread.
    """
    cells, todo = [], [np.arange(len(source))]
    while todo:
        cell = todo.pop()
        count = -(-len(cell) // size)
        if count == 1:
            cells.append(np.sort(cell))
            continue
        value = _along(points, source[cell], target[cell], generator)
        cut = len(cell) * (count // 2) // count
        order = cell[np.argpartition(value, cut)]
        todo += [order[:cut], order[cut:]]
    return cells


def _along(
    points: Sides, source: Index, target: Index, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return where pairs lie along a random direction.

    The direction is a random combination of sampled pairs, minus their mean. For categories it
    needs one number per level, and no one-hot columns.
    """
    drawn = generator.integers(len(source), size=_DRAWN)
    factors = generator.normal(size=_DRAWN)
    factors -= factors.mean()
    sides = (points[0], source), (points[1], target)
    weights = sum(p.numbers[rows[drawn]].T @ factors for p, rows in sides)
    value: NDArray[np.float64] = np.zeros(len(source))
    for p, rows in sides:
        value += (p.numbers @ weights)[rows] if len(rows) > len(p) else p.numbers[rows] @ weights
    for column in range(points[0].codes.shape[1]):
        codes = [p.codes[rows, column] for p, rows in sides]
        known = max(int(code.max(initial=0)) for code in codes) + 1
        levels = np.zeros(known + 1)
        for code in codes:
            seen = code[drawn]
            levels += np.bincount(np.where(seen < 0, known, seen), factors, known + 1)
        levels[known] = 0.0  # an unknown level adds nothing; its code, -1, is the last place
        for code in codes:
            value += levels[code]
    return value


_FORMAT = 2
_ABOUT = "matching.json"

Pairs = tuple[Index, Index, Floats]


class KeptBlocks:
    """A folder of solved blocks, or none. Raise if it holds blocks of another matching."""

    def __init__(
        self,
        folder: Any,
        points: Sides,
        units: Units,
        block_size: int,
        random_state: int,
    ) -> None:
        self.folder = None if folder is None else Path(folder)
        if self.folder is None:
            return
        digest = hashlib.sha256()
        for group, side in zip(points, units, strict=True):
            for array in (group.numbers, group.codes, side):
                digest.update(np.ascontiguousarray(array).tobytes())
        about = {
            "format": _FORMAT,
            "matched": digest.hexdigest(),
            "block_size": block_size,
            "random_state": random_state,
        }
        file = self.folder / _ABOUT
        if not file.exists():
            if self.folder.exists() and any(self.folder.iterdir()):
                raise CouplingError(
                    f"{self.folder} holds other files and no blocks of a matching. Pass a folder "
                    "that is new or empty."
                )
            self.write(_ABOUT, lambda file: write_whole(file, json.dumps(about)))
        elif _read_about(file) != about:
            raise CouplingError(
                f"{self.folder} keeps blocks of another matching: the rows, weights, block_size, "
                "random_state or file format differ. Pass another folder, or delete this one."
            )

    def last_round(self) -> tuple[int, int, Pairs | None, bool]:
        """Return the number of rounds done, the next size, the plan, and whether it is final."""
        rounds = [] if self.folder is None else sorted(self.folder.glob("round-*.npz"))
        if not rounds:
            return 0, 0, None, False
        _, number, size, *last = rounds[-1].stem.split("-")
        return int(number), int(size), _read(rounds[-1]), bool(last)

    def read_task(self, number: int, place: int) -> Pairs | None:
        """Return some blocks of a round, or None if they are not kept."""
        file = None if self.folder is None else self.folder / _task(number, place)
        return None if file is None or not file.exists() else _read(file)

    def write(self, name: Path | str, write: Callable[[Path], object]) -> bool:
        """Write, or warn and stop keeping blocks. A full disk must not end hours of work."""
        if self.folder is None:
            return False
        try:
            write(self.folder / name)
        except OSError as error:
            warnings.warn(
                f"Blocks can no longer be kept in {self.folder}: {error.strerror or error}. The "
                "matching continues without keeping them. An interrupt would lose all later work.",
                FairmatchWarning,
                stacklevel=2,
            )
            self.folder = None
        return self.folder is not None

    def write_task(self, number: int, place: int, pairs: Pairs) -> None:
        """Keep some blocks of a round."""
        self.write(_task(number, place), lambda file: _write(file, pairs))

    def write_round(self, number: int, size: int, pairs: Pairs, last: bool) -> None:
        """Keep the plan after a round and the size of the next blocks. Remove what it replaces."""
        name = f"round-{number:03d}-{size}{'-last' * last}.npz"
        if self.write(name, lambda file: _write(file, pairs)) and self.folder is not None:
            shutil.rmtree(self.folder / _task(number - 1, 0).parent, ignore_errors=True)
            for other in self.folder.glob("round-*.npz"):
                if other.name != name:
                    other.unlink(missing_ok=True)


def _task(number: int, place: int) -> Path:
    return Path(f"blocks-{number:03d}", f"{place:06d}.npz")


def _read_about(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise CouplingError(
            f"{file} is damaged: {error}. It should say which matching the folder keeps. Delete "
            "the folder, or pass another one."
        ) from error


def _write(file: Path, pairs: Pairs) -> None:
    source, target, flow = pairs
    with whole_file(file) as partial, partial.open("wb") as stream:
        np.savez(stream, source=source, target=target, flow=flow)


def _read(file: Path) -> Pairs:
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            return arrays["source"], arrays["target"], arrays["flow"]
    except (ValueError, KeyError, OSError, EOFError, BadZipFile) as error:
        raise CouplingError(
            f"{file} is damaged and cannot be read as blocks: {error}. Delete it. Its blocks are "
            "then solved again."
        ) from error


#: Called as ``progress(round, blocks done, blocks, cost of the last whole plan)``.
BlockProgress = Callable[[int, int, int, float], object]

#: Pairs in the first blocks, and in the last ones.
FIRST_SIZE = 256
BLOCK_SIZE = 2_048
MAX_ROUNDS = 60
#: After a round that saves no more than this share of the cost, blocks double in size.
GROWING_GAIN = 2e-2
#: A round of the largest blocks that saves no more than this share of the cost is the last one.
LEAST_GAIN = 2e-3
_TOLERANCE = 1e-6  # of a block; cutting the plan into blocks costs far more than this
_PAIRS_PER_TASK = 16_384
_ATTEMPTS = 5  # how often workers may die before the matching gives up
_COST_STEP = 1_000_000


@dataclass(frozen=True)
class BlockPlan:
    """A plan made of blocks: pairs with whole masses, their cost, and how often it was cut."""

    source: Index
    target: Index
    flow: Floats
    cost: float
    rounds: int


def match_blocks(
    points: Sides,
    units: Units,
    *,
    block_size: int = BLOCK_SIZE,
    random_state: int = 0,
    n_jobs: int | None = None,
    keep: Any = None,
    progress: BlockProgress | None = None,
) -> BlockPlan:
    """Return a plan of two groups, solved in rounds of blocks until a round gains little.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> groups = [Points(generator.normal(size=(400, 2)), np.zeros((400, 0))) for _ in range(2)]
    >>> plan = match_blocks((groups[0], groups[1]), (np.ones(400), np.ones(400)), block_size=100)
    >>> exact = Transport(*groups).solve().cost
    >>> bool(exact <= plan.cost <= 1.05 * exact)
    True
    """
    kept = KeptBlocks(keep, points, units, block_size, random_state)
    number, size, pairs, finished = kept.last_round()
    if pairs is None:
        pairs = random_staircase(units, np.random.default_rng([random_state, 0]))
        size = block_size if len(pairs[0]) <= block_size else min(FIRST_SIZE, block_size)
    cost = _cost(points, *pairs)
    while not finished:
        if number == 0:  # consecutive pairs of a random plan are a random sample
            n_pairs = len(pairs[0])
            cells = np.array_split(np.arange(n_pairs), -(-n_pairs // size))
        else:
            generator = np.random.default_rng([random_state, 1, number])
            cells = near_cells(points, pairs[0], pairs[1], size, generator)
        step = max(1, _PAIRS_PER_TASK // size)
        tasks = [cells[start : start + step] for start in range(0, len(cells), step)]
        pairs = _joined(_solved(points, pairs, tasks, number, n_jobs, kept, progress, cost))
        before, cost = cost, _cost(points, *pairs)
        number += 1
        largest = size == block_size
        little = number > 1 and before - cost <= (LEAST_GAIN if largest else GROWING_GAIN) * before
        finished = (little and largest) or len(cells) == 1 or number == MAX_ROUNDS
        if little:
            size = min(2 * size, block_size)
        kept.write_round(number, size, pairs, finished)
    return BlockPlan(*pairs, cost, number)


def _joined(parts: Sequence[Pairs]) -> Pairs:
    source, target, flow = (np.concatenate(side) for side in zip(*parts, strict=True))
    return source, target, flow


def _solved(
    points: Sides,
    pairs: Pairs,
    tasks: Sequence[Sequence[Index]],
    number: int,
    n_jobs: int | None,
    kept: KeptBlocks,
    progress: BlockProgress | None,
    cost: float,
) -> list[Pairs]:
    """Return the solved blocks in order. Blocks of a worker that dies are solved again."""
    read = {place: kept.read_task(number, place) for place in range(len(tasks))}
    found = {place: pairs for place, pairs in read.items() if pairs is not None}
    n_blocks = sum(len(task) for task in tasks)
    n_done = sum(len(tasks[place]) for place in found)
    for attempt in range(_ATTEMPTS):
        todo = [place for place in range(len(tasks)) if place not in found]
        work = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
            delayed(_solve_task)(place, list(_contents(points, pairs, tasks[place])))
            for place in todo
        )
        try:
            for place, solved in work:
                found[place] = _joined(solved)
                kept.write_task(number, place, found[place])
                n_done += len(tasks[place])
                if progress is not None:
                    progress(number, n_done, n_blocks, cost)
            break
        except BrokenProcessPool as error:
            if attempt + 1 == _ATTEMPTS:
                raise SolverError(
                    f"Workers died in all {_ATTEMPTS} attempts to solve {n_blocks} blocks, of "
                    f"which {n_done} are solved. They may lack memory. Use fewer jobs or smaller "
                    "blocks."
                ) from error
    return [found[place] for place in range(len(tasks))]


Content = tuple[Index, Points, Floats, Index, Points, Floats]


def _contents(points: Sides, pairs: Pairs, cells: Sequence[Index]) -> Iterator[Content]:
    """Yield the data of every block for a worker: rows, points and units of both groups."""
    source, target, flow = pairs
    for cell in cells:
        sides: list[Any] = []
        for rows, group in ((source[cell], points[0]), (target[cell], points[1])):
            members, place = np.unique(rows, return_inverse=True)
            sides += [members, group.take(members), np.bincount(place, flow[cell])]
        yield tuple(sides)


def _solve_task(place: int, contents: list[Content]) -> tuple[int, list[Pairs]]:
    """Return some blocks, solved. This runs in a worker."""
    solved = []
    for rows0, points0, units0, rows1, points1, units1 in contents:
        transport = Transport(points0, points1, units=(units0, units1))
        # If people are nearly identical, the tolerance may not be proven. The plan of the block
        # is optimal even then, or almost.
        plan = transport.solve(tolerance=_TOLERANCE, on_unproven="return")
        flow = np.rint(plan.mass * units0.sum())
        solved.append((rows0[plan.source], rows1[plan.target], flow))
    return place, solved


def _cost(points: Sides, source: Index, target: Index, flow: Floats) -> float:
    total = 0.0
    for start in range(0, len(flow), _COST_STEP):
        part = slice(start, start + _COST_STEP)
        costs = points[0].pair_costs(source[part], target[part], points[1])
        total += float(costs @ flow[part])
    return total / float(flow.sum())


#: Rows of each group whose coupling provides potentials: a fifth of a group, within these limits.
SAMPLE = 8_192, 32_768
#: The most pairs of people that are examined. With more, the bound is that of sets of columns.
PROOF_PAIRS = 200_000_000_000
#: A set of columns is matched exactly up to this many different points in a group.
MOST_ATOMS = 4_096
_BOUND_TOLERANCE = 1e-3
_ROUNDOFF = float(np.finfo(np.float64).eps)
_CELL = 512  # people in a cell, at most
_PROBED = 512  # people on whom potentials are compared before everybody is looked at
_SAMPLES = 4  # at most
_GAIN = 2e-3  # a sample that gains less than this share is the last one
_EXTENDED = 10**10  # pairs of everybody with the sample, at most
_CELLS_AT_ONCE = 8
_TASKS = 64


def lower_bound(
    points: Sides,
    units: Units,
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
    problem, share = Problem(first, second.take(probed)), shares[1][probed]

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
        plan = transport.solve(tolerance=_BOUND_TOLERANCE, on_unproven="return")
        v = column_minima(Problem(*few), transport.row_potentials(plan))
        mean += (row_minima(Problem(first, few[1]), v) - mean) / (number + 1)
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
            problem = Problem(source.points.take(at), people.take(open_))
            least[open_] = np.minimum(least[open_], column_minima(problem, u[at]))
            n_pairs += len(at) * len(open_)
        found.append(least)
    return np.concatenate(found), n_pairs


def column_bound(points: Sides, units: Units, most_atoms: int) -> tuple[float, Floats]:
    """Return the bound of disjoint sets of columns, and its potential at every source row."""
    n_numbers = points[0].numbers.shape[1]
    bounds, potential = [], np.zeros(len(points[0]))
    for columns in _column_sets(points, units, most_atoms):
        numbers = [column for column in columns if column < n_numbers]
        codes = [column - n_numbers for column in columns if column >= n_numbers]
        own = [Points(p.numbers[:, numbers], p.codes[:, codes]) for p in points]
        transport = Transport(own[0], own[1], units=units)
        plan = transport.solve(tolerance=_BOUND_TOLERANCE, on_unproven="return")
        bounds.append(plan.bound)
        potential += transport.row_potentials(plan)
    return math.fsum(bounds) * (1.0 - _ROUNDOFF), potential


def _column_sets(points: Sides, units: Units, most_atoms: int) -> list[list[int]]:
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
