"""What an encoder has learned of each column, and how it turns new values into numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from fairmatch.exceptions import ColumnError, InputError
from fairmatch.tables.columns import Column, Values, as_categories, as_numbers
from fairmatch.tables.levels import find_levels, level_type

# Scaled numbers beyond this cannot be measurements: their squares do not fit into float32.
_FARTHEST = 1e18


@dataclass(frozen=True)
class NumericColumn:
    """A numeric column: its range, and the mean that stands for missing values.

    Attributes
    ----------
    name : str
        Its name.
    minimum, maximum : float
        The range in fit, which is scaled to [0, 1].
    mean : float
        Mean of the scaled values.
    had_missing : bool
        Whether values were missing in fit: they then have an indicator column.
    """

    name: str
    minimum: float
    maximum: float
    mean: float
    had_missing: bool

    kind: ClassVar[str] = "numeric"

    @property
    def name_endings(self) -> list[str]:
        """What is added to the name for each column of the output."""
        return ["", "=<missing>"] if self.had_missing else [""]

    def align(self, column: Column) -> Column:
        """Return new values as numbers; raise if they are text."""
        if column.levels is not None and column.missing.all():
            # Where every value is missing, the table does not show which kind it is.
            return replace(column, values=np.zeros(len(column.values)), levels=None)
        numbers = as_numbers(column)
        if numbers is None:
            assert column.levels is not None
            raise ColumnError(
                f"Column {self.name!r} was numeric in fit and is categorical now: it holds text "
                f"such as {_some(column.levels.tolist())}. Turn it into numbers, or leave those "
                "rows out."
            )
        return numbers

    def scale(self, values: Values) -> Values:
        """Scale numbers such that the range in fit becomes [0, 1]."""
        if self.minimum == self.maximum:
            return np.zeros(len(values))
        scaled: Values = (values - self.minimum) / (self.maximum - self.minimum)
        return scaled

    def encode(self, column: Column, out: Values) -> None:
        """Write the columns of the output."""
        with np.errstate(over="ignore"):
            scaled = self.scale(column.values)
        far = np.abs(scaled) > _FARTHEST
        if far.any():
            raise InputError(
                f"Column {self.name!r} holds {column.values[np.argmax(far)]:g}, which is too far "
                f"from the values in fit ({self.minimum:g} to {self.maximum:g}) to be scaled. "
                "Correct it, or leave that row out."
            )
        out[:, 0] = scaled
        out[column.missing, 0] = self.mean
        if self.had_missing:
            out[:, 1] = column.missing

    def codes(self, column: Column) -> Values:
        """Return the numbers as they are, NaN where missing."""
        return np.where(column.missing, np.nan, column.values)


@dataclass(frozen=True)
class CategoricalColumn:
    """A categorical column: its levels, and which of them have a column of their own.

    Attributes
    ----------
    name : str
        Its name.
    levels : list of str, bool, int or float
        The levels in fit.
    had_missing : bool
        Whether values were missing in fit: they then are a level of their own.
    kept : list of int or None
        Positions of the levels with a column of their own, where the others share one; None if
        all have one.
    """

    name: str
    levels: list[str] | list[bool] | list[int] | list[float]
    had_missing: bool
    kept: list[int] | None = None

    kind: ClassVar[str] = "categorical"

    @cached_property
    def name_endings(self) -> list[str]:
        """What is added to the name for each column of the output."""
        kept = range(len(self.levels)) if self.kept is None else self.kept
        rare = [] if self.kept is None else ["=<rare>"]
        return [f"={self.levels[i]}" for i in kept] + rare + ["=<missing>"] * self.had_missing

    @cached_property
    def _places(self) -> npt.NDArray[np.intp]:
        """Column of the output for every level; the last one is for levels never seen."""
        n_levels = len(self.levels)
        if self.kept is None:
            return np.append(np.arange(n_levels), -1)
        places = np.full(n_levels + 1, len(self.kept))
        places[self.kept] = np.arange(len(self.kept))
        return places

    def align(self, column: Column) -> Column:
        """Return new values as positions among the levels in fit; -1 where never seen.

        Raises
        ------
        ColumnError
            If no value is known, although there are several or they are of another type: then
            the column is not the one that was fitted.
        """
        given = as_categories(column)
        assert given.levels is not None
        levels = given.levels.tolist()
        # A missing value has position -1, the last of all.
        found = np.append(find_levels(self.levels, levels), -1)
        if (found[:-1] < 0).any():
            self._check_known(levels, found, np.unique(given.values[given.values >= 0]))
        return replace(given, values=found[given.values])

    def _check_known(self, levels: list[Any], found: Values, used: Values) -> None:
        if not len(used) or (found[used] >= 0).any():
            return
        given, known = level_type(levels), level_type(self.levels)
        if given == known and (len(used) == 1 or self.kept is not None):
            return  # one person may well have a new level, and rare ones are often new
        raise ColumnError(
            f"No value of column {self.name!r} was seen in fit. It holds {given} now, such as "
            f"{_some([levels[i] for i in used])}; in fit it held {known}, such as "
            f"{_some(self.levels)}. Write its values as they were in fit."
        )

    def encode(self, column: Column, out: Values) -> None:
        """Write the columns of the output."""
        code = self.one_hot(column)
        rows = np.flatnonzero(code >= 0)
        out[rows, code[rows]] = 1

    def one_hot(self, column: Column) -> Values:
        """Return which column of the output is 1 in every row; -1 where none is."""
        nothing = len(self.name_endings) - 1 if self.had_missing else -1
        return np.where(column.missing, nothing, self._places[column.values])

    def codes(self, column: Column) -> Values:
        """Return positions among the levels, NaN where missing or never seen."""
        return np.where(column.values < 0, np.nan, column.values)


@dataclass(frozen=True)
class DroppedColumn:
    """A column of too many levels that is left out: nothing is encoded, and its code is 0.

    Attributes
    ----------
    name : str
        Its name.
    """

    name: str

    kind: ClassVar[str] = "dropped"
    name_endings: ClassVar[list[str]] = []

    def align(self, column: Column) -> Column:
        """Return the column as it is."""
        return column

    def encode(self, column: Column, out: Values) -> None:
        """Write nothing."""

    def codes(self, column: Column) -> Values:
        """Return zeros."""
        return np.zeros(len(column.values))


FittedColumn: TypeAlias = NumericColumn | CategoricalColumn | DroppedColumn


def fit_column(
    column: Column, max_levels: int | None, rare: str, weights: Values | None = None
) -> FittedColumn:
    """Learn what the encoder needs of a column.

    Parameters
    ----------
    column : Column
        The rows to learn from; rows of weight zero are left out.
    max_levels : int or None
        Most levels that a category may have before `rare` applies.
    rare : {"warn", "pool", "drop", "error"}
        What is done with a category of more levels.
    weights : ndarray of shape (n_rows,), optional
        Positive weights, for the mean and for which levels are frequent.

    Returns
    -------
    FittedColumn
        What was learned.

    Raises
    ------
    InputError
        If the column holds nothing, too wide a range, or too many levels with ``rare="error"``.
    """
    had_missing = bool(column.missing.any())
    if column.missing.all():
        raise InputError(f"Column {column.name!r} holds only missing values: leave it out.")
    if column.levels is not None:
        levels = column.levels.tolist()
        if max_levels is None or len(levels) <= max_levels:
            return CategoricalColumn(column.name, levels, had_missing)
        return _many_levels(column, levels, max_levels, rare, weights)
    seen = column.values[~column.missing] if had_missing else column.values
    fitted = NumericColumn(column.name, float(seen.min()), float(seen.max()), 0.0, had_missing)
    if not np.isfinite(fitted.maximum - fitted.minimum):
        raise InputError(
            f"Column {column.name!r} spans too wide a range to be scaled: "
            f"{fitted.minimum:g} to {fitted.maximum:g}."
        )
    scaled = fitted.scale(seen)
    own = None if weights is None else weights[~column.missing]
    mean = scaled.mean() if own is None else np.average(scaled, weights=own)
    return replace(fitted, mean=float(mean))


def _many_levels(
    column: Column, levels: list[Any], max_levels: int, rare: str, weights: Values | None
) -> FittedColumn:
    if rare == "error":
        raise InputError(
            f"Column {column.name!r} has {len(levels):,} levels, more than max_levels="
            f"{max_levels}. Leave it out, or pool its rare levels with rare='pool'."
        )
    if rare == "drop":
        return DroppedColumn(column.name)
    present = ~column.missing
    counts = np.bincount(
        column.values[present],
        weights=None if weights is None else weights[present],
        minlength=len(levels),
    )
    # Of equally frequent levels the first in order are kept.
    kept = np.sort(np.argsort(-counts, kind="stable")[:max_levels]).tolist()
    return CategoricalColumn(column.name, levels, bool(column.missing.any()), kept)


def read_fitted_column(kind: str, name: str, **learned: Any) -> FittedColumn:
    """Make a fitted column of what a file says; raise ValueError or TypeError if it is damaged.

    Parameters
    ----------
    kind : {"numeric", "categorical", "dropped"}
        What it is.
    name : str
        Its name.
    **learned
        The other attributes.
    """
    if not isinstance(name, str):
        raise TypeError(f"a name must be text, got {name!r}")
    if kind == "dropped":
        return DroppedColumn(name, **learned)
    if not isinstance(learned["had_missing"], bool):
        raise TypeError(f"had_missing must be true or false, got {learned['had_missing']!r}")
    if kind == "numeric":
        numbers = {key: float(value) for key, value in learned.items() if key != "had_missing"}
        fitted = NumericColumn(name=name, had_missing=learned["had_missing"], **numbers)
        if not (np.isfinite(fitted.mean) and 0 <= fitted.maximum - fitted.minimum < np.inf):
            raise ValueError(f"the range of column {name!r} is empty")
        return fitted
    if kind == "categorical":
        category = CategoricalColumn(name=name, **learned)
        _check_levels(name, category.levels)
        places = range(len(category.levels))
        if not all(type(i) is int and i in places for i in category.kept or ()):
            raise ValueError(f"column {name!r} keeps levels that it does not have")
        return category
    raise ValueError(f"column {name!r} is damaged")


def _check_levels(name: str, levels: Any) -> None:
    types = {type(level) for level in levels} if isinstance(levels, list) else {list}
    if not (types <= {str} or types <= {bool} or types <= {int, float}):
        raise TypeError(f"the levels of column {name!r} are not all text, booleans or numbers")
    if len(set(levels)) < len(levels):
        raise ValueError(f"a level of column {name!r} is repeated")


def _some(levels: Sequence[Any]) -> str:
    return ", ".join(repr(level) for level in levels[:3]) + (", …" if len(levels) > 3 else "")
