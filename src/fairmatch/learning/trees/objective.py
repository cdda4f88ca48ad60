"""What boosted trees descend: a loss plus a weighted penalty, with gradient and curvature."""

from typing import Protocol

import numpy as np
from scipy.special import expit

from fairmatch.learning.grouped import TrainingRows
from fairmatch.matching.coupling import Coupling
from fairmatch.tables.arrays import FloatArray

# Differences of scores below this are as good as none; chosen by measurement (docs/boosting.md).
_SMOOTHING = 0.05
Derivatives = tuple[FloatArray, FloatArray]


class TreePenalty(Protocol):
    """What is added to the loss, as a function of all scores."""

    def value(self, scores: FloatArray) -> float:
        """Give the penalty."""

    def derivatives(self, scores: FloatArray) -> Derivatives:
        """Give the gradient, and the curvature of a quadratic that lies above the penalty."""


class MatchedGap:
    r"""The mean absolute difference of matched scores, smooth at zero.

    Parameters
    ----------
    coupling : Coupling
        Who is matched with whom.
    smoothing : float, default=0.05
        The epsilon below.

    Notes
    -----
    :math:`\sum_{ij} \Gamma_{ij} (\sqrt{d_{ij}^2 + \epsilon^2} - \epsilon)` with :math:`d_{ij} =
    p_i - p_j`. The root is concave in :math:`d^2`, and :math:`(a - b)^2 \le 2 a^2 + 2 b^2`, so
    :math:`2 \sum_j \Gamma_{ij} / \sqrt{d_{ij}^2 + \epsilon^2}` in each row is the curvature of a
    quadratic that touches the penalty and lies above it.
    """

    def __init__(self, coupling: Coupling, smoothing: float = _SMOOTHING) -> None:
        self.coupling, self.smoothing = coupling, smoothing

    def value(self, scores: FloatArray) -> float:
        """Give the smoothed matched gap."""
        return float(self.coupling.mass @ (self._roots(self._differences(scores)) - self.smoothing))

    def derivatives(self, scores: FloatArray) -> Derivatives:
        """Sum over the partners of every row."""
        differences = self._differences(scores)
        inverse = self.coupling.mass / self._roots(differences)
        slope = inverse * differences
        return self._per_row(slope, -slope), 2.0 * self._per_row(inverse, inverse)

    def _differences(self, scores: FloatArray) -> FloatArray:
        pairs = self.coupling
        return np.asarray(scores[pairs.source_index] - scores[pairs.target_index])

    def _roots(self, differences: FloatArray) -> FloatArray:
        return np.asarray(np.sqrt(differences**2 + self.smoothing**2))

    def _per_row(self, source: FloatArray, target: FloatArray) -> FloatArray:
        pairs, n_rows = self.coupling, self.coupling.n_rows
        return np.asarray(
            np.bincount(pairs.source_index, source, n_rows)
            + np.bincount(pairs.target_index, target, n_rows)
        )


class SquaredMeanGap:
    r"""The squared difference of the groups' mean scores.

    Parameters
    ----------
    rows : TrainingRows
        The groups and the weights.

    Notes
    -----
    :math:`(a^\top p)^2` with :math:`a` the shares of the rows in their group, negative in the
    first. As :math:`(a^\top x)^2 \le \|a\|_1 \sum_i |a_i| x_i^2` and :math:`\|a\|_1 = 2`, the
    curvature :math:`4 |a_i|` lies above.
    """

    def __init__(self, rows: TrainingRows) -> None:
        codes, mass = rows.groups.codes, rows.mass
        self.contrast = np.where(codes == 1, mass, -mass) / np.bincount(codes, mass)[codes]

    def value(self, scores: FloatArray) -> float:
        """Give the squared gap."""
        return float(self.contrast @ scores) ** 2

    def derivatives(self, scores: FloatArray) -> Derivatives:
        """Follow the gap's sign in the one group and oppose it in the other."""
        gap = float(self.contrast @ scores)
        return 2.0 * gap * self.contrast, 4.0 * np.abs(self.contrast)


class BoostingObjective:
    r"""The logistic loss summed over rows, plus the weighted penalty on the same scale.

    Parameters
    ----------
    rows : TrainingRows
        Labels and weights.
    fairness_weight : float
        The paper's lambda.
    penalty : TreePenalty, optional
        Not needed where the weight is 0.
    learning_rate : float, default=1.0
        What LightGBM multiplies its steps by.
    scale_pos_weight : float, default=1.0
        What the loss of positive rows is multiplied by; the penalty is not.

    Notes
    -----
    With :math:`p = 1 / (1 + e^{-z})` the penalty's gradient in the margin :math:`z` is
    :math:`p (1 - p)` times that in :math:`p`, and its curvature :math:`(p (1 - p))^2` times.
    LightGBM sums over rows, so the penalty, a mean, is multiplied by the sum of the weights.

    The penalty's curvature is multiplied by the learning rate: where the penalty dominates, the
    shortened step is then the one that minimises the quadratic above, so the penalty falls as
    fast as that bound allows. Without it trees stall long before the loss is learned.
    """

    def __init__(
        self,
        rows: TrainingRows,
        fairness_weight: float,
        penalty: TreePenalty | None,
        learning_rate: float = 1.0,
        scale_pos_weight: float = 1.0,
    ) -> None:
        self.signs = 2.0 * rows.labels - 1.0
        self.mass = rows.mass * np.where(rows.labels > 0.0, scale_pos_weight, 1.0)
        self.total = rows.mass.sum()
        self.fairness_weight, self.learning_rate = fairness_weight, learning_rate
        self.penalty = penalty if fairness_weight > 0.0 else None

    def values(self, margins: FloatArray) -> FloatArray:
        """Give the mean loss and the weighted penalty; their sum is minimised."""
        loss = self.mass @ np.logaddexp(0.0, -self.signs * margins) / self.total
        gap = 0.0 if self.penalty is None else self.penalty.value(expit(margins))
        return np.array([loss, self.fairness_weight * gap])

    def derivatives(self, margins: FloatArray, *, penalized: bool = True) -> Derivatives:
        """Give gradient and curvature in the margins, of the whole or of the loss alone."""
        # LightGBM's own way to compute them, so that weight 0 is its model to the last bit.
        response = -self.signs / (1.0 + np.exp(self.signs * margins))
        slope = np.abs(response) * (1.0 - np.abs(response))
        gradient, curvature = self.mass * response, self.mass * slope
        if self.penalty is not None and penalized:
            first, second = self.penalty.derivatives(expit(margins))
            scale = self.fairness_weight * self.total
            gradient += scale * first * slope
            curvature += self.learning_rate * scale * second * slope**2
        return gradient, curvature
