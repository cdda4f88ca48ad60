"""Audits that compare like with like: strata, tests, wages, and who is alike."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from statsmodels.stats.contingency_tables import StratifiedTable

from fairmatch import audit
from fairmatch.auditing.facts import Audit
from fairmatch.exceptions import ColumnError, InputError
from fairmatch.report import write_filing, write_report
from fairmatch.report.figures import told

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


def test_strata_too_small_for_the_test_of_equal_odds_ratios(tmp_path):
    random = np.random.default_rng(0)
    team, sex = np.repeat(np.arange(60), 4), np.tile(["f", "f", "m", "m"], 60)
    hired = random.integers(2, size=240).astype(float)
    found = audit(hired, sensitive_features=sex, given=team.astype(str), **FEW)
    (one,) = found.conditional
    assert (one.p_homogeneous, one.n_homogeneous) == (None, 0)
    assert 0.0 < one.p_value < 1.0
    assert "strata too small" in write_report(found, tmp_path / "r.html").read_text("utf-8")
    people = staff()
    (one,) = audit(
        people.score, sensitive_features=people.sex, given=people.title, **FEW
    ).conditional
    assert one.n_homogeneous == 2


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


def test_a_sign_that_chance_may_have_changed_is_not_called_a_paradox(tmp_path):
    random = np.random.default_rng(1)
    sex = np.repeat(["f", "m"], 1000)
    job = np.r_[np.repeat([0, 1], [800, 200]), np.repeat([0, 1], [200, 800])]
    said = set()
    for _ in range(20):  # within jobs women and men have the same rate
        hired = (random.random(2000) < np.array([0.2, 0.8])[job]).astype(float)
        found = audit(hired, sensitive_features=sex, given=job, **FEW)
        (one,) = found.conditional
        (*sentences,) = told("given_notes", [found])
        assert bool(sentences) == one.reverses
        is_sure = one.adjusted.low * one.adjusted.high > 0
        assert all(("paradox" in own) == is_sure for own in sentences)
        assert all(("whose interval contains 0" in own) != is_sure for own in sentences)
        said |= {is_sure for _ in sentences}
    assert False in said


def test_a_filing_states_the_gap_within_strata_and_names_the_factor(tmp_path):
    people = staff(600)
    found = audit(people.score, sensitive_features=people.sex, X=people[["title", "age"]],
                  given=["title"], **FEW)  # fmt: skip
    assert found.provenance.settings["given"] == "title"
    text = write_filing(found, tmp_path / "filing.html").read_text("utf-8")
    assert "With and without the given factors: title" in text
    assert "adjusted difference" in text
    assert ">p-value<" in text
    assert Audit.from_json(found.to_json()) == found


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
        "“Compared” is the share of each group",
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


def opposite(n_rows=1000):
    """Return a model that scores one group exactly opposite to the other, and its people."""
    random = np.random.default_rng(3)
    sex, merit = random.choice(["f", "m"], n_rows), random.random(n_rows)
    label = (merit + random.normal(0, 0.1, n_rows) > 0.5).astype(int)
    score = np.where(sex == "f", merit, 1.0 - merit)
    return score, sex, label, pd.DataFrame({"merit": merit}), random


def test_random_columns_hardly_move_the_position_if_there_are_labels():
    score, sex, label, X, random = opposite()
    noisy = X.assign(**{f"z{k}": random.integers(4, size=len(X)).astype(str) for k in range(10)})

    def position(X, **more):
        found = audit(score, sensitive_features=sex, X=X, **more, **FEW)
        return found.matchings[0].nearest_fair.position

    alone = position(X, y_true=label)
    assert alone > 1.8
    assert position(noisy, y_true=label) == pytest.approx(alone, abs=0.03)
    assert position(noisy, y_true=label, similarity=None) < 0.5  # every column counts the same


def test_without_relevance_every_column_counts_and_the_audit_says_why():
    score, sex, label, X, random = opposite(300)
    silent = audit(score, sensitive_features=sex, X=X, **FEW)
    assert silent.similarity is None
    assert not silent.notes
    noise = audit(score, sensitive_features=sex, X=X, y_true=random.permutation(label), **FEW)
    assert noise.similarity is None
    assert "labels do not show which columns matter" in noise.notes[0]
    wide = pd.concat([X.rename(columns=lambda name, k=k: f"{name}{k}") for k in range(201)], axis=1)
    many = audit(score, sensitive_features=sex, X=wide, y_true=label, **FEW)
    assert "more than 200 columns" in many.notes[0]


def test_relevance_is_that_of_people_in_any_order_and_in_counts():
    people = staff(500).sort_values(["title", "age"])
    people = people.assign(score=people.score.round(1), n=1 + np.arange(500) % 3)
    written = people.loc[people.index.repeat(people.n)].sample(frac=1.0, random_state=0)
    known = [
        audit(own.score, sensitive_features=own.sex, X=own[["title", "age"]], y_true=own.label,
              sample_weight=weight, weight_kind="counts", **FEW).similarity
        for own, weight in ((people, people.n), (written, np.ones(len(written))))
    ]  # fmt: skip
    assert known[0] is not None
    assert known[0] == pytest.approx(known[1])


def test_codes_are_noticed_and_can_be_named_categories():
    random = np.random.default_rng(1)
    job = random.choice(random.integers(100, 9999, 30), 1500)
    X = pd.DataFrame({"job": job, "pay": 100 * random.integers(10, 90, 1500)})
    score, sex = random.random(1500), random.choice(["f", "m"], 1500)
    plain = audit(score, sensitive_features=sex, X=X, **FEW)
    assert [note for note in plain.notes if "codes" in note] == [
        "Column 'job' looks like codes of a category, and was read as a number. If it is one, pass "
        "categorical=['job']."
    ]
    named = audit(score, sensitive_features=sex, X=X, categorical=["job"], given="job", **FEW)
    assert not named.notes
    text = X.assign(job=X.job.astype(str))
    words = audit(score, sensitive_features=sex, X=text, given="job", **FEW)
    near = [found.matchings[0].nearest_fair for found in (named, words)]
    assert near[0].random == pytest.approx(near[1].random)
    assert near[0].position == pytest.approx(near[1].position, abs=0.02)
    assert len(named.conditional[0].strata) == len(words.conditional[0].strata) == 30
    with pytest.raises(ColumnError, match="Did you mean 'job'"):
        audit(score, sensitive_features=sex, X=X, categorical=["jop"], **FEW)


def test_an_embedding_alone_says_who_is_alike(tmp_path):
    people = staff(600)
    embedding = np.random.default_rng(0).normal(size=(600, 4)).astype("float32")
    shared = {"sensitive_features": people.sex, "similarity": embedding, **FEW}
    found = audit(people.score, **shared)
    with_columns = audit(people.score, X=people[["age"]], **shared)
    for one in ("transport", "nearest_fair"):
        own, same = (getattr(facts.matchings[0], one) for facts in (found, with_columns))
        assert own.cost == pytest.approx(same.cost)
    assert found.individuals.near is not None
    assert found.subsets is None
    turned = np.random.default_rng(1).permutation(600)
    moved = {"sensitive_features": people.sex[turned], "similarity": embedding[turned], **FEW}
    assert audit(people.score[turned], **moved).matchings == found.matchings
    half = audit(people.score, sample_weight=np.arange(600) % 2, **shared)
    assert half.matchings[0].transport is not None
    assert "the embedding given" in write_report(found, tmp_path / "r.html").read_text("utf-8")
    for named in (["age"], {"age": 1.0}, "relevance"):
        with pytest.raises(InputError, match="X was not given"):
            audit(people.score, **{**shared, "similarity": named})
