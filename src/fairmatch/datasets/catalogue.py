"""The datasets by short name, and tables with label and group columns."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from fairmatch.datasets.loaders import (
    Dataset,
    load_acsincome,
    load_adult,
    load_bank,
    load_dutch,
    load_german,
)
from fairmatch.datasets.registry import SOURCES, Source, locate
from fairmatch.exceptions import ColumnError, DatasetError, InputError
from fairmatch.people.checks import check_names
from fairmatch.people.encoding import TableEncoder
from fairmatch.people.files import MISSING_WORDS, LabelledTable, find_value, read_table

Location: TypeAlias = Path | Literal["bundled"]

_LOADERS: dict[str, Callable[..., Dataset]] = {
    "adult": load_adult,
    "german": load_german,
    "bank": load_bank,
    "dutch": load_dutch,
    "acsincome": load_acsincome,
}
# Tables that offer a choice of sensitive attributes.
_WITH_CHOICE = ("adult", "acsincome")

DATASET_NAMES: tuple[str, ...] = tuple(_LOADERS)
"""The short names of the datasets: the paper's four in its order, then the others."""

PAPER_DATASETS = DATASET_NAMES[:4]
"""The short names of the paper's four datasets."""


def load_dataset(name: str, *, sensitive: str | Sequence[str] | None = None) -> Dataset:
    """Load a dataset by its short name.

    Parameters
    ----------
    name : str
        One of ``DATASET_NAMES``.
    sensitive : str or sequence of str, optional
        The sensitive attributes, for the tables that offer a choice. These are adult and acsincome,
        with sex, race, or both.

    Returns
    -------
    Dataset
        The prepared table.

    Raises
    ------
    DatasetError
        If there is no such dataset, or if its file is neither found nor downloaded.
    InputError
        If the table has no such sensitive attribute, or offers no choice.
    MissingExtraError
        If the table is acsincome and pyarrow, which reads it, is not installed.

    Examples
    --------
    >>> from fairmatch.datasets import load_dataset
    >>> load_dataset("german").y.sum()
    np.int64(700)
    """
    find_source(name)  # its error lists the known names
    if sensitive is None:
        return _LOADERS[name]()
    if name not in _WITH_CHOICE:
        raise InputError(
            f"The sensitive attribute of {name!r} cannot be chosen, got {sensitive!r}. Leave it "
            f"out. Only {' and '.join(_WITH_CHOICE)} offer a choice."
        )
    return _LOADERS[name](sensitive=sensitive)


def find_source(name: str) -> Source:
    """Return where a dataset comes from.

    Parameters
    ----------
    name : str
        One of ``DATASET_NAMES``.

    Returns
    -------
    Source
        Its files, licence and citation.

    Raises
    ------
    DatasetError
        If there is no such dataset.

    Examples
    --------
    >>> from fairmatch.datasets.catalogue import find_source
    >>> find_source("dutch").title
    'Dutch Census 2001'
    """
    if name not in SOURCES:
        raise DatasetError(
            f"There is no dataset {name!r}. Choose one of {', '.join(DATASET_NAMES)}."
        )
    return SOURCES[name]


@dataclass(frozen=True)
class GroupSummary:
    """The size of a group, and the share of its rows with Y = 1.

    Parameters
    ----------
    name : str
        The group.
    size : int
        Its number of rows.
    base_rate : float
        Share of its rows with Y = 1.

    Examples
    --------
    >>> from fairmatch.datasets import summarise
    >>> summarise("german").groups[1]
    GroupSummary(name='male', size=690, base_rate=0.723...)
    """

    name: str
    size: int
    base_rate: float


@dataclass(frozen=True)
class DatasetSummary:
    """A dataset at a glance.

    Parameters
    ----------
    name, title, licence : str
        Short name, full name, and the licence of the data.
    location : pathlib.Path, "bundled" or None
        Where the table is. It is None if the table is not available.
    n_rows, n_features : int or None
        Number of rows, and number of features after encoding. They are None if the table is not
        available.
    groups : tuple of GroupSummary
        The groups, in the order of their codes. It is empty if the table is not available.

    Examples
    --------
    >>> from fairmatch.datasets import summarise
    >>> german = summarise("german")
    >>> german.n_rows, german.n_features, german.location
    (1000, 57, 'bundled')
    """

    name: str
    title: str
    licence: str
    location: Location | None
    n_rows: int | None = None
    n_features: int | None = None
    groups: tuple[GroupSummary, ...] = ()


def summarise(name: str) -> DatasetSummary:
    """Summarise a dataset if it is available. Nothing is downloaded.

    Parameters
    ----------
    name : str
        One of ``DATASET_NAMES``.

    Returns
    -------
    DatasetSummary
        A summary with numbers if the table is bundled or on disk, and without them otherwise.

    Raises
    ------
    DatasetError
        If there is no such dataset, or if its file is damaged.

    Examples
    --------
    >>> from fairmatch.datasets import summarise
    >>> [group.size for group in summarise("german").groups]
    [310, 690]
    """
    source = find_source(name)
    bundled = all(file.bundled for file in source.files)
    location: Location | None = "bundled" if bundled else locate(source.files[0])
    if location is None:
        return DatasetSummary(name, source.title, source.licence, None)
    dataset = load_dataset(name)
    by_group = dataset.y.groupby(dataset.group)
    encoder = TableEncoder(max_levels=None).fit(dataset.X)  # every level counts as a feature
    return DatasetSummary(
        name,
        source.title,
        source.licence,
        location,
        n_rows=len(dataset.X),
        n_features=len(encoder.get_feature_names_out()),
        groups=tuple(
            GroupSummary(group, int(by_group.size()[code]), float(by_group.mean()[code]))
            for code, group in enumerate(dataset.groups)
        ),
    )


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
        Further arguments of `fairmatch.people.files.read_table`.

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
    >>> from fairmatch.datasets.catalogue import read_labelled
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
    >>> from fairmatch.datasets.catalogue import split_names
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


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Training and test rows of a dataset, encoded with what the training rows show.

    Parameters
    ----------
    X_train, X_test : ndarray of shape (n_rows, n_features)
        Encoded features.
    y_train, y_test : ndarray of shape (n_rows,)
        Labels, 0 or 1.
    group_train, group_test : ndarray of shape (n_rows,)
        The paper's S: the position of each row's group in ``Dataset.groups``.
    sensitive_features_train, sensitive_features_test : ndarray of shape (n_rows,)
        The name of each row's group.
    train_index, test_index : ndarray of shape (n_rows,)
        Row positions in the dataset.
    encoder : TableEncoder
        The encoder, fitted on the training rows only.

    Examples
    --------
    >>> from fairmatch.datasets import load_german, paper_split
    >>> split = paper_split(load_german(), seed=0)
    >>> split.X_train.shape, split.X_test.shape
    ((800, 57), (200, 57))
    """

    X_train: npt.NDArray[np.float64]
    X_test: npt.NDArray[np.float64]
    y_train: npt.NDArray[np.int64]
    y_test: npt.NDArray[np.int64]
    group_train: npt.NDArray[np.int64]
    group_test: npt.NDArray[np.int64]
    sensitive_features_train: npt.NDArray[Any]
    sensitive_features_test: npt.NDArray[Any]
    train_index: npt.NDArray[np.int64]
    test_index: npt.NDArray[np.int64]
    encoder: TableEncoder

    def __repr__(self) -> str:
        return f"Split(train={len(self.y_train)}, test={len(self.y_test)})"


def paper_split(dataset: Dataset, seed: int, *, test_size: float = 0.2) -> Split:
    """Split a dataset at random, and encode it with what the training rows show.

    Parameters
    ----------
    dataset : Dataset
        The table to split.
    seed : int
        The same seed gives the same split, bit for bit.
    test_size : float, default=0.2
        Share of the rows that are test rows. Their number is rounded up, as in the paper's table
        of datasets (6,098 of Bank's 30,488 rows).

    Returns
    -------
    Split
        Both parts, encoded.

    Raises
    ------
    InputError
        If `test_size` leaves no training rows or no test rows.

    Examples
    --------
    >>> from fairmatch.datasets import load_german, paper_split
    >>> paper_split(load_german(), seed=0)
    Split(train=800, test=200)
    """
    n_rows = len(dataset.X)
    # A product such as 0.29 * 100 lies a rounding error above the whole number it stands for.
    n_test = math.ceil(round(test_size * n_rows, 6)) if 0 < test_size < 1 else 0
    if not 0 < n_test < n_rows:
        raise InputError(
            f"test_size must leave both training rows and test rows of {n_rows}, got {test_size}. "
            "Pass a share between 0 and 1, such as 0.2."
        )
    order = np.random.default_rng(seed).permutation(n_rows)
    # Rows stay in the table's order, so a split reads like a part of the table.
    test, train = np.sort(order[:n_test]), np.sort(order[n_test:])
    encoder = TableEncoder().fit(dataset.X.iloc[train])
    encoded = encoder.transform(dataset.X)
    y = np.asarray(dataset.y, dtype=np.int64)
    group = dataset.group
    names = np.array(dataset.groups)[group]
    return Split(
        X_train=encoded[train],
        X_test=encoded[test],
        y_train=y[train],
        y_test=y[test],
        group_train=group[train],
        group_test=group[test],
        sensitive_features_train=names[train],
        sensitive_features_test=names[test],
        train_index=train,
        test_index=test,
        encoder=encoder,
    )
