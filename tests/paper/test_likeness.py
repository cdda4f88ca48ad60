"""The page of the study of like with like is made of its records."""

from pathlib import Path

import pytest

pytest.importorskip("lightgbm")

from paper.likeness import RECORDS, ROOT, TASKS, page


def test_the_page_is_that_of_the_records():
    assert (ROOT / "likeness.md").read_text(encoding="utf-8") == page()


def test_records_are_those_of_the_study():
    names = {f"{study}-{table}-{seed}" for study, table, seed in TASKS}
    assert {Path(file).stem for file in RECORDS.glob("*.json")} <= names
