"""Errors and warnings on the command line name options, not arguments of Python."""

import warnings

import numpy as np
import pandas as pd
import pytest

from fairmatch.cli import main as cli
from fairmatch.cli.command import as_typed, plain_output
from fairmatch.exceptions import ConstantModelWarning, FairmatchWarning
from fairmatch.learning.choice import Bound

KNOWN = (
    "max_gap",
    "score",
    "sensitive",
    "confidence",
    "keep",
    "min_group_size",
    "scale",
    "positive",
    "missing",
)


@pytest.mark.parametrize(
    ("told", "typed"),
    [
        ("more than max_gap=0.05. Ask", "more than --max-gap 0.05. Ask"),
        ("Ask for a confidence=, or wait", "Ask for a --confidence, or wait"),
        ("Lower min_group_size.", "Lower --min-group-size."),
        ("Pass pos_label=.", "Pass --positive."),
        ("on purpose: keep=['a', 'b c'].", "on purpose: --keep a 'b c'."),
        ("pass scale='real' (--scale real) for", "pass --scale real for"),
        ("y_score must be numeric", "--score must be numeric"),
        ("sensitive_features holds 'x'", "--sensitive holds 'x'"),
        ("sensitive_features['job type'] has", "--sensitive 'job type' has"),
    ],
)
def test_an_argument_is_written_as_its_option(told, typed):
    assert as_typed(told, KNOWN) == typed


def test_the_advice_after_a_constant_model_can_be_typed():
    curve = {"fairness_weight": [0.0, 1.0], "demographic_parity_gap": [0.2, 0.0]}
    curve = pd.DataFrame({**curve, "accuracy": [0.8, 0.7], "acceptance_rate": [0.4, 0.0]})
    with pytest.warns(ConstantModelWarning) as told:
        Bound(0.05, "demographic_parity_gap").best(curve)
    typed = as_typed(str(told[0].message), ["max_gap", "transport"])
    assert "try --learner boosting --transport predicted or fairmatch adjust, which" in typed
    assert "Classifier" not in typed


def test_the_advice_for_small_groups_can_be_typed():
    told = "Set confidence=, hold out more rows (validation_size=), or pool groups."
    typed = as_typed(told, ["confidence", "transport"])
    assert typed == "Set --confidence, take more rows, or pool groups."


@pytest.mark.parametrize(
    "told",
    [
        "small_groups='pool'",  # not an option of this command
        "use TableEncoder(missing='encode')",
        "There is no column 'max_gap'.",
        "data/scale=1/people.csv and scale=1/people.csv and scale=1.csv",
        "keep=[np.str_('a')]",
        "confidence is not known",
    ],
)
def test_what_is_no_option_stays(told):
    assert as_typed(told, KNOWN) == told


def test_an_error_names_the_option(tmp_path, capsys):
    generator = np.random.default_rng(0)
    people = pd.DataFrame({"years": generator.random(60), "sex": ["f", "m"] * 30})
    people.assign(hired=(people["years"] > 0.5).astype(int)).to_csv(tmp_path / "people.csv")
    command = ["train", str(tmp_path / "people.csv"), "--target", "hired", "--sensitive", "sex"]
    settings = ["--min-group-size", "40", "--no-picture", "--out", str(tmp_path / "model")]
    assert cli.main([*command, *settings]) == 2
    told = capsys.readouterr().err
    assert "fewer than --min-group-size 40 rows" in told
    assert "--small-groups pool" in told


def test_a_warning_names_the_option(capsys):
    with plain_output(KNOWN):
        warnings.warn("more than max_gap=0.05", FairmatchWarning, stacklevel=1)
    assert capsys.readouterr().err == "fairmatch: warning: more than --max-gap 0.05\n"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--resamples", "1"], "--resamples must be"),
        (["--weight", "job"], "--weight must be numeric"),
        (["--privileged", "x, y"], "--privileged 'x, y' is not one of the groups"),
    ],
)
def test_an_error_of_the_audit_names_the_option(tmp_path, capsys, given, told):
    people = pd.DataFrame({"a": [0.2, 0.7] * 40, "sex": ["f", "m"] * 40, "race": [*"uvwvw"] * 16})
    people.assign(b=people.a, job="x").to_csv(tmp_path / "people.csv", index=False)
    command = ["audit", str(tmp_path / "people.csv"), "--score", "a", "--score", "b"]
    assert cli.main([*command, "--sensitive", "sex,race", *given]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--max-gap", "0.1", "--confidence", "0.5"], "--confidence must be a number in (0.5, 1)"),
        (["--max-gap", "1.5"], "--max-gap must be a number in [0, 1]"),
    ],
)
def test_ranges_are_those_of_the_learners(tmp_path, capsys, given, told):
    command = ["train", "german", "--out", str(tmp_path / "model"), *given]
    assert cli.main(command) == 2
    assert told in capsys.readouterr().err
