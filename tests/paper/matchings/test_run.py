"""Matchings of recorded models: the facts that are kept of one."""

import numpy as np
import pytest
from smallruns import small_problem

from fairmatch.measures import wasserstein_parity_gap
from paper.matchings import matching_facts, random_cost, sample_rows


def test_a_random_matching_costs_the_mean_squared_distance():
    generator = np.random.default_rng(0)
    features, groups = generator.normal(size=(40, 3)), np.repeat([0, 1], [15, 25])
    first, second = features[groups == 0], features[groups == 1]
    every = ((first[:, None] - second) ** 2).sum(axis=2).mean()
    assert random_cost(features, groups) == pytest.approx(every)


def test_the_position_falls_with_slack_and_is_nought_for_scores_of_the_nearest():
    split = small_problem().split
    generator = np.random.default_rng(1)
    scores = generator.random(len(split.X_test))
    found = matching_facts(scores, split.group_test, split.X_test, 0.01)
    assert 0.0 <= found["position"] <= found["position, no slack"] + 1e-9 <= 1.0
    gap = wasserstein_parity_gap(None, scores, sensitive_features=split.group_test)
    assert found["wasserstein_parity_gap"] == pytest.approx(gap)
    constant = matching_facts(np.full(len(scores), 0.4), split.group_test, split.X_test, 0.0)
    assert constant["position"] == pytest.approx(0.0, abs=1e-9)
    assert constant["nearest people's gap"] == 0.0


def test_samples_are_of_each_group_and_the_same_for_a_seed():
    groups = np.repeat([0, 1], [30, 200])
    rows = sample_rows(groups, 50, 3)
    assert np.bincount(groups[rows]).tolist() == [30, 50]
    assert np.array_equal(rows, sample_rows(groups, 50, 3))
