"""Subsets of the people, described in words, and the gaps within them."""

from __future__ import annotations

from dataclasses import dataclass

from fairmatch.auditing.facts.estimates import Estimate


@dataclass(frozen=True)
class Condition:
    """One condition on one column, such as ``age > 60``.

    Attributes
    ----------
    column : str
        The column.
    operator : {"=", "!=", "<=", ">"}
        The first two for categories, the last two for numbers.
    value : str, float or None
        What it is compared with; None is a missing value.
    """

    column: str
    operator: str
    value: str | float | None

    def __str__(self) -> str:
        words = {"=": "is", "!=": "is not"}
        if self.value is None:
            return f"{self.column} {words[self.operator]} missing"
        value = f"{self.value:g}" if isinstance(self.value, float) else self.value
        return f"{self.column} {self.operator} {value}"


@dataclass(frozen=True)
class SubsetGap:
    """The gap between the groups' mean scores within one subset of people.

    Attributes
    ----------
    description : str
        The subset in words.
    conditions : tuple of Condition
        All of them hold in the subset.
    n_rows : tuple of two int
        People of each group in it.
    gap : float
        Gap between the groups' mean scores in it, over all rows.
    signed : float
        Second group minus first, over all rows.
    confirmed : Estimate
        The gap over rows that played no part in choosing the subset, with an interval that holds
        for all listed subsets at once.
    found_by : {"level", "split", "pair", "search"}
        A single level; a median split; two of these; the search for the worst.
    groups : tuple of two str, or None
        The two groups; None where there are only two.
    """

    description: str
    conditions: tuple[Condition, ...]
    n_rows: tuple[int, int]
    gap: float
    signed: float
    confirmed: Estimate
    found_by: str
    groups: tuple[str, str] | None = None


@dataclass(frozen=True)
class HalfSpaces:
    """Gaps in random half-spaces of the feature space, as in the paper's Section 5.2.2.

    Attributes
    ----------
    gaps : tuple of float
        One gap per half-space in which both groups are present.
    n_empty : int
        Half-spaces in which a group is absent.
    noise : tuple of float
        The same with the group labels shuffled: what chance alone makes of such a table.
    n_rows : int
        Rows looked at.
    """

    gaps: tuple[float, ...]
    n_empty: int
    noise: tuple[float, ...]
    n_rows: int


@dataclass(frozen=True)
class SubsetScan:
    """Where the model treats the groups differently, even if it does not overall.

    Attributes
    ----------
    subsets : tuple of SubsetGap
        The worst first, by the confirmed gap less a margin for few people.
    n_examined : int
        Subsets that were looked at.
    min_rows : int
        A subset needs as many people of each group among the rows that are searched.
    n_search, n_confirm : int
        Rows on which subsets were chosen, and other rows on which their gaps were taken.
    half_spaces : HalfSpaces
        Random half-spaces.
    refused : tuple of str
        What was not looked at, and why.
    """

    subsets: tuple[SubsetGap, ...]
    n_examined: int
    min_rows: int
    n_search: int
    n_confirm: int
    half_spaces: HalfSpaces
    refused: tuple[str, ...] = ()
