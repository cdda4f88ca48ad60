"""What an audit is for, and how its table was read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class About:
    """What people want to know of an audit before they read it.

    Attributes
    ----------
    title, author, date, purpose : str or None
        The texts as they were given, or None where none was given.
    """

    title: str | None = None
    author: str | None = None
    date: str | None = None
    purpose: str | None = None


@dataclass(frozen=True)
class LeakFacts:
    """A column that gives the group away.

    Attributes
    ----------
    column : str
        The column.
    kind : {"copy", "determines", "near"}
        ``"copy"`` if it holds the names of the groups, ``"determines"`` if it determines the group
        in every row, and ``"near"`` if it does so in nearly every row.
    attribute : str or None
        The attribute that it gives away, where there are several.
    group : str or None
        The one group that it tells from all others. It is None where it tells all groups apart.
    agreement : float
        Agreement with the group beyond chance, from 0 to 1.
    words : str
        A description of the leak.
    """

    column: str
    kind: str
    attribute: str | None
    group: str | None
    agreement: float
    words: str
