"""Who is matched with whom: by score quantiles, or by optimal transport."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairmatch.exceptions import GroupError, InputError
from fairmatch.matching.coupling import Certificate, Coupling, IndexArray
from fairmatch.matching.solver import EXACT, solve_transport
from fairmatch.matching.staircase import Staircase, rows_with_mass
from fairmatch.matching.ties import settled, staircase_coupling
from fairmatch.tables.arrays import (
    FloatArray,
    read_column,
    read_features,
    read_labels,
    read_scores,
    read_weights,
)
from fairmatch.tables.groups import Groups, read_groups
from fairmatch.tables.parameters import check_count, check_number, read_generator


def fair_matching(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    *,
    X: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    tolerance: float = EXACT,
) -> Coupling:
    r"""Match people of the two groups who stand at the same quantile of their group's scores.

    This is the matching that a model's scores imply: it shows which person of one group the model
    treats like which person of the other.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or 0/1 decisions.
    sensitive_features : array-like of shape (n_rows,)
        Group of every row; two groups.
    X : array-like of shape (n_rows, n_features), optional
        Encoded features. Tied scores leave the partners open; with X each tied block is matched
        at least transport cost, without X by row order.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    tolerance : float, default=1e-9
        Relative duality gap to which tied blocks are solved.

    Returns
    -------
    Coupling
        From the group with the smaller label to the other. Its ``undetermined`` is the share of
        the mass that was matched by row order; `transport_cost_range` tells what that can do to
        a transport cost.

    Notes
    -----
    Definition 3.4 and Proposition 3.5 of the paper: :math:`T^f = f_{s'}^{-1} \circ F_{s'}^{-1}
    \circ F_s \circ f_s`. For groups of different sizes the two sorted quantile functions are
    merged and mass is split, which solves the one-dimensional Kantorovich problem without a
    linear program, in O(n log n). Its matched gap is the Wasserstein parity gap.

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
    staircase = Staircase(y_score, sensitive_features, sample_weight)
    if X is None or not staircase.open_runs:
        return staircase_coupling(staircase, *staircase.pairs, staircase.mass, staircase.open_mass)
    return settled(staircase, read_features(X, n_rows=staircase.n_rows), tolerance)


@dataclass(frozen=True)
class CostRange:
    """Transport costs that a model's fair matching can have.

    Attributes
    ----------
    low, high : float
        Least and greatest cost over all ways to match people with tied scores.
    undetermined : float
        Share of the mass that ties leave open; the two costs are equal where it is 0.
    """

    low: float
    high: float
    undetermined: float


def transport_cost_range(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    X: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    tolerance: float = EXACT,
) -> CostRange:
    """Find the least and the greatest transport cost of a model's fair matching.

    Parameters
    ----------
    y_score, sensitive_features, X, sample_weight, tolerance
        As in `fair_matching`.

    Examples
    --------
    Decisions alone do not say who of the accepted is matched with whom:

    >>> transport_cost_range([1, 1, 1, 1], [0, 0, 1, 1], [[0.0], [1.0], [0.0], [1.0]])
    CostRange(low=0.0, high=1.0, undetermined=1.0)
    """
    staircase = Staircase(y_score, sensitive_features, sample_weight)
    features = read_features(X, n_rows=staircase.n_rows)
    low, high = (
        settled(staircase, features, tolerance, farthest=farthest).transport_cost(features)
        for farthest in (False, True)
    )
    return CostRange(low, high, staircase.open_mass)


@dataclass(frozen=True)
class BatchEstimate:
    """A transport cost estimated on random mini-batches.

    Attributes
    ----------
    mean, standard_error : float
        Over the batches.
    costs : array of shape (n_batches,)
        Cost in each batch.
    """

    mean: float
    standard_error: float
    costs: FloatArray


def minibatch_transport_cost(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    X: ArrayLike,
    *,
    batch_size: int = 1024,
    n_batches: int = 100,
    random_state: int | np.random.Generator | None = None,
) -> BatchEstimate:
    r"""Estimate the transport cost of a model's fair matching as the paper does.

    Draws ``batch_size`` people of each group, matches equal ranks, and averages the squared
    distance over ``n_batches`` draws. `fair_matching` gives the exact value for all rows; the
    estimate differs from it by a bias that falls as batches grow (Remark A.2, whose second
    exponent is printed with the wrong sign: the rate is
    :math:`n_0^{-1/2} + n_1^{-1/2}`, so :math:`m^{-1/2}`).

    Parameters
    ----------
    y_score, sensitive_features, X
        As in `fair_matching`.
    batch_size : int, default=1024
        People drawn from each group, without replacement.
    n_batches : int, default=100
        Number of draws.
    random_state : int or numpy Generator, optional
        Same seed, same draws.

    Examples
    --------
    >>> scores = [0.1, 0.2, 0.1, 0.2]
    >>> minibatch_transport_cost(scores, [0, 0, 1, 1], [[0.0], [1.0], [0.0], [3.0]],
    ...                          batch_size=2, n_batches=5, random_state=0).mean
    2.0
    """
    scores = read_scores(y_score)
    groups = read_groups(sensitive_features, n_rows=len(scores))
    features = read_features(X, n_rows=len(scores))
    generator = read_generator(random_state)
    rows = groups.rows(0), groups.rows(1)
    _check_batch(batch_size, groups)
    check_count("n_batches", n_batches)
    costs = np.empty(n_batches)
    for batch in range(n_batches):
        drawn = [generator.choice(r, size=batch_size, replace=False) for r in rows]
        source, target = (r[np.argsort(scores[r], kind="stable")] for r in drawn)
        costs[batch] = ((features[source] - features[target]) ** 2).sum(axis=1).mean()
    error = costs.std(ddof=1) / np.sqrt(n_batches) if n_batches > 1 else float("nan")
    return BatchEstimate(float(costs.mean()), float(error), costs)


def _check_batch(batch_size: int, groups: Groups) -> None:
    check_count("batch_size", batch_size)
    for code, label in enumerate(groups.labels):
        size = len(groups.rows(code))
        if size < batch_size:
            raise GroupError(
                f"Group {label!r} has {size} rows, fewer than batch_size={batch_size}. Choose a "
                f"batch size of at most {size}."
            )


class Matcher(Protocol):
    """Anything that matches the people of two groups."""

    def match(
        self,
        X: ArrayLike,
        sensitive_features: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Coupling:
        """Match the rows of a table."""


@dataclass(frozen=True)
class OptimalTransportMatcher:
    r"""Match people of the two groups at the least total distance.

    Parameters
    ----------
    label_weight : float, default=0.0
        The paper's alpha: what it costs to match people with different labels. 0 is the marginal
        map, more is the joint map.
    batch_size : int, optional
        None matches all the rows at once. A number matches random batches of that many people
        of each group, enough of them that every row of the larger group is used; the marginals
        are then approximate, and the coupling's ``marginal_error`` says by how much.
    tolerance : float, default=1e-9
        Relative duality gap that must be proven; 1e-9 counts as exact. A larger one stops as
        soon as it is proven, which saves a little time on large tables.
    random_state : int, default=0
        Seed of the batches, and of the solver's own samples, which decide the way it takes and,
        where several plans are optimal, which of them is found.

    Notes
    -----
    Minimises, over all couplings of the two groups (equations 5 and 6, and Appendix C),

    .. math:: \mathbb{E} \|x_0 - x_1\|^2 + \alpha |y_0 - y_1|.

    With two classes :math:`|y_0 - y_1| = (y_0 - y_1)^2`, so the joint cost is a squared distance
    too: labels enter as one more column, :math:`\sqrt\alpha\, y`.

    Examples
    --------
    >>> X, groups, y = [[0.0], [1.0], [0.1], [0.9]], [0, 0, 1, 1], [0, 1, 1, 0]
    >>> OptimalTransportMatcher().match(X, groups).target_index.tolist()
    [2, 3]
    >>> OptimalTransportMatcher(label_weight=100.0).match(X, groups, y).target_index.tolist()
    [3, 2]
    """

    label_weight: float = 0.0
    batch_size: int | None = None
    tolerance: float = EXACT
    random_state: int = 0

    def __post_init__(self) -> None:
        check_number("label_weight", self.label_weight, "[0, inf)")
        check_count("batch_size", self.batch_size, optional=True)
        check_number("tolerance", self.tolerance, "(0, 1)")
        check_count("random_state", self.random_state, 0)

    def match(
        self,
        X: ArrayLike,
        sensitive_features: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Coupling:
        """Match the rows of a table.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Encoded features; distances are taken as they are.
        sensitive_features : array-like of shape (n_rows,)
            Group of every row.
        y : array-like of shape (n_rows,), optional
            Labels of two classes; needed where ``label_weight`` is positive.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.

        Returns
        -------
        Coupling
            With the solver's certificate.
        """
        points = self.points(X, y)
        groups = read_groups(sensitive_features, n_rows=len(points))
        weights = read_weights(sample_weight, n_rows=len(points))
        rows = rows_with_mass(groups, weights)
        if self.batch_size is not None:
            return self._match_batches(points, groups, rows, weights)
        masses = (
            (None, None) if weights is None else tuple(weights[r] / weights[r].sum() for r in rows)
        )
        plan = solve_transport(
            points[rows[0]],
            points[rows[1]],
            *masses,
            tolerance=self.tolerance,
            random_state=self.random_state,
        )
        return Coupling(
            rows[0][plan.source],
            rows[1][plan.target],
            plan.mass,
            n_rows=len(points),
            groups=groups.labels,
            certificate=Certificate(plan.cost, plan.bound, plan.solver),
        )

    def points(self, X: ArrayLike, y: ArrayLike | None) -> FloatArray:
        """Features and labels as points whose squared distance is the matching cost."""
        features = read_features(X)
        if self.label_weight == 0.0:
            return features
        if y is None:
            raise InputError(
                f"label_weight={self.label_weight:g} asks for the joint map, which needs the "
                "labels: pass y, or use label_weight=0 for the marginal map."
            )
        # Which of the two classes counts as positive makes no difference to a distance.
        one_class = read_column(y, "y")[0]
        is_one = read_labels(y, n_rows=len(features), pos_label=one_class, name="y")
        return np.column_stack([features, np.sqrt(self.label_weight) * is_one])

    def pair(self, source_points: FloatArray, target_points: FloatArray) -> IndexArray:
        """Match equally many `points` one to one: the target position of every source."""
        plan = solve_transport(source_points, target_points, tolerance=self.tolerance)
        partner = np.empty(len(source_points), dtype=np.intp)
        partner[plan.source] = plan.target
        return partner

    def _match_batches(
        self,
        points: FloatArray,
        groups: Groups,
        rows: tuple[IndexArray, IndexArray],
        weights: FloatArray | None,
    ) -> Coupling:
        assert self.batch_size is not None
        size = min(self.batch_size, len(rows[0]), len(rows[1]))
        n_batches = -(-max(len(rows[0]), len(rows[1])) // size)
        generator = np.random.default_rng(self.random_state)
        drawn = [_draw(r, size, n_batches, weights, generator) for r in rows]
        pairs, costs, bounds = [], [], []
        for source, target in zip(*drawn, strict=True):
            plan = solve_transport(points[source], points[target], tolerance=self.tolerance)
            pairs.append((source[plan.source], target[plan.target], plan.mass / n_batches))
            costs.append(plan.cost)
            bounds.append(plan.bound)
        source, target, mass = (np.concatenate(part) for part in zip(*pairs, strict=True))
        wanted = np.ones(len(points)) if weights is None else weights
        certificate = Certificate(
            float(np.mean(costs)), float(np.mean(bounds)), f"{n_batches} batches of {size}"
        )
        coupling = Coupling(
            source,
            target,
            mass,
            n_rows=len(points),
            groups=groups.labels,
            certificate=certificate,
        )
        errors = (
            _total_variation(side, r, wanted)
            for side, r in zip(coupling.marginals(), rows, strict=True)
        )
        return replace(coupling, marginal_error=max(errors))


def _draw(
    rows: IndexArray,
    size: int,
    n_batches: int,
    weights: FloatArray | None,
    generator: np.random.Generator,
) -> NDArray[np.intp]:
    """Draw batches of rows: reshuffled decks, or with probability proportional to weight."""
    if weights is not None:
        shares = weights[rows] / weights[rows].sum()
        return generator.choice(rows, size=(n_batches, size), p=shares)
    decks = -(-n_batches * size // len(rows))
    drawn = np.concatenate([generator.permutation(rows) for _ in range(decks)])
    return drawn[: n_batches * size].reshape(n_batches, size)


def _total_variation(mass: FloatArray, rows: IndexArray, wanted: FloatArray) -> float:
    return float(np.abs(mass[rows] - wanted[rows] / wanted[rows].sum()).sum() / 2.0)
