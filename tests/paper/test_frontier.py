"""Which method is best where, as the page of results says it."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "results" / "tables.md"
SIGNS = (1, 1, -1)


def columns(rows):
    """The mean of every cell, where at least half of the recorded splits come to the level."""
    for place in range(1, 4):
        found = []
        for row in rows:
            cell = row[place].strip()
            mean = re.match(r"\**([0-9.]+)", cell)
            counted = re.search(r"\((\d+)(?: of (\d+))?\)", cell)
            n, of = int(counted[1]), int(counted[2] or counted[1])
            if mean and 2 * n >= of and n > 0:
                found.append((float(mean[1]), cell.startswith("**")))
        yield SIGNS[place - 1], found


@pytest.mark.skipif(not PAGE.exists(), reason="the results are in the repository alone")
def test_the_best_of_a_column_is_bold():
    section = PAGE.read_text("utf-8").split("## Which method")[1].split("\n## ")[0]
    tables = re.findall(r"(?:^\|.*\n)+", section, flags=re.M)
    assert len(tables) == 4
    for text in tables:
        rows = [line.strip("|").split("|") for line in text.splitlines()[2:]]
        for sign, found in columns(rows):
            best = max(sign * mean for mean, _ in found)
            bold = [sign * mean for mean, is_bold in found if is_bold]
            assert bold == [best]
