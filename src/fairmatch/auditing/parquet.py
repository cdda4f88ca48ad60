"""Parquet files that are queried with DuckDB, column by column, and never read whole."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from glob import glob
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd

from fairmatch.exceptions import InputError, MissingExtraError
from fairmatch.tables.names import check_names

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
