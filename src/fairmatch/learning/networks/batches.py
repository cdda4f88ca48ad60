"""The rows of each training step.

All kinds of batches are drawn in the same way. The number of draws in an epoch is its number of
steps times the batch size. The draws are spread evenly over the mass of the rows and then shuffled.
So every epoch draws a row in proportion to its mass, rounded up or down. A batch of pairs has as
many rows of one group as of the other, so an epoch sees only a random part of the larger group.

The loss and the penalty have rows of their own. If everybody is in a pair, the same rows serve
both.
"""

import signal
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from typing import Protocol

import numpy as np
from joblib.externals.loky import ProcessPoolExecutor
from numpy.typing import NDArray

from fairmatch.matching.coupling import Coupling, IndexArray
from fairmatch.matching.matchers import OptimalTransportMatcher
from fairmatch.matching.parts import PartRows, rows_with_mass
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.groups import Groups
from fairmatch.tables.points import Points

# How many matchings are computed ahead of the step that trains on them.
_AHEAD = 8
# Several parts share the pairs of a batch. Each has at least this many, or a whole batch if that
# is smaller.
_LEAST_PAIRS = 256


@dataclass(frozen=True)
class Batch:
    """The rows of one step: rows for the loss, with weights, and pairs for the comparison.

    Attributes
    ----------
    rows : array of int
        Row positions. The first ``n_pairs`` are the first members of the pairs, and the next
        ``n_pairs`` are the second members, in the same order. Further rows are in no pair.
    weight : array of float32
        Weight of each row in the loss; 0 for rows that are only compared. The expected value of
        the weighted loss is the mean loss of the table.
    n_pairs : int
        Number of pairs; 0 if nobody is compared.
    """

    rows: IndexArray
    weight: NDArray[np.float32]
    n_pairs: int = 0


class Batches(Protocol):
    """A source of batches."""

    def epoch(self, n_steps: int) -> Iterator[Batch]:
        """Return the batches of one epoch."""


def _draws(
    mass: FloatArray, n_steps: int, size: int, generator: np.random.Generator
) -> NDArray[np.intp]:
    """Draw positions in proportion to their mass, and shuffle them into steps."""
    total = n_steps * size
    ends = np.cumsum(mass)
    at = (np.arange(total) + generator.random()) * (ends[-1] / total)
    drawn = np.minimum(np.searchsorted(ends, at, side="right"), len(mass) - 1)
    return generator.permutation(drawn).reshape(n_steps, size)


class RowBatches:
    """Batches of rows from the whole table, for training without a penalty."""

    def __init__(self, mass: FloatArray, batch_size: int, generator: np.random.Generator) -> None:
        self.mass, self.generator = mass, generator
        self.size = min(batch_size, len(mass))
        self.weight = np.full(self.size, 1.0 / self.size, dtype=np.float32)

    def epoch(self, n_steps: int) -> Iterator[Batch]:
        """Return the batches of one epoch."""
        for rows in _draws(self.mass, n_steps, self.size, self.generator):
            yield Batch(rows, self.weight)


class PairBatches:
    """Batches with as many rows of one group as of the other, for every part.

    The two rows of a pair are drawn independently. If there is one part and every row is in it,
    the same rows serve the loss and the comparison. The loss then weighs the rows of each group by
    the group's share of the table, and stays an unbiased estimate of the mean loss. Otherwise the
    loss has rows of its own. A batch repeats rows of a group that is smaller than the batch.

    Parameters
    ----------
    parts : sequence of PartRows
        The pairs of groups that are compared.
    mass : array of shape (n_rows,)
        Weight of every row.
    batch_size : int
        Rows of each group. Several parts share them, with at least 256 for each.
    generator : numpy.random.Generator
        Draws the rows.

    Attributes
    ----------
    part_size : int
        Pairs of each part in a batch. The pairs of a part follow each other.
    """

    def __init__(
        self,
        parts: Sequence[PartRows],
        mass: FloatArray,
        batch_size: int,
        generator: np.random.Generator,
    ) -> None:
        self.parts, self.mass, self.generator = parts, mass, generator
        n_rows = int((mass > 0.0).sum())
        self.size = max(1, min(batch_size, n_rows // 2))
        self.part_size = max(-(-self.size // max(len(parts), 1)), min(self.size, _LEAST_PAIRS))
        self.shared = self._sharing()
        # A separate generator draws the rows of the loss, which are independent of the pairs.
        self.others = (
            None
            if self.shared is not None
            else RowBatches(mass, batch_size, np.random.default_rng(generator.integers(2**63)))
        )

    def _sharing(self) -> NDArray[np.float32] | None:
        """Return the weights of rows in the loss, or None if the pairs cannot serve the loss."""
        if len(self.parts) > 1 or not self._covers(self.parts[0].in_order):
            return None
        sides = self.parts[0].in_order
        masses = np.array([self.mass[rows].sum() for rows in sides])
        weight = np.zeros(len(self.mass), dtype=np.float32)
        for rows, share in zip(sides, masses / masses.sum(), strict=True):
            weight[rows] = np.float32(share / self.size)
        return weight

    def _covers(self, sides: tuple[IndexArray, IndexArray]) -> bool:
        return sum(map(len, sides)) == int((self.mass > 0.0).sum())

    def draw(self, n_steps: int) -> list[tuple[IndexArray, IndexArray]]:
        """Draw the rows of an epoch: for every part, two arrays of shape (n_steps, part_size)."""
        return [
            tuple(  # type: ignore[misc]
                rows[_draws(self.mass[rows], n_steps, self.part_size, self.generator)]
                for rows in part.in_order
            )
            for part in self.parts
        ]

    def epoch(self, n_steps: int) -> Iterator[Batch]:
        """Return the batches of one epoch."""
        drawn, others = self.draw(n_steps), self._other_rows(n_steps)
        for step in range(n_steps):
            yield self._batch([(a[step], b[step]) for a, b in drawn], next(others))

    def _other_rows(self, n_steps: int) -> Iterator[Batch | None]:
        return repeat(None) if self.others is None else self.others.epoch(n_steps)

    def _batch(self, pairs: list[tuple[IndexArray, IndexArray]], others: Batch | None) -> Batch:
        rows = np.concatenate([side[k] for k in (0, 1) for side in pairs])
        n_pairs = len(rows) // 2
        if others is None:
            assert self.shared is not None
            return Batch(rows, self.shared[rows], n_pairs)
        unseen = np.zeros(len(rows), dtype=np.float32)
        return Batch(
            np.concatenate([rows, others.rows]), np.concatenate([unseen, others.weight]), n_pairs
        )


class CoupledBatches(PairBatches):
    """Batches of pairs from a ready coupling, drawn by their mass.

    If the coupling has two groups and every row is in a pair, its pairs also serve the loss. The
    marginals of the coupling may differ from the rows' own, as after matching in mini-batches; the
    weights in the loss then correct the difference. Otherwise the loss has rows of its own, and so
    it sees everybody.

    Parameters
    ----------
    coupling : Coupling
        Who is matched with whom.
    groups : Groups
        Group of every row.
    mass : array of shape (n_rows,)
        Weight of every row.
    batch_size : int
        Greatest number of pairs in a batch.
    generator : numpy.random.Generator
        Draws the pairs.
    """

    def __init__(
        self,
        coupling: Coupling,
        groups: Groups,
        mass: FloatArray,
        batch_size: int,
        generator: np.random.Generator,
    ) -> None:
        self.coupling = _in_order(coupling, groups)
        weights = None if (mass > 0.0).all() else mass
        self._sides = rows_with_mass(groups, weights)
        super().__init__((), mass, batch_size, generator)
        self.part_size = min(self.size, len(coupling))

    def _sharing(self) -> NDArray[np.float32] | None:
        if len(self._sides) > 2 or len(self.coupling.parts) > 1:
            return None
        weight = np.zeros(len(self.mass), dtype=np.float32)
        total = self.mass.sum()
        for rows, marginal in zip(self._sides, self.coupling.marginals(), strict=True):
            if not (marginal[rows] > 0.0).all():
                return None
            wanted = self.mass[rows]
            weight[rows] = np.float32(wanted.sum() / total / self.size)
            weight[rows] *= (wanted / wanted.sum() / marginal[rows]).astype(np.float32)
        return weight

    def draw(self, n_steps: int) -> list[tuple[IndexArray, IndexArray]]:
        """Draw the pairs of an epoch."""
        pairs = _draws(self.coupling.mass, n_steps, self.part_size, self.generator)
        return [(self.coupling.source_index[pairs], self.coupling.target_index[pairs])]


def _in_order(coupling: Coupling, groups: Groups) -> Coupling:
    """Return a coupling of two groups with the smaller group code first."""
    if len(coupling.parts) > 1:
        return coupling
    first, second = (groups.code_of(label) for label in coupling.groups)
    return coupling if first < second else coupling.inverse


class MatchedBatches(PairBatches):
    """Batches of rows that are matched anew in every step, as in the paper.

    Another process matches the rows ahead of the training.

    Parameters
    ----------
    matcher : OptimalTransportMatcher
        Matches the rows of a batch, part by part.
    points : Points
        What rows are matched on.
    parts : sequence of PartRows
        The pairs of groups that are compared.
    mass : array of shape (n_rows,)
        Weight of every row.
    batch_size : int
        Rows of each group. Several parts share them, with at least 256 for each.
    generator : numpy.random.Generator
        Draws the rows.
    """

    def __init__(
        self,
        matcher: OptimalTransportMatcher,
        points: Points,
        parts: Sequence[PartRows],
        mass: FloatArray,
        batch_size: int,
        generator: np.random.Generator,
    ) -> None:
        super().__init__(parts, mass, batch_size, generator)
        self.matcher, self.points = matcher, points

    def epoch(self, n_steps: int) -> Iterator[Batch]:
        """Return the batches of one epoch."""
        waiting: deque[list[_Awaited]] = deque()
        drawn, others = self.draw(n_steps), self._other_rows(n_steps)
        try:
            for step in range(n_steps):
                pairs = [(first[step], second[step]) for first, second in drawn]
                waiting.append([(a, b, self._submit(a, b)) for a, b in pairs])
                if len(waiting) > _AHEAD:
                    yield self._matched(waiting.popleft(), next(others))
            while waiting:
                yield self._matched(waiting.popleft(), next(others))
        finally:
            for awaited in waiting:
                for *_, future in awaited:
                    future.cancel()

    def _submit(self, first: IndexArray, second: IndexArray) -> "Future[IndexArray]":
        points = self.points[first], self.points[second]
        future: Future[IndexArray]
        try:
            future = _other_core().submit(self.matcher.pair, *points)
        except BrokenExecutor:  # something outside ended the process
            _other_core.cache_clear()
            future = _other_core().submit(self.matcher.pair, *points)
        return future

    def _matched(self, awaited: "list[_Awaited]", others: Batch | None) -> Batch:
        pairs = []
        for first, second, order in awaited:
            try:
                found = order.result()
            except BrokenExecutor:
                found = self._submit(first, second).result()
            pairs.append((first, second[found]))
        return self._batch(pairs, others)


_Awaited = tuple[IndexArray, IndexArray, "Future[IndexArray]"]


@cache
def _other_core() -> ProcessPoolExecutor:
    """Start the process that matches ahead; it ends by itself after a minute without work.

    This is a process, because the solver of POT (Python Optimal Transport) blocks all other
    threads. It is separate from joblib's reusable pool, because joblib may be using that pool to
    run this very training.
    """
    return ProcessPoolExecutor(
        max_workers=1,
        timeout=60,
        env={"OPENBLAS_NUM_THREADS": "1"},
        initializer=_leave_interrupts_to_others,
    )


def _leave_interrupts_to_others() -> None:
    """Ignore Ctrl-C, which a terminal sends to all processes; the training process handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
