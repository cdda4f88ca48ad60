"""What governs the statements of an audit: one object, made once and kept with the facts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairmatch.tables.parameters import check_count, check_number, check_threshold


@dataclass(frozen=True)
class AuditSettings:
    """What governs the statements of an audit.

    Attributes
    ----------
    threshold : float
        Where scores turn into decisions.
    confidence : float
        Level of the intervals.
    n_resamples : int
        Bootstrap resamples, and permutations.
    n_sample : int
        People drawn of each group for the matchings.
    n_subsets : int
        Random half-spaces to look at.
    min_group_size : int
        Nothing is stated of fewer people.
    random_state : int
        Seed of everything that is drawn.
    """

    threshold: float = 0.5
    confidence: float = 0.95
    n_resamples: int = 1000
    n_sample: int = 4096
    n_subsets: int = 1000
    min_group_size: int = 30
    random_state: int = 0

    def __post_init__(self) -> None:
        check_threshold(self.threshold)
        check_number("confidence", self.confidence, "(0, 1)")
        least = {"n_resamples": 100, "n_sample": 2, "n_subsets": 1, "min_group_size": 2}
        for name, limit in {**least, "random_state": 0}.items():
            check_count(name, getattr(self, name), limit)

    def generator(self, *part: int) -> np.random.Generator:
        """Return the random stream of a part of the audit, so that no part depends on another."""
        return np.random.default_rng([self.random_state, *part])
