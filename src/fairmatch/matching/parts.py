"""The parts of a matching: each group with the reference group, within each compared class."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairmatch.exceptions import CouplingError, GroupError, InputError, LabelError
from fairmatch.matching.coupling import Certificate, Coupling, IndexArray
from fairmatch.tables.arrays import BoolArray, FloatArray
from fairmatch.tables.criterion import Criterion, read_criterion
from fairmatch.tables.groups import Groups

PART_WEIGHTS = ("equal", "size")


@dataclass(frozen=True, eq=False)
class PartRows:
    """The rows of two groups to be matched with each other.

    Attributes
    ----------
    source, target : int
        Code of a group, and code of the reference group.
    label : bool or None
        The class of the rows: True is Y = 1, False is Y = 0, None is everybody.
    source_rows, target_rows : array of int
        Positions of the rows that carry mass.
    weight : float
        Weight of the part. The weights of all parts sum to 1.
    """

    source: int
    target: int
    label: bool | None
    source_rows: IndexArray
    target_rows: IndexArray
    weight: float

    @property
    def in_order(self) -> tuple[IndexArray, IndexArray]:
        """The rows of the group with the smaller code, and then those of the other group.

        There may be several optimal matchings. Which one is found must not depend on which group
        is larger. So groups are matched in this order, and the result is reversed if necessary.
        """
        rows = self.source_rows, self.target_rows
        return rows if self.source < self.target else (rows[1], rows[0])

    def coupling(
        self, first: IndexArray, second: IndexArray, mass: FloatArray, groups: Groups, **facts: Any
    ) -> Coupling:
        """Return the coupling of this part.

        Parameters
        ----------
        first, second : array of int
            Row positions of the two groups, in the order of `in_order`.
        mass : array of float
            Mass of every pair.
        groups : Groups
            The groups of the table.
        **facts
            Further fields of the coupling, such as its certificate.
        """
        for array in (first, second, mass):
            array.flags.writeable = False  # no one else holds them, so the coupling need not copy
        ends = (first, second) if self.source < self.target else (second, first)
        return Coupling(
            *ends,
            mass,
            n_rows=len(groups),
            groups=(groups.labels[self.source], groups.labels[self.target]),
            label=self.label,
            weight=self.weight,
            **facts,
        )


def plan_parts(
    groups: Groups,
    *,
    criterion: str | Criterion = "demographic_parity",
    positive: BoolArray | None = None,
    weights: FloatArray | None = None,
    reference: Any = None,
    part_weights: str = "equal",
    ignored: Sequence[int] = (),
) -> list[PartRows]:
    """Return the parts of a matching: every group with the reference, within each compared class.

    Parameters
    ----------
    groups : Groups
        Group of every row.
    criterion : str or Criterion, default="demographic_parity"
        The criterion, which decides which classes are compared.
    positive : array of bool, shape (n_rows,), optional
        Which rows have Y = 1. It is needed if the criterion compares people of the same class.
    weights : array of shape (n_rows,), optional
        Weight of every row. Rows of weight zero are not matched.
    reference : a group label, optional
        The group with which every other group is matched. By default it is the largest.
    part_weights : {"equal", "size"}, default="equal"
        With ``"equal"`` every part has the same weight, so small groups count as much as large
        ones. With ``"size"`` a part weighs as much as the group that it matches with the reference.
    ignored : sequence of int, default=()
        Codes of groups that are not matched.

    Examples
    --------
    >>> from fairmatch.tables.groups import read_groups
    >>> parts = plan_parts(read_groups(["a", "b", "b", "c"]))
    >>> [(part.source, part.target, part.weight) for part in parts]
    [(0, 1, 0.5), (2, 1, 0.5)]
    """
    criterion = read_criterion(criterion)
    if part_weights not in PART_WEIGHTS:
        raise InputError(
            f"part_weights must be 'equal' or 'size', got {part_weights!r}. Pass one of the two."
        )
    target = groups.reference(reference, weights)
    if target in ignored:
        raise GroupError(
            f"The reference group {groups.labels[target]!r} is among the groups that are not "
            "matched. Name another reference."
        )
    sources = [c for c in range(groups.n_groups) if c != target and c not in ignored]
    if not sources:
        raise GroupError(
            f"No group is left to match with the reference group {groups.labels[target]!r}, and at "
            "least one is needed. Ignore fewer groups."
        )
    planned = []
    for label, inside in criterion.strata(positive, len(groups)):
        carried = inside if weights is None else inside & (weights > 0.0)
        rows = {
            code: _rows_of(groups, code, carried, inside, label, criterion)
            for code in (target, *sources)
        }
        for code in sources:
            size = len(rows[code]) if weights is None else float(weights[rows[code]].sum())
            share = 1.0 if part_weights == "equal" else size
            planned.append(PartRows(code, target, label, rows[code], rows[target], share))
    total = sum(part.weight for part in planned)
    return [replace(part, weight=part.weight / total) for part in planned]


def rows_with_mass(groups: Groups, weights: FloatArray | None) -> list[IndexArray]:
    """Return the rows of each group that carry mass. Raise if a group has none."""
    return [
        _rows_of(groups, code, np.ones(len(groups), bool) if weights is None else weights > 0.0)
        for code in range(groups.n_groups)
    ]


def _rows_of(
    groups: Groups,
    code: int,
    carried: BoolArray,
    inside: BoolArray | None = None,
    label: bool | None = None,
    criterion: Criterion | None = None,
) -> IndexArray:
    rows = np.flatnonzero(groups.is_group(code) & carried)
    if len(rows):
        return rows
    name = groups.labels[code]
    if not groups.is_group(code).any():
        raise GroupError(
            f"Group {name!r} has no rows to match, and every group needs some. Leave it out."
        )
    empty = inside is not None and not (groups.is_group(code) & inside).any()
    if empty and criterion is not None:
        raise LabelError(
            f"Group {name!r} has no rows with a {'positive' if label else 'negative'} label, so "
            f"criterion={criterion.name!r} is undefined for it. Pool the group with another, "
            "leave it out, or use criterion='demographic_parity'."
        )
    raise GroupError(
        f"The weights of group {name!r} sum to zero, and every group needs a positive weight. "
        "Leave this group out, or correct the weights."
    )


def join_parts(parts: Sequence[Coupling]) -> Coupling:
    """Return the weighted sum of couplings of two groups each.

    Parameters
    ----------
    parts : sequence of Coupling
        Couplings of the same table. Each counts in proportion to its ``weight``.

    Returns
    -------
    Coupling
        The weighted sum. A single part is returned with weight 1.

    Examples
    --------
    >>> a = Coupling([0], [2], [1.0], n_rows=3, groups=("a", "c"), weight=0.5)
    >>> b = Coupling([1], [2], [1.0], n_rows=3, groups=("b", "c"), weight=0.5)
    >>> joined = join_parts([a, b])
    >>> joined.mass.tolist(), joined.gap([0.0, 0.5, 1.0]), joined.largest_gap([0.0, 0.5, 1.0])
    ([0.5, 0.5], 0.75, 1.0)
    """
    if not parts:
        raise CouplingError("There is no part to join, and at least one is needed. Pass couplings.")
    if len(lengths := {part.n_rows for part in parts}) > 1:
        raise CouplingError(
            f"The parts were made for tables of different lengths ({min(lengths)} to "
            f"{max(lengths)} rows), and all must match one table. Match one table in parts."
        )
    total = sum(part.weight for part in parts)
    members = tuple(replace(part, weight=part.weight / total) for part in parts)
    if len(members) == 1:
        return members[0]
    certificates = [part.certificate for part in members]
    labels = dict.fromkeys(label for part in members for label in part.groups)
    mass = np.concatenate([part.weight * part.mass for part in members])
    return Coupling(
        np.concatenate([part.source_index for part in members]),
        np.concatenate([part.target_index for part in members]),
        mass / mass.sum(),
        n_rows=members[0].n_rows,
        groups=tuple(labels),
        certificate=_joined(members) if all(certificates) else None,
        undetermined=sum(part.weight * part.undetermined for part in members),
        marginal_error=max(part.marginal_error for part in members),
        members=members,
    )


def _joined(parts: Sequence[Coupling]) -> Certificate:
    """Return the certificate of a weighted sum, in which costs and bounds add up like the parts."""
    proofs = [(part.weight, part.certificate) for part in parts if part.certificate is not None]
    doubts = [1.0 - proof.confidence for _, proof in proofs if proof.confidence is not None]
    return Certificate(
        sum(weight * proof.cost for weight, proof in proofs),
        sum(weight * proof.bound for weight, proof in proofs),
        "; ".join(dict.fromkeys(proof.solver for _, proof in proofs)),
        max(0.0, 1.0 - sum(doubts)) if doubts else None,
    )


def couple_parts(parts: Sequence[PartRows], couple: Callable[[PartRows], Coupling]) -> Coupling:
    """Return the coupling of all parts, each made by ``couple``."""
    return join_parts([couple(part) for part in parts])
