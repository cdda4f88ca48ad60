"""Levels mean the same whatever type a table library gives them, and never vanish in silence."""

import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairmatch.exceptions import ColumnError, InputError
from fairmatch.people.columns import find_levels, level_type, read_columns
from fairmatch.people.encoding import TableEncoder


def through_csv(values):
    file = io.StringIO()
    pd.DataFrame({"a": values}).to_csv(file, index=False)
    file.seek(0)
    return pd.read_csv(file)


# The same four people, in every type in which a table may hold them.
FLAGS = {
    "bool": pd.DataFrame({"a": [True, False, True, True]}),
    "nullable": pd.DataFrame({"a": pd.array([True, False, True, True], dtype="boolean")}),
    "object": pd.DataFrame({"a": pd.Series([True, False, True, True], dtype=object)}),
    "text": pd.DataFrame({"a": ["True", "False", "True", "True"]}),
    "lower case": pd.DataFrame({"a": ["true", "false", "true", "true"]}),
    "upper case": pd.DataFrame({"a": ["TRUE", "FALSE", "TRUE", "TRUE"]}),
    "category": pd.DataFrame({"a": pd.Categorical([True, False, True, True])}),
    "text category": pd.DataFrame({"a": pd.Categorical(["True", "False", "True", "True"])}),
    "csv": through_csv([True, False, True, True]),
    "polars": pl.DataFrame({"a": [True, False, True, True]}),
    "polars text": pl.DataFrame({"a": ["true", "false", "true", "true"]}),
    "arrow": pa.table({"a": [True, False, True, True]}),
    "arrow dictionary": pa.table({"a": pa.array(["true", "false", "true", "true"])
                                  .dictionary_encode()}),
}  # fmt: skip
CODES = {
    "integer category": pd.DataFrame({"a": pd.Categorical([9, 10, 9, 9])}),
    "float category": pd.DataFrame({"a": pd.Categorical([9.0, 10.0, 9.0, 9.0])}),
    "text": pd.DataFrame({"a": ["9", "10", "9", "9"]}),
    "text of floats": pd.DataFrame({"a": ["9.0", "10.0", "9.0", "9.0"]}),
    "text category": pd.DataFrame({"a": pd.Categorical(["9", "10", "9", "9"])}),
    "polars categorical": pl.DataFrame({"a": pl.Series(["9", "10", "9", "9"],
                                                       dtype=pl.Categorical)}),
    "polars enum": pl.DataFrame({"a": pl.Series(["9", "10", "9", "9"],
                                                dtype=pl.Enum(["10", "9"]))}),
    "arrow": pa.table({"a": pa.array([9, 10, 9, 9]).dictionary_encode()}),
    "arrow text": pa.table({"a": pa.array(["9", "10", "9", "9"]).dictionary_encode()}),
}  # fmt: skip
# Numbers without a type that makes them categories; they can be asked, not fitted.
NUMBERS = {
    "integers": pd.DataFrame({"a": [9, 10, 9, 9]}),
    "floats": pd.DataFrame({"a": [9.0, 10.0, 9.0, 9.0]}),
    "nullable": pd.DataFrame({"a": pd.array([9, 10, 9, 9], dtype="Int64")}),
    "polars": pl.DataFrame({"a": [9, 10, 9, 9]}),
    "arrow": pa.table({"a": [9, 10, 9, 9]}),
}


def partition(encoder, table):
    """Which rows are encoded alike, by the number of the first such row."""
    rows = encoder.transform(table).tolist()
    assert all(sum(row) == 1 for row in rows)
    return [rows.index(row) for row in rows]


def refuse_other_spelling(fitted, asked, tables):
    """Skip two texts that are spelt differently: they are different levels, and an error."""
    first, second = (read_columns(tables[name])[0].levels for name in (fitted, asked))
    if first is None or second is None or level_type(first) != level_type(second):
        return
    if level_type(first) == "text" and set(first) != set(second):
        with pytest.raises(ColumnError, match="No value of column 'a'"):
            TableEncoder().fit(tables[fitted]).transform(tables[asked])
        pytest.skip("these texts are spelt differently")


class TestEveryCombination:
    @pytest.mark.parametrize("asked", FLAGS)
    @pytest.mark.parametrize("fitted", FLAGS)
    def test_booleans(self, fitted, asked):
        refuse_other_spelling(fitted, asked, FLAGS)
        encoder = TableEncoder().fit(FLAGS[fitted])
        assert (encoder.transform(FLAGS[asked]) == encoder.transform(FLAGS[fitted])).all()
        assert partition(encoder, FLAGS[asked]) == [0, 1, 0, 0]

    @pytest.mark.parametrize("asked", CODES | NUMBERS)
    @pytest.mark.parametrize("fitted", CODES)
    def test_codes(self, fitted, asked):
        refuse_other_spelling(fitted, asked, CODES | NUMBERS)
        encoder = TableEncoder().fit(CODES[fitted])
        table = (CODES | NUMBERS)[asked]
        assert (encoder.transform(table) == encoder.transform(CODES[fitted])).all()
        assert (encoder.to_codes(table) == encoder.to_codes(CODES[fitted])).all()
        np.testing.assert_array_equal(
            encoder.to_points(table).codes, encoder.to_points(CODES[fitted]).codes
        )

    @pytest.mark.parametrize("asked", [k for k in CODES if k in ("integer category", "arrow")])
    def test_numbers_are_read_from_categories(self, asked):
        encoder = TableEncoder().fit(NUMBERS["integers"])
        assert encoder.transform(CODES[asked]).tolist() == [[0], [1], [0], [0]]

    def test_numbers_are_read_from_booleans(self):
        encoder = TableEncoder().fit(pd.DataFrame({"a": [0, 1]}))
        assert encoder.transform(FLAGS["bool"]).ravel().tolist() == [1, 0, 1, 1]

    def test_booleans_are_read_from_numbers(self):
        encoder = TableEncoder().fit(FLAGS["bool"])
        assert encoder.transform(pd.DataFrame({"a": [1, 0]})).tolist() == [[0, 1], [1, 0]]


class TestUnknown:
    def test_one_strange_row_changes_no_other(self):
        # A word among booleans makes a CSV column text.
        encoder = TableEncoder().fit(FLAGS["csv"])
        table = through_csv(["True", "False", "unknown"])
        assert encoder.transform(table).tolist() == [[0, 1], [1, 0], [0, 0]]

    def test_a_column_without_a_known_value_is_an_error(self):
        encoder = TableEncoder().fit(FLAGS["bool"])
        with pytest.raises(ColumnError) as caught:
            encoder.transform(pd.DataFrame({"a": ["ja", "nein"]}))
        for part in ["No value of column 'a'", "text now, such as 'ja', 'nein'",
                     "held boolean, such as False, True"]:  # fmt: skip
            assert part in str(caught.value)

    def test_in_codes_and_points_too(self):
        encoder = TableEncoder().fit(FLAGS["text"])
        for method in (encoder.to_codes, encoder.to_points):
            with pytest.raises(ColumnError, match="No value of column 'a'"):
                method(pd.DataFrame({"a": ["yes", "no"]}))

    def test_another_type_is_an_error_even_for_one_row(self):
        encoder = TableEncoder().fit(FLAGS["bool"])
        with pytest.raises(ColumnError, match="boolean"):
            encoder.transform(pd.DataFrame({"a": ["unknown"]}))

    def test_one_new_level_is_none(self):
        encoder = TableEncoder().fit(pd.DataFrame({"a": ["x", "y"]}))
        assert encoder.transform(pd.DataFrame({"a": ["z", "z"]})).tolist() == [[0, 0], [0, 0]]

    def test_a_word_among_numbers_is_named(self):
        encoder = TableEncoder().fit(NUMBERS["integers"])
        with pytest.raises(ColumnError, match="text such as '10', '9', 'unknown'"):
            encoder.transform(pd.DataFrame({"a": ["9", "10", "unknown"]}))


class TestFindLevels:
    def test_texts_are_compared_as_they_are(self):
        assert find_levels(["1", "01", "true"], ["01", "1.0", "True"]).tolist() == [1, -1, -1]

    def test_what_is_spelt_alike_comes_first(self):
        assert find_levels(["01", "1"], [1, 1.0]).tolist() == [1, 0]
        assert find_levels(["true", "True"], [True]).tolist() == [1]

    def test_nothing_is_found_among_nothing(self):
        assert find_levels([], ["a"]).tolist() == [-1]
        assert find_levels(["a"], []).tolist() == []
        assert level_type([]) == "nothing"

    @pytest.mark.parametrize("text", ["nan", "inf", "1_000", "0x1", "", " 1"])
    def test_what_only_python_reads_as_a_number(self, text):
        assert find_levels([0, 1, 1000], [text]).tolist() == [-1]


class TestBlanks:
    @pytest.mark.parametrize(
        "table",
        [
            pd.read_csv(io.StringIO("a,b\nTrue,1\n,2\nFalse,3\n")),
            pd.DataFrame({"a": pd.Series([True, pd.NA, False], dtype=object), "b": [1, 2, 3]}),
            pd.DataFrame({"a": pd.array([True, None, False], dtype="boolean"), "b": [1, 2, 3]}),
            pl.DataFrame({"a": [True, None, False], "b": [1, 2, 3]}),
            pa.table({"a": [True, None, False], "b": [1, 2, 3]}),
        ],
        ids=["csv", "NA", "nullable", "polars", "arrow"],
    )
    def test_a_boolean_column_with_blanks(self, table):
        encoder = TableEncoder(missing="encode").fit(table)
        assert encoder.transform(table).tolist() == [[0, 1, 0, 0], [0, 0, 1, 0.5], [1, 0, 0, 1]]
        with pytest.raises(InputError, match=r"'a' \(1\)"):
            TableEncoder().fit(table)

    @pytest.mark.parametrize("hole", [None, pd.NA, np.nan])
    def test_numbers_with_blanks(self, hole):
        for table in [
            pd.DataFrame({"a": pd.Series([1, hole, 3], dtype=object)}),
            [[1], [hole], [3]],
            np.array([[1], [hole], [3]], dtype=object),
        ]:
            encoded = TableEncoder(missing="encode").fit_transform(table)
            assert encoded.tolist() == [[0, 0], [0.5, 1], [1, 0]]

    def test_a_masked_array(self):
        masked = np.ma.array([[1.0], [999.0], [3.0]], mask=[[False], [True], [False]])
        encoded = TableEncoder(missing="encode").fit_transform(masked)
        assert encoded.tolist() == [[0, 0], [0.5, 1], [1, 0]]
        with pytest.raises(InputError, match=r"'x0' \(1\)"):
            TableEncoder().fit(masked)


def _forms(values):
    """The same column as every type that a table library may give it."""
    text = [str(value) for value in values]
    yield from (pd.Series(values), pd.Series(values.astype(int)), pd.Series(values.astype(float)))
    yield from (pd.Series(list(values), dtype=object), pd.Series(values.astype(int), dtype="Int64"))
    yield from (pd.Series(text, dtype=object), pd.Series(text, dtype="string"))
    yield from (pd.Series(form).astype("category") for form in (values, text, values.astype(float)))


@pytest.mark.parametrize("values", [np.array([1, 3, 2] * 8), np.array([True, False] * 12)])
def test_another_type_gives_the_same_numbers_or_an_error(values):
    """In all combinations of types and libraries: nothing is unseen in silence."""
    tables = []
    for form in _forms(values):
        frame = pd.DataFrame({"c": form})
        tables += [frame, pl.from_pandas(frame), pa.Table.from_pandas(frame, preserve_index=False)]
    refused = 0
    for fitted in tables:
        encoder = TableEncoder().fit(fitted)
        wanted = encoder.transform(fitted)
        for asked in tables:
            try:
                np.testing.assert_array_equal(encoder.transform(asked), wanted)
            except ColumnError:
                refused += 1
    assert refused < len(tables) ** 2 / 2
