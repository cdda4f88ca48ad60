"""Arguments of callers, read into checked arrays; every error names the argument."""

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import combinations
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fairmatch.exceptions import ColumnError, InputError, LabelError

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


_CONTAINERS = (dict, list, set, np.ndarray)


def read_column(values: ArrayLike, name: str) -> NDArray[Any]:
    """Read a one-dimensional column. A table with a single column is read as that column."""
    refuse_masked(values, name)
    array = np.asarray(values)
    if array.dtype.kind == "U" and isinstance(values, list | tuple):
        # NumPy would turn a NaN or a number among text into text.
        array = np.asarray(values, dtype=object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 0 and hasattr(values, "predict"):
        raise InputError(
            f"{name} needs one entry per row, got a model ({type(values).__name__}). Pass its "
            "scores, such as model.predict_proba(X)[:, 1].",
            parameter=name,
        )
    if array.ndim == 0 and isinstance(values, str | int | float):
        raise InputError(
            f"{name} needs one entry per row, got {values!r} alone. Pass a column, such as "
            f"table[{values!r}], or for a single row [{values!r}].",
            parameter=name,
        )
    if array.ndim != 1:
        raise InputError(
            f"{name} must be one-dimensional, one entry per row; got an array of shape "
            f"{array.shape}. Pass a single column."
        )
    if array.dtype.kind == "O":
        strange = {type(value).__name__ for value in array if isinstance(value, _CONTAINERS)}
        if strange:
            raise InputError(
                f"{name} holds values of type {', '.join(sorted(strange))}, and every entry must "
                "be text, a number or another plain value. Pass one value for every row."
            )
    if len(array) == 0:
        raise InputError(f"{name} is empty, and at least one row is needed. Pass some rows.")
    return array


def column_names(table: Any) -> list[Any] | None:
    """Return the names of a table's columns; None of an array."""
    names = getattr(table, "column_names", getattr(table, "columns", None))
    return None if names is None else list(names)


def refuse_twice(columns: Iterable[Any], name: object) -> None:
    """Raise if a column is named twice. Empty names do not count."""
    counts = Counter(map(str, columns))
    twice = sorted(repr(column) for column, count in counts.items() if column and count > 1)
    if twice:
        raise ColumnError(
            f"{name} has the column{'s' * (len(twice) > 1)} {', '.join(twice)} twice. Name every "
            "column once."
        )


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise unless a value is one of several words."""
    if not (isinstance(value, str) and value in choices):
        raise InputError(
            f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.",
            parameter=name,
        )


def spelt_alike(labels: Iterable[str]) -> list[list[str]]:
    """Return the labels that differ from others only in capitals or spaces."""
    found: dict[str, list[str]] = {}
    for label in labels:
        found.setdefault(" ".join(label.split()).casefold(), []).append(label)
    return [alike for alike in found.values() if len(alike) > 1]


def refuse_masked(values: Any, name: str) -> None:
    """Raise if entries are masked, because NumPy would read the values under the mask."""
    if np.ma.isMaskedArray(values) and (n_masked := int(np.ma.getmaskarray(values).sum())):
        raise InputError(
            f"{name} has {n_masked} masked entries. Leave those rows out, or fill them in with "
            "numpy.ma.filled."
        )


def refuse_other_order(**columns: Any) -> None:
    """Raise if a column of pandas has the index of an earlier one in another order.

    Rows are taken by position. An index with other values does not say which row is meant.
    """
    indices = {
        name: index
        for name, column in columns.items()
        if isinstance(index := getattr(column, "index", None), pd.Index)
    }
    for (first, index), (name, own) in combinations(indices.items(), 2):
        if len(own) != len(index) or own.equals(index):
            continue
        if index.is_unique and own.is_unique and own.isin(index).all():
            raise InputError(
                f"{name} and {first} have the same index in different orders, but rows are "
                f"matched by position. Pass {name}.loc[{first}.index].",
                parameter=name,
            )


def is_missing(array: NDArray[Any]) -> BoolArray:
    """Return a mask of the entries that are None, NaN, NaT or NA."""
    return np.asarray(pd.isna(array))


def distinct(array: NDArray[Any]) -> list[str]:
    """Return the different entries as text, sorted."""
    return sorted({str(value) for value in array.tolist()})


def sorted_values(values: Iterable[Any]) -> list[Any]:
    """Sort values. Values that cannot be compared are sorted as text."""
    values = list(values)
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=str)


def plain_value(value: Any) -> Any:
    """Turn a NumPy scalar into the Python value that people print and store."""
    return value.item() if isinstance(value, np.generic) else value


def read_scores(
    y_score: ArrayLike, *, name: str = "y_score", n_rows: int | None = None
) -> FloatArray:
    """Read scores in [0, 1] as float64."""
    scores = read_finite(y_score, name, n_rows)
    low, high = scores.min(), scores.max()
    if not (low >= 0.0 and high <= 1.0):
        advice = "turn margins or logits into probabilities first"
        if low >= 0.0 and high <= 100.0:
            advice = "divide percentages by 100"
        raise InputError(
            f"{name} must lie in [0, 1], got values from {low:g} to {high:g}. Pass probabilities "
            f"or 0/1 decisions; {advice}.",
            parameter=name,
        )
    return scores


def read_finite(values: ArrayLike, name: str, n_rows: int | None = None) -> FloatArray:
    """Read a column of finite numbers as float64."""
    numbers = read_numbers(values, name)
    check_length(numbers, n_rows, name)
    bad = ~np.isfinite(numbers)
    if bad.any():
        raise InputError(
            f"{name} has {int(bad.sum())} entries that are NaN or infinite (the first in row "
            f"{int(np.argmax(bad))}, counted from 0). Every row needs a finite number: fill these "
            "rows in, or leave them out.",
            parameter=name,
        )
    return numbers


def read_numbers(values: ArrayLike, name: str) -> FloatArray:
    """Read a numeric column as float64."""
    array = read_column(values, name)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64, copy=False)
    row = next((row for row, value in enumerate(array) if not _is_number(value)), 0)
    held = plain_value(array[row])
    raise InputError(
        f"{name} must be numeric, got dtype {array.dtype} (row {row}, counted from 0, holds "
        f"{held!r}). Convert it to numbers first. If that value stands for a missing one, make it "
        "NaN (on the command line: --missing).",
        parameter=name,
    )


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
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
    array = read_classes(y_true, name, n_rows)
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


def read_classes(labels: ArrayLike, name: str, n_rows: int) -> NDArray[Any]:
    """Read a column of labels, none of which may be missing."""
    array = read_column(labels, name)
    check_length(array, n_rows, name)
    if n_missing := int(is_missing(array).sum()):
        raise LabelError(
            f"{name} has {n_missing} missing labels, and every row needs one. Leave those rows out."
        )
    return array


def read_weights(sample_weight: ArrayLike | None, *, n_rows: int) -> FloatArray | None:
    """Read weights, which must be finite and not negative. None stays None."""
    if sample_weight is None:
        return None
    weights = read_numbers(sample_weight, "sample_weight")
    check_length(weights, n_rows, "sample_weight")
    if not (np.isfinite(weights).all() and weights.min() >= 0.0):
        row = int(np.argmax(~(np.isfinite(weights) & (weights >= 0.0))))
        raise InputError(
            f"sample_weight must be finite and not negative, but row {row}, counted from 0, has "
            f"{weights[row]:g}. Correct this weight, or leave the row out.",
            parameter="sample_weight",
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
            "example with fairmatch.people.encoding.TableEncoder."
        )
    check_length(array, n_rows, name)
    array = array.astype(np.float64, copy=False)
    check_finite(array, name)
    if largest < np.inf and (far := np.abs(array) > largest).any():
        row, column = (int(i[0]) for i in np.nonzero(far))
        raise InputError(
            f"{name} holds {array[row, column]:g} (row {row}, column {column}, counted from 0), "
            f"beyond {largest:g}, the largest number allowed. Scale the columns first."
        )
    return array


def check_finite(table: NDArray[Any], name: str) -> None:
    """Raise unless every entry of a table is finite."""
    if not np.isfinite(table).all():
        row, column = (int(i[0]) for i in np.nonzero(~np.isfinite(table)))
        raise InputError(
            f"{name} has a NaN or infinite entry (row {row}, column {column}, counted from 0), "
            "and every entry must be finite. Impute it, or leave the row out.",
            parameter=name,
        )


# Rows of probabilities may miss the sum 1 by this much, as float32 and printed digits do.
_SUM_ERROR = 1e-3


def check_probabilities(
    table: FloatArray, name: str, error: type[InputError] = InputError
) -> FloatArray:
    """Return the sums of the rows. Raise unless every row holds probabilities that sum to 1."""
    sums: FloatArray = table.sum(axis=1)
    bad = ~((table >= 0.0).all(axis=1) & (np.abs(sums - 1.0) <= _SUM_ERROR))
    if bad.any():
        row, n_bad = int(np.argmax(bad)), int(bad.sum())
        shown = ", ".join(f"{value:.6g}" for value in table[row, :5])
        raise error(
            f"{name} holds no probabilities in {n_bad} row{'s' * (n_bad > 1)}: the first is row "
            f"{row}, counted from 0, with {shown}. Every row needs numbers in [0, 1] that sum to "
            "1. Correct these rows, or leave them out.",
            parameter=name,
        )
    return sums


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


def is_count(value: Any, least: int = 1) -> bool:
    """Return whether a value is a whole number of at least ``least``, and not a boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def check_count(name: str, value: Any, least: int = 1, *, optional: bool = False) -> None:
    """Raise unless a parameter is a whole number of at least ``least``, or None if optional."""
    if not (is_count(value, least) or (optional and value is None)):
        allowed = f"a whole number of at least {least}{' or None' if optional else ''}"
        raise InputError(f"{name} must be {allowed}, got {value!r}.", parameter=name)


def check_number(name: str, value: Any, within: str) -> None:
    """Raise unless a parameter is a number within an interval such as ``"[0, 1)"``."""
    low, high = map(float, within[1:-1].split(","))
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        above = number >= low if within[0] == "[" else number > low
        below = number <= high if within[-1] == "]" else number < high
        if above and below:
            return
    raise InputError(f"{name} must be a number in {within}, got {value!r}.", parameter=name)


def check_weights(name: str, weights: Any, within: str) -> None:
    """Raise unless there is at least one weight, and each is a number within an interval."""
    values = np.asarray(weights, dtype=object)
    if values.ndim == 0 or len(values) == 0:
        raise InputError(f"{name}s must be a list of numbers in {within}, got {weights!r}.")
    for weight in weights:
        check_number(name, weight, within)


def check_flag(name: str, value: Any) -> None:
    """Raise unless a parameter is True or False, because words and numbers would count as True."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(
            f"{name} must be True or False, got {value!r}. Pass one of the two.", parameter=name
        )


def check_verbose(value: Any) -> None:
    """Raise unless ``verbose`` is a whole number. True and False count as 1 and 0 here."""
    if not isinstance(value, Integral):
        raise InputError(f"verbose must be a whole number, got {value!r}. Pass 1 to show progress.")


def read_generator(random_state: Any) -> np.random.Generator:
    """Return a random generator made from a seed. A generator is returned unchanged."""
    if not isinstance(random_state, np.random.Generator):
        check_count("random_state", random_state, 0, optional=True)
    return np.random.default_rng(random_state)


_SHOWN = 12


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was most likely meant, or None."""
    folded = {other.casefold(): other for other in known}
    near = get_close_matches(name.casefold(), folded, n=1)
    return folded[near[0]] if near else None


def near_names(given: Iterable[str], known: Sequence[str]) -> str:
    """Return a line for each unknown name that is close to a known one."""
    there = set(known)
    strange = [name for name in given if name not in there][:_SHOWN]
    pairs = [(name, nearest_name(name, known)) for name in strange]
    return "".join(f"\nDid you mean {near!r} by {name!r}?" for name, near in pairs if near)


def check_names(wanted: Iterable[str], known: Sequence[str], *, table: object) -> None:
    """Raise unless a table has all of these columns.

    The error names every missing column, with the nearest name there is. ``table`` is how it names
    the table, for example by its file.

    Examples
    --------
    >>> from fairmatch.people.checks import check_names
    >>> check_names(["scor", "race"], ["score", "sex"], table="people.csv")
    Traceback (most recent call last):
    fairmatch.exceptions.ColumnError: people.csv has no columns 'scor' and 'race'.
    Did you mean 'score' by 'scor'? There are: score, sex.
    """
    absent = [name for name in dict.fromkeys(wanted) if name not in known]
    if not absent:
        return
    lists = [name for name in absent if _is_list(name, known)]
    near = {name: nearest_name(name, known) for name in absent if name not in lists}
    near = {name: other for name, other in near.items() if other}
    several = len(absent) > 1
    hints = [f"{name!r} is a list, but one column is expected." for name in lists]
    hints += [
        f"Did you mean {other!r}{f' by {name!r}' if several else ''}?"
        for name, other in near.items()
    ]
    if len(near) + len(lists) < len(absent):
        rest = ", …" if len(known) > _SHOWN else ""
        hints.append(f"There are: {', '.join(known[:_SHOWN])}{rest}.")
    listed = ", ".join(repr(name) for name in absent[:-1]) + " and " * several + repr(absent[-1])
    raise ColumnError(f"{table} has no column{'s' * several} {listed}. {' '.join(hints)}")


def _is_list(name: str, known: Sequence[str]) -> bool:
    """Return whether a name is a list of known names, with commas between them."""
    parts = [part.strip() for part in name.split(",")]
    return len(parts) > 1 and all(part in known for part in parts)
