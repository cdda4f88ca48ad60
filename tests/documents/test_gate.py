"""The CI examples of docs/howto/gate.md stop a model whose gap is too large, and pass another."""

import os
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from pages import ROOT, data

PAGE = ROOT / "docs" / "howto" / "gate.md"
WORKFLOW = ROOT / "examples" / "workflows" / "fairness.yml"


def commands() -> dict[str, str]:
    """The calls of fairmatch in the action and in the hook of pre-commit."""
    yaml = pytest.importorskip("yaml")
    page = PAGE.read_text("utf-8")
    assert f"literalinclude}} ../../{WORKFLOW.relative_to(ROOT)}" in page
    action = yaml.safe_load(WORKFLOW.read_text("utf-8"))
    (hook,) = (yaml.safe_load(body) for body in data(page, "yaml"))
    steps = [step.get("run", "") for step in action["jobs"]["gap"]["steps"]]
    (gate,) = [step for step in steps if step.startswith("fairmatch")]
    return {"action": gate, "pre-commit": hook["repos"][0]["hooks"][0]["entry"]}


@pytest.mark.parametrize("where", ["action", "pre-commit"])
@pytest.mark.parametrize(("difference", "code"), [(0.0, 0), (0.1, 1)])
def test_the_examples_of_ci_gate_a_model(where, difference, code, tmp_path):
    pytest.importorskip("altair")
    generator = np.random.default_rng(0)
    sex = np.repeat(["f", "m"], 4000)
    score = generator.permutation(np.tile(np.linspace(0, 1, 4000), 2)[:4000])
    score = np.clip(np.tile(score, 2) + difference * (sex == "m"), 0, 1)
    pd.DataFrame({"score": score, "sex": sex}).to_csv(tmp_path / "scores.csv", index=False)
    command, *arguments = shlex.split(commands()[where])
    assert command == "fairmatch"
    done = subprocess.run(
        [sys.executable, "-m", "fairmatch", *arguments],
        cwd=tmp_path,
        env=os.environ,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr
    assert (tmp_path / "report.html").exists() == (where == "action")
