"""Gaps within subsets of people: a model can be fair overall and unfair in part of the table."""

import numpy as np
from numpy.typing import ArrayLike

from fairmatch.exceptions import InputError
from fairmatch.measures.distributions import ScoreDistributions
from fairmatch.tables.arrays import (
    BoolArray,
    FloatArray,
    read_column,
    read_features,
    read_scores,
    read_weights,
)
from fairmatch.tables.groups import read_groups
from fairmatch.tables.parameters import check_count, read_generator

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
    y_true : ignored
        May be None.
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or 0/1 decisions.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row. The combinations of several attributes are the groups.
    subset : array-like of bool, shape (n_rows,)
        True for the rows that belong to the subset. Every group needs rows in the subset.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.

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
    scores = read_scores(y_score)
    groups = read_groups(sensitive_features, n_rows=len(scores))
    mask = _read_mask(subset, len(scores))
    weights = read_weights(sample_weight, n_rows=len(scores))
    inside = ScoreDistributions(scores, groups, weights, subset=mask, where="the subset")
    return inside.rate_gap(None)


def _read_mask(subset: ArrayLike, n_rows: int) -> BoolArray:
    mask = read_column(subset, "subset")
    if mask.dtype != bool:
        raise InputError(
            f"subset must be a boolean mask, got dtype {mask.dtype}. Pass True for the rows in the "
            "subset, and False for the others."
        )
    if len(mask) != n_rows:
        raise InputError(
            f"subset has {len(mask)} rows where {n_rows} were expected. Pass one entry per score."
        )
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
    r"""Compute the gaps between mean scores in random half-spaces of the feature space.

    Parameters
    ----------
    y_true : ignored
        May be None.
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or 0/1 decisions.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row. The combinations of several attributes are the groups.
    X : array-like of shape (n_rows, n_features)
        Encoded features.
    n_subsets : int, default=1000
        How many half-spaces to draw.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
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
    scores = read_scores(y_score)
    groups = read_groups(sensitive_features, n_rows=len(scores))
    features = read_features(X, n_rows=len(scores))
    weights = read_weights(sample_weight, n_rows=len(scores))
    ScoreDistributions(scores, groups, weights)  # raises where a group has no weight at all
    mass = np.ones(len(scores)) if weights is None else weights
    in_group = np.stack([groups.is_group(code) for code in range(groups.n_groups)]) * mass
    columns = np.concatenate([in_group, in_group * scores]).T
    check_count("n_subsets", n_subsets, 0)
    generator = read_generator(random_state)
    directions = generator.uniform(-1.0, 1.0, size=(n_subsets, features.shape[1]))
    sums = np.empty((n_subsets, 2 * groups.n_groups))
    step = max(1, _BLOCK_CELLS // len(scores))
    for start in range(0, n_subsets, step):
        inside = directions[start : start + step] @ features.T >= 0.0
        sums[start : start + step] = inside.astype(np.float64) @ columns
    with np.errstate(invalid="ignore"):
        means = sums[:, groups.n_groups :] / sums[:, : groups.n_groups]
    gaps: FloatArray = means.max(axis=1) - means.min(axis=1)  # NaN if a mean is NaN
    return gaps
