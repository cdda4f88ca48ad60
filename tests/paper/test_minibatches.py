"""The paper's mini-batch estimate of a transport cost."""

import numpy as np
import pytest
from paper.minibatches import minibatch_transport_cost

from fairmatch import fair_matching
from fairmatch.exceptions import GroupError, InputError

RNG = np.random.default_rng(0)
GROUPS, SCORES, X = np.repeat([0, 1], 20), RNG.random(40), RNG.normal(size=(40, 2))


def test_a_batch_of_everyone_is_exact():
    found = minibatch_transport_cost(SCORES, GROUPS, X, batch_size=20, n_batches=3, random_state=0)
    exact = fair_matching(SCORES, GROUPS).transport_cost(X)
    assert found.costs == pytest.approx(exact)
    assert found.standard_error == pytest.approx(0.0, abs=1e-12)


def test_batches_come_closer_as_they_grow():
    generator = np.random.default_rng(0)
    groups = np.repeat([0, 1], [4000, 2500])
    X = generator.normal(size=(6500, 1)) + groups[:, None]
    scores = 1 / (1 + np.exp(-X[:, 0]))
    exact = fair_matching(scores, groups).transport_cost(X)
    estimates = [
        minibatch_transport_cost(scores, groups, X, batch_size=m, n_batches=200, random_state=1)
        for m in (5, 50, 500, 2500)
    ]
    errors = [abs(estimate.mean - exact) for estimate in estimates]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.01 * exact
    spread = [estimate.standard_error for estimate in estimates]
    assert spread == sorted(spread, reverse=True)
    assert spread[0] == pytest.approx(estimates[0].costs.std(ddof=1) / 200**0.5)


def test_batches_are_drawn_by_their_seed_alone():
    draw = [
        minibatch_transport_cost(
            SCORES, GROUPS, X, batch_size=3, n_batches=4, random_state=seed
        ).costs.tolist()
        for seed in (0, 0, 1, np.random.default_rng(0))
    ]
    assert draw[0] == draw[1] == draw[3] != draw[2]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"batch_size": 21}, GroupError, "Group 0 has 20 rows, fewer than batch_size=21"),
        ({"batch_size": "x"}, InputError, "batch_size must be a whole number of at least 1"),
        ({"batch_size": 1, "n_batches": 0}, InputError, "n_batches must be a whole number"),
        ({"batch_size": 1, "random_state": "x"}, InputError, "random_state"),
    ],
)
def test_bad_choices(given, error, message):
    with pytest.raises(error, match=message):
        minibatch_transport_cost(SCORES, GROUPS, X, **given)
