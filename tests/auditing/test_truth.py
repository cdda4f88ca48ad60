"""Audits of tables whose truth is known."""

from __future__ import annotations

from inspect import signature
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import linprog

from fairmatch import audit
from fairmatch.auditing.gaps import excess_of
from fairmatch.exceptions import GroupError, InputError
from fairmatch.measures import demographic_parity_gap
from fairmatch.measures.intervals import detectable, rate_difference

FAST = {"n_resamples": 100, "n_subsets": 1}


def titles(n_rows: int, seed: int, gap: float = 0.0) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return job titles, groups and decisions: the rate depends on the title, and on the gap."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n_rows)
    title = rng.integers(0, 3, n_rows)
    rate = np.array([0.2, 0.5, 0.8])[title] + gap * group
    decision = (rng.random(n_rows) < rate).astype(float)
    return pd.DataFrame({"title": np.array(["x", "y", "z"])[title]}), group, decision


def test_a_matched_gap_of_tied_people_is_a_range_and_no_excess() -> None:
    X, group, decision = titles(1200, 0)
    gap = audit(decision, sensitive_features=group, X=X, **FAST).gap("matched_parity_gap")
    assert gap.raw is not None
    assert gap.ends is not None
    # Within a title some matching pairs equal decisions, and another pairs unequal ones.
    assert gap.raw[0] < 0.15
    assert gap.raw[1] > 0.5
    assert gap.low == 0.0
    assert gap.ends[0] <= gap.high


def test_noise_in_the_last_digit_does_not_close_the_range() -> None:
    rng = np.random.default_rng(1)
    level, scores = rng.integers(0, 3, (120, 1)) + 0.0, rng.integers(0, 2, 120) + 0.0
    first = np.arange(120) < 60
    noisy = level + rng.normal(scale=1e-6, size=level.shape)
    ranges = [
        excess_of(features, scores, first, None, 0.025, np.random.default_rng(0)).raw
        for features in (level, noisy)
    ]
    assert ranges[0] == pytest.approx(ranges[1], abs=1e-4)
    assert ranges[0][1] - ranges[0][0] > 0.4


def test_a_real_gap_is_an_excess() -> None:
    X, group, decision = titles(1200, 2, gap=0.2)
    gap = audit(decision, sensitive_features=group, X=X, **FAST).gap("matched_parity_gap")
    assert gap.p_value < 0.025
    # Pairs within a title differ by .2 on average, less what chance adds to permuted groups.
    assert 0.0 < gap.low < gap.value < 0.2
    assert gap.raw[0] == pytest.approx(0.2, abs=0.06)


def test_the_excess_of_equal_groups_is_seldom_significant() -> None:
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(40):
        features, scores = rng.normal(size=(60, 2)), rng.random(60)
        found = excess_of(features, scores, np.arange(60) < 30, None, 0.025, rng)
        alarms += found.low > 0.0
    assert alarms <= stats.binom.ppf(0.999, 40, 0.03)


def test_the_excess_is_within_the_tolerance_by_brute_force() -> None:
    """With two levels and equal decisions, both ends follow from counting."""
    level = np.array([0.0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1])[:, None]
    scores = np.array([1.0, 0, 0, 1, 1, 0, 1, 1, 0, 1, 0, 0])
    found = excess_of(level, scores, np.arange(12) < 6, None, 0.025, np.random.default_rng(0))
    # Level 0: rates 1/3 and 2/3; level 1: 2/3 and 1/3. At least 1/3 of the pairs differ; at most
    # all three pairs of a level do.
    assert found.raw == pytest.approx((1 / 3, 1.0), abs=1e-4)


@pytest.mark.parametrize("n_columns", [1, 2, 10])
@pytest.mark.parametrize("decides", [True, False])
def test_the_ends_hold_every_matching_within_one_percent(n_columns: int, decides: bool) -> None:
    """The ends agree with the linear programs that they bound."""
    rng = np.random.default_rng([17, n_columns])
    features, scores, n = rng.random((60, n_columns)), rng.random(60), 30
    scores = (scores > 0.5).astype(float) if decides else scores
    found = excess_of(features, scores, np.arange(60) < n, None, 0.025, rng)
    cost = ((features[:n, None] - features[n:]) ** 2).sum(axis=2).ravel()
    apart = np.abs(scores[:n, None] - scores[n:]).ravel()
    marginals = np.vstack([np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))])
    equal = {"A_eq": marginals, "b_eq": np.full(2 * n, 1 / n)}
    allowed = 1.01 * linprog(cost, **equal).fun
    least, most = (
        sign * linprog(sign * apart, A_ub=cost[None], b_ub=[allowed], **equal).fun
        for sign in (1.0, -1.0)
    )
    assert found.raw[0] <= least + 1e-9
    assert most <= found.raw[1] + 1e-9
    assert found.raw == pytest.approx((least, most), abs=0.03)


def test_people_who_are_all_alike_leave_partners_open() -> None:
    scores = np.tile([0.0, 1.0], 40)
    found = excess_of(
        np.ones((80, 1)), scores, np.arange(80) < 40, None, 0.025, np.random.default_rng(0)
    )
    assert found.raw == pytest.approx((0.0, 1.0), abs=1e-4)


@pytest.mark.parametrize("weights", [None, "ones", "counts"])
def test_aggregated_rows_and_weights_of_one_give_the_same_matched_gap(weights: str | None) -> None:
    X, group, decision = titles(500, 4, gap=0.1)
    table = X.assign(group=group, decision=decision)
    plain = audit(decision, sensitive_features=group, X=X, **FAST).gap("matched_parity_gap")
    more: dict[str, object] = {}
    if weights == "counts":
        table = table.value_counts().rename("n").reset_index()
        more = {"sample_weight": table["n"], "weight_kind": "counts"}
    elif weights == "ones":
        more = {"sample_weight": np.ones(len(table))}
    other = audit(
        table["decision"], sensitive_features=table["group"], X=table[["title"]], **more, **FAST
    ).gap("matched_parity_gap")
    assert (other.value, other.low, other.high) == pytest.approx(
        (plain.value, plain.low, plain.high)
    )


def test_the_limits_of_a_maximum_are_those_of_all_pairs() -> None:
    rng = np.random.default_rng(5)
    sizes, rates = (900, 700, 60, 40), (0.3, 0.6, 0.7, 0.35)
    group = np.repeat(np.arange(4), sizes)
    decision = (rng.random(len(group)) < np.repeat(rates, sizes)).astype(float)
    found = audit(decision, sensitive_features=group, **FAST)
    gap = found.gap("demographic_parity_gap")
    hits = [decision[group == k].sum() for k in range(4)]
    level = 1.0 - 0.05 / 6
    limits = [
        sorted(np.abs(rate_difference((hits[a], hits[b]), (sizes[a], sizes[b]), level)))
        for a in range(4)
        for b in range(a)
    ]
    signed = [
        rate_difference((hits[a], hits[b]), (sizes[a], sizes[b]), level)
        for a in range(4)
        for b in range(a)
    ]
    lows = [0.0 if low <= 0.0 <= high else min(abs(low), abs(high)) for low, high in signed]
    assert gap.low == pytest.approx(max(lows))
    assert gap.high == pytest.approx(max(high for _, high in limits))
    assert found.selection_ratio.low <= found.selection_ratio.value <= found.selection_ratio.high


def test_what_a_maximum_averages_by_chance() -> None:
    rng = np.random.default_rng(6)
    sizes = (1500, 400, 150, 60)
    group = np.repeat(np.arange(4), sizes)
    decision = (rng.random(len(group)) < 0.4).astype(float)
    gap = audit(decision, sensitive_features=group, **FAST).gap("demographic_parity_gap")
    rate = decision.mean()
    drawn = np.stack([rng.binomial(n, rate, 4000) / n for n in sizes])
    assert gap.expected == pytest.approx(np.ptp(drawn, axis=0).mean(), rel=0.08)


@pytest.mark.parametrize("values", [(0.0, 1.0), (0.0, 0.3, 1.0), tuple(np.linspace(0, 1, 500))])
def test_what_the_largest_distance_averages_by_chance(values) -> None:
    rng = np.random.default_rng(8)
    group = np.repeat(np.arange(3), (900, 200, 80))
    score = rng.choice(values, len(group))
    found = audit(score, sensitive_features=group, **FAST)
    drawn = []
    for _ in range(400):
        parts = [np.sort(own) for own in np.split(rng.permutation(score), [900, 1100])]
        drawn.append(max(stats.wasserstein_distance(a, b) for a, b in combinations(parts, 2)))
    expected = found.gap("wasserstein_parity_gap").expected
    assert expected == pytest.approx(np.mean(drawn), rel=0.1)


def test_the_detectable_gap_is_shown_four_times_in_five() -> None:
    rng = np.random.default_rng(7)
    smallest = detectable(float(np.sqrt(0.25 * (1 / 400 + 1 / 400))), 0.95)
    first = rng.binomial(400, 0.5 - smallest / 2, 3000)
    second = rng.binomial(400, 0.5 + smallest / 2, 3000)
    shown = [
        rate_difference((a, b), (400, 400), 0.95)[0] > 0.0
        for a, b in zip(first, second, strict=True)
    ]
    assert np.mean(shown) == pytest.approx(0.8, abs=0.03)


def test_repeated_people_count_once() -> None:
    rng = np.random.default_rng(8)
    n = 200
    group, score = rng.integers(0, 2, n), rng.random(n)
    once = audit(score, sensitive_features=group, **FAST)
    four = audit(
        np.repeat(score, 4),
        sensitive_features=np.repeat(group, 4),
        ids=np.repeat(np.arange(n), 4),
        **FAST,
    )
    for name in ("demographic_parity_gap", "mean_parity_gap", "ks_parity_gap"):
        one, many = once.gap(name), four.gap(name)
        assert many.value == pytest.approx(one.value)
        assert many.high - many.low == pytest.approx(one.high - one.low, rel=0.25)
    assert any("belong to 200 people" in note for note in four.notes)
    assert four.weights is None


def test_halves_of_the_subset_search_share_no_person() -> None:
    from fairmatch.auditing import audit as module
    from fairmatch.auditing.subsets import split_people

    rng = np.random.default_rng(9)
    person = rng.integers(0, 150, 600)
    group = (person % 2).astype(str)
    defaults = {name: own.default for name, own in signature(module.audit).parameters.items()}
    asked = {**defaults, "sensitive_features": group, "ids": person}
    (data,) = module._open({"m": rng.random(600)}, asked)
    search, confirm = split_people(data, 50_000, data.roster.order)
    assert not set(person[search.rows]) & set(person[confirm.rows])
    assert len(search.rows) + len(confirm.rows) == 600
    assert 200 < len(search.rows) < 400


def test_exact_copies_are_noted() -> None:
    rng = np.random.default_rng(10)
    X = pd.DataFrame({"a": rng.normal(size=100)})
    score, group = rng.random(100), rng.integers(0, 2, 100)
    twice = audit(
        np.tile(score, 2), sensitive_features=np.tile(group, 2), X=pd.concat([X, X]), **FAST
    )
    assert any("50% of the rows are exact copies" in note for note in twice.notes)
    assert not any("copies" in n for n in audit(score, sensitive_features=group, X=X, **FAST).notes)


def test_the_first_subset_is_the_surest() -> None:
    rng = np.random.default_rng(11)
    n = 4000
    X = pd.DataFrame({"town": rng.choice(list("pqrs"), n), "age": rng.integers(20, 60, n)})
    group = rng.integers(0, 2, n)
    score = np.clip(0.5 + 0.1 * rng.normal(size=n) + 0.2 * group * (X["town"] == "p"), 0, 1)
    found = audit(score, sensitive_features=group, X=X, **FAST, n_sample=100)
    subsets = found.subsets.subsets
    lows = [one.excess.low for one in subsets if one.excess.low is not None]
    assert lows == sorted(lows, reverse=True)
    assert "town = p" in subsets[0].description
    # The gap is .2 in the town, and .05 over everybody.
    assert subsets[0].excess.low < 0.15 < subsets[0].excess.high


@pytest.mark.parametrize("constant", [3.0, 3e6, -7.0])
def test_constant_predictions_have_no_limits(constant: float) -> None:
    found = audit(
        np.full(80, constant), sensitive_features=[0, 1] * 40, kind="number", n_resamples=100
    )
    gap = found.gap("mean_parity_gap")
    assert (gap.value, gap.low, gap.high) == (0.0, None, None)
    assert found.groups[0].mean_score.high is None


def test_constant_predictions_of_matched_people_have_no_limits_and_a_reason() -> None:
    rng = np.random.default_rng(18)
    X, groups = pd.DataFrame({"a": rng.integers(0, 9, 120)}), np.repeat(list("abc"), 40)
    found = audit(np.full(120, 7.0), sensitive_features=groups, X=X, kind="number", **FAST)
    assert "matched_parity_gap" in {gap.name for gap in found.gaps}
    for gap in (*found.gaps, *found.pair_gaps):
        assert (gap.value, gap.low, gap.high, gap.detectable) == (0.0, None, None, None)
        assert gap.refused in found.refusals
    assert len(found.pair_gaps) == 2 * len(found.gaps)


def test_a_statement_that_cannot_be_made_is_an_error() -> None:
    with pytest.raises(InputError, match="confidence"):
        audit([0.2, 0.8] * 40, sensitive_features=[0, 1] * 40, confidence=1 - 1e-16)
    with pytest.raises(InputError, match="threshold"):
        demographic_parity_gap(None, [0.2, 0.8], sensitive_features=[0, 1], threshold=2)


def test_a_thousand_groups() -> None:
    rng = np.random.default_rng(12)
    group = np.repeat(np.arange(120), 31).astype(str)
    found = audit(rng.random(len(group)), sensitive_features=group, n_resamples=100)
    gap = found.gap("demographic_parity_gap")
    assert gap.low == 0.0
    assert gap.value < gap.high
    assert any("more than 50 groups" in note for note in found.notes)


def test_one_impact_ratio_everywhere() -> None:
    """A category of 1.5 % of the people has the highest rate; nobody is compared with it."""
    sizes, rates = {"a": 1000, "b": 940, "c": 30}, {"a": 0.6, "b": 0.3, "c": 0.9}
    group = np.repeat(list(sizes), list(sizes.values()))
    decision = np.concatenate([np.arange(n) < round(rates[k] * n) for k, n in sizes.items()])
    found = audit(decision.astype(float), sensitive_features=group, **FAST)
    assert found.ratio_reference == found.impact[0].most_selected == "a"
    table = {one.category: one.impact_ratio.value for one in found.impact[0].categories}
    assert {one.label: one.ratio for one in found.groups} == pytest.approx(table)
    assert table == pytest.approx({"a": 1.0, "b": 0.5, "c": 1.5})
    assert found.selection_ratio.value == pytest.approx(0.5)
    assert found.selection_ratio.low < 0.5 < found.selection_ratio.high


def test_a_named_reference_is_that_of_ratios_and_matchings() -> None:
    rng = np.random.default_rng(13)
    people = pd.DataFrame({"sex": rng.choice(["f", "m"], 600), "race": rng.choice(["x", "y"], 600)})
    score = rng.random(600)
    found = audit(score, sensitive_features=people, reference="f, x", **FAST)
    assert found.reference == found.ratio_reference == "f, x"
    assert [one.reference for one in found.attributes] == ["f", "x"]
    assert [table.most_selected for table in found.impact] == ["f", "x", "f, x"]
    assert all("f, x" in matching.groups for matching in found.matchings)
    rate = {one.label: one.selection_rate.value for one in found.groups}
    assert found.groups[3].ratio == pytest.approx(rate["m, y"] / rate["f, x"])
    with pytest.raises(GroupError, match="not one of the groups"):
        audit(score, sensitive_features=people, reference="m", **FAST)


def test_a_named_reference_covers_its_ratio() -> None:
    rng = np.random.default_rng(14)
    sizes, rates = (300, 200, 100), np.array([0.5, 0.35, 0.45])
    group, held = np.repeat(list("abc"), sizes), 0
    for _ in range(60):
        decision = (rng.random(600) < np.repeat(rates, sizes)).astype(float)
        found = audit(decision, sensitive_features=group, reference="c", n_resamples=100)
        held += found.selection_ratio.low <= 0.35 / 0.45 <= found.selection_ratio.high
    assert held >= stats.binom.ppf(0.001, 60, 0.93)


def test_matchings_and_half_spaces_count_people_once() -> None:
    rng = np.random.default_rng(15)
    X, score, group = pd.DataFrame({"a": rng.random(90)}), rng.random(90), rng.integers(0, 2, 90)
    at = np.repeat(np.arange(90), 3)
    found = audit(score[at], sensitive_features=group[at], X=X.iloc[at], ids=at, **FAST)
    assert sum(found.matching.n_sampled) == found.subsets.half_spaces.n_rows == 90


def test_a_very_wide_table_pairs_only_its_best_conditions(monkeypatch) -> None:
    from fairmatch.auditing import subsets

    rng = np.random.default_rng(16)
    X = pd.DataFrame(rng.integers(0, 2, (600, 30)), columns=[f"c{k}" for k in range(30)])
    group, both = rng.integers(0, 2, 600), (X["c3"] == 1) & (X["c7"] == 1)
    score = np.clip(0.4 + 0.05 * rng.normal(size=600) + 0.4 * group * both, 0, 1)
    given = {"sensitive_features": group, "X": X, "n_sample": 50, **FAST}
    every = audit(score, **given).subsets
    monkeypatch.setattr(subsets, "_MOST_PAIRED", 10)
    few = audit(score, **given).subsets
    assert few.n_examined < every.n_examined
    assert few.subsets[0].description == every.subsets[0].description
