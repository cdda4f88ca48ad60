"""CSV and similar files. Separator and encoding are detected, and every line is checked."""

from __future__ import annotations

import csv
import io
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pandas as pd

from fairmatch.exceptions import FairmatchWarning, InputError

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""The separators between fields, and what they are called."""

_LOOKED_AT = 50  # records from which the separator is detected
_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
# What programs on Windows write if it is not UTF-8. It can decode all bytes except five.
_FALLBACK = "cp1252"


def read_delimited(
    path: str | Path,
    *,
    text: Iterable[str] = (),
    missing: Iterable[str] = (),
    encoding: str | None = None,
    decimal: str = ".",
) -> pd.DataFrame:
    r"""Read a text file with one row per line and separated fields.

    Parameters
    ----------
    path : str or Path
        The file.
    text : iterable of str
        Columns that are read as text: 007 stays 007.
    missing : iterable of str
        Words that stand for a missing value, in addition to the usual ones such as NA.
    encoding : str, optional
        Encoding of the file. By default it is UTF-8, or UTF-16 if the file begins with a byte
        order mark. A file that is neither is read as cp1252 (latin-1), with a warning.
    decimal : str, default="."
        The decimal sign of numbers.

    Returns
    -------
    DataFrame
        The table. Fields are separated by commas, semicolons, tabs or bars: whichever the header
        and the first lines agree on.

    Raises
    ------
    InputError
        If a line has more or fewer fields than the header, if a name is repeated, if a quote is
        not closed, or if the encoding is wrong.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "people.csv"
    ...     _ = file.write_text("age;sex\n20;f\n30;m\n")
    ...     read_delimited(file).columns.tolist()
    ['age', 'sex']
    """
    content = _decode(Path(path), encoding)
    if "\0" in content:
        raise InputError(
            f"{path} holds zero bytes, so it is not text. Name its encoding, or export it again."
        )
    separator = _find_separator(content)
    _check_lines(content, separator, path)
    return pd.read_csv(
        io.StringIO(content),
        sep=separator,
        dtype=dict.fromkeys(text, str),
        na_values=list(missing),
        decimal=decimal,
        index_col=False,
        low_memory=False,  # gives a column one type, not one for each part of the file
    )


def _decode(file: Path, encoding: str | None) -> str:
    content = file.read_bytes()
    known = encoding or _MARKS.get(content[:2]) or "utf-8-sig"
    try:
        return content.decode(known)
    except LookupError:
        raise InputError(
            f"There is no encoding {encoding!r}. Name a known one, such as utf-8, utf-16, latin-1 "
            "or cp1252."
        ) from None
    except UnicodeDecodeError as error:
        if encoding is not None:
            raise InputError(
                f"{file} is not written in {encoding}: {error.reason} (byte {error.start:,}). Name "
                "another encoding."
            ) from error
        line = content.count(b"\n", 0, error.start) + 1
    text = content.decode(_FALLBACK, errors="replace")
    warnings.warn(
        f"{file} is not written in UTF-8 (line {line}), so it is read as {_FALLBACK} (latin-1). "
        "Name the encoding (--encoding) if its letters look wrong.",
        FairmatchWarning,
        stacklevel=4,
    )
    return text


def _records(content: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield every record that is not blank, with the number of its last line."""
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=separator, strict=True)
    for record in reader:
        if record:
            yield reader.line_num, record


def _find_separator(content: str) -> str:
    """Return the separator that splits the header into the most fields.

    Separators that split all lines alike are preferred.
    """
    found = ","
    most = (False, 1)
    for separator in SEPARATORS:
        widths = _first_widths(content, separator)
        if widths and widths[0] > 1:
            merit = len(set(widths)) == 1, widths[0]
            if merit > most:
                found, most = separator, merit
    return found


def _first_widths(content: str, separator: str) -> list[int]:
    widths = []
    try:
        for _, record in _records(content, separator):
            widths.append(len(record))
            if len(widths) == _LOOKED_AT:
                break
    except csv.Error:  # reported later, for the chosen separator
        pass
    return widths


def _check_lines(content: str, separator: str, path: str | Path) -> None:
    """Raise unless every line has as many fields as the header, and no name is repeated."""
    header: list[str] | None = None
    ragged: list[tuple[int, int]] = []
    line = 0
    try:
        for line, record in _records(content, separator):
            if header is None:
                header = record
            elif len(record) != len(header):
                ragged.append((line, len(record)))
    except csv.Error as error:
        raise InputError(
            f"{path} cannot be read after line {line}: {error}. Is a quote not closed?"
        ) from error
    if header is None:
        raise InputError(
            f"{path} cannot be read: it is empty. A table needs a header and rows. Export it again."
        )
    refuse_repeated(header, path)
    if ragged:
        (line, width), more = ragged[0], len(ragged) - 1
        others = f", and {more:,} other lines differ too" if more else ""
        raise InputError(
            f"{path}, line {line}: {width} fields where the header has {len(header)}{others}. "
            f"Fields are separated by {SEPARATORS[separator]}. Put a field that holds such a sign "
            "in quotes."
        )


def refuse_repeated(names: Sequence[str], path: str | Path) -> None:
    """Raise if the name of a column is repeated. Empty names do not count."""
    twice = sorted(name for name, count in Counter(names).items() if name and count > 1)
    if twice:
        raise InputError(
            f"{path}: each column needs a name of its own; these are repeated: "
            f"{', '.join(map(repr, twice))}. Rename them."
        )
