"""The audit of more than two classes: what every group gets, class by class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fairmatch.auditing.facts import Audit, ClassCell, ClassFacts, ClassGroup, Gap
from fairmatch.auditing.gaps import largest_gap
from fairmatch.auditing.impact import impact_tables
from fairmatch.auditing.people import Audited, Roster
from fairmatch.exceptions import InputError, LabelError
from fairmatch.measures.distributions import GroupScores, ScoredPeople, Settings
from fairmatch.measures.gaps import class_rate_gaps
from fairmatch.measures.intervals import GroupPair
from fairmatch.measures.registry import MEASURES, Measure, audited
from fairmatch.people.checks import FloatArray
from fairmatch.people.outcome import (
    Outcome,
    class_codes,
    is_vectors,
    largest_class,
    read_class_scores,
)
from fairmatch.people.people import Labels
from fairmatch.people.weights import Weights


@dataclass(frozen=True, eq=False)
class ClassScores:
    """Scores of more than two classes, and what a binary audit sees of them."""

    scores: FloatArray
    outcome: Outcome
    codes: FloatArray | None

    @property
    def decisions(self) -> FloatArray:
        """1 for everybody who gets a favourable class, and 0 for the others."""
        chosen = np.isin(largest_class(self.scores), self.outcome.favourable)
        return chosen.astype(np.float64)

    @property
    def positive(self) -> FloatArray | None:
        """1 for everybody whose true class is favourable; None without labels."""
        if self.codes is None:
            return None
        return np.isin(self.codes, self.outcome.favourable).astype(np.float64)

    @property
    def words(self) -> str:
        """What happens to people with a favourable class."""
        return "given " + " or ".join(
            str(self.outcome.classes[own]) for own in self.outcome.favourable
        )


def read_models(
    y_scores: Mapping[str, Any],
    classes: Sequence[Any] | None,
    favourable: str | Sequence[Any],
    y_true: Any,
    pos_label: Any,
) -> tuple[dict[str, Any], dict[str, ClassScores], Any]:
    """Return scores in one column, those of several classes, and the positive label.

    Of two classes, the column of the favourable class is kept, or that of the positive label.
    """
    good = None if isinstance(favourable, str) else favourable
    plain: dict[str, Any] = {}
    several: dict[str, ClassScores] = {}
    for name, own in y_scores.items():
        if classes is None and good is None and not is_vectors(own):
            plain[name] = own
            continue
        scores, outcome = read_class_scores(own, classes, y_true, good)
        known = list(outcome.classes)
        if len(known) == 2:
            at = known.index(pos_label) if pos_label in known else 1
            at = outcome.favourable[0] if outcome.favourable else at
            plain[name], pos_label = scores[:, at], known[at]
            continue
        if good is None:
            raise InputError(
                f"y_score has {len(known)} classes, and it is not known which of them are good for "
                "a person. Name them, such as favourable=['Low', 'Medium'].",
                parameter="favourable",
            )
        codes = None
        if y_true is not None:
            codes = class_codes(y_true, known, n_rows=len(scores), name="y_true")
        several[name] = ClassScores(scores, outcome, codes)
    if len({own.outcome.classes for own in several.values()}) + bool(several and plain) > 1:
        raise InputError(
            "The models have different classes, and only models of the same classes can be "
            "compared. Pass scores with the same columns.",
            parameter="y_scores",
        )
    return plain, several, pos_label


def class_moves(
    data: Audited, roster: Roster, first: ClassScores, second: ClassScores
) -> dict[str, dict[str, dict[str, int]]]:
    """Return for each group how many people each two classes of two models have."""
    kept = slice(None) if roster.positions is None else roster.positions
    before, after = (largest_class(own.scores[kept]) for own in (first, second))
    names = [str(name) for name in first.outcome.classes]
    found = {}
    for code, label in enumerate(data.labels):
        rows = data.groups.is_group(code)
        weights = data.weights.take(rows)
        ones = weights.values if weights.is_counts else None
        pairs = len(names) * before[rows] + after[rows]
        counts = np.bincount(pairs, ones, minlength=len(names) ** 2).astype(int)
        table = counts.reshape(len(names), -1).tolist()
        found[label] = {
            name: dict(zip(names, own, strict=True)) for name, own in zip(names, table, strict=True)
        }
    return found


def ordered_by_classes(roster: Roster, given: Iterable[ClassScores]) -> Roster:
    """Return people whose order and copies are those of all probabilities, not of decisions."""
    kept = slice(None) if roster.positions is None else roster.positions
    return roster.ordered([column for own in given for column in own.scores[kept].T])


def with_classes(found: Audit, data: Audited, roster: Roster, given: ClassScores) -> Audit:
    """Return an audit with the facts about all classes, and the people's probabilities."""
    people = found.individuals
    if people is not None:
        columns = given.scores[list(people.rows)].T.tolist()
        names = map(str, given.outcome.classes)
        people = replace(people, chances=dict(zip(names, map(tuple, columns), strict=True)))
    return replace(found, classes=class_facts(data, roster, given), individuals=people)


def class_facts(data: Audited, roster: Roster, given: ClassScores) -> ClassFacts:
    """Return the facts about all classes; ``data`` has the decisions on favourable classes."""
    kept = slice(None) if roster.positions is None else roster.positions
    outcome, vectors = given.outcome, given.scores[kept]
    labels = None if given.codes is None else Labels(given.codes[kept], outcome.classes)
    people = replace(roster.people, labels=labels)
    scored = ScoredPeople(people, vectors, Settings(outcome=outcome))
    names = tuple(map(str, outcome.classes))
    cells = [MEASURES["demographic_parity_gap"]]
    if labels is not None:
        cells.append(MEASURES["true_positive_gap"])
    groups = tuple(_group(data, scored, code) for code in range(people.groups.n_groups))
    shares = {group.label: {None: group.shares, **group.confusion} for group in groups}

    def is_stated(cell: ClassCell) -> bool:
        rates = [shares[name][cell.given][cell.decided] for name in cell.groups]
        return all(rate.value is not None for rate in rates)

    return ClassFacts(
        names,
        outcome.ordered,
        tuple(names[own] for own in outcome.favourable),
        groups,
        tuple(
            _gap(data, scored, name)
            for name, own in audited(outcome).items()
            if own.several and (labels is not None or not own.needs_labels)
        ),
        tuple(cell for gap in cells for cell in _cells(scored, gap, data) if is_stated(cell)),
        {name: _impact(data, vectors, at) for at, name in enumerate(names)},
    )


def _group(data: Audited, scored: ScoredPeople, code: int) -> ClassGroup:
    """Return what one group gets."""
    classes, groups = scored.settings.outcome.classes, scored.people.groups
    rows = groups.rows(code)
    weights = scored.weights.take(rows)
    decided = largest_class(scored.scores[rows])
    shares = {str(name): data.rate(decided == at, weights, code) for at, name in enumerate(classes)}
    if scored.people.labels is None:
        return ClassGroup(str(groups.labels[code]), weights.people, shares, None, {})
    truth = scored.people.labels.values[rows]
    confusion, n_true = {}, {}
    for label, name in enumerate(classes):
        own = weights.take(truth == label)
        n_true[str(name)] = own.people
        among = f" with the label {str(name)!r}"
        confusion[str(name)] = {
            str(other): data.rate(decided[truth == label] == at, own, code, among)
            for at, other in enumerate(classes)
        }
    right = data.rate(decided == truth, weights, code)
    own_label = str(groups.labels[code])
    return ClassGroup(own_label, weights.people, shares, right, confusion, n_true)


def _gap(data: Audited, scored: ScoredPeople, name: str) -> Gap:
    """Return the largest gap over pairs of groups, with limits that hold for all of them."""
    measure, found = MEASURES[name], []
    if data.refused:
        return Gap.unstated(name, measure.symbol, data.refused)
    for codes in data.pairs:
        stream = partial(data.pair_generator, codes=codes)
        pair = GroupPair(scored, codes, data.settings.n_resamples, stream)
        try:
            value = measure.between(scored, codes)
            limits = measure.interval_of(pair, data.pair_confidence)
        except LabelError as error:
            return Gap.unstated(name, measure.symbol, str(error))
        own = data.labels[codes[0]], data.labels[codes[1]]
        ends = limits.low, limits.high, None, None, limits.method
        found.append(Gap(name, measure.symbol, value, *ends, groups=own))
    return largest_gap(found)


def _cells(scored: ScoredPeople, measure: Measure, data: Audited) -> list[ClassCell]:
    """Return the table per class and pair; empty where a group has no rows of a class."""
    try:
        found = class_rate_gaps(measure, scored, data.settings.confidence)
    except LabelError:
        return []
    return [
        ClassCell(
            (str(own.first), str(own.second)),
            str(own.decided),
            None if own.given is None else str(own.given),
            own.rates,
            own.low,
            own.high,
        )
        for own in found
    ]


def _impact(data: Audited, vectors: FloatArray, at: int) -> Any:
    """Return the tables of one class against the rest."""
    people = replace(data.people, labels=None)
    chosen = GroupScores(vectors, Weights(len(vectors))).against_rest(at, Settings()).values
    return impact_tables(replace(data, scored=ScoredPeople(people, chosen, data.scored.settings)))
