"""People drawn of each group, with the matchings that no model has a say in."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairmatch.matching.coupling import Coupling, IndexArray
from fairmatch.matching.matchers import OptimalTransportMatcher
from fairmatch.tables.arrays import BoolArray, FloatArray
from fairmatch.tables.groups import Groups

# The paper's alpha of the joint map (Section 5.3).
_JOINT_LABEL_WEIGHT = 100.0


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
    """

    at: IndexArray
    codes: NDArray[np.int8]
    features: FloatArray | None
    positive: BoolArray | None

    @property
    def sizes(self) -> tuple[int, int]:
        """People of the first group, and of the second."""
        n_second = int(self.codes.sum())
        return len(self.codes) - n_second, n_second

    @property
    def has_both_labels(self) -> bool:
        """Whether there are labels of both classes."""
        return self.positive is not None and 0 < self.positive.sum() < len(self.positive)

    @cached_property
    def marginal(self) -> Coupling:
        """The matching of least transport cost."""
        return self._match(OptimalTransportMatcher())

    @cached_property
    def joint(self) -> Coupling:
        """The matching of least transport cost among people with the same label."""
        return self._match(OptimalTransportMatcher(label_weight=_JOINT_LABEL_WEIGHT))

    def _match(self, matcher: OptimalTransportMatcher) -> Coupling:
        assert self.features is not None
        labels = self.positive if matcher.label_weight else None
        return self.oriented(matcher.match(self.features, self.codes, labels))

    def oriented(self, coupling: Coupling) -> Coupling:
        """Return a matching of these people seen from the first group."""
        return coupling.inverse if self.codes[coupling.source_index[0]] else coupling

    @cached_property
    def random_costs(self) -> FloatArray:
        r"""Expected cost of a random matching, by encoded column.

        :math:`E (X_0 - X_1)^2` of independent people is the sum of both variances and of the
        squared difference of the means.
        """
        assert self.features is not None
        parts = [self.features[self.codes == code] for code in (0, 1)]
        shift = parts[0].mean(axis=0) - parts[1].mean(axis=0)
        costs: FloatArray = parts[0].var(axis=0) + parts[1].var(axis=0) + shift**2
        return costs


@dataclass(frozen=True, eq=False)
class Sample:
    """People drawn of each group.

    Attributes
    ----------
    rows : array of int
        Row positions in the table, in the table's order.
    groups : Groups
        Of these rows.
    features : array or None
        Encoded features of these rows.
    feature_groups : dict
        Column of the table to its encoded columns.
    positive : array of bool or None
        Labels of these rows.
    n_table : int
        Rows of the whole table.
    """

    rows: IndexArray
    groups: Groups
    features: FloatArray | None
    feature_groups: dict[str, slice]
    positive: BoolArray | None
    n_table: int
    _pairs: dict[tuple[int, int], SamplePair] = field(default_factory=dict)

    def pair(self, codes: tuple[int, int]) -> SamplePair:
        """Return the people of two groups; their matchings are found once, for all models."""
        if codes not in self._pairs:
            at = np.flatnonzero(np.isin(self.groups.codes, codes))
            self._pairs[codes] = SamplePair(
                at,
                (self.groups.codes[at] == codes[1]).astype(np.int8),
                None if self.features is None else self.features[at],
                None if self.positive is None else self.positive[at],
            )
        return self._pairs[codes]


def draw_rows(groups: Groups, n_sample: int, generator: np.random.Generator) -> IndexArray:
    """Draw people of each group without replacement; everybody of a group that is smaller.

    Parameters
    ----------
    groups : Groups
        Group of every row.
    n_sample : int
        How many of each group.
    generator : numpy Generator
        Where they come from.
    """
    drawn = []
    for code in range(len(groups.labels)):
        rows = groups.rows(code)
        if len(rows) > n_sample:
            rows = generator.choice(rows, size=n_sample, replace=False, shuffle=False)
        drawn.append(rows)
    return np.sort(np.concatenate(drawn))
