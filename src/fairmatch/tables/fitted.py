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

# Larger scaled numbers cannot be measurements: their squares do not fit into float32.
_FARTHEST = 1e18


@dataclass(frozen=True)
class NumericColumn:
    """A numeric column: its range, and the mean that stands for missing values.

    Attributes
    ----------
    name : str
        Name of the column.
    minimum, maximum : float
        The range in fit, which is scaled to [0, 1].
    mean : float
        Mean of the scaled values.
    had_missing : bool
        Whether values were missing in fit. If so, the output has an indicator column.
    """

    name: str
    minimum: float
    maximum: float
    mean: float
    had_missing: bool

    kind: ClassVar[str] = "numeric"

    @property
    def name_endings(self) -> list[str]:
        """The ending that is added to the name for each column of the output."""
        return ["", "=<missing>"] if self.had_missing else [""]

    def align(self, column: Column) -> Column:
        """Return new values as numbers. Raise if they are text."""
        if column.levels is not None and column.missing.all():
            # If every value is missing, the table does not show which kind the column is.
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
        """Scale numbers. The range in fit becomes [0, 1]."""
        if self.minimum == self.maximum:
            return np.zeros(len(values))
        scaled: Values = (values - self.minimum) / (self.maximum - self.minimum)
        return scaled

    def encode(self, column: Column, out: Values) -> None:
        """Write the encoded column into ``out``."""
        with np.errstate(over="ignore"):
            scaled = self.scale(column.values)
        far = np.abs(scaled) > _FARTHEST
        if far.any():
            raise InputError(
                f"Column {self.name!r} holds {column.values[np.argmax(far)]:g}, which is too far "
                f"from the values in fit ({self.minimum:g} to {self.maximum:g}) to be scaled. "
                "Correct this value, or leave the row out."
            )
        out[:, 0] = scaled
        out[column.missing, 0] = self.mean
        if self.had_missing:
            out[:, 1] = column.missing

    def codes(self, column: Column) -> Values:
        """Return the numbers unchanged, with NaN where they are missing."""
        return np.where(column.missing, np.nan, column.values)


@dataclass(frozen=True)
class CategoricalColumn:
    """A categorical column: its levels, and which of them have a column of their own.

    Attributes
    ----------
    name : str
        Name of the column.
    levels : list of str, bool, int or float
        The levels in fit.
    had_missing : bool
        Whether values were missing in fit. If so, missing is a level of its own.
    kept : list of int or None
        Positions of the levels that have a column of their own, if the others share one. It is
        None if every level has its own.
    """

    name: str
    levels: list[str] | list[bool] | list[int] | list[float]
    had_missing: bool
    kept: list[int] | None = None

    kind: ClassVar[str] = "categorical"

    @cached_property
    def name_endings(self) -> list[str]:
        """The ending that is added to the name for each column of the output."""
        kept = range(len(self.levels)) if self.kept is None else self.kept
        rare = [] if self.kept is None else ["=<rare>"]
        return [f"={self.levels[i]}" for i in kept] + rare + ["=<missing>"] * self.had_missing

    @cached_property
    def _places(self) -> npt.NDArray[np.intp]:
        """Column of the output for every level. The last entry is for levels never seen."""
        n_levels = len(self.levels)
        if self.kept is None:
            return np.append(np.arange(n_levels), -1)
        places = np.full(n_levels + 1, len(self.kept))
        places[self.kept] = np.arange(len(self.kept))
        return places

    def align(self, column: Column) -> Column:
        """Return new values as positions among the levels in fit, or -1 for levels never seen.

        Raises
        ------
        ColumnError
            If no value was seen in fit, and the values are several or of another type. The column
            is then not the one that was fitted.
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
            return  # a single new level is plausible, and rare levels are often new
        raise ColumnError(
            f"No value of column {self.name!r} was seen in fit. It holds {given} now, such as "
            f"{_some([levels[i] for i in used])}; in fit it held {known}, such as "
            f"{_some(self.levels)}. Write its values as they were in fit."
        )

    def encode(self, column: Column, out: Values) -> None:
        """Write the encoded column into ``out``."""
        code = self.one_hot(column)
        rows = np.flatnonzero(code >= 0)
        out[rows, code[rows]] = 1

    def one_hot(self, column: Column) -> Values:
        """Return the position of the output column that is 1 in each row, or -1 if none is."""
        nothing = len(self.name_endings) - 1 if self.had_missing else -1
        return np.where(column.missing, nothing, self._places[column.values])

    def codes(self, column: Column) -> Values:
        """Return positions among the levels, with NaN for missing values and levels never seen."""
        return np.where(column.values < 0, np.nan, column.values)


@dataclass(frozen=True)
class DroppedColumn:
    """A column with too many levels that is left out. Nothing is encoded, and its code is 0.

    Attributes
    ----------
    name : str
        Name of the column.
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
        The column of the rows to learn from. Rows of weight zero are already left out.
    max_levels : int or None
        The number of levels up to which a column is encoded whole. None sets no limit.
    rare : {"warn", "pool", "drop", "error"}
        What to do with a column of more levels.
    weights : ndarray of shape (n_rows,), optional
        Positive weights, which matter for the mean and for which levels are frequent.

    Returns
    -------
    FittedColumn
        What was learned.

    Raises
    ------
    InputError
        If all values are missing, if the range is too wide, or if there are too many levels with
        ``rare="error"``.
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
            f"{fitted.minimum:g} to {fitted.maximum:g}. Correct the extreme values, or leave the "
            "column out."
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
    # Among equally frequent levels the first ones are kept.
    kept = np.sort(np.argsort(-counts, kind="stable")[:max_levels]).tolist()
    return CategoricalColumn(column.name, levels, bool(column.missing.any()), kept)


def read_fitted_column(kind: str, name: str, **learned: Any) -> FittedColumn:
    """Return a fitted column from what a file holds. Raise a builtin error if it is damaged.

    Parameters
    ----------
    kind : {"numeric", "categorical", "dropped"}
        Kind of the column.
    name : str
        Name of the column.
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
