r"""Alignment of vectors of class probabilities: groups move towards their barycentre."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from fairmatch.matching.network import cheapest_plan
from fairmatch.measures.distributions import joined_points
from fairmatch.people.checks import FloatArray
from fairmatch.people.people import People

# Points of a group, points of the barycentre, and how often it is improved.
_POINTS, _SUPPORT, _ROUNDS = 600, 400, 30
# A score moves as the nearest points of its group do.
_NEAREST = 4


@dataclass(frozen=True, eq=False)
class VectorAlignment:
    r"""Where the probability vectors of every group move.

    Notes
    -----
    The common distribution is the Wasserstein barycentre of the groups' vectors for the squared
    Euclidean distance, with 400 points (Cuturi and Doucet, 2014). A vector of the fit moves to the
    mean of the points that its group's transport plan sends it to. Another vector moves by a mean
    of the moves of its four nearest neighbours. Every result is a mean of probability vectors, up
    to rounding at the border of the simplex.
    """

    labels: tuple[Any, ...]  #: Labels of the groups, sorted.
    #: Vectors of every group, of shape (n_points, n_classes), at most 600; close ones are joined.
    points: tuple[FloatArray, ...]
    moved: tuple[FloatArray, ...]  #: Where full alignment moves them.
    shares: FloatArray  #: Share of every group, which is its weight in the barycentre.
    #: Names of the attributes whose combinations are the groups, if there are several.
    attributes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        pairs = list(zip(self.points, self.moved, strict=True))
        if len(pairs) != len(self.labels) or any(own.shape != to.shape for own, to in pairs):
            raise ValueError("every group needs points, and where they move")
        if len({own.shape[1:] for own in self.points}) > 1 or self.points[0].ndim != 2:
            raise ValueError("the points are not vectors of the same classes")
        if not all(np.isfinite(own).all() for own in (*self.points, *self.moved)):
            raise ValueError("the points must be finite")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.points[0].shape[1])

    @classmethod
    def fit(cls, people: People, scores: FloatArray) -> Self:
        """Return the alignment of the vectors of people, all of whose groups are compared."""
        weight = people.weight
        every = [people.groups.rows(code) for code in range(people.groups.n_groups)]
        sizes = np.array([weight.take(rows).total for rows in every])
        shares = sizes / sizes.sum()
        groups = [joined_points(scores[rows], weight.take(rows).values, _POINTS) for rows in every]
        support, mass = joined_points(scores, weight.values, _SUPPORT)

        def plans() -> list[FloatArray]:
            """Return the cheapest transport plan from the support to every group."""
            return [
                cheapest_plan(mass, own, cdist(support, points, "sqeuclidean"))[0]
                for points, own in groups
            ]

        for _ in range(_ROUNDS):
            means = [
                plan @ points / mass[:, None]
                for plan, (points, _) in zip(plans(), groups, strict=True)
            ]
            new = sum(share * mean for share, mean in zip(shares, means, strict=True))
            change, support = float(np.abs(new - support).max()), np.asarray(new)
            if change < 1e-6:
                break
        moved = tuple(
            plan.T @ support / own[:, None] for plan, (_, own) in zip(plans(), groups, strict=True)
        )
        points = tuple(points for points, _ in groups)
        return cls(people.groups.labels, points, moved, shares, people.groups.attributes)

    def move(self, scores: FloatArray, codes: NDArray[Any], strength: float = 1.0) -> FloatArray:
        """Return aligned vectors of people with these codes; with code -1 a vector stays."""
        aligned = scores.copy()
        if strength == 0.0:
            return aligned
        for code, (points, moved) in enumerate(zip(self.points, self.moved, strict=True)):
            rows = np.flatnonzero(codes == code)
            near = min(_NEAREST, len(points))
            distance, at = cKDTree(points).query(scores[rows], k=np.arange(1, near + 1))
            # A vector of the fit moves as it did there.
            closeness = 1.0 / np.maximum(distance, 1e-12)
            closeness /= closeness.sum(axis=1, keepdims=True)
            shift = np.einsum("ij,ijk->ik", closeness, (moved - points)[at])
            aligned[rows] += strength * shift
        np.clip(aligned, 0.0, 1.0, out=aligned)
        return np.asarray(aligned / aligned.sum(axis=1, keepdims=True))
