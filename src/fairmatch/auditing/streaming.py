"""Audits of tables that do not fit into memory."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from glob import glob
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairmatch.auditing.audit import audit
from fairmatch.auditing.facts import Audit, Gap
from fairmatch.exceptions import GroupError, InputError, LabelError, MissingExtraError
from fairmatch.people.checks import FloatArray, check_names
from fairmatch.people.files import find_value
from fairmatch.people.roles import Roles, RoleTable, split_names

_MEMORY = "800MB"


def is_dataset(path: str) -> bool:
    """Return whether a name stands for many Parquet files: a pattern, or a folder.

    Examples
    --------
    >>> is_dataset("scores/*.parquet"), is_dataset("people.csv")
    (True, False)
    """
    return any(sign in path for sign in "*?[") or Path(path).is_dir()


def quoted(name: str) -> str:
    """Return a column's name as a quoted SQL identifier, whatever characters it holds."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, eq=False)
class ParquetFiles:
    """Many Parquet files with the same columns, read as one table.

    Parameters
    ----------
    pattern : str
        The files: a folder, or a name with wildcards such as ``*``.

    Raises
    ------
    InputError
        If there is no such file, if one is damaged, or if their columns differ.
    """

    pattern: str

    @cached_property
    def files(self) -> list[str]:
        """Names of the files, in order."""
        pattern = self.pattern
        if Path(pattern).is_dir():
            pattern = str(Path(pattern) / "**" / "*.parquet")
        found = sorted(glob(pattern, recursive=True))
        if not found:
            raise InputError(
                f"No file is called {self.pattern}, and an audit needs at least one .parquet file. "
                "Check the name of the folder or the pattern."
            )
        if others := [name for name in found if not name.lower().endswith(".parquet")]:
            raise InputError(
                f"{others[0]} is not a .parquet file. Many files are read as one table only where "
                "all of them are Parquet. Name a pattern such as 'scores/*.parquet'."
            )
        return found

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
            read = self._run("DESCRIBE SELECT * FROM read_parquet($files)", [file])
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

    def check(self, names: Sequence[str]) -> None:
        """Raise unless the files have these columns."""
        check_names(names, list(self.columns), table=self.pattern)

    def ask(self, select: str, rest: str = "", **values: Any) -> pd.DataFrame:
        """Return the result of a query over all rows.

        Parameters
        ----------
        select : str
            What to select. Names that come from the user must be `quoted`.
        rest : str
            The clauses that follow the files, such as conditions and groupings.
        **values
            Values of the parameters that the query marks with a dollar sign.
        """
        source = "read_parquet($files, filename = true, file_row_number = true)"
        return self._run(f"SELECT {select} FROM {source} {rest}", self.files, **values)

    def _run(self, question: str, files: list[str], **values: Any) -> pd.DataFrame:
        connection = self._connection  # its error names the extra if DuckDB is not installed
        import duckdb

        try:
            answer: pd.DataFrame = connection.execute(
                question, {"files": files, **values}
            ).fetchdf()
        except duckdb.Error as error:
            said = " ".join(str(error).split())
            if isinstance(error, duckdb.OutOfMemoryException) or self._spilled in said:
                raise InputError(
                    f"Counting {self.pattern} takes more than {_MEMORY} of memory, and the rest "
                    f"could not be written into {Path(self._spilled).parent}. Free space there, or "
                    "name another folder with TMPDIR. Or first sum the rows up by score, group and "
                    "label, and audit that table with --weight-kind counts."
                ) from error
            raise InputError(f"{self.pattern} cannot be read: {said}") from error
        return answer


CELLS = 4096
"""Number of cells of equal mass that stand for the scores, which are too many to keep."""

_BLOCK_ROWS = 1_000_000


class Sweep:
    """A sweep over scores in ascending order, which arrive range by range.

    Parameters
    ----------
    sizes : array of shape (n_groups,)
        Number of people in each group.
    borders : sequence of float
        Scores at which a cell must begin, such as the threshold.

    Attributes
    ----------
    areas : dict
        Codes of two groups to the area between their distribution functions.
    largest : dict
        Codes of two groups to the largest difference between their distribution functions.
    """

    def __init__(self, sizes: Sequence[int], borders: Sequence[float]) -> None:
        self.sizes = np.asarray(sizes, dtype=np.float64)
        self.borders = np.unique(np.asarray(borders, dtype=np.float64))
        self.pairs = [
            pair for pair in combinations(range(len(sizes)), 2) if self.sizes[list(pair)].all()
        ]
        self.areas = dict.fromkeys(self.pairs, 0.0)
        self.largest = dict.fromkeys(self.pairs, 0.0)
        self._below = np.zeros(len(sizes))
        self._last: float | None = None
        self._mass = 0.0
        self._cells: dict[tuple[int, int, int, int], tuple[float, float]] = {}

    def take(self, scores: FloatArray, codes: NDArray[np.int64], labels: NDArray[np.int64]) -> None:
        """Add the rows of a range of scores. The range must lie above all earlier ones.

        Parameters
        ----------
        scores : array of shape (n_rows,)
            Their scores, in any order.
        codes : array of int
            Their groups.
        labels : array of int
            Their labels, 0 or 1.
        """
        order = np.argsort(scores)
        start = 0
        while start < len(order):
            end = min(start + _BLOCK_ROWS, len(order))
            # Tied scores stay in one block: a distribution function is right only after all ties.
            while end < len(order) and scores[order[end]] == scores[order[end - 1]]:
                tied = scores[order[end - 1]]
                end = start + int(np.searchsorted(scores[order[start:]], tied, side="right"))
            at = order[start:end]
            self._distances(scores[at], codes[at])
            self._count(scores[at], codes[at], labels[at])
            start = end

    def _distances(self, scores: FloatArray, codes: NDArray[np.int64]) -> None:
        ends = np.flatnonzero(np.append(scores[1:] != scores[:-1], True))
        values = scores[ends]
        shares = np.empty((len(self.sizes), len(ends)))
        for code, size in enumerate(self.sizes):
            counts = np.cumsum(codes == code)[ends] + self._below[code]
            shares[code] = counts / max(size, 1.0)
        widths = np.diff(values)
        for pair in self.pairs:
            first, second = pair
            if self._last is not None:
                before = self._below[[first, second]] / self.sizes[[first, second]]
                self.areas[pair] += abs(before[0] - before[1]) * (values[0] - self._last)
            difference = np.abs(shares[first] - shares[second])
            self.areas[pair] += float(difference[:-1] @ widths)
            self.largest[pair] = max(self.largest[pair], float(difference.max()))
        self._below += np.bincount(codes, minlength=len(self.sizes))
        self._last = float(values[-1])

    def _count(
        self, scores: FloatArray, codes: NDArray[np.int64], labels: NDArray[np.int64]
    ) -> None:
        mass = self._mass + np.arange(len(scores))
        cells = (mass * (CELLS / self.sizes.sum())).astype(np.int64)
        places = np.searchsorted(self.borders, scores, side="right")
        n_places, n_groups = len(self.borders) + 1, len(self.sizes)
        keys = (((cells - cells[0]) * n_places + places) * n_groups + codes) * 2 + labels
        counts = np.bincount(keys)
        sums = np.bincount(keys, scores)
        for key in np.flatnonzero(counts).tolist():
            rest, label = divmod(key, 2)
            rest, code = divmod(rest, n_groups)
            cell, place = divmod(rest, n_places)
            full = cell + int(cells[0]), place, code, label
            count, total = self._cells.get(full, (0.0, 0.0))
            self._cells[full] = count + float(counts[key]), total + float(sums[key])
        self._mass += len(scores)

    def table(self) -> tuple[FloatArray, NDArray[np.int64], NDArray[np.int64], FloatArray]:
        """Return the mean score, the group, the label and the count of every cell."""
        keys = np.array(list(self._cells), dtype=np.int64)
        counts, sums = np.array(list(self._cells.values())).T
        return np.clip(sums / counts, 0.0, 1.0), keys[:, 2], keys[:, 3], counts


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
        return find_value(values, self.pos_label, "pos_label", f"the values of column {label!r}")

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


def audit_dataset(
    pattern: str,
    roles: Roles,
    *,
    pos_label: str = "1",
    show: Callable[[RoleTable], None] | None = None,
    progress: Callable[[str], None] | None = None,
    **settings: Any,
) -> Audit:
    """Audit scores in Parquet files that are never read whole.

    Parameters
    ----------
    pattern : str
        The files: a folder, or a name with wildcards such as ``*``.
    roles : Roles
        The role of each column. There must be one column of scores.
    pos_label : str
        The positive label, as it is written in the table.
    show : callable, optional
        Called with the `RoleTable`, which describes every column, before the audit starts.
    progress : callable, optional
        Called with the name of each step before it starts.
    **settings
        Further arguments of `fairmatch.audit`.

    Returns
    -------
    Audit
        Groups and gaps are those of everybody, from counts by score. Matchings, subsets and people
        are those of a random sample of each group, which the seed fixes.
    """
    if len(roles.scores) != 1:
        raise InputError(
            f"{pattern} is read as one table, which is audited for one column of scores, and "
            f"{len(roles.scores)} columns of scores were named. Name one with --score, and audit "
            "others one by one."
        )
    if settings.get("scale", "probability") != "probability":
        raise InputError(
            f"{pattern} is read as one table, in which scores in [0, 1] are counted, and "
            f"scale={settings['scale']!r} was given. Audit predictions in one file."
        )
    if roles.weight is not None:
        raise InputError(
            f"Column {roles.weight!r} was named as the weight, and weights in many Parquet files "
            "are not read. First sum them up by score, group and label, and audit that table with "
            "--weight-kind counts."
        )
    step = progress or (lambda name: None)
    step("counting")
    data = Dataset(ParquetFiles(pattern), roles, pos_label)
    step("drawing")
    people = data.sample(settings.get("random_state", 0))
    read = replace(roles, sensitive=data.attributes).read(people, name=pattern)
    if show is not None:
        show(read)
    threshold = settings.get("threshold", 0.5)
    step("distances")
    counted, sweep = data.count(threshold)
    whole = audit(
        counted["score"].to_numpy(),
        sensitive_features=data.groups_of(counted),
        y_true=counted["label"].to_numpy() if roles.label else None,
        sample_weight=counted["count"].to_numpy(),
        weight_kind="counts",
        model_name=roles.scores[0],
        **settings,
    )
    if sweep is not None:
        whole = _with_exact(whole, data, sweep)
    features = read.features
    drawn = audit(
        people[roles.scores[0]].to_numpy(),
        sensitive_features=people[data.attributes]
        if len(data.attributes) > 1
        else people[data.attributes[0]].to_numpy(),
        X=people[features] if features else None,
        y_true=None if roles.label is None else data.is_positive(people[roles.label]),
        ids=None if roles.id is None else people[roles.id].to_numpy(),
        progress=progress,
        **settings,
    )
    return _joined(whole, drawn, data, read)


def _joined(whole: Audit, drawn: Audit, data: Dataset, read: RoleTable) -> Audit:
    """Return one audit made of the facts about everybody and the facts about the sample."""
    matched = tuple(gap for gap in drawn.gaps if gap.name == "matched_parity_gap")
    impact = whole.impact
    if len(data.attributes) == 1:
        impact = tuple(replace(table, attributes=tuple(data.attributes)) for table in impact)
    provenance = replace(
        whole.provenance,
        source=f"{data.files.pattern} ({len(data.files.files)} files)",
        source_sha256=_digest(data.files.files),
        features_sha256=drawn.provenance.features_sha256,
        settings={
            **whole.provenance.settings,
            "described_by": drawn.provenance.settings["described_by"],
        },
    )
    is_sample = drawn.n_rows < whole.n_rows
    note = f"Groups and gaps are those of all {whole.n_rows:,} people."
    if is_sample:
        note += (
            f" Matchings, subsets and people are those of a random sample of {drawn.n_rows:,} of "
            "them. The kinds of columns were found on this sample."
        )
    return replace(
        whole,
        gaps=(*whole.gaps, *matched),
        matchings=tuple(
            replace(matching, is_sample=is_sample or matching.is_sample)
            for matching in drawn.matchings
        ),
        subsets=drawn.subsets,
        individuals=drawn.individuals,
        provenance=provenance,
        columns=read.columns,
        leaks=drawn.leaks,
        notes=(note, *drawn.notes),
        impact=impact,
    )


def _digest(files: list[str]) -> str:
    """Return the hash of the files' hashes, in the order of the files."""
    whole = hashlib.sha256()
    for file in files:
        with Path(file).open("rb") as stream:
            whole.update(hashlib.file_digest(stream, "sha256").digest())
    return whole.hexdigest()


def _with_exact(whole: Audit, data: Dataset, sweep: Sweep) -> Audit:
    """Return an audit of cells in which exact distances replace those of the cells."""
    names = [", ".join(map(str, row)) for row in data.combinations.tolist()]
    exact = {
        "wasserstein_parity_gap": sweep.areas,
        "ks_parity_gap": sweep.largest,
    }

    def repaired(gap: Gap) -> Gap:
        if gap.name not in exact or gap.groups is None or gap.value is None:
            return gap
        first, second = sorted(names.index(label) for label in gap.groups)
        value = exact[gap.name][first, second]
        assert gap.low is not None
        assert gap.high is not None
        return replace(gap, value=value, low=min(gap.low, value), high=max(gap.high, value))

    return replace(
        whole,
        gaps=tuple(map(repaired, whole.gaps)),
        pair_gaps=tuple(map(repaired, whole.pair_gaps)),
    )
