"""People drawn from each group, and the matchings of them that depend on no model."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairmatch.auditing.weighting import RowWeights, draw_people
from fairmatch.matching.coupling import Coupling, IndexArray
from fairmatch.matching.matchers import OptimalTransportMatcher
from fairmatch.matching.solver import EXACT
from fairmatch.tables.arrays import BoolArray, FloatArray
from fairmatch.tables.groups import Groups

# The paper's alpha of the joint map (Section 5.3).
_JOINT_LABEL_WEIGHT = 100.0
# With many pairs of groups, costs are proven to within this share of their size. Another sample
# of people would change them far more.
_MANY_TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class SamplePair:
    """The drawn people of two groups.

    Attributes
    ----------
    at : array of int
        Positions of these people in the sample, in its order.
    codes : array of int
        0 for people of the first group, 1 for those of the second.
    features : array or None
        Their encoded features.
    positive : array of bool or None
        Their labels.
    weights : RowWeights
        Their weights.
    tolerance : float
        Relative gap to which the costs of their matchings are proven.
    """

    at: IndexArray
    codes: NDArray[np.int8]
    features: FloatArray | None
    positive: BoolArray | None
    weights: RowWeights
    tolerance: float = EXACT

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of people in the first group, and in the second."""
        return self._of(0).people, self._of(1).people

    def _of(self, code: int) -> RowWeights:
        return self.weights.take(self.codes == code)

    @property
    def has_both_labels(self) -> bool:
        """Whether there are labels of both classes."""
        return self.positive is not None and 0 < self.positive.sum() < len(self.positive)

    @cached_property
    def marginal(self) -> Coupling:
        """The matching with the least transport cost."""
        return self._match(OptimalTransportMatcher(tolerance=self.tolerance))

    @cached_property
    def joint(self) -> Coupling:
        """The matching with the least transport cost, with a large cost for different labels."""
        return self._match(
            OptimalTransportMatcher(label_weight=_JOINT_LABEL_WEIGHT, tolerance=self.tolerance)
        )

    def _match(self, matcher: OptimalTransportMatcher) -> Coupling:
        assert self.features is not None
        labels = self.positive if matcher.label_weight else None
        weights = self.weights.values
        return self.oriented(
            matcher.match(self.features, self.codes, labels, sample_weight=weights)
        )

    def oriented(self, coupling: Coupling) -> Coupling:
        """Return a matching of these people, directed from the first group to the second."""
        return coupling.inverse if self.codes[coupling.source_index[0]] else coupling

    @cached_property
    def random_costs(self) -> FloatArray:
        r"""Expected cost of a random matching, by encoded column.

        For independent people, :math:`E (X_0 - X_1)^2` is the sum of both variances and of the
        squared difference between the means.
        """
        assert self.features is not None
        means, variances = [], []
        for code in (0, 1):
            rows, weights = self.features[self.codes == code], self._of(code).values
            means.append(np.average(rows, axis=0, weights=weights))
            variances.append(np.average((rows - means[-1]) ** 2, axis=0, weights=weights))
        costs: FloatArray = variances[0] + variances[1] + (means[0] - means[1]) ** 2
        return costs


@dataclass(frozen=True, eq=False)
class Sample:
    """People drawn from each group.

    Attributes
    ----------
    rows : array of int
        Row positions in the table.
    groups : Groups
        Group of each of these rows.
    features : array or None
        Encoded features of these rows.
    feature_groups : dict
        Column of the table to its encoded columns.
    positive : array of bool or None
        Labels of these rows.
    weights : RowWeights
        Weights of these rows.
    """

    rows: IndexArray
    groups: Groups
    features: FloatArray | None
    feature_groups: dict[str, slice]
    positive: BoolArray | None
    weights: RowWeights
    _pairs: dict[tuple[int, int], SamplePair] = field(default_factory=dict)

    def pair(self, codes: tuple[int, int]) -> SamplePair:
        """Return the people of two groups. Their matchings are found once for all models."""
        if codes not in self._pairs:
            at = np.flatnonzero(np.isin(self.groups.codes, codes))
            self._pairs[codes] = SamplePair(
                at,
                (self.groups.codes[at] == codes[1]).astype(np.int8),
                None if self.features is None else self.features[at],
                None if self.positive is None else self.positive[at],
                self.weights.take(at),
                EXACT if len(self.groups.labels) == 2 else _MANY_TOLERANCE,
            )
        return self._pairs[codes]


def draw_rows(
    groups: Groups, weights: RowWeights, n_sample: int, generator: np.random.Generator
) -> tuple[IndexArray, RowWeights]:
    """Draw people from each group without replacement. A smaller group is taken whole.

    Parameters
    ----------
    groups : Groups
        Group of every row.
    weights : RowWeights
        Weight of every row.
    n_sample : int
        How many people to draw from each group.
    generator : numpy Generator
        Source of the random draws.

    Returns
    -------
    rows : array of int
        Row positions, in the table's order.
    weights : RowWeights
        Their weights. If a row stands for many people, its weight is how many of them were drawn.
        A group with at most ``n_sample`` rows keeps all rows and their weights.
    """
    drawn, taken = [], []
    for code in range(len(groups.labels)):
        rows = groups.rows(code)
        own = weights.take(rows).values
        if len(rows) > n_sample and weights.is_counts and own is not None:
            people = draw_people(own, n_sample, generator)
            rows, own = rows[people > 0], people[people > 0].astype(np.float64)
        elif len(rows) > n_sample:
            rows = generator.choice(rows, size=n_sample, replace=False, shuffle=False)
            own = weights.take(rows).values
        drawn.append(rows)
        taken.append(own)
    positions = np.concatenate(drawn)
    order = np.argsort(positions, kind="stable")
    if weights.values is None:
        return positions[order], RowWeights(len(positions))
    values = np.concatenate([own for own in taken if own is not None])[order]
    return positions[order], RowWeights(len(positions), values, weights.is_counts)
