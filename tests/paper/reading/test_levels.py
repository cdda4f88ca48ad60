"""Reading curves at a level."""

import numpy as np
import pytest
from curves import record, seeds
from hypothesis import given
from hypothesis import strategies as st
from paper.questions import Reading, interpolated, nearest, picked, quantity_of
from paper.specs import RunSpec

GAP = "demographic_parity_gap"


def curve(gaps, accuracy):
    return {GAP: list(gaps), "accuracy": list(accuracy)}


def test_nearest_takes_the_model_whose_gap_is_nearest_and_says_which_gap_that_is():
    found = nearest(
        seeds(curve([0.2, 0.09, 0.03], [0.9, 0.8, 0.7]), curve([0.2, 0.05, 0.0], [0.9, 0.6, 0.5])),
        GAP,
        0.06,
        "accuracy",
    )
    assert found.values == (0.8, 0.6)  # 0.09 and 0.03 are equally near: the first
    assert found.reached == (0.09, 0.05)
    assert found.mean == pytest.approx(0.7)
    assert found.level == pytest.approx(0.07)


def test_a_weight_is_picked_without_a_look_at_the_test_rows():
    known = {
        f"training: {GAP}": [0.2, 0.05, 0.04, 0.0],
        "training: accuracy": [0.95, 0.8, 0.85, 0.7],
    }
    found = picked(
        seeds(
            curve([0.3, 0.01, 0.09, 0.02], [0.9, 0.8, 0.6, 0.5]) | known,
            curve([0.3] * 4, [0.9] * 4) | known | {f"training: {GAP}": [0.2] * 4},
        ),
        GAP,
        0.05,
        "accuracy",
    )
    assert found.values == (0.6,)  # the most accurate on the training rows, not on these
    assert found.reached == (0.09,)  # more than was allowed
    assert (found.n, found.n_seeds) == (1, 2)  # no model of the second keeps the gap


def test_a_model_that_accepts_nobody_is_not_picked():
    known = {f"training: {GAP}": [0.2, 0.04, 0.0], "training: accuracy": [0.9, 0.7, 0.75]}
    found = curve([0.2, 0.04, 0.0], [0.9, 0.7, 0.75]) | known | {"acceptance_rate": [0.3, 0.2, 0.0]}
    assert picked(seeds(found), GAP, 0.05, "accuracy").values == (0.7,)


def test_interpolation_is_linear_between_the_models_that_enclose_the_level():
    found = interpolated(seeds(curve([0.2, 0.1, 0.0], [0.9, 0.8, 0.4])), GAP, 0.05, "accuracy")
    assert found.values == (pytest.approx(0.6),)
    assert found.reached == (0.05,)


def test_the_fairest_crossing_counts_where_a_noisy_curve_has_several():
    found = interpolated(
        seeds(curve([0.2, 0.0, 0.2, 0.0], [0.9, 0.7, 0.5, 0.3])), GAP, 0.1, "accuracy"
    )
    assert found.values == (pytest.approx(0.4),)


def test_a_curve_whose_gap_rises_again_is_read_where_the_weight_is_smaller():
    gaps, accuracies = [0.3, 0.05, 0.2], [0.9, 0.8, 0.5]
    found = interpolated(seeds(curve(gaps, accuracies)), GAP, 0.175, "accuracy")
    assert found.values == (pytest.approx(0.85),)


def test_a_curve_whose_first_model_is_the_fairest_is_read_beyond_it():
    found = interpolated(seeds(curve([0.0, 0.1], [0.9, 0.7])), GAP, 0.05, "accuracy")
    assert found.values == (pytest.approx(0.8),)


def test_a_curve_that_never_comes_to_the_level_gives_no_value_and_is_counted():
    found = interpolated(
        seeds(curve([0.2, 0.1], [0.9, 0.8]), curve([0.2, 0.0], [0.9, 0.7])), GAP, 0.05, "accuracy"
    )
    assert (found.n, found.n_seeds) == (1, 2)


def test_a_curve_begins_with_the_unconstrained_model():
    records = seeds(curve([0.1, 0.0], [0.8, 0.7]))
    start = seeds(curve([0.3], [0.9]))
    assert interpolated(records, GAP, 0.2, "accuracy").n == 0
    found = interpolated(records, GAP, 0.2, "accuracy", start=start)
    assert found.values == (pytest.approx(0.85),)


def test_missing_values_are_stepped_over():
    records = seeds(curve([0.2, 0.1, 0.0], [0.9, None, 0.7]))
    assert interpolated(records, GAP, 0.05, "accuracy").n == 0
    assert nearest(records, GAP, 0.1, "accuracy").n == 0


@given(
    st.lists(st.floats(0.0, 1.0), min_size=2, max_size=12),
    st.floats(0.0, 1.0),
    st.floats(-5.0, 5.0),
    st.floats(-5.0, 5.0),
)
def test_a_quantity_that_is_linear_in_the_gap_is_read_exactly(gaps, level, a, b):
    records = seeds(curve(gaps, [a + b * gap for gap in gaps]))
    found = interpolated(records, GAP, level, "accuracy")
    # A later pair may enclose the level only if some pair does.
    assert found.n == (min(gaps) <= level <= max(gaps))
    if found.n:
        assert found.mean == pytest.approx(a + b * level, abs=1e-9)


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=8))
def test_mean_and_standard_error_are_numpys(values):
    reading = Reading(dict(enumerate(values)), tuple(values), len(values))
    assert reading.mean == pytest.approx(np.mean(values))
    assert reading.error == pytest.approx(np.std(values, ddof=1) / np.sqrt(len(values)))


def test_one_split_has_no_standard_error():
    assert np.isnan(Reading({0: 0.5}, (0.1,), 1).error)
    assert np.isnan(Reading({}, (), 3).mean)


def test_a_mean_is_stated_if_at_least_half_of_the_splits_have_a_value():
    values = dict.fromkeys(range(2), 0.5)
    assert Reading(values, (0.1, 0.1), 4).stated
    assert not Reading(values, (0.1, 0.1), 5).stated
    assert not Reading({}, (), 0).stated


@given(st.dictionaries(st.integers(0, 9), st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1))
def test_readings_are_compared_on_the_splits_that_both_have(pairs):
    one = Reading({seed: a for seed, (a, _) in pairs.items()}, (), 10)
    other = Reading({seed: b for seed, (_, b) in pairs.items() if seed % 2}, (), 10)
    common = [a - b for seed, (a, b) in pairs.items() if seed % 2]
    assert one.less(other).values == tuple(common)


@pytest.mark.parametrize("accepted", [0.0, 0.005, 0.995, 1.0])
def test_models_that_decide_nothing_are_left_out(accepted):
    collapsed = curve([0.2, 0.1, 0.0], [0.9, 0.8, 0.4])
    records = seeds(collapsed | {"acceptance_rate": [0.3, 0.3, accepted]})
    assert interpolated(records, GAP, 0.05, "accuracy").n == 0
    assert nearest(records, GAP, 0.0, "accuracy").values == (0.8,)
    assert interpolated(records, GAP, 0.15, "accuracy").values == (pytest.approx(0.85),)
    nothing = seeds(collapsed | {"acceptance_rate": [accepted] * 3})
    assert nearest(nothing, GAP, 0.0, "accuracy").n == 0


def test_flips_are_shares_of_the_group():
    tables = {"flips: S=1": [[6146, 1364, 0, 966]], "flips: S=0": [[3719, 11, 29, 343]]}
    found = record(RunSpec("adult", "ftm", 0, {}), **tables)
    assert quantity_of(found, "flips to 1 per 1,000: S=1") == [0.0]
    assert quantity_of(found, "flips to 0 per 1,000: S=0") == [pytest.approx(11 / 4.102)]


def test_outliers_above_the_box_are_counted():
    box = [0.1, 0.15, 0.2, 0.25, 0.3]
    found = record(
        RunSpec("adult", "ftm", 0, {}),
        **{"half-spaces: outliers": [[0.0, 0.5, 0.6], [0.0], []], "half-spaces: box": [box] * 3},
    )
    assert quantity_of(found, "half-spaces: high outliers") == [2, 0, 0]


def test_the_unconstrained_model_agrees_with_itself():
    records = seeds({GAP: [0.1, 0.0], "rank agreement: S=0": [0.9, 0.5]})
    start = seeds({GAP: [0.3]})
    found = interpolated(records, GAP, 0.2, "rank agreement: S=0", start=start)
    assert found.values == (pytest.approx(0.95),)
