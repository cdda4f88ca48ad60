"""Whom a penalty compares: the parts that a criterion names, and the people matched in each."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairmatch.exceptions import CouplingError, InputError
from fairmatch.learning.penalties import FreshlyMatchedGap, MatchedGap
from fairmatch.learning.rows import TrainingRows, seed_sequence
from fairmatch.learning.settings import Settings
from fairmatch.matching.coupling import Coupling, check_coupling
from fairmatch.matching.matchers import Matcher, OptimalTransportMatcher
from fairmatch.matching.parts import PART_WEIGHTS, PartRows, plan_parts
from fairmatch.matching.samples import match_parts
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.criterion import read_criterion
from fairmatch.tables.groups import listed
from fairmatch.tables.parameters import check_count
from fairmatch.tables.points import Points

# Relative duality gap of the coupling that FTM trains on. Training draws pairs at random, so a
# thousandth of the cost is lost in the noise. Where the groups are nearly identical, a smaller gap
# cannot be proven in float64.
_TRAINING_TOLERANCE = 1e-3
# The first is the cost of matching people with different labels, or with predicted scores 0 and 1.
# The second is the cost of a difference of real targets by one standard deviation. Costs are
# squared distances, so two standard deviations cost as much as different labels.
JOINT_WEIGHT, REAL_WEIGHT = 100.0, 25.0


@dataclass(frozen=True)
class GroupComparison(Settings):
    """Which groups are compared.

    Parameters
    ----------
    reference : a group label, optional
        The group that every other group is compared with; by default the largest.
    part_weights : {"equal", "size"}, default="equal"
        How much the comparison of each group with the reference counts. With "equal" all count
        the same, even those of small groups. With "size" each counts by the number of rows of its
        group, or by their weights.
    """

    reference: Any = None
    part_weights: str = "equal"

    def check(self) -> None:
        """Raise unless ``part_weights`` is a known way to weigh the parts."""
        if self.part_weights not in PART_WEIGHTS:
            raise InputError(f"part_weights must be 'equal' or 'size', got {self.part_weights!r}.")


@dataclass(frozen=True)
class Comparison(GroupComparison):
    """Which rows of which groups are compared.

    Parameters
    ----------
    criterion : {"demographic_parity", "equal_opportunity", "equalized_odds"}
        Who is compared: by default everybody, with "equal_opportunity" people with a positive
        label, and with "equalized_odds" people with the same label, for each class.
    """

    criterion: str = "demographic_parity"

    def check(self) -> None:
        """Raise unless the criterion and ``part_weights`` are known."""
        super().check()
        read_criterion(self.criterion)

    @property
    def _given(self) -> dict[str, Any]:
        return {
            "criterion": self.criterion,
            "reference": self.reference,
            "part_weights": self.part_weights,
        }

    def parts(self, rows: TrainingRows) -> list[PartRows]:
        """Return the parts that are compared."""
        return plan_parts(
            rows.groups,
            positive=rows.positive,
            weights=rows.weights,
            ignored=rows.ignored,
            **self._given,
        )

    def refuse_other(self, coupling: Coupling, rows: TrainingRows) -> None:
        """Raise if a ready coupling matches other people than the comparison asks for."""
        coupling.check_groups(rows.groups)
        criterion = read_criterion(self.criterion)
        compared = np.zeros(len(coupling), dtype=bool)
        for _, inside in criterion.strata(rows.positive, len(rows)):
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
                f"reference={self.reference!r} was given, and the coupling matches people with "
                f"{listed(sorted(targets, key=str))}. Match with the same reference, or leave the "
                "coupling out."
            )

    def match(
        self,
        matcher: Matcher,
        rows: TrainingRows,
        sampling: "Sampling | None" = None,
        points: Points | None = None,
    ) -> Coupling:
        """Return the coupling of the rows, matched part by part.

        Parameters
        ----------
        matcher : Matcher
            Matches two groups. A user's own matcher gets categories as one-hot columns.
        rows : TrainingRows
            The rows to match.
        sampling : Sampling, optional
            How many rows to match; by default all.
        points : Points, optional
            What to match on; by default the rows' features.
        """
        points = rows.points if points is None else points
        ours = isinstance(matcher, OptimalTransportMatcher)
        return match_parts(
            matcher,
            points if ours else points.dense(),
            rows.groups,
            positive=rows.positive,
            weights=rows.weights,
            ignored=rows.ignored,
            most_rows=None if sampling is None else sampling.match_rows,
            random_state=0 if sampling is None else sampling.seed,
            **self._given,
        )


@dataclass(frozen=True)
class Sampling(Settings):
    """How many people are matched.

    Parameters
    ----------
    match_rows : int or None, default=50000
        Greatest number of rows of two groups that are matched. In a larger table a sample is
        matched, drawn by group and label, and a smaller group is kept whole. The penalty sees the
        sample's pairs, and the loss sees all rows. None matches everybody.
    """

    match_rows: int | None = 50_000
    random_state: Any = None

    def check(self) -> None:
        """Raise unless ``match_rows`` is None or at least 2."""
        check_count("match_rows", self.match_rows, 2, optional=True)

    @property
    def seed(self) -> Any:
        """Seed of the sample; 0 where the estimator has no seed."""
        return 0 if self.random_state is None else seed_sequence(self.random_state)


@dataclass(frozen=True)
class Transport:
    """How people are matched.

    Parameters
    ----------
    transport : str or a matcher
        The name of a map, or an object with a ``match`` method.
    comparison : Comparison
        Whom to match.
    names : tuple of str
        The names of maps that the estimator accepts.
    unseen : callable, optional
        Returns a score of every row by a model that was not trained on the row. The map
        "predicted" needs it.
    fresh : bool, default=False
        Whether a matcher with a ``batch_size`` matches anew in every step.
    real : bool, default=False
        Whether the target is a real number in standard deviations; by default it is a class.
    sampling : Sampling, optional
        How many people to match; by default all.
    """

    transport: Any
    comparison: Comparison
    names: tuple[str, ...] = ("marginal", "joint")
    unseen: Callable[[TrainingRows], FloatArray] | None = None
    fresh: bool = False
    real: bool = False
    sampling: Sampling | None = None

    def check(self, coupling: Any) -> None:
        """Raise unless the transport is usable, and the coupling is a Coupling or None."""
        self.matcher()
        check_coupling(coupling)

    def penalty(
        self, rows: TrainingRows, coupling: Coupling | None = None
    ) -> MatchedGap | FreshlyMatchedGap:
        """Return the matched gap of rows, from a ready coupling or from a new one."""
        if coupling is not None:
            self.comparison.refuse_other(coupling, rows)
            return MatchedGap(coupling)
        matcher = self.matcher()
        if self.fresh and getattr(matcher, "batch_size", None) is not None:
            assert isinstance(matcher, OptimalTransportMatcher)
            points = matcher.points(self._points(rows), rows.labels)
            return FreshlyMatchedGap(matcher, points, self.comparison.parts(rows))
        return MatchedGap(self.match(rows))

    def match(self, rows: TrainingRows) -> Coupling:
        """Return the coupling of rows."""
        return self.comparison.match(self.matcher(), rows, self.sampling, self._points(rows))

    def matcher(self) -> Matcher:
        """Return the matcher of a single part."""
        chosen: Any = self.transport
        if isinstance(chosen, str):
            if chosen not in self.names:
                names = ", ".join(map(repr, self.names))
                raise InputError(f"transport must be {names} or a matcher, got {chosen!r}.")
            self._refuse_labels_within_labels(chosen == "joint", f"transport={chosen!r}")
            weight = JOINT_WEIGHT if chosen == "joint" and not self.real else 0.0
            # A plan that is not proven optimal is still good enough to train on.
            return OptimalTransportMatcher(
                weight, tolerance=_TRAINING_TOLERANCE, on_unproven="return"
            )
        if not hasattr(chosen, "match") or isinstance(chosen, type):
            names = ", ".join(map(repr, self.names))
            raise InputError(
                f"transport={chosen!r} is not a matcher: a matcher is an object that has a match "
                f"method. Pass one, or one of {names}."
            )
        if isinstance(chosen, OptimalTransportMatcher):
            self._refuse_other_criterion(chosen)
            within = chosen.label_weight > 0.0
            self._refuse_labels_within_labels(within, f"label_weight={chosen.label_weight:g}")
            if within and self.real:
                raise InputError(
                    f"The matcher has label_weight={chosen.label_weight:g}, which compares "
                    "classes, and a regressor has none. Use transport='joint', or label_weight=0."
                )
            return replace(chosen, criterion="demographic_parity", reference=None)
        return chosen  # type: ignore[no-any-return]

    def _is(self, name: str) -> bool:
        return isinstance(self.transport, str) and self.transport == name

    def _points(self, rows: TrainingRows) -> Points:
        """Return what people are matched on: their features, with scores or targets if asked."""
        weight = REAL_WEIGHT if self.real else JOINT_WEIGHT
        if self._is("predicted"):
            assert self.unseen is not None
            return rows.points.with_number(np.sqrt(weight) * self.unseen(rows))
        if self._is("joint") and self.real:
            return rows.points.with_number(np.sqrt(weight) * rows.labels)
        return rows.points

    def _refuse_labels_within_labels(self, joint: bool, what: str) -> None:
        if joint and read_criterion(self.comparison.criterion).needs_labels:
            raise InputError(
                f"{what} matches people on their labels, but "
                f"criterion={self.comparison.criterion!r} compares people of the same label, whose "
                "labels never differ. Use transport='marginal'."
            )

    def _refuse_other_criterion(self, matcher: OptimalTransportMatcher) -> None:
        """Raise if the matcher and the estimator contradict each other."""
        for name, unset in (("criterion", "demographic_parity"), ("reference", None)):
            own, asked = getattr(matcher, name), getattr(self.comparison, name)
            if own not in (unset, asked):
                raise InputError(
                    f"The matcher has {name}={own!r} and the estimator {name}={asked!r}. Set "
                    f"{name} on the estimator alone."
                )
