"""The closed-form optimal transport map between two normal distributions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fairmatch.exceptions import InputError
from fairmatch.tables.arrays import FloatArray


@dataclass(frozen=True)
class GaussianMap:
    r"""The optimal transport map between two normal distributions.

    Attributes
    ----------
    matrix : array of shape (d, d)
        The linear part W.
    offset : array of shape (d,)
        The constant part b.

    Notes
    -----
    Lemma A.3 of the paper: :math:`T(x) = W x + b` with

    .. math:: W = \Sigma_0^{-1/2} (\Sigma_0^{1/2} \Sigma_1 \Sigma_0^{1/2})^{1/2} \Sigma_0^{-1/2},
              \qquad b = \mu_1 - W \mu_0.

    Examples
    --------
    >>> shift_and_stretch = GaussianMap.between([0.0], [[1.0]], [3.0], [[4.0]])
    >>> shift_and_stretch([[1.0]]).tolist()
    [[5.0]]
    """

    matrix: FloatArray
    offset: FloatArray

    @classmethod
    def between(
        cls, mean0: ArrayLike, covariance0: ArrayLike, mean1: ArrayLike, covariance1: ArrayLike
    ) -> "GaussianMap":
        """Return the map from N(mean0, covariance0) to N(mean1, covariance1).

        Parameters
        ----------
        mean0, mean1 : array-like of shape (d,)
            Means of the source and of the target distribution.
        covariance0, covariance1 : array-like of shape (d, d)
            Their covariances. That of the source must be positive definite.
        """
        start, goal = np.asarray(mean0, dtype=float), np.asarray(mean1, dtype=float)
        sigma0, sigma1 = np.asarray(covariance0, dtype=float), np.asarray(covariance1, dtype=float)
        values, vectors = np.linalg.eigh(sigma0)
        if values.min() <= 0.0:
            raise InputError(
                "covariance0 must be positive definite, and its smallest eigenvalue is "
                f"{values.min():g}. The map is not unique where the source has no spread: leave "
                "out columns that depend on others."
            )
        root = (vectors * np.sqrt(values)) @ vectors.T
        inverse = (vectors / np.sqrt(values)) @ vectors.T
        values, vectors = np.linalg.eigh(root @ sigma1 @ root)
        middle = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        matrix = inverse @ middle @ inverse
        return cls(matrix, goal - matrix @ start)

    def __call__(self, X: ArrayLike) -> FloatArray:
        """Return the places to which the points X are moved."""
        moved: FloatArray = np.asarray(X, dtype=float) @ self.matrix.T + self.offset
        return moved
