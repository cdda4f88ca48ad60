"""The paper's mini-batch estimate of a transport cost."""

import numpy as np
import pytest
from paper.runs import minibatch_costs

from fairmatch import fair_matching

RNG = np.random.default_rng(0)
GROUPS, SCORES, X = np.repeat([0, 1], 20), RNG.random(40), RNG.normal(size=(40, 2))


@pytest.mark.parametrize("size", [20, 1024])
def test_a_batch_of_everyone_is_exact(size):
    found = minibatch_costs(SCORES, GROUPS, X, batch_size=size, n_batches=3)
    assert found == pytest.approx(fair_matching(SCORES, GROUPS).transport_cost(X))


def test_batches_come_closer_as_they_grow():
    generator = np.random.default_rng(0)
    groups = np.repeat([0, 1], [4000, 2500])
    X = generator.normal(size=(6500, 1)) + groups[:, None]
    scores = 1 / (1 + np.exp(-X[:, 0]))
    exact = fair_matching(scores, groups).transport_cost(X)
    drawn = [
        minibatch_costs(scores, groups, X, batch_size=m, n_batches=200, seed=1)
        for m in (5, 50, 500, 2500)
    ]
    errors = [abs(costs.mean() - exact) for costs in drawn]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.01 * exact
    spread = [costs.std() for costs in drawn]
    assert spread == sorted(spread, reverse=True)


def test_batches_are_drawn_by_their_seed_alone():
    draw = [
        minibatch_costs(SCORES, GROUPS, X, batch_size=3, n_batches=4, seed=seed).tolist()
        for seed in (0, 0, 1)
    ]
    assert draw[0] == draw[1] != draw[2]
