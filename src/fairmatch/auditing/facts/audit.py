"""All facts about one model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, ClassVar

from fairmatch.auditing.facts.about import About, LeakFacts
from fairmatch.auditing.facts.estimates import Estimate
from fairmatch.auditing.facts.files import JsonFacts, Upgrades
from fairmatch.auditing.facts.groups import AttributeFacts, Gap, GroupFacts
from fairmatch.auditing.facts.impact import ImpactTable
from fairmatch.auditing.facts.matchings import Matching
from fairmatch.auditing.facts.people import Individuals
from fairmatch.auditing.facts.subsets import SubsetScan
from fairmatch.exceptions import ColumnError, InputError
from fairmatch.tables.roles import ColumnRole


@dataclass(frozen=True)
class Spread:
    """The standard deviation in which relative gaps of predictions are taken.

    Attributes
    ----------
    of : {"target", "predictions"}
        What it is the standard deviation of: the target, or the predictions if there is no target.
    value : float
        The standard deviation, in units of the target. If it is 0, there are no relative gaps.
    """

    of: str
    value: float


@dataclass(frozen=True)
class Provenance:
    """What was audited, with what, and how.

    Attributes
    ----------
    version : str
        Version of fairmatch.
    seed : int
        Seed of the resamples, the sample and the subset scan.
    scores_sha256, groups_sha256 : str
        Hash of the scores as 64-bit floats, and of the group codes as bytes.
    labels_sha256, features_sha256 : str or None
        Hash of the labels (1 for positive) or of the predicted numbers, and of the columns. They
        are None where none were given.
    source, source_sha256 : str or None
        Name and hash of the file, if the audit read one.
    settings : dict
        The other settings of the audit, and the names of the columns that describe people.
    weights_sha256 : str or None
        Hash of the weights as 64-bit floats, or None if every row is one person.
    """

    version: str
    seed: int
    scores_sha256: str
    groups_sha256: str
    labels_sha256: str | None
    features_sha256: str | None
    source: str | None
    source_sha256: str | None
    settings: dict[str, str | int | float | None]
    weights_sha256: str | None = None


def _upgraded(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a version 1 file, which holds one pair of groups, as version 2."""
    first, second = (group["label"] for group in content["groups"])
    both = None if content["matching"]["refused"] else [first, second]
    largest = max(content["groups"], key=lambda group: group["n_rows"])
    return {
        **content,
        "reference": largest["label"],
        "gaps": [
            {**gap, "groups": None if gap["refused"] else [first, second]}
            for gap in content["gaps"]
        ],
        "matchings": [{**content["matching"], "groups": both}],
    }


@dataclass(frozen=True)
class Audit(JsonFacts):
    """How a model treats groups of people: facts, not a verdict.

    Made by `fairmatch.audit`.

    Attributes
    ----------
    model_name : str
        What the model is called.
    n_rows : int
        Number of people audited.
    threshold : float or None
        The score at which decisions change. It is None for predictions, which decide on nobody.
    confidence : float
        Level of the intervals.
    score_edges : tuple of float
        Ends of the intervals in which `GroupFacts.score_counts` counts people.
    groups : tuple of GroupFacts
        The groups, in the order of their labels.
    selection_ratio : Estimate
        Smallest selection rate divided by the largest. The four-fifths rule asks for 0.8.
    gaps : tuple of Gap
        Every gap that the data allow. With more than two groups, each is the largest over pairs.
    matchings : tuple of Matching
        Who is treated like whom, and how far apart they are, for each pair of groups matched.
    subsets : SubsetScan or None
        The subsets with the largest gaps. It is None without features.
    individuals : Individuals or None
        The rows of the people sampled. It is None where they were left out or nobody was matched.
    provenance : Provenance
        What was audited, with what, and how.
    pair_gaps : tuple of Gap
        With more than two groups, the gaps between each group and the largest group, and those
        between the two groups that are farthest apart. The intervals hold for all pairs of groups
        at once (Bonferroni). It is empty for two groups.
    reference : str or None
        The largest group, with which every other group is compared and matched.
    unknown : tuple of str
        Groups of people for whom an attribute is missing. They are shown but not compared.
    attributes : tuple of AttributeFacts
        Each attribute by itself, where several were given. The groups are their combinations.
    n_selected : int or None
        Number of people selected. It is None for predictions, and in audits of earlier versions.
    favourable : {"high", "low"}
        Which scores are good for a person. With "high", people with a score at or above the
        threshold are selected; with "low", people below it. Rates and ratios are of the selected.
    outcome : str
        What the selected are called, such as "selected", "not flagged" or "granted bail".
    about : About
        Title, author, date and purpose.
    weights : {"survey", "counts"} or None
        What the weights are. It is None where every row is one person.
    columns : tuple of ColumnRole
        How every column of the table is read. It is empty where the audit read no file.
    leaks : tuple of LeakFacts
        Columns that describe people and give their group away.
    notes : tuple of str
        What a reader should know about how the table was read.
    impact : tuple of ImpactTable
        Selection and scoring rates with their impact ratios, by category of each attribute and of
        all attributes crossed, as bias audits are filed. It is empty for predictions.
    scale : {"probability", "real"}
        What the scores are. With "probability" they are probabilities or decisions. With "real"
        they are predictions, and scores and their gaps are in units of the target.
    spread : Spread or None
        The unit of relative gaps: a standard deviation. It is None for probabilities.
    score_values : tuple of float
        The different scores. It is empty if there are more of them than intervals in
        `score_edges`, and in audits of earlier versions.

    Examples
    --------
    >>> from fairmatch import audit
    >>> found = audit([0.9, 0.2, 0.6, 0.7] * 20, sensitive_features=[0, 0, 1, 1] * 20)
    >>> found.gap("demographic_parity_gap").value
    0.5
    >>> [group.label for group in found.groups]
    ['0', '1']
    >>> found
    <Audit of 'model': 80 people, groups '0' (40) and '1' (40), largest ΔDP 0.500>
    """

    SCHEMA: ClassVar[str] = "fairmatch.Audit"
    SCHEMA_VERSION: ClassVar[int] = 2
    UPGRADES: ClassVar[Upgrades] = {1: _upgraded}

    model_name: str
    n_rows: int
    threshold: float | None
    confidence: float
    score_edges: tuple[float, ...]
    groups: tuple[GroupFacts, ...]
    selection_ratio: Estimate
    gaps: tuple[Gap, ...]
    matchings: tuple[Matching, ...]
    subsets: SubsetScan | None
    individuals: Individuals | None
    provenance: Provenance
    pair_gaps: tuple[Gap, ...] = ()
    reference: str | None = None
    unknown: tuple[str, ...] = ()
    attributes: tuple[AttributeFacts, ...] = ()
    n_selected: int | None = None
    favourable: str = "high"
    outcome: str = "selected"
    about: About = field(default_factory=About)
    weights: str | None = None
    columns: tuple[ColumnRole, ...] = ()
    leaks: tuple[LeakFacts, ...] = ()
    notes: tuple[str, ...] = ()
    impact: tuple[ImpactTable, ...] = ()
    scale: str = "probability"
    spread: Spread | None = None
    score_values: tuple[float, ...] = ()

    @property
    def undecided(self) -> str | None:
        """Why the decisions tell nobody apart, if nobody or everybody is selected; else None."""
        if self.n_selected not in (0, self.n_rows):
            return None
        who = "Nobody" if self.n_selected == 0 else "Everybody"
        side = "at or above" if self.favourable == "high" else "below"
        return (
            f"{who} is {self.outcome}: {'no' if self.n_selected == 0 else 'every'} score is "
            f"{side} the threshold {self.threshold:g}, so decisions tell nobody apart."
        )

    @property
    def matching(self) -> Matching:
        """The first matching. With two groups it is the only one."""
        return self.matchings[0]

    def gap(self, name: str) -> Gap:
        """Return the gap with this name.

        Parameters
        ----------
        name : str
            Name of the measure in `fairmatch.measures`.
        """
        for gap in self.gaps:
            if gap.name == name:
                return gap
        known = ", ".join(gap.name for gap in self.gaps)
        raise InputError(f"This audit has no gap named {name!r}. Name one that it has: {known}.")

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why some statements are not made, each reason once."""
        facts: list[Estimate | Gap | Matching] = [self.selection_ratio, *self.gaps]
        facts += self.matchings
        for group in self.groups:
            # A group that is too small as a whole is also too small with each label.
            facts += [group.mean_score] if group.mean_score.refused else group.estimates
        reasons = [fact.refused for fact in facts if fact.refused]
        reasons += [reason for matching in self.matchings for reason in matching.unproven]
        reasons += self.subsets.refused if self.subsets else ()
        return tuple(dict.fromkeys(reasons))

    def without_individuals(self) -> Audit:
        """Return the same audit without the rows of people."""
        return replace(self, individuals=None)

    def hiding(self, *columns: str) -> Audit:
        """Return the same audit, with some columns left out of the rows of people.

        The columns still count in distances, and their names still appear in sums over many people.

        Parameters
        ----------
        *columns : str
            Names of the columns.
        """
        people = self.individuals
        if people is None:
            return self
        if unknown := [name for name in columns if name not in people.columns]:
            raise ColumnError(
                f"There is no column {unknown[0]!r} to hide. The columns are "
                f"{', '.join(people.columns)}. Name one of them."
            )
        kept = {name: v for name, v in people.columns.items() if name not in columns}
        hidden = (*people.hidden, *columns)
        return replace(self, individuals=replace(people, columns=kept, hidden=hidden))

    def __repr__(self) -> str:
        sizes = [f"{group.label!r} ({group.n_rows:,})" for group in self.groups]
        groups = f"groups {' and '.join(sizes)}" if len(sizes) == 2 else f"{len(sizes)} groups"
        first = self.gaps[0]  # of decisions, or of mean predictions
        words = f"largest {first.symbol} {first.value or 0.0:.3f}"
        shown = "no gap stated" if first.value is None else words
        return f"<Audit of {self.model_name!r}: {self.n_rows:,} people, {groups}, {shown}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(g.name.replace('_', ' '))}</td><td>{_shown(g)}</td></tr>"
            for g in self.gaps
        )
        groups = ", ".join(f"{escape(g.label)} ({g.n_rows:,})" for g in self.groups)
        level = f"{self.confidence:.0%}"
        notes = "".join(f"<li>{escape(reason)}</li>" for reason in self.refusals)
        found = [matching.nearest_fair for matching in self.matchings]
        placed = [one.position for one in found if one is not None and one.position is not None]
        if placed:
            notes += (
                f"<li>The nearest fair matching lies at {max(placed):.2f} between the nearest "
                "matching (0) and a random one (1).</li>"
            )
        if self.subsets and (sure := [one for one in self.subsets.subsets if one.confirmed.low]):
            worst = max(sure, key=lambda one: one.confirmed.low or 0.0)
            notes += (
                f"<li>Surest gap found in a subset: {worst.confirmed.value:.3f} on fresh rows, "
                f"where {escape(worst.description)}.</li>"
            )
        return (
            f"<div><strong>{escape(self.model_name)}</strong>: {groups}"
            f"<table><thead><tr><th>gap</th><th>value [{level} interval]</th></tr></thead>"
            f"<tbody>{rows}</tbody></table><ul>{notes}</ul></div>"
        )


def _shown(fact: Estimate | Gap) -> str:
    if fact.value is None:
        return "no statement"
    if fact.low is None or fact.high is None:
        return f"{fact.value:.3f}"
    return f"{fact.value:.3f} [{fact.low:.3f}, {fact.high:.3f}]"
