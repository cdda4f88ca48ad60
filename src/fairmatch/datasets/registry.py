"""The benchmark tables by name, and how the file of each is found."""

import gzip
import hashlib
import os
import tempfile
import zipfile
from dataclasses import dataclass, field
from importlib.resources import files as package_files
from io import BytesIO
from pathlib import Path
from textwrap import shorten
from typing import Any

import msgspec

from fairmatch.exceptions import DatasetError
from fairmatch.people.files import whole_file


@dataclass(frozen=True)
class SourceFile:
    """One file as its publisher ships it, by name and checksum of the uncompressed file.

    The members lead through nested zip archives, outermost first; without them the address is that
    of the file itself.
    """

    name: str
    sha256: str
    address: str
    members: tuple[str, ...] = ()
    bundled: bool = False
    downloaded: bool = True


@dataclass(frozen=True)
class Source:
    """A table of ``tables.toml``: its files with their licence, and what its codes mean.

    Examples
    --------
    >>> from fairmatch.datasets.registry import SOURCES
    >>> SOURCES["german"].licence
    'CC BY 4.0'
    """

    title: str
    page: str
    licence: str
    citation: str
    positive_label: str
    batch_size: int
    description: str
    files: tuple[SourceFile, ...]
    columns: tuple[str, ...] = ()
    names: dict[str, str] = field(default_factory=dict)
    levels: dict[str, Any] = field(default_factory=dict)

    @property
    def downloaded(self) -> bool:
        """Whether files that are needed and not found are downloaded."""
        return all(file.downloaded for file in self.files)


SOURCES: dict[str, Source] = msgspec.toml.decode(
    (package_files("fairmatch.datasets") / "tables.toml").read_bytes(), type=dict[str, Source]
)
"""Every dataset by its short name."""


FOLDER_VARIABLE = "FAIRMATCH_DATA"
"""Environment variable that names a folder with the tables."""


def cache_folder() -> Path:
    """Return the user's cache folder for downloads, which need not exist."""
    import pooch

    return Path(pooch.os_cache("fairmatch"))


def locate(file: SourceFile) -> Path | None:
    """Find a file in ``$FAIRMATCH_DATA`` or the cache folder. Nothing is downloaded."""
    for folder in _search_folders(file):
        if (path := folder / file.name).is_file():
            return path
    return None


def read_content(file: SourceFile) -> bytes:
    """Return a file's verified content: bundled, else found on disk, else downloaded."""
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
            f"{file.name} was not found, and fairmatch does not download it. Set "
            f"{FOLDER_VARIABLE} to a folder that holds it. The publisher's file is at "
            f"{file.address}."
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
            f"{file.name} is not the expected file: its SHA-256 should be {file.sha256}, got "
            f"{found}, in {where}. {remedy}"
        )
    return content


def _download(file: SourceFile) -> bytes:
    try:
        content = _unpack(_fetch(file.address), file.members)
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        inside = f" (in it: {' > '.join(file.members)})" if file.members else ""
        raise DatasetError(
            f"{file.name} was not found, and could not be downloaded from {file.address}{inside}: "
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
