"""The rows to audit: their scores, their groups, and what may be stated of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fairmatch.auditing.facts import Estimate
from fairmatch.auditing.settings import AuditSettings
from fairmatch.measures.closed_forms import wilson
from fairmatch.tables.arrays import BoolArray, FloatArray
from fairmatch.tables.groups import Groups


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores, groups and labels of the rows to audit, with what governs the statements.

    Attributes
    ----------
    scores : array of float
        Score of every row.
    groups : Groups
        Group of every row.
    positive : array of bool or None
        Whether each label is positive; None without labels.
    settings : AuditSettings
        What governs the statements.
    unknown : tuple of int
        Codes of groups that are shown and not compared: nobody knows who these people are.
    """

    scores: FloatArray
    groups: Groups
    positive: BoolArray | None
    settings: AuditSettings
    unknown: tuple[int, ...] = ()

    @cached_property
    def selected(self) -> BoolArray:
        """Who is selected."""
        return np.asarray(self.scores >= self.settings.threshold)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the groups."""
        return tuple(str(label) for label in self.groups.labels)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """People of each group."""
        return tuple(np.bincount(self.groups.codes, minlength=len(self.labels)).tolist())

    @cached_property
    def is_decision(self) -> bool:
        """Whether the scores are 0/1 decisions."""
        return bool(np.isin(self.scores, (0.0, 1.0)).all())

    def refuse(self, code: int, n_rows: int, among: str = "") -> str | None:
        """Return why nothing is stated of so few rows of a group, or None if they are enough."""
        least = self.settings.min_group_size
        if n_rows >= least:
            return None
        return (
            f"Group {self.labels[code]!r} has {n_rows} rows{among}, fewer than "
            f"min_group_size={least}: too few for a statement."
        )

    @cached_property
    def compared(self) -> tuple[int, ...]:
        """Codes of the groups that are known, and large enough to be compared."""
        least = self.settings.min_group_size
        sizes = enumerate(self.sizes)
        return tuple(c for c, size in sizes if size >= least and c not in self.unknown)

    @cached_property
    def place(self) -> NDArray[np.int64]:
        """Place of every row's group among those compared; -1 where it is none of them."""
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
        """Why nothing is stated that needs two groups, or None."""
        if self.pairs:
            return None
        sizes = ((c, size) for c, size in enumerate(self.sizes) if c not in self.unknown)
        return next(reason for c, size in sizes if (reason := self.refuse(c, size)))

    @cached_property
    def reference(self) -> int:
        """Code of the largest known group, which every other is compared with."""
        known = [c for c in range(len(self.labels)) if c not in self.unknown]
        return max(known, key=lambda code: self.sizes[code])

    @cached_property
    def matched_pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs of groups whose people are matched: every group with the reference."""
        return tuple(codes for codes in self.pairs if self.reference in codes)

    @property
    def pair_confidence(self) -> float:
        """Level of an interval such that those of all pairs hold at once (Bonferroni)."""
        return 1.0 - (1.0 - self.settings.confidence) / max(len(self.pairs), 1)

    def pair_generator(self, part: int, codes: tuple[int, int]) -> np.random.Generator:
        """Return the random stream of a part of the audit, for one pair of groups."""
        return self.settings.generator(part, *(codes if len(self.labels) > 2 else ()))

    def counts(self, label: bool | None) -> tuple[list[int], list[int]]:
        """Count the selected and all people of each group, of those with a label."""
        return self._counts[label]

    @cached_property
    def _counts(self) -> dict[bool | None, tuple[list[int], list[int]]]:
        among: dict[bool | None, BoolArray] = {None: np.ones(len(self.scores), dtype=bool)}
        if self.positive is not None:
            among |= {True: self.positive, False: ~self.positive}
        return {label: self._count(mask) for label, mask in among.items()}

    def _count(self, mask: BoolArray) -> tuple[list[int], list[int]]:
        codes, n_groups = self.groups.codes[mask], len(self.labels)
        hits = np.bincount(codes, self.selected[mask], minlength=n_groups).astype(int)
        return hits.tolist(), np.bincount(codes, minlength=n_groups).tolist()

    def rate(self, hits: BoolArray, code: int, among: str = "") -> Estimate:
        """Return the share of hits with its interval, or why there is none."""
        if reason := self.refuse(code, len(hits), among):
            return Estimate(None, refused=reason)
        count = int(hits.sum())
        return Estimate(count / len(hits), *wilson(count, len(hits), self.settings.confidence))
