"""Files that are there whole or not at all: a full disk or a kill leaves the old one as it was."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from uuid import uuid4

from fairmatch.exceptions import InputError

PARTIAL = ".partial"
"""How the names of files end that are being written."""


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Yield a file to write into, which takes the place of another when all is written.

    Parameters
    ----------
    path : str or Path
        Where the file goes. Its folder is made if there is none.

    Yields
    ------
    Path
        A hidden file next to it, with a new name each time, since several processes may write the
        same file. A path that is not a plain file, such as ``/dev/stdout``, is yielded itself.

    Raises
    ------
    OSError
        With the name of the file, also where the system does not say which it was.

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
    file = Path(path).resolve()  # what a link points to is replaced, not the link
    partial = file.with_name(f".{file.name}.{uuid4().hex}{PARTIAL}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        with partial.open("rb+") as stream:
            os.fsync(stream.fileno())  # a rename may reach the disk before what was written
        partial.replace(file)
    except OSError as error:
        if error.filename is None or error.filename == str(partial):
            error.filename = str(path)
        raise
    finally:
        with suppress(OSError):  # where there is no folder, there is no file
            partial.unlink()


def write_whole(path: str | Path, text: str) -> Path:
    """Write a text, whole or not at all."""
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return Path(path)


def check_outputs(inputs: Sequence[str], outputs: Mapping[str, str | None]) -> None:
    """Raise before the work where a result cannot be written, or would take something's place.

    Parameters
    ----------
    inputs : sequence of str
        Files that are read.
    outputs : mapping
        Option of the command line to the file that it names, or None.

    Raises
    ------
    InputError
        If an output is a folder, one of the inputs, or another output.
    OSError
        If an output cannot be written where it is asked for.
    """
    taken = {Path(name).resolve(): f"{name} is read" for name in inputs}
    for option, name in outputs.items():
        if name is None:
            continue
        file = Path(name)
        if file.is_dir():
            raise InputError(f"{option} must be a file, and {name} is a folder.")
        if file.resolve() in taken:
            raise InputError(
                f"{option} {name} would be written over: {taken[file.resolve()]}. Choose another."
            )
        if file.is_file() or not file.exists():  # /dev/stdout can be written to twice
            taken[file.resolve()] = f"{option} is written there"
            check_place(file)


def check_place(path: str | Path) -> None:
    """Raise unless a file or folder can be written at a path; nothing stays there.

    Parameters
    ----------
    path : str or Path
        Where it goes. Folders that do not exist yet are not an obstacle.

    Raises
    ------
    OSError
        With the path, before hours of work instead of after them.

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
