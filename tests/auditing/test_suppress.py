"""No small number of people stands in what an audit without individuals writes."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairmatch import audit, compare_models
from fairmatch.auditing.impact import write_tables
from fairmatch.exceptions import InputError

FAST = {"n_resamples": 100, "n_subsets": 20, "n_sample": 200}
COUNTS = {"n_rows", "n_people", "n_selected", "n_unknown", "n_missing", "score_counts", "n_sampled",
          "decisions", "undesirable_flips", "group_size", "reference_size"}  # fmt: skip


def counts(facts: Any, name: str = "") -> list[tuple[str, float]]:
    """Return every number of people in the JSON of an audit, wherever it stands."""
    if isinstance(facts, dict):
        inside = name in ("decisions", "undesirable_flips")
        return [c for key, own in facts.items() for c in counts(own, name if inside else key)]
    if isinstance(facts, list):
        return [c for own in facts for c in counts(own, name)]
    return [(name, facts)] if name in COUNTS and isinstance(facts, int | float) else []


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


def test_no_small_count_is_in_the_json(hidden):
    assert any(0 < count < 10 for _, count in counts(json.loads(hidden.to_json())))
    found = hidden.without_individuals()
    facts = json.loads(found.to_json())
    small = [(name, count) for name, count in counts(facts) if 0 < count < 10]
    assert small == []
    for rate, size in shares(facts):
        for people in (rate * size, (1.0 - rate) * size):
            assert not 0.5 <= people < 9.5, (rate, size)
    assert not re.search(r"\b[1-9] (people|person|rows?)\b", found.to_json())
    assert type(found).from_json(found.to_json()) == found


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
        if file.name == "summary.csv":
            continue
        table = pd.read_csv(file)
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
