"""Weighted audits against tables in which every person has a row, and against the measures."""

import numpy as np
import pandas as pd
import pytest
from audited import labelled_model
from hypothesis import given, settings
from hypothesis import strategies as st

from fairmatch import audit, compare_models, measures
from fairmatch.exceptions import InputError
from fairmatch.people.weights import Weights, draw_people

QUICK = {"n_resamples": 200, "n_subsets": 50, "n_sample": 400}
LABELLED = "true_positive_gap", "false_positive_gap", "equalized_odds_gap"
NAMES = "demographic_parity_gap", "mean_parity_gap", "wasserstein_parity_gap", "ks_parity_gap"


@pytest.fixture(scope="module")
def table():
    scores, y, group, X = labelled_model(300)
    counts = np.random.default_rng(5).integers(0, 4, 300)
    return scores, y, group, X.round(1), counts


@pytest.fixture(scope="module")
def counted(table):
    scores, y, group, X, counts = table
    return audit(
        scores,
        sensitive_features=group,
        X=X,
        y_true=y,
        sample_weight=counts,
        weight_kind="counts",
        **QUICK,
    )


@pytest.fixture(scope="module")
def repeated(table):
    *columns, counts = table
    scores, y, group, X = (np.repeat(np.asarray(c), counts, axis=0) for c in columns)
    n_sample = {**QUICK, "n_sample": 2000}
    return audit(scores, sensitive_features=group, X=X, y_true=y, **n_sample)


def test_counts_are_people(counted, repeated):
    assert (counted.weights, repeated.weights) == ("counts", None)
    assert (counted.n_rows, counted.n_selected) == (repeated.n_rows, repeated.n_selected)
    for ours, theirs in zip(counted.groups, repeated.groups, strict=True):
        assert (ours.n_rows, ours.score_counts) == (theirs.n_rows, theirs.score_counts)
        for name in ("selection_rate", "base_rate", "accuracy", "true_positive_rate", "auc"):
            a, b = getattr(ours, name), getattr(theirs, name)
            assert (a.value, a.low, a.high) == pytest.approx((b.value, b.low, b.high))
        assert ours.mean_score.value == pytest.approx(theirs.mean_score.value)
        assert ours.calibration_error == pytest.approx(theirs.calibration_error)
        assert [part.n_rows for part in ours.calibration] == [p.n_rows for p in theirs.calibration]
    assert counted.selection_ratio.low == pytest.approx(repeated.selection_ratio.low)


def test_gaps_of_counts_are_those_of_people(counted, repeated):
    for ours, theirs in zip(counted.gaps, repeated.gaps, strict=True):
        assert ours.value == pytest.approx(theirs.value, abs=1e-9), ours.name
        if ours.signed is not None:
            assert ours.signed == pytest.approx(theirs.signed)
        if ours.name != "matched_parity_gap":  # people of one row can be matched apart
            assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


@st.composite
def aggregated(draw):
    """Scores, groups, labels and counts of an aggregated table of up to three groups."""
    seed, n_groups = draw(st.integers(0, 10_000)), draw(st.integers(2, 3))
    n, decimals = draw(st.integers(12, 80)), draw(st.sampled_from([0, 1, 2, 9]))
    generator = np.random.default_rng(seed)
    group = np.append(np.arange(n_groups), generator.integers(n_groups, size=n - n_groups))
    scores = generator.random(n) ** (1 + group * draw(st.sampled_from([0.0, 0.5, 3.0])))
    labels = generator.integers(2, size=n)
    return scores.round(decimals), group, labels, generator.integers(1, 40, n)


@settings(max_examples=40, deadline=None)
@given(aggregated())
def test_every_gap_and_interval_of_counts_is_that_of_people(drawn):
    scores, group, labels, counts = drawn
    settings_ = {"n_resamples": 100, "min_group_size": 5}
    counted = audit(
        scores, sensitive_features=group, y_true=labels, sample_weight=counts,
        weight_kind="counts", **settings_,
    )  # fmt: skip
    at = np.repeat(np.arange(len(scores)), counts)
    people = audit(scores[at], sensitive_features=group[at], y_true=labels[at], **settings_)
    for ours, theirs in zip(
        (*counted.gaps, *counted.pair_gaps), (*people.gaps, *people.pair_gaps), strict=True
    ):
        assert (ours.name, ours.groups) == (theirs.name, theirs.groups)
        assert ours.method == theirs.method
        own, other = ((g.value, g.low, g.high, g.p_value) for g in (ours, theirs))
        assert own == pytest.approx(other, abs=1e-9), ours.name
    for ours, theirs in zip(counted.groups, people.groups, strict=True):
        for a, b in zip(ours.estimates, theirs.estimates, strict=True):
            assert (a.value, a.low, a.high) == pytest.approx((b.value, b.low, b.high), abs=1e-9)


def test_an_interval_is_named_by_how_it_was_made(table):
    scores, y, group, _, counts = table
    given_ = {"sensitive_features": group, "y_true": y, **QUICK}
    methods = {
        kind: {gap.name: gap.method for gap in audit(scores, **given_, **weights).gaps}
        for kind, weights in {
            "people": {},
            "counts": {"sample_weight": counts, "weight_kind": "counts"},
            "survey": {"sample_weight": counts + 0.5},
        }.items()
    }
    assert methods["people"] == methods["counts"]
    assert methods["people"]["mean_parity_gap"].startswith("Student")
    assert methods["survey"]["mean_parity_gap"].startswith("Welch")
    assert "permutation" in methods["people"]["ks_parity_gap"]
    assert "permutation" not in methods["survey"]["ks_parity_gap"]


def test_matchings_of_counts_are_those_of_people(counted, repeated):
    ours, theirs = counted.matching, repeated.matching
    assert ours.n_sampled == theirs.n_sampled
    assert ours.transport.cost == pytest.approx(theirs.transport.cost, rel=1e-6)
    assert ours.transport.smallest == pytest.approx(theirs.transport.smallest, rel=1e-6)
    assert ours.transport.random == pytest.approx(theirs.transport.random)
    for a, b in zip(ours.matched_gaps[:1], theirs.matched_gaps[:1], strict=True):
        assert a.gap.value == pytest.approx(b.gap.value)


def test_gaps_of_a_survey_are_the_weighted_measures(table):
    scores, y, group, _, counts = table
    weights = counts + np.random.default_rng(1).random(300)
    found = audit(scores, sensitive_features=group, y_true=y, sample_weight=weights, **QUICK)
    given_ = {"sensitive_features": group, "sample_weight": weights}
    for name in (*NAMES, *LABELLED):
        value = getattr(measures, name)(y, scores, **given_)
        assert found.gap(name).value == pytest.approx(value), name
    assert found.groups[0].n_rows == (group == 0).sum()
    own = weights[group == 0]
    assert found.groups[0].effective_size == pytest.approx(own.sum() ** 2 / (own**2).sum())
    assert any("worth" in note for note in found.notes)


def test_equal_weights_change_nothing(table):
    scores, y, group, X, _ = table
    plain, weighted = (
        audit(scores, sensitive_features=group, X=X, y_true=y, sample_weight=w, **QUICK)
        for w in (None, np.full(300, 2.5))
    )
    for ours, theirs in zip(weighted.gaps, plain.gaps, strict=True):
        assert ours.value == pytest.approx(theirs.value)
        assert ours.high == pytest.approx(theirs.high, abs=0.04)
    assert weighted.matching.transport.relative == pytest.approx(plain.matching.transport.relative)
    assert weighted.groups[0].effective_size == pytest.approx(plain.groups[0].n_rows)


def test_subsets_of_counts_are_confirmed_on_other_people():
    generator = np.random.default_rng(0)
    age, group = generator.integers(20, 80, 400), generator.integers(0, 2, 400)
    scores = np.where((age > 60) & (group == 1), 0.8, 0.4)
    counts = generator.integers(1, 200, 400)
    X = pd.DataFrame({"age": age})
    found = audit(
        scores,
        sensitive_features=group,
        X=X,
        sample_weight=counts,
        weight_kind="counts",
        **QUICK,
    )
    scan = found.subsets
    assert scan.n_search + scan.n_confirm == counts.sum()
    worst = scan.subsets[0]
    assert worst.description == "age > 60"
    assert worst.n_rows == tuple(counts[(age > 60) & (group == k)].sum() for k in (0, 1))
    assert worst.confirmed.low <= 0.4 <= worst.confirmed.high + 1e-9
    sampled = audit(
        scores,
        sensitive_features=group,
        X=X,
        sample_weight=counts,
        weight_kind="counts",
        n_sample=50,
        n_resamples=100,
        n_subsets=10,
    )
    assert sampled.matching.n_sampled == (50, 50)
    assert sum(sampled.individuals.weights) == 100


def test_rows_of_weight_zero_are_nobody(table):
    scores, y, group, X, counts = table
    wild = X.copy()
    wild.loc[counts == 0, "x"] = 1e6  # would squeeze everybody else together
    there = counts > 0
    given_ = {"weight_kind": "counts", **QUICK}
    whole = audit(
        scores, sensitive_features=group, X=wild, y_true=y, sample_weight=counts, **given_
    )
    part = audit(
        scores[there],
        sensitive_features=group[there],
        X=X[there],
        y_true=y[there],
        sample_weight=counts[there],
        **given_,
    )
    assert whole.gaps == part.gaps
    assert whole.matchings == part.matchings
    assert whole.individuals.rows == tuple(np.flatnonzero(there)[list(part.individuals.rows)])
    assert "Rows of weight 0 were left out." in whole.notes


def test_a_comparison_takes_weights(table):
    scores, _, group, _, counts = table
    found = compare_models(
        {"a": scores, "b": 1 - scores},
        sensitive_features=group,
        sample_weight=counts,
        weight_kind="counts",
        n_resamples=100,
    )
    assert sum(found.pairs[0].decisions["0"]) == counts[group == 0].sum()
    assert found.pairs[0].rank_agreement["0"] == pytest.approx(-1.0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sample_weight": -np.ones(300)}, "not negative"),
        ({"sample_weight": np.zeros(300)}, "nobody is left"),
        ({"sample_weight": np.full(300, 0.5), "weight_kind": "counts"}, "whole numbers"),
        ({"sample_weight": np.ones(299)}, "299 rows"),
        ({"sample_weight": np.ones(300), "weight_kind": "people"}, "'survey', 'counts'"),
    ],
)
def test_weights_that_are_none_are_said(table, change, said):
    scores, _, group, _, _ = table
    with pytest.raises(InputError, match=said):
        audit(scores, sensitive_features=group, **change, **QUICK)


def test_few_people_in_effect_are_too_few(table):
    scores, _, group, _, _ = table
    weights = np.full(300, 1e-6)
    weights[:20] = 1.0
    found = audit(scores, sensitive_features=group, sample_weight=weights, **QUICK)
    assert found.gap("mean_parity_gap").value is None
    assert "weights worth" in found.refusals[0]


def test_two_groups_that_are_both_too_few_are_refused_with_features_too(table):
    scores, _, group, X, _ = table
    few = np.r_[np.flatnonzero(group == group[0])[:9], np.flatnonzero(group != group[0])[:9]]
    found = audit(
        scores[few], sensitive_features=group[few], X=X.iloc[few],
        sample_weight=1.0 + np.arange(18) % 2, **QUICK,
    )  # fmt: skip
    assert found.subsets.refused


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=30), st.integers(0, 10**6))
def test_a_survey_speaks_for_no_more_people_than_it_has(values, seed):
    weights = Weights(len(values), np.array(values))
    assert 1.0 - 1e-9 <= weights.size <= len(values) + 1e-9
    hits = np.random.default_rng(seed).random(len(values)) < 0.5
    rate = weights.rate(hits)
    assert rate.share == pytest.approx(np.average(hits, weights=values))
    assert rate.size <= weights.size + 1e-9


def test_people_are_drawn_without_replacement():
    counts = np.array([3.0, 0.0, 10.0, 1.0])
    drawn = draw_people(counts, 7, np.random.default_rng(0))
    assert drawn.sum() == 7
    assert (drawn <= counts).all()
