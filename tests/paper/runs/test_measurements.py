import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from paper.specs import Problem
from scipy.stats import iqr, spearmanr
from smallruns import small_problem

from fairmatch import fair_matching, measures
from fairmatch.datasets import load_german
from fairmatch.matching.fair import minibatch_transport_cost
from paper.runs import measure_test, measure_training, pack_scores, unpack_scores

close = pytest.approx


@pytest.fixture(scope="module")
def problem():
    return Problem.draw(load_german(), 0)


def scorer_of(problem, seed=0):
    """Scores that follow some features, and the group a little."""
    noise = np.random.default_rng(seed).normal(size=problem.split.X_test.shape[1])
    at = 1 / (1 + np.exp(-problem.split.X_test @ noise))
    return lambda groups: 0.9 * at + 0.1 * np.asarray(groups)


@pytest.mark.parametrize(
    "gap",
    [
        *("demographic_parity_gap", "mean_parity_gap", "wasserstein_parity_gap", "ks_parity_gap"),
        *("true_positive_gap", "false_positive_gap", "equalized_odds_gap"),
    ],
)
def test_gaps_are_those_of_the_measures(problem, gap):
    found, split = measure_test(scorer_of(problem), problem), problem.split
    scores = scorer_of(problem)(split.group_test)
    direct = getattr(measures, gap)
    whole = direct(split.y_test, scores, sensitive_features=split.group_test)
    assert found[gap] == close(whole, abs=1e-5)
    if gap in ("demographic_parity_gap", "mean_parity_gap", "wasserstein_parity_gap"):
        for name, rows in problem.named_subsets().items():
            inside = direct(None, scores[rows], sensitive_features=split.group_test[rows])
            assert found[f"{name}: {gap}"] == close(inside, abs=1e-5)


def test_half_spaces_are_described_as_a_box_plot_does(problem):
    found, split = measure_test(scorer_of(problem), problem), problem.split
    gaps = measures.random_subset_gaps(
        None,
        scorer_of(problem)(split.group_test),
        sensitive_features=split.group_test,
        X=split.X_test,
        n_subsets=1000,
        random_state=0,
    )
    gaps = gaps[np.isfinite(gaps)]
    assert found["half-spaces: n"] == len(gaps)
    assert found["half-spaces: mean"] == close(gaps.mean(), abs=1e-5)
    assert found["half-spaces: largest"] == close(gaps.max(), abs=1e-5)
    low, *quartiles, high = found["half-spaces: box"]
    assert quartiles == close(np.quantile(gaps, [0.25, 0.5, 0.75]).tolist(), abs=1e-5)
    outside = (gaps < low - 1e-5) | (gaps > high + 1e-5)
    assert found["half-spaces: outliers"] == close(np.sort(gaps[outside]).tolist(), abs=1e-3)
    # Whiskers end at the last gaps within one and a half boxes (Tukey).
    reach = 1.5 * iqr(gaps)
    within = [gap for gap in gaps if quartiles[0] - reach <= gap <= quartiles[2] + reach]
    assert (low, high) == close((min(within), max(within)), abs=1e-5)
    assert len(found["half-spaces: outliers"]) == len(gaps) - len(within)


def test_transport_cost_is_the_papers_estimate(problem):
    split = problem.split
    scores = scorer_of(problem)(split.group_test)
    size = int(np.bincount(split.group_test).min())
    direct = minibatch_transport_cost(
        scores, split.group_test, split.X_test, batch_size=size, n_batches=100, random_state=0
    )
    found = measure_test(scorer_of(problem), problem)
    assert found["transport_cost"] == close(direct.mean, abs=1e-5)


def test_ranks_and_flips_against_a_reference(problem):
    groups = problem.split.group_test
    reference = scorer_of(problem, seed=1)(groups)
    scores = scorer_of(problem)(groups)
    found = measure_test(scorer_of(problem), problem, reference)
    for code in (0, 1):
        rows = groups == code
        assert found[f"rank agreement: S={code}"] == close(
            spearmanr(reference[rows], scores[rows]).statistic, abs=1e-5
        )
        before, after = reference[rows] >= 0.5, scores[rows] >= 0.5
        counts = [int(((after == a) & (before == b)).sum()) for a in (0, 1) for b in (0, 1)]
        assert found[f"flips: S={code}"] == counts
        # Men, S = 1, are favoured: they should not gain, and women should not lose.
        wrong = after & ~before if code == 1 else before & ~after
        assert found[f"undesirable flips: S={code}"] == wrong.sum()
    without = measure_test(scorer_of(problem), problem)
    assert not [name for name in without if "rank" in name or "flips" in name]


def test_a_case_by_hand():
    problem = small_problem()
    split = replace(
        problem.split,
        X_test=np.array([[0.0], [1.0], [0.0], [1.0]]),
        y_test=np.array([0, 1, 0, 1]),
        group_test=np.array([0, 0, 1, 1]),
    )
    scores = {0: np.array([0.25, 0.75, 0.5, 0.75]), 1: np.array([0.5, 1.5, 0.5, 1.0])}
    found = measure_test(
        lambda groups: np.where(groups == 0, scores[0], scores[1]), replace(problem, split=split)
    )
    # Scores are .25 and .75 in group 0, .5 and 1 in group 1; the 1.5 is cut off at 1.
    assert found["accuracy"] == 0.75
    assert found["acceptance_rate"] == 0.75
    assert found["demographic_parity_gap"] == 0.5
    assert found["mean_parity_gap"] == found["wasserstein_parity_gap"] == 0.25
    assert found["true_positive_gap"] == 0.0
    assert found["false_positive_gap"] == 1.0
    assert found["equalized_odds_gap"] == 0.5
    assert found["consistency"] == 0.75, "row 0 alone would be decided otherwise"
    assert found["transport_cost"] == 0.0
    json.dumps(found, allow_nan=False)


def test_training_rows(problem):
    split = problem.split
    scores = np.random.default_rng(0).uniform(-0.1, 1.1, size=len(split.y_train))
    inside = np.clip(scores, 0, 1)
    coupling = fair_matching(inside, split.group_train)
    found = measure_training(scores, problem, coupling)
    assert found["training: accuracy"] == close(np.mean((scores >= 0.5) == split.y_train), abs=1e-5)
    gap = measures.wasserstein_parity_gap(None, inside, sensitive_features=split.group_train)
    assert found["training: wasserstein_parity_gap"] == close(gap, abs=1e-5)
    assert found["training: matched_parity_gap"] == close(gap, abs=1e-5), "Proposition 3.5"
    assert "training: matched_parity_gap" not in measure_training(scores, problem, None)


@given(arrays(float, st.integers(0, 20), elements=st.floats(0, 1)))
def test_packed_scores_are_nearly_the_scores(scores):
    back = unpack_scores(pack_scores(scores))
    assert len(back) == len(scores)
    assert np.all(np.abs(back - scores) <= 1 / 131070 + 1e-12)
    assert np.array_equal(unpack_scores(pack_scores(back)), back)


def test_packing_keeps_a_score_of_one_half_accepted():
    assert unpack_scores(pack_scores(np.array([0.5])))[0] >= 0.5
