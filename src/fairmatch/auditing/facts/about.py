"""What an audit is for, and how its table was read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class About:
    """What people want to know of an audit before they read it.

    Attributes
    ----------
    title, author, date, purpose : str or None
        As they were given; None where they were not.
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
        Whether it holds the groups' own names, determines them in every row, or nearly so.
    attribute : str or None
        The attribute that it gives away, where there are several.
    group : str or None
        The one group that it tells from all others; None where it tells all groups apart.
    agreement : float
        Agreement with the group beyond chance, from 0 to 1.
    words : str
        The same in words.
    """

    column: str
    kind: str
    attribute: str | None
    group: str | None
    agreement: float
    words: str
