import subprocess
import sys

import pytest
from rich.console import Console

import fairmatch
from fairmatch.cli import main as cli
from fairmatch.cli import paper
from fairmatch.datasets import download as files
from fairmatch.exceptions import FairmatchError


@pytest.fixture
def nothing_on_disk(monkeypatch, tmp_path):
    def refuse(address):
        raise OSError("no network in tests")

    monkeypatch.delenv(files.FOLDER_VARIABLE, raising=False)
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(files, "_fetch", refuse)


def test_datasets_in_a_pipe_is_plain_and_unwrapped(nothing_on_disk, capsys):
    assert cli.main(["datasets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["name", "rows", "features"]
    names = ["adult", "german", "bank", "dutch", "acsincome"]
    assert [line.split()[0] for line in lines[1:6]] == names
    assert "female (14,695, 0.114); male (30,527, 0.312)" in lines[1]
    assert lines[1].isascii()
    assert lines[3].endswith("not here")
    assert (
        "To get bank and dutch: fairmatch datasets --fetch bank dutch" in lines
    )  # acsincome is not downloaded
    assert "FAIRMATCH_DATA" in lines[-1]


def test_datasets_in_a_terminal_is_drawn(nothing_on_disk, monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(Console, "width", property(lambda self: 120))
    assert cli.main(["datasets", "german"]) == 0
    out = capsys.readouterr().out
    assert "┃" in out
    assert "female (310, 0.648)" in out
    assert "--fetch" not in out  # nothing is absent


def test_fetch_of_an_absent_table_offline_is_one_clean_line(nothing_on_disk, capsys):
    assert cli.main(["datasets", "--fetch", "dutch"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("fairmatch: dutch.csv is not here")
    assert captured.err.count("\n") == 1


def test_debug_shows_the_traceback(nothing_on_disk):
    with pytest.raises(FairmatchError):
        cli.main(["--debug", "datasets", "compas"])


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"fairmatch {fairmatch.__version__}\n"


@pytest.mark.parametrize("argv", [[], ["nonsense"]])
def test_wrong_usage(argv, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(argv)
    assert stop.value.code == 2
    assert "usage: fairmatch" in capsys.readouterr().err


def test_help_tells_what_each_command_does(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    out = " ".join(capsys.readouterr().out.split())
    assert all(command.help in out for command in cli.COMMANDS)


@pytest.mark.parametrize("command", [*cli.COMMANDS, *paper.ACTIONS], ids=lambda c: c.name)
def test_every_help_ends_with_an_example_that_can_be_parsed(command, capsys):
    given = command.example.split()
    assert given[0] == "fairmatch"
    assert cli._parser().parse_args(given[1:]).run is not None
    names = given[1:3] if given[1] == "paper" and command.name != "paper" else given[1:2]
    with pytest.raises(SystemExit):
        cli.main([*names, "--help"])
    assert capsys.readouterr().out.rstrip().endswith(command.example)


def test_python_m_fairmatch_does_not_show_a_traceback():
    result = subprocess.run(
        [sys.executable, "-m", "fairmatch", "datasets", "compas"], capture_output=True, text=True
    )
    assert result.returncode == 2
    assert result.stderr.startswith("fairmatch: There is no dataset 'compas'")
    assert result.stderr.count("\n") == 1


def test_the_frame_loads_nothing_heavy():
    code = (
        "import sys, fairmatch.cli.main\n"
        "heavy = {'pandas', 'numpy', 'sklearn', 'pooch', 'rich', 'torch'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, f"loaded: {result.stderr}"
