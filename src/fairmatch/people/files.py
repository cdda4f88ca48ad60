"""Files: tables that are checked when read, and output that is written whole or not at all."""

from __future__ import annotations

import csv
import ctypes
import errno
import io
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from uuid import uuid4

import pandas as pd

from fairmatch.exceptions import (
    FairmatchWarning,
    InputError,
    MissingExtraError,
    OutputFileError,
    notify,
)
from fairmatch.people.checks import refuse_twice

PARTIAL = ".partial"
"""Ending of the names of files and folders that are being written."""

_STALE = 3600.0  # seconds after which what a killed process left may be removed


@contextmanager
def whole_file(path: str | Path, *, private: bool = False) -> Iterator[Path]:
    """Yield a hidden file to write into, which replaces the file at the path once complete.

    It has the mode of the file that it replaces. A new file that is ``private`` is readable by its
    owner alone. A path that is no plain file, such as ``/dev/stdout``, is yielded itself. If it
    cannot be written, an `OutputFileError` names the path.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "new" / "numbers.txt"
    >>> with whole_file(file) as partial:
    ...     _ = partial.write_text("1 2 3")
    ...     print(file.exists())
    False
    >>> file.read_text()
    '1 2 3'
    """
    with _told_with_advice(path):
        if Path(path).exists() and not Path(path).is_file():
            yield Path(path)
            return
        with _in_the_place_of(path, is_folder=False, private=private) as partial:
            yield partial


@contextmanager
def _told_with_advice(path: str | Path) -> Iterator[None]:
    try:
        yield
    except (BrokenPipeError, OutputFileError):
        raise
    except OSError as error:
        why = error.strerror or str(error)
        raise OutputFileError(error.errno, why, error.filename or str(path)) from error


@contextmanager
def _in_the_place_of(path: str | Path, *, is_folder: bool, private: bool = False) -> Iterator[Path]:
    """Yield a new hidden file or folder, which replaces the one at the path once complete."""
    place = Path(path).resolve()  # replaces the target of a link, not the link
    # The longest name of a file has 255 bytes.
    partial = place.with_name(f".{_cut(place.name)}.{uuid4().hex}{PARTIAL}")
    is_shared = not private and not place.exists()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale(place)
        if is_folder:
            partial.mkdir(0o777 if is_shared else 0o700)
        else:
            partial.touch(0o666 if is_shared else 0o600)
            _copy_mode(place, partial)
        with _held(partial):
            yield partial
            for file in partial.iterdir() if is_folder else ():
                _copy_mode(place / file.name, file)
                _reach_the_disk(file)
            _reach_the_disk(partial)
            if is_folder:
                _copy_mode(place, partial)
                _take_the_place_of(partial, place)
            else:
                partial.replace(place)
    except OSError as error:
        if error.filename is None or str(error.filename).startswith(str(partial)):
            error.filename = str(path)
        raise
    finally:
        _remove(partial)


def _remove(path: Path) -> None:
    """Remove a file or a folder, if it is there and can be removed."""
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        path.unlink()


def write_whole(path: str | Path, text: str, *, private: bool = False) -> Path:
    """Write a text whole or not at all, and return its path."""
    with whole_file(path, private=private) as partial:
        # A text with half a surrogate pair cannot be written, so a question mark replaces it.
        partial.write_bytes(text.encode("utf-8", "replace"))
    return Path(path)


def _cut(name: str, size: int = 200) -> str:
    return name.encode()[:size].decode(errors="ignore")


def partials(path: Path) -> list[Path]:
    """Return what is being written, or was left unfinished, in the place of a file or folder."""
    named = re.compile(rf"\.{re.escape(_cut(path.name))}\.[0-9a-f]{{32}}{re.escape(PARTIAL)}")
    with suppress(OSError):
        return [other for other in path.parent.iterdir() if named.fullmatch(other.name)]
    return []


def _remove_stale(path: Path) -> None:
    """Remove what killed processes left in this place over an hour ago."""
    for partial in partials(path):
        with suppress(OSError):
            if time.time() - partial.stat().st_mtime > _STALE:
                with _held(partial):
                    _remove(partial)


@contextmanager
def _held(partial: Path) -> Iterator[None]:
    """Hold a lock that ends with the process. Raise an OSError if another process holds it."""
    try:
        import fcntl
    except ImportError:  # Windows has no such lock; there, only the age counts
        yield
        return
    handle = os.open(partial, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _copy_mode(old: Path, new: Path) -> None:
    with suppress(FileNotFoundError):
        new.chmod(stat.S_IMODE(old.stat().st_mode))


def check_outputs(inputs: Sequence[str], **outputs: str | None) -> None:
    """Raise before the work starts if a result cannot be written or would overwrite a file."""
    taken = {Path(name).resolve(): f"{name} is read" for name in inputs}
    for parameter, name in outputs.items():
        if name is None:
            continue
        file = Path(name)
        if file.is_dir():
            raise InputError(
                f"{parameter} must be a file, and {name} is a folder. Name a file in it.",
                parameter=parameter,
            )
        if file.resolve() in taken:
            raise InputError(
                f"{parameter} {name} would overwrite a file: {taken[file.resolve()]}. Choose "
                "another name.",
                parameter=parameter,
            )
        if file.is_file() or not file.exists():  # /dev/stdout can be written to twice
            taken[file.resolve()] = f"{parameter} is written there"
            check_place(file)


def check_place(path: str | Path) -> None:
    """Raise unless a file or folder can be written at a path. Nothing is left there."""
    home = Path(path).resolve().parent
    while not home.exists():
        home = home.parent
    try:
        os.rmdir(mkdtemp(prefix=".", suffix=PARTIAL, dir=home))
    except OSError as error:
        error.filename = str(path)
        raise


_AT_FDCWD, _EXCHANGE = -100, 2
_TRIES = 20


@contextmanager
def whole_folder(path: str | Path) -> Iterator[Path]:
    """Yield an empty folder to write into, which replaces the folder at the path once complete.

    The caller decides whether an existing folder may be replaced. This function replaces all of it
    and keeps its mode and those of its files. If several processes write the same folder at once,
    the last one wins as a whole. If it cannot be written, an `OutputFileError` names the path.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> home = pathlib.Path(tempfile.mkdtemp()) / "model"
    >>> with whole_folder(home) as partial:
    ...     _ = (partial / "numbers.txt").write_text("1 2 3")
    ...     print(home.exists())
    False
    >>> (home / "numbers.txt").read_text()
    '1 2 3'
    """
    with _told_with_advice(path), _in_the_place_of(path, is_folder=True) as partial:
        yield partial


def _reach_the_disk(file: Path) -> None:
    if file.is_file():
        with file.open("rb") as stream:
            os.fsync(stream.fileno())  # otherwise the rename may reach the disk before the content


def _take_the_place_of(new: Path, old: Path) -> None:
    """Move a folder to the place of another, or to a free place. The old one stays on failure."""
    for left in reversed(range(_TRIES)):
        try:
            if not old.exists():
                new.rename(old)
                return
            if _exchanged(new, old):
                return
            aside = new.with_name(f".{_cut(old.name)}.{uuid4().hex}{PARTIAL}")
            old.rename(aside)
            os.utime(aside)  # nobody may take it for stale
            try:
                new.rename(old)
            except OSError:
                with suppress(OSError):  # fails if another process has put a newer folder there
                    aside.rename(old)
                raise
            finally:
                shutil.rmtree(aside, ignore_errors=True)
        except OSError as error:
            # Another process was quicker to put a folder there, or to take it away.
            busy = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT)
            if error.errno not in busy or not left:
                raise
        else:
            return


def _exchanged(first: Path, second: Path) -> bool:
    """Exchange two folders in one step. Return False if the system cannot do this."""
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "renameat2"):
        return False
    names = os.fsencode(first), os.fsencode(second)
    done = library.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE)
    if done == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):  # not supported by this file system
        return False
    raise OSError(code, os.strerror(code), str(second))


SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""The separators between fields, and what they are called."""

_LOOKED_AT = 50  # records from which the separator is detected
_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
# What programs on Windows write if it is not UTF-8. It can decode all bytes except five.
_FALLBACK = "cp1252"


def _read_text(
    path: Path, text: Iterable[str], missing: Iterable[str], encoding: str | None, decimal: str
) -> pd.DataFrame:
    """Read a text file with one row per line and separated fields."""
    content = _decode(path, encoding)
    if "\0" in content:
        raise InputError(
            f"{path} contains null bytes, so it is not plain text. Name its encoding, or export "
            "it again."
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
    notify(
        f"{file} is not written in UTF-8 (line {line}), so it is read as {_FALLBACK} (latin-1). "
        "Name its encoding if its letters look wrong.",
        FairmatchWarning,
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

    def merit(separator: str) -> tuple[bool, int]:
        widths: list[int] = []
        with suppress(csv.Error):  # reported later, for the chosen separator
            widths.extend(len(own) for _, own in islice(_records(content, separator), _LOOKED_AT))
        return (len(set(widths)) == 1, widths[0]) if widths and widths[0] > 1 else (False, 0)

    return max(SEPARATORS, key=merit)  # the first of equals


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
            f"{path} cannot be read after line {line}: {error}. Is a closing quote missing?"
        ) from error
    if header is None:
        raise InputError(
            f"{path} cannot be read: it is empty. A table needs a header and rows. Export it again."
        )
    refuse_twice(header, path)
    if ragged:
        (line, width), more = ragged[0], len(ragged) - 1
        others = f", and {more:,} other lines differ too" if more else ""
        raise InputError(
            f"{path}, line {line}: {width} fields where the header has {len(header)}{others}. "
            f"Fields are separated by {SEPARATORS[separator]}. Put quotes around fields that "
            "contain the separator."
        )


MISSING_WORDS = (
    "In a CSV file empty fields and words such as NA and None count as missing. If such a word "
    "is a real value, replace it by another word."
)


_DELIMITED = (".csv", ".tsv", ".txt")
_SHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")


def read_table(
    path: str | Path,
    *,
    text: Iterable[str] = (),
    missing: Iterable[str] = (),
    encoding: str | None = None,
    decimal: str = ".",
    categories: Sequence[str] = (),
) -> pd.DataFrame:
    r"""Read a CSV or Parquet file; its ending says which of the two it is.

    Columns of ``text`` are read as text: 007 stays 007. ``missing`` are words for a missing value,
    in addition to the usual ones. The encoding is detected unless it is named. Commas, semicolons,
    tabs or bars separate the fields of a text file. ``categories`` are columns of a Parquet file
    whose text is read as categories, which is quicker. A file that is missing, empty, damaged or of
    another type raises `InputError`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "people.csv"
    ...     _ = file.write_text("age,sex\n20,f\n")
    ...     read_table(file).columns.tolist()
    ['age', 'sex']
    """
    file = Path(path)
    ending = file.suffix.lower()
    if ending in _SHEETS:
        raise InputError(
            f"{file} is a spreadsheet. Save its sheet as CSV (in Excel: File, Save As, CSV UTF-8), "
            "and pass that file."
        )
    if ending not in (*_DELIMITED, ".parquet"):
        raise InputError(
            f"{file} is neither a .csv nor a .parquet file. Save the table as one of these."
        )
    try:
        if ending == ".parquet":
            from pyarrow import parquet

            refuse_twice(parquet.read_schema(file).names, file)
            # Text of these columns is not decoded row by row.
            table = pd.read_parquet(file, read_dictionary=list(categories))
        else:
            table = _read_text(file, text, missing, encoding, decimal)
    except FileNotFoundError:
        raise InputError(f"There is no file {file}. Check its name and folder.") from None
    except ImportError as error:
        raise MissingExtraError(
            "Reading Parquet needs pyarrow: pip install 'fairmatch[all]'."
        ) from error
    except InputError:
        raise
    except Exception as error:  # what pandas and pyarrow raise for a damaged file differs
        # What a parser says of damaged bytes helps nobody.
        why = ", so it is damaged" if ending == ".parquet" else f": {str(error).rstrip('.')}"
        raise InputError(f"{file} cannot be read{why}. Export it again.") from error
    if table.empty:
        raise InputError(f"{file} has no rows, and at least one is needed. Pass a table with rows.")
    return table


def find_value(
    values: Iterable[Any], written: str, parameter: str | None = None, of: str | None = None
) -> Any:
    """Return the value that is written this way. The numbers 1 and 1.0 are both written "1".

    Examples
    --------
    >>> find_value([0.0, 1.0], "1"), find_value(["no", "yes"], "yes")
    (1.0, 'yes')
    """
    of = of or f"the values of column {getattr(values, 'name', None)!r}"
    values = pd.Series(list(values)).dropna().unique().tolist()
    for value in values:
        same_number = isinstance(value, int | float) and _is_number(written, float(value))
        if str(value) == written or same_number:
            return value
    raise InputError(
        f"{written!r} is not among {of} ({_first(values)}). Name one of them.", parameter=parameter
    )


def _first(values: Sequence[Any]) -> str:
    """Return the first of some values for an error."""
    return ", ".join(map(repr, values[:5])) + ", …" * (len(values) > 5)


def find_positive(
    values: Iterable[Any], written: str | None, parameter: str, of: str | None = None
) -> Any:
    """Return the positive label. If none is given it is the number 1; a word must be given.

    Examples
    --------
    >>> find_positive([0, 1], None, "pos_label"), find_positive(["no", "yes"], "yes", "pos_label")
    (1, 'yes')
    """
    if written is not None:
        return find_value(values, written, parameter, of)
    try:
        return find_value(values, "1", parameter, of)
    except InputError:
        of = of or f"the values of column {getattr(values, 'name', None)!r}"
        shown = _first(pd.Series(list(values)).dropna().unique().tolist())
        raise InputError(
            f"{of} are {shown}, and nothing says which label is positive. Name one of them.",
            parameter=parameter,
        ) from None


def _is_number(written: str, value: float) -> bool:
    try:
        return float(written) == value
    except ValueError:
        return False


def check_table_name(path: str | Path) -> Path:
    """Return the path of a table to write. Raise unless it ends in .csv or .parquet."""
    file = Path(path)
    if file.suffix.lower() not in (".csv", ".parquet"):
        raise InputError(f"{file} must end in .csv or .parquet. Choose another name.")
    return file


def write_table(frame: pd.DataFrame, path: str | Path) -> Path:
    """Write a CSV or Parquet file, whole or not at all."""
    file = check_table_name(path)
    if file.suffix.lower() == ".csv":
        return write_whole(file, csv_text(frame))
    with whole_file(file) as partial:
        frame.to_parquet(partial, index=False)
    return file


# What a spreadsheet takes for the beginning of a formula, also in the wide forms of East Asia.
_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")
_SPLITTING = re.compile(r"[\r;\t|]")


def csv_text(frame: pd.DataFrame, *, header: bool = True) -> str:
    """Return a table as CSV that no spreadsheet runs: all CSV of fairmatch is written here.

    A text that a spreadsheet would take for a formula gets an apostrophe in front. If a text holds
    another separator or a bare carriage return, all texts are quoted.

    Examples
    --------
    >>> print(csv_text(pd.DataFrame({"id": ["=1+1", "-7"], "score": [0.5, -0.25]})), end="")
    id,score
    '=1+1,0.5
    -7,-0.25
    """
    split = False

    def safe(cell: Any) -> Any:
        nonlocal split
        if not isinstance(cell, str):
            return cell
        split = split or _SPLITTING.search(cell) is not None
        return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell

    columns = {
        place: frame.iloc[:, place].astype(object).map(safe)
        for place, kind in enumerate(frame.dtypes)
        if not pd.api.types.is_numeric_dtype(kind) and kind.kind != "M"
    }
    columns = {place: columns.get(place, frame.iloc[:, place]) for place in range(frame.shape[1])}
    names = [safe(name) for name in frame.columns]
    text = pd.DataFrame(columns, index=frame.index).set_axis(names, axis=1)
    quoting: Any = csv.QUOTE_NONNUMERIC if split else csv.QUOTE_MINIMAL
    written: str = text.to_csv(index=False, header=header, quoting=quoting, lineterminator="\n")
    return written
