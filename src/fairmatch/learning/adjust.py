"""Adjustments of the scores of any model: alignment, and thresholds or offsets by group."""

import json
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairmatch.exceptions import (
    ConstantModelWarning,
    FairmatchError,
    GapNotReachedWarning,
    InputError,
    LabelError,
    ModelFileError,
    notify,
)
from fairmatch.learning.offsets import ClassOffsets, fit_offsets
from fairmatch.learning.reading import (
    Reader,
    SmallGroups,
    joined_attributes,
    settle_small_groups,
    table_width,
    tell_unknown,
)
from fairmatch.learning.saving import plain_label, read_json, refuse_half_characters
from fairmatch.learning.vectors import VectorAlignment
from fairmatch.measures.distributions import ScoredPeople, Settings
from fairmatch.measures.registry import MEASURES, Measure
from fairmatch.people.checks import (
    BoolArray,
    FloatArray,
    check_length,
    check_number,
    check_weights,
    read_labels,
    read_numbers,
    read_scores,
    refuse_other_order,
)
from fairmatch.people.files import write_whole
from fairmatch.people.groups import (
    CRITERIA,
    OTHER,
    Criterion,
    Groups,
    read_criterion,
    read_known,
)
from fairmatch.people.outcome import (
    NUMBER,
    class_outcome,
    is_vectors,
    read_class_scores,
    read_vectors,
)
from fairmatch.people.people import IndexArray, Labels, People
from fairmatch.people.strata import Codes, Given, given_columns, pool_strata
from fairmatch.people.weights import read_row_weights

# Resolution of a quantile curve: a rank is known to one part in this many, and exactly in groups
# with fewer different scores. With few knots, the search among them stays in fast memory.
RESOLUTION = 10_000
SCALES = ("probability", "rank", "real")
DECISIONS = ("align", "threshold")


@dataclass(frozen=True, eq=False, repr=False)
class Curve:
    """A continuous, increasing function, linear between knots.

    Below the first knot and above the last one its slope is 1. So people with scores outside the
    range of the fit keep their order.

    Examples
    --------
    >>> import numpy as np
    >>> curve = Curve(np.array([0.2, 0.4]), np.array([0.0, 1.0]))
    >>> curve(np.array([0.1, 0.25, 0.5])).round(2).tolist()
    [-0.1, 0.25, 1.1]
    """

    knots: FloatArray  #: Points at which the function is known, strictly increasing.
    values: FloatArray  #: Values of the function at the knots, never decreasing.

    def __post_init__(self) -> None:
        if self.knots.ndim != 1 or not len(self.knots) or self.knots.shape != self.values.shape:
            raise ValueError("a curve needs as many values as knots, and at least one")
        if not (np.isfinite(self.knots).all() and np.isfinite(self.values).all()):
            raise ValueError("a curve needs finite knots and values")
        if (np.diff(self.knots) <= 0.0).any() or (np.diff(self.values) < 0.0).any():
            raise ValueError("a curve must increase")

    def __repr__(self) -> str:
        return f"Curve({len(self.knots)} knots)"

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the values of the function at the points x."""
        found = np.interp(x, self.knots, self.values)
        # Adding nothing keeps every bit between the knots: equal values stay equal.
        found += x - np.clip(x, self.knots[0], self.knots[-1])
        return found


@dataclass(frozen=True, eq=False)
class Distribution:
    """The scores of one group, sorted, with their ranks."""

    #: Distinct scores, increasing. If there are more than `RESOLUTION`, about that many are kept.
    scores: FloatArray
    middle: FloatArray  #: Share of the group below each score, plus half of the share at it.
    upto: FloatArray  #: Share of the group at or below each score.
    tied: float  #: Share of the group that has the same score as somebody else.

    @classmethod
    def of(cls, scores: FloatArray, weights: FloatArray | None) -> Self:
        """Return the distribution of scores, with weighted rows."""
        order = None if weights is None else np.argsort(scores, kind="stable")
        ordered = np.sort(scores) if order is None else scores[order]
        first = np.flatnonzero(np.append(True, ordered[1:] > ordered[:-1]))
        counts = np.diff(np.append(first, len(ordered)))
        if weights is None:
            shares, upto = counts / len(ordered), np.cumsum(counts) / len(ordered)
        else:
            shares = np.add.reduceat(weights[order], first) / weights.sum()
            upto = np.cumsum(shares)
        kept = _kept(upto)
        middle = upto[kept] - shares[kept] / 2.0
        return cls(ordered[first[kept]], middle, upto[kept], float(shares[counts > 1].sum()))


def _kept(upto: FloatArray) -> IndexArray:
    """Return the positions of the scores to keep, which are at equally spaced ranks.

    A score that many people share covers several of these ranks. Its two neighbours are kept as
    well, so the jump of the rank at this score stays sharp.
    """
    if len(upto) <= RESOLUTION:
        return np.arange(len(upto))
    grid = np.searchsorted(upto, np.linspace(0.0, 1.0, RESOLUTION + 1))
    shared = grid[1:][grid[1:] == grid[:-1]]
    kept = np.concatenate([[0, len(upto) - 1], grid, shared - 1, shared + 1])
    return np.unique(np.clip(kept, 0, len(upto) - 1))


@dataclass(frozen=True, eq=False)
class Alignment:
    r"""One increasing curve per group, which moves its scores to a common distribution.

    Notes
    -----
    The common distribution is the Wasserstein barycentre of all groups. Its quantile function is
    :math:`\sum_s p_s Q_s`, with :math:`Q_s` the quantile function of group s and :math:`p_s` its
    share. Full alignment gives the best score under squared loss among all scores with the same
    distribution in every group. With a smaller strength the gap in Wasserstein distance falls in
    proportion to the strength (Chzhen et al., 2020; Jiang et al., 2020).
    """

    labels: tuple[Any, ...]  #: Labels of the groups, sorted.
    curves: tuple[Curve, ...]  #: For every group, the curve from a score to the aligned score.
    #: Share of every group among the rows that were compared: its weight in the barycentre.
    shares: FloatArray
    scale: str  #: What the scores are: "probability", "rank" or "real".
    ranks: Curve | None  #: With scale "rank", the curve from a score to its rank among all rows.
    tied: FloatArray  #: Share of every group that has the same score as somebody else in the group.
    #: The gap that full alignment leaves on the rows of the fit: the largest difference between two
    #: groups' shares above a threshold, over all thresholds. It comes from ties and from unequal
    #: group sizes, because people with the same score and group get the same aligned score.
    remaining_gap: float
    #: Names of the attributes whose combinations are the groups, if there are several.
    attributes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.curves) or self.scale not in SCALES:
            raise ValueError("every group needs a curve, and scores need a scale")
        if (self.ranks is None) == (self.scale == "rank"):
            raise ValueError("ranks and scale contradict each other")

    @classmethod
    def fit(cls, people: People, scores: FloatArray, criterion: Criterion, scale: str) -> Self:
        """Return the alignment of the scores of people, all of whose groups are compared."""
        weights, ranks = people.weights, None
        if scale == "rank":
            everybody = Distribution.of(scores, weights)
            ranks = Curve(everybody.scores, everybody.middle)
        rows: dict[int, IndexArray] = {}
        for one in people.comparisons(criterion):
            rows |= {one.source: one.source_rows, one.target: one.target_rows}
        members = [rows[code] for code in range(people.groups.n_groups)]
        found = [
            Distribution.of(scores[rows], None if weights is None else weights[rows])
            for rows in members
        ]
        sizes = np.array([people.mass[rows].sum() for rows in members])
        shares = sizes / sizes.sum()
        curves = _settled([_to_barycentre(one, found, shares, ranks) for one in found])
        return cls(
            people.groups.labels,
            curves,
            shares,
            scale,
            ranks,
            np.array([one.tied for one in found]),
            _remaining_gap(found, curves),
            people.groups.attributes,
        )

    def start(self, scores: FloatArray) -> FloatArray:
        """Return the scores before alignment: as they are, or as ranks with scale "rank"."""
        return scores if self.ranks is None else np.clip(self.ranks(scores), 0.0, 1.0)

    def move(self, scores: FloatArray, codes: NDArray[Any], strength: float = 1.0) -> FloatArray:
        """Return aligned scores of people with these codes; with code -1 a score stays."""
        start = self.start(scores)
        if strength == 0.0:
            return start
        aligned = start.copy()
        for code, curve in enumerate(self.curves):
            rows = codes == code
            aligned[rows] = curve(scores[rows])
        if self.scale != "real":
            np.clip(aligned, 0.0, 1.0, out=aligned)
        if strength < 1.0:
            aligned *= strength
            aligned += (1.0 - strength) * start
        return aligned


def _to_barycentre(
    own: Distribution, groups: list[Distribution], shares: FloatArray, ranks: Curve | None
) -> Curve:
    """Return the curve from a group's scores to the quantiles of the barycentre."""
    values = np.zeros(len(own.scores))
    for share, group in zip(shares, groups, strict=True):
        quantiles = np.interp(own.middle, group.middle, group.scores)
        values += share * (quantiles if ranks is None else ranks(quantiles))
    return Curve(own.scores, np.maximum.accumulate(values))  # rounding must not change the order


def _settled(curves: list[Curve]) -> tuple[Curve, ...]:
    """Return the curves, with one value instead of several that differ only by rounding.

    People of different groups at the same quantile get the same score to the last digit, so a
    threshold never separates them.
    """
    values = np.sort(np.concatenate([curve.values for curve in curves]))
    rounding = 16.0 * np.finfo(np.float64).eps * float(np.abs(values).max())
    starts = values[np.diff(values, prepend=-np.inf) > rounding]
    return tuple(
        Curve(curve.knots, starts[np.searchsorted(starts, curve.values, side="right") - 1])
        for curve in curves
    )


def _remaining_gap(groups: list[Distribution], curves: tuple[Curve, ...]) -> float:
    """Return the largest difference of the groups' shares above a threshold, after alignment."""
    places = np.unique(np.concatenate([curve.values for curve in curves]))
    shares = [
        np.append(0.0, group.upto)[np.searchsorted(curve.values, places, side="right")]
        for group, curve in zip(groups, curves, strict=True)
    ]
    return float(np.ptp(shares, axis=0).max())


def _least_strength(
    part: Alignment | VectorAlignment, people: People, scores: FloatArray, max_gap: float
) -> float:
    """Return the least strength whose gap on these rows is at most a bound.

    It is a multiple of 1/200, or of 1/20 with several classes. If no strength is within the bound,
    it is the one with the smallest gap, with a warning.
    """
    advice = "A gap remains where many people share a score. Use finer scores, or allow a larger "
    strengths, falls = np.linspace(0.0, 1.0, 201), False
    if isinstance(part, VectorAlignment):
        strengths = np.arange(21) / 20.0
        advice = "Use decisions='threshold', or allow a larger "
        gap = _gap_of_scores(part, people, scores, MEASURES["demographic_parity_gap"])
    elif part.scale == "probability":
        gap = _gap_of_decisions(part, people, scores)
    else:  # a distance falls as the strength grows
        gap = _gap_of_scores(part, people, scores, MEASURES["wasserstein_parity_gap"])
        falls = True
    gaps = cache(lambda place: gap(float(strengths[place])))
    places = range(len(strengths))
    if falls:
        place = bisect_left(places[:-1], True, key=lambda place: gaps(place) <= max_gap)
    else:
        within = (place for place in places if gaps(place) <= max_gap)
        place = next(within, -1)
        place = min(places, key=gaps) if place < 0 else place
    if gaps(place) > max_gap:
        notify(
            f"No strength reaches a gap of {max_gap:g} on these rows; the smallest gap is "
            f"{gaps(place):.4g}, at strength {strengths[place]:g}, which is kept. {advice}max_gap.",
            GapNotReachedWarning,
        )
    return float(strengths[place])


def _gap_of_scores(
    part: Alignment | VectorAlignment, people: People, scores: FloatArray, measure: Measure
) -> Callable[[float], float]:
    """Return a gap of the adjusted scores, as a function of the strength."""
    outcome = class_outcome(range(scores.shape[1])) if scores.ndim == 2 else NUMBER
    settings = Settings(outcome=outcome)

    def gap(strength: float) -> float:
        moved = part.move(scores, people.groups.codes, strength)
        return measure.value(ScoredPeople(people, moved, settings))

    return gap


def _gap_of_decisions(
    part: Alignment, people: People, scores: FloatArray
) -> Callable[[float], float]:
    """Return the largest difference of acceptance rates, as a function of the strength."""
    sides = []
    for code in range(people.groups.n_groups):
        rows = people.groups.rows(code)
        order = rows[np.argsort(scores[rows], kind="stable")]
        mass = people.mass[order]
        sides.append((scores[order], np.append(0.0, np.cumsum(mass)) / mass.sum()))

    def rate(code: int, strength: float) -> float:
        ordered, below = sides[code]

        def accepted(place: int) -> bool:
            moved = part.move(ordered[place : place + 1], np.array([code]), strength)
            return bool(moved[0] >= 0.5)

        # Within a group the order of people stays, so those who are accepted come last.
        return float(1.0 - below[bisect_left(range(len(ordered)), True, key=accepted)])

    return lambda strength: float(np.ptp([rate(code, strength) for code in range(len(sides))]))


# Rates are quotients of sums of weights, so two rates that differ by less than this are equal.
_ROUNDING = 1e-12
# With several rates and more than two groups: the number of steps in the search for the position
# of the anchor's rates within the bound.
_STEPS = 8


@dataclass(frozen=True, eq=False)
class Cuts:
    """All cuts of the scores of one group, from accepting nobody to accepting everybody."""

    thresholds: FloatArray  #: The least score that a cut accepts, half-way to the next lower score.
    #: Weight of right decisions, minus the weight of right decisions if nobody is accepted.
    gain: FloatArray
    #: The rates that are compared between groups; each of them increases with the cut.
    rates: FloatArray

    @classmethod
    def of(
        cls, scores: FloatArray, mass: FloatArray, positive: BoolArray, criterion: Criterion
    ) -> Self:
        """Return the cuts of a group's scores; the criterion names the rates."""
        order = np.argsort(-scores, kind="stable")
        ordered = scores[order]
        last = np.flatnonzero(np.append(ordered[1:] < ordered[:-1], True))
        for_all = np.append(0.0, np.cumsum(mass[order])[last])
        for_positive = np.append(0.0, np.cumsum((mass * positive)[order])[last])
        counts = {None: for_all, True: for_positive, False: for_all - for_positive}
        rising = [np.maximum.accumulate(counts[label]) for label in criterion.labels]
        above, below = ordered[last][:-1], ordered[last][1:]
        middle = below + (above - below) / 2.0
        thresholds = np.concatenate([[np.inf], np.where(middle > below, middle, above), [-np.inf]])
        rates = np.array([count / count[-1] for count in rising])
        return cls(thresholds, 2.0 * for_positive - for_all, rates)

    def __len__(self) -> int:
        return len(self.gain)

    def inner(self) -> Self:
        """Return the cuts without the first and the last, which give everyone the same decision."""
        return type(self)(self.thresholds[1:-1], self.gain[1:-1], self.rates[:, 1:-1])

    def within(self, low: FloatArray, width: float) -> tuple[IndexArray, IndexArray]:
        """Return, for each window, the first cut inside it and the first cut beyond it."""
        starts, ends = [], []
        for rate, start in zip(self.rates, low, strict=True):
            starts.append(np.searchsorted(rate, start - _ROUNDING, side="left"))
            ends.append(np.searchsorted(rate, start + width + _ROUNDING, side="right"))
        return np.max(starts, axis=0), np.min(ends, axis=0)


def _best_cuts(groups: Sequence[Cuts], max_gap: float) -> list[int] | None:
    """Return the most accurate cuts, one per group, whose rates differ by at most a bound.

    The result is None if no cuts are within the bound.
    """
    if any(len(group) == 0 for group in groups):
        return None
    best, found = -np.inf, None
    for spans in _spans(groups, max_gap):
        total = np.zeros(len(spans[0][0]))
        for group, (start, end) in zip(groups, spans, strict=True):
            total += range_maximum(group.gain, start, end)
        place = int(np.argmax(total))
        if total[place] > best:
            best, found = float(total[place]), [(int(s[place]), int(e[place])) for s, e in spans]
    if found is None:
        return None
    return [
        low + int(np.argmax(group.gain[low:high]))
        for group, (low, high) in zip(groups, found, strict=True)
    ]


def _spans(groups: Sequence[Cuts], width: float) -> Iterator[list[tuple[IndexArray, IndexArray]]]:
    """Yield windows of cuts: for each group the starts and ends; one holds a best choice.

    The rates of two groups are compared directly: a window is a cut of the first and all cuts of
    the second with near rates. Otherwise rates lie in windows of the given width. With one rate,
    the least rate over the groups is the rate of some cut, so a window starts at the
    rate of every cut. With several rates, the anchor is the group with the fewest cuts. Its rates
    may lie anywhere in a window, so windows start below them by several parts of the width.
    """
    if len(groups) == 2:
        first, second = groups
        every = np.arange(len(first))
        yield [(every, every + 1), second.within(first.rates - width, 2.0 * width)]
        return
    lows = [np.unique(np.concatenate([group.rates[0] for group in groups]))[None, :]]
    if len(groups[0].rates) > 1:
        anchor, steps = min(groups, key=len).rates, np.linspace(0.0, width, _STEPS + 1)
        lows = [anchor - np.array(below)[:, None] for below in product(steps, repeat=2)]
    for low in lows:
        yield [group.within(low, width) for group in groups]


def range_maximum(values: FloatArray, start: IndexArray, end: IndexArray) -> FloatArray:
    """Return the greatest value between each start and end, or minus infinity for an empty range.

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


@dataclass(frozen=True, eq=False)
class GroupThresholds:
    """One threshold per group: the least score that is accepted.

    Notes
    -----
    With demographic parity, equal opportunity, or equalised odds of two groups, no other thresholds
    within the bound are more accurate on the rows of the fit, except those that accept everybody or
    nobody. The search takes O(n log n) steps. With equalised odds of more groups, the thresholds
    are at least as accurate as all such thresholds with a gap within 7/8 of the bound.

    Nothing is randomised, so people with the same score and group get the same decision. Ties and
    group sizes limit how small a gap can be; below that, thresholds accept everybody or nobody.
    Equalised odds fixes a point of every group's ROC (receiver operating characteristic) curve.
    Where the curves of two groups do not meet, only accepting everybody and accepting nobody have
    no gap. A randomised rule could do better there.
    """

    labels: tuple[Any, ...]  #: Labels of the groups, sorted.
    #: Threshold of every group. A score is accepted if it is at least this. Minus infinity accepts
    #: everybody, and infinity accepts nobody.
    thresholds: FloatArray
    criterion: str  #: Name of the criterion, which determines whose acceptance is compared.
    accuracy: float  #: Share of right decisions on the rows of the fit.
    #: Largest difference of rates between two groups on these rows. With equalised odds it is the
    #: larger one of the gaps of true positive rates and of false positive rates.
    gap: float
    decides: bool  #: Whether some people are accepted and others are not.
    #: Names of the attributes whose combinations are the groups, if there are several.
    attributes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.thresholds.shape != (len(self.labels),) or np.isnan(self.thresholds).any():
            raise ValueError("every group needs one threshold")
        if self.criterion not in CRITERIA:
            raise ValueError(f"{self.criterion!r} is not a criterion")

    @classmethod
    def fit(
        cls,
        people: People,
        scores: FloatArray,
        criterion: Criterion,
        *,
        max_gap: float | None = None,
        strengths: Sequence[float] = (),
    ) -> list[Self]:
        """Return the most accurate thresholds within a bound, or within a bound per strength.

        A strength is the share of the gap at a threshold of one half that must be removed. Full
        strength allows a gap of one person in the smallest group.
        """
        assert people.positive is not None, "thresholds are chosen by their accuracy"
        people.comparisons(criterion)  # raises if a group has nobody to compare
        members = [people.groups.rows(code) for code in range(people.groups.n_groups)]
        cuts = [
            Cuts.of(scores[rows], people.mass[rows], people.positive[rows], criterion)
            for rows in members
        ]
        if max_gap is not None:
            return [cls._chosen(_deciding(cuts, max_gap), cuts, people, criterion)]
        at_half = [len(np.unique(scores[rows][scores[rows] >= 0.5])) for rows in members]
        plain = cls._chosen(at_half, cuts, people, criterion)
        plain = replace(plain, thresholds=np.full(len(cuts), 0.5))
        one_person = 1.0 / _smallest_count(people, criterion)
        found = []
        for strength in strengths:
            bound = min(1.0, max((1.0 - strength) * plain.gap, one_person))
            chosen = None if strength == 0.0 else _deciding(cuts, bound)
            found.append(plain if chosen is None else cls._chosen(chosen, cuts, people, criterion))
        return found

    @classmethod
    def _chosen(
        cls, chosen: Sequence[int], cuts: Sequence[Cuts], people: People, criterion: Criterion
    ) -> Self:
        """Return the thresholds of chosen cuts, with their accuracy and their gap."""
        assert people.positive is not None
        mass, rates = people.mass, [cut.rates[:, k] for cut, k in zip(cuts, chosen, strict=True)]
        return cls(
            people.groups.labels,
            np.array([cut.thresholds[k] for cut, k in zip(cuts, chosen, strict=True)]),
            criterion.name,
            float((mass[~people.positive].sum() + _gain(cuts, chosen)) / mass.sum()),
            float(np.ptp(rates, axis=0).max()),
            _decide(cuts, chosen),
            people.groups.attributes,
        )

    def move(self, scores: FloatArray, codes: NDArray[Any]) -> FloatArray:
        """Return adjusted probabilities, for which 0.5 is the threshold of every group.

        Within a group the order of people stays. A score with code -1 stays as it is.
        """
        bent = scores.copy()
        for code, threshold in enumerate(self.thresholds.tolist()):
            rows = codes == code
            accepted = scores[rows] >= threshold
            knots = [0.0, min(max(threshold, 0.0), 1.0), 1.0]
            inside = np.interp(scores[rows], knots, [0.0, 0.5, 1.0])
            # Rounding near a threshold must not change a decision.
            below = np.minimum(inside, np.nextafter(0.5, 0.0))
            bent[rows] = np.where(accepted, np.maximum(inside, 0.5), below)
        return bent


def _smallest_count(people: People, criterion: Criterion) -> float:
    """Return the least effective number of rows of a group that a criterion compares."""
    masses = [
        people.mass[people.groups.is_group(code) & inside]
        for _, inside in people.label_strata(criterion)
        for code in range(people.groups.n_groups)
    ]
    return float(max(1.0, min(mass.sum() ** 2 / (mass**2).sum() for mass in masses)))


def _deciding(cuts: Sequence[Cuts], max_gap: float) -> list[int]:
    """Return the best cut of every group. Cuts that accept some people but not all come first."""
    best = _best_cuts(cuts, max_gap)
    assert best is not None, "accepting nobody has no gap"
    if _decide(cuts, best):
        return best
    # At least one group must decide; each of them is tried.
    found = []
    for code in range(len(cuts)):
        inner = [cut.inner() if k == code else cut for k, cut in enumerate(cuts)]
        chosen = _best_cuts(inner, max_gap)
        if chosen is not None:
            found.append([k + (j == code) for j, k in enumerate(chosen)])
    return max(found, key=lambda chosen: _gain(cuts, chosen), default=best)


def _decide(cuts: Sequence[Cuts], chosen: Sequence[int]) -> bool:
    """Return whether some people are accepted and others are not."""
    ends = {cut.thresholds[k] for cut, k in zip(cuts, chosen, strict=True)}
    return ends != {np.inf} and ends != {-np.inf}


def _gain(cuts: Sequence[Cuts], chosen: Sequence[int]) -> float:
    return float(sum(cut.gain[k] for cut, k in zip(cuts, chosen, strict=True)))


Part: TypeAlias = Alignment | GroupThresholds | ClassOffsets | VectorAlignment
# What they are called: how decisions are made, and whether there are more than two classes.
_PARTS: dict[tuple[str, bool], type[Part]] = {
    ("align", False): Alignment,
    ("threshold", False): GroupThresholds,
    ("align", True): VectorAlignment,
    ("threshold", True): ClassOffsets,
}

# A file is JSON, which has no infinity, so these words stand for thresholds.
_ENDS: dict[Any, float] = {"nobody": float("inf"), "everybody": float("-inf")}
_WORDS: dict[float, Any] = {end: word for word, end in _ENDS.items()}
_KIND, _VERSION = "fairmatch.adjustment", 1
_EXPECTED = "Name a file that ScoreAdjustment.save or fairmatch adjust wrote."


class _Saved(msgspec.Struct, kw_only=True):
    """An adjustment as a file holds it: that of everybody, or that of a stratum."""

    strength: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
    parts: dict[str, Any]
    ignored: tuple[Any, ...]
    stratum: int = -1


class _File(_Saved, kw_only=True):
    """What a file holds."""

    version: int
    decisions: Literal["align", "threshold"]
    several_classes: bool
    pooled: tuple[Any, ...]
    given: Given | None = None
    pooling: tuple[Annotated[int, msgspec.Meta(ge=0, lt=2**31)], ...] = ()
    within: tuple[_Saved, ...] = ()


def _plain(value: Any) -> Any:
    """Return values as JSON can hold them."""
    if isinstance(value, np.ndarray):
        numbers = value.tolist()
        return numbers if value.ndim > 1 else [_WORDS.get(number, number) for number in numbers]
    return vars(value) if is_dataclass(value) else plain_label(value)


def _array(kind: type, value: Any) -> FloatArray:
    """Return the array that a file holds."""
    if isinstance(value, list):
        value = [_ENDS.get(one, one) if isinstance(one, str) else one for one in value]
    return np.asarray(value, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ScoreAdjustment:
    """A fitted adjustment of a model's scores.

    `fit_adjustment` returns one, and a `QuantileAlignmentClassifier` holds one as ``adjustment_``.

    Parameters
    ----------
    parts : Alignment, GroupThresholds, VectorAlignment or ClassOffsets
        One increasing curve per group, or one threshold per group. For several classes, the vectors
        to which those of every group move, or the offsets added to them.
    strength : float, default=1.0
        How far an alignment moves the scores: 0 does not move them, and 1 aligns them fully.
        Thresholds already contain their strength.
    pooled : tuple, default=()
        Labels of small groups that are adjusted as one group, "other".
    ignored : tuple, default=()
        Labels of small groups whose scores are not moved.
    given : Given, optional
        The factors within whose levels scores are adjusted.
    pooling : tuple of int, default=()
        The code under which each stratum is adjusted. Small strata share the last code.
    within : dict, default={}
        The adjustment of each stratum by its code; others are adjusted like everybody.

    Examples
    --------
    >>> from fairmatch import fit_adjustment
    >>> scores, groups = [0.1, 0.3, 0.5, 0.7], ["a", "a", "b", "b"]
    >>> adjustment = fit_adjustment(scores * 20, groups * 20)
    >>> adjustment.apply(scores, groups).round(2).tolist()
    [0.3, 0.5, 0.3, 0.5]
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = ScoreAdjustment.load(adjustment.save(f"{folder}/adjustment.json"))
    >>> again.apply([0.2], ["a"]).round(2).tolist()
    [0.4]
    """

    parts: Part
    strength: float = 1.0
    pooled: tuple[Any, ...] = ()
    ignored: tuple[Any, ...] = ()
    given: Given | None = None
    pooling: tuple[int, ...] = ()
    within: "dict[int, ScoreAdjustment]" = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = (*self.labels, *self.ignored)
        if len({*names}) < len(names) or len({*self.pooled}) < len(self.pooled):
            raise ValueError("the labels of groups must all differ")
        if self.pooled and OTHER not in names:
            raise ValueError("its small groups differ from those of its curves")
        if len(self.pooling) != (0 if self.given is None else len(self.given.labels)):
            raise ValueError("its strata differ from those of its factors")

    @property
    def labels(self) -> tuple[Any, ...]:
        """Labels of the groups."""
        return self.parts.labels

    @property
    def decisions(self) -> str:
        """How scores are adjusted: "align" or "threshold"."""
        return next(name for (name, _), kind in _PARTS.items() if type(self.parts) is kind)

    @property
    def n_classes(self) -> int:
        """Number of classes; scores of two classes are one number."""
        return int(getattr(self.parts, "n_classes", 2))

    @property
    def scale(self) -> str:
        """What the scores are: "probability", "rank" or "real"."""
        return str(getattr(self.parts, "scale", "probability"))

    def apply(
        self, y_score: ArrayLike, sensitive_features: ArrayLike, given: Any = None
    ) -> FloatArray:
        """Return the adjusted scores of a table.

        Parameters
        ----------
        y_score : array-like of shape (n_rows,), or (n_rows, n_classes)
            Scores of the model that the adjustment was fitted for.
        sensitive_features : array-like of shape (n_rows,), or a table of several attributes
            Group of every row. Every group must have occurred in fit.
        given : array-like of shape (n_rows,), or table, optional
            The factors, if the adjustment was fitted with some. People with levels that did not
            occur in fit are adjusted like everybody.

        Returns
        -------
        array of shape (n_rows,), or (n_rows, n_classes)
            The adjusted scores. Adjusted probabilities of at least one half are accepted. Of
            several classes, the one with the largest adjusted score is the decision.
        """
        refuse_other_order(y_score=y_score, sensitive_features=sensitive_features)
        scores = _read_on_scale(y_score, self.scale)
        n_classes = scores.shape[1] if scores.ndim == 2 else 2
        if n_classes != self.n_classes:
            raise InputError(
                f"The adjustment was fitted for {self.n_classes} classes, but y_score has "
                f"{n_classes}. Pass scores of the same model.",
                parameter="y_score",
            )
        codes = self._codes(sensitive_features, len(scores))
        return self.move(scores, codes, self._strata(given, len(scores)))

    def _strata(self, given: Any, n_rows: int) -> NDArray[np.intp] | None:
        """Return the code under which every row's stratum is adjusted, or -1; None without factors.

        Raise unless there are as many factors as in the fit.
        """
        wanted = () if self.given is None else self.given.factors
        columns = [] if given is None else given_columns(given, None, n_rows)
        if self.given is None or len(columns) != len(wanted):
            if len(columns) == len(wanted):
                return None
            names = ", ".join(factor.name for factor in wanted) or "no factors"
            raise InputError(
                f"The adjustment was fitted with {names} as given, but given has {len(columns)} "
                "columns. Pass the same factors.",
                parameter="given",
            )
        places = np.append(self.pooling, -1).astype(np.intp)
        found: NDArray[np.intp] = places[self.given.codes(columns).values]
        return found

    def move(
        self, scores: FloatArray, codes: NDArray[Any], strata: NDArray[Any] | None = None
    ) -> FloatArray:
        """Return the adjusted scores of people with these codes; with code -1 a score stays.

        People of a stratum with an adjustment of its own get that.
        """
        if isinstance(self.parts, Alignment | VectorAlignment):
            found = self.parts.move(scores, codes, self.strength)
        else:
            found = self.parts.move(scores, codes)
        for code, own in self.within.items():
            rows = np.flatnonzero(strata == code)
            found[rows] = own.move(scores[rows], codes[rows])
        return found

    def _codes(self, sensitive_features: Any, n_rows: int) -> NDArray[np.intp]:
        """Return the position of every row's group; -1 for groups whose scores are not moved."""
        reader = Reader(
            "ScoreAdjustment.apply",
            groups_=(*self.labels, *self.ignored),
            attributes_=self.parts.attributes,
            pooled_=self.pooled,
        )
        if not reader.attributes_ and table_width(sensitive_features) > 1:
            sensitive_features = joined_attributes(sensitive_features, ())
        codes = reader.codes(reader.labels(sensitive_features))
        check_length(codes, n_rows, "sensitive_features")
        codes[codes >= len(self.labels)] = -1
        return codes

    def save(self, path: str | Path) -> Path:
        """Write the adjustment to a JSON file; `load` reads it back.

        Parameters
        ----------
        path : str or Path
            The file to write.

        Returns
        -------
        Path
            The file.
        """
        content = {
            "kind": _KIND,
            "version": _VERSION,
            "decisions": self.decisions,
            "several_classes": self.n_classes > 2,
            **vars(self),
            "within": [{"stratum": code, **vars(own)} for code, own in self.within.items()],
        }
        try:
            text = json.dumps(content, allow_nan=False, default=_plain)
            refuse_half_characters(json.loads(text))
        except (TypeError, ValueError) as error:
            raise InputError(
                f"The adjustment cannot be written as JSON ({error}). Use text or numbers as the "
                "labels of groups."
            ) from None
        return write_whole(path, text)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an adjustment that `save` has written.

        Parameters
        ----------
        path : str or Path
            The file to read.

        Returns
        -------
        ScoreAdjustment
            The adjustment.

        Raises
        ------
        ModelFileError
            If the file is not a saved adjustment, or is damaged.
        """
        file = Path(path)
        if not file.exists():
            raise ModelFileError(f"There is no file {file}. {_EXPECTED}")
        content = read_json(file, _KIND, _EXPECTED, _EXPECTED)
        if content.get("version") != _VERSION:
            raise ModelFileError(
                f"{file} has format version {content.get('version')}; this fairmatch reads "
                f"version {_VERSION}. Install the version of fairmatch that wrote it."
            )
        try:
            saved = msgspec.convert(content, _File)
            kind: Any = _PARTS[saved.decisions, saved.several_classes]
            adjustments = {
                one.stratum: cls(
                    msgspec.convert(one.parts, kind, dec_hook=_array),
                    one.strength,
                    ignored=one.ignored,
                )
                for one in (*saved.within, saved)
            }
            return replace(
                adjustments.pop(saved.stratum),
                pooled=saved.pooled,
                given=saved.given,
                pooling=saved.pooling,
                within=dict(adjustments),
            )
        except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
            raise ModelFileError(
                f"{file} is damaged ({error}). Save the adjustment again."
            ) from None


def fit_adjustment(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    *,
    y_true: ArrayLike | None = None,
    strength: float = 1.0,
    max_gap: float | None = None,
    criterion: str | Criterion = "demographic_parity",
    decisions: str = "align",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = 1,
    scale: str = "probability",
    small_groups: SmallGroups = "warn",
    unknown: str = "ignore",
    favourable: Sequence[Any] | None = None,
    given: Any = None,
) -> ScoreAdjustment:
    r"""Return a fitted adjustment of a model's scores. The model itself is not needed.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,), or (n_rows, n_classes)
        Scores of a model, or the probability that it gives to each of several classes; preferably
        for rows that it was not trained on.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    y_true : array-like of shape (n_rows,), optional
        Labels of two classes. They are needed with ``decisions="threshold"``, and with a criterion
        that compares people of the same class.
    strength : float, default=1.0
        Strength of the adjustment. For an alignment, 0 does not move the scores, and 1 aligns them
        fully. For thresholds, it is the share of the gap at a threshold of one half that is
        removed.
    max_gap : float, optional
        Largest allowed gap on these rows. With it, ``strength`` is not used: an alignment takes the
        least strength whose gap is at most this, and thresholds are the most accurate ones within
        it. The gap is that of decisions at one half. With scale "rank" or "real" it is the
        Wasserstein gap of the adjusted scores, in their unit.
    criterion : {"demographic_parity", "equal_opportunity", "equalized_odds"}
        Whose scores or decisions are equalised. By default everybody's, with "equal_opportunity"
        those of people with a positive label, and with "equalized_odds" those within each class,
        which only thresholds can do.
    decisions : {"align", "threshold"}, default="align"
        "align" aligns the scores of all groups. "threshold" sets one threshold per group. The
        adjusted scores then have their threshold at 0.5 in every group. With several classes it
        adds offsets to the probabilities of a group, so that the largest adjusted score decides.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    pos_label : label, default=1
        The label that counts as positive.
    scale : {"probability", "rank", "real"}, default="probability"
        What the scores are. A "probability" lies in [0, 1]. With "rank" the scores are any numbers,
        and only their ranks count. With "real" they are numbers in a unit of their own. Thresholds
        need probabilities.
    small_groups : {"warn", "error", "pool", "ignore"} or a tuple, default="warn"
        What happens to groups with fewer than 30 rows. With "warn" they are adjusted like others,
        unless they have a single row. With "pool" they become one group, "other". With "ignore"
        their scores are not moved. A tuple such as ``("pool", 50)`` has another number of rows.
    unknown : {"ignore", "error", "group"}, default="ignore"
        What happens to rows without a group. With "ignore" their scores are not moved, and a
        warning says so if they are more than 5 %. With "group" they are a group of their own.
    favourable : sequence, optional
        With several classes and "equal_opportunity": the classes whose recalls are equalised. By
        default all classes. Classes are named by the columns of ``y_score``, by the sorted labels,
        or else by their positions.
    given : array-like of shape (n_rows,), or table, optional
        Factors within whose levels scores are adjusted, such as the job title. A number with more
        than ten different values is cut into five bands. Strata with fewer than ten people of a
        group are adjusted together. ``max_gap`` then holds in every stratum.

    Returns
    -------
    ScoreAdjustment
        The adjustment. Its ``apply`` adjusts the scores of this table or of another.

    Notes
    -----
    With t the strength, an alignment turns a score f of group s into

    .. math:: (1 - t) f + t \sum_{s'} p_{s'} Q_{s'}(F_s(f)),

    where :math:`F_s` and :math:`Q_s` are the distribution and quantile functions of the group's
    scores, and :math:`p_s` is its share. Full strength of thresholds allows a gap of one person in
    the smallest group.

    With several classes, `fairmatch.learning.offsets.ClassOffsets` has the rule of the offsets.
    They need no labels: rates within a class are expected rates, computed from the probabilities.
    The reached gap is ``adjustment.parts.gap``, and ``adjustment.parts.promised`` has the accuracy
    and the gap of the best randomised rule. Vectors are aligned by
    `fairmatch.learning.vectors.VectorAlignment`.

    Examples
    --------
    >>> scores, groups, labels = [0.2, 0.4, 0.5, 0.9], ["a", "a", "b", "b"], [0, 1, 0, 1]
    >>> adjustment = fit_adjustment(
    ...     scores * 20, groups * 20, y_true=labels * 20, max_gap=0.0, decisions="threshold")
    >>> adjustment.parts.thresholds.round(2).tolist()
    [0.3, 0.7]
    >>> (adjustment.apply(scores, groups) >= 0.5).tolist()
    [False, True, False, True]
    """
    people, scores, known = _read(
        y_score, sensitive_features, y_true, sample_weight, pos_label, scale, unknown, small_groups
    )
    good: tuple[int, ...] = ()
    if scores.ndim == 2:
        good = read_class_scores(y_score, None, y_true, favourable)[1].favourable
    elif favourable is not None:
        raise InputError(
            "favourable is for more than two classes, but y_score has two. Leave it out.",
            parameter="favourable",
        )
    people, factors, pooling = _with_strata(people, given)
    (found,) = adjust_people(
        people,
        scores,
        strengths=[strength],
        max_gap=max_gap,
        criterion=criterion,
        decisions=decisions,
        scale=scale,
        favourable=good,
    )
    if isinstance(found.parts, GroupThresholds) and not found.parts.decides:
        whom = "everybody" if np.isneginf(found.parts.thresholds).all() else "nobody"
        notify(
            f"Only thresholds that accept {whom} keep the bound on these rows. They have no "
            "gap only because everyone gets the same decision. Allow a larger gap, or use "
            "decisions='align'.",
            ConstantModelWarning,
        )
    pooled = tuple(label for label in known if label not in people.groups.labels)
    return replace(found, pooled=pooled, given=factors, pooling=pooling)


def align_scores(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    *,
    strength: float = 1.0,
    y_true: ArrayLike | None = None,
    criterion: str | Criterion = "demographic_parity",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = 1,
    scale: str = "probability",
    given: Any = None,
) -> FloatArray:
    r"""Return the scores of all groups, aligned. Within a group, people keep their order.

    To adjust the scores of other rows too, use `fit_adjustment`.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,), or (n_rows, n_classes)
        Scores of a model, or the probability that it gives to each of several classes.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    strength : float, default=1.0
        Strength of the alignment: 0 does not move the scores, and 1 aligns them fully.
    y_true : array-like of shape (n_rows,), optional
        Labels of two classes; needed with ``criterion="equal_opportunity"``.
    criterion : {"demographic_parity", "equal_opportunity"}, default="demographic_parity"
        Whose scores are aligned: everybody's, or those of people with a positive label.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    pos_label : label, default=1
        The label that counts as positive.
    scale : {"probability", "rank", "real"}, default="probability"
        What the scores are. A "probability" lies in [0, 1]. With "rank" the scores are any numbers,
        and only their rank counts. With "real" they are numbers in a unit of their own, such as
        predictions of a regressor.
    given : array-like of shape (n_rows,), or table, optional
        Factors within whose levels scores are aligned, as in `fit_adjustment`.

    Returns
    -------
    array of shape (n_rows,), or (n_rows, n_classes)
        The adjusted scores.

    Notes
    -----
    With t the strength, a score f of group s becomes

    .. math:: (1 - t) f + t \sum_{s'} p_{s'} Q_{s'}(F_s(f)),

    where :math:`F_s` and :math:`Q_s` are the distribution and quantile functions of the group's
    scores, and :math:`p_s` is its share (Chzhen et al., 2020; Jiang et al., 2020).

    Examples
    --------
    >>> align_scores([0.1, 0.3, 0.5, 0.7], ["a", "a", "b", "b"]).round(2).tolist()
    [0.3, 0.5, 0.3, 0.5]
    """
    people, scores, _ = _read(
        y_score, sensitive_features, y_true, sample_weight, pos_label, scale, "error"
    )
    people, _, _ = _with_strata(people, given)
    (found,) = adjust_people(people, scores, strengths=[strength], criterion=criterion, scale=scale)
    strata = None if people.strata is None else people.strata.values
    return found.move(scores, people.groups.codes, strata)


def _with_strata(people: People, given: Any) -> tuple[People, Given | None, tuple[int, ...]]:
    """Return people with the strata within which they are adjusted, and how these were found."""
    if given is None:
        return people, None, ()
    columns = given_columns(given, None, len(people))
    factors = Given.fit(columns)
    strata = factors.codes(columns)
    pooling = pool_strata(strata, people.groups)
    strata = Codes(pooling[strata.values], strata.labels)
    return replace(people, strata=strata), factors, tuple(pooling.tolist())


def _read(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    y_true: ArrayLike | None,
    sample_weight: ArrayLike | None,
    pos_label: Any,
    scale: str,
    unknown: str,
    small_groups: SmallGroups | None = None,
) -> tuple[People, FloatArray, tuple[Any, ...]]:
    """Return the people behind scores, the scores, and the groups before small ones are pooled."""
    refuse_other_order(
        y_score=y_score, sensitive_features=sensitive_features, y_true=y_true,
        sample_weight=sample_weight,
    )  # fmt: skip
    scores = _read_on_scale(y_score, scale)
    n_rows = len(scores)
    known = read_known(sensitive_features, unknown, n_rows=n_rows)
    tell_unknown(known)
    groups = known if small_groups is None else settle_small_groups(known, small_groups)
    labels = None
    # Offsets and the barycentre of several classes rest on probabilities alone.
    if y_true is not None and scores.ndim == 1:
        positive = read_labels(y_true, n_rows=n_rows, pos_label=pos_label)
        labels = Labels(positive.astype(np.float64), (None, pos_label))
    weight = read_row_weights(sample_weight, "survey", n_rows)
    return People(groups, labels=labels, weight=weight), scores, known.labels


def _read_on_scale(y_score: ArrayLike, scale: str) -> FloatArray:
    """Return scores as an array; probabilities must be in [0, 1], and others must be finite."""
    if scale not in SCALES:
        names = ", ".join(map(repr, SCALES))
        raise InputError(f"scale must be one of {names}; got {scale!r}.", parameter="scale")
    if is_vectors(y_score):
        if scale != "probability":
            raise InputError(
                f"scale={scale!r} was given with several classes, whose scores are probabilities. "
                "Leave it out.",
                parameter="scale",
            )
        vectors = read_vectors(y_score)
        return vectors if vectors.shape[1] > 2 else vectors[:, 1]
    if scale != "probability":
        return NUMBER.read(y_score)
    scores = read_numbers(y_score, "y_score")
    low, high = scores.min(), scores.max()
    if np.isfinite([low, high]).all() and not (low >= 0.0 and high <= 1.0):
        raise InputError(
            f"y_score must lie in [0, 1], got values from {low:g} to {high:g}. Pass probabilities "
            "(divide percentages by 100). Or pass scale='rank', which uses only the rank of a "
            "score, or scale='real' for numbers in a unit of their own.",
            parameter="y_score",
        )
    return read_scores(scores)


def adjust_people(
    people: People,
    scores: FloatArray,
    *,
    strengths: Sequence[float] = (1.0,),
    max_gap: float | None = None,
    criterion: str | Criterion = "demographic_parity",
    decisions: str = "align",
    scale: str = "probability",
    favourable: Sequence[int] = (),
) -> list[ScoreAdjustment]:
    """Fit one adjustment per strength, or one with a gap within a bound.

    Groups that are set apart are not adjusted. People with strata are adjusted within them. The
    parameters are those of `fit_adjustment`.
    """
    criterion = read_criterion(criterion)
    check_adjustment(criterion, decisions, scale)
    check_weights("strength", strengths, "[0, 1]")
    if max_gap is not None:
        check_number("max_gap", max_gap, "[0, inf)" if scale == "real" else "[0, 1]")
    several = scores.ndim == 2
    if several and decisions == "align" and criterion.needs_labels:
        raise InputError(
            f"criterion={criterion.name!r} and alignment of several classes do not combine, "
            "because alignment moves the vectors of everybody. Use decisions='threshold', or "
            "criterion='demographic_parity'.",
            parameter="criterion",
        )
    unlabelled = people.positive is None and not several
    if unlabelled and (decisions == "threshold" or criterion.needs_labels):
        what = (
            "decisions='threshold' looks for the most accurate thresholds"
            if decisions == "threshold"
            else f"criterion={criterion.name!r} compares people of the same class"
        )
        raise LabelError(f"{what}, so it needs the true labels. Pass y_true.", parameter="y_true")

    labels = tuple(people.groups.labels[code] for code in people.groups.compared)
    ignored = tuple(people.groups.labels[code] for code in people.groups.apart)
    groups = Groups(places_of(people.groups)[people.groups.codes], labels, people.groups.attributes)
    every = np.arange(len(people))
    strata = {} if people.strata is None else people.strata.rows_of(every)
    people = replace(people, groups=groups, table=None, strata=None)

    def fitted(rows: IndexArray) -> list[ScoreAdjustment]:
        """Return the adjustments of some people."""
        rows = rows[groups.codes[rows] >= 0]
        own, numbers, used = people.take(rows), scores[rows], strengths
        parts: Sequence[Part]
        if decisions == "align":
            part: Alignment | VectorAlignment = (
                VectorAlignment.fit(own, numbers)
                if several
                else Alignment.fit(own, numbers, criterion, scale)
            )
            if max_gap is not None:
                ((_, inside),) = own.label_strata(criterion)
                at = np.flatnonzero(inside)
                used = [_least_strength(part, own.take(at), numbers[at], max_gap)]
            parts = [part] * len(used)
        elif several:
            members = np.eye(len(labels))[own.groups.codes]
            parts = fit_offsets(numbers, members, own.mass, criterion, labels, max_gap=max_gap,
                                strengths=strengths, favourable=favourable,
                                attributes=groups.attributes)  # fmt: skip
        else:
            parts = GroupThresholds.fit(
                own, numbers, criterion, max_gap=max_gap, strengths=strengths
            )
        if decisions == "threshold" and max_gap is not None:
            used = [1.0]  # thresholds and offsets contain their strength
        pairs = zip(parts, used, strict=True)
        return [ScoreAdjustment(part, float(one), ignored=ignored) for part, one in pairs]

    found = fitted(every)
    for code, rows in strata.items():
        try:
            within = fitted(rows)
        except FairmatchError:
            continue  # too few people for an adjustment of their own
        for one, own in zip(found, within, strict=True):
            one.within[code] = own
    return found


def check_adjustment(criterion: Criterion, decisions: str, scale: str = "probability") -> None:
    """Raise if scores cannot be adjusted in this way."""
    if decisions not in DECISIONS:
        raise InputError(
            f"decisions must be 'align' or 'threshold', got {decisions!r}. Pass one of the two.",
            parameter="decisions",
        )
    if decisions == "threshold" and scale != "probability":
        raise InputError(
            f"scale={scale!r} was given, but decisions='threshold' needs probabilities: "
            "it moves them so that 0.5 is the threshold of every group. Use decisions='align'.",
            parameter="scale",
        )
    if decisions == "align" and len(criterion.labels) > 1:
        raise InputError(
            f"criterion={criterion.name!r} asks for equal scores within both classes, but one "
            "increasing curve per group can equalise them in one class only. Use "
            "decisions='threshold', whose thresholds come close, or "
            "criterion='equal_opportunity'.",
            parameter="criterion",
        )


def places_of(groups: Groups) -> NDArray[np.intp]:
    """Return the position of every group among those that are compared; -1 for the others."""
    places = np.full(groups.n_groups, -1, dtype=np.intp)
    places[list(groups.compared)] = np.arange(len(groups.compared))
    return places
