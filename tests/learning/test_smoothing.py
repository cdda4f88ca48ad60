"""Smoothing against dense systems, closed forms and what must hold for every coupling."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairmatch import Coupling, OptimalTransportMatcher
from fairmatch.exceptions import CouplingError, InputError
from fairmatch.learning.smoothing import smooth_scores


def dense(scores, coupling, weight, sample_weight=None):
    """The same targets by a dense solve."""
    n = len(scores)
    w = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    w = w / w.sum()
    mass = np.zeros((n, n))
    np.add.at(mass, (coupling.source_index, coupling.target_index), coupling.mass)
    mass = mass + mass.T
    return np.linalg.solve(np.diag(w) + weight * (np.diag(mass.sum(axis=1)) - mass), w * scores)


@settings(max_examples=25)
@given(st.integers(0, 50), st.sampled_from([0.01, 1.0, 30.0]), st.booleans(), st.integers(2, 4))
def test_a_dense_solve_gives_the_same_targets(seed, weight, weighted, n_groups):
    generator = np.random.default_rng(seed)
    groups = np.concatenate([np.arange(n_groups), generator.integers(0, n_groups, 20)])
    X, scores = generator.random((len(groups), 2)), generator.random(len(groups))
    weights = generator.uniform(0.5, 2.0, len(groups)) if weighted else None
    coupling = OptimalTransportMatcher().match(X, groups, sample_weight=weights)
    (found,) = smooth_scores(scores, coupling, [weight], sample_weight=weights)
    wanted = dense(scores, coupling, weight, weights)
    assert np.allclose(found, wanted, atol=1e-8)
    # Each target is a mean of scores: they stay in the range, and so does their weighted mean.
    assert found.min() >= scores.min()
    assert found.max() <= scores.max()
    assert np.average(found, weights=weights) == pytest.approx(np.average(scores, weights=weights))


def test_a_path_is_what_each_weight_gives_alone_and_gaps_fall_along_it():
    generator = np.random.default_rng(0)
    groups, X = generator.integers(0, 2, 200), generator.random((200, 3))
    scores = generator.random(200)
    coupling = OptimalTransportMatcher().match(X, groups)
    path = smooth_scores(scores, coupling, [0.0, 0.5, 5.0, 500.0])
    assert np.array_equal(path[0], scores)
    assert np.array_equal(path[2], smooth_scores(scores, coupling, [5.0])[0])
    gaps = [coupling.expect(coupling.gaps(targets) ** 2) for targets in path]
    assert (np.diff(gaps) < 0.0).all()
    assert gaps[-1] < 1e-3 * gaps[0]


def test_one_pair_has_a_closed_form_and_unmatched_rows_keep_their_score():
    coupling = Coupling([0], [1], [1.0], n_rows=3, groups=("a", "b"))
    (found,) = smooth_scores([0.0, 1.0, 0.7], coupling, [2.0])
    # t0 + t1 = 1, and w (t0 - 0) = 2 (t1 - t0) with w = 1/3.
    first = 2.0 / (1.0 / 3.0 + 4.0)
    assert np.allclose(found, [first, 1.0 - first, 0.7])
    # Scores of any unit, far from zero.
    (moved,) = smooth_scores([1e6, 1e6 + 1.0, 1e6 + 0.7], coupling, [2.0])
    assert np.allclose(moved - 1e6, found, atol=1e-8)


def test_rows_of_no_weight_keep_their_score_unless_they_are_matched():
    coupling = Coupling([0], [1], [1.0], n_rows=3, groups=("a", "b"))
    (found,) = smooth_scores([0.0, 1.0, 0.7], coupling, [1.0], sample_weight=[1.0, 1.0, 0.0])
    assert found[2] == 0.7
    with pytest.raises(InputError, match="1 matched rows have a sample_weight of zero"):
        smooth_scores([0.0, 1.0, 0.7], coupling, [1.0], sample_weight=[1.0, 0.0, 1.0])


def test_bad_input_is_named():
    coupling = Coupling([0], [1], [1.0], n_rows=2, groups=("a", "b"))
    with pytest.raises(CouplingError, match="table of 2 rows"):
        smooth_scores([0.1, 0.2, 0.3], coupling, [1.0])
    with pytest.raises(InputError, match="fairness_weight must be a number"):
        smooth_scores([0.1, 0.2], coupling, [-1.0])
    with pytest.raises(InputError, match="NaN or infinite"):
        smooth_scores([0.1, np.nan], coupling, [1.0])
    assert smooth_scores([0.4, 0.4], coupling, [1.0]).tolist() == [[0.4, 0.4]]
