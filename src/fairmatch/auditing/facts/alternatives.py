"""Models that were tried besides a baseline, and how they compare with it on unseen people."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fairmatch.auditing.facts.estimates import Estimate
from fairmatch.auditing.facts.files import JsonFacts


@dataclass(frozen=True)
class Alternative:
    """A model that was tried, compared with the baseline on the same people.

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
    verdict : {"yes", "not shown", "no"}
        Whether the model is a less discriminatory alternative: "yes" where it is shown to be as
        accurate and to have a smaller gap, "no" where one of the two is shown to be false.
    reasons : tuple of str
        What is missing where it is not shown, or what is false; empty where it is shown.
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
    verdict: str
    reasons: tuple[str, ...]

    @property
    def less_discriminatory(self) -> bool:
        """Whether the model is shown to be as accurate as the baseline, with a smaller gap."""
        return self.as_accurate and self.smaller_gap

    @property
    def decides(self) -> bool:
        """Whether the model selects some people and not others."""
        rates = self.selection_rates.values()
        return max(rates) > 0.0 and min(rates) < 1.0

    def verdict_words(self) -> str:
        """Return the verdict with its reasons."""
        return f"{self.verdict}: {' and '.join(self.reasons)}" if self.reasons else self.verdict


@dataclass(frozen=True)
class Search:
    """How the models of a search were made. With this, a search can be documented and repeated.

    Attributes
    ----------
    version : str
        Version of fairmatch.
    seed : int
        Seed of the split, the training and the intervals.
    source, source_sha256 : str or None
        Name and hash of the table; a dataset has no hash.
    n_training, n_choosing, n_test : int
        Number of rows to learn from, to choose models by, and to compare them on. Without rows to
        choose by, all models are listed.
    uses_group : bool
        Whether all models, including the baseline, use a person's group to predict.
    needing_group : tuple of str
        The methods whose models cannot predict without the group.
    settings : dict
        The other arguments of the search.
    """

    version: str
    seed: int
    source: str | None
    source_sha256: str | None
    n_training: int
    n_choosing: int
    n_test: int
    uses_group: bool
    needing_group: tuple[str, ...]
    settings: dict[str, str | int | float | None]

    def on_group(self) -> str:
        """Return whether the models need a person's group, in words."""
        if not self.uses_group:
            return "No model needs a person's group to predict."
        needing = " and ".join(f"“{method}”" for method in self.needing_group)
        return (
            "Every model, the baseline too, uses a person's group to predict."
            + f" {needing} cannot do without it. The others can be trained to." * bool(needing)
        )


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
    search : Search or None
        How the models were made, if the search trained them.
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
    search: Search | None = None

    @property
    def found(self) -> Sequence[Alternative]:
        """The models shown to be as accurate, with a smaller gap; the smallest gap first."""
        return _by_gap(one for one in self.tried if one.less_discriminatory)

    @property
    def possible(self) -> Sequence[Alternative]:
        """The models with a gap shown to be smaller, and as accurate only by estimate."""
        return _by_gap(
            one
            for one in self.tried
            if one.smaller_gap
            and not one.as_accurate
            and (one.accuracy_change.value or 0.0) >= -self.margin
        )

    @property
    def foremost(self) -> Sequence[Alternative]:
        """The models to look at first, the smallest gap first.

        These are the models found. If there are none, these are the possible ones. If there are
        none of these either, they are the models that select some people and not others, or all
        models if none does.
        """
        return self.found or self.possible or self._deciding

    @property
    def _deciding(self) -> Sequence[Alternative]:
        return _by_gap(one for one in self.tried if one.decides) or _by_gap(self.tried)

    def why_shown(self, names: Collection[str]) -> str:
        """Return which of the models tried are described, and why.

        Parameters
        ----------
        names : collection of str
            The models that are described. If they are not the foremost models, the text is empty.
        """
        shown = [one for one in self.foremost if one.name in names]
        n_tried = sum(one.name in names for one in self.tried)
        if not shown or shown != list(self.foremost[:n_tried]):
            return ""
        models = " and ".join(
            f"{one.name!r} (accuracy {one.accuracy:.3f}, gap {one.gap:.3f})" for one in shown
        )
        if self.found:
            reason = "of the alternatives found"
        elif self.possible:
            reason = "of the models that are as accurate by estimate, with a gap smaller for sure"
        else:
            reason = "of the models tried, whatever their accuracy"
            if any(not one.decides for one in self.tried) and shown[0].decides:
                reason += ", except those that select nobody or everybody"
        smallest = "the smallest gap" if len(shown) == 1 else "the smallest gaps"
        return (
            f"Described below, besides {self.baseline!r} (accuracy {self.accuracy:.3f}, gap "
            f"{self.gap:.3f}): {models}, with {smallest} {reason}."
        )

    def sentence(self) -> str:
        """Return what the search found, in words."""
        scope = (
            f"of {_models(len(self.tried))} tried besides {self.baseline!r} on {self.n_rows:,} "
            "people whom none of them has seen"
        )
        within = f"within {self.margin:g} of its accuracy"
        if self.found:
            best, count = self.found[0], len(self.found)
            return (
                f"{'A' if count == 1 else str(count)} less discriminatory "
                f"{'alternative was' if count == 1 else 'alternatives were'} found: {scope}, "
                f"{best.name!r} has the smallest gap of those shown to be {within}. Its gap is "
                f"{best.gap:.3f}, and the baseline's is {self.gap:.3f}.{self._on_possible()}"
            )
        said = f"{scope}, none is shown to be {within} and to have a smaller gap."
        if not self.possible:
            return f"No less discriminatory alternative was found: {said}"
        best = self.possible[0]
        return (
            f"No less discriminatory alternative was shown: {said}{self._on_possible()} The "
            f"smallest of these gaps is {best.gap:.3f}, that of {best.name!r}; the baseline's is "
            f"{self.gap:.3f}. With more people the intervals would be narrower."
        )

    def _on_possible(self) -> str:
        count = len(self.possible)
        if count == 0:
            return ""
        return (
            f" {_models(count)} {'has' if count == 1 else 'have'} a gap that is smaller for "
            f"sure and an accuracy within {self.margin:g} by estimate, but not for sure."
        )

    def __repr__(self) -> str:
        return (
            f"<Alternatives to {self.baseline!r}: {len(self.tried)} tried, "
            f"{len(self.found)} less discriminatory>"
        )


def _by_gap(models: Iterable[Alternative]) -> Sequence[Alternative]:
    return sorted(models, key=lambda one: (one.gap, -one.accuracy))


def _models(count: int) -> str:
    return "1 model" if count == 1 else f"{count} models"
