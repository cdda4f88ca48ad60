"""Scores, groups and labels in many Parquet files: all rows are counted, and some are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairmatch.auditing.parquet import ParquetFiles, quoted
from fairmatch.auditing.sweep import Sweep
from fairmatch.datasets.labelled import split_names
from fairmatch.exceptions import GroupError, InputError, LabelError
from fairmatch.tables.files import find_value
from fairmatch.tables.roles import Roles

# Up to this many different scores, summed over the groups, are counted one by one.
_FEW_SCORES = 100_000
# Rows in one range of scores, which are sorted in memory. Each range reads all files once.
_RANGE_ROWS = 12_000_000
# The ends of the ranges are estimated from one row in this many.
_RANGE_SAMPLE = 64
# People drawn from each group for the subsets. The matchings use some of them.
_DRAWN = 25_000
_MOST_GROUPS = 200
# Columns that are added to those of the files.
_DRAWN_AT, _GROUP = "drawn at, by fairmatch", "group, by fairmatch"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Scores, groups and labels in many files.

    Attributes
    ----------
    files : ParquetFiles
        The files.
    roles : Roles
        The role of each column.
    pos_label : str
        The positive label, as it is written in the files.
    """

    files: ParquetFiles
    roles: Roles
    pos_label: str

    @cached_property
    def attributes(self) -> list[str]:
        """Names of the sensitive attributes."""
        names = split_names(self.roles.sensitive, list(self.files.columns))
        self.files.check([name for name, _ in replace(self.roles, sensitive=names).named()])
        return names

    @cached_property
    def positive(self) -> Any:
        """The positive label. It is None without labels."""
        label = self.roles.label
        if label is None:
            return None
        found = self.files.ask(f"{quoted(label)} AS value, count(*) AS n", "GROUP BY ALL LIMIT 10")
        if found["value"].isna().any():
            raise LabelError(
                f"Column {label!r} of {self.files.pattern} has missing labels, and every row needs "
                "a label. Leave those rows out, or audit without --label."
            )
        values = found["value"].tolist()
        if len(values) > 2:
            raise LabelError(
                f"Column {label!r} must hold two classes, got {', '.join(map(str, values[:5]))}. "
                "Name a column of two values with --label."
            )
        try:
            return find_value(values, self.pos_label)
        except LookupError:
            raise InputError(
                f"Column {label!r} has no value {self.pos_label!r}; it holds "
                f"{', '.join(map(str, values))}. Name one of them with --positive."
            ) from None

    def is_positive(self, labels: pd.Series[Any]) -> np.ndarray[Any, Any]:
        """Return labels as 0 and 1."""
        return np.asarray(labels == self.positive).astype(int)

    @cached_property
    def _groups(self) -> pd.DataFrame:
        """The combinations of attributes that occur, with their sizes and their score ranges."""
        score = quoted(self.roles.scores[0])
        names = self.attributes
        columns = ", ".join(f"{quoted(name)} AS a{k}" for k, name in enumerate(names))
        found = self.files.ask(
            f"{columns}, count(*) AS n, count({score}) AS scored, min({score}) AS low, "
            f"max({score}) AS high, bool_or(isnan({score}::DOUBLE)) AS nan, "
            f"approx_count_distinct({score}) AS different",
            f"GROUP BY ALL ORDER BY ALL LIMIT {_MOST_GROUPS + 1}",
        )
        if len(found) > _MOST_GROUPS:
            raise GroupError(
                f"{' and '.join(map(repr, names))} of {self.files.pattern} make more than "
                f"{_MOST_GROUPS} groups. Name columns of few values with --sensitive."
            )
        if n_missing := int((found["n"] - found["scored"]).sum()):
            raise InputError(
                f"Column {self.roles.scores[0]!r} of {self.files.pattern} has {n_missing} missing "
                "scores. Every row needs a finite score: score those rows, or leave them out."
            )
        low, high = found["low"].min(), found["high"].max()
        if found["nan"].any() or not (low >= 0.0 and high <= 1.0):
            raise InputError(
                f"Column {self.roles.scores[0]!r} must lie in [0, 1], got values from {low:g} to "
                f"{high:g}. Pass probabilities or 0/1 decisions."
            )
        return found

    @property
    def combinations(self) -> np.ndarray[Any, Any]:
        """Values of the attributes, one row per combination. Missing values are "unknown"."""
        found = self._groups[[f"a{k}" for k in range(len(self.attributes))]]
        return np.asarray(found.astype(object).where(found.notna(), "unknown"))

    @property
    def sizes(self) -> list[int]:
        """How many people each combination has."""
        return [int(n) for n in self._groups["n"]]

    def groups_of(self, counted: pd.DataFrame) -> Any:
        """Return the attributes of counted rows, as `fairmatch.audit` takes them."""
        found = self._groups[[f"a{k}" for k in range(len(self.attributes))]]
        table = found.iloc[counted["code"].to_numpy()].reset_index(drop=True)
        table.columns = pd.Index(self.attributes)
        return table if len(self.attributes) > 1 else table[self.attributes[0]].to_numpy()

    def _by_group(self, numbers: Sequence[int]) -> str:
        """Return SQL for the number that belongs to a row's group."""
        cases = []
        for code, number in enumerate(numbers):
            same = " AND ".join(
                f"{quoted(name)} IS NOT DISTINCT FROM $v{code}_{k}"
                for k, name in enumerate(self.attributes)
            )
            cases.append(f"WHEN {same} THEN {number}")
        return f"CASE {' '.join(cases)} END"

    def _coded(self) -> str:
        """Return SQL for a row's score, its group as a number, and its label as 0 or 1."""
        score, code = quoted(self.roles.scores[0]), self._by_group(range(len(self.sizes)))
        return f"{score}::DOUBLE AS score, {code} AS code, {self._labelled()}"

    def _group_values(self) -> dict[str, Any]:
        """Return the values of the parameters that `_by_group` names."""
        return {
            f"v{code}_{k}": None if pd.isna(row[k]) else row[k]
            for code, row in enumerate(self._groups.itertuples(index=False))
            for k in range(len(self.attributes))
        }

    def _values(self) -> dict[str, Any]:
        values = self._group_values()
        return values if self.positive is None else {"positive": self.positive, **values}

    def count(self, threshold: float) -> tuple[pd.DataFrame, Sweep | None]:
        """Count people by score, group and label.

        Parameters
        ----------
        threshold : float
            A score at which a cell must begin, because decisions change there.

        Returns
        -------
        counted : DataFrame
            Columns score, code, label and count, with a row for every score or for every cell of
            scores.
        sweep : Sweep or None
            Exact distances. It is None if all scores were counted one by one.
        """
        if int(self._groups["different"].sum()) <= _FEW_SCORES:
            return self._count_scores(), None
        score, values = quoted(self.roles.scores[0]), self._values()
        sweep = Sweep(self.sizes, [threshold, *(np.arange(1, 20) / 20)])
        for low, high in self._ranges():
            rows = self.files.ask(
                self._coded(),
                f"WHERE {score} >= $low AND {score} < $high",
                low=low,
                high=high,
                **values,
            )
            sweep.take(
                rows["score"].to_numpy(),
                rows["code"].to_numpy().astype(np.int64),
                rows["label"].to_numpy().astype(np.int64),
            )
        scores, codes, labels, counts = sweep.table()
        cells = {"score": scores, "code": codes, "label": labels, "count": counts}
        return pd.DataFrame(cells), sweep

    def _count_scores(self) -> pd.DataFrame:
        """Count people by every score, group and label."""
        names = [f"a{k}" for k in range(len(self.attributes))]
        # Groups are coded afterwards: that is a few thousand rows, not all of them.
        groups = ", ".join(
            f"{quoted(name)} AS {short}" for name, short in zip(self.attributes, names, strict=True)
        )
        score = f"{quoted(self.roles.scores[0])}::DOUBLE AS score"
        given = {} if self.positive is None else {"positive": self.positive}
        counted = self.files.ask(
            f"{score}, {groups}, {self._labelled()}, count(*) AS count", "GROUP BY ALL", **given
        )
        coded = self._groups[names].assign(code=np.arange(len(self._groups)))
        found = counted.merge(coded, on=names, how="left", validate="many_to_one")
        columns = ["score", "code", "label", "count"]
        return found[columns].sort_values(columns[:3], ignore_index=True)

    def _labelled(self) -> str:
        """Return SQL for a row's label as 0 or 1."""
        if self.roles.label is None:
            return "0 AS label"
        return f"({quoted(self.roles.label)} = $positive)::INT AS label"

    def _ranges(self) -> list[tuple[float, float]]:
        """Return ranges of scores that hold about equal numbers of people."""
        n_ranges = -(-sum(self.sizes) // _RANGE_ROWS)
        shares = [k / n_ranges for k in range(1, n_ranges)]
        inner: list[float] = []
        if shares:
            score = quoted(self.roles.scores[0])
            some = f"WHERE hash(filename, file_row_number) % {_RANGE_SAMPLE} = 0"
            found = self.files.ask(f"approx_quantile({score}::DOUBLE, {shares}) AS cuts", some)
            cuts = found["cuts"][0]
            inner = [] if cuts is None else sorted({float(cut) for cut in cuts})
        ends = [-1.0, *inner, 2.0]
        return list(pairwise(ends))

    def sample(self, seed: int) -> pd.DataFrame:
        """Draw people from each group, and everybody from a small group. The seed fixes who.

        A hash of the file's name, the row's place in the file and the seed decides whether a row
        is drawn. So neither threads nor the order of reading matter.
        """
        names = {Path(file).name for file in self.files.files}
        name = "parse_filename(filename)" if len(names) == len(self.files.files) else "filename"
        order = f"hash({name}, file_row_number, {int(seed)})"
        # A few more rows than needed pass the hash in every group, and the first ones are taken.
        shares = [min(1.0, (1.2 * _DRAWN + 50) / n_rows) for n_rows in self.sizes]
        limits = [min(int(share * 2**64), 2**64 - 1) for share in shares]
        passed = f"{order} <= {max(limits)}::UBIGINT AND {order} <= {self._by_group(limits)}"
        people = self.files.ask(
            f"*, {order} AS {quoted(_DRAWN_AT)}, {self._by_group(range(len(limits)))} AS "
            f"{quoted(_GROUP)}",
            f"WHERE {passed}",
            **self._group_values(),
        )
        people = people.sort_values(_DRAWN_AT).groupby(_GROUP, sort=False).head(_DRAWN)
        people = people.sort_values(["filename", "file_row_number"], ignore_index=True)
        return people.drop(columns=["filename", "file_row_number", _DRAWN_AT, _GROUP])
