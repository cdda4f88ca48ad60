"""Folders written whole or not at all: the old one stays until the new one is complete."""

import ctypes
import errno
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

_AT_FDCWD, _EXCHANGE = -100, 2
_TRIES = 20


@contextmanager
def whole_folder(path: str | Path) -> Iterator[Path]:
    """Yield an empty folder to write into, which replaces the folder at the path once complete.

    The caller decides whether an existing folder may be replaced. This function replaces all of
    it. If several processes write the same folder at once, the last one wins as a whole.

    Parameters
    ----------
    path : str or Path
        Where the folder goes. Its parent is created if there is none.

    Yields
    ------
    Path
        A hidden folder with the same parent, which has a new name each time.

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
    folder = Path(path).resolve()  # replaces the target of a link, not the link
    partial = folder.with_name(f".{folder.name}.{uuid4().hex}.partial")
    try:
        partial.mkdir(parents=True)
        yield partial
        for file in partial.iterdir():
            _reach_the_disk(file)
        _take_the_place_of(partial, folder)
    except OSError as error:
        named = error.filename
        if named is None or str(named).startswith(str(partial)):
            error.filename = str(path)
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


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
            aside = new.with_name(f"{new.name}.{uuid4().hex}.old")
            old.rename(aside)
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
