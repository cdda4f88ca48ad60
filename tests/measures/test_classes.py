"""Gaps of several classes, against pandas, POT, two classes and simulations."""

from itertools import combinations

import numpy as np
import ot
import pandas as pd
import pytest

from fairmatch import OptimalTransportMatcher
from fairmatch.exceptions import InputError, LabelError
from fairmatch.measures import (
    MEASURES,
    demographic_parity_gap,
    equalized_odds_gap,
    false_positive_gap,
    gap_table,
    gaps_by_class,
    gaps_by_pair,
    ks_parity_gap,
    matched_parity_gap,
    mean_parity_gap,
    selection_rates,
    true_positive_gap,
    wasserstein_parity_gap,
)
from fairmatch.measures.distributions import ScoredPeople, Settings, simplex_distance
from fairmatch.measures.intervals import GroupPair
from fairmatch.people.outcome import class_outcome, largest_class
from fairmatch.people.people import read_people

NAMES = ["low", "middle", "high", "top"]


def draw(seed, n_rows=300, n_classes=4, n_groups=3):
    generator = np.random.default_rng(seed)
    groups = generator.integers(n_groups, size=n_rows)
    margins = (
        generator.normal(size=(n_rows, n_classes)) + 0.4 * groups[:, None] * np.eye(n_classes)[0]
    )
    scores = np.exp(margins) / np.exp(margins).sum(axis=1, keepdims=True)
    labels = np.array(NAMES[:n_classes])[generator.integers(n_classes, size=n_rows)]
    return scores, np.array(list("abcde"))[groups], labels, generator.uniform(0.5, 2.0, n_rows)


def by_hand(scores, groups, weights, labels=None, names=NAMES):
    """Return the weighted share of every decided class by group and true class, with pandas."""
    decided = pd.Series(scores.argmax(axis=1)).map(dict(enumerate(names)))
    frame = pd.DataFrame({"d": decided, "g": groups, "w": weights})
    by = ["g"]
    if labels is not None:
        frame["y"] = labels
        by = ["y", "g"]
    sums = frame.pivot_table(index=by, columns="d", values="w", aggfunc="sum", fill_value=0.0)
    return sums.div(sums.sum(axis=1), axis=0)


@pytest.mark.parametrize("seed", range(3))
def test_rates_equal_pandas(seed):
    scores, groups, labels, weights = draw(seed)
    given = {"sensitive_features": groups, "sample_weight": weights}
    shares = by_hand(scores, groups, weights)
    assert demographic_parity_gap(None, scores, **given) == pytest.approx(
        (shares.max() - shares.min()).max()
    )
    frame = pd.DataFrame(scores, columns=NAMES)
    rates = by_hand(scores, groups, weights, labels)
    recalls = {own: np.ptp(rates.loc[own][own]) for own in NAMES}
    assert true_positive_gap(labels, frame, **given) == pytest.approx(max(recalls.values()))
    assert true_positive_gap(labels, frame, favourable=["top", "low"], **given) == pytest.approx(
        max(recalls["top"], recalls["low"])
    )
    odds = [np.ptp(rates.loc[own], axis=0).max() for own in NAMES]
    assert equalized_odds_gap(labels, frame, **given) == pytest.approx(np.mean(odds))
    assert equalized_odds_gap(labels, frame, agg="worst_case", **given) == pytest.approx(max(odds))
    pairs = gaps_by_pair(None, scores, **given)
    wanted = [np.abs(shares.loc[a] - shares.loc[b]).max() for a, b in combinations("abc", 2)]
    assert [pair.value for pair in pairs] == pytest.approx(wanted)
    table = gaps_by_class(labels, frame, measure="equalized_odds_gap", **given)
    assert len(table) == 3 * 4 * 4
    for row in table:
        wanted = [rates.loc[row.given, own][row.decided] for own in (row.first, row.second)]
        assert row.rates == pytest.approx(tuple(wanted))
        assert row.low <= wanted[1] - wanted[0] <= row.high


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weighted", [False, True])
def test_distances_equal_pot(seed, weighted):
    scores, groups, _, weights = draw(seed, n_rows=150, n_groups=2)
    weights = weights if weighted else np.ones(len(scores))
    given = {"sensitive_features": groups, "sample_weight": weights if weighted else None}
    parts = [(scores[groups == own], weights[groups == own]) for own in "ab"]
    (first, mass), (second, other) = [(own, share / share.sum()) for own, share in parts]
    wanted = ot.emd2(mass, other, ot.dist(first, second, "cityblock") / 2.0)
    assert wasserstein_parity_gap(None, scores, **given) == pytest.approx(wanted)
    means = mass @ first - other @ second
    assert mean_parity_gap(None, scores, **given) == pytest.approx(np.abs(means).sum() / 2.0)
    places = np.arange(4) / 3.0
    line = ot.wasserstein_1d(first @ places, second @ places, mass, other)
    assert wasserstein_parity_gap(None, scores, classes=NAMES, **given) == pytest.approx(
        float(line)
    )
    assert mean_parity_gap(None, scores, classes=NAMES, **given) == pytest.approx(
        abs(means @ places)
    )


def test_theorem_of_couplings_holds_in_the_simplex():
    scores, groups, _, _ = draw(3, n_groups=2)
    X = np.random.default_rng(3).normal(size=(len(scores), 3))
    coupling = OptimalTransportMatcher().match(X, groups)
    gaps = gap_table(None, scores, sensitive_features=groups, coupling=coupling)
    pairs = np.abs(scores[coupling.source_index] - scores[coupling.target_index]).sum(1) / 2.0
    assert gaps["matched_parity_gap"] == pytest.approx(pairs @ coupling.mass)
    assert matched_parity_gap(
        None, scores, sensitive_features=groups, coupling=coupling
    ) == pytest.approx(pairs @ coupling.mass)
    assert gaps["mean_parity_gap"] <= gaps["wasserstein_parity_gap"] <= gaps["matched_parity_gap"]
    line = gap_table(None, scores, sensitive_features=groups, coupling=coupling, classes=NAMES)
    assert (
        line["mean_parity_gap"] <= line["wasserstein_parity_gap"] <= gaps["wasserstein_parity_gap"]
    )


@pytest.mark.parametrize("seed", range(3))
def test_two_classes_are_the_binary_code(seed):
    scores, groups, labels, weights = draw(seed, n_classes=2)
    scores[:10] = 0.5
    given = {"sensitive_features": groups, "sample_weight": weights}
    plain = gap_table(labels, scores[:, 1], pos_label="middle", **given)
    assert gap_table(labels, scores, classes=["low", "middle"], **given) == plain
    # The code of several classes has the same values, where it is asked for two.
    outcome = class_outcome(["low", "middle"])
    people = read_people(
        groups, n_rows=len(scores), y=labels, sample_weight=weights, classes=("low", "middle")
    )
    scored = ScoredPeople(people, scores, Settings(outcome=outcome))
    for name in ("demographic_parity_gap", "mean_parity_gap", "equalized_odds_gap"):
        assert MEASURES[name].value(scored) == pytest.approx(plain[name])
    assert MEASURES["wasserstein_parity_gap"].value(scored) == pytest.approx(
        plain["wasserstein_parity_gap"]
    )
    low = gap_table(labels, scores, classes=["low", "middle"], favourable=["low"], **given)
    assert low["true_positive_gap"] == pytest.approx(plain["false_positive_gap"])


def test_ties_go_to_the_later_class():
    assert largest_class(np.array([[0.5, 0.5], [0.4, 0.6], [0.6, 0.4]])).tolist() == [1, 1, 0]
    scores = [[0.4, 0.4, 0.2], [0.2, 0.4, 0.4]]
    rows = gaps_by_class(None, scores, sensitive_features=["a", "b"])
    assert [row.rates for row in rows] == [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]


def test_strata_average_the_gaps_within():
    scores, groups, _, _ = draw(5, n_groups=2)
    stratum = np.random.default_rng(55).integers(3, size=len(scores))
    given = {"sensitive_features": groups}
    for name in ("demographic_parity_gap", "mean_parity_gap", "wasserstein_parity_gap"):
        whole = gap_table(None, scores, given=stratum, **given)[name]
        parts = [
            (np.mean(stratum == own), scores[stratum == own], groups[stratum == own])
            for own in range(3)
        ]
        if name == "demographic_parity_gap":
            shares = [by_hand(s, g, np.ones(len(g))) for _, s, g in parts]
            gaps = [
                w * (np.abs(t.iloc[0] - t.iloc[1]))
                for (w, _, _), t in zip(parts, shares, strict=True)
            ]
            assert whole == pytest.approx(sum(gaps).max())
        else:
            gaps = [
                weight * gap_table(None, own, sensitive_features=group)[name]
                for weight, own, group in parts
            ]
            assert whole == pytest.approx(sum(gaps))


def test_cells_change_a_distance_by_at_most_their_size(monkeypatch):
    generator = np.random.default_rng(0)
    first, second = generator.dirichlet([1, 2, 3], 700), generator.dirichlet([2, 2, 2], 700)
    groups = (first, None), (second, None)
    exact = simplex_distance(*groups)
    monkeypatch.setattr("fairmatch.measures.distributions._MOST_POINTS", 128)
    assert abs(simplex_distance(*groups) - exact) < 0.02


def test_intervals_hold_at_once():
    generator = np.random.default_rng(1)
    shares = {"a": [0.5, 0.3, 0.2], "b": [0.4, 0.3, 0.3], "c": [0.45, 0.25, 0.3]}
    groups = np.repeat(list("abc"), [150, 200, 120])
    missed = {"table": 0, "largest": 0, "mean": 0, "distance": 0}
    n_runs = 60
    for run in range(n_runs):
        scores = np.eye(3)[[generator.choice(3, p=shares[own]) for own in groups]]
        rows = gaps_by_class(None, scores, sensitive_features=groups, confidence=0.9)
        missed["table"] += any(
            not row.low
            <= shares[row.second][row.decided] - shares[row.first][row.decided]
            <= row.high
            for row in rows
        )
        people = read_people(groups, n_rows=len(groups))
        scored = ScoredPeople(people, scores, Settings(outcome=class_outcome(range(3))))
        pair = GroupPair(scored, (0, 1), 200, lambda k, run=run: np.random.default_rng([run, k]))
        for name, measure in (
            ("largest", "demographic_parity_gap"),
            ("mean", "mean_parity_gap"),
            ("distance", "wasserstein_parity_gap"),
        ):
            if name == "distance" and run >= 12:
                continue
            found = MEASURES[measure].interval_of(pair, 0.9)
            missed[name] += not found.low <= 0.1 + 1e-12 <= found.high + 2e-12
    assert max(missed["table"], missed["largest"], missed["mean"]) <= 0.1 * n_runs + 6
    assert missed["distance"] <= 4


def test_limits_hold_for_all_pairs_and_classes():
    generator = np.random.default_rng(2)
    groups = np.repeat(list("ab"), 150)
    people, above = read_people(groups, n_rows=300), 0
    for _ in range(12):
        scores = np.eye(3)[
            np.concatenate(
                [
                    generator.choice(3, 150, p=[0.5, 0.3, 0.2]),
                    generator.choice(3, 150, p=[0.4, 0.3, 0.3]),
                ]
            )
        ]
        scored = ScoredPeople(people, scores, Settings(outcome=class_outcome(range(3))))
        above += MEASURES["demographic_parity_gap"].upper_limit(scored, 0.9) < 0.1
    assert above <= 4


def test_errors_name_what_does_not_combine():
    scores, groups, labels, _ = draw(0)
    given = {"sensitive_features": groups}
    with pytest.raises(InputError, match="ks_parity_gap is for two"):
        ks_parity_gap(None, scores, **given)
    with pytest.raises(InputError, match="false_positive_gap is for two"):
        false_positive_gap(labels, scores, **given)
    with pytest.raises(InputError, match="4 classes"):
        selection_rates(None, scores, **given)
    with pytest.raises(InputError, match="threshold"):
        demographic_parity_gap(None, scores, threshold=0.4, **given)
    with pytest.raises(InputError, match="sum to 1"):
        demographic_parity_gap(None, scores * 2.0, **given)
    with pytest.raises(LabelError, match="which column"):
        true_positive_gap(np.where(labels == "low", "top", labels), scores, **given)
    with pytest.raises(LabelError, match="not one of the classes"):
        true_positive_gap(labels, scores, classes=["a", "b", "c", "d"], **given)
    with pytest.raises(InputError, match="favourable"):
        true_positive_gap(labels, scores, favourable=["best"], **given)
    with pytest.raises(InputError, match="one column"):
        wasserstein_parity_gap(None, scores[:, 0], classes=NAMES, **given)
    with pytest.raises(InputError, match="no rates"):
        gaps_by_class(None, scores, measure="mean_parity_gap", **given)


def test_the_smooth_version_compares_mean_probabilities():
    scores, groups, _, _ = draw(1)
    means = pd.DataFrame(scores).groupby(groups).mean()
    assert demographic_parity_gap(
        None, scores, threshold=None, sensitive_features=groups
    ) == pytest.approx((means.max() - means.min()).max())
