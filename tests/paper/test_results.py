"""The committed results: every number on the page is one of the records."""

from pathlib import Path

import pytest
from paper.__main__ import main
from paper.records import RecordStore
from paper.specs import FULL, Study

RESULTS = Path(__file__).parents[2] / "results"

pytestmark = pytest.mark.skipif(
    not RESULTS.exists(), reason="the results are in the repository, not in the package"
)


@pytest.mark.parametrize("action", ["tables", "figures"])
def test_page_and_figures_say_what_the_records_say(action, capsys):
    assert main([action, "--check", "--out", str(RESULTS)]) == 0, capsys.readouterr().out


def test_every_record_belongs_to_the_study_and_is_small():
    wanted = {spec.digest for spec in Study.of(FULL).runs()}
    found = [record.spec.digest for record in RecordStore(RESULTS / "records")]
    assert len(found) == len(set(found))
    assert set(found) <= wanted
    total = sum(file.stat().st_size for file in RESULTS.rglob("*") if file.is_file())
    assert total < 10_000_000


def test_figures_on_the_page_are_there():
    text = (RESULTS / "tables.md").read_text(encoding="utf-8")
    for file in (RESULTS / "figures").glob("*.svg"):
        assert f"figures/{file.name}" in text
