"""Less discriminatory alternatives: models as accurate as a baseline, with smaller gaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairmatch.auditing.facts import Alternative, Alternatives, Estimate
from fairmatch.exceptions import InputError, LabelError
from fairmatch.measures.intervals import joined
from fairmatch.measures.registry import Measure, of_averages
from fairmatch.people.checks import (
    FloatArray,
    check_choice,
    check_length,
    check_number,
    read_labels,
    read_numbers,
    read_scores,
    read_weights,
)
from fairmatch.people.groups import Groups, read_groups

# Weight of people by group, label, the baseline's decision and the alternative's.
Cells: TypeAlias = NDArray[np.float64]

_N_RESAMPLES = 4000
BASELINE = "baseline"
"""What scores that come from elsewhere are called."""


def _rates(cells: Cells, label: bool | None) -> FloatArray:
    """Return the selection rates by model and group, of shape (2, …, n_groups)."""
    chosen = cells.sum(axis=-3) if label is None else cells[..., int(label), :, :]
    total = chosen.sum(axis=(-2, -1))
    baseline, model = chosen[..., 1, :].sum(axis=-1), chosen[..., :, 1].sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.stack([baseline / total, model / total])


def _gaps(cells: Cells, measure: Measure) -> FloatArray:
    """Return the gap of selection rates of the baseline and of the model."""
    rates = [_rates(cells, label) for label in measure.labels]
    gaps = [own.max(axis=-1) - own.min(axis=-1) for own in rates]  # over pairs of groups
    return joined(gaps, measure.agg)


def find_alternatives(
    y_scores: Mapping[str, ArrayLike],
    *,
    y_true: ArrayLike,
    sensitive_features: ArrayLike,
    baseline: ArrayLike | None = None,
    baseline_threshold: float | None = None,
    gap_measure: str = "demographic_parity_gap",
    margin: float = 0.01,
    confidence: float = 0.95,
    threshold: float = 0.5,
    favourable: str = "high",
    pos_label: Any = 1,
    sample_weight: ArrayLike | None = None,
    methods: Mapping[str, tuple[str, str]] | None = None,
    random_state: int = 0,
) -> Alternatives:
    r"""Find models that are as accurate as a baseline and have smaller gaps.

    Parameters
    ----------
    y_scores : mapping
        Name of each model to its scores. All models score the same people, whom none of them has
        seen. The first model is the baseline, unless ``baseline`` is given.
    y_true : array-like of shape (n_rows,)
        Labels of two classes.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    baseline : array-like of shape (n_rows,), optional
        Scores or decisions of another model for the same people, such as a vendor's. All models of
        ``y_scores`` are then compared with them, under the name "baseline".
    baseline_threshold : float, optional
        The threshold of ``baseline``, whose scores may then have any range, such as deciles. By
        default they lie in [0, 1] and have the same threshold as the other models.
    gap_measure : str, default="demographic_parity_gap"
        Name of the gap: ``demographic_parity_gap``, ``true_positive_gap``,
        ``false_positive_gap`` or ``equalized_odds_gap``. It is the largest over pairs of groups.
    margin : float, default=0.01
        A model counts as accurate as the baseline if it is shown to lose at most this much
        accuracy.
    confidence : float, default=0.95
        Level of the intervals, which hold for all models at once.
    threshold : float, default=0.5
        A person with a score at or above the threshold is selected; with ``favourable="low"``, a
        person with a score below it.
    favourable : {"high", "low"}, default="high"
        Which scores are good for a person. With "low" the favourable label is the one that is not
        ``pos_label``, and gaps of error rates are those of the favourable label, as in `audit`.
    pos_label : default=1
        The label that a high score predicts.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    methods : mapping, optional
        Name of a model to two texts for the table: how it was trained, and with which setting.
    random_state : int, default=0
        Seed of the resamples.

    Returns
    -------
    Alternatives
        The baseline, every other model, and how each compares with the baseline.

    Notes
    -----
    Both models decide on the same people, so the change is known more precisely than either number
    alone. The decisions of two models leave four cells for each group and label. The people of a
    group are resampled as a multinomial draw over its cells. Half a person is first added to each
    cell, because an empty cell is not impossible. The intervals are quantiles of the resampled
    changes. The error probability, one minus the confidence, is divided among the models
    (Bonferroni), because the smallest gap is picked after looking at all of them. With weights, a
    group counts as its effective number of people, :math:`(\sum w)^2 / \sum w^2`.

    Examples
    --------
    >>> import numpy as np
    >>> labels = np.tile([1, 1, 0, 0], 500)
    >>> groups = np.repeat(["a", "b"], 1000)
    >>> plain = np.where(groups == "a", 1.0, labels)
    >>> found = find_alternatives(
    ...     {"plain": plain, "fair": labels}, y_true=labels, sensitive_features=groups)
    >>> found
    <Alternatives to 'plain': 1 tried, 1 less discriminatory>
    >>> found.tried[0].lost
    {'a': 500, 'b': 0}
    """
    if len(y_scores) + (baseline is not None) < 2:
        raise InputError(
            f"A search for alternatives needs a baseline and at least one other model; y_scores "
            f"holds {len(y_scores)}. Add the scores of another model."
        )
    known = of_averages(decides=True)
    check_choice("favourable", favourable, ("high", "low"))
    check_choice("gap_measure", gap_measure, known)
    measure = known[gap_measure]
    check_number("margin", margin, "[0, 1)")
    check_number("confidence", confidence, "(0.5, 1)")
    groups = read_groups(sensitive_features)
    positive = read_labels(y_true, n_rows=len(groups), pos_label=pos_label)
    weights = read_weights(sample_weight, n_rows=len(groups))
    selected = {
        name: read_scores(scores, n_rows=len(groups)) >= threshold
        for name, scores in y_scores.items()
    }
    if baseline is not None:
        before = _baseline(baseline, baseline_threshold, threshold, len(groups))
        selected = {BASELINE: before, **selected}
    if favourable == "low":  # the favourable decision, and the label that deserves it
        positive, selected = ~positive, {name: ~own for name, own in selected.items()}
    _check_classes(groups, positive, measure)
    (first, before), *others = selected.items()
    level = 1.0 - (1.0 - confidence) / len(others)
    tried = []
    for name, after in others:
        cells = _cells(groups, positive, before, after, weights)
        generator = np.random.default_rng([random_state, 4])
        drawn = _resampled(cells, _effective_sizes(groups, weights), generator)
        gaps, resampled = _gaps(cells, measure), _gaps(drawn, measure)
        accuracies = _accuracies(cells)
        accuracy_change = _change(accuracies, _accuracies(_shared(drawn, cells)), level)
        gap_change = _change(gaps, resampled, level)
        verdict, reasons = _verdict(accuracy_change, gap_change, margin)
        method, setting = (methods or {}).get(name, ("", ""))
        tried.append(
            Alternative(
                name=name,
                method=method,
                setting=setting,
                accuracy=float(accuracies[1]),
                gap=float(gaps[1]),
                accuracy_change=accuracy_change,
                gap_change=gap_change,
                selection_rates=_by_group(groups, _rates(cells, None)[1]),
                gained=_count(groups, after & ~before),
                lost=_count(groups, before & ~after),
                as_accurate=(accuracy_change.low or 0.0) >= -margin,
                smaller_gap=(gap_change.high or 0.0) < 0.0,
                verdict=verdict,
                reasons=reasons,
            )
        )
    own = _cells(groups, positive, before, before, weights)
    return Alternatives(
        baseline=first,
        n_rows=len(groups),
        gap_measure=gap_measure,
        margin=float(margin),
        confidence=float(confidence),
        threshold=float(threshold),
        accuracy=float(_accuracies(own)[0]),
        gap=float(_gaps(own, measure)[0]),
        selection_rates=_by_group(groups, _rates(own, None)[0]),
        tried=tuple(tried),
        favourable=favourable,
        is_given=baseline is not None,
    )


def _baseline(
    scores: ArrayLike, own: float | None, shared: float, n_rows: int
) -> NDArray[np.bool_]:
    """Return who has a baseline score at or above its threshold."""
    if own is None:
        return np.asarray(read_scores(scores, n_rows=n_rows, name="baseline") >= shared)
    numbers = read_numbers(scores, "baseline")
    check_length(numbers, n_rows, "baseline")
    if not np.isfinite(numbers).all():
        raise InputError("baseline must hold a number for every person.", parameter="baseline")
    return np.asarray(numbers >= own)


def _check_classes(groups: Groups, positive: NDArray[np.bool_], measure: Measure) -> None:
    """Raise if a group has nobody in a class that the gap compares."""
    for label in measure.labels:
        if label is None:
            continue
        sizes = np.bincount(groups.codes[positive == label], minlength=groups.n_groups)
        if (sizes == 0).any():
            raise LabelError(
                f"Group {groups.labels[int(np.argmin(sizes))]!r} has no rows with a "
                f"{'positive' if label else 'negative'} label, so {measure.name} is undefined for "
                "it. Pool the group with another, or choose demographic_parity_gap."
            )


def _cells(
    groups: Groups,
    positive: NDArray[np.bool_],
    before: NDArray[np.bool_],
    after: NDArray[np.bool_],
    weights: FloatArray | None,
) -> Cells:
    """Return the weight of people by group, label and both decisions."""
    place = ((groups.codes.astype(np.int64) * 2 + positive) * 2 + before) * 2 + after
    sums = np.bincount(place, weights, minlength=8 * groups.n_groups)
    return sums.astype(np.float64).reshape(groups.n_groups, 2, 2, 2)


def _effective_sizes(groups: Groups, weights: FloatArray | None) -> FloatArray:
    if weights is None:
        return groups.sizes()
    return groups.sizes(weights) ** 2 / groups.sizes(weights**2)


def _resampled(cells: Cells, sizes: FloatArray, generator: np.random.Generator) -> Cells:
    """Return resampled cells of every group, of shape (n_resamples, n_groups, 2, 2, 2)."""
    drawn = []
    for own, size in zip(cells, sizes, strict=True):
        # The cells sum to the effective number of people; half a person is added to each.
        likely = own.ravel() / own.sum() * size + 0.5
        shape = (_N_RESAMPLES, 2, 2, 2)
        draws = generator.multinomial(max(1, round(size)), likely / likely.sum(), _N_RESAMPLES)
        drawn.append(draws.reshape(shape))
    return np.stack(drawn, axis=1).astype(np.float64)


def _shared(drawn: Cells, cells: Cells) -> Cells:
    """Return resampled cells, scaled to give every group its original share of all people."""
    share = cells.sum(axis=(1, 2, 3)) / cells.sum()
    return np.asarray(drawn / drawn.sum(axis=(2, 3, 4), keepdims=True) * share[:, None, None, None])


def _accuracies(cells: Cells) -> FloatArray:
    """Return the accuracy of the baseline and of the model."""
    total = cells.sum(axis=(-4, -3, -2, -1))
    right_before = cells[..., 0, 0, :].sum(axis=(-2, -1)) + cells[..., 1, 1, :].sum(axis=(-2, -1))
    right_after = cells[..., 0, :, 0].sum(axis=(-2, -1)) + cells[..., 1, :, 1].sum(axis=(-2, -1))
    return np.stack([right_before / total, right_after / total])


def _change(values: FloatArray, resampled: FloatArray, level: float) -> Estimate:
    """Return the change from the baseline to the model, with quantiles of the resamples."""
    changes = resampled[1] - resampled[0]
    changes = changes[np.isfinite(changes)]
    low, high = np.quantile(changes, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    value = float(values[1] - values[0])
    return Estimate(value, min(value, float(low)), max(value, float(high)))


def _verdict(accuracy: Estimate, gap: Estimate, margin: float) -> tuple[str, tuple[str, ...]]:
    """Return whether a model is shown to be an alternative, and otherwise why not."""
    false = {
        "it is less accurate by more than the margin": (accuracy.high or 0.0) < -margin,
        "its gap is not smaller": (gap.low or 0.0) >= 0.0,
    }
    missing = {
        "the interval of its accuracy reaches below the margin": (accuracy.low or 0.0) < -margin,
        "the interval of its gap's change includes 0": (gap.high or 0.0) >= 0.0,
    }
    for verdict, reasons in {"no": false, "not shown": missing}.items():
        if any(reasons.values()):
            return verdict, tuple(reason for reason, holds in reasons.items() if holds)
    return "yes", ()


def _by_group(groups: Groups, values: FloatArray) -> dict[str, float]:
    return {str(label): float(v) for label, v in zip(groups.labels, values, strict=True)}


def _count(groups: Groups, who: NDArray[np.bool_]) -> dict[str, int]:
    counts = np.bincount(groups.codes[who], minlength=groups.n_groups)
    return {str(label): int(n) for label, n in zip(groups.labels, counts, strict=True)}
