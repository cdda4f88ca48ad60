"""The example at the end of every command's help is one that runs."""

import argparse
import shlex

import numpy as np
import pandas as pd
import pytest

from fairmatch.cli import main as cli


def parsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Every command and every action of one, by what is typed."""
    found = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                found |= {child.prog: child} | parsers(child)
    return found


def examples() -> list[tuple[str, str]]:
    found = []
    for name, parser in parsers(cli._parser()).items():
        lines = (parser.epilog or "").splitlines()
        # A predictor needs the model that the example of training writes.
        place = 1 if name.endswith("predict") else 0
        found.append((place, name, " ".join(line.strip() for line in lines[1:])))
    return [(name, example) for _, name, example in sorted(found)]


@pytest.mark.parametrize(("name", "example"), examples(), ids=[name for name, _ in examples()])
def test_every_help_ends_with_an_example_that_can_be_typed(name, example):
    assert example.startswith(f"{name} ")
    arguments = cli._parser().parse_args(shlex.split(example)[1:])
    assert callable(arguments.run)


def test_the_examples_run(tmp_path, monkeypatch, capsys):
    pytest.importorskip("lightgbm")
    pytest.importorskip("altair")
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    sex = np.repeat(["f", "m"], 100)
    years = generator.gamma(4.0, 2.5, 200).round(1)
    chance = 1 / (1 + np.exp(9 - years - (sex == "m")))
    outcome = np.where(generator.random(200) < chance, "yes", "no")
    facts = {"years": years, "sex": sex}
    pd.DataFrame({**facts, "score": chance}).to_csv("scores.csv", index=False)
    for name, example in examples():
        # One name for three tables: each command is given the columns that its example names.
        outcomes = {word: outcome for word in ("hired", "repaid") if word in example}
        scored = {"score": chance} if "--score" in example else {}
        pd.DataFrame({**facts, **outcomes, **scored}).to_csv("people.csv", index=False)
        assert cli.main(shlex.split(example)[1:]) == 0, (name, capsys.readouterr().err)
