"""Columns that give the group away are found; identifiers and ordinary columns are not."""

import time

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairmatch.datasets import load_adult, load_german
from fairmatch.exceptions import InputError
from fairmatch.people.leaks import Leak, find_leaks

N = 400
RNG = np.random.default_rng(0)
SEX = RNG.choice(["f", "m"], N)
RACE = RNG.choice(["Asian", "Black", "White"], N, p=[0.2, 0.3, 0.5])


def kinds(X, groups):
    return {leak.column: leak.kind for leak in find_leaks(X, groups)}


class TestExact:
    @pytest.mark.parametrize(
        "values",
        [
            np.where(SEX == "f", "Ms", "Mr"),
            SEX == "f",
            (SEX == "f").astype(int),
            np.where(SEX == "f", 1.5, -2.0),
            pd.Categorical(SEX).rename_categories({"f": 7, "m": 9}),
            np.where(SEX == "f", RNG.choice(["Ann", "Eve"], N), RNG.choice(["Bob", "Tom"], N)),
            # Two numbers and a little noise: every value is different, and yet tells the group.
            (SEX == "f") + RNG.normal(scale=0.01, size=N),
        ],
        ids=["text", "flag", "0/1", "numbers", "category", "four names", "noise"],
    )
    def test_columns_that_determine_the_group(self, values):
        assert kinds(pd.DataFrame({"x": values}), SEX) == {"x": "determines"}

    def test_the_group_itself_is_a_copy_even_of_few_rows(self):
        X = pd.DataFrame({"sex": ["f", "m", "f"], "age": [1, 2, 3]})
        assert kinds(X, ["f", "m", "f"]) == {"sex": "copy"}
        assert kinds(pd.DataFrame({"s": ["0", "1", "1"]}), [0, 1, 1]) == {"s": "copy"}
        for n in (2, 8, 20, 100):
            assert kinds([[0.0], [1.0]] * n, [0, 1] * n) == {"x0": "copy"}

    def test_missing_values_that_tell_the_group(self):
        values = np.where(SEX == "f", np.nan, RNG.normal(size=N))
        assert kinds(pd.DataFrame({"pregnancies": values}), SEX) == {"pregnancies": "determines"}

    def test_arrays_and_polars(self):
        is_f = (SEX == "f").astype(float)
        assert kinds(np.column_stack([RNG.normal(size=N), is_f]), SEX) == {"x1": "determines"}
        assert kinds(pl.DataFrame({"s": SEX}), pl.Series(SEX)) == {"s": "copy"}


class TestSeveralGroups:
    def test_one_hot_columns_each_tell_one_group(self):
        X = pd.get_dummies(pd.Series(RACE, name="race"), prefix="race")
        found = find_leaks(X, RACE)
        assert [(leak.column, leak.group, leak.kind) for leak in found] == [
            ("race_Asian", "Asian", "determines"),
            ("race_Black", "Black", "determines"),
            ("race_White", "White", "determines"),
        ]
        assert found[1].words == "column 'race_Black' determines the group 'Black'"

    def test_attributes_are_looked_at_one_by_one(self):
        S = pd.DataFrame({"sex": SEX, "race": RACE})
        X = pd.DataFrame({"origin": RACE, "title": SEX == "f"})
        assert [(leak.column, leak.attribute) for leak in find_leaks(X, S)] == [
            ("origin", "race"),
            ("title", "sex"),
        ]


class TestNear:
    def test_a_near_copy(self):
        copy = SEX.copy()
        copy[:10] = np.where(copy[:10] == "f", "m", "f")
        (leak,) = find_leaks(pd.DataFrame({"gender": copy}), SEX)
        assert leak.kind == "near"
        assert not leak.is_exact
        # By hand: ten rows are wrong, and chance is right in as many as the larger group has.
        assert leak.agreement == pytest.approx(1 - 10 / min((SEX == "f").sum(), (SEX == "m").sum()))
        assert leak.words.startswith("column 'gender' nearly determines the group (9")


class TestInnocent:
    def test_identifiers(self):
        X = pd.DataFrame(
            {
                "id": RNG.permutation(N),
                "name": [f"person {i}" for i in RNG.permutation(N)],
                "household": [f"home {i // 2}" for i in RNG.permutation(N)],
            }
        )
        assert find_leaks(X, SEX) == []

    def test_noise(self):
        assert find_leaks(RNG.normal(size=(N, 50)), SEX) == []
        assert find_leaks(RNG.integers(0, 2, size=(N, 200)), RACE) == []

    def test_few_rows_agree_by_accident(self):
        assert find_leaks([[0.0], [1.0], [0.0], [1.0]], ["a", "b", "a", "b"]) == []

    def test_the_papers_tables(self):
        for data in (load_german(), load_adult()):
            assert find_leaks(data.X, data.sensitive_features) == []

    def test_one_group(self):
        assert find_leaks([[0.0], [1.0]], ["a", "a"]) == []


def test_lengths():
    with pytest.raises(InputError, match="sensitive_features has 2 rows where 3"):
        find_leaks([[0.0], [1.0], [2.0]], ["a", "b"])


def test_it_is_quick():
    n = 50_000
    X = pd.DataFrame(RNG.normal(size=(n, 5)))
    X["name"] = [str(i) for i in range(n)]
    X.columns = X.columns.astype(str)
    start = time.process_time()
    assert find_leaks(X, RNG.integers(0, 9, n)) == []
    assert time.process_time() - start < 5.0


def test_leaks_are_plain():
    assert Leak("a", "copy", "sex", None, 1.0).words == "column 'a' is 'sex'"


def test_large_tables_are_searched_by_a_sample_first(monkeypatch):
    from fairmatch.people import leaks
    from fairmatch.people.encoding import Table
    from fairmatch.people.groups import read_groups

    X = pd.DataFrame({"copy": SEX, "noise": RNG.normal(size=N)})
    whole = find_leaks(X, SEX)
    monkeypatch.setattr(leaks, "_MOST_ROWS", N // 2)
    assert find_leaks(X, SEX) == whole == find_leaks(Table(X), read_groups(SEX))


def test_unknown_people_are_left_out():
    from fairmatch.people.groups import read_groups

    sex = SEX.astype(object)
    sex[:50] = None
    X = pd.DataFrame({"copy": SEX})
    (leak,) = find_leaks(X, read_groups(sex, unknown="unknown"))
    assert leak.kind == "copy"
