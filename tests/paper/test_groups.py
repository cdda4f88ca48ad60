"""The study of groups: what is picked, and that its page says what is recorded."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from paper.groups import CASES, case_spec, draw_case, group_tasks, page_text, picked
from paper.methods import BOUNDS
from paper.records import Record, RecordStore
from paper.runs import run_all
from smallruns import small_table

RESULTS = Path(__file__).parents[2] / "results"


def record(**columns):
    n = len(columns["tune_gap"])
    plain = {name: [0.5] * n for name in ("tune_accuracy", "tune_accepted", "test_accuracy")}
    more = {name: [0.1] * n for name in ("test_gap", "half_space_gap", "consistency")}
    curve = {"weight": list(range(n)), **plain, **more, **columns}
    return Record(case_spec("adult-race", "plain", 0), curve, 1.0, {})


def test_the_most_accurate_within_the_level_is_picked_on_tuning_rows():
    one = record(
        tune_gap=[0.01, 0.04, 0.2],
        tune_accuracy=[0.7, 0.8, 0.9],
        test_accuracy=[0.71, 0.72, 0.99],
        test_gap=[0.02, 0.06, 0.0],
    )
    found = picked({0: one, 1: one}, 0.05)
    assert found["test_accuracy"].mean == 0.72
    assert found["test_gap"].mean == 0.06
    assert found["test_gap"].n == found["test_gap"].n_seeds == 2


def test_models_that_decide_nothing_are_passed_over():
    one = record(tune_gap=[0.0, 0.03], tune_accuracy=[0.9, 0.8], tune_accepted=[0.0, 0.3])
    assert picked({0: one}, 0.05)["test_gap"].values == (0.1,)
    assert picked({0: one}, 0.01)["test_accuracy"].n == 0


def test_learners_are_set_beside_thresholds_and_exponentiated_gradient(tmp_path):
    store = RecordStore(tmp_path)
    accuracies = {"ftm-predicted": 0.85, "thresholds": 0.852, "exponentiated-gradient": 0.84}
    seconds = {"ftm-predicted": 5.0, "thresholds": 1.0, "exponentiated-gradient": 100.0}
    for name, accuracy in accuracies.items():
        one = record(tune_gap=[0.02], test_accuracy=[accuracy])
        spec = case_spec("adult-race", name, 0)
        store.write(Record(spec, one.curve, seconds[name], {}))
    page = page_text(store)
    assert "thresholds by group, accuracy -0.0020 (within the margin of 0.003)" in page
    assert "exponentiated gradient, accuracy +0.0100 in 0.05 of its CPU time" in page


def test_splits_share_no_rows_and_pool_small_groups():
    case = CASES["adult-sex-race"]
    problem = draw_case(case_spec(case.name, "plain", 0))
    sizes = [len(part) for part in (problem.train, problem.tune, problem.test)]
    assert sum(sizes) == len(case.load().y)
    assert min(np.unique(problem.test.group, return_counts=True)[1]) > 300
    again = draw_case(case_spec(case.name, "ceiling", 0))
    assert problem.test.X.equals(again.test.X)
    assert again.tune is again.test


def test_runs_of_the_study_are_those_of_the_records():
    found = {record.spec.digest for record in RecordStore(RESULTS / "groups")}
    assert found <= {task.spec.digest for task in group_tasks()}


def test_a_method_is_tuned_and_recorded_as_in_every_study(tmp_path, monkeypatch):
    case = replace(CASES["adult-race"], load=lambda: small_table(4200), levels=(0.3,))
    monkeypatch.setitem(CASES, "adult-race", case)
    store = RecordStore(tmp_path)
    tasks = group_tasks(["adult-race"], ["plain", "thresholds", "alignment"], 1)
    assert run_all(tasks, store, jobs=1) == []
    found = {record.spec.method: record.curve for record in store}
    assert found["plain"]["weight"] == [0.0]
    assert found["thresholds"]["weight"] == list(BOUNDS)
    gaps = found["thresholds"]["tune_gap"]
    assert all(gap <= bound + 1e-9 for gap, bound in zip(gaps, BOUNDS, strict=True))
    kept = [value is not None for value in found["thresholds"]["half_space_gap"]]
    assert sum(kept) == 1, "only what is picked is looked at"
    assert found["alignment"]["tune_accuracy"][0] == found["plain"]["tune_accuracy"][0]
