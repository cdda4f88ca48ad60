"""Smoothed targets: near a model's scores, and similar for matched people."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.linalg import cg

from fairmatch.exceptions import InputError, SolverError
from fairmatch.matching.coupling import Coupling, IndexArray
from fairmatch.tables.arrays import FloatArray, read_numbers, read_weights
from fairmatch.tables.parameters import check_weights

# Relative residual of the solution, and the greatest number of steps to reach it.
_PRECISION = 1e-10
_MOST_STEPS = 20_000


def smooth_scores(
    y_score: ArrayLike,
    coupling: Coupling,
    fairness_weights: Sequence[float],
    *,
    sample_weight: ArrayLike | None = None,
) -> FloatArray:
    r"""Compute targets that are near the scores and similar for matched people.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores of the rows that were matched; any finite numbers.
    coupling : Coupling
        Who is matched with whom.
    fairness_weights : sequence of float
        How much the differences of matched people count; 0 returns the scores.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.

    Returns
    -------
    array of shape (n_weights, n_rows)
        The targets, within the range of the scores.

    Raises
    ------
    SolverError
        If the solver does not reach ten digits within 20,000 steps.

    Notes
    -----
    The targets minimise

    .. math:: \sum_i w_i (t_i - \eta_i)^2 + \lambda \sum_{ij} \Gamma_{ij} (t_i - t_j)^2

    for scores :math:`\eta`, weights w that sum to 1 and a coupling :math:`\Gamma`. This is the
    objective of Fairness Through Matching (Section 4.3 of the paper) with squared loss and squared
    differences. It is minimised over all numbers, and not only over scores that a model can have.
    With W the diagonal matrix of weights and L the Laplacian of the graph of matched people, the
    targets solve the sparse system :math:`(W + \lambda L) t = W \eta`. The solver is conjugate
    gradients. Each target is a weighted mean of scores, so it stays in their range.

    Examples
    --------
    >>> pairs = Coupling([0], [1], [1.0], n_rows=3, groups=("a", "b"))
    >>> smooth_scores([0.0, 1.0, 0.5], pairs, [0.0, 1.0]).round(3).tolist()
    [[0.0, 1.0, 0.5], [0.429, 0.571, 0.5]]
    """
    scores = read_numbers(y_score, "y_score")
    if not np.isfinite(scores).all():
        raise InputError(
            "y_score has entries that are NaN or infinite; each must be finite. Leave those rows "
            "out."
        )
    coupling.check_rows(len(scores))
    check_weights("fairness_weight", fairness_weights, "[0, inf)")
    given = read_weights(sample_weight, n_rows=len(scores))
    weights = np.ones(len(scores)) if given is None else given
    if not weights.sum() > 0.0:
        raise InputError(
            "sample_weight sums to zero, and at least one row must count. Pass positive weights, "
            "or leave sample_weight out."
        )
    system = _System.of(coupling, weights / weights.sum())
    return np.array([system.solve(scores, float(weight)) for weight in fairness_weights])


@dataclass(frozen=True, eq=False)
class _System:
    """The matched rows, their weights, and the Laplacian of their graph."""

    rows: IndexArray
    weights: FloatArray
    laplacian: sparse.csr_array

    @classmethod
    def of(cls, coupling: Coupling, weights: FloatArray) -> "_System":
        """Return the system of a coupling."""
        mass = coupling.to_sparse()
        both = (mass + mass.T).tocsr()
        degrees = np.asarray(both.sum(axis=1)).ravel()
        rows = np.flatnonzero(degrees > 0.0)
        if (weights[rows] <= 0.0).any():
            raise InputError(
                f"{int((weights[rows] <= 0.0).sum())} matched rows have a sample_weight of zero, "
                "and matched rows must count. Match only rows with positive weight, or leave the "
                "weights out."
            )
        laplacian = sparse.diags_array(degrees[rows]) - both[rows][:, rows]
        return cls(rows, weights[rows], laplacian.tocsr())

    def solve(self, scores: FloatArray, fairness_weight: float) -> FloatArray:
        """Return the targets of all rows; rows without a match keep their scores."""
        targets = scores.copy()
        own = scores[self.rows]
        low, high = own.min(), own.max()
        if fairness_weight == 0.0 or low == high:
            return targets
        # Centred at the middle of the range, the scores are solved relative to their spread.
        start = own - (low + high) / 2.0
        matrix = (sparse.diags_array(self.weights) + fairness_weight * self.laplacian).tocsr()
        found, failed = cg(
            matrix,
            self.weights * start,
            x0=start,
            rtol=_PRECISION,
            atol=0.0,
            maxiter=_MOST_STEPS,
            M=sparse.diags_array(1.0 / matrix.diagonal()),
        )
        if failed:
            raise SolverError(
                f"With fairness weight {fairness_weight:g} the solver did not reach ten digits "
                f"within {_MOST_STEPS} steps. Use a smaller weight."
            )
        targets[self.rows] = np.clip(found + (low + high) / 2.0, low, high)
        return targets
