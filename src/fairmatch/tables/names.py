"""Names of columns: which of them a table lacks, and the nearest names that it has."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from fairmatch.exceptions import ColumnError

_SHOWN = 12


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was most likely meant, or None.

    Parameters
    ----------
    name : str
        The name as it was written.
    known : iterable of str
        The existing names.

    Examples
    --------
    >>> from fairmatch.tables.names import nearest_name
    >>> nearest_name("SEX", ["age", "sex"]), nearest_name("income", ["age", "sex"])
    ('sex', None)
    """
    folded = {other.casefold(): other for other in known}
    near = get_close_matches(name.casefold(), folded, n=1)
    return folded[near[0]] if near else None


def near_names(given: Iterable[str], known: Sequence[str]) -> str:
    """Return a line for each unknown name that is close to a known one.

    Parameters
    ----------
    given : iterable of str
        The names as they were written.
    known : sequence of str
        The existing names.

    Examples
    --------
    >>> from fairmatch.tables.names import near_names
    >>> print(near_names(["age", "sx"], ["age", "sex"]).strip())
    Did you mean 'sex' by 'sx'?
    """
    there = set(known)
    strange = [name for name in given if name not in there][:_SHOWN]
    pairs = [(name, nearest_name(name, known)) for name in strange]
    return "".join(f"\nDid you mean {near!r} by {name!r}?" for name, near in pairs if near)


def check_names(wanted: Iterable[str], known: Sequence[str], *, table: object) -> None:
    """Raise unless a table has all of these columns. The error names every missing column.

    Parameters
    ----------
    wanted : iterable of str
        The columns that the table must have.
    known : sequence of str
        Columns of the table.
    table : object
        How the error names the table, for example by its file.

    Raises
    ------
    ColumnError
        If columns are missing. The error suggests the nearest name for each.

    Examples
    --------
    >>> from fairmatch.tables.names import check_names
    >>> check_names(["scor", "race"], ["score", "sex"], table="people.csv")
    Traceback (most recent call last):
    fairmatch.exceptions.ColumnError: people.csv has no columns 'scor' and 'race'.
    Did you mean 'score' by 'scor'? There are: score, sex.
    """
    absent = [name for name in dict.fromkeys(wanted) if name not in known]
    if not absent:
        return
    lists = [name for name in absent if _is_list(name, known)]
    near = {name: nearest_name(name, known) for name in absent if name not in lists}
    near = {name: other for name, other in near.items() if other}
    several = len(absent) > 1
    hints = [f"Put spaces between the names of {name!r} instead of commas." for name in lists]
    hints += [
        f"Did you mean {other!r}{f' by {name!r}' if several else ''}?"
        for name, other in near.items()
    ]
    if len(near) + len(lists) < len(absent):
        rest = ", …" if len(known) > _SHOWN else ""
        hints.append(f"There are: {', '.join(known[:_SHOWN])}{rest}.")
    listed = ", ".join(repr(name) for name in absent[:-1]) + " and " * several + repr(absent[-1])
    raise ColumnError(f"{table} has no column{'s' * several} {listed}. {' '.join(hints)}")


def _is_list(name: str, known: Sequence[str]) -> bool:
    """Return whether a name is a list of known names, with commas between them."""
    parts = [part.strip() for part in name.split(",")]
    return len(parts) > 1 and all(part in known for part in parts)
