"""Audits of scores in Parquet files that are never read whole, beside DuckDB grouping them.

    python -m benchmarks parquet

writes a hundred million people into a temporary folder (1 GB), twice, so that it is no part of
`make bench`. BENCHMARKS_PEOPLE takes another number of them.
"""

import os
import tempfile
import time

from benchmarks.timing import Row, Spent, in_subprocess

N_PEOPLE = int(os.environ.get("BENCHMARKS_PEOPLE", 100_000_000))
N_FILES = 20
SCORES = {"continuous": "{}", "of four digits": "round({}, 4)"}


def write(folder, n_people, kind):
    """Write generated people: a score, a label that it predicts, and four groups."""
    import duckdb

    score = SCORES[kind].format("least(greatest(0.3 + 0.2 * x + 0.03 * (g < 0.7)::INT, 0), 1)")
    duckdb.execute("SET enable_progress_bar = false")
    for number in range(N_FILES):
        duckdb.execute("SELECT setseed(?)", [(number + 1) / (N_FILES + 1)])
        duckdb.execute(f"""
            COPY (
                SELECT {score} AS score, (random() < {score})::TINYINT AS repaid,
                    CASE WHEN g < 0.7 THEN 'a' WHEN g < 0.9 THEN 'b' WHEN g < 0.98 THEN 'c'
                    ELSE 'd' END AS race
                FROM (SELECT random() + random() + random() AS x, random() AS g
                    FROM range({n_people // N_FILES}))
            ) TO '{folder}/part{number:02d}.parquet'
        """)


def grouped(folder, columns, memory):
    """CPU seconds and peak GB that DuckDB takes to read and to group everybody."""
    import duckdb

    spent, clock = Spent(), time.perf_counter()
    connection = duckdb.connect(config={"memory_limit": memory, "threads": 2})
    connection.execute("SET enable_progress_bar = false")
    n_cells, n_people = connection.execute(
        "SELECT count(*), sum(n) FROM (SELECT count(*) AS n, avg(score) AS mean FROM "
        f"read_parquet('{folder}/*.parquet') GROUP BY {columns})"
    ).fetchone()
    clock = time.perf_counter() - clock
    return {**spent.so_far(), "clock": clock, "cells": n_cells, "people": int(n_people)}


def audited(folder):
    """CPU seconds and peak GB of the whole audit, sample and subsets included."""
    from fairmatch.auditing.streaming import audit_dataset
    from fairmatch.people.roles import Roles

    roles = Roles(scores=["score"], sensitive="race", label="repaid")
    steps = []
    spent, clock = Spent(), time.perf_counter()
    found = audit_dataset(
        folder, roles, progress=lambda name: steps.append((name, spent.so_far()["cpu"]))
    )
    clock = time.perf_counter() - clock
    return {**spent.so_far(), "clock": clock, "people": found.n_rows, "steps": steps}


def beside(n_people, kind):
    """What an audit of so many people takes, and what DuckDB takes to group them."""
    with tempfile.TemporaryDirectory() as folder:
        in_subprocess(write, folder, n_people, kind)
        return {
            "audit": in_subprocess(audited, folder),
            "by_score": in_subprocess(grouped, folder, "score, race, repaid", "800MB"),
            "by_group": in_subprocess(grouped, folder, "race, repaid", "800MB"),
        }


def rows():
    for kind in SCORES:
        found = in_subprocess(beside, N_PEOPLE, kind)
        ours, by_score, by_group = found["audit"], found["by_score"], found["by_group"]
        assert ours["people"] == by_score["people"] == by_group["people"]
        shown = f"{ours['people'] / 1e6:.0f} million scores, {kind}"
        yield Row(
            f"{shown}: whole audit / DuckDB counting them by score, group and label, CPU time",
            ours["cpu"] / by_score["cpu"],
            3.0,
        )
        yield Row(
            f"{shown}: the same / DuckDB taking means by group and label",
            ours["cpu"] / by_group["cpu"],
        )
        yield Row(f"{shown}: peak memory of the audit, GB", ours["peak"], 2.0)
