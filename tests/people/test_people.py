"""People and tables: rows are read once, and comparisons cover groups, classes and strata."""

import numpy as np
import pandas as pd
import pytest

from fairmatch import (
    OptimalTransportMatcher,
    align_scores,
    audit,
    compare_models,
    fair_matching,
    fit_adjustment,
    fit_calibration,
)
from fairmatch.datasets import load_german
from fairmatch.exceptions import GroupError, InputError
from fairmatch.measures import equalized_odds_gap
from fairmatch.people import encoding
from fairmatch.people.encoding import Table, TableEncoder, read_points
from fairmatch.people.groups import read_criterion, read_groups
from fairmatch.people.leaks import find_leaks
from fairmatch.people.people import Codes, Labels, People
from fairmatch.people.weights import Weights

GERMAN = load_german()
PARITY, ODDS = read_criterion("demographic_parity"), read_criterion("equalized_odds")


def test_a_table_is_read_once(monkeypatch):
    calls = []
    read = encoding.read_columns
    monkeypatch.setattr(encoding, "read_columns", lambda X: calls.append(1) or read(X))
    table = Table(GERMAN.X)
    encoder = TableEncoder().fit(table)
    rows = np.arange(0, 1000, 3)
    for some in (table, table.take(rows)):
        encoder.to_points(some), encoder.to_codes(some), encoder.transform(some), some.points
    find_leaks(table, read_groups(GERMAN.sensitive_features))
    assert len(calls) == 1


def test_a_table_encodes_like_its_source():
    rows = np.random.default_rng(0).permutation(1000)[:300]
    table, source = Table(GERMAN.X).take(rows), GERMAN.X.iloc[rows]
    pd.testing.assert_frame_equal(table.native, source)
    own, plain = TableEncoder().fit(table), TableEncoder().fit(source)
    assert own.to_dict() == plain.to_dict()
    np.testing.assert_array_equal(own.transform(table), plain.transform(source))
    np.testing.assert_array_equal(own.to_codes(table), plain.to_codes(source))
    np.testing.assert_array_equal(table.points.dense(), read_points(source).dense())
    assert len(table.take(np.array([1, 2]))) == 2


def test_numbers_are_points_as_they_are():
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [True, False, True]})
    assert Table(frame).points.numbers.tolist() == [[1.0, 1.0], [2.0, 0.0], [3.0, 1.0]]
    with pytest.raises(InputError, match="missing values"):
        _ = Table(frame.assign(a=[1.0, None, 2.0])).points


def people(n_rows=60, seed=0, **more):
    rng = np.random.default_rng(seed)
    groups = read_groups(rng.permutation(np.array(["a", "b", "c"])[np.arange(n_rows) % 3]))
    labels = Labels(rng.integers(0, 2, n_rows).astype(float), (0, 1))
    return People(groups, labels=labels, **more)


def test_comparisons_of_strata_are_those_of_each_stratum():
    strata = Codes(np.random.default_rng(1).integers(0, 3, 60), ("x", "y", "z"))
    weights = Weights(60, np.random.default_rng(2).uniform(0.5, 2.0, 60))
    found = people(strata=strata, weight=weights).comparisons(ODDS, "b")
    assert sum(comparison.weight for comparison in found) == pytest.approx(1.0)
    for comparison in found:
        inside = np.flatnonzero(strata.values == comparison.stratum)
        alone = people(weight=weights).take(inside).comparisons(ODDS, "b")
        (same,) = (
            own for own in alone if (own.source, own.label) == (comparison.source, comparison.label)
        )
        np.testing.assert_array_equal(inside[same.source_rows], comparison.source_rows)
        np.testing.assert_array_equal(inside[same.target_rows], comparison.target_rows)
    for source in (0, 2):
        for label in (True, False):
            own = [c for c in found if (c.source, c.label) == (source, label)]
            mass = [weights.values[np.r_[c.source_rows, c.target_rows]].sum() for c in own]
            shares = [c.weight for c in own]
            assert sum(shares) == pytest.approx(0.25)
            np.testing.assert_allclose(shares, np.array(mass) / sum(mass) / 4)


def test_groups_that_are_apart_are_not_compared():
    groups = read_groups(["a", "b", None, "b"], unknown="unknown")
    (only,) = People(groups).comparisons(PARITY)
    assert (only.source, only.target, only.weight) == (0, 1, 1.0)
    with pytest.raises(GroupError, match="among the groups that are not compared"):
        People(groups).comparisons(PARITY, "unknown")
    with pytest.raises(GroupError, match="No group is left to compare"):
        People(read_groups(["a", None, "a"], unknown="unknown")).comparisons(PARITY)


def test_strata_without_both_groups_are_an_error():
    strata = Codes(np.array([0, 1, 1]), ("x", "y"))
    with pytest.raises(GroupError, match="No stratum holds people of both 'a' and 'b'"):
        People(read_groups(["a", "b", "b"]), strata=strata).comparisons(PARITY)


SCORES, GROUPS = pd.Series(np.linspace(0.1, 0.9, 60)), pd.Series(["a", "b"] * 30)
COLUMNS = {
    "y_score": SCORES,
    "X": pd.DataFrame({"age": np.arange(60.0) % 7}),
    "sensitive_features": GROUPS,
    "y_true": pd.Series([0, 1, 1] * 20),
}
CALLS = {
    "audit": lambda own: audit(
        own["y_score"], X=own["X"], sensitive_features=own["sensitive_features"],
        y_true=own["y_true"], n_resamples=100, n_subsets=20,
    ),
    "compare_models": lambda own: compare_models(
        {"one": own["y_score"], "two": np.linspace(0.9, 0.1, 60)}, X=own["X"],
        sensitive_features=own["sensitive_features"], y_true=own["y_true"], n_resamples=100,
    ),
    "measure": lambda own: equalized_odds_gap(
        own["y_true"], own["y_score"], sensitive_features=own["sensitive_features"]
    ),
    "fit_adjustment": lambda own: fit_adjustment(
        own["y_score"], own["sensitive_features"], y_true=own["y_true"]
    ),
    "align_scores": lambda own: align_scores(own["y_score"], own["sensitive_features"]),
    "fit_calibration": lambda own: fit_calibration(
        own["y_score"], own["y_true"], sensitive_features=own["sensitive_features"]
    ),
    "fair_matching": lambda own: fair_matching(
        own["y_score"], own["sensitive_features"], y_true=own["y_true"]
    ),
    "match": lambda own: OptimalTransportMatcher().match(
        own["X"], own["sensitive_features"], own["y_true"]
    ),
}  # fmt: skip


class TestOrderOfRows:
    """Rows go by position, so an index of pandas in another order is an error everywhere."""

    @pytest.mark.parametrize("call", CALLS)
    def test_another_order_is_told(self, call):
        function, columns = CALLS[call], COLUMNS
        function(columns)
        unrelated = {"sensitive_features": GROUPS.set_axis(range(100, 160))}
        function(columns | unrelated)  # says nothing about which row is meant
        read = {"match": ["X", "y_true"], "align_scores": ["y_score"]}
        for name in read.get(call, ["y_score", "y_true"]):
            with pytest.raises(InputError, match="have the same index in different orders"):
                function(columns | {name: columns[name][::-1]})
        with pytest.raises(InputError, match=r"sensitive_features and .* same index"):
            function(columns | {"sensitive_features": GROUPS[::-1]})

    def test_the_same_order_of_all_is_none(self):
        turned = {name: own[::-1] for name, own in COLUMNS.items()}
        assert CALLS["measure"](turned) == pytest.approx(CALLS["measure"](COLUMNS))

    def test_an_adjustment_is_applied_to_rows_in_one_order(self):
        fitted = fit_adjustment(SCORES, GROUPS)
        with pytest.raises(InputError, match="sensitive_features and y_score have the same index"):
            fitted.apply(SCORES, GROUPS[::-1])
