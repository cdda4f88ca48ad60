"""The monitor, on streams whose gaps are known."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fairmatch.auditing.monitor import GapMonitor, rate_limits
from fairmatch.exceptions import GroupError, InputError, LabelError, ModelFileError


def stream(generator, n, rates, shares=None):
    """Groups "0", "1", … and decisions with these rates."""
    group = generator.choice(len(rates), n, p=shares)
    return (generator.random(n) < np.asarray(rates)[group]).astype(float), group.astype(str)


def watch(monitor, decisions, group, batch):
    for start in range(0, len(group), batch):
        state = monitor.update(decisions[start : start + batch], group[start : start + batch])
        if state.alarm:
            break
    return state


@pytest.mark.parametrize(
    ("rates", "max_gap", "shares", "batch"),
    [
        ((0.5, 0.5), 0.0, None, 30),
        ((0.5, 0.45), 0.05, None, 100),
        ((0.1, 0.1), 0.0, (0.95, 0.05), 50),
        ((0.3, 0.3, 0.35), 0.05, (0.6, 0.3, 0.1), 200),
    ],
)
def test_false_alarms_are_rare_however_often_one_looks(rates, max_gap, shares, batch):
    generator = np.random.default_rng(0)
    groups = [str(code) for code in range(len(rates))]
    alarms = sum(
        watch(
            GapMonitor(max_gap, groups=groups), *stream(generator, 3000, rates, shares), batch
        ).alarm
        for _ in range(120)
    )
    assert stats.binomtest(alarms, 120, 0.05, alternative="greater").pvalue > 0.001


def test_a_large_gap_is_found_quickly():
    """Beside about 52 pairs that the reference method needs (Chugg and others, 2023)."""
    generator = np.random.default_rng(1)
    needed = [
        watch(GapMonitor(0.0, groups=["0", "1"]), *stream(generator, 800, (0.7, 0.4)), 4).n_people
        for _ in range(25)
    ]
    assert np.median(needed) < 160


@pytest.mark.parametrize("rate", [0.02, 0.4])
def test_limits_hold_at_all_times_at_once(rate):
    generator = np.random.default_rng(2)
    missed = 0
    for _ in range(100):
        sums = np.cumsum(generator.random(800) < rate).astype(float)
        low, high = rate_limits(sums, np.arange(1.0, 801.0), 0.05)
        missed += ((low > rate) | (high < rate)).any()
    assert stats.binomtest(int(missed), 100, 0.05, alternative="greater").pvalue > 0.001


def test_the_sequence_holds_the_gap_and_the_estimate_is_the_gap():
    generator = np.random.default_rng(3)
    decisions, group = stream(generator, 5000, (0.3, 0.5, 0.42))
    monitor = GapMonitor(0.5, groups=["0", "1", "2"])
    watch(monitor, decisions, group, 250)
    rates = pd.Series(decisions).groupby(group).mean()
    assert monitor.state.value == pytest.approx(rates.max() - rates.min())
    assert all(state.low <= 0.2 <= state.high for state in monitor.history)
    assert len(monitor.history) == 20


def test_scores_are_watched_by_their_means():
    generator = np.random.default_rng(4)
    group = generator.choice(["a", "b"], 4000)
    scores = generator.beta(np.where(group == "a", 2.0, 3.0), 3.0)
    monitor = GapMonitor(0.02, groups=["a", "b"], measure="mean_parity_gap")
    state = monitor.update(scores, group)
    assert state.alarm
    assert state.value == pytest.approx(
        abs(scores[group == "a"].mean() - scores[group == "b"].mean())
    )


def test_labels_may_arrive_later():
    generator = np.random.default_rng(5)
    decisions, group = stream(generator, 900, (0.3, 0.6))
    y = generator.integers(0, 2, 900)
    at_once = GapMonitor(0.05, groups=["0", "1"], measure="true_positive_gap")
    expected = at_once.update(decisions, group, y)
    later = GapMonitor(0.05, groups=["0", "1"], measure="true_positive_gap")
    later.update(decisions, group, ids=np.arange(900))
    assert later.n_waiting == 900
    assert later.state.value is None
    found = later.add_labels(np.arange(900), y)
    assert (found.value, found.low, found.evidence) == (
        expected.value,
        expected.low,
        expected.evidence,
    )
    assert later.n_waiting == 0
    with pytest.raises(InputError, match="not waiting"):
        later.add_labels([3], [1])


def test_some_labels_may_be_missing_and_arrive_in_any_order():
    """Whatever the order of arrival, the sums are those of all labels at once."""
    generator = np.random.default_rng(10)
    decisions, group = stream(generator, 600, (0.3, 0.6))
    y = generator.integers(0, 2, 600)
    at_once = GapMonitor(0.05, groups=["0", "1"], measure="equalized_odds_gap")
    expected = at_once.update(decisions, group, y)
    late = generator.permutation(600)[:250]
    monitor = GapMonitor(0.05, groups=["0", "1"], measure="equalized_odds_gap")
    given = np.where(np.isin(np.arange(600), late), np.nan, y)
    for start in range(0, 600, 100):
        own = slice(start, start + 100)
        state = monitor.update(decisions[own], group[own], given[own], ids=np.arange(600)[own])
        assert (state.n_rows, state.n_people) == (100, (~np.isnan(given[: own.stop])).sum())
    assert monitor.n_waiting == 250
    again = GapMonitor.from_dict(json.loads(json.dumps(monitor.to_dict())))
    for own in np.array_split(late, 7):
        state = again.add_labels(own, y[own])
    assert again.n_waiting == 0
    assert (state.value, state.low, state.high, state.n_people) == (
        expected.value,
        expected.low,
        expected.high,
        600,
    )


def test_a_batch_may_have_one_class_only():
    monitor = GapMonitor(groups=["a", "b"], measure="true_positive_gap", pos_label="yes")
    monitor.update([1, 0], ["a", "b"], ["no", "no"])
    assert monitor.update([1, 0], ["a", "b"], ["yes", "yes"]).value == 1.0
    with pytest.raises(LabelError, match="'no' and 'zzz'"):
        GapMonitor.from_dict(monitor.to_dict()).update([1, 0], ["a", "b"], ["yes", "zzz"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.add_labels(["p"], [np.nan]), "1 missing label"),
        (lambda m: m.add_labels(["p"], [None]), "1 missing label"),
        (lambda m: m.add_labels(["p"], pd.Series([pd.NA], dtype="Int64")), "1 missing label"),
        (lambda m: m.add_labels(["p", "q"], ["zzz", 0]), "two classes"),
        (lambda m: m.add_labels(["p", "p"], [0, 1]), "'p' is repeated"),
        (lambda m: m.add_labels(["p"], [0, 1]), "y_true"),
        (lambda m: m.update([1, 0], ["a", "b"], ids=["a", "a"]), "'a' is repeated"),
        (lambda m: m.update([1, 0], ["a", "b"], ids=["a", "p"]), "'p' already waits"),
        (lambda m: m.update([1, 0], ["a", "b"], [1, 0], ids=["a", "p"]), "'p' already waits"),
        (lambda m: m.update([1, 0], ["a", None], ids=["a", None]), "some are missing"),
        (lambda m: m.update([1, 0], ["a", None], ids=["a"]), "ids"),
        (lambda m: m.update([1, 0], ["a", None], [1, np.nan]), "pass ids"),
        (lambda m: m.update([1, 0], ["a", None], [1, 7]), "two classes"),
        (lambda m: m.update([1, 0], ["a", "b", None], [1, 0]), "sensitive_features"),
    ],
)
def test_what_is_refused_changes_nothing(call, message):
    monitor = GapMonitor(groups=["a", "b"], measure="true_positive_gap")
    monitor.update([1, 0, 1], ["a", "b", "a"], ids=["p", "q", "r"])
    monitor.add_labels(["r"], [0])
    before = monitor.to_dict()
    with pytest.raises(InputError, match=message):
        call(monitor)
    assert monitor.to_dict() == before


def test_equalised_odds_is_the_mean_of_two_gaps():
    generator = np.random.default_rng(6)
    decisions, group = stream(generator, 6000, (0.2, 0.5))
    y = generator.integers(0, 2, 6000)
    monitor = GapMonitor(0.05, groups=["0", "1"], measure="equalized_odds_gap")
    state = monitor.update(decisions, group, y)
    rates = pd.Series(decisions).groupby([y, group]).mean().unstack()
    assert state.value == pytest.approx((rates["1"] - rates["0"]).abs().mean())
    assert state.alarm


def test_a_saved_monitor_goes_on_as_if_nothing_had_happened(tmp_path):
    generator = np.random.default_rng(7)
    decisions, group = stream(generator, 1000, (0.4, 0.45))
    for window in (None, 300):
        whole, first = (GapMonitor(0.01, groups=["0", "1"], window=window) for _ in range(2))
        watch(whole, decisions, group, 33)
        watch(first, decisions[:495], group[:495], 33)
        again = GapMonitor.load(first.save(tmp_path / "monitor.json"))
        watch(again, decisions[495:], group[495:], 33)
        assert again.history == whole.history


def test_a_window_forgets_and_finds_a_change():
    generator = np.random.default_rng(8)
    monitor = GapMonitor(0.05, groups=["0", "1"], window=2000)
    watch(monitor, *stream(generator, 10_000, (0.4, 0.4)), 100)
    assert monitor.state.value < 0.1
    state = watch(monitor, *stream(generator, 10_000, (0.4, 0.65)), 100)
    assert state.alarm
    assert state.n_people < 13_000


def test_a_window_keeps_its_run_length():
    generator = np.random.default_rng(9)
    lengths = [
        watch(
            GapMonitor(0.0, groups=["0", "1"], window=500), *stream(generator, 4000, (0.4, 0.4)), 20
        ).n_people
        for _ in range(60)
    ]
    assert np.mean(lengths) > 500


def test_people_of_other_groups_are_counted():
    monitor = GapMonitor(groups=["a", "b"])
    state = monitor.update([1, 0, 1, 0], ["a", "b", "c", None])
    assert (monitor.n_unknown, state.n_people, state.value) == (2, 2, 1.0)
    crossed = GapMonitor(groups=["f, x", "m, x"])
    crossed.update([1, 0], pd.DataFrame({"sex": ["f", "m"], "race": ["x", "x"]}))
    assert crossed.state.n_people == 2


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: GapMonitor(groups=["a"]), GroupError),
        (lambda: GapMonitor(groups=["a", "a"]), GroupError),
        (lambda: GapMonitor(2.0, groups=["a", "b"]), InputError),
        (lambda: GapMonitor(groups=["a", "b"], measure="ks_parity_gap"), InputError),
        (lambda: GapMonitor(groups=["a", "b"]).update([0.5, 2.0], ["a", "b"]), InputError),
        (lambda: GapMonitor(groups=["a", "b"]).update([1, 0], ["x", "y"]), GroupError),
        (lambda: GapMonitor(groups=["a", "b"]).update([1, 0], ["a"]), InputError),
        (
            lambda: GapMonitor(groups=["a", "b"], measure="true_positive_gap").update([1], ["a"]),
            InputError,
        ),
    ],
)
def test_bad_input_is_an_error(call, error):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize(
    "damage",
    [
        lambda c: c.update(kind="other"),
        lambda c: c.update(version=99),
        lambda c: c.pop("sums"),
        lambda c: c.update(sums=[[1.0], [1]]),
        lambda c: c.update(capital="x"),
        lambda c: c.update(groups="ab" * 3),
        lambda c: c.update(history=[{"x": 1}]),
        lambda c: c.update(waiting={"a": [0, 10**400]}),
        lambda c: c.update(waiting={"a": [7, 1.0]}),
    ],
)
def test_damaged_files_are_refused(damage, tmp_path):
    monitor = GapMonitor(groups=["a", "b"])
    monitor.update([1, 0], ["a", "b"])
    content = monitor.to_dict()
    damage(content)
    (tmp_path / "m.json").write_text(json.dumps(content))
    with pytest.raises((ModelFileError, GroupError)):
        GapMonitor.load(tmp_path / "m.json")


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(ModelFileError, match=r"cannot be read.*GapMonitor\.save"):
        GapMonitor.load(tmp_path / "none.json")
