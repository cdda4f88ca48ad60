"""Every kind of bad input is met by an error of its own and a sentence that says what to do."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairmatch import Coupling, OptimalTransportMatcher, fair_matching, measures
from fairmatch.exceptions import CouplingError, FairmatchError, GroupError, InputError, LabelError
from fairmatch.matching.fair import transport_cost_range
from fairmatch.measures import (
    consistency,
    equalized_odds_gap,
    false_positive_gap,
    gap_table,
    matched_parity_gap,
    mean_parity_gap,
    random_subset_gaps,
    rank_agreement,
    subset_parity_gap,
    total_variation_parity_gap,
    true_positive_gap,
    undesirable_flips,
)
from fairmatch.measures.registry import applicable
from fairmatch.people.checks import check_count, read_features
from fairmatch.people.groups import read_groups
from fairmatch.people.outcome import PROBABILITY

SCORES = [0.1, 0.9, 0.4, 0.6]
GROUPS = ["a", "a", "b", "b"]
LABELS = [0, 1, 0, 1]
X = [[0.0], [1.0], [0.0], [1.0]]
PAIRS = Coupling([0, 1], [2, 3], [0.5, 0.5], n_rows=4, groups=("a", "b"))

# Everything that reads scores and groups; each takes (scores, groups, weights).
READERS = {
    name: lambda s, g, w=None, name=name: getattr(measures, name)(
        LABELS, s, sensitive_features=g, sample_weight=w
    )
    for name, measure in applicable(PROBABILITY).items()
    if not measure.needs_coupling
} | {
    "subset_parity_gap": lambda s, g, w=None: subset_parity_gap(
        None, s, sensitive_features=g, subset=[True] * 4, sample_weight=w
    ),
    "random_subset_gaps": lambda s, g, w=None: random_subset_gaps(
        None, s, sensitive_features=g, X=X, n_subsets=2, sample_weight=w
    ),
    "gap_table": lambda s, g, w=None: gap_table(None, s, sensitive_features=g, sample_weight=w),
    "fair_matching": lambda s, g, w=None: fair_matching(s, g, sample_weight=w),
    "transport_cost_range": lambda s, g, w=None: transport_cost_range(s, g, X, sample_weight=w),
}
UNWEIGHTED_READERS = {
    "matched_parity_gap": lambda s, g: matched_parity_gap(
        None, s, sensitive_features=g, coupling=PAIRS
    ),
    "rank_agreement": lambda s, g: rank_agreement(SCORES, s, sensitive_features=g),
    "undesirable_flips": lambda s, g: undesirable_flips(
        SCORES, s, sensitive_features=g, privileged="a"
    ),
}
every_reader = pytest.mark.parametrize(
    "read", (READERS | UNWEIGHTED_READERS).values(), ids=(READERS | UNWEIGHTED_READERS).keys()
)
weighted_reader = pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())


@every_reader
@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([0.1, np.nan, 0.4, 0.6], r"1 entries .* \(the first in row 1, counted from 0\)"),
        ([0.1, 0.9, np.inf, 0.6], r"NaN or infinite \(the first in row 2, counted from 0\)"),
        ([0.1, 0.9, -np.inf, np.nan], r"2 entries that are NaN or infinite"),
        ([0.1, 1.5, 0.4, 0.6], r"must lie in \[0, 1\], got values from 0.1 to 1.5"),
        ([-2.0, 0.9, 0.4, 0.6], r"turn margins or logits into probabilities"),
        (["0.1", "0.9", "0.4", "0.6"], r"row 0, counted from 0, holds '0.1'\).*make it NaN"),
        (np.array([0.1, 0.9, None, 0.6], dtype=object), "must be numeric, got dtype object"),
        ([[0.1, 0.8], [0.9, 0.1], [0.4, 0.6], [0.4, 0.6]], r"one-dimensional.*\(4, 2\)|sum to 1"),
        ([], "is empty"),
        (np.ma.array(SCORES, mask=[0, 1, 0, 0]), "y_score has 1 masked entries"),
        (np.array([0.1, pd.NA, 0.4, 0.6], dtype=object), "row 1, counted from 0, holds <NA>"),
    ],
    ids=[
        "nan",
        "inf",
        "both",
        "above",
        "below",
        "text",
        "object",
        "two columns",
        "empty",
        "masked",
        "NA",
    ],
)
def test_bad_scores(read, scores, message):
    with pytest.raises(InputError, match=message):
        read(scores, GROUPS)


@every_reader
@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        (["a"] * 4, GroupError, r"one group only \('a'\)"),
        (["a", None, "b", "b"], GroupError, "1 missing values"),
        ([0.0, np.nan, 1.0, np.nan], GroupError, "2 missing values"),
        (np.array(["a", pd.NA, "b", "b"], dtype=object), GroupError, "1 missing values"),
        (pd.Series(["a", pd.NA, "b", "b"], dtype="string"), GroupError, "1 missing values"),
        (pl.Series(["a", None, "b", "b"]), GroupError, "1 missing values"),
        (pa.array([1, None, 0, 0]), GroupError, "1 missing values"),
        (["a", float("nan"), "a", "a"], GroupError, "1 missing values"),
        (np.array(["2020", "NaT", "2021", "2021"], dtype="M8[D]"), GroupError, "1 missing"),
        (["a", "b"], InputError, "2 rows|2 and|table of 4 rows"),
        ([["a", "b"]] * 4, InputError, "'attribute 1' of sensitive_features is constant"),
    ],
    ids=["one", "None", "nan", "NA", "NA string", "polars", "pyarrow", "nan among text",
         "NaT", "short", "constant attributes"],
)  # fmt: skip
def test_bad_groups(read, groups, error, message):
    with pytest.raises((error, CouplingError), match=message):
        read(SCORES, groups)


@weighted_reader
@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ([1.0, 1.0, -1.0, 3.0], InputError, "finite and not negative"),
        ([1.0, 1.0, np.nan, 3.0], InputError, "finite and not negative"),
        ([1.0, 1.0, np.inf, 3.0], InputError, "finite and not negative"),
        ([1e308] * 4, InputError, "its sum overflows. Divide the weights by the largest one"),
        (np.ma.array([1.0, 1.0, 9.0, 1.0], mask=[0, 0, 1, 0]), InputError, "1 masked entries"),
        ([1.0, 1.0], InputError, "sample_weight has 2 rows where 4"),
        (["1", "1", "1", "1"], InputError, "sample_weight must be numeric"),
        ([0.0, 0.0, 1.0, 1.0], (GroupError, LabelError), "weights of group 'a'.* sum to zero"),
    ],
    ids=["negative", "nan", "inf", "huge", "masked", "short", "text", "zero in one group"],
)
def test_bad_weights(read, weights, error, message):
    with pytest.raises(error, match=message):
        read(SCORES, GROUPS, weights)


def test_a_group_with_weight_only_outside_the_subset():
    with pytest.raises(GroupError, match="weights of group 'a' in the subset sum to zero"):
        subset_parity_gap(
            None, SCORES, sensitive_features=GROUPS, subset=[True, False, True, True],
            sample_weight=[0, 1, 1, 1],
        )  # fmt: skip


@pytest.mark.parametrize("measure", [true_positive_gap, false_positive_gap, equalized_odds_gap])
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "y_true is None"),
        ([0, 1, 2, 1], "two classes, got 3"),
        (["no", "yes", "no", "yes"], "No entry of y_true equals pos_label=1; it holds no, yes"),
        (np.array(["no", "yes", "no", "yes"]), "Pass pos_label="),
        ([0, 0, 0, 0], "No entry of y_true equals pos_label=1"),
        ([0, 1, None, 1], "1 missing labels"),
        ([0.0, 1.0, np.nan, 1.0], "1 missing labels"),
    ],
)
def test_bad_labels(measure, labels, message):
    with pytest.raises(LabelError, match=message):
        measure(labels, SCORES, sensitive_features=GROUPS)


def test_masked_features():
    with pytest.raises(InputError, match="X has 1 masked entries"):
        read_features(np.ma.array([[1.0], [2.0]], mask=[[False], [True]]))
    assert read_features(np.ma.array([[1.0], [2.0]])).tolist() == [[1], [2]]


def test_features_that_are_too_large():
    assert read_features([[1e40]]).tolist() == [[1e40]]
    told = r"X holds -1e\+40 \(row 1, column 0, counted from 0\), beyond 1e\+18"
    with pytest.raises(InputError, match=told):
        read_features([[1.0], [-1e40]], largest=1e18)


def test_labels_of_another_length():
    with pytest.raises(InputError, match="y_true has 3 rows where 4 were expected"):
        true_positive_gap([0, 1, 1], SCORES, sensitive_features=GROUPS)


@pytest.mark.parametrize(
    ("measure", "labels", "message"),
    [
        (true_positive_gap, [0, 0, 1, 1], "Group 'a' has no rows in the rows whose label is 1"),
        (false_positive_gap, [1, 1, 1, 0], "Group 'a' has no rows in the rows .* is not 1"),
        (equalized_odds_gap, [1, 1, 1, 1], "has no rows in the rows whose label is not 1"),
    ],
)
def test_a_group_without_the_label(measure, labels, message):
    with pytest.raises(LabelError, match=message):
        measure(labels, SCORES, sensitive_features=GROUPS)


@pytest.mark.parametrize(
    ("subset", "error", "message"),
    [
        ([False] * 4, GroupError, "Group 'a' has no rows in the subset"),
        ([True, True, False, False], GroupError, "Group 'b' has no rows in the subset"),
        ([0, 1, 2, 3], InputError, "must be a boolean mask, got dtype int"),
        ([True, True], InputError, "subset has 2 rows where 4"),
        ([], InputError, "subset is empty"),
    ],
)
def test_bad_subset(subset, error, message):
    with pytest.raises(error, match=message):
        subset_parity_gap(None, SCORES, sensitive_features=GROUPS, subset=subset)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([[0.0], [1.0]], "X has 2 rows where 4 were expected"),
        ([["x"], ["y"], ["x"], ["y"]], "Encode its text columns first"),
        (np.zeros((4, 1, 1)), "rows and columns"),
        ([[0.0], [np.nan], [0.0], [1.0]], r"row 1, column 0, counted from 0\)"),
    ],
)
@pytest.mark.parametrize(
    "read",
    [
        lambda features: random_subset_gaps(None, SCORES, sensitive_features=GROUPS, X=features),
        lambda features: transport_cost_range(SCORES, GROUPS, features),
        lambda features: fair_matching([1, 1, 1, 1], GROUPS, X=features),
    ],
    ids=["random_subset_gaps", "transport_cost_range", "fair_matching"],
)
def test_bad_features(read, features, message):
    with pytest.raises(InputError, match=message):
        read(features)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"u": [1.5, 2.0], "v": [True, False]}),
        pd.DataFrame({"u": pd.array([1.5, 2.0], dtype="Float64"), "v": [True, False]}),
        pl.DataFrame({"u": [1.5, 2.0], "v": [True, False]}),
        pa.table({"u": [1.5, 2.0], "v": [True, False]}),
    ],
    ids=["pandas", "pandas nullable", "polars", "pyarrow"],
)
def test_tables_may_mix_numbers_and_flags(table):
    assert read_features(table).tolist() == [[1.5, 1.0], [2.0, 0.0]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: matched_parity_gap(None, SCORES, sensitive_features=GROUPS, coupling=PAIRS,
                                    sample_weight=[1] * 4),
         CouplingError, "sample_weight was given together with a coupling"),
        (lambda: matched_parity_gap(None, SCORES[:3], sensitive_features=GROUPS[:3],
                                    coupling=PAIRS), CouplingError, "rows, but is used on one of"),
        (lambda: undesirable_flips(SCORES, SCORES, sensitive_features=GROUPS, privileged="c"),
         GroupError, "privileged='c' is not one of the groups. The groups are 'a', 'b'"),
        (lambda: consistency(SCORES, [0.5]), InputError, "flipped_score has 1 rows where 4"),
        (lambda: total_variation_parity_gap(None, SCORES, sensitive_features=GROUPS, bins=0),
         InputError, "bins must be a whole number of at least 1"),
        (lambda: OptimalTransportMatcher(label_weight=-1.0), InputError, "label_weight"),
        (lambda: OptimalTransportMatcher(label_weight=np.inf), InputError, "label_weight"),
        (lambda: OptimalTransportMatcher(batch_size=0), InputError, "batch_size"),
        (lambda: OptimalTransportMatcher(tolerance=0.0), InputError, "tolerance"),
        (lambda: OptimalTransportMatcher(label_weight=1.0).match(X, GROUPS), InputError, "Pass y"),
        (lambda: OptimalTransportMatcher(label_weight=1.0).match(X, GROUPS, [0, 1, 2, 1]),
         LabelError, "two classes"),
        (lambda: OptimalTransportMatcher(label_weight=1.0).match(X, GROUPS, [0, 1, None, 1]),
         LabelError, "1 missing labels"),
        (lambda: OptimalTransportMatcher(label_weight=1.0).match(X, GROUPS, [0, 1]),
         InputError, "y has 2 rows where 4"),
        (lambda: OptimalTransportMatcher().match(X, GROUPS, sample_weight=[0, 0, 1, 1]),
         GroupError, "weights of group 'a' sum to zero"),
    ],
)  # fmt: skip
def test_bad_choices(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, FairmatchError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        (["f", "m", "f"], ("f", "m")),
        ([True, False, True], (False, True)),
        ([2, 1, 2], (1, 2)),
        ([0.5, 0.25, 0.5], (0.25, 0.5)),
        (np.array(["m", "f", "m"], dtype=object), ("f", "m")),
        (pd.Categorical(["f", "m", "f"], categories=["m", "f"]), ("f", "m")),
        (pd.Series(["f", "m", "f"], dtype="category"), ("f", "m")),
        (pd.DataFrame({"sex": ["f", "m", "f"]}), ("f", "m")),
        (pl.Series(["f", "m", "f"], dtype=pl.Categorical), ("f", "m")),
        (pl.Series([True, False, True]), (False, True)),
        (pa.array(["f", "m", "f"]).dictionary_encode(), ("f", "m")),
        (pa.chunked_array([["f", "m"], ["f"]]), ("f", "m")),
        ([1, "m", 1], (1, "m")),
    ],
)
def test_groups_of_every_kind(given, labels):
    groups = read_groups(given)
    assert groups.labels == labels
    assert [type(label) for label in groups.labels] == [type(label) for label in labels]
    assert len(groups) == 3
    assert [labels[code] for code in groups.codes] == list(np.asarray(given, dtype=object).ravel())


@pytest.mark.parametrize(
    "column",
    [
        list,
        tuple,
        np.array,
        lambda values: np.array(values)[:, None],
        lambda values: np.array(values, dtype=np.float32),
        pd.Series,
        lambda values: pd.Series(values, dtype="Float64"),
        lambda values: pd.DataFrame({"score": values}),
        pl.Series,
        pa.array,
        lambda values: pa.chunked_array([values[:1], values[1:]]),
    ],
)
def test_columns_of_every_kind(column):
    scores, groups = column([0.25, 0.5, 0.75, 0.75]), pd.Series(GROUPS, index=[7, 7, 1, 0])
    assert mean_parity_gap(None, scores, sensitive_features=groups) == 0.375
    weights = column([3.0, 1.0, 1.0, 1.0])
    gap = mean_parity_gap(None, scores, sensitive_features=groups, sample_weight=weights)
    assert gap == 0.4375
    coupling = fair_matching(scores, groups, X=column([0.0, 1.0, 1.0, 0.0]))
    assert coupling.transport_cost(column([0.0, 1.0, 1.0, 0.0])) == 0.0


class TestCounts:
    @pytest.mark.parametrize("value", [1, np.int8(3), 10**30])
    def test_whole_numbers(self, value):
        check_count("n", value)

    @pytest.mark.parametrize("value", [True, np.True_, 0, 1.0, np.float64(2.0), "1", None, [1]])
    def test_what_is_none(self, value):
        with pytest.raises(InputError, match=r"^n must be a whole number of at least 1, got "):
            check_count("n", value)

    def test_those_that_may_be_left_out(self):
        check_count("n", None, optional=True)
        with pytest.raises(InputError, match="n must be a whole number of at least 2 or None, got"):
            check_count("n", 1, 2, optional=True)
