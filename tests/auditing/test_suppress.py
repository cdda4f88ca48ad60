"""No small number of people stands in what an audit without individuals writes."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairmatch import audit, compare_models
from fairmatch.auditing.impact import write_tables
from fairmatch.exceptions import InputError

FAST = {"n_resamples": 100, "n_subsets": 20, "n_sample": 200}
# Whole numbers in the JSON that count no people.
OTHERS = {"schema_version", "seed", "n_empty", "n_homogeneous", "settings"}
# Numbers of people that need not be whole: sums of weights.
SUMS = {"sizes", "weight_selected", "effective_size"}


def counts(facts: Any, name: str = "") -> list[tuple[str, float]]:
    """Return every number in the JSON of an audit that may count people, wherever it stands."""
    if isinstance(facts, dict):
        every = ((key, own) for key, own in facts.items() if key not in OTHERS)
        return [c for key, own in every for c in counts(own, f"{name}.{key}")]
    if isinstance(facts, list):
        return [c for own in facts for c in counts(own, name)]
    whole = isinstance(facts, int) and not isinstance(facts, bool)
    is_sum = isinstance(facts, float) and name.rpartition(".")[2] in SUMS
    return [(name, facts)] if whole or is_sum else []


def small(facts: Any) -> list[tuple[str, float]]:
    return [(name, count) for name, count in counts(facts) if 0 < count < 10]


class Tables(HTMLParser):
    """The cells of the tables of a page, each with the head of its column."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.heads: list[str] = []
        self.cells: list[tuple[str, str]] = []
        self.text: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "table":
            self.heads = []
        if tag == "tr":
            self.at = 0
        if tag in ("th", "td"):
            self.text, self.is_head = "", ("scope", "col") in attrs

    def handle_data(self, data: str) -> None:
        self.text = None if self.text is None else self.text + data

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("th", "td") or self.text is None:
            return
        if self.is_head:
            self.heads.append(self.text.strip())
        elif self.at < len(self.heads):
            self.cells.append((self.heads[self.at], self.text.strip()))
        self.at, self.text = self.at + 1, None


def shares(facts: Any) -> list[tuple[float, float]]:
    """Return every stated rate of a group or category with the number of people it is of."""
    if isinstance(facts, list):
        return [s for own in facts for s in shares(own)]
    if not isinstance(facts, dict):
        return []
    size = facts.get("n_people", facts.get("n_rows"))
    found = [s for own in facts.values() for s in shares(own)]
    for name in ("selection_rate", "base_rate", "accuracy", "scoring_rate"):
        rate = facts.get(name)
        if isinstance(rate, dict) and rate["value"] is not None and isinstance(size, int):
            found.append((rate["value"], size))
    return found


@pytest.fixture(scope="module")
def hidden():
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"sex": rng.choice(["f", "m"], 900), "race": rng.choice(["x", "y"], 900)})
    people.loc[:5, "race"] = "rare"
    people.loc[6:9, "race"] = None
    score = np.where(rng.random(900) < 0.9, 0.9 * rng.random(900), 0.95)
    label = (rng.random(900) < score).astype(int)
    X = pd.DataFrame({"age": rng.integers(20, 60, 900), "town": rng.choice(list("pqr"), 900)})
    score[(people.sex == "f") & (people.race == "x") & (score > 0.5)] = 0.4
    score[np.flatnonzero((people.sex == "f") & (people.race == "x"))[:4]] = 0.7
    both = {"one": score, "other": rng.random(900)}
    return compare_models(
        both, sensitive_features=people, X=X, y_true=label, privileged="m, y", **FAST
    )


def people_of(n_rare: int) -> dict[str, Any]:
    """Return people with periods, stages and strata; so many of them are in a rare group."""
    rng = np.random.default_rng(4)
    race = rng.choice(["x", "y"], 900).astype(object)
    race[:n_rare] = "rare"
    applied = np.arange(900) > 2
    invited = applied & (rng.random(900) < 0.5)
    return {
        "sensitive_features": race,
        "X": pd.DataFrame({"age": rng.integers(20, 60, 900), "town": rng.choice(list("pqr"), 900)}),
        "y_true": rng.integers(0, 2, 900),
        "by": rng.choice([2020, 2021], 900),
        "stages": {
            "applied": applied,
            "invited": invited,
            "hired": invited & (rng.random(900) < 0.5),
        },
    }


@pytest.fixture(scope="module", params=[0, 6, 40])
def staged(request):
    return audit(**people_of(request.param), given=["town"], **FAST)


def test_no_small_count_is_in_the_json(hidden):
    assert small(json.loads(hidden.to_json()))
    found = hidden.without_individuals()
    facts = json.loads(found.to_json())
    assert small(facts) == []
    for rate, size in shares(facts):
        for people in (rate * size, (1.0 - rate) * size):
            assert not 0.5 <= people < 9.5, (rate, size)
    assert not re.search(r"\b[1-9] (people|person|rows?)\b", found.to_json())
    assert type(found).from_json(found.to_json()) == found


def test_no_small_count_is_in_periods_and_stages(staged, tmp_path):
    from fairmatch.report import write_report

    found = staged.without_individuals()
    facts = json.loads(found.to_json())
    assert small(facts) == []
    for rate, size in shares(facts):
        for people in (rate * size, (1.0 - rate) * size):
            assert not 0.5 <= people < 9.5, (rate, size)
    rare = [own for own in staged.groups if own.label == "rare"]
    if not rare:  # then nothing has to be left out
        assert len(found.periods) == 2
        assert len(found.stages) == 3
        assert any("invited" in str(file) for file in write_tables([found], tmp_path))
    else:
        assert small(json.loads(replace(staged, individuals=None).to_json()))
        shown = ["x", "y"] if rare[0].n_rows < 10 else ["rare", "x", "y"]
        assert [[own.label for own in one.groups] for one in found.periods] == [shown, shown]
        said = [note for note in found.notes if "left out of the periods" in note]
        assert all(note.endswith("'rare'.") for note in said)
        assert len(said) == (rare[0].n_rows < 10)
    for file in write_tables([found], tmp_path):
        for row in csv.DictReader(file.read_text().splitlines()):
            counted = {row[name] for name in row if name == "value" or name.startswith("number")}
            assert counted
            assert not {str(number) for number in range(1, 10)} & counted, (file.name, row)
    page = write_report(found, tmp_path / "page.html").read_text("utf-8")
    assert_no_small_count(page)
    if rare:
        own = write_report(replace(staged, individuals=None), tmp_path / "all.html")
        with pytest.raises(AssertionError):
            assert_no_small_count(own.read_text("utf-8"))


def assert_no_small_count(page: str) -> None:
    """Raise if a sentence, a table or a label of a chart counts 1 to 9 people."""
    found = re.findall(r"\b[1-9] (?:people|person|rows?|selected)\b", page)
    cells = Tables(page).cells
    assert cells
    heads = re.compile("people|rows|selected|lost|gained|number", re.IGNORECASE)
    found += [cell for cell in cells if heads.search(cell[0]) and re.search(
        r"(?<![\d.,–-])[1-9](?![\d.,%])", cell[1])]  # fmt: skip
    assert found == []


def test_what_would_reveal_a_small_count_is_withheld(hidden):
    first = hidden.audits[0]
    group = next(own for own in first.groups if own.label == "f, x")
    assert round(group.selection_rate.value * group.n_rows) == 4
    found = first.without_individuals()
    own = next(own for own in found.groups if own.label == "f, x")
    assert own.selection_rate.value is own.ratio is found.n_selected is None
    assert "below 10" in own.selection_rate.refused
    assert found.gap("demographic_parity_gap").value is None
    assert found.gap("mean_parity_gap") == first.gap("mean_parity_gap")
    assert found.selection_ratio.value is None
    # Groups that are left out are not in the totals either.
    assert found.n_rows == sum(own.n_rows for own in found.groups) < first.n_rows
    assert found.attributes == ()


def test_no_small_count_is_in_the_tables_to_file(hidden, tmp_path):
    audits = hidden.without_individuals().audits
    for file in write_tables(audits, tmp_path):
        table = pd.read_csv(file)
        if file.name == "summary.csv":
            numbers = pd.to_numeric(table["value"], errors="coerce").dropna()
            assert len(numbers)
            assert not ((numbers > 0) & (numbers < 10)).any()
            continue
        for name in ("number of people", "number selected"):
            known = pd.to_numeric(table[name], errors="coerce").dropna()
            assert not ((known > 0) & (known < 10)).any()


def test_large_numbers_stay_as_they_are():
    rng = np.random.default_rng(1)
    group = np.repeat(["a", "b"], 500)
    found = audit(rng.random(1000), sensitive_features=group, **FAST)
    alone = found.without_individuals()
    assert alone.gaps == found.gaps
    assert alone.impact == found.impact
    assert [own.selection_rate for own in alone.groups] == [g.selection_rate for g in found.groups]
    assert found.without_individuals(1).groups == found.groups


def test_gaps_that_rest_on_a_withheld_group_are_an_error():
    rng = np.random.default_rng(2)
    group = np.repeat(["a", "b"], [100, 8])
    found = audit(rng.random(108), sensitive_features=group, min_group_size=5, **FAST)
    with pytest.raises(InputError, match="min_group_size=10"):
        found.without_individuals()


def test_the_report_shows_no_small_count(hidden, tmp_path):
    from fairmatch.report import write_report

    page = write_report(hidden, tmp_path / "page.html", individuals=False).read_text("utf-8")
    assert not re.search(r"\b[1-9] (people|person|rows?)\b", page)
    assert "Withheld" in page
    assert "few people of unknown category" in page


def test_nothing_else_reveals_a_rate_that_is_withheld():
    rng = np.random.default_rng(5)
    race = np.repeat(["x", "y", "few", "rare"], [500, 400, 40, 6]).astype(object)
    race[:20] = None
    hired = (rng.random(946) < 0.4).astype(float)
    hired[race == "few"] = 0.0
    hired[np.flatnonzero(race == "few")[:4]] = 1.0
    person = np.arange(946)
    person[30:40] = person[40:50]
    title = rng.choice(["cook", "clerk"], 946)
    found = audit(hired, sensitive_features=race, given=title, ids=person, **FAST)
    assert {own.group for own in found.conditional} == {"y", "few"}  # six people are too few
    assert any("946 rows" in note for note in found.notes)
    assert any("lies between" in note for note in found.notes)
    alone = found.without_individuals()
    assert [own.group for own in alone.conditional] == ["y"]
    assert not any("946" in note or "lies between" in note for note in alone.notes)
    assert any(note.startswith("The rows belong to") for note in alone.notes)
    many = race != "few"
    shown = audit(hired[many], sensitive_features=race[many], **FAST).without_individuals()
    assert any("lies between" in note for note in shown.notes)
