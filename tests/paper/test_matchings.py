"""Which recorded models are matched, and how the page judges them."""

from dataclasses import replace

import pytest
from paper.matchings import (
    FOLDER,
    Level,
    levels_of,
    matched_cases,
    matching_tables,
    matching_verdict,
)
from paper.questions import Answers
from paper.records import Record, RecordStore
from smallruns import tiny_study


@pytest.fixture
def study():
    """German, one split; every line has three weights."""
    tiny = tiny_study()
    methods = {
        name: replace(method, weights=(0.1, 0.5, 2.0)) for name, method in tiny.methods.items()
    }
    profile = replace(tiny.profile, thinning=1)
    return replace(tiny, profile=profile, methods=methods)


def curve(dp, wdp):
    return {
        "weight": [0.1, 0.5, 2.0],
        "acceptance_rate": [0.3, 0.3, 0.3],
        "demographic_parity_gap": dp,
        "wasserstein_parity_gap": wdp,
    }


def keep(store, study, key, dp, wdp):
    spec = study.spec(key, "german", 0)
    store.write(Record(spec, curve(dp, wdp), 1.0, {}))


def matched(store, case, position):
    names = ("accuracy", "demographic_parity_gap", "wasserstein_parity_gap")
    more = {name: [0.05] for name in (*names, "position, no slack", "nearest people's gap")}
    store.write(Record(case.spec, {"weight": [1.0], **more, "position": [position]}, 1.0, {}))


def test_levels_are_the_papers_and_one_of_scores():
    assert levels_of("adult") == (Level("DP", 0.08), Level("WDP", 0.042))
    assert levels_of("somebody's own") == ()


def test_a_model_far_from_the_level_is_none_at_the_level(study, tmp_path):
    store = RecordStore(tmp_path / "records")
    keep(store, study, "trees-ftm", dp=[0.10, 0.062, 0.01], wdp=[0.2, 0.1, 0.051])
    keep(store, study, "trees-reg", dp=[0.10, 0.09, 0.08], wdp=[0.2, 0.1, 0.09])
    found = {(case.key, case.level.gap): case.spec for case in matched_cases(study, store)}
    assert found.keys() == {("trees-ftm", "DP"), ("trees-ftm", "WDP")}
    assert found["trees-ftm", "DP"].settings["weights"] == [0.5]
    assert found["trees-ftm", "WDP"].settings["weights"] == [2.0]


def test_unconstrained_models_are_listed_once_however_far(study, tmp_path):
    store = RecordStore(tmp_path / "records")
    keep(store, study, "trees-unfair", dp=[0.5, 0.5, 0.5], wdp=[0.5, 0.5, 0.5])
    assert [case.key for case in matched_cases(study, store)] == ["trees-unfair"]


def test_the_verdict_counts_where_ftm_is_nearer(study, tmp_path):
    store = RecordStore(tmp_path / "records")
    for key in ("trees-ftm", "trees-reg", "trees-alignment", "trees-smoothing"):
        keep(store, study, key, dp=[0.06, 0.2, 0.2], wdp=[0.2, 0.2, 0.05])
    positions = {"trees-ftm": 0.1, "trees-reg": 0.3, "trees-alignment": 0.05}
    found = RecordStore(tmp_path / FOLDER)
    for case in matched_cases(study, store):
        matched(found, case, positions.get(case.key, 0.01))
    answers = Answers(study, store)
    state, where, figure, told = matching_verdict(answers)
    assert (state, where) == ("holds in part", "german (2 of 4)")
    assert (
        figure == "More similar in 2 of 4 comparisons (at equal ΔDP 1 of 2, at equal ΔWDP 1 of 2)"
    )
    assert "german at ΔDP 0.06, trees: 0.100, Reg 0.300" in told
    page = matching_tables(answers)
    assert "**german, ΔWDP nearest to 0.05**" in page
    assert "smaller position than 1 of 3 other methods" in page
    assert "Methods with a smaller position: match smoothing (ours); quantile alignment." in page
