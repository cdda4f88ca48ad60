"""A benchmark table, and what its parts mean."""

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
        Short name, one of ``DATASET_NAMES``.
    X : pandas.DataFrame of shape (n_rows, n_columns)
        Features with readable names. Categorical columns have the ``category`` dtype with fixed
        levels.
    y : pandas.Series of shape (n_rows,)
        Labels, 0 or 1.
    sensitive_features : pandas.Series or pandas.DataFrame with n_rows rows
        The group of each row as a readable string, or a table of several attributes, whose
        combinations are the groups.
    groups : tuple of str
        The groups in the order of their codes. In the paper's tables S = 0 comes before S = 1.
    favoured_group : str
        The group with the highest rate of Y = 1. In the paper's tables it is S = 1, except in Bank.
    positive_label : str
        What Y = 1 means.
    batch_size : int
        The mini-batch size that the paper uses for this table, or for one of its size.
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
        """The paper's S: the position of each row's group in `groups`."""
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
