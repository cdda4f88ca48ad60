"""Calibrating scores by group without changing a decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.isotonic import isotonic_regression

from fairmatch.exceptions import ModelFileError
from fairmatch.learning.reading import Reader, labels_of
from fairmatch.people.checks import (
    BoolArray,
    FloatArray,
    check_length,
    check_number,
    read_scores,
    refuse_other_order,
)
from fairmatch.people.people import People, read_people

# The scores of a side of the threshold are cut into at most so many bins of so many people. With
# fewer people they stay as they are.
_BINS, _LEAST = 20, 30


@dataclass(frozen=True)
class ScoreCalibration:
    """A calibration of scores by group that changes no decision.

    Made by `fit_calibration`, and by classifiers with ``calibrate=True``.

    Examples
    --------
    >>> import numpy as np
    >>> ends = np.array([0.0, 1.0])
    >>> ScoreCalibration(0.5, {"a": (ends, ends)}).apply([0.2, 0.7], ["a", "a"]).tolist()
    [0.2, 0.7]
    """

    #: Scores at or above it stay there, and scores below it stay below.
    threshold: float
    #: Group to the knots of its map: scores, and what they become.
    maps: dict[Any, tuple[FloatArray, FloatArray]]
    #: The attributes whose combinations are the groups; empty for one.
    attributes: tuple[str, ...] = ()

    def apply(self, scores: ArrayLike, sensitive_features: Any) -> FloatArray:
        """Return the calibrated scores.

        Parameters
        ----------
        scores : array-like of shape (n_rows,)
            Scores in [0, 1].
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes)
            Group of every row. A group that did not occur in fit raises an error.
        """
        values = read_scores(scores)
        reader = Reader(
            "ScoreCalibration.apply", groups_=tuple(self.maps), attributes_=self.attributes
        )
        codes = reader.codes(reader.labels(sensitive_features))
        check_length(codes, len(values), "sensitive_features")
        return self.moved(values, codes)

    def moved(self, scores: FloatArray, codes: NDArray[Any] | None) -> FloatArray:
        """Return the calibrated scores of rows whose groups are known by code."""
        found = scores.copy()
        for code, knots in enumerate(self.maps.values()):
            rows = slice(None) if codes is None else codes == code
            found[rows] = np.interp(scores[rows], *knots)
        # The map jumps at the threshold, so rounding must not move a score across it.
        below = np.nextafter(self.threshold, 0.0)
        return np.where(scores >= self.threshold, np.maximum(found, self.threshold),
                        np.minimum(found, below))  # fmt: skip

    def facts(self) -> list[list[list[float]]]:
        """Return the knots as plain values, in the order of the groups."""
        return [[own.tolist() for own in knots] for knots in self.maps.values()]

    @classmethod
    def restored(
        cls, facts: Any, labels: Sequence[Any], attributes: tuple[str, ...] = ()
    ) -> ScoreCalibration:
        """Return the calibration of `facts`; raise if they are damaged."""
        try:
            maps = [tuple(np.array(own, dtype=np.float64) for own in knots) for knots in facts]
            for x, y in maps:
                both = np.stack([x, y])
                if not (both.min() >= 0.0 and both.max() <= 1.0 and (np.diff(both) >= 0.0).all()):
                    raise ValueError("a map must rise from 0 to 1")
            named = dict(zip(labels, maps, strict=True))
        except (TypeError, ValueError) as error:
            raise ModelFileError(f"The file is damaged: calibration ({error}).") from error
        return cls(0.5, named, attributes)


def fit_calibration(
    scores: ArrayLike,
    y_true: ArrayLike,
    *,
    sensitive_features: Any,
    threshold: float = 0.5,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = 1,
) -> ScoreCalibration:
    r"""Calibrate scores by group, on held-out rows, without changing a decision.

    Classifiers with ``calibrate=True`` do this with their own scores, and keep the maps.

    Parameters
    ----------
    scores : array-like of shape (n_rows,)
        Scores of people on whom the model was not trained.
    y_true : array-like of shape (n_rows,)
        Their labels.
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes)
        Their groups.
    threshold : float, default=0.5
        The score at which decisions change.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    pos_label : default=1
        The label that a high score predicts.

    Returns
    -------
    ScoreCalibration
        The map of every group.

    Notes
    -----
    For each group and each side of the threshold :math:`t`, the scores are cut into up to 20 bins
    of at least 30 people. The map joins the bins' mean scores and their shares of positive labels,
    made increasing by isotonic regression, with straight lines, and is clipped to :math:`[0, t)` or
    :math:`[t, 1]`. No decision changes, so every gap of decisions at this threshold (demographic
    parity, true and false positive rates, equalised odds) stays exactly as it is. Gaps of the
    scores themselves, such as the gap of mean scores, do change: a model that was bounded by one of
    those is no longer bounded. If a group has fewer than 30 people on a side, the scores there stay
    as they are.

    One error cannot be repaired without changing decisions: people just above the threshold whose
    share of positive labels is below :math:`t` keep a score of at least :math:`t`.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> group = np.repeat(["a", "b"], 2000)
    >>> scores = generator.random(4000)
    >>> y = generator.random(4000) < np.where(group == "a", scores**2, scores)
    >>> calibration = fit_calibration(scores, y, sensitive_features=group)
    >>> better = calibration.apply(scores, group)
    >>> bool(((better >= 0.5) == (scores >= 0.5)).all())
    True
    """
    check_number("threshold", threshold, "(0, 1)")
    refuse_other_order(
        scores=scores, y_true=y_true, sensitive_features=sensitive_features,
        sample_weight=sample_weight,
    )  # fmt: skip
    values = read_scores(scores)
    people = read_people(
        sensitive_features,
        n_rows=len(values),
        y=y_true,
        pos_label=pos_label,
        sample_weight=sample_weight,
    )
    return calibrate(people, values, float(threshold))


def calibrate(people: People, scores: FloatArray, threshold: float = 0.5) -> ScoreCalibration:
    """Return the calibration of people's scores by their groups."""
    positive, mass = labels_of(people).positive, people.mass
    sides = (0.0, np.nextafter(threshold, 0.0)), (threshold, 1.0)
    maps: dict[Any, Any] = {}
    for code, label in enumerate(people.groups.labels):
        knots = []
        for side, ends in enumerate(sides):
            inside = people.groups.is_group(code) & ((scores >= threshold) == bool(side))
            rows = np.flatnonzero(inside)
            knots.append(_knots(scores[rows], positive[rows], mass[rows], ends))
        maps[label] = tuple(np.concatenate(own) for own in zip(*knots, strict=True))
    return ScoreCalibration(threshold, maps, people.groups.attributes)


def _knots(
    scores: FloatArray, positive: BoolArray, mass: FloatArray, ends: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Return the map on one side of the threshold, between its ends."""
    n_bins = min(_BINS, len(scores) // _LEAST)
    if not n_bins or not mass.any():
        return np.array(ends), np.array(ends)
    cuts = np.quantile(scores, np.arange(1, n_bins) / n_bins)
    bins = np.searchsorted(cuts, scores, side="right")
    total, *sums = (np.bincount(bins, mass * own) for own in (1.0, scores, positive))
    centres, shares = (own[total > 0.0] / total[total > 0.0] for own in sums)
    shares = isotonic_regression(shares, sample_weight=total[total > 0.0])
    x = np.concatenate([ends[:1], centres, ends[1:]])
    return x, np.clip(np.concatenate([shares[:1], shares, shares[-1:]]), *ends)
