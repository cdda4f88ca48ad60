"""The nearest fair matching and everybody's nearest people, against other ways to find them."""

import numpy as np
import pandas as pd
import pytest
from audited import labelled_model
from scipy.spatial.distance import cdist

from fairmatch import audit, matching_curve
from fairmatch.people.encoding import TableEncoder

QUICK = {"n_resamples": 100, "n_subsets": 20}


@pytest.fixture(scope="module")
def labelled():
    scores, y, group, X = labelled_model(240)
    return scores, y, group, X.assign(kind=np.where(X.z > 0.4, "a", "b"))


@pytest.fixture(scope="module")
def found(labelled):
    scores, _, group, X = labelled
    return audit(scores, sensitive_features=group, X=X, **QUICK)


@pytest.fixture(scope="module")
def points(labelled):
    return TableEncoder().fit_transform(labelled[3])


def test_the_position_is_that_of_the_curve(labelled, found, points):
    scores, _, group, _ = labelled
    near, curve = found.matching.nearest_fair, matching_curve(scores, group, points)
    assert near.slack == 0.005
    assert near.position == pytest.approx(curve.position(), abs=2e-3)
    assert near.strict_position == pytest.approx(curve.position(0.0), abs=2e-3)
    assert near.least_gap == pytest.approx(curve.least_gap)
    assert near.score_gap <= near.least_gap + near.slack + 1e-9
    assert near.random == pytest.approx(curve.random_cost)
    for point in near.curve:
        exact = curve.cost_at(max(point.gap - near.least_gap, 0.0))
        assert point.cost == pytest.approx(exact, abs=2e-3 * near.random)


def test_the_curve_falls_from_the_fairest_to_the_nearest(found):
    near = found.matching.nearest_fair
    gaps, costs = (np.array([getattr(p, name) for p in near.curve]) for name in ("gap", "cost"))
    assert gaps[0] == pytest.approx(near.least_gap)
    assert costs[-1] == pytest.approx(near.smallest, rel=1e-3)
    assert (np.diff(gaps) > 0).all()
    assert (np.diff(costs) < 0).all()


def test_the_parts_of_the_cost_sum_to_it(found):
    near = found.matching.nearest_fair
    assert {part.name for part in near.features} == {"x", "z", "kind"}
    assert sum(part.cost for part in near.features) == pytest.approx(near.cost)
    assert near.smallest <= near.cost <= found.matching.transport.cost + 1e-9
    pairs = found.individuals.pairs["nearest_fair"]
    assert np.dot(pairs.mass, pairs.distance) == pytest.approx(near.cost)


def test_everybodys_nearest_are_truly_nearest(labelled, found, points):
    scores, _, group, _ = labelled
    distances = cdist(points, points, "sqeuclidean")
    rows = np.array(found.individuals.rows)
    near = found.individuals.near
    listed = {}
    for person, other, distance, gap in zip(
        near.first, near.second, near.distance, near.score_gap, strict=True
    ):
        one, two = rows[person], rows[other]
        assert group[one] != group[two]
        assert distance == pytest.approx(distances[one, two], abs=1e-9)
        assert gap == pytest.approx(abs(scores[one] - scores[two]))
        listed.setdefault(one, []).append(distance)
    assert len(listed) == 240
    for row, own in listed.items():
        best = np.sort(distances[row, group != group[row]])[:3]
        assert own == pytest.approx(best, abs=1e-9)


def test_the_reach_counts_people_with_somebody_near_who_is_scored_alike(labelled, found, points):
    scores, _, group, _ = labelled
    distances = cdist(points, points, "sqeuclidean")
    nearest = [distances[row, group != group[row]].min() for row in range(240)]
    limit = np.sort(nearest)[215]  # the 216th of 240
    for code, reach in enumerate(found.matching.reach):
        assert (reach.group, reach.other) == (str(code), str(1 - code))
        assert reach.distance == pytest.approx(limit)
        own, others = group == code, group != code
        near = distances[np.ix_(own, others)] <= limit + 1e-9
        alike = np.abs(scores[own][:, None] - scores[others]) <= 0.02 + 1e-9
        assert reach.has_near.value == pytest.approx(near.any(axis=1).mean())
        assert reach.share.value == pytest.approx((near & alike).any(axis=1).mean())
        assert reach.share.low <= reach.share.value <= reach.share.high


@pytest.mark.parametrize("kind", ["counts", "survey"])
def test_near_is_where_nine_in_ten_have_somebody_whatever_they_weigh(kind):
    # One row in ten is far from everybody, and stands for most of the people.
    generator = np.random.default_rng(0)
    X = np.r_[generator.random(180) * 0.01, generator.random(20) * 50 + 10][:, None]
    weights = np.r_[np.ones(180), np.full(20, 200.0)]
    found = audit(
        generator.random(200),
        sensitive_features=["a", "b"] * 100,
        X=X,
        sample_weight=weights,
        weight_kind=kind,
        min_group_size=5,
        **QUICK,
    )
    first, second = found.matching.reach
    assert (first.has_near.value + second.has_near.value) / 2 >= 0.9  # both weigh as much


def test_tied_scores_leave_the_position_determined():
    # Deciles: equal quantiles leave partners open, the nearest fair matching does not.
    scores, _, group, X = labelled_model(300)
    deciles = np.ceil(10 * scores) / 10
    found = audit(deciles, sensitive_features=group, X=X, **QUICK)
    assert found.matching.transport.relative_high > found.matching.transport.relative + 0.1
    assert 0.0 <= found.matching.nearest_fair.position < 0.3


def test_every_pair_of_groups_has_its_own():
    scores, _, group, X = labelled_model(300)
    three = np.where(np.arange(300) % 3 == 0, 2, group)
    found = audit(scores, sensitive_features=three, X=X, **QUICK)
    assert [m.nearest_fair is not None for m in found.matchings] == [True, True]
    near, groups = found.individuals.near, found.individuals.group
    listed = zip(near.first, near.second, strict=True)
    pairs = {frozenset((groups[one], groups[two])) for one, two in listed}
    assert len(pairs) == 2
    assert frozenset.intersection(*pairs)  # the reference group is in both


def test_without_features_nobody_is_near(labelled):
    scores, _, group, _ = labelled
    found = audit(scores, sensitive_features=group, **QUICK)
    assert found.matching.nearest_fair is None
    assert found.matching.reach == ()
    assert found.individuals.near is None


def test_equal_people_are_at_distance_zero():
    X = pd.DataFrame({"a": np.tile([0.1, 0.7, 0.3], 40), "b": np.tile(["x", "y", "z"], 40)})
    found = audit(np.tile([0.2, 0.6, 0.9], 40), sensitive_features=np.repeat([0, 1], 60), X=X)
    assert set(found.individuals.near.distance) == {0.0}
    assert found.matching.reach[0].share.value == 1.0
    assert found.matching.nearest_fair.cost == pytest.approx(0.0)


def test_a_flip_is_a_property_of_the_pair(found):
    people = found.individuals
    pairs = people.pairs["nearest_fair"]
    for k in range(len(pairs.first)):
        scores = people.scores[pairs.first[k]], people.scores[pairs.second[k]]
        is_flip = (scores[0] >= 0.5) != (scores[1] >= 0.5)
        assert people.is_flip(k, matching="nearest_fair") == is_flip
