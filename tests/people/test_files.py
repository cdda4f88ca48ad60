"""Files are there whole or not at all."""

import errno
import os

import pytest

from fairmatch.cli.main import main
from fairmatch.people.files import whole_file, write_whole


def no_space(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_an_error_half_way_leaves_the_old_file_and_nothing_else(tmp_path):
    file = write_whole(tmp_path / "page.html", "old")

    def fail_half_way():
        with whole_file(file) as partial:
            partial.write_text("half of the ne")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["page.html"]


def test_a_full_disk_is_told_with_the_files_name(tmp_path, monkeypatch):
    file = tmp_path / "page.html"
    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left") as caught:
        write_whole(file, "new")
    assert caught.value.filename == str(file)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        write_whole(tmp_path / "file" / "page.html", "new")


def test_what_a_link_points_to_is_replaced_and_the_link_stays(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_pipe_stays_one(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_whole(tmp_path / "pipe", "new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 2, "fairmatch: No space left on device"),
        (OSError(errno.EACCES, "Permission denied", "a.csv"), 2, "fairmatch: a.csv: Permission"),
        (KeyboardInterrupt(), 130, "fairmatch: interrupted"),
    ],
)
def test_the_command_line_tells_what_is_known(error, code, told, monkeypatch, capsys):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("fairmatch.datasets.summarise", fail)
    assert main(["datasets", "german"]) == code
    assert told in capsys.readouterr().err
