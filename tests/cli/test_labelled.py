"""Tables with their labels and groups, read from files."""

from types import SimpleNamespace

import pandas as pd
import pytest

from fairmatch.cli.labelled import open_labelled, read_labelled
from fairmatch.exceptions import ColumnError
from fairmatch.people.roles import split_names


@pytest.mark.parametrize(
    ("labels", "positive", "classes"),
    [
        (["no", "yes", "yes"], "yes", ("no", "yes")),
        (["hired", "refused", "hired"], "hired", ("refused", "hired")),  # not in sorted order
        ([1, 2, 2], "2", (1, 2)),
        (["low", "high", "middle"], "high", ("not high", "high")),
    ],
)
def test_labels_become_numbers_and_their_words_are_kept(tmp_path, labels, positive, classes):
    file = tmp_path / "people.csv"
    pd.DataFrame({"hired": labels, "sex": [*"fmf"]}).to_csv(file, index=False)
    table = read_labelled(str(file), "hired", ["sex"], positive)
    assert table.classes == classes
    assert table.frame["hired"].tolist() == [int(str(label) == positive) for label in labels]
    assert table.written.tolist() == labels
    assert read_labelled(str(file), "hired", ["sex"]).classes is None


def test_the_label_is_described_as_the_file_has_it(tmp_path, capsys):
    file = tmp_path / "people.csv"
    words = ["no", "yes", "yes", "no"] * 10
    pd.DataFrame({"hired": words, "sex": [*"fmfm"] * 10, "years": [1, 2] * 20}).to_csv(
        file, index=False
    )
    asked = {"target": "hired", "sensitive_features": ["sex"], "positive": "yes", "ids": None}
    nothing = {"keep": (), "drop": (), "reading": {}, "table": str(file)}
    open_labelled(SimpleNamespace(**asked, **nothing), sees_groups=True)
    (line,) = (own for own in capsys.readouterr().out.splitlines() if own.startswith("hired"))
    assert line.split()[:3] == ["hired", "label", "text"]


@pytest.mark.parametrize("given", ["sex,race", "sex, race", ["sex", "race"], ["sex,race"]])
def test_columns_are_named_in_a_list_or_between_commas(given):
    assert split_names(given, ["sex", "race"]) == ["sex", "race"]


def test_a_comma_in_a_name_separates_nothing():
    assert split_names(["age, years", "sex,race"], ["age, years"]) == ["age, years", "sex", "race"]
    with pytest.raises(ColumnError, match="'sex' is named twice"):
        split_names(["sex,race", "sex"], ["sex", "race"])
