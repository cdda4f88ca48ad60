"""Every column of a table has a role, and columns that look like something else are flagged."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairmatch.exceptions import ColumnError, GroupError, InputError
from fairmatch.people.roles import ROLES, Roles

DATES = (
    "holds dates, which cannot be used as they are: give a number instead, such as the days since "
    "the first"
)


@pytest.fixture
def compas():
    """Columns as those of COMPAS, of made-up people."""
    rng = np.random.default_rng(0)
    n = 200
    return pd.DataFrame(
        {
            "id": rng.permutation(10 * n)[:n],
            "name": [f"person {i}" for i in range(n)],
            "race": rng.choice(["Black", "White"], n),
            "age": rng.integers(18, 60, n),
            "income": np.round(rng.uniform(1e3, 9e4, n), 2),
            "priors": [str(i % 7) for i in range(n - 1)] + ["unknown"],
            "score": rng.uniform(size=n),
            "score_b": rng.uniform(size=n),
            "two_year_recid": rng.integers(0, 2, n),
            "married": rng.choice([True, False], n),
            "country": ["US"] * n,
            "screened": pd.date_range("2020-01-01", periods=n),
            "empty": [None] * n,
        }
    )


def by_name(table):
    return {column.name: column for column in table.columns}


class TestReading:
    def test_every_column_has_its_role_and_the_doubts_are_told(self, compas):
        table = Roles(scores=["score"], sensitive="race").read(compas)
        found = by_name(table)
        assert {name: column.role for name, column in found.items()} == {
            "id": "ignored",
            "name": "ignored",
            "race": "sensitive",
            "age": "feature",
            "income": "feature",
            "priors": "feature",
            "score": "score",
            "score_b": "feature",
            "two_year_recid": "feature",
            "married": "feature",
            "country": "feature",
            "screened": "ignored",
            "empty": "ignored",
        }
        assert {name: column.doubt for name, column in found.items() if column.doubt} == {
            "id": "looks like an identifier: 200 different values in 200 rows",
            "name": "looks like an identifier: 200 different values in 200 rows",
            "priors": "is nearly all numbers, except 'unknown' (1); so it is read as text",
            "score_b": "has the name of a score: is it another model's output?",
            "two_year_recid": "has two values and the name of an outcome: is it the label?",
            "country": "holds the same value in every row",
            "screened": DATES,
            "empty": "holds no values",
        }
        assert [column.name for column in table.doubtful] == [
            column.name for column in table.columns if column.doubt
        ]

    @pytest.mark.parametrize(
        "convert",
        [lambda t: t, pl.from_pandas, lambda t: pa.Table.from_pandas(t, preserve_index=False)],
        ids=["pandas", "polars", "pyarrow"],
    )
    def test_libraries_agree(self, compas, convert):
        roles = Roles(scores=["score"], sensitive="race")
        assert roles.read(convert(compas)) == roles.read(compas)

    def test_named_roles_are_kept_without_a_doubt(self, compas):
        roles = Roles(
            scores=["score", "score_b"], sensitive=["race", "married"], label="two_year_recid",
            id="id", weight="income", ignored=["name"],
        )  # fmt: skip
        table = roles.read(compas)
        assert table.named("sensitive") == ["race", "married"]
        assert table.named("weight") == ["income"]
        assert {column.name for column in table.doubtful} == {
            "priors", "country", "screened", "empty",
        }  # fmt: skip

    def test_an_identifier_is_a_feature_if_asked_for(self, compas):
        table = Roles(sensitive="race", features=["id", "age"]).read(compas)
        assert table.features == ["id", "age"]
        assert "identifier" in by_name(table)["id"].doubt
        assert by_name(table)["income"].role == "ignored"
        assert not by_name(table)["name"].doubt

    def test_types_missing_and_distinct_values(self):
        frame = pd.DataFrame(
            {
                "whole": [1.0, None, 2.0, 2.0],
                "broken": [0.5, 1.0, 2.0, np.nan],
                "flag": [True, None, False, True],
                "kind": pd.Categorical(["a", "b", None, "a"]),
                "mixed": [1, "a", 2, 3],
            }
        )
        assert [(c.type, c.n_missing, c.n_distinct) for c in Roles().read(frame).columns] == [
            ("whole numbers", 1, 2),
            ("numbers", 1, 3),
            ("yes or no", 1, 2),
            ("categories", 1, 2),
            ("mixed values", 0, 4),
        ]

    def test_cells_are_text_by_role(self, compas):
        head, rows = Roles(scores=["score"], sensitive="race").read(compas).cells()
        assert head[:2] == ["column", "role"]
        assert [row[1] for row in rows] == sorted([row[1] for row in rows], key=ROLES.index)
        assert all(isinstance(cell, str) for row in rows for cell in row)
        assert rows[0] == ["score", "score", "numbers", "0", "200", "named"]
        assert rows[-1][-1] == "left out; holds no values"


class TestSuspicions:
    def doubt(self, name, values):
        (column,) = Roles().read(pd.DataFrame({name: values})).columns
        return column.role, column.doubt

    @pytest.mark.parametrize("name", ["x", "Unnamed: 0"])
    def test_numbers_of_the_rows(self, name):
        assert self.doubt(name, range(50))[0] == "ignored"
        assert self.doubt(name, np.random.default_rng(0).permutation(50) + 1)[0] == "ignored"

    @pytest.mark.parametrize("name", ["id", "ID", "customerId", "person id", "Unnamed: 0"])
    def test_names_of_identifiers(self, name):
        assert self.doubt(name, [4, 17, 9])[0] == "ignored"
        assert self.doubt(name, [None, 17.0, 9.0])[0] == "ignored"
        assert self.doubt(name, ["4", "17", "9"])[0] == "ignored"

    def test_names_that_only_sound_alike(self):
        assert self.doubt("identity", ["a", "b", "c"]) == ("feature", "")
        assert self.doubt("width", [4, 17, 9]) == ("feature", "")
        assert self.doubt("region_id", [1, 2] * 20) == ("feature", "")

    def test_different_whole_numbers_are_asked_about_and_kept(self):
        role, doubt = self.doubt("salary", np.arange(50) ** 2)
        assert role == "feature"
        assert doubt.endswith("is it one?")

    def test_measurements_are_no_identifiers(self):
        assert self.doubt("height", np.random.default_rng(0).normal(size=100)) == ("feature", "")

    def test_small_tables_have_no_names_of_people(self):
        assert self.doubt("job", ["cook", "nurse", "judge"]) == ("feature", "")

    def test_many_levels(self):
        role, doubt = self.doubt("city", [f"city {i % 150}" for i in range(900)])
        assert (role, doubt[:14]) == ("feature", "has 150 levels")

    def test_numbers_as_text(self):
        assert "written as text" in self.doubt("x", [str(i % 40) for i in range(400)])[1]
        assert self.doubt("grade", [str(i % 4) for i in range(400)]) == ("feature", "")

    def test_decimal_commas(self):
        values = [f"{i % 9},{i % 7}" for i in range(400)]
        assert "decimal comma" in self.doubt("income", values)[1]
        assert "decimal sign" in self.doubt("income", values)[1]

    def test_a_label_is_not_asked_for_twice(self):
        frame = pd.DataFrame({"y": [0, 1, 1], "class": ["a", "b", "a"]})
        assert not Roles(label="y").read(frame).doubtful


class TestErrors:
    def test_all_missing_columns_are_named_at_once(self, compas):
        roles = Roles(scores=["scor"], sensitive="rcae", label="zzz", id="id")
        with pytest.raises(ColumnError) as caught:
            roles.read(compas, name="people.csv")
        told = str(caught.value)
        assert told.startswith("people.csv has no columns 'scor', 'rcae' and 'zzz'.")
        assert "Did you mean 'score' by 'scor'?" in told
        assert "Did you mean 'race' by 'rcae'?" in told
        assert "There are: id, name, race" in told

    def test_one_missing_column(self, compas):
        with pytest.raises(ColumnError, match=r"has no column 'Race'. Did you mean 'race'\?$"):
            Roles(sensitive="Race").read(compas)

    def test_a_list_with_commas(self, compas):
        told = r"no column 'id,name'. 'id,name' is a list, but one column is expected.$"
        with pytest.raises(ColumnError, match=told):
            Roles(sensitive="race", ignored=["id,name"]).read(compas)

    def test_two_roles(self, compas):
        roles = Roles(scores=["score"], label="score", sensitive="race", id="race")
        with pytest.raises(ColumnError, match=r"'score' \(score and label\); 'race' \(sensitive"):
            roles.read(compas)

    def test_a_column_of_numbers_forms_no_groups(self):
        people = pd.DataFrame({"income": np.arange(100.0), "town": np.arange(100) % 40})
        with pytest.raises(GroupError, match=r"'income' has 100 different values in 100 rows"):
            Roles(sensitive="income").read(people)
        assert Roles(sensitive="town").read(people).named("sensitive") == ["town"]

    def test_no_rows(self):
        with pytest.raises(InputError, match="no rows"):
            Roles().read(pd.DataFrame({"a": []}))


def doubt(values, name="column"):
    (column,) = Roles().read(pd.DataFrame({name: values})).columns
    return column.role, column.doubt


class TestColumnsAsPeopleWriteThem:
    """Columns of files that were kept by hand: dates, money, and careless words."""

    @pytest.mark.parametrize(
        "written",
        ["%Y-%m-%d", "%d/%m/%Y", "%m/%d/%y", "%d.%m.%Y", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S",
         "%d %b %Y", "%B %d, %Y", "%Y/%m/%d"],
    )  # fmt: skip
    def test_dates_that_are_written_as_text_are_left_out(self, written):
        days = pd.date_range("2023-01-31", periods=60, freq="7D").strftime(written)
        role, words = doubt([*days, None])
        assert role == "ignored"
        assert words == DATES

    def test_what_is_like_a_date_is_none(self):
        assert doubt(["3/4", "1/2", "3/4", "5/8"] * 20) == ("feature", "")
        assert doubt(["10-19", "20-29", "30-39"] * 20) == ("feature", "")
        assert doubt(["192.168.0.1", "10.0.0.2"] * 20) == ("feature", "")

    @pytest.mark.parametrize("written", ["${:,.0f}", "€ {:,.2f}", "{:,.0f} kr", "{:,.0f}", "{}%"])
    def test_numbers_with_signs_are_asked_about(self, written):
        values = [written.format(1000 + 37 * number) for number in range(60)]
        (column,) = Roles().read(pd.DataFrame({"income": [*values, None]})).columns
        assert (column.role, column.asks) == ("feature", True)
        assert column.doubt == (
            f"holds numbers with signs, such as {values[0]!r}, which are read as text; write plain "
            "numbers"
        )

    @pytest.mark.parametrize("written", ["{} €", "EUR {}", "{}", "CHF {}"])
    @pytest.mark.parametrize("thousands", [".", " ", "\u202f"])
    def test_european_money_is_asked_about(self, written, thousands):
        numbers = [f"{1000 + 37 * number:,}".replace(",", thousands) for number in range(60)]
        values = [written.format(f"{number},50") for number in numbers]
        role, words = doubt(values)
        assert role == "feature"
        assert f"numbers with signs, such as {values[0]!r}" in words

    def test_codes_with_digits_are_no_numbers_with_signs(self):
        codes = [f"AP-{number}" for number in range(60)]
        assert "identifier" in doubt(codes)[1]
        assert "identifier" in doubt([f"10.0.{number}.{number}" for number in range(60)])[1]
        assert doubt(["3 rooms", "4 rooms", "5 rooms"] * 20) == ("feature", "")

    def test_levels_that_differ_in_case_or_spaces_alone_are_named(self):
        role, words = doubt(["Employed", "employed", " Employed", "Retired"] * 10)
        assert role == "feature"
        assert words == (
            "has levels that differ in case or spaces alone, such as ' Employed' and 'Employed'"
        )
        assert doubt(["Employed", "Retired"] * 10) == ("feature", "")


def test_what_predict_and_adjust_wrote_does_not_describe_people():
    people = pd.DataFrame({"age": [*range(20, 50)] * 2, "score_card": [3.5, 7.25, 1.5] * 20})
    assert Roles().read(people).features == ["age", "score_card"]
    scored = people.assign(score_High=0.25, score_Low=0.75, prediction=["Low", "High", "Low"] * 20)
    read = Roles(scores=["score_High", "score_Low"]).read(scored)
    assert read.features == ["age"]
    assert read.columns[-1].doubt == "is a model's output, as fairmatch writes it"
    assert Roles(kept=["score_card"]).read(scored).features == ["age", "score_card"]
    adjusted = people.assign(adjusted_p=0.5, adjusted_decision=["no", "no", "yes"] * 20)
    assert Roles().read(adjusted).features == ["age", "score_card"]
    assert Roles().read(people.assign(adjusted_income=1.5)).features[-1] == "adjusted_income"
