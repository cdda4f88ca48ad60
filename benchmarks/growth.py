"""How time and memory grow with the table: couplings, gaps of scores, and audits of files.

    python -m benchmarks growth

takes half an hour, so that it is no part of `make bench`. It draws growth.svg.
"""

from pathlib import Path

import numpy as np

from benchmarks.blocks import coupled
from benchmarks.parquet import audited, write
from benchmarks.timing import Row, Spent, in_subprocess

PICTURE = "CPU seconds and peak memory against the number of people, with exponents."
BLOCKS = (8_000, 20_000, 50_000, 120_000)
SCORES = (100_000, 1_000_000, 3_000_000, 10_000_000)
FILES = (1_000_000, 5_000_000, 20_000_000, 100_000_000)


def scored(n_rows):
    """CPU seconds and peak GB of every gap of scores and of their fair matching."""
    from fairmatch import fair_matching
    from fairmatch.measures import gap_table

    generator = np.random.default_rng(0)
    group = (generator.random(n_rows) < 0.4).astype(np.int8)
    scores = generator.random(n_rows) ** (1.0 + 0.2 * group)
    gap_table(None, scores[:1000], sensitive_features=group[:1000])  # what is imported late
    spent = Spent()
    gap_table(None, scores, sensitive_features=group)
    fair_matching(scores, group)
    return spent.so_far()


def filed(n_people):
    """CPU seconds and peak GB of an audit of people in Parquet files."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        in_subprocess(write, folder, n_people, "continuous")
        return in_subprocess(audited, folder)


def exponent(sizes, values):
    """Slope of the logarithms: values grow like sizes to this power."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def measured():
    """Name to people, CPU seconds and peak GB."""
    lines = {
        "coupling in blocks": (
            [2 * size for size in BLOCKS],
            [in_subprocess(coupled, "mixture", size, 2_048, 1) for size in BLOCKS],
        ),
        "gaps and fair matching of scores": (
            list(SCORES),
            [in_subprocess(scored, size) for size in SCORES],
        ),
        "audit of Parquet files": (list(FILES), [in_subprocess(filed, size) for size in FILES]),
    }
    return {
        name: (sizes, [one["cpu"] for one in found], [one["peak"] for one in found])
        for name, (sizes, found) in lines.items()
    }


def draw(lines, path):
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    look = {"svg.hashsalt": "fairmatch", "svg.fonttype": "none", "font.size": 9}
    with plt.rc_context(look):
        figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
        for name, (sizes, *values) in lines.items():
            for axis, found in zip(axes, values, strict=True):
                axis.loglog(sizes, found, marker="o", label=f"{name}: {exponent(sizes, found):.2f}")
        for axis, title in zip(axes, ("CPU seconds", "peak memory, GB"), strict=True):
            axis.set(title=title, xlabel="people")
            axis.legend(title="exponent", fontsize=7, title_fontsize=7)
            axis.grid(alpha=0.3)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def rows():
    lines = measured()
    draw(lines, Path(__file__).with_suffix(".svg"))
    for name, (sizes, seconds, peaks) in lines.items():
        shown = f"{name}, {sizes[0]:,} to {sizes[-1]:,} people ({len(sizes)} sizes)"
        yield Row(f"{shown}: exponent of CPU time", exponent(sizes, seconds))
        yield Row(f"{shown}: exponent of peak memory", exponent(sizes, peaks))
