"""Models that were tried besides a baseline, and how they compare with it on unseen people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fairmatch.auditing.facts.estimates import Estimate
from fairmatch.auditing.facts.files import JsonFacts


@dataclass(frozen=True)
class Alternative:
    """A model that was tried, beside the baseline, on the same people.

    Attributes
    ----------
    name : str
        What the model is called.
    method, setting : str
        How the model was trained, and with which setting. They are empty where that is unknown.
    accuracy, gap : float
        Share of correct decisions, and the gap.
    accuracy_change, gap_change : Estimate
        Accuracy and gap of the model minus those of the baseline. The intervals hold for all
        models at once.
    selection_rates : dict
        Group to the share of its people who are selected.
    gained, lost : dict
        Group to the number of people whom only the model selects, and to the number whom only the
        baseline selects.
    as_accurate : bool
        Whether the lower limit of ``accuracy_change`` is at least minus the margin.
    smaller_gap : bool
        Whether the interval of ``gap_change`` lies below 0.
    """

    name: str
    method: str
    setting: str
    accuracy: float
    gap: float
    accuracy_change: Estimate
    gap_change: Estimate
    selection_rates: dict[str, float]
    gained: dict[str, int]
    lost: dict[str, int]
    as_accurate: bool
    smaller_gap: bool

    @property
    def less_discriminatory(self) -> bool:
        """Whether the model is as accurate as the baseline and has a smaller gap."""
        return self.as_accurate and self.smaller_gap


@dataclass(frozen=True)
class Alternatives(JsonFacts):
    """A baseline, and everything that was tried to find a model with a smaller gap.

    Made by `fairmatch.find_alternatives`.

    Attributes
    ----------
    baseline : str
        Name of the model that the others are compared with.
    n_rows : int
        Number of people on whom the models are compared.
    gap_measure : str
        Name of the gap.
    margin : float
        The loss of accuracy up to which a model still counts as accurate.
    confidence : float
        Level of the intervals, which hold for all models at once.
    threshold : float
        A person with a score at or above the threshold is selected.
    accuracy, gap : float
        Accuracy and gap of the baseline.
    selection_rates : dict
        Group to the share of its people whom the baseline selects.
    tried : tuple of Alternative
        Every other model, in the order in which it was given.
    """

    SCHEMA: ClassVar[str] = "fairmatch.Alternatives"
    SCHEMA_VERSION: ClassVar[int] = 1

    baseline: str
    n_rows: int
    gap_measure: str
    margin: float
    confidence: float
    threshold: float
    accuracy: float
    gap: float
    selection_rates: dict[str, float]
    tried: tuple[Alternative, ...]

    @property
    def found(self) -> Sequence[Alternative]:
        """The models that are as accurate and have a smaller gap, with the smallest gap first."""
        better = [one for one in self.tried if one.less_discriminatory]
        return sorted(better, key=lambda one: (one.gap, -one.accuracy))

    def sentence(self) -> str:
        """Return one sentence on what the search found."""
        scope = (
            f"of {len(self.tried)} models tried beside {self.baseline!r} on {self.n_rows:,} people "
            "whom none of them has seen"
        )
        within = f"within {self.margin:g} of its accuracy"
        if not self.found:
            return (
                f"No less discriminatory alternative was found: {scope}, none is shown to be "
                f"{within} and to have a smaller gap."
            )
        best = self.found[0]
        count = len(self.found)
        return (
            f"{'A' if count == 1 else str(count)} less discriminatory "
            f"{'alternative was' if count == 1 else 'alternatives were'} found: {scope}, "
            f"{best.name!r} has the smallest gap of those shown to be {within}. Its gap is "
            f"{best.gap:.3f}, and the baseline's is {self.gap:.3f}."
        )

    def __repr__(self) -> str:
        return (
            f"<Alternatives to {self.baseline!r}: {len(self.tried)} tried, "
            f"{len(self.found)} less discriminatory>"
        )
