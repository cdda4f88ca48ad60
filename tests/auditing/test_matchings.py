"""Matchings of the sample against the matchers themselves, and who is in them."""

import numpy as np
import pytest
from audited import labelled_model, planted_model

from fairmatch import OptimalTransportMatcher, audit, fair_matching, nearest_fair_matching
from fairmatch.exceptions import ColumnError, SolverError
from fairmatch.matching.fair import transport_cost_range
from fairmatch.people.encoding import TableEncoder

QUICK = {"n_resamples": 100, "n_subsets": 50}


@pytest.fixture(scope="module")
def labelled():
    return labelled_model(300)


@pytest.fixture(scope="module")
def found(labelled):
    scores, y, group, X = labelled
    return audit(scores, sensitive_features=group, X=X, y_true=y, similarity=None, **QUICK)


def test_costs_are_those_of_the_matchers(labelled, found):
    scores, _, group, X = labelled
    points = TableEncoder().fit_transform(X)
    transport = found.matching.transport
    fair = fair_matching(scores, group, X=points)
    assert transport.cost == pytest.approx(fair.transport_cost(points))
    nearest = OptimalTransportMatcher().match(points, group)
    assert transport.smallest == pytest.approx(nearest.transport_cost(points))
    first, second = points[group == 0], points[group == 1]
    everybody = ((first[:, None, :] - second[None, :, :]) ** 2).sum(axis=-1)
    assert transport.random == pytest.approx(everybody.mean())
    span = transport.random - transport.smallest
    assert transport.relative == pytest.approx((transport.cost - transport.smallest) / span)
    assert transport.smallest <= transport.cost <= transport.cost_high
    assert transport.all_rows == pytest.approx(transport.cost)


def test_ties_have_the_range_of_the_matching_module(labelled, found):
    scores, _, group, X = labelled
    points = TableEncoder().fit_transform(X)
    known = transport_cost_range(scores, group, points)
    transport = found.matching.transport
    assert transport.undetermined == pytest.approx(known.undetermined)
    assert transport.undetermined > 0.0
    assert transport.cost == pytest.approx(known.low)
    assert transport.cost_high == pytest.approx(known.high)


def test_parts_by_column_sum_to_the_whole(found):
    transport = found.matching.transport
    for part in ("cost", "smallest", "random"):
        total = sum(getattr(feature, part) for feature in transport.features)
        assert total == pytest.approx(getattr(transport, part))
    assert sum(feature.share for feature in transport.features) == pytest.approx(1.0)
    costs = [feature.cost for feature in transport.features]
    assert costs == sorted(costs, reverse=True)


def test_matched_gaps_are_those_of_the_couplings(labelled, found):
    scores, y, group, X = labelled
    points = TableEncoder().fit_transform(X)
    couplings = {
        "fair": fair_matching(scores, group, X=points),
        "marginal": OptimalTransportMatcher().match(points, group),
        "joint": OptimalTransportMatcher(label_weight=100.0).match(points, group, y),
        "nearest_fair": nearest_fair_matching(scores, group, points, slack=0.005),
    }
    assert [m.matching for m in found.matching.matched_gaps] == list(couplings)
    for matched in found.matching.matched_gaps:
        coupling = couplings[matched.matching]
        # A part runs to the larger group, here the first; facts are seen from the first group.
        assert coupling.groups == (1, 0)
        coupling = coupling.inverse
        assert matched.gap.value == pytest.approx(coupling.gap(scores), abs=1e-6)
        assert matched.gap.low <= matched.gap.value <= matched.gap.high
        assert matched.transport_cost == pytest.approx(coupling.transport_cost(points), rel=2e-4)
        assert sum(matched.histogram) == pytest.approx(1.0)
        if matched.matching == "nearest_fair":  # proven to 1e-4, so its pairs may be others
            continue
        assert matched.quantiles["1"] == pytest.approx(coupling.gaps(scores).max())
        accepted = scores >= 0.5
        ours, theirs = accepted[coupling.source_index], accepted[coupling.target_index]
        flips = matched.flips
        assert flips.first_only == pytest.approx(coupling.expect(ours & ~theirs))
        assert flips.second_only == pytest.approx(coupling.expect(~ours & theirs))
        total = flips.both + flips.neither + flips.first_only + flips.second_only
        assert total == pytest.approx(1.0)
    gap = found.gap("matched_parity_gap")
    assert gap.value == gap.ends[0] <= gap.ends[1]
    assert gap.raw[0] <= gap.raw[1]


def test_flips_of_matched_people_differ_by_the_demographic_parity_gap(found):
    # Every matching has the groups' own marginals, so the two directions differ by the gap.
    gap = found.gap("demographic_parity_gap").signed
    for matched in found.matching.matched_gaps:
        assert matched.flips.second_only - matched.flips.first_only == pytest.approx(gap)


def test_a_sample_is_a_sample_of_each_group():
    scores, group, X = planted_model(1500)
    found = audit(scores, sensitive_features=group, X=X, n_sample=100, **QUICK)
    assert found.matching.n_sampled == (100, 100)
    assert found.matching.is_sample
    rows = np.array(found.individuals.rows)
    assert len(set(rows)) == 200
    codes = (group == "male").astype(int)
    assert found.individuals.group == tuple(codes[rows])
    assert found.individuals.scores == tuple(scores[rows])
    assert found.individuals.columns["age"] == tuple(X["age"].to_numpy(float)[rows])
    assert found.individuals.columns["job"] == tuple(X["job"].to_numpy()[rows])
    points = TableEncoder().fit_transform(X)
    known = fair_matching(scores, group).transport_cost(points)
    assert found.matching.transport.all_rows == pytest.approx(known, rel=0.02)


def test_counterparts_are_people_of_the_other_group_with_their_differences(found):
    people = found.individuals
    for person in (0, 17, 250):
        partners = people.counterparts(person)
        assert partners
        pairs = people.pairs["nearest_fair"]
        for k in partners:
            both = {pairs.first[k], pairs.second[k]}
            assert person in both
            assert {people.group[p] for p in both} == {0, 1}
            gap = abs(people.scores[pairs.first[k]] - people.scores[pairs.second[k]])
            assert pairs.score_gap[k] == pytest.approx(gap)
            for difference in people.differences(k):
                values = people.columns[difference.column]
                assert difference.first == values[pairs.first[k]]
                assert difference.second == values[pairs.second[k]]
                assert difference.first != difference.second


def test_the_most_unlike_pairs_are_farthest_apart(found):
    distance = found.individuals.pairs["nearest_fair"].distance
    order = found.individuals.most_unlike(5)
    assert [distance[k] for k in order] == sorted(distance, reverse=True)[:5]


def test_ids_name_people_and_row_numbers_stand_in(labelled):
    scores, _, group, _ = labelled
    ids = [f"person {k}" for k in range(len(scores))]
    named = audit(scores, sensitive_features=group, ids=ids, n_resamples=100)
    listed = named.individuals
    assert listed.ids == tuple(f"person {row}" for row in listed.rows)
    numbered = audit(scores, sensitive_features=group, n_resamples=100).individuals
    assert numbered.ids == tuple(map(str, numbered.rows))


def test_people_can_be_left_out_and_columns_hidden(found):
    assert found.without_individuals().individuals is None
    assert found.without_individuals(min_cell=1).gaps == found.gaps
    hidden = found.hiding("x")
    assert list(hidden.individuals.columns) == ["z"]
    assert hidden.individuals.hidden == ("x",)
    with pytest.raises(ColumnError, match="'age'"):
        found.hiding("age")


def test_identical_people_have_no_relative_cost():
    scores = np.linspace(0, 1, 100)
    found = audit(scores, sensitive_features=np.tile([0, 1], 50), X=np.ones((100, 1)), **QUICK)
    assert found.matching.transport.relative is None
    assert found.matching.transport.features[0].share == 0.0


def test_an_audit_goes_on_without_what_cannot_be_proven(monkeypatch):
    def fail(self, *given, **options):
        raise SolverError("The duality gap stayed open.")

    monkeypatch.setattr(OptimalTransportMatcher, "match_people", fail)
    scores, y, group, X = labelled_model(300)
    found = audit(scores, sensitive_features=group, X=X, y_true=y, **QUICK)
    assert [m.matching for m in found.matching.matched_gaps] == ["fair", "nearest_fair"]
    assert found.matching.transport is None
    assert found.matching.nearest_fair is None
    assert len(found.matching.unproven) == 2
    assert all("could not be proven" in said for said in found.matching.unproven)
    assert set(found.matching.unproven) <= set(found.refusals)
    assert found.gap("wasserstein_parity_gap").value is not None
    assert found.subsets.subsets
    assert found.individuals.pairs.keys() == {"fair", "nearest_fair"}
