"""Penalties on differences between matched people, and the matching behind them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from fairmatch.exceptions import CouplingError, InputError
from fairmatch.learning.reading import encoded, labels_of, seed_sequence
from fairmatch.matching.coupling import Coupling, check_coupling
from fairmatch.matching.matchers import Matcher, OptimalTransportMatcher, match_people
from fairmatch.people.checks import FloatArray, check_count
from fairmatch.people.encoding import Points
from fairmatch.people.groups import listed, read_criterion
from fairmatch.people.outcome import Derivatives, Outcome
from fairmatch.people.people import Comparison, Labels, People

# Differences of scores below this count as almost none. docs/evidence/boosting.md shows the
# measurements behind the value.
SMOOTHING = 0.05
# Relative duality gap of the coupling that FTM trains on. Training draws pairs at random, so a
# thousandth of the cost is lost in the noise. Where the groups are nearly identical, a smaller gap
# cannot be proven in float64.
_TRAINING_TOLERANCE = 1e-3
# Rows of a group that are matched by default, and the share of a large table: one in this many.
# With fewer, trees fit the pairs and other people keep their gap (docs/evidence/large-tables.md).
_ROWS, _TABLES_SHARE = 2_500, 25
# The first is the cost of matching people with different labels, or with predicted scores 0 and 1.
# The second is the cost of a difference of real targets by one standard deviation. Costs are
# squared distances, so two standard deviations cost as much as different labels.
JOINT_WEIGHT, REAL_WEIGHT = 100.0, 25.0


class TreePenalty(Protocol):
    """A penalty as a function of the scores of all rows."""

    def value(self, scores: FloatArray) -> float:
        """Return the penalty of the scores."""

    def derivatives(self, scores: FloatArray) -> Derivatives:
        """Return the gradient, and the curvature of a quadratic that lies above the penalty."""


class MatchedGap:
    r"""The mean absolute difference of matched scores, :math:`\Delta\mathrm{MDP}` (equation 2).

    Parameters
    ----------
    coupling : Coupling
        Who is matched with whom.
    smoothing : float, default=0.05
        The :math:`\epsilon` of the formula, for trees. Networks descend the absolute difference
        itself.

    Notes
    -----
    The penalty is :math:`\sum_{ij} \Gamma_{ij} (\sqrt{d_{ij}^2 + \epsilon^2} - \epsilon)` with
    :math:`d_{ij} = p_i - p_j`. For vectors of class probabilities it is half the sum over the
    classes. The root is concave in :math:`d^2`, and :math:`(a - b)^2 \le 2 a^2
    + 2 b^2`. So a quadratic with the curvature :math:`2 \sum_j \Gamma_{ij} / \sqrt{d_{ij}^2 +
    \epsilon^2}` in each row touches the penalty and lies above it.
    """

    def __init__(self, coupling: Coupling, smoothing: float = SMOOTHING) -> None:
        self.coupling, self.smoothing = coupling, smoothing

    @staticmethod
    def sizes(differences: Any, smoothing: float = 0.0, *, vectors: bool = False) -> Any:
        """Return the size of every difference: of vectors, half the sum over the last axis.

        A positive smoothing makes it smooth at zero.
        """
        found = abs(differences)
        if smoothing > 0.0:
            found = (differences**2 + smoothing**2) ** 0.5 - smoothing
        return found.sum(-1) / 2.0 if vectors else found

    def value(self, scores: FloatArray) -> float:
        """Return the smoothed matched gap."""
        differences = self._differences(scores)
        sizes = self.sizes(differences, self.smoothing, vectors=scores.ndim == 2)
        return float(self.coupling.mass @ sizes)

    def derivatives(self, scores: FloatArray) -> Derivatives:
        """Return the gradient and the curvature, summed over the partners of every row."""
        if scores.ndim == 2:
            columns = [self.derivatives(np.ascontiguousarray(own)) for own in scores.T]
            first, second = (np.column_stack(own) / 2.0 for own in zip(*columns, strict=True))
            return first, second
        differences = self._differences(scores)
        inverse = self.coupling.mass / np.sqrt(differences**2 + self.smoothing**2)
        slope = inverse * differences
        return self._per_row(slope, -slope), 2.0 * self._per_row(inverse, inverse)

    def _differences(self, scores: FloatArray) -> FloatArray:
        pairs = self.coupling
        return np.asarray(scores[pairs.source_index] - scores[pairs.target_index])

    def _per_row(self, source: FloatArray, target: FloatArray) -> FloatArray:
        pairs, n_rows = self.coupling, self.coupling.n_rows
        return np.asarray(
            np.bincount(pairs.source_index, source, n_rows)
            + np.bincount(pairs.target_index, target, n_rows)
        )


class FreshlyMatchedGap:
    """The matched gap of people who are matched anew in every step, as in the paper."""

    def __init__(
        self, matcher: OptimalTransportMatcher, points: Points, parts: Sequence[Comparison]
    ) -> None:
        self.matcher, self.points, self.parts = matcher, points, parts


def with_scores(points: Points, weight: float, scores: FloatArray) -> Points:
    """Return points whose squared distance also counts that of the scores, times a weight.

    For vectors the squared distance is half the squared Euclidean one, which for two classes is the
    same.
    """
    if scores.ndim == 1:
        return points.with_number(np.sqrt(weight) * scores)
    for column in scores.T:
        points = points.with_number(np.sqrt(weight / 2.0) * column)
    return points


@dataclass(frozen=True)
class Transport:
    """Who is matched with whom, and on what."""

    transport: Any  #: The name of a map, or an object with a ``match`` method.
    outcome: Outcome  #: What is predicted. Numbers are labels in standard deviations.
    criterion: str = "demographic_parity"  #: Which classes are compared.
    #: The group that every other group is matched with; by default the largest.
    reference: Any = None
    names: tuple[str, ...] = ("marginal", "joint")  #: The names of maps that the estimator accepts.
    #: Returns a score of every row by a model that was not trained on the row. The map "predicted"
    #: needs it.
    unseen: Callable[[People], FloatArray] | None = None
    fresh: bool = False  #: Whether a matcher with a ``batch_size`` matches anew in every step.
    #: Greatest number of rows of a group that are matched; by default all are.
    match_rows: int | str | None = None
    random_state: Any = None  #: Seed of the sample, 0 if there is none.

    def check(self, coupling: Any) -> None:
        """Raise unless the settings are usable, and the coupling is a Coupling or None."""
        read_criterion(self.criterion)
        if self.match_rows != "auto":
            check_count("match_rows", self.match_rows, 2, optional=True)
        self.matcher()
        check_coupling(coupling)

    def parts(self, people: People) -> list[Comparison]:
        """Return the pairs of groups that are matched."""
        return people.comparisons(read_criterion(self.criterion), self.reference)

    def penalty(
        self, people: People, coupling: Coupling | None = None
    ) -> MatchedGap | FreshlyMatchedGap:
        """Return the matched gap of people, from a ready coupling or from a new one."""
        if coupling is not None:
            self.refuse_other(coupling, people)
            return MatchedGap(coupling)
        matcher = self.matcher()
        if self.fresh and getattr(matcher, "batch_size", None) is not None:
            assert isinstance(matcher, OptimalTransportMatcher)
            if people.groups.memberships is not None:
                raise InputError(
                    f"A matcher with batch_size={matcher.batch_size} and group_probabilities do "
                    "not combine. Match people once, with batch_size=None.",
                    parameter="transport",
                )
            points = matcher.points(self._points(people), labels_of(people).positive)
            return FreshlyMatchedGap(matcher, points, self.parts(people))
        return MatchedGap(self.match(people))

    def match(self, people: People) -> Coupling:
        """Return the coupling of people, matched part by part.

        A user's own matcher gets categories as one-hot columns.
        """
        matcher, points = self.matcher(), self._points(people)
        ours = isinstance(matcher, OptimalTransportMatcher)
        seed = 0 if self.random_state is None else seed_sequence(self.random_state)
        # A sample keeps the shares of high and low targets, like those of two classes.
        # Several classes are kept where people of the same class are compared.
        halves = Labels(labels_of(people).positive.astype(np.float64), (0, 1))
        kept = self.outcome.several and read_criterion(self.criterion).needs_labels
        people = replace(people, labels=people.labels if kept else halves, table=None)
        rows = None
        if people.groups.memberships is not None:
            # Whoever may belong to both groups may be matched with herself.
            n_rows = len(people)
            people, rows = people.expanded()
            points = points[rows]
        found = match_people(
            matcher,
            people,
            points if ours else points.dense(),
            criterion=read_criterion(self.criterion),
            reference=self.reference,
            most_rows=self._most_rows(len(people)),
            random_state=seed,
        )
        return found if rows is None else found.renumbered(rows, n_rows)

    def _most_rows(self, n_rows: int) -> int | None:
        """Return the greatest number of rows of two groups."""
        if self.match_rows is None:
            return None
        if isinstance(self.match_rows, int | np.integer):
            return 2 * int(self.match_rows)
        return 2 * max(_ROWS, n_rows // _TABLES_SHARE)

    def matcher(self) -> Matcher:
        """Return the matcher of a single part."""
        chosen, names = self.transport, ", ".join(map(repr, self.names))
        binary = self.outcome.decides and not self.outcome.several
        ours = isinstance(chosen, OptimalTransportMatcher)
        if isinstance(chosen, str) and chosen in self.names:
            joint, what = chosen == "joint", f"transport={chosen!r}"
        elif isinstance(chosen, type) or not hasattr(chosen, "match"):
            raise InputError(
                f"transport must be {names} or a matcher, an object that has a match method; got "
                f"{chosen!r}.",
                parameter="transport",
            )
        elif not ours:
            return chosen  # type: ignore[no-any-return]
        else:
            self._refuse_other_settings(chosen)
            joint, what = chosen.label_weight > 0.0, f"label_weight={chosen.label_weight:g}"
        if joint and read_criterion(self.criterion).needs_labels:
            raise InputError(
                f"{what} matches people on their labels, but criterion={self.criterion!r} "
                "compares people with the same label, whose labels never differ. Use "
                "transport='marginal'.",
                parameter="transport",
            )
        if not ours:
            # A plan that is not proven optimal is still good enough to train on.
            weight = JOINT_WEIGHT if joint and binary else 0.0
            return OptimalTransportMatcher(
                weight, tolerance=_TRAINING_TOLERANCE, on_unproven="return"
            )
        if joint and not binary:
            raise InputError(
                f"The matcher has {what}, which compares two classes, but there are "
                f"{'more' if self.outcome.several else 'none in a regressor'}. Use "
                "transport='joint', or label_weight=0.",
                parameter="transport",
            )
        alone: Matcher = replace(chosen, criterion="demographic_parity", reference=None)
        return alone

    def _points(self, people: People) -> Points:
        """Return what people are matched on: their features, with scores or targets if asked."""
        points, labels = encoded(people).points, labels_of(people).values
        weight = JOINT_WEIGHT if self.outcome.decides else REAL_WEIGHT
        if isinstance(self.transport, str) and self.transport == "predicted":
            assert self.unseen is not None
            return with_scores(points, weight, self.unseen(people))
        if isinstance(self.transport, str) and self.transport == "joint":
            if not self.outcome.decides:
                return with_scores(points, weight, labels)
            if self.outcome.several:
                vectors = np.eye(len(self.outcome.classes))[labels.astype(np.intp)]
                return with_scores(points, weight, vectors)
        return points

    def refuse_other(self, coupling: Coupling, people: People) -> None:
        """Raise if a ready coupling matches people who are not compared."""
        coupling.check_groups(people.groups)
        criterion = read_criterion(self.criterion)
        compared = np.zeros(len(coupling), dtype=bool)
        for _, inside in people.label_strata(criterion):
            compared |= inside[coupling.source_index] & inside[coupling.target_index]
        if not compared.all():
            whom = "the same" if len(criterion.labels) > 1 else "a positive"
            raise CouplingError(
                f"criterion={criterion.name!r} compares people with {whom} label, and "
                f"{int((~compared).sum())} of {len(compared)} pairs of the coupling are others. "
                "Match with the same criterion, or leave the coupling out."
            )
        targets = {part.groups[1] for part in coupling.parts}
        if self.reference is not None and targets != {self.reference}:
            raise CouplingError(
                f"reference={self.reference!r} was given, but the coupling matches people with "
                f"{listed(sorted(targets, key=str))}. Match with the same reference, or leave the "
                "coupling out."
            )

    def _refuse_other_settings(self, matcher: OptimalTransportMatcher) -> None:
        """Raise if the matcher and the estimator contradict each other."""
        for name, unset in (("criterion", "demographic_parity"), ("reference", None)):
            own, asked = getattr(matcher, name), getattr(self, name)
            if own not in (unset, asked):
                raise InputError(
                    f"The matcher has {name}={own!r} and the estimator {name}={asked!r}. Set "
                    f"{name} on the estimator alone.",
                    parameter=name,
                )
