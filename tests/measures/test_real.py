import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp, wasserstein_distance

from fairmatch import OptimalTransportMatcher
from fairmatch.exceptions import GroupError, InputError
from fairmatch.measures import MEASURES, gap_table
from fairmatch.measures.registry import applicable
from fairmatch.people.outcome import NUMBER


def number_gaps(scores, groups, y_true=None, **given):
    return gap_table(y_true, scores, sensitive_features=groups, kind="number", **given)


@st.composite
def predictions(draw):
    n_groups = draw(st.integers(2, 4))
    sizes = draw(st.lists(st.integers(1, 8), min_size=n_groups, max_size=n_groups))
    values = st.integers(-5, 5).map(lambda k: 1000.0 * k)
    scores = [draw(values) for _ in range(sum(sizes))]
    return np.array(scores), np.repeat(np.arange(n_groups), sizes)


@given(predictions())
@settings(max_examples=25, deadline=None)
def test_scipy_takes_the_same_gaps_of_every_pair(table):
    scores, groups = table
    sides = [scores[groups == code] for code in np.unique(groups)]
    pairs = [(a, b) for k, a in enumerate(sides) for b in sides[k + 1 :]]
    target = np.tile([-250.0, 250.0], len(scores))[: len(scores)]
    spread = target.std()
    found = number_gaps(scores, groups, target)
    means = max(abs(a.mean() - b.mean()) for a, b in pairs)
    assert found["mean_parity_gap"] == pytest.approx(means)
    areas = max(wasserstein_distance(a, b) for a, b in pairs)
    assert found["wasserstein_parity_gap"] == pytest.approx(areas)
    largest = max(ks_2samp(a, b, method="exact").statistic for a, b in pairs)
    assert found["ks_parity_gap"] == pytest.approx(largest)
    assert found["relative_mean_parity_gap"] == pytest.approx(means / spread)
    assert found["mean_parity_gap"] <= found["wasserstein_parity_gap"] + 1e-9


def test_weights_are_copies_and_matched_people_differ_at_least_as_distributions_do():
    random = np.random.default_rng(0)
    X, groups = random.normal(size=(40, 2)), np.repeat(["a", "b", "c"], [10, 10, 20])
    scores = 40.0 + 10.0 * X[:, 0]
    weights = random.integers(1, 4, 40)
    copies = np.repeat(np.arange(40), weights)
    once = number_gaps(scores, groups, sample_weight=weights)
    assert once == pytest.approx(number_gaps(scores[copies], groups[copies]))
    coupling = OptimalTransportMatcher().match(X, groups)
    found = number_gaps(scores, groups, scores, coupling=coupling)
    assert list(found) == list(applicable(NUMBER))
    in_units = {name for name in found if MEASURES[name].unit == "score"}
    assert {name.removeprefix("relative_") for name in found if "relative" in name} == in_units
    for part in coupling.parts:
        inside = np.isin(groups, part.groups)
        of_part = number_gaps(scores[inside], groups[inside])
        assert of_part["wasserstein_parity_gap"] <= part.gap(scores) + 1e-9
    assert found["matched_parity_gap"] == coupling.largest_gap(scores)


@pytest.mark.parametrize(
    ("scores", "groups", "message"),
    [
        ([1.0, np.nan, 3.0], [0, 1, 1], "first in row 1"),
        ([1.0, 2.0, 3.0], [0, 0, 0], "group"),
        (["a", "b", "c"], [0, 1, 1], "numeric"),
    ],
)
def test_bad_input_is_named(scores, groups, message):
    with pytest.raises((InputError, GroupError), match=message):
        number_gaps(scores, groups)


def test_a_constant_target_has_no_relative_gap_and_a_kind_is_known():
    found = number_gaps([1.0, 2.0], [0, 1], [3.0, 3.0])
    assert not any(MEASURES[name].is_relative for name in found)
    with pytest.raises(InputError, match="kind must be one of 'probability', 'number'"):
        gap_table(None, [0.1, 0.2], sensitive_features=[0, 1], kind="rank")
