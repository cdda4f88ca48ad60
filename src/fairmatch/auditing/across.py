"""Matchings between groups other than the reference: a few people of each, to be looked at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairmatch.auditing.facts import Pairs
from fairmatch.auditing.matchings import PairMatcher, join_pairs
from fairmatch.auditing.nearness import squared_distances
from fairmatch.auditing.sample import Sample, draw_rows
from fairmatch.auditing.scored import Scored
from fairmatch.matching.coupling import IndexArray

N_ACROSS = 128
"""How many people of each group are matched with those of every other group."""

NEAR = "near"
"""Name of the pairs of each person with the nearest person drawn. They are not symmetric."""


def match_across(data: Scored, sample: Sample) -> dict[str, Pairs]:
    """Match some people of every two groups, neither of which is the reference.

    Parameters
    ----------
    data : Scored
        The rows to audit.
    sample : Sample
        The people drawn. At most `N_ACROSS` people of each group are matched.

    Returns
    -------
    dict
        Matching to its pairs, as positions in the sample. It is empty for two groups.

    Notes
    -----
    K groups make K (K - 1) / 2 pairs. The audit makes statements only about the pairs with the
    reference group, and matches as many people there as time allows. It matches few people of the
    other pairs, to keep their total time short.
    """
    codes = [own for own in data.pairs if own not in data.matched_pairs]
    if not codes:
        return {}
    drawn, weights = draw_rows(sample.groups, sample.weights, N_ACROSS, data.settings.generator(6))
    few = Sample(
        rows=sample.rows[drawn],
        groups=sample.groups.take(drawn),
        features=None if sample.features is None else sample.features[drawn],
        feature_groups=sample.feature_groups,
        positive=None,  # one matching by columns is enough to look at
        weights=weights,
    )
    found = join_pairs([PairMatcher(data, few, own) for own in codes])
    placed = {
        name: replace(pairs, first=_placed(pairs.first, drawn), second=_placed(pairs.second, drawn))
        for name, pairs in found.items()
    }
    return (
        placed if sample.features is None else {**placed, NEAR: _near(data, sample, drawn, codes)}
    )


def _placed(people: tuple[int, ...], drawn: IndexArray) -> tuple[int, ...]:
    return tuple(drawn[list(people)].tolist())


def _near(data: Scored, sample: Sample, drawn: IndexArray, codes: list[tuple[int, int]]) -> Pairs:
    """Return the nearest person of the other group, for each person drawn and each pair of groups.

    The nearest person is searched among all people of the sample.
    """
    features = sample.features
    assert features is not None
    of, scores = sample.groups.codes, data.scores[sample.rows]
    persons, neighbours, distances = [], [], []
    for first, second in [*codes, *(own[::-1] for own in codes)]:
        own, others = drawn[of[drawn] == first], np.flatnonzero(of == second)
        apart = squared_distances(features[own], features[others])
        at = np.argmin(apart, axis=1)
        persons.append(own)
        neighbours.append(others[at])
        distances.append(apart[np.arange(len(own)), at])
    person, neighbour = np.concatenate(persons), np.concatenate(neighbours)
    return Pairs(
        first=tuple(person.tolist()),
        second=tuple(neighbour.tolist()),
        mass=(1.0 / len(person),) * len(person),
        score_gap=tuple(np.abs(scores[person] - scores[neighbour]).tolist()),
        distance=tuple(np.concatenate(distances).tolist()),
    )
