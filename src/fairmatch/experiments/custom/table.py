"""A researcher's own table: a file, and the roles of its columns."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairmatch.datasets import Dataset
from fairmatch.exceptions import GroupError, InputError, LabelError
from fairmatch.tables.encoder import TableEncoder
from fairmatch.tables.files import MISSING_WORDS, check_column, read_table

SMALLEST_PART = 20
"""Rows of each label that a group needs, because only a fifth of them are test rows."""


@dataclass(frozen=True, eq=False)
class OwnTable:
    """A table in a file, with the roles of its columns.

    Attributes
    ----------
    name : str
        Name of the table in the study.
    file : Path
        A .csv or .parquet file.
    sha256 : str
        SHA-256 of the file's bytes.
    target, sensitive : str
        Columns with the labels and with the groups.
    positive : str
        The label that counts as Y = 1.
    groups : tuple of two str
        The group S = 0, then the group S = 1, which is the favoured one.
    batch_size : int
        Number of rows in a mini-batch.
    drop : tuple of str
        Columns that are left out.
    """

    name: str
    file: Path
    sha256: str
    target: str
    sensitive: str
    positive: str
    groups: tuple[str, str]
    batch_size: int
    drop: tuple[str, ...]

    @classmethod
    def read(
        cls,
        name: str,
        file: Path,
        *,
        target: str,
        positive: Any,
        sensitive: str,
        favoured: Any = None,
        batch_size: int | None = None,
        drop: Sequence[str] = (),
    ) -> "OwnTable":
        """Return the table of a file, or raise if the file cannot be used.

        Parameters
        ----------
        name : str
            Name of the table in the study.
        file : Path
            A .csv or .parquet file.
        target, sensitive : str
            Columns with the labels and with the groups.
        positive : object
            The label that counts as Y = 1.
        favoured : object, optional
            The favoured group; by default the group with the larger share of positive labels.
        batch_size : int, optional
            Number of rows in a mini-batch; by default a fifth of the rows, at most 1024.
        drop : sequence of str
            Columns that are left out.
        """
        where = f"[tables.{name}]"
        frame = read_table(file)
        for column in (target, sensitive, *drop):
            check_column(frame, column, table=f"{where}: {file.name}")
        drop = tuple(dict.fromkeys(drop))
        if len({target, sensitive, *drop}) < 2 + len(drop):
            raise InputError(
                f"{where}: target, sensitive and drop must be different columns. Name each column "
                "once."
            )
        labels = _two_values(frame[target], LabelError, f"{where}: target", "labels")
        label = _one_of(positive, labels, f"{where}: positive")
        groups = _two_values(frame[sensitive], GroupError, f"{where}: sensitive", "groups")
        rows = frame[sensitive].astype(str)
        accepted = frame[target].astype(str) == label
        parts = pd.crosstab(rows, accepted)
        if (smallest := int(parts.to_numpy().min())) < SMALLEST_PART:
            raise GroupError(
                f"{where}: a group of {sensitive!r} has {smallest} rows of one label. "
                f"{SMALLEST_PART} are needed, because only a fifth of them are test rows. Add "
                "rows, or choose other groups."
            )
        if favoured is None:
            rates = accepted.groupby(rows).mean()
            first = str(rates.idxmax())
        else:
            first = _one_of(favoured, groups, f"{where}: favoured")
        if batch_size is None:
            batch_size = min(1024, len(frame) // 5)
        if not 2 <= batch_size <= len(frame):
            raise InputError(
                f"{where}: batch_size must be from 2 to {len(frame)}, the number of rows; got "
                f"{batch_size}."
            )
        table = cls(
            name=name,
            file=file,
            sha256=sha256_of(file),
            target=target,
            sensitive=sensitive,
            positive=label,
            groups=(groups[1 - groups.index(first)], first),
            batch_size=batch_size,
            drop=tuple(drop),
        )
        _check_features(table.features(frame), where)
        return table

    def identity(self) -> dict[str, Any]:
        """Return everything about the table that a run's result depends on, for its spec."""
        return {
            "table": {
                "sha256": self.sha256,
                "target": self.target,
                "positive": self.positive,
                "sensitive": self.sensitive,
                "groups": list(self.groups),
                "batch_size": self.batch_size,
                "drop": sorted(self.drop),
            }
        }

    def features(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the columns that are neither labels nor groups, and are not left out."""
        return frame.drop(columns=[self.target, self.sensitive, *self.drop])

    def load(self) -> Dataset:
        """Return the table as a dataset, or raise if its file is not the one in the specs."""
        if sha256_of(self.file) != self.sha256:
            raise InputError(f"{self.file} has changed since the runs were planned. Start again.")
        frame = read_table(self.file)
        features = self.features(frame)
        text = features.select_dtypes(exclude=["number", "bool", "category"]).columns
        labels = (frame[self.target].astype(str) == self.positive).astype(np.int64)
        return Dataset(
            name=self.name,
            # The encoding has a place for every level, also for those of test rows alone.
            X=features.astype(dict.fromkeys(text, "category")),
            y=labels,
            sensitive_features=frame[self.sensitive].astype(str),
            groups=self.groups,
            favoured_group=self.groups[1],
            positive_label=f"{self.target} is {self.positive}",
            batch_size=self.batch_size,
            description=f"The table {self.file.name}.",
        )


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _two_values(
    column: "pd.Series[Any]", error: type[InputError], where: str, what: str
) -> tuple[str, str]:
    if n_missing := int(column.isna().sum()):
        raise error(
            f"{where}: {column.name!r} lacks {n_missing} values. Remove those rows from the file. "
            f"{MISSING_WORDS}"
        )
    values = sorted(str(value) for value in column.unique())
    if len(values) != 2:
        listed = ", ".join(repr(value) for value in values[:6])
        listed += ", …" if len(values) > 6 else ""
        raise error(
            f"{where}: {column.name!r} must have two {what}, and has {len(values)} ({listed}). "
            f"Remove the rows of other {what}, or add a column that merges some."
        )
    return values[0], values[1]


def _one_of(value: Any, known: Sequence[str], where: str) -> str:
    """Return the value of a column that a user means; 1, 1.0 and "1" are the same."""
    spellings = [str(value)]
    if isinstance(value, bool):
        spellings.append(str(int(value)))
    if isinstance(value, int | float):
        spellings += [str(float(value)), f"{value:g}"]
    for spelling in spellings:
        if spelling in known:
            return spelling
    raise InputError(f"{where} must be {known[0]!r} or {known[1]!r}, got {value!r}.")


def _check_features(features: pd.DataFrame, where: str) -> None:
    if features.columns.empty:
        raise InputError(f"{where}: no columns are left to learn from. Drop fewer columns.")
    for column in features.select_dtypes(exclude=["number", "bool"]):
        n_levels = features[column].nunique()
        if n_levels > max(50, len(features) // 2):
            raise InputError(
                f"{where}: the text column {column!r} has {n_levels} different values in "
                f"{len(features)} rows, as an id has. Leave it out with drop = [{column!r}]."
            )
    missing = features.isna().sum()
    if listed := ", ".join(f"{name!r} ({count})" for name, count in missing.items() if count):
        raise InputError(
            f"{where}: columns with missing values, and how many: {listed}. Fill them in, remove "
            "those rows from the file, or leave the columns out with drop = [...]."
        )
    try:
        TableEncoder().fit(features)
    except InputError as error:
        raise InputError(f"{where}: {error} Or leave the column out with drop = [...].") from error
