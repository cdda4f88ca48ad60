"""Simulated streams for `GapMonitor`: false alarms, people until an alarm, and the cost of a row.

    python -m benchmarks monitor

The streams are recorded in blocks of 50, so an interrupted run goes on.
"""

import contextlib
import io
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.timing import Row, appended, recorded
from fairmatch.auditing.monitor import GapMonitor
from fairmatch.cli.main import main

# Pairs of people until the alarm of the reference method (Chugg and others, 2023), by rates.
REFERENCE = {(0.7, 0.4): 52, (0.55, 0.4): 181, (0.5, 0.45): 2211}
# Rates, bound, shares of the groups, and people between two looks; 0 draws 1 to 1,000 at random.
FAIR = (
    ((0.5, 0.5), 0.0, None, 10),
    ((0.5, 0.5), 0.0, None, 0),
    ((0.5, 0.5), 0.0, None, 2000),
    ((0.1, 0.1), 0.0, (0.95, 0.05), 40),
    ((0.5, 0.45), 0.05, None, 20),
    ((0.5, 0.45), 0.05, None, 0),
    ((0.3, 0.3, 0.35, 0.3), 0.05, None, 100),
)
_BLOCK = 50


def first_alarm(generator, n, rates, max_gap, shares, batch):
    """Return the number of people until the alarm, or None."""
    monitor = GapMonitor(max_gap, groups=list(range(len(rates))))
    group = generator.choice(len(rates), n, p=shares)
    decisions = (generator.random(n) < np.asarray(rates)[group]).astype(float)
    start = 0
    while start < n:
        stop = start + (batch or int(generator.integers(1, 1001)))
        if monitor.update(decisions[start:stop], group[start:stop]).alarm:
            return monitor.state.n_people
        start = stop
    return None


def streams(n_streams, n, rates, max_gap, shares, batch):
    """Return the people until the alarm of many streams, infinity without one."""
    key = {"n": n, "rates": list(rates), "max_gap": max_gap,
           "shares": None if shares is None else list(shares), "batch": batch}  # fmt: skip
    found = []
    for block in range(n_streams // _BLOCK):
        own = {**key, "block": block}
        kept = [one["people"] for one in recorded("monitor") if own.items() <= one.items()]
        if not kept:
            generator = np.random.default_rng([block, n, batch, len(rates)])
            people = [
                first_alarm(generator, n, rates, max_gap, shares, batch) for _ in range(_BLOCK)
            ]
            kept = [appended("monitor", {**own, "people": people})["people"]]
        found += [np.inf if one is None else one for one in kept[0]]
    return np.array(found)


def rows():
    for rates, pairs in REFERENCE.items():
        found = streams(400, 20 * pairs, rates, 0.0, None, max(2, pairs // 25))
        what = f"median people until an alarm at rates {rates}, over 2 × {pairs} of the reference"
        yield Row(
            f"{what} (in pairs: {np.median(found) / 2:,.0f})", np.median(found) / pairs / 2, 1.0
        )
    for rates, max_gap, shares, batch in FAIR:
        n_alarms = np.isfinite(streams(400, 20_000, rates, max_gap, shares, batch)).sum()
        often = f"every {batch} people" if batch else "after 1 to 1,000 people, at random"
        uneven = "" if shares is None else f", shares {shares}"
        what = f"false alarms in 400 streams of 20,000 people, rates {rates}{uneven}, bound "
        yield Row(f"{what}{max_gap}, looking {often}", n_alarms / 400, 0.05, 3)
    yield from cost()


def _spent(call):
    """Return the median CPU time of seven calls, after one that is not counted."""
    times = []
    for _ in range(8):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return float(np.median(times[1:]))


def cost():
    """CPU time of a million rows in ten periods, beside DuckDB's grouping of the same rows."""
    import duckdb
    import pandas as pd

    generator = np.random.default_rng(0)
    group = generator.integers(0, 2, 1_000_000)
    hired = (generator.random(1_000_000) < np.array([0.4, 0.42])[group]).astype(float)
    days = np.arange(1_000_000) // 100_000
    frame = pd.DataFrame({"day": days, "score": hired, "sex": np.array(["f", "m"])[group]})
    connection = duckdb.connect(config={"threads": 1})

    def grouped(source):
        query = f"select sex, count(*), avg(score) from {source} group by sex"
        return _spent(lambda: connection.execute(query).fetchall())

    def monitored():
        monitor = GapMonitor(0.05, groups=["f", "m"])
        for part in range(10):
            own = slice(part * 100_000, (part + 1) * 100_000)
            monitor.update(frame["score"].to_numpy()[own], frame["sex"].iloc[own])

    def command():
        state.unlink(missing_ok=True)
        with contextlib.redirect_stdout(io.StringIO()):
            main(
                ["monitor", str(path), "--time", "day", "--sensitive", "sex", "--state", str(state)]
            )

    connection.register("frame", frame)
    with tempfile.TemporaryDirectory() as folder:
        path, state = Path(folder) / "log.parquet", Path(folder) / "state.json"
        frame.to_parquet(path)
        own, of_file, of_frame = _spent(monitored), grouped(f"'{path}'"), grouped("frame")
        yield Row("GapMonitor, a million rows of a DataFrame / DuckDB's grouping of that DataFrame",
                  own / of_frame, 3.0)  # fmt: skip
        yield Row("fairmatch monitor of a Parquet file of them, with reading and saving / DuckDB's "
                  "grouping of that file", _spent(command) / of_file, 3.0)  # fmt: skip
