"""Curves from the scores of every group to their barycentre, and the gap that they leave."""

import numpy as np

from fairmatch.learning.anymodel.curves import Curve, Distribution
from fairmatch.tables.arrays import FloatArray


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
