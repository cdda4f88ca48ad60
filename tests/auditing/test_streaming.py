"""Audits of many Parquet files against the same audit in memory, and files that are damaged."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from fairmatch import audit
from fairmatch.auditing import streaming
from fairmatch.auditing.facts import Audit
from fairmatch.auditing.files import audit_files
from fairmatch.auditing.streaming import audit_dataset
from fairmatch.cli.main import main
from fairmatch.exceptions import GroupError, InputError, LabelError
from fairmatch.people.roles import Roles

pytest.importorskip("duckdb")
QUICK = {"n_resamples": 100, "n_sample": 200, "n_subsets": 20}
ROLES = Roles(scores=["score"], sensitive="race", label="repaid")


@pytest.fixture(scope="module")
def people():
    generator = np.random.default_rng(0)
    n = 6000
    race = generator.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    score = generator.beta(2, 3, n) * np.where(race == "c", 0.8, 1.0)
    return pd.DataFrame(
        {
            "score": score,
            "race": race,
            "sex": generator.choice(["f", "m"], n),
            "repaid": np.where(generator.random(n) < score, "yes", "no"),
            "age": generator.integers(18, 80, n),
        }
    )


@pytest.fixture
def folder(people, tmp_path):
    for k, part in enumerate(np.array_split(np.arange(len(people)), 4)):
        people.iloc[part].to_parquet(tmp_path / f"part{k}.parquet", index=False)
    return tmp_path


@pytest.mark.parametrize(("few", "width"), [(100_000, 1e-9), (10, 1e-3)])
def test_gaps_of_many_files_are_those_in_memory(people, folder, monkeypatch, few, width):
    """Scores are counted one by one, or in the cells of a grid."""
    monkeypatch.setattr(streaming, "_FEW_SCORES", few)
    settings = {"threshold": 0.37, **QUICK}
    found = audit_dataset(str(folder / "*.parquet"), ROLES, pos_label="yes", **settings)
    known = audit(
        people.score, sensitive_features=people.race, y_true=people.repaid == "yes",
        pos_label=True, n_resamples=100, threshold=0.37,
    )  # fmt: skip
    assert found.n_rows == 6000
    settings = found.provenance.settings
    assert (settings["neg_label"], settings["pos_label"]) == ("no", "yes")
    in_cells = [note for note in found.notes if "cells of width 0.001, each" in note]
    assert len(in_cells) == (few == 10)
    share = float(in_cells[0].rstrip(".").split()[-1]) if in_cells else 1e-9
    close = {"wasserstein_parity_gap": width, "ks_parity_gap": share}
    for ours, theirs in ((found.gaps, known.gaps), (found.pair_gaps, known.pair_gaps)):
        values = {(gap.name, gap.groups): gap for gap in ours}
        for gap in theirs:
            own = values[gap.name, gap.groups]
            assert own.value == pytest.approx(gap.value, abs=close.get(gap.name, 1e-9)), gap.name
    for ours, theirs in zip(found.groups, known.groups, strict=True):
        assert ours.n_rows == theirs.n_rows
        assert ours.selection_rate.value == pytest.approx(theirs.selection_rate.value)
        assert ours.mean_score.value == pytest.approx(theirs.mean_score.value)
        assert ours.score_counts == theirs.score_counts
        assert ours.auc.value == pytest.approx(theirs.auc.value, abs=width)
    assert found.impact[0].attributes == ("race",)
    assert found.matching.is_sample
    assert found.subsets is not None
    assert "4 files" in found.provenance.source


def test_tied_scores_of_few_values_are_exact_on_any_grid(people, tmp_path):
    """Thirds and scores at the threshold lie on no grid of decimals."""
    people = people.assign(score=(people.score * 30).round() / 30)
    people.to_parquet(tmp_path / "one.parquet", index=False)
    found = audit_dataset(str(tmp_path), ROLES, pos_label="yes", threshold=1 / 3, **QUICK)
    given = {"sensitive_features": people.race, "y_true": people.repaid == "yes"}
    known = audit(people.score, **given, pos_label=True, threshold=1 / 3, n_resamples=100)
    assert not any("cells" in note for note in found.notes)
    for gap in known.gaps:
        assert found.gap(gap.name).value == pytest.approx(gap.value, abs=1e-12), gap.name


def test_rows_with_the_same_id_are_one_person(people, tmp_path):
    people = people.iloc[:3000].assign(person=np.arange(3000))
    other = people.assign(score=people.score / 2)
    pd.concat([people, other]).to_parquet(tmp_path / "one.parquet", index=False)
    roles = Roles(scores=["score"], sensitive="race", label="repaid", id="person")
    found = audit_dataset(str(tmp_path), roles, pos_label="yes", **QUICK)
    known = audit(0.75 * people.score, sensitive_features=people.race, n_resamples=100)
    assert found.n_rows == 3000
    assert any("6,000 rows were joined to 3,000 people" in note for note in found.notes)
    assert len(set(found.individuals.ids)) == len(found.individuals.ids)
    for name in ("demographic_parity_gap", "mean_parity_gap", "wasserstein_parity_gap"):
        assert found.gap(name).value == pytest.approx(known.gap(name).value, abs=1e-9)
    pd.concat([people, other.assign(race="a")]).to_parquet(tmp_path / "one.parquet", index=False)
    with pytest.raises(InputError, match="differ in 'race'"):
        audit_dataset(str(tmp_path), roles, pos_label="yes", **QUICK)


def test_people_drawn_are_matched_with_the_largest_group_of_all(people, folder, monkeypatch):
    """As many people are drawn from each group, so their largest group is another one."""
    monkeypatch.setattr(streaming, "_DRAWN", 300)
    people = people.assign(race=people.race.map({"a": "z", "b": "b", "c": "c"}))
    for file in folder.iterdir():
        file.unlink()
    people.to_parquet(folder / "one.parquet", index=False)
    found = audit_dataset(str(folder), ROLES, pos_label="yes", **QUICK)
    assert found.reference == "z"
    assert [own.groups for own in found.matchings] == [("b", "z"), ("c", "z")]
    assert all(own.is_sample for own in found.matchings)
    matched = [own.groups for own in found.pair_gaps if own.name == "matched_parity_gap"]
    assert matched == [("b", "z"), ("c", "z")]


def test_the_sample_is_fixed_by_the_seed_alone(folder, monkeypatch):
    monkeypatch.setattr(streaming, "_DRAWN", 500)
    one, two, other = (
        audit_dataset(str(folder), ROLES, pos_label="yes", random_state=seed, **QUICK)
        for seed in (0, 0, 1)
    )
    assert one.individuals == two.individuals
    assert one.individuals.scores != other.individuals.scores
    assert set(one.individuals.columns) == {"sex", "age"}


def test_several_attributes_and_missing_ones_are_counted(people, tmp_path):
    people = people.assign(race=people.race.mask(people.index < 100))
    people.to_parquet(tmp_path / "one.parquet", index=False)
    roles = Roles(scores=["score"], sensitive="sex,race")
    found = audit_dataset(str(tmp_path), roles, **QUICK)
    assert len(found.groups) == 8
    assert sum(g.n_rows for g in found.groups if g.label in found.unknown) == 100
    assert [table.attributes for table in found.impact] == [("sex",), ("race",), ("sex", "race")]
    assert found.impact[1].n_unknown == 100


def test_missing_scores_and_labels_are_left_out_as_in_memory(people, tmp_path):
    gone, odd = people.index % 50 == 0, people.index % 50 == 1
    people = people.assign(score=people.score.mask(gone), repaid=people.repaid.mask(odd))
    people.loc[people.index % 100 == 0, "score"] = np.nan
    people.to_parquet(tmp_path / "one.parquet", index=False)
    found = audit_dataset(str(tmp_path), ROLES, pos_label="yes", **QUICK)
    labels = people.repaid.map({"yes": 1.0, "no": 0.0})
    told = {"sensitive_features": people.race, "y_true": labels, **QUICK}
    memory = audit(people.score, **told)
    assert found.n_rows == memory.n_rows == (~gone).sum()
    for one, two in zip(found.groups, memory.groups, strict=True):
        assert (one.n_rows, one.selection_rate) == (two.n_rows, two.selection_rate)
        assert one.true_positive_rate == two.true_positive_rate
        assert one.accuracy == two.accuracy
    assert any(f"{gone.sum():,} people have no score" in note for note in found.notes)
    assert any(f"{(odd & ~gone).sum():,} people have no label" in note for note in found.notes)
    assert sum("no label" in note for note in found.notes) == 1


@pytest.mark.parametrize(("top", "favourable"), [(300, "high"), ("5%", "low")])
def test_the_best_are_those_of_all_files(people, folder, top, favourable):
    asked = {"top": top, "favourable": favourable, **QUICK}
    found = audit_dataset(str(folder), Roles(scores=["score"], sensitive="race"), **asked)
    memory = audit(people.score, sensitive_features=people.race, **asked)
    assert found.n_selected == memory.n_selected
    assert [one.selection_rate for one in found.groups] == [
        one.selection_rate for one in memory.groups
    ]
    assert any("selected by rank" in note for note in found.notes)


def test_ten_people_against_many_are_shown_without_a_statement(people, tmp_path):
    people = people.assign(race=np.where(people.index < 10, "few", "many"))
    people.to_parquet(tmp_path / "one.parquet", index=False)
    found = audit_dataset(str(tmp_path), Roles(scores=["score"], sensitive="race"), **QUICK)
    assert found.groups[0].n_rows == 10
    assert found.gap("mean_parity_gap").value is None
    assert "'few' has 10 people" in found.refusals[0]


@pytest.mark.parametrize(
    ("damage", "error", "said"),
    [
        ("cut", InputError, "cannot be read"),
        ("column", InputError, "'age'"),
        ("type", InputError, "'score'"),
        ("score", InputError, "1,500 missing scores in 6,000 people, more than 20%"),
        ("range", InputError, r"\[0, 1\]"),
        ("label", LabelError, "must hold two classes"),
        ("csv", InputError, "not a .parquet file"),
        ("none", InputError, "No file is called"),
        ("groups", GroupError, "more than 200 groups"),
    ],
)
def test_what_is_wrong_with_the_files_is_said(people, folder, damage, error, said):
    file, pattern, roles = folder / "part2.parquet", str(folder / "*"), ROLES
    part = pd.read_parquet(file)
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-200])
    elif damage == "column":
        part.drop(columns="age").to_parquet(file, index=False)
    elif damage == "type":
        part.assign(score=part.score.astype("float32")).to_parquet(file, index=False)
    elif damage == "score":
        part.assign(score=np.nan).to_parquet(file, index=False)
    elif damage == "range":
        part.assign(score=part.score * 3).to_parquet(file, index=False)
    elif damage == "label":
        part.assign(repaid=part.repaid.mask(part.index < 5, "perhaps")).to_parquet(
            file, index=False
        )
    elif damage == "csv":
        (folder / "more.csv").write_text("score\n0.5\n")
    elif damage == "none":
        pattern = str(folder / "*.feather")
    else:
        roles = Roles(scores=["score"], sensitive="score")
        people.assign(s=people.score).to_parquet(file, index=False)
        roles, pattern = Roles(scores=["score"], sensitive="s"), str(file)
        pattern = str(folder / "part2*.parquet")
    with pytest.raises(error, match=said):
        audit_dataset(pattern, roles, pos_label="yes", **QUICK)


def test_memory_and_disk_that_are_full_are_said(tmp_path, monkeypatch):
    """More scores than the memory holds, and no folder to write them into."""
    generator = np.random.default_rng(0)
    many = pd.DataFrame({"score": generator.random(2_000_000)})
    many.assign(race="a").to_parquet(tmp_path / "many.parquet", index=False)
    monkeypatch.setattr(streaming, "_MEMORY", "80MB")
    files = streaming.ParquetFiles(str(tmp_path))
    asked = "SELECT score, count(*) AS n FROM rows GROUP BY ALL ORDER BY ALL"
    monkeypatch.chdir(tmp_path)
    assert len(files.ask(asked)) == 2_000_000  # spilled, and not beside the user's files
    assert [path.name for path in tmp_path.iterdir()] == ["many.parquet"]
    monkeypatch.setattr(streaming.tempfile, "gettempdir", lambda: str(tmp_path / "many.parquet"))
    with pytest.raises(InputError, match=r"80MB .* could not be written .* TMPDIR"):
        streaming.ParquetFiles(str(tmp_path)).ask(asked)


def test_the_command_takes_a_pattern(folder, tmp_path, capsys):
    out = tmp_path / "audit.json"
    asked = ["audit", str(folder / "*.parquet"), "--score", "score", "--sensitive", "race"]
    options = ["--label", "repaid", "--positive", "yes", "--resamples", "100", "--sample", "100"]
    assert main([*asked, *options, "--json", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "Groups and gaps are those of all 6,000 people." in printed
    assert "random sample of 6,000" not in printed  # it is everybody
    assert Audit.from_json(out.read_text()).n_rows == 6000
    assert json.loads(out.read_text())["provenance"]["source"].endswith("(4 files)")
    assert main([*asked, "--weight", "age"]) == 2
    assert "--weight-kind counts" in capsys.readouterr().err
    assert main([asked[0], str(folder / "part0.parquet"), *asked[1:]]) == 2
    assert "audited alone" in capsys.readouterr().err


@pytest.mark.parametrize(
    "given",
    [
        ["--privileged", "White"],
        ["--weight-kind", "counts"],
        ["--encoding", "latin-1"],
        ["--decimal", ","],
        ["--missing", "unknown"],
    ],
)
def test_an_option_for_one_file_is_refused(folder, given, capsys):
    asked = ["audit", str(folder / "*.parquet"), "--score", "score", "--sensitive", "race"]
    assert main([*asked, *given]) == 2
    assert f"{given[0]} was given with a pattern or a folder" in capsys.readouterr().err


def test_duckdb_prints_no_bar_in_an_interactive_session(folder):
    """DuckDB takes a session without a script for one."""
    code = (
        "import sys; from fairmatch.auditing.streaming import ParquetFiles; "
        "asked = \"SELECT current_setting('enable_progress_bar') AS shown FROM rows LIMIT 1\"; "
        "print(ParquetFiles(sys.argv[1]).ask(asked)['shown'][0])"
    )
    told = subprocess.check_output([sys.executable, "-c", code, str(folder)], text=True)
    assert told.strip() == "False"


def test_names_of_columns_are_no_code(people, tmp_path):
    hostile = 'a"; DROP TABLE people; --'
    people.rename(columns={"race": hostile}).to_parquet(tmp_path / "one.parquet", index=False)
    found = audit_dataset(str(tmp_path), Roles(scores=["score"], sensitive=[hostile]), **QUICK)
    assert [group.label for group in found.groups] == ["a", "b", "c"]


def test_without_duckdb_the_extra_is_named(tmp_path, monkeypatch, capsys):
    frame = pd.DataFrame({"score": np.linspace(0, 1, 80), "race": ["a", "b"] * 40})
    frame.to_parquet(tmp_path / "people.parquet")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert main(["audit", str(tmp_path), "--score", "score", "--sensitive", "race"]) == 2
    assert "pip install 'fairmatch[stream]'" in capsys.readouterr().err


def test_names_are_names_and_only_a_pattern_is_a_pattern(people, tmp_path, monkeypatch):
    """Brackets and stars in the names of folders and files are read once, as they stand."""
    monkeypatch.chdir(tmp_path)
    places = ["scores[2024]/a*.parquet", "scores[2024]/ab.parquet", "scores2/a.parquet"]
    for place, rows in zip(places, np.array_split(np.arange(600), 3), strict=True):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        people.iloc[rows].to_parquet(place, index=False)

    def ids(name):
        files = streaming.ParquetFiles(name)
        return files.files, len(files.ask("SELECT score FROM rows"))

    assert ids("scores[2024]") == (places[:2], 400)
    assert ids(places[0]) == (places[:1], 200)
    assert ids("scores*/*.parquet") == (sorted(places), 600)
    assert not streaming.is_dataset(places[0])
    assert streaming.is_dataset("scores[2024]")
    assert streaming.is_dataset("scores[0-9]/*.parquet")
    found = audit_dataset("scores[2024]", ROLES, pos_label="yes", **QUICK)
    assert found.n_rows == 400


def test_a_file_with_brackets_is_read_as_one_table(people, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    people[:500].to_csv("people[1].csv", index=False)
    people[500:900].to_csv("people1.csv", index=False)
    asked = ["audit", "people[1].csv", "--score", "score", "--sensitive", "race"]
    assert main([*asked, "--resamples", "100", "--sample", "100", "--json", "a.json"]) == 0
    assert Audit.from_json((tmp_path / "a.json").read_text()).n_rows == 500


@pytest.mark.parametrize("second", ["age", "File_Row_Number"])
def test_columns_may_be_called_as_duckdb_calls_its_own(people, tmp_path, monkeypatch, second):
    monkeypatch.setattr(streaming, "_DRAWN", 500)
    people = people.rename(columns={"race": "filename", "age": second})
    for k, part in enumerate(np.array_split(np.arange(len(people)), 3)):
        people.iloc[part].to_parquet(tmp_path / f"{k}.parquet", index=False, row_group_size=100)
    roles = Roles(scores=["score"], sensitive="filename", label="repaid")
    one, two = (audit_dataset(str(tmp_path), roles, pos_label="yes", **QUICK) for _ in range(2))
    assert one.individuals == two.individuals
    assert set(one.individuals.columns) == {"sex", second}
    counts = people["filename"].value_counts()
    assert {group.label: group.n_rows for group in one.groups} == dict(counts)


@pytest.mark.parametrize("kind", ["Int64", "boolean", "bool", "float64"])
def test_groups_with_nulls_are_those_in_memory(people, tmp_path, kind):
    people = people[:1000]
    values = pd.Series(np.arange(1000) % 2).astype(kind)
    people = people.assign(group=values.astype(object) if kind == "bool" else values)
    people.loc[:99, "group"] = None
    people.to_parquet(tmp_path / "one.parquet", index=False)
    roles = Roles(scores=["score"], sensitive=["group", "sex"])
    found = audit_dataset(str(tmp_path), roles, **QUICK)
    known = audit_files([str(tmp_path / "one.parquet")], roles, **QUICK)
    assert [(g.label, g.n_rows) for g in found.groups] == [
        (g.label, g.n_rows) for g in known.groups
    ]
    assert found.gaps[0].value == pytest.approx(known.gaps[0].value, abs=1e-12)


def test_what_folders_are_called_is_said_and_adds_no_column(people, tmp_path):
    (tmp_path / "race=b").mkdir()
    people.to_parquet(tmp_path / "race=b" / "a.parquet", index=False)
    found = audit_dataset(str(tmp_path), ROLES, pos_label="yes", **QUICK)
    assert [group.label for group in found.groups] == ["a", "b", "c"]
    assert any("Names of folders ('race=b') add none" in note for note in found.notes)


def test_an_attribute_of_which_one_value_is_known(people, tmp_path):
    people = people[:600].assign(race=np.where(np.arange(600) < 50, None, "a"))
    people.to_parquet(tmp_path / "one.parquet", index=False)
    roles = Roles(scores=["score"], sensitive=["race", "sex"])
    for found in (
        audit_dataset(str(tmp_path), roles, **QUICK),
        audit_files([str(tmp_path / "one.parquet")], roles, **QUICK),
    ):
        assert "Only one group is known" in str(found.attributes)
        assert len(found.groups) == 4


def test_a_damaged_file_is_told_without_the_query(people, tmp_path):
    people.to_parquet(tmp_path / "one.parquet", index=False)
    content = bytearray((tmp_path / "one.parquet").read_bytes())
    for damaged in (
        b"",
        content[:100],
        b"PAR1" + bytes(40) + b"PAR1",
        content[:-300] + content[-8:],
    ):
        (tmp_path / "one.parquet").write_bytes(damaged)
        with pytest.raises(InputError, match="cannot be read as Parquet") as caught:
            audit_dataset(str(tmp_path), ROLES, pos_label="yes", **QUICK)
        assert "read_parquet" not in str(caught.value)
        assert "SELECT" not in str(caught.value)
        assert str(caught.value).endswith("as Parquet, so it is damaged. Write the file again.")
