"""Illustrations of theorems, drawn from known distributions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fairmatch.exceptions import InputError
from fairmatch.matching.coupling import Coupling, IndexArray
from fairmatch.matching.fair import fair_matching
from fairmatch.matching.matchers import OptimalTransportMatcher
from fairmatch.measures import demographic_parity_gap, subset_parity_gap
from fairmatch.people.checks import FloatArray


@dataclass(frozen=True)
class GaussianMap:
    r"""The optimal transport map between two normal distributions.

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

    matrix: FloatArray  #: The linear part W.
    offset: FloatArray  #: The constant part b.

    @classmethod
    def between(
        cls, mean0: ArrayLike, covariance0: ArrayLike, mean1: ArrayLike, covariance1: ArrayLike
    ) -> "GaussianMap":
        """Return the map from N(mean0, covariance0) to N(mean1, covariance1).

        The source's covariance must be positive definite.
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


@dataclass(frozen=True, eq=False)
class FairModel:
    """One of the models of Appendix B: what it does, its decisions (group 0 first) and its facts.

    The coupling is the fair matching with the least cost among ties; its cost is the mean squared
    distance between matched people. The gap in the subset is that of mean scores where x ≥ 1/2.
    """

    name: str
    scores: FloatArray
    coupling: Coupling
    group_gap: float
    subset_gap: float
    transport_cost: float


@dataclass(frozen=True, eq=False)
class AppendixB:
    """Two models that are fair to the groups; one of them is unfair to a subset.

    The feature is the same grid in both groups. The first model accepts opposite halves, the second
    the same half.
    """

    x: FloatArray
    groups: IndexArray
    models: tuple[FairModel, FairModel]


def appendix_b(n_points: int = 200) -> AppendixB:
    r"""Compute the two models of the paper's Appendix B on a grid.

    Notes
    -----
    :math:`\hat f = (\mathrm{sign}(2x - 1)(1 - 2s) + 1)/2` accepts the upper half of group 0 and
    the lower half of group 1. Its cheapest fair matching moves everyone by 1/2, at a cost of 1/4.
    :math:`\tilde f = (\mathrm{sign}(2x - 1) + 1)/2` accepts the upper half of both groups. Its
    cheapest fair matching moves nobody.

    Examples
    --------
    >>> for model in appendix_b(50).models:
    ...     print(model.group_gap, model.subset_gap, round(model.transport_cost, 6))
    0.0 1.0 0.25
    0.0 0.0 0.0
    """
    if n_points < 2 or n_points % 2:
        raise InputError(f"n_points must be an even number of at least 2, got {n_points}.")
    grid = (np.arange(n_points) + 0.5) / n_points
    x, groups = np.tile(grid, 2), np.repeat([0, 1], n_points)
    sign = np.sign(2.0 * x - 1.0)

    def model(name: str, scores: FloatArray) -> FairModel:
        coupling = fair_matching(scores, groups, X=x, reference=1)
        return FairModel(
            name,
            scores,
            coupling,
            demographic_parity_gap(None, scores, sensitive_features=groups),
            subset_parity_gap(None, scores, sensitive_features=groups, subset=x >= 0.5),
            coupling.transport_cost(x),
        )

    return AppendixB(
        x,
        groups,
        (
            model("accepts opposite halves", (sign * (1 - 2 * groups) + 1.0) / 2.0),
            model("accepts the same half", (sign + 1.0) / 2.0),
        ),
    )


@dataclass(frozen=True, eq=False)
class Counterfactuals:
    """People of a linear causal model, and where they would be in the other group."""

    #: Samples of group 0 and of group 1.
    people: FloatArray
    others: FloatArray
    #: Group 0 as it would be in group 1 with the same noise; moved by the optimal map between the
    #: two normal distributions; moved to the mean of the matches in the coupling of the samples.
    counterfactual: FloatArray
    transported: FloatArray
    matched: FloatArray
    gaussian: GaussianMap  #: The optimal map.
    #: Largest distance between counterfactuals and transported people, and root of the mean squared
    #: distance between counterfactuals and matched people.
    map_error: float
    coupling_error: float


def counterfactuals(
    n_people: int = 300,
    *,
    effects: ArrayLike = ((0.0, 0.0), (0.8, 0.0)),
    intercepts: ArrayLike = ((0.0, 0.0), (4.5, -4.0)),
    noise: ArrayLike = ((1.0, 0.25), (1.0, 0.25)),
    scales: tuple[float, float] = (1.0, 1.4),
    random_state: int = 0,
) -> Counterfactuals:
    r"""Compare counterfactuals with optimal transport in a linear causal model.

    ``effects`` are A, ``intercepts`` the means, ``noise`` the diagonals of D and ``scales`` the
    standard deviations, each of group 0 and then of group 1. The proposition needs equal diagonals.

    Notes
    -----
    Proposition 4.3 of the paper: for :math:`X_s = \mu_s + A X_s + \varepsilon_s` with
    :math:`\varepsilon_s \sim N(0, \sigma_s^2 D)`, the optimal map is the counterfactual, with
    :math:`W_s = \sigma_{s'} / \sigma_s I`. Let :math:`B = (I - A)^{-1}`. The proposition holds
    whenever B exists and D is diagonal and positive; D need not be a multiple of the identity. The
    proof uses only that both covariances are multiples of :math:`B D B^\top`.

    Suppose that D differs between the groups by more than a factor. Then the counterfactual
    :math:`B D_1^{1/2} D_0^{-1/2} B^{-1}` is not symmetric in general, but an optimal map always
    is, so the two differ. They still agree where A is 0.

    Examples
    --------
    >>> counterfactuals(20).map_error < 1e-9
    True
    >>> counterfactuals(20, noise=((1.0, 0.25), (0.25, 1.0))).map_error > 0.1
    True
    """
    a, mu = np.asarray(effects, dtype=float), np.asarray(intercepts, dtype=float)
    spread = np.sqrt(np.asarray(noise, dtype=float)) * np.asarray(scales)[:, None]
    if not (a.shape == mu.shape == spread.shape == (2, 2)):
        raise InputError("effects, intercepts and noise must each be two by two.")
    if not spread.min() > 0.0:
        raise InputError("noise and scales must be positive.")
    if abs(np.linalg.det(np.eye(2) - a)) < 1e-9:
        raise InputError(
            "I - effects has no inverse, so the equations of the features have no unique solution. "
            "Choose other effects."
        )
    b = np.linalg.inv(np.eye(2) - a)
    draws = np.random.default_rng(random_state).normal(size=(2, n_people, 2))
    people, others = ((mu[s] + draws[s] * spread[s]) @ b.T for s in (0, 1))
    # The same draw of the noise, in the scale of the other group.
    would_be = (mu[1] + draws[0] * spread[1]) @ b.T
    covariances = [b @ np.diag(spread[s] ** 2) @ b.T for s in (0, 1)]
    gaussian = GaussianMap.between(b @ mu[0], covariances[0], b @ mu[1], covariances[1])
    transported = gaussian(people)
    rows = np.concatenate([people, others])
    coupling = OptimalTransportMatcher(reference=1).match(rows, np.repeat([0, 1], n_people))
    plan = coupling.to_dense(np.repeat([0, 1], n_people))
    matched = (plan @ others) * n_people
    return Counterfactuals(
        people,
        others,
        would_be,
        transported,
        matched,
        gaussian,
        float(np.linalg.norm(would_be - transported, axis=1).max()),
        float(np.sqrt(((would_be - matched) ** 2).sum(axis=1).mean())),
    )
