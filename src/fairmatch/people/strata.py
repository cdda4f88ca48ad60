"""Factors within whose levels people are compared: `given=`, read into strata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fairmatch.exceptions import InputError
from fairmatch.people.checks import (
    check_length,
    check_names,
    column_names,
    plain_value,
    refuse_twice,
)
from fairmatch.people.columns import Column, as_categories, find_levels, read_columns
from fairmatch.people.encoding import Table
from fairmatch.people.groups import Groups

BANDS = 5
"""A number with many different values is cut into this many bands of about as many people."""

MOST_LEVELS = 10
"""A number with more different values than this is cut into bands."""

LEAST_PEOPLE = 10
"""For learning (never for measuring), strata with fewer people of a group are pooled."""

POOLED = "all small strata"

_MISSING = "missing"


@dataclass(frozen=True, eq=False)
class Codes:
    """A level of every row, as a code, and the label behind each code."""

    #: Position of each row's level in ``labels``; -1 for a level that is not among them.
    values: npt.NDArray[np.integer[Any]]
    labels: tuple[str, ...]  #: The levels.
    names: tuple[str, ...] = ()  #: The columns that are crossed, as far as they are known.

    def take(self, rows: npt.NDArray[np.intp]) -> Codes:
        """Return the levels of some of the rows."""
        return replace(self, values=self.values[rows])

    def rows_of(self, rows: npt.NDArray[np.intp]) -> dict[int, npt.NDArray[np.intp]]:
        """Return some rows by their level, in the order in which they are given.

        Rows whose level is -1, which is none of the known ones, are left out.
        """
        own = self.values[rows]
        order = np.argsort(own, kind="stable")
        codes, starts = np.unique(own[order], return_index=True)
        parts = np.split(rows[order], starts[1:])
        return {int(code): at for code, at in zip(codes, parts, strict=True) if code >= 0}


@dataclass(frozen=True)
class Factor:
    """A column within whose levels people are compared."""

    name: str  #: The column.
    labels: tuple[str, ...]  #: The levels, or the bands of a number, in words.
    #: The values behind the labels. None if a number was cut into bands.
    levels: tuple[str | int | float | bool, ...] | None = None
    edges: tuple[float, ...] = ()  #: Upper ends of all bands but the last.

    @classmethod
    def fit(cls, column: Column) -> Factor:
        """Return the levels or bands of a column. Missing values are a level of their own."""
        last = (_MISSING,) if column.missing.any() else ()
        present = column.values[~column.missing]
        if column.levels is None and len(pd.unique(present)) > MOST_LEVELS:
            shares = np.arange(1, BANDS) / BANDS
            cuts = np.unique(np.quantile(present, shares, method="inverted_cdf"))
            edges = tuple(float(cut) for cut in cuts[cuts < present.max()])
            ends = [f"{edge:g}" for edge in edges]
            middle = [f"above {low} to {high}" for low, high in pairwise(ends)]
            return cls(
                column.name, (f"up to {ends[0]}", *middle, f"above {ends[-1]}", *last), edges=edges
            )
        named = as_categories(column)
        assert named.levels is not None
        used = named.levels[np.unique(named.values[~named.missing])]
        levels = tuple(plain_value(level) for level in used)
        return cls(column.name, (*map(str, levels), *last), levels)

    def codes(self, column: Column) -> npt.NDArray[np.intp]:
        """Return the level of every row, or -1 where it was not among the rows of `fit`."""
        nothing = len(self.labels) - 1 if self.labels[-1] == _MISSING else -1
        if self.levels is None:
            found = np.searchsorted(np.array(self.edges), column.values, side="left")
        else:
            named = as_categories(column)
            assert named.levels is not None
            found = np.append(find_levels(self.levels, named.levels.tolist()), -1)[named.values]
        return np.where(column.missing, nothing, found)


@dataclass(frozen=True)
class Given:
    """The combinations of levels of one or several factors: strata.

    Examples
    --------
    >>> import pandas as pd
    >>> staff = pd.DataFrame({"title": ["clerk", "clerk", "head"], "hours": [38, 40, 40]})
    >>> Given.fit(read_columns(staff)).labels
    ('title clerk, hours 38', 'title clerk, hours 40', 'title head, hours 40')
    """

    factors: tuple[Factor, ...]  #: The factors.
    places: tuple[int, ...]  #: The combinations that occur, as numbers.
    labels: tuple[str, ...]  #: The combinations in words.

    @classmethod
    def fit(cls, columns: Sequence[Column]) -> Given:
        """Return the strata of some people."""
        factors = tuple(Factor.fit(column) for column in columns)
        places = np.unique(_crossed(factors, columns)).tolist()
        parts = np.unravel_index(places, [len(factor.labels) for factor in factors])
        labels = [
            ", ".join(f"{f.name} {f.labels[at]}" for f, at in zip(factors, own, strict=True))
            for own in zip(*parts, strict=True)
        ]
        return cls(factors, tuple(places), tuple(labels))

    def codes(self, columns: Sequence[Column]) -> Codes:
        """Return the stratum of every row, or -1 for one that was not among the rows of `fit`."""
        place = _crossed(self.factors, columns)
        at = np.searchsorted(self.places, place)
        known = np.asarray(self.places)[np.minimum(at, len(self.places) - 1)] == place
        return Codes(np.where(known, at, -1), self.labels)


def _crossed(factors: Sequence[Factor], columns: Sequence[Column]) -> npt.NDArray[np.int64]:
    """Return a number for every combination of levels, or -1 where a level is not known."""
    pairs = zip(factors, columns, strict=True)
    codes = np.array([factor.codes(column) for factor, column in pairs])
    sizes = tuple(len(factor.labels) for factor in factors)
    places = np.ravel_multi_index(tuple(np.maximum(codes, 0)), sizes)
    return np.where((codes < 0).any(axis=0), -1, places)


def pool_strata(strata: Codes, groups: Groups) -> npt.NDArray[np.intp]:
    """Return the code under which a model learns each stratum; small ones share the last code."""
    sizes = [
        np.bincount(strata.values[groups.is_group(code) & (strata.values >= 0)],
                    minlength=len(strata.labels))
        for code in groups.compared
    ]  # fmt: skip
    codes = np.arange(len(strata.labels))
    return np.where(np.min(sizes, axis=0) < LEAST_PEOPLE, len(codes), codes)


def given_columns(given: Any, table: Table | None, n_rows: int) -> list[Column]:
    """Return the columns that a caller names or passes as factors."""
    named = [given] if isinstance(given, str) else given
    is_list = isinstance(named, list | tuple) and all(isinstance(name, str) for name in named)
    if is_list and (isinstance(given, str) or len(named) != n_rows or table is not None):
        if table is None:
            raise InputError(
                f"given={given!r} names columns, but there is no table to find them in. Pass X, "
                "or pass the columns themselves.",
                parameter="given",
            )
        by_name = {column.name: column for column in table.columns}
        if len(named) != n_rows or set(named) <= set(by_name):
            if not named:
                raise InputError("given is empty. Name at least one column.", parameter="given")
            refuse_twice(named, "given")
            check_names(named, list(by_name), table="X")
            return [by_name[name] for name in named]
    if isinstance(given, Mapping):
        given = pd.DataFrame(given)
    if column_names(given) is None:
        array = np.asarray(given)
        frame = pd.DataFrame(np.asarray(given, dtype=object) if array.dtype.kind == "U" else array)
        name = getattr(given, "name", None)
        names = [f"factor {k + 1}" for k in range(frame.shape[1])]
        given = frame.set_axis(names if name is None else [str(name)], axis=1).infer_objects()
    columns = read_columns(given)
    check_length(columns[0].values, n_rows, "given")
    return columns


def read_given(given: Any, *, n_rows: int, table: Table | None = None) -> Codes | None:
    """Return the strata within which people are compared; None stays None.

    ``given`` names columns of the table, or holds the factors themselves. The combinations of
    several factors are the strata. A number with more than ten different values is cut into five
    bands of about as many rows, and the labels of the strata state the bands.

    Examples
    --------
    >>> read_given([30, 38, 38, 40], n_rows=4).labels
    ('factor 1 30', 'factor 1 38', 'factor 1 40')
    >>> read_given(range(100), n_rows=100).labels[:2]
    ('factor 1 up to 19', 'factor 1 above 19 to 39')
    """
    if given is None or isinstance(given, Codes):
        return given
    columns = given_columns(given, table, n_rows)
    names = tuple(column.name for column in columns)
    return replace(Given.fit(columns).codes(columns), names=names)
