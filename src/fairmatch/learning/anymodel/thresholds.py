"""Thresholds by group: the most accurate decisions with a gap within a bound."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairmatch.exceptions import ModelFileError
from fairmatch.learning.anymodel.alignment import read_on_scale
from fairmatch.learning.anymodel.curves import Curve, group_codes
from fairmatch.learning.anymodel.cuts import GroupCuts, best_cuts
from fairmatch.tables.arrays import BoolArray, FloatArray, plain_value, read_labels, read_weights
from fairmatch.tables.criterion import CRITERIA, Criterion, read_criterion
from fairmatch.tables.groups import Groups, read_groups
from fairmatch.tables.parameters import check_number


@dataclass(frozen=True, eq=False)
class GroupThresholds:
    """One threshold per group: the least score that is accepted.

    `fit_thresholds` returns it.

    Parameters
    ----------
    labels : tuple
        Labels of the groups, sorted.
    thresholds : array of shape (n_groups,)
        Threshold of every group. A score is accepted if it is at least this. Minus infinity accepts
        everybody, and infinity accepts nobody.
    criterion : str
        Name of the criterion, which determines whose acceptance is compared.
    accuracy : float
        Share of right decisions on the rows of the fit.
    gap : float
        Largest difference of rates between two groups on these rows. With equalised odds it is the
        larger one of the gaps of true positive rates and of false positive rates.
    decides : bool
        Whether some people are accepted and others are not.
    attributes : tuple of str
        Names of the attributes whose combinations are the groups, if there are several.
    """

    labels: tuple[Any, ...]
    thresholds: FloatArray
    criterion: str
    accuracy: float
    gap: float
    decides: bool
    attributes: tuple[str, ...] = ()
    curves: tuple[Curve, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "curves", tuple(map(_centred, self.thresholds.tolist())))

    def decide(self, y_score: ArrayLike, sensitive_features: ArrayLike) -> BoolArray:
        """Return who is accepted.

        Parameters
        ----------
        y_score : array-like of shape (n_rows,)
            Scores of the model that the thresholds were fitted for.
        sensitive_features : array-like of shape (n_rows,), or a table of several attributes
            Group of every row. Each must have been in the table of the fit.

        Returns
        -------
        array of bool, shape (n_rows,)
            Whether each row is accepted.
        """
        scores = read_on_scale(y_score, "real")
        codes = group_codes(sensitive_features, self.labels, self.attributes, n_rows=len(scores))
        return np.asarray(scores >= self.thresholds[codes], dtype=bool)

    def move(self, scores: FloatArray, codes: NDArray[Any]) -> FloatArray:
        """Return bent probabilities, with every group's threshold at one half.

        Within a group the order of people stays. A score with code -1 stays as it is.
        """
        bent = scores.copy()
        for code, curve in enumerate(self.curves):
            rows = codes == code
            accepted = scores[rows] >= self.thresholds[code]
            inside = np.clip(curve(scores[rows]), 0.0, 1.0)
            # Rounding near a threshold must not change a decision.
            below = np.minimum(inside, np.nextafter(0.5, 0.0))
            bent[rows] = np.where(accepted, np.maximum(inside, 0.5), below)
        return bent

    def get_state(self) -> dict[str, Any]:
        """Return the thresholds as plain values for JSON."""
        return {
            "labels": [plain_value(label) for label in self.labels],
            # JSON has no infinity, so words stand for it.
            "thresholds": [_ENDS.get(t, t) for t in self.thresholds.tolist()],
            "criterion": self.criterion,
            "accuracy": self.accuracy,
            "gap": self.gap,
            "decides": self.decides,
            "attributes": list(self.attributes),
        }

    @classmethod
    def from_state(cls, state: Any) -> Self:
        """Return the thresholds that plain values describe; raise an error if they are damaged."""
        try:
            labels = tuple(state["labels"])
            values = [_STARTS.get(t, t) for t in state["thresholds"]]
            thresholds = np.asarray(values, dtype=np.float64)
            criterion = state["criterion"]
            facts = float(state["accuracy"]), float(state["gap"]), bool(state["decides"])
            attributes = tuple(map(str, state.get("attributes", ())))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ModelFileError(
                f"The file is damaged: these are not thresholds ({error})."
            ) from None
        whole = thresholds.shape == (len(labels),) and not np.isnan(thresholds).any()
        if not whole or criterion not in CRITERIA or len(set(labels)) < len(labels):
            raise ModelFileError("The file is damaged: these are not thresholds of groups.")
        return cls(labels, thresholds, criterion, *facts, attributes)


_ENDS: dict[float, Any] = {float("inf"): "nobody", float("-inf"): "everybody"}
_STARTS = {word: end for end, word in _ENDS.items()}


def _centred(threshold: float) -> Curve:
    """Return the curve that maps 0 to 0, a threshold to one half, and 1 to 1.

    A threshold outside (0, 1) leaves only one side of one half.
    """
    if threshold <= 0.0:
        return Curve(np.array([0.0, 1.0]), np.array([0.5, 1.0]))
    if threshold >= 1.0:
        return Curve(np.array([0.0, 1.0]), np.array([0.0, 0.5]))
    return Curve(np.array([0.0, threshold, 1.0]), np.array([0.0, 0.5, 1.0]))


def fit_thresholds(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    max_gap: float = 0.0,
    criterion: str | Criterion = "demographic_parity",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = 1,
) -> GroupThresholds:
    """Return the most accurate thresholds by group with a gap within a bound.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Labels of two classes.
    y_score : array-like of shape (n_rows,)
        Scores of a model, preferably for rows that it was not trained on; any finite numbers.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    max_gap : float, default=0.0
        Largest allowed difference between two groups on these rows. By default it bounds acceptance
        rates. With "equal_opportunity" it bounds true positive rates, and with "equalized_odds"
        both true and false positive rates.
    criterion : {"demographic_parity", "equal_opportunity", "equalized_odds"}
        Whose acceptance is compared: by default everybody's, with "equal_opportunity" that of
        people with a positive label, and with "equalized_odds" that of each class.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    pos_label : label, default=1
        The label that counts as positive.

    Returns
    -------
    GroupThresholds
        The thresholds. If some thresholds within the bound decide, one of them is returned, even
        if accepting everybody or nobody is more accurate.

    Notes
    -----
    With demographic parity, equal opportunity, or equalised odds of two groups, no other thresholds
    within the bound that decide are more accurate on these rows. The search takes O(n log n) steps.
    With equalised odds of more groups, the thresholds are at least as accurate as all thresholds
    that decide and have a gap within 7/8 of the bound.

    Nothing is randomised, so people with the same score and group get the same decision. Ties and
    group sizes limit how small a gap can be; below that, thresholds accept everybody or nobody.
    Equalised odds fixes a point of every group's ROC (receiver operating characteristic) curve.
    Where the curves of two groups do not meet, only accepting everybody and accepting nobody have
    no gap. A randomised rule could do better there.

    Examples
    --------
    >>> found = fit_thresholds([0, 1, 0, 1], [0.2, 0.4, 0.5, 0.9],
    ...                        sensitive_features=["a", "a", "b", "b"])
    >>> found.thresholds.round(2).tolist(), found.accuracy, found.gap
    ([0.3, 0.7], 1.0, 0.0)
    """
    criterion = read_criterion(criterion)
    scores = read_on_scale(y_score, "real")
    groups = read_groups(sensitive_features, n_rows=len(scores))
    weights = read_weights(sample_weight, n_rows=len(scores))
    positive = read_labels(y_true, n_rows=len(scores), pos_label=pos_label)
    return threshold_groups(scores, groups, positive, weights, criterion, max_gap)


def threshold_groups(
    scores: FloatArray,
    groups: Groups,
    positive: BoolArray,
    weights: FloatArray | None = None,
    criterion: str | Criterion = "demographic_parity",
    max_gap: float = 0.0,
) -> GroupThresholds:
    """Return the thresholds that are fitted on scores that have been checked."""
    check_number("max_gap", max_gap, "[0, 1]")
    criterion = read_criterion(criterion)
    mass = np.ones(len(scores)) if weights is None else weights
    cuts = _cuts(scores, groups, positive, mass, criterion)
    return _thresholds(_deciding(cuts, max_gap), cuts, groups, positive, mass, criterion)


def plain_thresholds(
    scores: FloatArray,
    groups: Groups,
    positive: BoolArray,
    weights: FloatArray | None = None,
    criterion: str | Criterion = "demographic_parity",
) -> GroupThresholds:
    """Return the threshold of one half for every group, with its accuracy and its gap."""
    criterion = read_criterion(criterion)
    mass = np.ones(len(scores)) if weights is None else weights
    cuts = _cuts(scores, groups, positive, mass, criterion)
    chosen = [int(np.searchsorted(-cut.scores, -0.5, side="right")) for cut in cuts]
    found = _thresholds(chosen, cuts, groups, positive, mass, criterion)
    return replace(found, thresholds=np.full(groups.n_groups, 0.5))


def smallest_count(
    groups: Groups,
    positive: BoolArray,
    weights: FloatArray | None,
    criterion: str | Criterion,
) -> float:
    """Return the least number of rows of a group that a criterion compares.

    With weights, it is the effective number of rows.
    """
    sizes = [
        len(rows) if weights is None else weights[rows].sum() ** 2 / (weights[rows] ** 2).sum()
        for _, inside in read_criterion(criterion).strata(positive, len(groups))
        for code in range(groups.n_groups)
        for rows in [np.flatnonzero(groups.is_group(code) & inside)]
    ]
    return float(max(1.0, min(sizes)))


def _cuts(
    scores: FloatArray,
    groups: Groups,
    positive: BoolArray,
    mass: FloatArray,
    criterion: Criterion,
) -> list[GroupCuts]:
    return [
        GroupCuts.of(scores[rows], positive[rows], mass[rows], criterion, groups.labels[code])
        for code in range(groups.n_groups)
        for rows in [groups.rows(code)]
    ]


def _thresholds(
    chosen: Sequence[int],
    cuts: Sequence[GroupCuts],
    groups: Groups,
    positive: BoolArray,
    mass: FloatArray,
    criterion: Criterion,
) -> GroupThresholds:
    accepted = np.array([cut.accepted[k] for cut, k in zip(cuts, chosen, strict=True)])
    rates = np.array([cut.rates[:, k] for cut, k in zip(cuts, chosen, strict=True)])
    return GroupThresholds(
        groups.labels,
        np.array([cut.threshold(k) for cut, k in zip(cuts, chosen, strict=True)]),
        criterion.name,
        float((mass[~positive].sum() + _gain(cuts, chosen)) / mass.sum()),
        float(np.ptp(rates, axis=0).max()),
        bool(accepted.max() > 0.0 and accepted.min() < 1.0),
        groups.attributes,
    )


def _deciding(cuts: Sequence[GroupCuts], max_gap: float) -> list[int]:
    """Return the best cut of every group; cuts that decide are preferred."""
    best = best_cuts(cuts, max_gap)
    assert best is not None, "accepting nobody has no gap"
    ends = [{0: "nobody", len(cut) - 1: "everybody"} for cut in cuts]
    constant = {end.get(k) for end, k in zip(ends, best, strict=True)}
    if None in constant or len(constant) > 1:
        return best
    # At least one group must decide; each of them is tried.
    found = []
    for code in range(len(cuts)):
        inner = [cut.inner() if k == code else cut for k, cut in enumerate(cuts)]
        chosen = best_cuts(inner, max_gap)
        if chosen is not None:
            found.append([k + (j == code) for j, k in enumerate(chosen)])
    return max(found, key=lambda chosen: _gain(cuts, chosen), default=best)


def _gain(cuts: Sequence[GroupCuts], chosen: Sequence[int]) -> float:
    return float(sum(cut.gain[k] for cut, k in zip(cuts, chosen, strict=True)))
