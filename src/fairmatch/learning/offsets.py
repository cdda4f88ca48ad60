r"""Offsets of class probabilities by group: thresholds for more than two classes.

The best rule within a gap is a linear program. Its duals are offsets that are added to the
probabilities of a group before the largest one decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from fairmatch.exceptions import GapNotReachedWarning, SolverError, notify
from fairmatch.people.checks import FloatArray
from fairmatch.people.groups import Criterion
from fairmatch.people.outcome import largest_class
from fairmatch.people.people import IndexArray

# The linear program holds at most this many people. Others are far from where decisions change.
_MOST_PEOPLE = 1500
_MOST_ROUNDS = 12
# What a gap beyond the bound costs in accuracy, where the people of the program cannot close it.
_PENALTY = 100.0
# A criterion that conditions on the label may leave a whole group indifferent: its rates must get
# worse, and no class is better than another. A little of the squared probability then decides.
_TIES = 1e-4
# Rates that differ by less than this are equal.
_ROUNDING = 1e-9
# If more people than this in the smallest group are tied, the tie is not by chance.
_FEW_TIED = 0.02


def _weights(chances: FloatArray, members: FloatArray, conditions: Sequence[int]) -> FloatArray:
    """Return how much each group, and each true class of it, weighs in a person's decision.

    Members are P(group) of shape (n_rows, n_groups), or P(group, class) with one axis more. Without
    the latter, group and class count as independent given the person.
    """
    if not conditions:
        return members
    joint = members if members.ndim == 3 else members[:, :, None] * chances[:, None]
    return np.asarray(joint[:, :, list(conditions)].reshape(len(chances), -1))


@dataclass(frozen=True, eq=False)
class _Problem:
    """People, what a decision contributes to every rate, and which rates must be alike."""

    chances: FloatArray  # of shape (n_rows, n_classes)
    mass: FloatArray  # weights that sum to 1
    reach: FloatArray  # how much a decision moves the rates of each group and label, per mass
    totals: FloatArray  # the mass behind each of these rates
    cells: tuple[tuple[int, ...], ...]  # for each label, the decided classes that are compared
    conditions: tuple[int, ...]  # the labels; none if everybody is compared
    n_groups: int
    averaged: bool  # whether the gaps of the labels are averaged, or the largest counts
    ties: float = 0.0  # how much the squared probability counts beside the probability

    @classmethod
    def of(
        cls,
        chances: FloatArray,
        members: FloatArray,
        mass: FloatArray,
        criterion: Criterion,
        favourable: Sequence[int] = (),
    ) -> Self:
        """Return the problem of a criterion."""
        every = tuple(range(chances.shape[1]))
        cells: tuple[tuple[int, ...], ...] = (every,)
        conditions: tuple[int, ...] = ()
        several = len(criterion.labels) > 1
        if criterion.needs_labels:
            conditions = every if several else tuple(favourable) or every
            cells = tuple(every if several else (label,) for label in conditions)
        mass = mass / mass.sum()
        weights = _weights(chances, members, conditions)
        totals = mass @ weights
        totals = np.where(totals > 0.0, totals, 1.0)
        ties = _TIES if conditions else 0.0
        known = members.shape[1]
        return cls(chances, mass, weights / totals, totals, cells, conditions, known, several, ties)

    def take(self, rows: IndexArray) -> _Problem:
        """Return the problem of some people, whose rates are parts of all rates."""
        return replace(
            self, chances=self.chances[rows], mass=self.mass[rows], reach=self.reach[rows]
        )

    def values(self, offsets: FloatArray) -> FloatArray:
        """Return what decides: the probabilities plus the offsets of shape (n_reach, n_classes)."""
        return np.asarray(self.gains + self.reach @ offsets)

    @property
    def gains(self) -> FloatArray:
        """The value of a decision: its probability, plus a small term that breaks ties."""
        return np.asarray(self.chances + self.ties * self.chances**2)

    def rates(self, decided: IndexArray) -> FloatArray:
        """Return the rate of every group and label, of shape (n_groups, n_labels, n_classes)."""
        chosen = np.eye(self.chances.shape[1])[decided] * self.mass[:, None]
        return (self.reach.T @ chosen).reshape(self.n_groups, len(self.cells), -1)

    def gap(self, rates: FloatArray) -> float:
        """Return the gap of rates: the largest over classes and groups, as the criterion says."""
        gaps = [
            float(np.ptp(rates[:, label, list(own)], axis=0).max())
            for label, own in enumerate(self.cells)
        ]
        return sum(gaps) / len(gaps) if self.averaged else max(gaps)

    def accuracy(self, decided: IndexArray) -> float:
        """Return the expected share of right decisions, if the probabilities are right."""
        return float(self.mass @ np.take_along_axis(self.chances, decided[:, None], 1)[:, 0])


@dataclass(frozen=True, eq=False)
class _Solution:
    """The optimum of the linear program."""

    offsets: FloatArray  # one row for every column of the reach
    accuracy: float
    shares: FloatArray  # probability of every decision of every person
    people: IndexArray  # whom the shares belong to; others get the largest value


def _solve(problem: _Problem, bound: float, start: FloatArray | None = None) -> _Solution:
    """Return the most accurate randomised rule within a bound, and its duals.

    In a large table only people near a change of decision are variables. The others have the
    decision of the current offsets. If the new offsets leave it as it is, the optimum of the small
    program is that of the large one.
    """
    n_rows = len(problem.mass)
    offsets = start
    if n_rows > _MOST_PEOPLE and offsets is None:
        # The offsets of a sample are near. Rows are sorted, so every third is a sample of all.
        sample = np.arange(0, n_rows, 3)
        part, total = problem.take(sample), problem.mass[sample].sum()
        known = part.mass @ part.reach
        scale = total / np.where(known > 0.0, known, 1.0)
        part = replace(part, mass=part.mass / total, reach=part.reach * scale)
        offsets = _solve(part, bound).offsets * scale[:, None]
    size = min(_MOST_PEOPLE, n_rows)
    for turn in range(_MOST_ROUNDS):
        rows = np.arange(n_rows)
        fixed_rates = np.zeros((problem.n_groups, len(problem.cells), problem.chances.shape[1]))
        decided, others = None, np.zeros(0, dtype=np.intp)
        if size < n_rows and offsets is not None:
            values = problem.values(offsets)
            top = np.partition(values, -2, axis=1)
            order = np.argsort(top[:, -1] - top[:, -2], kind="stable")
            rows, others = np.sort(order[:size]), order[size:]
            decided = largest_class(values[others])
            fixed_rates = problem.take(others).rates(decided)
        found = _program(problem.take(rows), bound, fixed_rates)
        offsets = found.offsets
        if decided is None:
            return replace(found, people=rows)
        rest = problem.take(others)
        values = rest.values(offsets)
        held = np.take_along_axis(values, decided[:, None], 1)[:, 0]
        if (held >= values.max(axis=1) - 1e-12).all():
            return replace(found, people=rows, accuracy=found.accuracy + rest.accuracy(decided))
        size = min(size if turn < 2 else 2 * size, n_rows)
    raise SolverError(
        f"The linear program of the offsets did not converge within {_MOST_ROUNDS} rounds. Check "
        "the probabilities for many equal rows."
    )


def _program(problem: _Problem, bound: float, fixed: FloatArray) -> _Solution:
    """Solve the linear program of some people; the rates of the others are fixed."""
    n_rows, n_classes = problem.chances.shape
    n_groups, n_labels = problem.n_groups, len(problem.cells)
    # Variables: every decision, the middle of every compared rate, the gap of every label, and
    # by how much the bound is missed.
    compared = [(label, own) for label, cells in enumerate(problem.cells) for own in cells]
    # A rate lies at most half of its label's gap above the middle, and at most half below.
    sides = np.array([[1.0], [-1.0]])
    moves = sparse.csr_array((problem.reach * problem.mass[:, None]).T)
    rates = sparse.vstack(
        [sparse.kron(moves[label::n_labels], np.eye(n_classes)[[own]]) for label, own in compared]
    )
    middles = sparse.kron(sparse.eye_array(len(compared)), np.tile(-sides, (n_groups, 1)))
    halves = np.repeat(-0.5 * np.eye(n_labels)[[label for label, _ in compared]], 2 * n_groups, 0)
    known = np.concatenate([fixed[:, label, own] for label, own in compared])
    n_people, n_rates = n_rows * n_classes, 2 * len(known)
    averaged = np.full((1, n_labels), 1.0 / n_labels) if problem.averaged else np.eye(n_labels)
    missed = np.full((len(averaged), 1), -1.0)
    # In units of one person, so that the tolerances of the solver are small.
    unit = 1.0 / problem.mass.max()
    gains = -unit * (problem.gains * problem.mass[:, None]).ravel()
    others = np.append(np.zeros(len(compared) + n_labels), unit * _PENALTY)
    optimise: Any = linprog
    found = optimise(
        np.concatenate([gains, others]),
        A_ub=sparse.block_array(
            [
                [sparse.kron(rates, sides), middles, sparse.coo_array(halves), None],
                [None, None, sparse.coo_array(averaged), sparse.coo_array(missed)],
            ],
            format="csr",
        ),
        b_ub=np.concatenate([np.kron(known, [-1.0, 1.0]), np.full(len(averaged), bound)]),
        A_eq=sparse.hstack(
            [
                sparse.kron(sparse.eye_array(n_rows), np.ones((1, n_classes))),
                sparse.coo_array((n_rows, len(others))),
            ],
            format="csr",
        ),
        b_eq=np.ones(n_rows),
        method="highs-ds",
        options={"dual_feasibility_tolerance": 1e-9, "primal_feasibility_tolerance": 1e-9},
    )
    if found.status != 0:
        raise SolverError(f"The linear program of the offsets failed: {found.message}")
    prices = (found.ineqlin.marginals[:n_rates] / unit).reshape(len(compared), n_groups, 2)
    offsets = np.zeros((n_groups, n_labels, n_classes))
    for (label, own), price in zip(compared, prices, strict=True):
        offsets[:, label, own] = price[:, 0] - price[:, 1]
    chosen = found.x[:n_people].reshape(n_rows, n_classes)
    accuracy = float((problem.chances * problem.mass[:, None] * chosen).sum())
    return _Solution(offsets.reshape(-1, n_classes), accuracy, chosen, np.arange(n_rows))


def _centred(problem: _Problem, found: _Solution, known: IndexArray) -> FloatArray:
    """Return offsets of groups that give the same decisions, with the largest margins.

    Duals are not unique, because there is room between two people. In each group the first offset
    is 0, the smallest margin is as large as possible, and then the offsets are as small as
    possible, one class after the other.
    """
    n_classes = problem.chances.shape[1]
    decided = largest_class(problem.values(found.offsets))
    split = found.shares.max(axis=1) < 1.0 - 1e-6
    tied = np.zeros(len(problem.mass), dtype=bool)
    tied[found.people[split]] = True
    decided[found.people[~split]] = found.shares[~split].argmax(axis=1)
    offsets = found.offsets.copy()
    for group in range(problem.n_groups):
        rows = np.flatnonzero((known == group) & ~tied)
        scale = problem.reach[rows[0], group] if len(rows) else 1.0
        own = offsets[group] * scale
        used = [c for c in range(n_classes) if (decided[rows] == c).any()]
        if len(used) > 1:
            own = _margins(problem.chances[rows], decided[rows], used, own)
        offsets[group] = own / scale
    return offsets


def _margins(
    chances: FloatArray, decided: IndexArray, used: list[int], start: FloatArray
) -> FloatArray:
    """Return the offsets of one group with the largest margin, and then the smallest in order."""
    pairs = [(c, other) for c in used for other in used if other != c]
    # A person who gets c must prefer it to any other class.
    least = [
        float((chances[decided == c, other] - chances[decided == c, c]).max()) for c, other in pairs
    ]
    place = {c: at for at, c in enumerate(used)}
    rows = np.zeros((len(pairs), len(used) + 1))
    for at, (c, other) in enumerate(pairs):
        rows[at, place[c]], rows[at, place[other]], rows[at, -1] = -1.0, 1.0, 1.0
    bounds: list[tuple[float | None, float | None]] = [(None, None)] * len(used) + [(None, 1.0)]
    bounds[0] = (0.0, 0.0)
    for at in [len(used), *range(1, len(used))]:
        cost = np.zeros(len(used) + 1)
        cost[at] = -1.0 if at == len(used) else 1.0
        found: Any = linprog(
            cost, A_ub=rows, b_ub=-np.array(least), bounds=bounds, method="highs-ds"
        )
        if found.status != 0:
            return start
        # A little room keeps rounding from making the next program infeasible.
        if at == len(used):
            room = found.x[at] - 1e-12
            bounds[at] = (room, room)
        else:
            bounds[at] = (found.x[at], found.x[at] + 1e-12)
    own = start - start[used[0]]
    own[used] = found.x[:-1]
    return np.asarray(own)


@dataclass(frozen=True, eq=False)
class ClassOffsets:
    r"""Offsets of the class probabilities by group, before the largest one decides.

    With demographic parity the decision of group g is :math:`\arg\max_c p_c + \psi_{gc}`.
    Otherwise it is :math:`\arg\max_c p_c + t p_c^2 + \sum_y p_y \psi_{gyc}`.

    Notes
    -----
    Among all rules that see the probabilities and the group, even randomised ones, the optimum of
    the program is the most accurate within the bound, if the probabilities are right (Xian and
    Zhao, 2024). The offsets are its duals. Rows with equal probabilities and group get the same
    decision, so the reached gap can exceed the bound by the mass of tied people. Equal recalls or
    confusion rates may require worse decisions in a group, for which every class then has the same
    value. The squared probabilities then decide, deterministically and at a cost of less than
    0.0001 in accuracy.

    Examples
    --------
    >>> import numpy as np
    >>> found = ClassOffsets(("a", "b"), np.array([[[0.0, 0.2]], [[0.0, 0.0]]]),
    ...                      "demographic_parity", (), 1.0, 0.0, (1.0, 0.0))
    >>> found.move(np.array([[0.55, 0.45], [0.55, 0.45]]), np.array([0, 1])).round(2).tolist()
    [[0.46, 0.54], [0.55, 0.45]]
    """

    labels: tuple[Any, ...]  #: Labels of the groups, sorted.
    #: The :math:`\psi`, of shape (n_groups, n_labels, n_classes); one label if none is compared.
    offsets: FloatArray
    criterion: str  #: Name of the criterion.
    conditions: tuple[int, ...]  #: Positions of the classes y; empty with demographic parity.
    #: Expected share of right decisions on the rows of the fit, by the probabilities.
    accuracy: float
    #: The gap that the decisions reach on these rows. With a criterion that conditions on the
    #: label, the rates are expected ones, by the probabilities.
    gap: float
    #: Accuracy and gap of the optimum of the linear program, which may randomise tied people.
    promised: tuple[float, float]
    ties: float = 0.0  #: The small number t of the rule; 0 with demographic parity.
    #: Names of the attributes whose combinations are the groups, if there are several.
    attributes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shape = (len(self.labels), len(self.conditions) or 1)
        if self.offsets.ndim != 3 or self.offsets.shape[:2] != shape:
            raise ValueError("every group needs offsets")
        if not np.isfinite(self.offsets).all():
            raise ValueError("the offsets must be finite")
        if any(not 0 <= own < self.n_classes for own in self.conditions):
            raise ValueError("the conditions are not classes")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.offsets.shape[2])

    def move(self, scores: FloatArray, codes: NDArray[Any]) -> FloatArray:
        """Return adjusted vectors, whose largest entry is the decision; code -1 keeps its score."""
        members = np.eye(len(self.labels) + 1)[codes][:, :-1]
        return self.move_members(scores, members)

    def move_members(self, scores: FloatArray, members: FloatArray) -> FloatArray:
        """Return adjusted vectors for memberships, with P(group) or P(group, class) of each row."""
        weights = _weights(scores, members, self.conditions)
        values = scores + self.ties * scores**2
        values += weights @ self.offsets.reshape(-1, scores.shape[1])
        # The order of the classes stays, and people without offsets keep their probabilities.
        values -= np.minimum(values.min(axis=1, keepdims=True), 0.0)
        values /= values.sum(axis=1, keepdims=True)
        moves = (members.reshape(len(scores), -1).sum(axis=1) > 0.0) & bool(self.offsets.any())
        return np.asarray(np.where(moves[:, None], values, scores))


def fit_offsets(
    chances: FloatArray,
    members: FloatArray,
    mass: FloatArray,
    criterion: Criterion,
    labels: tuple[Any, ...],
    *,
    max_gap: float | None = None,
    strengths: Sequence[float] = (),
    favourable: Sequence[int] = (),
    attributes: tuple[str, ...] = (),
) -> list[ClassOffsets]:
    """Return offsets within a bound, or one per strength: the share of the gap that is removed.

    ``members`` has one column per group: 0 and 1 where groups are known, and probabilities of
    groups where they are not; with one axis more, those of groups and classes.
    """
    # The order of rows must not choose among tied optima.
    keys = members.reshape(len(members), -1)
    order = np.lexsort([*chances.T[::-1], *keys.T[::-1], mass])
    problem = _Problem.of(chances[order], members[order], mass[order], criterion, favourable)
    hard = bool(np.isin(members, (0.0, 1.0)).all()) and not problem.conditions
    plain = largest_class(problem.chances)
    before = problem.gap(problem.rates(plain))
    bounds = [max_gap] if max_gap is not None else [(1.0 - own) * before for own in strengths]
    found, start = [], None
    for bound in bounds:
        nothing = np.zeros((problem.reach.shape[1], chances.shape[1]))
        if bound >= before - _ROUNDING:
            offsets, promised = nothing, (problem.accuracy(plain), before)
        else:
            solved = _solve(problem, bound, start)
            start = solved.offsets
            offsets = (
                _centred(problem, solved, members[order].argmax(axis=1)) if hard else solved.offsets
            )
            promised = solved.accuracy, bound
        if all(len(own) == chances.shape[1] for own in problem.cells):
            offsets = offsets - offsets[:, :1]  # a constant for all classes decides nothing
        decided = largest_class(problem.values(offsets))
        scaled = offsets / problem.totals[:, None]
        found.append(
            ClassOffsets(
                labels,
                scaled.reshape(members.shape[1], -1, chances.shape[1]),
                criterion.name,
                problem.conditions,
                problem.accuracy(decided),
                problem.gap(problem.rates(decided)),
                promised,
                problem.ties,
                attributes,
            )
        )
    if max_gap is not None and found[0].gap > max_gap + _FEW_TIED:
        notify(
            f"Offsets reach a gap of {found[0].gap:.4g} on these rows, but max_gap is "
            f"{max_gap:g}: many people of a group have equal probabilities, and equal "
            "probabilities get the same decision. Use finer probabilities, or allow a larger gap.",
            GapNotReachedWarning,
        )
    return found
