"""People: the rows of a table with their groups, labels and weights, parsed once.

A public function turns its arguments into `People`, calls one internal function and wraps the
result. Internal functions take `People` and arrays of scores. They never parse, and they never
check what was checked here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike, NDArray

from fairmatch.exceptions import GroupError, LabelError
from fairmatch.people.checks import (
    BoolArray,
    FloatArray,
    is_missing,
    read_column,
    read_labels,
    read_weights,
)
from fairmatch.people.encoding import Table, as_table
from fairmatch.people.groups import Criterion, Groups, read_groups
from fairmatch.people.outcome import class_codes
from fairmatch.people.strata import Codes, read_given
from fairmatch.people.weights import Weights

IndexArray = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Labels:
    """The true outcome of every row: one of two or more classes, or a number."""

    #: 1 for the positive class and 0 for the other one, the position of the class among several, or
    #: the numbers; NaN where it is unknown.
    values: FloatArray
    #: The negative class and the positive one, or all of several classes; None for numbers.
    classes: tuple[Any, ...] | None = None

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def positive(self) -> BoolArray:
        """Which rows have the positive label."""
        return np.asarray(self.values > 0.0)

    @cached_property
    def known(self) -> BoolArray:
        """Which rows have a label."""
        return ~np.isnan(self.values)

    def take(self, rows: IndexArray) -> Labels:
        """Return the labels of some of the rows."""
        return replace(self, values=self.values[rows])


@dataclass(frozen=True)
class Comparison:
    """Two groups whose people are compared, within one class and one stratum."""

    #: Code of a group, and code of the reference group.
    source: int
    target: int
    #: The class of the rows: True is Y = 1, False is Y = 0, None is everybody. With several classes
    #: it is the position of the class.
    label: int | None
    #: Positions of the rows that carry mass.
    source_rows: IndexArray
    target_rows: IndexArray
    weight: float  #: Weight of the comparison. The weights of all comparisons sum to 1.
    #: Code of the stratum that the rows are from; None where there are no strata.
    stratum: int | None = None

    @property
    def in_order(self) -> tuple[IndexArray, IndexArray]:
        """The rows of the group with the smaller code, and then those of the other group.

        There may be several optimal matchings. Which one is found must not depend on which group
        is larger. So groups are matched in this order, and the result is reversed if necessary.
        """
        rows = self.source_rows, self.target_rows
        return rows if self.source < self.target else (rows[1], rows[0])

    def masses(self, people: People) -> tuple[FloatArray, FloatArray] | tuple[None, None]:
        """Return the shares of the rows `in_order`. They are None if all rows weigh the same."""
        weights = people.weights
        if weights is None:
            return None, None
        first, second = (weights[rows] / weights[rows].sum() for rows in self.in_order)
        return first, second


@dataclass(frozen=True, eq=False)
class People:
    """The rows of a table, parsed once.

    Examples
    --------
    >>> from fairmatch.people.groups import read_criterion, read_groups
    >>> people = People(read_groups(["a", "b", "b", "c"]))
    >>> parity = read_criterion("demographic_parity")
    >>> [(found.source, found.target, found.weight) for found in people.comparisons(parity)]
    [(0, 1, 0.5), (2, 1, 0.5)]
    >>> len(people.take(np.array([0, 1])))
    2
    """

    groups: Groups  #: The protected group of every row.
    table: Table | None = None  #: The columns that describe people.
    labels: Labels | None = None  #: What is true of every row.
    #: Weight of every row. By default every row is one person.
    weight: Weights = None  # type: ignore[assignment]  # set below
    #: Levels within which people are compared. None compares everybody.
    strata: Codes | None = None
    #: Identifier of every row. Rows with the same identifier are the same person.
    ids: tuple[str, ...] | None = None
    #: Position of every person, where distances do not come from the table.
    embedding: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        if self.weight is None:
            object.__setattr__(self, "weight", Weights(len(self)))

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def weights(self) -> FloatArray | None:
        """Weight of every row as numbers; None where every row is one person."""
        return self.weight.values

    @property
    def mass(self) -> FloatArray:
        """Weight of every row as numbers; all ones if there are no weights."""
        weights = self.weights
        return np.ones(len(self)) if weights is None else weights

    @property
    def positive(self) -> BoolArray | None:
        """Which rows have the positive label; None without labels of two classes."""
        labels = self.labels
        two = labels is not None and labels.classes is not None and len(labels.classes) == 2
        return labels.positive if labels is not None and two else None

    @property
    def has_classes(self) -> bool:
        """Whether the class of every row is known: one of two, or one of several."""
        return self.labels is not None and self.labels.classes is not None

    def stratum(self, comparison: Comparison) -> str | None:
        """Return the label of the stratum within which people are compared, if there are strata."""
        if self.strata is None or comparison.stratum is None:
            return None
        return self.strata.labels[comparison.stratum]

    def take(self, rows: IndexArray) -> People:
        """Return some of the people, in this order."""
        return People(
            self.groups.take(rows),
            None if self.table is None else self.table.take(rows),
            None if self.labels is None else self.labels.take(rows),
            self.weight.take(rows),
            None if self.strata is None else self.strata.take(rows),
            None if self.ids is None else tuple(self.ids[row] for row in rows),
            None if self.embedding is None else self.embedding[rows],
        )

    def expanded(self) -> tuple[People, IndexArray]:
        """Return people with a row for every group that they may belong to, and the row of each.

        The weight of a row is the probability of its group. Rows of the same person stay one
        person.
        """
        assert self.groups.memberships is not None
        rows, codes = np.nonzero(self.groups.memberships)
        persons = self.weight.persons
        weight = Weights(
            len(rows),
            self.mass[rows] * self.groups.memberships[rows, codes],
            persons=rows if persons is None else persons[rows],
        )
        groups = Groups(codes, self.groups.labels)
        return replace(self.take(rows), groups=groups, weight=weight), rows

    def comparisons(self, criterion: Criterion, reference: Any = None) -> list[Comparison]:
        """Return every group with the reference group, within each compared class and stratum.

        The reference is the largest group, unless one is named. Bands of a number are compared with
        the next band instead, unless a reference is named. All comparisons weigh the same, so small
        groups count as much as large ones. Strata without people of both groups are left out, and
        strata weigh by their people.
        """
        groups, weights = self.groups, self.weights
        target = groups.reference(reference, weights)
        if target in groups.apart:
            raise GroupError(
                f"The reference group {groups.labels[target]!r} is among the groups that are not "
                "compared. Name another reference."
            )
        sources = [code for code in groups.compared if code != target]
        if not sources:
            raise GroupError(
                f"No group is left to compare with the reference group {groups.labels[target]!r}, "
                "and at least one is needed. Ignore fewer groups."
            )
        pairs = [(code, target) for code in sources]
        if groups.ordered and reference is None:
            pairs = list(pairwise(groups.compared))
        found = []
        for label, inside in self.label_strata(criterion):
            rows = {code: self._rows(code, inside, label, criterion) for code in (target, *sources)}
            for source, other in pairs:
                found += self._within(source, other, label, rows)
        total = sum(comparison.weight for comparison in found)
        return [replace(comparison, weight=comparison.weight / total) for comparison in found]

    def label_strata(self, criterion: Criterion) -> list[tuple[int | None, BoolArray]]:
        """Return the compared classes, each with a mask of its rows; all of several classes."""
        if not criterion.needs_labels:
            return [(None, np.ones(len(self), dtype=bool))]
        if self.labels is None or self.labels.classes is None:
            raise LabelError(
                f"criterion={criterion.name!r} compares people of the same class, so it needs the "
                "true labels. Pass the labels, or use criterion='demographic_parity'."
            )
        several = len(self.labels.classes) > 2
        codes = range(len(self.labels.classes)) if several else criterion.labels
        return [(code, self.labels.values == code) for code in codes]

    def _within(
        self, source: int, target: int, label: int | None, rows: dict[int, IndexArray]
    ) -> list[Comparison]:
        """Return the comparisons of two groups within the strata, with weights that sum to 1."""
        own, other = rows[source], rows[target]
        if self.strata is None:
            return [Comparison(source, target, label, own, other, 1.0)]
        found = []
        own_at, other_at = self.strata.rows_of(own), self.strata.rows_of(other)
        for code in sorted(own_at.keys() & other_at.keys()):
            at = own_at[code], other_at[code]
            mass = float(self.mass[np.concatenate(at)].sum())
            found.append(Comparison(source, target, label, *at, mass, code))
        if not found:
            names = self.groups.labels[source], self.groups.labels[target]
            raise GroupError(
                f"No stratum holds people of both {names[0]!r} and {names[1]!r}, so they cannot be "
                "compared. Condition on fewer factors, or on wider bands."
            )
        total = sum(comparison.weight for comparison in found)
        return [replace(comparison, weight=comparison.weight / total) for comparison in found]

    def rows_with_mass(self) -> list[IndexArray]:
        """Return the rows of each compared group that carry mass. Raise if a group has none."""
        return [self._rows(code) for code in self.groups.compared]

    def _rows(
        self,
        code: int,
        inside: BoolArray | bool = True,
        label: int | None = None,
        criterion: Criterion | None = None,
    ) -> IndexArray:
        """Return the rows of a group, inside of a class, that carry mass. Raise if none do."""
        memberships, weights = self.groups.memberships, self.weights
        is_group = self.groups.is_group(code)
        if memberships is not None:
            is_group = memberships[:, code] > 0.0
        rows = np.flatnonzero(is_group & inside & (True if weights is None else weights > 0.0))
        if len(rows):
            return rows
        name = self.groups.labels[code]
        if not is_group.any():
            raise GroupError(
                f"Group {name!r} has no rows to compare, and every group needs some. Leave it out."
            )
        if criterion is not None and not (is_group & inside).any():
            which = f"a {'positive' if label else 'negative'} label"
            if self.positive is None and self.labels is not None and self.labels.classes:
                which = f"the label {self.labels.classes[label or 0]!r}"
            raise LabelError(
                f"Group {name!r} has no rows with {which}, so "
                f"criterion={criterion.name!r} is undefined for it. Pool the group with "
                "another, leave it out, or use criterion='demographic_parity'."
            )
        raise GroupError(
            f"The weights of group {name!r} sum to zero, and every group needs a positive weight. "
            "Leave this group out, or correct the weights."
        )


def read_people(
    sensitive_features: Any,
    *,
    n_rows: int,
    X: Any = None,
    y: Any = None,
    pos_label: Any = 1,
    sample_weight: ArrayLike | None = None,
    name: str = "y_true",
    given: Any = None,
    estimated: bool = False,
    classes: tuple[Any, ...] = (),
) -> People:
    """Read what callers pass about people.

    ``name`` is how errors name the labels ``y``. With ``pos_label=None`` the greater of two labels
    is positive; with ``classes`` there are more than two. Groups may be probabilities if
    ``estimated``. The table is read when it is needed.
    """
    groups = read_groups(sensitive_features, n_rows=n_rows, estimated=estimated)
    weight = Weights(n_rows, read_weights(sample_weight, n_rows=n_rows))
    labels = None
    if y is not None and classes:
        labels = Labels(class_codes(y, classes, n_rows=n_rows, name=name), classes)
    elif y is not None:
        if pos_label is None:
            known = read_column(y, name)
            found = set(known[~is_missing(known)].tolist())
            try:
                pos_label = max(found, default=None)
            except TypeError:
                kinds = sorted({type(value).__name__ for value in found})
                raise LabelError(
                    f"{name} holds values of different types ({', '.join(kinds)}), so it is "
                    "unclear which class is the greater one. Pass labels of one type, such as 0 "
                    "and 1."
                ) from None
        positive = read_labels(y, n_rows=n_rows, pos_label=pos_label, name=name)
        labels = Labels(positive.astype(np.float64), (None, pos_label))
    table = None if X is None else as_table(X)
    return People(
        groups,
        table,
        labels,
        weight,
        read_given(given, n_rows=n_rows, table=table),
    )
