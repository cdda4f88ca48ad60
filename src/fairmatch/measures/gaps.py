r"""The gaps: how differently a model treats two groups.

Every measure of a gap has fairlearn's signature,
``measure(y_true, y_score, *, sensitive_features, sample_weight=None)``, so that scorers and
cross-validation can use it; ``y_true`` may be None where labels play no part. Decisions are
``score >= threshold``.

`MEASURES` lists the gaps once, by name and by the paper's symbol; `gap_table` takes all that need
nothing but scores and groups (and labels, where given) in one pass over the data.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairmatch.exceptions import CouplingError, GroupError, InputError, LabelError
from fairmatch.matching.coupling import Coupling, check_coupling
from fairmatch.measures.distributions import ScoreDistributions
from fairmatch.tables.arrays import (
    BoolArray,
    FloatArray,
    read_column,
    read_features,
    read_labels,
    read_scores,
    read_weights,
)
from fairmatch.tables.groups import read_groups
from fairmatch.tables.parameters import check_count, check_threshold, read_generator

# Random subsets are looked at in blocks of this many (row, subset) cells.
_BLOCK_CELLS = 20_000_000


def demographic_parity_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    threshold: float | None = 0.5,
) -> float:
    r"""Gap between the groups' shares of accepted people.

    Parameters
    ----------
    y_true : ignored
        May be None.
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or 0/1 decisions.
    sensitive_features : array-like of shape (n_rows,)
        Group of every row; two groups.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    threshold : float or None, default=0.5
        Accepted are scores at or above it. None compares mean scores.

    Returns
    -------
    float

    Notes
    -----
    .. math:: \Delta\mathrm{DP}(f) =
              |P(f(X, 0) \ge \tau \mid S = 0) - P(f(X, 1) \ge \tau \mid S = 1)|

    Section 2.2 of the paper.

    Examples
    --------
    >>> demographic_parity_gap(None, [0.9, 0.2, 0.6, 0.7], sensitive_features=[0, 0, 1, 1])
    0.5
    """
    groups = ScoreDistributions.read(y_score, sensitive_features, sample_weight)
    return groups.rate_gap(threshold)


def mean_parity_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Gap between the groups' mean scores.

    Parameters are those of `demographic_parity_gap`, without a threshold.

    Notes
    -----
    .. math:: \Delta\overline{\mathrm{DP}}(f) =
              |E(f(X, 0) \mid S = 0) - E(f(X, 1) \mid S = 1)|

    Examples
    --------
    >>> mean_parity_gap(None, [0.5, 0.25, 0.75, 0.5], sensitive_features=[0, 0, 1, 1])
    0.25
    """
    return ScoreDistributions.read(y_score, sensitive_features, sample_weight).rate_gap(None)


def wasserstein_parity_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Area between the groups' score distribution functions.

    It is also the smallest mean score gap over all matchings of the two groups, reached at the
    `fairmatch.fair_matching`. Parameters are those of `mean_parity_gap`.

    Notes
    -----
    .. math:: \Delta\mathrm{WDP}(f) = \int_0^1 |F_0(t) - F_1(t)| \, dt

    Examples
    --------
    >>> wasserstein_parity_gap(None, [0.0, 1.0, 0.5, 0.5], sensitive_features=[0, 0, 1, 1])
    0.5
    """
    return ScoreDistributions.read(y_score, sensitive_features, sample_weight).wasserstein


def total_variation_parity_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    bins: int | None = None,
) -> float:
    r"""Total variation between the groups' score distributions.

    Exact for discrete scores (decisions, deciles, trees). Continuous scores hardly ever coincide,
    so the exact value is about 1 whatever the model does; count them in ``bins`` equal intervals
    of [0, 1] instead. Other parameters are those of `mean_parity_gap`.

    Parameters
    ----------
    y_true, y_score, sensitive_features, sample_weight
        As in `mean_parity_gap`.
    bins : int, optional
        Number of equal intervals; None is exact.

    Notes
    -----
    .. math:: \Delta\mathrm{TVDP}(f) = \tfrac12 \sum_t |P_0(f = t) - P_1(f = t)|

    Examples
    --------
    >>> total_variation_parity_gap(None, [0, 1, 1, 1], sensitive_features=[0, 0, 1, 1])
    0.5
    >>> scores = [0.11, 0.52, 0.13, 0.51]
    >>> total_variation_parity_gap(None, scores, sensitive_features=[0, 0, 1, 1])
    1.0
    >>> total_variation_parity_gap(None, scores, sensitive_features=[0, 0, 1, 1], bins=10)
    0.0
    """
    groups = ScoreDistributions.read(y_score, sensitive_features, sample_weight)
    return groups.total_variation(bins)


def ks_parity_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Largest gap between the groups' shares of accepted people, over every threshold.

    Exact: it looks at every score, not at a grid. Parameters are those of `mean_parity_gap`.

    Notes
    -----
    .. math:: \Delta\mathrm{KSDP}(f) = \sup_t |F_0(t) - F_1(t)|

    Examples
    --------
    >>> ks_parity_gap(None, [0.1, 0.2, 0.15, 0.9], sensitive_features=[0, 0, 1, 1])
    0.5
    """
    return ScoreDistributions.read(y_score, sensitive_features, sample_weight).kolmogorov_smirnov


def matched_parity_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    coupling: Coupling,
    sample_weight: None = None,
) -> float:
    r"""Mean score gap between matched people.

    Parameters
    ----------
    y_true : ignored
        May be None.
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1].
    sensitive_features : array-like of shape (n_rows,)
        Group of every row.
    coupling : Coupling
        A matching of the rows of this very table.
    sample_weight : None
        The coupling carries the weights already; giving them again is an error.

    Notes
    -----
    .. math:: \Delta\mathrm{MDP}(f, T) = E_s |f(X, s) - f(T(X), s')|

    Definition 3.2 (equation 2) of the paper. For every coupling with the right marginals,
    :math:`\Delta\overline{\mathrm{DP}} \le \Delta\mathrm{WDP} \le \Delta\mathrm{MDP}`
    (Theorem 3.7).

    Examples
    --------
    >>> from fairmatch import fair_matching
    >>> scores, groups = [0.0, 1.0, 0.5, 0.75], ["a", "a", "b", "b"]
    >>> matched_parity_gap(None, scores, sensitive_features=groups,
    ...                    coupling=fair_matching(scores, groups))
    0.375
    """
    if sample_weight is not None:
        raise CouplingError(
            "sample_weight was given together with a coupling, which carries its own mass. Give "
            "the weights to the matcher instead."
        )
    check_coupling(coupling, optional=False)
    scores = read_scores(y_score)
    coupling.check_rows(len(scores))
    coupling.read_groups(sensitive_features)
    return coupling.gap(scores)


def _label_gap(
    label: bool,
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None,
    threshold: float | None,
    pos_label: Any,
) -> float:
    scores = read_scores(y_score)
    n_rows = len(scores)
    positive = read_labels(y_true, n_rows=n_rows, pos_label=pos_label)
    groups = read_groups(sensitive_features, n_rows=n_rows)
    weights = read_weights(sample_weight, n_rows=n_rows)
    where = f"the rows whose label is {'' if label else 'not '}{pos_label!r}"
    try:
        subset = positive if label else ~positive
        compared = ScoreDistributions(scores, groups, weights, subset=subset, where=where)
    except GroupError as error:
        raise LabelError(str(error)) from None
    return compared.rate_gap(threshold)


def true_positive_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    threshold: float | None = 0.5,
    pos_label: Any = 1,
) -> float:
    r"""Gap between the groups' shares of accepted people among the truly positive.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Labels of two classes.
    y_score, sensitive_features, sample_weight
        As in `demographic_parity_gap`.
    threshold : float or None, default=0.5
        None compares mean scores, the paper's smooth version.
    pos_label : default=1
        The label that counts as positive.

    Notes
    -----
    .. math:: \Delta\mathrm{TPR}(f) =
              |P(f(X, 0) \ge \tau \mid S = 0, Y = 1) - P(f(X, 1) \ge \tau \mid S = 1, Y = 1)|

    Section 5.3.1 of the paper; also known as equal opportunity.

    Examples
    --------
    >>> true_positive_gap([1, 1, 1, 0], [0.9, 0.2, 0.6, 0.7], sensitive_features=[0, 0, 1, 1])
    0.5
    """
    return _label_gap(
        True, y_true, y_score, sensitive_features, sample_weight, threshold, pos_label
    )


def false_positive_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    threshold: float | None = 0.5,
    pos_label: Any = 1,
) -> float:
    r"""Gap between the groups' shares of accepted people among the truly negative.

    Parameters are those of `true_positive_gap`.

    Notes
    -----
    .. math:: \Delta\mathrm{FPR}(f) =
              |P(f(X, 0) \ge \tau \mid S = 0, Y = 0) - P(f(X, 1) \ge \tau \mid S = 1, Y = 0)|

    Examples
    --------
    >>> false_positive_gap([0, 0, 0, 1], [0.9, 0.2, 0.6, 0.7], sensitive_features=[0, 0, 1, 1])
    0.5
    """
    return _label_gap(
        False, y_true, y_score, sensitive_features, sample_weight, threshold, pos_label
    )


def equalized_odds_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    threshold: float | None = 0.5,
    pos_label: Any = 1,
) -> float:
    r"""Mean of the true-positive and the false-positive gap.

    Parameters are those of `true_positive_gap`. fairlearn's ``equalized_odds_difference`` takes
    the worse of the two unless told ``agg="mean"``.

    Notes
    -----
    .. math:: \Delta\mathrm{EO}(f) = (\Delta\mathrm{TPR}(f) + \Delta\mathrm{FPR}(f)) / 2

    Examples
    --------
    >>> equalized_odds_gap([1, 0, 1, 0], [0.9, 0.2, 0.6, 0.7], sensitive_features=[0, 0, 1, 1])
    0.5
    """
    given = sensitive_features, sample_weight, threshold, pos_label
    tpr, fpr = (_label_gap(label, y_true, y_score, *given) for label in (True, False))
    return (tpr + fpr) / 2.0


def subset_parity_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    subset: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Gap between the groups' mean scores within a subset of people.

    Parameters
    ----------
    y_true, y_score, sensitive_features, sample_weight
        As in `mean_parity_gap`.
    subset : array-like of bool, shape (n_rows,)
        True for the rows that belong to the subset.

    Notes
    -----
    .. math:: \Delta\overline{\mathrm{DP}}_A(f) =
              |E(f(X, 0) \mid S = 0, X \in A) - E(f(X, 1) \mid S = 1, X \in A)|

    Definition 4.1 of the paper.

    Examples
    --------
    >>> scores, groups = [0.25, 0.75, 0.75, 0.25], [0, 0, 1, 1]
    >>> mean_parity_gap(None, scores, sensitive_features=groups)
    0.0
    >>> subset_parity_gap(None, scores, sensitive_features=groups,
    ...                   subset=[True, False, True, False])
    0.5
    """
    scores = read_scores(y_score)
    groups = read_groups(sensitive_features, n_rows=len(scores)).only_two("This measure")
    mask = _read_mask(subset, len(scores))
    weights = read_weights(sample_weight, n_rows=len(scores))
    return ScoreDistributions(scores, groups, weights, subset=mask, where="the subset").rate_gap(
        None
    )


def _read_mask(subset: ArrayLike, n_rows: int) -> BoolArray:
    mask = read_column(subset, "subset")
    if mask.dtype != bool:
        raise InputError(f"subset must be a boolean mask, got dtype {mask.dtype}.")
    if len(mask) != n_rows:
        raise InputError(f"subset has {len(mask)} rows where {n_rows} were expected.")
    return mask


def random_subset_gaps(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    X: ArrayLike,
    n_subsets: int = 1000,
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.Generator | None = None,
) -> FloatArray:
    r"""Gaps between mean scores in random half-spaces of the feature space.

    Parameters
    ----------
    y_true, y_score, sensitive_features, sample_weight
        As in `mean_parity_gap`.
    X : array-like of shape (n_rows, n_features)
        Encoded features.
    n_subsets : int, default=1000
        How many half-spaces to draw.
    random_state : int or numpy Generator, optional
        Same seed, same subsets.

    Returns
    -------
    array of shape (n_subsets,)
        NaN where a group has no member in the half-space; ``np.isnan(gaps).sum()`` counts them.

    Notes
    -----
    Subsets are :math:`\{i : v^\top x_i \ge 0\}` with v uniform on :math:`[-1, 1]^d`
    (Section 5.2.2 of the paper).

    Examples
    --------
    >>> gaps = random_subset_gaps(None, [0.25, 0.75, 0.75, 0.25], sensitive_features=[0, 0, 1, 1],
    ...                           X=[[1.0], [-1.0], [1.0], [-1.0]], n_subsets=3, random_state=0)
    >>> gaps.tolist()
    [0.5, 0.5, 0.5]
    """
    scores = read_scores(y_score)
    groups = read_groups(sensitive_features, n_rows=len(scores))
    features = read_features(X, n_rows=len(scores))
    weights = read_weights(sample_weight, n_rows=len(scores))
    ScoreDistributions(scores, groups, weights)  # raises where a group has no weight at all
    mass = np.ones(len(scores)) if weights is None else weights
    in_group = np.stack([groups.is_group(0), groups.is_group(1)]) * mass
    columns = np.concatenate([in_group, in_group * scores]).T
    check_count("n_subsets", n_subsets, 0)
    generator = read_generator(random_state)
    directions = generator.uniform(-1.0, 1.0, size=(n_subsets, features.shape[1]))
    sums = np.empty((n_subsets, 4))
    step = max(1, _BLOCK_CELLS // len(scores))
    for start in range(0, n_subsets, step):
        inside = directions[start : start + step] @ features.T >= 0.0
        sums[start : start + step] = inside.astype(np.float64) @ columns
    with np.errstate(invalid="ignore"):
        means = sums[:, 2:] / sums[:, :2]
    gaps: FloatArray = np.abs(means[:, 0] - means[:, 1])
    return gaps


def consistency(y_score: ArrayLike, flipped_score: ArrayLike, *, threshold: float = 0.5) -> float:
    r"""Share of people whose decision stays when only their sensitive attribute is flipped.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores of the people as they are.
    flipped_score : array-like of shape (n_rows,)
        Scores of the same people with the other group's code.
    threshold : float, default=0.5
        Accepted are scores at or above it.

    Notes
    -----
    The paper's ``Con`` (Section 5.4.2).

    Examples
    --------
    >>> consistency([0.9, 0.2, 0.6, 0.4], [0.8, 0.3, 0.4, 0.1])
    0.75
    """
    scores = read_scores(y_score)
    flipped = read_scores(flipped_score, name="flipped_score", n_rows=len(scores))
    check_threshold(threshold)
    return float(np.mean((scores >= threshold) == (flipped >= threshold)))


def rank_agreement(
    reference_score: ArrayLike, y_score: ArrayLike, *, sensitive_features: ArrayLike
) -> dict[Hashable, float]:
    r"""Spearman correlation of two models' scores, in each group.

    Parameters
    ----------
    reference_score : array-like of shape (n_rows,)
        Scores of the model to compare with, usually the unconstrained one.
    y_score : array-like of shape (n_rows,)
        Scores of the model in question.
    sensitive_features : array-like of shape (n_rows,)
        Group of every row.

    Returns
    -------
    dict
        Group label to correlation; NaN where a model gives the whole group one score.

    Notes
    -----
    Appendix E.3 of the paper, evaluation 1.

    Examples
    --------
    >>> rank_agreement([0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.9, 0.8],
    ...                sensitive_features=["a", "a", "b", "b"])
    {'a': 1.0, 'b': -1.0}
    """
    reference = read_scores(reference_score, name="reference_score")
    scores = read_scores(y_score, n_rows=len(reference))
    groups = read_groups(sensitive_features, n_rows=len(reference))
    agreement: dict[Hashable, float] = {}
    for code, label in enumerate(groups.labels):
        rows = groups.rows(code)
        agreement[label] = _correlation(_ranks(reference[rows]), _ranks(scores[rows]))
    return agreement


def _ranks(values: FloatArray) -> FloatArray:
    """Rank values, tied ones at their mean rank. scipy.stats would take a second to import."""
    _, level, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: FloatArray = (np.cumsum(counts) - (counts - 1) / 2.0)[level]
    return ranks


def _correlation(first: FloatArray, second: FloatArray) -> float:
    first, second = first - first.mean(), second - second.mean()
    scale = np.sqrt((first @ first) * (second @ second))
    return float(np.clip(first @ second / scale, -1.0, 1.0)) if scale > 0.0 else float("nan")


@dataclass(frozen=True)
class Flips:
    """Decisions of a model against those of a reference model, per group.

    Attributes
    ----------
    tables : dict
        Group label to a 2x2 count: rows are the model's decision (0, 1), columns the reference's.
    undesirable : dict
        Group label to the number of undesirable flips in it.
    """

    tables: dict[Hashable, NDArray[np.int64]]
    undesirable: dict[Hashable, int]

    @property
    def total(self) -> int:
        """Undesirable flips in both groups."""
        return sum(self.undesirable.values())


def undesirable_flips(
    reference_score: ArrayLike,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    privileged: Hashable,
    threshold: float = 0.5,
) -> Flips:
    r"""Count decisions that a fair model changes in the wrong direction.

    In the privileged group those are people rejected by the reference and accepted by the model;
    in the other group people accepted by the reference and rejected by the model.

    Parameters
    ----------
    reference_score, y_score, sensitive_features
        As in `rank_agreement`.
    privileged : a group label
        Which group is the favoured one. It differs from table to table.
    threshold : float, default=0.5
        Accepted are scores at or above it.

    Notes
    -----
    Appendix E.3 of the paper, evaluation 2.

    Examples
    --------
    >>> flips = undesirable_flips([0, 1, 1, 0], [0, 0, 1, 1], sensitive_features=[0, 0, 1, 1],
    ...                           privileged=1)
    >>> flips.undesirable, flips.total
    ({0: 1, 1: 1}, 2)
    >>> flips.tables[1].tolist()
    [[0, 0], [1, 1]]
    """
    check_threshold(threshold)
    reference = read_scores(reference_score, name="reference_score") >= threshold
    decisions = read_scores(y_score, n_rows=len(reference)) >= threshold
    groups = read_groups(sensitive_features, n_rows=len(reference))
    if privileged not in groups.labels:
        raise GroupError(
            f"privileged={privileged!r} is not one of the groups {groups.labels[0]!r} and "
            f"{groups.labels[1]!r}."
        )
    tables: dict[Hashable, NDArray[np.int64]] = {}
    undesirable: dict[Hashable, int] = {}
    for code, label in enumerate(groups.labels):
        rows = groups.is_group(code)
        cells = 2 * decisions[rows].astype(np.int64) + reference[rows]
        tables[label] = np.bincount(cells, minlength=4).reshape(2, 2).astype(np.int64)
        wrong = (1, 0) if label == privileged else (0, 1)
        undesirable[label] = int(tables[label][wrong])
    return Flips(tables, undesirable)


@dataclass(frozen=True)
class Measure:
    """A line of the table of measures.

    Attributes
    ----------
    function : callable
        The measure.
    symbol : str
        The paper's symbol.
    needs_labels, needs_coupling : bool
        What it takes beyond scores and groups.
    """

    function: Callable[..., float]
    symbol: str
    needs_labels: bool = False
    needs_coupling: bool = False


MEASURES: dict[str, Measure] = {
    measure.function.__name__: measure
    for measure in (
        Measure(demographic_parity_gap, "ΔDP"),
        Measure(mean_parity_gap, "Δ‾DP"),
        Measure(wasserstein_parity_gap, "ΔWDP"),
        Measure(total_variation_parity_gap, "ΔTVDP"),
        Measure(ks_parity_gap, "ΔKSDP"),
        Measure(matched_parity_gap, "ΔMDP", needs_coupling=True),
        Measure(true_positive_gap, "ΔTPR", needs_labels=True),
        Measure(false_positive_gap, "ΔFPR", needs_labels=True),
        Measure(equalized_odds_gap, "ΔEO", needs_labels=True),
    )
}


def gap_table(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    coupling: Coupling | None = None,
    threshold: float = 0.5,
    bins: int | None = 20,
    pos_label: Any = 1,
) -> dict[str, float]:
    """Take every gap that the data allow, in one pass.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,), or None
        With labels, the gaps of error rates are taken too.
    y_score, sensitive_features, sample_weight, threshold, pos_label
        As in `true_positive_gap`.
    coupling : Coupling, optional
        With a coupling of these rows, the matched gap is taken too.
    bins : int or None, default=20
        For the total variation, which would be about 1 for continuous scores otherwise.

    Returns
    -------
    dict
        Name of the measure to its value, in the order of `MEASURES`.

    Examples
    --------
    >>> gaps = gap_table(None, [0.9, 0.2, 0.6, 0.7], sensitive_features=[0, 0, 1, 1])
    >>> for name, value in gaps.items():
    ...     print(f"{name:27}{value:.2f}")
    demographic_parity_gap     0.50
    mean_parity_gap            0.10
    wasserstein_parity_gap     0.30
    total_variation_parity_gap 1.00
    ks_parity_gap              0.50
    """
    scores = read_scores(y_score)
    groups = ScoreDistributions.read(scores, sensitive_features, sample_weight)
    gaps = {
        "demographic_parity_gap": groups.rate_gap(threshold),
        "mean_parity_gap": groups.rate_gap(None),
        "wasserstein_parity_gap": groups.wasserstein,
        "total_variation_parity_gap": groups.total_variation(bins),
        "ks_parity_gap": groups.kolmogorov_smirnov,
    }
    check_coupling(coupling)
    if coupling is not None:
        coupling.read_groups(sensitive_features)
        gaps["matched_parity_gap"] = coupling.gap(scores)
    if y_true is not None:
        for label, name in ((True, "true_positive_gap"), (False, "false_positive_gap")):
            gaps[name] = _label_gap(
                label, y_true, scores, sensitive_features, sample_weight, threshold, pos_label
            )
        gaps["equalized_odds_gap"] = (gaps["true_positive_gap"] + gaps["false_positive_gap"]) / 2.0
    return gaps
