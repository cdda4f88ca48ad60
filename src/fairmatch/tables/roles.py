"""The role of every column of a table, how it is read, and what a person should check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from fairmatch.exceptions import ColumnError, GroupError, InputError
from fairmatch.tables.names import check_names
from fairmatch.tables.suspicions import ColumnFacts, Suspicion, describe_column, suspect

ROLES = ("score", "sensitive", "label", "id", "weight", "feature", "ignored")
"""The roles that a column can have, in the order in which tables show them."""

# So many groups are compared in a table of any size.
_FEW_GROUPS = 30


@dataclass(frozen=True)
class ColumnRole:
    """How one column is read.

    Attributes
    ----------
    name : str
        The column.
    role : str
        One of `ROLES`.
    type : str
        What the column holds: "whole numbers", "numbers", "text", "yes or no", "categories",
        "dates", "nothing" or "mixed values".
    n_missing, n_distinct : int
        Number of missing values, and number of different values among the others.
    why : str
        Why the column has this role.
    doubt : str
        What a person should check. It is empty if there is no doubt.
    asks : bool
        Whether a person must decide before a model learns from the column.
    """

    name: str
    role: str
    type: str
    n_missing: int
    n_distinct: int
    why: str
    doubt: str = ""
    asks: bool = False


@dataclass(frozen=True)
class RoleTable:
    """How every column of a table is read.

    Attributes
    ----------
    columns : tuple of ColumnRole
        One entry per column, in the table's order.
    n_rows : int
        Number of rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairmatch.tables.roles import Roles
    >>> people = pd.DataFrame({"id": [7, 9, 8], "age": [31, 54, 31], "sex": ["f", "m", "f"]})
    >>> table = Roles(sensitive="sex").read(people)
    >>> table.features, [column.name for column in table.doubtful]
    (['age'], ['id'])
    """

    columns: tuple[ColumnRole, ...]
    n_rows: int

    def named(self, role: str) -> list[str]:
        """Return the names of the columns with this role."""
        return [column.name for column in self.columns if column.role == role]

    @property
    def features(self) -> list[str]:
        """The columns that describe people."""
        return self.named("feature")

    @property
    def doubtful(self) -> tuple[ColumnRole, ...]:
        """The columns that a person should check."""
        return tuple(column for column in self.columns if column.doubt)

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows of a text table, for a terminal or a page."""
        head = ["column", "role", "read as", "missing", "different", "why"]
        ordered = sorted(self.columns, key=lambda column: ROLES.index(column.role))
        rows = [
            [
                column.name,
                column.role,
                column.type,
                f"{column.n_missing:,}",
                f"{column.n_distinct:,}",
                "; ".join(part for part in (column.why, column.doubt) if part),
            ]
            for column in ordered
        ]
        return head, rows


@dataclass(frozen=True)
class Roles:
    """The columns of a table that were named for a role.

    Parameters
    ----------
    scores : sequence of str
        Columns with scores. Each stands for a model.
    sensitive : str or sequence of str
        Column of the group, or of the attributes whose combinations are the groups.
    label : str, optional
        Column of the outcome, which a model learns to predict.
    id : str, optional
        Column that identifies people.
    weight : str, optional
        Column with the weight of each row.
    features : sequence of str, optional
        Columns that describe people. By default these are all columns without another role, except
        those that are surely identifiers or cannot be used.
    ignored : sequence of str
        Columns to leave out.
    kept : sequence of str
        Columns to use as features, even if they look suspicious. Other columns may be features too.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairmatch.tables.roles import Roles
    >>> people = pd.DataFrame({"pd": [0.1, 0.4], "sex": ["f", "m"], "age": [31, 54]})
    >>> for row in Roles(scores=["pd"], sensitive="sex").read(people).cells()[1]:
    ...     print(row[:3])
    ['pd', 'score', 'numbers']
    ['sex', 'sensitive', 'text']
    ['age', 'feature', 'whole numbers']
    """

    scores: Sequence[str] = ()
    sensitive: str | Sequence[str] = ()
    label: str | None = None
    id: str | None = None
    weight: str | None = None
    features: Sequence[str] | None = None
    ignored: Sequence[str] = ()
    kept: Sequence[str] = ()

    def named(self) -> Iterator[tuple[str, str]]:
        """Yield every named column with its role."""
        attributes = [self.sensitive] if isinstance(self.sensitive, str) else self.sensitive
        for role, names in {
            "score": self.scores,
            "sensitive": attributes,
            "label": [self.label],
            "id": [self.id],
            "weight": [self.weight],
            "feature": [*(self.features or ()), *self.kept],
            "ignored": self.ignored,
        }.items():
            for name in names:
                if name is not None:
                    yield name, role

    def read(self, table: Any, *, name: object = "The table") -> RoleTable:
        """Find the role of every column of a table.

        Parameters
        ----------
        table : table
            A table of pandas, polars or pyarrow.
        name : object
            How errors name the table, for example by its file.

        Returns
        -------
        RoleTable
            Every column, with its role and the reason.

        Raises
        ------
        ColumnError
            If named columns are missing or are named for two roles. The error lists all of them.
        InputError
            If the table has no rows.
        GroupError
            If nearly everybody has a group of their own.
        """
        frame = nw.from_native(table, eager_only=True)
        columns = [str(column) for column in frame.columns]
        named = list(self.named())
        check_names([column for column, _ in named], columns, table=name)
        roles: dict[str, str] = {}
        clashes = []
        for column, role in named:
            if roles.setdefault(column, role) != role:
                clashes.append(f"{column!r} ({roles[column]} and {role})")
        if clashes:
            raise ColumnError(
                f"A column has one role; these are named for two: {'; '.join(clashes)}. Name each "
                "of them once."
            )
        if not len(frame):
            raise InputError(
                f"{name} has no rows, and at least one is needed. Pass a table with rows."
            )
        read = []
        for column, series in zip(columns, frame.iter_columns(), strict=True):
            facts = describe_column(column, series)
            if roles.get(column) == "sensitive":
                _refuse_no_groups(facts, len(frame))
            read.append(self._role(facts, roles.get(column)))
        return RoleTable(tuple(read), len(frame))

    def _role(self, facts: ColumnFacts, role: str | None) -> ColumnRole:
        why, doubt = ("named" if role else ""), ""
        found: Suspicion | None = None
        if role in (None, "feature"):
            found = suspect(facts, label_is_known=self.label is not None)
        if role is None:
            if self.features is not None:
                role, why = "ignored", "not among the features that were named"
                found = None
            elif found is not None and found.certain:
                role, why = "ignored", "left out"
            else:
                role, why = "feature", "no other role"
        if found is not None:
            doubt = found.words
        asks = found is not None and found.asks and role == "feature" and why != "named"
        counted = facts.n_missing, facts.n_distinct
        return ColumnRole(facts.name, role, facts.type, *counted, why, doubt, asks)


def _refuse_no_groups(facts: ColumnFacts, n_rows: int) -> None:
    """Raise if a column of groups has a value of its own for nearly everybody."""
    if facts.n_distinct > _FEW_GROUPS and facts.n_distinct > n_rows / 2:
        raise GroupError(
            f"Column {facts.name!r} has {facts.n_distinct:,} different values in {n_rows:,} rows, "
            "so it forms no groups that can be compared. Name another column, or cut numbers into "
            "ranges first."
        )
