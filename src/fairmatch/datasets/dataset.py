"""A benchmark table with everything that is known about it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from fairmatch.datasets.sensitive import SensitiveFeatures, name_groups
from fairmatch.datasets.sources import SOURCES


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A prepared benchmark table: features, labels, groups, and what they mean.

    Parameters
    ----------
    name : str
        Short name, the key of the registry.
    X : pandas.DataFrame of shape (n_rows, n_columns)
        Features under readable names; categoricals have the ``category`` dtype with fixed levels.
    y : pandas.Series of shape (n_rows,)
        Labels, 0 or 1.
    sensitive_features : pandas.Series or pandas.DataFrame with n_rows rows
        Each row's group as a readable string, or a table of several attributes, whose
        combinations are the groups.
    groups : tuple of str
        The groups in the order of their codes: in the paper S = 0, then S = 1.
    favoured_group : str
        The group with the highest rate of Y = 1. Of the paper's two it is S = 1 everywhere but on
        Bank.
    positive_label : str
        What Y = 1 means.
    batch_size : int
        The mini-batch size that the paper uses on this table, or on one of its size.
    description : str
        What a row is, and how the table was prepared.

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

    name: str
    X: pd.DataFrame
    y: "pd.Series[int]"
    sensitive_features: SensitiveFeatures
    groups: tuple[str, ...]
    favoured_group: str
    positive_label: str
    batch_size: int
    description: str

    def __post_init__(self) -> None:
        assert len(self.X) == len(self.y) == len(self.sensitive_features)
        assert self.favoured_group in self.groups

    def __repr__(self) -> str:
        rows, columns = self.X.shape
        return f"Dataset(name={self.name!r}, rows={rows}, columns={columns}, groups={self.groups})"

    @property
    def group(self) -> npt.NDArray[np.int64]:
        """The paper's S: for each row the position of its group in `groups`."""
        names = name_groups(self.sensitive_features)
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
