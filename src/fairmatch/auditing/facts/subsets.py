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
        ``=`` and ``!=`` are for categories and missing values, ``<=`` and ``>`` for numbers.
    value : str, float or None
        The value to compare with. None means a missing value.
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
        The conditions, all of which hold in the subset.
    n_rows : tuple of two int
        Number of people of each group in the subset.
    gap : float
        Gap between the groups' mean scores in the subset, over all rows.
    signed : float
        Second group minus first, over all rows.
    confirmed : Estimate
        The gap over rows that played no part in choosing the subset. Its interval holds for all
        listed subsets at once.
    found_by : {"level", "split", "pair", "search"}
        How the subset was found: as a single level, as a median split, as a pair of these, or by
        the search for the worst subset.
    groups : tuple of two str, or None
        The two groups. It is None in audits of earlier versions.
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
        One gap per half-space that holds people of the reference group and of another group. With
        several other groups it is the largest.
    n_empty : int
        Number of half-spaces that have no gap.
    noise : tuple of float
        The same gaps with shuffled group labels, which show what chance alone does.
    n_rows : int
        Number of people examined.
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
        The subsets, with the worst first. The order is that of the confirmed gap less a margin for
        few people.
    n_examined : int
        Number of subsets examined.
    min_rows : int
        How many people of each group a subset needs among the rows that are searched.
    n_search, n_confirm : int
        Number of people on whom subsets were chosen, and of others on whom their gaps were
        computed.
    half_spaces : HalfSpaces
        Gaps in random half-spaces.
    refused : tuple of str
        What was not examined, and why.
    """

    subsets: tuple[SubsetGap, ...]
    n_examined: int
    min_rows: int
    n_search: int
    n_confirm: int
    half_spaces: HalfSpaces
    refused: tuple[str, ...] = ()
