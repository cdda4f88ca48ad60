"""What a person must decide before a model learns from a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pandas as pd

from fairmatch.tables.leaks import Leak, find_leaks
from fairmatch.tables.roles import RoleTable


@dataclass(frozen=True)
class Questions:
    """Columns of a table that a person must decide about, and those worth a look.

    Attributes
    ----------
    open : tuple of str
        One line for every column that needs a decision before a model learns from it.
    notes : tuple of str
        One line for every column that is worth a look but may be right as it is.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairmatch.tables.questions import ask
    >>> from fairmatch.tables.roles import Roles
    >>> people = pd.DataFrame({"sex": ["f", "m"] * 40, "age": range(20, 100)})
    >>> people["title"] = people.sex.map({"f": "Ms", "m": "Mr"})
    >>> people["hired"] = [0, 0, 1, 1] * 20
    >>> roles = Roles(sensitive="sex", label="hired").read(people)
    >>> ask(people, roles, sees_groups=False).open
    ("column 'title' determines the group",)
    """

    open: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def ask(
    frame: pd.DataFrame, roles: RoleTable, *, sees_groups: bool, kept: Collection[str] = ()
) -> Questions:
    """Find what must be decided before a model learns from a table.

    Parameters
    ----------
    frame : DataFrame
        The table.
    roles : RoleTable
        The role of each column.
    sees_groups : bool
        Whether the model is meant to see the group. If it is not, a feature that gives the group
        away needs a decision. If it is, such a feature is a note.
    kept : collection of str
        Features on which a decision was already made.

    Returns
    -------
    Questions
        The open questions. They concern columns that look like scores or labels, numbers that
        were read as text, features that hold the label, and features that hold the group.
    """
    looks = [f"column {column.name!r} {column.doubt}" for column in roles.columns if column.asks]
    asked = {column.name for column in roles.columns if column.asks}
    features = [name for name in roles.features if name not in kept and name not in asked]
    told: list[tuple[str, str]] = []
    notes: list[tuple[str, str]] = []
    if features:
        table = frame[features]
        for label in roles.named("label"):
            for leak in find_leaks(table, frame[label].to_numpy()):
                # A column with as few values as the label is the label in other words. With more
                # values, a threshold on the column may determine the label legitimately.
                few = table[leak.column].nunique() <= frame[label].nunique()
                if leak.is_exact:
                    (told if few else notes).append((leak.column, _words(leak, label)))
        attributes = roles.named("sensitive")
        groups = frame[attributes] if len(attributes) > 1 else frame[attributes[0]].to_numpy()
        for leak in find_leaks(table, groups):
            if sees_groups:
                notes.append((leak.column, f"{leak.words}, which the model sees anyway"))
            else:
                (told if leak.is_exact else notes).append((leak.column, leak.words))
    return Questions((*looks, *_by_column(told)), _by_column(notes))


def _words(leak: Leak, label: str) -> str:
    if leak.group is not None:
        return f"column {leak.column!r} shows where the label {label!r} is {leak.group!r}"
    verb = "is" if leak.kind == "copy" else "determines"
    return f"column {leak.column!r} {verb} the label {label!r}"


def _by_column(lines: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return one line for every column, the first one of each."""
    first: dict[str, str] = {}
    for column, words in lines:
        first.setdefault(column, words)
    return tuple(first.values())
