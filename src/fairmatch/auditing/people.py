"""The people of an audit and the scores of its models, read once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairmatch.auditing.facts import SMALL_SHARE, Estimate
from fairmatch.exceptions import ColumnError, GroupError, InputError
from fairmatch.learning.reading import as_list, split_columns
from fairmatch.matching.coupling import Coupling, IndexArray
from fairmatch.matching.matchers import OptimalTransportMatcher
from fairmatch.matching.solver import EXACT
from fairmatch.measures.distributions import ScoredPeople, Settings
from fairmatch.people.bands import Bands
from fairmatch.people.checks import (
    BoolArray,
    FloatArray,
    check_choice,
    check_count,
    check_length,
    check_number,
    is_missing,
    plain_value,
    read_column,
    read_labels,
)
from fairmatch.people.columns import Column
from fairmatch.people.encoding import Points, Table, TableEncoder, code_notes
from fairmatch.people.groups import (
    SMALL,
    UNKNOWN,
    Groups,
    attribute_columns,
    check_known,
    is_word,
    odd_groups,
    read_criterion,
    read_groups,
)
from fairmatch.people.leaks import Leak, find_leaks
from fairmatch.people.memberships import GroupProbabilities
from fairmatch.people.outcome import MARK, NUMBER, OUTCOMES, Outcome, largest_class
from fairmatch.people.people import Comparison, Labels, People
from fairmatch.people.roles import ColumnFacts, suspect
from fairmatch.people.similarity import (
    AUTO,
    RELEVANCE,
    Similarity,
    default_similarity,
    is_embedding,
    read_embedding,
    read_similarity,
)
from fairmatch.people.strata import Codes, read_given
from fairmatch.people.weights import Weights, draw_people

MANY_GROUPS = 50
"""With more groups than this, every group is compared with the reference group only."""

FAVOURED = {"high": "selected", "low": "not flagged"}
"""What people with the favourable outcome are called by default, by the scores that are good."""

_HALF = 0.5
# Quantiles of a higher confidence, shared by many pairs, are lost to rounding.
_SUREST = 0.999999


@dataclass(frozen=True)
class AuditSettings:
    """The settings of an audit.

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
    min_group_size: int = SMALL
    random_state: int = 0
    favourable: str = "high"
    outcome: str | None = None
    weight_kind: str = "survey"
    kind: str = "probability"
    reference: str | None = None
    top: int | float | None = None
    score_range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.score_range is not None:
            self._check_range(*self.score_range)
        elif self.top is None:
            check_number("threshold", self.threshold, "[0, 1]")  # where scores lie
        check_number("confidence", self.confidence, "[0.5, 1)")
        if self.confidence > _SUREST:
            raise InputError(
                f"confidence={self.confidence!r} is so close to 1 that no interval can be stated. "
                f"Pass at most {_SUREST}.",
                parameter="confidence",
            )
        least = {"n_resamples": 100, "n_sample": 2, "n_subsets": 1, "min_group_size": 2}
        for name, limit in {**least, "random_state": 0}.items():
            check_count(name, getattr(self, name), limit)
        check_choice("favourable", self.favourable, FAVOURED)
        check_choice("kind", self.kind, OUTCOMES)
        if self.outcome is not None and not str(self.outcome).strip():
            raise InputError(
                "outcome is empty. Name what happens to the selected, such as 'granted bail'.",
                parameter="outcome",
            )
        defaults = {"top": None, "outcome": None, "threshold": _HALF}
        for name, default in defaults.items():
            if (own := getattr(self, name)) != default and not self.scores.decides:
                raise InputError(
                    f"{name}={own!r} was given with kind='number', but predictions in units of "
                    f"the target have no decisions. Leave {name} out.",
                    parameter=name,
                )

    def _check_range(self, low: float, high: float) -> None:
        """Raise unless scores may have this range, with a threshold in it."""
        if self.kind == "number":
            raise InputError(
                "score_range was given with kind='number', but predictions have no fixed range. "
                "Leave one of the two out.",
                parameter="score_range",
            )
        if self.top is None and not low <= self.threshold <= high:
            raise InputError(
                f"threshold={self.threshold:g} is not between {low:g} and {high:g}, the range of "
                "the scores. Pass the score from which people are selected.",
                parameter="threshold",
            )

    @property
    def scores(self) -> Outcome:
        """What the scores are."""
        return OUTCOMES[self.kind] if self.score_range is None else MARK

    @property
    def named_outcome(self) -> str:
        """Words for the favourable outcome.

        High scores lead to "flagged". So where low scores are good, "flagged" is not the favourable
        outcome, and "not flagged" takes its place.
        """
        if self.outcome is None or (self.favourable == "low" and self.outcome == "flagged"):
            return FAVOURED[self.favourable]
        return str(self.outcome).strip()

    def generator(self, *part: int) -> np.random.Generator:
        """Return the random stream of one part of the audit. No part depends on another."""
        return np.random.default_rng([self.random_state, *part])


def read_top(top: Any) -> int | float | None:
    """Return how many people are selected by rank: a number, or a share of all people.

    Examples
    --------
    >>> read_top(100), read_top("10%"), read_top(0.25)
    (100, 0.1, 0.25)
    """
    if top is None:
        return None
    try:
        number = float(str(top).removesuffix("%")) / (100.0 if str(top).endswith("%") else 1.0)
    except ValueError:
        number = float("nan")
    if number >= 1.0 and number == int(number) and not str(top).endswith("%"):
        return int(number)
    if 0.0 < number < 1.0:
        return number
    raise InputError(
        f"top={top!r} is neither a number of people, such as 100, nor a share of them, such as "
        "0.1 or '10%'.",
        parameter="top",
    )


def cut_at_rank(
    scores: FloatArray, weights: Weights, top: float, favourable: str
) -> tuple[float, int]:
    """Return the threshold that selects this many of the best people, and how many tie at it.

    People who tie with the last one selected are selected too.

    Examples
    --------
    >>> scores = np.array([0.9, 0.7, 0.7, 0.2])
    >>> cut_at_rank(scores, Weights(4), 2, "high"), cut_at_rank(scores, Weights(4), 1, "low")
    ((0.7, 2), (0.7, 1))
    """
    is_share = not isinstance(top, int)
    ones = np.ones(len(scores))
    mass = (
        weights.values if weights.values is not None and (is_share or weights.is_counts) else ones
    )
    order = np.argsort(-scores if favourable == "high" else scores, kind="stable")
    upto = np.cumsum(mass[order])
    wanted = top * upto[-1] if is_share else float(top)
    if wanted > upto[-1]:
        raise InputError(
            f"top={top} is more than the {upto[-1]:g} people in the table. Select fewer.",
            parameter="top",
        )
    cut = float(scores[order[int(np.searchsorted(upto, wanted * (1.0 - 1e-12)))]])
    tied = weights.take(scores == cut).people
    if favourable == "high":
        return cut, tied
    worse = scores[scores > cut]  # below the next score, or below a score that nobody has
    return float(worse.min() if len(worse) else np.nextafter(cut, np.inf)), tied


def content_order(
    columns: Iterable[Column],
    known: Iterable[NDArray[Any]],
    scores: Iterable[NDArray[Any]],
    weights: NDArray[Any] | None = None,
) -> IndexArray:
    """Return the rows in an order that depends on their content, not on their positions.

    People are drawn by their positions, and tied distances allow several matchings of least cost,
    so an audit in the given order would depend on that order. A hash of the content is as good as
    random: unlike in a sorted table, neighbours have nothing in common. Rows with the same content
    keep the order of the table, which makes no difference.

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


# The paper's alpha of the joint map (Section 5.3).
_JOINT_LABEL_WEIGHT = 100.0
# With many pairs of groups, costs are proven to within this share of their size. Another sample
# of people would change them far more.
_MANY_TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class SamplePair:
    """The drawn people of two groups."""

    at: IndexArray
    people: People
    features: FloatArray | None
    tolerance: float = EXACT

    @cached_property
    def codes(self) -> NDArray[np.integer[Any]]:
        """0 for people of the first group, 1 for those of the second."""
        return self.people.groups.codes

    @cached_property
    def sides(self) -> tuple[IndexArray, IndexArray]:
        """Positions of the people of the first group, and of those of the second."""
        return np.flatnonzero(self.codes == 0), np.flatnonzero(self.codes == 1)

    @cached_property
    def weights(self) -> Weights:
        """Their weights."""
        return self.people.weight

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """Number of people in the first group, and in the second."""
        first, second = (self.weights.take(own).people for own in self.sides)
        return first, second

    @cached_property
    def part(self) -> Comparison:
        """The comparison of the two groups."""
        (part,) = self.people.comparisons(read_criterion("demographic_parity"))
        return part

    @cached_property
    def points(self) -> Points:
        """Their features as points."""
        assert self.features is not None
        return Points(self.features)

    @property
    def has_both_labels(self) -> bool:
        """Whether there are labels of both classes."""
        positive, labels = self.people.positive, self.people.labels
        if positive is None or labels is None or not labels.known.all():
            return False
        return bool(0 < positive.sum() < len(positive))

    @cached_property
    def marginal(self) -> Coupling:
        """The matching with the least transport cost."""
        return self._match(0.0)

    @cached_property
    def joint(self) -> Coupling:
        """The matching with the least transport cost, with a large cost for different labels."""
        return self._match(_JOINT_LABEL_WEIGHT)

    def _match(self, label_weight: float) -> Coupling:
        matcher = OptimalTransportMatcher(label_weight=label_weight, tolerance=self.tolerance)
        return self.oriented(matcher.match_people(self.people, self.points))

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
        for own in self.sides:
            rows, weights = self.features[own], self.weights.take(own).values
            means.append(np.average(rows, axis=0, weights=weights))
            variances.append(np.average((rows - means[-1]) ** 2, axis=0, weights=weights))
        costs: FloatArray = variances[0] + variances[1] + (means[0] - means[1]) ** 2
        return costs


@dataclass(frozen=True, eq=False)
class Sample:
    """People drawn from each group."""

    rows: IndexArray
    people: People
    features: FloatArray | None
    _pairs: dict[tuple[int, int], SamplePair] = field(default_factory=dict)

    def pair(self, codes: tuple[int, int]) -> SamplePair:
        """Return the people of two groups. Their matchings are found once for all models."""
        if codes not in self._pairs:
            at, people = only_two(self.people, codes)
            features = None if self.features is None else self.features[at]
            tolerance = EXACT if self.people.groups.n_groups == 2 else _MANY_TOLERANCE
            self._pairs[codes] = SamplePair(at, people, features, tolerance)
        return self._pairs[codes]


def only_two(people: People, codes: tuple[int, int]) -> tuple[IndexArray, People]:
    """Return the rows of two groups, and their people in groups called 0 and 1."""
    rows = np.flatnonzero(np.isin(people.groups.codes, codes))
    two = Groups((people.groups.codes[rows] == codes[1]).astype(np.int8), (0, 1))
    return rows, replace(people.take(rows), groups=two)


def draw_rows(
    groups: Groups, weights: Weights, n_sample: int, generator: np.random.Generator
) -> tuple[IndexArray, Weights]:
    """Draw people from each group without replacement. A smaller group is taken whole."""
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


def first_rows(rows: IndexArray, weights: Weights) -> IndexArray:
    """Return the first of each person's rows, in the order in which the rows are given."""
    if weights.persons is None:
        return rows
    first: IndexArray = rows[np.sort(np.unique(weights.persons[rows], return_index=True)[1])]
    return first


# A text column with so many levels identifies people. It is not a property that people share.
_MOST_LEVELS, _FEW_LEVELS = 1000, 30
# Above this share of exact copies, a note asks whether people have several rows.
_FEW_COPIES = 0.01


# Counts of up to this many people are written as rows of their own to measure relevance.
_MOST_WRITTEN = 1_000_000


@dataclass(frozen=True, eq=False)
class Roster:
    """The people to audit, read once for all models."""

    people: People
    X: Any
    sensitive_features: Any
    pos_label: Any
    positions: IndexArray  # of these people among the rows that were given
    n_given: int
    leaks: tuple[Leak, ...]
    strata: Codes | None
    similarity: Similarity
    remarks: tuple[str, ...]  # on the people
    reading: tuple[str, ...]  # remarks on how the table is read
    order: IndexArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    copies: float = 0.0
    _samples: dict[int, Sample] = field(default_factory=dict)

    @property
    def weights(self) -> Weights:
        """Weight of every row."""
        return self.people.weight

    @property
    def columns(self) -> list[Column]:
        """The columns that describe the people."""
        return [] if self.people.table is None else self.people.table.columns

    def ordered(self, scores: Sequence[FloatArray]) -> Roster:
        """Return the same people with an order that does not depend on the order of the rows."""
        labels = [] if self.people.labels is None else [self.people.labels.values]
        known = [self.people.groups.codes, *labels]
        if not self.columns and self.similarity.embedding is not None:
            known += [*self.similarity.embedding.T]
        order = content_order(self.columns, known, scores, self.weights.values)
        copies = 0.0
        if self.columns and self.people.ids is None and not self.weights.is_counts:
            described = [np.where(own.missing, np.nan, own.values) for own in self.columns]
            different = np.unique(_hashed([*described, *known, *scores]))
            copies = 1.0 - len(different) / len(order)
        return replace(self, order=order, copies=copies)

    def draw(self, n_people: int, generator: np.random.Generator) -> tuple[IndexArray, Weights]:
        """Draw people of each group, as `draw_rows` does, by their order; one row of a person."""
        order = first_rows(self.order, self.weights)
        groups, weights = self.people.groups.take(order), self.weights.take(order)
        rows, drawn = draw_rows(groups, replace(weights, persons=None), n_people, generator)
        return order[rows], drawn

    def sample(self, n_sample: int, generator: np.random.Generator) -> Sample:
        """Draw the sample once for all models. The nearest matching is then also found once."""
        if n_sample not in self._samples:
            rows, weights = self.draw(n_sample, generator)
            people = replace(self.people, table=None, ids=None).take(rows)
            self._samples[n_sample] = Sample(
                rows=rows,
                people=replace(people, weight=weights),
                features=self.alike(rows) if self.is_described else None,
            )
        return self._samples[n_sample]

    @property
    def is_described(self) -> bool:
        """Whether there are columns or an embedding to measure how similar people are."""
        return bool(self.columns) or self.similarity.embedding is not None

    @cached_property
    def encoder(self) -> TableEncoder:
        """The encoder of the features, fitted on all rows."""
        return TableEncoder(missing="encode").fit(self.people.table)

    def encode(self, rows: IndexArray) -> FloatArray:
        """Encode only some rows, because not all rows of a large table may be needed."""
        assert self.people.table is not None
        encoded: FloatArray = self.encoder.transform(self.people.table.take(rows))
        return encoded

    def alike(self, rows: IndexArray) -> FloatArray:
        """Return features of some rows whose squared distance says how different people are."""
        if self.similarity.embedding is not None:
            return self.similarity.embedding[rows].astype(np.float64)
        encoded = self.encode(rows)
        if self.similarity.weights is None:
            return encoded
        return encoded * self.similarity.scales(self.feature_groups, encoded.shape[1])

    @property
    def feature_groups(self) -> dict[str, slice]:
        """Column of the table to its encoded columns."""
        if self.similarity.embedding is not None:
            return {"embedding": slice(0, self.similarity.embedding.shape[1])}
        return self.encoder.feature_groups_

    def notes(self) -> tuple[str, ...]:
        """Return what a reader should know about how the rows count."""
        weights, notes = self.weights, [*self.remarks, *self.reading]
        if self.people.groups.apart:
            notes += self._written_unknown()
        notes += odd_groups(self.people.groups)
        if len(self.people.groups.compared) > MANY_GROUPS:
            notes.append(
                f"There are more than {MANY_GROUPS} groups, so each group is compared with the "
                "reference group only, and subsets are not searched."
            )
        if weights.persons is not None:
            notes.append(
                f"{weights.n_rows:,} rows belong to {len(np.unique(weights.persons)):,} people. "
                "Numbers of people in tables count rows; intervals and tests count people."
            )
        notes += self._copied()
        if weights.is_survey and not weights.is_even:
            assert weights.values is not None
            if (weights.values == np.rint(weights.values)).all() and weights.values.max() > 1.0:
                notes.append(
                    "The weights are whole numbers, and were read as survey weights. If each "
                    "is a number of people, pass weight_kind='counts' (--weight-kind counts)."
                )
            notes.append(
                f"The rows are weighted. {weights.n_rows:,} rows are worth {weights.size:,.0f} "
                "people of equal weight, and the intervals are based on that number."
            )
        return tuple(notes)

    @property
    def table_notes(self) -> tuple[str, ...]:
        """What a reader should know about the table, and not about how many people there are."""
        return (*self.reading, *self._copied())

    def _copied(self) -> Iterable[str]:
        """Yield a note on rows that are copies of others, if there are many."""
        if self.copies > _FEW_COPIES:
            yield (
                f"{self.copies:.0%} of the rows are exact copies of other rows, in every column "
                "and in the score. If they are the same people, pass their identifiers "
                "(ids=, --id): otherwise the intervals are too narrow."
            )

    def _written_unknown(self) -> Iterable[str]:
        """Yield a note for each attribute in which the word "unknown" is written."""
        for name, values in attribute_columns(self.sensitive_features, "sensitive_features"):
            column = read_column(values, "sensitive_features")
            written = np.array([is_word(value, UNKNOWN) for value in column.tolist()])
            if n_people := self.weights.take(written).people:
                what = "the group" if name is None else repr(name)
                yield (
                    f"For {n_people:,} people {what} is written {UNKNOWN!r}. They are treated "
                    "like people for whom it is missing, and are compared with nobody."
                )


def read_row_count(sensitive_features: Any) -> int:
    """Return how many rows were given."""
    if isinstance(sensitive_features, GroupProbabilities):
        return len(sensitive_features)
    return len(attribute_columns(sensitive_features, "sensitive_features")[0][1])


def read_roster(
    settings: AuditSettings,
    sensitive_features: Any,
    *,
    X: Any,
    y_true: ArrayLike | None,
    weights: Weights,
    ids: ArrayLike | None,
    pos_label: Any,
    keep: Collection[str],
    sensitive_column: Any,
    given: Any = None,
    similarity: Any = AUTO,
    categorical: Collection[str] = (),
    scored: BoolArray | None = None,
    unscored: str = "have no score",
) -> Roster:
    """Read the people to audit. Rows of weight 0 or without a score are left out."""
    n_given, told, strata = weights.n_rows, list[str](), None
    if given is not None:
        named = None if X is None else Table(X, categorical)
        strata = read_given(given, n_rows=n_given, table=named)
    is_there = np.ones(n_given, dtype=bool) if scored is None else scored
    check_length(is_there, n_given, "y_score")
    if not is_there.all():
        is_estimated = isinstance(sensitive_features, GroupProbabilities)
        known = None if is_estimated else read_groups(sensitive_features, unknown=UNKNOWN)
        left_out = f"{unscored} and were left out of everything"
        told.append(f"{_counted(left_out, ~is_there, known, weights)}.")
    if weights.values is not None and not (weights.values > 0.0).all():
        told.append("Rows of weight 0 were left out.")
        is_there = is_there & (weights.values > 0.0)
    positions = np.flatnonzero(is_there)
    if not is_there.all():
        weights = weights.take(positions)
        sensitive_features = _take(sensitive_features, positions, n_given, "sensitive_features")
        strata = None if strata is None else strata.take(positions)
        if is_embedding(similarity):
            similarity = _take(similarity, positions, n_given, "similarity")
        X, y_true, ids = (
            None if given is None else _take(given, positions, n_given, name)
            for name, given in {"X": X, "y_true": y_true, "ids": ids}.items()
        )
    groups = read_groups(sensitive_features, unknown=UNKNOWN, estimated=True)
    check_known(groups)
    n_rows = len(groups)
    table = None if X is None else Table(_without(X, sensitive_column), categorical)
    if table is not None and len(table) != n_rows:
        raise InputError(
            f"X has {len(table)} rows where sensitive_features has {n_rows}. Pass both for the "
            "same people.",
            parameter="X",
        )
    leaks: tuple[Leak, ...] = ()
    if table is not None and groups.memberships is None:
        leaks = _read_leaks(table, groups, keep)
    names = None if ids is None else read_column(ids, "ids")
    if names is not None:
        check_length(names, n_rows, "ids")
        persons = np.unique([str(name) for name in names.tolist()], return_inverse=True)[1]
        if persons.max() + 1 < n_rows and not weights.is_counts:
            ones = np.ones(n_rows) if weights.values is None else weights.values
            weights = Weights(n_rows, ones, persons=persons)
    labels = None
    if y_true is not None:
        labels = _read_labels(y_true, weights, settings, pos_label)
        if not labels.known.all():
            without = _counted("have no label", ~labels.known, groups, weights)
            told.append(
                f"{without}. They count in selection rates and in gaps of scores, and are left "
                "out of error rates, calibration and the matching within labels."
            )
    people = People(
        groups,
        table,
        labels,
        weights,
        ids=None if names is None else tuple(map(str, names.tolist())),
    )
    alike, why = _read_alike(similarity, people, weights, settings)
    return Roster(
        people,
        X,
        sensitive_features,
        pos_label,
        positions,
        n_given,
        leaks,
        strata,
        alike,
        tuple(told),
        (*code_notes(table, "pass categorical=[{!r}]"), *(() if why is None else (why,))),
    )


# An audit is refused if a larger share of the scores, or of the labels, is missing.
_MOST_MISSING = 0.2


def refuse_missing(missing: BoolArray, what: str, parameter: str, weights: Weights) -> None:
    """Raise if too many scores or labels are missing for the others to stand for everybody."""
    n_missing, rows = weights.take(missing).people, "people" if weights.is_counts else "rows"
    if n_missing > _MOST_MISSING * weights.people:
        raise InputError(
            f"{parameter} has {n_missing:,} missing {what} in {weights.people:,} {rows}, more "
            f"than {_MOST_MISSING:.0%}. Find out why, or leave these rows out yourself.",
            parameter=parameter,
        )


def _read_labels(y_true: Any, weights: Weights, settings: AuditSettings, pos_label: Any) -> Labels:
    """Return the labels, with NaN where one is missing."""
    column, n_rows = read_column(y_true, "y_true"), weights.n_rows
    check_length(column, n_rows, "y_true")
    missing = is_missing(column)
    refuse_missing(missing, "labels", "y_true", weights)
    values, known = np.full(n_rows, np.nan), column[~missing]
    if not settings.scores.decides:
        numbers = NUMBER.read(np.array(known.tolist(), dtype=float) if missing.any() else known)
        values[~missing] = numbers
        return Labels(values)
    positive = read_labels(known, n_rows=len(known), pos_label=pos_label)
    values[~missing] = positive
    negative = None if positive.all() else plain_value(known[~positive][0])
    return Labels(values, (negative, plain_value(pos_label)))


def label_texts(negative: Any, positive: Any) -> dict[str, str]:
    """Return the two labels as settings of an audit if they are words; 0 and 1 say nothing."""
    words = [own for own in (negative, positive) if isinstance(own, str)]
    if len(words) < 2 or not all(any(map(str.isalpha, own)) for own in words):
        return {}
    return dict(zip(("neg_label", "pos_label"), words, strict=True))


def _counted(what: str, rows: BoolArray, groups: Groups | None, weights: Weights) -> str:
    """Return how many people have or lack something, in all and in each group."""
    ones = weights.values[rows] if weights.is_counts and weights.values is not None else None
    n_rows = rows.sum() if ones is None else ones.sum()
    said = f"{n_rows:,.0f} {'rows' if ones is None else 'people'} {what}"
    if groups is None:
        return said
    counts = np.bincount(groups.codes[rows], ones, minlength=groups.n_groups).tolist()
    each = [f"{label}: {n:,.0f}" for label, n in zip(groups.labels, counts, strict=True) if n]
    return f"{said} ({', '.join(each[:10])}{', …' if len(each) > 10 else ''})"


def _read_alike(
    similarity: Any, people: People, weights: Weights, settings: AuditSettings
) -> tuple[Similarity, str | None]:
    """Return what makes people alike, and why labels play no part in it if they do not."""
    chosen = isinstance(similarity, str)
    if people.table is None:
        if similarity is None or (chosen and similarity == AUTO):
            return Similarity(), None
        if is_embedding(similarity):
            return Similarity("embedding", embedding=read_embedding(similarity, len(people))), None
        raise InputError(
            "similarity names columns or asks for their relevance, but X was not given. Pass X, "
            "or an array with one row per person.",
            parameter="similarity",
        )
    if chosen and similarity == AUTO and people.labels is None:
        return Similarity(), None
    if not chosen or similarity not in (AUTO, RELEVANCE) or people.labels is None:
        return read_similarity(similarity, people.table, people.labels), None
    # Relevance depends neither on the order of the rows, nor on whether a row that stands for
    # several people is written once or several times.
    known = [people.groups.codes], [people.labels.values]
    rows = content_order(people.table.columns, *known, weights.values)
    rows, mass = first_rows(rows[people.labels.known[rows]], weights), weights.values
    if mass is not None and weights.is_counts and weights.total <= _MOST_WRITTEN:
        rows, mass = np.repeat(rows, mass[rows].astype(np.intp)), None
    drawn = people.table.take(rows), people.labels.take(rows), None if mass is None else mass[rows]
    if similarity == AUTO:
        return default_similarity(*drawn, settings.random_state)
    return read_similarity(similarity, *drawn, settings.random_state), None


def _read_leaks(table: Table, groups: Groups, keep: Collection[str]) -> tuple[Leak, ...]:
    """Return the columns that reveal the group.

    Raise if a column does so in every row or identifies people, and is not kept. The error names
    all of these columns at once.
    """
    refused: list[InputError] = [
        _no_feature(column, len(groups))
        for column in table.columns
        if column.levels is not None
        and column.name not in keep
        and len(column.levels) > min(_MOST_LEVELS, max(_FEW_LEVELS, len(groups) / 2))
    ]
    leaks = find_leaks(table, groups) if table.columns else []
    exact = [leak for leak in leaks if leak.is_exact and leak.column not in keep]
    if exact:
        told = "; ".join(leak.words for leak in exact)
        names = list(dict.fromkeys(leak.column for leak in exact))
        error = ColumnError(
            f"X reveals the group: {told}. Then nobody has a near person in the other group. "
            "Leave it out of X (on the command line: --drop), or keep it, for example because a "
            f"model reads it from X: keep={names}.",
            parameter="keep",
        )
        refused.append(error)
    if refused:
        joined = ColumnError("\n".join(map(str, refused)), parameter="keep")
        raise refused[0] if len(refused) == 1 else joined
    return tuple(
        leak if leak.group is None else replace(leak, group=str(leak.group)) for leak in leaks
    )


def _no_feature(column: Column, n_rows: int) -> InputError:
    """Return the error about a text column in which most values differ: numbers, or names."""
    levels = np.asarray(column.levels, dtype=object)
    found = suspect(ColumnFacts(column.name, "text", levels, 0))
    if found is not None and found.asks:
        words = found.words.partition(";")[0]
        return InputError(
            f"Column {column.name!r} {words}. Turn it into numbers, or leave it out of X.",
            parameter="X",
        )
    return InputError(
        f"Column {column.name!r} has {len(levels)} different values in {n_rows} rows: it looks "
        "like a name or a number that identifies people. Leave it out of X, and pass it as ids if "
        "the audit should show it.",
        parameter="ids",
    )


def _without(X: Any, column: Any) -> Any:
    """Return X without the sensitive column, if X holds it."""
    try:
        return X if column is None else split_columns(X, as_list(column))[0]
    except ColumnError:  # X may lack the column if the model needs no group to predict
        return X


def _take(given: Any, rows: IndexArray, n_rows: int, name: str) -> Any:
    """Return some rows of what was given. Raise unless it has the expected number of rows."""
    check_length(given, n_rows, name)
    if isinstance(given, GroupProbabilities | Bands):
        return given[rows]
    if not nw.dependencies.is_into_dataframe(given):
        return np.asarray(given)[rows]
    return nw.from_native(given, eager_only=True)[rows].to_native()


@dataclass(frozen=True, eq=False)
class ClassScores:
    """Scores of more than two classes, and what an audit of decisions sees of them."""

    scores: FloatArray
    outcome: Outcome
    codes: FloatArray | None  # of the true classes

    def take(self, rows: IndexArray) -> ClassScores:
        """Return the scores of some rows."""
        codes = None if self.codes is None else self.codes[rows]
        return replace(self, scores=self.scores[rows], codes=codes)

    @cached_property
    def decided(self) -> IndexArray:
        """The class that everybody gets."""
        return largest_class(self.scores)

    def favours(self, codes: NDArray[Any]) -> FloatArray:
        """Return 1 for every class that is favourable, and 0 for the others."""
        return np.isin(codes, self.outcome.favourable).astype(np.float64)

    @property
    def words(self) -> str:
        """What happens to people with a favourable class."""
        names = [str(self.outcome.classes[own]) for own in self.outcome.favourable]
        return f"given the class {' or '.join(names)}"


@dataclass(frozen=True, eq=False)
class Audited:
    """People with the scores of one model, and what may be stated about them."""

    roster: Roster
    name: str  # of the model
    people: People  # those of the roster, or some of them, or in other groups
    scores: FloatArray
    settings: AuditSettings
    measured: Settings
    classes: ClassScores | None = None  # their probabilities, where there are several classes
    whole: int | None = None  # the reference group of all people, where these are some of them

    def of(self, groups: Groups) -> Audited:
        """Return the same people in other groups, such as those of one attribute."""
        settings = self.settings
        if settings.reference is not None:  # the part of the combination that is this attribute's
            row = int(self.groups.rows(self.reference)[0])
            settings = replace(settings, reference=str(groups.labels[groups.codes[row]]))
        return replace(self, people=replace(self.people, groups=groups), settings=settings)

    def among_rows(self, rows: BoolArray, scores: FloatArray | None = None) -> Audited:
        """Return some of the people, with their scores or with others."""
        people = self.people.take(np.flatnonzero(rows))
        values = (self.scores if scores is None else scores)[rows]
        return replace(self, people=people, scores=values, whole=self.reference)

    @cached_property
    def scored(self) -> ScoredPeople:
        """The people with their scores, as measures take them."""
        return ScoredPeople(self.people, self.scores, self.measured)

    @property
    def groups(self) -> Groups:
        """Their groups."""
        return self.people.groups

    @property
    def weights(self) -> Weights:
        """Their weights."""
        return self.scored.weights

    @property
    def width(self) -> float:
        """Length of the range of the scores, which is 1 for probabilities."""
        return self.measured.width

    @cached_property
    def shares(self) -> FloatArray:
        """The scores as shares of their range, which are the probabilities themselves."""
        return self.measured.shares(self.scores)

    @cached_property
    def is_constant(self) -> bool:
        """Whether all predictions of a number are equal, so that they show no scale."""
        return not self.decides and float(np.ptp(self.scores)) == 0.0

    @property
    def decides(self) -> bool:
        """Whether scores are probabilities or decisions, which select people."""
        return self.settings.scores.decides

    @cached_property
    def selected(self) -> BoolArray:
        """Whether each person has the favourable outcome."""
        above = np.asarray(self.scores >= self.settings.threshold)
        return above if self.settings.favourable == "high" else ~above

    def has(self, label: bool) -> BoolArray:
        """Return who has the favourable label (True), or the other one (False)."""
        assert self.scored.deserving is not None
        assert self.people.labels is not None
        return np.asarray((self.scored.deserving == label) & self.people.labels.known)

    @property
    def label_texts(self) -> dict[str, str]:
        """The negative and the positive label where they are words."""
        labels = self.people.labels
        return {} if labels is None or not labels.classes else label_texts(*labels.classes[:2])

    def among(self, label: bool) -> str:
        """Return words for people with the favourable label (True) or with the other (False)."""
        is_positive = label == (self.settings.favourable == "high")
        if texts := self.label_texts:
            return f" with the label {texts['pos_label' if is_positive else 'neg_label']!r}"
        return f" with a {'positive' if is_positive else 'negative'} label"

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the groups."""
        return tuple(map(str, self.groups.labels))

    @cached_property
    def _group_weights(self) -> tuple[Weights, ...]:
        codes = range(self.groups.n_groups)
        return tuple(self.weights.take(self.groups.is_group(code)) for code in codes)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of people in each group."""
        return tuple(own.people for own in self._group_weights)

    @cached_property
    def n_different(self) -> tuple[int, ...]:
        """Number of people in each group, where those with several rows count once."""
        return tuple(
            own.people if own.persons is None else len(np.unique(own.persons))
            for own in self._group_weights
        )

    @cached_property
    def totals(self) -> tuple[float, ...]:
        """Sum of the weights of each group."""
        return tuple(own.total for own in self._group_weights)

    def refuse(self, code: int, size: float, among: str = "") -> str | None:
        """Return why a group is too small for a statement, or None if it is large enough."""
        least = self.settings.min_group_size
        if size >= least:
            return None
        one, many = ("person", "people") if self.weights.is_counts else ("row", "rows")
        people = f"has {size:.0f} {one if f'{size:.0f}' == '1' else many}{among}"
        if self.weights.is_survey:
            what = "rows" if self.weights.is_even else "weights"
            people = f"has {what} worth {size:.1f} people{among}"
        return f"Group {self.labels[code]!r} {people}, fewer than the {least} a statement needs."

    @cached_property
    def compared(self) -> tuple[int, ...]:
        """Codes of the groups that are known and large enough to be compared."""
        least, sizes = self.settings.min_group_size, [own.size for own in self._group_weights]
        return tuple(code for code in self.groups.compared if sizes[code] >= least)

    @cached_property
    def place(self) -> NDArray[np.int64]:
        """Position of every row's group among those compared, or -1 if it is not compared."""
        places = np.full(self.groups.n_groups, -1, dtype=np.int64)
        places[list(self.compared)] = np.arange(len(self.compared))
        placed: NDArray[np.int64] = places[self.groups.codes]
        return placed

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs of groups that are compared."""
        if len(self.compared) > MANY_GROUPS:
            return tuple(
                (min(code, self.reference), max(code, self.reference))
                for code in self.compared
                if code != self.reference
            )
        return tuple(combinations(self.compared, 2))

    @cached_property
    def refused(self) -> str | None:
        """The reason why nothing that needs two groups is stated, or None."""
        if self.pairs:
            return None
        sizes = ((code, self._group_weights[code].size) for code in self.groups.compared)
        reasons = (self.refuse(code, size) for code, size in sizes)
        return next(filter(None, reasons), "Only one group is known, but a gap needs two.")

    @cached_property
    def reference(self) -> int:
        """Code of the named group or the largest, with which every other group is compared."""
        if self.whole is not None:
            return self.whole
        if self.settings.reference is None:
            return max(self.groups.references, key=lambda code: self.totals[code])
        return self.labels.index(self.settings.reference)

    def check_reference(self) -> None:
        """Raise unless the named reference group is there and large enough."""
        name = self.settings.reference
        known = [self.labels[code] for code in self.groups.compared]
        if name is None:
            return
        if name not in known:
            raise GroupError(
                f"reference={name!r} is not one of the groups: "
                f"{', '.join(map(repr, known[:20]))}. Name one of them.",
                parameter="reference",
            )
        if self.reference not in self.compared:
            reason = self.refuse(self.reference, self._group_weights[self.reference].size)
            raise GroupError(f"reference: {reason} Name another group.", parameter="reference")

    @cached_property
    def bases(self) -> tuple[int, ...]:
        """Codes of the groups by whose rates those of others may be divided.

        It is the named reference group, or every group that holds at least 2% of the people and is
        large enough for a statement.
        """
        if self.settings.reference is not None:
            return (self.reference,) if self.reference in self.compared else ()
        least = SMALL_SHARE * sum(self.totals[code] for code in self.groups.compared)
        large = tuple(code for code in self.groups.references if self.totals[code] >= least)
        return tuple(code for code in large if code in self.compared) or large

    @cached_property
    def base(self) -> int | None:
        """Code of the group by whose selection rate others are divided: the highest of `bases`."""
        if not self.decides or not self.bases:
            return None
        counts = {code: self.scored.counts(code) for code in self.bases}
        return max(self.bases, key=lambda code: counts[code][0] / counts[code][1])

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
        return self.settings.generator(part, *(codes if self.groups.n_groups > 2 else ()))

    def rate(self, hits: BoolArray, weights: Weights, code: int, among: str = "") -> Estimate:
        """Return the share of hits with its interval, or the reason why it is not stated."""
        if reason := self.refuse(code, weights.size, among):
            return Estimate(None, refused=reason)
        return Estimate.of_rate(weights.rate(hits), self.settings.confidence)


def column_bytes(column: Column) -> bytes:
    """Return the name, the kind and the values of a column as bytes."""
    kind = "numeric" if column.levels is None else "categorical"
    head = f"{column.name}\0{kind}\0".encode()
    if column.levels is None:
        values = np.where(column.missing, 0.0, column.values.astype(np.float64))
        return head + column.missing.tobytes() + values.tobytes()
    # Levels are sorted by their text, because their order depends on the table library.
    levels, codes = np.unique([str(level) for level in column.levels], return_inverse=True)
    text = np.append(codes, -1).astype(np.int32)[column.values]
    return head + "\0".join(levels.tolist()).encode() + text.tobytes()
