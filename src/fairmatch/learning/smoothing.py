"""Smoothed targets: near a model's scores, and similar for matched people."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.linalg import cg
from scipy.special import expit, logit
from sklearn.utils import _safe_indexing

from fairmatch.exceptions import InputError, SolverError
from fairmatch.learning.learners import Learner, Output
from fairmatch.learning.penalties import Transport
from fairmatch.learning.reading import encoded, labels_of
from fairmatch.matching.coupling import Coupling, IndexArray
from fairmatch.people.checks import BoolArray, FloatArray, check_weights, read_numbers, read_weights
from fairmatch.people.people import People

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


# Probabilities are kept this far from 0 and 1 before their log-odds are taken.
_EDGE = 1e-6


@dataclass(frozen=True, eq=False)
class Matched:
    """A coupling of rows, and the rows that it represents.

    Attributes
    ----------
    coupling : Coupling
        Who is matched with whom.
    compared : array of bool, shape (n_rows,), or None
        Rows that a matching without a sample would match. None stands for the rows of the coupling.
    """

    coupling: Coupling
    compared: BoolArray | None = None

    @property
    def rows(self) -> BoolArray:
        """Which rows are matched."""
        found = np.zeros(self.coupling.n_rows, dtype=bool)
        found[self.coupling.source_index] = True
        found[self.coupling.target_index] = True
        return found


def match_compared(transport: Transport, rows: People, coupling: Coupling | None) -> Matched:
    """Return the matching of rows, from a ready coupling or from a new one."""
    if coupling is not None:
        transport.refuse_other(coupling, rows)
        return Matched(coupling)
    compared = np.zeros(len(rows), dtype=bool)
    for part in transport.parts(rows):
        compared[part.source_rows] = True
        compared[part.target_rows] = True
    return Matched(transport.match(rows), compared)


def refuse_scores(score_weight: float) -> None:
    """Raise if people are matched on scores, which held-out rows do not have."""
    if score_weight > 0.0:
        raise InputError(
            f"With score_weight={score_weight:g} people are matched on scores of the training "
            "rows, which held-out rows do not have, so matched_parity_gap cannot be the "
            "gap_measure. Use score_weight=0, or another gap_measure."
        )


def smooth_matched(
    scores: FloatArray,
    matched: Matched,
    fairness_weights: Sequence[float],
    rows: People,
    learner: Learner,
    output: Output,
) -> FloatArray:
    r"""Compute the targets of all rows, also of rows outside the sample that is matched.

    Parameters
    ----------
    scores : array of shape (n_rows,)
        Out-of-fold scores.
    matched : Matched
        The coupling of all rows, or of a sample.
    fairness_weights : sequence of float
        How much the differences of matched people count.
    rows : People
        The rows.
    learner : Learner
        The learner, which predicts the change of rows outside the sample.
    output : Output
        The kind of the learner's output.

    Returns
    -------
    array of shape (n_weights, n_rows)
        The targets.

    Notes
    -----
    `smooth_scores` computes the targets of matched rows. If only a sample is matched, its rows
    carry the weight of all rows with their group and label. Let :math:`f_\eta` and :math:`f_t` be
    the learner fitted on the scores and on the targets of the sample. The target of a row outside
    the sample is :math:`\eta + f_t(x) - f_\eta(x)`, computed in log-odds if scores are
    probabilities.
    """
    inside = matched.rows
    left = np.flatnonzero(~inside & (False if matched.compared is None else matched.compared))
    if not len(left):
        return smooth_scores(scores, matched.coupling, fairness_weights, sample_weight=rows.weights)
    sample = np.flatnonzero(inside)
    weights = _carried(rows, sample, left)
    targets = smooth_scores(scores, matched.coupling, fairness_weights, sample_weight=weights)
    table = encoded(rows).inputs.table
    known, unknown = _safe_indexing(table, sample), _safe_indexing(table, left)
    given = None if rows.weights is None else rows.weights[sample]
    labels = output.own(labels_of(rows).values)
    soft = learner.soften(known, labels[sample], given, np.unique(labels))

    def learned(numbers: FloatArray) -> FloatArray:
        model: Any = soft.fit(output.soft(numbers[sample]))
        return _unbounded(output.standard(output.raw(model, unknown)), output)

    before = learned(scores)
    for target in targets:
        moved = _unbounded(scores[left], output) + learned(target) - before
        target[left] = expit(moved) if output.scale == "probability" else moved
    return targets


def _unbounded(scores: FloatArray, output: Output) -> FloatArray:
    """Return scores on an unbounded scale: log-odds of probabilities, others as they are."""
    if output.scale != "probability":
        return scores
    return np.asarray(logit(np.clip(scores, _EDGE, 1.0 - _EDGE)))


def _carried(rows: People, sample: IndexArray, left: IndexArray) -> FloatArray:
    """Return weights in which the sample carries the weight of the rows outside it."""
    strata = rows.groups.n_groups * labels_of(rows).positive + rows.groups.codes
    weights, size = rows.mass.copy(), int(strata.max()) + 1
    inside = np.bincount(strata[sample], weights[sample], minlength=size)
    outside = np.bincount(strata[left], weights[left], minlength=size)
    weights[sample] *= 1.0 + (outside / np.where(inside > 0.0, inside, 1.0))[strata[sample]]
    weights[left] = 0.0
    return weights
