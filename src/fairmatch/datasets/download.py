"""The content of a source file: bundled, found on disk, or downloaded, and always checked."""

import gzip
import hashlib
import os
import tempfile
import zipfile
from importlib.resources import files as package_files
from io import BytesIO
from pathlib import Path
from textwrap import shorten

from fairmatch.datasets.sources import SourceFile
from fairmatch.exceptions import DatasetError
from fairmatch.storage.atomic import whole_file

FOLDER_VARIABLE = "FAIRMATCH_DATA"
"""Environment variable that names a folder with the tables."""


def cache_folder() -> Path:
    """Return the folder in which downloads are kept.

    Returns
    -------
    pathlib.Path
        The user's cache folder for fairmatch. It need not exist.

    Examples
    --------
    >>> from fairmatch.datasets.download import cache_folder
    >>> cache_folder().is_absolute()
    True
    """
    import pooch

    return Path(pooch.os_cache("fairmatch"))


def locate(file: SourceFile) -> Path | None:
    """Find a file on disk. Nothing is downloaded.

    Parameters
    ----------
    file : SourceFile
        The file to find. ``$FAIRMATCH_DATA`` is searched first, and then the cache folder if the
        file can be downloaded.

    Returns
    -------
    pathlib.Path or None
        The path of the file, or None if it is in neither folder.

    Examples
    --------
    >>> from fairmatch.datasets.download import locate
    >>> from fairmatch.datasets.sources import SourceFile
    >>> print(locate(SourceFile("no-such-file", sha256="", address="")))
    None
    """
    for folder in _search_folders(file):
        if (path := folder / file.name).is_file():
            return path
    return None


def read_content(file: SourceFile) -> bytes:
    """Return a file's content: bundled, else found on disk, else downloaded.

    Parameters
    ----------
    file : SourceFile
        The file to read.

    Returns
    -------
    bytes
        The content, whose checksum has been verified.

    Raises
    ------
    DatasetError
        If the file is damaged, or if it is absent and cannot be downloaded.

    Examples
    --------
    >>> from fairmatch.datasets.download import read_content
    >>> from fairmatch.datasets.sources import SOURCES
    >>> read_content(SOURCES["german"].files[0])[:10]
    b'A11 6 A34 '
    """
    if file.bundled:
        table = package_files("fairmatch.datasets") / "bundled" / f"{file.name}.gz"
        return _verified(
            gzip.decompress(table.read_bytes()),
            file,
            where=str(table),
            remedy="The package is damaged: install fairmatch again.",
        )
    if path := locate(file):
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DatasetError(
                f"{path} cannot be read: {error.strerror}. Make the file readable, or remove it."
            ) from error
        return _verified(
            content,
            file,
            where=str(path),
            remedy=f"Remove or replace it; the publisher's file is at {file.address}",
        )
    if not file.downloaded:
        raise DatasetError(
            f"{file.name} is not here, and it is not downloaded for you. Set {FOLDER_VARIABLE} to "
            f"a folder that holds it. The publisher's file is at {file.address}."
        )
    return _download(file)


def _search_folders(file: SourceFile) -> list[Path]:
    chosen = os.environ.get(FOLDER_VARIABLE)
    found = [Path(chosen).expanduser()] if chosen else []
    return [*found, cache_folder()] if file.downloaded else found


def _verified(content: bytes, file: SourceFile, *, where: str, remedy: str) -> bytes:
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise DatasetError(
            f"{file.name} is not the expected file: sha256 expected {file.sha256}, got {found}, "
            f"in {where}. {remedy}"
        )
    return content


def _download(file: SourceFile) -> bytes:
    try:
        content = _unpack(_fetch(file.address), file.members)
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        inside = f" (in it: {' > '.join(file.members)})" if file.members else ""
        raise DatasetError(
            f"{file.name} is not here and could not be downloaded from {file.address}{inside}: "
            f"{shorten(str(error), 120)}. Download it yourself and put {file.name} into "
            f"{_search_folders(file)[0]} (or set {FOLDER_VARIABLE} to the folder that holds it)."
        ) from error
    _verified(
        content,
        file,
        where=f"the download from {file.address}",
        remedy="Nothing was kept. The publisher may have changed the file: find an older copy.",
    )
    path = cache_folder() / file.name
    try:
        with whole_file(path) as partial:  # another process may look for it meanwhile
            partial.write_bytes(content)
    except OSError as error:
        raise DatasetError(
            f"{file.name} was downloaded but cannot be kept at {path}: {error.strerror}. Set "
            f"{FOLDER_VARIABLE} to a folder that holds it."
        ) from error
    return content


def _fetch(address: str) -> bytes:
    import pooch

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "download"
        # Only the downloader, not pooch.retrieve: the known checksum belongs to the file inside
        # the archive, and _verified checks it.
        pooch.HTTPDownloader(timeout=60)(address, str(target), None)
        return target.read_bytes()


def _unpack(content: bytes, members: tuple[str, ...]) -> bytes:
    for member in members:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            content = archive.read(member)
    return content
