"""The least transport cost at every mean score gap, as one curve per model."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairmatch.matching.nearest import part_frontier, read_scored
from fairmatch.matching.parts import PartRows
from fairmatch.matching.quantiles import ScoredParts
from fairmatch.matching.solver import EXACT
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.criterion import Criterion
from fairmatch.tables.parameters import check_number
from fairmatch.tables.points import Points

#: The slack at which a model's position is read. docs/evidence/nearest.md shows why.
POSITION_SLACK = 0.005


@dataclass(frozen=True, eq=False)
class MatchingCurve:
    r"""The least transport cost of a matching at every allowed mean score gap.

    The curve is convex. It falls from the nearest fair matching to the nearest matching of all.
    `matching_curve` computes it.

    Attributes
    ----------
    slack : array of shape (n_points,)
        How far the mean score gap may exceed the least possible one. The first slack is 0.
    cost : array of shape (n_points,)
        The least transport cost at that slack.
    least_gap : float
        The least possible mean score gap. For two groups it is their Wasserstein parity gap. With
        several parts it is the weighted mean of theirs.
    random_cost : float
        Mean squared distance between people who are matched at random.
    groups : tuple
        Labels of the source group and of the target group. With several parts, these are the
        labels of all groups.
    label : bool or None
        The class whose people are matched: True is Y = 1, False is Y = 0, None is everybody.
    weight : float
        Weight of this curve in the curve that it is a part of.
    members : tuple of MatchingCurve
        The parts, if there are several. Otherwise it is empty.
    parts : tuple of MatchingCurve
        The curves whose weighted sum this is. A curve of two groups is its own only part.

    Examples
    --------
    >>> from fairmatch import matching_curve
    >>> scores, groups, X = [0.0, 0.5, 0.4, 1.0], [0, 0, 1, 1], [[0.0], [1.0], [1.0], [0.0]]
    >>> curve = matching_curve(scores, groups, X)
    >>> curve.gap.round(3).tolist(), curve.cost.tolist()
    ([0.45, 0.55], [1.0, 0.0])
    >>> curve.position(0.0), round(curve.position(0.05), 3)
    (2.0, 1.0)
    """

    slack: FloatArray
    cost: FloatArray
    least_gap: float
    random_cost: float
    groups: tuple[Any, ...]
    label: bool | None = None
    weight: float = 1.0
    members: tuple["MatchingCurve", ...] = ()

    def __repr__(self) -> str:
        return (
            f"<MatchingCurve of {len(self.cost)} points: cost {self.cost[0]:.4g} at a mean score "
            f"gap of {self.least_gap:.3f}, down to {self.nearest_cost:.4g} at {self.gap[-1]:.3f}>"
        )

    @property
    def parts(self) -> tuple["MatchingCurve", ...]:
        """The curves whose weighted sum this is. A curve of two groups is its own only part."""
        return self.members or (self,)

    @property
    def gap(self) -> FloatArray:
        """The allowed mean score gap at every point."""
        return self.least_gap + self.slack

    @property
    def nearest_cost(self) -> float:
        """The cost of the nearest matching, which does not depend on the scores."""
        return float(self.cost[-1])

    def cost_at(self, slack: float) -> float:
        """Return the least cost at a slack. Between two points it is interpolated.

        Parameters
        ----------
        slack : float
            How far the mean score gap may exceed the least possible one.
        """
        check_number("slack", slack, "[0, inf]")
        return float(np.interp(slack, self.slack, self.cost))

    def position(self, slack: float = POSITION_SLACK) -> float | None:
        r"""Return where the matching lies between the nearest (0) and a random one (1).

        Parameters
        ----------
        slack : float, default=0.005
            How far the mean score gap may exceed the least possible one.

        Returns
        -------
        float or None
            :math:`(C(\text{slack}) - C_\min) / (C_\text{random} - C_\min)`. It is None if all
            matchings cost the same.
        """
        span = self.random_cost - self.nearest_cost
        if span <= 1e-12 * max(self.random_cost, 1.0):
            return None
        return (self.cost_at(slack) - self.nearest_cost) / span


def matching_curve(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    X: Any,
    *,
    y_true: ArrayLike | None = None,
    criterion: str | Criterion = "demographic_parity",
    reference: Any = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = 1,
    accuracy: float = 1e-3,
    tolerance: float = EXACT,
) -> MatchingCurve:
    r"""Compute the least transport cost at every mean score gap, for the scores of a model.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or 0/1 decisions.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    X : array-like of shape (n_rows, n_features), table or Points
        The features, which decide who is near to whom. Numbers are used as they are. A table with
        categories is encoded by `TableEncoder`: numbers are scaled to [0, 1], and two different
        levels are at squared distance 2.
    y_true : array-like of shape (n_rows,), optional
        Labels of two classes. They are needed if the criterion compares people of the same class.
    criterion : str or Criterion, default="demographic_parity"
        Whom to match: everybody ("demographic_parity"), people with a positive label
        ("equal_opportunity"), or each class by itself ("equalized_odds").
    reference : a group label, optional
        The group with which every other group is matched. By default it is the largest.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    pos_label : default=1
        The label that counts as positive.
    accuracy : float, default=1e-3
        Largest error of a position on the curve. A position is never too small.
    tolerance : float, default=1e-9
        Relative duality gap to which the two ends of the curve are proven.

    Returns
    -------
    MatchingCurve
        The curve. With several parts, its cost at a slack allows every part the same slack.

    Notes
    -----
    Every point is a matching that is optimal at one price of the score gap, so it lies on the
    curve. Between two neighbours the curve lies below their chord. It lies above the line whose
    slope is the price that was tried between them. Points are added until both are close enough.

    Examples
    --------
    >>> from fairmatch import matching_curve
    >>> from fairmatch.datasets import load_german, paper_split
    >>> german = paper_split(load_german(), seed=0)
    >>> score = 0.3 + 0.4 * (german.X_test[:, 0] > 0)
    >>> curve = matching_curve(score, german.group_test, german.X_test)
    >>> bool(curve.position(0.0) > curve.position() > curve.position(0.1) >= 0.0)
    True
    """
    check_number("accuracy", accuracy, "(0, 1)")
    given, features = read_scored(
        "matching_curve",
        y_score,
        sensitive_features,
        X,
        tolerance=tolerance,
        y_true=y_true,
        criterion=criterion,
        reference=reference,
        sample_weight=sample_weight,
        pos_label=pos_label,
    )
    curves = [_part_curve(given, part, features, accuracy, tolerance) for part in given.parts]
    return curves[0] if len(curves) == 1 else _joined(curves)


def _part_curve(
    given: ScoredParts, part: PartRows, features: Points, accuracy: float, tolerance: float
) -> MatchingCurve:
    frontier = part_frontier(given, part, features, tolerance)
    random = _random_cost(given, part, features)
    frontier.refine(accuracy * max(random - frontier.nearest.cost, 0.0))
    slack, cost = _hull([(point.excess, point.cost) for point in frontier.points])
    fair, (first, second) = frontier.fairest.plan, part.in_order
    gaps = np.abs(given.scores[first[fair.source]] - given.scores[second[fair.target]])
    labels = given.groups.labels
    return MatchingCurve(
        slack,
        cost,
        float(gaps @ fair.mass),
        random,
        (labels[part.source], labels[part.target]),
        part.label,
        part.weight,
    )


def _joined(curves: list[MatchingCurve]) -> MatchingCurve:
    """Return the weighted sum of the curves of several parts."""
    slack = np.unique(np.concatenate([curve.slack for curve in curves]))
    costs = [curve.weight * np.interp(slack, curve.slack, curve.cost) for curve in curves]
    return MatchingCurve(
        slack,
        np.sum(costs, axis=0),
        sum(curve.weight * curve.least_gap for curve in curves),
        sum(curve.weight * curve.random_cost for curve in curves),
        tuple(dict.fromkeys(label for curve in curves for label in curve.groups)),
        members=tuple(curves),
    )


def _random_cost(given: ScoredParts, part: PartRows, features: Points) -> float:
    """Compute the mean squared distance between people of both groups, drawn independently."""
    sides = [features[rows] for rows in part.in_order]
    shares = [
        np.full(len(rows), 1.0) if given.weights is None else given.weights[rows]
        for rows in part.in_order
    ]
    shares = [share / share.sum() for share in shares]
    means = [share @ side.numbers for share, side in zip(shares, sides, strict=True)]
    cost = ((means[0] - means[1]) ** 2).sum()
    for share, side, mean in zip(shares, sides, means, strict=True):
        cost += (share @ (side.numbers - mean) ** 2).sum()
    for codes in zip(*(side.codes.T for side in sides), strict=True):
        # One more place, the last, is for unknown levels. Their one-hot columns are all zero.
        n_levels = int(max(code.max() for code in codes)) + 2
        one, other = (
            np.bincount(code % n_levels, share, n_levels)[:-1]
            for code, share in zip(codes, shares, strict=True)
        )
        cost += one.sum() + other.sum() - 2.0 * one @ other
    return float(cost)


def _hull(points: list[tuple[float, float]]) -> tuple[FloatArray, FloatArray]:
    """Return the points of a falling convex curve, without those that rounding puts above it."""
    kept: list[tuple[float, float]] = []
    for x, y in sorted(points):
        if kept and y >= kept[-1][1]:
            continue
        while len(kept) > 1:
            (x0, y0), (x1, y1) = kept[-2:]
            if (y1 - y0) * (x - x0) < (y - y0) * (x1 - x0):
                break
            kept.pop()
        kept.append((x, y))
    excess, cost = np.array(kept).T
    return excess, cost
