"""Files written whole or not at all: a full disk or a kill leaves the old file unchanged."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from uuid import uuid4

from fairmatch.exceptions import InputError

PARTIAL = ".partial"
"""Ending of the names of files that are being written."""


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Yield a partial file to write into, which replaces the file at the path once complete.

    Parameters
    ----------
    path : str or Path
        Where the file goes. Its folder is created if there is none.

    Yields
    ------
    Path
        A hidden file in the same folder. It has a new name each time, because several processes
        may write the same file. A path that is not a plain file, such as ``/dev/stdout``, is
        yielded itself.

    Raises
    ------
    OSError
        If the file cannot be written. The error always names the file.

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
    if Path(path).exists() and not Path(path).is_file():
        yield Path(path)
        return
    file = Path(path).resolve()  # replaces the target of a link, not the link
    partial = file.with_name(f".{file.name}.{uuid4().hex}{PARTIAL}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        with partial.open("rb+") as stream:
            os.fsync(stream.fileno())  # otherwise the rename may reach the disk before the content
        partial.replace(file)
    except OSError as error:
        if error.filename is None or error.filename == str(partial):
            error.filename = str(path)
        raise
    finally:
        with suppress(OSError):  # there is no file if the folder could not be created
            partial.unlink()


def write_whole(path: str | Path, text: str) -> Path:
    """Write a text whole or not at all, and return its path."""
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return Path(path)


def check_outputs(inputs: Sequence[str], outputs: Mapping[str, str | None]) -> None:
    """Raise before the work starts if a result cannot be written or would overwrite another file.

    Parameters
    ----------
    inputs : sequence of str
        Names of the files that are read.
    outputs : mapping
        Command-line option to the name of the file to write, or to None.

    Raises
    ------
    InputError
        If an output is a folder, one of the inputs, or another output.
    OSError
        If an output cannot be written at its path.
    """
    taken = {Path(name).resolve(): f"{name} is read" for name in inputs}
    for option, name in outputs.items():
        if name is None:
            continue
        file = Path(name)
        if file.is_dir():
            raise InputError(f"{option} must be a file, and {name} is a folder. Name a file in it.")
        if file.resolve() in taken:
            raise InputError(
                f"{option} {name} would overwrite a file: {taken[file.resolve()]}. Choose another "
                "name."
            )
        if file.is_file() or not file.exists():  # /dev/stdout can be written to twice
            taken[file.resolve()] = f"{option} is written there"
            check_place(file)


def check_place(path: str | Path) -> None:
    """Raise unless a file or folder can be written at a path. Nothing is left there.

    Parameters
    ----------
    path : str or Path
        Where the file or folder goes. Its parent folders need not exist yet.

    Raises
    ------
    OSError
        If nothing can be written there. This check comes before hours of work, not after them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> check_place(pathlib.Path(tempfile.mkdtemp()) / "new" / "numbers.txt")
    """
    home = Path(path).resolve().parent
    while not home.exists():
        home = home.parent
    try:
        os.rmdir(mkdtemp(prefix=".", suffix=PARTIAL, dir=home))
    except OSError as error:
        error.filename = str(path)
        raise
