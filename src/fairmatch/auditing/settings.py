"""The settings of an audit: one object, made once and recorded with the facts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairmatch.auditing.weighting import KINDS
from fairmatch.exceptions import InputError
from fairmatch.tables.parameters import check_count, check_number

# What people with the favourable outcome are called by default.
_OUTCOMES = {"high": "selected", "low": "not flagged"}

SCALES = ("probability", "real")
"""What scores are: probabilities or decisions, or predictions in units of the target."""

_HALF = 0.5


@dataclass(frozen=True)
class AuditSettings:
    """The settings of an audit.

    Attributes
    ----------
    threshold : float
        The score at which decisions change.
    confidence : float
        Level of the intervals.
    n_resamples : int
        Number of bootstrap resamples, and of permutations.
    n_sample : int
        How many people of each group are drawn for the matchings.
    n_subsets : int
        Number of random half-spaces to examine.
    min_group_size : int
        Nothing is stated about a group of fewer people.
    random_state : int
        Seed of all random draws.
    favourable : {"high", "low"}
        Which scores are good for a person.
    outcome : str or None
        What people with the favourable outcome are called. None uses the default words.
    weight_kind : {"survey", "counts"}
        What the weights are, if there are weights.
    scale : {"probability", "real"}
        What the scores are. Predictions of a number ("real") decide on nobody.

    Examples
    --------
    >>> AuditSettings(favourable="low").named_outcome
    'not flagged'
    """

    threshold: float = _HALF
    confidence: float = 0.95
    n_resamples: int = 1000
    n_sample: int = 4096
    n_subsets: int = 1000
    min_group_size: int = 30
    random_state: int = 0
    favourable: str = "high"
    outcome: str | None = None
    weight_kind: str = "survey"
    scale: str = "probability"

    def __post_init__(self) -> None:
        check_number("threshold", self.threshold, "[0, 1]")  # where scores lie
        check_number("confidence", self.confidence, "[0.5, 1)")
        least = {"n_resamples": 100, "n_sample": 2, "n_subsets": 1, "min_group_size": 2}
        for name, limit in {**least, "random_state": 0}.items():
            check_count(name, getattr(self, name), limit)
        choices = {"favourable": tuple(_OUTCOMES), "weight_kind": KINDS, "scale": SCALES}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise InputError(
                    f"{name} must be {' or '.join(map(repr, allowed))}, got "
                    f"{getattr(self, name)!r}."
                )
        if self.outcome is not None and not str(self.outcome).strip():
            raise InputError(
                "outcome is empty. Name what happens to the selected, such as 'granted bail'."
            )
        if self.is_real and (self.threshold != _HALF or self.outcome is not None):
            given = "outcome" if self.outcome is not None else "threshold"
            raise InputError(
                f"{given}={getattr(self, given)!r} was given with scale='real', and predictions in "
                f"units of the target select nobody. Leave {given} out."
            )

    @property
    def is_real(self) -> bool:
        """Whether scores are predictions in units of the target, which decide on nobody."""
        return self.scale == "real"

    @property
    def named_outcome(self) -> str:
        """What people with the favourable outcome are called.

        High scores lead to "flagged". So where low scores are good, "flagged" is not the favourable
        outcome, and "not flagged" takes its place.
        """
        if self.outcome is None or (self.favourable == "low" and self.outcome == "flagged"):
            return _OUTCOMES[self.favourable]
        return str(self.outcome).strip()

    def generator(self, *part: int) -> np.random.Generator:
        """Return the random stream of one part of the audit. No part depends on another."""
        return np.random.default_rng([self.random_state, *part])
