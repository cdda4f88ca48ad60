"""The benchmark tables: one loader each, by name, in summary, and split as in the paper."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from fairmatch.datasets.registry import SOURCES, locate, read_content
from fairmatch.exceptions import DatasetError, InputError, MissingExtraError
from fairmatch.people.encoding import Table, TableEncoder

SensitiveFeatures: TypeAlias = "pd.Series[str] | pd.DataFrame"


def _group_names(sensitive_features: SensitiveFeatures) -> "pd.Series[str]":
    """Return the name of each row's group: the value, or the combination of several values."""
    if isinstance(sensitive_features, pd.Series):
        return sensitive_features
    attributes = sensitive_features.astype(str)
    first, others = attributes.iloc[:, 0], attributes.iloc[:, 1:]
    return first.str.cat(others, sep=", ") if len(others.columns) else first


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A prepared benchmark table: features, labels, groups, and what they mean.

    Examples
    --------
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> german
    Dataset(name='german', rows=1000, columns=19, groups=('female', 'male'))
    >>> german.positive_label, german.favoured_group
    ('good credit', 'male')
    >>> german.group[:5]
    array([1, 0, 1, 1, 1])
    """

    name: str  #: Short name, one of ``DATASET_NAMES``.
    #: Features with readable names. Categorical columns have the ``category`` dtype with fixed
    #: levels.
    X: pd.DataFrame
    y: "pd.Series[int]"  #: Labels, 0 or 1.
    #: The group of each row as a readable string, or a table of several attributes, whose
    #: combinations are the groups.
    sensitive_features: SensitiveFeatures
    #: The groups in the order of their codes. In the paper's tables S = 0 comes before S = 1.
    groups: tuple[str, ...]
    #: The group with the highest rate of Y = 1. In the paper's tables it is S = 1, except in Bank.
    favoured_group: str
    positive_label: str  #: What Y = 1 means.
    #: The mini-batch size that the paper uses for this table, or for one of its size.
    batch_size: int
    description: str  #: What a row is, and how the table was prepared.

    def __post_init__(self) -> None:
        assert len(self.X) == len(self.y) == len(self.sensitive_features)
        assert self.favoured_group in self.groups

    def __repr__(self) -> str:
        rows, columns = self.X.shape
        return f"Dataset(name={self.name!r}, rows={rows}, columns={columns}, groups={self.groups})"

    @property
    def group(self) -> npt.NDArray[np.int64]:
        """The paper's S: the position of each row's group in `groups`."""
        names = _group_names(self.sensitive_features)
        return pd.Index(self.groups).get_indexer(pd.Index(names)).astype(np.int64)

    @property
    def numeric_features(self) -> list[str]:
        """Names of the numeric columns of `X`."""
        return list(self.X.select_dtypes("number").columns)

    @property
    def categorical_features(self) -> list[str]:
        """Names of the categorical columns of `X`."""
        return list(self.X.select_dtypes("category").columns)

    @property
    def licence(self) -> str:
        """The licence of the data."""
        return SOURCES[self.name].licence

    @property
    def citation(self) -> str:
        """How to cite the data."""
        return SOURCES[self.name].citation

    @property
    def source(self) -> str:
        """Address of the publisher's page."""
        return SOURCES[self.name].page


def _dataset(
    name: str,
    X: pd.DataFrame,
    y: "pd.Series[int]",
    sensitive_features: SensitiveFeatures,
    groups: tuple[str, ...] = (),
) -> Dataset:
    """Return a dataset; its groups are in sorted order, unless they are named in another one."""
    rates = y.groupby(_group_names(sensitive_features)).mean()
    return Dataset(
        name=name,
        X=X,
        y=y,
        sensitive_features=sensitive_features,
        groups=groups or tuple(rates.index),
        favoured_group=str(rates.idxmax()),
        positive_label=SOURCES[name].positive_label,
        batch_size=SOURCES[name].batch_size,
        description=SOURCES[name].description,
    )


def _chosen(
    name: str, people: pd.DataFrame, y: "pd.Series[int]", sensitive: str | Sequence[str]
) -> Dataset:
    """Return a dataset whose groups are formed by the sensitive attributes that were chosen."""
    names = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    known = ["sex", "race"]
    if not names or len(set(names)) < len(names) or not set(names) <= set(known):
        raise InputError(
            f"sensitive must be one of {', '.join(map(repr, known))}, or a list of them without "
            f"repetition; got {sensitive!r}."
        )
    attributes = people[known].astype(str)
    features = attributes[sensitive] if isinstance(sensitive, str) else attributes[names]
    return _dataset(name, people.drop(columns=names), y, features)


def _in_words(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """Replace the codes of columns by the words of the table's codebook."""
    for column, words in SOURCES[name].levels.items():
        levels = {type(table[column].iloc[0])(code): word for code, word in words.items()}
        table[column] = pd.Categorical(table[column].map(levels), categories=[*levels.values()])
    return table


# Categories for which only the codes are known here.
_ACS_CODES = ("relationship", "occupation", "place_of_birth")


def load_acsincome(*, sensitive: str | Sequence[str] = "sex") -> Dataset:
    """Load the ACSIncome table (found in the folder ``FAIRMATCH_DATA``, never downloaded).

    Parameters
    ----------
    sensitive : {"sex", "race"} or sequence of them, default="sex"
        The sensitive attribute, which is left out of X. With a sequence, the groups are the
        combinations of its attributes, and ``sensitive_features`` is a table of them.

    Returns
    -------
    Dataset
        The table has 332,900 rows. Y = 1 is an income over $50,000. S is sex, race (nine groups),
        or both. Schooling, hours per week and age are numbers. The other features are categories.

    Raises
    ------
    DatasetError
        If the file is absent or damaged.
    InputError
        If there is no such sensitive attribute.
    MissingExtraError
        If pyarrow, which reads the file, is not installed.

    Examples
    --------
    >>> from fairmatch.datasets import load_acsincome
    >>> load_acsincome(sensitive="race").favoured_group  # doctest: +SKIP
    'Asian'
    """
    source = SOURCES["acsincome"]
    content = read_content(source.files[0])
    try:
        raw = pd.read_parquet(BytesIO(content))
    except ImportError as error:
        raise MissingExtraError(
            f"{source.files[0].name} is a Parquet file, and reading one needs pyarrow: pip install "
            "'fairmatch[paper]'."
        ) from error
    raw = raw.reset_index(drop=True).rename(columns=source.names)
    y = raw["PINCP"].astype("int64").rename("income_over_50k")
    people = _in_words(raw[list(source.names.values())].astype("int64"), "acsincome")
    for column in _ACS_CODES:  # in the order of the codes, written without a decimal point
        category = people[column].astype("category")
        people[column] = category.cat.rename_categories(str)
    return _chosen("acsincome", people, y, sensitive)


def load_adult(*, sensitive: str | Sequence[str] = "sex") -> Dataset:
    """Load the Adult census table (bundled with the package).

    Parameters
    ----------
    sensitive : {"sex", "race"} or sequence of them, default="sex"
        The sensitive attribute, which is left out of X. With a sequence, the groups are the
        combinations of its attributes, and ``sensitive_features`` is a table of them.

    Returns
    -------
    Dataset
        The table has 45,222 rows: the publisher's training rows, then its test rows. Rows with a
        missing value are left out. Y = 1 is an income over $50,000. S is sex, race (five groups),
        or both. With sex as S, the one-hot encoded table has 101 features.

    Raises
    ------
    InputError
        If there is no such sensitive attribute.

    Examples
    --------
    >>> from fairmatch.datasets import load_adult
    >>> adult = load_adult()
    >>> adult.X.shape, adult.favoured_group
    ((45222, 12), 'male')
    >>> load_adult(sensitive=["sex", "race"]).groups[2]
    'female, Black'
    """
    parts = [
        pd.read_csv(
            BytesIO(read_content(file)),
            header=None,
            names=list(SOURCES["adult"].columns),
            comment="|",  # adult.test opens with a comment line
            skipinitialspace=True,
            na_values=["?"],
            keep_default_na=False,
        )
        for file in SOURCES["adult"].files
    ]
    raw = pd.concat(parts).dropna().reset_index(drop=True)
    # fnlwgt is the sampling weight of the census, not a trait of the person.
    people = raw.drop(columns=["fnlwgt", "income"])
    people["sex"] = people["sex"].str.lower()
    # adult.test ends each label with a full stop
    y = raw["income"].str.startswith(">50K").astype("int64").rename("income_over_50k")
    for column in people.select_dtypes(exclude="number").columns:
        people[column] = people[column].astype("category")
    return _chosen("adult", people, y, sensitive)


def load_bank() -> Dataset:
    """Load the Bank Marketing table (found on disk, or downloaded once).

    Returns
    -------
    Dataset
        The table has 30,488 rows. Rows with an 'unknown' value are left out. Y = 1 is a
        subscription to a term deposit. S is an age of 25 or over. The column `age` stays in X, so
        S is a function of X. The one-hot encoded table has 57 features.

    Raises
    ------
    DatasetError
        If the file is damaged, or is absent and cannot be downloaded.

    Examples
    --------
    >>> from fairmatch.datasets import load_bank
    >>> bank = load_bank()  # doctest: +SKIP
    >>> bank.favoured_group  # doctest: +SKIP
    'under 25'
    """
    (file,) = SOURCES["bank"].files
    raw = pd.read_csv(
        BytesIO(read_content(file)), sep=";", na_values=["unknown"], keep_default_na=False
    )
    raw = raw.dropna().reset_index(drop=True)
    raw.columns = raw.columns.str.replace(".", "_")
    X = raw.drop(columns="y")
    for column in X.select_dtypes(exclude="number").columns:
        words = X[column].str.removesuffix(".").str.replace(".", " ")
        X[column] = pd.Categorical(words, categories=SOURCES["bank"].levels.get(str(column)))
    groups = (raw["age"] >= 25).map({False: "under 25", True: "25 and over"})
    y = (raw["y"] == "yes").astype("int64").rename("subscribed")
    return _dataset("bank", X, y, groups.rename("age_group"), ("under 25", "25 and over"))


def load_dutch() -> Dataset:
    """Load the Dutch census table (found on disk, or downloaded once).

    Returns
    -------
    Dataset
        The table has 60,420 rows. Y = 1 is a high-level occupation. S is sex. Every feature is
        categorical, even age (in five-year bands). The one-hot encoded table has 59 features.

    Raises
    ------
    DatasetError
        If the file is damaged, or is absent and cannot be downloaded.

    Examples
    --------
    >>> from fairmatch.datasets import load_dutch
    >>> dutch = load_dutch()  # doctest: +SKIP
    >>> dutch.X["marital_status"].cat.categories.to_list()  # doctest: +SKIP
    ['single', 'married', 'widowed', 'divorced']
    """
    (file,) = SOURCES["dutch"].files
    raw = pd.read_csv(BytesIO(read_content(file)))
    X = _in_words(raw[list(SOURCES["dutch"].levels)].copy(), "dutch")
    y = raw["occupation"].astype("int64").rename("high_level_occupation")
    return _dataset("dutch", X, y, raw["sex"])


def load_german() -> Dataset:
    """Load the German Credit table (bundled with the package).

    Returns
    -------
    Dataset
        The table has 1,000 rows. Y = 1 is good credit. S is sex, which is read from the personal
        status; that column is left out of X. The one-hot encoded table has 57 features.

    Examples
    --------
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> german.X["purpose"].head(2).to_list()
    ['radio or television', 'radio or television']
    >>> german.y.groupby(german.sensitive_features).mean().round(3).to_dict()
    {'female': 0.648, 'male': 0.723}
    """
    source = SOURCES["german"]
    content = BytesIO(read_content(source.files[0]))
    raw = pd.read_csv(content, sep=" ", header=None, names=list(source.columns))
    X = _in_words(raw.drop(columns=["personal_status", "credit"]), "german")
    y = (raw["credit"] == 1).astype("int64").rename("good_credit")
    is_man = raw["personal_status"] != "A92"  # women; all other codes that occur are men's
    return _dataset("german", X, y, is_man.map({False: "female", True: "male"}).rename("sex"))


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
    _check_name(name)
    if sensitive is None:
        return _LOADERS[name]()
    if name not in _WITH_CHOICE:
        raise InputError(
            f"The sensitive attribute of {name!r} cannot be chosen, got {sensitive!r}. Leave it "
            f"out. Only {' and '.join(_WITH_CHOICE)} offer a choice."
        )
    return _LOADERS[name](sensitive=sensitive)


def _check_name(name: str) -> None:
    if name not in SOURCES:
        raise DatasetError(
            f"There is no dataset {name!r}. Choose one of {', '.join(DATASET_NAMES)}."
        )


@dataclass(frozen=True)
class GroupSummary:
    """The size of a group, and the share of its rows with Y = 1.

    Examples
    --------
    >>> from fairmatch.datasets import summarise
    >>> summarise("german").groups[1]
    GroupSummary(name='male', size=690, base_rate=0.723...)
    """

    name: str  #: The group.
    size: int  #: Its number of rows.
    base_rate: float  #: Share of its rows with Y = 1.


@dataclass(frozen=True)
class DatasetSummary:
    """A dataset at a glance.

    Examples
    --------
    >>> from fairmatch.datasets import summarise
    >>> german = summarise("german")
    >>> german.n_rows, german.n_features, german.location
    (1000, 57, 'bundled')
    """

    #: Short name, full name, and the licence of the data.
    name: str
    title: str
    licence: str
    #: Where the table is. It is None if the table is not available.
    location: Path | Literal["bundled"] | None
    #: Number of rows, and number of features after encoding. They are None if the table is not
    #: available.
    n_rows: int | None = None
    n_features: int | None = None
    #: The groups, in the order of their codes. It is empty if the table is not available.
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
    _check_name(name)
    source = SOURCES[name]
    bundled = all(file.bundled for file in source.files)
    location: Path | Literal["bundled"] | None = "bundled" if bundled else locate(source.files[0])
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

    Examples
    --------
    >>> from fairmatch.datasets import load_german, paper_split
    >>> split = paper_split(load_german(), seed=0)
    >>> split.X_train.shape, split.X_test.shape
    ((800, 57), (200, 57))
    """

    #: Encoded features.
    X_train: npt.NDArray[np.float64]
    X_test: npt.NDArray[np.float64]
    #: Labels, 0 or 1.
    y_train: npt.NDArray[np.int64]
    y_test: npt.NDArray[np.int64]
    #: The paper's S: the position of each row's group in ``Dataset.groups``.
    group_train: npt.NDArray[np.int64]
    group_test: npt.NDArray[np.int64]
    #: The name of each row's group.
    sensitive_features_train: npt.NDArray[Any]
    sensitive_features_test: npt.NDArray[Any]
    #: Row positions in the dataset.
    train_index: npt.NDArray[np.int64]
    test_index: npt.NDArray[np.int64]
    encoder: TableEncoder  #: The encoder, fitted on the training rows only.

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
            f"test_size must leave both training and test rows out of {n_rows}, got {test_size}. "
            "Pass a share between 0 and 1, such as 0.2."
        )
    order = np.random.default_rng(seed).permutation(n_rows)
    # Rows stay in the table's order, so a split reads like a part of the table.
    test, train = np.sort(order[:n_test]), np.sort(order[n_test:])
    table = Table(dataset.X)
    encoder = TableEncoder().fit(table.take(train))
    group = dataset.group
    every = {
        "X": encoder.transform(table),
        "y": np.asarray(dataset.y, dtype=np.int64),
        "group": group,
        "sensitive_features": np.array(dataset.groups)[group],
    }
    return Split(
        **{f"{name}_train": values[train] for name, values in every.items()},
        **{f"{name}_test": values[test] for name, values in every.items()},
        train_index=train,
        test_index=test,
        encoder=encoder,
    )
