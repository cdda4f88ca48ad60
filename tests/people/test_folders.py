"""Folders are there whole or not at all: for those who write at once, and for those who read."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from fairmatch.people import files as folders
from fairmatch.people.files import check_place, whole_folder


def write(home, word, n_files=3):
    with whole_folder(home) as partial:
        for k in range(n_files):
            (partial / f"{k}.txt").write_text(word)


def words(home):
    return {file.read_text() for file in home.iterdir()}


def test_an_error_half_way_leaves_the_old_folder_and_nothing_else(tmp_path):
    write(tmp_path / "model", "old")

    def fail_half_way():
        with whole_folder(tmp_path / "model") as partial:
            (partial / "0.txt").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert words(tmp_path / "model") == {"old"}
    assert os.listdir(tmp_path) == ["model"]


def test_files_of_the_old_folder_do_not_stay(tmp_path):
    write(tmp_path / "model", "old", n_files=5)
    write(tmp_path / "model", "new", n_files=2)
    assert len(list((tmp_path / "model").iterdir())) == 2


@pytest.mark.parametrize("exchanges", [True, False], ids=["exchange", "two renames"])
def test_threads_that_write_one_folder(tmp_path, exchanges, monkeypatch):
    if not exchanges:
        monkeypatch.setattr(folders, "_exchanged", lambda *_: False)
    errors = []

    def work(word):
        try:
            for _ in range(25):
                write(tmp_path / "model", word)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(word,)) for word in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(words(tmp_path / "model")) == 1
    assert os.listdir(tmp_path) == ["model"]


def test_a_reader_sees_one_whole_folder(tmp_path):
    """A folder that is opened once stays the one it was: old or new, never both."""
    write(tmp_path / "model", "a")
    done = threading.Event()

    def work():
        for k in range(60):
            write(tmp_path / "model", "ab"[k % 2])
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        assert (tmp_path / "model").exists()  # where folders can be exchanged
    thread.join()


KILLED = textwrap.dedent(
    """
    import itertools, sys
    from fairmatch.people.files import whole_folder

    for k in itertools.count():
        with whole_folder(sys.argv[1]) as partial:
            for file in range(8):
                (partial / f"{file}.txt").write_text(str(k))
        print(k, flush=True)
    """
)


@pytest.mark.parametrize("wait", [0.0, 0.003, 0.011])
def test_a_kill_leaves_one_whole_folder(tmp_path, wait):
    home = tmp_path / "model"
    command = [sys.executable, "-c", KILLED, str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(words(home)) == 1
    assert len(list(home.iterdir())) == 8
    write(home, "after")
    assert words(home) == {"after"}


def test_a_place_that_can_be_written_is_left_as_it_is(tmp_path):
    check_place(tmp_path / "new" / "deep" / "model")
    assert os.listdir(tmp_path) == []


def test_a_place_below_a_file_is_refused_with_its_name(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="model"):
        check_place(tmp_path / "file" / "model")


def test_a_disk_that_can_only_be_read_is_refused_with_the_name(tmp_path, monkeypatch):
    def refuse(**_):
        raise OSError(30, "Read-only file system", "/somewhere/else")

    monkeypatch.setattr("fairmatch.people.files.mkdtemp", refuse)
    with pytest.raises(OSError, match=r"Read-only file system: .*model") as raised:
        check_place(tmp_path / "model")
    assert raised.value.errno == 30
