"""The paper's random splits into training and test rows."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairmatch.datasets.dataset import Dataset
from fairmatch.exceptions import InputError
from fairmatch.tables.encoder import TableEncoder


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
