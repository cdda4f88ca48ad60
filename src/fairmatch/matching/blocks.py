"""Couplings of millions of people, solved in blocks of pairs."""

from __future__ import annotations

import hashlib
import json
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
from fairmatch.matching.network import Floats, Index, staircase
from fairmatch.matching.solver import Transport
from fairmatch.people.encoding import Points
from fairmatch.people.files import whole_file, write_whole

_SAMPLE = 256  # pairs whose spread a direction follows


def random_staircase(
    units: tuple[Floats, Floats], generator: np.random.Generator
) -> tuple[Index, Index, Floats]:
    """Return the pairs of a random plan: both groups are shuffled and matched in that order.

    Masses are whole numbers with the same sum. Consecutive pairs are a random sample of both
    groups.
    """
    orders = [generator.permutation(np.flatnonzero(side > 0)) for side in units]
    return staircase(*units, *orders)


def near_cells(
    points: tuple[Points, Points],
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
    points: tuple[Points, Points], source: Index, target: Index, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return where pairs lie along a random direction.

    The direction is a random combination of sampled pairs, minus their mean. For categories it
    needs one number per level, and no one-hot columns.
    """
    drawn = generator.integers(len(source), size=_SAMPLE)
    factors = generator.normal(size=_SAMPLE)
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
    """A folder of solved blocks, or none. It is an error if it holds those of another matching."""

    def __init__(
        self,
        folder: Any,
        points: tuple[Points, Points],
        units: tuple[Floats, Floats],
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
        costs = points[0].pair_costs(source[part], target[part], points[1])
        total += float(costs @ flow[part])
    return total / float(flow.sum())
