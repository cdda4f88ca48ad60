"""A fitted adjustment of scores: curves or thresholds by group, saved as plain JSON."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairmatch.exceptions import ConstantModelWarning, InputError, LabelError, ModelFileError
from fairmatch.learning.anymodel.alignment import Alignment, align_groups, read_on_scale
from fairmatch.learning.anymodel.curves import group_codes
from fairmatch.learning.anymodel.strengths import least_strength
from fairmatch.learning.anymodel.thresholds import (
    GroupThresholds,
    plain_thresholds,
    smallest_count,
    threshold_groups,
)
from fairmatch.learning.groupsizes import GroupSizes, compared_groups
from fairmatch.learning.notice import notify
from fairmatch.storage.atomic import write_whole
from fairmatch.tables.arrays import (
    BoolArray,
    FloatArray,
    plain_value,
    read_labels,
    read_weights,
)
from fairmatch.tables.criterion import Criterion, read_criterion
from fairmatch.tables.groups import OTHER, Groups, read_groups
from fairmatch.tables.parameters import check_number, check_weights

_KIND, _VERSION = "fairmatch.adjustment", 1
_MOST_BYTES = 2**28
_EXPECTED = "Name a file that ScoreAdjustment.save or fairmatch adjust --save wrote."
# Ways to adjust scores, with the class of each fitted part.
DECISIONS: dict[str, type[Alignment] | type[GroupThresholds]] = {
    "align": Alignment,
    "threshold": GroupThresholds,
}


@dataclass(frozen=True, eq=False)
class ScoreAdjustment:
    """A fitted adjustment of a model's scores.

    `fit_adjustment` returns one, and a `QuantileAlignmentClassifier` holds one as ``adjustment_``.

    Parameters
    ----------
    parts : Alignment or GroupThresholds
        One increasing curve per group, or one threshold per group.
    strength : float, default=1.0
        How far an alignment moves the scores: 0 does not move them, and 1 aligns them fully.
        Thresholds already contain their strength.
    pooled : tuple, default=()
        Labels of small groups that are adjusted as one group, "other".
    ignored : tuple, default=()
        Labels of small groups whose scores are not moved.

    Examples
    --------
    >>> scores, groups = [0.1, 0.3, 0.5, 0.7], ["a", "a", "b", "b"]
    >>> adjustment = fit_adjustment(scores, groups)
    >>> adjustment.apply(scores, groups).round(2).tolist()
    [0.3, 0.5, 0.3, 0.5]
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = ScoreAdjustment.load(adjustment.save(f"{folder}/adjustment.json"))
    >>> again.apply([0.2], ["a"]).round(2).tolist()
    [0.4]
    """

    parts: Alignment | GroupThresholds
    strength: float = 1.0
    pooled: tuple[Any, ...] = ()
    ignored: tuple[Any, ...] = ()

    @property
    def labels(self) -> tuple[Any, ...]:
        """Labels of the groups."""
        return self.parts.labels

    @property
    def decisions(self) -> str:
        """How scores are adjusted: "align" or "threshold"."""
        return next(name for name, kind in DECISIONS.items() if isinstance(self.parts, kind))

    @property
    def scale(self) -> str:
        """What the scores are: "probability", "rank" or "real"."""
        return self.parts.scale if isinstance(self.parts, Alignment) else "probability"

    def apply(self, y_score: ArrayLike, sensitive_features: ArrayLike) -> FloatArray:
        """Return the adjusted scores of a table.

        Parameters
        ----------
        y_score : array-like of shape (n_rows,)
            Scores of the model that the adjustment was fitted for.
        sensitive_features : array-like of shape (n_rows,), or a table of several attributes
            Group of every row. Each must have been in the table of the fit.

        Returns
        -------
        array of shape (n_rows,)
            The adjusted scores. Adjusted probabilities of at least one half are accepted.
        """
        scores = read_on_scale(y_score, self.scale)
        known = (*self.labels, *self.pooled, *self.ignored)
        codes = group_codes(sensitive_features, known, self.parts.attributes, n_rows=len(scores))
        pool = [self.labels.index(OTHER)] * len(self.pooled) if self.pooled else []
        places = np.array([*range(len(self.labels)), *pool, *[-1] * len(self.ignored)])
        return self.move(scores, places[codes])

    def move(self, scores: FloatArray, codes: NDArray[Any]) -> FloatArray:
        """Return adjusted scores, from checked scores and group codes.

        A score with code -1 stays as it is.
        """
        if isinstance(self.parts, Alignment):
            return self.parts.move(scores, codes, self.strength)
        return self.parts.move(scores, codes)

    def save(self, path: str | Path) -> Path:
        """Write the adjustment to a JSON file; `load` reads it back.

        Parameters
        ----------
        path : str or Path
            The file to write.

        Returns
        -------
        Path
            The file.
        """
        content = {
            "kind": _KIND,
            "version": _VERSION,
            "decisions": self.decisions,
            "strength": self.strength,
            "pooled": [plain_value(label) for label in self.pooled],
            "ignored": [plain_value(label) for label in self.ignored],
            "parts": self.parts.get_state(),
        }
        try:
            text = json.dumps(content, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"The adjustment cannot be written as JSON ({error}). Use text or numbers as the "
                "labels of groups."
            ) from None
        return write_whole(path, text)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an adjustment that `save` has written.

        Parameters
        ----------
        path : str or Path
            The file to read.

        Returns
        -------
        ScoreAdjustment
            The adjustment.

        Raises
        ------
        ModelFileError
            If the file is not a saved adjustment, or is damaged.
        """
        file = Path(path)
        try:
            if not file.is_file() or file.stat().st_size > _MOST_BYTES:
                raise ModelFileError(f"{file} is not a file of an adjustment. {_EXPECTED}")
            content = json.loads(file.read_bytes())
        except OSError as error:
            raise ModelFileError(
                f"{file} cannot be read ({error.strerror}). {_EXPECTED}"
            ) from error
        except ModelFileError:
            raise
        except (ValueError, RecursionError) as error:
            raise ModelFileError(f"{file} is not valid JSON: {error}. {_EXPECTED}") from None
        if not isinstance(content, dict) or content.get("kind") != _KIND:
            raise ModelFileError(f"{file} does not describe an adjustment of scores. {_EXPECTED}")
        if content.get("version") != _VERSION:
            raise ModelFileError(
                f"{file} has format version {content.get('version')}; this fairmatch reads "
                f"version {_VERSION}. Install the version of fairmatch that wrote it."
            )
        kind, strength = DECISIONS.get(str(content.get("decisions"))), content.get("strength")
        if kind is None or isinstance(strength, bool) or not isinstance(strength, int | float):
            raise ModelFileError(
                f"{file} is damaged: decisions or strength are missing. Save the adjustment again."
            )
        if not 0.0 <= strength <= 1.0:
            raise ModelFileError(
                f"{file} is damaged: its strength is {strength:g}, and must be in [0, 1]. Save the "
                "adjustment again."
            )
        parts = kind.from_state(content.get("parts"))
        small = [content.get(name, []) for name in ("pooled", "ignored")]
        pooled_alone = bool(small[0]) and OTHER not in parts.labels
        if pooled_alone or not all(isinstance(labels, list) for labels in small):
            raise ModelFileError(
                f"{file} is damaged: its small groups are not those of its curves. Save the "
                "adjustment again."
            )
        return cls(parts, float(strength), tuple(small[0]), tuple(small[1]))


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
    """Fit an adjustment of a model's scores; the model itself is not needed.

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
        Its ``apply`` adjusts the scores of this table or of another.

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
        raise InputError(f"decisions must be 'align' or 'threshold', got {decisions!r}.")
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
