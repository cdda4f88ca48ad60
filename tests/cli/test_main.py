import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from rich.console import Console

import fairmatch
from fairmatch.cli import main as cli
from fairmatch.cli.audit import audit
from fairmatch.cli.printing import plain_output, print_line, print_table
from fairmatch.datasets import registry as files
from fairmatch.exceptions import FairmatchError, FairmatchWarning

COMMANDS = list(cli.fairmatch.commands.values())


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
    assert captured.err.startswith("fairmatch: dutch.csv was not found")
    assert captured.err.count("\n") == 1


def test_debug_shows_the_traceback(nothing_on_disk):
    with pytest.raises(FairmatchError):
        cli.main(["--debug", "datasets", "compas"])


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"fairmatch {fairmatch.__version__}\n"


@pytest.mark.parametrize("argv", [[], ["nonsense"]])
def test_wrong_usage(argv, capsys):
    assert cli.main(argv) == 2
    assert "Usage: fairmatch" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ("audit p.csv --scores s --sensitive g", "'--score'"),
        ("audit p.csv --score s --group g", "(Did you mean '--sensitive'?)"),
        ("train p.csv --max_gap 0.1 --out m", "'--max-gap'"),
        ("train p.csv --label y --out m", "(Did you mean '--target'?)"),
        ("train p.csv --max-gap 5% --out m", "Invalid value for '--max-gap'"),
        ("train p.csv --confidence 0.5 --out m", "Invalid value for '--confidence'"),
        ("predict m p.csv --positive paid back --out s.csv", "extra argument (back)"),
        ("audit p.csv --score s --sensitive g --fail-above ks_parity_gap 0.1", "GAP=BOUND"),
        ("trian p.csv", "No such command 'trian'"),
    ],
)
def test_what_may_have_been_meant_is_suggested(argv, told, capsys):
    assert cli.main(argv.split()) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--strict", "--strict needs --max-gap: it says"),
        ("--scoring roc_auc", "--scoring roc_auc needs --max-gap: it says"),
        ("--confidence 0.9", "--confidence 0.9 needs --max-gap: it says"),
        ("--max-gap 0.3 --scoring rocauc", "--scoring rocauc is not a scorer"),
        ("--max-gap 0 --gap-measure mean_parity_gap --strict", "No fairness weight reached"),
    ],
)
def test_a_choice_that_cannot_be_made_saves_no_model(options, told, tmp_path, capsys):
    out = tmp_path / "model"
    given = f"train german --rounds 3 --no-picture --out {out} {options}"
    assert cli.main(given.split()) == 2
    assert told in capsys.readouterr().err
    assert not out.exists()


def test_a_model_is_chosen_by_another_score(tmp_path, capsys):
    out = tmp_path / "model"
    given = f"train german --rounds 3 --no-picture --out {out} --max-gap 0.3 --scoring roc_auc"
    assert cli.main([*given.split(), "--strict"]) == 0
    assert fairmatch.load(out).scoring == "roc_auc"


def test_a_table_after_an_option_is_no_value_of_it():
    given = ["--score", "a", "--sensitive", "sex,race", "--drop", "x", "p.csv", "q.csv"]
    context = audit.make_context("audit", given)
    assert context.params["tables"] == ("p.csv", "q.csv")
    assert context.params["drop"] == ("x",)


def test_help_tells_what_each_command_does(capsys):
    assert cli.main(["--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert all(command.get_short_help_str(60)[:40] in out for command in COMMANDS)
    assert "(audit --fail-above, --fail-below), or an alarm (monitor)" in out


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_help_ends_with_an_example_that_can_be_parsed(command, capsys):
    given = command.example.split()
    assert given[:2] == ["fairmatch", command.name]
    assert command.make_context(command.name, given[2:]).params
    assert cli.main([command.name, "--help"]) == 0
    out = capsys.readouterr().out.rstrip()
    assert " ".join(out.split()).endswith(command.example)
    assert max(map(len, out.splitlines())) <= 100


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
        "heavy = {'pandas', 'numpy', 'sklearn', 'pooch', 'rich', 'torch', 'lightgbm', 'altair'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, f"loaded: {result.stderr}"


def complete(words, last):
    """What bash would be offered after some words, by click's own protocol."""
    asked = {
        "_FAIRMATCH_COMPLETE": "bash_complete",
        "COMP_WORDS": f"fairmatch {words} {last}",
        "COMP_CWORD": str(1 + len(words.split())),
    }
    command = [sys.executable, "-m", "fairmatch"]
    done = subprocess.run(
        command, env={**os.environ, **asked}, check=False, capture_output=True, text=True
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_a_shell_is_told_what_may_be_typed_next():
    assert {command.name for command in COMMANDS} <= set(complete("", ""))
    assert complete("train", "--max") == ["--max-gap"]
    assert complete("train --criterion", "equal_") == ["equal_opportunity"]


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
    assert all(f"`fairmatch {command.name}`" in text for command in COMMANDS)
