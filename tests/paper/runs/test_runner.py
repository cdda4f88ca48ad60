"""Runs are done once, failures are told, and whatever is killed is done again."""

import os
import platform
import signal
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import joblib
import numpy as np
import pytest
from paper.methods import Curve, Method
from paper.records import RecordStore, estimate_seconds
from paper.specs import MINORITY_SHARE, SERIES, Series
from paper.study import Study
from smallruns import content, small_table, tiny_study, wait_for

from fairmatch.exceptions import InputError
from paper import runs as running
from paper.runs import Failure, run_all


def counted(name, calls, reference=None, fails=False):
    """Make a method that scores by a feature, and writes down when it is used."""

    def fit(problem, settings, seed):
        calls.append((name, seed))
        if fails:
            raise ZeroDivisionError("it cannot be trained")
        test, train = problem.split.X_test[:, 0], problem.split.X_train[:, 0]
        return Curve([lambda _: np.clip(test, 0, 1)], [train])

    return Method(name, (1.0,), fit, schedule="own", reference=reference)


def study_of(*methods, n_seeds=2):
    """A study of a small table with these methods as its lines."""
    study = tiny_study(n_seeds)
    return replace(
        study,
        datasets=("small",),
        series={method.name: Series(method.name, method.name, method.name) for method in methods},
        methods={method.name: method for method in methods},
        loaders={"small": small_table},
    )


def run(study, store, **keywords):
    specs = study.runs(["tradeoff"])
    how = {"loaders": study.loaders, "methods": study.methods, "jobs": 1}
    return run_all(specs, store, **{**how, **keywords})


@pytest.fixture
def store(tmp_path):
    return RecordStore(tmp_path / "records")


def test_every_run_is_recorded_once_and_done_once(store):
    calls, told = [], []
    study = study_of(counted("plain", calls), counted("other", calls, reference="plain"))
    assert run(study, store, on_done=told.append) == []
    assert sorted(calls) == [("other", 0), ("other", 1), ("plain", 0), ("plain", 1)]
    assert sorted(content(store)) == sorted(record.spec.name for record in told)
    before = content(store)
    assert run(study, store, on_done=told.append) == []
    assert len(calls) == len(told) == 4, "the second call finds all of it done"
    assert content(store) == before
    more = replace(study, n_seeds=3)
    run(more, store)
    assert sorted(calls[4:]) == [("other", 2), ("plain", 2)]


def test_a_failure_is_told_and_stops_nobody(store):
    calls = []
    methods = [counted("plain", calls), counted("broken", calls, fails=True)]
    study = study_of(*methods, counted("other", calls, reference="plain"))
    failures = run(study, store)
    assert sorted((failure.spec.method, failure.spec.seed) for failure in failures) == [
        ("broken", 0),
        ("broken", 1),
    ]
    assert {failure.error for failure in failures} == {"ZeroDivisionError: it cannot be trained"}
    assert {record.spec.method for record in store} == {"plain", "other"}
    calls.clear()
    assert len(run(study, store)) == 2
    assert sorted(calls) == [("broken", 0), ("broken", 1)], "what failed is tried again"


def test_runs_are_compared_with_the_unconstrained_model_of_their_split(store):
    study = study_of(counted("plain", []), counted("other", [], reference="plain"))
    run(study, store)
    for record in store:
        compared = record.spec.method == "other"
        assert (record.reference_scores is None) == compared
        assert ("rank agreement: S=0" in record.curve) == compared
        if compared:  # both score by the same feature
            assert record.curve["rank agreement: S=0"] == pytest.approx([1.0], abs=1e-4)
            assert record.curve["undesirable flips: S=1"] == [0]


def test_a_reference_is_read_once_for_all_that_are_compared_with_it(store, monkeypatch):
    others = [counted(f"other{k}", [], reference="plain") for k in range(3)]
    study, read, find = study_of(counted("plain", []), *others), [], RecordStore.find

    def counting(self, spec):
        if (record := find(self, spec)) is not None:
            read.append(record.spec.name)
        return record

    monkeypatch.setattr(RecordStore, "find", counting)
    run(study, store)
    assert sorted(read) == sorted(study.spec("plain", "small", seed).name for seed in (0, 1))


@pytest.mark.parametrize("thinned_first", [True, False])
def test_no_run_is_compared_with_a_model_of_thinned_rows(store, thinned_first):
    study = study_of(counted("plain", []), counted("other", [], reference="plain"), n_seeds=1)
    whole, other = study.spec("plain", "small", 0), study.spec("other", "small", 0)
    thinned = study.spec("plain", "small", 0, minority_share=0.3)
    specs = [thinned, whole, other] if thinned_first else [whole, thinned, other]
    run_all(specs, store, loaders=study.loaders, methods=study.methods, jobs=1)
    found = running._references([other], specs, study.methods)
    assert found == {other.digest: whole}
    assert store.find(thinned).reference_scores is not None


def test_a_run_fails_with_the_one_that_it_is_compared_with(store):
    calls, told = [], []
    study = study_of(counted("plain", calls, fails=True), counted("other", calls, "plain"))
    failures = run(study, store, on_done=told.append)
    assert len(failures) == len(told) == 4
    assert sum("compared with, small-plain-seed" in failure.error for failure in failures) == 2
    assert {name for name, _ in calls} == {"plain"}
    assert content(store) == {}


def test_an_experiment_brings_along_what_its_runs_are_compared_with():
    study = replace(Study.of(tiny_study().profile, n_seeds=2), datasets=("adult",))
    runs = [(spec.method, spec.seed) for spec in study.runs(["joint"])]
    assert runs[0] == ("unfair", 0)
    assert runs.count(("unfair", 0)) == runs.count(("unfair", 1)) == 1
    assert len(runs) == 2 * (1 + 4)
    thinned = [spec for spec in study.runs(["imbalance"]) if spec.method == "unfair"]
    assert [spec.settings["minority_share"] for spec in thinned] == [MINORITY_SHARE] * 2


def test_every_reference_is_a_line():
    study = tiny_study()
    assert {method.reference for method in study.methods.values()} - {None} <= set(SERIES)


def test_a_run_without_the_one_that_it_is_compared_with_is_refused(store):
    calls = []
    study = study_of(counted("plain", calls), counted("other", calls, reference="plain"), n_seeds=1)
    how = {"loaders": study.loaders, "methods": study.methods, "jobs": 1}
    alone = [study.spec("other", "small", 0)]
    with pytest.raises(InputError, match=r"small-other-seed0.* compared with a run of 'plain'"):
        run_all(alone, store, **how)
    assert calls == []
    dropped = [study.spec("other", "small", 0, minority_share=0.3)]
    assert run_all(dropped, store, **how) == [], "its unconstrained model is never trained"
    run(study, store)
    assert run_all(alone, store, **how) == [], "it is recorded"


def test_a_torn_record_is_named_before_anything_is_trained(store):
    calls = []
    study = study_of(counted("plain", calls))
    run(study, store)
    file = next(store.folder.glob("*/*seed1*.json"))
    file.write_text("")
    calls.clear()
    with pytest.raises(InputError, match=f"{file.name} is not a record.*Remove it"):
        run(replace(study, n_seeds=3), store)
    assert calls == []


def test_versions_of_all_that_a_result_depends_on_are_recorded(store):
    run(study_of(counted("plain", []), n_seeds=1), store)
    (record,) = store
    assert record.versions["python"] == platform.python_version()
    assert {"fairmatch", "numpy", "pandas", "scikit-learn", "torch"} <= set(record.versions)


def test_a_package_that_is_not_installed_has_no_version(store, monkeypatch):
    def not_fairlearn(name):
        if name == "fairlearn":
            raise PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(running, "version", not_fairlearn)
    monkeypatch.setattr(running, "versions", running.versions.__wrapped__)
    run(study_of(counted("plain", []), n_seeds=1), store)
    (record,) = store
    assert "fairlearn" not in record.versions
    assert record.versions["pandas"] == "1.0"


def test_an_exit_is_a_failure(store):
    def leave(problem, settings, seed):
        sys.exit(3)

    study = study_of(replace(counted("plain", []), fit=leave), n_seeds=1)
    (failure,) = run(study, store)
    assert failure.error == "SystemExit: 3"


# Two processes on one folder.


def test_what_another_process_records_meanwhile_is_not_done_again(store):
    calls = []
    study = study_of(counted("plain", calls), n_seeds=3)

    def other(done):
        if done.spec.seed == 0:
            run(replace(study, n_seeds=2), store)

    assert run(study, store, on_done=other) == []
    assert calls == [("plain", 0), ("plain", 1), ("plain", 2)]


def test_what_another_process_has_begun_is_left_until_last(store):
    calls = []
    study = study_of(counted("plain", calls), n_seeds=3)
    assert store.claim(study.spec("plain", "small", 0))
    assert not store.claim(study.spec("plain", "small", 0))
    assert run(study, store) == []
    assert calls == [("plain", 1), ("plain", 2), ("plain", 0)]
    assert len(content(store)) == 3


def test_nothing_but_records_is_left(store):
    study = study_of(counted("plain", []), counted("broken", [], fails=True))
    assert len(run(study, store)) == 2
    assert {file.suffix for file in store.folder.glob("*/*")} == {".json"}


# Runs that kill the process they are in.


def deadly(name, ends):
    """Make a method that ends its process on some seeds."""
    plain = counted(name, [])

    def fit(problem, settings, seed):
        if seed in ends:
            os._exit(1)
        return plain.fit(problem, settings, seed)

    return replace(plain, fit=fit)


def test_a_dead_process_costs_its_own_run_only(store):
    study = study_of(deadly("deadly", ends={1}), n_seeds=4)
    told = []
    (failure,) = run(study, store, jobs=2, on_done=told.append)
    assert failure.spec.seed == 1
    assert "process died" in failure.error
    assert sorted(record.spec.seed for record in store) == [0, 2, 3]
    assert sorted(done.spec.seed for done in told) == [0, 1, 2, 3], "each once"
    assert {file.suffix for file in store.folder.glob("*/*")} == {".json"}


def test_a_method_that_is_not_there(store):
    study = study_of(counted("plain", []))
    with pytest.raises(InputError, match="no method 'plain'"):
        run(study, store, methods={"reg": study.methods["plain"]})


def test_guessed_time_is_the_mean_of_runs_like_it(store):
    study = study_of(counted("plain", []), counted("other", []))
    run(study, store)
    records = [replace(r, seconds=2.0 + 2.0 * r.spec.seed) for r in store]
    specs = study.runs(["tradeoff"])
    assert estimate_seconds(specs, records) == (4 * 3.0, 0)
    known = records[0].spec.method
    unknown = sum(spec.method != known for spec in specs)
    assert estimate_seconds(specs, records[:1]) == (2.0 * (len(specs) - unknown), unknown)
    assert estimate_seconds([], records) == (0.0, 0)


# Real runs, in processes that are killed.

METHODS = ("unfair", "reg")
N_SEEDS = 3
SCRIPT = """
import sys
from smallruns import tiny_study
from paper.records import RecordStore
from paper.runs import run_all

study = tiny_study({n_seeds})
specs = [study.spec(key, "german", seed) for seed in range({n_seeds}) for key in {methods}]
how = {{"loaders": study.loaders, "methods": study.methods, "jobs": 2}}
assert run_all(specs, RecordStore(sys.argv[1]), **how) == []
"""


def german_runs():
    study = tiny_study(N_SEEDS)
    specs = [study.spec(key, "german", seed) for seed in range(N_SEEDS) for key in METHODS]
    return specs, {"loaders": study.loaders, "methods": study.methods}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    store = RecordStore(tmp_path_factory.mktemp("undisturbed"))
    specs, how = german_runs()
    assert run_all(specs, store, **how, jobs=1) == []
    return content(store)


@pytest.mark.skipif(sys.platform == "win32", reason="kills a process group")
def test_a_run_that_is_killed_goes_on_where_it_was(store, undisturbed, tmp_path):
    path = os.pathsep.join([str(Path(__file__).parents[2] / "support"), *filter(None, sys.path)])
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(n_seeds=N_SEEDS, methods=METHODS), str(store.folder)],
        env={**os.environ, "PYTHONPATH": path, "JOBLIB_TEMP_FOLDER": str(tmp_path)},
        start_new_session=True,  # the workers die with it
        stderr=subprocess.PIPE,
    )
    with process:
        wait_for(lambda: any(store.folder.glob("*/*.json")) or process.poll() is not None)
        assert process.poll() is None, process.stderr.read().decode()
        os.killpg(process.pid, signal.SIGKILL)
    survived = content(store)
    assert 1 <= len(survived) < len(undisturbed)
    assert survived.items() <= undisturbed.items()
    specs, how = german_runs()
    told = []
    assert run_all(specs, store, **how, jobs=1, on_done=told.append) == []
    assert content(store) == undisturbed
    names = [record.spec.name for record in told]
    assert sorted([*names, *survived]) == sorted(undisturbed), "nothing was done twice"
    left = [file for file in store.folder.rglob("*") if file.is_file() and file.suffix != ".json"]
    assert all(file.suffix in (".partial", ".begun") for file in left)


@pytest.mark.skipif(sys.platform == "win32", reason="kills a process")
def test_a_cluster_that_loses_a_worker_does_all_runs(store, undisturbed, tmp_path):
    distributed = pytest.importorskip("distributed")
    specs, how = german_runs()
    told = []
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            local_directory=str(tmp_path),
            silence_logs="CRITICAL",  # that a worker is lost is what we want
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())
        assert len(set(pids) - {os.getpid()}) == 2

        def kill_one(done):
            told.append(done)
            if len(told) == N_SEEDS + 1:  # in the midst of the second wave
                os.kill(pids[0], signal.SIGKILL)

        with joblib.parallel_config(backend="dask"):
            failures = run_all(specs, store, **how, on_done=kill_one)
        assert pids[0] not in client.run(os.getpid).values()
    assert failures == []
    assert not [done for done in told if isinstance(done, Failure)]
    assert sorted(record.spec.name for record in told) == sorted(undisturbed)
    assert content(store) == undisturbed
