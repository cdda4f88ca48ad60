"""Matchings within strata, against separate problems."""

import numpy as np
import pandas as pd
import pytest

from fairmatch import OptimalTransportMatcher
from fairmatch.matching.coupling import join_parts


@pytest.fixture
def people():
    random = np.random.default_rng(5)
    frame = pd.DataFrame(random.random((120, 2)), columns=["age", "pay"])
    frame["title"] = random.choice(["clerk", "cook", "head"], 120)
    return frame, random.choice(["f", "m"], 120), random.integers(2, size=120)


def test_one_stratum_is_the_unconditional_matching_to_the_bit(people):
    X, groups, _ = people
    plain = OptimalTransportMatcher().match(X, groups)
    inside = OptimalTransportMatcher().match(X, groups, given=["x"] * len(X))
    for name in ("source_index", "target_index", "mass"):
        assert (getattr(plain, name) == getattr(inside, name)).all()


@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
def test_matchings_within_strata_are_separate_problems(people, criterion):
    X, groups, y = people
    numbers = X[["age", "pay"]].to_numpy()
    matcher = OptimalTransportMatcher(criterion=criterion, reference="m")
    found = matcher.match(numbers, groups, y, given=X.title)
    assert {part.stratum for part in found.parts} == {
        "title clerk", "title cook", "title head",
    }  # fmt: skip
    for part in found.parts:
        rows = np.flatnonzero(("title " + X.title).to_numpy() == part.stratum)
        own = matcher.match(numbers[rows], groups[rows], y[rows])
        own = next(one for one in own.parts if one.label == part.label)
        assert part.transport_cost(numbers) == pytest.approx(own.transport_cost(numbers[rows]))
        assert (rows[np.sort(own.source_index)] == np.sort(part.source_index)).all()
    total = join_parts(found.parts)
    assert total.gap(numbers[:, 0]) == pytest.approx(found.gap(numbers[:, 0]))


def test_factors_may_be_named(people):
    X, groups, _ = people
    named = OptimalTransportMatcher().match(X, groups, given="title")
    assert len(named.parts) == 3
    assert (X.title[named.source_index].to_numpy() == X.title[named.target_index].to_numpy()).all()
