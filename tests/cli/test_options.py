"""Errors on the command line name options, not parameters of Python."""

import numpy as np
import pandas as pd
import pytest

from fairmatch.cli import main as cli
from fairmatch.cli.train import train
from fairmatch.exceptions import FairmatchError, InputError


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (InputError("max_gap must be", parameter="max_gap"), "--max-gap must be"),
        (InputError("random_state must be", parameter="random_state"), "--seed must be"),
        (InputError("X is too wide", parameter="X"), "X is too wide"),
        (
            InputError("strict must be set, as --strict.", parameter="strict"),
            "--strict must be set, as --strict.",
        ),
        (FairmatchError("Allow a larger max_gap."), "Allow a larger --max-gap."),
        (FairmatchError("Set small_groups='pool', or"), "Set --small-groups pool, or"),
        (FairmatchError("(small_groups=('pool', N) pools"), "(--small-groups pool,N pools"),
        (FairmatchError("Leave strict=True out."), "Leave --strict out."),
        (FairmatchError("reference='x, y' is"), "--reference 'x, y' is"),
        (FairmatchError("keep=['id', 'note'] is"), "--keep id,note is"),
        (
            FairmatchError("Set confidence=0.95. The unknown x=1."),
            "Set --confidence 0.95. The unknown x=1.",
        ),
        (FairmatchError("demographic_parity_gap <= 0.1"), "demographic_parity_gap <= 0.1"),
        (InputError("There is no 'x'.", parameter="positive"), "--positive: There is no 'x'."),
        (
            InputError("sensitive_features['a'] has", parameter="sensitive_features['a']"),
            "--sensitive['a'] has",
        ),
    ],
)
def test_a_parameter_is_written_as_its_option(error, told):
    assert train.told(error) == told


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--resamples", "1"], "--resamples must be"),
        (["--weight", "job"], "--weight must be numeric"),
        (["--score-range", "0", "1"], "--score-range 0 1 was given without a threshold"),
        (["--out", "{}/x.html", "--filing", "{}/x.html"], "filing {}/x.html would overwrite"),
        (["--privileged", "x, y"], "'x, y' is not one of the groups"),
    ],
)
def test_an_error_of_the_audit_names_the_option(tmp_path, capsys, given, told):
    people = pd.DataFrame({"a": [0.2, 0.7] * 40, "sex": ["f", "m"] * 40, "race": [*"uvwvw"] * 16})
    people.assign(b=people.a, job="x").to_csv(tmp_path / "people.csv", index=False)
    command = ["audit", str(tmp_path / "people.csv"), "--score", "a,b"]
    given = [word.format(tmp_path) for word in given]
    assert cli.main([*command, "--sensitive", "sex,race", *given]) == 2
    assert told.format(tmp_path) in capsys.readouterr().err


def test_small_groups_are_told_with_both_ways_out(tmp_path, capsys):
    generator = np.random.default_rng(0)
    people = pd.DataFrame({"years": generator.random(60), "sex": ["f", "m"] * 30})
    people.assign(hired=(people["years"] > 0.5).astype(int)).to_csv(tmp_path / "people.csv")
    command = ["train", str(tmp_path / "people.csv"), "--target", "hired", "--sensitive", "sex"]
    settings = ["--small-groups", "error,40", "--no-picture", "--out", str(tmp_path / "model")]
    assert cli.main([*command, *settings]) == 2
    told = capsys.readouterr().err
    assert "40" in told
    assert told.startswith("fairmatch: --small-groups: These groups have fewer than 40 rows")


def test_a_warning_names_options(tmp_path, capsys):
    generator = np.random.default_rng(0)
    sex = np.repeat(["f", "m", "x"], [300, 300, 12])
    people = pd.DataFrame({"years": generator.random(612), "sex": sex})
    people.assign(hired=(people["years"] > 0.5).astype(int)).to_csv(tmp_path / "people.csv")
    command = ["train", str(tmp_path / "people.csv"), "--target", "hired", "--sensitive", "sex"]
    settings = ["--rounds", "2", "--no-picture", "--out", str(tmp_path / "model")]
    assert cli.main([*command, *settings]) == 0
    told = capsys.readouterr().err
    assert "--small-groups pool" in told
    assert "small_groups" not in told
