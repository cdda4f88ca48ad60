"""Changes between two models, and gaps within subsets of people."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairmatch.exceptions import GroupError, InputError
from fairmatch.measures.distributions import ScoredPeople
from fairmatch.measures.gaps import read_scored
from fairmatch.measures.registry import MEASURES
from fairmatch.people.checks import (
    FloatArray,
    check_count,
    check_length,
    check_number,
    read_column,
    read_features,
    read_generator,
    read_scores,
)
from fairmatch.people.groups import Groups, read_groups


def consistency(
    y_score: ArrayLike, flipped_score: ArrayLike | Iterable[ArrayLike], *, threshold: float = 0.5
) -> float:
    r"""Compute the share of people whose decision stays the same when only their group changes.

    Parameters
    ----------
    y_score, flipped_score, threshold
        As in `consistency_by_flip`.

    Returns
    -------
    float
        The smallest share over the flips. `consistency_by_flip` returns all of them.

    Notes
    -----
    .. math:: \mathrm{Con}(f) = \min_k P\bigl(1[f(X, S) \ge \tau] = 1[f(X, S_k) \ge \tau]\bigr)

    where :math:`S_k` is the group after the k-th flip (Section 5.4.2 of the paper).

    Examples
    --------
    >>> consistency([0.9, 0.2, 0.6, 0.4], [0.8, 0.3, 0.4, 0.1])
    0.75
    """
    return float(consistency_by_flip(y_score, flipped_score, threshold=threshold).min())


def consistency_by_flip(
    y_score: ArrayLike, flipped_score: ArrayLike | Iterable[ArrayLike], *, threshold: float = 0.5
) -> FloatArray:
    r"""Compute the share of people whose decision stays the same, for each change of group.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores of the people as they are.
    flipped_score : array-like of shape (n_rows,), or of shape (n_flips, n_rows)
        Scores of the same people in another group. With K groups there are K - 1 rows: the k-th
        row holds everybody's score in the k-th other group.
    threshold : float, default=0.5
        A score at or above the threshold is accepted.

    Returns
    -------
    array of shape (n_flips,)
        One share per flip. `consistency` is the smallest of them. Their mean describes a change
        to another group chosen at random.

    Notes
    -----
    The k-th share is :math:`P(1[f(X, S) \ge \tau] = 1[f(X, S_k) \ge \tau])`, where :math:`S_k` is
    the group after the k-th flip.

    Examples
    --------
    >>> consistency_by_flip([0.9, 0.2], [[0.8, 0.3], [0.4, 0.1]]).tolist()
    [1.0, 0.5]
    """
    check_number("threshold", threshold, "(-inf, inf)")
    decided = read_scores(y_score) >= threshold
    flips = [read_scores(flip, name="flipped_score", n_rows=len(decided)) >= threshold
             for flip in _flips(flipped_score)]  # fmt: skip
    return np.array([np.mean(decided == flip) for flip in flips])


def _flips(flipped_score: Any) -> list[Any]:
    """Return a list of flips. A single column is one flip."""
    shape = np.shape(flipped_score)
    if len(shape) < 2 or shape[1] == 1:
        return [flipped_score]
    if hasattr(flipped_score, "columns"):
        raise InputError(
            "flipped_score is a table with columns, but it must be a list of columns. Pass a "
            "list with one column of scores for each other group."
        )
    return list(np.asarray(flipped_score))


def rank_agreement(
    reference_score: ArrayLike, y_score: ArrayLike, *, sensitive_features: ArrayLike
) -> dict[Hashable, float]:
    r"""Compute the rank correlation (Spearman) of two models' scores in each group.

    Parameters
    ----------
    reference_score : array-like of shape (n_rows,)
        Scores of the model to compare with, usually the unconstrained one.
    y_score : array-like of shape (n_rows,)
        Scores of the model in question.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.

    Returns
    -------
    dict
        Group label to correlation. It is NaN if a model gives everybody in the group the same
        score.

    Notes
    -----
    The correlation of group s is :math:`\mathrm{corr}(R_s(f), R_s(g))`, where :math:`R_s` ranks the
    people of the group and ties get their mean rank (Appendix E.3 of the paper, evaluation 1).

    Examples
    --------
    >>> rank_agreement([0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.9, 0.8],
    ...                sensitive_features=["a", "a", "b", "b"])
    {'a': 1.0, 'b': -1.0}
    """
    reference = read_scores(reference_score, name="reference_score")
    scores = read_scores(y_score, n_rows=len(reference))
    groups = read_groups(sensitive_features, n_rows=len(reference))
    rows = {label: groups.rows(code) for code, label in enumerate(groups.labels)}
    return {label: rank_correlation(reference[own], scores[own]) for label, own in rows.items()}


def rank_correlation(
    first: FloatArray, second: FloatArray, weights: FloatArray | None = None
) -> float:
    """Return Spearman's correlation of two scores of the same people; NaN if one is constant."""
    weights = np.ones(len(first)) if weights is None else weights
    ranks = [_ranks(own, weights) for own in (first, second)]
    first, second = (own - np.average(own, weights=weights) for own in ranks)
    spreads = float(weights @ first**2), float(weights @ second**2)
    if min(spreads) <= 0.0:
        return float("nan")
    found = weights @ (first * second) / np.sqrt(spreads[0] * spreads[1])
    return float(np.clip(found, -1.0, 1.0))


def _ranks(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Rank values by the weight below them. Tied values get their mean rank."""
    _, level = np.unique(values, return_inverse=True)
    mass = np.bincount(level, weights)
    ranks: FloatArray = (np.cumsum(mass) - mass / 2.0)[level]
    return ranks


@dataclass(frozen=True)
class Flips:
    """A model's decisions compared with those of a reference model, by group.

    Examples
    --------
    >>> import numpy as np
    >>> flips = Flips({"a": np.array([[1, 2], [0, 3]])}, {"a": 2})
    >>> flips.total
    2
    """

    #: Group label to a 2x2 table of counts. Rows are the model's decision (0, 1), and columns are
    #: the reference's.
    tables: dict[Hashable, NDArray[np.int64]]
    #: Group label to the number of undesirable flips in the group.
    undesirable: dict[Hashable, int]

    @property
    def total(self) -> int:
        """The number of undesirable flips in all groups."""
        return sum(self.undesirable.values())


def undesirable_flips(
    reference_score: ArrayLike,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    privileged: Hashable | Iterable[Hashable],
    threshold: float = 0.5,
) -> Flips:
    r"""Count decisions that a fair model changes in the wrong direction.

    In a privileged group these are people whom the reference rejects and the model accepts. In
    every other group these are people whom the reference accepts and the model rejects.

    Parameters
    ----------
    reference_score, y_score, sensitive_features
        As in `rank_agreement`.
    privileged : a group label, or a list of them
        The favoured groups. They differ from table to table.
    threshold : float, default=0.5
        A score at or above the threshold is accepted.

    Returns
    -------
    Flips
        The decisions and the undesirable flips of each group.

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
    check_number("threshold", threshold, "(-inf, inf)")
    reference = read_scores(reference_score, name="reference_score") >= threshold
    decisions = read_scores(y_score, n_rows=len(reference)) >= threshold
    groups = read_groups(sensitive_features, n_rows=len(reference))
    favoured = favoured_groups(groups, privileged)
    tables: dict[Hashable, NDArray[np.int64]] = {}
    undesirable: dict[Hashable, int] = {}
    for code, label in enumerate(groups.labels):
        rows = groups.is_group(code)
        cells = 2 * decisions[rows].astype(np.int64) + reference[rows]
        tables[label] = np.bincount(cells, minlength=4).reshape(2, 2).astype(np.int64)
        wrong = (1, 0) if code in favoured else (0, 1)
        undesirable[label] = int(tables[label][wrong])
    return Flips(tables, undesirable)


def favoured_groups(groups: Groups, privileged: Any) -> set[int]:
    """Return the codes of the privileged groups. Raise if nobody is left to compare."""
    if isinstance(privileged, np.ndarray):
        privileged = privileged.tolist()
    several = isinstance(privileged, list | tuple | set | frozenset)
    if several and privileged not in groups.labels:
        favoured = {groups.code_of(label, "privileged") for label in privileged}
    else:
        favoured = {groups.code_of(privileged, "privileged")}
    if not 0 < len(favoured) < groups.n_groups:
        raise GroupError(
            f"privileged names {len(favoured)} of {groups.n_groups} groups. Name at least one "
            "group, and leave at least one that is not privileged."
        )
    return favoured


# Random subsets are examined in blocks of this many (row, subset) cells.
_BLOCK_CELLS = 20_000_000


def subset_parity_gap(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    subset: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Compute the gap between the groups' mean scores within a subset of people.

    Parameters
    ----------
    y_true, y_score, sensitive_features, sample_weight
        As in `demographic_parity_gap`, for scores of two classes.
    subset : array-like of bool, shape (n_rows,)
        True for the rows that belong to the subset. Every group needs rows in the subset.

    Returns
    -------
    float
        The largest gap between two groups.

    Notes
    -----
    .. math:: \Delta\overline{\mathrm{DP}}_A(f) = \max_{s, s'}
              |E(f(X, s) \mid S = s, X \in A) - E(f(X, s') \mid S = s', X \in A)|

    Definition 4.1 of the paper.

    Examples
    --------
    >>> from fairmatch.measures import mean_parity_gap
    >>> scores, groups = [0.25, 0.75, 0.75, 0.25], [0, 0, 1, 1]
    >>> mean_parity_gap(None, scores, sensitive_features=groups)
    0.0
    >>> subset_parity_gap(None, scores, sensitive_features=groups,
    ...                   subset=[True, False, True, False])
    0.5
    """
    scored = read_scored(y_score, sensitive_features, sample_weight, estimated=False)
    mask = read_column(subset, "subset")
    if mask.dtype != bool:
        raise InputError(
            f"subset must be a boolean mask, got dtype {mask.dtype}. Pass True for the rows in the "
            "subset, and False for the others."
        )
    check_length(mask, len(scored.scores), "subset")
    rows = np.flatnonzero(mask)
    inside = ScoredPeople(scored.people.take(rows), scored.scores[rows], where="the subset")
    return MEASURES["mean_parity_gap"].value(inside)


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
    r"""Compute the gaps between mean scores in random half-spaces of the feature space.

    Parameters
    ----------
    y_true, y_score, sensitive_features, sample_weight
        As in `demographic_parity_gap`, for scores of two classes.
    X : array-like of shape (n_rows, n_features)
        Encoded features.
    n_subsets : int, default=1000
        How many half-spaces to draw.
    random_state : int or numpy Generator, optional
        Source of the half-spaces. The same seed gives the same half-spaces.

    Returns
    -------
    array of shape (n_subsets,)
        The largest gap between two groups in each half-space. It is NaN where a group has nobody
        in the half-space. ``np.isnan(gaps).sum()`` counts these cases.

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
    scored = read_scored(y_score, sensitive_features, sample_weight, estimated=False)
    features = read_features(X, n_rows=len(scored.scores))
    for code in scored.codes:
        scored.part(code)  # raises where a group has no weight at all
    check_count("n_subsets", n_subsets, 0)
    generator = read_generator(random_state)
    directions = generator.uniform(-1.0, 1.0, size=(n_subsets, features.shape[1]))
    groups, weights = scored.people.groups, scored.weights.values
    return half_space_gaps(
        scored.scores, groups.codes, groups.n_groups, weights, features, directions
    )


def half_space_gaps(
    scores: FloatArray,
    codes: NDArray[np.integer[Any]],
    n_groups: int,
    weights: FloatArray | None,
    features: FloatArray,
    directions: FloatArray,
) -> FloatArray:
    """Return the largest gap of mean scores in each half-space; NaN where a group has nobody."""
    mass = np.ones(len(scores)) if weights is None else weights
    in_group = np.stack([codes == code for code in range(n_groups)]) * mass
    columns = np.concatenate([in_group, in_group * scores]).T
    sums = np.empty((len(directions), 2 * n_groups))
    step = max(1, _BLOCK_CELLS // len(scores))
    for start in range(0, len(directions), step):
        inside = directions[start : start + step] @ features.T >= 0.0
        sums[start : start + step] = inside.astype(np.float64) @ columns
    with np.errstate(invalid="ignore"):
        means = sums[:, n_groups:] / sums[:, :n_groups]
    gaps: FloatArray = means.max(axis=1) - means.min(axis=1)  # NaN if a mean is NaN
    return gaps
