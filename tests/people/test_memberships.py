"""Groups as probabilities: reading them, and what refuses them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from fairmatch import OptimalTransportMatcher, group_probabilities
from fairmatch.exceptions import GroupError, InputError
from fairmatch.people.groups import read_groups

TABLE = {"a": [0.9, 0.5, 0.1], "b": [0.1, 0.25, 0.9], "c": [0.0, 0.25, 0.0]}


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_of_any_library(library):
    found = group_probabilities(library(TABLE))
    assert found.labels == ("a", "b", "c")
    assert_array_equal(found.values, np.column_stack(list(TABLE.values())))
    assert list(found.most_likely) == ["a", "a", "b"]
    assert len(found) == 3
    assert found.shape == (3,)
    assert len(found[np.array([True, False, True])]) == 2


def test_rows_are_rounded_and_then_sum_to_one():
    found = group_probabilities([[0.333, 0.6665]], labels=["x", "y"])
    assert found.values.sum() == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[0.5, 0.4], [0.5, 0.5]], "the first is row 0"),
        ([[0.5, 0.5], [1.5, -0.5]], "the first is row 1"),
        ([[0.5, np.nan]], "1 row: the first is row 0"),
        ([[1.0]], "At least two columns"),
        ([0.5, 0.5], "one column per group"),
        (np.empty((0, 2)), "is empty"),
        ([["x", "y"]], "numeric"),
    ],
)
def test_what_is_refused(table, message):
    with pytest.raises(InputError, match=message):
        group_probabilities(table)


def test_labels_differ_and_are_as_many_as_the_columns():
    for labels in (["a"], ["a", "a"]):
        with pytest.raises(GroupError, match="with different names"):
            group_probabilities([[0.5, 0.5]], labels=labels)


def test_only_what_is_made_for_them_takes_them():
    found = group_probabilities(TABLE_OF_40)
    for function in (read_groups, np.asarray):
        with pytest.raises(GroupError, match="The groups are probabilities"):
            function(found)
    with pytest.raises(GroupError, match="The groups are probabilities"):
        OptimalTransportMatcher().match(np.zeros((40, 1)), found)


TABLE_OF_40 = np.tile([[0.9, 0.1], [0.2, 0.8]], (20, 1))


def test_certain_groups_are_groups():
    found = read_groups(group_probabilities([[0.0, 1.0], [1.0, 0.0]], labels=["z", "y"]))
    assert found.labels == ("y", "z")
    assert found.codes.tolist() == [0, 1]
    assert found.memberships is None
