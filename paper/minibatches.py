"""The paper's estimate of a transport cost, on random mini-batches."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fairmatch.exceptions import GroupError
from fairmatch.people.checks import (
    FloatArray,
    check_count,
    read_features,
    read_generator,
    read_scores,
)
from fairmatch.people.groups import Groups, read_groups


@dataclass(frozen=True)
class BatchEstimate:
    """A transport cost estimated on random mini-batches.

    Attributes
    ----------
    mean, standard_error : float
        Mean over the batches, and its standard error. The error is NaN for a single batch.
    costs : array of shape (n_batches,)
        Cost in each batch.
    """

    mean: float
    standard_error: float
    costs: FloatArray


def minibatch_transport_cost(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    X: ArrayLike,
    *,
    batch_size: int = 1024,
    n_batches: int = 100,
    random_state: int | np.random.Generator | None = None,
) -> BatchEstimate:
    r"""Estimate the transport cost of a model's fair matching as the paper does.

    Each batch holds ``batch_size`` people of each group, and equal ranks are matched. The squared
    distance is averaged over ``n_batches`` batches. `fair_matching` gives the exact value for all
    rows. The estimate has a bias, which falls as batches grow (Remark A.2). The remark prints its
    second exponent with the wrong sign: the rate is :math:`n_0^{-1/2} + n_1^{-1/2}`, which is of
    order :math:`m^{-1/2}` for batches of :math:`m` people.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or 0/1 decisions.
    sensitive_features : array-like of shape (n_rows,)
        Group of every row. There must be two groups.
    X : array-like of shape (n_rows, n_features)
        Encoded features.
    batch_size : int, default=1024
        People drawn from each group, without replacement.
    n_batches : int, default=100
        Number of draws.
    random_state : int or numpy Generator, optional
        Source of the draws. The same seed gives the same draws.

    Returns
    -------
    BatchEstimate
        The mean cost, its standard error, and the cost of each batch.

    Examples
    --------
    >>> scores = [0.1, 0.2, 0.1, 0.2]
    >>> minibatch_transport_cost(scores, [0, 0, 1, 1], [[0.0], [1.0], [0.0], [3.0]],
    ...                          batch_size=2, n_batches=5, random_state=0).mean
    2.0
    """
    scores = read_scores(y_score)
    groups = read_groups(sensitive_features, n_rows=len(scores))
    groups.only_two("minibatch_transport_cost")
    features = read_features(X, n_rows=len(scores))
    generator = read_generator(random_state)
    rows = groups.rows(0), groups.rows(1)
    _check_batch(batch_size, groups)
    check_count("n_batches", n_batches)
    costs = np.empty(n_batches)
    for batch in range(n_batches):
        drawn = [generator.choice(r, size=batch_size, replace=False) for r in rows]
        source, target = (r[np.argsort(scores[r], kind="stable")] for r in drawn)
        costs[batch] = ((features[source] - features[target]) ** 2).sum(axis=1).mean()
    error = costs.std(ddof=1) / np.sqrt(n_batches) if n_batches > 1 else float("nan")
    return BatchEstimate(float(costs.mean()), float(error), costs)


def _check_batch(batch_size: int, groups: Groups) -> None:
    check_count("batch_size", batch_size)
    for code, label in enumerate(groups.labels):
        size = len(groups.rows(code))
        if size < batch_size:
            raise GroupError(
                f"Group {label!r} has {size} rows, fewer than batch_size={batch_size}. Choose a "
                f"batch size of at most {size}."
            )
