"""``fairmatch monitor``: what is new is read once, and an alarm is exit code 1."""

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
    assert "was begun with confidence" in capsys.readouterr().err
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
