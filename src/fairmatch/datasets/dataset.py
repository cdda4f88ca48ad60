"""A benchmark table with everything that is known about it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

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
    sensitive_features : pandas.Series of shape (n_rows,)
        Each row's group, as a readable string.
    groups : tuple of two str
        The groups in the order of the paper's codes: S = 0, then S = 1.
    favoured_group : str
        The group with the higher rate of Y = 1. It is S = 1 everywhere but on Bank.
    positive_label : str
        What Y = 1 means.
    batch_size : int
        The mini-batch size that the paper uses on this table.
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
    sensitive_features: "pd.Series[str]"
    groups: tuple[str, str]
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
        """The paper's S: 0 or 1 for each row, positions in `groups`."""
        return np.asarray(self.sensitive_features == self.groups[1], dtype=np.int64)

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
