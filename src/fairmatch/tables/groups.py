"""The protected groups of the rows of a table."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairmatch.exceptions import GroupError
from fairmatch.tables.arrays import (
    BoolArray,
    check_length,
    distinct,
    is_missing,
    plain_value,
    read_column,
)


@dataclass(frozen=True)
class Groups:
    """Two protected groups: one code per row, and the label behind each code.

    Everything downstream reads ``codes``; more than two groups would only need more codes here
    and pairs of them in the matchers.
    """

    codes: NDArray[np.int8]
    labels: tuple[Any, Any]

    def __len__(self) -> int:
        return len(self.codes)

    def is_group(self, code: int) -> BoolArray:
        """Tell which rows belong to the group with this code."""
        return np.equal(self.codes, code)

    def rows(self, code: int) -> NDArray[np.intp]:
        """Give the row positions of the group with this code."""
        return np.flatnonzero(self.codes == code)


def _two_values(array: NDArray[Any]) -> tuple[Any, Any, BoolArray] | None:
    """Find the two values of a column in O(n), without sorting ten million rows."""
    first = array[0]
    is_first = np.asarray(array == first, dtype=bool)
    if is_first.all():
        return None
    second = array[int(np.argmin(is_first))]
    if not np.all(is_first | np.asarray(array == second, dtype=bool)):
        return None
    try:
        swap = bool(second < first)
    except TypeError:
        swap = str(second) < str(first)
    return (second, first, ~is_first) if swap else (first, second, is_first)


def read_groups(sensitive_features: ArrayLike, *, n_rows: int | None = None) -> Groups:
    """Read the sensitive features as two groups, the smaller label first."""
    array = read_column(sensitive_features, "sensitive_features")
    check_length(array, n_rows, "sensitive_features")
    if is_missing(array).any():
        raise GroupError(
            f"sensitive_features has {int(is_missing(array).sum())} missing values. Drop those "
            "rows, or give the missing ones a group of their own on purpose."
        )
    found = _two_values(array)
    if found is None:
        labels = distinct(array)
        shown = ", ".join(labels[:5]) + (", …" if len(labels) > 5 else "")
        if len(labels) == 1:
            raise GroupError(
                f"sensitive_features holds one group only ({shown}); two are needed to compare."
            )
        raise GroupError(
            f"sensitive_features holds {len(labels)} groups ({shown}). fairmatch compares two "
            "groups for now: keep two of them, or merge some into one."
        )
    low, high, is_low = found
    return Groups(codes=(~is_low).astype(np.int8), labels=(plain_value(low), plain_value(high)))
