"""The datasets by their short names."""

from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path

from fairmatch.datasets.adult import load_adult
from fairmatch.datasets.bank import load_bank
from fairmatch.datasets.dataset import Dataset
from fairmatch.datasets.dutch import load_dutch
from fairmatch.datasets.german import load_german
from fairmatch.datasets.sources import SOURCES, Source
from fairmatch.exceptions import ColumnError, DatasetError, InputError
from fairmatch.tables.files import MISSING_WORDS, LabelledTable, check_column, read_table

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


def read_labelled(name: str, target: str | None, sensitive: str | None) -> LabelledTable:
    """Read a file with its label and group columns, or a dataset that knows its own.

    Parameters
    ----------
    name : str
        A file, or the name of a dataset. A file of the same name is preferred.
    target, sensitive : str or None
        Names of the columns with the labels and with the groups; None is for datasets.

    Returns
    -------
    LabelledTable
        All columns, and the names of the two.

    Raises
    ------
    InputError
        If a file is given without the names of its columns, or these have missing values.
    ColumnError
        If a column is not there, or both names are the same.

    Examples
    --------
    >>> from fairmatch.datasets.catalogue import read_labelled
    >>> german = read_labelled("german", None, None)
    >>> german.target, german.sensitive, len(german.frame)
    ('good_credit', 'sex', 1000)
    """
    if name in DATASET_NAMES and not Path(name).exists():
        dataset = load_dataset(name)
        label, group = str(dataset.y.name), str(dataset.sensitive_features.name)
        frame = dataset.X.copy()
        frame[group], frame[label] = dataset.sensitive_features, dataset.y
        return LabelledTable(frame, label, group)
    if target is None or sensitive is None:
        near = get_close_matches(name, DATASET_NAMES, n=1)
        hint = f" (Did you mean the dataset {near[0]!r}?)" if near else ""
        raise InputError(
            f"{name} is a file, so --target and --sensitive must name its columns.{hint}"
        )
    frame = read_table(name)
    for column in (target, sensitive):
        check_column(frame, column)
    if target == sensitive:
        raise ColumnError(f"--target and --sensitive are the same column, {target!r}.")
    missing = {c: int(frame[c].isna().sum()) for c in (target, sensitive)}
    if any(missing.values()):
        said = " and ".join(f"{c!r} has {n}" for c, n in missing.items() if n)
        raise InputError(f"Missing values: {said}. Drop those rows first. {MISSING_WORDS}")
    return LabelledTable(frame, target, sensitive)
