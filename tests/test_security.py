"""The promises of SECURITY.md have tests."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_promise_names_tests_that_are_there():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    promises = [
        line for line in text.splitlines() if line.startswith("| ") and "promise" not in line
    ]
    assert len(promises) >= 15
    for line in promises:
        tests = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", line)
        assert tests, line
        for file, name in tests:
            tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
            found = {one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}
            assert name in found, f"{file}::{name}"
