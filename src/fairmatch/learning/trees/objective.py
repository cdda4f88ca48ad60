"""The objective of boosted trees: a loss plus a weighted penalty, with its derivatives."""

import numpy as np

from fairmatch.learning.loss import LOGISTIC, Derivatives, Loss
from fairmatch.learning.penalties import TreePenalty
from fairmatch.learning.rows import TrainingRows
from fairmatch.tables.arrays import FloatArray


class BoostingObjective:
    r"""A loss summed over rows, plus the weighted penalty on the same scale.

    Parameters
    ----------
    rows : TrainingRows
        The rows, with their labels and weights.
    fairness_weight : float
        Weight of the penalty, the paper's lambda.
    penalty : TreePenalty or None
        The penalty on these rows; it may be None if the weight is 0.
    learning_rate : float, default=1.0
        Factor that LightGBM applies to its steps.
    scale_pos_weight : float, default=1.0
        Factor on the loss of positive rows; it does not change the penalty.
    loss : Loss
        The loss, which compares margins with labels.

    Notes
    -----
    With the link :math:`p(z)`, the penalty's gradient by the margin :math:`z` is :math:`p'(z)`
    times its gradient by :math:`p`, and its curvature is :math:`p'(z)^2` times. The slope
    :math:`p'` is the second derivative of the loss. LightGBM sums over rows, so the penalty, a
    mean, is multiplied by the sum of the weights.

    The penalty's curvature is multiplied by the learning rate. Where the penalty dominates, the
    shortened step then minimises the quadratic that lies above the penalty, and the penalty falls
    as fast as that bound allows. Without this factor the trees stall long before they have learned
    the loss.
    """

    def __init__(
        self,
        rows: TrainingRows,
        fairness_weight: float,
        penalty: TreePenalty | None,
        learning_rate: float = 1.0,
        scale_pos_weight: float = 1.0,
        loss: Loss = LOGISTIC,
    ) -> None:
        self.labels, self.loss = rows.labels, loss
        self.mass = rows.mass * np.where(rows.labels > 0.0, scale_pos_weight, 1.0)
        self.total = rows.mass.sum()
        self.fairness_weight, self.learning_rate = fairness_weight, learning_rate
        self.penalty = penalty if fairness_weight > 0.0 else None

    def values(self, margins: FloatArray) -> FloatArray:
        """Return the mean loss and the weighted penalty; the trees minimise their sum."""
        loss = self.mass @ self.loss.values(self.labels, margins) / self.total
        gap = 0.0 if self.penalty is None else self.penalty.value(self.loss.link(margins))
        return np.array([loss, self.fairness_weight * gap])

    def derivatives(self, margins: FloatArray, *, penalized: bool = True) -> Derivatives:
        """Return the gradient and curvature by the margins, with or without the penalty."""
        response, slope = self.loss.derivatives(self.labels, margins)
        gradient, curvature = self.mass * response, self.mass * slope
        if self.penalty is not None and penalized:
            first, second = self.penalty.derivatives(self.loss.link(margins))
            scale = self.fairness_weight * self.total
            gradient += scale * first * slope
            curvature += self.learning_rate * scale * second * slope**2
        return gradient, curvature
