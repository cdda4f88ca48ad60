"""The command that searches for less discriminatory alternatives."""

import hashlib
import html
import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("lightgbm")
pytest.importorskip("altair")

import fairmatch
from fairmatch.auditing.facts import Alternatives
from fairmatch.cli.main import main


def people(n=2000):
    """A table in which the group moves the score, and hardly the truth."""
    generator = np.random.default_rng(0)
    woman = generator.random(n) < 0.4
    skill = generator.normal(size=n)
    repaid = skill + 0.3 * generator.normal(size=n) > 0.0
    return pd.DataFrame(
        {
            "income": skill - 0.4 * woman,
            "job": np.where(woman ^ (generator.random(n) < 0.2), "nurse", "driver"),
            "sex": np.where(woman, "f", "m"),
            "repaid": np.where(repaid & ~(woman & (generator.random(n) < 0.6)), "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    file = tmp_path_factory.mktemp("people") / "people.csv"
    people().to_csv(file, index=False)
    return file


def test_the_search_is_documented(table, tmp_path, capsys):
    page, numbers = tmp_path / "page.html", tmp_path / "tried.json"
    given = ["--target", "repaid", "--sensitive", "sex", "--positive", "yes", "--rounds", "15"]
    written = ["--out", str(page), "--json", str(numbers), "--no-individuals"]
    assert main(["alternatives", str(table), *given, "--margin", "0.2", *written]) == 0
    told = capsys.readouterr().out
    tried = json.loads(numbers.read_text())["tried"]
    for one in tried:
        assert one["name"] in told
        assert one["name"] in page.read_text("utf-8")
    assert any(one["as_accurate"] and one["smaller_gap"] for one in tried)
    assert "less discriminatory alternative" in told


def test_a_search_can_be_documented_from_what_it_writes(table, tmp_path, capsys):
    page, numbers = tmp_path / "page.html", tmp_path / "tried.json"
    given = ["--target", "repaid", "--sensitive", "sex", "--positive", "yes", "--rounds", "5"]
    given += ["--seed", "3", "--test-size", "0.25", "--margin", "0.02", "--confidence", "0.8"]
    given += ["--title", "Lending", "--author", "A. Person", "--purpose", "a filing"]
    written = ["--out", str(page), "--json", str(numbers), "--no-individuals"]
    assert main(["alternatives", str(table), *given, *written]) == 0
    found = json.loads(numbers.read_text())
    search = found["search"]
    digest = hashlib.sha256(table.read_bytes()).hexdigest()
    assert (search["source"], search["source_sha256"]) == (table.name, digest)
    assert search["version"] == fairmatch.__version__
    assert search["n_training"] + search["n_test"] == 2000
    assert search["n_test"] == found["n_rows"]
    assert search["settings"]["rounds"] == 5
    assert (search["seed"], search["settings"]["test_size"]) == (3, 0.25)
    assert (found["margin"], found["confidence"]) == (0.02, 0.8)
    text = page.read_text("utf-8")
    for words in (digest, table.name, "<h1><bdi>Lending", "A. Person", "a filing", "training rows"):
        assert words in text
    assert "<dd>80%</dd>" in text
    assert "95% interval" not in text
    assert "“thresholds by group” cannot predict without it" in text
    assert Alternatives.from_json(numbers.read_text()).search is not None


def test_a_column_that_gives_the_group_away_does_not_stop_the_page(tmp_path, capsys):
    file = tmp_path / "copy.csv"
    people(600).assign(title=lambda t: t["sex"].map({"f": "Ms", "m": "Mr"})).to_csv(file)
    given = [
        "--target",
        "repaid",
        "--sensitive",
        "sex",
        "--positive",
        "yes",
        "--rounds",
        "2",
        "--drop",
        "Unnamed: 0",
    ]
    assert main(["alternatives", str(file), *given, "--out", str(tmp_path / "page.html")]) == 0


def test_without_the_group_no_model_needs_it(table, tmp_path, capsys):
    given = [
        "--target",
        "repaid",
        "--sensitive",
        "sex",
        "--positive",
        "yes",
        "--rounds",
        "5",
        "--without-sensitive",
    ]
    page = tmp_path / "page.html"
    assert main(["alternatives", str(table), *given, "--out", str(page)]) == 0
    assert "thresholds by group" not in capsys.readouterr().out
    assert "No model needs a person's group" in html.unescape(page.read_text("utf-8"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--out", "page.pdf"], "not end in .html"),
        (["--out", "page.html", "--margin", "2"], "--margin"),
        (["--out", "page.html", "--test-size", "0"], "--test-size"),
    ],
)
def test_what_is_wrong_is_said_before_the_work(table, given, words, capsys):
    columns = ["--target", "repaid", "--sensitive", "sex", "--positive", "yes"]
    assert main(["alternatives", str(table), *columns, *given]) == 2
    assert words in capsys.readouterr().err


def test_a_model_in_use_is_the_baseline(table, tmp_path, capsys):
    frame = pd.read_csv(table)
    frame["decile"] = pd.qcut(frame["income"], 10, labels=range(1, 11)).astype(int)
    file, numbers = tmp_path / "scored.csv", tmp_path / "tried.json"
    frame.to_csv(file, index=False)
    asked = ["alternatives", str(file), "--target", "repaid", "--positive", "yes", "--rounds", "5"]
    asked += ["--sensitive", "sex", "--score", "decile", "--threshold", "6", "--no-individuals"]
    asked += ["--out", str(tmp_path / "page.html"), "--json", str(numbers)]
    assert main(asked) == 0
    found = Alternatives.from_json(numbers.read_text())
    assert (found.baseline, found.is_given) == ("decile", True)
    assert "Every model trained here uses a person's group" in found.search.on_group()
    # Neither the baseline's column nor the threshold reaches the models that are trained.
    assert "decile" in found.search.settings["left_out"]
    rates = frame.groupby("sex")["decile"].apply(lambda own: (own >= 6).mean())
    assert found.selection_rates["f"] == pytest.approx(rates["f"], abs=0.06)
    assert main([*asked, "--favourable", "low", "--criterion", "equal_opportunity"]) == 2
    assert "Choose equalized_odds" in capsys.readouterr().err
