"""Which rows each training step looks at.

Every kind of batch is drawn the same way: an epoch takes as many draws as it has steps times the
batch size, spread evenly over the mass, and shuffles them. So a row is seen in every epoch as
often as its mass says, up to one. Half of a batch of pairs is of each group: the larger group then
has fewer draws than rows, and a random part of it is seen in each epoch.

Rows of the loss and pairs of the penalty are apart from each other. Where everybody is in a pair,
the same rows serve both.
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
# Several parts share the pairs of a batch, but none has fewer than this, unless the batch has.
_LEAST_PAIRS = 256


@dataclass(frozen=True)
class Batch:
    """Rows of one step: those that the loss sees, with weights, and pairs that are compared.

    Attributes
    ----------
    rows : array of int
        Row positions. The first ``n_pairs`` are the one end of the pairs and the next ``n_pairs``
        the other, in the same order; further rows are in no pair.
    weight : array of float32
        Weight of each row in the loss, 0 where it is only compared, such that the weighted loss
        is the mean loss of the table on average over the draws.
    n_pairs : int
        0 where nobody is compared.
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
        """Return the batches of one epoch."""
        for rows in _draws(self.mass, n_steps, self.size, self.generator):
            yield Batch(rows, self.weight)


class PairBatches:
    """As many rows of one group as of the other, for every part; here they are unrelated.

    Where there is one part and every row is in it, the very same rows serve the loss and the
    comparison: the loss weighs each group's rows by the group's share of the table, so that it
    stays an unbiased estimate of the mean loss. Otherwise rows of their own serve the loss. Rows
    of a group smaller than a batch come several times in it.

    Parameters
    ----------
    parts : sequence of PartRows
        The groups that are compared.
    mass : array of shape (n_rows,)
        Weight of every row.
    batch_size : int
        Rows of each group; several parts share them, down to 256 for each.
    generator : numpy.random.Generator
        Draws the rows.

    Attributes
    ----------
    part_size : int
        Pairs of each part in a batch; the pairs of a part are next to each other.
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
        # Rows of the loss are drawn by a generator of their own: they are no part of the pairs.
        self.others = (
            None
            if self.shared is not None
            else RowBatches(mass, batch_size, np.random.default_rng(generator.integers(2**63)))
        )

    def _sharing(self) -> NDArray[np.float32] | None:
        """Return the loss's weights of rows that serve the comparison too, where they can."""
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
    """Pairs of a ready coupling, drawn by their mass.

    Where the coupling is of two groups and every row is in a pair, its pairs serve the loss too;
    where its marginals are not the rows' own, as after matching in mini-batches, the loss weighs
    the rows by what they lack. Otherwise the loss sees rows of its own, and so everybody.

    Parameters
    ----------
    coupling : Coupling
        Who is matched with whom.
    groups : Groups
        Group of every row.
    mass : array of shape (n_rows,)
        Weight of every row.
    batch_size : int
        Pairs in a batch.
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
    """Turn a coupling of two groups such that the group of the smaller code comes first."""
    if len(coupling.parts) > 1:
        return coupling
    first, second = (groups.code_of(label) for label in coupling.groups)
    return coupling if first < second else coupling.inverse


class MatchedBatches(PairBatches):
    """Rows matched afresh in every step, as in the paper; computed ahead on another core.

    Parameters
    ----------
    matcher : OptimalTransportMatcher
        Matches the rows of a batch, part by part.
    points : Points
        What rows are matched on.
    parts, mass, batch_size, generator
        Those of `PairBatches`.
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
        except BrokenExecutor:  # its process was ended from outside
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
