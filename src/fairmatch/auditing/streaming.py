"""Audits of Parquet files that do not fit into memory.

DuckDB counts people by score, group and label, and draws a sample. The ordinary audit then uses the
counts for facts about everybody, and the sample for facts about individuals.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from glob import escape, glob
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd

from fairmatch.auditing.audit import audit_counts, read_selection
from fairmatch.auditing.facts import Audit
from fairmatch.auditing.files import from_source
from fairmatch.auditing.people import label_texts
from fairmatch.exceptions import ColumnError, GroupError, InputError, LabelError, MissingExtraError
from fairmatch.people.checks import check_names
from fairmatch.people.files import find_positive
from fairmatch.people.roles import Roles, RoleTable

_MEMORY = "800MB"
_MOST_GROUPS = 200
# Up to this many different scores, summed over the groups, are counted one by one.
_FEW_SCORES = 100_000
# Otherwise scores are counted in cells of the same width, so many in [0, 1], and fewer where there
# are many groups. The histograms of an audit have 20 bins, which must not cut a cell.
_CELLS, _LEAST_CELLS, _BINS = 10_000, 1_000, 20
# People drawn from each group for the subsets. The matchings use some of them.
_DRAWN = 25_000


def is_dataset(path: str) -> bool:
    """Return whether a name stands for many Parquet files: a folder, or a pattern.

    The name of a file that exists is never a pattern, whatever signs it holds.

    Examples
    --------
    >>> is_dataset("scores/*.parquet"), is_dataset("people.csv")
    (True, False)
    """
    return Path(path).is_dir() or (any(sign in path for sign in "*?[") and not Path(path).exists())


def quoted(name: str) -> str:
    """Return a column's name as a quoted SQL identifier, whatever characters it holds."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, eq=False)
class ParquetFiles:
    """Many Parquet files with the same columns, read as one table."""

    pattern: str

    @cached_property
    def files(self) -> list[str]:
        """Names of the files, in order."""
        pattern = self.pattern
        if Path(pattern).is_dir():
            pattern = str(Path(escape(pattern)) / "**" / "*.parquet")
        elif Path(pattern).exists():
            pattern = escape(pattern)
        found = sorted(glob(pattern, recursive=True))
        if not found:
            raise InputError(
                f"No file is called {self.pattern}, but an audit needs at least one .parquet "
                "file. Check the name of the folder or the pattern."
            )
        if others := [name for name in found if not name.lower().endswith(".parquet")]:
            raise InputError(
                f"{others[0]} is not a .parquet file. Many files are read as one table only where "
                "all of them are Parquet. Name a pattern such as 'scores/*.parquet'."
            )
        return found

    @cached_property
    def levels_in_path(self) -> list[str]:
        """Parts of the files' folders that look like the levels of a column, such as sex=f."""
        parts = (part for file in self.files for part in Path(file).parent.parts)
        return [part for part in dict.fromkeys(parts) if part.partition("=")[2]]

    @cached_property
    def _spilled(self) -> str:
        """The temporary folder for data that exceeds DuckDB's memory, outside the user's folder."""
        return str(Path(tempfile.gettempdir()) / f"fairmatch-{uuid4().hex}")

    @cached_property
    def _connection(self) -> Any:
        try:
            import duckdb
        except ImportError as error:
            raise MissingExtraError(
                "Reading many Parquet files needs DuckDB: pip install 'fairmatch[stream]'."
            ) from error
        connection = duckdb.connect(
            config={
                "memory_limit": _MEMORY,
                "preserve_insertion_order": False,
                "temp_directory": self._spilled,
            }
        )
        # In an interactive session DuckDB prints a progress bar amid the caller's output.
        connection.execute("SET enable_progress_bar = false")
        return connection

    @cached_property
    def columns(self) -> dict[str, str]:
        """Name of each column to its type. Both are the same in every file."""
        first: dict[str, str] = {}
        for file in self.files:
            read = self._run(
                "DESCRIBE SELECT * FROM read_parquet($files, hive_partitioning = false)", [file]
            )
            own = {
                str(name): str(kind) for name, kind in read[["column_name", "column_type"]].values
            }
            first = first or own
            if own != first:
                both = {**first, **own}
                differ = [name for name in both if first.get(name) != own.get(name)]
                raise InputError(
                    f"The columns of {file} differ from those of {self.files[0]}: "
                    f"{', '.join(map(repr, differ[:5]))}. Files that are read as one table need "
                    "the same columns of the same types. Write them again, or leave this one out."
                )
        return first

    def ask(self, query: str, **values: Any) -> pd.DataFrame:
        """Return the result of a query."""
        # A folder such as sex=f/ must not replace the column of that name in its files.
        read = f"read_parquet($files, filename = '{_FILE}', hive_partitioning = false"
        if "file_row_number" in map(str.lower, self.columns):  # then DuckDB cannot add it
            self._connection.execute("SET preserve_insertion_order = true")
            source = f'SELECT *, row_number() OVER () AS "{_PLACE}" FROM {read})'
        else:
            source = (
                f'SELECT * EXCLUDE (file_row_number), file_row_number AS "{_PLACE}" FROM {read}, '
                "file_row_number = true)"
            )
        return self._run(f"WITH rows AS ({source}) {query}", self.files, **values)

    def _run(self, question: str, files: list[str], **values: Any) -> pd.DataFrame:
        connection = self._connection  # its error names the extra if DuckDB is not installed
        import duckdb

        try:
            answer: pd.DataFrame = connection.execute(
                question, {"files": [escape(file) for file in files], **values}
            ).fetchdf()
        except duckdb.Error as error:
            said = " ".join(str(error).partition("\nLINE ")[0].split())  # without the query
            if isinstance(error, duckdb.OutOfMemoryException) or self._spilled in said:
                raise InputError(
                    f"Counting {self.pattern} takes more than {_MEMORY} of memory, but the rest "
                    f"could not be written to {Path(self._spilled).parent}. Free space there, or "
                    "name another folder with TMPDIR. Or first sum the rows up by score, group "
                    "and label, and audit that table with weight_kind='counts'."
                ) from error
            # What a parser says of damaged bytes helps nobody; that files disagree does.
            why = f": {said.rstrip('.')}" if "mismatch" in said else ""
            raise InputError(
                f"{self.pattern} cannot be read as Parquet{why or ', so it is damaged'}. Write the "
                "file again."
            ) from error
        return answer


@dataclass(frozen=True, eq=False)
class ScoredFiles:
    """People with scores, groups and labels in many files, whom DuckDB counts and draws."""

    files: ParquetFiles
    roles: Roles

    @property
    def score(self) -> str:
        """Name of the column with the scores."""
        return self.roles.scores[0]

    @property
    def attributes(self) -> list[str]:
        """Names of the columns whose combinations are the groups."""
        return list(self.roles.sensitive)

    @property
    def short(self) -> list[str]:
        """Names of the attributes in results of queries, which clash with no other column."""
        return [f"a{k}" for k in range(len(self.attributes))]

    @property
    def _number(self) -> str:
        """The score of a row; NULL where it is missing."""
        number = f"{quoted(self.score)}::DOUBLE"
        return f"(CASE WHEN isnan({number}) THEN NULL ELSE {number} END)"

    @cached_property
    def _people(self) -> str:
        """A query for the score, the attributes and the label of every person."""
        label, score = self.roles.label, self._number
        names = dict(zip(self.short, map(quoted, self.attributes), strict=True))
        if label is not None:
            names["label"] = quoted(label)
        if self.roles.id is None:
            listed = ", ".join(f"{name} AS {short}" for short, name in names.items())
            return f"SELECT {score} AS score, {listed} FROM rows"
        # Whole numbers have the same sum in any order, which the threads of DuckDB do not keep.
        mean = f"sum(({score} * {_ONE})::BIGINT)::DOUBLE / count({score}) / {_ONE}"
        same = f"min({score}) IS NOT DISTINCT FROM max({score})"
        listed = ", ".join(f"min({name}) AS {short}" for short, name in names.items())
        return (
            f"SELECT CASE WHEN {same} THEN min({score}) ELSE {mean} END AS score, {listed} "
            f"FROM rows GROUP BY {quoted(self.roles.id)}"
        )

    def join(self) -> list[str]:
        """Return a note if rows are joined to people. Raise if their groups or labels differ."""
        if self.roles.id is None:
            return []
        person = quoted(self.roles.id)
        for name in [*self.attributes, *([self.roles.label] if self.roles.label else [])]:
            own = quoted(name)
            found = self.files.ask(
                f"SELECT {person} AS person FROM rows GROUP BY {person} HAVING count(*) > 1 AND "
                f"(min({own}) <> max({own}) OR count({own}) NOT IN (0, count(*))) LIMIT 1"
            )
            if len(found):
                raise ColumnError(
                    f"The rows of {found['person'][0]} in column {self.roles.id!r} differ in "
                    f"{name!r}, but rows with the same identifier are one person. Correct the "
                    "column, or leave out the identifier.",
                    parameter="ids",
                )
        n_rows = int(self.files.ask("SELECT count(*) AS n FROM rows")["n"][0])
        n_people = int(self.groups["n"].sum())
        if n_people == n_rows:
            return []
        return [
            f"{n_rows:,} rows were joined to {n_people:,} people by {self.roles.id!r}. A person's "
            "score is the mean of their rows."
        ]

    @cached_property
    def groups(self) -> pd.DataFrame:
        """The groups that occur, with n, their number of people."""
        names = ", ".join(self.short)
        found = self.files.ask(
            f"SELECT {names}, count(*) AS n, count(score) AS scored, min(score) AS low, "
            "max(score) AS high, "
            f"approx_count_distinct(score) AS different FROM ({self._people}) "
            f"GROUP BY {names} ORDER BY {names} LIMIT {_MOST_GROUPS + 1}"
        )
        if len(found) > _MOST_GROUPS:
            raise GroupError(
                f"{' and '.join(map(repr, self.attributes))} of {self.files.pattern} make more "
                f"than {_MOST_GROUPS} groups. Name columns of few values.",
                parameter="sensitive_features",
            )
        low, high = found["low"].min(), found["high"].max()
        if low < 0.0 or high > 1.0:
            raise InputError(
                f"Column {self.score!r} must lie in [0, 1], got values from {low:g} to {high:g}. "
                "Pass probabilities or 0/1 decisions.",
                parameter="y_score",
            )
        return found

    def labels(self, written: str | None) -> tuple[Any, Any] | None:
        """Return the other label, if there is one, and the positive one; None without labels."""
        label = self.roles.label
        if label is None:
            return None
        values = self.files.ask(
            f"SELECT DISTINCT {quoted(label)} AS value FROM rows LIMIT 10"
        ).dropna()
        if len(values) > 2:
            shown = ", ".join(map(str, values["value"][:5]))
            raise LabelError(
                f"Column {label!r} must hold two classes, got {shown}. Name a column of two "
                "values.",
                parameter="y_true",
            )
        known = f"the values of column {label!r}"
        positive = find_positive(values["value"], written, "pos_label", known)
        return next((own for own in values["value"] if own != positive), None), positive

    def cut(self, top: float, favourable: str) -> tuple[float, str]:
        """Return the threshold that selects the best so many people, and a note on it."""
        n_people, is_high = int(self.groups["scored"].sum()), favourable == "high"
        place = top if isinstance(top, int) else int(np.ceil(top * n_people * (1.0 - 1e-12)))
        if place > n_people:
            raise InputError(
                f"top={top} is more than the {n_people:,} people in the table. Select fewer.",
                parameter="top",
            )
        order = "DESC" if is_high else "ASC"
        people = f"SELECT score FROM ({self._people}) WHERE score IS NOT NULL"
        found = self.files.ask(f"{people} ORDER BY score {order} LIMIT 1 OFFSET {place - 1}")
        last = float(found["score"][0])
        tied = self.files.ask(
            "SELECT count(*) FILTER (score = $last) AS n, "
            f"min(score) FILTER (score > $last) AS next FROM ({people})",
            last=last,
        )
        above = float(tied["next"][0])
        cut = last if is_high else (above if np.isfinite(above) else float(np.nextafter(last, 2)))
        return cut, (
            f"The best {place:,} people were to be selected by rank. This cuts at a score of "
            f"{last:.6g}, which {int(tied['n'][0]):,} people have. The intervals take this cut as "
            "given."
        )

    def count(self, threshold: float) -> tuple[pd.DataFrame, *tuple[str, ...]]:
        """Count people by score, group and label."""
        names = ", ".join([*self.short, *(["label"] if self.roles.label is not None else [])])
        if self.groups["different"].sum() <= _FEW_SCORES:
            counted = self.files.ask(
                f"SELECT score, {names}, count(*) AS n FROM ({self._people}) "
                f"GROUP BY ALL ORDER BY score, {names}"
            )
            return (counted,)
        n_cells = max(min(_CELLS, _FEW_SCORES // len(self.groups)), _LEAST_CELLS) // _BINS * _BINS
        # A score of few digits, such as 0.29, may be rounded to just below its cell.
        found = self.files.ask(
            f"SELECT floor(score * {n_cells} + 1e-6)::INT AS cell, score >= $threshold AS "
            f"selected, {names}, count(*) AS n, min(score) AS low, max(score) AS high, "
            f"sum((score * {_ONE})::BIGINT)::DOUBLE AS total FROM ({self._people}) "
            f"GROUP BY ALL ORDER BY cell, selected, {names}",
            threshold=threshold,
        )
        # The mean of equal numbers may be rounded; no mean may leave its cell.
        mean = found["total"] / found["n"] / _ONE
        found["score"] = mean.clip(found["low"], found["high"])
        scored = found.dropna(subset=["cell"])
        cells = scored.groupby([*self.short, "cell"], dropna=False)["n"].sum()
        largest = float((cells / cells.groupby(self.short, dropna=False).transform("sum")).max())
        return found, (
            f"Scores were counted in cells of width {1 / n_cells:g}, each at its mean score. "
            "Selection rates, error rates and means are exact. Wasserstein gaps and AUCs may be "
            "off by up to that width, and Kolmogorov-Smirnov gaps by the share of a group in one "
            f"cell, which is at most {largest:.2g}."
        )

    def sample(self, seed: int) -> pd.DataFrame:
        """Draw people from each group, and everybody from a small group. The seed fixes who.

        A hash of the person and of the seed decides who is drawn: of the identifier, or of the
        file's name and the row's place in it. So neither threads nor the order of reading matter.
        """
        if self.roles.id is not None:
            person = quoted(self.roles.id)
        else:
            name = quoted(_FILE)
            unique = len({Path(file).name for file in self.files.files}) == len(self.files.files)
            person = f"{f'parse_filename({name})' if unique else name}, {quoted(_PLACE)}"
        # A few more than needed pass the hash in every group, and the first ones are taken.
        shares = (1.2 * _DRAWN + 50) / self.groups["scored"].clip(lower=1)
        limits = [min(int(share * 2**64), 2**64 - 1) for share in shares]
        values: dict[str, Any] = {}
        cases = []
        groups = self.groups[self.short].to_numpy(dtype=object)
        for code, (row, limit) in enumerate(zip(groups, limits, strict=True)):
            values |= {f"v{code}_{k}": None if pd.isna(v) else v for k, v in enumerate(row)}
            same = " AND ".join(
                f"{quoted(name)} IS NOT DISTINCT FROM $v{code}_{k}"
                for k, name in enumerate(self.attributes)
            )
            cases.append(f"WHEN {same} THEN {limit}::UBIGINT")
        drawn, place = quoted(_DRAWN_AT), f"{quoted(_FILE)}, {quoted(_PLACE)}"
        people = self.files.ask(
            f"SELECT *, hash({person}, {int(seed)}) AS {drawn} FROM rows "
            f"WHERE {self._number} IS NOT NULL AND {drawn} <= {max(limits)}::UBIGINT "
            f"AND {drawn} <= CASE {' '.join(cases)} END ORDER BY {place}",
            **values,
        )
        if self.roles.id is not None:
            mean = people.groupby(self.roles.id)[self.score].transform("mean")
            people[self.score] = mean
            people = people.drop_duplicates(self.roles.id)
        order = people.sort_values(_DRAWN_AT).groupby(self.attributes, sort=False, dropna=False)
        chosen = people.loc[np.sort(order.head(_DRAWN).index)].reset_index(drop=True)
        return chosen.drop(columns=[_FILE, _PLACE, _DRAWN_AT])


# A score of 1 as a whole number: sums of whole numbers do not depend on their order.
_ONE = 2**40
# Columns that are added to those of the files.
_FILE, _PLACE, _DRAWN_AT = "file, by fairmatch", "row, by fairmatch", "drawn at, by fairmatch"


def audit_dataset(
    pattern: str,
    roles: Roles,
    *,
    pos_label: str | None = None,
    show: Callable[[RoleTable], None] | None = None,
    progress: Callable[[str], None] | None = None,
    **settings: Any,
) -> Audit:
    """Audit scores in Parquet files that are never read whole."""
    files = ParquetFiles(pattern)
    if settings.get("kind", "probability") != "probability":
        raise InputError(
            f"{pattern} is read as one table, in which scores in [0, 1] are counted, but "
            f"kind={settings['kind']!r} was given. Audit predictions in one file.",
            parameter="kind",
        )
    if roles.weight is not None:
        raise InputError(
            f"Column {roles.weight!r} was named as the weight, but weights in many Parquet files "
            "are not read. First sum them up by score, group and label, and audit that table "
            "with weight_kind='counts'.",
            parameter="sample_weight",
        )
    roles = roles.among(list(files.columns))
    if len(roles.scores) != 1:
        raise InputError(
            f"{pattern} is read as one table, which is audited for one column of scores, but "
            f"{len(roles.scores)} columns were named. Name one, and audit others one by one.",
            parameter="y_score",
        )
    check_names([name for name, _ in roles.named()], list(files.columns), table=pattern)
    step = progress or (lambda name: None)
    step("counting")
    data = ScoredFiles(files, roles)
    joined = data.join()
    both = data.labels(pos_label)
    positive, notes = None if both is None else both[1], list[str]()
    chosen = read_selection(settings.get("threshold"), settings.pop("top", None), None)
    if (top := chosen["top"]) is not None:
        settings["threshold"], told = data.cut(top, settings.get("favourable", "high"))
        notes.append(told)
    counted, *cells = data.count(settings.get("threshold") or 0.5)
    step("drawing")
    people = data.sample(settings.get("random_state", 0))
    read = roles.read(people, name=pattern)
    if show is not None:
        show(read)
    counts = {
        "y_score": counted["score"].to_numpy(),
        "sensitive_features": _groups(counted[data.short], data.attributes),
        "y_true": None if positive is None else _labels(counted["label"], positive),
        "sample_weight": counted["n"].to_numpy(),
        "weight_kind": "counts",
    }
    drawn = {
        "y_score": people[data.score].to_numpy(),
        "sensitive_features": _groups(people[data.attributes], data.attributes),
        "X": people[read.features] if read.features else None,
        "y_true": None if positive is None else _labels(people[roles.label], positive),
        "ids": None if roles.id is None else people[roles.id].to_numpy(),
        "keep": list(roles.kept),
    }
    shared = {"model_name": data.score, "progress": progress, **settings}
    found = audit_counts(counts, drawn, shared)
    if files.levels_in_path:
        shown = ", ".join(map(repr, files.levels_in_path[:3]))
        joined.append(f"Only columns in the files are read. Names of folders ({shown}) add none.")
    first = f"Groups and gaps are those of all {found.n_rows:,} people."
    if len(people) < found.n_rows:
        first += (
            f" Matchings, subsets and people are those of a random sample of {len(people):,} of "
            "them. The types of columns were found on this sample."
        )
    every = (first, *joined, *notes, *cells, *found.notes)
    found = replace(found, columns=read.columns, notes=every)
    source = f"{pattern} ({len(files.files)} files)"
    words = {} if both is None else label_texts(*both)
    return from_source(found, source, _digest(files.files), data.attributes, words)


def _labels(column: pd.Series[Any], positive: Any) -> Any:
    """Return 1 for the positive label, 0 for the other, and NaN where it is missing."""
    return np.where(column.isna(), np.nan, (column == positive).to_numpy(float, na_value=np.nan))


def _groups(table: pd.DataFrame, names: Sequence[str]) -> Any:
    """Return the groups as `fairmatch.audit` takes them."""
    table = table.set_axis(list(names), axis=1)
    return table if len(names) > 1 else table[names[0]].to_numpy()


def _digest(files: list[str]) -> str:
    """Return the hash of the files' hashes, in the order of the files."""
    whole = hashlib.sha256()
    for file in files:
        with Path(file).open("rb") as stream:
            whole.update(hashlib.file_digest(stream, "sha256").digest())
    return whole.hexdigest()
