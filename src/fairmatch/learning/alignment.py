"""Quantile alignment and group thresholds: adjustments of the scores of any model."""

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import wasserstein_distance

from fairmatch.exceptions import (
    ConstantModelWarning,
    GapNotReachedWarning,
    GroupError,
    InputError,
    LabelError,
    ModelFileError,
    notify,
)
from fairmatch.learning.reading import joined_attributes, settle_small_groups, table_width
from fairmatch.matching.coupling import IndexArray, plan_parts
from fairmatch.people.checks import (
    BoolArray,
    FloatArray,
    check_number,
    check_weights,
    plain_value,
    read_column,
    read_labels,
    read_numbers,
    read_scores,
    read_weights,
)
from fairmatch.people.files import write_whole
from fairmatch.people.groups import (
    CRITERIA,
    OTHER,
    Criterion,
    Groups,
    listed,
    read_criterion,
    read_groups,
)

# Resolution of a quantile curve: a rank is known to one part in this many, and exactly in groups
# with fewer different scores. With few knots, the search among them stays in fast memory.
RESOLUTION = 10_000


@dataclass(frozen=True, eq=False, repr=False)
class Curve:
    """A continuous, increasing function, linear between knots.

    Below the first knot and above the last one its slope is 1. So people with scores outside the
    range of the fit keep their order.

    Parameters
    ----------
    knots : array of shape (n_knots,)
        Points at which the function is known, strictly increasing.
    values : array of shape (n_knots,)
        Values of the function at the knots, never decreasing.

    Examples
    --------
    >>> import numpy as np
    >>> curve = Curve(np.array([0.2, 0.4]), np.array([0.0, 1.0]))
    >>> curve(np.array([0.1, 0.25, 0.5])).round(2).tolist()
    [-0.1, 0.25, 1.1]
    """

    knots: FloatArray
    values: FloatArray

    def __repr__(self) -> str:
        return f"Curve({len(self.knots)} knots)"

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the values of the function at the points x."""
        found = np.interp(x, self.knots, self.values)
        # Adding nothing keeps every bit between the knots: equal values stay equal.
        found += x - np.clip(x, self.knots[0], self.knots[-1])
        return found

    def get_state(self) -> dict[str, list[float]]:
        """Return the curve as plain values for JSON."""
        return {"knots": self.knots.tolist(), "values": self.values.tolist()}

    @classmethod
    def from_state(cls, state: Any) -> Self:
        """Return the curve that plain values describe; raise an error if they are damaged."""
        try:
            knots, values = (np.asarray(state[k], dtype=np.float64) for k in ("knots", "values"))
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"The file is damaged: this is not a curve ({error}).") from None
        whole = knots.ndim == 1 and len(knots) > 0 and knots.shape == values.shape
        if not (whole and np.isfinite(knots).all() and np.isfinite(values).all()):
            raise ModelFileError("The file is damaged: a curve needs finite knots and values.")
        if (np.diff(knots) <= 0.0).any() or (np.diff(values) < 0.0).any():
            raise ModelFileError("The file is damaged: a curve must increase.")
        return cls(knots, values)


@dataclass(frozen=True, eq=False)
class Distribution:
    """The scores of one group, sorted, with their ranks.

    Attributes
    ----------
    scores : array of shape (n_knots,)
        Distinct scores, increasing. If there are more than `RESOLUTION`, about that many are kept.
    middle : array of shape (n_knots,)
        Share of the group below each score, plus half of the share at it.
    upto : array of shape (n_knots,)
        Share of the group at or below each score.
    tied : float
        Share of the group that has the same score as somebody else.
    """

    scores: FloatArray
    middle: FloatArray
    upto: FloatArray
    tied: float

    @classmethod
    def of(cls, scores: FloatArray, weights: FloatArray | None = None) -> Self:
        """Return the distribution of scores, with weighted rows."""
        if weights is None:
            ordered = np.sort(scores)
            order = None
        else:
            order = np.argsort(scores, kind="stable")
            ordered = scores[order]
        first = np.flatnonzero(np.append(True, ordered[1:] > ordered[:-1]))
        counts = np.diff(np.append(first, len(ordered)))
        tied = counts > 1
        if weights is None or order is None:
            shares = counts / len(ordered)
            upto = np.cumsum(counts) / len(ordered)
        else:
            shares = np.add.reduceat(weights[order], first) / weights.sum()
            upto = np.cumsum(shares)
        kept = _kept(upto)
        middle = upto[kept] - shares[kept] / 2.0
        return cls(ordered[first[kept]], middle, upto[kept], float(shares[tied].sum()))

    def quantile(self, rank: FloatArray) -> FloatArray:
        """Return the scores at ranks, interpolated between people."""
        return np.interp(rank, self.middle, self.scores)

    def share_upto(self, score: FloatArray) -> FloatArray:
        """Return the share of the group at or below scores."""
        position = np.searchsorted(self.scores, score, side="right")
        return np.append(0.0, self.upto)[position]


def _kept(upto: FloatArray) -> NDArray[np.intp]:
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


def group_codes(
    sensitive_features: Any,
    labels: Sequence[Any],
    attributes: tuple[str, ...] = (),
    *,
    n_rows: int,
) -> NDArray[np.integer[Any]]:
    """Return the position of every row's group among known labels.

    Parameters
    ----------
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row. Unlike in a fit, all rows may be of one group.
    labels : sequence
        Labels of the groups in the table of the fit.
    attributes : tuple of str
        Names of the attributes in the table of the fit, if there were several. The columns of a
        table are found by these names, in any order.
    n_rows : int
        Expected number of rows.
    """
    if attributes or table_width(sensitive_features) > 1:
        named = joined_attributes(sensitive_features, attributes)
    else:
        named = read_column(sensitive_features, "sensitive_features")
    if len(named) != n_rows:
        raise InputError(
            f"sensitive_features has {len(named)} rows where {n_rows} were expected. Pass one "
            "group for every score."
        )
    codes = np.full(len(named), -1, dtype=np.int32)
    for code, label in enumerate(labels):
        codes[np.asarray(named == label, dtype=bool)] = code
    if codes.min() < 0:
        strange = named[codes < 0].tolist()[0]
        raise GroupError(
            f"sensitive_features holds {strange!r}, a group that was not seen when the "
            f"adjustment was fitted. It knows {listed(labels)}. Fit it on a table with that "
            "group, or leave those rows out."
        )
    return codes


def curve_to_barycentre(
    own: Distribution, groups: list[Distribution], shares: FloatArray, ranks: Curve | None
) -> Curve:
    """Return the curve from a group's scores to the quantiles of the barycentre."""
    values = np.zeros(len(own.scores))
    for share, group in zip(shares, groups, strict=True):
        quantiles = group.quantile(own.middle)
        values += share * (quantiles if ranks is None else ranks(quantiles))
    return Curve(own.scores, np.maximum.accumulate(values))  # rounding must not change the order


def settled(curves: list[Curve]) -> tuple[Curve, ...]:
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


def remaining_gap(groups: list[Distribution], curves: tuple[Curve, ...]) -> float:
    """Return the largest difference of the groups' shares above a threshold, after alignment."""
    places = np.unique(np.concatenate([curve.values for curve in curves]))
    shares = [
        np.append(0.0, group.upto)[np.searchsorted(curve.values, places, side="right")]
        for group, curve in zip(groups, curves, strict=True)
    ]
    return float(np.ptp(shares, axis=0).max())


SCALES = ("probability", "rank", "real")


@dataclass(frozen=True, eq=False)
class Alignment:
    r"""A fitted alignment of scores, with one increasing curve per group.

    `fit_alignment` returns it.

    Parameters
    ----------
    labels : tuple
        Labels of the groups, sorted.
    curves : tuple of Curve
        For every group, the fully aligned score as a function of the score.
    shares : array of shape (n_groups,)
        Share of every group among the rows that were compared; it is the group's weight in the
        barycentre.
    scale : {"probability", "rank", "real"}
        What the scores are.
    ranks : Curve or None
        With scale "rank", the curve from a score to its rank among all rows.
    tied : array of shape (n_groups,)
        Share of every group that has the same score as somebody else in the group.
    remaining_gap : float
        The gap that full alignment leaves on the rows of the fit. It is the largest difference
        between two groups' shares above a threshold, over all thresholds. It comes from ties and
        from unequal group sizes, because people with the same score and group get the same aligned
        score.
    attributes : tuple of str
        Names of the attributes whose combinations are the groups, if there are several.

    Notes
    -----
    With :math:`F_s` the distribution function and :math:`Q_s` the quantile function of the scores
    of group s, and :math:`p_s` its share, a score f of group s becomes

    .. math:: (1 - t) f + t \sum_{s'} p_{s'} Q_{s'}(F_s(f))

    with t the strength. The sum is the quantile function of the Wasserstein barycentre of all
    groups. With t = 1 the result is the best score under squared loss that has the same
    distribution in every group. With a smaller strength the gap in Wasserstein distance falls in
    proportion to t (Chzhen et al., 2020; Jiang et al., 2020).
    """

    labels: tuple[Any, ...]
    curves: tuple[Curve, ...]
    shares: FloatArray
    scale: str = "probability"
    ranks: Curve | None = None
    tied: FloatArray | None = None
    remaining_gap: float = 0.0
    attributes: tuple[str, ...] = ()

    def apply(
        self, y_score: ArrayLike, sensitive_features: ArrayLike, strength: float = 1.0
    ) -> FloatArray:
        """Return the adjusted scores of a table.

        Parameters
        ----------
        y_score : array-like of shape (n_rows,)
            Scores of the model that the alignment was fitted for.
        sensitive_features : array-like of shape (n_rows,), or a table of several attributes
            Group of every row. Each must have been in the table of the fit.
        strength : float, default=1.0
            How far to go: 0 does not move the scores, and 1 aligns them fully.

        Returns
        -------
        array of shape (n_rows,)
            The adjusted scores.
        """
        scores = read_on_scale(y_score, self.scale)
        codes = group_codes(sensitive_features, self.labels, self.attributes, n_rows=len(scores))
        return self.move(scores, codes, strength)

    def move(self, scores: FloatArray, codes: Any, strength: float = 1.0) -> FloatArray:
        """Return adjusted scores, from checked scores and group codes.

        A score with code -1 stays as it is.
        """
        check_number("strength", strength, "[0, 1]")
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

    def start(self, scores: FloatArray) -> FloatArray:
        """Return the scores before alignment: as they are, or as ranks with scale "rank"."""
        return scores if self.ranks is None else np.clip(self.ranks(scores), 0.0, 1.0)

    def get_state(self) -> dict[str, Any]:
        """Return the alignment as plain values for JSON."""
        return {
            "labels": [plain_value(label) for label in self.labels],
            "curves": [curve.get_state() for curve in self.curves],
            "shares": self.shares.tolist(),
            "scale": self.scale,
            "ranks": None if self.ranks is None else self.ranks.get_state(),
            "tied": None if self.tied is None else self.tied.tolist(),
            "remaining_gap": self.remaining_gap,
            "attributes": list(self.attributes),
        }

    @classmethod
    def from_state(cls, state: Any) -> Self:
        """Return the alignment that plain values describe; raise an error if they are damaged."""
        try:
            curves = tuple(map(Curve.from_state, state["curves"]))
            labels, scale = tuple(state["labels"]), state["scale"]
            if len(labels) != len(curves) or len(set(labels)) < len(labels) or scale not in SCALES:
                raise ModelFileError("The file is damaged: this is not an alignment of scores.")
            ranks = None if state["ranks"] is None else Curve.from_state(state["ranks"])
            if (ranks is None) == (scale == "rank"):
                raise ModelFileError("The file is damaged: ranks and scale contradict each other.")
            return cls(
                labels,
                curves,
                np.asarray(state["shares"], dtype=np.float64),
                scale,
                ranks,
                None if state["tied"] is None else np.asarray(state["tied"], dtype=np.float64),
                float(state["remaining_gap"]),
                tuple(map(str, state.get("attributes", ()))),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, ModelFileError):
                raise
            raise ModelFileError(
                f"The file is damaged: this is not an alignment of scores ({error})."
            ) from None


def fit_alignment(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    *,
    y_true: ArrayLike | None = None,
    criterion: str | Criterion = "demographic_parity",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = 1,
    scale: str = "probability",
) -> Alignment:
    """Fit curves that move the scores of every group to one common distribution.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores of a model, preferably for rows that it was not trained on.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    y_true : array-like of shape (n_rows,), optional
        Labels of two classes. Only the fit with ``criterion="equal_opportunity"`` needs them; the
        alignment is applied without labels.
    criterion : {"demographic_parity", "equal_opportunity"}, default="demographic_parity"
        Whose scores are aligned: everybody's, or those of people with a positive label.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    pos_label : label, default=1
        The label that counts as positive.
    scale : {"probability", "rank", "real"}, default="probability"
        What the scores are. A "probability" lies in [0, 1], and any other number is an error. With
        "rank" the scores are any finite numbers, and they are replaced by their rank among all
        rows, between 0 and 1, before they are aligned. With "real" the scores and the results are
        numbers in a unit of their own, such as predictions of a regressor.

    Returns
    -------
    Alignment
        Its ``apply`` adjusts the scores of this table or of another.

    Raises
    ------
    InputError
        If ``criterion="equalized_odds"``: one increasing curve per group can align the scores of
        one class, but not of both classes at once. Thresholds by group can come near it.

    Examples
    --------
    >>> alignment = fit_alignment([0.1, 0.3, 0.5, 0.7], ["a", "a", "b", "b"])
    >>> alignment.apply([0.1, 0.3, 0.5, 0.7], ["a", "a", "b", "b"]).round(2).tolist()
    [0.3, 0.5, 0.3, 0.5]
    >>> alignment.apply([0.2], ["a"], strength=0.5).round(2).tolist()
    [0.3]
    """
    criterion = read_criterion(criterion)
    scores = read_on_scale(y_score, scale)
    groups = read_groups(sensitive_features, n_rows=len(scores))
    weights = read_weights(sample_weight, n_rows=len(scores))
    positive: BoolArray | None = None
    if criterion.needs_labels and y_true is not None:
        positive = read_labels(y_true, n_rows=len(scores), pos_label=pos_label)
    return align_groups(scores, groups, positive, weights, criterion, scale)


def align_groups(
    scores: FloatArray,
    groups: Groups,
    positive: BoolArray | None = None,
    weights: FloatArray | None = None,
    criterion: str | Criterion = "demographic_parity",
    scale: str = "probability",
) -> Alignment:
    """Return the alignment that is fitted on scores that have been checked."""
    criterion = read_criterion(criterion)
    if len(criterion.labels) > 1:
        raise InputError(
            f"criterion={criterion.name!r} asks for equal scores within both classes, and one "
            "increasing curve per group can equalise them in one class only. Use "
            "criterion='equal_opportunity', or decisions='threshold', whose thresholds come near "
            "it."
        )
    ranks = None
    if scale == "rank":
        everybody = Distribution.of(scores, weights)
        ranks = Curve(everybody.scores, everybody.middle)
    members = compared_rows(groups, criterion, positive, weights)
    found = [
        Distribution.of(scores[rows], None if weights is None else weights[rows])
        for rows in members
    ]
    sizes = [len(rows) if weights is None else weights[rows].sum() for rows in members]
    shares = np.asarray(sizes, dtype=np.float64) / np.sum(sizes)
    curves = settled([curve_to_barycentre(one, found, shares, ranks) for one in found])
    return Alignment(
        groups.labels,
        curves,
        shares,
        scale,
        ranks,
        np.array([one.tied for one in found]),
        remaining_gap(found, curves),
        groups.attributes,
    )


def compared_rows(
    groups: Groups,
    criterion: str | Criterion,
    positive: BoolArray | None,
    weights: FloatArray | None,
) -> list[IndexArray]:
    """Return the rows of every group that a criterion compares.

    The criterion compares everybody or one class. An error names the first group without such
    rows.
    """
    parts = plan_parts(groups, criterion=criterion, positive=positive, weights=weights)
    rows = {part.source: part.source_rows for part in parts}
    rows[parts[0].target] = parts[0].target_rows
    return [rows[code] for code in range(groups.n_groups)]


def align_scores(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    *,
    strength: float = 1.0,
    alignment: Alignment | None = None,
    y_true: ArrayLike | None = None,
    criterion: str | Criterion = "demographic_parity",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = 1,
    scale: str = "probability",
) -> FloatArray:
    r"""Return the scores of all groups, aligned. Within a group, people keep their order.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores of a model.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    strength : float, default=1.0
        How far to go: 0 does not move the scores, and 1 aligns them fully.
    alignment : Alignment, optional
        An alignment that `fit_alignment` has fitted on another table. With it, the following
        parameters are not used. By default, an alignment is fitted on these rows.
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

    Returns
    -------
    array of shape (n_rows,)
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
    if alignment is None:
        alignment = fit_alignment(
            y_score,
            sensitive_features,
            y_true=y_true,
            criterion=criterion,
            sample_weight=sample_weight,
            pos_label=pos_label,
            scale=scale,
        )
    return alignment.apply(y_score, sensitive_features, strength)


def read_on_scale(y_score: ArrayLike, scale: str) -> FloatArray:
    """Return scores as an array; probabilities must be in [0, 1], and others must be finite."""
    if scale not in SCALES:
        raise InputError(f"scale must be one of {', '.join(map(repr, SCALES))}; got {scale!r}.")
    if scale != "probability":
        scores = read_numbers(y_score, "y_score")
        if not np.isfinite(scores).all():
            raise InputError(
                f"y_score has {int((~np.isfinite(scores)).sum())} entries that are NaN or "
                "infinite. Every row needs a finite score. Leave those rows out."
            )
        return scores
    try:
        return read_scores(y_score)
    except InputError as error:
        if "[0, 1]" not in str(error):
            raise
        raise InputError(
            f"{error} Or pass scale='rank', which uses only the rank of a score, or scale='real' "
            "for numbers in a unit of their own."
        ) from None


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


@dataclass(frozen=True, eq=False)
class GroupThresholds:
    """One threshold per group: the least score that is accepted.

    `fit_thresholds` returns it.

    Parameters
    ----------
    labels : tuple
        Labels of the groups, sorted.
    thresholds : array of shape (n_groups,)
        Threshold of every group. A score is accepted if it is at least this. Minus infinity accepts
        everybody, and infinity accepts nobody.
    criterion : str
        Name of the criterion, which determines whose acceptance is compared.
    accuracy : float
        Share of right decisions on the rows of the fit.
    gap : float
        Largest difference of rates between two groups on these rows. With equalised odds it is the
        larger one of the gaps of true positive rates and of false positive rates.
    decides : bool
        Whether some people are accepted and others are not.
    attributes : tuple of str
        Names of the attributes whose combinations are the groups, if there are several.
    """

    labels: tuple[Any, ...]
    thresholds: FloatArray
    criterion: str
    accuracy: float
    gap: float
    decides: bool
    attributes: tuple[str, ...] = ()
    curves: tuple[Curve, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "curves", tuple(map(_centred, self.thresholds.tolist())))

    def decide(self, y_score: ArrayLike, sensitive_features: ArrayLike) -> BoolArray:
        """Return who is accepted.

        Parameters
        ----------
        y_score : array-like of shape (n_rows,)
            Scores of the model that the thresholds were fitted for.
        sensitive_features : array-like of shape (n_rows,), or a table of several attributes
            Group of every row. Each must have been in the table of the fit.

        Returns
        -------
        array of bool, shape (n_rows,)
            Whether each row is accepted.
        """
        scores = read_on_scale(y_score, "real")
        codes = group_codes(sensitive_features, self.labels, self.attributes, n_rows=len(scores))
        return np.asarray(scores >= self.thresholds[codes], dtype=bool)

    def move(self, scores: FloatArray, codes: NDArray[Any]) -> FloatArray:
        """Return bent probabilities, with every group's threshold at one half.

        Within a group the order of people stays. A score with code -1 stays as it is.
        """
        bent = scores.copy()
        for code, curve in enumerate(self.curves):
            rows = codes == code
            accepted = scores[rows] >= self.thresholds[code]
            inside = np.clip(curve(scores[rows]), 0.0, 1.0)
            # Rounding near a threshold must not change a decision.
            below = np.minimum(inside, np.nextafter(0.5, 0.0))
            bent[rows] = np.where(accepted, np.maximum(inside, 0.5), below)
        return bent

    def get_state(self) -> dict[str, Any]:
        """Return the thresholds as plain values for JSON."""
        return {
            "labels": [plain_value(label) for label in self.labels],
            # JSON has no infinity, so words stand for it.
            "thresholds": [_ENDS.get(t, t) for t in self.thresholds.tolist()],
            "criterion": self.criterion,
            "accuracy": self.accuracy,
            "gap": self.gap,
            "decides": self.decides,
            "attributes": list(self.attributes),
        }

    @classmethod
    def from_state(cls, state: Any) -> Self:
        """Return the thresholds that plain values describe; raise an error if they are damaged."""
        try:
            labels = tuple(state["labels"])
            values = [_STARTS.get(t, t) for t in state["thresholds"]]
            thresholds = np.asarray(values, dtype=np.float64)
            criterion = state["criterion"]
            facts = float(state["accuracy"]), float(state["gap"]), bool(state["decides"])
            attributes = tuple(map(str, state.get("attributes", ())))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ModelFileError(
                f"The file is damaged: these are not thresholds ({error})."
            ) from None
        whole = thresholds.shape == (len(labels),) and not np.isnan(thresholds).any()
        if not whole or criterion not in CRITERIA or len(set(labels)) < len(labels):
            raise ModelFileError("The file is damaged: these are not thresholds of groups.")
        return cls(labels, thresholds, criterion, *facts, attributes)


_ENDS: dict[float, Any] = {float("inf"): "nobody", float("-inf"): "everybody"}
_STARTS = {word: end for end, word in _ENDS.items()}


def _centred(threshold: float) -> Curve:
    """Return the curve that maps 0 to 0, a threshold to one half, and 1 to 1.

    A threshold outside (0, 1) leaves only one side of one half.
    """
    if threshold <= 0.0:
        return Curve(np.array([0.0, 1.0]), np.array([0.5, 1.0]))
    if threshold >= 1.0:
        return Curve(np.array([0.0, 1.0]), np.array([0.0, 0.5]))
    return Curve(np.array([0.0, threshold, 1.0]), np.array([0.0, 0.5, 1.0]))


def fit_thresholds(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    max_gap: float = 0.0,
    criterion: str | Criterion = "demographic_parity",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = 1,
) -> GroupThresholds:
    """Return the most accurate thresholds by group with a gap within a bound.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Labels of two classes.
    y_score : array-like of shape (n_rows,)
        Scores of a model, preferably for rows that it was not trained on; any finite numbers.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    max_gap : float, default=0.0
        Largest allowed difference between two groups on these rows. By default it bounds acceptance
        rates. With "equal_opportunity" it bounds true positive rates, and with "equalized_odds"
        both true and false positive rates.
    criterion : {"demographic_parity", "equal_opportunity", "equalized_odds"}
        Whose acceptance is compared: by default everybody's, with "equal_opportunity" that of
        people with a positive label, and with "equalized_odds" that of each class.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    pos_label : label, default=1
        The label that counts as positive.

    Returns
    -------
    GroupThresholds
        The thresholds. If some thresholds within the bound decide, one of them is returned, even
        if accepting everybody or nobody is more accurate.

    Notes
    -----
    With demographic parity, equal opportunity, or equalised odds of two groups, no other thresholds
    within the bound that decide are more accurate on these rows. The search takes O(n log n) steps.
    With equalised odds of more groups, the thresholds are at least as accurate as all thresholds
    that decide and have a gap within 7/8 of the bound.

    Nothing is randomised, so people with the same score and group get the same decision. Ties and
    group sizes limit how small a gap can be; below that, thresholds accept everybody or nobody.
    Equalised odds fixes a point of every group's ROC (receiver operating characteristic) curve.
    Where the curves of two groups do not meet, only accepting everybody and accepting nobody have
    no gap. A randomised rule could do better there.

    Examples
    --------
    >>> found = fit_thresholds([0, 1, 0, 1], [0.2, 0.4, 0.5, 0.9],
    ...                        sensitive_features=["a", "a", "b", "b"])
    >>> found.thresholds.round(2).tolist(), found.accuracy, found.gap
    ([0.3, 0.7], 1.0, 0.0)
    """
    criterion = read_criterion(criterion)
    scores = read_on_scale(y_score, "real")
    groups = read_groups(sensitive_features, n_rows=len(scores))
    weights = read_weights(sample_weight, n_rows=len(scores))
    positive = read_labels(y_true, n_rows=len(scores), pos_label=pos_label)
    return threshold_groups(scores, groups, positive, weights, criterion, max_gap)


def threshold_groups(
    scores: FloatArray,
    groups: Groups,
    positive: BoolArray,
    weights: FloatArray | None = None,
    criterion: str | Criterion = "demographic_parity",
    max_gap: float = 0.0,
) -> GroupThresholds:
    """Return the thresholds that are fitted on scores that have been checked."""
    check_number("max_gap", max_gap, "[0, 1]")
    criterion = read_criterion(criterion)
    mass = np.ones(len(scores)) if weights is None else weights
    cuts = _cuts(scores, groups, positive, mass, criterion)
    return _thresholds(_deciding(cuts, max_gap), cuts, groups, positive, mass, criterion)


def plain_thresholds(
    scores: FloatArray,
    groups: Groups,
    positive: BoolArray,
    weights: FloatArray | None = None,
    criterion: str | Criterion = "demographic_parity",
) -> GroupThresholds:
    """Return the threshold of one half for every group, with its accuracy and its gap."""
    criterion = read_criterion(criterion)
    mass = np.ones(len(scores)) if weights is None else weights
    cuts = _cuts(scores, groups, positive, mass, criterion)
    chosen = [int(np.searchsorted(-cut.scores, -0.5, side="right")) for cut in cuts]
    found = _thresholds(chosen, cuts, groups, positive, mass, criterion)
    return replace(found, thresholds=np.full(groups.n_groups, 0.5))


def smallest_count(
    groups: Groups,
    positive: BoolArray,
    weights: FloatArray | None,
    criterion: str | Criterion,
) -> float:
    """Return the least number of rows of a group that a criterion compares.

    With weights, it is the effective number of rows.
    """
    sizes = [
        len(rows) if weights is None else weights[rows].sum() ** 2 / (weights[rows] ** 2).sum()
        for _, inside in read_criterion(criterion).strata(positive, len(groups))
        for code in range(groups.n_groups)
        for rows in [np.flatnonzero(groups.is_group(code) & inside)]
    ]
    return float(max(1.0, min(sizes)))


def _cuts(
    scores: FloatArray,
    groups: Groups,
    positive: BoolArray,
    mass: FloatArray,
    criterion: Criterion,
) -> list[GroupCuts]:
    return [
        GroupCuts.of(scores[rows], positive[rows], mass[rows], criterion, groups.labels[code])
        for code in range(groups.n_groups)
        for rows in [groups.rows(code)]
    ]


def _thresholds(
    chosen: Sequence[int],
    cuts: Sequence[GroupCuts],
    groups: Groups,
    positive: BoolArray,
    mass: FloatArray,
    criterion: Criterion,
) -> GroupThresholds:
    accepted = np.array([cut.accepted[k] for cut, k in zip(cuts, chosen, strict=True)])
    rates = np.array([cut.rates[:, k] for cut, k in zip(cuts, chosen, strict=True)])
    return GroupThresholds(
        groups.labels,
        np.array([cut.threshold(k) for cut, k in zip(cuts, chosen, strict=True)]),
        criterion.name,
        float((mass[~positive].sum() + _gain(cuts, chosen)) / mass.sum()),
        float(np.ptp(rates, axis=0).max()),
        bool(accepted.max() > 0.0 and accepted.min() < 1.0),
        groups.attributes,
    )


def _deciding(cuts: Sequence[GroupCuts], max_gap: float) -> list[int]:
    """Return the best cut of every group; cuts that decide are preferred."""
    best = best_cuts(cuts, max_gap)
    assert best is not None, "accepting nobody has no gap"
    ends = [{0: "nobody", len(cut) - 1: "everybody"} for cut in cuts]
    constant = {end.get(k) for end, k in zip(ends, best, strict=True)}
    if None in constant or len(constant) > 1:
        return best
    # At least one group must decide; each of them is tried.
    found = []
    for code in range(len(cuts)):
        inner = [cut.inner() if k == code else cut for k, cut in enumerate(cuts)]
        chosen = best_cuts(inner, max_gap)
        if chosen is not None:
            found.append([k + (j == code) for j, k in enumerate(chosen)])
    return max(found, key=lambda chosen: _gain(cuts, chosen), default=best)


def _gain(cuts: Sequence[GroupCuts], chosen: Sequence[int]) -> float:
    return float(sum(cut.gain[k] for cut, k in zip(cuts, chosen, strict=True)))


# Number of steps between the strengths 0 and 1 that are tried.
_strengths_STEPS = 200


def least_strength(
    alignment: Alignment,
    scores: FloatArray,
    groups: Groups,
    weights: FloatArray | None,
    max_gap: float,
) -> float:
    """Return the least strength whose gap on these rows is at most a bound.

    Parameters
    ----------
    alignment : Alignment
        The alignment of the scores of these groups.
    scores : array of shape (n_rows,)
        Scores that have been checked.
    groups : Groups
        Group of every row.
    weights : array of shape (n_rows,), optional
        Weight of every row.
    max_gap : float
        The bound. For probabilities it bounds the gap of decisions at one half, and otherwise the
        Wasserstein gap of the moved scores.

    Returns
    -------
    float
        A multiple of 1/200. If no strength is within the bound, it is the one with the smallest
        gap, with a warning.
    """
    strengths = np.linspace(0.0, 1.0, _strengths_STEPS + 1)
    if alignment.scale == "probability":
        gaps = _gaps_of_decisions(alignment, scores, groups, weights, strengths)
        within = np.flatnonzero(gaps <= max_gap)
        if len(within):
            return float(strengths[within[0]])
        smallest = int(np.argmin(gaps))
        _warn(max_gap, float(gaps[smallest]), float(strengths[smallest]))
        return float(strengths[smallest])

    # The distance falls as the strength grows, so bisection finds the least strength.
    def distance(place: int) -> float:
        moved = alignment.move(scores, groups.codes, float(strengths[place]))
        return _largest_distance(moved, groups, weights)

    place = bisect_left(range(_strengths_STEPS), True, key=lambda place: distance(place) <= max_gap)
    if place == _strengths_STEPS and distance(place) > max_gap:
        _warn(max_gap, distance(place), 1.0)
    return float(strengths[place])


def _gaps_of_decisions(
    alignment: Alignment,
    scores: FloatArray,
    groups: Groups,
    weights: FloatArray | None,
    strengths: FloatArray,
) -> FloatArray:
    """Return the largest difference of acceptance rates at every strength."""
    rates = []
    for code in range(groups.n_groups):
        rows = groups.rows(code)
        order = rows[np.argsort(scores[rows], kind="stable")]
        mass = np.ones(len(rows)) if weights is None else weights[order]
        below = np.append(0.0, np.cumsum(mass)) / mass.sum()
        rates.append([1.0 - below[_first(alignment, scores[order], code, t)] for t in strengths])
    return np.asarray(np.ptp(np.array(rates), axis=0))


def _first(alignment: Alignment, ordered: FloatArray, code: int, strength: float) -> int:
    """Return the position of the first accepted score among a group's sorted and moved scores."""
    member = np.array([code])

    def accepted(place: int) -> bool:
        moved = alignment.move(ordered[place : place + 1], member, float(strength))
        return bool(moved[0] >= 0.5)

    # Within a group the order of people stays, so those who are accepted come last.
    return bisect_left(range(len(ordered)), True, key=accepted)


def _largest_distance(scores: FloatArray, groups: Groups, weights: FloatArray | None) -> float:
    sides = [
        (scores[rows], None if weights is None else weights[rows])
        for code in range(groups.n_groups)
        for rows in [groups.rows(code)]
    ]
    return max(
        float(wasserstein_distance(a[0], b[0], a[1], b[1])) for a, b in combinations(sides, 2)
    )


def _warn(max_gap: float, gap: float, strength: float) -> None:
    notify(
        f"No strength reaches a gap of {max_gap:g} on these rows; the smallest gap is {gap:.4g}, "
        f"at strength {strength:g}, which is kept. A gap remains where many people share a score. "
        "Use finer scores, or allow a larger max_gap.",
        GapNotReachedWarning,
    )


_KIND, _VERSION = "fairmatch.adjustment", 1
_MOST_BYTES = 2**28
_EXPECTED = "Name a file that ScoreAdjustment.save or fairmatch adjust --save wrote."
# Ways to adjust scores, with the class of each fitted part.
DECISIONS: dict[str, type[Alignment] | type[GroupThresholds]] = {
    "align": Alignment,
    "threshold": GroupThresholds,
}


@dataclass(frozen=True, eq=False)
class ScoreAdjustment:
    """A fitted adjustment of a model's scores.

    `fit_adjustment` returns one, and a `QuantileAlignmentClassifier` holds one as ``adjustment_``.

    Parameters
    ----------
    parts : Alignment or GroupThresholds
        One increasing curve per group, or one threshold per group.
    strength : float, default=1.0
        How far an alignment moves the scores: 0 does not move them, and 1 aligns them fully.
        Thresholds already contain their strength.
    pooled : tuple, default=()
        Labels of small groups that are adjusted as one group, "other".
    ignored : tuple, default=()
        Labels of small groups whose scores are not moved.

    Examples
    --------
    >>> from fairmatch import fit_adjustment
    >>> scores, groups = [0.1, 0.3, 0.5, 0.7], ["a", "a", "b", "b"]
    >>> adjustment = fit_adjustment(scores, groups)
    >>> adjustment.apply(scores, groups).round(2).tolist()
    [0.3, 0.5, 0.3, 0.5]
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = ScoreAdjustment.load(adjustment.save(f"{folder}/adjustment.json"))
    >>> again.apply([0.2], ["a"]).round(2).tolist()
    [0.4]
    """

    parts: Alignment | GroupThresholds
    strength: float = 1.0
    pooled: tuple[Any, ...] = ()
    ignored: tuple[Any, ...] = ()

    @property
    def labels(self) -> tuple[Any, ...]:
        """Labels of the groups."""
        return self.parts.labels

    @property
    def decisions(self) -> str:
        """How scores are adjusted: "align" or "threshold"."""
        return next(name for name, kind in DECISIONS.items() if isinstance(self.parts, kind))

    @property
    def scale(self) -> str:
        """What the scores are: "probability", "rank" or "real"."""
        return self.parts.scale if isinstance(self.parts, Alignment) else "probability"

    def apply(self, y_score: ArrayLike, sensitive_features: ArrayLike) -> FloatArray:
        """Return the adjusted scores of a table.

        Parameters
        ----------
        y_score : array-like of shape (n_rows,)
            Scores of the model that the adjustment was fitted for.
        sensitive_features : array-like of shape (n_rows,), or a table of several attributes
            Group of every row. Each must have been in the table of the fit.

        Returns
        -------
        array of shape (n_rows,)
            The adjusted scores. Adjusted probabilities of at least one half are accepted.
        """
        scores = read_on_scale(y_score, self.scale)
        known = (*self.labels, *self.pooled, *self.ignored)
        codes = group_codes(sensitive_features, known, self.parts.attributes, n_rows=len(scores))
        pool = [self.labels.index(OTHER)] * len(self.pooled) if self.pooled else []
        places = np.array([*range(len(self.labels)), *pool, *[-1] * len(self.ignored)])
        return self.move(scores, places[codes])

    def move(self, scores: FloatArray, codes: NDArray[Any]) -> FloatArray:
        """Return adjusted scores, from checked scores and group codes.

        A score with code -1 stays as it is.
        """
        if isinstance(self.parts, Alignment):
            return self.parts.move(scores, codes, self.strength)
        return self.parts.move(scores, codes)

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
            "strength": self.strength,
            "pooled": [plain_value(label) for label in self.pooled],
            "ignored": [plain_value(label) for label in self.ignored],
            "parts": self.parts.get_state(),
        }
        try:
            text = json.dumps(content, allow_nan=False)
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
        try:
            if not file.exists():
                raise ModelFileError(f"There is no file {file}. {_EXPECTED}")
            if not file.is_file() or file.stat().st_size > _MOST_BYTES:
                raise ModelFileError(f"{file} is not a file of an adjustment. {_EXPECTED}")
            content = json.loads(file.read_bytes())
        except OSError as error:
            raise ModelFileError(
                f"{file} cannot be read ({error.strerror}). {_EXPECTED}"
            ) from error
        except ModelFileError:
            raise
        except (ValueError, RecursionError) as error:
            raise ModelFileError(f"{file} is not valid JSON: {error}. {_EXPECTED}") from None
        if not isinstance(content, dict) or content.get("kind") != _KIND:
            raise ModelFileError(f"{file} does not describe an adjustment of scores. {_EXPECTED}")
        if content.get("version") != _VERSION:
            raise ModelFileError(
                f"{file} has format version {content.get('version')}; this fairmatch reads "
                f"version {_VERSION}. Install the version of fairmatch that wrote it."
            )
        kind, strength = DECISIONS.get(str(content.get("decisions"))), content.get("strength")
        if kind is None or isinstance(strength, bool) or not isinstance(strength, int | float):
            raise ModelFileError(
                f"{file} is damaged: decisions or strength are missing. Save the adjustment again."
            )
        if not 0.0 <= strength <= 1.0:
            raise ModelFileError(
                f"{file} is damaged: its strength is {strength:g}, and must be in [0, 1]. Save the "
                "adjustment again."
            )
        parts = kind.from_state(content.get("parts"))
        small = [content.get(name, []) for name in ("pooled", "ignored")]
        pooled_alone = bool(small[0]) and OTHER not in parts.labels
        if pooled_alone or not all(isinstance(labels, list) for labels in small):
            raise ModelFileError(
                f"{file} is damaged: its small groups are not those of its curves. Save the "
                "adjustment again."
            )
        return cls(parts, float(strength), tuple(small[0]), tuple(small[1]))


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
    min_group_size: int = 2,
    small_groups: str = "error",
) -> ScoreAdjustment:
    r"""Return a fitted adjustment of a model's scores. The model itself is not needed.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores of a model, preferably for rows that it was not trained on.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    y_true : array-like of shape (n_rows,), optional
        Labels of two classes. They are needed with ``decisions="threshold"``, and with a criterion
        that compares people of the same class.
    strength : float, default=1.0
        How far to go. For an alignment, 0 does not move the scores, and 1 aligns them fully. For
        thresholds, it is the share of the gap at a threshold of one half that is taken away.
    max_gap : float, optional
        Largest allowed gap on these rows. With it, ``strength`` is not used: an alignment takes
        the least strength whose gap is at most this, and thresholds are the most accurate ones
        with such a gap. The gap is that of decisions at one half. With scale "rank" or "real" it is
        the Wasserstein gap of the adjusted scores, in their unit.
    criterion : {"demographic_parity", "equal_opportunity", "equalized_odds"}
        Whose scores or decisions are made alike. By default these are everybody's. With
        "equal_opportunity" they are those of people with a positive label. With "equalized_odds"
        they are those of each class, which only thresholds can do.
    decisions : {"align", "threshold"}, default="align"
        "align" aligns the scores of all groups. "threshold" sets one threshold per group, and bends
        the scores until every group's threshold lies at one half.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    pos_label : label, default=1
        The label that counts as positive.
    scale : {"probability", "rank", "real"}, default="probability"
        What the scores are. A "probability" lies in [0, 1]. With "rank" the scores are any numbers,
        and only their rank counts. With "real" they are numbers in a unit of their own. Thresholds
        need probabilities.
    min_group_size : int, default=2
        Smallest number of rows with which a group is compared with others.
    small_groups : {"error", "pool", "ignore"}, default="error"
        What happens to smaller groups. With "error" an error lists them. With "pool" they become
        one group, "other". With "ignore" their scores are not moved.

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

    Examples
    --------
    >>> adjustment = fit_adjustment(
    ...     [0.2, 0.4, 0.5, 0.9], ["a", "a", "b", "b"], y_true=[0, 1, 0, 1], max_gap=0.0,
    ...     decisions="threshold")
    >>> (adjustment.apply([0.2, 0.4, 0.5, 0.9], ["a", "a", "b", "b"]) >= 0.5).tolist()
    [False, True, False, True]
    """
    criterion = read_criterion(criterion)
    if decisions not in DECISIONS:
        raise InputError(
            f"decisions must be 'align' or 'threshold', got {decisions!r}. Pass one of the two."
        )
    if decisions == "threshold" and scale != "probability":
        raise InputError(
            f"scale={scale!r} was given, but decisions='threshold' bends probabilities until "
            "thresholds lie at one half. Use decisions='align', or fit_thresholds, which takes "
            "any scores and returns the thresholds themselves."
        )
    scores = read_on_scale(y_score, scale)
    everybody = read_groups(sensitive_features, n_rows=len(scores))
    decided = settle_small_groups(everybody, (small_groups, min_group_size), warn=False)
    weights = read_weights(sample_weight, n_rows=len(scores))
    if y_true is None and (decisions == "threshold" or criterion.needs_labels):
        what = (
            "decisions='threshold' looks for the most accurate thresholds"
            if decisions == "threshold"
            else f"criterion={criterion.name!r} compares people of the same class"
        )
        raise LabelError(f"{what}, so it needs the true labels. Pass y_true.")
    positive = None
    if y_true is not None:
        positive = read_labels(y_true, n_rows=len(scores), pos_label=pos_label)
    rows = np.flatnonzero(~np.isin(decided.codes, decided.apart))
    groups = decided.take(rows).only_compared()
    scores = scores[rows]
    positive = None if positive is None else positive[rows]
    weights = None if weights is None else weights[rows]
    if max_gap is None:
        (found,) = adjust_path(
            scores,
            groups,
            positive,
            weights,
            strengths=[strength],
            criterion=criterion,
            decisions=decisions,
            scale=scale,
        )
    else:
        check_number("max_gap", max_gap, "[0, inf)" if scale == "real" else "[0, 1]")
        found = _within(max_gap, scores, groups, positive, weights, criterion, decisions, scale)
    if isinstance(found.parts, GroupThresholds):
        _tell_constant(found.parts)
    return replace(
        found,
        pooled=tuple(label for label in everybody.labels if label not in decided.labels),
        ignored=tuple(decided.labels[code] for code in decided.apart),
    )


def _tell_constant(thresholds: GroupThresholds) -> None:
    """Warn of thresholds that accept everybody or nobody."""
    if thresholds.decides:
        return
    whom = "everybody" if np.isneginf(thresholds.thresholds).all() else "nobody"
    notify(
        f"Only thresholds that accept {whom} keep the bound on these rows. They are fair because "
        "they decide nothing. Allow a larger gap, or use decisions='align'.",
        ConstantModelWarning,
    )


def _within(
    max_gap: float,
    scores: FloatArray,
    groups: Groups,
    positive: BoolArray | None,
    weights: FloatArray | None,
    criterion: Criterion,
    decisions: str,
    scale: str,
) -> ScoreAdjustment:
    """Return the adjustment that keeps a bound on the gap, from scores that have been checked."""
    if decisions == "threshold":
        assert positive is not None
        kept = threshold_groups(scores, groups, positive, weights, criterion, max_gap)
        return ScoreAdjustment(kept, 1.0)
    alignment = align_groups(scores, groups, positive, weights, criterion, scale)
    ((_, inside),) = criterion.strata(positive, len(scores))
    rows = np.flatnonzero(inside)
    mass = None if weights is None else weights[rows]
    least = least_strength(alignment, scores[rows], groups.take(rows), mass, max_gap)
    return ScoreAdjustment(alignment, least)


def adjust_path(
    scores: FloatArray,
    groups: Groups,
    positive: BoolArray | None,
    weights: FloatArray | None,
    *,
    strengths: Sequence[float],
    criterion: str | Criterion = "demographic_parity",
    decisions: str = "align",
    scale: str = "probability",
) -> list[ScoreAdjustment]:
    """Return one adjustment per strength, from scores that have been checked.

    The strength of thresholds is the share of the gap at a threshold of one half that they must
    take away. Full strength allows a gap of one person in the smallest group.
    """
    check_weights("strength", strengths, "[0, 1]")
    if decisions == "align":
        alignment = align_groups(scores, groups, positive, weights, criterion, scale)
        return [ScoreAdjustment(alignment, float(strength)) for strength in strengths]
    assert positive is not None, "thresholds are chosen by their accuracy"
    plain = plain_thresholds(scores, groups, positive, weights, criterion)
    one_person = 1.0 / smallest_count(groups, positive, weights, criterion)
    return [
        ScoreAdjustment(
            plain
            if strength == 0.0
            else threshold_groups(
                scores,
                groups,
                positive,
                weights,
                criterion,
                min(1.0, max((1.0 - strength) * plain.gap, one_person)),
            ),
            float(strength),
        )
        for strength in strengths
    ]
