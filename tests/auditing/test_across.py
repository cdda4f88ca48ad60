"""People of two groups neither of which is the largest: matched, and their nearest found."""

import numpy as np
import pandas as pd
import pytest

from fairmatch import OptimalTransportMatcher, audit
from fairmatch.auditing.facts import Audit
from fairmatch.auditing.matchings import N_ACROSS
from fairmatch.people.encoding import TableEncoder

QUICK = {"n_resamples": 100, "n_subsets": 20}
SIZES = {"a": 300, "b": 60, "c": 50, "d": 200}


@pytest.fixture(scope="module")
def table():
    generator = np.random.default_rng(0)
    group = np.repeat(list(SIZES), list(SIZES.values()))
    X = pd.DataFrame({"x": generator.uniform(size=610), "z": generator.choice(["p", "q"], 610)})
    return generator.uniform(size=610), group, X


@pytest.fixture(scope="module")
def found(table):
    scores, group, X = table
    return audit(scores, sensitive_features=group, X=X, **QUICK)


def between(people, name, first, second):
    """Pairs of two groups, by their letters, as rows of the table and mass."""
    pairs, letters = people.across[name], list(SIZES)
    at = [
        k
        for k, (i, j) in enumerate(zip(pairs.first, pairs.second, strict=True))
        if (letters[people.group[i]], letters[people.group[j]]) == (first, second)
    ]
    rows = [[people.rows[side[k]] for k in at] for side in (pairs.first, pairs.second)]
    return np.array(rows[0]), np.array(rows[1]), np.array([pairs.mass[k] for k in at])


@pytest.mark.parametrize("pair", ["bc", "bd", "cd"])
@pytest.mark.parametrize("name", ["fair", "marginal", "nearest_fair"])
def test_every_two_other_groups_are_matched_whole_or_by_a_sample(found, pair, name):
    first, second, mass = between(found.individuals, name, *pair)
    assert mass.sum() == pytest.approx(1 / 3)  # as much for each of the three pairs
    for rows, letter in zip((first, second), pair, strict=True):
        own = np.bincount(np.unique(rows, return_inverse=True)[1], mass)
        assert len(own) == min(SIZES[letter], N_ACROSS)
        assert own == pytest.approx(1 / 3 / len(own))


def test_the_nearest_matching_is_that_of_the_matcher(table, found):
    _, group, X = table
    encoded = TableEncoder(missing="encode").fit(X).transform(X)
    first, second, mass = between(found.individuals, "marginal", "b", "c")
    cost = mass @ ((encoded[first] - encoded[second]) ** 2).sum(axis=1) * 3
    own = np.flatnonzero(np.isin(group, ["b", "c"]))
    least = OptimalTransportMatcher().match(encoded[own], group[own]).transport_cost(encoded[own])
    assert cost == pytest.approx(least, rel=2e-4)


def test_the_nearest_person_is_the_nearest_of_all_who_were_drawn(table, found):
    _, group, X = table
    encoded = TableEncoder(missing="encode").fit(X).transform(X)
    for first, second in ("bc", "cb", "db", "dc"):
        persons, neighbours, _ = between(found.individuals, "near", first, second)
        assert len(persons) == min(SIZES[first], N_ACROSS)
        others = encoded[group == second]
        for person, neighbour in zip(persons, neighbours, strict=True):
            apart = ((others - encoded[person]) ** 2).sum(axis=1)
            own = ((encoded[neighbour] - encoded[person]) ** 2).sum()
            assert own == pytest.approx(apart.min(), abs=1e-9)


def test_two_groups_and_no_columns(table):
    scores, group, X = table
    two = np.isin(group, ["a", "d"])
    assert (
        audit(scores[two], sensitive_features=group[two], X=X[two], **QUICK).individuals.across
        == {}
    )
    bare = audit(scores, sensitive_features=group, **QUICK)
    assert list(bare.individuals.across) == ["fair"]


def test_it_survives_json_and_is_left_out_with_the_people(found):
    assert Audit.from_json(found.to_json()) == found
    assert found.without_individuals().individuals is None


def test_many_groups_are_matched_by_fewer_people_each():
    generator = np.random.default_rng(1)
    group = np.repeat(np.arange(9), 60)
    X = pd.DataFrame({"x": generator.uniform(size=540)})
    many = audit(generator.uniform(size=540), sensitive_features=group, X=X, n_sample=40, **QUICK)
    # Eight pairs with the largest: half as many people as for two.
    assert {matching.n_sampled for matching in many.matchings} == {(20, 20)}
