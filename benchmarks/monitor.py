"""Simulated streams for `GapMonitor`: false alarms, people until an alarm, and the cost of a row.

python -m benchmarks monitor
"""

import time

import numpy as np

from benchmarks.timing import Row
from fairmatch.auditing.monitor import GapMonitor

REFERENCE = {(0.7, 0.4): 52, (0.55, 0.4): 181, (0.5, 0.45): 2211}


def stream(generator, n, rates):
    group = generator.integers(0, len(rates), n)
    return (generator.random(n) < np.asarray(rates)[group]).astype(float), group


def first_alarm(generator, n, rates, max_gap, batch):
    """Return the number of people until the alarm, or infinity."""
    monitor = GapMonitor(max_gap, groups=list(range(len(rates))))
    decisions, group = stream(generator, n, rates)
    for start in range(0, n, batch):
        if monitor.update(decisions[start : start + batch], group[start : start + batch]).alarm:
            return monitor.state.n_people
    return np.inf


def rows():
    generator = np.random.default_rng(0)
    for rates, pairs in REFERENCE.items():
        n = 60 * pairs
        batch = max(2, pairs // 25)
        found = np.median([first_alarm(generator, n, rates, 0.0, batch) for _ in range(200)])
        what = f"people until an alarm at rates {rates}, over the 2 × {pairs} of the reference"
        yield Row(what, found / (2 * pairs), 1.25)
    for rates, max_gap, batch in (
        ((0.5, 0.5), 0.0, 40),
        ((0.5, 0.5), 0.0, 2000),
        ((0.5, 0.45), 0.05, 200),
        ((0.3, 0.3, 0.35, 0.3), 0.05, 500),
    ):
        alarms = [
            np.isfinite(first_alarm(generator, 20_000, rates, max_gap, batch)) for _ in range(400)
        ]
        what = f"false alarms, 20,000 people, rates {rates}, bound {max_gap}, every {batch} people"
        yield Row(what, np.mean(alarms), 0.05)
    yield from cost(generator)


def cost(generator):
    """CPU time of a million rows, beside DuckDB's grouping of the same Parquet file."""
    import tempfile
    from pathlib import Path

    import duckdb
    import pandas as pd

    decisions, group = stream(generator, 1_000_000, (0.4, 0.42))
    frame = pd.DataFrame({"decision": decisions, "sex": np.array(["f", "m"])[group]})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        frame.to_parquet(path)
        connection = duckdb.connect(config={"threads": 1})
        query = f"select sex, count(*), avg(decision) from '{path}' group by sex"
        connection.execute(query).fetchall()
        start = time.process_time()
        for _ in range(5):
            connection.execute(query).fetchall()
        grouping = (time.process_time() - start) / 5
    monitor = GapMonitor(0.05, groups=["f", "m"])
    start = time.process_time()
    for part in range(10):
        rows_ = slice(part * 100_000, (part + 1) * 100_000)
        monitor.update(frame["decision"].to_numpy()[rows_], frame["sex"].iloc[rows_])
    yield Row("monitoring a million rows / DuckDB's grouping of them",
              (time.process_time() - start) / grouping, 3.0)  # fmt: skip
