import gzip
import hashlib
import os
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

import fairmatch.datasets
from fairmatch.datasets import registry as files
from fairmatch.datasets.registry import SOURCES, SourceFile
from fairmatch.exceptions import DatasetError

CONTENT = b"a;b\n1;2\n"


def source(**changes):
    return SourceFile(
        **{
            "name": "table.csv",
            "sha256": hashlib.sha256(CONTENT).hexdigest(),
            "address": "https://example.org/table.csv",
            **changes,
        }
    )


def zipped(name, content):
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, content)
    return stream.getvalue()


def test_the_chosen_folder_comes_before_the_cache(isolated, monkeypatch, tmp_path):
    isolated.mkdir()
    (isolated / "table.csv").write_bytes(CONTENT)
    assert files.locate(source()) == isolated / "table.csv"
    chosen = tmp_path / "chosen"
    chosen.mkdir()
    monkeypatch.setenv("FAIRMATCH_DATA", str(chosen))
    assert files.locate(source()) == isolated / "table.csv"  # the chosen folder lacks it
    (chosen / "table.csv").write_bytes(CONTENT)
    assert files.locate(source()) == chosen / "table.csv"
    assert files.read_content(source()) == CONTENT


def test_a_download_is_kept_and_not_repeated(isolated, monkeypatch):
    calls = []
    monkeypatch.setattr(files, "_fetch", lambda address: calls.append(address) or CONTENT)
    assert files.read_content(source()) == CONTENT
    assert files.read_content(source()) == CONTENT
    assert calls == ["https://example.org/table.csv"]
    assert [path.name for path in isolated.iterdir()] == ["table.csv"]


def test_a_file_is_taken_out_of_nested_archives(isolated, monkeypatch):
    archive = zipped("inner.zip", zipped("folder/table.csv", CONTENT))
    monkeypatch.setattr(files, "_fetch", lambda address: archive)
    nested = source(members=("inner.zip", "folder/table.csv"))
    assert files.read_content(nested) == CONTENT
    assert (isolated / "table.csv").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "archive", [b"not a zip", zipped("other.csv", CONTENT)], ids=["damaged", "without the member"]
)
def test_a_useless_archive_is_an_error_and_leaves_nothing(isolated, monkeypatch, archive):
    monkeypatch.setattr(files, "_fetch", lambda address: archive)
    with pytest.raises(
        DatasetError, match=r"table\.csv was not found, and could not be downloaded"
    ):
        files.read_content(source(members=("table.csv",)))
    assert not isolated.exists()


def test_offline_the_error_says_what_to_fetch_from_where_and_where_to_put_it(isolated):
    nested = source(address="https://example.org/a.zip", members=("inner.zip", "table.csv"))
    with pytest.raises(DatasetError) as caught:
        files.read_content(nested)
    message = str(caught.value)
    for part in [
        "table.csv",
        "https://example.org/a.zip",
        "inner.zip > table.csv",
        str(isolated),
        "FAIRMATCH_DATA",
    ]:
        assert part in message


def test_offline_the_error_names_the_chosen_folder(isolated, monkeypatch, tmp_path):
    monkeypatch.setenv("FAIRMATCH_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match=str(tmp_path)):
        files.read_content(source())


def test_a_file_on_disk_with_another_checksum_is_an_error(isolated):
    isolated.mkdir()
    (isolated / "table.csv").write_bytes(b"other")
    with pytest.raises(DatasetError) as caught:
        files.read_content(source())
    message = str(caught.value)
    assert f"should be {source().sha256}" in message
    assert f"got {hashlib.sha256(b'other').hexdigest()}" in message
    assert str(isolated / "table.csv") in message


def test_a_download_with_another_checksum_is_not_kept(isolated, monkeypatch):
    monkeypatch.setattr(files, "_fetch", lambda address: b"other")
    with pytest.raises(DatasetError, match="Nothing was kept"):
        files.read_content(source())
    assert not isolated.exists()


def test_a_write_that_fails_leaves_nothing(isolated, monkeypatch):
    def fail(*paths):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "_fetch", lambda address: CONTENT)
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(DatasetError, match="No space left on device"):
        files.read_content(source())
    assert list(isolated.iterdir()) == []


def test_a_path_that_cannot_be_read_is_a_dataset_error(isolated, monkeypatch):
    def fail(path):
        raise PermissionError(13, "Permission denied")

    isolated.mkdir()
    (isolated / "table.csv").write_bytes(CONTENT)
    monkeypatch.setattr(Path, "read_bytes", fail)
    with pytest.raises(DatasetError, match=r"cannot be read: Permission denied"):
        files.read_content(source())


def test_fetch_hands_the_address_to_pooch(monkeypatch):
    import pooch

    class Downloader:
        def __init__(self, **options): ...

        def __call__(self, address, path, pooch):
            Path(path).write_bytes(address.encode())

    monkeypatch.setattr(pooch, "HTTPDownloader", Downloader)
    assert files._fetch("https://example.org/x") == b"https://example.org/x"


BUNDLED = [file for entry in SOURCES.values() for file in entry.files if file.bundled]


@pytest.mark.parametrize("file", BUNDLED, ids=lambda file: file.name)
def test_bundled_files_are_the_publishers_and_compressed_reproducibly(isolated, file):
    content = files.read_content(file)
    assert hashlib.sha256(content).hexdigest() == file.sha256
    packed = Path(fairmatch.datasets.__file__).with_name("bundled") / f"{file.name}.gz"
    header = packed.read_bytes()[:10]
    assert header[4:8] == b"\0\0\0\0"  # no modification time
    assert gzip.decompress(packed.read_bytes()) == content


def test_a_damaged_package_is_an_error(isolated):
    with pytest.raises(DatasetError, match="install fairmatch again"):
        files.read_content(source(name="german.data", bundled=True))


def test_the_notice_names_every_bundled_file():
    notice = Path(fairmatch.datasets.__file__).with_name("bundled") / "NOTICE.md"
    text = notice.read_text(encoding="utf-8")
    assert all(f"{file.name}.gz" in text for file in BUNDLED)
    assert "CC BY 4.0" in {SOURCES[name].licence for name in ("adult", "german")}
    assert "Attribution 4.0" in text


def test_what_is_not_downloaded_is_looked_for_in_the_chosen_folder_alone(
    isolated, monkeypatch, tmp_path
):
    isolated.mkdir()
    (isolated / "table.csv").write_bytes(CONTENT)
    monkeypatch.setattr(files, "_fetch", lambda address: pytest.fail("it was downloaded"))
    theirs = source(downloaded=False)
    with pytest.raises(DatasetError, match=r"table\.csv was not found.*Set FAIRMATCH_DATA"):
        files.read_content(theirs)
    monkeypatch.setenv("FAIRMATCH_DATA", str(tmp_path))
    (tmp_path / "table.csv").write_bytes(CONTENT)
    assert files.read_content(theirs) == CONTENT
