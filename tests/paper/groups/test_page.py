"""The study of groups: what is picked, and that its page says what is recorded."""

import numpy as np
from paper.records import Record, RecordStore

from paper.groups import CANDIDATES, CASES, METHODS, CaseSplit, case_spec, page_text, pick


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
    found = pick([one, one], 0.05)
    assert found.mean("test_accuracy") == 0.72
    assert found.mean("test_gap") == 0.06
    assert found.n == found.n_splits == 2


def test_models_that_decide_nothing_are_passed_over():
    one = record(tune_gap=[0.0, 0.03], tune_accuracy=[0.9, 0.8], tune_accepted=[0.0, 0.3])
    assert pick([one], 0.05).values["test_gap"] == [0.1]
    assert pick([one], 0.01).cell("test_accuracy") == "not reached"


def test_learners_are_set_beside_thresholds_and_exponentiated_gradient(tmp_path):
    store = RecordStore(tmp_path)
    accuracies = {"ftm-predicted": 0.85, "thresholds": 0.852, "exponentiated-gradient": 0.84}
    seconds = {"ftm-predicted": 5.0, "thresholds": 1.0, "exponentiated-gradient": 100.0}
    for name, accuracy in accuracies.items():
        one = record(tune_gap=[0.02], test_accuracy=[accuracy])
        spec = case_spec("adult-race", name, 0)
        store.write(Record(spec, one.curve, seconds[name], {}))
    page = page_text(tmp_path)
    assert "thresholds by -0.0020 on one split, which is within the margin of 0.003" in page
    assert "exponentiated gradient by +0.0100 on one split, in 0.05 of its CPU time" in page


def test_every_method_has_its_candidates():
    assert METHODS.keys() == CANDIDATES.keys()


def test_splits_share_no_rows_and_pool_small_groups():
    case = CASES["adult-sex-race"]
    split = CaseSplit.draw(case, 0)
    sizes = [len(part) for part in (split.fit, split.tune, split.test)]
    assert sum(sizes) == len(case.load().y)
    assert min(np.unique(split.test.group, return_counts=True)[1]) > 300
    again = CaseSplit.draw(case, 0)
    assert split.test.X.equals(again.test.X)
