"""A table with its label and group columns, from a file or from a dataset."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pandas as pd

from fairmatch.datasets.catalogue import DATASET_NAMES, load_dataset
from fairmatch.exceptions import ColumnError, InputError
from fairmatch.tables.files import MISSING_WORDS, LabelledTable, find_value, read_table
from fairmatch.tables.names import check_names


def read_labelled(
    name: str,
    target: str | None,
    sensitive: str | Sequence[str] | None,
    *,
    positive: str | None = None,
    **reading: Any,
) -> LabelledTable:
    """Read a file with its label and group columns, or a dataset, which knows its own.

    Parameters
    ----------
    name : str
        A file, or the name of a dataset. A file with the name of a dataset takes precedence.
    target : str or None
        Name of the column with the labels. A dataset needs none.
    sensitive : str, sequence of str or None
        Name of the column with the groups, or names of several columns, whose combinations are the
        groups. A text may hold several names separated by commas. A dataset needs none.
    positive : str, optional
        The positive label, as it is written in the file. Labels become 1 where they equal it, and
        0 elsewhere, and ``classes`` keeps their words. It is not used for a dataset.
    **reading
        Further arguments of `fairmatch.tables.files.read_table`.

    Returns
    -------
    LabelledTable
        All columns, and the names of those with labels and groups.

    Raises
    ------
    InputError
        If a file is given without the names of its columns, or if these have missing values.
    ColumnError
        If columns are missing, or if one is named twice.

    Examples
    --------
    >>> from fairmatch.datasets.labelled import read_labelled
    >>> german = read_labelled("german", None, None)
    >>> german.target, german.sensitive, len(german.frame)
    ('good_credit', 'sex', 1000)
    """
    if name in DATASET_NAMES and not Path(name).exists():
        return _from_dataset(name, target, sensitive)
    if target is None or sensitive is None:
        near = get_close_matches(name, DATASET_NAMES, n=1)
        hint = f" (Did you mean the dataset {near[0]!r}?)" if near else ""
        raise InputError(
            f"{name} is a file, so --target and --sensitive must name its columns.{hint}"
        )
    frame = read_table(name, **reading).rename(columns=str)
    columns = split_names(sensitive, list(frame.columns))
    check_names([target, *columns], list(frame.columns), table=name)
    if target in columns:
        raise ColumnError(
            f"--target and --sensitive are the same column, {target!r}. Name two columns."
        )
    missing = {c: int(frame[c].isna().sum()) for c in (target, *columns)}
    if any(missing.values()):
        said = " and ".join(
            f"{column!r} is missing in {n:,} row{'s' * (n > 1)}"
            for column, n in missing.items()
            if n
        )
        raise InputError(
            f"{said}. A model learns only from people whose label and group are known. Take those "
            f"rows out of the file. {MISSING_WORDS}"
        )
    classes = None
    if positive is not None:
        classes = _classes(frame[target], positive)
        frame[target] = (frame[target] == classes[1]).astype("int64")
    return LabelledTable(frame, target, columns[0] if len(columns) == 1 else columns, classes)


def split_names(given: str | Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the columns that were named: one, or several in a list or separated by commas.

    Parameters
    ----------
    given : str or sequence of str
        The names as they were written. Each text may hold several, separated by commas.
    known : sequence of str
        Columns of the table. A column may have a comma in its name.

    Raises
    ------
    ColumnError
        If a column is named twice.

    Examples
    --------
    >>> from fairmatch.datasets.labelled import split_names
    >>> split_names("sex, race", ["sex", "race"]), split_names("age, years", ["age, years"])
    (['sex', 'race'], ['age, years'])
    """
    names = []
    for text in [given] if isinstance(given, str) else given:
        names += [text] if text in known else [part.strip() for part in text.split(",")]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ColumnError(f"--sensitive names the column {twice!r} twice. Name it once.")
    return names


def _from_dataset(
    name: str, target: str | None, sensitive: str | Sequence[str] | None
) -> LabelledTable:
    chosen = None if sensitive is None else split_names(sensitive, ())
    dataset = load_dataset(name, sensitive=chosen[0] if chosen and len(chosen) == 1 else chosen)
    label = str(dataset.y.name)
    if target not in (None, label):
        raise InputError(
            f"The labels of the dataset {name!r} are {label!r}, and not {target!r}. Leave --target "
            "out."
        )
    groups = pd.DataFrame(dataset.sensitive_features)
    frame = dataset.X.copy()
    frame[list(groups.columns)], frame[label] = groups, dataset.y
    columns = [str(column) for column in groups.columns]
    return LabelledTable(frame, label, columns[0] if len(columns) == 1 else columns)


def _classes(column: Any, written: str) -> tuple[Any, Any]:
    """Return the negative and the positive label. Several negative ones get one name."""
    values = column.unique().tolist()
    try:
        positive = find_value(values, written)
    except LookupError:
        shown = ", ".join(map(repr, values[:5]))
        raise InputError(
            f"Column {column.name!r} has no value {written!r}; it holds {shown}. Name one of them "
            "with --positive."
        ) from None
    others = [value for value in values if value != positive]
    return others[0] if len(others) == 1 else f"not {positive}", positive
