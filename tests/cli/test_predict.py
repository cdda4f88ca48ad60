"""The commands ``fairmatch train`` and ``fairmatch predict``, and the audit of what they give."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier

from fairmatch import FTMBoostingClassifier, load
from fairmatch.cli import train
from fairmatch.cli.labelled import LabelledTable, tell_answers
from fairmatch.cli.main import main
from fairmatch.exceptions import FairmatchError
from fairmatch.measures import demographic_parity_gap

TARGET = ["--target", "hired", "--sensitive", "sex"]
GIVEN = [*TARGET, "--positive", "refused"]
SHORT = ["--rounds", "5", "--fairness-weight", "0", "--no-picture"]


@pytest.fixture
def people(tmp_path, monkeypatch):
    """People whose favourable label, accepted, comes first in order."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"age": random.integers(18, 70, 300), "sex": [*"fm"] * 150})
    accepted = frame.age + random.normal(0, 5, 300) > 40
    frame["hired"] = np.where(accepted, "accepted", "refused")
    frame.to_csv("people.csv", index=False)
    return frame


def test_the_class_of_a_score_is_told_and_can_be_chosen(people, capsys):
    assert main(["train", "people.csv", *GIVEN, *SHORT, "--out", "model"]) == 0
    assert "Its scores are the probability of hired = 'refused'." in capsys.readouterr().out
    assert main(["predict", "model", "people.csv", "--out", "second.csv"]) == 0
    assert "the probability of 'refused'" in capsys.readouterr().out
    chosen = ["predict", "model", "people.csv", "--positive", "accepted", "--out", "first.csv"]
    assert main(chosen) == 0
    assert "the probability of 'accepted'" in capsys.readouterr().out
    first, second = pd.read_csv("first.csv"), pd.read_csv("second.csv")
    assert first.score.to_numpy() == pytest.approx(1 - second.score.to_numpy())
    assert (first.prediction == second.prediction).all()
    assert ((first.score > 0.5) == (first.prediction == "accepted")).all()
    assert main([*chosen[:4], "hired", *chosen[5:]]) == 2
    assert "not among the classes of the model ('accepted', 'refused')" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--positive", "refused"], "hired = 'refused'."),
        (["--positive", "accepted"], "hired = 'accepted'."),
    ],
)
def test_the_positive_label_is_told_before_the_training(people, more, told, monkeypatch, capsys):
    def stop(*args, **settings):
        raise FairmatchError("the training begins")

    monkeypatch.setattr(train, "train_model", stop)
    assert main(["train", "people.csv", *TARGET, *SHORT, *more, "--out", "model"]) == 2
    assert f"\nPositive label: {told}\n" in capsys.readouterr().out


def test_words_are_not_ranked_by_their_spelling(people, capsys):
    assert main(["train", "people.csv", *TARGET, *SHORT, "--out", "model"]) == 2
    told = (
        "'hired' holds 'accepted' and 'refused', and of two words neither is positive by default."
    )
    assert told in capsys.readouterr().err


def test_a_place_that_cannot_be_written_comes_with_advice(people, capsys):
    assert main(["train", "people.csv", *GIVEN, *SHORT, "--out", "model"]) == 0
    assert main(["predict", "model", "people.csv", "--out", "people.csv/scores.csv"]) == 2
    error = capsys.readouterr().err
    assert "people.csv" in error
    assert "Check that the folder exists" in error


def test_the_positive_label_of_a_dataset_is_told_without_the_option(monkeypatch, capsys):
    def stop(*args, **settings):
        raise FairmatchError("the training begins")

    monkeypatch.setattr(train, "train_model", stop)
    assert main(["train", "german", "--no-picture", "--out", "model"]) == 2
    out = capsys.readouterr().out
    assert "Positive label: good_credit = 1.\n" in out
    assert "--positive" not in out


def test_labels_that_are_not_two_have_no_positive_one(people, capsys):
    people.assign(hired=["a", "b", "c"] * 100).to_csv("people.csv", index=False)
    assert main(["train", "people.csv", *TARGET, *SHORT, "--out", "model"]) == 0
    assert "Positive label" not in capsys.readouterr().out


ANSWER = "fairmatch: warning: With a fairness weight of 0, 100% of the test rows are predicted"


@pytest.mark.parametrize("how", [["--fairness-weight", "1"], ["--max-gap", "0.9"]])
def test_a_model_that_has_seen_the_answer_is_told(people, how, capsys):
    lost = np.where(people.hired == "refused", people.age + 100, 0)
    people.assign(lost=lost).to_csv("people.csv", index=False)
    given = ["train", "people.csv", *GIVEN, "--rounds", "20", *how, "--no-picture"]
    assert main([*given, "--out", "model"]) == 0
    told = capsys.readouterr().err
    assert told.startswith(ANSWER)
    assert "'lost' determines the label 'hired'" in told
    assert "--drop lost" in told
    assert told.count("\n") == 1
    assert main([*given, "--out", "model", "--keep", "lost"]) == 0
    assert "--drop lost" in capsys.readouterr().err
    assert main([*given, "--out", "model", "--drop", "lost"]) == 0
    assert "fairness weight of 0, " not in capsys.readouterr().err


def test_an_answer_in_several_columns_is_told_without_their_names(people, capsys):
    bits = np.random.default_rng(1).integers(0, 2, (300, 2))
    people = people.assign(a=bits[:, 0], b=bits[:, 1], hired=bits.max(axis=1))
    people.to_csv("people.csv", index=False)
    given = ["train", "people.csv", *TARGET, "--rounds", "50", "--no-picture", "--out", "model"]
    assert main([*given, "--fairness-weight", "0"]) == 0
    told = capsys.readouterr().err
    assert told.startswith(ANSWER)
    assert "determines" not in told
    assert "--drop" in told


def test_nothing_is_told_where_one_answer_is_nearly_always_right(people, capsys):
    table = LabelledTable(people, "hired", ["sex"])
    tell_answers(table, accuracy=0.9995, chance=0.9995)
    assert capsys.readouterr().err == ""
    tell_answers(table, accuracy=0.9995, chance=0.6)
    assert "99.95% of the test rows" in capsys.readouterr().err


def test_scores_and_the_model_itself_give_the_same_audit(people):
    main(["train", "people.csv", *GIVEN, *SHORT, "--out", "model"])
    main(["predict", "model", "people.csv", "--positive", "accepted", "--out", "s.csv"])
    people.assign(score=pd.read_csv("s.csv").score).to_csv("scored.csv", index=False)
    how = [
        "--sensitive",
        "sex",
        "--positive",
        "accepted",
        "--features",
        "age",
        "--resamples",
        "100",
    ]
    assert main(["audit", "scored.csv", "--score", "score", *how, "--json", "a.json"]) == 0
    # Also without labels the model must know which class is meant.
    assert main(["audit", "people.csv", "--model", "model", *how, "--json", "b.json"]) == 0
    a, b = (json.loads(Path(name).read_text())["gaps"] for name in ("a.json", "b.json"))
    assert [gap["value"] for gap in a] == pytest.approx([gap["value"] for gap in b], nan_ok=True)


@pytest.mark.parametrize("criterion", ["demographic_parity", "equal_opportunity"])
def test_a_positive_word_goes_through_all_commands(people, criterion, capsys):
    how = [*TARGET, *SHORT, "--criterion", criterion, "--positive", "accepted"]
    assert main(["train", "people.csv", *how, "--out", "model"]) == 0
    assert "Its scores are the probability of hired = 'accepted'." in capsys.readouterr().out
    assert main(["predict", "model", "people.csv", "--out", "s.csv"]) == 0
    assert main(["predict", "model", "people.csv", "--positive", "refused", "--out", "r.csv"]) == 0
    scores, refused = pd.read_csv("s.csv"), pd.read_csv("r.csv")
    assert refused.score.to_numpy() == pytest.approx(1 - scores.score.to_numpy())
    assert (scores.prediction == np.where(scores.score >= 0.5, "accepted", "refused")).all()
    assert (scores.prediction == people.hired).mean() > 0.8
    asked = ["audit", "people.csv", "--model", "model", "--sensitive", "sex", "--label", "hired"]
    short = ["--resamples", "100", "--json", "a.json"]
    assert main([*asked, "--positive", "accepted", *short]) == 0
    rates = [group["selection_rate"]["value"] for group in _groups("a.json")]
    wanted = scores.prediction.eq("accepted").groupby(people.sex).mean()
    assert sorted(rates) == pytest.approx(sorted(wanted))


def test_a_model_of_the_classes_0_and_1_scores_the_positive_word(people):
    model = FTMBoostingClassifier(LGBMClassifier(n_estimators=5), sensitive_column="sex")
    model.fit(people[["age", "sex"]], people.hired == "accepted").save("model")
    asked = ["audit", "people.csv", "--model", "model", "--sensitive", "sex", "--label", "hired"]
    short = ["--resamples", "100", "--json", "a.json"]
    assert main([*asked, "--positive", "accepted", *short]) == 0
    wanted = pd.Series(model.predict(people[["age", "sex"]])).groupby(people.sex).mean()
    rates = [group["selection_rate"]["value"] for group in _groups("a.json")]
    assert sorted(rates) == pytest.approx(sorted(wanted))
    assert main([*asked, "--positive", "acepted", *short]) == 2


def test_the_reference_is_chosen(people, capsys):
    people.assign(sex=[1, 2, 3] * 100).to_csv("people.csv", index=False)
    how = ["train", "people.csv", *GIVEN, *SHORT, "--out", "model"]
    assert main([*how, "--reference", "2"]) == 0
    assert load("model").reference == 2
    capsys.readouterr()
    assert main([*how, "--reference", "f"]) == 2
    assert "--reference: 'f' is not among the groups (1, 2, 3)" in (capsys.readouterr().err)


def test_columns_of_groups_are_typed_with_commas_or_one_by_one(people):
    people.assign(race=[*"uvvu"] * 75, score=0.5).to_csv("people.csv", index=False)
    target = ["train", "people.csv", *GIVEN[:2], *GIVEN[4:], *SHORT, "--drop", "score"]
    asked = ["audit", "people.csv", "--score", "score", "--drop", "hired", "--resamples", "100"]
    for form in (["--sensitive", "sex", "--sensitive", "race"], ["--sensitive", "sex,race"]):
        assert main([*target, *form, "--out", "model"]) == 0
        assert load("model").sensitive_column == ["sex", "race"]
        assert main([*asked, *form, "--json", "a.json"]) == 0
        assert len(_groups("a.json")) == 4


def _groups(file):
    return json.loads(Path(file).read_text())["groups"]


def test_a_model_from_python_is_told_which_column_is_the_group(people, capsys):
    model = FTMBoostingClassifier(LGBMClassifier(n_estimators=5))
    model.fit(people[["age"]], people.hired, sensitive_features=people.sex).save("model")
    asked = ["predict", "model", "people.csv", "--out", "scores.csv"]
    assert main(asked) == 2
    assert "Name the column with --sensitive" in capsys.readouterr().err
    assert main([*asked, "--sensitive", "sex"]) == 0
    wanted = model.predict_proba(people[["age"]], sensitive_features=people.sex)[:, 1]
    assert pd.read_csv("scores.csv").score.to_numpy() == pytest.approx(wanted)


AUDIT = ["audit", "people.csv", "--score", "age", "--sensitive", "sex"]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["predict", "model", "people.csv", "--out", "people.csv"], "people.csv is read"),
        ([*AUDIT, "--json", "./people.csv"], "people.csv is read"),
        ([*AUDIT, "--json", "a.html", "--out", "a.html"], "json is written there"),
        ([*AUDIT, "--json", "folder"], "--json must be a file, and folder is a folder"),
        (
            ["train", "people.csv", *GIVEN, "--out", "people.csv"],
            "is saved in a folder. Choose another name",
        ),
    ],
)
def test_nothing_is_written_over_and_that_is_said_before_the_work(
    people, tmp_path, command, told, capsys
):
    before = (tmp_path / "people.csv").read_text()
    (tmp_path / "folder").mkdir()
    assert main(command) == 2
    assert told in capsys.readouterr().err
    assert (tmp_path / "people.csv").read_text() == before


def test_nothing_of_another_model_stays(people, tmp_path):
    assert main(["train", "people.csv", *GIVEN, *SHORT, "--out", "model"]) == 0
    for name in ("curve.svg", "weights.safetensors"):
        (tmp_path / "model" / name).write_text("old")
    assert main(["train", "people.csv", *GIVEN, *SHORT, "--out", "model"]) == 0
    left = {file.name for file in (tmp_path / "model").iterdir()}
    assert left == {"model.json", "trees.txt", "curve.json"}


def test_a_folder_with_files_of_ones_own_is_left_alone(people, tmp_path, capsys):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights.safetensors").write_text("mine")
    assert main(["train", "people.csv", *GIVEN, *SHORT, "--out", "model"]) == 2
    printed = capsys.readouterr()
    assert "holds files that are not of a saved model (weights.safetensors)" in printed.err
    assert printed.out == ""  # before the training
    assert (tmp_path / "model" / "weights.safetensors").read_text() == "mine"


def test_identifiers_stay_as_they_are_written(people):
    people.assign(score=0.5, number=[f"{k:05}" for k in range(300)]).to_csv("p.csv", index=False)
    asked = ["audit", "p.csv", "--score", "score", "--sensitive", "sex", "--id", "number"]
    assert main([*asked, "--features", "age", "--resamples", "100", "--json", "a.json"]) == 0
    ids = json.loads(Path("a.json").read_text())["individuals"]["ids"]
    assert sorted(ids)[:2] == ["00000", "00001"]


def test_a_favoured_group_that_is_none_is_told(people, capsys):
    people.assign(score=0.5, other=0.5).to_csv("p.csv", index=False)
    asked = ["audit", "p.csv", "--score", "score,other", "--sensitive", "sex", "--privileged", "x"]
    assert main(asked) == 2
    assert "--privileged: 'x' is not among the values of column 'sex'" in capsys.readouterr().err


def test_a_favoured_group_needs_two_models(people, capsys):
    people.assign(score=0.5).to_csv("p.csv", index=False)
    asked = ["audit", "p.csv", "--score", "score", "--sensitive", "sex", "--privileged", "f"]
    assert main(asked) == 2
    assert "--privileged f was given for one model" in capsys.readouterr().err


def test_a_group_that_is_spelt_like_a_missing_value_is_explained(people, capsys):
    people.assign(sex=["NA", "EU"] * 150).to_csv("p.csv", index=False)
    assert main(["train", "p.csv", *GIVEN, "--out", "m"]) == 2
    assert "words such as NA and None count as missing" in capsys.readouterr().err


def test_the_entry_that_is_no_number_is_shown(people, capsys):
    people.assign(score=["0.5", "high"] + ["0.1"] * 298).to_csv("p.csv", index=False)
    assert main(["audit", "p.csv", "--score", "score", "--sensitive", "sex"]) == 2
    assert "row 1, counted from 0, holds 'high'" in capsys.readouterr().err


def test_a_model_and_a_table_that_are_swapped_are_told(people, capsys):
    main(["train", "people.csv", *GIVEN, *SHORT, "--out", "model"])
    assert main(["predict", "people.csv", "model", "--out", "s.csv"]) == 2
    told = "The model comes first: fairmatch predict model people.csv --out s.csv"
    assert told in capsys.readouterr().err


def test_remarks_are_not_carried_along_as_identifiers(people):
    people["number"] = [f"n{k:05}" if k else None for k in range(300)]
    people["remark"] = [f"remark {k}" if k % 3 else None for k in range(300)]
    people.to_csv("people.csv", index=False)
    main(["train", "people.csv", *GIVEN, *SHORT, "--out", "model"])
    assert main(["predict", "model", "people.csv", "--out", "s.csv"]) == 0
    assert pd.read_csv("s.csv").columns.tolist() == ["number", "score", "prediction"]


def test_labels_of_several_classes(people, capsys):
    frame = people.assign(hired=np.where(people.age > 55, "later", people.hired))
    frame.to_csv("three.csv", index=False)
    bound = ["--max-gap", "0.5", "--rounds", "5", "--no-picture"]
    assert main(["train", "three.csv", *TARGET, *bound, "--out", "model"]) == 0
    told = capsys.readouterr().out
    assert "the probability of 'accepted', 'later', 'refused', and predicts the likeliest" in told
    assert main(["predict", "model", "three.csv", "--out", "scored.csv"]) == 0
    assert "the probability of each class" in capsys.readouterr().out
    found = pd.read_csv("scored.csv")
    scores = found[["score_accepted", "score_later", "score_refused"]]
    assert scores.sum(axis=1).to_numpy() == pytest.approx(1.0)
    assert (found.prediction == scores.columns[scores.to_numpy().argmax(1)].str[6:]).all()
    again = ["predict", "model", "three.csv", "--positive", "later", "--out", "other.csv"]
    assert main(again) == 2
    assert "the model has 3 classes" in capsys.readouterr().err
    # The model and its written scores give the same audit.
    classes = "refused,later,accepted"
    asked = ["audit", "--sensitive", "sex", "--label", "hired", "--resamples", "100",
             "--classes", classes, "--favourable", "accepted,later"]  # fmt: skip
    columns = ",".join(f"score_{name}" for name in classes.split(","))
    assert main([*asked, "three.csv", "--model", "model", "--json", "a.json"]) == 0
    told = capsys.readouterr().out
    assert "gets refused" in told
    assert "gap over all classes" in told
    scored = frame.assign(**found)
    scored.to_csv("both.csv", index=False)
    assert main([*asked, "both.csv", "--score", columns, "--features", "age", "--json", "b.json",
                 "--out", "b.html"]) == 0  # fmt: skip
    first, second = (json.loads(Path(file).read_text())["classes"] for file in ("a.json", "b.json"))
    assert first["ordered"] is True
    assert first["names"] == classes.split(",")
    for one, other in zip(first["groups"], second["groups"], strict=True):
        for name in one["shares"]:
            assert one["shares"][name]["value"] == pytest.approx(other["shares"][name]["value"])
    # The names of the columns say which class they belong to, and none of what predict wrote
    # describes people.
    columns = ",".join(sorted(columns.split(",")))
    assert main([*asked, "both.csv", "--score", columns, "--json", "c.json"]) == 0
    third = json.loads(Path("c.json").read_text())
    assert third["classes"] == second
    described = {own["name"] for own in third["columns"] if own["role"] == "feature"}
    assert described.isdisjoint(found.columns)
    assert "age" in described
    capsys.readouterr()
    assert main([*asked[:-2], "both.csv", "--score", columns]) == 2
    error = capsys.readouterr().err
    assert "--favourable: There are 3 classes" in error
    assert "'high'" not in error
    assert main([*asked[:-4], "--favourable", "later", "both.csv", "--score", "score_later"]) == 2
    assert "--classes" in capsys.readouterr().err
    assert main([*asked, "both.csv", "--score", "score_later,score_refused"]) == 2
    assert "3 classes are named, but 2 columns of scores" in capsys.readouterr().err


@pytest.mark.parametrize("how", [["--max-gap", "20"], ["--fairness-weight", "1"]])
def test_numbers_are_predicted_by_a_regressor(people, how, capsys):
    pay = 20.0 * people.age + 100.0 * (people.sex == "m")
    people.drop(columns="hired").assign(pay=pay).to_csv("pay.csv", index=False)
    given = ["train", "pay.csv", "--target", "pay", "--sensitive", "sex", "--rounds", "20"]
    assert main([*given, *how, "--out", "model"]) == 0
    told = capsys.readouterr().out
    assert "pay holds numbers, so a regressor is trained." in told
    assert "rmse" in told
    assert main(["predict", "model", "pay.csv", "--out", "numbers.csv"]) == 0
    assert "the predicted number" in capsys.readouterr().out
    found = pd.read_csv("numbers.csv").prediction
    assert found.between(pay.min() - 200, pay.max() + 200).all()
    assert found.corr(pay) > 0.9
    again = ["predict", "model", "pay.csv", "--positive", "1", "--out", "other.csv"]
    assert main(again) == 2
    assert "predicts numbers" in capsys.readouterr().err
    assert main([*given, "--criterion", "equalized_odds", "--out", "odds"]) == 2
    assert "holds numbers" in capsys.readouterr().err


def test_a_number_is_cut_into_bands_and_again_for_new_rows(people, capsys):
    given = [
        "--target",
        "hired",
        "--positive",
        "refused",
        "--sensitive",
        "age",
        "--bands",
        "age=40",
    ]
    more = pd.concat([people] * 3).assign(score=np.tile(people.age / 100, 3))
    more.drop(columns="sex").to_csv("people.csv", index=False)
    typed = ["train", "people.csv", *given, *SHORT, "--keep", "score"]
    assert main([*typed, "--out", "model"]) == 0
    assert "ΔGDP" in capsys.readouterr().out
    model = load("model")
    assert model.groups_ == ("under 40", "40 and over")
    assert main(["predict", "model", "people.csv", "--out", "scores.csv"]) == 0
    frame = pd.read_csv("people.csv").drop(columns="hired")
    assert pd.read_csv("scores.csv").score.to_numpy() == pytest.approx(
        model.predict_proba(frame)[:, 1]
    )
    how = ["--max-gap", "0.3", "--gap-measure", "generalized_parity_gap", "--rounds", "5"]
    typed = ["train", "people.csv", *given, "--keep", "score", *how]
    assert main([*typed, "--no-picture", "--out", "bounded"]) == 0
    assert load("bounded").sensitive_column == {"age": [40.0]}
    capsys.readouterr()
    wrong = [*typed[:-6], *("--bands", "score=0.5"), *SHORT, "--out", "other"]
    assert main(wrong) == 2
    assert "'score' is cut into bands, and is no column with groups" in capsys.readouterr().err


@pytest.fixture
def guessed(tmp_path, monkeypatch):
    """People with probabilities of their groups, on which the label depends."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    is_a = random.random(1200) < 0.5
    frame = pd.DataFrame(
        {"u": random.normal(size=1200) - 1.2 * is_a, "v": random.normal(size=1200)}
    )
    frame["a"] = 1 / (1 + np.exp(1.2 * frame.u))
    frame["b"] = 1 - frame.a
    frame["hired"] = (random.random(1200) < 1 / (1 + np.exp(-1.5 * frame.u))).astype(int)
    frame.to_csv("people.csv", index=False)
    return frame, np.where(is_a, "a", "b")


def test_a_model_learns_from_probabilities_of_groups(guessed, capsys):
    frame, groups = guessed
    typed = ["train", "people.csv", "--target", "hired", "--rounds", "20", "--no-picture"]
    soft = [*typed, "--group-probabilities", "a,b", "--out", "model"]
    assert main([*soft, "--fairness-weight", "3", "--similar", "u=4,v=1"]) == 0
    assert "which the model sees anyway" not in capsys.readouterr().out
    model = load("model")
    assert model.groups_ == ("a", "b")
    assert model.get_params()["similarity"] == {"u": 4.0, "v": 1.0}
    plain = LGBMClassifier(n_estimators=20, verbose=-1).fit(frame[["u", "v"]], frame.hired)
    gaps = [
        demographic_parity_gap(None, own.predict(frame[["u", "v"]]), sensitive_features=groups)
        for own in (model, plain)
    ]
    assert gaps[0] < 0.7 * gaps[1]
    frame[["u", "v"]].to_csv("new.csv", index=False)
    assert main(["predict", "model", "new.csv", "--out", "scores.csv"]) == 0
    scores = pd.read_csv("scores.csv").score
    assert scores.to_numpy() == pytest.approx(model.predict_proba(frame[["u", "v"]])[:, 1])
    for wrong in (["--sensitive", "a"], ["--bands", "a=0.5"], ["--similar", "u=much"]):
        assert main([*soft, *wrong]) == 2
    assert "a weight is a number" in capsys.readouterr().err
    assert main([*typed, "--group-probabilities", "a", "--out", "one"]) == 2
