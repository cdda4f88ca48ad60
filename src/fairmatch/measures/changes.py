"""Changes between two models, or between a person and the same person in another group."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairmatch.exceptions import GroupError, InputError
from fairmatch.tables.arrays import FloatArray, read_scores
from fairmatch.tables.groups import Groups, read_groups
from fairmatch.tables.parameters import check_threshold


def consistency(
    y_score: ArrayLike, flipped_score: ArrayLike | Iterable[ArrayLike], *, threshold: float = 0.5
) -> float:
    r"""Compute the share of people whose decision stays the same when only their group changes.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores of the people as they are.
    flipped_score : array-like of shape (n_rows,), or of shape (n_flips, n_rows)
        Scores of the same people in another group. With more than two groups there is one row
        for each group that people are moved to.
    threshold : float, default=0.5
        A score at or above the threshold is accepted.

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
    check_threshold(threshold)
    decided = read_scores(y_score) >= threshold
    flips = [read_scores(flip, name="flipped_score", n_rows=len(decided)) >= threshold
             for flip in _flips(flipped_score)]  # fmt: skip
    return np.array([np.mean(decided == flip) for flip in flips])


def _flips(flipped_score: Any) -> list[Any]:
    """Return a list of flips. A single column is one flip."""
    array = flipped_score if hasattr(flipped_score, "ndim") else np.asarray(flipped_score)
    if array.ndim == 2 and array.shape[1] == 1:
        return [flipped_score]
    if array.ndim == 2 and hasattr(flipped_score, "columns"):
        raise InputError(
            "flipped_score is a table with columns, and it must be a list of columns. Pass a list "
            "with one column of scores for each other group."
        )
    return list(array) if array.ndim == 2 else [flipped_score]


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
    agreement: dict[Hashable, float] = {}
    for code, label in enumerate(groups.labels):
        rows = groups.rows(code)
        agreement[label] = _correlation(_ranks(reference[rows]), _ranks(scores[rows]))
    return agreement


def _ranks(values: FloatArray) -> FloatArray:
    """Return ranks, where ties get their mean rank. Importing scipy.stats would take a second."""
    _, level, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: FloatArray = (np.cumsum(counts) - (counts - 1) / 2.0)[level]
    return ranks


def _correlation(first: FloatArray, second: FloatArray) -> float:
    first, second = first - first.mean(), second - second.mean()
    scale = np.sqrt((first @ first) * (second @ second))
    return float(np.clip(first @ second / scale, -1.0, 1.0)) if scale > 0.0 else float("nan")


@dataclass(frozen=True)
class Flips:
    """A model's decisions compared with those of a reference model, by group.

    Attributes
    ----------
    tables : dict
        Group label to a 2x2 table of counts. Rows are the model's decision (0, 1), and columns
        are the reference's.
    undesirable : dict
        Group label to the number of undesirable flips in the group.

    Examples
    --------
    >>> import numpy as np
    >>> flips = Flips({"a": np.array([[1, 2], [0, 3]])}, {"a": 2})
    >>> flips.total
    2
    """

    tables: dict[Hashable, NDArray[np.int64]]
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
    reference_score : array-like of shape (n_rows,)
        Scores of the model to compare with, usually the unconstrained one.
    y_score : array-like of shape (n_rows,)
        Scores of the model in question.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
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
    check_threshold(threshold)
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
    """Return the codes of the privileged groups. Raise if nobody is left to compare.

    Parameters
    ----------
    groups : Groups
        Group of every row.
    privileged : a group label, or a list of them
        The favoured groups.
    """
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
