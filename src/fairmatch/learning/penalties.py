"""Penalties, and whom they compare."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from fairmatch.exceptions import CouplingError, InputError
from fairmatch.learning.reading import TrainingRows, seed_sequence
from fairmatch.learning.settings import Settings
from fairmatch.matching.coupling import PART_WEIGHTS, Coupling, PartRows, check_coupling, plan_parts
from fairmatch.matching.matchers import Matcher, OptimalTransportMatcher, match_parts
from fairmatch.people.checks import FloatArray, check_count
from fairmatch.people.encoding import Points
from fairmatch.people.groups import listed, read_criterion
from fairmatch.people.outcome import Derivatives

# Differences of scores below this count as almost none. docs/evidence/boosting.md shows the
# measurements behind the value.
SMOOTHING = 0.05


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
    :math:`d_{ij} = p_i - p_j`. The root is concave in :math:`d^2`, and :math:`(a - b)^2 \le 2 a^2
    + 2 b^2`. So a quadratic with the curvature :math:`2 \sum_j \Gamma_{ij} / \sqrt{d_{ij}^2 +
    \epsilon^2}` in each row touches the penalty and lies above it.
    """

    def __init__(self, coupling: Coupling, smoothing: float = SMOOTHING) -> None:
        self.coupling, self.smoothing = coupling, smoothing

    @staticmethod
    def sizes(differences: Any, smoothing: float = 0.0) -> Any:
        """Return the size of every difference; a positive smoothing makes it smooth at zero."""
        if smoothing == 0.0:
            return abs(differences)
        return (differences**2 + smoothing**2) ** 0.5 - smoothing

    def value(self, scores: FloatArray) -> float:
        """Return the smoothed matched gap."""
        return float(self.coupling.mass @ self.sizes(self._differences(scores), self.smoothing))

    def derivatives(self, scores: FloatArray) -> Derivatives:
        """Return the gradient and the curvature, summed over the partners of every row."""
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
    """The matched gap of people who are matched anew in every step, as in the paper.

    Parameters
    ----------
    matcher : OptimalTransportMatcher
        Matches a batch of each part; its ``batch_size`` is the number of pairs.
    points : Points
        What rows are matched on.
    parts : sequence of PartRows
        The pairs of groups that are compared.
    """

    def __init__(
        self, matcher: OptimalTransportMatcher, points: Points, parts: Sequence[PartRows]
    ) -> None:
        self.matcher, self.points, self.parts = matcher, points, parts


class GroupPenalty:
    """A penalty that compares whole groups and matches nobody.

    Parameters
    ----------
    parts : sequence of PartRows
        The pairs of groups that are compared, within each class that the criterion names.
    rows : TrainingRows
        The rows, with their weights.

    Attributes
    ----------
    strata : list of tuple
        Label and group of every set of rows whose scores are taken together.
    first, second : list of int
        For each part, the positions of its two groups among the strata; the group with the smaller
        code comes first.
    weights : array of shape (n_parts,)
        Weight of each part.
    """

    def __init__(self, parts: Sequence[PartRows], rows: TrainingRows) -> None:
        found: dict[tuple[Any, int], Any] = {}
        for part in parts:
            found[part.label, part.source] = part.source_rows
            found[part.label, part.target] = part.target_rows
        self.strata = sorted(found, key=lambda s: (not s[0], s[1]))
        self.parts, self.n_rows = list(parts), len(rows)
        ends = [sorted((p.source, p.target)) for p in parts]
        self.first, self.second = (
            [self.strata.index((p.label, end[k])) for p, end in zip(parts, ends, strict=True)]
            for k in (0, 1)
        )
        self.weights = np.array([part.weight for part in parts])
        mass = rows.mass
        self._rows = [found[stratum] for stratum in self.strata]
        self._shares = [mass[at] / mass[at].sum() for at in self._rows]
        self._masses = np.array([mass[at].sum() for at in self._rows])


class MeanPenalty(GroupPenalty):
    r"""The weighted sum of squared contrasts of mean scores; subclasses define the contrasts.

    Notes
    -----
    A contrast is :math:`a^\top p` for the scores p of all rows. Because :math:`(a^\top x)^2 \le
    \|a\|_1 \sum_i |a_i| x_i^2`, a quadratic with the curvature :math:`2 \|a\|_1 |a_i|` in each row
    lies above the squared contrast.
    """

    @property
    def contrast_weights(self) -> FloatArray:
        """Weight of every contrast."""
        return self.weights

    def contrasts(self, means: Any) -> Any:
        """Return the contrasts of means, an array or a tensor whose first axis is the strata."""
        raise NotImplementedError

    def value(self, scores: FloatArray) -> float:
        """Return the weighted sum of squared contrasts."""
        return float(self.contrast_weights @ self._gaps(scores) ** 2)

    def derivatives(self, scores: FloatArray) -> Derivatives:
        """Return gradient and curvature, summed over the contrasts."""
        gaps, weights, matrix = self._gaps(scores), self.contrast_weights, self._matrix
        lengths = np.abs(matrix).sum(axis=1).round(12)  # a contrast of two means has length 2
        return (2.0 * weights * gaps) @ matrix, (2.0 * weights * lengths) @ np.abs(matrix)

    def _gaps(self, scores: FloatArray) -> FloatArray:
        return np.array([row @ scores for row in self._matrix])

    @cached_property
    def _matrix(self) -> FloatArray:
        """Contribution of every row to every contrast; contrasts are linear in the means."""
        coefficients = self.contrasts(np.eye(len(self.strata)))
        matrix = np.zeros((len(coefficients), self.n_rows))
        for stratum, (at, shares) in enumerate(zip(self._rows, self._shares, strict=True)):
            matrix[:, at] += coefficients[:, stratum, None] * shares
        return matrix


class SquaredMeanGap(MeanPenalty):
    r"""The squared gap of mean scores of each part, :math:`\Delta\overline{\mathrm{DP}}^2`."""

    def contrasts(self, means: Any) -> Any:
        """Return the difference of the two means of every part."""
        return means[self.first] - means[self.second]


class ConstraintViolation(MeanPenalty):
    r"""Squared violations of the constraints of Agarwal et al. (2018), in FairTorch's form.

    Notes
    -----
    With :math:`\mu_s = E(f \mid S = s)` and :math:`\mu = E f`, the penalty is
    :math:`\sum_s [\mu_s - \mu]_+^2 + [\mu - \mu_s]_+^2`, within each class that is compared. For
    two groups with shares :math:`\pi_s` it is the squared mean gap with another weight,
    :math:`(\pi_0^2 + \pi_1^2)\, \Delta\overline{\mathrm{DP}}^2`.
    """

    @property
    def contrast_weights(self) -> FloatArray:
        """Weight of every group's violation, which is the weight of its class."""
        labels = [part.label for part in self.parts]
        by_label = {
            name: sum(w for w, own in zip(self.weights, labels, strict=True) if own is name)
            for name in labels
        }
        return np.array([by_label[label] for label, _ in self.strata])

    def contrasts(self, means: Any) -> Any:
        """Return each group's mean minus the mean of its class."""
        labels = [label for label, _ in self.strata]
        same = np.array([[a is b for b in labels] for a in labels])
        shares = same * self._masses
        shares = shares / shares.sum(axis=1, keepdims=True)
        if not isinstance(means, np.ndarray):
            shares = means.new_tensor(shares)
        return means - shares @ means


class Adversary(GroupPenalty):
    """The success of an adversary that guesses the group from the score (Zhang et al., 2018)."""


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
            points = matcher.points(self._points(rows), rows.positive)
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
