"""People as points: numbers and category codes, without one-hot columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fairmatch.exceptions import InputError
from fairmatch.tables.arrays import FloatArray


@dataclass(frozen=True)
class Layout:
    """The places of numbers and levels among one-hot columns.

    Attributes
    ----------
    numbers : tuple of int
        Column of every number.
    levels : tuple of int
        Column of the first level of every category. The other levels follow it.
    width : int
        Number of columns.
    """

    numbers: tuple[int, ...]
    levels: tuple[int, ...]
    width: int


@dataclass(frozen=True, eq=False)
class Points:
    r"""Rows of a table as numbers and category codes.

    One-hot columns take memory for every level of every category. Codes take four bytes per row
    and category, for any number of levels, and the distances are the same.

    Parameters
    ----------
    numbers : ndarray of shape (n_rows, n_numbers)
        The numeric part, as float64.
    codes : ndarray of shape (n_rows, n_categories)
        The level of every category, as int32. The code -1 is a level that was not seen in fit; its
        one-hot columns are all zero.
    layout : Layout, optional
        The places of numbers and levels among one-hot columns. By default the numbers come first,
        followed by the levels of each category in turn.

    Raises
    ------
    InputError
        If the parts are not two tables of the same rows, or if a code is below -1.

    Notes
    -----
    The squared distance of two rows with numbers :math:`u, v` and codes :math:`a, b` is

    .. math:: |u - v|^2 + \sum_c \left([a_c \ge 0] + [b_c \ge 0] - 2 [a_c = b_c \ge 0]\right),

    which is the squared distance of their one-hot columns. A category adds 2 where the levels
    differ, and 0 where they agree. It adds 1 where one of the two levels is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from fairmatch.tables.points import Points
    >>> people = Points(np.array([[0.0], [0.5], [0.5]]), np.array([[0], [1], [-1]]))
    >>> len(people), people.n_bytes
    (3, 36)
    >>> people.squared_distances(people)
    array([[0.  , 2.25, 1.25],
           [2.25, 0.  , 1.  ],
           [1.25, 1.  , 0.  ]])
    """

    numbers: FloatArray
    codes: npt.NDArray[np.int32]
    layout: Layout | None = None

    def __post_init__(self) -> None:
        numbers = np.asarray(self.numbers, dtype=np.float64)
        codes = np.asarray(self.codes, dtype=np.int32)
        if numbers.ndim != 2 or codes.ndim != 2 or len(numbers) != len(codes):
            raise InputError(
                "Points need numbers of shape (n, d) and codes of shape (n, c); got shapes "
                f"{numbers.shape} and {codes.shape}. An absent part has no columns: shape (n, 0)."
            )
        if codes.size and codes.min() < -1:
            raise InputError(
                f"Codes must be -1 (unknown) or greater, got {int(codes.min())}. Count the levels "
                "from 0."
            )
        object.__setattr__(self, "numbers", numbers)
        object.__setattr__(self, "codes", codes)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def n_bytes(self) -> int:
        """Memory of both parts, in bytes."""
        return self.numbers.nbytes + self.codes.nbytes

    def take(self, rows: npt.ArrayLike | slice) -> Points:
        """Return some of the rows.

        Parameters
        ----------
        rows : array-like of int or bool, or slice
            Positions of the rows, or a mask.

        Returns
        -------
        Points
            Those rows, in that order.
        """
        index = rows if isinstance(rows, slice) else np.asarray(rows)
        if not isinstance(index, slice) and index.size == 0:
            index = index.astype(np.intp)  # NumPy reads an empty list as floats
        return replace(self, numbers=self.numbers[index], codes=self.codes[index])

    def __getitem__(self, rows: npt.ArrayLike | slice) -> Points:
        return self.take(rows)

    @property
    def width(self) -> int:
        """How many numbers and categories describe a row."""
        return int(self.numbers.shape[1] + self.codes.shape[1])

    @property
    def n_columns(self) -> int:
        """How many columns `dense` returns."""
        return (self.layout or self._plain_layout()).width

    def with_number(self, column: FloatArray) -> Points:
        """Return the points with one more number.

        Parameters
        ----------
        column : ndarray of shape (n_rows,)
            The number of every row.

        Returns
        -------
        Points
            The same codes, and the numbers followed by the new column.
        """
        layout = self.layout
        if layout is not None:
            layout = Layout((*layout.numbers, layout.width), layout.levels, layout.width + 1)
        return Points(np.column_stack([self.numbers, column]), self.codes, layout)

    def dense(self) -> FloatArray:
        """Return the points as one-hot columns, which take memory for every level.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            Rows with the same distances as the points. Without codes these are the numbers.
        """
        if not self.codes.shape[1]:
            return self.numbers
        layout = self.layout or self._plain_layout()
        columns = np.zeros((len(self), layout.width))
        columns[:, list(layout.numbers)] = self.numbers
        for first, code in zip(layout.levels, self.codes.T, strict=True):
            known = np.flatnonzero(code >= 0)
            columns[known, first + code[known]] = 1.0
        return columns

    def _plain_layout(self) -> Layout:
        n_numbers = self.numbers.shape[1]
        if not self.codes.shape[1]:
            return Layout(tuple(range(n_numbers)), (), n_numbers)
        ends = n_numbers + np.cumsum(self.codes.max(axis=0, initial=-1) + 1)
        starts = (n_numbers, *(int(end) for end in ends[:-1]))
        return Layout(tuple(range(n_numbers)), starts, int(ends[-1]))

    def pair_costs(self, rows: npt.NDArray[np.intp], others: npt.NDArray[np.intp]) -> FloatArray:
        """Compute the squared distances of pairs of rows.

        Parameters
        ----------
        rows, others : arrays of int, shape (n_pairs,)
            Positions of the first row and of the second row of every pair.

        Returns
        -------
        ndarray of shape (n_pairs,)
            The squared distances, computed from differences and so without cancellation.
        """
        return self.costs_with(self, rows, others)

    def costs_with(
        self, other: Points, rows: npt.NDArray[np.intp], others: npt.NDArray[np.intp]
    ) -> FloatArray:
        """Compute the squared distances of pairs of a row here and a row of other points.

        Parameters
        ----------
        other : Points
            Points with the same columns.
        rows, others : arrays of int, shape (n_pairs,)
            Positions in these points, and positions in the other points.

        Returns
        -------
        ndarray of shape (n_pairs,)
            The squared distances, computed from differences and so without cancellation.
        """
        difference = self.numbers[rows] - other.numbers[others]
        squared: FloatArray = np.einsum("ij,ij->i", difference, difference)
        for code, there in zip(self.codes.T, other.codes.T, strict=True):
            own, theirs = code[rows], there[others]
            squared += np.where(own == theirs, 0, 1 * (own >= 0) + (theirs >= 0))
        return squared

    def squared_distances(self, other: Points) -> FloatArray:
        """Compute the squared distance of every row to every row of other points.

        Parameters
        ----------
        other : Points
            Points with the same columns.

        Returns
        -------
        ndarray of shape (n_rows, n_other_rows)
            The squared distances, computed column by column. This is meant for tests and small
            blocks. A solver uses matrix products.
        """
        if self.numbers.shape[1:] != other.numbers.shape[1:] or (
            self.codes.shape[1:] != other.codes.shape[1:]
        ):
            raise InputError(
                f"The points have {self.numbers.shape[1]} numbers and {self.codes.shape[1]} codes, "
                f"and the others have {other.numbers.shape[1]} and {other.codes.shape[1]}. Encode "
                "both tables with the same encoder."
            )
        squared = np.zeros((len(self), len(other)))
        for own, theirs in zip(self.numbers.T, other.numbers.T, strict=True):
            squared += np.square(own[:, None] - theirs[None, :])
        for own, theirs in zip(self.codes.T, other.codes.T, strict=True):
            known, known_there = own[:, None] >= 0, theirs[None, :] >= 0
            agree = (own[:, None] == theirs[None, :]) & known
            squared += known.astype(np.float64) + known_there - 2.0 * agree
        return squared
