"""``fairmatch explain``: the sentences, the facts and the letter."""

import json

import numpy as np
import pandas as pd
import pytest

from fairmatch import FTMBoostingClassifier, explain
from fairmatch.cli.main import main


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain")
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": generator.integers(20, 60, 200),
            "income": generator.normal(50, 10, 200).round(1),
            "sex": generator.choice(["f", "m"], 200),
        }
    )
    y = (frame["income"] + 5 * (frame["sex"] == "m") + generator.normal(0, 5, 200) > 52).astype(int)
    model = FTMBoostingClassifier(sensitive_column="sex", fairness_weight=1.0, random_state=0)
    model.fit(frame, y)
    model.save(folder / "model")
    frame.assign(id=[f"p{k}" for k in range(200)]).to_csv(folder / "people.csv", index=False)
    return folder, model, frame


def test_it_prints_what_python_says(case, capsys):
    folder, model, frame = case
    given = [str(folder / "model"), str(folder / "people.csv"), "--id"]
    assert main(["explain", *given, "17"]) == 0
    printed = capsys.readouterr().out.strip()
    assert printed == str(explain(model, frame, rows=17))
    assert main(["explain", *given, "p17", "--id-column", "id", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == "p17"


def test_a_letter_shows_nobody_else(case, capsys):
    folder, _, _ = case
    given = [str(folder / "model"), str(folder / "people.csv"), "--id", "p3", "--id-column", "id"]
    letter = folder / "letter.html"
    assert main(["explain", *given, "--letter", str(letter)]) == 0
    assert "About the decision for p3" in letter.read_text()
    assert "people of group" in letter.read_text()


def test_it_takes_what_python_takes(case, capsys):
    folder, model, frame = case
    given = [str(folder / "model"), str(folder / "people.csv"), "--id", "3"]
    more = ["--threshold", "0.7", "--favourable", "low", "--outcome", "let go", "--positive", "0"]
    letter = folder / "signed.html"
    own = ["--letter", str(letter), "--sender", "The bank"]
    assert main(["explain", *given, *more, *own]) == 0
    settings = {"threshold": 0.7, "favourable": "low", "outcome": "let go", "pos_label": 0}
    printed = capsys.readouterr().out.splitlines()
    assert printed[:-1] == explain(model, frame, rows=3, **settings).sentences()
    assert "The bank" in letter.read_text()
    for wrong, option in (
        (["--threshold", "2"], "--threshold must be"),
        (["--positive", "yes"], "--positive"),
        (["--sender", "x"], "--letter"),
    ):
        assert main(["explain", *given, *wrong]) == 2
        assert option in capsys.readouterr().err


@pytest.mark.parametrize("more", [("--id", "999"), ("--id", "x", "--id-column", "id")])
def test_unknown_people_are_an_error(case, capsys, more):
    folder, _, _ = case
    assert main(["explain", str(folder / "model"), str(folder / "people.csv"), *more]) == 2
    assert "--id" in capsys.readouterr().err
