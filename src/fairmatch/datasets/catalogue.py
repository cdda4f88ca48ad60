"""The datasets by short name."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from fairmatch.datasets.loaders import (
    Dataset,
    load_acsincome,
    load_adult,
    load_bank,
    load_dutch,
    load_german,
)
from fairmatch.datasets.registry import SOURCES, Source, locate
from fairmatch.exceptions import DatasetError, InputError
from fairmatch.people.encoding import TableEncoder

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
