"""Couplings in blocks: what they cost beside the exact ones."""

import sys
import time

import numpy as np

from benchmarks.timing import Row, Spent, in_subprocess

SECONDS_PER_ROW = 5.0  # at most so many times those of the exact coupling of Adult


def people(name, most=None):
    """Rows of a table as points, and their groups; at most so many of each group."""
    from fairmatch.datasets import load_dataset, paper_split
    from fairmatch.people.encoding import TableEncoder

    dataset = load_dataset(name)
    rows = (
        paper_split(dataset, seed=0).train_index if name == "adult" else np.arange(len(dataset.y))
    )
    group = np.unique(np.asarray(dataset.sensitive_features), return_inverse=True)[1][rows]
    if most is not None:
        order = np.random.default_rng(0).permutation(len(rows))
        chosen = np.concatenate([order[group[order] == code][:most] for code in (0, 1)])
        rows, group = rows[chosen], group[chosen]
    X = dataset.X.iloc[rows]
    return TableEncoder(max_levels=None).fit(X).to_points(X), group


def mixture(n):
    """Two groups of n generated people: 5 numbers and 7 categories, 100 one-hot columns in all."""
    from fairmatch.people.encoding import Points

    generator = np.random.default_rng(0)
    group = np.repeat([0, 1], n)
    kind = generator.integers(0, 6, 2 * n)
    centres = generator.random((6, 5))
    numbers = centres[kind] + 0.15 * generator.normal(size=(2 * n, 5)) + 0.05 * group[:, None]
    codes = []
    for n_levels in (2, 5, 6, 7, 15, 20, 40):
        liked = generator.integers(0, n_levels, 6)[kind]
        drawn = generator.integers(0, n_levels, 2 * n)
        codes.append(np.where(generator.random(2 * n) < 0.6, liked, drawn))
    return Points(numbers, np.column_stack(codes)), group


def described(n):
    """Two groups of n generated people: 6 numbers, and categories of 5, 12 and 40 levels.

    The second group is shifted a little in every column.
    """
    from fairmatch.people.encoding import Points

    generator = np.random.default_rng(0)
    group = np.repeat([0, 1], n)
    mixing = np.eye(6) + 0.3 * generator.normal(size=(6, 6))
    numbers = 0.5 + 0.1 * generator.normal(size=(2 * n, 6)) @ mixing + 0.03 * group[:, None]
    codes = []
    for n_levels in (5, 12, 40):
        shares = generator.dirichlet(np.full(n_levels, 2.0))
        others = shares * np.exp(0.08 * generator.normal(size=n_levels))
        both = [generator.choice(n_levels, n, p=p / p.sum()) for p in (shares, others)]
        codes.append(np.concatenate(both))
    return Points(np.clip(numbers, 0.0, 1.0), np.column_stack(codes)), group


def coupled(name, most, block_size, n_jobs=1):
    """CPU seconds, peak GB and certificate of one coupling."""
    from fairmatch import OptimalTransportMatcher

    generated = {"mixture": mixture, "described": described}
    points, group = generated[name](most) if name in generated else people(name, most)
    spent, clock = Spent(), time.perf_counter()
    matcher = OptimalTransportMatcher(block_size=block_size, tolerance=1e-6)
    proof = matcher.match(points, group, n_jobs=n_jobs, progress=_said).certificate
    return {
        **spent.so_far(n_jobs),
        "clock": time.perf_counter() - clock,
        "rows": len(points),
        "cost": proof.cost,
        "bound": proof.bound,
        "solver": proof.solver,
    }


def _said(number, done, blocks, cost):
    if done == blocks:
        print(f"round {number}: {blocks} blocks, cost before {cost:.6g}", file=sys.stderr)


def rows():
    exact = {}
    for name, most in (("adult", None), ("acsincome", 10_000)):
        shown = "Adult's training rows" if most is None else f"{most:,} × {most:,} of ACSIncome"
        exact[name] = in_subprocess(coupled, name, most, None, 1)
        found = in_subprocess(coupled, name, most, 2_048, 1)
        yield Row(
            f"cost in blocks / exact cost, {shown}", found["cost"] / exact[name]["cost"], 1.03
        )
        yield Row(f"proven lower bound / exact cost, {shown}", found["bound"] / exact[name]["cost"])
        per_row = found["cpu"] / found["rows"] * exact["adult"]["rows"] / exact["adult"]["cpu"]
        yield Row(
            f"seconds per row in blocks / exact coupling of Adult, {shown}",
            per_row,
            SECONDS_PER_ROW,
        )
