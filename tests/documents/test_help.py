"""The example at the end of every command's help is one that runs."""

import shlex

import numpy as np
import pandas as pd
import pytest

from fairmatch.cli.main import fairmatch, main


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
    log = pd.DataFrame({**facts, "score": chance, "day": np.resize([1, 2], 200)})
    log.to_parquet("log.parquet")
    # A predictor needs the model that the example of training writes.
    for name in sorted(fairmatch.commands, key=lambda name: name == "predict"):
        example = fairmatch.commands[name].example
        # One name for three tables: each command is given the columns that its example names.
        outcomes = {word: outcome for word in ("hired", "repaid") if word in example}
        scored = {"score": chance} if "--score" in example else {}
        pd.DataFrame({**facts, **outcomes, **scored}).to_csv("people.csv", index=False)
        assert main(shlex.split(example)[1:]) == 0, (name, capsys.readouterr().err)
