"""Couplings of several groups and classes: every part by itself, and their weighted sum."""

from dataclasses import replace

import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_tables import Table, many_groups

from fairmatch import Coupling, OptimalTransportMatcher, bands, fair_matching
from fairmatch.exceptions import CouplingError, GroupError, InputError, LabelError
from fairmatch.matching.coupling import join_parts
from fairmatch.matching.fair import match_quantiles
from fairmatch.matching.matchers import match_people
from fairmatch.matching.nearest import Frontier
from fairmatch.people.encoding import read_points
from fairmatch.people.groups import CRITERIA, read_groups
from fairmatch.people.people import Codes, Labels, People
from fairmatch.people.weights import Weights

PARITY = CRITERIA["demographic_parity"]

close = pytest.approx
criteria = st.sampled_from(sorted(CRITERIA))


def members(table: Table, part: Coupling, group: int) -> np.ndarray:
    inside = table.groups == group
    return inside if part.label is None else inside & (table.labels == int(part.label))


def shares(table: Table, rows: np.ndarray) -> np.ndarray:
    weights = np.ones(len(table)) if table.weights is None else table.weights
    return weights[rows] / weights[rows].sum()


def fair(table: Table, criterion: str, **more) -> Coupling:
    given_labels = {"y_true": table.labels, "sample_weight": table.weights}
    return fair_matching(table.scores, table.groups, criterion=criterion, **given_labels, **more)


@given(many_groups(), criteria)
def test_every_part_of_the_fair_matching_is_one_dimensional_transport(table, criterion):
    coupling = fair(table, criterion)
    n_groups = len(set(table.groups.tolist()))
    assert len(coupling.parts) == (n_groups - 1) * len(CRITERIA[criterion].labels)
    assert sum(part.weight for part in coupling.parts) == close(1.0)
    for part in coupling.parts:
        rows = [np.flatnonzero(members(table, part, group)) for group in part.groups]
        masses = [shares(table, r) for r in rows]
        expected = ot.emd2_1d(*(table.scores[r] for r in rows), *masses, metric="euclidean")
        assert part.gap(table.scores) == close(expected, abs=1e-9)
        for marginal, r, mass in zip(part.marginals(), rows, masses, strict=True):
            np.testing.assert_allclose(marginal[r], mass, atol=1e-9)
            assert marginal.sum() == close(1.0)
    mean = sum(part.weight * part.gap(table.scores) for part in coupling.parts)
    assert coupling.gap(table.scores) == close(mean, abs=1e-12)
    assert coupling.largest_gap(table.scores) == max(p.gap(table.scores) for p in coupling.parts)


@settings(max_examples=30)
@given(many_groups(max_groups=4), criteria)
def test_every_part_of_optimal_transport_is_pots(table, criterion):
    matcher = OptimalTransportMatcher(criterion=criterion)
    coupling = matcher.match(table.X, table.groups, table.labels, sample_weight=table.weights)
    for part in coupling.parts:
        rows = [np.flatnonzero(members(table, part, group)) for group in part.groups]
        best = ot.emd2(*(shares(table, r) for r in rows), ot.dist(*(table.X[r] for r in rows)))
        assert part.transport_cost(table.X) == close(best, abs=1e-9)
        assert part.certificate.cost == close(best, abs=1e-9)
    proof = coupling.certificate
    assert proof.cost == close(coupling.transport_cost(table.X), abs=1e-9)
    assert proof.relative_gap < 1e-9


@given(many_groups(), criteria, st.integers(0, 2**32))
def test_names_and_order_of_groups_change_nothing_else(table, criterion, seed):
    sizes = np.bincount(table.groups, table.weights)
    if (sizes == sizes.max()).sum() > 1:
        return  # a tie for the largest is settled by the names
    names = np.random.default_rng(seed).permutation([f"g{k}" for k in range(len(sizes))])
    renamed = replace(table, groups=names[table.groups])
    before, after = fair(table, criterion), fair(renamed, criterion)
    assert after.gap(table.scores) == close(before.gap(table.scores), abs=1e-12)
    gaps = {(p.groups[0], p.label): p.gap(table.scores) for p in after.parts}
    for part in before.parts:
        assert gaps[names[part.groups[0]], part.label] == close(part.gap(table.scores), abs=1e-12)


@given(many_groups(), criteria)
def test_two_groups_differ_by_no_more_than_their_ways_to_the_reference(table, criterion):
    coupling = fair(table, criterion)
    for first in coupling.parts:
        for second in coupling.parts:
            if first is second or first.label != second.label:
                continue
            rows = [
                members(table, first, first.groups[0]),
                members(table, second, second.groups[0]),
            ]
            masses = [shares(table, np.flatnonzero(r)) for r in rows]
            direct = ot.emd2_1d(*(table.scores[r] for r in rows), *masses, metric="euclidean")
            assert direct <= first.gap(table.scores) + second.gap(table.scores) + 1e-9


def test_three_groups_by_hand():
    scores, groups = [0.1, 0.9, 0.2, 0.6, 0.5], ["a", "a", "b", "b", "c"]
    coupling = fair_matching(scores, groups)  # a and b tie for the largest: a is the reference
    assert [part.groups for part in coupling.parts] == [("b", "a"), ("c", "a")]
    assert coupling.source_index.tolist() == [2, 3, 4, 4]
    assert coupling.target_index.tolist() == [0, 1, 0, 1]
    assert coupling.mass.tolist() == [0.25, 0.25, 0.25, 0.25]
    assert [part.gap(scores) for part in coupling.parts] == close([0.2, 0.4])
    assert coupling.gap(scores) == close(0.3)
    assert coupling.largest_gap(scores) == close(0.4)
    named = fair_matching(scores, groups, reference="c")
    assert [part.groups for part in named.parts] == [("a", "c"), ("b", "c")]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["matcher", "own matcher", "quantiles", "nearest"])
def test_a_coupling_within_strata_is_that_of_separate_problems(kind, weighted):
    rng, n = np.random.default_rng(0), 90
    scores, points = rng.random(n).round(2), read_points(rng.normal(size=(n, 2)))
    weight = Weights(n, rng.uniform(0.5, 2.0, n)) if weighted else None
    strata = Codes(rng.integers(0, 3, n), ("low", "middle", "high"))
    people = People(read_groups(rng.permutation(list("abc" * 30))), weight=weight)

    def matched(people, scores, points):
        if kind == "matcher":
            return OptimalTransportMatcher(reference="b").match_people(people, points)
        if kind == "own matcher":
            return match_people(Backwards(), people, points, criterion=PARITY, reference="b")
        parts = people.comparisons(PARITY, "b")
        if kind == "quantiles":
            return join_parts([match_quantiles(people, part, scores) for part in parts])
        return join_parts(
            [Frontier(people, part, scores, points, 1e-9).at_slack(0.01) for part in parts]
        )

    coupling = matched(replace(people, strata=strata), scores, points)
    assert {part.stratum for part in coupling.parts} == set(strata.labels)
    for code, label in enumerate(strata.labels):
        rows = np.flatnonzero(strata.values == code)
        alone = matched(people.take(rows), scores[rows], points[rows])
        inside = [part for part in coupling.parts if part.stratum == label]
        for part, own in zip(inside, alone.parts, strict=True):
            assert part.groups == own.groups
            np.testing.assert_array_equal(part.source_index, rows[own.source_index])
            np.testing.assert_array_equal(part.target_index, rows[own.target_index])
            np.testing.assert_array_equal(part.mass, own.mass)
            assert part.certificate == own.certificate


class Backwards:
    """A matcher of somebody's own: it matches the k-th row with the k-th from the end."""

    def __init__(self):
        self.seen = []

    def match(self, X, sensitive_features, y=None, *, sample_weight=None):
        groups = read_groups(sensitive_features).only_two("Backwards")
        self.seen.append((len(X), set(groups.labels), None if y is None else set(y.tolist())))
        n = int(groups.sizes().min())
        pairs = groups.rows(0)[:n], groups.rows(1)[::-1][:n]
        return Coupling(*pairs, np.full(n, 1 / n), n_rows=len(X), groups=groups.labels)


def test_a_matcher_of_ones_own_is_run_once_per_part():
    names, y = np.array(list("aabbcc")), np.array([1, 0, 1, 0, 1, 0])
    groups, matcher = read_groups(names), Backwards()
    X = np.arange(6.0)[:, None]
    people = People(groups, labels=Labels(y.astype(float), (0, 1)))
    coupling = match_people(matcher, people, X, criterion=CRITERIA["equalized_odds"])
    assert matcher.seen == [(2, {"a", "b"}, {1}), (2, {"a", "c"}, {1}),
                            (2, {"a", "b"}, {0}), (2, {"a", "c"}, {0})]  # fmt: skip
    pairs = [(p.source_index.tolist(), p.target_index.tolist()) for p in coupling.parts]
    assert pairs == [([0], [2]), ([0], [4]), ([1], [3]), ([1], [5])]
    coupling.check_groups(groups)


def test_estimators_match_bands_as_the_matcher_does():
    # Among people on a grid there are many cheapest plans; the order of the groups picks one. The
    # bands are in the order of the ages, and not in that of their names.
    rng = np.random.default_rng(0)
    points = read_points(rng.integers(0, 4, (100, 2)).astype(float))
    people = People(read_groups(bands(np.repeat([20.0, 35.0], [40, 60]), [30, 50])))
    assert people.groups.labels == ("under 30", "30 to under 50")
    matcher = OptimalTransportMatcher()
    found = match_people(matcher, people, points, criterion=PARITY)
    known = matcher.match_people(people, points)
    for part, own in zip(found.parts, known.parts, strict=True):
        assert part.groups == own.groups
        np.testing.assert_array_equal(part.source_index, own.source_index)
        np.testing.assert_array_equal(part.target_index, own.target_index)
        np.testing.assert_array_equal(part.mass, own.mass)


def test_errors_name_the_group():
    people = People(read_groups(["a", "a", "b", "b", "c"]))
    labels = Labels(np.array([1.0, 0, 1, 0, 0]), (0, 1))
    with pytest.raises(LabelError, match="Group 'c' has no rows with a positive label"):
        replace(people, labels=labels).comparisons(CRITERIA["equal_opportunity"])
    with pytest.raises(GroupError, match="weights of group 'c' sum to zero"):
        replace(people, weight=Weights(5, np.array([1.0, 1, 1, 1, 0]))).comparisons(PARITY)
    with pytest.raises(InputError, match="matches only people of the same class"):
        OptimalTransportMatcher(label_weight=1.0, criterion="equalized_odds")


def test_joined_couplings_refuse_what_is_for_two_groups():
    scores, groups = [0.1, 0.9, 0.2, 0.6, 0.5], ["a", "a", "b", "b", "c"]
    coupling = fair_matching(scores, groups)
    assert repr(coupling) == "<Coupling of 3 groups in 2 parts: 4 pairs, 5 rows>"
    with pytest.raises(CouplingError, match="has 2 parts, but a matrix shows only one"):
        coupling.to_dense(groups)
    with pytest.raises(CouplingError, match="different lengths"):
        join_parts([coupling.parts[0], replace(coupling.parts[1], n_rows=9)])
    with pytest.raises(CouplingError, match="no part"):
        join_parts([])
    with pytest.raises(GroupError, match="compares two groups"):
        Coupling.from_plan(np.eye(2) / 2, groups)
    back = coupling.inverse.inverse
    assert back.groups == coupling.groups
    np.testing.assert_array_equal(back.source_index, coupling.source_index)
