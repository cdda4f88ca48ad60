"""The benchmark tables by name: address, checksum, licence, and how each is found."""

import gzip
import hashlib
import os
import tempfile
import zipfile
from dataclasses import dataclass
from importlib.resources import files as package_files
from io import BytesIO
from pathlib import Path
from textwrap import shorten

from fairmatch.exceptions import DatasetError
from fairmatch.people.files import whole_file


@dataclass(frozen=True)
class SourceFile:
    """One file as its publisher ships it.

    Parameters
    ----------
    name : str
        Name of the file, by which it is also found on disk.
    sha256 : str
        Checksum of the uncompressed file.
    address : str
        Where the publisher serves the file, or the archive that holds it.
    members : tuple of str
        The path through nested zip archives, outermost first. It is empty if `address` is the
        file itself.
    bundled : bool
        Whether the file is part of the package.
    downloaded : bool
        Whether the file is downloaded if it is needed and not found.

    Examples
    --------
    >>> from fairmatch.datasets.registry import SOURCES
    >>> SOURCES["bank"].files[0].members
    ('bank-additional.zip', 'bank-additional/bank-additional-full.csv')
    """

    name: str
    sha256: str
    address: str
    members: tuple[str, ...] = ()
    bundled: bool = False
    downloaded: bool = True


@dataclass(frozen=True)
class Source:
    """The files of one dataset with their licence and citation.

    Parameters
    ----------
    title : str
        The dataset's full name.
    page : str
        The publisher's page about it.
    licence : str
        The licence of the data.
    citation : str
        How to cite the data.
    files : tuple of SourceFile
        The files, in the order in which the loader reads them.

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
    files: tuple[SourceFile, ...]

    @property
    def downloaded(self) -> bool:
        """Whether files that are needed and not found are downloaded."""
        return all(file.downloaded for file in self.files)


_UCI = "https://archive.ics.uci.edu"

SOURCES: dict[str, Source] = {
    "adult": Source(
        title="Adult",
        page=f"{_UCI}/dataset/2/adult",
        licence="CC BY 4.0",
        citation=(
            "Becker, B. and Kohavi, R. (1996). Adult. UCI Machine Learning Repository. "
            "https://doi.org/10.24432/C5XW20"
        ),
        files=(
            SourceFile(
                name="adult.data",
                sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
                address=f"{_UCI}/static/public/2/adult.zip",
                members=("adult.data",),
                bundled=True,
            ),
            SourceFile(
                name="adult.test",
                sha256="a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
                address=f"{_UCI}/static/public/2/adult.zip",
                members=("adult.test",),
                bundled=True,
            ),
        ),
    ),
    "german": Source(
        title="German Credit",
        page=f"{_UCI}/dataset/144/statlog+german+credit+data",
        licence="CC BY 4.0",
        citation=(
            "Hofmann, H. (1994). Statlog (German Credit Data). UCI Machine Learning Repository. "
            "https://doi.org/10.24432/C5NC77"
        ),
        files=(
            SourceFile(
                name="german.data",
                sha256="b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
                address=f"{_UCI}/static/public/144/statlog+german+credit+data.zip",
                members=("german.data",),
                bundled=True,
            ),
        ),
    ),
    "bank": Source(
        title="Bank Marketing",
        page=f"{_UCI}/dataset/222/bank+marketing",
        licence="CC BY 4.0",
        citation=(
            "Moro, S., Rita, P. and Cortez, P. (2014). Bank Marketing. UCI Machine Learning "
            "Repository. https://doi.org/10.24432/C5K306"
        ),
        files=(
            SourceFile(
                name="bank-additional-full.csv",
                sha256="74adfc578bf77a7ff4bb1ba4a9f8709d9e3c6907342959c2c8416847e0afb4d8",
                address=f"{_UCI}/static/public/222/bank+marketing.zip",
                members=("bank-additional.zip", "bank-additional/bank-additional-full.csv"),
            ),
        ),
    ),
    "dutch": Source(
        title="Dutch Census 2001",
        page="https://github.com/tailequy/fairness_dataset",
        # The repository states none; the microdata are Statistics Netherlands' by way of IPUMS.
        licence="none stated",
        citation=(
            "Le Quy, T., Roy, A., Iosifidis, V., Zhang, W. and Ntoutsi, E. (2022). A survey on "
            "datasets for fairness-aware machine learning. WIREs Data Mining and Knowledge "
            "Discovery 12(3), e1452. https://doi.org/10.1002/widm.1452. Data: Statistics "
            "Netherlands, Dutch Virtual Census of 2001."
        ),
        files=(
            SourceFile(
                name="dutch.csv",
                sha256="c0e1df7e2ca07fa84aa99b5565c7b782a381e2fab377648a6d920174d04ce090",
                address=(
                    "https://raw.githubusercontent.com/tailequy/fairness_dataset/main/"
                    "experiments/data/dutch.csv"
                ),
            ),
        ),
    ),
    "acsincome": Source(
        title="ACSIncome",
        page="https://github.com/socialfoundations/folktables",
        licence="public domain (US government)",
        citation=(
            "Ding, F., Hardt, M., Miller, J. and Schmidt, L. (2021). Retiring Adult: new datasets "
            "for fair machine learning. NeurIPS 34. Data: US Census Bureau, American Community "
            "Survey 2018."
        ),
        files=(
            SourceFile(
                name="acsincome.parquet",
                sha256="cbe16ab9be0996473f132d3a7fafe456e7db6cb3b63c4d1fcc74e3e92b0bcef2",
                address=(
                    "https://github.com/dssg/aequitas, there named "
                    "datasets/FolkTables/ACSIncome.validation.parquet"
                ),
                downloaded=False,
            ),
        ),
    ),
}
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
    """Return a file's verified content: bundled, else found on disk, else downloaded.

    Raises
    ------
    DatasetError
        If the file is damaged, or if it is absent and cannot be downloaded.
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
