"""Fitting an adjustment of scores: on one table, with a strength or within a bound on the gap."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairmatch.exceptions import ConstantModelWarning, InputError, LabelError
from fairmatch.learning.anymodel.adjustment import DECISIONS, ScoreAdjustment
from fairmatch.learning.anymodel.alignment import align_groups, read_on_scale
from fairmatch.learning.anymodel.strengths import least_strength
from fairmatch.learning.anymodel.thresholds import (
    GroupThresholds,
    plain_thresholds,
    smallest_count,
    threshold_groups,
)
from fairmatch.learning.groupsizes import GroupSizes, compared_groups
from fairmatch.learning.notice import notify
from fairmatch.tables.arrays import BoolArray, FloatArray, read_labels, read_weights
from fairmatch.tables.criterion import Criterion, read_criterion
from fairmatch.tables.groups import Groups, read_groups
from fairmatch.tables.parameters import check_number, check_weights


def fit_adjustment(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    *,
    y_true: ArrayLike | None = None,
    strength: float = 1.0,
    max_gap: float | None = None,
    criterion: str | Criterion = "demographic_parity",
    decisions: str = "align",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = 1,
    scale: str = "probability",
    min_group_size: int = 2,
    small_groups: str = "error",
) -> ScoreAdjustment:
    r"""Return a fitted adjustment of a model's scores. The model itself is not needed.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores of a model, preferably for rows that it was not trained on.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    y_true : array-like of shape (n_rows,), optional
        Labels of two classes. They are needed with ``decisions="threshold"``, and with a criterion
        that compares people of the same class.
    strength : float, default=1.0
        How far to go. For an alignment, 0 does not move the scores, and 1 aligns them fully. For
        thresholds, it is the share of the gap at a threshold of one half that is taken away.
    max_gap : float, optional
        Largest allowed gap on these rows. With it, ``strength`` is not used: an alignment takes
        the least strength whose gap is at most this, and thresholds are the most accurate ones
        with such a gap. The gap is that of decisions at one half. With scale "rank" or "real" it is
        the Wasserstein gap of the adjusted scores, in their unit.
    criterion : {"demographic_parity", "equal_opportunity", "equalized_odds"}
        Whose scores or decisions are made alike. By default these are everybody's. With
        "equal_opportunity" they are those of people with a positive label. With "equalized_odds"
        they are those of each class, which only thresholds can do.
    decisions : {"align", "threshold"}, default="align"
        "align" aligns the scores of all groups. "threshold" sets one threshold per group, and bends
        the scores until every group's threshold lies at one half.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    pos_label : label, default=1
        The label that counts as positive.
    scale : {"probability", "rank", "real"}, default="probability"
        What the scores are. A "probability" lies in [0, 1]. With "rank" the scores are any numbers,
        and only their rank counts. With "real" they are numbers in a unit of their own. Thresholds
        need probabilities.
    min_group_size : int, default=2
        Smallest number of rows with which a group is compared with others.
    small_groups : {"error", "pool", "ignore"}, default="error"
        What happens to smaller groups. With "error" an error lists them. With "pool" they become
        one group, "other". With "ignore" their scores are not moved.

    Returns
    -------
    ScoreAdjustment
        The adjustment. Its ``apply`` adjusts the scores of this table or of another.

    Notes
    -----
    With t the strength, an alignment turns a score f of group s into

    .. math:: (1 - t) f + t \sum_{s'} p_{s'} Q_{s'}(F_s(f)),

    where :math:`F_s` and :math:`Q_s` are the distribution and quantile functions of the group's
    scores, and :math:`p_s` is its share. Full strength of thresholds allows a gap of one person in
    the smallest group.

    Examples
    --------
    >>> adjustment = fit_adjustment(
    ...     [0.2, 0.4, 0.5, 0.9], ["a", "a", "b", "b"], y_true=[0, 1, 0, 1], max_gap=0.0,
    ...     decisions="threshold")
    >>> (adjustment.apply([0.2, 0.4, 0.5, 0.9], ["a", "a", "b", "b"]) >= 0.5).tolist()
    [False, True, False, True]
    """
    criterion = read_criterion(criterion)
    if decisions not in DECISIONS:
        raise InputError(
            f"decisions must be 'align' or 'threshold', got {decisions!r}. Pass one of the two."
        )
    if decisions == "threshold" and scale != "probability":
        raise InputError(
            f"scale={scale!r} was given, but decisions='threshold' bends probabilities until "
            "thresholds lie at one half. Use decisions='align', or fit_thresholds, which takes "
            "any scores and returns the thresholds themselves."
        )
    scores = read_on_scale(y_score, scale)
    sizes = GroupSizes(min_group_size, small_groups)
    sizes.check()
    everybody = read_groups(sensitive_features, n_rows=len(scores))
    decided, ignored = sizes.decide(everybody)
    weights = read_weights(sample_weight, n_rows=len(scores))
    if y_true is None and (decisions == "threshold" or criterion.needs_labels):
        what = (
            "decisions='threshold' looks for the most accurate thresholds"
            if decisions == "threshold"
            else f"criterion={criterion.name!r} compares people of the same class"
        )
        raise LabelError(f"{what}, so it needs the true labels. Pass y_true.")
    positive = None
    if y_true is not None:
        positive = read_labels(y_true, n_rows=len(scores), pos_label=pos_label)
    rows, groups, _ = compared_groups(decided, ignored)
    scores = scores[rows]
    positive = None if positive is None else positive[rows]
    weights = None if weights is None else weights[rows]
    if max_gap is None:
        (found,) = adjust_path(
            scores,
            groups,
            positive,
            weights,
            strengths=[strength],
            criterion=criterion,
            decisions=decisions,
            scale=scale,
        )
    else:
        check_number("max_gap", max_gap, "[0, inf)" if scale == "real" else "[0, 1]")
        found = _within(max_gap, scores, groups, positive, weights, criterion, decisions, scale)
    if isinstance(found.parts, GroupThresholds):
        _tell_constant(found.parts)
    return replace(
        found,
        pooled=tuple(label for label in everybody.labels if label not in decided.labels),
        ignored=tuple(decided.labels[code] for code in ignored),
    )


def _tell_constant(thresholds: GroupThresholds) -> None:
    """Warn of thresholds that accept everybody or nobody."""
    if thresholds.decides:
        return
    whom = "everybody" if np.isneginf(thresholds.thresholds).all() else "nobody"
    notify(
        f"Only thresholds that accept {whom} keep the bound on these rows. They are fair because "
        "they decide nothing. Allow a larger gap, or use decisions='align'.",
        ConstantModelWarning,
    )


def _within(
    max_gap: float,
    scores: FloatArray,
    groups: Groups,
    positive: BoolArray | None,
    weights: FloatArray | None,
    criterion: Criterion,
    decisions: str,
    scale: str,
) -> ScoreAdjustment:
    """Return the adjustment that keeps a bound on the gap, from scores that have been checked."""
    if decisions == "threshold":
        assert positive is not None
        kept = threshold_groups(scores, groups, positive, weights, criterion, max_gap)
        return ScoreAdjustment(kept, 1.0)
    alignment = align_groups(scores, groups, positive, weights, criterion, scale)
    ((_, inside),) = criterion.strata(positive, len(scores))
    rows = np.flatnonzero(inside)
    mass = None if weights is None else weights[rows]
    least = least_strength(alignment, scores[rows], groups.take(rows), mass, max_gap)
    return ScoreAdjustment(alignment, least)


def adjust_path(
    scores: FloatArray,
    groups: Groups,
    positive: BoolArray | None,
    weights: FloatArray | None,
    *,
    strengths: Sequence[float],
    criterion: str | Criterion = "demographic_parity",
    decisions: str = "align",
    scale: str = "probability",
) -> list[ScoreAdjustment]:
    """Return one adjustment per strength, from scores that have been checked.

    The strength of thresholds is the share of the gap at a threshold of one half that they must
    take away. Full strength allows a gap of one person in the smallest group.
    """
    check_weights("strength", strengths, "[0, 1]")
    if decisions == "align":
        alignment = align_groups(scores, groups, positive, weights, criterion, scale)
        return [ScoreAdjustment(alignment, float(strength)) for strength in strengths]
    assert positive is not None, "thresholds are chosen by their accuracy"
    plain = plain_thresholds(scores, groups, positive, weights, criterion)
    one_person = 1.0 / smallest_count(groups, positive, weights, criterion)
    return [
        ScoreAdjustment(
            plain
            if strength == 0.0
            else threshold_groups(
                scores,
                groups,
                positive,
                weights,
                criterion,
                min(1.0, max((1.0 - strength) * plain.gap, one_person)),
            ),
            float(strength),
        )
        for strength in strengths
    ]
