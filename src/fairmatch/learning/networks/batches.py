"""Which rows each training step looks at.

Every kind of batch is drawn the same way: an epoch takes as many draws as it has steps times the
batch size, spread evenly over the mass, and shuffles them. So a row is seen in every epoch as
often as its mass says, up to one. Half of a batch of pairs is of each group: the larger group then
has fewer draws than rows, and a random part of it is seen in each epoch.
"""

import signal
from collections import deque
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
from joblib.externals.loky import ProcessPoolExecutor
from numpy.typing import NDArray

from fairmatch.matching.coupling import Coupling, IndexArray
from fairmatch.matching.matchers import OptimalTransportMatcher
from fairmatch.matching.parts import rows_with_mass
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.groups import Groups

# How many matchings are computed ahead of the step that trains on them.
_AHEAD = 8


@dataclass(frozen=True)
class Batch:
    """Rows of one step.

    Attributes
    ----------
    rows : array of int
        Row positions. Where ``n_pairs`` is positive the first ``n_pairs`` are of the source
        group and the rest of the target group, matched in this order.
    weight : array of float32
        Weight of each row in the loss, such that the weighted loss is the mean loss of the table
        on average over the draws.
    n_pairs : int
        0 where rows are drawn without regard to groups.
    """

    rows: IndexArray
    weight: NDArray[np.float32]
    n_pairs: int = 0


class Batches(Protocol):
    """A source of batches."""

    def epoch(self, n_steps: int) -> Iterator[Batch]:
        """Give the batches of one epoch."""


def _draws(
    mass: FloatArray, n_steps: int, size: int, generator: np.random.Generator
) -> NDArray[np.intp]:
    """Draw positions, each as often as its mass says, up to one; shuffled into steps."""
    total = n_steps * size
    ends = np.cumsum(mass)
    at = (np.arange(total) + generator.random()) * (ends[-1] / total)
    drawn = np.minimum(np.searchsorted(ends, at, side="right"), len(mass) - 1)
    return generator.permutation(drawn).reshape(n_steps, size)


class RowBatches:
    """Rows of the whole table, as plain training has them."""

    def __init__(self, mass: FloatArray, batch_size: int, generator: np.random.Generator) -> None:
        self.mass, self.generator = mass, generator
        self.size = min(batch_size, len(mass))
        self.weight = np.full(self.size, 1.0 / self.size, dtype=np.float32)

    def epoch(self, n_steps: int) -> Iterator[Batch]:
        """Give the batches of one epoch."""
        for rows in _draws(self.mass, n_steps, self.size, self.generator):
            yield Batch(rows, self.weight)


class PairBatches:
    """As many rows of one group as of the other, here unrelated; a batch from each.

    The loss weighs each group's rows by the group's share of the table, so that it stays an
    unbiased estimate of the mean loss while the very same rows serve the comparison of the
    groups. Rows of a group smaller than a batch come several times in it.
    """

    def __init__(
        self,
        groups: Groups,
        mass: FloatArray,
        batch_size: int,
        generator: np.random.Generator,
    ) -> None:
        self.generator = generator
        self.rows = rows_with_mass(groups, mass)
        self.mass = mass[self.rows[0]], mass[self.rows[1]]
        self.size = max(1, min(batch_size, sum(len(rows) for rows in self.rows) // 2))
        share = np.array([m.sum() for m in self.mass]) / sum(m.sum() for m in self.mass)
        self.row_weight = (share / self.size)[groups.codes].astype(np.float32)

    def draw(self, n_steps: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Draw the rows of an epoch: source and target rows of shape (n_steps, size)."""
        source, target = (
            rows[_draws(mass, n_steps, self.size, self.generator)]
            for rows, mass in zip(self.rows, self.mass, strict=True)
        )
        return source, target

    def epoch(self, n_steps: int) -> Iterator[Batch]:
        """Give the batches of one epoch."""
        for source, target in zip(*self.draw(n_steps), strict=True):
            yield self._batch(source, target)

    def _batch(self, source: IndexArray, target: IndexArray) -> Batch:
        rows = np.concatenate([source, target])
        return Batch(rows, self.row_weight[rows], self.size)


class CoupledBatches(PairBatches):
    """Pairs of a ready coupling, drawn by their mass.

    Where the coupling's marginals are not the rows' own, as after matching in mini-batches, the
    loss weighs the rows by what they lack. A row that is in no pair is not learned from.
    """

    def __init__(
        self,
        coupling: Coupling,
        groups: Groups,
        mass: FloatArray,
        batch_size: int,
        generator: np.random.Generator,
    ) -> None:
        super().__init__(groups, mass, batch_size, generator)
        self.coupling = coupling if coupling.groups == groups.labels else coupling.inverse
        for rows, wanted, marginal in zip(
            self.rows, self.mass, self.coupling.marginals(), strict=True
        ):
            drawn = marginal[rows]
            lack = np.divide(
                wanted / wanted.sum(), drawn, where=drawn > 0.0, out=np.zeros_like(drawn)
            )
            self.row_weight[rows] *= lack.astype(np.float32)

    def draw(self, n_steps: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Draw the pairs of an epoch."""
        pairs = _draws(self.coupling.mass, n_steps, self.size, self.generator)
        return self.coupling.source_index[pairs], self.coupling.target_index[pairs]


class MatchedBatches(PairBatches):
    """Rows matched afresh in every step, as in the paper; computed ahead on another core."""

    def __init__(
        self,
        matcher: OptimalTransportMatcher,
        points: FloatArray,
        groups: Groups,
        mass: FloatArray,
        batch_size: int,
        generator: np.random.Generator,
    ) -> None:
        super().__init__(groups, mass, batch_size, generator)
        self.matcher, self.points = matcher, points

    def epoch(self, n_steps: int) -> Iterator[Batch]:
        """Give the batches of one epoch."""
        waiting: deque[tuple[IndexArray, IndexArray, Future[IndexArray]]] = deque()
        drawn = zip(*self.draw(n_steps), strict=True)
        try:
            for source, target in drawn:
                points = self.points[source], self.points[target]
                waiting.append((source, target, self._submit(*points)))
                if len(waiting) > _AHEAD:
                    yield self._matched(*waiting.popleft())
            while waiting:
                yield self._matched(*waiting.popleft())
        finally:
            for *_, future in waiting:
                future.cancel()

    def _submit(self, *points: FloatArray) -> Future[IndexArray]:
        future: Future[IndexArray]
        try:
            future = _other_core().submit(self.matcher.pair, *points)
        except BrokenExecutor:  # its process was ended from outside
            _other_core.cache_clear()
            future = _other_core().submit(self.matcher.pair, *points)
        return future

    def _matched(self, source: IndexArray, target: IndexArray, order: Future[IndexArray]) -> Batch:
        try:
            found = order.result()
        except BrokenExecutor:
            found = self._submit(self.points[source], self.points[target]).result()
        return self._batch(source, target[found])


@cache
def _other_core() -> ProcessPoolExecutor:
    """Start the process that matches ahead; it ends by itself when it has nothing to do.

    It is a process because POT's solver lets no other thread of this one run, and one of our own
    because joblib, which shares its reusable one with nobody, may be at work around us.
    """
    return ProcessPoolExecutor(
        max_workers=1,
        timeout=60,
        env={"OPENBLAS_NUM_THREADS": "1"},
        initializer=_leave_interrupts_to_others,
    )


def _leave_interrupts_to_others() -> None:
    """Ignore what a terminal sends to all processes: the one that trains hears it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
