"""Planted subsets are named, and none is claimed where there is none."""

import numpy as np
import pandas as pd
import pytest
from audited import planted_model

from fairmatch import audit
from fairmatch.auditing.subsets import code_column
from fairmatch.measures import random_subset_gaps, subset_parity_gap
from fairmatch.people.columns import read_columns

QUICK = {"n_resamples": 100, "n_subsets": 50, "n_sample": 50}


# Among 500 people searched, four of the planted subset share a year of age, so that the limit
# is known to about two years; among 10,000 it is known to the year.
@pytest.mark.parametrize(
    ("n_rows", "effect", "years", "seed"),
    [
        *((1000, 0.3, 2, seed) for seed in range(5)),
        # The half of seed 2 that is searched shows the effect above 68 more clearly than above 60.
        *((4000, 0.2, 1, seed) for seed in (0, 1, 3)),
        *((20000, 0.2, 0, seed) for seed in range(2)),
    ],
)
def test_the_planted_subset_is_named_first(n_rows, effect, years, seed):
    scores, group, X = planted_model(n_rows, effect, seed)
    found = audit(scores, sensitive_features=group, X=X, **QUICK)
    assert found.gap("mean_parity_gap").value < 0.02  # fair overall
    # A third condition may make the first a little surer; the planted subset then comes after it.
    first = found.subsets.subsets[0]
    assert {"age", "marital_status"} <= {one.column for one in first.conditions}
    worst = next(one for one in found.subsets.subsets if len(one.conditions) == 2)
    age, status = worst.conditions
    assert (age.column, age.operator) == ("age", ">")
    assert age.value == pytest.approx(60, abs=years)
    assert str(status) == "marital_status != married"
    assert worst.description == f"age > {age.value:g} and marital_status != married"
    assert worst.confirmed.low > 0.0
    assert worst.confirmed.low <= effect <= worst.confirmed.high
    assert worst.signed > 0.0
    inside = (X["age"] > age.value) & (X["marital_status"] != "married")
    known = subset_parity_gap(None, scores, sensitive_features=group, subset=inside)
    assert worst.gap == pytest.approx(known)
    assert sum(worst.n_rows) == inside.sum()


def test_the_planted_level_of_one_column_is_named_first():
    generator = np.random.default_rng(0)
    group = generator.integers(0, 2, 3000)
    X = pd.DataFrame({"town": generator.choice(list("abcdefgh"), 3000), "age": group + 1.5})
    X["age"] = generator.integers(20, 70, 3000)
    scores = 0.5 + generator.normal(0, 0.1, 3000) + 0.2 * (X["town"] == "c") * (0.5 - group)
    found = audit(scores.clip(0, 1), sensitive_features=group, X=X, **QUICK)
    worst = found.subsets.subsets[0]
    assert worst.description == "town = c"
    assert worst.found_by == "level"
    assert worst.signed < 0.0


def test_a_missing_value_can_be_what_a_subset_shares():
    generator = np.random.default_rng(1)
    group = generator.integers(0, 2, 2000)
    income = generator.normal(size=2000)
    income[generator.random(2000) < 0.2] = np.nan
    gap = 0.3 * np.isnan(income) * (group - 0.5)
    scores = (0.5 + generator.normal(0, 0.1, 2000) + gap).clip(0, 1)
    found = audit(scores, sensitive_features=group, X=pd.DataFrame({"income": income}), **QUICK)
    assert found.subsets.subsets[0].description == "income is missing"


def test_models_without_any_gap_are_rarely_accused():
    # Each audit may claim a gap where there is none with probability 5 % at most.
    accused = 0
    n_audits = 25
    for seed in range(n_audits):
        generator = np.random.default_rng([5, seed])
        X = pd.DataFrame(generator.normal(size=(400, 4)), columns=list("abcd"))
        X["e"] = generator.choice(list("uvw"), 400)
        scores = 1 / (1 + np.exp(-X["a"] - 0.5 * generator.normal(size=400)))
        found = audit(
            scores,
            sensitive_features=generator.integers(0, 2, 400),
            X=X,
            **QUICK,
            random_state=seed,
        )
        accused += any(s.confirmed.low for s in found.subsets.subsets)
    assert accused <= 5  # binomial(25, 0.05) is above 5 once in a thousand times


def test_nearly_everybody_is_no_subset():
    # One gap for all; a limit that leaves a few people out would have it for the surest.
    generator = np.random.default_rng(4)
    n = 2000
    group, X = generator.integers(0, 2, n), pd.DataFrame({"age": generator.uniform(18, 90, n)})
    scores = (0.3 + 0.2 * group + generator.uniform(0, 0.3, n)).clip(0, 1)
    found = audit(scores, sensitive_features=group, X=X, **QUICK).subsets
    assert found.subsets
    assert all(sum(subset.n_rows) <= 0.96 * n for subset in found.subsets)


def test_the_scan_tells_what_it_did():
    scores, group, X = planted_model(1000)
    scan = audit(scores, sensitive_features=group, X=X, **QUICK).subsets
    assert scan.n_search + scan.n_confirm == 1000
    assert scan.n_examined > 500
    assert scan.min_rows == 30
    assert len(scan.subsets) <= 20
    kinds = {subset.found_by for subset in scan.subsets}
    assert kinds <= {"level", "split", "pair", "search"}
    for subset in scan.subsets:
        assert min(subset.n_rows) >= scan.min_rows
        assert 1 <= len(subset.conditions) <= 3
        assert subset.description == " and ".join(map(str, subset.conditions))


def test_half_spaces_are_those_of_the_paper():
    scores, group, X = planted_model(500)
    numbers = X[["age", "income", "noise"]].to_numpy()
    found = audit(scores, sensitive_features=group, X=numbers, **QUICK)
    spaces = found.subsets.half_spaces
    low, high = numbers.min(axis=0), numbers.max(axis=0)
    known = random_subset_gaps(
        None,
        scores,
        sensitive_features=group,
        X=(numbers - low) / (high - low),
        n_subsets=50,
        random_state=np.random.default_rng([0, 5]),
    )
    assert spaces.gaps == pytest.approx(known[~np.isnan(known)])
    assert spaces.n_empty == np.isnan(known).sum()
    assert len(spaces.noise) > 0
    assert spaces.n_rows == 500


def test_decisions_are_searched_too():
    scores, group, X = planted_model(2000, 0.3, 3)
    decisions = (scores >= 0.5).astype(int)
    found = audit(decisions, sensitive_features=group, X=X, **QUICK)
    assert {c.column for c in found.subsets.subsets[0].conditions} >= {"age", "marital_status"}


def test_columns_of_very_many_levels_have_a_code_for_each():
    names = np.array([f"level {k:05}" for k in range(40_000)], dtype=object)
    (column,) = read_columns(pd.DataFrame({"name": names}))
    coded = code_column(column)
    assert [coded.levels[code] for code in coded.codes[[0, 32_767, 39_999]]] == [
        names[0],
        names[32_767],
        names[39_999],
    ]


@pytest.mark.parametrize("seed", range(3))
def test_how_a_subset_is_found_does_not_depend_on_the_order_of_the_rows(seed):
    scores, group, X = planted_model(600, 0.3, seed)
    told = {}
    generator = np.random.default_rng(seed)
    for order in (np.arange(600), *(generator.permutation(600) for _ in range(3))):
        found = audit(
            scores[order], sensitive_features=group[order], X=X.iloc[order].reset_index(drop=True),
            **QUICK,
        )  # fmt: skip
        for one in found.subsets.subsets:
            assert told.setdefault(one.description, one.found_by) == one.found_by
