"""Whom a penalty compares: the parts of a criterion, and people matched within them."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from fairmatch.exceptions import InputError
from fairmatch.learning.rows import TrainingRows, seed_sequence
from fairmatch.learning.settings import Settings
from fairmatch.matching.coupling import Coupling
from fairmatch.matching.matchers import Matcher, OptimalTransportMatcher
from fairmatch.matching.parts import PART_WEIGHTS, PartRows, match_parts, plan_parts
from fairmatch.tables.criterion import read_criterion
from fairmatch.tables.parameters import check_count
from fairmatch.tables.points import Points

# Relative duality gap of the coupling that FTM trains on. Training draws from the coupling at
# random, so a thousandth of its cost is lost in the noise; and where the groups are nearly
# identical, more could not be proven in float64 and would be an error.
_TRAINING_TOLERANCE = 1e-3
# What it costs to match people with different labels, or a whole difference of predicted scores.
JOINT_WEIGHT = 100.0
_LABEL_WEIGHTS = {"marginal": 0.0, "joint": JOINT_WEIGHT, "predicted": 0.0}


@dataclass(frozen=True)
class Comparison(Settings):
    """Which rows of which groups are compared.

    Parameters
    ----------
    criterion : {"demographic_parity", "equal_opportunity", "equalized_odds"}
        Who is compared with whom: by default everybody; those with a positive label; or people
        with the same label, each class by itself.
    reference : a group label, optional
        The group that every other group is compared with; by default the largest.
    part_weights : {"equal", "size"}, default="equal"
        Whether each group counts the same beside the reference, so that a small group counts, or
        as much as it has rows.
    """

    criterion: str = "demographic_parity"
    reference: Any = None
    part_weights: str = "equal"

    def check(self) -> None:
        """Raise unless criterion and weights of parts are known."""
        read_criterion(self.criterion)
        if self.part_weights not in PART_WEIGHTS:
            raise InputError(f"part_weights must be 'equal' or 'size', got {self.part_weights!r}.")

    @property
    def gap_measure(self) -> str:
        """Name of the gap of decisions that the criterion is about."""
        return read_criterion(self.criterion).gap_measure

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

    def match(
        self,
        matcher: Matcher,
        rows: TrainingRows,
        sampling: "Sampling | None" = None,
        points: Points | None = None,
    ) -> Coupling:
        """Return the coupling that a matcher makes of the rows, part by part.

        Parameters
        ----------
        matcher : Matcher
            Matches two groups. One of a user's own is given one-hot columns.
        rows : TrainingRows
            The rows.
        sampling : Sampling, optional
            How many of them to match; by default all.
        points : Points, optional
            What to match them on instead of their features.
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
    match_rows : int, optional
        How many rows of two groups are matched at most. Beyond that a sample is matched, drawn
        by group and label; the penalty sees its pairs, and the loss sees all rows. A smaller
        group is kept whole. None matches everybody.
    """

    match_rows: int | None = 50_000
    random_state: Any = None

    def check(self) -> None:
        """Raise unless the number of rows can be matched."""
        check_count("match_rows", self.match_rows, 2, optional=True)

    @property
    def seed(self) -> Any:
        """Seed of the sample; where the estimator has none, it is always the same."""
        return 0 if self.random_state is None else seed_sequence(self.random_state)


@dataclass(frozen=True)
class Transport:
    """How people are matched.

    Parameters
    ----------
    transport : str or a matcher
        A name, or an object with a ``match`` method.
    comparison : Comparison
        Whom to match.
    names : tuple of str
        The names that the estimator knows.
    """

    transport: Any
    comparison: Comparison
    names: tuple[str, ...] = ("marginal", "joint")

    TRANSPORTS: ClassVar[dict[str, float]] = _LABEL_WEIGHTS

    def matcher(self) -> Matcher:
        """Return the matcher of a single part."""
        chosen: Any = self.transport
        if isinstance(chosen, str):
            if chosen not in self.names:
                names = ", ".join(map(repr, self.names))
                raise InputError(f"transport must be {names} or a matcher, got {chosen!r}.")
            self._refuse_labels_within_labels(chosen == "joint", f"transport={chosen!r}")
            return OptimalTransportMatcher(_LABEL_WEIGHTS[chosen], tolerance=_TRAINING_TOLERANCE)
        if not hasattr(chosen, "match") or isinstance(chosen, type):
            raise InputError(f"transport={chosen!r} is no matcher: it has no match method.")
        if isinstance(chosen, OptimalTransportMatcher):
            self._refuse_other_criterion(chosen)
            within = chosen.label_weight > 0.0
            self._refuse_labels_within_labels(within, f"label_weight={chosen.label_weight:g}")
            return replace(chosen, criterion="demographic_parity", reference=None)
        return chosen  # type: ignore[no-any-return]

    def _refuse_labels_within_labels(self, joint: bool, what: str) -> None:
        if joint and read_criterion(self.comparison.criterion).needs_labels:
            raise InputError(
                f"{what} matches people on their labels, and "
                f"criterion={self.comparison.criterion!r} compares people of the same label: their "
                "labels never differ. Use transport='marginal'."
            )

    def _refuse_other_criterion(self, matcher: OptimalTransportMatcher) -> None:
        """Raise where the matcher says one thing and the estimator another."""
        for name, unset in (("criterion", "demographic_parity"), ("reference", None)):
            own, asked = getattr(matcher, name), getattr(self.comparison, name)
            if own not in (unset, asked):
                raise InputError(
                    f"The matcher has {name}={own!r} and the estimator {name}={asked!r}. Give it "
                    "to the estimator."
                )
