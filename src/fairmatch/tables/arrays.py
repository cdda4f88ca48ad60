"""Arguments of callers, read into checked NumPy arrays.

Every public function reads its arguments here. So the same mistake, such as a score outside [0, 1]
or a missing label, raises the same error everywhere.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairmatch.exceptions import InputError, LabelError

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def read_column(values: ArrayLike, name: str) -> NDArray[Any]:
    """Read a one-dimensional column. A table with a single column is read as that column."""
    refuse_masked(values, name)
    array = np.asarray(values)
    if array.dtype.kind == "U" and isinstance(values, list | tuple):
        # NumPy would turn a NaN or a number among text into text.
        array = np.asarray(values, dtype=object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(
            f"{name} must be one-dimensional, one entry per row; got an array of shape "
            f"{array.shape}. Pass a single column."
        )
    if len(array) == 0:
        raise InputError(f"{name} is empty, and at least one row is needed. Pass some rows.")
    return array


def refuse_masked(values: Any, name: str) -> None:
    """Raise if entries are masked, because NumPy would read the values under the mask."""
    if np.ma.isMaskedArray(values) and (n_masked := int(np.ma.getmaskarray(values).sum())):
        raise InputError(
            f"{name} has {n_masked} masked entries. Leave those rows out, or fill them in with "
            "numpy.ma.filled."
        )


def is_missing(array: NDArray[Any]) -> BoolArray:
    """Return a mask of the entries that are None, NaN, NaT or NA."""
    if array.dtype.kind in "fmM":  # NaN and NaT differ from themselves
        return np.asarray(array != array, dtype=bool)
    if array.dtype.kind != "O":
        return np.zeros(len(array), dtype=bool)
    return np.array([_value_is_missing(value) for value in array], dtype=bool)


def _value_is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # a comparison with pandas.NA is neither true nor false
        return True


def distinct(array: NDArray[Any]) -> list[str]:
    """Return the different entries as text, sorted."""
    return sorted({str(value) for value in array.tolist()})


def plain_value(value: Any) -> Any:
    """Turn a NumPy scalar into the Python value that people print and store."""
    return value.item() if isinstance(value, np.generic) else value


def read_scores(
    y_score: ArrayLike, *, name: str = "y_score", n_rows: int | None = None
) -> FloatArray:
    """Read scores in [0, 1] as float64."""
    scores = read_numbers(y_score, name)
    check_length(scores, n_rows, name)
    low, high = scores.min(), scores.max()
    # A comparison with NaN is false, so this one pass also finds NaN and infinities.
    if not (low >= 0.0 and high <= 1.0):
        bad = ~np.isfinite(scores)
        if bad.any():
            raise InputError(
                f"{name} has {int(bad.sum())} entries that are NaN or infinite (the first in row "
                f"{int(np.argmax(bad))}, counted from 0). Every row needs a finite score: score "
                "those rows, or leave them out."
            )
        advice = "turn margins or logits into probabilities first"
        if low >= 0.0 and high <= 100.0:
            advice = "divide percentages by 100"
        raise InputError(
            f"{name} must lie in [0, 1], got values from {low:g} to {high:g}. Pass probabilities "
            f"or 0/1 decisions; {advice}."
        )
    return scores


def read_numbers(values: ArrayLike, name: str) -> FloatArray:
    """Read a numeric column as float64."""
    array = read_column(values, name)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64, copy=False)
    row = next((row for row, value in enumerate(array) if not _is_number(value)), 0)
    raise InputError(
        f"{name} must be numeric, got dtype {array.dtype} (row {row}, counted from 0, holds "
        f"{array[row]!r}). Convert it to numbers first."
    )


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def read_labels(
    y_true: ArrayLike | None, *, n_rows: int, pos_label: Any = 1, name: str = "y_true"
) -> BoolArray:
    """Read labels of two classes. The result is True where the label is ``pos_label``."""
    if y_true is None:
        raise LabelError(
            f"{name} is None, but this measure compares predictions with labels. Pass the labels."
        )
    array = read_column(y_true, name)
    check_length(array, n_rows, name)
    if is_missing(array).any():
        raise LabelError(
            f"{name} has {int(is_missing(array).sum())} missing labels, and every row needs one. "
            "Leave those rows out."
        )
    positive = np.asarray(array == pos_label, dtype=bool)
    if not positive.any():
        raise LabelError(
            f"No entry of {name} equals pos_label={pos_label!r}; it holds "
            f"{', '.join(distinct(array)[:5])}. Pass pos_label= with one of these."
        )
    if not positive.all() and len(others := distinct(array[~positive])) > 1:
        raise LabelError(
            f"{name} must hold two classes, got {len(others) + 1}: {pos_label!r} and "
            f"{', '.join(others[:5])}. Keep two classes, or join the others into one."
        )
    return positive


def read_weights(sample_weight: ArrayLike | None, *, n_rows: int) -> FloatArray | None:
    """Read weights, which must be finite and not negative. None stays None."""
    if sample_weight is None:
        return None
    weights = read_numbers(sample_weight, "sample_weight")
    check_length(weights, n_rows, "sample_weight")
    if not (np.isfinite(weights).all() and weights.min() >= 0.0):
        row = int(np.argmax(~(np.isfinite(weights) & (weights >= 0.0))))
        raise InputError(
            f"sample_weight must be finite and not negative, and row {row}, counted from 0, has "
            f"{weights[row]:g}. Correct this weight, or leave the row out."
        )
    if weights.max() > np.finfo(np.float64).max / len(weights):
        raise InputError(
            f"sample_weight is as large as {weights.max():g}, so its sum overflows. Divide the "
            "weights by the largest one."
        )
    return weights


def read_features(
    X: ArrayLike,
    *,
    n_rows: int | None = None,
    name: str = "X",
    largest: float = np.inf,
) -> FloatArray:
    """Read a table of finite numbers as float64, one row per person.

    A number whose size exceeds ``largest`` raises an error. Code that computes in float32 passes
    1e18, because float32 cannot hold the squares of much larger numbers.
    """
    refuse_masked(X, name)
    array = np.asarray(X)
    if array.dtype.kind == "O":
        array = _numeric_frame(X, array)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise InputError(
            f"{name} must be a table of rows and columns, got shape {array.shape}. Pass one row "
            "per person and one column per feature."
        )
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{name} must be numeric, got dtype {array.dtype}. Encode its text columns first, for "
            "example with fairmatch.tables.encoder.TableEncoder."
        )
    check_length(array, n_rows, name)
    array = array.astype(np.float64, copy=False)
    if not np.isfinite(array).all():
        row, column = (int(i[0]) for i in np.nonzero(~np.isfinite(array)))
        raise InputError(
            f"{name} has a NaN or infinite entry (row {row}, column {column}, counted from 0), "
            "and every entry must be finite. Impute it, or leave the row out."
        )
    if largest < np.inf and (far := np.abs(array) > largest).any():
        row, column = (int(i[0]) for i in np.nonzero(far))
        raise InputError(
            f"{name} holds {array[row, column]:g} (row {row}, column {column}, counted from 0), "
            f"beyond {largest:g}, the largest number allowed. Scale the columns first."
        )
    return array


def _numeric_frame(X: Any, array: NDArray[Any]) -> NDArray[Any]:
    """Read a frame of numbers and booleans, which pandas turns into objects.

    Anything else is returned as it is.
    """
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return array
    if not all(dtype.is_numeric() or dtype == nw.Boolean for dtype in frame.schema.values()):
        return array
    return np.column_stack([np.asarray(c.to_numpy(), float) for c in frame.iter_columns()])


def check_length(array: NDArray[Any], n_rows: int | None, name: str) -> None:
    """Raise unless an array has the expected number of rows."""
    if n_rows is not None and len(array) != n_rows:
        raise InputError(
            f"{name} has {len(array)} rows where {n_rows} were expected. Pass the same rows in "
            "every argument."
        )
