"""The command ``fairmatch plan``: how large a difference given numbers of people can show."""

from __future__ import annotations

from itertools import combinations
from math import isnan

import click

from fairmatch.cli import options
from fairmatch.cli.options import Command
from fairmatch.cli.printing import print_table
from fairmatch.exceptions import InputError


@click.command(cls=Command, example="fairmatch plan --sizes 1500,400,60 --rate 0.3")
@click.option("--sizes", required=True, metavar="N,N,…", help="Number of people in each group.")
@click.option(
    "--rate",
    type=click.FloatRange(0, 1),
    default=0.5,
    help="The selection rate that you expect; 0.5 needs the most people.",
)
@click.option(
    "--positive-share",
    type=options.LEVEL,
    metavar="SHARE",
    help="Share of people with the positive label, to plan for gaps between error rates too.",
)
@click.option(
    "--error-rates",
    type=click.FloatRange(0, 1),
    nargs=2,
    metavar="TPR FPR",
    help="With --positive-share: the true and the false positive rate that you expect. By default "
    "both are --rate.",
)
@click.option(
    "--deviation",
    type=click.FloatRange(0, min_open=True),
    metavar="SD",
    help="Standard deviation of the scores or predictions in each group, to plan for the gap "
    "between means too.",
)
@click.option("--confidence", type=options.LEVEL, default=0.95, help="Level of the intervals.")
@click.option("--power", type=options.LEVEL, default=0.8, help="Probability of detecting the gap.")
def plan(
    sizes: str,
    rate: float,
    positive_share: float | None,
    error_rates: tuple[float, float] | None,
    deviation: float | None,
    confidence: float,
    power: float,
) -> None:
    """Compute the smallest gap that an audit of groups of these sizes can detect."""
    from fairmatch.measures.planning import (
        chance_maximum,
        detectable_difference,
        detectable_mean_difference,
    )
    from fairmatch.measures.registry import of_averages

    try:
        people = [int(size) for size in sizes.replace("_", "").split(",")]
    except ValueError:
        people = []
    if len(people) < 2 or min(people) < 1:
        raise InputError(
            f"--sizes takes the number of people in each of at least two groups, such as "
            f"1500,400,60; got {sizes!r}."
        )
    # The share of the people whom a gap is about, and the rate that is expected, by class.
    among: dict[bool | None, tuple[float, float]] = {None: (1.0, rate)}
    if positive_share is not None:
        right, wrong = error_rates or (rate, rate)
        among |= {True: (positive_share, right), False: (1.0 - positive_share, wrong)}
    elif error_rates:
        raise InputError("--error-rates was given without --positive-share. Name the share too.")
    planned = {
        own.name: among[own.labels[0]]
        for own in of_averages(decides=True).values()
        if own.is_difference and own.labels[0] in among
    }
    pairs = list(combinations(people, 2))
    level = {"confidence": confidence, "power": power}
    rows = []
    for one, other in pairs:
        found = [
            detectable_difference(
                (share * other, share * one), rate=own, n_comparisons=len(pairs), **level
            )
            for share, own in planned.values()
        ]
        shown = ["none" if isnan(value) else f"{value:.3f}" for value in found]
        if deviation is not None:
            mean = detectable_mean_difference(
                (other, one), (deviation, deviation), n_comparisons=len(pairs), **level
            )
            shown.append(f"{mean:.3g}")
        rows.append([f"{one:,} and {other:,}", *shown])
    heads = [*planned, *(["mean_parity_gap"] if deviation is not None else [])]
    expected = f"a rate of {rate:g}"
    if error_rates:
        expected += ", a true positive rate of {:g} and a false positive rate of {:g}".format(
            *error_rates
        )
    print(
        f"Smallest gap whose {confidence:.0%} interval excludes 0 with a probability of "
        f"{power:.0%}, at {expected}:"
    )
    print_table(["people", *heads], rows)
    if len(pairs) > 1:
        print(f"The {len(pairs)} pairs share the error of {1 - confidence:.2g}, as in an audit.")
    if any("none" in row for row in rows):
        print("none: at this rate, even the largest possible gap would be shown less often.")
    several = "the largest gap over pairs" if len(pairs) > 1 else "the gap"
    print(
        f"If the groups do not differ at all, {several} of selection rates still averages "
        f"{chance_maximum(people, rate=rate):.3f}."
    )
