"""The datasets by short name: what each looks like, and whether it is available."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from fairmatch.datasets.acsincome import load_acsincome
from fairmatch.datasets.adult import load_adult
from fairmatch.datasets.bank import load_bank
from fairmatch.datasets.dataset import Dataset
from fairmatch.datasets.download import locate
from fairmatch.datasets.dutch import load_dutch
from fairmatch.datasets.german import load_german
from fairmatch.datasets.sources import SOURCES, Source
from fairmatch.exceptions import DatasetError, InputError
from fairmatch.tables.encoder import TableEncoder

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
