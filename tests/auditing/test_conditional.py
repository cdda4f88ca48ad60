"""Audits that compare like with like: strata, tests, wages, and who is alike."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from statsmodels.stats.contingency_tables import StratifiedTable

from fairmatch import audit
from fairmatch.auditing.facts import Audit
from fairmatch.report import write_report

FEW = {"n_resamples": 100, "n_subsets": 20}


def staff(n_rows=2000, seed=0):
    """Return people whose title depends on sex, and whose score and wage depend on the title."""
    random = np.random.default_rng(seed)
    sex = random.choice(["f", "m"], n_rows)
    title = np.where(random.random(n_rows) < np.where(sex == "f", 0.25, 0.6), "head", "clerk")
    score = np.clip(np.where(title == "head", 0.7, 0.4) + random.normal(0, 0.15, n_rows), 0, 1)
    drift = 0.3 * (title == "head") - 0.05 * (sex == "f")
    wage = np.exp(7.5 + drift + random.normal(0, 0.1, n_rows))
    return pd.DataFrame({
        "sex": sex, "title": title, "age": random.integers(20, 60, n_rows), "score": score,
        "wage": wage, "label": (score + random.normal(0, 0.1, n_rows) > 0.5).astype(int),
    })  # fmt: skip


def test_decisions_within_strata_are_those_of_statsmodels():
    people = staff()
    (found,) = audit(
        people.score, sensitive_features=people.sex, given=people[["title"]], **FEW
    ).conditional
    hit = people.score >= 0.5
    tables = [
        pd.crosstab(people.sex[own], hit[own])
        .reindex(index=[found.group, found.reference], columns=[True, False])
        .to_numpy()
        for own in (people.title == title for title in ("clerk", "head"))
    ]
    oracle = StratifiedTable(tables)
    assert found.odds_ratio.value == pytest.approx(oracle.oddsratio_pooled)
    low, high = oracle.oddsratio_pooled_confint()
    assert (found.odds_ratio.low, found.odds_ratio.high) == pytest.approx((low, high))
    assert found.p_value == pytest.approx(oracle.test_null_odds().pvalue)
    assert found.p_homogeneous == pytest.approx(oracle.test_equal_odds(adjust=True).pvalue)
    assert abs(found.marginal) > 0.1
    assert found.adjusted.low < 0.0 < found.adjusted.high  # the title explains the gap
    assert [one.label for one in found.strata] == ["title clerk", "title head"]
    assert sum(one.weight for one in found.strata) == pytest.approx(1.0)


def test_wages_within_strata_are_those_of_a_regression():
    people = staff()
    found = audit(people.wage, sensitive_features=people.sex, given=people.title, kind="number",
                  **FEW)  # fmt: skip
    (one,) = found.conditional
    assert one.odds_ratio is None
    sign = -1.0 if one.group == "m" else 1.0
    model = smf.ols("np.log(wage) ~ C(sex, Treatment('m')) + title", people).fit()
    effect = model.params.filter(like="sex").iloc[0]
    # The regression weighs strata a little differently, and the truth is the same in both.
    assert np.log1p(one.percent.value) == pytest.approx(sign * effect, abs=0.005)
    assert one.percent.low < np.expm1(sign * -0.05) < one.percent.high


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    held = 0
    for seed in range(60):
        people = staff(400, seed)
        (one,) = audit(people.wage, sensitive_features=people.sex, given=people.title,
                       kind="number", **FEW).conditional  # fmt: skip
        truth = np.expm1((-1.0 if one.group == "f" else 1.0) * 0.05)
        held += one.percent.low < truth < one.percent.high
    assert held >= 52  # 95 % of 60 is 57; fewer than 52 has a probability below 2 %


def test_simpson_is_noticed(tmp_path):
    sex = np.repeat(["f", "m"], 1000)
    job = np.r_[np.repeat([0, 1], [800, 200]), np.repeat([0, 1], [200, 800])]
    random = np.random.default_rng(0)
    rate = np.array([0.2, 0.8])[job] + np.where(sex == "f", 0.15, 0.0)
    hired = (random.random(2000) < rate).astype(float)
    found = audit(hired, sensitive_features=sex, given=job, **FEW)
    (one,) = found.conditional
    assert one.reverses
    page = write_report(found, tmp_path / "report.html").read_text("utf-8")
    assert "changes its sign" in page
    assert "without the given factors, and" in page
    assert Audit.from_json(found.to_json()).conditional == found.conditional


def test_the_report_has_a_section(tmp_path):
    people = staff(600)
    kept = people[["title", "age"]]
    found = audit(people.score, sensitive_features=people.sex, X=kept, y_true=people.label,
                  given=["title"], similarity="relevance", **FEW)  # fmt: skip
    page = write_report(found, tmp_path / "report.html").read_text("utf-8")
    said = (
        "Among people with the same given factors",
        "The gap within strata: people of both",
        "The adjusted difference is the mean of",
        "A small gap within strata does not clear",
        "hides that part of the gap",
        "With and without the given factors",
        "The difference is that of the group minus",
        "intervals of adjusted differences and odds ratios",
        "Compared is the share of each group",
        "How much each column counts in the distance",
        "The weight of a column in the squared",
        "the columns and weights listed below",
    )
    assert [words for words in said if words not in page] == []
    plain = audit(people.score, sensitive_features=people.sex, X=kept, **FEW)
    without = write_report(plain, tmp_path / "plain.html").read_text("utf-8")
    assert [words for words in said if words in without] == []
    assert found.similarity is not None
    assert "title" in found.similarity
    bare = write_report(found, tmp_path / "bare.html", individuals=False)
    assert "The strata of" in bare.read_text("utf-8")


def test_random_columns_hardly_move_the_position_under_relevance():
    people = staff(800)
    score = np.where(people.sex == "f", 1 - people.label * 0.6, people.label * 0.6 + 0.2)
    described = people[["title"]].assign(merit=people.label + np.random.default_rng(3).random(800))

    def position(X):
        found = audit(score, sensitive_features=people.sex, X=X, y_true=people.label,
                      similarity="relevance", **FEW)  # fmt: skip
        return found.matchings[0].nearest_fair.position

    random = np.random.default_rng(5)
    noisy = described.assign(**{f"z{k}": random.integers(4, size=800) for k in range(10)})
    assert position(noisy) == pytest.approx(position(described), abs=0.03)
