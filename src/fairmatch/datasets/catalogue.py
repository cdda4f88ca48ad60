"""The datasets by their short names."""

from collections.abc import Callable

from fairmatch.datasets.adult import load_adult
from fairmatch.datasets.bank import load_bank
from fairmatch.datasets.dataset import Dataset
from fairmatch.datasets.dutch import load_dutch
from fairmatch.datasets.german import load_german
from fairmatch.datasets.sources import SOURCES, Source
from fairmatch.exceptions import DatasetError

_LOADERS: dict[str, Callable[[], Dataset]] = {
    "adult": load_adult,
    "german": load_german,
    "bank": load_bank,
    "dutch": load_dutch,
}

DATASET_NAMES: tuple[str, ...] = tuple(_LOADERS)
"""The short names of the datasets, in the paper's order."""


def load_dataset(name: str) -> Dataset:
    """Load a dataset by its short name.

    Parameters
    ----------
    name : str
        One of ``DATASET_NAMES``.

    Returns
    -------
    Dataset
        The prepared table.

    Raises
    ------
    DatasetError
        If there is no such dataset, or its file cannot be had.

    Examples
    --------
    >>> from fairmatch.datasets import load_dataset
    >>> load_dataset("german").y.sum()
    np.int64(700)
    """
    find_source(name)  # says which names there are
    return _LOADERS[name]()


def find_source(name: str) -> Source:
    """Give a dataset's entry in the registry.

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
        raise DatasetError(f"There is no dataset {name!r}; there are {', '.join(DATASET_NAMES)}.")
    return SOURCES[name]
