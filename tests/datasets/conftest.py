import pytest

from fairmatch.datasets import registry as files
from fairmatch.datasets.registry import SOURCES


@pytest.fixture
def isolated(monkeypatch, tmp_path):
    """An empty cache folder, no FAIRMATCH_DATA, and a network that refuses."""

    def refuse(address):
        raise OSError(f"no network in tests: {address}")

    cache = tmp_path / "cache"
    monkeypatch.delenv(files.FOLDER_VARIABLE, raising=False)
    monkeypatch.setattr(files, "cache_folder", lambda: cache)
    monkeypatch.setattr(files, "_fetch", refuse)
    return cache


@pytest.fixture(scope="session")
def needs():
    """Skip a test whose table is not here; tests never download."""

    def check(name):
        for file in SOURCES[name].files:
            if not file.bundled and files.locate(file) is None:
                fetch = f", or run `fairmatch datasets --fetch {name}`" if file.downloaded else ""
                pytest.skip(
                    f"{file.name} is not here: set {files.FOLDER_VARIABLE} to the folder that "
                    f"holds it{fetch}"
                )

    return check
