"""Files are there whole or not at all."""

import csv
import errno
import os
import stat
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from fairmatch import audit
from fairmatch.cli.main import main
from fairmatch.exceptions import OutputFileError
from fairmatch.people.files import whole_file, whole_folder, write_table, write_whole
from fairmatch.report import write_report


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


def test_a_folder_that_cannot_be_written_is_told_with_advice(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(OutputFileError, match=r"cannot be written.*Choose another place"),
        whole_folder(tmp_path / "file" / "model"),
    ):
        pass


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
        (OSError(errno.ENOSPC, "No space left on device"), 2, "fairmatch: the output: No space"),
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


def mode(path):
    return oct(stat.S_IMODE(path.stat().st_mode))


def test_a_device_that_is_full_is_named():
    with pytest.raises(OSError, match="No space left") as caught:
        write_whole("/dev/full", "new")
    assert caught.value.filename == "/dev/full"


def test_the_longest_name_can_be_written(tmp_path):
    assert write_whole(tmp_path / ("é" * 120 + ".csv"), "new").read_text() == "new"


@pytest.mark.parametrize("wanted", [0o600, 0o640, 0o664])
def test_what_replaces_a_file_has_its_mode(tmp_path, wanted):
    file = write_whole(tmp_path / "page.html", "old")
    file.chmod(wanted)
    with whole_file(file) as partial:
        assert mode(partial) == oct(wanted)  # nobody else reads it meanwhile
        partial.write_text("new")
    assert (file.read_text(), mode(file)) == ("new", oct(wanted))


def test_what_replaces_a_folder_has_its_mode_and_those_of_its_files(tmp_path):
    home = tmp_path / "model"
    for word in ("old", "new"):
        with whole_folder(home) as partial:
            (partial / "model.json").write_text(word)
            if word == "new":
                assert mode(partial) == "0o700"
        if word == "old":
            home.chmod(0o750)
            (home / "model.json").chmod(0o600)
    assert (home / "model.json").read_text() == "new"
    assert (mode(home), mode(home / "model.json")) == ("0o750", "0o600")


def test_a_new_report_of_people_is_their_owners_alone(tmp_path):
    pytest.importorskip("altair")
    found = audit(np.linspace(0, 1, 80), sensitive_features=["a", "b"] * 40, X=np.eye(80)[:, :3])
    usual = mode(write_whole(tmp_path / "usual", ""))
    assert mode(write_report(found, tmp_path / "people.html")) == "0o600"
    assert mode(write_report(found, tmp_path / "facts.html", individuals=False)) == usual


KILLED = """
import os, sys
from fairmatch.people.files import whole_file, whole_folder
with whole_folder(sys.argv[1] + "/m"), whole_file(sys.argv[1] + "/f"):
    os.kill(os.getpid(), 9)
"""


def test_what_a_killed_process_left_goes_after_an_hour(tmp_path):
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    left = sorted(tmp_path.iterdir())
    assert len(left) == 2

    def write_both():
        with whole_folder(tmp_path / "m"):
            pass
        write_whole(tmp_path / "f", "")
        return set(tmp_path.iterdir()) - {tmp_path / "m", tmp_path / "f"}

    mine = tmp_path / ".m.mine.partial"
    mine.mkdir()
    assert write_both() == {*left, mine}  # they are young, and might be written to
    for place in (*left, mine):
        os.utime(place, (time.time() - 4000,) * 2)
    assert write_both() == {mine}  # not a name of ours


def test_what_a_living_process_writes_for_hours_stays(tmp_path):
    with whole_folder(tmp_path / "m") as slow:
        os.utime(slow, (time.time() - 9000,) * 2)
        with whole_folder(tmp_path / "m"):
            pass
        assert slow.exists()


CELLS = ["=1+1", "+a", "-a", "@a", "\ta", "\ra", "\na", "a\rb", 'a"b', "a,b", "a;=b", "＝a", "a\nb"]


def test_cells_are_no_formulas_and_come_back(tmp_path):
    frame = pd.DataFrame({"=name": CELLS, "text": ["-1.5"] * len(CELLS), "n": -1.5, "x": None})
    frame["kind"] = pd.Categorical(CELLS)
    file = write_table(frame, tmp_path / "out.csv")
    with file.open(encoding="utf-8", newline="") as stream:
        head, *rows = csv.reader(stream, strict=True)
    assert head == ["'=name", "text", "n", "x", "kind"]
    wanted = ["'" * (cell[0] not in "a") + cell for cell in CELLS]
    assert [row[0] for row in rows] == [row[4] for row in rows] == wanted
    assert {tuple(row[1:4]) for row in rows} == {("-1.5", "-1.5", "")}
    again = pd.read_csv(file, lineterminator="\n")
    assert again["'=name"].tolist() == wanted
    assert again["n"].tolist() == [-1.5] * len(CELLS)


def test_plain_tables_are_written_as_before(tmp_path):
    frame = pd.DataFrame({"id": ["a", "b c"], "score": [0.1, np.nan], "yes": [True, False]})
    frame["day"] = pd.Timestamp("2020-01-02")
    file = write_table(frame, tmp_path / "out.csv")
    assert file.read_text() == frame.to_csv(index=False)
