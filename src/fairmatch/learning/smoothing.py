"""Smoothed targets: near a model's scores, and similar for matched people."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import cg
from scipy.special import expit, logit, softmax
from sklearn.utils import _safe_indexing

from fairmatch.exceptions import InputError, SolverError
from fairmatch.learning.learners import Learner
from fairmatch.learning.reading import labels_of
from fairmatch.matching.coupling import Coupling
from fairmatch.people.checks import BoolArray, FloatArray
from fairmatch.people.people import IndexArray, People

# Relative residual of the solution, and the greatest number of steps to reach it.
_PRECISION = 1e-10
_MOST_STEPS = 20_000
# Probabilities are kept this far from 0 and 1 before their log-odds are taken.
_EDGE = 1e-6


def smooth_scores(
    scores: FloatArray,
    coupling: Coupling,
    fairness_weights: Sequence[float],
    weights: FloatArray | None = None,
) -> FloatArray:
    r"""Compute targets that are near the scores and similar for matched people, for every weight.

    Scores are any finite numbers of the rows that were matched, or their class probabilities. The
    targets have one axis more, for the weights. They stay within the range of the scores, and those
    of class probabilities sum to 1. Raises `SolverError` if the solver does not reach ten digits
    within 20,000 steps.

    Notes
    -----
    The targets minimise

    .. math:: \sum_i w_i (t_i - \eta_i)^2 + \lambda \sum_{ij} \Gamma_{ij} (t_i - t_j)^2

    for scores :math:`\eta`, weights w that sum to 1 and a coupling :math:`\Gamma`. This is the
    objective of Fairness Through Matching (Section 4.3 of the paper) with squared loss and squared
    differences. It is minimised over all numbers, not only over the scores that a model can
    produce. With W the diagonal matrix of weights and L the Laplacian of the graph of matched
    people, the targets solve the sparse system :math:`(W + \lambda L) t = W \eta`. The solver is
    conjugate gradients. Each target is a weighted mean of scores, so it stays in their range, and a
    target of class probabilities is again a vector of probabilities. Rows without a match keep
    their scores.

    Examples
    --------
    >>> pairs = Coupling([0], [1], [1.0], n_rows=3, groups=("a", "b"))
    >>> smooth_scores(np.array([0.0, 1.0, 0.5]), pairs, [0.0, 1.0]).round(3).tolist()
    [[0.0, 1.0, 0.5], [0.429, 0.571, 0.5]]
    """
    mass = np.ones(len(scores)) if weights is None else weights
    mass = mass / mass.sum()
    one_way = coupling.to_sparse()
    both = (one_way + one_way.T).tocsr()
    degrees = np.asarray(both.sum(axis=1)).ravel()
    rows = np.flatnonzero(degrees > 0.0)
    mass = mass[rows]
    if (mass <= 0.0).any():
        raise InputError(
            f"{int((mass <= 0.0).sum())} matched rows have a sample_weight of zero, but a matched "
            "row needs a positive weight. Match only rows with positive weight, or leave the "
            "weights out."
        )
    laplacian = (sparse.diags_array(degrees[rows]) - both[rows][:, rows]).tocsr()
    targets = np.stack([scores] * len(fairness_weights))
    for target, fairness_weight in zip(targets, map(float, fairness_weights), strict=True):
        if fairness_weight > 0.0 and target.ndim == 2:
            columns = [_solve(laplacian, mass, own, fairness_weight) for own in scores[rows].T]
            # The sum is 1 up to the precision of the solver.
            target[rows] = np.transpose(columns / np.sum(columns, axis=0))
        elif fairness_weight > 0.0:
            target[rows] = _solve(laplacian, mass, scores[rows], fairness_weight)
    return targets


def _solve(
    laplacian: sparse.csr_array, mass: FloatArray, scores: FloatArray, fairness_weight: float
) -> FloatArray:
    """Return the targets of matched rows."""
    low, high = scores.min(), scores.max()
    if low == high:
        return scores
    # Centred at the middle of the range, the scores are solved relative to their spread.
    start = scores - (low + high) / 2.0
    matrix = (sparse.diags_array(mass) + fairness_weight * laplacian).tocsr()
    found, failed = cg(
        matrix,
        mass * start,
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
    return np.asarray(np.clip(found + (low + high) / 2.0, low, high))


def smoother(
    learner: Learner,
    table: Any,
    people: People,
    scores: FloatArray,
    coupling: Coupling,
    compared: BoolArray | None,
) -> Callable[[float], FloatArray]:
    r"""Return a function from a positive fairness weight to the targets of all rows.

    ``compared`` are the rows that a matching without a sample would match. What does not depend on
    the fairness weight is computed once.

    Notes
    -----
    `smooth_scores` computes the targets of matched rows. If only a sample is matched, its rows
    carry the weight of all rows with their group and label. Let :math:`f_\eta` and :math:`f_t` be
    the learner fitted on the scores and on the targets of the sample. The target of a row outside
    the sample is :math:`\eta + f_t(x) - f_\eta(x)`, computed in log-odds if scores are
    probabilities, and in logarithms if they are those of several classes.
    """
    inside = np.zeros(len(people), dtype=bool)
    inside[coupling.source_index] = inside[coupling.target_index] = True
    left = np.flatnonzero(~inside & (False if compared is None else compared))
    if not len(left):
        return lambda weight: smooth_scores(scores, coupling, [weight], people.weights)[0]
    sample, unknown = np.flatnonzero(inside), _safe_indexing(table, left)
    kept = people.take(sample)
    fit = learner.softly(_safe_indexing(table, sample), labels_of(kept).values, kept.weights)
    carried, outcome = _carried(people, sample, left), learner.outcome

    def unbounded(numbers: FloatArray) -> FloatArray:
        if not outcome.decides:
            return numbers
        chances = np.clip(numbers, _EDGE, 1.0 - _EDGE)
        return np.asarray(np.log(chances) if outcome.several else logit(chances))

    def learned(numbers: FloatArray) -> FloatArray:
        return unbounded(learner.standard(learner.raw(fit(numbers[sample]), unknown)))

    before = unbounded(scores[left]) - learned(scores)

    def targets(weight: float) -> FloatArray:
        (found,) = smooth_scores(scores, coupling, [weight], carried)
        moved = before + learned(found)
        if outcome.several:
            moved = softmax(moved, axis=1)
        found[left] = expit(moved) if outcome.decides and not outcome.several else moved
        return np.asarray(found)

    return targets


def _carried(people: People, sample: IndexArray, left: IndexArray) -> FloatArray:
    """Return weights in which the sample carries the weight of the rows outside it."""
    labels = labels_of(people)
    own = labels.positive if labels.classes is None else labels.values.astype(np.intp)
    strata = people.groups.n_groups * own + people.groups.codes
    weights, size = people.mass.copy(), int(strata.max()) + 1
    inside = np.bincount(strata[sample], weights[sample], minlength=size)
    outside = np.bincount(strata[left], weights[left], minlength=size)
    weights[sample] *= 1.0 + (outside / np.where(inside > 0.0, inside, 1.0))[strata[sample]]
    weights[left] = 0.0
    return weights
