"""The audit of groups that are known only as probabilities: an estimate, bounds, and known rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from fairmatch.auditing.facts import (
    Estimate,
    EstimatedFacts,
    EstimatedGap,
    Gap,
    GroupFacts,
    Matching,
)
from fairmatch.auditing.gaps import (
    describe_groups,
    gap_between,
    largest_gap,
    measures_of,
    selection_ratio,
    whole_numbers,
)
from fairmatch.auditing.people import Audited
from fairmatch.exceptions import GroupError
from fairmatch.measures.estimated import (
    LEAST,
    Difference,
    EstimatedPeople,
    assumed_difference,
    bounded_difference,
    calibrated_difference,
    least_largest_gap,
)
from fairmatch.measures.registry import Measure
from fairmatch.people.checks import FloatArray, check_length, is_missing, read_column
from fairmatch.people.groups import Groups, listed

UNMATCHED = "The groups are probabilities, but only people whose group is known can be matched."

_METHOD = (
    "weighted by the probabilities of the groups; assumes that scores and groups are independent "
    "given these probabilities; normal interval, by person"
)
# With fewer known people of a group, there is no estimate from them.
_FEWEST_KNOWN = 10
_FIFTHS = 5


def estimated_facts(data: Audited, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an audit states where groups are known only as probabilities.

    Every gap has its estimate, and gaps of rates and means have bounds too.
    """
    people, rows = data.people.expanded()
    expanded = replace(data, people=people, scores=data.scores[rows])
    truth = _read_known(asked["known"], data)
    answers = _Answers(data, expanded, truth)
    gaps, by_pair, estimated = list[Gap](), list[Gap](), []
    for measure in measures_of(expanded):
        if measure.needs_coupling:
            continue
        found = answers.gaps(measure)
        if not found:
            gaps.append(Gap.unstated(measure.name, measure.symbol, expanded.refused))
            continue
        gaps.append(largest_gap(found))
        by_pair += found if len(found) > 1 else []
        if measure.averages and not measure.is_relative:
            estimated.append(answers.answer(measure, gaps[-1]))
    sizes = np.bincount(answers.people.cells)
    facts = EstimatedFacts(
        n_people=data.weights.people,
        n_cells=len(sizes),
        smallest_cell=int(sizes.min()),
        gaps=tuple(estimated),
        n_known=0 if truth is None else int((truth >= 0).sum()),
    )
    if truth is not None and facts.n_known >= LEAST:
        error, p_value = _calibration(answers.people.probabilities, truth)
        facts = replace(facts, calibration_error=error, calibration_p_value=p_value)
    groups = tuple(map(_sized, describe_groups(expanded), people.groups.sizes(people.weights)))
    return {
        "groups": groups,
        "selection_ratio": selection_ratio(expanded),
        "gaps": tuple(gaps),
        "matchings": (Matching((0, 0), False, refused=UNMATCHED),),
        "subsets": None,
        "individuals": None,
        "pair_gaps": tuple(by_pair),
        "reference": expanded.labels[expanded.reference],
        "weights": None if data.people.weights is None else data.settings.weight_kind,
        "notes": tuple(_notes(facts, data)),
        "estimated": facts,
    }


def _sized(facts: GroupFacts, weight: float) -> GroupFacts:
    """Return the facts of a group with its expected number of people, not that of its rows."""
    counts = whole_numbers(np.asarray(facts.score_counts, dtype=np.float64), round(weight))
    return replace(facts, n_rows=round(weight), score_counts=counts, weight=float(weight))


class _Answers:
    """The answers about one model's scores of people whose groups are probabilities."""

    def __init__(self, data: Audited, expanded: Audited, truth: NDArray[np.intp] | None) -> None:
        self.data, self.expanded, self.truth = data, expanded, truth
        likely = Groups(data.groups.codes, data.groups.labels)
        self.thresholded = replace(data, people=replace(data.people, groups=likely))
        persons = data.weights.persons
        assert data.groups.memberships is not None
        self.people = EstimatedPeople(
            data.scores,
            data.groups.memberships,
            data.people.mass,
            np.arange(len(data.scores)) if persons is None else persons,
        )
        folds = data.settings.generator(9).integers(2, size=int(self.people.persons.max()) + 1)
        self.folds = folds[self.people.persons]

    def parts(self, measure: Measure) -> list[EstimatedPeople]:
        """Return the people of every compared class, with their decisions or scores."""
        people, found = self.people, []
        if measure.needs_decisions:
            people = replace(people, values=self.data.selected.astype(np.float64))
        for label in measure.labels:
            part = replace(people, inside=None if label is None else self.data.has(label))
            part.__dict__["cells"] = self.people.cells  # those of the probabilities alone
            found.append(part)
        return found

    def gaps(self, measure: Measure) -> list[Gap]:
        """Return the weighted gap of every pair of groups."""
        found = []
        for pair in self.expanded.pairs:
            limits: tuple[float | None, float | None] = None, None
            method = "weighted by the probabilities of the groups; no interval"
            if measure.distance is None:
                differences = [assumed_difference(part, pair) for part in self.parts(measure)]
                limits, method = self._limits(differences, measure), _METHOD
            found.append(gap_between(self.expanded, measure, pair, limits, method))
        return found

    def _limits(
        self, differences: list[Difference], measure: Measure, freedom: float = np.inf
    ) -> tuple[float, float]:
        """Return the limits of the mean of absolute differences, one for each class."""
        unit, most = self._unit(measure)
        ends = [
            _absolute(one.limits(self.expanded.pair_confidence, freedom)) for one in differences
        ]
        low, high = (float(np.mean(own)) / unit for own in zip(*ends, strict=True))
        return low, min(high, most)

    def _unit(self, measure: Measure) -> tuple[float, float]:
        unit = measure.unit_of(self.data.measured)
        return unit, 1.0 if measure.unit == "share" else self.data.width / unit

    def answer(self, measure: Measure, gap: Gap) -> EstimatedGap:
        """Return the three answers about the largest gap, and the one by thresholding."""
        parts, pairs = self.parts(measure), self.expanded.pairs
        most = self._unit(measure)[1]
        level, sharp, outer = self.expanded.pair_confidence, [], []
        for pair in pairs:
            ends = [bounded_difference(part, pair) for part in parts]
            sharp.append(np.mean([_absolute((low.value, high.value)) for low, high in ends], 0))
            ends = [bounded_difference(part, pair, self.folds) for part in parts]
            limits = [(low.limits(level)[0], high.limits(level)[1]) for low, high in ends]
            outer.append(np.mean(list(map(_absolute, limits)), axis=0))
        low, high = np.max(sharp, axis=0)
        if len(pairs) > 1 and measure.needs_decisions and not measure.needs_labels:
            low = max(low, least_largest_gap(parts[0], self.expanded.compared))
        low, high = min(low, gap.value or low), max(high, gap.value or high)
        low_limit, high_limit = np.max(outer, axis=0)
        thresholded = None
        if not self.thresholded.refused:
            thresholded = max(
                measure.between(self.thresholded.scored, pair) for pair in self.thresholded.pairs
            )
        return EstimatedGap(
            measure.name,
            measure.symbol,
            Estimate(gap.value, gap.low, gap.high),
            float(low),
            float(min(high, most)),
            float(min(low_limit, low)),
            float(min(max(high_limit, high), most)),
            self._calibrated(measure, parts),
            thresholded,
        )

    def _calibrated(self, measure: Measure, parts: list[EstimatedPeople]) -> Estimate | None:
        if self.truth is None:
            return None
        found = []
        for pair in self.expanded.pairs:
            differences = []
            for part in parts:
                inside = self.truth if part.inside is None else self.truth[part.inside]
                fewest = min(int((inside == group).sum()) for group in pair)
                one = calibrated_difference(part, pair, self.truth) if fewest else None
                if one is None or fewest < _FEWEST_KNOWN:
                    return None
                differences.append(one)
            n_known = int((self.truth >= 0).sum())
            value = float(np.mean([abs(one.value) for one in differences]))
            value /= self._unit(measure)[0]
            found.append((value, *self._limits(differences, measure, n_known - 1.0)))
        return Estimate(*map(max, zip(*found, strict=True)))


def _absolute(ends: tuple[float, float]) -> tuple[float, float]:
    """Return the range of absolute values between two ends."""
    low, high = ends
    return max(low, -high, 0.0), max(high, -low)


def _read_known(known: Any, data: Audited) -> NDArray[np.intp] | None:
    """Return the codes of known groups; -1 where the group is not known."""
    if known is None:
        return None
    labels = data.groups.labels
    column = read_column(known, "known")
    check_length(column, data.roster.n_given, "known")
    column = column[data.roster.positions]
    codes = np.full(len(column), -1)
    for code, label in enumerate(labels):
        codes[np.asarray(column == label, dtype=bool)] = code
    strange = column[(codes < 0) & ~is_missing(column)]
    if len(strange):
        raise GroupError(
            f"known holds {strange.tolist()[0]!r}, but the groups are {listed(labels)}. Write a "
            "person's group like the name of its column of probabilities, and leave the others "
            "missing.",
            parameter="known",
        )
    return codes


def _calibration(memberships: FloatArray, truth: NDArray[np.intp]) -> tuple[float, float]:
    """Return the largest error of probabilities where groups are known, and a p-value.

    Each group's known people are cut into fifths of its probability. The sums of true groups are
    compared with those of the probabilities, whose variance is the sum of p(1 - p). The p-value is
    that of the largest deviation, times their number.
    """
    is_known = truth >= 0
    errors, deviations = [], []
    for group in range(memberships.shape[1]):
        own, is_group = memberships[is_known, group], truth[is_known] == group
        for rows in np.array_split(np.argsort(own, kind="stable"), _FIFTHS):
            errors.append(abs(float((is_group[rows] - own[rows]).mean())))
            spread = float(np.sqrt((own[rows] * (1.0 - own[rows])).sum()))
            off = abs(float((is_group[rows] - own[rows]).sum()))
            deviations.append(off / spread if spread > 0.0 else np.inf * (off > 0.0))
    worst = float(np.nanmax(deviations))
    return max(errors), float(min(2.0 * ndtr(-worst) * len(errors), 1.0))


def _notes(facts: EstimatedFacts, data: Audited) -> Iterable[str]:
    """Yield what a reader should know about estimated groups."""
    yield (
        f"The groups of {facts.n_people:,} people are probabilities, and gaps are weighted by "
        "them. This is right if scores and groups are independent given the probabilities."
    )
    if not facts.gaps:
        return
    first = facts.gaps[0]
    title = "selection rates" if data.decides else "mean predictions"
    cells = "cell" if facts.n_cells == 1 else "cells"
    yield (
        f"Without that assumption, the gap of {title} lies between {first.low:.4f} and "
        f"{first.high:.4f} [{first.low_limit:.4f}, {first.high_limit:.4f}], if the probabilities "
        f"are calibrated within {facts.n_cells:,} {cells} of at least {facts.smallest_cell} people."
    )
    own = first.calibrated
    if own is not None:
        yield (
            f"By the {facts.n_known:,} people whose group is known, it is {own.value:.4f} "
            f"[{own.low:.4f}, {own.high:.4f}], if they are a random sample."
        )
    if facts.calibration_error is not None and facts.calibration_p_value is not None:
        verdict = (
            "shows"
            if facts.calibration_p_value < 1.0 - data.settings.confidence
            else "finds no sign"
        )
        yield (
            f"Where groups are known, the mean probability of a group differs from its share by "
            f"up to {facts.calibration_error:.3f} in fifths of the people; a test {verdict} that "
            "the probabilities are not calibrated."
        )
    if first.thresholded is not None:
        yield (
            "Thresholding would give another answer: if everybody belonged to the most probable "
            f"group, the gap would be {first.thresholded:.4f}. It may be too large or too small."
        )
