"""What an encoder has learned of all columns, and how it turns rows into numbers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import accumulate, chain
from typing import Any

import numpy as np
import numpy.typing as npt

from fairmatch.exceptions import FairmatchWarning, InputError
from fairmatch.tables.columns import Column, Values, take_rows
from fairmatch.tables.fitted import (
    CategoricalColumn,
    FittedColumn,
    fit_column,
    read_fitted_column,
)
from fairmatch.tables.points import Layout, Points


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become numbers.

    Attributes
    ----------
    columns : tuple of FittedColumn
        What was learned of each column, in the table's order.
    """

    columns: tuple[FittedColumn, ...]

    @classmethod
    def fit(
        cls,
        columns: Sequence[Column],
        *,
        max_levels: int | None,
        rare: str,
        weights: Values | None = None,
    ) -> Encoding:
        """Learn how to encode columns.

        Parameters
        ----------
        columns : sequence of Column
            The rows to learn from.
        max_levels : int or None
            The number of levels up to which a column is encoded whole. None sets no limit.
        rare : {"warn", "pool", "drop", "error"}
            What to do with a column of more levels.
        weights : ndarray of shape (n_rows,), optional
            Weights of the rows. Rows of weight zero are left out.
        """
        if weights is not None:
            rows = np.flatnonzero(weights)
            if not len(rows):
                raise InputError(
                    "sample_weight is zero in every row, so there is nothing to learn from. Pass a "
                    "positive weight for some rows."
                )
            columns = [take_rows(column, rows) for column in columns]
            weights = weights[rows] / weights.max()
        found = cls(tuple(fit_column(column, max_levels, rare, weights) for column in columns))
        pooled = {
            column.name: len(column.levels)
            for column in found.columns
            if isinstance(column, CategoricalColumn) and column.kept is not None
        }
        if pooled and rare == "warn":
            listed = ", ".join(f"{name!r} ({count:,})" for name, count in pooled.items())
            warnings.warn(
                f"Columns with more than {max_levels} levels, and how many: {listed}. The "
                f"{max_levels} most frequent levels are kept apart, and the others are pooled. "
                "Leave the columns out, or decide with TableEncoder(max_levels=…, rare='pool', "
                "'drop' or 'error').",
                FairmatchWarning,
                stacklevel=3,
            )
        return found

    @classmethod
    def from_list(cls, content: Sequence[dict[str, Any]]) -> Encoding:
        """Return the encoding that `to_list` described. Raise a builtin error if it is damaged."""
        found = cls(tuple(read_fitted_column(**column) for column in content))
        if len({column.name for column in found.columns}) < max(1, len(found.columns)):
            raise ValueError("there are no columns, or a name is repeated")
        return found

    def to_list(self) -> list[dict[str, Any]]:
        """Return the columns as plain values."""
        return [{"kind": column.kind, **asdict(column)} for column in self.columns]

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Name of each column of the table to its columns in the output."""
        ends = list(accumulate((len(c.name_endings) for c in self.columns), initial=0))
        return {
            column.name: slice(start, stop)
            for column, start, stop in zip(self.columns, ends[:-1], ends[1:], strict=True)
        }

    @property
    def names(self) -> list[str]:
        """The names of the columns of the table."""
        return [column.name for column in self.columns]

    @property
    def categorical(self) -> list[int]:
        """Positions of the categorical columns in the table."""
        return [i for i, column in enumerate(self.columns) if column.kind == "categorical"]

    def align(self, columns: Sequence[Column]) -> list[Column]:
        """Return the columns of new rows, with the kinds and the levels that fit saw."""
        return [old.align(new) for old, new in zip(self.columns, columns, strict=True)]

    def one_hot(self, columns: Sequence[Column], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return scaled numbers, and a 0/1 column for every level."""
        slices = self.slices
        width = sum(len(column.name_endings) for column in self.columns)
        out = np.zeros((len(columns[0].values), width), dtype=dtype)
        for fitted, column in zip(self.columns, columns, strict=True):
            fitted.encode(column, out[:, slices[fitted.name]])
        return out

    def points(self, columns: Sequence[Column]) -> Points:
        """Return scaled numbers, and a code for every category."""
        n_rows = len(columns[0].values)
        n_numbers = sum(len(c.name_endings) for c in self.columns if c.kind == "numeric")
        numbers = np.zeros((n_rows, n_numbers))
        codes = np.empty((n_rows, len(self.categorical)), dtype=np.int32)
        number = code = 0
        for fitted, column in zip(self.columns, columns, strict=True):
            if isinstance(fitted, CategoricalColumn):
                codes[:, code] = fitted.one_hot(column)
                code += 1
            else:
                width = len(fitted.name_endings)
                fitted.encode(column, numbers[:, number : number + width])
                number += width
        return Points(numbers, codes, self._layout)

    @cached_property
    def _layout(self) -> Layout:
        """The places of numbers and levels in the result of `one_hot`."""
        slices = self.slices
        numbers = [
            range(slices[column.name].start, slices[column.name].stop)
            for column in self.columns
            if column.kind == "numeric"
        ]
        starts = tuple(slices[self.columns[i].name].start for i in self.categorical)
        width = max((s.stop for s in slices.values()), default=0)
        return Layout(tuple(chain.from_iterable(numbers)), starts, width)

    def codes(self, columns: Sequence[Column]) -> npt.NDArray[np.float64]:
        """Return one number for every column: its value, or the position of its level."""
        pairs = zip(self.columns, columns, strict=True)
        return np.column_stack([fitted.codes(column) for fitted, column in pairs])


def refuse_missing(columns: Sequence[Column]) -> None:
    """Raise if values are missing. The error names each column and how many values it lacks."""
    counts = {column.name: int(column.missing.sum()) for column in columns}
    if listed := ", ".join(f"{name!r} ({count})" for name, count in counts.items() if count):
        raise InputError(
            f"Columns with missing values (NaN or null), and how many: {listed}. Leave those "
            "rows out, fill the values in, or use TableEncoder(missing='encode')."
        )
