"""Audits by period, and of the stages of a procedure."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy.stats import norm

from fairmatch import audit
from fairmatch.auditing.facts import Audit
from fairmatch.auditing.periods import _level
from fairmatch.exceptions import InputError
from fairmatch.measures import MEASURES

FAST = {"n_resamples": 100}


@pytest.fixture(scope="module")
def people():
    """People of three years; women are behind by 0.2 until the last year."""
    random = np.random.default_rng(0)
    group, year = random.choice(["f", "m"], 3000), random.choice([2020, 2021, 2022], 3000)
    chance = 0.6 - 0.2 * ((group == "f") & (year < 2022))
    invited = random.random(3000) < chance
    hired = invited & (random.random(3000) < 0.5)
    label = random.random(3000) < 0.5
    score = np.clip(random.normal(chance, 0.1), 0.0, 1.0)
    return pd.DataFrame(
        {"group": group, "year": year, "invited": invited, "hired": hired, "y": label, "s": score}
    )


@pytest.fixture(scope="module")
def found(people):
    return audit(
        people.invited.astype(float),
        sensitive_features=people.group,
        y_true=people.y.astype(int),
        by=people.year,
        **FAST,
    )


def test_each_period_is_the_audit_of_its_rows(people, found):
    assert [one.name for one in found.periods] == ["2020", "2021", "2022"]
    own = people[people.year == 2021]
    alone = audit(
        own.invited.astype(float),
        sensitive_features=own.group,
        y_true=own.y.astype(int),
        **FAST,
    )
    period = found.periods[1]
    assert period.groups == alone.groups
    assert period.selection_ratio == alone.selection_ratio
    assert period.gaps == alone.gaps


def test_changes_are_those_of_an_interaction(people, found):
    after = next(
        one
        for one in found.changes
        if (one.before, one.measure) == ("2021", "demographic_parity_gap")
    )
    data = people[people.year > 2020].assign(
        own=lambda x: x.group == after.group,
        late=lambda x: x.year == 2022,
        i=lambda x: x.invited * 1,
    )
    model = smf.ols("i ~ own * late", data * 1).fit(cov_type="HC0")
    name = "own:late"
    assert after.change.value == pytest.approx(model.params[name], abs=1e-9)
    low, high = model.conf_int().loc[name]
    assert (after.change.low, after.change.high) == pytest.approx((low, high), abs=2e-3)
    assert after.p_value == pytest.approx(model.pvalues[name], rel=0.1)
    assert after.p_adjusted < 0.01
    rates = data.groupby(["late", "own"]).i.mean()
    differences = tuple(rates[late, True] - rates[late, False] for late in (False, True))
    assert after.differences == pytest.approx(differences)
    unchanged = [one for one in found.changes if one.before == "2020"]
    assert min(one.p_adjusted for one in unchanged) > 0.05


def test_changes_of_means_are_those_of_welch(people):
    numbers = audit(
        people.s * 10,
        sensitive_features=people.group,
        by=people.year,
        kind="number",
        **FAST,
    )
    change = numbers.changes[-1]
    cells = people.assign(s=people.s * 10).groupby(["year", "group"]).s
    error = np.sqrt((cells.var() / cells.size()).loc[[2021, 2022]].sum())
    assert change.change.high - change.change.value == pytest.approx(1.959964 * error, rel=1e-6)


def test_a_change_is_seldom_found_where_there_is_none():
    random, n_found = np.random.default_rng(1), 0
    for _ in range(30):
        group, year = random.integers(2, size=300), random.integers(2, size=300)
        decided = (random.random(300) < 0.3).astype(float)
        known = audit(decided, sensitive_features=group, by=year, **FAST)
        n_found += known.changes[0].p_value < 0.05
    assert n_found <= 6  # more with a probability of 0.1 %


def test_tests_of_a_change_hold_their_level_for_thirty_people():
    """The variances of rates of 30 people are not too small, over many tables without a change."""
    random = np.random.default_rng(2)
    size, rate, n = 30, 0.35, 20_000
    hits = random.binomial(size, rate, (4, n))
    scored = [
        SimpleNamespace(scored=SimpleNamespace(counts=lambda *_, own=own: (own, size)))
        for own in hits
    ]
    first, second, third, fourth = (
        _level(own, MEASURES["demographic_parity_gap"], 0, None)[:2] for own in scored
    )
    error = np.sqrt(first[1] + second[1] + third[1] + fourth[1])
    z = (first[0] - second[0] - third[0] + fourth[0]) / error
    assert (2.0 * norm.sf(np.abs(z)) < 0.05).mean() == pytest.approx(0.05, abs=0.006)


def test_a_period_is_named_by_its_column(people):
    own = people[:200]
    named = audit(own.s, sensitive_features=own.group, X=own[["year", "y"]], by="year", **FAST)
    given = audit(own.s, sensitive_features=own.group, by=own.year.tolist(), **FAST)
    assert named.changes == given.changes


def test_stages_are_counted_as_by_hand(people):
    stages = pd.DataFrame(
        {
            "applied": np.arange(3000) >= 10,
            "invited": people.invited & (np.arange(3000) >= 10),
            "hired": np.where(people.invited, people.hired * 1.0, np.nan),
        }
    )
    stages.loc[:9, "hired"] = np.nan
    found = audit(stages=stages, sensitive_features=people.group, **FAST)
    assert found.n_rows == 2990
    assert "10 rows are not in the first stage" in found.notes[0]
    steps = [("invited", "applied"), ("hired", "invited"), ("hired", "applied")]
    assert [(one.stage, one.among) for one in found.stages] == steps
    table = stages.fillna(0.0).astype(float).assign(group=people.group)
    for one in found.stages:
        rates = table[table[one.among] > 0].groupby("group")[one.stage].mean()
        for own in one.impact[0].categories:
            assert own.selection_rate.value == pytest.approx(rates[own.category])
            assert own.impact_ratio.value == pytest.approx(rates[own.category] / rates.max())
    whole = {own.category: own.selection_rate for own in found.stages[-1].impact[0].categories}
    assert whole == {group.label: group.selection_rate for group in found.groups}


def test_they_are_written_and_read_and_withheld(people, found):
    assert Audit.from_json(found.to_json()) == found
    assert len(found.without_individuals(10).periods) == 3
    few = people.year.where(np.arange(3000) >= 12, 2019)
    by = {"sensitive_features": people.group, "by": few, **FAST}
    small = audit(people.invited.astype(float), **by)
    assert len(small.periods) == 4
    hidden = small.without_individuals(10)
    assert hidden.periods == ()
    assert any(note.startswith("Periods are left out") for note in hidden.notes)


def test_left_out_stages_are_noted():
    stages = {"applied": [1] * 200, "hired": [1, *[0] * 99, *[1] * 50, *[0] * 50]}
    found = audit(stages=stages, sensitive_features=np.repeat(["f", "m"], 100), **FAST)
    hidden = found.without_individuals()
    assert (len(found.stages), hidden.stages) == (1, ())
    assert any(note.startswith("Stages are left out") for note in hidden.notes)


def test_people_without_a_period_are_counted():
    by = {"by": [None] * 100 + [1] * 100 + [2] * 100}
    found = audit([0.2, 0.8] * 150, sensitive_features=["f", "f", "m"] * 100, **by, **FAST)
    assert "100 people have no period, and are in none of the periods." in found.notes
    assert sum(group.n_rows for one in found.periods for group in one.groups) == 200


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"by": np.arange(3000)}, "2 to 100"),
        ({"by": "month"}, "is not a column of X"),
        ({"by": [2020]}, "by"),
        ({"stages": {"applied": [1] * 3000}}, "at least two columns"),
        ({"stages": {"a": [0, 1] * 1500, "b": [1, 1] * 1500}}, "1,500 people are 1 in 'b'"),
        ({"stages": {"a": [1] * 3000, "b": [1, 2] * 1500}}, "holds 2"),
        ({"stages": {"a": [1] * 3000, "b": [1, 0] * 1500}}, "y_score was given, but the decisions"),
    ],
)
def test_what_cannot_be_read_is_an_error(people, wrong, words):
    with pytest.raises(InputError, match=words):
        audit(people.invited.astype(float), sensitive_features=people.group, **wrong, **FAST)


def test_without_scores_and_stages_there_is_nothing_to_audit(people):
    with pytest.raises(InputError, match="needs y_score, or stages"):
        audit(sensitive_features=people.group)
