"""``python -m paper`` from end to end, on one split of German with a short training."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from paper.__main__ import main
from paper.records import RecordStore
from paper.specs import PROFILES, Study
from smallruns import loans, wait_for

PART = ["--quick", "--datasets", "german", "--seeds", "1"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    assert main(["run", *PART, "--jobs", "1", "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def results(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "results")


def test_every_run_has_one_record(finished):
    from paper.specs import QUICK, Study

    wanted = {spec.digest for spec in Study.of(QUICK, datasets=["german"], n_seeds=1).runs()}
    found = [record.spec.digest for record in RecordStore(finished / "records")]
    assert sorted(found) == sorted(wanted)


def test_a_second_run_has_nothing_to_do(results, capsys):
    before = {file: file.stat().st_mtime_ns for file in results.rglob("*.json")}
    assert main(["run", *PART, "--jobs", "1", "--out", str(results)]) == 0
    assert "0 runs were added, 0 failed" in capsys.readouterr().out
    assert {file: file.stat().st_mtime_ns for file in results.rglob("*.json")} == before


def test_status_counts_what_is_missing(results, capsys):
    next(results.rglob("*-adv-*.json")).unlink()
    assert main(["status", *PART, "--out", str(results)]) == 0
    out = capsys.readouterr().out
    assert "Missing: 1 runs" in out
    assert "german-adv-seed0" in out


def test_methods_are_chosen_with_what_they_are_compared_with(results, capsys):
    status = ["status", *PART, "--out", str(results)]
    assert main([*status, "--methods", "adv"]) == 0
    out = capsys.readouterr().out
    assert "all" in out
    study = Study.of(PROFILES["quick"], datasets=["german"], n_seeds=1)
    chosen = study.runs(methods=["adv"])
    assert {spec.method for spec in chosen} == {"adv", "unfair"}
    assert len(chosen) < len(study.runs())
    assert main([*status, "--methods", "adversary"]) == 2
    assert "There is no method 'adversary'; there are" in capsys.readouterr().err


def test_the_page_is_what_the_records_say_until_one_of_them_changes(results, capsys):
    where = [*PART, "--out", str(results)]
    assert main(["tables", *where]) == 0
    assert main(["tables", "--check", *where]) == 0
    page = results / "tables.md"
    honest = page.read_text()
    page.write_text(honest.replace("0.7", "0.8", 1))
    assert main(["tables", "--check", *where]) == 1
    page.write_text(honest)
    file = next(results.rglob("german-reg-*.json"))
    content = json.loads(file.read_text())
    content["curve"]["accuracy"] = [value - 0.2 for value in content["curve"]["accuracy"]]
    file.write_text(json.dumps(content))
    assert main(["tables", "--check", *where]) == 1
    assert "+++ tables.md as recorded" in capsys.readouterr().out


def test_the_page_says_which_command_made_it(results):
    assert main(["tables", *PART, "--out", str(results)]) == 0
    assert f"`python -m paper run {' '.join(PART)}`" in (results / "README.md").read_text()


def test_the_page_shows_every_line_and_its_number_of_splits(results):
    from paper.specs import SERIES

    assert main(["tables", *PART, "--out", str(results)]) == 0
    text = (results / "tables.md").read_text()
    for series in SERIES.values():
        if series.key not in ("unfair", "trees-unfair"):
            assert f"| {series.label} |" in text
    assert "(1)" in text
    assert "nan" not in text.lower().replace("finance", "")


def test_figures_are_drawn_and_shown_on_the_page(results):
    where = [*PART, "--out", str(results)]
    assert main(["figures", *where]) == 0
    assert main(["tables", *where]) == 0
    text = (results / "tables.md").read_text()
    drawn = {file.name for file in (results / "figures").glob("*.svg")}
    assert {"tradeoff-wdp.svg", "subsets.svg", "appendix-b.svg"} <= drawn
    for name in drawn:
        assert f"figures/{name}" in text
        assert (results / "figures" / name).read_text().startswith("<svg")


def test_figures_show_what_the_records_say_until_one_of_them_changes(results, capsys):
    where = [*PART, "--out", str(results)]
    assert main(["figures", "--check", *where]) == 1  # none is drawn yet
    assert main(["figures", *where]) == 0
    assert main(["figures", "--check", *where]) == 0
    file = next(results.rglob("german-reg-*.json"))
    content = json.loads(file.read_text())
    content["curve"]["accuracy"][0] += 0.0001
    file.write_text(json.dumps(content))
    capsys.readouterr()
    assert main(["figures", "--check", *where]) == 1
    told = capsys.readouterr().out
    assert "tradeoff-wdp.svg" in told
    assert "subsets.svg" not in told  # it shows no accuracy


@pytest.mark.parametrize("name", ["joint", "appendix-b"])
def test_a_figure_that_was_edited_or_removed_is_found(results, name, capsys):
    where = [*PART, "--out", str(results)]
    assert main(["figures", *where]) == 0
    file = results / "figures" / f"{name}.svg"
    file.write_text(file.read_text().replace("#0072b2", "#d55e00").replace("0.", "1.", 1))
    assert main(["figures", "--check", *where]) == 1
    file.unlink()
    assert main(["figures", "--check", *where]) == 1
    told = capsys.readouterr().out
    assert told.count(f"{name}.svg differs from the records") == 2


def test_without_records_there_are_no_figures(tmp_path, capsys):
    assert main(["figures", *PART, "--out", str(tmp_path)]) == 2
    assert "Run the study first" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["run", "--only", "tradeof"], "tradeoff"),
        (["run", "--datasets", "germany"], "german"),
        (["run", "--seeds", "0"], "--seeds"),
        (["run", "--jobs", "0"], "--jobs"),
        (["run", "--only", "imbalance", "--datasets", "german"], "imbalance has no runs on german"),
        (["status", "--quick", "--only", "schedule"], "no runs on german, adult with --quick"),
        (["tables"], "Run it first"),
        (["tables", "--check"], "Run it first"),
        (["figures", "--check"], "Run the study first"),
    ],
)
def test_wrong_arguments_are_told(given, told, tmp_path, capsys):
    assert main([*given, "--out", str(tmp_path / "none")]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("action", ["run", "status", "tables", "figures"])
@pytest.mark.parametrize("inside", ["", "folder"])
def test_a_file_in_the_place_of_the_folder_is_told_before_any_training(
    action, inside, tmp_path, capsys
):
    (tmp_path / "file").write_text("mine")
    assert main([action, *PART, "--out", str(tmp_path / "file" / inside)]) == 2
    assert "--out must be a folder" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("given", "folder"),
    [
        ([], "results"),
        (["--quick"], "quick-results"),
        (["--spec", "study.toml"], "own-results"),
        (["--quick", "--spec", "study.toml"], "own-results"),
    ],
)
def test_other_runs_are_kept_apart_from_the_papers(given, folder, tmp_path, monkeypatch, capsys):
    from paper import runs as running

    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(
        '[methods.linear]\nestimator = "sklearn.linear_model:LogisticRegression"\n'
    )
    monkeypatch.setattr(running, "run_all", lambda specs, store, **how: [])
    assert main(["run", *given, "--datasets", "german"]) == 0
    assert f"runs are recorded in {Path(folder, 'records')}." in capsys.readouterr().out


def test_a_torn_record_is_named_by_run_and_status(results, capsys):
    file = next(results.rglob("german-reg-*.json"))
    file.write_text("")
    for action in ("run", "status"):
        assert main([action, *PART, "--out", str(results)]) == 2
        assert f"{file.name} is not a record" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal to a process group")
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_ends_the_runs_without_a_traceback(jobs, tmp_path):
    # A job in the background of a shell begins with interrupts ignored.
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = f"{listen}; import sys; from paper.__main__ import main; sys.exit(main())"
    given = ["run", "--datasets", "adult", "--jobs", str(jobs), "--out", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-c", command, *given],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        begun = tmp_path / "records" / "adult"
        wait_for(lambda: begun.exists() or process.poll() is not None)
        time.sleep(1.0)  # in the midst of a run, or on the way to it
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        said = process.communicate(timeout=240)[1]
    assert process.returncode == 130, said
    assert "The records stay" in said
    assert "Traceback" not in said
    assert list(begun.iterdir()) == [], "nothing half-done is left"


def test_a_record_that_was_edited_by_hand_is_found(results, capsys):
    file = next(results.rglob("german-reg-*.json"))
    file.write_text(file.read_text().replace('"seed":0', '"seed":1'))
    assert main(["tables", *PART, "--out", str(results)]) == 2
    assert "renamed or edited" in capsys.readouterr().err


def test_a_table_and_a_method_of_ones_own_run_through_the_same_command(tmp_path, capsys):
    loans(400).to_csv(tmp_path / "loans.csv", index=False)
    spec = tmp_path / "study.toml"
    spec.write_text(
        'datasets = ["loans"]\n'
        '[tables.loans]\nfile = "loans.csv"\ntarget = "repaid"\npositive = "yes"\n'
        'sensitive = "sex"\ndrop = ["id"]\nbatch_size = 40\n'
        '[methods.forest]\nestimator = "sklearn.ensemble:RandomForestClassifier"\n'
        'settings = { n_estimators = 5 }\nlabel = "random <forest>"\n'
    )
    where = ["--quick", "--seeds", "1", "--spec", str(spec), "--out", str(tmp_path / "mine")]
    assert main(["run", "--only", "tradeoff", "--jobs", "1", *where]) == 0
    assert main(["figures", *where]) == 0
    assert main(["tables", *where]) == 0
    text = (tmp_path / "mine" / "README.md").read_text()
    assert "**loans, ΔWDP =" in text
    assert "random &lt;forest&gt;" in text
    assert "networks 0 to 1, trees" not in text  # a method of one's own is counted apart
    assert "figures/tradeoff-wdp.svg" in text
    assert "Reduction" in text
