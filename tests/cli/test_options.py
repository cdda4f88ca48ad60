"""Errors and warnings on the command line name options, not arguments of Python."""

import warnings

import numpy as np
import pandas as pd
import pytest

from fairmatch.cli import main as cli
from fairmatch.cli.options import as_typed
from fairmatch.cli.output import plain_output
from fairmatch.exceptions import FairmatchWarning

KNOWN = ("max_gap", "confidence", "keep", "min_group_size", "scale", "positive", "missing")


@pytest.mark.parametrize(
    ("told", "typed"),
    [
        ("more than max_gap=0.05. Ask", "more than --max-gap 0.05. Ask"),
        ("Ask for a confidence=, or wait", "Ask for a --confidence, or wait"),
        ("Lower min_group_size.", "Lower --min-group-size."),
        ("Pass pos_label=.", "Pass --positive."),
        ("on purpose: keep=['a', 'b c'].", "on purpose: --keep a 'b c'."),
        ("pass scale='real' (--scale real) for", "pass --scale real for"),
    ],
)
def test_an_argument_is_written_as_its_option(told, typed):
    assert as_typed(told, KNOWN) == typed


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
