"""What is known of the people to audit. It is read once for all models."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairmatch.auditing.facts import Estimate, Individuals, LeakFacts, NearPeople, Pairs
from fairmatch.exceptions import ColumnError, GroupError, InputError
from fairmatch.matching.coupling import Coupling, IndexArray
from fairmatch.matching.matchers import OptimalTransportMatcher
from fairmatch.matching.solver import EXACT
from fairmatch.measures.distributions import ScoredPeople, Settings
from fairmatch.measures.intervals import SCORE_BINS, wilson
from fairmatch.people.checks import (
    BoolArray,
    FloatArray,
    check_count,
    check_length,
    check_number,
    read_column,
    read_labels,
)
from fairmatch.people.columns import Column, read_columns, split_column
from fairmatch.people.encoding import TableEncoder
from fairmatch.people.groups import Groups, attribute_columns, listed, read_groups
from fairmatch.people.leaks import find_leaks
from fairmatch.people.outcome import NUMBER, PROBABILITY
from fairmatch.people.people import Labels, People
from fairmatch.people.roles import ColumnFacts, suspect
from fairmatch.people.weights import KINDS, Weights, draw_people, read_row_weights


def content_order(
    columns: Iterable[Column],
    known: Iterable[NDArray[Any]],
    scores: Iterable[NDArray[Any]],
    weights: NDArray[Any] | None = None,
) -> IndexArray:
    """Return the rows in an order that depends on their content, not on their positions.

    Rows with the same content keep the order of the table, which makes no difference.

    Parameters
    ----------
    columns : iterable of Column
        The columns that describe the people.
    known : iterable of arrays
        Their groups and labels, as numbers.
    scores : iterable of arrays
        Their scores, one array per model. They order people who are alike in all of the above.
    weights : array, optional
        Their weights. They order people who also have the same scores.

    Notes
    -----
    People are drawn by their positions, and tied distances allow several matchings of least cost.
    So an audit of the rows in their given order would depend on that order. This function orders
    rows by a hash of their content, which is as good as random. Unlike in a sorted table,
    neighbours have nothing in common.

    Examples
    --------
    >>> ages, scores = np.array([20.0, 50.0, 30.0]), np.array([0.5, 0.1, 0.9])
    >>> turned = np.array([2, 0, 1])
    >>> one = ages[content_order([], [ages], [scores])]
    >>> other = ages[turned][content_order([], [ages[turned]], [scores[turned]])]
    >>> bool((one == other).all())
    True
    """
    described = [np.where(column.missing, np.nan, column.values) for column in columns]
    keys = [_hashed(scores), _hashed([*described, *known])]
    return np.lexsort(keys if weights is None else [weights, *keys])


def _hashed(columns: Iterable[NDArray[Any]]) -> NDArray[np.uint64]:
    """Return a number for every row that depends on the numbers in it (SplitMix64)."""
    state: Any = np.uint64(0)
    for column in columns:
        # Adding 0 turns -0.0 into 0.0, which is the same number.
        state = state ^ (column.astype(np.float64) + 0.0).view(np.uint64)
        state = state + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state = state ^ (state >> np.uint64(31))
    return np.asarray(state, dtype=np.uint64)


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
    weights : Weights
        Their weights.
    tolerance : float
        Relative gap to which the costs of their matchings are proven.
    """

    at: IndexArray
    codes: NDArray[np.int8]
    features: FloatArray | None
    positive: BoolArray | None
    weights: Weights
    tolerance: float = EXACT

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of people in the first group, and in the second."""
        return self._of(0).people, self._of(1).people

    def _of(self, code: int) -> Weights:
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
    weights : Weights
        Weights of these rows.
    """

    rows: IndexArray
    groups: Groups
    features: FloatArray | None
    feature_groups: dict[str, slice]
    positive: BoolArray | None
    weights: Weights
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
    groups: Groups, weights: Weights, n_sample: int, generator: np.random.Generator
) -> tuple[IndexArray, Weights]:
    """Draw people from each group without replacement. A smaller group is taken whole.

    Parameters
    ----------
    groups : Groups
        Group of every row.
    weights : Weights
        Weight of every row.
    n_sample : int
        How many people to draw from each group.
    generator : numpy Generator
        Source of the random draws.

    Returns
    -------
    rows : array of int
        Row positions, in the table's order.
    weights : Weights
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
        return positions[order], Weights(len(positions))
    values = np.concatenate([own for own in taken if own is not None])[order]
    return positions[order], Weights(len(positions), values, weights.is_counts)


# With more rows, a sample is examined first, and then all rows of the columns that it points at.
_MOST_ROWS = 200_000


def take(X: Any, rows: IndexArray) -> Any:
    """Return some rows of a table or array."""
    if not nw.dependencies.is_into_dataframe(X):
        return np.asarray(X)[rows]
    return nw.from_native(X, eager_only=True)[rows].to_native()


def leaks_of(
    X: Any, sensitive_features: Any, n_rows: int, kept: Collection[str]
) -> list[LeakFacts]:
    """Return the columns that give the group away. Raise if one does so in every row.

    Parameters
    ----------
    X : table or array of shape (n_rows, n_columns)
        The columns that describe people.
    sensitive_features : column, or table of several attributes
        Group of every row.
    n_rows : int
        Number of rows.
    kept : collection of str
        Columns to keep although they give the group away.

    Raises
    ------
    ColumnError
        If a column is the group or determines it, and is not listed in ``kept``.
    """
    if n_rows > _MOST_ROWS:
        rows = np.sort(np.random.default_rng(0).permutation(n_rows)[: _MOST_ROWS // 2])
        found = find_leaks(take(X, rows), take(sensitive_features, rows))
        if found:
            X = _only(X, {leak.column for leak in found})
            found = find_leaks(X, sensitive_features)
    else:
        found = find_leaks(X, sensitive_features)
    exact = [leak for leak in found if leak.is_exact and leak.column not in kept]
    if exact:
        told = "; ".join(leak.words for leak in exact)
        names = shlex.join(dict.fromkeys(leak.column for leak in exact))
        raise ColumnError(
            f"X gives the group away: {told}. Then nobody has a near person in the other group. "
            f"Leave it out of X (--drop {names}), or keep it, as where a model reads it from X: "
            f"keep={list(dict.fromkeys(leak.column for leak in exact))} (--keep {names})."
        )
    return [
        LeakFacts(
            leak.column,
            leak.kind,
            leak.attribute,
            None if leak.group is None else str(leak.group),
            leak.agreement,
            leak.words,
        )
        for leak in found
    ]


def _only(X: Any, names: Collection[str]) -> Any:
    if not nw.dependencies.is_into_dataframe(X):
        return X
    frame = nw.from_native(X, eager_only=True)
    return frame.select([name for name in frame.columns if str(name) in names]).to_native()


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
    row_weights : Weights or None
        Weight of every row. None means that every row is one person.
    """

    scores: FloatArray
    groups: Groups
    positive: BoolArray | None
    settings: AuditSettings
    unknown: tuple[int, ...] = ()
    row_weights: Weights | None = None

    @cached_property
    def weights(self) -> Weights:
        """Weight of every row."""
        return self.row_weights or Weights(len(self.scores))

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
    def _group_weights(self) -> tuple[Weights, ...]:
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

    @property
    def is_decision(self) -> bool:
        """Whether the scores are 0/1 decisions."""
        return self.scored.is_decision

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

    @cached_property
    def scored(self) -> ScoredPeople:
        """The people and their scores, as measures take them."""
        labels = self.positive
        people = People(
            replace(self.groups, apart=self.unknown),
            labels=None if labels is None else Labels(labels.astype(np.float64), (0, 1)),
            weight=self.weights,
        )
        outcome = NUMBER if self.settings.is_real else PROBABILITY
        settings = Settings(self.settings.threshold, SCORE_BINS, self.settings.favourable, outcome)
        return ScoredPeople(people, self.scores, settings)

    def rate(self, hits: BoolArray, weights: Weights, code: int, among: str = "") -> Estimate:
        """Return the share of hits with its interval, or the reason why it is not stated."""
        if reason := self.refuse(code, weights.size, among):
            return Estimate(None, refused=reason)
        share, size = weights.rate(hits)
        people = max(round(size), 1)
        count = share * people if weights.is_survey else round(share * people)
        return Estimate(share, *wilson(count, people, self.settings.confidence))


# A column in which nearly everybody has a value of their own identifies people. It is not a
# property that people share.
_MOST_LEVELS = 1000
_FEW_LEVELS = 30


# The group of people for whom an attribute is missing. It is shown, but compared with no other.
UNKNOWN = "unknown"


def identifies(n_levels: int, n_rows: int) -> bool:
    """Return whether a column with this many levels identifies people rather than describes them.

    Parameters
    ----------
    n_levels : int
        Number of different values in the column.
    n_rows : int
        Number of rows.
    """
    return n_levels > _MOST_LEVELS or (n_levels > _FEW_LEVELS and n_levels > n_rows / 2)


@dataclass(frozen=True, eq=False)
class PeopleTable:
    """What is known of the people.

    Attributes
    ----------
    X : table, array or None
        The table as given. It is None if no table was given.
    columns : list of Column
        The columns of ``features``.
    features : table, array or None
        The table without the sensitive column, if the table holds that column.
    groups : Groups
        Group of every row.
    unknown : tuple of int
        Codes of the groups of people for whom an attribute is missing.
    attributes : dict
        Name of each attribute to its groups, if several attributes were given. Otherwise empty.
    sensitive_features
        The groups as they were given.
    positive : array of bool or None
        Whether each label is positive. It is None without labels.
    pos_label
        The positive label.
    ids : list of str
        Identifier of every row. It is empty if none were given.
    weights : Weights
        Weight of every row.
    positions : array of int or None
        Positions of the rows in the given table. It is None if no row was left out.
    n_given : int
        Number of rows in the given table.
    leaks : tuple of LeakFacts
        Columns that give the group away.
    samples : dict
        Samples that were already drawn.
    target : array of float or None
        The number to predict for every row, if scores are predictions and it was given.
    order : array of int
        The rows, sorted by what is known of the people. People are drawn in this order, so the
        order of the table does not matter.
    """

    X: Any
    columns: list[Column]
    features: Any
    groups: Groups
    unknown: tuple[int, ...]
    attributes: dict[str, Groups]
    sensitive_features: Any
    positive: Any
    pos_label: Any
    ids: list[str]
    weights: Weights
    positions: IndexArray | None
    n_given: int
    leaks: tuple[LeakFacts, ...]
    samples: dict[tuple[int, int], Sample]
    target: FloatArray | None = None
    order: IndexArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def ordered(self, scores: Sequence[FloatArray]) -> PeopleTable:
        """Return the same people with an order that does not depend on the order of the rows.

        Parameters
        ----------
        scores : sequence of arrays
            Their scores under every model.
        """
        given = self.groups.codes, self.positive, self.target
        known = [values for values in given if values is not None]
        order = content_order(self.columns, known, scores, self.weights.values)
        return replace(self, order=order)

    def draw(self, n_people: int, generator: np.random.Generator) -> tuple[IndexArray, Weights]:
        """Draw people of each group, as `draw_rows` does, by their order."""
        groups, weights = self.groups.take(self.order), self.weights.take(self.order)
        rows, drawn = draw_rows(groups, weights, n_people, generator)
        return self.order[rows], drawn

    def sample(self, n_sample: int, seed: int) -> Sample:
        """Draw the sample once for all models. The nearest matching is then also found once."""
        key = n_sample, seed
        if key not in self.samples:
            generator = np.random.default_rng([seed, 2])
            rows, weights = self.draw(n_sample, generator)
            self.samples[key] = Sample(
                rows=rows,
                groups=self.groups.take(rows),
                features=self.encode(rows) if self.columns else None,
                feature_groups=self.encoder.feature_groups_ if self.columns else {},
                positive=None if self.positive is None else self.positive[rows],
                weights=weights,
            )
        return self.samples[key]

    @cached_property
    def encoder(self) -> TableEncoder:
        """The encoder of the features, fitted on all rows."""
        return TableEncoder(missing="encode").fit(self.features)

    def encode(self, rows: IndexArray) -> FloatArray:
        """Encode only some rows, because not all rows of a large table may be needed."""
        encoded: FloatArray = self.encoder.transform(take(self.features, rows))
        return encoded

    @property
    def sha256(self) -> str | None:
        """Hash of the columns. It does not depend on the table library. None without columns."""
        return sha256(*map(_bytes, self.columns)) if self.columns else None

    @property
    def n_encoded(self) -> int:
        """How many numbers describe a person after encoding."""
        return len(self.encoder.get_feature_names_out())


def read_people(
    sensitive_features: ArrayLike,
    X: Any,
    y_true: ArrayLike | None,
    ids: ArrayLike | None,
    pos_label: Any,
    sensitive_column: Any,
    sample_weight: ArrayLike | None = None,
    weight_kind: str = "survey",
    keep: Collection[str] = (),
    scale: str = "probability",
) -> PeopleTable:
    """Read the people to audit. Rows of weight 0 stand for nobody and are left out.

    Parameters
    ----------
    sensitive_column : str, int or None
        The column of X in which a model finds the groups, or None.
    sensitive_features, X, y_true, ids, pos_label, sample_weight, weight_kind, keep, scale
        The arguments of `fairmatch.audit`, as the caller passed them.
    """
    positions = None
    if sample_weight is not None:
        weights = read_row_weights(sample_weight, weight_kind, _n_rows(sensitive_features))
        n_given = weights.n_rows
        assert weights.values is not None
        if (is_there := weights.values > 0.0).sum() < weights.n_rows:
            positions = np.flatnonzero(is_there)
            sensitive_features = take(sensitive_features, positions)
            X, y_true, ids = (
                None if given is None else _taken(given, positions, n_given, name)
                for name, given in {"X": X, "y_true": y_true, "ids": ids}.items()
            )
            weights = weights.take(positions)
    groups = read_groups(sensitive_features, unknown=UNKNOWN)
    n_rows = len(groups)
    if sample_weight is None:
        weights, n_given = Weights(n_rows), n_rows
    attributes, missing = _read_attributes(sensitive_features, groups)
    unknown = tuple(np.unique(groups.codes[missing]).tolist())
    if groups.n_groups - len(unknown) < 2:
        known = [label for code, label in enumerate(groups.labels) if code not in unknown]
        raise GroupError(
            f"sensitive_features has {int(missing.sum())} missing or unknown values, and the "
            f"others hold {len(known)} group ({listed(known)}). At least two known groups are "
            "needed to compare. Pass rows of another group too, or another column."
        )
    features = X if X is None else _without(X, sensitive_column)
    columns = [] if X is None else read_columns(features)
    refused: list[InputError] = []
    for column in columns:
        if len(column.values) != n_rows:
            raise InputError(
                f"X has {len(column.values)} rows where sensitive_features has {n_rows}. Pass both "
                "for the same people."
            )
        if column.name in keep or column.levels is None:
            continue
        if identifies(len(column.levels), n_rows):
            refused.append(_no_feature(column, n_rows))
    leaks: list[LeakFacts] = []
    try:
        leaks = leaks_of(features, sensitive_features, n_rows, keep) if columns else []
    except ColumnError as error:
        refused.append(error)
    if refused:  # all at once, so that nobody repairs a table one column at a time
        raise refused[0] if len(refused) == 1 else ColumnError("\n".join(map(str, refused)))
    names = [] if ids is None else [str(value) for value in read_column(ids, "ids").tolist()]
    if names and len(names) != n_rows:
        raise InputError(
            f"ids has {len(names)} rows where {n_rows} were expected. Pass one identifier per row."
        )
    return PeopleTable(
        X=X,
        columns=columns,
        features=features,
        groups=groups,
        unknown=unknown,
        attributes=attributes,
        sensitive_features=sensitive_features,
        positive=None
        if y_true is None or scale == "real"
        else read_labels(y_true, n_rows=n_rows, pos_label=pos_label),
        pos_label=pos_label,
        ids=names,
        weights=weights,
        positions=positions,
        n_given=n_given,
        leaks=tuple(leaks),
        samples={},
        target=None if y_true is None or scale != "real" else _read_target(y_true, n_rows),
    )


def _no_feature(column: Column, n_rows: int) -> InputError:
    """Return the error about a text column in which most values differ: numbers, or names."""
    levels = np.asarray(column.levels, dtype=object)
    found = suspect(ColumnFacts(column.name, "text", levels, 0))
    if found is not None and found.asks:
        words = found.words.partition(";")[0]
        return InputError(
            f"Column {column.name!r} {words}. Turn it into numbers, or leave it out of X (--drop "
            f"{shlex.quote(column.name)})."
        )
    return InputError(
        f"Column {column.name!r} has {len(levels)} different values in {n_rows} rows: it looks "
        "like a name or a number that identifies people. Leave it out of X, and pass it as ids "
        "(--id) if the audit should show it."
    )


def _read_target(y_true: ArrayLike, n_rows: int) -> FloatArray:
    return NUMBER.read(y_true, name="y_true", n_rows=n_rows)


def _read_attributes(given: Any, groups: Groups) -> tuple[dict[str, Groups], BoolArray]:
    """Return the groups of each attribute if there are several, and a mask of rows that lack one.

    With a single attribute the first part is empty.
    """
    columns = attribute_columns(given, "sensitive_features")
    if len(columns) == 1:
        return {}, _lack(groups)
    attributes = {
        str(name): read_groups(values, unknown=UNKNOWN, name=f"sensitive_features[{name!r}]")
        for name, values in columns
    }
    return attributes, np.logical_or.reduce([*map(_lack, attributes.values())])


def _lack(groups: Groups) -> BoolArray:
    """Return which rows lack the attribute."""
    code = groups.labels.index(UNKNOWN) if UNKNOWN in groups.labels else -1
    return np.asarray(groups.codes == code)


def _without(X: Any, column: Any) -> Any:
    """Return X without the sensitive column, if X holds it."""
    try:
        return X if column is None else split_column(X, column)[0]
    except ColumnError:  # X may lack the column if the model needs no group to predict
        return X


def _taken(given: Any, rows: IndexArray, n_rows: int, name: str) -> Any:
    """Return some rows of what was given. Raise unless it has the expected number of rows."""
    check_length(given, n_rows, name)
    return take(given, rows)


def _n_rows(given: Any) -> int:
    return len(attribute_columns(given, "sensitive_features")[0][1])


def list_people(
    data: Scored,
    sample: Sample,
    table: PeopleTable,
    pairs: dict[str, Pairs],
    near: tuple[NearPeople, ...],
    across: dict[str, Pairs],
) -> Individuals:
    """Return the people of the sample, one by one."""
    ids, columns = table.ids, table.columns
    positive = () if sample.positive is None else sample.positive.astype(int).tolist()
    weights = () if sample.weights.values is None else sample.weights.values.tolist()
    rows = sample.rows if table.positions is None else table.positions[sample.rows]
    return Individuals(
        ids=tuple(ids[row] for row in sample.rows) if ids else tuple(map(str, rows)),
        rows=tuple(rows.tolist()),
        group=tuple(sample.groups.codes.tolist()),
        scores=tuple(data.scores[sample.rows].tolist()),
        labels=tuple(positive),
        columns={column.name: _values(column, sample.rows) for column in columns},
        hidden=(),
        pairs=pairs,
        selected=()
        if data.settings.is_real
        else tuple(data.selected[sample.rows].astype(int).tolist()),
        weights=tuple(weights),
        near=near,
        across=across,
    )


def _values(column: Column, rows: IndexArray) -> tuple[str | float | None, ...]:
    values, missing = column.values[rows].tolist(), column.missing[rows].tolist()
    if column.levels is None:
        return tuple(None if m else float(v) for v, m in zip(values, missing, strict=True))
    levels = [str(level) for level in column.levels]
    return tuple(None if m else levels[v] for v, m in zip(values, missing, strict=True))


def sha256(*parts: bytes) -> str:
    """Return the SHA-256 hash of some bytes, taken part after part."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _bytes(column: Column) -> bytes:
    """Return the name, the kind and the values of a column as bytes."""
    head = f"{column.name}\0{column.kind}\0".encode()
    if column.levels is None:
        values = np.where(column.missing, 0.0, column.values.astype(np.float64))
        return head + column.missing.tobytes() + values.tobytes()
    # Levels are sorted by their text, because their order depends on the table library.
    levels, codes = np.unique([str(level) for level in column.levels], return_inverse=True)
    text = np.append(codes, -1).astype(np.int32)[column.values]
    return head + "\0".join(levels.tolist()).encode() + text.tobytes()
