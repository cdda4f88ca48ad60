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
@click.option("--confidence", type=options.LEVEL, default=0.95, help="Level of the intervals.")
@click.option("--power", type=options.LEVEL, default=0.8, help="Probability of detecting the gap.")
def plan(
    sizes: str, rate: float, positive_share: float | None, confidence: float, power: float
) -> None:
    """Compute the smallest gap that an audit of groups of these sizes can detect."""
    from fairmatch.measures.planning import chance_maximum, detectable_difference
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
    among: dict[bool | None, float] = {None: 1.0}
    if positive_share is not None:
        among |= {True: positive_share, False: 1.0 - positive_share}
    gaps = of_averages(decides=True).values()
    shares = {
        own.name: among[own.labels[0]]
        for own in gaps
        if own.is_difference and own.labels[0] in among
    }
    pairs = list(combinations(range(len(people)), 2))
    rows = []
    for one, other in pairs:
        found = [
            detectable_difference(
                (share * people[other], share * people[one]),
                rate=rate,
                confidence=confidence,
                power=power,
                n_comparisons=len(pairs),
            )
            for share in shares.values()
        ]
        shown = ("none" if isnan(value) else f"{value:.3f}" for value in found)
        rows.append([f"{people[one]:,} and {people[other]:,}", *shown])
    print(
        f"Smallest gap whose {confidence:.0%} interval excludes 0 with a probability of "
        f"{power:.0%}, at a rate of {rate:g}:"
    )
    print_table(["people", *shares], rows)
    if len(pairs) > 1:
        print(f"The {len(pairs)} pairs share the error of {1 - confidence:.2g}, as in an audit.")
    if any("none" in row for row in rows):
        print("none: at this rate, even the largest possible gap would be shown less often.")
    several = "the largest gap over pairs" if len(pairs) > 1 else "the gap"
    print(
        f"If the groups do not differ at all, {several} of selection rates still averages "
        f"{chance_maximum(people, rate=rate):.3f}."
    )
