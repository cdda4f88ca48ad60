"""Measures of two to six groups: fairlearn as oracle, the theorems part by part, symmetry."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.support.random_tables import many_groups

from fairmatch import Coupling, fair_matching
from fairmatch.matching.matchers import OptimalTransportMatcher
from fairmatch.measures import (
    demographic_parity_gap,
    equalized_odds_gap,
    false_positive_gap,
    gap_table,
    gaps_by_pair,
    matched_parity_gap,
    mean_parity_gap,
    selection_rates,
    selection_ratio,
    true_positive_gap,
    wasserstein_parity_gap,
)
from fairmatch.measures.registry import applicable
from fairmatch.people.outcome import PROBABILITY

metrics = pytest.importorskip("fairlearn.metrics")

CRITERIA = ("demographic_parity", "equal_opportunity", "equalized_odds")
NAMES = [name for name, own in applicable(PROBABILITY).items() if not own.needs_coupling]
few = settings(max_examples=40, deadline=None)
EXACT = {"rel": 1e-12, "abs": 1e-12}


@few
@given(many_groups())
def test_rates_differences_and_ratios_are_fairlearns(table):
    decided = (table.scores >= 0.5).astype(int)
    given_rows = {"sensitive_features": table.groups, "sample_weight": table.weights}
    asked = table.labels, table.scores
    theirs = metrics.demographic_parity_difference(table.labels, decided, **given_rows)
    assert demographic_parity_gap(*asked, **given_rows) == pytest.approx(theirs, **EXACT)
    for agg in ("mean", "worst_case"):
        theirs = metrics.equalized_odds_difference(table.labels, decided, agg=agg, **given_rows)
        ours = equalized_odds_gap(*asked, agg=agg, **given_rows)
        assert ours == pytest.approx(theirs, **EXACT)
    theirs = metrics.equal_opportunity_difference(table.labels, decided, **given_rows)
    assert true_positive_gap(*asked, **given_rows) == pytest.approx(theirs, **EXACT)
    frame = metrics.MetricFrame(
        metrics=metrics.selection_rate,
        y_true=table.labels,
        y_pred=decided,
        sensitive_features=table.groups,
        sample_params={"sample_weight": table.weights},
    )
    found = selection_rates(*asked, **given_rows)
    assert {k: rate.rate for k, rate in found.items()} == pytest.approx(dict(frame.by_group))
    if decided.any():
        theirs = metrics.demographic_parity_ratio(table.labels, decided, **given_rows)
        assert selection_ratio(*asked, **given_rows) == pytest.approx(theirs, **EXACT)


@few
@given(many_groups())
def test_false_positive_rates_are_fairlearns(table):
    frame = metrics.MetricFrame(
        metrics=metrics.false_positive_rate,
        y_true=table.labels,
        y_pred=(table.scores >= 0.5).astype(int),
        sensitive_features=table.groups,
        sample_params={"sample_weight": table.weights},
    )
    ours = false_positive_gap(table.labels, table.scores, **table.given)
    assert ours == pytest.approx(frame.difference(method="between_groups"), **EXACT)


@few
@given(many_groups(), st.sampled_from(NAMES))
def test_a_gap_is_the_largest_of_its_pairs(table, name):
    everything = gap_table(table.labels, table.scores, bins=None, **table.given)[name]
    pairs = gaps_by_pair(table.labels, table.scores, measure=name, **table.given)
    n_groups = table.groups.max() + 1
    assert [(p.first, p.second) for p in pairs] == list(combinations(range(n_groups), 2))
    for pair in pairs:
        rows = np.isin(table.groups, (pair.first, pair.second))
        two = table.take(np.flatnonzero(rows))
        alone = gap_table(two.labels, two.scores, bins=None, **two.given)[name]
        assert pair.value == pytest.approx(alone, **EXACT)
    largest = max(pair.value for pair in pairs)
    if name == "equalized_odds_gap":  # its two gaps may be those of different pairs
        assert everything >= largest - 1e-12
    else:
        assert everything == pytest.approx(largest, **EXACT)


def parts_of(table, criterion):
    return fair_matching(
        table.scores,
        table.groups,
        y_true=table.labels,
        criterion=criterion,
        sample_weight=table.weights,
    )


def some_matching(table, criterion):
    """Another coupling with the same parts, which knows nothing of the scores."""
    return OptimalTransportMatcher(criterion=criterion).match(
        table.X, table.groups, table.labels, sample_weight=table.weights
    )


@few
@given(
    many_groups(max_size=5), st.sampled_from(CRITERIA), st.sampled_from([parts_of, some_matching])
)
def test_mean_gap_wasserstein_and_matched_gap_are_ordered_in_every_part(table, criterion, match):
    coupling = match(table, criterion)
    largest = {"mean": 0.0, "area": 0.0, "matched": 0.0}
    for part in coupling.parts:
        inside = np.isin(table.groups, part.groups)
        if part.label is not None:
            inside &= table.labels == int(part.label)
        two = table.take(np.flatnonzero(inside))
        mean = mean_parity_gap(None, two.scores, **two.given)
        area = wasserstein_parity_gap(None, two.scores, **two.given)
        matched = part.gap(table.scores)
        assert mean <= area + 1e-9
        assert area <= matched + 1e-9
        for name, value in (("mean", mean), ("area", area), ("matched", matched)):
            largest[name] = max(largest[name], value)
    asked = {"sensitive_features": table.groups, "coupling": coupling}
    assert matched_parity_gap(None, table.scores, **asked) == pytest.approx(largest["matched"])
    assert largest["mean"] <= largest["area"] + 1e-9 <= largest["matched"] + 2e-9


@few
@given(many_groups(max_size=5), st.sampled_from([parts_of, some_matching]))
def test_parts_within_labels_bound_the_gaps_of_error_rates(table, match):
    """No condition on base rates is left: nobody is matched across labels."""
    coupling = match(table, "equalized_odds")
    for part in coupling.parts:
        assert (table.labels[part.source_index] == int(part.label)).all()
        assert (table.labels[part.target_index] == int(part.label)).all()
        two = table.take(np.flatnonzero(np.isin(table.groups, part.groups)))
        gap = true_positive_gap if part.label else false_positive_gap
        rates = gap(two.labels, two.scores, threshold=None, **two.given)
        assert rates <= part.gap(table.scores) + 1e-9


NAMES = np.array(["delta", "alpha", "zeta", "beta", "gamma", "epsilon"])


@few
@given(many_groups(), st.randoms(use_true_random=False))
def test_other_names_and_another_order_change_nothing_but_names(table, random):
    sizes = np.bincount(table.groups, table.weights)
    assume((sizes == sizes.max()).sum() == 1)  # a tie for the largest is decided by the name
    named = NAMES[table.groups]
    order = np.array(random.sample(range(len(table)), len(table)))
    again = table.take(order)
    there = gap_table(table.labels, table.scores, **table.given)
    weights = None if table.weights is None else again.weights
    back = gap_table(
        again.labels, again.scores, sensitive_features=named[order], sample_weight=weights
    )
    assert there == pytest.approx(back, rel=1e-9, abs=1e-9)
    one = fair_matching(table.scores, table.groups, sample_weight=table.weights)
    other = fair_matching(again.scores, named[order], sample_weight=weights)
    gaps = {frozenset(NAMES[[*part.groups]]): part.gap(table.scores) for part in one.parts}
    others = {frozenset(part.groups): part.gap(again.scores) for part in other.parts}
    assert gaps == pytest.approx(others, rel=1e-9, abs=1e-9)


def test_three_groups_by_hand():
    """Everybody of a and of c is matched with the reference b, the largest group."""
    scores = [0.2, 0.6, 0.1, 0.5, 0.9, 1.0]
    groups = [*"aabbbc"]
    coupling = fair_matching(scores, groups)
    pairs = {}
    for part in coupling.parts:
        columns = part.source_index, part.target_index, part.mass.round(12)
        listed = zip(*(column.tolist() for column in columns), strict=True)
        pairs[part.groups] = sorted(listed)
    third, sixth = round(1 / 3, 12), round(1 / 6, 12)
    assert pairs == {
        ("a", "b"): [(0, 2, third), (0, 3, sixth), (1, 3, sixth), (1, 4, third)],
        ("c", "b"): [(5, 2, third), (5, 3, third), (5, 4, third)],
    }
    # |.2 - .1| / 3 + |.2 - .5| / 6 + |.6 - .5| / 6 + |.6 - .9| / 3, and 1 less the mean of b
    gaps = {part.groups: part.gap(scores) for part in coupling.parts}
    assert gaps == pytest.approx({("a", "b"): 0.2, ("c", "b"): 0.5})
    assert matched_parity_gap(
        None, scores, sensitive_features=groups, coupling=coupling
    ) == pytest.approx(0.5)
    assert isinstance(coupling, Coupling)
    found = gaps_by_pair(None, scores, sensitive_features=groups)
    assert [(p.first, p.second, p.better_off) for p in found] == [
        ("a", "b", "b"),
        ("a", "c", "c"),
        ("b", "c", "c"),
    ]
    assert [p.value for p in found] == pytest.approx([1 / 6, 1 / 2, 1 / 3])
    assert selection_ratio(None, scores, sensitive_features=groups) == pytest.approx(0.5)


def test_several_attributes_are_their_combinations():
    frame = pd.DataFrame({"sex": [*"ffmmff"], "race": [*"abababab"[:6]]})
    scores = [1, 0, 1, 1, 0, 0]
    joined = frame.sex + ", " + frame.race
    one = gap_table(None, scores, sensitive_features=frame)
    assert one == gap_table(None, scores, sensitive_features=joined)
    assert one["demographic_parity_gap"] == 1.0
