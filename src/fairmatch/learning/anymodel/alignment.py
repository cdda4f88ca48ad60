"""Quantile alignment: the scores of every group are moved to one common distribution."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from fairmatch.exceptions import InputError, ModelFileError
from fairmatch.learning.anymodel.barycentre import curve_to_barycentre, remaining_gap, settled
from fairmatch.learning.anymodel.curves import Curve, Distribution, group_codes
from fairmatch.matching.coupling import IndexArray
from fairmatch.matching.parts import plan_parts
from fairmatch.tables.arrays import (
    BoolArray,
    FloatArray,
    plain_value,
    read_labels,
    read_numbers,
    read_scores,
    read_weights,
)
from fairmatch.tables.criterion import Criterion, read_criterion
from fairmatch.tables.groups import Groups, read_groups
from fairmatch.tables.parameters import check_number

SCALES = ("probability", "rank", "real")


@dataclass(frozen=True, eq=False)
class Alignment:
    r"""A fitted alignment of scores, with one increasing curve per group.

    `fit_alignment` returns it.

    Parameters
    ----------
    labels : tuple
        Labels of the groups, sorted.
    curves : tuple of Curve
        For every group, the fully aligned score as a function of the score.
    shares : array of shape (n_groups,)
        Share of every group among the rows that were compared; it is the group's weight in the
        barycentre.
    scale : {"probability", "rank", "real"}
        What the scores are.
    ranks : Curve or None
        With scale "rank", the curve from a score to its rank among all rows.
    tied : array of shape (n_groups,)
        Share of every group that has the same score as somebody else in the group.
    remaining_gap : float
        The gap that full alignment leaves on the rows of the fit. It is the largest difference
        between two groups' shares above a threshold, over all thresholds. It comes from ties and
        from unequal group sizes, because people with the same score and group get the same aligned
        score.
    attributes : tuple of str
        Names of the attributes whose combinations are the groups, if there are several.

    Notes
    -----
    With :math:`F_s` the distribution function and :math:`Q_s` the quantile function of the scores
    of group s, and :math:`p_s` its share, a score f of group s becomes

    .. math:: (1 - t) f + t \sum_{s'} p_{s'} Q_{s'}(F_s(f))

    with t the strength. The sum is the quantile function of the Wasserstein barycentre of all
    groups. With t = 1 the result is the best score under squared loss that has the same
    distribution in every group. With a smaller strength the gap in Wasserstein distance falls in
    proportion to t (Chzhen et al., 2020; Jiang et al., 2020).
    """

    labels: tuple[Any, ...]
    curves: tuple[Curve, ...]
    shares: FloatArray
    scale: str = "probability"
    ranks: Curve | None = None
    tied: FloatArray | None = None
    remaining_gap: float = 0.0
    attributes: tuple[str, ...] = ()

    def apply(
        self, y_score: ArrayLike, sensitive_features: ArrayLike, strength: float = 1.0
    ) -> FloatArray:
        """Return the adjusted scores of a table.

        Parameters
        ----------
        y_score : array-like of shape (n_rows,)
            Scores of the model that the alignment was fitted for.
        sensitive_features : array-like of shape (n_rows,), or a table of several attributes
            Group of every row. Each must have been in the table of the fit.
        strength : float, default=1.0
            How far to go: 0 does not move the scores, and 1 aligns them fully.

        Returns
        -------
        array of shape (n_rows,)
            The adjusted scores.
        """
        scores = read_on_scale(y_score, self.scale)
        codes = group_codes(sensitive_features, self.labels, self.attributes, n_rows=len(scores))
        return self.move(scores, codes, strength)

    def move(self, scores: FloatArray, codes: Any, strength: float = 1.0) -> FloatArray:
        """Return adjusted scores, from checked scores and group codes.

        A score with code -1 stays as it is.
        """
        check_number("strength", strength, "[0, 1]")
        start = self.start(scores)
        if strength == 0.0:
            return start
        aligned = start.copy()
        for code, curve in enumerate(self.curves):
            rows = codes == code
            aligned[rows] = curve(scores[rows])
        if self.scale != "real":
            np.clip(aligned, 0.0, 1.0, out=aligned)
        if strength < 1.0:
            aligned *= strength
            aligned += (1.0 - strength) * start
        return aligned

    def start(self, scores: FloatArray) -> FloatArray:
        """Return the scores before alignment: as they are, or as ranks with scale "rank"."""
        return scores if self.ranks is None else np.clip(self.ranks(scores), 0.0, 1.0)

    def get_state(self) -> dict[str, Any]:
        """Return the alignment as plain values for JSON."""
        return {
            "labels": [plain_value(label) for label in self.labels],
            "curves": [curve.get_state() for curve in self.curves],
            "shares": self.shares.tolist(),
            "scale": self.scale,
            "ranks": None if self.ranks is None else self.ranks.get_state(),
            "tied": None if self.tied is None else self.tied.tolist(),
            "remaining_gap": self.remaining_gap,
            "attributes": list(self.attributes),
        }

    @classmethod
    def from_state(cls, state: Any) -> Self:
        """Return the alignment that plain values describe; raise an error if they are damaged."""
        try:
            curves = tuple(map(Curve.from_state, state["curves"]))
            labels, scale = tuple(state["labels"]), state["scale"]
            if len(labels) != len(curves) or len(set(labels)) < len(labels) or scale not in SCALES:
                raise ModelFileError("The file is damaged: this is not an alignment of scores.")
            ranks = None if state["ranks"] is None else Curve.from_state(state["ranks"])
            if (ranks is None) == (scale == "rank"):
                raise ModelFileError("The file is damaged: ranks and scale contradict each other.")
            return cls(
                labels,
                curves,
                np.asarray(state["shares"], dtype=np.float64),
                scale,
                ranks,
                None if state["tied"] is None else np.asarray(state["tied"], dtype=np.float64),
                float(state["remaining_gap"]),
                tuple(map(str, state.get("attributes", ()))),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, ModelFileError):
                raise
            raise ModelFileError(
                f"The file is damaged: this is not an alignment of scores ({error})."
            ) from None


def fit_alignment(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    *,
    y_true: ArrayLike | None = None,
    criterion: str | Criterion = "demographic_parity",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = 1,
    scale: str = "probability",
) -> Alignment:
    """Fit curves that move the scores of every group to one common distribution.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores of a model, preferably for rows that it was not trained on.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    y_true : array-like of shape (n_rows,), optional
        Labels of two classes. Only the fit with ``criterion="equal_opportunity"`` needs them; the
        alignment is applied without labels.
    criterion : {"demographic_parity", "equal_opportunity"}, default="demographic_parity"
        Whose scores are aligned: everybody's, or those of people with a positive label.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    pos_label : label, default=1
        The label that counts as positive.
    scale : {"probability", "rank", "real"}, default="probability"
        What the scores are. A "probability" lies in [0, 1], and any other number is an error. With
        "rank" the scores are any finite numbers, and they are replaced by their rank among all
        rows, between 0 and 1, before they are aligned. With "real" the scores and the results are
        numbers in a unit of their own, such as predictions of a regressor.

    Returns
    -------
    Alignment
        Its ``apply`` adjusts the scores of this table or of another.

    Raises
    ------
    InputError
        If ``criterion="equalized_odds"``: one increasing curve per group can align the scores of
        one class, but not of both classes at once. Thresholds by group can come near it.

    Examples
    --------
    >>> alignment = fit_alignment([0.1, 0.3, 0.5, 0.7], ["a", "a", "b", "b"])
    >>> alignment.apply([0.1, 0.3, 0.5, 0.7], ["a", "a", "b", "b"]).round(2).tolist()
    [0.3, 0.5, 0.3, 0.5]
    >>> alignment.apply([0.2], ["a"], strength=0.5).round(2).tolist()
    [0.3]
    """
    criterion = read_criterion(criterion)
    scores = read_on_scale(y_score, scale)
    groups = read_groups(sensitive_features, n_rows=len(scores))
    weights = read_weights(sample_weight, n_rows=len(scores))
    positive: BoolArray | None = None
    if criterion.needs_labels and y_true is not None:
        positive = read_labels(y_true, n_rows=len(scores), pos_label=pos_label)
    return align_groups(scores, groups, positive, weights, criterion, scale)


def align_groups(
    scores: FloatArray,
    groups: Groups,
    positive: BoolArray | None = None,
    weights: FloatArray | None = None,
    criterion: str | Criterion = "demographic_parity",
    scale: str = "probability",
) -> Alignment:
    """Return the alignment that is fitted on scores that have been checked."""
    criterion = read_criterion(criterion)
    if len(criterion.labels) > 1:
        raise InputError(
            f"criterion={criterion.name!r} asks for equal scores within both classes, and one "
            "increasing curve per group can equalise them in one class only. Use "
            "criterion='equal_opportunity', or decisions='threshold', whose thresholds come near "
            "it."
        )
    ranks = None
    if scale == "rank":
        everybody = Distribution.of(scores, weights)
        ranks = Curve(everybody.scores, everybody.middle)
    members = compared_rows(groups, criterion, positive, weights)
    found = [
        Distribution.of(scores[rows], None if weights is None else weights[rows])
        for rows in members
    ]
    sizes = [len(rows) if weights is None else weights[rows].sum() for rows in members]
    shares = np.asarray(sizes, dtype=np.float64) / np.sum(sizes)
    curves = settled([curve_to_barycentre(one, found, shares, ranks) for one in found])
    return Alignment(
        groups.labels,
        curves,
        shares,
        scale,
        ranks,
        np.array([one.tied for one in found]),
        remaining_gap(found, curves),
        groups.attributes,
    )


def compared_rows(
    groups: Groups,
    criterion: str | Criterion,
    positive: BoolArray | None,
    weights: FloatArray | None,
) -> list[IndexArray]:
    """Return the rows of every group that a criterion compares.

    The criterion compares everybody or one class. An error names the first group without such
    rows.
    """
    parts = plan_parts(groups, criterion=criterion, positive=positive, weights=weights)
    rows = {part.source: part.source_rows for part in parts}
    rows[parts[0].target] = parts[0].target_rows
    return [rows[code] for code in range(groups.n_groups)]


def align_scores(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    *,
    strength: float = 1.0,
    alignment: Alignment | None = None,
    y_true: ArrayLike | None = None,
    criterion: str | Criterion = "demographic_parity",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = 1,
    scale: str = "probability",
) -> FloatArray:
    r"""Return the scores of all groups, aligned. Within a group, people keep their order.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores of a model.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    strength : float, default=1.0
        How far to go: 0 does not move the scores, and 1 aligns them fully.
    alignment : Alignment, optional
        An alignment that `fit_alignment` has fitted on another table. With it, the following
        parameters are not used. By default, an alignment is fitted on these rows.
    y_true : array-like of shape (n_rows,), optional
        Labels of two classes; needed with ``criterion="equal_opportunity"``.
    criterion : {"demographic_parity", "equal_opportunity"}, default="demographic_parity"
        Whose scores are aligned: everybody's, or those of people with a positive label.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    pos_label : label, default=1
        The label that counts as positive.
    scale : {"probability", "rank", "real"}, default="probability"
        What the scores are. A "probability" lies in [0, 1]. With "rank" the scores are any numbers,
        and only their rank counts. With "real" they are numbers in a unit of their own, such as
        predictions of a regressor.

    Returns
    -------
    array of shape (n_rows,)
        The adjusted scores.

    Notes
    -----
    With t the strength, a score f of group s becomes

    .. math:: (1 - t) f + t \sum_{s'} p_{s'} Q_{s'}(F_s(f)),

    where :math:`F_s` and :math:`Q_s` are the distribution and quantile functions of the group's
    scores, and :math:`p_s` is its share (Chzhen et al., 2020; Jiang et al., 2020).

    Examples
    --------
    >>> align_scores([0.1, 0.3, 0.5, 0.7], ["a", "a", "b", "b"]).round(2).tolist()
    [0.3, 0.5, 0.3, 0.5]
    """
    if alignment is None:
        alignment = fit_alignment(
            y_score,
            sensitive_features,
            y_true=y_true,
            criterion=criterion,
            sample_weight=sample_weight,
            pos_label=pos_label,
            scale=scale,
        )
    return alignment.apply(y_score, sensitive_features, strength)


def read_on_scale(y_score: ArrayLike, scale: str) -> FloatArray:
    """Return scores as an array; probabilities must be in [0, 1], and others must be finite."""
    if scale not in SCALES:
        raise InputError(f"scale must be one of {', '.join(map(repr, SCALES))}; got {scale!r}.")
    if scale != "probability":
        scores = read_numbers(y_score, "y_score")
        if not np.isfinite(scores).all():
            raise InputError(
                f"y_score has {int((~np.isfinite(scores)).sum())} entries that are NaN or "
                "infinite. Every row needs a finite score. Leave those rows out."
            )
        return scores
    try:
        return read_scores(y_score)
    except InputError as error:
        if "[0, 1]" not in str(error):
            raise
        raise InputError(
            f"{error} Or pass scale='rank', which uses only the rank of a score, or scale='real' "
            "for numbers in a unit of their own."
        ) from None
