"""Which way is good: with low scores favourable, everything is told of those below."""

import numpy as np
import pytest
from audited import labelled_model

from fairmatch import audit
from fairmatch.exceptions import InputError

QUICK = {"n_resamples": 100, "n_subsets": 10, "n_sample": 100}


@pytest.fixture(scope="module")
def both():
    risk, y, group, X = labelled_model(400)
    given = {"sensitive_features": group, "X": X, "y_true": y, **QUICK}
    return (
        audit(risk, favourable="low", **given),
        # The same people, scored by how little they risk; no score is at the threshold there.
        audit(np.where(risk < 0.5, 1 - risk, 0.4), **{**given, "y_true": 1 - y}),
        (risk, y, group),
    )


def test_low_scores_are_selected(both):
    low, mirrored, (risk, y, group) = both
    assert (low.favourable, low.outcome) == ("low", "not flagged")
    assert low.n_selected == (risk < 0.5).sum()
    for ours, theirs in zip(low.groups, mirrored.groups, strict=True):
        for name in ("selection_rate", "base_rate", "accuracy", "true_positive_rate"):
            assert getattr(ours, name) == getattr(theirs, name)
        assert ours.false_positive_rate == theirs.false_positive_rate
    own = group == 0
    rate = (risk[own & (y == 0)] < 0.5).mean()
    assert low.groups[0].true_positive_rate.value == pytest.approx(rate)
    assert low.selection_ratio == mirrored.selection_ratio
    for name in ("demographic_parity_gap", "true_positive_gap", "false_positive_gap"):
        assert low.gap(name).value == pytest.approx(mirrored.gap(name).value)
        assert low.gap(name).signed == pytest.approx(mirrored.gap(name).signed)
        assert low.gap(name).favoured == mirrored.gap(name).favoured


def test_ranking_and_calibration_stay_those_of_the_scores(both):
    low, _, (risk, y, group) = both
    high = audit(risk, sensitive_features=group, y_true=y, **QUICK)
    for ours, theirs in zip(low.groups, high.groups, strict=True):
        assert ours.auc == theirs.auc
        assert ours.calibration == theirs.calibration
        assert ours.mean_score == theirs.mean_score
    assert low.gap("mean_parity_gap").favoured != high.gap("mean_parity_gap").favoured


def test_people_are_listed_with_their_outcome(both):
    low, _, _ = both
    people = low.individuals
    assert people.selected == tuple(int(score < 0.5) for score in people.scores)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "selected"),
        ({"outcome": "flagged"}, "flagged"),
        ({"favourable": "low"}, "not flagged"),
        ({"favourable": "low", "outcome": "flagged"}, "not flagged"),
        ({"favourable": "low", "outcome": "granted bail"}, "granted bail"),
    ],
)
def test_the_outcome_has_a_name(given, words):
    found = audit([0.2, 0.8] * 60, sensitive_features=["a", "a", "b", "b"] * 30, **given)
    assert found.outcome == words


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"favourable": "up"}, "'high', 'low'"),
        ({"outcome": " "}, "outcome is empty"),
        ({"threshold": 5.0}, r"threshold must be a number in \[0, 1\]"),
        ({"threshold": -0.1}, "threshold"),
        ({"confidence": 0.05}, "confidence"),
    ],
)
def test_settings_out_of_range_are_errors(change, said):
    with pytest.raises(InputError, match=said):
        audit([0.2, 0.8] * 60, sensitive_features=["a", "a", "b", "b"] * 30, **change)


@pytest.mark.parametrize(
    ("scores", "said"), [(0.2, "Nobody is hired"), (0.7, "Everybody is hired")]
)
def test_decisions_that_tell_nobody_apart_are_said(scores, said):
    found = audit(np.full(120, scores), sensitive_features=["a", "b"] * 60, outcome="hired")
    assert said in found.undecided


def test_decisions_that_differ_are_decided(both):
    assert both[0].undecided is None
