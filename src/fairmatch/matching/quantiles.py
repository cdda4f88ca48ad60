"""The matching of people at the same quantile of their group's scores."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairmatch.matching.coupling import Coupling
from fairmatch.matching.parts import PartRows, couple_parts, plan_parts
from fairmatch.matching.solver import EXACT
from fairmatch.matching.staircase import Staircase
from fairmatch.matching.ties import settled
from fairmatch.tables.arrays import (
    BoolArray,
    FloatArray,
    read_features,
    read_labels,
    read_scores,
    read_weights,
)
from fairmatch.tables.criterion import Criterion, read_criterion
from fairmatch.tables.groups import Groups, read_groups


@dataclass(frozen=True, eq=False)
class ScoredParts:
    """The checked scores of a table, and the parts in which they are compared.

    Attributes
    ----------
    scores : array of shape (n_rows,)
        Score of every row.
    groups : Groups
        Group of every row.
    weights : array of shape (n_rows,), or None
        Weight of every row. None counts every row once.
    parts : list of PartRows
        The rows that are matched with each other.
    """

    scores: FloatArray
    groups: Groups
    weights: FloatArray | None
    parts: list[PartRows]

    @classmethod
    def read(
        cls,
        y_score: ArrayLike,
        sensitive_features: ArrayLike,
        *,
        y_true: ArrayLike | None = None,
        criterion: str | Criterion = "demographic_parity",
        reference: Any = None,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = 1,
    ) -> "ScoredParts":
        """Read the arguments of `fair_matching` with the same names, as the caller passed them."""
        scores = read_scores(y_score)
        groups = read_groups(sensitive_features, n_rows=len(scores))
        weights = read_weights(sample_weight, n_rows=len(scores))
        criterion = read_criterion(criterion)
        positive: BoolArray | None = None
        if criterion.needs_labels and y_true is not None:
            positive = read_labels(y_true, n_rows=len(scores), pos_label=pos_label)
        parts = plan_parts(
            groups, criterion=criterion, positive=positive, weights=weights, reference=reference
        )
        return cls(scores, groups, weights, parts)

    def staircase(self, part: PartRows) -> Staircase:
        """Return the monotone matching of one part."""
        return Staircase(self.scores, part.in_order, self.weights)


def fair_matching(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    *,
    X: ArrayLike | None = None,
    y_true: ArrayLike | None = None,
    criterion: str | Criterion = "demographic_parity",
    reference: Any = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = 1,
    tolerance: float = EXACT,
) -> Coupling:
    r"""Match people who stand at the same quantile of their group's scores.

    A model's scores imply this matching. It shows which people of one group the model treats like
    which people of another. Every group is matched with the reference group.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or 0/1 decisions.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    X : array-like of shape (n_rows, n_features), optional
        Encoded features. Tied scores leave the partners open. With X, each tied block is matched
        at the least transport cost. Without X, it is matched by row order.
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
    tolerance : float, default=1e-9
        Relative duality gap to which tied blocks are solved.

    Returns
    -------
    Coupling
        A coupling from every other group to the reference group. Its ``undetermined`` is the share
        of the mass that was matched by row order. `transport_cost_range` shows how much that can
        change a transport cost.

    Notes
    -----
    Definition 3.4 and Proposition 3.5 of the paper: :math:`T^f = f_{s'}^{-1} \circ F_{s'}^{-1}
    \circ F_s \circ f_s`. For groups of different sizes the two sorted quantile functions are
    merged, and mass is split. This solves the one-dimensional Kantorovich problem in O(n log n),
    without a linear program. The matched gap of every part is the Wasserstein parity gap of its
    two groups.

    Examples
    --------
    >>> pairs = fair_matching([0.1, 0.9, 0.3, 0.2, 0.4], ["a", "a", "b", "b", "b"])
    >>> for i, j, mass in zip(pairs.source_index, pairs.target_index, pairs.mass):
    ...     print(i, j, round(float(mass), 3))
    0 3 0.333
    0 2 0.167
    1 2 0.167
    1 4 0.333
    """
    given = ScoredParts.read(
        y_score,
        sensitive_features,
        y_true=y_true,
        criterion=criterion,
        reference=reference,
        sample_weight=sample_weight,
        pos_label=pos_label,
    )
    features = None if X is None else read_features(X, n_rows=len(given.scores))

    def couple(part: PartRows) -> Coupling:
        staircase = given.staircase(part)
        if features is None or not staircase.open_runs:
            pairs = *staircase.pairs, staircase.mass
            return part.coupling(*pairs, given.groups, undetermined=staircase.open_mass)
        return part.coupling(*settled(staircase, features, tolerance), given.groups)

    return couple_parts(given.parts, couple)


@dataclass(frozen=True)
class CostRange:
    """The range of transport costs that a model's fair matching can have.

    Attributes
    ----------
    low, high : float
        Least and greatest cost over all ways to match people with tied scores.
    undetermined : float
        Share of the mass that ties leave open. If it is 0, the two costs are equal.
    """

    low: float
    high: float
    undetermined: float


def transport_cost_range(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    X: ArrayLike,
    *,
    y_true: ArrayLike | None = None,
    criterion: str | Criterion = "demographic_parity",
    reference: Any = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = 1,
    tolerance: float = EXACT,
) -> CostRange:
    """Compute the least and the greatest transport cost of a model's fair matching.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or 0/1 decisions.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    X : array-like of shape (n_rows, n_features)
        Encoded features.
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
    tolerance : float, default=1e-9
        Relative duality gap to which tied blocks are solved.

    Returns
    -------
    CostRange
        The least and the greatest cost, and the share of the mass that ties leave open.

    Examples
    --------
    Decisions alone leave open which accepted people are matched with each other:

    >>> transport_cost_range([1, 1, 1, 1], [0, 0, 1, 1], [[0.0], [1.0], [0.0], [1.0]])
    CostRange(low=0.0, high=1.0, undetermined=1.0)
    """
    given = ScoredParts.read(
        y_score,
        sensitive_features,
        y_true=y_true,
        criterion=criterion,
        reference=reference,
        sample_weight=sample_weight,
        pos_label=pos_label,
    )
    features = read_features(X, n_rows=len(given.scores))
    costs, undetermined = np.zeros(2), 0.0
    for part in given.parts:
        staircase = given.staircase(part)
        undetermined += part.weight * staircase.open_mass
        for index, farthest in enumerate((False, True)):
            pairs = settled(staircase, features, tolerance, farthest=farthest)
            coupling = part.coupling(*pairs, given.groups)
            costs[index] += part.weight * coupling.transport_cost(features)
    return CostRange(float(costs[0]), float(costs[1]), undetermined)
