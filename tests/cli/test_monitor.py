"""``fairmatch monitor``: what is new is read once, and an alarm is exit code 1."""

import re

import numpy as np
import pandas as pd
import pytest

from fairmatch.auditing.monitor import GapMonitor
from fairmatch.cli.main import main


def log(days, rates=(0.3, 0.3), seed=0, n=300):
    generator = np.random.default_rng(seed)
    frames = []
    for day in days:
        sex = generator.integers(0, 2, n)
        hired = (generator.random(n) < np.asarray(rates)[sex]).astype(int)
        frames.append(pd.DataFrame({"day": day, "hired": hired, "sex": np.array(["f", "m"])[sex]}))
    return pd.concat(frames)


def run(path, *more):
    given = ["--time", "day", "--score", "hired", "--sensitive", "sex", "--max-gap", "0.1"]
    return main(["monitor", str(path), *given, *more])


@pytest.mark.parametrize("days", [["2026-01-01", "2026-01-02"], [9, 10]])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_only_what_is_new_is_read(tmp_path, capsys, days, ending):
    path = tmp_path / f"log.{ending}"

    def write(frame):
        frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)

    first, second = log(days[:1]), log(days[1:], seed=1)
    write(first)
    assert run(path) == 0
    write(pd.concat([first, second]))
    assert run(path, "--out", str(tmp_path / "page.html")) == 0
    out = capsys.readouterr().out
    assert out.count(f"{days[0]}  ") == 1
    assert out.count(f"{days[1]}  ") == 1
    kept = GapMonitor.load(tmp_path / f"log.{ending}.monitor.json")
    expected = GapMonitor(0.1, groups=["f", "m"])
    for day in (first, second):
        expected.update(day["hired"], day["sex"])
    assert [one.value for one in kept.history] == [one.value for one in expected.history]
    page = (tmp_path / "page.html").read_text()
    assert "<svg" in page
    assert "No alarm" in page
    assert run(path) == 0
    assert "Nothing new." in capsys.readouterr().out


def test_an_alarm_is_exit_code_one(tmp_path, capsys):
    path = tmp_path / "log.csv"
    log(range(5), rates=(0.2, 0.6)).to_csv(path, index=False)
    assert run(path, "--out", str(tmp_path / "page.html")) == 1
    assert "ALARM" in capsys.readouterr().out
    assert "shown to exceed 0.1" in (tmp_path / "page.html").read_text()


def test_changed_periods_and_settings_are_refused(tmp_path, capsys):
    path = tmp_path / "log.csv"
    frame = log([3, 4])
    frame.to_csv(path, index=False)
    assert run(path) == 0
    pd.concat([frame, log([4], n=5)]).to_csv(path, index=False)
    assert run(path) == 2
    assert "300 rows when it was read and has 305 now" in capsys.readouterr().err
    pd.concat([frame, log([2])]).to_csv(path, index=False)
    assert run(path) == 2
    assert "lies before 4" in capsys.readouterr().err
    frame.to_csv(path, index=False)
    assert run(path, "--confidence", "0.9") == 2
    assert "was begun with --confidence 0.95" in capsys.readouterr().err
    assert run(path, "--time", "week") == 2


def test_groups_of_two_attributes(tmp_path, capsys):
    path = tmp_path / "log.csv"
    frame = log([1, 2])
    frame["race"] = np.resize(["x", "y", "y"], len(frame))
    frame.to_csv(path, index=False)
    assert run(path, "--sensitive", "race") == 0
    assert len(GapMonitor.load(f"{path}.monitor.json").groups) == 4


def test_text_of_parquet_is_read_as_categories(tmp_path):
    """Missing groups are unknown, and numbers stay what they are."""
    frame = log([2, 1])
    frame["race"] = np.resize(np.array(["x", "y", None], dtype=object), len(frame))
    frame["age"] = np.resize([30, 40], len(frame))
    for sensitive, groups, n_unknown in (
        (["race"], ["x", "y"], 200),
        (["age"], [30, 40], 0),
        (["sex", "race"], ["f, x", "f, y", "m, x", "m, y"], 200),
    ):
        path = tmp_path / f"{'-'.join(sensitive)}.parquet"
        frame.to_parquet(path)
        given = ["--time", "day", "--score", "hired", "--sensitive", ",".join(sensitive)]
        assert main(["monitor", str(path), *given, "--max-gap", "0.5"]) == 0
        kept = GapMonitor.load(f"{path}.monitor.json")
        assert (list(kept.groups), kept.n_unknown) == (groups, n_unknown)
        expected = GapMonitor(0.5, groups=groups)
        for day in (1, 2):
            own = frame[frame["day"] == day]
            expected.update(
                own["hired"], own[sensitive] if len(sensitive) > 1 else own[sensitive[0]]
            )
        assert kept.to_dict()["sums"] == expected.to_dict()["sums"]
        assert kept.state.evidence == expected.state.evidence


def labelled(days, seed=0):
    frame = log(days, rates=(0.3, 0.5), seed=seed)
    generator = np.random.default_rng(seed + 100)
    hired_well = generator.choice(["good", "bad"], len(frame))
    return frame.assign(id=[f"{k:05}" for k in range(len(frame))], repaid=hired_well)


def late(path, *more):
    own = ["--measure", "true_positive_gap", "--label", "repaid", "--positive", "good"]
    return run(path, *own, *more)


def watched(*updates):
    """What Python says of updates and of labels that arrive later."""
    own = {"measure": "true_positive_gap", "pos_label": "good"}
    monitor = GapMonitor(0.1, groups=["f", "m"], **own)
    for day, labels in updates:
        if len(day):
            monitor.update(day["hired"], day["sex"], day["repaid"], ids=day["id"])
        if labels is not None:
            monitor.add_labels(labels["id"], labels["repaid"])
    kept = monitor.to_dict()
    return {name: kept[name] for name in ("sums", "sizes", "capital", "open", "waiting")}


def known(path):
    kept = GapMonitor.load(f"{path}.monitor.json").to_dict()
    return {name: kept[name] for name in ("sums", "sizes", "capital", "open", "waiting")}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("way", ["filled in", "added", "another file"])
def test_labels_arrive_later(tmp_path, capsys, way, ending):
    """In the row of the person, in a row of a later period, or in a file of later periods."""
    path = tmp_path / f"log.{ending}"

    def write(*frames):
        frame = pd.concat(frames)
        frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)

    first, second = labelled([1]), labelled([2], seed=1).assign(id=lambda t: "x" + t["id"])
    waits = np.random.default_rng(3).random(len(first)) < 0.4
    open_ = first.assign(repaid=first["repaid"].mask(waits, None))
    write(open_)
    assert late(path, "--id", "id") == 0
    assert known(path) == watched((open_, None))
    assert len(known(path)["waiting"]) == waits.sum()
    brought = first[waits]
    if way == "filled in":  # the labels come before what is new
        write(first, second)
        expected = watched((open_, brought), (second, None))
    else:
        outcomes = brought.assign(day=2, hired=0, sex=None)
        write(*([open_] if way == "added" else []), second, outcomes)
        expected = watched((open_, None), (second, brought))
    capsys.readouterr()
    assert late(path, "--id", "id") == 0
    out = capsys.readouterr().out
    assert out.count("2  ") >= 1
    assert (f"labels of {waits.sum()} people" in out) == (way == "filled in")
    assert known(path) == expected
    assert late(path, "--id", "id", "--out", str(tmp_path / "page.html")) == 0
    assert "Nothing new." in capsys.readouterr().out
    assert known(path) == expected


def test_a_period_is_neither_lost_nor_repeated_by_an_error(tmp_path, capsys):
    path = tmp_path / "log.csv"
    frame = labelled([1, 2, 3])
    for column, damage, message in (
        ("hired", 7.0, "--score"),
        ("repaid", "zzz", "--label must hold two classes"),
    ):
        damaged = frame.copy()
        damaged[column] = damaged[column].astype(object)
        damaged.iloc[400, damaged.columns.get_loc(column)] = damage  # on the second day
        damaged.to_csv(path, index=False)
        assert late(path) == 2
        told = capsys.readouterr()
        assert message in told.err
        assert "GapMonitor" not in told.err
        assert [line.split()[0] for line in told.out.splitlines()] == ["1"]
        frame.to_csv(path, index=False)
        assert late(path) in (0, 1)
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines] == ["2", "3"]
        (tmp_path / "log.csv.monitor.json").unlink()


def test_an_unusable_label_is_read_again(tmp_path, capsys):
    path = tmp_path / "log.csv"
    first = labelled([1])
    open_ = first.assign(repaid=first["repaid"].mask(np.arange(300) < 9, None))
    outcomes = first[:9].assign(day=2)
    second = labelled([2], seed=1).assign(id=lambda t: "x" + t["id"])
    pd.concat([open_, second, outcomes.assign(repaid="zzz")]).to_csv(path, index=False)
    assert late(path, "--id", "id") == 2
    assert len(capsys.readouterr().out.splitlines()) == 2
    pd.concat([open_, second, outcomes]).to_csv(path, index=False)
    assert late(path, "--id", "id") == 0
    assert known(path) == watched((open_, None), (second, first[:9]))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--measure", "true_positive_gap"], "--label"),
        (["--measure", "true_positive_gap", "--label", "repaid"], "missing in 1 rows.*--id"),
        (["--id", "id"], "--id is for labels that arrive later"),
        (["--measure", "true_positive_gap", "--label", "repaid", "--id", "nobody"], "no column"),
        (["--measure", "true_positive_gap", "--label", "repaid", "--id", "some"], "'some' is miss"),
        (
            ["--measure", "true_positive_gap", "--label", "repaid", "--id", "id"],
            "'bad' and 'good'|'good' and 'bad'",
        ),
    ],
)
def test_what_is_missing_is_said_in_options(tmp_path, capsys, more, message):
    path = tmp_path / "log.csv"
    frame = labelled([1])
    frame["repaid"] = frame["repaid"].mask(np.arange(300) == 5, None)
    frame["some"] = frame["id"].mask(np.arange(300) == 5, None)
    frame.to_csv(path, index=False)
    assert run(path, *more) == 2
    told = capsys.readouterr()
    assert re.search(message, told.err)
    assert "y_true" not in told.err
    assert told.out == ""
    assert not (tmp_path / "log.csv.monitor.json").exists()


def test_a_gap_that_cannot_be_watched_is_named(tmp_path, capsys):
    log([1]).to_csv(tmp_path / "log.csv", index=False)
    assert run(tmp_path / "log.csv", "--measure", "ks_parity_gap") == 2
    said = capsys.readouterr().err
    assert "--measure" in said
    assert "must be one of 'demographic_parity_gap', " in said
