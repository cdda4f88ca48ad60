"""Couplings of hundreds of thousands and of millions of people, in blocks.

    python -m benchmarks million

takes about an hour on two cores, so it is no part of `make bench`.
"""

from benchmarks.blocks import SECONDS_PER_ROW, coupled
from benchmarks.timing import Row, in_subprocess


def rows():
    adult = in_subprocess(coupled, "adult", None, None, 1)
    exact = in_subprocess(coupled, "acsincome", 50_000, None, 1)
    found = in_subprocess(coupled, "acsincome", 50_000, 2_048, 2)
    shown = "50,000 × 50,000 of ACSIncome"
    yield Row(f"{shown}: cost in blocks / exact cost", found["cost"] / exact["cost"], 1.03, 4)
    yield Row(f"{shown}: lower bound of blocks / exact cost", found["bound"] / exact["cost"])
    yield Row(f"{shown}: CPU time in blocks / of the exact coupling", found["cpu"] / exact["cpu"])
    for name, most, shown, goal in (
        ("acsincome", None, "ACSIncome by sex, all rows", 1.1),
        ("described", 1_000_000, "a million × a million generated people", 1.15),
    ):
        found = in_subprocess(coupled, name, most, 2_048, 2)
        per_row = found["cpu"] / found["rows"] * adult["rows"] / adult["cpu"]
        yield Row(
            f"{shown}: CPU seconds per row / exact coupling of Adult", per_row, SECONDS_PER_ROW
        )
        yield Row(f"{shown}: peak memory, workers included, GB", found["peak"], 4.0)
        ratio = found["cost"] / found["bound"]
        yield Row(f"{shown}: cost / proven lower bound", ratio, goal)
