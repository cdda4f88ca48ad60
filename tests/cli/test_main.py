import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from rich.console import Console

import fairmatch
from fairmatch.cli import main as cli
from fairmatch.cli.command import plain_output, print_line, print_table
from fairmatch.datasets import registry as files
from fairmatch.exceptions import FairmatchError, FairmatchWarning
from paper import commands as paper


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


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ("audit p.csv --scores s --sensitive g", "Did you mean --score instead of --scores?"),
        ("audit p.csv --score s --group g", "Did you mean --sensitive instead of --group?"),
        ("train p.csv --max_gap 0.1 --out m", "Did you mean --max-gap instead of --max_gap?"),
        ("train p.csv --label y --out m", "Did you mean --target instead of --label?"),
        ("train p.csv --max-gap 5% --out m", "invalid float value: '5%'"),
        (
            "audit p.csv --score s --sensitive g --label y --positive paid back",
            "unrecognized arguments: back\nA value that contains a space needs quotes; most "
            "options take one.",
        ),
        (
            "audit p.csv --score s --sensitive g --fail-above ks_parity_gap 0.1",
            "--fail-above takes GAP=BOUND without a space.",
        ),
    ],
)
def test_what_may_have_been_meant_is_suggested(argv, told, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(argv.split())
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert said.rstrip().endswith(told)
    assert f"fairmatch {argv.split()[0]}" in said


def test_help_tells_what_each_command_does(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    out = " ".join(capsys.readouterr().out.split())
    assert all(command.help in out for command in cli.COMMANDS)
    assert "(audit --fail-above, --fail-below)" in out


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


def complete(line, tmp_path):
    """What a shell would be offered after a line, by argcomplete's own protocol."""
    answer = tmp_path / "answer"
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    command = [sys.executable, "-m", "fairmatch"]
    subprocess.run(command, env={**os.environ, **asked}, check=True, capture_output=True)
    return [word.strip() for word in answer.read_text().splitlines()]


def test_a_shell_is_told_what_may_be_typed_next(tmp_path):
    pytest.importorskip("argcomplete")
    commands = complete("fairmatch ", tmp_path)
    assert {command.name for command in cli.COMMANDS} <= set(commands)
    assert complete("fairmatch train --max", tmp_path) == ["--max-gap"]
    assert complete("fairmatch train --criterion equal_", tmp_path) == ["equal_opportunity"]


def test_signs_that_steer_a_terminal_are_written_out(capsys):
    with plain_output():
        print("a\x1b[31mred\x07 \u202e\tb")
    assert capsys.readouterr().out == "a\\x1b[31mred\\x07 \\u202e\tb\n"
    print_line("one\n\x1b[2Jtwo")
    assert capsys.readouterr().err == "one\n  \\x1b[2Jtwo\n"


def test_names_in_a_drawn_table_are_no_markup_and_steer_nothing(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(Console, "width", property(lambda self: 80))
    print_table(["name"], [["[red]x[/red]"], ["a\x1b[2J"], ["two\nlines"]])
    out = capsys.readouterr().out
    assert "[red]x[/red]" in out
    assert "a\\x1b[2J" in out
    assert "two\\nlines" in out


def test_a_warning_is_one_line(capsys):
    with plain_output():
        warnings.warn("mind\nthe gap", FairmatchWarning, stacklevel=1)
    assert capsys.readouterr().err == "fairmatch: warning: mind\n  the gap\n"


def test_every_exit_code_is_documented():
    page = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"
    text = page.read_text(encoding="utf-8")
    assert all(f"\n| {code} | " in text for code in (0, 1, 2, 130, 141))
    assert all(f"`fairmatch {command.name}`" in text for command in cli.COMMANDS)
