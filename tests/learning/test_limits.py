"""Upper confidence limits of gaps, against what they promise."""

import numpy as np
import pytest

from fairmatch.measures import MEASURES
from fairmatch.measures.gaps import read_scored

LIMITED = [name for name, own in MEASURES.items() if own.limit and not own.is_relative]


def upper_limit(measure, scores, positive, groups, weights, confidence):
    scored = read_scored(scores, groups, weights, positive)
    return MEASURES[measure].upper_limit(scored, confidence)


@pytest.mark.parametrize("measure", LIMITED)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_true_gap_is_below_the_limit(measure, weighted):
    generator = np.random.default_rng(0)
    group, above, n_tables = np.repeat([0, 1], 150), 0, 300
    truth = 0.2  # of rates and means alike, within each class
    for _ in range(n_tables):
        rate = np.where(group == 1, 0.6, 0.4)
        scores = (generator.random(300) < rate).astype(float)
        positive = generator.random(300) < 0.5
        weights = generator.uniform(0.5, 1.5, 300) if weighted else None
        above += truth > upper_limit(measure, scores, positive, group, weights, 0.9)
    # A tenth is allowed; three standard errors of the simulation are added.
    assert above / n_tables <= 0.1 + 3 * np.sqrt(0.09 / n_tables)


def test_the_limit_of_a_weighted_mean_is_about_the_weighted_mean():
    groups = np.repeat([0, 1], 100)
    scores = np.tile([0.0, 1.0], 100)
    weights = np.where(np.repeat([0, 1], 100) == 1, np.tile([1.0, 9.0], 100), 1.0)
    # The weighted means are 0.5 and 0.9; without weights they are equal.
    given = "mean_parity_gap", scores, scores > 0.5, groups
    assert upper_limit(*given, weights, 0.95) > 0.4
    assert upper_limit(*given, None, 0.95) < 0.2
