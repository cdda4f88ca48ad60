"""What an audit found: plain dataclasses of facts, no plotting and no arrays.

Group labels and column names are strings here, whatever they were in the table, so that every
fact can be written to JSON and read back unchanged. A fact that cannot be stated is None, and a
sentence in ``refused`` says why.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from html import escape
from typing import Any, ClassVar, TypeVar

from fairmatch.exceptions import ColumnError, InputError
from fairmatch.storage.plain import from_plain, schema_of, to_plain


@dataclass(frozen=True)
class Estimate:
    """A number and its confidence interval.

    Attributes
    ----------
    value, low, high : float or None
        The estimate and the limits of its interval; None where no statement is made.
    refused : str or None
        Why no statement is made.

    Examples
    --------
    >>> Estimate(0.25, 0.2, 0.3)
    Estimate(value=0.25, low=0.2, high=0.3, refused=None)
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    refused: str | None = None


@dataclass(frozen=True)
class CalibrationBin:
    """People whose scores fall into one interval, and what became of them.

    Attributes
    ----------
    low, high : float
        The interval of scores, closed on the left (the last one on both sides).
    n_rows : int
        People in it.
    mean_score : float or None
        Their mean score; None where there are none.
    positive_rate : Estimate
        Their share of positive labels.
    """

    low: float
    high: float
    n_rows: int
    mean_score: float | None
    positive_rate: Estimate


@dataclass(frozen=True)
class GroupFacts:
    """One group: its size, its scores and, with labels, how well the model does there.

    Attributes
    ----------
    label : str
        Name of the group.
    n_rows : int
        People in it.
    selection_rate : Estimate
        Share of accepted people.
    mean_score : Estimate
        Mean score.
    score_counts : tuple of int
        People per interval of `Audit.score_edges`.
    base_rate, accuracy, true_positive_rate, false_positive_rate, auc : Estimate or None
        None without labels.
    calibration : tuple of CalibrationBin
        Empty without labels.
    calibration_error : float or None
        Mean distance between score and outcome over the bins, weighted by people.
    """

    label: str
    n_rows: int
    selection_rate: Estimate
    mean_score: Estimate
    score_counts: tuple[int, ...]
    base_rate: Estimate | None = None
    accuracy: Estimate | None = None
    true_positive_rate: Estimate | None = None
    false_positive_rate: Estimate | None = None
    auc: Estimate | None = None
    calibration: tuple[CalibrationBin, ...] = ()
    calibration_error: float | None = None


@dataclass(frozen=True)
class Gap:
    """A gap between the two groups, with its confidence interval.

    Attributes
    ----------
    name, symbol : str
        Name of the measure in `fairmatch.measures.gaps`, and the paper's symbol.
    value, low, high : float or None
        The gap and the limits of its interval; None where no statement is made.
    signed : float or None
        Second group minus first, for gaps that are a difference of two rates or means.
    p_value : float or None
        Of a permutation test of equal score distributions, where the interval rests on one.
    method : str
        How the interval was made.
    refused : str or None
        Why no statement is made.
    """

    name: str
    symbol: str
    value: float | None
    low: float | None
    high: float | None
    signed: float | None
    p_value: float | None
    method: str
    refused: str | None = None


@dataclass(frozen=True)
class FeatureCost:
    """The part of a transport cost that comes from one column of the table.

    Attributes
    ----------
    name : str
        The column, as it was before encoding.
    cost, smallest, random : float
        Its part under the model's fair matching, the nearest matching and a random one.
    share : float
        Its share of the model's cost.
    """

    name: str
    cost: float
    smallest: float
    random: float
    share: float


@dataclass(frozen=True)
class Transport:
    """How far apart people are whom the model treats alike.

    Attributes
    ----------
    cost : float
        Mean squared distance between matched people, tied scores matched at least cost.
    cost_high : float
        The same with tied scores matched at greatest cost; equal to `cost` without ties.
    undetermined : float
        Share of the mass whose partners tied scores leave open.
    smallest : float
        Cost of the nearest matching of the same people (the marginal optimal transport map).
    random : float
        Expected cost of a random matching of the same people.
    relative, relative_high : float or None
        ``(cost - smallest) / (random - smallest)``, and the same of `cost_high`: 0 is as near as
        possible, 1 is as random, more is worse than random. None where the two are equal.
    features : tuple of FeatureCost
        The cost by column of the table, the largest part first.
    all_rows : float or None
        Cost of the fair matching of all rows, as far as it can be had; the others are of the
        sample. None where too many scores are tied or the table is too wide.
    solver_gap : float
        Relative duality gap to which `smallest` is proven.
    """

    cost: float
    cost_high: float
    undetermined: float
    smallest: float
    random: float
    relative: float | None
    relative_high: float | None
    features: tuple[FeatureCost, ...]
    solver_gap: float
    all_rows: float | None = None

    @property
    def shown(self) -> str:
        """The place on the scale for people to read, with its range where ties leave it open."""
        low, high = self.relative, self.relative_high
        if low is None:
            return "not stated"
        if high is None or f"{high:.2f}" == f"{low:.2f}":
            return f"{low:.2f}"
        return f"{low:.2f} to {high:.2f} (tied scores leave it open)"


@dataclass(frozen=True)
class PairFlips:
    """Decisions on the two people of a pair, as shares of all pairs; they sum to 1.

    Attributes
    ----------
    both, neither : float
        Both are accepted; none is.
    first_only, second_only : float
        Only the person of the first group (or of the second) is accepted: a flip.
    """

    both: float
    neither: float
    first_only: float
    second_only: float


@dataclass(frozen=True)
class MatchedGap:
    """Score gaps between matched people, under one matching of the sample.

    Attributes
    ----------
    matching : {"fair", "marginal", "joint"}
        The model's own matching by score quantiles; the nearest people; the nearest people with
        the same label.
    gap : Estimate
        Mean score gap (the paper's MDP), the pairs taken as given.
    quantiles : dict
        Quantile of the gap over people ("0", "0.05", "0.25", "0.5", "0.75", "0.95", "1").
    histogram : tuple of float
        Share of the pairs in equal intervals of [0, 1] of the gap.
    flips : PairFlips
        Decisions on the two people of a pair.
    transport_cost : float or None
        Mean squared distance between matched people; None without features.
    """

    matching: str
    gap: Estimate
    quantiles: dict[str, float]
    histogram: tuple[float, ...]
    flips: PairFlips
    transport_cost: float | None = None


@dataclass(frozen=True)
class Matching:
    """Who the model treats like whom, on a random sample of each group.

    Attributes
    ----------
    n_sampled : tuple of two int
        People of each group in the sample.
    is_sample : bool
        False if the sample is everybody.
    matched_gaps : tuple of MatchedGap
        Under the fair matching; with features the marginal map; with labels too the joint map.
    transport : Transport or None
        None without features.
    refused : str or None
        Why there is no matching.
    """

    n_sampled: tuple[int, int]
    is_sample: bool
    matched_gaps: tuple[MatchedGap, ...] = ()
    transport: Transport | None = None
    refused: str | None = None


@dataclass(frozen=True)
class Condition:
    """One condition on one column, such as ``age > 60``.

    Attributes
    ----------
    column : str
        The column.
    operator : {"=", "!=", "<=", ">"}
        The first two for categories, the last two for numbers.
    value : str, float or None
        What it is compared with; None is a missing value.
    """

    column: str
    operator: str
    value: str | float | None

    def __str__(self) -> str:
        words = {"=": "is", "!=": "is not"}
        if self.value is None:
            return f"{self.column} {words[self.operator]} missing"
        value = f"{self.value:g}" if isinstance(self.value, float) else self.value
        return f"{self.column} {self.operator} {value}"


@dataclass(frozen=True)
class SubsetGap:
    """The gap between the groups' mean scores within one subset of people.

    Attributes
    ----------
    description : str
        The subset in words.
    conditions : tuple of Condition
        All of them hold in the subset.
    n_rows : tuple of two int
        People of each group in it.
    gap : float
        Gap between the groups' mean scores in it, over all rows.
    signed : float
        Second group minus first, over all rows.
    confirmed : Estimate
        The gap over rows that played no part in choosing the subset, with an interval that holds
        for all listed subsets at once.
    found_by : {"level", "split", "pair", "search"}
        A single level; a median split; two of these; the search for the worst.
    """

    description: str
    conditions: tuple[Condition, ...]
    n_rows: tuple[int, int]
    gap: float
    signed: float
    confirmed: Estimate
    found_by: str


@dataclass(frozen=True)
class HalfSpaces:
    """Gaps in random half-spaces of the feature space, as in the paper's Section 5.2.2.

    Attributes
    ----------
    gaps : tuple of float
        One gap per half-space in which both groups are present.
    n_empty : int
        Half-spaces in which a group is absent.
    noise : tuple of float
        The same with the group labels shuffled: what chance alone makes of such a table.
    n_rows : int
        Rows looked at.
    """

    gaps: tuple[float, ...]
    n_empty: int
    noise: tuple[float, ...]
    n_rows: int


@dataclass(frozen=True)
class SubsetScan:
    """Where the model treats the groups differently, even if it does not overall.

    Attributes
    ----------
    subsets : tuple of SubsetGap
        The worst first, by the confirmed gap less a margin for few people.
    n_examined : int
        Subsets that were looked at.
    min_rows : int
        A subset needs as many people of each group among the rows that are searched.
    n_search, n_confirm : int
        Rows on which subsets were chosen, and other rows on which their gaps were taken.
    half_spaces : HalfSpaces
        Random half-spaces.
    refused : tuple of str
        What was not looked at, and why.
    """

    subsets: tuple[SubsetGap, ...]
    n_examined: int
    min_rows: int
    n_search: int
    n_confirm: int
    half_spaces: HalfSpaces
    refused: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pairs:
    """Matched people, as positions in the lists of `Individuals`; one entry per pair.

    Attributes
    ----------
    first, second : tuple of int
        The person of the first group, and of the second.
    mass : tuple of float
        Weight of the pair; sums to 1.
    score_gap : tuple of float
        Absolute difference of the two scores.
    distance : tuple of float
        Squared distance of the two people; empty without features.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    mass: tuple[float, ...]
    score_gap: tuple[float, ...]
    distance: tuple[float, ...]


@dataclass(frozen=True)
class Difference:
    """A column in which two matched people differ.

    Attributes
    ----------
    column : str
        The column.
    first, second : str, float or None
        Value of the person of the first group, and of the second; None is missing.
    """

    column: str
    first: str | float | None
    second: str | float | None


@dataclass(frozen=True)
class Individuals:
    """The people of the sample, and who is matched with whom. These are people's rows.

    Attributes
    ----------
    ids : tuple of str
        Who they are: the ``ids`` given, or else row numbers.
    rows : tuple of int
        Row positions in the audited table.
    group : tuple of int
        0 for the first group, 1 for the second.
    scores : tuple of float
        Their scores; accepted are those at or above `Audit.threshold`.
    labels : tuple of int
        1 where the label is positive; empty without labels.
    columns : dict
        Column name to the people's values; numbers, text, or None where missing.
    hidden : tuple of str
        Columns that were left out on purpose.
    pairs : dict
        Matching ("fair", "marginal", "joint") to its pairs.
    """

    ids: tuple[str, ...]
    rows: tuple[int, ...]
    group: tuple[int, ...]
    scores: tuple[float, ...]
    labels: tuple[int, ...]
    columns: dict[str, tuple[str | float | None, ...]]
    hidden: tuple[str, ...]
    pairs: dict[str, Pairs]

    def differences(self, pair: int, *, matching: str = "fair") -> list[Difference]:
        """List the columns in which the two people of a pair differ."""
        pairs = self.pairs[matching]
        first, second = pairs.first[pair], pairs.second[pair]
        return [
            Difference(name, values[first], values[second])
            for name, values in self.columns.items()
            if values[first] != values[second]
        ]

    def counterparts(self, person: int, *, matching: str = "fair") -> list[int]:
        """List the pairs that a person is part of, the heaviest first."""
        pairs = self.pairs[matching]
        own = pairs.second if self.group[person] else pairs.first
        found = [k for k, member in enumerate(own) if member == person]
        return sorted(found, key=lambda k: -pairs.mass[k])

    def most_unlike(self, n_pairs: int = 10, *, matching: str = "fair") -> list[int]:
        """List the pairs whose people are farthest apart; empty without features."""
        distance = self.pairs[matching].distance
        return sorted(range(len(distance)), key=lambda k: -distance[k])[:n_pairs]


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
        Of the scores as 64-bit floats, and of the group codes as bytes.
    labels_sha256, features_sha256 : str or None
        Of the labels (1 for positive) and of the columns; None where not given.
    source, source_sha256 : str or None
        Name and hash of the file, where the audit read one.
    settings : dict
        The other arguments of the audit.
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


@dataclass(frozen=True)
class Audit:
    """How a model treats two groups of people: facts, not a verdict.

    Made by `fairmatch.audit`.

    Attributes
    ----------
    model_name : str
        What the model is called.
    n_rows : int
        People audited.
    threshold, confidence : float
        Accepted are scores at or above the threshold; level of the intervals.
    score_edges : tuple of float
        Ends of the intervals in which `GroupFacts.score_counts` counts.
    groups : tuple of two GroupFacts
        The groups, the smaller label first.
    selection_ratio : Estimate
        Smaller selection rate over the larger; the four-fifths rule asks for 0.8.
    gaps : tuple of Gap
        Every gap that the data allow.
    matching : Matching
        Who is treated like whom, and how far apart they are.
    subsets : SubsetScan or None
        None without features.
    individuals : Individuals or None
        None where people's rows were left out.
    provenance : Provenance
        What was audited, with what, and how.

    Examples
    --------
    >>> from fairmatch import audit
    >>> found = audit([0.9, 0.2, 0.6, 0.7] * 20, sensitive_features=[0, 0, 1, 1] * 20)
    >>> found.gap("demographic_parity_gap").value
    0.5
    >>> [group.label for group in found.groups]
    ['0', '1']
    """

    SCHEMA: ClassVar[str] = "fairmatch.Audit"
    SCHEMA_VERSION: ClassVar[int] = 1

    model_name: str
    n_rows: int
    threshold: float
    confidence: float
    score_edges: tuple[float, ...]
    groups: tuple[GroupFacts, GroupFacts]
    selection_ratio: Estimate
    gaps: tuple[Gap, ...]
    matching: Matching
    subsets: SubsetScan | None
    individuals: Individuals | None
    provenance: Provenance

    def gap(self, name: str) -> Gap:
        """Give the gap with this name."""
        for gap in self.gaps:
            if gap.name == name:
                return gap
        known = ", ".join(gap.name for gap in self.gaps)
        raise InputError(f"This audit has no gap named {name!r}; it has {known}.")

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why some statements are not made, each reason once."""
        facts: list[Estimate | Gap | Matching | None]
        facts = [self.selection_ratio, *self.gaps, self.matching]
        for group in self.groups:
            facts += [group.selection_rate, group.mean_score, group.base_rate, group.accuracy]
            facts += [group.true_positive_rate, group.false_positive_rate, group.auc]
        reasons = [fact.refused for fact in facts if fact is not None and fact.refused]
        reasons += self.subsets.refused if self.subsets else ()
        return tuple(dict.fromkeys(reasons))

    def without_individuals(self) -> Audit:
        """Give the same audit without people's rows."""
        return replace(self, individuals=None)

    def hiding(self, *columns: str) -> Audit:
        """Give the same audit with the values of some columns left out of people's rows.

        The columns still count in distances and keep their names in sums over many people.
        """
        people = self.individuals
        if people is None:
            return self
        if unknown := [name for name in columns if name not in people.columns]:
            raise ColumnError(
                f"There is no column {unknown[0]!r} to hide; there are {', '.join(people.columns)}."
            )
        kept = {name: v for name, v in people.columns.items() if name not in columns}
        hidden = (*people.hidden, *columns)
        return replace(self, individuals=replace(people, columns=kept, hidden=hidden))

    def to_dict(self) -> dict[str, Any]:
        """Give the audit as plain values, with the name and version of its schema."""
        return {"schema": self.SCHEMA, "schema_version": self.SCHEMA_VERSION, **to_plain(self)}

    def to_json(self, *, indent: int | None = None) -> str:
        """Write the audit as JSON; see `docs/audit.md` for the schema."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Audit:
        """Read an audit that `to_json` wrote."""
        return read_facts(cls, text)

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Give the JSON Schema of what `to_json` writes."""
        return schema_of(cls, cls.SCHEMA, cls.SCHEMA_VERSION)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(g.name.replace('_', ' '))}</td><td>{_shown(g)}</td></tr>"
            for g in self.gaps
        )
        groups = " and ".join(f"{escape(g.label)} ({g.n_rows:,})" for g in self.groups)
        level = f"{self.confidence:.0%}"
        notes = "".join(f"<li>{escape(reason)}</li>" for reason in self.refusals)
        transport = self.matching.transport
        if transport is not None and transport.relative is not None:
            notes += (
                f"<li>People treated alike are at {transport.shown} of the way from the nearest "
                "matching (0) to a random one (1).</li>"
            )
        if self.subsets and self.subsets.subsets:
            worst = self.subsets.subsets[0]
            notes += (
                f"<li>Surest gap found in a subset: {worst.gap:.3f} where "
                f"{escape(worst.description)}.</li>"
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


@dataclass(frozen=True)
class ModelPair:
    """A model against the reference model, on the same people.

    Attributes
    ----------
    model, reference : str
        Names of the two.
    rank_agreement : dict
        Group to Spearman correlation of the two models' scores; None for constant scores.
    decisions : dict
        Group to four counts: rejected by both, accepted by the reference only, accepted by the
        model only, accepted by both.
    undesirable_flips : dict or None
        Group to flips that harm the less favoured group or favour the other; None where no
        group was named as privileged.
    """

    model: str
    reference: str
    rank_agreement: dict[str, float | None]
    decisions: dict[str, tuple[int, int, int, int]]
    undesirable_flips: dict[str, int] | None


@dataclass(frozen=True)
class Comparison:
    """Two or more models on the same people.

    Made by `fairmatch.compare_models`.

    Attributes
    ----------
    audits : tuple of Audit
        One per model, the reference first; the samples are the same people.
    pairs : tuple of ModelPair
        Every other model against the reference.
    privileged : str or None
        The favoured group, where one was named.
    """

    SCHEMA: ClassVar[str] = "fairmatch.Comparison"
    SCHEMA_VERSION: ClassVar[int] = 1

    audits: tuple[Audit, ...]
    pairs: tuple[ModelPair, ...]
    privileged: str | None

    def without_individuals(self) -> Comparison:
        """Give the same comparison without people's rows."""
        return replace(self, audits=tuple(a.without_individuals() for a in self.audits))

    def hiding(self, *columns: str) -> Comparison:
        """Give the same comparison with some columns left out of people's rows."""
        return replace(self, audits=tuple(a.hiding(*columns) for a in self.audits))

    def to_dict(self) -> dict[str, Any]:
        """Give the comparison as plain values, with the name and version of its schema."""
        return {"schema": self.SCHEMA, "schema_version": self.SCHEMA_VERSION, **to_plain(self)}

    def to_json(self, *, indent: int | None = None) -> str:
        """Write the comparison as JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Comparison:
        """Read a comparison that `to_json` wrote."""
        return read_facts(cls, text)

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Give the JSON Schema of what `to_json` writes."""
        return schema_of(cls, cls.SCHEMA, cls.SCHEMA_VERSION)

    def _repr_html_(self) -> str:
        return "".join(audit._repr_html_() for audit in self.audits)


Facts = TypeVar("Facts", Audit, Comparison)


def read_facts(kind: type[Facts], text: str) -> Facts:
    """Read JSON that an audit or a comparison wrote."""
    try:
        content = json.loads(text)
        given = content["schema"], content["schema_version"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"This is not JSON that fairmatch wrote: {error!r}") from error
    if given != (kind.SCHEMA, kind.SCHEMA_VERSION):
        raise InputError(
            f"This is {given[0]} version {given[1]}; expected {kind.SCHEMA} version "
            f"{kind.SCHEMA_VERSION}."
        )
    try:
        return from_plain(kind, content)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"This {kind.SCHEMA} is damaged: {error!r}") from error
