"""The possible cuts of groups' scores, and the best cuts with similar rates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fairmatch.exceptions import GroupError, LabelError
from fairmatch.tables.arrays import BoolArray, FloatArray
from fairmatch.tables.criterion import Criterion

# Rates are quotients of sums of weights, so two rates that differ by less than this are equal.
_ROUNDING = 1e-12
# With several rates and more than two groups: the number of steps in the search for the position
# of the anchor's rates within the bound.
_STEPS = 8

Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class GroupCuts:
    """All cuts of the scores of one group, from accepting nobody to accepting everybody.

    Attributes
    ----------
    scores : array of shape (n_cuts - 1,)
        The distinct scores, decreasing. Cut k accepts the first k of them.
    gain : array of shape (n_cuts,)
        Weight of right decisions, minus the weight of right decisions if nobody is accepted.
    accepted : array of shape (n_cuts,)
        Share of the group that each cut accepts.
    rates : array of shape (n_rates, n_cuts)
        The rates that are compared between groups; each of them increases with the cut.
    """

    scores: FloatArray
    gain: FloatArray
    accepted: FloatArray
    rates: FloatArray

    @classmethod
    def of(
        cls,
        scores: FloatArray,
        positive: BoolArray,
        mass: FloatArray,
        criterion: Criterion,
        name: Any,
    ) -> Self:
        """Return the cuts of a group's scores.

        Parameters
        ----------
        scores, positive, mass : arrays of shape (n_rows,)
            Score, label and weight of the group's rows.
        criterion : Criterion
            The criterion, which names the rates that are compared.
        name : label
            Label of the group, for errors.
        """
        order = np.argsort(-scores, kind="stable")
        ordered = scores[order]
        last = np.flatnonzero(np.append(ordered[1:] < ordered[:-1], True))
        for_all = np.append(0.0, np.cumsum(mass[order])[last])
        for_positive = np.append(0.0, np.cumsum((mass * positive)[order])[last])
        if not for_all[-1] > 0.0:
            raise GroupError(
                f"The weights of group {name!r} sum to zero, and a group needs positive weight. "
                "Leave the group out, or correct sample_weight."
            )
        counts = {None: for_all, True: for_positive, False: for_all - for_positive}
        rates = []
        for label in criterion.labels:
            count = np.maximum.accumulate(counts[label])
            if not count[-1] > 0.0:
                raise LabelError(
                    f"Group {name!r} has no rows with a {'positive' if label else 'negative'} "
                    f"label, so criterion={criterion.name!r} is undefined for it. Pool the group "
                    "with another, or use criterion='demographic_parity'."
                )
            rates.append(count / count[-1])
        gain = 2.0 * for_positive - for_all
        return cls(ordered[last], gain, for_all / for_all[-1], np.array(rates))

    def __len__(self) -> int:
        return len(self.gain)

    def inner(self) -> Self:
        """Return the cuts without the first and the last, which treat everybody alike."""
        kept = slice(1, -1)
        return replace(
            self, gain=self.gain[kept], accepted=self.accepted[kept], rates=self.rates[:, kept]
        )

    def threshold(self, cut: int) -> float:
        """Return the threshold of a cut, half-way between its least score and the next below."""
        if cut == 0:
            return float("inf")
        if cut == len(self.scores):
            return float("-inf")
        above, below = float(self.scores[cut - 1]), float(self.scores[cut])
        middle = below + (above - below) / 2.0
        return middle if middle > below else above

    def within(self, low: FloatArray, width: float) -> tuple[Index, Index]:
        """Return, for each window, the first cut inside it and the first cut beyond it.

        Parameters
        ----------
        low : array of shape (n_rates, n_windows)
            Start of each window. A cut is inside a window if all its rates are.
        width : float
            Width of all windows.
        """
        starts, ends = [], []
        for rate, start in zip(self.rates, low, strict=True):
            starts.append(np.searchsorted(rate, start - _ROUNDING, side="left"))
            ends.append(np.searchsorted(rate, start + width + _ROUNDING, side="right"))
        return np.max(starts, axis=0), np.min(ends, axis=0)


def best_cuts(groups: Sequence[GroupCuts], max_gap: float) -> list[int] | None:
    """Return one cut per group, the most accurate ones whose rates differ by at most a bound.

    Parameters
    ----------
    groups : sequence of GroupCuts
        The cuts of every group.
    max_gap : float
        Largest allowed difference of a rate between two groups.

    Returns
    -------
    list of int, or None
        One cut per group; None if no cuts are within the bound.
    """
    if any(len(group) == 0 for group in groups):
        return None
    if len(groups) == 2:
        return _best_two(groups[0], groups[1], max_gap)
    best, found = -np.inf, None
    for low in _windows(groups, max_gap):
        spans = [group.within(low, max_gap) for group in groups]
        total = np.zeros(low.shape[1])
        for group, (start, end) in zip(groups, spans, strict=True):
            total += range_maximum(group.gain, start, end)
        place = int(np.argmax(total))
        if total[place] > best:
            best, found = float(total[place]), [(int(s[place]), int(e[place])) for s, e in spans]
    if found is None:
        return None
    return [
        start + int(np.argmax(group.gain[start:end]))
        for group, (start, end) in zip(groups, found, strict=True)
    ]


def _best_two(first: GroupCuts, second: GroupCuts, max_gap: float) -> list[int] | None:
    """Return the best cuts of two groups: the best pair of a cut and a cut with near rates."""
    start, end = second.within(first.rates - max_gap, 2.0 * max_gap)
    total = first.gain + range_maximum(second.gain, start, end)
    place = int(np.argmax(total))
    if total[place] == -np.inf:
        return None
    span = slice(start[place], end[place])
    return [place, int(start[place]) + int(np.argmax(second.gain[span]))]


def _windows(groups: Sequence[GroupCuts], width: float) -> Iterator[FloatArray]:
    """Yield the starts of windows, one of which holds the rates of a best choice.

    With one rate, the least rate over the groups is the rate of some cut, so a window starts at the
    rate of every cut. With several rates, the anchor is the group with the fewest cuts. Its rates
    may lie anywhere in a window, so windows start below them by several parts of the width.
    """
    if len(groups[0].rates) == 1:
        yield np.unique(np.concatenate([group.rates[0] for group in groups]))[None, :]
        return
    anchor = min(groups, key=len).rates
    steps = np.linspace(0.0, width, _STEPS + 1)
    for first in steps:
        for second in steps:
            yield anchor - np.array([[first], [second]])


def range_maximum(values: FloatArray, start: Index, end: Index) -> FloatArray:
    """Return the greatest value between each start and end, or minus infinity for an empty range.

    Parameters
    ----------
    values : array of shape (n_values,)
        The values.
    start, end : arrays of int, shape (n_ranges,)
        First position of each range, and the position after its last.

    Notes
    -----
    Two overlapping blocks, whose size is a power of two, cover each range. The greatest value of a
    block is the greater one of its two halves. The whole search takes O(n log n) steps.

    Examples
    --------
    >>> import numpy as np
    >>> range_maximum(np.array([3.0, 1.0, 2.0]), np.array([0, 1, 2]), np.array([3, 3, 2])).tolist()
    [3.0, 2.0, -inf]
    """
    found = np.full(len(start), -np.inf)
    length = end - start
    block, size = values, 1
    while True:
        now = (length >= size) & (length < 2 * size)
        found[now] = np.maximum(block[start[now]], block[end[now] - size])
        if 2 * size > len(values):
            return found
        block = np.maximum(block[:-size], block[size:])
        size *= 2
