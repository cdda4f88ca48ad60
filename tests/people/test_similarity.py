"""Who is alike: columns, weights, relevance and embeddings."""

import numpy as np
import pandas as pd
import pytest

from fairmatch import OptimalTransportMatcher, fair_matching, nearest_fair_matching
from fairmatch.exceptions import ColumnError, InputError, LabelError
from fairmatch.people.encoding import TableEncoder
from fairmatch.people.people import Labels
from fairmatch.people.similarity import read_similarity, relevance


@pytest.fixture
def people():
    random = np.random.default_rng(2)
    frame = pd.DataFrame({"age": random.integers(20, 60, 200), "pay": random.random(200)})
    frame["job"] = random.choice(["cook", "nurse", "guide"], 200)
    groups = random.choice(["f", "m"], 200)
    y = (frame.age + random.normal(0, 3, 200) > 40).astype(int).to_numpy()
    return frame, groups, y


def test_weights_scale_the_squared_distance(people):
    X, _, _ = people
    found = read_similarity({"age": 3.0, "job": 0.5}, X).points(X).dense()
    encoder = TableEncoder().fit(X)
    encoded, at = encoder.transform(X), encoder.feature_groups_
    random = np.random.default_rng(0)
    for i, j in random.integers(200, size=(50, 2)):
        parts = (encoded[i] - encoded[j]) ** 2
        wanted = 3.0 * parts[at["age"]].sum() + 0.5 * parts[at["job"]].sum()
        assert ((found[i] - found[j]) ** 2).sum() == pytest.approx(wanted)


def test_all_columns_with_weight_one_are_the_plain_distance(people):
    X, groups, _ = people
    plain = OptimalTransportMatcher().match(X, groups)
    listed = OptimalTransportMatcher().match(X, groups, similarity=list(X.columns))
    assert listed.transport_cost(X) == pytest.approx(plain.transport_cost(X))


def test_a_list_of_columns_ignores_the_others(people):
    X, groups, _ = people
    found = OptimalTransportMatcher().match(X, groups, similarity=["age"])
    wanted = OptimalTransportMatcher().match(X[["age"]], groups)
    assert found.transport_cost(X[["age"]]) == pytest.approx(wanted.transport_cost(X[["age"]]))


def test_an_embedding_decides_alone(people):
    X, groups, _ = people
    embedding = np.random.default_rng(1).random((200, 4), dtype=np.float32)
    found = OptimalTransportMatcher().match(X, groups, similarity=embedding)
    wanted = OptimalTransportMatcher().match(embedding, groups)
    assert found.transport_cost(embedding) == pytest.approx(wanted.transport_cost(embedding))
    assert read_similarity(embedding, X).embedding is embedding
    scores = X.pay.to_numpy()
    near = nearest_fair_matching(scores, groups, X, similarity=embedding)
    assert near.gap(scores) == pytest.approx(fair_matching(scores, groups).gap(scores))
    plain = nearest_fair_matching(scores, groups, embedding)
    assert near.transport_cost(embedding) == pytest.approx(plain.transport_cost(embedding))


def test_fair_matchings_within_strata_are_separate_problems(people):
    X, groups, _ = people
    scores = X.pay.to_numpy()
    found = fair_matching(scores, groups, given=X.job, reference="m")
    for part in found.parts:
        rows = np.flatnonzero(("job " + X.job).to_numpy() == part.stratum)
        own = fair_matching(scores[rows], groups[rows], reference="m")
        assert part.gap(scores) == pytest.approx(own.gap(scores[rows]))
    near = nearest_fair_matching(scores, groups, X, given="job")
    assert near.gap(scores) == pytest.approx(found.gap(scores))


def test_relevance_finds_what_matters(people):
    X, _, y = people
    labels = Labels(y.astype(float), (0, 1))
    found = relevance(X, labels)
    assert list(found) == ["age"]
    assert relevance(X, labels) == found  # the same seed, the same weights
    noisy = X.assign(**{f"z{k}": np.random.default_rng(k).integers(4, size=200) for k in range(10)})
    shares = relevance(noisy, labels)
    assert shares["age"] * 2 * X.age.var() / np.ptp(X.age) ** 2 > 0.95
    number = relevance(X, Labels(X.pay.to_numpy() * 5.0))
    assert list(number) == ["pay"]


def test_errors_say_what_to_do(people):
    X, groups, _ = people
    with pytest.raises(LabelError, match="needs the labels"):
        OptimalTransportMatcher().match(X, groups, similarity="relevance")
    with pytest.raises(InputError, match="is not known"):
        read_similarity("relevanz", X)
    with pytest.raises(ColumnError, match="Did you mean 'age'"):
        read_similarity(["agee"], X)
    with pytest.raises(InputError, match="gives no column a positive weight"):
        read_similarity({"age": 0.0}, X)
    with pytest.raises(InputError, match="one row per person"):
        read_similarity(np.zeros(200), X)
