"""Smoothed scores of all rows, also if only a sample of them is matched."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.utils import _safe_indexing

from fairmatch.exceptions import InputError
from fairmatch.learning.anymodel.learners import Learner
from fairmatch.learning.anymodel.outputs import Output
from fairmatch.learning.anymodel.smoothing import smooth_scores
from fairmatch.learning.comparison import Transport
from fairmatch.learning.rows import TrainingRows
from fairmatch.matching.coupling import Coupling, IndexArray
from fairmatch.tables.arrays import BoolArray, FloatArray

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


def match_compared(transport: Transport, rows: TrainingRows, coupling: Coupling | None) -> Matched:
    """Return the matching of rows, from a ready coupling or from a new one."""
    if coupling is not None:
        transport.comparison.refuse_other(coupling, rows)
        return Matched(coupling)
    compared = np.zeros(len(rows), dtype=bool)
    for part in transport.comparison.parts(rows):
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
    rows: TrainingRows,
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
    rows : TrainingRows
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
    table = rows.inputs.table
    known, unknown = _safe_indexing(table, sample), _safe_indexing(table, left)
    given = None if rows.weights is None else rows.weights[sample]
    labels = output.own(rows.labels)
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


def _carried(rows: TrainingRows, sample: IndexArray, left: IndexArray) -> FloatArray:
    """Return weights in which the sample carries the weight of the rows outside it."""
    strata = rows.groups.n_groups * rows.positive + rows.groups.codes
    weights, size = rows.mass.copy(), int(strata.max()) + 1
    inside = np.bincount(strata[sample], weights[sample], minlength=size)
    outside = np.bincount(strata[left], weights[left], minlength=size)
    weights[sample] *= 1.0 + (outside / np.where(inside > 0.0, inside, 1.0))[strata[sample]]
    weights[left] = 0.0
    return weights
