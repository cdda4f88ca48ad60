"""Groups: any number, of one attribute or several, from every kind of table."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairmatch.exceptions import ColumnError, GroupError, InputError
from fairmatch.learning.reading import split_columns
from fairmatch.people.groups import read_groups

SEX = ["f", "m", "f", "m", "f"]
RACE = ["Black", "Black", "White", "White", "Asian"]
TABLE = pd.DataFrame({"sex": SEX, "race": RACE})
CROSSED = ("f, Asian", "f, Black", "f, White", "m, Black", "m, White")


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=30).filter(lambda v: len(set(v)) > 1))
def test_codes_and_labels_give_the_column_back(values):
    for given_values in (values, np.array(values), [str(v) for v in values], pd.Series(values)):
        groups = read_groups(given_values)
        assert list(groups.labels) == sorted(set(given_values))
        assert [groups.labels[code] for code in groups.codes] == list(given_values)
        assert groups.names().tolist() == list(given_values)
        np.testing.assert_array_equal(groups.sizes(), np.bincount(groups.codes))


def test_values_that_cannot_be_compared_are_sorted_as_text():
    assert read_groups(np.array(["b", 1, "a"], dtype=object)).labels == (1, "a", "b")


@pytest.mark.parametrize(
    "table",
    [TABLE, pl.from_pandas(TABLE), pa.Table.from_pandas(TABLE), TABLE.to_numpy(),
     list(zip(SEX, RACE, strict=True))],
    ids=["pandas", "polars", "arrow", "numpy", "list"],
)  # fmt: skip
def test_several_attributes_are_crossed(table):
    groups = read_groups(table)
    assert groups.labels == CROSSED
    assert groups.codes.tolist() == [1, 3, 2, 4, 0]
    assert len(groups.attributes) == 2


def test_a_table_of_one_column_is_that_column():
    assert read_groups(TABLE[["sex"]]).labels == ("f", "m")
    assert read_groups(np.array(SEX)[:, None]).labels == ("f", "m")


@pytest.mark.parametrize(
    ("given_groups", "error", "message"),
    [
        (TABLE.assign(sex="f"), GroupError, "'sex' of sensitive_features is constant .'f'."),
        (TABLE.assign(sex=[*SEX[:4], None]), GroupError, "\\['sex'\\] has 1 missing values"),
        ({"sex": SEX}, InputError, "is a dictionary"),
        (pd.DataFrame({"a": ["x, y", "x", "z"], "b": ["z", "y, z", "z"]}), GroupError,
         "read alike, 'x, y, z'"),
    ],
)  # fmt: skip
def test_bad_attributes_are_named(given_groups, error, message):
    with pytest.raises(error, match=message):
        read_groups(given_groups)


def test_missing_values_become_a_group_if_asked():
    groups = read_groups(["b", None, "a"], unknown="unknown")
    assert groups.labels == ("a", "b", "unknown")
    assert groups.codes.tolist() == [1, 2, 0]
    crossed = read_groups(TABLE.assign(sex=[*SEX[:4], None]), unknown="unknown")
    assert "unknown, Asian" in crossed.labels
    written = read_groups(["Unknown", None, "a", "b", "unknown"], unknown="unknown")
    assert written.labels == ("a", "b", "unknown")
    assert written.codes.tolist() == [2, 2, 0, 1, 2]
    assert read_groups(["unknown", "a"]).labels == ("a", "unknown")


def test_the_reference_is_the_largest_or_the_named_group():
    groups = read_groups(["c", "b", "b", "a", "a"])
    assert groups.labels[groups.reference()] == "a", "the first of the largest"
    assert groups.labels[groups.reference("c")] == "c"
    heavy = groups.reference(weights=np.array([9.0, 1, 1, 1, 1]))
    assert groups.labels[heavy] == "c"
    with pytest.raises(GroupError, match=r"reference='d' is not one of the groups.*'a', 'b', 'c'"):
        groups.reference("d")


def test_small_groups_are_pooled():
    groups = read_groups(["a"] * 5 + ["b"] * 5 + ["c", "d"])
    pooled = groups.pooled(2)
    assert pooled.labels == ("a", "b", "other")
    assert pooled.sizes().tolist() == [5, 5, 2]
    assert groups.pooled(1) is groups
    with pytest.raises(GroupError, match="nothing is left"):
        groups.pooled(6)
    with pytest.raises(GroupError, match="called 'other' already"):
        read_groups(["other"] * 5 + ["b"] * 5 + ["c", "d"]).pooled(2)


def test_methods_of_two_groups_say_so():
    assert read_groups(SEX).only_two("LAFTR").n_groups == 2
    with pytest.raises(GroupError, match=r"LAFTR compares two groups, but .* holds 3"):
        read_groups(RACE).only_two("LAFTR")


def test_a_column_that_is_named_twice_is_told():
    table = pd.DataFrame({"sex": ["f", "m"], "age": [20, 30]})
    with pytest.raises(ColumnError, match="sensitive_features has the column 'sex' twice"):
        read_groups(table[["sex", "sex"]])
    for twice in (["sex", "sex"], [0, "sex"]):
        with pytest.raises(ColumnError, match="sensitive_column has the column 'sex' twice"):
            split_columns(table, twice)
    with pytest.raises(ColumnError, match="sensitive_column has the column '1' twice"):
        split_columns(table.to_numpy(), [1, -1])


def test_very_many_groups_and_a_missing_one_keep_their_codes():
    names = np.array([*map(str, range(40_000)), None], dtype=object)
    groups = read_groups(names, unknown="unknown")
    assert groups.labels[groups.codes[-1]] == "unknown"
    assert groups.labels[groups.codes[39_999]] == "39999"


def test_attributes_are_kept_by_themselves_and_unknown_people_apart():
    table = pd.DataFrame({"sex": ["f", "m", None, "m"], "race": ["x", "UNKNOWN", "x", "y"]})
    groups = read_groups(table, unknown="unknown")
    assert [groups.labels[code] for code in groups.apart] == ["m, unknown", "unknown, x"]
    assert [groups.labels[code] for code in groups.compared] == ["f, x", "m, y"]
    sex, race = groups.crossed
    assert (sex.labels, sex.apart) == (("f", "m", "unknown"), (2,))
    assert (race.labels, race.apart) == (("x", "y", "unknown"), (2,))
    assert race.names().tolist() == ["x", "unknown", "x", "y"]
    some = groups.take(np.array([3, 0]))
    assert some.crossed[0].names().tolist() == ["m", "f"]
    assert read_groups(SEX, unknown="unknown").apart == ()


def test_the_reference_is_the_largest_compared_group():
    groups = read_groups([None, None, "a", "b", "b", None], unknown="unknown")
    assert groups.labels[groups.reference()] == "b"
