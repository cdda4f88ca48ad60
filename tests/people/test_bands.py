"""Bands of a number, against pandas, and the comparisons that follow from them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from fairmatch import FTMBoostingClassifier, OptimalTransportMatcher, audit, bands
from fairmatch.exceptions import GroupError, InputError
from fairmatch.measures import demographic_parity_gap
from fairmatch.people.groups import read_criterion, read_groups
from fairmatch.people.people import People

PARITY = read_criterion("demographic_parity")


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40),
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5, unique=True).map(sorted),
)
def test_bands_are_those_of_pandas(values, edges):
    found = bands(values, edges)
    wanted = pd.cut(values, [-np.inf, *edges, np.inf], right=False, labels=False)
    assert found.codes.tolist() == wanted.tolist()
    assert len(found.labels) == len(edges) + 1


def test_names_depend_on_the_edges_alone():
    assert bands([1], [30, 40.5]).labels == ("under 30", "30 to under 40.5", "40.5 and over")
    assert bands([44, 31, 99], [30, 40.5]).labels == bands([1], [30, 40.5]).labels


def test_quantile_bands_hold_equal_shares():
    found = bands(np.random.default_rng(0).normal(size=1000), n=4)
    assert np.bincount(found.codes).tolist() == [250, 250, 250, 250]
    # A value that most people share makes fewer bands, and no empty one.
    assert np.bincount(bands([1] * 90 + [2] * 10, n=5).codes).min() > 0


def test_width_cuts_at_its_multiples():
    assert bands([18, 35, 60], width=10).edges == (20.0, 30.0, 40.0, 50.0, 60.0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bands([1, 2]), "exactly one of"),
        (lambda: bands([1, 2], [1], n=2), "exactly one of"),
        (lambda: bands([1, 2], [2, 1]), "increasing"),
        (lambda: bands([1, 2], []), "increasing"),
        (lambda: bands([1, np.inf], [1]), "infinite"),
        (lambda: bands([np.nan], [1]), "no number"),
        (lambda: bands([3, 3], n=2), "single band"),
        (lambda: bands([0, 1e9], width=1), "larger width"),
    ],
)
def test_bad_calls_say_what_to_do(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_groups_are_in_the_order_of_the_number_without_empty_bands():
    groups = read_groups(bands([5, 45, 99, 45], [10, 20, 50]))
    assert groups.labels == ("under 10", "20 to under 50", "50 and over")
    assert groups.ordered
    assert groups.codes.tolist() == [0, 1, 2, 1]


def test_missing_numbers_are_missing_groups():
    some = bands([5, np.nan, 30], [10])
    with pytest.raises(GroupError, match="1 missing"):
        read_groups(some)
    groups = read_groups(some, unknown="unknown")
    assert groups.labels[groups.codes[1]] == "unknown"
    assert groups.compared == (0, 1)


def test_rows_can_be_split_by_scikit_learn():
    age = np.arange(100)
    first, second = train_test_split(bands(age, [50]), random_state=0)
    left, right = train_test_split(age, random_state=0)
    assert first.values.tolist() == left.tolist()
    assert second.values.tolist() == right.tolist()


@pytest.mark.parametrize("dtype", [int, float, object])
def test_a_number_with_many_values_is_refused_with_the_call_to_make(dtype):
    with pytest.raises(GroupError, match=r"fairmatch\.bands\(values, n=5\)"):
        demographic_parity_gap(
            None, np.linspace(0, 1, 60), sensitive_features=np.arange(60).astype(dtype)
        )
    # The same numbers as text are names of groups.
    assert demographic_parity_gap(
        None, np.linspace(0, 1, 60), sensitive_features=np.arange(60).astype(str)
    )


def test_each_band_is_compared_with_the_next():
    people = People(read_groups(bands([1, 2, 3, 11, 12, 21, 31], [10, 20, 30])))
    pairs = [(one.source, one.target, one.weight) for one in people.comparisons(PARITY)]
    assert pairs == [(0, 1, 1 / 3), (1, 2, 1 / 3), (2, 3, 1 / 3)]
    named = people.comparisons(PARITY, "under 10")
    assert [(one.source, one.target) for one in named] == [(1, 0), (2, 0), (3, 0)]


def test_gaps_along_the_chain_bound_the_gap_of_any_two_bands():
    generator = np.random.default_rng(1)
    age = generator.uniform(18, 80, 400)
    X = np.column_stack([generator.normal(age / 20), generator.normal(size=400)])
    scores = generator.uniform(size=400)
    own = bands(age, n=4)
    coupling = OptimalTransportMatcher().match(X, own)
    assert [part.groups for part in coupling.parts] == list(
        zip(own.labels, own.labels[1:], strict=False)
    )
    chain = sum(part.gap(scores) for part in coupling.parts)
    means = [scores[own.codes == code].mean() for code in range(4)]
    assert max(means) - min(means) <= chain + 1e-12


def test_trees_learn_with_bands_and_audits_show_them_in_order():
    generator = np.random.default_rng(2)
    age = generator.uniform(18, 80, 600)
    skill = generator.normal(age / 15, 1.0)
    y = (generator.uniform(size=600) < 1 / (1 + np.exp(3.3 - skill))).astype(int)
    X = np.column_stack([skill, generator.normal(size=600)])
    own = bands(age, n=3)
    gaps = []
    for weight in (0.0, 5.0):
        model = FTMBoostingClassifier(fairness_weight=weight, random_state=0)
        model.fit(X, y, sensitive_features=own)
        scores = model.predict_proba(X, sensitive_features=own)[:, 1]
        gaps.append(audit(scores, sensitive_features=own).gap("mean_parity_gap").value)
    assert gaps[1] < gaps[0] / 2
    found = audit(scores, sensitive_features=own)
    assert [group.label for group in found.groups] == list(own.labels)
