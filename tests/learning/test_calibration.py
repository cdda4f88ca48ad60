"""Calibration by group: decisions stay, errors shrink, and what is unavoidable stays."""

import numpy as np
import pandas as pd
import pytest

from fairmatch import fit_calibration
from fairmatch.exceptions import GroupError
from fairmatch.measures import demographic_parity_gap, equalized_odds_gap
from fairmatch.measures.distributions import calibration_error


def people(n=6000, seed=0):
    """Scores that are too high for one group and too low for the other."""
    generator = np.random.default_rng(seed)
    group = generator.choice(["a", "b"], n)
    truth = generator.beta(np.where(group == "a", 2.0, 1.2), 2.0)
    y = (generator.random(n) < truth).astype(int)
    scores = np.where(group == "a", truth**1.8, truth**0.6)
    return scores, y, group


def errors(scores, y, group):
    return {g: calibration_error(scores[group == g], y[group == g] == 1) for g in "ab"}


def test_decisions_stay_and_errors_shrink():
    calibration = fit_calibration(*people()[:2], sensitive_features=people()[2])
    scores, y, group = people(seed=1)
    found = calibration.apply(scores, group)
    assert ((found >= 0.5) == (scores >= 0.5)).all()
    for gap in (demographic_parity_gap, equalized_odds_gap):
        assert gap(y, found, sensitive_features=group) == gap(y, scores, sensitive_features=group)
    before, after = errors(scores, y, group), errors(found, y, group)
    assert all(after[g] < 0.6 * before[g] for g in "ab"), (before, after)
    for g in "ab":  # the order within a group is kept
        order = np.argsort(scores[group == g])
        assert (np.diff(found[group == g][order]) >= 0.0).all()


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.77])
def test_no_score_crosses_the_threshold_and_small_groups_stay(threshold):
    generator = np.random.default_rng(2)
    scores = np.round(generator.random(300), 2)
    scores[:4] = [0.0, 1.0, threshold, np.nextafter(threshold, 0.0)]
    group = np.where(np.arange(300) < 280, "a", "b")
    y = generator.integers(0, 2, 300)
    calibration = fit_calibration(scores, y, sensitive_features=group, threshold=threshold)
    found = calibration.apply(scores, group)
    assert ((found >= threshold) == (scores >= threshold)).all()
    assert ((found >= 0.0) & (found <= 1.0)).all()
    assert found[280:] == pytest.approx(scores[280:])
    with pytest.raises(GroupError, match="'c'"):
        calibration.apply([0.5], ["c"])
    assert calibration.apply(scores[:1], group[:1]) == found[:1]


def test_groups_of_two_attributes():
    scores, y, group = people()
    both = pd.DataFrame({"sex": group, "race": np.resize(["x", "y"], len(group))})
    calibration = fit_calibration(scores, y, sensitive_features=both)
    assert set(calibration.maps) == {"a, x", "a, y", "b, x", "b, y"}
    found = calibration.apply(scores, both)
    assert (found[:1] == calibration.apply(scores[:1], both[:1])).all()


def test_the_errors_are_at_least_what_base_rates_and_mean_scores_leave():
    """ECE of two groups add up to at least the gap of base rates less that of mean scores."""
    generator = np.random.default_rng(3)
    for _ in range(200):
        n = int(generator.integers(20, 200))
        group = np.resize(["a", "b"], n)
        scores, y = generator.random(n), generator.integers(0, 2, n)
        found = errors(scores, y, group)
        mean = [scores[group == g].mean() - y[group == g].mean() for g in "ab"]
        assert sum(found.values()) >= abs(mean[0] - mean[1]) - 1e-12
