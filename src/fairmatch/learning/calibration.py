"""Calibrating scores by group without changing a decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.isotonic import IsotonicRegression

from fairmatch.learning.reading import Reader
from fairmatch.people.checks import (
    FloatArray,
    check_length,
    check_number,
    read_labels,
    read_scores,
    read_weights,
)
from fairmatch.people.groups import read_groups

# So many people of a group on one side of the threshold, or their scores stay as they are.
_LEAST = 30


@dataclass(frozen=True)
class ScoreCalibration:
    r"""A calibration of scores by group that changes no decision.

    Made by `fit_calibration`.

    Attributes
    ----------
    threshold : float
        Scores at or above it stay there, and scores below it stay below.
    maps : dict
        Group to the knots of its map: scores, and what they become.
    attributes : tuple of str
        The attributes whose combinations are the groups; empty for one.

    Examples
    --------
    >>> import numpy as np
    >>> ends = np.array([0.0, 1.0])
    >>> ScoreCalibration(0.5, {"a": (ends, ends)}).apply([0.2, 0.7], ["a", "a"]).tolist()
    [0.2, 0.7]
    """

    threshold: float
    maps: dict[Any, tuple[FloatArray, FloatArray]]
    attributes: tuple[str, ...] = ()

    def apply(self, scores: ArrayLike, sensitive_features: Any) -> FloatArray:
        """Return the calibrated scores.

        Parameters
        ----------
        scores : array-like of shape (n_rows,)
            Scores in [0, 1].
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes)
            Group of every row. A group that was not in the fit is an error.
        """
        values = read_scores(scores)
        reader = Reader(
            "ScoreCalibration.apply", groups_=tuple(self.maps), attributes_=self.attributes
        )
        codes = reader.codes(reader.labels(sensitive_features))
        check_length(codes, len(values), "sensitive_features")
        found = values.copy()
        for code, knots in enumerate(self.maps.values()):
            rows = codes == code
            found[rows] = np.interp(values[rows], *knots)
        # Between the two sides a map jumps, so no rounding may carry a score across.
        below = np.nextafter(self.threshold, 0.0)
        return np.where(values >= self.threshold, np.maximum(found, self.threshold),
                        np.minimum(found, below))  # fmt: skip


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

    Parameters
    ----------
    scores : array-like of shape (n_rows,)
        Scores of people whom the model has not been trained on.
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
    For each group and each side of the threshold :math:`t`, the map is the isotonic regression of
    the labels on the scores, clipped to :math:`[0, t)` or :math:`[t, 1]`. No decision changes, so
    every gap of decisions at this threshold (demographic parity, true and false positive rates,
    equalised odds) stays exactly as it is. Gaps of the scores themselves, such as the gap of mean
    scores, do change: a model that was bounded by one of those is no longer bounded. With fewer
    than 30 people of a group on a side, the scores there stay as they are.

    What cannot be repaired stays: people just above the threshold whose share of positive labels is
    below :math:`t` keep a score of at least :math:`t`.

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
    values = read_scores(scores)
    positive = read_labels(y_true, n_rows=len(values), pos_label=pos_label)
    weights = read_weights(sample_weight, n_rows=len(values))
    groups = read_groups(sensitive_features, n_rows=len(values))
    maps = {}
    for code, label in enumerate(groups.labels):
        own = groups.codes == code
        knots: list[FloatArray] = []
        for side, (low, high) in enumerate(((0.0, np.nextafter(threshold, 0.0)), (threshold, 1.0))):
            rows = np.flatnonzero(own & ((values >= threshold) == bool(side)))
            ends = np.array([low, high])
            if len(rows) < _LEAST:
                knots.append(np.array([ends, ends]))
                continue
            fit = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
            fit.fit(values[rows], positive[rows], None if weights is None else weights[rows])
            x = np.concatenate([[low], fit.X_thresholds_, [high]])
            y = np.clip(fit.predict(x), low, high)
            knots.append(np.array([x, y]))
        joined = np.concatenate(knots, axis=1)
        maps[label] = joined[0], joined[1]
    return ScoreCalibration(float(threshold), maps, groups.attributes)
