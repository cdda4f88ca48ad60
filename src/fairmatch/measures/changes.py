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
    r"""Compute the share of people whose decision stays when only their group is changed.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores of the people as they are.
    flipped_score : array-like of shape (n_rows,), or of shape (n_flips, n_rows)
        Scores of the same people in another group. With more than two groups there is one row
        for each other group that they are moved to.
    threshold : float, default=0.5
        Accepted are scores at or above it.

    Returns
    -------
    float
        The least share over the flips; `consistency_by_flip` returns them all.

    Notes
    -----
    The paper's ``Con`` (Section 5.4.2).

    Examples
    --------
    >>> consistency([0.9, 0.2, 0.6, 0.4], [0.8, 0.3, 0.4, 0.1])
    0.75
    """
    return float(consistency_by_flip(y_score, flipped_score, threshold=threshold).min())


def consistency_by_flip(
    y_score: ArrayLike, flipped_score: ArrayLike | Iterable[ArrayLike], *, threshold: float = 0.5
) -> FloatArray:
    r"""Compute the share of people whose decision stays, for every change of their group.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores of the people as they are.
    flipped_score : array-like of shape (n_rows,), or of shape (n_flips, n_rows)
        Scores of the same people in another group. With K groups the k-th of K - 1 rows holds
        everybody's score in the k-th other group.
    threshold : float, default=0.5
        Accepted are scores at or above it.

    Returns
    -------
    array of shape (n_flips,)
        `consistency` is the least of them. Their mean describes a change to a random other group.

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
    """Return the flips one by one; a single column is one flip."""
    array = flipped_score if hasattr(flipped_score, "ndim") else np.asarray(flipped_score)
    if array.ndim == 2 and array.shape[1] == 1:
        return [flipped_score]
    if array.ndim == 2 and hasattr(flipped_score, "columns"):
        raise InputError(
            "flipped_score is a table with columns. Give a list with one column of scores for "
            "each other group."
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
        """Undesirable flips in all groups."""
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

    In a privileged group those are people rejected by the reference and accepted by the model;
    in every other group people accepted by the reference and rejected by the model.

    Parameters
    ----------
    reference_score : array-like of shape (n_rows,)
        Scores of the model to compare with, usually the unconstrained one.
    y_score : array-like of shape (n_rows,)
        Scores of the model in question.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    privileged : a group label, or a list of them
        Which groups are the favoured ones. They differ from table to table.
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
    favoured = _favoured(groups, privileged)
    tables: dict[Hashable, NDArray[np.int64]] = {}
    undesirable: dict[Hashable, int] = {}
    for code, label in enumerate(groups.labels):
        rows = groups.is_group(code)
        cells = 2 * decisions[rows].astype(np.int64) + reference[rows]
        tables[label] = np.bincount(cells, minlength=4).reshape(2, 2).astype(np.int64)
        wrong = (1, 0) if code in favoured else (0, 1)
        undesirable[label] = int(tables[label][wrong])
    return Flips(tables, undesirable)


def _favoured(groups: Groups, privileged: Any) -> set[int]:
    """Return the codes of the privileged groups, or raise where that leaves nobody to compare."""
    several = isinstance(privileged, list | tuple | set | frozenset | np.ndarray)
    if several and privileged not in groups.labels:
        favoured = {groups.code_of(label, "privileged") for label in privileged}
    else:
        favoured = {groups.code_of(privileged, "privileged")}
    if not 0 < len(favoured) < groups.n_groups:
        raise GroupError(
            f"privileged names {len(favoured)} of {groups.n_groups} groups. Name at least one, "
            "and leave at least one that is not privileged."
        )
    return favoured
