"""The audit of more than two classes: what every group gets, class by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairmatch.auditing.facts import ClassCell, ClassFacts, ClassGroup, Estimate, Gap, ImpactTable
from fairmatch.auditing.gaps import gap_of, group_pairs, largest_gap
from fairmatch.auditing.impact import impact_tables
from fairmatch.auditing.people import Audited, ClassScores
from fairmatch.exceptions import InputError, LabelError
from fairmatch.measures.distributions import Settings
from fairmatch.measures.gaps import class_rate_gaps
from fairmatch.measures.registry import MEASURES, Measure, audited
from fairmatch.people.checks import BoolArray
from fairmatch.people.outcome import class_codes, is_vectors, largest_class, read_class_scores
from fairmatch.people.people import Labels


def read_models(
    y_scores: Mapping[str, Any],
    classes: Sequence[Any] | None,
    favourable: str | Sequence[Any],
    y_true: Any,
    pos_label: Any,
) -> tuple[dict[str, Any], dict[str, ClassScores], Any]:
    """Return scores in one column, those of several classes, and the positive label.

    With two classes, the column of the favourable class or of the positive label is kept.
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
                f"y_score has {len(known)} classes, but it is not known which of them are good "
                "for a person. Name them, such as favourable=['Low', 'Medium'].",
                parameter="favourable",
            )
        codes = None
        if y_true is not None:
            codes = class_codes(y_true, known, n_rows=len(scores), name="y_true")
        several[name] = ClassScores(scores, outcome, codes)
    if len({own.outcome.classes for own in several.values()}) + bool(several and plain) > 1:
        raise InputError(
            "The models have different classes, but only models of the same classes can be "
            "compared. Pass scores with the same columns.",
            parameter="y_scores",
        )
    return plain, several, pos_label


def class_facts(data: Audited) -> ClassFacts | None:
    """Return the facts about all classes; None if there are only two."""
    if data.classes is None:
        return None
    outcome, codes = data.classes.outcome, data.classes.codes
    labels = None if codes is None else Labels(codes, outcome.classes)
    people, measured = replace(data.people, labels=labels), Settings(outcome=outcome)
    vectors = replace(data, people=people, scores=data.classes.scores, measured=measured)
    names = tuple(map(str, outcome.classes))
    cells = [MEASURES["demographic_parity_gap"]]
    if labels is not None:
        cells.append(MEASURES["true_positive_gap"])
    groups = tuple(_group(vectors, code) for code in range(data.groups.n_groups))
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
            _gap(vectors, own)
            for own in audited(outcome).values()
            if own.several and (labels is not None or not own.needs_labels)
        ),
        tuple(cell for gap in cells for cell in _cells(gap, vectors) if is_stated(cell)),
        {name: _impact(data, data.classes.decided == at) for at, name in enumerate(names)},
    )


def _group(data: Audited, code: int) -> ClassGroup:
    """Return what one group gets."""
    names, rows = tuple(map(str, data.measured.outcome.classes)), data.groups.rows(code)
    weights, decided = data.weights.take(rows), largest_class(data.scores[rows])

    def shares(inside: BoolArray, among: str = "") -> dict[str, Estimate]:
        own = weights.take(inside)
        rates = [data.rate(decided[inside] == at, own, code, among) for at in range(len(names))]
        return dict(zip(names, rates, strict=True))

    everybody = np.ones(len(rows), dtype=bool)
    found = ClassGroup(data.labels[code], weights.people, shares(everybody), None, {})
    if data.people.labels is None:
        return found
    truth = data.people.labels.values[rows]
    return replace(
        found,
        accuracy=data.rate(decided == truth, weights, code),
        confusion={
            name: shares(truth == at, f" with the label {name!r}") for at, name in enumerate(names)
        },
        n_true={name: weights.take(truth == at).people for at, name in enumerate(names)},
    )


def _gap(data: Audited, measure: Measure) -> Gap:
    """Return the largest gap over pairs of groups, with limits that hold for all of them."""
    reason = data.refused
    if reason is None:
        try:
            return largest_gap([gap_of(data, measure, pair) for pair in group_pairs(data)])
        except LabelError as error:
            reason = str(error)
    return Gap.unstated(measure.name, measure.symbol, reason)


def _cells(measure: Measure, data: Audited) -> list[ClassCell]:
    """Return the table per class and pair; empty where a group has no rows of a class."""
    try:
        found = class_rate_gaps(measure, data.scored, data.settings.confidence)
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


def _impact(data: Audited, decided: BoolArray) -> tuple[ImpactTable, ...]:
    """Return the tables of one class against the rest."""
    people = replace(data.people, labels=None)
    return impact_tables(replace(data, people=people, scores=decided.astype(np.float64)))
