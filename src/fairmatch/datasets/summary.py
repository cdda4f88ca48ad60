"""What a dataset looks like, and whether it is here; nothing is downloaded for that."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from fairmatch.datasets.catalogue import find_source, load_dataset
from fairmatch.datasets.download import locate
from fairmatch.tables.encoder import TableEncoder

Location: TypeAlias = Path | Literal["bundled"]


@dataclass(frozen=True)
class GroupSummary:
    """The size of a group, and its share of Y = 1.

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
        As in the registry.
    location : pathlib.Path, "bundled" or None
        Where the table is; None if it is not here.
    n_rows, n_features : int or None
        Rows, and features after encoding; None if the table is not here.
    groups : tuple of GroupSummary
        The groups, S = 0 first; empty if the table is not here.

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
    """Summarise a dataset, if it is here; nothing is downloaded.

    Parameters
    ----------
    name : str
        One of ``DATASET_NAMES``.

    Returns
    -------
    DatasetSummary
        With numbers if the table is bundled or on disk, without if it is not.

    Raises
    ------
    DatasetError
        If there is no such dataset, or its file is damaged.

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
    encoder = TableEncoder().fit(dataset.X)
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
