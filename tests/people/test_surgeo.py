"""The example with surgeo: from surname and ZIP code to probabilities of groups."""

import runpy
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "estimated_groups.py"


def test_probabilities_of_surgeo_are_calibrated_in_the_example(capsys):
    pytest.importorskip("surgeo")
    names = runpy.run_path(str(EXAMPLE))
    assert "calibrated" in capsys.readouterr().out
    people, groups = names["estimate_race"](names["make_people"](4000, seed=1))
    race = people["race"].replace({"native": "other", "multiple": "other"}).to_numpy()
    for k, label in enumerate(groups.labels):
        own, is_group = groups.values[:, k], race == label
        spread = np.sqrt((own * (1.0 - own)).sum())
        assert abs((is_group - own).sum()) < 4.0 * spread


def test_without_surgeo_the_example_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    runpy.run_path(str(EXAMPLE))
    assert "pip install surgeo" in capsys.readouterr().out
