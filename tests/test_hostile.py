"""Hostile and unlucky inputs, each with the message that a user sees: typed, and in Python."""

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from damage import sign
from lightgbm import LGBMClassifier

from fairmatch import (
    Coupling,
    FTMBoostingClassifier,
    OptimalTransportMatcher,
    ScoreAdjustment,
    audit,
    fit_adjustment,
    load,
)
from fairmatch.auditing.impact import write_tables
from fairmatch.cli.labelled import read_labelled
from fairmatch.cli.main import main
from fairmatch.exceptions import FairmatchError, FairmatchWarning, ModelFileError
from fairmatch.matching.coupling import Certificate
from fairmatch.measures import demographic_parity_gap, gap_table, gaps_by_pair, true_positive_gap
from fairmatch.people.encoding import TableEncoder
from fairmatch.people.files import read_table

N = 240


def people() -> pd.DataFrame:
    """A table that nothing is wrong with."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 70, N),
            "job": random.choice(["cook", "nurse", "clerk"], N),
            "pay": random.normal(3.0, 1.0, N).round(2),
            "sex": ["f", "m"] * (N // 2),
            "race": random.choice(["a", "b"], N),
        }
    )
    frame["hired"] = (frame.age + random.normal(0, 8, N) > 42).astype(int)
    return frame


def fit(frame: pd.DataFrame, sensitive: Any = "sex", **settings: Any) -> Any:
    model = FTMBoostingClassifier(
        LGBMClassifier(n_estimators=2, n_jobs=1),
        fairness_weight=0.0,
        sensitive_column=sensitive,
        random_state=0,
        **settings,
    )
    return model.fit(frame.drop(columns="hired"), frame.hired)


REFUSING = partial(fit, unknown="error")


@dataclass(frozen=True)
class Case:
    """An input, and what is said of it.

    ``change`` makes the table, as a frame or as the content of the file; ``typed`` is added to a
    command; ``call`` is the same in Python. ``says`` is in the message, in both.
    """

    name: str
    says: str
    change: Callable[[pd.DataFrame], Any] = lambda frame: frame
    typed: str | None = ""
    call: Callable[[pd.DataFrame], Any] | None = None
    told: str | None = None
    command: str = "train"
    code: int = 2
    file: str = "people.csv"
    options: dict[str, str] = field(default_factory=dict)


def text(frame: pd.DataFrame, **settings: Any) -> str:
    return frame.to_csv(index=False, **settings)


def longer(frame: pd.DataFrame, extra: str = ",9") -> str:
    """One field too many in every line but the header."""
    head, *lines = text(frame).splitlines()
    return "\n".join([head, *(line + extra for line in lines)])


def set_in(column: str, row: int, value: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        changed = frame.astype({column: object})
        changed.loc[row, column] = value
        return changed

    return change


def reading(_: pd.DataFrame) -> Any:
    return read_table("people.csv")


def labelled(sensitive: Any = "sex", target: str = "hired") -> Callable[[pd.DataFrame], Any]:
    return lambda frame: read_labelled("people.csv", target, [sensitive])


def gap(scores: Any = None, groups: Any = None, **given: Any) -> Callable[[pd.DataFrame], float]:
    half = [0.2, 0.8] * (N // 2)
    return lambda frame: demographic_parity_gap(
        None,
        half if scores is None else scores,
        sensitive_features=frame.sex if groups is None else groups,
        **given,
    )


def encode(frame: pd.DataFrame) -> Any:
    return TableEncoder().fit(frame.drop(columns="hired"))


def unseen(frame: pd.DataFrame) -> Any:
    return fit(frame, sensitive_at_prediction=False)


def predict(frame: pd.DataFrame) -> Any:
    return load("model").predict(frame.drop(columns="hired"))


FILES = [
    Case("a field too many in every line", "line 2: 7 fields where the header has 6",
         longer, call=reading),
    Case("a field too many in one line", "line 3: 7 fields where the header has 6",
         lambda f: text(f[:1]) + "1,cook,2,f,a,1,9\n", call=reading),
    Case("a field too few", "line 3: 5 fields where the header has 6",
         lambda f: text(f[:1]) + "1,cook,2,f,a\n", call=reading),
    Case("a name twice", "has the column 'age' twice",
         lambda f: text(f).replace("job,pay", "age,pay", 1), call=reading),
    Case("an empty file", "cannot be read: it is empty", lambda f: "", call=reading),
    Case("a header alone", "has no rows", lambda f: text(f[:0]), call=reading),
    Case("null bytes", "contains null bytes", lambda f: "age,sex\n1,\0\n", call=reading),
    Case("an unclosed quote", "Is a closing quote missing", lambda f: text(f) + '1,"cook\n',
         call=reading),
    Case("no file", "There is no file none.csv", typed=None,
         call=lambda f: read_table("none.csv")),
    Case("a spreadsheet", "is a spreadsheet. Save its sheet as CSV", file="people.xlsx",
         call=lambda f: read_table("people.xlsx")),
    Case("another kind of file", "neither a .csv nor a .parquet", file="people.docx",
         call=lambda f: read_table("people.docx")),
    Case("no Parquet inside", "cannot be read", lambda f: "age", file="people.parquet",
         call=lambda f: read_table("people.parquet")),
    Case("an encoding that is none", "There is no encoding 'klingon'", typed="--encoding klingon",
         call=lambda f: read_table("people.csv", encoding="klingon")),
    Case("another encoding than was named", "is not written in ascii",
         lambda f: text(f.replace("cook", "Köchin")), "--encoding ascii",
         call=lambda f: read_table("people.csv", encoding="ascii")),
    Case("semicolons and one line of commas", "Fields are separated by semicolons",
         lambda f: text(f, sep=";") + "1,cook,2,f,a,1\n", call=reading),
]  # fmt: skip

NAMES = [
    Case("a target that is not there", "Did you mean 'hired'?", typed="--target hird",
         call=labelled(target="hird")),
    Case("several columns that are not there", "has no columns 'x' and 'y'",
         typed="--target x --sensitive y", call=labelled("y", "x")),
    Case("labels that are the groups", "are the same column, 'sex'", typed="--target sex",
         call=labelled(target="sex")),
    Case("an attribute twice", "Column 'sex' is named twice", typed="--sensitive sex,sex",
         call=labelled("sex,sex")),
    Case("a column to drop that is not there", "has no column 'jobs'. Did you mean 'job'?",
         typed="--drop jobs"),
    Case("labels to drop", "these are named for two: 'hired' (label and ignored)",
         typed="--drop hired"),
    Case("a column to keep that is not there", "Did you mean 'age'?", typed="--keep agee"),
    Case("a file without the names of its columns", "must name its columns", typed=None,
         options={"train": "people.csv --out new"}),
    Case("a dataset that is misspelt", "Did you mean the dataset 'german'", typed=None,
         options={"train": "germn --out new"},
         call=lambda f: read_labelled("germn", None)),
]  # fmt: skip

VALUES = [
    Case("a missing label", "'hired' is missing in 1 row.", set_in("hired", 3, None),
         call=fit, told="y cannot be used as labels"),
    Case("a missing group", "'sex' is missing in 1 row.", set_in("sex", 3, None),
         "--unknown error", REFUSING, told="sensitive_features has 1 missing values"),
    Case("a group of pandas.NA", "'sex' is missing in 1 row", set_in("sex", 3, pd.NA),
         "--unknown error", REFUSING, told="sensitive_features has 1 missing values"),
    Case("one group", "holds one group only ('f')", lambda f: f.assign(sex="f"), call=fit),
    Case("a constant attribute", "The attribute 'race'", lambda f: f.assign(race="a"),
         "--sensitive sex,race", lambda f: fit(f, ["sex", "race"])),
    Case("a missing value in an attribute", "'race' is missing in 1 row", set_in("race", 5, None),
         "--sensitive sex,race --unknown error",
         lambda f: fit(f, ["sex", "race"], unknown="error"),
         told="sensitive_features['race'] has 1 missing values"),
    Case("one class", "it holds only one class: 1", lambda f: f.assign(hired=1), call=fit),
    Case("a positive label that is none",
         "'maybe' is not among the values of column 'hired'", typed="--positive maybe",
         call=lambda f: read_labelled("people.csv", "hired", ["sex"], "maybe")),
    Case("labels in words and a criterion about them", "Name it with --positive",
         lambda f: f.assign(hired=f.hired.map({0: "no", 1: "yes"})),
         "--criterion equal_opportunity"),
    Case("a group of one class, of which errors are compared",
         "Group 'm' has no rows with a negative label",
         lambda f: f.assign(hired=f.hired.where(f.sex == "f", 1)),
         "--criterion equalized_odds --max-gap 0.1",
         lambda f: fit(f, criterion="equalized_odds", max_gap=0.1)),
    Case("more combinations than rows allow",
         "Column 'race' has 240 different values in 240 rows, so it forms no groups",
         lambda f: f.assign(race=range(len(f))),
         "--sensitive sex,race", lambda f: fit(f, ["sex", "race"]),
         told="sensitive_features['race'] holds 240 different numbers"),
    Case("a group of one person", "These groups have fewer than 2 rows: 'x': 1",
         set_in("sex", 3, "x"), call=fit,
         told="These groups have fewer than 2 rows: 'x': 1"),
    Case("infinite numbers", "'pay' holds infinite values", set_in("pay", 3, np.inf), call=fit),
    Case("too wide a range", "'pay' spans too wide a range",
         lambda f: f.assign(pay=[-1.5e308, 1.5e308] * 120), call=fit),
    Case("a word among numbers", "is nearly all numbers, except 'unknown' (1)",
         set_in("pay", 3, "unknown"), call=fit, told="holds Python objects of type float, str"),
    Case("decimal commas", "holds numbers with a decimal comma",
         lambda f: text(f, sep=";", decimal=",")),
    Case("a second score", "has the name of a score: is it another model's output?",
         lambda f: f.assign(score=f.pay)),
    Case("the label in other words", "Column 'result' determines the label 'hired'",
         lambda f: f.assign(result=f.hired.map({0: "no", 1: "yes"}))),
    Case("a copy of the group", "Column 'gender' is the group",
         lambda f: f.assign(gender=f.sex), "--without-sensitive", unseen,
         "column 'gender' is the group"),
    Case("the group in other words", "Column 'title' determines the group",
         lambda f: f.assign(title=f.sex.map({"f": "Ms", "m": "Mr"})), "--without-sensitive"),
    Case("a group as a 0/1 column", "Column 'is_f' determines the group",
         lambda f: f.assign(is_f=(f.sex == "f").astype(int)), "--without-sensitive"),
    Case("nothing but an identifier", "No column is left to learn from",
         lambda f: f[["sex", "hired"]].assign(id=range(N))),
    Case("two columns that cannot be read", "2 columns cannot be used as they are", typed=None,
         change=lambda f: f.assign(a=[[1]] * N, b=[{}] * N), call=encode),
    Case("dates", "holds dates", lambda f: f.assign(born=pd.Timestamp("2000-01-01")), typed=None,
         call=fit),
]  # fmt: skip

NUMBERS = [
    Case("a bound above one", "--max-gap must be a number in [0, 1], got 5", typed="--max-gap 5",
         call=lambda f: fit(f, max_gap=5), told="max_gap must be a number in [0, 1], got 5"),
    Case("a negative bound", "Invalid value for '--max-gap'", typed="--max-gap -1",
         call=lambda f: fit(f, max_gap=-1), told="max_gap must be"),
    Case("a bound that is none", "--max-gap must be", typed="--max-gap nan",
         call=lambda f: fit(f, max_gap=float("nan")), told="max_gap must be"),
    Case("a gap that there is not", "is not a measure; choose one of", typed="--gap-measure parity",
         call=lambda f: fit(f, max_gap=0.1, gap_measure="parity"),
         told="is not a gap that can be bounded here; choose one of"),
    Case("a confidence above one", "Invalid value for '--confidence'",
         typed="--max-gap 0.1 --confidence 95",
         call=lambda f: fit(f, max_gap=0.1, confidence=95), told="confidence must be"),
    Case("a confidence without a bound", "--confidence 0.9 needs --max-gap",
         typed="--confidence 0.9"),
    Case("a negative weight", "Invalid value for '--fairness-weight'", typed="--fairness-weight -1",
         call=lambda f: fit(f).set_params(fairness_weight=-1).fit(f.drop(columns="hired"), f.hired),
         told="fairness_weight must be"),
    Case("an infinite weight", "--fairness-weight must be", typed="--fairness-weight inf"),
    Case("a negative seed", "Invalid value for '--seed'", typed="--seed -1"),
    Case("no rounds", "Invalid value for '--rounds'", typed="--rounds 0"),
    Case("epochs of trees", "--epochs was given", typed="--learner boosting "
         "--epochs 3"),
    Case("groups of nobody", "--small-groups must be", typed="--small-groups pool,0",
         call=lambda f: fit(f, small_groups=("pool", 0)), told="small_groups must be"),
]  # fmt: skip

PLACES = [
    Case("a file where a folder is to be", "is a file. A model is saved in a folder",
         typed="--out people.csv", call=lambda f: fit(f).save("people.csv")),
    Case("a folder of one's own", "holds files that are not of a saved model (notes.txt)",
         typed="--out mine", call=lambda f: fit(f).save("mine")),
    Case("a place that cannot be written", "people.csv/new", typed="--out people.csv/new"),
    Case("predictions into the table", "people.csv is read", command="predict",
         typed="--out people.csv"),
    Case("predictions of another kind", "must end in .csv or .parquet", command="predict",
         typed="--out scores.txt"),
    Case("predictions that cannot be written", "people.csv/s.csv", command="predict",
         typed="--out people.csv/s.csv"),
    Case("no model", "cannot be read", typed=None, command="predict",
         options={"predict": "nowhere people.csv --out s.csv"}, call=lambda f: load("nowhere")),
    Case("a folder that is no model", "cannot be read", typed=None, command="predict",
         options={"predict": "mine people.csv --out s.csv"}, call=lambda f: load("mine")),
]  # fmt: skip

NEW_ROWS = [
    Case("columns that are gone", "has no columns 'age' and 'job'",
         lambda f: f.drop(columns=["age", "job"]), command="predict", call=predict,
         told="missing"),
    Case("numbers that are words now", "was numeric in fit and is categorical now",
         lambda f: f.assign(age="old"), command="predict", call=predict),
    Case("one word among numbers", "was numeric in fit and is categorical now",
         set_in("age", 3, "unknown"), command="predict"),
    Case("a category of which no value is known", "No value of column 'job' was seen in fit",
         lambda f: f.assign(job=f.job.map({"cook": 1, "nurse": 2, "clerk": 3})),
         command="predict", call=predict),
    Case("a group that was not seen", "holds 'x'; the model knows the groups 'f' and 'm'",
         set_in("sex", 3, "x"), command="predict", call=predict),
    Case("a group in another spelling", "train with rows of the group. Did you mean 'f'?",
         set_in("sex", 3, "F "), command="predict", call=predict),
    Case("a group that is missing", "has no group in 1 row (the first is row 3, counted from 0)",
         set_in("sex", 3, None), command="predict", call=predict),
    Case("a class that is none", "--positive: 'yes' is not among the classes of the model (0, 1)",
         command="predict", typed="--positive yes"),
    Case("infinite numbers at prediction", "'pay' holds infinite values",
         set_in("pay", 3, np.inf), command="predict", call=predict),
]  # fmt: skip

MEASURED = [
    Case("scores above one", "y_score must lie in [0, 1], got values from 0.2 to 2",
         typed=None, call=gap([0.2, 2.0] * 120)),
    Case("scores that are NaN", "y_score has 120 entries that are NaN", typed=None,
         call=gap([0.2, np.nan] * 120)),
    Case("scores in words", "y_score must be numeric", typed=None, call=gap(["low", "high"] * 120)),
    Case("scores of another length", "rows where", typed=None, call=gap([0.1, 0.2])),
    Case("a table of scores", "holds no probabilities", typed=None,
         call=gap(np.zeros((N, 2)))),
    Case("no scores", "y_score is empty", typed=None, call=gap([], [])),
    Case("masked scores", "y_score has 1 masked entries", typed=None,
         call=gap(np.ma.masked_array([0.5] * N, [True] + [False] * (N - 1)))),
    Case("masked groups", "sensitive_features has 1 masked entries", typed=None,
         call=gap(groups=np.ma.masked_array([0, 1] * 120, [True] + [False] * (N - 1)))),
    Case("weights that overflow", "sample_weight is as large as 1e+308", typed=None,
         call=gap(sample_weight=[1e308] * N)),
    Case("negative weights", "sample_weight must be finite and not negative", typed=None,
         call=gap(sample_weight=[-1.0] * N)),
    Case("weights of no group", "The weights of group 'm' in the table sum to zero", typed=None,
         call=gap(sample_weight=[1.0, 0.0] * 120)),
    Case("groups of pandas.NA", "sensitive_features has 1 missing values", typed=None,
         call=gap(groups=pd.array(["f", "m"] * 119 + ["f", pd.NA], dtype="string"))),
    Case("groups in a dictionary", "sensitive_features is a dictionary", typed=None,
         call=gap(groups={"sex": ["f", "m"]})),
    Case("a threshold that is none", "threshold must be a number", typed=None,
         call=gap(threshold=float("nan"))),
    Case("labels of which none is positive", "No entry of y_true equals pos_label=1; it holds 0",
         typed=None, call=lambda f: true_positive_gap(
             [0] * N, f.pay.clip(0, 1), sensitive_features=f.sex)),
    Case("a measure that there is not", "is not a measure; choose one of", typed=None,
         call=lambda f: gaps_by_pair(None, f.hired, sensitive_features=f.sex, measure="gap")),
    Case("no labels where they are needed", "y_true is None", typed=None,
         call=lambda f: true_positive_gap(None, f.hired, sensitive_features=f.sex)),
    Case("a group without a positive label",
         "Group 'm' has no rows in the rows whose label is 1", typed=None,
         call=lambda f: gap_table((f.sex == "f").astype(int), f.hired, sensitive_features=f.sex)),
    Case("a lazy frame", "X is a lazy frame", typed=None,
         call=lambda f: TableEncoder().fit(pl.from_pandas(f).lazy())),
]  # fmt: skip

VALID = np.arange(8.0)[:, None]


def match(X: Any, **given: Any) -> Any:
    return OptimalTransportMatcher(**given).match(X, [0, 1] * 4)


MATCHED = [
    Case("distances that overflow", "squared distances overflow", typed=None,
         call=lambda f: match(VALID * 1e160)),
    Case("distances that overflow in blocks", "squared distances overflow", typed=None,
         call=lambda f: match(np.hstack([VALID, VALID**2]) * 1e160, block_size=2)),
    Case("a certificate of nothing", "both must be finite", typed=None,
         call=lambda f: Certificate(float("inf"), float("inf"), "dense")),
    Case("rows counted in words", "n_rows must be a whole number, got '2'", typed=None,
         call=lambda f: Coupling([0], [1], [1.0], n_rows="2", groups=("a", "b"))),
    Case("groups that are none", "groups must be a tuple", typed=None,
         call=lambda f: Coupling([0], [1], [1.0], n_rows=2, groups=None)),
    Case("labels of several types", "y holds values of different types (int, str)", typed=None,
         call=lambda f: OptimalTransportMatcher(criterion="equal_opportunity").match(
             f[["pay"]], f.sex, [0, "one", 1] * 80)),
    Case("labels of None", "y has 80 missing labels", typed=None,
         call=lambda f: OptimalTransportMatcher(criterion="equal_opportunity").match(
             f[["pay"]], f.sex, [0, None, 1] * 80)),
    Case("counts of more people than can be counted", "At most 2**53 can be counted", typed=None,
         call=lambda f: audit(f.hired, sensitive_features=f.sex, sample_weight=[2**60] * N,
                              weight_kind="counts")),
    Case("dictionaries as groups", "sensitive_features holds values of type dict", typed=None,
         call=gap(groups=[{"sex": "f"}, {"sex": "m"}] * 120)),
    Case("lists as groups", "sensitive_features holds values of type list", typed=None,
         call=gap(groups=pd.Series([["f"], ["m"]] * 120))),
]  # fmt: skip

CASES = [*MATCHED, *FILES, *NAMES, *VALUES, *NUMBERS, *PLACES, *NEW_ROWS, *MEASURED]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    fit(people()).save(folder / "model")
    return folder / "model"


@pytest.fixture
def home(tmp_path, monkeypatch, saved):
    """A folder with a saved model, and one with a file of somebody's own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").symlink_to(saved)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    return tmp_path


USUAL = {
    "train": "--target hired --sensitive sex --rounds 2 --fairness-weight 0 --no-picture --out new",
    "predict": "model people.csv --out scores.csv",
}


def write(case: Case, home: Any) -> pd.DataFrame | None:
    made = case.change(people())
    content = made if isinstance(made, str) else text(made)
    (home / case.file).write_text(content, encoding="utf-8")
    return made if isinstance(made, pd.DataFrame) else None


def unrepeated(usual: list[str], typed: str | None) -> list[str]:
    """The usual arguments, without the group where another one is typed."""
    return usual[:2] + usual[4:] if "--sensitive" in (typed or "") else usual


def arguments(case: Case) -> list[str]:
    """The command as it is typed; what a case adds comes after, and so counts."""
    if case.options:
        return [case.command, *case.options[case.command].split()]
    usual = USUAL[case.command].split()
    if case.command == "train":
        usual = [case.file, *unrepeated(usual, case.typed)]
        if "--max-gap" in (case.typed or "") or "--epochs" in (case.typed or ""):
            usual = [w for w in usual if w not in ("--fairness-weight", "0", "--rounds", "2")]
    return [case.command, *usual, *(case.typed or "").split()]


def test_there_are_enough_of_them():
    assert len(CASES) >= 60
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(case.says for case in CASES)


TYPED = [case for case in CASES if case.typed is not None or case.options]


@pytest.mark.parametrize("case", TYPED, ids=lambda case: case.name)
def test_what_is_told_when_it_is_typed(case, home, capsys):
    write(case, home)
    before = sorted(path.name for path in home.iterdir())
    code = main(arguments(case))
    error = capsys.readouterr().err
    assert case.says in " ".join(error.split()), error
    assert code == case.code
    assert error.startswith("fairmatch: ")
    assert "Traceback" not in error
    assert sorted(path.name for path in home.iterdir()) == before  # nothing half done stays


@pytest.mark.parametrize("case", [c for c in CASES if c.call is not None], ids=lambda c: c.name)
def test_what_is_raised_in_python(case, home):
    frame = write(case, home)
    with pytest.raises(FairmatchError) as raised:
        case.call(frame)
    assert (case.told or case.says) in " ".join(str(raised.value).split())


@dataclass(frozen=True)
class Unlucky:
    """An input that is odd and can be used, and what is said about it."""

    name: str
    change: Callable[[pd.DataFrame], Any]
    typed: str
    says: str


UNLUCKY = [
    Unlucky("booleans with blanks", lambda f: f.assign(
        member=[True, False, None] * 80), "", "member feature yes or no 80"),
    Unlucky("semicolons and decimal commas", lambda f: text(f, sep=";", decimal=","),
            "--decimal ,", "pay feature numbers"),
    Unlucky("tabs", lambda f: text(f, sep="\t"), "", "pay feature numbers"),
    Unlucky("latin-1", lambda f: text(f.replace("cook", "Köchin")).encode("latin-1"), "",
            "so it is read as cp1252"),
    Unlucky("a word for missing", set_in("pay", 3, "unknown"), "--missing unknown",
            "pay feature numbers 1"),
    Unlucky("a word among numbers that is wanted", set_in("pay", 3, "unknown"), "--keep pay",
            "pay feature text"),
    Unlucky("an identifier", lambda f: f.assign(id=range(N)), "",
            "id ignored whole numbers 0 240 left out; looks like an identifier"),
    Unlucky("dates", lambda f: text(f.assign(born="2000-01-01", day=f.index)), "--drop born,day",
            "born ignored"),
    Unlucky("an empty column", lambda f: f.assign(empty=None), "", "empty ignored nothing 240"),
    Unlucky("decisions in words", lambda f: f.assign(hired=f.hired.map({0: "no", 1: "hire"})),
            "--positive hire --criterion equal_opportunity", "probability of hired = 'hire'"),
    Unlucky("a near copy of the group", lambda f: f.assign(
        title=f.sex.map({"f": "Ms", "m": "Mr"}).where(f.index > 4, "Dr")), "--without-sensitive",
            "Column 'title' nearly determines the group"),
    Unlucky("a copy of the group that is wanted", lambda f: f.assign(
        title=f.sex.map({"f": "Ms", "m": "Mr"})), "--without-sensitive --keep title", "Saved to"),
    Unlucky("many levels", lambda f: f.assign(city=[f"c{k % 110}" for k in range(N)]), "",
            "city feature text 0 110 no other role; has 110 levels"),
    Unlucky("two attributes", lambda f: f, "--sensitive sex,race --small-groups pool", "Saved to"),
    Unlucky("names that steer a terminal", lambda f: f.rename(columns={"pay": "pay\x1b[2J"}), "",
            "pay\\x1b[2J feature numbers"),
    Unlucky("names that turn the direction of writing", lambda f: f.rename(
        columns={"pay": "pay\u202egnp"}), "", "pay\\u202egnp feature numbers"),
]  # fmt: skip


@pytest.mark.parametrize("case", UNLUCKY, ids=lambda case: case.name)
def test_what_can_be_used_is_used_and_told(case, home, capsys):
    made = case.change(people())
    content = text(made) if isinstance(made, pd.DataFrame) else made
    (home / "people.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    usual = unrepeated(USUAL["train"].split(), case.typed)
    code = main(["train", "people.csv", *usual, *case.typed.split()])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    assert case.says in " ".join((printed.out + printed.err).split())
    assert "\x1b" not in printed.out + printed.err
    reading = [w for w in case.typed.split() if w not in ("--keep", "pay")]
    options = case.typed.split() if reading[:1] in (["--decimal"], ["--missing"]) else []
    assert main(["predict", "new", "people.csv", "--out", "scores.csv", *options]) == 0
    assert len(pd.read_csv("scores.csv")) == N


def test_the_package_lists_only_its_own_names():
    import fairmatch

    assert {"Any", "import_module"}.isdisjoint(dir(fairmatch))
    assert set(fairmatch.__all__) <= set(dir(fairmatch))


@pytest.mark.parametrize("factor", [1e-170, 1e-320, 0.0])
@pytest.mark.parametrize("block_size", [None, 4])
def test_tiny_distances_are_matched(factor, block_size):
    X = np.random.default_rng(0).normal(size=(8, 2))
    tiny, usual = (match(X * by, block_size=block_size) for by in (factor, 1.0))
    assert np.isfinite(tiny.certificate.cost)
    if factor == 1e-170 and block_size is None:
        assert tiny.source_index.tolist() == usual.source_index.tolist()
        assert tiny.target_index.tolist() == usual.target_index.tolist()


def test_huge_numbers_in_an_adjustment_are_damage(tmp_path):
    scores = np.linspace(0.0, 1.0, 80)
    made = fit_adjustment(scores, sensitive_features=["a", "b"] * 40)
    text = made.save(tmp_path / "a.json").read_text()
    for place in (r'"strength": ', r'"knots": \['):
        huge, found = re.subn(f"({place})[-.e0-9]+", rf"\g<1>1{'0' * 400}", text, count=1)
        assert found
        (tmp_path / "a.json").write_text(huge)
        with pytest.raises(ModelFileError):
            ScoreAdjustment.load(tmp_path / "a.json")


def test_an_attribute_with_a_long_name_is_filed(tmp_path):
    names = ["a" * 260, "é" * 260]
    groups = pd.DataFrame({name: ["x", "y"] * 40 for name in names})
    found = audit(np.linspace(0, 1, 80), sensitive_features=groups, n_resamples=100)
    files = write_tables([found], tmp_path)
    assert len({file.name for file in files}) == len(files) == 4
    assert all(file.read_text() for file in files)


def test_the_warning_about_many_levels_names_no_encoder_where_there_is_none():
    frame = people().assign(city=[f"c{k % 110}" for k in range(N)])
    with pytest.warns(FairmatchWarning, match="or merge similar levels"):
        fit(frame)


def test_half_characters_are_damage(tmp_path):
    adjustment = fit_adjustment(np.linspace(0, 1, 80), ["a", "b"] * 40)
    path = adjustment.save(tmp_path / "adjustment.json")
    path.write_text(path.read_text().replace('"a"', '"\\ud800"'))
    with pytest.raises(ModelFileError, match="half of a character"):
        ScoreAdjustment.load(path)
    with pytest.raises(FairmatchError, match="half of a character"):
        fit_adjustment(np.linspace(0, 1, 80), ["\ud800", "b"] * 40).save(path)
    folder = fit(people()).save(tmp_path / "model")
    load(folder)
    description = folder / "model.json"
    description.write_text(description.read_text().replace('"f"', '"\\ud800"'))
    sign(folder)
    assert "\\ud800" in description.read_text()
    with pytest.raises(ModelFileError, match="half of a character"):
        load(folder)


def test_a_damaged_parquet_file_is_one_sentence(tmp_path):
    file = tmp_path / "people.parquet"
    people().to_parquet(file, index=False)
    whole = file.read_bytes()
    for damaged in (b"PAR1" + bytes(40) + b"PAR1", whole[:90], whole[:-30] + whole[-8:]):
        file.write_bytes(damaged)
        for categories in ([], ["sex"]):
            with pytest.raises(FairmatchError) as caught:
                read_table(file, categories=categories)
            told = f"{file} cannot be read, so it is damaged. Export it again."
            assert str(caught.value) == told


def test_an_adjustment_is_no_model(tmp_path):
    path = fit_adjustment(np.linspace(0, 1, 80), ["a", "b"] * 40).save(tmp_path / "adj.json")
    with pytest.raises(ModelFileError, match=r"ScoreAdjustment\.load"):
        load(path)


def test_numbers_beyond_floats_are_typed():
    with pytest.raises(FairmatchError, match="y_score must be numeric"):
        audit([10**400, 1], sensitive_features=["a", "b"])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_has_a_name(tmp_path, capsys):
    from fairmatch.report import write_report

    found = audit(people().hired, sensitive_features=people().sex, n_resamples=100)
    with pytest.raises(FairmatchError, match="/dev/full cannot be written: No space") as caught:
        write_report(found, "/dev/full")
    assert isinstance(caught.value, OSError)
    assert caught.value.filename == "/dev/full"
    people().to_csv(tmp_path / "people.csv", index=False)
    command = [sys.executable, "-m", "fairmatch", "audit", str(tmp_path / "people.csv")]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [*command, "--score", "hired", "--sensitive", "sex", "--drop", "race,job"],
            stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert ended.returncode == 2
    assert "fairmatch: the output: No space left on device" in ended.stderr


def test_what_python_calls_keep_is_an_option(tmp_path, capsys):
    frame = people().assign(**{"copy": people().sex, "other copy": people().sex})
    frame.to_csv(tmp_path / "people.csv", index=False)
    given = ["audit", str(tmp_path / "people.csv"), "--score", "hired", "--sensitive", "sex"]
    assert main(given) == 2
    told = capsys.readouterr().err
    assert "--keep copy,other copy" in told
    assert "keep=" not in told
    assert "fairmatch: --keep:" not in told
