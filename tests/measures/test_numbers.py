"""How scores depend on a number: generalised demographic parity, and means along the number."""

import numpy as np
import pandas as pd
import pytest

from fairmatch import audit, bands
from fairmatch.auditing.facts import Audit
from fairmatch.cli.main import main
from fairmatch.exceptions import InputError
from fairmatch.measures import generalized_parity_gap, mean_parity_gap
from fairmatch.measures.numbers import dependence


def test_steps_have_the_gap_of_their_groups():
    """Where the mean has two levels, the gap is a mean over groups that can be written down."""
    generator = np.random.default_rng(0)
    age = generator.integers(20, 70, 4000).astype(float)
    old = age >= 40
    scores = np.where(old, 0.7, 0.2)
    share = old.mean()
    truth = 2.0 * 0.5 * share * (1.0 - share)
    assert generalized_parity_gap(None, scores, sensitive_features=age) == pytest.approx(
        truth, abs=0.02
    )
    assert generalized_parity_gap(
        None, scores, sensitive_features=bands(age, [40])
    ) == generalized_parity_gap(None, scores, sensitive_features=age)


def test_it_is_zero_for_a_number_that_says_nothing():
    generator = np.random.default_rng(1)
    found = [
        generalized_parity_gap(
            None, generator.uniform(size=800), sensitive_features=generator.normal(size=800)
        )
        for _ in range(20)
    ]
    assert np.mean(found) < 0.012  # the plain mean of distances would be about 0.03
    constant = np.full(200, 0.3)
    assert generalized_parity_gap(None, constant, sensitive_features=np.arange(200)) == 0.0


def test_it_is_at_most_the_largest_gap_of_the_cells():
    generator = np.random.default_rng(2)
    age = generator.uniform(20, 70, 1000)
    scores = np.clip(age / 100 + generator.normal(0, 0.1, 1000), 0, 1)
    gap = generalized_parity_gap(None, scores, sensitive_features=age)
    assert gap <= mean_parity_gap(None, scores, sensitive_features=bands(age, n=10))


def test_weights_missing_numbers_and_few_people():
    generator = np.random.default_rng(3)
    age, scores = generator.uniform(20, 70, 600), generator.uniform(size=600)
    weights = 1.0 * (np.arange(600) < 400)
    with_nan = np.where(weights > 0, age, np.nan)
    assert 0.0 <= generalized_parity_gap(None, scores, sensitive_features=with_nan) < 0.1
    even = generalized_parity_gap(None, scores, sensitive_features=age, sample_weight=np.ones(600))
    assert even == generalized_parity_gap(None, scores, sensitive_features=age)
    with pytest.raises(InputError, match="100 are needed"):
        generalized_parity_gap(None, scores[:90], sensitive_features=age[:90])


@pytest.mark.parametrize("slope", [0.0, 0.3, 1.0])
def test_coverage(slope):
    generator = np.random.default_rng(4)
    truth, n_draws = slope / 8.0, 60
    held, inside = 0, 0
    for _ in range(n_draws):
        number = generator.uniform(size=800)
        level = 0.5 + 0.5 * slope * (number - 0.5)
        decisions = (generator.random(800) < level).astype(float)
        found = dependence(decisions, number, np.ones(800), np.arange(800))
        held += found.low <= truth <= found.high
        inside += all(
            point.mean_low <= 0.5 + 0.5 * slope * (point.number - 0.5) <= point.mean_high
            for point in found.points
        )
    assert min(held, inside) >= 0.85 * n_draws


def test_rows_of_a_person_count_once():
    generator = np.random.default_rng(5)
    number, scores = generator.uniform(size=400), generator.uniform(size=400)
    twice = np.repeat(np.arange(400), 2)
    one = dependence(scores, number, np.ones(400), np.arange(400))
    two = dependence(scores[twice], number[twice], np.ones(800), twice)
    assert [p.mean for p in two.points] == pytest.approx([p.mean for p in one.points])
    assert two.value == pytest.approx(one.value)
    assert two.high == pytest.approx(one.high)


def people():
    generator = np.random.default_rng(6)
    age = generator.integers(18, 80, 500)
    score = np.clip(age / 100 + generator.normal(0, 0.15, 500), 0, 1).round(3)
    return pd.DataFrame({"age": age, "sex": np.tile(["f", "m"], 250), "score": score})


def test_the_audit_of_bands_has_it():
    table = people()
    found = audit(table["score"], sensitive_features=bands(table["age"], [40]), n_resamples=100)
    assert found.number.low < found.number.value < found.number.high
    numbers = [point.number for point in found.number.points]
    assert numbers == sorted(numbers)
    assert sum(point.n_people for point in found.number.points) == 500
    assert Audit.from_json(found.to_json()) == found
    assert "on average [" in found.notes[-1]
    plain = audit(table["score"], sensitive_features=table["sex"], n_resamples=100)
    assert plain.number is None


def test_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    people().to_csv("people.csv", index=False)
    typed = ["audit", "people.csv", "--score", "score", "--resamples", "100", "--json", "a.json"]
    for cuts, labels in {
        "age=40": ["under 40", "40 and over"],
        "age=30,50": ["under 30", "30 to under 50", "50 and over"],
        "age=30y": ["under 30", "30 to under 60", "60 and over"],
    }.items():
        assert main([*typed, "--sensitive", "age", "--bands", cuts]) == 0
        found = Audit.from_json((tmp_path / "a.json").read_text())
        assert [group.label for group in found.groups] == labels
        assert found.number is not None
    assert main([*typed, "--sensitive", "sex,age", "--bands", "age=40"]) == 0
    found = Audit.from_json((tmp_path / "a.json").read_text())
    assert {group.label for group in found.groups} == {
        *("f, under 40", "f, 40 and over", "m, under 40", "m, 40 and over")
    }
    capsys.readouterr()
    for wrong in (["age", "--bands", "age"], ["sex", "--bands", "age=40"]):
        assert main([*typed, "--sensitive", *wrong]) == 2
    assert "--bands" in capsys.readouterr().err
