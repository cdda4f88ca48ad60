"""CSV and its relatives, as other programs write them."""

import numpy as np
import pandas as pd
import pytest

from fairmatch.exceptions import FairmatchWarning, InputError
from fairmatch.people.files import read_table

PEOPLE = pd.DataFrame({"name": ["Ann", "Jörg"], "age": [20, 31], "pay": [1.5, 2.25]})


@pytest.fixture
def write(tmp_path):
    def writing(content, name="people.csv"):
        file = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    return writing


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_separators_and_marks_are_recognised(write, separator, encoding):
    file = write(PEOPLE.to_csv(index=False, sep=separator).encode(encoding))
    pd.testing.assert_frame_equal(read_table(file), PEOPLE)


@pytest.mark.parametrize("ending", [".tsv", ".txt", ".CSV"])
def test_other_endings_of_text(write, ending):
    file = write(PEOPLE.to_csv(index=False, sep="\t"), f"people{ending}")
    pd.testing.assert_frame_equal(read_table(file), PEOPLE)


def test_latin_1_is_tried_and_told(write):
    file = write(PEOPLE.to_csv(index=False).encode("latin-1"))
    with pytest.warns(FairmatchWarning, match=r"not written in UTF-8 \(line 3\), so it is read as"):
        pd.testing.assert_frame_equal(read_table(file), PEOPLE)
    pd.testing.assert_frame_equal(read_table(file, encoding="latin-1"), PEOPLE)


def test_decimal_commas_and_words_for_missing(write):
    file = write("pay;age\n1,5;20\n2,25;unknown\n")
    read = read_table(file, decimal=",", missing=["unknown"])
    assert read.pay.tolist() == [1.5, 2.25]
    np.testing.assert_array_equal(read.age, [20, np.nan])


def test_separators_within_quotes_are_no_separators(write):
    file = write('title;note\n"a;b";"one, two, three"\n"c";"line\nbreak, and ""quote"""\n')
    assert read_table(file).title.tolist() == ["a;b", "c"]


def test_a_single_column_and_blank_lines(write):
    assert read_table(write("age\n20\n\n30\n")).age.tolist() == [20, 30]


def test_a_column_has_one_type_however_long_the_file(write):
    rows = ["1"] * 300_000 + ["unknown"]
    assert set(read_table(write("\n".join(["a", *rows]))).a.map(type)) == {str}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        # One field too many in every line would shift all columns, as pandas reads it.
        ("a,b\n1,2,3\n4,5,6\n", "line 2: 3 fields where the header has 2, and 1 other lines"),
        ("a,b\n1,2\n1,2,3\n", "line 3: 3 fields where the header has 2"),
        ("a,b,c\n1,2,3\n1,2\n", "line 3: 2 fields where the header has 3"),
        ('a,b\n"x\ny",2\n1\n', "line 4: 1 fields"),
        ("a,b\n1,2,\n", "line 2: 3 fields"),
        ('a,b\n1,"2\n', "Is a closing quote missing"),
        ("a,b,a\n1,2,3\n", "has the column 'a' twice"),
        ("", "cannot be read: it is empty"),
        ("a,b\n", "has no rows"),
        (b"a,b\n1,\x00\n", "null bytes"),
    ],
)
def test_files_that_cannot_be_what_they_seem(write, content, message):
    with pytest.raises(InputError, match=message):
        read_table(write(content))


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("people.xlsx", {}, "is a spreadsheet. Save its sheet as CSV"),
        ("people.docx", {}, "is neither a .csv nor a .parquet file"),
        ("people.csv", {"encoding": "klingon"}, "There is no encoding 'klingon'"),
        ("people.csv", {"encoding": "ascii"}, "is not written in ascii"),
    ],
)
def test_what_cannot_be_read_is_told_with_a_way_out(write, name, settings, message):
    with pytest.raises(InputError, match=message):
        read_table(write(PEOPLE.to_csv(index=False), name), **settings)


def test_a_parquet_file_with_a_name_twice(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    parquet.write_table(table, tmp_path / "p.parquet")
    with pytest.raises(InputError, match="has the column 'a' twice"):
        read_table(tmp_path / "p.parquet")
    (tmp_path / "q.parquet").write_bytes(b"PAR1" + b"x" * 30 + b"PAR1")
    with pytest.raises(InputError, match=r"q\.parquet cannot be read, so it is damaged"):
        read_table(tmp_path / "q.parquet")
