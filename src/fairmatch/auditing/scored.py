"""The rows to audit: their scores, their groups, and what may be stated about them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fairmatch.auditing.facts import Estimate
from fairmatch.auditing.settings import AuditSettings
from fairmatch.auditing.weighting import RowWeights
from fairmatch.measures.closed_forms import wilson
from fairmatch.tables.arrays import BoolArray, FloatArray
from fairmatch.tables.groups import Groups


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores, groups and labels of the rows to audit, with the settings of the audit.

    Attributes
    ----------
    scores : array of float
        Score of every row.
    groups : Groups
        Group of every row.
    positive : array of bool or None
        Whether each label is positive. It is None without labels.
    settings : AuditSettings
        The settings of the audit.
    unknown : tuple of int
        Codes of groups that are shown but not compared, because an attribute is missing.
    row_weights : RowWeights or None
        Weight of every row. None means that every row is one person.
    """

    scores: FloatArray
    groups: Groups
    positive: BoolArray | None
    settings: AuditSettings
    unknown: tuple[int, ...] = ()
    row_weights: RowWeights | None = None

    @cached_property
    def weights(self) -> RowWeights:
        """Weight of every row."""
        return self.row_weights or RowWeights(len(self.scores))

    @cached_property
    def selected(self) -> BoolArray:
        """Whether each person has the favourable outcome."""
        above = np.asarray(self.scores >= self.settings.threshold)
        return above if self.settings.favourable == "high" else ~above

    @cached_property
    def deserving(self) -> BoolArray | None:
        """Whether each person has the favourable label: the positive one, unless low is good."""
        if self.positive is None or self.settings.favourable == "high":
            return self.positive
        return ~self.positive

    def among(self, label: bool) -> str:
        """Return words for people with the favourable label (True) or with the other (False)."""
        is_positive = label == (self.settings.favourable == "high")
        return f" with a {'positive' if is_positive else 'negative'} label"

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the groups."""
        return tuple(str(label) for label in self.groups.labels)

    @cached_property
    def _group_weights(self) -> tuple[RowWeights, ...]:
        codes = range(len(self.labels))
        return tuple(self.weights.take(self.groups.is_group(code)) for code in codes)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of people in each group."""
        if self.weights.values is None:
            return tuple(np.bincount(self.groups.codes, minlength=len(self.labels)).tolist())
        return tuple(own.people for own in self._group_weights)

    @cached_property
    def evidence(self) -> tuple[float, ...]:
        """How many people of equal weight the rows of each group are worth."""
        if not self.weights.is_survey:
            return self.sizes
        return tuple(own.size for own in self._group_weights)

    @cached_property
    def totals(self) -> tuple[float, ...]:
        """Sum of the weights of each group."""
        if self.weights.values is None:
            return self.sizes
        return tuple(own.total for own in self._group_weights)

    @cached_property
    def is_decision(self) -> bool:
        """Whether the scores are 0/1 decisions."""
        return bool(np.isin(self.scores, (0.0, 1.0)).all())

    def refuse(self, code: int, size: float, among: str = "") -> str | None:
        """Return why a group is too small for a statement, or None if it is large enough.

        Parameters
        ----------
        code : int
            The group.
        size : float
            How many of its people the statement rests on.
        among : str
            Words for these people, such as " with a positive label".
        """
        least = self.settings.min_group_size
        if size >= least:
            return None
        one, many = ("person", "people") if self.weights.is_counts else ("row", "rows")
        people = f"has {size:.0f} {one if f'{size:.0f}' == '1' else many}{among}"
        if self.weights.is_survey:
            people = f"has weights worth {size:.1f} people{among}"
        return f"Group {self.labels[code]!r} {people}, fewer than the {least} a statement needs."

    @cached_property
    def compared(self) -> tuple[int, ...]:
        """Codes of the groups that are known and large enough to be compared."""
        least = self.settings.min_group_size
        sizes = enumerate(self.evidence)
        return tuple(c for c, size in sizes if size >= least and c not in self.unknown)

    @cached_property
    def place(self) -> NDArray[np.int64]:
        """Position of every row's group among those compared, or -1 if it is not compared."""
        places = np.full(len(self.labels), -1, dtype=np.int64)
        places[list(self.compared)] = np.arange(len(self.compared))
        placed: NDArray[np.int64] = places[self.groups.codes]
        return placed

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs of groups that are compared."""
        return tuple(combinations(self.compared, 2))

    @cached_property
    def refused(self) -> str | None:
        """Why nothing that needs two groups is stated, or None."""
        if self.pairs:
            return None
        sizes = ((c, size) for c, size in enumerate(self.evidence) if c not in self.unknown)
        return next(reason for c, size in sizes if (reason := self.refuse(c, size)))

    @cached_property
    def reference(self) -> int:
        """Code of the largest known group, with which every other group is compared."""
        known = [c for c in range(len(self.labels)) if c not in self.unknown]
        return max(known, key=lambda code: self.totals[code])

    @cached_property
    def matched_pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs of groups whose people are matched: every group with the reference group."""
        return tuple(codes for codes in self.pairs if self.reference in codes)

    @property
    def pair_confidence(self) -> float:
        """Level of one interval that makes the intervals of all pairs hold at once (Bonferroni)."""
        return 1.0 - (1.0 - self.settings.confidence) / max(len(self.pairs), 1)

    def pair_generator(self, part: int, codes: tuple[int, int]) -> np.random.Generator:
        """Return the random stream of one part of the audit, for one pair of groups."""
        return self.settings.generator(part, *(codes if len(self.labels) > 2 else ()))

    def counts(self, label: bool | None) -> tuple[list[float], list[int]]:
        """Count the selected people and all people of each group, among those with a label.

        With survey weights the counts add up to the effective number of people.

        Parameters
        ----------
        label : bool or None
            True for the favourable label, False for the other label, None for everybody.
        """
        return self._counts[label]

    @cached_property
    def _counts(self) -> dict[bool | None, tuple[list[float], list[int]]]:
        among: dict[bool | None, BoolArray] = {None: np.ones(len(self.scores), dtype=bool)}
        if self.deserving is not None:
            among |= {True: self.deserving, False: ~self.deserving}
        return {label: self._count(mask) for label, mask in among.items()}

    def _count(self, mask: BoolArray) -> tuple[list[float], list[int]]:
        codes, n_groups = self.groups.codes[mask], len(self.labels)
        if not self.weights.is_survey:
            values = self.weights.values
            weights = np.ones(len(codes)) if values is None else values[mask]
            hits = np.bincount(codes, self.selected[mask] * weights, minlength=n_groups)
            sizes = np.bincount(codes, weights, minlength=n_groups)
            return hits.tolist(), sizes.astype(int).tolist()
        counts: list[float] = []
        people: list[int] = []
        for code in range(n_groups):
            rows = self.groups.is_group(code) & mask
            if not rows.any():
                counts, people = [*counts, 0.0], [*people, 0]
                continue
            share, size = self.weights.take(rows).rate(self.selected[rows])
            people.append(max(round(size), 1))
            counts.append(share * people[-1])
        return counts, people

    def rate(self, hits: BoolArray, weights: RowWeights, code: int, among: str = "") -> Estimate:
        """Return the share of hits with its interval, or the reason why it is not stated."""
        if reason := self.refuse(code, weights.size, among):
            return Estimate(None, refused=reason)
        share, size = weights.rate(hits)
        people = max(round(size), 1)
        count = share * people if weights.is_survey else round(share * people)
        return Estimate(share, *wilson(count, people, self.settings.confidence))
