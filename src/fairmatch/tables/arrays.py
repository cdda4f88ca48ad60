"""What callers give -> checked NumPy arrays, with an error that names the problem.

Every public function reads its arguments here, so that a score outside [0, 1], a third group,
a missing label or half a person is met by the same sentence wherever it turns up.
"""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairmatch.exceptions import GroupError, InputError, LabelError

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


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


def read_column(values: ArrayLike, name: str) -> NDArray[Any]:
    """Read a one-dimensional column; a table of one column counts as one."""
    array = np.asarray(values)
    if array.dtype.kind == "U" and isinstance(values, list | tuple):
        # NumPy would turn a NaN or a number among text into text.
        array = np.asarray(values, dtype=object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(
            f"{name} must be one-dimensional, one entry per row; got an array of shape "
            f"{array.shape}."
        )
    if len(array) == 0:
        raise InputError(f"{name} is empty: there is nothing to measure.")
    return array


def _missing(array: NDArray[Any]) -> BoolArray:
    if array.dtype.kind in "fmM":  # NaN and NaT differ from themselves
        return np.asarray(array != array, dtype=bool)
    if array.dtype.kind != "O":
        return np.zeros(len(array), dtype=bool)
    return np.array([_is_missing(value) for value in array], dtype=bool)


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA answers neither yes nor no to a comparison
        return True


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


def _distinct(array: NDArray[Any]) -> list[str]:
    return sorted({str(value) for value in array.tolist()})


def _plain(value: Any) -> Any:
    """Turn a NumPy scalar into the Python value that people print and store."""
    return value.item() if isinstance(value, np.generic) else value


def read_groups(sensitive_features: ArrayLike, *, n_rows: int | None = None) -> Groups:
    """Read the sensitive features as two groups, the smaller label first."""
    array = read_column(sensitive_features, "sensitive_features")
    _check_length(array, n_rows, "sensitive_features")
    if _missing(array).any():
        raise GroupError(
            f"sensitive_features has {int(_missing(array).sum())} missing values. Drop those "
            "rows, or give the missing ones a group of their own on purpose."
        )
    found = _two_values(array)
    if found is None:
        labels = _distinct(array)
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
    return Groups(codes=(~is_low).astype(np.int8), labels=(_plain(low), _plain(high)))


def read_scores(
    y_score: ArrayLike, *, name: str = "y_score", n_rows: int | None = None
) -> FloatArray:
    """Read scores in [0, 1] as float64."""
    scores = read_numbers(y_score, name)
    _check_length(scores, n_rows, name)
    low, high = scores.min(), scores.max()
    # A comparison with NaN is false, so this one pass also finds NaN and infinities.
    if not (low >= 0.0 and high <= 1.0):
        bad = ~np.isfinite(scores)
        if bad.any():
            raise InputError(
                f"{name} has {int(bad.sum())} entries that are NaN or infinite (the first in row "
                f"{int(np.argmax(bad))}). Every row needs a finite score."
            )
        raise InputError(
            f"{name} must lie in [0, 1], got values from {low:g} to {high:g}. Pass probabilities "
            "or 0/1 decisions; turn margins or logits into probabilities first."
        )
    return scores


def read_numbers(values: ArrayLike, name: str) -> FloatArray:
    """Read a numeric column as float64."""
    array = read_column(values, name)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64, copy=False)
    row = next((row for row, value in enumerate(array) if not _is_number(value)), 0)
    raise InputError(
        f"{name} must be numeric, got dtype {array.dtype} (row {row} holds {array[row]!r}). "
        "Convert it to numbers first."
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
    """Read labels of two classes; True where the label is ``pos_label``."""
    if y_true is None:
        raise LabelError(f"{name} is None, but this measure compares predictions with labels.")
    array = read_column(y_true, name)
    _check_length(array, n_rows, name)
    if _missing(array).any():
        raise LabelError(f"{name} has {int(_missing(array).sum())} missing labels.")
    positive = np.asarray(array == pos_label, dtype=bool)
    if not positive.any():
        raise LabelError(
            f"No entry of {name} equals pos_label={pos_label!r}; it holds "
            f"{', '.join(_distinct(array)[:5])}. Pass pos_label=."
        )
    if not positive.all() and len(others := _distinct(array[~positive])) > 1:
        raise LabelError(
            f"{name} must hold two classes, got {len(others) + 1}: {pos_label!r} and "
            f"{', '.join(others[:5])}."
        )
    return positive


def read_weights(sample_weight: ArrayLike | None, *, n_rows: int) -> FloatArray | None:
    """Read non-negative, finite weights; None stays None."""
    if sample_weight is None:
        return None
    weights = read_numbers(sample_weight, "sample_weight")
    _check_length(weights, n_rows, "sample_weight")
    if not (np.isfinite(weights).all() and weights.min() >= 0.0):
        raise InputError("sample_weight must be finite and not negative.")
    return weights


def read_features(X: ArrayLike, *, n_rows: int | None = None, name: str = "X") -> FloatArray:
    """Read a table of finite numbers as float64, one row per person."""
    array = np.asarray(X)
    if array.dtype.kind == "O":
        array = _numeric_frame(X, array)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise InputError(f"{name} must be a table of rows and columns, got shape {array.shape}.")
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{name} must be numeric, got dtype {array.dtype}. Encode its text columns first, for "
            "example with fairmatch.tables.encoder.TableEncoder."
        )
    _check_length(array, n_rows, name)
    array = array.astype(np.float64, copy=False)
    if not np.isfinite(array).all():
        row, column = (int(i[0]) for i in np.nonzero(~np.isfinite(array)))
        raise InputError(
            f"{name} has a NaN or infinite entry (row {row}, column {column}). Impute or drop it."
        )
    return array


def _numeric_frame(X: Any, array: NDArray[Any]) -> NDArray[Any]:
    """Read a frame of numbers and flags, which pandas gives as objects; others stay as they are."""
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return array
    if not all(dtype.is_numeric() or dtype == nw.Boolean for dtype in frame.schema.values()):
        return array
    return np.column_stack([np.asarray(c.to_numpy(), float) for c in frame.iter_columns()])


def _check_length(array: NDArray[Any], n_rows: int | None, name: str) -> None:
    if n_rows is not None and len(array) != n_rows:
        raise InputError(f"{name} has {len(array)} rows where {n_rows} were expected.")


def is_count(value: Any, least: int = 1) -> bool:
    """Tell whether a value is a whole number of at least so much; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def check_count(name: str, value: Any, least: int = 1, *, optional: bool = False) -> None:
    """Raise unless a parameter is a whole number of at least so much, or may be left out."""
    if not (is_count(value, least) or (optional and value is None)):
        allowed = f"a whole number of at least {least}{' or None' if optional else ''}"
        raise InputError(f"{name} must be {allowed}, got {value!r}.")


def check_number(name: str, value: Any, within: str) -> None:
    """Raise unless a parameter is a number within an interval, written such as ``"[0, 1)"``."""
    low, high = map(float, within[1:-1].split(","))
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        above = number >= low if within[0] == "[" else number > low
        below = number <= high if within[-1] == "]" else number < high
        if above and below:
            return
    raise InputError(f"{name} must be a number in {within}, got {value!r}.")


def check_threshold(value: Any) -> None:
    """Raise unless the least score that is accepted is a number."""
    check_number("threshold", value, "(-inf, inf)")


def read_generator(random_state: Any) -> np.random.Generator:
    """Make a generator of random numbers of a seed; a generator is taken as it is."""
    if not isinstance(random_state, np.random.Generator):
        check_count("random_state", random_state, 0, optional=True)
    return np.random.default_rng(random_state)


def check_weights(name: str, weights: Any, within: str) -> None:
    """Raise unless there is a weight or more, each a number within an interval."""
    values = np.asarray(weights, dtype=object)
    if values.ndim == 0 or len(values) == 0:
        raise InputError(f"{name}s must be a list of numbers in {within}, got {weights!r}.")
    for weight in weights:
        check_number(name, weight, within)


def check_verbose(value: Any) -> None:
    """Raise unless ``verbose`` is a whole number; here True and False are as good as 1 and 0."""
    if not isinstance(value, Integral):
        raise InputError(f"verbose must be a whole number, 1 to show progress; got {value!r}.")
