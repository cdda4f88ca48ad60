"""Couplings of millions of people, solved in blocks of pairs that are redrawn every round.

Any part of a plan carries the same mass in both groups. So a plan can be cut into blocks of pairs,
and each block can be solved by itself. The result is a plan again, which costs no more, up to the
tolerance of a block. Every round cuts blocks of near pairs along other directions, so mass can
move through the whole table. Small blocks are quick and bring people roughly together. Larger
blocks do the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from joblib.externals.loky import BrokenProcessPool

from fairmatch.exceptions import SolverError
from fairmatch.matching.cells import near_cells, next_cells, random_staircase
from fairmatch.matching.kept import KeptBlocks, Pairs
from fairmatch.matching.problem import Floats, Index
from fairmatch.matching.solver import Transport
from fairmatch.tables.points import Points

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
    """A plan made of blocks.

    Attributes
    ----------
    source, target : arrays of int
        Rows of both groups.
    flow : array of float
        Mass of every pair, in whole units.
    cost : float
        Mean squared distance.
    rounds : int
        Number of times that the plan was cut into blocks.
    """

    source: Index
    target: Index
    flow: Floats
    cost: float
    rounds: int


def match_blocks(
    points: tuple[Points, Points],
    units: tuple[Floats, Floats],
    *,
    block_size: int = BLOCK_SIZE,
    random_state: int = 0,
    n_jobs: int | None = None,
    keep: Any = None,
    progress: BlockProgress | None = None,
) -> BlockPlan:
    """Return a plan of two groups, solved in rounds of blocks until a round gains little.

    Parameters
    ----------
    points : pair of Points
        Both groups.
    units : pair of arrays of float
        Whole masses of the rows, with the same sum.
    block_size : int, default=2048
        Largest number of pairs in a block. The first blocks have up to 256 pairs, unless one block
        holds all pairs. Blocks double in size when a round gains little.
    random_state : int, default=0
        Seed of the blocks.
    n_jobs : int, optional
        Number of joblib jobs that solve blocks.
    keep : str or Path, optional
        A folder in which solved blocks are kept. The same call continues from them.
    progress : callable, optional
        Called as ``progress(round, blocks done, blocks, cost of the last whole plan)``.

    Returns
    -------
    BlockPlan
        A plan with exact marginals. The same seed gives the same plan for any number of jobs.

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
        if number == 0:
            cells = next_cells(len(pairs[0]), size)
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
    points: tuple[Points, Points],
    pairs: Pairs,
    tasks: Sequence[Sequence[Index]],
    number: int,
    n_jobs: int | None,
    kept: KeptBlocks,
    progress: BlockProgress | None,
    cost: float,
) -> list[Pairs]:
    """Return the solved blocks in order. Blocks of a worker that dies are solved again."""
    found: dict[int, Pairs] = {}
    for place in range(len(tasks)):
        known = kept.read_task(number, place)
        if known is not None:
            found[place] = known
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


def _contents(
    points: tuple[Points, Points], pairs: Pairs, cells: Sequence[Index]
) -> Iterator[Content]:
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


def _cost(points: tuple[Points, Points], source: Index, target: Index, flow: Floats) -> float:
    total = 0.0
    for start in range(0, len(flow), _COST_STEP):
        part = slice(start, start + _COST_STEP)
        costs = points[0].costs_with(points[1], source[part], target[part])
        total += float(costs @ flow[part])
    return total / float(flow.sum())
